"""Means of systems by metrics as a table: which way round, and which are the best."""

from __future__ import annotations

import math
from collections.abc import Mapping

from unskew.report.tables import WIDE, Table


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
    """Return the systems with the best mean; nobody where all are equal or none is better."""
    values = {system: value for system, value in means.items() if not math.isnan(value)}
    if better == "neither" or len(set(values.values())) < 2:
        return set()
    top = max(values.values()) if better == "higher" else min(values.values())
    return {system for system, value in values.items() if value == top}
