"""`liked_shares`: of the judged items that a system recommends, how many are liked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, check_share, checked
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import size_of_sums
from unskew.judging.judge import DataOptions, as_judged, second_argument
from unskew.report.columns import ESTIMATE, SYSTEM, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.runs import Run
from unskew.stats.clusters import FEWEST
from unskew.stats.intervals.means import student_ends
from unskew.unbiased.listed_pairs import (
    ExcessLiking,
    ListedPairs,
    RatedLists,
    check_parts,
    few_users,
    of_splits,
    pair_numbers,
    sums_of,
)
from unskew.unbiased.user_sums import UserSum, difference_row, share_row
from unskew.unbiased.weighted_averages import LEVEL

CUT = 0.95
"""Weights are cut at this quantile of those in the lists."""
FEWEST_OTHERS = 3
"""With fewer further ratings nothing says how often a user likes things."""
PERIODS = 10
"""Parts of equally many ratings in time, each with its own share of liked ones."""
PLAIN, LEVELLED = 0, 1


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
WITHIN_USERS = Question(
    name="liked shares within users",
    columns=tuple(column for column in SHARES.columns if column.name != "levelled"),
    method=Method(
        estimand="how much more often judged recommendations are liked than other ratings of the "
        "same users",
        interval="t",
        level=LEVEL,
    ),
).of_pairs()
LISTED_ITEMS = Question(
    name="liking of listed items",
    columns=(SYSTEM, Column("ratings", "count"), *ESTIMATE),
    method=Method(
        estimand="how much more often listed items are liked, by whoever rates them, than other "
        "ratings of the same users",
        interval="t",
        level=LEVEL,
    ),
).of_pairs()


@dataclass(frozen=True, eq=False)
class _LikedSums:
    """The parts of all splits added up; `kind` is PLAIN or LEVELLED, systems are numbers."""

    systems: tuple[str, ...]
    judged: F64
    """2 x systems x users: sums of weights of judged items."""
    liked: F64
    """The same of liked ones."""
    shared: F64
    """2 x systems x systems: squared weights of the judged items that both list, added up."""
    number: I64
    """Judged recommendations by system, over all splits."""
    compared: F64
    """Systems x users: judged items of users with enough further ratings."""
    excess: F64
    """Systems x users: of these, the liked ones beyond what the users' other ratings expect."""
    once: F64
    """By system: the share of these that surely are different ones.

    A user's judged items of one split are different ones, those of several splits may be the same.
    """

    @classmethod
    def of(cls, parts: Sequence[RatedLists]) -> _LikedSums:
        users, systems = np.unique(np.concatenate([p.user for p in parts])), parts[0].listed.systems
        shape = 2, len(systems), users.size
        judged, liked, highest = np.zeros(shape), np.zeros(shape), np.zeros(shape[1:])
        compared, excess = np.zeros(shape[1:]), np.zeros(shape[1:])
        shared = np.zeros((2, len(systems), len(systems)))
        for part in parts:
            mask = part.lists.astype(np.float64)
            for kind, weight in enumerate((np.ones(part.pair.size), part.weight)):
                shared[kind] += (mask * weight**2) @ mask.T
                for system, mine in enumerate(part.lists):
                    added = sums_of(users, part.user[mine], weight[mine])
                    judged[kind, system] += added
                    liked[kind, system] += sums_of(
                        users, part.user[mine], (weight * part.liked)[mine]
                    )
                    if kind == PLAIN:
                        highest[system] = np.maximum(highest[system], added)
            has_usual, beyond = ~np.isnan(part.excess), np.nan_to_num(part.excess)
            for system, mine in enumerate(part.lists):
                compared[system] += sums_of(users, part.user[mine & has_usual])
                excess[system] += sums_of(users, part.user[mine], beyond[mine])
        number = judged[PLAIN].sum(axis=1)
        once = highest.sum(axis=1) / np.maximum(number, 1.0)
        count = number.astype(np.int64)
        return cls(systems, judged, liked, shared, count, compared, excess, once)

    def effective(self, system: int, kind: int) -> float:
        """As many equal ratings, each counted once, would be as precise (Kish)."""
        weight = float(self.judged[kind, system].sum())
        size = size_of_sums(weight, float(self.shared[kind, system, system]))
        return size * float(self.once[system])

    def liked_share(self, system: int, kind: int) -> UserSum:
        """Return the weight of liked items by that of judged ones."""
        return UserSum.of(self.liked[kind, system]) / UserSum.of(self.judged[kind, system])

    def share(self, system: int, kind: int, level: float) -> dict[str, Any]:
        """Return the row of a system."""
        effective = self.effective(system, kind)
        users = int(np.count_nonzero(self.judged[kind, system]))
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
        return facts | share_row(self.liked_share(system, kind), users, effective, level)

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
        shares = [self.liked_share(index, kind) for index in indices]
        difference = shares[0] - shares[1]
        return facts | difference_row(difference, shares, effective, users, spread, level)

    def within_users(self, a: int, b: int, level: float) -> dict[str, Any]:
        """Return the row of two systems, each against the other ratings of the same users."""
        row = self.difference(a, b, PLAIN, level)
        del row["levelled"]
        indices = [a, b]
        row["n"] = users = int(np.count_nonzero(self.compared[indices].sum(axis=0)))
        reason = row.get("note") or few_users(users, "judged recommendations")
        if reason or self.compared[indices].sum(axis=1).min() < FEWEST:
            row["note"] = reason or "too few judged recommendations of users with other ratings"
            return {key: row[key] for key in row if key not in ("value", "se", "low", "high")}
        first, second = (
            UserSum.of(self.excess[index]) / UserSum.of(self.compared[index]) for index in indices
        )
        shares = [self.liked_share(index, PLAIN) for index in indices]
        effective, spread = [row["effective"]] * 2, self.spread(a, b, PLAIN)
        return row | difference_row(first - second, shares, effective, users, spread, level)

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
    parts: Sequence[RatedLists], level: float = LEVEL, notes: Sequence[str] = ()
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
    sums, systems = _LikedSums.of(parts), range(len(parts[0].listed.systems))
    kinds = PLAIN, LEVELLED
    shares = [sums.share(system, kind, level) for kind in kinds for system in systems]
    pairs = [
        sums.difference(a, b, kind, level) for kind in kinds for a, b in combinations(systems, 2)
    ]
    within = [sums.within_users(a, b, level) for a, b in combinations(systems, 2)]
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
        parts={
            "pairs": Estimates.of_rows(DIFFERENCES, pairs, level=level),
            "within users": Estimates.of_rows(WITHIN_USERS, within, level=level),
            "listed items": Estimates.of_rows(
                LISTED_ITEMS, _listed_items(parts, level), level=level
            ),
        },
        card={"k": parts[0].listed.k, "splits": len(parts)},
    )


