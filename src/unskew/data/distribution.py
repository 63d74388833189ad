"""How far a distribution of ratings over users or items is from uniform."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64


def gini(amounts: F64 | I64) -> float:
    """Return the Gini index: 0 when all have the same, towards 1 when one has everything."""
    rising = np.sort(np.asarray(amounts, np.float64))
    total = rising.sum()
    if rising.size == 0 or total == 0:
        return float("nan")
    places = np.arange(1, rising.size + 1)
    return float(2 * (places @ rising) / (rising.size * total) - (rising.size + 1) / rising.size)


def divergence(amounts: F64 | I64) -> float:
    """Return the Kullback-Leibler divergence from uniform, in nats: 0 when all have the same."""
    total = np.sum(amounts)
    if total == 0:
        return float("nan")
    part = np.asarray(amounts, np.float64) / total
    there = part[part > 0]
    return max(float(np.sum(there * np.log(there * part.size))), 0.0)
