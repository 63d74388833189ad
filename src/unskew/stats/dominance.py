"""Stochastic dominance between two systems on the same users, and where their curves cross.

A system dominates another to first order where, at every value, a larger share of users lies above
it; to second order where, at every value, the mean shortfall of users below it is smaller. Each
value is tested alone, and dominance is what all of these tests show (Kaur, Prakasa Rao and Singh
1994; Davidson and Duclos 2013): its p is the largest of theirs, and needs no correction for their
number. To first order the test is McNemar's exact one, on users who lie above with one system
only; to second order Student's t of the users' differences in shortfall, with and without skewness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64
from unskew.stats.distributions import binomial_half_cdf, student_t_sf
from unskew.stats.inequality import others
from unskew.stats.quantile_bands import POINTS
from unskew.stats.skewed_means import group_means, of_means, without_skewness

LEAST_OTHERS = 5
"""Users whose shortfalls differ between the systems: with fewer, second order is not tested."""


@dataclass(frozen=True, eq=False)
class Dominance:
    """What is known of one system against another; greater values are better."""

    thresholds: F64
    """The values that are tested."""
    first: float
    """p of dominance to first order."""
    second: float
    """p of dominance to second order; 1 where it cannot be tested."""
    above: F64
    """Of each threshold: one-sided p that more users lie above it."""


def thresholds_of(one: F64, other: F64) -> F64:
    """Return the values at which two systems are compared: quantiles of the values of both.

    Without the largest value, which nobody lies above.
    """
    both = np.sort(np.concatenate([one, other]))
    at = np.ceil(np.array(POINTS) * both.size).astype(np.int64) - 1
    values = np.unique(both[at])
    below: F64 = values[values < both[-1]]
    return below


def dominance(one: F64, other: F64) -> Dominance:
    """Test whether the first system dominates the second, on the same users.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.dominance import dominance
    >>> worse = np.linspace(0, 1, 200)
    >>> result = dominance(worse + 0.2, worse)
    >>> result.first < 1e-6, dominance(worse, worse + 0.2).first
    (True, 1.0)
    """
    values = thresholds_of(one, other)
    if not values.size:
        return Dominance(values, 1.0, 1.0, values)
    up = np.array([np.count_nonzero((one > x) & (other <= x)) for x in values])
    down = np.array([np.count_nonzero((other > x) & (one <= x)) for x in values])
    # P(at least `up` of the users who lie above with one system only).
    above = np.where(up + down > 0, binomial_half_cdf(down, up + down), 1.0)
    # Nobody falls short of the least value; at the largest the mean shortfall is it less the mean.
    least, most = (function([one, other]) for function in (np.min, np.max))
    top = np.append(values[values > least], most)
    second = max(_shortfall_p(one, other, float(x)) for x in top)
    return Dominance(values, float(above.max()), second, above)


def _shortfall_p(one: F64, other: F64, x: float) -> float:
    """Return the one-sided p that the mean shortfall below x is smaller with the first system."""
    gain = np.maximum(x - other, 0.0) - np.maximum(x - one, 0.0)
    if others(gain) < LEAST_OTHERS:
        return 1.0
    of = of_means(group_means(gain[:, None], np.zeros(gain.size, np.int64), 1).pick((0, 0)))
    t = of.value / of.error
    return float(student_t_sf(np.minimum(t, without_skewness(t, of.skewness)), of.df))
