"""`agreement`: how alike metrics, cutoffs, designs or folds order the systems."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, frozen
from unskew.checks import as_count, checked, choose
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted, finite
from unskew.stats.agreement.conditions import (
    Condition,
    Sources,
    _from_table,
    _table_of,
    conditions_of,
    named_sources,
    resampled,
)
from unskew.stats.correlation import FEW, kendall_test, rbo, rounded, tau_ap
from unskew.stats.pairing import Source, known_metric
from unskew.stats.resampling import check_two_systems, percentile_interval
from unskew.stats.value_tables import holds_values

BOOTSTRAP, PERMUTATIONS, LEVEL = 1_000, 10_000, 0.95
MEASURES = {
    "tau_b": "Kendall's τ_b",
    "tau_ap": "AP correlation τ_AP (the column is the reference)",
    "rbo": "rank-biased overlap (p = 0.9)",
}


@dataclass(frozen=True, eq=False)
class Agreement(Result):
    """How alike the orders of the systems are under several conditions.

    Made by `agreement`. A condition is a metric, a cutoff, a design, a fold. Matrices have a row
    and a column per condition.
    """

    digits = 2

    systems: tuple[str, ...]
    conditions: tuple[str, ...]
    values: F64
    """Conditions x systems, higher is better: what is better when lower is negated."""
    tau: F64
    """Kendall's τ_b; NaN where a condition holds all systems equal."""
    p: F64
    """Two-sided p of each τ under unrelated orders."""
    low: F64
    """Bootstrap interval of each τ, users drawn with replacement; NaN without values per user."""
    high: F64
    least: F64
    """The least and the largest τ when one system is left out."""
    most: F64
    level: float = LEVEL
    bootstrap: int = 0
    permutations: int = PERMUTATIONS
    notes: tuple[str, ...] = ()

    def table(self, measure: str = "tau_b") -> pl.DataFrame:
        """Return the matrix of a measure, a row and a column per condition.

        Parameters
        ----------
        measure
            `tau_b`, `tau_ap` (columns are the reference) or `rbo`.
        """
        matrix = self.matrix(measure)
        columns = dict(zip(self.conditions, finite(matrix.T.tolist()), strict=True))
        return pl.DataFrame({"condition": self.conditions, **columns})

    def matrix(self, measure: str = "tau_b") -> F64:
        """Return the same as an array."""
        if choose("measure", measure, MEASURES) == "tau_b":
            return self.tau
        function: Callable[[F64, F64], float] = tau_ap if measure == "tau_ap" else rbo
        return np.array([[function(a, b) for b in self.values] for a in self.values])

    def pairs(self) -> pl.DataFrame:
        """Return a row per two conditions with everything that is known about their agreement.

        Columns: a, b, tau, p, method, low and high (bootstrap over users), without_low and
        without_high (the range when one system is left out), tau_ap (mean of both directions),
        rbo, swaps (pairs of systems in opposite order).
        """
        matrices = (self.tau, self.p, self.low, self.high, self.least, self.most)
        known = dict(zip(PAIR_NUMBERS, matrices, strict=False))
        rows = []
        for i, j in combinations(range(len(self.conditions)), 2):
            first, second = self.values[i], self.values[j]
            rows.append(
                {
                    "a": self.conditions[i],
                    "b": self.conditions[j],
                    **{name: finite(float(matrix[i, j])) for name, matrix in known.items()},
                    "tau_ap": tau_ap(first, second, symmetric=True),
                    "rbo": rbo(first, second),
                    "swaps": len(_swapped(first, second)),
                }
            )
        schema = {"a": pl.String, "b": pl.String, **dict.fromkeys(PAIR_NUMBERS, pl.Float64)}
        return pl.DataFrame(rows, schema={**schema, "swaps": pl.Int64})

    def swaps(self, a: str, b: str) -> pl.DataFrame:
        """Return the pairs of systems that two conditions put in opposite order.

        Columns: better (under `a`), worse, and the difference better - worse under each: positive
        under `a`, negative under `b`. The widest disagreement comes first, measured by the smaller
        of both differences, each relative to the spread of its condition.
        """
        i, j = (
            self.conditions.index(choose("condition", name, self.conditions)) for name in (a, b)
        )
        rows: list[tuple[str, str, float, float, float]] = []
        for x, y in _swapped(self.values[i], self.values[j]):
            gaps = [
                float(self.values[condition, x] - self.values[condition, y]) for condition in (i, j)
            ]
            ranges = [float(np.ptp(self.values[condition])) for condition in (i, j)]
            width = min(abs(gap) / span for gap, span in zip(gaps, ranges, strict=True))
            rows.append((self.systems[x], self.systems[y], gaps[0], gaps[1], width))
        rows.sort(key=lambda row: -row[4])
        schema = {"better": pl.String, "worse": pl.String, "in_a": pl.Float64, "in_b": pl.Float64}
        return pl.DataFrame([row[:4] for row in rows], schema=schema, orient="row")

    def figure(self, measure: str = "tau_b") -> Figure:
        """Draw the matrix as a heat map, its numbers in the cells."""
        import altair as alt

        matrix = self.matrix(measure)
        names = list(self.conditions)
        rows = [
            {"row": a, "column": b, "value": finite(float(matrix[i, j]))}
            for i, a in enumerate(names)
            for j, b in enumerate(names)
        ]
        bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None}
        cells = alt.Chart(alt.NamedData(name="rows")).encode(
            x=alt.X("column:N").sort(names).axis(orient="top", labelAngle=-45, **bare),
            y=alt.Y("row:N").sort(names).axis(**bare),
        )
        defined = matrix[~np.isnan(matrix)]
        worst = float(defined.min(initial=1.0))
        scale = alt.Scale(domain=[worst, 1.0], scheme="blues")
        squares = cells.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=None))
        middle = (worst + 1) / 2
        shade = alt.condition(f"datum.value > {middle}", alt.value("white"), alt.value("#333333"))
        numbers = cells.mark_text(fontSize=11).encode(
            text=alt.Text("value:Q", format=".2f"), color=shade
        )
        size = alt.Step(max(26, 40 - len(names)))
        chart = alt.layer(squares, numbers).properties(width=size, height=size)
        notes = [f"{MEASURES[measure]} of {len(self.systems)} systems"]
        return as_figure(chart, "Agreement of orders", notes, rows)

    def _explanation(self) -> list[str]:
        lines = [f"Kendall's τ_b of the orders of {len(self.systems)} systems"]
        upper = np.triu_indices(len(self.conditions), 1)
        taus = self.tau[upper]
        defined = taus[~np.isnan(taus)]
        if defined.size:
            position = int(np.nanargmin(taus))
            i, j = int(upper[0][position]), int(upper[1][position])
            line = f"least: {self.conditions[i]} and {self.conditions[j]}, τ = {taus[position]:.2f}"
            if not math.isnan(self.low[i, j]):
                low, high = self.low[i, j], self.high[i, j]
                line += f" ({100 * self.level:g} % over users: {low:.2f} to {high:.2f})"
            lines.append(f"{line}, p = {self.p[i, j]:.2g}")
        return lines

    def _summary(self) -> str:
        return (
            f"{counted(len(self.conditions), 'condition')}, {counted(len(self.systems), 'system')}"
        )


