"""`Timeline`: ratings or events in order of time, from which parts of a split are read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from unskew.arrays import I32, I64, Mask, frozen
from unskew.checks import DEFAULT_TEST, as_share, portion
from unskew.data.events import Events
from unskew.data.ratings import Ratings
from unskew.data.times import duration, moment, written
from unskew.errors import SettingError
from unskew.settings import declare
from unskew.splits.split import time_of

_TICKS = (86_400_000_000, 1_000_000, 1_000, 1)

TIES = ("test", "train")
"""Where rows at the moment of a cut go: see `Temporal`."""


def a_duration(default: str | float | None, meaning: str, *, zero: bool = False) -> Any:
    """Declare a setting that is a duration."""
    return declare(default, meaning, lambda name, value: duration(value, name, zero=zero))  # type: ignore[arg-type]


class Span(NamedTuple):
    """Rows in order of time, from `first` up to `last`, which is not among them."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """How many rows there are."""
        return self.last - self.first


Rows = Span | I64
"""Rows by their places in order of time: a span, or places that rise."""


def check_cut(splitter: Any, share: str = "test", instant: str = "at") -> None:
    """Refuse a share of rows together with a moment, and a moment that cannot be read."""
    part, when = getattr(splitter, share), getattr(splitter, instant)
    if when is None:
        return
    moment(when, instant)
    if part is not None:
        raise SettingError(f"give either a share ({share}={part}) or a moment ({instant}={when})")


def as_index(rows: Rows) -> slice | I64:
    """Return what an array is indexed by."""
    return slice(*rows) if isinstance(rows, Span) else rows


def places_of(rows: Rows) -> I64:
    """Return the place of each row."""
    return np.arange(*rows) if isinstance(rows, Span) else rows


class Edge(NamedTuple):
    """A cut between two rows in order of time."""

    row: int
    """Rows before it."""
    moment: int
    """Microseconds since 1970."""
    ties: int
    """Rows at this very moment, which the rule for ties put on one side."""

    @property
    def text(self) -> str:
        """The moment as ISO text."""
        return written(self.moment)


@dataclass(frozen=True, eq=False)
class TimeAxis:
    """Ratings or events in order of time; those of the same moment by user and item."""

    data: Ratings | Events
    repeats: str = "count"
    """How several events of a pair become one rating, in each part on its own."""

    @classmethod
    def of(cls, data: Ratings | Events, what: str, repeats: str = "count") -> TimeAxis:
        """Lay data along time; refuse data without time stamps."""
        if isinstance(data, Ratings):
            time_of(data, what)
        return cls(data, repeats)

    @property
    def is_log(self) -> bool:
        """Whether a pair can occur more than once."""
        return isinstance(self.data, Events)

    @cached_property
    def order(self) -> I64 | None:
        """The rows in order of time; None = as they are."""
        if isinstance(self.data, Events):
            return None
        return frozen(np.argsort(self._stamps, kind="stable"))

    @cached_property
    def time(self) -> I64:
        """The time stamps, rising."""
        return self._stamps if self.order is None else frozen(self._stamps[self.order])

    @property
    def _stamps(self) -> I64:
        assert self.data.time is not None  # `of` refuses others
        return self.data.time

    @cached_property
    def user(self) -> I32:
        """The user of each row, in order of time."""
        return self.data.user if self.order is None else frozen(self.data.user[self.order])

    @cached_property
    def item(self) -> I32:
        """The item of each row, in order of time."""
        return self.data.item if self.order is None else frozen(self.data.item[self.order])

    def __len__(self) -> int:
        return len(self.data)

    @property
    def end(self) -> int:
        """The moment of the last row."""
        return int(self.time[-1])

    @cached_property
    def tick(self) -> int:
        """How fine the time stamps are, in microseconds: a day, a second, or less."""
        return next(tick for tick in _TICKS if not (self.time[:1000] % tick).any()
                    and not (self.time % tick).any())  # fmt: skip

    def edge_at(self, moment: int, ties: str) -> Edge:
        """Cut at a moment: rows at it come after the cut (`test`) or before it (`train`)."""
        low, high = (int(np.searchsorted(self.time, moment, side)) for side in ("left", "right"))
        return Edge(high if ties == "train" else low, moment, high - low)

    def edge_before(self, position: int, ties: str) -> Edge:
        """Cut before a row; where the row before it has the same time, all of that time move."""
        if position >= len(self):
            return self.last_edge(ties)
        moment = int(self.time[position])
        if position > 0 and int(self.time[position - 1]) == moment:
            return self.edge_at(moment, ties)
        return Edge(position, moment, 0)

    def last_edge(self, ties: str) -> Edge:
        """Cut after the last row; rows at the moment of a cut come after it (`test`) or before."""
        return Edge(len(self), self.end + (self.tick if ties == "test" else 0), 0)

    def edge_of_share(self, test: float | None, ties: str) -> Edge:
        """Cut so that a share of the rows comes after: 0.2 unless given, rounded half to even."""
        part = as_share("test", DEFAULT_TEST if test is None else test)
        rows = int(portion(np.array([len(self)]), part, "half-even")[0])
        return self.edge_before(len(self) - rows, ties)

    def ratings(self, rows: Rows) -> tuple[Ratings, I64 | None]:
        """Return the ratings of some rows, and of a log how many events each pair has."""
        if isinstance(self.data, Events):
            if isinstance(rows, Span):
                return self.data.ratings_between(rows.first, rows.last, self.repeats)
            part = self.data.take(rows)
            return part.ratings_between(0, len(part), self.repeats)
        assert self.order is not None
        mark = np.zeros(len(self), np.bool_)
        mark[self.order[as_index(rows)]] = True
        return self.data.take(mark), None

    def new_ratings(self, span: Span) -> tuple[Ratings, int]:
        """Return the ratings of a span without pairs that occur before it, and their rows."""
        if isinstance(self.data, Events):
            new, events = self.data.ratings_between(*span, self.repeats, only_new=True)
            return new, int(events.sum())
        return self.ratings(span)[0], span.size

    def is_new(self, places: I64) -> Mask:
        """Tell which rows are the first of their pair."""
        if isinstance(self.data, Events):
            return self.data.is_first_of_pair[places]
        return np.ones(places.size, np.bool_)

    def earlier(self, train: Span, last: int) -> Ratings | None:
        """Return the pairs that occur before a place and not in a span; None where there are none.

        Parameters
        ----------
        train
            The span.
        last
            The place.
        """
        if train.first == 0 and train.last >= last:
            return None
        if isinstance(self.data, Events):
            pairs = self.data.ratings_outside(last, *train)
        else:
            places = np.append(np.arange(train.first), np.arange(train.last, last))
            pairs = self.ratings(places)[0]
        return pairs if len(pairs) else None

    def log(self, rows: Rows) -> Events:
        """Return some rows as an event log."""
        if isinstance(self.data, Events):
            return self.data.take(as_index(rows))
        assert self.order is not None
        data, rows = self.data, self.order[as_index(rows)]
        return Events(
            users=data.users,
            items=data.items,
            user=frozen(data.user[rows]),
            item=frozen(data.item[rows]),
            value=frozen(data.value[rows]),
            time=frozen(self._stamps[rows]),
            implicit=data.implicit,
            notes=data.notes,
            steps=data.steps,
        )
