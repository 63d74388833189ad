"""Conditions under which systems are ordered: metrics, cutoffs, designs, folds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import choose
from unskew.data.ratings import Ids
from unskew.data.read.frames import is_frame
from unskew.data.read.tables import DataTable, number_column, plain_name
from unskew.engine.progress import Progress
from unskew.errors import DataError, SettingError
from unskew.stats.pairing import Paired, Source, as_table, is_evaluated, paired
from unskew.stats.resampling import reweighted, with_replacement

Sources = Source | Mapping[str, Source]


@dataclass(frozen=True, eq=False)
class Condition:
    """One order of systems: where it comes from."""

    name: str
    systems: tuple[str, ...]
    means: list[float]
    """Higher is better."""
    sign: float
    paired: Paired
    label: str


def _table_of(scores: object) -> DataTable | None:
    """Return the table that was given instead of scores."""
    if is_evaluated(scores) or (isinstance(scores, Mapping) and named_sources(scores)):
        return None
    return as_table(scores)


def _from_table(
    table: DataTable, metrics: str | Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...], F64]:
    """Return systems, conditions and means of a table."""
    frame = table.frame
    if frame.width < 2 or not frame.height:
        raise DataError("a table of means needs the system in its first column, and values")
    plain = {plain_name(name): name for name in reversed(frame.columns)}
    key = plain.get("system", plain.get("metric", plain.get("condition", frame.columns[0])))
    names = tuple(str(name) for name in frame[key])
    is_transposed = plain_name(key) in ("metric", "condition")
    what = "condition" if is_transposed else "system"
    if frame[key].dtype.is_float():
        raise DataError(
            f"column {key!r} holds numbers, where the {what}s should be named (the index of a "
            f"pandas frame becomes a column by .reset_index())"
        )
    again = next((row for row, name in enumerate(names) if name in names[:row]), None)
    if again is not None:
        raise DataError(
            f"column {key!r}: the {what} {names[again]!r} occurs twice, in rows "
            f"{names.index(names[again]) + 1} and {again + 1}; one row for each"
        )
    columns = tuple(name for name in frame.columns if name != key)
    values = np.array([_means(table, name) for name in columns])
    if is_transposed:
        values = values.T
    systems, conditions = (columns, names) if is_transposed else (names, columns)
    labels = [metrics] if isinstance(metrics, str) else metrics
    chosen = conditions if labels is None else tuple(labels)
    rows = [
        conditions.index(choose(what if is_transposed else "column", name, conditions))
        for name in chosen
    ]
    values = values[rows]
    _check_known(values, chosen, systems)
    return systems, chosen, values


def _means(table: DataTable, name: str) -> F64:
    column = number_column(table, name, "means")
    if not column.dtype.is_numeric():
        raise DataError(f"column {name!r} must hold numbers, got {column.dtype}")
    return column.cast(pl.Float64).fill_null(math.nan).to_numpy()


def _check_known(values: F64, named: Sequence[str], systems: Sequence[str]) -> None:
    if np.isnan(values).any():
        row, system = (int(index[0]) for index in np.nonzero(np.isnan(values)))
        raise DataError(
            f"{named[row]}: {systems[system]} has no value (NaN): leave one of them out"
        )


def named_sources(scores: Mapping[Any, Any]) -> bool:
    """Return whether a mapping holds several sources by name, and not the columns of one table."""
    return all(
        is_evaluated(score) or isinstance(score, Mapping) or is_frame(score)
        for score in scores.values()
    )


def conditions_of(
    scores: Source | Mapping[str, Source], metrics: str | Sequence[str] | None
) -> tuple[list[Condition], list[str]]:
    """Return the conditions to compare, sources x metrics, and notes."""
    named = scores if isinstance(scores, Mapping) and named_sources(scores) else {"": scores}
    if not named:
        raise SettingError("no scores are given")
    requested = [metrics] if isinstance(metrics, str) else metrics
    conditions: list[Condition] = []
    notes: list[str] = []
    for source, scored in named.items():
        pairing = paired(scored)
        notes += [f"{source}: {note}" if source else note for note in pairing.notes]
        labels = (
            list(pairing.order) if requested is None else [pairing.any_label(m) for m in requested]
        )
        for label in dict.fromkeys(labels):
            name = " ".join(filter(None, [source, label if len(labels) > 1 or not source else ""]))
            better = pairing.direction(label)
            if better == "neither":
                notes.append(f"{label}: neither higher nor lower is better; ordered from high down")
            sign = -1.0 if better == "lower" else 1.0
            values = [sign * mean for mean in pairing.means(label)]
            conditions.append(Condition(name, pairing.systems, values, sign, pairing, label))
    if not conditions:
        raise SettingError("no metrics are named; leave metrics out to take all there are")
    first = conditions[0].systems
    for one_order in conditions:
        if set(one_order.systems) != set(first):
            raise DataError(
                f"{one_order.name} is of other systems ({', '.join(one_order.systems)}) than "
                f"{conditions[0].name} ({', '.join(first)}): an order needs the same"
            )
    aligned = [_in_order_of(one_order, first) for one_order in conditions]
    named_so = [one_order.name for one_order in aligned]
    _check_known(np.array([one_order.means for one_order in aligned]), named_so, first)
    return aligned, notes


def by_system(
    conditions: Iterable[str], systems: Sequence[str], values: F64
) -> list[tuple[str, str, float]]:
    """Return a row per condition and system: its value, conditions x systems."""
    return [
        (condition, system, value)
        for condition, row in zip(conditions, values.tolist(), strict=True)
        for system, value in zip(systems, row, strict=True)
    ]


def _in_order_of(condition: Condition, systems: tuple[str, ...]) -> Condition:
    if condition.systems == systems:
        return condition
    order = [condition.systems.index(name) for name in systems]
    return replace(condition, systems=systems, means=[condition.means[i] for i in order])


def resampled(
    sources: list[Condition],
    draws: int,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> F64:
    """Return draws x conditions x systems: the means with users drawn anew, all alike.

    NaN for conditions that have no value per user.
    """
    groups: dict[int, list[int]] = {}
    for index, source in enumerate(sources):
        groups.setdefault(id(source.paired), []).append(index)
    pairings = [sources[members[0]].paired for members in groups.values()]
    everyone, tables = Ids.union(*(pairing.users for pairing in pairings))
    redrawn = with_replacement(seed, "bootstrap")
    systems = sources[0].systems
    out = np.full((draws, len(sources), len(systems)), np.nan)
    for pairing, members, table in zip(pairings, groups.values(), tables, strict=True):
        usable = [index for index in members if sources[index].label in pairing.metrics]
        is_complete = table.size == len(everyone)

        def weigh(low: int, rows: F64, table: Any = table, is_complete: bool = is_complete) -> None:
            if is_complete:
                redrawn(low, rows)
                return
            counts = np.empty((len(rows), len(everyone)))
            redrawn(low, counts)
            rows[:] = counts[:, table]

        labels = [sources[index].label for index in usable]
        if not labels:
            continue
        means = reweighted(pairing, labels, weigh, draws, threads, progress)
        columns = [pairing.systems.index(name) for name in systems]
        for column, index in enumerate(usable):
            out[:, index] = sources[index].sign * means[:, column][:, columns]
    return out
