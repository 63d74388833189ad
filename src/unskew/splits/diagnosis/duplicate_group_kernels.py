"""Kernels of the search for near-duplicate users within one set of ratings."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.engine.compiled import kernel
from unskew.splits.diagnosis.duplicate_user_kernels import (
    AGREE,
    AGREE_WEIGHT,
    HABIT_MARGIN,
    PRIOR,
    PRIOR_WEIGHT,
    RATERS,
    SEEDS,
    VISITED,
    agreement,
    compare_rows,
    improbability,
    same_by_habit,
)
from unskew.splits.diagnosis.kernels import UserRows

TRIED = 8
"""The most common items whose other raters are looked at, the rarest first."""
FRESH = 3
"""Raters of a common item that show what goes with it."""
NEAR = 0.05
"""The least chance of a usual time apart."""
UNINFORMATIVE = 0.9
"""From this chance of equal values on, values tell nothing: implicit feedback."""
ALIKE = 0.85
"""An account is alike if it is so many times as similar as the pair."""
CREW = 10
"""The most accounts alike where values tell nothing: more of them are fans of the same items."""


@kernel
def meet_within(key: np.ndarray, order: I64, crowd: int) -> I32:
    """Return pairs of entries with equal keys: all of a small run, neighbours of a large one.

    `order` sorts the keys, so that the entries of a run ascend.
    """
    for filled in range(2):
        n, low = 0, 0
        if filled == 0:
            pairs = np.empty((0, 2), np.int32)
        while low < key.size:
            high = low + 1
            while high < key.size and key[order[high]] == key[order[low]]:
                high += 1
            reach = high - low if high - low <= crowd else 1
            for i in range(low, high):
                for j in range(i + 1, min(i + reach + 1, high)):
                    if filled == 1:
                        pairs[n, 0], pairs[n, 1] = order[i], order[j]
                    n += 1
            low = high
        if filled == 0:
            pairs = np.empty((n, 2), np.int32)
    return pairs


@kernel
def _root(parent: I32, user: int) -> int:
    """Return the first account of a user's group, and shorten the way to it."""
    while parent[user] != user:
        parent[user] = parent[parent[user]]
        user = parent[user]
    return user


@kernel
def _rarest(items: I32, n: int, mine: F64, item_start: I64, tried: I32) -> int:
    """Return the place of the rarest common item that is not tried yet and has enough raters."""
    best, place = np.int64(2**62), -1
    for j in range(n):
        size = item_start[items[j] + 1] - item_start[items[j]]
        if mine[j] > 0.0 and size >= FRESH + 2 and size < best:
            is_tried = False
            for s in range(tried.size):
                is_tried = is_tried or tried[s] == items[j]
            if not is_tried:
                best, place = size, j
    return place


@kernel
def _popularity(items: I32, item_start: I64, people: int, draws: float) -> F64:
    """Return the chance that an account of this size holds each item, by popularity alone."""
    popular = np.empty(items.size)
    for j in range(items.size):
        size = item_start[items[j] + 1] - item_start[items[j]]
        popular[j] = min(1.0 - np.exp(-draws * size / people), 1.0 - 1e-9)
    return popular


@kernel
def _overdispersion(shared: F64, sizes: F64, count: F64) -> float:
    """Return how much more numbers of shared items vary than those of independent items.

    Items of a series are held together: numbers of shared ones vary more, and say less.
    """
    people = shared.size
    if people < FRESH:
        return 1.0
    rate, squares, independent = shared.sum() / sizes.sum(), 0.0, 0.0
    for x in range(people):
        squares += (shared[x] - rate * sizes[x]) ** 2
    for j in range(count.size):
        share = count[j] / people
        independent += share * (1.0 - share)
    return max(squares / people / max(independent, 1e-9), 1.0)


