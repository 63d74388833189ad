"""`hygiene`: what is wrong with lists before any metric is computed, counted, with the policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

import numpy as np

from unskew.arrays import I64
from unskew.checks import as_count, checked
from unskew.errors import SettingError
from unskew.judging.judge import DataOptions, as_judged, name_systems
from unskew.judging.judged import Judged, Need
from unskew.judging.shape import Matched
from unskew.report.columns import SYSTEM, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates
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


HYGIENE = Question(
    name="what is wrong with lists",
    columns=(
        *(SYSTEM, Column("check", "key"), Column("count", "count"), Column("of", "count")),
        *(Column("value", "value", "share"), Column("lists", "count"), Column("policy", "note")),
    ),
    method=Method(estimand="the share of items, lists or users with which something is wrong"),
    display=("findings",),
    figures=(Drawing(kind="bars", part="findings"),),
)
"""`of`: items, lists or users in all; `lists`: in how many lists, where that is known."""

Finding = tuple[str, int, int, int | None]
"""A check, how often it fails, of how many, and in how many lists."""


@checked
def hygiene(
    judgments: object,
    runs: object = None,
    *,
    k: int | None = None,
    seed: int = 0,
    **data: Unpack[DataOptions],
) -> Estimates:
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

    Returns
    -------
    Estimates
        A row per system and check: how often it fails, of how many, the share as value, and what
        `evaluate` makes of it; the part `findings` has those that occur at least once.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 2, 3], "item": ["a", "b", "c"], "rating": [5, 4, 5]}
    >>> lists = {1: ["a", "a", "x"], 2: ["b"]}
    >>> result = us.judging.hygiene(test, {"llm": lists}, liked=4, items=["a", "b", "c"])
    >>> result.parts["findings"].table().select("check", "count", "of").rows()
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
    rows = [
        {
            "system": name,
            "check": check,
            "count": count,
            "of": total,
            "value": count / total if total else None,
            "lists": lists,
            "policy": POLICIES[check],
        }
        for name, matched in judged.matched.items()
        for check, count, total, lists in _findings(matched, judged, k)
    ]
    findings = [row for row in rows if row["count"]]
    clean = [name for name in judged.systems if name not in {row["system"] for row in findings}]
    lines = [f"nothing is wrong with the lists of {', '.join(clean)}"] if clean else []
    longest = "the longest list of the system" if k is None else f"{k} items"
    return Estimates.of_rows(
        HYGIENE,
        rows,
        explanation=(*lines, f"a list is short if it is shorter than {longest}"),
        notes=judged.notes,
        parts={"findings": Estimates.of_rows(HYGIENE, findings)},
        card={"k": k},
    )


def _findings(matched: Matched, judged: Judged, k: int | None) -> Iterator[Finding]:
    """Count everything of one system."""
    run, counts = matched.run, matched.run.counts
    places, lists = int((matched.stop - matched.start).sum()), int(np.count_nonzero(run.depth))

    def find(check: str, counts: I64, total: int) -> Finding:
        return (check, int(counts.sum()), total, int(np.count_nonzero(counts)))

    places_read = int(run.start[-1]) + counts.duplicates + counts.without_score
    yield "duplicate items", counts.duplicates, places_read, counts.duplicate_lists
    if counts.was_scored:
        yield "items without a score", counts.without_score, places_read, None
    assert judged.basis.catalogue is not None
    empty, outside, trained, _ = matched.count_slots(judged.basis.catalogue, judged.basis.train)
    yield find("empty places", empty, places)
    if judged.items is not None or judged.train is not None:
        yield find("items outside the catalogue", outside, places)
    if judged.train is not None:
        yield find("training items", trained, places)
    ties = run.tie_counts or counts.ties
    if ties is not None:
        yield "tied items", ties.tied, int(run.start[-1]), None
        yield "lists in which all scores are equal", ties.constant, lists, None
    longest = int(run.depth.max(initial=0))
    short = (run.depth > 0) & (run.depth < (longest if k is None else k))
    yield "short lists", int(short.sum()), lists, None
    tested = np.diff(judged.judgments.start) > 0
    listed = matched.stop > matched.start
    users = int(np.count_nonzero(tested))
    yield "users without a list", int((tested & ~listed).sum()), users, None
    strangers = int((listed & ~tested).sum())
    yield "lists of users without test data", strangers, lists, None
