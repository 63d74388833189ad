"""`PairedSample`: the values of one metric as tests take them, and what is known of every pair."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import DataError
from unskew.stats.randomisation import grid_of


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which systems are compared with which: numbers of the first and of the second."""

    one: I64
    other: I64

    def __len__(self) -> int:
        return self.one.size


def all_pairs(systems: int) -> Pairs:
    """Return every pair once, in the order of the systems."""
    one, other = np.triu_indices(systems, 1)
    return Pairs(one.astype(np.int64), other.astype(np.int64))


def against(reference: int, systems: int) -> Pairs:
    """Return every other system, compared with the reference."""
    one = np.delete(np.arange(systems, dtype=np.int64), reference)
    return Pairs(one, np.full(one.size, reference, np.int64))


@dataclass(frozen=True, eq=False)
class PairedSample:
    """Values of one metric: users x systems, in whole numbers of `unit`."""

    label: str
    values: F64
    """On the grid of `randomisation`; a row of zeros for a user that is left out."""
    unit: float
    tolerance: float
    """By how many units equal sums may differ."""
    kept: Mask
    users: int
    means: F64
    """Of each system, over the kept users."""
    pairs: Pairs
    difference: F64
    """Mean of the first less mean of the second, of each pair, as what follows."""
    squares: F64
    """Sum of (d - mean d)²."""
    cubes: F64
    """Sum of (d - mean d)³."""
    constant: Mask
    """Whether the difference is the same for every user."""
    better: I64
    """Users whose value of the first system is greater; `worse`: smaller."""
    worse: I64

    @property
    def observed(self) -> F64:
        """The differences' sums over users, in units; exact."""
        total: F64 = self.values.sum(axis=0)
        result: F64 = total[self.pairs.one] - total[self.pairs.other]
        return result

    @property
    def sd(self) -> F64:
        """Standard deviation of the differences (n - 1); NaN with one user."""
        if self.users < 2:
            return np.full(len(self.pairs), np.nan)
        result: F64 = np.where(self.constant, 0.0, np.sqrt(self.squares / (self.users - 1)))
        return result

    @property
    def standard_error(self) -> F64:
        """Standard error of the mean difference."""
        return self.sd / math.sqrt(self.users)

    def differences(self, pair: int) -> F64:
        """Return the kept users' differences of a pair, in units."""
        one, other = int(self.pairs.one[pair]), int(self.pairs.other[pair])
        result: F64 = self.values[self.kept, one] - self.values[self.kept, other]
        return result

    def complete(self) -> F64:
        """Return the kept users' values, in units."""
        return self.values if self.users == self.kept.size else self.values[self.kept]


def sample(
    matrix: F64, pairs: Pairs, label: str = "values", threads: int | None = None
) -> PairedSample:
    """Make a sample of users x systems; rows with NaN are users that are left out.

    The matrix is taken over: it becomes the grid.
    """
    from unskew.stats import kernels

    matrix = np.ascontiguousarray(matrix, np.float64)
    kept: Mask = np.logical_not(np.isnan(matrix).any(axis=1))
    users = int(kept.sum())
    if not users:
        raise DataError(f"{label}: no user has a value of every system")
    matrix[~kept] = 0.0
    if not np.isfinite(matrix).all():
        raise DataError(f"{label}: infinite values cannot be compared")
    flags = kept.astype(np.uint8)
    means = np.empty(matrix.shape[1])
    kernels.means_of(matrix, flags, means)
    difference = means[pairs.one] - means[pairs.other]
    grid = grid_of(matrix)
    none = 0.5 * grid.unit  # a difference below half a step of the grid is none
    step = max(1, min(256, -(-len(pairs) // resolve(threads))))

    def some(start: int) -> F64:
        part = slice(start, start + step)
        one, other = pairs.one[part], pairs.other[part]
        numbers = np.zeros((6, one.size))
        kernels.moments(matrix, flags, one, other, difference[part], none, numbers)
        return numbers

    size = len(pairs) * matrix.shape[0]
    parts = map_blocks(some, range(0, len(pairs), step), threads, size)
    squares, cubes, lowest, highest, better, worse = np.concatenate(parts, axis=1)
    return PairedSample(
        label=label,
        values=grid.place(matrix),
        unit=grid.unit,
        tolerance=grid.tolerance(users),
        kept=kept,
        users=users,
        means=means,
        pairs=pairs,
        difference=difference,
        squares=squares,
        cubes=cubes,
        constant=highest - lowest <= none,
        better=better.astype(np.int64),
        worse=worse.astype(np.int64),
    )
