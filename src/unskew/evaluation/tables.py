"""Warm and cold users apart: those with and those without a training rating."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from unskew.arrays import Mask
from unskew.report.tables import WIDE, Table
from unskew.report.text import counted, number

SHOWN = 4
"""Up to so many systems are named in the line below a table."""

APART = "users='warm' leaves them out, by_warmth() in Python shows both"


class AveragedMean(Protocol):
    """A mean."""

    @property
    def value(self) -> float:
        """The mean."""


class ScoredLists(Protocol):
    """What is asked of scores here."""

    @property
    def lists(self) -> pl.DataFrame:
        """One row per list."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Metrics with a value per list."""

    @property
    def systems(self) -> Mapping[str, Any]:
        """Systems by name."""

    def of_lists(self, keep: Mask) -> Self:
        """Return the scores of some lists."""

    def averaged(self, system: str, users: str | None = None) -> Mask:
        """Tell which lists a mean is taken over."""

    def averages(
        self, *, users: str | None = None, undefined: str | None = None, over: str | None = None
    ) -> Mapping[str, Mapping[str, AveragedMean]]:
        """Return the means of all metrics."""

    def random(
        self, *, users: str | None = None, undefined: str | None = None, over: str | None = None
    ) -> Mapping[str, float]:
        """Return what chance scores."""


SCHEMA = {
    "metric": pl.String,
    "system": pl.String,
    "users": pl.Int64,
    "cold": pl.Int64,
    "on_warm": pl.Float64,
    "on_cold": pl.Float64,
    "on_all": pl.Float64,
}


def warmth_table(scores: ScoredLists, chance: str, **settings: Any) -> pl.DataFrame:
    """Return a row per metric and system: its mean on warm, on cold and on all users.

    Parameters
    ----------
    scores
        With training ratings.
    chance
        What the expectation of a random order is called.
    settings
        What is averaged, as in `Scores.mean`.
    """
    warm = warm_lists(scores)
    groups = [scores.of_lists(warm), scores.of_lists(~warm), scores]
    means = [_means(group, chance, settings) for group in groups]
    users = {
        system: tuple(_users(scores, system, settings.get("users"), keep) for keep in (None, ~warm))
        for system in scores.systems
    }
    total = max(users.values(), default=(0, 0))
    rows = [
        (metric, system, *users.get(system, total), *(mean.get((metric, system)) for mean in means))
        for metric in scores.labels
        for system in (*scores.systems, chance)
        if system in scores.systems or any((metric, system) in mean for mean in means)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def warm_lists(scores: ScoredLists) -> Mask:
    """Tell which lists belong to users with a training rating."""
    warm: Mask = scores.lists["train"].to_numpy() > 0
    return warm


def warmth_lines(scores: ScoredLists, chance: str, digits: int) -> list[str]:
    """Say how many users are cold, and what systems score on them and on the others."""
    if "train" not in scores.lists.columns or not scores.labels:
        return []
    if warm_lists(scores).all():
        return []
    return table_lines(warmth_table(scores, chance), tuple(scores.systems), digits)


def table_lines(
    table: pl.DataFrame, systems: tuple[str, ...], digits: int, splits: int = 1
) -> list[str]:
    """Put the first metric of a table of warm and cold users into a line; nothing without cold.

    A table of several splits has the sums of their users.
    """
    of_systems = table.filter(pl.col("system").is_in(systems))
    cold, users = (int(of_systems[name].max() or 0) for name in ("cold", "users"))  # type: ignore[arg-type]
    if not cold:
        return []
    summed = f", summed over {splits} splits," if splits > 1 else ""
    verb = "has" if cold == 1 else "have"
    line = f"{cold:,} of {counted(users, 'user')}{summed} {verb} no training rating (cold)"
    if len(systems) > SHOWN:
        return [f"{line}: {APART}"]
    metric = of_systems["metric"][0]
    means = [
        f"{row['system']} {_text(row['on_warm'], digits)} and {_text(row['on_cold'], digits)}"
        for row in of_systems.filter(metric=metric).iter_rows(named=True)
    ]
    return [f"{line}: {metric} on warm and on cold users: {'; '.join(means)}"]


def _text(value: float | None, digits: int) -> str:
    return "–" if value is None or math.isnan(value) else number(value, digits)


def _means(
    scores: ScoredLists, chance: str, settings: Mapping[str, Any]
) -> dict[tuple[str, str], float]:
    """Return means by metric and system; nothing where there is no list."""
    if not scores.lists.height:
        return {}
    means = {
        (metric, system): mean.value
        for system, row in scores.averages(**settings).items()
        for metric, mean in row.items()
    }
    means |= {(metric, chance): value for metric, value in scores.random(**settings).items()}
    return {key: value for key, value in means.items() if not math.isnan(value)}


def _users(scores: ScoredLists, system: str, users: str | None, keep: Mask | None) -> int:
    """Count the users whom a mean is taken over, among some lists."""
    averaged = scores.averaged(system, users)
    chosen = averaged if keep is None else averaged & keep
    return int(np.unique(scores.lists["user"].to_numpy()[chosen]).size)


def means_table(
    means: Mapping[str, Mapping[str, float]],
    better: Mapping[str, str],
    best_of: tuple[str, ...],
    digits: int,
) -> Table:
    """Return a row per system or, with many metrics, per metric; the best means in bold.

    Parameters
    ----------
    means
        Of each system its means by metric.
    better
        Of each metric `higher`, `lower` or `neither`.
    best_of
        The systems that can be the best: chance is none of them.
    digits
        Decimals.
    """
    systems, labels = list(means), list(better)
    cells = {
        (system, label): means[system].get(label, math.nan)
        for system in systems
        for label in labels
    }
    best = {
        (system, label)
        for label in labels
        for system in _best({name: cells[name, label] for name in best_of}, better[label])
    }
    if len(labels) <= WIDE:
        corner, down, across = "system", systems, labels
        keys = [[(system, label) for label in labels] for system in systems]
    else:
        corner, down, across = "metric", labels, systems
        keys = [[(system, label) for system in systems] for label in labels]
    return Table.of_rows(
        [corner, *across],
        [[name, *(cells[key] for key in row)] for name, row in zip(down, keys, strict=True)],
        left=(0,),
        digits=digits,
        strong=[
            (row, column + 1)
            for row, places in enumerate(keys)
            for column, key in enumerate(places)
            if key in best
        ],
    )


def _best(means: Mapping[str, float], better: str) -> set[str]:
    """Return the systems with the best mean."""
    systems = list(means)
    return {systems[index] for index in best_places([means[system] for system in systems], better)}


def best_places(values: Sequence[float | None], better: str) -> list[int]:
    """Return where the best values are; nowhere if all are equal or neither direction is better.

    Examples
    --------
    >>> from unskew.evaluation.tables import best_places
    >>> best_places([0.1, 0.3, None, 0.3], "higher")
    [1, 3]
    """
    finite = {
        index: value
        for index, value in enumerate(values)
        if value is not None and not math.isnan(value)
    }
    if better == "neither" or len(set(finite.values())) < 2:
        return []
    top = max(finite.values()) if better == "higher" else min(finite.values())
    return [index for index, value in finite.items() if value == top]
