"""Kernels of the comparisons: sums under sign flips, what is counted in them, moments of pairs.

Values are whole numbers, in float64 or int32 (see `randomisation`): their sums are exact, so
neither the order in which users are added nor the cut into blocks can change a bit.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I8, I32, I64, U8
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, second
from unskew.engine.sort import sort_by

Whole = F64 | I32

GROUP = 8  # users whose signs are one byte, the index into a table of their 256 sums
WIDE = 64  # columns of a tile: long enough a row for the compiler to use vector instructions
_LOW = np.uint64(0xFFFFFFFF)
_8, _32 = np.uint64(8), np.uint64(32)


@kernel
def draw_signs(key: np.uint64, start: int, word: int, enumerate_all: bool, signs: U8) -> None:
    """Fill a row per group of 8 users, a column per permutation: bit k is the sign of user k.

    64 users share a draw, which belongs to (permutation, word of 64 users) and to nothing else.
    When all sign patterns are enumerated, permutation number p is the pattern.
    """
    groups, block = signs.shape
    state = np.empty(block, np.uint64)
    for p in range(block):
        state[p] = first(key, start + p)
    for w in range(groups // 8):
        for p in range(block):
            if enumerate_all:
                bits = np.uint64(start + p) if word + w == 0 else np.uint64(0)
            else:
                bits = second(state[p], word + w)
            for k in range(8):
                signs[8 * w + k, p] = np.uint8((bits >> (_8 * np.uint64(k))) & np.uint64(255))


@kernel
def _signed_sums(values: Whole, user: int, column: int, part: Whole, table: Whole) -> None:
    """Write the 256 signed sums of 8 users, for a tile of columns; beyond the end there are 0s."""
    users, columns = values.shape
    part[:] = 0
    for k in range(min(GROUP, users - user)):
        for c in range(min(WIDE, columns - column)):
            part[k, c] = values[user + k, column + c]
    table[0] = 0
    for k in range(GROUP):
        for c in range(WIDE):
            table[0, c] -= part[k, c]
    for k in range(GROUP):
        half = 1 << k
        more = part[k]
        for row in range(half):
            from_row, to_row = table[row], table[half + row]
            for c in range(WIDE):
                to_row[c] = from_row[c] + more[c] + more[c]


@kernel
def add_flipped(signs: U8, values: Whole, user: int, sums: Whole) -> None:
    """Add the values of users `user`, `user` + 1, … to `sums`, with the signs of each permutation.

    `sums` is tiles of columns x permutations x columns. Four groups are added in one go, so that
    a row of sums is read and written once for 32 users.
    """
    groups, block = signs.shape
    tables = np.empty((4, 256, WIDE), values.dtype)
    part = np.empty((GROUP, WIDE), values.dtype)
    for tile in range(sums.shape[0]):
        total = sums[tile]
        for g in range(0, groups, 4):
            for k in range(4):
                _signed_sums(values, user + GROUP * (g + k), tile * WIDE, part, tables[k])
            t0, t1, t2, t3 = tables[0], tables[1], tables[2], tables[3]
            s0, s1, s2, s3 = signs[g], signs[g + 1], signs[g + 2], signs[g + 3]
            for p in range(block):
                r0, r1, r2, r3 = t0[s0[p]], t1[s1[p]], t2[s2[p]], t3[s3[p]]
                row = total[p]
                for c in range(WIDE):
                    row[c] += (r0[c] + r1[c]) + (r2[c] + r3[c])


@kernel
def rounding(fine: F64, coarse: I32, unit: F64, first: I64, second: I64, out: F64) -> None:
    """Write, for each pair, the sum of squares by which rounding has changed its differences."""
    for u in range(fine.shape[0]):
        exact, rounded = fine[u], coarse[u]
        for h in range(first.size):
            i, j = first[h], second[h]
            lost = exact[i] - exact[j] - unit[h] * (rounded[i] - rounded[j])
            out[h] += lost * lost


@kernel
def by_column(sums: Whole, out: Whole) -> None:
    """Turn tiles x permutations x columns into columns x permutations."""
    block = sums.shape[1]
    for column in range(out.shape[0]):
        tile, c = column // WIDE, column % WIDE
        for p in range(block):
            out[column, p] = sums[tile, p, c]


@kernel
def count_extreme(
    sums: Whole,
    first: I64,
    second: I64,
    centre: F64 | I64,
    side: I8,
    threshold: F64 | I64,
    counts: I64,
) -> None:
    """Count, for each pair of columns, the permutations at least as extreme as was observed.

    The statistic is the difference of the two columns less `centre`: its absolute value (side 0),
    itself (1) or its negative (-1).
    """
    block = sums.shape[1]
    for h in range(first.size):
        a, b, middle, limit, extreme = sums[first[h]], sums[second[h]], centre[h], threshold[h], 0
        if side[h] == 0:
            for p in range(block):
                extreme += np.abs(a[p] - b[p] - middle) >= limit
        elif side[h] > 0:
            for p in range(block):
                extreme += a[p] - b[p] - middle >= limit
        else:
            for p in range(block):
                extreme += middle - (a[p] - b[p]) >= limit
        counts[h] += extreme


@kernel
def count_step_down(
    sums: Whole,
    first: I64,
    second: I64,
    side: I8,
    scale: F64,
    threshold: F64,
    top: F64,
    counts: I64,
) -> None:
    """Count, for each hypothesis, where the largest of it and all after it reaches what it was.

    Hypotheses come most significant first; `scale` standardises, `top` is room for a block.
    """
    block = sums.shape[1]
    top[:] = -np.inf
    for h in range(first.size - 1, -1, -1):
        a, b, factor, limit, extreme = sums[first[h]], sums[second[h]], scale[h], threshold[h], 0
        if side[h] == 0:
            for p in range(block):
                top[p] = max(top[p], np.abs(a[p] - b[p]) * factor)
        elif side[h] > 0:
            for p in range(block):
                top[p] = max(top[p], (a[p] - b[p]) * factor)
        else:
            for p in range(block):
                top[p] = max(top[p], (b[p] - a[p]) * factor)
        for p in range(block):
            extreme += top[p] >= limit
        counts[h] += extreme


@kernel
def ranges_of_shuffled(key: np.uint64, start: int, values: F64, systems: int, ranges: F64) -> None:
    """Write the range of the systems' sums after each user's values changed places at random.

    `values` has `systems` columns for each metric, `ranges` a row per permutation, a column per
    metric. All metrics of a user are shuffled alike.
    """
    users, columns = values.shape
    metrics = columns // systems
    column = np.empty(systems, np.int64)
    sums = np.empty(columns)
    for p in range(ranges.shape[0]):
        state = first(key, start + p)
        sums[:] = 0.0
        for u in range(users):
            for s in range(systems):
                column[s] = s
            mine = second(state, u)
            bits = mine
            for left in range(systems, 1, -1):  # Fisher and Yates
                if (systems - left) % 2 == 0:
                    bits = second(mine, left)
                    part = bits >> _32
                else:
                    part = bits & _LOW
                chosen = np.int64((part * np.uint64(left)) >> _32)
                column[left - 1], column[chosen] = column[chosen], column[left - 1]
            for m in range(metrics):
                for s in range(systems):
                    sums[m * systems + s] += values[u, m * systems + column[s]]
        for m in range(metrics):
            mine_of = sums[m * systems : (m + 1) * systems]
            ranges[p, m] = mine_of.max() - mine_of.min()


@kernel
def resample(key: np.uint64, start: int, counts: F64) -> None:
    """Draw as many users as there are, with replacement: how often each, a row per resample."""
    rows, users = counts.shape
    total = np.uint64(users)
    for r in range(rows):
        state = first(key, start + r)
        row = counts[r]
        row[:] = 0.0
        for draw in range(0, users, 2):
            bits = second(state, draw)
            row[((bits >> _32) * total) >> _32] += 1.0
            if draw + 1 < users:
                row[((bits & _LOW) * total) >> _32] += 1.0


@kernel
def means_of(values: F64, mask: U8, out: F64) -> None:
    """Write the mean of each column over kept rows; Neumaier's sum loses nothing on the way."""
    rows, columns = values.shape
    lost = np.zeros(columns)
    out[:] = 0.0
    number = 0
    for u in range(rows):
        if mask[u]:
            number += 1
            for c in range(columns):
                value, before = values[u, c], out[c]
                total = before + value
                larger = np.abs(before) >= np.abs(value)
                lost[c] += (before - total) + value if larger else (value - total) + before
                out[c] = total
    for c in range(columns):
        out[c] = (out[c] + lost[c]) / number


