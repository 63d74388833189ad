"""A column of a table of users: what users are divided by."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from unskew.addresses import is_address
from unskew.arrays import F64
from unskew.data.ratings import Ids
from unskew.data.tables import ITEM, USER, Table, naming, read_table
from unskew.errors import DataError, Spelling, unknown_name
from unskew.report.text import counted

_WHO = {"user": "who", "item": "that"}
_NO_FILES = ("arrays", "frame")
"""How `read_table` calls tables that are in no file."""


@dataclass(frozen=True, eq=False)
class UserColumn:
    """A value per user (or item): numbers, or texts."""

    name: str
    source: str
    users: Ids
    numbers: F64 | None = None
    """NaN where there is none."""
    texts: pl.Series | None = None
    is_time: bool = False
    """Whether the numbers are microseconds since 1970."""

    @property
    def title(self) -> str:
        """The column, and its file where it is in one."""
        return self.name if self.source in _NO_FILES else f"{self.name} ({self.source})"

    @property
    def place(self) -> str:
        """Where it is."""
        return "the table" if self.source in _NO_FILES else self.source


def is_column(by: str) -> bool:
    """Tell whether a text names a column of a file: FILE:COLUMN.

    A file that is not there counts if its name has an ending: reading it names it.
    """
    file, colon, column = by.rpartition(":")
    if not colon or not column:
        return False
    try:
        return is_address(file) or bool(Path(file).suffix) or Path(file).exists()
    except OSError:  # such as a name that is too long
        return False


def read_column(by: str | os.PathLike[str], of: str = "user") -> UserColumn:
    """Read FILE:COLUMN; `of` says whose: `user` or `item`."""
    file, _, name = str(by).rpartition(":")
    table = read_table(file)
    user = _user_column(table) if of == "user" else _item_column(table)
    others = [column for column in table.frame.columns if column != user]
    if name not in others:
        raise unknown_name(f"column of {table.source}", name, others)
    return _column(table, user, name, of)


def column_of_table(source: object, of: str = "user") -> UserColumn:
    """Take a table with a column of users (or, with `of`, of items) and one other column."""
    table = read_table(source)
    user = _user_column(table) if of == "user" else _item_column(table)
    others = [column for column in table.frame.columns if column != user]
    if len(others) != 1:
        raise DataError(
            f"by=…: a table of segments has a column of {of}s and one other column, got: "
            f"{', '.join(table.frame.columns)}"
        )
    return _column(table, user, others[0], of)


def _user_column(table: Table) -> str:
    user = table.pick("user", USER, None)
    if user is not None:
        return user
    columns = ", ".join(table.frame.columns)
    item = table.pick("item", ITEM, None)
    if item is not None:
        raise DataError(
            f"by=…: {table.source} has a column of items ({item!r}) and none of users, but "
            "segments are groups of users; metrics by groups of items: ",
            Spelling(
                "us.unbiased.strata(judged, by=…, of='items')",
                "unskew strata --by FILE --of items",
            ),
        )
    raise DataError(
        f"by=…: {table.source} has no column of users; its columns are: {columns or 'none'}; call "
        "the one with the ids of users user"
    )


def _item_column(table: Table) -> str:
    item = table.pick("item", ITEM, None)
    if item is not None:
        return item
    raise DataError(
        f"by=…: {table.source} has no column of items; its columns are: "
        f"{', '.join(table.frame.columns) or 'none'}; call the one with the ids of items item"
    )


def _column(table: Table, user: str, name: str, of: str) -> UserColumn:
    """Return the value of each user or item; each has one row."""
    with naming(table.source):
        ids, codes = Ids.number(table.frame[user])
    if len(ids) < codes.size:
        again = int(np.argmax(np.bincount(codes)))
        raise DataError(
            f"by=…: {table.source} has {counted(codes.size - len(ids), 'row')} of {of}s {_WHO[of]} "
            f"already have one, such as {of} {ids.values[again]!r}: give each {of} one row"
        )
    order = pl.Series(np.argsort(codes, kind="stable"))
    column = table.frame[name].gather(order)
    kind = column.dtype
    if kind.is_temporal() and kind not in (pl.Time, pl.Duration):
        times = column.cast(pl.Datetime("us")).to_physical().cast(pl.Float64)
        return UserColumn(name, table.source, ids, _floats(times), is_time=True)
    if kind == pl.String:
        texts = column.str.strip_chars()
        texts = texts.set(texts == "", None)
        floats = texts.cast(pl.Float64, strict=False)
        if floats.null_count() == texts.null_count() and texts.null_count() < len(texts):
            return UserColumn(name, table.source, ids, _floats(floats))
        return UserColumn(name, table.source, ids, texts=texts)
    if kind.is_numeric():
        return UserColumn(name, table.source, ids, _floats(column.cast(pl.Float64)))
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        raise DataError(
            f"by=…: column {name!r} of {table.source} must hold numbers, times or text, got {kind}"
        )
    return UserColumn(name, table.source, ids, texts=column.cast(pl.String))


def _floats(column: pl.Series) -> F64:
    """Return numbers; NaN for what is missing or not finite."""
    values = column.fill_null(float("nan")).to_numpy().astype(np.float64)
    return np.where(np.isfinite(values), values, np.nan)
