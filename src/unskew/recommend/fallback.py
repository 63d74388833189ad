"""`WithFallback`: a recommender for users it knows, and another one for those it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unskew.arrays import I32, Mask, Tile, frozen
from unskew.data.ratings import Ratings
from unskew.errors import SettingError
from unskew.recommend.model import Algorithm, Axes, Model
from unskew.recommend.neighbours import UserKNN
from unskew.recommend.simple import Popularity
from unskew.settings import declare


@dataclass(frozen=True, eq=False)
class ModelWithFallback:
    """The scores of one model for users with training ratings, of another for all others."""

    model: Model
    fallback: Model
    cold: Mask
    """Which users have no training rating."""
    axes: ClassVar[Axes] = {"cold": ("users",)}
    models: ClassVar[tuple[str, ...]] = ("model", "fallback")

    def score(self, users: I32) -> Tile:
        """Return the scores of whichever model is in charge of each user."""
        tile = self.model.score(users)
        rows = np.flatnonzero(self.cold[users])
        if not rows.size:
            return tile
        instead = self.fallback.score(frozen(users[rows]))
        mixed: Tile = tile.astype(np.result_type(tile, instead))
        mixed[rows] = instead
        return mixed


@dataclass(frozen=True)
class WithFallback(Algorithm):
    """A recommender, and another one for users without any training rating (cold users).

    Most recommenders cannot score cold users, who then count 0 in every mean. What a product shows
    them is part of the system that is judged: state it. Users with training ratings are scored by
    `of` alone, whatever it can or cannot score. A model that sees the history (`score_next`) is
    wrapped by its scores of users only.

    Examples
    --------
    >>> import unskew as us
    >>> system = us.recommend.WithFallback(us.recommend.PureSVD(factors=8))
    >>> plan = us.Plan(us.splits.Temporal(), algorithms=[system, us.recommend.Popularity()])
    >>> list(plan.systems)
    ['with-fallback of=(puresvd factors=8)', 'popularity']

    References
    ----------
    Wherever cold users are averaged, the audit of this library falls back to popularity too.
    """

    of: Algorithm = declare(UserKNN(), "The recommender for users with training ratings.")
    fallback: Algorithm = declare(
        Popularity(), "The recommender for users without: one that can score them."
    )

    name: ClassVar[str] = "with-fallback"
    draw_name: ClassVar[str] = "with-fallback"

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in ("of", "fallback"):
            if isinstance(getattr(self, setting), WithFallback):
                raise SettingError(f"with-fallback: {setting} cannot have a fallback itself")

    def learn(self, train: Ratings, rng: np.random.Generator) -> Any:
        cold = frozen(np.diff(train.start) == 0)
        return ModelWithFallback(self.of.fit(train, rng), self.fallback.fit(train, rng), cold)
