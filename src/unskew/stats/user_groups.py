"""`UserGroups`: users that are not independent of each other count as one unit.

Accounts of a household, clones and test accounts rate alike, so that their values move together.
With groups every interval is by group and every permutation flips whole groups: what the users of
a group add to a mean is added up first. Means stay means over users; their variance is that of a
ratio of two sums over groups (Cochran 1977, 6.4), as groups differ in size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.checks import is_number
from unskew.data.ratings import Ids, Ratings
from unskew.errors import DataError, SettingError, Spelling
from unskew.judging.judged import Judged
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.splits.duplicate_users import MEMBERS, DuplicateAccounts
from unskew.stats.segments import UserColumn, column_of_table, is_column, read_column

DETECTED = "detected"
UNIT = "groups of users"
FEWEST = 2
"""With fewer groups there is no interval, and nothing to permute."""


@dataclass(frozen=True, eq=False)
class UserGroups:
    """Groups of users, as a user states them or as near-duplicates form them.

    Made by `groups_of_users`.
    """

    source: str
    """Where they are from, in words."""
    users: Ids
    """Whose group is stated."""
    number: I64
    """The number of each one's group; -1 where none is stated."""

    def codes(self, users: Ids) -> I64:
        """Return the group of each of these users: 0, 1, … in their order.

        Users whose group is not stated are groups of their own.
        """
        number = self._numbers(users)
        alone = number < 0
        if len(users) and alone.all() and self.source != NEAR_DUPLICATES:
            raise DataError(
                f"group_users=…: none of the {counted(len(users), 'user')} has a group "
                f"({self.source}): are these the ids of other users? One is {users.values[0]!r}"
            )
        number[alone] = self.number.max(initial=-1) + 1 + np.arange(np.count_nonzero(alone))
        _, first, code = np.unique(number, return_index=True, return_inverse=True)
        order = np.empty(first.size, np.int64)
        order[np.argsort(first)] = np.arange(first.size)
        groups: I64 = order[code]
        if len(users) > 0 and first.size < FEWEST:
            raise DataError(
                f"group_users=…: the {counted(len(users), 'user')} of the comparison are in one "
                f"group ({self.source}): at least {FEWEST} groups are needed"
            )
        return groups

    def _numbers(self, users: Ids) -> I64:
        """Return the stated number of each user's group; -1 where none is stated."""
        return np.append(self.number, -1)[self.users.codes(users.values)]

    def note(self, users: Ids) -> str:
        """Return how many groups there are of these users, in a sentence."""
        groups = int(self.codes(users).max(initial=-1)) + 1
        alone = int(np.count_nonzero(self._numbers(users) < 0))
        text = (
            f"by group of users: {counted(len(users), 'user is', 'users are')} in "
            f"{counted(groups, 'group')} ({self.source})"
        )
        if alone and self.source != NEAR_DUPLICATES:
            verb = counted(alone, "user without a group counts", "users without a group count")
            text += f"; {verb} as one group each"
        return text


NEAR_DUPLICATES = "near-duplicate accounts are a group, others stand alone"


def groups_of_users(group_users: object, ratings: Sequence[Ratings] = ()) -> UserGroups | None:
    """Return the groups that `group_users=…` asks for; None where it is None.

    Parameters
    ----------
    group_users
        `detected`, FILE:COLUMN, a mapping from user to group, a table with a column of users and
        one other column, or what `duplicate_users` gave.
    ratings
        In which near-duplicates are detected: test ratings, and training ratings where known.
    """
    if group_users is None or isinstance(group_users, UserGroups):
        return group_users
    if isinstance(group_users, str) and group_users == DETECTED:
        if not ratings:
            raise SettingError(
                "group_users='detected' needs the ratings in which near-duplicates are detected: "
                "give judged data instead of scores, or the groups as ",
                Spelling("a mapping from user to group", "FILE:COLUMN"),
            )
        accounts = DuplicateAccounts.of(*ratings)
        return UserGroups(NEAR_DUPLICATES, accounts.ratings.users, accounts.first.astype(np.int64))
    if isinstance(group_users, str):
        if not is_column(group_users):
            raise SettingError(
                f"group_users must be 'detected', FILE:COLUMN, a mapping from user to group or a "
                f"table of users and groups, got {group_users!r}"
            )
        return _of_column(read_column(group_users, argument="group_users"))
    if isinstance(group_users, Estimates):
        members = group_users.parts.get("members", group_users)
        if members.question.name != MEMBERS.name:
            raise SettingError("group_users takes what duplicate_users gave, not other estimates")
        group_users = members.rows.select("user", "group")
    if isinstance(group_users, Mapping) and all(map(_is_name, group_users.values())):
        return _of_mapping(group_users)
    return _of_column(column_of_table(group_users, argument="group_users"))


