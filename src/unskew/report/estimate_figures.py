"""Figures of `Estimates`, by kind: a question declares which; nothing is drawn by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from unskew.errors import DataError
from unskew.report.charts import (
    BLUE,
    GREY,
    MOST_ROWS,
    VERMILION,
    Figure,
    as_figure,
    system_colours,
)
from unskew.report.columns import Answer, Column
from unskew.report.text import counted

if TYPE_CHECKING:
    import altair as alt

SURE = {True: "significant", False: "not significant"}
CHANGES = {False: "down", True: "up"}
EMPTY = "#E4E4E4"
MOST_LINES = 200
"""The most rows of a forest: the first ones; of more values curves have no points."""
NUMBERS = (
    *("value", "low", "high", "n", "significant", "p", "p_corrected"),
    *("letters", "true", "change", "after"),
)
"""Columns that figures draw; those of single kinds come last (`ranks`, `forest`, `waterfall`)."""
DRAWN = (
    *("value", "low", "high", "name", "verdict"),
    *("row", "column", "panel", "index", "letter"),
)
"""What figures hold of a row beside its keys."""
OPTIONAL = ("p", "true", "change")
"""What they hold where any row has it."""
DASHED: dict[str, Any] = {"strokeDash": [4, 3], "color": GREY}


@dataclass(frozen=True, eq=False)
class Canvas:
    """What is drawn: rows, the keys that tell them apart, title and lines.

    They are of one metric, unless metrics share a figure.
    """

    rows: Sequence[dict[str, Any]]
    keys: Sequence[str]
    """Those with several values, or the first one."""
    columns: Mapping[str, Column]
    """All columns, by name."""
    label: str
    """Of the values."""
    form: str
    """How values are written: `+` differences, `×` ratios."""
    digits: int
    better: str
    """`higher` or `lower` where that is known, else empty."""
    title: str
    notes: Sequence[str]

    @classmethod
    def of(cls, es: Answer, notes: Sequence[str]) -> Canvas:
        """Return the rows of an answer, a difference named as one."""
        question, columns = es.question, {c.name: c for c in es.question.columns}
        rows = list(_drawn_rows(es))
        if not rows:
            raise DataError(f"{question.name}: there is no value to draw")
        keys = [name for name in es.keys if not name.startswith("against")]
        metric = ""
        if not question.joins_metrics:
            keys = [name for name in keys if name != "metric"]
            metrics = domain(rows, "metric") if "metric" in es.keys else []
            metric = metrics[0] if len(metrics) == 1 else ""
        quantities = domain(rows, "quantity") if "quantity" in es.keys else []
        value = columns["value"]
        label = metric or (question.name if value.label == value.name else value.label)
        if len(quantities) == 1:
            label = ", ".join(filter(None, (metric, quantities[0])))
        elif quantities and not metric:
            label = ""  # the legend names them
        return cls(
            rows=rows,
            keys=[name for name in keys if len(domain(rows, name)) > 1] or keys[:1],
            columns=columns,
            label=label,
            form=es.form,
            digits=question.digits,
            better=es.card.get("better", {}).get(metric, ""),
            title=f"{metric}: {question.name}" if metric else question.name,
            notes=notes,
        )

    @property
    def has_intervals(self) -> bool:
        """Whether any value has an interval."""
        return any(row.get("low") is not None for row in self.rows)

    @property
    def is_change(self) -> bool:
        """Whether values are differences or ratios, or lie on both sides of 0."""
        if self.form in ("+", "+%", "×"):
            return True
        return any("pair" in row or (row["value"] or 0) < 0 for row in self.rows)

    def chart(self, **size: Any) -> alt.Chart:
        """Return an empty chart of the rows."""
        import altair as alt

        return alt.Chart(alt.NamedData(name="rows"), **size)

    def limits(self, axis: str) -> dict[str, Any]:
        """Return where intervals begin and end on an axis."""
        import altair as alt

        begin = {"x": alt.X, "y": alt.Y}[axis]("low:Q", title=self.label)
        return {axis: begin, f"{axis}2": "high:Q"}

    def colour(self, key: str) -> Any:
        """Return the colours of a key."""
        import altair as alt

        values = [str(value) for value in domain(self.rows, key)]
        title = None if key == "quantity" else self.columns[key].label
        colours = [*system_colours(values).values()]
        return alt.Color(f"{key}:N", title=title).scale(domain=values, range=colours)

    def figure(self, chart: alt.TopLevelMixin) -> Figure:
        """Return the chart in our look, with the values that it is drawn from."""
        used = {*self.keys, *DRAWN}
        used |= {x for x in OPTIONAL if any(row.get(x) is not None for row in self.rows)}
        rows = [{name: row[name] for name in row if name in used} for row in self.rows]
        return as_figure(chart, self.title, self.notes, rows)


def _drawn_rows(es: Answer) -> Iterator[dict[str, Any]]:
    """Yield the rows with a value, or with an interval alone, under the names that people read."""
    quantities = {quantity.name: quantity.label for quantity in es.question.quantities}
    first_of = {
        name: name.removeprefix("against").removeprefix("_") or "system"
        for name in es.keys
        if name.startswith("against")
    }
    sign = {"+": " − ", "+%": " − ", "×": " / "}.get(es.form, ", ")
    numbers = [name for name in NUMBERS if name in es.rows.columns]
    for row in es.rows.select(*es.keys, *numbers).iter_rows(named=True):
        for second, first in first_of.items():
            if row[second] is not None:
                row["pair"] = row[first], row[second]
                row[first] = sign.join(row["pair"])
        if "quantity" in row:
            row["quantity"] = quantities.get(row["quantity"], row["quantity"])
        if es.form == "×":  # a logarithmic scale has no 0
            if (row["value"] or 0) <= 0:
                continue
            if (row.get("low") or 0) <= 0:
                row |= {"low": None, "high": None}
        if row["value"] is not None or row.get("low") is not None:
            yield {"n": None, **row, "p": row.get("p_corrected", row.get("p"))}


def domain(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return the different values of a key, in the order of the rows."""
    return list(dict.fromkeys(row[name] for row in rows))


