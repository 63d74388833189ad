"""Reading ratings, judgments and tables of lists from files, frames and arrays."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from unskew.checks import checked, choose
from unskew.data.frames import is_frame
from unskew.data.rating_tables import column_notes, rating_table
from unskew.data.ratings import FEEDBACK, Ratings, id_column
from unskew.data.tables import (
    COUNTS,
    ITEM,
    RATING,
    TIME,
    USER,
    Table,
    column_hint,
    naming,
    number_column,
    plain_name,
    read_table,
)
from unskew.data.times import time_column
from unskew.errors import DataError, DataWarning, Spelling
from unskew.report.text import counted


@checked
def read_ratings(
    source: object,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rating: str | int | None = None,
    time: str | int | None = None,
    tags: Sequence[str] = (),
    optional_tags: Sequence[str] = (),
    duplicates: str = "error",
    feedback: str | None = None,
    format: str | None = None,  # noqa: A002 - the word users expect
) -> Ratings:
    """Read ratings, interactions or judgments from a file, a frame or arrays.

    Parameters
    ----------
    source
        A path or an address such as `s3://bucket/ratings.csv` (CSV, TSV, `::`-separated,
        whitespace-separated TREC qrels, JSON lines or an array of objects, the files of the Netflix
        Prize, the matrices of Jester, each also gzipped, or Parquet, also a folder or a pattern of
        Parquet files; pipes too), a data frame (polars, pandas, pyarrow, duckdb or any other
        that narwhals knows), or a mapping of column names to arrays. `Ratings`, and those of a
        `Dataset` or a `World`, are returned as they are.
    user, item, rating, time
        Names (or numbers, from 0) of the columns; guessed from common names unless given, and
        `Ratings.notes` says what was assumed. Without a header line the columns are user, item
        and rating; a third or fourth column of ISO dates or of seconds (milli-, micro-,
        nanoseconds) from 1990 to 2100 is the time, any other fourth one is kept as a tag; ids of
        Amazon's products show where the item comes first.
        Without a rating column the data is implicit: every pair counts as 1. Ratings may be up to
        ±1e100. Times are ISO text, dates, or seconds, milli-, micro- or nanoseconds since 1970,
        told by their size; a column with several units is refused.
    tags
        Names of further columns to keep.
    optional_tags
        Names of columns to keep where they exist.
    duplicates
        For pairs that occur more than once: `error`, `first`, `last`, `mean`, `sum` or `max`; or
        `count` for an event log: how often each pair occurs, as implicit feedback.
    feedback
        `explicit`: a rating is an opinion. `implicit`: a pair that occurs is liked, nothing is
        known of dislikes, and a value counts events. Default: implicit where there is no rating
        column, or where its name says that it counts (`count`, `plays`, `clicks` …) and all values
        are 1 and more; the notes say so.
    format
        `csv`, `tsv`, `::`, `parquet`, `json` or `trec`; recognised by the file unless given. In a
        TREC qrels file a negative grade means *in the pool but not judged*.

    Examples
    --------
    >>> import unskew as us
    >>> us.read_ratings({"user": [1, 1, 2], "item": ["a", "b", "a"], "rating": [5, 3, 4]})
    Ratings(3 explicit, 2 users, 2 items)
    """
    if isinstance(source, Ratings):
        return source
    held = getattr(source, "ratings", None)
    if isinstance(held, Ratings):  # a Dataset or a World
        return held
    if feedback is not None:
        choose("feedback", feedback, FEEDBACK)
    table = read_table(source, format=format)
    if table.format == "trec":
        return _qrels(table, duplicates)
    by_number = isinstance(user, int) and isinstance(item, int)
    by_place = not table.header and not (by_number and table.frame.width > 4)
    stated = {"user": user, "item": item, "rating": rating, "time": time}
    table = rating_table(table, stated, by_place=by_place)
    taken = {table.pick(w, (), g) for w, g in (("user", user), ("item", item)) if g is not None}
    names = {
        "user": table.need("user", USER, user),
        "item": table.need("item", ITEM, item),
        "rating": table.pick("rating", RATING, rating, taken),
        "time": table.pick("time", TIME, time, taken),
    }
    frame = table.frame
    if frame.height == 0:
        raise DataError(f"{table.source}: there are no rows")
    value = None
    if names["rating"] is not None:
        value = number_column(table, names["rating"], "ratings")
    columns = {what: name for what, name in names.items() if name is not None}
    stamps = None
    if names["time"] is not None:
        stamps, unit = time_column(table, names["time"])
        columns["time"] += f" ({unit})"
    assumed = ", ".join(f"{what} = {name}" for what, name in columns.items())
    notes = [
        f"{table.source}: {table.format}, {counted(frame.height, 'row')}; {assumed}",
        *table.notes,
        *column_notes(table, names, stated),
    ]
    implicit, note = _kind_of_feedback(table.source, names["rating"], value, feedback)
    if duplicates == "count":
        implicit, note = feedback != "explicit", []
    notes += note
    tags = _tags(table, tags, optional_tags)
    used = (*names.values(), *tags)
    further = [name for name in frame.columns[3:] if by_place and name not in used]
    notes += [_tag_note(table, name) for name in further]
    kept = (*tags, *further)
    with naming(table.source):
        ratings = Ratings.of(
            frame[str(names["user"])],
            frame[str(names["item"])],
            value,
            stamps,
            tags={tag: frame[tag] for tag in kept},
            duplicates=duplicates,
            notes=tuple(notes),
        )
    return ratings if ratings.implicit == implicit else replace(ratings, implicit=implicit)


def _kind_of_feedback(
    source: str, name: str | None, value: pl.Series | None, feedback: str | None
) -> tuple[bool, list[str]]:
    """Tell whether the feedback is implicit, and say so where that is not plain from the data."""
    if value is None or name is None:
        if feedback == "explicit":
            raise DataError(
                f"{source}: explicit feedback needs a column of ratings; name it with ",
                column_hint("rating"),
            )
        return True, [f"{source}: no rating column, so every pair counts as 1 (implicit feedback)"]
    if feedback is not None:
        return feedback == "implicit", []
    if plain_name(name) not in COUNTS or bool((value < 1).any()):
        return False, []
    note = f"{source}: column {name!r} counts events (implicit feedback): every pair is liked"
    return True, [note]


def _tags(table: Table, tags: Sequence[str], optional: Sequence[str]) -> tuple[str, ...]:
    """Return the names of further columns to keep; refuse one that is not there."""
    columns = table.frame.columns
    missing = [tag for tag in tags if tag not in columns]
    if missing:
        raise DataError(f"{table.source}: no column {missing[0]!r} to keep as a tag")
    return (*tags, *(tag for tag in optional if tag in columns and tag not in tags))


def _tag_note(table: Table, name: str) -> str:
    number, example = table.frame.columns.index(name), table.frame[name][0]
    return (
        f"{table.source}: column {number} (counted from 0; such as {example!r}) is kept as the "
        f"tag {name!r}; if it holds times, give time={number} (command line: --columns "
        f"time={number})"
    )


def read_items(source: object, item: str | int | None = None) -> pl.Series:
    """Read a catalogue: one column of item ids, from a file, a frame or any sequence.

    Parameters
    ----------
    source
        A file, a table or a sequence of ids.
    item
        The name of the column, or its number (from 0). Where the first line of a file with one
        column may be a name or an item, this settles it: a name is a header line, 0 is none.
    """
    if isinstance(source, str | os.PathLike | Mapping) or is_frame(source):
        table = read_table(source)
        column = _item_column(table, item, isinstance(source, str | os.PathLike))
        with naming(table.source):
            return id_column(column).unique()
    if isinstance(source, pl.Series):
        return id_column(source).unique()
    if isinstance(source, Iterable):
        return id_column(pl.Series("item", list(source))).unique()
    raise DataError(f"items must be a file, a table or a sequence of ids, got {type(source)}")


def _item_column(table: Table, item: str | int | None, is_file: bool) -> pl.Series:
    frame = table.frame
    if not table.header:
        return frame[str(table.pick("item", (), item if isinstance(item, int) else 0))]
    if frame.width > 1:
        return frame[table.need("item", ITEM, item)]
    column = frame[str(table.pick("item", (), item if isinstance(item, str) else 0))]
    if not is_file or isinstance(item, str):
        return column
    if item is None and _is_header(table.source, column):
        return column
    return pl.concat([pl.Series([column.name]), column.cast(pl.String)])


def _is_header(source: str, column: pl.Series) -> bool:
    """Tell whether the first line of a list of items is the name of its column, or refuse."""
    first = column.name
    if plain_name(first) in ITEM or (column.dtype == pl.Int64 and len(column)):
        return True
    if re.search(r"\d", first):
        return False
    if len(column) and bool(column.str.contains(r"\d").all()):
        warnings.warn(
            f"{source}: took the first line, {first!r}, as the name of the column, because all "
            "other lines hold digits; write 'item' there to be sure",
            DataWarning,
            stacklevel=2,
        )
        return True
    raise DataError(
        f"{source}: is the first line, {first!r}, the name of the column or an item? Write 'item' "
        f"as the first line",
        Spelling("", f", or say FILE:item={first} if it is the name, FILE:item=0 if it is an item"),
    )


def _qrels(table: Table, duplicates: str) -> Ratings:
    """Make judgments of TREC qrels: `user 0 item grade`, a negative grade = not judged."""
    if table.frame.width != 4:
        raise DataError(
            f"{table.source}: a TREC qrels file has 4 columns (user 0 item grade), this has "
            f"{table.frame.width}; a run file goes to ",
            Spelling("read_run", "--run"),
        )
    user, _, item, grade = table.frame.iter_columns()
    value = number_column(table, grade.name, "grades").rename("grade")
    pooled = (value < 0).rename("pooled")
    note = f"{table.source}: TREC qrels, {counted(table.frame.height, 'row')}"
    if pooled.any():
        note += f"; {int(pooled.sum()):,} of them in the pool but not judged (negative grade)"
    with naming(table.source):
        return Ratings.of(
            user.rename("user"),
            item.rename("item"),
            value,
            tags={"pooled": pooled},
            duplicates=duplicates,
            notes=(note, *table.notes),
        )
