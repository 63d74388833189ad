"""Figures of a diagnosis: rows over time by part, and how far items have drifted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unskew.report.charts import BLUE, GREEN, GREY, INK, VERMILION, Figure, as_figure
from unskew.splits.diagnosis.over_time import DriftPeriod, RowsOverTime

COLOURS = {"training": BLUE, "test": VERMILION, "validation": GREEN}
MOST_BARS = 40
"""The most splits of which every part is drawn as a bar."""


def over_time(timelines: Sequence[RowsOverTime]) -> Figure:
    """Draw the rows of each part over time; of several splits, when parts begin and end.

    Parameters
    ----------
    timelines
        One for each split.
    """
    return _rows(timelines[0]) if len(timelines) == 1 else _windows(timelines[:MOST_BARS])


def _moment(micros: int) -> str:
    return str(np.datetime64(int(micros), "us").astype("M8[s]"))


def _colour(parts: Sequence[str], symbol: str) -> Any:
    import altair as alt

    scale = {part: COLOURS.get(part, GREY) for part in parts}
    color = alt.Color("part:N").scale(domain=list(scale), range=list(scale.values()))
    return color.legend(symbolType=symbol)


def _rows(timeline: RowsOverTime) -> Figure:
    """Draw the rows of each part on top of each other."""
    import altair as alt

    parts = sorted(timeline.rows, key=lambda part: timeline.spans.get(part, (0, 0)))
    rows = [
        {"part": part, "from": _moment(low), "rows": int(number)}
        for part in parts
        for low, number in zip(timeline.edges, timeline.rows[part], strict=False)
    ]
    width = (int(timeline.edges[1]) - int(timeline.edges[0])) / 86_400e6
    chart = (
        alt.Chart(alt.NamedData(name="rows"), width=620, height=240)
        .mark_area(interpolate="step-after", opacity=1)
        .encode(
            x=alt.X("from:T", title=None),
            y=alt.Y("rows:Q", title=f"rows in {width:,.1f} days").stack("zero").axis(tickMinStep=1),
            color=_colour(parts, "square"),
            order=alt.Order("part:N"),
        )
    )
    totals = ", ".join(f"{int(timeline.rows[part].sum()):,} {part}" for part in parts)
    return as_figure(chart, "Rows over time", [f"{timeline.label}: {totals} rows"], rows)


def _windows(timelines: Sequence[RowsOverTime]) -> Figure:
    """Draw a bar from the first to the last row of each part of each split."""
    import altair as alt

    parts = list(dict.fromkeys(part for one in timelines for part in one.spans))
    rows = [
        {"split": one.label, "part": part, "from": _moment(low), "to": _moment(high)}
        for one in timelines
        for part, (low, high) in one.spans.items()
    ]
    labels = list(dict.fromkeys(one.label for one in timelines))
    chart = (
        alt.Chart(alt.NamedData(name="rows"), width=620, height=alt.Step(22))
        .mark_bar(opacity=0.75, height=9)
        .encode(
            x=alt.X("from:T", title=None),
            x2="to:T",
            y=alt.Y("split:N", title=None, sort=labels),
            yOffset=alt.YOffset("part:N", sort=parts),
            color=_colour(parts, "square"),
        )
    )
    return as_figure(
        chart, "Parts over time", [f"{len(timelines):,} splits, first to last row of a part"], rows
    )


def drift(periods: Sequence[DriftPeriod]) -> Figure:
    """Draw how different the items of each period of training and of the test are.

    Parameters
    ----------
    periods
        Of one split or of several; the last split is drawn.
    """
    import altair as alt

    label = periods[-1].label
    shown = [one for one in periods if one.label == label]
    kinds = {"measured": VERMILION, "expected without drift": GREY}
    rows = [
        {"from": _moment((one.first + one.last) // 2), "kind": kind, "distance": value}
        for one in shown
        for kind, value in zip(kinds, (one.distance.value, one.distance.chance), strict=True)
        if np.isfinite(value)
    ]
    color = alt.Color("kind:N").scale(domain=list(kinds), range=list(kinds.values()))
    base = alt.Chart(alt.NamedData(name="rows"), width=620, height=240).encode(
        x=alt.X("from:T", title="middle of a tenth of the training rows"),
        y=alt.Y("distance:Q", title="total variation to the test").scale(domain=[0, 1]),
        color=color.legend(symbolType="stroke"),
    )
    chart = base.mark_line(strokeWidth=2) + base.mark_point(filled=True, size=45, stroke=INK)
    notes = [
        f"{label}: share of rows that would have to change their item",
        "without drift: blocks of users change sides",
    ]
    return as_figure(chart, "Drift of items", notes, rows)
