"""The store: every finished result under the hash of all that determines it.

A result is one file: a line that names the format, a line with the digest of all that follows, a
line of JSON (the key, the card) and a Parquet table. It is written under another name, synced and
renamed, so that nothing half-written ever stands under a key; what is damaged later is found by its
digest, whichever byte it is. Several
processes and machines may share one folder: who writes a key that is there already writes the same
bytes. Tables of data lie there as Arrow files that every process reads for itself.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.engine.files import (
    check_links,
    digest,
    digest_of_file,
    errno_of,
    inner_path,
    is_abandoned,
    local_path,
    read_sealed,
    replacing,
    sealed,
    write_sealed,
)
from unskew.engine.remote import check_local
from unskew.errors import DataError, UnskewError

FORMAT = 2
MARK = "unskew-store.json"
_MAGIC = b"unskew result 2"
_RESULTS, _DATA, _FAILED = "results", "data", "failed"


class StoreError(UnskewError):
    """A store that cannot be used or written."""


class MissingResult(StoreError, KeyError):  # noqa: N818 - what it is, where it is caught
    """A result that is not there, or no longer."""


@dataclass(frozen=True)
class Entry:
    """A result as it lies in the store."""

    key: str
    size: int
    card: Mapping[str, Any]


@dataclass(frozen=True)
class Store:
    """A folder of results. Small and picklable: only the path."""

    home: Path

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """Open a store, or make one in a new or empty folder."""
        check_local("store", folder)
        check_links(folder)
        home = Path(folder)
        mark = home / MARK
        if mark.exists():
            try:
                number = json.loads(mark.read_text(encoding="utf-8"))["format"]
            except (OSError, ValueError, KeyError, TypeError) as problem:
                raise StoreError(f"{mark}: cannot be read ({problem})") from None
            if number != FORMAT:
                raise StoreError(
                    f"{home}: a store of format {number}, but this version reads {FORMAT}: name "
                    "a new folder, or remove this one"
                )
            return cls(home)
        foreign = home.exists() and (
            not home.is_dir() or any(not path.name.startswith(".") for path in home.iterdir())
        )
        if foreign and not mark.exists():  # look again: another process may just have made it
            raise StoreError(
                f"{home} is not a store and not empty: name a new folder, or one that is a store"
            )
        with _Writing(mark) as part:
            part.write_text(json.dumps({"format": FORMAT}) + "\n")
        return cls(home)

    def path(self, key: str) -> Path:
        """Return where a result lies."""
        return self.home / _RESULTS / key[:2] / f"{key}.result"

    def put(self, key: str, table: pl.DataFrame, card: Mapping[str, Any]) -> None:
        """Keep a result: a table, and the card that says what it is."""
        buffer = io.BytesIO()
        table.write_parquet(buffer, compression="zstd", statistics=False)
        head = json.dumps({"key": key, "card": dict(card)}, sort_keys=True, default=_refuse)
        body = head.encode() + b"\n" + buffer.getvalue()
        with _Writing(self.path(key)) as part, part.open("wb") as file:
            file.write(_MAGIC + b"\n" + digest(body).encode() + b"\n")
            file.write(body)

    def content(self, key: str) -> bytes:
        """Return the bytes of a result, to be kept in another store."""
        return self.path(key).read_bytes()

    def adopt(self, key: str, content: bytes) -> None:
        """Keep a result as another store has it; StoreError if it is damaged."""
        path = self.path(key)
        _parsed(path, key, content)
        with _Writing(path) as part:
            part.write_bytes(content)

    def get(self, key: str) -> tuple[pl.DataFrame, dict[str, Any]]:
        """Return a result and its card; StoreError if it is damaged, or MissingResult."""
        head, payload = self._read(self.path(key), key)
        return pl.read_parquet(io.BytesIO(payload)), head["card"]

    def has(self, key: str) -> bool:
        """Tell whether a result is there and whole; set a damaged one aside, to be done again."""
        try:
            self._read(self.path(key), key)
        except MissingResult:
            return False
        except StoreError as problem:
            path = self.path(key)
            try:
                path.replace(path.with_suffix(".damaged"))
            except FileNotFoundError:
                pass  # another process was quicker
            except OSError as other:
                raise StoreError(f"{problem}; cannot be set aside ({other.strerror})") from None
            return False
        return True

    def entries(self) -> Iterator[Entry]:
        """Yield what is there, by key; damaged files are left out (see `verify`)."""
        for path in self._files():
            try:
                head, payload = self._read(path, path.stem)
            except StoreError:
                continue
            yield Entry(path.stem, len(payload), head["card"])

    def verify(self) -> list[str]:
        """Return what is wrong: damaged results, foreign files, leftovers of killed writers."""
        wrong = []
        for path in self._files():
            try:
                self._read(path, path.stem)
            except StoreError as problem:
                wrong.append(str(problem))
        for path in self._others():
            if path.suffix == ".part":
                if is_abandoned(path):
                    wrong.append(f"{path}: left by a stopped writer; unskew store gc removes it")
            elif path.suffix == ".damaged":
                wrong.append(f"{path}: set aside as damaged; unskew store gc removes it")
            else:
                wrong.append(f"{path}: does not belong to the store and is ignored")
        wrong += [
            f"{path}: the report of a failure is damaged; its task will be tried again"
            for path in self._reports()
            if _report(path) is None
        ]
        for folder in sorted((self.home / _DATA).glob("*/meta.json")):
            try:
                self.frames(folder.parent.name)
            except StoreError as problem:
                wrong.append(str(problem))
        return wrong

    def gc(self, keep: set[str] | None = None) -> int:
        """Remove leftovers and, where `keep` is given, every other result; return how many."""
        stale = [
            path
            for path in self._others()
            if path.suffix == ".damaged" or (path.suffix == ".part" and is_abandoned(path))
        ]
        if keep is not None:
            stale += [path for path in self._files() if path.stem not in keep]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)

    def _others(self) -> list[Path]:
        """Return the files that are no results, failures or ratings."""
        ours = {self.home / MARK, *self._files(), *(self.home / _FAILED).glob("*.txt")}
        ours |= {*(self.home / _DATA).glob("*/*.arrow"), *(self.home / _DATA).glob("*/meta.json")}
        return sorted(path for path in self.home.rglob("*") if path.is_file() and path not in ours)

    def put_failure(self, key: str, text: str) -> None:
        """Keep the report of a failed task."""
        report = text.encode("utf-8", errors="replace")
        with _Writing(self.home / _FAILED / f"{key}.txt") as part:
            part.write_bytes(digest(report).encode() + b"\n" + report)

    def failures(self) -> dict[str, str]:
        """Return the reports of failed tasks, by key; those of damaged ones are left out."""
        reports = ((path.stem, _report(path)) for path in self._reports())
        return {key: report for key, report in reports if report is not None}

    def _reports(self) -> list[Path]:
        return sorted((self.home / _FAILED).glob("[!.]*.txt"))

    def forget_failure(self, key: str) -> None:
        """Remove the report of a task that will be tried again."""
        (self.home / _FAILED / f"{key}.txt").unlink(missing_ok=True)

    def put_frames(
        self, key: str, frames: Mapping[str, pl.DataFrame], facts: Mapping[str, Any]
    ) -> None:
        """Keep tables as Arrow files, with facts about them; a key that is there stays as it is."""
        folder = self.home / _DATA / key
        if (folder / "meta.json").exists():
            return
        digests = {}
        for name, frame in frames.items():
            with _Writing(folder / f"{name}.arrow") as part:
                frame.rechunk().write_ipc(part)
                digests[name] = digest_of_file(part)
        with _Writing(folder / "meta.json") as part:  # last: then all is there
            part.write_bytes(sealed({**facts, "digests": digests}))

    def frames(self, key: str) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
        """Return kept tables and their facts; StoreError if they are not as they were put there."""
        folder = self.home / _DATA / key
        try:
            facts = read_sealed(folder / "meta.json")
            files = {name: inner_path(folder, f"{name}.arrow") for name in facts["digests"]}
            for name, path in files.items():
                if digest_of_file(path) != facts["digests"][name]:  # polars ends on some damage
                    raise ValueError(f"{path.name} is damaged or cut short")
            return {name: pl.read_ipc(local_path(path)) for name, path in files.items()}, facts
        except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as problem:
            raise StoreError(
                f"{folder}: the ratings cannot be read ({problem}); remove the folder and run again"
            ) from None

    def frames_files(self, key: str) -> dict[str, bytes]:
        """Return the files of kept tables by their path in the store, to be put into another."""
        folder = self.home / _DATA / key
        try:
            names = [f"{name}.arrow" for name in read_sealed(folder / "meta.json")["digests"]]
            return {
                f"{_DATA}/{key}/{name}": inner_path(folder, name).read_bytes()
                for name in (*names, "meta.json")
            }
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise StoreError(f"{folder}: the ratings cannot be read ({problem})") from None

    def _files(self) -> list[Path]:
        return sorted((self.home / _RESULTS).glob("*/*.result"))

    def _read(self, path: Path, key: str) -> tuple[dict[str, Any], bytes]:
        """Return head and payload of a result whose digest is right."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise MissingResult(
                f"{path}: this result does not exist, or no longer exists; run again, and make "
                "sure that no other process removes it"
            ) from None
        except OSError as problem:
            raise StoreError(f"{path}: cannot be read ({problem})") from None
        return _parsed(path, key, content)


