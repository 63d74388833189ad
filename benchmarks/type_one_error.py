"""How often a test finds a difference between systems that were made equal.

    python benchmarks/type_one_error.py --data ml-100k -m P@10

Systems are made equal in three ways, because a test can only be caught out where its own assumption
does not hold. Differences are symmetric about 0 under `signs` and `labels`; under `centred` they
have mean 0 and the shape of the data, so that Wilcoxon's test and the sign test, which test
symmetry and the median, reject although the means are equal (docs/comparing.md).

Smucker et al. 2007; Urbano et al. 2019; Parapar et al. 2020; Ihemelandu & Ekstrand 2021.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unskew as us
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.stats.intervals.shares import wilson
from unskew.stats.pairing import PairedSample, Pairs, sample
from unskew.stats.tests import classic
from unskew.stats.tests.randomisation import Hypotheses, flip_signs

Array = NDArray[Any]
CLASSIC = {"t": classic.t_test, "wilcoxon": classic.wilcoxon_test, "sign": classic.sign_test}
TESTS = ("randomisation", *CLASSIC)
NULLS = {
    "signs": "a random pair of systems, the sign of each user's difference drawn by a coin",
    "labels": "for each user the values of two random systems",
    "centred": "a random pair of systems, differences less their mean; users drawn with repetition",
}
BLOCK = 50
"""Simulations at a time: of fixed size, each block with its own key."""


def simulate(
    values: Array,
    null: str,
    tests: tuple[str, ...] = TESTS,
    *,
    simulations: int = 1_000,
    permutations: int = 1_000,
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, Array]:
    """Return the p-values of each test.

    Parameters
    ----------
    values
        Users x systems.
    null
        How systems are made equal: one of NULLS.
    tests
        Of TESTS.
    simulations, permutations
        How many; the second of the randomisation test in each simulation.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    """

    def block(start: int) -> dict[str, Array]:
        rng = np.random.default_rng(key_of(seed, "type one", start // BLOCK))
        gaps = null_gaps(values, min(BLOCK, simulations - start), null, rng)
        return {test: p_values(gaps, test, permutations, seed) for test in tests}

    starts = range(0, simulations, BLOCK)
    parts = map_blocks(block, starts, threads, size=simulations * len(values))
    return {test: np.concatenate([part[test] for part in parts]) for test in tests}


def null_gaps(values: Array, count: int, null: str, rng: np.random.Generator) -> Array:
    """Return users x simulations: differences between systems that are equal."""
    users, systems = values.shape
    out = np.empty((users, count))
    for column in range(count):
        rows = rng.integers(users, size=users) if null == "centred" else np.arange(users)
        if null == "labels":
            first = rng.integers(systems, size=users)
            second = (first + rng.integers(1, systems, size=users)) % systems
            out[:, column] = values[rows, first] - values[rows, second]
            continue
        a, b = rng.choice(systems, 2, replace=False)
        gaps = values[:, a] - values[:, b]
        if null == "signs":
            out[:, column] = gaps * rng.choice((-1.0, 1.0), users)
        else:
            out[:, column] = centred(gaps)[rows]
    return out


def centred(gaps: Array) -> Array:
    """Return differences less their mean; what is left of rounding alone is 0."""
    out: Array = gaps - math.fsum(gaps) / len(gaps)
    out[np.abs(out) < 1e-12 * np.abs(gaps).max(initial=0.0)] = 0.0
    return out


def p_values(gaps: Array, test: str, permutations: int, seed: int) -> Array:
    """Return the two-sided p of each column of differences, tested against a column of zeros."""
    columns = gaps.shape[1]
    matrix = np.column_stack([gaps, np.zeros(len(gaps))])
    pairs = Pairs(np.arange(columns), np.full(columns, columns))
    given = sample(matrix, pairs, threads=1)
    return CLASSIC[test](given, 0) if test in CLASSIC else _randomised(given, permutations, seed)


def _randomised(given: PairedSample, permutations: int, seed: int) -> Array:
    limit = np.abs(given.observed) - given.tolerance
    sides = np.zeros(limit.size, np.int8)
    tests = Hypotheses(given.pairs.first, given.pairs.second, sides, limit)
    counts = flip_signs(given.values, tests, permutations, seed=seed)
    return counts.p(counts.each, True)


def main() -> None:
    """Print a row per null, with the share of p-values up to alpha and its interval."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("-m", "--metric", default="P@10")
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--simulations", type=int, default=1_000)
    settings = parser.parse_args()
    data = us.load(settings.data)
    split = us.splits.Random(test=0.2).split(data.ratings, seed=0)[0]
    systems = {
        "popularity": us.recommend.Popularity(),
        "random": us.recommend.Random(),
        "user kNN": us.recommend.UserKNN(),
        "WRMF": us.recommend.WRMF(),
        "average rating": us.recommend.AverageRating(),
    }
    models = {name: system.fit(split.train, 0) for name, system in systems.items()}
    lists = us.targets.AllItems().lists(split, liked=data.liked)
    scores = us.evaluate(lists, models, settings.metric)
    values = us.stats.paired(scores).complete(settings.metric)
    level = 1 - 0.05 / (len(NULLS) * len(TESTS))  # the intervals of all cells hold together
    print("| systems made equal by | " + " | ".join(TESTS) + " |")
    print("|---|" + "---|" * len(TESTS))
    for null in NULLS:
        cells = []
        for p in simulate(values, null, simulations=settings.simulations).values():
            rejected = int((p <= settings.alpha).sum())
            low, high = map(float, wilson(rejected, p.size, level))
            cells.append(f"{rejected / p.size:.3f} [{low:.3f}, {high:.3f}]")
        print(f"| `{null}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
