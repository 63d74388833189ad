"""`PairOrder`: the events of a log by user and item, so that any stretch of time is read quickly.

A stretch of a log becomes ratings by one pass over this order, without sorting: many windows of one
log cost little more than one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import I32, I64, frozen
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

    def between(self, first: int, last: int) -> Pairs:
        """Return the pairs of the rows from `first` up to `last`, which is not among them."""
        from unskew.data import kernels

        size = last - first
        row, head = np.empty(size, np.int64), np.empty(size + 1, np.int64)
        user, item = np.empty(size, np.int32), np.empty(size, np.int32)
        pairs = kernels.pairs_between(
            self.start, self.row, self.item, first, last, row, head, user, item
        )
        # Copies: a view of the first few would keep all.
        return Pairs(
            frozen(user[:pairs].copy()),
            frozen(item[:pairs].copy()),
            frozen(row),
            frozen(head[: pairs + 1].copy()),
        )
