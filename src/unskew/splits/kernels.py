"""Kernels of the protocols: marking chosen rows, and meeting two sets of ratings."""

from __future__ import annotations

import numpy as np

from unskew.arrays import I32, I64, U8
from unskew.engine.compiled import kernel, plain_kernel


@kernel
def mark_first(start: I64, order: I64, size: I64, mark: U8) -> None:
    """Mark the first `size` entries of each group, in the given order."""
    for g in range(start.size - 1):
        for i in range(start[g], start[g] + size[g]):
            mark[order[i]] = 1


@kernel
def count_below(group: I32, key: I64, limit: I64) -> I64:
    """Count the keys of each group that are not above its limit."""
    counts = np.zeros(limit.size, np.int64)
    for i in range(group.size):
        counts[group[i]] += key[i] <= limit[group[i]]
    return counts


@kernel
def rows_below(group: I32, key: I64, limit: I64, start: I64) -> tuple[I64, I64]:
    """Return the rows that `count_below` counts, and their keys, group by group."""
    position = start[:-1].copy()
    row = np.empty(start[-1], np.int64)
    below = np.empty(start[-1], np.int64)
    for i in range(group.size):
        g = group[i]
        if key[i] <= limit[g]:
            row[position[g]] = i
            below[position[g]] = key[i]
            position[g] += 1
    return row, below


@kernel
def mark_last(start: I64, order: I64, time: I64, size: I64, tied_up: bool, mark: U8) -> int:
    """Mark about the last `size` entries of each group, never cutting through equal times.

    Where the cut would, all entries of that time are marked (`tied_up`) or none. Returns how many
    groups this concerns.
    """
    tied = 0
    for g in range(start.size - 1):
        first, last = start[g], start[g + 1]
        cut = last - size[g]
        if first < cut < last and time[order[cut - 1]] == time[order[cut]]:
            tied += 1
            moment = time[order[cut]]
            if tied_up:
                while cut > first and time[order[cut - 1]] == moment:
                    cut -= 1
            else:
                while cut < last and time[order[cut]] == moment:
                    cut += 1
        for i in range(cut, last):
            mark[order[i]] = 1
    return tied


@plain_kernel
def shared(start: I64, item: I32, other_start: I64, other_item: I32) -> U8:
    """Mark the rows whose user and item stand in the other set too; both sorted by item."""
    mark = np.zeros(item.size, np.uint8)
    for u in range(start.size - 1):
        j, last = other_start[u], other_start[u + 1]
        for i in range(start[u], start[u + 1]):
            while j < last and other_item[j] < item[i]:
                j += 1
            if j < last and other_item[j] == item[i]:
                mark[i] = 1
    return mark


@kernel
def precede(start: I64, time: I64, train_start: I64, train_time: I64) -> int:
    """Count the rows that are earlier than their user's last training rating."""
    before = 0
    for u in range(start.size - 1):
        if train_start[u] == train_start[u + 1]:
            continue
        latest = train_time[train_start[u]]
        for i in range(train_start[u], train_start[u + 1]):
            latest = max(latest, train_time[i])
        for i in range(start[u], start[u + 1]):
            before += time[i] < latest
    return before
