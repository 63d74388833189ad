"""Folders that may come from strangers: nothing outside of them is read or written.

The folder itself may be reached through a link: whoever names it knows it. Links inside lead where
its author wanted.
"""

from __future__ import annotations

import os
from pathlib import Path

from unskew.errors import DataError


def check_links(home: str | os.PathLike[str]) -> None:
    """Refuse a folder that holds a link, at any level; one that is not there holds none."""
    folders = [os.fspath(home)]
    while folders:
        try:
            with os.scandir(folders.pop()) as inside:
                for entry in inside:
                    if entry.is_symlink() or _is_junction(entry.path):
                        raise _link_error(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):  # removed by another process; a file
            continue
        except PermissionError as problem:
            raise DataError(
                f"{problem.filename}: permission to look into this folder is missing"
            ) from None


def inner_path(home: str | os.PathLike[str], *names: str) -> Path:
    """Return the path of something in a folder; refuse what a link or `..` leads out of it.

    Parameters
    ----------
    home
        The folder.
    names
        Where it is inside, part by part; a part may hold several names, as cards write them.
    """
    path = Path(home)
    for name in Path(*names).parts:
        if name == os.pardir or Path(name).is_absolute():
            raise DataError(f"{path}: {os.fspath(Path(*names))!r} is not inside this folder")
        path = path / name
        if path.is_symlink() or _is_junction(path):
            raise _link_error(path)
    return path


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that polars takes for no address: it would open `file:/x` as /x."""
    return Path(path).absolute()


def _is_junction(path: str | os.PathLike[str]) -> bool:
    """Tell whether this is a folder of Windows that stands for another one."""
    return os.name == "nt" and bool(getattr(os.path, "isjunction", lambda _: False)(path))


def _link_error(path: str | os.PathLike[str]) -> DataError:
    return DataError(
        f"{os.fspath(path)}: is a link, which may lead out of the folder that it is in; put the "
        f"file or folder itself in its place, or remove it"
    )
