"""`tune`: choose an algorithm's settings by a metric on validation judgments."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.checks import checked
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.rng import generator
from unskew.errors import DataError, SettingError
from unskew.experiment.execution import RunProgress, run_plan
from unskew.experiment.plan import Plan
from unskew.metrics.names import parse
from unskew.recommend.grids import check_grid, combinations
from unskew.recommend.model import Algorithm
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.splits.given import Given
from unskew.splits.split import Splitter
from unskew.splits.user import PerUser
from unskew.targets.designs import Targets, TestItems

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, eq=False)
class Tuned(Result):
    """The best settings of a search, and all that were tried."""

    best: Algorithm
    metric: str
    value: float
    """The mean of the metric for the best settings, over splits."""
    trials: pl.DataFrame
    """A row per trial: settings, mean, and the standard deviation over splits; best first."""

    def table(self) -> pl.DataFrame:
        """Return all trials, best first."""
        return self.trials

    def _content(self) -> dict[str, object]:
        return {
            "best": repr(self.best),
            "metric": self.metric,
            "value": self.value,
            "trials": self.trials,
        }

    def _summary(self) -> str:
        return (
            f"{self.best!r}: {self.metric} {self.value:.4f}, best of "
            f"{counted(self.trials.height, 'trial')}"
        )

    def _explanation(self) -> list[str]:
        return [self._summary()]

    def __str__(self) -> str:
        return self._summary()


@notebook_progress("tuning")
@checked
def tune(
    algorithm: Algorithm,
    grid: Mapping[str, Sequence[Any]],
    train: Ratings,
    metric: str,
    *,
    relevance: Relevance,
    validation: Splitter | Ratings | None = None,
    targets: Targets | None = None,
    trials: int | None = None,
    users: str = "with-test",
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Callable[[RunProgress], None] | None = None,
) -> Tuned:
    """Search an algorithm's settings: all combinations, or some drawn at random.

    Parameters
    ----------
    algorithm
        With the settings that are not searched.
    grid
        What to try for each setting.
    train
        Training ratings; the test part of an experiment must not be among them.
    metric
        What to be best in, such as `nDCG@10`.
    relevance
        Which ratings are liked.
    validation
        How to hold a validation part out of `train` (a fifth of each user's ratings unless
        given), or validation judgments of their own, such as a random sample (carraro2020):
        then all of `train` trains.
    targets
        What is ranked: items with validation ratings unless given.
    trials
        Try this many combinations, drawn at random, instead of all.
    users
        Which users are averaged.
    seed, store, workers, cluster, progress
        As in `run_plan`; every trial is kept in the store.

    Examples
    --------
    >>> import unskew as us
    >>> rows = [(u, (u + 3 * n) % 17, 1 + n % 5) for u in range(20) for n in range(6)]
    >>> user, item, rating = zip(*rows)
    >>> train = us.read_ratings({"user": user, "item": item, "rating": rating})
    >>> liked = us.Relevance(liked=3)
    >>> best = us.tune(us.recommend.UserKNN(), {"k": [2, 5]}, train, "nDCG@5", relevance=liked)
    >>> best.trials.height
    2
    """
    tried = _combinations(algorithm, grid, trials, seed)
    split: Splitter
    if isinstance(validation, Ratings):
        split = Given(test=validation, overlap="to-training")
    else:
        split = validation or PerUser(test=0.2)
    systems = {f"trial {number}": one for number, (_, one) in enumerate(tried)}
    plan = Plan(split, targets or TestItems(), systems, relevance, [metric], users=users, seed=seed)
    results = run_plan(
        train, plan, store=store, workers=workers, cluster=cluster, progress=progress
    )
    means = (
        results.table()
        .group_by("system", maintain_order=True)
        .agg(pl.col("mean").mean().alias("value"), pl.col("mean").std().alias("deviation"))
    )
    value = dict(zip(means["system"], means["value"], strict=True))
    spread = dict(zip(means["system"], means["deviation"], strict=True))
    sign = -1.0 if parse(metric).better == "lower" else 1.0

    def rank(number: int) -> tuple[float, int]:
        mean = value[f"trial {number}"]
        return (math.inf if math.isnan(mean) else -sign * mean, number)

    order = sorted(range(len(tried)), key=rank)
    best = value[f"trial {order[0]}"]
    if math.isnan(best):
        raise DataError(f"{metric} is undefined for every trial: is anything liked?")
    rows = [
        {**tried[n][0], metric: value[f"trial {n}"], "deviation": spread[f"trial {n}"]}
        for n in order
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    return Tuned(tried[order[0]][1], metric, best, frame)


def _combinations(
    algorithm: Algorithm, grid: Mapping[str, Sequence[Any]], trials: int | None, seed: int
) -> list[tuple[dict[str, Any], Algorithm]]:
    """Return the settings to try and the algorithms that they make."""
    check_grid(algorithm, grid)
    if not grid:
        raise SettingError("grid: name at least one setting to search")
    every = combinations(grid)
    if trials is not None:
        if trials < 1:
            raise SettingError(f"trials must be at least 1, got {trials}")
        rng = generator(seed, "tune", algorithm.draw_name_of())
        chosen = sorted(rng.choice(len(every), min(trials, len(every)), replace=False).tolist())
        every = [every[number] for number in chosen]
    return [(settings, replace(algorithm, **settings)) for settings in every]
