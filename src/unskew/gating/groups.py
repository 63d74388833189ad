"""`user_groups`: which users belong together, such as a household or the accounts of a test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.stats.segments import UserColumn, column_of_table, is_column, read_column


def user_groups(users: Ids, source: object) -> I64:
    """Return the number of each user's group; a user without a group is a group alone.

    Parameters
    ----------
    users
        Whose groups are asked for.
    source
        A mapping from user to group, `FILE:COLUMN` with a column of users, or a table with a
        column of users and one of groups.

    Examples
    --------
    >>> import polars as pl
    >>> from unskew.data.ratings import Ids
    >>> from unskew.gating.groups import user_groups
    >>> users, _ = Ids.number(pl.Series(["ann", "bob", "cem", "dan"]))
    >>> user_groups(users, {"ann": 1, "bob": 2, "dan": 1}).tolist()
    [0, 1, 2, 0]
    """
    column = _column(source)
    codes = column.users.codes(users.values)
    if not (codes >= 0).any():
        raise DataError(
            f"group_users: none of its {counted(len(column.users), 'user')} is among the "
            f"{counted(len(users), 'user')} that are compared, such as {users.values[0]!r}"
        )
    if column.texts is not None:
        labels = column.texts_of(codes)
    else:
        values = pl.Series(column.numbers_of(codes))
        labels = values.set(values.is_nan(), None)
    numbers: dict[object, int] = {}
    groups = np.empty(codes.size, np.int64)
    for user, label in enumerate(labels.to_list()):
        # Whoever has no group gets a key that nobody else has.
        key = (user,) if label is None else label
        groups[user] = numbers.setdefault(key, len(numbers))
    return groups


def _column(source: object) -> UserColumn:
    """Read the group of each user."""
    if isinstance(source, Mapping) and "user" not in source:
        source = {"user": list(source), "group": list(source.values())}
    if isinstance(source, str) and not is_column(source):
        raise SettingError(
            "group_users must be FILE:COLUMN, such as homes.csv:home, a mapping from user to group "
            f"or a table of both, got {source!r}"
        )
    try:
        return read_column(source) if isinstance(source, str) else column_of_table(source)
    except DataError as problem:
        text = str(problem).replace("by=…: ", "").replace("segments", "groups")
        raise DataError(f"group_users: {text}") from None
