"""Scores of systems that differ."""

import numpy as np
import polars as pl

import unskew as us


def some_scores(seed=0, users=120, systems=5, metrics=("P@3", "nDCG@5", "RR", "anti-P@3")):
    """Return scores of systems that find liked items more or less often."""
    rng = np.random.default_rng(seed)
    rows, runs = [], {f"s{n}": {} for n in range(systems)}
    for u in range(users):
        judged = rng.permutation(30)[:8]
        rows += [(f"u{u}", int(i), int(rng.integers(1, 6))) for i in judged]
        for n, lists in enumerate(runs.values()):
            worth = rng.random(30) + np.isin(np.arange(30), judged) * 0.12 * n
            lists[f"u{u}"] = np.argsort(-worth)[:6].tolist()
    test = pl.DataFrame(rows, ["user", "item", "rating"], orient="row")
    return us.evaluate(test, runs, list(metrics), liked=4)
