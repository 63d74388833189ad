"""Kernel of SVD++."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.engine.compiled import training_kernel


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
        for at in range(low, high):
            y = Y[item[at]]
            for k in range(factors):
                z[k] += y[k]
        for k in range(factors):
            z[k] /= root
        of_u = P[u]
        for at in range(low, high):
            i = item[at]
            of_i = Q[i]
            x = mean + b[u] + c[i]
            for k in range(factors):
                x += of_i[k] * (of_u[k] + z[k])
            e = rate * (value[at] - x)
            b[u] = keep_bias * b[u] + e
            c[i] = keep_bias * c[i] + e
            a *= keep_y
            for k in range(factors):
                p, q, s = of_u[k], of_i[k], z[k]
                of_u[k] = keep * p + e * q
                of_i[k] = keep * q + e * (p + s)
                z[k] = keep_y * s + e * q
                d[k] = keep_y * d[k] + e * q / root
        for at in range(low, high):
            y = Y[item[at]]
            for k in range(factors):
                y[k] = a * y[k] + d[k]


@training_kernel
def implicit_users(start: I64, item: I32, P: F64, Y: F64, out: F64) -> None:
    """Fill p_u + Σ y / √n."""
    for u in range(out.shape[0]):
        of = out[u]
        of[:] = 0.0
        low, high = start[u], start[u + 1]
        for at in range(low, high):
            y = Y[item[at]]
            for k in range(of.size):
                of[k] += y[k]
        root = np.sqrt(float(max(high - low, 1)))
        for k in range(of.size):
            of[k] = P[u, k] + of[k] / root
