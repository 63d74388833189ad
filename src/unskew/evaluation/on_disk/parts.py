"""One part of the users: its rows become lists and judgments, these values, and these exact sums.

Sums are whole numbers (in units of 2**-1074), so that parts add up without rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask, frozen
from unskew.data.papers import paper_of
from unskew.data.ratings import recoded
from unskew.data.relevance import Relevance
from unskew.engine.files import digest_of_file, read_sealed, write_sealed, write_table
from unskew.errors import DataError
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.on_disk.parquet import KIND, Source, in_kind
from unskew.evaluation.on_disk.shuffle import gather, pieces_of
from unskew.evaluation.scores import Scores, exact_sums
from unskew.evaluation.scoring import list_columns, prepare, score
from unskew.judging.judged import Judged
from unskew.judging.numbering import Numbering
from unskew.metrics.names import Metric
from unskew.runs import Run

USERS = "users"
"""The folder of the values of each user."""
UNIT = 1 << 1074
"""Sums are counted in 1/UNIT, the smallest positive number."""


@dataclass(frozen=True)
class Job:
    """What all parts share."""

    judgments: Source
    runs: tuple[Source, ...]
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
    def sources(self) -> tuple[Source, ...]:
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
    wanted = job.metrics
    judged = prepare(_judged(job, part), wanted)
    results = score(judged.basis, judged.matched, wanted, threads=1, budget=job.budget)
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
    write_table(_values(job, scores), values, "parquet")
    sums = {"sums": _sums(scores, judged), "values": digest_of_file(values)}
    write_sealed(sums_file(job.output, part), sums)


def read_part(output: str | Path, part: int) -> dict[str, Any] | None:
    """Return a part's sums and the digest of its values; None where they are not as written."""
    try:
        done = read_sealed(sums_file(output, part))
        whole = digest_of_file(users_file(output, part)) == done["values"]
    except (OSError, ValueError):
        return None
    return done if whole else None


def _judged(job: Job, part: int) -> Judged:
    """Lay a part's lists over its judgments; the rows they are made of are given back at once."""
    tests, *runs = (_made(job, number, part) for number in range(len(job.sources)))
    systems = {source.name: run for source, run in zip(job.runs, runs, strict=True)}
    # Of a part of the users, a system may rank none.
    numbering = Numbering.of(tests, None, systems, None, must_meet=False)
    return Judged.over(
        numbering,
        job.relevance,
        tests=tests,
        train=None,
        systems=systems,
        ties=job.judgments.reading.ties,
        depth=job.depth,
    )


def _made(job: Job, number: int, part: int) -> Any:
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
        raise DataError(_told(source, frame, problem)) from None


def heaviest(job: Job, part: int) -> tuple[object, int]:
    """Return the user with most rows of a part, and how many; only chunks are held at a time."""
    counts = pl.DataFrame(schema={"user": KIND[job.user_kind], "count": pl.UInt32})
    for source, paths in zip(job.sources, job.chunks or (), strict=False):
        for piece in pieces_of(paths, part, job.parts):
            user = piece[source.columns["user"]].cast(KIND[job.user_kind]).alias("user")
            both = pl.concat([counts, user.value_counts().cast({"count": pl.UInt32})])
            counts = both.group_by("user").agg(pl.col("count").sum())
    user, rows = counts.sort("count", "user", descending=[True, False]).row(0)
    return user, rows


def _with_items(run: Run, kind: str) -> Run:
    items, table = in_kind(run.items, kind)
    if table is None:
        return run
    return replace(run, items=items, item=frozen(recoded(run.item, table)))


def _told(source: Source, frame: pl.DataFrame, problem: DataError) -> str:
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


def _values(job: Job, scores: Scores) -> pl.DataFrame:
    """Return a row per system and user: what is known of the list, and a column per metric."""
    return scores.per_user().with_columns(pl.col("user").cast(KIND[job.user_kind]))


def _sums(scores: Scores, judged: Judged) -> dict[str, Any]:
    """Return everything about a part that the whole needs."""
    tested = scores.lists["test"].to_numpy() > 0
    liked = scores.lists["liked"].to_numpy()
    known = np.zeros(len(judged.judgments.items), np.bool_)
    known[judged.judgments.item] = True
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
            "items met": int(np.count_nonzero(known[matched.from_run])),
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
    rest = ((high * high - square) + 2.0 * high * low) + low * low
    sums, squares, rests = (exact_sums(part, keep) for part in (values, square, rest))
    return [
        [total, power[0] + more[0], defined, missing]
        for (total, defined, missing), power, more in zip(sums, squares, rests, strict=True)
    ]


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the sums of parts, in any order."""
    whole: dict[str, Any] = {}
    for part in parts:
        whole = _added(whole, part) if whole else dict(part)
    return whole


def _added(one: Any, other: Any, key: str = "") -> Any:
    if isinstance(one, Mapping):
        return {name: _added(one[name], other[name], name) for name in one}
    if isinstance(one, list):
        return [_added(a, b) for a, b in zip(one, other, strict=True)]
    return max(one, other) if key == "deepest" else one + other
