"""Curves of means with intervals, over windows, ages or steps."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from unskew.report.charts import Figure, as_figure, system_colours


def curves(rows: pl.DataFrame, unit: str, label: str, notes: Sequence[str]) -> Figure:
    """Draw the mean of each system in each window, with its interval.

    Parameters
    ----------
    rows
        Columns named like the unit, system, mean, low, high, users.
    unit
        What the points stand for: `window`, `split`, `age`, `step`.
    label
        The metric.
    notes
        Below the title.
    """
    import altair as alt

    points = [
        {
            unit: str(row[unit]),
            "system": row["system"],
            "mean": row["mean"],
            "low": row["low"],
            "high": row["high"],
            "users": row["users"],
        }
        for row in rows.iter_rows(named=True)
        if row["mean"] is not None
    ]
    order = list(dict.fromkeys(str(name) for name in rows[unit]))
    systems = list(dict.fromkeys(rows["system"].to_list()))
    whole = alt.Chart(alt.NamedData(name="rows"), width=max(320, min(640, 60 * len(order))))
    x = alt.X(f"{unit}:N", title=unit).scale(domain=order).axis(labelAngle=-30, labelOverlap=True)
    # Beside each other, or the bars of systems would hide each other.
    shift = alt.XOffset("system:N").scale(domain=systems)
    colours = system_colours(systems)
    color = alt.Color("system:N").scale(domain=systems, range=[colours[one] for one in systems])
    lines = whole.mark_line(strokeWidth=1.5, opacity=0.7).encode(
        x=x, y=alt.Y("mean:Q", title=label).scale(zero=False), color=color, xOffset=shift
    )
    marks = whole.mark_point(filled=True, size=45, opacity=1).encode(
        x=x, y=alt.Y("mean:Q", title=label), color=color, xOffset=shift
    )
    bars = whole.mark_rule(strokeWidth=1.5).encode(
        x=x, y=alt.Y("low:Q", title=label), y2="high:Q", color=color, xOffset=shift
    )
    return as_figure(alt.layer(bars, lines, marks), f"{label} by {unit}", notes, points)
