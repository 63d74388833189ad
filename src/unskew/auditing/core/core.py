"""`Core`: the systems under every design and split; all that an audit's sentences rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import Mask
from unskew.auditing import cold_users
from unskew.auditing.analyses import Attempts
from unskew.auditing.cold_users import FALLBACK
from unskew.auditing.core.tasks import (
    CoreJob,
    CoreTask,
    HeldSplit,
    MemoryStore,
    RemadeSplit,
    SplitId,
    run_of,
    true_scores_of,
    tuned_of,
)
from unskew.auditing.core.workers import core_outcomes
from unskew.auditing.designs import AuditDesign, LeftOut, left_out_designs
from unskew.auditing.request import Progress
from unskew.auditing.truth.sources import Source
from unskew.data.dataset import data_key
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.executor import Executor
from unskew.engine.files import temporary_folder
from unskew.engine.store import Store
from unskew.errors import DataError, SettingError, UnskewError
from unskew.evaluation.scores import Scores
from unskew.experiment.collection import Stored, scores_of
from unskew.experiment.halving import BUDGET, TunedSystem
from unskew.experiment.plan import Plan
from unskew.metrics.names import parse
from unskew.recommend.model import Algorithm
from unskew.runs import Run
from unskew.splits.split import Split

SERIAL = Executor()
USUAL_CUTOFF = 10
"""Where lists are looked at by what has no cutoff."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitLists:
    """One split of the common design, and the lists of every system on it."""

    make_split: HeldSplit | RemadeSplit
    runs: Mapping[str, Run]
    """By system: its best items among all that are no training items of the user."""
    train_size: int
    test_size: int
    users: int
    """Users with a rating in either part."""
    judged: int | None
    """How many of them are judged, drawn at random; None = all."""

    @classmethod
    def of(
        cls, split: Split, runs: Mapping[str, Run], again: RemadeSplit | None = None
    ) -> SplitLists:
        """Hold a split, or note how to make it again."""
        return cls(
            make_split=HeldSplit(split) if again is None else again,
            runs=runs,
            train_size=len(split.train),
            test_size=len(split.test),
            users=int(np.count_nonzero(np.diff(split.train.start) + np.diff(split.test.start))),
            judged=None if split.judged is None else int(np.count_nonzero(split.judged)),
        )

    @property
    def split(self) -> Split:
        """The split, which may be made anew: ask once."""
        return self.make_split()


@dataclass(frozen=True, eq=False, kw_only=True)
class Core:
    """The systems under every design and split. Made by `run_core`."""

    metric: str
    """The metric that orders the systems."""
    k: int
    """Its cutoff, 10 if it has none."""
    relevance: Relevance
    systems: tuple[str, ...]
    designs: Mapping[str, str]
    """By name: what is done. Those that count, the common one first."""
    scores: Mapping[str, tuple[Scores, ...]]
    """By design: of each split."""
    warm: Mapping[str, tuple[Mask, ...]]
    """By design and split: which lists belong to users with a training rating."""
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    """Designs that were run and do not count."""
    lists: tuple[SplitLists, ...] = ()
    """A split of the common design each."""
    tuned: tuple[Mapping[str, TunedSystem], ...] = ()
    """By split of the common design: the settings chosen for each system; empty = none was."""
    implicit: bool = False
    """Whether no rating is a dislike."""
    true: Mapping[str, tuple[Scores, ...]] = field(default_factory=dict)
    """By design and split: what the truth says, where it is known."""
    tuned_by_design: Mapping[str, tuple[Mapping[str, TunedSystem], ...]] = field(
        default_factory=dict
    )
    """By design and split: the settings chosen for each system."""
    seeds: tuple[int, ...] = ()
    """Of each split of the common design."""

    @property
    def common(self) -> str:
        """The design that most evaluations take: the first one."""
        return next(iter(self.designs))

    @property
    def has_cold(self) -> bool:
        """Whether some list belongs to a user without a training rating."""
        return any(not mask.all() for masks in self.warm.values() for mask in masks)

    def first_systems(self, systems: Mapping[str, Algorithm], design: str) -> dict[str, Algorithm]:
        """Return systems with the settings that were chosen on the first split of a design."""
        splits = self.tuned_by_design.get(design, ())
        chosen = splits[0] if splits else {}
        return {
            name: chosen[name].algorithm if name in chosen else system
            for name, system in systems.items()
        }

    @cached_property
    def warm_designs(self) -> tuple[str, ...]:
        """Designs that have users with test and training ratings in every split."""
        return tuple(
            design
            for design, parts in self.scores.items()
            if all(
                bool((mask & (part.lists["test"].to_numpy() > 0)).any())
                for part, mask in zip(parts, self.warm[design], strict=True)
            )
        )

    @cached_property
    def warm_scores(self) -> dict[str, tuple[Scores, ...]]:
        """By design: the scores of each split without cold users, what systems are compared by.

        With all users where a split has no others than cold ones.
        """
        return {
            design: tuple(
                part.of_lists(mask) if design in self.warm_designs and not mask.all() else part
                for part, mask in zip(parts, self.warm[design], strict=True)
            )
            for design, parts in self.scores.items()
        }

    @cached_property
    def cold_table(self) -> pl.DataFrame:
        """Return a row per design and system: its mean on warm and on cold users.

        Columns: `users` and those that are `cold` (both summed over splits), the `share` of the
        cold ones, and the mean of the metric `on_warm` and `on_cold` users, null without any.
        """
        return cold_users.cold_table(self.scores, self.warm, self.metric)


