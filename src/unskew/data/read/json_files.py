"""JSON lines, or one JSON array of objects, as a table: a row per object, a column per field."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import polars as pl

from unskew.engine.files import InputFile
from unskew.errors import DataError
from unskew.report.text import counted

_ENDINGS = (".json", ".jsonl", ".ndjson")
_BLOCK = 50_000
"""Objects that are held at once."""
_LONG = 500
"""Characters: a field with a longer text is no id, no name and no time."""
_EXACT = 2**53
"""Whole numbers up to here are exact as floats."""
_INTEGER = 10**18
"""Longer numbers stay text, as in other files."""

Record = dict[str, Any]


def is_json(file: InputFile, lines: Sequence[str]) -> bool:
    """Tell a JSON file by its name, or by its first characters."""
    if file.path.name.removesuffix(".gz").endswith(_ENDINGS):
        return True
    return bool(re.match(r"\s*(\{|\[\s*(\{|$))", lines[0]))


def read_json(file: InputFile) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read objects; return their fields as columns, and notes on what was left out.

    Nested fields and long texts are left out. A field of numbers and text becomes text.
    """
    fields = _Fields(file)
    records = _records(file)
    while block := list(islice(records, _BLOCK)):
        fields.add(block)
    if not fields.height:
        raise DataError(f"{file}: there are no rows")
    if not fields.columns:
        raise DataError(
            f"{file}: its objects have no field of a number or a text; write one object per row, "
            "with fields such as user, item and rating (in pandas: "
            "to_json(orient='records', lines=True))"
        )
    return pl.DataFrame(fields.series()), fields.notes()


# Objects


def _records(file: InputFile) -> Iterator[tuple[int, Record]]:
    """Yield every object with the number of its line; an array is held whole."""
    with file.open() as opened:
        start = opened.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
    yield from _in_array(file) if start.startswith(b"[") else _in_lines(file)


def _in_lines(file: InputFile) -> Iterator[tuple[int, Record]]:
    parse: Callable[[str], Any] | None = None
    with file.open() as opened:
        for number, raw in enumerate(opened, 1):
            line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if not line.strip():
                continue
            try:
                text = line.decode().strip()
                parse = parse or _notation(text)
                record = parse(text)
            except UnicodeDecodeError:
                raise DataError(f"{file}: line {number:,} is not UTF-8 text") from None
            except (ValueError, SyntaxError, RecursionError, MemoryError) as problem:
                start = line[:80].decode(errors="replace").strip()
                raise _bad_line(file, number, _reason(problem), start) from None
            if not isinstance(record, dict):
                raise _bad_line(file, number, "it is no object in braces", text[:80])
            yield number, record


def _in_array(file: InputFile) -> Iterator[tuple[int, Record]]:
    with file.open() as opened:
        content = opened.read()
    try:
        records = _strict(content.decode("utf-8-sig"))
    except json.JSONDecodeError as problem:
        raise DataError(
            f"{file}: line {problem.lineno:,} of this JSON array cannot be read "
            f"({problem.msg}); is the file cut short?"
        ) from None
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise DataError(f"{file}: line {line:,} is not UTF-8 text") from None
    except (ValueError, RecursionError, MemoryError) as problem:
        raise DataError(f"{file}: this JSON array cannot be read ({_reason(problem)})") from None
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise DataError(
                f"{file}: element {number:,} of this JSON array is no object in braces: "
                f"{str(record)[:80]!r}"
            )
        yield number, record


def _notation(text: str) -> Callable[[str], Any]:
    """Return what reads a line: some data sets are written as Python prints dictionaries."""
    try:
        _strict(text)
    except json.JSONDecodeError:
        if re.match(r"\{\s*u?'", text):
            return ast.literal_eval  # only literals are read
    return _strict


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the field {twice!r} occurs twice")
    return record


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique)


def _strict(text: str) -> Any:
    """Read JSON as the standard has it: no NaN, no name twice in one object."""
    return _DECODER.decode(text)


def _reason(problem: BaseException) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg.removesuffix(' at')}, character {problem.pos + 1}"
    if isinstance(problem, RecursionError | MemoryError):
        return "it is nested too deeply"
    return str(problem).partition("\n")[0]


