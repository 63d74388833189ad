"""Kernels of ranking: exact top-k, and the ranks of judged items among all targets.

Items are ordered by falling score, equal scores by ascending number or, where `item_key` is
given, by a hash of user and item. NaN is no score: such items are left out and counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unskew._rng import first, second
from unskew.compiled import kernel

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Tile = NDArray[np.float64] | NDArray[np.float32]

SAMPLE = 128
RUN = 12
FILLED = -1e300
"""Scores from here down stand for what could not be scored and is filled up at random."""


@kernel
def sort_falling(score: F64, name: I32, n: int, more: F64, names: I32) -> None:
    """Sort the first n entries by falling score, stable; `more` and `names` are working space."""
    for low in range(0, n, RUN):
        for i in range(low + 1, min(low + RUN, n)):
            s, x = score[i], name[i]
            j = i
            while j > low and score[j - 1] < s:
                score[j], name[j] = score[j - 1], name[j - 1]
                j -= 1
            score[j], name[j] = s, x
    width = RUN
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            if middle >= high or score[middle - 1] >= score[middle]:
                continue
            size = middle - low
            for i in range(size):
                more[i], names[i] = score[low + i], name[low + i]
            a, b, at = 0, middle, low
            while a < size and b < high:
                if score[b] > more[a]:
                    score[at], name[at] = score[b], name[b]
                    b += 1
                else:
                    score[at], name[at] = more[a], names[a]
                    a += 1
                at += 1
            while a < size:
                score[at], name[at] = more[a], names[a]
                a += 1
                at += 1
        width *= 2


@kernel
def likely_limit(row: F64, n: int, k: int) -> float:
    """Return a score that about k of the first n entries, and a few more, are likely to exceed."""
    share = SAMPLE * k / n
    place = int(share + 3.0 * np.sqrt(share)) + 2
    if place > SAMPLE // 2:
        return -np.inf
    top = np.full(place, -np.inf)
    step = n / SAMPLE
    for s in range(SAMPLE):
        value = row[int(s * step)]
        if value > top[place - 1]:
            j = place - 1
            while j > 0 and top[j - 1] < value:
                top[j] = top[j - 1]
                j -= 1
            top[j] = value
    return float(top[place - 1])


@kernel
def best(
    row: F64, n: int, k: int, tied: bool, score: F64, name: I32, more: F64, names: I32
) -> int:  # fmt: skip
    """Write the k best of the first n entries and their places, in order; return how many.

    A sample gives a limit that few entries exceed; only these are sorted. Of the entries that
    equal the limit the first come first, unless ties are to be broken otherwise (`tied`): then
    all that equal the last one are written, and more than k may be returned.
    """
    limit = likely_limit(row, n, k)
    while True:
        above, equal = 0, 0
        for i in range(n):
            if row[i] > limit:
                score[above], name[above] = row[i], i
                above += 1
        if above < k:
            for i in range(n):
                if row[i] == limit and (tied or above + equal < k):
                    score[above + equal], name[above + equal] = limit, i
                    equal += 1
        if above + equal >= k or limit == -np.inf:
            break
        limit = -np.inf
    found = above + equal
    sort_falling(score, name, found, more, names)
    if tied:
        last = min(found, k)
        while last < found and last > 0 and score[last] == score[last - 1]:
            last += 1
        return last
    return min(found, k)


@kernel
def break_ties(score: F64, name: I32, n: int, state: np.uint64, item_key: I64) -> None:
    """Order equal scores by the hash of user and item; `name` holds item numbers."""
    low = 0
    while low < n:
        high = low + 1
        while high < n and score[high] == score[low]:
            high += 1
        for i in range(low + 1, high):
            x = name[i]
            bits = second(state, item_key[x])
            j = i
            while j > low and second(state, item_key[name[j - 1]]) > bits:
                name[j] = name[j - 1]
                j -= 1
            name[j] = x
        low = high


@kernel
def top_of_tile(
    tile: Tile, first_user: int, user: I32, stratum: I32, lo: int, hi: int, cand: I32,
    cand_start: I64, place: I32, home: I32, train_start: I64, train_item: I32, k: int,
    tie_key: np.uint64, user_key: I64, item_key: I64, item: I32, score: F64, unscored: I64,
) -> None:  # fmt: skip
    """Rank all candidates but the user's training items: lists lo..hi, k places each, -1 = empty.

    `place` is each candidate's place within its stratum.
    """
    size = 0
    for s in range(cand_start.size - 1):
        size = max(size, cand_start[s + 1] - cand_start[s])
    row, value, more = np.empty(size), np.empty(size), np.empty(size)
    name, names = np.empty(size, np.int32), np.empty(size, np.int32)
    tied = item_key.size > 0
    for r in range(lo, hi):
        u = user[r]
        s = max(stratum[r], 0)
        low, n = cand_start[s], cand_start[s + 1] - cand_start[s]
        scores = tile[u - first_user]
        for c in range(n):
            row[c] = scores[cand[low + c]]
        known = 0
        for j in range(train_start[u], train_start[u + 1]):
            if home[train_item[j]] == s:
                row[place[train_item[j]]] = np.nan
                known += 1
        found = best(row, n, min(k, n), tied, value, name, more, names) if n else 0
        for c in range(found):
            name[c] = cand[low + name[c]]
        if tied:
            break_ties(value, name, found, first(tie_key, user_key[u]), item_key)
        found = min(found, k)
        at = (r - lo) * k
        for c in range(found):
            item[at + c], score[at + c] = name[c], value[c]
        for c in range(found, k):
            item[at + c], score[at + c] = -1, np.nan
        without = 0
        for c in range(n):
            without += not row[c] > FILLED
        unscored[r - lo] = without - known


@kernel
def comes_before(a: float, i: int, b: float, j: int, state: np.uint64, item_key: I64) -> bool:
    """Tell whether item i with score a ranks above item j with score b."""
    if a != b:
        return a > b
    if item_key.size:
        p, q = second(state, item_key[i]), second(state, item_key[j])
        if p != q:
            return bool(p < q)
    return i < j


@kernel
def ranks_in_tile(
    tile: Tile, first_user: int, user: I32, stratum: I32, lo: int, hi: int, cand: I32,
    cand_start: I64, home: I32, train_start: I64, train_item: I32, judged_start: I64,
    judged_item: I32, tie_key: np.uint64, user_key: I64, item_key: I64, start: I64, rank: I32,
    judgment: I32, scored: I64,
) -> int:  # fmt: skip
    """Rank the judged items of lists lo..hi among all candidates but the user's training items.

    Each target is counted at the first judged item that it stands above; sums of these counts
    are the ranks, exact at any depth.
    """
    known = np.full(home.size, -1, np.int32)
    most = 0
    for r in range(lo, hi):
        most = max(most, judged_start[r + 1] - judged_start[r])
    value, more = np.empty(most), np.empty(most)
    row, rows = np.empty(most, np.int32), np.empty(most, np.int32)
    name = np.empty(most, np.int32)
    above = np.empty(most + 1, np.int64)
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        s = max(stratum[r], 0)
        scores = tile[u - first_user]
        state = first(tie_key, user_key[u]) if item_key.size else tie_key
        for j in range(train_start[u], train_start[u + 1]):
            known[train_item[j]] = u
        n = 0
        for j in range(judged_start[r], judged_start[r + 1]):
            i = judged_item[j]
            if home[i] == s and known[i] != u and not np.isnan(scores[i]):
                value[n], row[n] = scores[i], j
                n += 1
        sort_falling(value, row, n, more, rows)
        for c in range(n):
            name[c] = judged_item[row[c]]
        if item_key.size:
            order_ties(value, name, row, n, state, item_key)
        above[: n + 1] = 0
        total = 0
        for c in range(cand_start[s], cand_start[s + 1]):
            i = cand[c]
            x = np.float64(scores[i])
            if known[i] == u or np.isnan(x):
                continue
            total += 1
            low, high = 0, n
            while low < high:
                middle = (low + high) // 2
                if comes_before(x, i, value[middle], name[middle], state, item_key):
                    high = middle
                else:
                    low = middle + 1
            above[low] += 1
        better = 0
        for c in range(n):
            better += above[c]
            rank[hit], judgment[hit] = better + 1, row[c]
            hit += 1
        start[r - lo + 1] = hit
        scored[r - lo] = total
    return hit


@kernel
def order_ties(score: F64, name: I32, row: I32, n: int, state: np.uint64, item_key: I64) -> None:
    """Order equal scores by the hash of user and item; `row` goes along."""
    for i in range(1, n):
        s, x, y = score[i], name[i], row[i]
        j = i
        while j > 0 and comes_before(s, x, score[j - 1], name[j - 1], state, item_key):
            score[j], name[j], row[j] = score[j - 1], name[j - 1], row[j - 1]
            j -= 1
        score[j], name[j], row[j] = s, x, y


@kernel
def rank_lists(
    tile: Tile, first_user: int, user: I32, lo: int, hi: int, start: I64, target: I32,
    judged_start: I64, judged_item: I32, k: int, tie_key: np.uint64, user_key: I64, item_key: I64,
    item: I32, score: F64, unscored: I64, found_start: I64, rank: I32, judgment: I32, scored: I64,
) -> int:  # fmt: skip
    """Rank the given targets of lists lo..hi: k places each, and the ranks of judged items."""
    size = 0
    for r in range(hi - lo):
        size = max(size, start[r + 1] - start[r])
    value, more = np.empty(size), np.empty(size)
    name, names = np.empty(size, np.int32), np.empty(size, np.int32)
    hit = 0
    found_start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        scores = tile[u - first_user]
        n, without = 0, 0
        for t in range(start[r - lo], start[r - lo + 1]):
            x = np.float64(scores[target[t]])
            without += not x > FILLED
            if not np.isnan(x):
                value[n], name[n] = x, target[t]
                n += 1
        scored[r - lo] = n
        unscored[r - lo] = without
        sort_falling(value, name, n, more, names)
        if item_key.size:
            break_ties(value, name, n, first(tie_key, user_key[u]), item_key)
        at = (r - lo) * k
        for c in range(min(n, k)):
            item[at + c], score[at + c] = name[c], value[c]
        for c in range(min(n, k), k):
            item[at + c], score[at + c] = -1, np.nan
        low, high = judged_start[r], judged_start[r + 1]
        if low < high:
            for c in range(n):
                j = low + np.searchsorted(judged_item[low:high], name[c])
                if j < high and judged_item[j] == name[c]:
                    rank[hit], judgment[hit] = c + 1, j
                    hit += 1
        found_start[r - lo + 1] = hit
    return hit
