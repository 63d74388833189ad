"""Charts of a comparison over data sets: critical differences, and the differences on each one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unskew.report.charts import BLUE, GREY, INK, VERMILION, Figure, as_figure

_BAR, _ROW = 0.55, 1.0
"""Heights of a bar that joins systems, and of the row of a name."""


@dataclass(frozen=True)
class RankedSystems:
    """Systems by mean rank, the best first."""

    names: Sequence[str]
    ranks: Sequence[float]
    letters: Sequence[str]
    """Systems that share one do not differ."""
    critical: float | None = None
    """The critical difference, where one is drawn."""


def critical_differences(systems: RankedSystems, notes: Sequence[str]) -> Figure:
    """Draw mean ranks on an axis, and bars over systems that do not differ (Demšar 2006)."""
    import altair as alt

    count, bars = len(systems.names), _bars(systems)
    reach = 0.06 * (count - 1)
    rows = [*_ruler(systems), *_joined(bars, count), *_stems(systems, len(bars), reach)]
    depth = max(row["y2"] for row in rows) + 0.4
    top = min(row["y"] for row in rows) - 0.6
    base = alt.Chart(alt.NamedData(name="rows"), width=520, height=max(90, 24 * (depth - top)))
    x = (
        alt.X("x:Q", title="mean rank (1 is the best)")
        .scale(domain=[1 - reach, count + reach], nice=False)
        .axis(orient="top", values=list(range(1, count + 1)), format="d", offset=4)
    )
    y = alt.Y("y:Q").scale(domain=[depth, top], nice=False).axis(None)

    def lines(kind: str, **look: Any) -> alt.Chart:
        rules: alt.Chart = base.transform_filter(f"datum.kind === '{kind}'").mark_rule(**look)
        return rules.encode(x=x, x2="x2:Q", y=y, y2="y2:Q")

    def texts(kind: str, align: Any, shift: int, rise: int = 0) -> alt.Chart:
        marks = base.transform_filter(f"datum.kind === '{kind}'")
        labels: alt.Chart = marks.mark_text(
            align=align, dx=shift, dy=rise, color=INK, fontSize=12, limit=260
        ).encode(x=x, y=y, text="text:N")
        return labels

    points = base.transform_filter("datum.kind === 'point'")
    chart = alt.layer(
        lines("stem", color=GREY, strokeWidth=1),
        lines("bar", color=VERMILION, strokeWidth=5, strokeCap="round"),
        lines("ruler", color=INK, strokeWidth=2),
        points.mark_point(filled=True, size=60, opacity=1, color=BLUE).encode(x=x, y=y),
        texts("left", "right", -6),
        texts("right", "left", 6),
        texts("ruler text", "left", 0, -9),
    )
    return as_figure(chart, "Mean ranks over data sets", notes, rows)


def _bars(systems: RankedSystems) -> list[tuple[float, float]]:
    """Return the ends of the bars: the groups of systems that share a letter, two or more."""
    named = [_split(text) for text in systems.letters]
    groups = []
    for name in dict.fromkeys(name for names in named for name in names):
        members = [rank for rank, names in zip(systems.ranks, named, strict=True) if name in names]
        if len(members) > 1:
            groups.append((min(members), max(members)))
    return sorted(groups)


def _split(text: str) -> list[str]:
    """Return the letters of a system: each may be followed by a number."""
    parts: list[str] = []
    for sign in text:
        if sign.isdigit() and parts:
            parts[-1] += sign
        else:
            parts.append(sign)
    return parts


def _ruler(systems: RankedSystems) -> list[dict[str, Any]]:
    width = systems.critical
    if width is None or width > len(systems.names) - 1:  # no mean ranks can be as far apart
        return []
    line = {"x": 1.0, "x2": 1.0 + width, "y": -1.2, "y2": -1.2}
    return [{"kind": "ruler", **line}, {"kind": "ruler text", **line, "text": f"CD = {width:.2f}"}]


def _joined(bars: Sequence[tuple[float, float]], count: int) -> list[dict[str, Any]]:
    pad = 0.01 * (count - 1)
    return [
        {
            "kind": "bar",
            "x": low - pad,
            "x2": high + pad,
            "y": _BAR * (level + 1),
            "y2": _BAR * (level + 1),
        }
        for level, (low, high) in enumerate(bars)
    ]


def _stems(systems: RankedSystems, bars: int, reach: float) -> list[dict[str, Any]]:
    """Return from each system a line down from the axis and to its name at a side."""
    count = len(systems.names)
    left = math.ceil(count / 2)
    rows: list[dict[str, Any]] = []
    for index, (name, rank) in enumerate(zip(systems.names, systems.ranks, strict=True)):
        is_left = index < left
        line = index if is_left else count - 1 - index
        y = _BAR * (bars + 1) + _ROW * (line + 0.5)
        edge = 1 - reach if is_left else count + reach
        at_edge = {"x": edge, "x2": edge, "y": y, "y2": y, "text": f"{name} {rank:.2f}"}
        rows += [
            {"kind": "stem", "x": rank, "x2": rank, "y": 0.0, "y2": y},
            {"kind": "stem", "x": rank, "x2": edge, "y": y, "y2": y},
            {"kind": "point", "x": rank, "x2": rank, "y": 0.0, "y2": 0.0},
            {"kind": "left" if is_left else "right", **at_edge},
        ]
    return rows
