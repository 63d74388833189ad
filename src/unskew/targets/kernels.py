"""Kernels of the target items: lists are drawn here, one by one, and never kept as a whole.

A list belongs to a user. Its targets are *fixed* items (a relevant one, or the user's test items)
and *others*, all or some of the candidates that are barred neither by the user's training nor by
being fixed for that user. Candidates stand stratum by stratum in `cand`, ascending in each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, U8
from unskew.engine.compiled import kernel, plain_kernel
from unskew.engine.rng import first, second
from unskew.engine.sort import first_from, in_sorted, sort_by, sort_rising

_11, _32 = np.uint64(11), np.uint64(32)
HEADS = 128
"""Groups by which drawn items are put nearly in order before they are sorted."""


class Barred(NamedTuple):
    """The rows that bar items: training rows, and those test rows that are fixed in the lists."""

    train_start: I64
    train_item: I32
    test_start: I64
    test_item: I32
    fixed: U8


class Pool(NamedTuple):
    """Candidate items, stratum by stratum."""

    stratum: I32
    """Each item's stratum, -1 if it is no candidate."""
    cand: I32
    """The candidates of one stratum after the other, ascending in each."""
    cand_start: I64


class DrawWeights(NamedTuple):
    """How likely items are to be drawn; all empty where they are all alike."""

    weight: I64
    """Of each item."""
    cumulative: I64
    """Summed weights of the candidates."""
    heaviest: I64
    """The sum of the n largest weights of each stratum."""


class DrawSpace(NamedTuple):
    """Working space: marks of barred and of taken items, room for what is drawn, and clocks."""

    barred: I32
    taken: I64
    others: I32
    clock: F64


@kernel
def bar(user: int, rows: Barred, barred: I32) -> None:
    """Mark what no other of this user can be: training items, and test items that are fixed."""
    for j in range(rows.train_start[user], rows.train_start[user + 1]):
        barred[rows.train_item[j]] = user
    for j in range(rows.test_start[user], rows.test_start[user + 1]):
        if rows.fixed[j]:
            barred[rows.test_item[j]] = user


@plain_kernel
def count_others(
    user: I32,
    stratum: I32,
    drawable: I64,
    stratum_of: I32,
    train_start: I64,
    train_item: I32,
    test_start: I64,
    test_item: I32,
    fixed: U8,
    count: I64,
) -> None:
    """Count the candidates from which each list's others come; lists stand user by user.

    `drawable` has the number of items of each stratum that can be drawn, `stratum_of` the stratum
    of each item (-1: it cannot).
    """
    barred = np.full(stratum_of.size, -1, np.int32)
    available = np.empty(drawable.size, np.int64)
    last = -1
    for row in range(user.size):
        u = user[row]
        if u != last:
            last = u
            available[:] = drawable
            for j in range(train_start[u], train_start[u + 1]):
                i = train_item[j]
                barred[i] = u
                if stratum_of[i] >= 0:
                    available[stratum_of[i]] -= 1
            for j in range(test_start[u], test_start[u + 1]):
                i = test_item[j]
                if fixed[j] and barred[i] != u and stratum_of[i] >= 0:
                    available[stratum_of[i]] -= 1
        count[row] = available[max(stratum[row], 0)]


@kernel
def draw_others(
    u: int,
    low: int,
    high: int,
    cand: I32,
    cumulative: I64,
    stamp: int,
    n: int,
    available: int,
    spare: int,
    state: np.uint64,
    space: DrawSpace,
) -> int:
    """Draw n of the `available` candidates in cand[low:high] that are not barred; return how many.

    Few of many: draw, and draw again what is barred or taken. Else each candidate in turn is
    taken with the probability that it still has (Knuth's selection sampling), or, with weights,
    by an exponential clock that runs at the speed of its weight: the same distribution as drawing
    one after the other. `cumulative` holds summed weights up to each candidate, or nothing;
    `spare` is the weight that is left to draw from at the least.
    """
    barred, taken, out, clock = space
    size = high - low
    weighted = cumulative.size > 0
    base = cumulative[low] if weighted else 0
    total = cumulative[high] - base if weighted else size
    count = 0
    if n == available and not weighted:
        for c in range(low, high):
            if barred[cand[c]] != u:
                out[count] = cand[c]
                count += 1
        return count
    if 4 * n <= available and (16 * spare >= total if weighted else 2 * available >= size):
        step = 0
        while count < n:
            bits = second(state, step)
            step += 1
            if weighted:
                target = base + np.int64(bits % np.uint64(total))
                c = first_from(cumulative, low + 1, high + 1, int(target) + 1) - 1
            else:
                c = low + int(((bits >> _32) * np.uint64(size)) >> _32)
            i = cand[c]
            if barred[i] != u and taken[i] != stamp:
                taken[i] = stamp
                out[count] = i
                count += 1
        return count
    if not weighted:
        left = available
        for c in range(low, high):
            i = cand[c]
            if barred[i] != u:
                bits = second(state, int(i))
                if np.int64(((bits >> _32) * np.uint64(left)) >> _32) < n - count:
                    out[count] = i
                    count += 1
                left -= 1
        return count
    rows = 0
    for c in range(low, high):
        i = cand[c]
        weight = cumulative[c + 1] - cumulative[c]
        if barred[i] != u and weight > 0:
            chance = (np.float64(second(state, int(i)) >> _11) + 0.5) * 2.0**-53
            clock[rows] = -np.log(chance) / weight
            out[rows] = i
            rows += 1
    sort_by(clock, out, 0, rows)
    return n


