"""How often a test finds a difference between systems that were made equal.

    python benchmarks/type_one_error.py --data ml-100k -m P@10
    python benchmarks/type_one_error.py --shapes --simulations 20000

Systems are made equal in three ways, because a test can only be caught out where its own assumption
does not hold. Differences are symmetric about 0 under `signs` and `labels`; under `centred` they
have mean 0 and the shape of the data, so that Wilcoxon's test and the sign test, which test
symmetry and the median, reject although the means are equal (docs/comparing.md).

With `--shapes` differences are drawn by numpy, in shapes whose mean is known: how often the t
interval of `us.compare` holds it, how often the t test finds a difference, and both for plain t.

Smucker et al. 2007; Urbano et al. 2019; Parapar et al. 2020; Ihemelandu & Ekstrand 2021.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unskew as us
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.stats.intervals.means import student_ends
from unskew.stats.intervals.shares import wilson
from unskew.stats.pairing import PairedSample, Pairs, sample
from unskew.stats.special import student_t_sf
from unskew.stats.tests import classic
from unskew.stats.tests.p_values import mean_ends
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


def all_or_nothing(rng: np.random.Generator, share: float, shape: tuple[int, int]) -> Array:
    """Return 0 or 1 with a probability."""
    return (rng.random(shape) < share).astype(np.float64)


def steady(rng: np.random.Generator, share: float, shape: tuple[int, int]) -> Array:
    """Return P@10 of a system that hits with the same probability for everybody."""
    return rng.binomial(10, share, shape) / 10


SHAPES: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], Array], float]] = {
    **{
        f"all or nothing, {share:.0%}, against steady": (
            lambda rng, shape, share=share: (
                all_or_nothing(rng, share, shape) - steady(rng, share, shape)
            ),
            0.0,
        )
        for share in (0.05, 0.1, 0.2, 0.5, 0.9)
    },
    **{
        f"all or nothing, {share:.0%}, against a constant": (
            lambda rng, shape, share=share: all_or_nothing(rng, share, shape) - share,
            0.0,
        )
        for share in (0.05, 0.1, 0.2, 0.5)
    },
    "hit rates of 10 % and 2 %": (
        lambda rng, shape: all_or_nothing(rng, 0.1, shape) - all_or_nothing(rng, 0.02, shape),
        0.08,
    ),
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "uniform": (lambda rng, shape: rng.random(shape), 0.5),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "lognormal": (lambda rng, shape: np.exp(rng.normal(size=shape)), math.exp(0.5)),
    "t with 3 df": (lambda rng, shape: rng.standard_t(3, shape), 0.0),
    "70 % zero, else ±1 or ±2": (
        lambda rng, shape: (
            (rng.random(shape) < 0.3) * rng.choice(np.array([-2.0, -1.0, 1.0, 2.0]), shape)
        ),
        0.0,
    ),
    "70 % zero, 22.5 % −1, 7.5 % +3": (
        lambda rng, shape: rng.choice(np.array([0.0, -1.0, 3.0]), shape, p=[0.7, 0.225, 0.075]),
        0.0,
    ),
    "P@10 of 14 % and 10 %, users differ": (
        lambda rng, shape: (
            (rng.binomial(10, rng.beta(1, 6, shape)) - rng.binomial(10, rng.beta(1, 9, shape))) / 10
        ),
        1 / 7 - 0.1,
    ),
}
"""Differences by user (users x simulations), and their true mean."""


def shape_line(name: str, users: int, simulations: int, seed: int) -> str:
    """Return coverage and type I errors of one shape: plain t, and `compare`'s t."""
    draw, mean = SHAPES[name]
    at_once, counts, widths = 500, np.zeros(4), []
    for block in range(simulations // at_once):
        rng = np.random.default_rng([seed, users, block, *name.encode()])
        gaps = draw(rng, (users, at_once)) - mean
        pairs = Pairs(np.arange(at_once), np.full(at_once, at_once))
        given = sample(np.column_stack([gaps, np.zeros(users)]), pairs, threads=1)
        plain = student_ends(given.difference, given.standard_error, users - 1, 0.95)
        ends = mean_ends(given, 0.95)
        for kind, (low, high) in enumerate((plain, ends)):
            counts[kind] += np.count_nonzero((low <= 1e-12) & (high >= -1e-12))
        t = np.abs(classic.t_statistic(given))
        counts[2] += np.count_nonzero(2 * student_t_sf(t, users - 1) <= 0.05)
        counts[3] += np.count_nonzero(classic.t_test(given, 0) <= 0.05)
        widths.append(np.mean(ends[1] - ends[0]) / np.mean(plain[1] - plain[0]))
    plain, ours, rejected, ours_rejected = counts / (simulations // at_once * at_once)
    return (
        f"| {name} | {users} | {plain:.1%} | {ours:.1%} | {rejected:.3f} | {ours_rejected:.3f} "
        f"| {np.mean(widths):.2f} |"
    )


def shape_table(simulations: int, seed: int) -> None:
    """Print a row per shape and number of users."""
    print("| differences | users | plain t | t of compare | plain test | t test | width |")
    print("|---|---|---|---|---|---|---|")
    for users in (50, 100, 300):
        for name in SHAPES:
            print(shape_line(name, users, simulations, seed), flush=True)


def main() -> None:
    """Print a row per null, with the share of p-values up to alpha and its interval."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("-m", "--metric", default="P@10")
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    if settings.shapes:
        shape_table(settings.simulations, settings.seed)
        return
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