def _parsed(path: Path, key: str, content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return head and payload of a result's bytes; StoreError if they are not as written."""
    magic, _, rest = content.partition(b"\n")
    expected, _, body = rest.partition(b"\n")
    if magic == _MAGIC and expected == digest(body).encode():
        head, _, payload = body.partition(b"\n")
        facts = json.loads(head)
        if facts["key"] == key:
            return facts, payload
    raise StoreError(f"{path}: damaged or cut short; it will be computed again")


def _report(path: Path) -> str | None:
    """Return a failure's report, or None where it is not as it was written."""
    try:
        expected, _, report = path.read_bytes().partition(b"\n")
    except OSError:  # forgotten meanwhile
        return None
    return report.decode() if expected == digest(report).encode() else None


class _Writing:
    """Atomic writing whose errors name the store's file and what to do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inner = replacing(path)

    def __enter__(self) -> Path:
        try:
            return self.inner.__enter__()
        except OSError as problem:
            raise self._error(problem) from problem

    def __exit__(self, *error: Any) -> bool | None:
        try:
            done = self.inner.__exit__(*error)
        except OSError as problem:
            raise self._error(problem) from problem
        if isinstance(error[1], OSError | pl.exceptions.PolarsError):  # while it was written
            raise self._error(error[1]) from error[1]
        return done

    def _error(self, problem: Exception) -> StoreError:
        full = errno_of(problem) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "make room and run again" if full else "check the folder and its permissions"
        return StoreError(
            f"{self.path}: cannot be written ({getattr(problem, 'strerror', None) or problem}); "
            f"{remedy}; earlier results are untouched"
        )


def digest_of(parts: Mapping[str, Any]) -> str:
    """Return the key of everything that determines a result."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=_refuse)
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def _refuse(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise DataError(f"{value!r} cannot be part of a key: give plain numbers, text and lists")


def cached(kind: str, key: Mapping[str, object], make: Callable[[], str]) -> str:
    """Return a text: from the cache folder, or made and put there.

    A folder that cannot be used, and a file that was changed, cost time and nothing else. The text
    of another key of the same kind is removed: it is of an earlier version.

    Parameters
    ----------
    kind
        What it is, as a part of the file's name.
    key
        All that determines the text.
    make
        Makes it.

    Examples
    --------
    >>> from unskew.engine.store import cached
    >>> cached("example", {"version": 1}, lambda: "slow to make")
    'slow to make'
    """
    try:
        path = folder() / f"{kind}-{digest_of(dict(key))}.json"
        return str(read_sealed(path)["text"])
    except RuntimeError:  # no home folder
        return make()
    except (OSError, ValueError, KeyError):
        text = make()
    with suppress(OSError, UnskewError):
        write_sealed(path, {"text": text})
        for other in path.parent.glob(f"{kind}-*.json"):
            if other.name != path.name:
                other.unlink()
    return text


def folder() -> Path:
    """Return the folder: `unskew` in `XDG_CACHE_HOME`, else in `.cache` of the user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unskew"
