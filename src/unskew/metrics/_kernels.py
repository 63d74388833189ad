"""Kernels of the metrics: each walks the judged hits of every list once, for all cutoffs.

They share one shape: hits of list l are start[l]..start[l+1], ranks ascending; cutoffs ascend;
results have a row per cutoff and a column per list.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unskew.compiled import kernel

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

LIKED, DISLIKED, POOLED = 1, 2, 3
EPSILON = 1e-5  # infAP's smoothing, as in trec_eval


@kernel
def tally(start: I64, rank: I32, judgment: I32, label: I8, cutoffs: I64) -> tuple[I32, I32]:
    """Count liked and disliked items down to each cutoff."""
    shape = (cutoffs.size, start.size - 1)
    liked = np.empty(shape, np.int32)
    disliked = np.empty(shape, np.int32)
    for row in range(start.size - 1):
        c, good, bad = 0, 0, 0
        for h in range(start[row], start[row + 1]):
            while c < cutoffs.size and rank[h] > cutoffs[c]:
                liked[c, row] = good
                disliked[c, row] = bad
                c += 1
            if c == cutoffs.size:
                break
            if label[judgment[h]] == LIKED:
                good += 1
            elif label[judgment[h]] == DISLIKED:
                bad += 1
        while c < cutoffs.size:
            liked[c, row] = good
            disliked[c, row] = bad
            c += 1
    return liked, disliked


@kernel
def liked_within(start: I64, rank: I32, judgment: I32, label: I8, limit: I64) -> I32:
    """Count liked items down to a rank of each list's own."""
    liked = np.zeros(start.size - 1, np.int32)
    for row in range(start.size - 1):
        for h in range(start[row], start[row + 1]):
            if rank[h] > limit[row]:
                break
            if label[judgment[h]] == LIKED:
                liked[row] += 1
    return liked


@kernel
def discounted(
    start: I64, rank: I32, judgment: I32, weight: F64, discount: F64, cutoffs: I64
) -> F64:
    """Sum weight x discount[rank] over the hits down to each cutoff."""
    out = np.empty((cutoffs.size, start.size - 1))
    for row in range(start.size - 1):
        c, total = 0, 0.0
        for h in range(start[row], start[row + 1]):
            while c < cutoffs.size and rank[h] > cutoffs[c]:
                out[c, row] = total
                c += 1
            if c == cutoffs.size:
                break
            total += weight[judgment[h]] * discount[rank[h]]
        while c < cutoffs.size:
            out[c, row] = total
            c += 1
    return out


@kernel
def ideal(
    user: I32,
    judged_start: I64,
    key: F64,
    weight: F64,
    discount: F64,
    cutoffs: I64,
    lo: int,
    hi: int,
) -> F64:
    """Sum weight x discount over a user's judgments in descending order of key, to each cutoff."""
    out = np.empty((cutoffs.size, hi - lo))
    keys = np.empty(64)
    weights = np.empty(64)
    for row in range(lo, hi):
        first, last = judged_start[user[row]], judged_start[user[row] + 1]
        size = last - first
        if size > keys.size:
            keys = np.empty(2 * size)
            weights = np.empty(2 * size)
        for j in range(size):
            keys[j] = key[first + j]
            weights[j] = weight[first + j]
        gap = 1  # Shell's sort: no scratch, little code, quick on the few judgments of a user
        while gap < size // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for j in range(gap, size):
                k, w = keys[j], weights[j]
                i = j - gap
                while i >= 0 and keys[i] < k:
                    keys[i + gap] = keys[i]
                    weights[i + gap] = weights[i]
                    i -= gap
                keys[i + gap] = k
                weights[i + gap] = w
            gap //= 3
        c, total = 0, 0.0
        for j in range(size):
            while c < cutoffs.size and j + 1 > cutoffs[c]:
                out[c, row - lo] = total
                c += 1
            if c == cutoffs.size:
                break
            total += weights[j] * discount[j + 1]
        while c < cutoffs.size:
            out[c, row - lo] = total
            c += 1
    return out


@kernel
def reciprocal_rank(start: I64, rank: I32, judgment: I32, label: I8, cutoffs: I64) -> F64:
    """Return 1 / rank of the first liked item, 0 where there is none above the cutoff."""
    out = np.zeros((cutoffs.size, start.size - 1))
    for row in range(start.size - 1):
        for h in range(start[row], start[row + 1]):
            if label[judgment[h]] == LIKED:
                for c in range(cutoffs.size):
                    if rank[h] <= cutoffs[c]:
                        out[c, row] = 1.0 / rank[h]
                break
    return out


@kernel
def precision_sum(start: I64, rank: I32, judgment: I32, label: I8, cutoffs: I64) -> F64:
    """Sum the precision at every liked item down to each cutoff."""
    out = np.empty((cutoffs.size, start.size - 1))
    for row in range(start.size - 1):
        c, total, good = 0, 0.0, 0
        for h in range(start[row], start[row + 1]):
            while c < cutoffs.size and rank[h] > cutoffs[c]:
                out[c, row] = total
                c += 1
            if c == cutoffs.size:
                break
            if label[judgment[h]] == LIKED:
                good += 1
                total += good / rank[h]
        while c < cutoffs.size:
            out[c, row] = total
            c += 1
    return out


