"""`Sampled`: plain, corrected and full values of systems, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import choose
from unskew.errors import DataError
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import Metric
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew.unbiased.sampled.expected_metrics import GAMMA

ALARM = 0.0027
"""How often the two differ by chance alone beyond the limit, over all systems: 3 standard errors
for one system."""
LEAST_SHOWN = 0.05
"""Of the ranks that a metric hangs on, so many must be in a sample in the mean for `mle`."""
LEAST_HELD = 1.0
"""Of the ranks that a metric hangs on, so many must be in a sample in the mean for an interval:
with fewer the error is mostly bias, which no draw of users shows."""
LEAST_USERS = 20
"""With fewer users a standard error is not known well enough."""


@dataclass(frozen=True)
class Pick:
    """The estimator that is taken for a metric."""

    estimator: str
    reason: str
    """Why, as the end of a sentence that names it."""
    no_interval: str = ""
    """Why the estimate has no interval, where it has none."""


def settled(metric: Metric, sample: Sample, adaptive: bool) -> Pick | None:
    """Return the pick where nothing is left to choose, whatever the sampled ranks are.

    Parameters
    ----------
    metric
        One of the rank of the relevant item.
    sample
        How large it is.
    adaptive
        Whether the number of others depends on what was seen.
    """
    form = metric.definition.at_rank
    if sample.known:
        return Pick("plain", "because the lists hold all items: nothing is left to correct")
    if adaptive:
        return Pick(
            "mle",
            "because the numbers of drawn others depend on what was seen, which only the "
            "likelihood allows for",
        )
    if form is not None and form.draws_change_nothing:
        return Pick("plain", "because a sample does not change its expectation")
    ranks = ranks_looked_at(metric, sample.items)
    expected = ranks * sample.share
    if expected < LEAST_SHOWN:
        return Pick(
            "trade-off",
            f"because {metric} hangs on the first ranks (about {ranks:.1f}), and a sample holds "
            f"{expected:.3f} of these in the mean, fewer than {LEAST_SHOWN:g}: too few to tell mle "
            "from it",
        )
    return None


@dataclass(frozen=True)
class Sample:
    """How large the samples of all lists are."""

    items: int
    """The largest number of items of a list."""
    share: float
    """The share of the others that is drawn: the median over lists."""
    first_share: float
    """The same over the lists that tell least: those whose relevant item stands first."""
    known: bool
    """Whether all others are in every list."""


def why_no_interval(metric: Metric, sample: Sample) -> str:
    """Return why draws of users do not show the error of an estimate; nothing where they do."""
    form = metric.definition.at_rank
    if sample.known or (form is not None and form.draws_change_nothing):
        return ""
    ranks = ranks_looked_at(metric, sample.items)
    expected = ranks * sample.first_share
    if expected >= LEAST_HELD:
        return ""
    return (
        f"it hangs on the first ranks (about {ranks:.1f}), of which a sample holds {expected:.2f} "
        f"in the mean, fewer than {LEAST_HELD:g}: its error is mostly bias, which draws of users "
        "do not show"
    )


def ranks_looked_at(metric: Metric, items: int) -> float:
    """Return how many of the first ranks a metric hangs on: Σ M(R)² / M(1)².

    The cutoff of Recall@k and P@k; 2.5 of nDCG@10, 1.6 of AP, where the first ranks count most.
    """
    values = value_at(metric, np.arange(1, items + 1), items)
    return float((values**2).sum() / values[0] ** 2)


def difference_in_errors(sums: F64, counts: F64) -> F64:
    """Return by how many standard errors means over lists differ from 0, users drawn together.

    Parameters
    ----------
    sums
        Users x systems: the sum of the differences of each user's lists.
    counts
        The number of lists of each user.
    """
    lists = counts.sum()
    mean = sums.sum(axis=0) / lists
    users = len(counts)
    residual = sums - mean * counts[:, None]
    error = np.sqrt((residual**2).sum(axis=0) * users / (users - 1)) / lists
    tiny = 1e-9  # differences of rounding are none
    return np.where(np.abs(mean) <= tiny, 0.0, np.abs(mean) / np.maximum(error, tiny))


def compare(sums: F64, counts: F64, systems: Sequence[str]) -> Pick:
    """Pick the trade-off, or `mle` where it differs from it beyond chance for some system.

    Parameters
    ----------
    sums
        Users x systems: summed over each user's lists, what `mle` counts less what the trade-off
        counts.
    counts
        The number of lists of each user.
    systems
        Their names.
    """
    if len(counts) < LEAST_USERS:
        return Pick(
            "trade-off",
            f"because there are fewer than {LEAST_USERS} users: mle needs more to be trusted",
        )
    errors = difference_in_errors(sums, counts)
    limit = NormalDist().inv_cdf(1.0 - ALARM / (2 * len(systems)))
    index = int(np.argmax(errors))
    if errors[index] <= limit:
        return Pick(
            "trade-off",
            f"because mle differs from it by at most {errors[index]:.2f} standard errors, which is "
            f"not more than {limit:.2f}",
        )
    return Pick(
        "mle",
        f"because it differs from the trade-off by {errors[index]:.2f} standard errors for "
        f"{systems[index]}, which is more than {limit:.2f}",
    )


BOOTSTRAP, LEVEL = 1_000, 0.95


@dataclass(frozen=True, eq=False)
class Sampled(Result):
    """Plain, corrected and full values of systems, side by side.

    Made by `sampled_metrics` and `correct_sampled`.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    estimators: tuple[str, ...]
    value: F64
    """Metrics x estimators x systems."""
    low: F64
    """Over draws of users, around the mean of the estimator: they do not hold its bias."""
    high: F64
    full: F64
    """Metrics x systems: the metric of the true ranks; NaN where these are not known."""
    gap_low: F64
    """Of value - full, metrics x estimators x systems: its interval."""
    gap_high: F64
    tau: F64
    """Metrics x estimators x 3: Kendall's τ_b with the order by full values, its interval."""
    distance: F64
    """Metrics x estimators x 3: the mean over systems of |value - full|, its interval."""
    picks: tuple[Pick, ...]
    """Of each metric: the estimator whose values are the estimate, and why."""
    lists: int
    users: int
    gamma: float = GAMMA
    level: float = LEVEL
    bootstrap: int = BOOTSTRAP
    notes: tuple[str, ...] = ()

    @property
    def picked(self) -> dict[str, str]:
        """The estimator of each metric whose values are the estimate."""
        return {name: pick.estimator for name, pick in zip(self.metrics, self.picks, strict=True)}

    @property
    def estimate(self) -> F64:
        """Metrics x systems: the values of the picked estimators."""
        return self._of_picked(self.value)

    def _of_picked(self, of: F64) -> F64:
        indices = [self.estimators.index(pick.estimator) for pick in self.picks]
        return np.array([of[m, e] for m, e in enumerate(indices)])

    def table(self) -> pl.DataFrame:
        """Return a row per metric, system and estimator.

        Columns: metric, system, estimator, picked (whether its value is the estimate), value with
        its interval low to high (null where draws of users do not show the error: see
        `Pick.no_interval`), full, gap (value - full) with its interval.
        """
        low, high = self._ends()
        rows = []
        for m, metric in enumerate(self.metrics):
            for s, system in enumerate(self.systems):
                for e, estimator in enumerate(self.estimators):
                    index = (m, e, s)
                    numbers = (
                        self.value[index],
                        low[index],
                        high[index],
                        self.full[m, s],
                        self.value[index] - self.full[m, s],
                        self.gap_low[index],
                        self.gap_high[index],
                    )
                    picked = estimator == self.picks[m].estimator
                    rows.append((metric, system, estimator, picked, *(float(x) for x in numbers)))
        names = ("value", "low", "high", "full", "gap", "gap_low", "gap_high")
        return _table(rows, ("metric", "system", "estimator"), names, ("picked",))

    def _ends(self) -> tuple[F64, F64]:
        """Return the ends of the intervals, NaN where the estimate has none."""
        unusable = np.array([bool(pick.no_interval) for pick in self.picks])[:, None, None]
        return np.where(unusable, np.nan, self.low), np.where(unusable, np.nan, self.high)

    def agreement(self) -> pl.DataFrame:
        """Return a row per metric and estimator: how near it comes to the full values.

        Columns: metric, estimator, tau (τ_b of the order of systems with that by full values) and
        its interval, distance (mean over systems of |value - full|) and its interval.
        """
        rows = [
            (metric, name, *self.tau[m, e].tolist(), *self.distance[m, e].tolist())
            for m, metric in enumerate(self.metrics)
            for e, name in enumerate(self.estimators)
        ]
        names = ("tau", "tau_low", "tau_high", "distance", "distance_low", "distance_high")
        return _table(rows, ("metric", "estimator"), names)

    def _content(self) -> dict[str, object]:
        return {
            "lists": self.lists,
            "users": self.users,
            "gamma": self.gamma,
            "level": self.level,
            "picked": self.picked,
            "reasons": [pick.reason for pick in self.picks],
            "values": self.table(),
            "agreement": self.agreement(),
            "notes": self.notes,
        }

    def figure(self, metric: str | None = None) -> Figure:
        """Draw one metric (the first unless named): each estimate against the full value."""
        import altair as alt

        m = 0 if metric is None else self.metrics.index(choose("metric", metric, self.metrics))
        if np.isnan(self.full[m]).any():
            raise DataError("the full values are not known: give the true ranks")
        low, high = self._ends()
        rows = [
            {
                "system": system,
                "estimator": estimator,
                "full": float(self.full[m, s]),
                "value": float(self.value[m, e, s]),
                "low": null(low[m, e, s]),
                "high": null(high[m, e, s]),
            }
            for s, system in enumerate(self.systems)
            for e, estimator in enumerate(self.estimators)
        ]
        base = alt.Chart(alt.NamedData(name="rows"), width=420, height=300)
        x = alt.X("full:Q", title=f"{self.metrics[m]} over all items")
        y = alt.Y("value:Q", title="estimate")
        color = alt.Color("estimator:N").scale(domain=list(self.estimators))
        points = base.mark_point(filled=True, size=50).encode(
            x=x, y=y, color=color, tooltip=["system:N", "estimator:N", "value:Q", "full:Q"]
        )
        bars = base.mark_rule().encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
        right = base.mark_line(color="#999999", strokeDash=[4, 4], strokeWidth=1).encode(
            x=x, y=alt.Y("full:Q")
        )
        return as_figure(
            alt.layer(right, bars, points), "Sampled against full", self._explanation(), rows
        )

    def _explanation(self) -> list[str]:
        lines = [
            f"means over {counted(self.lists, 'list')} of {counted(self.users, 'user')}; one "
            "relevant item in each",
        ]
        lines += [
            f"{metric}: the estimate is {pick.estimator}, {pick.reason}"
            for metric, pick in zip(self.metrics, self.picks, strict=True)
        ]
        if "trade-off" in self.estimators:
            lines.append(f"trade-off: gamma = {self.gamma:g}")
        if self.bootstrap:
            lines.append(
                f"intervals: {100 * self.level:g} %, {self.bootstrap:,} bootstrap draws of users"
            )
            lines += [
                f"{metric}: no interval, because {pick.no_interval}"
                for metric, pick in zip(self.metrics, self.picks, strict=True)
                if pick.no_interval
            ]
        return lines

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the values and, where the full ones are known, how well the orders agree."""
        tables = super().display_tables(digits)
        if not np.isnan(self.full).all():
            tables.append(Table("", self.agreement(), tables[0].digits))
        return tables

    def display_table(self) -> pl.DataFrame:
        """Return a row per metric and system: the estimate, all estimators, and the full value."""
        columns = [self._of_picked(of) for of in (self.value, *self._ends())]
        rows = [
            (
                metric,
                system,
                *(float(end[m, s]) for end in columns),
                *self.value[m, :, s].tolist(),
                float(self.full[m, s]),
            )
            for m, metric in enumerate(self.metrics)
            for s, system in enumerate(self.systems)
        ]
        numbers = ("estimate", "low", "high", *self.estimators, "full")
        return _table(rows, ("metric", "system"), numbers)

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')}, {counted(len(self.metrics), 'metric')}, "
            f"{counted(self.lists, 'list')}"
        )


def _table(
    rows: Sequence[Any], text: Sequence[str], numbers: Sequence[str], flags: Sequence[str] = ()
) -> pl.DataFrame:
    schema = {
        **dict.fromkeys(text, pl.String),
        **dict.fromkeys(flags, pl.Boolean),
        **dict.fromkeys(numbers, pl.Float64),
    }
    return pl.DataFrame(rows, schema, orient="row").with_columns(
        pl.selectors.float().fill_nan(None)
    )


def null(value: float) -> float | None:
    """Return a number as JSON takes it."""
    return None if math.isnan(value) else float(value)
