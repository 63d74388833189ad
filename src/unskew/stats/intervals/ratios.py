"""Intervals of ratios over the same users: where the test of a skewed mean begins to reject.

Fieller's way: the ratios r at which the mean of top - r x bottom does not differ from 0, by
Student's t without skewness (Hall; `stats/intervals/skewed.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from unskew.arrays import F64
from unskew.stats.intervals.skewed import edge, mean_of, of_means, without_skewness
from unskew.stats.special import student_t_quantile

Limits = tuple[float, float]
NONE: Limits = (math.nan, math.nan)
_HALVINGS = 45
_LEAST_RATIO = 1e-9


def paired_ratio_interval(top: F64, bottom: F64, level: float) -> Limits:
    """Return the interval of a ratio of two means over the same users, both at least 0.

    NaN where the mean of `bottom` does not differ from 0: the ratio is not identified.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.intervals.ratios import paired_ratio_interval
    >>> users = np.arange(60)
    >>> bottom = 2 + np.sin(users)
    >>> low, high = paired_ratio_interval(bottom * (0.5 + 0.1 * np.cos(users)), bottom, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.482, 0.52)
    """
    limit = student_t_quantile((1 + level) / 2, top.size - 1)
    if _is_zero(bottom, limit):
        return NONE
    estimate = float(top.mean() / bottom.mean())
    far = 2 * max(estimate, _LEAST_RATIO)
    for _ in range(_HALVINGS):
        if not _is_zero(top - far * bottom, limit):
            break
        far *= 2
    return _inverted(lambda ratio: top - ratio * bottom, estimate, (0.0, far), limit)


def rate_contrast_interval(tops: F64, bottoms: F64, level: float) -> Limits:
    """Return the interval of (a - b) / (a + b), a and b ratios of sums over the same users.

    Parameters
    ----------
    tops, bottoms
        Users x two: what is added up for a and for b.
    level
        Of the interval, which lies within [-1, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.intervals.ratios import rate_contrast_interval
    >>> tops = np.stack([np.arange(80) % 3, np.arange(80) % 2], axis=1).astype(float)
    >>> low, high = rate_contrast_interval(tops, np.full((80, 2), 3.0), 0.95)
    >>> round(low, 2), round(high, 2)
    (0.2, 0.46)
    """
    a, b = (tops.sum(axis=0) / bottoms.sum(axis=0)).tolist()
    limit = student_t_quantile((1 + level) / 2, len(tops) - 1)
    limits = -1.0, 1.0
    return _inverted(
        lambda contrast: contrast_values(tops, bottoms, contrast), (a - b) / (a + b), limits, limit
    )


def contrast_values(tops: F64, bottoms: F64, contrast: float) -> F64:
    """Return per-user values whose mean is 0 where (a - b) / (a + b) is `contrast`; linearised."""
    users = len(tops)
    rates = tops.sum(axis=0) / bottoms.sum(axis=0)
    pseudo = rates + users * (tops - rates * bottoms) / bottoms.sum(axis=0)
    values: F64 = (1 - contrast) * pseudo[:, 0] - (1 + contrast) * pseudo[:, 1]
    return values


def _is_zero(values: F64, limit: float) -> bool:
    """Tell whether the mean does not differ from 0: t without skewness, against its quantile."""
    if np.ptp(values) == 0:
        return bool(values[0] == 0)
    mean = of_means(mean_of(values))
    return bool(abs(without_skewness(mean.value / mean.error, mean.skewness)) <= limit)


def _inverted(
    values_of: Callable[[float], F64], estimate: float, limits: Limits, limit: float
) -> Limits:
    """Return where the test begins to reject, from the estimate down and up to the limits."""

    def is_inside(value: float) -> bool:
        return _is_zero(values_of(value), limit)

    low, high = (
        end if is_inside(end) else edge(is_inside, estimate, end, _HALVINGS, digits=0.0)
        for end in limits
    )
    return low, high
