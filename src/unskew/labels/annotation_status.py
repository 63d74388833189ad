"""`AnnotationStatus`: intervals that hold whenever anybody looks, and whether to stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.errors import DataError, SettingError
from unskew.labels.annotation_plan import AnnotationPlan, Labels
from unskew.labels.confidence_sequences import (
    TotalInterval,
    expected_draws,
    interval_path,
    total_interval,
)
from unskew.report.charts import GREY, Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted

STOP, GO_ON = "stop", "go on"


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotationStatus(Result):
    """Whether labels are enough. From `Annotation.status`."""

    plan: AnnotationPlan
    labels: Labels
    intervals: tuple[TotalInterval, ...]
    """By contrast: of the difference, or of each system."""
    level: float
    smallest: float | None
    width: float | None
    decision: str
    """`stop` or `go on`."""
    reason: str
    expected: int | None
    """Labels in all after which, on average, the stated difference or width is reached; None where
    neither is stated."""
    notes: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        """How many labels count: those without a gap from the first pair on."""
        return self.labels.prefix

    @property
    def needed(self) -> int | None:
        """How many labels more, on average, for the stated difference or width."""
        return None if self.expected is None else max(self.expected - self.judged, 0)

    def table(self) -> pl.DataFrame:
        """Return a row per contrast: low, estimate, high."""
        rows = [
            (name, interval.low, interval.estimate, interval.high)
            for name, interval in zip(self.plan.contrasts, self.intervals, strict=True)
        ]
        what = "difference" if self.plan.estimand == "difference" else "system"
        return pl.DataFrame(rows, [what, "low", "estimate", "high"], orient="row").fill_nan(None)

    def path(self, marks: int = 40) -> pl.DataFrame:
        """Return the intervals after several numbers of labels: labels, contrast, low, high."""
        count = self.judged
        if not count:
            raise DataError("no pair is judged yet, so there is no path")
        steps = np.unique(np.linspace(1, count, min(marks, count)).round().astype(np.int64))
        frames = []
        for number_, name in enumerate(self.plan.contrasts):
            draws = self.plan.draws(number_)
            value = _worth(self.plan, self.labels)
            low, high = interval_path(draws, value, _level_of_each(self.plan, self.level), steps)
            frames.append(
                pl.DataFrame({"labels": steps, "contrast": name, "low": low, "high": high})
            )
        return pl.concat(frames)

    def figure(self) -> Figure:
        """Draw the intervals as labels came in."""
        import altair as alt

        is_difference = self.plan.estimand == "difference"
        rows = [{**row, "zero": 0.0} for row in self.path().to_dicts()]
        base = alt.Chart(alt.NamedData(name="rows"), width=520, height=260)
        band = base.mark_area(opacity=0.35, interpolate="step-after").encode(
            x=alt.X("labels:Q", title="labels"),
            y=alt.Y("low:Q", title="difference" if is_difference else self.plan.metric),
            y2="high:Q",
            color=alt.Color("contrast:N"),
        )
        none = base.mark_line(strokeDash=[4, 3], color=GREY).encode(x="labels:Q", y="zero:Q")
        chart = alt.layer(band, none) if is_difference else band
        lines = [*self._explanation(), *self._conclusion()]
        return as_figure(chart, f"{self.plan.metric}: what labels say", lines, rows)

    def _explanation(self) -> list[str]:
        count = len(self.intervals)
        together = f" (all {count} together)" if count > 1 else ""
        return [
            f"{self.plan.metric}: {counted(self.judged, 'label')} of {self.plan.budget:,} planned, "
            f"{self.plan.user.len():,} pairs in all; {self.plan.design} design",
            f"intervals hold these lists' values after every number of labels with probability "
            f"{self.level:g}{together}",
        ]

    def _conclusion(self) -> list[str]:
        return [f"{self.decision}: {self.reason}", *self._outlook()]

    def _outlook(self) -> list[str]:
        if self.decision == STOP or self.expected is None:
            return []
        what = (
            f"a true difference of {self.smallest:g} would be settled"
            if self.plan.estimand == "difference" and self.smallest is not None
            else f"intervals would be narrower than {self.width:g}"
        )
        after = f"on average {what} after about {counted(self.expected, 'label')} in all"
        if self.expected >= self.plan.user.len():
            return [f"on average {what} only when nearly all {self.expected:,} pairs are judged"]
        if self.needed:
            return [f"{after}: about {self.needed:,} more"]
        return [f"{after}, and {self.judged:,} are judged"]

    def _summary(self) -> str:
        return f"{self.plan.metric}, {counted(self.judged, 'label')}: {self.decision}"

    def _content(self) -> dict[str, object]:
        return {
            "metric": self.plan.metric,
            "decision": self.decision,
            "reason": self.reason,
            "labels": self.judged,
            "planned": self.plan.budget,
            "pairs": self.plan.user.len(),
            "level": self.level,
            "smallest": self.smallest,
            "width": self.width,
            "expected": self.expected,
            "needed": self.needed,
            "rows": self.table(),
            "notes": self.footer(),
        }


def status_of(
    plan: AnnotationPlan,
    labels: Labels,
    notes: tuple[str, ...],
    *,
    smallest: float | None,
    width: float | None,
    level: float,
) -> AnnotationStatus:
    """Return what labels say, and whether they are enough; see `Annotation.status`."""
    if smallest is not None and plan.estimand == "levels":
        raise SettingError(
            "smallest=… is a difference of two systems, and this plan is for levels: give width=…"
        )
    lines = list(notes)
    if smallest is not None and plan.smallest is not None and smallest != plan.smallest:
        lines.append(
            f"smallest difference {smallest:g}: the plan stated {plan.smallest:g} before anything "
            f"was judged"
        )
    threshold = plan.smallest if smallest is None else smallest
    contrast_level = _level_of_each(plan, level)
    value = _worth(plan, labels)
    populations = [plan.draws(number_) for number_ in range(len(plan.contrasts))]
    intervals = tuple(total_interval(draws, value, contrast_level) for draws in populations)
    distance = threshold if plan.estimand == "difference" and threshold is not None else None
    if distance is None and width is not None:
        distance = width / 2
    expected = None
    if distance is not None:
        expected = max(
            expected_draws(draws, interval.spread, distance, contrast_level)
            for draws, interval in zip(populations, intervals, strict=True)
        )
    decision, reason = _decide(plan, intervals, threshold, width, labels.prefix)
    return AnnotationStatus(
        plan=plan,
        labels=labels,
        intervals=intervals,
        level=level,
        smallest=threshold,
        width=width,
        decision=decision,
        reason=reason,
        expected=expected,
        notes=tuple(lines),
    )


def _worth(plan: AnnotationPlan, labels: Labels) -> F64:
    """Return what the labels that count are worth; NaN where nobody could tell."""
    return plan.worth(labels.value[: labels.prefix])


def _level_of_each(plan: AnnotationPlan, level: float) -> float:
    """Return the level of one interval, so that all hold together with the level asked for."""
    return 1 - (1 - level) / len(plan.contrasts)


def _decide(
    plan: AnnotationPlan,
    intervals: tuple[TotalInterval, ...],
    smallest: float | None,
    width: float | None,
    count: int,
) -> tuple[str, str]:
    """Return whether to stop, and why."""
    if any(interval.low > interval.high for interval in intervals):
        return STOP, (
            "no value is compatible with all labels. By chance this happens rarely (at most 1 - "
            "level); more often pairs were judged in another order, or labels were changed"
        )
    first = intervals[0]
    if plan.estimand == "difference":
        a, b = plan.systems
        if first.low > 0 or first.high < 0:
            higher = first.low > 0
            if plan.place_sum.metric.better == "lower":
                higher = not higher
            better, worse = (a, b) if higher else (b, a)
            return STOP, f"{better} is better than {worse} on these lists"
        if smallest is not None and max(-first.low, first.high) < smallest:
            return STOP, f"{a} and {b} differ by less than {smallest:g} on these lists"
    if count == plan.user.len():
        exact = all(interval.low == interval.high for interval in intervals)
        ending = "; an interval remains where nobody could tell" * (not exact)
        return STOP, f"all pairs are judged{ending}"
    if width is not None and all(interval.high - interval.low <= width for interval in intervals):
        return STOP, f"every interval is at most {width:g} wide"
    if plan.estimand == "difference":
        return GO_ON, "it is not settled which system is better"
    if width is None:
        return GO_ON, "state how narrow intervals should be (width=…) to learn when to stop"
    return GO_ON, f"an interval is wider than {width:g}"
