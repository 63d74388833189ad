"""What an online test says of pairs of systems: difference, standard error, p-value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import choose
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.distributions import binomial_half_cdf, half_widths, student_t_sf
from unskew.unbiased.top_items import TopLists


@dataclass(frozen=True, eq=False)
class PairEffects:
    """How much each pair of systems differs in a test; above 0 if the first is ahead."""

    difference: F64
    error: F64
    """Its standard error."""
    df: F64
    """Degrees of freedom of Student's t; infinite for the normal distribution."""
    p: F64

    def interval(self, level: float) -> tuple[F64, F64]:
        """Return both ends of the interval of the difference, which lies between -1 and 1."""
        half = half_widths(self.df, level) * self.error
        return np.maximum(self.difference - half, -1.0), np.minimum(self.difference + half, 1.0)


def pairs_of(count: int) -> list[tuple[int, int]]:
    """Return all pairs of so many systems."""
    return list(combinations(range(count), 2))


def effects_of_counts(counts: I64, k: int) -> PairEffects:
    """Compare clicks per shown item by Welch's t-test; `counts` has lists, clicks, squares."""
    lists, mean, error = mean_clicks(counts, k)
    a, b = np.array(pairs_of(len(counts))).T
    difference = mean[a] - mean[b]
    spread = np.sqrt(error[a] ** 2 + error[b] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = spread**4 / (error[a] ** 4 / (lists[a] - 1) + error[b] ** 4 / (lists[b] - 1))
    # Without any variance no degrees of freedom are defined; the interval is a point then.
    return _by_t(difference, spread, np.where(np.isfinite(df), df, 1.0))


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


def effects_of_users(values: F64) -> PairEffects:
    """Compare values of the same users, systems x users, by the paired t-test."""
    a, b = np.array(pairs_of(len(values))).T
    gap = values[a] - values[b]
    n = gap.shape[1]
    spread = gap.std(axis=1, ddof=1) / math.sqrt(n) if n > 1 else np.full(a.size, np.nan)
    return _by_t(gap.mean(axis=1), spread, np.full(a.size, max(n - 1, 1.0)))


def effects_of_wins(wins: I64, n: int) -> PairEffects:
    """Compare impressions won by the sign test; the difference is share won less share lost.

    Impressions that neither wins say nothing about p (exact, two-sided).
    """
    a, b = np.array(pairs_of(len(wins))).T
    won, lost = wins[a, b], wins[b, a]
    difference = (won - lost) / n
    p = np.minimum(2 * binomial_half_cdf(np.minimum(won, lost), won + lost), 1.0)
    error = np.sqrt(((won + lost) / n - difference**2) / n)
    return PairEffects(difference, error, np.full(a.size, np.inf), p)


def _by_t(difference: F64, error: F64, df: F64) -> PairEffects:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(difference) / error
    # No spread at all: equal means are no difference, others a certain one. Too few lists: nothing
    # can be said.
    p = np.where(difference == 0, 1.0, 2 * student_t_sf(t, df))
    return PairEffects(difference, error, df, np.where(np.isnan(p), 1.0, p))


def pair_table(
    shown: TopLists, effects: PairEffects, level: float, correction: str | None
) -> pl.DataFrame:
    """Return a row per pair: the difference in the test, and the true one."""
    true, names, rows = shown.true(), shown.systems, []
    low, high = effects.interval(level)
    # A test of six systems makes 15 comparisons: without correction a third of such tests of equal
    # systems would name a winner.
    corrected = effects.p if correction is None else correct(effects.p, correction)
    for at, (a, b) in enumerate(pairs_of(len(names))):
        difference = float(effects.difference[at])
        clear = bool(corrected[at] < 1 - level)
        rows.append(
            {
                "a": names[a],
                "b": names[b],
                "difference": difference,
                "low": float(low[at]),
                "high": float(high[at]),
                "p": float(effects.p[at]),
                "p_corrected": float(corrected[at]),
                "winner": (names[a] if difference > 0 else names[b]) if clear else None,
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
    """Raise an error for an unknown correction."""
    if correction is not None:
        choose("correction", correction, CORRECTIONS)


def winner_rule(count: int, level: float, correction: str | None) -> str:
    """Return the rule by which a winner is named, in words."""
    pairs = len(pairs_of(count))
    if pairs == 1:
        return f"winner: p < {1 - level:.3g}"
    p = "p, not corrected" if correction is None else f"p, corrected by {correction}"
    return f"winner: {p} for {pairs} pairs, < {1 - level:.3g}; intervals are of single pairs"
