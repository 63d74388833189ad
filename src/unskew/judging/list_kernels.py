"""Kernels of `judge`: where judged items stand in lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.arrays import I8, I32, I64, U8, Mask, Tile
from unskew.engine.compiled import kernel, plain_kernel
from unskew.engine.sort import in_sorted, sort_by, sort_rising
from unskew.judging.rank_kernels import (
    HitRows,
    ItemRows,
    TieKeys,
    comes_before,
    longest_row,
    mark_items,
    state_of_ties,
)


@plain_kernel
def meet(
    user: I32,
    list_start: I64,
    list_stop: I64,
    list_item: I32,
    judged_start: I64,
    judged_item: I32,
    to_list: I32,
    lo: int,
    hi: int,
    mark: I32,
    start: I64,
    rank: I32,
    judgment: I32,
) -> int:
    """Find the judged items of lists lo..hi, in rank order.

    A table over the items of the run is marked with each user's judgments (`to_list` turns an
    item's common number into the run's): no sort, no hash, one look per slot. Marks of other
    users are told by their number, so nothing is cleared. An item or slot numbered -1 falls on
    the table's last entry, which is never marked. Writes `start`, `rank` and `judgment` and
    returns the number of hits.
    """
    mark[:] = -1
    start[0] = 0
    hit = 0
    for row in range(lo, hi):
        first, last = judged_start[user[row]], judged_start[user[row] + 1]
        begin = list_start[row]
        if list_stop[row] > begin:
            for j in range(first, last):
                mark[to_list[judged_item[j]]] = j
            mark[-1] = -1
            for slot in range(begin, list_stop[row]):
                j = mark[list_item[slot]]
                if first <= j < last:
                    rank[hit] = slot - begin + 1
                    judgment[hit] = j
                    hit += 1
        start[row - lo + 1] = hit
    return hit


@kernel
def condense(start: I64, judgment: I32, label: I8) -> tuple[I64, I32, I32]:
    """Keep the hits that are liked (1) or disliked (2) and number their ranks anew."""
    new_start = np.zeros(start.size, np.int64)
    rank = np.empty(judgment.size, np.int32)
    new_judgment = np.empty(judgment.size, np.int32)
    hit = 0
    for row in range(start.size - 1):
        for h in range(start[row], start[row + 1]):
            if label[judgment[h]] == 1 or label[judgment[h]] == 2:
                new_judgment[hit] = judgment[h]
                rank[hit] = hit - new_start[row] + 1
                hit += 1
        new_start[row + 1] = hit
    return new_start, rank[:hit], new_judgment[:hit]


@plain_kernel
def count_labels(user: I32, judged_start: I64, label: I8) -> tuple[I32, I32]:
    """Count the liked and the disliked judgments of each list's user."""
    liked = np.zeros(user.size, np.int32)
    disliked = np.zeros(user.size, np.int32)
    for row in range(user.size):
        likes, bad = 0, 0
        for j in range(judged_start[user[row]], judged_start[user[row] + 1]):
            likes += label[j] == 1
            bad += label[j] == 2
        liked[row], disliked[row] = likes, bad
    return liked, disliked


@kernel
def first_stranger(
    list_start: I64,
    list_stop: I64,
    list_item: I32,
    from_run: I32,
    targets: ItemRows,
    lo: int,
    hi: int,
) -> int:
    """Return the first of lists lo..hi that holds an item which is not among its targets, or -1."""
    for row in range(lo, hi):
        low, high = targets.start[row - lo], targets.start[row - lo + 1]
        for slot in range(list_start[row], list_stop[row]):
            if list_item[slot] >= 0:
                item = from_run[list_item[slot]]
                if not in_sorted(targets.item, low, high, item):
                    return row
    return -1


