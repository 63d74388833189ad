"""unskew on the benchmarks' data; run by peers.py in a process of its own, prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl

import timing
import unskew as us
from sizes import CUTOFFS, load

SEVEN = [
    f"{name}@{k}"
    for name in ("P", "Recall", "AP", "nDCG", "RR", "bpref", "infAP(pool=judged)")
    for k in CUTOFFS
]
FIVE = [f"{name}@{k}" for name in ("P", "Recall", "AP", "RR", "nDCG") for k in (10, 100)]
FIVE_SHORT = [f"{name}@{k}" for name in ("P", "Recall", "AP", "RR", "nDCG") for k in (10, 20)]


def arrays(path: Path, means: bool) -> dict:
    """From arrays: join and all seven metrics at eleven cutoffs, per user (and their means)."""
    size = load(path)
    judgments = us.read_ratings({"user": size.user, "item": size.item, "rating": size.rating})
    users = np.arange(size.lists.shape[1])
    runs = {f"s{n}": us.Run.from_arrays(users, lists) for n, lists in enumerate(size.lists)}

    def work() -> object:
        scores = us.evaluate(judgments, runs, SEVEN, liked=4)
        return scores.means() if means else scores

    work()
    return timing.seconds(work, repeat=9)


def frames(path: Path, ids: str, shuffled: bool, library: str = "pandas") -> dict:
    """From data frames to means, validation included."""
    judgments, runs = make_frames(load(path), ids, shuffled, library)

    def work() -> dict:
        return us.evaluate(judgments, runs, FIVE, liked=4).means()

    work()
    return timing.seconds(work, repeat=3)


def million(path: Path) -> dict:
    """1,000,000 users from polars frames; memory above the input's own size."""
    judgments, runs = make_frames(load(path), "integer", False, "polars")
    tiny = {"user": [1], "item": [1], "rating": [5]}
    us.evaluate(tiny, {"s": {1: [1]}}, FIVE_SHORT[::2], liked=4).means()
    before = timing.peak_mib()

    def work() -> dict:
        return us.evaluate(judgments, runs, FIVE_SHORT, liked=4).means()

    first = timing.seconds(work, repeat=1)
    return {**timing.seconds(work, repeat=3), "first": first["best"],
            "above_input_mib": timing.peak_mib() - before}  # fmt: skip


def make_frames(size, ids: str, shuffled: bool, library: str):
    """Build the frames a user would have."""
    systems, users, depth = size.lists.shape
    user = np.repeat(np.arange(users), depth)
    rank = np.tile(np.arange(1, depth + 1), users)

    def frame(columns: dict, seed: int | None):
        table = pl.DataFrame(columns)
        if ids == "text":
            table = table.with_columns(
                user="user-" + pl.col("user").cast(pl.String),
                item="item-" + pl.col("item").cast(pl.String),
            )
        if seed is not None:
            table = table.sample(fraction=1, shuffle=True, seed=seed)
        if library == "polars":
            return table
        import pandas as pd

        return pd.DataFrame({name: table[name].to_numpy(allow_copy=True) for name in table.columns})

    judgments = frame({"user": size.user, "item": size.item, "rating": size.rating},
                      0 if shuffled else None)  # fmt: skip
    runs = {
        f"s{n}": frame(
            {"user": user, "item": size.lists[n].ravel().astype(np.int64), "rank": rank},
            n if shuffled else None,
        )
        for n in range(systems)
    }
    return judgments, runs


if __name__ == "__main__":
    what, file = sys.argv[1], Path(sys.argv[2])
    jobs = {
        "arrays": lambda: arrays(file, means=False),
        "arrays-means": lambda: arrays(file, means=True),
        "frames": lambda: frames(file, "integer", False),
        "shuffled": lambda: frames(file, "integer", True),
        "text": lambda: frames(file, "text", False),
        "million": lambda: million(file),
    }
    print(json.dumps(jobs[what]()))
