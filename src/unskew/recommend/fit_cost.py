"""What a fit takes: operations and bytes counted from the sizes of the data, or a timed trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.arrays import I64, Mask
from unskew.data.filters import compacted
from unskew.data.ratings import Ratings
from unskew.errors import DataError
from unskew.recommend.model import Algorithm

NUMBER = 8
"""Bytes of a number in double precision."""
ENTRY = 12
"""Bytes of an entry of a sparse matrix: its column and its value."""
DENSE = 0.03
"""What an operation in a product of dense matrices counts beside one that jumps in memory."""
SVD_STEPS = 14
"""Blocks of vectors that block Lanczos iteration adds before PureSVD is exact."""
SVD_BASIS = 1 << 26
"""Numbers that the basis of PureSVD may hold, unless three blocks need more."""
DESCENT_STEPS = 150
"""Steps of coordinate descent that SLIM takes for each pair of items."""
SLIM_WEIGHTS = 100
"""Weights that SLIM keeps for an item."""
TRIAL_USERS, TRIAL_ITEMS = 1_000, 2_000
"""A trial is made on the ratings of at most so many users and items."""
SCORED_USERS = 64


@dataclass(frozen=True, kw_only=True)
class DataShape:
    """The sizes of ratings on which the work of a fit depends.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.fit_cost import DataShape
    >>> DataShape.of(us.read_ratings({"user": [1, 1, 1, 2], "item": [7, 8, 9, 7]})).user_pairs
    10.0
    """

    ratings: int
    users: int
    items: int
    user_pairs: float
    """Sum over users of their squared number of ratings: the pairs of items that meet in a user."""
    item_pairs: float
    """The same over items: the pairs of users that meet in an item."""

    @classmethod
    def of(cls, ratings: Ratings) -> DataShape:
        """Return the sizes of ratings, by one pass over them."""
        by_user: I64 = np.diff(ratings.start)
        by_item: I64 = np.bincount(ratings.item, minlength=len(ratings.items))
        return cls(
            ratings=len(ratings),
            users=len(ratings.users),
            items=len(ratings.items),
            user_pairs=float(np.square(by_user, dtype=np.float64).sum()),
            item_pairs=float(np.square(by_item, dtype=np.float64).sum()),
        )


@dataclass(frozen=True, kw_only=True)
class FitCost:
    """What one fit takes."""

    operations: float
    """Sums into places that jump in memory; those of dense products count less (`DENSE`)."""
    bytes: float
    """Of model and fit together, at their largest."""
    largest_part: float = 0.0
    """Bytes of the largest array."""


def fit_cost(algorithm: Algorithm, shape: DataShape) -> FitCost | None:
    """Count what a fit takes on data of a shape; None for algorithms that are not counted.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.fit_cost import DataShape, fit_cost
    >>> shape = DataShape(ratings=900, users=90, items=50, user_pairs=9e4, item_pairs=2e4)
    >>> fit_cost(us.recommend.UserKNN(), shape).operations
    20000.0
    """
    count = COUNTS.get(algorithm.name)
    return None if count is None else count(algorithm, shape)


@dataclass(frozen=True, kw_only=True)
class TrialTimes:
    """Rough seconds of one processor, on all ratings."""

    fit: float
    score_user: float
    """To score one user against all items."""


def timed_trial(algorithm: Algorithm, ratings: Ratings) -> TrialTimes:
    """Fit an algorithm on a sample of users and items, and scale its time to all ratings.

    The scale is that of the counted operations; of the number of ratings where they are not
    counted, which is too small for algorithms that grow faster.
    """
    if not len(ratings):
        raise DataError(f"{algorithm.name}: there are no ratings to try it on")
    sample = _sample(ratings)
    users = np.arange(min(SCORED_USERS, len(sample.users)), dtype=np.int32)
    model = algorithm.fit(sample, 0)
    model.score(users)  # kernels are compiled by now
    begin = time.process_time()
    algorithm.fit(sample, 0)
    end = time.process_time()
    model.score(users)
    score = (time.process_time() - end) / users.size
    all_work, work = (fit_cost(algorithm, DataShape.of(part)) for part in (ratings, sample))
    scale = len(ratings) / len(sample)
    if all_work is not None and work is not None and work.operations:
        scale = all_work.operations / work.operations
    return TrialTimes(
        fit=(end - begin) * max(scale, 1.0),
        score_user=score * len(ratings.items) / len(sample.items),
    )


def _sample(ratings: Ratings) -> Ratings:
    """Return the ratings of some users, and of some of their items."""
    sample = ratings.take(_some_of(ratings.user, TRIAL_USERS))
    return compacted(sample.take(_some_of(sample.item, TRIAL_ITEMS)))


def _some_of(ids: np.ndarray[Any, Any], count: int) -> Mask:
    """Mark the rows of at most so many ids, evenly spread over those that occur."""
    distinct = np.unique(ids)  # ids may belong to users or items without ratings
    picked = np.linspace(0, distinct.size - 1, min(count, distinct.size)).astype(np.int64)
    return np.isin(ids, distinct[picked])


# Counts by algorithm


def _nothing(_: Algorithm, __: DataShape) -> FitCost:
    return FitCost(operations=0.0, bytes=0.0)


def _one_pass(_: Algorithm, shape: DataShape) -> FitCost:
    return FitCost(operations=shape.ratings, bytes=NUMBER * (shape.items + shape.ratings))


def _neighbours(k: int | None, rows: int, pairs: float, ratings: int) -> FitCost:
    """Every pair of rows that meets is multiplied; the k most similar are kept."""
    met = min(float(rows), pairs / max(rows, 1))
    part = ENTRY * rows * (met if k is None else min(float(k), met))
    return FitCost(operations=pairs, bytes=2 * part + 3 * ENTRY * ratings, largest_part=part)


def _user_knn(algorithm: Any, shape: DataShape) -> FitCost:
    if algorithm.k is None:  # similarities are computed when they are needed
        return FitCost(operations=shape.ratings, bytes=5 * ENTRY * shape.ratings)
    return _neighbours(algorithm.k, shape.users, shape.item_pairs, shape.ratings)


def _item_knn(algorithm: Any, shape: DataShape) -> FitCost:
    return _neighbours(algorithm.k, shape.items, shape.user_pairs, shape.ratings)


def _puresvd(algorithm: Any, shape: DataShape) -> FitCost:
    """Block Lanczos: products of the ratings with a block, and a basis kept orthogonal."""
    factors = min(algorithm.factors, shape.items)
    width = min(factors + 8, shape.items)
    basis = min(SVD_STEPS * width, max(3 * width, min(10 * width, SVD_BASIS // shape.items)))
    products = 4 * SVD_STEPS * width * shape.ratings
    orthogonal = 4 * SVD_STEPS * shape.items * width * (basis + width)
    fit_bytes = NUMBER * (shape.items * 2 * basis + shape.users * width) + ENTRY * shape.ratings
    return FitCost(
        operations=products + DENSE * orthogonal,
        bytes=NUMBER * factors * (shape.users + shape.items) + fit_bytes,
        largest_part=NUMBER * max(shape.items * basis, shape.users * width),
    )


def _ease(_: Algorithm, shape: DataShape) -> FitCost:
    """The Gram matrix of the items and its inverse."""
    square = float(shape.items) ** 2
    return FitCost(
        operations=shape.user_pairs / 2 + DENSE * square * shape.items,
        bytes=1.5 * NUMBER * square + ENTRY * shape.ratings,
        largest_part=NUMBER * square,
    )


def _slim(_: Algorithm, shape: DataShape) -> FitCost:
    """The Gram matrix of the items, and coordinate descent for each item."""
    square = float(shape.items) ** 2
    weights = shape.items * min(SLIM_WEIGHTS, shape.items)
    return FitCost(
        operations=shape.user_pairs / 2 + DESCENT_STEPS * square,
        bytes=NUMBER * square + ENTRY * (weights + shape.ratings),
        largest_part=NUMBER * square,
    )


def _factors(shape: DataShape, factors: int, number: int) -> tuple[float, float]:
    """Return the bytes of a vector per user and item, and of the larger of the two arrays."""
    row = number * factors
    return row * (shape.users + shape.items), row * max(shape.users, shape.items)


def _wrmf(algorithm: Any, shape: DataShape) -> FitCost:
    """A linear system per user and item, in every iteration."""
    factors, rows = algorithm.factors, shape.users + shape.items
    if algorithm.solver == "exact":
        products = 2 * shape.ratings * factors**2 + rows * (factors**3 / 3 + 2 * factors**2)
    else:
        products = 4 * (8 * shape.ratings * factors + 2 * rows * factors**2)
    model, part = _factors(shape, factors, NUMBER)
    return FitCost(
        operations=DENSE * algorithm.iterations * products,
        bytes=2 * model + 2 * (ENTRY + NUMBER) * shape.ratings,
        largest_part=part,
    )


def _bpr(algorithm: Any, shape: DataShape) -> FitCost:
    """A step over three vectors per draw."""
    model, part = _factors(shape, algorithm.factors, NUMBER // 2)
    steps = algorithm.epochs * shape.ratings
    return FitCost(operations=steps * algorithm.factors, bytes=3 * model, largest_part=part)


def _topics(algorithm: Any, shape: DataShape) -> FitCost:
    """Every rating is shared out among the topics, by user and by item."""
    model, part = _factors(shape, algorithm.topics, NUMBER)
    return FitCost(
        operations=algorithm.iterations * shape.ratings * algorithm.topics,
        bytes=3 * model + 2 * ENTRY * shape.ratings,
        largest_part=part,
    )


COUNTS: dict[str, Callable[[Any, DataShape], FitCost]] = {
    "random": _nothing,
    "popularity": _one_pass,
    "positive-popularity": _one_pass,
    "average-rating": _one_pass,
    "smoothed-average": _one_pass,
    "optimal-precision": _one_pass,
    "optimal-anti-precision": _one_pass,
    "user-knn": _user_knn,
    "nncosngbr-ub": _user_knn,
    "item-knn": _item_knn,
    "nncosngbr-ib": _item_knn,
    "puresvd": _puresvd,
    "ease": _ease,
    "slim": _slim,
    "wrmf": _wrmf,
    "bprmf": _bpr,
    "plsa": _topics,
}
"""By name: what a fit takes. Others are timed by a trial."""
