"""Kinds of events in a log (view, cart, purchase): recognised, counted, chosen and weighted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unskew.data.column_names import column_names
from unskew.data.steps import Size, Step
from unskew.data.tables import Table, plain_name
from unskew.errors import DataError, SettingError, Spelling
from unskew.report.text import counted

_MOST_KINDS = 50
BOT_TIMES = 10
"""A user with so many times the events of all but one in a hundred is no usual one."""
BOT_EVENTS = 200


@dataclass(frozen=True)
class ChosenEvents:
    """The rows of the chosen kinds of events, and what to say of the choice."""

    table: Table
    weights: pl.Series | None
    """What each row counts, where kinds have weights."""
    notes: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    is_log: bool = True
    """Whether a column says the kind of each event."""


class NoEventColumn(DataError):  # noqa: N818 - reads better where it is raised
    """A table in which no column says the kind of an event, although kinds were chosen."""


def find_event_column(
    table: Table, chosen: str | int | None, used: Collection[str | None]
) -> str | None:
    """Return the column that says what kind of event a row is; None where there is none.

    Parameters
    ----------
    table
        The table.
    chosen
        What the user states.
    used
        Columns that hold something else.
    """
    if chosen is not None:
        return table.pick("event", (), chosen)
    free = [name for name in table.frame.columns if name not in used]
    return next((name for name in free if _holds_kinds(table.frame[name])), None)


def choose_events(
    table: Table,
    column: str | None,
    pair: tuple[str, str],
    events: str | Sequence[str] | None,
    weights: Mapping[str, float] | None,
) -> ChosenEvents:
    """Keep the kinds of events that are asked for, and weigh them.

    Parameters
    ----------
    table
        A log.
    column
        What says the kind of an event; None where nothing does.
    pair
        The columns of users and items.
    events
        Kinds to keep; the other rows are left out, and counted.
    weights
        What an event of each kind counts, 0 to leave it out; every kind needs one.
    """
    if events is not None and weights is not None:
        raise SettingError(
            "give events=… (which kinds of events count) or weights=… (what each kind counts), "
            "not both"
        )
    if column is None:
        if events is None and weights is None:
            return ChosenEvents(table, None, (), is_log=False)
        name = "events" if weights is None else "weights"
        raise NoEventColumn(
            f"{table.source}: {name}=… needs a column that says what kind of event a row is, and "
            f"none was recognised among: {', '.join(table.frame.columns)}; name it with ",
            Spelling("event='…'", "--columns event=…"),
        )
    kinds = table.frame[column].cast(pl.String)
    counts = _counts(table, column, kinds)
    if weights is None and events is None:
        return ChosenEvents(table, None, _rule_note(table.source, column, counts))
    if weights is None:
        weights = _as_weights(events or (), counts)
    _check_weights(table.source, column, weights, counts)
    return _weighted(table, column, pair, kinds, counts, weights, has_values=events is None)


def busy_users(user: pl.Series, source: str) -> tuple[str, ...]:
    """Name users with far more events than all others: programs and test accounts, perhaps."""
    counts = user.value_counts(sort=True)
    numbers = counts["count"].to_numpy()
    if numbers.size < 20:
        return ()
    usual = float(np.quantile(numbers[numbers.size // 100 + 1 :], 0.99))
    busy = counts.filter(pl.Series(numbers > max(BOT_TIMES * usual, BOT_EVENTS)))
    if not busy.height:
        return ()
    first, number = busy.row(0)
    many = "" if busy.height == 1 else f" and {counted(busy.height - 1, 'other user')}"
    has = "has" if busy.height == 1 else "have"
    return (
        f"{source}: user {first!r}{many} {has} far more events than all others ({number:,}; 99 % "
        f"of the others have at most {usual:,.0f}): a program or a test account? Leave such users "
        "out with the filter max-counts",
    )


def _holds_kinds(column: pl.Series) -> bool:
    kind = column.dtype
    is_text = kind in (pl.String, pl.Categorical, pl.Enum)
    words = column_names()
    name = plain_name(column.name)
    is_named = name in words["event_kinds"]
    if not (is_text or (is_named and kind.is_integer())):
        return False
    distinct = column.drop_nulls().unique()
    if not 0 < len(distinct) <= _MOST_KINDS:
        return False
    if is_named:
        return True
    kinds = {plain_name(str(word)) for word in distinct}
    is_opinion = name in (*words["opinions"], *words["likes"])
    are_answers = kinds <= {*words["yes"], *words["no"]}
    return not is_opinion and not are_answers and kinds <= {*words["events"]}


def _counts(table: Table, column: str, kinds: pl.Series) -> dict[str, int]:
    """Count the events of each kind, most frequent first."""
    if kinds.null_count():
        row = int(kinds.is_null().arg_true()[0])
        raise DataError(
            f"{table.source}: {counted(kinds.null_count(), 'row has', 'rows have')} no kind of "
            f"event in column {column!r}, the first is row {row + 1}; remove these rows"
        )
    rows = kinds.value_counts().sort(["count", column], descending=[True, False])
    return dict(rows.iter_rows())


def _shown(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in list(counts.items())[:10])


def _rule_note(source: str, column: str, counts: Mapping[str, int]) -> tuple[str, ...]:
    """State the rule for a log in which nobody chose kinds of events."""
    if len(counts) < 2:
        return ()
    rarest = list(counts)[-1]
    return (
        f"{source}: every event counts alike, whatever its kind (column {column!r}: "
        f"{_shown(counts)}); choose kinds with events={rarest!r}, or weigh them with weights=…",
    )


def _as_weights(events: str | Sequence[str], counts: Mapping[str, int]) -> dict[str, float]:
    chosen = [events] if isinstance(events, str) else [str(kind) for kind in events]
    if not chosen:
        raise SettingError("events: name at least one kind of event")
    unknown = {kind: 1.0 for kind in chosen if kind not in counts}
    return {**{kind: float(kind in chosen) for kind in counts}, **unknown}


def _check_weights(
    source: str, column: str, weights: Mapping[str, float], counts: Mapping[str, int]
) -> None:
    for kind, weight in weights.items():
        if not isinstance(weight, int | float) or not (np.isfinite(weight) and weight >= 0):
            raise SettingError(f"weights: {kind!r} must count 0 or more, got {weight!r}")
    unknown = [kind for kind in weights if kind not in counts]
    if unknown:
        raise DataError(
            f"{source}: no event of the kind {unknown[0]!r} in column {column!r}; there are: "
            f"{_shown(counts)}"
        )
    missing = [kind for kind in counts if kind not in weights]
    if missing:
        full = {kind: weights.get(kind, 0) for kind in counts}
        words = ",".join(f"{kind}={weight:g}" for kind, weight in full.items())
        raise DataError(
            f"{source}: column {column!r} has kinds of events without a weight: "
            f"{', '.join(map(repr, missing[:5]))}; give each a weight, 0 to leave it out: ",
            Spelling(f"weights={full}", f"--weights {words}"),
        )
    if not any(weights.values()):
        raise DataError(f"{source}: every kind of event weighs 0, so none is left")


def _weighted(
    table: Table,
    column: str,
    pair: tuple[str, str],
    kinds: pl.Series,
    counts: Mapping[str, int],
    weights: Mapping[str, float],
    *,
    has_values: bool,
) -> ChosenEvents:
    """Leave out what weighs nothing, and record what was done."""
    value = kinds.replace_strict(dict(weights), return_dtype=pl.Float64)
    kept = value > 0
    left = replace(table, frame=table.frame.filter(kept))
    facts = {f"events of kind {kind}": count for kind, count in counts.items()}
    used = {kind: counts[kind] for kind in counts if weights[kind] > 0}
    name, settings = "events", dict[str, object](event=column, kinds=", ".join(used))
    if has_values:
        name, settings = "weights", {"event": column, **weights}
    step = Step(name, settings, _size(table, pair), _size(left, pair), facts=facts)
    lost = {kind: counts[kind] for kind in counts if not weights[kind]}
    note = f"{table.source}: events of column {column!r}: {_shown(used)}"
    if has_values:
        worth = ", ".join(f"{kind} = {weights[kind]:g}" for kind in used)
        note += f"; weights: {worth}"
    if lost:
        note += f"; left out: {_shown(lost)}"
    return ChosenEvents(left, value.filter(kept) if has_values else None, (note,), (step,))


def _size(table: Table, pair: tuple[str, str]) -> Size:
    users, items = (table.frame[name].n_unique() for name in pair)
    return Size(table.frame.height, users, items)
