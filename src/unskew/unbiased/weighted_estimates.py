"""`WeightedEstimates`: what systems are estimated to score, and which estimates are usable."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from unskew.checks import choose
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.unbiased.judgment_weights import Weights

LEVELS = (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0)
"""Quantiles of the weights at which the curve over clipping levels clips."""
FEW_HITS = 10
"""With fewer effective hits an estimate is not usable: its interval misses the truth too often."""
UNUSABLE = "not usable here"
KINDS = ("naive", "ips", "snips")
OFF = 1.25
"""How far the weights of judged slots may be from what they should add up to, either way."""


@dataclass(frozen=True)
class Estimate:
    """One system's estimates of one metric; intervals by bootstrap over users, NaN without one."""

    naive: float
    """Every judgment counts once, what is not judged counts as not liked: average over all."""
    ips: float
    """Each judgment counts 1/p times; NaN where p is known up to a factor only."""
    snips: float
    """The same, normalised by the weights; NaN where there is nothing to normalise by."""
    naive_interval: tuple[float, float]
    ips_interval: tuple[float, float]
    snips_interval: tuple[float, float]
    users: int
    """How many lists the weighted mean is over."""
    undefined: int
    """Lists left out, as a fraction without liked judgments is undefined."""
    weights: Weights
    """Of the liked judgments that the lists found."""
    slots: float = math.nan
    """Weights of the judged items in the lists, liked or not, over the slots: 1 where the weights
    are right. NaN where they hold for liked judgments only, or all judgments are alike."""
    slots_interval: tuple[float, float] = (math.nan, math.nan)
    reason: str = ""
    """Why the weighted estimates are not usable; empty where they are."""

    @property
    def usable(self) -> bool:
        """Whether conclusions may be drawn from the weighted estimates."""
        return not self.reason

    @property
    def best(self) -> float:
        """The self-normalised estimate; IPS where there is none, NaN where there is neither."""
        return self.ips if math.isnan(self.snips) else self.snips


