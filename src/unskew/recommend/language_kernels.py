"""Kernels of the language models and of the hitting time.

Ratings come by user (`start`, `item`, a number per rating) or turned by item (`turned_*`); a
kernel works on the users it is given and fills their rows.
"""

from __future__ import annotations

import math

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.engine.compiled import kernel

_LARGE = 1e100  # a product of factors from 1 up is taken to its logarithm beyond this


@kernel
def _add_rows(total: F64, table: F64, index: I32, weight: F64, first: int, last: int) -> None:
    """Add to a row Σ weight·table[index] over a range of both; four rows at a time, for speed."""
    at = first
    while at + 4 <= last:
        a, b = table[index[at]], table[index[at + 1]]
        c, d = table[index[at + 2]], table[index[at + 3]]
        p, q, r, s = weight[at], weight[at + 1], weight[at + 2], weight[at + 3]
        for x in range(total.size):
            total[x] += (p * a[x] + q * b[x]) + (r * c[x] + s * d[x])
        at += 4
    while at < last:
        a = table[index[at]]
        p = weight[at]
        for x in range(total.size):
            total[x] += p * a[x]
        at += 1


@kernel
def _log_product(factor: F64) -> float:
    """Return the logarithm of a product of factors from 1 up; four of them stay below 1e200."""
    total = 0.0
    product = 1.0
    whole = factor.size - factor.size % 4
    for x in range(0, whole, 4):
        product *= (factor[x] * factor[x + 1]) * (factor[x + 2] * factor[x + 3])
        if product > _LARGE:
            total += math.log(product)
            product = 1.0
    for x in range(whole, factor.size):
        product *= factor[x]
    return total + math.log(product)


@kernel
def relevance_model_1(
    users: I32,
    near_start: I64,
    near: I32,
    start: I64,
    item: I32,
    seen: F64,
    background: F64,
    collection: F64,
    score: F64,
) -> None:
    """Fill log Σ_v p(v) p(i|v) Π_j p(j|v), with p(i|v) = seen_vi + background_v·collection_i."""
    mark = np.full(collection.size, -1, np.int64)
    for row in range(users.size):
        u = users[row]
        out = score[row]
        out[:] = np.nan
        who = near[near_start[u] : near_start[u + 1]]
        neighbours = who.size
        if neighbours == 0:
            continue
        likelihood = np.empty(neighbours)
        unseen = 0.0  # Σ_j log p(j|C)
        for at in range(start[u], start[u + 1]):
            mark[item[at]] = row
            unseen += math.log(collection[item[at]])
        most = -np.inf
        for n in range(neighbours):
            v = who[n]
            total = unseen + (start[u + 1] - start[u]) * math.log(background[v])
            for at in range(start[v], start[v + 1]):
                j = item[at]
                if mark[j] == row:
                    total += math.log1p(seen[at] / (background[v] * collection[j]))
            likelihood[n] = total
            most = max(most, total)
        out[:] = 0.0
        share = 0.0
        for n in range(neighbours):
            v = who[n]
            w = math.exp(likelihood[n] - most)
            share += w * background[v]
            for at in range(start[v], start[v + 1]):
                out[item[at]] += w * seen[at]
        for i in range(collection.size):
            if collection[i] > 0.0:
                out[i] = most + math.log((out[i] + share * collection[i]) / neighbours)
            else:
                out[i] = np.nan


@kernel
def relevance_model_2(
    users: I32,
    near_start: I64,
    near: I32,
    start: I64,
    item: I32,
    seen: F64,
    background: F64,
    collection: F64,
    score: F64,
) -> None:
    """Fill log p(i) Π_j Σ_v p(v) p(i|v)/p(i)·p(j|v), with p(i|v) as in `relevance_model_1`.

    With B_j = Σ_v p(v) background_v p(j|v), the inner sum is
    collection_i·B_j/p(i) · (1 + Σ_v seen_vi/collection_i · p(v) p(j|v)/B_j):
    the neighbours who rated i make the second factor, which is 1 for all others. A product of
    factors from 1 up cannot vanish, so that one logarithm serves many.
    """
    items = collection.size
    log_item = -math.log(items)
    place = np.full(items, -1, np.int64)
    raters = np.zeros(items + 1, np.int64)
    for row in range(users.size):
        u = users[row]
        out = score[row]
        out[:] = np.nan
        who = near[near_start[u] : near_start[u + 1]]
        neighbours = who.size
        if neighbours == 0:
            continue
        ratings = 0
        for v in who:
            ratings += start[v + 1] - start[v]
        first, size = start[u], start[u + 1] - start[u]
        for j in range(size):
            place[item[first + j]] = j

        prior = 1.0 / neighbours
        given = np.empty((neighbours, size))  # p(v) p(j|v), later over B_j
        base = np.zeros(size)  # B_j
        raters[:] = 0
        for n in range(neighbours):
            v = who[n]
            b = background[v]
            for j in range(size):
                given[n, j] = prior * b * collection[item[first + j]]
            for at in range(start[v], start[v + 1]):
                raters[item[at] + 1] += 1
                j = place[item[at]]
                if j >= 0:
                    given[n, j] += prior * seen[at]
            for j in range(size):
                base[j] += b * given[n, j]
        constant = 0.0
        for j in range(size):
            constant += math.log(base[j])
            place[item[first + j]] = -1
            base[j] = 1.0 / base[j]
        for n in range(neighbours):
            for j in range(size):
                given[n, j] *= base[j]

        for i in range(items):
            raters[i + 1] += raters[i]
        rater = np.empty(ratings, np.int32)
        what = np.empty(ratings)
        for n in range(neighbours):
            v = who[n]
            for at in range(start[v], start[v + 1]):
                i = item[at]
                rater[raters[i]] = n
                what[raters[i]] = seen[at] / collection[i]
                raters[i] += 1
        # Filling moved every start to the next item's.
        factor = np.empty(size)
        begin = 0
        for i in range(items):
            end = raters[i]
            if collection[i] > 0.0:
                total = log_item + constant + size * (math.log(collection[i]) - log_item)
                if end > begin:
                    factor[:] = 1.0
                    _add_rows(factor, given, rater, what, begin, end)
                    total += _log_product(factor)
                out[i] = total
            begin = end


@kernel
def hits(
    users: I32,
    start: I64,
    item: I32,
    forward: F64,
    turned_start: I64,
    turned_user: I32,
    backward: F64,
    steps: int,
    score: F64,
) -> None:
    """Fill Σ_{t<steps} P(a walk from item i has met user u by step t).

    `forward` are the probabilities of a step from user to item, `backward` from item to user.
    All given users are walked at once, a column each.
    """
    columns = users.size
    items = turned_start.size - 1
    # A walk from an item stands at users after odd steps: met[t] of items needs met[t - 1] of
    # users, which needs met[t - 2] of items. Met by an even step is met by the odd one before.
    at_item = np.zeros((items, columns))
    at_user = np.zeros((start.size - 1, columns))
    total = np.zeros((items, columns))
    for step in range(1, steps, 2):
        for v in range(start.size - 1):
            at_user[v] = 0.0
            _add_rows(at_user[v], at_item, item, forward, start[v], start[v + 1])
        for c in range(columns):
            at_user[users[c], c] = 1.0
        times = min(2, steps - step)  # this step and, unless it is the last, the even one after
        for i in range(items):
            at_item[i] = 0.0
            _add_rows(
                at_item[i], at_user, turned_user, backward, turned_start[i], turned_start[i + 1]
            )
            for c in range(columns):
                total[i, c] += times * at_item[i, c]
    for i in range(items):
        for c in range(columns):
            score[c, i] = total[i, c]
