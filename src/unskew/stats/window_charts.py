"""Charts over windows of time: the difference of two systems."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from unskew.report.charts import BLUE, GREY, VERMILION, Figure, as_figure

_SHOWN = ("a is ahead", "b is ahead", "neither is shown")


def differences(rows: pl.DataFrame, unit: str, label: str, notes: Sequence[str]) -> Figure:
    """Draw the difference of one pair in each window, with its simultaneous interval."""
    import altair as alt

    a, b = rows["a"][0], rows["b"][0]
    points = [
        {
            unit: str(row[unit]),
            "difference": row["difference"],
            "low": row["low"],
            "high": row["high"],
            "users": row["users"],
            "verdict": _SHOWN[0 if row["ahead"] == a else 1 if row["ahead"] == b else 2],
        }
        for row in rows.iter_rows(named=True)
        if row["difference"] is not None
    ]
    order = list(dict.fromkeys(str(name) for name in rows[unit]))
    names = [f"{a} is ahead", f"{b} is ahead", _SHOWN[2]]
    for point in points:
        point["verdict"] = names[_SHOWN.index(point["verdict"])]
    whole = alt.Chart(alt.NamedData(name="rows"), width=max(320, min(640, 60 * len(order))))
    x = alt.X(f"{unit}:N", title=unit).scale(domain=order).axis(labelAngle=-30, labelOverlap=True)
    color = alt.Color("verdict:N").scale(domain=names, range=[BLUE, VERMILION, GREY])
    title = f"{label}: {a} − {b}, positive is better for {a}"
    marks = whole.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, y=alt.Y("difference:Q", title=title), color=color
    )
    bars = whole.mark_rule(strokeWidth=2).encode(
        x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=color
    )
    zero = whole.mark_rule(strokeDash=[4, 3], color=GREY).encode(y=alt.datum(0.0))
    return as_figure(alt.layer(zero, bars, marks), f"{label}: {a} − {b}", notes, points)
