"""`power`: how well each metric tells the systems apart, and what the users at hand allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from unskew.checks import checked
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress
from unskew.report.charts import Figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.discrimination import ALPHA, POWER, DiscriminativePower, discriminative_power
from unskew.stats.pairing import Source
from unskew.stats.sample_sizes import SampleSize, sample_size

PERMUTATIONS = 100_000


@dataclass(frozen=True, eq=False)
class Power(Result):
    """How well each metric tells the systems apart.

    Made by `power`.
    """

    discriminative: DiscriminativePower
    sizes: SampleSize
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, the most discriminative first.

        Columns: metric; DP, median_p and ratio of `DiscriminativePower.table`; users,
        detectable and needed of `SampleSize.table`.
        """
        table = self.discriminative.table().select("metric", "DP", "median_p", "ratio")
        sizes = self.sizes.table().select("metric", "users", "detectable", "needed")
        table = table.join(sizes, on="metric", how="left", maintain_order="left")
        return table.sort("DP", maintain_order=True)

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the p-value curves."""
        return self.discriminative.figure(metrics)

    def _explanation(self) -> list[str]:
        return [*self.discriminative.footer(), *self.sizes.footer()]

    def _summary(self) -> str:
        return (
            f"{counted(len(self.sizes.metrics), 'metric')}, "
            f"{counted(len(self.sizes.pairs), 'pair')}"
        )


@notebook_progress("power")
@checked
def power(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    test: str = "randomisation",
    permutations: int = PERMUTATIONS,
    plus_one: bool = True,
    ordered: bool = False,
    difference: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Power:
    """Measure how well each metric tells the systems apart, and what the users at hand allow.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metrics
        Labels of these scores; all that have a value per user unless named.
    test, permutations, plus_one
        How the p-values of all pairs are found, see `compare`; they are not corrected. The paper's
        have no +1.
    ordered
        Count each pair twice in DP, see `discriminative_power`.
    difference, power, alpha
        See `sample_size`.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with (done, total) as work goes on.
    """
    from unskew.stats.significance import compare

    sizes = sample_size(
        scores, metrics, difference=difference, power=power, alpha=alpha, threads=threads
    )
    comparison = compare(
        scores,
        list(sizes.metrics),
        test=test,
        permutations=permutations,
        plus_one=plus_one,
        correction=None,
        interval="t",
        seed=seed,
        threads=threads,
        progress=progress,
    )
    pairs = discriminative_power(comparison, alpha=alpha, ordered=ordered)
    return Power(pairs, sizes, comparison.notes)
