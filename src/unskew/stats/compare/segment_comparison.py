"""`SegmentComparison`: who is better in which segment of users, and whether segments differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.checks import choose
from unskew.errors import SettingError
from unskew.report.charts import Figure
from unskew.report.tables import Table
from unskew.report.text import counted, interval, number, p_value
from unskew.stats.compare.comparison import IN_WORDS, TESTS, ComparedMetrics
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.metric_result import chosen_pair
from unskew.stats.pairing import Paired, PairedSample, Pairs, sample, users_left_out
from unskew.stats.segments import Segmentation
from unskew.stats.tests.group_shuffles import Interaction, interaction
from unskew.stats.tests.p_values import TestSettings, difference_interval, p_values

FIGURES = ("segments",)


@dataclass(frozen=True, eq=False)
class SegmentComparison(ComparedMetrics):
    """All pairs of systems within each segment of users: differences, intervals, p-values.

    Made by `compare` with `by=…`. Means of segments, weighted by their users, add up to the mean
    over all users.
    """

    by: str
    """What users are divided by, in words."""
    rule: str
    """How the segments are formed."""
    segments: tuple[str, ...]
    users: Mapping[str, Mapping[str, int]]
    """How many users were compared, by metric and segment."""
    test: str
    alternative: str
    correction: str | None
    family: str
    permutations: int
    shuffles: int
    """Of the interaction test; 0: by the F distribution alone."""
    confidence: float
    """Of all intervals together."""
    interval: str
    level: float
    """Of each interval alone (Bonferroni)."""
    seed: int
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    tests: pl.DataFrame = field(repr=False)
    """See `interactions`."""
    notes: tuple[str, ...] = ()

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric, pair and segment.

        `a`, `b`, `segment`, `users`, `mean_a`, `mean_b`; `difference` (a less b) with its standard
        error `se` and simultaneous interval `low`, `high`; `p`, `p_corrected`, `significant`.
        Null: fewer than two users.
        """
        return self._of(self.rows, metric)

    def interactions(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and pair: whether the difference differs between segments.

        `difference` over all users; `segments` with two users or more; Welch's F as `statistic`,
        `p` and `p_corrected` of the hypothesis that the mean difference is the same in all
        segments; `worst_segment`, the one of these in which a does worst against b, and
        `worst_difference` there.
        """
        return self._of(self.tests, metric)

    # Text

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return, of each metric, the segments of all pairs and the interaction tests."""
        digits = self.digits if digits is None else digits
        return [
            table
            for label in self.metrics
            for table in (self._display_segments(label, digits), self._display_tests(label, digits))
        ]

    def _display_segments(self, label: str, digits: int) -> Table:
        together = f"{100 * self.confidence:g} % intervals"
        header = ["pair", "segment", "users", "a", "b", "a − b", together, "p"]
        rows = [
            [
                f"a = {row['a']}, b = {row['b']}",
                row["segment"],
                f"{row['users']:,}",
                *(number(row[name], digits) for name in ("mean_a", "mean_b")),
                number(row["difference"], digits, signed=True),
                interval(row["low"], row["high"], digits, signed=True),
                p_value(row["p_corrected"]),
            ]
            for row in self.table(label).iter_rows(named=True)
        ]
        users = counted(sum(self.users[label].values()), "user")
        title = f"{self._heading(label)}, {users} by {self.by}"
        return Table.of_rows(header, rows, left=(0, 1), title=title, once=True)

    def _display_tests(self, label: str, digits: int) -> Table:
        header = ["pair", "a − b, all users", "interaction p", "worst segment of a", "a − b there"]
        rows = [
            [
                f"a = {row['a']}, b = {row['b']}",
                number(row["difference"], digits, signed=True),
                p_value(row["p_corrected"]),
                row["worst_segment"] or "–",
                number(row["worst_difference"], digits, signed=True),
            ]
            for row in self.interactions(label).iter_rows(named=True)
        ]
        title = f"{label}: does the difference differ between segments?"
        return Table.of_rows(header, rows, left=(0, 3), title=title)

    def _explanation(self) -> list[str]:
        return [self.rule, self._interval_note(), self._test_note(), self._interaction_note()]

    def _interval_note(self) -> str:
        kind = {"t": "t", "bca": "BCa bootstrap"}[self.interval]
        return (
            f"{kind} intervals, all of them together at {100 * self.confidence:g} %: each at "
            f"{100 * self.level:.4g} % (Bonferroni over {self._differences()})"
        )

    def _differences(self) -> str:
        tested = self.rows if self.family == "all" else self.table(self.metrics[0])
        number_of = tested.filter(pl.col("users") > 1).height
        metrics = " of all metrics" if self.family == "all" and len(self.metrics) > 1 else ""
        return counted(number_of, "difference") + metrics

    def _test_note(self) -> str:
        note = TESTS[self.test]
        if self.test.startswith("bootstrap"):
            note += f", {self.permutations:,} resamples"
        elif self.test == "randomisation":
            note += f", at most {self.permutations:,} sign patterns"
        if self.alternative != "two-sided":
            note += f", one-sided: {self.alternative}"
        if self.correction is None:
            return f"{note}; p not corrected"
        return f"{note}; p corrected by {IN_WORDS[self.correction]} over {self._differences()}"

    def _interaction_note(self) -> str:
        basis = "the F distribution"
        if self.shuffles:
            basis = f"the larger p of the F distribution and of {self.shuffles:,} shuffles of users"
        tested = self.tests if self.family == "all" else self.interactions(self.metrics[0])
        note = f"interaction: Welch's F test of equal mean differences in all segments, {basis}"
        if self.correction is None or tested.height == 1:
            return note
        return f"{note}; p corrected by {IN_WORDS[self.correction]} over {tested.height:,} pairs"

    def _numbers(self) -> Iterator[str]:
        yield from super()._numbers()
        yield counted(len(self.segments), "segment")

    def _content(self) -> dict[str, object]:
        return self._fields(
            "better",
            "users",
            "tests",
            "notes",
            metrics=self._facts(users=self.users),
            interactions=self.tests,
            notes=self.notes,
        )

    # Figures

    def figure(
        self,
        kind: str = "segments",
        metric: str | None = None,
        pair: tuple[str, str] | None = None,
    ) -> Figure:
        """Draw the difference of a pair in each `segments`, with its simultaneous interval.

        Parameters
        ----------
        kind
            `segments`.
        metric
            The first one unless given.
        pair
            Two systems, in the order of the table; the first pair unless given.
        """
        from unskew.stats.compare import comparison

        choose("figure", kind, FIGURES)
        label = self._label(metric)
        _, rows = chosen_pair(pair, self.table(label))
        notes = [self._interval_note(), f"significant: corrected p at most {self.alpha:g}"]
        return comparison.segment_differences(rows, self.by, label, notes)


HELD = 1 << 26
"""Bytes of differences that are tested at a time."""
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class _SegmentValues:
    """One metric: values users x systems, NaN where a user is left out."""

    label: str
    better: str
    values: F64
    kept: Mask
    """Whether each user has a value of every system."""


@dataclass(frozen=True, eq=False)
class _SegmentPart:
    """All pairs on one metric in one segment."""

    metric: _SegmentValues
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
    metrics = [
        _SegmentValues(label, pairing.better[label], *pairing.scaled(label)) for label in labels
    ]
    parts = [
        _part(metric, number, pairs, segments, settings)
        for metric in metrics
        for number in range(len(segments.names))
    ]
    families = [parts] if settings.family == "all" else _by_metric(parts, labels)
    tables = [_table(family, pairs, pairing.systems, settings) for family in families]
    tests = [_interaction(metric, pairs, segments, settings) for metric in metrics]
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


def _part(
    segment_values: _SegmentValues,
    number: int,
    pairs: Pairs,
    segments: Segmentation,
    settings: TestSettings,
) -> _SegmentPart:
    values = segment_values.values[(segments.code == number) & segment_values.kept]
    name = segments.names[number]
    if not len(values):
        return _SegmentPart(segment_values, name, None, np.full(len(pairs), np.nan))
    segment_sample = sample(values, pairs, f"{segment_values.label}, {name}", settings.threads)
    if segment_sample.users < 2:
        return _SegmentPart(segment_values, name, segment_sample, np.full(len(pairs), np.nan))
    plain = replace(settings, correction=None, family="metric", progress=None)
    p, _, _ = p_values([segment_sample], [settings.side(segment_values.better)], plain)
    if settings.progress is not None:
        settings.progress(number + 1, len(segments.names))
    return _SegmentPart(segment_values, name, segment_sample, p[0])


def _by_metric(parts: Sequence[_SegmentPart], labels: Sequence[str]) -> list[list[_SegmentPart]]:
    return [[part for part in parts if part.metric.label == label] for label in labels]


def _tested(family: Sequence[_SegmentPart], pairs: Pairs) -> int:
    """Return how many differences a family has that an interval can be given for."""
    return len(pairs) * sum(part.users > 1 for part in family)


def _table(
    family: Sequence[_SegmentPart], pairs: Pairs, systems: tuple[str, ...], settings: TestSettings
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
    part: _SegmentPart, pairs: Pairs, systems: tuple[str, ...], settings: TestSettings
) -> pl.DataFrame:
    segment_sample, count = part.held, len(pairs)
    names = ("mean_a", "mean_b", "difference", "se", "low", "high")
    numbers = dict.fromkeys(names, np.full(count, np.nan))
    if segment_sample is not None:
        low, high = difference_interval(segment_sample, settings)
        means = segment_sample.means[pairs.one], segment_sample.means[pairs.other]
        columns = (*means, segment_sample.difference, segment_sample.standard_error, low, high)
        numbers = dict(zip(names, columns, strict=True))
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
    segment_values: _SegmentValues, pairs: Pairs, segments: Segmentation, settings: TestSettings
) -> Interaction:
    """Test all pairs, as many at a time as fit in memory: shuffles are the same for all."""
    values, code = segment_values.values[segment_values.kept], segments.code[segment_values.kept]
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
    metrics: Sequence[_SegmentValues],
    tests: Sequence[Interaction],
    pairs: Pairs,
    rows: pl.DataFrame,
    settings: TestSettings,
) -> pl.DataFrame:
    """Return a row per metric and pair: the interaction test and the worst segment."""
    parts = []
    for metric, test in zip(metrics, tests, strict=True):
        mine = rows.filter(pl.col("metric") == metric.label)
        sign = {"higher": 1, "lower": -1, "neither": None}[metric.better]
        worst = _worst(mine, sign)
        p = test.p
        if settings.family == "metric" and settings.correction is not None:
            p = correct(p, settings.correction)
        overall = metric.values[metric.kept].mean(axis=0)
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
        estimated = pair.filter(pl.col("users") > 1)
        if sign is None or not estimated.height:
            names.append(None)
            values.append(None)
            continue
        row = int((estimated["difference"] * sign).arg_min() or 0)
        names.append(estimated["segment"][row])
        values.append(estimated["difference"][row])
    return pl.DataFrame(
        {
            "worst_segment": pl.Series(names, dtype=pl.String),
            "worst_difference": pl.Series(values, dtype=pl.Float64),
        }
    )


def _left_out(metrics: Sequence[_SegmentValues], parts: Sequence[_SegmentPart]) -> list[str]:
    lines = users_left_out({each.label: int(np.count_nonzero(~each.kept)) for each in metrics})
    small = [f"{part.segment} ({part.metric.label})" for part in parts if part.users < 2]
    if small:
        what = counted(len(small), "segment has", "segments have")
        lines.append(f"{what} fewer than 2 users: no interval, no p: {', '.join(small)}")
    return lines
