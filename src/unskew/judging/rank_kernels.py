"""Kernels of ranking: exact top-k, and the ranks of judged items among all targets.

Items are ordered by falling score, equal scores by ascending number or, where `item_key` is
given, by a hash of user and item. NaN is no score: such items are left out and counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, U32, Tile
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, second
from unskew.engine.sort import RUN, first_from, sort_by, sort_falling

SAMPLE = 256
HIGHEST = np.int64(0x7FFFFFFFFFFFFFFF)
LOWEST = -1.7976931348623157e308
FILLED = -1e300
"""Scores from here down stand for what could not be scored and is filled up at random."""
WORST = -9.999999999999999e299
"""The next number above: what stands for a score of -inf among these."""
FEW = 16
"""Judged items of a list up to which their ranks are counted, not sorted out."""


class ItemRows(NamedTuple):
    """The items of each user or list: those of row r are `item[start[r] : start[r + 1]]`."""

    start: I64
    item: I32


class TieKeys(NamedTuple):
    """What breaks ties: the hash of user and item; without keys of items, their numbers."""

    key: np.uint64
    user: I64
    item: I64


class TileLists(NamedTuple):
    """Lists lo..hi, which row of the tile has the scores of each, and what they can hold."""

    tile: Tile
    tile_row: I32
    user: I32
    stratum: I32
    lo: int
    hi: int
    cand: I32
    cand_start: I64
    stratum_of: I32
    train: ItemRows


class SortSpace(NamedTuple):
    """Working space in which the candidates of one list are sorted."""

    more: F64
    names: I32
    key: U32
    rows: I32
    work: I32


class HitRows(NamedTuple):
    """Room for the hits of some lists: where those of each start, their ranks and judgments."""

    start: I64
    rank: I32
    judgment: I32


@kernel
def mark_items(rows: ItemRows, row: int, mark: I32) -> None:
    """Mark the items of a row by its number."""
    for j in range(rows.start[row], rows.start[row + 1]):
        mark[rows.item[j]] = row


@kernel
def longest_row(rows: ItemRows, lo: int, hi: int) -> int:
    """Return how many items the longest of rows lo..hi has."""
    longest = 0
    for r in range(lo, hi):
        longest = max(longest, rows.start[r + 1] - rows.start[r])
    return longest


@kernel
def state_of_ties(ties: TieKeys, user: int) -> np.uint64:
    """Return the state from which ties of a user are broken."""
    return first(ties.key, ties.user[user]) if ties.item.size else ties.key


@kernel
def radix_falling(score: F64, name: I32, n: int, space: SortSpace) -> None:
    """Sort the first n entries by falling score, stable: by the leading 32 bits, then exactly.

    Bits of a positive number rise with it; those of a negative one fall. Digits that all entries
    share are skipped, which is most of them where only the best are sorted. Unsigned indices
    spare the compiler a test for negative ones.
    """
    more, names, key, rows, work = space
    bits = score.view(np.uint64)
    size = np.uintp(n)
    count = np.zeros((4, 256), np.int32)
    for i in range(size):
        high = np.uint32(bits[i] >> np.uint64(32))
        rising = ~high if high >> np.uint32(31) else high | np.uint32(0x80000000)
        falling = ~rising
        key[i] = falling
        rows[i] = i
        for d in range(4):
            count[d, (falling >> np.uint32(8 * d)) & np.uint32(255)] += 1
    a, b = rows, work
    for d in range(4):
        shift = np.uint32(8 * d)
        if count[d, (key[0] >> shift) & np.uint32(255)] == n:
            continue
        total = 0
        for digit in range(256):
            total, count[d, digit] = total + count[d, digit], total
        for i in range(size):
            row = np.uintp(a[i])
            digit = (key[row] >> shift) & np.uint32(255)
            b[np.uintp(count[d, digit])] = row
            count[d, digit] += 1
        a, b = b, a
    for i in range(size):
        row = np.uintp(a[i])
        more[i], names[i] = score[row], name[row]
    ordered = True
    for i in range(size):
        score[i], name[i] = more[i], names[i]
        ordered &= i == 0 or more[i - np.uintp(1)] >= more[i]
    if not ordered:
        sort_falling(score, name, n, more, names)  # what the low bits say


@kernel
def likely_limit(
    scores: Tile, cand: I32, low: int, n: int, k: int, mark: I32, user: int, space: F64
) -> float:
    """Return a score that about k of n candidates, and a few more, are likely to exceed.

    Bisects a sample for a value that the right share of it exceeds; to count is quicker than to
    sort. Numbers are halved by their bits, which makes the spread of the scores irrelevant.
    """
    share = SAMPLE * k / n
    rank = int(share + 2.5 * np.sqrt(share)) + 2
    if 2 * rank > SAMPLE or n < 2 * SAMPLE:
        return -np.inf
    sample, ordered = space[:SAMPLE], space[:SAMPLE].view(np.int64)
    step = n / SAMPLE
    for s in range(SAMPLE):
        i = np.uintp(cand[np.uintp(low + s * step)])
        sample[s] = scores[i] if mark[i] != user and scores[i] > LOWEST else LOWEST
    for s in range(SAMPLE):  # as integers, the bits of a negative number fall as it rises
        ordered[s] ^= (ordered[s] >> 63) & HIGHEST
    bottom, top = ordered[0], ordered[0]
    for s in range(1, SAMPLE):
        bottom, top = min(bottom, ordered[s]), max(top, ordered[s])
    while True:  # their difference may not fit in 64 bits
        middle = (bottom >> 1) + (top >> 1) + (bottom & top & 1)
        if middle == bottom:
            break
        exceed = 0
        for s in range(SAMPLE):
            exceed += ordered[s] > middle
        if exceed < rank:
            top = middle
        elif exceed > rank + (rank >> 1):
            bottom = middle
        else:
            top = middle
            break
    ordered[0] = top ^ ((top >> 63) & HIGHEST)
    return float(sample[0]) if sample[0] > LOWEST else -np.inf


@kernel
def above_limit(
    scores: Tile, cand: I32, low: int, n: int, limit: float, mark: I32, user: int, name: I32
) -> int:
    """Write the candidates with a higher score that the user does not know; return how many.

    Every candidate is written and only the right ones stay, because a processor guesses badly
    which will; so `name` needs a place more than there are candidates.
    """
    above = np.uintp(0)
    if n == scores.size:  # all items, in order
        for c in range(np.uintp(n)):
            name[above] = c
            above += np.uintp(scores[c] > limit)
    else:
        for c in range(np.uintp(low), np.uintp(low + n)):
            i = np.uintp(cand[c])
            name[above] = i
            above += np.uintp(scores[i] > limit)
    count = 0
    for c in range(above):
        i = name[c]
        name[count] = i
        count += mark[i] != user
    return count


@kernel
def best(
    scores: Tile,
    cand: I32,
    low: int,
    n: int,
    k: int,
    mark: I32,
    user: int,
    tied: bool,
    score: F64,
    name: I32,
    space: SortSpace,
) -> int:
    """Write the k best of n candidates that the user does not know, in order; return how many.

    A sample gives a limit that few exceed; only these are sorted. Of those that equal the limit
    the first come first, unless ties are to be broken otherwise (`tied`): then all that equal the
    last one are written, and more than k may be returned.
    """
    limit = likely_limit(scores, cand, low, n, k, mark, user, space.more)
    while True:
        count = above_limit(scores, cand, low, n, limit, mark, user, name)
        if count < k:
            for c in range(low, low + n):
                i = cand[c]
                if scores[i] == limit and mark[i] != user:
                    name[count] = i
                    count += 1
                    if count == k and not tied:
                        break
        if count >= k or limit == -np.inf:
            break
        limit = -np.inf
    for c in range(count):
        score[c] = scores[name[c]] + 0.0  # -0 equals 0
    if count > 2 * RUN:
        radix_falling(score, name, count, space)
    else:
        sort_falling(score, name, count, space.more, space.names)
    last = min(count, k)
    while tied and 0 < last < count and score[last] == score[last - 1]:
        last += 1
    return last


@kernel
def is_unscored(score: float) -> bool:
    """Tell whether a score stands for none: NaN, or what was filled up; -inf is a score."""
    return bool(np.isnan(score) or -np.inf < score <= FILLED)


@kernel
def count_unscored(scores: Tile, cand: I32, low: int, n: int) -> int:
    """Count the candidates without a score of their own."""
    suspects = 0
    for i in range(scores.size):  # in one go: the usual answer is none
        suspects += not scores[i] > FILLED
    if suspects == 0:
        return 0
    without = 0
    for c in range(low, low + n):
        without += is_unscored(scores[cand[c]])
    return without


@kernel
def break_ties(score: F64, name: I32, n: int, state: np.uint64, item_key: I64) -> None:
    """Order equal scores by the hash of user and item; `name` holds item numbers."""
    low = 0
    while low < n:
        high = low + 1
        while high < n and score[high] == score[low]:
            high += 1
        if high - low > RUN:
            hashes = np.empty(high - low, np.uint64)
            for i in range(low, high):
                hashes[i - low] = second(state, item_key[name[i]])
            sort_by(hashes, name, low, high)
            low = high
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
    lists: TileLists, k: int, ties: TieKeys, item: I32, score: F64, unscored: I64
) -> None:
    """Rank all candidates but the user's training items, k places of each list, -1 = empty."""
    tile, tile_row, user, stratum, lo, hi, cand, cand_start, stratum_of, train = lists
    size = 1
    for s in range(cand_start.size - 1):
        size = max(size, cand_start[s + 1] - cand_start[s])
    value, name = np.empty(size), np.empty(size + 1, np.int32)
    more, key = np.empty(max(size, SAMPLE)), np.empty(size, np.uint32)
    space = SortSpace(more, np.empty_like(name), key, np.empty_like(name), np.empty_like(name))
    mark = np.full(stratum_of.size, -1, np.int32)
    tied = ties.item.size > 0
    for r in range(lo, hi):
        u = user[r]
        s = max(stratum[r], 0)
        low, n = cand_start[s], cand_start[s + 1] - cand_start[s]
        scores = tile[tile_row[r - lo]]
        without = count_unscored(scores, cand, low, n)
        for j in range(train.start[u], train.start[u + 1]):
            i = train.item[j]
            mark[i] = u
            if without and stratum_of[i] == s:
                without -= is_unscored(scores[i])
        unscored[r - lo] = without
        count = 0
        if n:
            count = best(scores, cand, low, n, min(k, n), mark, u, tied, value, name, space)
        if tied:
            break_ties(value, name, count, state_of_ties(ties, u), ties.item)
        count = min(count, k)
        offset = (r - lo) * k
        for c in range(count):
            item[offset + c], score[offset + c] = name[c], value[c]
        for c in range(count, k):
            item[offset + c], score[offset + c] = -1, np.nan


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
def count_above(value: F64, n: int, x: float) -> int:
    """Return how many of the first n entries, which fall, exceed x.

    Halves without a branch: a processor cannot guess on which side a score lies.
    """
    low, size = np.uintp(0), np.uintp(n)
    while size > 1:
        half = size >> np.uintp(1)
        low += half * np.uintp(value[low + half - np.uintp(1)] > x)
        size -= half
    return int(low) + int(n > 0 and value[low] > x)


