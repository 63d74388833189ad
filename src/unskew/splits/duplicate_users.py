"""`duplicate_users`: which accounts of a set of ratings are one person, household or script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from unskew.arrays import I32, I64, frozen
from unskew.checks import checked
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.report.columns import GROUP, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted

WIDER = 1.01
"""From this design effect on duplicates are mentioned: with less no interval changes visibly."""
FEWEST_USERS = 50
"""Of fewer accounts nothing is known of how active a person can be."""
FEWEST_ROWS = 100
"""Fewer ratings are never beyond a person."""
BEYOND = 1e-3
"""The chance that the most active of all people is beyond the limit, if numbers are lognormal."""
UPPER = (0.75, 0.9, 0.95, 0.98, 0.99)
"""The quantiles from which it follows how far numbers of ratings spread."""
GAP = 4.0
"""An account beyond people is at least so many times as active as the most active person …"""
UNLIKELY = 0.01
"""… and so many times that people leave such a gap with this chance."""
EXAMPLES = 5

DUPLICATES = Question(
    name="near-duplicate users",
    columns=(
        *(GROUP, Column("n", "count", "accounts"), Column("value", "value", "shared", form="%")),
        Column("examples", "names"),
    ),
    method=Method(
        estimand="the share of an account's items that the first account of its group has too",
        unit="accounts",
    ),
    display=("",),
    digits=0,
)
"""A row per group, the largest first; a group is named after its first account."""
MEMBERS = Question(
    name="accounts of groups of near-duplicates",
    columns=(Column("user", "key"), GROUP),
    method=Method(estimand="the group of an account", unit="accounts"),
    figures=(),
)
BUSY = Question(
    name="accounts with more ratings than a person gives",
    columns=(Column("user", "key"), Column("n", "count", "ratings"), Column("limit", "fact")),
    method=Method(estimand="the number of ratings of an account", unit="accounts"),
    figures=(),
    digits=0,
)


@dataclass(frozen=True, eq=False)
class DuplicateAccounts:
    """Near-duplicates among the users of a set of ratings, and accounts busier than people."""

    ratings: Ratings
    first: I32
    """For each user the first account of its group: mostly the user."""

    @classmethod
    def of(cls, *parts: Ratings) -> DuplicateAccounts:
        """Search ratings, or several parts of them such as training and test ratings."""
        from unskew.splits.diagnosis.duplicate_groups import duplicate_groups

        ratings = _pooled(parts)
        return cls(ratings, duplicate_groups(ratings))

    @cached_property
    def sizes(self) -> I64:
        """How many accounts each user's group has; 0 for users that are not the first of one."""
        return np.bincount(self.first, minlength=self.first.size).astype(np.int64)

    @cached_property
    def groups(self) -> I64:
        """The first accounts of groups of at least two, the largest group first."""
        first = np.flatnonzero(self.sizes > 1)
        return first[np.argsort(-self.sizes[first], kind="stable")]

    @property
    def users(self) -> int:
        """How many users have ratings."""
        return int(np.count_nonzero(np.diff(self.ratings.start)))

    @property
    def effective(self) -> float:
        """How many independent users the users are worth, if accounts of a group are one."""
        size = self.sizes[self.groups].astype(np.float64)
        others = self.users - size.sum()
        return float(self.users**2 / (others + (size**2).sum())) if self.users else 0.0

    @property
    def conclusion(self) -> str:
        """How many accounts are near-duplicates, in a sentence."""
        if not self.groups.size:
            return f"No accounts are near-duplicates among {counted(self.users, 'user')}."
        accounts = counted(int(self.sizes[self.groups].sum()), "account is", "accounts are")
        return f"{accounts} near-duplicates, in {counted(self.groups.size, 'group')}."

    def names(self, users: I64 | I32) -> list[str]:
        """Return raw ids as text."""
        return [str(name) for name in self.ratings.users.raw(users.astype(np.int32))]

    def members(self, group: int) -> I64:
        """Return the accounts of a group."""
        return np.flatnonzero(self.first == group)

    def shared(self, group: int) -> float:
        """Return which share of its items an account shares with the first of its group."""
        start, item = self.ratings.start, self.ratings.item
        mine = item[start[group] : start[group + 1]]
        shares = [
            np.isin(item[start[user] : start[user + 1]], mine).mean()
            for user in self.members(group)[1:]
        ]
        return float(np.mean(shares))

    def notes(self) -> list[str]:
        """Return what people should know before they trust an interval; nothing in clean data."""
        effective, users = self.effective, self.users
        if not self.groups.size or users < WIDER * effective:
            return []
        group = int(self.groups[0])
        first, second = self.names(self.members(group)[:2])
        many = int(self.sizes[self.groups].sum())
        accounts = counted(many, "user is a near-duplicate", "users are near-duplicate accounts")
        worth = counted(users, "user is", "users are")
        return [
            f"{accounts} in {counted(self.groups.size, 'group')} (such as {first} and {second}: "
            f"{self.shared(group):.0%} of their items are the same). Intervals and p-values that "
            f"count every account are too narrow: {worth} worth about {effective:,.0f} independent "
            "ones. Count groups instead with group_users='detected', or state the groups with "
            "group_users='FILE:COLUMN'"
        ]

    @cached_property
    def busy(self) -> tuple[I64, float]:
        """Users with more ratings than any person gives, and the largest number of a person."""
        limit = _limit(self.events[self.events > 0])
        return np.flatnonzero(self.events > limit), limit

    @cached_property
    def events(self) -> I64:
        """How many ratings each user has; of counted events, how many events."""
        ratings = self.ratings
        if ratings.implicit and ratings.value.size and (ratings.value % 1 == 0).all():
            sums = np.bincount(ratings.user, ratings.value, len(ratings.users))
            return sums.astype(np.int64)
        return np.diff(ratings.start).astype(np.int64)

    def busy_notes(self) -> list[str]:
        """Return a note on accounts that are busier than people; nothing without any."""
        users, limit = self.busy
        if not users.size:
            return []
        rows = self.events
        top = users[np.argmax(rows[users])]
        (name,) = self.names(np.array([top]))
        who = counted(users.size, "account has", "accounts have")
        return [
            f"{who} more ratings than a person gives, such as {name} with {int(rows[top]):,} "
            f"(half of the users have at most {np.median(rows[rows > 0]):,.0f}; up to {limit:,.0f} "
            "would be plausible): leave them out if they are scripts "
            f"(the filter max-counts:users={int(limit)})"
        ]


