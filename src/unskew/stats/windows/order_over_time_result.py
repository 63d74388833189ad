"""`OrderOverTime`: curves over windows, which differences vary, and which orders change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.checks import choose
from unskew.report.charts import BLUE, GREY, VERMILION, Figure, as_figure
from unskew.report.tables import Table
from unskew.report.text import counted, number, p_value
from unskew.stats.agreement.agreement import Agreement
from unskew.stats.metric_result import MetricResult, chosen_pair
from unskew.stats.windows.window_tests import TauByChance


def differences(
    rows: pl.DataFrame, pair: tuple[str, str], unit: str, label: str, notes: Sequence[str]
) -> Figure:
    """Draw the difference of one pair in each window, with its simultaneous interval."""
    import altair as alt

    a, b = pair
    verdicts = {a: f"{a} is ahead", b: f"{b} is ahead", None: "neither is shown"}
    points = [
        {
            unit: str(row[unit]),
            **{name: row[name] for name in ("difference", "low", "high", "users")},
            "verdict": verdicts[row["ahead"]],
        }
        for row in rows.iter_rows(named=True)
        if row["difference"] is not None
    ]
    order = list(dict.fromkeys(str(name) for name in rows[unit]))
    chart = alt.Chart(alt.NamedData(name="rows"), width=max(320, min(640, 60 * len(order))))
    x = alt.X(f"{unit}:N", title=unit).scale(domain=order).axis(labelAngle=-30, labelOverlap=True)
    colours = [BLUE, VERMILION, GREY]
    color = alt.Color("verdict:N").scale(domain=list(verdicts.values()), range=colours)
    title = f"{label}: {a} − {b}, positive is better for {a}"
    marks = chart.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, y=alt.Y("difference:Q", title=title), color=color
    )
    bars = chart.mark_rule(strokeWidth=2).encode(
        x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=color
    )
    zero = chart.mark_rule(strokeDash=[4, 3], color=GREY).encode(y=alt.datum(0.0))
    return as_figure(alt.layer(zero, bars, marks), f"{label}: {a} − {b}", notes, points)


FIGURES = ("curves", "differences", "tau")
NAMED = 6
"""At most so many windows are named in a sentence."""
PAIRS = 12
"""At most so many pairs are shown in the table."""
SENTENCES = 5
"""At most so many pairs have a sentence of their own."""


@dataclass(frozen=True, eq=False)
class OrderOverTime(MetricResult):
    """The same systems in several windows: curves, differences, changes of order, τ.

    Made by `order_over_time` and `order_across_splits`.
    """

    kind: ClassVar[str] = "this result"

    unit: str
    """`window` or `split`."""
    windows: tuple[str, ...]
    means: pl.DataFrame = field(repr=False)
    """See `curves`."""
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    tests: pl.DataFrame = field(repr=False)
    """See `changes`."""
    tau: Mapping[str, Agreement] = field(repr=False)
    """By metric: Kendall's τ between windows, with bootstrap intervals over users."""
    chance: Mapping[str, TauByChance | None]
    """By metric: the mean τ of users with several windows, and by chance."""
    users: Mapping[str, tuple[int, int]]
    """By metric: users with a value, and those with values in two windows or more."""
    level: float
    exchanges: int
    """0: p of some metric is that of the F distribution."""
    bootstrap: int
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The level of the tests."""
        return round(1 - self.level, 12)

    def curves(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric, window and system.

        `users`, `mean`, and `low` and `high`: the interval of this mean alone.
        """
        return self._of(self.means, metric)

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric, pair and window: the difference, positive where a is better.

        `users`; `difference`, its standard error `se` and its interval `low`, `high`, which holds
        for all pairs and windows of the metric at once; `ahead`: the system that is shown to be
        ahead, null where none is. No interval: too few users whose values differ.
        """
        return self._of(self.rows, metric)

    def changes(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and pair: whether differences vary and whether the order changes.

        `least` and `most`: the range of the difference over windows. `statistic`, `df` and
        `p_within`: the test within users; `p_between`: that of the windows' means; `p`: the larger
        of both; `p_corrected` (Holm over pairs) and `varies`. `a_ahead` and `b_ahead`: the windows
        in which each is shown to be ahead; `reverses` where there are both.
        """
        return self._of(self.tests, metric)

    # Text

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return, of each metric, the means by window and the changes of all pairs."""
        digits = self.digits if digits is None else digits
        return [
            table
            for label in self.metrics
            for table in (self._display_means(label, digits), self._display_changes(label, digits))
        ]

    def _display_means(self, label: str, digits: int) -> Table:
        curves = self.curves(label)
        values = {
            (row[self.unit], row["system"]): row["mean"] for row in curves.iter_rows(named=True)
        }
        users = dict(curves.select(self.unit, "users").iter_rows())
        rows = [
            [
                window,
                f"{users[window]:,}",
                *(number(values[window, system], digits) for system in self.systems),
            ]
            for window in self.windows
        ]
        title = f"{self._heading(label)}: means by {self.unit}"
        return Table.of_rows([self.unit, "users", *self.systems], rows, left=(0,), title=title)

    def _display_changes(self, label: str, digits: int) -> Table:
        header = ["pair", "least a − b", "most a − b", "varies, p", "a ahead", "b ahead", "order"]
        rows = []
        changes = self.changes(label)
        # Where there are many pairs: those that change or vary first, and no more than fit.
        chosen = changes
        if changes.height > PAIRS:
            order = ["reverses", "varies", "p_corrected"]
            chosen = changes.sort(
                order, descending=[True, True, False], nulls_last=True, maintain_order=True
            ).head(PAIRS)
        for row in chosen.iter_rows(named=True):
            rows.append(
                [
                    f"a = {row['a']}, b = {row['b']}",
                    number(row["least"], digits, signed=True),
                    number(row["most"], digits, signed=True),
                    p_value(row["p_corrected"]),
                    f"{len(row['a_ahead'])} of {len(self.windows)}",
                    f"{len(row['b_ahead'])} of {len(self.windows)}",
                    "changes" if row["reverses"] else "no change shown",
                ]
            )
        title = f"{label}: does the order change between {self.unit}s? (positive: a is better)"
        if chosen.height < changes.height:
            title += f"; {chosen.height} of {changes.height} pairs, all in changes()"
        return Table.of_rows(header, rows, left=(0, 6), title=title)

    def _explanation(self) -> list[str]:
        percent = f"{100 * self.level:g} %"
        how = f"{counted(self.exchanges, 'exchange')} of each user's {self.unit}s"
        if not self.exchanges:
            how = "Hotelling's F, because exchanges would take too long"
        return [
            *(self._users_line(label) for label in self.metrics),
            f"varies: is the difference the same in all {self.unit}s? The larger p of two tests, "
            f"within users ({how}) and of the means over users (Wald), corrected by Holm over "
            f"pairs; it assumes that whether a user is in a {self.unit} does not depend on how "
            "well these systems serve that user",
            f"ahead: intervals of {percent} that hold for all pairs and {self.unit}s at once; the "
            f"order changes only where each of two systems is ahead in some {self.unit}",
            "about these trained models and users like these: another training is not part of it",
            *self._tau_lines(),
        ]

    def _users_line(self, label: str) -> str:
        everyone, repeated = self.users[label]
        prefix = f"{label}: " if len({*self.users.values()}) > 1 else ""
        if prefix == "" and label != self.metrics[0]:
            return ""
        return (
            f"{prefix}{counted(everyone, 'user')}, {repeated:,} of them in two {self.unit}s or "
            f"more; the others ({everyone - repeated:,}) say nothing about change within users"
        )

    def _tau_lines(self) -> list[str]:
        lines = {label: self._tau_line(label) for label in self.metrics}
        return [f"{label}: {line}" for label, line in lines.items() if line]

    def _tau_line(self, label: str) -> str:
        result = self.tau[label]
        upper = np.triu_indices(len(result.conditions), 1)
        taus = result.tau[upper]
        if np.isnan(taus).all():
            return ""
        if len(result.conditions) == 2:
            low, high = result.low[0, 1], result.high[0, 1]
            line = f"Kendall's τ = {taus[0]:.2f}"
            if not np.isnan(low):
                line += f" ({100 * result.level:g} % over users: {low:.2f} to {high:.2f})"
        else:
            line = f"Kendall's τ between {self.unit}s: mean {np.nanmean(taus):.2f}, least "
            line += f"{np.nanmin(taus):.2f}"
        chance = self.chance[label]
        if chance is not None:
            line += (
                f"; users with several {self.unit}s {chance.observed:.2f}, and "
                f"{chance.expected:.2f} ({chance.low:.2f} to {chance.high:.2f}) with their "
                f"{self.unit}s exchanged at random"
            )
        return line

    def footer(self) -> list[str]:
        """Return the lines below the tables."""
        return [line for line in super().footer() if line]

    def _conclusion(self) -> list[str]:
        return [line for label in self.metrics for line in self._findings(label)]

    def _findings(self, label: str) -> list[str]:
        rows = list(self.changes(label).iter_rows(named=True))
        reversals = [row for row in rows if row["reverses"]]
        lines = [self._reversal(label, row) for row in reversals[:SENTENCES]]
        if len(reversals) > SENTENCES:
            lines.append(
                f"{label}: the order of {counted(len(reversals) - SENTENCES, 'more pair')} changes"
            )
        varying = [row for row in rows if row["varies"] and not row["reverses"]]
        if varying:
            lines.append(self._variation(label, varying))
        if not reversals:
            lines.append(f"{label}: no change of order is shown{self._blind(label)}")
        return lines

    def _variation(self, label: str, rows: Sequence[Mapping[str, Any]]) -> str:
        named = [f"{row['a']} and {row['b']} (p {_p(row['p_corrected'])})" for row in rows]
        listed = self._list(named)
        difference, their = ("difference", "their order")
        if len(rows) > 1:
            difference, their = ("differences", "the order of any of these pairs")
        verb = "is" if len(rows) == 1 else "are"
        return (
            f"{label}: the {difference} between {listed} {verb} not the same in all {self.unit}s; "
            f"no change of {their} is shown"
        )

    def _reversal(self, label: str, row: Mapping[str, Any]) -> str:
        where = "in" if self.unit == "window" else "under"
        text = (
            f"{label}: the order of {row['a']} and {row['b']} changes: {row['a']} is ahead {where} "
            f"{self._list(row['a_ahead'])}, {row['b']} {where} {self._list(row['b_ahead'])}"
        )
        if row["p_within"] is None or row["p_within"] > self.alpha:
            text += (
                f"; users with several {self.unit}s do not show it by themselves, so that other "
                "users may be the reason"
            )
        return text

    def _list(self, names: Sequence[str]) -> str:
        text = ", ".join(names[:NAMED])
        more = len(names) - NAMED
        return f"{text} and {more} more" if more > 0 else text

    def _blind(self, label: str) -> str:
        """Say how large a difference in a window must be to be seen."""
        estimated = self.table(label).drop_nulls("low")
        if not estimated.height:
            return f": no {self.unit} has enough users whose values differ"
        half = float(((estimated["high"] - estimated["low"]) / 2).median())  # type: ignore[arg-type]
        return (
            f"; in the median {self.unit} and pair, a difference below {number(half, self.digits)} "
            "would not be"
        )

    def _numbers(self) -> Iterator[str]:
        yield from super()._numbers()
        yield counted(len(self.windows), self.unit)

    def _content(self) -> dict[str, object]:
        several = {label: repeated for label, (_, repeated) in self.users.items()}
        return {
            "unit": self.unit,
            "systems": self.systems,
            f"{self.unit}s": self.windows,
            "metrics": self._facts(
                users={label: users for label, (users, _) in self.users.items()},
                **{f"users_with_several_{self.unit}s": several},
            ),
            "level": self.level,
            "exchanges": self.exchanges,
            "bootstrap": self.bootstrap,
            "seed": self.seed,
            "curves": self.means,
            "differences": self.rows,
            "changes": self.tests,
            "tau": {label: value.pairs() for label, value in self.tau.items()},
            "tau_by_chance": {
                label: None if value is None else dict(vars(value))
                for label, value in self.chance.items()
            },
            "notes": self.footer(),
        }

    # Figures

    def figure(
        self,
        kind: str = "curves",
        metric: str | None = None,
        pair: tuple[str, str] | None = None,
    ) -> Figure:
        """Draw the `curves` of all systems, the `differences` of one pair, or `tau`.

        Parameters
        ----------
        kind
            `curves`: means with the interval of each alone. `differences`: of one pair, with
            intervals that hold at once. `tau`: between windows, as a matrix.
        metric
            The first one unless given.
        pair
            For `differences`: two systems; the first pair unless given.
        """
        from unskew.report import charts

        choose("figure", kind, FIGURES)
        label = self._label(metric)
        if kind == "tau":
            return self.tau[label].figure()
        percent = f"{100 * self.level:g} %"
        if kind == "curves":
            note = f"bars: {percent} intervals of each mean alone"
            return charts.curves(self.curves(label), self.unit, label, [note])
        chosen, rows = chosen_pair(pair, self.table(label))
        note = f"bars: {percent} intervals that hold for all pairs and {self.unit}s at once"
        return differences(rows, chosen, self.unit, label, [note])


def _p(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"
