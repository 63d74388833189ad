"""Data frames of any library: taken as polars frames, and given back in the kind that came in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64
from unskew.engine.threads import new_lock
from unskew.errors import DataError, SettingError
from unskew.report.tables import as_pandas
from unskew.report.text import counted

_PANDAS_LIKE = ("pandas", "modin", "cudf")
"""Libraries whose frames have an index, which is no column."""
_NO_FRAMES = ("builtins", "numpy", "collections", "types", "unskew")
"""Libraries that narwhals need not be asked about."""
_ONE_AT_A_TIME = new_lock()
"""Runs are read on several threads, but tables of one connection share its one pending query."""


def is_frame(source: object) -> bool:
    """Tell whether this is a data frame, and not one column, a mapping or anything else."""
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return True
    library = _library(source)
    if isinstance(source, type) or library in _NO_FRAMES:
        return False
    if library in _PANDAS_LIKE:
        return hasattr(source, "columns")
    if hasattr(source, "__arrow_c_stream__"):
        return hasattr(source, "columns") or hasattr(source, "schema")
    return _is_known_to_narwhals(source)


def read_frame(source: Any) -> pl.DataFrame | None:
    """Return a data frame of any library as a polars frame; None where it is no data frame.

    Polars, pandas and Arrow are read directly. What else narwhals knows is collected by it.
    """
    if isinstance(source, pl.DataFrame):
        return source
    library = _library(source)
    if library in _NO_FRAMES:
        return None
    with _collecting(source):
        if library == "narwhals":
            return read_frame(source.to_native())
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        if library == "pandas":
            return _from_pandas(source)
        with _ONE_AT_A_TIME:
            if hasattr(source, "__arrow_c_stream__") and library not in _PANDAS_LIKE:
                return pl.DataFrame(source)
            if hasattr(source, "fetch_arrow_table"):  # a relation of an older duckdb
                return pl.DataFrame(source.fetch_arrow_table())
            return _through_narwhals(source)


def index_names(source: Any) -> tuple[str, ...]:
    """Return the names of the index of a frame that has one: they are no columns."""
    if _library(source) not in _PANDAS_LIKE:
        return ()
    names: Sequence[object] = getattr(getattr(source, "index", None), "names", ())
    return tuple(str(name) for name in names if name is not None)


def as_kind_of(frame: Any, result: object) -> Any:
    """Return the table of a result as a data frame of the kind that another one is.

    Parameters
    ----------
    frame
        A frame of polars (eager or lazy), pandas, pyarrow, Modin, cuDF or narwhals, such as the
        one that the ratings came in. A table of a database (DuckDB, Ibis) is refused: its kind
        belongs to a connection, which reads a polars frame itself.
    result
        What has a `to_polars`: scores, a comparison, ratings, any other result. Or a polars
        frame, such as `scores.per_user()`.

    Examples
    --------
    >>> import polars as pl
    >>> import unskew as us
    >>> mine = pl.LazyFrame({"user": [1, 1], "item": ["a", "b"], "rating": [5, 3]})
    >>> ratings = us.read_ratings(mine)
    >>> type(us.data.as_kind_of(mine, ratings)).__name__
    'LazyFrame'
    """
    table = _table_of(result)
    library = _library(frame)
    if isinstance(frame, pl.LazyFrame):
        return table.lazy()
    if isinstance(frame, pl.DataFrame):
        return table
    if library == "narwhals" and hasattr(frame, "to_native"):
        import narwhals as nw

        return nw.from_native(as_kind_of(frame.to_native(), table))
    if is_frame(frame):
        if library == "pandas":
            return as_pandas(table)
        if library == "pyarrow":
            return table.to_arrow()
        if library in _PANDAS_LIKE:
            import narwhals as nw

            namespace: Any = nw.get_native_namespace(frame)
            return namespace.DataFrame(as_pandas(table))
        raise SettingError(
            f"frame ({_kind(frame)}) belongs to a database or a cluster, which reads "
            "result.to_polars() through Arrow (duckdb: connection.from_arrow)"
        )
    raise SettingError(
        f"frame must be a data frame of polars, pandas, pyarrow, Modin, cuDF or narwhals, got "
        f"{_kind(frame)}"
    )


def _table_of(result: object) -> pl.DataFrame:
    if isinstance(result, pl.LazyFrame):
        return result.collect()
    if isinstance(result, pl.DataFrame):
        return result
    make = getattr(result, "to_polars", None)
    table = make() if callable(make) and not isinstance(result, type) else None
    if not isinstance(table, pl.DataFrame):
        raise SettingError(
            f"result must be a polars frame or a result that has to_polars(), got {_kind(result)}"
        )
    return table


def _library(source: object) -> str:
    return type(source).__module__.partition(".")[0]


def _kind(source: object) -> str:
    name = type(source).__name__
    return name if _library(source) == "builtins" else f"{_library(source)}.{name}"


@contextmanager
def _collecting(source: object) -> Iterator[None]:
    """Turn what a library raises while it collects a frame into an error about the data."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except pl.exceptions.DuplicateError as problem:
        raise DataError(
            f"the table ({_kind(source)}) has a column name more than once "
            f"({_first_line(problem)}): rename one of the columns"
        ) from None
    except (Exception, pl.exceptions.PanicException) as problem:
        raise DataError(
            f"the table ({_kind(source)}) cannot be collected: {type(problem).__name__}: "
            f"{_first_line(problem)}"
        ) from problem


def _first_line(problem: BaseException) -> str:
    return str(problem).strip().partition("\n")[0]


def _is_known_to_narwhals(source: object) -> bool:
    import narwhals as nw

    frame = nw.from_native(source, pass_through=True)
    return isinstance(frame, nw.DataFrame | nw.LazyFrame)