def forest(canvas: Canvas, *, bars: bool = False) -> Figure:
    """Draw a line per row: its value and its interval; significant ones stand out.

    A grey mark is the `true` value, where it is known. Of several keys the last two are rows and
    colours, and the values of the others have panels; where colours say what is significant, rows
    bear the names of all keys.
    """
    import altair as alt

    count = len(canvas.rows)
    if count > MOST_LINES:
        notes = [*canvas.notes, f"the first {MOST_LINES} of {count:,} values"]
        canvas = replace(canvas, rows=canvas.rows[:MOST_LINES], notes=notes)
    keys = list(canvas.keys)
    is_tested = any(row.get("significant") is not None for row in canvas.rows)
    if is_tested or len(keys) == 1:
        _name_rows(canvas, keys[:3])
        keys = ["name"]
    panel = None
    if len(keys) > 2:
        for row in canvas.rows if len(keys) > 3 else ():
            row["panel"] = ", ".join(str(row[key]) for key in keys[:-2])
        panel, keys = "panel" if len(keys) > 3 else keys[0], keys[-2:]
    y = alt.Y(f"{keys[0]}:N", title=None).scale(domain=domain(canvas.rows, keys[0]))
    encoded: dict[str, Any] = {"y": y.axis(labelPadding=8, labelLimit=300)}
    if is_tested:
        encoded["color"] = alt.Color("verdict:N").scale(domain=[*SURE.values()], range=[BLUE, GREY])
    elif len(keys) > 1:
        encoded["color"] = canvas.colour(keys[1])
        encoded["yOffset"] = alt.YOffset(f"{keys[1]}:N").scale(domain=domain(canvas.rows, keys[1]))
    percent: dict[str, Any] = {"format": ".0%"} if "%" in canvas.form else {}
    scale: Any = "log" if canvas.form == "×" else "linear"
    x = alt.X("value:Q", title=canvas.label).axis(tickCount=6, **percent).scale(type=scale)
    chart = alt.Chart()
    rules = chart.mark_rule(strokeWidth=2).encode(**canvas.limits("x"), **encoded)
    layers: list[alt.Chart] = [rules] if canvas.has_intervals else []
    if bars:
        layers.insert(0, chart.mark_bar(color=BLUE).encode(x=x, **encoded))
    else:
        layers.append(chart.mark_point(filled=True, size=60, opacity=1).encode(x=x, **encoded))
        if canvas.is_change:
            unchanged = alt.datum(1.0 if canvas.form == "×" else 0.0)
            layers.insert(0, chart.mark_rule(**DASHED).encode(x=unchanged))
    if any(row.get("true") is not None for row in canvas.rows):
        truth = chart.mark_tick(color=GREY, thickness=3)
        layers.append(truth.encode(x=alt.X("true:Q"), y=encoded["y"]))
        canvas = replace(canvas, notes=[*canvas.notes, "grey: the true value"])
    whole = alt.layer(*layers, data=alt.NamedData(name="rows"))
    whole = whole.properties(width=420, height=alt.Step(24))
    if panel is None:
        return canvas.figure(whole)
    order = domain(canvas.rows, panel)
    return canvas.figure(whole.facet(row=alt.Row(f"{panel}:N", title=None, sort=order)))


