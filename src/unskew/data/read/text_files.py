"""Text files with columns: separators, header lines and line ends, told by what is there."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.data.ratings import CANONICAL_INTEGER
from unskew.engine.cells import unescaped
from unskew.engine.files import InputFile
from unskew.errors import DataError
from unskew.report.text import counted

SAMPLE = 100
"""Lines by which a format is recognised."""
_BLOCK = 1 << 22
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_DECIMAL_COMMA = r"^[+-]?\d+(,\d+)?$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+$"


@dataclass(frozen=True)
class _TextLayout:
    """How the lines of a file are cut into cells."""

    mark: str
    squeezed: str = ""
    """What may occur several times in a row as one separator: blanks and tabs, or tabs."""
    quote: bool = True

    @property
    def label(self) -> str:
        if self.squeezed:
            kinds = {" \t": "whitespace-separated", "\t": "tab-separated (several tabs as one)"}
            return kinds[self.squeezed]
        special = {",": "comma-separated", "\t": "tab-separated", "::": "::-separated"}
        return special.get(self.mark, f"{self.mark!r}-separated")


def first_lines(file: InputFile) -> list[str]:
    """Return the first lines that are not empty; refuse what is no text."""
    with file.open() as opened:
        text = opened.read(1 << 16)
        is_whole = not opened.read(1)
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        kind = "UTF-32" if text.startswith(b"\xff\xfe\x00\x00") else "UTF-16"
        raise DataError(
            f"{file}: this is {kind} text: save it as UTF-8, for example with iconv -f {kind} "
            "-t UTF-8"
        )
    if b"\x00" in text:
        raise DataError(
            f"{file}: this is not a text file, and not a whole Parquet file either; save the table "
            "as CSV in UTF-8, or as Parquet"
        )
    first, end, _ = text.partition(b"\n")
    if end:
        try:
            first.decode()  # polars would take a header line that is not UTF-8
        except UnicodeDecodeError:
            raise _not_utf8(file, 1) from None
    lines = text.decode("utf-8-sig", errors="replace").split("\n")
    if not is_whole and len(lines) > 1:
        lines.pop()  # it is cut off
    lines = [line.removesuffix("\r") for line in lines]
    return [line for line in lines if line.strip()][:SAMPLE]


def guess_format(name: str, lines: Sequence[str]) -> str:
    """Return the format of a text file by its name, or by its first lines."""
    if name.endswith((".trec", ".qrel", ".qrels", ".run")):
        return "trec"
    if "::" in lines[0]:
        return "::"
    words = [line.split() for line in lines]
    # A file of user, item, rating and time may begin with ratings of an item 0.
    is_timed = all(re.fullmatch(r"\d{9,}", row[-1]) for row in words)
    if all(len(row) == 4 and row[1] in ("0", "Q0") for row in words) and not is_timed:
        return "trec"
    if all(len(row) == 6 and row[1].upper() in ("Q0", "0") for row in words):
        return "trec"
    return "tsv" if "\t" in lines[0] else "csv"


def read_text(
    file: InputFile, kind: str | None, lines: Sequence[str]
) -> tuple[pl.DataFrame, str, tuple[str, ...] | None, list[str]]:
    """Read a file of columns.

    Returns the rows, the format, the names in the header line (None where there is no header line,
    none where they do not match the columns; one may occur twice) and notes.

    Parameters
    ----------
    file
        The file.
    kind
        `csv`, `tsv`, `::` or `trec`; None: recognised by its first lines.
    lines
        The first lines of the file.
    """
    stated = kind is not None
    kind = kind or guess_format(file.path.name.removesuffix(".gz"), lines)
    if kind == "trec":
        frame = _parse(file, _TextLayout("\t", " \t", quote=False), header=False)
        frame, notes = _without_empty_end(file, frame)
        _check_spaced(file, frame)
        return frame, "trec", None, notes
    if not stated:
        _check_first_line(file, lines)
    layout = _layout(kind, lines, stated)
    fields = tuple(_fields(file, lines[0], layout))
    header = not any(_is_number(field) for field in fields)
    frame = _parse(file, layout, header)
    if header and layout.quote:
        _check_header(file, lines[0], layout.mark)
    names = fields if header and len(fields) == frame.width else ()
    frame, notes = _without_empty_end(file, frame)
    # A row that is cut short has nothing in the last column: else no line has to be looked at.
    if frame.width > 1 and frame[:, -1].null_count():
        if layout.squeezed:
            _check_spaced(file, frame, header)
        else:
            check_widths(file, layout.mark, quote=layout.quote)
    _check_repeated_header(file, frame, names)
    return (
        frame,
        layout.label,
        names if header else None,
        [*notes, *_comma_notes(file, frame, header)],
    )


def _check_first_line(file: InputFile, lines: Sequence[str]) -> None:
    """Refuse files that begin with a comment: the names of columns may stand in it."""
    first = lines[0]
    if first.startswith("%%MatrixMarket"):
        raise DataError(
            f"{file}: this is a Matrix Market file; read it with scipy.io.mmread, and write rows "
            "of user, item and rating"
        )
    if re.match(r"[#%]([\s#%]|$)", first):
        raise DataError(
            f"{file}: line 1 is a comment ({first[:60]!r}): remove it, and write the names of the "
            "columns into the first line"
        )
    if re.fullmatch(r'"?sep=.?"?', first.strip(), re.IGNORECASE):
        raise DataError(f"{file}: line 1 is {first!r}, which only Excel reads: remove it")


def _layout(kind: str, lines: Sequence[str], stated: bool) -> _TextLayout:
    """Return how lines are cut; a format that the user states is taken literally."""
    if kind == "::":
        return _TextLayout("::", quote=False)
    mark = "\t" if kind == "tsv" else _csv_separator(lines)
    if stated or '"' in "".join(lines):
        return _TextLayout(mark)
    if mark == "\t" and "\t\t" in lines[0] and _is_even(lines, r"\t+"):
        return _TextLayout("\t", "\t", quote=False)
    odd = re.compile(r"^\s|\s\s|\t|\s$")
    if mark == " " and any(odd.search(line) for line in lines):
        return _TextLayout("\t", " \t", quote=False)
    return _TextLayout(mark)


def _is_even(lines: Sequence[str], separator: str) -> bool:
    """Tell whether all lines have the same number of cells, none of them empty."""
    rows = [re.split(separator, line.strip()) for line in lines]
    return len({len(row) for row in rows}) == 1 and len(rows[0]) > 1


def _csv_separator(lines: Sequence[str]) -> str:
    """Return the separator: of several marks the comma, unless each one is a decimal comma."""
    first = _QUOTED.sub("", lines[0])
    counts = {mark: first.count(mark) for mark in (";", "|") if mark in first}
    if "," not in first:
        if counts:
            return max(counts, key=lambda mark: counts[mark])
        return " " if " " in first.strip() else ","
    best = max(counts, key=lambda mark: counts[mark], default=",")
    unquoted = [_QUOTED.sub("", line) for line in lines]
    is_decimal = not any(re.search(r"(?<!\d),|,(?!\d)", line) for line in unquoted)
    widths = {line.count(best) for line in unquoted}
    return best if is_decimal and len(widths) == 1 else ","


def _fields(file: InputFile, line: str, layout: _TextLayout) -> list[str]:
    """Return the cells of the first line."""
    if layout.squeezed:
        return re.split(f"[{layout.squeezed}]+", line.strip())
    if not layout.quote:
        return [field.strip() for field in line.split(layout.mark)]
    try:
        fields = next(csv.reader([line], delimiter=layout.mark, strict=True))
    except csv.Error as problem:
        if "end of data" in str(problem):
            raise DataError(
                f"{file}: a quotation mark is left open in the first line: {line[:80]!r}"
            ) from None
        fields = line.split(layout.mark)
    return [field.strip() for field in fields]


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


def _check_repeated_header(file: InputFile, frame: pl.DataFrame, names: Sequence[str]) -> None:
    """Refuse a header line among the rows, as files that were joined have it."""
    texts = [(column, name) for column, name in zip(frame, names, strict=False) if name]
    if not texts or any(column.dtype != pl.String for column, _ in texts):
        return
    repeats = pl.Series([True]).new_from_index(0, frame.height)
    for column, name in texts:
        repeats &= (column == name).fill_null(False)
    if repeats.any():
        row = int(repeats.arg_true()[0])
        raise DataError(
            f"{file}: row {row + 1:,} repeats the header line: were files joined? Remove it"
        )


def _without_empty_end(file: InputFile, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Leave out the empty lines that many programs write at the end of a file, with a note."""
    last = frame.height
    while last and all(cell is None or cell == "" for cell in frame.row(last - 1)):
        last -= 1
    empty = frame.height - last
    if not empty:
        return frame, []
    columns = [_typed(column) if column.dtype == pl.String else column for column in frame[:last]]
    note = f"{file.path.name}: {empty:,} empty line{'s' * (empty > 1)} at the end left out"
    return pl.DataFrame(columns), [note]


