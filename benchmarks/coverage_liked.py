"""How often intervals of liked shares and of randomly shown pairs hold their target.

    python benchmarks/coverage_liked.py [--draws 1000] [--seed 1]

Data sets are drawn anew each time, from a generator that is none of unskew's worlds: a logistic
model of liking with latent factors, log-normal popularity, activity of users, ratings that depend
on liking; users are new in each data set, items stay. Recommenders are fixed functions of truth and
popularity and never trained. The target of a liked share is the ratio of expected sums, that of
randomly shown pairs the expected difference of true precision. Intervals of 95 % should hold them
in 93 to 97 % of the data sets.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance
from unskew.report.estimates import Estimates
from unskew.runs import Run
from unskew.unbiased.liked_shares import liked_part, liked_shares_of
from unskew.unbiased.listed_pairs import RatedLists
from unskew.unbiased.random_slice import random_part, random_slice_of

PAIRS = (("taste", "popularity"), ("popularity", "random"), ("taste", "taste2"))
RULE = Relevance(liked=1)
K = 10


@dataclass(frozen=True)
class Size:
    """How large a data set is."""

    users: int
    items: int
    rated: float
    """Mean share of pairs that are rated."""
    shown: float
    """Share of pairs that are shown at random."""
    splits: int = 1


SIZES = {
    "small": Size(80, 100, 0.15, 0.06),
    "medium": Size(250, 150, 0.1, 0.03),
    "splits": Size(150, 120, 0.15, 0.04, 3),
}


class Generator:
    """Items that stay, and users that are new in each data set."""

    def __init__(self, size: Size, seed: int) -> None:
        rng = np.random.default_rng([seed, size.users])
        self.size = size
        self.popularity = rng.lognormal(0, 1, size.items)
        self.quality = rng.normal(0, 0.7, size.items)
        self.factors = rng.normal(size=(size.items, 3))
        self.users = Ids(pl.Series(np.arange(size.users)))
        self.items = Ids(pl.Series(np.arange(size.items)))

    def draw(self, rng: np.random.Generator) -> DataSet:
        """Draw users, what they like and what they rate."""
        size = self.size
        shape = (size.users, size.items)
        logit = 0.3 + self.quality + rng.normal(0, 0.5, (size.users, 1))
        logit = logit + rng.normal(size=(size.users, 3)) @ self.factors.T
        liked = rng.random(shape) < 1 / (1 + np.exp(-logit))
        chance = np.outer(rng.lognormal(0, 0.6, size.users), self.popularity)
        chance = np.minimum(chance * size.rated / chance.mean(), 0.9)
        rated = rng.random(shape) < chance * np.where(liked, 1.0, 0.6)
        shown = rng.random(shape) < size.shown
        scores = {
            "taste": logit + rng.normal(size=shape),
            "taste2": logit + rng.normal(size=shape) * 1.5,
            "popularity": np.log(self.popularity) + 0.01 * rng.normal(size=shape),
            "random": rng.random(shape),
        }
        return DataSet(self, liked, rated, shown, scores)


@dataclass(frozen=True)
class DataSet:
    """One drawn data set."""

    generator: Generator
    liked: np.ndarray
    rated: np.ndarray
    shown: np.ndarray
    scores: dict[str, np.ndarray]

    def ratings(self, mask: np.ndarray) -> Ratings:
        """Return the pairs of a mask as ratings, 1 for liked."""
        user, item = np.nonzero(mask)
        value = self.liked[mask].astype(np.float64)
        world = self.generator
        numbers = user.astype(np.int32), item.astype(np.int32)
        return Ratings(world.users, world.items, *numbers, value)

    def lists(self, scores: np.ndarray, train: np.ndarray) -> np.ndarray:
        """Return the items of the first places, training pairs left out."""
        return np.argsort(np.where(train, np.inf, -scores), axis=1)[:, :K]

    def run(self, lists: np.ndarray) -> Run:
        """Return lists as a run."""
        start = np.arange(len(lists) + 1, dtype=np.int64) * K
        world = self.generator
        return Run(world.users, world.items, start, lists.astype(np.int32).ravel())


@dataclass
class Tally:
    """Intervals, and the sums from which the target follows."""

    low: list[float]
    high: list[float]
    value: list[float]
    tops: list[np.ndarray]
    bottoms: list[np.ndarray]

    def target(self) -> float:
        """Return the ratio of expected sums; of a pair that of a, less that of b."""
        tops, bottoms = np.array(self.tops), np.array(self.bottoms)
        shares = tops.sum(axis=0) / bottoms.sum(axis=0)
        return float(shares[0] - shares[1:].sum())


def measure(size: Size, draws: int, seed: int) -> dict[tuple[str, str, str], Tally]:
    """Draw data sets and collect the intervals of every kind and pair."""
    world, rng = Generator(size, seed), np.random.default_rng([seed, 99])
    tallies: dict[tuple[str, str, str], Tally] = defaultdict(lambda: Tally([], [], [], [], []))
    for _ in range(draws):
        data = world.draw(rng)
        likes, slices = [], []
        precision = defaultdict(list)
        for _ in range(size.splits):
            test = data.rated & (rng.random(data.rated.shape) < 0.5)
            train = data.rated & ~test
            lists = {name: data.lists(scores, train) for name, scores in data.scores.items()}
            runs = {name: data.run(one) for name, one in lists.items()}
            for name, one in lists.items():
                precision[name].append(np.take_along_axis(data.liked, one, 1).mean())
            parts = data.ratings(train), data.ratings(test), data.ratings(data.shown)
            likes.append(liked_part(parts[0], parts[1], runs, RULE, K))
            slices.append(random_part(parts[0], parts[2], runs, RULE, K))
        shares, slice_ = liked_shares_of(likes), random_slice_of(slices)
        for a, b in PAIRS:
            for kind in ("liked", "levelled"):
                add_liked(tallies[kind, a, b], shares, likes, a, b, kind == "levelled")
            pair = slice_.pair(a, b)
            truth = np.array([np.mean(precision[name]) for name in (a, b)])
            add(tallies["shown at random", a, b], pair, truth, np.ones(2))
        for one in ("taste", "popularity"):
            for kind in ("liked", "levelled"):
                add_liked(
                    tallies[f"{kind}, share", one, ""], shares, likes, one, "", kind == "levelled"
                )
            truth = np.array([np.mean(precision[one])])
            add(
                tallies["shown at random, share", one, ""],
                slice_.row(system=one),
                truth,
                np.ones(1),
            )
    return tallies


def add_liked(
    tally: Tally, shares: Estimates, likes: list[RatedLists], a: str, b: str, levelled: bool
) -> None:
    """Add the interval of a pair, or of one system, and the sums of its shares."""
    systems = likes[0].listed.systems
    rows = [systems.index(name) for name in (a, b) if name]
    weights = [part.lists[rows] * (part.weight if levelled else 1.0) for part in likes]
    judged = sum(weight.sum(axis=1) for weight in weights)
    liked = sum((w * part.liked).sum(axis=1) for w, part in zip(weights, likes, strict=True))
    row = shares.row(system=a, levelled=levelled)
    add(tally, shares.pair(a, b, levelled=levelled) if b else row, liked, judged)


def add(tally: Tally, interval: object, top: np.ndarray, bottom: np.ndarray) -> None:
    """Add an interval, if there is one, and what the target follows from."""
    tally.tops.append(top)
    tally.bottoms.append(bottom)
    if interval.value is not None:
        tally.low.append(interval.low)
        tally.high.append(interval.high)
        tally.value.append(interval.value)


def table(draws: int, seed: int) -> pl.DataFrame:
    """Return a row per size, kind of interval and pair."""
    rows = []
    for name, size in SIZES.items():
        for (kind, a, b), tally in measure(size, draws, seed).items():
            target, low, high = tally.target(), np.array(tally.low), np.array(tally.high)
            value = np.array(tally.value)
            rows.append(
                {
                    "size": name,
                    "interval": kind,
                    "of": f"{a} - {b}" if b else a,
                    "target": round(target, 4),
                    "bias": round(float(value.mean()) - target, 4),
                    "sd": round(float(value.std()), 4),
                    "half width": round(float((high - low).mean() / 2), 4),
                    "intervals": value.size,
                    "covers": round(float(((low <= target) & (target <= high)).mean()), 3),
                }
            )
    return pl.DataFrame(rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160):
        print(table(options.draws, options.seed))


if __name__ == "__main__":
    main()
