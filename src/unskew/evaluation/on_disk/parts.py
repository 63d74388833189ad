"""One part of the users: its rows become lists and judgments, these values, and these exact sums.

Sums are whole numbers (in units of 2**-1074), so that parts add up without rounding.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.groups import grouped_order
from unskew.data.ratings import id_column, recoded
from unskew.data.relevance import Relevance, paper_of
from unskew.engine.files import digest_of_file, read_sealed, replacing, write_sealed, write_table
from unskew.errors import DataError
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.on_disk.parquet import KIND, ParquetSource, in_kind, scan
from unskew.evaluation.scores import Scores, exact_sums
from unskew.evaluation.scoring import Measures, list_columns, prepare, score
from unskew.judging.judged import Judged
from unskew.judging.notes import Remark, SystemFacts, judgment_remarks, say_strangers
from unskew.judging.shape import Numbering
from unskew.metrics.names import Metric
from unskew.report.text import counted
from unskew.runs import Run

WORD = 8
DIGEST = 16
_TAIL = WORD + DIGEST
"""Bytes of a piece after where all of them end."""
_BITS = 24
MOST_PARTS = 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file, and where they go."""

    source: ParquetSource
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
    source: ParquetSource, step: int, folder: Path, parts: int, kind: str, sync: bool
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
    bounds = np.zeros(parts + 1, np.int64)
    digests = []
    with replacing(chunk.path, sync=chunk.sync) as path, path.open("wb") as file:
        for number in range(parts):
            rows = frame.slice(int(start[number]), int(start[number + 1] - start[number]))
            piece = io.BytesIO()
            if rows.height:
                rows.write_ipc_stream(piece, compression="uncompressed")
            file.write(piece.getbuffer())
            digests.append(_digest(piece.getbuffer()))
            bounds[number + 1] = file.tell()
        file.write(bounds.tobytes())
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


USERS = "users"
"""The folder of the values of each user."""
UNIT = 1 << 1074
"""Sums are counted in 1/UNIT, the smallest positive number."""


@dataclass(frozen=True)
class Job:
    """What all parts share."""

    judgments: ParquetSource
    runs: tuple[ParquetSource, ...]
    labels: tuple[str, ...]
    relevance: Relevance
    users: str
    undefined: str
    depth: int | None
    parts: int
    user_kind: str
    item_kind: str
    output: str
    budget: int
    chunks: tuple[tuple[str, ...], ...] | None = None
    """The files of the partition pass of each source; None where the given files are parts."""
    paper: str = ""
    """The paper whose conventions were asked for by its name."""

    @property
    def metrics(self) -> dict[str, Metric]:
        """What each label means."""
        return labelled(self.labels, paper_of(self.paper))

    @property
    def sources(self) -> tuple[ParquetSource, ...]:
        """Judgments and runs."""
        return (self.judgments, *self.runs)


def users_file(output: str | Path, part: int) -> Path:
    """Return where the values of a part's users are."""
    return Path(output) / USERS / f"{part:05d}.parquet"


def sums_file(output: str | Path, part: int) -> Path:
    """Return where a part's sums are; there, the part is done."""
    return Path(output) / "sums" / f"{part:05d}.json"


def judge_part(job: Job, part: int) -> None:
    """Judge the users of one part; write their values, then the sums."""
    metrics = job.metrics
    judged = prepare(_judged(job, part), metrics)
    results = score(judged.basis, judged.matched, metrics, threads=1, budget=job.budget)
    scores = Scores(
        labels=job.labels,
        systems=results,
        user_ids=judged.users,
        lists=list_columns(judged),
        users=job.users,
        undefined=job.undefined,
        order=job.labels,
    )
    values = users_file(job.output, part)
    table = scores.per_user().with_columns(pl.col("user").cast(KIND[job.user_kind]))
    write_table(table, values, "parquet")
    sums = {"sums": _sums(scores, judged), "values": digest_of_file(values)}
    write_sealed(sums_file(job.output, part), sums)


