"""The figures of a report that no single result draws: designs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.report.charts import BLUE, GREY, VERMILION, Figure, as_figure, system_colours

if TYPE_CHECKING:
    import altair as alt

MOST_SYSTEMS = 25
"""More than these make no readable chart: the best ones under the common design are drawn."""
AS_RATED, REDRAWN = "as rated", "re-drawn"
"""Opinions in the null experiment."""


def _rows() -> alt.NamedData:
    import altair as alt

    return alt.NamedData(name="rows")


def null(table: pl.DataFrame, systems: Sequence[str], metric: str, design: str) -> Figure:
    """Draw what a design gives systems on the data as they are, and on re-drawn opinions.

    Parameters
    ----------
    table
        `NullExperiment.table()`, of one design and metric.
    systems
        Best first.
    metric, design
        What is drawn.
    """
    import altair as alt

    shown = list(systems[:MOST_SYSTEMS])
    rows: list[dict[str, Any]] = []
    for row in table.filter(pl.col("system").is_in(shown)).iter_rows(named=True):
        place = {"system": row["system"]}
        rows.append(
            {
                **place,
                "data": AS_RATED,
                "value": row["real"],
                "low": None,
                "high": None,
                "random": row["null_random"],
            }
        )
        rows.append(
            {
                **place,
                "data": REDRAWN,
                "value": row["null_value"],
                "low": row["low"],
                "high": row["high"],
                "random": None,
            }
        )
    base = alt.Chart(_rows()).encode(
        y=alt.Y("system:N", title=None, sort=shown),
        color=alt.Color("data:N").scale(domain=[AS_RATED, REDRAWN], range=[BLUE, VERMILION]),
    )
    points = base.mark_point(filled=True, size=80).encode(
        x=alt.X("value:Q", title=f"{metric}, {design}"),
        shape=alt.Shape("data:N").scale(domain=[AS_RATED, REDRAWN]),
        tooltip=["system:N", "data:N", alt.Tooltip("value:Q", format=".4f")],
    )
    whiskers = base.mark_rule().encode(x="low:Q", x2="high:Q")
    chance = alt.Chart(_rows()).mark_rule(strokeDash=[4, 3], color=GREY).encode(x="min(random):Q")
    chart = alt.layer(chance, whiskers, points).properties(
        width=480, height=max(24 * len(shown), 60)
    )
    note = "who rated what is kept; intervals over repeats; dashed: a random order"
    return as_figure(chart, "Opinions as rated, and opinions re-drawn", [note], rows)


def good_and_bad(table: pl.DataFrame, k: int, systems: Sequence[str]) -> Figure:
    """Draw liked over disliked recommendations, a point per system."""
    import altair as alt

    shown = list(systems[:MOST_SYSTEMS])
    rows = [
        {"system": row["system"], "P": row["P"], "antiP": row["anti-P"]}
        for row in table.filter(pl.col("system").is_in(shown)).iter_rows(named=True)
    ]
    base = alt.Chart(_rows()).encode(
        x=alt.X("antiP:Q", title=f"anti-P@{k}: disliked"), y=alt.Y("P:Q", title=f"P@{k}: liked")
    )
    colours = system_colours(systems)
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=alt.Color("system:N", legend=None, scale=scale),
        tooltip=[
            "system:N",
            alt.Tooltip("P:Q", format=".4f"),
            alt.Tooltip("antiP:Q", format=".4f"),
        ],
    )
    names = base.mark_text(align="left", dx=8, fontSize=11).encode(text="system:N")
    chart = alt.layer(points, names).properties(width=460, height=300)
    note = "systems on one ray from the corner have the same share of liked among judged items"
    return as_figure(chart, "Liked and disliked recommendations", [note], rows)


def agreement_with_truth(rows: Sequence[Mapping[str, Any]], metric: str) -> Figure:
    """Draw how alike the order under each design is to the true one."""
    import altair as alt

    known = [dict(row) for row in rows if row["tau"] is not None]
    base = alt.Chart(_rows()).encode(y=alt.Y("design:N", title=None, sort=None))
    x = alt.X("tau:Q", title="τ_b of the order of systems to the true one").scale(domain=[-1, 1])
    points = base.mark_point(filled=True, size=90, color=BLUE).encode(
        x=x, tooltip=["design:N", alt.Tooltip("tau:Q", format=".2f"), "swaps:Q"]
    )
    whiskers = base.mark_rule(color=BLUE).encode(x="low:Q", x2="high:Q")
    zero = alt.Chart().mark_rule(strokeDash=[4, 3], color=GREY).encode(x=alt.datum(0))
    chart = alt.layer(zero, whiskers, points, data=_rows()).properties(
        width=460, height=alt.Step(26)
    )
    note = "1: the true order; −1: the opposite; intervals over users"
    return as_figure(
        chart, f"The order under each design and the true one, {metric}", [note], known
    )


def observed_and_true(table: pl.DataFrame, systems: Sequence[str], metric: str) -> Figure:
    """Draw the true value beside what the common design observes, a row per system."""
    import altair as alt

    shown = list(systems[:MOST_SYSTEMS])
    part = table.filter(pl.col("system").is_in(shown))
    rows = [
        {"system": row["system"], "value": row[key], "what": key}
        for row in part.iter_rows(named=True)
        for key in ("observed", "true")
    ]
    points = (
        alt.Chart(_rows())
        .mark_point(filled=True, size=80)
        .encode(
            x=alt.X("value:Q", title=metric),
            y=alt.Y("system:N", title=None, sort=shown),
            color=alt.Color("what:N").scale(domain=["observed", "true"], range=[BLUE, VERMILION]),
            shape=alt.Shape("what:N").scale(domain=["observed", "true"]),
            tooltip=["system:N", "what:N", alt.Tooltip("value:Q", format=".4f")],
        )
        .properties(width=460, height=max(24 * len(shown), 60))
    )
    note = "systems in the order that the common design observes"
    return as_figure(points, "Observed and true", [note], rows)


def estimates(table: pl.DataFrame, systems: Sequence[str], metric: str) -> Figure:
    """Draw the usable estimates of a metric with their intervals, by IPS and self-normalised."""
    import altair as alt

    usable = table.filter("usable")
    shown = [name for name in systems[:MOST_SYSTEMS] if name in set(usable["system"])]
    left_out = [name for name in systems[:MOST_SYSTEMS] if name not in shown]
    rows = [
        {
            "system": row["system"],
            "estimate": name.upper(),
            "value": row[name],
            "low": row[f"{name}_low"],
            "high": row[f"{name}_high"],
            "hits": row["hits"],
        }
        for row in usable.filter(pl.col("system").is_in(shown)).iter_rows(named=True)
        for name in ("ips", "snips")
        if row[name] is not None
    ]
    kinds = list(dict.fromkeys(row["estimate"] for row in rows))
    base = alt.Chart(_rows()).encode(
        y=alt.Y("system:N", title=None, sort=shown),
        yOffset=alt.YOffset("estimate:N", sort=kinds),
        color=alt.Color("estimate:N", title=None, sort=kinds),
    )
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("value:Q", title=f"{metric}, were everything judged"),
        tooltip=["system:N", "estimate:N", alt.Tooltip("value:Q", format=".4f"), "hits:Q"],
    )
    whiskers = base.mark_rule().encode(x="low:Q", x2="high:Q")
    chart = alt.layer(whiskers, points).properties(width=460, height=max(36 * len(shown), 60))
    notes = ["systems in the order that the common design observes; 95 % intervals over users"]
    if left_out:
        notes.append(f"not usable here, and not drawn: {', '.join(left_out)}")
    return as_figure(chart, "Estimates that weigh popularity out", notes, rows)
