"""Kernels of random orders and of fixed orders under a random split."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64, U8
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, second
from unskew.engine.sort import in_sorted, sort_by

_32 = np.uint64(32)


@kernel
def reach(
    start: I64,
    item: I32,
    user: I32,
    stratum: I32,
    item_stratum: I32,
    train_start: I64,
    train_item: I32,
) -> U8:
    """Mark the judgments whose item is a target of their list: a candidate, not in training."""
    mark = np.zeros(item.size, np.uint8)
    for row in range(user.size):
        low, high = train_start[user[row]], train_start[user[row] + 1]
        for j in range(start[row], start[row + 1]):
            trained = in_sorted(train_item, low, high, item[j])
            mark[j] = item_stratum[item[j]] == max(stratum[row], 0) and not trained
    return mark


@kernel
def random_ranks(
    start: I64,
    reachable: U8,
    targets: I64,
    key: np.uint64,
    hit_start: I64,
    rank: I32,
    judgment: I32,
) -> int:
    """Put the judged targets of each list in random places: distinct ranks out of all targets."""
    widest = 0
    for row in range(targets.size):
        widest = max(widest, targets[row])
    order = np.empty(widest, np.int64)
    taken = np.full(widest, -1, np.int64)
    hit = 0
    hit_start[0] = 0
    for row in range(targets.size):
        state = first(key, row)
        begin, t, step = hit, targets[row], 0
        judged = start[row + 1] - start[row]
        if 2 * judged > t:
            for i in range(t):
                order[i] = i
        for j in range(start[row], start[row + 1]):
            if not reachable[j]:
                continue
            n = hit - begin
            if 2 * judged > t:  # a shuffle, as far as it is needed
                swap = n + int(((second(state, n) >> _32) * np.uint64(t - n)) >> _32)
                order[n], order[swap] = order[swap], order[n]
                position = order[n]
            else:
                while True:
                    position = int(((second(state, step) >> _32) * np.uint64(t)) >> _32)
                    step += 1
                    if taken[position] != row:
                        break
                taken[position] = row
            rank[hit], judgment[hit] = position + 1, j
            hit += 1
        sort_by(rank[begin:hit], judgment, begin, hit)
        hit_start[row + 1] = hit
    return hit


@kernel
def fixed_order_hits(
    order: I32, presence: F64, user_start: I64, rank: I32, liked: U8, sigma: float, n: int
) -> F64:
    """Return the expected number of liked test items among each user's first n targets.

    A walk down a fixed order. An item that the user did not rate takes a place with the
    probability that it is a candidate (`presence`, in the order's places); a rated one when it
    falls into the test part. `rank` lists the places of each user's rated items, ascending.
    """
    users = user_start.size - 1
    hits = np.zeros(users)
    filled = np.empty(n + 1)
    for u in range(users):
        filled[:] = 0.0
        filled[0] = 1.0
        index = user_start[u]
        low = 0  # no fewer than this many places are filled
        for p in range(order.size):
            rated = index < user_start[u + 1] and rank[index] == p
            chance = sigma if rated else presence[p]
            open_ = 0.0
            for s in range(low, n):
                open_ += filled[s]
            if open_ <= 0.0:
                break
            if rated:
                if liked[index]:
                    hits[u] += sigma * open_
                index += 1
            if chance >= 1.0:
                for s in range(n, low, -1):
                    filled[s] = filled[s] + filled[s - 1] if s == n else filled[s - 1]
                filled[low] = 0.0
                low += 1
                if low >= n:
                    break
            elif chance > 0.0:
                filled[n] += chance * filled[n - 1]
                for s in range(n - 1, low, -1):
                    filled[s] = (1.0 - chance) * filled[s] + chance * filled[s - 1]
                filled[low] *= 1.0 - chance
    return hits


@kernel
def spread(better: int, others: int, n: int, replacement: bool, chance: F64) -> tuple[int, int]:
    """Write how likely each number of better items among n drawn is; return first and last.

    From the most likely number outwards, each from its neighbour, and then divided by their sum:
    no large factorial is ever needed, and nothing is lost but what is too small for a float.
    """
    worse = others - better
    low = 0 if replacement else max(0, n - worse)
    high = n if replacement else min(n, better)
    if replacement and (better == 0 or worse == 0):
        sure = 0 if better == 0 else n
        chance[sure] = 1.0
        return sure, sure
    more = 0 if replacement else 1
    middle = (n + 1) * (better + more) // (others + 2 * more)
    middle = min(max(middle, low), high)
    chance[middle] = total = 1.0
    first = last = middle
    term = 1.0
    for x in range(middle, high):
        if replacement:
            term *= (n - x) * float(better) / ((x + 1) * float(worse))
        else:
            term *= (better - x) * float(n - x) / ((x + 1) * float(worse - n + x + 1))
        if term == 0.0:
            break
        last = x + 1
        chance[last] = term
        total += term
    term = 1.0
    for x in range(middle, low, -1):
        if replacement:
            term *= x * float(worse) / ((n - x + 1) * float(better))
        else:
            term *= x * float(worse - n + x) / ((better - x + 1) * float(n - x + 1))
        if term == 0.0:
            break
        first = x - 1
        chance[first] = term
        total += term
    for x in range(first, last + 1):
        chance[x] /= total
    return first, last


@kernel
def rank_chances(ranks: I64, others: int, n: int, replacement: bool, out: F64) -> None:
    """Write how likely each number 0 … n of better items among n drawn is, a row per true rank."""
    for row in range(ranks.size):
        out[row, :] = 0.0
        spread(ranks[row] - 1, others, n, replacement, out[row])


@kernel
def expectations(better: I64, others: I64, sizes: I64, values: F64, out: F64) -> None:
    """Write the expectation of the values of a sampled rank, a column per list.

    `better` of the `others` stand above the relevant item, `sizes` of them are in its list; a
    negative number is an item in no place, which counts 0. `values` has a row per metric and a
    column per sampled rank as far as any metric looks: what lies beyond counts 0.
    """
    chance = np.empty(max(sizes.max(), 0) + 1)
    for row in range(better.size):
        out[:, row] = 0.0
        if better[row] < 0:
            continue
        first, last = spread(better[row], others[row], sizes[row], False, chance)
        for metric in range(values.shape[0]):
            total = 0.0
            for x in range(first, min(last + 1, values.shape[1])):
                total += chance[x] * values[metric, x]
            out[metric, row] = total
