"""Parquet files as sources of rows: which files, which columns, how many rows, which ids."""

from __future__ import annotations

import glob
import os
import re
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import frozen
from unskew.checks import choose
from unskew.data.ratings import CANONICAL_INTEGER, FEEDBACK, LARGEST, Ids, Ratings
from unskew.data.read import ratings_files, tables
from unskew.data.read.parquet_files import find_parquet
from unskew.data.read.rating_columns import find_event_column, find_rating_column, stated_columns
from unskew.engine.files import digest, local_path, replacing
from unskew.engine.remote import RemoteFile
from unskew.errors import DataError, SettingError, Spelling, is_address, shown_address
from unskew.run_tables import are_ranks
from unskew.runs import Run, read_run, system_name

FOLDER = "copies"
"""Where copies lie, in the output folder; they may be removed when the evaluation is finished."""


def with_copies(what: str, source: object, output: str | os.PathLike[str]) -> object:
    """Return sources in which copies take the place of remote files.

    Parameters
    ----------
    what
        The judgments, or the name of a system.
    given
        A file, a folder, a pattern, or several of these.
    output
        The folder of the evaluation.
    """
    sources = source if isinstance(source, list | tuple) else [source]
    if not any(is_address(source) for source in sources):
        return source
    folder = Path(output) / FOLDER / _plain(what)
    places: list[object] = []
    for number, path in enumerate(sources):
        if is_address(path):
            files = [file for file in find_parquet(path) if isinstance(file, RemoteFile)]
            places += [_copy(file, folder / str(number), index) for index, file in enumerate(files)]
        else:
            places.append(path)
    return places


def _copy(file: RemoteFile, folder: Path, number: int) -> Path:
    """Copy a file, unless its copy is there; the time of a copy tells the version of the file."""
    path = folder / f"{number:05d}-{_plain(file.name)}"
    seconds = int(digest(f"{file.shown} {file.version}".encode())[:7], 16)
    try:
        there = path.stat()
        if (there.st_size, there.st_mtime_ns) == (file.size, seconds * 10**9):
            return path
    except FileNotFoundError:
        pass
    with replacing(path) as part, part.open("wb") as out:
        file.copy_to(out)
        out.flush()
        os.utime(part, ns=(seconds * 10**9, seconds * 10**9))
    return path


def _plain(name: str) -> str:
    """Return a name that leads nowhere on any system: Windows takes backslashes as slashes."""
    return re.sub(r"[^\w.-]", "_", name)


_MAGIC = b"PAR1"
# Fields of the footer by their numbers, as parquet.thrift has them.
_ROW_GROUPS, _COLUMNS, _COLUMN, _PATH, _COMPRESSED = 4, 1, 3, 3, 7


def largest_row_group(path: str, columns: Collection[str]) -> int:
    """Return the bytes of some columns in the largest row group, compressed as they are.

    Where the footer cannot be understood that is no more than the size of the file.
    """
    size = Path(path).stat().st_size
    try:
        groups = _footer(Path(path), size)[_ROW_GROUPS]
        return max((_compressed(group, columns) for group in groups), default=0)
    except (KeyError, IndexError, TypeError, ValueError, struct.error):
        return size


def _compressed(group: dict[int, Any], columns: Collection[str]) -> int:
    chunks = [chunk[_COLUMN] for chunk in group[_COLUMNS]]
    return sum(chunk[_COMPRESSED] for chunk in chunks if chunk[_PATH][0].decode() in columns)


def _footer(path: Path, size: int) -> dict[int, Any]:
    with path.open("rb") as file:
        file.seek(max(size - 8, 0))
        (length,) = struct.unpack("<I", file.read(4))
        if file.read(4) != _MAGIC or length > size:
            raise ValueError("no footer")
        file.seek(size - 8 - length)
        return _Compact(file.read(length)).struct()


