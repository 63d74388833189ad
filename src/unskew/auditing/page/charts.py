"""The one chart of the first screen: place and score of each system under each design."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.auditing.designs import WORDS
from unskew.auditing.page.captions import caption, title
from unskew.metrics.names import parse
from unskew.report.charts import GREY, Figure, as_figure, system_colours
from unskew.report.text import counted, finite

if TYPE_CHECKING:
    import altair as alt

    from unskew.auditing.measurements import Measurements


MOST_SYSTEMS = 8
"""The most systems of the chart."""
WIDTH, SPACE = 960, 24
"""Of the whole chart, and between panels."""
STEP = 28
"""The height of a system's row."""
OFFSET = 6
"""By so much names stand above the middle of their row, and dots below it."""
TRUTH = "truth"
"""The key of the panel that shows what is known to be true."""
PANELS = {name: words["panel"] for name, words in WORDS.items()}
"""By design: the title of its panel."""
USED = {name: words.get("uses", words["panel"]) for name, words in WORDS.items()}
"""The same where data record uses."""


def main_chart(audit: Measurements) -> Figure:
    """Draw each system's score under each design, best at the top, and the truth where known.

    The rows hold the fields design, system, value, low, high, chance and place and nothing else:
    a page can draw other rows of these fields.
    """
    rows = chart_rows(audit)
    systems = drawn_systems(audit)
    left = len(audit.systems) - len(systems)
    notes = [caption("chart mean", metric=audit.metric)]
    if any(row["chance"] is not None for row in rows):
        notes.append(caption("chart chance"))
    if any(row["design"] == TRUTH for row in rows):
        notes.append(caption("chart truth"))
    if left:
        notes.append(caption("chart left", systems=counted(left, "system is", "systems are")))
    return as_figure(
        _chart(audit.order(), panel_titles(audit)),
        title("main chart"),
        notes,
        [row for row in rows if row["system"] in systems],
    )


def panel_titles(audit: Measurements) -> dict[str, str]:
    """Return the title of each panel, by design; the truth comes last."""
    words = USED if audit.core.implicit else PANELS
    panels = {name: words.get(name, name) for name in audit.designs}
    return panels if audit.truth is None else {**panels, TRUTH: title("truth panel")}


def columns_for(panels: int) -> int:
    """Return how many panels stand side by side, so that the last row is not nearly empty."""
    return panels if panels < 4 else 4 if panels in (4, 7, 8) else 3


def drawn_systems(audit: Measurements) -> list[str]:
    """Return the systems that are drawn: the pair of the finding, references, and the best."""
    order = audit.order()
    always = [*audit.first_screen.finding.subjects[:2], *audit.references]
    chosen = set(
        [*dict.fromkeys(system for system in (*always, *order) if system in order)][:MOST_SYSTEMS]
    )
    return [system for system in order if system in chosen]


def chart_rows(audit: Measurements) -> list[dict[str, Any]]:
    """Return a row per design and system, and what is true where it is known."""
    table = audit.table().rename({"random": "chance"})
    rows = [*table.iter_rows(named=True), *_true_rows(audit)]
    return [finite(row) for row in rows]


def _true_rows(audit: Measurements) -> list[dict[str, Any]]:
    if audit.truth is None or audit.metric not in audit.truth.values_of("metric"):
        return []
    rows = audit.truth.where(design=audit.common, metric=audit.metric, quantity="true").rows
    sign = -1.0 if parse(audit.metric).better == "lower" else 1.0
    values = dict(rows.select("system", "value").iter_rows())
    if any(value is None for value in values.values()):
        return []
    nothing = dict.fromkeys(("low", "high", "chance"))
    places = {
        system: 1 + sum(sign * rival > sign * value for rival in values.values())
        for system, value in values.items()
    }
    return [
        {"design": TRUTH, "system": system, "value": value, **nothing, "place": places[system]}
        for system, value in values.items()
    ]