@kernel
def count_slots(
    user: I32,
    list_start: I64,
    list_stop: I64,
    list_item: I32,
    from_run: I32,
    catalogue: Mask,
    train: ItemRows,
) -> tuple[I64, I64, I64, I64]:
    """Count, of each list, empty slots, items outside the catalogue, training items, and targets.

    A target is in the catalogue and not in training.
    """
    empty, outside, trained, targets = np.zeros((4, list_start.size), np.int64)
    mark = np.full(catalogue.size, -1, np.int32)
    for row in range(list_start.size):
        u = user[row]
        if train.start.size:
            mark_items(train, u, mark)
        for slot in range(list_start[row], list_stop[row]):
            if list_item[slot] < 0:
                empty[row] += 1
            else:
                i = from_run[list_item[slot]]
                outside[row] += not catalogue[i]
                trained[row] += mark[i] == u
                targets[row] += catalogue[i] and mark[i] != u
    return empty, outside, trained, targets


@plain_kernel
def top_of_order(
    order: I32,
    items: int,
    user: I32,
    lo: int,
    hi: int,
    train_start: I64,
    train_item: I32,
    k: int,
    item: I32,
) -> None:
    """Walk down an order without the user's training items: lists lo..hi, k places, -1 = empty."""
    mark = np.full(items, -1, np.int32)
    for r in range(lo, hi):
        u = user[r]
        for j in range(train_start[u], train_start[u + 1]):
            mark[train_item[j]] = u
        slot, end = (r - lo) * k, (r - lo + 1) * k
        for i in order:
            if slot == end:
                break
            if mark[i] != u:
                item[slot] = i
                slot += 1
        for empty in range(slot, end):
            item[empty] = -1


@plain_kernel
def count_missing(
    missing: U8, user: I32, lo: int, hi: int, train_start: I64, train_item: I32, count: I64
) -> None:
    """Count the marked items outside the training items of the user, for lists lo..hi."""
    total = np.int64(0)
    for i in range(missing.size):
        total += np.int64(missing[i])
    for r in range(lo, hi):
        count[r - lo] = total
        if total:
            for j in range(train_start[user[r]], train_start[user[r] + 1]):
                count[r - lo] -= missing[train_item[j]]


class ListSpace(NamedTuple):
    """Working space of one list: marks of training items, sorted places, and judgments."""

    is_known: I32
    trained: I32
    where: I32
    row: I32


@kernel
def space_of_lists(
    user: I32, lo: int, hi: int, train: ItemRows, judged: ItemRows, items: int
) -> ListSpace:
    """Return space for the largest of lists lo..hi."""
    longest, widest = longest_row(judged, lo, hi), 0
    for u in user[lo:hi]:
        widest = max(widest, train.start[u + 1] - train.start[u])
    return ListSpace(
        np.full(items, -1, np.int32),
        np.empty(widest, np.int32),
        np.empty(longest, np.int32),
        np.empty(longest, np.int32),
    )


@kernel
def places_of_list(
    u: int, r: int, position: I32, train: ItemRows, judged: ItemRows, space: ListSpace
) -> tuple[int, int]:
    """Fill in, sorted, the places of a user's training items and of a list's other judged items.

    Returns how many there are of both.
    """
    is_known, trained, where, row = space
    size, n = 0, 0
    for j in range(train.start[u], train.start[u + 1]):
        i = train.item[j]
        is_known[i] = u
        if position[i] >= 0:
            trained[size] = position[i]
            size += 1
    for j in range(judged.start[r], judged.start[r + 1]):
        i = judged.item[j]
        if position[i] >= 0 and is_known[i] != u:
            where[n], row[n] = position[i], j
            n += 1
    sort_rising(trained, 0, size)
    sort_by(where, row, 0, n)
    return size, n


@kernel
def ranks_in_order(
    position: I32,
    user: I32,
    lo: int,
    hi: int,
    train: ItemRows,
    judged: ItemRows,
    limit: int,
    hits: HitRows,
) -> int:
    """Rank the judged items of lists lo..hi: their place less the training items above them.

    `position` is where each item stands in the order, from 0 on; -1 if it is no candidate or has no
    score. Ranks beyond `limit` are left out.
    """
    start, rank, judgment = hits
    space = space_of_lists(user, lo, hi, train, judged, position.size)
    _, trained, where, row = space
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        size, n = places_of_list(user[r], r, position, train, judged, space)
        above = 0
        for c in range(n):
            while above < size and trained[above] < where[c]:
                above += 1
            if where[c] + 1 - above > limit:
                break
            rank[hit], judgment[hit] = where[c] + 1 - above, row[c]
            hit += 1
        start[r - lo + 1] = hit
    return hit


