"""How a file is named on the command line: FILE, NAME=FILE, FILE:user=uid,item=sku."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unskew.addresses import is_address
from unskew.checks import choose
from unskew.errors import SettingError

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
    for at in () if is_address(text) else (len(text), *marks):
        if exists(text[:at]):
            return text[:at], text[at + 1 :]
    roles = "|".join(ALL_COLUMNS)
    missing = re.search(rf":(?=\s*({roles})\s*=)", text)
    at = missing.start() if missing else len(text)
    return text[:at], text[at + 1 :]


def split_named_source(text: str) -> tuple[str, str, str]:
    """Split NAME=FILE:user=uid,item=0 into the name (which may be missing), the file, the rest."""
    path, rest = split_source(text)
    if is_address(text) or exists(path):
        return "", path, rest
    name, _, named = text.partition("=")
    inner, more = split_source(named)
    if named and (is_address(named) or exists(inner)):
        return name, inner, more
    name, equals, named = path.partition("=")
    return (name, named, rest) if equals else ("", path, rest)


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
    path, rest = split_source(str(text))
    shared = column_names(columns, tuple(dict.fromkeys((*roles, *others))))
    inside = {role: name for role, name in shared.items() if role in roles}
    return path, {**inside, **column_names(rest, roles, path)}
