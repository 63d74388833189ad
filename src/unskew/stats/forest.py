"""`forest`: a row per estimate, a point and its interval, and a line at 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unskew.report.charts import GREY, Figure, as_figure


def forest(
    rows: Sequence[Mapping[str, Any]],
    name: str,
    kind: str,
    colours: Mapping[str, str],
    *,
    label: str,
    title: str,
    notes: Sequence[str],
) -> Figure:
    """Draw differences with their intervals.

    Parameters
    ----------
    rows
        With `difference`, `low` and `high`, from top to bottom.
    name, kind
        The keys of what a row is called, and of what colours it.
    colours
        Of each kind.
    label
        Of the axis.
    title, notes
        Of the figure.
    """
    import altair as alt

    chart = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(24))
    y = alt.Y(f"{name}:N", title=None).scale(domain=[row[name] for row in rows])
    y = y.axis(labelPadding=8)
    color = alt.Color(f"{kind}:N").scale(domain=list(colours), range=list(colours.values()))
    points = chart.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("difference:Q", title=label).axis(tickCount=6), y=y, color=color
    )
    lines = chart.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=label), x2="high:Q", y=y, color=color
    )
    zero = chart.mark_rule(strokeDash=[4, 3], color=GREY).encode(x=alt.datum(0.0))
    return as_figure(alt.layer(zero, lines, points), title, notes, rows)
