"""What linear models share: ratings by item, and the items' Gram matrix, made in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unskew.data.ratings import Ratings, frozen, grouped_order
from unskew.errors import DataError
from unskew.threads import map_blocks

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

LARGEST = 2 << 30
"""Bytes above which a matrix of items x items is refused."""

ROWS = 64
"""Rows per block: enough to hide the call, few enough to share the work evenly."""


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix row by row: users x items, or the other way round."""

    start: I64
    """Where each row's entries start; one more for the end."""
    column: I32
    value: F64
    columns: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.start.size - 1

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Which rows have an entry, be it 0."""
        return np.diff(self.start) > 0

    def by_column(self) -> tuple[I64, I32, I64]:
        """Return where each column's entries start, their rows and their places, in order."""
        start = np.zeros(self.columns + 1, np.int64)
        np.cumsum(np.bincount(self.column, minlength=self.columns), out=start[1:])
        order = grouped_order(self.column, start)
        row = np.repeat(np.arange(self.rows, dtype=np.int32), np.diff(self.start))
        return frozen(start), frozen(row[order]), frozen(order)

    def transposed(self) -> Sparse:
        """Return the matrix column by column; entries keep the order of their rows."""
        start, row, order = self.by_column()
        return Sparse(start, row, frozen(self.value[order]), self.rows)

    def times(self, dense: F64) -> F64:
        """Return the product with a dense matrix; every row is a sum in the order of entries."""
        from unskew.recommend import _linear_kernels

        result = np.empty((self.rows, dense.shape[1]))
        right = frozen(dense)

        def fill(low: int) -> None:
            _linear_kernels.product(
                self.start, self.column, self.value, right, low, result[low : low + 4 * ROWS]
            )

        map_blocks(fill, range(0, self.rows, 4 * ROWS), size=self.value.size * dense.shape[1])
        return result


def by_user(train: Ratings, value: F64 | None = None) -> Sparse:
    """Return the ratings (or other values in their place) as a matrix of users x items."""
    kept = train.value if value is None else value
    return Sparse(train.start, frozen(train.item), frozen(kept), len(train.items))


def item_gram(R: Sparse, purpose: str) -> F64:
    """Return RᵀR for ratings by user; `purpose` opens the error when it would be too large."""
    from unskew.recommend import _linear_kernels

    items = R.columns
    size = items * items * 8
    if size > LARGEST:
        most = int((LARGEST / 8) ** 0.5)
        raise DataError(
            f"{purpose}: its {items:,} x {items:,} matrix of items would take "
            f"{size / 2**30:.1f} GiB, more than {LARGEST / 2**30:g}; it can have {most:,} items: "
            f"keep the most rated ones, or use a model of factors"
        )
    start, row, order = R.by_column()
    G = np.zeros((items, items))

    def fill(low: int) -> None:
        _linear_kernels.gram_rows(
            start, order, row, R.start, R.column, R.value, low, G[low : low + ROWS]
        )

    map_blocks(fill, range(0, items, ROWS), size=R.value.size * ROWS)
    mirror(G)
    return G


def mirror(A: F64, step: int = 256) -> None:
    """Copy the upper half of a square matrix to the lower one."""

    def copy(low: int) -> None:
        high = low + step
        A[low:high, :low] = A[:low, low:high].T
        corner = A[low:high, low:high]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T

    map_blocks(copy, range(0, A.shape[0], step), size=A.size)


def inverse(A: F64, step: int = 256) -> F64:
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

        def update(row: slice, K: slice = K, C: F64 = C, P: F64 = P) -> None:
            if row != K:
                A[row, row.start :] -= C[:, row].T @ P[:, row.start :]

        map_blocks(update, blocks, size=n * n)
        A[: K.start, K] = P[:, : K.start].T
        A[K, K.stop :] = P[:, K.stop :]
        A[K, K] = -D
    np.negative(A, out=A)
    mirror(A)
    return A
