"""Kernels of the language models and of the hitting time.

Ratings come by user (`start`, `item`, a number per rating) or turned by item (`turned_*`); a
kernel works on the users `low` to `high`, or on the users it is given, and fills their rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unskew.compiled import kernel

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

_LARGE = 1e100  # a product of factors from 1 up is taken to its logarithm beyond this


@kernel
def _before(score: F64, number: I32, a: int, b: int) -> bool:
    """Tell whether a ranks before b: by score, of equals the smaller number."""
    return bool(score[a] > score[b] or (score[a] == score[b] and number[a] < number[b]))


@kernel
def _sink(score: F64, number: I32, root: int, end: int) -> None:
    """Restore a heap whose root is the entry that ranks last."""
    while True:
        last = root
        for child in range(2 * root + 1, min(2 * root + 3, end)):
            if _before(score, number, last, child):
                last = child
        if last == root:
            return
        score[root], score[last] = score[last], score[root]
        number[root], number[last] = number[last], number[root]
        root = last


@kernel
def _keep_best(score: F64, number: I32, held: int, one: float, who: int) -> int:
    """Offer an entry to a heap that holds the best; numbers must be offered ascending."""
    if held < score.size:
        score[held], number[held] = one, who
        held += 1
        if held == score.size:
            for root in range(held // 2 - 1, -1, -1):
                _sink(score, number, root, held)
    elif one > score[0]:  # of equals the earlier stays
        score[0], number[0] = one, who
        _sink(score, number, 0, held)
    return held


@kernel
def nearest(
    start: I64, entry: I32, left: F64, turned_start: I64, turned_owner: I32, right: F64,
    own: F64, other: F64, low: int, high: int, number: I32, score: F64,
) -> None:  # fmt: skip
    """Find for each profile u the v with the largest Σ_x left_ux·right_vx + own_u·other_v.

    Only scores above 0 count. They stand in no order; the rest of a row is the number of profiles.
    """
    total = np.zeros(start.size - 1)
    for u in range(low, high):
        for row in range(start[u], start[u + 1]):
            x = left[row]
            for at in range(turned_start[entry[row]], turned_start[entry[row] + 1]):
                total[turned_owner[at]] += x * right[at]
        best, who = score[u], number[u]
        held = 0
        for v in range(total.size):
            one = total[v] + own[u] * other[v]
            if one > 0.0 and v != u:
                held = _keep_best(best, who, held, one, v)
        who[held:] = total.size
        total[:] = 0.0


@kernel
def weighted_ratings(
    users: I32, number: I32, weight: F64, start: I64, item: I32, value: F64, score: F64
) -> None:
    """Fill Σ_v weight_uv·value_vi over the neighbours v of u who rated i; NaN where none did."""
    for row in range(users.size):
        out = score[row]
        out[:] = np.nan
        for n in range(number.shape[1]):
            v = number[users[row], n]
            if v < 0:
                break
            w = weight[users[row], n]
            for at in range(start[v], start[v + 1]):
                i = item[at]
                term = w * value[at]
                out[i] = term if math.isnan(out[i]) else out[i] + term


@kernel
def weighted_neighbours(
    users: I32, start: I64, item: I32, value: F64, lister_start: I64, lister: I32, weight: F64,
    score: F64,
) -> None:  # fmt: skip
    """Fill Σ_j weight_ij·value_uj over the items j that u rated and that are neighbours of i.

    `lister` are the items i that list j among their neighbours.
    """
    for row in range(users.size):
        out = score[row]
        out[:] = np.nan
        for at in range(start[users[row]], start[users[row] + 1]):
            j = item[at]
            for near in range(lister_start[j], lister_start[j + 1]):
                i = lister[near]
                term = weight[near] * value[at]
                out[i] = term if math.isnan(out[i]) else out[i] + term


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
    users: I32, number: I32, start: I64, item: I32, seen: F64, background: F64, collection: F64,
    score: F64,
) -> None:  # fmt: skip
    """Fill log Σ_v p(v) p(i|v) Π_j p(j|v), with p(i|v) = seen_vi + background_v·collection_i."""
    likelihood = np.empty(number.shape[1])
    mark = np.full(collection.size, -1, np.int64)
    for row in range(users.size):
        u = users[row]
        out = score[row]
        out[:] = np.nan
        neighbours = 0
        while neighbours < number.shape[1] and number[u, neighbours] >= 0:
            neighbours += 1
        if neighbours == 0:
            continue
        unseen = 0.0  # Σ_j log p(j|C)
        for at in range(start[u], start[u + 1]):
            mark[item[at]] = row
            unseen += math.log(collection[item[at]])
        most = -np.inf
        for n in range(neighbours):
            v = number[u, n]
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
            v = number[u, n]
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
    users: I32, number: I32, start: I64, item: I32, seen: F64, background: F64, collection: F64,
    log_item: float, score: F64,
) -> None:  # fmt: skip
    """Fill log p(i) Π_j Σ_v p(v) p(i|v)/p(i)·p(j|v), with p(i|v) as in `relevance_model_1`.

    With B_j = Σ_v p(v) background_v p(j|v), the inner sum is
    collection_i·B_j/p(i) · (1 + Σ_v seen_vi/collection_i · p(v) p(j|v)/B_j):
    the neighbours who rated i make the second factor, which is 1 for all others. A product of
    factors from 1 up cannot vanish, so that one logarithm serves many.
    """
    items = collection.size
    place = np.full(items, -1, np.int64)
    raters = np.zeros(items + 1, np.int64)
    for row in range(users.size):
        u = users[row]
        out = score[row]
        out[:] = np.nan
        neighbours = 0
        ratings = 0
        while neighbours < number.shape[1] and number[u, neighbours] >= 0:
            v = number[u, neighbours]
            ratings += start[v + 1] - start[v]
            neighbours += 1
        if neighbours == 0:
            continue
        first, size = start[u], start[u + 1] - start[u]
        for j in range(size):
            place[item[first + j]] = j

        prior = 1.0 / neighbours
        given = np.empty((neighbours, size))  # p(v) p(j|v), later over B_j
        base = np.zeros(size)  # B_j
        raters[:] = 0
        for n in range(neighbours):
            v = number[u, n]
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
        who = np.empty(ratings, np.int32)
        what = np.empty(ratings)
        for n in range(neighbours):
            v = number[u, n]
            for at in range(start[v], start[v + 1]):
                i = item[at]
                who[raters[i]] = n
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
                    _add_rows(factor, given, who, what, begin, end)
                    total += _log_product(factor)
                out[i] = total
            begin = end


@kernel
def together(start: I64, item: I32, turned_start: I64, turned_user: I32, low: int, high: int,
             count: F64) -> None:  # fmt: skip
    """Count for items `low` to `high` with each item the users who rated both."""
    for b in range(low, high):
        for at in range(turned_start[b], turned_start[b + 1]):
            v = turned_user[at]
            for row in range(start[v], start[v + 1]):
                count[b, item[row]] += 1.0


@kernel
def sum_of_rows(users: I32, start: I64, item: I32, table: F64, score: F64) -> None:
    """Add to each user's row the table's rows of the items that the user rated."""
    width = 256  # columns at a time: their part of the table stays near
    for left in range(0, table.shape[1], width):
        right = min(left + width, table.shape[1])
        for row in range(users.size):
            out = score[row]
            for at in range(start[users[row]], start[users[row] + 1]):
                line = table[item[at]]
                for i in range(left, right):
                    out[i] += line[i]


@kernel
def hits(
    users: I32, start: I64, item: I32, forward: F64, turned_start: I64, turned_user: I32,
    backward: F64, steps: int, score: F64,
) -> None:  # fmt: skip
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
