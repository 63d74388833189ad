"""Kernels of the topic models: expected counts of topics, and what posteriors need."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.engine.compiled import kernel
from unskew.recommend.sgd_kernels import dot

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
    start: I64,
    item: I32,
    value: F64,
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
    first: int,
    last: int,
    start: I64,
    user: I32,
    place: I64,
    ratio: F64,
    theta: F64,
    phi: F64,
    counts: F64,
) -> None:
    """Fill counts[i, z] = φ_iz Σ_u ratio_ui θ_uz."""
    topics = theta.shape[1]
    for i in range(first, last):
        counts[i] = 0.0
        for at in range(start[i], start[i + 1]):
            u = int(user[at])
            part = ratio[place[at]]
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


@kernel
def gaussian_users(
    first: int,
    last: int,
    start: I64,
    item: I32,
    value: F64,
    log_theta: F64,
    mu: F64,
    half: F64,
    log_sigma: F64,
    tempering: float,
    evidence: F64,
    theta: F64,
) -> None:
    """Fill p(z|u), the mean share of topic z in the ratings of u, ∝ (p(z|u) N(v; μ, σ²))^β.

    `half` is 1/(2σ²). Also fills the logarithm of what the shares of each rating were divided by.
    """
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
    start: I64,
    user: I32,
    place: I64,
    value: F64,
    log_theta: F64,
    mu: F64,
    half: F64,
    log_sigma: F64,
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
    K = mu.shape[1]
    mass, shift, square = np.empty(K), np.empty(K), np.empty(K)
    for i in range(first, last):
        for z in range(K):
            mass[z] = prior
            shift[z] = -prior * mu[i, z]
            square[z] = prior * (1.0 + mu[i, z] * mu[i, z])
        for at in range(start[i], start[i + 1]):
            u, v, whole = int(user[at]), value[place[at]], evidence[place[at]]
            for z in range(K):
                d = v - mu[i, z]
                chance = log_theta[u, z] - log_sigma[i, z] - half[i, z] * d * d
                share = np.exp(max(tempering * chance - whole, LEAST))
                mass[z] += share
                shift[z] += share * d
                square[z] += share * d * d
        for z in range(K):
            step = shift[z] / mass[z]
            new_mu[i, z] = mu[i, z] + step
            new_variance[i, z] = square[z] / mass[z] - step * step
