"""Files: written whole or not at all, read once; what fails names the file."""

from __future__ import annotations

import difflib
import errno
import gzip
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from unskew.checks import check_path
from unskew.engine.cells import escaped
from unskew.engine.remote import RemoteFile, check_local, open_address, restored
from unskew.engine.system import errno_from, is_private, is_running, lock, node, open_regular
from unskew.engine.threads import check_fork
from unskew.engine.unpacking import MAGIC, is_gzip, unpacked
from unskew.errors import DataError, OutputError, UnskewError, address_limit, is_address

if TYPE_CHECKING:
    import polars as pl


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


# What an operating system answers when it refuses a file, and what to do about it.
REASONS = {
    errno.ENOSPC: "the disk is full: free some space, or write to another disk",
    errno.EDQUOT: "the disk quota is used up: free some space, or write to another disk",
    errno.EFBIG: "the file would be larger than is allowed here: see ulimit -f, or write elsewhere",
    errno.EROFS: "the disk is read-only: write elsewhere",
    errno.EACCES: "permission is missing: change it, or take another place",
    errno.EPERM: "permission is missing: change it, or take another place",
    errno.EISDIR: "this is a folder: name a file",
    errno.EEXIST: "a file is in the way of a folder: take another name",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENOENT: "there is no such file or folder",
    errno.ENAMETOOLONG: "the name is too long: take a shorter one",
    errno.ELOOP: "the links of this path lead in a circle",
    errno.EIO: "the disk does not work properly (input/output error)",
}
# File systems allow 255 bytes; the temporary name adds 36 to what it keeps of the final one.
_NAME = 200


@contextmanager
def reading(path: str | os.PathLike[str] | InputFile) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into a `DataError` that names the file."""
    import polars as pl

    try:
        yield
    except UnskewError:  # OutputError is an OSError too
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file{_alike(Path(str(path)))}") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; give a file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise DataError(f"{path}: the gzip file is damaged or cut short ({problem})") from None
    except OSError as problem:
        raise DataError(f"{path}: cannot be read: {reason(problem)}") from None
    except UnicodeDecodeError as problem:
        raise DataError(f"{path}: cannot be read as UTF-8 text ({problem})") from None
    except MemoryError:
        raise DataError(f"{path}: does not fit into memory{address_limit()}") from None
    except pl.exceptions.PolarsError as problem:
        first = str(problem).partition("\n")[0]
        raise DataError(f"{path}: cannot be read ({first})") from None
    except pl.exceptions.PanicException as problem:  # not an Exception
        limit = address_limit()
        what = "cannot be read" if limit else "the file is damaged"
        raise DataError(f"{path}: {what} ({problem}){limit}") from None


def _alike(path: Path) -> str:
    """Return a question: whether the file of the most similar name was meant; '' without one."""
    try:
        names = [neighbour.name for neighbour in path.parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""


@dataclass(frozen=True)
class InputFile:
    """A file to read. What should be read only once is read into memory: pipes, remote files."""

    path: Path
    content: bytes | None = None
    """All bytes of a pipe or a remote file; None for a file that can be opened again."""
    address: str = ""
    """Of a remote file, without credentials; its path holds the name only."""

    def __str__(self) -> str:
        return self.address or str(self.path)

    @classmethod
    def of(cls, path: str | os.PathLike[str] | RemoteFile) -> InputFile:
        """Look at a file, and read it if it is a pipe or remote."""
        if not isinstance(path, RemoteFile):
            check_path("file", path)
        if is_address(path):
            path = open_address(path)
        if isinstance(path, RemoteFile):
            return cls(Path(path.name), path.read(), path.shown)
        local = Path(path if isinstance(path, str) else restored(path))
        with reading(local):
            mode = local.stat().st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError
            # Files below /dev share one position on some systems, whatever they stand for.
            again = stat.S_ISREG(mode) and not local.is_relative_to("/dev")
            return cls(local, None if again else local.read_bytes())

    def raw(self) -> BinaryIO:
        """Open it as it is."""
        return self.path.open("rb") if self.content is None else io.BytesIO(self.content)

    def is_packed(self) -> bool:
        """Tell whether it is a gzip file, by its content."""
        with self.raw() as file:
            return is_gzip(self, file.read(MAGIC))

    def open(self) -> BinaryIO:
        """Open it, unpacked if it is a gzip file."""
        return unpacked(self, self.raw()) if self.is_packed() else self.raw()

    def as_it_is(self) -> Path | bytes:
        """Return what polars can read: the path, or the bytes of a pipe or a remote file."""
        return local_path(self.path) if self.content is None else self.content

    def whole(self) -> Path | bytes:
        """Return the same, but unpacked if it is a gzip file."""
        if not self.is_packed():
            return self.as_it_is()
        with self.open() as file:
            return file.read()


@contextmanager
def replacing(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it takes the place of `path` at once.

    What cannot be written raises `OutputError`. A symbolic link is followed: its target is
    replaced, the link stays. Of a file with several hard links this name gets the new content, the
    other names keep the old one. A device or a pipe is written to as it is, as nothing can take its
    place. Without `sync` the disk is not waited for: what was written may not survive a power cut.

    A new file has the permissions of the umask. A file that is replaced hands on its permissions
    and its group (see `_grant`); the new file belongs to the user who writes it, whoever owned the
    old one. Access control lists and extended attributes are not kept.
    """
    check_local("output", path)
    with _explained(path):
        if _is_stream(path):
            yield Path(path)
            return
        final = Path(os.path.realpath(path))
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(final)
        access = _access(final)
        # Whatever was put there before, a link too, is refused. A file that others may not read is
        # closed to them before it has content.
        temporary.touch(0o666 if access is None else 0o600, exist_ok=False)
        try:
            yield temporary
            if sync:
                with temporary.open("r+b") as written:  # Windows syncs only what it may write
                    os.fsync(written.fileno())
            if access is not None:
                _grant(access, temporary)
            temporary.replace(final)
        finally:
            temporary.unlink(missing_ok=True)


