"""`ItemCounts`: how many users rated and liked each item, and the probabilities that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import checked
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance, relevance_for
from unskew.data.summary import item_counts
from unskew.errors import DataError, SettingError
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.splits.split import shared_rows
from unskew.worlds.worlds import World


@dataclass(frozen=True, eq=False)
class ItemCounts(Result):
    """Whole numbers per item, from which all probabilities of mena2021 (Eq. 5) follow exactly.

    Made by `count_items`, or directly where the numbers are known.

    Examples
    --------
    mena2021 figure 2: ten users; a is rated by four of them and b by two.

    >>> from unskew.bias.popularity.item_counts import ItemCounts
    >>> toy = ItemCounts.known(rated=[4, 2], liked=[3, 1], relevant=[6, 4], users=10)
    >>> toy.p_rel.tolist(), toy.p_rel_train.tolist(), toy.p_rel_unrated.tolist()
    ([0.6, 0.4], [0.75, 0.5], [0.5, 0.375])
    """

    items: Ids
    users: I64
    """|U|: the users who could have rated the item. In a survey, those who were asked about it."""
    rated: I64
    """Users who rated the item."""
    liked: I64
    """Users who rated it and like it."""
    asked: I64 | None = None
    """Users who did not rate it and of whom it is known, at random, whether they like it."""
    asked_liked: I64 | None = None
    """How many of these like it."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.asked is None) != (self.asked_liked is None):
            raise SettingError("asked and asked_liked belong together: give both or neither")
        for name in ("users", "rated", "liked", "asked", "asked_liked"):
            counts = getattr(self, name)
            if counts is not None and counts.shape != (len(self.items),):
                raise DataError(
                    f"{name}: {counts.shape} numbers, but there are {len(self.items):,} items; "
                    f"give one for each"
                )
        self._check_at_most("liked", self.liked, "rated", self.rated)
        self._check_at_most("rated", self.rated, "users", self.users)
        if self.asked is not None and self.asked_liked is not None:
            self._check_at_most("asked_liked", self.asked_liked, "asked", self.asked)

    def _check_at_most(self, part: str, counts: I64, limit: str, limits: I64) -> None:
        wrong = (counts < 0) | (counts > limits)
        if wrong.any():
            index = int(np.argmax(wrong))
            raise DataError(
                f"{part} must lie between 0 and {limit}; item {self.items.values[index]!r} has "
                f"{part} {int(counts[index]):,} and {limit} {int(limits[index]):,} "
                f"({int(wrong.sum()):,} such items)"
            )

    @classmethod
    def known(
        cls,
        rated: ArrayLike,
        liked: ArrayLike,
        users: int | ArrayLike,
        relevant: ArrayLike | None = None,
        items: Sequence[object] | pl.Series | None = None,
    ) -> ItemCounts:
        """Build counts from plain numbers, such as those of a world whose truth is known.

        Parameters
        ----------
        rated, liked
            Users who rated each item, and those of them who like it.
        users
            How many users there are, or could have rated each item.
        relevant
            How many of all these users like the item, rated or not.
        items
            Raw ids, in sorted order; 0, 1, … unless given.
        """
        n, r = _whole("rated", rated), _whole("liked", liked)
        size = n.size
        u = np.broadcast_to(_whole("users", users), (size,))
        raw = np.arange(size) if items is None else items
        ids, codes = Ids.number(pl.Series(raw))
        if len(ids) != size or not np.array_equal(codes, np.arange(size)):
            raise DataError(f"items must be {size:,} different ids in sorted order")
        if relevant is None:
            return cls(ids, frozen(u), frozen(n), frozen(r))
        true = _whole("relevant", relevant)
        return cls(ids, frozen(u), frozen(n), frozen(r), frozen(u - n), frozen(true - r))

    # Which items can be looked at

    @property
    def unrated(self) -> Mask:
        """Items nobody rated: nothing is known about them."""
        unrated: Mask = self.rated == 0
        return unrated

    @property
    def everyone(self) -> Mask:
        """Items that all users rated: infinite odds, and nobody left to recommend them to."""
        everyone: Mask = (self.rated > 0) & (self.rated == self.users)
        return everyone

    @property
    def usable(self) -> Mask:
        """Items with finite popularity odds above 0."""
        usable: Mask = (self.rated > 0) & (self.rated < self.users)
        return usable

    @property
    def identified(self) -> Mask:
        """Usable items of which it is known how many of those who did not rate them like them."""
        if self.asked is None:
            return np.zeros(len(self.items), np.bool_)
        return self.usable & (self.asked > 0)

    def take(self, which: Mask | NDArray[np.integer[Any]]) -> ItemCounts:
        """Return the counts of some items: a mask, or rising item numbers."""
        rows: I64 = np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64)
        names = ("users", "rated", "liked", "asked", "asked_liked")
        columns = {name: getattr(self, name) for name in names}
        taken = {
            name: frozen(column[rows]) for name, column in columns.items() if column is not None
        }
        return ItemCounts(Ids(self.items.raw(rows.tolist())), **taken, notes=self.notes)

    # The probabilities

    @cached_property
    def p_train(self) -> F64:
        """p(train|i), the popularity: the share of users who rated the item."""
        return _share(self.rated, self.users)

    @cached_property
    def odds(self) -> F64:
        """p(train|i) / (1 - p(train|i)); infinite where all users rated."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.rated / (self.users - self.rated)

    @cached_property
    def p_rel_train(self) -> F64:
        """p(rel|train,i), the average rating: the share of its ratings that are liked."""
        return _share(self.liked, self.rated)

    @cached_property
    def p_rel_unrated(self) -> F64:
        """p(rel|¬train,i), the optimal ranking for real precision; NaN where not known."""
        if self.asked is None or self.asked_liked is None:
            return np.full(len(self.items), np.nan)
        return _share(self.asked_liked, self.asked)

    @cached_property
    def p_rel(self) -> F64:
        """p(rel|i): raters as they rated, the others as the random judgments have it."""
        top = self.liked + (self.users - self.rated) * self.p_rel_unrated
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.rated == self.users, self.liked, top) / self.users

    @cached_property
    def p_train_rel(self) -> F64:
        """p(train|rel,i): of the users who like the item, the share who rated it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.liked / (self.p_rel * self.users)

    @cached_property
    def phi_p(self) -> F64:
        """The optimal ranking for observed precision, mena2021 Eq. 8; NaN where there is none."""
        return _share(self.liked, self.users - self.rated)

    @cached_property
    def phi_anti(self) -> F64:
        """The optimal ranking for observed anti-precision, mena2021 Eq. 10."""
        return -_share(self.rated - self.liked, self.users - self.rated)

    def display_table(self) -> pl.DataFrame:
        """Return the ten most rated items."""
        return self.table().sort("rated", "item", descending=[True, False]).head(10)

    def _summary(self) -> str:
        return f"{counted(len(self.items), 'item')}, {counted(int(self.rated.sum()), 'rating')}"

    def _explanation(self) -> list[str]:
        return [f"the most rated of {self._summary()}"]

    def table(self) -> pl.DataFrame:
        """Return a row per item; null where a probability is not defined or not known."""
        columns: dict[str, Any] = {
            "item": self.items.values,
            "users": self.users,
            "rated": self.rated,
            "liked": self.liked,
            "p_train": self.p_train,
            "odds": np.where(self.usable, self.odds, np.nan),
            "p_rel_train": self.p_rel_train,
            "phi_P": self.phi_p,
            "phi_antiP": self.phi_anti,
        }
        if self.asked is not None:
            columns |= {
                "asked": self.asked,
                "asked_liked": self.asked_liked,
                "p_rel": self.p_rel,
                "p_rel_unrated": self.p_rel_unrated,
                "p_train_rel": self.p_train_rel,
            }
        return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))


