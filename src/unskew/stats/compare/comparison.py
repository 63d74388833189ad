"""`Comparison`: who is better, by how much, how sure."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.checks import choose
from unskew.errors import SettingError, unknown_name
from unskew.metrics.names import parse
from unskew.report.charts import BLUE, GREY, VERMILION, Figure, as_figure, forest
from unskew.report.tables import Table
from unskew.report.text import counted, interval, number, p_value
from unskew.stats.metric_result import MetricResult

_SURE = {True: "significant", False: "not significant"}
_COLOURS = {"significant": BLUE, "not significant": GREY}


def differences(
    ranking: pl.DataFrame, base: str, label: str, notes: Sequence[str], alpha: float
) -> Figure:
    """Draw each system's mean less that of `base`, with its interval."""
    rows = [
        {name: row[name] for name in ("system", "difference", "low", "high", "p")}
        | {"verdict": _SURE[bool(row["p"] <= alpha)]}
        for row in ranking.iter_rows(named=True)
        if row["difference"] is not None
    ]
    named, title = f"{label}: difference to {base}", f"{label}: differences"
    return forest(rows, "system", "verdict", _COLOURS, label=named, title=title, notes=notes)


def pair_matrix(
    table: pl.DataFrame, order: Sequence[str], better: str, label: str, notes: Sequence[str]
) -> Figure:
    """Draw, for the system of each row against that of each column, who is better and how sure."""
    import altair as alt

    words = ("better", "worse") if better != "neither" else ("greater", "smaller")
    sign = -1 if better == "lower" else 1
    rows: list[dict[str, Any]] = []
    for pair in table.iter_rows(named=True):
        for here, there, turn in ((pair["a"], pair["b"], 1), (pair["b"], pair["a"], -1)):
            gain = turn * sign * pair["difference"]
            word = words[0] if gain > 0 else words[1]
            rows.append(
                {
                    "row": here,
                    "column": there,
                    "difference": turn * pair["difference"],
                    "p": pair["p_corrected"],
                    "verdict": f"row {word}" if pair["significant"] else _SURE[False],
                }
            )
    chart = alt.Chart(alt.NamedData(name="rows"), width=alt.Step(44), height=alt.Step(24))
    bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None}
    cells = chart.encode(
        x=alt.X("column:N").scale(domain=list(order)).axis(orient="top", labelAngle=-45, **bare),
        y=alt.Y("row:N").scale(domain=list(order)).axis(labelPadding=8, **bare),
    )
    domain = [f"row {words[0]}", f"row {words[1]}", _SURE[False]]
    color = alt.Color("verdict:N").scale(domain=domain, range=[BLUE, VERMILION, "#E4E4E4"])
    squares = cells.mark_rect(stroke="white", strokeWidth=2).encode(color=color)
    shade = alt.condition(
        f"datum.verdict === '{_SURE[False]}'", alt.value("#333333"), alt.value("white")
    )
    texts = cells.mark_text(fontSize=10).encode(
        text=alt.Text("difference:Q", format="+.3f"), color=shade
    )
    return as_figure(alt.layer(squares, texts), f"{label}: all pairs", notes, rows)


def segment_differences(rows: pl.DataFrame, by: str, label: str, notes: Sequence[str]) -> Figure:
    """Draw the difference of one pair in each segment, with its interval."""
    estimated = rows.filter(pl.col("difference").is_not_null())
    points = [
        {
            "segment": f"{row['segment']} ({counted(row['users'], 'user')})",
            **{name: row[name] for name in ("difference", "low", "high")},
            "p": row["p_corrected"],
            "verdict": _SURE[bool(row["significant"])],
        }
        for row in estimated.iter_rows(named=True)
    ]
    named = f"{label}: {estimated['a'][0]} − {estimated['b'][0]}" if estimated.height else label
    title = f"{label} by {by}"
    return forest(points, "segment", "verdict", _COLOURS, label=named, title=title, notes=notes)


