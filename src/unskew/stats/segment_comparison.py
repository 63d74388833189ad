"""`SegmentComparison`: who is better in which segment of users, and whether segments differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from unskew.checks import choose
from unskew.errors import SettingError, unknown_name
from unskew.metrics.names import parse
from unskew.report.charts import Figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, number, p_value
from unskew.stats.comparison import CORRECTIONS, TESTS

FIGURES = ("segments",)
_DIRECTION = {"higher": "higher is better", "lower": "lower is better"}


@dataclass(frozen=True, eq=False)
class SegmentComparison(Result):
    """All pairs of systems within each segment of users: differences, intervals, p-values.

    Made by `compare` with `by=…`. Means of segments, weighted by their users, add up to the mean
    over all users.
    """

    figure_is_open: ClassVar[bool] = True

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    better: Mapping[str, str]
    """`higher`, `lower` or `neither`, by metric."""
    by: str
    """What users are divided by, in words."""
    rule: str
    """How the segments are formed."""
    segments: tuple[str, ...]
    users: Mapping[str, Mapping[str, int]]
    """How many users were compared, by metric and segment."""
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    tests: pl.DataFrame = field(repr=False)
    """See `interactions`."""
    test: str
    alternative: str
    correction: str | None
    family: str
    confidence: float
    """Of all intervals together."""
    interval: str
    level: float
    """Of each interval alone (Bonferroni)."""
    permutations: int
    shuffles: int
    """Of the interaction test; 0: by the F distribution alone."""
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The level: a corrected p-value at or below it is significant."""
        return round(1 - self.confidence, 12)

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric, pair and segment.

        `a`, `b`, `segment`, `users`, `mean_a`, `mean_b`; `difference` (a less b) with its standard
        error `se` and simultaneous interval `low`, `high`; `p`, `p_corrected`, `significant`.
        Null: fewer than two users.
        """
        return self.rows if metric is None else self._of(self.rows, metric)

    def interactions(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and pair: whether the difference differs between segments.

        `difference` over all users; `segments` with two users or more; Welch's F as `statistic`,
        `p` and `p_corrected` of the hypothesis that the mean difference is the same in all
        segments; `worst_segment`, the one of these in which a does worst against b, and
        `worst_difference` there.
        """
        return self.tests if metric is None else self._of(self.tests, metric)

    def _of(self, table: pl.DataFrame, metric: str) -> pl.DataFrame:
        return table.filter(pl.col("metric") == self._label(metric))

    def _label(self, metric: str | None) -> str:
        if metric is None:
            return self.metrics[0]
        if metric in self.metrics:
            return metric
        wanted = parse(metric)
        for label in self.metrics:
            if parse(label) == wanted:
                return label
        raise unknown_name("metric of this comparison", metric, self.metrics)

    # Text

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return, of each metric, the segments of all pairs and the interaction tests."""
        digits = self.digits if digits is None else digits
        several = [
            (self._display_segments(label, digits), self._display_tests(label, digits))
            for label in self.metrics
        ]
        return [table for both in several for table in both]

    def _display_segments(self, label: str, digits: int) -> Table:
        together = f"{100 * self.confidence:g} % intervals"
        header = ["pair", "segment", "users", "a", "b", "a − b", together, "p"]
        rows, before = [], ""
        for row in self.table(label).iter_rows(named=True):
            pair = f"a = {row['a']}, b = {row['b']}"
            rows.append(
                [
                    "" if pair == before else pair,
                    row["segment"],
                    f"{row['users']:,}",
                    *(_number(row[name], digits) for name in ("mean_a", "mean_b")),
                    _number(row["difference"], digits, signed=True),
                    _interval(row, digits),
                    "–" if row["p_corrected"] is None else p_value(row["p_corrected"]),
                ]
            )
            before = pair
        better = _DIRECTION.get(self.better[label], "neither direction is better")
        users = counted(sum(self.users[label].values()), "user")
        title = f"{label} ({better}), {users} by {self.by}"
        return Table.of_rows(header, rows, left=(0, 1), title=title)

    def _display_tests(self, label: str, digits: int) -> Table:
        header = ["pair", "a − b, all users", "interaction p", "worst segment of a", "a − b there"]
        rows = [
            [
                f"a = {row['a']}, b = {row['b']}",
                _number(row["difference"], digits, signed=True),
                "–" if row["p_corrected"] is None else p_value(row["p_corrected"]),
                row["worst_segment"] or "–",
                _number(row["worst_difference"], digits, signed=True),
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
        return f"{note}; p corrected by {CORRECTIONS[self.correction]} over {self._differences()}"

    def _interaction_note(self) -> str:
        basis = "the F distribution"
        if self.shuffles:
            basis = f"the larger p of the F distribution and of {self.shuffles:,} shuffles of users"
        tested = self.tests if self.family == "all" else self.interactions(self.metrics[0])
        note = f"interaction: Welch's F test of equal mean differences in all segments, {basis}"
        if self.correction is None or tested.height == 1:
            return note
        return f"{note}; p corrected by {CORRECTIONS[self.correction]} over {tested.height:,} pairs"

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')}, {counted(len(self.metrics), 'metric')}, "
            f"{counted(len(self.segments), 'segment')}"
        )

    def _content(self) -> dict[str, object]:
        return {
            "systems": self.systems,
            "metrics": {
                label: {"better": self.better[label], "users": self.users[label]}
                for label in self.metrics
            },
            "by": self.by,
            "rule": self.rule,
            "segments": self.segments,
            "test": self.test,
            "alternative": self.alternative,
            "correction": self.correction,
            "family": self.family,
            "permutations": self.permutations,
            "shuffles": self.shuffles,
            "confidence": self.confidence,
            "interval": self.interval,
            "level": self.level,
            "seed": self.seed,
            "rows": self.rows,
            "interactions": self.tests,
            "notes": self.notes,
        }

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
        from unskew.stats import charts

        choose("figure", kind, FIGURES)
        label = self._label(metric)
        rows = self.table(label)
        a, b = self._pair(rows, pair)
        mine = rows.filter((pl.col("a") == a) & (pl.col("b") == b))
        notes = [self._interval_note(), f"significant: corrected p at most {self.alpha:g}"]
        return charts.segment_differences(mine, self.by, label, notes)

    def _pair(self, rows: pl.DataFrame, pair: tuple[str, str] | None) -> tuple[str, str]:
        known = list(dict.fromkeys(zip(rows["a"], rows["b"], strict=True)))
        if pair is None:
            return known[0]
        if tuple(pair) not in known:
            allowed = "; ".join(f"{a!r}, {b!r}" for a, b in known)
            raise SettingError(f"pair={pair!r} was not compared; the pairs are: {allowed}")
        return pair


def _number(value: float | None, digits: int, *, signed: bool = False) -> str:
    return "–" if value is None else number(value, digits, signed=signed)


def _interval(row: Mapping[str, Any], digits: int) -> str:
    if row["low"] is None:
        return "–"
    return (
        f"[{_number(row['low'], digits, signed=True)}, {_number(row['high'], digits, signed=True)}]"
    )
