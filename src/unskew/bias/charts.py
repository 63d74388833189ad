"""Charts of item distributions and of pairs of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.bias.popularity.item_counts import ItemCounts
from unskew.report.charts import BLUE, GREEN, GREY, MOST_ROWS, ORANGE, VERMILION, Figure, as_figure
from unskew.report.text import counted

if TYPE_CHECKING:
    import altair as alt


STEPS = 500
CURVES = {"popularity p(train|i)": BLUE, "average rating p(rel|train,i)": ORANGE}


def _rows() -> Any:
    import altair as alt

    return alt.Chart(alt.NamedData(name="rows"))


def popularity(all_items: ItemCounts, gini: float) -> Figure:
    """Draw popularity and average rating, each from its highest to its lowest (figure 6)."""
    import altair as alt

    counts = all_items.take(all_items.rated > 0)
    rows = []
    for name, values in zip(CURVES, (counts.p_train, counts.p_rel_train), strict=True):
        falling = -np.sort(-values)
        edges = np.arange(min(STEPS, falling.size) + 1) * falling.size // min(STEPS, falling.size)
        means = np.add.reduceat(falling, edges[:-1]) / np.diff(edges)
        rows += [
            {"curve": name, "rank": int(rank) + 1, "share": float(mean)}
            for rank, mean in zip(edges[:-1], means, strict=True)
        ]
    chart = (
        _rows()
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("rank:Q", title="items (each curve has its own order)").scale(nice=False),
            y=alt.Y("share:Q", title="share of users, of ratings").scale(domain=[0, 1]),
            color=alt.Color("curve:N").scale(domain=list(CURVES), range=list(CURVES.values())),
        )
        .properties(width=520, height=260)
    )
    notes = [
        f"{counted(int(counts.rated.sum()), 'rating')} of {counted(len(counts.items), 'item')}; "
        f"Gini {gini:.2f}"
    ]
    return as_figure(chart, "Popularity and average rating", notes, rows)


def positive_ratio(bins: pl.DataFrame) -> Figure:
    """Draw the share of liked ratings by the popularity of the items."""
    import altair as alt

    rows = bins.to_dicts()
    canvas = _rows().properties(width=520, height=260)
    x = alt.X("mean_rated:Q", title="mean ratings per item").scale(type="log", nice=False)
    y = alt.Y("ratio:Q", title="share of ratings that are liked").scale(zero=False)
    lines = canvas.mark_rule(strokeWidth=2, color=BLUE).encode(
        x=x, y=alt.Y("low:Q", title="share of ratings that are liked"), y2="high:Q"
    )
    points = canvas.mark_point(filled=True, size=60, opacity=1, color=BLUE).encode(x=x, y=y)
    notes = [f"{len(rows)} groups of items from the least to the most rated; 95 % intervals"]
    return as_figure(alt.layer(lines, points), "Liked ratings by popularity", notes, rows)


def optimal(all_items: ItemCounts, correlations: pl.DataFrame) -> Figure:
    """Draw both observed optimal rankings against popularity and average rating (figure 7)."""
    import altair as alt

    counts = all_items.take(all_items.usable)
    values = np.array([counts.p_train, counts.p_rel_train, counts.phi_p, counts.phi_anti])
    points, size = _gathered(values)
    names = ("popularity", "rating", "phi_P", "phi_antiP")
    rows = [dict(zip(names, column, strict=True)) for column in points.T.tolist()]
    titles = {"popularity": "p(train|i)", "rating": "p(rel|train,i)"}
    circles = _rows().mark_circle(size=12, opacity=0.5)

    def panel(x: str, y: str, color: str) -> alt.Chart:
        chart: alt.Chart = circles.encode(
            x=alt.X(f"{x}:Q", title=titles[x]), y=alt.Y(f"{y}:Q", title=y), color=alt.value(color)
        ).properties(width=260, height=180)
        return chart

    panels = [
        alt.hconcat(panel("popularity", name, color), panel("rating", name, color))
        for name, color in (("phi_P", GREEN), ("phi_antiP", VERMILION))
    ]
    notes = [
        f"Pearson: {row['ranking']} with {row['with']} {row['pearson']:.2f}"
        for row in correlations.iter_rows(named=True)
    ]
    notes += _together(size)
    return as_figure(alt.vconcat(*panels), "What the optimal rankings depend on", notes, rows)


def _gathered(values: F64, limit: int = MOST_ROWS) -> tuple[F64, int]:
    """Return few enough points: means of items next to each other in the first two rows."""
    items = values.shape[1]
    ordered = values[:, np.lexsort((values[1], values[0]))]
    if items <= limit:
        return ordered, 1
    edges = np.arange(limit + 1) * items // limit
    sizes = np.diff(edges)
    return np.add.reduceat(ordered, edges[:-1], axis=1) / sizes, int(sizes.max())


def dependence(p_train: F64, p_train_rel: F64, overall: float, notes: Sequence[str]) -> Figure:
    """Draw p(train|rel,i) against p(train|i), with the line of each hypothesis (figure 10)."""
    import altair as alt

    ends_of_lines = 4
    points, size = _gathered(np.array([p_train, p_train_rel]), MOST_ROWS - ends_of_lines)
    rows: list[dict[str, Any]] = [{"p_train": x, "p_train_rel": y} for x, y in points.T.tolist()]
    top = float(p_train.max())
    lines = {
        "p(train|rel,i) = p(train|i)": (0.0, top),
        "p(train|rel,i) = p(train|rel)": (overall, overall),
    }
    rows += [
        {"line": name, "p_train": x, "p_train_rel": y}
        for name, levels in lines.items()
        for x, y in zip((0.0, top), levels, strict=True)
    ]
    canvas = _rows()
    x = alt.X("p_train:Q", title="p(train|i)")
    y = alt.Y("p_train_rel:Q", title="p(train|rel,i)")
    items = canvas.transform_filter("!isValid(datum.line)")
    dots = items.mark_circle(size=14, opacity=0.5, color=BLUE).encode(x=x, y=y)
    color = alt.Color("line:N").scale(domain=list(lines), range=[VERMILION, GREY])
    ruled = canvas.transform_filter("isValid(datum.line)").mark_line().encode(x=x, y=y, color=color)
    chart = alt.layer(dots, ruled).properties(width=420, height=300)
    title = "Does being rated depend on being liked?"
    return as_figure(chart, title, [*notes, *_together(size)], rows)


def _together(size: int) -> list[str]:
    return [f"each point is the mean of up to {size} items"] if size > 1 else []


def ranks(precision: pl.Series, anti: pl.Series, notes: Sequence[str]) -> Figure:
    """Draw each item's rank in both observed optimal rankings (figure 6)."""
    import altair as alt

    points, size = _gathered(np.array([precision, anti], dtype=np.float64))
    rows = [{"P": x, "anti-P": y} for x, y in points.T.tolist()]
    chart = (
        _rows()
        .mark_circle(size=14, opacity=0.5, color=BLUE)
        .encode(
            x=alt.X("P:Q", title="rank in the order best for P"),
            y=alt.Y("anti-P:Q", title="rank in the order best for anti-P"),
        )
        .properties(width=360, height=320)
    )
    return as_figure(chart, "Optimal rankings", [*notes, *_together(size)], rows)