PAIR_NUMBERS = ("tau", "p", "low", "high", "without_low", "without_high", "tau_ap", "rbo")


@notebook_progress("agreement")
@checked
def agreement(
    scores: Sources,
    metrics: str | Sequence[str] | None = None,
    *,
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Agreement:
    """Compare the orders of the same systems under several metrics, cutoffs, designs or folds.

    Parameters
    ----------
    scores
        What `evaluate` gave: its metrics are compared. A list of such counts as folds, whose means
        are averaged. A mapping from names (designs, folds, thresholds …) to scores compares these,
        metric by metric. Or a table (polars, pandas, a file, a mapping of column names to arrays …)
        of values per user, see `paired`; or of means, higher being better: a column of systems
        (called `system`, else the first) and a column per condition, or a column called `metric`
        or `condition` and a column per system.
    metrics
        Which metrics; all unless named.
    bootstrap
        How often users are drawn anew, with replacement and for all conditions alike, for the
        interval of each τ; 0 for none. The interval shows what the choice of users does to τ. A
        draw adds noise of its own, so it leans to smaller τ.
    level
        Of the interval.
    permutations
        For the p of a τ with ties among more than 9 systems; all others are exact.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with (done, total) as users are drawn.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> import polars as pl
    >>> from unskew.stats.agreement.agreement import agreement
    >>> means = pl.DataFrame({"system": ["a", "b", "c"], "P": [3, 2, 1], "RR": [3, 1, 2]})
    >>> agreement(means).table().rows()
    [('P', 1.0, 0.3333333333333333), ('RR', 0.3333333333333333, 1.0)]
    """
    as_count("bootstrap", bootstrap, least=0)
    as_count("permutations", permutations)
    if not 0 < level < 1:
        raise SettingError(f"level must lie between 0 and 1, got {level!r}")
    table = _table_of(scores)
    if table is not None and not holds_values(table):
        systems, named, values = _from_table(table, metrics)
        sources: list[Condition] = []
        notes: list[str] = []
    else:
        scores = scores if table is None else table
        sources, notes = conditions_of(scores, metrics)
        systems = sources[0].systems
        named = tuple(source.name for source in sources)
        values = np.array([source.means for source in sources])
        negated = dict.fromkeys(source.label for source in sources if source.sign < 0)
        if negated:
            notes.append(
                f"{', '.join(negated)}: lower is better, so values are negated before the systems "
                "are ordered"
            )
    check_two_systems(systems)
    if len(named) < 2:
        raise SettingError(f"there is only one order ({named[0]}): give several metrics or designs")
    tau, p = _matrices(values, permutations, seed, threads)
    lowest, highest = _one_left_out(values)
    low = high = np.full_like(tau, np.nan)
    if bootstrap and sources:
        low, high = _intervals(sources, bootstrap, level, seed, threads, progress)
    return Agreement(
        systems=systems,
        conditions=named,
        values=values,
        tau=tau,
        p=p,
        low=low,
        high=high,
        least=lowest,
        most=highest,
        level=level,
        bootstrap=bootstrap if sources else 0,
        permutations=permutations,
        notes=tuple(dict.fromkeys(notes)),
    )


def _matrices(values: F64, permutations: int, seed: int, threads: int | None) -> tuple[F64, F64]:
    """Return τ_b and p of all conditions with each other."""
    count = len(values)
    tau, p = np.full((count, count), np.nan), np.full((count, count), np.nan)

    def fill(i: int) -> None:
        for j in range(i + 1):
            test = kendall_test(values[i], values[j], permutations=permutations, seed=seed)
            tau[i, j] = tau[j, i] = test.value
            p[i, j] = p[j, i] = test.p

    heavy = values.shape[1] > FEW
    map_blocks(fill, range(count), threads, size=1 << 20 if heavy else 0)
    return tau, p


def _one_left_out(values: F64) -> tuple[F64, F64]:
    """Return the least and the largest τ_b over all sets that lack one system."""
    from unskew.stats import kernels

    count, systems = values.shape
    lowest, highest = np.full((count, count), np.inf), np.full((count, count), -np.inf)
    for gone in range(systems if systems > 2 else 0):
        tau = kernels.tau_matrix(frozen(np.delete(values, gone, axis=1)))
        lowest, highest = np.fmin(lowest, tau), np.fmax(highest, tau)
    unknown = np.isinf(lowest)
    lowest[unknown] = highest[unknown] = np.nan
    return lowest, highest


def _intervals(
    sources: list[Condition],
    draws: int,
    level: float,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> tuple[F64, F64]:
    """Return the percentile interval of every τ_b when users are drawn anew."""
    from unskew.stats import kernels

    count = len(sources)
    means = resampled(sources, draws, seed, threads, progress)
    is_known = np.logical_not(np.logical_and.reduce(np.isnan(means), axis=(0, 2)))
    upper = np.triu_indices(count)
    taus = np.empty((draws, upper[0].size))

    def fill(low: int) -> None:
        for draw in range(low, min(low + 16, draws)):
            taus[draw] = kernels.tau_matrix(frozen(rounded(means[draw])))[upper]

    map_blocks(fill, range(0, draws, 16), threads, size=means.size)
    taus[:, ~(is_known[upper[0]] & is_known[upper[1]])] = np.nan
    ends = np.full((2, count, count), np.nan)
    for matrix, edge in zip(ends, percentile_interval(taus, level), strict=True):
        matrix[upper] = edge
        matrix.T[upper] = edge
    return ends[0], ends[1]


def _swapped(a: F64, b: F64) -> list[tuple[int, int]]:
    """Return (x, y) with x above y in a and below it in b."""
    x, y = np.nonzero((a[:, None] > a[None, :]) & (b[:, None] < b[None, :]))
    return list(zip(x.tolist(), y.tolist(), strict=True))


@checked
def score_table(
    scores: Source | Mapping[str, Source],
    metrics: str | Sequence[str] | None = None,
    *,
    factor: str = "design",
    users: int = 0,
    seed: int = 0,
    threads: int | None = None,
) -> pl.DataFrame:
    """Return scores as the long table that `stability` takes; several can be put together.

    Columns: system, metric (without its cutoff), cutoff (null: the whole list), score, with a
    mapping also what its names stand for, and with `users` the number of the users' sample.

    Parameters
    ----------
    scores, metrics, seed, threads
        As in `agreement`.
    factor
        What the names of a mapping stand for: `design`, `fold`, `threshold`, `seed` …
    users
        Draw users anew (with replacement) this often, instead of taking all once.
    """
    as_count("users", users, least=0)
    is_named = isinstance(scores, Mapping) and named_sources(scores)
    named: Mapping[str, Source] = scores if is_named else {"": scores}
    frames = []
    for name, source in named.items():
        conditions, _ = conditions_of(source, metrics)
        if users:
            draws = resampled(conditions, users, seed, threads, None)
        else:
            draws = np.array([[condition.means for condition in conditions]])
        for index, condition in enumerate(conditions):
            if np.isnan(draws[:, index]).any():
                raise DataError(
                    f"{condition.label} has no value per user, so users=… cannot resample users"
                )
            metric = known_metric(condition.label)
            # `stability` knows on which side a metric is better by its name, if it is known.
            sign = 1.0 if metric is None else condition.sign
            frame = pl.DataFrame(
                {
                    "system": list(condition.systems) * len(draws),
                    "score": (sign * draws[:, index]).ravel(),
                    "users": np.repeat(np.arange(len(draws)), len(condition.systems)),
                }
            )
            family = condition.label if metric is None else str(metric.family)
            cutoff = pl.lit(None if metric is None else metric.cutoff, pl.Int64)
            frame = frame.with_columns(pl.lit(family).alias("metric"), cutoff.alias("cutoff"))
            if is_named:
                frame = frame.with_columns(pl.lit(name).alias(factor))
            frames.append(frame if users else frame.drop("users"))
    if not frames:
        raise SettingError("no scores are given")
    return pl.concat(frames)