def run_core(
    ratings: Ratings,
    plan: Plan,
    designs: Sequence[AuditDesign],
    *,
    metric: str | None = None,
    metrics: Sequence[str] | None = None,
    tune: bool | Collection[str] = False,
    store: Store | None = None,
    executor: Executor = SERIAL,
    progress: Progress | None = None,
    attempts: Attempts | None = None,
    truth: Source | None = None,
    with_lists: bool = True,
) -> Core:
    """Train every system once per split, and judge it under every design.

    Parameters
    ----------
    ratings
        What is split.
    plan
        Systems, relevance, metrics and the seed; its splits and targets are not looked at.
    designs
        The designs, the common one first.
    metric
        What orders the systems: the plan's first metric unless given.
    metrics
        Compute these instead of the plan's.
    tune
        Whether systems are tuned on the training part of each split, or which of them; those that
        declare no grid are not.
    store
        Keeps what is finished; without one, nothing is written.
    executor
        Who does the tasks; never changes a number.
    progress
        Called with the stage, how much is done, and of how much.
    attempts
        Takes the designs that these data do not allow; without it they raise an error.
    truth
        Where it is known: every model is judged by it too.
    with_lists
        Whether the lists of the common design are kept; scores alone need none.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.core.core import run_core
    >>> from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
    >>> shop = us.world("shop", users=60, items=40, seed=3)
    >>> plan = plan_of_level(LEVELS["quick"], us.Relevance(liked=4), ["random", "popularity"])
    >>> designs = designs_of_level(LEVELS["quick"], ["all-items", "skew"])
    >>> core = run_core(shop.ratings, plan, designs, metric="P@10")
    >>> list(core.designs), len(core.scores["all-items"]), len(core.lists)
    (['all-items', 'skew'], 3, 3)
    """
    if not designs:
        raise SettingError("name at least one design")
    plan = plan if metrics is None else replace(plan, metrics=tuple(metrics))
    order = next(iter(plan.metrics)) if metric is None else metric
    if order not in plan.metrics:
        plan = replace(plan, metrics=(order, *plan.metrics))
    with ExitStack() as stack:
        scratch: Store | MemoryStore = MemoryStore()
        if not executor.is_here:
            scratch = Store.open(stack.enter_context(temporary_folder()))
        job = CoreJob(
            ratings=ratings,
            data="" if store is None else data_key(ratings),
            plan=plan,
            designs=tuple(designs),
            listed=designs[0].split_key if with_lists else "",
            truth=truth,
            metric=order,
            tuned=_tuned(plan, tune),
            store=scratch if store is None else store,
            scratch=scratch,
        )
        run = _CoreRun(job, executor, progress or (lambda _stage, _done, _total: None))
        return run.carry_out(order, attempts)


