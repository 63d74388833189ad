"""`PairOrder`: the events of a log by user and item, so that any stretch of time is read quickly.

A stretch of a log becomes ratings by one pass over this order, without sorting: many windows of one
log cost little more than one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import I32, I64, Mask, frozen
from unskew.data.groups import grouped_order, sort_groups

KEPT_WHOLE = 0.75
"""From this share on, the first of some values are a view, which keeps them all."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of user and item that have events in a stretch of a log."""

    user: I32
    item: I32
    time: I64
    """Of each pair's first event, or of its last."""
    first: I64
    """Where each pair's events start in `row`; one more entry for the end."""
    row: I64
    """The events, pair by pair, in order of time; empty where they are not asked for."""


def _first_of(values: NDArray[Any], number: int) -> NDArray[Any]:
    """Return the first of some values; few of many as a copy, because a view would keep all."""
    some = values[:number]
    return frozen(some.copy() if number < KEPT_WHOLE * values.size else some)


@dataclass(frozen=True, eq=False)
class PairOrder:
    """The rows of a log by user, item and time."""

    row: I64
    item: I32
    """The item of each row."""
    time: I64
    """The time of each row: read in this order, not looked up all over the log."""
    start: I64
    """Where each user's rows start; one more entry for the end."""

    @classmethod
    def of(cls, user: I32, item: I32, time: I64, users: int) -> PairOrder:
        """Sort the rows of a log, which are in order of time."""
        from unskew.data import kernels

        start, _ = kernels.group_starts(user, users)
        order = grouped_order(user, start)
        item = frozen(item[order])
        within, changed = sort_groups(frozen(start), item, frozen(np.zeros(0, np.int64)))
        if changed:
            order, item = order[within], frozen(item[within])
        return cls(frozen(order), item, frozen(time[order]), frozen(start))

    def between(
        self, first: int, last: int, *, only_new: bool = False, latest: bool = False, rows: bool
    ) -> Pairs:
        """Return the pairs of the rows from `first` up to `last`, which is not among them.

        Parameters
        ----------
        first, last
            Places in order of time.
        only_new
            Leave out pairs that have a row before `first`.
        latest
            Tell the time of a pair's last event, not of its first.
        rows
            Tell the events too.
        """
        from unskew.data import kernels

        size = last - first
        row, head = np.empty(size if rows else 0, np.int64), np.empty(size + 1, np.int64)
        user, item = np.empty(size, np.int32), np.empty(size, np.int32)
        time = np.empty(size, np.int64)
        pairs = kernels.pairs_between(
            self.start, self.row, self.item, self.time, first, last, only_new, latest,
            row, head, user, item, time,
        )  # fmt: skip
        user, item, time = (_first_of(one, pairs) for one in (user, item, time))
        kept = int(head[pairs]) if rows else 0
        return Pairs(user, item, time, _first_of(head, pairs + 1), _first_of(row, kept))

    def outside(self, last: int, low: int, high: int) -> Pairs:
        """Return the pairs with a row before `last` and none from `low` up to `high`."""
        from unskew.data import kernels

        most = last - max(min(high, last) - low, 0)
        user, item = np.empty(most, np.int32), np.empty(most, np.int32)
        time = np.empty(most, np.int64)
        pairs = kernels.pairs_outside(
            self.start, self.row, self.item, self.time, last, low, high, user, item, time
        )
        user, item, time = (_first_of(one, pairs) for one in (user, item, time))
        none = frozen(np.zeros(0, np.int64))
        return Pairs(user, item, time, none, none)

    @cached_property
    def is_first(self) -> Mask:
        """Which rows of the log are the first of their pair."""
        from unskew.data import kernels

        return frozen(kernels.first_of_pair(self.start, self.row, self.item).view(np.bool_))