@kernel
def moments(
    values: F64, mask: U8, first: I64, second: I64, mean: F64, equal: float, out: F64
) -> None:
    """Write what is known of each pair's differences d over kept users, a row per number.

    0 the sum of (d - mean)², 1 of (d - mean)³, 2 the smallest, 3 the largest d, 4 how many d are
    above `equal`, 5 how many below its negative.
    """
    out[2, :] = np.inf
    out[3, :] = -np.inf
    for u in range(values.shape[0]):
        if mask[u]:
            row = values[u]
            for h in range(first.size):
                d = row[first[h]] - row[second[h]]
                deviation = d - mean[h]
                out[0, h] += deviation * deviation
                out[1, h] += deviation * deviation * deviation
                out[2, h] = min(out[2, h], d)
                out[3, h] = max(out[3, h], d)
                out[4, h] += d > equal
                out[5, h] += d < -equal


LIKED, DISLIKED, POOLED = 1, 2, 3
EPSILON = 1e-5  # infAP's smoothing, as in trec_eval
COUNTED = 64  # judgments of a user that are put in order by counting; more are sorted
_1 = np.uint64(1)


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
    longest = 0
    for row in range(start.size - 1):
        longest = max(longest, start[row + 1] - start[row])
    keys, order = np.empty(longest, np.int64), np.empty(longest, np.int32)
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
            for rank in range(size):
                out[begin + order[rank]] = rank


