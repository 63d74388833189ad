"""A null experiment while it runs: the data as they are, then repeats of draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from unskew.auditing.captions import caption
from unskew.auditing.null_repeats import NULL_SCHEMA, REAL, RepeatBudget, RepeatRule
from unskew.auditing.null_tasks import NullJob, NullMean, NullTask, chance_systems, is_null_only
from unskew.engine.execute import Executor
from unskew.engine.progress import Progress
from unskew.engine.store import digest_of
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.execution import run_plan_by
from unskew.experiment.plan import Plan
from unskew.experiment.task import protocol_label

Place = tuple[int, int]
"""Number of the splitter, and of the way to judge."""


@dataclass(frozen=True)
class _Judged:
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
        kinds = [one.kind for one in plan.interventions]
        parts = {}
        for split in range(len(plan.splits)):
            for number, view in enumerate(plan.views()):
                change = view.intervention
                kind = "" if change is None else change.kind
                changed = kind if kinds.count(kind) < 2 else repr(change)
                parts[split, number] = (protocol_label(plan, split), view.judgments, changed)
        differing = [at for at in range(3) if len({part[at] for part in parts.values()}) > 1]
        labels: dict[Place, list[str]] = {}
        for place, part in parts.items():
            targets = repr(plan.views()[place[1]].targets)
            more = [part[at] for at in differing]
            labels[place] = [
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
    for name, one in plan.items():
        if not isinstance(one, Plan):
            raise SettingError(f"{name}: a plan is us.Plan(…), got {one!r}")
        member = one
        if liked is not None:
            member = replace(one, relevance=replace(one.relevance, liked=liked, above=None))
        shared = {key: value for key, value in member.describe().items() if key != "targets"}
        groups.setdefault(digest_of(shared), {})[str(name)] = member
    return [_group(members) for members in groups.values()]


def _group(members: Mapping[str, Plan]) -> PlanGroup:
    first = next(iter(members.values()))
    targets = {repr(one): one for member in members.values() for one in member.designs}
    names = {
        (repr(one), name): name if len(member.designs) == 1 else f"{name} {one!r}".strip()
        for name, member in members.items()
        for one in member.designs
    }
    only = [one.null_only for one in first.splits]
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
        rows += self._drawn_rows(range(rule.least), rule.most)
        budget = rule.budget(pl.DataFrame(rows, schema=NULL_SCHEMA), self.level)
        if budget.repeats > rule.least:
            rows += self._drawn_rows(range(rule.least, budget.repeats), budget.repeats)
        kinds = [REAL, *self.kinds]
        rows.sort(key=lambda row: (kinds.index(row["data"]), row["repeat"]))
        return pl.DataFrame(rows, schema=NULL_SCHEMA), budget

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
            known = self._run(group) if real is None else real
            for labels in group.labels.values():
                for design in labels:
                    if not known.get(design):
                        raise SettingError(f"real has no scores of {design}")
                    rows += _means(design, known[design])
        return rows

    def _run(self, group: PlanGroup) -> dict[str, list[Scores]]:
        """Return the scores of each design on the data as they are."""
        store = None if self.job.store is None else self.job.store.home
        results = run_plan_by(self.executor, self.job.ratings, group.plan, store=store)
        places = {
            (protocol_label(group.plan, split), digest_of(group.plan.views()[view].describe())): one
            for (split, view), one in group.labels.items()
        }
        scores: dict[str, list[Scores]] = {}
        for part in results:
            for design in places[part.split, digest_of(part.view.describe())]:
                scores.setdefault(design, []).append(part.scores)
        return scores

    # Draws

    def _drawn_rows(self, repeats: range, most: int) -> list[dict[str, Any]]:
        """Return the rows of some repeats; their tasks are one set, whoever does them."""
        job = self.job
        tasks = job.tasks(self.kinds, repeats)
        each = len(tasks) // max(len(repeats), 1)
        done, total = each * repeats.start, each * most
        means = {task: kept for task in tasks if (kept := job.kept(task)) is not None}
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
        values: dict[tuple[_Judged, str | None, str], list[float]] = {}
        for task in tasks:
            for one in means[task]:
                place = _Judged(task.kind, task.repeat, task.plan, task.split, one.view)
                values.setdefault((place, task.system, one.metric), []).append(one.value)
        average = {key: math.fsum(several) / len(several) for key, several in values.items()}
        chance: dict[_Judged, dict[str, float]] = {}
        for (place, system, metric), value in average.items():
            if system is None:
                chance.setdefault(place, {})[metric] = value
        return [
            {
                "data": place.kind,
                "repeat": place.repeat,
                "design": design,
                "system": name,
                "metric": metric,
                "value": average[
                    place, None if name in self.groups[place.plan].chance else name, metric
                ],
                "random": value,
            }
            for place, of_chance in chance.items()
            for design in self.groups[place.plan].labels[place.split, place.view]
            for name in self.groups[place.plan].plan.systems
            for metric, value in of_chance.items()
        ]

    def _failed(self, task: NullTask, failure: str) -> DataError:
        label, seed = self.job.label(task), self.job.seed(task)
        if "\n" not in failure.strip():  # an error on purpose, not one of code
            return DataError(f"{label} failed, with seed {seed}: {failure}")
        return DataError(f"{label} failed, with seed {seed}; finished work is kept.\n{failure}")


def _means(design: str, scores: Sequence[Scores]) -> list[dict[str, Any]]:
    """Return the means over splits of what every system scores on the data as they are."""
    averages = [one.averages() for one in scores]
    chances = [one.random() for one in scores]
    rows = []
    for name, labels in averages[0].items():
        for metric in labels:
            values = [one[name][metric].value for one in averages]
            known = [one[metric] for one in chances if metric in one]
            rows.append(
                {
                    "data": REAL,
                    "repeat": 0,
                    "design": design,
                    "system": name,
                    "metric": metric,
                    "value": math.fsum(values) / len(values),
                    "random": math.fsum(known) / len(known) if known else None,
                }
            )
    return rows
