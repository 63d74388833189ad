"""How often comparisons over data sets are wrong: coverage of intervals, false statements.

    python benchmarks/data_set_coverage.py [REPETITIONS] [OUTPUT.csv]

Data sets are drawn by a generator of its own, none of our worlds: a user's value is a share of 10
hits, whose probability is the level of the data set, plus that of the user, plus the effect of the
system on the data set. Effects on data sets are drawn by `WORLDS`; their mean over data sets is 0
but for the system `a` of the last one. What is true is known from the effects, or (mean ranks, who
is ahead on most data sets) from 20,000 data sets of the same world.

Seeds below 1,000 served to choose the rules; the repetitions here start at 1,000.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from unskew.data.ratings import Ids
from unskew.stats.compare.compare_data_sets import LEAST_DATA_SETS
from unskew.stats.compare.data_set_pairs import on_these_data_sets, p_over_data_sets, rank_intervals
from unskew.stats.corrections import correct
from unskew.stats.pairing import PairedValues, all_pairs
from unskew.stats.special import binomial_half_cdf, student_t_quantile
from unskew.stats.tests.classic import critical_difference, friedman_test, ranks_of, sign_counts
from unskew.stats.tests.posterior import posterior

SYSTEMS = ("a", "b", "c")
FIRST_SEED = 1_000
Effects = Callable[[np.random.Generator, int], np.ndarray]


def normal(spread: float, lead: float = 0.0) -> Effects:
    """Return effects of all systems, normal about 0 (of a: about `lead`)."""

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        effects = rng.normal(0, spread, (count, 3)).clip(-0.15, 0.15)
        effects[:, 0] += lead
        return effects

    return draw


def of_a(one: Callable[[np.random.Generator, int], np.ndarray]) -> Effects:
    """Return effects of a alone."""

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        return np.column_stack([one(rng, count), np.zeros((count, 2))])

    return draw


@dataclass(frozen=True)
class World:
    """Where effects and numbers of users come from."""

    effects: Effects
    users: tuple[int, int] = (30, 300)


WORLDS = {
    "equal systems": World(normal(0.0)),
    "small effects": World(normal(0.015)),
    "large effects": World(normal(0.06)),
    "unequal sizes": World(normal(0.015), (10, 3_000)),
    "few users": World(normal(0.03), (8, 20)),
    "skewed effects": World(of_a(lambda rng, n: 0.04 * (1 - rng.exponential(size=n).clip(0, 5)))),
    "rare losses": World(of_a(lambda rng, n: np.where(rng.random(n) < 0.2, -0.12, 0.03))),
    "one ahead": World(normal(0.03, 0.04)),
    "one far ahead": World(normal(0.02, 0.08)),
}


def values_of(rng: np.random.Generator, effect: np.ndarray, users: int) -> np.ndarray:
    """Return users x systems on one data set."""
    chance = rng.uniform(0.4, 0.6) + rng.uniform(-0.1, 0.1, users)[:, None] + effect
    return rng.binomial(10, chance.clip(0, 1)) / 10


def draw(world: World, rng: np.random.Generator, count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return effects, data sets x systems, and the values on each data set."""
    effects = world.effects(rng, count)
    low, high = np.log(world.users)
    users = np.exp(rng.uniform(low, high, count)).astype(int)
    return effects, [values_of(rng, *one) for one in zip(effects, users, strict=True)]


@dataclass(frozen=True)
class Truth:
    """What holds over data sets of a world."""

    mean: np.ndarray
    """Expected effect of each system."""
    rank: np.ndarray
    """Expected rank."""
    ahead: np.ndarray
    """Systems x systems: how often the one is ahead less how often it is behind."""
    tolerance: float = 0.02
    """Of `ahead`: below this, neither is ahead on most data sets."""


def truth_of(world: World) -> Truth:
    """Learn it from many data sets."""
    rng = np.random.default_rng(7)
    _, values = draw(world, rng, 20_000)
    means = np.stack([one.mean(axis=0) for one in values])
    ahead = np.sign(means[:, :, None] - means[:, None, :]).mean(axis=0)
    centre = world.effects(rng, 2_000_000).mean(axis=0)
    return Truth(centre, ranks_of(means, "higher").mean(axis=0), ahead)


ONE, OTHER = np.array([0, 0, 1]), np.array([1, 2, 2])
"""The pairs of systems."""


