"""Kernels that descend on pairs of a rated and an unrated item."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unskew.arrays import F32, F64, I32, I64, Raters, Rows
from unskew.engine.compiled import kernel, training_kernel
from unskew.recommend.kernels.sgd import below, dot, dot_difference, holds, random_bits

BATCH = 1024
TRIES = 64  # draws that may be thrown away before the unrated items are counted

BLOCK = 64  # popularities that are summed before their sums are
SMALL = 1e-30  # a common scale below this, or above its inverse, is multiplied in

_ELEVEN, _HALF = np.uint64(11), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def draw_unrated(state: np.uint64, pool: I32, weight: I64, start: I64, item: I32, u: int) -> int:
    """Draw from the pool an item that u did not rate, or -1 if there is none.

    The pool holds every item as often as its weight says. What is rated is thrown away; should
    that happen too often, the rest is counted out, so that all draws are fair and none is endless.
    """
    low, high = start[u], start[u + 1]
    for t in range(1, TRIES):
        j = pool[below(random_bits(state, t) >> _HALF, pool.size)]
        if not holds(item, low, high, j):
            return int(j)
    left = pool.size
    for a in range(low, high):
        left -= weight[item[a]]
    if left == 0:
        return -1
    left = below(random_bits(state, TRIES) >> _HALF, left)
    position = low
    for j in range(weight.size):
        if position < high and item[position] == j:
            position += 1
            continue
        left -= weight[j]
        if left < 0:
            return j
    return -1


@kernel
def draw_rating(state: np.uint64, active: I32, start: I64) -> tuple[int, int]:
    """Draw a user who has ratings, and of hers the place of one."""
    bits = random_bits(state, 0)
    u = int(active[below(bits >> _HALF, active.size)])
    return u, start[u] + below(bits & _LOW, start[u + 1] - start[u])


class Ascent(NamedTuple):
    """Factors and biases of items, and the sizes of the steps that they take."""

    P: F32
    Q: F32
    b: F32
    rate: np.float32
    of_user: np.float32
    of_item: np.float32
    of_bias: np.float32


@kernel
def pair_steps(triples: I32, count: int, ascent: Ascent) -> None:
    """Ascend ln σ(x_ui - x_uj) - ½(penalties) at the first `count` triples, one by one."""
    P, Q, b, rate, of_user, of_item, of_bias = ascent
    unit = np.float32(1)
    keep_u, keep_i, keep_b = unit - rate * of_user, unit - rate * of_item, unit - rate * of_bias
    for t in range(count):
        u, i, j = int(triples[t, 0]), int(triples[t, 1]), int(triples[t, 2])
        if i == j:  # happens to drifting draws: the slopes cancel, both penalties stay
            b[i] *= keep_b + keep_b - unit
            for k in range(P.shape[1]):
                P[u, k] *= keep_u
                Q[i, k] *= keep_i + keep_i - unit
            continue
        x = b[i] - b[j] + dot_difference(P, u, Q, i, j)
        e = rate / (unit + np.exp(x))
        b[i] = keep_b * b[i] + e
        b[j] = keep_b * b[j] - e
        of_u, of_i, of_j = P[u], Q[i], Q[j]
        for k in range(of_u.size):
            p, q, r = of_u[k], of_i[k], of_j[k]
            of_u[k] = keep_u * p + e * (q - r)
            of_i[k] = keep_i * q + e * p
            of_j[k] = keep_i * r - e * p


@kernel
def weighted_draws(
    seed: np.uint64,
    last: int,
    start: I64,
    item: I32,
    active: I32,
    pool: I32,
    weight: I64,
    ascent: Ascent,
) -> None:
    """Ascend ln σ(x_ui - x_uj) - ½(penalties) at the draws 0, …, last - 1 of (u, i, j)."""
    # To look up whether j is rated waits for memory; many look-ups in a row wait together.
    triples = np.empty((BATCH, 3), np.int32)
    for batch in range(0, last, BATCH):
        count = 0
        for draw in range(batch, min(batch + BATCH, last)):
            state = random_bits(seed, draw)
            u, row = draw_rating(state, active, start)
            j = draw_unrated(state, pool, weight, start, item, u)
            triples[count, 0], triples[count, 1], triples[count, 2] = u, item[row], j
            count += int(j >= 0)
        pair_steps(triples, count, ascent)


# LibRec's WBPR keeps one table of popularities v, and a cache of users. A user that the cache does
# not hold has the v of all that she did not rate divided by their sum S. Here v = scale · w: what
# she did not rate is left alone, scale is divided by S and the w of what she rated multiplied.


@training_kernel
def block_sums(w: F64, sums: F64) -> float:
    """Fill the sum of every `BLOCK` of w; return the sum of all."""
    total = 0.0
    for block in range(sums.size):
        part = 0.0
        for k in range(block * BLOCK, (block + 1) * BLOCK):
            part += w[k]
        sums[block] = part
        total += part
    return total


@kernel
def first_reaching(w: F64, sums: F64, limit: float) -> int:
    """Return the first place with w > 0 up to which w sums to `limit` or more; -1 if none does."""
    total, block = 0.0, 0
    while block < sums.size and total + sums[block] < limit:
        total += sums[block]
        block += 1
    for k in range(block * BLOCK, w.size):
        total += w[k]
        if w[k] > 0.0 and total >= limit:
            return k
    return -1


@kernel
def recall(users: I32, used: I64, segment: int, u: int, now: int) -> bool:
    """Tell whether a segment of the cache holds u; if not, u replaces who was used longest ago."""
    oldest = 0
    for t in range(users.shape[1]):
        if users[segment, t] == u:
            used[segment, t] = now
            return True
        if used[segment, t] < used[segment, oldest]:
            oldest = t
    users[segment, oldest], used[segment, oldest] = u, now
    return False


@kernel
def drifting_draws(
    seed: np.uint64,
    last: int,
    start: I64,
    item: I32,
    active: I32,
    rank: I32,
    ranked: I32,
    segment: I32,
    size: int,
    w: F64,
    ascent: Ascent,
) -> None:
    """Do as `weighted_draws` with LibRec's draws of j.

    Where a rating's item stands in w says `rank`, which item stands there `ranked`; `segment` is
    each user's part of the cache, which holds `size` users.
    """
    triples, sums = np.empty((BATCH, 3), np.int32), np.empty(w.size // BLOCK)
    users = np.full((segment.max() + 1, size), -1, np.int32)
    used = np.full(users.shape, -1, np.int64)
    weights = np.empty(ranked.size)
    scale = 1.0
    for batch in range(0, last, BATCH):
        count = min(BATCH, last - batch)
        for t in range(count):
            state = random_bits(seed, batch + t)
            u, row = draw_rating(state, active, start)
            low, high = start[u], start[u + 1]
            for a in range(low, high):
                weights[a - low] = w[rank[a]]
                w[rank[a]] = 0.0
            total = block_sums(w, sums)
            limit = np.float64(random_bits(state, 1) >> _ELEVEN) * 2.0**-53
            divisor = 1.0
            if not recall(users, used, segment[u], u, batch + t) and total > 0.0:
                divisor, scale = scale * total, 1.0 / total
            k = first_reaching(w, sums, limit / scale)
            for a in range(low, high):
                w[rank[a]] = weights[a - low] * divisor
            if not SMALL < scale < 1.0 / SMALL:
                w *= scale
                scale = 1.0
            # LibRec's j starts as 0 and stays so when the sum falls short of the limit.
            j = ranked[k] if k >= 0 else 0
            triples[t, 0], triples[t, 1], triples[t, 2] = u, item[row], j
        pair_steps(triples, count, ascent)


@kernel
def ranked_epoch(
    seed: np.uint64,
    first: int,
    start: I64,
    user: I32,
    item: I32,
    value: F64,
    pool: I32,
    weight: I64,
    P: F64,
    Q: F64,
    rate: float,
) -> None:
    """Descend ½((x_ui - x_uj) - r_ui)² at every rating once; its draw is first + its place."""
    for row in range(user.size):
        u, i = int(user[row]), int(item[row])
        j = draw_unrated(random_bits(seed, first + row), pool, weight, start, item, u)
        if j < 0:
            continue
        e = rate * (value[row] - dot_difference(P, u, Q, i, j))
        of_u, of_i, of_j = P[u], Q[i], Q[j]
        for k in range(of_u.size):
            p, q, r = of_u[k], of_i[k], of_j[k]
            of_u[k] = p + e * (q - r)
            of_i[k] = q + e * p
            of_j[k] = r - e * p


# The kernels of GBPR index whole arrays: a row taken out of one is counted as a reference, and that
# makes the processor wait for all memory it has asked for.


@kernel
def draw_group(
    state: np.uint64, u: int, there: I64, rater: I32, i: int, group: I32, t: int
) -> None:
    """Fill row t: u and other raters of i, all subsets equally likely; -1 where too few.

    Floyd's way, with one draw for each of the others, out of the raters of i without the last:
    where u is met she stands for the last.
    """
    low, end = there[i], there[i + 1] - 1
    group[t, 0] = u
    others = min(group.shape[1] - 1, end - low)
    for m in range(others):
        last = end - others + m
        position = low + below(random_bits(state, TRIES + 1 + m) >> _HALF, last - low + 1)
        member = rater[position] if rater[position] != u else rater[end]
        for before in range(1, m + 1):
            if group[t, before] == member:
                member = rater[last] if rater[last] != u else rater[end]
                break
        group[t, m + 1] = member
    for m in range(others + 1, group.shape[1]):
        group[t, m] = -1


@kernel
def members(group: I32, t: int) -> int:
    """Return how many are in the group of row t."""
    count = 0
    for m in range(group.shape[1]):
        count += int(group[t, m] >= 0)
    return count


@training_kernel
def group_margin(pair: I32, group: I32, t: int, rho: Any, P: F32, Q: F32) -> Any:
    """Return x_Gi - x_uj without biases, u being the first of the group."""
    u, i, j = group[t, 0], pair[t, 0], pair[t, 1]
    share = np.float32(1) - rho
    x, of_group = np.float32(0), np.float32(0)
    for k in range(P.shape[1]):
        x += P[u, k] * (share * Q[i, k] - Q[j, k])
    for m in range(group.shape[1]):
        w = group[t, m]
        if w >= 0:
            for k in range(P.shape[1]):
                of_group += P[w, k] * Q[i, k]
    return x + rho / np.float32(members(group, t)) * of_group


@kernel
def draw_groups(
    seed: np.uint64,
    first: int,
    draws: int,
    users: I32,
    start: I64,
    item: I32,
    pool: I32,
    weight: I64,
    there: I64,
    rater: I32,
    rho: np.float32,
    P: F32,
    Q: F32,
    pair: I32,
    group: I32,
    margin: F32,
) -> None:
    """Fill `draws` draws per user: the items (i, j), the group, and what factors make of it.

    Draws of a user follow each other, while all that is known of her is near the processor.
    """
    for t in range(margin.size):
        state = random_bits(seed, first + t)
        u = int(users[t // draws])
        row = start[u] + below(random_bits(state, 0) >> _HALF, start[u + 1] - start[u])
        pair[t, 0] = item[row]
        pair[t, 1] = draw_unrated(state, pool, weight, start, item, u)
        draw_group(state, u, there, rater, item[row], group, t)
    for t in range(margin.size):
        if pair[t, 1] >= 0:
            margin[t] = group_margin(pair, group, t, rho, P, Q)


@kernel
def bias_steps(pair: I32, margin: F32, b: F32, rate: np.float32, of_bias: np.float32) -> None:
    """Ascend with the biases, draw after draw; turn margins into e = σ(x_uj - x_Gi)."""
    unit = np.float32(1)
    keep = unit - rate * of_bias
    for t in range(margin.size):
        i, j = pair[t, 0], pair[t, 1]
        if j < 0:
            continue
        e = unit / (unit + np.exp(b[i] - b[j] + margin[t]))
        margin[t] = e
        b[i] = keep * b[i] + rate * e
        b[j] = keep * b[j] - rate * e


@kernel
def user_gradient(
    pair: I32, group: I32, slope: F32, rho: np.float32, Q: F32, gradient: F32, times: F32
) -> None:
    """Add up e ∂x/∂p over the draws, and how often each user takes part."""
    unit = np.float32(1)
    for t in range(slope.size):
        i, j = pair[t, 0], pair[t, 1]
        if j < 0:
            continue
        e = slope[t]
        shared = e * (rho / np.float32(members(group, t)))
        for m in range(group.shape[1]):
            w = group[t, m]
            if w >= 0:
                times[w] += unit
                for k in range(Q.shape[1]):
                    gradient[w, k] += shared * Q[i, k]
        part, u = e * (unit - rho), group[t, 0]
        for k in range(Q.shape[1]):
            gradient[u, k] += part * Q[i, k] - e * Q[j, k]


@kernel
def item_gradient(
    pair: I32, group: I32, slope: F32, rho: np.float32, P: F32, gradient: F32, times: F32
) -> None:
    """Add up e ∂x/∂q over the draws, and how often each item takes part."""
    unit = np.float32(1)
    for t in range(slope.size):
        i, j = pair[t, 0], pair[t, 1]
        if j < 0:
            continue
        times[i] += unit
        times[j] += unit
        e, u = slope[t], group[t, 0]
        part = e * (unit - rho)
        for k in range(P.shape[1]):
            gradient[i, k] += part * P[u, k]
            gradient[j, k] -= e * P[u, k]
        shared = e * (rho / np.float32(members(group, t)))
        for m in range(group.shape[1]):
            w = group[t, m]
            if w >= 0:
                for k in range(P.shape[1]):
                    gradient[i, k] += shared * P[w, k]


@kernel
def list_losses(low: int, lists: Rows, P: F64, Q: F64, squashed: F64, loss: F64) -> None:
    """Fill the losses of users low, low + 1, … and, per rating of theirs, σ(p·q).

    The values of `lists` are the shares aimed at; `squashed` starts with the ratings of user low.
    """
    start, item, target = lists
    base = start[low]
    for index in range(loss.size):
        u = low + index
        total = 0.0
        expected = 0.0
        for a in range(start[u], start[u + 1]):
            s = 1.0 / (1.0 + np.exp(-dot(P, u, Q, item[a])))
            squashed[a - base] = s
            total += np.exp(s)
            expected += target[a] * s
        loss[index] = np.log(total) - expected if total > 0.0 else 0.0


@kernel
def user_slopes(
    low: int, high: int, lists: Rows, Q: F64, squashed: F64, slope: F64, gradient: F64
) -> None:
    """Fill per rating ∂loss/∂(p·q), and the gradients of users low, …, high - 1."""
    start, item, target = lists
    for u in range(low, high):
        total = 0.0
        for a in range(start[u], start[u + 1]):
            total += np.exp(squashed[a])
        of = gradient[u]
        of[:] = 0.0
        for a in range(start[u], start[u + 1]):
            s = squashed[a]
            e = (np.exp(s) / total - target[a]) * s * (1.0 - s)
            slope[a] = e
            q = Q[item[a]]
            for k in range(q.size):
                of[k] += e * q[k]


@kernel
def item_gradients(low: int, high: int, raters: Raters, slope: F64, P: F64, gradient: F64) -> None:
    """Fill the gradients of items low, …, high - 1."""
    there, rater, order = raters
    for i in range(low, high):
        of = gradient[i]
        of[:] = 0.0
        for a in range(there[i], there[i + 1]):
            e = slope[order[a]]
            p = P[rater[a]]
            for k in range(p.size):
                of[k] += e * p[k]
