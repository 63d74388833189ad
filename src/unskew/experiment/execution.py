"""`run_plan`: carry a plan out."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.checks import checked
from unskew.data.dataset import put_data
from unskew.data.events import Events, read_events
from unskew.data.formats.catalog import load, read_name
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.engine.executor import Executor, executor
from unskew.engine.files import temporary_folder
from unskew.engine.progress import notebook_progress
from unskew.engine.store import MissingResult, Store, StoreError, digest_of
from unskew.errors import DataError, SettingError, Spelling, is_address
from unskew.evaluation.scores import Scores
from unskew.experiment.collection import PlanData, Stored, scores_of
from unskew.experiment.plan import Custom, Plan, PlanView
from unskew.experiment.results import Results, ScoredSplit
from unskew.experiment.task import (
    Place,
    Task,
    do_stored,
    forget,
    protocol_label,
    result_key,
    task_label,
)

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class RunProgress:
    """How far a run is."""

    done: int
    total: int
    failed: int
    label: str
    """What was finished last."""


@notebook_progress("plan")
@checked
def run_plan(
    data: object,
    plan: Plan,
    *,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
    keep_going: bool = False,
    retry_failed: bool = False,
    progress: Callable[[RunProgress], None] | None = None,
) -> Results:
    """Carry a plan out: split, train, rank, judge. What is in the store is not done again.

    Parameters
    ----------
    data
        Ratings, or anything that `read_ratings` takes; or an event log (`us.read_events`), which
        `Windows`, `TemporalEvents` and the like split event by event.
    plan
        The plan.
    store
        A folder that keeps every finished result: a run that was killed goes on where it was.
        Without one, results are kept until they are returned.
    workers
        Processes side by side; never changes a result.
    cluster
        Do tasks on a Dask cluster instead: `tcp://host:port`, `local:4`, or a
        `distributed.Client`; never changes a result. Needs `pip install 'unskew[cluster]'`.
    keep_going
        Continue when a task fails.

        The result then holds what there is; else the first failure is raised when all running tasks
        are done.
    retry_failed
        Retry tasks that failed in an earlier run.

        On this store.
    progress
        Called after each task.

    Returns
    -------
    Results

    Examples
    --------
    >>> import unskew as us
    >>> ratings = {"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 7, 9, 8, 9], "rating": [5] * 6}
    >>> plan = us.Plan(
    ...     us.splits.LeaveOut(1), algorithms=[us.recommend.Popularity()], metrics=["P@1"], seed=2
    ... )
    >>> us.run_plan(ratings, plan)
    Results(designs x splits: 1, 1 system)
    """
    ratings = data if isinstance(data, Ratings | Events) else read_ratings(data)
    with executor(workers, cluster) as pool:
        return run_plan_by(
            pool,
            ratings,
            plan,
            store=store,
            keep_going=keep_going,
            retry_failed=retry_failed,
            progress=progress,
        )


def run_plan_by(
    executor: Executor,
    ratings: Ratings | Events,
    plan: Plan,
    *,
    store: str | os.PathLike[str] | None = None,
    keep_going: bool = False,
    retry_failed: bool = False,
    progress: Callable[[RunProgress], None] | None = None,
) -> Results:
    """Carry a plan out, as `run_plan` does, by an executor that may do more than this plan."""
    prepared = PlanData.of(ratings, plan)
    plan = prepared.plan
    with ExitStack() as stack:
        is_stored = store is not None
        opened = Store.open(stack.enter_context(temporary_folder()) if store is None else store)
        scratch = None
        if not plan.storable >= {None, *plan.systems}:
            scratch = Store.open(stack.enter_context(temporary_folder()))
        if executor.workers > 1:
            check_picklable(plan)
        run = _PlanRun(
            ratings=prepared.data,
            data=put_data(opened, prepared.data),
            plan=plan,
            notes=prepared.notes,
            store=opened,
            scratch=scratch,
            keep_going=keep_going,
            retry_failed=retry_failed and is_stored,
        )
        return run.carry_out(executor, progress)


def check_picklable(plan: Plan) -> None:
    """Raise an error for functions that other processes cannot import."""
    remedy = "define it at the top of a module that can be imported, or use one worker"
    functions: dict[str, tuple[object, object]] = {
        label: (algorithm, algorithm.function if isinstance(algorithm, Custom) else type(algorithm))
        for label, algorithm in plan.systems.items()
    }
    for definition in plan.user_metrics:
        function = getattr(definition.compute, "function", definition.compute)
        functions[f"metric {definition.name}"] = (definition, function)
    for label, (algorithm, function) in functions.items():
        module = getattr(function, "__module__", None)
        main = sys.modules["__main__"]
        if module == "__main__" and not getattr(main, "__file__", None):
            kind = "class" if isinstance(function, type) else "function"
            raise SettingError(f"{label}: its {kind} exists only in this session; {remedy}")
        try:
            pickle.dumps(algorithm)
        except Exception as problem:
            raise SettingError(
                f"{label}: several workers cannot share its function ({problem}); {remedy}"
            ) from None
    try:
        pickle.dumps(plan)
    except Exception as problem:
        raise SettingError(f"several workers cannot share the plan ({problem})") from None


@dataclass(eq=False)
class _PlanRun:
    """A plan that is being carried out."""

    ratings: Ratings | Events
    data: str
    """The key of the ratings."""
    plan: Plan
    notes: tuple[str, ...]
    store: Store
    scratch: Store | None
    """Where results are that must not be kept."""
    keep_going: bool
    retry_failed: bool
    failures: dict[str, str] = field(default_factory=dict)
    """Reports, by the label of the task."""
    failed: set[Place] = field(default_factory=set)
    """Tasks that failed: of these, and of no others, results may be missing."""

    def carry_out(
        self,
        executor: Executor,
        progress: Callable[[RunProgress], None] | None,
    ) -> Results:
        """Do what is not in the store, and return all results."""
        tasks = tasks_of(self.plan, self.ratings, self.data, self.store, self.scratch)
        todo = self._unfinished(tasks)
        if self.failures and not self.keep_going:
            raise _failed(
                self.plan, self.failures, " in an earlier run (try again with retry_failed)"
            )
        done = len(tasks) - len(todo) - len(self.failures)
        try:
            with closing(do_stored(executor, todo)) as outcomes:
                for outcome in outcomes:
                    done += 1
                    task = outcome.task
                    if outcome.failure is not None:
                        self._note_failure(task, outcome.failure)
                    if progress is not None:
                        progress(RunProgress(done, len(tasks), len(self.failures), task.label))
        finally:
            forget()
        return self._collect()

    def _unfinished(self, tasks: list[Task]) -> list[Task]:
        """Return the tasks to do; those that failed in an earlier run only if asked for."""
        earlier = self.store.failures()
        todo = []
        for task in tasks:
            if not task.todo:
                continue
            if task.key in earlier and not self.retry_failed and task.into is None:
                self.failures[task.label] = earlier[task.key]
                self.failed.add(task.place)
                continue
            if task.key in earlier:
                self.store.forget_failure(task.key)
            todo.append(task)
        return todo

    def _note_failure(self, task: Task, failure: str) -> None:
        plan = self.plan
        report = f"{task.label}, seed {plan.seed}, plan {plan.key}\n{failure}"
        self.failures[task.label] = report
        self.failed.add(task.place)
        if task.into is None:
            self.store.put_failure(task.key, report)
        if not self.keep_going:
            raise _failed(plan, {task.label: report}, "")

    def _collect(self) -> Results:
        """Return all results; StoreError where one is gone."""
        plan, parts = self.plan, []
        kinds = [intervention.kind for intervention in plan.interventions]
        for split, fold in plan.folds(self.ratings):
            name = protocol_label(plan, split)
            for view in plan.views():
                lists = self._get(split, fold, view, None)
                scores = None if lists is None else self._scores(split, fold, view, *lists)
                if lists is None or scores is None:
                    continue
                change = view.intervention
                kind = "" if change is None else change.kind
                changed = kind if kinds.count(kind) < 2 else repr(change)
                parts.append(ScoredSplit(name, lists[1]["label"], view, scores, changed))
        if not parts:
            raise DataError(
                "no task was finished"
                + "".join(f"\n{label}: {text}" for label, text in self.failures.items())
            )
        return Results(plan, tuple(parts), dict(self.failures), self.notes)

    def _get(self, split: int, fold: int, view: PlanView, system: str | None) -> Stored | None:
        """Return a stored table and its card; None where its task failed."""
        plan = self.plan
        storable = self.scratch is None or system in plan.storable
        where = self.store if storable or self.scratch is None else self.scratch
        key = result_key(plan, self.data, split, fold, view, system)
        try:
            return where.get(key)
        except MissingResult:
            if (split, fold, system) in self.failed:
                return None
            label = task_label(plan, split, fold, system)
            raise StoreError(
                f"{label}: its result {key} has disappeared from {where.home}. Another process "
                "removed it, such as unskew store gc with another plan, or a cleaner of "
                "temporary folders. Run again, with ",
                Spelling("store=…", "--store DIR"),
                " in a folder that nothing else empties: existing results are not computed again",
            ) from None

    def _scores(
        self, split: int, fold: int, view: PlanView, shared: pl.DataFrame, card: dict[str, Any]
    ) -> Scores | None:
        """Put the scores of one design together, of all systems whose tasks did not fail."""
        plan = self.plan
        results = {name: self._get(split, fold, view, name) for name in plan.systems}
        systems = {name: result for name, result in results.items() if result is not None}
        if not systems:
            return None
        content = {
            "plan": plan.describe(),
            "data": self.data,
            "split": split,
            "fold": fold,
            "view": view.describe(),
            "lists": card["facts"],
            "systems": list(systems),
            "versions": card["versions"],
        }
        return scores_of(plan, view, self.ratings, (shared, card), systems, content)


def _failed(plan: Plan, failures: Mapping[str, str], when: str) -> DataError:
    label, report = next(iter(failures.items()))
    why = report.partition("\n")[2].strip()
    if "\n" not in why:  # an error on purpose, not one of code
        return DataError(f"{label} failed{when}, with seed {plan.seed}: {why}")
    return DataError(
        f"{label} failed{when}, with seed {plan.seed}; finished work is kept.\n{report}"
    )


def tasks_of(
    plan: Plan, ratings: Ratings | Events, data: str, store: Store, scratch: Store | None = None
) -> list[Task]:
    """Return all tasks of a plan, each with what is not in the store yet."""
    tasks = []
    views = plan.views()
    for split, fold in plan.folds(ratings):
        for system in (None, *plan.systems):
            keys = [result_key(plan, data, split, fold, view, system) for view in views]
            fresh = system not in plan.storable
            task = Task(
                store=store,
                data=data,
                plan=plan,
                split=split,
                fold=fold,
                system=system,
                todo=tuple((n, key) for n, key in enumerate(keys) if fresh or not store.has(key)),
                key=digest_of({"task": keys}),
                into=scratch if fresh else None,
            )
            tasks.append(task)
    return tasks


def data_of(settings: Mapping[str, Any], folder: Path) -> Ratings | Events:
    """Read the data that a plan names: a file, relative to the plan's, an address, or a name.

    With `log = true` the file is an event log.
    """
    if "file" not in settings:
        raise SettingError('the plan names no data: write [data] and file = "ratings.parquet"')
    more = {key: value for key, value in settings.items() if key not in ("file", "log")}
    is_log = settings.get("log", False)
    if not isinstance(is_log, bool):
        raise SettingError(f"[data] log must be true or false, got {is_log!r}")
    if is_log and "duplicates" in more:
        raise SettingError("[data] an event log has no duplicates: leave duplicates out")
    read = read_events if is_log else read_ratings
    file = str(settings["file"])
    if is_address(file):
        return read(file, **more)
    if not (folder / file).exists() and read_name(file) is not None:
        ratings = load(file, **more).ratings
        return read_events(ratings) if is_log else ratings
    return read(folder / file, **more)
