"""Kernels of lists whose equal scores have no order: where each group of tied items stands.

Items with the same score share one rank, the first of the places that they take together.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I8, I32, I64, U8, Tile
from unskew.engine.compiled import kernel
from unskew.engine.sort import in_sorted, sort_falling
from unskew.judging.list_kernels import places_of_list, space_of_lists
from unskew.judging.rank_kernels import (
    FILLED,
    WORST,
    HitRows,
    ItemRows,
    TileLists,
    count_above,
    judged_in_tile,
    longest_row,
    mark_items,
)


@kernel
def meet_tied(
    user: I32,
    list_start: I64,
    list_scan: I64,
    list_end: I64,
    list_item: I32,
    score: F64,
    judged: ItemRows,
    to_list: I32,
    unranked: I64,
    is_target: U8,
    lo: int,
    hi: int,
    mark: I32,
    hits: HitRows,
    tied: I32,
) -> int:
    """Find the judged items of lists lo..hi and the groups of equal scores they belong to.

    As `kernels.meet`. A group that begins above `list_scan` is looked at as a whole. Where
    `unranked` is not empty, so many targets follow each list in random order: a judged target
    that the list does not hold (`is_target`) belongs to that last group. Returns the number of
    hits.
    """
    start, rank, judgment = hits
    mark[:] = -1
    start[0] = 0
    hit = 0
    for row in range(lo, hi):
        first, last = judged.start[user[row]], judged.start[user[row] + 1]
        begin, end = list_start[row], list_end[row]
        for j in range(first, last):
            mark[to_list[judged.item[j]]] = j
        mark[-1] = -1
        slot = begin
        while slot < list_scan[row]:
            stop = slot + 1
            while stop < end and score[stop] == score[slot]:
                stop += 1
            for s in range(slot, stop):
                j = mark[list_item[s]]
                if first <= j < last:
                    rank[hit], tied[hit], judgment[hit] = slot - begin + 1, stop - slot, j
                    hit += 1
                    mark[list_item[s]] = -1
            slot = stop
        if unranked.size and slot >= end:
            for j in range(first, last):
                item = to_list[judged.item[j]]
                if is_target[j] and (item < 0 or mark[item] == j):
                    rank[hit], tied[hit], judgment[hit] = end - begin + 1, unranked[row], j
                    hit += 1
        start[row - lo + 1] = hit
    return hit


@kernel
def condense(start: I64, rank: I32, judgment: I32, label: I8) -> tuple[I64, I32, I32, I32]:
    """Keep the hits that are liked (1) or disliked (2); groups hold judged items only."""
    new_start = np.zeros(start.size, np.int64)
    new_rank = np.empty(judgment.size, np.int32)
    new_judgment = np.empty(judgment.size, np.int32)
    tied = np.empty(judgment.size, np.int32)
    hit = 0
    for row in range(start.size - 1):
        h = start[row]
        while h < start[row + 1]:
            begin, shared = hit, rank[h]
            while h < start[row + 1] and rank[h] == shared:
                if label[judgment[h]] == 1 or label[judgment[h]] == 2:
                    new_judgment[hit] = judgment[h]
                    new_rank[hit] = begin - new_start[row] + 1
                    hit += 1
                h += 1
            for c in range(begin, hit):
                tied[c] = hit - begin
        new_start[row + 1] = hit
    return new_start, new_rank[:hit], new_judgment[:hit], tied[:hit]


@kernel
def untrained(judged: ItemRows, train: ItemRows, items: int) -> U8:
    """Mark the judgments whose item is not among the user's training items."""
    is_target = np.ones(judged.item.size, np.uint8)
    mark = np.full(items, -1, np.int32)
    for u in range(judged.start.size - 1):
        mark_items(train, u, mark)
        for j in range(judged.start[u], judged.start[u + 1]):
            is_target[j] = mark[judged.item[j]] != u
    return is_target


