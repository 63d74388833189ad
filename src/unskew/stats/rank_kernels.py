"""Kernels of orders: concordant pairs, permutations of an order, and sums over relabelled hits."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I8, I32, I64, U8
from unskew.engine.compiled import kernel
from unskew.engine.rng_kernels import first, second
from unskew.engine.sort import sort_by

LIKED, DISLIKED, POOLED = 1, 2, 3
EPSILON = 1e-5  # infAP's smoothing, as in trec_eval
COUNTED = 64  # judgments of a user that are put in order by counting; more are sorted
_1 = np.uint64(1)
_32 = np.uint64(32)


# Kendall's tau


@kernel
def concordance(a: F64, b: F64) -> tuple[int, int, int]:
    """Return concordant less discordant pairs, and the pairs not tied in a, in b."""
    balance, apart_a, apart_b = 0, 0, 0
    for i in range(a.size):
        for j in range(i):
            x = (a[i] > a[j]) - (a[i] < a[j])
            y = (b[i] > b[j]) - (b[i] < b[j])
            balance += x * y
            apart_a += x * x
            apart_b += y * y
    return balance, apart_a, apart_b


@kernel
def tau_b(a: F64, b: F64) -> float:
    """Kendall's tau_b; NaN where one side is all ties, or a value is NaN."""
    for i in range(a.size):
        if np.isnan(a[i]) or np.isnan(b[i]):
            return np.nan
    balance, apart_a, apart_b = concordance(a, b)
    if apart_a == 0 or apart_b == 0:
        return np.nan
    # As one root: equal orders give exactly 1.
    return float(balance / np.sqrt(np.float64(apart_a) * np.float64(apart_b)))


@kernel
def taus(rows: F64, reference: F64) -> F64:
    """tau_b of each row with a reference of the same systems."""
    out = np.empty(rows.shape[0])
    for row in range(rows.shape[0]):
        out[row] = tau_b(rows[row], reference)
    return out


@kernel
def tau_matrix(rows: F64) -> F64:
    """tau_b of each row with each row."""
    count = rows.shape[0]
    out = np.empty((count, count))
    for i in range(count):
        for j in range(i + 1):
            out[i, j] = tau_b(rows[i], rows[j])
            out[j, i] = out[i, j]
    return out


@kernel
def all_permutations(a: F64, b: F64) -> tuple[int, int]:
    """Count the orders of b in which the balance of pairs is as far from 0, and all orders.

    Heap's algorithm: each order differs from the last in one exchange.
    """
    order = b.copy()
    limit = abs(concordance(a, order)[0])
    far, count = 1, 1
    turn = np.zeros(b.size, np.int64)
    i = 1
    while i < b.size:
        if turn[i] < i:
            j = 0 if i % 2 == 0 else turn[i]
            order[i], order[j] = order[j], order[i]
            count += 1
            far += abs(concordance(a, order)[0]) >= limit
            turn[i] += 1
            i = 1
        else:
            turn[i] = 0
            i += 1
    return far, count


@kernel
def some_permutations(a: F64, b: F64, key: np.uint64, low: int, high: int) -> int:
    """Count, of the random orders low..high of b, those as far from 0; each has its own key."""
    limit = abs(concordance(a, b)[0])
    order = np.empty(b.size)
    far = 0
    for number in range(low, high):
        state = first(key, number)
        for i in range(b.size):
            order[i] = b[i]
        for i in range(b.size - 1, 0, -1):
            bits = second(state, i) >> _32
            j = np.int64((bits * np.uint64(i + 1)) >> _32)
            order[i], order[j] = order[j], order[i]
        far += abs(concordance(a, order)[0]) >= limit
    return far


# Users drawn anew


@kernel
def part(key: np.uint64, number: I64, sizes: I64, out: F64) -> None:
    """Draw users without replacement: 1 for those drawn.

    The beginning of a Fisher-Yates shuffle per row. Of rows with one number, the smaller draw is a
    part of the larger.
    """
    users = out.shape[1]
    order = np.empty(users, np.int64)
    out[:] = 0.0
    for row in range(out.shape[0]):
        state = first(key, number[row])
        for i in range(users):
            order[i] = i
        for i in range(sizes[row]):
            bits = second(state, i) >> _32
            j = i + np.int64((bits * np.uint64(users - i)) >> _32)
            order[i], order[j] = order[j], order[i]
            out[row, order[i]] = 1.0


# Test sets with fewer judgments


@kernel
def draw_keys(user: I32, item: I32, key: np.uint64, out: I64) -> None:
    """Give each judgment the key by which `protocol.drawing.keys` sorts it."""
    for j in range(user.size):
        out[j] = np.int64(second(first(key, user[j]), item[j]) >> _1)


