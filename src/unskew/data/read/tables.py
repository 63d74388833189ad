"""Tables from files, frames and arrays, whatever they hold; columns are known by common names."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import polars as pl

from unskew.checks import choose
from unskew.data.read.dataset_files import is_netflix, jester_separator, read_jester, read_netflix
from unskew.data.read.frames import as_column, got, has_rows, index_names, read_frame
from unskew.data.read.json_files import is_json, read_json
from unskew.data.read.parquet_files import find_parquet, is_several
from unskew.data.read.text_files import first_lines, read_text, with_points
from unskew.engine.files import InputFile, reading
from unskew.engine.threads import check_fork
from unskew.errors import DataError, Spelling, address_name, is_address, shown_address
from unskew.report.text import counted


@cache
def column_names() -> dict[str, tuple[str, ...]]:
    """Return the names of each kind of column, and words of events and ratings.

    Examples
    --------
    >>> from unskew.data.read.tables import column_names
    >>> column_names()["opinions"][:3]
    ('rating', 'ratings', 'overall')
    """
    text = Path(__file__).with_name("column_names.toml").read_text(encoding="utf-8")
    return {kind: tuple(words) for kind, words in tomllib.loads(text).items()}


_SAVE = "save the table as CSV or Parquet"
_UNPACK = "unpack it first"
# First bytes, what such a file is, and what to do about it.
_FOREIGN_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"BZh", "a bzip2 file", "unpack it with bunzip2, or pack it with gzip"),
    (b"\xfd7zXZ\x00", "an xz file", "unpack it with unxz, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it with unzstd, or pack it with gzip"),
    (b"\x04\x22\x4d\x18", "an LZ4 file", "unpack it with unlz4, or pack it with gzip"),
    (b"\x1f\x9d", "a file of compress (.Z)", "unpack it with uncompress, or pack it with gzip"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!", "a RAR archive", _UNPACK),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook (.xls)", "save its sheet as CSV in UTF-8"),
    (b"ARROW1", "an Arrow (Feather) file", "read it with polars.read_ipc, and save it as Parquet"),
    (b"FEA1", "a Feather file", "read it with pandas.read_feather, and save it as Parquet"),
    (b"ORC", "an ORC file", "save it as Parquet"),
    (b"Obj\x01", "an Avro file", "save it as Parquet"),
    (b"\x89HDF", "an HDF5 file", _SAVE),
    (b"SQLite format 3", "an SQLite database", "export its table as CSV"),
    (b"MATLAB ", "a MATLAB file", "write user, item and rating as columns of a CSV file"),
    (b"\x93NUMPY", "a NumPy array", "write user, item and rating as columns of a CSV file"),
    (b"RDX", "an R data file", _SAVE),
    (b"%PDF", "a PDF document", _SAVE),
    (b"{\\rtf", "an RTF document", _SAVE),
)
_PAGE = re.compile(rb"\s*(<!doctype html|<html|<head|<body|<!--|<script)", re.IGNORECASE)
_XML = re.compile(rb"\s*<(\?xml|[a-z])", re.IGNORECASE)


def refuse_foreign(file: InputFile) -> None:
    """Refuse a file that is neither text nor Parquet: packed otherwise, a workbook, a page."""
    with file.raw() as raw:
        start = raw.read(1024)
    if start[:2] == b"\x1f\x8b":
        with file.open() as opened:
            start = opened.read(1024)
    elif file.path.suffix == ".gz" and start:
        _refuse(file, start)
        raise DataError(
            f"{file}: the name ends in .gz, but this is no gzip file: take the ending away if the "
            "file is unpacked already, or download it again"
        )
    _refuse(file, start)


def _refuse(file: InputFile, start: bytes) -> None:
    kind = _kind(start.removeprefix(b"\xef\xbb\xbf"))
    if kind is not None:
        what, remedy = kind
        raise DataError(f"{file}: this is {what}: {remedy}")


def _kind(start: bytes) -> tuple[str, str] | None:
    """Return what a file is and what to do; None where it may be a table."""
    if start.startswith(b"PK\x03\x04"):
        return _kind_of_zip(start)
    for mark, what, remedy in _FOREIGN_KINDS:
        is_word = re.fullmatch(rb"[\w! ]+", mark)
        if start.startswith(mark) and not (is_word and _is_text(start)):
            return what, remedy
    if re.match(rb"\x80[\x02-\x05]", start):
        return "a Python pickle, which can run any program when it is read", _SAVE
    if start[257:262] == b"ustar":
        return "a tar archive", _UNPACK
    if _PAGE.match(start):
        return "a web page", "perhaps one to log in at; download the file itself"
    if _XML.match(start):
        return "an XML file", _SAVE
    return None


def _is_text(start: bytes) -> bool:
    """Tell whether bytes are printed text: a mark such as ORC may begin an id."""
    return not re.search(rb"[\x00-\x08\x0e-\x1f]", start)


def _kind_of_zip(start: bytes) -> tuple[str, str]:
    names = start[30:]
    if re.search(rb"xl/|\[Content_Types\]|_rels/", names):
        return "an Excel workbook (.xlsx)", "save its sheet as CSV in UTF-8"
    if b".npy" in names[:200]:
        return "an archive of NumPy arrays (.npz)", "write user, item and rating as columns of CSV"
    return "a zip archive", _UNPACK


# Names that mean one thing in the data sets of this field, most telling first; compared in lower
# case without spaces, dashes, underscores and RecBole's ":token" endings.


def _names(kind: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of columns of each thing of a kind, those of one thing together."""
    things = column_names()[kind]
    return tuple((f"{thing}id", thing, f"{thing}index", f"{thing}idx") for thing in things)


