"""`shown_at_random`: the true precision of lists, from ratings of randomly shown pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np

from unskew.arrays import F64, I64
from unskew.checks import as_count, check_share, checked
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance
from unskew.judging.judge import DataOptions, as_judged, second_argument
from unskew.report.columns import ESTIMATE, SYSTEM, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.runs import Run
from unskew.stats.clusters import FEWEST
from unskew.unbiased.listed_pairs import (
    ListedPairs,
    RatedLists,
    check_parts,
    extended,
    few_users,
    of_splits,
    pair_numbers,
    sums_of,
    users_of,
)
from unskew.unbiased.user_sums import UserSum, difference_row, share_row
from unskew.unbiased.weighted_averages import LEVEL

TRUE_PRECISION = Question(
    name="true precision",
    columns=(SYSTEM, Column("shown", "count"), *ESTIMATE),
    method=Method(
        estimand="the share of what the lists hold that is liked", interval="Wilson", level=LEVEL
    ),
)
DIFFERENCES = TRUE_PRECISION.of_pairs(Column("effective", "fact"), Column("overlap", "share"))


@dataclass(frozen=True, eq=False)
class _RandomSide:
    """What one of two systems lists and the other does not."""

    places: F64
    """By user, over all splits."""
    shown: F64
    liked: F64
    different: float
    """Pairs shown that surely are different ones: the most in one split, user by user."""

    @classmethod
    def of(cls, parts: Sequence[RatedLists], users: I64, a: int, b: int | None) -> _RandomSide:
        """Add up, by user and over splits, what a lists and b (None: nobody) does not."""
        places, exposed, liked, highest = (np.zeros(users.size) for _ in range(4))
        for part in parts:
            mine = part.lists[a] if b is None else part.lists[a] & ~part.lists[b]
            listed = part.listed
            owner = listed.pairs[a] // listed.width if b is None else listed.only(a, b)
            places += sums_of(users, part.units(owner))
            shown = sums_of(users, part.user[mine])
            exposed += shown
            liked += sums_of(users, part.user[mine & part.liked])
            highest = np.maximum(highest, shown)
        return cls(places, exposed, liked, float(highest.sum()))

    @property
    def liked_share(self) -> UserSum:
        """How many of the pairs shown are liked."""
        return UserSum.of(self.liked) / UserSum.of(self.shown)


def random_slice_of(
    parts: Sequence[RatedLists], level: float = LEVEL, notes: Sequence[str] = ()
) -> Estimates:
    """Return the true precision of systems, and the part `pairs`, from what splits add up to.

    The lists of all splits of one data set are averaged and the user stays the unit: a split that
    stands twice changes nothing.

    Parameters
    ----------
    parts
        Of each split, as `random_part` makes them.
    level
        Of the intervals.
    notes
        What was counted, assumed or left out.
    """
    check_parts(parts, "random_part", level)
    users = users_of(parts)
    systems = range(len(parts[0].listed.systems))
    pairs = [_pair(parts, users, a, b, level) for a, b in combinations(systems, 2)]
    number, left = (sum(getattr(p, name) for p in parts) for name in ("rated", "in_training"))
    lines = (
        f"randomly shown pairs {of_splits(parts)}; {level:.0%} intervals by user",
        f"{number:,} randomly shown pairs; {left:,} more are in training and left out",
    )
    return Estimates.of_rows(
        TRUE_PRECISION,
        [_share(parts, users, system, level) for system in systems],
        level=level,
        explanation=lines,
        notes=tuple(notes),
        parts={"pairs": Estimates.of_rows(DIFFERENCES, pairs, level=level)},
        card={"k": parts[0].listed.k, "splits": len(parts), "shown": number, "in_training": left},
    )


def _share(parts: Sequence[RatedLists], everyone: I64, system: int, level: float) -> dict[str, Any]:
    """Return the row of a system."""
    name, side = parts[0].listed.systems[system], _RandomSide.of(parts, everyone, system, None)
    users = int(np.count_nonzero(side.shown))
    facts = {"system": name, "shown": int(side.shown.sum()), "n": users}
    reason = _too_few(side, f"{name} lists") or few_users(users, "randomly shown pairs")
    if reason:
        return facts | {"note": reason}
    return facts | share_row(side.liked_share, users, side.different, level)


def _pair(
    parts: Sequence[RatedLists], everyone: I64, a: int, b: int, level: float
) -> dict[str, Any]:
    """Return the row of two systems: only what one of the two lists matters."""
    first, second = (_RandomSide.of(parts, everyone, *pair) for pair in ((a, b), (b, a)))
    names = [parts[0].listed.systems[system] for system in (a, b)]
    places = float(first.places.sum() + second.places.sum())
    listed = sum(part.listed.pairs[system].size for part in parts for system in (a, b))
    users = int(np.count_nonzero(first.shown + second.shown))
    facts = {
        "system": names[0],
        "against": names[1],
        "shown": int(first.shown.sum()),
        "shown_against": int(second.shown.sum()),
        "effective": min(first.different, second.different),
        "n": users,
        "overlap": 1.0 - places / listed if listed else 0.0,
    }
    reason = (
        ("the two lists do not differ" if not places else "")
        or _too_few(first, f"{names[0]} and not {names[1]} lists")
        or _too_few(second, f"{names[1]} and not {names[0]} lists")
        or few_users(users, "randomly shown pairs")
        or _no_contrast(first, second)
    )
    if reason:
        return facts | {"note": reason}
    lists, k = np.zeros(everyone.size), parts[0].listed.k
    for part in parts:
        either = np.union1d(part.listed.owners[a], part.listed.owners[b])
        lists += sums_of(everyone, part.units(either))
    shares = [side.liked_share for side in (first, second)]
    # c_a s_a - c_b s_b, with c the shares of places on either side.
    of_a, of_b = (UserSum.of(side.places / k) / UserSum.of(lists) for side in (first, second))
    difference = of_a * shares[0] - of_b * shares[1]
    different = [side.different for side in (first, second)]
    spread = of_a.value**2 / different[0] + of_b.value**2 / different[1]
    return facts | difference_row(difference, shares, different, users, spread, level)


def _too_few(side: _RandomSide, what: str) -> str:
    if side.different >= FEWEST:
        return ""
    number = counted(int(side.different), "randomly shown pair is", "randomly shown pairs are")
    return f"{number} among what {what}, fewer than {FEWEST}"


def _no_contrast(first: _RandomSide, second: _RandomSide) -> str:
    liked, exposed = first.liked + second.liked, first.shown + second.shown
    if not liked.any():
        return "no randomly shown pair that one of the two lists is liked"
    return "every randomly shown pair that one of the two lists is liked" * int(
        (liked == exposed).all()
    )


def random_part(
    train: Ratings | None, random: Ratings, runs: Mapping[str, Run], relevance: Relevance, k: int
) -> RatedLists:
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
    >>> part.rated, part.in_training, part.liked.tolist()
    (2, 1, [True])
    """
    ratings = [random] if train is None else [train, random]
    listed, numbers = ListedPairs.of_runs(runs, as_count("k", k), *ratings)
    trained = None if train is None else numbers[0]
    return RatedLists.of(listed, numbers[-1], relevance.is_liked(random.value), trained)


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
) -> Estimates:
    """Estimate true precision, and its differences, from pairs that were shown at random.

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
    >>> pair.value, pair.facts["overlap"]  # half of the places differ: half of .75 - .25
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
    rated = user[inner.user].astype(np.int64) * listed.width + item[inner.item]
    trained = None if train is None else pair_numbers(train, listed.width)
    part = RatedLists.of(listed, rated, judged.relevance.is_liked(inner.value), trained)
    part = replace(part, rated=part.rated + int(np.count_nonzero(~inside)))
    return random_slice_of([part], level, judged.notes)