@kernel
def places(start: I64, user: I32, item: I32, key: np.uint64, out: I32) -> None:
    """Give each judgment its place among its user's, by random key: a sample keeps the first."""
    most = 0
    for row in range(start.size - 1):
        most = max(most, start[row + 1] - start[row])
    keys, order = np.empty(most, np.int64), np.empty(most, np.int32)
    for row in range(start.size - 1):
        begin, size = start[row], start[row + 1] - start[row]
        for i in range(size):
            state = first(key, user[begin + i])
            keys[i] = np.int64(second(state, item[begin + i]) >> _1)
        if size <= COUNTED:
            for i in range(size):
                below = 0
                for j in range(size):
                    below += keys[j] < keys[i]
                out[begin + i] = below
        else:
            for i in range(size):
                order[i] = i
            sort_by(keys, order, 0, size)
            for place in range(size):
                out[begin + order[place]] = place


@kernel
def keep_first(start: I64, place: I32, size: I64, keep: U8) -> None:
    """Keep the judgments whose place among their user's is below `size`."""
    for row in range(start.size - 1):
        for j in range(start[row], start[row + 1]):
            keep[j] = place[j] < size[row]


@kernel
def relabel(
    start: I64,
    keep: U8,
    label: I8,
    gain: F64,
    new_label: I8,
    new_gain: F64,
    liked: F64,
    disliked: F64,
    kept: I32,
) -> None:
    """Mask what is not kept, and count what each user has left."""
    for row in range(start.size - 1):
        good, bad, left = 0, 0, 0
        for j in range(start[row], start[row + 1]):
            if keep[j]:
                new_label[j] = label[j]
                new_gain[j] = gain[j]
                good += label[j] == LIKED
                bad += label[j] == DISLIKED
                left += 1
            else:
                new_label[j] = 0
                new_gain[j] = 0.0
        liked[row], disliked[row], kept[row] = good, bad, left


@kernel
def add_lists(
    start: I64,
    rank: I32,
    judgment: I32,
    depth: I64,
    label: I8,
    gain: F64,
    discount: F64,
    liked: F64,
    disliked: F64,
    weight: F64,
    inverse: F64,
    cutoffs: I64,
    bucket: I64,
    want: U8,
    out: F64,
) -> None:
    """Add the metrics of every list to `out`, hit by hit, in the order of the lists.

    Rows of `out`: 0 liked, 1 liked / R, 2 precisions / R, 3 first, 4 preferences / R,
    5 inferred / R, 6 inferred-all / R, 7 gains, 8 hit; these stand in the column of the smallest
    cutoff that sees the hit, to be added up from left to right. 9 gains x `inverse` (a row per
    cutoff), 10 liked / slots shown: these are complete. `weight` is 0 for users who are not
    averaged, else 1; `bucket` gives a rank's column.
    """
    columns = cutoffs.size
    hits_here = np.zeros(columns)
    gained = np.zeros(columns)
    by_cutoff = want[9] or want[10]
    for row in range(start.size - 1):
        if weight[row] == 0.0 or start[row] == start[row + 1]:
            continue
        each = 1.0 / liked[row] if liked[row] > 0 else 0.0
        fewer = min(liked[row], disliked[row])
        good, bad, pooled = 0.0, 0.0, 0.0
        met = columns  # the column of the first judged hit
        for h in range(start[row], start[row + 1]):
            j = judgment[h]
            if label[j] == 0:
                continue
            place = rank[h]
            c = bucket[place]
            if c == columns:
                break
            worth = gain[j] * discount[place]
            if met == columns:
                met = c
            if want[7]:
                out[7, c] += worth
            gained[c] += worth
            if label[j] == LIKED:
                hits_here[c] += 1.0
                out[0, c] += 1.0
                out[1, c] += each
                if want[2]:
                    out[2, c] += (good + 1.0) / place * each
                if good == 0.0:
                    out[3, c] += 1.0 / place
                    out[8, c] += 1.0
                if want[4]:
                    term = 1.0 if bad == 0.0 else 1.0 - min(bad, liked[row]) / fewer
                    out[4, c] += term * each
                if want[5] or want[6]:
                    above = place - 1.0
                    if above == 0.0:
                        out[5, c] += each
                        out[6, c] += each
                    else:
                        share = (good + EPSILON) / (good + bad + 2 * EPSILON)
                        known = (good + bad + pooled) / above
                        step = above / place * share
                        out[5, c] += (1.0 / place + step * known) * each
                        out[6, c] += (1.0 / place + step) * each
                good += 1.0
            elif label[j] == DISLIKED:
                bad += 1.0
            else:
                pooled += 1.0
        if met < columns:
            seen, total = 0.0, 0.0
            for c in range(met, columns):
                seen += hits_here[c]
                total += gained[c]
                hits_here[c] = 0.0
                gained[c] = 0.0
                if by_cutoff:
                    out[9, c] += total * inverse[c, row]
                    out[10, c] += seen / max(min(cutoffs[c], depth[row]), 1)
