"""The rated pairs in the first k places of each system's lists, and shares of them by user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import check_share
from unskew.data.ratings import Ids, Ratings
from unskew.errors import DataError, SettingError
from unskew.judging.judged import Judged, Need
from unskew.report.text import counted
from unskew.runs import Run


@dataclass(frozen=True, eq=False, kw_only=True)
class ListedPairs:
    """Which items each system lists for each user, down to place k."""

    systems: tuple[str, ...]
    k: int
    width: int
    """A pair has the number user x width + item."""
    pairs: tuple[I64, ...]
    """By system: the pairs in ascending order."""
    owners: tuple[I64, ...]
    """By system: the users that have a list, in ascending order."""

    @classmethod
    def of_runs(
        cls, runs: Mapping[str, Run], k: int, *ratings: Ratings
    ) -> tuple[ListedPairs, list[I64]]:
        """Number the pairs of runs, and those of ratings, whose first ones keep their numbers."""
        sources: list[Ratings | Run] = [*ratings, *runs.values()]
        users, _ = extended(sources[0].users, [source.users for source in sources])
        items, width = extended(sources[0].items, [source.items for source in sources])
        tables = list(zip(users, items, strict=True))
        numbers = [
            user[source.user].astype(np.int64) * width + item[source.item]
            for source, (user, item) in zip(ratings, tables[: len(ratings)], strict=True)
        ]
        pairs, owners = [], []
        for run, (user, item) in zip(runs.values(), tables[len(ratings) :], strict=True):
            pairs.append(_first_places(user, run.start[:-1], run.depth, run.item, item, k, width))
            owners.append(frozen(np.sort(user[run.depth > 0].astype(np.int64))))
        systems = tuple(runs)
        listed = cls(systems=systems, k=k, width=width, pairs=tuple(pairs), owners=tuple(owners))
        return listed, numbers

    @classmethod
    def of_judged(cls, judged: Judged, k: int) -> ListedPairs:
        """Number the pairs of judged data by the numbers of their judgments."""
        if judged.targets is not None and (judged.targets.exact or not judged.targets.per_user):
            raise SettingError(
                "one list per user is needed: lists with one relevant item, or within strata, rank "
                "other targets for every judgment"
            )
        ready = judged.prepare(Need(scan=k, top=k), judged.threads)
        width = len(ready.judgments.items)
        pairs, owners = [], []
        for matched in ready.matched.values():
            length = matched.stop - matched.start
            user = np.arange(length.size, dtype=np.int64)
            item, table = matched.run.item, matched.from_run
            pairs.append(_first_places(user, matched.start, length, item, table, k, width))
            owners.append(frozen(user[length > 0]))
        systems = tuple(ready.systems)
        return cls(systems=systems, k=k, width=width, pairs=tuple(pairs), owners=tuple(owners))

    def only(self, a: int, b: int) -> I64:
        """Return the users of the pairs that system a lists and system b does not."""
        mine, theirs = self.pairs[a], self.pairs[b]
        user: I64 = mine[~is_among(mine, theirs)] // self.width
        return user


def pair_numbers(ratings: Ratings, width: int) -> I64:
    """Return user x width + item of each row."""
    number: I64 = ratings.user.astype(np.int64) * width + ratings.item
    return number


def is_among(numbers: I64, ascending: I64) -> Mask:
    """Tell which numbers occur in an ascending array."""
    if not ascending.size:
        return np.zeros(numbers.size, np.bool_)
    index = np.minimum(np.searchsorted(ascending, numbers), ascending.size - 1)
    same: Mask = ascending[index] == numbers
    return same


def extended(numbering: Ids, others: Sequence[Ids]) -> tuple[list[I32], int]:
    """Return tables to the numbers of `numbering`, strangers after them, and how many there are.

    What is known keeps its number, so that the splits of one data set have users in common.
    """
    if all(ids.equals(numbering) for ids in others):
        return [np.arange(len(numbering), dtype=np.int32) for _ in others], len(numbering)
    union, (mine, *theirs) = Ids.union(numbering, *others)
    number = np.full(len(union), -1, np.int32)
    number[mine] = np.arange(len(numbering), dtype=np.int32)
    strangers = np.flatnonzero(number < 0)
    number[strangers] = len(numbering) + np.arange(strangers.size, dtype=np.int32)
    return [number[table] for table in theirs], len(union)


def _first_places(
    user: I32 | I64, start: I64, length: I64, item: I32, table: I32, k: int, width: int
) -> I64:
    """Return the pairs in the first k places of lists, in ascending order; empty slots left out."""
    depth = np.minimum(length, k)
    owner = np.repeat(np.arange(depth.size), depth)
    rank = np.arange(owner.size) - np.repeat(np.cumsum(depth) - depth, depth)
    listed = item[start[owner] + rank]
    filled = listed >= 0
    pairs = user[owner[filled]].astype(np.int64) * width + table[listed[filled]]
    pairs.sort()
    return frozen(pairs)


class ExcessLiking(NamedTuple):
    """By how much test ratings are liked beyond the other ratings of their users."""

    user: I64
    item: I64
    excess: F64

    @classmethod
    def none(cls) -> ExcessLiking:
        """Return that of no ratings."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False, kw_only=True)
