"""The engine of sampled metrics: what each estimator counts for each list, averaged over users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unskew.arrays import F64, I64
from unskew.checks import as_count, check_share, choose
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import SettingError
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import Metric
from unskew.report.text import counted
from unskew.stats.correlation import kendall, rounded
from unskew.stats.resampling import percentile_interval, redraw, with_replacement
from unskew.unbiased.sampled.expected_metrics import (
    check_gamma,
    rows_by_kind,
    trade_off,
    values_in_lists,
)
from unskew.unbiased.sampled.rank_shares import SampleGroups, most_likely_values
from unskew.unbiased.sampled.sampled_result import (
    Pick,
    Sample,
    Sampled,
    compare,
    settled,
    why_no_interval,
)

ESTIMATORS = ("plain", "trade-off", "mle")
"""The metric at the sampled rank, Krichene & Rendle's correction, the most likely true ranks."""
AUTO = "auto"
"""The estimator is picked by the rule of `sampled_rule`."""
BLIND = 2.0
"""Items per drawn other from which on a remark says what the sample cannot see."""


@dataclass(frozen=True)
class SampledSettings:
    """How sampled ranks are corrected, and users drawn anew."""

    estimator: str
    estimators: tuple[str, ...]
    gamma: float
    iterations: int | None
    adaptive: bool
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
        choose("estimator", self.estimator, (AUTO, *ESTIMATORS))
        if self.adaptive and {*self.estimators, self.estimator} - {AUTO, "mle"}:
            raise SettingError(
                "with adaptive sampling mle is the only estimator: all others take the number of "
                "drawn others as fixed before anything is seen"
            )
        check_gamma(self.gamma)
        if self.iterations is not None:
            as_count("iterations", self.iterations)
        as_count("bootstrap", self.bootstrap, least=0)
        check_share("level", self.level)


@dataclass(frozen=True, eq=False)
class SampledRanks:
    """Sampled ranks of systems."""

    systems: tuple[str, ...]
    ranks: F64
    """Systems x lists."""
    full: F64 | None
    """Systems x lists, where known."""
    items: I64
    n: I64
    """Systems x lists."""
    owner: I64

    def sample(self, replacement: bool) -> Sample:
        """Return how large the samples are."""
        share = np.broadcast_to(self.n / np.maximum(self.items - 1, 1), self.ranks.shape)
        first = self.ranks == 1
        return Sample(
            items=int(self.items.max()),
            share=float(np.median(share)),
            first_share=float(np.median(share[first] if first.any() else share)),
            known=bool((self.n == self.items - 1).all()) and not replacement,
        )


def average_sampled(
    by_label: Mapping[str, Metric],
    data: SampledRanks,
    settings: SampledSettings,
    notes: Sequence[str],
) -> Sampled:
    """Count for every list what each estimator counts, and average."""
    metrics = list(by_label.values())
    sample = data.sample(settings.replacement)
    fixed = [settled(metric, sample, settings.adaptive) for metric in metrics]
    columns = _columns(settings, fixed)
    users = int(data.owner.max()) + 1
    # The last estimator is the truth.
    sums = np.full((users, len(metrics), len(columns) + 1, len(data.systems)), np.nan)
    direct = [name for name in columns if name != "mle"]
    tables = _Tables.of(metrics, data, direct, settings) if direct else None
    groups: SampleGroups | None = None
    for s in range(len(data.systems)):
        parts: dict[str, F64] = {}
        if tables is not None:
            parts |= dict(zip(direct, tables.values(data.ranks[s]), strict=True))
        if "mle" in columns:
            if groups is None or not np.array_equal(data.n[s], data.n[s - 1]):
                groups = SampleGroups.of(
                    data.items, data.n[s], settings.replacement, settings.adaptive
                )
            with one_blas_thread():
                parts["mle"] = most_likely_values(
                    metrics, data.ranks[s], data.items, data.n[s], groups, settings.iterations
                )
        values = [parts[name] for name in columns]
        if data.full is not None:
            true = data.full[s]
            exact = np.stack([values_in_lists(metric, true, data.items) for metric in metrics])
            values.append(np.where(np.isnan(true), 0.0, exact))
        for e, column in enumerate(values):
            for m in range(len(metrics)):
                sums[:, m, e, s] = np.bincount(data.owner, column[m], users)
    counts = np.bincount(data.owner, minlength=users).astype(np.float64)
    picks = _picks(settings, fixed, columns, sums, counts, data.systems)
    picks = tuple(
        replace(pick, no_interval=why_no_interval(metric, sample))
        for pick, metric in zip(picks, metrics, strict=True)
    )
    more = [*notes, *_remarks(sample, groups)]
    return _averaged(data.systems, tuple(by_label), columns, picks, sums, counts, settings, more)


def _columns(settings: SampledSettings, fixed: Sequence[Pick | None]) -> tuple[str, ...]:
    """Return the estimators to compute: those asked for, and those that the pick is between."""
    names = list(settings.estimators)
    if settings.estimator != AUTO:
        names.append(settings.estimator)
    else:
        names += [pick.estimator for pick in fixed if pick is not None]
        if None in fixed:
            names += ["trade-off", "mle"]
    return tuple(dict.fromkeys(names))