def _listed_items(parts: Sequence[RatedLists], level: float) -> list[dict[str, Any]]:
    """Return the rows of all pairs of systems: by how much their listed items are liked.

    An item counts as often as it is listed, and is worth what its test ratings say, whoever gave
    them; items without any are left out. Errors are by user, as if nothing were liked beyond the
    usual, which is on the safe side.
    """
    systems = parts[0].listed.systems
    users = np.unique(np.concatenate([part.units(part.tests.user) for part in parts]))
    worth = np.zeros((len(systems), users.size))
    ratings = np.zeros(len(systems), np.int64)
    for part in parts:
        number = np.bincount(part.tests.item, minlength=part.listed.width)
        for system, pairs in enumerate(part.listed.pairs):
            times = np.bincount(pairs % part.listed.width, minlength=part.listed.width)
            counted = np.where(number > 0, times, 0)
            ratings[system] += int(number[counted > 0].sum())
            weight = counted / max(counted.sum(), 1) / np.maximum(number, 1) / len(parts)
            moved = weight[part.tests.item] * part.tests.excess
            worth[system] += sums_of(users, part.units(part.tests.user), moved)
    rows = []
    for a, b in combinations(range(len(systems)), 2):
        keys = {"system": systems[a], "against": systems[b], "n": int(users.size)}
        row = keys | {"ratings": int(ratings[a]), "ratings_against": int(ratings[b])}
        influence = worth[a] - worth[b]
        se = float(np.sqrt((influence**2).sum()))
        reason = few_users(users.size, "test ratings") or ("" if se else "the same items")
        if reason:
            rows.append(row | {"note": reason})
            continue
        value = float(influence.sum())
        low, high = student_ends(value, se, users.size - 1, level)
        rows.append(row | {"value": value, "se": se, "low": low, "high": high})
    return rows


