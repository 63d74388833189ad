"""Which column of a table says what users think of items: by its name, else by its values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from unskew.data.read.tables import RANK, TIME, DataTable, column_names, number_column, plain_name
from unskew.data.steps import Size, Step
from unskew.errors import DataError, SettingError, Spelling
from unskew.report.text import counted

# Names that end or begin so are attributes of users, items, rows or moments.
_ATTRIBUTES = re.compile(
    r".*(id|ids|code|key|index|idx|number|year|month|day|hour|weekday|date|time|timestamp)$"
    r"|(avg|average|mean|median|num|total|sum|max|min|predicted|pred|estimated|expected|item|user)"
    r".*|unnamed.*|column\d+"
)
_AGGREGATES = re.compile(
    r"(avg|average|mean|median|num|total|sum|max|min|predicted|pred|estimated|expected|item|critic)"
)
_ENDINGS = re.compile(r"(ratings?|stars|overall|grade|score)$")
_SCORES = ("score", "scores")
_FEW_STARS = 21
_FEW = 101
"""A column with more different values is no scale: 0 to 100 has so many."""


def find_rating_column(
    table: DataTable,
    chosen: str | int | None,
    used: Collection[str | None],
    feedback: str | None,
    *,
    is_log: bool = False,
) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of ratings and notes on the choice; None where no column looks like one.

    Parameters
    ----------
    table
        The table.
    chosen
        What the user states, a name or a number.
    used
        Columns that hold something else: they are not looked at.
    feedback
        `implicit` states that a column without a telling name is no rating.
    is_log
        Whether another column says what kind of event a row is: then rows are events, and only a
        column named after opinions holds ratings.
    """
    if chosen is not None:
        return table.pick("rating", (), chosen), ()
    columns = [name for name in table.frame.columns if name not in used]
    _check_no_lists(table, columns)
    opinion = _opinion(table, columns, feedback)
    if opinion is not None:
        others = [repr(name) for name in columns if name != opinion and _is_feedback(name)]
        unused = (f"{table.source}: not used: {', '.join(others)}",) if others else ()
        return opinion, unused
    if is_log:
        return None, ()
    likes = [name for name in columns if _bare(name) in column_names()["likes"]]
    counts = [name for name in columns if plain_name(name) in column_names()["counts"]]
    dislikes = [name for name in columns if _bare(name) in column_names()["dislikes"]]
    telling = [*likes, *counts, *dislikes]
    if len(telling) == 1 and not dislikes:
        return telling[0], ()
    unclear = telling or [name for name in columns if _is_scale(table.frame[name])]
    if unclear and feedback != "implicit":
        raise _no_choice(table, unclear, bool(dislikes))
    return None, ()


def stated_columns(table: DataTable, **columns: str | int | None) -> set[str | None]:
    """Return the names of the columns that the user states for something, by name or number."""
    return {table.pick(role, (), column) for role, column in columns.items() if column is not None}


def rating_values(table: DataTable, name: str) -> tuple[pl.Series, tuple[str, ...]]:
    """Return ratings as numbers; words such as like and dislike are 1 and 0, and a note says so."""
    column = table.frame[name]
    if column.dtype != pl.String:
        return number_column(table, name, "ratings"), ()
    words = _words(column)
    kinds = set(words.drop_nulls().unique())
    if not _are_answers(kinds):
        return number_column(table, name, "ratings"), ()
    numbers = {word: int(word in column_names()["yes"]) for word in sorted(kinds)}
    values = words.replace_strict(numbers, return_dtype=pl.Float64)
    meaning = [f"{column.filter(words == word)[0]} = {value}" for word, value in numbers.items()]
    return values.rename(name), (f"{table.source}: column {name!r}: {', '.join(meaning)}",)


def why_implicit(name: str, value: pl.Series) -> str | None:
    """Say why values are implicit feedback; None where they are opinions."""
    if plain_name(name) in column_names()["counts"] and bool((value > 0).all()):
        return (
            f"column {name!r} counts use (implicit feedback): every pair is liked, however "
            "small its value; liked=… takes only larger ones"
        )
    if bool((value == 1).all()):
        return f"column {name!r} is 1 in every row (implicit feedback): every pair is liked"
    return None


def _bare(name: str) -> str:
    """Return the name as it is compared, without is, has or did before it."""
    plain = plain_name(name)
    return re.sub(r"^(is|has|did|was)(?=.{3})", "", plain)