@kernel
def mark_targets(judged: ItemRows, lo: int, hi: int, targets: ItemRows, is_target: U8) -> None:
    """Mark the judgments of lists lo..hi whose item is among the targets of the list."""
    for r in range(lo, hi):
        low, high = targets.start[r - lo], targets.start[r - lo + 1]
        for j in range(judged.start[r], judged.start[r + 1]):
            is_target[j] = in_sorted(targets.item, low, high, judged.item[j])


@kernel
def write_groups(
    value: F64,
    row: I32,
    n: int,
    above: I64,
    equal: I64,
    limit: int,
    hit: int,
    hits: HitRows,
    tied: I32,
) -> int:
    """Write the first rank and the size of the group of each of n judged items, best first.

    Their scores fall; `above` counts, at the first of each group, the targets between the group
    before and this one, `equal` those in it. Groups that begin below `limit` are left out.
    """
    _, rank, judgment = hits
    better, c = 0, 0
    while c < n:
        better += above[c]
        if better >= limit:
            break
        level = c
        while c < n and value[c] == value[level]:
            rank[hit], tied[hit], judgment[hit] = better + 1, equal[level], row[c]
            hit += 1
            c += 1
        better += equal[level]
    return hit


@kernel
def tied_in_tile(
    lists: TileLists, judged: ItemRows, limit: int, hits: HitRows, tied: I32, scored: I64
) -> int:
    """Find the groups of the judged items of lists lo..hi among all candidates but training items.

    As `rank_kernels.ranks_in_tile`.
    """
    tile, tile_row, user, stratum, lo, hi, cand, cand_start, stratum_of, _ = lists
    mark = np.full(stratum_of.size, -1, np.int32)
    longest = longest_row(judged, lo, hi)
    value, more = np.empty(longest), np.empty(longest)
    row, rows = np.empty(longest, np.int32), np.empty(longest, np.int32)
    above, equal = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    hit = 0
    hits.start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        s = max(stratum[r], 0)
        scores = tile[tile_row[r - lo]]
        n = judged_in_tile(lists, r, judged, -np.inf, mark, value, row, more, rows)
        above[: n + 1], equal[: n + 1] = 0, 0
        lowest = value[n - 1] if n else np.inf
        total = 0
        for c in range(cand_start[s], cand_start[s + 1]):
            i = cand[c]
            x = np.float64(scores[i])
            if mark[i] == u or np.isnan(x):
                continue
            total += 1
            if n and x >= lowest:
                position = count_above(value, n, x)
                if value[position] == x:
                    equal[position] += 1
                else:
                    above[position] += 1
        hit = write_groups(value, row, n, above, equal, limit, hit, hits, tied)
        hits.start[r - lo + 1] = hit
        scored[r - lo] = total
    return hit


@kernel
def tied_in_best(lists: TileLists, best: F64, judged: ItemRows, hits: HitRows, tied: I32) -> int:
    """Find the groups of judged items that begin among the best scores, one row per list.

    Only the group of the last of these can go on below them: its items are counted.
    """
    tile, tile_row, user, stratum, lo, hi, cand, cand_start, stratum_of, train = lists
    start, rank, judgment = hits
    mark = np.full(stratum_of.size, -1, np.int32)
    longest = longest_row(judged, lo, hi)
    value, more = np.empty(longest), np.empty(longest)
    row, rows = np.empty(longest, np.int32), np.empty(longest, np.int32)
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        s = max(stratum[r], 0)
        low, high = cand_start[s], cand_start[s + 1]
        scores, top = tile[tile_row[r - lo]], best[r - lo]
        size = top.size
        while size and np.isnan(top[size - 1]):
            size -= 1
        lowest = top[size - 1] if size else np.inf
        n = judged_in_tile(lists, r, judged, lowest, mark, value, row, more, rows) if size else 0
        last = 0  # of the group at the end
        if n and value[n - 1] == lowest:
            last = count_equal(scores, cand, low, high, lowest)
            for j in range(train.start[u], train.start[u + 1]):
                i = train.item[j]
                last -= stratum_of[i] == s and scores[i] == lowest
        for c in range(n):
            above = count_above(top, size, value[c])
            equal = last
            if value[c] != lowest:
                equal = above
                while top[equal] == value[c]:
                    equal += 1
                equal -= above
            rank[hit], tied[hit], judgment[hit] = above + 1, equal, row[c]
            hit += 1
        start[r - lo + 1] = hit
    return hit