@dataclass(frozen=True, eq=False)
class _CoreRun:
    """A core while it runs."""

    job: CoreJob
    executor: Executor
    progress: Progress

    def carry_out(self, metric: str, attempts: Attempts | None) -> Core:
        """Lay the lists, train and judge, put the results together."""
        split_ids = self._split_ids(attempts)
        job = self._possible(split_ids, attempts)
        split_ids = {key: ids for key, ids in split_ids.items() if _looked_at(job, key)}
        tasks = [
            CoreTask(job, split_id, system)
            for ids in split_ids.values()
            for split_id in ids
            for system in job.plan.systems
        ]
        self._do(tasks, "designs")
        scores = {
            design.name: tuple(
                self._scores(job, split_id, design) for split_id in split_ids[design.split_key]
            )
            for design in job.designs
        }
        k = parse(metric).cutoff or USUAL_CUTOFF
        left = left_out_designs(scores, metric, k)
        counted = [design for design in job.designs if design.name not in left]
        rule = job.plan.relevance
        listed = split_ids.get(job.listed, [])
        return Core(
            metric=metric,
            k=k,
            relevance=rule,
            systems=tuple(job.plan.systems),
            designs={design.name: design.about for design in counted},
            scores={design.name: scores[design.name] for design in counted},
            warm={
                design.name: tuple(cold_users.warm_lists(part) for part in scores[design.name])
                for design in counted
            },
            left_out=left,
            lists=tuple(self._lists(job, split_id) for split_id in listed),
            tuned=self._tuned(job, listed),
            tuned_by_design={
                design.name: self._tuned(job, split_ids[design.split_key])
                for design in counted
                if job.tuned
            },
            implicit=bool(rule.is_liked(job.ratings.value).all()),
            true=self._true(job, counted, split_ids),
            seeds=tuple(job.plan_at(split_id).seed for split_id in listed),
        )

    def _split_ids(self, attempts: Attempts | None) -> dict[str, list[SplitId]]:
        """Return the splits of every way to split."""
        job = self.job
        split_ids: dict[str, list[SplitId]] = {}
        for design in job.designs:
            key = design.split_key
            if key in split_ids:
                continue
            try:
                if design.split.name == "temporal" and job.ratings.time is None:
                    raise SettingError("needs time stamps")
                folds = design.split.count(job.ratings, job.plan.seed)
            except UnskewError as problem:
                self._give_up(design.name, str(problem), attempts)
                folds = 0
            split_ids[key] = [
                SplitId(key, repeat, fold)
                for repeat in range(design.repeats)
                for fold in range(folds)
            ]
        return split_ids

    def _possible(
        self, split_ids: Mapping[str, Sequence[SplitId]], attempts: Attempts | None
    ) -> CoreJob:
        """Lay the lists of all designs; leave out designs that some split does not allow."""
        job = self.job
        problems = {design.name: "" for design in job.designs if not split_ids[design.split_key]}
        tasks = [CoreTask(job, split_id, None) for ids in split_ids.values() for split_id in ids]
        for why in self._do(tasks, "splits"):
            problems |= {name: text for name, text in why.items() if name not in problems}
        for name, text in problems.items():
            if text:
                self._give_up(name, text, attempts)
        return replace(job, designs=tuple(d for d in job.designs if d.name not in problems))

    def _give_up(self, design: str, why: str, attempts: Attempts | None) -> None:
        """Note that a design is not possible; raise an error where it is the common one."""
        if attempts is None or design == self.job.designs[0].name:
            raise DataError(f"design {design}: {why}")
        attempts.failures[f"design {design}"] = why

    def _do(self, tasks: Sequence[CoreTask], stage: str) -> list[dict[str, str]]:
        """Do the tasks that have something to do; return what each one gave."""
        todo = [task for task in tasks if task.todo()]
        done = len(tasks) - len(todo)
        self.progress(stage, done, len(tasks))
        results = []
        with closing(core_outcomes(self.executor, todo)) as outcomes:
            for outcome in outcomes:
                if outcome.failure is not None:
                    raise _failed(outcome.task, outcome.failure)
                results.append(outcome.result)
                done += 1
                self.progress(stage, done, len(tasks))
        return results

    def _scores(self, job: CoreJob, split_id: SplitId, design: AuditDesign) -> Scores:
        """Return the scores of one design on one split."""
        plan, what = job.plan_at(split_id), f"design {design.name}"

        lists = _stored(job, split_id, None, what)
        content = {
            "plan": plan.describe(),
            "data": job.data,
            "fold": split_id.fold,
            "repeat": split_id.repeat,
            "view": design.view.describe(),
            "lists": lists[1]["facts"],
            "systems": list(plan.systems),
            "versions": lists[1]["versions"],
        }
        systems = {name: _stored(job, split_id, name, what) for name in plan.systems}
        return scores_of(plan, design.view, job.ratings, lists, systems, content)

    def _lists(self, job: CoreJob, split_id: SplitId) -> SplitLists:
        """Return the lists of every system on a split."""
        lists = job.every_item(split_id)
        runs = {
            name: run_of(_stored(job, split_id, name, "run")[0], lists) for name in job.plan.systems
        }
        return SplitLists.of(job.split_at(split_id).split, runs, job.remade(split_id))

    def _tuned(
        self, job: CoreJob, split_ids: Sequence[SplitId]
    ) -> tuple[Mapping[str, TunedSystem], ...]:
        """Return the settings that were chosen on each split."""
        if not job.tuned:
            return ()
        return tuple(
            {
                name: tuned_of(system, *_stored(job, split_id, name, "tuned"))
                for name, system in job.plan.systems.items()
                if name in job.tuned
            }
            for split_id in split_ids
        )

    def _true(
        self,
        job: CoreJob,
        designs: Sequence[AuditDesign],
        split_ids: Mapping[str, Sequence[SplitId]],
    ) -> dict[str, tuple[Scores, ...]]:
        """Return what the truth says of the models of every design, where it is known."""
        if job.truth is None:
            return {}
        by_split = {
            key: tuple(
                true_scores_of(
                    {name: _stored(job, split_id, name, "truth")[0] for name in job.plan.systems},
                    job.plan_at(split_id),
                    job.ratings,
                )
                for split_id in ids
            )
            for key, ids in split_ids.items()
        }
        return {design.name: by_split[design.split_key] for design in designs}


