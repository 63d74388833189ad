"""LensKit since its rewriting (2025)."""

import logging
from importlib.metadata import version

from fixtures import CUTOFFS, liked_only
from lenskit.data import ItemList, ItemListCollection
from lenskit.metrics import (
    DCG,
    NDCG,
    RBP,
    Hit,
    LogRankWeight,
    Precision,
    Recall,
    RecipRank,
    RunAnalysis,
)
from lenskit.metrics.ranking import AveragePrecision
from record import Record

GAIN = {"gain": "rating"}
OFFSET = {"weight": LogRankWeight(offset=1)}
METRICS = [
    (Precision, {}),
    (Recall, {}),
    (Hit, {}),
    (RecipRank, {}),
    (AveragePrecision, {}),
    *((metric, options) for metric in (NDCG, DCG) for options in ({}, OFFSET, GAIN, GAIN | OFFSET)),
    (RBP, {}),
    (RBP, {"patience": 0.8}),
    (RBP, {"normalize": True}),
]
TEXT = {"gain": "gain='rating'", "weight": "weight=LogRankWeight(offset=1)"}


def ranked(fixture, data, user):
    """Return a list; where scores tie, LensKit orders it."""
    items = data["lists"][user]
    if fixture == "tied":
        scores = [data["scores"][user][item] for item in items]
        return ItemList(item_ids=items, scores=scores).top_n()
    return ItemList(item_ids=items, ordered=True)


def collection(lists):
    result = ItemListCollection(["user"])
    for user, items in lists.items():
        result.add(items, user=user)
    return result


def main():
    logging.disable(logging.WARNING)
    record = Record("LensKit", "lenskit", version("lenskit"))
    for fixture, data in record.fixtures.items():
        lists = {user: ranked(fixture, data, user) for user in data["lists"]}
        liked = liked_only(data["judgments"], data["threshold"])
        for given, judged in (("liked only", liked), ("all judgments", data["judgments"])):
            truth = {
                user: ItemList(item_ids=list(row), rating=[float(r) for r in row.values()])
                for user, row in judged.items()
            }
            for metric, options in METRICS:
                if metric is RBP and fixture == "twice":
                    continue
                shown = lists
                where = given
                # Both stop at a list of a user without judgments.
                if metric is AveragePrecision or (metric is DCG and "gain" in options):
                    shown = {user: items for user, items in lists.items() if user in judged}
                    where = given + ", lists of users without any left out"
                for k in (None, *CUTOFFS):
                    analysis = RunAnalysis(metric(n=k, **options))
                    result = analysis.measure(collection(shown), collection(truth))
                    name = result.list_metrics().columns[0]
                    option = ", ".join(
                        TEXT.get(key, f"{key}={value}") for key, value in options.items()
                    )
                    mean = result.list_summary().loc[name, "mean"]
                    values = result.list_metrics(fill_missing=False)[name]
                    record.add(fixture, where, name, k, mean, option, values.to_dict())
                    unfilled = "list_metrics(fill_missing=False).mean()"
                    option = f"{option}, {unfilled}" if option else unfilled
                    record.add(fixture, where, name, k, values.mean(), option)
    record.save()


main()
