"""`UserDistribution`: quantile curves of systems, and who gains and who loses between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from unskew.checks import choose
from unskew.report.charts import Figure, as_figure, system_colours
from unskew.report.tables import Table
from unskew.report.text import counted, interval, number, p_value
from unskew.stats.metric_result import MetricResult


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
    color = alt.Color("system:N").scale(
        domain=systems, range=[colours[system] for system in systems]
    )
    chart = alt.Chart(alt.NamedData(name="rows"), width=480, height=300)
    x = alt.X("share:Q", title="share of users").scale(domain=[0, 1]).axis(format="%")
    band = chart.mark_area(opacity=0.15, interpolate="step-after").encode(
        x=x, y=alt.Y("low:Q", title=label), y2="high:Q", color=color
    )
    line = chart.mark_line(strokeWidth=2, interpolate="step-after").encode(
        x=x, y=alt.Y("value:Q", title=label), color=color
    )
    title = f"{label}: the value that a share of users does not exceed"
    return as_figure(alt.layer(band, line), title, notes, points)


FIGURES = ("quantiles",)
SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9)
"""The points of the curves that are printed."""


@dataclass(frozen=True, eq=False)
class UserDistribution(MetricResult):
    """How the values of users are spread, system by system. Made by `user_distribution`."""

    kind: ClassVar[str] = "this distribution"

    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    means: pl.DataFrame = field(repr=False)
    """See `summary`."""
    compared: pl.DataFrame = field(repr=False)
    """See `pairs`."""
    confidence: float
    sentences: tuple[str, ...] = ()
    """What the means do not say, where it is significant."""
    notes: tuple[str, ...] = ()

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return the quantile curves: a row per metric, system and `share` of users.

        `value` is what this share of users does not exceed; `low` and `high` are the band, which
        holds at all points of a curve together. Null: the data give no end.
        """
        return self._of(self.rows, metric)

    def summary(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and system: `mean`, interval `low`, `high`.

        `at_lowest`: the share of users at the lowest value of all (`lowest_value`), with interval.
        """
        return self._of(self.means, metric)

    def pairs(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and pair of systems.

        Shares of users `better`, `worse` and `tied` with a instead of b, and `net`, better less
        worse, each with its interval; `sign_p`; `gain`, the mean advantage of a (positive is
        better) with its interval; `first_p`, `second_p` of dominance of one over the other,
        corrected for the number of pairs; `dominance`, who dominates and to which order.
        """
        return self._of(self.compared, metric)

    # Text

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return, of each metric, curves and pairs."""
        digits = self.digits if digits is None else digits
        tables = []
        for label in self.metrics:
            tables.append(self._display_curves(label, digits))
            if self.pairs(label).height:
                tables.append(self._display_pairs(label, digits))
        return tables

    def _display_curves(self, label: str, digits: int) -> Table:
        header = ["system", "mean", "at the lowest value"]
        header += [f"{100 * share:g} % of users up to" for share in SHOWN]
        rows = []
        for row in self.summary(label).iter_rows(named=True):
            mine = self.table(label).filter(pl.col("share").is_in(SHOWN), system=row["system"])
            cells = [_with_interval(point, digits) for point in mine.iter_rows(named=True)]
            lowest = f"{100 * row['at_lowest']:.1f} %"
            rows.append([row["system"], number(row["mean"], digits), lowest, *cells])
        users = counted(int(self.summary(label)["users"][0]), "user")
        title = f"{self._heading(label)}, {users}"
        return Table.of_rows(header, rows, left=(0,), title=title)

    def _display_pairs(self, label: str, digits: int) -> Table:
        level = f"{100 * self.confidence:g} %"
        header = ["pair", "better with a", "worse", "tied", f"better − worse, {level}"]
        header += [f"mean gain of a, {level}", "dominance", "p, first", "p, second"]
        rows = []
        for row in self.pairs(label).iter_rows(named=True):
            gain = {"value": row["gain"], "low": row["gain_low"], "high": row["gain_high"]}
            rows.append(
                [
                    f"a = {row['a']}, b = {row['b']}",
                    *share_cells(row),
                    _with_interval(gain, digits, signed=True),
                    row["dominance"] or "–",
                    p_value(row["first_p"]),
                    p_value(row["second_p"]),
                ]
            )
        return Table.of_rows(header, rows, left=(0, 6), title=f"{label}: users who gain and lose")

    def _explanation(self) -> list[str]:
        level = f"{100 * self.confidence:g} %"
        return [
            "quantile curves: bands hold at all shares of users from 5 to 95 % together, at "
            f"{level} for each system (order statistics)",
            f"shares: mid-p intervals, their difference by Tango's score, each at {level}; mean "
            "gain by t with and without skewness",
            "dominance, first order: McNemar's exact test at each of up to 19 values, of which the "
            "largest p counts; second order: t tests of shortfalls below these values; corrected "
            "by Holm over pairs",
        ]

    def _conclusion(self) -> list[str]:
        return list(self.sentences)

    def _content(self) -> dict[str, object]:
        return {
            "systems": self.systems,
            "metrics": self._facts(),
            "confidence": self.confidence,
            "quantiles": self.rows,
            "means": self.means,
            "pairs": self.compared,
            "sentences": self.sentences,
            "notes": self.notes,
        }

    def figure(self, kind: str = "quantiles", metric: str | None = None) -> Figure:
        """Draw the quantile curves of all systems with their bands.

        Parameters
        ----------
        kind
            `quantiles`.
        metric
            The first one unless given.
        """
        choose("figure", kind, FIGURES)
        label = self._label(metric)
        note = f"bands hold at all points of a curve together, at {100 * self.confidence:g} %"
        return quantile_curves(self.table(label), label, [note])


def share_cells(row: Mapping[str, Any]) -> list[str]:
    """Return the shares of a row of `paired_shares` in percent, each with its interval."""
    cells = []
    for name, sign in (("better", ""), ("worse", ""), ("tied", ""), ("net", "+")):
        value, low, high = (100 * row[f"{name}{end}"] for end in ("", "_low", "_high"))
        cells.append(f"{value:{sign}.1f} % [{low:{sign}.1f}, {high:{sign}.1f}]".replace("-", "−"))
    return cells


def _with_interval(row: Mapping[str, Any], digits: int, *, signed: bool = False) -> str:
    text = number(row["value"], digits, signed=signed)
    if row["low"] is None or row["high"] is None:
        return text
    return f"{text} {interval(row['low'], row['high'], digits, signed=signed)}"
