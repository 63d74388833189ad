"""`bounds_of`: a mean over users, or over groups of users, with one-sided bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64
from unskew.stats.clusters import variance_of
from unskew.stats.intervals.skewed import with_skewness, without_skewness
from unskew.stats.special import student_t_quantile, student_t_sf

POWER = 0.8
"""The power of the smallest difference that a test is said to detect."""


@dataclass(frozen=True)
class MarginBounds:
    """A mean over users, with a lower and an upper bound, each one-sided at level alpha.

    Both together are an interval of confidence 1 - 2 alpha. Of two bounds, Student's t and Hall's
    (1992), which corrects t for skewness, the more cautious one is taken: a metric is 0 for most
    users, so that differences are skewed and t alone is wrong too often on one side.
    """

    value: float
    se: float
    low: float
    high: float
    skewness: float
    users: int
    alpha: float
    p_below: float
    """The p-value of `the mean is at least 0` against `it is below 0`."""

    @property
    def detectable(self) -> float:
        """The smallest true mean above 0 that the test finds with a power of 80 %."""
        if self.users < 2:
            return math.inf
        degrees = self.users - 1
        quantiles = student_t_quantile(1 - self.alpha, degrees) + student_t_quantile(POWER, degrees)
        return quantiles * self.se


def by_group(values: F64, groups: I64 | None) -> F64:
    """Return a value per group of users with the mean of the users' values.

    What a user adds to the mean is added up over the group: the variance over groups is then the
    cluster-robust one of the mean over users. Without groups every user stands alone.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.gating.bounds import by_group
    >>> by_group(np.array([1.0, 1.0, 1.0, 5.0]), np.array([0, 0, 0, 1])).tolist()
    [0.5, 3.5]
    """
    if groups is None or not values.size:
        return values
    mean = float(values.mean())
    is_present = np.bincount(groups) > 0
    sums = np.bincount(groups, values - mean)[is_present].astype(np.float64)
    of_group: F64 = mean + sums * (sums.size / values.size)
    return of_group


def bounds_of(values: F64, alpha: float, groups: I64 | None = None) -> MarginBounds:
    """Return the mean of a value per user, with its bounds.

    Parameters
    ----------
    values
        A value per user.
    alpha
        The one-sided level of each bound.
    groups
        The group of each user, where users of one group are not independent.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.gating.bounds import bounds_of
    >>> bounds = bounds_of(np.array([0.0, 1.0] * 50), 0.05)
    >>> round(bounds.low, 3), bounds.value, round(bounds.high, 3)
    (0.417, 0.5, 0.583)
    """
    values = by_group(values, groups)
    n = int(values.size)
    if n < 2:
        mean = float(values[0]) if n else math.nan
        return MarginBounds(mean, math.nan, -math.inf, math.inf, 0.0, n, alpha, 1.0)
    mean = math.fsum(values.tolist()) / n if n <= _EXACT else float(values.mean())
    deviation = values - mean
    square = float(np.dot(deviation, deviation))
    scale = float(np.abs(values).max())
    if square <= n * (1e-12 * scale) ** 2:  # the same for every user, but for rounding
        return MarginBounds(mean, 0.0, mean, mean, 0.0, n, alpha, 0.0 if mean < 0 else 1.0)
    variance = square / n
    skewness = float(np.dot(deviation * deviation, deviation)) / n / variance**1.5
    se = math.sqrt(variance_of(deviation / n, n, form="product"))
    t = student_t_quantile(1 - alpha, n - 1)
    of_mean = np.array(skewness / math.sqrt(n))
    upper, lower = with_skewness(np.array([t, -t]), of_mean).tolist()
    low, high = mean - se * max(t, upper), mean - se * min(-t, lower)
    t = mean / se  # the larger p-value of t and of Hall's transformed t
    transformed = float(without_skewness(np.array(t), of_mean))
    p_below = float(student_t_sf(-max(t, transformed), n - 1))
    return MarginBounds(mean, se, low, high, skewness, n, alpha, p_below)


_EXACT = 1 << 12
"""Up to so many values, sums are exactly rounded; above, numpy's pairwise sum."""