def _limit(rows: I64) -> float:
    """Return how many ratings the most active person may have, given those of all users.

    The larger of two bounds. One is what the most active of all users exceeds with a chance of
    0.001 if numbers are lognormal, with their median and the widest of their upper quantiles. The
    other extends the tail of the users below that bound (a power law through the most active 5 %,
    Hill 1975) by a gap that people leave with a chance of 0.01, and at least fourfold.
    """
    if rows.size < FEWEST_USERS:
        return float("inf")
    normal = NormalDist()
    middle, *upper = np.log(np.quantile(rows, (0.5, *UPPER))).tolist()
    width = max(
        (quantile - middle) / normal.inv_cdf(share)
        for quantile, share in zip(upper, UPPER, strict=True)
    )
    limit = 1.01 * np.exp(min(middle + width * normal.inv_cdf(1 - BEYOND / rows.size), 50.0))
    people = np.sort(rows[rows <= limit])
    top = np.log(people[-max(people.size // 20, 10) :])
    gap = max(np.log(GAP), float((top - top[0]).mean()) * np.log(1 / UNLIKELY))
    return float(max(limit, np.exp(top[-1] + gap), FEWEST_ROWS))


def _pooled(parts: Sequence[Ratings]) -> Ratings:
    """Return the ratings of all parts over one numbering, each pair once."""
    if len(parts) == 1:
        return parts[0]
    users, user_tables = Ids.union(*(part.users for part in parts))
    items, item_tables = Ids.union(*(part.items for part in parts))
    tables = zip(parts, user_tables, item_tables, strict=True)
    rows = [part.recode(users, to_user, items, to_item) for part, to_user, to_item in tables]
    columns: dict[str, Any] = {
        name: frozen(np.concatenate([getattr(part, name) for part in rows]))
        for name in ("user", "item", "value")
    }
    times = [part.time for part in rows if part.time is not None]
    columns["time"] = frozen(np.concatenate(times)) if len(times) == len(rows) else None
    return replace(rows[0], **columns, tags={}).in_order("first")


@checked
def duplicate_users(ratings: object) -> Estimates:
    """Find accounts that share nearly all their ratings: one person, a household, test accounts.

    Two accounts belong together where they share at least half of all their items and at least 8,
    where that overlap is beyond chance even among people who rated the rarest of these items (so
    that fans of blockbusters or of a series are not taken for one person), and, where ratings
    differ in value, where they agree in most of them. Such pairs connect accounts to groups.

    Accounts with more ratings than any person gives are a part of the answer, `busy`: beyond what
    the upper half of all users lets expect of the most active one.

    Parameters
    ----------
    ratings
        Anything that holds ratings: a file, a data frame, arrays, `Ratings`.

    Returns
    -------
    Estimates
        A row per group with its accounts, the share of items that they share, and examples. The
        part `members` names the group of each of these accounts: `compare`, `estimate` and `audit`
        take it as `group_users`. See also `user_groups`.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(0)
    >>> lists = {f"u{n}": rng.choice(200, 30, replace=False) for n in range(60)}
    >>> lists["copy"] = np.append(lists["u7"][:28], [0, 1])
    >>> rows = [(name, int(item)) for name, items in lists.items() for item in sorted(set(items))]
    >>> ratings = {"user": [u for u, _ in rows], "item": [i for _, i in rows]}
    >>> answer = us.splits.duplicate_users(ratings)
    >>> row = answer.row(group="copy")
    >>> row.n, row.facts["examples"], round(row.value, 2)
    (2, ['copy', 'u7'], 0.93)
    >>> answer.parts["members"].rows.rows()
    [('copy', 'copy'), ('u7', 'copy')]
    """
    accounts = DuplicateAccounts.of(read_ratings(ratings))
    groups = accounts.groups.tolist()
    rows = [
        {
            "group": accounts.names(np.array([group]))[0],
            "n": int(accounts.sizes[group]),
            "value": accounts.shared(group),
            "examples": accounts.names(accounts.members(group)[:EXAMPLES]),
        }
        for group in groups
    ]
    members = np.flatnonzero(accounts.sizes[accounts.first] > 1)
    pairs = zip(accounts.names(members), accounts.names(accounts.first[members]), strict=True)
    busy, limit = accounts.busy
    counts = accounts.events[busy].tolist()
    many = [(name, n, limit) for name, n in zip(accounts.names(busy), counts, strict=True)]
    return Estimates.of_rows(
        DUPLICATES,
        rows,
        conclusion=(accounts.conclusion,),
        notes=(*accounts.notes(), *accounts.busy_notes()),
        parts={
            "members": Estimates.of_rows(MEMBERS, list(pairs)),
            "busy": Estimates.of_rows(BUSY, many),
        },
        card={
            "users": accounts.users,
            "in_groups": int(members.size),
            "effective_users": accounts.effective,
        },
    )


@checked
def user_groups(ratings: object) -> dict[Any, Any]:
    """Return the group of each account that has near-duplicates, by its id.

    Parameters
    ----------
    ratings
        As for `duplicate_users`.

    Returns
    -------
    dict
        From the id of an account to that of the first account of its group. Accounts without
        near-duplicates are not in it: they are groups of their own.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.splits.duplicate_users import user_groups
    >>> user_groups({"user": [1, 1, 2], "item": [1, 2, 3]})
    {}
    """
    accounts = DuplicateAccounts.of(read_ratings(ratings))
    members = np.flatnonzero(accounts.sizes[accounts.first] > 1).astype(np.int32)
    raw = accounts.ratings.users.raw
    return dict(zip(raw(members).to_list(), raw(accounts.first[members]).to_list(), strict=True))
