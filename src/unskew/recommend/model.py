"""What every recommender shares: an algorithm is frozen settings, fitting it gives a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
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
    """A recommender: frozen settings, and the model that they give on training ratings.

    A recommender of your own is a subclass with one method, `learn`. Its settings are the fields of
    a frozen dataclass. See the documentation page "Extending".

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import unskew as us
    >>> @dataclass(frozen=True)
    ... class Newest(us.recommend.Algorithm):
    ...     weight: float = 1.0
    ...
    ...     def learn(self, train, rng):
    ...         return self.weight * np.arange(len(train.items))
    >>> train = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 9]})
    >>> Newest().fit(train).score(np.array([0], np.int32))
    array([[0., 1., 2.]])
    """

    name: ClassVar[str]
    """Its name on the command line and on cards; the name of the class unless stated."""
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
        from unskew.recommend.adapt import as_model

        if not len(train):
            raise DataError(f"{self.name}: there are no training ratings")
        source = rng
        if not isinstance(source, np.random.Generator):
            source = generator(as_count("rng", source, 0), "fit", self.draw_name_of())
        with one_blas_thread():
            return as_model(self.learn(train, source), train)

    @abstractmethod
    def learn(self, train: Ratings, rng: np.random.Generator) -> Any:
        """Return what scores users and items: a `Model`, or anything else that `us.rank` takes.

        Parameters
        ----------
        train
            Training ratings; never empty.
        rng
            The generator from which everything random must be drawn.
        """
