"""Kernels of linear models: Gram rows, coordinate descent."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.engine.compiled import kernel

FEW = 64  # items that a working set may grow by, however small it is
MOST_ROUNDS, MOST_SWEEPS = 100, 10_000  # never reached unless the matrix is all but singular


@kernel
def gram_rows(
    column_start: I64,
    place: I64,
    row_of: I32,
    start: I64,
    column: I32,
    value: F64,
    low: int,
    out: F64,
) -> None:
    """Add to `out` rows low, low+1, … of the upper half of RᵀR: sums over rows in their order."""
    for i in range(out.shape[0]):
        total = out[i]
        for at in range(column_start[low + i], column_start[low + i + 1]):
            here = place[at]
            weight = value[here]
            for other in range(here, start[row_of[at] + 1]):
                total[column[other]] += weight * value[other]


@kernel
def quadratic_forms(start: I64, row: I32, value: F64, M: F64, low: int, out: F64) -> None:
    """Fill `out` with rᵀMr for the columns r number low, low+1, … of a sparse matrix."""
    for at in range(out.size):
        first, last = start[low + at], start[low + at + 1]
        total = 0.0
        for a in range(first, last):
            line = M[row[a]]
            part = 0.0
            for b in range(first, last):
                part += value[b] * line[row[b]]
            total += value[a] * part
        out[at] = total


@kernel
def gap_of(weight: float, correlation: float, l1: float, l2: float) -> float:
    """Return one weight's share of the duality gap; all shares are 0 at the solution only."""
    pull = correlation - l1
    if pull > 0.0:
        return (l2 * weight - pull) ** 2 / (2.0 * l2)
    return weight * (0.5 * l2 * weight - pull)


@kernel
def working_set(w: F64, s: F64, norm: F64, i: int, l1: float, l2: float) -> I64:
    """Return the items with a weight, and those that would lower the objective most.

    No more are added than there are already (but at least FEW), since most of those that pull at
    first no longer do once the strongest have their weights.
    """
    decrease = np.zeros(w.size)
    kept = 0
    new = 0
    for j in range(w.size):
        if w[j] > 0.0:
            kept += 1
        elif j != i and s[j] > l1:
            decrease[j] = (s[j] - l1) ** 2 / (norm[j] + l2)
            new += 1
    bar = 0.0
    most = max(FEW, kept)
    if new > most:
        bar = np.partition(decrease, w.size - most)[w.size - most]
    chosen = np.empty(kept + new, np.int64)
    count = 0
    for j in range(w.size):
        if w[j] > 0.0 or (decrease[j] > 0.0 and decrease[j] >= bar):
            chosen[count] = j
            count += 1
    return chosen[:count]


@kernel
def descend(H: F64, v: F64, s: F64, l1: float, l2: float, enough: float) -> None:
    """Solve for the weights `v` of a working set; `s` are its correlations with what is left."""
    n = v.size
    for _ in range(MOST_SWEEPS):
        gap = 0.0
        for a in range(n):
            gap += gap_of(v[a], s[a], l1, l2)
        if gap <= enough:
            return
        for a in range(n):
            new = max(0.0, (s[a] + H[a, a] * v[a] - l1) / (H[a, a] + l2))
            change = new - v[a]
            if change != 0.0:
                v[a] = new
                row = H[a]
                for b in range(n):
                    s[b] -= change * row[b]


@kernel
def subtract_weighted(w: F64, G: F64, s: F64) -> None:
    """Take Σ weight · row of G off `s`, four rows at a time; weights of 0 cost nothing."""
    n = s.size
    place = np.empty(n, np.int64)
    count = 0
    for j in range(n):
        if w[j] != 0.0:
            place[count] = j
            count += 1
    whole = count // 4 * 4
    for at in range(0, whole, 4):
        a, b, c, d = place[at], place[at + 1], place[at + 2], place[at + 3]
        w0, w1, w2, w3 = w[a], w[b], w[c], w[d]
        g0, g1, g2, g3 = G[a], G[b], G[c], G[d]
        for k in range(n):
            s[k] -= (w0 * g0[k] + w1 * g1[k]) + (w2 * g2[k] + w3 * g3[k])
    for at in range(whole, count):
        w0, g0 = w[place[at]], G[place[at]]
        for k in range(n):
            s[k] -= w0 * g0[k]


@kernel
def part_of(G: F64, chosen: I64) -> F64:
    """Return the rows and columns of a symmetric matrix that are chosen."""
    size = chosen.size
    H = np.empty((size, size))
    for a in range(size):
        row, part = G[chosen[a]], H[a]
        for b in range(a, size):
            part[b] = row[chosen[b]]
        for b in range(a):
            part[b] = H[b, a]
    return H


@kernel
def slim_columns(
    G: F64, norm: F64, l1: float, l2: float, tolerance: float, low: int, out: F64
) -> None:
    """Fill `out` with the weights that predict items low, low+1, … from the others."""
    n = G.shape[0]
    s = np.empty(n)
    for row in range(out.shape[0]):
        i = low + row
        w = out[row]
        w[:] = 0.0
        enough = tolerance * 0.5 * norm[i]
        for _ in range(MOST_ROUNDS):
            s[:] = G[i]
            subtract_weighted(w, G, s)
            gap = 0.0
            for j in range(n):
                if j != i:
                    gap += gap_of(w[j], s[j], l1, l2)
            if gap <= enough:
                break
            chosen = working_set(w, s, norm, i, l1, l2)
            size = chosen.size
            H = part_of(G, chosen)
            v = np.empty(size)
            left = np.empty(size)
            for a in range(size):
                v[a] = w[chosen[a]]
                left[a] = s[chosen[a]]
            # The rest of the gap is outside the set: to solve it much better is wasted.
            descend(H, v, left, l1, l2, max(0.3 * enough, 0.01 * gap))
            for a in range(size):
                w[chosen[a]] = v[a]
