"""Tables from files, frames and arrays, whatever they hold; columns are known by common names."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.addresses import address_name, is_address, shown_address
from unskew.arrays import I64
from unskew.checks import choose
from unskew.data.frames import as_column, index_names, read_frame
from unskew.data.parquet_files import find_parquet, is_several
from unskew.data.ratings import CANONICAL_INTEGER
from unskew.engine.files import InputFile, reading
from unskew.engine.threads import check_fork
from unskew.errors import DataError, Spelling
from unskew.report.text import counted

# Names that mean one thing in the data sets of this field, most telling first; compared in lower
# case without spaces, dashes, underscores and RecBole's ":token" endings.
USER = (
    "user",
    "userid",
    "uid",
    "users",
    "userindex",
    "useridx",
    "query",
    "queryid",
    "qid",
    "customer",
    "customerid",
    "reviewer",
    "reviewerid",
    "profile",
    "profileid",
    "visitor",
    "visitorid",
    "session",
    "sessionid",
    "u",
)
ITEM = (
    "item",
    "itemid",
    "iid",
    "items",
    "itemindex",
    "itemidx",
    "movie",
    "movieid",
    "doc",
    "docid",
    "docno",
    "product",
    "productid",
    "asin",
    "isbn",
    "book",
    "bookid",
    "artist",
    "artistid",
    "song",
    "songid",
    "track",
    "trackid",
    "video",
    "videoid",
    "beer",
    "beerid",
    "business",
    "businessid",
    "joke",
    "jokeid",
    "i",
)
RATING = (
    "rating",
    "ratings",
    "value",
    "score",
    "count",
    "stars",
    "relevance",
    "rel",
    "label",
    "grade",
    "weight",
    "plays",
    "playcount",
    "clicks",
    "views",
    "listens",
    "purchases",
    "events",
    "preference",
    "r",
)
COUNTS = ("count", "plays", "playcount", "clicks", "views", "listens", "purchases", "events")
"""Names of columns that count events: implicit feedback."""
TIME = ("timestamp", "time", "ts", "date", "datetime", "unixtime", "unixreviewtime", "t")
RANK = ("rank", "ranking", "position", "pos")
SCORE = (
    "score",
    "scores",
    "prediction",
    "pred",
    "predicted",
    "similarity",
    "sim",
    "rating",
    "value",
)

FORMATS = ("csv", "tsv", "::", "parquet", "trec")
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Table:
    """A table as it was read, with what was assumed on the way."""

    frame: pl.DataFrame
    source: str
    header: bool = True
    format: str = "frame"
    notes: tuple[str, ...] = ()
    """What was left out."""
    index: tuple[str, ...] = ()
    """Names of a pandas index, which is no column."""

    def pick(
        self,
        what: str,
        names: Sequence[str],
        given: str | int | None,
        taken: Collection[str | None] = (),
    ) -> str | None:
        """Return the column that holds `what`: the one given, or the first that is so named.

        What is `taken` for something else is not guessed.
        """
        columns = self.frame.columns
        if isinstance(given, int):
            if not 0 <= given < len(columns):
                raise DataError(
                    f"{self.source}: {what} column {given} does not exist; the table has "
                    f"{counted(len(columns), 'column')}, numbered from 0"
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
                f"(its first line, if it is a file); name it with ",
                column_hint(what),
                self._index_hint(),
            )
        return column

    def _index_hint(self) -> str:
        if not self.index:
            return ""
        names = ", ".join(map(repr, self.index))
        return f"; the index ({names}) is no column: .reset_index() makes it one"


def column_hint(what: str, name: object = "…") -> Spelling:
    """Return how a column is named, in Python and on the command line."""
    each = f"{what}={name}"
    return Spelling(each, f"--columns {each}, or FILE:{each} for one file alone")


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Let errors about columns say which file or table they are in."""
    try:
        yield
    except DataError as problem:
        problem.args = (f"{source}: ", *problem.args)
        raise


def plain_name(name: str) -> str:
    """Return a column's name as it is compared: lower case, without blanks, dashes, endings."""
    return re.sub(r"[\s_\-]", "", name.split(":")[0]).lower()


