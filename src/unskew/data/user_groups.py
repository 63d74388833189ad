"""`UserGroups`: users that are not independent of each other: households, test accounts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.data.ratings import Ids
from unskew.errors import DataError
from unskew.report.text import counted

NEAR_DUPLICATES = "near-duplicate accounts count as one user"
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

    def of(self, users: Ids) -> tuple[Ids, I64]:
        """Return the groups of these users, and the number of each user's group among them.

        A group is named after the first of all its users, whether that one is asked for or not.
        Users whose group is not stated are groups of their own.
        """
        number = self._numbers(users)
        alone = number < 0
        if len(users) and alone.all() and self.source != NEAR_DUPLICATES:
            raise DataError(
                f"group_users=…: none of the {counted(len(users), 'user')} has a group "
                f"({self.source}): are these the ids of other users? One is {users.values[0]!r}"
            )
        first = np.full(int(self.number.max(initial=-1)) + 2, -1, np.int64)
        first[self.number[::-1]] = np.arange(self.number.size)[::-1]
        stated = self.users.values.gather(pl.Series(first[number[~alone]]))
        names = [users.values.filter(pl.Series(alone)), stated]
        if names[0].dtype != names[1].dtype:
            names = [name.cast(pl.String) for name in names]
        groups, codes = Ids.number(pl.concat(names))
        code = np.empty(len(users), np.int64)
        code[np.concatenate([np.flatnonzero(alone), np.flatnonzero(~alone)])] = codes
        if len(users) and len(groups) < FEWEST:
            raise DataError(
                f"group_users=…: the {counted(len(users), 'user')} of the comparison are in one "
                f"group ({self.source}): at least {FEWEST} groups are needed"
            )
        return groups, code

    def _numbers(self, users: Ids) -> I64:
        """Return the stated number of each user's group; -1 where none is stated."""
        return np.append(self.number, -1)[self.users.codes(users.values)]

    def note(self, users: Ids) -> str:
        """Return how many groups there are of these users, in a sentence."""
        groups = len(self.of(users)[0])
        alone = int(np.count_nonzero(self._numbers(users) < 0))
        text = (
            f"by group of users: {counted(len(users), 'user is', 'users are')} in "
            f"{counted(groups, 'group')} ({self.source})"
        )
        if alone and self.source != NEAR_DUPLICATES:
            verb = counted(alone, "user without a group counts", "users without a group count")
            text += f"; {verb} as one group each"
        return text