_ALPHABET = string.ascii_lowercase + string.ascii_uppercase


def letter(number: int) -> str:
    """Return the name of a group: a … z, A … Z, then a1 … Z1 and so on.

    Examples
    --------
    >>> from unskew.stats.compare.comparison import letter
    >>> letter(0), letter(26), letter(51), letter(52)
    ('a', 'A', 'Z', 'a1')
    """
    round_, index = divmod(number, len(_ALPHABET))
    return _ALPHABET[index] + (str(round_) if round_ else "")


def letter_display(differ: Mask) -> list[str]:
    """Return each system's letters, systems best first.

    Two systems share a letter if and only if they do not differ. Insert and absorb (Piepho 2004):
    begin with one group of all; split every group that holds a pair that differs; drop groups
    within others.

    Parameters
    ----------
    differ
        Symmetric, systems x systems.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.compare.comparison import letter_display
    >>> letter_display(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool))
    ['a', 'ab', 'b']
    """
    systems = differ.shape[0]
    groups: list[frozenset[int]] = [frozenset(range(systems))]
    for i in range(systems):
        for j in range(i + 1, systems):
            if differ[i, j]:
                groups = _absorb(_split(groups, i, j))
    groups.sort(key=sorted)
    return [
        "".join(letter(g) for g, group in enumerate(groups) if s in group) for s in range(systems)
    ]


def _split(groups: Sequence[frozenset[int]], i: int, j: int) -> list[frozenset[int]]:
    parts = []
    for group in groups:
        if i in group and j in group:
            parts += [group - {j}, group - {i}]
        else:
            parts.append(group)
    return parts


