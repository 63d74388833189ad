"""Training and test events of users as one log in order of time, cut into sessions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.events import Events, read_events
from unskew.data.groups import grouped_order
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.errors import DataError, SettingError
from unskew.splits.split import Split
from unskew.splits.time.timeline import SESSION, TARGET

MINUTE = 60_000_000
"""Microseconds of a minute."""


class EventParts(NamedTuple):
    """Training and test events under the same ids, and what a split says about them."""

    train: Events
    test: Events
    target: Mask
    """Which test events may be steps."""
    fitted: Ratings
    """What models are fitted to."""
    earlier: Ratings | None = None
    """What users met before they were tested, beside training."""
    session: str | None = None
    """The tag that names the session of each event."""

    @property
    def implicit(self) -> bool:
        """Whether no value is an opinion."""
        return self.train.implicit and self.test.implicit


def event_parts(train: object, test: object) -> EventParts:
    """Return training and test events under the same ids."""
    if isinstance(train, Split):
        if test is not None:
            raise SettingError("a split has its test part already: leave test out")
        return _of_split(train)
    if test is None:
        raise SettingError("give the test events too: next_items(train, test), or a split")
    first, second = (_as_events(source) for source in (train, test))
    if not (first.users.equals(second.users) and first.items.equals(second.items)):
        first, second = under_one_numbering(first, second)
    target = np.ones(len(second), np.bool_)
    return EventParts(first, second, target, first.to_ratings("count"))


def _of_split(split: Split) -> EventParts:
    """Return the events of a split: its logs, where it has some, else its ratings."""
    if not split.logs:
        _check_times(split.train, split.test)
    logs = split.logs or {"train": read_events(split.train), "test": read_events(split.test)}
    train, test = logs["train"], logs["test"]
    target = np.ones(len(test), np.bool_)
    if TARGET in test.tags:
        target = test.tags[TARGET].to_numpy().astype(np.bool_)
    if split.judged is not None:
        target &= split.judged[test.user]
    named = SESSION if SESSION in train.tags and SESSION in test.tags else None
    return EventParts(train, test, target, split.train, split.known.get("test"), named)


def _check_times(*parts: Ratings) -> None:
    if any(part.time is None for part in parts):
        raise DataError("every next item needs time stamps, and the ratings of the split have none")


def _as_events(source: Any) -> Events:
    if isinstance(source, Ratings):
        _check_times(source)
    return read_events(source)


class StepLog(NamedTuple):
    """Training and test events of each user, in order of time; training first at one moment."""

    users: Ids
    items: Ids
    start: I64
    user: I64
    item: I32
    time: I64
    value: F64
    tested: Mask
    target: Mask
    """Which events may be steps."""
    named: I64
    """What the session of each event is called, as a number; empty without names."""

    @classmethod
    def of(cls, parts: EventParts, session: str | None) -> StepLog:
        """Put both parts in order, with what was known beside them."""
        train, test = parts.train, parts.test
        more = _further(parts)
        user = np.concatenate([train.user, more.user, test.user])
        time = np.concatenate([train.time, _times(more), test.time])
        sizes = [len(train), len(more), len(test)]
        tested = np.repeat([False, False, True], sizes)
        # Stable: of one user and moment, training comes first, and each part is by item already.
        order = np.argsort(time, kind="stable")
        counts = np.bincount(user, minlength=len(train.users))
        start = np.append(0, np.cumsum(counts)).astype(np.int64)
        order = order[grouped_order(frozen(user[order]), start)]
        target = np.zeros(user.size, np.bool_)
        target[user.size - len(test) :] = parts.target
        return cls(
            train.users,
            train.items,
            start,
            user[order].astype(np.int64),
            np.concatenate([train.item, more.item, test.item])[order],
            time[order],
            np.concatenate([train.value, more.value, test.value])[order],
            tested[order],
            target[order],
            _session_codes(parts, sizes, session)[order] if session else np.zeros(0, np.int64),
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


def _further(parts: EventParts) -> Ratings:
    """Return what was known beside training, without events that stand in the test log too."""
    if parts.earlier is None or parts.earlier.time is None:
        return parts.fitted.take(np.zeros(len(parts.fitted), np.bool_))
    columns = ("user", "item", "time")
    earlier, there = (
        pl.DataFrame({name: getattr(part, name) for name in columns})
        for part in (parts.earlier, parts.test)
    )
    rows = earlier.with_row_index("row").join(there, on=columns, how="anti")["row"]
    return parts.earlier.take(np.sort(rows.cast(pl.Int64).to_numpy()))


def _times(ratings: Ratings) -> I64:
    return np.zeros(0, np.int64) if ratings.time is None else ratings.time


def _session_codes(parts: EventParts, sizes: list[int], session: str) -> I64:
    """Number the sessions of events; what was known beside training is a session of its own."""
    tags = [_tag(part, session) for part in (parts.train, parts.test)]
    codes = Ids.number(pl.concat(tags))[1].astype(np.int64)
    between = np.full(sizes[1], -1, np.int64)
    return np.concatenate([codes[: sizes[0]], between, codes[sizes[0] :]])


def _tag(part: Events, session: str) -> pl.Series:
    if session not in part.tags:
        names = ", ".join(map(repr, part.tags)) or "none"
        raise DataError(
            f"session={session!r}: no such tag in the events; the tags are: {names} (read them "
            f"with tags=[{session!r}])"
        )
    return part.tags[session].cast(pl.String)
