"""Tables of ratings: columns get names, and rows without a rating are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from unskew.data.read.tables import ITEM, TIME, USER, DataTable, column_hint, no_header, plain_name
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
        table = _name_columns(table, roles)
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


# Tables without a header line


def _name_columns(table: DataTable, stated: Collection[str]) -> DataTable:
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
