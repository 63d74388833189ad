"""`tune`: choose an algorithm's settings by a metric on validation judgments."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.checks import checked
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.progress import notebook_progress
from unskew.engine.rng import generator
from unskew.errors import DataError, SettingError
from unskew.experiment.execution import RunProgress, run_plan
from unskew.experiment.plan import Plan
from unskew.metrics.names import parse
from unskew.recommend.model import Algorithm, Grid
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.splits.given import Given
from unskew.splits.random import PerUser
from unskew.splits.split import Splitter
from unskew.targets.designs import Targets, TestItems

if TYPE_CHECKING:
    from distributed import Client


Candidate = dict[str, Any]
"""A value for every setting of a grid."""


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[Candidate]:
    """Return every combination of the values of several settings; the last setting moves first."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def check_grid(algorithm: Algorithm, grid: Grid) -> None:
    """Refuse a grid that names unknown settings or has no values for one."""
    names = [field.name for field in fields(algorithm)]
    if not isinstance(grid, Mapping | Sequence) or isinstance(grid, str):
        raise SettingError(
            f"{algorithm.name}: a grid holds values by setting, such as {{'k': (5, 20, 80)}}, or "
            f"is a list of settings to try; got {grid!r}"
        )
    if not isinstance(grid, Mapping) and not all(isinstance(part, Mapping) for part in grid):
        raise SettingError(f"{algorithm.name}: a list of settings to try holds mappings; {grid!r}")
    for name in _names(grid):
        if name not in names:
            raise SettingError(
                f"{algorithm.name} has no setting {name!r}; it has: {', '.join(names)}"
            )
    for name, values in grid.items() if isinstance(grid, Mapping) else ():
        if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
            raise SettingError(f"grid: give a list of values for {name}, got {values!r}")


def candidates(algorithm: Algorithm, limit: int | None = None) -> list[Candidate]:
    """Return the settings to try: those that the algorithm has, then others of its grid.

    Parameters
    ----------
    algorithm
        With its settings; those that its grid does not name stay.
    most
        How many to return at most. Out of combinations of values they are spread evenly, of a
        list the first are taken.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.experiment.tune import candidates
    >>> [one["factors"] for one in candidates(us.recommend.PureSVD())]
    [30, 1, 2, 4, 8, 16]
    """
    grid = algorithm.tuning
    check_grid(algorithm, grid)
    default = {name: getattr(algorithm, name) for name in _names(grid)}
    combined = combinations(grid) if isinstance(grid, Mapping) else grid
    others: list[Candidate] = []
    for settings in combined:
        full = {**default, **settings}
        if full != default and full not in others:
            others.append(full)
    if limit is not None and len(others) > limit - 1:
        number = limit - 1
        spread = isinstance(grid, Mapping)
        others = (
            [others[index] for index in _spread(len(others), number)] if spread else others[:number]
        )
    return [default, *others]


def edges(algorithm: Algorithm, chosen: Candidate, tried: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the settings whose chosen value is the smallest or largest of those tried.

    Beyond it something better may lie. A value that the setting's own limits let nothing be beyond
    is no edge; None, which means all, is beyond every number.
    """
    return tuple(name for name in chosen if _is_edge(algorithm, name, chosen, tried))


def _is_edge(
    algorithm: Algorithm, name: str, chosen: Candidate, tried: Sequence[Candidate]
) -> bool:
    values = [settings[name] for settings in tried]
    if any(isinstance(value, bool | str) for value in values):
        return False  # words have no order
    size = [math.inf if value is None else float(value) for value in values]
    here = math.inf if chosen[name] is None else float(chosen[name])
    if min(size) == max(size) or math.isinf(here):
        return False
    if here == min(size):
        value = chosen[name]  # below it: a whole number stays one
        below = value - 1 if isinstance(value, int) or value <= 0 else value / 2
        return _is_allowed(algorithm, name, below)
    return here == max(size) and _is_allowed(algorithm, name, 2 * chosen[name])


def _is_allowed(algorithm: Algorithm, name: str, value: float) -> bool:
    try:
        replace(algorithm, **{name: value})
    except SettingError:
        return False
    return True


def _names(grid: Grid) -> list[str]:
    """Return the settings of a grid, in the order in which they are first named."""
    parts = [grid] if isinstance(grid, Mapping) else grid
    return list(dict.fromkeys(itertools.chain.from_iterable(parts)))


def _spread(count: int, number: int) -> list[int]:
    """Return so many places of a row, the first and the last among them."""
    if number < 2:
        return [0] * number
    return [round(index * (count - 1) / (number - 1)) for index in range(number)]


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
        return self._fields(best=repr(self.best))

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

    Returns
    -------
    Tuned
        `best` is the algorithm with the best settings, `value` its mean over the validation splits,
        `trials` a table of all that were tried.

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
    systems = {f"trial {number}": system for number, (_, system) in enumerate(tried)}
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
    settings_list = combinations(grid)
    if trials is not None:
        if trials < 1:
            raise SettingError(f"trials must be at least 1, got {trials}")
        rng = generator(seed, "tune", algorithm.draw_name_of())
        chosen = sorted(
            rng.choice(len(settings_list), min(trials, len(settings_list)), replace=False).tolist()
        )
        settings_list = [settings_list[number] for number in chosen]
    return [(settings, replace(algorithm, **settings)) for settings in settings_list]