@kernel
def judged_in_tile(
    lists: TileLists,
    r: int,
    judged: ItemRows,
    least: float,
    mark: I32,
    value: F64,
    row: I32,
    more: F64,
    rows: I32,
) -> int:
    """Write scores and rows of a list's judged candidates, the best first; return how many.

    Only those with a score from `least` up; `mark` receives the user's training items, `more` and
    `rows` are working space.
    """
    u, s = lists.user[r], max(lists.stratum[r], 0)
    scores = lists.tile[lists.tile_row[r - lists.lo]]
    mark_items(lists.train, u, mark)
    n = 0
    for j in range(judged.start[r], judged.start[r + 1]):
        i = judged.item[j]
        if lists.stratum_of[i] == s and mark[i] != u and scores[i] >= least:  # never of NaN
            value[n], row[n] = scores[i], j
            n += 1
    sort_falling(value, row, n, more, rows)
    return n


@kernel
def ranks_in_tile(
    lists: TileLists, judged: ItemRows, ties: TieKeys, hits: HitRows, scored: I64
) -> int:
    """Rank the judged items of lists lo..hi among all candidates but the user's training items.

    Each target is counted at the first judged item that it stands above; sums of these counts
    are the ranks, exact at any depth.
    """
    tile, tile_row, user, stratum, lo, hi, cand, cand_start, stratum_of, _ = lists
    start, rank, judgment = hits
    mark = np.full(stratum_of.size, -1, np.int32)
    longest = longest_row(judged, lo, hi)
    value, more = np.empty(longest), np.empty(longest)
    row, rows = np.empty(longest, np.int32), np.empty(longest, np.int32)
    name = np.empty(longest, np.int32)
    above = np.empty(longest + 1, np.int64)
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        s = max(stratum[r], 0)
        scores = tile[tile_row[r - lo]]
        state = state_of_ties(ties, u)
        n = judged_in_tile(lists, r, judged, -np.inf, mark, value, row, more, rows)
        for c in range(n):
            name[c] = judged.item[row[c]]
        if ties.item.size:
            order_ties(value, name, row, n, state, ties.item)
        above[: n + 1] = 0
        total = 0
        for c in range(cand_start[s], cand_start[s + 1]):
            i = cand[c]
            x = np.float64(scores[i])
            if mark[i] == u or np.isnan(x):
                continue
            total += 1
            position = count_above(value, n, x)
            while (
                position < n
                and value[position] == x
                and not comes_before(x, i, x, name[position], state, ties.item)
            ):
                position += 1
            above[position] += 1
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
def filled_up(x: float, state: np.uint64, i: int) -> float:
    """Put what could not be scored below everything else, at random; -inf is still a score."""
    if np.isnan(x):
        return FILLED * (1.0 + np.float64(second(state, i) >> np.uint64(11)) * 2.0**-53)
    return WORST if x == -np.inf else x