def liked_part(
    train: Ratings | None, test: Ratings, runs: Mapping[str, Run], relevance: Relevance, k: int
) -> RatedLists:
    """Find the judged items in the lists of one split, with their weights when levelled.

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
    >>> part.user.tolist(), part.liked.tolist(), part.lists.tolist()
    ([0, 0], [True, False], [[True, True]])
    """
    listed, (rated,) = ListedPairs.of_runs(runs, as_count("k", k), test)
    return _part(train, test, listed, rated, relevance)


def _part(
    train: Ratings | None, test: Ratings, listed: ListedPairs, rated: I64, relevance: Relevance
) -> RatedLists:
    part = RatedLists.of(listed, rated, relevance.is_liked(test.value))
    if not part.pair.size:
        return part
    of_item, of_user = _counts(train, test)
    uneven = 1.0 / (of_item[part.pair % listed.width] * of_user[part.user])
    excess = _excess(train, test, relevance)
    order = np.argsort(rated, kind="stable")
    row = order[np.searchsorted(rated, part.pair, sorter=order)]
    known = ~np.isnan(excess)
    user, item = test.user[known].astype(np.int64), test.item[known].astype(np.int64)
    return replace(
        part,
        weight=frozen(np.minimum(uneven, np.quantile(uneven, CUT))),
        excess=frozen(excess[row]),
        tests=ExcessLiking(user, item, excess[known]),
    )


def _excess(train: Ratings | None, test: Ratings, relevance: Relevance) -> F64:
    """Return by how much each test rating is liked beyond the other ratings of its user.

    Each rating is compared with those of its period first, so that a time in which everybody likes
    more does not count for the items of that time. NaN for users with too few other ratings.
    """
    parts = [test] if train is None else [test, train]
    user = np.concatenate([part.user for part in parts])
    liked = np.concatenate([relevance.is_liked(part.value) for part in parts]).astype(np.float64)
    if all(part.time is not None for part in parts):
        liked = liked - _period_shares(liked, np.concatenate([part.time for part in parts]))
    others = np.bincount(user)[user] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        usual = (np.bincount(user, liked)[user] - liked) / others
    beyond = np.where(others >= FEWEST_OTHERS, liked - usual, np.nan)
    return beyond[: len(test)]


def _period_shares(liked: F64, time: I64) -> F64:
    """Return the share that is liked of the ratings of each one's period."""
    edges = np.quantile(time, np.arange(1, PERIODS) / PERIODS)
    period = np.searchsorted(edges, time, side="right")
    share: F64 = (np.bincount(period, liked) / np.maximum(np.bincount(period), 1))[period]
    return share


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
    active users do not dominate. *Within users* (`parts["within users"]`), a judged item counts
    what it is liked beyond the other ratings of the same user in the same period, so that generous
    users and generous times do not count for the systems that happen to be judged by them. *Listed
    items* (`parts["listed items"]`) are judged the same way by whoever rates them, listed for the
    rater or not: much more data, and nothing personal.

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
    rated = pair_numbers(test, listed.width)
    return liked_shares_of([_part(train, test, listed, rated, judged.relevance)], level, notes)
