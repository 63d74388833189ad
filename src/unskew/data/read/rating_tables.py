"""Tables of ratings: columns have names, and rows without a rating are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import polars as pl

from unskew.data.read.tables import ITEM, TIME, USER, DataTable, column_hint, plain_name
from unskew.data.read.unnamed_columns import name_columns_by_place
from unskew.errors import DataError
from unskew.report.text import counted

# Columns of data sets that write a number for "not rated": the columns, the number, the data set.
_UNRATED: tuple[tuple[frozenset[str], str, int, str], ...] = (
    (frozenset(("userid", "bookid", "isread", "rating")), "rating", 0, "Goodreads"),
    (frozenset(("userid", "isbn", "bookrating")), "bookrating", 0, "Book-Crossing"),
    (frozenset(("userid", "animeid", "rating")), "rating", -1, "MyAnimeList"),
)


def rating_table(table: DataTable, stated: Mapping[str, object]) -> tuple[DataTable, bool]:
    """Return a table whose columns have names and whose rows have ratings.

    Also whether its columns were named by their order and by what they hold: they had no names, and
    the user does not state users and items by number among more than four columns.

    Parameters
    ----------
    table
        As it was read.
    stated
        The columns that the user states, None for others.
    """
    by_number = isinstance(stated["user"], int) and isinstance(stated["item"], int)
    by_place = not table.header and not (by_number and table.frame.width > 4)
    if by_place:
        roles = {role for role, column in stated.items() if column is not None}
        table = name_columns_by_place(table, roles)
    return _rated(table, stated.get("rating")), by_place


def check_tags(table: DataTable, tags: Iterable[str]) -> None:
    """Refuse names of further columns to keep that are no columns."""
    for tag in tags:
        if tag not in table.frame.columns:
            raise DataError(f"{table.source}: no column {tag!r} to keep as a tag")


def assumed_columns(columns: Mapping[str, str | None], unit: str) -> str:
    """Say which columns were taken for what; `unit` is what their times were taken for."""
    return ", ".join(
        f"{role} = {name} ({unit})" if role == "time" and unit else f"{role} = {name}"
        for role, name in columns.items()
        if name is not None
    )


def column_notes(
    table: DataTable, columns: Mapping[str, str | None], stated: Mapping[str, object]
) -> list[str]:
    """Say which other columns might have been taken; refuse a name that occurs twice.

    Parameters
    ----------
    table
        The table.
    columns
        The column that holds users, items, ratings and times.
    stated
        The columns that the user states, None for others.
    """
    notes = []
    names = {"user": USER, "item": ITEM, "time": TIME}
    for role, column in columns.items():
        if column is None or stated.get(role) is not None:
            continue
        table.check_once(column, role)
        used = [column for column in columns.values() if column is not None]
        rivals = [rival for rival in table.rivals(column, names.get(role, ())) if rival not in used]
        if rivals:
            hint = column_hint(role, rivals[0])
            notes.append(
                f"{table.source}: column {column!r} is taken as the {role}, not "
                f"{' or '.join(map(repr, rivals))}; {hint.python} (command line: --columns "
                f"{hint.python}) takes the other"
            )
    return notes


# Rows without a rating


def _rated(table: DataTable, stated: object) -> DataTable:
    """Leave out the rows that a data set marks as not rated; another stated column has no mark."""
    plain = {plain_name(name): name for name in table.frame.columns}
    for columns, rating, mark, dataset in _UNRATED:
        name = plain.get(rating)
        if not columns <= set(plain) or stated not in (None, name, _number(table, name)):
            continue
        values = table.frame[str(name)].cast(pl.Float64, strict=False)
        unrated = (values == mark).fill_null(False)
        if not unrated.any() or unrated.all():
            continue
        note = (
            f"{table.source}: {counted(int(unrated.sum()), 'row')} with {name} {mark} "
            f"left out: in {dataset} {mark} means not rated"
        )
        return replace(table, frame=table.frame.filter(~unrated), notes=(*table.notes, note))
    return table


def _number(table: DataTable, name: str | None) -> int | None:
    return None if name is None else table.frame.columns.index(name)
