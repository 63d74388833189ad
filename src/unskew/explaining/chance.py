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


def expected_fits(cloud: F64, targets: Sequence[Target]) -> float:
    """Return how many classes that are not the right one are expected to give all values.

    Classes (rows of `cloud`) are counted within windows around the printed values, those that fit
    left out. If they lie evenly, a window that is s times as wide as rounding holds s times as
    many; of further values each narrows that by s^0.5, since classes that are near in one value
    are often near in others. The largest rate of all windows counts.
    """
    if not len(cloud):
        return 0.0
    printed = np.array([target.printed.value for target in targets])
    half = np.array([target.printed.half for target in targets])
    distance = (np.abs(cloud - printed) / half).max(axis=1)
    independent = 1 + SHARED * (len(distinct(targets)) - 1)
    others = np.sort(distance[distance > 1.0 + 1e-6])
    counts = np.searchsorted(others, WINDOWS, side="right")
    rates = counts / np.array(WINDOWS) ** independent
    return float(rates.max(initial=0.0))


def distinct(targets: Sequence[Target]) -> set[tuple[str, str]]:
    """Return the values that are not the same number asked twice."""
    return {(target.system, target.quantity.label) for target in targets}
