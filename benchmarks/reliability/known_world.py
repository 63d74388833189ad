"""`KnownWorld`: a population of users and fixed items, of which everything is known.

A world is a few matrices of chances. A data set drawn from it is some users of the population, one
coin per pair that says whether the pair is liked, and coins that say which pairs are rated. The
truth about any list is then a sum over the matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.auditing.statements.statement import CONDITIONS
from unskew.data.ratings import Ids, Ratings
from unskew.engine.rng import generator
from unskew.errors import DataError, SettingError
from unskew.recommend.model import Algorithm
from unskew.runs import Run
from unskew.targets.lists import TargetLists

LIKED = 4.0
"""The smallest liked rating of explicit data."""
LIKED_STARS = np.array([4.0, 5.0])
DISLIKED_STARS = np.array([1.0, 2.0, 3.0])
OWN = 0.4
"""What a user's own opinion weighs where the others' average stands beside an item."""
SHARED = 0.9
"""The share of pairs about which a household has one opinion and one rating."""
INDEPENDENT = "users-are-independent"
"""The condition that no user's ratings are another's: households break it."""
STAY = 0.05
"""How long a user stays from arrival, as a share of the whole span."""
# When worlds with time begin, and how long they last: 2020, three years, in microseconds.
_BEGIN = 1_577_836_800_000_000
_SPAN = 3 * 365 * 86_400_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownWorld:
    """A population of users and fixed items, of which everything is known.

    Examples
    --------
    >>> import numpy as np
    >>> from reliability.known_world import KnownWorld
    >>> like = np.full((400, 50), 0.3)
    >>> rated = np.full((400, 50), 0.2)
    >>> world = KnownWorld(
    ...     kind="example",
    ...     seed=1,
    ...     users=100,
    ...     like=like,
    ...     rated_if_liked=rated,
    ...     rated_if_disliked=rated,
    ... )
    >>> data = world.data(0)
    >>> len(data.ratings.users), len(data.ratings.items)
    (100, 50)
    """

    kind: str
    seed: int
    like: F64
    """[population, items]: the chance that a user likes an item, shown and asked honestly."""
    rated_if_liked: F64
    """[population, items]: the chance that the pair is rated, given that it is liked."""
    rated_if_disliked: F64
    """[population, items]: the same, given that it is not liked."""
    swayed: F64 | None = None
    """[population, items]: the chance that a rated pair that is not liked is recorded as liked,
    because it was displayed; None = 0."""
    crowd: F64 | None = None
    """[items]: the average star that stands beside an item. A user then records the whole star that
    is nearest to `OWN` of the user's own opinion and the others' average for the rest."""
    extreme: Mask | None = None
    """[population]: who records nothing but the lowest and the highest star."""
    household: int = 1
    """How many users make a household: they have one taste, and `SHARED` of their opinions and
    ratings in common, star by star."""
    broken: frozenset[str] = frozenset()
    """Which of `CONDITIONS`, or `INDEPENDENT`, do not hold here. The kind sets it, before anything
    is audited."""
    known: Mask | None = None
    """[population, items]: who knows an item before any recommendation; None = not stated."""
    users: int
    """Of one data set."""
    implicit: bool = False
    """Whether ratings are events without a value: whoever rates counts as one who likes."""
    arrival: F64 | None = None
    """[population]: when each user comes, from 0 to 1; ratings then have times."""
    released: F64 | None = None
    """[items]: when each item comes out, from 0 to 1; ratings then have times."""
    systems: Mapping[str, Algorithm] | None = None
    """What is to be audited, instead of the systems of the audit."""
    tune: bool = True
    """Whether the audit is to tune its systems."""

    def __post_init__(self) -> None:
        shape = self.like.shape
        for name in ("like", "rated_if_liked", "rated_if_disliked", "swayed"):
            matrix = getattr(self, name)
            if matrix is None:
                continue
            if matrix.shape != shape:
                raise SettingError(f"{name}: expected chances of shape {shape}, got {matrix.shape}")
            if not (matrix.min() >= 0 and matrix.max() <= 1):
                raise SettingError(f"{name}: chances must be numbers from 0 to 1")
            object.__setattr__(self, name, frozen(matrix))
        if self.known is not None and self.known.shape != shape:
            raise SettingError(f"known: expected {shape} pairs, got {self.known.shape}")
        conditions = [*CONDITIONS, INDEPENDENT]
        if unknown := self.broken.difference(conditions):
            raise SettingError(
                f"broken: unknown conditions {sorted(unknown)}; known ones: {', '.join(conditions)}"
            )
        by_user, by_item = ("arrival", "extreme"), ("released", "crowd")
        for name in (*by_user, *by_item):
            values, size = getattr(self, name), shape[name in by_item]
            if values is not None and values.shape != (size,):
                raise SettingError(f"{name}: expected {size} values, got {values.shape}")
        if self.crowd is not None and (self.extreme is not None or self.implicit):
            raise SettingError("crowd: it needs users who record any star")
        if self.household < 1 or self.users % self.household:
            raise SettingError(f"household: {self.users} users are no households of that size")

    @property
    def items(self) -> int:
        """How many items there are."""
        return int(self.like.shape[1])

    @cached_property
    def chance_rated(self) -> F64:
        """[population, items]: the chance that a pair is rated."""
        chance = self.like * (self.rated_if_liked - self.rated_if_disliked)
        chance += self.rated_if_disliked
        result: F64 = frozen(chance)
        return result

    @cached_property
    def chance_recorded_liked(self) -> F64:
        """[population, items]: the chance that a pair is rated, and recorded as liked."""
        if self.implicit:
            return self.chance_rated
        chance = self.like * self.rated_if_liked
        if self.crowd is not None:
            chance = chance * _recorded_liked(LIKED_STARS, self.crowd) + self.chance_inflated
        elif self.swayed is not None:
            chance += (1 - self.like) * self.rated_if_disliked * self.swayed
        result: F64 = frozen(chance)
        return result

    @cached_property
    def chance_inflated(self) -> F64:
        """[population, items]: the chance that a pair is rated, recorded as liked, and is not."""
        if self.crowd is None:
            return self.chance_recorded_liked - self.like * self.rated_if_liked
        swayed = 0.0 if self.swayed is None else self.swayed
        recorded = swayed * _recorded_liked(LIKED_STARS, self.crowd)
        recorded = recorded + (1 - swayed) * _recorded_liked(DISLIKED_STARS, self.crowd)
        return (1 - self.like) * self.rated_if_disliked * recorded

    def data(self, number: int) -> KnownData:
        """Draw a data set: number 0 is the audited one, others are fresh ones.

        The users of each are drawn from the population with replacement: the population is a
        distribution of users, and the users of two data sets are as independent as their coins.
        """
        rng = generator(self.seed, "self-test", self.kind, "data", number)
        families = self.users // self.household
        drawn: I32 = rng.integers(len(self.like), size=families).astype(np.int32)
        members = np.repeat(drawn, self.household)
        coins = _Coins(rng, (families, self.household, self.items))
        realised = coins.of_pairs() < self.like[members]
        chance = np.where(realised, self.rated_if_liked[members], self.rated_if_disliked[members])
        user, item = np.nonzero(coins.of_pairs() < chance)
        liked = realised[user, item]
        if self.swayed is not None:
            liked |= coins.of(user, item) < self.swayed[members[user], item]
        value = self._stars(liked, coins.of(user, item), members[user], item)
        time = self._times(members[user], item, rng)
        numbered = _numbered(user, item, None if self.implicit else value, time)
        return KnownData(
            world=self,
            number=number,
            members=frozen(members),
            realised=frozen(realised),
            ratings=numbered.ratings,
            user_row=numbered.rows,
            item_column=numbered.columns,
        )

    def _stars(self, liked: Mask, coin: F64, member: I32, item: I64) -> F64:
        """Return the stars that are recorded of pairs that look liked or not."""
        values = _values(liked, coin)
        if self.extreme is not None:
            values = np.where(self.extreme[member], np.where(liked, 5.0, 1.0), values)
        return values if self.crowd is None else _with_crowd(values, self.crowd[item])

    def _times(self, row: I32, item: I64, rng: np.random.Generator) -> I64 | None:
        """Return when each rating was given, None in a world without time."""
        if self.arrival is None and self.released is None:
            return None
        begin = np.zeros(row.size) if self.arrival is None else self.arrival[row]
        end = np.ones(row.size) if self.arrival is None else np.minimum(begin + STAY, 1.0)
        if self.released is not None:
            begin = np.maximum(begin, self.released[item])
        moment = begin + np.maximum(end - begin, 0.0) * rng.random(row.size)
        times: I64 = _BEGIN + (moment * _SPAN).astype(np.int64)
        return times


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownData:
    """A data set drawn from a known world, with the truth behind it."""

    world: KnownWorld
    number: int
    members: I32
    """The rows of the population that are this data set's users; one row may stand for several."""
    realised: Mask
    """[members, items]: whether each pair is truly liked; ratings show it unless swayed."""
    ratings: Ratings
    """Users and items without any rating are not among its ids, as in data that are read."""
    user_row: I32
    """For each user number of `ratings` the row of `members` and `realised`."""
    item_column: I32
    """For each item number of `ratings` the column of every matrix of the world."""

    @property
    def liked(self) -> float:
        """The smallest liked rating."""
        return 1.0 if self.world.implicit else LIKED

    @property
    def households(self) -> I32:
        """For each user number of `ratings` the number of the household."""
        result: I32 = self.user_row // np.int32(self.world.household)
        return result

    @cached_property
    def like(self) -> F64:
        """[users, items] by the ids of `ratings`: the true chance that a pair is liked."""
        return self.by_id(self.world.like)

    @cached_property
    def truly_liked(self) -> Mask:
        """[users, items] by the ids of `ratings`: whether a pair is truly liked."""
        result: Mask = frozen(self.realised[np.ix_(self.user_row, self.item_column)])
        return result

    def by_id(self, matrix: F64) -> F64:
        """Return a matrix [population, items] by the ids of `ratings`."""
        result: F64 = frozen(matrix[np.ix_(self.members[self.user_row], self.item_column)])
        return result

    def expected_hit(self, test: float) -> F64:
        """Return the chance that a pair outside the training part is a liked test rating.

        [users, items] by the ids of `ratings`, where each rating tests with probability `test`:
        p(rated, recorded as liked) test / (1 - (1 - test) p(rated)).
        """
        trained = (1 - test) * self.by_id(self.world.chance_rated)
        return test * self.by_id(self.world.chance_recorded_liked) / (1 - trained)

    def random_slice(self, pairs: int) -> Ratings:
        """Return ratings of distinct pairs shown at random, rated honestly by everyone shown.

        Over the ids of `ratings`; pairs that are rated already may be shown, too.
        """
        shape = len(self.ratings.users), len(self.ratings.items)
        size = shape[0] * shape[1]
        if not 1 <= pairs <= size:
            raise SettingError(f"pairs must be from 1 to {size:,}, got {pairs:,}")
        rng = generator(self.world.seed, "self-test", self.world.kind, "random", self.number, pairs)
        cell = np.sort(rng.choice(size, pairs, replace=False, shuffle=False))
        user, item = np.divmod(cell, shape[1])
        value = _values(self.truly_liked[user, item], rng.random(size=pairs))
        return Ratings(
            users=self.ratings.users,
            items=self.ratings.items,
            user=frozen(user.astype(np.int32)),
            item=frozen(item.astype(np.int32)),
            value=frozen((value >= LIKED).astype(np.float64) if self.world.implicit else value),
        )

    def precision(self, run: Run, k: int) -> F64:
        """Return the mean true chance to be liked of the first k items of each list of a run.

        An empty place counts as not liked, as in P@k.
        """
        rank = np.arange(run.item.size) - np.repeat(run.start[:-1], run.depth)
        list_number = np.repeat(np.arange(len(run)), run.depth)
        kept = (rank < k) & (run.item >= 0)
        user = self._users_of(run)[list_number[kept]]
        item = _codes(self.ratings.items, run.items)[run.item[kept]]
        if (user < 0).any() or (item < 0).any():
            raise DataError("run: it has users or items that these ratings do not have")
        total = np.bincount(list_number[kept], self.like[user, item], minlength=len(run))
        result: F64 = total / k
        return result

    def _users_of(self, run: Run) -> I32:
        """Return the user number of each list."""
        lists = run.ranked_for
        if isinstance(lists, TargetLists):
            result: I32 = _codes(self.ratings.users, lists.tests.users)[lists.user]
            return result
        return _codes(self.ratings.users, run.users)


