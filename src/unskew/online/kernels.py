"""Impressions: who comes, what is shown, what is clicked.

Everything of impression n is drawn by counter hash from n: the user at 0, arms, coins and the
order of teams from 1 on, clicks from `_CLICK` on. Results are counts, so that blocks of impressions
add up to the same in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.arrays import I32, I64, U8
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, second
from unskew.online.click_models import Behaviour
from unskew.worlds.kernels import unit

_CLICK = 1 << 32

SHOWN, CLICKED = 1, 2
"""Marks of a log; 0 = never shown."""


@kernel
def below(bits: np.uint64, count: int) -> Any:
    """Return a number from 0 to count - 1; its bias is at most count / 2^64."""
    return np.int64(bits % np.uint64(count))


@kernel
def click(
    state: np.uint64,
    size: int,
    item: I32,
    liked: U8,
    behaviour: Behaviour,
    clicked: U8,
) -> Any:
    """Let a user go through a list; mark what is clicked, and return how much that is."""
    examination, if_liked, if_not, engage, keep, group = behaviour
    count = 0
    for r in range(size):
        clicked[r] = 0
        i = item[r]
        if i < 0:
            continue
        chance = if_liked if liked[r] else if_not
        chance = examination[r] * (engage[i] + (1.0 - engage[i]) * chance)
        if count and keep < 1.0:
            for q in range(r):
                if clicked[q] and group[item[q]] == group[i]:
                    chance *= keep
        if unit(second(state, _CLICK + r)) < chance:
            clicked[r] = 1
            count += 1
    return count


@kernel
def ab_block(
    lo: int,
    hi: int,
    key: np.uint64,
    item: I32,
    liked: U8,
    behaviour: Behaviour,
    out: I64,
) -> None:
    """Show each impression one system's list; add up lists, clicks and squared clicks."""
    systems, users, k = item.shape
    clicked = np.empty(k, np.uint8)
    for n in range(lo, hi):
        state = first(key, n)
        u, s = below(second(state, 0), users), below(second(state, 1), systems)
        count = click(state, k, item[s, u], liked[s, u], behaviour, clicked)
        out[s, 0] += 1
        out[s, 1] += count
        out[s, 2] += count * count


@kernel
def log_block(
    hi: int,
    key: np.uint64,
    census: bool,
    item: I32,
    liked: U8,
    behaviour: Behaviour,
    mark: U8,
) -> None:
    """Mark what the impressions of `ab_block` showed and what was clicked.

    In a census impression n is that of user n // systems and system n modulo systems instead.
    """
    systems, users, k = item.shape
    clicked = np.empty(k, np.uint8)
    for n in range(hi):
        state = first(key, n)
        u, s = below(second(state, 0), users), below(second(state, 1), systems)
        if census:
            u, s = n // systems, n % systems
        click(state, k, item[s, u], liked[s, u], behaviour, clicked)
        for r in range(k):
            if item[s, u, r] >= 0:
                mark[s, u, r] = max(mark[s, u, r], SHOWN + clicked[r])


@kernel
def seen(mixed: I32, size: int, item: int) -> Any:
    """Return where an item stands in a list, -1 if it does not."""
    for r in range(size):
        if mixed[r] == item:
            return r
    return -1


@kernel
def team_draft(state: np.uint64, item: I32, u: int, mixed: I32, team: I32, source: I32) -> Any:
    """Merge the lists of a user: in each round every system, in random order, adds its next item.

    Fills the merged list, whose turn each place was, and the place in that system's own list;
    returns its length.
    """
    systems, _, k = item.shape
    position, order = np.zeros(systems, np.int32), np.empty(systems, np.int32)
    size, number = 0, 1
    while size < k:
        for turn in range(systems):
            order[turn] = turn
        for turn in range(systems - 1, 0, -1):
            swap = below(second(state, number), turn + 1)
            number += 1
            order[turn], order[swap] = order[swap], order[turn]
        before = size
        for turn in range(systems):
            s = order[turn]
            while position[s] < k and (
                item[s, u, position[s]] < 0 or seen(mixed, size, item[s, u, position[s]]) >= 0
            ):
                position[s] += 1
            if position[s] < k and size < k:
                mixed[size], team[size], source[size] = item[s, u, position[s]], s, position[s]
                size += 1
        if size == before:
            break
    return size


