"""The tasks of a null experiment: one system on one split of one draw, and what it scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from unskew.auditing.cold_users import with_fallback
from unskew.auditing.null.repeats import NULL_SCHEMA, REAL, RepeatBudget, RepeatRule
from unskew.auditing.page.captions import caption
from unskew.data.ratings import Ratings
from unskew.engine.executor import Executor
from unskew.engine.progress import Progress
from unskew.engine.rng import generator
from unskew.engine.rng import key_of as seed_of
from unskew.engine.store import Store, digest_of
from unskew.engine.system import versions
from unskew.errors import DataError, SettingError, quietly
from unskew.evaluation.chance import chance_scores
from unskew.evaluation.scores import Scores, System
from unskew.evaluation.scoring import Measures, list_columns
from unskew.experiment.execution import run_plan_by
from unskew.experiment.plan import STAGES, Plan
from unskew.experiment.task import (
    judged_systems,
    judged_view,
    protocol_label,
    scored,
    task_label,
    wanted_metrics,
)
from unskew.judging.judged import Judged
from unskew.recommend.simple import Random
from unskew.splits.split import Split
from unskew.worlds.nulls import DIRECTIONS, redraw

SEEDS = 1 << 31
"""Seeds of repeats are below this."""


@dataclass(frozen=True)
class NullTask:
    """One system on one split of one draw, under all designs of a plan.

    Without a system: what chance scores there.
    """

    kind: str
    """The null."""
    repeat: int
    plan: int
    """Its number in the job."""
    split: int
    fold: int
    system: str | None


@dataclass(frozen=True)
class NullMean:
    """What a system, or chance, scores under one design of one split."""

    view: int
    """Number of the way to judge."""
    metric: str
    value: float


@dataclass
class _DrawnNull:
    """A draw, and what was worked out on it so far."""

    key: tuple[object, ...] = ()
    ratings: Ratings | None = None
    split_key: tuple[object, ...] = ()
    split: Split | None = None
    lists: dict[int, Judged] = field(default_factory=dict)
    """By view: its lists without systems, laid over the judgments."""
    columns: dict[int, pl.DataFrame] = field(default_factory=dict)
    """By view: what is known of its lists, which means are taken by."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NullJob:
    """What all tasks share; called with a task it does it.

    A draw and its splits are kept from task to task: who rated what is the same in all of them, and
    tasks of one draw follow one another.
    """

    ratings: Ratings
    plans: tuple[Plan, ...]
    share: float | None = None
    """For `iid`: the share of liked ratings; that of the data unless given."""
    directions: int = DIRECTIONS
    """For `clusters`."""
    fallback: bool = False
    """Whether cold users are recommended popular items, as an audit does."""
    store: Store | None = None
    """Keeps the means of finished tasks."""
    data: str = ""
    """The key of the ratings in the store."""
    state: _DrawnNull = field(default_factory=_DrawnNull, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "state": _DrawnNull()}

    def forget(self) -> None:
        """Give back what this process keeps from task to task."""
        self.state.__dict__.update(_DrawnNull().__dict__)

    def tasks(self, kinds: Sequence[str], repeats: range) -> list[NullTask]:
        """Return the tasks of some repeats; those of one draw follow one another."""
        return [
            NullTask(kind, repeat, number, split, fold, system)
            for kind in kinds
            for repeat in repeats
            for number, plan in enumerate(self.plans)
            if kind == "iid" or not is_null_only(plan)
            for chance in [chance_systems(plan)]
            for split, fold in self._folds(number, kind, repeat)
            for system in (None, *(name for name in plan.systems if name not in chance))
        ]

    def _folds(self, number: int, kind: str, repeat: int) -> list[tuple[int, int]]:
        counts = [split.known_count() for split in self.plans[number].splits]
        if None in counts:  # the number of splits depends on the data
            task = NullTask(kind, repeat, number, 0, 0, None)
            return self.plans[number].folds(self._ratings(task), self.seed(task))
        return [(n, fold) for n, count in enumerate(counts) for fold in range(count or 0)]

    def label(self, task: NullTask) -> str:
        """Return in words what a task is."""
        of_plan = task_label(self.plans[task.plan], task.split, task.fold, task.system)
        return f"{of_plan}, {task.kind} repeat {task.repeat + 1}"

    def seed(self, task: NullTask) -> int:
        """Return the seed of a draw, of its splits and of what is trained on it."""
        return seed_of(self.plans[task.plan].seed, "null", task.kind, task.repeat) % SEEDS

    def kept(self, task: NullTask) -> list[NullMean] | None:
        """Return what the store has of a task; None = nothing."""
        key = self._key(task)
        if self.store is None or key is None or not self.store.has(key):
            return None
        table, _ = self.store.get(key)
        return [NullMean(*row) for row in table.iter_rows()]

    def keep(self, task: NullTask, means: Sequence[NullMean]) -> None:
        """Put what a task gave into the store; whoever did the task need not reach the store."""
        key = self._key(task)
        if self.store is None or key is None:
            return
        rows = [(mean.view, mean.metric, mean.value) for mean in means]
        schema = {"view": pl.Int64, "metric": pl.String, "value": pl.Float64}
        card = {"label": self.label(task), "seed": self.seed(task), "versions": versions()}
        self.store.put(key, pl.DataFrame(rows, schema=schema, orient="row"), card)

    def __call__(self, task: NullTask) -> list[NullMean]:
        """Draw, split, train, rank and judge, as far as it is not done yet."""
        with quietly():
            return self._chance(task) if task.system is None else self._system(task, task.system)

    def _chance(self, task: NullTask) -> list[NullMean]:
        plan, seed, means = self.plans[task.plan], self.seed(task), []
        for number, view in enumerate(plan.views()):
            judged, metrics = self._judged(task, number), wanted_metrics(plan, view)
            chance, _ = chance_scores(judged, metrics, draws=plan.draws, seed=seed)
            means += self._means(task, number, metrics, chance)
        return means

    def _system(self, task: NullTask, name: str) -> list[NullMean]:
        plan, seed, split = self.plans[task.plan], self.seed(task), self._split(task)
        system = plan.systems[name]
        split_key = digest_of({"split": plan.splits[task.split].draw_key})
        rng = generator(seed, "fit", split_key, task.fold, digest_of(system.draw_key))
        model = system.fit(split.train, rng)
        if self.fallback:
            model = with_fallback(model, split.train)
        designs = [
            (self._judged(task, number), wanted_metrics(plan, view))
            for number, view in enumerate(plan.views())
        ]
        ranked, _ = judged_systems(designs, model, ties=plan.ties, seed=seed)
        means = []
        for number, (judged, (_, metrics)) in enumerate(zip(ranked, designs, strict=True)):
            means += self._means(task, number, metrics, scored(judged, metrics))
        return means

    def _means(
        self, task: NullTask, number: int, metrics: Measures, system: System
    ) -> list[NullMean]:
        """Average the values of lists as the plan says."""
        plan, judged = self.plans[task.plan], self._judged(task, number)
        if number not in self.state.columns:
            self.state.columns[number] = list_columns(judged)
        scores = Scores(
            labels=metrics.rows,
            systems={"": system},
            user_ids=judged.users,
            lists=self.state.columns[number],
            users=plan.users,
            undefined=plan.undefined,
            order=tuple(metrics),
            over="strata" if judged.targets and judged.targets.strata else "lists",
        )
        return [
            NullMean(number, label, mean.value) for label, mean in scores.averages()[""].items()
        ]

    def _ratings(self, task: NullTask) -> Ratings:
        plan, seed = self.plans[task.plan], self.seed(task)
        key = (task.kind, seed, None if self.share is None else plan.relevance.liked)
        state = self.state
        if state.ratings is None or state.key != key:
            self.forget()
            state.key, state.ratings = key, self._redrawn(task.kind, seed, plan)
        return state.ratings

    def _redrawn(self, kind: str, seed: int, plan: Plan) -> Ratings:
        if kind == "clusters":
            return redraw(self.ratings, kind, seed, directions=self.directions)
        if kind == "iid" and self.share is not None:
            liked = plan.relevance.liked
            return redraw(self.ratings, kind, seed, liked=liked, share=self.share)
        return redraw(self.ratings, kind, seed)

    def _split(self, task: NullTask) -> Split:
        ratings, state = self._ratings(task), self.state
        key = (task.plan, task.split, task.fold)
        if state.split is None or state.split_key != key:
            plan = self.plans[task.plan]
            split = plan.splits[task.split].nth(ratings, task.fold, self.seed(task))
            # The users who are judged are those of the plan, whatever the draw.
            split = split.judging(plan.judged(self.ratings))
            state.split_key, state.split = key, split
            state.lists, state.columns = {}, {}
        return state.split

    def _judged(self, task: NullTask, number: int) -> Judged:
        split = self._split(task)
        if number not in self.state.lists:
            plan = self.plans[task.plan]
            view = plan.views()[number]
            self.state.lists[number] = judged_view(view, split, plan.relevance, self.seed(task))
        return self.state.lists[number]

    def _key(self, task: NullTask) -> str | None:
        """Return the key of a result in a store; None where it depends on code of the user."""
        plan = self.plans[task.plan]
        if self.store is None or task.system not in plan.storable:
            return None
        parts: dict[str, Any] = {
            "stages": STAGES,
            "what": "null",
            "data": self.data,
            "null": [task.kind, self.share, self.directions],
            **self._described[task.plan],
            "split": self._described[task.plan]["split"][task.split],
            "fold": task.fold,
            "seed": self.seed(task),
        }
        if task.system is None:
            parts["draws"] = plan.draws
        else:
            parts["system"] = plan.systems[task.system].describe()
            parts |= {"ties": plan.ties, "fallback": self.fallback}
        return digest_of(parts)

    @cached_property
    def _described(self) -> list[dict[str, Any]]:
        """By plan: what the keys of its results are made of; `split` of each way to split."""
        return [
            {
                "split": [split.describe() for split in plan.splits],
                "views": [view.describe() for view in plan.views()],
                "relevance": plan.relevance.describe(),
                "metrics": {label: str(metric) for label, metric in plan.labelled_metrics.items()},
                "users": [plan.users, plan.undefined],
                "judged": [plan.judged_users, plan.seed],
                "versions": versions(),
            }
            for plan in self.plans
        ]


