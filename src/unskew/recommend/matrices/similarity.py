"""Similarities of users or of items, and the exact nearest neighbours that they give.

Similarities come from inverted lists, one row at a time, so that memory grows with the rows and
the neighbours kept and never with the square of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unskew.arrays import F64, I32, I64, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.recommend.matrices.sparse import SparseRows, capacity, check_size, user_rows

# Rows per task, and tasks where there are many rows: each task has a buffer as long as all rows.
_ROWS = 128
_TASKS = 256
_BYTES = np.dtype(np.int32).itemsize + np.dtype(np.float64).itemsize


def nearest(
    rows: SparseRows,
    inverted: SparseRows,
    length: F64,
    k: int | None,
    *,
    other_length: F64 | None = None,
    shrink: float = 0.0,
    toll: F64 | None = None,
) -> SparseRows:
    """Return the k most similar rows of each row, with their similarities as values.

    Only rows with a positive similarity are neighbours, so that there may be fewer than k. They
    stand nearest first, equal ones by ascending number. No k keeps them all, by ascending number.

    Parameters
    ----------
    rows, inverted
        The product of the two is what similarities are made of.
    length
        Of each row. Products are divided by the lengths of both rows.
    k
        Neighbours per row; None = all.
    other_length
        Of each row where it is the other one, the neighbour; `length` unless given.
    shrink
        λ of a factor n/(n + λ), n being how many columns the two rows share.
    toll
        Per row, from 0 up: then the similarity is the product less the row's toll times the
        length of the other, and nothing else.
    """
    from unskew.recommend.kernels import neighbours as kernels

    n = len(rows)
    keep = n - 1 if k is None else min(k, n - 1)
    steps = frozen(kernels.steps_of(rows.start, rows.column, inverted.start))
    bound = np.minimum(steps, keep)
    check_size(
        int(bound.sum()) * _BYTES,
        f"lists of {'all' if k is None else f'{k:,}'} neighbours of {n:,} rows",
        f"ask for k of about {capacity(_BYTES * n):,} or less",
    )
    arguments = (
        rows.arrays,
        inverted.arrays,
        frozen(length),
        frozen(length if other_length is None else other_length),
        frozen(np.empty(0) if toll is None else toll),
        steps,
        shrink,
        keep,
    )
    step = max(_ROWS, n // _TASKS)

    def task(low: int) -> tuple[I64, I32, F64]:
        high = min(low + step, n)
        size = int(bound[low:high].sum())
        who, near = np.empty(size, np.int32), np.empty(size)
        result = kernels.nearest_rows(low, high, *arguments, who, near)
        end = int(result.sum())
        return result, who[:end], near[:end]

    parts = map_blocks(task, range(0, n, step), size=int(steps.sum()))
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.concatenate([result for result, _, _ in parts]), out=start[1:])
    who = np.concatenate([who for _, who, _ in parts])
    near = np.concatenate([near for _, _, near in parts])
    return SparseRows(frozen(start), frozen(who), frozen(near), n)


@dataclass(frozen=True, eq=False)
class Cosines:
    """The similarity of every row with every other: cos(a, b) · n/(n + shrink).

    The cosine is that of the whole rows, what is missing counting as 0; n is how many columns
    the two rows share. A row has similarity 0 with itself: it is not its own neighbour. With an
    asymmetry α other than 0.5, a·b is divided by ‖a‖^2α ‖b‖^2(1-α) in place of ‖a‖ ‖b‖.
    """

    rows: SparseRows
    inverted: SparseRows
    length: F64
    """‖a‖^2α of each row a."""
    other_length: F64
    """‖b‖^2(1-α) of each row b."""
    shrink: float = 0.0

    @classmethod
    def of(
        cls,
        rows: SparseRows,
        inverted: SparseRows | None = None,
        shrink: float = 0.0,
        asymmetry: float = 0.5,
    ) -> Cosines:
        """Prepare the similarities of some rows."""
        from unskew.recommend.kernels import neighbours as kernels

        columns = rows.transposed() if inverted is None else inverted
        norm = kernels.norms(rows.start, rows.value)
        length, other_length = (norm ** (2 * share) for share in (asymmetry, 1 - asymmetry))
        return cls(rows, columns, frozen(length), frozen(other_length), float(shrink))

    def block(self, which: I32) -> F64:
        """Return the similarities of some rows with all rows."""
        from unskew.recommend.kernels import neighbours as kernels

        result = np.empty((which.size, len(self.rows)))
        matrices = self.rows.arrays, self.inverted.arrays
        lengths = self.length, self.other_length
        kernels.cosine_rows(frozen(which), *matrices, *lengths, self.shrink, result)
        return result

    def nearest(self, k: int | None = None) -> SparseRows:
        """Return the k most similar rows of each row: see `nearest`."""
        lengths = {"other_length": self.other_length}
        return nearest(self.rows, self.inverted, self.length, k, shrink=self.shrink, **lengths)


@dataclass(eq=False)
class Nearest:
    """The nearest rows for several k: one pass for the largest holds those of the others."""

    rows: SparseRows
    inverted: SparseRows
    limits: dict[float, int]
    """By asymmetry: the largest k that is wanted."""
    is_trial: bool = False
    """Whether settings are tried on a part of the users: then all neighbours are refused where they
    might not fit with all users, because the chosen setting has to be trained on these."""
    prepared: dict[float, Cosines] = field(default_factory=dict)
    passes: dict[tuple[float, int | None], SparseRows] = field(default_factory=dict)

    def cosines(self, asymmetry: float) -> Cosines:
        """Return the similarities, prepared at their first use."""
        if asymmetry not in self.prepared:
            cosines = Cosines.of(self.rows, self.inverted, asymmetry=asymmetry)
            self.prepared[asymmetry] = cosines
        return self.prepared[asymmetry]

    def first(self, k: int | None, asymmetry: float) -> SparseRows:
        """Return the k nearest rows of each row, the same bits as by a pass for this k alone."""
        n = len(self.rows)
        if k is None and self.is_trial:
            check_size(
                n * (n - 1) * _BYTES,
                f"lists of all neighbours of {n:,} rows",
                f"ask for k of about {capacity(_BYTES * n):,} or less",
            )
        largest = None if k is None else self.limits[asymmetry]
        if (asymmetry, largest) not in self.passes:
            near = self.cosines(asymmetry).nearest(largest)
            self.passes[asymmetry, largest] = near
        near = self.passes[asymmetry, largest]
        if k is None or k == largest:
            return near
        if k >= n - 1:  # all of them, by number
            return self.cosines(asymmetry).nearest(k)
        if largest is not None and largest >= n - 1:  # they stand by number: not the nearest first
            return self.cosines(asymmetry).nearest(k)
        return first_of_each(near, k)


def first_of_each(rows: SparseRows, limit: int) -> SparseRows:
    """Return the first entries of each row."""
    count = np.minimum(np.diff(rows.start), limit)
    start = np.append(0, np.cumsum(count))
    entry = np.arange(start[-1]) + np.repeat(rows.start[:-1] - start[:-1], count)
    return SparseRows(
        frozen(start), frozen(rows.column[entry]), frozen(rows.value[entry]), rows.columns
    )


def user_neighbours(train: Ratings, k: int | None, shrink: float = 0.0) -> SparseRows:
    """Return the users nearest to each user by cosine: see `nearest`."""
    return Cosines.of(user_rows(train), shrink=shrink).nearest(k)


def item_neighbours(
    train: Ratings, k: int | None, shrink: float = 0.0, asymmetry: float = 0.5
) -> SparseRows:
    """Return the items nearest to each item by cosine: see `nearest` and `Cosines`."""
    rows = user_rows(train)
    return Cosines.of(rows.transposed(), rows, shrink, asymmetry).nearest(k)
