"""Systems of the self-test: equal ones, which chance alone tells apart, and rating predictors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unskew.data.ratings import Ratings
from unskew.recommend.model import Algorithm, Model
from unskew.recommend.sgd import BiasedMF
from unskew.recommend.simple import Popularity, Random, SmoothedAverage
from unskew.settings import count, declare, share


@dataclass(frozen=True)
class RandomOrder(Algorithm):
    """A random order for every user; each stream is another one.

    Examples
    --------
    >>> from reliability.systems import RandomOrder
    >>> RandomOrder(stream=2).draw_key
    {'algorithm': 'random-order', 'stream': 2}
    """

    stream: int = count(0, "Number of the random order.", least=0)

    name: ClassVar[str] = "random-order"
    draw_name: ClassVar[str] = "random-order"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Any:
        """Return the model of `Random`: the stream is part of what the generator is keyed by."""
        return Random().learn(train, rng)


@dataclass(frozen=True)
class PartTrained(Algorithm):
    """Another algorithm, trained on a random part of the training ratings.

    Two streams learn from parts that chance alone tells apart: neither is better by construction.
    """

    algorithm: Algorithm = declare(Random(), "The algorithm to train.")
    stream: int = count(0, "Number of the random part.", least=0)
    part: float = share(0.5, "The share of ratings that it is trained on.", one=True)

    name: ClassVar[str] = "part-trained"
    draw_name: ClassVar[str] = "part-trained"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        """Train on ratings that are kept by coins."""
        kept = train.take(rng.random(len(train)) < self.part)
        return self.algorithm.fit(kept if len(kept) else train, rng)


RATING_PREDICTORS: Mapping[str, Algorithm] = {
    "popularity": Popularity(),
    "smoothed-average": SmoothedAverage(),
    "biased-mf": BiasedMF(factors=10),
}
"""What is popular, and systems that order items by a predicted rating."""
