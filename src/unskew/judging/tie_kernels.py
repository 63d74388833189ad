"""Kernels of lists whose equal scores have no order: where each group of tied items stands.

Items with the same score share one rank, the first of the places that they take together.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I8, I32, I64, U8, Mask, Tile
from unskew.engine.compiled import kernel
from unskew.engine.sort import first_from, sort_falling
from unskew.judging.list_kernels import places_of_list
from unskew.judging.rank_kernels import FILLED, WORST, count_above


@kernel
def meet_tied(
    user: I32,
    list_start: I64,
    list_scan: I64,
    list_end: I64,
    list_item: I32,
    score: F64,
    judged_start: I64,
    judged_item: I32,
    to_list: I32,
    unranked: I64,
    is_target: U8,
    lo: int,
    hi: int,
    mark: I32,
    start: I64,
    rank: I32,
    tied: I32,
    judgment: I32,
) -> int:
    """Find the judged items of lists lo..hi and the groups of equal scores they belong to.

    As `kernels.meet`. A group that begins above `list_scan` is looked at as a whole. Where
    `unranked` is not empty, so many targets follow each list in random order: a judged target
    that the list does not hold (`is_target`) belongs to that last group. Returns the number of
    hits.
    """
    mark[:] = -1
    start[0] = 0
    hit = 0
    for row in range(lo, hi):
        first, last = judged_start[user[row]], judged_start[user[row] + 1]
        begin, end = list_start[row], list_end[row]
        for j in range(first, last):
            mark[to_list[judged_item[j]]] = j
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
                item = to_list[judged_item[j]]
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
def listed_targets(
    user: I32,
    list_start: I64,
    list_end: I64,
    list_item: I32,
    from_run: I32,
    catalogue: Mask,
    train_start: I64,
    train_item: I32,
) -> I64:
    """Count the slots of each list that hold a target: in the catalogue and not in training."""
    count = np.zeros(list_start.size, np.int64)
    mark = np.full(catalogue.size, -1, np.int32)
    for row in range(list_start.size):
        u = user[row]
        if train_start.size:
            for j in range(train_start[u], train_start[u + 1]):
                mark[train_item[j]] = u
        for slot in range(list_start[row], list_end[row]):
            if list_item[slot] >= 0:
                i = from_run[list_item[slot]]
                count[row] += catalogue[i] and mark[i] != u
    return count


@kernel
def untrained(
    judged_start: I64, judged_item: I32, train_start: I64, train_item: I32, items: int
) -> U8:
    """Mark the judgments whose item is not among the user's training items."""
    is_target = np.ones(judged_item.size, np.uint8)
    mark = np.full(items, -1, np.int32)
    for u in range(judged_start.size - 1):
        for t in range(train_start[u], train_start[u + 1]):
            mark[train_item[t]] = u
        for j in range(judged_start[u], judged_start[u + 1]):
            is_target[j] = mark[judged_item[j]] != u
    return is_target


@kernel
def mark_targets(
    judged_start: I64, judged_item: I32, lo: int, hi: int, start: I64, target: I32, is_target: U8
) -> None:
    """Mark the judgments of lists lo..hi whose item is among the targets of the list."""
    for r in range(lo, hi):
        low, high = start[r - lo], start[r - lo + 1]
        for j in range(judged_start[r], judged_start[r + 1]):
            position = first_from(target, low, high, judged_item[j])
            is_target[j] = position < high and target[position] == judged_item[j]