def is_null_only(plan: Plan) -> bool:
    """Tell whether the splits of a plan make sense on null data only."""
    return all(split.null_only for split in plan.splits)


def chance_systems(plan: Plan) -> frozenset[str]:
    """Return the systems that are a random order whose expected value is known: what chance scores.

    Metrics of a whole run are left out: what is known of them is simulated by few random orders.
    """
    if any(metric.definition.of == "run" for metric in plan.labelled_metrics.values()):
        return frozenset()
    return frozenset(name for name, system in plan.systems.items() if type(system) is Random)


Place = tuple[int, int]
"""Number of the splitter, and of the way to judge."""


@dataclass(frozen=True)
class _JudgedNull:
    """One way to judge the splits of a draw."""

    kind: str
    repeat: int
    plan: int
    split: int
    view: int


@dataclass(frozen=True)
class PlanGroup:
    """Plans that share everything but their targets, as one: systems are trained once."""

    plan: Plan
    names: Mapping[tuple[str, str], str]
    """From target designs as they print, and the name of the plan they came from, to labels."""

    @cached_property
    def chance(self) -> frozenset[str]:
        """The systems that score what chance scores."""
        return chance_systems(self.plan)

    @cached_property
    def labels(self) -> dict[Place, list[str]]:
        """By splitter and way to judge: the designs that take it, as they are called."""
        plan = self.plan
        kinds = [intervention.kind for intervention in plan.interventions]
        parts = {}
        for split in range(len(plan.splits)):
            for number, view in enumerate(plan.views()):
                change = view.intervention
                kind = "" if change is None else change.kind
                changed = kind if kinds.count(kind) < 2 else repr(change)
                parts[split, number] = (protocol_label(plan, split), view.judgments, changed)
        differing = [
            index for index in range(3) if len({part[index] for part in parts.values()}) > 1
        ]
        labels: dict[Place, list[str]] = {}
        for key, part in parts.items():
            targets = repr(plan.views()[key[1]].targets)
            more = [part[index] for index in differing]
            labels[key] = [
                " ".join(filter(None, [name, *more])) or targets
                for (design, _), name in self.names.items()
                if design == targets
            ]
        return labels


