"""Metrics over sampled items: plain, corrected and full values of systems side by side.

What the sampled rank is, and how metrics of it are corrected, is in `sampled_ranks`;
`sampled_expectations` looks at the size of the sample, and `target_sizes` at the same choice as a
trade-off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from unskew.arrays import F64, I64
from unskew.checks import as_count, check_share, checked, choose
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.one_relevant import of_rank, value_at
from unskew.judging.anchors import anchor_ranks, full_ranks
from unskew.judging.rank import ranks_of
from unskew.metrics.names import Metric
from unskew.recommend.model import as_model
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew.stats.correlation import kendall, rounded
from unskew.stats.user_draws import percentile_interval
from unskew.targets.lists import TargetLists
from unskew.unbiased.sampled_ranks import (
    ESTIMATORS,
    GAMMA,
    METRICS,
    Metrics,
    check_gamma,
    check_ranks,
    corrections,
    ranks_by_system,
    whole_numbers,
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
    lists: int
    users: int
    gamma: float = GAMMA
    level: float = LEVEL
    bootstrap: int = BOOTSTRAP
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, system and estimator.

        Columns: metric, system, estimator, value with its interval low to high, full, gap (value -
        full) with its interval.
        """
        rows = []
        for m, metric in enumerate(self.metrics):
            for s, system in enumerate(self.systems):
                for e, estimator in enumerate(self.estimators):
                    at = (m, e, s)
                    numbers = (
                        self.value[at],
                        self.low[at],
                        self.high[at],
                        self.full[m, s],
                        self.value[at] - self.full[m, s],
                        self.gap_low[at],
                        self.gap_high[at],
                    )
                    rows.append((metric, system, estimator, *(float(x) for x in numbers)))
        names = ("value", "low", "high", "full", "gap", "gap_low", "gap_high")
        return _table(rows, ("metric", "system", "estimator"), names)

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
        rows = [
            {
                "system": system,
                "estimator": estimator,
                "full": float(self.full[m, s]),
                "value": float(self.value[m, e, s]),
                "low": null(self.low[m, e, s]),
                "high": null(self.high[m, e, s]),
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
        if "trade-off" in self.estimators:
            lines.append(f"trade-off: gamma = {self.gamma:g}")
        if self.bootstrap:
            lines.append(
                f"intervals: {100 * self.level:g} %, {self.bootstrap:,} bootstrap draws of users"
            )
        return lines

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the values and, where the full ones are known, how well the orders agree."""
        tables = super().display_tables(digits)
        if not np.isnan(self.full).all():
            tables.append(Table("", self.agreement(), tables[0].digits))
        return tables

    def display_table(self) -> pl.DataFrame:
        """Return a row per metric and system, a column per estimator, and the full value."""
        rows = [
            (metric, system, *self.value[m, :, s].tolist(), float(self.full[m, s]))
            for m, metric in enumerate(self.metrics)
            for s, system in enumerate(self.systems)
        ]
        return _table(rows, ("metric", "system"), (*self.estimators, "full"))

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')}, {counted(len(self.metrics), 'metric')}, "
            f"{counted(self.lists, 'list')}"
        )


def _table(rows: Sequence[Any], text: Sequence[str], numbers: Sequence[str]) -> pl.DataFrame:
    schema = {**dict.fromkeys(text, pl.String), **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row").with_columns(
        pl.selectors.float().fill_nan(None)
    )


def null(value: float) -> float | None:
    """Return a number as JSON takes it."""
    return None if math.isnan(value) else float(value)


@checked
def sampled_metrics(
    ranks: Mapping[str, ArrayLike] | ArrayLike,
    metrics: Metrics = METRICS,
    *,
    items: ArrayLike,
    n: ArrayLike,
    true_ranks: Mapping[str, ArrayLike] | ArrayLike | None = None,
    users: ArrayLike | None = None,
    estimators: Sequence[str] = ESTIMATORS,
    gamma: float = GAMMA,
    replacement: bool = False,
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
) -> Sampled:
    """Correct metrics of ranks among sampled items.

    Parameters
    ----------
    ranks
        The rank of each list's one relevant item among itself and the n drawn others, from 1 to
        n + 1; by system where there are several. NaN where a system could not rank it: such a list
        counts 0.
    metrics
        See `value_at`.
    items
        N, how many items there are for each list, the relevant one included; one number or one per
        list.
    n
        How many others were drawn; one number or one per list.
    true_ranks
        The ranks among all items, where known, in the same form: gives the full values.
    users
        The user of each list; each list has its own unless given. Users are what is drawn anew for
        the intervals.
    estimators, gamma, replacement
        See `corrected_values`.
    bootstrap, level, seed
        Draws of users for the intervals (percentiles); 0 for none.
    threads
        Never changes a result.

    Examples
    --------
    >>> from unskew.unbiased.sampled import sampled_metrics
    >>> result = sampled_metrics([1, 1, 2, 30], "Recall@10", items=1000, n=99, bootstrap=0)
    >>> result.value[0, :2, 0].tolist()  # plain; that of the estimated ranks 1, 1, 11 …, 294 …
    [0.75, 0.5]
    """
    wanted = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    names, given = ranks_by_system("ranks", ranks)
    lists = given.shape[1]
    if not lists:
        raise DataError("ranks: there are no lists")
    size, drawn = whole_numbers("items", items, lists), whole_numbers("n", n, lists)
    check_ranks("ranks", given, drawn + 1)
    full = np.full_like(given, np.nan)
    if true_ranks is not None:
        others, full = ranks_by_system("true_ranks", true_ranks)
        if others != names or full.shape != given.shape:
            raise DataError("true_ranks must be of the same systems and lists as ranks")
        check_ranks("true_ranks", full, size)
    owner = np.arange(lists)
    if users is not None:
        raw = np.asarray(users)
        if raw.shape != (lists,):
            raise DataError(
                f"users: {raw.size:,} given for {counted(lists, 'list')}: give one for each list"
            )
        owner = np.unique(raw, return_inverse=True)[1]
    settings = _Settings(
        estimators=tuple(estimators),
        gamma=gamma,
        replacement=replacement,
        bootstrap=bootstrap,
        level=level,
        seed=seed,
        threads=threads,
    )
    return _sampled(
        names,
        wanted,
        given,
        full if true_ranks is not None else None,
        size,
        drawn,
        owner,
        settings,
        (),
    )


@dataclass(frozen=True)
class _Settings:
    """How sampled ranks are corrected, and users drawn anew."""

    estimators: tuple[str, ...]
    gamma: float
    replacement: bool
    bootstrap: int
    level: float
    seed: int
    threads: int | None

    def __post_init__(self) -> None:
        if not self.estimators:
            raise SettingError("no estimators are named")
        for name in self.estimators:
            choose("estimator", name, ESTIMATORS)
        check_gamma(self.gamma)
        as_count("bootstrap", self.bootstrap, least=0)
        check_share("level", self.level)


def _sampled(
    systems: tuple[str, ...],
    wanted: Mapping[str, Metric],
    ranks: F64,
    full: F64 | None,
    items: I64,
    n: I64,
    owner: I64,
    settings: _Settings,
    notes: Sequence[str],
) -> Sampled:
    """Look every sampled rank up in the corrections of its list, and average."""
    metrics = list(wanted.values())
    users = int(owner.max()) + 1
    columns = (len(metrics), len(settings.estimators) + 1, len(systems))
    sums = np.full((users, *columns), np.nan)  # the last estimator is the truth
    pairs, kind = np.unique(np.stack([items, n]), axis=1, return_inverse=True)
    groups = _groups(kind.ravel(), pairs.shape[1])

    def correct(at: int) -> F64:
        return corrections(
            metrics,
            int(pairs[0, at]),
            int(pairs[1, at]),
            settings.estimators,
            settings.gamma,
            settings.replacement,
        )

    tables = map_blocks(correct, range(len(groups)), settings.threads, size=1 << 20)
    values = np.empty((*columns[:2], ranks.shape[1]))
    for s in range(len(systems)):
        for at, rows in enumerate(groups):
            here = ranks[s, rows]
            seen = np.where(np.isnan(here), 1, here).astype(np.int64) - 1
            looked = tables[at][:, :, seen].transpose(1, 0, 2)
            values[:, :-1, rows] = np.where(np.isnan(here), 0.0, looked)
            if full is not None:
                true = full[s, rows]
                exact = np.stack([value_at(one, true, int(pairs[0, at])) for one in metrics])
                values[:, -1, rows] = np.where(np.isnan(true), 0.0, exact)
        for m in range(columns[0]):
            for e in range(columns[1] - (full is None)):
                sums[:, m, e, s] = np.bincount(owner, values[m, e], users)
    counts = np.bincount(owner, minlength=users).astype(np.float64)
    return _averaged(systems, tuple(wanted), sums, counts, settings, notes)


def _groups(kind: I64, many: int) -> list[I64]:
    """Return the rows of each kind."""
    order = np.argsort(kind, kind="stable")
    edges = np.cumsum(np.bincount(kind, minlength=many))[:-1]
    return np.split(order, edges)


def _averaged(
    systems: tuple[str, ...],
    metrics: tuple[str, ...],
    sums: F64,
    counts: F64,
    settings: _Settings,
    notes: Sequence[str],
) -> Sampled:
    """Average sums per user over all lists, and over draws of users."""
    mean = sums.sum(axis=0) / counts.sum()
    drawn = _drawn_means(sums, counts, settings)
    value, full = mean[:, :-1], mean[:, -1]
    low, high = percentile_interval(drawn[:, :, :-1], settings.level)
    gaps = drawn[:, :, :-1] - drawn[:, :, -1:]
    gap_low, gap_high = percentile_interval(gaps, settings.level)
    tau, distance = (np.full((*value.shape[:2], 3), np.nan) for _ in range(2))
    if not np.isnan(full).all():
        distance[..., 0] = np.abs(value - full[:, None]).mean(axis=-1)
        distance[..., 1], distance[..., 2] = percentile_interval(
            np.abs(gaps).mean(axis=-1), settings.level
        )
        if len(systems) > 1:
            tau[..., 0] = _taus(mean[None])[0]
            tau[..., 1], tau[..., 2] = percentile_interval(_taus(drawn), settings.level)
    return Sampled(
        systems=systems,
        metrics=metrics,
        estimators=settings.estimators,
        value=value,
        low=low,
        high=high,
        full=full,
        gap_low=gap_low,
        gap_high=gap_high,
        tau=tau,
        distance=distance,
        lists=int(counts.sum()),
        users=counts.size,
        gamma=settings.gamma,
        level=settings.level,
        bootstrap=settings.bootstrap,
        notes=tuple(notes),
    )


def _drawn_means(sums: F64, counts: F64, settings: _Settings) -> F64:
    """Return the means of draws of users: a ratio of sums, as lists are what is averaged."""
    from unskew.stats import kernels

    key = np.uint64(key_of(settings.seed, "bootstrap"))
    flat = np.ascontiguousarray(sums.reshape(len(sums), -1))
    out = np.empty((settings.bootstrap, flat.shape[1]))
    rows = 16  # fixed: products of other shapes have other bits

    def fill(low: int) -> None:
        weights = np.empty((min(rows, settings.bootstrap - low), len(sums)))
        kernels.resample(key, low, weights)
        out[low : low + rows] = weights @ flat / (weights @ counts)[:, None]

    with one_blas_thread():
        map_blocks(
            fill, range(0, settings.bootstrap, rows), settings.threads, size=out.size * len(sums)
        )
    return out.reshape(settings.bootstrap, *sums.shape[1:])


def _taus(means: F64) -> F64:
    """Return draws x metrics x estimators: τ_b of each order with that of the full values."""
    draws, metrics, estimators, _ = means.shape
    out = np.full((draws, metrics, estimators - 1), np.nan)
    for d in range(draws):
        for m in range(metrics):
            order = rounded(means[d, m])
            for e in range(estimators - 1):
                out[d, m, e] = kendall(order[e], order[-1])
    return out


@notebook_progress("sampled metrics")
@checked
def correct_sampled(
    lists: TargetLists,
    models: Mapping[str, object],
    metrics: Metrics = METRICS,
    *,
    full: bool = True,
    estimators: Sequence[str] = ESTIMATORS,
    gamma: float = GAMMA,
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Sampled:
    """Rank sampled lists, correct their metrics, and compare them with those over all items.

    Parameters
    ----------
    lists
        Lists with one relevant item and others drawn uniformly: `OneRelevant(others=n).lists(…)`.
        Of each list n is how many others it has, N - 1 how many it could have had.
    models
        Fitted models by name, and whatever `rank` takes.
    metrics
        See `value_at`. The relevant item has gain 1: in a list with one relevant item grades are
        lost, and others that were judged but not liked count nothing.
    full
        Whether to rank all items too, for the full values.
    estimators, gamma
        See `corrected_values`.
    bootstrap, level, seed
        Draws of users for the intervals (percentiles); 0 for none. The seed also breaks random
        ties.
    ties, threads
        As in `rank`.
    progress
        Called with (done, total) as models are ranked.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.sampled import correct_sampled
    >>> pairs = [(u, i) for u in range(20) for i in range(50) if (u * 7 + i * 11) % 9 < 3]
    >>> user, item = zip(*pairs)
    >>> split = us.splits.Random(test=0.3).split(us.read_ratings({"user": user, "item": item}))[0]
    >>> lists = us.targets.OneRelevant(others=20, candidates="all").lists(split, liked=1)
    >>> systems = {"pop": us.recommend.Popularity(), "random": us.recommend.Random()}
    >>> models = {name: system.fit(split.train) for name, system in systems.items()}
    >>> correct_sampled(lists, models, ["Recall@5", "AP"], bootstrap=100)
    Sampled(2 systems, 2 metrics, 98 lists)
    """
    free = _free(lists)
    wanted = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    if not models:
        raise SettingError("no models are given")
    settings = _Settings(
        estimators=tuple(estimators),
        gamma=gamma,
        replacement=False,
        bootstrap=bootstrap,
        level=level,
        seed=seed,
        threads=threads,
    )
    drawn = lists.size - 1
    notes = list(lists.notes)
    keep = drawn > 0
    if not keep.all():
        notes.append(f"{counted(int((~keep).sum()), 'list')} without any other item left out")
    ranks, true = [], []
    for at, (name, model) in enumerate(models.items()):
        scorer = as_model(model, lists.train)
        some = ranks_of(scorer, lists, ties=ties, seed=seed, threads=threads)
        ranks.append(anchor_ranks(lists, some)[keep])
        lost = int(np.isnan(ranks[-1]).sum())
        if lost:
            notes.append(
                f"{name}: {counted(lost, 'relevant item')} could not be scored, which counts as 0"
            )
        if full:
            true.append(full_ranks(lists, scorer, ties, seed, threads)[0][keep])
        if progress is not None:
            progress(at + 1, len(models))
    owner = np.unique(lists.user[keep], return_inverse=True)[1]
    return _sampled(
        tuple(models),
        wanted,
        np.array(ranks),
        np.array(true) if full else None,
        free[keep] + 1,
        drawn[keep],
        owner,
        settings,
        notes,
    )


def _free(lists: TargetLists) -> I64:
    """Return how many others each list could have had, or refuse lists of another design."""
    if not isinstance(lists, TargetLists):
        raise SettingError(
            "give target lists: us.targets.OneRelevant(others=99).lists(split, liked=4)"
        )
    design = lists.design
    if lists.given or not lists.one_relevant or design.get("others") == "all":
        raise SettingError(
            "the correction is for lists with one relevant item and a number of others drawn: "
            "us.targets.OneRelevant(others=99).lists(split, …)"
        )
    if design.get("by") != "uniform":
        raise SettingError(
            f"others were drawn by {design['by']}; the correction is for uniform draws only"
        )
    return lists.free
