"""`shown_at_random`: the true precision of lists, from ratings of randomly shown pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance
from unskew.errors import DataError, SettingError
from unskew.judging.judge import DataOptions, as_judged, second_argument
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.runs import Run
from unskew.stats.clusters import (
    FEWEST,
    aligned_users,
    clustered_variance,
    drawn_in,
    half_width,
    ratio,
    share_ends,
    turned_ends,
)
from unskew.unbiased.listed_pairs import ListedPairs, extended, is_among, pair_numbers
from unskew.unbiased.weighted_averages import LEVEL


@dataclass(frozen=True, eq=False, kw_only=True)
class RandomPart:
    """Randomly shown pairs in the lists of one split. Made by `random_part`."""

    listed: ListedPairs
    user: I32
    """The user of each randomly shown pair that any system lists."""
    liked: Mask
    """Whether the user likes it."""
    lists: Mask
    """Systems x pairs: whether the system lists it."""
    shown: int
    """All randomly shown pairs that are not in training."""
    in_training: int
    """Randomly shown pairs that are left out, as they are in training."""

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems."""
        return self.listed.systems


@dataclass(frozen=True, kw_only=True)
class RandomShare:
    """The true precision of a system: the liked share of what is in its lists."""

    system: str
    shown: int
    """Randomly shown pairs in its lists, over all splits."""
    users: int
    value: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why there is no value."""


@dataclass(frozen=True, kw_only=True)
class RandomDifference:
    """The true precision of system a less that of system b."""

    a: str
    b: str
    shown_a: int
    """Randomly shown pairs that a lists and b does not, over all splits."""
    shown_b: int
    effective: float
    """Of the side with fewer: randomly shown pairs that surely are different ones."""
    users: int
    """Users with a randomly shown pair that one of the two lists."""
    overlap: float
    """The share of their places that hold what the other lists too."""
    value: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    z: float | None = None
    """Value / se: to be read by Student's t with users - 1 degrees of freedom."""
    reason: str = ""
    """Why there is no value."""

    def turned(self) -> RandomDifference:
        """Return the true precision of b less that of a."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            shown_a=self.shown_b,
            shown_b=self.shown_a,
            **turned_ends(self.value, self.low, self.high, self.z),
        )


@dataclass(frozen=True, eq=False)
class _RandomSide:
    """What one of two systems lists and the other does not."""

    places: F64
    """By user, over all splits."""
    shown: F64
    liked: F64
    different: float
    """Pairs shown that surely are different ones: the most in one split, user by user."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RandomSlice(Result):
    """True precision and its differences, from randomly shown pairs. Made by `shown_at_random`.

    With the parts of several splits of one data set, the lists of all are averaged and the user
    stays the unit: a split that stands twice changes nothing.
    """

    parts: tuple[RandomPart, ...]
    level: float = LEVEL
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts:
            raise SettingError("parts: at least one is needed, as random_part(…) makes them")
        first = self.parts[0].listed
        for part in self.parts[1:]:
            if (part.listed.systems, part.listed.k) != (first.systems, first.k):
                raise DataError("parts must be of the same systems and the same k")
        check_share("level", self.level)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems."""
        return self.parts[0].systems

    @property
    def k(self) -> int:
        """How many places of each list are looked at."""
        return self.parts[0].listed.k

    def share(self, system: str, level: float | None = None) -> RandomShare:
        """Return the liked share of what a system lists, with its interval (Wilson's, by user).

        It is the true precision where lists are full.
        """
        index = self.systems.index(choose("system", system, self.systems))
        _, (side,) = self._sides([(index, None)])
        number = int(side.shown.sum())
        users = int(np.count_nonzero(side.shown))
        bare = RandomShare(system=system, shown=number, users=users)
        reason = _too_few(side, f"{system} lists") or _too_few_users(users)
        if reason:
            return replace(bare, reason=reason)
        mean = ratio(side.liked, side.shown)
        inner = drawn_in(mean.value, side.different)
        floor = inner * (1 - inner) / side.different
        variance = clustered_variance(mean.influence, users, floor, side.different)
        level = self.level if level is None else level
        low, high = share_ends(mean.value, variance, side.different, users, level)
        return replace(bare, value=mean.value, se=math.sqrt(variance), low=low, high=high)

    def pair(self, a: str, b: str, level: float | None = None) -> RandomDifference:
        r"""Return the true precision of a less that of b.

        Only what one of the two lists matters: with :math:`c_a` the mean share of a's places whose
        item b does not list and :math:`s_a` the liked share of the randomly shown pairs there, the
        difference is :math:`c_a s_a - c_b s_b`.
        """
        indices = [self.systems.index(choose("system", name, self.systems)) for name in (a, b)]
        users, (first, second) = self._sides([(indices[0], indices[1]), (indices[1], indices[0])])
        with_list, listed = self._lists(indices, users)
        places = float(first.places.sum() + second.places.sum())
        number = int(np.count_nonzero(first.shown + second.shown))
        bare = RandomDifference(
            a=a,
            b=b,
            shown_a=int(first.shown.sum()),
            shown_b=int(second.shown.sum()),
            effective=min(first.different, second.different),
            users=number,
            overlap=1.0 - places / listed if listed else 0.0,
        )
        reason = (
            ("the two lists do not differ" if not places else "")
            or _too_few(first, f"{a} and not {b} lists")
            or _too_few(second, f"{b} and not {a} lists")
            or _too_few_users(number)
            or _no_contrast(first, second)
        )
        if reason:
            return replace(bare, reason=reason)
        value, variance = _difference(first, second, with_list, number, self.k)
        se = math.sqrt(variance)
        half = half_width(number, self.level if level is None else level) * se
        low, high = max(value - half, -1.0), min(value + half, 1.0)
        return replace(bare, value=value, se=se, low=low, high=high, z=value / se)

    def _sides(self, pairs: list[tuple[int, int | None]]) -> tuple[I64, list[_RandomSide]]:
        """Add up, by user and over splits, what a lists and b (None: nobody) does not."""
        members = [
            np.concatenate([part.user, *part.listed.owners]).astype(np.int64) for part in self.parts
        ]
        users, _ = aligned_users(members)
        return users, [self._side(users, a, b) for a, b in pairs]

    def _side(self, users: I64, a: int, b: int | None) -> _RandomSide:
        places, exposed, liked, highest = (np.zeros(users.size) for _ in range(4))
        for part in self.parts:
            mine = part.lists[a] if b is None else part.lists[a] & ~part.lists[b]
            listed = part.listed
            owner = listed.pairs[a] // listed.width if b is None else listed.only(a, b)
            places += _count(users, owner)
            here = _count(users, part.user[mine])
            exposed += here
            liked += _count(users, part.user[mine & part.liked])
            highest = np.maximum(highest, here)
        return _RandomSide(places, exposed, liked, float(highest.sum()))

    def _lists(self, indices: list[int], users: I64) -> tuple[F64, int]:
        """Return how many lists each user has, over splits, and how many places both fill."""
        lists, places = np.zeros(users.size), 0
        for part in self.parts:
            owners = [part.listed.owners[index] for index in indices]
            lists += _count(users, np.union1d(*owners))
            places += sum(part.listed.pairs[index].size for index in indices)
        return lists, places

    def table(self) -> pl.DataFrame:
        """Return a row per system: its true precision, the interval, what it rests on."""
        return pl.DataFrame([self.share(name).__dict__ for name in self.systems], _SHARE)

    def pairs(self) -> pl.DataFrame:
        """Return a row per pair: the difference, its interval, what it rests on."""
        contrasts = [self.pair(a, b) for a, b in combinations(self.systems, 2)]
        return pl.DataFrame([contrast.__dict__ for contrast in contrasts], _PAIR)

    def _explanation(self) -> list[str]:
        splits = f" of {len(self.parts)} splits" if len(self.parts) > 1 else ""
        number, left = (
            sum(getattr(p, name) for p in self.parts) for name in ("shown", "in_training")
        )
        return [
            f"randomly shown pairs in the first {self.k} places{splits}: the share that is liked; "
            f"{self.level:.0%} intervals by user",
            f"{number:,} randomly shown pairs; {left:,} more are in training and left out",
        ]

    def _content(self) -> dict[str, object]:
        facts = {"k": self.k, "splits": len(self.parts), "level": self.level}
        return {**facts, "systems": self.table(), "pairs": self.pairs(), "notes": self.footer()}

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, k={self.k}"


_NUMBERS = dict.fromkeys(("value", "se", "low", "high"), pl.Float64)
_SHARE = {
    "system": pl.String,
    "shown": pl.Int64,
    "users": pl.Int64,
    **_NUMBERS,
    "reason": pl.String,
}
_PAIR = {
    "a": pl.String,
    "b": pl.String,
    "shown_a": pl.Int64,
    "shown_b": pl.Int64,
    "effective": pl.Float64,
    "users": pl.Int64,
    "overlap": pl.Float64,
    **_NUMBERS,
    "z": pl.Float64,
    "reason": pl.String,
}


def _difference(
    first: _RandomSide, second: _RandomSide, lists: F64, users: int, k: int
) -> tuple[float, float]:
    """Return c_a s_a - c_b s_b and its variance by user."""
    value, influence, floor = 0.0, np.zeros(lists.size), 0.0
    shares = [ratio(side.liked, side.shown) for side in (first, second)]
    number = first.different + second.different
    pooled = (shares[0].value * first.different + shares[1].value * second.different) / number
    inner = drawn_in(pooled, number)
    for sign, side, share in zip((1.0, -1.0), (first, second), shares, strict=True):
        part = ratio(side.places / k, lists)
        value += sign * part.value * share.value
        influence += sign * (part.value * share.influence + share.value * part.influence)
        floor += part.value**2 * inner * (1 - inner) / side.different
    effective = min(first.different, second.different)
    return value, clustered_variance(influence, users, floor, effective)


def _count(users: I64, user: I32 | I64) -> F64:
    """Count the rows of each user."""
    counts = np.bincount(np.searchsorted(users, user), minlength=users.size)
    return counts.astype(np.float64)


def _too_few(side: _RandomSide, what: str) -> str:
    if side.different >= FEWEST:
        return ""
    number = counted(int(side.different), "randomly shown pair is", "randomly shown pairs are")
    return f"{number} among what {what}, fewer than {FEWEST}"


def _too_few_users(users: int) -> str:
    return "" if users > 1 else f"randomly shown pairs of {counted(users, 'user')}, fewer than 2"


def _no_contrast(first: _RandomSide, second: _RandomSide) -> str:
    liked, exposed = first.liked + second.liked, first.shown + second.shown
    if not liked.any():
        return "no randomly shown pair that one of the two lists is liked"
    return "every randomly shown pair that one of the two lists is liked" * int(
        (liked == exposed).all()
    )


def random_part(
    train: Ratings | None, random: Ratings, runs: Mapping[str, Run], relevance: Relevance, k: int
) -> RandomPart:
    """Find the randomly shown pairs in the lists of one split.

    Parameters
    ----------
    train
        Training ratings: lists leave their pairs out, and so are randomly shown ones.
    random
        Ratings of pairs that were shown at random.
    runs
        The ranked lists of each system.
    relevance
        Which ratings are liked.
    k
        How many places of each list are looked at.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.random_slice import random_part
    >>> train = us.read_ratings({"user": [1, 2], "item": [1, 2], "rating": [5, 1]})
    >>> shown = us.read_ratings({"user": [1, 1, 2], "item": [1, 2, 3], "rating": [5, 4, 1]})
    >>> part = random_part(train, shown, {"x": us.read_run({1: [2], 2: [1]})}, us.Relevance(4), 1)
    >>> part.shown, part.in_training, part.liked.tolist()
    (2, 1, [True])
    """
    numbering = random if train is None else train
    sources: list[Ratings | Run] = [random, *runs.values()]
    (user, *users), _ = extended(numbering.users, [source.users for source in sources])
    (item, *items), width = extended(numbering.items, [source.items for source in sources])
    listed = ListedPairs.of_runs(runs, users, items, as_count("k", k), width)
    return _part(train, _Shown.of(random, user, item, relevance), listed)


@dataclass(frozen=True, eq=False)
class _Shown:
    """Randomly shown pairs under common numbers."""

    user: I32
    item: I32
    liked: Mask

    @classmethod
    def of(cls, random: Ratings, user: I32, item: I32, relevance: Relevance) -> _Shown:
        return cls(user[random.user], item[random.item], relevance.is_liked(random.value))


def _part(train: Ratings | None, exposed: _Shown, listed: ListedPairs) -> RandomPart:
    key = exposed.user.astype(np.int64) * listed.width + exposed.item
    order = np.argsort(key, kind="stable")
    again = np.zeros(key.size, np.bool_)
    if train is not None:
        again = is_among(key, pair_numbers(train, listed.width))
        order = order[~again[order]]
    rows, lists = listed.rows_of(key[order])
    retained = order[rows]
    return RandomPart(
        listed=listed,
        user=frozen(exposed.user[retained]),
        liked=frozen(exposed.liked[retained]),
        lists=frozen(lists),
        shown=int(order.size),
        in_training=int(again.sum()),
    )


@checked
def shown_at_random(
    judgments: object,
    runs: object = None,
    k: int = 10,
    *,
    random: object,
    level: float = LEVEL,
    seed: int = 0,
    **data: Unpack[DataOptions],
) -> RandomSlice:
    r"""Estimate true precision, and its differences, from pairs that were shown at random.

    Where every pair of a user and an item had the same chance to be shown, and what was shown was
    rated, the randomly shown pairs in a system's lists are a random sample of these lists: their
    liked share is the true precision, whatever the exposure of the other ratings.

    Parameters
    ----------
    judgments, runs, seed, data
        Judged data (`judge`) alone, with k as the second argument; or raw data and their options as
        `judge` takes them. Of the judgments only the relevance rule is used. Training pairs are
        left out of the randomly shown ones, as lists leave them out, and counted.
    k
        How many places of each list are looked at.
    random
        Ratings of randomly shown pairs: anything that `read_ratings` takes.
    level
        Of the intervals: by user, Student's t, for new users of the same lists.

    Examples
    --------
    >>> import unskew as us
    >>> people = range(40)
    >>> shown = {"user": [*people, *people], "item": ["a"] * 40 + ["b"] * 40,
    ...          "rating": [5] * 30 + [1] * 10 + [5] * 10 + [1] * 30}
    >>> runs = {"x": {u: ["a", "c"] for u in people}, "y": {u: ["b", "c"] for u in people}}
    >>> test = {"user": [0], "item": ["c"], "rating": [5]}
    >>> pair = us.unbiased.shown_at_random(test, runs, 2, random=shown, liked=4).pair("x", "y")
    >>> pair.value, pair.overlap  # half of the places differ: half of .75 - .25
    (0.25, 0.5)
    """
    runs, k = second_argument(judgments, runs, k, 10)
    k = as_count("k", k)
    check_share("level", level)
    judged = as_judged(judgments, runs, seed=seed, **data)
    slice_ = read_ratings(random)
    listed = ListedPairs.of_judged(judged, k)
    ratings, train = judged.judgments, judged.numbering.train
    if judged.targets is not None:
        ratings, train = judged.targets.tests, judged.targets.train
    (user,), _ = extended(ratings.users, [slice_.users])
    (item,), _ = extended(ratings.items, [slice_.items])
    # Items that are in no list and no rating cannot be in a list: they need no number of their own.
    inside = item[slice_.item] < listed.width
    inner = slice_.take(inside)
    exposed = _Shown.of(inner, user, item, judged.relevance)
    part = _part(train, exposed, listed)
    part = replace(part, shown=part.shown + int(np.count_nonzero(~inside)))
    return RandomSlice(parts=(part,), level=level, notes=judged.notes)