def _access(path: Path) -> os.stat_result | None:
    """Return what tells who may read and write a file; None where there is no file."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _grant(access: os.stat_result, path: Path) -> None:
    """Give a file the permissions and the group of another one, whoever owns it.

    Where the system does not allow the group, another group may do no more than everybody may.
    """
    mode = stat.S_IMODE(access.st_mode) & 0o777
    if hasattr(os, "chown") and path.stat().st_gid != access.st_gid:
        try:
            os.chown(path, -1, access.st_gid)
        except OSError:
            mode &= 0o707 | (mode & 0o007) << 3
    path.chmod(mode)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary folder beside `path`; on success its files appear in `path`.

    Files of the same names are replaced and hand on their permissions, as in `replacing`; others
    stay. On failure nothing of it is left.
    """
    check_local("output", path)
    final = Path(os.path.realpath(path))
    with _explained(path):
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(final)
        # What replaces private files is private from the start.
        temporary.mkdir(0o700 if final.exists() else 0o777)
        try:
            yield temporary
            if final.exists():
                _move_files(temporary, final)
            else:
                temporary.rename(final)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


PATIENCE = 60.0
"""Seconds to wait for another process that has a file locked."""
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""What systems answer when another process has the lock."""
_ODD = (errno.ELOOP, errno.EISDIR, errno.ENXIO, None)
"""What `open_regular` answers to what is no regular file."""


@contextmanager
def locked(path: str | os.PathLike[str], seconds: float = PATIENCE) -> Iterator[None]:
    """Keep other processes away while this one reads a file, decides and replaces it.

    The lock is a file beside it, because the file itself is replaced. The system frees it when the
    process ends, however it ends; a lock that a killed process left behind holds nobody up.
    """
    check_local("output", path)
    final = Path(os.path.realpath(path))
    mark = final.with_name(f".{_shortened(final.name)}.lock")
    with _explained(path):
        final.parent.mkdir(parents=True, exist_ok=True)
        file = _lock_mark(mark, time.monotonic() + seconds)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file
            mark.unlink()
        file.close()


def _lock_mark(mark: Path, end: float) -> BinaryIO:
    """Open and lock a file; while somebody else has it, try until `end`."""
    while True:
        try:
            file = open_regular(mark, os.O_RDWR | os.O_CREAT)
        except OSError as problem:
            if problem.errno in _ODD:
                raise OutputError(f"{mark}: this lock is no regular file: remove it") from None
            raise
        try:
            lock(file, wait=False)
            # Who had it removes it: what was opened before that locks nobody out any more.
            if os.path.samestat(os.fstat(file.fileno()), mark.lstat()):
                return file
        except FileNotFoundError:
            pass
        except OSError as problem:
            if problem.errno not in _HELD:
                file.close()
                raise
        file.close()
        if time.monotonic() > end:
            raise OutputError(f"{mark}: another process keeps this lock: end it, or run again")
        time.sleep(0.01)


def _move_files(source: Path, target: Path) -> None:
    """Move files into a folder, those on top last: a card there speaks for all others."""
    files = [path for path in source.rglob("*") if not path.is_dir()]
    for path in sorted(files, key=lambda path: (-len(path.parts), path.name == "card.json", path)):
        destination = inner_path(target, os.fspath(path.relative_to(source)))
        destination.parent.mkdir(parents=True, exist_ok=True)
        access = _access(destination)
        if access is not None:
            _grant(access, path)
        path.replace(destination)


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether something is there that is neither a file nor a folder, such as /dev/stdout."""
    try:
        kind = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _beside(final: Path) -> Path:
    return final.with_name(f".{_shortened(final.name)}.{_writer()}-{secrets.token_hex(4)}.part")


def _shortened(name: str) -> str:
    return name.encode(errors="surrogateescape")[:_NAME].decode(errors="ignore")


@contextmanager
def _explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the operating system's refusals into an error that names the file as it was given."""
    try:
        yield
    except OutputError:
        raise
    except Exception as problem:
        if errno_of(problem) not in REASONS:
            raise
        raise output_error(path, problem) from problem


