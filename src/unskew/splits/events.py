"""Event logs, such as plays or clicks: split by time first, then aggregate."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.checks import checked
from unskew.data import tables, times
from unskew.data.ratings import Ids, Ratings, id_column, under_one_numbering, value_column
from unskew.errors import SettingError
from unskew.settings import choice, declare, share
from unskew.splits.split import Split, Splitter, assemble, empty, time_of, without_overlap
from unskew.splits.time import TIES, cut_in_time, moment, time_hint

AGGREGATE = ("count", "sum")
SEEN = ("drop", "keep")


@dataclass(frozen=True, eq=False)
class Events:
    """Raw events: a user may meet an item any number of times. Made by `read_events`."""

    user: pl.Series
    item: pl.Series
    value: pl.Series
    time: I64
    """Microseconds since 1970; rows are in order of time."""
    notes: tuple[str, ...] = ()
    """What was assumed when the events were read."""

    def __len__(self) -> int:
        return int(self.time.size)

    @cached_property
    def fingerprint(self) -> str:
        """A digest that is equal for equal events in any row order."""
        digest = hashlib.blake2b(digest_size=16)
        columns = [self.time, self.value.to_numpy()]
        for raw in (self.item, self.user):
            ids, codes = Ids.number(raw)
            digest.update("\x1f".join([ids.kind, *map(str, ids.values)]).encode())
            columns.append(codes)
        order = np.lexsort(columns)
        for column in columns:
            digest.update(np.ascontiguousarray(column[order]).data)
        return digest.hexdigest()


@checked
def read_events(
    source: object,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rating: str | int | None = None,
    time: str | int | None = None,
    format: str | None = None,  # noqa: A002 - the word users expect
) -> Events:
    """Read an event log: as `read_ratings`, but a pair may stand any number of times.

    Parameters
    ----------
    source
        A file, a frame or arrays, as for `read_ratings`; `Ratings` with time stamps count as one
        event each.
    user, item, rating, time
        Names (or numbers, from 0) of the columns, guessed from common names unless given. Without
        a rating column every event counts as 1; the time is needed.
    format
        `csv`, `tsv`, `::` or `parquet`; guessed from the file unless given.
    """
    if isinstance(source, Ratings):
        stamps = time_of(source, "an event log")
        columns = source.users.raw(source.user), source.items.raw(source.item)
        return _in_order(*columns, pl.Series(source.value), stamps, source.notes)
    table = tables.read_table(source, format=format)
    if not table.header and not (isinstance(user, int) and isinstance(item, int)):
        table = tables.name_columns(table, ("user", "item", "rating"), extra=True)
    names = [
        table.need("user", tables.USER, user),
        table.need("item", tables.ITEM, item),
        table.need("time", tables.TIME, time),
    ]
    worth = table.pick("rating", tables.RATING, rating, taken=names)
    value = None if worth is None else tables.number_column(table, worth, "values")
    stamps, unit = times.time_column(table, names[2])
    with tables.naming(table.source):
        users, items = (id_column(table.frame[name]) for name in names[:2])
        values = pl.Series("value", value_column(value, table.frame.height))
    roles = ("user", "item", "time", "value")
    taken = zip(roles, (*names[:2], f"{names[2]} ({unit})", worth), strict=True)
    assumed = ", ".join(f"{role} = {name}" for role, name in taken if name is not None)
    note = f"{table.source}: {table.format}, {table.frame.height:,} events; {assumed}"
    return _in_order(users, items, values, stamps, (note, *table.notes))


def _in_order(
    user: pl.Series, item: pl.Series, value: pl.Series, time: I64, notes: tuple[str, ...]
) -> Events:
    order = np.argsort(time, kind="stable")
    rows = pl.Series(order)
    return Events(user.gather(rows), item.gather(rows), value.gather(rows), time[order], notes)


@dataclass(frozen=True)
class TemporalEvents(Splitter):
    """Events are split by time, then aggregated per pair within each part.

    bellogin2017 splits the plays of Last.fm so. A table of unique pairs cannot do this: whoever
    aggregates first has lost the times of all events but one. Pairs of the test part that are in
    training too are dropped (counted): they are no recommendation of something new.
    """

    test: float | None = share(None, "The share of events after the cut, as in `Temporal`.")
    at: str | datetime | float | None = declare(
        None, "Instead of a share: the moment of the cut, as in `Temporal`."
    )
    ties: str = choice("test", "Where events at the cut go, as in `Temporal`.", TIES)
    aggregate: str = choice(
        "count",
        """`count` the events of a pair, or `sum` their values. The pair's time is that of its first
        event in the part.""",
        AGGREGATE,
    )
    seen: str = choice("drop", "`drop` (default) or `keep` test pairs that are in training.", SEEN)

    name: ClassVar[str] = "events"
    draw_name: ClassVar[str] = "events"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at is not None:
            moment(self.at)
            if self.test is not None:
                raise SettingError(
                    f"give either a share (test={self.test}) or a moment (at={self.at})"
                )

    def make_splits(self, ratings: Any, seed: int) -> Iterator[Split]:
        """Make the split of `Events`, or of what `read_events` takes; nothing is drawn."""
        events = ratings if isinstance(ratings, Events) else read_events(ratings)
        after, facts = cut_in_time(events.time, self.test, self.at, self.ties)
        first = int(np.count_nonzero(~after))
        facts |= {"events": len(events), "events_train": first, "events_test": len(events) - first}
        hint = time_hint(events.time)
        if not 0 < first < len(events):
            raise empty(self, "training" if first == 0 else "test", hint)
        train, test = under_one_numbering(
            self._aggregated(events, 0, first), self._aggregated(events, first, len(events))
        )
        pairs = len(test)
        rule = "to-training" if self.seen == "drop" else "keep"
        train, test, seen = without_overlap(train, test, rule)
        hint = f"every pair of it ({pairs:,}) is in training too; {hint}"
        facts["pairs_seen_in_training"] = seen
        yield assemble(self, train, test, hint=hint, facts=facts, left_out=pairs - len(test))

    def _aggregated(self, events: Events, low: int, high: int) -> Ratings:
        """Count or add up the events of each pair; events are in order of time."""
        value = events.value[low:high]
        if self.aggregate == "count":
            value = pl.Series("value", np.ones(high - low))
        return Ratings.of(
            events.user[low:high],
            events.item[low:high],
            value,
            events.time[low:high],
            duplicates="sum",
        )