def _picks(
    settings: SampledSettings,
    fixed: Sequence[Pick | None],
    columns: tuple[str, ...],
    sums: F64,
    counts: F64,
    systems: tuple[str, ...],
) -> tuple[Pick, ...]:
    """Return the estimator of each metric whose values are the estimate."""
    if settings.estimator != AUTO:
        return tuple(Pick(settings.estimator, "as asked for") for _ in fixed)
    picks = []
    for m, pick in enumerate(fixed):
        if pick is None:
            likely, traded = (columns.index(name) for name in ("mle", "trade-off"))
            pick = compare(sums[:, m, likely] - sums[:, m, traded], counts, systems)
        picks.append(pick)
    return tuple(picks)


def _remarks(sample: Sample, groups: SampleGroups | None) -> list[str]:
    """Return what a reader must know of the sample."""
    remarks = []
    ratio = 1 / sample.first_share
    if ratio >= BLIND:
        remarks.append(
            f"a relevant item that stands first in its sample may have any rank up to about "
            f"{round(ratio):,} (items per drawn other), or more: how a system does among these is "
            "inferred from the ranks beyond, and intervals do not hold the error of that"
        )
    if groups is not None and groups.merged:
        remarks.append(
            f"lists have {groups.merged:,} different numbers of items; mle puts lists of similar "
            f"numbers together ({counted(len(groups), 'class', 'classes')})"
        )
    return remarks


@dataclass(frozen=True, eq=False)
class _Tables:
    """What each sampled rank counts, for every number of items and of drawn others."""

    rows: list[I64]
    """The lists of each table."""
    tables: list[F64]
    """Estimators x metrics x sampled ranks."""

    @classmethod
    def of(
        cls,
        metrics: Sequence[Metric],
        data: SampledRanks,
        names: Sequence[str],
        settings: SampledSettings,
    ) -> _Tables:
        """Work a table out for each number of items and others: the same for all systems."""
        n = data.n[0]
        if not (data.n == n).all():
            raise SettingError(
                f"{names[0]} needs the same number of drawn others for every system; say "
                "adaptive=True where it depends on what was seen"
            )
        pairs, kind = np.unique(np.stack([data.items, n]), axis=1, return_inverse=True)

        def counted_for(column: int) -> F64:
            items, others = (int(number) for number in pairs[:, column])
            return np.stack([_counted(name, metrics, items, others, settings) for name in names])

        tables = map_blocks(counted_for, range(pairs.shape[1]), settings.threads, size=1 << 20)
        return cls(rows_by_kind(kind.ravel(), pairs.shape[1]), tables)

    def values(self, ranks: F64) -> F64:
        """Return estimators x metrics x lists of one system."""
        out = np.empty((*self.tables[0].shape[:2], ranks.size))
        for rows, table in zip(self.rows, self.tables, strict=True):
            here = ranks[rows]
            seen = np.where(np.isnan(here), 1, here).astype(np.int64) - 1
            out[:, :, rows] = np.where(np.isnan(here), 0.0, table[:, :, seen])
        return out


def _counted(
    name: str, metrics: Sequence[Metric], items: int, n: int, settings: SampledSettings
) -> F64:
    """Return metrics x sampled ranks: what an estimator counts for each sampled rank."""
    if name == "trade-off":
        return trade_off(metrics, items, n, settings.gamma, settings.replacement)
    return np.stack([value_at(metric, np.arange(1, n + 2), n + 1) for metric in metrics])


def _averaged(
    systems: tuple[str, ...],
    metrics: tuple[str, ...],
    columns: tuple[str, ...],
    picks: tuple[Pick, ...],
    sums: F64,
    counts: F64,
    settings: SampledSettings,
    notes: Sequence[str],
) -> Sampled:
    """Average sums per user over all lists, and over draws of users."""
    mean = sums.sum(axis=0) / counts.sum()
    means = _drawn_means(sums, counts, settings)
    value, full = mean[:, :-1], mean[:, -1]
    low, high = percentile_interval(means[:, :, :-1], settings.level)
    gaps = means[:, :, :-1] - means[:, :, -1:]
    gap_low, gap_high = percentile_interval(gaps, settings.level)
    tau, distance = (np.full((*value.shape[:2], 3), np.nan) for _ in range(2))
    if not np.isnan(full).all():
        distance[..., 0] = np.abs(value - full[:, None]).mean(axis=-1)
        distance[..., 1], distance[..., 2] = percentile_interval(
            np.abs(gaps).mean(axis=-1), settings.level
        )
        if len(systems) > 1:
            tau[..., 0] = _taus(mean[None])[0]
            tau[..., 1], tau[..., 2] = percentile_interval(_taus(means), settings.level)
    return Sampled(
        systems=systems,
        metrics=metrics,
        estimators=columns,
        value=value,
        low=low,
        high=high,
        full=full,
        gap_low=gap_low,
        gap_high=gap_high,
        tau=tau,
        distance=distance,
        picks=picks,
        lists=int(counts.sum()),
        users=counts.size,
        gamma=settings.gamma,
        level=settings.level,
        bootstrap=settings.bootstrap,
        notes=tuple(notes),
    )


def _drawn_means(sums: F64, counts: F64, settings: SampledSettings) -> F64:
    """Return the means of draws of users: a ratio of sums, as lists are what is averaged."""
    flat = np.ascontiguousarray(sums.reshape(len(sums), -1))
    weigh = with_replacement(settings.seed, "bootstrap")
    blocks = redraw(
        lambda weights: weights @ flat / (weights @ counts)[:, None],
        weigh,
        settings.bootstrap,
        len(sums),
        threads=settings.threads,
    )
    drawn = np.concatenate(blocks) if blocks else np.empty((0, flat.shape[1]))
    return drawn.reshape(settings.bootstrap, *sums.shape[1:])


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
