"""`Histories`: what users met before some moments, each in order of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import I32, I64, frozen
from unskew.data.groups import sort_groups
from unskew.data.ratings import Ratings
from unskew.data.tables import column_hint
from unskew.errors import DataError


@dataclass(frozen=True, eq=False)
class Histories:
    """Items that users met, the oldest first: what a model that sees the history is given.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.data import Histories
    >>> two = Histories(np.array([0, 2, 3]), np.array([7, 8, 7]), np.array([10, 20, 15]))
    >>> [two.of(n).tolist() for n in range(len(two))]
    [[7, 8], [7]]
    """

    start: I64
    """Where each history starts in `item`; one more entry for the end."""
    item: I32
    """Numbers of items; one may occur several times."""
    time: I64
    """When, in microseconds since 1970."""

    def __len__(self) -> int:
        return int(self.start.size - 1)

    def of(self, number: int) -> I32:
        """Return the items of one history."""
        return self.item[self.start[number] : self.start[number + 1]]

    @property
    def length(self) -> I64:
        """How many items each history has."""
        lengths: I64 = np.diff(self.start)
        return lengths

    def last(self, most: int = 1) -> Histories:
        """Return the last items of each, at most so many."""
        kept = np.minimum(self.length, most)
        start = np.append(0, np.cumsum(kept))
        place = np.arange(start[-1]) + np.repeat(self.start[1:] - start[1:], kept)
        return Histories(
            frozen(start.astype(np.int64)), frozen(self.item[place]), frozen(self.time[place])
        )


def user_histories(ratings: Ratings, what: str) -> Histories:
    """Return what each user rated in order of time; items of one moment by number.

    Parameters
    ----------
    ratings
        With time stamps.
    what
        Who needs them, for the message where there are none.
    """
    if ratings.time is None:
        raise DataError(
            f"{what} needs time stamps, and the ratings have none; name their column with ",
            column_hint("time"),
        )
    order, _ = sort_groups(ratings.start, frozen(ratings.time), frozen(np.zeros(0, np.int64)))
    return Histories(ratings.start, frozen(ratings.item[order]), frozen(ratings.time[order]))