class _Compact:
    """Reads values of Thrift's compact protocol from bytes, one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position = content, 0
        self.readers: dict[int, Callable[[], Any]] = {
            3: self.byte,
            4: self.integer,
            5: self.integer,
            6: self.integer,
            7: self.double,
            8: self.text,
            9: self.list,
            10: self.list,
            11: self.map,
            12: self.struct,
        }

    def byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def integer(self) -> int:
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def double(self) -> float:
        self.position += 8
        return float(struct.unpack_from("<d", self.content, self.position - 8)[0])

    def text(self) -> bytes:
        size = self.unsigned()
        self.position += size
        return self.content[self.position - size : self.position]

    def list(self) -> list[Any]:
        head = self.byte()
        size = head >> 4 if head >> 4 < 15 else self.unsigned()
        read = self.readers.get(head & 15, self.byte)  # true and false are bytes here
        return [read() for _ in range(size)]

    def map(self) -> dict[Any, Any]:
        size = self.unsigned()
        if not size:
            return {}
        kinds = self.byte()
        key, value = (self.readers.get(kind, self.byte) for kind in (kinds >> 4, kinds & 15))
        return {key(): value() for _ in range(size)}

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            kind = head & 15
            fields[number] = self.readers[kind]() if kind > 2 else kind == 1
        return fields


_SAMPLE = 10_000
KIND = {"integer": pl.Int64, "text": pl.String}


@dataclass(frozen=True)
class ParquetReading:
    """How rows become judgments and lists; see `read_ratings` and `read_run`."""

    duplicates: str = "error"
    repeated: str = "error"
    nan: str = "error"
    by: str | None = None
    ties: str | None = None
    seed: int = 0
    feedback: str | None = None


@dataclass(frozen=True)
class ParquetSource:
    """The rows of one table in many files: the judgments, or the lists of one system."""

    name: str
    is_run: bool
    files: tuple[str, ...]
    rows: tuple[int, ...]
    """Rows of each file."""
    columns: Mapping[str, str]
    """Which column holds the user, the item, and the rating, rank or score."""
    kinds: Mapping[str, str]
    """Whether the ids of `user` and `item` are `integer` or `text`."""
    reading: ParquetReading = field(default_factory=ParquetReading)
    width: float = 24.0
    """Bytes that a row takes in memory."""
    row_bytes: tuple[int, ...] = ()
    """Of each file, the bytes that whoever reads a row of it holds: those of its row group."""

    @property
    def total(self) -> int:
        """Rows of all files."""
        return sum(self.rows)

    def read(self, file: int, low: int = 0, count: int | None = None) -> pl.DataFrame:
        """Read the columns that matter of some rows of a file."""
        lazy = scan([self.files[file]]).select(*dict.fromkeys(self.columns.values()))
        try:
            return lazy.slice(low, count).collect()
        except (pl.exceptions.PolarsError, OSError) as problem:
            raise DataError(f"{self.files[file]}: cannot be read ({problem})") from None

    def values(self, role: str, step: int = 1 << 20) -> Iterator[pl.Series]:
        """Yield a column, some rows at a time: never much more is held."""
        alone = replace(self, columns={role: self.columns[role]})
        for file, rows in enumerate(self.rows):
            for low in range(0, rows, step):
                yield alone.read(file, low, step).to_series()

    def is_implicit(self, feedback: str | None) -> bool:
        """Tell whether the rows are implicit feedback, by the rule of `read_ratings`."""
        name = self.columns.get("rating")
        if feedback is not None:
            if feedback == "explicit" and name is None:
                raise DataError(
                    "explicit feedback needs a column of ratings; name it with columns=…"
                )
            return choose("feedback", feedback, FEEDBACK) == "implicit"
        if name is None or self.reading.duplicates == "count":
            return True
        numbers = (part.cast(pl.Float64, strict=False) for part in self.values("rating"))
        if tables.plain_name(name) in tables.column_names()["counts"]:
            return all(bool((part > 0).all()) for part in numbers)
        return all(bool((part == 1).all()) for part in numbers)

    def ratings(self, frame: pl.DataFrame) -> Ratings:
        """Make judgments of rows."""
        if not frame.height:
            empty = self._no_ids("user"), self._no_ids("item")
            nothing = frozen(np.zeros(0, np.int32))
            implicit = "rating" not in self.columns
            return Ratings(*empty, nothing, nothing, frozen(np.zeros(0)), implicit=implicit)
        columns: dict[str, Any] = dict(self.columns)
        # Whether feedback is implicit is told from all rows, never from these alone.
        feedback = "explicit" if "rating" in columns else "implicit"
        return ratings_files.read_ratings(
            frame, **columns, duplicates=self.reading.duplicates, feedback=feedback
        )

    def run(self, frame: pl.DataFrame) -> Run:
        """Make ranked lists of rows."""
        if not frame.height:
            ids, start = (self._no_ids("user"), self._no_ids("item")), np.zeros(1, np.int64)
            return Run(*ids, frozen(start), frozen(np.zeros(0, np.int32)))
        how, columns = self.reading, dict[str, Any](self.columns)
        return read_run(
            frame,
            **columns,
            ties=how.ties,
            seed=how.seed,
            nan=how.nan,
            duplicates=how.repeated,
            keep_scores=False,
        )

    def _no_ids(self, role: str) -> Ids:
        return Ids(pl.Series(role, [], dtype=KIND[self.kinds[role]]))

    def refuse_bad(self, frame: pl.DataFrame, file: int, low: int) -> None:
        """Raise what reading these rows in memory would, with the file and the row in it.

        Numbers without a gap are known to be good; whatever else is read for trial.
        """
        if all(_is_plain(role, frame[column]) for role, column in self.columns.items()):
            return
        try:
            if self.is_run:
                self.run(frame)
            else:
                self.ratings(frame)
        except DataError as problem:
            first, *more = problem.args
            parts = [
                re.sub(r"\brow (\d+)", lambda row: f"row {int(row[1]) + low:,}", part)
                if isinstance(part, str)
                else part
                for part in (str(first).removeprefix("frame: "), *more)
            ]
            seen = (
                ""
                if frame.height == self.rows[file]
                else (f" (of rows {low + 1:,} to {low + frame.height:,})")
            )
            raise DataError(f"{self.files[file]}: ", *parts, seen) from None

    def places(self, values: Mapping[str, object], limit: int = 2) -> str:
        """Return where rows stand whose columns have these values, in words."""
        result = []
        for number, path in enumerate(self.files):
            match = [
                pl.col(self.columns[role]).cast(KIND[self.kinds[role]]) == value
                if role in self.kinds
                else pl.col(self.columns[role]) == value
                for role, value in values.items()
            ]
            rows = scan([path]).with_row_index("row").filter(*match).head(limit)
            for row in rows.select("row").collect().to_series():
                result.append(f"row {row + 1:,} of {self.files[number]}")
            if len(result) >= limit:
                break
        return " and ".join(result[:limit])


def _is_plain(role: str, column: pl.Series) -> bool:
    """Tell whether a column holds nothing that could be refused."""
    if column.null_count():
        return False
    if column.dtype.is_integer() and role != "rank":
        return True
    if role in ("user", "item"):
        return column.dtype in (pl.String, pl.Categorical, pl.Enum)
    if column.dtype.is_float() and role != "rank":
        return bool((np.abs(column.to_numpy()) <= LARGEST).all())
    if column.dtype == pl.Int64 and role == "rank":
        return are_ranks(column)
    return column.dtype == pl.Boolean and role == "rating"


def scan(files: Sequence[str]) -> pl.LazyFrame:
    """Look at Parquet files as one table; names are taken as they are."""
    return pl.scan_parquet(
        [local_path(file) for file in files], glob=False, hive_partitioning=False
    )


def find_files(what: str, source: object) -> tuple[str, ...]:
    """Return the Parquet files meant by a file, a folder, a pattern, or several of these."""
    sources = source if isinstance(source, list | tuple) else [source]
    files: list[str] = []
    for part in sources:
        if not isinstance(part, str | os.PathLike):
            raise SettingError(
                f"{what}: expected Parquet files, folders or patterns, got {type(part).__name__}; "
                f"evaluate() takes tables"
            )
        places = find_parquet(part if isinstance(part, str) else Path(part))
        files += (str(path.resolve()) for path in places if not isinstance(path, RemoteFile))
    if len(set(files)) < len(files):
        raise DataError(f"{what}: the same file is meant twice")
    return tuple(files)


def named(runs: object) -> dict[str, object]:
    """Name all runs: by their keys, or after their files and folders."""
    if isinstance(runs, Mapping):
        result = {str(name): source for name, source in runs.items()}
    else:
        result = {}
        for source in runs if isinstance(runs, list | tuple) else [runs]:
            name = source_name(source)
            if name in result:
                raise SettingError(f"two runs are named {name!r}; name them in a mapping")
            result[name] = source
    if not result:
        raise SettingError("no runs are given")
    return result


def source_name(source: object) -> str:
    """Return the name a system gets from its file or folder; of a pattern, the fixed part."""
    if not isinstance(source, str | os.PathLike):
        raise SettingError(f"expected a file, a folder or a pattern, got {type(source).__name__}")
    fixed = Path(_without_host(source) if is_address(source) else source)
    while glob.has_magic(fixed.name) and fixed.parent != fixed:
        fixed = fixed.parent
    return system_name(fixed) or "run"


def _without_host(address: str) -> str:
    """Return the path of an address, without what may be a signature."""
    plain = shown_address(address).removesuffix("?…")
    return plain.partition("://")[2]


def judgments_source(
    source: object, names: Mapping[str, str | int], reading: ParquetReading
) -> ParquetSource:
    """Look at the files of the judgments."""
    files = find_files("judgments", source)
    table = _table(files[0])
    user = table.need("user", tables.USER, names.get("user"))
    item = table.need("item", tables.ITEM, names.get("item"))
    sample = replace(table, frame=scan(files[:1]).head(_SAMPLE).collect())
    rating, time = names.get("rating"), table.pick("time", tables.TIME, None, {user, item})
    used = {user, item, time}
    kind = find_event_column(sample, None, used | stated_columns(sample, rating=rating))
    if kind is not None and sample.frame[kind].n_unique() > 1:
        raise DataError(
            f"{table.source}: an event log in which a column says the kind of each event; choose "
            "kinds with read_ratings(…, events=…), and write the ratings to Parquet first"
        )
    rated, _ = find_rating_column(sample, rating, used | {kind}, reading.feedback)
    columns = {"user": user, "item": item, "rating": rated}
    return _source("judgments", False, files, columns, reading)


def run_source(
    name: str, run: object, names: Mapping[str, str | int], reading: ParquetReading
) -> ParquetSource:
    """Look at the files of a system's lists."""
    files = find_files(name, run)
    table = _table(files[0])
    rank = table.pick("rank", tables.RANK, names.get("rank"))
    score = table.pick("score", tables.SCORE, names.get("score"))
    by = reading.by
    if by is None:
        by = "score" if rank is None else "rank"
    elif {"rank": rank, "score": score}[choose("by", by, ("rank", "score"))] is None:
        raise DataError(
            f"{name}: there is no {by} column for ", Spelling(f"by={by!r}", f"--by {by}")
        )
    columns = {
        "user": table.need("user", tables.USER, names.get("user")),
        "item": table.need("item", tables.ITEM, names.get("item")),
        by: rank if by == "rank" else score,
    }
    return _source(name, True, files, columns, reading)


