"""Kernels of the topic models: expected counts of topics, and what posteriors need."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, Raters, Rows
from unskew.engine.compiled import kernel
from unskew.recommend.kernels.sgd import dot

TINY = 1e-150  # takes part in no sum, and its square is still a normal number
LEAST = -40.0  # logarithm of the smallest share: below it rounding errors are larger


@kernel
def without_dust(x: float) -> float:
    """Return 0 for what is tiny: numbers below the normal range are slow."""
    return x if x > TINY else 0.0


@kernel
def count_by_user(
    first: int,
    last: int,
    ratings: Rows,
    theta: F64,
    phi: F64,
    ratio: F64,
    counts: F64,
    wants_likelihood: bool,
    likelihood: F64,
) -> None:
    """Share the ratings of users out among topics, in proportion to θ_uz φ_iz.

    Fills counts[u, z] = θ_uz Σ_i ratio_ui φ_iz with ratio_ui = r_ui / Σ_z θ_uz φ_iz, and
    likelihood[u] = Σ_i r_ui ln Σ_z θ_uz φ_iz where it is wanted, else 0.
    """
    start, item, value = ratings
    topics = theta.shape[1]
    for u in range(first, last):
        counts[u] = 0.0
        total = 0.0
        for row in range(start[u], start[u + 1]):
            i = int(item[row])
            part = 0.0
            if value[row] > 0.0:
                chance = dot(theta, u, phi, i)
                if wants_likelihood:
                    total += value[row] * np.log(chance)
                part = value[row] / chance
                for z in range(topics):
                    counts[u, z] += part * phi[i, z]
            ratio[row] = part
        likelihood[u] = total
        for z in range(topics):
            counts[u, z] = without_dust(counts[u, z] * theta[u, z])


@kernel
def count_by_item(
    first: int, last: int, raters: Raters, ratio: F64, theta: F64, phi: F64, counts: F64
) -> None:
    """Fill counts[i, z] = φ_iz Σ_u ratio_ui θ_uz."""
    start, user, order = raters
    topics = theta.shape[1]
    for i in range(first, last):
        counts[i] = 0.0
        for entry in range(start[i], start[i + 1]):
            u = int(user[entry])
            part = ratio[order[entry]]
            for z in range(topics):
                counts[i, z] += part * theta[u, z]
        for z in range(topics):
            counts[i, z] = without_dust(counts[i, z] * phi[i, z])


@kernel
def digamma(x: float) -> float:
    """Return ψ(x) for x > 0, to about 1e-14: up to 10 by recurrence, then the asymptotic series."""
    low = 0.0
    while x < 10.0:
        low += 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    tail = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return float(np.log(x) - 0.5 / x - tail - low)


@kernel
def expected_logs(first: int, last: int, a: F64, total: F64, out: F64) -> None:
    """Fill e to the expected logarithms, out[·, z] ∝ exp(ψ(a[·, z]) - ψ(total[z])).

    What is common to a row has no effect on shares: the largest value of a row is made 1. Rows
    without parameters (0) give 0.
    """
    topics = total.size
    of_total = np.empty(topics)
    for z in range(topics):
        of_total[z] = digamma(total[z])
    for row in range(first, last):
        if not a[row, 0] > 0.0:
            continue
        largest = -np.inf
        for z in range(topics):
            out[row, z] = digamma(a[row, z]) - of_total[z]
            largest = max(largest, out[row, z])
        for z in range(topics):
            out[row, z] = max(np.exp(out[row, z] - largest), TINY)


@kernel
def expected_gamma_logs(first: int, last: int, shape: F64, rate: F64, out: F64) -> None:
    """Fill e to the expected logarithms of gamma variables, exp(ψ(shape)) / rate.

    What is common to a row has no effect on shares: the largest value of a row is made 1. Rows
    without parameters (0) give 0.
    """
    factors = rate.shape[1]
    for row in range(first, last):
        if not shape[row, 0] > 0.0:
            continue
        largest = -np.inf
        for k in range(factors):
            out[row, k] = digamma(shape[row, k]) - np.log(rate[row, k])
            largest = max(largest, out[row, k])
        for k in range(factors):
            out[row, k] = max(np.exp(out[row, k] - largest), TINY)


class Gaussians(NamedTuple):
    """Topics as normal distributions: ln p(z|u), μ, 1/(2σ²) and ln σ."""

    log_theta: F64
    mu: F64
    half: F64
    log_sigma: F64


@kernel
def gaussian_users(
    first: int,
    last: int,
    ratings: Rows,
    model: Gaussians,
    tempering: float,
    evidence: F64,
    theta: F64,
) -> None:
    """Fill p(z|u), the mean share of topic z in the ratings of u, ∝ (p(z|u) N(v; μ, σ²))^β.

    Also fills the logarithm of what the shares of each rating were divided by.
    """
    start, item, value = ratings
    log_theta, mu, half, log_sigma = model
    K = theta.shape[1]
    share = np.empty(K)
    for u in range(first, last):
        prior, out = log_theta[u], theta[u]
        for row in range(start[u], start[u + 1]):
            i, v = int(item[row]), value[row]
            largest = -np.inf
            for z in range(K):
                d = v - mu[i, z]
                share[z] = tempering * (prior[z] - log_sigma[i, z] - half[i, z] * d * d)
                largest = max(largest, share[z])
            total = 0.0
            for z in range(K):
                share[z] = np.exp(max(share[z] - largest, LEAST))
                total += share[z]
            evidence[row] = largest + np.log(total)
            part = 1.0 / (total * (start[u + 1] - start[u]))
            for z in range(K):
                out[z] += part * share[z]


@kernel
def gaussian_items(
    first: int,
    last: int,
    raters: Raters,
    value: F64,
    model: Gaussians,
    tempering: float,
    evidence: F64,
    prior: float,
    new_mu: F64,
    new_variance: F64,
) -> None:
    """Fill the mean and variance of each topic's share in an item's ratings.

    `prior` more ratings of mean 0 and variance 1 count too. Squares are taken around the last
    mean, so that nothing is lost when a variance is small beside its mean.
    """
    start, user, order = raters
    log_theta, mu, half, log_sigma = model
    K = mu.shape[1]
    mass, shift, square = np.empty(K), np.empty(K), np.empty(K)
    for i in range(first, last):
        for z in range(K):
            mass[z] = prior
            shift[z] = -prior * mu[i, z]
            square[z] = prior * (1.0 + mu[i, z] * mu[i, z])
        for entry in range(start[i], start[i + 1]):
            u, v, log_total = int(user[entry]), value[order[entry]], evidence[order[entry]]
            for z in range(K):
                d = v - mu[i, z]
                chance = log_theta[u, z] - log_sigma[i, z] - half[i, z] * d * d
                share = np.exp(max(tempering * chance - log_total, LEAST))
                mass[z] += share
                shift[z] += share * d
                square[z] += share * d * d
        for z in range(K):
            step = shift[z] / mass[z]
            new_mu[i, z] = mu[i, z] + step
            new_variance[i, z] = square[z] / mass[z] - step * step


_LARGE = 1e100  # a product of factors from 1 up is taken to its logarithm beyond this


@kernel
def _add_rows(total: F64, table: F64, index: I32, weight: F64, first: int, last: int) -> None:
    """Add to a row Σ weight·table[index] over a range of both; four rows at a time, for speed."""
    entry = first
    while entry + 4 <= last:
        a, b = table[index[entry]], table[index[entry + 1]]
        c, d = table[index[entry + 2]], table[index[entry + 3]]
        p, q, r, s = weight[entry], weight[entry + 1], weight[entry + 2], weight[entry + 3]
        for x in range(total.size):
            total[x] += (p * a[x] + q * b[x]) + (r * c[x] + s * d[x])
        entry += 4
    while entry < last:
        a = table[index[entry]]
        p = weight[entry]
        for x in range(total.size):
            total[x] += p * a[x]
        entry += 1


@kernel
def _log_product(factor: F64) -> float:
    """Return the logarithm of a product of factors from 1 up; four of them stay below 1e200."""
    total = 0.0
    product = 1.0
    stop = factor.size - factor.size % 4
    for x in range(0, stop, 4):
        product *= (factor[x] * factor[x + 1]) * (factor[x + 2] * factor[x + 3])
        if product > _LARGE:
            total += math.log(product)
            product = 1.0
    for x in range(stop, factor.size):
        product *= factor[x]
    return total + math.log(product)


@kernel
def relevance_model_1(
    users: I32, neighbours: Rows, texts: Rows, background: F64, collection: F64, score: F64
) -> None:
    """Fill log Σ_v p(v) p(i|v) Π_j p(j|v), with p(i|v) = seen_vi + background_v·collection_i."""
    near_start, near, _ = neighbours
    start, item, seen = texts
    mark = np.full(collection.size, -1, np.int64)
    for row in range(users.size):
        u = users[row]
        out = score[row]
        out[:] = np.nan
        who = near[near_start[u] : near_start[u + 1]]
        nearby = who.size
        if nearby == 0:
            continue
        likelihood = np.empty(nearby)
        unseen = 0.0  # Σ_j log p(j|C)
        for entry in range(start[u], start[u + 1]):
            mark[item[entry]] = row
            unseen += math.log(collection[item[entry]])
        largest = -np.inf
        for n in range(nearby):
            v = who[n]
            total = unseen + (start[u + 1] - start[u]) * math.log(background[v])
            for entry in range(start[v], start[v + 1]):
                j = item[entry]
                if mark[j] == row:
                    total += math.log1p(seen[entry] / (background[v] * collection[j]))
            likelihood[n] = total
            largest = max(largest, total)
        out[:] = 0.0
        share = 0.0
        for n in range(nearby):
            v = who[n]
            w = math.exp(likelihood[n] - largest)
            share += w * background[v]
            for entry in range(start[v], start[v + 1]):
                out[item[entry]] += w * seen[entry]
        for i in range(collection.size):
            if collection[i] > 0.0:
                out[i] = largest + math.log((out[i] + share * collection[i]) / nearby)
            else:
                out[i] = np.nan


@kernel
def relevance_model_2(
    users: I32, neighbours: Rows, texts: Rows, background: F64, collection: F64, score: F64
) -> None:
    """Fill log p(i) Π_j Σ_v p(v) p(i|v)/p(i)·p(j|v), with p(i|v) as in `relevance_model_1`.

    With B_j = Σ_v p(v) background_v p(j|v), the inner sum is
    collection_i·B_j/p(i) · (1 + Σ_v seen_vi/collection_i · p(v) p(j|v)/B_j):
    the neighbours who rated i make the second factor, which is 1 for all others. A product of
    factors from 1 up cannot vanish, so that one logarithm serves many.
    """
    near_start, near, _ = neighbours
    start, item, seen = texts
    items = collection.size
    log_item = -math.log(items)
    position = np.full(items, -1, np.int64)
    raters = np.zeros(items + 1, np.int64)
    for row in range(users.size):
        u = users[row]
        out = score[row]
        out[:] = np.nan
        who = near[near_start[u] : near_start[u + 1]]
        nearby = who.size
        if nearby == 0:
            continue
        ratings = 0
        for v in who:
            ratings += start[v + 1] - start[v]
        first, size = start[u], start[u + 1] - start[u]
        for j in range(size):
            position[item[first + j]] = j

        prior = 1.0 / nearby
        joint = np.empty((nearby, size))  # p(v) p(j|v), later over B_j
        base = np.zeros(size)  # B_j
        raters[:] = 0
        for n in range(nearby):
            v = who[n]
            b = background[v]
            for j in range(size):
                joint[n, j] = prior * b * collection[item[first + j]]
            for entry in range(start[v], start[v + 1]):
                raters[item[entry] + 1] += 1
                j = position[item[entry]]
                if j >= 0:
                    joint[n, j] += prior * seen[entry]
            for j in range(size):
                base[j] += b * joint[n, j]
        constant = 0.0
        for j in range(size):
            constant += math.log(base[j])
            position[item[first + j]] = -1
            base[j] = 1.0 / base[j]
        for n in range(nearby):
            for j in range(size):
                joint[n, j] *= base[j]

        for i in range(items):
            raters[i + 1] += raters[i]
        rater = np.empty(ratings, np.int32)
        what = np.empty(ratings)
        for n in range(nearby):
            v = who[n]
            for entry in range(start[v], start[v + 1]):
                i = item[entry]
                rater[raters[i]] = n
                what[raters[i]] = seen[entry] / collection[i]
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
                    _add_rows(factor, joint, rater, what, begin, end)
                    total += _log_product(factor)
                out[i] = total
            begin = end


@kernel
def hits(users: I32, out: Rows, back: Rows, steps: int, score: F64) -> None:
    """Fill Σ_{t<steps} P(a walk from item i has met user u by step t).

    `out` are the probabilities of a step from user to item, `back` from item to user. All given
    users are walked at once, a column each.
    """
    start, item, forward = out
    turned_start, turned_user, backward = back
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
