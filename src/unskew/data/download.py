"""Downloading a data set: checked, unpacked safely, and there as a whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import secrets
import shutil
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from unskew.data.archives import damaged, unpack
from unskew.engine.files import replacing
from unskew.engine.progress import Progress
from unskew.engine.unpacking import BLOCK, Unpacked
from unskew.errors import DataError, SettingError

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
        most = limit if size is None else size
        if (total or 0) > most:
            raise _too_large(address, f"announces {total:,}", most)
        done = 0
        while block := answer.read(BLOCK):
            done += len(block)
            if done > (most if total is None else total):
                break
            file.write(block)
            for one in seen.values():
                one.update(block)
            if progress is not None:
                progress(done, total or 0)
    if total is None and done > most:
        raise _too_large(address, "sends more", most)
    if total is not None and done != total:
        more = "more than" if done > total else f"{done:,} of"
        raise _Spoiled(f"{more} {total:,} bytes arrived")
    if expected and seen[kind].hexdigest() != expected.lower():
        raise _Spoiled(f"its {kind} is {seen[kind].hexdigest()}, not {expected}")
    checked = [f"its {kind} is the published one"] if expected else []
    if total is not None:
        checked.append(f"{done:,} bytes arrived, as {'announced' if size is None else 'expected'}")
    return Receipt(address, done, seen["sha256"].hexdigest(), bool(expected), tuple(checked))


def _too_large(address: str, what: str, most: int) -> DataError:
    return DataError(
        f"{address}: {what} bytes, but at most {most:,} bytes are accepted for a file of unknown "
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
        whole = False
        if is_archive(file):
            inside = part / ".unpacked"
            whole = unpack(file, inside)
            file.unlink()
            for one in list(inside.iterdir()):
                one.rename(part / one.name)
            inside.rmdir()
        elif file.suffix == ".gz":
            _check_gzip(file)
            whole = True
        check(part)
        if whole:
            added = "the checksums inside it are right"
            receipt = replace(receipt, checked=(*receipt.checked, added))
        with replacing(part / RECEIPT) as place:
            place.write_text(json.dumps(asdict(receipt), indent=1) + "\n")
    return receipt


def _check_gzip(file: Path) -> None:
    """Read a gzipped file to its end, where its checksum stands."""
    try:
        with Unpacked(file, file.open("rb")) as stream:
            while stream.read(BLOCK):
                pass
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise damaged(file, problem) from None
