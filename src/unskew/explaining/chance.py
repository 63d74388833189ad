"""How many classes would fit by chance: from how densely the tried ones lie around the values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.arrays import F64
from unskew.explaining.asked import Target

WINDOWS = (10.0, 30.0, 100.0, 300.0, 1000.0)
"""Distances at which classes are counted, in halves of the last digit."""
SHARED = 0.5
"""How far further values narrow chance: 0 not at all, 1 as if they were independent."""


def expected_fits(cloud: F64, targets: Sequence[Target], steps: Sequence[float]) -> float:
    """Return how many classes that are not the right one are expected to give all values.

    Classes (rows of `cloud`) are counted within windows around the printed values, those that fit
    left out. If they lie evenly, a window that is s times as wide as rounding holds s times as
    many; of further values each narrows that by s^0.5, since classes that are near in one value
    are often near in others. The largest rate of all windows counts.

    A mean can be a multiple of a `step`, such as 1 by the number of users: then two means agree
    by chance as often as if they were rounded to it.
    """
    if not len(cloud):
        return 0.0
    printed = np.array([target.printed.value for target in targets])
    half = np.array([target.printed.half for target in targets])
    fits = (np.abs(cloud - printed) <= half * (1 + 1e-6)).all(axis=1)
    width = np.maximum(half, np.array(steps) / 2)
    distance = (np.abs(cloud - printed) / width).max(axis=1)
    independent = 1 + SHARED * (len(distinct(targets)) - 1)
    others = np.sort(distance[~fits])
    counts = np.searchsorted(others, WINDOWS, side="right")
    rates = counts / np.array(WINDOWS) ** independent
    return float(rates.max(initial=0.0))


def smallest_step(values: F64) -> float:
    """Return how little a mean can change: the least difference between two users' values, by n.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.explaining.chance import smallest_step
    >>> smallest_step(np.array([0.0, 1.0, 1.0, np.nan, 0.0]))
    0.25
    """
    known = values[~np.isnan(values)]
    levels = np.unique(np.round(known, 9))
    if levels.size < 2:
        return 0.0
    return float(np.diff(levels).min()) / known.size


def distinct(targets: Sequence[Target]) -> set[tuple[str, str]]:
    """Return the values that are not the same number asked twice."""
    return {(target.system, target.quantity.label) for target in targets}