@kernel
def free_weight(u: int, pool: Pool, of: DrawWeights, rows: Barred, loose: I64) -> None:
    """Write at least how much weight each stratum keeps when what is barred for a user is taken."""
    for s in range(loose.size):
        loose[s] = of.cumulative[pool.cand_start[s + 1]] - of.cumulative[pool.cand_start[s]]
    for j in range(rows.train_start[u], rows.train_start[u + 1]):
        i = rows.train_item[j]
        if pool.stratum[i] >= 0:
            loose[pool.stratum[i]] -= of.weight[i]
    for j in range(rows.test_start[u], rows.test_start[u + 1]):
        i = rows.test_item[j]
        if rows.fixed[j] and pool.stratum[i] >= 0:
            loose[pool.stratum[i]] -= of.weight[i]


@kernel
def draw_lists(
    user: I32,
    anchor: I32,
    stratum: I32,
    lo: int,
    hi: int,
    n: int,
    available: I64,
    key: np.uint64,
    fresh: bool,
    pool: Pool,
    weights: DrawWeights,
    rows: Barred,
    start: I64,
    item: I32,
) -> None:
    """Write the targets of lists lo..hi, ascending in each, where `start` says. n < 0: all."""
    item_stratum, cand, cand_start = pool
    weight, cumulative, heaviest = weights
    train_start, train_item, test_start, test_item, fixed = rows
    items = item_stratum.size
    barred, others = np.full(items, -1, np.int32), np.empty(cand.size, np.int32)
    clock = np.empty(cand.size if cumulative.size else 0, np.float64)
    space = DrawSpace(barred, np.full(items, -1, np.int64), others, clock)
    loose = np.zeros(cand_start.size - 1, np.int64)
    heads = np.zeros(HEADS + 1, np.int64)
    last = -1
    for row in range(lo, hi):
        u = user[row]
        if u != last:
            last = u
            bar(u, rows, barred)
            if weight.size:
                free_weight(u, pool, weights, rows, loose)
        s = max(stratum[row], 0)
        low, high = cand_start[s], cand_start[s + 1]
        salt = anchor[row] + 1 if fresh else 0
        state = first(key, (np.int64(u) * (items + 1) + salt) * (cand_start.size - 1) + s)
        spare = loose[s] - heaviest[s] if weight.size else 0
        free = available[row]
        number = free if n < 0 else min(n, free)
        count = draw_others(u, low, high, cand, cumulative, row, number, free, spare, state, space)
        begin = start[row - lo]
        for c in range(count):
            item[begin + c] = others[c]
        end = begin + count
        if anchor[row] >= 0:
            item[end] = anchor[row]
            end += 1
        else:
            for j in range(test_start[u], test_start[u + 1]):
                i = test_item[j]
                if (
                    fixed[j]
                    and item_stratum[i] == s
                    and not in_sorted(train_item, train_start[u], train_start[u + 1], i)
                ):
                    item[end] = i
                    end += 1
        if ascend(item, begin, begin + count):
            merge_tail(item, begin, begin + count, end, others)
        else:
            spread(item, begin, end, items, others, heads)
            sort_rising(item, begin, end)


@kernel
def ascend(item: I32, low: int, high: int) -> bool:
    """Tell whether item[low:high] ascends."""
    c = low + 1
    while c < high and item[c - 1] <= item[c]:
        c += 1
    return c >= high


@kernel
def spread(item: I32, low: int, high: int, items: int, space: I32, heads: I64) -> None:
    """Bring item[low:high] nearly in order, by the leading bits of the numbers below `items`."""
    shift = 0
    while (items - 1) >> shift >= HEADS:
        shift += 1
    heads[:] = 0
    for c in range(low, high):
        space[c - low] = item[c]
        heads[(item[c] >> shift) + 1] += 1
    for h in range(HEADS):
        heads[h + 1] += heads[h]
    for c in range(high - low):
        h = space[c] >> shift
        item[low + heads[h]] = space[c]
        heads[h] += 1


@kernel
def merge_tail(item: I32, low: int, middle: int, high: int, space: I32) -> None:
    """Merge item[middle:high] into item[low:middle]; both ascend."""
    if middle in (low, high) or item[middle - 1] < item[middle]:
        return
    size = high - middle
    for c in range(size):
        space[c] = item[middle + c]
    a, b, position = middle - 1, size - 1, high - 1
    while b >= 0:
        if a >= low and item[a] > space[b]:
            item[position] = item[a]
            a -= 1
        else:
            item[position] = space[b]
            b -= 1
        position -= 1


@kernel
def meet_targets(
    user: I32,
    start: I64,
    item: I32,
    judged_start: I64,
    judged_item: I32,
    missed: U8,
    lo: int,
    hi: int,
    first_row: I64,
    judgment: I64,
) -> int:
    """Find the judgments among the targets of lists lo..hi; both ascend by item.

    Judgments marked in `missed` (if any are) come along even where they are no targets.
    """
    count = 0
    for row in range(lo, hi):
        u = user[row]
        position, end = start[row - lo], start[row - lo + 1]
        for j in range(judged_start[u], judged_start[u + 1]):
            while position < end and item[position] < judged_item[j]:
                position += 1
            if (position < end and item[position] == judged_item[j]) or (missed.size and missed[j]):
                judgment[count] = j
                count += 1
        first_row[row - lo + 1] = count
    return count


@kernel
def first_trained(user: I32, start: I64, item: I32, train_start: I64, train_item: I32) -> int:
    """Return the first list that holds an item of its user's training ratings, or -1."""
    for row in range(user.size):
        low, high = train_start[user[row]], train_start[user[row] + 1]
        for position in range(start[row], start[row + 1]):
            if in_sorted(train_item, low, high, item[position]):
                return row
    return -1
