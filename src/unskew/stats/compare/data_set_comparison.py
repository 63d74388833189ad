"""`DataSetComparison`: systems x data sets, mean ranks, who differs, and what may be concluded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import choose
from unskew.errors import SettingError, unknown_name
from unskew.report.charts import BLUE, GREY, INK, VERMILION, Figure, as_figure, forest
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, finite, interval, number, p_value
from unskew.stats.compare.comparison import letter_display
from unskew.stats.intervals.means import student_ends
from unskew.stats.tests.classic import Friedman, critical_difference

LEAST_DATA_SETS = 5
"""Of intervals of mean ranks (of fewer, all lie on one side of the truth too often), and of F."""
FIGURES = ("ranks", "differences")
TESTS = {
    "wilcoxon": "Wilcoxon's signed ranks of the differences on data sets",
    "sign": "sign test over data sets",
    "t": "t test of the mean difference over data sets",
    "nemenyi": "Nemenyi's test of mean ranks",
}
POOL = (
    "mean ranks, Friedman's and Nemenyi's tests depend on which systems are in the pool: with "
    "others added or left out, other pairs may differ (Benavoli, Corani and Mangili 2016)"
)


@dataclass(frozen=True, eq=False)
class DataSetComparison(Result):
    """The same systems on several data sets.

    Made by `compare_data_sets`.
    """

    figure_is_open: ClassVar[bool] = True

    systems: tuple[str, ...]
    data_sets: tuple[str, ...]
    metric: str
    better: str
    """`higher` or `lower`."""
    users: tuple[int, ...]
    """Of each data set."""
    means: F64
    """Data sets x systems."""
    ranks: F64
    """Data sets x systems; 1 is the best, equal means share their mean rank."""
    rank_low: F64
    """Ends of the interval of each system's mean rank; NaN without resamples."""
    rank_high: F64
    friedman: Friedman
    pairs: pl.DataFrame = field(repr=False)
    """See `table`."""
    errors: F64 = field(repr=False)
    """Data sets x pairs: the standard error of the difference, over users."""
    test: str
    reference: str | None
    rope: float | None
    confidence: float
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The level of the tests."""
        return round(1 - self.confidence, 12)

    @property
    def has_rank_intervals(self) -> bool:
        """Whether mean ranks have intervals: with resamples, and at least 5 data sets."""
        return not np.isnan(self.rank_low).any()

    @property
    def mean_ranks(self) -> F64:
        """The mean rank of each system."""
        result: F64 = self.ranks.mean(axis=0)
        return result

    @property
    def order(self) -> list[int]:
        """The systems by mean rank, the best first."""
        return [int(index) for index in np.argsort(self.mean_ranks, kind="stable")]

    @property
    def critical_difference(self) -> float:
        """Nemenyi's: mean ranks that differ by more differ significantly."""
        return critical_difference(len(self.systems), len(self.data_sets), self.alpha)

    def table(self) -> pl.DataFrame:
        """Return a row per pair of systems.

        `difference` is the mean over data sets of a less b, each data set counting once. `low`,
        `high`: its interval over data sets like these; `low_these`, `high_these`: on these very
        data sets, users drawn anew. `a_ahead`, `b_ahead`: on how many data sets. `p`,
        `p_corrected`, `significant`: of the test; `p_sign`: of the sign test over data sets, and
        `p_these`: of the mean on these data sets, both corrected by Holm.

        Of the two-level model, in which differences on data sets are normal around one mean:
        `tau`, their standard deviation without the users' share (Paule and Mandel); `low_next`,
        `high_next`: where the true difference on a new data set lies with the probability
        `confidence`; `p_a_better`, `p_equivalent`, `p_b_better` of the mean over data sets,
        `p_next_…` of a new data set. None where a data set has no standard error above 0.
        """
        return self.pairs

    def by_data_set(self) -> pl.DataFrame:
        """Return a row per data set and system: users, mean, rank."""
        rows = [
            (name, system, self.users[i], float(self.means[i, j]), float(self.ranks[i, j]))
            for i, name in enumerate(self.data_sets)
            for j, system in enumerate(self.systems)
        ]
        return pl.DataFrame(rows, ["data_set", "system", "users", "mean", "rank"], orient="row")

    def pair(self, a: str, b: str) -> dict[str, Any]:
        """Return a pair as a less b, whichever way round it was tested; see `table`."""
        by_pair = {(row["a"], row["b"]): row for row in self.pairs.iter_rows(named=True)}
        if (a, b) not in by_pair and (b, a) not in by_pair:
            raise unknown_name("pair", f"{a}, {b}", [", ".join(pair) for pair in by_pair])
        return _seen_from(by_pair, a, b)

    def differences(self, a: str, b: str) -> pl.DataFrame:
        """Return a row per data set: users, the difference a less b, its standard error."""
        self.pair(a, b)
        tested = self.pairs.select("a", "b").rows()
        column = tested.index((a, b) if (a, b) in tested else (b, a))
        first, second = self.systems.index(a), self.systems.index(b)
        columns = {
            "data_set": self.data_sets,
            "users": self.users,
            "difference": self.means[:, first] - self.means[:, second],
            "standard_error": self.errors[:, column],
        }
        return pl.DataFrame(columns)

    def ranking(self) -> pl.DataFrame:
        """Return the systems by mean rank, with intervals and letters.

        Systems that share a letter do not differ significantly; with a reference there are no
        other pairs, hence no letters.
        """
        order = self.order
        letters = self.letters()
        rows = [
            {
                "system": self.systems[system],
                "mean_rank": float(self.mean_ranks[system]),
                "low": finite(float(self.rank_low[system])),
                "high": finite(float(self.rank_high[system])),
                "mean": float(self.means[:, system].mean()),
                "letters": None if letters is None else letters[rank],
            }
            for rank, system in enumerate(order)
        ]
        kinds = {"low": pl.Float64, "high": pl.Float64, "letters": pl.String}
        return pl.DataFrame(rows, schema_overrides=kinds)

    def letters(self) -> list[str] | None:
        """Return the letters of the systems in the order of mean ranks; None with a reference."""
        if self.reference is not None:
            return None
        rank = {self.systems[system]: number for number, system in enumerate(self.order)}
        differ = np.zeros((len(rank), len(rank)), np.bool_)
        for a, b, is_different in self.pairs.select("a", "b", "significant").iter_rows():
            differ[rank[a], rank[b]] = differ[rank[b], rank[a]] = is_different
        return letter_display(differ)

    # Text

    @property
    def base(self) -> str:
        """The system that the second table compares others with."""
        return self.reference or self.systems[self.order[0]]

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return systems x data sets, and the differences to the best or the reference."""
        digits = self.digits if digits is None else digits
        return [self._systems_table(digits), self._differences_table(digits)]

    def _systems_table(self, digits: int) -> Table:
        header = ["system", "mean rank"]
        header += [f"{100 * self.confidence:g} % interval"] if self.has_rank_intervals else []
        header += ["letters"] if self.reference is None else []
        header += list(self.data_sets)
        rows, strong = [], set()
        for index, row in enumerate(self.ranking().iter_rows(named=True)):
            cells = [row["system"], number(row["mean_rank"], 2)]
            if self.has_rank_intervals:
                cells.append(interval(row["low"], row["high"], 2))
            if self.reference is None:
                cells.append(row["letters"])
            system = self.systems.index(row["system"])
            for i in range(len(self.data_sets)):
                if self.ranks[i, system] == self.ranks[i].min():
                    strong.add((index, len(cells)))
                cells.append(f"{number(self.means[i, system], digits)} ({self.ranks[i, system]:g})")
            rows.append(cells)
        sets = counted(len(self.data_sets), "data set")
        title = f"{self.metric} ({self.better} is better) on {sets}: mean (rank)"
        return Table.of_rows(header, rows, left=(0, header.index("letters")) if self.reference
                             is None else (0,), title=title, strong=strong)  # fmt: skip

    def _differences_table(self, digits: int) -> Table:
        share = f"{100 * self.confidence:g} %"
        header = ["system", "difference", "on these data sets", "data sets like these",
                  "a new data set", "ahead:behind", "p"]  # fmt: skip
        header += ["P(better)"] if self.rope is None else ["P(better)", "P(equal)", "P(worse)"]
        rows = []
        for row in self._against_base():
            rows.append(
                [
                    row["system"],
                    number(row["difference"], digits, signed=True),
                    *(
                        interval(row[f"low{end}"], row[f"high{end}"], digits, signed=True)
                        for end in ("_these", "", "_next")
                    ),
                    f"{row['ahead']}:{row['behind']}",
                    p_value(row["p_corrected"]),
                    *(number(row[name], 3) for name in ("better", "equal", "worse")),
                ][: len(header)]
            )
        title = f"difference to {self.base}, {share} intervals; P: on a new data set"
        return Table.of_rows(header, rows, left=(0,), title=title)

    def _against_base(self) -> list[dict[str, Any]]:
        """Return the pairs with the base, as differences of the other system less the base."""
        others = [self.systems[index] for index in self.order if self.systems[index] != self.base]
        return [self.pair(system, self.base) for system in others]

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')} on "
            f"{counted(len(self.data_sets), 'data set')}, {self.metric}"
        )

    def _content(self) -> dict[str, object]:
        return {
            "metric": self.metric,
            "better": self.better,
            "data_sets": dict(zip(self.data_sets, self.users, strict=True)),
            "by_data_set": self.by_data_set(),
            "ranking": self.ranking(),
            "friedman": vars(self.friedman),
            "critical_difference": self.critical_difference,
            "pairs": self.pairs,
            **{name: getattr(self, name) for name in _SETTINGS},
            "notes": self.footer(),
        }

    def _explanation(self) -> list[str]:
        sizes = ", ".join(
            f"{name} {count:,}" for name, count in zip(self.data_sets, self.users, strict=True)
        )
        lines = [f"users: {sizes}; every data set counts once", self._friedman_note()]
        lines.append(self._test_note())
        if self.reference is None:
            lines.append(f"systems that share a letter are not told apart at {self.alpha:g}")
        if self.resamples and not self.has_rank_intervals:
            lines.append(f"intervals of mean ranks need at least {LEAST_DATA_SETS} data sets")
        elif self.resamples:
            lines.append(
                f"intervals of mean ranks: {self.resamples:,} resamples of data sets and, within "
                "each, of users"
            )
        lines += [
            "on these data sets: users redrawn; data sets like these: t over data sets, if "
            "differences are symmetric about their mean; a new data set: its true difference, in "
            "the two-level normal model",
            POOL,
        ]
        if self.pairs["tau"].null_count():
            lines.append(
                f"{counted(self.pairs['tau'].null_count(), 'pair has', 'pairs have')} a data set "
                "without a standard error above 0: no interval for a new data set"
            )
        return lines

    def _test_note(self) -> str:
        if self.test == "nemenyi":
            return f"{TESTS[self.test]}, critical difference {self.critical_difference:.2f}"
        pairs = counted(self.pairs.height, "pair")
        return f"{TESTS[self.test]}; p corrected by Holm over {pairs}"

    def _friedman_note(self) -> str:
        test = self.friedman
        kind = "all orders" if test.is_exact else f"{test.permutations:,} permutations"
        text = f"Friedman's test that all systems rank alike: p = {p_value(test.p)} ({kind})"
        text = text.replace("= <", "< ")
        # With fewer data sets it is false far too often: 15 to 18 % of 3 data sets, at 5 %.
        if test.f is None or test.p_f is None or len(self.data_sets) < LEAST_DATA_SETS:
            return text
        davenport = f"; Iman and Davenport's F = {test.f:.2f}, p = {p_value(test.p_f)}"
        return text + davenport.replace("= <", "< ")

    def _conclusion(self) -> list[str]:
        return [*self._on_these(), *self._on_others()]

    def _on_these(self) -> list[str]:
        """Conclude about the mean on these data sets, where users alone are drawn anew."""
        others = [row for row in self._against_base() if _is_sure(row["p_these"], self.alpha)]
        lines = []
        for word, sign in (("ahead of", -1.0), ("behind", 1.0)):
            names = [row["system"] for row in others if sign * self._gain(row) > 0]
            if names:
                lines.append(
                    f"on the mean of these {len(self.data_sets)} data sets, {self.base} is {word} "
                    f"{', '.join(names)} (users redrawn, corrected p at most {self.alpha:g})"
                )
        return lines

    def _gain(self, row: dict[str, Any]) -> float:
        return float(row["difference"]) * (1 if self.better == "higher" else -1)

    def _on_others(self) -> list[str]:
        """Conclude about most data sets like these, by the sign test alone."""
        count, pairs = len(self.data_sets), self.pairs.height
        smallest = pairs * 2.0 ** (1 - count)
        if smallest > self.alpha:
            needed = 1 + math.ceil(math.log2(pairs / self.alpha))
            return [
                f"nothing is concluded about other data sets: with {count} of them and "
                f"{counted(pairs, 'pair')}, a system that is ahead on all has a corrected p of "
                f"{min(smallest, 1.0):.2g} by signs; at least {needed} data sets are needed"
            ]
        sure = [row for row in self._against_base() if _is_sure(row["p_sign"], self.alpha)]
        lines = []
        for word, better, worse in (("ahead of", "behind", "ahead"), ("behind", "ahead", "behind")):
            names = [
                f"{row['system']} ({row[better]} of {count})"
                for row in sure
                if row[better] > row[worse]
            ]
            if names:
                lines.append(
                    f"on most data sets like these, {self.base} is {word} {', '.join(names)} "
                    f"(sign tests, corrected p at most {self.alpha:g})"
                )
        return lines or ["nothing is concluded about other data sets: no sign test is significant"]

    # Figures

    def figure(self, kind: str = "ranks") -> Figure:
        """Draw the critical-difference chart (`ranks`), or `differences` on each data set.

        `ranks` puts systems on an axis of mean ranks and joins those that do not differ
        significantly. `differences` shows the best system or the reference against the next one
        in the order, data set by data set.
        """
        choose("figure", kind, FIGURES)
        if kind == "differences":
            return self._difference_figure()
        letters = self.letters()
        if letters is None:
            raise SettingError(
                f"only pairs with {self.reference!r} were compared: leave out reference=… to draw "
                "which systems do not differ"
            )
        systems = RankedSystems(
            names=[self.systems[index] for index in self.order],
            ranks=[float(self.mean_ranks[index]) for index in self.order],
            letters=letters,
            critical=self.critical_difference if self.test == "nemenyi" else None,
        )
        notes = [
            f"{self.metric} on {counted(len(self.data_sets), 'data set')}; a bar joins systems "
            f"that are not told apart at {self.alpha:g}",
            self._test_note(),
        ]
        return critical_differences(systems, notes)

    def _difference_figure(self) -> Figure:
        """Draw the base against the next system of the order."""
        opponent = next(
            self.systems[index] for index in self.order if self.systems[index] != self.base
        )
        label = f"{self.metric}: {self.base} − {opponent}"
        notes = [f"{100 * self.confidence:g} % intervals; every data set counts once"]
        rows = [*self._rows_of_each(opponent), *self._rows_over_all(opponent)]
        colours = {"one data set": BLUE, "all": VERMILION}
        title = f"{self.metric}: differences by data set"
        return forest(rows, "name", "kind", colours, label=label, title=title, notes=notes)

    def _rows_of_each(self, opponent: str) -> list[dict[str, Any]]:
        rows = []
        for row in self.differences(self.base, opponent).iter_rows(named=True):
            value, users, ends = row["difference"], row["users"], (None, None)
            if users > 1:
                ends = student_ends(value, row["standard_error"], users - 1, self.confidence)
            name = f"{row['data_set']} ({counted(users, 'user')})"
            rows.append(_bar(name, "one data set", value, *ends))
        return rows

    def _rows_over_all(self, opponent: str) -> list[dict[str, Any]]:
        pair = self.pair(self.base, opponent)
        return [
            _bar(name, "all", pair["difference"], pair[f"low{end}"], pair[f"high{end}"])
            for name, end in _OVER.items()
            if pair[f"low{end}"] is not None
        ]


def _bar(
    name: str, kind: str, difference: float, low: float | None, high: float | None
) -> dict[str, Any]:
    return {"name": name, "kind": kind, "difference": difference, "low": low, "high": high}


_SETTINGS = ("test", "reference", "rope", "confidence", "resamples", "seed")
_OVER = {"these data sets": "_these", "data sets like these": "", "a new data set": "_next"}


def _is_sure(p: float | None, alpha: float) -> bool:
    return p is not None and p <= alpha


def _seen_from(by_pair: Any, system: str, base: str) -> dict[str, Any]:
    """Return a pair as the difference of `system` less `base`, however it was tested."""
    is_reversed = (base, system) in by_pair
    row = by_pair[(base, system) if is_reversed else (system, base)]
    sides: Sequence[str] = ("b", "a") if is_reversed else ("a", "b")
    result = {
        "system": system,
        "difference": -row["difference"] if is_reversed else row["difference"],
        "ahead": row[f"{sides[0]}_ahead"],
        "behind": row[f"{sides[1]}_ahead"],
        "better": row[f"p_next_{sides[0]}_better"],
        "worse": row[f"p_next_{sides[1]}_better"],
        "equal": row["p_next_equivalent"],
        **{name: row[name] for name in ("p_corrected", "p_sign", "p_these")},
    }
    for name in _OVER.values():
        limits = (row[f"low{name}"], row[f"high{name}"])
        if is_reversed:
            low, high = (None if end is None else -end for end in limits)
            limits = high, low
        result[f"low{name}"], result[f"high{name}"] = limits
    return result


_BAR, _ROW = 0.55, 1.0
"""Heights of a bar that joins systems, and of the row of a name."""


@dataclass(frozen=True)
class RankedSystems:
    """Systems by mean rank, the best first."""

    names: Sequence[str]
    ranks: Sequence[float]
    letters: Sequence[str]
    """Systems that share one do not differ."""
    critical: float | None = None
    """The critical difference, where one is drawn."""


def critical_differences(systems: RankedSystems, notes: Sequence[str]) -> Figure:
    """Draw mean ranks on an axis, and bars over systems that do not differ (Demšar 2006)."""
    import altair as alt

    count, bars = len(systems.names), _bars(systems)
    reach = 0.06 * (count - 1)
    rows = [*_ruler(systems), *_joined(bars, count), *_stems(systems, len(bars), reach)]
    depth = max(row["y2"] for row in rows) + 0.4
    top = min(row["y"] for row in rows) - 0.6
    base = alt.Chart(alt.NamedData(name="rows"), width=520, height=max(90, 24 * (depth - top)))
    x = (
        alt.X("x:Q", title="mean rank (1 is the best)")
        .scale(domain=[1 - reach, count + reach], nice=False)
        .axis(orient="top", values=list(range(1, count + 1)), format="d", offset=4)
    )
    y = alt.Y("y:Q").scale(domain=[depth, top], nice=False).axis(None)

    def lines(kind: str, **look: Any) -> alt.Chart:
        rules: alt.Chart = base.transform_filter(f"datum.kind === '{kind}'").mark_rule(**look)
        return rules.encode(x=x, x2="x2:Q", y=y, y2="y2:Q")

    def texts(kind: str, align: Any, shift: int, rise: int = 0) -> alt.Chart:
        marks = base.transform_filter(f"datum.kind === '{kind}'")
        labels: alt.Chart = marks.mark_text(
            align=align, dx=shift, dy=rise, color=INK, fontSize=12, limit=260
        ).encode(x=x, y=y, text="text:N")
        return labels

    points = base.transform_filter("datum.kind === 'point'")
    chart = alt.layer(
        lines("stem", color=GREY, strokeWidth=1),
        lines("bar", color=VERMILION, strokeWidth=5, strokeCap="round"),
        lines("ruler", color=INK, strokeWidth=2),
        points.mark_point(filled=True, size=60, opacity=1, color=BLUE).encode(x=x, y=y),
        texts("left", "right", -6),
        texts("right", "left", 6),
        texts("ruler text", "left", 0, -9),
    )
    return as_figure(chart, "Mean ranks over data sets", notes, rows)


def _bars(systems: RankedSystems) -> list[tuple[float, float]]:
    """Return the ends of the bars: the groups of systems that share a letter, two or more."""
    named = [_split(text) for text in systems.letters]
    groups = []
    for name in dict.fromkeys(name for names in named for name in names):
        members = [rank for rank, names in zip(systems.ranks, named, strict=True) if name in names]
        if len(members) > 1:
            groups.append((min(members), max(members)))
    return sorted(groups)


def _split(text: str) -> list[str]:
    """Return the letters of a system: each may be followed by a number."""
    parts: list[str] = []
    for sign in text:
        if sign.isdigit() and parts:
            parts[-1] += sign
        else:
            parts.append(sign)
    return parts


def _ruler(systems: RankedSystems) -> list[dict[str, Any]]:
    width = systems.critical
    if width is None or width > len(systems.names) - 1:  # no mean ranks can be as far apart
        return []
    line = {"x": 1.0, "x2": 1.0 + width, "y": -1.2, "y2": -1.2}
    return [{"kind": "ruler", **line}, {"kind": "ruler text", **line, "text": f"CD = {width:.2f}"}]


def _joined(bars: Sequence[tuple[float, float]], count: int) -> list[dict[str, Any]]:
    pad = 0.01 * (count - 1)
    return [
        {
            "kind": "bar",
            "x": low - pad,
            "x2": high + pad,
            "y": _BAR * (level + 1),
            "y2": _BAR * (level + 1),
        }
        for level, (low, high) in enumerate(bars)
    ]


def _stems(systems: RankedSystems, bars: int, reach: float) -> list[dict[str, Any]]:
    """Return from each system a line down from the axis and to its name at a side."""
    count = len(systems.names)
    left = math.ceil(count / 2)
    rows: list[dict[str, Any]] = []
    for index, (name, rank) in enumerate(zip(systems.names, systems.ranks, strict=True)):
        is_left = index < left
        line = index if is_left else count - 1 - index
        y = _BAR * (bars + 1) + _ROW * (line + 0.5)
        edge = 1 - reach if is_left else count + reach
        at_edge = {"x": edge, "x2": edge, "y": y, "y2": y, "text": f"{name} {rank:.2f}"}
        rows += [
            {"kind": "stem", "x": rank, "x2": rank, "y": 0.0, "y2": y},
            {"kind": "stem", "x": rank, "x2": edge, "y": y, "y2": y},
            {"kind": "point", "x": rank, "x2": rank, "y": 0.0, "y2": 0.0},
            {"kind": "left" if is_left else "right", **at_edge},
        ]
    return rows