@kernel
def _look_at_raters(
    u: int,
    v: int,
    rows: UserRows,
    mine: F64,
    similar: float,
    item_start: I64,
    raters: I32,
    width: int,
    count: F64,
    seeds: I32,
) -> tuple[int, int, int, int, int, float]:
    """Count what people hold who rated the rarest items that both accounts have.

    Accounts that are as similar to v as u is are counted apart. Fills `count` by item of v, and the
    items in `seeds`. Returns how many people and how many alike there are; of the items that these
    people share with v how many there are, with the same value and at the usual time apart; and how
    much their numbers vary, for their activity, compared with items that are held independently.
    """
    low, n = rows.start[v], rows.start[v + 1] - rows.start[v]
    items, values = rows.item[low : low + n], rows.value[low : low + n]
    times = rows.time[low : low + n] if rows.time.size else rows.time
    none, apart = np.full(SEEDS, -1, np.int32), np.empty(n, np.int64)
    seen, visits = np.empty(TRIED * VISITED, np.int32), 0
    tried = np.full(TRIED, -1, np.int32)
    people, alike, used, common, same, near = 0, 0, 0, 0, 0, 0
    shared, sizes = np.empty(TRIED * VISITED), np.empty(TRIED * VISITED)
    for attempt in range(TRIED):
        place = _rarest(items, n, mine, item_start, tried) if used < SEEDS else -1
        if place < 0:
            break
        tried[attempt] = items[place]
        first, last = item_start[items[place]], item_start[items[place] + 1]
        step, fresh = max((last - first) / VISITED, 1.0), 0
        for r in range(min(VISITED, last - first)):
            w = raters[first + np.int64(r * step)]
            size = rows.start[w + 1] - rows.start[w]
            # The less active hold less of anything: they say nothing about this account.
            is_excluded = w in (u, v) or 2 * size < rows.start[u + 1] - rows.start[u]
            if is_excluded or fresh >= RATERS:
                continue
            for x in range(visits):
                is_excluded = is_excluded or seen[x] == w
            if is_excluded:
                continue
            seen[visits] = w
            visits += 1
            held = np.zeros(n)
            _, c, e, a = compare_rows(rows, w, items, values, times, n, width, none, held, apart)
            if c >= ALIKE * similar * (size + n - c):
                alike += 1
                continue
            count += held
            shared[people + fresh], sizes[people + fresh] = c, size
            fresh += 1
            if c >= 3:  # of fewer the usual time apart is no measure
                common, same, near = common + c, same + e, near + a
        people += fresh
        if fresh >= FRESH:
            seeds[used] = items[place]
            used += 1
    spread = _overdispersion(shared[:people], sizes[:people], count)
    return people, alike, common, same, near, spread


@kernel
def _is_duplicate(
    u: int,
    v: int,
    rows: UserRows,
    item_start: I64,
    raters: I32,
    draws: float,
    width: int,
    needed: float,
) -> bool:
    """Tell whether u holds more of the items of v than any person would.

    A person is somebody who rated the rarest items that both have. Accounts that are as similar to
    v as u is belong to its group, if they are few or rate alike, and do not count as people.
    """
    low, n = rows.start[v], rows.start[v + 1] - rows.start[v]
    items, values = rows.item[low : low + n], rows.value[low : low + n]
    times = rows.time[low : low + n] if rows.time.size else rows.time
    none, apart = np.full(SEEDS, -1, np.int32), np.empty(n, np.int64)
    mine, count = np.zeros(n), np.zeros(n)
    _, common, same, near = compare_rows(rows, u, items, values, times, n, width, none, mine, apart)
    by_habit = same_by_habit(rows, u, items, values, n)
    do_values_tell = by_habit < UNINFORMATIVE
    if do_values_tell and same < 0.5 * (1.0 + by_habit) * common:
        return False
    popular = _popularity(items, item_start, raters.size, draws)
    # With people who hold nothing and agree on nothing: at most that is left.
    bound = improbability(popular, n, float(common)) + agreement(common, near, NEAR)
    if bound + agreement(common, same, by_habit + HABIT_MARGIN) < needed:
        return False
    seeds = np.full(SEEDS, -1, np.int32)
    similar = common / (rows.start[u + 1] - rows.start[u] + n - common)
    people, alike, of_people, same_of_people, near_of_people, spread = _look_at_raters(
        u, v, rows, mine, similar, item_start, raters, width, count, seeds
    )
    if alike > CREW and not do_values_tell:
        return False
    chance, m, k = np.empty(n), 0, 0.0
    for j in range(n):
        if items[j] != seeds[0] and items[j] != seeds[1] and items[j] != seeds[2]:
            prior = max(PRIOR, popular[j])
            guess = (count[j] + prior * PRIOR_WEIGHT) / (people + PRIOR_WEIGHT)
            chance[m] = min(max(popular[j], guess), 1.0 - 1e-9)
            k += mine[j]
            m += 1
    weight = AGREE_WEIGHT * n
    by_people = (same_of_people + AGREE * weight) / (of_people + weight)
    near_by_people = (near_of_people + AGREE * weight) / (of_people + weight)
    decades = improbability(chance, m, k) / spread
    decades += agreement(common, same, max(by_people, by_habit) + HABIT_MARGIN)
    decades += agreement(common, near, max(near_by_people, NEAR))
    return bool(decades >= needed)


@kernel
def join(
    pairs: I32,
    rows: UserRows,
    item_start: I64,
    raters: I32,
    draws: F64,
    width: int,
    needed: float,
    parent: I32,
) -> None:
    """Join the accounts of pairs that are near-duplicates, the most similar first.

    `parent` leads from each account towards the first of its group. Accounts that are in one group
    already are not compared.
    """
    for p in range(pairs.shape[0]):
        u, v = pairs[p, 0], pairs[p, 1]
        a, b = _root(parent, u), _root(parent, v)
        if a != b and _is_duplicate(u, v, rows, item_start, raters, draws[p], width, needed):
            parent[max(a, b)] = min(a, b)
    for user in range(parent.size):
        parent[user] = _root(parent, user)
