"""Intervals of means by Student's t, and Welch's degrees of freedom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from unskew.arrays import F64
from unskew.stats.special import half_widths, student_t_quantile

Interval = tuple[float | None, float | None, float | None]
"""A value and both ends of its interval; None where there is none."""


Numbers = TypeVar("Numbers", float, F64)


def student_ends(
    value: Numbers, se: Numbers, df: float | F64, level: float
) -> tuple[Numbers, Numbers]:
    """Return both ends of Student's interval of an estimate.

    Parameters
    ----------
    value
        The estimate, or several.
    se
        Its standard error.
    df
        Degrees of freedom, those of each estimate or of all; infinite: the normal distribution.
    level
        How often the interval holds the expectation.

    Examples
    --------
    >>> from unskew.stats.intervals.means import student_ends
    >>> [round(end, 3) for end in student_ends(1.0, 0.5, 10, 0.95)]
    [-0.114, 2.114]
    """
    quantile: Any = half_widths(np.atleast_1d(df), level)
    half = (quantile if isinstance(df, np.ndarray) else float(quantile[0])) * se
    return value - half, value + half


def mean_interval(
    values: Sequence[float], level: float = 0.95, first: int | None = None
) -> Interval:
    """Return the mean and its interval by Student's t; without one for a single value.

    Parameters
    ----------
    values
        In the order in which they were measured.
    level
        How often the interval holds the expectation, if values are normal.
    first
        Where the number of values was chosen by the spread of the first ones (`values_needed`):
        how many these were. The interval takes its spread from them alone, and so holds as often
        as it says (Stein, Annals of Mathematical Statistics 16, 1945).
    """
    if not values:
        return None, None, None
    n = len(values)
    mean = math.fsum(values) / n
    independent = values[: n if first is None else min(first, n)]
    if len(independent) == 1:
        return mean, None, None
    error = math.sqrt(_variance(independent) / n)
    return mean, *student_ends(mean, error, len(independent) - 1, level)


def values_needed(first: Sequence[float], half: float, level: float = 0.95) -> float:
    """Return how many values a mean needs for an interval of this half-width (Stein 1945).

    Parameters
    ----------
    first
        At least two values, whose spread decides; they count among those needed.
    half
        The half-width that is wanted.
    level
        Of the interval, as `mean_interval(values, level, len(first))` gives it.

    Examples
    --------
    >>> from unskew.stats.intervals.means import mean_interval, values_needed
    >>> values_needed([1.0, 2.0, 3.0], 1.5)
    9.0
    >>> values_needed([1.0, 2.0, 3.0], 10.0)
    3.0
    """
    if half <= 0:
        return math.inf if max(first) > min(first) else float(len(first))
    t = student_t_quantile((1 + level) / 2, len(first) - 1)
    return float(max(math.ceil(t**2 * _variance(first) / half**2), len(first)))


def _variance(values: Sequence[float]) -> float:
    n = len(values)
    mean = math.fsum(values) / n
    return math.fsum([(value - mean) ** 2 for value in values]) / (n - 1)


def standard_errors(values: F64, axis: int = 0) -> F64:
    """Return the standard errors of means along an axis, of at least two values each.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.intervals.means import standard_errors
    >>> standard_errors(np.array([[1.0, 2.0], [3.0, 6.0]])).tolist()
    [1.0, 2.0]
    """
    result: F64 = values.std(axis=axis, ddof=1) / math.sqrt(values.shape[axis])
    return result


def mean_intervals(values: F64, level: float, axis: int = 0) -> tuple[F64, F64, F64, F64]:
    """Return means along an axis, standard errors and Student's intervals; NaN for what is unknown.

    Parameters
    ----------
    values
        All of them are defined. With one value there is no standard error.
    level
        Of the intervals.
    axis
        Of the units.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.intervals.means import mean_intervals
    >>> mean, se, low, high = mean_intervals(np.array([[1.0, 2.0], [3.0, 4.0]]), 0.95)
    >>> mean.tolist(), se.tolist(), low.round(2).tolist()
    ([2.0, 3.0], [1.0, 1.0], [-10.71, -9.71])
    """
    n = values.shape[axis]
    nothing = np.full(values.shape[1 - axis], np.nan)
    mean = values.mean(axis=axis) if n else nothing
    if n < 2:
        return mean, nothing, nothing, nothing
    se = standard_errors(values, axis)
    return mean, se, *student_ends(mean, se, n - 1, level)


def jackknife_error(without: F64) -> float:
    """Return the jackknife's standard error of an estimate from what it is without each unit.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.intervals.means import jackknife_error
    >>> values = np.array([1.0, 2.0, 6.0])
    >>> error = jackknife_error((values.sum() - values) / 2)  # of the mean: the usual one
    >>> round(error, 6), round(float(values.std(ddof=1)) / 3**0.5, 6)
    (1.527525, 1.527525)
    """
    n = without.size
    return math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))


def welch_df(variances: F64, df: F64) -> F64:
    """Return the degrees of freedom of a sum of independent estimates, along the first axis.

    Parameters
    ----------
    variances, df
        Of each estimate: its variance and its own degrees of freedom.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        result: F64 = variances.sum(axis=0) ** 2 / (variances**2 / df).sum(axis=0)
    return result