def _absorb(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    distinct = sorted(set(groups), key=len, reverse=True)
    maximal: list[frozenset[int]] = []
    for group in distinct:
        if not any(group <= larger for larger in maximal):
            maximal.append(group)
    return maximal


FIGURES = ("differences", "pairs")

TESTS = {
    "randomisation": "randomisation test (sign flips per user)",
    "t": "paired t test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign": "sign test",
    "bootstrap": "paired bootstrap test",
    "bootstrap-t": "paired bootstrap test of t",
}
IN_WORDS = {
    "holm": "Holm",
    "bonferroni": "Bonferroni",
    "bh": "Benjamini–Hochberg",
    "by": "Benjamini–Yekutieli",
    "maxT": "Westfall–Young maxT",
    "tukey": "randomised Tukey HSD",
}


class ComparedMetrics(MetricResult):
    """What comparisons of all users and of segments share."""

    confidence: float  # a field of each, where it belongs

    @property
    def alpha(self) -> float:
        """The level: a corrected p-value at or below it is significant."""
        return round(1 - self.confidence, 12)

    def _label(self, metric: str | None) -> str:
        if metric is None:
            return self.metrics[0]
        if metric in self.metrics:
            return metric
        parsed = parse(metric)
        for label in self.metrics:
            if parse(label) == parsed:
                return label
        raise unknown_name("metric of this comparison", metric, self.metrics)


@dataclass(frozen=True, eq=False)
class Comparison(ComparedMetrics):
    """All pairs of systems on all metrics: differences, intervals, p-values, effect sizes.

    Made by `compare`.
    """

    users: Mapping[str, int]
    """How many users were compared, by metric."""
    means: Mapping[str, Mapping[str, float]]
    """The mean of each system, by metric."""
    test: str
    alternative: str
    correction: str | None
    family: str
    permutations: int
    """Permutations or resamples that were looked at; 0 where there are none."""
    enumerated: bool
    """Whether these were all sign patterns, so that p is exact."""
    confidence: float
    interval: str
    reference: str | None
    rope: float | None
    seed: int
    pairs: pl.DataFrame = field(repr=False)
    """See `table`."""
    notes: tuple[str, ...] = ()

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and pair.

        `a`, `b`, `mean_a`, `mean_b`; `difference` (a less b) with its interval `low`, `high`;
        `p`, `p_corrected`, `significant`; the effect sizes `cohen_d` (mean of the differences by
        their standard deviation) and `hedges_g` (the same, corrected for few users); the shares
        of users for whom a is `better`, `worse`, `equal`; with `rope`, the probabilities
        `p_a_better`, `p_equivalent`, `p_b_better`. Better is what the metric says is better.
        """
        return self._of(self.pairs, metric)

    def of_metrics(self, metrics: Sequence[str]) -> Comparison:
        """Return the comparison of some metrics, where p-values are corrected within each."""
        labels = tuple(map(self._label, metrics))
        if self.correction is not None and self.family == "all" and set(labels) < {*self.metrics}:
            raise SettingError("p-values were corrected over all metrics: compare these ones again")
        return replace(
            self,
            metrics=labels,
            better={label: self.better[label] for label in labels},
            users={label: self.users[label] for label in labels},
            means={label: self.means[label] for label in labels},
            pairs=pl.concat([self.table(label) for label in labels]),
        )

    def p_values(self, metric: str | None = None, *, corrected: bool = False) -> F64:
        """Return the p-values of all pairs of a metric, in the order of `table`."""
        values: F64 = self.table(self._label(metric))[
            "p_corrected" if corrected else "p"
        ].to_numpy()
        return values

    def ranking(self, metric: str | None = None) -> pl.DataFrame:
        """Return the systems of a metric best first, each compared with the best or `reference`.

        `difference`, `low`, `high` are the system less the best (the reference), `p` is corrected.
        Systems that share one of the `letters` do not differ significantly; with a reference there
        are no other pairs, hence no letters, and `verdict` tells better from worse instead.
        """
        label = self._label(metric)
        order = self._order(label)
        base = self.reference or order[0]
        rows_by_pair = {
            (row["a"], row["b"]): row for row in self.table(label).iter_rows(named=True)
        }
        letters = self._letters(order, rows_by_pair) if self.reference is None else None
        numbers = ("difference", "low", "high", "p")
        rows = []
        for index, system in enumerate(order):
            row: dict[str, Any] = {
                "rank": index + 1,
                "system": system,
                "mean": self.means[label][system],
                **dict.fromkeys(numbers),
            }
            if system != base:
                row |= _seen_from(rows_by_pair, system, base)
            if letters is None:
                row["verdict"] = self._verdict(label, row, system)
            else:
                row["letters"] = letters[index]
            rows.append(row)
        kinds = dict.fromkeys(numbers, pl.Float64)
        return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)

    def _order(self, label: str) -> list[str]:
        sign = 1 if self.better[label] == "lower" else -1
        return sorted(self.systems, key=lambda system: sign * self.means[label][system])

    def _letters(
        self, order: Sequence[str], rows_by_pair: Mapping[tuple[str, str], Any]
    ) -> list[str]:
        rank = {system: number for number, system in enumerate(order)}
        differ = np.zeros((len(order), len(order)), np.bool_)
        for (a, b), row in rows_by_pair.items():
            differ[rank[a], rank[b]] = differ[rank[b], rank[a]] = bool(row["significant"])
        return letter_display(differ)

    def _verdict(self, label: str, row: Mapping[str, Any], system: str) -> str:
        if system == self.reference:
            return "reference"
        if row["p"] is None or not row["p"] <= self.alpha or self.better[label] == "neither":
            differs = row["p"] is not None and row["p"] <= self.alpha
            return "differs" if differs else ""
        return "better" if (row["difference"] > 0) == (self.better[label] == "higher") else "worse"

    # Text

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the ranking by each metric."""
        return [self.display_ranking(label, digits) for label in self.metrics]

    def _numbers(self) -> Iterator[str]:
        yield from super()._numbers()
        yield counted(self.pairs.height, "pair")

    def display_ranking(self, metric: str | None = None, digits: int | None = None) -> Table:
        """Return the ranking by a metric (the first one unless given) as people read it."""
        digits = self.digits if digits is None else digits
        label = self._label(metric)
        ranking = self.ranking(label)
        last = ranking.columns[-1]
        share = f"{100 * self.confidence:g} % interval"
        header = ["", "system", "mean", "difference", share, "p", last]
        rows = []
        for row in ranking.iter_rows(named=True):
            cells = ["", "", ""]
            if row["difference"] is not None:
                cells = [
                    number(row["difference"], digits, signed=True),
                    interval(row["low"], row["high"], digits, signed=True),
                    p_value(row["p"]),
                ]
            mean = number(row["mean"], digits)
            rows.append([str(row["rank"]), row["system"], mean, *cells, row[last]])
        title = f"{self._heading(label)}, {counted(self.users[label], 'user')}"
        return Table.of_rows(header, rows, left=_LEFT, title=title)

    def _content(self) -> dict[str, object]:
        letters = {label: self._letters_of(label) for label in self.metrics}
        metrics = self._facts(users=self.users, means=self.means, letters=letters)
        return self._fields("better", "users", "means", metrics=metrics)

    def _letters_of(self, label: str) -> dict[str, str] | None:
        if self.reference is not None:
            return None
        ranking = self.ranking(label)
        return dict(zip(ranking["system"], ranking["letters"], strict=True))

    def _explanation(self) -> list[str]:
        lines = [self._interval_note(), self._test_note()]
        if self.reference is None:
            lines.append(f"systems that share a letter are not told apart at {self.alpha:g}")
        return lines

    def _interval_note(self) -> str:
        base = repr(self.reference) if self.reference else "the best"
        kind = {"t": "t", "bca": "BCa bootstrap"}[self.interval]
        return f"difference to {base}, {kind} interval"

    def _test_note(self) -> str:
        note = TESTS[self.test]
        if self.enumerated:
            note += f", all {self.permutations:,} sign patterns"
        elif self.permutations:
            what = "resamples" if self.test.startswith("bootstrap") else "permutations"
            note += f", {self.permutations:,} {what}"
        if self.alternative != "two-sided":
            note += f", one-sided: {self.alternative}"
        if self.correction is None:
            return f"{note}; p not corrected"
        all_of_them = self.family == "all"
        number = self.pairs.height if all_of_them else self.table(self.metrics[0]).height
        over = f"{number:,} pair{'s' * (number != 1)}"
        if all_of_them and len(self.metrics) > 1:
            over += " of all metrics"
        return f"{note}; p corrected by {IN_WORDS[self.correction]} over {over}"

    # Figures

    def figure(self, kind: str = "differences", metric: str | None = None) -> Figure:
        """Draw a metric's `differences` to the best (or reference), or all `pairs` as a matrix."""
        choose("figure", kind, FIGURES)
        label = self._label(metric)
        notes = [self._test_note(), f"significant: corrected p at most {self.alpha:g}"]
        if kind == "differences":
            base = self.reference or self._order(label)[0]
            notes = [self._interval_note(), *notes]
            return differences(self.ranking(label), base, label, notes, self.alpha)
        if self.reference is not None:
            raise SettingError(
                f"only pairs with {self.reference!r} were compared: leave out reference=… "
                "to draw all pairs"
            )
        return pair_matrix(self.table(label), self._order(label), self.better[label], label, notes)


_LEFT = (1, 6)


def _seen_from(
    rows_by_pair: Mapping[tuple[str, str], Mapping[str, Any]], system: str, base: str
) -> dict[str, float | None]:
    """Return a pair as the difference of `system` less `base`, however it was tested."""
    if (system, base) in rows_by_pair:
        row = rows_by_pair[system, base]
        value, low, high = row["difference"], row["low"], row["high"]
    else:
        row = rows_by_pair[base, system]
        value, low, high = -row["difference"], -row["high"], -row["low"]
    return {"difference": value, "low": low, "high": high, "p": row["p_corrected"]}