_USERS, _ITEMS = column_names()["users"], column_names()["items"]
_LEADING = frozenset((*_USERS, *_ITEMS))
"""Names that win over all others."""
_PEOPLE = (("query", "queryid", "qid"), *_names("people"))
_VISITS = _names("visits")
_THINGS = (
    ("parentasin", "asin"),  # Amazon: variants of one product have one parent
    ("docid", "doc", "docno", "documentid", "document"),
    ("gmapid", "gmap"),
    *_names("things"),
)
_KINDS = _names("thing_kinds")
_FALLBACK = frozenset(name for group in (*_VISITS, *_KINDS) for name in group)
"""Names that count only where there is no other."""
_THING_OF = {
    name: group[0]
    for group in (_USERS, _ITEMS, *_PEOPLE, *_VISITS, *_THINGS, *_KINDS)
    for name in group
}
USER = (*_USERS, *(name for group in (*_PEOPLE, *_VISITS) for name in group))
ITEM = (*_ITEMS, *(name for group in (*_THINGS, *_KINDS) for name in group))
TIME, RANK, SCORE = (column_names()[kind] for kind in ("times", "ranks", "scores"))

FORMATS = ("csv", "tsv", "::", "parquet", "trec", "json")


@dataclass(frozen=True)
class DataTable:
    """A table as it was read, with what was assumed on the way."""

    frame: pl.DataFrame
    source: str
    header: bool = True
    format: str = "frame"
    notes: tuple[str, ...] = ()
    """What was left out."""
    index: tuple[str, ...] = ()
    """Names of a pandas index, which is no column."""
    names: tuple[str, ...] = ()
    """Names of the columns as a header line has them: one may occur twice, in the frame none."""

    def pick(
        self,
        what: str,
        names: Sequence[str],
        chosen: str | int | None,
        taken: Collection[str | None] = (),
    ) -> str | None:
        """Return the column that holds `what`: the one given, or the first that is so named.

        What is `taken` for something else is not guessed.
        """
        columns = self.frame.columns
        if isinstance(chosen, int):
            if not 0 <= chosen < len(columns):
                raise DataError(
                    f"{self.source}: {what} column {chosen} does not exist; the table has "
                    f"{counted(len(columns), 'column')}, numbered from 0"
                )
            return columns[chosen]
        if chosen is not None:
            if chosen not in columns:
                raise DataError(
                    f"{self.source}: no column {chosen!r} for {what}; the columns are: "
                    f"{', '.join(columns)}"
                )
            self.check_once(chosen, what, stated=True)
            return chosen
        plain = {plain_name(column): column for column in reversed(columns) if column not in taken}
        column = next((plain[name] for name in names if name in plain), None)
        if column is not None:
            self.check_once(column, what)
        return column

    def check_once(self, column: str, what: str, *, stated: bool = False) -> None:
        """Refuse a column whose name occurs twice; where it was guessed, also in another spelling.

        Parameters
        ----------
        column
            The column.
        what
            What it holds: user, item, rating …
        stated
            Whether the user named the column, rather than its name being recognised.
        """
        spelled = self.names or tuple(self.frame.columns)
        name = spelled[self.frame.columns.index(column)]
        key = str if stated else plain_name
        same = [number for number, spelling in enumerate(spelled) if key(spelling) == key(name)]
        if len(same) > 1:
            which = " and ".join(f"{number} ({spelled[number]!r})" for number in same)
            raise DataError(
                f"{self.source}: the {what} column {name!r} occurs {len(same)} times: columns "
                f"{which}, counted from 0; rename one, or give the number with ",
                column_hint(what, same[0]),
            )

    def need(self, what: str, names: Sequence[str], chosen: str | int | None) -> str:
        """Return the column that holds `what`, or say how to name it."""
        column = self.pick(what, names, chosen)
        if column is None:
            self._check_separator()
            raise DataError(
                f"{self.source}: no {what} column found among: {', '.join(self.frame.columns)} "
                f"(its first line, if it is a file); name it with ",
                column_hint(what),
                self._index_hint(),
            )
        rivals = [column, *self.rivals(column, names)]
        if chosen is None and len(rivals) > 1 and _are_equal(rivals):
            raise DataError(
                f"{self.source}: which column is the {what}: "
                f"{' or '.join(map(repr, rivals))}? Name it with ",
                column_hint(what, rivals[0]),
            )
        return column

    def rivals(self, column: str, names: Sequence[str]) -> list[str]:
        """Return the other columns that have a name of this kind, most telling first."""
        others = [column for column in self.frame.columns if plain_name(column) in names]
        others.sort(key=lambda name: names.index(plain_name(name)))
        return [name for name in others if name != column]

    def _check_separator(self) -> None:
        """Refuse one column of text: its separator was not recognised."""
        if self.frame.width == 1 and "-separated" in self.format:
            raise DataError(
                f"{self.source}: read as {self.format}, this has one column, "
                f"{self.frame.columns[0]!r}; separate columns by commas, semicolons, tabs, blanks, "
                "| or ::"
            )

    def _index_hint(self) -> str:
        if not self.index:
            return ""
        names = ", ".join(map(repr, self.index))
        return f"; the index ({names}) is no column: .reset_index() makes it one"