@kernel
def preference_sum(
    start: I64, rank: I32, judgment: I32, label: I8, liked: I32, disliked: I32, cutoffs: I64
) -> F64:
    """Sum bpref's term of every liked item: how few disliked ones stand above it."""
    out = np.empty((cutoffs.size, start.size - 1))
    for row in range(start.size - 1):
        c, total, bad = 0, 0.0, 0
        for h in range(start[row], start[row + 1]):
            while c < cutoffs.size and rank[h] > cutoffs[c]:
                out[c, row] = total
                c += 1
            if c == cutoffs.size:
                break
            if label[judgment[h]] == DISLIKED:
                bad += 1
            elif label[judgment[h]] == LIKED:
                if bad == 0:
                    total += 1.0
                else:
                    total += 1.0 - min(bad, liked[row]) / min(disliked[row], liked[row])
        while c < cutoffs.size:
            out[c, row] = total
            c += 1
    return out


@kernel
def inferred_sum(
    start: I64, rank: I32, judgment: I32, label: I8, all_pooled: bool, cutoffs: I64
) -> F64:
    """Sum infAP's expected precision at every liked item down to each cutoff."""
    out = np.empty((cutoffs.size, start.size - 1))
    for row in range(start.size - 1):
        c, total, good, bad, pooled = 0, 0.0, 0, 0, 0
        for h in range(start[row], start[row + 1]):
            while c < cutoffs.size and rank[h] > cutoffs[c]:
                out[c, row] = total
                c += 1
            if c == cutoffs.size:
                break
            kind = label[judgment[h]]
            if kind == POOLED:
                pooled += 1
            elif kind == DISLIKED:
                bad += 1
            elif kind == LIKED:
                above = rank[h] - 1
                if above == 0:
                    total += 1.0
                else:
                    in_pool = above if all_pooled else good + bad + pooled
                    total += 1.0 / rank[h] + (above / rank[h]) * (in_pool / above) * (
                        (good + EPSILON) / (good + bad + 2 * EPSILON)
                    )
                good += 1
        while c < cutoffs.size:
            out[c, row] = total
            c += 1
    return out


@kernel
def ordered_pairs(
    start: I64,
    rank: I32,
    judgment: I32,
    label: I8,
    liked: I32,
    depth: I64,
    targets: I64,
    cutoffs: I64,
) -> F64:
    """Count pairs (liked, not liked) in the right order; both beyond the cutoff count half."""
    out = np.empty((cutoffs.size, start.size - 1))
    for row in range(start.size - 1):
        others = targets[row] - liked[row]
        for c in range(cutoffs.size):
            shown = min(cutoffs[c], depth[row])
            right, good = 0.0, 0
            for h in range(start[row], start[row + 1]):
                if rank[h] > shown:
                    break
                if label[judgment[h]] == LIKED:
                    right += others - (rank[h] - 1 - good)
                    good += 1
            out[c, row] = right + 0.5 * (liked[row] - good) * (others - (shown - good))
    return out


@kernel
def item_sum(start: I64, stop: I64, item: I32, weight: F64, cutoffs: I64, lo: int, hi: int) -> F64:
    """Sum a weight of the items themselves down to each cutoff; empty slots count nothing."""
    out = np.empty((cutoffs.size, hi - lo))
    for row in range(lo, hi):
        c, total = 0, 0.0
        for slot in range(start[row], stop[row]):
            while c < cutoffs.size and slot - start[row] >= cutoffs[c]:
                out[c, row - lo] = total
                c += 1
            if c == cutoffs.size:
                break
            if item[slot] >= 0:
                total += weight[item[slot]]
        while c < cutoffs.size:
            out[c, row - lo] = total
            c += 1
    return out


@kernel
def exposure(start: I64, stop: I64, item: I32, items: int, cutoff: int) -> I64:
    """Count in how many lists each item stands above the cutoff."""
    counts = np.zeros(items, np.int64)
    for row in range(start.size):
        for slot in range(start[row], min(stop[row], start[row] + cutoff)):
            if item[slot] >= 0:
                counts[item[slot]] += 1
    return counts


@kernel
def sum_judged(user: I32, judged_start: I64, weight: F64, lo: int, hi: int) -> F64:
    """Sum a weight over all judgments of each list's user."""
    out = np.zeros(hi - lo)
    for row in range(lo, hi):
        for j in range(judged_start[user[row]], judged_start[user[row] + 1]):
            out[row - lo] += weight[j]
    return out


@kernel
def exact_sums(bits: I64, keep: NDArray[np.bool_]) -> tuple[I64, I64]:
    """Add doubles without rounding, row by row: 32-bit limbs over the whole range of exponents.

    `bits` are the doubles as integers. Returns for each row the limbs (the lowest counts
    2**-1074), and how many values were added and how many of those kept were NaN.
    """
    limbs = np.zeros((bits.shape[0], 70), np.int64)
    counts = np.zeros((bits.shape[0], 2), np.int64)
    low = np.int64(0xFFFFFFFF)
    for row in range(bits.shape[0]):
        added, undefined = 0, 0
        for i in range(bits.shape[1]):
            if not keep[i]:
                continue
            word = bits[row, i]
            exponent = (word >> 52) & 0x7FF
            mantissa = word & 0xFFFFFFFFFFFFF
            if exponent == 0x7FF:
                undefined += 1
                continue
            added += 1
            if exponent > 0:
                mantissa |= np.int64(1) << 52
                exponent -= 1
            if mantissa == 0:
                continue
            limb, shift = exponent >> 5, exponent & 31
            a = np.uint64(mantissa & low) << np.uint64(shift)
            b = (mantissa >> 32) << shift
            sign = -1 if word < 0 else 1
            limbs[row, limb] += sign * np.int64(a & np.uint64(0xFFFFFFFF))
            limbs[row, limb + 1] += sign * (np.int64(a >> np.uint64(32)) + (b & low))
            limbs[row, limb + 2] += sign * (b >> 32)
        counts[row, 0], counts[row, 1] = added, undefined
    return limbs, counts