def plan_groups(plan: Plan | Mapping[str, Plan], liked: float | None) -> list[PlanGroup]:
    """Bring plans with one split and like systems together.

    Parameters
    ----------
    plan
        A plan, or several by name.
    liked
        The smallest rating that is liked, instead of what their relevance says.
    """
    if isinstance(plan, Plan):
        plan = {"": plan}
    if not isinstance(plan, Mapping) or not plan:
        raise SettingError(f"give a plan, or plans by name; got {plan!r}")
    groups: dict[str, dict[str, Plan]] = {}
    for name, entry in plan.items():
        if not isinstance(entry, Plan):
            raise SettingError(f"{name}: a plan is us.Plan(…), got {entry!r}")
        member = entry
        if liked is not None:
            member = replace(entry, relevance=replace(entry.relevance, liked=liked, above=None))
        shared = {key: value for key, value in member.describe().items() if key != "targets"}
        groups.setdefault(digest_of(shared), {})[str(name)] = member
    return [_group(members) for members in groups.values()]


def _group(members: Mapping[str, Plan]) -> PlanGroup:
    first = next(iter(members.values()))
    targets = {repr(design): design for member in members.values() for design in member.designs}
    names = {
        (repr(design), name): name if len(member.designs) == 1 else f"{name} {design!r}".strip()
        for name, member in members.items()
        for design in member.designs
    }
    only = [split.null_only for split in first.splits]
    if any(only) and not all(only):
        raise SettingError("splits that make sense only on null data need a separate plan")
    return PlanGroup(replace(first, targets=tuple(targets.values())), names)


