"""Means of systems by metrics as a table: which way round, and which are the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
    """Return the systems with the best mean."""
    systems = list(means)
    return {systems[place] for place in best_places([means[one] for one in systems], better)}


def best_places(values: Sequence[float | None], better: str) -> list[int]:
    """Return where the best values are; nowhere if all are equal or neither direction is better.

    Examples
    --------
    >>> from unskew.evaluation.tables import best_places
    >>> best_places([0.1, 0.3, None, 0.3], "higher")
    [1, 3]
    """
    known = {
        place: value
        for place, value in enumerate(values)
        if value is not None and not math.isnan(value)
    }
    if better == "neither" or len(set(known.values())) < 2:
        return []
    top = max(known.values()) if better == "higher" else min(known.values())
    return [place for place, value in known.items() if value == top]
