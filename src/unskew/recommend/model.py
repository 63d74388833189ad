"""What every recommender shares: an algorithm is settings, fitting it gives a model that scores.

`as_model` makes a model of any other system: objects with a score method, functions, arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeGuard, runtime_checkable

import numpy as np

from unskew.arrays import F64, I32, Mask, Tile, frozen
from unskew.checks import as_count
from unskew.data.ratings import Ratings
from unskew.engine.rng import DrawKeyed, generator
from unskew.engine.threads import one_blas_thread
from unskew.errors import DataError, SettingError

Axes = Mapping[str, tuple[str, ...]]
"""What the axes of a model's arrays are, by the name of the array: see `model_checks`."""
Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]
"""Settings worth trying: values by setting, all combinations of which count; or a list, the most
useful first, of settings that are changed together."""


@runtime_checkable
class Model(Protocol):
    """Anything that scores users against all items.

    Examples
    --------
    A model of your own is any object with this method.

    >>> import numpy as np
    >>> import unskew as us
    >>> class Newest:
    ...     def score(self, users):
    ...         return np.tile(np.arange(3.0), (len(users), 1))
    >>> isinstance(Newest(), us.recommend.Model)
    True
    >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [7, 8, 7, 9]})
    >>> (split,) = us.splits.LeaveOut(1).split(data, seed=1)
    >>> run = us.rank(Newest(), us.targets.AllItems().lists(split, liked=1), depth=1)
    >>> run.to_polars().select("user", "item").rows()
    [(1, 9), (2, 9)]
    """

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
    tuning: ClassVar[Grid] = ()
    """The settings that `experiment.tune_systems` tries, beside those that an object has; empty =
    there is nothing to tune. It is no setting itself, and changes no seed and no card."""
    needs_time: ClassVar[bool] = False
    """Whether it can be trained only on ratings with time stamps."""

    def fit(self, train: Ratings, rng: int | np.random.Generator = 0) -> Model:
        """Learn from training ratings.

        Parameters
        ----------
        train
            Never changed. Users and items keep their numbers.
        rng
            A seed, or the generator from which everything random is drawn: same seed, same bits,
            whatever the number of threads.

        Examples
        --------
        >>> import unskew as us
        >>> train = us.read_ratings({"user": [1, 1, 2, 3], "item": [7, 8, 7, 7]})
        >>> us.recommend.Popularity().fit(train).score(train.user[:1])
        array([[3., 1.]])
        """
        source = self._source(train, rng)
        with one_blas_thread():
            return as_model(self.learn(train, source), train)

    @classmethod
    def fit_several(
        cls,
        settings: Sequence[Self],
        train: Ratings,
        rngs: Sequence[int | np.random.Generator],
    ) -> Iterator[Model]:
        """Learn the models of several settings.

        What they share is worked out once. Models come one after the other, so that only one need
        be held. Each is that of `fit`, to rounding errors. A setting that cannot be trained raises
        its error when its turn comes, and the next call goes on with the next setting.

        Parameters
        ----------
        settings
            Algorithms of this class.
        train
            Never changed.
        rngs
            A seed or a generator for each setting, as in `fit`.

        Examples
        --------
        >>> import unskew as us
        >>> train = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 9, 9]})
        >>> few, more = us.recommend.PureSVD(factors=1), us.recommend.PureSVD(factors=2)
        >>> models = us.recommend.PureSVD.fit_several([few, more], train, [0, 0])
        >>> [model.item_factors.shape for model in models]
        [(3, 1), (3, 2)]
        """
        if len(settings) != len(rngs):
            raise SettingError(f"rngs: {len(rngs)} were given for {len(settings)} settings")
        return _Fits(cls, tuple(settings), train, tuple(rngs))

    def _source(self, train: Ratings, rng: int | np.random.Generator) -> np.random.Generator:
        """Return the generator to draw from; refuse training ratings that there are none of."""
        if not len(train):
            raise DataError(f"{self.name}: there are no training ratings")
        if isinstance(rng, np.random.Generator):
            return rng
        return generator(as_count("rng", rng, 0), "fit", self.draw_name_of())

    @classmethod
    def share_work(cls, settings: Sequence[Self], train: Ratings) -> Any:  # noqa: ARG003
        """Return the work that settings share.

        `learn_shared` takes it.

        Parameters
        ----------
        settings
            Algorithms of this class.
        train
            Training ratings; never empty.
        """
        return None

    def learn_shared(self, shared: Any, train: Ratings, rng: np.random.Generator) -> Any:
        """Learn with what `share_work` returned.

        The result is that of `learn`.

        Parameters
        ----------
        shared
            What settings have in common; it may be filled as it is needed.
        train, rng
            As in `learn`.
        """
        return self.learn(train, rng)

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import settings_card

        return settings_card(type(self).__name__, "settings of a recommender", self)

    @abstractmethod
    def learn(self, train: Ratings, rng: np.random.Generator) -> Any:
        """Return what scores users and items.

        That is a `Model`, or anything else that `us.rank` takes.

        Parameters
        ----------
        train
            Training ratings; never empty.
        rng
            The generator from which everything random must be drawn.
        """


class _Fits:
    """The models of several settings, each learned when it is asked for."""

    def __init__(
        self,
        kind: type[Algorithm],
        settings: tuple[Algorithm, ...],
        train: Ratings,
        rngs: tuple[int | np.random.Generator, ...],
    ) -> None:
        self.kind, self.settings, self.train = kind, settings, train
        self.left = iter(zip(settings, rngs, strict=True))
        self.shared: Any = None
        self.is_shared = len(settings) > 1 and _shares(kind)
        self.is_begun = False

    def __iter__(self) -> Iterator[Model]:
        return self

    def __next__(self) -> Model:
        algorithm, rng = next(self.left)
        if not self.is_shared:
            return algorithm.fit(self.train, rng)
        source = algorithm._source(self.train, rng)
        with one_blas_thread():
            if not self.is_begun:
                self.shared = self.kind.share_work(self.settings, self.train)
                self.is_begun = True
            return as_model(algorithm.learn_shared(self.shared, self.train, source), self.train)


def _shares(kind: type[Algorithm]) -> bool:
    """Tell whether a class shares work: not where a class below it learns in another way."""
    for base in kind.__mro__:
        if "learn_shared" in vars(base):
            return base is not Algorithm
        if "learn" in vars(base):
            return False
    return False


# What becomes a model


@dataclass(frozen=True, eq=False)
class SameForAll:
    """One score per item, the same for every user."""

    item_score: F64
    axes: ClassVar[Axes] = {"item_score": ("items",)}

    def score(self, users: I32) -> F64:
        """Return the items' scores once per user."""
        return np.tile(self.item_score, (users.size, 1))


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
    shape = [len(train.users), len(train.items)]
    if rows != shape:
        raise DataError(
            f"{type(thing).__name__} has factors of {rows[0]} users and {rows[1]} items, the "
            f"training ratings have {shape[0]} and {shape[1]}: fit it to train.to_csr()"
        )
    return ByFactors(frozen(factors[0]), frozen(factors[1]), np.diff(train.start) > 0)
