"""`Robustness`: how well the order of systems holds when less is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import choose
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import WIDE
from unskew.report.text import counted

KEPT = {
    "sparsity": "share of test judgments kept",
    "popularity": "share of items kept, the least popular",
    "users": "share of users kept",
}


@dataclass(frozen=True, eq=False)
class Robustness(Result):
    """Kendall's τ_b between the order of systems on smaller test sets and on the full one.

    Made by `robustness` and `user_robustness`.
    """

    digits = 3

    to: str
    """`sparsity`, `popularity` or `users`."""
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    shares: tuple[float, ...]
    """What is kept: of each user's judgments, of the items, or of the users."""
    tau: F64
    """Metrics x shares x samples; NaN where all systems are equal."""
    judgments: I64
    """Shares x samples: test judgments left (0 where users were drawn)."""
    users: I64
    """Shares x samples: users left to average."""
    full: Mapping[str, int]
    """`judgments` and `users` of the full test set."""
    means: F64
    """Metrics x shares x samples x systems."""
    full_means: F64
    """Metrics x systems."""
    seed: int = 0
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric and share: τ (mean over samples), its spread, what was left.

        Columns: metric, share, tau, sd (null for a single one), low and high (the least and the
        largest of the samples),
        samples, undefined (samples in which all systems are equal; left out of the mean),
        judgments and users (means over samples).
        """
        rows = [
            {
                "metric": metric,
                "share": share,
                **_spread(self.tau[m, s]),
                "judgments": float(self.judgments[s].mean()),
                "users": float(self.users[s].mean()),
            }
            for m, metric in enumerate(self.metrics)
            for s, share in enumerate(self.shares)
        ]
        if self.to == "users":
            rows = [{k: v for k, v in row.items() if k != "judgments"} for row in rows]
        return pl.DataFrame(rows, infer_schema_length=None)

    def wide(self) -> pl.DataFrame:
        """Return the mean τ: a row per share, a column per metric."""
        columns: dict[str, Sequence[float | None]] = {"share": self.shares}
        for m, metric in enumerate(self.metrics):
            columns[metric] = [_spread(taus)["tau"] for taus in self.tau[m]]
        return pl.DataFrame(columns)

    def summary(self) -> pl.DataFrame:
        """Return a row per metric, the most robust first: τ averaged over shares, and its least.

        A share at which τ is undefined is left out of the average.
        """
        rows = []
        for m, metric in enumerate(self.metrics):
            means = [_spread(taus)["tau"] for taus in self.tau[m]]
            known = [mean for mean in means if mean is not None]
            rows.append(
                {
                    "metric": metric,
                    "tau": math.fsum(known) / len(known) if known else None,
                    "least": min(known, default=None),
                    "undefined": len(means) - len(known),
                }
            )
        schema = {
            "metric": pl.String,
            "tau": pl.Float64,
            "least": pl.Float64,
            "undefined": pl.Int64,
        }
        table = pl.DataFrame(rows, schema=schema)
        return table.sort("tau", descending=True, nulls_last=True, maintain_order=True)

    def systems_table(self) -> pl.DataFrame:
        """Return a row per metric, share and system: its mean score, the sd, and the full one.

        So that one sees what a smaller test set does to the scores themselves.
        """
        single = self.means.shape[2] < 2
        rows = [
            {
                "metric": metric,
                "share": share,
                "system": system,
                "mean": float(self.means[m, s, :, at].mean()),
                "sd": None if single else float(self.means[m, s, :, at].std(ddof=1)),
                "full": float(self.full_means[m, at]),
            }
            for m, metric in enumerate(self.metrics)
            for s, share in enumerate(self.shares)
            for at, system in enumerate(self.systems)
        ]
        return pl.DataFrame(rows, schema_overrides={"sd": pl.Float64}, infer_schema_length=None)

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the mean τ over the share that is kept, a line per metric."""
        import altair as alt

        wanted = list(self.metrics) if metrics is None else list(metrics)
        for metric in wanted:
            choose("metric", metric, self.metrics)
        table = self.table().filter(pl.col("metric").is_in(wanted) & pl.col("tau").is_not_null())
        rows = table.select("metric", "share", "tau", "low", "high").to_dicts()
        x = alt.X("share:Q", title=KEPT[self.to])
        x = x.scale(reverse=True, zero=False).axis(format="%")
        y = alt.Y("tau:Q", title="Kendall's τ with the order on all data").scale(zero=False)
        color = alt.Color("metric:N").scale(domain=wanted)
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        line: alt.Chart = chart.mark_line(point=True).encode(x=x, y=y, color=color)
        return as_figure(line, f"Robustness to {self.to}", self.footer(), rows)

    def _explanation(self) -> list[str]:
        samples = self.tau.shape[2]
        each = (
            f"{counted(samples, 'sample')} per share" if samples > 1 else "one test set per share"
        )
        least = int(self.users.min(initial=self.full["users"]))
        lines = [
            f"τ_b of {counted(len(self.systems), 'system')} with their order on all data; {each}"
        ]
        if self.to != "users" and least < self.full["users"]:
            lines.append(
                f"users without remaining judgments are not averaged: at least {least:,} of "
                f"{self.full['users']:,} remain"
            )
        undefined = int(np.isnan(self.tau).sum())
        if undefined:
            lines.append(f"undefined (all systems equal): {undefined:,} of {self.tau.size:,} τ")
        return lines

    def display_table(self) -> pl.DataFrame:
        """Return a column per metric or, where there are many, a row."""
        return self.wide() if len(self.metrics) <= WIDE else self.summary()

    def _summary(self) -> str:
        return (
            f"to={self.to!r}, {counted(len(self.systems), 'system')}, "
            f"{counted(len(self.metrics), 'metric')}, {counted(len(self.shares), 'share')}, "
            f"{counted(self.tau.shape[2], 'sample')}"
        )


def _spread(taus: F64) -> dict[str, float | None]:
    """Return mean and spread of the samples in which τ is defined."""
    known = taus[~np.isnan(taus)]
    facts: dict[str, float | None] = {"tau": None, "sd": None, "low": None, "high": None}
    if known.size:
        facts["tau"] = math.fsum(known) / known.size
        facts |= {"low": float(known.min()), "high": float(known.max())}
    if known.size > 1:
        facts["sd"] = float(known.std(ddof=1))
    return {**facts, "samples": taus.size, "undefined": taus.size - known.size}
