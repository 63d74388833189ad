"""`liked_shares`: of the judged items that a system recommends, how many are liked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Unpack

import numpy as np

from unskew.arrays import F64, I32, I64, frozen
from unskew.checks import as_count, check_share, checked
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.judging.judge import DataOptions, as_judged, second_argument
from unskew.report.columns import ESTIMATE, SYSTEM, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.runs import Run
from unskew.stats.clusters import FEWEST, aligned_users, drawn_in, ratio
from unskew.unbiased.listed_pairs import (
    ListedPairs,
    check_parts,
    difference_row,
    extended,
    few_users,
    of_splits,
    pair_numbers,
    share_row,
)
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


SHARES = Question(
    name="liked shares",
    columns=(
        *(SYSTEM, Column("levelled", "switch")),
        *(Column("judged", "count"), Column("effective", "fact"), *ESTIMATE),
    ),
    method=Method(
        estimand="the share of judged recommendations that is liked", interval="Wilson", level=LEVEL
    ),
)
DIFFERENCES = SHARES.of_pairs()


@dataclass(frozen=True, eq=False)
class _LikedSums:
    """The parts of all splits added up; `kind` is PLAIN or LEVELLED, systems are numbers."""

    systems: tuple[str, ...]
    judged: F64
    liked: F64
    shared: F64
    number: I64
    """Judged recommendations by system, over all splits."""
    once: F64
    """By system: the share of these that surely are different ones.

    A user's judged items of one split are different ones, those of several splits may be the same.
    """

    @classmethod
    def of(cls, parts: Sequence[LikedPart]) -> _LikedSums:
        everyone, places = aligned_users([part.users for part in parts])
        shape = (2, len(parts[0].systems), everyone.size)
        judged, liked = np.zeros(shape), np.zeros(shape)
        highest = np.zeros(shape[1:])
        for part, columns in zip(parts, places, strict=True):
            judged[:, :, columns] += part.judged
            liked[:, :, columns] += part.liked
            highest[:, columns] = np.maximum(highest[:, columns], part.judged[PLAIN])
        number = judged[PLAIN].sum(axis=1)
        once = highest.sum(axis=1) / np.maximum(number, 1.0)
        shared = np.sum([part.shared for part in parts], axis=0)
        return cls(parts[0].systems, judged, liked, shared, number.astype(np.int64), once)

    def effective(self, system: int, kind: int) -> float:
        """As many equal ratings, each counted once, would be as precise (Kish)."""
        squares = float(self.shared[kind, system, system])
        weight = float(self.judged[kind, system].sum())
        return weight**2 / squares * float(self.once[system]) if squares > 0 else 0.0

    def share(self, system: int, kind: int, level: float) -> dict[str, Any]:
        """Return the row of a system."""
        bottom, effective = self.judged[kind, system], self.effective(system, kind)
        users = int(np.count_nonzero(bottom))
        facts = {
            "system": self.systems[system],
            "levelled": bool(kind),
            "judged": int(self.number[system]),
            "effective": effective,
            "n": users,
        }
        reason = self.too_few(system) or few_users(users, "judged recommendations")
        if reason:
            return facts | {"note": reason}
        return facts | share_row(self.liked[kind, system], bottom, effective, level)

    def difference(self, a: int, b: int, kind: int, level: float) -> dict[str, Any]:
        """Return the row of two systems, paired by user."""
        indices = [a, b]
        users = int(np.count_nonzero(self.judged[kind, indices].sum(axis=0)))
        effective = [self.effective(index, kind) for index in indices]
        facts = {
            "system": self.systems[a],
            "against": self.systems[b],
            "levelled": bool(kind),
            "judged": int(self.number[a]),
            "judged_against": int(self.number[b]),
            "effective": min(effective),
            "n": users,
        }
        spread = self.spread(a, b, kind) if min(effective) > 0 else 0.0
        reason = (
            self.too_few(a)
            or self.too_few(b)
            or few_users(users, "judged recommendations")
            or self.no_contrast(indices, kind, spread)
        )
        if reason:
            return facts | {"note": reason}
        first, second = (ratio(self.liked[kind, i], self.judged[kind, i]) for i in indices)
        total = sum(effective)
        pooled = (first.value * effective[0] + second.value * effective[1]) / total
        inner = drawn_in(pooled, total)
        return facts | difference_row(
            first.value - second.value,
            first.influence - second.influence,
            users,
            floor=inner * (1 - inner) * spread,
            effective=min(effective),
            level=level,
        )

    def spread(self, a: int, b: int, kind: int) -> float:
        """Return Σ (w/J_a - w/J_b)² over judged items, with those that both list counted there."""
        shared = self.shared[kind]
        of_a, of_b = (float(self.judged[kind, index].sum()) for index in (a, b))
        spread = shared[a, a] / of_a**2 + shared[b, b] / of_b**2 - 2 * shared[a, b] / of_a / of_b
        return float(spread / min(self.once[a], self.once[b]))

    def too_few(self, system: int) -> str:
        different = math.ceil(float(self.number[system] * self.once[system]) - 1e-9)
        if different >= FEWEST:
            return ""
        judged = counted(different, "judged item")
        return f"{self.systems[system]} recommends {judged}, fewer than {FEWEST}"

    def no_contrast(self, indices: list[int], kind: int, spread: float) -> str:
        """Say why there is nothing to compare: no dislike, no like, or the same judged items."""
        top, bottom = self.liked[kind, indices], self.judged[kind, indices]
        if (top == bottom).all():
            return "every judged item that either recommends is liked"
        if not top.any():
            return "no judged item that either recommends is liked"
        return "both recommend the same judged items" if spread <= 1e-12 else ""


def liked_shares_of(
    parts: Sequence[LikedPart], level: float = LEVEL, notes: Sequence[str] = ()
) -> Estimates:
    """Return the liked shares of systems, and the part `pairs`, from what splits add up to.

    Sums run over all splits of one data set and the user stays the unit: a split that stands twice
    changes nothing.

    Parameters
    ----------
    parts
        Of each split, as `liked_part` makes them.
    level
        Of the intervals.
    notes
        What was counted, assumed or left out.
    """
    check_parts(parts, "liked_part", level)
    sums, systems = _LikedSums.of(parts), range(len(parts[0].systems))
    kinds = PLAIN, LEVELLED
    shares = [sums.share(system, kind, level) for kind in kinds for system in systems]
    pairs = [
        sums.difference(a, b, kind, level) for kind in kinds for a, b in combinations(systems, 2)
    ]
    lines = (
        f"judged items {of_splits(parts)}; {level:.0%} intervals by user",
        "levelled: a judged item counts 1 / (ratings of its item x ratings of its user), cut "
        f"at the {CUT:.0%} quantile",
    )
    return Estimates.of_rows(
        SHARES,
        shares,
        level=level,
        explanation=lines,
        notes=tuple(notes),
        parts={"pairs": Estimates.of_rows(DIFFERENCES, pairs, level=level)},
        card={"k": parts[0].k, "splits": len(parts)},
    )


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


@checked
def liked_shares(
    judgments: object,
    runs: object = None,
    k: int = 10,
    *,
    level: float = LEVEL,
    seed: int = 0,
    **data: Unpack[DataOptions],
) -> Estimates:
    """Return the share of each system's judged recommendations that is liked, and differences.

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
    return liked_shares_of([_part(train, test, listed, judged.relevance)], level, notes)
