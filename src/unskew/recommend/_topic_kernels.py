"""Kernels of the topic models: expected counts of topics, and what Dirichlet posteriors need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unskew.compiled import kernel
from unskew.recommend._sgd_kernels import dot

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


TINY = 1e-150  # takes part in no sum, and its square is still a normal number


@kernel
def without_dust(x: float) -> float:
    """Return 0 for what is tiny: numbers below the normal range are slow."""
    return x if x > TINY else 0.0


@kernel
def count_by_user(
    first: int, last: int, start: I64, item: I32, value: F64, theta: F64, phi: F64,
    ratio: F64, counts: F64, likelihood: F64,
) -> None:  # fmt: skip
    """Share the ratings of users out among topics, in proportion to θ_uz φ_iz.

    Fills counts[u, z] = θ_uz Σ_i ratio_ui φ_iz with ratio_ui = r_ui / Σ_z θ_uz φ_iz, and
    likelihood[u] = Σ_i r_ui ln Σ_z θ_uz φ_iz.
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
    first: int, last: int, start: I64, user: I32, place: I64, ratio: F64, theta: F64, phi: F64,
    counts: F64,
) -> None:  # fmt: skip
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