@dataclass(frozen=True, eq=False)
class WeightedEstimates(Result):
    """What each system is estimated to score. Made by `estimate`."""

    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    values: Mapping[tuple[str, str], Estimate]
    """By system and metric."""
    weights: Weights
    """Of all judgments."""
    settings: Mapping[str, Any]
    better: Mapping[str, str]
    most: Mapping[str, float]
    """The largest value that each metric can have."""
    notes: tuple[str, ...] = ()
    again: Callable[[float], Mapping[tuple[str, str], tuple[float, float, float]]] | None = field(
        default=None, repr=False
    )
    """Gives estimate, standard error and share clipped when weights are clipped at a level."""
    quantiles: Callable[[float], float] | None = field(default=None, repr=False)

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        system, metric = key
        choose("system", system, self.systems)
        return self.values[system, choose("metric", metric, self.metrics)]

    def table(self) -> pl.DataFrame:
        """Return a row per system and metric.

        Columns: naive, ips, snips, each with low and high (bootstrap over users); users; ess (how
        many equal weights the weights of the liked hits are worth), hits, max_weight and
        top_share (share of the weight in the heaviest 1 %); slots (weights of the judged items in
        the lists, liked or not, over the slots: about 1 where propensities are right); usable, and
        the reason where it is false: an estimate or an end of its interval is no value of the
        metric, it rests on too few hits, or the weights of the judged slots are far from adding up
        to the slots.
        """
        rows = []
        for system in self.systems:
            for metric in self.metrics:
                estimate = self.values[system, metric]
                row: dict[str, Any] = {"system": system, "metric": metric}
                for name in KINDS:
                    low, high = getattr(estimate, f"{name}_interval")
                    values = {
                        name: getattr(estimate, name),
                        f"{name}_low": low,
                        f"{name}_high": high,
                    }
                    row |= {key: _null(value) for key, value in values.items()}
                row |= {
                    "users": estimate.users,
                    "hits": estimate.weights.number,
                    "ess": estimate.weights.effective,
                    "max_weight": estimate.weights.largest,
                    "top_share": estimate.weights.top,
                    "slots": _null(estimate.slots),
                    "usable": estimate.usable,
                    "reason": estimate.reason or None,
                }
                rows.append(row)
        special: dict[str, Any] = dict.fromkeys(("system", "metric", "reason"), pl.String)
        special |= {"users": pl.Int64, "hits": pl.Int64, "usable": pl.Boolean}
        return pl.DataFrame(rows, {name: special.get(name, pl.Float64) for name in rows[0]})

    def display_table(self) -> pl.DataFrame:
        """Return what people read of the table: estimates, intervals, and what they rest on."""
        dropped = ["naive_low", "naive_high", "users", "max_weight", "top_share", "slots", "reason"]
        if not self.settings["resamples"]:
            dropped += [f"{name}_{end}" for name in ("ips", "snips") for end in ("low", "high")]
        words = pl.when("usable").then(pl.lit("yes")).otherwise(pl.lit(UNUSABLE))
        return self.table().drop(dropped).with_columns(usable=words)

    def order(self, metric: str, by: str = "snips") -> list[str]:
        """Return the systems, best first, by `naive`, `ips` or `snips`.

        Refused where the estimate of a system is missing or not usable.
        """
        choose("metric", metric, self.metrics)
        choose("by", by, KINDS)
        values = {name: getattr(self[name, metric], by) for name in self.systems}
        for name, value in values.items():
            reason = "" if by == "naive" else self[name, metric].reason
            if math.isnan(value) and not reason:
                reason = "there is none"
            if reason:
                raise DataError(
                    f"{metric}: systems cannot be ordered by {by}, because that of {name} is "
                    f"{UNUSABLE}: {reason}; leave it out, or order by='naive'"
                )
        sign = -1.0 if self.better[metric] == "higher" else 1.0
        return sorted(self.systems, key=lambda name: sign * values[name])

    def curve(self, levels: Sequence[float] | None = None) -> pl.DataFrame:
        """Return the bias and the standard error of the estimates over the clipping level.

        Parameters
        ----------
        levels
            The largest weights allowed. Default: quantiles of the weights.

        Returns
        -------
        polars.DataFrame
            A row per system, metric and level: level, estimate (as far as it has a scale, the IPS
            value, else the self-normalised one), bias (estimate less the one without clipping),
            se (over users), rmse (both together), clipped (share of the judgments), usable (whether
            the estimate is a value that the metric can have).
        """
        assert self.again is not None
        assert self.quantiles is not None
        chosen = [self.quantiles(q) for q in LEVELS] if levels is None else list(levels)
        if not chosen or not all(0 < level < math.inf for level in chosen):
            raise SettingError(f"levels must be weights above 0, got {chosen!r}")
        unclipped = self.again(math.inf)
        rows = []
        for level in sorted(set(chosen)):
            for (system, metric), (value, se, clipped) in self.again(level).items():
                bias = value - unclipped[system, metric][0]
                rows.append(
                    {
                        "system": system,
                        "metric": metric,
                        "level": float(level),
                        "estimate": value,
                        "bias": bias,
                        "se": se,
                        "rmse": math.hypot(bias, se),
                        "clipped": clipped,
                        "usable": value <= self.most[metric] * (1 + 1e-9),
                    }
                )
        return pl.DataFrame(rows)

    def figure(self, metric: str | None = None, levels: Sequence[float] | None = None) -> Figure:
        """Draw bias, standard error and both together over the clipping level, a panel each.

        Parameters
        ----------
        metric
            Which one; the first unless named.
        levels
            As for `curve`.
        """
        import altair as alt

        label = choose("metric", metric or self.metrics[0], self.metrics)
        table = self.curve(levels).filter(pl.col("metric") == label)
        parts = {"bias": "|bias|", "se": "standard error", "rmse": "both"}
        rows = [
            {"system": row["system"], "level": row["level"], "part": name, "error": abs(row[key])}
            for row in table.iter_rows(named=True)
            for key, name in parts.items()
        ]
        top = math.ceil(math.log10(max(row["level"] for row in rows)))
        decades = [10.0**power for power in range(min(top, 0), top + 1)]
        x = alt.X("level:Q", title="largest weight allowed").scale(type="log", nice=False)
        x = x.axis(values=decades, format="~s")
        y = alt.Y("error:Q", title="error")
        color = alt.Color("system:N").scale(domain=list(self.systems))
        lines = alt.Chart(alt.NamedData(name="rows"), width=190, height=200).mark_line(point=True)
        chart = lines.encode(x=x, y=y, color=color).facet(
            column=alt.Column("part:N", title=None, sort=list(parts.values()))
        )
        notes = ["bias is relative to the estimate without clipping", *self.footer()[:1]]
        return as_figure(chart, f"{label}: bias and noise by clipping level", notes, rows)

    def _explanation(self) -> list[str]:
        settings = self.settings
        lines = [f"weights by {settings['weights']}: {self.weights}"]
        per = "of users" if settings["mean"] == "users" else "as a ratio of sums over users"
        resampling = (
            f"; intervals: {100 * settings['level']:g} % bootstrap over users, which takes the "
            f"weights as they are"
        )
        lines.append(
            f"means {per} ({settings['users']})" + (resampling if settings["resamples"] else "")
        )
        return [*lines, str(settings["relevance"])]

    def _conclusion(self) -> list[str]:
        return self.unusable_notes()

    def unusable_notes(self) -> list[str]:
        """Return a line per metric that names the estimates that are not usable, and why."""
        lines = []
        for metric in self.metrics:
            reasons = [
                f"{system} ({self[system, metric].reason})"
                for system in self.systems
                if not self[system, metric].usable
            ]
            if reasons:
                lines.append(f"{metric} {UNUSABLE}: {'; '.join(reasons)}")
        return lines

    def _content(self) -> dict[str, object]:
        return {
            "settings": self.settings,
            "weights": self.weights.__dict__,
            "estimates": self.table(),
            "notes": [*self.notes, *self.unusable_notes()],
        }

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, {counted(len(self.metrics), 'metric')}"


def unusable(estimate: Estimate, high: float) -> str:
    """Say why the weighted estimates cannot be used; nothing where they can."""
    estimates = {name: getattr(estimate, name) for name in ("ips", "snips")}
    estimates = {name: value for name, value in estimates.items() if not math.isnan(value)}
    if not estimates:
        return "there is no weighted estimate"
    limit = high * (1 + 1e-9)
    for name, value in estimates.items():
        if value > limit:
            return f"{name} {value:.4g} is above {high:.4g}, the largest possible value"
    for name in estimates:
        end = getattr(estimate, f"{name}_interval")[1]
        if end > limit:
            return (
                f"the interval of {name} reaches {end:.4g}, above {high:.4g}, the largest possible "
                f"value"
            )
    if estimate.weights.effective < FEW_HITS:
        hits, effective = estimate.weights.number, estimate.weights.effective
        return (
            f"it rests on {counted(hits, 'hit')} with an effective sample size of {effective:.2g}, "
            f"less than {FEW_HITS}"
        )
    low, high = estimate.slots_interval
    if low > OFF or high < 1 / OFF:
        return (
            f"the weights of the judged items in its lists add up to {estimate.slots:.2f} "
            f"({low:.2f} to {high:.2f}) times the slots instead of once: the weights do "
            "not fit these lists"
        )
    return ""


def _null(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
