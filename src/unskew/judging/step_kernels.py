"""Kernels of steps: the rank of each next item, from one ranking per user or from fresh scores."""

from __future__ import annotations

import numpy as np

from unskew.arrays import I32, I64, U8, Tile
from unskew.engine.compiled import kernel
from unskew.engine.rng_kernels import first
from unskew.judging.rank_kernels import comes_before


@kernel
def _add(tree: I64, place: int) -> None:
    """Count one more entry at a place (from 1) of Fenwick's tree."""
    while place < tree.size:
        tree[place] += 1
        place += place & -place


@kernel
def _up_to(tree: I64, place: int) -> int:
    """Return how many entries stand at this place or before it."""
    total = 0
    while place > 0:
        total += tree[place]
        place -= place & -place
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
        known = np.empty(size, np.int64)
        at = 0
        for e in range(start[user], start[user + 1]):
            if pair[e] >= 0 and pair_rank[pair[e]] > 0:
                known[at] = pair_rank[pair[e]]
                at += 1
        known = np.sort(known)
        tree = np.zeros(size + 1, np.int64)
        met = 0
        for e in range(start[user], start[user + 1]):
            if pair[e] < 0:
                continue
            r = pair_rank[pair[e]]
            place = np.searchsorted(known, r) + 1 if r > 0 else 0
            if step_of[e] >= 0:
                rank[step_of[e]] = r - _up_to(tree, place) if r > 0 else 0
                depth[step_of[e]] = max(scored[user] - met, rank[step_of[e]])
            if r > 0:
                _add(tree, place)
            met += counted[pair[e]]


@kernel
def ranks_of_next(
    tile: Tile,
    lo: int,
    hi: int,
    user: I32,
    target: I32,
    at: I64,
    log_start: I64,
    log_item: I32,
    train_start: I64,
    train_item: I32,
    candidate: U8,
    drops: bool,
    tie_key: np.uint64,
    user_key: I64,
    item_key: I64,
    rank: I64,
    depth: I64,
) -> None:
    """Write the rank of the target of steps lo..hi, whose scores are the rows of the tile.

    Among the candidates with a score; where `drops`, without those that the user met in training
    or before the step. 0 where the target is none of them. `depth` is how many there are.
    """
    items = candidate.size
    met = np.full(items, -1, np.int64)
    none = np.uint64(0)
    for step in range(lo, hi):
        scores, u, j = tile[step - lo], user[step], target[step]
        if drops:
            for e in range(train_start[u], train_start[u + 1]):
                met[train_item[e]] = step
            for e in range(log_start[u], at[step]):
                met[log_item[e]] = step
        state = first(tie_key, user_key[u]) if item_key.size else none
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
                above += comes_before(scores[i], i, value, j, state, item_key)
        rank[step] = above + 1 if ranked else 0
        depth[step] = count
