"""`outline`: what a plan will do, before it is done."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unskew.checks import checked
from unskew.data.ratings import Ratings
from unskew.data.stored import data_key
from unskew.engine.store import Store
from unskew.engine.threads import available
from unskew.experiment.plan import Plan
from unskew.experiment.results import tasks_of
from unskew.experiment.task import count_splits
from unskew.judging.rank import rank, tile_users

SAMPLE = 300
"""Users on whom systems are tried to estimate their time."""


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
        lines.append(f"{self.tasks} tasks, {self.done} of them done; {self.results} results")
        splits = self.tasks // (len(self.systems) + 1)
        if self.seconds:
            total = splits * sum(self.seconds.values())
            lines.append(f"about {total:,.0f} s in one process (extrapolated from {SAMPLE} users)")
        lines.append(f"about {self.bytes / 2**20:,.0f} MiB in each process, models aside")
        return "\n".join(lines)


@checked
def outline(
    plan: Plan,
    ratings: Ratings,
    *,
    store: str | os.PathLike[str] | None = None,
    estimate: bool = True,
) -> Outline:
    """Tell what a plan will do on some ratings.

    Parameters
    ----------
    plan, ratings
        As for `run`.
    store
        Count what is there already.
    estimate
        Train every system on a few users; its time is scaled by the number of ratings, which is
        rough: some grow faster.
    """
    splits = [
        f"{splitter!r}: {count_splits(plan, number, ratings)}"
        for number, splitter in enumerate(plan.splits)
    ]
    views = plan.views()
    per_split = sum(count_splits(plan, n, ratings) for n in range(len(plan.splits)))
    tasks, done = per_split * (len(plan.systems) + 1), 0
    if store is not None and Path(store).exists():  # to look at it must not make one
        opened = Store.open(store)
        done = sum(not task.todo for task in tasks_of(plan, ratings, data_key(ratings), opened))
    cells = tile_users(len(ratings.items)) * len(ratings.items)
    size = 40 * len(ratings) + 16 * cells * available()
    size += 16 * len(ratings.users) * len(plan.metrics)
    return Outline(
        repr(ratings),
        tuple(splits),
        tuple(_design(view.judgments, view.intervention, view.targets) for view in views),
        tuple(plan.systems),
        len(plan.metrics),
        tasks,
        done,
        per_split * len(views) * (len(plan.systems) + 1),
        size,
        _times(plan, ratings) if estimate else {},
    )


def _design(judgments: str, intervention: object, targets: object) -> str:
    parts = [repr(targets)]
    if judgments != "test":
        parts.append(f"judged by {judgments}")
    if intervention is not None:
        parts.append(f"after {intervention!r}")
    return ", ".join(parts)


def _times(plan: Plan, ratings: Ratings) -> dict[str, float]:
    """Return how long each system takes on one split, from a few users."""
    from unskew.splits.split import Split
    from unskew.targets.designs import AllItems

    some = np.linspace(0, len(ratings.users) - 1, min(SAMPLE, len(ratings.users))).astype(int)
    few = ratings.take(np.isin(ratings.user, some))
    scale = len(ratings) / max(len(few), 1)
    lists = AllItems().lists(Split(few, few.take(few.user < 0)), plan.relevance)
    seconds = {}
    for label, system in plan.systems.items():
        system.fit(few, 0)  # kernels are compiled here
        begun = time.perf_counter()
        rank(system.fit(few, 0), lists, 10)
        seconds[label] = (time.perf_counter() - begun) * scale
    return seconds
