"""Recommenders that look at no user: chance, counts and averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I32, Mask, Tile, frozen
from unskew.data.ratings import Ratings
from unskew.data.read.tables import column_hint
from unskew.engine.rng import key_of
from unskew.errors import DataError, SettingError
from unskew.recommend.model import Algorithm, Axes, Model, SameForAll
from unskew.recommend.neighbours import UserKNN
from unskew.settings import choice, declare, finite, flag, number

DAY = 86_400_000_000
"""Microseconds of a day."""
OLDER = 1e-9
"""What an older rating counts beside recent ones."""


@dataclass(frozen=True, eq=False)
class Chance:
    """A random score for every user and item, the same whenever it is asked for."""

    seed: int
    items: int
    axes: ClassVar[Axes] = {"items": ("items",)}

    def score(self, users: I32) -> F64:
        """Draw the scores."""
        from unskew.engine import rng as rng_kernels

        tile = np.empty((users.size, self.items))
        rng_kernels.uniform_tile(np.uint64(key_of(self.seed, "random")), frozen(users), tile)
        return tile


@dataclass(frozen=True)
class Random(Algorithm):
    """A random order for every user: what a system without any knowledge scores.

    Examples
    --------
    The same seed gives the same order.

    >>> import unskew as us
    >>> shop = us.world("shop", users=40, items=12, density=0.3, seed=3).ratings
    >>> one, again = (us.recommend.Random().fit(shop, rng=7).score(shop.user[:1]) for _ in "ab")
    >>> bool((one == again).all())
    True
    """

    name: ClassVar[str] = "random"
    draw_name: ClassVar[str] = "random"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        return Chance(int(rng.integers(1 << 62)), len(train.items))


@dataclass(frozen=True)
class Popularity(Algorithm):
    """The most rated items first: the number of training ratings, whatever their value.

    References
    ----------
    bellogin2017 section 3, valcarce2018 section 4.

    Examples
    --------
    Item 7 comes first although nobody who rated it liked it.

    >>> import unskew as us
    >>> train = us.read_ratings(
    ...     {"user": [1, 2, 3, 1], "item": [7, 7, 7, 8], "rating": [1, 2, 2, 5]}
    ... )
    >>> us.recommend.Popularity().fit(train).item_score
    array([3., 1.])
    """

    name: ClassVar[str] = "popularity"
    draw_name: ClassVar[str] = "popularity"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        counts = np.bincount(train.item, minlength=len(train.items))
        return SameForAll(frozen(counts.astype(np.float64)))


@dataclass(frozen=True)
class RecentPopularity(Algorithm):
    """The most rated items of the last days of training: what is popular now, not what ever was.

    The number of training ratings within `days` before the last training rating, whatever their
    value. Items with as many are ordered by all their training ratings, which count 10^-9 each.

    References
    ----------
    Ji, Sun, Zhang and Li, A re-visit of the popularity baseline in recommender systems, SIGIR 2020
    (RecentPop).

    Examples
    --------
    Item 7 has more ratings, item 8 the only recent one.

    >>> import unskew as us
    >>> days = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-06-01"]
    >>> train = us.read_ratings({"user": [1, 2, 3, 1], "item": [7, 7, 7, 8], "time": days})
    >>> us.recommend.RecentPopularity(days=30).fit(train).item_score.round(3)
    array([0., 1.])
    """

    days: float = number(30.0, "How many days before the end of training count.", above=0.0)

    name: ClassVar[str] = "recent-popularity"
    draw_name: ClassVar[str] = "recent-popularity"
    needs_time: ClassVar[bool] = True

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        if train.time is None:
            raise DataError(
                f"{self.name} needs time stamps, and the ratings have none; name their column "
                "with ",
                column_hint("time"),
            )
        first = int(train.time.max()) - round(self.days * DAY)
        recent = _per_item(train, train.time > first)
        return SameForAll(frozen(recent + OLDER * _count(train)))


@dataclass(frozen=True)
class PositivePopularity(Algorithm):
    """The most liked items first: the number of training ratings of at least `liked`.

    References
    ----------
    carraro2020 section 5 (PosPop), castells2018 section 7.

    Examples
    --------
    Item 7 has more ratings, but only item 8 is liked.

    >>> import unskew as us
    >>> train = us.read_ratings(
    ...     {"user": [1, 2, 3, 1], "item": [7, 7, 7, 8], "rating": [1, 2, 2, 5]}
    ... )
    >>> us.recommend.PositivePopularity(liked=4).fit(train).item_score
    array([0., 1.])
    """

    liked: float = finite(4.0, "The smallest rating that is liked.")

    name: ClassVar[str] = "positive-popularity"
    draw_name: ClassVar[str] = "positive-popularity"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        return SameForAll(frozen(_per_item(train, train.value >= self.liked)))


@dataclass(frozen=True)
class AverageRating(Algorithm):
    """The mean training rating of each item; an item without any cannot be scored.

    References
    ----------
    carraro2020 section 5 (AvgRating).

    Examples
    --------
    A single rating of 5 is enough to come first; `SmoothedAverage` corrects that.

    >>> import unskew as us
    >>> user, item = [1, 2, 3, 4, 1, 2, 3], [7, 7, 7, 7, 8, 9, 9]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 5, 4, 5, 5, 1, 1]})
    >>> us.recommend.AverageRating().fit(train).item_score
    array([4.75, 5.  , 1.  ])
    """

    name: ClassVar[str] = "average-rating"
    draw_name: ClassVar[str] = "average-rating"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        return SameForAll(frozen(_share(_per_item(train, train.value), _count(train))))


VALUES = ("liked", "rating", "levels")


@dataclass(frozen=True)
class SmoothedAverage(Algorithm):
    r"""The mean value of each item, shrunk towards the mean of all by Dirichlet smoothing.

    :math:`(\sum_u v_{ui} + \mu\,\bar v) / (n_i + \mu)`, with :math:`\bar v` the mean of all
    training values. An item without ratings has the mean of all.

    References
    ----------
    castells2018 section 7 (`mu="mean"`, `of="liked"`: the paper's text has no μ, its
    code has this one); mena2021 section 9 (`mu=1`, `of="levels"`).

    Examples
    --------
    Item 7, with four high ratings, comes before item 8, with one.

    >>> import unskew as us
    >>> user, item = [1, 2, 3, 4, 1, 2, 3], [7, 7, 7, 7, 8, 9, 9]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 5, 4, 5, 5, 1, 1]})
    >>> us.recommend.SmoothedAverage(mu=1, of="rating").fit(train).item_score.round(2)
    array([4.54, 4.36, 1.9 ])
    """

    mu: float | str = number(
        "mean",
        """μ: how many average ratings are added to each item; `mean` = training ratings per item. A
        small one, such as mena2021's 1, puts items with one or two high ratings on top.""",
        words=("mean",),
    )
    of: str = choice(
        "liked",
        """What is averaged: 1 where a rating is `liked` and 0 elsewhere (castells2018), the
        `rating` itself, or `levels`: 0 below `liked`, then 1, 2, … (mena2021).""",
        VALUES,
    )
    liked: float = finite(4.0, "The smallest rating that is liked.")

    name: ClassVar[str] = "smoothed-average"
    draw_name: ClassVar[str] = "smoothed-average"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        value = train.value
        if self.of == "liked":
            value = (value >= self.liked).astype(np.float64)
        elif self.of == "levels":
            value = np.maximum(value - self.liked + 1, 0.0)
        mu = len(train) / len(train.items) if isinstance(self.mu, str) else float(self.mu)
        top = _per_item(train, value) + mu * float(value.mean())
        return SameForAll(frozen(_share(top, _count(train) + mu)))


