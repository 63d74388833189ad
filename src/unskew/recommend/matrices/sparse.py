"""Sparse rows: ratings by user or by item, neighbours, weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, I32, I64, Floats, Mask, Raters, Rows, Tile, frozen
from unskew.data.groups import grouped_order
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.errors import DataError
from unskew.recommend.model import Axes


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix by rows."""

    start: I64
    """Where each row starts; one more entry for the end."""
    column: I32
    value: F64
    columns: int
    """How many columns there are."""

    def __len__(self) -> int:
        return self.start.size - 1

    @property
    def arrays(self) -> Rows:
        """Starts, columns and values, as kernels take them."""
        return Rows(self.start, self.column, self.value)

    @property
    def row(self) -> I32:
        """The row of each entry."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.start))

    def sums(self) -> F64:
        """Return the sum of each row."""
        total: F64 = np.bincount(self.row, self.value, len(self)).astype(np.float64)
        return total

    def shares(self) -> SparseRows:
        """Return each row divided by its sum; no entry may be 0 or below."""
        return self.with_values(self.value / self.sums()[self.row])

    def with_values(self, value: F64) -> SparseRows:
        """Return the same places with other values."""
        return replace(self, value=frozen(value))

    def by_column(self) -> Raters:
        """Return where each column's entries start, and their rows and places, both ascending."""
        start = np.zeros(self.columns + 1, np.int64)
        np.cumsum(np.bincount(self.column, minlength=self.columns), out=start[1:])
        order = grouped_order(self.column, start)
        return Raters(frozen(start), frozen(self.row[order]), frozen(order))

    def transposed(self) -> SparseRows:
        """Return the matrix by columns, each in ascending order of the rows."""
        start, row, order = self.by_column()
        return SparseRows(start, row, frozen(self.value[order]), len(self))


def user_rows(train: Ratings, value: F64 | None = None) -> SparseRows:
    """Return the ratings, or other values in their place, with a row per user."""
    values = train.value if value is None else value
    return SparseRows(train.start, train.item, frozen(values), len(train.items))


def rated_users(train: Ratings) -> Mask:
    """Mark the users that have training ratings."""
    rated: Mask = np.diff(train.start) > 0
    return rated


def rated_items(train: Ratings) -> Mask:
    """Mark the items that have training ratings."""
    rated: Mask = np.bincount(train.item, minlength=len(train.items)) > 0
    return rated


LARGEST = 2 << 30
"""Bytes above which a part is refused."""


def capacity(size: int) -> int:
    """Return how many things of so many bytes fit."""
    return LARGEST // size


def check_size(size: int, what: str, remedy: str) -> None:
    """Refuse what would take too many bytes, before any work."""
    if size > LARGEST:
        raise DataError(
            f"{what} would take {size / 2**30:,.1f} GiB, more than {LARGEST / 2**30:g}; {remedy}"
        )


ROWS = 64
"""Rows per block: enough to hide the call, few enough to share the work evenly."""


def item_gram(R: SparseRows, purpose: str) -> F64:
    """Return RᵀR for ratings by user; `purpose` opens the error when it would be too large."""
    from unskew.recommend.kernels import factors

    items = R.columns
    check_size(
        items * items * 8,
        f"{purpose}: its {items:,} x {items:,} matrix of items",
        f"it can have {isqrt(capacity(8)):,} items: keep the most rated ones, or use a model of "
        f"factors",
    )
    columns = R.by_column()
    G = np.zeros((items, items))

    def fill(low: int) -> None:
        factors.gram_rows(columns, R.arrays, low, G[low : low + ROWS])

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


BLOCK = 256
"""Rows per task, and users that are multiplied together."""
CELLS = 1 << 25
"""Products held at a time; with more items than fit, fewer users are multiplied together."""
EVEN = 64
"""Items are filled up to a multiple of this, with factors of 0, before they are multiplied."""
USERS_AT_ONCE = 64
"""Users whose sums over all others stay near the processor."""


def in_blocks(users: I32, fill: Callable[[I32, slice], None], size: int, step: int = BLOCK) -> None:
    """Let `fill` work on a few users at a time, given them and where their rows stand."""

    def work(low: int) -> None:
        rows = slice(low, low + step)
        fill(frozen(users[rows]), rows)

    map_blocks(work, range(0, users.size, step), size=size)


# Sparse rows


