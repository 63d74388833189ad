"""RecTools."""

from importlib.metadata import version

import pandas as pd
from fixtures import CUTOFFS, liked_only
from record import Record
from rectools import Columns
from rectools.metrics import (
    MAP,
    MCC,
    MRR,
    NDCG,
    PAP,
    Accuracy,
    F1Beta,
    HitRate,
    PartialAUC,
    Precision,
    Recall,
)

METRICS = [
    (Precision, {}),
    (Precision, {"r_precision": True}),
    (Recall, {}),
    (F1Beta, {}),
    (HitRate, {}),
    (MAP, {}),
    (MAP, {"divide_by_k": True}),
    (NDCG, {}),
    (NDCG, {"divide_by_achievable": True}),
    (NDCG, {"log_base": 10}),
    (NDCG, {"log_base": 10, "divide_by_achievable": True}),
    (MRR, {}),
    (PartialAUC, {}),
    (PAP, {}),
    (Accuracy, {}),
    (MCC, {}),
]
CATALOG = (Accuracy, MCC)


def main():
    record = Record("RecTools", "rectools", version("rectools"))
    for fixture, data in record.fixtures.items():
        if fixture == "tied":  # lists come ranked
            continue
        rows = [
            (user, item, place)
            for user, items in data["lists"].items()
            for place, item in enumerate(items, 1)
        ]
        reco = pd.DataFrame(rows, columns=[Columns.User, Columns.Item, Columns.Rank])
        liked = liked_only(data["judgments"], data["threshold"])
        for given, judged in (("liked only", liked), ("all judgments", data["judgments"])):
            pairs = [(user, item) for user, items in judged.items() for item in items]
            truth = pd.DataFrame(pairs, columns=[Columns.User, Columns.Item])
            catalog = sorted({*reco[Columns.Item], *truth[Columns.Item]})
            for metric, options in METRICS:
                for k in CUTOFFS:
                    more = {"catalog": catalog} if metric in CATALOG else {}
                    per_user = metric(k=k, **options).calc_per_user(reco, truth, **more)
                    mean = metric(k=k, **options).calc(reco, truth, **more)
                    option = ", ".join(f"{name}={value}" for name, value in options.items())
                    name = f"{metric.__name__}(k={k})"
                    record.add(fixture, given, name, k, mean, option, per_user.to_dict())
    record.save()


main()
