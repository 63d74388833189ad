"""The engine of sampled metrics: what each estimator counts for each list, averaged over users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import as_count, check_share, choose
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import SettingError
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import Metric
from unskew.report.columns import (
    DIFFERENCE,
    HIGH,
    LOW,
    METRIC,
    NOTE,
    QUANTITY,
    SYSTEM,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.clusters import variance_of
from unskew.stats.correlation import kendall, rounded
from unskew.stats.resampling import percentile_interval, redraw, with_replacement
from unskew.unbiased.sampled.expected_metrics import (
    check_gamma,
    rows_by_kind,
    trade_off,
    values_in_lists,
)
from unskew.unbiased.sampled.rank_shares import SampleGroups, most_likely_values

BOOTSTRAP, LEVEL = 1_000, 0.95
ESTIMATORS = ("plain", "trade-off", "mle")
"""The metric at the sampled rank, Krichene & Rendle's correction, the most likely true ranks."""
AUTO = "auto"
"""The estimator is chosen by rule: `choice_without_test`, else `choice_by_test`."""
BLIND = 2.0
"""Items per drawn other from which on a remark says what the sample cannot see."""
_ESTIMATOR = Column("estimator", "key")
SAMPLED = Question(
    name="estimates among all items",
    columns=(
        *(METRIC, SYSTEM, Column("value", "value", "estimate"), LOW, HIGH),
        *(Column("full", "fact", "all items"), NOTE),
    ),
    method=Method(
        estimand="the mean over lists of the metric of the rank among all items",
        interval="percentile bootstrap",
    ),
    display=("", "estimators", "agreement"),
    figures=(Drawing("sampled", "forest"), Drawing("gaps", "forest", "gaps")),
)
ALL_ESTIMATORS = Question(
    name="all estimators",
    columns=(METRIC, SYSTEM, _ESTIMATOR, VALUE, LOW, HIGH),
    method=SAMPLED.method,
    across="estimator",
)
"""All have intervals here, also where these do not hold the bias."""
GAPS = Question(
    name="estimate less the value among all items",
    columns=(METRIC, SYSTEM, _ESTIMATOR, *DIFFERENCE),
    method=Method(estimand="the estimate less the value among all items"),
)
AGREEMENT = Question(
    name="how near to the values among all items",
    columns=(METRIC, _ESTIMATOR, QUANTITY, VALUE, LOW, HIGH),
    quantities=(Column("tau", "value", "τ"), Column("distance", "value", "mean distance")),
    method=SAMPLED.method,
)
"""Kendall's τ_b of the order of systems with that by full values, and the mean of |gap|."""


@dataclass(frozen=True)
class SampledSettings:
    """How sampled ranks are corrected, and users drawn anew."""

    estimator: str
    estimators: tuple[str, ...]
    gamma: float
    iterations: int | None
    adaptive: bool
    replacement: bool
    resamples: int
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
        as_count("resamples", self.resamples, least=0)
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
) -> Estimates:
    """Count for every list what each estimator counts, and average."""
    metrics = list(by_label.values())
    sample = data.sample(settings.replacement)
    requested = None
    if settings.estimator != AUTO:
        requested = Choice(settings.estimator, "as asked for")
    fixed = [
        requested or choice_without_test(metric, sample, settings.adaptive) for metric in metrics
    ]
    tested = ("trade-off", "mle") if None in fixed else ()
    used = (*settings.estimators, *(choice.estimator for choice in fixed if choice), *tested)
    columns = tuple(dict.fromkeys(used))
    sums, groups = _sums(metrics, data, columns, settings)
    counts = np.bincount(data.owner).astype(np.float64)
    choices = {
        label: choice or _tested(sums[:, m], columns, counts, data.systems)
        for m, (label, choice) in enumerate(zip(by_label, fixed, strict=True))
    }
    lists = int(counts.sum())
    lines = [
        f"means over {counted(lists, 'list')} of {counted(counts.size, 'user')}; one relevant item "
        "in each",
        *(
            f"{label}: the estimate is {name}, {reason}"
            for label, (name, reason) in choices.items()
        ),
        *([f"trade-off: gamma = {settings.gamma:g}"] if "trade-off" in columns else []),
    ]
    method, unclear = replace(SAMPLED.method, interval=""), dict.fromkeys(by_label, "")
    if settings.resamples:
        method = replace(SAMPLED.method, level=settings.level, draws=settings.resamples)
        unclear = {label: why_no_interval(metric, sample) for label, metric in by_label.items()}
        lines += [f"{label}: no interval, because {why}" for label, why in unclear.items() if why]
    mean, draws = sums.sum(axis=0) / counts.sum(), _drawn_means(sums, counts, settings)
    keys = {"metric": list(by_label), "system": data.systems, "estimator": columns}
    parts = _parts(keys, mean, draws, settings.level, method)
    metric = pl.col("metric")
    chosen = {label: choice.estimator for label, choice in choices.items()}
    is_unclear = metric.is_in([label for label, why in unclear.items() if why])
    rows = parts["estimators"].rows.filter(pl.col("estimator") == metric.replace_strict(chosen))
    return Estimates.of_rows(
        SAMPLED if "gaps" in parts else replace(SAMPLED, figures=SAMPLED.figures[:1]),
        rows.with_columns(
            pl.when(~is_unclear).then(pl.col("low", "high")),
            full=pl.Series(mean[:, -1].ravel()),
            note=pl.when(is_unclear).then(pl.lit("error is mostly bias")),
        ),
        method=replace(method, seed=settings.seed),
        explanation=tuple(lines),
        notes=(*notes, *_remarks(sample, groups)),
        parts=parts,
        card={
            "lists": lists,
            "users": counts.size,
            "gamma": settings.gamma,
            "estimator": chosen,
            "better": {label: metric.better for label, metric in by_label.items()},
        },
    )