def _through_narwhals(source: Any) -> pl.DataFrame | None:
    import narwhals as nw

    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()  # into what that library is next to: pandas or Arrow
    if not isinstance(frame, nw.DataFrame):
        return None
    if frame.implementation.is_modin():
        return _from_pandas(frame.to_pandas())
    native = frame.to_native()
    is_pandas = _library(native) == "pandas"
    return _from_pandas(native) if is_pandas else pl.DataFrame(frame.to_arrow())


# Columns


def as_column(name: str, values: Any, *, text: bool = False) -> pl.Series:
    """Make a column of a sequence; refuse one that mixes kinds, such as numbers and text."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = values.astype("datetime64[us]")  # polars knows no seconds
    try:
        column = pl.Series(name, values, dtype=pl.String if text else None)
        if column.dtype == pl.Object and isinstance(values, np.ndarray):  # such as one of lists
            column = pl.Series(name, values.tolist())
        return column
    except (TypeError, pl.exceptions.PolarsError):
        kinds = {type(value): row for row, value in _backwards(values) if value is not None}
        if all(issubclass(kind, Real) for kind in kinds):  # 4 and 3.5
            return pl.Series(name, [None if v is None else float(v) for v in values])
        if len(kinds) == 1:
            raise DataError(
                f"column {name!r} holds lists (the first in row {min(kinds.values())}) that mix "
                "values of several types; make them all numbers or all text"
            ) from None
        rows = sorted((row, kind.__name__) for kind, row in kinds.items())
        names = ", ".join(f"{kind} in row {row}" for row, kind in rows)
        raise DataError(
            f"column {name!r} mixes values of several types ({names}); make them all numbers or "
            "all text"
        ) from None


def _backwards(values: Sequence[object]) -> Iterator[tuple[int, object]]:
    """Yield rows (from 1) and values, the first row last: of several alike it is the one kept."""
    return zip(range(len(values), 0, -1), reversed(values), strict=True)


def has_rows(values: object) -> bool:
    """Tell whether something can be a column: it has a length; an array without axes has none."""
    return hasattr(values, "__len__") and getattr(values, "shape", None) != ()


def _from_pandas(frame: Any) -> pl.DataFrame:
    """Take a pandas frame column by column: without pyarrow, pandas cannot speak Arrow."""
    if not hasattr(frame, "columns"):
        raise DataError(f"expected a pandas DataFrame, got a {type(frame).__name__}")
    names = [str(name) for name in frame.columns]
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise DataError(
            f"the table (pandas.DataFrame) has a column name more than once: {twice!r}; rename one "
            "of the columns"
        )
    columns = zip(names, (frame.iloc[:, index] for index in range(len(names))), strict=True)
    return pl.DataFrame([_from_pandas_column(name, column) for name, column in columns])


def _from_pandas_column(name: str, column: Any) -> pl.Series:
    if hasattr(column.dtype, "pyarrow_dtype"):
        import pyarrow as pa

        return pl.Series(name, pa.array(column))
    if hasattr(column, "__arrow_c_stream__") and str(column.dtype) in ("str", "string"):
        try:
            return pl.Series(name, column)
        except ImportError:  # no pyarrow
            pass
    if hasattr(column.dtype, "numpy_dtype") and column.isna().any():
        return _from_masked(name, column)
    values = column.to_numpy()
    if values.dtype != object:
        return as_column(name, values)
    cells = values.copy()
    cells[column.isna().to_numpy()] = None
    text = {type(cell) for cell in cells[:1000]} <= {str, type(None)}
    return as_column(name, cells if text else cells.tolist(), text=text)


def _from_masked(name: str, column: Any) -> pl.Series:
    """Take numbers of which some are missing: pandas would round large ones to floats."""
    missing = pl.Series(column.isna().to_numpy())
    filled = column.fillna(column.dtype.numpy_dtype.type(0)).to_numpy()
    return pl.Series(name, filled).set(missing, None)


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
    >>> from unskew.data.read.frames import as_matrix
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
        for indices, cell in np.ndenumerate(array):
            if cell is not None and not isinstance(cell, Real):
                where = ", ".join(
                    f"{axis} {index + 1}" for axis, index in zip(_AXES, indices, strict=False)
                )
                raise DataError(f"{name}: {where} holds {value_text(cell)}, which is no number")
    return np.asarray(array, np.float64)


_AXES = ("row", "column")


def first_value(column: pl.Series) -> tuple[int, str]:
    """Return the row (from 1) of the first value of a column, and the value as messages show it."""
    row = int(column.is_not_null().arg_max() or 0)
    return row + 1, value_text(column.slice(row, 1).to_list()[0] if len(column) else None)


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


def value_text(value: object) -> str:
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
    wrong = next(
        (index for index, size in enumerate(sizes) if size != sizes[0] or size is None), None
    )
    if wrong is None:
        return _deep(name, rows)
    if sizes[wrong] is None or sizes[0] is None:
        number = wrong if sizes[wrong] is None else 0
        return DataError(f"{name}: row {number + 1} is {value_text(rows[number])}, not a list")
    cells = counted(sizes[wrong] or 0, "cell")
    return DataError(
        f"{name}: row {wrong + 1} has {cells}, row 1 has {sizes[0]:,}; rows must be of one length: "
        f"fill short ones up with {filler}"
    )


def _deep(name: str, rows: Any) -> DataError:
    for number, row in enumerate(rows, 1):
        for column, cell in enumerate(row, 1):
            if _size(cell) is not None:
                return DataError(
                    f"{name}: row {number}, column {column} is {value_text(cell)}; each cell must "
                    "hold one value"
                )
    return DataError(f"{name}: cannot be read as a table of one value per cell")