@kernel
def place_of(value: F64, name: I32, n: int, entry: int, state: np.uint64, item_key: I64) -> int:
    """Return the rank of entry `entry` among n; numbers ascend."""
    x = value[entry]
    better, equal = 0, 0
    for c in range(np.uintp(n)):  # at once, as a rule without ties
        better += value[c] > x
        equal += value[c] == x
    if equal > 1:
        for c in range(n):
            if c != entry and value[c] == x:
                better += comes_before(x, name[c], x, name[entry], state, item_key)
    return better + 1


@kernel
def place_few(
    value: F64,
    name: I32,
    n: int,
    r: int,
    judged: ItemRows,
    limit: int,
    state: np.uint64,
    item_key: I64,
    hit: int,
    hits: HitRows,
) -> int:
    """Write the ranks of a list's judged items among n targets, in order; return the next place.

    To count what stands above each is quicker than to sort, as long as they are few.
    """
    _, rank, judgment = hits
    begin = hit
    for j in range(judged.start[r], judged.start[r + 1]):
        entry = first_from(name, 0, n, judged.item[j])
        if entry == n or name[entry] != judged.item[j]:
            continue
        position = place_of(value, name, n, entry, state, item_key)
        if position > limit:
            continue
        c = hit
        while c > begin and rank[c - 1] > position:
            rank[c], judgment[c] = rank[c - 1], judgment[c - 1]
            c -= 1
        rank[c], judgment[c] = position, j
        hit += 1
    return hit


