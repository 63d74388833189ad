"""Writing files so that nothing half-written is ever seen under its final name."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@contextmanager
def replacing(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it takes the place of `path` at once.

    Without `sync` the disk is not waited for: what was written may not survive a power cut.
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.name}.{_writer()}-{secrets.token_hex(4)}.part")
    try:
        yield temporary
        if sync:
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)


def is_abandoned(part: Path, hours: float = 24.0) -> bool:
    """Tell whether a temporary file was left behind: its writer is gone, or it is old."""
    try:
        host, process, _ = part.name.removesuffix(".part").rpartition(".")[2].split("-")
        if host == _writer().split("-")[0]:
            os.kill(int(process), 0)
            return False  # its writer lives
        return time.time() - part.stat().st_mtime > 3600 * hours
    except (PermissionError, FileNotFoundError):  # another user's process lives; gone by itself
        return False
    except (ProcessLookupError, ValueError, OverflowError):
        return True


def _writer() -> str:
    """Return what tells this process from all that may write to the same file system."""
    host = hashlib.blake2b(os.uname().nodename.encode(), digest_size=4).hexdigest()
    return f"{host}-{os.getpid()}"


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str], kind: str) -> None:
    """Write a table as `csv`, as `parquet`, or as `trec` (blanks between columns, no header)."""
    with replacing(path) as part:
        if kind == "parquet":
            frame.write_parquet(part)
        elif kind == "trec":
            frame.write_csv(part, include_header=False, separator=" ", quote_style="never")
        else:
            frame.write_csv(part)
