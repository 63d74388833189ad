"""Copies of remote files in the folder of an evaluation: each is downloaded once.

Rows of a file are read several times, in chunks and by several workers, which all see the folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from unskew.addresses import is_address
from unskew.data.parquet_files import find_parquet
from unskew.engine.files import digest, replacing
from unskew.engine.remote import RemoteFile

FOLDER = "copies"
"""Where copies lie, in the output folder; they may be removed when the evaluation is finished."""


def with_copies(what: str, given: object, output: str | os.PathLike[str]) -> object:
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
    several = given if isinstance(given, list | tuple) else [given]
    if not any(is_address(one) for one in several):
        return given
    home = Path(output) / FOLDER / _plain(what)
    places: list[object] = []
    for number, one in enumerate(several):
        if is_address(one):
            files = [file for file in find_parquet(one) if isinstance(file, RemoteFile)]
            places += [_copy(file, home / str(number), at) for at, file in enumerate(files)]
        else:
            places.append(one)
    return places


def _copy(file: RemoteFile, home: Path, number: int) -> Path:
    """Copy a file, unless its copy is there; the time of a copy tells the version of the file."""
    path = home / f"{number:05d}-{_plain(file.name)}"
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
