"""What every recommender shares: an algorithm is frozen settings, fitting it gives a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from unskew.arrays import I32, Tile
from unskew.checks import as_count
from unskew.data.ratings import Ratings
from unskew.engine.rng import DrawKeyed, generator
from unskew.engine.threads import one_blas_thread
from unskew.errors import DataError

Axes = Mapping[str, tuple[str, ...]]
"""What the axes of a model's arrays are, by the name of the array: see `model_checks`."""


@runtime_checkable
class Model(Protocol):
    """Anything that scores users against all items."""

    def score(self, users: I32) -> Tile:
        """Return a new array with a row per user and a column per item; NaN = cannot score.

        Users and items are numbers of the training ratings' ids. A higher score ranks first.
        """


@dataclass(frozen=True)
class Algorithm(DrawKeyed, ABC):
    """A way to recommend: frozen settings, and the model that they give on training ratings."""

    name: ClassVar[str]
    """Its name on the command line and on cards."""
    draw_entry: ClassVar[str | None] = "algorithm"

    def fit(self, train: Ratings, rng: int | np.random.Generator = 0) -> Model:
        """Learn from training ratings.

        Parameters
        ----------
        train
            Never changed. Users and items keep their numbers.
        rng
            A seed, or the generator from which everything random is drawn: same seed, same bits,
            whatever the number of threads.
        """
        if not len(train):
            raise DataError(f"{self.name}: there are no training ratings")
        source = rng
        if not isinstance(source, np.random.Generator):
            source = generator(as_count("rng", source, 0), "fit", self.draw_name_of())
        with one_blas_thread():
            return self._fit(train, source)

    @abstractmethod
    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:
        """Learn from training ratings that are not empty."""

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values, for a card."""
        return {
            "algorithm": self.name,
            **{one.name: getattr(self, one.name) for one in fields(self)},
        }