@kernel
def rank_lists(
    tile: Tile,
    tile_row: I32,
    user: I32,
    lo: int,
    hi: int,
    targets: ItemRows,
    judged: ItemRows,
    k: int,
    limit: int,
    fill: bool,
    fill_key: np.uint64,
    ties: TieKeys,
    item: I32,
    score: F64,
    unscored: I64,
    hits: HitRows,
    scored: I64,
) -> int:
    """Rank the given targets of lists lo..hi: k places each, and the ranks of judged items.

    The targets of list lo are the first row of `targets`. Judged items below rank `limit` are left
    out. With `fill`, what could not be scored follows in random order.
    """
    hit_start, rank, judgment = hits
    start, target = targets
    size = longest_row(targets, 0, hi - lo)
    value, more = np.empty(size), np.empty(size)
    name, names = np.empty(size, np.int32), np.empty(size, np.int32)
    hit = 0
    hit_start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        scores = tile[tile_row[r - lo]]
        state = state_of_ties(ties, u)
        fill_state = first(fill_key, u) if fill else fill_key
        n, without = 0, 0
        for t in range(start[r - lo], start[r - lo + 1]):
            x = np.float64(scores[target[t]])
            if not x > FILLED:
                if fill:
                    x = np.float64(filled_up(x, fill_state, target[t]))
                without += is_unscored(x)
                if np.isnan(x):
                    continue
            value[n], name[n] = x, target[t]
            n += 1
        scored[r - lo] = n
        unscored[r - lo] = without
        low, high = judged.start[r], judged.start[r + 1]
        if k == 0 and high - low <= FEW:
            hit = place_few(value, name, n, r, judged, limit, state, ties.item, hit, hits)
            hit_start[r - lo + 1] = hit
            continue
        sort_falling(value, name, n, more, names)
        if ties.item.size:
            break_ties(value, name, n, state, ties.item)
        offset = (r - lo) * k
        for c in range(min(n, k)):
            item[offset + c], score[offset + c] = name[c], value[c]
        for c in range(min(n, k), k):
            item[offset + c], score[offset + c] = -1, np.nan
        if low < high:
            for c in range(min(n, limit)):
                j = first_from(judged.item, low, high, name[c])
                if j < high and judged.item[j] == name[c]:
                    rank[hit], judgment[hit] = c + 1, j
                    hit += 1
        hit_start[r - lo + 1] = hit
    return hit
