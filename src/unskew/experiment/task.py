"""`Task`: one system on one split, and the function that trains, ranks and scores it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from unskew.data.events import Events
from unskew.data.ratings import Ratings
from unskew.data.stored import stored_data
from unskew.engine.rng import generator
from unskew.engine.store import Store, digest_of
from unskew.engine.threads import resolve
from unskew.engine.versions import versions
from unskew.errors import quietly
from unskew.evaluation.chance import chance_scores
from unskew.evaluation.evaluate import MEMORY, forgiving
from unskew.evaluation.scores import USERS, System
from unskew.evaluation.scoring import list_columns, prepare, remarks, score
from unskew.experiment.plan import STAGES, Plan, PlanView, label_of
from unskew.judging.judged import Judged
from unskew.judging.rank import Ranking, rank_designs
from unskew.judging.rank_tiles import RankJob
from unskew.metrics.names import Metric
from unskew.report.text import finite
from unskew.splits.split import Split
from unskew.targets.lists import TargetLists

Card = dict[str, Any]
Place = tuple[int, int, str | None]
"""Number of the splitter, number of its split, and the system; None = what all systems share."""


@dataclass(frozen=True)
class Done:
    """What a task did."""

    keys: Sequence[str]
    """The keys of what it stored."""
    result: Any = None
    """What it has to say beside."""


@dataclass(frozen=True)
class Task:
    """One system on one split, judged in every way that is not in the store yet.

    Without a system: what all systems share, the lists and what chance scores on them.
    """

    store: Store
    data: str
    """The key of the ratings."""
    plan: Plan
    split: int
    fold: int
    system: str | None
    todo: tuple[tuple[int, str], ...]
    """Number of the view, and the key of its result."""
    key: str
    """A key of the task as a whole, for reports of failure."""
    into: Store | None = None
    """Where results go that must not be kept."""

    @property
    def label(self) -> str:
        """What it is, in words."""
        return task_label(self.plan, self.split, self.fold, self.system)

    @property
    def place(self) -> Place:
        """Where it stands in its plan."""
        return self.split, self.fold, self.system

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of results that it reads: none."""
        return ()

    def moved(self, store: Store) -> Task:
        """Return the same task with all that it reads and writes in another store."""
        return replace(self, store=store, into=None)

    def perform(self) -> Done:
        """Do it."""
        return Done(perform(self))


def protocol_label(plan: Plan, split: int) -> str:
    """Return the name of a protocol; with its settings where the plan has several of that name."""
    splitter = plan.splits[split]
    alone = sum(one.title == splitter.title for one in plan.splits) == 1
    return splitter.title if alone else repr(splitter)


def task_label(plan: Plan, split: int, fold: int, system: str | None) -> str:
    """Return in words what a task is; no two of a plan have the same."""
    return f"{system or 'lists'} on {protocol_label(plan, split)}, split {fold + 1}"


def result_key(
    plan: Plan, data: str, split: int, fold: int, view: PlanView, system: str | None
) -> str:
    """Return the key of a result: the hash of all that determines it."""
    parts: dict[str, Any] = {
        "stages": STAGES,
        "data": data,
        "split": plan.splits[split].describe(),
        "fold": fold,
        "seed": plan.seed,
        "view": view.describe(),
        "relevance": plan.relevance.describe(),
        "metrics": {label: str(metric) for label, metric in plan.labelled_metrics.items()},
        "labels": list(plan.metrics),
        **({} if plan.judged_users is None else {"judged_users": plan.judged_users}),
    }
    if system is None:
        parts |= {"what": "lists", "draws": plan.draws}
    else:
        parts |= {"system": plan.systems[system].describe(), "ties": plan.ties}
    return digest_of(parts)


def card_of(
    plan: Plan, data: str, split: int, fold: int, view: PlanView, system: str | None
) -> Card:
    """Return the card of a result: the part of the plan that determines it, and nothing else.

    The same for every plan that holds the result, whatever else is in it and however it calls the
    system: who writes a key again writes the same bytes.
    """
    one = None if system is None else plan.systems[system]
    systems = {} if one is None else {label_of(one): one.describe()}
    change = [] if view.intervention is None else [view.intervention.describe()]
    return {
        "plan": {
            "split": [plan.splits[split].describe()],
            "targets": [view.targets.describe()],
            "algorithms": systems,
            "relevance": plan.relevance.describe(),
            "metrics": list(plan.metrics),
            "interventions": change,
            "judgments": [view.judgments],
            "seed": plan.seed,
            **({} if plan.judged_users is None else {"judged_users": plan.judged_users}),
            **({"draws": plan.draws} if one is None else {"ties": plan.ties}),
        },
        "data": data,
        "fold": fold,
        "system": next(iter(systems), None),
        "stages": STAGES,
        "versions": versions(),
    }


