"""Kernels of the search for near-duplicate users: min-hashes, overlaps, and their chance."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F32, F64, I32, I64, U32, U64, Mask
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, mix, second
from unskew.splits.diagnosis.kernels import UserRows

SEEDS = 3
"""The rarest common items, whose other raters show what goes with them."""
RATERS = 60
"""The most other raters of each whose items are counted."""
VISITED = 400
"""The most raters of each that are looked at for that."""
PRIOR, PRIOR_WEIGHT = 0.5, 4.0
"""The least chance to hold an item before others are looked at, and how many others it counts
for."""
AGREE, AGREE_WEIGHT = 0.7, 2.0
"""The same for equal values and for a usual time apart; others count by common items."""
HABIT_MARGIN = 0.1
"""What is added to the chance of equal values: people agree on items more than habits tell."""


@kernel
def exponentials(key: np.uint64, weight: F64, table: F32) -> None:
    """Fill in exponential times of rate `weight`.

    The least of a set is that of each of its items with probability in proportion to its weight.
    """
    for i in range(table.shape[0]):
        state = first(key, i)
        for h in range(table.shape[1]):
            u = (np.float64(second(state, h) >> np.uint64(11)) + 0.5) * 2.0**-53
            table[i, h] = -np.log(u) / weight[i]


@kernel
def lower_signatures(
    low: int, mask: Mask, start: I64, item: I32, table: U32, signature: U32
) -> None:
    """Lower the least times of wanted users, from number `low` on, to those of a part's items.

    Times are the bits of positive floats, which are in the same order and quicker to compare.
    """
    for index in range(signature.shape[0]):
        if not mask[low + index]:
            continue
        row = signature[index]
        for i in range(start[low + index], start[low + index + 1]):
            times = table[item[i]]
            for h in range(table.shape[1]):
                row[h] = min(row[h], times[h])


@kernel
def band_keys(signature: U32, rows: I64, width: int, low: int, out: U64) -> None:
    """Fill in a key for each band of min-hashes of some rows, from place `low` on."""
    for index in range(rows.size):
        for band in range(out.shape[0]):
            key = np.uint64(band)
            for h in range(band * width, (band + 1) * width):
                key = mix(key ^ np.uint64(signature[rows[index], h]))
            out[band, low + index] = key


@kernel
def meet(left: U64, right: U64, crowd: int) -> tuple[I64, I64]:
    """Return which entries of both sides have equal keys, without keys that are common.

    Common are those that more than `crowd` pairs share.
    """
    size = 16
    while size < 2 * right.size:
        size *= 2
    slot, chain = np.full(size, -1, np.int64), np.full(right.size, -1, np.int64)
    rows = np.zeros(right.size, np.int64)  # of a key: entries of the right, at its first one
    for j in range(right.size):
        position = np.int64(right[j] & np.uint64(size - 1))
        while slot[position] >= 0 and right[slot[position]] != right[j]:
            position = (position + 1) & (size - 1)
        if slot[position] < 0:
            slot[position] = j
        else:
            chain[j] = chain[slot[position]]
            chain[slot[position]] = j
        rows[slot[position]] += 1
    head, matches = np.full(left.size, -1, np.int64), np.zeros(right.size, np.int64)
    for i in range(left.size):
        position = np.int64(left[i] & np.uint64(size - 1))
        while slot[position] >= 0 and right[slot[position]] != left[i]:
            position = (position + 1) & (size - 1)
        if slot[position] >= 0:
            head[i] = slot[position]
            matches[slot[position]] += 1
    total = 0
    for i in range(left.size):
        if head[i] >= 0 and rows[head[i]] * matches[head[i]] <= crowd:
            total += rows[head[i]]
    a, b = np.empty(total, np.int64), np.empty(total, np.int64)
    n = 0
    for i in range(left.size):
        if head[i] >= 0 and rows[head[i]] * matches[head[i]] <= crowd:
            j = head[i]
            while j >= 0:
                a[n], b[n] = i, j
                n += 1
                j = chain[j]
    return a, b


@kernel
def overlaps(pairs: I32, start: I64, item: I32, test_start: I64, test_item: I32) -> I64:
    """Count the items of the first of each pair that the other has: in the test, in training."""
    result = np.zeros((pairs.shape[0], 2), np.int64)
    for p in range(pairs.shape[0]):
        u, v = pairs[p, 0], pairs[p, 1]
        i, end = start[u], start[u + 1]
        j, last = test_start[v], test_start[v + 1]
        k, stop = start[v], start[v + 1]
        while i < end:
            number = item[i]
            while j < last and test_item[j] < number:
                j += 1
            while k < stop and item[k] < number:
                k += 1
            if j < last and test_item[j] == number:
                result[p, 0] += 1
            elif k < stop and item[k] == number:
                result[p, 1] += 1
            i += 1
    return result


@kernel
def draws_for(counts: F64, total: float, sizes: F64, out: F64) -> None:
    """Fill in how many draws by popularity give so many different items."""
    for s in range(sizes.size):
        low, high = 0.0, 1.0
        for _ in range(60):
            different = 0.0
            for i in range(counts.size):
                different += 1.0 - np.exp(-high * counts[i] / total)
            if different >= sizes[s]:
                break
            high *= 2.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            different = 0.0
            for i in range(counts.size):
                different += 1.0 - np.exp(-middle * counts[i] / total)
            if different < sizes[s]:
                low = middle
            else:
                high = middle
        out[s] = 0.5 * (low + high)


@kernel
def compare_rows(
    rows: UserRows,
    user: int,
    items: I32,
    values: F64,
    times: I64,
    n: int,
    width: int,
    skip: I32,
    counts: F64,
    apart: I64,
) -> tuple[int, int, int, int]:
    """Compare an account with wanted items: mark those that it holds.

    Returns how many it holds, without those to skip; how many of all it holds; with the same value;
    and how many at the usual time apart, within `width`. `apart` is working space.
    """
    start, item, value, time = rows
    overlap, common, same = 0, 0, 0
    i, end = start[user], start[user + 1]
    for j in range(n):
        while i < end and item[i] < items[j]:
            i += 1
        if i < end and item[i] == items[j]:
            counts[j] += 1.0
            same += value[i] == values[j]
            if time.size:
                apart[common] = time[i] - times[j]
            common += 1
            overlap += items[j] != skip[0] and items[j] != skip[1] and items[j] != skip[2]
    if common == 0 or time.size == 0:
        return overlap, common, same, 0
    gap = 1
    while gap < common // 9:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's method
        for x in range(gap, common):
            d, y = apart[x], x
            while y >= gap and apart[y - gap] > d:
                apart[y] = apart[y - gap]
                y -= gap
            apart[y] = d
        gap //= 3
    near = 0
    for x in range(common):
        near += abs(apart[x] - apart[common // 2]) <= width
    return overlap, common, same, near


@kernel
def improbability(chance: F64, n: int, number: float) -> float:
    """Return Chernoff's bound for that many of independent events, as a power of ten."""
    mean = 0.0
    for i in range(n):
        mean += chance[i]
    if number <= mean or n == 0:
        return 0.0
    low, high = 0.0, 60.0
    for _ in range(80):
        s = 0.5 * (low + high)
        expected = 0.0
        for i in range(n):
            up = chance[i] * np.exp(s)
            expected += up / (1.0 - chance[i] + up)
        if expected < number:
            low = s
        else:
            high = s
    s = 0.5 * (low + high)
    bound = s * number
    for i in range(n):
        bound -= np.log(1.0 - chance[i] + chance[i] * np.exp(s))
    return float(bound / np.log(10.0))


