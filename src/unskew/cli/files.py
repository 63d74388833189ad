"""How a file is named on the command line: FILE, NAME=FILE, FILE:user=uid,item=sku."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from unskew.checks import choose
from unskew.engine.remote import check_local
from unskew.errors import SettingError, is_address

RATING_COLUMNS = ("user", "item", "rating", "time", "event")
"""The columns of ratings that can be named."""
LIST_COLUMNS = ("user", "item", "rank", "score")
"""The columns of ranked lists that can be named."""
ALL_COLUMNS = (*RATING_COLUMNS, *LIST_COLUMNS[2:])
"""The columns of any file that can be named."""


def column_names(
    text: str | None,
    roles: Sequence[str] = ALL_COLUMNS,
    source: str = "--columns",
) -> dict[str, Any]:
    """Read user=uid,item=0 into names or numbers of columns.

    Parameters
    ----------
    text
        What was given.
    roles
        The columns that there are.
    source
        The option or file that it was given with, for errors.
    """
    names: dict[str, Any] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        what, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise SettingError(f"{source}: write user=NAME,item=NAME, got {part!r}")
        choose(f"column (of {source})", what, roles)
        names[what] = int(name) if name.isdecimal() else name
    return names


def split_source(text: str) -> tuple[str, str]:
    """Split FILE:user=uid,item=0 into the file and what stands behind the colon.

    A file that exists is taken as it is, colons and all; what is at an address is not looked at.
    """
    marks = [mark.start() for mark in re.finditer(r":(?=\s*\w+\s*=)", text)]
    for end in () if is_address(text) else (len(text), *marks):
        if exists(text[:end]):
            return text[:end], text[end + 1 :]
    roles = "|".join(ALL_COLUMNS)
    missing = re.search(rf":(?=\s*({roles})\s*=)", text)
    end = missing.start() if missing else len(text)
    return text[:end], text[end + 1 :]


def split_named_source(text: str) -> tuple[str, str, str]:
    """Split NAME=FILE:user=uid,item=0 into the name (which may be missing), the file, the rest."""
    path, columns = split_source(text)
    if is_address(text) or exists(path):
        return "", path, columns
    name, _, named = text.partition("=")
    inner, more = split_source(named)
    if named and (is_address(named) or exists(inner)):
        return name, inner, more
    name, equals, named = path.partition("=")
    return (name, named, columns) if equals else ("", path, columns)


def exists(text: str) -> bool:
    """Tell whether a file or folder is there."""
    try:
        return Path(text).exists()
    except OSError:  # such as a name that is too long
        return False


def file_columns(
    text: str | Path, columns: str | None, roles: Sequence[str], others: Sequence[str] = ()
) -> tuple[str, dict[str, Any]]:
    """Return a file and the names of its columns: those of --columns, and those behind FILE:.

    Parameters
    ----------
    text
        FILE, or FILE:item=sku.
    columns
        What --columns was given.
    roles
        The columns that this file has.
    others
        The columns that other files of the command have.
    """
    path, own_columns = split_source(str(text))
    shared = column_names(columns, tuple(dict.fromkeys((*roles, *others))))
    inside = {role: name for role, name in shared.items() if role in roles}
    return path, {**inside, **column_names(own_columns, roles, path)}


TABLES = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
    ".html": "html",
    ".parquet": "parquet",
}
"""The endings of files that hold a table."""
REPORTS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
"""The endings of files that hold a report."""
LISTS = {".parquet": "parquet", ".csv": "csv", ".trec": "trec"}
"""The endings of files that hold ranked lists."""
GATES = (".html", ".md", ".json", ".xml")
"""The endings of files that hold the verdict of a gate."""
GATE_FORMATS = ("text", "json", "markdown", "junit")
"""What the verdict of a gate is printed as."""
FIGURES = (".svg", ".png", ".pdf", ".html", ".json")
"""The endings of files that hold a figure."""
FORMATS = ("table", "csv", "json", "markdown", "latex", "html")
"""What a table is printed as."""
TEXT_FORMATS = ("text", *FORMATS[1:])
"""What a result is printed as that says in words what it is of."""
PLAIN_FORMATS = ("text", "json")
"""What is printed that is no table: for people, or for programs."""

STANDARD_OUTPUT = "-"


def check_file(path: Path | None, endings: Iterable[str], option: str = "--output") -> Path | None:
    """Return the path of a file to write if its ending is a format and no folder is there."""
    if path is None or str(path) == STANDARD_OUTPUT:
        return path
    check_local(option, path)
    allowed = ", ".join(endings)
    if path.suffix.lower() not in endings:
        raise SettingError(f"{option} {path}: the ending selects the format: use one of {allowed}")
    if path.is_dir():
        raise SettingError(f"{option} {path}: this is a folder: name a file that ends in {allowed}")
    return path


def file_check(
    endings: Iterable[str], option: str = "--output", no_stream: str = ""
) -> Callable[[Any], Any]:
    """Return the check of an option that names a file, or several.

    Parameters
    ----------
    endings
        The endings that select a format.
    option
        The name of the option.
    no_stream
        What to do instead of writing to standard output, where that is refused.
    """

    def check(value: Any) -> Any:
        for path in value if isinstance(value, list) else [value]:
            if no_stream and str(path) == STANDARD_OUTPUT:
                raise SettingError(f"{option} -: {no_stream}")
            check_file(path, endings, option)
        return value

    return check


def check_folder_name(path: Path | None) -> Path | None:
    """Check `--output` of a command that writes a folder."""
    if path is not None:
        check_local("--output", path)
    endings = {*TABLES, *REPORTS, *LISTS}
    if path is not None and path.suffix.lower() in endings and not path.is_dir():
        raise SettingError(
            f"--output {path}: this command writes a folder, not a file: leave out {path.suffix}"
        )
    return path


def check_figure_files(texts: list[str] | None) -> list[str] | None:
    """Check `--figure`: the endings of the files."""
    for text in texts or []:
        check_file(Path(figure_name_and_file(text)[1]), FIGURES, "--figure")
    return texts


def figure_name_and_file(text: str) -> tuple[str, str]:
    """Split NAME=FILE into the figure's name (which may be missing) and the file."""
    named = re.fullmatch(r"([\w-]+)=(.+)", text)
    return (named[1], named[2]) if named else ("", text)
