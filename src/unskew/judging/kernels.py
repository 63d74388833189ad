"""Kernels of `judge`: where judged items stand in lists."""

from __future__ import annotations

import numpy as np

from unskew.arrays import I8, I32, I64, Mask
from unskew.engine.compiled import kernel, plain_kernel
from unskew.engine.sort import first_from


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
    kept = np.empty(judgment.size, np.int32)
    hit = 0
    for row in range(start.size - 1):
        for h in range(start[row], start[row + 1]):
            if label[judgment[h]] == 1 or label[judgment[h]] == 2:
                kept[hit] = judgment[h]
                rank[hit] = hit - new_start[row] + 1
                hit += 1
        new_start[row + 1] = hit
    return new_start, rank[:hit], kept[:hit]


@plain_kernel
def count_labels(user: I32, judged_start: I64, label: I8) -> tuple[I32, I32]:
    """Count the liked and the disliked judgments of each list's user."""
    liked = np.zeros(user.size, np.int32)
    disliked = np.zeros(user.size, np.int32)
    for row in range(user.size):
        good, bad = 0, 0
        for j in range(judged_start[user[row]], judged_start[user[row] + 1]):
            good += label[j] == 1
            bad += label[j] == 2
        liked[row], disliked[row] = good, bad
    return liked, disliked


@kernel
def first_stranger(
    list_start: I64,
    list_stop: I64,
    list_item: I32,
    from_run: I32,
    target_start: I64,
    target: I32,
    lo: int,
    hi: int,
) -> int:
    """Return the first of lists lo..hi that holds an item which is not among its targets, or -1."""
    for row in range(lo, hi):
        low, high = target_start[row - lo], target_start[row - lo + 1]
        for slot in range(list_start[row], list_stop[row]):
            if list_item[slot] >= 0:
                wanted = from_run[list_item[slot]]
                at = first_from(target, low, high, wanted)
                if at == high or target[at] != wanted:
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
    train_start: I64,
    train_item: I32,
) -> tuple[I64, I64, I64]:
    """Count, of each list, empty slots, items outside the catalogue and training items."""
    empty = np.zeros(list_start.size, np.int64)
    outside = np.zeros(list_start.size, np.int64)
    trained = np.zeros(list_start.size, np.int64)
    mark = np.full(catalogue.size, -1, np.int32)
    for row in range(list_start.size):
        u = user[row]
        if train_start.size:
            for j in range(train_start[u], train_start[u + 1]):
                mark[train_item[j]] = u
        for slot in range(list_start[row], list_stop[row]):
            if list_item[slot] < 0:
                empty[row] += 1
            else:
                i = from_run[list_item[slot]]
                outside[row] += not catalogue[i]
                trained[row] += mark[i] == u
    return empty, outside, trained