@kernel
def agreement(number: int, matches: int, chance: float) -> float:
    """Return how improbable so many matches are, each with the same chance, as a power of ten."""
    share = matches / max(number, 1)
    if number == 0 or share <= chance or chance >= 1.0:
        return 0.0
    result = share * np.log(share / chance)
    if share < 1.0:
        result += (1.0 - share) * np.log((1.0 - share) / (1.0 - chance))
    return float(number * result / np.log(10.0))


@kernel
def same_by_habit(rows: UserRows, user: int, items: I32, values: F64, n: int) -> float:
    """Return the chance of equal values if both keep their habits and forget the items."""
    start, item, value, _ = rows
    mine, yours = np.empty(n), np.empty(n)
    common = 0
    i, end = start[user], start[user + 1]
    for j in range(n):
        while i < end and item[i] < items[j]:
            i += 1
        if i < end and item[i] == items[j]:
            mine[common], yours[common] = value[i], values[j]
            common += 1
    equal = 0.0
    for a in range(common):
        for b in range(common):
            equal += mine[a] == yours[b]
    return equal / max(common * common, 1)


@kernel
def _seeds(items: I32, n: int, mine: F64, item_start: I64, skip: I32) -> None:
    """Fill in the rarest common items that others have too."""
    for s in range(SEEDS):
        best = np.int64(2**62)
        for j in range(n):
            i = items[j]
            size = item_start[i + 1] - item_start[i]
            fresh = i != skip[0] and i != skip[1] and i != skip[2]
            if mine[j] > 0.0 and fresh and 3 <= size < best:
                best = size
                skip[s] = i


