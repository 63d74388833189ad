"""p-values of all pairs of systems, and their correction for the number of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.checks import as_count, choose
from unskew.engine.progress import Progress
from unskew.engine.threads import resolve
from unskew.errors import SettingError
from unskew.report.columns import Method
from unskew.stats.corrections import CORRECTIONS, IN_WORDS, correct
from unskew.stats.intervals.means import student_ends
from unskew.stats.intervals.skewed import intervals
from unskew.stats.pairing import PairedSample
from unskew.stats.resampling import Resampling, bca_intervals, shifted_p, studentised_p
from unskew.stats.tests import classic
from unskew.stats.tests.randomisation import (
    Counts,
    Hypotheses,
    flip_signs,
    shuffled_ranges,
    step_down,
)

TESTS = {
    "randomisation": "randomisation test (sign flips per user)",
    "t": "paired t test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign": "sign test",
    "bootstrap": "paired bootstrap test",
    "bootstrap-t": "paired bootstrap test of t",
}
"""The tests, in words."""
ALTERNATIVES = ("two-sided", "greater", "less", "better")
FAMILIES = ("metric", "all")
INTERVALS = {"t": "t", "bca": "BCa bootstrap"}
BY_PERMUTATION = ("maxT", "tukey")
"""Corrections that need the permutations themselves, and so the randomisation test."""


@dataclass(frozen=True)
class TestSettings:
    """The settings of `compare`."""

    test: str
    alternative: str
    permutations: int
    plus_one: bool
    correction: str | None
    family: str
    level: float
    interval: str
    resamples: int
    rope: float | None
    seed: int
    threads: int | None
    progress: Progress | None

    def check(self) -> None:
        """Raise an error for unknown settings, and for settings that exclude each other."""
        choose("test", self.test, TESTS)
        choose("alternative", self.alternative, ALTERNATIVES)
        choose("family", self.family, FAMILIES)
        choose("interval", self.interval, INTERVALS)
        if self.correction is not None:
            choose("correction", self.correction, (*CORRECTIONS, *BY_PERMUTATION))
        if self.correction in BY_PERMUTATION and self.test != "randomisation":
            raise SettingError(
                f"correction={self.correction!r} needs permutations: it goes with "
                f"test='randomisation', not with test={self.test!r}"
            )
        if self.correction == "tukey" and self.alternative != "two-sided":
            raise SettingError("correction='tukey' is two-sided: it tests the range of all systems")
        as_count("permutations", self.permutations)
        as_count("resamples", self.resamples)
        if not 0 < self.level < 1:
            raise SettingError(f"level must be between 0 and 1, got {self.level}")
        if self.rope is not None and not (math.isfinite(self.rope) and self.rope >= 0):
            raise SettingError(f"rope must be a number of at least 0, got {self.rope}")
        resolve(self.threads)

    @property
    def alpha(self) -> float:
        """The level: a corrected p-value at or below it is significant."""
        return round(1 - self.level, 12)

    def card(self) -> dict[str, Any]:
        """Return what was chosen."""
        names = ("test", "alternative", "correction", "family", "level", "interval", "rope")
        return {name: getattr(self, name) for name in (*names, "permutations", "alpha", "seed")}

    def method(self, count: PermutationCount, *, over: str, together: str = "") -> Method:
        """Return how differences are tested, in words.

        Parameters
        ----------
        count
            Of the permutations.
        over
            How many p-values are corrected together.
        together
            How intervals hold at once; empty: each of them alone.
        """
        test = TESTS[self.test]
        if count.enumerated:
            test += f", all {count.permutations:,} sign patterns"
        elif count.permutations:
            what = "resamples" if self.test.startswith("bootstrap") else "permutations"
            # Of several groups small ones have fewer: all there are.
            bound = "at most " if together and self.test == "randomisation" else ""
            test += f", {bound}{count.permutations:,} {what}"
        if self.alternative != "two-sided":
            test += f", one-sided: {self.alternative}"
        return Method(
            estimand="the mean difference a − b",
            interval=INTERVALS[self.interval],
            level=self.level,
            together=together,
            test=test,
            correction=self.correction and f"{IN_WORDS[self.correction]} over {over}",
            draws=count.permutations,
            seed=self.seed,
        )

    def side(self, better: str) -> int:
        """Return 0 for two-sided, 1 for greater, -1 for less."""
        if self.alternative == "better":
            return -1 if better == "lower" else 1
        return {"two-sided": 0, "greater": 1, "less": -1}[self.alternative]


@dataclass(frozen=True)
class PermutationCount:
    """How many permutations there were, and whether they were all there are."""

    permutations: int
    enumerated: bool


def p_values(
    samples: list[PairedSample], sides: list[int], settings: TestSettings
) -> tuple[F64, F64, PermutationCount]:
    """Return p and corrected p, metrics x pairs, and how many permutations there were.

    `sides` has 0, 1 or -1 for each metric: two-sided, greater or less.
    """
    if settings.test == "randomisation":
        return _randomised(samples, sides, settings)
    by_bootstrap = settings.test.startswith("bootstrap")
    count = PermutationCount(settings.permutations if by_bootstrap else 0, False)
    draws = Resampling(settings.permutations, settings.seed, settings.threads, settings.progress)

    def p_of_sample(of: PairedSample, side: int) -> F64:
        if settings.test == "t":
            return classic.t_test(of, side)
        if settings.test == "sign":
            return classic.sign_test(of, side)
        if settings.test == "wilcoxon":
            return classic.wilcoxon_test(of, side, settings.threads)
        test = shifted_p if settings.test == "bootstrap" else studentised_p
        return test(of, side, draws, settings.plus_one)

    p = np.stack([p_of_sample(of, side) for of, side in zip(samples, sides, strict=True)])
    return p, _corrected(p, settings), count


def _corrected(p: F64, settings: TestSettings) -> F64:
    if settings.correction is None or settings.family == "all":
        return p.copy()  # of all metrics: corrected when all are there
    return np.stack([correct(row, settings.correction) for row in p])


def _randomised(
    samples: list[PairedSample], sides: list[int], settings: TestSettings
) -> tuple[F64, F64, PermutationCount]:
    systems, pairs = samples[0].values.shape[1], samples[0].pairs
    shape = (len(samples), len(pairs))
    values = samples[0].values
    if len(samples) > 1:
        values = np.concatenate([sample.values for sample in samples], axis=1)
    side = np.repeat(np.array(sides, np.int8), len(pairs))
    observed = np.concatenate([sample.observed for sample in samples])
    statistic = np.where(side == 0, np.abs(observed), side * observed)
    tolerance = np.repeat([sample.tolerance for sample in samples], len(pairs))
    shift = np.repeat(np.arange(len(samples)) * systems, len(pairs))
    families: tuple[I64, ...] = ()
    scale = None
    if settings.correction == "maxT":
        scale = _standard(samples)
        families = _families(statistic * scale, shape, settings.family)
    tests = Hypotheses(
        np.tile(pairs.first, len(samples)) + shift,
        np.tile(pairs.second, len(samples)) + shift,
        side,
        statistic - tolerance,
        families,
        scale,
    )
    counts = flip_signs(
        values,
        tests,
        settings.permutations,
        systems=systems,
        informative=_informative(samples),
        seed=settings.seed,
        threads=settings.threads,
        progress=settings.progress,
    )
    p = counts.p(counts.each, settings.plus_one)
    permutation_count = PermutationCount(counts.permutations, counts.enumerated)
    if settings.correction == "maxT":
        adjusted = step_down(counts.p(counts.largest, settings.plus_one), families).reshape(shape)
    elif settings.correction == "tukey":
        adjusted = _tukey(values, samples, statistic - tolerance, settings)
    else:
        adjusted = _corrected(p.reshape(shape), settings)
    return p.reshape(shape), adjusted, permutation_count


def _standard(samples: list[PairedSample]) -> F64:
    """Return 1 / sqrt(sum d²) of each hypothesis, 0 where no user differs.

    The sum of squares does not change with signs, and t is a monotone function of
    sum d / sqrt(sum d²): the largest of these is the largest t.
    """
    parts = []
    for sample in samples:
        total = sample.squares / sample.unit**2 + sample.observed**2 / sample.users
        parts.append(np.where(total > 0, 1 / np.sqrt(np.where(total > 0, total, 1.0)), 0.0))
    return np.concatenate(parts)


def _families(statistic: F64, shape: tuple[int, int], family: str) -> tuple[I64, ...]:
    """Return the hypotheses of each family, the most significant first."""
    numbers = np.arange(statistic.size, dtype=np.int64)
    parts = [numbers] if family == "all" else list(numbers.reshape(shape))
    return tuple(part[np.argsort(-statistic[part], kind="stable")] for part in parts)


def _informative(samples: list[PairedSample]) -> Mask | None:
    """Mark the users for whom systems differ; not looked at where there are clearly too many."""
    if samples[0].values.shape[0] > 100_000:
        return None
    differ = [(sample.values != sample.values[:, :1]).any(axis=1) for sample in samples]
    result: Mask = np.logical_or.reduce(differ)
    return result


def _tukey(values: F64, samples: list[PairedSample], threshold: F64, settings: TestSettings) -> F64:
    """Return the share of shuffles whose range over all systems reaches each difference."""
    systems = samples[0].values.shape[1]
    shape = (len(samples), len(samples[0].pairs))
    ranges = shuffled_ranges(
        values,
        systems,
        settings.permutations,
        seed=settings.seed,
        threads=settings.threads,
        progress=settings.progress,
    )
    limits = threshold.reshape(shape)
    if settings.family == "all":
        # Of all metrics: the largest range, each metric's in its own standard deviations.
        spread = np.array([1 / (ranges[:, row].std() or 1.0) for row in range(len(samples))])
        ranges = (ranges * spread).max(axis=1, keepdims=True).repeat(len(samples), axis=1)
        limits = limits * spread[:, None]
    ordered = np.sort(ranges, axis=0)
    counts = np.stack(
        [
            settings.permutations - np.searchsorted(ordered[:, row], limits[row], "left")
            for row in range(len(samples))
        ]
    )
    return Counts(counts, counts, settings.permutations, False).p(counts, settings.plus_one)


def difference_interval(paired_sample: PairedSample, settings: TestSettings) -> tuple[F64, F64]:
    """Return both ends of each pair's interval, at the settings' level; NaN with one user."""
    if paired_sample.users < 2:
        nothing = np.full(len(paired_sample.pairs), np.nan)
        return nothing, nothing.copy()
    if settings.interval == "bca":
        draws = Resampling(settings.resamples, settings.seed, settings.threads)
        return bca_intervals(paired_sample, settings.level, draws)
    return mean_ends(paired_sample, settings.level)


def mean_ends(paired_sample: PairedSample, level: float) -> tuple[F64, F64]:
    """Return both ends of each pair's t interval; wider where differences are strongly skewed."""
    error, df = paired_sample.standard_error, paired_sample.users - 1
    low, high = student_ends(paired_sample.difference, error, df, level)
    is_skewed, of = classic.skewed_differences(paired_sample)
    if is_skewed.any():
        wide = intervals(of, level)
        low, high = np.where(is_skewed, wide[0], low), np.where(is_skewed, wide[1], high)
    return low, high