def _parts(
    keys: Mapping[str, Sequence[str]], mean: F64, drawn: F64, level: float, method: Method
) -> dict[str, Estimates]:
    """Return all estimators and, if full values are known, how near they come to these.

    `mean` is metrics x estimators x systems, the last estimator the full value; `drawn` has the
    same of each draw of users.
    """

    def table(value: F64, draws: F64, *names: str) -> pl.DataFrame:
        low, high = percentile_interval(draws, level)
        columns = zip(*product(*(keys[name] for name in names)), strict=True)
        numbers = {"value": value.ravel(), "low": low.ravel(), "high": high.ravel()}
        return pl.DataFrame({**dict(zip(names, columns, strict=True)), **numbers})

    value, draws = (means[..., :-1, :].swapaxes(-1, -2) for means in (mean, drawn))
    full, full_draws = (means[..., -1, :, None] for means in (mean, drawn))
    parts = {
        "estimators": Estimates.of_rows(ALL_ESTIMATORS, table(value, draws, *keys), method=method)
    }
    if np.isnan(full).all():
        return parts
    measures = {"tau": _taus, "distance": _distances}
    nearness = pl.concat(
        table(measure(mean[None])[0], measure(drawn), "metric", "estimator").with_columns(
            quantity=pl.lit(name)
        )
        for name, measure in measures.items()
        if name != "tau" or len(keys["system"]) > 1
    )
    gaps = table(value - full, draws - full_draws, *keys)
    parts["gaps"] = Estimates.of_rows(GAPS, gaps, method=method)
    parts["agreement"] = Estimates.of_rows(AGREEMENT, nearness, method=method)
    return parts


def _sums(
    metrics: Sequence[Metric],
    data: SampledRanks,
    columns: Sequence[str],
    settings: SampledSettings,
) -> tuple[F64, SampleGroups | None]:
    """Return users x metrics x estimators x systems, summed over lists; the last is the truth."""
    users = int(data.owner.max()) + 1
    sums = np.full((users, len(metrics), len(columns) + 1, len(data.systems)), np.nan)
    direct = [name for name in columns if name != "mle"]
    tables = _tables(metrics, data, direct, settings) if direct else []
    groups: SampleGroups | None = None
    for s, ranks in enumerate(data.ranks):
        values = np.zeros((len(columns), len(metrics), ranks.size))
        for rows, table in tables:
            ranked = rows[~np.isnan(ranks[rows])]
            seen = ranks[ranked].astype(np.int64) - 1
            for name, of_name in zip(direct, table, strict=True):
                values[columns.index(name)][:, ranked] = of_name[:, seen]
        if "mle" in columns:
            if groups is None or not np.array_equal(data.n[s], data.n[s - 1]):
                groups = SampleGroups.of(
                    data.items, data.n[s], settings.replacement, settings.adaptive
                )
            with one_blas_thread():
                values[columns.index("mle")] = most_likely_values(
                    metrics, ranks, data.items, data.n[s], groups, settings.iterations
                )
        by_estimator = list(values)
        if data.full is not None:
            true = data.full[s]
            exact = np.stack([values_in_lists(metric, true, data.items) for metric in metrics])
            by_estimator.append(np.where(np.isnan(true), 0.0, exact))
        for e, column in enumerate(by_estimator):
            for m in range(len(metrics)):
                sums[:, m, e, s] = np.bincount(data.owner, column[m], users)
    return sums, groups


