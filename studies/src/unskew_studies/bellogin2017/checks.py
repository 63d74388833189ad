"""bellogin2017: what its checks share: means, orders, intervals and curves from the tables."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.stats.correlation import kendall
from unskew_studies.lab import UndefinedError
from unskew_studies.paper import MeasuredValue

POPULAR, RANDOM, PLSA, KNN, MF = "popularity", "random", "pLSA", "kNN", "MF"
TINY = 1e-9


def only(frame: pl.DataFrame, **where: object) -> pl.DataFrame:
    """Return the rows with these values; UndefinedError if there are none."""
    kept = frame.filter(*(pl.col(name) == value for name, value in where.items()))
    if kept.is_empty():
        raise UndefinedError("these data do not contain what this check needs")
    return kept


def mean_of(frame: pl.DataFrame, column: str = "value", **where: object) -> float:
    """Return the mean of a column over the rows with these values."""
    return float(np.mean(only(frame, **where)[column].to_numpy()))


def by_system(frame: pl.DataFrame, **where: object) -> dict[str, float]:
    """Return the mean of each system over the rows with these values."""
    kept = only(frame, **where)
    means = kept.group_by("system", maintain_order=True).agg(pl.col("value").mean())
    return dict(means.iter_rows())


def fact(frame: pl.DataFrame, what: str) -> float:
    """Return one number of a table of facts."""
    return float(only(frame, what=what)["value"][0])


def order(values: Mapping[str, float]) -> list[str]:
    """Return systems best first."""
    return sorted(values, key=lambda name: -values[name])


def place(values: Mapping[str, float], system: str) -> int:
    """Return a system's place, 1 for the best; equal ones share the better place."""
    return 1 + sum(one > values[system] for one in values.values())


def ratio(top: float, bottom: float) -> float:
    """Return a ratio, NaN where it is undefined."""
    return top / bottom if bottom > 0 else math.nan


def alike(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return Kendall's τ between two orders of the same systems."""
    return kendall([one[name] for name in one], [other[name] for name in one])


def listed(values: Mapping[str, float], digits: int = 4) -> str:
    """Return systems and their values, best first, as one line."""
    return ", ".join(f"{name} {values[name]:.{digits}f}" for name in order(values))


def hit_error(value: float, lists: int) -> float:
    """Return the standard error of 1RP@10: a list hits or not, and a hit counts 1/10."""
    rate = min(10 * value, 1.0)
    return max(math.sqrt(rate * (1 - rate) / max(lists, 1)), 1 / max(lists, 1)) / 10


def above_chance(rows: pl.DataFrame) -> tuple[float, float, float]:
    """Return values by what chance expects, with three standard errors of so many hits."""
    value, expected = (float(np.mean(rows[name].to_numpy())) for name in ("value", "random"))
    places = 10 * float(rows["lists"].sum())
    reach = 3 * math.sqrt(max(value, 1 / places) / places)
    return ratio(value, expected), ratio(value - reach, expected), ratio(value + reach, expected)


def curve(
    table: pl.DataFrame, over: str, system: str, column: str = "value", **where: object
) -> tuple[F64, F64]:
    """Return a system's mean at each point of a curve: where it is, and its value."""
    rows = only(table, system=system, **where)
    means = rows.group_by(over).agg(pl.col(column).mean()).sort(over)
    return means[over].to_numpy().astype(np.float64), means[column].to_numpy()


def least_of(values: Mapping[str, float]) -> MeasuredValue:
    """Return the least of several values, and which one it is."""
    known = {name: value for name, value in values.items() if not math.isnan(value)}
    if not known:
        return MeasuredValue(math.nan, note="all systems score the same")
    worst = min(known, key=lambda name: known[name])
    return MeasuredValue(known[worst], note=f"The least of {len(known)}: {worst}.")
