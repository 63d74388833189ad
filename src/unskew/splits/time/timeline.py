"""`TimeAxis`: ratings or events in order of time, from which parts of a split are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import I32, I64, Mask, frozen
from unskew.checks import DEFAULT_TEST, as_share, portion
from unskew.data.events import Events
from unskew.data.groups import grouped_order, sort_groups
from unskew.data.ratings import Ratings
from unskew.data.summary import item_counts
from unskew.data.times import duration, moment, written
from unskew.engine.rng import draw
from unskew.errors import DataError, SettingError, Spelling
from unskew.report.text import counted
from unskew.settings import declare
from unskew.splits.draws import count_tied, first_of_each
from unskew.splits.split import VALIDATION, Split, assemble, empty, shared_rows, time_of

_TICKS = (86_400_000_000, 1_000_000, 1_000, 1)

TIES = ("test", "train")
"""Where rows at the moment of a cut go: see `Temporal`."""


ONE = ("first", "last", "random")
PICKS = ("all", *ONE, "next")
"""Which test rows of a user are targets; see `Temporal`."""
SEEN = ("drop", "keep")
"""What becomes of test pairs that were met before; see `Windows`."""
SESSION, STEP, TARGET = "session", "step", "target"
"""Tags of the logs of a split."""
REPEATS_SETTING = """Of event logs: how several events of a pair become one rating, in each part on
        its own: `count` them, take the `sum`, `mean` or `max` of their values, or the value of the
        `first` or `last` event."""
SEEN_SETTING = """Of event logs: `drop` test pairs that the user met before the test (counted), or
        `keep` them."""
PICK_SETTING = """Which test rows of a user are targets: `all`, the `first` or `last` in time (equal
        times: the seed decides; such users are counted), one at `random`, or every `next` one, for
        judging step by step. Rows that are no targets are left out (counted); nothing is trained on
        them. Of event logs with `seen="drop"`, only first events of new pairs can be targets."""


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


class Picked(NamedTuple):
    """Which of some rows are targets."""

    target: Mask
    seen: int
    """Rows that are none because their pair was met before."""
    ties: int | None
    """Users (or sessions) in whom equal times left the choice to the seed; None = not asked."""


def pick_rows(
    line: TimeAxis, places: I64, group: I64, *, pick: str, seen: str, seed: int
) -> Picked:
    """Say which rows are targets.

    Parameters
    ----------
    line
        Rows in order of time.
    places
        The rows in question, rising.
    group
        The user or the session of each of them.
    pick
        `first`, `last` or `random`: one of each group; `next` and `all`: every one.
    seen
        `drop`: not those whose pair occurs before.
    seed
        Decides between equal times, and draws.
    """
    eligible = line.is_new(places) if seen == "drop" else np.ones(places.size, np.bool_)
    dropped = int(np.count_nonzero(~eligible))
    if pick not in ONE:
        return Picked(eligible, dropped, None)
    rows = np.flatnonzero(eligible)
    chosen, ties = _one_of_each(line, places[rows], group[rows], pick, seed)
    target = np.zeros(places.size, np.bool_)
    target[rows[chosen]] = True
    return Picked(target, dropped, ties if pick != "random" else None)


def _one_of_each(line: TimeAxis, places: I64, group: I64, pick: str, seed: int) -> tuple[Mask, int]:
    """Mark one row of each group; return too in how many groups equal times left it to the seed."""
    from unskew.data.kernels import group_starts

    codes = np.unique(group, return_inverse=True)[1].astype(np.int32)
    groups = int(codes.max(initial=-1)) + 1
    start, grouped = group_starts(frozen(codes), groups)
    by_group = np.arange(places.size) if grouped else grouped_order(codes, start)
    rows = places[by_group]
    time = line.time[rows]
    key = {"first": time, "last": -time, "random": np.zeros_like(time)}[pick]
    order, _ = sort_groups(frozen(start), frozen(key), _hashes(line, rows, seed))
    size = frozen(np.ones(groups, np.int64))
    ties = count_tied(start, order, key, size)
    return first_of_each(frozen(start), by_group[order], size), ties


def _hashes(line: TimeAxis, places: I64, seed: int) -> I64:
    """Return a random number from 0 up for each row, by user, item and time."""
    bits = draw(seed, "split/pick", line.user[places], line.item[places])
    bits = bits ^ draw(seed, "split/pick/time", line.time[places])
    return frozen((bits >> np.uint64(1)).view(np.int64))


def steps_in(group: I64) -> I64:
    """Return the place of each row in its group, from 1, in the order of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.splits.time.timeline import steps_in
    >>> steps_in(np.array([7, 3, 7, 7, 3])).tolist()
    [1, 1, 2, 3, 2]
    """
    order = np.argsort(group, kind="stable")
    sorted_ = group[order]
    heads = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1])) if group.size else order
    sizes = np.diff(np.append(heads, group.size))
    step = np.empty(group.size, np.int64)
    step[order] = np.arange(group.size) - np.repeat(heads, sizes) + 1
    return step


def tagged(
    log: Events, step: I64 | None = None, session: I64 | None = None, target: Mask | None = None
) -> Events:
    """Return a log with what each event is in its sequence."""
    columns = {SESSION: session, STEP: step, TARGET: target}
    more = {name: pl.Series(name, column) for name, column in columns.items() if column is not None}
    return replace(log, tags={**log.tags, **more})


class _JudgedPart(NamedTuple):
    """The ratings of rows that judge."""

    ratings: Ratings
    rows: int
    """Rows (ratings or events) that it was made of."""
    seen: int
    """Rows left out because their pair was met before."""
    earlier: Ratings | None
    """What was met before and is not in training."""
    picked: Picked | None = None


def split_rows(
    protocol: Any,
    line: TimeAxis,
    train: Rows,
    test: Rows,
    seed: int,
    *,
    label: str | None = None,
    hint: str,
    facts: Mapping[str, Any] | None = None,
    validation: Rows | None = None,
    before: I64 | None = None,
) -> Split:
    """Split a timeline.

    What was met before the test and is not trained on (a gap, what is older than a training window,
    a validation part) is known: it is no target.

    Parameters
    ----------
    protocol
        The way to split: its `seen` and `pick` say what of the rows that judge are targets.
    line
        All rows.
    train, test, validation
        Where each row goes.
    seed
        Of the choice between equal times, and of draws.
    label, hint, facts
        As in `assemble`.
    before
        Where test rows are no span: what was met before them; None = the training rows. Before a
        span, it is everything that is older.
    """
    name = "" if label is None else f"{label} "
    for what, rows in ((f"{name}training", train), (f"{name}test", test)):
        if not rows.size:
            raise empty(protocol, what, hint)
    trained, _ = line.ratings(train)
    tested = _part(protocol, line, train, test, seed, trained, before)
    if not len(tested.ratings):
        why = f"every pair of it was met before ({counted(tested.seen, 'row')}); keep such pairs"
        raise DataError(
            f"{protocol.name}: the {name}test part is empty; {why} with ",
            Spelling("seen='keep'", "--seen keep"),
            f"; {hint}",
        )
    parts = {"test": tested}
    if validation is not None:
        if not validation.size:
            raise empty(protocol, f"{name}validation", hint)
        parts[VALIDATION] = _part(protocol, line, train, validation, seed, trained)
    split = assemble(
        protocol,
        trained,
        tested.ratings,
        label,
        hint=hint,
        facts={
            **_row_counts(line, train, parts),
            **(facts or {}),
            **warmth(trained, tested.ratings),
        },
        left_out=len(line) - train.size - tested.rows,
        judgments={key: part.ratings for key, part in parts.items() if key != "test"},
    )
    logs = {}
    if tested.picked is not None:
        log = line.log(test)
        step = frozen(steps_in(log.user.astype(np.int64)))
        logs = {"train": line.log(train), "test": tagged(log, step, target=tested.picked.target)}
    earlier = {key: part.earlier for key, part in parts.items() if part.earlier}
    return replace(split, known=earlier, logs=logs)


def _part(
    protocol: Any,
    line: TimeAxis,
    train: Rows,
    rows: Rows,
    seed: int,
    trained: Ratings,
    before: I64 | None = None,
) -> _JudgedPart:
    history, earlier = trained, None
    if isinstance(rows, Span):
        assert isinstance(train, Span)
        earlier = line.earlier(train, rows.first)
    elif before is not None:
        history, _ = line.ratings(before)
        earlier = history.take(~shared_rows(history, trained))
    if protocol.pick != "all":
        places = np.arange(len(line))[as_index(rows)]
        users = line.user[places].astype(np.int64)
        picked = pick_rows(line, places, users, pick=protocol.pick, seen=protocol.seen, seed=seed)
        ratings, _ = line.ratings(places[picked.target])
        number = int(np.count_nonzero(picked.target))
        return _JudgedPart(ratings, number, picked.seen, earlier, picked)
    if protocol.seen == "drop" and isinstance(rows, Span):
        ratings, number = line.new_ratings(rows)
        return _JudgedPart(ratings, number, rows.size - number, earlier)
    ratings, events = line.ratings(rows)
    seen = 0
    if events is not None and protocol.seen == "drop":
        again = shared_rows(ratings, history)
        ratings, seen = ratings.take(~again), int(events[again].sum())
    return _JudgedPart(ratings, rows.size - seen, seen, earlier)


def warmth(train: Ratings, test: Ratings) -> dict[str, int]:
    """Count the users and items of the test part, and those of them without training ratings."""
    users = np.diff(train.start) > 0, np.diff(test.start) > 0
    items = item_counts(train) > 0, item_counts(test) > 0
    counts = {}
    for name, (trained, tested) in (("users", users), ("items", items)):
        counts[f"test_{name}"] = int(np.count_nonzero(tested))
        counts[f"cold_{name}"] = int(np.count_nonzero(tested & ~trained))
    return counts


def _row_counts(line: TimeAxis, train: Rows, parts: Mapping[str, _JudgedPart]) -> dict[str, int]:
    """Count rows by what became of them; what is not there is not counted."""
    tested = parts["test"]
    counts = {}
    if line.is_log:
        counts = {"events": len(line), "events_train": train.size, "events_test": tested.rows}
    if VALIDATION in parts:
        counts[VALIDATION] = parts[VALIDATION].rows
    if tested.seen:
        counts["left_out_seen"] = tested.seen
    if tested.picked is not None:
        counts["left_out_pick"] = tested.picked.target.size - tested.rows - tested.seen
        if tested.picked.ties is not None:
            counts["users_with_ties_at_pick"] = tested.picked.ties
    return counts


def span_counts(line: TimeAxis, train: Span, test: Span, between: int = 0) -> dict[str, int]:
    """Count the rows outside two spans of time; `between` them so many are in another part."""
    counts = {
        "left_out_before": train.first,
        "left_out_gap": test.first - train.last - between,
        "left_out_after": len(line) - test.last,
    }
    return {name: count for name, count in counts.items() if count}
