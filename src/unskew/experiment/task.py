"""`Task`: a small value that says what to do, and the one function that does it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from unskew.bench import Bench, lay_lists, remarks
from unskew.data.ratings import Ratings
from unskew.errors import DataWarning, SettingError
from unskew.evaluation import MEMORY, forgiving
from unskew.expect import chance_scores
from unskew.experiment.plan import STAGES, Custom, Plan, View
from unskew.experiment.store import Store, key_of
from unskew.metrics.names import Metric, parse
from unskew.protocol.split import Split
from unskew.protocol.targets import TargetLists
from unskew.rng import generator
from unskew.scores import System
from unskew.threads import resolve


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

    @property
    def label(self) -> str:
        """What it is, in words."""
        who = self.system or "lists"
        protocol = self.plan.splits[self.split].name
        return f"{who} on {protocol}, split {self.fold + 1}"

    @property
    def key(self) -> str:
        """A key of the task as a whole, for reports of failure."""
        return key_of({"task": [key for _, key in self.todo]})


def result_key(plan: Plan, data: str, split: int, fold: int, view: View, system: str | None) -> str:
    """Return the key of a result: the hash of all that determines it."""
    parts: dict[str, Any] = {
        "stages": STAGES,
        "data": data,
        "split": plan.splits[split].describe(),
        "fold": fold,
        "seed": plan.seed,
        "view": view.describe(),
        "relevance": plan.relevance.describe(),
        "metrics": [str(parse(name)) for name in plan.metrics],
        "labels": list(plan.metrics),
    }
    if system is None:
        parts |= {"what": "lists", "draws": plan.draws}
    else:
        parts |= {"system": plan.systems[system].describe(), "ties": plan.ties}
    return key_of(parts)


def is_storable(plan: Plan, system: str | None) -> bool:
    """Tell whether a result may be taken from the store: a function without a version may not."""
    one = None if system is None else plan.systems[system]
    return not (isinstance(one, Custom) and one.version is None)


def count_splits(plan: Plan, split: int, ratings: Ratings) -> int:
    """Return how many splits a protocol makes."""
    splitter: Any = plan.splits[split]
    while hasattr(splitter, "of"):
        splitter = splitter.of
    if splitter.name in ("random", "uniform", "flat", "user", "leave-out", "temporal"):
        settings = splitter.describe()
        return int(settings.get("folds") or settings.get("repetitions") or 1)
    return sum(1 for _ in plan.splits[split].each(ratings, plan.seed))


def perform(task: Task) -> list[str]:
    """Do a task; return the keys that it stored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the notes say the same
        split = _split(task.store, task.data, task.plan, task.split, task.fold)
        views = task.plan.views()
        model = None
        if task.system is not None:
            one = task.plan.systems[task.system]
            name = json.dumps(one.describe(), sort_keys=True)
            rng = generator(task.plan.seed, "fit", task.split, task.fold, name)
            model = one.fit(split.train, rng)
        for number, key in task.todo:
            lists = _lists(task.store, task.data, task.plan, task.split, task.fold, number)
            wanted = wanted_metrics(task.plan, views[number])
            if model is None:
                table, card = _lists_result(task.plan, lists, wanted)
            else:
                table, card = _system_result(task.plan, lists, wanted, model)
            card |= {
                "plan": task.plan.describe(), "data": task.data, "split": task.split,
                "fold": task.fold, "label": split.label, "view": views[number].describe(),
                "system": task.system,
            }  # fmt: skip
            task.store.put(key, table, card)
    return [key for _, key in task.todo]


def wanted_metrics(plan: Plan, view: View) -> dict[str, Metric]:
    """Return the metrics by label, as the view's rule for short lists takes them."""
    wanted = {str(name): parse(name) for name in plan.metrics}
    if view.targets.shortfall == "forgive":
        return {label: forgiving(metric) for label, metric in wanted.items()}
    return wanted


@lru_cache(maxsize=1)
def _ratings(store: Store, data: str) -> Ratings:
    return store.ratings(data)


# A process works on one split at a time: the one before is given back.
@lru_cache(maxsize=1)
def _split(store: Store, data: str, plan: Plan, split: int, fold: int) -> Split:
    for number, made in enumerate(plan.splits[split].each(_ratings(store, data), plan.seed)):
        if number == fold:
            return made
    raise SettingError(f"{plan.splits[split]!r} makes no split number {fold + 1}")


@lru_cache(maxsize=16)
def _lists(store: Store, data: str, plan: Plan, split: int, fold: int, number: int) -> TargetLists:
    view = plan.views()[number]
    judged = view.apply(_split(store, data, plan, split, fold), plan.seed)
    return view.targets.lists(judged, plan.relevance, seed=plan.seed)


def forget() -> None:
    """Give back what this process keeps from task to task."""
    for kept in (_ratings, _split, _lists):
        kept.cache_clear()


def _system_result(
    plan: Plan, lists: TargetLists, wanted: Mapping[str, Metric], model: object
) -> tuple[pl.DataFrame, dict[str, Any]]:
    bench = lay_lists(lists, {"": model}, wanted, None, plan.ties, plan.seed)  # type: ignore[dict-item]
    scored = bench.score(wanted, resolve(None), MEMORY, None)[""]
    notes = [note.removeprefix(": ") for note in remarks(bench, wanted, plan.users)]
    return _table(scored, wanted), {"aggregates": _plain(scored.aggregates), "notes": notes}


def _lists_result(
    plan: Plan, lists: TargetLists, wanted: Mapping[str, Metric]
) -> tuple[pl.DataFrame, dict[str, Any]]:
    bench: Bench = lay_lists(lists, {}, wanted, None)
    chance, simulated = chance_scores(lists, wanted, draws=plan.draws, seed=plan.seed)
    judged = bench.judged
    facts = pl.DataFrame(
        {
            "user": lists.user, "anchor": lists.anchor, "stratum": lists.stratum,
            "targets": lists.size, "liked": judged.liked.astype(np.int64),
            "disliked": judged.disliked.astype(np.int64),
            "test": np.diff(judged.judgments.start),
            "train": np.diff(lists.train.start)[lists.user],
        }
    ).rename(lambda name: f"list {name}")  # fmt: skip
    card = {
        "aggregates": _plain(chance.aggregates), "simulated": simulated,
        "notes": list(lists.notes), "facts": dict(lists.facts), "strata": lists.strata,
    }  # fmt: skip
    return pl.concat([facts, _table(chance, wanted)], how="horizontal"), card


def _table(system: System, wanted: Mapping[str, Metric]) -> pl.DataFrame:
    labels = [label for label, metric in wanted.items() if metric.definition.of != "run"]
    columns: dict[str, Any] = {"depth": np.asarray(system.depth)}
    for row, label in enumerate(labels):
        columns[label] = system.values[row]
        if row in system.den:
            columns[f"{label}/den"] = system.den[row]
    return pl.DataFrame(columns)


def _plain(aggregates: Mapping[str, float]) -> dict[str, float | None]:
    return {label: None if np.isnan(value) else value for label, value in aggregates.items()}
