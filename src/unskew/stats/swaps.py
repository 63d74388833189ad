"""`swap_rate`: how often two halves of the users disagree about which of two systems is better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, check_share, checked, choose
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress
from unskew.engine.rng import key_of
from unskew.errors import DataError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.correlation import rounded
from unskew.stats.pairing import Source, paired
from unskew.stats.user_draws import check_two_systems, chosen_metrics, reweighted

SAMPLES = 1_000


BINS = 20


@dataclass(frozen=True, eq=False)
class SwapRate(Result):
    """How often two halves of the users disagree about which of two systems is better.

    Made by `swap_rate`.
    """

    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    edges: F64
    """Metrics x bins: where each bin of differences begins."""
    comparisons: I64
    """Metrics x bins: pairs and samples whose first half shows such a difference."""
    swaps: I64
    """Metrics x bins: of these, where the second half says the opposite."""
    ties: I64
    """Metrics: pairs and samples in which the first half shows no difference at all."""
    gaps: F64
    """Metrics x pairs: the difference over all users."""
    users: int
    samples: int
    limit: float = 0.05

    def table(self) -> pl.DataFrame:
        """Return a row per metric: swap rate, the difference that is safe, pairs that reach it.

        Columns: metric, swap_rate (swaps / comparisons with a difference), ties (share of the
        comparisons without one), difference (the least at which, and above which, no bin swaps
        more often than `limit`), relative (the same as a share of the largest difference between
        two systems), decided (share of the pairs of systems that differ by at least this much).
        """
        rows = []
        for at, metric in enumerate(self.metrics):
            count = int(self.comparisons[at].sum())
            safe = self._safe(at)
            largest = float(self.gaps[at].max(initial=0.0))
            rows.append(
                {
                    "metric": metric,
                    "swap_rate": int(self.swaps[at].sum()) / count if count else None,
                    "ties": int(self.ties[at]) / max(count + int(self.ties[at]), 1),
                    "difference": safe,
                    "relative": safe / largest if safe is not None and largest > 0 else None,
                    "decided": None if safe is None else float((self.gaps[at] >= safe).mean()),
                }
            )
        numbers = ("swap_rate", "ties", "difference", "relative", "decided")
        return pl.DataFrame(rows, {"metric": pl.String, **dict.fromkeys(numbers, pl.Float64)})

    def _safe(self, at: int) -> float | None:
        safe = None
        for one in range(self.edges.shape[1] - 1, -1, -1):
            if self.comparisons[at, one]:
                if self.swaps[at, one] > self.limit * self.comparisons[at, one]:
                    break
                safe = float(self.edges[at, one])
        return safe

    def curves(self) -> pl.DataFrame:
        """Return the swap rate by difference: where bins begin, comparisons, swaps, rate."""
        bins = self.edges.shape[1]
        with np.errstate(invalid="ignore"):
            rate = self.swaps / self.comparisons
        table = pl.DataFrame(
            {
                "metric": np.repeat(self.metrics, bins),
                "difference": self.edges.ravel(),
                "comparisons": self.comparisons.ravel(),
                "swaps": self.swaps.ravel(),
                "rate": rate.ravel(),
            }
        )
        return table.with_columns(pl.col("rate").fill_nan(None))

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the swap rate over the difference, relative to the largest, a line per metric."""
        import altair as alt

        wanted = list(self.metrics) if metrics is None else list(metrics)
        rows = []
        for name in wanted:
            at = self.metrics.index(choose("metric", name, self.metrics))
            for one in np.flatnonzero(self.comparisons[at]).tolist():
                rate = float(self.swaps[at, one] / self.comparisons[at, one])
                place = one / self.edges.shape[1]
                rows.append({"metric": name, "difference": place, "rate": rate})
        x = alt.X("difference:Q", title="difference between two systems, of the largest")
        y = alt.Y("rate:Q", title="swap rate").axis(format="%")
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        color = alt.Color("metric:N").scale(domain=wanted)
        line: alt.Chart = chart.mark_line(point=True).encode(x=x.axis(format="%"), y=y, color=color)
        return as_figure(line, "Swap rate", self.footer(), rows)

    def _explanation(self) -> list[str]:
        return [
            f"{self.samples:,} random halves of {self.users:,} users; the better of two systems "
            f"on one half ({self.users // 2:,} users) is compared with the better one on the "
            "other half"
        ]

    def _summary(self) -> str:
        return f"{counted(len(self.metrics), 'metric')}, {counted(len(self.systems), 'system')}"


@notebook_progress("swap rate")
@checked
def swap_rate(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    samples: int = SAMPLES,
    bins: int = BINS,
    limit: float = 0.05,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> SwapRate:
    """Split users into random halves and count how often these disagree about two systems.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metrics
        Labels of these scores; all that have a value per user unless named.
    samples
        Random halves; with an odd number of users the second is larger by one.
    bins
        Differences in the first half are binned between 0 and the largest that occurs between two
        systems over all users; the last bin takes what is larger.
    limit
        The swap rate that is still acceptable, 5 % in the paper.
    seed, threads
        The same seed gives the same numbers, on any number of threads.

    References
    ----------
    Voorhees & Buckley 2002; Buckley & Voorhees 2000. They split sets of topics and extrapolate to
    all of them; here the rate is that of half the users, which overstates it for all.
    """
    from unskew.stats import rank_kernels as kernels

    both = paired(scores)
    check_two_systems(both.systems)
    labels = chosen_metrics(both, metrics)
    draws = as_count("samples", samples)
    as_count("bins", bins)
    check_share("limit", limit)
    if len(both) < 4:
        raise DataError(f"halves need at least 4 users, got {len(both)}")
    key = np.uint64(key_of(seed, "halves"))

    def first(low: int, out: F64) -> None:
        number = low + np.arange(len(out))
        kernels.part(key, frozen(number), frozen(np.full(len(out), len(both) // 2)), out)

    def second(low: int, out: F64) -> None:
        first(low, out)
        np.subtract(1.0, out, out=out)

    everyone = reweighted(both, labels, lambda _, out: out.fill(1.0), 1, threads)[0]
    halves = [
        reweighted(both, labels, weigh, draws, threads, progress) for weigh in (first, second)
    ]
    i, j = np.triu_indices(len(both.systems), 1)
    gaps = np.abs(everyone[:, i] - everyone[:, j])
    shape = (len(labels), bins)
    comparisons, swaps = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    ties = np.zeros(len(labels), np.int64)
    edges = np.zeros(shape)
    for at in range(len(labels)):
        # Means that are equal but for rounding are ties.
        scale = [np.abs(half[:, at]).max(axis=1, keepdims=True, initial=0) for half in halves]
        exact = [rounded(half[:, at]) * top for half, top in zip(halves, scale, strict=True)]
        one, other = (half[:, i] - half[:, j] for half in exact)
        width = max(float(gaps[at].max()), 1e-300) / bins
        edges[at] = np.arange(bins) * width
        apart = one != 0
        ties[at] = int((~apart).sum())
        # The smaller number first: where all means are equal, the width is next to nothing.
        bin_of = np.minimum(np.abs(one[apart]) / width, bins - 1).astype(np.int64)
        swapped = np.sign(one[apart]) * np.sign(other[apart]) < 0
        comparisons[at] = np.bincount(bin_of, minlength=bins)
        swaps[at] = np.bincount(bin_of[swapped], minlength=bins)
    return SwapRate(
        metrics=tuple(labels),
        systems=both.systems,
        edges=edges,
        comparisons=comparisons,
        swaps=swaps,
        ties=ties,
        gaps=gaps,
        users=len(both),
        samples=draws,
        limit=limit,
    )
