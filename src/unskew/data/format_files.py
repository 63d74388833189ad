"""How readers of named data sets read their files; what is wrong with one names it and the row."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import polars as pl

from unskew.data.text_files import check_widths
from unskew.engine.files import InputFile, reading
from unskew.errors import DataError
from unskew.report.text import counted

Files = Sequence[Path]


def csv_columns(
    path: Path, columns: Mapping[str, str], *, text: Sequence[str] = ()
) -> pl.DataFrame:
    """Read some columns of a file with a header line, under new names; some of them as text."""
    frame = csv_table(
        path,
        columns=list(columns.values()),
        infer_schema_length=10_000,
        schema_overrides={columns[name]: pl.String for name in text},
    )
    return frame.select(pl.col(old).alias(new) for new, old in columns.items())


def csv_table(path: Path, **options: Any) -> pl.DataFrame:
    """Read a file with a header line; refuse rows of another width than that line."""
    # polars does not look at cells beyond the columns that it is asked for, nor at the names.
    with reading(path):
        file = InputFile.of(path)
        with file.open() as opened:
            opened.readline().decode()  # fails where a name is not UTF-8
        check_widths(file, ",")
    return read_text_table(path, **options)


def text_columns(
    path: Path, names: Sequence[str], separator: str, *, quote: bool = True
) -> pl.DataFrame:
    """Read a file without a header line, all columns as text."""
    with reading(path):
        check_widths(InputFile.of(path), separator, quote=quote)
    return read_text_table(
        path,
        has_header=False,
        schema=dict.fromkeys(names, pl.String),
        separator=separator,
        quote_char='"' if quote else None,
    )


def read_text_table(path: Path, text: bytes | None = None, **options: Any) -> pl.DataFrame:
    """Read a file, or its text as it was changed."""
    with reading(path):
        source = InputFile.of(path).whole() if text is None else text
        frame = pl.read_csv(source, glob=False, **options)
    if not frame.height:
        raise DataError(f"{path}: there are no rows")
    return frame


def check_rows(path: Path, typed: pl.DataFrame, raw: pl.DataFrame, expected: str) -> None:
    """Refuse rows with something missing or unreadable in them."""
    bad = typed.select(pl.any_horizontal(pl.all().is_null())).to_series()
    if bad.any():
        row = int(bad.arg_true()[0])
        raise DataError(
            f"{path}: {counted(int(bad.sum()), 'row')} cannot be read, the first is row "
            f"{row + 1}: {raw.row(row)}; expected {expected}"
        )


@contextmanager
def text_of(path: Path) -> Iterator[IO[str]]:
    """Open a text file, packed or not; what fails while it is read names the file."""
    with reading(path), InputFile.of(path).open() as file:
        yield io.TextIOWrapper(file, encoding="utf-8", errors="replace")
