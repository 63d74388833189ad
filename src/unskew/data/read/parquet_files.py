"""Parquet files that together are one table: a folder, a pattern, on a disk or at an address."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from unskew.checks import check_path
from unskew.engine import remote
from unskew.engine.files import reading
from unskew.engine.remote import RemoteFile
from unskew.errors import DataError, address_name, is_address, shown_address

ENDINGS = (".parquet", ".pq")
"""By these a file in a folder is known as Parquet."""


def find_parquet(source: str | Path) -> Sequence[Path | RemoteFile]:
    """Return the files meant by a file, a folder or a pattern, in the order of their names.

    Of a folder that is every Parquet file inside, however deep; names that begin with `.` or `_`
    are left out. There is at least one, or `DataError`.
    """
    check_path("file", source)
    files: Sequence[Path | RemoteFile]
    if is_address(source):
        files = remote.find_files(source, _is_meant)
        label = shown_address(source)
    else:
        with reading(source):
            files = _on_disk(Path(source))
        label = str(source)
    if not files:
        raise DataError(
            f"{label}: no Parquet file here (names end in {' or '.join(ENDINGS)}); of other "
            f"formats give one file"
        )
    return files


def _on_disk(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if path.exists() and not path.is_dir():
        raise DataError(f"{path}: a pipe can be read only once; write it to a Parquet file first")
    if path.is_dir():
        inside = (p for p in path.rglob("*") if p.is_file())
        return sorted(p for p in inside if _is_meant(str(p.relative_to(path))))
    # Not Path.glob, which takes no absolute pattern.
    return sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207


def _is_meant(name: str) -> bool:
    """Tell Parquet files from temporary ones and from what writers leave beside the data."""
    path = PurePosixPath(name)
    is_private = any(part.startswith((".", "_")) for part in path.parts)
    return path.suffix in ENDINGS and not is_private


def is_several(source: str | Path) -> bool:
    """Tell whether a folder or a pattern is meant, and not one file."""
    check_path("file", source)
    if is_address(source):
        if remote.is_web(source):
            return False
        name = address_name(source)
        return remote.is_pattern(source) or source.endswith("/") or "." not in name
    path = Path(source)
    try:
        if path.exists():
            return path.is_dir()
        return glob.has_magic(str(source)) and bool(glob.glob(str(source), recursive=True))  # noqa: PTH207
    except OSError:  # such as a name that is too long
        return False