@dataclass(frozen=True)
class OptimalPrecision(Algorithm):
    r"""The order that maximises observed precision among orders that are the same for all users.

    :math:`\hat\varphi_P(i) = rel_i / (|U| - n_i)`: liked training ratings of the item over the
    training users who have not rated it. An item that everyone rated cannot be recommended.

    References
    ----------
    mena2021 section 5, Eq. 8, as in the authors' code.

    Examples
    --------
    Of four users, three rated item 7 and two of them liked it: 2 / (4 - 3). All rated item 9.

    >>> import unskew as us
    >>> user, item = [1, 2, 3, 1, 4, 1, 2, 3, 4], [7, 7, 7, 8, 8, 9, 9, 9, 9]
    >>> rating = [5, 4, 1, 5, 1, 5, 5, 5, 5]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": rating})
    >>> us.recommend.OptimalPrecision(liked=4).fit(train).item_score
    array([2. , 0.5, nan])
    """

    liked: float = finite(4.0, "The smallest rating that is liked.")

    name: ClassVar[str] = "optimal-precision"
    draw_name: ClassVar[str] = "optimal-precision"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        liked = _per_item(train, train.value >= self.liked)
        return SameForAll(frozen(_share(liked, _unrated(train))))


@dataclass(frozen=True)
class OptimalAntiPrecision(Algorithm):
    r"""The order that minimises observed anti-precision among orders that are the same for all.

    :math:`\hat\varphi_{\bar P}(i) = -nonrel_i / (|U| - n_i)`: disliked training ratings of the
    item, negative, over the training users who have not rated it.

    References
    ----------
    mena2021 section 5, Eq. 10, as in the authors' code.

    Examples
    --------
    Of four users, three rated item 7 and one of them disliked it: -1 / (4 - 3). All rated item 9.

    >>> import unskew as us
    >>> user, item = [1, 2, 3, 1, 4, 1, 2, 3, 4], [7, 7, 7, 8, 8, 9, 9, 9, 9]
    >>> rating = [5, 4, 1, 5, 1, 5, 5, 5, 5]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": rating})
    >>> us.recommend.OptimalAntiPrecision(liked=4).fit(train).item_score
    array([-1. , -0.5,  nan])
    """

    liked: float = finite(4.0, "The smallest rating that is liked.")

    name: ClassVar[str] = "optimal-anti-precision"
    draw_name: ClassVar[str] = "optimal-anti-precision"

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        disliked = _per_item(train, train.value < self.liked)
        return SameForAll(frozen(_share(-disliked, _unrated(train))))


