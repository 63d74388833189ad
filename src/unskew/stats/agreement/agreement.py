"""`agreement`: how alike metrics, cutoffs, designs or folds order the systems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, frozen
from unskew.checks import as_count, checked
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.report.columns import HIGH, LOW, NOTE, SYSTEM, Column, Drawing, Method, P, Question
from unskew.report.estimates import Estimates
from unskew.report.text import number
from unskew.stats.agreement.conditions import (
    Condition,
    Sources,
    _from_table,
    _table_of,
    by_system,
    conditions_of,
    named_sources,
    resampled,
)
from unskew.stats.correlation import FEW, Tau, kendall_test, rbo, rounded, tau_ap
from unskew.stats.pairing import Source, known_metric
from unskew.stats.resampling import check_two_systems, percentile_interval
from unskew.stats.value_tables import holds_values

BOOTSTRAP, PERMUTATIONS, LEVEL = 1_000, 10_000, 0.95
AGREEMENT = Question(
    name="agreement of orders",
    columns=(
        *(Column("design", "key", "condition a"), Column("against_design", "key", "condition b")),
        *(Column("value", "value", "τ"), LOW, HIGH, P),
        *(Column("without_low", "fact", hidden=True), Column("without_high", "fact", hidden=True)),
        *(Column("tau_ap", "fact", "τ_AP"), Column("rbo", "fact", "RBO")),
        *(Column("swaps", "count", "swapped pairs"), NOTE),
    ),
    method=Method(estimand="Kendall's τ_b between the orders of the systems under two conditions"),
    figures=(Drawing("matrix", "matrix"),),
    digits=2,
)
"""A row per two conditions; `without_low` to `without_high` is the range without any one system."""
MEANS = Question(
    name="means of systems, higher is better",
    columns=(AGREEMENT.columns[0], SYSTEM, Column("value", "value", "mean")),
    method=Method(estimand="the mean of a system; negated where lower is better"),
)


@notebook_progress("agreement")
@checked
def agreement(
    scores: Sources,
    metrics: str | Sequence[str] | None = None,
    *,
    resamples: int = BOOTSTRAP,
    level: float = LEVEL,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
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
    resamples
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
    Estimates
        A row per two conditions (`design`, `against_design`): τ_b as `value`, its interval over
        users (none without values per user) and its p under unrelated orders; the range of τ when
        one system is left out (`without_low`, `without_high`), τ_AP (mean of both directions), RBO
        (p = 0.9), and how many pairs of systems stand in opposite order (`swaps`; which ones tells
        `unskew.stats.correlation.swaps`). The part `means` has the mean of each system under each
        condition.

    Examples
    --------
    >>> import polars as pl
    >>> from unskew.stats.agreement.agreement import agreement
    >>> means = pl.DataFrame({"system": ["a", "b", "c"], "P": [3, 2, 1], "RR": [3, 1, 2]})
    >>> print(agreement(means))
    condition a  condition b     τ     p  τ_AP   RBO  swapped pairs
    P            RR           0.33  1.00  0.50  0.96              1
    p: Kendall's test, exact, not corrected
    Kendall's τ_b of the orders of 3 systems
    """
    as_count("resamples", resamples, least=0)
    as_count("permutations", permutations)
    if not 0 < level < 1:
        raise SettingError(f"level must lie between 0 and 1, got {level!r}")
    systems, named, values, sources, notes = _orders(scores, metrics)
    first, second = np.triu_indices(len(named), 1)

    def test_of(pair: int) -> Tau:
        sides = values[second[pair]], values[first[pair]]  # the order in which draws are made
        return kendall_test(*sides, permutations=permutations, seed=seed)

    size = 1 << 20 if values.shape[1] > FEW else 0
    tests = map_blocks(test_of, range(first.size), threads, size=size)
    without = _one_left_out(values)[:, first, second]
    low = high = np.full(first.size, np.nan)
    draws = resamples if sources else 0
    if draws:
        taus = _drawn(sources, draws, seed, threads, progress)[:, first, second]
        low, high = percentile_interval(taus, level)
    above = values[:, :, None] > values[:, None]
    rows = [
        (
            *(named[i], named[j], test.value, low[pair], high[pair], test.p, *without[:, pair]),
            tau_ap(values[i], values[j], symmetric=True),
            rbo(values[i], values[j]),
            np.count_nonzero(above[i] & above[j].T),
            "all systems are equal" if math.isnan(test.value) else "",
        )
        for pair, (i, j, test) in enumerate(
            zip(first.tolist(), second.tolist(), tests, strict=True)
        )
    ]
    is_exact = all(test.method == "exact" for test in tests)
    how_often = "exact" if is_exact else f"{permutations:,} permutations where systems tie"
    method = replace(AGREEMENT.method, test=f"Kendall's test, {how_often}")
    if draws:
        interval = "percentile bootstrap"
        method = replace(method, interval=interval, level=level, draws=draws, seed=seed)
    return Estimates.of_rows(
        AGREEMENT,
        rows,
        method=method,
        explanation=(f"Kendall's τ_b of the orders of {len(systems)} systems",),
        notes=tuple(dict.fromkeys(notes)),
        conclusion=_lowest(rows),
        parts={"means": Estimates.of_rows(MEANS, by_system(named, systems, values))},
    )


