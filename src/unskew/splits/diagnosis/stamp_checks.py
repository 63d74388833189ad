"""Time stamps that are no times: constants, row numbers, one sitting, shuffled ones."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64
from unskew.splits.diagnosis.check import Reading, percent, rule, unknown
from unskew.splits.diagnosis.parts import DAY, NO_TIME, Log, Parts
from unskew.splits.diagnosis.thresholds import (
    EVEN_STEPS,
    FIRST_YEAR,
    ONE_MOMENT,
    ONE_SITTING,
    SITTING_ROWS,
)

Counts = dict[str, int | float | str | None]

FEW_ROWS = 200
"""With fewer rows nothing is said about shuffled stamps or row numbers."""


@rule(
    "time-stamps",
    "Time stamps that are no times",
    unit="number",
    threshold=(
        f"yellow if stamps are all equal, evenly spaced ({EVEN_STEPS:.0%} of steps), mostly before "
        f"{FIRST_YEAR}, independent of users and items, if {ONE_MOMENT:.0%} of the rows carry "
        f"one stamp, or if the median user with {SITTING_ROWS} or more rows gave {ONE_SITTING:.0%} "
        "of them in one session"
    ),
    remedy=(
        "Look where the column comes from. Where stamps are no times, lights about time say "
        "nothing; where users enter all at once, the order within a user is that of a form."
    ),
    of_log=True,
)
def time_stamps(parts: Parts) -> Reading:
    """Look whether time stamps are the times at which things happened."""
    log = parts.log
    if log.time is None or log.history is None or not len(log):
        return unknown(NO_TIME)
    ordered = log.ordered_time
    if ordered[0] == ordered[-1]:
        sentence = "All rows carry the same time stamp: nothing about time can be checked."
        return Reading("look", 1.0, sentence, {"different_stamps": 1})
    faults: list[str] = []
    steps = np.diff(ordered)
    different = int(np.count_nonzero(steps)) + 1
    counts: Counts = {"different_stamps": different}
    faults += _spacing(ordered, steps, different, counts)
    faults += _sittings(log, counts)
    if len(log) >= FEW_ROWS:
        faults += _independence(log, counts)
    if not faults:
        return Reading("ok", 0.0, "Time stamps look like times.", counts)
    return Reading("look", float(len(faults)), " ".join(faults), counts)


def _spacing(ordered: I64, steps: I64, different: int, counts: Counts) -> list[str]:
    """Look at the stamps as numbers."""
    faults = []
    rows = ordered.size
    middle = int(ordered[rows // 2])
    if middle < (FIRST_YEAR - 1970) * 365.25 * DAY:
        year = np.datetime64(middle, "us").astype("M8[Y]")
        faults.append(
            f"The median time stamp lies in {year}: row numbers, or another unit than was taken."
        )
    if rows >= FEW_ROWS and different >= 0.9 * rows:
        positive = steps[steps > 0]
        even = float((positive == np.median(positive)).mean())
        counts["share_of_even_steps"] = even
        if even >= EVEN_STEPS:
            faults.append(
                f"{percent(even)} of the steps between time stamps are equal: they number the rows."
            )
    edges = np.flatnonzero(np.append(True, steps > 0))
    largest = float(np.diff(np.append(edges, rows)).max() / rows)
    counts["largest_share_of_one_stamp"] = largest
    if largest >= ONE_MOMENT and rows >= FEW_ROWS:
        faults.append(f"{percent(largest)} of the rows carry one and the same time stamp.")
    return faults


def _sittings(log: Log, counts: Counts) -> list[str]:
    """Look whether users give all their rows at once."""
    assert log.history is not None
    rows = log.user_counts
    many = rows >= SITTING_ROWS
    if not many.any() or log.resolution > 60_000_000:
        return []
    share = float(np.median(log.history.largest[many] / rows[many]))
    counts["median_share_of_largest_session"] = share
    if share < ONE_SITTING:
        return []
    return [
        f"The median user gave {percent(share)} of the rows in one session: they were entered "
        "at once, or a user is a session."
    ]


def _independence(log: Log, counts: Counts) -> list[str]:
    """Compare the variance of times between users, and between items, with that of shuffled ones.

    Times that belong to rows differ between users (who come, go and sit down) or between items
    (which are born). Of shuffled ones F is 1 up to chance.
    """
    from unskew.splits.diagnosis import kernels

    assert log.time is not None
    deviation: F64 = (log.time - float(log.time.mean())).astype(np.float64)
    deviation /= max(float(np.abs(deviation).max()), 1.0)
    total = float(deviation @ deviation)
    scores = {}
    for name, code, size in (
        ("users", log.user, len(log.users)),
        ("items", log.item, len(log.items)),
    ):
        number = np.zeros(size, np.int64)
        between = kernels.one_way_variance(code, deviation, np.zeros(size), number)
        groups, rows = int(np.count_nonzero(number)), len(log)
        if groups < 10 or rows - groups < 0.5 * rows:
            return []  # too few rows per group to tell
        f = (between / (groups - 1)) / ((total - between) / (rows - groups))
        scores[name] = (f - 1.0) / np.sqrt(2.0 / (groups - 1) + 2.0 / (rows - groups))
        counts[f"z_of_times_between_{name}"] = float(scores[name])
    if max(scores.values()) >= 4.0:
        return []
    return [
        "Time stamps do not depend on users or items: they were shuffled, or everybody and "
        "everything was there all the time."
    ]
