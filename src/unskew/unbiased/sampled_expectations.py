"""What sampled metrics are expected to be, by sample size, given the true ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from unskew.arrays import F64, I64
from unskew.checks import as_count, checked, choose
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.one_relevant import of_rank, value_at
from unskew.metrics.names import Metric
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.unbiased.sampled_ranks import (
    METRICS,
    Metrics,
    check_ranks,
    expected_sampled,
    ranks_by_system,
    whole_numbers,
)

SIZES = (10, 20, 50, 100, 200, 500, 1_000)


@dataclass(frozen=True, eq=False)
class ExpectedSampled(Result):
    """What sampled metrics are expected to be, by sample size. Made by `expected_metrics`."""

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    sizes: tuple[int, ...]
    value: F64
    """Metrics x sizes x systems."""
    full: F64
    """Metrics x systems."""
    lists: int
    replacement: bool = False

    def table(self) -> pl.DataFrame:
        """Return a row per metric, sample size and system: expected, full."""
        rows = [
            (metric, size, system, float(self.value[m, z, s]), float(self.full[m, s]))
            for m, metric in enumerate(self.metrics)
            for z, size in enumerate(self.sizes)
            for s, system in enumerate(self.systems)
        ]
        schema = {
            "metric": pl.String,
            "n": pl.Int64,
            "system": pl.String,
            "expected": pl.Float64,
            "full": pl.Float64,
        }
        return pl.DataFrame(rows, schema, orient="row")

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the expectation over the sample size; where lines cross, so do conclusions."""
        import altair as alt

        m = 0 if metric is None else self.metrics.index(choose("metric", metric, self.metrics))
        rows = [
            {"n": size, "system": system, "expected": float(self.value[m, z, s])}
            for z, size in enumerate(self.sizes)
            for s, system in enumerate(self.systems)
        ]
        x = alt.X("n:Q", title="others drawn, n").scale(type="log")
        y = alt.Y("expected:Q", title=f"expected {self.metrics[m]}")
        color = alt.Color("system:N").scale(domain=list(self.systems))
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        line: alt.Chart = chart.mark_line(point=True).encode(x=x, y=y, color=color)
        return as_figure(line, "Expected value of a sampled metric", self.footer(), rows)

    def _content(self) -> dict[str, object]:
        return {"lists": self.lists, "expected": self.table()}

    def _explanation(self) -> list[str]:
        draws = "with" if self.replacement else "without"
        return [
            f"exact expectation over {counted(self.lists, 'list')}; others drawn {draws} "
            "replacement"
        ]

    def display_table(self) -> pl.DataFrame:
        """Return a row per metric and sample size, a column per system."""
        return self.table().pivot("system", index=["metric", "n"], values="expected")

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, n = {list(self.sizes)}"


@checked
def expected_metrics(
    true_ranks: Mapping[str, ArrayLike] | ArrayLike,
    metrics: Metrics = METRICS,
    *,
    items: ArrayLike,
    sizes: Sequence[int] = SIZES,
    replacement: bool = False,
    threads: int | None = None,
) -> ExpectedSampled:
    """Return what metrics are expected to be at several sample sizes, given the true ranks.

    Parameters
    ----------
    true_ranks
        The rank of each list's one relevant item among all items; by system where there are
        several. NaN, where a system could not rank it, counts 0.
    metrics
        See `value_at`.
    items
        N, how many items there are, the relevant one included; one number or one per list.
    sizes
        How many others are drawn. Where a list has fewer, all of them are taken.
    replacement
        Whether others are drawn with replacement.
    threads
        Never changes a result.

    Examples
    --------
    One system ranks every relevant item 100th, the other half of them 10th and half 400th. The
    second is better; a small sample says the opposite.

    >>> from unskew.unbiased.sampled_expectations import expected_metrics
    >>> ranks = {"steady": [100, 100], "bold": [10, 400]}
    >>> result = expected_metrics(ranks, "Recall@10", items=1000, sizes=[20, 999])
    >>> result.value[0].round(3).tolist()
    [[1.0, 0.88], [0.0, 0.5]]
    """
    wanted = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    names, ranks = ranks_by_system("true_ranks", true_ranks)
    lists = ranks.shape[1]
    if not lists:
        raise DataError("true_ranks: there are no lists")
    size = whole_numbers("items", items, lists)
    check_ranks("true_ranks", ranks, size)
    several = tuple(as_count("sizes", one) for one in sizes)
    if not several:
        raise SettingError("no sizes are given")
    value = np.zeros((len(wanted), len(several), len(names)))
    cells = np.stack([np.broadcast_to(size, ranks.shape), np.nan_to_num(ranks).astype(np.int64)])
    full = np.zeros((len(wanted), len(names)))
    for s in range(len(names)):
        here = cells[:, s, ~np.isnan(ranks[s])]
        pairs, count = np.unique(here, axis=1, return_counts=True)
        groups = [
            (int(total), pairs[1, pairs[0] == total], count[pairs[0] == total])
            for total in np.unique(pairs[0])
        ]
        for m, metric in enumerate(wanted.values()):
            truth = [value_at(metric, rank, total) @ many for total, rank, many in groups]
            full[m, s] = math.fsum(truth) / lists

            def one(group: tuple[int, I64, I64], metric: Metric = metric) -> list[float]:
                total, rank, many = group
                return [
                    float(_expected(metric, rank, total, n, replacement) @ many) for n in several
                ]

            parts = map_blocks(one, groups, threads, size=pairs.shape[1] * max(several))
            if parts:  # some rank is known
                value[m, :, s] = [math.fsum(column) / lists for column in zip(*parts, strict=True)]
    return ExpectedSampled(
        systems=names,
        metrics=tuple(wanted),
        sizes=several,
        value=value,
        full=full,
        lists=lists,
        replacement=replacement,
    )


def _expected(metric: Metric, rank: I64, items: int, n: int, replacement: bool) -> F64:
    if items < 2:
        return value_at(metric, rank, items)
    most = n if replacement else min(n, items - 1)
    return expected_sampled(metric, rank, items, most, replacement=replacement)