def perform(task: Task) -> list[str]:
    """Do a task; return the keys that it stored."""
    with quietly():
        split = _split(task.store, task.data, task.plan, task.split, task.fold)
        views = task.plan.views()
        model = None
        if task.system is not None:
            one = task.plan.systems[task.system]
            split_key = digest_of({"split": task.plan.splits[task.split].draw_key})
            rng = generator(task.plan.seed, "fit", split_key, task.fold, digest_of(one.draw_key))
            model = one.fit(split.train, rng)
        designs = (
            (
                _lists(task.store, task.data, task.plan, task.split, task.fold, number),
                wanted_metrics(task.plan, views[number]),
            )
            for number, _ in task.todo
        )
        results: Iterable[tuple[pl.DataFrame, Card]]
        if model is None:  # each is kept before the next one is laid, which may not be possible
            results = (
                lists_result(*design, draws=task.plan.draws, seed=task.plan.seed)
                for design in designs
            )
        else:
            results, _ = system_results(
                list(designs), model, USERS, ties=task.plan.ties, seed=task.plan.seed
            )
        for (number, key), (table, card) in zip(task.todo, results, strict=True):
            view = views[number]
            card |= card_of(task.plan, task.data, task.split, task.fold, view, task.system)
            (task.into or task.store).put(key, table, {**card, "label": split.label})
    return [key for _, key in task.todo]


def wanted_metrics(plan: Plan, view: PlanView) -> dict[str, Metric]:
    """Return the metrics by label, as the view's rule for short lists takes them."""
    if view.targets.shortfall == "forgive":
        return {label: forgiving(metric) for label, metric in plan.labelled_metrics.items()}
    return plan.labelled_metrics


@lru_cache(maxsize=1)
def _ratings(store: Store, data: str) -> Ratings | Events:
    return stored_data(store, data)


# A process works on one split at a time: the one before, and its lists, are given back.
@lru_cache(maxsize=1)
def _split(store: Store, data: str, plan: Plan, split: int, fold: int) -> Split:
    _lists.cache_clear()
    ratings = _ratings(store, data)
    return plan.splits[split].nth(ratings, fold, plan.seed).judging(plan.judged(ratings))


@lru_cache(maxsize=64)
def _lists(store: Store, data: str, plan: Plan, split: int, fold: int, number: int) -> TargetLists:
    view = plan.views()[number]
    judged = view.apply(_split(store, data, plan, split, fold), plan.seed)
    return view.targets.lists(judged, plan.relevance, seed=plan.seed)


def forget() -> None:
    """Give back what this process keeps from task to task."""
    for kept in (_ratings, _split, _lists):
        kept.cache_clear()


def system_results(
    designs: Sequence[tuple[TargetLists, Mapping[str, Metric]]],
    model: object,
    averaged: Sequence[str],
    more: Sequence[RankJob] = (),
    *,
    ties: str,
    seed: int,
) -> tuple[list[tuple[pl.DataFrame, Card]], list[Ranking]]:
    """Judge a model under several designs, for which it scores each user once.

    Parameters
    ----------
    designs
        What is ranked, and metrics by label.
    model
        What was trained.
    averaged
        Of `USERS`: whom means may be taken over; the notes depend on it, no value does.
    more
        What else to rank.
    ties, seed
        How equal scores are ordered.

    Returns
    -------
    tuple
        By design: values list by list, and what is noted of them. And what else was ranked.
    """
    system: Any = {"": model}
    several = [
        prepare(Judged.of_lists(lists, system, ties=ties, seed=seed), wanted)
        for lists, wanted in designs
    ]
    jobs = [judged.job for judged in several]
    rankings = rank_designs(model, [*jobs, *more], ties=ties, seed=seed)
    results = [
        _system_result(judged.ranked_by("", ranking), wanted, averaged)
        for judged, ranking, (_, wanted) in zip(several, rankings, designs, strict=False)
    ]
    return results, rankings[len(jobs) :]


def _system_result(
    judged: Judged, wanted: Mapping[str, Metric], averaged: Sequence[str]
) -> tuple[pl.DataFrame, Card]:
    """Return the values of a system list by list, and what is noted of them."""
    scored = score(judged.basis, judged.matched, wanted, threads=resolve(None), budget=MEMORY)[""]
    notes = {
        users: [note.removeprefix(": ") for note in remarks(judged, wanted, users)]
        for users in averaged
    }
    return _table(scored, wanted), {"aggregates": finite(scored.aggregates), "notes": notes}


def lists_result(
    lists: TargetLists, wanted: Mapping[str, Metric], *, draws: int, seed: int
) -> tuple[pl.DataFrame, Card]:
    """Return what all systems share: the lists, and what chance scores on them."""
    chance, simulated = chance_scores(lists, wanted, draws=draws, seed=seed)
    known = list_columns(Judged.of_lists(lists, {})).select("liked", "disliked", "test", "train")
    facts = pl.DataFrame(
        {
            "user": lists.user,
            "anchor": lists.anchor,
            "stratum": lists.stratum,
            "targets": lists.size,
            **known.to_dict(),
        }
    ).rename(lambda name: f"list {name}")
    card = {
        "aggregates": finite(chance.aggregates),
        "simulated": simulated,
        "notes": list(lists.notes),
        "facts": dict(lists.facts),
        "strata": lists.strata,
    }
    return pl.concat([facts, _table(chance, wanted)], how="horizontal"), card


def _table(system: System, wanted: Mapping[str, Metric]) -> pl.DataFrame:
    labels = [label for label, metric in wanted.items() if metric.definition.of != "run"]
    columns: dict[str, Any] = {"depth": np.asarray(system.depth)}
    for row, label in enumerate(labels):
        columns[label] = system.values[row]
        if row in system.den:
            columns[f"{label}/den"] = system.den[row]
    return pl.DataFrame(columns)
