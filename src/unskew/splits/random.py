"""`Random`: every rating to the test part by chance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from unskew.arrays import I64, Mask, frozen
from unskew.checks import DEFAULT_TEST, as_share, portion
from unskew.data.groups import sort_groups
from unskew.data.ratings import Ratings
from unskew.errors import SettingError
from unskew.settings import choice, count, flag, share
from unskew.splits import draws
from unskew.splits.split import Split, Splitter, by_mask, time_of


@dataclass(frozen=True)
class Random(Splitter):
    """Every rating falls into the test part by chance, independently of all others.

    bellogin2017 section 3, mena2021 section 9, castells2018 section 5.1.1.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.splits.random import Random
    >>> data = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 2]})
    >>> Random(test=0.4, exact=True).split(data, seed=7)
    [Split(random: train 3, test 2)]
    """

    test: float | None = share(
        None, "The probability of the test part: 0.2 unless given, 1 / folds with folds."
    )
    folds: int | None = count(
        None,
        """Draw each rating into one of this many folds instead, all equally likely; each fold is
        the test part once. Folds are not equal in size.""",
        2,
    )
    exact: bool = flag(
        False,
        """Draw exactly `floor(test * n)` of the n ratings instead of flipping coins
        (carraro2020).""",
    )

    name: ClassVar[str] = "random"
    draw_name: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds is None:
            return
        if self.exact:
            raise SettingError("exact=True is for one split; folds are drawn rating by rating")
        if self.test is not None and as_share("test", self.test) != Fraction(1, self.folds):
            raise SettingError(
                f"with folds={self.folds} the test share is 1/{self.folds}; got test={self.test}: "
                f"leave one of them out"
            )

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return self.folds or 1

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split, or one per fold."""
        if self.folds is not None:
            fold = draws.fold_of(ratings, self.folds, seed, "split/random")
            hint = f"the number of ratings is {len(ratings):,}: ask for fewer folds, or a new seed"
            for number in range(self.folds):
                test = fold == number
                label = f"fold{number + 1}"
                yield by_mask(self, ratings, test, label, hint=hint)
            return
        part = as_share("test", DEFAULT_TEST if self.test is None else self.test)
        if self.exact:
            size = int(portion(np.array([len(ratings)]), part)[0])
            test = draws.of_all(ratings, size, seed, "split/random")
        else:
            test = draws.coin(ratings, part, seed, "split/random")
        hint = f"the number of ratings is {len(ratings):,}: take another share or another seed"
        yield by_mask(self, ratings, test, hint=hint)


PICK = ("random", "last", "first")
ROUNDING = ("floor", "half-even")


@dataclass(frozen=True)
class PerUser(Splitter):
    """The same share, or the same number, of every user's ratings goes to the test part.

    With the defaults this is the split of valcarce2018: `floor(0.2 n_u)` of a user's `n_u`
    ratings, drawn at random. Users for whom that is 0 have no test ratings (counted).

    Examples
    --------
    A fifth of ten ratings is two, a fifth of four ratings is none.

    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1] * 10 + [2] * 4, "item": [*range(10), *range(4)]})
    >>> (split,) = us.splits.PerUser(test=0.2).split(data, seed=1)
    >>> split, split.facts["users_without_test"]
    (Split(user: train 12, test 2), 1)
    """

    test: float | None = share(None, "The share of each user's ratings: 0.2 unless given.")
    rounding: str = choice(
        "floor",
        "`floor` or `half-even` (to the nearest whole number, half to the even one).",
        ROUNDING,
    )
    number: int | None = count(
        None,
        """Instead of a share: this many ratings of each user. Users who have no more than that stay
        in training (counted).""",
    )
    pick: str = choice(
        "random",
        """`random`, or the `last` or `first` in time. Where the cut falls between equal time stamps
        the hash decides (such users are counted).""",
        PICK,
    )

    name: ClassVar[str] = "user"
    draw_name: ClassVar[str] = "user"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.number is not None and self.test is not None:
            raise SettingError(
                f"give either a share (test={self.test}) or a number (number={self.number})"
            )

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return 1

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split."""
        if self.number is not None:
            yield _some_of_each(self, ratings, self.number, seed)
            return
        rated = np.diff(ratings.start)
        part = as_share("test", DEFAULT_TEST if self.test is None else self.test)
        size = portion(rated, part, self.rounding)
        yield _by_user(self, ratings, size, seed, hint_share(rated))


@dataclass(frozen=True)
class LeaveOut(Splitter):
    """The same few ratings of every user go to the test part; leave-one-out with n = 1.

    Examples
    --------
    The last rating of each user in time:

    >>> import unskew as us
    >>> rows = {"user": [1, 1, 2, 2], "item": [7, 8, 7, 9], "time": [1, 2, 4, 3]}
    >>> (split,) = us.splits.LeaveOut(pick="last").split(us.read_ratings(rows))
    >>> split.test.to_polars().select("user", "item").rows()
    [(1, 8), (2, 7)]
    """

    n: int = count(
        1,
        "Number of test ratings per user. Users who have no more than that stay in training "
        "(counted).",
    )
    pick: str = choice("random", "`random`, or the `last` or `first` in time; see `PerUser`.", PICK)

    name: ClassVar[str] = "leave-out"
    draw_name: ClassVar[str] = "leave-out"

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return 1

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split."""
        yield _some_of_each(self, ratings, self.n, seed)


def _some_of_each(protocol: PerUser | LeaveOut, ratings: Ratings, number: int, seed: int) -> Split:
    """Move so many ratings of each user who has more to the test part."""
    rated = np.diff(ratings.start)
    highest = int(rated.max(initial=0))
    hint = f"the user with the most ratings has {highest}, so at most {highest - 1} can be left out"
    size = np.where(rated > number, number, 0)
    return _by_user(protocol, ratings, size, seed, ONE_EACH if highest < 2 else hint)


def _by_user(
    protocol: PerUser | LeaveOut, ratings: Ratings, size: I64, seed: int, hint: str
) -> Split:
    """Move `size` ratings of each user to the test part."""
    rated = np.diff(ratings.start)
    facts = {
        "users_without_test": int(np.count_nonzero((size == 0) & (rated > 0))),
        "users_without_train": int(np.count_nonzero((size == rated) & (rated > 0))),
    }
    if protocol.pick == "random":
        test = draws.of_each_user(ratings, size, seed, "split/user")
    else:
        test, facts["users_with_ties_at_cut"] = _in_time(ratings, size, protocol, seed)
    return by_mask(protocol, ratings, test, hint=hint, facts=facts)


def _in_time(
    ratings: Ratings, size: I64, protocol: PerUser | LeaveOut, seed: int
) -> tuple[Mask, int]:
    """Mark the first or last `size` ratings of each user, equal times in random order."""
    time = time_of(ratings, f"{protocol.name}, pick={protocol.pick!r}")
    key = frozen(time if protocol.pick == "first" else -time)
    order, _ = sort_groups(ratings.start, key, draws.keys(ratings, seed, "split/user"))
    mask = draws.first_of_each(ratings.start, order, size)
    return mask, draws.count_tied(ratings.start, order, key, size)


ONE_EACH = "no user has more than one rating: split across users, with splits.Random"


def hint_share(rated: I64) -> str:
    """Say which share would move at least one rating."""
    highest = int(rated.max(initial=0))
    if highest < 2:
        return ONE_EACH
    lowest = math.ceil(10_000 / highest) / 10_000  # rounded up: it can be typed as it stands
    return (
        f"the user with the most ratings has {highest}: one of them is moved from test={lowest:g} "
        "up"
    )