@kernel
def balance(coin: int, a: I32, b: I32, mixed: I32) -> Any:
    """Merge two lists so that any top of it holds as much of the top of both; return its length.

    `coin` is 1 if `a` begins.
    """
    k = mixed.size
    in_a, in_b = 0, 0
    while in_a < k and a[in_a] >= 0:
        in_a += 1
    while in_b < k and b[in_b] >= 0:
        in_b += 1
    at_a, at_b, size = 0, 0, 0
    while size < k and (at_a < in_a or at_b < in_b):
        turn = at_a < at_b or (at_a == at_b and coin == 1)
        if (turn and at_a < in_a) or at_b >= in_b:
            new = a[at_a]
            at_a += 1
        else:
            new = b[at_b]
            at_b += 1
        if seen(mixed, size, new) < 0:
            mixed[size] = new
            size += 1
    return size


@kernel
def balanced_credit(size: int, mixed: I32, clicked: U8, a: I32, b: I32) -> Any:
    """Return the clicks that each of two lists gets, down to where the deepest click is found."""
    k = a.size
    deepest = -1
    for r in range(size):
        if clicked[r]:
            deepest = r
    in_a, in_b = seen(a, k, mixed[deepest]), seen(b, k, mixed[deepest])
    reach = min(in_a if in_a >= 0 else k, in_b if in_b >= 0 else k) + 1
    for_a, for_b = 0, 0
    for r in range(size):
        if clicked[r]:
            for_a += seen(a, reach, mixed[r]) >= 0
            for_b += seen(b, reach, mixed[r]) >= 0
    return for_a, for_b


@kernel
def merge_block(
    lo: int,
    hi: int,
    key: np.uint64,
    balanced: bool,
    item: I32,
    liked: U8,
    behaviour: Behaviour,
    wins: I64,
) -> None:
    """Count in how many impressions one system gets more clicks than another.

    `balanced`: two lists, merged by `balance`; else any number of teams.
    """
    systems, users, k = item.shape
    mixed, team, source = np.empty(k, np.int32), np.empty(k, np.int32), np.empty(k, np.int32)
    truth, clicked = np.empty(k, np.uint8), np.empty(k, np.uint8)
    credit = np.empty(systems, np.int64)
    for n in range(lo, hi):
        state = first(key, n)
        u = below(second(state, 0), users)
        if balanced:
            size = balance(below(second(state, 1), 2), item[0, u], item[1, u], mixed)
            for r in range(size):
                rank = seen(item[0, u], k, mixed[r])
                team[r] = 0 if rank >= 0 else 1
                source[r] = rank if rank >= 0 else seen(item[1, u], k, mixed[r])
        else:
            size = team_draft(state, item, u, mixed, team, source)
        for r in range(size):
            truth[r] = liked[team[r], u, source[r]]
        if not click(state, size, mixed, truth, behaviour, clicked):
            continue
        credit[:] = 0
        if balanced:
            credit[0], credit[1] = balanced_credit(size, mixed, clicked, item[0, u], item[1, u])
        else:
            for r in range(size):
                credit[team[r]] += clicked[r]
        for a in range(systems):
            for b in range(systems):
                wins[a, b] += credit[a] > credit[b]


@kernel
def look_up(lists: I32, mark: U8, item: I32, out: U8) -> None:
    """Write for the lists of other systems how each item was marked where it was shown."""
    systems, users, k = lists.shape
    for t in range(item.shape[0]):
        for u in range(users):
            for r in range(k):
                best = 0
                if item[t, u, r] >= 0:
                    for s in range(systems):
                        rank = seen(lists[s, u], k, item[t, u, r])
                        if rank >= 0:
                            best = max(best, mark[s, u, rank])
                out[t, u, r] = best
