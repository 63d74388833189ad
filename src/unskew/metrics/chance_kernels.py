"""Kernels of metrics under a random order: expectations, list by list."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.compiled import kernel


@kernel
def first_liked(liked: F64, targets: F64, shown: F64, reciprocal: F64, hit: F64) -> None:
    """Write E[1 / rank of the first liked item] and P(any) within `shown` places of each list.

    With r liked of t targets in random order the first stands at place i with probability
    r / (t - i + 1) if none stood before.
    """
    for cut in range(shown.shape[0]):
        for row in range(liked.size):
            r, t = liked[row], targets[row]
            none, total = 1.0, 0.0
            if r > 0:
                for i in range(1, int(shown[cut, row]) + 1):
                    left = t - i + 1
                    total += none * (r / left) / i
                    none *= max(left - r, 0.0) / left
                    if none < 1e-20:
                        none = 0.0
                        break
            reciprocal[cut, row] = total
            hit[cut, row] = 1.0 - none


@kernel
def sum_lists(start: I64, weight: F64) -> F64:
    """Sum a weight per judgment over each list."""
    total = np.zeros(start.size - 1)
    for row in range(total.size):
        for j in range(start[row], start[row + 1]):
            total[row] += weight[j]
    return total
