"""What a figure needs of a split: how many rows each part has over time, and how items drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unskew.arrays import I64, frozen
from unskew.splits.diagnosis.drift_checks import (
    PERIODS,
    Distance,
    distance,
    of_users,
    some_users,
)
from unskew.splits.diagnosis.parts import Parts, times_of

BINS = 120
"""Steps of time in which rows are counted."""
MOST_ROWS, DRAWS = 40_000, 5
"""The most rows of a period of training and of the test that are compared, and the draws."""


@dataclass(frozen=True, eq=False)
class RowsOverTime:
    """The rows of each part of a split over time."""

    label: str
    edges: I64
    """Ends of the steps, in microseconds since 1970."""
    rows: Mapping[str, I64]
    """By part: the rows in each step."""
    spans: Mapping[str, tuple[int, int]]
    """By part: its first and last time."""


@dataclass(frozen=True, eq=False)
class DriftPeriod:
    """How different the items of a period of training and of the test are."""

    label: str
    """Of the split."""
    first: int
    last: int
    distance: Distance


def rows_over_time(parts: Parts) -> RowsOverTime | None:
    """Count the rows of each part over time; None without time stamps."""
    if not parts.has_time or parts.log.time is None:
        return None
    times = {"training": parts.train_time, "test": parts.test_time}
    times |= {name: times_of(one) for name, one in parts.validation.items() if one.time is not None}
    spans = {name: (int(one.min()), int(one.max())) for name, one in times.items() if one.size}
    ends = [int(end) for end in parts.log.ordered_time[[0, -1]]]
    low, high = min(ends[0], *(one[0] for one in spans.values())), ends[1]
    high = max(high, *(one[1] for one in spans.values()))
    width = max(-(-(high - low + 1) // BINS), 1)
    rows = {
        name: np.bincount((one - low) // width, minlength=BINS)[:BINS]
        for name, one in times.items()
    }
    return RowsOverTime(parts.split.label, low + width * np.arange(BINS + 1), rows, spans)


def drift_of(parts: Parts) -> tuple[DriftPeriod, ...]:
    """Compare the items of each tenth of training with those of the test."""
    if not parts.has_time or parts.is_mixed or len(parts.train) < 10 * PERIODS:
        return ()
    label, train = parts.split.label, parts.train
    size = len(train.users), len(train.items)
    # A tenth of training and the whole test are compared: as many users as give that many rows.
    rows = len(train) // PERIODS + len(parts.test)
    chosen = some_users(size[0], rows, MOST_ROWS, f"{label}/period")
    test = of_users(parts.test_rows, chosen)
    mine = slice(None) if chosen is None else chosen[train.user]
    user, item, time = train.user[mine], train.item[mine], parts.train_time[mine]
    if time.size < PERIODS:
        return ()
    places = np.linspace(0, time.size - 1, PERIODS + 1).astype(np.int64)
    edges = np.partition(time, places)[places]
    period = np.minimum(np.searchsorted(edges[1:], time, side="right"), PERIODS - 1)
    result = []
    for number in np.unique(period).tolist():
        inside = period == number
        early = frozen(user[inside]), frozen(item[inside])
        measured = distance(early, test, size, f"{label}/period", DRAWS)
        result.append(DriftPeriod(label, int(edges[number]), int(edges[number + 1]), measured))
    return tuple(result)
