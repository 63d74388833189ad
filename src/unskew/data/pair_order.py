"""`PairOrder`: the events of a log by user and item, so that any stretch of time is read quickly.

A stretch of a log becomes ratings by one pass over this order, without sorting: many windows of one
log cost little more than one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unskew.arrays import I32, I64, Mask, frozen
from unskew.data.groups import grouped_order, sort_groups


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of user and item that have events in a stretch of a log."""

    user: I32
    item: I32
    row: I64
    """The events, pair by pair, in order of time."""
    first: I64
    """Where each pair's events start in `row`; one more entry for the end."""


@dataclass(frozen=True, eq=False)
class PairOrder:
    """The rows of a log by user, item and time."""

    row: I64
    item: I32
    """The item of each row."""
    start: I64
    """Where each user's rows start; one more entry for the end."""

    @classmethod
    def of(cls, user: I32, item: I32, users: int) -> PairOrder:
        """Sort the rows of a log, which are in order of time."""
        from unskew.data import kernels

        start, _ = kernels.group_starts(user, users)
        order = grouped_order(user, start)
        item = frozen(item[order])
        within, changed = sort_groups(frozen(start), item, frozen(np.zeros(0, np.int64)))
        if changed:
            order, item = order[within], frozen(item[within])
        return cls(frozen(order), item, frozen(start))

    def between(self, first: int, last: int, *, only_new: bool = False) -> Pairs:
        """Return the pairs of the rows from `first` up to `last`, which is not among them.

        Parameters
        ----------
        first, last
            Places in order of time.
        only_new
            Leave out pairs that have a row before `first`.
        """
        from unskew.data import kernels

        size = last - first
        row, head = np.empty(size, np.int64), np.empty(size + 1, np.int64)
        user, item = np.empty(size, np.int32), np.empty(size, np.int32)
        pairs = kernels.pairs_between(
            self.start, self.row, self.item, first, last, only_new, row, head, user, item
        )
        # Copies: a view of the first few would keep all.
        return Pairs(
            frozen(user[:pairs].copy()),
            frozen(item[:pairs].copy()),
            frozen(row[: head[pairs]]),
            frozen(head[: pairs + 1].copy()),
        )

    def outside(self, last: int, low: int, high: int) -> Pairs:
        """Return the pairs with a row before `last` and none from `low` up to `high`.

        Of their rows only the first is told.
        """
        from unskew.data import kernels

        most = last - max(min(high, last) - low, 0)
        user, item = np.empty(most, np.int32), np.empty(most, np.int32)
        at = np.empty(most, np.int64)
        pairs = kernels.pairs_outside(
            self.start, self.row, self.item, last, low, high, user, item, at
        )
        user, item, at = user[:pairs].copy(), item[:pairs].copy(), at[:pairs].copy()
        return Pairs(frozen(user), frozen(item), frozen(at), frozen(np.arange(pairs + 1)))

    @cached_property
    def is_first(self) -> Mask:
        """Which rows of the log are the first of their pair."""
        from unskew.data import kernels

        return frozen(kernels.first_of_pair(self.start, self.row, self.item).view(np.bool_))
