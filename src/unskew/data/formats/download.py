"""Downloading a data set: checked, unpacked safely, and there as a whole or not at all."""

from __future__ import annotations

import errno
import gzip
import hashlib
import http.client
import io
import json
import lzma
import secrets
import shutil
import ssl
import stat
import struct
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast
from urllib.parse import urlsplit

from unskew.engine.files import replacing
from unskew.engine.progress import Progress
from unskew.engine.unpacking import BLOCK, MAGIC, Unpacked, is_compressed, is_too_large, refusal
from unskew.errors import DataError, SettingError

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
    archive: Path, folder: Path, *, patterns: Sequence[str] = (), limit: int = UNPACKED_LIMIT
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
                if not patterns or any(
                    PurePosixPath(member.name).match(pattern) for pattern in patterns
                ):
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


TRIES = 3
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2")
# No archive of the catalogue is larger than 1.2 GB.
DOWNLOAD_LIMIT = 4 << 30
RECEIPT = "download.json"
"""The file in which `install` records what arrived, and what of it was checked."""
_ABANDONED = 24 * 3600.0


class _Spoiled(Exception):  # noqa: N818 - not an error yet: it is tried again
    """A download that did not arrive as it should; worth another try."""


@dataclass(frozen=True)
class Receipt:
    """What arrived, and what of it was checked."""

    address: str
    bytes: int
    sha256: str
    """Of what arrived."""
    verified: bool
    """Whether a checksum is published, and is that of what arrived."""
    checked: tuple[str, ...]
    """What was checked, in words."""

    def __str__(self) -> str:
        """Say what was and what was not checked."""
        checked = "; ".join(self.checked) or "nothing"
        if self.verified:
            return f"verified: {checked}"
        return (
            f"not verified, because no checksum of it is published. Checked: {checked}. The "
            f"sha256 of the received file is {self.sha256}"
        )


def fetch(
    address: str,
    target: Path,
    *,
    size: int | None = None,
    checksum: str | None = None,
    tries: int = TRIES,
    pause: float = 1.0,
    timeout: float = 60.0,
    progress: Progress | None = None,
    limit: int = DOWNLOAD_LIMIT,
) -> Receipt:
    """Download one file: streamed beside `target`, checked, then renamed.

    Over plain http only with a checksum: on the way anybody could change it.

    Parameters
    ----------
    address
        Where it is: http, https or file.
    target
        The file to write; what was there before stays until the new one is whole.
    size, checksum
        What must arrive: bytes, and `md5:…` or `sha256:…`. Where the size is not known, what the
        server announces must arrive.
    tries
        A download that breaks off or does not match is tried again from its start.
    pause
        Seconds before the second try, doubled before each further one.
    timeout
        Seconds without any data after which a connection counts as broken.
    progress
        Called with the bytes that are there and the bytes to come (0 when not known).
    limit
        Bytes after which a download is given up whose size is not given.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "there.txt").write_text("1,2,3")
    >>> receipt = fetch((folder / "there.txt").as_uri(), folder / "here.txt", size=5)
    >>> receipt.verified, receipt.checked
    (False, ('5 bytes arrived, as expected',))
    >>> (folder / "here.txt").read_text()
    '1,2,3'
    """
    if urlsplit(address).scheme not in ("http", "https", "file"):
        raise SettingError(f"cannot download from {address!r}; the address starts with https://")
    _check_transport(address, checksum)
    for attempt in range(1, tries + 1):
        try:
            with replacing(target) as part:
                return _stream(address, part, size, checksum, timeout, progress, limit)
        except urllib.error.HTTPError as problem:
            problem.close()
            reason = f"the server answers {problem.code} {problem.reason}"
            if 400 <= problem.code < 500 and problem.code not in (408, 429):
                raise DataError(f"{address}: {reason}") from None
        except (_Spoiled, urllib.error.URLError, http.client.HTTPException) as problem:
            reason = str(problem)
        except (TimeoutError, ConnectionError, ssl.SSLError) as problem:
            reason = str(problem) or type(problem).__name__
        if attempt < tries:
            time.sleep(pause * 2 ** (attempt - 1))
    raise DataError(
        f"{address}: could not be downloaded in {tries} tries ({reason}); try again later, or "
        f"download it by other means and put it into the data folder"
    )


