"""The partition pass: rows of many files go to disk by a hash of their user, chunk by chunk.

A chunk's file holds a piece per part, one after the other; then where each piece ends, how many
rows each has, and a digest of each.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from unskew.arrays import I32, I64
from unskew.data.groups import grouped_order
from unskew.data.ratings import id_column
from unskew.engine.files import replacing
from unskew.errors import DataError
from unskew.evaluation.on_disk.parquet import Source

WORD = 8
DIGEST = 16
_TAIL = WORD + DIGEST
"""Bytes of a piece after where all of them end."""
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


def chunks_of(
    source: Source, step: int, folder: Path, parts: int, kind: str, sync: bool
) -> list[Chunk]:
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
            file.seek(max(size - WORD - _TAIL * chunk.parts, 0))
            last = np.frombuffer(file.read(WORD), np.int64)
    except (OSError, ValueError):
        return False
    return size == int(last[0]) + WORD * (chunk.parts + 1) + _TAIL * chunk.parts


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
    digests = []
    with replacing(chunk.path, sync=chunk.sync) as place, place.open("wb") as file:
        for number in range(parts):
            rows = frame.slice(int(start[number]), int(start[number + 1] - start[number]))
            piece = io.BytesIO()
            if rows.height:
                rows.write_ipc_stream(piece, compression="uncompressed")
            file.write(piece.getbuffer())
            digests.append(_digest(piece.getbuffer()))
            ends[number + 1] = file.tell()
        file.write(ends.tobytes())
        file.write(np.diff(start).astype(np.int64).tobytes())
        file.write(b"".join(digests))


def _digest(piece: bytes | memoryview) -> bytes:
    return hashlib.blake2b(piece, digest_size=DIGEST).digest()


def part_of(users: pl.Series, kind: str, parts: int) -> I32:
    """Return the part of each row: equal users fall into one part, whatever their type."""
    ids = id_column(users)
    if (ids.dtype == pl.String) != (kind == "text"):
        ids = ids.cast(pl.String if kind == "text" else pl.Int64)
    high = ids.hash(seed=0).to_numpy() >> np.uint64(64 - _BITS)
    return ((high * np.uint64(parts)) >> np.uint64(_BITS)).astype(np.int32)


def gather(paths: Iterable[str], part: int, parts: int) -> pl.DataFrame:
    """Read one part's rows from all chunks, in the order of the files and rows they came from."""
    pieces = list(pieces_of(paths, part, parts))
    if not pieces:
        return pl.DataFrame()
    return pl.concat(pieces, how="vertical_relaxed", rechunk=True)


def pieces_of(paths: Iterable[str], part: int, parts: int) -> Iterator[pl.DataFrame]:
    """Yield one part's rows chunk by chunk; DataError if they are not those that were written."""
    for path in paths:
        piece = _piece(Path(path), part, parts)
        if piece is not None:
            yield piece


def _piece(path: Path, part: int, parts: int) -> pl.DataFrame | None:
    with path.open("rb") as file:
        file.seek(WORD * (part - parts - 1) - _TAIL * parts, 2)
        first, last = np.frombuffer(file.read(2 * WORD), np.int64).tolist()
        file.seek(-DIGEST * (parts - part), 2)
        expected = file.read(DIGEST)
        there = 0 <= first <= last <= file.tell()
        file.seek(first if there else 0)
        content = file.read(last - first) if there else b""
    if not there or _digest(content) != expected:
        path.unlink(missing_ok=True)
        raise DataError(
            f"{path}: changed since it was written and therefore removed; run again: everything "
            "else is kept"
        )
    return pl.read_ipc_stream(content) if content else None


def piece_rows(path: Path, parts: int) -> I64:
    """Return the rows of every part's piece in the file of a chunk."""
    with path.open("rb") as file:
        file.seek(-_TAIL * parts, 2)
        return np.frombuffer(file.read(WORD * parts), np.int64)