def read_part(output: str | Path, part: int) -> dict[str, Any] | None:
    """Return a part's sums and the digest of its values; None where they are not as written."""
    try:
        done = read_sealed(sums_file(output, part))
        is_intact = digest_of_file(users_file(output, part)) == done["values"]
    except (OSError, ValueError):
        return None
    return done if is_intact else None


def _judged(job: Job, part: int) -> Judged:
    """Lay a part's lists over its judgments; the rows they are made of are given back at once."""
    tests, *runs = (_read_rows(job, number, part) for number in range(len(job.sources)))
    systems = {source.name: run for source, run in zip(job.runs, runs, strict=True)}
    # Of a part of the users, a system may rank none.
    numbering = Numbering.of(tests, None, systems, None)
    return Judged.over(
        numbering,
        job.relevance,
        tests=tests,
        train=None,
        systems=systems,
        ties=job.judgments.reading.ties,
        depth=job.depth,
    )


def _read_rows(job: Job, number: int, part: int) -> Any:
    """Make judgments or lists of rows, with items in the kind in which they are compared."""
    source = job.sources[number]
    if job.chunks is not None:
        frame = gather(job.chunks[number], part, job.parts)
    else:
        frame = source.read(part)
        source.refuse_bad(frame, part, 0)
    try:
        if source.is_run:
            return _with_items(source.run(frame), job.item_kind)
        if source.kinds["item"] != job.item_kind and frame.height:
            item = pl.col(source.columns["item"])
            frame = frame.with_columns(item.cast(KIND[job.item_kind]))
        return source.ratings(frame)
    except DataError as problem:
        raise DataError(_with_place(source, frame, problem)) from None


def heaviest(job: Job, part: int) -> tuple[object, int]:
    """Return the user with most rows of a part, and how many; only chunks are held at a time."""
    counts = pl.DataFrame(schema={"user": KIND[job.user_kind], "count": pl.UInt32})
    for source, paths in zip(job.sources, job.chunks or (), strict=False):
        for piece in pieces_of(paths, part, job.parts):
            user = piece[source.columns["user"]].cast(KIND[job.user_kind]).alias("user")
            both_counts = pl.concat([counts, user.value_counts().cast({"count": pl.UInt32})])
            counts = both_counts.group_by("user").agg(pl.col("count").sum())
    user, rows = counts.sort("count", "user", descending=[True, False]).row(0)
    return user, rows


def _with_items(run: Run, kind: str) -> Run:
    items, table = in_kind(run.items, kind)
    if table is None:
        return run
    return replace(run, items=items, item=frozen(recoded(run.item, table)))


def _with_place(source: ParquetSource, frame: pl.DataFrame, problem: DataError) -> str:
    """Return what is wrong with a part's rows, and where in the files the first of them stand."""
    text = f"{source.name}: {str(problem).removeprefix('frame: ')}"
    for others in (("item",), ("rank",)):
        keys = [source.columns[role] for role in ("user", *others) if role in source.columns]
        if len(keys) < 2 or isinstance(frame[keys[1]].dtype, pl.List | pl.Array):
            continue
        twice = frame.select(keys).filter(pl.struct(keys).is_duplicated())
        if twice.height:
            # The least, as in the message: ids are looked at in their order.
            first = twice.sort(keys).row(0)
            places = source.places(dict(zip(("user", *others), first, strict=True)))
            return f"{text}: {places}"
    return text


def _sums(scores: Scores, judged: Judged) -> dict[str, Any]:
    """Return everything about a part that the whole needs."""
    tested = scores.lists["test"].to_numpy() > 0
    liked = scores.lists["liked"].to_numpy()
    rated = np.zeros(len(judged.judgments.items), np.bool_)
    rated[judged.judgments.item] = True
    systems = {}
    for name, system in scores.systems.items():
        keep = scores.averaged(name)
        listed = system.depth > 0
        matched = judged.matched[name]
        systems[name] = {
            "metrics": _moments(system.values, keep),
            "without": int(np.count_nonzero(tested & ~listed)),
            "unjudged": int(np.count_nonzero(~tested & listed)),
            "lists": int(np.count_nonzero(listed)),
            "deepest": int(system.depth.max(initial=0)),
            "users met": int(np.count_nonzero(tested & listed)),
            "items met": int(np.count_nonzero(rated[matched.from_run])),
        }
    return {
        "users": int(tested.size),
        "judgments": len(judged.judgments),
        "disliked": int(scores.lists["disliked"].sum()),
        "nothing liked": int(np.count_nonzero(tested & (liked == 0))),
        "systems": systems,
    }


