"""Files of well-known data sets that are no tables of columns: recognised and read as ratings."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.engine.files import InputFile, reading
from unskew.errors import DataError
from unskew.report.text import counted

UNRATED = 99
"""What Jester writes for a joke that a user did not rate."""
_MOVIE = re.compile(r"\d+:\s*")
_LEAST_WIDTH = 20
"""A matrix with fewer columns may be something else."""


def check_rows(
    file: InputFile | Path,
    typed: pl.DataFrame,
    raw: pl.DataFrame,
    expected: str,
    lines: pl.Series | None = None,
) -> None:
    """Refuse rows with something missing or unreadable in them.

    Parameters
    ----------
    file
        The file.
    typed
        Rows as they were read, with nothing where that failed.
    raw
        The same rows as they are in the file.
    expected
        What rows should hold.
    lines
        The line of each row in the file, where that is not the number of the row.
    """
    bad = typed.select(pl.any_horizontal(pl.all().is_null())).to_series()
    if bad.any():
        row = int(bad.arg_true()[0])
        position = f"row {row + 1}" if lines is None else f"line {lines[row]:,}"
        raise DataError(
            f"{file}: {counted(int(bad.sum()), 'row')} cannot be read, the first is {position}: "
            f"{raw.row(row)}; expected {expected}"
        )


# Netflix Prize


def is_netflix(file: InputFile, lines: Sequence[str]) -> bool:
    """Tell whether lines `movie:` have lines `user,rating,date` below them; refuse other kinds."""
    if not _MOVIE.fullmatch(lines[0]):
        return False
    rows = [line for line in lines if not _MOVIE.fullmatch(line)]
    if not rows or re.match(r"\s*\d+\s*,\s*\d+\s*,", rows[0]):
        return True
    raise DataError(
        f"{file}: lines such as {lines[0]!r} stand for movies, as in files of the Netflix Prize, "
        f"but {rows[0][:60]!r} is no rating (expected 'user,rating,date'): probe.txt and "
        "qualifying.txt hold none; give mv_….txt or combined_data_….txt"
    )


def read_netflix(file: InputFile) -> pl.DataFrame:
    """Read a line `movie:`, then lines `user,rating,date`, as user, item, rating and time."""
    # polars counts the columns in the first line, and a line `movie:` has one: give it a header.
    names = ("user", "rating", "time")
    with reading(file), file.open() as opened:
        text = ",".join(names).encode() + b"\n" + opened.read().removeprefix(b"\xef\xbb\xbf")
        lines = pl.read_csv(text, schema=dict.fromkeys(names, pl.String))
    alone = pl.col("rating").is_null() & pl.col("time").is_null()
    head = pl.col("user").str.strip_chars().str.ends_with(":") & alone
    movie = pl.when(head).then(pl.col("user").str.strip_chars().str.strip_suffix(":"))
    frame = lines.with_columns(movie.forward_fill().alias("item"), head.alias("head"))
    frame = frame.with_row_index("line", 1).filter(~pl.col("head").fill_null(False))
    frame = frame.drop("head")
    blank = pl.all_horizontal(pl.col(name).is_null() for name in names)
    last = frame.select((~blank).arg_true().max()).item()
    frame = frame.head(0 if last is None else last + 1)
    if not frame.height:
        raise DataError(f"{file}: there are no rows")
    typed = frame.select(
        pl.col("user").cast(pl.Int64, strict=False),
        pl.col("item").cast(pl.Int64, strict=False),
        pl.col("rating").cast(pl.Int8, strict=False),
        pl.when(pl.col("time").str.contains(r"^\d{4}-\d{2}-\d{2}$"))
        .then("time")
        .str.to_date("%Y-%m-%d", strict=False),
    )
    expected = "'movie:' lines, and lines 'user,rating,date' under them"
    check_rows(file, typed, frame.select(names), expected, frame["line"])
    return typed


# Jester


def jester_separator(lines: Sequence[str]) -> str | None:
    """Return the separator of a matrix of Jester, None for any other file.

    A row per user: the number of ratings, then a rating from -10 to 10 per joke, 99 without one.
    """
    for mark in (",", ";", "\t", None):
        rows = [line.strip().split(mark) for line in lines]
        likely = sum(len(row) > _LEAST_WIDTH and _is_jester(row, mark) for row in rows)
        if 2 * likely > len(rows):  # a damaged row is named when the matrix is read
            return mark or " "
    return None


def _is_jester(row: Sequence[str], mark: str | None) -> bool:
    try:
        first, *cells = (float(cell.replace(",", ".") if mark == ";" else cell) for cell in row)
    except ValueError:
        return False
    rated = [cell for cell in cells if cell != UNRATED]
    return first.is_integer() and first >= 0 and all(-10 <= cell <= 10 for cell in rated)


def read_jester(file: InputFile, separator: str) -> pl.DataFrame:
    """Read a matrix of Jester as user (the number of the row), item and rating."""
    dense = jester_matrix(file, separator)
    return matrix_rows(dense, dense != UNRATED)


def jester_matrix(file: InputFile, separator: str) -> F64:
    """Read the ratings of a matrix of Jester, without the first column, which counts them."""
    dense = read_matrix(file, separator)
    ratings = dense[:, 1:]
    odd = ~((np.abs(ratings) <= 10) | (ratings == UNRATED))
    if odd.any():
        row, column = (int(number[0]) for number in np.nonzero(odd))
        raise DataError(
            f"{file}: ratings of Jester lie between -10 and 10, 99 means none, but row {row + 1} "
            f"has {ratings[row, column]:g} in column {column + 2}"
        )
    wrong = dense[:, 0] != (ratings != UNRATED).sum(axis=1)
    if wrong.any():
        raise DataError(
            f"{file}: {counted(int(wrong.sum()), 'row does', 'rows do')} not start with the "
            f"number of their ratings, the first is row {int(wrong.argmax()) + 1}; save the "
            "Excel file as CSV as it is"
        )
    return ratings


def read_matrix(file: InputFile, separator: str | None) -> F64:
    """Read a matrix of numbers; with semicolons between them, commas are decimal points."""
    with reading(file), file.open() as opened:
        text = opened.read().removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise DataError(f"{file}: the file is empty")
    if not text.isascii():  # numpy takes Latin-1, where some bytes are blanks
        raise DataError(f"{file}: not a matrix of numbers: a byte is no ASCII character")
    if separator == ";":
        text = text.replace(b",", b".")
    mark = separator if separator and separator != " " else None
    try:
        dense: F64 = np.loadtxt(io.BytesIO(text), delimiter=mark, ndmin=2)
    except ValueError as problem:
        raise DataError(f"{file}: not a matrix of numbers: {problem}") from None
    return dense


def matrix_rows(dense: F64, rated: Mask) -> pl.DataFrame:
    """Return a row per rating of a matrix; users and items are numbered from 1."""
    user, item = np.nonzero(rated)
    return pl.DataFrame({"user": user + 1, "item": item + 1, "rating": dense[rated]})