def _tested(sums: F64, columns: Sequence[str], counts: F64, systems: Sequence[str]) -> Choice:
    """Choose by users x estimators x systems, summed over lists."""
    likely, traded = (sums[:, columns.index(name)] for name in ("mle", "trade-off"))
    return choice_by_test(likely - traded, counts, systems)


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


def _tables(
    metrics: Sequence[Metric], data: SampledRanks, names: Sequence[str], settings: SampledSettings
) -> list[tuple[I64, F64]]:
    """Return, for each number of items and of drawn others, its lists and what a rank counts.

    Estimators x metrics x sampled ranks, the same for all systems.
    """
    n = data.n[0]
    if not (data.n == n).all():
        raise SettingError(
            f"{names[0]} needs the same number of drawn others for every system; say "
            "adaptive=True where it depends on what was seen"
        )
    pairs, kind = np.unique(np.stack([data.items, n]), axis=1, return_inverse=True)

    def counted_for(column: int) -> F64:
        items, others = (int(number) for number in pairs[:, column])
        plain = [value_at(metric, np.arange(1, others + 2), others + 1) for metric in metrics]
        corrected = (settings.gamma, settings.replacement)
        return np.stack(
            [
                trade_off(metrics, items, others, *corrected) if name == "trade-off" else plain
                for name in names
            ]
        )

    tables = map_blocks(counted_for, range(pairs.shape[1]), settings.threads, size=1 << 20)
    return list(zip(rows_by_kind(kind.ravel(), pairs.shape[1]), tables, strict=True))


def _distances(means: F64) -> F64:
    """Return draws x metrics x estimators: the mean over systems of |estimate - full value|."""
    distances: F64 = np.abs(means[:, :, :-1] - means[:, :, -1:]).mean(axis=-1)
    return distances


def _drawn_means(sums: F64, counts: F64, settings: SampledSettings) -> F64:
    """Return the means of draws of users: a ratio of sums, as lists are what is averaged."""
    flat = np.ascontiguousarray(sums.reshape(len(sums), -1))
    weigh = with_replacement(settings.seed, "bootstrap")
    blocks = redraw(
        lambda weights: weights @ flat / (weights @ counts)[:, None],
        weigh,
        settings.resamples,
        len(sums),
        threads=settings.threads,
    )
    draws = np.concatenate(blocks) if blocks else np.empty((0, flat.shape[1]))
    return draws.reshape(settings.resamples, *sums.shape[1:])


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


# The choice of an estimator


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


class Choice(NamedTuple):
    """The estimator that is taken for a metric, and why, as the end of a sentence."""

    estimator: str
    reason: str


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


def choice_without_test(metric: Metric, sample: Sample, adaptive: bool) -> Choice | None:
    """Return the choice where nothing is left to test, whatever the sampled ranks are.

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
        return Choice("plain", "because the lists hold all items: nothing is left to correct")
    if adaptive:
        return Choice(
            "mle",
            "because the numbers of drawn others depend on what was seen, which only the "
            "likelihood allows for",
        )
    if form is not None and form.draws_change_nothing:
        return Choice("plain", "because a sample does not change its expectation")
    ranks = ranks_looked_at(metric, sample.items)
    expected = ranks * sample.share
    if expected < LEAST_SHOWN:
        return Choice(
            "trade-off",
            f"because {metric} hangs on the first ranks (about {ranks:.1f}), and a sample holds "
            f"{expected:.3f} of these in the mean, fewer than {LEAST_SHOWN:g}: too few to tell mle "
            "from it",
        )
    return None


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
    residual = sums - mean * counts[:, None]
    error = np.sqrt(variance_of(residual, len(counts))) / lists
    tiny = 1e-9  # differences of rounding are none
    return np.where(np.abs(mean) <= tiny, 0.0, np.abs(mean) / np.maximum(error, tiny))


def choice_by_test(sums: F64, counts: F64, systems: Sequence[str]) -> Choice:
    """Choose the trade-off, or `mle` where it differs from it beyond chance for some system.

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
        return Choice(
            "trade-off",
            f"because there are fewer than {LEAST_USERS} users: mle needs more to be trusted",
        )
    errors = difference_in_errors(sums, counts)
    limit = NormalDist().inv_cdf(1.0 - ALARM / (2 * len(systems)))
    index = int(np.argmax(errors))
    if errors[index] <= limit:
        return Choice(
            "trade-off",
            f"because mle differs from it by at most {errors[index]:.2f} standard errors, which is "
            f"not more than {limit:.2f}",
        )
    return Choice(
        "mle",
        f"because it differs from the trade-off by {errors[index]:.2f} standard errors for "
        f"{systems[index]}, which is more than {limit:.2f}",
    )
