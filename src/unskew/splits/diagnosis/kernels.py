"""Kernels of the diagnosis: one pass over the rows of each user, or of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, U8
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, second
from unskew.engine.sort import sort_by

_NEVER = np.int64(2**62)


class UserRows(NamedTuple):
    """Rows by user and item; times are empty where there are none."""

    start: I64
    item: I32
    value: F64
    time: I64


@kernel
def matched(rows: UserRows, others: UserRows) -> U8:
    """Mark rows that the other part has too: 1 the pair, 2 its value, 4 its time.

    Both have a pair once.
    """
    start, item, value, time = rows
    other_start, other_item, other_value, other_time = others
    mark = np.zeros(item.size, np.uint8)
    timed = time.size > 0 and other_time.size > 0
    for u in range(start.size - 1):
        j, last = other_start[u], other_start[u + 1]
        for i in range(start[u], start[u + 1]):
            while j < last and other_item[j] < item[i]:
                j += 1
            if j < last and other_item[j] == item[i]:
                mark[i] = 1
                if value[i] == other_value[j]:
                    mark[i] |= 2
                if timed and time[i] == other_time[j]:
                    mark[i] |= 4
    return mark


@kernel
def targets_in_time(
    start: I64, time: I64, train_start: I64, train_time: I64, last: I64, earliest: I64, gap: int
) -> tuple[int, int, int, float, int]:
    """Look at where the test rows of each user stand among all rows of the user.

    `last` is the time of the last training row of each user, `earliest` that of the first test row.
    Returns how many test rows a later training row of the same session follows; how many users with
    a session across the cut there are, and of how many; the sum of the places of test rows of users
    with training rows, from 0 (first) to 1 (last of all rows of the user); and how many these are.
    """
    longest = 1
    for u in range(start.size - 1):
        longest = max(longest, start[u + 1] - start[u] + train_start[u + 1] - train_start[u])
    key, name = np.empty(longest, np.int64), np.empty(longest, np.int32)
    torn, crossing, users, rows = 0, 0, 0, 0
    places = 0.0
    for u in range(start.size - 1):
        a, b = train_start[u + 1] - train_start[u], start[u + 1] - start[u]
        if a == 0 or b == 0:
            continue
        users += 1
        rows += b
        if last[u] <= earliest[u]:
            crossing += earliest[u] - last[u] <= gap
            places += (a * b + b * (b - 1) / 2) / (a + b - 1)
            continue
        for i in range(a):
            key[i], name[i] = train_time[train_start[u] + i], i
        for i in range(b):
            key[a + i], name[a + i] = time[start[u] + i], a + i
        sort_by(key, name, 0, a + b)
        later, tested, together = -_NEVER, False, 0  # of the session, seen from its end
        for i in range(a + b - 1, -1, -1):
            if i < a + b - 1 and key[i + 1] - key[i] > gap:
                later, tested = -_NEVER, False
            if name[i] < a:
                later = max(later, key[i])
            else:
                places += i / (a + b - 1)
                torn += key[i] < later
                tested = True
            together = 1 if tested and later > -_NEVER else together
        crossing += together
    return torn, crossing, users, places, rows


@kernel
def history(
    start: I64, item: I32, time: I64, items: int, gap: int, gaps: I64, largest: I64
) -> tuple[int, int, int, int]:
    """Pass over each user's rows in order of time.

    Fills `gaps` with the time between neighbouring rows of a user, and `largest` with the rows of
    each user's largest session. Returns how many rows share their time with the row of the user
    before, how many repeat its item, how many repeat any earlier item of the user, and how many
    sessions there are.
    """
    seen = np.full(items, -1, np.int32)
    tied, again, repeats, sessions, position = 0, 0, 0, 0, 0
    for u in range(start.size - 1):
        size = 0
        for i in range(start[u], start[u + 1]):
            if i > start[u]:
                gaps[position] = time[i] - time[i - 1]
                tied += gaps[position] == 0
                again += item[i] == item[i - 1]
                position += 1
            if i == start[u] or gaps[position - 1] > gap:
                sessions += 1
                size = 0
            size += 1
            largest[u] = max(largest[u], size)
            repeats += seen[item[i]] == u
            seen[item[i]] = u
    return tied, again, repeats, sessions


@kernel
def swapped_distances(
    start: I64, item: I32, late: U8, items: int, key: np.uint64, draws: int, share: float
) -> F64:
    """Return the distance of two item distributions, and as many after blocks changed sides.

    Rows are by user; `late` marks those of the second distribution. A user's rows of one side are a
    block. In each draw a user with both blocks swaps them with probability 1/2; the only block of
    any other user goes to the second side with probability `share`.
    """
    result = np.zeros(draws + 1)
    sides = np.zeros((2, items))
    for d in range(draws + 1):
        sides[:] = 0.0
        for u in range(start.size - 1):
            if start[u] == start[u + 1]:
                continue
            low, high = False, False
            for i in range(start[u], start[u + 1]):
                low |= late[i] == 0
                high |= late[i] == 1
            flip = 0
            if d > 0:
                u01 = np.float64(second(first(key, u), d) >> np.uint64(11)) * 2.0**-53
                if low and high:
                    flip = 1 if u01 < 0.5 else 0
                else:
                    flip = (1 if u01 < share else 0) ^ (1 if high else 0)
            for i in range(start[u], start[u + 1]):
                sides[late[i] ^ flip, item[i]] += 1.0
        totals = sides[0].sum(), sides[1].sum()
        if totals[0] == 0.0 or totals[1] == 0.0:
            result[d] = np.nan
            continue
        for i in range(items):
            result[d] += 0.5 * abs(sides[0, i] / totals[0] - sides[1, i] / totals[1])
    return result


@kernel
def constant_values(code: I32, value: F64, out: F64) -> bool:
    """Fill in the one value of each user or item; tell whether it is one.

    NaN is no value, and a negative code nobody.
    """
    for i in range(code.size):
        if code[i] < 0 or np.isnan(value[i]):
            continue
        before = out[code[i]]
        if np.isnan(before):
            out[code[i]] = value[i]
        elif abs(before - value[i]) > 1e-9 * max(abs(before), abs(value[i])):
            return False
    return True


@kernel
def one_way_variance(code: I32, deviation: F64, total: F64, number: I64) -> float:
    """Return the sum of squares between groups; deviations are from the overall mean."""
    for i in range(code.size):
        total[code[i]] += deviation[i]
        number[code[i]] += 1
    between = 0.0
    for g in range(total.size):
        if number[g] > 0:
            between += total[g] * total[g] / number[g]
    return between
