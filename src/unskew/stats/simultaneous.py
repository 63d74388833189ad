"""Intervals and p-values that hold for a family at once, from draws of its largest |t|.

What each user (or block of users) moves each estimate by is drawn once for the whole family: the
Gaussian multiplier bootstrap (Chernozhukov, Chetverikov and Kato 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I64, Mask
from unskew.engine.rng import draw, generator
from unskew.engine.threads import one_blas_thread
from unskew.report.columns import DIFFERENCE, SE, Method
from unskew.stats.clusters import variance_of
from unskew.stats.influence import RETRAINED
from unskew.stats.special import p_of_counts, student_t_quantile, student_t_sf

LEAST_DRAWS = 5_000
"""Of the largest |t|."""
MOST_BLOCKS = 2_000
"""More users than this are drawn in random blocks, so that time and memory stay bounded."""
_DRAWS_AT_ONCE = 250
TAIL_DF, TAIL_SPLITS = 18.0, 1.2
"""The degrees of freedom of intervals over splits are TAIL_DF (1 - TAIL_SPLITS / splits)."""
_NONE = 1e-12
LEAD = (replace(DIFFERENCE[0], label="lead of a"), SE, *DIFFERENCE[1:])
"""By how much the first system of a pair is better, whichever direction the metric has."""


def largest_t(influences: Sequence[F64], draws: int, seed: int) -> F64:
    """Return draws of the largest |t| of the family, sorted: what equal systems would give.

    The Gaussian multiplier bootstrap (Chernozhukov, Chetverikov and Kato 2013): each user's
    influence times a normal draw that is the same in all contrasts. Rows are users, or blocks of
    users, in the same order in every design.
    """
    rows = np.concatenate(influences, axis=1)
    norm = np.sqrt((rows**2).sum(axis=0))
    rows = rows[:, norm > 0] / norm[norm > 0]
    largest = np.zeros(draws)
    rng = generator(seed, "contrasts")
    with one_blas_thread():
        for low in range(0, draws, _DRAWS_AT_ONCE):
            shape = (min(_DRAWS_AT_ONCE, draws - low), rows.shape[0])
            normals = rng.standard_normal(shape)
            if rows.shape[1]:
                largest[low : low + shape[0]] = np.abs(normals @ rows).max(axis=1)
    return np.sort(largest)


def all_together(
    method: Method,
    family: str,
    *,
    level: float,
    seed: int,
    draws: int = LEAST_DRAWS,
    **settings: str,
) -> Method:
    """Return a method whose intervals hold for a family at once.

    Parameters
    ----------
    method
        That of the question.
    family
        Over how many differences they hold: `3 pairs`.
    level, seed, draws
        Of the intervals, and of the largest |t|.
    settings
        Other fields of the method.

    Examples
    --------
    >>> from unskew.report.columns import Method
    >>> from unskew.stats.simultaneous import all_together
    >>> method = Method(estimand="differences", interval="t")
    >>> all_together(method, "3 differences", level=0.95, seed=0).lines()
    ['95% CI: t, by user; all together (largest |t| of 3 differences)']
    """
    together = f"largest |t| of {family}"
    return replace(method, level=level, together=together, draws=draws, seed=seed, **settings)


def user_blocks(users: int, seed: int) -> I64:
    """Return the block of each user: each its own one, or `MOST_BLOCKS` random ones."""
    if users <= MOST_BLOCKS:
        return np.arange(users, dtype=np.int64)
    blocks = draw(seed, "contrast blocks", np.arange(users)) % np.uint64(MOST_BLOCKS)
    return blocks.astype(np.int64)


def critical_value(largest: F64, level: float) -> float:
    """Return the t above which the adjusted p-value is at most 1 - `level`, of a normal tail."""
    single = NormalDist().inv_cdf((1 + level) / 2)
    above = math.floor(round(1 - level, 12) * (largest.size + 1) + 1e-9) - 1
    if above < 0:
        return math.inf
    return max(float(largest[largest.size - 1 - above]), single)


@dataclass(frozen=True)
class Tail:
    """How quantiles of the largest |t| become those of estimated errors, and back.

    Nothing changes up to the quantile of a single interval; beyond it Student's tail stands for
    the normal one.
    """

    df: float
    """Infinite: the normal tail."""
    level: float
    """Of single intervals."""

    @classmethod
    def of(cls, splits: int, target: str, level: float) -> Tail:
        """Return the tail for a number of distinct splits."""
        df = TAIL_DF * (1 - TAIL_SPLITS / max(splits, 2)) if target == RETRAINED else math.inf
        return cls(df, level)

    @property
    def _single(self) -> float:
        return NormalDist().inv_cdf((1 + self.level) / 2)

    @property
    def _scale(self) -> float:
        return self._single / student_t_quantile((1 + self.level) / 2, self.df)

    def widened(self, t: float) -> float:
        """Return the t of estimated errors for the t of a normal tail."""
        if math.isinf(self.df) or t <= self._single:
            return t
        return max(student_t_quantile(NormalDist().cdf(t), self.df) * self._scale, t)

    def narrowed(self, t: F64) -> F64:
        """Return |t| of a normal tail for t of estimated errors."""
        size = np.abs(t)
        if math.isinf(self.df):
            return size
        beyond = student_t_sf(size / self._scale, self.df)
        normal = [-NormalDist().inv_cdf(p) if p > 0 else math.inf for p in beyond.tolist()]
        return np.where(size <= self._single, size, np.minimum(normal, size))


def adjusted_p(t: F64, largest: F64, tail: Tail) -> tuple[F64, F64]:
    """Return the single and the adjusted two-sided p-values of t."""
    single = np.array([2 * NormalDist().cdf(-abs(statistic)) for statistic in t.tolist()])
    reached = largest.size - np.searchsorted(largest, tail.narrowed(t), side="left")
    adjusted = p_of_counts(reached, largest.size)
    return single, np.minimum(np.maximum(adjusted, single), 1.0)


@dataclass(frozen=True, eq=False)
class Differences:
    """The difference of each pair in each window: windows x pairs, positive is better for one."""

    users: I64
    """Of each window."""
    difference: F64
    se: F64
    low: F64
    """The ends of the intervals, all holding at once; NaN where too few users differ."""
    high: F64

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return what rows hold, contrast by contrast and in each window by window."""
        columns: dict[str, NDArray[Any]] = {
            "value": self.difference,
            "se": self.se,
            "low": self.low,
            "high": self.high,
            "significant": self.ahead | self.behind,
        }
        return {name: numbers.T.ravel() for name, numbers in columns.items()}

    @property
    def ahead(self) -> Mask:
        """Where the first system of a pair is shown to be ahead."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.low > 0)

    @property
    def behind(self) -> Mask:
        """Where it is shown to be behind."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.high < 0)


