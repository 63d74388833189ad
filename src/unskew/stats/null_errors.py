"""`type_one_error`: how often a test finds a difference between systems that are equal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import as_count, check_share, checked, choose
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress, Steps
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.discrimination import ALPHA
from unskew.stats.distributions import wilson
from unskew.stats.pairing import Source, paired
from unskew.stats.user_draws import check_two_systems

Test = Callable[[F64], F64]
"""From paired differences (users x columns) to a two-sided p for each column."""


TESTS = ("randomisation", "t", "wilcoxon", "sign")


NULLS = {
    "signs": "a random pair of systems, the sign of each user's difference drawn by a coin",
    "labels": "for each user the values of two random systems",
    "centred": "a random pair of systems, differences less their mean; users drawn with repetition",
}
"""How systems are made equal. Differences are symmetric about 0 under the first two; under the last
they have mean 0 and the shape that the data have."""


OF_SYMMETRY = ("wilcoxon", "sign")
"""Tests of whether differences are symmetric about 0: a mean of 0 is not enough for them."""


SIMULATIONS = 1_000


_STEP = 50  # simulations at a time: of fixed size, each block with its own key


EXCEEDS, IN_LINE, BELOW = "does not hold its level", "in line with its level", "below its level"


@dataclass(frozen=True, eq=False)
class TypeOneError(Result):
    """How often tests find a difference between systems that were made equal.

    Made by `type_one_error`.
    """

    metric: str
    users: int
    p: Mapping[str, Mapping[str, F64]]
    """For each null and test the p-values of all simulations."""
    alpha: float = ALPHA

    def table(self, alpha: float | None = None) -> pl.DataFrame:
        """Return a row per null and test: how often p <= alpha, with Wilson's interval.

        Columns: null, test, alpha, simulations, rejected, rate, low, high, verdict: `does not hold
        its level` where the interval lies above alpha, `below its level` where it lies below (a
        test that is only careful), else `in line with its level`. The intervals of all rows hold
        together at 95 % (Bonferroni): of tests that hold their level none is called otherwise in
        95 % of the tables.
        """
        limit = self.alpha if alpha is None else alpha
        check_share("alpha", limit)
        rows = []
        level = 1 - 0.05 / sum(map(len, self.p.values()))
        for null, tests in self.p.items():
            for test, p in tests.items():
                rejected = int((p <= limit).sum())
                low, high = map(float, wilson(rejected, p.size, level))
                verdict = EXCEEDS if low > limit else BELOW if high < limit else IN_LINE
                rate = rejected / p.size
                rows.append((null, test, limit, p.size, rejected, rate, low, high, verdict))
        names = ["null", "test", "alpha", "simulations", "rejected", "rate", "low", "high"]
        return pl.DataFrame(rows, schema=[*names, "verdict"], orient="row")

    def figure(self) -> Figure:
        """Draw how often p falls below each level: on the diagonal where a test keeps its level."""
        import altair as alt

        levels = np.linspace(0, 1, 101)
        rows = [
            {"null": null, "test": test, "level": float(level), "rate": float((p <= level).mean())}
            for null, tests in self.p.items()
            for test, p in tests.items()
            for level in levels
        ]
        tests = list(dict.fromkeys(test for several in self.p.values() for test in several))
        chart = alt.Chart(alt.NamedData(name="rows"), width=240, height=240)
        x = alt.X("level:Q", title="alpha").scale(domain=[0, 1])
        y = alt.Y("rate:Q", title="share of p at or below alpha").scale(domain=[0, 1])
        color = alt.Color("test:N").scale(domain=tests)
        nulls = alt.Column("null:N", title=None).sort(list(self.p))
        line: alt.Chart = chart.mark_line().encode(x=x, y=y, color=color, column=nulls)
        return as_figure(line, "Errors where systems are equal", self.footer(), rows)

    def _explanation(self) -> list[str]:
        lines = [f"{self.metric}, {counted(self.users, 'user')}; ways to make systems equal:"]
        lines += [f"{null}: {NULLS[null]}" for null in self.p]
        lines.append("low and high: 95 % for all rows together")
        if set(self.p.get("centred", ())) & set(OF_SYMMETRY):
            lines.append(
                "under centred the mean difference is 0, but differences need not be symmetric "
                "about 0: wilcoxon and sign test symmetry (sign: the median), not the mean"
            )
        return lines

    def _summary(self) -> str:
        tests = dict.fromkeys(test for tests in self.p.values() for test in tests)
        return f"{self.metric!r}, nulls {', '.join(self.p)}, tests {', '.join(tests)}"


@notebook_progress("type I error")
@checked
def type_one_error(
    scores: Source,
    metric: str,
    *,
    tests: str | Sequence[str] | Mapping[str, Test] = TESTS,
    null: str | Sequence[str] = tuple(NULLS),
    users: int | None = None,
    simulations: int = SIMULATIONS,
    permutations: int = 1_000,
    alpha: float = ALPHA,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TypeOneError:
    """Simulate how often a test errs on data like these when no two systems differ.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metric
        Its label.
    tests
        Of `randomisation`, `t`, `wilcoxon`, `sign`; or functions of your own, by name, from
        differences (users x columns) to two-sided p-values.
    null
        How systems are made equal, one or several: `signs` takes a random pair of systems and gives
        each user's difference the sign of a coin; `labels` takes for each user the values of two
        systems at random; `centred` takes a random pair of systems, subtracts the mean from the
        users' differences and draws users with replacement. Differences are symmetric about 0 under
        the first two, where the sign, Wilcoxon and randomisation tests hold their level by
        construction. Under `centred` only the mean is 0: where differences are skewed, Wilcoxon and
        sign, which test symmetry and the median, reject although the means are equal.
    users
        Draw so many users with replacement for each simulation: what happens with fewer (or more)
        users than there are. None: as many as there are.
    simulations, permutations
        How many under each null; the second of the randomisation test in each simulation.
    alpha
        The level.
    seed, threads
        The same seed gives the same numbers, on any number of threads.

    References
    ----------
    Smucker et al. 2007; Urbano et al. 2019; Parapar et al. 2020; Ihemelandu & Ekstrand 2021.
    """
    both = paired(scores)
    check_two_systems(both.systems)
    label = both.label(metric)
    nulls = [null] if isinstance(null, str) else list(dict.fromkeys(null))
    if not nulls:
        raise SettingError(f"no null is named: one or several of {', '.join(NULLS)}")
    for name in nulls:
        choose("null", name, NULLS)
    check_share("alpha", alpha)
    count = as_count("simulations", simulations)
    as_count("permutations", permutations)
    values = both.complete(label)
    if len(values) < 2:
        raise DataError(f"{label}: a test needs at least 2 users, there are {len(values)}")
    size = len(values) if users is None else as_count("users", users, least=2)
    named = _named_tests(tests, permutations, seed)
    steps = [(name, low) for name in nulls for low in range(0, count, _STEP)]
    counter = Steps(len(steps), progress)

    def simulate(step: tuple[str, int]) -> dict[str, F64]:
        name, low = step
        rng = np.random.default_rng(key_of(seed, "type one", low // _STEP))
        gaps = _null_gaps(values, min(_STEP, count - low), name, users, rng)
        p = {test: np.asarray(run(gaps.copy()), np.float64) for test, run in named.items()}
        counter.advance()
        return p

    parts = map_blocks(simulate, steps, threads, size=len(nulls) * count * size)
    p = {
        name: {
            test: np.concatenate(
                [part[test] for part, step in zip(parts, steps, strict=True) if step[0] == name]
            )
            for test in named
        }
        for name in nulls
    }
    return TypeOneError(label, size, p, alpha)


def _null_gaps(
    values: F64, count: int, null: str, users: int | None, rng: np.random.Generator
) -> F64:
    """Return users x simulations: differences between systems that are equal."""
    people, systems = values.shape
    size = people if users is None else users
    out = np.empty((size, count))
    for column in range(count):
        redrawn = users is not None or null == "centred"
        rows = rng.integers(people, size=size) if redrawn else np.arange(people)
        if null == "labels":
            first = rng.integers(systems, size=size)
            second = (first + rng.integers(1, systems, size=size)) % systems
            out[:, column] = values[rows, first] - values[rows, second]
            continue
        a, b = rng.choice(systems, 2, replace=False)
        if null == "signs":
            out[:, column] = (values[rows, a] - values[rows, b]) * rng.choice((-1.0, 1.0), size)
        else:
            out[:, column] = _centred(values[:, a] - values[:, b])[rows]
    return out


def _centred(gaps: F64) -> F64:
    """Return differences less their mean; what is left of rounding alone is 0."""
    out: F64 = gaps - math.fsum(gaps) / len(gaps)
    out[np.abs(out) < 1e-12 * np.abs(gaps).max(initial=0.0)] = 0.0
    return out


def _named_tests(
    tests: str | Sequence[str] | Mapping[str, Test], permutations: int, seed: int
) -> dict[str, Test]:
    if isinstance(tests, Mapping):
        if not tests:
            raise SettingError("no tests are named")
        return dict(tests)
    several = [tests] if isinstance(tests, str) else list(tests)
    if not several:
        raise SettingError("no tests are named")
    return {choose("test", name, TESTS): test_of(name, permutations, seed) for name in several}


def test_of(name: str, permutations: int, seed: int) -> Test:
    """Return a test of columns of differences against a column of zeros."""
    from unskew.stats import classic
    from unskew.stats.randomisation import Hypotheses, flip_signs
    from unskew.stats.samples import PairedSample, Pairs, sample

    def randomisation(given: PairedSample) -> F64:
        observed = np.abs(given.observed)
        one, other = given.pairs.one, given.pairs.other
        side = np.zeros(one.size, np.int8)
        tests = Hypotheses(one, other, side, observed - given.tolerance)
        counts = flip_signs(given.values, tests, permutations, seed=seed)
        return counts.p(counts.each, True)

    def run(gaps: F64) -> F64:
        columns = gaps.shape[1]
        matrix = np.column_stack([gaps, np.zeros(len(gaps))])
        pairs = Pairs(np.arange(columns), np.full(columns, columns))
        given = sample(matrix, pairs, threads=1)
        if name == "randomisation":
            return randomisation(given)
        tests = {"t": classic.t_test, "wilcoxon": classic.wilcoxon_test, "sign": classic.sign_test}
        return tests[name](given, 0)

    return run