def _layers(systems: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """Draw a panel; everything that depends on the rows is a transform."""
    import altair as alt

    colours = system_colours(systems)
    base = alt.Chart().transform_window(
        row="row_number()",
        sort=[alt.SortField("place"), alt.SortField("system")],
        groupby=["design"],
    )
    y = alt.Y("row:O").axis(None).scale(paddingInner=0, paddingOuter=0.15)
    x = alt.X("value:Q", title=None).scale(zero=True).axis(tickCount=3, grid=True, domain=False)
    colour = alt.Color("system:N", legend=None).scale(
        domain=list(colours), range=list(colours.values())
    )
    is_truth = f"datum.design === {json.dumps(TRUTH)}"
    shade = alt.Chart().transform_filter(is_truth).transform_aggregate(n="count()")
    shade = shade.mark_rect(color=GREY, opacity=0.14).encode(
        x=alt.value(-6), x2=alt.value("width"), y=alt.value(0), y2=alt.value("height")
    )
    # A dash beside each dot: together they are a line that crosses no name. What is not known is
    # drawn on the dot and not seen, because a panel without any value would have no scale.
    has_chance = "isValid(datum.chance)"
    chance = (
        base.transform_calculate(dash=f"{has_chance} ? datum.chance : datum.value")
        .mark_tick(color=GREY, size=STEP / 2, thickness=1.5, yOffset=OFFSET)
        .encode(x="dash:Q", y=y, opacity=alt.condition(has_chance, alt.value(1), alt.value(0)))
    )
    whiskers = (
        base.transform_calculate(
            left="isValid(datum.low) ? datum.low : datum.value",
            right="isValid(datum.high) ? datum.high : datum.value",
        )
        .mark_rule(strokeWidth=2.5, yOffset=OFFSET)
        .encode(x="left:Q", x2="right:Q", y=y, color=colour)
    )
    dots = base.mark_point(filled=True, size=80, opacity=1, yOffset=OFFSET).encode(
        x=x,
        y=y,
        color=colour,
        shape=alt.condition(is_truth, alt.value("diamond"), alt.value("circle")),
        tooltip=_tooltip(),
    )
    names = (
        base.transform_calculate(label="datum.place + '  ' + datum.system")
        .mark_text(align="left", baseline="middle", fontSize=12, yOffset=-OFFSET)
        .encode(x=alt.value(0), y=y, text="label:N", tooltip=_tooltip())
    )
    return alt.layer(shade, chance, whiskers, dots, names, data=alt.NamedData(name="rows"))


def _chart(systems: Sequence[str], panels: Mapping[str, str]) -> alt.FacetChart:
    """Lay out a panel per design."""
    import altair as alt

    columns = columns_for(len(panels))
    width = (WIDTH - SPACE * (columns - 1)) // columns
    layers: Any = _layers(systems).properties(width=width, height=alt.Step(STEP))
    plain = {key: [text, key] if key in PANELS else [text, ""] for key, text in panels.items()}
    header = alt.Header(
        labelExpr=f"({json.dumps(plain)})[datum.value] || datum.value",
        labelFontSize=12,
        labelFontWeight="bold",
        labelAnchor="start",
        labelPadding=6,
        labelLimit=width + SPACE // 2,
    )
    facet = alt.Facet("design:N", title=None, sort=list(panels), header=header)
    chart: alt.FacetChart = layers.facet(facet, columns=columns, spacing=SPACE).resolve_scale(
        x="independent"
    )
    return chart


def _tooltip() -> list[alt.Tooltip]:
    import altair as alt

    numbers = {"value": "score", "low": "interval from", "high": "interval to", "chance": "chance"}
    return [
        alt.Tooltip("system:N", title="system"),
        alt.Tooltip("design:N", title="design"),
        alt.Tooltip("place:Q", title="place"),
        *(alt.Tooltip(f"{name}:Q", title=word, format=".4f") for name, word in numbers.items()),
    ]


MOST_CHARTED_SYSTEMS = 25
"""More than these make no readable chart: the best ones under the common design are drawn."""


def _best(table: pl.DataFrame, systems: Sequence[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the systems that are drawn, and the rows of a table about them."""
    best = list(systems[:MOST_CHARTED_SYSTEMS])
    return best, table.filter(pl.col("system").is_in(best)).to_dicts()


def _base(**channels: Any) -> alt.Chart:
    """Return a chart of the rows of a figure."""
    import altair as alt

    return alt.Chart(alt.NamedData(name="rows")).encode(**channels)


def good_and_bad(table: pl.DataFrame, k: int, systems: Sequence[str]) -> Figure:
    """Draw liked over disliked recommendations, a point per system."""
    import altair as alt

    _, table_rows = _best(table, systems)
    rows = [{"system": row["system"], "P": row["P"], "antiP": row["anti-P"]} for row in table_rows]
    base = _base(
        x=alt.X("antiP:Q", title=f"anti-P@{k}: disliked"), y=alt.Y("P:Q", title=f"P@{k}: liked")
    )
    colours = system_colours(systems)
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    numbers = (alt.Tooltip(f"{name}:Q", format=".4f") for name in ("P", "antiP"))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=alt.Color("system:N", legend=None, scale=scale), tooltip=["system:N", *numbers]
    )
    names = base.mark_text(align="left", dx=8, fontSize=11).encode(text="system:N")
    chart = alt.layer(points, names).properties(width=460, height=300)
    note = "systems on one ray from the corner have the same share of liked among judged items"
    return as_figure(chart, "Liked and disliked recommendations", [note], rows)