def _is_number(text: str) -> bool:
    if re.fullmatch(_DECIMAL_COMMA, text):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _comma_notes(file: InputFile, frame: pl.DataFrame, header: bool) -> Iterator[str]:
    """Name the columns of numbers with decimal commas."""
    for number, column in enumerate(frame.iter_columns()):
        if column.dtype == pl.String and with_points(column) is not None:
            name = repr(column.name) if header else f"{number} (counted from 0)"
            example = column.filter(column.str.contains(",", literal=True))[0]
            yield (
                f"{file.path.name}: column {name} has decimal commas; {example!r} is read as "
                f"{example.replace(',', '.')} where a number is needed"
            )


def with_points(column: pl.Series) -> pl.Series | None:
    """Return numbers with decimal commas as floats; None where they are anything else.

    `1,234` alone may be 1234 as well: one of the numbers has to be no number of thousands.
    """
    texts = column.drop_nulls()
    commas = texts.filter(texts.str.contains(",", literal=True))
    if not len(commas) or not bool(texts.str.contains(_DECIMAL_COMMA).all()):
        return None
    if bool(commas.str.contains(_THOUSANDS).all()):
        return None
    return column.str.replace(",", ".", literal=True).cast(pl.Float64)


def _rewrite(file: InputFile, change: Callable[[bytes], bytes]) -> io.BytesIO:
    """Rewrite a text file block by block into the one-byte separators that polars reads."""
    out = io.BytesIO()
    with file.open() as opened:
        while lines := opened.readlines(_BLOCK):
            block = b"".join(lines)
            out.write(change(block if out.tell() else block.removeprefix(b"\xef\xbb\xbf")))
    out.seek(0)
    return out


