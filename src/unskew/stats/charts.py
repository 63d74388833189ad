"""Charts of a comparison: differences with intervals, all pairs as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from unskew.report.charts import BLUE, GREY, VERMILION, Figure, as_figure
from unskew.report.text import counted

_SURE = {True: "significant", False: "not significant"}


def differences(
    ranking: pl.DataFrame, base: str, label: str, notes: Sequence[str], alpha: float
) -> Figure:
    """Draw each system's mean less that of `base`, with its interval."""
    import altair as alt

    rows = [
        {
            "system": row["system"],
            "difference": row["difference"],
            "low": row["low"],
            "high": row["high"],
            "p": row["p"],
            "verdict": _SURE[bool(row["p"] <= alpha)],
        }
        for row in ranking.iter_rows(named=True)
        if row["difference"] is not None
    ]
    order = [row["system"] for row in rows]
    whole = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(24))
    y = alt.Y("system:N", title=None).scale(domain=order).axis(labelPadding=8)
    color = alt.Color("verdict:N").scale(domain=list(_SURE.values()), range=[BLUE, GREY])
    named = f"{label}: difference to {base}"
    points = whole.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("difference:Q", title=named).axis(tickCount=6), y=y, color=color
    )
    lines = whole.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=named), x2="high:Q", y=y, color=color
    )
    zero = whole.mark_rule(strokeDash=[4, 3], color=GREY).encode(x=alt.datum(0.0))
    return as_figure(alt.layer(zero, lines, points), f"{label}: differences", notes, rows)


def pair_matrix(
    table: pl.DataFrame, order: Sequence[str], better: str, label: str, notes: Sequence[str]
) -> Figure:
    """Draw, for the system of each row against that of each column, who is better and how sure."""
    import altair as alt

    words = ("better", "worse") if better != "neither" else ("greater", "smaller")
    sign = -1 if better == "lower" else 1
    rows: list[dict[str, Any]] = []
    for pair in table.iter_rows(named=True):
        for here, there, turn in ((pair["a"], pair["b"], 1), (pair["b"], pair["a"], -1)):
            gain = turn * sign * pair["difference"]
            word = words[0] if gain > 0 else words[1]
            rows.append(
                {
                    "row": here,
                    "column": there,
                    "difference": turn * pair["difference"],
                    "p": pair["p_corrected"],
                    "verdict": f"row {word}" if pair["significant"] else _SURE[False],
                }
            )
    whole = alt.Chart(alt.NamedData(name="rows"), width=alt.Step(44), height=alt.Step(24))
    bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None}
    cells = whole.encode(
        x=alt.X("column:N").scale(domain=list(order)).axis(orient="top", labelAngle=-45, **bare),
        y=alt.Y("row:N").scale(domain=list(order)).axis(labelPadding=8, **bare),
    )
    domain = [f"row {words[0]}", f"row {words[1]}", _SURE[False]]
    color = alt.Color("verdict:N").scale(domain=domain, range=[BLUE, VERMILION, "#E4E4E4"])
    squares = cells.mark_rect(stroke="white", strokeWidth=2).encode(color=color)
    shade = alt.condition(
        f"datum.verdict === '{_SURE[False]}'", alt.value("#333333"), alt.value("white")
    )
    texts = cells.mark_text(fontSize=10).encode(
        text=alt.Text("difference:Q", format="+.3f"), color=shade
    )
    return as_figure(alt.layer(squares, texts), f"{label}: all pairs", notes, rows)


def segment_differences(rows: pl.DataFrame, by: str, label: str, notes: Sequence[str]) -> Figure:
    """Draw the difference of one pair in each segment, with its interval."""
    import altair as alt

    known = rows.filter(pl.col("difference").is_not_null())
    points = [
        {
            "segment": f"{row['segment']} ({counted(row['users'], 'user')})",
            "difference": row["difference"],
            "low": row["low"],
            "high": row["high"],
            "p": row["p_corrected"],
            "verdict": _SURE[bool(row["significant"])],
        }
        for row in known.iter_rows(named=True)
    ]
    order = [row["segment"] for row in points]
    whole = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(24))
    y = alt.Y("segment:N", title=None).scale(domain=order).axis(labelPadding=8)
    color = alt.Color("verdict:N").scale(domain=list(_SURE.values()), range=[BLUE, GREY])
    named = f"{label}: {known['a'][0]} − {known['b'][0]}" if known.height else label
    marks = whole.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("difference:Q", title=named).axis(tickCount=6), y=y, color=color
    )
    lines = whole.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=named), x2="high:Q", y=y, color=color
    )
    zero = whole.mark_rule(strokeDash=[4, 3], color=GREY).encode(x=alt.datum(0.0))
    title = f"{label} by {by}"
    return as_figure(alt.layer(zero, lines, marks), title, notes, points)
