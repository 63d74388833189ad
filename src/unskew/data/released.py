"""Tables of results that authors released: where they come from and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from unskew.checks import choose
from unskew.engine.folders import local_path
from unskew.errors import DataError
from unskew.report.text import counted

PUBLISHED = "published"
"""The folder of the data folder in which such tables lie."""

KEYS = 2
"""How many columns in front say what a row is of; all others are values."""


@dataclass(frozen=True)
class ReleasedTable:
    """A table of results that authors released."""

    file: str
    """Its name in the data folder."""
    rows: int
    """How many rows with values it has: what is longer or shorter is another table."""
    source: str
    """Where to get it."""
    authors_file: str = ""
    """The authors' own name of the file, which is recognised too."""

    @property
    def origin(self) -> str:
        """Where to get it, with the authors' name of the file."""
        return f"{self.source}, file {self.authors_file}" if self.authors_file else self.source


_EVAL_METRICS = "GitHub repository dvalcarce/evalMetrics, folder data"
_NAMES = {"ml-1m": "ml-1M", "librarything": "libraryThing", "beeradvocate": "beerAdvocate"}


def _valcarce2018(name: str, authors: str) -> list[ReleasedTable]:
    # 21 systems at 36 shares of items, and the ordered pairs of the systems. At 12 of the shares
    # the table of BeerAdvocate has no values.
    shares = 24 if name == "beeradvocate" else 36
    tables = {
        "results": (21 * shares, f"results-all-{authors}-pop.csv"),
        "pvalues": (21 * 20, f"discriminative-{authors}.csv"),
    }
    return [
        ReleasedTable(f"valcarce2018_{name}_{what}.csv", rows, _EVAL_METRICS, file)
        for what, (rows, file) in tables.items()
    ]


_TABLES = [
    *(table for name, authors in _NAMES.items() for table in _valcarce2018(name, authors)),
    ReleasedTable(
        "mena2021_ml-1m_at10.csv",
        22,
        "GitHub repository elikary/tois2021: the values at 10, averaged over its five folds",
    ),
]
TABLES: dict[str, ReleasedTable] = {table.file: table for table in _TABLES}


def named(name: str) -> ReleasedTable | None:
    """Return the table of a file's name, ours or the authors'; None if it is none."""
    names = {table.authors_file: table for table in _TABLES if table.authors_file} | TABLES
    return names.get(Path(name).name)


def describe(table: ReleasedTable, home: Path) -> dict[str, str | int | None]:
    """Return what a table is and where it comes from, and where it lies, if it is there.

    Raises
    ------
    DataError
        If what lies there is not the authors' table.
    """
    path = find(table.file, home)
    if path is not None:
        read(table.file, home)
    return {
        "file": table.file,
        "rows": table.rows,
        "source": table.source,
        "authors_file": table.authors_file,
        "path": None if path is None else str(path),
    }


def find(file: str, home: Path) -> Path | None:
    """Return where a table lies in the data folder, under our name or the authors'."""
    table = TABLES.get(file)
    names = [file, *([table.authors_file] if table and table.authors_file else [])]
    for folder in (home / PUBLISHED, home):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return None


def read(file: str, home: Path) -> pl.DataFrame:
    """Read a table of released results; rows without any value are left out.

    Raises
    ------
    DataError
        If it is not there, or is not the authors' table.
    """
    choose("table of released results", file, TABLES)
    table = TABLES[file]
    path = find(file, home)
    if path is None:
        named = f" (or {table.authors_file})" if table.authors_file else ""
        raise DataError(f"needs {PUBLISHED}/{file}{named} in the data folder: {table.source}")
    frame = pl.read_csv(local_path(path), infer_schema_length=None)
    frame = frame.filter(~pl.all_horizontal(pl.col(frame.columns[KEYS:]).is_null()))
    _check_rows(path, frame, table)
    return frame


def _check_rows(path: Path, frame: pl.DataFrame, table: ReleasedTable) -> None:
    if frame.height != table.rows:
        raise DataError(
            f"{path.name} has {counted(frame.height, 'row')} with values, but the authors' table "
            f"has {table.rows:,}: download it again ({table.source})"
        )