def _source(file: InputFile, layout: _TextLayout) -> tuple[Path | bytes | io.BytesIO, str]:
    """Return what polars reads, and its separator."""
    if layout.mark == "::":

        def one_byte(block: bytes) -> bytes:
            if b"\x1f" in block:
                raise DataError(f"{file}: holds a control character (1F in hexadecimal); remove it")
            return block.replace(b"::", b"\x1f")

        return _rewrite(file, one_byte), "\x1f"
    if not layout.squeezed:
        return file.whole(), layout.mark
    marks = layout.squeezed.encode()

    def squeeze(block: bytes) -> bytes:
        lines = re.sub(rb"[" + marks + rb"\r]+\n", b"\n", block)
        lines = re.sub(rb"(?m)^[" + marks + rb"]+", b"", lines)
        return re.sub(rb"[" + marks + rb"]+", b"\t", lines)

    return _rewrite(file, squeeze), "\t"


def _check_spaced(file: InputFile, frame: pl.DataFrame, header: bool = False) -> None:
    """Refuse lines with fewer words than the first: blanks cannot stand for an empty cell."""
    short = frame.select(pl.any_horizontal(pl.all().is_null())).to_series()
    if short.any():
        row = int(short.arg_true()[0])
        words = sum(cell is not None for cell in frame.row(row))
        line = row + 1 + header
        raise _odd_widths(file, int(short.sum()), line, words, frame.width, "words")


def _check_words(file: InputFile) -> None:
    """Refuse lines with more words than the first."""
    with file.open() as opened:
        counts = [len(line.split()) for line in opened]
    width = next((count for count in counts if count), 0)
    wide = [line for line, count in enumerate(counts, 1) if count > width]
    if wide:
        raise _odd_widths(file, len(wide), wide[0], counts[wide[0] - 1], width, "words")


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
        raise _odd_widths(file, wrong, first, cells, width, "cells")


def _odd_lines(file: InputFile, separator: str, quote: bool) -> Iterator[tuple[int, int]]:
    """Yield the first line, and those with another number of cells: where, and how many.

    Empty lines, which are told of elsewhere, do not count.
    """
    width, seen = 0, 0
    with file.open() as opened:
        while lines := opened.readlines(_BLOCK):
            block = b"".join(lines)
            if quote and b'"' in block:  # a separator may stand between quotation marks
                remainder = chain(lines, opened)
                yield from _odd_rows(remainder, separator, width, seen)
                return
            counts = _cells(block, separator.encode())
            if not width:
                width = int(counts[0])
                yield 1, width
            for index in np.flatnonzero(counts != width):
                if lines[index].strip():
                    yield seen + int(index) + 1, int(counts[index])
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
    stops = np.flatnonzero(text == ord("\n"))
    if not block.endswith(b"\n"):
        stops = np.append(stops, text.size)
    before = np.searchsorted(np.flatnonzero(text == mark[0]), stops)
    return np.diff(before, prepend=0) + 1


def _odd_widths(
    file: InputFile, count: int, line: int, cells: int, width: int, what: str
) -> DataError:
    lines = counted(count, "line has", "lines have")
    more = "does a separator stand inside a cell, or at the end of the line?"
    return DataError(
        f"{file}: {lines} another number of {what} than the first one ({width:,}), beginning with "
        f"line {line:,}, which has {cells:,}: {more if cells > width else 'is the file cut short?'}"
    )


