"""The items' Gram matrix, made in blocks, and the inverse of such a matrix."""

from __future__ import annotations

from math import isqrt

import numpy as np

from unskew.arrays import F64, Floats
from unskew.engine.threads import map_blocks
from unskew.recommend.limits import check_size, most
from unskew.recommend.sparse import Rows

ROWS = 64
"""Rows per block: enough to hide the call, few enough to share the work evenly."""


def item_gram(R: Rows, purpose: str) -> F64:
    """Return RᵀR for ratings by user; `purpose` opens the error when it would be too large."""
    from unskew.recommend import linear_kernels

    items = R.columns
    check_size(
        items * items * 8,
        f"{purpose}: its {items:,} x {items:,} matrix of items",
        f"it can have {isqrt(most(8)):,} items: keep the most rated ones, or use a model of "
        f"factors",
    )
    start, row, order = R.by_column()
    G = np.zeros((items, items))

    def fill(low: int) -> None:
        linear_kernels.gram_rows(start, order, row, *R.arrays, low, G[low : low + ROWS])

    map_blocks(fill, range(0, items, ROWS), size=R.value.size * ROWS)
    mirror(G)
    return G


def mirror(A: Floats, step: int = 256) -> None:
    """Copy the upper half of a square matrix to the lower one."""

    def copy(low: int) -> None:
        high = low + step
        A[low:high, :low] = A[:low, low:high].T
        corner = A[low:high, low:high]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T

    map_blocks(copy, range(0, A.shape[0], step), size=A.size)


def inverse(A: Floats, step: int = 256) -> Floats:
    """Turn a symmetric positive definite matrix, in place, into its inverse.

    Sweeps it block by block (Gauss-Jordan elimination): a positive definite matrix needs no
    pivoting, half of the matrix is enough, and the products share out evenly over threads.
    """
    n = A.shape[0]
    blocks = [slice(low, min(low + step, n)) for low in range(0, n, step)]
    for K in blocks:
        # Row K of the whole matrix, of which only the upper half is kept up to date.
        C = np.concatenate([A[: K.start, K].T, A[K, K.start :]], axis=1)
        D = np.linalg.inv(C[:, K])
        D = (D + D.T) / 2
        P = D @ C

        def update(row: slice, K: slice = K, C: Floats = C, P: Floats = P) -> None:
            if row != K:
                A[row, row.start :] -= C[:, row].T @ P[:, row.start :]

        map_blocks(update, blocks, size=n * n)
        A[: K.start, K] = P[:, : K.start].T
        A[K, K.stop :] = P[:, K.stop :]
        A[K, K] = -D
    np.negative(A, out=A)
    mirror(A)
    return A