@kernel
def write_groups(
    value: F64, row: I32, n: int, above: I64, equal: I64, limit: int, hit: int,
    rank: I32, tied: I32, judgment: I32,
) -> int:  # fmt: skip
    """Write the first rank and the size of the group of each of n judged items, best first.

    Their scores fall; `above` counts, at the first of each group, the targets between the group
    before and this one, `equal` those in it. Groups that begin below `limit` are left out.
    """
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
    tile: Tile,
    tile_row: I32,
    user: I32,
    stratum: I32,
    lo: int,
    hi: int,
    cand: I32,
    cand_start: I64,
    stratum_of: I32,
    train_start: I64,
    train_item: I32,
    judged_start: I64,
    judged_item: I32,
    limit: int,
    start: I64,
    rank: I32,
    tied: I32,
    judgment: I32,
    scored: I64,
) -> int:
    """Find the groups of the judged items of lists lo..hi among all candidates but training items.

    As `rank_kernels.ranks_in_tile`.
    """
    mark = np.full(stratum_of.size, -1, np.int32)
    longest = 0
    for r in range(lo, hi):
        longest = max(longest, judged_start[r + 1] - judged_start[r])
    value, more = np.empty(longest), np.empty(longest)
    row, rows = np.empty(longest, np.int32), np.empty(longest, np.int32)
    above, equal = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        s = max(stratum[r], 0)
        scores = tile[tile_row[r - lo]]
        for j in range(train_start[u], train_start[u + 1]):
            mark[train_item[j]] = u
        n = 0
        for j in range(judged_start[r], judged_start[r + 1]):
            i = judged_item[j]
            if stratum_of[i] == s and mark[i] != u and not np.isnan(scores[i]):
                value[n], row[n] = scores[i], j
                n += 1
        sort_falling(value, row, n, more, rows)
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
        hit = write_groups(value, row, n, above, equal, limit, hit, rank, tied, judgment)
        start[r - lo + 1] = hit
        scored[r - lo] = total
    return hit


@kernel
def tied_in_best(
    tile: Tile,
    tile_row: I32,
    user: I32,
    stratum: I32,
    lo: int,
    hi: int,
    cand: I32,
    cand_start: I64,
    stratum_of: I32,
    train_start: I64,
    train_item: I32,
    best: F64,
    judged_start: I64,
    judged_item: I32,
    start: I64,
    rank: I32,
    tied: I32,
    judgment: I32,
) -> int:
    """Find the groups of judged items that begin among the best scores, one row per list.

    Only the group of the last of these can go on below them: its items are counted.
    """
    mark = np.full(stratum_of.size, -1, np.int32)
    longest = 0
    for r in range(lo, hi):
        longest = max(longest, judged_start[r + 1] - judged_start[r])
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
        for j in range(train_start[u], train_start[u + 1]):
            mark[train_item[j]] = u
        n = 0
        for j in range(judged_start[r], judged_start[r + 1]):
            i = judged_item[j]
            if size and stratum_of[i] == s and mark[i] != u and scores[i] >= lowest:
                value[n], row[n] = scores[i], j
                n += 1
        sort_falling(value, row, n, more, rows)
        last = 0  # of the group at the end
        if n and value[n - 1] == lowest:
            last = count_equal(scores, cand, low, high, lowest)
            for j in range(train_start[u], train_start[u + 1]):
                i = train_item[j]
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
    list_start: I64,
    target: I32,
    judged_start: I64,
    judged_item: I32,
    limit: int,
    fill: bool,
    start: I64,
    rank: I32,
    tied: I32,
    judgment: I32,
    scored: I64,
) -> int:
    """Find the groups of the judged items of lists lo..hi among their targets.

    With `fill`, what could not be scored is the last group.
    """
    longest = 0
    for r in range(lo, hi):
        longest = max(longest, judged_start[r + 1] - judged_start[r])
    value, more = np.empty(longest), np.empty(longest)
    row, rows = np.empty(longest, np.int32), np.empty(longest, np.int32)
    above, equal = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        scores = tile[tile_row[r - lo]]
        low, high = list_start[r - lo], list_start[r - lo + 1]
        n = 0
        for j in range(judged_start[r], judged_start[r + 1]):
            i = judged_item[j]
            position = first_from(target, low, high, i)
            if position < high and target[position] == i:
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
        hit = write_groups(value, row, n, above, equal, limit, hit, rank, tied, judgment)
        start[r - lo + 1] = hit
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
    train_start: I64,
    train_item: I32,
    judged_start: I64,
    judged_item: I32,
    limit: int,
    start: I64,
    rank: I32,
    tied: I32,
    judgment: I32,
) -> int:
    """Find the groups of the judged items of lists lo..hi in an order that all users share.

    As `order_kernels.ranks_in_order`; `low` and `high` are the first place of each place's group,
    and the one after its last.
    """
    longest, widest = 0, 0
    for r in range(lo, hi):
        longest = max(longest, judged_start[r + 1] - judged_start[r])
        widest = max(widest, train_start[user[r] + 1] - train_start[user[r]])
    trained, where = np.empty(widest, np.int32), np.empty(longest, np.int32)
    row = np.empty(longest, np.int32)
    is_known = np.full(position.size, -1, np.int32)
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        size, n = places_of_list(
            u, r, position, train_start, train_item, judged_start, judged_item, is_known, trained,
            where, row,
        )  # fmt: skip
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
