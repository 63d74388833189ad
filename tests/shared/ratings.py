"""Small ratings: of rows, of numbered rows, of the cells of a matrix; and drawn at random."""

from dataclasses import replace

import numpy as np
import polars as pl

import unskew as us
from unskew import Ratings
from unskew.arrays import frozen
from unskew.data import Ids


def ratings(rows, tags=None):
    """Return ratings of rows (user, item, rating[, seconds])."""
    names = ("user", "item", "rating", "time")
    columns = dict(zip(names, zip(*rows, strict=True), strict=False))
    return us.read_ratings({**columns, **(tags or {})}, tags=list(tags or {}))


def split_of(train, test):
    """Return a split of two sets of rows; pairs may be in both."""
    return us.splits.Given(test=ratings(test), overlap="keep").split(ratings(train))[0]


def numbered_ratings(rows, users=None, items=None):
    """Return ratings of rows (user, item, value); of the ids 0, 1, … some may have none."""
    user, item, value = (np.array(column) for column in zip(*sorted(rows), strict=True))
    sizes = users or 1 + user.max(), items or 1 + item.max()
    return Ratings(
        *(Ids(pl.Series(range(size))) for size in sizes),
        frozen(user.astype(np.int32)),
        frozen(item.astype(np.int32)),
        frozen(value.astype(np.float64)),
    )


def timed(ratings, seed=0):
    """Return the same ratings with times in a random order, an hour apart."""
    order = np.random.default_rng(seed).permutation(len(ratings))
    return replace(ratings, time=frozen(1_600_000_000_000_000 + order * 3_600_000_000))


def matrix_ratings(matrix, seen):
    """Return ratings of the seen cells; users and items without any keep their numbers."""
    user, item = np.indices(matrix.shape).reshape(2, -1)
    value = pl.Series(matrix.ravel().astype(float))
    return Ratings.of(pl.Series(user), pl.Series(item), value).take(seen.ravel())


def random_cells(seed=0, users=7, items=9, rows=30, values=(1, 6)):
    """Return rows (user, item, value) of different cells, drawn at random."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(users * items, rows, replace=False)
    return [(c // items, c % items, rng.integers(*values)) for c in cells.tolist()]


def random_matrix(seed, users=30, items=20):
    """Return ratings and their matrix (missing = 0): user 3 and item 5 are cold."""
    rng = np.random.default_rng(seed)
    seen = rng.random((users, items)) < 0.35
    seen[3], seen[:, 5] = False, False
    matrix = rng.integers(1, 6, seen.shape)
    return matrix_ratings(matrix, seen), matrix * seen
