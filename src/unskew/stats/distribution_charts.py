"""Charts of users' values: quantile curves with their bands."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from unskew.report.charts import Figure, as_figure, system_colours


def quantile_curves(rows: pl.DataFrame, label: str, notes: Sequence[str]) -> Figure:
    """Draw the value that each share of users does not exceed, with bands, by system.

    Parameters
    ----------
    rows
        Columns system, share, value, low, high.
    label
        The metric.
    notes
        Below the title.
    """
    import altair as alt

    points = rows.select("system", "share", "value", "low", "high").to_dicts()
    systems = list(dict.fromkeys(rows["system"].to_list()))
    colours = system_colours(systems)
    color = alt.Color("system:N").scale(domain=systems, range=[colours[one] for one in systems])
    whole = alt.Chart(alt.NamedData(name="rows"), width=480, height=300)
    x = alt.X("share:Q", title="share of users").scale(domain=[0, 1]).axis(format="%")
    band = whole.mark_area(opacity=0.15, interpolate="step-after").encode(
        x=x, y=alt.Y("low:Q", title=label), y2="high:Q", color=color
    )
    line = whole.mark_line(strokeWidth=2, interpolate="step-after").encode(
        x=x, y=alt.Y("value:Q", title=label), color=color
    )
    title = f"{label}: the value that a share of users does not exceed"
    return as_figure(alt.layer(band, line), title, notes, points)
