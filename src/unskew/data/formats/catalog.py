"""Named data sets: where they come from, what is in them, and how their files are read."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import polars as pl

from unskew.checks import checked, choose
from unskew.data.dataset import ALL, POOLED, RANDOM, Dataset, TrueJudgments
from unskew.data.formats import entries
from unskew.data.formats.entries import CatalogEntry, keywords
from unskew.data.formats.parts import Parts
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.data.read.tables import read_table
from unskew.engine.files import local_path, temporary_folder
from unskew.engine.progress import Progress
from unskew.errors import DataError, SettingError, Spelling, UnknownName, file_name, unknown_name
from unskew.report.text import counted

if TYPE_CHECKING:
    from unskew.data.formats import download


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


TABLES: dict[str, ReleasedTable] = {
    file: ReleasedTable(file, **fields)
    for file, fields in tomllib.loads(
        Path(__file__).with_name("released.toml").read_text(encoding="utf-8")
    ).items()
}


def released_table(name: str) -> ReleasedTable | None:
    """Return the table of a file's name, ours or the authors'; None if it is none."""
    names = {table.authors_file: table for table in TABLES.values() if table.authors_file} | TABLES
    return names.get(Path(name).name)


def describe_released(table: ReleasedTable, data_dir: Path) -> dict[str, str | int | None]:
    """Return what a table is and where it comes from, and where it lies, if it is there.

    Raises
    ------
    DataError
        If what lies there is not the authors' table.
    """
    path = find_released(table.file, data_dir)
    if path is not None:
        read_released(table.file, data_dir)
    return {
        "file": table.file,
        "rows": table.rows,
        "source": table.source,
        "authors_file": table.authors_file,
        "path": None if path is None else str(path),
    }


def find_released(file: str, data_dir: Path) -> Path | None:
    """Return where a table lies in the data folder, under our name or the authors'."""
    table = TABLES.get(file)
    names = [file, *([table.authors_file] if table and table.authors_file else [])]
    for folder in (data_dir / PUBLISHED, data_dir):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return None


def read_released(file: str, data_dir: Path) -> pl.DataFrame:
    """Read a table of released results; rows without any value are left out.

    Raises
    ------
    DataError
        If it is not there, or is not the authors' table.
    """
    choose("table of released results", file, TABLES)
    table = TABLES[file]
    path = find_released(file, data_dir)
    if path is None:
        released_table = f" (or {table.authors_file})" if table.authors_file else ""
        raise DataError(
            f"needs {PUBLISHED}/{file}{released_table} in the data folder: {table.source}"
        )
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


VARIABLE = "UNSKEW_DATA"
PART, OBSERVED = "part", "observed"
"""The column that tells observed from random ratings, where one table holds both."""
# Options that are about both parts, whichever files they come from.
RULES = ("overlap", "common")


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of named data sets: the one given, `$UNSKEW_DATA`, or the user's own."""
    if data_dir is not None:
        return Path(data_dir)
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "unskew"


def named(name: str) -> CatalogEntry:
    """Return the entry of a name, or raise `UnknownName` with the nearest."""
    entry = entries.DATASETS.get(name.lower())
    if entry is None:
        raise unknown_name("data set", name, entries.DATASETS)
    return entry


def read_name(text: str) -> tuple[CatalogEntry, dict[str, Any]] | None:
    """Read `NAME` or `NAME:OPTION=VALUE,OPTION=VALUE`; None for a file, or what is no name.

    Examples
    --------
    >>> from unskew.data.formats.catalog import read_name
    >>> entry, options = read_name("cm100k:observed=familiar")
    >>> entry.name, options
    ('cm100k', {'observed': 'familiar'})
    >>> read_name("ratings.csv") is None
    True
    """
    name, _, settings = text.partition(":")
    if name.lower() not in entries.DATASETS or Path(text).is_file():
        return None
    entry, options = named(name), {}
    for part in settings.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if equals and key and value:
            options[key] = {"true": True, "false": False}.get(value.lower(), value)
        elif part.strip() or settings:
            takes = ", ".join(entry.options) or "none"
            raise SettingError(
                f"{text}: write options of a data set as NAME:OPTION=VALUE, such as "
                f"cm100k:observed=familiar; {entry.name} takes: {takes}"
            )
    return entry, options