def read_table(source: object, *, format: str | None = None) -> Table:  # noqa: A002
    """Read any supported source into a table of raw columns."""
    check_fork()
    if format is not None:
        choose("format", format, FORMATS)
    if isinstance(source, str | os.PathLike):
        return _read_files(source, format)
    frame = read_frame(source)
    if frame is not None:
        return Table(frame, "frame", index=index_names(source))
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
        f"cannot read {type(source).__name__}: give a path, a data frame (polars, pandas, pyarrow, "
        f"duckdb or another that narwhals knows) or a mapping of column names to arrays"
    )


def _read_files(source: str | os.PathLike[str], kind: str | None) -> Table:
    """Read a file, or the Parquet files of a folder or a pattern as one table."""
    place = source if isinstance(source, str) else Path(source)
    if kind not in (None, "parquet") or not is_several(place):
        return _read_file(InputFile.of(source), kind)
    files = find_parquet(place)
    if len(files) == 1:
        return _read_file(InputFile.of(files[0]), kind)
    tables = [_read_file(InputFile.of(file), "parquet") for file in files]
    name = Path(place).name
    notes: tuple[str, ...] = ()
    if is_address(place):
        name = address_name(place)
        notes = (f"{name}: read into memory from {shown_address(place)}",)
    for table in tables[1:]:
        if set(table.frame.columns) != set(tables[0].frame.columns):
            raise DataError(
                f"{name}: {table.source} has columns {', '.join(table.frame.columns)}, but "
                f"{tables[0].source} has {', '.join(tables[0].frame.columns)}"
            )
    with reading(name):
        columns = tables[0].frame.columns
        frames = [table.frame.select(columns) for table in tables]
        frame = pl.concat(frames, how="vertical_relaxed", rechunk=True)
    label = f"parquet in {counted(len(tables), 'file')}"
    return Table(frame, name, format=label, notes=notes)


def _read_file(file: InputFile, kind: str | None) -> Table:
    with reading(file):
        name = file.path.name.removesuffix(".gz")
        if kind == "parquet" or (kind is None and _is_parquet(file, name)):
            table = Table(_read_parquet(file), file.path.name, format="parquet")
        else:
            table = _read_text(file, name, kind)
    if not file.address:
        return table
    note = f"{table.source}: read into memory from {file.address}"
    return replace(table, notes=(*table.notes, note))


def _is_parquet(file: InputFile, name: str) -> bool:
    """Tell a Parquet file by its name, or by the mark at both of its ends."""
    if name.endswith((".parquet", ".pq")):
        return True
    with file.raw() as raw:
        if raw.read(4) != b"PAR1":
            return False
        raw.seek(-4, os.SEEK_END)
        return raw.read() == b"PAR1"