def _moments(values: F64, keep: Mask) -> list[list[int]]:
    """Return of each row, over what is kept: sum, sum of squares, values defined, values NaN."""
    square = values * values
    # Dekker's product: what the rounding of the square left out, exactly.
    high = 134217729.0 * values
    high = high - (high - values)
    low = values - high
    remainder = ((high * high - square) + 2.0 * high * low) + low * low
    sums, squares, rests = (exact_sums(part, keep) for part in (values, square, remainder))
    return [
        [total, power[0] + more[0], defined, missing]
        for (total, defined, missing), power, more in zip(sums, squares, rests, strict=True)
    ]


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the sums of parts, in any order."""
    total: dict[str, Any] = {}
    for part in parts:
        total = _added(total, part) if total else dict(part)
    return total


def _added(first: Any, second: Any, key: str = "") -> Any:
    if isinstance(first, Mapping):
        return {name: _added(first[name], second[name], name) for name in first}
    if isinstance(first, list):
        return [_added(a, b) for a, b in zip(first, second, strict=True)]
    return max(first, second) if key == "deepest" else first + second


def meet(job: Job, sums: Mapping[str, Any]) -> list[str]:
    """Refuse a run that shares no user with the judgments; say which ones share no item."""
    notes = []
    for source in job.runs:
        met = sums["systems"][source.name]
        if not met["users met"]:
            raise DataError(f"{source.name}: {_strangers(job, source, 'user')}")
        if not met["items met"] and not share_items(job, source):
            notes.append(f"{source.name}: {_strangers(job, source, 'item')}")
    return notes


def _strangers(job: Job, source: ParquetSource, role: str) -> str:
    mine, theirs = ((side.kinds[role], _some_ids(side, role)) for side in (source, job.judgments))
    return say_strangers(f"{role}s", mine, theirs)


def share_items(job: Job, source: ParquetSource) -> bool:
    """Look for a common item beyond parts: no part had one, which is rare but possible."""

    def items(source_: ParquetSource) -> pl.LazyFrame:
        column = pl.col(source_.columns["item"])
        if isinstance(scan(source_.files[:1]).collect_schema()[source_.columns["item"]], pl.List):
            column = column.explode()
        return scan(source_.files).select(item=column.cast(pl.String)).unique()

    shared = items(source).join(items(job.judgments), on="item", how="semi").head(1)
    return bool(shared.collect(engine="streaming").height)


def _some_ids(source: ParquetSource, role: str) -> str:
    ids = source.read(0, 0, 1000)[source.columns[role]]
    if isinstance(ids.dtype, pl.List | pl.Array):
        ids = ids.explode()
    return ", ".join(repr(value) for value in ids.unique().sort().head(3))


def file_notes(job: Job) -> list[str]:
    """Return what the files are, a line each."""
    notes = []
    for source in job.sources:
        names = ", ".join(f"{what} = {column}" for what, column in source.columns.items())
        files = "1 file" if len(source.files) == 1 else f"{len(source.files):,} files"
        notes.append(f"{source.name}: parquet, {files}, {counted(source.total, 'row')}; {names}")
    return notes


def remarks(job: Job, metrics: Mapping[str, Metric], sums: Mapping[str, Any]) -> list[Remark]:
    """Return what a reader of the numbers should know, as `evaluate` says it."""
    looked_at = Measures.of(metrics).attention
    remarks: list[Remark] = []
    for name, facts in sums["systems"].items():
        counted = SystemFacts(
            deepest=facts["deepest"],
            without_list=facts["without"],
            without_test=facts["unjudged"],
        )
        remarks += counted.remarks(name, job.users, looked_at)
    remarks += judgment_remarks(sums["disliked"], sums["nothing liked"], looked_at.needs_disliked)
    return remarks
