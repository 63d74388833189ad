"""All pairs of systems within each segment of users: what `compare(…, by=…)` computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.checks import choose
from unskew.errors import SettingError
from unskew.report.text import counted
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.interaction import Interaction, interaction
from unskew.stats.mean_intervals import difference_interval
from unskew.stats.p_values import TestSettings, p_values
from unskew.stats.pairing import Paired
from unskew.stats.samples import PairedSample, Pairs, sample
from unskew.stats.segment_comparison import SegmentComparison
from unskew.stats.segments import Segmentation

HELD = 1 << 26
"""Bytes of differences that are tested at a time."""
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class _Metric:
    """One metric: values users x systems, NaN where a user is left out."""

    label: str
    better: str
    values: F64
    kept: Mask
    """Whether each user has a value of every system."""


@dataclass(frozen=True, eq=False)
class _Part:
    """All pairs on one metric in one segment."""

    metric: _Metric
    segment: str
    held: PairedSample | None
    """None: no user has a value."""
    p: F64

    @property
    def users(self) -> int:
        return 0 if self.held is None else self.held.users


def compare_segments(
    pairing: Paired,
    labels: list[str],
    pairs: Pairs,
    segments: Segmentation,
    settings: TestSettings,
) -> SegmentComparison:
    """Compare the pairs within each segment, and test whether differences differ between them.

    Parameters
    ----------
    pairing
        The values per user.
    labels
        The metrics.
    pairs
        Which systems are compared with which.
    segments
        Of the users of `pairing`.
    settings
        Of `compare`; corrections that need permutations and `rope` are refused.
    """
    if settings.correction is not None:
        choose("correction (with by=…)", settings.correction, CORRECTIONS)
    if settings.rope is not None:
        raise SettingError("rope=… does not go with by=…: leave one of them out")
    metrics = [_metric(pairing, label) for label in labels]
    parts = [
        _part(one, number, pairs, segments, settings)
        for one in metrics
        for number in range(len(segments.names))
    ]
    families = [parts] if settings.family == "all" else _by_metric(parts, labels)
    tables = [_table(family, pairs, pairing.systems, settings) for family in families]
    tests = [_interaction(one, pairs, segments, settings) for one in metrics]
    rows = pl.concat(tables)
    return SegmentComparison(
        systems=pairing.systems,
        metrics=tuple(labels),
        better={label: pairing.better[label] for label in labels},
        by=segments.by,
        rule=segments.rule,
        segments=segments.names,
        users={
            label: {part.segment: part.users for part in parts if part.metric.label == label}
            for label in labels
        },
        rows=rows,
        tests=_tests(metrics, tests, pairs, rows, settings),
        test=settings.test,
        alternative=settings.alternative,
        correction=settings.correction,
        family=settings.family,
        confidence=settings.confidence,
        interval=settings.interval,
        level=1 - (1 - settings.confidence) / max(_tested(families[0], pairs), 1),
        permutations=settings.permutations,
        shuffles=tests[0].shuffles,
        seed=settings.seed,
        notes=(*pairing.rules, *pairing.notes, *segments.notes, *_left_out(metrics, parts)),
    )


def _metric(pairing: Paired, label: str) -> _Metric:
    matrix = pairing.matrix(label)
    kept: Mask = np.logical_not(np.isnan(matrix).any(axis=1))
    left = int(kept.size - kept.sum())
    if left and left < len(matrix):
        matrix *= (len(matrix) - left) / len(matrix)  # as in `Paired.complete`
    return _Metric(label, pairing.better[label], matrix, kept)


def _part(
    one: _Metric, number: int, pairs: Pairs, segments: Segmentation, settings: TestSettings
) -> _Part:
    values = one.values[(segments.code == number) & one.kept]
    name = segments.names[number]
    if not len(values):
        return _Part(one, name, None, np.full(len(pairs), np.nan))
    held = sample(values, pairs, f"{one.label}, {name}", settings.threads)
    if held.users < 2:
        return _Part(one, name, held, np.full(len(pairs), np.nan))
    plain = replace(settings, correction=None, family="metric", progress=None)
    p, _, _ = p_values([held], [settings.side(one.better)], plain)
    if settings.progress is not None:
        settings.progress(number + 1, len(segments.names))
    return _Part(one, name, held, p[0])


def _by_metric(parts: Sequence[_Part], labels: Sequence[str]) -> list[list[_Part]]:
    return [[part for part in parts if part.metric.label == label] for label in labels]


def _tested(family: Sequence[_Part], pairs: Pairs) -> int:
    """Return how many differences a family has that an interval can be given for."""
    return len(pairs) * sum(part.users > 1 for part in family)


def _table(
    family: Sequence[_Part], pairs: Pairs, systems: tuple[str, ...], settings: TestSettings
) -> pl.DataFrame:
    """Return a row per metric, pair and segment, corrected over all of them."""
    share = (1 - settings.confidence) / max(_tested(family, pairs), 1)
    simultaneous = replace(settings, confidence=1 - share, progress=None)
    table = pl.concat([_rows(part, pairs, systems, simultaneous) for part in family])
    p = table["p"].to_numpy()
    corrected = p if settings.correction is None else correct(p, settings.correction)
    significant = pl.col("p_corrected") <= 1 - settings.confidence + _EQUAL
    # Parts are by segment, then by pair: read them pair by pair.
    return (
        table.with_columns(p_corrected=pl.Series(corrected))
        .with_columns(significant=pl.col("p_corrected").is_not_nan() & significant)
        .sort("_metric", "_pair", maintain_order=True)
        .drop("_metric", "_pair")
        .with_columns(pl.selectors.float().fill_nan(None))
    )


def _rows(
    part: _Part, pairs: Pairs, systems: tuple[str, ...], settings: TestSettings
) -> pl.DataFrame:
    held, count = part.held, len(pairs)
    names = ("mean_a", "mean_b", "difference", "se", "low", "high")
    numbers = dict.fromkeys(names, np.full(count, np.nan))
    if held is not None:
        low, high = difference_interval(held, settings)
        means = held.means[pairs.one], held.means[pairs.other]
        several = (*means, held.difference, held.standard_error, low, high)
        numbers = dict(zip(names, several, strict=True))
    return pl.DataFrame(
        {
            "_metric": [part.metric.label] * count,
            "_pair": np.arange(count),
            "metric": [part.metric.label] * count,
            "a": [systems[i] for i in pairs.one],
            "b": [systems[i] for i in pairs.other],
            "segment": [part.segment] * count,
            "users": [part.users] * count,
            **numbers,
            "p": part.p,
        }
    )


def _interaction(
    one: _Metric, pairs: Pairs, segments: Segmentation, settings: TestSettings
) -> Interaction:
    """Test all pairs, as many at a time as fit in memory: shuffles are the same for all."""
    values, code = one.values[one.kept], segments.code[one.kept]
    step = max(1, HELD // (8 * max(len(values), 1)))
    parts = []
    for low in range(0, len(pairs), step):
        first, second = pairs.one[low : low + step], pairs.other[low : low + step]
        differences = values[:, first] - values[:, second]
        parts.append(interaction(differences, code, seed=settings.seed, threads=settings.threads))
    return replace(
        parts[0],
        statistic=np.concatenate([part.statistic for part in parts]),
        p=np.concatenate([part.p for part in parts]),
    )


def _tests(
    metrics: Sequence[_Metric],
    tests: Sequence[Interaction],
    pairs: Pairs,
    rows: pl.DataFrame,
    settings: TestSettings,
) -> pl.DataFrame:
    """Return a row per metric and pair: the interaction test and the worst segment."""
    parts = []
    for one, test in zip(metrics, tests, strict=True):
        mine = rows.filter(pl.col("metric") == one.label)
        sign = {"higher": 1, "lower": -1, "neither": None}[one.better]
        worst = _worst(mine, sign)
        p = test.p
        if settings.family == "metric" and settings.correction is not None:
            p = correct(p, settings.correction)
        overall = one.values[one.kept].mean(axis=0)
        frame = mine.select("metric", "a", "b").unique(maintain_order=True)
        parts.append(
            frame.with_columns(
                difference=pl.Series(overall[pairs.one] - overall[pairs.other]),
                segments=pl.lit(test.segments),
                statistic=pl.Series(test.statistic),
                p=pl.Series(test.p),
                p_corrected=pl.Series(p),
            ).hstack(worst)
        )
    table = pl.concat(parts)
    if settings.family == "all" and settings.correction is not None:
        corrected = correct(table["p"].to_numpy(), settings.correction)
        table = table.with_columns(p_corrected=pl.Series(corrected))
    finite = pl.when(pl.col("statistic").is_finite()).then("statistic")
    return table.with_columns(statistic=finite, p=pl.col("p").fill_nan(None)).with_columns(
        p_corrected=pl.col("p_corrected").fill_nan(None)
    )


def _worst(rows: pl.DataFrame, sign: int | None) -> pl.DataFrame:
    """Return the segment in which the first system of each pair does worst against the second."""
    names: list[str | None] = []
    values: list[float | None] = []
    for _, pair in rows.group_by("a", "b", maintain_order=True):
        known = pair.filter(pl.col("users") > 1)
        if sign is None or not known.height:
            names.append(None)
            values.append(None)
            continue
        at = int((known["difference"] * sign).arg_min() or 0)
        names.append(known["segment"][at])
        values.append(known["difference"][at])
    return pl.DataFrame(
        {
            "worst_segment": pl.Series(names, dtype=pl.String),
            "worst_difference": pl.Series(values, dtype=pl.Float64),
        }
    )


def _left_out(metrics: Sequence[_Metric], parts: Sequence[_Part]) -> list[str]:
    lines = []
    lost = {one.label: int(np.count_nonzero(~one.kept)) for one in metrics}
    names = ", ".join(f"{count:,} of {label}" for label, count in lost.items() if count)
    if names:
        lines.append(f"users left out because a value is undefined: {names}")
    small = [f"{part.segment} ({part.metric.label})" for part in parts if part.users < 2]
    if small:
        what = counted(len(small), "segment has", "segments have")
        lines.append(f"{what} fewer than 2 users: no interval, no p: {', '.join(small)}")
    return lines