def output_error(path: str | os.PathLike[str], problem: BaseException) -> OutputError:
    """Return the error of a file or folder that cannot be written."""
    error = OutputError(f"{os.fspath(path)}: cannot be written: {reason(problem)}")
    error.errno = errno_of(problem)
    error.strerror = os.strerror(error.errno or 0)
    return error


def errno_of(problem: BaseException) -> int | None:
    """Return the number of an error of the operating system, also where polars reports it."""
    number = getattr(problem, "errno", None)
    if number is not None:
        return int(number)
    match = re.search(r"\(os error (\d+)\)", str(problem))
    if match:
        return errno_from(int(match[1]))
    return errno.EISDIR if isinstance(problem, IsADirectoryError) else None


def reason(problem: BaseException) -> str:
    """Return why the operating system refused a file, and what to do."""
    number = errno_of(problem)
    if number in REASONS:
        return REASONS[number]
    return str(problem) if number is None else os.strerror(number)


def is_abandoned(part: Path, hours: float = 24.0) -> bool:
    """Tell whether a temporary file was left behind: its writer is gone, or it is old."""
    try:
        host, process, _ = part.name.removesuffix(".part").rpartition(".")[2].split("-")
        is_ours = host == _writer().split("-")[0]
        lives = is_running(int(process)) if is_ours else None
        if lives is None:  # on another machine, or on a system that does not say
            return time.time() - part.stat().st_mtime > 3600 * hours
        return not lives
    except (PermissionError, FileNotFoundError):  # another user's file; gone by itself
        return False
    except (ValueError, OverflowError):
        return True


def _writer() -> str:
    """Return what tells this process from all that may write to the same file system."""
    host = hashlib.blake2b(node().encode(), digest_size=4).hexdigest()
    return f"{host}-{os.getpid()}"


def digest(content: bytes) -> str:
    """Return what tells these bytes from others."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def digest_of_file(path: str | os.PathLike[str]) -> str:
    """Return the digest of a file's bytes, without holding them all."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


_SEAL = '{\n "digest": "%s",'


def sealed(content: dict[str, Any]) -> bytes:
    """Return JSON that starts with a digest of all that follows in it."""
    body = json.dumps(content, indent=1, allow_nan=False).removeprefix("{") + "\n"
    return ((_SEAL % digest(body.encode())) + body).encode()


def write_sealed(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write a JSON file that starts with a digest of all that follows in it."""
    with replacing(path) as part:
        part.write_bytes(sealed(content))


def unsealed(content: bytes, name: str) -> dict[str, Any]:
    """Return what `sealed` was given; ValueError, with the name, if a byte was changed."""
    size = len(_SEAL % digest(b""))
    head, body = content[:size], content[size:]
    if head != (_SEAL % digest(body)).encode():
        what = "is damaged" if head.startswith(_SEAL[:11].encode()) else "has no digest"
        raise ValueError(f"{name} {what}")
    read: dict[str, Any] = json.loads(content)
    del read["digest"]
    return read


def read_sealed(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write_sealed` wrote; ValueError if a byte of it was changed."""
    return unsealed(Path(path).read_bytes(), Path(path).name)


_IN_USE = ".in-use"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder that is removed at the end; also remove those that killed processes left.

    A file inside is locked for as long as this process lives, by which others know.
    """
    _remove_abandoned(Path(tempfile.gettempdir()))
    with (
        tempfile.TemporaryDirectory(prefix="unskew-", ignore_cleanup_errors=True) as folder,
        (Path(folder) / _IN_USE).open("wb") as mark,
    ):
        lock(mark, wait=True)
        yield Path(folder)


def is_temporary(folder: Path) -> bool:
    """Tell whether a folder is one that `temporary_folder` gave."""
    return (folder / _IN_USE).exists()


def _remove_abandoned(home: Path, seconds: float = 60.0) -> None:
    """Remove temporary folders whose process is gone; not those that are just being made.

    Others may write to `home` too: what is not a private folder of this user is left alone.
    """
    for folder in filter(is_private, home.glob("unskew-*")):
        try:
            with open_regular(folder / _IN_USE, of_user=True) as mark:
                lock(mark, wait=False)
                is_old = time.time() - os.fstat(mark.fileno()).st_mtime > seconds
        except OSError:  # its process lives, it is not ours, or it is gone
            continue
        if is_old:  # the mark is closed: Windows removes no open file
            shutil.rmtree(folder, ignore_errors=True)


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str], kind: str) -> None:
    """Write a table as `csv`, as `parquet`, or as `trec` (blanks between columns, no header).

    Text of a CSV file that a spreadsheet would carry out is escaped; see `cells`.
    """
    check_fork()
    with replacing(path) as part:
        if kind == "parquet":
            frame.write_parquet(part)
        elif kind == "trec":
            frame.write_csv(part, include_header=False, separator=" ", quote_style="never")
        else:
            escaped(frame).write_csv(part)
