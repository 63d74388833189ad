"""Kernels of the comparisons: sums under sign flips, what is counted in them, moments of pairs.

Values are whole numbers, in float64 or int32 (see `randomisation`): their sums are exact, so
neither the order in which users are added nor the cut into blocks can change a bit.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I8, I32, I64, U8
from unskew.engine.compiled import kernel
from unskew.engine.rng_kernels import first, second

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
def rounding(fine: F64, coarse: I32, unit: F64, one: I64, other: I64, out: F64) -> None:
    """Write, for each pair, the sum of squares by which rounding has changed its differences."""
    for u in range(fine.shape[0]):
        exact, rounded = fine[u], coarse[u]
        for h in range(one.size):
            i, j = one[h], other[h]
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
    one: I64,
    other: I64,
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
    for h in range(one.size):
        a, b, middle, limit, extreme = sums[one[h]], sums[other[h]], centre[h], threshold[h], 0
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
    sums: Whole, one: I64, other: I64, side: I8, scale: F64, threshold: F64, top: F64, counts: I64
) -> None:
    """Count, for each hypothesis, where the largest of it and all after it reaches what it was.

    Hypotheses come most significant first; `scale` standardises, `top` is room for a block.
    """
    block = sums.shape[1]
    top[:] = -np.inf
    for h in range(one.size - 1, -1, -1):
        a, b, factor, limit, extreme = sums[one[h]], sums[other[h]], scale[h], threshold[h], 0
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
    place = np.empty(systems, np.int64)
    sums = np.empty(columns)
    for p in range(ranges.shape[0]):
        state = first(key, start + p)
        sums[:] = 0.0
        for u in range(users):
            for s in range(systems):
                place[s] = s
            mine = second(state, u)
            bits = mine
            for left in range(systems, 1, -1):  # Fisher and Yates
                if (systems - left) % 2 == 0:
                    bits = second(mine, left)
                    part = bits >> _32
                else:
                    part = bits & _LOW
                chosen = np.int64((part * np.uint64(left)) >> _32)
                place[left - 1], place[chosen] = place[chosen], place[left - 1]
            for m in range(metrics):
                for s in range(systems):
                    sums[m * systems + s] += values[u, m * systems + place[s]]
        for m in range(metrics):
            mine_of = sums[m * systems : (m + 1) * systems]
            ranges[p, m] = mine_of.max() - mine_of.min()


@kernel
def resample(key: np.uint64, start: int, counts: F64) -> None:
    """Draw as many users as there are, with replacement: how often each, a row per resample."""
    rows, users = counts.shape
    many = np.uint64(users)
    for r in range(rows):
        state = first(key, start + r)
        row = counts[r]
        row[:] = 0.0
        for draw in range(0, users, 2):
            bits = second(state, draw)
            row[((bits >> _32) * many) >> _32] += 1.0
            if draw + 1 < users:
                row[((bits & _LOW) * many) >> _32] += 1.0


@kernel
def means_of(values: F64, kept: U8, out: F64) -> None:
    """Write the mean of each column over kept rows; Neumaier's sum loses nothing on the way."""
    rows, columns = values.shape
    lost = np.zeros(columns)
    out[:] = 0.0
    number = 0
    for u in range(rows):
        if kept[u]:
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
def moments(values: F64, kept: U8, one: I64, other: I64, mean: F64, equal: float, out: F64) -> None:
    """Write what is known of each pair's differences d over kept users, a row per number.

    0 the sum of (d - mean)², 1 of (d - mean)³, 2 the smallest, 3 the largest d, 4 how many d are
    above `equal`, 5 how many below its negative.
    """
    out[2, :] = np.inf
    out[3, :] = -np.inf
    for u in range(values.shape[0]):
        if kept[u]:
            row = values[u]
            for h in range(one.size):
                d = row[one[h]] - row[other[h]]
                away = d - mean[h]
                out[0, h] += away * away
                out[1, h] += away * away * away
                out[2, h] = min(out[2, h], d)
                out[3, h] = max(out[3, h], d)
                out[4, h] += d > equal
                out[5, h] += d < -equal
