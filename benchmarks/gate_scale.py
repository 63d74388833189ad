"""How long the gate takes on a million users x top 20, two systems, all checks from lists.

    python benchmarks/gate_scale.py [--users 1000000]

Judgments, training ratings and lists are tables in memory; the clock starts with `judge`. The bar
is 20 seconds on two cores, by hand on an idle machine.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import polars as pl

import unskew as us

ITEMS, DEPTH, RATED = 20_000, 20, 10


def pairs(rng: np.random.Generator, users: int, each: int, power: float) -> pl.DataFrame:
    """Draw different items per user, popular ones more often."""
    draws = (ITEMS * rng.random((users, each)) ** power).astype(np.int64)
    # Neighbours stand in for repeated items, so that a list holds an item once.
    draws.sort(axis=1)
    draws = np.maximum.accumulate(draws - np.arange(each), axis=1) + np.arange(each)
    order = np.argsort(rng.random((users, each)), axis=1)
    items = np.take_along_axis(draws, order, 1) % (ITEMS + each)
    user = np.repeat(np.arange(users), each)
    return pl.DataFrame({"user": user, "item": items.ravel()})


def main() -> None:
    """Make the data, run the gate, print seconds and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1_000_000)
    users = parser.parse_args().users
    rng = np.random.default_rng(1)
    lists = {
        name: pairs(rng, users, DEPTH, power).with_columns(
            rank=pl.Series(np.tile(np.arange(1, DEPTH + 1), users))
        )
        for name, power in (("new", 2.5), ("old", 2.4))
    }
    test, train = (
        frame.with_columns(rating=pl.Series(rng.integers(1, 6, frame.height)))
        for frame in (pairs(rng, users, RATED, 3.0), pairs(rng, users, RATED, 3.0))
    )
    small = {name: frame.head(2_000) for name, frame in lists.items()}
    few = test.head(1_000), train.head(1_000)
    us.gate(few[0], small, candidate="new", production="old", liked=4, train=few[1])  # compile
    start, busy = time.perf_counter(), time.process_time()
    judged = us.judge(test, lists, liked=4, train=train)
    middle = time.perf_counter()
    result = us.gate(judged, candidate="new", production="old")
    end = time.perf_counter()
    busy = time.process_time() - busy
    print(result)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"judge {middle - start:.1f} s, gate {end - middle:.1f} s", end="; ")
    print(f"processor time {busy:.1f} s, peak {memory:.1f} GiB")


if __name__ == "__main__":
    main()
