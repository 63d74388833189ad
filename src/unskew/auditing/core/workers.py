"""The tasks of an audit's core by an executor: ratings are read from the store, not sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import frozen
from unskew.auditing.core.tasks import ROWS, CoreJob, CoreTask, MemoryStore, SplitId, perform
from unskew.auditing.truth import sources
from unskew.data.dataset import put_data, stored_ratings
from unskew.data.ratings import Ids, Ratings
from unskew.engine.executor import Executor
from unskew.engine.process_pool import Outcomes
from unskew.engine.store import Store
from unskew.experiment.execution import check_picklable
from unskew.experiment.halving import BUDGET
from unskew.experiment.task import Done, do_stored
from unskew.recommend.fit_cost import DataShape, fit_cost


def core_outcomes(executor: Executor, tasks: Sequence[CoreTask]) -> Outcomes:
    """Do the tasks of one core and yield their outcomes as they come."""
    if executor.is_here or not tasks:
        yield from executor.do(perform, tasks)
        return
    job = tasks[0].job
    if executor.workers > 1:
        check_picklable(job.plan)
    if isinstance(job.store, MemoryStore) or isinstance(job.scratch, MemoryStore):
        raise TypeError("workers need stores in folders")
    shared = SharedJob(_without_ratings(job))
    data = put_data(job.store, job.ratings)
    stored = [
        StoredCoreTask(
            number=number,
            store=job.store,
            data=data,
            into=None if task.system in job.plan.storable else job.scratch,
            shared=shared,
            split_id=task.split_id,
            system=task.system,
            done=frozenset(task.keys.keys() - task.todo().keys()),
            needs=_needs(task),
        )
        for number, task in _longest_first(tasks)
    ]
    with closing(do_stored(executor, stored)) as outcomes:
        for outcome in outcomes:
            yield replace(outcome, task=tasks[outcome.task.number])


def _longest_first(tasks: Sequence[CoreTask]) -> list[tuple[int, CoreTask]]:
    """Return tasks with their numbers, those first that take longest: nobody waits for them then.

    Where a worker cannot keep all splits, those of one split stay together.
    """
    job = tasks[0].job
    shape = DataShape.of(job.ratings)
    operations: dict[str | None, float] = {None: 0.0}
    for name, system in job.plan.systems.items():
        cost = fit_cost(system, shape)
        fits = BUDGET if name in job.tuned else 1
        operations[name] = math.inf if cost is None else fits * cost.operations
    split_ids = list(dict.fromkeys(task.split_id for task in tasks))
    apart = len(split_ids) * shape.ratings > ROWS

    def order(task: tuple[int, CoreTask]) -> tuple[int, float]:
        return split_ids.index(task[1].split_id) if apart else 0, -operations[task[1].system]

    return sorted(enumerate(tasks), key=order)


def _needs(task: CoreTask) -> tuple[str, ...]:
    """Return the keys of what was stored before and is read: settings that were chosen."""
    return tuple(
        key for what, key in task.keys.items() if what == "tuned" and what not in task.todo()
    )


NOTHING = Ratings(
    users=Ids(pl.Series([], dtype=pl.Int64)),
    items=Ids(pl.Series([], dtype=pl.Int64)),
    user=frozen(np.empty(0, np.int32)),
    item=frozen(np.empty(0, np.int32)),
    value=frozen(np.empty(0, np.float64)),
)
"""What stands for ratings where they are not sent."""


def _without_ratings(job: CoreJob) -> CoreJob:
    return replace(job, ratings=NOTHING, truth=_with_ratings(job.truth, NOTHING))


def _with_ratings(truth: sources.Source | None, ratings: Ratings) -> sources.Source | None:
    """Return a truth with other observed ratings; a world holds those that it drew."""
    return replace(truth, ratings=ratings) if isinstance(truth, sources.SampledTruth) else truth


@dataclass(eq=False)
class SharedJob:
    """What all tasks of a core share, and the whole of it where a worker has read the ratings."""

    job: CoreJob
    """Without ratings."""
    full_job: CoreJob | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"job": self.job, "full_job": None}

    def at(self, store: Store, data: str, into: Store) -> CoreJob:
        """Return the job with its ratings, and with these stores."""
        if self.full_job is None:
            ratings = stored_ratings(store, data)
            truth = _with_ratings(self.job.truth, ratings)
            self.full_job = replace(self.job, ratings=ratings, truth=truth, placed={}, plans={})
        return replace(self.full_job, store=store, scratch=into)


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredCoreTask:
    """A task of a core for workers elsewhere."""

    number: int
    store: Store
    data: str
    """The key of the ratings in the store."""
    into: Store | None
    """Where results go that must not be kept."""
    shared: SharedJob
    split_id: SplitId
    system: str | None
    done: frozenset[str]
    """What is not to be done: it is in the store already."""
    needs: tuple[str, ...]
    """The keys of results that it reads."""

    def moved(self, store: Store) -> StoredCoreTask:
        """Return the same task with all that it reads and writes in another store."""
        return replace(self, store=store, into=None)

    def perform(self) -> Done:
        """Do it."""
        job = self.shared.at(self.store, self.data, self.into or self.store)
        task = CoreTask(job, self.split_id, self.system, self.done)
        todo, store = task.todo(), job.where(self.system)
        problems = perform(task)
        return Done([key for key in todo.values() if store.has(key)], problems)
