"""Reading ratings, judgments and tables of lists from files, frames and arrays."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from unskew.checks import checked, choose
from unskew.data.ratings import FEEDBACK, Ratings, id_column
from unskew.data.read.frames import as_column, is_frame
from unskew.data.read.rating_columns import (
    NoEventColumn,
    busy_users,
    check_no_scores,
    choose_events,
    find_event_column,
    find_rating_column,
    rating_values,
    stated_columns,
    why_implicit,
)
from unskew.data.read.rating_tables import assumed_columns, check_tags, column_notes, rating_table
from unskew.data.read.tables import (
    ITEM,
    TIME,
    USER,
    DataTable,
    column_hint,
    naming,
    number_column,
    plain_name,
    read_table,
)
from unskew.data.steps import Size, Step
from unskew.data.times import time_column
from unskew.errors import DataError, DataWarning, SettingError, Spelling, file_name
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
    event: str | int | None = None,
    events: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    duplicates: str | None = None,
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
        Amazon's products show where the item comes first. A column that may be a rating is never
        left out in silence: where its name does not tell, the table is refused. Words such as
        like and dislike, true and false are 1 and 0. Without a rating column the data is implicit:
        every pair counts as 1. Ratings may be up to ±1e100. Times are ISO text, dates, or
        seconds, milli-, micro- or nanoseconds since 1970,
        told by their size; a column with several units is refused.
    tags
        Names of further columns to keep.
    optional_tags
        Names of columns to keep where they exist.
    event
        The column of an event log that says what kind of event a row is, such as view or
        purchase; recognised by its name or its words unless given.
    events
        The kinds of events that count, such as ``"purchase"``; other rows are left out and counted.
        Without it every event counts, and the first note lists the kinds.
    weights
        What an event of each kind counts, such as ``{"view": 1, "purchase": 5}``, 0 to leave it
        out; the value of a pair is the sum.
    duplicates
        For pairs that occur more than once: `error`, `first`, `last`, `mean`, `sum` or `max`; or
        `count` for an event log: how often each pair occurs, as implicit feedback. Default:
        `error`; `count` where a column says the kind of an event, `sum` with `weights`.
    feedback
        `explicit`: a rating is an opinion. `implicit`: a pair that occurs is liked, nothing is
        known of dislikes, and a value counts events. Default: implicit where there is no rating
        column, where its name says that it counts use (`count`, `plays`, `hours` …) and all values
        are above 0, or where all values are 1; the notes say so.
    format
        `csv`, `tsv`, `::`, `parquet`, `json` or `trec`; recognised by the file unless given. In a
        TREC qrels file a negative grade means *in the pool but not judged*.

    Examples
    --------
    >>> import unskew as us
    >>> us.read_ratings({"user": [1, 1, 2], "item": ["a", "b", "a"], "rating": [5, 3, 4]})
    Ratings(3 explicit, 2 users, 2 items)
    """
    source_ratings = source if isinstance(source, Ratings) else getattr(source, "ratings", None)
    if isinstance(source_ratings, Ratings):  # of a Dataset or a World
        _check_unread(event=event, events=events, weights=weights)
        return source_ratings
    if feedback is not None:
        choose("feedback", feedback, FEEDBACK)
    table = read_table(source, format=format)
    if table.format == "trec":
        return _qrels(table, duplicates or "error")
    stated = {"user": user, "item": item, "rating": rating, "time": time}
    table, by_place = rating_table(table, stated)
    if table.frame.height == 0:
        raise DataError(f"{table.source}: there are no rows")
    check_tags(table, tags)
    optional = (tag for tag in optional_tags if tag in table.frame.columns)
    tags = list(dict.fromkeys((*tags, *optional)))
    who, what = table.need("user", USER, user), table.need("item", ITEM, item)
    when = table.pick(
        "time", TIME, time, stated_columns(table, user=user, item=item, rating=rating)
    )
    used = {who, what, when, *tags}
    kind = find_event_column(table, event, used | stated_columns(table, rating=rating))
    log, weight, log_notes, steps = choose_events(table, kind, (who, what), events, weights)
    used.add(kind)
    column, value, implicit, duplicates, feedback_notes = _find_feedback(
        log, weight, rating, used, feedback, duplicates, is_log=kind is not None
    )
    columns = {"user": who, "item": what, "rating": column, "time": when}
    stamps, unit = (None, "") if when is None else time_column(log, when)
    frame = log.frame
    used.add(column)
    further = [name for name in frame.columns if by_place and name not in used]
    notes = (
        *log_notes,
        f"{table.source}: {log.format}, {counted(frame.height, 'row')}; "
        f"{assumed_columns(columns, unit)}",
        *table.notes,
        *column_notes(table, columns, stated),
        *feedback_notes,
        *(busy_users(frame[who], table.source) if implicit else ()),
        *(_tag_note(log, name) for name in further),
    )
    with naming(table.source):
        ratings = Ratings.of(
            frame[who],
            frame[what],
            value,
            stamps,
            tags={tag: frame[tag] for tag in (*tags, *further)},
            duplicates=duplicates,
            notes=notes,
        )
    if kind is not None and len(ratings) < frame.height:
        before = Size(frame.height, len(ratings.users), len(ratings.items))
        steps = (*steps, Step("repeats", {"repeats": duplicates}, before, ratings.size()))
    return replace(ratings, implicit=implicit, steps=steps)


