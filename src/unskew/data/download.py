"""Downloading a data set: verified, unpacked safely, and there as a whole or not at all."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import ssl
import stat
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from unskew.errors import DataError, SettingError
from unskew.files import replacing

Progress = Callable[[int, int], None]

TRIES = 3
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2")
# No data set of the catalogue unpacks to more than 12 GB.
UNPACKED_LIMIT = 32 << 30
_BLOCK = 1 << 20
_ABANDONED = 24 * 3600.0


class _Spoiled(Exception):  # noqa: N818 - not an error yet: it is tried again
    """A download that did not arrive as it should; worth another try."""


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
) -> None:
    """Download one file: streamed beside `target`, verified, then renamed.

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

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "there.txt").write_text("1,2,3")
    >>> fetch((folder / "there.txt").as_uri(), folder / "here.txt", size=5)
    >>> (folder / "here.txt").read_text()
    '1,2,3'
    """
    if urlsplit(address).scheme not in ("http", "https", "file"):
        raise SettingError(f"cannot download from {address!r}; the address starts with https://")
    for attempt in range(1, tries + 1):
        try:
            with replacing(target) as part:
                _stream(address, part, size, checksum, timeout, progress)
            return
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
    address: str, part: Path, size: int | None, checksum: str | None, timeout: float,
    progress: Progress | None,
) -> None:  # fmt: skip
    kind, _, digest = (checksum or "sha256:").partition(":")
    seen = hashlib.new(kind, usedforsecurity=False)
    request = urllib.request.Request(address, headers={"User-Agent": "unskew"})
    with urllib.request.urlopen(request, timeout=timeout) as answer, part.open("wb") as file:
        announced = answer.headers.get("Content-Length")
        total = size if size is not None else int(announced) if announced else None
        done = 0
        while block := answer.read(_BLOCK):
            done += len(block)
            if total is not None and done > total:
                break
            file.write(block)
            seen.update(block)
            if progress is not None:
                progress(done, total or 0)
    if total is not None and done != total:
        more = "more than" if done > total else f"{done:,} of"
        raise _Spoiled(f"{more} {total:,} bytes arrived")
    if digest and seen.hexdigest() != digest.lower():
        raise _Spoiled(f"its {kind} is {seen.hexdigest()}, not {digest}")


def is_archive(path: Path | str) -> bool:
    """Tell by its name whether a file holds other files."""
    return str(path).lower().endswith(ARCHIVES)


def unpack(
    archive: Path, folder: Path, *, wanted: Sequence[str] = (), limit: int = UNPACKED_LIMIT
) -> None:
    """Unpack a zip or tar file into a new folder; refuse what does not belong into it.

    Absolute paths, `..`, links and devices are refused before anything is written, and so is an
    archive that unpacks to more than `limit` bytes.

    Parameters
    ----------
    archive, folder
        What to unpack, and the folder to make.
    wanted
        Patterns of names, such as `ratings.dat`; all files unless given.
    limit
        The largest sum of the sizes of its files, in bytes.
    """
    try:
        with _opened(archive) as members:
            listed = list(members)
            total = sum(member.size for member in listed)
            if total > limit:
                raise DataError(
                    f"{archive}: unpacks to {total:,} bytes, more than the {limit:,} that are "
                    f"allowed"
                )
            for member in listed:
                _check(archive, member.name)
            folder.mkdir(parents=True)
            for member in listed:
                if not wanted or any(PurePosixPath(member.name).match(one) for one in wanted):
                    member.write(folder / member.name)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, RuntimeError) as problem:
        raise DataError(f"{archive}: the archive is damaged ({problem}); get it again") from None


class _Member:
    """A file in an archive."""

    def __init__(self, name: str, size: int, open_: Callable[[], IO[bytes]]) -> None:
        self.name, self.size, self._open = name, size, open_

    def write(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as source, target.open("xb") as file:
            shutil.copyfileobj(source, file, _BLOCK)


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[_Member]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            yield _zipped(archive, zipped)
    else:
        with tarfile.open(archive) as tar:
            yield _tarred(archive, tar)


def _zipped(archive: Path, zipped: zipfile.ZipFile) -> Iterator[_Member]:
    for info in zipped.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _refused(archive, info.filename, "is a link or a device")
        if not info.is_dir():
            yield _Member(info.filename, info.file_size, partial(zipped.open, info))


def _tarred(archive: Path, tar: tarfile.TarFile) -> Iterator[_Member]:
    for info in tar.getmembers():
        if not (info.isfile() or info.isdir()):
            raise _refused(archive, info.name, "is a link or a device")
        if info.isfile():
            yield _Member(info.name, info.size, partial(_inside, tar, info))


def _inside(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(info)
    if file is None:
        raise tarfile.ReadError(f"{info.name} cannot be read")
    return file


def _check(archive: Path, name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in path.parts[0]:
        raise _refused(archive, name, "does not stay inside its folder")


def _refused(archive: Path, name: str, why: str) -> DataError:
    return DataError(f"{archive}: refused, nothing is unpacked: its file {name!r} {why}")


@contextmanager
def making(folder: Path) -> Iterator[Path]:
    """Give a temporary folder beside `folder`; on success it becomes `folder` at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob(f".{folder.name}.*.part"):
        if time.time() - left.stat().st_mtime > _ABANDONED:  # its writer was killed
            shutil.rmtree(left, ignore_errors=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    try:
        yield part
        part.chmod(0o755)  # mkdtemp makes it private; the data folder may be shared
        try:
            part.rename(folder)
        except OSError:
            raise DataError(f"{folder}: something else made it meanwhile; look at it") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def install(address: str, folder: Path, check: Callable[[Path], Any], **how: Any) -> None:
    """Download (see `fetch` for `how`) and unpack into a folder that appears when all is right.

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
        fetch(address, file, **how)
        if is_archive(file):
            inside = part / ".unpacked"
            unpack(file, inside)
            file.unlink()
            for one in list(inside.iterdir()):
                one.rename(part / one.name)
            inside.rmdir()
        check(part)