@checked
def load(
    source: object, *, data_dir: str | os.PathLike[str] | None = None, **options: Any
) -> Dataset:
    """Load a named data set from the data folder, or a file of your own.

    Nothing is downloaded here: `unskew data get NAME` does that.

    Parameters
    ----------
    source
        A name, such as `ml-1m` (`unskew data list` shows all), with options after a colon where
        there are some (`cm100k:observed=familiar`); or a file, a table or arrays as `read_ratings`
        takes them. A file that has the name of a data set is read as a file.
    data_dir
        For a name: the folder that holds data sets, each in a folder of its name, as it was
        unpacked, as its official archive, or as `ratings.parquet` (or `.csv`; `random.parquet` or
        `pooled.parquet` for true judgments, or a column `part` that tells `observed` from `random`
        ratings), further columns becoming tags. Default:
        `$UNSKEW_DATA`, or `~/.local/share/unskew`.
    options
        For a name, what the data set takes:

        - `overlap` (those with a random part): pairs in both parts are `keep` (default) or
          `drop-from-test`, the rule of castells2018; their number is in the notes.
        - `common` (`yahoo-r3`): True leaves out users without random ratings, as carraro2020.
        - `observed` (`cm100k`): `all` judgments with the tag `familiar`, or the `familiar` ones as
          the ratings and all as the random part.
        - `signal` (`kuairand-*`, `yambda-*`), `duplicates` (`kuai*`, `beeradvocate`).
        - `labels` and `seen` (`ml-32m-ext`): which answers judge, and whether movies that the
          participant had seen stay.
        - `share` (`ml-32m-ext`, `yambda-*`): the share of users whose ratings are read.

        For a file, the settings of `read_ratings`.

    Examples
    --------
    >>> from unskew.data.formats.catalog import load
    >>> print(load({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]}))
    ratings: 3 ratings of 2 items by 2 users
    """
    if isinstance(source, Dataset):
        return source
    meant = read_name(source) if isinstance(source, str) else None
    if meant is None:
        if isinstance(source, str) and not _is_path(source):
            raise unknown_name("data set", source.partition(":")[0], entries.DATASETS)
        return _own(source, data_dir, options)
    entry, more = meant
    for key in more.keys() & options.keys():
        raise SettingError(f"{source}: the option {key!r} is given twice; leave one out")
    options = {**more, **options}
    _check_options(entry.name, options, entry.options)
    parts = replace(_found(entry, data_folder(data_dir), options), kind=entry.kind)
    if options.get("common"):
        parts = parts.among_common_users()
    if "overlap" in entry.rules:
        parts = parts.settle_overlap(options.get("overlap", "keep"))
    return _dataset(entry, parts)


def _dataset(entry: CatalogEntry, parts: Parts) -> Dataset:
    """Return what was read, with what the catalogue knows of it."""
    judged, kind = (parts.random, entry.kind) if parts.pooled is None else (parts.pooled, POOLED)
    truth = None
    if judged is not None and (kind, entry.candidates) != (RANDOM, ALL):
        truth = TrueJudgments(
            judged, kind, entry.candidates, parts.true_liked, scale=parts.true_scale
        )
    return Dataset(
        entry.name,
        parts.ratings,
        parts.random,
        parts.scale or entry.scale,
        entry.liked if parts.liked is None else parts.liked,
        parts.features,
        parts.remarks(),
        truth,
    )


def _is_path(text: str) -> bool:
    if "/" in text or os.sep in text or Path(text).suffix:
        return True
    try:
        return Path(text).exists() and not Path(text).is_dir()  # pipes too
    except OSError:  # such as a name that is too long
        return True


def _own(source: object, data_dir: object, options: dict[str, Any]) -> Dataset:
    if data_dir is not None:
        raise SettingError(
            Spelling("data_dir", "--data-dir"),
            f" is for named data sets, but {source!r} is not one",
        )
    _check_options("a file", options, keywords(read_ratings))
    ratings = read_ratings(source, **options)
    name = "ratings"
    if isinstance(source, str | os.PathLike):
        name = file_name(source)
    return Dataset(name, ratings, notes=ratings.notes)


def _check_options(what: str, options: dict[str, Any], allowed: Sequence[str]) -> None:
    for option in options:
        if option not in allowed:
            takes = ", ".join(allowed) or "none"
            raise UnknownName(f"{what} does not take the option {option!r}. It takes: {takes}.")