def _is_feedback(name: str) -> bool:
    bare = _bare(name)
    return (
        bare in column_names()["likes"]
        or bare in column_names()["dislikes"]
        or plain_name(name) in {*column_names()["opinions"], *column_names()["counts"]}
    )


def _opinion(table: DataTable, columns: list[str], feedback: str | None) -> str | None:
    """Return the column named after opinions; of several by an ending, none is chosen."""
    plain = {plain_name(name): name for name in reversed(columns)}
    exact = next((plain[name] for name in column_names()["opinions"] if name in plain), None)
    if exact is not None:
        return exact
    ending = [
        name
        for name in columns
        if _ENDINGS.search(plain_name(name)) and not _AGGREGATES.match(plain_name(name))
    ]
    overall = [name for name in ending if "overall" in plain_name(name)]
    candidates = overall if len(overall) == 1 else ending
    if len(candidates) > 1 and feedback != "implicit":
        raise _no_choice(table, candidates, False)
    return candidates[0] if len(candidates) == 1 else None


def _check_no_lists(table: DataTable, columns: list[str]) -> None:
    """Refuse ranked lists where ratings should be: they have ranks, and no feedback."""
    plain = {plain_name(name): name for name in columns}
    rank = next((plain[name] for name in RANK if name in plain), None)
    feedback = [name for name in columns if _is_feedback(name) and plain_name(name) not in _SCORES]
    is_log = rank is not None and plain_name(rank) in ("position", "pos") and plain.keys() & {*TIME}
    if rank is None or feedback or is_log:
        return
    raise _swapped(table, f"there is a column {rank!r} and none of ratings")


def check_no_scores(table: DataTable, name: str, values: pl.Series) -> None:
    """Refuse scores of a system where ratings should be, in a column that was not named."""
    if plain_name(name) not in _SCORES or not len(values):
        return
    halves = values.cast(pl.Float64) * 2
    if float((halves != halves.round()).mean() or 0.0) > 0.5:  # type: ignore[arg-type]
        raise _swapped(table, f"column {name!r} has values such as {values[0]}")


def _swapped(table: DataTable, reason: str) -> DataError:
    return DataError(
        f"{table.source}: these look like ranked lists, not ratings: {reason}. Are test ratings "
        "and lists swapped? Lists are given with ",
        Spelling("runs=…", "--run, and test ratings with --judgments"),
        "; if a column holds ratings, name it with ",
        rating_hint("…"),
    )


def check_no_ratings(table: DataTable, name: str, values: pl.Series) -> None:
    """Refuse ratings where ranked lists should be: few values, in a column named after opinions."""
    if plain_name(name) in _SCORES or plain_name(name) not in {
        *column_names()["opinions"],
        *column_names()["likes"],
    }:
        return
    halves = values.cast(pl.Float64).unique() * 2
    if len(halves) <= _FEW_STARS and bool((halves == halves.round()).all()):
        raise DataError(
            f"{table.source}: these look like ratings, not ranked lists: there is no rank, and "
            f"column {name!r} has the values {_values(values)}. Are test ratings and lists "
            "swapped? If the lists are ordered by it, name it with ",
            Spelling(f"score={name!r}", f"--columns score={name}, or FILE:score={name}"),
        )


def _is_scale(column: pl.Series) -> bool:
    """Tell whether a column without a telling name may hold ratings: few numbers, or yes and no."""
    plain = plain_name(column.name)
    if plain in column_names()["attributes"] or _ATTRIBUTES.fullmatch(plain):
        return False
    kind = column.dtype
    if not (kind.is_numeric() or kind in (pl.Boolean, pl.String)):
        return False
    kinds = column.unique().drop_nulls()
    if not 0 < len(kinds) <= _FEW:
        return False
    if kind != pl.String:
        return True
    is_number = kinds.cast(pl.Float64, strict=False).is_not_null().all()
    return bool(is_number) or _are_answers(set(_words(kinds)))


def _words(column: pl.Series) -> pl.Series:
    """Return words as they are compared: thumbs_up, Thumbs Up and thumbs-up are one."""
    return column.str.to_lowercase().str.replace_all(r"[\s_\-]+(\S)", "$1")


