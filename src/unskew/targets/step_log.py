"""Training and test events of users as one log in order of time, cut into sessions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.events import Events, read_events
from unskew.data.groups import grouped_order
from unskew.data.ratings import Ids, Ratings, recoded
from unskew.errors import DataError, SettingError
from unskew.splits.split import Split

MINUTE = 60_000_000
"""Microseconds of a minute."""


def event_parts(train: object, test: object) -> tuple[Events, Events]:
    """Return training and test events under the same ids."""
    if isinstance(train, Split):
        if test is not None:
            raise SettingError("a split has its test part already: leave test out")
        _check_times(train.train, train.test)
        return read_events(train.train), read_events(train.judged_test)
    if test is None:
        raise SettingError("give the test events too: next_items(train, test), or a split")
    first, second = (_as_events(one) for one in (train, test))
    if first.users.equals(second.users) and first.items.equals(second.items):
        return first, second
    users, user_tables = Ids.union(first.users, second.users)
    items, item_tables = Ids.union(first.items, second.items)
    both = []
    for part, user_table, item_table in zip((first, second), user_tables, item_tables, strict=True):
        both.append(
            Events(
                users,
                items,
                frozen(recoded(part.user, user_table)),
                frozen(recoded(part.item, item_table)),
                part.value,
                part.time,
                part.tags,
                part.implicit,
                part.notes,
                part.steps,
            )
        )
    return both[0], both[1]


def _check_times(*parts: Ratings) -> None:
    if any(part.time is None for part in parts):
        raise DataError("every next item needs time stamps, and the ratings of the split have none")


def _as_events(source: Any) -> Events:
    if isinstance(source, Ratings):
        _check_times(source)
    return read_events(source)


@dataclass(frozen=True, eq=False)
class StepLog:
    """Training and test events of each user, in order of time; training first at one moment."""

    users: Ids
    items: Ids
    start: I64
    user: I64
    item: I32
    time: I64
    value: F64
    tested: Mask
    named: I64
    """What the session of each event is called, as a number; empty without names."""

    @classmethod
    def of(cls, train: Events, test: Events, session: str | None) -> StepLog:
        """Put both parts in order."""
        user = np.concatenate([train.user, test.user])
        time = np.concatenate([train.time, test.time])
        tested = np.repeat([False, True], [len(train), len(test)])
        # Stable: both parts are in order of time, user and item already.
        order = np.argsort(time, kind="stable")
        sizes = np.bincount(user, minlength=len(train.users))
        start = np.append(0, np.cumsum(sizes)).astype(np.int64)
        order = order[grouped_order(frozen(user[order]), start)]
        named = np.zeros(0, np.int64)
        if session is not None:
            tags = [_tag(part, session) for part in (train, test)]
            named = Ids.number(pl.concat(tags))[1].astype(np.int64)[order]
        return cls(
            train.users,
            train.items,
            start,
            user[order].astype(np.int64),
            np.concatenate([train.item, test.item])[order],
            time[order],
            np.concatenate([train.value, test.value])[order],
            tested[order],
            named,
        )

    def sessions(self, gap: float | None) -> tuple[Mask, I64]:
        """Return which events begin a session, and the number of each session; empty = none."""
        first = np.zeros(self.user.size, np.bool_)
        first[self.start[:-1][np.diff(self.start) > 0]] = True
        if gap is None and not self.named.size:
            return first, np.zeros(0, np.int64)
        if gap is not None:
            apart = np.diff(self.time, prepend=self.time[:1]) > gap * MINUTE
        else:
            apart = np.diff(self.named, prepend=self.named[:1]) != 0
        begins = first | apart
        count = np.cumsum(begins)
        return begins, count - np.repeat(
            count[self.start[:-1].clip(max=count.size - 1)], np.diff(self.start)
        ) + 1

    def begin(self, begins: Mask | None) -> I64:
        """Return where the history of each event starts: at its user's or session's first event."""
        if begins is None:
            return self.start[self.user]
        heads = np.flatnonzero(begins)
        begin: I64 = heads[np.cumsum(begins, dtype=np.int64) - 1]
        return begin

    @cached_property
    def ties(self) -> int:
        """How many test events have the moment of an earlier event of the same user."""
        same = (np.diff(self.user) == 0) & (np.diff(self.time) == 0)
        return int(np.count_nonzero(same & self.tested[1:]))


def _tag(part: Events, session: str) -> pl.Series:
    if session not in part.tags:
        known = ", ".join(map(repr, part.tags)) or "none"
        raise DataError(
            f"session={session!r}: no such tag in the events; the tags are: {known} (read them "
            f"with tags=[{session!r}])"
        )
    return part.tags[session].cast(pl.String)
