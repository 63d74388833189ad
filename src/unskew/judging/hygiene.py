"""`hygiene`: what is wrong with lists before any metric is computed, counted, with the policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.checks import as_count, checked
from unskew.errors import SettingError
from unskew.judging.judge import DataOptions, as_judged, name_systems
from unskew.judging.judged import Judged, Need
from unskew.judging.shape import Matched
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.runs import Run, read_run
from unskew.targets.lists import TargetLists

POLICIES = {
    "duplicate items": "refused, or best place kept",
    "items without a score": "refused, or left out",
    "empty places": "take a place, not liked",
    "items outside the catalogue": "take a place, not liked",
    "training items": "take a place",
    "tied items": "ordered, or averaged",
    "lists in which all scores are equal": "ordered, or averaged",
    "short lists": "missing places are not liked",
    "users without a list": "score 0, or left out",
    "lists of users without test data": "left out, or averaged",
}
"""What is counted, and what becomes of it."""


@dataclass(frozen=True)
class Finding:
    """How often one thing is wrong with the lists of a system."""

    system: str
    check: str
    count: int
    total: int
    """Items, lists or users of which these are."""
    lists: int | None
    """In how many lists; None where lists themselves are counted, or it is not known."""


@dataclass(frozen=True, eq=False, repr=False)
class Hygiene(Result):
    """What is wrong with the lists of each system. Made by `hygiene`."""

    findings: tuple[Finding, ...]
    systems: tuple[str, ...]
    k: int | None
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per system and check.

        Columns: system, check, count, of (items, lists or users in all), share, lists (in how
        many lists), policy (what `evaluate` makes of it).
        """
        rows = [
            {
                "system": finding.system,
                "check": finding.check,
                "count": finding.count,
                "of": finding.total,
                "share": finding.count / finding.total if finding.total else None,
                "lists": finding.lists,
                "policy": POLICIES[finding.check],
            }
            for finding in self.findings
        ]
        integers = dict.fromkeys(("count", "of", "lists"), pl.Int64)
        texts = dict.fromkeys(("system", "check", "policy"), pl.String)
        order = ("system", "check", "count", "of", "share", "lists", "policy")
        kinds = {**texts, **integers, "share": pl.Float64}
        return pl.DataFrame(rows, schema={name: kinds[name] for name in order})

    def display_table(self) -> pl.DataFrame:
        """Return what occurs at least once."""
        return self.table().filter(pl.col("count") > 0)

    def _explanation(self) -> list[str]:
        clean = [
            name
            for name in self.systems
            if not any(finding.count for finding in self.findings if finding.system == name)
        ]
        lines = [f"nothing is wrong with the lists of {', '.join(clean)}"] if clean else []
        against = "the longest list of the system" if self.k is None else f"{self.k} items"
        return [*lines, f"a list is short if it is shorter than {against}"]

    def _summary(self) -> str:
        seen = sum(finding.count > 0 for finding in self.findings)
        return f"{counted(len(self.systems), 'system')}, {counted(seen, 'finding')}"


@checked
def hygiene(
    judgments: object,
    runs: object = None,
    *,
    k: int | None = None,
    seed: int = 0,
    **data: Unpack[DataOptions],
) -> Hygiene:
    """Count what is wrong with ranked lists, also generated ones, and say what becomes of it.

    Duplicates in a list, items outside the catalogue, training items, short and missing lists,
    lists of users without test data, missing, tied and constant scores.

    Parameters
    ----------
    judgments, runs
        Judged data (`judge`) alone, or raw data as `judge` takes them: test ratings, and ranked
        lists by system. Raw lists with duplicates and without scores are read, and counted.
    k
        A list of fewer items is short; the longest list of the system unless given.
    seed
        For `ties="random"`.
    **data
        Of raw data, see `judge`: liked, above, gain, loss, relevance, train, items, ties, depth.
        Items outside the catalogue are counted where `items` or `train` is given.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 2, 3], "item": ["a", "b", "c"], "rating": [5, 4, 5]}
    >>> lists = {1: ["a", "a", "x"], 2: ["b"]}
    >>> found = us.judging.hygiene(test, {"llm": lists}, liked=4, items=["a", "b", "c"])
    >>> found.display_table().select("check", "count", "of").rows()
    [('duplicate items', 1, 4), ('items outside the catalogue', 1, 3), ('short lists', 1, 2), \
('users without a list', 1, 3)]
    """
    if k is not None:
        as_count("k", k)
    if not isinstance(judgments, Judged) and runs is not None:
        if isinstance(judgments, TargetLists):
            raise SettingError("judge target lists first: hygiene(judge(lists, runs))")
        runs = {
            name: read_run(source, ties=data.get("ties"), seed=seed, duplicates="first", nan="drop")
            for name, source in name_systems(runs).items()
        }
    judged = as_judged(judgments, runs, seed=seed, may_tie=True, **data)
    judged = judged.prepare(Need(catalogue="known"))
    models = [name for name, system in judged.systems.items() if not isinstance(system, Run)]
    if models:
        raise SettingError(
            f"{', '.join(models)}: a model ranks the targets that it is asked for; hygiene is for "
            "ready-made runs"
        )
    findings = tuple(
        finding
        for name, matched in judged.matched.items()
        for finding in _findings(name, matched, judged, k)
    )
    return Hygiene(findings, tuple(judged.systems), k, judged.notes)


def _findings(name: str, matched: Matched, judged: Judged, k: int | None) -> Iterator[Finding]:
    """Count everything of one system."""
    run, counts = matched.run, matched.run.counts
    places, lists = int((matched.stop - matched.start).sum()), int(np.count_nonzero(run.depth))

    def find(check: str, counts: I64, total: int) -> Finding:
        return Finding(name, check, int(counts.sum()), total, int(np.count_nonzero(counts)))

    places_read = int(run.start[-1]) + counts.duplicates + counts.without_score
    yield Finding(name, "duplicate items", counts.duplicates, places_read, counts.duplicate_lists)
    if counts.was_scored:
        yield Finding(name, "items without a score", counts.without_score, places_read, None)
    assert judged.basis.catalogue is not None
    empty, outside, trained, _ = matched.count_slots(judged.basis.catalogue, judged.basis.train)
    yield find("empty places", empty, places)
    if judged.items is not None or judged.train is not None:
        yield find("items outside the catalogue", outside, places)
    if judged.train is not None:
        yield find("training items", trained, places)
    ties = run.tie_counts or counts.ties
    if ties is not None:
        yield Finding(name, "tied items", ties.tied, int(run.start[-1]), None)
        yield Finding(name, "lists in which all scores are equal", ties.constant, lists, None)
    longest = int(run.depth.max(initial=0))
    short = (run.depth > 0) & (run.depth < (longest if k is None else k))
    yield Finding(name, "short lists", int(short.sum()), lists, None)
    tested = np.diff(judged.judgments.start) > 0
    listed = matched.stop > matched.start
    users = int(np.count_nonzero(tested))
    yield Finding(name, "users without a list", int((tested & ~listed).sum()), users, None)
    strangers = int((listed & ~tested).sum())
    yield Finding(name, "lists of users without test data", strangers, lists, None)
