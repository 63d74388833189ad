"""Kernels of ranking by one order of the items that all users share."""

from __future__ import annotations

import numpy as np

from unskew.arrays import I32, I64, U8
from unskew.engine.compiled import kernel, plain_kernel
from unskew.engine.sort import sort_by, sort_rising


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
    known = np.full(items, -1, np.int32)
    for r in range(lo, hi):
        u = user[r]
        for j in range(train_start[u], train_start[u + 1]):
            known[train_item[j]] = u
        at, end = (r - lo) * k, (r - lo + 1) * k
        for i in order:
            if at == end:
                break
            if known[i] != u:
                item[at] = i
                at += 1
        for empty in range(at, end):
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


@kernel
def places_of_list(
    u: int,
    r: int,
    place: I32,
    train_start: I64,
    train_item: I32,
    judged_start: I64,
    judged_item: I32,
    is_known: I32,
    known: I32,
    where: I32,
    row: I32,
) -> tuple[int, int]:
    """Fill in, sorted, the places of a user's training items and of a list's other judged items.

    `row` receives the judgments of the latter. Returns how many there are of both.
    """
    size, n = 0, 0
    for j in range(train_start[u], train_start[u + 1]):
        i = train_item[j]
        is_known[i] = u
        if place[i] >= 0:
            known[size] = place[i]
            size += 1
    for j in range(judged_start[r], judged_start[r + 1]):
        i = judged_item[j]
        if place[i] >= 0 and is_known[i] != u:
            where[n], row[n] = place[i], j
            n += 1
    sort_rising(known, 0, size)
    sort_by(where, row, 0, n)
    return size, n


@kernel
def ranks_in_order(
    place: I32,
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
    judgment: I32,
) -> int:
    """Rank the judged items of lists lo..hi: their place less the training items above them.

    `place` is where each item stands in the order, from 0 on; -1 if it is no candidate or has no
    score. Ranks beyond `limit` are left out.
    """
    most, widest = 0, 0
    for r in range(lo, hi):
        most = max(most, judged_start[r + 1] - judged_start[r])
        widest = max(widest, train_start[user[r] + 1] - train_start[user[r]])
    known, where = np.empty(widest, np.int32), np.empty(most, np.int32)
    row = np.empty(most, np.int32)
    is_known = np.full(place.size, -1, np.int32)
    hit = 0
    start[0] = 0
    for r in range(lo, hi):
        u = user[r]
        size, n = places_of_list(
            u, r, place, train_start, train_item, judged_start, judged_item, is_known, known,
            where, row,
        )  # fmt: skip
        above = 0
        for c in range(n):
            while above < size and known[above] < where[c]:
                above += 1
            if where[c] + 1 - above > limit:
                break
            rank[hit], judgment[hit] = where[c] + 1 - above, row[c]
            hit += 1
        start[r - lo + 1] = hit
    return hit
