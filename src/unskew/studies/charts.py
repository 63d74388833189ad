"""Figures that studies share: a tidy table in, a chart out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.report.charts import PALETTE, Figure, as_figure

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 260, 220


def lines(
    frame: pl.DataFrame,
    x: str,
    y: str,
    *,
    title: str,
    by: str | None = None,
    panel: str | None = None,
    low: str | None = None,
    high: str | None = None,
    across: str = "",
    up: str = "",
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = True,
    notes: Sequence[str] = (),
    columns: int = 3,
) -> Figure:
    """Draw lines with points.

    Parameters
    ----------
    frame, x, y
        The table, and its columns.
    title
        What the figure shows.
    by
        The column that tells lines apart, in the order in which they appear.
    panel
        The column of which each value has a chart of its own.
    low, high
        Columns of an interval, drawn as whiskers.
    across, up
        Titles of the axes.
    log_x, log_y
        Logarithmic axes.
    zero
        Whether the axis of y has to show 0.
    notes
        Lines below the title.
    columns
        Panels side by side.
    """
    import altair as alt

    base = alt.Chart().encode(x=_axis(alt.X, x, across, log_x, zero=False))
    base = _coloured(base, frame, by)
    marks = base.mark_line(point=True, strokeWidth=1.5).encode(
        y=_axis(alt.Y, y, up, log_y, zero=zero),
        tooltip=_tips(frame, [panel, by, x, y, low, high]),
    )
    layers = [marks]
    if low is not None and high is not None:
        layers.append(base.mark_rule(opacity=0.5).encode(y=f"{low}:Q", y2=f"{high}:Q"))
    return _finished(layers, frame, panel, title, notes, columns)


def bars(
    frame: pl.DataFrame,
    system: str,
    value: str,
    *,
    title: str,
    by: str | None = None,
    panel: str | None = None,
    low: str | None = None,
    high: str | None = None,
    line: float | None = None,
    up: str = "",
    notes: Sequence[str] = (),
    columns: int = 3,
) -> Figure:
    """Draw a bar for each system, side by side where `by` tells several apart.

    Parameters
    ----------
    frame, system, value
        The table, and its columns.
    title, by, panel, low, high, notes, columns
        As for `lines`.
    line
        A value across all bars, such as what chance scores.
    up
        The title of the value's axis.
    """
    import altair as alt

    order = frame[system].unique(maintain_order=True).to_list()
    base = alt.Chart().encode(x=alt.X(f"{system}:N", title=None, sort=order).axis(labelAngle=-40))
    if by is not None:
        groups = frame[by].unique(maintain_order=True).to_list()
        base = base.encode(xOffset=alt.XOffset(f"{by}:N", sort=groups))
    base = _coloured(base, frame, by)
    marks = base.mark_bar().encode(
        y=_axis(alt.Y, value, up, False, zero=True),
        tooltip=_tips(frame, [panel, system, by, value, low, high]),
    )
    layers = [marks]
    if low is not None and high is not None:
        layers.append(base.mark_rule(color="#333333").encode(y=f"{low}:Q", y2=f"{high}:Q"))
    if line is not None:
        layers.append(alt.Chart().mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(line)))
    return _finished(layers, frame, panel, title, notes, columns)


def scatter(
    frame: pl.DataFrame,
    x: str,
    y: str,
    *,
    title: str,
    by: str | None = None,
    label: str | None = None,
    panel: str | None = None,
    across: str = "",
    up: str = "",
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = False,
    notes: Sequence[str] = (),
    columns: int = 3,
) -> Figure:
    """Draw points, with a label beside each where a column gives one.

    Parameters
    ----------
    frame, x, y
        The table, and its columns.
    label
        The column of the labels.
    title, by, panel, across, up, log_x, log_y, zero, notes, columns
        As for `lines`.
    """
    import altair as alt

    base = alt.Chart().encode(
        x=_axis(alt.X, x, across, log_x, zero=zero), y=_axis(alt.Y, y, up, log_y, zero=zero)
    )
    base = _coloured(base, frame, by)
    size = 60 if frame.height <= 200 else 12
    marks = base.mark_point(filled=True, size=size, opacity=0.8).encode(
        tooltip=_tips(frame, [panel, label, by, x, y])
    )
    layers = [marks]
    if label is not None:
        text = base.mark_text(align="left", dx=6, fontSize=10).encode(text=f"{label}:N")
        layers.append(text)
    return _finished(layers, frame, panel, title, notes, columns, apart=("x", "y"))


def matrix(
    frame: pl.DataFrame,
    row: str,
    column: str,
    value: str,
    *,
    title: str,
    panel: str | None = None,
    digits: int = 2,
    domain: tuple[float, float] = (0.0, 1.0),
    notes: Sequence[str] = (),
    columns: int = 3,
) -> Figure:
    """Draw a table of numbers as cells whose shade follows the number.

    Parameters
    ----------
    frame, row, column, value
        The table (a row per cell), and its columns.
    title, panel, notes, columns
        As for `lines`.
    digits
        Decimals of the numbers.
    domain
        The numbers that have the lightest and the darkest shade.
    """
    import altair as alt

    bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None}
    across = frame[column].unique(maintain_order=True).to_list()
    down = frame[row].unique(maintain_order=True).to_list()
    base = alt.Chart().encode(
        x=alt.X(f"{column}:N", sort=across).axis(orient="top", labelAngle=-40, **bare),
        y=alt.Y(f"{row}:N", sort=down).axis(**bare),
    )
    middle = (domain[0] + domain[1]) / 2
    scale = alt.Scale(domain=list(domain), scheme="blues", clamp=True)
    squares = base.mark_rect(stroke="white").encode(
        color=alt.Color(f"{value}:Q", scale=scale, legend=None),
        tooltip=_tips(frame, [panel, row, column, value]),
    )
    shade = alt.condition(f"datum['{value}'] > {middle}", alt.value("white"), alt.value("#333333"))
    numbers = base.mark_text(fontSize=11).encode(
        text=alt.Text(f"{value}:Q", format=f".{digits}f"), color=shade
    )
    layers = [squares, numbers]
    size: dict[str, Any] = {"width": alt.Step(46), "height": alt.Step(24)}
    return _finished(layers, frame, panel, title, notes, columns, size)


def _axis(channel: type[Any], column: str, title: str, log: bool, zero: bool) -> Any:
    axis = channel(f"{column}:Q", title=title or column)
    return axis.scale(type="log") if log else axis.scale(zero=zero)


def _coloured(chart: alt.Chart, frame: pl.DataFrame, by: str | None) -> alt.Chart:
    import altair as alt

    if by is None:
        return chart.encode(color=alt.value(PALETTE[0]))
    groups = frame[by].unique(maintain_order=True).to_list()
    scale = alt.Scale(domain=groups)
    if len(groups) > len(PALETTE):
        scale = alt.Scale(domain=groups, scheme="tableau20")
    color = alt.Color(f"{by}:N", sort=groups, title=None, scale=scale).legend(columns=7)
    return chart.encode(color=color)


def _tips(frame: pl.DataFrame, names: Sequence[str | None]) -> list[alt.Tooltip]:
    import altair as alt

    return [
        alt.Tooltip(f"{name}:Q", format=".4~g")
        if frame[name].dtype.is_numeric()
        else alt.Tooltip(f"{name}:N")
        for name in dict.fromkeys(names)
        if name is not None
    ]


def _finished(
    layers: Sequence[alt.Chart],
    frame: pl.DataFrame,
    panel: str | None,
    title: str,
    notes: Sequence[str],
    columns: int,
    size: dict[str, Any] | None = None,
    apart: Sequence[str] = ("y",),
) -> Figure:
    import altair as alt

    chart = alt.layer(*layers, data=alt.NamedData(name="rows"))
    size = size or {"width": WIDTH if panel else 2 * WIDTH, "height": HEIGHT}
    chart = chart.properties(**size)
    whole: alt.TopLevelMixin = chart
    if panel is not None:
        panels = frame[panel].unique(maintain_order=True).to_list()
        facet = alt.Facet(f"{panel}:N", title=None, sort=panels).header(labelFontSize=13)
        scales: dict[str, Any] = dict.fromkeys(apart, "independent")  # panels have their own axes
        whole = chart.facet(facet, columns=columns).resolve_scale(**scales)
    return as_figure(whole, title, notes, frame.fill_nan(None).to_dicts())