@checked
def count_items(
    ratings: object,
    *,
    liked: float | None = None,
    random: object | None = None,
    users: int | None = None,
) -> ItemCounts:
    """Count the ratings of each item, and what random judgments say about the others.

    Parameters
    ----------
    ratings
        Ratings as users gave them, or what `read_ratings` reads; a `Dataset`, with its random part
        and what it takes as liked; or a `World`, with its whole truth, counted by blocks of users.
    liked
        The smallest rating that is liked; 4 is assumed on a 1-5 scale.
    random
        Judgments of randomly chosen items. If all ratings are among them (a survey that also asked
        what was familiar, such as CM100k), the users of an item are those who were asked about it.
        Otherwise pairs that are in both count as ratings only.
    users
        How many users there are, |U|; those with a rating unless given.

    Examples
    --------
    >>> from unskew.bias.popularity.item_counts import count_items
    >>> seen = {"user": [1, 2, 3, 1], "item": ["a", "a", "b", "b"], "rating": [5, 2, 4, 1]}
    >>> print(count_items(seen, liked=4).table().select("item", "rated", "liked", "p_train"))
    shape: (2, 4)
    ┌──────┬───────┬───────┬──────────┐
    │ item ┆ rated ┆ liked ┆ p_train  │
    │ ---  ┆ ---   ┆ ---   ┆ ---      │
    │ str  ┆ i64   ┆ i64   ┆ f64      │
    ╞══════╪═══════╪═══════╪══════════╡
    │ a    ┆ 2     ┆ 1     ┆ 0.666667 │
    │ b    ┆ 2     ┆ 1     ┆ 0.666667 │
    └──────┴───────┴───────┴──────────┘
    """
    if isinstance(ratings, World):
        return _of_world(ratings, liked, random, users)
    if isinstance(ratings, Dataset):
        random = ratings.random if random is None else random
        liked = ratings.liked if liked is None else liked
        ratings = ratings.ratings
    seen = _judged(read_ratings(ratings))
    rule, assumed = relevance_for(seen, liked)
    notes = (*seen.notes, *assumed)
    if random is None:
        rated, positive = _rated_and_liked(seen, rule)
        return ItemCounts(seen.items, _users_of(seen, users), rated, positive, notes=notes)
    seen, answers = under_one_numbering(seen, _judged(read_ratings(random)))
    return _with_answers(seen, answers, rule, users, notes)