@kernel
def _weigh(
    u: int,
    v: int,
    items: I32,
    values: F64,
    times: I64,
    n: int,
    train: UserRows,
    union: UserRows,
    item_start: I64,
    raters: I32,
    draws: float,
    width: int,
    alike: float,
    out: F64,
) -> None:
    """Fill in how improbable it is that u agrees with so many of the wanted rows, and of whom."""
    count, mine, apart = np.zeros(n), np.zeros(n), np.empty(n, np.int64)
    skip, mine_size = np.full(SEEDS, -1, np.int32), train.start[u + 1] - train.start[u]
    _, common, same, near = compare_rows(
        train, u, items, values, times, n, width, skip, mine, apart
    )
    _seeds(items, n, mine, item_start, skip)
    others, accounts = np.zeros(SEEDS * RATERS), np.int64(0)
    seen = np.full(SEEDS * RATERS, -1, np.int32)
    all_common, all_same, all_near = 0, 0, 0
    for s in range(SEEDS):
        if skip[s] < 0:
            continue
        low, high = item_start[skip[s]], item_start[skip[s] + 1]
        step = max((high - low) / VISITED, 1.0)
        before = accounts
        for r in range(min(VISITED, high - low)):
            w = raters[low + np.int64(r * step)]
            # The less active hold less of anything: they say nothing about this account.
            size = union.start[w + 1] - union.start[w]
            is_excluded = w in (u, v) or 2 * size < mine_size
            for x in range(accounts):
                is_excluded = is_excluded or seen[x] == w
            if not is_excluded and accounts - before < RATERS:
                seen[accounts] = w
                overlap, c, e, a = compare_rows(
                    union, w, items, values, times, n, width, skip, count, apart
                )
                others[accounts] = overlap
                accounts += 1
                if c >= 3:  # of fewer the usual time apart is no measure
                    all_common += c
                    all_same += e
                    all_near += a
    chance, m, k = np.empty(n), 0, 0.0
    for j in range(n):
        i = items[j]
        if i != skip[0] and i != skip[1] and i != skip[2]:
            popular = 1.0 - np.exp(-draws * (item_start[i + 1] - item_start[i]) / raters.size)
            prior = max(PRIOR, popular)
            guess = (count[j] + prior * PRIOR_WEIGHT) / (accounts + PRIOR_WEIGHT)
            chance[m] = min(max(popular, guess), 1.0 - 1e-9)
            k += mine[j]
            m += 1
    weight = AGREE_WEIGHT * n
    by_others = (all_same + AGREE * weight) / (all_common + weight)
    by_habit = same_by_habit(train, u, items, values, n)
    out[0] = improbability(chance, m, k)
    out[0] += agreement(common, same, max(by_others, by_habit) + HABIT_MARGIN)
    out[0] += agreement(common, near, (all_near + AGREE * weight) / (all_common + weight))
    out[1] = accounts
    out[2] = 0.0
    for x in range(accounts):
        out[2] += others[x] >= alike * k


@kernel
def _merge(v: int, train: UserRows, test: UserRows, items: I32, values: F64, times: I64) -> int:
    """Fill in the rows of both parts of a user in order of items, each once; return how many."""
    start, item, value, time = train
    test_start, test_item, test_value, test_time = test
    n, i, j = 0, start[v], test_start[v]
    while i < start[v + 1] or j < test_start[v + 1]:
        take_test = i == start[v + 1] or (j < test_start[v + 1] and test_item[j] <= item[i])
        if take_test:
            if i < start[v + 1] and test_item[j] == item[i]:
                i += 1
            items[n], values[n] = test_item[j], test_value[j]
            if time.size:
                times[n] = test_time[j]
            j += 1
        else:
            items[n], values[n] = item[i], value[i]
            if time.size:
                times[n] = time[i]
            i += 1
        n += 1
    return n


@kernel
def united(train: UserRows, test: UserRows, union: UserRows) -> None:
    """Fill in the rows of both parts, by user and item, each pair once."""
    for v in range(train.start.size - 1):
        low = union.start[v]
        size = train.start[v + 1] - train.start[v] + test.start[v + 1] - test.start[v]
        items, values = union.item[low : low + size], union.value[low : low + size]
        n = _merge(v, train, test, items, values, union.time[low : low + size])
        union.start[v + 1] = low + n


@kernel
def evidence(
    pairs: I32,
    train: UserRows,
    test: UserRows,
    union: UserRows,
    item_start: I64,
    raters: I32,
    draws: F64,
    width: int,
    alike: float,
    out: F64,
) -> None:
    """Fill in for each pair how improbable the overlap is, and how many others overlap alike.

    With the test part of the user or with all, the less probable; then how many others were looked
    at, and how many of these are alike. `union` has the rows of both parts.
    """
    for p in range(pairs.shape[0]):
        u, v = pairs[p, 0], pairs[p, 1]
        size = max(union.start[v + 1] - union.start[v], test.start[v + 1] - test.start[v])
        items, values = np.empty(size, np.int32), np.empty(size)
        times, part = np.zeros(size, np.int64), np.zeros(3)
        for both_parts in range(2):
            start, item, value, time = union if both_parts else test
            low = start[v]
            n = start[v + 1] - low
            for j in range(n):
                items[j], values[j] = item[low + j], value[low + j]
                if train.time.size:
                    times[j] = time[low + j]
            _weigh(
                u, v, items, values, times, n, train, union, item_start, raters,
                draws[p], width, alike, part,
            )  # fmt: skip
            if both_parts == 0 or part[0] > out[p, 0]:
                out[p, 0], out[p, 1], out[p, 2] = part[0], part[1], part[2]
