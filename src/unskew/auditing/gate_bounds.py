"""One-sided bounds of a mean over users: what every check of the gate decides by."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64
from unskew.stats.distributions import student_t_quantile, student_t_sf

POWER = 0.8
"""The power of the smallest difference that a test is said to detect."""


@dataclass(frozen=True)
class Bounds:
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
        free = self.users - 1
        both = student_t_quantile(1 - self.alpha, free) + student_t_quantile(POWER, free)
        return both * self.se


def bounds_of(values: F64, alpha: float) -> Bounds:
    """Return the mean of a value per user, with its bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.auditing.gate_bounds import bounds_of
    >>> bounds = bounds_of(np.array([0.0, 1.0] * 50), 0.05)
    >>> round(bounds.low, 3), bounds.value, round(bounds.high, 3)
    (0.417, 0.5, 0.583)
    """
    n = int(values.size)
    if n < 2:
        mean = float(values[0]) if n else math.nan
        return Bounds(mean, math.nan, -math.inf, math.inf, 0.0, n, alpha, 1.0)
    mean = math.fsum(values.tolist()) / n if n <= _EXACT else float(values.mean())
    rest = values - mean
    square = float(np.dot(rest, rest))
    scale = float(np.abs(values).max())
    if square <= n * (1e-12 * scale) ** 2:  # the same for every user, but for rounding
        return Bounds(mean, 0.0, mean, mean, 0.0, n, alpha, 0.0 if mean < 0 else 1.0)
    variance = square / n
    skewness = float(np.dot(rest * rest, rest)) / n / variance**1.5
    se = math.sqrt(square / (n - 1) / n)
    t = student_t_quantile(1 - alpha, n - 1)
    a = skewness / math.sqrt(n)
    low = mean - se * max(t, _turned_back(t, a))
    high = mean - se * min(-t, _turned_back(-t, a))
    return Bounds(mean, se, low, high, skewness, n, alpha, _p_below(mean / se, a, n - 1))


_EXACT = 1 << 12
"""Up to so many values, sums are exactly rounded; above, numpy's pairwise sum."""


def _p_below(t: float, a: float, free: int) -> float:
    """Return the larger p-value of t and of Hall's transformed t."""
    turned = t + a * t * t / 3 + a * a * t**3 / 27 + a / 6
    return float(student_t_sf(-max(t, turned), free))


def _turned_back(y: float, a: float) -> float:
    """Return the t whose transformed value (Hall 1992) is y, for skewness / sqrt(n) = a."""
    if abs(a) < 1e-9:
        return y
    return 3 / a * (float(np.cbrt(1 + a * (y - a / 6))) - 1)