def _name_rows(canvas: Canvas, keys: Sequence[str]) -> None:
    """Give each row its name, the number of users where it differs, and its verdict."""
    differ = len(domain(canvas.rows, "n")) > 1
    for row in canvas.rows:
        users = f" ({counted(row['n'], 'user')})" if differ and row["n"] is not None else ""
        row["name"] = ", ".join(str(row[key]) for key in keys) + users
        if row.get("significant") is not None:
            row["verdict"] = SURE[row["significant"]]


def ranks(canvas: Canvas) -> Figure:
    """Draw values with intervals in their order; squares below a letter join what does not differ.

    Names with one of their `letters` in common do not differ significantly.
    """
    import altair as alt

    name = canvas.keys[0]
    order = domain(canvas.rows, name)
    letters = {row[name]: re.findall(r"[^\W\d]\d*", row["letters"]) for row in canvas.rows}
    rows = [*canvas.rows]
    rows += [{name: key, "letter": letter, "p": None} for key in order for letter in letters[key]]
    y = alt.Y(f"{name}:N", title=None).scale(domain=order)
    chart = canvas.chart(height=alt.Step(24))
    values = chart.transform_filter("isValid(datum.value)").properties(width=420)
    x = alt.X("value:Q", title=canvas.label).scale(zero=False)
    lines = values.mark_rule(strokeWidth=2, color=BLUE)
    lines = lines.encode(**canvas.limits("x"), y=y.axis(labelPadding=8))
    points = values.mark_point(filled=True, size=60, opacity=1, color=BLUE).encode(x=x, y=y)
    panels: list[Any] = [alt.layer(lines, points)]
    if len(rows) > len(canvas.rows):
        squares = chart.transform_filter("isValid(datum.letter)").properties(width=alt.Step(18))
        joined = alt.X("letter:N", title="no difference").axis(labelAngle=0)
        panels.append(squares.mark_rect(color=VERMILION).encode(x=joined, y=y.axis(None)))
    return replace(canvas, rows=rows).figure(alt.hconcat(*panels, spacing=12))