def _found(entry: CatalogEntry, data_dir: Path, options: dict[str, Any]) -> Parts:
    """Read the data set from where it lies: unpacked, as a table, or as an archive."""
    of_reader = {key: value for key, value in options.items() if key not in RULES}
    places = _folders(entry, data_dir)
    for folder in places:
        files = _files(entry, folder)
        if all(files):
            with _naming(files, folder):
                return entry.reader(*files, **of_reader)
    for folder in places:
        table = find(folder, "ratings.parquet|ratings.csv", deep=False)
        if table:
            if of_reader:
                raise SettingError(
                    f"{entry.name}: the option {next(iter(of_reader))!r} needs the official "
                    f"files, but {folder} holds {table[0].name}"
                )
            return _tables(entry, table[0], folder)
    for archive in _archives(entry, data_dir):
        from unskew.data.formats.download import unpack

        with temporary_folder() as temporary:
            folder = temporary / "data"
            patterns = [word for group in entry.files for word in group.split("|")]
            unpack(archive, folder, patterns=patterns)
            with _naming([], archive):
                return entry.reader(*_complete(entry, folder, archive), **of_reader)
    raise _missing(entry, data_dir)


@contextmanager
def _naming(groups: Sequence[Sequence[Path]], source: Path) -> Iterator[None]:
    """Let an error that names no file of a data set say which file, or folder, it is about."""
    try:
        yield
    except DataError as problem:
        files = [path for group in groups for path in group]
        message = str(problem)
        if str(source) not in message and not any(path.name in message for path in files):
            problem.args = (f"{files[0] if len(files) == 1 else source}: ", *problem.args)
        raise


def _tables(entry: CatalogEntry, ratings: Path, folder: Path) -> Parts:
    """Read tables of ours: ratings, and what is random (or exhaustive) or pooled."""
    name = POOLED if entry.kind == POOLED else RANDOM
    true = find(folder, f"{name}.parquet|{name}.csv", deep=False)
    table, part = read_table(ratings).frame, None
    if true:
        part = _tagged(true[0], read_table(true[0]).frame)
    elif name == RANDOM and PART in table.columns and RANDOM in table[PART]:
        _check_parts(ratings, table[PART])
        is_random = pl.col(PART) == RANDOM
        part = _tagged(ratings, table.filter(is_random).drop(PART))
        table = table.filter(~is_random).drop(PART)
    random_and_pooled = (None, part) if name == POOLED else (part, None)
    return Parts(
        _tagged(ratings, table), random_and_pooled[0], pooled=random_and_pooled[1]
    ).over_same_ids()


def _check_parts(path: Path, parts: pl.Series) -> None:
    """Refuse a column of parts that says of some rows neither one nor the other."""
    unknown = parts.filter(~parts.is_in([OBSERVED, RANDOM]).fill_null(value=False))
    if unknown.len():
        raise DataError(
            f"{path.name}: the column {PART!r} must be {OBSERVED!r} or {RANDOM!r} in every row; "
            f"{counted(unknown.len(), 'row')} with other values, the first {unknown[0]!r}"
        )
    if OBSERVED not in parts:
        raise DataError(f"{path.name}: the column {PART!r} is {RANDOM!r} in every row")


def _tagged(path: Path, table: pl.DataFrame) -> Ratings:
    """Read a table of ours; what is no user, item, rating or time becomes a tag."""
    roles = ("user", "item", "rating", "time")
    tags = [name for name in table.columns if name not in roles]
    if not {"user", "item"} <= set(table.columns):
        tags = []  # somebody's own names: let read_ratings see what is what
    ratings = read_ratings(table, tags=tags)
    notes = tuple(note.replace("frame:", f"{path.name}:") for note in ratings.notes)
    return replace(ratings, notes=notes)


def find(folder: Path, pattern: str, *, deep: bool = True) -> list[Path]:
    """Return the files of the first alternative that is there; of several, those least deep."""
    for word in pattern.split("|"):
        hits = [
            path
            for path in (folder.rglob(word) if deep else folder.glob(word))
            if path.is_file() and not _hidden(path.relative_to(folder))
        ]
        if hits:
            depth = min(len(path.parts) for path in hits)
            return sorted(path for path in hits if len(path.parts) == depth)
    return []


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def _folders(entry: CatalogEntry, data_dir: Path) -> list[Path]:
    return [path for name in (entry.name, *entry.folders) if (path := data_dir / name).is_dir()]


def _files(entry: CatalogEntry, folder: Path) -> list[list[Path]]:
    return [find(folder, pattern) for pattern in entry.files]