def _is_name(group: object) -> bool:
    """Tell whether this names a group: a text or a number, and no column of a table."""
    return group is None or isinstance(group, str) or is_number(group)


def _of_mapping(groups: Mapping[Any, Any]) -> UserGroups:
    if not groups:
        empty = pl.Series([], dtype=pl.Int64)
        return UserGroups("a mapping without users", Ids(empty), np.zeros(0, np.int64))
    ids, rows = Ids.number(pl.Series(list(groups), strict=False))
    number: dict[Any, int] = {}
    codes = np.full(len(ids), -1, np.int64)
    for row, group in zip(rows.tolist(), groups.values(), strict=True):
        if group is not None and group == group:  # NaN is no group
            codes[row] = number.setdefault(group, len(number))
    return UserGroups("a mapping", ids, codes)


def _of_column(column: UserColumn) -> UserGroups:
    if column.numbers is not None:
        values, is_missing = column.numbers, np.isnan(column.numbers)
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
    else:
        assert column.texts is not None
        is_missing = column.texts.is_null().to_numpy()
        codes = column.texts.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return UserGroups(column.title, column.users, np.where(is_missing, -1, codes))


def duplicates_notes(judged: Judged | None, group_users: object = None) -> tuple[str, ...]:
    """Return what is to be said of near-duplicates where groups are not stated; else nothing."""
    if judged is None or group_users is not None:
        return ()
    accounts = DuplicateAccounts.of(*rating_parts(judged))
    return (*accounts.notes(), *accounts.busy_notes())


def rating_parts(judged: Judged | None) -> tuple[Ratings, ...]:
    """Return the test ratings, and the training ratings where there are any."""
    if judged is None:
        return ()
    return (judged.tests,) if judged.train is None else (judged.tests, judged.train)


# Sums by group


def by_group(values: F64, code: I64) -> F64:
    """Return groups x columns: the sums over the users of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.user_groups import by_group
    >>> by_group(np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 1.0]]), np.array([0, 0, 1])).tolist()
    [[3.0, 0.0], [4.0, 1.0]]
    """
    groups = int(code.max(initial=-1)) + 1
    result = np.empty((groups, values.shape[1]))
    for column in range(values.shape[1]):
        result[:, column] = np.bincount(code, values[:, column], groups)
    return result


@dataclass(frozen=True, eq=False)
class GroupedValues:
    """Values of groups of users, of which the mean over groups is the mean over users."""

    sums: F64
    """Groups x systems: what the users of a group add up to, for tests that permute."""
    linear: F64
    """The same without what groups add by their size: its variance is that of the mean over
    users, a ratio of two sums. Equal to `sums` where all groups have the same size."""

    @property
    def are_equal(self) -> bool:
        """Whether all groups have the same size."""
        return self.linear is self.sums

    @classmethod
    def of(cls, values: F64, is_complete: Mask, code: I64, label: str) -> GroupedValues:
        """Add up users x systems by group; users that are not complete are left out."""
        kept, groups = values[is_complete], np.unique(code[is_complete], return_inverse=True)[1]
        users, size = len(kept), np.bincount(groups)
        if size.size < FEWEST:
            raise DataError(
                f"{label}: {counted(users, 'user has', 'users have')} a value of every system, in "
                f"{counted(size.size, 'group')}: at least {FEWEST} groups are needed"
            )
        sums = by_group(kept, groups) * (size.size / users)
        weight = size * size.size / users
        if (weight == 1).all():
            return cls(sums, sums)
        means = kept.mean(axis=0)
        return cls(sums, sums - (weight[:, None] - 1) * means)


def stated_by_group(estimates: Estimates, groups: UserGroups, users: Ids) -> Estimates:
    """Return an answer that says that its units are groups of users; its parts too."""
    columns = tuple(
        replace(column, label="groups") if column.label == "users" else column
        for column in estimates.question.columns
    )
    test = estimates.method.test.replace("per user", "per group of users")
    return replace(
        estimates,
        question=replace(estimates.question, columns=columns),
        method=replace(estimates.method, unit=UNIT, test=test),
        parts={
            name: stated_by_group(part, groups, users) for name, part in estimates.parts.items()
        },
        notes=(*estimates.notes, groups.note(users)),
    )
