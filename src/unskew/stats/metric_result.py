"""`MetricResult`: what results with tables of several systems and metrics share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.pairing import label_of


@dataclass(frozen=True, eq=False)
class MetricResult(Result):
    """Systems by several metrics: tables have a row per metric and something else."""

    figure_is_open: ClassVar[bool] = True
    kind: ClassVar[str] = "result"
    """How an error calls it."""

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    better: Mapping[str, str]
    """`higher`, `lower` or `neither`, by metric."""

    def _label(self, metric: str | None) -> str:
        """Return the label of a metric, however it is spelt; the first one unless given."""
        return label_of(metric, self.metrics, f"metric of {self.kind}")

    def _of(self, table: pl.DataFrame, metric: str | None) -> pl.DataFrame:
        """Return the rows of a metric; all unless given."""
        return table if metric is None else table.filter(pl.col("metric") == self._label(metric))

    def _heading(self, label: str) -> str:
        """Return a metric and which direction is better."""
        directions = {"higher": "higher is better", "lower": "lower is better"}
        return f"{label} ({directions.get(self.better[label], 'neither direction is better')})"

    def _numbers(self) -> Iterator[str]:
        """Give how many systems and metrics there are, as words of the summary."""
        yield counted(len(self.systems), "system")
        yield counted(len(self.metrics), "metric")

    def _summary(self) -> str:
        return ", ".join(self._numbers())

    def _facts(self, **facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return by metric its direction, and facts that are given by metric."""
        named = {"better": self.better, **facts}
        return {
            label: {name: values[label] for name, values in named.items()} for label in self.metrics
        }
