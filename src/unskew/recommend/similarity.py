"""Cosine similarities of users or of items, and the exact nearest neighbours that they give.

Everything is sparse rows: ratings by user, ratings by item, and neighbours by user or by item.
Similarities come from inverted lists, one row at a time, so that memory grows with the rows and
the neighbours kept and never with the square of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unskew.data.ratings import Ratings, frozen, grouped_order
from unskew.errors import DataError
from unskew.threads import map_blocks

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

LARGEST = 2 << 30
"""Bytes that neighbour lists may take."""

# Rows per task, and tasks where there are many rows: each task has a buffer as long as all rows.
_ROWS = 128
_TASKS = 256
_BYTES = np.dtype(np.int32).itemsize + np.dtype(np.float64).itemsize


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

    def with_values(self, value: F64) -> Rows:
        """Return the same places with other values."""
        return replace(self, value=frozen(value))

    def transposed(self) -> Rows:
        """Return the matrix by columns, each in ascending order of the rows."""
        start = np.zeros(self.columns + 1, np.int64)
        np.cumsum(np.bincount(self.column, minlength=self.columns), out=start[1:])
        order = grouped_order(self.column, start)
        row = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.start))
        return Rows(frozen(start), frozen(row[order]), frozen(self.value[order]), len(self))


def user_rows(train: Ratings) -> Rows:
    """Return the ratings with a row per user."""
    return Rows(train.start, train.item, train.value, len(train.items))


def item_rows(train: Ratings) -> Rows:
    """Return the ratings with a row per item."""
    return user_rows(train).transposed()


@dataclass(frozen=True, eq=False)
class Cosines:
    """The similarity of every row with every other: cos(a, b) · n/(n + shrink).

    The cosine is that of the whole rows, what is missing counting as 0; n is how many columns
    the two rows share. A row has similarity 0 with itself: it is not its own neighbour.
    """

    rows: Rows
    inverted: Rows
    length: F64
    shrink: float = 0.0

    @classmethod
    def of(cls, rows: Rows, inverted: Rows | None = None, shrink: float = 0.0) -> Cosines:
        """Prepare the similarities of some rows."""
        from unskew.recommend import _neighbour_kernels as kernels

        turned = rows.transposed() if inverted is None else inverted
        return cls(rows, turned, frozen(kernels.norms(rows.start, rows.value)), float(shrink))

    def block(self, which: I32) -> F64:
        """Return the similarities of some rows with all rows."""
        from unskew.recommend import _neighbour_kernels as kernels

        result = np.empty((which.size, len(self.rows)))
        kernels.cosine_rows(frozen(which), *self._arrays, self.length, self.shrink, result)
        return result

    def nearest(self, k: int | None = None) -> Rows:
        """Return the k most similar rows of each row, with their similarities as values.

        Only rows with a positive similarity are neighbours, so that there may be fewer than k.
        They stand nearest first, equal ones by ascending number. No k keeps them all, by
        ascending number.
        """
        from unskew.recommend import _neighbour_kernels as kernels

        n = len(self.rows)
        keep = n - 1 if k is None else min(k, n - 1)
        steps = kernels.steps_of(self.rows.start, self.rows.column, self.inverted.start)
        bound = np.minimum(steps, keep)
        size = int(bound.sum()) * _BYTES
        if size > LARGEST:
            raise DataError(
                f"the lists of {'all' if k is None else f'{k:,}'} neighbours of {n:,} rows may "
                f"take {size / 2**30:,.1f} GiB; at most {LARGEST >> 30} GiB are allowed: "
                f"ask for k of about {LARGEST // _BYTES // n:,} or less"
            )
        ready = frozen(steps)
        step = max(_ROWS, n // _TASKS)

        def task(low: int) -> tuple[I64, I32, F64]:
            high = min(low + step, n)
            room = int(bound[low:high].sum())
            who, near = np.empty(room, np.int32), np.empty(room)
            found = kernels.nearest_rows(
                low, high, *self._arrays, self.length, ready, self.shrink, keep, who, near
            )
            end = int(found.sum())
            return found, who[:end], near[:end]

        parts = map_blocks(task, range(0, n, step), size=int(steps.sum()))
        start = np.zeros(n + 1, np.int64)
        np.cumsum(np.concatenate([found for found, _, _ in parts]), out=start[1:])
        who = np.concatenate([who for _, who, _ in parts])
        near = np.concatenate([near for _, _, near in parts])
        return Rows(frozen(start), frozen(who), frozen(near), n)

    @property
    def _arrays(self) -> tuple[I64, I32, F64, I64, I32, F64]:
        rows, inverted = self.rows, self.inverted
        return (
            rows.start, rows.column, rows.value,
            inverted.start, inverted.column, inverted.value,
        )  # fmt: skip


def user_neighbours(train: Ratings, k: int | None, shrink: float = 0.0) -> Rows:
    """Return the users nearest to each user: see `Cosines.nearest`."""
    return Cosines.of(user_rows(train), shrink=shrink).nearest(k)


def item_neighbours(train: Ratings, k: int | None, shrink: float = 0.0) -> Rows:
    """Return the items nearest to each item: see `Cosines.nearest`."""
    rows = user_rows(train)
    return Cosines.of(rows.transposed(), rows, shrink).nearest(k)