def stacked(canvas: Canvas) -> Figure:
    """Draw a bar per name, cut into parts that add up, such as shares; the first is the darkest."""
    import altair as alt

    *names, part = canvas.keys
    parts = domain(canvas.rows, part)
    for row in canvas.rows:
        row["index"] = parts.index(row[part])
    y: dict[str, Any] = {}
    if names:
        y["y"] = alt.Y(f"{names[0]}:N", title=None).sort(domain(canvas.rows, names[0]))
    shades = alt.Color(f"{part}:N", title=canvas.columns[part].label)
    bars = canvas.chart(width=520).mark_bar(stroke="white", strokeWidth=1)
    return canvas.figure(
        bars.encode(
            x=alt.X("value:Q", title=canvas.label).stack("zero"),
            color=shades.scale(domain=parts, scheme="blues", reverse=True),
            order=alt.Order("index:Q"),
            **y,
        )
    )


def points(canvas: Canvas) -> Figure:
    """Draw values with intervals over names in order (windows, groups); a colour per system."""
    import altair as alt

    over = next((name for name in canvas.keys if name != "system"), canvas.keys[0])
    key = next((name for name in canvas.keys if name != over), None)
    order = [str(value) for value in domain(canvas.rows, over)]
    title = None if over == "quantity" else canvas.columns[over].label
    x = alt.X(f"{over}:N", title=title).scale(domain=order)
    encoded: dict[str, Any] = {"x": x.axis(labelAngle=-30, labelOverlap=True)}
    if key is not None:
        # Beside each other, or the bars of systems would hide each other.
        encoded["xOffset"] = alt.XOffset(f"{key}:N").scale(domain=domain(canvas.rows, key))
        encoded["color"] = canvas.colour(key)
    y = alt.Y("value:Q", title=canvas.label).scale(zero=False)
    chart = canvas.chart(width=max(320, min(640, 60 * len(order))))
    lines = chart.mark_line(strokeWidth=1.5, opacity=0.7).encode(y=y, **encoded)
    marks = chart.mark_point(filled=True, size=45, opacity=1).encode(y=y, **encoded)
    bars = chart.mark_rule(strokeWidth=1.5).encode(**canvas.limits("y"), **encoded)
    layers = [bars, lines, marks] if canvas.has_intervals else [lines, marks]
    if any("pair" in row for row in canvas.rows):
        layers.insert(0, chart.mark_rule(**DASHED).encode(y=alt.datum(0.0)))
    return canvas.figure(alt.layer(*layers))


def curves(canvas: Canvas, *, steps: bool = False, is_log: bool = False) -> Figure:
    """Draw values, with bands, over the key that is a number; a line per value of the last key.

    Rows without that number are dashed lines. With further keys there are panels; such a row is
    drawn in all that differ from its own by the last of these keys alone.
    """
    import altair as alt

    axis = next(column for column in canvas.columns.values() if column.kind == "axis")
    over, others = axis.name, [name for name in canvas.keys if name != axis.name]
    panels = others[:-1]
    canvas = replace(canvas, rows=_thinned(canvas.rows, others))
    scale: Any = "log" if is_log or axis.form == "log" else "linear"
    x = alt.X(f"{over}:Q", title=axis.label).scale(type=scale, zero=False, nice=scale == "linear")
    encoded: dict[str, Any] = {"x": x.axis(format="%") if axis.form == "%" else x}
    colour: dict[str, Any] = {"color": canvas.colour(others[-1])} if others else {}
    shape: Any = {"interpolate": "step-after"} if steps else {}
    y = alt.Y("value:Q", title=canvas.label).scale(zero=False)
    chart = canvas.chart(width=260 if panels else 520, height=220 if panels else 280)
    on_axis = chart.transform_filter(f"isValid(datum['{over}'])")
    layers: list[alt.LayerChart | alt.Chart] = []
    if canvas.has_intervals:
        bands = on_axis.mark_area(opacity=0.15, **shape)
        layers.append(bands.encode(**canvas.limits("y"), **encoded, **colour))
    if any(row["value"] is not None for row in canvas.rows):
        has_points = not steps and len(canvas.rows) <= MOST_LINES
        lines = on_axis.mark_line(strokeWidth=2, point=has_points, **shape)
        layers.append(lines.encode(y=y, **encoded, **colour))
    if any(row[over] is None for row in canvas.rows):
        elsewhere = chart.transform_filter(f"!isValid(datum['{over}'])")
        layers.append(elsewhere.mark_rule(strokeDash=[5, 4]).encode(y=y, **colour))
    if any("pair" in row for row in canvas.rows):
        layers.insert(0, chart.mark_rule(**DASHED).encode(y=alt.datum(0.0)))
    if not panels:
        return canvas.figure(alt.layer(*layers))
    rows = list(_in_panels(canvas.rows, panels, over))
    title = alt.Facet("panel:N", title=None, sort=domain(rows, "panel"))
    return replace(canvas, rows=rows).figure(alt.layer(*layers).facet(facet=title, columns=2))


