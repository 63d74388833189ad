"""`read_data_sets`: the values of the same systems on several data sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.stats.pairing import Paired, PairedValues, paired, scores_of

MISSING = ("refuse", "systems", "data-sets")
"""What to do about a system that a data set lacks; see `compare_data_sets`."""


def read_data_sets(
    scores: Mapping[str, Any], metric: str | None, missing: str
) -> tuple[dict[str, PairedValues], tuple[str, ...]]:
    """Return the values of one metric on every data set, of the same systems, and notes.

    Parameters
    ----------
    scores, metric, missing
        As in `compare_data_sets`.
    """
    if len(scores) < 2:
        raise DataError(
            f"at least 2 data sets are needed, got {len(scores)}; systems on one data set are "
            "compared by compare"
        )
    read = {str(name): _read(str(name), values) for name, values in scores.items()}
    label = _metric(read, metric)
    labels = {}
    for name, values_read in read.items():
        with _naming(name):
            labels[name] = values_read.label(label)
    sides = {name: values.better[labels[name]] for name, values in read.items()}
    better = next(iter(sides.values()))
    if len(set(sides.values())) > 1:
        words = ", ".join(f"{name}: {side}" for name, side in sides.items())
        raise DataError(f"{label}: which direction is better differs between data sets ({words})")
    if better == "neither":
        raise SettingError(
            f"{label} has no better direction, so systems have no ranks: choose another metric, "
            "or say better='higher' or 'lower' in paired"
        )
    names, systems, notes = _shared(read, missing)
    notes += _rule_notes({name: read[name] for name in names})
    values = {
        name: _chosen(name, read[name], labels[name], systems, label, better) for name in names
    }
    return values, tuple(notes)


def _chosen(
    name: str, paired_values: Paired, label: str, systems: Sequence[str], metric: str, better: str
) -> PairedValues:
    """Return the values of these systems, of the users that have all of them."""
    rows = paired_values.complete(label)
    if not len(rows):
        raise DataError(f"data set {name!r}: no user has a value of {label} for every system")
    columns = [paired_values.systems.index(system) for system in systems]
    return PairedValues(
        systems=tuple(systems),
        metrics=(metric,),
        better={metric: better},
        users=Ids(pl.Series(np.arange(len(rows)))),
        parts=(),
        values={metric: np.ascontiguousarray(rows[:, columns])},
    )


def _read(name: str, source: Any) -> Paired:
    scores = scores_of(source)
    with _naming(name):
        return paired(scores)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name the data set in an error."""
    try:
        yield
    except (DataError, SettingError) as problem:
        raise type(problem)(f"data set {name!r}: {problem}") from None


def _metric(read: Mapping[str, Paired], metric: str | None) -> str:
    if metric is not None:
        return metric
    first = next(iter(read.values())).metrics
    common = [label for label in first if all(label in values.metrics for values in read.values())]
    if len(common) == 1:
        return common[0]
    if not common:
        there = "; ".join(f"{name}: {', '.join(values.metrics)}" for name, values in read.items())
        raise DataError(f"the data sets share no metric with a value per user ({there})")
    raise SettingError(f"choose one metric=… of those that all have: {', '.join(common)}")


def _shared(
    read: Mapping[str, Paired], missing: str
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Return the data sets and systems that are compared, and what was left out."""
    named = tuple(dict.fromkeys(system for values in read.values() for system in values.systems))
    lacks = {
        name: [system for system in named if system not in values.systems]
        for name, values in read.items()
    }
    lacking = {name: absent for name, absent in lacks.items() if absent}
    names, systems, notes = tuple(read), named, []
    if lacking and missing == "refuse":
        words = "; ".join(f"{name} lacks {', '.join(absent)}" for name, absent in lacking.items())
        raise DataError(
            f"not every data set has every system: {words}. Leave out such systems with "
            "missing='systems', or such data sets with missing='data-sets'"
        )
    if lacking and missing == "systems":
        gone = {system for absent in lacking.values() for system in absent}
        systems = tuple(system for system in named if system not in gone)
        left = ", ".join(system for system in named if system in gone)
        notes.append(f"{counted(len(gone), 'system')} that a data set lacks left out: {left}")
    if lacking and missing == "data-sets":
        names = tuple(name for name in read if name not in lacking)
        left = ", ".join(lacking)
        lacking_text = counted(len(lacking), "data set that lacks", "data sets that lack")
        notes.append(f"{lacking_text} a system left out: {left}")
    if len(systems) < 2:
        raise DataError(f"at least 2 systems on every data set are needed, got {len(systems)}")
    if len(names) < 2:
        raise DataError(f"at least 2 data sets with every system are needed, got {len(names)}")
    return names, systems, notes


def _rule_notes(read: Mapping[str, Paired]) -> list[str]:
    """Return what data sets do not share: which items are liked, how undefined values count."""
    rules = {name: "; ".join(values.rules) for name, values in read.items()}
    if len(set(rules.values())) == 1:
        return []
    return [
        f"data sets are evaluated by different rules: {name}: {rule or 'not known'}"
        for name, rule in rules.items()
    ]
