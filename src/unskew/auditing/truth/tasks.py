"""The tasks of `truth`: some systems on one split, judged by every design and by the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from unskew.auditing.truth import sources
from unskew.engine.executor import Executor
from unskew.errors import DataError, quietly
from unskew.evaluation.scores import Scores
from unskew.experiment.execution import check_picklable
from unskew.experiment.plan import Plan, PlanView
from unskew.experiment.task import task_label
from unskew.splits.split import Split


@dataclass(frozen=True)
class TruthTask:
    """Some systems on one split."""

    split: int
    fold: int
    systems: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class JudgedSplit:
    """What designs observe of systems on one split, and what is true."""

    true: Scores
    observed: Mapping[str, Scores]
    """By design."""
    facts: Mapping[str, Mapping[str, int]]
    """By design: how many ratings train and judge."""


@dataclass(eq=False)
class TruthJob:
    """What all tasks share; does them."""

    source: sources.Source
    plan: Plan
    _ahead: Iterator[tuple[int, int, Split]] | None = field(default=None, repr=False)
    _last: tuple[int, int, Split] | None = field(default=None, repr=False)
    """The split that was asked for last: its tasks follow one another."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ahead": None, "_last": None}

    def __call__(self, task: TruthTask) -> JudgedSplit:
        """Train systems on a split; judge them by every design, and by the truth."""
        plan, source, split = self.plan, self.source, self._split(task.split, task.fold)
        systems = {name: plan.systems[name] for name in task.systems}
        key = plan.splits[task.split].draw_key, task.fold
        models = sources.fit_all(systems, split.train, plan.seed, *key)
        true = source.judge(models, split.train, plan)
        observed, facts = {}, {}
        for view in plan.views():
            name = design_name(plan, task.split, view)
            judged = applied(view, split, source, plan.seed)
            lists = view.targets.lists(judged, plan.relevance, seed=plan.seed)
            observed[name] = sources.scores_on(lists, models, plan)
            facts[name] = {"train": len(split.train), "test": len(judged.test)}
        return JudgedSplit(true, observed, facts)

    def _splits(self) -> Iterator[tuple[int, int, Split]]:
        for number, splitter in enumerate(self.plan.splits):
            for fold, split in enumerate(splitter.each(self.source.ratings, self.plan.seed)):
                yield number, fold, split

    def _split(self, number: int, fold: int) -> Split:
        """Return a split; those that are asked for in their order are drawn once."""
        if self._last is None or self._last[:2] != (number, fold):
            if self._ahead is None or (self._last is not None and self._last[:2] > (number, fold)):
                self._ahead = self._splits()
            _, _, split = next(entry for entry in self._ahead if entry[:2] == (number, fold))
            self._last = number, fold, split
        return self._last[2]


@dataclass(eq=False)
class TruthElsewhere:
    """Does tasks in other processes: what comes back holds no ratings."""

    job: TruthJob

    def __call__(self, task: TruthTask) -> JudgedSplit:
        """Do a task."""
        with quietly():
            part = self.job(task)
        observed = {name: _light(scores) for name, scores in part.observed.items()}
        return replace(part, true=_light(part.true), observed=observed)


def _light(scores: Scores) -> Scores:
    """Return scores with their card, not with the data that it describes."""
    return replace(scores, make_card=partial(dict, scores.card))


def judged_splits(executor: Executor, job: TruthJob) -> Iterator[JudgedSplit]:
    """Do all tasks; give the splits of the plan in their order, as soon as each is whole."""
    plan = job.plan
    folds = plan.folds(job.source.ratings)
    names = tuple(plan.systems)
    if executor.is_here:
        for split, fold in folds:
            yield job(TruthTask(split, fold, names))
        return
    if executor.workers > 1:
        check_picklable(plan)
    # Systems of a split are done apart only where there are fewer splits than workers: what they
    # share, such as what chance scores, is then worked out in each part.
    count = -(-executor.count // max(len(folds), 1))
    # The first and the last system are far apart.
    groups = [names[offset::count] for offset in range(min(count, len(names)))]
    tasks = [TruthTask(split, fold, group) for split, fold in folds for group in groups]
    parts: dict[TruthTask, JudgedSplit] = {}
    waiting = [tasks[start : start + len(groups)] for start in range(0, len(tasks), len(groups))]
    with closing(executor.do(TruthElsewhere(job), tasks)) as outcomes:
        for outcome in outcomes:
            if outcome.failure is not None:
                task = outcome.task
                label = task_label(plan, task.split, task.fold, ", ".join(task.systems))
                raise DataError(f"{label} failed, with seed {plan.seed}: {outcome.failure}")
            parts[outcome.task] = outcome.result
            while waiting and all(task in parts for task in waiting[0]):
                yield _joined([parts.pop(task) for task in waiting.pop(0)])


def _joined(parts: Sequence[JudgedSplit]) -> JudgedSplit:
    """Put the systems of one split together."""
    if len(parts) == 1:
        return parts[0]
    observed = {
        name: _with_all([part.observed[name] for part in parts]) for name in parts[0].observed
    }
    return replace(parts[0], true=_with_all([part.true for part in parts]), observed=observed)


def _with_all(parts: Sequence[Scores]) -> Scores:
    """Return scores on the same lists as one; systems stand as if they were dealt out in turn."""
    columns = [list(part.systems.items()) for part in parts]
    rows = range(max(len(column) for column in columns))
    systems = dict(column[row] for row in rows for column in columns if row < len(column))
    card = {**parts[0].card, "systems": list(systems)}
    return replace(
        parts[0],
        systems=systems,
        make_card=partial(dict, card),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def applied(view: PlanView, split: Split, source: sources.Source, seed: int) -> Split:
    """Return the split as a view judges it; an intervention may learn from random ratings."""
    if view.intervention is None:
        return view.apply(split, seed)
    plain = replace(view, intervention=None).apply(split, seed)
    sample = view.intervention.sample(plain.test, split.train, source.weights, seed=seed)
    return replace(plain, test=sample.ratings)


def design_name(plan: Plan, split: int, view: PlanView) -> str:
    """Name a design by what tells it from the others of its plan."""
    parts = []
    if len(plan.splits) > 1:
        names = [split.name for split in plan.splits]
        splitter = plan.splits[split]
        parts.append(splitter.name if names.count(splitter.name) == 1 else repr(splitter))
    if len(plan.designs) > 1:
        parts.append(repr(view.targets))
    if len(plan.judgments) > 1:
        parts.append(view.judgments)
    change = view.intervention
    if change is not None:
        kinds = [intervention.kind for intervention in plan.interventions]
        parts.append(change.kind if kinds.count(change.kind) == 1 else repr(change))
    return " ".join(parts) or f"{plan.splits[split].name} {view.targets!r}"
