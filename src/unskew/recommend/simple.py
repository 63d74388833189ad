"""Recommenders that look at no user: chance, counts and averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unskew.data.ratings import Ratings, frozen
from unskew.recommend.model import Algorithm, Model
from unskew.rng import key_of

I32 = NDArray[np.int32]
F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SameForAll:
    """One score per item, the same for every user."""

    item_score: F64

    def score(self, users: I32) -> F64:
        """Return the items' scores once per user."""
        return np.tile(self.item_score, (users.size, 1))


@dataclass(frozen=True, eq=False)
class Chance:
    """A random score for every user and item, the same whenever it is asked for."""

    seed: int
    items: int

    def score(self, users: I32) -> F64:
        """Draw the scores."""
        from unskew import _rng

        tile = np.empty((users.size, self.items))
        _rng.uniform_tile(np.uint64(key_of(self.seed, "random")), frozen(users), tile)
        return tile


@dataclass(frozen=True)
class Random(Algorithm):
    """A random order for every user: what a system without any knowledge scores."""

    name: ClassVar[str] = "random"

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:
        return Chance(int(rng.integers(1 << 62)), len(train.items))


@dataclass(frozen=True)
class Popularity(Algorithm):
    """The most rated items first: the number of training ratings, whatever their value.

    Reference: bellogin2017 section 3, valcarce2018 section 4.
    """

    name: ClassVar[str] = "popularity"

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:  # noqa: ARG002
        counts = np.bincount(train.item, minlength=len(train.items))
        return SameForAll(frozen(counts.astype(np.float64)))
