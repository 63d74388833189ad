"""Put a split together whose parts are spans of time: what is known, what is seen, who is cold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import I64, Mask, frozen
from unskew.data.events import Events
from unskew.data.groups import grouped_order, sort_groups
from unskew.data.ratings import Ratings
from unskew.data.summary import item_counts
from unskew.engine.rng import draw
from unskew.errors import DataError, Spelling
from unskew.report.text import counted
from unskew.splits.draws import first_of_each
from unskew.splits.split import VALIDATION, Split, Splitter, assemble, empty, shared_rows
from unskew.splits.time.timeline import Rows, Span, TimeAxis, places_of

ONE = ("first", "last", "random")
PICKS = ("all", *ONE, "next")
"""Which test rows of a user are targets; see `Temporal`."""
SEEN = ("drop", "keep")
"""What becomes of test pairs that were met before; see `Windows`."""
SESSION, STEP, TARGET = "session", "step", "target"
"""Tags of the logs of a split."""


@dataclass(frozen=True, eq=False)
class Picked:
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
    from unskew.splits import kernels

    codes = np.unique(group, return_inverse=True)[1].astype(np.int32)
    groups = int(codes.max(initial=-1)) + 1
    start, grouped = group_starts(frozen(codes), groups)
    by_group = np.arange(places.size) if grouped else grouped_order(codes, start)
    rows = places[by_group]
    time = line.time[rows]
    key = {"first": time, "last": -time, "random": np.zeros_like(time)}[pick]
    order, _ = sort_groups(frozen(start), frozen(key), _hashes(line, rows, seed))
    size = frozen(np.ones(groups, np.int64))
    ties = kernels.count_tied(frozen(start), frozen(order), frozen(key), size)
    return first_of_each(frozen(start), by_group[order], size), int(ties)


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
    >>> from unskew.splits.time.time_parts import steps_in
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


REPEATS_SETTING = """Of event logs: how several events of a pair become one rating, in each part on
        its own: `count` them, take the `sum`, `mean` or `max` of their values, or the value of the
        `first` or `last` event."""
SEEN_SETTING = """Of event logs: `drop` test pairs that the user met before the test (counted), or
        `keep` them."""
PICK_SETTING = """Which test rows of a user are targets: `all`, the `first` or `last` in time (equal
        times: the seed decides; such users are counted), one at `random`, or every `next` one, for
        judging step by step. Rows that are no targets are left out (counted); nothing is trained on
        them. Of event logs with `seen="drop"`, only first events of new pairs can be targets."""


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows that judge, and what their users met before them."""

    rows: Rows
    before: I64 | None = None
    """Where `rows` are no span: what was met before; None = the training rows. Before a span, it is
    everything that is older."""


@dataclass(frozen=True)
class TargetRule:
    """What of the rows that judge are targets."""

    seen: str = "drop"
    pick: str = "all"
    seed: int = 0


@dataclass(frozen=True, eq=False)
class _TimePart:
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
    protocol: Splitter,
    line: TimeAxis,
    train: Rows,
    test: JudgedRows,
    rule: TargetRule,
    *,
    label: str | None = None,
    hint: str,
    facts: Mapping[str, Any] | None = None,
    validation: JudgedRows | None = None,
) -> Split:
    """Split a timeline.

    What was met before the test and is not trained on (a gap, what is older than a training window,
    a validation part) is known: it is no target.

    Parameters
    ----------
    protocol
        The way to split, for messages.
    line
        All rows.
    train, test, validation
        Where each row goes.
    rule
        What of the test rows is judged.
    label, hint, facts
        As in `assemble`.
    """
    name = "" if label is None else f"{label} "
    for what, rows in ((f"{name}training", train), (f"{name}test", test.rows)):
        if not size_of(rows):
            raise empty(protocol, what, hint)
    trained, _ = line.ratings(train)
    tested = _part(line, train, test, rule, trained)
    if not len(tested.ratings):
        why = f"every pair of it was met before ({counted(tested.seen, 'row')}); keep such pairs"
        raise DataError(
            f"{protocol.name}: the {name}test part is empty; {why} with ",
            Spelling("seen='keep'", "--seen keep"),
            f"; {hint}",
        )
    parts = {"test": tested}
    if validation is not None and size_of(validation.rows):
        parts[VALIDATION] = _part(line, train, validation, rule, trained)
    elif validation is not None:
        raise empty(protocol, f"{name}validation", hint)
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
        left_out=len(line) - size_of(train) - tested.rows,
        judgments={key: part.ratings for key, part in parts.items() if key != "test"},
    )
    earlier = {key: part.earlier for key, part in parts.items() if part.earlier}
    logs = {} if tested.picked is None else _logs(line, train, test.rows, tested.picked)
    return replace(split, known=earlier, logs=logs)


def size_of(rows: Rows) -> int:
    """Return how many rows there are."""
    return int(rows.size)


def warmth(train: Ratings, test: Ratings) -> dict[str, int]:
    """Count the users and items of the test part, and those of them without training ratings."""
    users = np.diff(train.start) > 0, np.diff(test.start) > 0
    items = item_counts(train) > 0, item_counts(test) > 0
    counts = {}
    for name, (trained, tested) in (("users", users), ("items", items)):
        counts[f"test_{name}"] = int(np.count_nonzero(tested))
        counts[f"cold_{name}"] = int(np.count_nonzero(tested & ~trained))
    return counts


def _part(
    line: TimeAxis, train: Rows, part: JudgedRows, rule: TargetRule, trained: Ratings
) -> _TimePart:
    """Return the ratings of rows that judge."""
    history = trained
    if isinstance(part.rows, Span):
        assert isinstance(train, Span)
        earlier = line.earlier(train, part.rows.first)
    else:
        earlier = None
        if part.before is not None:
            history, _ = line.ratings(part.before)
            earlier = history.take(~shared_rows(history, trained))
    if rule.pick != "all":
        return _picked_part(line, part.rows, rule, earlier)
    size = size_of(part.rows)
    if rule.seen == "drop" and isinstance(part.rows, Span):
        ratings, rows = line.new_ratings(part.rows)
        return _TimePart(ratings, rows, size - rows, earlier)
    ratings, events = line.ratings(part.rows)
    if events is None or rule.seen == "keep":
        return _TimePart(ratings, size, 0, earlier)
    again = shared_rows(ratings, history)
    seen = int(events[again].sum())
    return _TimePart(ratings.take(~again), size - seen, seen, earlier)


def _picked_part(
    line: TimeAxis, rows: Rows, rule: TargetRule, earlier: Ratings | None
) -> _TimePart:
    places = places_of(rows)
    picked = pick_rows(
        line,
        places,
        line.user[places].astype(np.int64),
        pick=rule.pick,
        seen=rule.seen,
        seed=rule.seed,
    )
    ratings, _ = line.ratings(places[picked.target])
    return _TimePart(ratings, int(np.count_nonzero(picked.target)), picked.seen, earlier, picked)


def _row_counts(line: TimeAxis, train: Rows, parts: Mapping[str, _TimePart]) -> dict[str, int]:
    """Count rows by what became of them; what is not there is not counted."""
    tested = parts["test"]
    counts = {}
    if line.is_log:
        counts = {"events": len(line), "events_train": size_of(train), "events_test": tested.rows}
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


def _logs(line: TimeAxis, train: Rows, test: Rows, picked: Picked) -> dict[str, Events]:
    log = line.log(test)
    step = frozen(steps_in(log.user.astype(np.int64)))
    return {"train": line.log(train), "test": tagged(log, step, target=picked.target)}