@dataclass(frozen=True)
class OptimalTrue(Algorithm):
    r"""An oracle: the order by how many users really like an item, from unbiased judgments.

    Restricted: :math:`rel_i / n_i` over the judgments given, 0 for an item without any.
    Unrestricted: :math:`rel_i / (|U| - n^{train}_i)`.

    References
    ----------
    mena2021 section 5, Eq. 6, as in the authors' code.

    Examples
    --------
    In a simulation the ground truth is known, and the best item need not be a popular one.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3)
    >>> oracle = us.recommend.OptimalTrue(truth=shop.truth()).fit(shop.ratings)
    >>> popular = us.recommend.Popularity().fit(shop.ratings)
    >>> [int(one.item_score.argmax()) for one in (oracle, popular)]  # best, and most rated
    [18, 4]
    """

    truth: Ratings | None = declare(
        None,
        """Judgments of randomly chosen items (missing at random), under the ids of the training
        ratings.""",
        repr=False,
    )
    liked: float = finite(4.0, "The smallest rating that is liked.")
    restricted: bool = flag(True, "Whether to order by the first or the second of these rankings.")

    name: ClassVar[str] = "optimal-true"
    draw_name: ClassVar[str] = "optimal-true"

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values, the truth by its fingerprint."""
        truth = None if self.truth is None else self.truth.fingerprint
        return {**super().describe(), "truth": truth}

    def draw_value(self, setting: str, value: Any) -> Any:
        """Return a setting as it stands in the key, the truth by its fingerprint."""
        stated = super().draw_value(setting, value)
        return stated["fingerprint"] if isinstance(value, Ratings) else stated

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        if self.truth is None:
            raise SettingError("optimal-true is an oracle: give it truth=…, unbiased judgments")
        if not self.truth.items.equals(train.items):
            raise DataError("the truth must be under the ids of the training ratings")
        liked = _per_item(self.truth, self.truth.value >= self.liked)
        bottom = _count(self.truth) if self.restricted else _unrated(train)
        return SameForAll(frozen(np.where(bottom > 0, _share(liked, bottom), 0.0)))


def _per_item(train: Ratings, value: NDArray[Any]) -> F64:
    """Sum a value per rating over each item."""
    total: F64 = np.bincount(train.item, value, len(train.items)).astype(np.float64)
    return total


def _count(train: Ratings) -> F64:
    """Count the ratings of each item."""
    return np.bincount(train.item, minlength=len(train.items)).astype(np.float64)


def _unrated(train: Ratings) -> F64:
    """Count the training users who have not rated each item."""
    users = float(np.count_nonzero(np.diff(train.start)))
    return users - _count(train)


def _share(top: F64, bottom: F64) -> F64:
    """Divide; NaN, that is no score, where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


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
