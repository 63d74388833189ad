"""The partition pass: rows of many files go to disk by a hash of their user, chunk by chunk.

A chunk's file holds a piece per part, one after the other, and at its end where each piece ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.data.ratings import grouped_order, id_column
from unskew.experiment._parquet import Source
from unskew.files import replacing

WORD = 8
_BITS = 24
MOST_PARTS = 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file, and where they go."""

    source: Source
    file: int
    low: int
    count: int
    path: str
    parts: int
    user_kind: str
    """The kind in which users are compared: equal users must fall into one part."""
    sync: bool = False
    """Whether to wait for the disk: only then is the file safe when the machine itself fails."""


def chunks_of(source: Source, step: int, folder: Path, parts: int, kind: str,
              sync: bool) -> list[Chunk]:  # fmt: skip
    """Cut a source into chunks of at most `step` rows."""
    bounds = [
        (file, low, min(step, rows - low))
        for file, rows in enumerate(source.rows)
        for low in range(0, rows, step)
    ]
    return [
        Chunk(source, *bound, str(folder / f"{number:06d}"), parts, kind, sync)
        for number, bound in enumerate(bounds)
    ]


def is_spilled(chunk: Chunk) -> bool:
    """Tell whether a chunk was written already, and whole."""
    try:
        with Path(chunk.path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - WORD, 0))
            last = np.frombuffer(file.read(), np.int64)
    except OSError:
        return False
    return last.size == 1 and size == int(last[0]) + WORD * (chunk.parts + 1)


def spill(chunk: Chunk) -> None:
    """Write the rows of a chunk, part by part, in their order inside each."""
    source, parts = chunk.source, chunk.parts
    frame = source.read(chunk.file, chunk.low, chunk.count)
    source.refuse_bad(frame, chunk.file, chunk.low)
    part = part_of(frame[source.columns["user"]], chunk.user_kind, parts)
    start = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=parts))])
    order = grouped_order(part, start.astype(np.int64)).astype(np.uint32)
    frame = frame[pl.Series(order)]
    ends = np.zeros(parts + 1, np.int64)
    with replacing(chunk.path, sync=chunk.sync) as place, place.open("wb") as file:
        for number in range(parts):
            rows = frame.slice(int(start[number]), int(start[number + 1] - start[number]))
            if rows.height:
                rows.write_ipc_stream(file, compression="uncompressed")
            ends[number + 1] = file.tell()
        file.write(ends.tobytes())


def part_of(users: pl.Series, kind: str, parts: int) -> NDArray[np.int32]:
    """Return the part of each row: equal users fall into one part, whatever their type."""
    ids = id_column(users)
    if (ids.dtype == pl.String) != (kind == "text"):
        ids = ids.cast(pl.String if kind == "text" else pl.Int64)
    high = ids.hash(seed=0).to_numpy() >> np.uint64(64 - _BITS)
    return ((high * np.uint64(parts)) >> np.uint64(_BITS)).astype(np.int32)


def gather(paths: Iterable[str], part: int, parts: int) -> pl.DataFrame:
    """Read one part's rows from all chunks, in the order of the files and rows they came from."""
    pieces = [piece for path in paths if (piece := _piece(Path(path), part, parts)) is not None]
    if not pieces:
        return pl.DataFrame()
    return pl.concat(pieces, how="vertical_relaxed", rechunk=True)


def _piece(path: Path, part: int, parts: int) -> pl.DataFrame | None:
    with path.open("rb") as file:
        file.seek(WORD * (part - parts - 1), 2)
        first, last = np.frombuffer(file.read(2 * WORD), np.int64).tolist()
        if first == last:
            return None
        file.seek(first)
        return pl.read_ipc_stream(file.read(last - first))