def _stream(
    address: str,
    part: Path,
    size: int | None,
    checksum: str | None,
    timeout: float,
    progress: Progress | None,
    limit: int,
) -> Receipt:
    kind, _, expected = (checksum or "sha256:").partition(":")
    seen = {name: hashlib.new(name, usedforsecurity=False) for name in {kind, "sha256"}}
    request = urllib.request.Request(address, headers={"User-Agent": "unskew"})
    opener = urllib.request.build_opener(_Redirects(checksum))
    with opener.open(request, timeout=timeout) as answer, part.open("wb") as file:
        announced = answer.headers.get("Content-Length") or ""
        total = size if size is not None else int(announced) if announced.isdecimal() else None
        largest = limit if size is None else size
        if (total or 0) > largest:
            raise _too_large(address, f"announces {total:,}", largest)
        done = 0
        while block := answer.read(BLOCK):
            done += len(block)
            if done > (largest if total is None else total):
                break
            file.write(block)
            for digest in seen.values():
                digest.update(block)
            if progress is not None:
                progress(done, total or 0)
    if total is None and done > largest:
        raise _too_large(address, "sends more", largest)
    if total is not None and done != total:
        more = "more than" if done > total else f"{done:,} of"
        raise _Spoiled(f"{more} {total:,} bytes arrived")
    if expected and seen[kind].hexdigest() != expected.lower():
        raise _Spoiled(f"its {kind} is {seen[kind].hexdigest()}, not {expected}")
    checked = [f"its {kind} is the published one"] if expected else []
    if total is not None:
        checked.append(f"{done:,} bytes arrived, as {'announced' if size is None else 'expected'}")
    return Receipt(address, done, seen["sha256"].hexdigest(), bool(expected), tuple(checked))


def _too_large(address: str, what: str, limit: int) -> DataError:
    return DataError(
        f"{address}: {what} bytes, but at most {limit:,} bytes are accepted for a file of unknown "
        "size; download it by other means and put it into the data folder"
    )


def _check_transport(address: str, checksum: str | None) -> None:
    """Refuse plain http without a checksum, but from this machine itself."""
    parts = urlsplit(address)
    if parts.scheme == "http" and checksum is None and parts.hostname not in _HERE:
        raise DataError(
            f"{address}: refused, because it would be transferred over plain http and no "
            "checksum of it is published, so that anybody on the way could change it. Download "
            "it by other means and put it into the data folder"
        )


_HERE = ("localhost", "127.0.0.1", "::1")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server that sends elsewhere, but not from https to plain http."""

    def __init__(self, checksum: str | None) -> None:
        self.checksum = checksum

    def redirect_request(self, *arguments: Any) -> urllib.request.Request | None:
        _check_transport(arguments[-1], self.checksum)
        return super().redirect_request(*arguments)


def is_archive(path: Path | str) -> bool:
    """Tell by its name whether a file holds other files."""
    return str(path).lower().endswith(ARCHIVES)


@contextmanager
def making(folder: Path) -> Iterator[Path]:
    """Give a temporary folder beside `folder`; on success it becomes `folder` at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob(f".{folder.name}.*.part"):
        if time.time() - left.stat().st_mtime > _ABANDONED:  # its writer was killed
            shutil.rmtree(left, ignore_errors=True)
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.part")
    part.mkdir()
    try:
        yield part
        try:
            part.rename(folder)
        except OSError:
            raise DataError(
                f"{folder}: another process created it in the meantime; check its contents"
            ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def install(address: str, folder: Path, check: Callable[[Path], Any], **options: Any) -> Receipt:
    """Download (see `fetch` for `options`) and unpack into a folder that appears when all is right.

    Its file `download.json` records what arrived and what of it was checked.

    Parameters
    ----------
    address
        An archive, or a single file that is kept as it is.
    folder
        The folder to make; it must not exist.
    check
        Called with the temporary folder; raises when something is missing in it.
    """
    if folder.exists():
        raise DataError(f"{folder}: exists already; remove it first, or choose another folder")
    with making(folder) as part:
        file = part / PurePosixPath(urlsplit(address).path).name
        receipt = fetch(address, file, **options)
        is_checked = False
        if is_archive(file):
            inside = part / ".unpacked"
            is_checked = unpack(file, inside)
            file.unlink()
            for path in list(inside.iterdir()):
                path.rename(part / path.name)
            inside.rmdir()
        elif file.suffix == ".gz":
            _check_gzip(file)
            is_checked = True
        check(part)
        if is_checked:
            added = "the checksums inside it are right"
            receipt = replace(receipt, checked=(*receipt.checked, added))
        with replacing(part / RECEIPT) as target:
            target.write_text(json.dumps(asdict(receipt), indent=1) + "\n")
    return receipt


def _check_gzip(file: Path) -> None:
    """Read a gzipped file to its end, where its checksum stands."""
    try:
        with Unpacked(file, file.open("rb")) as stream:
            while stream.read(BLOCK):
                pass
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise damaged(file, problem) from None
