"""Whether an item is listed sooner when it is presented sooner."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations as orders

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.rng import generator
from unskew.errors import DataError
from unskew.stats.distributions import student_t_quantile
from unskew.stats.list_similarity import PlacedLists

_FEW = 5
"""Shuffles of which all orders are numbered."""


@dataclass(frozen=True)
class PositionEffect:
    """How the listed place of an item follows the place at which it was presented."""

    slope: float
    """Places later in the list per place presented later: 0 = none, 1 = the order is copied."""
    low: float | None
    high: float | None
    """Its interval over users."""
    p: float
    """Of the permutation test: presented orders of a user are exchanged between its lists."""
    users: int
    """Whose presented orders differ between shuffles."""
    permutations: int


def position_effect(
    listed: PlacedLists, presented: PlacedLists, confidence: float, permutations: int, seed: int
) -> PositionEffect:
    """Return the position effect, each item compared with itself in the other shuffles.

    Of each user and candidate, presented place x and listed place y are taken about their means
    over shuffles, so that it does not matter which items are good. The slope is the sum of x y by
    the sum of x² over all users. A candidate that a list lacks stands at the mean of the places
    that remain.
    """
    products, squares = _products(listed, presented)
    informative = squares > 0
    if not informative.any():
        raise DataError(
            "the presented orders of no user differ between shuffles: nothing can be learned "
            "about position"
        )
    products, squares = products[informative], squares[informative]
    own = np.trace(products, axis1=1, axis2=2)
    slope = float(own.sum() / squares.sum())
    users = squares.size
    low = high = None
    if users > 1:
        rest = own - slope * squares
        error = math.sqrt(users / (users - 1) * float((rest**2).sum())) / float(squares.sum())
        half = student_t_quantile((1 + confidence) / 2, users - 1) * error
        low, high = slope - half, slope + half
    p = _permutation_p(products, float(own.sum()), permutations, seed)
    return PositionEffect(slope, low, high, p, users, permutations)


def _products(listed: PlacedLists, presented: PlacedLists) -> tuple[F64, F64]:
    """Return of each user: presented x listed shuffles, the sum of products; and of squares."""
    users, shuffles = len(presented.users), len(presented.key)
    candidates = presented.key[0]
    owner = presented.user_of(0)
    x, y = np.empty((shuffles, candidates.size)), np.empty((shuffles, candidates.size))
    count = np.bincount(owner, minlength=users)
    for shuffle in range(shuffles):
        x[shuffle] = presented.place[shuffle]
        at = np.searchsorted(listed.key[shuffle], candidates)
        at[at == listed.key[shuffle].size] = 0
        there = listed.key[shuffle][at] == candidates
        depth = listed.depth[shuffle]
        rest = (depth + 1 + np.maximum(count, depth)) / 2
        y[shuffle] = np.where(there, listed.place[shuffle][at], rest[owner])
    x -= x.mean(axis=0)
    y -= y.mean(axis=0)
    products = np.empty((users, shuffles, shuffles))
    for one in range(shuffles):
        for other in range(shuffles):
            products[:, one, other] = np.bincount(owner, x[one] * y[other], users)
    squares = np.bincount(owner, (x**2).sum(axis=0), users)
    return products, squares.astype(np.float64)


def _permutation_p(products: F64, observed: float, permutations: int, seed: int) -> float:
    """Return the share of exchanges of presented orders within users that are as extreme.

    Without an effect of position the lists of a user do not know which order they came from.
    """
    users, shuffles = products.shape[:2]
    rng = generator(seed, "presented orders")
    few = shuffles <= _FEW
    if few:
        every = np.array(list(orders(range(shuffles))))
        sums = products[:, np.arange(shuffles), every].sum(axis=2)  # users x orders
    extreme, limit = 0, abs(observed) * (1 - 1e-12)
    for _ in range(permutations):
        if few:
            total = sums[np.arange(users), rng.integers(sums.shape[1], size=users)].sum()
        else:
            order = np.argsort(rng.random((users, shuffles)), axis=1)
            total = np.take_along_axis(products, order[:, :, None], axis=2).sum()
        extreme += abs(float(total)) >= limit
    return (extreme + 1) / (permutations + 1)


def check_presented(listed: PlacedLists, presented: PlacedLists) -> I64:
    """Return how many listed items were not presented, by shuffle; refuse other candidates."""
    for key in presented.key[1:]:
        if key.size != presented.key[0].size or not np.array_equal(key, presented.key[0]):
            raise DataError(
                "the presented orders must hold the same candidates of each user in all shuffles"
            )
    return np.array([int((~np.isin(key, presented.key[0])).sum()) for key in listed.key])