def _table(path: str) -> tables.DataTable:
    """Return a file's columns, without rows."""
    return tables.DataTable(pl.DataFrame(schema=_schema(path)), Path(path).name, format="parquet")


def _schema(path: str) -> dict[str, Any]:
    try:
        return pl.read_parquet_schema(local_path(path))
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise DataError(f"{path}: not a readable Parquet file ({problem})") from None


def _source(
    name: str,
    is_run: bool,
    files: tuple[str, ...],
    columns: Mapping[str, str | None],
    reading: ParquetReading,
) -> ParquetSource:
    roles = {role: column for role, column in columns.items() if column is not None}
    schemas = [_schema(path) for path in files]
    for path, schema in zip(files, schemas, strict=True):
        missing = [column for column in roles.values() if column not in schema]
        if missing:
            raise DataError(f"{path}: no column {missing[0]!r}, which {files[0]} has")
    nested = isinstance(schemas[0][roles["item"]], pl.List | pl.Array)
    if nested and "rank" in roles:
        del roles["rank"]
    if nested and not isinstance(schemas[0].get(roles.get("score", "")), pl.List | pl.Array):
        roles.pop("score", None)
    kinds = {role: _kind(files, schemas, roles[role]) for role in ("user", "item")}
    rows = tuple(int(scan([path]).select(pl.len()).collect().item()) for path in files)
    if not sum(rows):
        raise DataError(f"{name}: there are no rows")
    source = ParquetSource(name, is_run, files, rows, roles, kinds, reading)
    first = next(number for number, count in enumerate(rows) if count)
    sample = source.read(first, 0, _SAMPLE)
    source.refuse_bad(sample, first, 0)
    width = max(sample.estimated_size() / sample.height, 8.0)
    row_bytes = tuple(largest_row_group(path, roles.values()) for path in files)
    return replace(source, width=width, row_bytes=row_bytes)


