"""Any other system as a model: objects with a score method, functions, arrays of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

import numpy as np

from unskew.arrays import I32, Mask, Tile, frozen
from unskew.data.ratings import Ratings
from unskew.errors import DataError
from unskew.recommend.model import Algorithm, Axes, Model
from unskew.recommend.simple import SameForAll


@dataclass(frozen=True, eq=False)
class ByFunction:
    """A function of user numbers that returns a row of scores for each."""

    function: Callable[[I32], Tile]

    def score(self, users: I32) -> Tile:
        """Call the function."""
        return self.function(users)


@dataclass(frozen=True, eq=False)
class ByTable:
    """Scores of all users and items, a row per user."""

    table: Tile
    axes: ClassVar[Axes] = {"table": ("users", "items")}

    def score(self, users: I32) -> Tile:
        """Look the rows up; consecutive ones, as ranking asks for them, without a copy."""
        first, last = int(users[0]), int(users[-1]) + 1
        rows = slice(first, last) if last - first == users.size else users
        return self.table[rows]


@dataclass(frozen=True, eq=False)
class ByFactors:
    """Scores p_u·q_i of factors that another library learned."""

    user_factors: Tile
    item_factors: Tile
    known: Mask
    """Which users have training ratings: the factors of others mean nothing."""
    axes: ClassVar[Axes] = {
        "user_factors": ("users", "factors"),
        "item_factors": ("items", "factors"),
        "known": ("users",),
    }

    def score(self, users: I32) -> Tile:
        """Multiply the factors."""
        tile: Tile = self.user_factors[users] @ self.item_factors.T
        tile[~self.known[users]] = np.nan
        return tile


def can_score(thing: object) -> bool:
    """Tell whether `as_model` takes a thing, its size aside."""
    return (
        isinstance(thing, np.ndarray) or callable(thing) or _is_model(thing) or _has_factors(thing)
    )


def _is_model(thing: object) -> TypeGuard[Model]:
    return callable(getattr(thing, "score", None))  # a table may have a column `score`


def _has_factors(thing: object) -> bool:
    return hasattr(thing, "user_factors") and hasattr(thing, "item_factors")


def as_model(thing: object, train: Ratings) -> Model:
    """Return a model: the thing itself, or what makes it one.

    Parameters
    ----------
    thing
        A fitted model or any object with `score(users)`; a function of user numbers; an array
        with a score per item (the same for all users), or with a row per user; an object with
        `user_factors` and `item_factors`, such as a fitted model of `implicit`. Rows and columns
        are in the order of `train.users` and `train.items`; NaN = cannot score.
    train
        The ratings it was fitted to.
    """
    if isinstance(thing, Algorithm):
        raise DataError(f"{thing!r} is not fitted yet: give {type(thing).__name__}(…).fit(train)")
    if _is_model(thing):
        return thing
    if isinstance(thing, np.ndarray):
        users, items = len(train.users), len(train.items)
        if thing.shape == (items,):
            return SameForAll(frozen(thing.astype(np.float64)))
        if thing.shape == (users, items):
            return ByTable(thing)
        raise DataError(
            f"scores of shape {thing.shape} fit neither {items} items nor {users} users x {items} "
            f"items"
        )
    if _has_factors(thing):
        return _by_factors(thing, train)
    if callable(thing):
        return ByFunction(thing)
    raise DataError(
        f"cannot score with {type(thing).__name__}: give a fitted model, an object with a method "
        f"score(users), a function or an array"
    )


def _by_factors(thing: Any, train: Ratings) -> ByFactors:
    factors = [
        part.to_numpy() if hasattr(part, "to_numpy") else np.asarray(part)
        for part in (thing.user_factors, thing.item_factors)
    ]
    rows = [part.shape[0] for part in factors]
    wanted = [len(train.users), len(train.items)]
    if rows != wanted:
        raise DataError(
            f"{type(thing).__name__} has factors of {rows[0]} users and {rows[1]} items, the "
            f"training ratings have {wanted[0]} and {wanted[1]}: fit it to train.to_csr()"
        )
    return ByFactors(frozen(factors[0]), frozen(factors[1]), np.diff(train.start) > 0)