class RatedLists:
    """The rated pairs in the lists of one split."""

    listed: ListedPairs
    pair: I64
    """The numbers of the rated pairs that any system lists, in ascending order."""
    liked: Mask
    """Whether the user likes it."""
    lists: Mask
    """Systems x pairs: whether the system lists it."""
    weight: F64
    """What each pair counts where it does not count 1."""
    excess: F64
    """By how much each pair is liked beyond the other ratings of its user; NaN: too few others."""
    tests: ExcessLiking
    """The same of all test ratings whose users have enough others, whatever is listed."""
    rated: int
    """All rated pairs that are not in training."""
    in_training: int
    """Rated pairs that are left out, as they are in training."""
    group: I64 | None = None
    """The group of each user, where groups of users are the units and not users."""

    @classmethod
    def of(
        cls, listed: ListedPairs, rated: I64, liked: Mask, trained: I64 | None = None
    ) -> RatedLists:
        """Find rated pairs in the lists; without those in training, by the same numbers."""
        order = np.argsort(rated, kind="stable")
        again = np.zeros(rated.size, np.bool_)
        if trained is not None:
            again = is_among(rated, trained)
            order = order[~again[order]]
        ascending = rated[order]
        rows = [_rows(ascending, pairs) for pairs in listed.pairs]
        union = np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)
        return cls(
            listed=listed,
            pair=frozen(ascending[union]),
            liked=frozen(liked[order][union]),
            lists=frozen(np.array([np.isin(union, mine) for mine in rows])),
            weight=frozen(np.ones(union.size)),
            excess=frozen(np.full(union.size, np.nan)),
            tests=ExcessLiking.none(),
            rated=int(order.size),
            in_training=int(again.sum()),
        )

    @property
    def user(self) -> I64:
        """The user of each pair, or the group of users."""
        return self.units(self.pair // self.listed.width)

    def units(self, users: I64) -> I64:
        """Return users as they are, or the group of each; who is in no group is one."""
        if self.group is None:
            return users
        groups = int(self.group.max(initial=-1)) + 1
        strangers = groups + users - self.group.size
        index = np.minimum(users, self.group.size - 1)
        return np.where(users < self.group.size, self.group[index], strangers)


def _rows(ascending: I64, listed: I64) -> I64:
    """Return the places in an ascending array of the pairs that are listed."""
    if not ascending.size:
        return np.zeros(0, np.int64)
    index = np.minimum(np.searchsorted(ascending, listed), ascending.size - 1)
    rows: I64 = index[ascending[index] == listed]
    return rows


def sums_of(users: I64, user: I64, weight: F64 | None = None) -> F64:
    """Add weights (1 unless given) up by user; the users are in ascending order."""
    index = np.searchsorted(users, user)
    return np.bincount(index, weight, users.size).astype(np.float64)


def users_of(parts: Sequence[RatedLists]) -> I64:
    """Return the users with a list in any split, in ascending order."""
    return np.unique(np.concatenate([part.units(u) for part in parts for u in part.listed.owners]))


HABITS = tuple(3.0 ** (-step / 8) for step in range(9))
"""How readily people rate what they dislike, relative to what they like: from 1 to a third."""
SLACK = 1.2
"""Known shares up to here count as 1: they are estimates."""


def unrated_liking(
    liked_share: float, judged_share: float, habit: float, train_share: float = 0.8
) -> float | None:
    """Return how many of a system's recommendations are liked, under one habit of rating.

    With λ the share that is liked of the items that people know, e the share of recommendations
    that they know, and h the habit: of what is rated, λ / (λ + h (1 - λ)) is liked, and r = e (λ +
    h (1 - λ)) of all is rated. Of what has no training rating, λ (1 - f e) / (1 - f r) is liked,
    with f the share of ratings that train.

    Parameters
    ----------
    liked_share
        The liked share of the recommendations that have a test rating.
    judged_share
        The share of recommendations that have a test rating.
    habit
        How readily people rate what they dislike, relative to what they like.
    train_share
        The share of ratings that train.

    Returns
    -------
    float or None
        None where the data do not allow this habit: more than everything would be known.

    Examples
    --------
    >>> from unskew.unbiased.listed_pairs import unrated_liking
    >>> unrated_liking(0.6, 0.05, 1.0)
    0.6
    >>> round(unrated_liking(0.6, 0.05, 0.2), 3)
    0.157
    >>> print(unrated_liking(0.6, 0.3, 0.02))
    None
    """
    check_share("train_share", train_share)
    rated = judged_share / ((1 - train_share) + train_share * judged_share)
    liking = liked_share * habit / (liked_share * habit + 1 - liked_share)
    chance = rated / (liking + habit * (1 - liking)) if liking > 0 else rated / habit
    if chance > SLACK:
        return None
    return liking * (1 - train_share * min(chance, 1.0)) / (1 - train_share * rated)


# Rows of `Estimates`


def check_parts(parts: Sequence[RatedLists], function: str, level: float) -> None:
    """Refuse parts of several splits that do not belong together."""
    if not parts:
        raise SettingError(f"parts: at least one is needed, as {function}(…) makes them")
    if len({(part.listed.systems, part.listed.k) for part in parts}) > 1:
        raise DataError("parts must be of the same systems and the same k")
    check_share("level", level)


def few_users(users: int, what: str) -> str:
    """Say that there are too few users; empty where there are enough."""
    return "" if users > 1 else f"{what} of {counted(users, 'user')}, fewer than 2"


def of_splits(parts: Sequence[RatedLists]) -> str:
    """Say over which places of the lists, of how many splits, a result runs."""
    splits = f" of {len(parts)} splits" if len(parts) > 1 else ""
    return f"in the first {parts[0].listed.k} places{splits}: the share that is liked"
