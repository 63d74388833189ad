"""Kernels that number ids and put rows in order.

Where results are long, numpy makes them and the kernel fills them: numpy asks for large pages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64, U8
from unskew.engine.compiled import kernel, plain_kernel

FEW = 64  # rows of a group that are sorted by counting
LARGEST = np.int32(2**31 - 1)


@plain_kernel
def mark_present(values: I64, low: int, present: U8) -> None:
    """Mark which of low, low+1, … occur."""
    for i in range(values.size):
        present[values[i] - low] = 1


@kernel
def number_by_hash(values: I64) -> tuple[I32, I64]:
    """Number values in order of appearance (open addressing, doubling at half load)."""
    capacity = 1 << 12
    slots = np.full(capacity, -1, np.int32)
    distinct = np.empty(capacity, np.int64)
    count = 0
    codes = np.empty(values.size, np.int32)
    for i in range(values.size):
        value = values[i]
        h = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(capacity - 1))
        while slots[slot] >= 0 and distinct[slots[slot]] != value:
            slot = (slot + 1) & (capacity - 1)
        if slots[slot] < 0:
            slots[slot] = count
            distinct[count] = value
            count += 1
            codes[i] = count - 1
            if 2 * count > capacity:
                capacity *= 2
                slots = np.full(capacity, -1, np.int32)
                longer = np.empty(capacity, np.int64)
                for c in range(count):
                    longer[c] = distinct[c]
                distinct = longer
                for c in range(count):
                    h = np.uint64(distinct[c]) * np.uint64(0x9E3779B97F4A7C15)
                    slot = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(capacity - 1))
                    while slots[slot] >= 0:
                        slot = (slot + 1) & (capacity - 1)
                    slots[slot] = c
        else:
            codes[i] = slots[slot]
    return codes, distinct[:count].copy()


@plain_kernel
def recode(codes: I32, table: I32, result: I32) -> None:
    """Give every code its new number; -1 stays."""
    for i in range(codes.size):
        result[i] = table[codes[i]] if codes[i] >= 0 else -1


@plain_kernel
def group_starts(group: I32, groups: int) -> tuple[I64, bool]:
    """Return where each group's rows start (and the last end), and whether groups never go down."""
    start = np.zeros(groups + 1, np.int64)
    falls, run = 0, 0
    before = group[0] if group.size else 0
    for i in range(group.size):
        if group[i] != before:  # rows mostly come in runs: count those apart
            falls |= group[i] < before
            start[before + 1] += run
            run = 0
            before = group[i]
        run += 1
    if run:
        start[before + 1] += run
    for g in range(groups):
        start[g + 1] += start[g]
    return start, falls == 0


@plain_kernel
def count_ascending(values: I64) -> int:
    """Count the distinct values if they never go down, else return -1."""
    count = 0
    for i in range(values.size):
        if i == 0 or values[i] > values[i - 1]:
            count += 1
        elif values[i] < values[i - 1]:
            return -1
    return count


@plain_kernel
def ascending_runs(values: I64, distinct: I64, start: I64) -> None:
    """Write the distinct values, which never go down, and where each one's rows start."""
    run = 0
    for i in range(values.size):
        if i == 0 or values[i] > values[i - 1]:
            distinct[run] = values[i]
            start[run] = i
            run += 1
    start[run] = values.size


@kernel
def group_order(group: I32, start: I64, order: I64) -> None:
    """Write the rows group by group, in their input order inside each (a counting sort)."""
    position = start[:-1].copy()
    for i in range(group.size):
        g = group[i]
        order[position[g]] = i
        position[g] += 1


@plain_kernel
def are_places(start: I64, rank: I64, base: int) -> bool:
    """Tell whether every group's ranks are base, base + 1, … as they stand."""
    for g in range(start.size - 1):
        wrong = 0
        for i in range(start[g], start[g + 1]):
            wrong |= rank[i] - base - (i - start[g])
        if wrong != 0:
            return False
    return True