def measure(world: World, truth: Truth, count: int, seed: int) -> dict[str, float]:
    """Draw data sets and compare once, by the parts of `compare_data_sets`; what held, what not."""
    rng = np.random.default_rng([seed, count])
    effects, values = draw(world, rng, count)
    new = world.effects(rng, 1)[0]
    means = np.stack([one.mean(axis=0) for one in values])
    users = np.array([len(one) for one in values], float)
    d = np.round(means[:, ONE] - means[:, OTHER], 12)
    own = [one[:, ONE] - one[:, OTHER] for one in values]
    error = np.stack([one.std(axis=0, ddof=1) / len(one) ** 0.5 for one in own])
    marks: dict[str, float] = {}
    half = student_t_quantile(0.975, count - 1) * d.std(axis=0, ddof=1) / count**0.5
    true = truth.mean[ONE] - truth.mean[OTHER]
    marks["like these"] = float((np.abs(d.mean(axis=0) - true) <= half).mean())
    (low, high), p_these = on_these_data_sets(d, error, users, 0.95)
    these = np.round((effects[:, ONE] - effects[:, OTHER]).mean(axis=0), 12)
    marks["on these"] = float(((low <= these) & (these <= high)).mean())
    beliefs = [posterior(d[:, at], error[:, at]) for at in range(3)]
    tails = [
        one.above(new[i] - new[j], new=True)
        for one, i, j in zip(beliefs, ONE, OTHER, strict=True)
        if one is not None
    ]
    marks["a new one"] = float(np.mean([0.025 <= one <= 0.975 for one in tails]))
    sure = correct(p_these, "holm") <= 0.05
    marks["false: on these"] = float((sure & (np.sign(d.mean(axis=0)) != np.sign(these))).any())
    ranks = ranks_of(means, "higher")
    return marks | _of_ranks(ranks, d, truth) | _rank_interval(values, ranks, truth, seed)


def _of_ranks(ranks: np.ndarray, d: np.ndarray, truth: Truth) -> dict[str, float]:
    """Return which tests of ranks are significant, and whether a statement is false."""
    count, pairs = len(ranks), all_pairs(3)
    above, below = sign_counts(d)
    decided = np.maximum(above + below, 1)
    p_sign = np.minimum(2 * binomial_half_cdf(np.minimum(above, below), decided), 1.0)
    is_said = correct(p_sign, "holm") <= 0.05
    lead = np.where(above > below, 1, -1) * truth.ahead[ONE, OTHER]
    friedman = friedman_test(ranks, 2_000, 0)
    gaps = ranks.mean(axis=0).max() - ranks.mean(axis=0).min()
    p = {
        name: correct(p_over_data_sets(name, d, ranks, pairs, p_sign)) for name in ("wilcoxon", "t")
    }
    return {
        "false: on most": float((is_said & (lead < truth.tolerance)).any()),
        "said: on most": float(is_said.any()),
        **{f"any: {name}": float((one <= 0.05).any()) for name, one in p.items()},
        "any: nemenyi": float(gaps > critical_difference(3, count, 0.05)),
        "friedman": float(friedman.p <= 0.05),
        "iman-davenport": float((friedman.p_f or 1.0) <= 0.05),
    }


def _rank_interval(
    values: list[np.ndarray], ranks: np.ndarray, truth: Truth, seed: int
) -> dict[str, float]:
    if len(values) < LEAST_DATA_SETS:
        return {}
    given = [PairedValues(SYSTEMS, ("value",), {"value": "higher"},
                          Ids(pl.Series(np.arange(len(one)))), (), values={"value": one})
             for one in values]  # fmt: skip
    low, high = rank_intervals(given, ranks, resamples=200, level=0.95, seed=seed)
    return {"mean rank": float(((low <= truth.rank) & (truth.rank <= high)).mean())}


def main() -> None:
    """Measure every world with 2, 3, 5, 10 data sets; write a row per world and number."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    output = Path(sys.argv[2] if len(sys.argv) > 2 else "build/data_set_coverage.csv")
    output.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, world in WORLDS.items():
        truth = truth_of(world)
        for count in (2, 3, 5, 10):
            start = time.perf_counter()
            runs = [
                measure(world, truth, count, FIRST_SEED + number) for number in range(repetitions)
            ]
            table = pl.DataFrame(runs, infer_schema_length=None)
            means = table.mean().to_dicts()[0]
            rows.append({"world": name, "data sets": count, **means})
            print(name, count, f"{time.perf_counter() - start:.0f} s", flush=True)
            pl.DataFrame(rows, infer_schema_length=None).write_csv(output, float_precision=4)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=220):
        print(pl.DataFrame(rows, infer_schema_length=None))


if __name__ == "__main__":
    main()
