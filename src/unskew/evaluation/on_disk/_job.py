"""An evaluation of files on disk: what is done, what is left to do, and who does it."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.engine.files import check_links, read_sealed, write_sealed
from unskew.engine.progress import Progress
from unskew.engine.remote import check_local
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import DataError, SettingError, UnskewError
from unskew.evaluation.on_disk import parquet
from unskew.evaluation.on_disk.parquet import ParquetSource, scan
from unskew.evaluation.on_disk.parts import (
    MOST_PARTS,
    USERS,
    Chunk,
    Job,
    chunks_of,
    heaviest,
    is_spilled,
    judge_part,
    merged,
    piece_rows,
    read_part,
    spill,
    users_file,
)
from unskew.report.text import counted

if TYPE_CHECKING:
    from distributed import Client

    from unskew.engine.process_pool import Outcome


FORMAT = 3
JOB = "job.json"
"""The file that says what a folder holds an evaluation of."""
# How many times its size in a file's columns a row takes while it is worked on: measured.
_PER_PART = 5.0
_PER_CHUNK = 5.0
# How much larger than the average a part may be: users are not alike.
_UNEVEN = 1.25
_MOST_CHUNK = 4_000_000
_LEAST_CHUNK = 10_000
_EASY_PART = 2_000_000
"""Rows of a part from which more parts are made, memory or not: it keeps workers evenly busy."""


@dataclass
class Workers:
    """Who does the work: threads of this process, or the workers of a cluster."""

    count: int
    client: Any = None
    sign: Path = Path()
    """A file by which workers elsewhere know that they see the output folder."""
    _context: Any = None

    @classmethod
    def of(cls, workers: int | None, cluster: str | Client | None) -> Workers:
        if cluster is None:
            if workers is not None and workers < 1:
                raise SettingError(f"workers must be at least 1, got {workers}")
            return cls(resolve(workers))
        if workers is not None:
            raise SettingError("a cluster has its own workers: leave workers=… out")
        from unskew.engine.cluster import connect, workers_of

        context = connect(cluster)
        client = context.__enter__()
        return cls(max(workers_of(client), 1), client, _context=context)

    @property
    def threads(self) -> int:
        """How many work in one process, and share its memory."""
        return self.count if self.client is None else 1

    def alone(self) -> Workers:
        """Return one worker with the memory of all of this process; a cluster as it is."""
        return replace(self, count=1) if self.client is None else self

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *problem: Any) -> None:
        if self._context is not None:
            self._context.__exit__(*problem)

    def do(
        self, function: Callable[[Any], None], tasks: list[Any], advance: Callable[[], None]
    ) -> None:
        """Do all tasks; of those that fail raise the first, and start none after it."""
        if self.client is None:
            self._here(function, tasks, advance)
        else:
            self._there(function, tasks, advance)

    def _here(
        self, function: Callable[[Any], None], tasks: list[Any], advance: Callable[[], None]
    ) -> None:
        failed: dict[int, BaseException] = {}

        def block(number: int) -> None:
            if failed and number > min(failed):
                return
            try:
                function(tasks[number])
            except BaseException as problem:
                failed[number] = problem
            else:
                advance()

        with _interrupts(failed):
            map_blocks(block, range(len(tasks)), self.count)
        if failed:
            raise failed[min(failed)]

    def _there(
        self, function: Callable[[Any], None], tasks: list[Any], advance: Callable[[], None]
    ) -> None:
        from unskew.engine.cluster import over

        for outcome in over(self.client, partial(_reporting, function, self.sign), tasks):
            _must_have_worked(outcome)
            advance()


@contextmanager
def _interrupts(failed: dict[int, BaseException]) -> Iterator[None]:
    """Take an interrupt as a failure before all tasks: what is begun ends, nothing more begins."""

    def stop(*_: object) -> None:
        failed[-1] = KeyboardInterrupt()

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # in a thread, which interrupts do not reach
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reporting(function: Callable[[Any], None], sign: Path, task: Any) -> UnskewError | None:
    """Do a task of a cluster; an error in the data is a result, because it has words of its own."""
    if not sign.exists():
        return DataError(
            f"a worker of the cluster does not see {sign.parent}: workers must see the files and "
            f"the output folder under the same names"
        )
    try:
        function(task)
    except UnskewError as problem:
        return problem
    return None


def _must_have_worked(outcome: Outcome) -> None:
    if outcome.failure is not None:
        raise RuntimeError(
            f"a part could not be evaluated; finished parts are kept.\n{outcome.failure}"
        )
    if outcome.result is not None:
        raise outcome.result


@dataclass
class Work:
    """An evaluation on disk: what is done, and what is left to do."""

    job: Job
    chunks: list[Chunk]
    hands: Workers
    facts: dict[str, Any]
    digests: dict[str, str] = field(default_factory=dict)
    """Of the files with the values of each user, once all are there."""

    @property
    def folder(self) -> Path:
        return Path(self.job.output)

    @property
    def is_finished(self) -> bool:
        return (self.folder / "card.json").exists()

    @classmethod
    def open(cls, job: Job, by_user: bool, hands: Workers) -> Work:
        """Begin in an empty folder, or go on in one that holds the same evaluation."""
        folder = Path(job.output)
        facts = _facts(job, by_user)
        plan = hands.sign = folder / JOB
        if plan.exists():
            saved = _held(plan)
            if saved["facts"] != facts:
                wrong = next(k for k in facts if saved["facts"].get(k) != facts[k])
                raise SettingError(
                    f"{folder} holds another evaluation ({wrong} differs): give another output, or "
                    f"remove it"
                )
            layout = saved["layout"]
            if layout["boot"] != _boot():  # what the disk was not waited for may be gone
                shutil.rmtree(folder / "parts", ignore_errors=True)
                layout["boot"] = _boot()
                write_sealed(plan, {"facts": facts, "layout": layout})
        else:
            check_folder(folder)
            layout = _layout(job, by_user, hands)
            write_sealed(plan, {"facts": facts, "layout": layout})
        chunks: list[list[Chunk]] = []
        if not by_user:
            sync = hands.client is not None
            chunks = [
                chunks_of(
                    source,
                    step,
                    folder / "parts" / f"{number:03d}",
                    layout["parts"],
                    job.user_kind,
                    sync,
                )
                for number, (source, step) in enumerate(
                    zip(job.sources, layout["steps"], strict=True)
                )
            ]
            paths = tuple(tuple(chunk.path for chunk in group) for group in chunks)
            job = replace(job, chunks=paths)
        job = replace(job, parts=layout["parts"])
        return cls(job, [chunk for group in chunks for chunk in group], hands, facts)

    def done(self, progress: Progress | None) -> dict[str, Any]:
        """Do what is left to do; return the sums of all parts, and digests of their values."""
        job = self.job
        parts = [part for part in range(job.parts) if read_part(job.output, part) is None]
        chunks = [chunk for chunk in self.chunks if parts and not is_spilled(chunk)]
        finished, total = 0, len(chunks) + len(parts)

        def advance() -> None:
            nonlocal finished
            finished += 1
            if progress is not None:
                progress(finished, total)

        self.hands.do(spill, chunks, advance)
        light, heavy = self._by_weight(parts)
        self.hands.do(partial(judge_part, job), light, advance)
        self.hands.alone().do(partial(judge_part, job), heavy, advance)
        if job.chunks is None:
            _refuse_scattered(job)
        done = [self._part(part) for part in range(job.parts)]
        self.digests = {
            f"{USERS}/{users_file(job.output, part).name}": part_done["values"]
            for part, part_done in enumerate(done)
        }
        return merged(part["sums"] for part in done)

    def _by_weight(self, parts: list[int]) -> tuple[list[int], list[int]]:
        """Tell the parts that a worker has room for from those that need the room of all."""
        if not parts or self.job.chunks is None:  # given files were looked at before
            return parts, []
        needs = self._needs()
        heavy = [part for part in parts if needs[part] > self.job.budget]
        for part in heavy:
            self._refuse_too_heavy(part, float(needs[part]))
        return [part for part in parts if needs[part] <= self.job.budget], heavy

    def _needs(self) -> F64:
        """Estimate the memory to judge each part, from the rows that were brought there."""
        job = self.job
        needs = np.zeros(job.parts)
        for source, paths in zip(job.sources, job.chunks or (), strict=False):
            rows = sum((piece_rows(Path(path), job.parts) for path in paths), np.zeros(job.parts))
            needs += rows * _need(job, source, 1)
        return needs

    def _refuse_too_heavy(self, part: int, need: float) -> None:
        """Refuse a part that all workers' memory together does not hold."""
        job = self.job
        available = job.budget * self.hands.threads
        if need <= available:
            return
        user, rows = heaviest(job, part)
        more = math.ceil((need - available) / 2**20)
        raise SettingError(
            f"a part of the users needs about {need / 2**20:,.0f} MiB, but "
            f"{available / 2**20:,.0f} MiB are available. User {user!r} has the most rows in it, "
            f"{rows:,}, and the rows of one user are evaluated together. Run again with at least "
            f"{more:,} MiB more memory: finished parts are kept"
        )

    def _part(self, part: int) -> dict[str, Any]:
        done = read_part(self.job.output, part)
        if done is None:
            raise DataError(
                f"{users_file(self.job.output, part)}: gone or changed since it was written; run "
                "again: everything else is kept"
            )
        return done

    def clear(self) -> None:
        """Remove what was in between."""
        for name in ("parts", "sums"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for left in (self.folder / USERS).glob(".*.part"):  # by a run that was killed
            left.unlink(missing_ok=True)


def check_folder(output: str | os.PathLike[str]) -> None:
    """Refuse a folder that holds something which is no evaluation."""
    check_local("output", output)
    check_links(output)
    folder = Path(output)
    if (folder / JOB).exists() or not folder.exists():
        return
    if any(inside.name != parquet.FOLDER for inside in folder.iterdir()):
        raise SettingError(f"{folder} is not empty: give a new folder as output")


def _held(plan: Path) -> dict[str, Any]:
    """Return what an output folder holds an evaluation of."""
    try:
        return read_sealed(plan)
    except (OSError, ValueError) as problem:
        raise DataError(
            f"{plan.parent}: cannot go on ({problem}): remove it, or give another output"
        ) from None


def _facts(job: Job, by_user: bool) -> dict[str, Any]:
    """Return what makes this evaluation what it is, as plain values."""

    def about(source: ParquetSource) -> dict[str, Any]:
        stats = [(path, Path(path).stat()) for path in source.files]
        files = [[path, stat.st_size, stat.st_mtime_ns] for path, stat in stats]
        return {"rows": source.total, "columns": dict(source.columns), "files": files}

    how = job.judgments.reading
    facts = {
        "format": FORMAT,
        "judgments": about(job.judgments),
        "systems": {source.name: about(source) for source in job.runs},
        "metrics": {label: str(metric) for label, metric in job.metrics.items()},
        "relevance": job.relevance.describe(),
        "averaged": [job.users, job.undefined],
        "depth": job.depth,
        "reading": [how.duplicates, how.repeated, how.nan, how.by, how.ties, how.seed],
        "by_user": by_user,
        "polars": pl.__version__,  # its hash says which part a user is in
    }
    return dict(json.loads(json.dumps(facts)))


def _layout(job: Job, by_user: bool, hands: Workers) -> dict[str, Any]:
    """Choose how many parts there are and how many rows are brought there at once."""
    if by_user:
        return {"parts": _given_parts(job), "steps": [], "boot": _boot()}
    rows = sum(source.total for source in job.sources)
    needed = sum(_need(job, source, source.total) for source in job.sources)
    easy = min(-(-rows // _EASY_PART), 4 * hands.count) if rows > _EASY_PART else 1
    parts = max(math.ceil(needed * _UNEVEN / job.budget), easy)
    if parts > MOST_PARTS:
        raise SettingError(
            f"{counted(rows, 'row')} would need {parts:,} parts, more than {MOST_PARTS:,}: give "
            "more memory"
        )
    steps = [
        max(min(int(_room(job, source) / (_PER_CHUNK * source.width)), _MOST_CHUNK), _LEAST_CHUNK)
        for source in job.sources
    ]
    return {"parts": parts, "steps": steps, "boot": _boot()}


def _room(job: Job, source: ParquetSource) -> int:
    """Return what is left for the rows of a chunk beside the row group that they are read from."""
    return job.budget - max(source.row_bytes)


def _need(job: Job, source: ParquetSource, rows: int) -> float:
    """Estimate the memory to judge some rows: what is read and made of them, and the values."""
    values = 8.0 * (len(job.labels) + 6) / 5  # at least so many rows for each user's values
    return rows * (_PER_PART * source.width + values)


def _given_parts(job: Job) -> int:
    """Check that files can be parts: as many of each source, none too large."""
    parts = len(job.judgments.files)
    for source in job.runs:
        if len(source.files) != parts:
            raise DataError(
                f"by_user: {source.name} has {counted(len(source.files), 'file')} and the "
                f"judgments have {parts}; they must be the same parts of the users"
            )
    for part in range(parts):
        needed = sum(_need(job, source, source.rows[part]) for source in job.sources)
        if needed > job.budget:
            raise SettingError(
                f"by_user: part {part + 1} ({job.judgments.files[part]}) needs about "
                f"{needed / 2**30:.1f} GiB, and a worker has {job.budget / 2**30:.1f}: give more "
                f"memory, fewer workers, or leave by_user out"
            )
    return parts


def _refuse_scattered(job: Job) -> None:
    """Refuse files that were said to be parts by user, when a user is in two of them."""
    files = [str(users_file(job.output, part)) for part in range(job.parts)]
    first = job.runs[0].name  # every system has a row for every user of its part
    users = scan(files).filter(pl.col("system") == first).select("user")
    rows = int(users.select(pl.len()).collect().item())
    turns = max(math.ceil(rows * 64 / job.budget), 1)
    for turn in range(turns):
        mine = pl.col("user").hash(seed=0) % turns == turn
        twice = users.filter(mine).filter(pl.col("user").is_duplicated()).collect()
        if twice.height:
            user = twice.sort("user").item(0, 0)
            places = [
                f"{source.name}: {source.places({'user': user}, 1)}"
                for source in job.sources
                if source.places({"user": user}, 1)
            ]
            raise DataError(
                f"by_user: {counted(twice['user'].n_unique(), 'user is', 'users are')} in more "
                f"than one part, the first: {user!r} ({'; '.join(places)}); leave by_user out"
            )


def _boot() -> str:
    """Return what tells one start of this machine from the next, where that is known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