def _bad_line(file: InputFile, number: int, reason: str, text: str) -> DataError:
    return DataError(
        f"{file}: line {number:,} cannot be read as a JSON object ({reason}): {text!r}; expected "
        "one whole object per line"
    )


# Columns


class _Fields:
    """Columns as they grow, block by block: as small as their values allow."""

    def __init__(self, file: InputFile) -> None:
        self.file = file
        self.height = 0
        self.columns: dict[str, list[pl.Series]] = {}
        self.nested: dict[str, None] = {}
        self.long: dict[str, None] = {}

    def add(self, block: list[tuple[int, Record]]) -> None:
        """Add objects."""
        names = dict.fromkeys(name for _, record in block for name in record)
        size = len(block)
        for name in names:
            if name in self.nested or name in self.long:
                continue
            values = [record.get(name) for _, record in block]
            if not all(value is None or isinstance(value, _SCALAR) for value in values):
                self._leave_out(name, self.nested)
                continue
            column = self._column(name, values, block)
            if column.dtype == pl.String and (column.str.len_chars().max() or 0) > _LONG:  # type: ignore[operator]
                self._leave_out(name, self.long)
                continue
            if name not in self.columns:
                self.columns[name] = [_missing(name, self.height)] if self.height else []
            self.columns[name].append(column)
        self.height += size
        for name, parts in self.columns.items():
            if name not in names:
                parts.append(_missing(name, size))

    def _leave_out(self, name: str, reason: dict[str, None]) -> None:
        reason[name] = None
        self.columns.pop(name, None)

    def _column(self, name: str, values: list[Any], block: list[tuple[int, Record]]) -> pl.Series:
        kinds = {type(value) for value in values} - {type(None)}
        try:
            if kinds <= {int} and all(v is None or -_INTEGER < v < _INTEGER for v in values):
                return pl.Series(name, values, pl.Int64 if kinds else pl.Null)
            if kinds <= {int, float} and all(
                type(v) is not int or -_EXACT <= v <= _EXACT for v in values
            ):
                column = pl.Series(name, values, pl.Float64, strict=False)
                if not bool(column.is_finite().all()):
                    row = int((~column.is_finite()).fill_null(False).arg_true()[0])
                    raise DataError(
                        f"{self.file}: line {block[row][0]:,}: field {name!r} has a number beyond "
                        "all bounds"
                    )
                return column
            if kinds == {bool}:
                return pl.Series(name, values, pl.Boolean)
            return pl.Series(name, [_as_text(value) for value in values], pl.String)
        except UnicodeEncodeError:
            row = next((row for row, value in enumerate(values) if not _is_unicode(value)), 0)
            raise DataError(
                f"{self.file}: line {block[row][0]:,}: field {name!r} has half a character "
                "(a surrogate without its other half)"
            ) from None

    def series(self) -> Iterator[pl.Series]:
        """Yield every column whole."""
        for name, parts in self.columns.items():
            kinds = {part.dtype for part in parts} - {pl.Null}
            if kinds == {pl.Int64, pl.Float64} and all(
                part.dtype != pl.Int64 or bool(part.is_between(-_EXACT, _EXACT).all())
                for part in parts
            ):
                kinds = {pl.Float64()}
            if len(kinds) <= 1:
                kind = kinds.pop() if kinds else pl.Null
                yield pl.concat([part.cast(kind) for part in parts])
            else:
                texts = (_as_text(value) for part in parts for value in part.to_list())
                yield pl.Series(name, list(texts), pl.String)

    def notes(self) -> tuple[str, ...]:
        """Say which fields were left out."""
        source = self.file.path.name
        reasons = (("nested field", self.nested), ("field of long text", self.long))
        return tuple(
            f"{source}: {counted(len(names), what, what.replace('field', 'fields'))} left out: "
            f"{', '.join(map(repr, names))}"
            for what, names in reasons
            if names
        )


_SCALAR = (str, int, float, bool)


def _missing(name: str, size: int) -> pl.Series:
    return pl.Series(name, [None] * size, pl.Null)


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _is_unicode(value: Any) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True
