"""Archives of strangers: listed, checked and unpacked in bounded memory, or refused as a whole."""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from unskew.engine.unpacking import (
    BLOCK,
    MAGIC,
    Unpacked,
    is_compressed,
    is_too_large,
    refusal,
)
from unskew.errors import DataError

# No archive of the catalogue unpacks to more than 12 GB; that of Netflix holds 17,770 files.
UNPACKED_LIMIT = 32 << 30
MOST_FILES = 20_000
_LONGEST = 255
"""Characters of a file's name, with its folders."""
_HEADERS = 1 << 20
"""Bytes that may describe one file of a tar: some kinds of headers hold as much as they like."""
_LIST = 4 << 20
"""Bytes of the list of files of a zip."""
_MOST_KEYS = 1_000
"""Properties that the headers of a tar may give to all of its files."""


def unpack(
    archive: Path, folder: Path, *, wanted: Sequence[str] = (), limit: int = UNPACKED_LIMIT
) -> bool:
    """Unpack a zip or tar file into a new folder; refuse what does not belong into it.

    Absolute paths, `..`, names that cannot stand side by side, links and devices are refused before
    anything is written, and so is an archive that unpacks to more than `limit` bytes, to more than
    100 times its own size, or to more than 20,000 files. It is read in blocks, so that it takes
    little memory, whatever it claims to hold. What is compressed is read to its end, where its
    checksum stands.

    Parameters
    ----------
    archive, folder
        What to unpack, and the folder to make.
    wanted
        Patterns of names, such as `ratings.dat`; all files unless given.
    limit
        The largest sum of the sizes of its files, in bytes.

    Returns
    -------
    bool
        Whether checksums inside the archive tell that its files are whole; a plain tar has none.
    """
    try:
        with _opened(archive) as (members, has_checksums):
            listed = _listed(archive, members, limit)
            _check_names(archive, [member.name for member in listed])
            folder.mkdir(parents=True)
            for member in listed:
                if not wanted or any(PurePosixPath(member.name).match(one) for one in wanted):
                    member.write(folder / member.name)
    except DataError:
        raise
    except _DAMAGED as problem:
        raise damaged(archive, problem) from None
    except OSError as problem:  # bz2 has no errors of its own; places before its begin are EINVAL
        if problem.errno not in (None, errno.EINVAL):
            raise
        raise damaged(archive, problem) from None
    return has_checksums


# What the libraries raise on damaged archives, their own errors and others.
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)


def damaged(archive: Path, problem: Exception) -> DataError:
    """Return the error of a file that is not whole."""
    return DataError(f"{archive}: the archive is damaged ({problem}); download it again")


class _Member:
    """A file in an archive."""

    def __init__(self, name: str, size: int, open_: Callable[[], IO[bytes]]) -> None:
        self.name, self.size, self._open = name, size, open_

    def write(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as source, target.open("xb") as file:
            shutil.copyfileobj(source, file, BLOCK)


def _listed(archive: Path, members: Iterator[_Member | None], limit: int) -> list[_Member]:
    """List the files of an archive; stop at once where they are too many or too large.

    A folder is None.
    """
    listed, total = [], 0
    for count, member in enumerate(members, 1):
        if count > MOST_FILES:
            raise DataError(
                f"{archive}: refused, nothing is unpacked: it holds more than {MOST_FILES:,} files"
            )
        if member is None:
            continue
        total += member.size
        if total > limit:
            raise DataError(
                f"{archive}: refused, nothing is unpacked: it unpacks to {total:,} bytes or more, "
                f"and at most {limit:,} are allowed"
            )
        listed.append(member)
    return listed


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[Iterator[_Member | None], bool]]:
    """Give an archive's files, and whether there are checksums inside it."""
    with archive.open("rb") as file:
        packed = is_compressed(file.read(MAGIC))
        file.seek(0)
        if not packed and zipfile.is_zipfile(file):
            size = file.seek(0, io.SEEK_END)
            with zipfile.ZipFile(cast(Any, _Limited(archive, file, _LIST))) as zipped:
                yield _zipped(archive, zipped, size), True
            return
        file.seek(0)
        stream = _Limited(archive, Unpacked(archive, file) if packed else file, _HEADERS)
        with tarfile.open(fileobj=cast(Any, stream), mode="r:") as tar:
            yield _tarred(archive, tar, stream), packed


