"""Models that are products of two matrices: of sparse rows, of a dense matrix, of factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, I32, Floats, Tile, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.recommend.model import Axes
from unskew.recommend.sparse import Rows, rated_items, rated_users

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
    users: I32, first: Rows, second: Rows, *, count_first: bool = False, count_second: bool = False
) -> tuple[F64, I32]:
    """Return Σ first · second per user and item, and how many terms each sum has.

    What is counted enters the products as 1.
    """
    from unskew.recommend import product_kernels as kernels

    total = np.zeros((users.size, second.columns))
    terms = np.zeros(total.shape, np.int32)

    def fill(some: I32, rows: slice) -> None:
        kernels.sparse_product(
            some,
            *first.arrays,
            *second.arrays,
            count_first,
            count_second,
            total[rows],
            terms[rows],
        )

    in_blocks(users, fill, total.size)
    return total, terms


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes times weights, added up or averaged; what has too few votes has no score."""

    first: Rows
    """By user: neighbours and their weights, or rated items and the ratings."""
    second: Rows
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

    ratings: Rows
    weights: Rows
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


def times(rows: Rows, dense: F64) -> F64:
    """Return the product of sparse rows with a dense matrix."""
    result = np.zeros((len(rows), dense.shape[1]))
    _multiply(np.arange(len(rows), dtype=np.int32), rows, frozen(dense), result)
    return result


@dataclass(frozen=True, eq=False)
class DenseWeights:
    """A weight from every item to every other: items x items."""

    ratings: Rows
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

    ratings: Rows
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
        from unskew.recommend import neighbour_kernels as kernels

        R = self.ratings
        tile = np.empty((users.size, R.columns))

        def fill(some: I32, rows: slice) -> None:
            total = np.zeros((R.columns, some.size))
            weight = frozen(self.weights[:, some])
            kernels.all_votes(weight, *R.arrays, False, total)
            total /= -self.diagonal[:, np.newaxis]
            tile[rows] = total.T

        in_blocks(users, fill, R.value.size * users.size, USERS_AT_ONCE)
        for at, user in enumerate(users):
            some = slice(R.start[user], R.start[user + 1])
            tile[at, R.column[some]] += R.value[some]
        tile[np.diff(R.start)[users] == 0] = np.nan
        return tile


def _multiply(which: I32, rows: Rows, dense: Floats, out: F64) -> None:
    """Fill the products of some rows, but leave those without entries as they are."""
    from unskew.recommend import product_kernels as kernels

    def fill(some: I32, place: slice) -> None:
        kernels.dense_product(some, *rows.arrays, dense, out[place])

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
