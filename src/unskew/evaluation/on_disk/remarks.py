"""What is known only of the whole: whether ids meet, and what its reader should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from unskew.errors import DataError
from unskew.evaluation.on_disk.parquet import Source, scan
from unskew.evaluation.on_disk.parts import Job
from unskew.evaluation.scoring import attention
from unskew.judging.remarks import Remark, SystemFacts, judgment_remarks, say_strangers
from unskew.metrics.names import Metric
from unskew.report.text import counted


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


def file_notes(job: Job) -> list[str]:
    """Return what the files are, a line each."""
    notes = []
    for source in job.sources:
        names = ", ".join(f"{what} = {column}" for what, column in source.columns.items())
        files = "1 file" if len(source.files) == 1 else f"{len(source.files):,} files"
        notes.append(f"{source.name}: parquet, {files}, {counted(source.total, 'row')}; {names}")
    return notes


def remarks(job: Job, wanted: Mapping[str, Metric], sums: Mapping[str, Any]) -> list[Remark]:
    """Return what a reader of the numbers should know, as `evaluate` says it."""
    looked_at = attention(wanted)
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
