"""`Events`: a log in which a user may meet an item any number of times, in order of time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import checked, choose
from unskew.data import times
from unskew.data.groups import grouped_order, run_starts, sort_groups
from unskew.data.ratings import (
    FEEDBACK,
    Ids,
    Ratings,
    id_column,
    recoded,
    value_column,
)
from unskew.data.read import tables
from unskew.data.read.rating_columns import (
    busy_users,
    choose_events,
    find_event_column,
    find_rating_column,
    rating_values,
    stated_columns,
)
from unskew.data.read.rating_tables import assumed_columns, check_tags, column_notes, rating_table
from unskew.data.read.tables import column_hint
from unskew.data.rows import Rows
from unskew.data.steps import Step
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.report.text import counted

if TYPE_CHECKING:
    from unskew.data.kernels import PairRows

KEPT_WHOLE = 0.75
"""From this share on, the first of some values are a view, which keeps them all."""


def _pair_columns(size: int) -> tuple[I32, I32, I64]:
    """Return empty columns of users, items and times, which a kernel fills."""
    return np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int64)


def _first_of(values: NDArray[Any], number: int) -> NDArray[Any]:
    """Return the first of some values; few of many as a copy, because a view would keep all."""
    head = values[:number]
    return frozen(head.copy() if number < KEPT_WHOLE * values.size else head)


REPEATS = ("count", "sum", "mean", "max", "first", "last")
"""How the events of one user and item become one rating; see `Events.to_ratings`."""


@dataclass(frozen=True, eq=False, repr=False)
class Events(Rows):
    """An event log: clicks, plays, purchases. Made by `read_events`; never changed.

    Rows are in order of time; events of the same moment by user, item and value, so that the order
    of the rows of a file never matters.

    Examples
    --------
    >>> import unskew as us
    >>> log = us.read_events({"user": [1, 1, 2], "item": ["a", "a", "b"], "time": [10, 20, 15]})
    >>> log
    Events(3 events, 2 users, 2 items, 1970-01-01T00:00:10 to 1970-01-01T00:00:20)
    >>> log.to_ratings().value.tolist()  # user 1 met a twice
    [2.0, 1.0]
    """

    users: Ids
    items: Ids
    time: I64
    """Microseconds since 1970."""
    tags: Mapping[str, pl.Series] = field(default_factory=dict)
    """Named extra columns, such as the kind of the event."""
    implicit: bool = True
    """Whether an event is a sign of interest whatever its value; False: values are opinions."""
    notes: tuple[str, ...] = ()
    """What was assumed when the events were read."""
    steps: tuple[Step, ...] = ()
    """What was done to the log since."""

    noun: ClassVar[str] = "events"
    hint: ClassVar[str] = "to_ratings() makes one rating of each pair."

    def __repr__(self) -> str:
        span = ""
        if len(self):
            span = f", {times.written(int(self.time[0]))} to {times.written(int(self.time[-1]))}"
        return (
            f"Events({counted(len(self), 'event')}, {counted(len(self.users), 'user')}, "
            f"{counted(len(self.items), 'item')}{span})"
        )

    @cached_property
    def fingerprint(self) -> str:
        """A digest that is equal for equal events in any row order."""
        digest = hashlib.blake2b(digest_size=16)
        for ids in (self.items, self.users):
            digest.update("\x1f".join([ids.kind, *map(str, ids.values)]).encode())
        columns: list[NDArray[Any]] = [self.time, self.value, self.item, self.user]
        order = np.lexsort(columns)
        for column in columns:
            digest.update(np.ascontiguousarray(column[order]).data)
        return digest.hexdigest()

    @cached_property
    def pair_rows(self) -> PairRows:
        """The rows by user, item and time, from which `ratings_between` reads.

        They hold their times, which are not looked up all over the log.
        """
        from unskew.data import kernels

        start, _ = kernels.group_starts(self.user, len(self.users))
        order = grouped_order(self.user, start)
        item = frozen(self.item[order])
        positions, changed = sort_groups(frozen(start), item)
        if changed:
            order, item = order[positions], frozen(item[positions])
        return kernels.PairRows(frozen(start), frozen(order), item, frozen(self.time[order]))

    @cached_property
    def is_first_of_pair(self) -> Mask:
        """Which rows are the first of their pair."""
        start, row, item, _ = self.pair_rows
        user = np.repeat(np.arange(start.size - 1), np.diff(start))
        mark = np.zeros(len(self), np.bool_)
        mark[row[run_starts(user, item)[:-1]]] = True
        return frozen(mark)

    def recode(self, users: Ids, user_table: I32, items: Ids, item_table: I32) -> Events:
        """Return the same events under a larger common numbering."""
        user, item = recoded(self.user, user_table), recoded(self.item, item_table)
        return replace(self, users=users, items=items, user=frozen(user), item=frozen(item))

    def to_polars(self) -> pl.DataFrame:
        """Return the events with raw ids as a polars frame."""
        columns = {
            "user": self.users.raw(self.user),
            "item": self.items.raw(self.item),
            "value": pl.Series(self.value),
            "time": pl.Series(self.time).cast(pl.Datetime("us")),
        }
        return pl.DataFrame({**columns, **self.tags})

    def to_ratings(self, repeats: str = "count", rows: slice | I64 | Mask | None = None) -> Ratings:
        """Make one rating of all events of a user and an item.

        The rating has the time of the pair's first event (`last`: of its last one). The step is
        recorded in `Ratings.steps`.

        Parameters
        ----------
        repeats
            `count` the events of a pair, take the `sum`, `mean` or `max` of their values, or the
            value of the `first` or `last` event.
        rows
            Only these events: a slice, a mask, or row numbers in order. Default: all.

        Examples
        --------
        >>> import unskew as us
        >>> log = us.read_events({"user": [1, 1, 2], "item": [7, 7, 8], "time": [10, 20, 15]})
        >>> log.to_ratings().value.tolist(), log.to_ratings("last").time.tolist()
        ([2.0, 1.0], [20000000, 15000000])
        """
        choose("repeats", repeats, REPEATS)
        part = self if rows is None else self.take(rows)
        value = np.ones(len(part)) if repeats == "count" else part.value
        rough = self._of_pairs((part.user, part.item, part.time), value)
        merged = rough.in_order("sum" if repeats == "count" else repeats)
        step = Step("repeats", {"repeats": repeats}, part.size(), merged.size())
        return replace(merged, notes=self.notes, steps=(*self.steps, step))

    def ratings_between(
        self, first: int, last: int, repeats: str = "count", *, only_new: bool = False
    ) -> tuple[Ratings, I64]:
        """Do what `to_ratings` does with a slice of rows; return too the events of each pair.

        The first call sorts the log, and keeps the order; every further one is quick. For many
        stretches of one log.

        Parameters
        ----------
        first, last
            The rows from `first` up to `last`, which is not among them.
        repeats
            As in `to_ratings`.
        only_new
            Leave out pairs that have an event before `first`.
        """
        from unskew.data import kernels

        choose("repeats", repeats, REPEATS)
        columns = _pair_columns(last - first)
        # Where each pair's rows start in `row`; and the rows, where they are needed.
        start = np.empty(last - first + 1, np.int64)
        row = np.empty(0 if repeats == "count" else last - first, np.int64)
        count = kernels.pairs_between(
            self.pair_rows, first, last, only_new, repeats == "last", row, start, *columns
        )
        start = _first_of(start, count + 1)
        row = _first_of(row, 0 if repeats == "count" else int(start[-1]))
        events = np.diff(start)
        merged = self._of_pairs(columns, self._merged(start, row, events, repeats))
        after = merged.size()
        before = replace(after, rows=int(start[-1]))  # of the same users and items
        step = Step("repeats", {"repeats": repeats}, before, after)
        return replace(merged, steps=(*self.steps, step)), frozen(events)

    def ratings_outside(self, last: int, low: int, high: int) -> Ratings:
        """Return the pairs with an event before `last` and none from `low` up to `high`.

        Each has the value 1 and the time of its first event.

        Parameters
        ----------
        last, low, high
            Numbers of rows.
        """
        from unskew.data import kernels

        columns = _pair_columns(last - max(min(high, last) - low, 0))
        count = kernels.pairs_outside(self.pair_rows, last, low, high, *columns)
        return self._of_pairs(columns, np.ones(count))

    def _of_pairs(self, columns: tuple[I32, I32, I64], value: F64) -> Ratings:
        """Return ratings of these values, from the first users, items and times."""
        user, item, time = (_first_of(column, value.size) for column in columns)
        return Ratings(
            users=self.users,
            items=self.items,
            user=user,
            item=item,
            value=frozen(value),
            time=time,
            implicit=self.implicit,
            notes=self.notes,
        )

    def _merged(self, start: I64, row: I64, events: I64, repeats: str) -> F64:
        """Return one value for each pair, whose rows start at `start` in `row`."""
        from unskew.data import kernels

        if repeats == "count":
            return events.astype(np.float64)
        if repeats in ("first", "last"):
            positions = start[1:] - 1 if repeats == "last" else start[:-1]
            return self.value[row[positions]]
        value = frozen(self.value[row])
        merged = kernels.merged_values(frozen(start[:-1]), value, repeats == "max")
        return merged / events if repeats == "mean" else merged


@checked
def read_events(
    source: object,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rating: str | int | None = None,
    time: str | int | None = None,
    event: str | int | None = None,
    events: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    tags: tuple[str, ...] | list[str] = (),
    feedback: str = "implicit",
    format: str | None = None,  # noqa: A002 - the word users expect
) -> Events:
    """Read an event log: as `read_ratings`, but a pair may occur any number of times.

    Parameters
    ----------
    source
        A file, a frame or arrays, as for `read_ratings`; `Ratings` with time stamps count as one
        event each; `Events` are returned as they are.
    user, item, rating, time
        Names (or numbers, from 0) of the columns, guessed from common names unless given. Without
        a rating column every event counts as 1; the time is needed.
    event
        The column that says what kind of event a row is, such as view, cart or buy; recognised
        by its name or its words unless given. A column that is named is kept as a tag.
    events
        The kinds of events that count, such as ``"buy"``; other rows are left out and counted.
    weights
        What an event of each kind counts, such as ``{"view": 1, "buy": 5}``; events of weight 0 are
        left out and counted, a kind without a weight is refused. Instead of a rating column.
    tags
        Names of further columns to keep.
    feedback
        `implicit` (default): an event is a sign of interest, and nothing is known of dislikes;
        `explicit`: the values are opinions, such as ratings given more than once.
    format
        `csv`, `tsv`, `::`, `json` or `parquet`; recognised by the file unless given.

    Returns
    -------
    Events
        In order of time. `Events.to_ratings` makes one rating of all events of a pair; splits by
        time, such as `us.splits.Temporal`, take them event by event.

    Examples
    --------
    User 1 viewed item a twice before buying it.

    >>> import unskew as us
    >>> rows = {"user": [1, 1, 1, 2], "item": ["a", "a", "a", "b"], "time": [10, 20, 30, 15]}
    >>> rows["event"] = ["view", "view", "buy", "view"]
    >>> us.read_events(rows)
    Events(4 events, 2 users, 2 items, 1970-01-01T00:00:10 to 1970-01-01T00:00:30)
    >>> len(us.read_events(rows, events="buy"))
    1
    >>> us.read_events(rows, weights={"view": 1, "buy": 5}).to_ratings("sum").value.tolist()
    [7.0, 1.0]
    """
    choose("feedback", feedback, FEEDBACK)
    if isinstance(source, Events):
        return source
    if isinstance(source, Ratings):
        return _of_ratings(source)
    table = tables.read_table(source, format=format)
    stated = {"user": user, "item": item, "rating": rating, "time": time}
    table, _ = rating_table(table, stated)
    if table.frame.height == 0:
        raise DataError(f"{table.source}: there are no events")
    who, what = table.need("user", tables.USER, user), table.need("item", tables.ITEM, item)
    when = table.need("time", tables.TIME, time)
    if weights is not None and rating is not None:
        raise SettingError("give either weights of kinds of events or a rating column, not both")
    used = {who, what, when, *tags}
    kind = find_event_column(table, event, used | stated_columns(table, rating=rating))
    table, value, log_notes, steps = choose_events(table, kind, (who, what), events, weights)
    rated: str | None = None
    further: tuple[str, ...] = ()
    if weights is None:
        is_log = kind is not None
        rated, further = find_rating_column(table, rating, {*used, kind}, feedback, is_log=is_log)
        if rated is not None:
            value, further = rating_values(table, rated)
    stamps, unit = times.time_column(table, when)
    tag_names = list(dict.fromkeys([*tags, *([] if event is None else [str(kind)])]))
    check_tags(table, tag_names)
    with tables.naming(table.source):
        users, items = id_column(table.frame[who]), id_column(table.frame[what])
        values = value_column(value, table.frame.height)
    columns = {"user": who, "item": what, "time": when, "rating": rated}
    assumed = assumed_columns(columns, unit)
    note = f"{table.source}: {table.format}, {table.frame.height:,} events; {assumed}"
    notes = (*log_notes, note, *table.notes, *further, *column_notes(table, columns, stated))
    work: list[Callable[[], Any]] = [lambda: Ids.number(users), lambda: Ids.number(items)]
    (user_ids, u), (item_ids, i) = map_blocks(lambda do: do(), work, size=len(users))
    rough = Events(
        users=user_ids,
        items=item_ids,
        user=frozen(u),
        item=frozen(i),
        value=frozen(values),
        time=frozen(stamps),
        tags={tag: table.frame[tag] for tag in tag_names},
        implicit=feedback == "implicit",
        notes=(*notes, *busy_users(users, table.source)),
        steps=steps,
    )
    return _in_time_order(rough)


def _of_ratings(ratings: Ratings) -> Events:
    """Take each rating as one event."""
    if ratings.time is None:
        raise DataError(
            "an event log needs time stamps, and these ratings have none; name their column with ",
            tables.column_hint("time"),
        )
    columns = {field.name: getattr(ratings, field.name) for field in fields(ratings)}
    return _in_time_order(Events(**columns))


def _in_time_order(events: Events) -> Events:
    """Return the events by time, user, item and value."""
    user, item, value, time = events.user, events.item, events.value, events.time
    order = None
    if np.any(time[1:] < time[:-1]):
        order = np.argsort(time, kind="stable")
        user, item, value, time = user[order], item[order], value[order], time[order]
    start = frozen(run_starts(time))
    if start.size - 1 < time.size:
        pair = (user.astype(np.int64) << 32) | item
        bits = (value + 0.0).view(np.int64)  # -0 becomes 0
        sortable = np.where(bits < 0, np.int64(-(2**63)) - bits - 1, bits)  # sorts as the values do
        positions, changed = sort_groups(start, frozen(pair), frozen(sortable))
        if changed:
            order = positions if order is None else order[positions]
    return events if order is None else events.take(order)


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

    def last(self, number: int = 1) -> Histories:
        """Return the last items of each, at most so many.

        Examples
        --------
        >>> import numpy as np
        >>> from unskew.data import Histories
        >>> two = Histories(np.array([0, 2, 3]), np.array([7, 8, 7]), np.array([10, 20, 15]))
        >>> two.last().item.tolist()
        [8, 7]
        """
        lengths = np.minimum(self.length, number)
        start = np.append(0, np.cumsum(lengths))
        positions = np.arange(start[-1]) + np.repeat(self.start[1:] - start[1:], lengths)
        return Histories(
            frozen(start.astype(np.int64)),
            frozen(self.item[positions]),
            frozen(self.time[positions]),
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
    order, _ = sort_groups(ratings.start, frozen(ratings.time))
    return Histories(ratings.start, frozen(ratings.item[order]), frozen(ratings.time[order]))
