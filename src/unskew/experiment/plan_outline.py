"""`outline`: what a plan will do, before it is done."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from unskew.checks import checked
from unskew.data.events import Events
from unskew.data.ratings import Ratings
from unskew.data.stored import data_key
from unskew.engine.store import Store
from unskew.engine.threads import available
from unskew.experiment.execution import tasks_of
from unskew.experiment.plan import Plan, PlanView
from unskew.experiment.plan_data import PlanData
from unskew.judging.rank import tile_users
from unskew.recommend.fit_cost import DataShape, fit_cost, timed_trial
from unskew.report.text import counted


@dataclass(frozen=True)
class Outline:
    """What a plan will do."""

    ratings: str
    splits: tuple[str, ...]
    designs: tuple[str, ...]
    systems: tuple[str, ...]
    metrics: int
    tasks: int
    done: int
    """Tasks whose results are all in the store."""
    results: int
    """Results the plan has in all."""
    bytes: int
    """A rough figure of the memory of one process."""
    seconds: dict[str, float] = field(default_factory=dict)
    """A rough figure of the time of each system on one split."""

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import view

        return view("Outline", "what the plan will do", lines=str(self).splitlines())

    def __str__(self) -> str:
        lines = [
            f"data     {self.ratings}",
            *(f"split    {one}" for one in self.splits),
            *(f"design   {one}" for one in self.designs),
        ]
        for one in self.systems:
            cost = f"   about {self.seconds[one]:.1f} s a split" if one in self.seconds else ""
            lines.append(f"system   {one}{cost}")
        lines.append(f"metrics  {self.metrics}")
        lines.append(
            f"{counted(self.tasks, 'task')}, {self.done} of them done; "
            f"{counted(self.results, 'result')}"
        )
        splits = self.tasks // (len(self.systems) + 1)
        if self.seconds:
            total = splits * sum(self.seconds.values())
            lines.append(f"about {total:,.0f} s of processor time to train and to score")
        models = "" if self.seconds else ", without models"
        lines.append(f"about {self.bytes / 2**20:,.0f} MiB in each process{models}")
        return "\n".join(lines)


@checked
def outline(
    plan: Plan,
    ratings: Ratings | Events,
    *,
    store: str | os.PathLike[str] | None = None,
    estimate: bool = True,
) -> Outline:
    """Return what a plan will do on some ratings, without doing it.

    Parameters
    ----------
    plan, ratings
        As for `run_plan`.
    store
        Count what is there already.
    estimate
        Time one fit of each system on a sample of users and items, and scale it to all ratings: to
        train and to score, without the time to rank and to judge.
    """
    prepared = PlanData.of(ratings, plan)
    plan, ratings = prepared.plan, prepared.data
    counts = [splitter.count(ratings, plan.seed) for splitter in plan.splits]
    splits = [f"{one!r}: {count}" for one, count in zip(plan.splits, counts, strict=True)]
    views = plan.views()
    tasks, done = sum(counts) * (len(plan.systems) + 1), 0
    if store is not None and Path(store).exists():  # to look at it must not make one
        opened = Store.open(store)
        done = sum(not task.todo for task in tasks_of(plan, ratings, data_key(ratings), opened))
    cells = tile_users(len(ratings.items)) * len(ratings.items)
    size = 40 * len(ratings) + 16 * cells * available()
    size += 16 * len(ratings.users) * len(plan.metrics)
    trained = ratings.to_ratings() if isinstance(ratings, Events) else ratings
    if estimate:
        shape = DataShape.of(trained)
        costs = [fit_cost(system, shape) for system in plan.systems.values()]
        size += round(max((cost.bytes for cost in costs if cost is not None), default=0.0))
    return Outline(
        ratings=repr(ratings),
        splits=tuple(splits),
        designs=tuple(map(_design, views)),
        systems=tuple(plan.systems),
        metrics=len(plan.metrics),
        tasks=tasks,
        done=done,
        results=len(views) * tasks,
        bytes=size,
        seconds=_times(plan, trained) if estimate else {},
    )


def _design(view: PlanView) -> str:
    parts = [repr(view.targets)]
    if view.judgments != "test":
        parts.append(f"judged by {view.judgments}")
    if view.intervention is not None:
        parts.append(f"after {view.intervention!r}")
    return ", ".join(parts)


def _times(plan: Plan, ratings: Ratings) -> dict[str, float]:
    """Return how long each system takes on one split: to train it and to score the users."""
    users = len(ratings.users)
    if plan.judged_users is not None:
        users = min(users, plan.judged_users)
    trials = {label: timed_trial(system, ratings) for label, system in plan.systems.items()}
    return {label: trial.fit + users * trial.score_user for label, trial in trials.items()}
