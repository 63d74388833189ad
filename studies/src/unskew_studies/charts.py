"""`Chart`: a tidy table and its columns, drawn as lines, bars, points or a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.report.charts import PALETTE, Figure, as_figure

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 260, 220


@dataclass(frozen=True)
class Chart:
    """A table, its columns and titles; each method draws it as a figure."""

    frame: pl.DataFrame
    x: str
    """The column across: numbers, or the names of bars."""
    y: str
    """The column of values; of a matrix, its rows."""
    _: KW_ONLY
    title: str
    by: str | None = None
    """The column that tells lines, bars or points apart, in the order in which they appear."""
    panel: str | None = None
    """The column of which each value has a panel."""
    low: str | None = None
    high: str | None = None
    """Columns of an interval, drawn as whiskers."""
    label: str | None = None
    """The column of texts beside points."""
    line: float | None = None
    """A value across all bars, such as that of chance."""
    across: str = ""
    up: str = ""
    """Titles of the axes; the names of the columns where they are empty."""
    log_x: bool = False
    log_y: bool = False
    zero: bool = True
    """Whether the axis of y has to show 0."""
    notes: Sequence[str] = ()
    """Lines below the title."""
    columns: int = 3
    """Panels side by side."""

    def lines(self) -> Figure:
        """Draw lines with points."""
        import altair as alt

        base = self._coloured(alt.Chart().encode(x=self._across(zero=False)))
        marks = base.mark_line(point=True, strokeWidth=1.5).encode(
            y=self._up(), tooltip=self._tips(self.panel, self.by, self.x)
        )
        return self._figure([marks, *self._whiskers(base, opacity=0.5)])

    def bars(self) -> Figure:
        """Draw a bar for each name in `x`, side by side where `by` tells several apart."""
        import altair as alt

        axis = alt.X(f"{self.x}:N", title=None, sort=self._order(self.x)).axis(labelAngle=-40)
        base = alt.Chart().encode(x=axis)
        if self.by is not None:
            base = base.encode(xOffset=alt.XOffset(f"{self.by}:N", sort=self._order(self.by)))
        base = self._coloured(base)
        marks = base.mark_bar().encode(
            y=self._up(), tooltip=self._tips(self.panel, self.x, self.by)
        )
        layers = [marks, *self._whiskers(base, color="#333333")]
        if self.line is not None:
            layers.append(alt.Chart().mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(self.line)))
        return self._figure(layers)

    def points(self) -> Figure:
        """Draw points, with a label beside each where a column gives one."""
        import altair as alt

        base = self._coloured(alt.Chart().encode(x=self._across(zero=self.zero), y=self._up()))
        size = 60 if self.frame.height <= 200 else 12
        marks = base.mark_point(filled=True, size=size, opacity=0.8).encode(
            tooltip=self._tips(self.panel, self.label, self.by, self.x)
        )
        layers = [marks]
        if self.label is not None:
            text = base.mark_text(align="left", dx=6, fontSize=10)
            layers.append(text.encode(text=f"{self.label}:N"))
        return self._figure(layers, apart=("x", "y"))

    def matrix(
        self, value: str, *, digits: int = 2, domain: tuple[float, float] = (0.0, 1.0)
    ) -> Figure:
        """Draw a cell for each row of the table, whose shade follows its number.

        Parameters
        ----------
        value
            The column of the numbers.
        digits
            Decimals of the numbers.
        domain
            The numbers that have the lightest and the darkest shade.
        """
        import altair as alt

        bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None}
        across, down = self._order(self.x), self._order(self.y)
        base = alt.Chart().encode(
            x=alt.X(f"{self.x}:N", sort=across).axis(orient="top", labelAngle=-40, **bare),
            y=alt.Y(f"{self.y}:N", sort=down).axis(**bare),
        )
        scale = alt.Scale(domain=list(domain), scheme="blues", clamp=True)
        squares = base.mark_rect(stroke="white").encode(
            color=alt.Color(f"{value}:Q", scale=scale, legend=None),
            tooltip=self._tips(self.panel, self.y, self.x, value),
        )
        dark = f"datum['{value}'] > {(domain[0] + domain[1]) / 2}"
        numbers = base.mark_text(fontSize=11).encode(
            text=alt.Text(f"{value}:Q", format=f".{digits}f"),
            color=alt.condition(dark, alt.value("white"), alt.value("#333333")),
        )
        return self._figure([squares, numbers], width=alt.Step(46), height=alt.Step(24))

    def _order(self, column: str) -> list[Any]:
        return self.frame[column].unique(maintain_order=True).to_list()

    def _across(self, *, zero: bool) -> Any:
        import altair as alt

        axis = alt.X(f"{self.x}:Q", title=self.across or self.x)
        return axis.scale(type="log") if self.log_x else axis.scale(zero=zero)

    def _up(self) -> Any:
        import altair as alt

        axis = alt.Y(f"{self.y}:Q", title=self.up or self.y)
        return axis.scale(type="log") if self.log_y else axis.scale(zero=self.zero)

    def _coloured(self, chart: alt.Chart) -> alt.Chart:
        import altair as alt

        if self.by is None:
            return chart.encode(color=alt.value(PALETTE[0]))
        groups = self._order(self.by)
        scale = alt.Scale(domain=groups)
        if len(groups) > len(PALETTE):
            scale = alt.Scale(domain=groups, scheme="tableau20")
        color = alt.Color(f"{self.by}:N", sort=groups, title=None, scale=scale)
        return chart.encode(color=color.legend(columns=7))

    def _whiskers(self, base: alt.Chart, **style: Any) -> list[alt.Chart]:
        if self.low is None or self.high is None:
            return []
        return [base.mark_rule(**style).encode(y=f"{self.low}:Q", y2=f"{self.high}:Q")]

    def _tips(self, *names: str | None) -> list[alt.Tooltip]:
        import altair as alt

        shown = dict.fromkeys((*names, self.y, self.low, self.high))
        return [
            alt.Tooltip(f"{name}:Q", format=".4~g")
            if self.frame[name].dtype.is_numeric()
            else alt.Tooltip(f"{name}:N")
            for name in shown
            if name is not None
        ]

    def _figure(
        self, layers: Sequence[alt.Chart], apart: Sequence[str] = ("y",), **size: Any
    ) -> Figure:
        import altair as alt

        chart = alt.layer(*layers, data=alt.NamedData(name="rows"))
        size = size or {"width": WIDTH if self.panel else 2 * WIDTH, "height": HEIGHT}
        chart = chart.properties(**size)
        whole: alt.TopLevelMixin = chart
        if self.panel is not None:
            facet = alt.Facet(f"{self.panel}:N", title=None, sort=self._order(self.panel))
            scales: dict[str, Any] = dict.fromkeys(apart, "independent")  # axes of their own
            panels = chart.facet(facet.header(labelFontSize=13), columns=self.columns)
            whole = panels.resolve_scale(**scales)
        return as_figure(whole, self.title, self.notes, self.frame.fill_nan(None).to_dicts())
