"""`outline`: what a plan will do, before it is done."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
from unskew.recommend.costs import (
    Cost,
    DataShape,
    cost_by_trial,
    cost_of,
    on_clock,
    seconds_of,
    this_machine,
)
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
            lines.append(
                f"about {total:,.0f} s in one process on {counted(available(), 'processor')}"
            )
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
        Count the operations of every system, at the speed of this machine; a system whose cost has
        no formula is trained on 300 users, and its time scaled by the number of ratings.
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
    costs = _costs(plan, trained) if estimate else {}
    size += round(max((one.bytes for one in costs.values()), default=0.0))
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
        seconds=_times(plan, trained, costs),
    )


def _design(view: PlanView) -> str:
    parts = [repr(view.targets)]
    if view.judgments != "test":
        parts.append(f"judged by {view.judgments}")
    if view.intervention is not None:
        parts.append(f"after {view.intervention!r}")
    return ", ".join(parts)


def _costs(plan: Plan, ratings: Ratings) -> dict[str, Cost]:
    """Return what each system costs on the training part of a split, by formula or by trial."""
    machine, shape = this_machine(), DataShape.of(ratings)
    costs = {label: cost_of(one, shape, machine) for label, one in plan.systems.items()}
    return {
        label: one if one.is_known else cost_by_trial(plan.systems[label], ratings, machine=machine)
        for label, one in costs.items()
    }


def _times(plan: Plan, ratings: Ratings, costs: Mapping[str, Cost]) -> dict[str, float]:
    """Return how long each system takes on one split: to train it, to score and to rank."""
    users = len(ratings.users)
    if plan.judged_users is not None:
        users = min(users, plan.judged_users)
    cells = {"rank cell": len(plan.views()) * users * len(ratings.items)}
    rank = seconds_of(cells, this_machine())
    return {
        label: on_clock(one.seconds + users * one.score_seconds + rank, available())
        for label, one in costs.items()
    }
