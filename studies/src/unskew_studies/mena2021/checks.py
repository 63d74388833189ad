"""mena2021: what its checks share: means, places and τ from the tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from unskew.stats.correlation import kendall
from unskew.stats.intervals.means import mean_interval
from unskew_studies.lab import Lab, MissingDataError, UndefinedError
from unskew_studies.mena2021.measurements import (
    BEST_ANTI,
    BEST_P,
    MEANT,
    NAMES,
    PUBLISHED,
    RELEASED_AT_10,
    SIXTEEN,
    TEXT,
    pairs,
    random_part,
)


@dataclass(frozen=True)
class Tau:
    """Kendall's τ_b of systems in two orders."""

    value: float
    low: float | None
    high: float | None
    """Its 95 % interval, from the τ of the folds; None where there is one."""
    meant: float
    """The same by the text: BPMF learning, and the text's own threshold and gains."""


Side = tuple[str, str]
"""Judgments (`observed` or `true`) and metric."""


class Means(dict[str, float]):
    """A value per system; UndefinedError for those that could not be trained."""

    def __missing__(self, name: str) -> float:
        raise UndefinedError(f"{name} could not be trained on these data")


def means(table: pl.DataFrame, judgments: str, metric: str, rule: str = PUBLISHED) -> Means:
    """Return the mean over folds of every system, the best precision first."""
    part = table.filter(rule=rule, judgments=judgments, metric=metric)
    return Means(part.group_by("system", maintain_order=True).agg(pl.col("mean").mean()).rows())


def tau(table: pl.DataFrame, first: Side, second: Side) -> Tau:
    """Return how alike two metrics order the sixteen systems, or those that could be trained."""

    def of(part: pl.DataFrame, rule: str, names: Sequence[str]) -> float:
        a, b = (means(part, *side, rule) for side in (first, second))
        there = [name for name in names if name in a and name in b]
        return kendall([a[name] for name in there], [b[name] for name in there])

    value = of(table, PUBLISHED, SIXTEEN)
    rules = table["rule"].unique().to_list()
    meant = of(table, TEXT if TEXT in rules else PUBLISHED, MEANT)
    single = [of(part, PUBLISHED, SIXTEEN) for part in table.partition_by("fold")]
    half = half_width([one for one in single if not math.isnan(one)])
    if len(single) < 2:
        return Tau(value, None, None, meant)
    return Tau(value, max(value - half, -1.0), min(value + half, 1.0), meant)


def half_width(values: Sequence[float]) -> float:
    """Return half the 95 % interval of a mean, by Student's t; 0 where there is one value."""
    _, low, high = mean_interval(values)
    return 0.0 if low is None or high is None else (high - low) / 2


def place(
    scores_of: Mapping[str, float], name: str, among: Sequence[str], *, lowest: bool = False
) -> int:
    """Return the place of a system, 1 for the highest value (or, `lowest`, the smallest)."""
    mine = scores_of[name]
    values = [scores_of[one] for one in among if one in scores_of]
    return 1 + sum(value < mine if lowest else value > mine for value in values)


def share(lab: Lab, dataset_name: str, what: str) -> float:
    """Return a number of the pairs of items; MissingDataError where there is none."""
    values = lab.table(pairs, dataset_name).filter(what=what)["value"]
    if not values.len():
        random_part(lab, dataset_name)  # says what is missing
        raise MissingDataError(f"{dataset_name}: undefined on these items")
    return float(values[0])


def released(lab: Lab) -> pl.DataFrame:
    """Return the released values of ML-1M: the sixteen systems and both optimal rankings."""
    names = {**NAMES, "optimalobservedprecision": BEST_P, "optimalobservedantiprecision": BEST_ANTI}
    table = lab.released_table(RELEASED_AT_10).filter(pl.col("algorithm").is_in(list(names)))
    return table.with_columns(system=pl.col("algorithm").replace_strict(names))


def released_tau(lab: Lab, first: str, second: str) -> float:
    """Return τ_b of two released columns over the sixteen systems."""
    table = released(lab).filter(pl.col("system").is_in(SIXTEEN))
    return kendall(table[first].to_numpy(), table[second].to_numpy())


def furthest(measured: Iterable[float], published: Iterable[float]) -> float:
    """Return the largest distance of a value from its printed one."""
    return max(abs(ours - theirs) for ours, theirs in zip(measured, published, strict=True))
