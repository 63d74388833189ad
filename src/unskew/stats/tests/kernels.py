"""Kernels of the interaction test: how much groups differ, as given and with users shuffled."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, second

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
    residual, total_square = 0.0, 0.0
    for g in range(groups):
        weight[g] = max(square[g] - total[g] * total[g] / size[g], 0.0)
        residual += weight[g]
        total_square += square[g]
    out[0], out[1] = 0.0, np.inf
    if total_square == 0.0:
        return
    if residual <= _TINY * total_square:  # constant within groups, and not over all
        out[0] = np.inf
        return
    minimum = LEAST_VARIANCE * residual / (users - groups)
    weights, middle = 0.0, 0.0
    for g in range(groups):
        weight[g] = size[g] / max(weight[g] / (size[g] - 1), minimum)
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


@kernel
def shuffled_sums(key: np.uint64, start: int, values: F64, code: I64, out: F64) -> None:
    """Write sums of values, squares and cubes by group, a row per shuffle of users.

    Users are rows of `values`, columns systems; `out` is shuffles x 3 x systems x groups.
    """
    users, systems = values.shape
    shuffled = np.empty(users, np.int64)
    for row in range(out.shape[0]):
        state = first(key, start + row)
        shuffled[:] = code
        for left in range(users, 1, -1):  # Fisher and Yates
            chosen = np.int64(((second(state, left) >> _32) * np.uint64(left)) >> _32)
            shuffled[left - 1], shuffled[chosen] = shuffled[chosen], shuffled[left - 1]
        out[row] = 0.0
        for u in range(users):
            g = shuffled[u]
            for s in range(systems):
                v = values[u, s]
                out[row, 0, s, g] += v
                out[row, 1, s, g] += v * v
                out[row, 2, s, g] += v * v * v


_RANK = 1e-9
"""A pivot below this part of the largest one is rounding: the direction has no variance."""


@kernel
def _exchange(state: np.uint64, low: int, high: int, window: I64, out: I64) -> None:
    """Write the windows of cells low..high in random order (Fisher and Yates)."""
    size = high - low
    for position in range(size):
        out[position] = window[low + position]
    for left in range(size, 1, -1):
        # The number of the cell is the counter: the draw does not depend on other users.
        chosen = np.int64(((second(state, low + left) >> _32) * np.uint64(left)) >> _32)
        out[left - 1], out[chosen] = out[chosen], out[left - 1]


@kernel
def _wald(total: F64, square: F64, out: F64) -> None:
    """Write T' S⁺ T and the rank of S, by elimination with the largest pivot first.

    `total` and `square` are used up. T lies in the range of S, so that what is left when no pivot
    remains is rounding.
    """
    size = total.size
    out[0], out[1] = 0.0, 0.0
    largest = 0.0
    for w in range(size):
        largest = max(largest, square[w, w])
    minimum = _RANK * largest
    for step in range(size):
        best = step
        for w in range(step + 1, size):
            if square[w, w] > square[best, best]:
                best = w
        pivot = square[best, best]
        if not pivot > minimum:
            return
        if best != step:
            for w in range(size):
                square[step, w], square[best, w] = square[best, w], square[step, w]
            for w in range(size):
                square[w, step], square[w, best] = square[w, best], square[w, step]
            total[step], total[best] = total[best], total[step]
        out[0] += total[step] * total[step] / pivot
        out[1] += 1
        for w in range(step + 1, size):
            factor = square[w, step] / pivot
            total[w] -= factor * total[step]
            for v in range(step + 1, size):
                square[w, v] -= factor * square[step, v]


@kernel
def _add_user(low: int, high: int, windows: I64, centred: F64, total: F64, square: F64) -> None:
    """Add one user's deviations: sums per window and pair, and products of each two windows."""
    pairs = centred.shape[1]
    for cell in range(low, high):
        w = windows[cell - low]
        for p in range(pairs):
            total[w, p] += centred[cell, p]
        for earlier in range(low, cell + 1):
            v = windows[earlier - low]
            for p in range(pairs):
                square[w, v, p] += centred[cell, p] * centred[earlier, p]


@kernel
def _statistics(total: F64, square: F64, out: F64) -> None:
    """Write the statistic and the rank of each pair."""
    windows, pairs = total.shape
    sums, products = np.empty(windows), np.empty((windows, windows))
    for p in range(pairs):
        for w in range(windows):
            sums[w] = total[w, p]
            products[w, w] = square[w, w, p]
            for v in range(w):
                # Whichever of two windows came first in a user's cells.
                products[w, v] = square[w, v, p] + square[v, w, p]
                products[v, w] = products[w, v]
        _wald(sums, products, out[p])


@kernel
def wald_of_pairs(start: I64, window: I64, windows: int, centred: F64, out: F64) -> None:
    """Write a row per pair: the statistic of the windows as they are, and its rank."""
    total = np.zeros((windows, centred.shape[1]))
    square = np.zeros((windows, windows, centred.shape[1]))
    for user in range(start.size - 1):
        low, high = start[user], start[user + 1]
        _add_user(low, high, window[low:high], centred, total, square)
    _statistics(total, square, out)


@kernel
def count_exchanged(
    key: np.uint64,
    begin: int,
    end: int,
    start: I64,
    window: I64,
    windows: int,
    centred: F64,
    limit: F64,
    counts: I64,
) -> None:
    """Count, for each pair, the exchanges begin..end whose statistic reaches `limit`."""
    pairs = centred.shape[1]
    total, square = np.empty((windows, pairs)), np.empty((windows, windows, pairs))
    order, out = np.empty(windows, np.int64), np.empty((pairs, 2))
    for number in range(begin, end):
        state = first(key, number)
        total[:] = 0.0
        square[:] = 0.0
        for user in range(start.size - 1):
            low, high = start[user], start[user + 1]
            _exchange(state, low, high, window, order)
            _add_user(low, high, order, centred, total, square)
        _statistics(total, square, out)
        for p in range(pairs):
            counts[p] += out[p, 0] >= limit[p]


@kernel
def exchanged_sums(
    key: np.uint64, begin: int, start: I64, window: I64, values: F64, out: F64
) -> None:
    """Write exchanges x windows x systems: the sum of the values that came to each window."""
    order = np.empty(out.shape[1], np.int64)
    for number in range(out.shape[0]):
        state = first(key, begin + number)
        out[number] = 0.0
        for user in range(start.size - 1):
            low, high = start[user], start[user + 1]
            _exchange(state, low, high, window, order)
            for cell in range(low, high):
                for s in range(values.shape[1]):
                    out[number, order[cell - low], s] += values[cell, s]