@kernel
def place_ranks(start: I64, rank: I64, order: I64) -> bool:
    """Place rows by rank where each group's ranks are a permutation of consecutive numbers.

    Returns False, with `order` unusable, as soon as one group's are not.
    """
    for g in range(start.size - 1):
        first, last = start[g], start[g + 1]
        if first == last:
            continue
        low = rank[first]
        for i in range(first, last):
            low = min(low, rank[i])
        for i in range(first, last):
            order[i] = -1
        for i in range(first, last):
            offset = rank[i] - low
            if offset >= last - first or order[first + offset] >= 0:
                return False
            order[first + offset] = i
    return True


@kernel
def _before(key: NDArray[Any], tie: I64, a: int, b: int) -> bool:
    return key[a] < key[b] or (key[a] == key[b] and tie.size > 0 and tie[a] < tie[b])


@kernel
def sort_within(start: I64, key: NDArray[Any], tie: I64, lo: int, hi: int, order: I64) -> int:
    """Sort the positions of groups lo..hi ascending by (key, tie), stable; return groups changed.

    `key` and `tie` lie group by group (an empty `tie` leaves equal keys as they come); `order`
    receives positions.
    """
    changed = 0
    scratch = np.empty(64, np.int64)
    for g in range(lo, hi):
        first, last = start[g], start[g + 1]
        size = last - first
        in_order = True
        for i in range(first, last):
            order[i] = i
            if i > first and _before(key, tie, i, i - 1):
                in_order = False
        if in_order:
            continue
        changed += 1
        if size > scratch.size:
            scratch = np.empty(2 * size, np.int64)
        # Insertion sort in runs of 16, then a bottom-up merge.
        for low in range(first, last, 16):
            for i in range(low + 1, min(low + 16, last)):
                row = order[i]
                j = i - 1
                while j >= low and _before(key, tie, row, order[j]):
                    order[j + 1] = order[j]
                    j -= 1
                order[j + 1] = row
        width = 16
        while width < size:
            for low in range(first, last, 2 * width):
                middle = min(low + width, last)
                high = min(low + 2 * width, last)
                if middle >= high:
                    continue
                for i in range(low, middle):
                    scratch[i - low] = order[i]
                a, b, to = 0, middle, low
                while a < middle - low and b < high:
                    left, right = scratch[a], order[b]
                    if _before(key, tie, right, left):
                        order[to] = right
                        b += 1
                    else:
                        order[to] = left
                        a += 1
                    to += 1
                while a < middle - low:
                    order[to] = scratch[a]
                    a += 1
                    to += 1
            width *= 2
    return changed


@kernel
def sort_items(
    start: I64, item: I32, value: F64, lo: int, hi: int, items: I32, values: F64, order: I64
) -> int:
    """Sort the rows of groups lo..hi by item, stable, into `items` and `values`.

    Returns how many rows repeat an item of their group. `order`, unless empty, receives where
    each row stood. Groups are small as a rule, and then
    counting how many rows go before each one is quickest: it needs no branch.
    """
    rank = np.empty(FEW, np.int32)
    taken = np.empty(FEW, np.int32)
    buffer = np.empty(FEW, np.int32)
    packed = np.empty(2 * FEW, np.int64)
    repeats = 0
    for g in range(lo, hi):
        first, last = start[g], start[g + 1]
        size = last - first
        rows = item[first:last]
        if size <= FEW:
            for j in range(FEW):
                buffer[j] = rows[j] if j < size else LARGEST
                rank[j] = 0
                taken[j] = 0
            eights = (size + 7) // 8 * 8  # whole vectors
            for i in range(size):
                for j in range(eights):
                    rank[j] += np.int32(buffer[j] > buffer[i])
            for j in range(size):
                to = first + rank[j] + taken[rank[j]]  # equal items in their order
                repeats += taken[rank[j]] > 0
                taken[rank[j]] += 1
                items[to] = buffer[j]
                values[to] = value[first + j]
                if order.size:
                    order[to] = first + j
            continue
        if size > packed.size:
            packed = np.empty(2 * size, np.int64)
        for j in range(size):
            packed[j] = (np.int64(rows[j]) << 32) | j
        gap = 1  # Shell's sort: item and place packed in one number, so it is stable
        while gap < size // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for j in range(gap, size):
                number = packed[j]
                i = j - gap
                while i >= 0 and packed[i] > number:
                    packed[i + gap] = packed[i]
                    i -= gap
                packed[i + gap] = number
            gap //= 3
        for j in range(size):
            row = first + (packed[j] & 0xFFFFFFFF)
            items[first + j] = item[row]
            values[first + j] = value[row]
            if order.size:
                order[first + j] = row
            repeats += j > 0 and packed[j] >> 32 == packed[j - 1] >> 32
    return repeats


