"""Kernels over pairs of items: how often which functions order two items in which way."""

from __future__ import annotations

import numpy as np

from unskew.arrays import I32, I64
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, second

TILE = 1024  # codes worked out at a time: they stay in the nearest cache


@kernel
def all_pairs(ranks: I32, weight: I64, low: int, high: int, out: I64) -> None:
    """Count the pairs of groups (i, j), i in low..high and j <= i, by the signs of all functions.

    `ranks` has a row per function. The code of a pair is a number in base 3, first function first:
    2 where i is above j, 1 where they are equal, 0 where i is below. A pair of groups stands for
    as many pairs of items as the product of their weights; items of one group are equal in all.
    """
    functions = ranks.shape[0]
    codes = np.empty(TILE, np.int32)
    for i in range(low, high):
        mass = weight[i]
        out[out.size // 2] += mass * (mass - 1) // 2
        for start in range(0, i, TILE):
            size = min(TILE, i - start)
            for k in range(size):
                codes[k] = 0
            for f in range(functions):
                mine = ranks[f, i]
                row = ranks[f]
                for k in range(size):
                    theirs = row[start + k]
                    sign = np.int32(mine > theirs) - np.int32(mine < theirs)
                    codes[k] = codes[k] * np.int32(3) + np.int32(1) + sign
            for k in range(size):
                out[codes[k]] += mass * weight[start + k]


@kernel
def some_pairs(ranks: I32, group: I64, key: np.uint64, low: int, high: int, out: I64) -> None:
    """Count random pairs of two different items in the same way; each pair has its own key."""
    items = np.uint64(group.size)
    unit = np.uint64(1)
    for number in range(low, high):
        state = first(key, number)
        a = second(state, 0) % items
        b = second(state, 1) % (items - unit)
        if b >= a:
            b += unit
        i, j = group[np.int64(a)], group[np.int64(b)]
        code = 0
        for f in range(ranks.shape[0]):
            mine, theirs = ranks[f, i], ranks[f, j]
            code = code * 3 + 1 + (mine > theirs) - (mine < theirs)
        out[code] += 1


@kernel
def item_balance(
    phi: I32, bad: I32, truth: I32, weight: I64, low: int, high: int, out: I64
) -> None:
    """Count, for an item of each group, with how many others a metric is in the order of the truth.

    Those of precision, less those of anti-precision. `phi`, `bad` and `truth` are the ranks by
    φ_P̂, by -φ_antiP̂ and by p(rel|¬train,i).
    """
    for i in range(low, high):
        mine, mine_phi, poor = truth[i], phi[i], bad[i]
        total = np.int64(0)
        for j in range(weight.size):
            above, below = mine > truth[j], mine < truth[j]
            precise = (above & (mine_phi > phi[j])) | (below & (mine_phi < phi[j]))
            anti = (above & (poor < bad[j])) | (below & (poor > bad[j]))
            total += weight[j] * (np.int64(precise) - np.int64(anti))
        out[i] = total
