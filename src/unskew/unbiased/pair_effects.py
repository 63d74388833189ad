"""What an online test says of pairs of systems: difference, standard error, p-value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import choose
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.distributions import binomial_half_cdf, student_t_quantile, student_t_sf
from unskew.unbiased.top_items import Shown


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a test says of pairs of systems: told > 0 if the first is ahead."""

    told: F64
    error: F64
    """Its standard error."""
    df: F64
    """Degrees of freedom of Student's t; infinite for the normal distribution."""
    p: F64

    def interval(self, level: float) -> tuple[F64, F64]:
        """Return both ends of the interval of what was told; all of it lies between -1 and 1."""
        half = quantiles(self.df, level) * self.error
        return np.maximum(self.told - half, -1.0), np.minimum(self.told + half, 1.0)


def quantiles(df: F64, level: float) -> F64:
    """Return how many standard errors wide an interval is, to each side."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    return np.array(
        [
            normal if math.isinf(one) else student_t_quantile((1 + level) / 2, float(one))
            for one in df
        ]
    )


def pairs_of(count: int) -> list[tuple[int, int]]:
    """Return all pairs of so many systems."""
    return list(combinations(range(count), 2))


def verdict_of_counts(counts: I64, k: int) -> Verdict:
    """Compare clicks per shown item by Welch's t-test; `counts` has lists, clicks, squares."""
    lists, mean, error = mean_clicks(counts, k)
    a, b = np.array(pairs_of(len(counts))).T
    told = mean[a] - mean[b]
    spread = np.sqrt(error[a] ** 2 + error[b] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = spread**4 / (error[a] ** 4 / (lists[a] - 1) + error[b] ** 4 / (lists[b] - 1))
    # Without any variance no degrees of freedom are defined; the interval is a point then.
    return _by_t(told, spread, np.where(np.isfinite(df), df, 1.0))


def mean_clicks(counts: I64, k: int) -> tuple[F64, F64, F64]:
    """Return of each system the lists shown, clicks per place, and its standard error."""
    lists, total = counts[:, 0].astype(np.float64), counts[:, 1].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # One division, as in the true P@k: where all are judged both have the same bits.
        rate = total / (lists * k)
        # n Σc² - (Σc)² in whole numbers: nothing is lost, and without spread it is exactly 0.
        exact = np.array([int(n) * int(q) - int(c) ** 2 for n, c, q in counts.tolist()], np.float64)
        error = np.sqrt(exact / (lists**2 * (lists - 1)))
    return lists, rate, error / k


def verdict_of_users(values: F64) -> Verdict:
    """Compare values of the same users, systems x users, by the paired t-test."""
    a, b = np.array(pairs_of(len(values))).T
    gap = values[a] - values[b]
    n = gap.shape[1]
    spread = gap.std(axis=1, ddof=1) / math.sqrt(n) if n > 1 else np.full(a.size, np.nan)
    return _by_t(gap.mean(axis=1), spread, np.full(a.size, max(n - 1, 1.0)))


def verdict_of_wins(wins: I64, n: int) -> Verdict:
    """Compare impressions won by the sign test; `told` is the share won less the share lost.

    Impressions that neither wins say nothing about p (exact, two-sided).
    """
    a, b = np.array(pairs_of(len(wins))).T
    won, lost = wins[a, b], wins[b, a]
    told = (won - lost) / n
    p = np.minimum(2 * binomial_half_cdf(np.minimum(won, lost), won + lost), 1.0)
    error = np.sqrt(((won + lost) / n - told**2) / n)
    return Verdict(told, error, np.full(a.size, np.inf), p)


def _by_t(told: F64, error: F64, df: F64) -> Verdict:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(told) / error
    # No spread at all: equal means are no difference, others a certain one. Too few lists: nothing
    # can be said.
    p = np.where(told == 0, 1.0, 2 * student_t_sf(t, df))
    return Verdict(told, error, df, np.where(np.isnan(p), 1.0, p))


def pair_table(
    shown: Shown, verdict: Verdict, level: float, correction: str | None
) -> pl.DataFrame:
    """Return a row per pair: what was told, and what is true."""
    true, names, rows = shown.true(), shown.systems, []
    low, high = verdict.interval(level)
    # A test of six systems makes 15 comparisons: without correction a third of such tests of equal
    # systems would name a winner.
    corrected = verdict.p if correction is None else correct(verdict.p, correction)
    for at, (a, b) in enumerate(pairs_of(len(names))):
        told = float(verdict.told[at])
        clear = bool(corrected[at] < 1 - level)
        rows.append(
            {
                "a": names[a],
                "b": names[b],
                "difference": told,
                "low": float(low[at]),
                "high": float(high[at]),
                "p": float(verdict.p[at]),
                "p_corrected": float(corrected[at]),
                "winner": (names[a] if told > 0 else names[b]) if clear else None,
                "true": float(true[a] - true[b]),
                "better": None if true[a] == true[b] else names[a if true[a] > true[b] else b],
            }
        )
    return pl.DataFrame(rows, schema=_PAIRS)


_PAIRS = {
    "a": pl.String,
    "b": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_corrected": pl.Float64,
    "winner": pl.String,
    "true": pl.Float64,
    "better": pl.String,
}


def check_correction(correction: str | None) -> None:
    """Refuse a correction that there is not."""
    if correction is not None:
        choose("correction", correction, CORRECTIONS)


def winner_rule(count: int, level: float, correction: str | None) -> str:
    """Say by which p winners are named."""
    pairs = len(pairs_of(count))
    if pairs == 1:
        return f"winner: p < {1 - level:.3g}"
    how = "not corrected" if correction is None else f"corrected by {correction}"
    return f"winner: p, {how} for {pairs} pairs, < {1 - level:.3g}; intervals are of single pairs"
