"""Sparse rows: ratings by user or by item, neighbours, weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.groups import grouped_order
from unskew.data.ratings import Ratings


@dataclass(frozen=True, eq=False)
class Rows:
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
    def arrays(self) -> tuple[I64, I32, F64]:
        """Starts, columns and values, as kernels take them."""
        return self.start, self.column, self.value

    @property
    def row(self) -> I32:
        """The row of each entry."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.start))

    def sums(self) -> F64:
        """Return the sum of each row."""
        total: F64 = np.bincount(self.row, self.value, len(self)).astype(np.float64)
        return total

    def shares(self) -> Rows:
        """Return each row divided by its sum; no entry may be 0 or below."""
        return self.with_values(self.value / self.sums()[self.row])

    def with_values(self, value: F64) -> Rows:
        """Return the same places with other values."""
        return replace(self, value=frozen(value))

    def by_column(self) -> tuple[I64, I32, I64]:
        """Return where each column's entries start, and their rows and places, both ascending."""
        start = np.zeros(self.columns + 1, np.int64)
        np.cumsum(np.bincount(self.column, minlength=self.columns), out=start[1:])
        order = grouped_order(self.column, start)
        return frozen(start), frozen(self.row[order]), frozen(order)

    def transposed(self) -> Rows:
        """Return the matrix by columns, each in ascending order of the rows."""
        start, row, order = self.by_column()
        return Rows(start, row, frozen(self.value[order]), len(self))


def user_rows(train: Ratings, value: F64 | None = None) -> Rows:
    """Return the ratings, or other values in their place, with a row per user."""
    kept = train.value if value is None else value
    return Rows(train.start, train.item, frozen(kept), len(train.items))


def rated_users(train: Ratings) -> Mask:
    """Mark the users that have training ratings."""
    rated: Mask = np.diff(train.start) > 0
    return rated


def rated_items(train: Ratings) -> Mask:
    """Mark the items that have training ratings."""
    rated: Mask = np.bincount(train.item, minlength=len(train.items)) > 0
    return rated
