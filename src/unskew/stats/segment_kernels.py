"""Kernels of the interaction test: how much groups differ, as given and with users shuffled."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.compiled import kernel
from unskew.engine.rng_kernels import first, second

_32 = np.uint64(32)
LEAST_VARIANCE = 0.05
"""In parts of the pooled variance: a group's variance counts as at least this."""
_TINY = 1e-13
"""Below this part of the mean square, variance within groups is rounding."""


@kernel
def _welch(total: F64, square: F64, size: I64, users: int, weight: F64, out: F64) -> None:
    """Write Welch's F and its second degrees of freedom, from sums and sums of squares by group.

    `weight` is room for a number per group.
    """
    groups = size.size
    within, whole = 0.0, 0.0
    for g in range(groups):
        weight[g] = max(square[g] - total[g] * total[g] / size[g], 0.0)
        within += weight[g]
        whole += square[g]
    out[0], out[1] = 0.0, np.inf
    if whole == 0.0:
        return
    if within <= _TINY * whole:  # constant within groups, and not over all
        out[0] = np.inf
        return
    least = LEAST_VARIANCE * within / (users - groups)
    weights, middle = 0.0, 0.0
    for g in range(groups):
        weight[g] = size[g] / max(weight[g] / (size[g] - 1), least)
        weights += weight[g]
        middle += weight[g] * total[g] / size[g]
    middle /= weights
    spread, lost = 0.0, 0.0
    for g in range(groups):
        spread += weight[g] * (total[g] / size[g] - middle) ** 2
        lost += (1 - weight[g] / weights) ** 2 / (size[g] - 1)
    square_groups = groups * groups - 1
    out[0] = spread / (groups - 1) / (1 + 2 * (groups - 2) * lost / square_groups)
    out[1] = square_groups / (3 * lost)


@kernel
def welch_of_pairs(values: F64, code: I64, size: I64, out: F64) -> None:
    """Write a row per pair (column of `values`): F and its degrees of freedom.

    Users are rows, `code` is their group.
    """
    users, pairs = values.shape
    total, square = np.zeros((pairs, size.size)), np.zeros((pairs, size.size))
    weight = np.empty(size.size)
    for u in range(users):
        g = code[u]
        for p in range(pairs):
            d = values[u, p]
            total[p, g] += d
            square[p, g] += d * d
    for p in range(pairs):
        _welch(total[p], square[p], size, users, weight, out[p])


@kernel
def count_shuffled(
    key: np.uint64,
    start: int,
    stop: int,
    values: F64,
    code: I64,
    size: I64,
    limit: F64,
    counts: I64,
) -> None:
    """Count, for each pair, the shuffles of groups whose F reaches `limit`."""
    users, pairs = values.shape
    shuffled = np.empty(users, np.int64)
    out = np.empty((pairs, 2))
    for number in range(start, stop):
        state = first(key, number)
        shuffled[:] = code
        for left in range(users, 1, -1):  # Fisher and Yates
            chosen = np.int64(((second(state, left) >> _32) * np.uint64(left)) >> _32)
            shuffled[left - 1], shuffled[chosen] = shuffled[chosen], shuffled[left - 1]
        welch_of_pairs(values, shuffled, size, out)
        for p in range(pairs):
            counts[p] += out[p, 0] >= limit[p]