def _complete(entry: CatalogEntry, folder: Path, source: object) -> list[list[Path]]:
    files = _files(entry, folder)
    for pattern, hits in zip(entry.files, files, strict=True):
        if not hits:
            names = pattern.replace("|", " or ")
            raise DataError(f"{source}: holds no {names}; is this {entry.title}?")
    return files


def _archives(entry: CatalogEntry, data_dir: Path) -> list[Path]:
    from unskew.data.formats import download

    names = [f"{entry.name}{ending}" for ending in download.ARCHIVES]
    if entry.archive is not None and download.is_archive(_basename(entry.archive)):
        names.insert(0, _basename(entry.archive))
    places = [data_dir, *_folders(entry, data_dir)]
    return [path for folder in places for name in names if (path := folder / name).is_file()]


def _basename(address: str) -> str:
    return PurePosixPath(urlsplit(address).path).name


def _missing(entry: CatalogEntry, data_dir: Path) -> DataError:
    names = " and ".join(pattern.replace("|", " or ") for pattern in entry.files)
    hint = f" (the folder exists, but has no {names})" if _folders(entry, data_dir) else ""
    return DataError(
        f"{entry.title} is not there: no data in {data_dir / entry.name}{hint}. "
        f"{_remedy(entry, data_dir)} Official page: {entry.address}. Licence: {entry.licence}. "
        f"Name another folder with data_dir=… or the variable {VARIABLE}."
    )


def _remedy(entry: CatalogEntry, data_dir: Path) -> str:
    if entry.archive is not None:
        return f"Get it with: unskew data get {entry.name}."
    return f"unskew does not download it: {entry.by_hand} ({data_dir / entry.name})."


def is_there(entry: CatalogEntry, data_dir: str | os.PathLike[str] | None = None) -> bool:
    """Tell whether a data set lies in the data folder, in any of its forms."""
    root = data_folder(data_dir)
    table = "ratings.parquet|ratings.csv"
    return bool(_archives(entry, root)) or any(
        all(_files(entry, folder)) or find(folder, table, deep=False)
        for folder in _folders(entry, root)
    )


def listing(data_dir: str | os.PathLike[str] | None = None) -> list[dict[str, str]]:
    """Return what has a name, and whether it is there: data sets, then released results."""
    root = data_folder(data_dir)
    sets = [
        {
            "name": entry.name,
            "kind": "data set",
            "users x items x ratings": entry.published,
            "true part": entry.truth,
            "licence": entry.licence,
            "from": entry.address,
            "there": "yes" if is_there(entry, data_dir) else "no",
        }
        for entry in entries.DATASETS.values()
    ]
    tables = [
        {
            "name": table.file,
            "kind": "released results",
            "users x items x ratings": f"{counted(table.rows, 'row')}",
            "true part": "",
            "licence": "",
            "from": table.origin,
            "there": "yes" if find_released(table.file, root) else "no",
        }
        for table in TABLES.values()
    ]
    return [*sets, *tables]


def receipt(folder: Path) -> download.Receipt | None:
    """Return what `get` checked when it made a folder; None where it did not make it."""
    from unskew.data.formats import download

    try:
        facts = json.loads((folder / download.RECEIPT).read_text(encoding="utf-8"))
        return download.Receipt(**{**facts, "checked": tuple(facts["checked"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def get(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, progress: Progress | None = None
) -> Path:
    """Download a named data set into the data folder, unless it is there; return its folder.

    The archive is checked, unpacked beside the final folder, and renamed when all its files are
    there: a download that is stopped leaves nothing behind. What was checked stands in
    `download.json` in that folder: a checksum where one is published, else no more than the size
    and the checksums inside the archive, and always the sha256 of what arrived. Whoever calls this
    accepts the licence, `DATASETS[name].licence`.

    Parameters
    ----------
    name
        A name of the catalogue.
    data_dir
        See `load`.
    progress
        Called with the bytes that are there and the bytes to come.
    """
    from unskew.data.formats import download

    entry, root = named(name), data_folder(data_dir)
    if is_there(entry, root):
        return next(iter(_folders(entry, root)), root)
    if entry.archive is None:
        raise DataError(
            f"{entry.title}: {_remedy(entry, root)} Official page: {entry.address}. Licence: "
            f"{entry.licence}."
        )
    folder = root / entry.name
    try:
        download.install(
            entry.archive,
            folder,
            lambda part: _complete(entry, part, entry.archive),
            size=entry.size,
            checksum=entry.checksum,
            progress=progress,
        )
    except OSError as problem:
        raise DataError(f"{folder}: cannot be written ({problem})") from None
    return folder
