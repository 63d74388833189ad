"""Which column of a table says what users think of items: by its name, else by its values."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from unskew.data.column_names import column_names
from unskew.data.tables import RANK, TIME, Table, number_column, plain_name
from unskew.errors import DataError, Spelling

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


@dataclass(frozen=True)
class RatingColumn:
    """The column that holds ratings, and what to say of the choice."""

    name: str
    counts: bool
    """Whether its name says that it counts or measures use."""
    notes: tuple[str, ...] = ()


def find_rating_column(
    table: Table,
    chosen: str | int | None,
    used: Collection[str | None],
    feedback: str | None,
    *,
    is_log: bool = False,
) -> RatingColumn | None:
    """Return the column of ratings; None where no column looks like one.

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
        name = str(table.pick("rating", (), chosen))
        return RatingColumn(name, plain_name(name) in column_names()["counts"])
    free = [name for name in table.frame.columns if name not in used]
    _check_no_lists(table, free)
    opinion = _opinion(table, free, feedback)
    if opinion is not None:
        others = [name for name in free if name != opinion and _is_feedback(name)]
        return RatingColumn(opinion, False, _unused(table, others))
    if is_log:
        return None
    likes = [name for name in free if _bare(name) in column_names()["likes"]]
    counts = [name for name in free if plain_name(name) in column_names()["counts"]]
    dislikes = [name for name in free if _bare(name) in column_names()["dislikes"]]
    telling = [*likes, *counts, *dislikes]
    if len(telling) == 1 and not dislikes:
        return RatingColumn(telling[0], bool(counts))
    unclear = telling or [name for name in free if _is_scale(table.frame[name])]
    if unclear and feedback != "implicit":
        raise _no_choice(table, unclear, bool(dislikes))
    return None


def stated_columns(table: Table, **columns: str | int | None) -> set[str | None]:
    """Return the names of the columns that the user states for something, by name or number."""
    return {table.pick(role, (), column) for role, column in columns.items() if column is not None}


def rating_values(table: Table, name: str) -> tuple[pl.Series, tuple[str, ...]]:
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


def why_implicit(column: RatingColumn, value: pl.Series) -> str | None:
    """Say why values are implicit feedback; None where they are opinions."""
    if column.counts and bool((value > 0).all()):
        return (
            f"column {column.name!r} counts use (implicit feedback): every pair is liked, however "
            "small its value; liked=… takes only larger ones"
        )
    if bool((value == 1).all()):
        return f"column {column.name!r} is 1 in every row (implicit feedback): every pair is liked"
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


def _opinion(table: Table, free: list[str], feedback: str | None) -> str | None:
    """Return the column named after opinions; of several by an ending, none is chosen."""
    plain = {plain_name(name): name for name in reversed(free)}
    exact = next((plain[name] for name in column_names()["opinions"] if name in plain), None)
    if exact is not None:
        return exact
    ending = [
        name
        for name in free
        if _ENDINGS.search(plain_name(name)) and not _AGGREGATES.match(plain_name(name))
    ]
    overall = [name for name in ending if "overall" in plain_name(name)]
    several = overall if len(overall) == 1 else ending
    if len(several) > 1 and feedback != "implicit":
        raise _no_choice(table, several, False)
    return several[0] if len(several) == 1 else None


def _unused(table: Table, others: list[str]) -> tuple[str, ...]:
    if not others:
        return ()
    return (f"{table.source}: not used: {', '.join(map(repr, others))}",)


def _check_no_lists(table: Table, free: list[str]) -> None:
    """Refuse ranked lists where ratings should be: they have ranks, and no feedback."""
    plain = {plain_name(name): name for name in free}
    rank = next((plain[name] for name in RANK if name in plain), None)
    feedback = [name for name in free if _is_feedback(name) and plain_name(name) not in _SCORES]
    is_log = rank is not None and plain_name(rank) in ("position", "pos") and plain.keys() & {*TIME}
    if rank is None or feedback or is_log:
        return
    raise _swapped(table, f"there is a column {rank!r} and none of ratings")


def check_no_scores(table: Table, name: str, values: pl.Series) -> None:
    """Refuse scores of a system where ratings should be, in a column that was not named."""
    if plain_name(name) not in _SCORES or not len(values):
        return
    halves = values.cast(pl.Float64) * 2
    if float((halves != halves.round()).mean() or 0.0) > 0.5:  # type: ignore[arg-type]
        raise _swapped(table, f"column {name!r} has values such as {values[0]}")


def _swapped(table: Table, reason: str) -> DataError:
    return DataError(
        f"{table.source}: these look like ranked lists, not ratings: {reason}. Are test ratings "
        "and lists swapped? Lists are given with ",
        Spelling("runs=…", "--run, and test ratings with --judgments"),
        "; if a column holds ratings, name it with ",
        rating_hint("…"),
    )


def check_no_ratings(table: Table, name: str, values: pl.Series) -> None:
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


def _no_choice(table: Table, columns: list[str], inverse: bool) -> DataError:
    """Build the error for columns of which any, or none, may be the rating."""
    shown = [f"{name!r} (values {_values(table.frame[name])})" for name in columns[:6]]
    what = "is this column the rating" if len(columns) == 1 else "which column is the rating"
    names = ", ".join(shown) + ("" if len(columns) <= 6 else " …")
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
