"""Kernels that descend gradients one example at a time.

Rows of factors are padded with zeros, which no update changes, to a multiple of `LANES`: vectors of
the processor then stay whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F32, F64, I32, I64, U8
from unskew.engine.compiled import kernel, training_kernel
from unskew.engine.rng import second

LANES = 8
BATCH = 1024

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@training_kernel
def dot(x: NDArray[Any], a: int, y: NDArray[Any], b: int) -> Any:
    """Return the product of row a of x and row b of y."""
    total = x.dtype.type(0)
    for k in range(x.shape[1]):
        total += x[a, k] * y[b, k]
    return total


@training_kernel
def dot_difference(x: NDArray[Any], a: int, y: NDArray[Any], b: int, d: int) -> Any:
    """Return the product of row a of x and the difference of rows b and d of y."""
    total = x.dtype.type(0)
    for k in range(x.shape[1]):
        total += x[a, k] * (y[b, k] - y[d, k])
    return total


@kernel
def rating_epoch(
    order: I64,
    user: I32,
    item: I32,
    value: F64,
    mean: float,
    biased: bool,
    P: F64,
    Q: F64,
    b: F64,
    c: F64,
    rate: float,
    penalty: float,
) -> None:
    """Descend ½(e² + λ(‖p‖² + ‖q‖² + b² + c²)) at every rating once, in the given order."""
    keep = 1.0 - rate * penalty
    for row in order:
        u, i = int(user[row]), int(item[row])
        e = rate * (value[row] - (mean + b[u] + c[i] + dot(P, u, Q, i)))
        if biased:
            b[u] = keep * b[u] + e
            c[i] = keep * c[i] + e
        for k in range(P.shape[1]):
            p, q = P[u, k], Q[i, k]
            P[u, k] = keep * p + e * q
            Q[i, k] = keep * q + e * p


@kernel
def random_bits(seed: np.uint64, counter: int) -> np.uint64:
    """Return the 64 bits that SplitMix64 has at a counter from 0 up; `second` starts at 1."""
    return second(seed, counter - 1)


@kernel
def below(bits: np.uint64, end: int) -> int:
    """Turn 32 bits into one of 0, …, end - 1."""
    return int(np.int64((bits * np.uint64(end)) >> _HALF))


@kernel
def holds(sorted_items: I32, low: int, high: int, item: int) -> bool:
    """Tell whether `item` stands in the part of `sorted_items` from low to before high."""
    size = high - low
    while size > 1:
        half = size >> 1
        low += half * int(sorted_items[low + half] <= item)
        size -= half
    return bool(sorted_items[low] == item)


@kernel
def mark_rated(start: I64, item: I32, marks: U8) -> None:
    """Set the bit of every rated item in its user's row."""
    for u in range(marks.shape[0]):
        for entry in range(start[u], start[u + 1]):
            marks[u, item[entry] >> 3] |= np.uint8(1 << (item[entry] & 7))


@kernel
def draw_triples(
    seed: np.uint64,
    first: int,
    last: int,
    by_user: bool,
    start: I64,
    user: I32,
    item: I32,
    marks: U8,
    active: I32,
    pool: I32,
    triples: I32,
) -> int:
    """Fill triples (u, i, j) from the draws first, …, last - 1; return how many there are.

    A draw whose j is rated is thrown away: what is left is equally likely. Without `marks` the
    user's items are searched, which takes several look-ups in a row.
    """
    count = 0
    for draw in range(first, last):
        bits = random_bits(seed, 2 * draw)
        if by_user:
            w = int(active[below(bits >> _HALF, active.size)])
            more = random_bits(seed, 2 * draw + 1)
            row = start[w] + below(more >> _HALF, start[w + 1] - start[w])
        else:
            row = below(bits >> _HALF, user.size)
        u, j = user[row], pool[below(bits & _LOW, pool.size)]
        triples[count, 0], triples[count, 1], triples[count, 2] = u, item[row], j
        if marks.size:
            count += 1 - ((marks[u, j >> 3] >> (j & 7)) & 1)
        else:
            count += int(not holds(item, start[u], start[u + 1], j))
    return count


