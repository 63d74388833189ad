"""Reading ratings, judgments and tables of lists from files, frames and arrays."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.data.ratings import CANONICAL_INTEGER, Ratings, id_column
from unskew.errors import DataError, choose
from unskew.threads import check_fork

I64 = NDArray[np.int64]

# Names that mean one thing in the data sets of this field, most telling first; compared in lower
# case without spaces, dashes, underscores and RecBole's ":token" endings.
USER = ("user", "userid", "uid", "users", "userindex", "useridx", "query", "queryid", "qid",
        "customer", "customerid", "reviewer", "reviewerid", "profile", "profileid",
        "visitor", "visitorid", "session", "sessionid", "u")  # fmt: skip
ITEM = ("item", "itemid", "iid", "items", "itemindex", "itemidx", "movie", "movieid", "doc",
        "docid", "docno", "product", "productid", "asin", "isbn", "book", "bookid", "artist",
        "artistid", "song", "songid", "track", "trackid", "video", "videoid", "beer", "beerid",
        "business", "businessid", "joke", "jokeid", "i")  # fmt: skip
RATING = ("rating", "ratings", "value", "score", "count", "stars", "relevance", "rel", "label",
          "grade", "weight", "plays", "playcount", "preference", "r")  # fmt: skip
TIME = ("timestamp", "time", "ts", "date", "datetime", "unixtime", "unixreviewtime", "t")
RANK = ("rank", "ranking", "position", "pos")
SCORE = ("score", "scores", "prediction", "pred", "predicted", "similarity", "sim", "rating",
         "value")  # fmt: skip

FORMATS = ("csv", "tsv", "::", "parquet", "trec")
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Table:
    """A table as it was read, with what was assumed on the way."""

    frame: pl.DataFrame
    source: str
    header: bool = True
    format: str = "frame"

    def pick(
        self, what: str, names: Sequence[str], given: str | int | None,
        taken: Collection[str | None] = (),
    ) -> str | None:  # fmt: skip
        """Return the column that holds `what`: the one given, or the first that is so named.

        What is `taken` for something else is not guessed.
        """
        columns = self.frame.columns
        if isinstance(given, int):
            if not 0 <= given < len(columns):
                raise DataError(
                    f"{self.source}: {what} column {given} does not exist; there are "
                    f"{len(columns)} columns, numbered from 0"
                )
            return columns[given]
        if given is not None:
            if given not in columns:
                raise DataError(
                    f"{self.source}: no column {given!r} for {what}; the columns are: "
                    f"{', '.join(columns)}"
                )
            return given
        plain = {plain_name(column): column for column in reversed(columns) if column not in taken}
        return next((plain[name] for name in names if name in plain), None)

    def need(self, what: str, names: Sequence[str], given: str | int | None) -> str:
        """Return the column that holds `what`, or say how to name it."""
        column = self.pick(what, names, given)
        if column is None:
            raise DataError(
                f"{self.source}: no {what} column found among: {', '.join(self.frame.columns)} "
                f"(its first line, if it is a file); name it with {what}=…"
            )
        return column


def plain_name(name: str) -> str:
    """Return a column's name as it is compared: lower case, without blanks, dashes, endings."""
    return re.sub(r"[\s_\-]", "", name.split(":")[0]).lower()


