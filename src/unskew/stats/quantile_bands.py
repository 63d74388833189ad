"""Quantile curves of users' values, with bands that hold at all their points together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unskew.arrays import F64
from unskew.engine.rng import generator

POINTS = tuple(round(0.05 * step, 2) for step in range(1, 20))
"""The shares of users at which curves are worked out."""
_DRAWS = 10_000


@dataclass(frozen=True, eq=False)
class QuantileBand:
    """Quantiles at `POINTS` and both ends of their band; infinite where the data have no end."""

    value: F64
    low: F64
    high: F64


def quantile_band(values: F64, level: float = 0.95) -> QuantileBand:
    """Return the quantile curve with its simultaneous band.

    The quantile at p is the least value that at least a share p of users do not exceed. The ends
    are values of users: those at ranks n p -/+ c sqrt(n p (1 - p)), with c such that the numbers
    of users below all quantiles lie within them together with the given probability. That holds
    whatever the distribution (more often where values are tied); c is worked out from 10,000 draws
    of uniform samples of this size, the same in every call.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.quantile_bands import quantile_band
    >>> band = quantile_band(np.arange(1.0, 101.0))
    >>> [float(end[9]) for end in (band.low, band.value, band.high)]
    [36.0, 50.0, 65.0]
    """
    x = np.sort(values)
    n = x.size
    p = np.array(POINTS)
    middle, half = n * p, critical_width(n, level) * np.sqrt(n * p * (1 - p))
    at = np.ceil(middle - 1e-9).astype(np.int64)
    low = np.ceil(middle - half - 1e-9).astype(np.int64)
    high = np.floor(middle + half + 1e-9).astype(np.int64) + 1
    ends = np.concatenate([[-np.inf], x, [np.inf]])
    return QuantileBand(
        ends[np.clip(at, 1, n)], ends[np.clip(low, 0, n)], ends[np.clip(high, 1, n + 1)]
    )


@lru_cache(maxsize=256)
def critical_width(n: int, level: float) -> float:
    """Return c: the level's quantile of the largest standardised deviation of counts."""
    p = np.array(POINTS)
    cells = np.diff(np.concatenate([[0.0], p, [1.0]]))
    counts = generator(0, "quantile bands", n).multinomial(n, cells, _DRAWS)[:, :-1].cumsum(axis=1)
    away = np.abs(counts - n * p) / np.sqrt(n * p * (1 - p))
    return float(np.quantile(away.max(axis=1), level, method="higher"))