def read_parts(readers: Mapping[str, Callable[..., Ratings]]) -> dict[str, Ratings]:
    """Read several parts; kinds of events are chosen in those that have them, at least in one.

    Parameters
    ----------
    readers
        By part, what reads it; it takes `events` and `weights`, which None takes back.
    """
    parts: dict[str, Ratings] = {}
    missing: list[NoEventColumn] = []
    for part, read in readers.items():
        try:
            parts[part] = read()
        except NoEventColumn as problem:
            missing.append(problem)
            parts[part] = read(events=None, weights=None)
    if missing and len(missing) == len(readers):
        raise missing[0]
    return parts


def read_test_and_train(
    judgments: object,
    train: object,
    events: str | Sequence[str] | None,
    weights: Mapping[str, float] | None,
) -> tuple[Ratings, Ratings | None]:
    """Read test ratings, and training ratings where there are some; see `read_parts`."""
    named = {"test": judgments} if train is None else {"test": judgments, "train": train}
    parts = read_parts(
        {
            part: partial(read_ratings, source, events=events, weights=weights)
            for part, source in named.items()
        }
    )
    return parts["test"], parts.get("train")


def _check_unread(**options: object) -> None:
    """Refuse what is for files and tables where ratings were read already."""
    for name, value in options.items():
        if value is not None:
            raise NoEventColumn(
                f"{name}=… is for files and tables, but these ratings were read already: give it "
                "to read_ratings"
            )


def _find_feedback(
    table: DataTable,
    weights: pl.Series | None,
    rating: str | int | None,
    used: Collection[str | None],
    feedback: str | None,
    duplicates: str | None,
    *,
    is_log: bool,
) -> tuple[str | None, pl.Series | None, bool, str, tuple[str, ...]]:
    """Find what the rows say: the weights of events, a column of ratings, or that they occur.

    Returns the column, its values, whether they are implicit feedback, what to do with pairs that
    occur more than once, and notes.
    """
    if weights is not None:
        return None, weights, feedback != "explicit", duplicates or "sum", ()
    rated, notes = find_rating_column(table, rating, used, feedback, is_log=is_log)
    if rated is None:
        if feedback == "explicit":
            raise DataError(
                f"{table.source}: explicit feedback needs a column of ratings; name it with ",
                column_hint("rating"),
            )
        ignored = [name for name in table.frame.columns if name not in used]
        rule = "no rating column, so every pair counts as 1 (implicit feedback)"
        if is_log:
            rule = "implicit feedback: a pair is liked if it has an event, and counts its events"
        note = f"{table.source}: {rule}"
        if ignored:
            note += f"; not used: {', '.join(map(repr, ignored))}"
        return None, None, True, duplicates or ("count" if is_log else "error"), (note,)
    value, meaning = rating_values(table, rated)
    if rating is None:
        check_no_scores(table, rated, value)
    reason = None if feedback else why_implicit(rated, value)
    implicit = feedback == "implicit" or reason is not None
    if duplicates == "count":
        implicit, reason = feedback != "explicit", None
    notes = (*notes, *meaning, *([f"{table.source}: {reason}"] if reason else []))
    return rated, value, implicit, duplicates or "error", notes


def _tag_note(table: DataTable, name: str) -> str:
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
    if isinstance(source, Iterable) and getattr(source, "shape", None) != ():
        return id_column(as_column("item", list(source))).unique()
    raise DataError(f"items must be a file, a table or a sequence of ids, got {type(source)}")


def _item_column(table: DataTable, item: str | int | None, is_file: bool) -> pl.Series:
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


def _qrels(table: DataTable, duplicates: str) -> Ratings:
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


@checked
def read_qrels(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, object],
    *,
    duplicates: str = "error",
) -> Ratings:
    r"""Read TREC qrels; several files become one collection, as bellogin2017 takes 30 tracks.

    Query 301 of one track is not query 301 of another: with several files every query is written
    `label/query`, and the tag `collection` holds the label. Documents keep their names.

    Parameters
    ----------
    files
        A file, several (each labelled by its name without its ending), or labels with their files.
    duplicates
        For pairs that stand more than once in a file: see `read_ratings`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unskew.data.read.ratings_files import read_qrels
    >>> folder = Path(tempfile.mkdtemp())
    >>> for track in ("web9", "web10"):
    ...     _ = (folder / f"{track}.qrels").write_text("1 0 d7 2\n1 0 d8 0\n")
    >>> both = read_qrels(sorted(folder.glob("*.qrels")))
    >>> list(both.users.values)
    ['web10/1', 'web9/1']
    """
    if isinstance(files, str | os.PathLike):
        return read_ratings(files, format="trec", duplicates=duplicates)
    labelled = files if isinstance(files, Mapping) else _labelled(files)
    if not labelled:
        raise SettingError("read_qrels: give at least one file")
    frames: list[pl.DataFrame] = []
    notes: list[str] = []
    for label, file in labelled.items():
        part = read_ratings(file, format="trec", duplicates=duplicates)
        notes += part.notes
        frames.append(
            part.to_polars().select(
                (pl.lit(f"{label}/") + pl.col("user").cast(pl.String)).alias("user"),
                pl.col("item").cast(pl.String),
                "rating",
                "pooled",
                pl.lit(label).alias("collection"),
            )
        )
    rows = pl.concat(frames)
    return Ratings.of(
        rows["user"],
        rows["item"],
        rows["rating"],
        tags={name: rows[name] for name in ("pooled", "collection")},
        notes=tuple(notes),
    )


def _labelled(files: Sequence[str | os.PathLike[str]]) -> dict[str, object]:
    labelled: dict[str, object] = {}
    for file in files:
        label = Path(file_name(file).removesuffix(".gz")).stem
        if label in labelled:
            raise SettingError(
                f"read_qrels: two files are named {label!r}; give labels: "
                f"{{'first': …, 'second': …}}"
            )
        labelled[label] = file
    return labelled
