"""TorchMetrics: its retrieval metrics, handed the listed items of each user."""

import torch
import torchmetrics
from fixtures import CUTOFFS
from record import Record
from torchmetrics.retrieval import (
    RetrievalAUROC,
    RetrievalFallOut,
    RetrievalHitRate,
    RetrievalMAP,
    RetrievalMRR,
    RetrievalNormalizedDCG,
    RetrievalPrecision,
    RetrievalRecall,
    RetrievalRPrecision,
)

CUT = [
    (RetrievalNormalizedDCG, {}),
    (RetrievalMAP, {}),
    (RetrievalMRR, {}),
    (RetrievalPrecision, {}),
    (RetrievalPrecision, {"adaptive_k": True}),
    (RetrievalRecall, {}),
    (RetrievalHitRate, {}),
    (RetrievalFallOut, {}),
    (RetrievalAUROC, {}),
]
NEEDS_POSITIVE_SCORES = (RetrievalMAP, RetrievalMRR, RetrievalPrecision, RetrievalRecall)
EMPTY = [{}, {"empty_target_action": "pos"}, {"empty_target_action": "skip"}]


def metrics(graded):
    """Yield metrics with their options and cutoff."""
    for metric, settings in CUT:
        if not graded or metric is RetrievalNormalizedDCG:
            for empty in EMPTY:
                for k in (None, *CUTOFFS):
                    if k is not None or not settings:
                        yield metric, {**settings, **empty}, k
    if not graded:
        for empty in EMPTY:
            yield RetrievalRPrecision, empty, None


def flat(fixture, data, convert):
    """Return scores, truth and user of every listed item."""
    scores, truth, index = [], [], []
    for number, (user, items) in enumerate(data["lists"].items()):
        judged = data["judgments"].get(user, {})
        for place, item in enumerate(items):
            falling = float(len(items) - place)
            scores.append(falling if fixture == "twice" else data["scores"][user][item])
            truth.append(convert(judged.get(item, 0)))
            index.append(number)
    return torch.tensor(scores), torch.tensor(truth), torch.tensor(index)


def main():
    torch.set_num_threads(1)
    record = Record("TorchMetrics", "torchmetrics", torchmetrics.__version__)
    for fixture, data in record.fixtures.items():

        def is_liked(rating, threshold=data["threshold"]):
            return int(rating >= threshold)

        handed = [
            ("items of the list, 1 if liked", is_liked, 0, False),
            ("items of the list, ratings or 0", float, 0, True),
        ]
        if fixture == "small":
            lowered = "items of the list, 1 if liked, scores lowered to 0 and less"
            handed.append((lowered, is_liked, 8, False))
        for given, convert, lower, graded in handed:
            scores, truth, index = flat(fixture, data, convert)
            for metric, settings, k in metrics(graded):
                if lower and (metric not in NEEDS_POSITIVE_SCORES or settings):
                    continue
                cut = {} if k is None else {"top_k": k}
                value = metric(**settings, **cut)(scores - lower, truth, indexes=index)
                name = metric.__name__ if k is None else f"{metric.__name__}(top_k={k})"
                option = ", ".join(f"{key}={value!r}" for key, value in settings.items())
                where = given
                if fixture == "tied" and metric is not RetrievalNormalizedDCG:
                    where += ", some scores equal"
                record.add(fixture, where, name, k, value.item(), option)
    record.save()


main()