@kernel
def _add(tree: I64, position: int) -> None:
    """Count one more entry at a place (from 1) of Fenwick's tree."""
    while position < tree.size:
        tree[position] += 1
        position += position & -position


@kernel
def _up_to(tree: I64, position: int) -> int:
    """Return how many entries stand at this place or before it."""
    total = 0
    while position > 0:
        total += tree[position]
        position -= position & -position
    return total


@kernel
def ranks_without_met(
    start: I64,
    lo: int,
    hi: int,
    pair: I64,
    pair_rank: I64,
    counted: U8,
    step_of: I64,
    scored: I64,
    rank: I64,
    depth: I64,
) -> None:
    """Write the ranks of the steps of users lo..hi among items not met before.

    `pair` is the number of each new pair of the log (-1: no test event that is new to the user),
    `pair_rank` its rank among all that the user has not met in training (0: in no place),
    `counted` marks the pairs that take a place of the list when met,
    `step_of` the step that asks for an event (-1: none), `scored` how many items each user's
    ranking holds. Each new item above a target that was met before it moves it one place up.
    """
    for user in range(lo, hi):
        size = 0
        for e in range(start[user], start[user + 1]):
            size += pair[e] >= 0 and pair_rank[pair[e]] > 0
        ranks = np.empty(size, np.int64)
        count = 0
        for e in range(start[user], start[user + 1]):
            if pair[e] >= 0 and pair_rank[pair[e]] > 0:
                ranks[count] = pair_rank[pair[e]]
                count += 1
        ranks = np.sort(ranks)
        tree = np.zeros(size + 1, np.int64)
        met = 0
        for e in range(start[user], start[user + 1]):
            if pair[e] < 0:
                continue
            r = pair_rank[pair[e]]
            position = np.searchsorted(ranks, r) + 1 if r > 0 else 0
            if step_of[e] >= 0:
                rank[step_of[e]] = r - _up_to(tree, position) if r > 0 else 0
                depth[step_of[e]] = max(scored[user] - met, rank[step_of[e]])
            if r > 0:
                _add(tree, position)
            met += counted[pair[e]]


@kernel
def ranks_of_next(
    tile: Tile,
    lo: int,
    hi: int,
    user: I32,
    target: I32,
    step_start: I64,
    log: ItemRows,
    train: ItemRows,
    candidate: U8,
    drops: bool,
    ties: TieKeys,
    rank: I64,
    depth: I64,
) -> None:
    """Write the rank of the target of steps lo..hi, whose scores are the rows of the tile.

    Among the candidates with a score; where `drops`, without those that the user met in training
    or before the step. 0 where the target is none of them. `depth` is how many there are.
    """
    items = candidate.size
    met = np.full(items, -1, np.int64)
    for step in range(lo, hi):
        scores, u, j = tile[step - lo], user[step], target[step]
        if drops:
            for e in range(train.start[u], train.start[u + 1]):
                met[train.item[e]] = step
            for e in range(log.start[u], step_start[step]):
                met[log.item[e]] = step
        state = state_of_ties(ties, u)
        value = scores[j]
        ranked = candidate[j] == 1 and met[j] != step and not np.isnan(value)
        above, count = 0, 0
        for i in range(items):
            if candidate[i] == 0 or met[i] == step or np.isnan(scores[i]):
                continue
            count += 1
            if scores[i] > value:
                above += 1
            elif scores[i] == value and ranked and i != j:
                above += comes_before(scores[i], i, value, j, state, ties.item)
        rank[step] = above + 1 if ranked else 0
        depth[step] = count
