"""Time and memory of `unskew audit --quick` on large data made here: 2, 20 and 100 million ratings.

    python benchmarks/audit_scale.py make 20m --folder /tmp/scale
    python benchmarks/audit_scale.py run 2m 20m --folder /tmp/scale [-- --users 20000]

`make` writes a Parquet file in bounded memory: popularity of items falls by a power of their rank,
activity of users is lognormal, who rates what follows popularity and the tastes of the user, and a
rating from 1 to 5 follows the quality of the item, its match with the user, and noise. `run` audits
each file in a process of its own, and prints wall time, processor time, the most memory held at a
time, and how time grows with the number of ratings.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from pathlib import Path
from subprocess import Popen

import numpy as np
import polars as pl

SIZES = {
    "2m": (2_000_000, 13_800, 2_700),
    "2m-wide": (2_000_000, 138_000, 27_000),
    "20m": (20_000_000, 138_000, 27_000),
    "100m": (100_000_000, 1_000_000, 100_000),
}
"""By name: ratings, users, items."""
GENRES = 40
FACTORS = 6
BLOCK = 3_000_000
"""Ratings that are made at a time."""
DAY = 86_400


class Market:
    """Items and their groups, from which users choose."""

    def __init__(self, items: int, rng: np.random.Generator) -> None:
        rank = rng.permutation(items)
        self.weight = (rank + 20.0) ** -0.9
        self.genre = rng.integers(0, GENRES, items)
        self.factor = rng.normal(size=(items, FACTORS)).astype(np.float32)
        self.centre = rng.normal(size=(GENRES, FACTORS)).astype(np.float32)
        self.factor = 0.6 * self.factor + self.centre[self.genre]
        self.quality = rng.normal(0, 0.45, items) + 0.15 * np.log10(self.weight / self.weight.min())
        self.order = np.argsort(self.genre, kind="stable")
        self.everything = np.cumsum(self.weight) / self.weight.sum()
        by_genre = self.weight[self.order]
        self.ends = np.append(0.0, np.cumsum(by_genre))
        self.bounds = self.ends[np.searchsorted(self.genre[self.order], np.arange(GENRES + 1))]

    def choose(self, taste: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return an item for each row: by popularity alone, or within a genre of the user."""
        chance = rng.random(taste.size)
        item = np.searchsorted(self.everything, chance).astype(np.int64)
        within = taste >= 0
        low, high = self.bounds[taste[within]], self.bounds[taste[within] + 1]
        at = np.searchsorted(self.ends, low + (high - low) * chance[within], side="right") - 1
        item[within] = self.order[np.minimum(at, self.order.size - 1)]
        return np.minimum(item, self.weight.size - 1)


def activity(ratings: int, users: int, items: int, rng: np.random.Generator) -> np.ndarray:
    """Return how many ratings each user gives: lognormal, at least 5."""
    wanted = rng.lognormal(0.0, 1.0, users)
    most = items // 4
    count = np.clip(wanted / wanted.sum() * ratings, 5, most)
    for _ in range(20):
        count = np.clip(count * ratings / count.sum(), 5, most)
    return count.astype(np.int64)


def block_of(
    first: int, count: np.ndarray, market: Market, rng: np.random.Generator
) -> pl.DataFrame:
    """Return the ratings of some users."""
    users, tries = count.size, (count * 1.8).astype(np.int64) + 4
    owner = np.repeat(np.arange(users), tries)
    likes = rng.integers(0, GENRES, (users, 3))
    taste = likes[owner, rng.integers(0, 3, owner.size)]
    taste[rng.random(owner.size) < 0.45] = -1
    items = market.weight.size
    pair = owner * items + market.choose(taste, rng)
    pair = pair[np.unique(pair, return_index=True)[1]]  # in the order in which they were drawn
    pair = pair[rng.permutation(pair.size)]
    pair = pair[np.argsort(pair // items, kind="stable")]
    owner = pair // items
    start = np.searchsorted(owner, np.arange(users))
    pair = pair[np.arange(pair.size) - start[owner] < count[owner]]
    owner, item = pair // items, pair % items
    mine = market.centre[likes].mean(axis=1) + 0.5 * rng.normal(size=(users, FACTORS))
    match = np.einsum("ij,ij->i", mine[owner].astype(np.float32), market.factor[item])
    value = 3.4 + rng.normal(0, 0.4, users)[owner] + market.quality[item] + 0.25 * match
    value = np.clip(np.rint(value + rng.normal(0, 0.8, owner.size)), 1, 5)
    joined = rng.integers(0, 3_000 * DAY, users)
    moment = 1_000_000_000 + joined[owner] + rng.integers(0, 200 * DAY, owner.size)
    return pl.DataFrame(
        {
            "user": (owner + first).astype(np.int32),
            "item": item.astype(np.int32),
            "rating": value.astype(np.float32),
            "timestamp": moment,
        }
    )


def make(name: str, folder: Path, seed: int = 1) -> Path:
    """Write ratings of a size, unless they are there."""
    path = folder / f"{name}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    ratings, users, items = SIZES[name]
    rng = np.random.default_rng(seed)
    market, count = Market(items, rng), activity(ratings, users, items, rng)
    ends = np.cumsum(count)
    parts: list[Path] = []
    low = 0
    while low < users:
        before = int(ends[low - 1]) if low else 0
        high = max(int(np.searchsorted(ends, before + BLOCK)), low + 1)
        part = folder / f"{name}.part{len(parts):04d}.parquet"
        block_of(low, count[low:high], market, rng).write_parquet(part)
        parts.append(part)
        low = high
    pl.scan_parquet(parts).sink_parquet(path)
    for part in parts:
        part.unlink()
    return path


def measured(words: list[str], log: Path) -> tuple[int, float, float, float]:
    """Run a command; return its exit code, wall and processor seconds, and its most GiB."""
    start = time.perf_counter()
    with log.open("w") as screen, Popen(words, stdout=screen, stderr=screen) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    return process.returncode, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / (1 << 20)


def run(names: list[str], folder: Path, more: list[str]) -> bool:
    """Audit each file, and say what it took and how it grows."""
    times: dict[str, float] = {}
    good = True
    for name in names:
        path = make(name, folder)
        report, log = folder / f"{name}.html", folder / f"{name}.log"
        words = ["-m", "unskew", "audit", str(path), "--quick", "-o", str(report), *more]
        code, wall, cpu, memory = measured([sys.executable, *words], log)
        print(f"{name}: {wall:,.0f} s, {cpu:,.0f} s of processors, {memory:.2f} GiB, exit {code}")
        times[name], good = cpu, good and code == 0
    for small, large in itertools.pairwise(names):
        ratio = SIZES[large][0] / SIZES[small][0]
        print(f"{large} / {small}: {ratio:g} x ratings, {times[large] / times[small]:.1f} x time")
    return good


def main() -> int:
    """Read the command line."""
    own, more = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, more = own[:at], own[at + 1 :]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "run"])
    parser.add_argument("sizes", nargs="+", choices=list(SIZES))
    parser.add_argument("--folder", type=Path, default=Path("audit-scale"))
    asked = parser.parse_args(own)
    if asked.what == "make":
        for name in asked.sizes:
            start = time.perf_counter()
            path = make(name, asked.folder)
            size = path.stat().st_size / (1 << 30)
            print(f"{path}: {size:.2f} GiB, {time.perf_counter() - start:,.0f} s")
        return 0
    return 0 if run(asked.sizes, asked.folder, more) else 1


if __name__ == "__main__":
    sys.exit(main())
