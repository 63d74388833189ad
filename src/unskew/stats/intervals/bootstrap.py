"""Ends of intervals from draws: percentiles, and bias-corrected and accelerated ones."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64


def percentile_interval(draws: F64, level: float) -> tuple[F64, F64]:
    """Return percentiles over the first axis of those draws that are defined; NaN where none is."""
    flat = draws.reshape(draws.shape[0], math.prod(draws.shape[1:]))
    limits = np.full((2, flat.shape[1]), np.nan)
    is_known = ~np.isnan(flat).all(axis=0)
    if draws.shape[0] and is_known.any():
        shares = ((1 - level) / 2, (1 + level) / 2)
        limits[:, is_known] = np.nanquantile(flat[:, is_known], shares, axis=0)
    low, high = limits.reshape(2, *draws.shape[1:])
    return low, high


def finite_percentiles(draws: F64, level: float) -> tuple[float, float]:
    """Return the percentiles of those draws that are finite, of one estimate; NaN without any."""
    finite = draws[np.isfinite(draws)]
    if not finite.size:
        return math.nan, math.nan
    low, high = np.percentile(finite, (50 * (1 - level), 50 * (1 + level)))
    return float(low), float(high)


def bca_ends(draws: F64, below: float, acceleration: float, level: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated ends of an interval (Efron 1987).

    Parameters
    ----------
    draws
        Of the estimate, ascending.
    below
        The share of draws below the estimate, those equal to it counting half.
    acceleration
        The jackknife's; of a sum of values d it is sum (d - m)³ / (6 (sum (d - m)²)^1.5).
    level
        Of the interval.
    """
    normal, edge = NormalDist(), 0.5 / draws.size
    bias = normal.inv_cdf(min(max(below, edge), 1 - edge))
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + normal.inv_cdf(tail)
        share = normal.cdf(bias + shifted / (1 - acceleration * shifted))
        ends.append(float(np.quantile(draws, share)))
    return ends[0], ends[1]
