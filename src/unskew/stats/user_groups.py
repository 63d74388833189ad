"""`groups_of_users`: users that are not independent of each other count as one unit.

Accounts of a household, clones and test accounts rate alike, so that their values move together.
With groups every interval is by group and every permutation flips whole groups: what the users of
a group add to a mean is added up first. Means stay means over users; their variance is that of a
ratio of two sums over groups (Cochran 1977, 6.4), as groups differ in size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unskew.checks import is_number
from unskew.data.ratings import Ids, Ratings
from unskew.data.user_groups import NEAR_DUPLICATES, UserGroups
from unskew.errors import SettingError, Spelling
from unskew.evaluation.scores import Scores
from unskew.judging.judged import Judged
from unskew.report.estimates import Estimates
from unskew.splits.duplicate_users import MEMBERS, DuplicateAccounts
from unskew.stats.segments import UserColumn, column_of_table, is_column, read_column

DETECTED = "detected"
UNIT = "groups of users"
_SEARCHED = "_duplicates_notes"


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
    searched = judged.__dict__  # once for all questions about the same data
    if _SEARCHED not in searched:
        searched[_SEARCHED] = group_notes(rating_parts(judged), None)
    notes: tuple[str, ...] = searched[_SEARCHED]
    return notes


def group_notes(ratings: Sequence[Ratings], groups: UserGroups | None) -> tuple[str, ...]:
    """Return how users are grouped; where they are not, what near-duplicates there are."""
    accounts = DuplicateAccounts.of(*ratings) if groups is None else None
    if accounts is not None:
        return (*accounts.notes(), *accounts.busy_notes())
    users = Ids.union(*(part.users for part in ratings))[0]
    return () if groups is None else (groups.note(users),)


def rating_parts(judged: Judged | None) -> tuple[Ratings, ...]:
    """Return the test ratings, and the training ratings where there are any."""
    if judged is None:
        return ()
    return (judged.tests,) if judged.train is None else (judged.tests, judged.train)


def grouped_scores(
    scores: Mapping[str, tuple[Scores, ...]], groups: UserGroups | None
) -> dict[str, tuple[Scores, ...]]:
    """Return scores of which intervals and tests are by group, whatever is asked of them."""
    if groups is None:
        return dict(scores)
    return {
        design: tuple(replace(part, groups=groups) for part in parts)
        for design, parts in scores.items()
    }


def stated_by_group(
    estimates: Estimates, groups: UserGroups | None, users: Ids | None
) -> Estimates:
    """Return an answer that says that its units are groups of these users; its parts too."""
    if groups is None or users is None:
        return estimates
    columns = tuple(
        replace(column, label="groups") if column.label == "users" else column
        for column in estimates.question.columns
    )
    test = estimates.method.test.replace("per user", "per group of users")
    explanation = tuple(
        text.replace("intervals by user", "intervals by group of users")
        for text in estimates.explanation
    )
    return replace(
        estimates,
        question=replace(estimates.question, columns=columns),
        method=replace(estimates.method, unit=UNIT, test=test),
        explanation=explanation,
        parts={
            name: stated_by_group(part, groups, users) for name, part in estimates.parts.items()
        },
        notes=(*estimates.notes, groups.note(users)),
    )
