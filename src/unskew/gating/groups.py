"""`user_groups`: which users belong together, such as a household or the accounts of a test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.data.ratings import Ids
from unskew.errors import DataError
from unskew.report.text import counted
from unskew.stats.segments import UserColumn, column_of_table, read_column


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
        numbers = pl.Series(column.numbers_of(codes))
        labels = numbers.set(numbers.is_nan(), None)
    # Whoever has no group gets a label that nobody else has.
    frame = pl.DataFrame({"label": labels, "alone": np.arange(codes.size)})
    alone = pl.when(pl.col("label").is_null()).then(pl.col("alone"))
    key = pl.struct(pl.col("label"), alone).rank("dense")
    rank = frame.select(key.cast(pl.Int64) - 1).to_series().to_numpy()
    first = np.unique(rank, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first[1]))
    groups: I64 = order[first[2]].astype(np.int64)
    return groups


def _column(source: object) -> UserColumn:
    """Read the group of each user."""
    if isinstance(source, Mapping) and "user" not in source:
        source = {"user": list(source), "group": list(source.values())}
    try:
        return read_column(source) if isinstance(source, str) else column_of_table(source)
    except DataError as problem:
        text = str(problem).replace("by=…: ", "").replace("segments", "groups")
        raise DataError(f"group_users: {text}") from None
