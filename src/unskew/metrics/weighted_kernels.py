"""Kernels of weighted estimates: sums over judged hits in which each judgment stands for several.

They share the shape of `unskew.metrics.kernels`: hits of list l are start[l]..start[l+1], ranks
ascending; cutoffs ascend; results have a row per cutoff and a column per list.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.engine.compiled import kernel
from unskew.engine.sort import sort_falling

HALVES = 32  # gains 0, 0.5, … below half of this are counted instead of sorted


@kernel
def weighted_precisions(
    start: I64, rank: I32, judgment: I32, weight: F64, cutoffs: I64, out: F64
) -> None:
    """Sum w/rank x (1 + weight above) over the hits down to each cutoff: average precision's top.

    Each pair of liked items enters with the product of their weights.
    """
    for row in range(start.size - 1):
        c, total, above = 0, 0.0, 0.0
        for h in range(start[row], start[row + 1]):
            while c < cutoffs.size and rank[h] > cutoffs[c]:
                out[c, row] = total
                c += 1
            if c == cutoffs.size:
                break
            w = weight[judgment[h]]
            total += w * (1.0 + above) / rank[h]
            above += w
        while c < cutoffs.size:
            out[c, row] = total
            c += 1


@kernel
def weighted_ideal(
    user: I32,
    judged_start: I64,
    key: F64,
    gain: F64,
    same: bool,
    weight: F64,
    summed: F64,
    cutoffs: I64,
    lo: int,
    hi: int,
) -> F64:
    """Sum gain x discount in descending order of key; a judgment fills as many ranks as its weight.

    `summed` holds the discounts summed up to each rank; between ranks they grow evenly. `same` says
    that the key is the gain.
    """
    out = np.zeros((cutoffs.size, hi - lo))
    last = summed.size - 1
    room = np.zeros(HALVES)
    keys = np.empty(HALVES)
    for level in range(HALVES):
        keys[level] = 0.5 * (HALVES - 1 - level)
    most = 0
    for row in range(lo, hi):
        most = max(most, judged_start[user[row] + 1] - judged_start[user[row]])
    rank, worth = np.empty(most), np.empty(most)
    order, more = np.empty(most, np.int32), np.empty(most, np.int32)
    for row in range(lo, hi):
        first, end = judged_start[user[row]], judged_start[user[row] + 1]
        # Gains are mostly small multiples of a half: then weights are added up by gain, not sorted.
        counted = same
        if same:
            room[:] = 0.0
            for j in range(first, end):
                halves = 2.0 * key[j]
                if not (0.0 <= halves < HALVES and halves == np.floor(halves)):
                    counted = False
                    break
                room[HALVES - 1 - np.int64(halves)] += weight[j]
        if counted:
            _fill(keys, room, summed, last, cutoffs, out[:, row - lo])
        else:
            size = end - first
            for j in range(size):
                rank[j], order[j] = key[first + j], j
            sort_falling(rank, order, size, worth, more)
            for j in range(size):
                worth[j], rank[j] = gain[first + order[j]], weight[first + order[j]]
            _fill(worth[:size], rank[:size], summed, last, cutoffs, out[:, row - lo])
    return out


@kernel
def _fill(worth: F64, room: F64, summed: F64, last: int, cutoffs: I64, out: F64) -> None:
    """Sum worth x discount down to each cutoff, each worth filling as many ranks as it has room."""
    for c in range(cutoffs.size):
        most = float(min(cutoffs[c], last))
        place, before, total = 0.0, 0.0, 0.0
        for level in range(worth.size):
            if room[level] == 0.0:
                continue
            place = min(place + room[level], most)
            whole = int(place)
            slope = summed[min(whole + 1, last)] - summed[whole]
            after = summed[whole] + (place - whole) * slope
            total += worth[level] * (after - before)
            before = after
            if place >= most:
                break
        out[c] = total
