"""`liked_shares`: of the judged items that a system recommends, how many are liked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, frozen
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ratings
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
from unskew.unbiased.listed_pairs import ListedPairs, extended, pair_numbers
from unskew.unbiased.weighted_averages import LEVEL

CUT = 0.95
"""Weights are cut at this quantile of those in the lists."""
PLAIN, LEVELLED = 0, 1


@dataclass(frozen=True, eq=False, kw_only=True)
class LikedPart:
    """What the judged items in the lists of one split add up to, by system and user.

    Made by `liked_part`. The first axis of the sums: plain (each judged item counts 1), levelled
    (1 / (ratings of its item x ratings of its user), cut at the 95 % quantile).
    """

    systems: tuple[str, ...]
    k: int
    users: I32
    """The numbers of the users with a judged item in any list."""
    judged: F64
    """2 x systems x users: sums of weights of judged items."""
    liked: F64
    """The same of liked ones."""
    shared: F64
    """2 x systems x systems: squared weights of the judged items that both list, added up."""


@dataclass(frozen=True, kw_only=True)
class LikedShare:
    """The share of a system's judged recommendations that is liked."""

    system: str
    levelled: bool
    judged: int
    """Judged recommendations, over all splits."""
    effective: float
    """As many equal ones, each counted once, would be as precise (Kish)."""
    users: int
    """Users with a judged recommendation."""
    value: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why there is no value."""


@dataclass(frozen=True, kw_only=True)
class LikedDifference:
    """The liked share of system a's judged recommendations less that of b's."""

    a: str
    b: str
    levelled: bool
    judged_a: int
    judged_b: int
    effective: float
    """Of the system with fewer: as many equal ratings, each counted once, would be as precise."""
    users: int
    """Users with a judged recommendation of either."""
    value: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    z: float | None = None
    """Value / se: to be read by Student's t with users - 1 degrees of freedom."""
    reason: str = ""
    """Why there is no value."""

    def turned(self) -> LikedDifference:
        """Return the liked share of b less that of a."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            judged_a=self.judged_b,
            judged_b=self.judged_a,
            **turned_ends(self.value, self.low, self.high, self.z),
        )


def break_even(pair: LikedDifference) -> float:
    """Return by how many points display would have to inflate liking for the order to turn.

    That is, how much more the recorded liking of the leading system's judged items would have to be
    inflated, in points of 100, than that of the other's: the end of the interval that is nearer to
    0. It is 0 where the interval holds 0, or where there is no value: then no order is settled.

    Examples
    --------
    >>> from unskew.unbiased.liked_shares import LikedDifference, break_even
    >>> facts = {"levelled": False, "judged_a": 90, "judged_b": 80, "effective": 80, "users": 60}
    >>> break_even(LikedDifference(a="x", b="y", value=0.2, low=0.0625, high=0.3375, **facts))
    6.25
    """
    if pair.low is None or pair.high is None:
        return 0.0
    return 100.0 * max(pair.low, -pair.high, 0.0)


@dataclass(frozen=True, eq=False)
class _LikedSums:
    """The parts of all splits added up."""

    judged: F64
    liked: F64
    shared: F64
    number: I64
    """Judged recommendations by system, over all splits."""
    once: F64
    """By system: the share of these that surely are different ones.

    A user's judged items of one split are different ones, those of several splits may be the same.
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class LikedShares(Result):
    """The liked share of each system's judged recommendations. Made by `liked_shares`.

    With the parts of several splits of one data set, sums run over all of them and the user stays
    the unit: a split that stands twice changes nothing.
    """

    parts: tuple[LikedPart, ...]
    level: float = LEVEL
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts:
            raise SettingError("parts: at least one is needed, as liked_part(…) makes them")
        first = self.parts[0]
        for part in self.parts[1:]:
            if (part.systems, part.k) != (first.systems, first.k):
                raise DataError("parts must be of the same systems and the same k")
        check_share("level", self.level)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems."""
        return self.parts[0].systems

    @property
    def k(self) -> int:
        """How many places of each list are looked at."""
        return self.parts[0].k

    @cached_property
    def _sums(self) -> _LikedSums:
        everyone, places = aligned_users([part.users for part in self.parts])
        shape = (2, len(self.systems), everyone.size)
        judged, liked = np.zeros(shape), np.zeros(shape)
        highest = np.zeros(shape[1:])
        for part, columns in zip(self.parts, places, strict=True):
            judged[:, :, columns] += part.judged
            liked[:, :, columns] += part.liked
            highest[:, columns] = np.maximum(highest[:, columns], part.judged[PLAIN])
        number = judged[PLAIN].sum(axis=1)
        once = highest.sum(axis=1) / np.maximum(number, 1.0)
        shared = np.sum([part.shared for part in self.parts], axis=0)
        return _LikedSums(judged, liked, shared, number.astype(np.int64), once)

    def _effective(self, system: int, kind: int) -> float:
        sums = self._sums
        squares = float(sums.shared[kind, system, system])
        weight = float(sums.judged[kind, system].sum())
        return weight**2 / squares * float(sums.once[system]) if squares > 0 else 0.0

    def share(self, system: str, levelled: bool = False, level: float | None = None) -> LikedShare:
        """Return the liked share of one system, with its interval (Wilson's, by user).

        Parameters
        ----------
        system
            Its name.
        levelled
            Whether a judged item counts 1 / (ratings of its item x ratings of its user).
        level
            Of the interval; that of the result unless given.
        """
        index = self.systems.index(choose("system", system, self.systems))
        kind, sums = int(levelled), self._sums
        bottom, top = sums.judged[kind, index], sums.liked[kind, index]
        users, effective = int(np.count_nonzero(bottom)), self._effective(index, kind)
        bare = LikedShare(
            system=system,
            levelled=levelled,
            judged=int(sums.number[index]),
            effective=effective,
            users=users,
        )
        reason = self._too_few(system, index) or _too_few_users(users)
        if reason:
            return replace(bare, reason=reason)
        mean = ratio(top, bottom)
        inner = drawn_in(mean.value, effective)
        floor = inner * (1 - inner) / effective
        variance = clustered_variance(mean.influence, users, floor, effective)
        level = self.level if level is None else level
        low, high = share_ends(mean.value, variance, effective, users, level)
        return replace(bare, value=mean.value, se=math.sqrt(variance), low=low, high=high)

    def influence(self, a: str, b: str, levelled: bool = False) -> F64:
        """Return what each user moves the difference a - b by, in the order of the users' numbers.

        For intervals that hold for several pairs at once; no floor of small counts is in it.
        """
        kind, sums = int(levelled), self._sums
        of_a, of_b = (self.systems.index(choose("system", s, self.systems)) for s in (a, b))
        if not (sums.number[of_a] and sums.number[of_b]):
            raise DataError(f"{a} or {b} recommends no judged item")
        first = ratio(sums.liked[kind, of_a], sums.judged[kind, of_a])
        return first.influence - ratio(sums.liked[kind, of_b], sums.judged[kind, of_b]).influence

    def pair(
        self, a: str, b: str, levelled: bool = False, level: float | None = None
    ) -> LikedDifference:
        """Return the liked share of a less that of b, paired by user.

        Parameters
        ----------
        a, b
            Names of systems.
        levelled
            Whether a judged item counts 1 / (ratings of its item x ratings of its user).
        level
            Of the interval; that of the result unless given.
        """
        indices = [self.systems.index(choose("system", name, self.systems)) for name in (a, b)]
        kind, sums = int(levelled), self._sums
        bottom = sums.judged[kind, indices]
        users = int(np.count_nonzero(bottom.sum(axis=0)))
        effective = [self._effective(index, kind) for index in indices]
        bare = LikedDifference(
            a=a,
            b=b,
            levelled=levelled,
            judged_a=int(sums.number[indices[0]]),
            judged_b=int(sums.number[indices[1]]),
            effective=min(effective),
            users=users,
        )
        spread = self._spread(indices, kind) if min(effective) > 0 else 0.0
        reason = (
            self._too_few(a, indices[0])
            or self._too_few(b, indices[1])
            or _too_few_users(users)
            or self._no_contrast(indices, kind, spread)
        )
        if reason:
            return replace(bare, reason=reason)
        first, second = (
            ratio(sums.liked[kind, index], sums.judged[kind, index]) for index in indices
        )
        value = first.value - second.value
        total = sum(effective)
        pooled = (first.value * effective[0] + second.value * effective[1]) / total
        inner = drawn_in(pooled, total)
        variance = clustered_variance(
            first.influence - second.influence, users, inner * (1 - inner) * spread, min(effective)
        )
        se = math.sqrt(variance)
        half = half_width(users, self.level if level is None else level) * se
        low, high = max(value - half, -1.0), min(value + half, 1.0)
        return replace(bare, value=value, se=se, low=low, high=high, z=value / se)

    def _spread(self, indices: list[int], kind: int) -> float:
        """Return Σ (w/J_a - w/J_b)² over judged items, with those that both list counted there."""
        a, b = indices
        sums = self._sums
        shared = sums.shared[kind]
        of_a, of_b = (float(sums.judged[kind, index].sum()) for index in indices)
        spread = shared[a, a] / of_a**2 + shared[b, b] / of_b**2 - 2 * shared[a, b] / of_a / of_b
        return float(spread / min(sums.once[a], sums.once[b]))

    def _too_few(self, system: str, index: int) -> str:
        different = math.ceil(float(self._sums.number[index] * self._sums.once[index]) - 1e-9)
        if different >= FEWEST:
            return ""
        return f"{system} recommends {counted(different, 'judged item')}, fewer than {FEWEST}"

    def _no_contrast(self, indices: list[int], kind: int, spread: float) -> str:
        """Say why there is nothing to compare: no dislike, no like, or the same judged items."""
        sums = self._sums
        top, bottom = sums.liked[kind, indices], sums.judged[kind, indices]
        if (top == bottom).all():
            return "every judged item that either recommends is liked"
        if not top.any():
            return "no judged item that either recommends is liked"
        return "both recommend the same judged items" if spread <= 1e-12 else ""

    def table(self) -> pl.DataFrame:
        """Return a row per system and version: the share, its interval, what it rests on."""
        shares = [self.share(name, levelled) for levelled in (False, True) for name in self.systems]
        return pl.DataFrame([share.__dict__ for share in shares], _SHARE)

    def pairs(self) -> pl.DataFrame:
        """Return a row per pair and version: the difference, its interval, what it rests on."""
        contrasts = [
            self.pair(a, b, levelled)
            for levelled in (False, True)
            for a, b in combinations(self.systems, 2)
        ]
        return pl.DataFrame([contrast.__dict__ for contrast in contrasts], _PAIR)

    def _explanation(self) -> list[str]:
        splits = f" of {len(self.parts)} splits" if len(self.parts) > 1 else ""
        return [
            f"judged items in the first {self.k} places{splits}: the share that is liked; "
            f"{self.level:.0%} intervals by user",
            "levelled: a judged item counts 1 / (ratings of its item x ratings of its user), cut "
            f"at the {CUT:.0%} quantile",
        ]

    def _content(self) -> dict[str, object]:
        facts = {"k": self.k, "splits": len(self.parts), "level": self.level}
        return {**facts, "systems": self.table(), "pairs": self.pairs(), "notes": self.notes}

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, k={self.k}"


_NUMBERS = dict.fromkeys(("value", "se", "low", "high"), pl.Float64)
_SHARE = {
    "system": pl.String,
    "levelled": pl.Boolean,
    "judged": pl.Int64,
    "effective": pl.Float64,
    "users": pl.Int64,
    **_NUMBERS,
    "reason": pl.String,
}
_PAIR = {
    "a": pl.String,
    "b": pl.String,
    "levelled": pl.Boolean,
    "judged_a": pl.Int64,
    "judged_b": pl.Int64,
    "effective": pl.Float64,
    "users": pl.Int64,
    **_NUMBERS,
    "z": pl.Float64,
    "reason": pl.String,
}


def liked_part(
    train: Ratings | None, test: Ratings, runs: Mapping[str, Run], relevance: Relevance, k: int
) -> LikedPart:
    """Add up the judged items in the lists of one split, by system and user.

    Parameters
    ----------
    train, test
        Under the same ids, as in a `Split`. Without training ratings, those of the test part alone
        say how often items and users rate.
    runs
        The ranked lists of each system.
    relevance
        Which ratings are liked.
    k
        How many places of each list are looked at.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.liked_shares import liked_part
    >>> test = us.read_ratings({"user": [1, 1, 2], "item": [1, 2, 3], "rating": [5, 1, 4]})
    >>> runs = {"x": us.read_run({1: [1, 2], 2: [4, 5]})}
    >>> part = liked_part(None, test, runs, us.Relevance(liked=4), 2)
    >>> part.users.tolist(), part.judged[0].tolist(), part.liked[0].tolist()
    ([0], [[2.0]], [[1.0]])
    """
    users, _ = extended(test.users, [run.users for run in runs.values()])
    items, width = extended(test.items, [run.items for run in runs.values()])
    listed = ListedPairs.of_runs(runs, users, items, as_count("k", k), width)
    return _part(train, test, listed, relevance)


def _part(
    train: Ratings | None, test: Ratings, listed: ListedPairs, relevance: Relevance
) -> LikedPart:
    rows, lists = listed.rows_of(pair_numbers(test, listed.width))
    user, item = test.user[rows], test.item[rows]
    weight = np.ones((2, rows.size))
    if rows.size:
        of_item, of_user = _counts(train, test)
        uneven = 1.0 / (of_item[item] * of_user[user])
        weight[LEVELLED] = np.minimum(uneven, np.quantile(uneven, CUT))
    users, group = np.unique(user, return_inverse=True)
    liked = relevance.is_liked(test.value[rows])

    def added(what: F64) -> F64:
        """Add up a number per row by system and user."""
        sums = [np.bincount(group[line], what[line], users.size) for line in lists]
        return np.array(sums, np.float64).reshape(len(lists), users.size)

    mask = lists.astype(np.float64)
    return LikedPart(
        systems=listed.systems,
        k=listed.k,
        users=frozen(users.astype(np.int32)),
        judged=frozen(np.stack([added(weights) for weights in weight])),
        liked=frozen(np.stack([added(weights * liked) for weights in weight])),
        shared=frozen(np.stack([(mask * weights**2) @ mask.T for weights in weight])),
    )


def _counts(train: Ratings | None, test: Ratings) -> tuple[F64, F64]:
    """Return how many ratings each item and each user has, in both parts."""
    parts = [test] if train is None else [train, test]
    items, users = len(test.items), len(test.users)
    of_item = sum(np.bincount(part.item, minlength=items) for part in parts)
    of_user = sum(np.bincount(part.user, minlength=users) for part in parts)
    return np.asarray(of_item, np.float64), np.asarray(of_user, np.float64)


def _too_few_users(users: int) -> str:
    return "" if users > 1 else f"judged recommendations of {counted(users, 'user')}, fewer than 2"


@checked
def liked_shares(
    judgments: object,
    runs: object = None,
    k: int = 10,
    *,
    level: float = LEVEL,
    seed: int = 0,
    **data: Unpack[DataOptions],
) -> LikedShares:
    r"""Return the share of each system's judged recommendations that is liked, and differences.

    Observed precision is (how many recommendations are judged) x (how many of those are liked).
    The first factor follows exposure; this is the second one. If people rate what they like and
    what they dislike alike for items that they were shown and that they looked for, a larger liked
    share tells that a system's recommendations are liked more, whatever their exposure. *Levelled*,
    a judged item counts 1 / (ratings of its item x ratings of its user), so that popular items and
    active users do not dominate.

    Parameters
    ----------
    judgments, runs, seed, data
        Judged data (`judge`) alone, with k as the second argument; or raw data and their options as
        `judge` takes them. Training ratings count among those of items and users.
    k
        How many places of each list are looked at.
    level
        Of the intervals: by user, Student's t, for new users of the same lists.

    Examples
    --------
    >>> import unskew as us
    >>> people = range(40)
    >>> test = {"user": [*people, *people], "item": ["a"] * 40 + ["b"] * 40,
    ...         "rating": [5] * 30 + [1] * 10 + [5] * 10 + [1] * 30}
    >>> runs = {"x": {u: ["a", "c"] for u in people}, "y": {u: ["b", "c"] for u in people}}
    >>> pair = us.unbiased.liked_shares(test, runs, 2, liked=4).pair("x", "y")
    >>> pair.value, round(pair.low, 2), round(pair.high, 2)
    (0.5, 0.32, 0.68)
    """
    runs, k = second_argument(judgments, runs, k, 10)
    k = as_count("k", k)
    check_share("level", level)
    judged = as_judged(judgments, runs, seed=seed, **data)
    listed = ListedPairs.of_judged(judged, k)
    if judged.targets is None:
        test, train = judged.judgments, judged.numbering.train
    else:
        test, train = judged.targets.tests, judged.targets.train
    notes = list(judged.notes)
    if train is None:
        notes.append("without train=… only test ratings say how often items and users rate")
    return LikedShares(
        parts=(_part(train, test, listed, judged.relevance),), level=level, notes=tuple(notes)
    )
