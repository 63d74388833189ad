"""Systems of the self-test: equal ones, rating predictors, one that launches new items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unskew.arrays import frozen
from unskew.data.ratings import Ratings
from unskew.recommend.model import Algorithm, Model, SameForAll
from unskew.recommend.neighbours import UserKNN
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


@dataclass(frozen=True)
class Launch(Algorithm):
    """A few items with the best average, and then those with the fewest ratings.

    Examples
    --------
    Item 9 is the best known one, item 8 has the fewest ratings of the others.

    >>> import unskew as us
    >>> from reliability.systems import Launch
    >>> train = us.read_ratings(
    ...     {"user": [1, 2, 1, 1, 2], "item": [7, 7, 8, 9, 9], "rating": [1, 2, 2, 5, 5]}
    ... )
    >>> score = Launch(good=1).fit(train).item_score
    >>> [train.items.raw([item])[0] for item in (-score).argsort()]
    [9, 8, 7]
    """

    good: int = count(4, "How many items with a good average come first.", least=0)

    name: ClassVar[str] = "launch"
    draw_name: ClassVar[str] = "launch"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        """Count ratings, and put the items with the best averages before the others."""
        number = np.bincount(train.item, minlength=len(train.items))
        # Items are ranked from the fewest ratings on; chance decides among equal ones.
        score = 1 / (number + 1.0 + 0.1 * rng.random(number.size))
        average = SmoothedAverage().fit(train, rng).item_score
        best = np.argsort(-average, kind="stable")[: self.good]
        score[best] = 1 + average[best] / 5
        return SameForAll(frozen(score))


LAUNCH: Mapping[str, Algorithm] = {
    "production": Popularity(),
    "candidate": Launch(),
    "average": SmoothedAverage(),
    "user-knn": UserKNN(),
}
"""A candidate that launches new items, against production and two usual systems."""

RATING_PREDICTORS: Mapping[str, Algorithm] = {
    "popularity": Popularity(),
    "smoothed-average": SmoothedAverage(),
    "biased-mf": BiasedMF(factors=10),
}
"""What is popular, and systems that order items by a predicted rating."""
