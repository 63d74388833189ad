"""Kernels of the ladder: sums over sparse pairs, chances of pairs, sums over ranked lists."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64, Mask
from unskew.engine.compiled import kernel


@kernel
def add_rows(start: I64, item: I32, weight: F64, right: F64, out: F64) -> None:
    """Add to each user's row the weighted rows of the user's items in `right`."""
    width = right.shape[1]
    for u in range(start.size - 1):
        for j in range(start[u], start[u + 1]):
            value, i = weight[j], item[j]
            for s in range(width):
                out[u, s] += value * right[i, s]


@kernel
def add_columns(start: I64, item: I32, weight: F64, left: F64, out: F64) -> None:
    """Add to each item's row the weighted rows of the item's users in `left`."""
    width = left.shape[1]
    for u in range(start.size - 1):
        for j in range(start[u], start[u + 1]):
            value, i = weight[j], item[j]
            for s in range(width):
                out[i, s] += value * left[u, s]


@kernel
def logistic(start: I64, item: I32, user_odds: F64, item_odds: F64, out: F64) -> None:
    """Fill in 1 / (1 + exp(-a - b)) of sparse pairs."""
    for u in range(start.size - 1):
        for j in range(start[u], start[u + 1]):
            out[j] = 1 / (1 + np.exp(-user_odds[u] - item_odds[item[j]]))


@kernel
def chances(
    low: int,
    item: I32,
    user_odds: F64,
    item_odds: F64,
    user_turn: I32,
    item_turn: I32,
    user_value: F64,
    item_value: F64,
    out: F64,
) -> None:
    """Fill in the chances of listed cells, a row per user from `low` on; 0 of empty slots.

    Where users or items have one possible value only, the one that was seen first decides.
    """
    for row in range(item.shape[0]):
        u = low + row
        for j in range(item.shape[1]):
            i = item[row, j]
            if i < 0:
                out[row, j] = 0.0
            elif user_turn[u] < item_turn[i]:
                out[row, j] = user_value[u]
            elif item_turn[i] < user_turn[u]:
                out[row, j] = item_value[i]
            else:
                out[row, j] = 1 / (1 + np.exp(-user_odds[u] - item_odds[i]))


@kernel
def locate(low: int, start: I64, item: I32, listed: I32, out: I64) -> None:
    """Fill in where each listed cell stands among sparse pairs with sorted items; -1: nowhere."""
    for row in range(listed.shape[0]):
        u = low + row
        part = item[start[u] : start[u + 1]]
        for j in range(listed.shape[1]):
            out[row, j] = -1
            if listed[row, j] >= 0:
                index = np.searchsorted(part, listed[row, j])
                if index < part.size and part[index] == listed[row, j]:
                    out[row, j] = start[u] + index


@kernel
def add_lists(listed: I32, weight: F64, columns: F64, overlap: F64) -> None:
    """Add the weights of listed cells by item and system, and by pair of systems.

    Parameters
    ----------
    listed
        Users x systems x ranks: items, -1 for an empty slot.
    weight
        Kinds x users x systems x ranks.
    columns
        Kinds x items x systems, filled in.
    overlap
        Kinds x systems x systems, filled in: sums over the cells that both list.
    """
    kinds, users, systems, ranks = weight.shape
    slot = np.full(columns.shape[1], -1, np.int64)
    members = np.empty((systems * ranks, systems), np.int64)
    count = np.empty(systems * ranks, np.int64)
    for u in range(users):
        seen = 0
        for s in range(systems):
            for r in range(ranks):
                i = listed[u, s, r]
                if i < 0:
                    continue
                column = slot[i]
                if column < 0:
                    column = seen
                    slot[i] = column
                    count[column] = 0
                    seen += 1
                members[column, count[column]] = s
                count[column] += 1
                for kind in range(kinds):
                    value = weight[kind, u, s, r]
                    columns[kind, i, s] += value
                    for member in range(count[column]):
                        overlap[kind, members[column, member], s] += value
        for s in range(systems):
            for r in range(ranks):
                if listed[u, s, r] >= 0:
                    slot[listed[u, s, r]] = -1


@kernel
def strong_components(start: I64, target: I32) -> I32:
    """Return the number of the strongly connected component of each node (Tarjan 1972)."""
    nodes = start.size - 1
    component = np.full(nodes, -1, np.int32)
    index, low = np.full(nodes, -1, np.int64), np.zeros(nodes, np.int64)
    stack, path = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    edge = start[:-1].copy()
    stacked = np.zeros(nodes, np.bool_)
    height, seen, number = 0, 0, 0
    for root in range(nodes):
        if index[root] >= 0:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            node = path[depth]
            if index[node] < 0:
                index[node] = low[node] = seen
                seen += 1
                stack[height] = node
                height += 1
                stacked[node] = True
            if edge[node] < start[node + 1]:
                successor = target[edge[node]]
                edge[node] += 1
                if index[successor] < 0:
                    depth += 1
                    path[depth] = successor
                elif stacked[successor]:
                    low[node] = min(low[node], index[successor])
                continue
            if low[node] == index[node]:
                member = -1
                while member != node:
                    height -= 1
                    member = stack[height]
                    stacked[member] = False
                    component[member] = number
                number += 1
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[node])
    return component


@kernel
def keep_free(start: I64, item: I32, user_free: Mask, item_free: Mask, out: Mask) -> None:
    """Mark the sparse pairs whose user and item are both free."""
    for u in range(start.size - 1):
        for j in range(start[u], start[u + 1]):
            out[j] = user_free[u] and item_free[item[j]]