def read_ratings(
    source: object,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rating: str | int | None = None,
    time: str | int | None = None,
    tags: Sequence[str] = (),
    duplicates: str = "error",
    format: str | None = None,  # noqa: A002 - the word users expect
) -> Ratings:
    """Read ratings, interactions or judgments from a file, a frame or arrays.

    Parameters
    ----------
    source
        A path (CSV, TSV, `::`-separated, whitespace-separated TREC qrels, each also gzipped, or
        Parquet), a polars, pandas, pyarrow or duckdb table, or a mapping of column names to
        arrays. `Ratings`, and those of a `Dataset` or a `World`, are returned as they are.
    user, item, rating, time
        Names (or numbers, from 0) of the columns; guessed from common names unless given, and
        `Ratings.notes` says what was assumed. Without a rating column the data is implicit:
        every pair counts as 1.
    tags
        Further columns to keep.
    duplicates
        For pairs that stand more than once: `error`, `first`, `last`, `mean`, `sum` or `max`.
    format
        `csv`, `tsv`, `::`, `parquet` or `trec`; guessed from the file unless given. In a TREC
        qrels file a negative grade means *in the pool but not judged*.

    Examples
    --------
    >>> import unskew as us
    >>> us.read_ratings({"user": [1, 1, 2], "item": ["a", "b", "a"], "rating": [5, 3, 4]})
    Ratings(3 explicit, 2 users, 2 items)
    """
    if isinstance(source, Ratings):
        return source
    held = getattr(source, "ratings", None)
    if isinstance(held, Ratings):  # a Dataset or a World
        return held
    table = read_table(source, format=format)
    if table.format == "trec":
        return _qrels(table, duplicates)
    by_number = isinstance(user, int) and isinstance(item, int)
    if not table.header and not (by_number and table.frame.width > 4):
        table = name_columns(table, ("user", "item", "rating", "time"))
    taken = {table.pick(w, (), g) for w, g in (("user", user), ("item", item)) if g is not None}
    names = {
        "user": table.need("user", USER, user),
        "item": table.need("item", ITEM, item),
        "rating": table.pick("rating", RATING, rating, taken),
        "time": table.pick("time", TIME, time, taken),
    }
    frame = table.frame
    if frame.height == 0:
        raise DataError(f"{table.source}: there are no rows")
    value = None
    if names["rating"] is not None:
        value = number_column(table, names["rating"], "ratings")
    assumed = ", ".join(f"{what} = {name}" for what, name in names.items() if name is not None)
    notes = [f"{table.source}: {table.format}, {frame.height:,} rows; {assumed}"]
    if value is None:
        notes.append(f"{table.source}: no rating column, so every pair counts as 1 (implicit data)")
    stamps = None
    if names["time"] is not None:
        stamps = time_column(table, names["time"])
    missing = [tag for tag in tags if tag not in frame.columns]
    if missing:
        raise DataError(f"{table.source}: no column {missing[0]!r} to keep as a tag")
    return Ratings.of(
        frame[str(names["user"])],
        frame[str(names["item"])],
        value,
        stamps,
        tags={tag: frame[tag] for tag in tags},
        duplicates=duplicates,
        notes=tuple(notes),
    )


def read_items(source: object, item: str | int | None = None) -> pl.Series:
    """Read a catalogue: one column of item ids, from a file, a frame or any sequence."""
    if isinstance(source, pl.Series):
        return id_column(source).unique()
    if isinstance(source, str | os.PathLike | Mapping) or hasattr(source, "columns"):
        table = read_table(source)
        if not table.header:
            return id_column(table.frame.to_series(item if isinstance(item, int) else 0)).unique()
        if table.frame.width == 1:
            ids = id_column(table.frame.to_series())
            first = table.frame.columns[0]
            if isinstance(source, str | os.PathLike) and plain_name(first) not in ITEM:
                ids = pl.concat([pl.Series([first]), ids.cast(pl.String)])  # no header after all
            return ids.unique()
        return id_column(table.frame[table.need("item", ITEM, item)]).unique()
    if isinstance(source, Iterable):
        return id_column(pl.Series("item", list(source))).unique()
    raise DataError(f"items must be a file, a table or a sequence of ids, got {type(source)}")