def _check_line_ends(file: InputFile, opened: BinaryIO, quote: bool) -> None:
    """Refuse carriage returns that end no line as Windows does: old Macs ended lines with them.

    Polars would read such lines as one. Between quotation marks they are text.
    """
    if not any(_has_lone_return(block) for block in _blocks(opened)):
        return
    opened.seek(0)
    lines, quotes = 0, 0
    for block in _blocks(opened):
        if _has_lone_return(block):
            text = np.frombuffer(block + b" ", np.uint8)
            lone = np.flatnonzero((text[:-1] == ord("\r")) & (text[1:] != ord("\n")))
            marks = np.flatnonzero(text == ord('"'))
            outside = lone[(quotes + np.searchsorted(marks, lone)) % 2 == 0] if quote else lone
            if outside.size:
                raise _lone_return(file, lines + block[: outside[0]].count(b"\n") + 1)
        lines += block.count(b"\n")
        quotes += block.count(b'"')
    if not lines:
        raise _lone_return(file, 1)


def _blocks(opened: BinaryIO) -> Iterator[bytes]:
    """Yield a file in blocks that do not end between a carriage return and its line feed."""
    while block := opened.read(_BLOCK):
        yield block + opened.read(1) if block.endswith(b"\r") else block


def _has_lone_return(block: bytes) -> bool:
    return b"\r" in block and block.count(b"\r") > block.count(b"\r\n")


def _lone_return(file: InputFile, line: int) -> DataError:
    return DataError(
        f"{file}: line {line:,} has a carriage return without a line feed, as old Macs ended "
        f"lines: end every line with a line feed, for example with tr '\\r' '\\n'"
    )


def _not_utf8(file: InputFile, line: int) -> DataError:
    return DataError(
        f"{file}: cannot be read as UTF-8 text: line {line:,} has bytes that are none; if it is "
        "Latin-1, convert it with iconv -f LATIN1 -t UTF-8"
    )


def _parse(file: InputFile, layout: _TextLayout, header: bool) -> pl.DataFrame:
    """Read all columns as text, then make numbers of those that are numbers throughout.

    Ids become integers only when each is a canonical decimal: `007` stays text.
    """
    source, separator = _source(file, layout)
    with _opened(source) as opened:
        _check_line_ends(file, opened, layout.quote)
        if not layout.squeezed and _ends_with(opened, separator):
            check_widths(file, layout.mark, quote=layout.quote)  # polars takes no notice of it
    try:
        frame = pl.read_csv(
            source,
            separator=separator,
            has_header=header,
            infer_schema=False,
            quote_char='"' if layout.quote else None,
            new_columns=None,
            glob=False,
        )
    except pl.exceptions.NoDataError:
        raise DataError(f"{file}: the file is empty") from None
    except pl.exceptions.PolarsError as problem:
        raise _unreadable(file, layout, str(problem).partition("\n")[0]) from None
    columns = []
    for column in frame.iter_columns():
        text = column.str.strip_chars() if column.dtype == pl.String else column
        columns.append(_typed(unescaped(text) if layout.quote else text))
    return pl.DataFrame(columns)


def _opened(source: Path | bytes | io.BytesIO) -> BinaryIO:
    """Open what polars reads, at its beginning."""
    if isinstance(source, Path):
        return source.open("rb")
    return io.BytesIO(source if isinstance(source, bytes) else source.getbuffer())


def _ends_with(opened: BinaryIO, mark: str) -> bool:
    size = opened.seek(0, os.SEEK_END)
    opened.seek(max(size - 1, 0))
    return opened.read() == mark.encode()


def _unreadable(file: InputFile, layout: _TextLayout, reason: str) -> DataError:
    """Build the error for what polars refuses: where it is, as far as that can be told."""
    if "utf-8" in reason.lower():
        with file.open() as opened:
            for number, line in enumerate(opened, 1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return _not_utf8(file, number)
    if "more fields" in reason:
        try:
            if layout.squeezed:
                _check_words(file)
            else:
                check_widths(file, layout.mark, quote=layout.quote)
        except DataError as problem:
            return problem
    open_quote = "; is a quotation mark left open?" if '`"' in reason else ""
    return DataError(f"{file}: cannot be read as a table: {reason}{open_quote}")


def _typed(text: pl.Series) -> pl.Series:
    sample = text.head(100).drop_nulls()
    if not bool(sample.str.contains(CANONICAL_INTEGER).all()) or not len(sample):
        return text
    integers = text.cast(pl.Int64, strict=False)
    if integers.null_count() > text.null_count() or not bool(
        (integers.cast(pl.String) == text).all()
    ):
        return text
    # As in the pattern, which saw the first rows only: at most 18 digits.
    return integers if bool(integers.is_between(-(10**18), 10**18, closed="none").all()) else text
