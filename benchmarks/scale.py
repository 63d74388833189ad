"""Splits and target lists on 10 and 100 million ratings: time ratio and memory.

python benchmarks/scale.py            each size in a process of its own
python benchmarks/scale.py 1000000    one size: this many users with 100 ratings each
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import polars as pl

import timing
import unskew as us
from unskew.arrays import frozen
from unskew.data.ratings import Ids, Ratings

ITEMS = 50_000
EACH = 100
BAR = 12.0


def made(users: int) -> Ratings:
    """Ratings of `users` users: distinct items, the first ones far more often."""
    rng = np.random.default_rng(1)
    item = np.empty(users * EACH, np.int32)
    for low in range(0, users, 10_000):
        size = min(10_000, users - low)
        # Squares of even steps, shifted by user, fall on distinct items, dense among the first.
        step = (np.arange(EACH) + rng.random((size, 1))) / EACH
        block = (step**2 * (ITEMS - EACH)).astype(np.int32) + np.arange(EACH, dtype=np.int32)
        item[low * EACH : (low + size) * EACH] = block.ravel()
    value = (1 + np.arange(item.size, dtype=np.int64) * 7919 % 5).astype(np.float64)
    user = np.repeat(np.arange(users, dtype=np.int32), EACH)
    ids = Ids(pl.Series(np.arange(users))), Ids(pl.Series(np.arange(ITEMS)))
    return Ratings(*ids, frozen(user), frozen(item), frozen(value))


def measure(users: int) -> dict[str, float]:
    """Best of two of each, and the largest amount of memory, in MiB."""
    few = made(20_000)  # kernels are compiled here
    split = us.splits.Random(test=0.2).split(few)[0]
    designs = {
        "TestItems": us.targets.TestItems(),
        "OneRelevant 99": us.targets.OneRelevant(99),
        "Percentiles 99": us.targets.Percentiles(99),
        "by popularity": us.targets.OneRelevant(99, by="popularity"),
    }
    ways = {
        "RandomSplit": us.splits.Random(test=0.2),
        "UserSplit": us.splits.PerUser(test=0.2),
        "UniformTest": us.splits.Uniform(test=0.1),
    }
    for way in ways.values():
        way.split(few)
    for design in designs.values():
        design.lists(split, liked=4).block(0, 10)
    ratings = made(users)
    result = {
        name: timing.seconds(lambda w=way: w.split(ratings), 2)["best"]
        for name, way in ways.items()
    }
    split = us.splits.Random(test=0.2).split(ratings)[0]
    for name, design in designs.items():
        took = timing.seconds(lambda d=design: d.lists(split, liked=4).block(0, 1000), 2)
        result[name] = took["best"]
    return {**result, "MiB": timing.peak_mib()}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
        return
    small, large = (
        json.loads(
            subprocess.run(
                [sys.executable, __file__, str(users)], check=True, capture_output=True, text=True
            ).stdout.splitlines()[-1]
        )
        for users in (100_000, 1_000_000)
    )
    print("| what | 10 million | 100 million | ratio | bar |")
    print("|---|---:|---:|---:|---:|")
    for name, seconds in small.items():
        if name != "MiB":
            ratio = large[name] / seconds
            print(f"| {name} | {seconds:.2f} s | {large[name]:.2f} s | {ratio:.1f} | {BAR:.0f} |")
    print(f"\nlargest memory {large['MiB'] / 1024:.1f} GiB (bar 8)")


if __name__ == "__main__":
    main()