def simultaneous(
    columns: Sequence[F64],
    codes: Sequence[I64],
    users: int,
    *,
    level: float,
    draws: int = LEAST_DRAWS,
    seed: int = 0,
) -> Differences:
    """Return means of several groups of users with intervals that hold at once.

    Parameters
    ----------
    columns
        Of each group: a row per user, a column per contrast.
    codes
        Of each group: the numbers of its users, the same numbers in all groups.
    users
        How many users there are in all.
    level
        Of all intervals together.
    draws, seed
        Of the largest |t|.
    """
    sizes = np.array([column.shape[0] for column in columns])
    blocks = user_blocks(users, seed)
    shape = (len(columns), columns[0].shape[1])
    mean, se, differing = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    influences = []
    for index, (values, code) in enumerate(zip(columns, codes, strict=True)):
        influence = np.zeros((int(blocks.max(initial=-1)) + 1, shape[1]))
        if sizes[index]:
            # Exactly rounded: no order of rows changes them.
            mean[index] = [math.fsum(column) / len(column) for column in values.T.tolist()]
            differing[index] = np.count_nonzero(values, axis=0)
        if sizes[index] > 1:
            residual = (values - mean[index]) / sizes[index]
            np.add.at(influence, blocks[code], residual)
            se[index] = np.sqrt(variance_of(residual, sizes[index]))
        influences.append(influence)
    se[se <= _NONE * np.abs(np.where(np.isnan(mean), 0.0, mean))] = 0.0
    largest = largest_t(influences, draws, seed)
    normal = max(critical_value(largest, level), NormalDist().inv_cdf((1 + level) / 2))
    # Student's quantile of the same probability.
    probability = NormalDist().cdf(normal)
    quantiles = [
        student_t_quantile(probability, n - 1) if n > 1 else math.nan for n in sizes.tolist()
    ]
    critical = np.array(quantiles)
    minimum = least_differing(shape[0] * shape[1], level)
    half = np.where(differing >= minimum, critical[:, None] * se, np.nan)
    return Differences(sizes, mean + 0.0, se, mean - half, mean + half)


def least_differing(family: int, level: float) -> int:
    """Return how many users must differ before signs alone could show a difference.

    With k users whose values differ, the least two-sided p of any test by their signs is 2^(1 - k):
    with fewer users than it takes for p <= (1 - level) / family, an interval would rest on the
    shape of a distribution that nobody has seen.

    Examples
    --------
    >>> from unskew.stats.simultaneous import least_differing
    >>> least_differing(1, 0.95), least_differing(100, 0.95)
    (6, 12)
    """
    return 1 + math.ceil(math.log2(max(family, 1) / (1 - level)) - 1e-9)
