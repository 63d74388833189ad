"""The peers on the benchmarks' data; run by peers.py in each peer's environment, prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import timing
from sizes import Size, load


def pytrec(size: Size) -> dict:
    """pytrec_eval's evaluate alone: the conversion to nested dicts is not counted."""
    import pytrec_eval

    qrels: dict = {}
    for user, item, rating in zip(
        size.user.tolist(), size.item.tolist(), size.rating.tolist(), strict=True
    ):
        qrels.setdefault(str(user), {})[str(item)] = rating
    score = size.scores[0, 0].tolist()
    runs = [
        {
            str(user): dict(zip(map(str, items), score, strict=True))
            for user, items in enumerate(lists.tolist())
        }
        for lists in size.lists
    ]
    cuts = "10,100"
    measures = {f"P.{cuts}", f"recall.{cuts}", f"map_cut.{cuts}", f"ndcg_cut.{cuts}",
                "recip_rank", "bpref", "infAP"}  # fmt: skip
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=4)
    return timing.seconds(lambda: [evaluator.evaluate(run) for run in runs], repeat=3)


def ranx(size: Size) -> dict:
    """Ranx's fastest route: typed lists, built before the clock starts, sorted by grade."""
    from numba.typed import List
    from ranx import evaluate

    starts = np.flatnonzero(np.diff(size.user, prepend=-1))
    qrels = List()
    for items, ratings in zip(
        np.split(size.item, starts[1:]), np.split(size.rating, starts[1:]), strict=True
    ):
        order = np.argsort(-ratings, kind="stable")
        qrels.append(np.column_stack([items, ratings])[order].astype(np.float64))
    runs = []
    for lists in size.lists:
        run = List()
        for items in lists:
            run.append(np.column_stack([items, size.scores[0, 0]]).astype(np.float64))
        runs.append(run)
    names = [f"{name}@{k}" for name in ("precision", "recall", "map", "mrr", "ndcg")
             for k in (10, 100)]  # fmt: skip
    evaluate(qrels, runs[0], names)
    return timing.seconds(lambda: [evaluate(qrels, run, names) for run in runs], repeat=3)


def rectools(size: Size, ids: str = "integer", shuffled: bool = False, cuts=(10, 100)) -> dict:
    """RecTools' calc_metrics from data frames; relevant judgments chosen before the clock."""
    import pandas as pd
    from rectools import Columns
    from rectools.metrics import MAP, MRR, NDCG, Precision, Recall, calc_metrics

    def named(numbers: np.ndarray, prefix: str):
        if ids == "integer":
            return numbers
        names = np.array([f"{prefix}-{n}" for n in range(int(numbers.max()) + 1)], dtype=object)
        return names[numbers]

    def frame(columns: dict, seed: int):
        table = pd.DataFrame(columns)
        return table.sample(frac=1, random_state=seed) if shuffled else table

    liked = size.rating >= 4
    truth = frame({Columns.User: named(size.user[liked], "user"),
                   Columns.Item: named(size.item[liked], "item")}, 0)  # fmt: skip
    systems, users, depth = size.lists.shape
    user = named(np.repeat(np.arange(users), depth), "user")
    rank = np.tile(np.arange(1, depth + 1), users)
    lists = [named(one.ravel().astype(np.int64), "item") for one in size.lists]
    runs = [
        frame({Columns.User: user, Columns.Item: lists[n], Columns.Rank: rank}, n)
        for n in range(systems)
    ]
    kinds = (Precision, Recall, MAP, MRR, NDCG)
    metrics = {f"{kind.__name__}@{k}": kind(k=k) for kind in kinds for k in cuts}
    return timing.seconds(lambda: [calc_metrics(metrics, run, truth) for run in runs], repeat=2)


if __name__ == "__main__":
    task, data = sys.argv[1], load(Path(sys.argv[2]))
    jobs = {
        "pytrec": lambda: pytrec(data),
        "ranx": lambda: ranx(data),
        "rectools-frames": lambda: rectools(data),
        "rectools-shuffled": lambda: rectools(data, shuffled=True),
        "rectools-text": lambda: rectools(data, ids="text"),
        "rectools-million": lambda: rectools(data, cuts=(10, 20)),
    }
    print(json.dumps(jobs[task]()))
