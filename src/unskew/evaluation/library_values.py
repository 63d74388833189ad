"""What a library would give: values of users and means of one of its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from unskew.arrays import F64, frozen
from unskew.conventions.collection import LibraryMetric
from unskew.conventions.convention import Convention
from unskew.conventions.formulas import Fraction
from unskew.conventions.laying import Laid, ListRule
from unskew.conventions.values import Values
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.errors import SettingError
from unskew.evaluation.scoring import prepare, score
from unskew.judging.judged import Judged
from unskew.judging.numbering import Numbering
from unskew.metrics.names import Metric, parse

MEMORY = 512 << 20


@dataclass(frozen=True, eq=False)
class LibraryValues:
    """Metrics of libraries on the lists of one system."""

    laid: Laid
    system: str
    values: Values
    _ours: dict[object, F64] = field(default_factory=dict)

    @classmethod
    def of(cls, laid: Laid, system: str) -> LibraryValues:
        """Take one system of laid data."""
        return cls(laid, system, Values(laid, system))

    def of_users(self, row: LibraryMetric, k: int | None) -> F64:
        """Return the value of every user that the library averages; NaN for all others."""
        convention = row.convention(k)
        if not row.ours:
            return self.values.of_users(convention)
        return self.values.of_users(convention, self._fraction(row, k))

    def mean(self, row: LibraryMetric, k: int | None) -> float:
        """Return the mean that the library would print."""
        if not row.ours:
            return self.values.mean(row.convention(k))
        values = self.of_users(row, k)
        kept = values[~np.isnan(values)]
        return float(kept.sum() / kept.size) if kept.size else float("nan")

    def _fraction(self, row: LibraryMetric, k: int | None) -> Fraction:
        values = self._ours_values(row.convention(k), parse(row.family(k)))
        missing = np.isnan(values)
        return Fraction(values, np.ones(values.size), missing, missing)

    def _ours_values(self, convention: Convention, metric: Metric) -> F64:
        rule = ListRule.of(convention)
        key = (metric, rule, convention.judgments, convention.relevant, convention.gain)
        if key not in self._ours:
            self._ours[key] = self._evaluate(convention, metric, rule)
        return self._ours[key]

    def _evaluate(self, convention: Convention, metric: Metric, rule: ListRule) -> F64:
        """Compute a metric of ours on judgments and lists as the convention takes them."""
        if metric.definition.of == "run":
            raise SettingError(f"{metric} describes a whole run: no library's convention is known")
        tests, relevance = self._judgments(convention)
        runs = {self.system: self.laid.run(self.system, rule)}
        numbering = Numbering.of(tests, self.laid.numbering.train, runs, None, must_meet=False)
        judged = Judged.over(
            numbering, relevance, tests=tests, train=self.laid.numbering.train, systems=runs
        )
        wanted = {str(metric): metric}
        judged = prepare(judged, wanted)
        result = score(judged.basis, judged.matched, wanted, threads=1, budget=MEMORY)
        values: F64 = result[self.system].values[0]
        return values

    def _judgments(self, convention: Convention) -> tuple[Ratings, Relevance]:
        """Return the judgments that the library sees, numbered by what they are worth."""
        seen, relevant = self.values.seen(convention)
        if convention.judgments == "all":
            seen = seen | self.laid.pooled  # no judgments, but they say what is in the pool
        judgments = self.laid.judgments
        loss = np.where(relevant, 0.0, self.laid.relevance.losses(judgments.value))
        columns = (relevant.astype(np.float64), self.values.gain(convention), loss)
        rows = np.stack([column[seen] for column in columns], axis=1)
        kinds, code = np.unique(rows, axis=0, return_inverse=True)
        tests = Ratings(
            judgments.users,
            judgments.items,
            frozen(judgments.user[seen]),
            frozen(judgments.item[seen]),
            frozen(code.ravel().astype(np.float64)),
            tags={name: tag.filter(pl.Series(seen)) for name, tag in judgments.tags.items()},
        )
        liked = float(np.count_nonzero(kinds[:, 0] == 0))
        code_range = np.arange(len(kinds), dtype=np.float64).tolist()
        gains, losses = (dict(zip(code_range, kinds[:, at].tolist(), strict=True)) for at in (1, 2))
        return tests, Relevance(liked=liked, gain=gains, loss=losses)
