"""Kernels of the metrics: each walks the judged hits of every list once, for all cutoffs.

They share one shape: hits of list l are start[l]..start[l+1], ranks ascending; cutoffs ascend;
results have a row per cutoff and a column per list.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I8, I32, I64
from unskew.engine.compiled import kernel, plain_kernel
from unskew.engine.sort import sort_falling

LIKED, DISLIKED, POOLED = 1, 2, 3
HALVES = 32  # gains 0, 0.5, … below half of this are counted instead of sorted
NEVER = (1 << 62) + 1  # a rank beyond every cutoff, "the whole list" included
EPSILON = 1e-5  # infAP's smoothing, as in trec_eval


@plain_kernel
def walk(
    start: I64,
    rank: I32,
    judgment: I32,
    label: I8,
    gain: F64,
    discount: F64,
    liked: F64,
    disliked: F64,
    cutoffs: I64,
    index: I64,
    out: F64,
) -> None:
    """Walk down every list once and write what its metrics are made of, at each cutoff.

    `index` says where in `out` each part goes, -1 if nobody asks for it. The parts: 0 liked items,
    1 disliked items, 2 the sum of the precision at every liked item, 3 the reciprocal rank of
    the first, 4 the sum of bpref's terms, 5 of infAP's, 6 of infAP's with everything in the
    pool, 7 the discounted gains.
    """
    for row in range(start.size - 1):
        c, likes, bad, pooled, first = 0, 0.0, 0.0, 0.0, 0.0
        precision, preference, inferred, inferred_all, gains = 0.0, 0.0, 0.0, 0.0, 0.0
        fewer = min(liked[row], disliked[row])
        stop = start[row + 1]
        for h in range(start[row], stop + 1):
            position = rank[h] if h < stop else NEVER
            while c < cutoffs.size and position > cutoffs[c]:
                if index[0] >= 0:
                    out[index[0], c, row] = likes
                if index[1] >= 0:
                    out[index[1], c, row] = bad
                if index[2] >= 0:
                    out[index[2], c, row] = precision
                if index[3] >= 0:
                    out[index[3], c, row] = first
                if index[4] >= 0:
                    out[index[4], c, row] = preference
                if index[5] >= 0:
                    out[index[5], c, row] = inferred
                if index[6] >= 0:
                    out[index[6], c, row] = inferred_all
                if index[7] >= 0:
                    out[index[7], c, row] = gains
                c += 1
            if c == cutoffs.size:
                break
            j = judgment[h]
            if index[7] >= 0:
                gains += gain[j] * discount[position]
            if label[j] == LIKED:
                above = position - 1.0
                if index[2] >= 0:
                    precision += (likes + 1.0) / position
                if likes == 0.0:
                    first = 1.0 / position
                if index[4] >= 0:
                    preference += 1.0 if bad == 0.0 else 1.0 - min(bad, liked[row]) / fewer
                if index[5] >= 0 or index[6] >= 0:
                    if above == 0.0:
                        inferred += 1.0
                        inferred_all += 1.0
                    else:
                        share = (likes + EPSILON) / (likes + bad + 2 * EPSILON)
                        judged_share = (likes + bad + pooled) / above
                        inferred += 1.0 / position + (above / position) * judged_share * share
                        inferred_all += 1.0 / position + (above / position) * share
                likes += 1.0
            elif label[j] == DISLIKED:
                bad += 1.0
            elif label[j] == POOLED:
                pooled += 1.0


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
    start: I64, rank: I32, judgment: I32, weight: F64, discount: F64, cutoffs: I64, out: F64
) -> None:
    """Sum weight x discount[rank] over the hits down to each cutoff."""
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


@plain_kernel
def ideal(
    user: I32,
    judged_start: I64,
    key: F64,
    weight: F64,
    same: bool,
    discount: F64,
    cutoffs: I64,
    lo: int,
    hi: int,
) -> F64:
    """Sum weight x discount over a user's judgments in descending order of key, to each cutoff.

    `same` says that the weight is the key. Gains are mostly small multiples of a half, and these
    are counted instead of sorted; a user with any other gain is sorted after all.
    """
    out = np.empty((cutoffs.size, hi - lo))
    keys = np.empty(HALVES)
    weights = np.empty(HALVES)
    times = np.empty(HALVES, np.int64)
    for row in range(lo, hi):
        first, last = judged_start[user[row]], judged_start[user[row] + 1]
        counted = same
        if same:
            times[:] = 0
            for j in range(first, last):
                halves = 2.0 * key[j]
                if not (0.0 <= halves < HALVES and halves == np.floor(halves)):
                    counted = False
                    break
                times[np.int64(halves)] += 1
        levels = HALVES if counted else last - first
        if not counted:
            if levels > keys.size:
                keys = np.empty(2 * levels)
                weights = np.empty(2 * levels)
            for j in range(levels):
                keys[j] = key[first + j]
                weights[j] = weight[first + j]
            _sort_down(keys, weights, levels)
        c, total, position = 0, 0.0, 0
        for level in range(levels):
            value = 0.5 * (HALVES - 1 - level) if counted else weights[level]
            for _ in range(times[HALVES - 1 - level] if counted else 1):
                position += 1
                while c < cutoffs.size and position > cutoffs[c]:
                    out[c, row - lo] = total
                    c += 1
                total += value * discount[position]
            if c == cutoffs.size:
                break
        while c < cutoffs.size:
            out[c, row - lo] = total
            c += 1
    return out


@plain_kernel
def _sort_down(keys: F64, weights: F64, size: int) -> None:
    """Sort keys descending, and weights with them (Shell's sort)."""
    gap = 1
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


@kernel
def ordered_pairs(
    start: I64,
    rank: I32,
    judgment: I32,
    label: I8,
    liked: F64,
    depth: I64,
    targets: I64,
    cutoffs: I64,
    out: F64,
) -> None:
    """Count pairs (liked, not liked) in the right order; both beyond the cutoff count half."""
    for row in range(start.size - 1):
        others = targets[row] - liked[row]
        for c in range(cutoffs.size):
            last = min(cutoffs[c], depth[row])
            right, likes = 0.0, 0
            for h in range(start[row], start[row + 1]):
                if rank[h] > last:
                    break
                if label[judgment[h]] == LIKED:
                    right += others - (rank[h] - 1 - likes)
                    likes += 1
            out[c, row] = right + 0.5 * (liked[row] - likes) * (others - (last - likes))


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


@plain_kernel
def exact_sums(bits: I64) -> tuple[I64, I64]:
    """Add doubles without rounding, row by row; count those that are NaN.

    `bits` are the doubles as integers. Mantissas are added up per exponent, in four tables so
    that one addition need not wait for the last, and carried into limbs before they can
    overflow. A sum is its limbs' low 32 bits as one two's complement number in units of 2**-1074.
    """
    limbs = np.zeros((bits.shape[0], 70), np.int64)
    missing = np.zeros(bits.shape[0], np.int64)
    tables = np.zeros((4, 2048), np.int64)
    for row in range(bits.shape[0]):
        for begin in range(0, bits.shape[1], 4096):
            touched = np.uint64(0)  # which groups of 32 exponents
            undefined = np.int64(0)
            for i in range(begin, min(begin + 4096, bits.shape[1])):
                word = bits[row, i]
                exponent = (word >> 52) & 0x7FF
                mantissa = (word & 0xFFFFFFFFFFFFF) | (np.int64(exponent > 0) << 52)
                sign = word >> 63  # 0 or -1
                tables[i & 3, exponent] += (mantissa ^ sign) - sign
                touched |= np.uint64(1) << np.uint64(exponent >> 5)
                undefined += np.int64(exponent == 0x7FF)
            missing[row] += undefined
            for group in range(64):
                if (touched >> np.uint64(group)) & np.uint64(1):
                    for exponent in range(32 * group, 32 * group + 32):
                        for table in range(4):
                            mantissas = tables[table, exponent]
                            if mantissas != 0 and exponent < 2047:
                                _carry(limbs[row], mantissas, exponent)
                            tables[table, exponent] = 0
        for limb in range(69):
            limbs[row, limb + 1] += limbs[row, limb] >> 32
            limbs[row, limb] &= 0xFFFFFFFF
    return limbs, missing


@plain_kernel
def _carry(limbs: I64, mantissas: int, exponent: int) -> None:
    """Add a sum of mantissas of one exponent to the limbs."""
    low = np.uint64(0xFFFFFFFF)
    sign = -1 if mantissas < 0 else 1
    size = np.uint64(abs(mantissas))
    bit = max(exponent, 1) - 1
    limb, shift = bit >> 5, np.uint64(bit & 31)
    a = (size & low) << shift
    b = (size >> np.uint64(32)) << shift
    limbs[limb] += sign * np.int64(a & low)
    limbs[limb + 1] += sign * (np.int64(a >> np.uint64(32)) + np.int64(b & low))
    limbs[limb + 2] += sign * np.int64(b >> np.uint64(32))


@kernel
def first_liked(liked: F64, targets: F64, places: F64, reciprocal: F64, hit: F64) -> None:
    """Write E[1 / rank of the first liked item] and P(any) within `places` places of each list.

    With r liked of t targets in random order the first stands at place i with probability
    r / (t - i + 1) if none stood before.
    """
    for cut in range(places.shape[0]):
        for row in range(liked.size):
            r, t = liked[row], targets[row]
            none, total = 1.0, 0.0
            if r > 0:
                for i in range(1, int(places[cut, row]) + 1):
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


WEIGHTED_HALVES = 32  # gains 0, 0.5, … below half of this are counted instead of sorted


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
    widths = np.zeros(WEIGHTED_HALVES)
    keys = np.empty(WEIGHTED_HALVES)
    for level in range(WEIGHTED_HALVES):
        keys[level] = 0.5 * (WEIGHTED_HALVES - 1 - level)
    longest = 0
    for row in range(lo, hi):
        longest = max(longest, judged_start[user[row] + 1] - judged_start[user[row]])
    rank, values = np.empty(longest), np.empty(longest)
    order, more = np.empty(longest, np.int32), np.empty(longest, np.int32)
    for row in range(lo, hi):
        first, end = judged_start[user[row]], judged_start[user[row] + 1]
        # Gains are mostly small multiples of a half: then weights are added up by gain, not sorted.
        counted = same
        if same:
            widths[:] = 0.0
            for j in range(first, end):
                halves = 2.0 * key[j]
                if not (0.0 <= halves < WEIGHTED_HALVES and halves == np.floor(halves)):
                    counted = False
                    break
                widths[WEIGHTED_HALVES - 1 - np.int64(halves)] += weight[j]
        if counted:
            _fill(keys, widths, summed, last, cutoffs, out[:, row - lo])
        else:
            size = end - first
            for j in range(size):
                rank[j], order[j] = key[first + j], j
            sort_falling(rank, order, size, values, more)
            for j in range(size):
                values[j], rank[j] = gain[first + order[j]], weight[first + order[j]]
            _fill(values[:size], rank[:size], summed, last, cutoffs, out[:, row - lo])
    return out


@kernel
def _fill(values: F64, widths: F64, summed: F64, last: int, cutoffs: I64, out: F64) -> None:
    """Sum worth x discount down to each cutoff, each worth filling as many ranks as it has room."""
    for c in range(cutoffs.size):
        deepest = float(min(cutoffs[c], last))
        position, before, total = 0.0, 0.0, 0.0
        for level in range(values.size):
            if widths[level] == 0.0:
                continue
            position = min(position + widths[level], deepest)
            rank = int(position)
            slope = summed[min(rank + 1, last)] - summed[rank]
            after = summed[rank] + (position - rank) * slope
            total += values[level] * (after - before)
            before = after
            if position >= deepest:
                break
        out[c] = total


@kernel
def slot_kinds(
    hit_start: I64,
    hit_rank: I32,
    hit_judgment: I32,
    label: I8,
    depth: I64,
    begin: I64,
    item: I32,
    discount: F64,
    cutoff: int,
    out: F64,
) -> None:
    """Split the discounts of each list's slots above the cutoff: known good, known bad, unjudged.

    `label` is 1 for liked, 2 for disliked, else taken as unjudged. A list's items begin at `begin`
    in `item`, which is empty where no slot is. `out` has rows: 0 good, 1 bad, 2 unjudged
    discounts, 3 to 5 how many, 6 the rank of the first good, 7 of the first not bad.
    """
    for r in range(hit_start.size - 1):
        for k in range(8):
            out[k, r] = 0.0
        h, end = hit_start[r], hit_start[r + 1]
        for position in range(1, min(cutoff, depth[r]) + 1):
            if item.size > 0 and item[begin[r] + position - 1] < 0:
                continue
            kind = 2
            if h < end and hit_rank[h] == position:
                taken = label[hit_judgment[h]]
                if taken == 1:
                    kind = 0
                elif taken == 2:
                    kind = 1
                h += 1
            out[kind, r] += discount[position]
            out[3 + kind, r] += 1.0
            if kind == 0 and out[6, r] == 0.0:
                out[6, r] = position
            if kind != 1 and out[7, r] == 0.0:
                out[7, r] = position