def _are_answers(kinds: set[str]) -> bool:
    """Tell whether words mean liked and disliked; 0 and 1 alone are numbers."""
    return kinds <= {*column_names()["yes"], *column_names()["no"]} and not kinds <= {
        "0",
        "1",
        "-1",
    }


def _no_choice(table: DataTable, columns: list[str], inverse: bool) -> DataError:
    """Build the error for columns of which any, or none, may be the rating."""
    examples = [f"{name!r} (values {_values(table.frame[name])})" for name in columns[:6]]
    what = "is this column the rating" if len(columns) == 1 else "which column is the rating"
    names = ", ".join(examples) + ("" if len(columns) <= 6 else " …")
    parts: list[str | Spelling] = [f"{table.source}: {what}? {names}. Name it with "]
    parts += [rating_hint(columns[0]), ", or rename it to 'rating'"]
    if inverse:
        parts.append("; where 1 means disliked, write 1 minus the value first")
    parts.append("; if none is a rating and every row is a like, state ")
    parts.append(Spelling("feedback='implicit'", "--feedback implicit"))
    return DataError(*parts)


def rating_hint(name: str) -> Spelling:
    """Return how the column of ratings is named, in Python and on the command line."""
    return Spelling(
        f"rating={name!r}", f"--columns rating={name}, with FILE:rating={name} for one file alone"
    )


def _values(column: pl.Series) -> str:
    """Show a few values of a column, or its range."""
    kinds = column.drop_nulls().unique().sort()
    if len(kinds) <= 6:
        return ", ".join(
            f"{value:g}" if isinstance(value, float) else str(value) for value in kinds
        )
    return f"from {kinds[0]} to {kinds[-1]}"


_MOST_KINDS = 50
BOT_TIMES = 10
"""A user with so many times the events of all but one in a hundred is no usual one."""
BOT_EVENTS = 200


ChosenEvents = tuple[DataTable, pl.Series | None, tuple[str, ...], tuple[Step, ...]]
"""The rows of the chosen kinds of events, their weights, if any, notes on the choice, its step."""


class NoEventColumn(DataError):  # noqa: N818 - reads better where it is raised
    """A table in which no column says the kind of an event, although kinds were chosen."""


def find_event_column(
    table: DataTable, chosen: str | int | None, used: Collection[str | None]
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
    columns = [name for name in table.frame.columns if name not in used]
    return next((name for name in columns if _holds_kinds(table.frame[name])), None)


def choose_events(
    table: DataTable,
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
            return table, None, (), ()
        name = "events" if weights is None else "weights"
        raise NoEventColumn(
            f"{table.source}: {name}=… needs a column that says what kind of event a row is, and "
            f"none was recognised among: {', '.join(table.frame.columns)}; name it with ",
            Spelling("event='…'", "--columns event=…"),
        )
    kinds = table.frame[column].cast(pl.String)
    counts = _counts(table, column, kinds)
    if weights is None and events is None:
        return table, None, _rule_note(table.source, column, counts), ()
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
    others = "" if busy.height == 1 else f" and {counted(busy.height - 1, 'other user')}"
    has = "has" if busy.height == 1 else "have"
    return (
        f"{source}: user {first!r}{others} {has} far more events than all others ({number:,}; 99 % "
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


def _counts(table: DataTable, column: str, kinds: pl.Series) -> dict[str, int]:
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
    table: DataTable,
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
    mask = value > 0
    left = replace(table, frame=table.frame.filter(mask))
    facts = {f"events of kind {kind}": count for kind, count in counts.items()}
    used = {kind: counts[kind] for kind in counts if weights[kind] > 0}
    name, settings = "events", dict[str, object](event=column, kinds=", ".join(used))
    if has_values:
        name, settings = "weights", {"event": column, **weights}
    step = Step(name, settings, _size(table, pair), _size(left, pair), facts=facts)
    lost = {kind: counts[kind] for kind in counts if not weights[kind]}
    note = f"{table.source}: events of column {column!r}: {_shown(used)}"
    if has_values:
        pairs = ", ".join(f"{kind} = {weights[kind]:g}" for kind in used)
        note += f"; weights: {pairs}"
    if lost:
        note += f"; left out: {_shown(lost)}"
    return left, value.filter(mask) if has_values else None, (note,), (step,)


def _size(table: DataTable, pair: tuple[str, str]) -> Size:
    users, items = (table.frame[name].n_unique() for name in pair)
    return Size(table.frame.height, users, items)
