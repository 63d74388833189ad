"""The tasks of an audit's core: one system on one split, trained once for all that looks at it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import Mask, frozen
from unskew.auditing.cold_users import with_fallback
from unskew.auditing.designs import AuditDesign
from unskew.auditing.truth import sources
from unskew.data.ratings import Ratings
from unskew.engine.rng import generator, key_of
from unskew.engine.store import Store, digest_of
from unskew.engine.system import versions
from unskew.engine.threads import one_blas_thread
from unskew.errors import UnskewError, quietly
from unskew.evaluation.scores import Scores, system_of
from unskew.experiment.collection import Stored
from unskew.experiment.halving import BUDGET, TunedSystem, tune_systems
from unskew.experiment.plan import STAGES, Plan
from unskew.experiment.task import judged_view, lists_result, system_results, wanted_metrics
from unskew.judging.judged import Judged
from unskew.judging.rank import tile_users
from unskew.judging.rank_tiles import RankJob
from unskew.recommend.model import Algorithm, ByTable, Model, SameForAll
from unskew.runs import Run
from unskew.splits.split import Split
from unskew.targets.designs import AllItems
from unskew.targets.lists import TargetLists

if TYPE_CHECKING:
    from unskew.arrays import Mask
    from unskew.splits.split import Split, Splitter


@dataclass(frozen=True, eq=False)
class HeldSplit:
    """A split that is held."""

    split: Split

    def __call__(self) -> Split:
        """Return it."""
        return self.split


@dataclass(frozen=True, eq=False, kw_only=True)
class RemadeSplit:
    """A split that is made whenever it is asked for: of large data, several do not fit."""

    ratings: Ratings
    splitter: Splitter
    seed: int
    fold: int
    judged: Mask | None

    def __call__(self) -> Split:
        """Make it."""
        return self.splitter.nth(self.ratings, self.fold, self.seed).judging(self.judged)


DEPTH = 100
"""How deep the lists are that estimates, strata and robustness look at."""
SEEDS = 1 << 31
"""Seeds of repeats are below this."""
CELLS = 1 << 22
"""A model with at most so many scores (32 MiB) scores once for the designs and for the truth."""
ROWS = 1 << 23
"""Splits are kept from task to task while they have at most so many ratings together."""


def seed_of(seed: int, repeat: int) -> int:
    """Return the seed of a repeat: that of the audit for the first one."""
    return seed if repeat == 0 else key_of(seed, "audit/repeat", repeat) % SEEDS


@dataclass(frozen=True)
class SplitId:
    """One split of an audit."""

    splitter: str
    """The key of its way to split."""
    repeat: int
    fold: int


@dataclass
class MemoryStore:
    """Results of a run that keeps nothing: the part of `Store` that tasks need."""

    results: dict[str, Stored] = field(default_factory=dict)

    def put(self, key: str, table: pl.DataFrame, card: Mapping[str, Any]) -> None:
        """Keep a result."""
        self.results[key] = table, dict(card)

    def get(self, key: str) -> Stored:
        """Return a result."""
        return self.results[key]

    def has(self, key: str) -> bool:
        """Tell whether a result is there."""
        return key in self.results


@dataclass(frozen=True, eq=False)
class PlacedSplit:
    """A split, and the target lists that were laid over it so far, without systems."""

    split: Split
    lists: dict[str, Judged] = field(default_factory=dict)
    """By design."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CoreJob:
    """What all tasks share."""

    ratings: Ratings
    data: str
    """The key of the ratings."""
    plan: Plan
    """Systems, metrics, relevance, ties; its seed is that of the first repeat."""
    designs: tuple[AuditDesign, ...]
    listed: str
    """The key of the way to split whose lists are kept: that of the common design; "" for none."""
    truth: sources.Source | None
    metric: str
    """What systems are tuned by."""
    tuned: frozenset[str]
    """The systems whose settings are chosen on the training part of each split."""
    store: Store | MemoryStore
    scratch: Store | MemoryStore
    """Where results go that must not be kept."""
    placed: dict[SplitId, PlacedSplit] = field(default_factory=dict, repr=False)
    """Splits that this process holds."""
    plans: dict[SplitId, Plan] = field(default_factory=dict, repr=False)
    """Plans of single splits, made at their first use."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "placed": {}, "plans": {}}

    @cached_property
    def judged(self) -> Mask | None:
        """The users who are judged, the same ones on every split; None = all."""
        return self.plan.judged(self.ratings)

    @cached_property
    def views(self) -> dict[str, dict[str, Any]]:
        """By design: how it judges, as keys have it."""
        return {design.name: design.view.describe() for design in self.designs}

    @cached_property
    def known_keys(self) -> dict[tuple[SplitId, str | None], dict[str, str]]:
        """Keys of results by split and system: many ask for them, and to hash takes a while."""
        return {}

    def plan_at(self, split_id: SplitId) -> Plan:
        """Return the plan of a split."""
        if split_id not in self.plans:
            plan, design = self.plan, next(self.designs_at(split_id))
            seed = seed_of(plan.seed, split_id.repeat)
            self.plans[split_id] = replace(plan, split=design.split, seed=seed)
        return self.plans[split_id]

    def designs_at(self, split_id: SplitId) -> Iterator[AuditDesign]:
        """Return the designs that judge on a split."""
        return (design for design in self.designs if design.split_key == split_id.splitter)

    def split_at(self, split_id: SplitId) -> PlacedSplit:
        """Return a split, made at its first use; few are held at a time."""
        if split_id not in self.placed:
            while self.placed and (len(self.placed) + 1) * len(self.ratings) > ROWS:
                self.placed.pop(next(iter(self.placed)))
            self.placed[split_id] = PlacedSplit(self._source(split_id)())
        return self.placed[split_id]

    def remade(self, split_id: SplitId) -> RemadeSplit | None:
        """Return how to make a split again; None where all splits can be held."""
        return None if len(self.ratings) <= ROWS else self._source(split_id)

    def _source(self, split_id: SplitId) -> RemadeSplit:
        plan = self.plan_at(split_id)
        return RemadeSplit(
            ratings=self.ratings,
            splitter=plan.splits[0],
            seed=plan.seed,
            fold=split_id.fold,
            judged=self.judged,
        )

    def judged_at(self, split_id: SplitId, design: AuditDesign) -> Judged:
        """Return what systems rank under a design, laid over the judgments without them."""
        placed = self.split_at(split_id)
        if design.name not in placed.lists:
            seed = seed_of(self.plan.seed, split_id.repeat)
            judged = judged_view(design.view, placed.split, self.plan.relevance, seed)
            placed.lists[design.name] = judged
        return placed.lists[design.name]

    def every_item(self, split_id: SplitId) -> TargetLists:
        """Return the lists of all items that are no training items of their user."""
        for design in self.designs_at(split_id):
            if design.view.intervention is None and design.view.targets == AllItems():
                lists = self.judged_at(split_id, design).targets
                assert lists is not None
                return lists
        split, seed = self.split_at(split_id).split, seed_of(self.plan.seed, split_id.repeat)
        return AllItems().lists(split, self.plan.relevance, seed=seed)

    def where(self, system: str | None) -> Store | MemoryStore:
        """Return where the results of a system are."""
        return self.store if system in self.plan.storable else self.scratch


@dataclass(frozen=True, eq=False)
class CoreTask:
    """One system on one split; without a system, the lists and what chance scores on them."""

    job: CoreJob
    split_id: SplitId
    system: str | None
    done: frozenset[str] = frozenset()
    """Results that are kept where this process does not see them."""

    @property
    def label(self) -> str:
        """What it is, in words."""
        design = next(self.job.designs_at(self.split_id))
        number = self.split_id.repeat + self.split_id.fold + 1
        return f"{self.system or 'lists'} on {design.split.title}, split {number}"

    @property
    def keys(self) -> dict[str, str]:
        """The keys of all results: by design, and `run` and `truth`."""
        cache, key = self.job.known_keys, (self.split_id, self.system)
        if key not in cache:
            cache[key] = self._keys()
        return cache[key]

    def _keys(self) -> dict[str, str]:
        """Work the keys out."""
        job, split_id = self.job, self.split_id
        plan = job.plan_at(split_id)
        shared: dict[str, Any] = {
            "stages": STAGES,
            "data": job.data,
            "split": plan.splits[0].describe(),
            "fold": split_id.fold,
            "seed": plan.seed,
            "versions": versions(),
        }
        judged = {
            "relevance": plan.relevance.describe(),
            "metrics": {label: label for label in plan.metrics},
            "users": plan.users,
        }
        sample: dict[str, Any] = {}
        if plan.judged_users is not None:  # drawn by the seed of the audit, whatever the repeat
            sample = {"judged users": plan.judged_users, "sample seed": job.plan.seed}
            judged |= sample
        if self.system is None:
            shared |= {"what": "core lists", "draws": plan.draws}
        else:
            system = plan.systems[self.system]
            shared |= {"what": "core", "system": system.describe(), "ties": plan.ties}
            if self.system in job.tuned:
                shared["tuned"] = {
                    "budget": BUDGET,
                    "grid": repr(system.tuning),
                    "metric": job.metric,
                    "relevance": plan.relevance.describe(),
                }
        keys = {
            f"design {design.name}": digest_of({**shared, **judged, "view": job.views[design.name]})
            for design in job.designs_at(split_id)
        }
        if self.system in job.tuned:
            keys["tuned"] = digest_of({**shared, "of": "tuned"})
        if self.system is not None and split_id.splitter == job.listed:
            keys["run"] = digest_of({**shared, **sample, "of": "run", "depth": DEPTH})
        if self.system is not None and job.truth is not None:
            of = {"name": job.truth.name, "data": _known(job.truth)}
            keys["truth"] = digest_of({**shared, **judged, "of": of})
        return keys

    def todo(self) -> dict[str, str]:
        """Return the keys of what is not there yet."""
        store = self.job.where(self.system)
        left = {what: key for what, key in self.keys.items() if what not in self.done}
        return {what: key for what, key in left.items() if not store.has(key)}


def perform(task: CoreTask) -> dict[str, str]:
    """Do a task; return why designs are not possible on this split."""
    with quietly():
        return _lay(task) if task.system is None else _judge(task, task.system)


def _lay(task: CoreTask) -> dict[str, str]:
    """Lay the lists of every design, and work out what chance scores."""
    job, split_id, problems = task.job, task.split_id, {}
    plan, todo = job.plan_at(split_id), task.todo()
    for design in job.designs_at(split_id):
        key = todo.get(f"design {design.name}")
        if key is None:
            continue
        try:
            table, card = lists_result(
                job.judged_at(split_id, design),
                wanted_metrics(plan, design.view),
                draws=plan.draws,
                seed=plan.seed,
            )
        except UnskewError as problem:
            problems[design.name] = str(problem)
            continue
        card |= {"label": task.label, "versions": versions()}
        job.where(None).put(key, table, card)
    return problems


def _judge(task: CoreTask, label: str) -> dict[str, str]:
    """Train a system, and judge it under every design."""
    job, split_id, todo = task.job, task.split_id, task.todo()
    store, plan = job.where(label), job.plan_at(split_id)
    train = job.split_at(split_id).split.train
    card = {"label": task.label, "system": label, "versions": versions()}
    system = plan.systems[label]
    if "tuned" in todo:
        untuned = {label: system}
        tuned = tune_systems(
            untuned, train, plan.relevance, job.metric, seed=plan.seed, budget=BUDGET
        )
        store.put(todo["tuned"], tuned[label].trials, {**card, **_choice(tuned[label])})
    if label in job.tuned:
        system = tuned_of(system, *store.get(task.keys["tuned"])).algorithm
    if todo.keys() <= {"tuned"}:
        return {}
    model = trained(plan, split_id.fold, system, train)
    if "truth" in todo:
        model = _scored_once(model, train)
    designs = [design for design in job.designs_at(split_id) if f"design {design.name}" in todo]
    requests = [
        (job.judged_at(split_id, design), wanted_metrics(plan, design.view)) for design in designs
    ]
    more = [RankJob(job.every_item(split_id), DEPTH, judged=False)] if "run" in todo else []
    results, rankings = system_results(
        requests, model, (plan.users,), more, ties=plan.ties, seed=plan.seed
    )
    for design, (table, about) in zip(designs, results, strict=True):
        store.put(todo[f"design {design.name}"], table, {**card, **about})
    for ranking in rankings:
        store.put(todo["run"], _run_table(ranking.run), card)
    if "truth" in todo and job.truth is not None:
        scores = job.truth.judge({label: model}, train, plan)
        store.put(todo["truth"], _truth_table(scores, label), card)
    return {}


def _choice(tuned: TunedSystem) -> dict[str, Any]:
    """Return what was chosen, as plain values."""
    return {
        "settings": dict(tuned.settings),
        "is_default": tuned.is_default,
        "edges": list(tuned.edges),
        "tried": tuned.tried,
        "value": None if math.isnan(tuned.value) else tuned.value,
        "reason": tuned.reason,
    }


def tuned_of(system: Algorithm, trials: pl.DataFrame, card: Mapping[str, Any]) -> TunedSystem:
    """Return a tuned system as it was stored."""
    settings = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in card["settings"].items()
    }
    return TunedSystem(
        algorithm=replace(system, **settings),
        settings=settings,
        is_default=card["is_default"],
        edges=tuple(card["edges"]),
        tried=card["tried"],
        trials=trials,
        value=math.nan if card["value"] is None else card["value"],
        reason=card["reason"],
    )


def trained(plan: Plan, fold: int, system: Algorithm, train: Ratings) -> Model:
    """Train a system on a split, with the stream of chance that a plan gives it."""
    split_key = digest_of({"split": plan.splits[0].draw_key})
    rng = generator(plan.seed, "fit", split_key, fold, digest_of(system.draw_key))
    return with_fallback(system.fit(train, rng), train)


def _scored_once(model: Model, train: Ratings) -> Model:
    """Return the scores of all users and items where they are few, else the model itself."""
    users, items = len(train.users), len(train.items)
    if users * items > CELLS or isinstance(model, SameForAll):
        return model
    step = tile_users(items)  # products of other shapes have other bits
    tiles: list[NDArray[Any]] = []
    with one_blas_thread():
        for low in range(0, users, step):
            rows = np.arange(low, min(low + step, users), dtype=np.int32)
            tile: NDArray[Any] = np.asarray(model.score(rows))
            if tile.shape != (rows.size, items):
                return model  # whoever ranks says what is wrong
            tiles.append(tile)
    table: NDArray[Any] = np.concatenate(tiles)
    return ByTable(table)


def _run_table(run: Run) -> pl.DataFrame:
    owner = np.repeat(np.arange(len(run), dtype=np.int32), run.depth)
    return pl.DataFrame({"list": owner, "item": run.item, "score": run.score})


def run_of(table: pl.DataFrame, lists: TargetLists) -> Run:
    """Return the best items of every user, as they were stored."""
    depth = np.bincount(table["list"].to_numpy(), minlength=len(lists))
    return Run(
        lists.ids,
        lists.tests.items,
        frozen(np.append(0, np.cumsum(depth))),
        frozen(table["item"].to_numpy()),
        frozen(table["score"].to_numpy()),
    )


def _known(truth: sources.Source) -> Any:
    """Return what tells one truth from another."""
    if isinstance(truth, sources.SampledTruth):
        return truth.random.fingerprint
    return truth.world.describe()


def _truth_table(scores: Scores, label: str) -> pl.DataFrame:
    system = scores.systems[label]
    columns = {
        f"of {name}": column for name, column in zip(scores.labels, system.values, strict=True)
    }
    columns |= {f"of {scores.labels[row]}/den": den for row, den in system.den.items()}
    lists = scores.lists.rename(lambda name: f"list {name}")
    return lists.with_columns(depth=system.depth, **columns)


def true_scores_of(tables: Mapping[str, pl.DataFrame], plan: Plan, train: Ratings) -> Scores:
    """Return what the truth says of every system on a split, as it was stored."""
    labels = tuple(plan.metrics)
    first = next(iter(tables.values()))
    lists = first.select(pl.col("^list .*$")).rename(lambda name: name.removeprefix("list "))
    systems = {}
    for name, table in tables.items():
        values = table.select(pl.exclude("^list .*$")).rename(
            lambda column: column.removeprefix("of ")
        )
        systems[name] = system_of(values, labels, {})
    return Scores(
        labels,
        systems,
        train.users,
        lists,
        plan.users,
        plan.undefined,
        labels,
        relevance=str(plan.relevance),
    )
