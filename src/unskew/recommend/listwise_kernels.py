"""Kernels of ListRankMF: the cross entropy of two distributions over each user's items."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.engine.compiled import kernel
from unskew.recommend.sgd_kernels import dot


@kernel
def list_losses(
    low: int, start: I64, item: I32, target: F64, P: F64, Q: F64, squashed: F64, loss: F64
) -> None:
    """Fill the losses of users low, low + 1, … and, per rating of theirs, σ(p·q).

    `squashed` starts with the ratings of user low.
    """
    base = start[low]
    for at in range(loss.size):
        u = low + at
        total = 0.0
        expected = 0.0
        for a in range(start[u], start[u + 1]):
            s = 1.0 / (1.0 + np.exp(-dot(P, u, Q, item[a])))
            squashed[a - base] = s
            total += np.exp(s)
            expected += target[a] * s
        loss[at] = np.log(total) - expected if total > 0.0 else 0.0


@kernel
def user_slopes(
    low: int,
    high: int,
    start: I64,
    item: I32,
    target: F64,
    Q: F64,
    squashed: F64,
    slope: F64,
    gradient: F64,
) -> None:
    """Fill per rating ∂loss/∂(p·q), and the gradients of users low, …, high - 1."""
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
def item_gradients(
    low: int, high: int, there: I64, rater: I32, order: I64, slope: F64, P: F64, gradient: F64
) -> None:
    """Fill the gradients of items low, …, high - 1."""
    for i in range(low, high):
        of = gradient[i]
        of[:] = 0.0
        for a in range(there[i], there[i + 1]):
            e = slope[order[a]]
            p = P[rater[a]]
            for k in range(p.size):
                of[k] += e * p[k]