@plain_kernel
def is_sorted(start: I64, item: I32) -> bool:
    """Tell whether the items of every group never go down."""
    for g in range(start.size - 1):
        falls = 0
        for i in range(start[g] + 1, start[g + 1]):
            falls |= item[i] < item[i - 1]
        if falls:
            return False
    return True


@kernel
def digest(user: I32, item: I32, value: I64) -> int:
    """Mix rows, in their order, into 63 bits."""
    h = np.uint64(0)
    for i in range(user.size):
        row = (np.uint64(user[i]) << np.uint64(32)) | np.uint64(np.uint32(item[i]))
        h = (h ^ row) * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(29)) ^ np.uint64(value[i])) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(32)
    return int(h >> np.uint64(1))


@plain_kernel
def repeated(start: I64, item: I32) -> tuple[int, int]:
    """Count rows that equal the row before them in their group; return the first one's row too."""
    count, example = 0, -1
    for g in range(start.size - 1):
        for i in range(start[g] + 1, start[g + 1]):
            if item[i] == item[i - 1]:
                if count == 0:
                    example = i
                count += 1
    return count, example


@plain_kernel
def seen_before(start: I64, item: I32, items: int, keep: U8) -> tuple[int, int]:
    """Find items that stand twice in a list (empty slots aside).

    `keep`, unless empty, receives 0 for each later occurrence. Returns their number and the first.
    """
    stamp = np.full(items, -1, np.int32)
    count, example = 0, -1
    for g in range(start.size - 1):
        for i in range(start[g], start[g + 1]):
            it = item[i]
            if it < 0:
                continue
            if stamp[it] == g:
                if count == 0:
                    example = i
                count += 1
                if keep.size:
                    keep[i] = 0
            stamp[it] = g
    return count, example


@kernel
def merged_values(first: I64, value: F64, largest: bool) -> F64:
    """Return the largest value, or the sum, of the rows from each entry of `first` to the next.

    Sums take the smallest value first, so that the order of rows does not show in the last bits.
    """
    merged = np.empty(first.size)
    for pair in range(first.size):
        low = first[pair]
        high = first[pair + 1] if pair + 1 < first.size else value.size
        merged[pair] = value[low]
        if high - low == 1:
            continue
        ordered = np.sort(value[low:high])
        merged[pair] = ordered[-1]
        if not largest:
            total = 0.0
            for number in ordered:
                total += number
            merged[pair] = total
    return merged


class PairRows(NamedTuple):
    """The rows of a log by user, item and time."""

    start: I64
    """Where each user's rows start; one more entry for the end."""
    row: I64
    item: I32
    time: I64