@kernel
def count_equal(scores: Tile, cand: I32, low: int, high: int, x: float) -> int:
    """Count the candidates with a score."""
    count = 0
    if high - low == scores.size:  # all items, in order
        for i in range(scores.size):
            count += scores[i] == x
    else:
        for c in range(low, high):
            count += scores[cand[c]] == x
    return count


@kernel
def tied_in_lists(
    tile: Tile,
    tile_row: I32,
    lo: int,
    hi: int,
    targets: ItemRows,
    judged: ItemRows,
    limit: int,
    fill: bool,
    hits: HitRows,
    tied: I32,
    scored: I64,
) -> int:
    """Find the groups of the judged items of lists lo..hi among their targets.

    With `fill`, what could not be scored is the last group.
    """
    target = targets.item
    longest = longest_row(judged, lo, hi)
    value, more = np.empty(longest), np.empty(longest)
    row, rows = np.empty(longest, np.int32), np.empty(longest, np.int32)
    above, equal = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    hit = 0
    hits.start[0] = 0
    for r in range(lo, hi):
        scores = tile[tile_row[r - lo]]
        low, high = targets.start[r - lo], targets.start[r - lo + 1]
        n = 0
        for j in range(judged.start[r], judged.start[r + 1]):
            i = judged.item[j]
            if in_sorted(target, low, high, i):
                x = as_score(np.float64(scores[i]), fill)
                if not np.isnan(x):
                    value[n], row[n] = x, j
                    n += 1
        sort_falling(value, row, n, more, rows)
        above[: n + 1], equal[: n + 1] = 0, 0
        total = 0
        for t in range(low, high):
            x = as_score(np.float64(scores[target[t]]), fill)
            if np.isnan(x):
                continue
            total += 1
            position = count_above(value, n, x)
            if position < n and value[position] == x:
                equal[position] += 1
            else:
                above[position] += 1
        hit = write_groups(value, row, n, above, equal, limit, hit, hits, tied)
        hits.start[r - lo + 1] = hit
        scored[r - lo] = total
    return hit


@kernel
def as_score(x: float, fill: bool) -> float:
    """Return a score; with `fill`, one below all others for what has none."""
    if fill and np.isnan(x):
        return FILLED
    return WORST if fill and x == -np.inf else x


@kernel
def tied_in_order(
    position: I32,
    low: I32,
    high: I32,
    user: I32,
    lo: int,
    hi: int,
    train: ItemRows,
    judged: ItemRows,
    limit: int,
    hits: HitRows,
    tied: I32,
) -> int:
    """Find the groups of the judged items of lists lo..hi in an order that all users share.

    As `order_kernels.ranks_in_order`; `low` and `high` are the first place of each place's group,
    and the one after its last.
    """
    start, rank, judgment = hits
    space = space_of_lists(user, lo, hi, train, judged, position.size)
    _, trained, where, row = space
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        size, n = places_of_list(user[r], r, position, train, judged, space)
        before, inside = 0, 0
        for c in range(n):
            begin, end = low[where[c]], high[where[c]]
            while before < size and trained[before] < begin:
                before += 1
            inside = max(inside, before)
            while inside < size and trained[inside] < end:
                inside += 1
            if begin - before >= limit:
                break
            rank[hit], judgment[hit] = begin - before + 1, row[c]
            tied[hit] = end - begin - (inside - before)
            hit += 1
        start[r - lo + 1] = hit
    return hit
