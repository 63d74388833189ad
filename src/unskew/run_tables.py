"""The rows of ranked lists, from whatever holds them: files, frames, mappings of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.data import tables
from unskew.data.frames import as_column
from unskew.data.nested import check_lengths, first_value, shown
from unskew.errors import DataError, Spelling
from unskew.report.text import counted

# Kernels subtract ranks from each other, and floats hold every whole number below this.
_TOO_LARGE = 2**53
BY_SCORE = Spelling(
    "by='score'", "--by score", beside="--gaps", without="a file without its rank column"
)
"""How lists with ranks and scores are ranked by score."""


def run_table(source: object, kind: str | None, by_number: bool) -> tables.Table:
    """Read a run's rows; mappings from user to list become rows too."""
    if isinstance(source, Mapping) and not _is_columns(source):
        return _from_lists(source)
    table = tables.read_table(source, format=kind)
    if table.format == "trec":
        if table.frame.width != 6:
            raise DataError(
                f"{table.source}: a TREC run file has 6 columns (user Q0 item rank score tag), "
                f"this has {table.frame.width}"
            )
        frame = table.frame
        frame.columns = ["user", "Q0", "item", "rank", "score", "tag"]
        return replace(table, frame=frame)
    if not table.header and not (by_number and table.frame.width > 4):
        names = (
            ("user", "item", "score")
            if table.frame.width == 3
            else ("user", "item", "rank", "score")
        )
        return tables.name_columns(table, names)
    return table


def one_row_per_item(table: tables.Table, names: Mapping[str, Any]) -> tables.Table:
    """Turn a row per list, with a column of lists of items, into a row per item."""
    nested = [names[what] for what in ("item", "rank", "score") if names[what] is not None]
    for name in nested:
        if not isinstance(table.frame[name].dtype, pl.List | pl.Array):
            raise DataError(
                f"{table.source}: column {names['item']!r} holds lists, but column {name!r} one "
                "value per row; give a list for each row, or leave the column out"
            )
    check_lengths(table.source, table.frame.select(nested))
    flat = [names["user"]]
    if table.frame[names["user"]].n_unique() < table.frame.height:  # something tells lists apart
        flat = [name for name, kind in table.frame.schema.items() if not kind.is_nested()]
    frame = table.frame.select(*flat, *nested).explode(nested)
    return replace(table, frame=frame.filter(pl.col(names["item"]).is_not_null()))


def _is_columns(source: Mapping[Any, Any]) -> bool:
    """Tell a mapping of columns from a mapping of users: columns have the names of columns."""
    names = [tables.plain_name(str(name)) for name in source]
    return any(name in tables.USER for name in names) and any(name in tables.ITEM for name in names)


def _from_lists(source: Mapping[Any, Any]) -> tables.Table:
    scored = [isinstance(items, Mapping) for items in source.values()]
    if any(scored) != all(scored):
        raise DataError("lists must all be of one kind: items in order, or items with scores")
    user: list[Any] = []
    item: list[Any] = []
    third: list[Any] = []
    for who, items in source.items():
        is_list = getattr(items, "ndim", 1) == 1 and not isinstance(items, str)
        if not is_list or not isinstance(items, Mapping | Sequence | np.ndarray):
            raise DataError(f"user {who!r}: expected a list of items, got {shown(items)}")
        user += [who] * len(items)
        item += list(items)
        third += list(items.values()) if isinstance(items, Mapping) else range(1, len(items) + 1)
    name = "score" if scored and all(scored) else "rank"
    ids = as_column("item", item)
    if isinstance(ids.dtype, pl.List | pl.Array):  # else lists of lists would become one list
        row, cell = first_value(ids)
        raise DataError(f"user {user[row - 1]!r}: expected a list of items, but one item is {cell}")
    frame = pl.DataFrame([as_column("user", user), ids, as_column(name, third)])
    return tables.Table(frame, "lists", format="mapping")


def are_ranks(column: pl.Series) -> bool:
    """Tell whether all of a column's integers are small enough for ranks."""
    ends = pl.DataFrame([column]).select(low=pl.first().min(), high=pl.first().max()).row(0)
    return not len(column) or max(map(abs, ends)) < _TOO_LARGE


def rank_column(table: tables.Table, name: str) -> I64:
    """Return a rank column as whole numbers; refuse what is none."""
    column = tables.number_column(table, name, "ranks")
    if column.dtype.is_integer() and not column.null_count() and are_ranks(column):
        return (column if column.dtype == pl.Int64 else column.cast(pl.Int64)).to_numpy()
    values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    bad = ~(np.abs(values) < _TOO_LARGE) | (values != np.round(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{table.source}: {int(bad.sum()):,} ranks in column {name!r} are not whole numbers "
            f"below 2**53, the first in row {row + 1}: {table.frame[name][row]!r}; rank by score "
            f"instead with ",
            BY_SCORE,
            ", or correct them",
        )
    return values.astype(np.int64)


def without_nan(
    table: tables.Table, scores: pl.Series, ranks: I64 | None, nan: str
) -> tuple[tables.Table, pl.Series, I64 | None, list[str]]:
    """Refuse, or drop, rows whose score is NaN or missing."""
    floats = scores.cast(pl.Float64)
    bad = (floats.is_null() | floats.is_nan()).to_numpy()
    if not bad.any():
        return table, floats, ranks, []
    count, row = int(bad.sum()), int(np.argmax(bad))
    if nan == "error":
        raise DataError(
            f"{table.source}: {counted(count, 'score is', 'scores are')} NaN or missing, the "
            f"first in row {row + 1}; leave these items out with ",
            Spelling("nan='drop'", "--nan drop"),
        )
    keep = pl.Series(~bad)
    kept = None if ranks is None else ranks[~bad]
    note = f"{table.source}: {counted(count, 'row')} without a score dropped"
    return replace(table, frame=table.frame.filter(keep)), floats.filter(keep), kept, [note]