def _read_parquet(file: InputFile) -> pl.DataFrame:
    try:
        return pl.read_parquet(file.as_it_is(), glob=False, hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise DataError(f"{file}: not a readable Parquet file ({problem})") from None


def _read_text(file: InputFile, name: str, kind: str | None) -> Table:
    lines = _first_lines(file)
    if not lines:
        raise DataError(f"{file}: the file is empty")
    if kind is None:
        kind = _guess_format(name, lines)
    source = file.path.name
    if kind == "trec":
        table = _without_empty_end(Table(_read_spaced(file), source, header=False, format="trec"))
        _check_spaced(file, table.frame)
        return table
    separator = {"tsv": "\t", "::": "\x1f", "csv": _csv_separator(lines[0])}[kind]
    if kind == "::":
        fields = lines[0].split("::")
        data: Any = _rewrite(file, partial(_one_byte, file))
    else:
        fields = _fields(file, lines[0], separator)
        data = file.whole()
    header = not any(_is_number(field) for field in fields)
    frame = _parse(data, file, separator, header, quote=kind != "::")
    if header and kind != "::":
        _check_header(file, lines[0], separator)
    table = _without_empty_end(Table(frame, source, header))
    # A row that is cut short has nothing in the last column: else no line has to be looked at.
    if table.frame.width > 1 and table.frame[:, -1].null_count():
        check_widths(file, "::" if kind == "::" else separator, quote=kind != "::")
    label = {"csv": "comma-separated", "tsv": "tab-separated", "::": "::-separated"}[kind]
    if kind == "csv" and separator != ",":
        label = f"{separator!r}-separated"
    return replace(table, format=label)


def _fields(path: InputFile, line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as problem:
        if "end of data" in str(problem):
            raise DataError(
                f"{path}: a quotation mark is left open in the first line: {line[:80]!r}"
            ) from None
        return line.split(separator)


def _check_header(file: InputFile, line: str, separator: str) -> None:
    """Refuse names of columns with a quotation mark inside, from which polars reads on to the next.

    All rows up to that one would be lost.
    """
    for cell in line.split(separator):
        if '"' in cell.strip().strip('"').replace('""', ""):
            raise DataError(
                f"{file}: a quotation mark stands inside the name of a column: {cell[:80]!r}; "
                "write names without it, or double it inside a name in quotation marks"
            )


def _without_empty_end(table: Table) -> Table:
    """Leave out the empty lines that many programs write at the end of a file."""
    frame = table.frame
    last = frame.height
    while last and all(cell is None or cell == "" for cell in frame.row(last - 1)):
        last -= 1
    empty = frame.height - last
    if not empty:
        return table
    note = f"{table.source}: {empty:,} empty line{'s' * (empty > 1)} at the end left out"
    columns = [_typed(column) if column.dtype == pl.String else column for column in frame[:last]]
    return replace(table, frame=pl.DataFrame(columns), notes=(*table.notes, note))


def _first_lines(file: InputFile) -> list[str]:
    with file.open() as opened:
        text = opened.read(1 << 16)
    if b"\x00" in text:
        raise DataError(f"{file}: this is not a text file, and not a whole Parquet file either")
    first, end, _ = text.partition(b"\n")
    if end:
        first.decode()  # polars would take a header line that is not UTF-8
    lines = text.decode("utf-8-sig", errors="replace").splitlines()
    return [line for line in lines if line.strip()][:100]


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


def _one_byte(file: InputFile, block: bytes) -> bytes:
    """Write one byte for each `::`; refuse text that has that byte already."""
    if b"\x1f" in block:
        raise DataError(f"{file}: holds a control character (1F in hexadecimal); remove it")
    return block.replace(b"::", b"\x1f")


def _rewrite(file: InputFile, change: Callable[[bytes], bytes]) -> io.BytesIO:
    """Rewrite a text file block by block into the one-byte separators that polars reads."""
    out = io.BytesIO()
    with file.open() as opened:
        while lines := opened.readlines(_BLOCK):
            block = b"".join(lines)
            out.write(change(block if out.tell() else block.removeprefix(b"\xef\xbb\xbf")))
    out.seek(0)
    return out


def _read_spaced(file: InputFile) -> pl.DataFrame:
    """Read whitespace-separated columns, as TREC files have them."""

    def squeeze(block: bytes) -> bytes:
        lines = re.sub(rb"[ \t\r]+\n", b"\n", block)
        lines = re.sub(rb"(?m)^[ \t]+", b"", lines)
        return re.sub(rb"[ \t]+", b"\t", lines)

    return _parse(_rewrite(file, squeeze), file, "\t", header=False, quote=False)


def _check_spaced(file: InputFile, frame: pl.DataFrame) -> None:
    """Refuse lines with fewer words than the first: blanks cannot stand for an empty cell."""
    short = frame.select(pl.any_horizontal(pl.all().is_null())).to_series()
    if short.any():
        row = int(short.arg_true()[0])
        words = sum(cell is not None for cell in frame.row(row))
        raise _narrow(file, int(short.sum()), row + 1, words, frame.width, "words")


def check_widths(file: InputFile, separator: str, *, quote: bool = True) -> None:
    """Refuse lines with more or fewer cells than the first one, as a file cut short has."""
    width = 0
    first, cells, wrong = 0, 0, 0
    for line, count in _odd_lines(file, separator, quote):
        if not width:
            width = count
        else:
            wrong += 1
            first, cells = first or line, cells or count
    if wrong:
        raise _narrow(file, wrong, first, cells, width, "cells")


def _odd_lines(file: InputFile, separator: str, quote: bool) -> Iterator[tuple[int, int]]:
    """Yield the first line, and those with another number of cells: where, and how many.

    Empty lines, which are told of elsewhere, do not count.
    """
    width, seen = 0, 0
    with file.open() as opened:
        while lines := opened.readlines(_BLOCK):
            block = b"".join(lines)
            if quote and b'"' in block:  # a separator may stand between quotation marks
                rest = chain(lines, opened)
                yield from _odd_rows(rest, separator, width, seen)
                return
            counts = _cells(block, separator.encode())
            if not width:
                width = int(counts[0])
                yield 1, width
            for at in np.flatnonzero(counts != width):
                if lines[at].strip():
                    yield seen + int(at) + 1, int(counts[at])
            seen += len(lines)


def _odd_rows(
    lines: Iterable[bytes], separator: str, width: int, seen: int
) -> Iterator[tuple[int, int]]:
    """Yield the same of lines with quotation marks, which take longer to read."""
    text = (line.decode("utf-8", errors="replace") for line in lines)
    rows = csv.reader(text, delimiter=separator)
    line = seen
    with suppress(csv.Error):  # a cell of megabytes: polars says what it cannot read
        for row in rows:
            begin, line = line + 1, seen + rows.line_num
            if not width:
                width = len(row)
                yield begin, width
            elif row and len(row) != width:
                yield begin, len(row)


def _cells(block: bytes, mark: bytes) -> I64:
    """Return how many cells each line has."""
    if len(mark) > 1:
        block, mark = block.replace(mark, b"\x1f"), b"\x1f"
    text = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if not block.endswith(b"\n"):
        ends = np.append(ends, text.size)
    before = np.searchsorted(np.flatnonzero(text == mark[0]), ends)
    return np.diff(before, prepend=0) + 1


def _narrow(file: InputFile, count: int, line: int, cells: int, width: int, what: str) -> DataError:
    lines = counted(count, "line has", "lines have")
    return DataError(
        f"{file}: {lines} another number of {what} than the first one ({width:,}), beginning with "
        f"line {line:,}, which has {cells:,}: is the file cut short?"
    )


def _parse(source: Any, path: InputFile, separator: str, header: bool, quote: bool) -> pl.DataFrame:
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
            glob=False,
        )
    except pl.exceptions.NoDataError:
        raise DataError(f"{path}: the file is empty") from None
    except pl.exceptions.PolarsError as problem:
        first = str(problem).partition("\n")[0]
        open_quote = "; is a quotation mark left open?" if '`"' in first else ""
        raise DataError(f"{path}: cannot be read as a table: {first}{open_quote}") from None
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


def name_columns(table: Table, names: Sequence[str], *, extra: bool = False) -> Table:
    """Name the columns of a file without a header line by their place.

    With `extra` there may be one more column, which is not given a meaning.
    """
    width, most = table.frame.width, len(names) + extra
    if width < 2 or width > most:
        raise DataError(
            f"{table.source}: no header line and {width} columns, first row "
            f"{table.frame.row(0) if table.frame.height else ()}; expected 2 to {most} "
            f"({', '.join(names)}{', another' * extra}); add a header line or give column numbers "
            f"such as ",
            Spelling("user=0", "--columns user=0,item=1"),
        )
    places = [*names, f"column_{len(names)}"]
    frame = table.frame.rename(dict(zip(table.frame.columns, places, strict=False)))
    return replace(table, frame=frame, format=f"{table.format} without header")


def number_column(table: Table, name: str, what: str) -> pl.Series:
    """Return a column as numbers, or say which rows are not numbers."""
    column = table.frame[name]
    if column.dtype != pl.String:
        if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
            raise DataError(
                f"{table.source}: {what} in column {name!r} must be numbers, got {column.dtype}"
            )
        return column
    floats = column.cast(pl.Float64, strict=False)
    bad = floats.is_null() & column.is_not_null()
    if bad.any():
        row, count = int(bad.arg_true()[0]), int(bad.sum())
        number = f"1 of the {what}" if count == 1 else f"{count:,} {what}"
        problem = "is not a number" if count == 1 else "are not numbers"
        raise DataError(
            f"{table.source}: {number} in column {name!r} {problem}, the first in row "
            f"{row + 1}: {column[row]!r}"
        )
    return floats