def _codes(known: Ids, others: Ids) -> I32:
    """Return the numbers of other ids among known ones."""
    if known.equals(others):
        return np.arange(len(known), dtype=np.int32)
    return known.codes(others.values)


def _values(liked: Mask, coin: F64) -> F64:
    """Return stars by coins: nothing but whether they are liked means anything."""
    low = DISLIKED_STARS[(coin * DISLIKED_STARS.size).astype(np.int64)]
    high = LIKED_STARS[(coin * LIKED_STARS.size).astype(np.int64)]
    values: F64 = np.where(liked, high, low)
    return values


def _with_crowd(stars: F64, average: F64) -> F64:
    """Return the whole stars that users record who see the others' average."""
    result: F64 = np.rint(OWN * stars + (1 - OWN) * average)
    return result


def _recorded_liked(stars: F64, average: F64) -> F64:
    """Return, by item, which share of opinions with these stars is recorded as liked."""
    result: F64 = (_with_crowd(stars[:, None], average) >= LIKED).mean(axis=0)
    return result


@dataclass(frozen=True, eq=False)
class _Coins:
    """Coins for pairs of users and items; members of a household share most of theirs."""

    rng: np.random.Generator
    shape: tuple[int, int, int]
    """Households, users of each, items."""

    @cached_property
    def is_shared(self) -> Mask:
        """[households, users, items]: where a user has the coins of the household's first."""
        result: Mask = self.rng.random(self.shape) < SHARED
        return result

    def of_pairs(self) -> F64:
        """Toss a coin for each pair."""
        families, household, items = self.shape
        if household == 1:
            return self.rng.random((families, items))
        is_shared, coin = self.is_shared, self.rng.random(self.shape)
        result: F64 = np.where(is_shared, coin[:, :1], coin).reshape(families * household, items)
        return result

    def of(self, user: I64, item: I64) -> F64:
        """Toss a coin for some pairs."""
        if self.shape[1] == 1:
            return self.rng.random(user.size)
        return self.of_pairs()[user, item]


class _Numbered(NamedTuple):
    """Ratings under ids, and what the numbers of these stand for."""

    ratings: Ratings
    rows: I32
    columns: I32


def _numbered(user: I64, item: I64, value: F64 | None, time: I64 | None) -> _Numbered:
    """Number the ids of rated pairs that stand by user and item; no value means implicit data."""
    rows, user_code = np.unique(user, return_inverse=True)
    columns, item_code = np.unique(item, return_inverse=True)
    ratings = Ratings(
        users=Ids(pl.Series(rows + 1)),
        items=Ids(pl.Series(columns + 1)),
        user=frozen(user_code.astype(np.int32)),
        item=frozen(item_code.astype(np.int32)),
        value=frozen(np.ones(user.size) if value is None else value),
        time=None if time is None else frozen(time),
        implicit=value is None,
    )
    return _Numbered(ratings, frozen(rows.astype(np.int32)), frozen(columns.astype(np.int32)))
