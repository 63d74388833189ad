"""`status_of`: intervals that hold whenever anybody looks, and whether to stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64
from unskew.labels.confidence_sequences import (
    Draws,
    TotalInterval,
    expected_draws,
    interval_path,
    total_interval,
)
from unskew.report.columns import (
    DIFFERENCE,
    HIGH,
    LOW,
    METRIC,
    PAIR,
    SYSTEM,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.compare.gaps import shared_level

STOP, GO_ON = "stop", "go on"
MARKS = 40
"""After so many numbers of labels the path shows the intervals."""
LEVELS = Question(
    name="what labels say",
    columns=(METRIC, SYSTEM, Column("value", "value", "estimate"), LOW, HIGH),
    method=Method(
        estimand="the value of these lists by labels of people",
        unit="pairs",
        interval="confidence sequence",
    ),
    figures=(Drawing("path", "steps", "path"),),
)
DIFFERENCES = replace(LEVELS, columns=(METRIC, *PAIR, *DIFFERENCE))
_LABELS = Column("labels", "axis")
LEVELS_PATH = replace(
    LEVELS, columns=(METRIC, SYSTEM, _LABELS, VALUE, LOW, HIGH), figures=(Drawing(kind="steps"),)
)
DIFFERENCES_PATH = replace(LEVELS_PATH, columns=(METRIC, *PAIR, _LABELS, *DIFFERENCE))
"""The intervals after several numbers of labels, rounded outwards to 1/400 of the first range."""


class StopRule(NamedTuple):
    """When labels are enough; see `AnnotationPlan.status`."""

    smallest: float | None
    """The smallest difference that matters, where one is estimated."""
    width: float | None
    level: float


def status_of(
    draws: Mapping[tuple[str, ...], Draws],
    value: F64,
    rule: StopRule,
    metric: tuple[str, str],
    planned: int,
    **words: tuple[str, ...],
) -> Estimates:
    """Return what labels say, and whether they are enough.

    Parameters
    ----------
    draws
        The pairs in the order in which they are judged, by the system or by the two whose
        difference is estimated.
    value
        What the labels that count are worth; NaN where nobody could tell.
    rule
        When they are enough.
    metric
        Its label, and whether `higher` or `lower` is better.
    planned
        How many labels were planned.
    words
        `explanation` and `notes` of the answer.
    """
    level = shared_level(rule.level, len(draws))
    intervals = {names: total_interval(part, value, level) for names, part in draws.items()}
    is_difference, label = len(next(iter(draws))) == 2, metric[0]
    distance = rule.smallest
    if distance is None and rule.width is not None:
        distance = rule.width / 2
    count, size, expected = value.size, next(iter(draws.values())).size, None
    if distance is not None:
        expected = max(
            expected_draws(part, intervals[names].spread, distance, level)
            for names, part in draws.items()
        )
    decision, reason = _decide(intervals, rule, metric[1], is_complete=count == size)
    conclusion = [f"{decision}: {reason}"]
    if decision == GO_ON and expected is not None:
        conclusion.append(_outlook(rule, expected, count, size))
    rows = [
        (label, *names, interval.estimate, interval.low, interval.high)
        for names, interval in intervals.items()
    ]
    path = [
        (label, *names, *numbers)
        for names, part in draws.items()
        for numbers in _path(part, value, level)
    ]
    together = f" (all {len(draws)} together)" * (len(draws) > 1)
    line = "intervals hold these lists' values after every number of labels with probability"
    path_question = DIFFERENCES_PATH if is_difference else LEVELS_PATH
    return Estimates.of_rows(
        DIFFERENCES if is_difference else LEVELS,
        rows,
        level=rule.level,
        explanation=(*words["explanation"], f"{line} {rule.level:g}{together}"),
        notes=words["notes"],
        conclusion=tuple(conclusion),
        parts={"path": Estimates.of_rows(path_question, path, level=rule.level)},
        card={
            "better": dict([metric]),
            "decision": decision,
            "reason": reason,
            "labels": count,
            "planned": planned,
            "pairs": size,
            "smallest": rule.smallest,
            "width": rule.width,
            "expected": expected,
            "needed": None if expected is None else max(expected - count, 0),
        },
    )


def _path(draws: Draws, value: F64, level: float) -> Iterator[tuple[float | None, ...]]:
    """Yield the interval after several numbers of labels: labels, no value, low and high."""
    count = value.size
    if not count:
        return
    steps = np.unique(np.linspace(1, count, min(MARKS, count)).round().astype(np.int64))
    low, high = interval_path(draws, value, level, steps)
    for number, lowest, highest in zip(steps.tolist(), low.tolist(), high.tolist(), strict=True):
        yield number, None, lowest, highest


def _outlook(rule: StopRule, expected: int, count: int, size: int) -> str:
    """Say after how many labels, on average, the stated difference or width is reached."""
    goal = f"intervals would be narrower than {rule.width:g}" if rule.width is not None else ""
    if rule.smallest is not None:
        goal = f"a true difference of {rule.smallest:g} would be settled"
    if expected >= size:
        return f"on average {goal} only when nearly all {expected:,} pairs are judged"
    after = f"on average {goal} after about {counted(expected, 'label')} in all"
    if expected > count:
        return f"{after}: about {expected - count:,} more"
    return f"{after}, and {count:,} are judged"


def _decide(
    intervals: Mapping[tuple[str, ...], TotalInterval],
    rule: StopRule,
    better: str,
    *,
    is_complete: bool,
) -> tuple[str, str]:
    """Return whether to stop, and why."""
    widths, width = [part.high - part.low for part in intervals.values()], rule.width
    if min(widths) < 0:
        return STOP, (
            "no value is compatible with all labels. By chance this happens rarely (at most 1 - "
            "level); more often pairs were judged in another order, or labels were changed"
        )
    names, first = next(iter(intervals.items()))
    if len(names) == 2:
        if first.low > 0 or first.high < 0:
            higher, lower = names if first.low > 0 else names[::-1]
            winner, loser = (lower, higher) if better == "lower" else (higher, lower)
            return STOP, f"{winner} is better than {loser} on these lists"
        if rule.smallest is not None and max(-first.low, first.high) < rule.smallest:
            a, b = names
            return STOP, f"{a} and {b} differ by less than {rule.smallest:g} on these lists"
    if is_complete:
        ending = "; an interval remains where nobody could tell" * any(widths)
        return STOP, f"all pairs are judged{ending}"
    if width is not None and max(widths) <= width:
        return STOP, f"every interval is at most {width:g} wide"
    if len(names) == 2:
        return GO_ON, "it is not settled which system is better"
    if width is None:
        return GO_ON, "state how narrow intervals should be (width=…) to learn when to stop"
    return GO_ON, f"an interval is wider than {width:g}"