def _with_answers(
    seen: Ratings, answers: Ratings, rule: Relevance, users: int | None, notes: tuple[str, ...]
) -> ItemCounts:
    """Count ratings, and random judgments of pairs that are not rated."""
    again = shared_rows(answers, seen)
    repeated = int(np.count_nonzero(again))
    rated, positive = _rated_and_liked(seen, rule)
    forced, asked_liked = _rated_and_liked(answers.take(~again), rule)
    everyone = _users_of(seen, users)
    if repeated == len(seen):
        if users is not None:
            raise SettingError(
                "users=… cannot be given here: all ratings are among the random judgments, so the "
                "users of an item are those who were asked about it"
            )
        everyone = frozen(rated + forced)
        note = "all ratings are among the random judgments: the users of an item are those asked"
        notes = (*notes, note)
    elif repeated:
        note = (
            f"{counted(repeated, 'random judgment is of a pair', 'random judgments are of pairs')} "
            "that users rated anyway: counted as ratings"
        )
        notes = (*notes, note)
    return ItemCounts(seen.items, everyone, rated, positive, forced, asked_liked, notes)


def _rated_and_liked(ratings: Ratings, rule: Relevance) -> tuple[I64, I64]:
    """Return how many ratings, and how many liked ones, each item has."""
    liked = np.bincount(ratings.item[rule.is_liked(ratings.value)], minlength=len(ratings.items))
    return frozen(item_counts(ratings).astype(np.int64)), frozen(liked.astype(np.int64))


def _users_of(seen: Ratings, users: int | None) -> I64:
    """Return |U| for each item: the users with a rating unless given."""
    count = int(np.count_nonzero(np.diff(seen.start)))
    if users is not None and users < count:
        raise SettingError(f"users={users}, but {counted(count, 'user has', 'users have')} ratings")
    return frozen(np.full(len(seen.items), count if users is None else users, np.int64))


def _judged(ratings: Ratings) -> Ratings:
    """Leave out what a TREC file holds as in the pool but not judged."""
    pooled = ratings.tags.get("pooled")
    if pooled is None or not pooled.any():
        return ratings
    note = f"{int(pooled.sum()):,} pooled but unjudged pairs are left out"
    return replace(ratings.take(~pooled.to_numpy()), notes=(*ratings.notes, note))


def _of_world(
    world: World, liked: float | None, random: object | None, users: int | None
) -> ItemCounts:
    """Count what users of a world rated, and what all of them like."""
    for name, value in {"random": random, "users": users}.items():
        if value is not None:
            raise SettingError(f"{name} is for ratings: the whole truth of a world is known")
    threshold = world.liked if liked is None else liked
    rateable = np.zeros(len(world.items), np.int64)
    relevant = np.zeros(len(world.items), np.int64)
    for block in world.blocks():
        value = world.values(block)  # NaN, where it is not known, is neither
        rateable += np.count_nonzero(~np.isnan(value), axis=0)
        relevant += np.count_nonzero(value >= threshold, axis=0)
    seen = world.ratings
    rated = item_counts(seen)
    positive = np.bincount(seen.item[seen.value >= threshold], minlength=rated.size)
    return ItemCounts(
        items=world.items,
        users=frozen(rateable),
        rated=frozen(rated.astype(np.int64)),
        liked=frozen(positive.astype(np.int64)),
        asked=frozen(rateable - rated),
        asked_liked=frozen(relevant - positive),
        notes=(f"the truth is known: {world}",),
    )


def counts_of(
    ratings: object, liked: float | None, random: object | None, users: int | None
) -> ItemCounts:
    """Return counts as they are, or count; settings that would be ignored are refused."""
    if not isinstance(ratings, ItemCounts):
        return count_items(ratings, liked=liked, random=random, users=users)
    arguments = {"liked": liked, "random": random, "users": users}
    for name, value in arguments.items():
        if value is not None:
            raise SettingError(f"{name} is part of the item counts already: leave it out here")
    return ratings


def _share(top: I64, bottom: I64) -> F64:
    """Divide; NaN where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


def _whole(name: str, values: ArrayLike) -> I64:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise DataError(f"{name}: whole numbers are needed, one per item; got {values!r}")
    return array.astype(np.int64)
