"""`StrataReport`: every metric of every system, stratum by stratum."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import choose
from unskew.evaluation.scores import Scores
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted

BOOTSTRAP, LEVEL = 1_000, 0.95


@dataclass(frozen=True)
class Stratum:
    """A part of the items or of the users."""

    name: str
    size: int
    """Items, users, or judgments in it."""
    judgments: int
    liked: int
    least: float = math.nan
    """The least and the largest of what strata are formed by; NaN for given groups."""
    most: float = math.nan


@dataclass(frozen=True, eq=False)
class StrataReport(Result):
    """Every metric of every system, stratum by stratum. Made by `strata`.

    Arrays are metrics x systems x strata.
    """

    by: str
    of: str
    """What strata are made of: `items`, `users`, or `judgments`."""
    strata: tuple[Stratum, ...]
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    whole: Scores
    """The scores over everything."""
    value: F64
    """The mean within each stratum; NaN where nobody is averaged."""
    low: F64
    high: F64
    lists: I64
    """How many lists (users) each mean is over."""
    contribution: F64
    """Each stratum's part of the whole mean; NaN for metrics that do not split."""
    share: F64
    """The same as a share of the whole mean; NaN where that is 0."""
    share_low: F64
    share_high: F64
    head: int
    """How many of the first strata are the head; 0 where strata have no order."""
    head_share: F64
    """Metrics x systems x 3: the share of the score from the head, and its interval."""
    level: float = LEVEL
    bootstrap: int = BOOTSTRAP
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, system and stratum.

        Columns: metric, system, stratum, its size (items, users or judgments), judgments, liked,
        least and most of what it is formed by, lists (averaged), value with its interval low to
        high, contribution, and share of the whole score with its interval.
        """
        rows = []
        for m, metric in enumerate(self.metrics):
            for s, system in enumerate(self.systems):
                for t, stratum in enumerate(self.strata):
                    at = (m, s, t)
                    facts = asdict(stratum)
                    rows.append(
                        {
                            "metric": metric,
                            "system": system,
                            "stratum": facts.pop("name"),
                            **facts,
                            "lists": int(self.lists[at]),
                            "value": self.value[at],
                            "low": self.low[at],
                            "high": self.high[at],
                            "contribution": self.contribution[at],
                            "share": self.share[at],
                            "share_low": self.share_low[at],
                            "share_high": self.share_high[at],
                        }
                    )
        table = pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))
        bounds = ("least", "most")  # of counts as a rule, which have no decimals
        whole = [name for name in bounds if (table[name].drop_nulls() % 1 == 0).all()]
        return table.with_columns(pl.col(whole).cast(pl.Int64))

    def heads(self) -> pl.DataFrame:
        """Return a row per metric and system: the score, and the share that the head gives.

        Columns: metric, system, score, head (its contribution), rest, head_share, low, high. Empty
        where strata have no order.
        """
        rows = []
        means = self.whole.averages()
        for m, metric in enumerate(self.metrics if self.head else ()):
            for s, system in enumerate(self.systems):
                part = self.contribution[m, s]
                share, low, high = self.head_share[m, s].tolist()
                rows.append(
                    (
                        metric,
                        system,
                        means[system][metric].value,
                        math.fsum(part[: self.head]),
                        math.fsum(part[self.head :]),
                        share,
                        low,
                        high,
                    )
                )
        names = ("score", "head", "rest", "head_share", "low", "high")
        schema = {"metric": pl.String, "system": pl.String, **dict.fromkeys(names, pl.Float64)}
        table = pl.DataFrame(rows, schema, orient="row")
        return table.with_columns(pl.selectors.float().fill_nan(None))

    def wide(self, metric: str | None = None) -> pl.DataFrame:
        """Return one metric (the first unless named): a row per stratum, columns per system."""
        m = self._metric(metric)
        columns: dict[str, Any] = {
            "stratum": [stratum.name for stratum in self.strata],
            self.of: [stratum.size for stratum in self.strata],
            "liked": [stratum.liked for stratum in self.strata],
        }
        split = not np.isnan(self.contribution[m]).all()
        for s, system in enumerate(self.systems):
            columns[system] = self.value[m, s]
            if self.bootstrap:
                columns[f"{system} ±"] = [
                    None if math.isnan(low) else f"{low:.4f} to {high:.4f}"
                    for low, high in zip(self.low[m, s], self.high[m, s], strict=True)
                ]
            if split:
                columns[f"{system} share"] = self.share[m, s]
        return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))

    def _metric(self, metric: str | None) -> int:
        return 0 if metric is None else self.metrics.index(choose("metric", metric, self.metrics))

    def _content(self) -> dict[str, object]:
        return {
            "by": self.by,
            "of": self.of,
            "level": self.level,
            "bootstrap": self.bootstrap,
            "head": self.head,
            "strata": self.table(),
            "heads": self.heads(),
            "notes": self.notes,
        }

    def figure(self, metric: str | None = None) -> Figure:
        """Draw one metric: its value in each stratum, and how the score is made up."""
        import altair as alt

        m = self._metric(metric)
        names = [stratum.name for stratum in self.strata]
        rows = []
        for s, system in enumerate(self.systems):
            for t, name in enumerate(names):
                at = (m, s, t)
                numbers = {
                    "value": self.value[at],
                    "low": self.low[at],
                    "high": self.high[at],
                    "share": self.share[at],
                }
                known = {key: None if np.isnan(v) else float(v) for key, v in numbers.items()}
                rows.append({"system": system, "stratum": name, "place": t, **known})
        title = f"stratum of {self.of} by {self.by}"
        base = alt.Chart(alt.NamedData(name="rows")).properties(width=520)
        x = alt.X("stratum:N", title=title).sort(names).axis(labelAngle=0)
        color = alt.Color("system:N").scale(domain=list(self.systems))
        value = alt.Y("value:Q", title=self.metrics[m])
        line = base.mark_line(point=True).encode(x=x, y=value, color=color)
        bars = base.mark_rule().encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
        above = alt.layer(line, bars).properties(height=240)
        shade = alt.Color("place:O").scale(scheme="blues", reverse=True).legend(None)
        parts = base.mark_bar(stroke="white", strokeWidth=1).encode(
            x=alt.X("share:Q", title="share of the score, first stratum on the left")
            .axis(format="%")
            .stack("zero"),
            y=alt.Y("system:N", title=None).sort(list(self.systems)),
            color=shade,
            order=alt.Order("place:Q"),
        )
        panels = [above] if np.isnan(self.share[m]).all() else [above, parts]
        chart = alt.vconcat(*panels, spacing=24).resolve_scale(color="independent")
        return as_figure(chart, f"{self.metrics[m]} by {self.by}", self._explanation(), rows)

    def _explanation(self) -> list[str]:
        inside = {
            "items": "only judgments of its items count",
            "judgments": "only its judgments count",
            "users": "only its users are averaged",
        }[self.of]
        lines = [f"strata of {self.of} by {self.by}; within a stratum {inside}"]
        lines.append("share: the stratum's part of the whole score; shares add up to 1")
        if self.bootstrap:
            lines.append(
                f"intervals: {100 * self.level:g} %, {self.bootstrap:,} bootstrap draws of users"
            )
        return [*lines, self.whole.relevance]

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return a table per metric, and the head."""
        digits = self.digits if digits is None else digits
        tables = [Table(metric, self.wide(metric), digits) for metric in self.metrics]
        if self.head:
            tables.append(Table(f"the head: {self._head_name()}", self.heads(), digits))
        return tables

    def _head_name(self) -> str:
        first = self.strata[: self.head]
        size = sum(stratum.size for stratum in first)
        return f"the first {len(first)} of {len(self.strata)} strata ({size:,} {self.of})"

    def _summary(self) -> str:
        return (
            f"{len(self.strata)} strata of {self.of}, {counted(len(self.systems), 'system')}, "
            f"{counted(len(self.metrics), 'metric')}"
        )
