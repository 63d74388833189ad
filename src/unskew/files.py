"""Writing files so that nothing half-written is ever seen under its final name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it takes the place of `path` at once."""
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str], kind: str) -> None:
    """Write a table as `csv`, as `parquet`, or as `trec` (blanks between columns, no header)."""
    with replacing(path) as part:
        if kind == "parquet":
            frame.write_parquet(part)
        elif kind == "trec":
            frame.write_csv(part, include_header=False, separator=" ", quote_style="never")
        else:
            frame.write_csv(part)
