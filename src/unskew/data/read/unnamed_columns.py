"""Tables without a header line: columns are named by their order and by what they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import polars as pl

from unskew.data.read.tables import DataTable, column_hint, no_header
from unskew.errors import DataError, Spelling
from unskew.report.text import counted

ROLES = ("user", "item", "rating", "time")
# Seconds since 1970 from the year 1990 to 2100, and how many of each unit make a second.
_FIRST, _LAST = 631_152_000, 4_102_444_800
_UNITS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
# Ids of Amazon: products (ASIN, or the ISBN of a book) and reviewers.
_ASIN = r"^B[0-9A-Z]{9}$"
_PRODUCT = r"^(B[0-9A-Z]{9}|[0-9]{9}[0-9X])$"
_REVIEWER = r"^(A[0-9A-Z]{9,27}|#oc-[0-9A-Z]+)$"


def name_columns_by_place(table: DataTable, stated: Collection[str]) -> DataTable:
    """Name the columns of a file without a header line by their order and by what they hold."""
    full = _without_empty_columns(table)
    frame = full.frame
    if not 2 <= frame.width <= len(ROLES):
        raise no_header(full, ROLES)
    columns = frame.get_columns()
    units = [_unit(column) for column in columns]
    if not stated:
        _check_ids(full, columns, units)
    names = ["user", "item"]
    reasons = {}
    if not {"user", "item"} & set(stated) and _is_swapped(*columns[:2]):
        names.reverse()
        reasons["item"] = "Amazon's product ids"
    for number, unit in enumerate(units[2:], 2):
        if unit and "time" not in names:
            names.append("time")
            reasons["time"] = unit
        else:
            names.append("rating" if "rating" not in names else f"column_{number}")
            if "time" not in stated:
                _check_times(full, number, columns[number])
    taken = ", ".join(
        f"{number} the {name}" + (f" ({reasons[name]})" if name in reasons else "")
        for number, name in enumerate(names)
        if name in ROLES
    )
    note = f"{table.source}: no header line: column {taken}; counted from 0"
    return replace(
        full,
        frame=frame.rename(dict(zip(frame.columns, names, strict=True))),
        format=f"{full.format} without header",
        notes=(note, *_row_note(full), *full.notes),
    )


def _without_empty_columns(table: DataTable) -> DataTable:
    """Leave out the empty columns that a separator at the end of each line makes."""
    frame = table.frame
    width = frame.width
    while width > 2 and frame.height and frame[:, width - 1].null_count() == frame.height:
        width -= 1
    if width == frame.width:
        return table
    empty = counted(frame.width - width, "empty column")
    note = f"{table.source}: {empty} at the end left out"
    return replace(table, frame=frame[:, :width], notes=(*table.notes, note))


def _unit(column: pl.Series) -> str | None:
    """Return the unit of a column of times; None where a value is none."""
    if not len(column) or column.null_count():
        return None
    if column.dtype == pl.String and bool(column.str.contains(_DATE).all()):
        return "ISO dates"
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count():
        return None
    for unit, size in _UNITS.items():
        if bool(numbers.is_between(_FIRST * size, _LAST * size).all()):
            return f"{unit} since 1970"
    return None


def _check_ids(table: DataTable, columns: Sequence[pl.Series], units: Sequence[str | None]) -> None:
    """Refuse times where users and items should be; where time is elsewhere, an id may be large."""
    for number in (0, 1):
        unit = units[number]
        if unit and (unit == "ISO dates" or not any(units[2:])):
            raise DataError(
                f"{table.source}: no header line, and column {number} (counted from 0; such as "
                f"{columns[number][0]!r}) looks like times ({unit}), where the "
                f"{ROLES[number]} is expected; add a header line or give column numbers such as ",
                Spelling("user=0, item=1", "--columns user=0,item=1"),
            )


def _check_times(table: DataTable, number: int, column: pl.Series) -> None:
    """Refuse a column of which most values are times: the others are damaged."""
    values = column.cast(pl.Float64, strict=False).fill_null(float("nan"))
    for unit, size in _UNITS.items():
        times = values.is_between(_FIRST * size, _LAST * size)
        count = int(times.sum())
        if 2 * count >= len(column) > 0:
            row = int((~times).arg_true()[0])
            raise DataError(
                f"{table.source}: column {number} (counted from 0) holds {unit} since 1970, but "
                f"row {row + 1:,} has {column[row]!r}: correct it, or state with ",
                column_hint("time", number),
                " that the column holds times",
            )


def _is_swapped(first: pl.Series, second: pl.Series) -> bool:
    """Tell whether the first column holds products of Amazon, and the second does not."""

    def share(column: pl.Series, pattern: str) -> float:
        return float(column.cast(pl.String).str.contains(pattern).mean() or 0.0)  # type: ignore[arg-type]

    if share(first, _PRODUCT) < 0.99 or share(second, _PRODUCT) > 0.5:
        return False
    return share(second, _REVIEWER) > 0.9 or share(first, _ASIN) > 0.5


def _row_note(table: DataTable) -> Iterator[str]:
    """Warn of a first row 0, 1, 2: pandas writes it for columns without names."""
    row = table.frame.row(0) if table.frame.height else ()
    if row == tuple(range(len(row))):
        yield (
            f"{table.source}: the first row is {', '.join(map(str, row))}; if these are numbers of "
            "columns, as pandas writes them, remove that line"
        )
