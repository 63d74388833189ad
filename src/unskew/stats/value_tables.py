"""Values per user that other software gave: frames, files and arrays of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.data.ratings import Ids
from unskew.data.read.tables import USER, DataTable, number_column, plain_name
from unskew.errors import DataError
from unskew.evaluation.scores import COUNTS
from unskew.report.text import counted

UNNAMED = "value"
"""The metric of a table that names none."""
OF_LISTS = ("anchor", "stratum")
REMEDY = "every user needs one value of every system"


@dataclass(frozen=True, eq=False)
class Values:
    """Values of some metrics, users x systems each."""

    users: Ids
    systems: tuple[str, ...]
    of: Mapping[str, F64]
    """By metric."""
    notes: tuple[str, ...] = ()


def holds_values(table: DataTable) -> bool:
    """Return whether a table has a column of users."""
    return _user_column(table) is not None


def read_values(table: DataTable) -> Values:
    """Read values per user, wide or long.

    Wide: a column of users and a column per system. Long: columns of users and of systems (named
    `system`), and a column per metric; or columns `metric` and `value`.
    """
    user = _user_column(table)
    if user is None:
        raise DataError(
            f"{table.source}: no user column found among: {', '.join(table.frame.columns)}; call "
            f"it user (the index of a pandas frame becomes a column by .reset_index())"
        )
    if not table.frame.height:
        raise DataError(f"{table.source}: there are no rows")
    system = _column(table, "system")
    if system is None:
        return _wide(table, user)
    listed = [name for name in table.frame.columns if plain_name(name) in OF_LISTS]
    if listed:
        raise DataError(
            f"{table.source}: column {listed[0]!r} says that these are values per list, not per "
            f"user: average the lists of each user first, and leave the column out"
        )
    tested, notes = _tested(table)
    return replace(_long(tested, user, system), notes=notes)


def _tested(table: DataTable) -> tuple[DataTable, tuple[str, ...]]:
    """Leave out what `per_user` tells beside the metrics, and the users whom it does not average.

    These are the users without test judgments, as in the means that are the default.
    """
    columns = table.frame.columns
    if not {"depth", *COUNTS} - {"train"} <= set(columns):
        return table, ()
    frame = table.frame.filter(pl.col("test") > 0)
    lost = table.frame.height - frame.height
    notes = (f"{counted(lost, 'row')} of users without test judgments left out",) if lost else ()
    metrics = frame.drop([name for name in columns if name in ("depth", *COUNTS)])
    return replace(table, frame=metrics), notes


def _user_column(table: DataTable) -> str | None:
    return table.pick("user", USER, None)


def _column(table: DataTable, name: str) -> str | None:
    return next((column for column in table.frame.columns if plain_name(column) == name), None)


def _wide(table: DataTable, user: str) -> Values:
    systems = [name for name in table.frame.columns if name != user]
    users, codes = Ids.number(table.frame[user])

    def named(row: int) -> str:
        return f"user {users.values[int(codes[row])]!r}"

    _check_unique(table, codes.astype(np.int64), named)
    values = np.empty((len(users), len(systems)))
    for column, name in enumerate(systems):
        values[codes, column] = _numbers(table, name, user)
    return Values(users, tuple(systems), {UNNAMED: values})


def _long(table: DataTable, user: str, system: str) -> Values:
    users, codes = Ids.number(table.frame[user])
    systems, places = _levels(table, system)
    metric = _column(table, "metric")
    columns = [name for name in table.frame.columns if name not in (user, system, metric)]
    ratios = [name for name in columns if name.endswith("/den")]
    if ratios:
        raise DataError(
            f"{table.source}: {ratios[0].removesuffix('/den')} is a ratio of sums, which has no "
            f"value per user that averages to it: leave it and {ratios[0]!r} out"
        )
    if not columns or (metric is not None and len(columns) > 1):
        requirement = "one column of values" if metric is not None else "a column per metric"
        raise DataError(
            f"{table.source}: beside {', '.join(filter(None, (user, system, metric)))} "
            f"{requirement} is needed, there are: {', '.join(columns) or 'none'}"
        )
    if metric is None:
        cell = codes * np.int64(len(systems)) + places
        _check_cells(table, cell, users, systems, "")
        return Values(
            users,
            systems,
            {name: _placed(_numbers(table, name, user), cell, users, systems) for name in columns},
        )
    numbers = _numbers(table, columns[0], user)
    names, kinds = _levels(table, metric)
    of = {}
    for number, name in enumerate(names):
        rows = np.flatnonzero(kinds == number)
        cell = codes[rows] * np.int64(len(systems)) + places[rows]
        _check_cells(table, cell, users, systems, f"{name}: ", rows)
        of[name] = _placed(numbers[rows], cell, users, systems)
    return Values(users, systems, of)


def _placed(numbers: F64, cell: I64, users: Ids, systems: Sequence[str]) -> F64:
    values = np.empty(len(users) * len(systems))
    values[cell] = numbers
    return values.reshape(len(users), len(systems))


def _levels(table: DataTable, name: str) -> tuple[tuple[str, ...], I64]:
    """Number the names in a column in the order in which they occur; refuse missing ones."""
    column = table.frame[name]
    missing = column.is_null()
    if missing.any():
        raise DataError(
            f"{table.source}: column {name!r} is empty in {counted(int(missing.sum()), 'row')}, "
            f"the first: row {int(missing.arg_true()[0]) + 1}"
        )
    text = column.cast(pl.String)
    distinct = text.unique(maintain_order=True)
    numbers = text.replace_strict(distinct, np.arange(len(distinct)), return_dtype=pl.Int64)
    return tuple(distinct.to_list()), numbers.to_numpy()


def _numbers(table: DataTable, name: str, user: str) -> F64:
    """Return a column of values; refuse what is no finite number."""
    column = number_column(table, name, "values")
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise DataError(
            f"{table.source}: column {name!r} must hold numbers, got {column.dtype}; a wide "
            "table has a column of users and a column of values per system, a long one a column "
            "called system"
        )
    floats = column.cast(pl.Float64)
    bad = floats.is_null() | ~floats.is_finite().fill_null(value=True)
    if bad.any():
        row = int(bad.arg_true()[0])
        raise DataError(
            f"{table.source}: column {name!r}: {int(bad.sum()):,} values are missing or not "
            f"finite, the first in row {row + 1} (user {table.frame[user][row]!r}): {REMEDY}; "
            "leave such users out for all systems, or give them the value that should count"
        )
    return floats.to_numpy()


def _check_cells(
    table: DataTable,
    cell: I64,
    users: Ids,
    systems: tuple[str, ...],
    name: str,
    rows: I64 | None = None,
) -> None:
    """Raise an error for a second value of a user and system, and for a missing one."""

    def named(row: int) -> str:
        user, system = divmod(int(cell[row]), len(systems))
        return f"{name}user {users.values[user]!r} and system {systems[system]!r}"

    _check_unique(table, cell, named, rows)
    total = len(users) * len(systems)
    if cell.size < total:
        there = np.zeros(total, np.bool_)
        there[cell] = True
        user, system = divmod(int(np.argmin(there)), len(systems))
        raise DataError(
            f"{table.source}: {name}{total - cell.size:,} of {total:,} values are missing, the "
            f"first: user {users.values[user]!r} has none of system {systems[system]!r}: {REMEDY}; "
            f"leave such users out for all systems"
        )


def _check_unique(
    table: DataTable, cell: I64, named: Callable[[int], str], rows: I64 | None = None
) -> None:
    distinct, first = np.unique(cell, return_index=True)
    if distinct.size == cell.size:
        return
    again = np.ones(cell.size, np.bool_)
    again[first] = False
    repeat = int(np.argmax(again))
    before = int(first[np.searchsorted(distinct, cell[repeat])])
    row, earlier = (int(index if rows is None else rows[index]) + 1 for index in (repeat, before))
    raise DataError(
        f"{table.source}: {counted(int(again.sum()), 'row repeats', 'rows repeat')} an earlier "
        f"one, the first: row {row} is of {named(repeat)}, and so is row {earlier}; {REMEDY}"
    )