def _kind(files: Sequence[str], schemas: Sequence[Mapping[str, Any]], column: str) -> str:
    """Tell whether a column of ids holds integers or text, as `id_column` takes them."""
    kinds: dict[str, str] = {}
    for path, schema in zip(files, schemas, strict=True):
        dtype = schema[column]
        if isinstance(dtype, pl.List | pl.Array):
            dtype = dtype.inner
        kinds.setdefault("integer" if dtype.is_integer() or dtype.is_float() else "text", path)
        if dtype == pl.UInt64:
            largest = scan([path]).select(pl.col(column).max()).collect().item()
            if largest is not None and largest > np.iinfo(np.int64).max:
                raise DataError(
                    f"{path}: ids in column {column!r} go up to {largest}, beyond 2**63; write "
                    f"them as text"
                )
    if len(kinds) > 1:
        raise DataError(
            f"column {column!r} holds integers in {kinds['integer']} and text in "
            f"{kinds['text']}; make it one of them in all files"
        )
    return next(iter(kinds))


def common_kind(sources: Iterable[ParquetSource], role: str) -> str:
    """Return the kind in which ids are compared: text only where some id is no integer."""
    all_sources = list(sources)
    texts = [source for source in all_sources if source.kinds[role] == "text"]
    if not texts or len(texts) == len(all_sources):
        return all_sources[0].kinds[role]
    for source in texts:
        for values in source.values(role):
            ids = values.explode() if isinstance(values.dtype, pl.List | pl.Array) else values
            if not ids.cast(pl.String).str.contains(CANONICAL_INTEGER).all():
                return "text"
    return "integer"


def in_kind(ids: Ids, kind: str) -> tuple[Ids, Any]:
    """Return ids in another kind, and the table from their numbers to the new ones, if any."""
    if ids.kind == kind:
        return ids, None
    return Ids.number(ids.values.cast(KIND[kind]))