def _tuned(plan: Plan, tune: bool | Collection[str]) -> frozenset[str]:
    """Return the systems that are tuned."""
    names = plan.systems if tune is True else tune or ()
    return frozenset(name for name in names if plan.systems[name].tuning)


def _stored(job: CoreJob, split_id: SplitId, system: str | None, what: str) -> Stored:
    """Return a result: of a design, the lists, or what the truth says."""
    return job.where(system).get(CoreTask(job, split_id, system).keys[what])


def _looked_at(job: CoreJob, key: str) -> bool:
    return any(design.split_key == key for design in job.designs)


def _failed(task: CoreTask, failure: str) -> DataError:
    seed = task.job.plan_at(task.split_id).seed
    if "\n" not in failure.strip():  # an error on purpose, not one of code
        return DataError(f"{task.label} failed, with seed {seed}: {failure}")
    return DataError(f"{task.label} failed, with seed {seed}; finished work is kept.\n{failure}")


def core_notes(core: Core) -> list[str]:
    """Return what was assumed: of cold users, where there are any, and how systems were tuned."""
    return [*_cold(core), *_tuning(core)]


def _cold(core: Core) -> list[str]:
    """Return what was assumed of users without training ratings, where there are any."""
    if not core.has_cold:
        return []
    table = core.cold_table.unique("design", maintain_order=True).filter(pl.col("cold") > 0)
    counts = {
        row["design"]: f"{row['cold']:,} of {row['users']:,} under {row['design']}"
        for row in table.iter_rows(named=True)
    }
    apart = [text for design, text in counts.items() if design in core.warm_designs]
    cold_only = [design for design in counts if design not in core.warm_designs]
    lines = [FALLBACK]
    if apart:
        lines.append(
            "systems are compared on users with training ratings; cold users are scored "
            f"separately ({'; '.join(apart)}, over all splits)"
        )
    if cold_only:
        lines.append(
            f"under {', '.join(cold_only)}, systems are compared on all users, because all users "
            "of a split are cold"
        )
    return lines


def _tuning(core: Core) -> list[str]:
    """Say which settings were chosen, in how many splits, and which lie at an end of the grid."""
    if not core.tuned:
        return []
    chosen = [_choices(core, system) for system in core.systems if system in core.tuned[0]]
    lines = [
        f"settings: chosen by {core.metric} on a validation fifth of the training ratings of "
        f"each split, from up to {BUDGET} candidates per system: {'; '.join(chosen)}"
    ]
    for system in core.tuned[0]:
        edges = [name for split in core.tuned for name in split[system].edges]
        lines += [
            f"settings: {system}: the chosen {name} is the first or last value tried in {count} "
            f"of {len(core.tuned)} splits; a value beyond it may be better"
            for name, count in Counter(edges).items()
        ]
        reasons = {split[system].reason for split in core.tuned} - {""}
        lines += [f"settings: {system}: {reason}" for reason in sorted(reasons)]
    return lines


def _choices(core: Core, system: str) -> str:
    counts = Counter(split[system].text for split in core.tuned)
    if len(counts) == 1:
        return f"{system} {next(iter(counts))}"
    return f"{system} " + " or ".join(
        f"{text} ({count} of {len(core.tuned)} splits)" for text, count in counts.most_common()
    )


def tuning_card(core: Core) -> dict[str, list[dict[str, Any]]]:
    """Return the chosen settings by design and split, as plain values."""
    return {
        design: [
            {
                name: {
                    "settings": dict(tuned.settings),
                    "default": tuned.is_default,
                    "edges": list(tuned.edges),
                    "tried": tuned.tried,
                }
                for name, tuned in split.items()
            }
            for split in splits
        ]
        for design, splits in core.tuned_by_design.items()
    }