def _in_panels(
    rows: Sequence[dict[str, Any]], panels: Sequence[str], over: str
) -> Iterator[dict[str, Any]]:
    """Give each row with its panel, those without a number on the axis in several."""
    values = [tuple(str(row[name]) for name in panels) for row in rows]
    on_axis = dict.fromkeys(v for v, row in zip(values, rows, strict=True) if row[over] is not None)
    for value, row in zip(values, rows, strict=True):
        near = [v for v in on_axis if v[:-1] == value[:-1]] if row[over] is None else []
        yield from ({**row, "panel": ", ".join(panel)} for panel in near or [value])


def _thinned(rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows of which a figure holds all: of long lines points at equal distances."""
    if len(rows) <= MOST_ROWS:
        return list(rows)
    by_line: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        by_line.setdefault(tuple(row[key] for key in keys), []).append(row)
    limit = max(MOST_ROWS // len(by_line), 2)
    return [
        line[round(number * (len(line) - 1) / (count - 1))] if count > 1 else line[0]
        for line in by_line.values()
        for count in [min(len(line), limit)]
        for number in range(count)
    ]


def matrix(canvas: Canvas) -> Figure:
    """Draw a square per two values of a key: who is better, or how large what is between them."""
    import altair as alt

    if canvas.form not in ("+", "+%"):
        return _shades(canvas)
    is_known = canvas.better in ("higher", "lower")
    words = ("row better", "row worse") if is_known else ("row higher", "row lower")
    rows = []
    for row in canvas.rows:
        for (here, there), sign in ((row["pair"], 1), (row["pair"][::-1], -1)):
            value = sign * row["value"]
            word = words[(value > 0) == (canvas.better == "lower")]
            verdict = word if row["significant"] else SURE[False]
            rows.append({**row, "row": here, "column": there, "value": value, "verdict": verdict})
    verdicts = {words[0]: BLUE, words[1]: VERMILION, SURE[False]: EMPTY}
    color = alt.Color("verdict:N").scale(domain=[*verdicts], range=[*verdicts.values()])
    shade = alt.condition(
        f"datum.verdict === '{SURE[False]}'", alt.value("#333333"), alt.value("white")
    )
    return _squares(replace(canvas, rows=rows), color, shade, "+.3f")


def _shades(canvas: Canvas) -> Figure:
    """Draw values that are the same both ways round, larger ones darker."""
    import altair as alt

    rows = [
        {**row, "row": here, "column": there}
        for row in canvas.rows
        for here, there in (row["pair"], row["pair"][::-1])
    ]
    values = [row["value"] for row in rows]
    lowest, highest = min(values), max(values)
    scale = alt.Scale(domain=[lowest, highest], scheme="blues")
    color = alt.Color("value:Q", scale=scale, legend=None)
    middle = (lowest + highest) / 2
    shade = alt.condition(f"datum.value > {middle}", alt.value("white"), alt.value("#333333"))
    return _squares(replace(canvas, rows=rows), color, shade, f".{canvas.digits}f")


def _squares(canvas: Canvas, color: Any, shade: Any, form: str) -> Figure:
    """Draw coloured squares with their values."""
    import altair as alt

    order = domain(canvas.rows, "row")
    chart = canvas.chart(width=alt.Step(44), height=alt.Step(24))
    bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None}
    cells = chart.encode(
        x=alt.X("column:N").scale(domain=order).axis(orient="top", labelAngle=-45, **bare),
        y=alt.Y("row:N").scale(domain=order).axis(labelPadding=8, **bare),
    )
    squares = cells.mark_rect(stroke="white", strokeWidth=2).encode(color=color)
    texts = cells.mark_text(fontSize=10).encode(text=alt.Text("value:Q", format=form), color=shade)
    return replace(canvas, keys=()).figure(alt.layer(squares, texts))


def scatter(canvas: Canvas) -> Figure:
    """Draw the first of two quantities over the second one; dashed: both are the same."""
    import altair as alt

    of_y, of_x = domain(canvas.rows, "quantity")
    keys = [name for name in canvas.keys if name != "quantity"]
    points: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in canvas.rows:
        point = points.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
        point["y" if row["quantity"] == of_y else "x"] = row["value"]
    rows = [point for point in points.values() if "x" in point and "y" in point]
    encoded: dict[str, Any] = {
        "tooltip": [f"{name}:{'Q' if name in 'xy' else 'N'}" for name in rows[0]]
    }
    for key, channel in zip(keys, ("color", "shape"), strict=False):
        encoded[channel] = f"{key}:N"
    top = max([0.0, *(row[end] for row in rows for end in "xy")])
    corners = {"x": alt.datum(0), "y": alt.datum(0), "x2": alt.datum(top), "y2": alt.datum(top)}
    chart = canvas.chart(width=360, height=360)
    x_title, y_title = (", ".join(filter(None, (canvas.label, name))) for name in (of_x, of_y))
    marks = chart.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("x:Q", title=x_title), y=alt.Y("y:Q", title=y_title), **encoded
    )
    diagonal = chart.mark_rule(**DASHED).encode(**corners)
    return as_figure(alt.layer(diagonal, marks), canvas.title, canvas.notes, rows)


def waterfall(canvas: Canvas) -> Figure:
    """Draw how a number becomes another: a bar per `change`, from the value before to its own.

    Rows without a change are the numbers themselves; `after` is what a step changes to.
    """
    import altair as alt

    name, before = canvas.keys[0], 0.0
    for row in canvas.rows:
        start = 0.0 if row["change"] is None else before
        before = row["value"]
        row |= {"low": min(start, before), "high": max(start, before)}
        row["verdict"] = "number" if row["change"] is None else CHANGES[row["change"] > 0]
        row[name] = ": ".join(filter(None, (row[name], row.get("after"))))
    kinds = ["number", *CHANGES.values()]
    bars = canvas.chart(width=420, height=alt.Step(26)).mark_bar()
    return canvas.figure(
        bars.encode(
            y=alt.Y(f"{name}:N", sort=domain(canvas.rows, name), title=None),
            x=alt.X("low:Q", title=canvas.label),
            x2="high:Q",
            color=alt.Color("verdict:N").scale(domain=kinds, range=[GREY, VERMILION, BLUE]),
            tooltip=[f"{name}:N", alt.Tooltip("change:Q", format="+.6f")],
        )
    )


KINDS: Mapping[str, Callable[[Canvas], Figure]] = {
    "forest": forest,
    "bars": partial(forest, bars=True),
    "points": points,
    "lines": curves,
    "log lines": partial(curves, is_log=True),
    "steps": partial(curves, steps=True),
    "matrix": matrix,
    "ranks": ranks,
    "stacked": stacked,
    "scatter": scatter,
    "waterfall": waterfall,
}
"""How an answer is drawn: the kinds of `Drawing`."""
