"""`Comparison`: who is better, by how much, how sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import choose
from unskew.errors import SettingError, unknown_name
from unskew.metrics.names import parse
from unskew.report.charts import Figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, number, p_value
from unskew.stats.letters import letter_display

FIGURES = ("differences", "pairs")

TESTS = {
    "randomisation": "randomisation test (sign flips per user)",
    "t": "paired t test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign": "sign test",
    "bootstrap": "paired bootstrap test",
    "bootstrap-t": "paired bootstrap test of t",
}
CORRECTIONS = {
    "holm": "Holm",
    "bonferroni": "Bonferroni",
    "bh": "Benjamini–Hochberg",
    "by": "Benjamini–Yekutieli",
    "maxT": "Westfall–Young maxT",
    "tukey": "randomised Tukey HSD",
}


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """All pairs of systems on all metrics: differences, intervals, p-values, effect sizes.

    Made by `compare`.
    """

    figure_is_open: ClassVar[bool] = True

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    better: Mapping[str, str]
    """`higher`, `lower` or `neither`, by metric."""
    users: Mapping[str, int]
    """How many users were compared, by metric."""
    means: Mapping[str, Mapping[str, float]]
    """The mean of each system, by metric."""
    pairs: pl.DataFrame = field(repr=False)
    """See `table`."""
    test: str
    alternative: str
    correction: str | None
    family: str
    confidence: float
    interval: str
    reference: str | None = None
    rope: float | None = None
    permutations: int = 0
    """Permutations or resamples that were looked at; 0 where there are none."""
    enumerated: bool = False
    """Whether these were all sign patterns, so that p is exact."""
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The level: a corrected p-value at or below it is significant."""
        return round(1 - self.confidence, 12)

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and pair.

        `a`, `b`, `mean_a`, `mean_b`; `difference` (a less b) with its interval `low`, `high`;
        `p`, `p_corrected`, `significant`; the effect sizes `cohen_d` (mean of the differences by
        their standard deviation) and `hedges_g` (the same, corrected for few users); the shares
        of users for whom a is `better`, `worse`, `equal`; with `rope`, the probabilities
        `p_a_better`, `p_equivalent`, `p_b_better`. Better is what the metric says is better.
        """
        if metric is None:
            return self.pairs
        return self.pairs.filter(pl.col("metric") == self._label(metric))

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
        rows = []
        for place, system in enumerate(order):
            row: dict[str, Any] = {
                "rank": place + 1,
                "system": system,
                "mean": self.means[label][system],
                "difference": None,
                "low": None,
                "high": None,
                "p": None,
            }
            if system != base:
                row |= _seen_from(rows_by_pair, system, base)
            if letters is None:
                row["verdict"] = self._verdict(label, row, system)
            else:
                row["letters"] = letters[place]
            rows.append(row)
        kinds = {"difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64}
        return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)

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

    def _order(self, label: str) -> list[str]:
        sign = 1 if self.better[label] == "lower" else -1
        return sorted(self.systems, key=lambda system: sign * self.means[label][system])

    def _letters(
        self, order: Sequence[str], rows_by_pair: Mapping[tuple[str, str], Any]
    ) -> list[str]:
        place = {system: number for number, system in enumerate(order)}
        differ = np.zeros((len(order), len(order)), np.bool_)
        for (a, b), row in rows_by_pair.items():
            differ[place[a], place[b]] = differ[place[b], place[a]] = bool(row["significant"])
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

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')}, {counted(len(self.metrics), 'metric')}, "
            f"{counted(self.pairs.height, 'pair')}"
        )

    def _heading(self, label: str) -> str:
        direction = {"higher": "higher is better", "lower": "lower is better"}
        better = direction.get(self.better[label], "neither direction is better")
        return f"{label} ({better}), {counted(self.users[label], 'user')}"

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
            cells = [str(row["rank"]), row["system"], number(row["mean"], digits)]
            if row["difference"] is None:
                cells += ["", "", ""]
            else:
                ends = [number(row[end], digits, signed=True) for end in ("low", "high")]
                cells += [
                    number(row["difference"], digits, signed=True),
                    f"[{ends[0]}, {ends[1]}]",
                    p_value(row["p"]),
                ]
            rows.append([*cells, row[last]])
        return Table.of_rows(header, rows, left=_LEFT, title=self._heading(label))

    def _content(self) -> dict[str, object]:
        metrics = {
            label: {
                "better": self.better[label],
                "users": self.users[label],
                "means": self.means[label],
                "letters": self._letters_of(label),
            }
            for label in self.metrics
        }
        return {
            "systems": self.systems,
            "metrics": metrics,
            "test": self.test,
            "alternative": self.alternative,
            "correction": self.correction,
            "family": self.family,
            "permutations": self.permutations,
            "enumerated": self.enumerated,
            "confidence": self.confidence,
            "interval": self.interval,
            "reference": self.reference,
            "rope": self.rope,
            "seed": self.seed,
            "pairs": self.table(),
            "notes": self.notes,
        }

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
        return f"{note}; p corrected by {CORRECTIONS[self.correction]} over {over}"

    # Figures

    def figure(self, kind: str = "differences", metric: str | None = None) -> Figure:
        """Draw a metric's `differences` to the best (or reference), or all `pairs` as a matrix."""
        from unskew.stats import charts

        choose("figure", kind, FIGURES)
        label = self._label(metric)
        notes = [self._test_note(), f"significant: corrected p at most {self.alpha:g}"]
        if kind == "differences":
            base = self.reference or self._order(label)[0]
            notes = [self._interval_note(), *notes]
            return charts.differences(self.ranking(label), base, label, notes, self.alpha)
        if self.reference is not None:
            raise SettingError(
                f"only pairs with {self.reference!r} were compared: leave out reference=… "
                "to draw all pairs"
            )
        return charts.pair_matrix(
            self.table(label), self._order(label), self.better[label], label, notes
        )


_LEFT = (1, 6)


def _seen_from(
    rows_by_pair: Mapping[tuple[str, str], Mapping[str, Any]], system: str, base: str
) -> dict[str, float | None]:
    """Return a pair as the difference of `system` less `base`, however it was tested."""
    if (system, base) in rows_by_pair:
        row = rows_by_pair[system, base]
        return {
            "difference": row["difference"],
            "low": row["low"],
            "high": row["high"],
            "p": row["p_corrected"],
        }
    row = rows_by_pair[base, system]
    return {
        "difference": -row["difference"],
        "low": -row["high"],
        "high": -row["low"],
        "p": row["p_corrected"],
    }