@kernel
def pairs_between(
    order: PairRows,
    first: int,
    last: int,
    only_new: bool,
    latest: bool,
    chosen: I64,
    head: I64,
    users: I32,
    items: I32,
    times: I64,
) -> int:
    """Fill in the pairs of the rows from `first` up to `last`, in the order given, and the rows.

    `only_new` leaves out pairs with a row before `first`. `times` receives the time of each pair's
    first row, or `latest`; `chosen` the rows, unless it is empty; `head` where each pair starts
    there, and the end. Returns the number of pairs.
    """
    start, row, item, time = order
    rows, pairs = 0, 0
    for u in range(start.size - 1):
        before, opened, is_included = -1, False, True
        for i in range(start[u], start[u + 1]):
            if item[i] != before:
                before, opened = item[i], False
                is_included = not only_new or row[i] >= first
            r = row[i]
            if not is_included or r < first or r >= last:
                continue
            if not opened:
                opened = True
                head[pairs] = rows
                users[pairs] = u
                items[pairs] = before
                times[pairs] = time[i]
                pairs += 1
            elif latest:
                times[pairs - 1] = time[i]
            if chosen.size:
                chosen[rows] = r
            rows += 1
    head[pairs] = rows
    return pairs


@kernel
def pairs_outside(
    order: PairRows, last: int, low: int, high: int, users: I32, items: I32, times: I64
) -> int:
    """Fill in the pairs with a row before `last` and none from `low` up to `high`.

    `times` receives the time of the first row of each; returns their number.
    """
    start, row, item, time = order
    pairs = 0
    for u in range(start.size - 1):
        i = start[u]
        while i < start[u + 1]:
            first, when, inside, it = row[i], time[i], False, item[i]
            while i < start[u + 1] and item[i] == it:
                inside |= low <= row[i] < high
                i += 1
            if first < last and not inside:
                users[pairs], items[pairs], times[pairs] = u, it, when
                pairs += 1
    return pairs


@kernel
def core_rows(
    user: I32, item: I32, users: int, items: int, minimum: I64, rounds: int
) -> tuple[U8, int]:
    """Mark the rows of users and items with enough marked rows; return the rounds it took.

    `minimum` holds what a user and what an item needs; `rounds` is the most rounds, -1 for any.
    """
    mask = np.ones(user.size, np.uint8)
    of_user, of_item = np.zeros(users, np.int64), np.zeros(items, np.int64)
    for i in range(user.size):
        of_user[user[i]] += 1
        of_item[item[i]] += 1
    done = 0
    while done != rounds:
        before_user, before_item = of_user.copy(), of_item.copy()
        removed = 0
        for i in range(user.size):
            if mask[i] and (before_user[user[i]] < minimum[0] or before_item[item[i]] < minimum[1]):
                mask[i] = 0
                of_user[user[i]] -= 1
                of_item[item[i]] -= 1
                removed += 1
        if removed == 0:
            break
        done += 1
    return mask, done


@kernel
def without_repeats(order: I64, user: I32, item: I32, time: I64, gap: int) -> U8:
    """Mark the rows that, in the given order, do not follow upon one of the same user and item.

    With a gap of 0 and more only rows within it after the row before are repeats.
    """
    mask = np.ones(user.size, np.uint8)
    for position in range(1, order.size):
        row, before = order[position], order[position - 1]
        again = user[row] == user[before] and item[row] == item[before]
        if again and (gap < 0 or time[row] - time[before] <= gap):
            mask[row] = 0
    return mask


@kernel
def count_ties(start: I64, score: F64) -> tuple[int, int, int, int]:
    """Look at the scores of lists, each from the first place down.

    Returns the first slot whose score exceeds the one above it (-1 if none does), how many slots
    have the score of one next to them, how many lists end so, and in how many of two or more
    places all scores are equal.
    """
    rise, tied, at_end, constant = -1, 0, 0, 0
    for row in range(start.size - 1):
        before = False
        first, stop = start[row], start[row + 1]
        for slot in range(first + 1, stop):
            same = score[slot] == score[slot - 1]
            tied += same + (same and not before)
            before = same
            if score[slot] > score[slot - 1] and rise < 0:
                rise = slot
        at_end += before
        constant += stop - first > 1 and score[first] == score[stop - 1] and before
    return rise, tied, at_end, constant