def sums(
    users: I32,
    first: SparseRows,
    second: SparseRows,
    *,
    count_first: bool = False,
    count_second: bool = False,
) -> tuple[F64, I32]:
    """Return Σ first · second per user and item, and how many terms each sum has.

    What is counted enters the products as 1.
    """
    from unskew.recommend.kernels import neighbours as kernels

    total = np.zeros((users.size, second.columns))
    terms = np.zeros(total.shape, np.int32)

    def fill(part: I32, rows: slice) -> None:
        counted = count_first, count_second
        kernels.sparse_product(
            part, first.arrays, second.arrays, *counted, total[rows], terms[rows]
        )

    in_blocks(users, fill, total.size)
    return total, terms


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes times weights, added up or averaged; what has too few votes has no score."""

    first: SparseRows
    """By user: neighbours and their weights, or rated items and the ratings."""
    second: SparseRows
    """By neighbour: the votes; or by rated item: the items that it has a weight for."""
    averaged: str = ""
    """Which of the two are the votes, `first` or `second`, of which to take the average."""
    min_support: int = 1
    axes: ClassVar[Axes] = {"first": ("users", "votes"), "second": ("votes", "items")}

    def score(self, users: I32) -> F64:
        """Add up the votes, and divide by the weights where an average is wanted."""
        total, support = sums(users, self.first, self.second)
        if self.averaged:
            mass, _ = sums(
                users,
                self.first,
                self.second,
                count_first=self.averaged == "first",
                count_second=self.averaged == "second",
            )
            np.divide(total, mass, out=total, where=mass > 0)
        total[support < self.min_support] = np.nan
        return total


@dataclass(frozen=True, eq=False)
class SparseWeights:
    """A weight from some items to some others; a sum without any weight is 0."""

    ratings: SparseRows
    weights: SparseRows
    """Row = rated item, column = scored item."""
    item_offset: F64
    """0; NaN for items without ratings, which cannot be scored."""
    axes: ClassVar[Axes] = {
        "ratings": ("users", "items"),
        "weights": ("items", "items"),
        "item_offset": ("items",),
    }

    def score(self, users: I32) -> F64:
        """Return ratings times weights; NaN for users and items without ratings."""
        total, _ = sums(users, self.ratings, self.weights)
        total += self.item_offset
        total[np.diff(self.ratings.start)[users] == 0] = np.nan
        return total


# A dense matrix


def times(rows: SparseRows, dense: F64) -> F64:
    """Return the product of sparse rows with a dense matrix."""
    result = np.zeros((len(rows), dense.shape[1]))
    _multiply(np.arange(len(rows), dtype=np.int32), rows, frozen(dense), result)
    return result


@dataclass(frozen=True, eq=False)
class DenseWeights:
    """A weight from every item to every other: items x items."""

    ratings: SparseRows
    weights: Tile
    """Row = rated item, column = scored item; NaN in the columns of items without ratings."""
    axes: ClassVar[Axes] = {"ratings": ("users", "items"), "weights": ("items", "items")}

    def score(self, users: I32) -> F64:
        """Return ratings times weights; NaN for users and items without ratings."""
        tile = np.full((users.size, self.weights.shape[1]), np.nan)
        _multiply(users, self.ratings, self.weights, tile)
        return tile


@dataclass(frozen=True, eq=False)
class UserWeights:
    """EASE by a weight from every user to every other: the same scores as by those of items.

    With M = (RRᵀ + λI)⁻¹ and the diagonal p of (RᵀR + λI)⁻¹ they are R_u - M_u R / p.
    """

    ratings: SparseRows
    weights: F64
    """M."""
    diagonal: F64
    """p; NaN for items without ratings."""
    axes: ClassVar[Axes] = {
        "ratings": ("users", "items"),
        "weights": ("users", "users"),
        "diagonal": ("items",),
    }

    def score(self, users: I32) -> F64:
        """Return the scores of a few users at a time; NaN for users without ratings."""
        from unskew.recommend.kernels import neighbours as kernels

        R = self.ratings
        tile = np.empty((users.size, R.columns))

        def fill(part: I32, rows: slice) -> None:
            total = np.zeros((R.columns, part.size))
            weight = frozen(self.weights[:, part])
            kernels.all_votes(weight, *R.arrays, False, total)
            total /= -self.diagonal[:, np.newaxis]
            tile[rows] = total.T

        in_blocks(users, fill, R.value.size * users.size, USERS_AT_ONCE)
        for row, user in enumerate(users):
            entries = slice(R.start[user], R.start[user + 1])
            tile[row, R.column[entries]] += R.value[entries]
        tile[np.diff(R.start)[users] == 0] = np.nan
        return tile


def _multiply(which: I32, rows: SparseRows, dense: Floats, out: F64) -> None:
    """Fill the products of some rows, but leave those without entries as they are."""
    from unskew.recommend.kernels import neighbours as kernels

    def fill(part: I32, block: slice) -> None:
        kernels.dense_product(part, *rows.arrays, dense, out[block])

    in_blocks(which, fill, rows.value.size * dense.shape[1])


# Factors


@dataclass(frozen=True, eq=False)
class Factors:
    """Scores p_u·q_i + b_u + c_i; an offset of NaN marks who or what cannot be scored."""

    user_factors: Tile
    item_factors: Tile
    user_offset: Tile
    item_offset: Tile
    axes: ClassVar[Axes] = {
        "user_factors": ("users", "factors"),
        "item_factors": ("items", "factors"),
        "user_offset": ("users",),
        "item_offset": ("items",),
    }

    def score(self, users: I32) -> Tile:
        """Return a row of scores per user."""
        items, kind = self.item_factors.shape[0], self.item_factors.dtype
        # Always as many users together: a product of another size may have other last bits. So
        # may users in other places beside the last items, unless their number is even enough; and
        # in single precision, on some processors, users in any other place: so in doubles.
        step = max(1, min(BLOCK, CELLS // items))
        rows = -(-users.size // step) * step
        Q = np.zeros((-(-items // EVEN) * EVEN, self.item_factors.shape[1]))
        Q[:items] = self.item_factors
        p = np.zeros((rows, Q.shape[1]))
        p[: users.size] = self.user_factors[users]
        products = np.empty((rows, Q.shape[0]))
        for low in range(0, rows, step):
            np.matmul(p[low : low + step], Q.T, out=products[low : low + step])
        tile: Tile = np.add(
            products[: users.size, :items], self.item_offset, dtype=kind, casting="same_kind"
        )
        tile += self.user_offset[users][:, None]
        return tile


def factor_model(
    train: Ratings, P: Tile, Q: Tile, b: Tile | float = 0.0, c: Tile | float = 0.0
) -> Factors:
    """Make the model of factors and offsets; what has no ratings cannot be scored."""
    user_offset = np.where(rated_users(train), b, np.nan).astype(P.dtype)
    item_offset = np.where(rated_items(train), c, np.nan).astype(Q.dtype)
    return Factors(frozen(P), frozen(Q), frozen(user_offset), frozen(item_offset))