def _lowest(rows: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """Return which two of several orders agree least."""
    defined = [row for row in rows if not math.isnan(row[2])]
    if len(defined) < 2:
        return ()
    a, b, tau, *_ = min(defined, key=lambda row: row[2])
    return (f"lowest: {a} and {b}, τ = {number(tau, 2)}",)


def _orders(
    scores: Sources, metrics: str | Sequence[str] | None
) -> tuple[Sequence[str], Sequence[str], F64, list[Condition], list[str]]:
    """Return systems, conditions, means (conditions x systems), where they are from, and notes."""
    table = _table_of(scores)
    sources: list[Condition] = []
    notes: list[str] = []
    if table is not None and not holds_values(table):
        systems, named, values = _from_table(table, metrics)
    else:
        sources, notes = conditions_of(scores if table is None else table, metrics)
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
    return systems, named, values, sources, notes


def _one_left_out(values: F64) -> F64:
    """Return the lowest and the highest τ_b over all sets that lack one system."""
    from unskew.stats import kernels

    count, systems = values.shape
    if systems < 3:
        return np.full((2, count, count), np.nan)
    taus = np.array(
        [kernels.tau_matrix(frozen(np.delete(values, gone, axis=1))) for gone in range(systems)]
    )
    return np.array([np.fmin.reduce(taus), np.fmax.reduce(taus)])


def _drawn(
    sources: list[Condition],
    draws: int,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> F64:
    """Return every τ_b when users are drawn anew: draws x conditions x conditions."""
    from unskew.stats import kernels

    means = resampled(sources, draws, seed, threads, progress)
    taus = np.empty((draws, len(sources), len(sources)))

    def fill(low: int) -> None:
        for draw in range(low, min(low + 16, draws)):
            taus[draw] = kernels.tau_matrix(frozen(rounded(means[draw])))

    map_blocks(fill, range(0, draws, 16), threads, size=means.size)
    is_undefined = np.isnan(means).all(axis=(0, 2))
    taus[:, is_undefined] = taus[:, :, is_undefined] = np.nan
    return taus


@checked
def score_table(
    scores: Source | Mapping[str, Source],
    metrics: str | Sequence[str] | None = None,
    *,
    factor: str = "design",
    resamples: int = 0,
    seed: int = 0,
    threads: int | None = None,
) -> pl.DataFrame:
    """Return scores as the long table that `stability` takes; several can be put together.

    Columns: system, metric (without its cutoff), cutoff (null: the whole list), score, with a
    mapping also what its names stand for, and with `resamples` the number of the draw, `users`.

    Parameters
    ----------
    scores, metrics, seed, threads
        As in `agreement`.
    factor
        What the names of a mapping stand for: `design`, `fold`, `threshold`, `seed` …
    resamples
        Draw users anew (with replacement) this often, instead of taking all once.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 2], "item": [7, 8], "rating": [5, 5]}
    >>> runs = {"a": {1: [7, 8], 2: [9, 7]}, "b": {1: [9, 7], 2: [9, 8]}}
    >>> us.stats.score_table(us.evaluate(test, runs, ["P@1", "P@2"], liked=4)).rows()[:2]
    [('a', 0.5, 'P', 1), ('b', 0.0, 'P', 1)]
    """
    as_count("resamples", resamples, least=0)
    is_named = isinstance(scores, Mapping) and named_sources(scores)
    named: Mapping[str, Source] = scores if is_named else {"": scores}
    frames = []
    for name, source in named.items():
        conditions, _ = conditions_of(source, metrics)
        if resamples:
            draws = resampled(conditions, resamples, seed, threads, None)
        else:
            draws = np.array([[condition.means for condition in conditions]])
        for index, condition in enumerate(conditions):
            if np.isnan(draws[:, index]).any():
                raise DataError(
                    f"{condition.label} has no value per user, so resamples=… cannot draw users"
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
            frames.append(frame if resamples else frame.drop("users"))
    if not frames:
        raise SettingError("no scores are given")
    return pl.concat(frames)