def _are_equal(columns: Sequence[str]) -> bool:
    """Tell whether columns name different things, and none wins: an artist and a track."""
    plain = [plain_name(column) for column in columns]
    if plain[0] in _LEADING or not set(plain) <= set(_THING_OF):
        return False
    level = [name for name in plain if (name in _FALLBACK) == (plain[0] in _FALLBACK)]
    return len({_THING_OF[name] for name in level}) > 1


def column_hint(what: str, name: object = "…") -> Spelling:
    """Return how a column is named, in Python and on the command line."""
    setting = f"{what}={name}"
    return Spelling(setting, f"--columns {setting}, or FILE:{setting} for one file alone")


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


def read_table(source: object, *, format: str | None = None) -> DataTable:  # noqa: A002
    """Read any supported source into a table of raw columns."""
    check_fork()
    if format is not None:
        choose("format", format, FORMATS)
    if isinstance(source, str | os.PathLike):
        return _read_files(source, format)
    frame = read_frame(source)
    if frame is not None:
        return DataTable(frame, "frame", index=index_names(source))
    if isinstance(source, Mapping):
        for name, column in source.items():
            if isinstance(column, str) or not has_rows(column):
                raise DataError(
                    f"column {str(name)!r}: expected an array or a list, got {column!r}"
                )
        lengths = {str(name): len(column) for name, column in source.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns differ in length: {lengths}")
        columns = [as_column(str(name), values) for name, values in source.items()]
        return DataTable(pl.DataFrame(columns), "arrays", format="arrays")
    raise DataError(
        f"cannot read {type(source).__name__}: give a path, a data frame (polars, pandas, pyarrow, "
        f"duckdb or another that narwhals knows) or a mapping of column names to arrays"
    )


def _read_files(source: str | os.PathLike[str], kind: str | None) -> DataTable:
    """Read a file, or the Parquet files of a folder or a pattern as one table."""
    path = source if isinstance(source, str) else Path(source)
    if kind not in (None, "parquet") or not is_several(path):
        return _read_file(InputFile.of(source), kind)
    files = find_parquet(path)
    if len(files) == 1:
        return _read_file(InputFile.of(files[0]), kind)
    tables = [_read_file(InputFile.of(file), "parquet") for file in files]
    name = Path(path).name
    notes: tuple[str, ...] = ()
    if is_address(path):
        name = address_name(path)
        notes = (f"{name}: read into memory from {shown_address(path)}",)
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
    return DataTable(frame, name, format=label, notes=notes)


def _read_file(file: InputFile, kind: str | None) -> DataTable:
    with reading(file):
        name = file.path.name.removesuffix(".gz")
        if kind == "parquet" or (kind is None and _is_parquet(file, name)):
            table = DataTable(_read_parquet(file), file.path.name, format="parquet")
        else:
            refuse_foreign(file)
            table = _read_rows(file, kind)
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


def _read_rows(file: InputFile, kind: str | None) -> DataTable:
    """Read a text file: JSON, a format of a data set that its content shows, or columns."""
    source = file.path.name
    lines = first_lines(file)
    if not lines:
        raise DataError(f"{file}: the file is empty")
    if kind == "json" or (kind is None and is_json(file, lines)):
        frame, notes = read_json(file)
        return DataTable(frame, source, format="JSON", notes=notes)
    if kind is None and is_netflix(file, lines):
        return DataTable(read_netflix(file), source, format="Netflix Prize")
    separator = jester_separator(lines) if kind is None else None
    if separator is not None:
        return DataTable(read_jester(file, separator), source, format="Jester matrix")
    frame, label, names, remarks = read_text(file, kind, lines)
    return DataTable(frame, source, names is not None, label, tuple(remarks), names=names or ())


def name_columns(table: DataTable, names: Sequence[str]) -> DataTable:
    """Name the columns of a file without a header line by their place."""
    width = table.frame.width
    if width < 2 or width > len(names):
        raise no_header(table, names)
    frame = table.frame.rename(dict(zip(table.frame.columns, names, strict=False)))
    return replace(table, frame=frame, format=f"{table.format} without header")


def no_header(table: DataTable, names: Sequence[str]) -> DataError:
    """Build the error for a file without a header line and too few or too many columns."""
    width = table.frame.width
    cells = table.frame.row(0) if table.frame.height else ()
    row = ", ".join(map(repr, cells[:8])) + ", …" * (len(cells) > 8)
    return DataError(
        f"{table.source}: no header line and {counted(width, 'column')}, first row ({row}), read "
        f"as {table.format}; expected 2 to {len(names)} ({', '.join(names)}); add a header line, "
        f"or give column numbers such as ",
        Spelling("user=0", "--columns user=0,item=1"),
    )


def number_column(table: DataTable, name: str, what: str) -> pl.Series:
    """Return a column as numbers, or say which rows are not numbers."""
    column = table.frame[name]
    if column.dtype != pl.String:
        if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
            raise DataError(
                f"{table.source}: {what} in column {name!r} must be numbers, {got(column)}"
            )
        return column
    floats = column.cast(pl.Float64, strict=False)
    bad = floats.is_null() & column.is_not_null()
    if bad.any():
        decimal = with_points(column)
        if decimal is not None:
            return decimal
        row, count = int(bad.arg_true()[0]), int(bad.sum())
        number = f"1 of the {what}" if count == 1 else f"{count:,} {what}"
        problem = "is not a number" if count == 1 else "are not numbers"
        thousands = "; write 1234.5, not 1,234.5" if "," in column[row] else ""
        raise DataError(
            f"{table.source}: {number} in column {name!r} {problem}, the first in row "
            f"{row + 1}: {column[row]!r}{thousands}"
        )
    return floats