class _Limited:
    """A file of which only so many bytes are read until `renew` is called.

    tarfile and zipfile read a list of files, or a header, as long as it says it is.
    """

    def __init__(self, archive: Path, file: Any, limit: int) -> None:
        self._archive, self._file, self._limit = archive, file, limit
        self.is_packed = isinstance(file, Unpacked)
        self.seek, self.tell = file.seek, file.tell
        self.renew()

    def renew(self, *, unlimited: bool = False) -> None:
        """Let as many bytes be read again, or, now that the files are known, all."""
        self._left: int | None = None if unlimited else self._limit

    def read(self, size: int = -1) -> bytes:
        if self._left is None:
            return cast(bytes, self._file.read(size))
        if size <= self._left:
            block = self._file.read(size if size >= 0 else self._left + 1)
            self._left -= len(block)
            if self._left >= 0:
                return cast(bytes, block)
        raise DataError(
            f"{self._archive}: refused, nothing is unpacked: the description of its files takes "
            f"more than {self._limit:,} bytes"
        )

    def seekable(self) -> bool:
        return True


def _zipped(archive: Path, zipped: zipfile.ZipFile, size: int) -> Iterator[_Member | None]:
    cast(_Limited, zipped.fp).renew(unlimited=True)
    total = 0
    for info in zipped.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        _check_entry(archive, info.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR))
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # Of the others a block is unpacked as a whole, whatever it unpacks to.
            raise _refused(archive, info.filename, "is not compressed by deflate")
        total += info.file_size
        if is_too_large(total, size):
            raise refusal(archive)
        member = _Member(info.filename, info.file_size, partial(zipped.open, info))
        yield None if info.is_dir() else member


def _tarred(archive: Path, tar: tarfile.TarFile, stream: _Limited) -> Iterator[_Member | None]:
    while (info := tar.next()) is not None:
        stream.renew()
        _check_entry(archive, info.name, info.isfile() or info.isdir())
        if info.issparse():
            raise _refused(archive, info.name, "is a sparse file")
        if len(tar.pax_headers) > _MOST_KEYS:
            raise DataError(
                f"{archive}: refused, nothing is unpacked: its headers give more than "
                f"{_MOST_KEYS:,} properties to all files"
            )
        # Texts of any length, and a copy of the properties of all: for each file kept in memory.
        info.pax_headers, info.uname, info.gname, info.linkname = {}, "", "", ""
        member = _Member(info.name, info.size, partial(_inside, tar, info))
        yield None if info.isdir() else member
    stream.renew(unlimited=True)
    _read_to_end(tar, stream)


def _check_entry(archive: Path, name: str, is_plain: bool) -> None:
    """Refuse links and devices, and a name that is too long."""
    if len(name) > _LONGEST:
        raise _refused(archive, f"{name[:40]}…", f"has more than {_LONGEST} characters in its name")
    if not is_plain:
        raise _refused(archive, name, "is a link or a device")


def _read_to_end(tar: tarfile.TarFile, stream: _Limited) -> None:
    """Read what follows the last file: nothing but zeros, and then the checksum of it all.

    A damaged header in the middle ends the list of files as the true end does.
    """
    if not stream.is_packed:  # else it would begin anew, and damage is told by the checksum
        stream.seek(tar.offset)
    while block := stream.read(BLOCK):
        if block.strip(b"\0"):
            raise tarfile.ReadError("its list of files breaks off")


def _inside(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(info)
    if file is None:
        raise tarfile.ReadError(f"{info.name} cannot be read")
    return file


def _check_names(archive: Path, names: Sequence[str]) -> None:
    """Refuse names that lead out of the folder, or of which one is in the way of another."""
    files: set[PurePosixPath] = set()
    for name in names:
        path = PurePosixPath(name)
        if not path.parts:
            raise _refused(archive, name, "has no name")
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in path.parts[0]:
            raise _refused(archive, name, "does not stay inside its folder")
        if path in files:
            raise _refused(archive, name, "is in it twice")
        files.add(path)
    for path in files:
        if not files.isdisjoint(path.parents):
            raise _refused(archive, str(path), "lies in a folder that has the name of a file")


def _refused(archive: Path, name: str, why: str) -> DataError:
    return DataError(f"{archive}: refused, nothing is unpacked: its file {name!r} {why}")