@dataclass(frozen=True, eq=False, kw_only=True)
class NullRun:
    """A null experiment while it runs."""

    job: NullJob
    groups: Sequence[PlanGroup]
    kinds: Sequence[str]
    level: float
    rule: RepeatRule
    executor: Executor
    progress: Progress

    def carry_out(
        self, real: Mapping[str, Sequence[Scores]] | None
    ) -> tuple[pl.DataFrame, RepeatBudget]:
        """Run the first repeats, and as many more as their spread asks for; return all rows."""
        rule = self.rule
        rows = self._real_rows(real)
        rows += self._drawn_rows(range(rule.minimum), rule.maximum)
        budget = rule.budget(pl.DataFrame(rows, schema=NULL_SCHEMA), self.level)
        if budget.repeats > rule.minimum:
            rows += self._drawn_rows(range(rule.minimum, budget.repeats), budget.repeats)
        # Repeats are in order already.
        ordered = [row for kind in (REAL, *self.kinds) for row in rows if row["data"] == kind]
        return pl.DataFrame(ordered, schema=NULL_SCHEMA), budget

    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know of single designs and systems."""
        notes = [
            f"{', '.join(group.names.values())}: for the null iid only"
            for group in self.groups
            if is_null_only(group.plan) and set(self.kinds) != {"iid"}
        ]
        expected = {name for group in self.groups for name in group.chance}
        if expected:
            notes.append(caption("null expected", names=", ".join(sorted(expected))))
        return tuple(dict.fromkeys(notes))

    # The data as they are

    def _real_rows(self, real: Mapping[str, Sequence[Scores]] | None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for group in self.groups:
            if is_null_only(group.plan):
                continue
            scores = self._run(group) if real is None else real
            for labels in group.labels.values():
                for design in labels:
                    if not scores.get(design):
                        raise SettingError(f"real has no scores of {design}")
                    rows += _means(design, scores[design])
        return rows

    def _run(self, group: PlanGroup) -> dict[str, list[Scores]]:
        """Return the scores of each design on the data as they are."""
        store = None if self.job.store is None else self.job.store.home
        results = run_plan_by(self.executor, self.job.ratings, group.plan, store=store)
        places = {
            (
                protocol_label(group.plan, split),
                digest_of(group.plan.views()[view].describe()),
            ): labels
            for (split, view), labels in group.labels.items()
        }
        scores: dict[str, list[Scores]] = {}
        for part in results:
            for design in places[part.split, digest_of(part.view.describe())]:
                scores.setdefault(design, []).append(part.scores)
        return scores

    # Draws

    def _drawn_rows(self, repeats: range, limit: int) -> list[dict[str, Any]]:
        """Return the rows of some repeats; their tasks are one set, whoever does them."""
        job = self.job
        tasks = job.tasks(self.kinds, repeats)
        per_repeat = len(tasks) // max(len(repeats), 1)
        done, total = per_repeat * repeats.start, per_repeat * limit
        means = {task: stored for task in tasks if (stored := job.kept(task)) is not None}
        done += len(means)
        self.progress(done, total)
        todo = [task for task in tasks if task not in means]
        try:
            with closing(self.executor.do(job, todo)) as outcomes:
                for outcome in outcomes:
                    if outcome.failure is not None:
                        raise self._failed(outcome.task, outcome.failure)
                    means[outcome.task] = outcome.result
                    job.keep(outcome.task, outcome.result)
                    done += 1
                    self.progress(done, total)
        finally:
            job.forget()
        return self._rows(tasks, means)

    def _rows(
        self, tasks: Sequence[NullTask], means: Mapping[NullTask, Sequence[NullMean]]
    ) -> list[dict[str, Any]]:
        """Average over folds; chance stands for systems that are a random order."""
        values: dict[tuple[_JudgedNull, str | None, str], list[float]] = {}
        for task in tasks:
            for mean in means[task]:
                judged = _JudgedNull(task.kind, task.repeat, task.plan, task.split, mean.view)
                values.setdefault((judged, task.system, mean.metric), []).append(mean.value)
        average = {key: math.fsum(parts) / len(parts) for key, parts in values.items()}
        chance: dict[_JudgedNull, dict[str, float]] = {}
        for (judged, system, metric), value in average.items():
            if system is None:
                chance.setdefault(judged, {})[metric] = value
        return [
            {
                "data": judged.kind,
                "repeat": judged.repeat,
                "design": design,
                "system": name,
                "metric": metric,
                "value": average[
                    judged, None if name in self.groups[judged.plan].chance else name, metric
                ],
                "random": value,
            }
            for judged, of_chance in chance.items()
            for design in self.groups[judged.plan].labels[judged.split, judged.view]
            for name in self.groups[judged.plan].plan.systems
            for metric, value in of_chance.items()
        ]

    def _failed(self, task: NullTask, failure: str) -> DataError:
        label, seed = self.job.label(task), self.job.seed(task)
        if "\n" not in failure.strip():  # an error on purpose, not one of code
            return DataError(f"{label} failed, with seed {seed}: {failure}")
        return DataError(f"{label} failed, with seed {seed}; finished work is kept.\n{failure}")


def _means(design: str, scores: Sequence[Scores]) -> list[dict[str, Any]]:
    """Return the means over splits of what every system scores on the data as they are."""
    averages = [score.averages() for score in scores]
    chances = [score.random() for score in scores]
    rows = []
    for name, labels in averages[0].items():
        for metric in labels:
            values = [average[name][metric].value for average in averages]
            expected = [chance[metric] for chance in chances if metric in chance]
            rows.append(
                {
                    "data": REAL,
                    "repeat": 0,
                    "design": design,
                    "system": name,
                    "metric": metric,
                    "value": math.fsum(values) / len(values),
                    "random": math.fsum(expected) / len(expected) if expected else None,
                }
            )
    return rows
