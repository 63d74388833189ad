"""`group_gaps`: how far groups of users are apart, which is worst, how unequal users are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import check_share, checked, choose
from unskew.engine.progress import Progress, Steps, notebook_progress
from unskew.errors import DataError, SettingError, unknown_name
from unskew.stats.compare.group_gaps_result import (
    LEAST_OTHERS,
    LEAST_USERS,
    REST,
    GroupData,
    GroupGaps,
    against_best,
    gap_columns,
    independent,
    p_of_pairs,
    pairs_of,
    sides_of,
)
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.inequality import Inequality, atkinson, gini, group_atkinson, group_gini
from unskew.stats.intervals.skewed import group_means, intervals, of_means
from unskew.stats.pairing import (
    Paired,
    Source,
    known_metric,
    paired_values,
    users_left_out,
    values_of_users,
)
from unskew.stats.resampling import chosen_metrics
from unskew.stats.segments import Segmentation, segments_of
from unskew.stats.tests.group_shuffles import (
    MOST_SHUFFLED,
    ShuffledGroups,
    interaction,
    shuffle_groups,
)

AGAINST = ("rest", "best", "pairs")


@dataclass(frozen=True)
class _GapSettings:
    against: str
    reference: str | None
    correction: str | None
    confidence: float
    epsilon: float
    seed: int
    threads: int | None


@dataclass(frozen=True, eq=False)
class _GroupPart:
    """Tables of one metric."""

    groups: pl.DataFrame
    gaps: pl.DataFrame
    summary: pl.DataFrame
    left_out: int
    shuffles: int
    users: int


@notebook_progress("group gaps")
@checked
def group_gaps(
    scores: Source,
    by: object,
    metric: str | Sequence[str] | None = None,
    *,
    against: str = "rest",
    groups: int | None = None,
    least_users: int | None = None,
    correction: str | None = "holm",
    confidence: float = 0.95,
    epsilon: float = 0.5,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> GroupGaps:
    """Compare groups of users on every metric, system by system.

    Means of groups with intervals that hold together, differences and ratios between groups with
    intervals and permutation tests, the worst group, and how unequal users and groups are.

    Parameters
    ----------
    scores
        Judged data (`judge`), which are evaluated here; what `evaluate` gave, or a list of such
        for several folds; or values per user from elsewhere (see `paired`).
    by
        What divides users: as in `compare`, `activity`, `popularity`, `time`, `FILE:COLUMN` of a
        file of users, or a table with a column of users and one other column.
    metric
        One or several labels; every metric that has a value per user unless given.
    against
        What each group is compared with: `rest`, the users outside it; `best`, the group with the
        best mean, which the data choose, so that everything is corrected for all pairs; `pairs`,
        every other group; or the name of a group.
    groups
        Into how many quantile groups numbers are cut, 4 unless given.
    least_users
        Groups of a text column with fewer users are merged into `other`; 20 unless given. Groups
        below 20 users are shown without interval and p.
    correction
        Correction for several groups and systems: `holm`, `bonferroni`, `bh`, `by` or none.

        Of p-values over all comparisons and systems of a metric.
    confidence
        Confidence of the intervals.

        Of all intervals of a kind and metric together (Bonferroni), and of Gini and Atkinson each.
    epsilon
        Aversion to inequality of Atkinson's index, above 0 and below 1.
    seed
        Of the shuffles.
    threads
        Never changes a number.
    progress
        Called with how many metrics are done, of how many.

    References
    ----------
    Hall (JRSS B 54, 1992): skewness of t. Zhou and Dinh (Biostatistics 6, 2005): of differences.
    Fieller (JRSS B 16, 1954): ratios. Janssen (Statistics & Probability Letters 36, 1997):
    studentised permutation. Atkinson (Journal of Economic Theory 2, 1970).

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> import unskew as us
    >>> user = np.arange(200)
    >>> values = {"user": user, "mine": np.where(user % 2, 0.2, 0.5) + 0.1 * np.sin(user)}
    >>> side = {"user": user, "side": np.where(user % 2, "odd", "even")}
    >>> gaps = us.stats.group_gaps(values, side)
    >>> gaps.table().select("group", "against", pl.col("difference").round(4)).row(0)
    ('even', 'rest', 0.3003)
    >>> gaps.summary().select("worst_group").item()
    'odd'
    """
    if correction is not None:
        choose("correction", correction, CORRECTIONS)
    check_share("confidence", confidence)
    check_share("epsilon", epsilon)
    pairing, judged = paired_values(scores, metric, threads)
    cut = {"groups": groups, "least_users": least_users}
    segments = segments_of(pairing.users, by, judged=judged, scores=pairing.parts, **cut)
    reference = None
    if against not in AGAINST:
        if against not in segments.names:
            raise unknown_name("against", against, (*AGAINST, *segments.names))
        reference = against
    labels = chosen_metrics(pairing, metric)
    settings = _GapSettings(against, reference, correction, confidence, epsilon, seed, threads)
    steps = Steps(len(labels), progress)
    parts = []
    for label in labels:
        parts.append(_metric(pairing, label, segments, settings))
        steps.advance()
    lost = {label: part.left_out for label, part in zip(labels, parts, strict=True)}
    return GroupGaps(
        systems=pairing.systems,
        metrics=tuple(labels),
        better={label: pairing.better[label] for label in labels},
        by=segments.by,
        rule=segments.rule,
        groups=segments.names,
        against=against,
        means=pl.concat([part.groups for part in parts]),
        rows=pl.concat([part.gaps for part in parts]),
        indices=pl.concat([part.summary for part in parts]),
        correction=correction,
        confidence=confidence,
        epsilon=epsilon,
        shuffles=parts[0].shuffles,
        is_shuffled=max(part.users for part in parts) <= MOST_SHUFFLED,
        seed=seed,
        notes=(*pairing.rules, *pairing.notes, *segments.notes, *users_left_out(lost)),
    )


def _metric(
    pairing: Paired, label: str, segments: Segmentation, settings: _GapSettings
) -> _GroupPart:
    values = values_of_users(pairing, label)
    is_complete = ~np.isnan(values).any(axis=1)
    if not np.isfinite(values[is_complete]).all():
        raise DataError(f"{label}: infinite values cannot be compared")
    # Groups all of whose users are left out have nothing to show.
    used, code = np.unique(segments.code[is_complete], return_inverse=True)
    if used.size < 2:
        raise DataError(f"{label}: fewer than two groups have users with a value")
    names = [segments.names[group] for group in used.tolist()]
    if settings.reference is not None and settings.reference not in names:
        raise SettingError(f"against={settings.reference!r}: no user of it has a value of {label}")
    data = GroupData(np.ascontiguousarray(values[is_complete]), code.astype(np.int64), used.size)
    shuffled = shuffle_groups(
        data.values,
        data.code,
        data.groups,
        key=("rest",),
        seed=settings.seed,
        epsilon=settings.epsilon,
        threads=settings.threads,
    )
    means = _means(data, label, names, pairing.systems, settings)
    gaps = _gaps(data, label, names, pairing, shuffled, settings)
    summary = _summary(data, label, means, pairing, shuffled, settings)
    lost = int(np.count_nonzero(~is_complete))
    return _GroupPart(means, gaps, summary, lost, shuffled.shuffles, len(data.values))


def _means(
    data: GroupData, label: str, names: list[str], systems: tuple[str, ...], settings: _GapSettings
) -> pl.DataFrame:
    """Return a row per system and group; intervals of all of them hold together."""
    of = group_means(data.values, data.code, data.groups)
    comparisons = max(int((data.sizes >= LEAST_USERS).sum()) * len(systems), 1)
    low, high = intervals(of_means(of), 1 - (1 - settings.confidence) / comparisons)
    varied = np.stack([data.others(data.code == group) for group in range(data.groups)], axis=1)
    enough = (data.sizes >= LEAST_USERS) & (varied >= LEAST_OTHERS)
    minimum, maximum = _range(label)
    return pl.DataFrame(
        {
            "metric": [label] * of.mean.size,
            "system": np.repeat(systems, data.groups),
            "group": names * len(systems),
            "users": np.tile(data.sizes.astype(np.int64), len(systems)),
            "varied_users": varied.ravel(),
            "mean": of.mean.ravel(),
            "low": np.where(enough, np.maximum(low, minimum), np.nan).ravel(),
            "high": np.where(enough, np.minimum(high, maximum), np.nan).ravel(),
        }
    ).with_columns(pl.selectors.float().fill_nan(None))


def _range(label: str) -> tuple[float, float]:
    """Return the range of a metric, without limits where it is not known."""
    metric = known_metric(label)
    if metric is None:
        return -np.inf, np.inf
    return metric.definition.low, metric.definition.high


def _gaps(
    data: GroupData,
    label: str,
    names: list[str],
    pairing: Paired,
    shuffled: ShuffledGroups,
    settings: _GapSettings,
) -> pl.DataFrame:
    """Return a row per system and comparison, corrected over all of them."""
    reference = None if settings.reference is None else names.index(settings.reference)
    pairs = pairs_of(data.groups, settings.against, reference)
    tested = independent(data, pairs)
    level = 1 - (1 - settings.confidence) / max(tested * len(pairing.systems), 1)
    p = p_of_pairs(data, pairs, shuffled, settings.seed, settings.threads)
    if data.groups == 2:
        # Two groups are one comparison, seen from both sides: one p, to the last digit.
        p = p[:, :1]
    corrected = p if settings.correction is None else correct(p, settings.correction)
    p, corrected = (np.broadcast_to(part, (len(p), len(pairs))) for part in (p, corrected))
    column_of = {pair: column for column, pair in enumerate(pairs)}
    column_of |= {pair.turned: column for pair, column in column_of.items() if pair.other != REST}
    tables = []
    for row, system in enumerate(pairing.systems):
        alone = replace(data, values=data.values[:, [row]])
        chosen = pairs
        if settings.against == "best":
            chosen = against_best(alone, pairing.better[label], label)
        selected = [column_of[pair] for pair in chosen]
        sides, is_negative = sides_of(alone, chosen), float(alone.values.min()) < 0
        columns = {
            "group": [names[pair.one] for pair in chosen],
            "against": ["rest" if pair.other == REST else names[pair.other] for pair in chosen],
            **gap_columns(sides, level, is_negative=is_negative),
            "p": p[row, selected],
            "p_corrected": corrected[row, selected],
        }
        tables.append(pl.DataFrame({"metric": label, "system": system, **columns}))
    alpha = 1 - settings.confidence + 1e-12
    frame = pl.concat(tables).with_columns(pl.selectors.float().fill_nan(None))
    return frame.with_columns(significant=(pl.col("p_corrected") <= alpha).fill_null(value=False))


def _summary(
    data: GroupData,
    label: str,
    means: pl.DataFrame,
    pairing: Paired,
    shuffled: ShuffledGroups,
    settings: _GapSettings,
) -> pl.DataFrame:
    """Return a row per system: the test of all groups, the worst one, indices of inequality."""
    test = interaction(data.values, data.code, seed=settings.seed, threads=settings.threads)
    corrected = test.p if settings.correction is None else correct(test.p, settings.correction)
    nonnegative = float(data.values.min()) >= 0
    of = group_means(data.values, data.code, data.groups)
    sizes, epsilon = data.sizes, settings.epsilon
    rows = []
    for index, system in enumerate(pairing.systems):
        column = np.ascontiguousarray(data.values[:, index])
        across = nonnegative and float(column.sum()) > 0
        mine = means.filter(pl.col("system") == system)
        rows.append(
            {
                "metric": label,
                "system": system,
                "users": len(column),
                "mean": float(column.mean()),
                "p": float(test.p[index]),
                "p_corrected": float(corrected[index]),
                **_worst(mine, pairing.better[label]),
                **_with_ends("gini", gini(column, settings.confidence)),
                **_with_ends("atkinson", atkinson(column, epsilon, settings.confidence)),
                "group_gini": _index(group_gini(of.mean[index], sizes), across),
                "group_gini_chance": _index(shuffled.chance_gini[index], across),
                "group_atkinson": _index(group_atkinson(of.mean[index], sizes, epsilon), across),
                "group_atkinson_chance": _index(shuffled.chance_atkinson[index], across),
            }
        )
    return pl.DataFrame(rows, schema_overrides=_SUMMARY).with_columns(
        pl.selectors.float().fill_nan(None)
    )


_SUMMARY: dict[str, Any] = {
    "worst_group": pl.String,
    **dict.fromkeys(("worst_mean", "worst_low", "worst_high"), pl.Float64),
    "may_be_worst": pl.List(pl.String),
}


def _with_ends(name: str, index: Inequality) -> dict[str, float]:
    return {name: index.value, f"{name}_low": index.low, f"{name}_high": index.high}


def _index(value: F64, is_defined: bool) -> float:
    return float(value) if is_defined else np.nan


def _worst(rows: pl.DataFrame, better: str) -> dict[str, object]:
    """Return the group with the worst mean, and the interval of the worst of all true means.

    Of the groups with enough users; nothing where one of these has no interval, because it may be
    the worst. From intervals that hold together: the lowest true mean lies between the lowest of
    their lower and the lowest of their upper ends, and a group whose interval is wholly above that
    is not the worst.
    """
    estimated = rows.filter(pl.col("users") >= LEAST_USERS)
    sign = {"higher": 1.0, "lower": -1.0}.get(better)
    if sign is None or not estimated.height or estimated["low"].null_count():
        return dict.fromkeys(_SUMMARY)
    mean, low, high = (estimated[name].to_numpy() * sign for name in ("mean", "low", "high"))
    if sign < 0:
        low, high = high, low
    limits = sorted((sign * float(low.min()), sign * float(high.min())))
    group = estimated["group"].to_list()
    return {
        "worst_group": group[int(np.argmin(mean))],
        "worst_mean": sign * float(mean.min()),
        "worst_low": limits[0],
        "worst_high": limits[1],
        "may_be_worst": [
            name for name, end in zip(group, low, strict=True) if end <= float(high.min())
        ],
    }