def read_table(source: object, *, format: str | None = None) -> Table:  # noqa: A002
    """Read any supported source into a table of raw columns."""
    check_fork()
    if format is not None:
        choose("format", format, FORMATS)
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(source), format)
    if isinstance(source, pl.LazyFrame):
        return Table(source.collect(), "frame")
    if isinstance(source, pl.DataFrame):
        return Table(source, "frame")
    if type(source).__module__.split(".")[0] == "pandas":
        return Table(_from_pandas(source), "frame")
    if hasattr(source, "__arrow_c_stream__"):
        return Table(pl.DataFrame(source), "frame")
    if hasattr(source, "fetch_arrow_table"):  # a duckdb result
        return Table(pl.DataFrame(source.fetch_arrow_table()), "frame")
    if isinstance(source, Mapping):
        for name, column in source.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise DataError(
                    f"column {str(name)!r}: expected an array or a list, got {column!r}"
                )
        lengths = {str(name): len(column) for name, column in source.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns differ in length: {lengths}")
        columns = [as_column(str(name), values) for name, values in source.items()]
        return Table(pl.DataFrame(columns), "arrays", format="arrays")
    raise DataError(
        f"cannot read {type(source).__name__}: give a path, a polars, pandas, pyarrow or duckdb "
        f"table, or a mapping of column names to arrays"
    )


def as_column(name: str, values: Any, *, text: bool = False) -> pl.Series:
    """Make a column of a sequence; refuse one that mixes kinds, such as numbers and text."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = values.astype("datetime64[us]")  # polars knows no seconds
    try:
        return pl.Series(name, values, dtype=pl.String if text else None)
    except (TypeError, pl.exceptions.PolarsError):
        kinds = {type(value) for value in values if value is not None}
        if all(issubclass(kind, Real) for kind in kinds):  # 4 and 3.5
            return pl.Series(name, [None if v is None else float(v) for v in values])
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(
            f"column {name!r} mixes values of several kinds ({names}); make them all numbers or "
            f"all text"
        ) from None


def _from_pandas(frame: Any) -> pl.DataFrame:
    """Take a pandas frame column by column: without pyarrow, pandas cannot speak Arrow."""
    if not hasattr(frame, "columns"):
        raise DataError(f"expected a pandas DataFrame, got a {type(frame).__name__}")
    return pl.DataFrame([_from_pandas_column(str(name), frame[name]) for name in frame.columns])


def _from_pandas_column(name: str, column: Any) -> pl.Series:
    if hasattr(column, "__arrow_c_stream__") and str(column.dtype) in ("str", "string"):
        try:
            return pl.Series(name, column)
        except ImportError:  # no pyarrow
            pass
    values = column.to_numpy()
    if values.dtype != object:
        return as_column(name, values)
    cells = values.copy()
    cells[column.isna().to_numpy()] = None
    text = {type(cell) for cell in cells[:1000]} <= {str, type(None)}
    return as_column(name, cells if text else cells.tolist(), text=text)


def _read_file(path: Path, kind: str | None) -> Table:
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give a file")
    name = path.name.removesuffix(".gz")
    if kind == "parquet" or (kind is None and name.endswith((".parquet", ".pq"))):
        try:
            return Table(pl.read_parquet(path), path.name, format="parquet")
        except (pl.exceptions.PolarsError, OSError) as problem:
            raise DataError(f"{path}: not a readable Parquet file ({problem})") from None
    try:
        return _read_text(path, name, kind)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise DataError(f"{path}: the gzip file is damaged ({problem})") from None


def _read_text(path: Path, name: str, kind: str | None) -> Table:
    lines = _first_lines(path)
    if not lines:
        raise DataError(f"{path}: the file is empty")
    if kind is None:
        kind = _guess_format(name, lines)
    if kind == "trec":
        return Table(_read_spaced(path), path.name, header=False, format="trec")
    separator = {"tsv": "\t", "::": "\x1f", "csv": _csv_separator(lines[0])}[kind]
    fields = lines[0].replace("::", "\x1f").split(separator) if kind == "::" else (
        next(iter(pl.read_csv(io.StringIO(lines[0] + "\n"), separator=separator, has_header=False,
                              infer_schema=False, truncate_ragged_lines=True).iter_rows()))
    )  # fmt: skip
    header = not any(_is_number(str(field)) for field in fields)
    data: object = path if kind != "::" else _rewrite(path, lambda b: b.replace(b"::", b"\x1f"))
    frame = _parse(data, path, separator, header, quote=kind != "::")
    label = {"csv": "comma-separated", "tsv": "tab-separated", "::": "::-separated"}[kind]
    if kind == "csv" and separator != ",":
        label = f"{separator!r}-separated"
    return Table(frame, path.name, header, label)


def _first_lines(path: Path) -> list[str]:
    with _open(path) as file:
        text = file.read(1 << 16)
    if b"\x00" in text:
        raise DataError(
            f"{path}: this is not a text file; is it Parquet? Then say format='parquet'"
        )
    lines = text.decode("utf-8-sig", errors="replace").splitlines()
    return [line for line in lines if line.strip()][:100]


def _open(path: Path) -> Any:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")


def _guess_format(name: str, lines: list[str]) -> str:
    if name.endswith((".trec", ".qrel", ".qrels", ".run")):
        return "trec"
    if "::" in lines[0]:
        return "::"
    words = [line.split() for line in lines]
    if all(len(row) == 4 and row[1] in ("0", "Q0") for row in words):
        return "trec"
    if all(len(row) == 6 and row[1].upper() in ("Q0", "0") for row in words):
        return "trec"
    return "tsv" if "\t" in lines[0] else "csv"


def _csv_separator(line: str) -> str:
    counts = {mark: line.count(mark) for mark in (",", ";", "|", " ")}
    best = max(counts, key=lambda mark: counts[mark])
    return "," if counts[","] or not counts[best] else best


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rewrite(path: Path, change: Any) -> io.BytesIO:
    """Rewrite a text file block by block into the one-byte separators that polars reads."""
    out = io.BytesIO()
    with _open(path) as file:
        while lines := file.readlines(_BLOCK):
            out.write(change(b"".join(lines)))
    out.seek(0)
    return out


def _read_spaced(path: Path) -> pl.DataFrame:
    """Read whitespace-separated columns, as TREC files have them."""

    def squeeze(block: bytes) -> bytes:
        lines = re.sub(rb"[ \t\r]+\n", b"\n", block)
        lines = re.sub(rb"(?m)^[ \t]+", b"", lines)
        return re.sub(rb"[ \t]+", b"\t", lines)

    return _parse(_rewrite(path, squeeze), path, "\t", header=False, quote=False)


def _parse(source: Any, path: Path, separator: str, header: bool, quote: bool) -> pl.DataFrame:
    """Read all columns as text, then make numbers of those that are numbers throughout.

    Ids become integers only when each is a canonical decimal: `007` stays text.
    """
    try:
        frame = pl.read_csv(
            source,
            separator=separator,
            has_header=header,
            infer_schema=False,
            quote_char='"' if quote else None,
            new_columns=None,
        )
    except pl.exceptions.NoDataError:
        raise DataError(f"{path}: the file is empty") from None
    except pl.exceptions.PolarsError as problem:
        first = str(problem).splitlines()[0]
        raise DataError(f"{path}: cannot be read as a table: {first}") from None
    columns = []
    for column in frame.iter_columns():
        text = column.str.strip_chars() if column.dtype == pl.String else column
        columns.append(_typed(text))
    return pl.DataFrame(columns)


def _typed(text: pl.Series) -> pl.Series:
    sample = text.head(100).drop_nulls()
    if not bool(sample.str.contains(CANONICAL_INTEGER).all()) or not len(sample):
        return text
    whole = text.cast(pl.Int64, strict=False)
    if whole.null_count() > text.null_count() or not bool((whole.cast(pl.String) == text).all()):
        return text
    # As in the pattern, which saw the first rows only: at most 18 digits.
    return whole if bool(whole.is_between(-(10**18), 10**18, closed="none").all()) else text


def name_columns(table: Table, names: Sequence[str]) -> Table:
    """Name the columns of a file without a header line by their place."""
    width = table.frame.width
    if width < 2 or width > len(names):
        raise DataError(
            f"{table.source}: no header line and {width} columns, first row "
            f"{table.frame.row(0) if table.frame.height else ()}; expected 2 to {len(names)} "
            f"({', '.join(names)}); add a header line or give column numbers such as user=0"
        )
    if table.frame.columns == list(names[:width]):
        return table
    frame = table.frame.rename(dict(zip(table.frame.columns, names, strict=False)))
    return replace(table, frame=frame, format=f"{table.format} without header")


def number_column(table: Table, name: str, what: str) -> pl.Series:
    """Return a column as floats, or say which rows are not numbers."""
    column = table.frame[name]
    if column.dtype != pl.String:
        return column
    floats = column.cast(pl.Float64, strict=False)
    bad = floats.is_null() & column.is_not_null()
    if bad.any():
        row = int(bad.arg_true()[0])
        raise DataError(
            f"{table.source}: {int(bad.sum()):,} {what} in column {name!r} are not numbers, the "
            f"first in row {row + 1}: {column[row]!r}"
        )
    return floats


def time_column(table: Table, name: str) -> I64:
    """Return time stamps as microseconds: seconds, milli-, micro- or nanoseconds, or ISO text."""
    column = table.frame[name]
    if column.null_count():
        row = int(column.is_null().arg_true()[0])
        raise DataError(
            f"{table.source}: {column.null_count():,} time stamps are missing in column {name!r}, "
            f"the first in row {row + 1}"
        )
    if column.dtype == pl.String:
        floats = column.cast(pl.Float64, strict=False)
        if not floats.null_count():
            column = floats
        else:
            parsed = column.str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
            if parsed.null_count():
                row = int(parsed.is_null().arg_true()[0])
                raise DataError(
                    f"{table.source}: {parsed.null_count():,} time stamps in column {name!r} are "
                    f"neither numbers nor ISO dates, the first in row {row + 1}: {column[row]!r}"
                )
            return parsed.dt.timestamp("us").to_numpy()
    if column.dtype in (pl.Date, pl.Datetime):
        return column.cast(pl.Datetime("us")).dt.timestamp("us").to_numpy()
    values = column.cast(pl.Float64).to_numpy()
    if not np.isfinite(values).all():
        raise DataError(f"{table.source}: time stamps in column {name!r} are NaN or infinite")
    size = float(np.median(np.abs(values))) if values.size else 0.0
    # Seconds since 1970 stay below 1e11 until the year 5138.
    factor = 1e6 if size < 1e11 else 1e3 if size < 1e14 else 1.0 if size < 1e17 else 1e-3
    return np.rint(values * factor).astype(np.int64)


def _qrels(table: Table, duplicates: str) -> Ratings:
    """Make judgments of TREC qrels: `user 0 item grade`, a negative grade = not judged."""
    if table.frame.width != 4:
        raise DataError(
            f"{table.source}: a TREC qrels file has 4 columns (user 0 item grade), this has "
            f"{table.frame.width}; a run file goes to read_run"
        )
    user, _, item, grade = table.frame.iter_columns()
    value = number_column(table, grade.name, "grades").rename("grade")
    pooled = (value < 0).rename("pooled")
    note = f"{table.source}: TREC qrels, {table.frame.height:,} rows"
    if pooled.any():
        note += f", of which {int(pooled.sum()):,} in the pool but not judged (negative grade)"
    return Ratings.of(
        user.rename("user"),
        item.rename("item"),
        value,
        tags={"pooled": pooled},
        duplicates=duplicates,
        notes=(note,),
    )
