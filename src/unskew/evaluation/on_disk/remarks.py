"""What is known only of the whole: whether ids meet, and what its reader should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from unskew.errors import DataError
from unskew.evaluation.on_disk.parquet import Source, scan
from unskew.evaluation.on_disk.parts import Job
from unskew.evaluation.scoring import say_blind, say_strangers
from unskew.metrics.names import Metric


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


def _strangers(job: Job, source: Source, role: str) -> str:
    mine, theirs = ((one.kinds[role], _some_ids(one, role)) for one in (source, job.judgments))
    return say_strangers(f"{role}s", mine, theirs)


def share_items(job: Job, source: Source) -> bool:
    """Look for a common item beyond parts: no part had one, which is rare but possible."""

    def items(one: Source) -> pl.LazyFrame:
        column = pl.col(one.columns["item"])
        if isinstance(scan(one.files[:1]).collect_schema()[one.columns["item"]], pl.List):
            column = column.explode()
        return scan(one.files).select(item=column.cast(pl.String)).unique()

    both = items(source).join(items(job.judgments), on="item", how="semi").head(1)
    return bool(both.collect(engine="streaming").height)


def _some_ids(source: Source, role: str) -> str:
    ids = source.read(0, 0, 1000)[source.columns[role]]
    if isinstance(ids.dtype, pl.List | pl.Array):
        ids = ids.explode()
    return ", ".join(repr(value) for value in ids.unique().sort().head(3))


def grave_notes(wanted: Mapping[str, Metric], sums: Mapping[str, Any]) -> list[str]:
    """Return what a reader of the numbers must know."""
    grave = []
    for name, facts in sums["systems"].items():
        deepest = facts["deepest"]
        beyond = [k for k, m in wanted.items() if m.cutoff is not None and m.cutoff > deepest]
        if beyond:
            grave.append(
                f"{name}: the lists hold at most {deepest} items, fewer than the cutoff of "
                f"{', '.join(beyond)}"
            )
    warning = "" if sums["disliked"] else say_blind(wanted)
    return [*grave, warning] if warning else grave


def remarks(job: Job, wanted: Mapping[str, Metric], sums: Mapping[str, Any]) -> list[str]:
    """Return what a reader of the numbers should know."""
    notes = []
    for source in job.sources:
        names = ", ".join(f"{what} = {column}" for what, column in source.columns.items())
        files = "1 file" if len(source.files) == 1 else f"{len(source.files):,} files"
        notes.append(f"{source.name}: parquet, {files}, {source.total:,} rows; {names}")
    for name, facts in sums["systems"].items():
        if any(metric.condensed for metric in wanted.values()):
            notes.append(
                f"{name}: condensed metrics see the first {facts['deepest']} items of each list; "
                f"judged items below were not seen"
            )
        if facts["without"]:
            left = job.users in ("both", "with-list")
            how = "left out of the means" if left else "they score 0"
            notes.append(f"{name}: {facts['without']:,} users with test data have no list; {how}")
        if facts["unjudged"]:
            how = "score 0" if job.users in ("all", "with-list") else "are not averaged"
            notes.append(f"{name}: {facts['unjudged']:,} lists of users without test data {how}")
    if sums["nothing liked"]:
        notes.append(f"{sums['nothing liked']:,} users with test data have no liked item")
    return notes
