"""Arrays and lists of lists: taken where their shape is right, else the row that is wrong is named.

numpy only says that a shape is inhomogeneous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64
from unskew.errors import DataError
from unskew.report.text import counted

_LONGEST = 60
"""A value is shown up to this many characters."""


def as_matrix(name: str, rows: Any) -> NDArray[Any]:
    """Return an array of rows; refuse rows that differ in length.

    Examples
    --------
    >>> from unskew.data.nested import as_matrix
    >>> as_matrix("items", [[1, 2], [3]])
    Traceback (most recent call last):
    ...
    unskew.errors.DataError: items: row 2 has 1 cell, row 1 has 2; rows must be of one length: \
fill short ones up with -1 or None
    """
    listed = rows.tolist() if _holds_objects(rows) else rows
    try:
        array = np.asarray(listed)
    except ValueError:
        raise _ragged(name, listed) from None
    if array.dtype == object and array.ndim > 0:
        _check_cells(name, array)
    return array


def as_number_matrix(name: str, rows: Any) -> F64:
    """Return an array of rows of numbers; refuse other rows and cells."""
    array = as_matrix(name, rows)
    if array.dtype.kind not in "biuf":
        for place, cell in np.ndenumerate(array):
            if not isinstance(cell, bool | int | float | np.number | None) or np.iscomplexobj(cell):
                where = ", ".join(f"{word} {at + 1}" for word, at in zip(_AXES, place, strict=False))
                raise DataError(f"{name}: {where or 'the value'} is {shown(cell)}, not a number")
    return np.asarray(array, np.float64)


_AXES = ("row", "column")


def first_nested(column: pl.Series) -> tuple[int, str]:
    """Return the row (from 1) of the first list in a nested column, and what it holds."""
    row = int(column.is_not_null().arg_max() or 0)
    return row + 1, shown(column.slice(row, 1).to_list()[0] if len(column) else None)


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
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _holds_objects(rows: object) -> bool:
    """Tell an array of objects, of which each may be a row."""
    return isinstance(rows, np.ndarray) and rows.dtype == object and rows.ndim > 0


def _size(row: object) -> int | None:
    """Return how many cells a row has; None for a single value."""
    is_row = isinstance(row, Sequence | np.ndarray | pl.Series) and not isinstance(row, str | bytes)
    return len(row) if is_row and np.ndim(row) else None  # type: ignore[arg-type]


def _check_cells(name: str, array: NDArray[Any]) -> None:
    for place, cell in np.ndenumerate(array):
        if _size(cell) is not None:
            raise _ragged(name, array.tolist() if array.ndim == 1 else [list(row) for row in array])


def _ragged(name: str, rows: Any) -> DataError:
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
        f"fill short ones up with {'NaN' if name == 'scores' else '-1 or None'}"
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
