"""Arrays and lists of lists: taken where their shape is right, else the row that is wrong is named.

numpy only says that a shape is inhomogeneous.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64
from unskew.errors import DataError
from unskew.report.text import counted

_LONGEST = 60
"""A value is shown up to this many characters."""


def as_matrix(name: str, rows: Any, filler: str = "-1 or None") -> NDArray[Any]:
    """Return an array of rows; refuse rows that differ in length.

    Parameters
    ----------
    name
        What messages call it.
    rows
        An array, or lists.
    filler
        What fills up short rows.

    Examples
    --------
    >>> from unskew.data.nested import as_matrix
    >>> as_matrix("items", [[1, 2], [3]])
    Traceback (most recent call last):
    ...
    unskew.errors.DataError: items: row 2 has 1 cell, row 1 has 2; rows must be of one length: \
fill short ones up with -1 or None
    """
    try:
        array = np.asarray(_unpacked(rows))
    except ValueError:
        raise _ragged(name, list(rows), filler) from None
    if array.dtype == object and any(_size(cell) is not None for cell in array.flat):
        raise _ragged(name, list(rows), filler)
    return array


def as_number_matrix(name: str, rows: Any) -> F64:
    """Return an array of rows of numbers; refuse other rows and cells."""
    array = as_matrix(name, rows, "NaN")
    if array.dtype.kind not in "biuf":
        for place, cell in np.ndenumerate(array):
            if cell is not None and not isinstance(cell, Real):
                where = ", ".join(
                    f"{axis} {at + 1}" for axis, at in zip(_AXES, place, strict=False)
                )
                raise DataError(f"{name}: {where} holds {shown(cell)}, which is no number")
    return np.asarray(array, np.float64)


_AXES = ("row", "column")


def first_value(column: pl.Series) -> tuple[int, str]:
    """Return the row (from 1) of the first value of a column, and the value as messages show it."""
    row = int(column.is_not_null().arg_max() or 0)
    return row + 1, shown(column.slice(row, 1).to_list()[0] if len(column) else None)


def got(column: pl.Series) -> str:
    """Return what a column holds instead of what is needed: its type, and the first value."""
    row, cell = first_value(column)
    return f"got {column.dtype} in row {row} ({cell})"


def check_lengths(source: str, frame: pl.DataFrame) -> None:
    """Refuse a table of lists in which the lists of one row differ in length."""
    lengths = frame.select(
        (pl.col(name).arr if isinstance(kind, pl.Array) else pl.col(name).list).len().fill_null(0)
        for name, kind in frame.schema.items()
    )
    wrong = lengths.select(pl.any_horizontal(pl.all() != pl.first())).to_series()
    if wrong.any():
        row = int(wrong.arg_true()[0])
        sizes = ", ".join(f"{n:,} in {k!r}" for k, n in lengths.row(row, named=True).items())
        raise DataError(f"{source}: the lists of row {row + 1} differ in length: {sizes}")


def shown(value: object) -> str:
    """Return a value as an error message shows it."""
    plain = value.item() if isinstance(value, np.generic) else value
    text = " ".join(repr(plain).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _unpacked(rows: Any) -> Any:
    """Return an array of lists as a list of lists, which numpy takes for two axes."""
    is_packed = isinstance(rows, np.ndarray) and rows.dtype == object and rows.ndim == 1
    return list(rows) if is_packed and any(_size(row) is not None for row in rows) else rows


def _size(row: object) -> int | None:
    """Return how many cells a row has; None for a single value."""
    if isinstance(row, str | bytes) or getattr(row, "shape", None) == ():
        return None
    return len(row) if isinstance(row, Sequence | np.ndarray | pl.Series) else None


def _ragged(name: str, rows: Any, filler: str) -> DataError:
    """Return the error for rows that are no table: another length, or a list in a cell."""
    sizes = [_size(row) for row in rows]
    wrong = next((at for at, size in enumerate(sizes) if size != sizes[0] or size is None), None)
    if wrong is None:
        return _deep(name, rows)
    if sizes[wrong] is None or sizes[0] is None:
        at = wrong if sizes[wrong] is None else 0
        return DataError(f"{name}: row {at + 1} is {shown(rows[at])}, not a list")
    cells = counted(sizes[wrong] or 0, "cell")
    return DataError(
        f"{name}: row {wrong + 1} has {cells}, row 1 has {sizes[0]:,}; rows must be of one length: "
        f"fill short ones up with {filler}"
    )


def _deep(name: str, rows: Any) -> DataError:
    for at, row in enumerate(rows, 1):
        for place, cell in enumerate(row, 1):
            if _size(cell) is not None:
                return DataError(
                    f"{name}: row {at}, column {place} is {shown(cell)}; each cell must hold one "
                    "value"
                )
    return DataError(f"{name}: cannot be read as a table of one value per cell")