@kernel
def pairwise_draws(
    seed: np.uint64,
    first: int,
    last: int,
    by_user: bool,
    start: I64,
    user: I32,
    item: I32,
    marks: U8,
    active: I32,
    pool: I32,
    P: F32,
    Q: F32,
    b: F32,
    biased: bool,
    rate: np.float32,
    of_user: np.float32,
    of_liked: np.float32,
    of_other: np.float32,
) -> None:
    """Ascend ln σ(x_ui - x_uj) - ½(penalties) at the draws first, …, last - 1 of (u, i, j)."""
    unit = np.float32(1)
    keep_u, keep_i, keep_j = unit - rate * of_user, unit - rate * of_liked, unit - rate * of_other
    # To look up whether j is rated waits for memory; many look-ups in a row wait together.
    triples = np.empty((BATCH, 3), np.int32)
    for batch in range(first, last, BATCH):
        until = min(batch + BATCH, last)
        count = draw_triples(
            seed, batch, until, by_user, start, user, item, marks, active, pool, triples
        )
        for t in range(count):
            u, i, j = int(triples[t, 0]), int(triples[t, 1]), int(triples[t, 2])
            x = b[i] - b[j] + dot_difference(P, u, Q, i, j)
            e = rate / (unit + np.exp(x))
            if biased:
                b[i] = keep_i * b[i] + e
                b[j] = keep_j * b[j] - e
            of_u, of_i, of_j = P[u], Q[i], Q[j]
            for k in range(of_u.size):
                p, q, r = of_u[k], of_i[k], of_j[k]
                of_u[k] = keep_u * p + e * (q - r)
                of_i[k] = keep_i * q + e * p
                of_j[k] = keep_j * r - e * p


@training_kernel
def implicit_epoch(
    start: I64,
    item: I32,
    value: F64,
    mean: float,
    P: F64,
    Q: F64,
    Y: F64,
    b: F64,
    c: F64,
    rate: float,
    penalty: float,
    of_bias: float,
    of_implicit: float,
) -> None:
    """Descend ½(e² + penalties) at every rating once, by user and item.

    Every rating of a user moves the y of all her items, and all by the same but for the penalty:
    y ← a y + d. The user's ratings only update a and d, and z = Σ y / √n, which is all that the
    predictions need; the y are written once, after the last.
    """
    keep, keep_bias = 1.0 - rate * penalty, 1.0 - rate * of_bias
    keep_y = 1.0 - rate * of_implicit
    factors = P.shape[1]
    z, d = np.empty(factors), np.empty(factors)
    for u in range(start.size - 1):
        low, high = start[u], start[u + 1]
        if low == high:
            continue
        root = np.sqrt(float(high - low))
        z[:] = 0.0
        d[:] = 0.0
        a = 1.0
        for entry in range(low, high):
            y = Y[item[entry]]
            for k in range(factors):
                z[k] += y[k]
        for k in range(factors):
            z[k] /= root
        of_u = P[u]
        for entry in range(low, high):
            i = item[entry]
            of_i = Q[i]
            x = mean + b[u] + c[i]
            for k in range(factors):
                x += of_i[k] * (of_u[k] + z[k])
            e = rate * (value[entry] - x)
            b[u] = keep_bias * b[u] + e
            c[i] = keep_bias * c[i] + e
            a *= keep_y
            for k in range(factors):
                p, q, s = of_u[k], of_i[k], z[k]
                of_u[k] = keep * p + e * q
                of_i[k] = keep * q + e * (p + s)
                z[k] = keep_y * s + e * q
                d[k] = keep_y * d[k] + e * q / root
        for entry in range(low, high):
            y = Y[item[entry]]
            for k in range(factors):
                y[k] = a * y[k] + d[k]


@training_kernel
def implicit_users(start: I64, item: I32, P: F64, Y: F64, out: F64) -> None:
    """Fill p_u + Σ y / √n."""
    for u in range(out.shape[0]):
        of = out[u]
        of[:] = 0.0
        low, high = start[u], start[u + 1]
        for entry in range(low, high):
            y = Y[item[entry]]
            for k in range(of.size):
                of[k] += y[k]
        root = np.sqrt(float(max(high - low, 1)))
        for k in range(of.size):
            of[k] = P[u, k] + of[k] / root