@kernel
def keep_first(start: I64, rank: I32, size: I64, keep: U8) -> None:
    """Keep the judgments whose place among their user's is below `size`."""
    for row in range(start.size - 1):
        for j in range(start[row], start[row + 1]):
            keep[j] = rank[j] < size[row]


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
    judged: I32,
) -> None:
    """Mask what is not kept, and count what each user has left."""
    for row in range(start.size - 1):
        positive, bad, left = 0, 0, 0
        for j in range(start[row], start[row + 1]):
            if keep[j]:
                new_label[j] = label[j]
                new_gain[j] = gain[j]
                positive += label[j] == LIKED
                bad += label[j] == DISLIKED
                left += 1
            else:
                new_label[j] = 0
                new_gain[j] = 0.0
        liked[row], disliked[row], judged[row] = positive, bad, left


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
        per_liked = 1.0 / liked[row] if liked[row] > 0 else 0.0
        fewer = min(liked[row], disliked[row])
        hits, bad, pooled = 0.0, 0.0, 0.0
        met = columns  # the column of the first judged hit
        for h in range(start[row], start[row + 1]):
            j = judgment[h]
            if label[j] == 0:
                continue
            position = rank[h]
            c = bucket[position]
            if c == columns:
                break
            discounted = gain[j] * discount[position]
            if met == columns:
                met = c
            if want[7]:
                out[7, c] += discounted
            gained[c] += discounted
            if label[j] == LIKED:
                hits_here[c] += 1.0
                out[0, c] += 1.0
                out[1, c] += per_liked
                if want[2]:
                    out[2, c] += (hits + 1.0) / position * per_liked
                if hits == 0.0:
                    out[3, c] += 1.0 / position
                    out[8, c] += 1.0
                if want[4]:
                    term = 1.0 if bad == 0.0 else 1.0 - min(bad, liked[row]) / fewer
                    out[4, c] += term * per_liked
                if want[5] or want[6]:
                    above = position - 1.0
                    if above == 0.0:
                        out[5, c] += per_liked
                        out[6, c] += per_liked
                    else:
                        share = (hits + EPSILON) / (hits + bad + 2 * EPSILON)
                        judged_share = (hits + bad + pooled) / above
                        step = above / position * share
                        out[5, c] += (1.0 / position + step * judged_share) * per_liked
                        out[6, c] += (1.0 / position + step) * per_liked
                hits += 1.0
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
