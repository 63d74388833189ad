"""How unequal values are: Gini and Atkinson across users and across groups.

Across users both have an interval: the jackknife takes out most of the bias of the plug-ins and
gives the error, on the logit scale, where the ends stay between 0 and 1. Across groups the plug-ins
are above 0 even where all groups are equal, and no interval of theirs covers there: they are shown
beside what shuffled groups give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64
from unskew.stats.intervals.means import jackknife_error, student_ends

LEAST_USERS = 50
"""With fewer users Gini and Atkinson have no interval."""
LEAST_OTHERS = 10
"""With fewer users whose value is not the most common one neither."""


@dataclass(frozen=True)
class Inequality:
    """An index with its interval; NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


def others(values: F64) -> int:
    """Return how many values are not the most common one."""
    if not values.size:
        return 0
    return int(values.size - np.unique(values, return_counts=True)[1].max())


def gini(values: F64, level: float = 0.95) -> Inequality:
    """Return the Gini index across users: E|X - X'| / (2 E X), without the bias of the plug-in.

    0: all have the same; 1: one has everything. NaN where all values are 0 or one is below 0.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.inequality import gini
    >>> gini(np.array([1.0, 2.0, 3.0])).value
    0.3333333333333333
    """
    n = values.size
    total = float(values.sum())
    if n < 2 or total <= 0 or float(values.min()) < 0:
        return Inequality(math.nan)
    x = np.sort(values)
    # The sum of |x - x'| over all x', of each x.
    deviations = (2 * np.arange(1, n + 1) - n) * x - 2 * np.cumsum(x) + total
    pairs = max(float(deviations.sum()) / 2, 0.0)
    value = pairs / ((n - 1) * total)
    if not _has_interval(values):
        return Inequality(value)
    with np.errstate(invalid="ignore", divide="ignore"):
        without = (pairs - deviations) / ((n - 2) * (total - x))
    return _jackknife(value, without, level)


def atkinson(values: F64, epsilon: float = 0.5, level: float = 0.95) -> Inequality:
    """Return Atkinson's index across users: 1 - (E X^(1 - e))^(1 / (1 - e)) / E X, 0 < e < 1.

    The share of the mean that could be given up if all had the same. NaN as for `gini`.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.inequality import atkinson
    >>> round(atkinson(np.array([1.0, 4.0])).value, 6)
    0.1
    """
    n = values.size
    if not n or float(values.sum()) <= 0 or float(values.min()) < 0:
        return Inequality(math.nan)
    power = values ** (1 - epsilon)

    def index(powers: F64, totals: F64, count: int) -> F64:
        with np.errstate(invalid="ignore", divide="ignore"):
            return 1 - (powers / count) ** (1 / (1 - epsilon)) / (totals / count)

    powers, total = power.sum(), values.sum()
    value = max(float(index(powers, total, n)), 0.0)
    if not _has_interval(values):
        return Inequality(value)
    return _jackknife(value, index(powers - power, total - values, n - 1), level)


def _has_interval(values: F64) -> bool:
    return values.size >= LEAST_USERS and others(values) >= LEAST_OTHERS


def _jackknife(estimate: float, without: F64, level: float) -> Inequality:
    """Return the index and its interval from the index without each user."""
    inside = 0 < estimate < 1 and bool(((without > 0) & (without < 1)).all())
    if not inside:
        return Inequality(estimate)
    n = without.size
    logits = np.log(without / (1 - without))
    value = n * math.log(estimate / (1 - estimate)) - (n - 1) * float(logits.mean())
    ends = student_ends(value, jackknife_error(logits), n - 1, level)
    return Inequality(*(1 / (1 + math.exp(-logit)) for logit in (value, *ends)))


def group_gini(means: F64, sizes: F64) -> F64:
    """Return the Gini index of groups' means, each counted as often as it has users.

    Means may have more axes before that of the groups.
    """
    total = sizes.sum()
    weight = np.outer(sizes, sizes) / total**2
    distance = np.abs(means[..., :, None] - means[..., None, :])
    with np.errstate(invalid="ignore", divide="ignore"):
        result: F64 = (distance * weight).sum(axis=(-2, -1)) / (2 * (means @ (sizes / total)))
    return result


def group_atkinson(means: F64, sizes: F64, epsilon: float) -> F64:
    """Return Atkinson's index of groups' means, as `group_gini`."""
    share = sizes / sizes.sum()
    power = np.maximum(means, 0.0) ** (1 - epsilon) @ share
    with np.errstate(invalid="ignore", divide="ignore"):
        result: F64 = np.maximum(1 - power ** (1 / (1 - epsilon)) / (means @ share), 0.0)
    return result
