"""The figures of `Estimates`: `forest`, `bars` and `lines`; a question declares which it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unskew.report.charts import Figure, as_figure, system_colours
from unskew.report.columns import KEYS, Question

if TYPE_CHECKING:
    import altair as alt
    import polars as pl


def forest(question: Question, table: pl.DataFrame, notes: Sequence[str]) -> Figure:
    """Draw a row of the figure per row of the answer: its value and its interval."""
    import altair as alt

    canvas, rows, label, names = _canvas(question, table)
    y = alt.Y(f"{names[0]}:N", title=None).scale(domain=_domain(rows, names[0]))
    encodings = {"y": y, **_colours(rows, names)}
    if len(names) > 1:
        encodings["yOffset"] = alt.YOffset(f"{names[1]}:N").scale(domain=_domain(rows, names[1]))
    canvas = canvas.properties(width=420, height=alt.Step(24))
    lines = canvas.mark_rule(strokeWidth=4, opacity=0.5).encode(
        x=alt.X("low:Q", title=label), x2="high:Q", **encodings
    )
    points = canvas.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("value:Q", title=label), **encodings
    )
    return _figure(question, notes, alt.layer(lines, points), label, rows)


def bars(question: Question, table: pl.DataFrame, notes: Sequence[str]) -> Figure:
    """Draw a bar per row, with its interval: for counts and shares, which begin at 0."""
    import altair as alt

    canvas, rows, label, names = _canvas(question, table)
    y = alt.Y(f"{names[0]}:N", title=None).scale(domain=_domain(rows, names[0]))
    canvas = canvas.properties(width=420, height=alt.Step(24))
    filled = canvas.mark_bar().encode(x=alt.X("value:Q", title=label), y=y, **_colours(rows, names))
    lines = canvas.mark_rule().encode(x=alt.X("low:Q", title=label), x2="high:Q", y=y)
    return _figure(question, notes, alt.layer(filled, lines), label, rows)


def lines(question: Question, table: pl.DataFrame, notes: Sequence[str]) -> Figure:
    """Draw values, with intervals, over the key that is an axis; a line per value of the first."""
    import altair as alt

    canvas, rows, label, names = _canvas(question, table)
    axes = [column.name for column in question.columns if column.kind == "axis"]
    x = alt.X(f"{axes[0]}:Q")
    colours = _colours(rows, [name for name in names if name not in axes], first=True)
    y = alt.Y("value:Q", title=label).scale(zero=False)
    canvas = canvas.properties(width=520, height=260)
    bands = canvas.mark_area(opacity=0.2).encode(
        x=x, y=alt.Y("low:Q", title=label), y2="high:Q", **colours
    )
    curves = canvas.mark_line(point=True).encode(x=x, y=y, **colours)
    return _figure(question, notes, alt.layer(bands, curves), label, rows)


KINDS: Mapping[str, Callable[[Question, pl.DataFrame, Sequence[str]], Figure]] = {
    "forest": forest,
    "bars": bars,
    "lines": lines,
}


def _canvas(
    question: Question, table: pl.DataFrame
) -> tuple[alt.Chart, list[dict[str, Any]], str, list[str]]:
    """Return an empty chart, its rows, the title of their values, and the keys that differ."""
    import altair as alt

    keys = [column.name for column in question.columns if column.kind in KEYS]
    rows = []
    for row in table.iter_rows(named=True):
        drawn = {name: row.get(name) for name in (*keys, "value", "low", "high")}
        if row.get("against") is not None:
            drawn["system"] = f"{row['system']} − {drawn.pop('against')}"
        rows.append(drawn)
    names = [name for name in keys if name not in ("metric", "against")]
    differing = [name for name in names if len(_domain(rows, name)) > 1] or names[:1]
    metrics = _domain(rows, "metric") if "metric" in keys else []
    label = metrics[0] if len(metrics) == 1 else question.name
    for row in rows:
        row.pop("metric", None)
    return alt.Chart(alt.NamedData(name="rows")), rows, label, differing


def _domain(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))


def _colours(
    rows: list[dict[str, Any]], names: list[str], *, first: bool = False
) -> dict[str, Any]:
    """Return the colours of a key: of the second one, as the first has a place of its own."""
    import altair as alt

    chosen = names[:1] if first else names[1:2]
    if not chosen:
        return {}
    domain = _domain(rows, chosen[0])
    colours = list(system_colours([str(value) for value in domain]).values())
    return {"color": alt.Color(f"{chosen[0]}:N").scale(domain=domain, range=colours)}


def _figure(
    question: Question,
    notes: Sequence[str],
    chart: alt.TopLevelMixin,
    label: str,
    rows: list[dict[str, Any]],
) -> Figure:
    title = question.name if label == question.name else f"{label}: {question.name}"
    return as_figure(chart, title, notes, rows)
