"""`looks_random`: whether ratings could be missing at random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.checks import checked
from unskew.data.ratings import Ratings
from unskew.errors import SettingError
from unskew.report.result import Result

# Cells with fewer expected ratings than this make a chi-square unreliable.
_PER_CELL = 10
_GROUPS = 10


@dataclass(frozen=True)
class ChiSquare:
    """A chi-square statistic, its degrees of freedom and the probability of one as large."""

    statistic: float
    df: int
    p: float
    """NaN where there is nothing to test."""


@dataclass(frozen=True)
class LooksRandom(Result):
    """Three chi-square tests of whether ratings look missing at random. Made by `looks_random`."""

    items: ChiSquare
    """Are all items rated equally often, given how much each user rates?"""
    users: ChiSquare
    """Do all users rate equally often, given how often each item is rated?"""
    pairs: ChiSquare
    """Are users and items independent: do active users rate the same items as others?"""
    level: float
    """The level at which it is judged."""

    @property
    def random(self) -> bool:
        """Whether no test rejects at the level, shared by the three (Bonferroni)."""
        return all(not test.p < self.level / 3 for test in (self.items, self.users, self.pairs))

    def table(self) -> pl.DataFrame:
        """Return a row per test: statistic, degrees of freedom, p."""
        return pl.DataFrame(
            [
                {"of": of, "chi2": test.statistic, "df": test.df, "p": test.p}
                for of, test in (
                    ("items", self.items),
                    ("users", self.users),
                    ("pairs", self.pairs),
                )
            ]
        )

    def _content(self) -> dict[str, object]:
        return {"random": self.random, "level": self.level, "tests": self.table()}

    def _summary(self) -> str:
        verdict = "looks" if self.random else "does not look"
        return f"{verdict} missing at random (level {self.level:g}, three tests)"

    def _explanation(self) -> list[str]:
        return [self._summary()]

    def __str__(self) -> str:
        lines = [self._summary()]
        for row in self.table().iter_rows(named=True):
            lines.append(
                f"  {row['of']}: chi-square {row['chi2']:,.1f}, {row['df']:,} degrees of freedom, "
                f"p = {row['p']:.3g}"
            )
        return "\n".join(lines)


@checked
def looks_random(ratings: Ratings, level: float = 0.01) -> LooksRandom:
    """Test whether ratings look missing at random, as ratings of randomly chosen items would.

    Items and users: Cochran's Q, a chi-square of the marginal counts that knows that a pair is
    rated once at the most and that holds for any distribution of the other side. It is one-sided:
    counts that are more even than chance makes them, such as 16 ratings from every user, do not
    speak against randomness. Pairs: Pearson's chi-square of independence, P(u, i) = P(u) P(i)
    (carraro2020 Eq. 5), of at most 10 groups of users by activity x 10 groups of items by
    popularity, because single pairs are rated once or not at all.

    Parameters
    ----------
    ratings
        Over all users and items that could have been chosen (those of its ids).
    level
        The level at which `LooksRandom.random` is judged.
    """
    if not 0 < level < 1:
        raise SettingError(f"level must be between 0 and 1, got {level!r}")
    per_user = np.diff(ratings.start)
    per_item = np.bincount(ratings.item, minlength=len(ratings.items))
    return LooksRandom(
        cochran(per_item, per_user),
        cochran(per_user, per_item),
        _independence(ratings, per_user, per_item),
        level,
    )


def cochran(counts: I64, others: I64) -> ChiSquare:
    """Return Cochran's Q, which asks whether counts are equal given those of the other side."""
    size, total = counts.size, int(counts.sum())
    spread = size * int(counts @ counts) - total * total  # size^2 times the variance
    scale = size * total - int(others @ others)
    if size < 2 or scale <= 0:
        return ChiSquare(math.nan, max(size - 1, 0), math.nan)
    statistic = (size - 1) * spread / scale
    return ChiSquare(statistic, size - 1, chi_square_tail(statistic, size - 1))


def _independence(ratings: Ratings, per_user: I64, per_item: I64) -> ChiSquare:
    """Test user groups x item groups; a pair is rated once at most, which lessens the variance."""
    limit = min(_GROUPS, math.isqrt(len(ratings) // _PER_CELL))
    users, n = _groups(per_user, limit)
    items, m = _groups(per_item, limit)
    unrated_share = 1 - len(ratings) / (per_user.size * per_item.size)
    if n < 2 or m < 2 or unrated_share <= 0:
        return ChiSquare(math.nan, max((n - 1) * (m - 1), 0), math.nan)
    cell = users[ratings.user] * m + items[ratings.item]
    table = np.bincount(cell, minlength=n * m).reshape(n, m).astype(np.float64)
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    statistic = float(np.sum((table - expected) ** 2 / expected)) / unrated_share
    df = (n - 1) * (m - 1)
    return ChiSquare(statistic, df, chi_square_tail(statistic, df))


def _groups(counts: I64, limit: int) -> tuple[I64, int]:
    """Part users or items by falling count into groups of about equal numbers of ratings."""
    order = np.argsort(-counts, kind="stable")
    falling = counts[order]
    middle = 2 * np.cumsum(falling) - falling
    group = np.empty(counts.size, np.int64)
    group[order] = middle * limit // max(2 * int(counts.sum()), 1)
    rated = np.unique(group[counts > 0])
    return np.searchsorted(rated, group), int(rated.size)


def chi_square_tail(statistic: float, df: float) -> float:
    """Return the probability that a chi-square variable is at least as large.

    The regularised upper incomplete gamma function Q(df/2, statistic/2): its series below the
    mean, its continued fraction (modified Lentz) above.

    Examples
    --------
    >>> from unskew.splits.looks_random import chi_square_tail
    >>> round(chi_square_tail(3.841458820694124, 1), 12)
    0.05
    """
    a, x = df / 2, statistic / 2
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        while term > total * 1e-17:
            a += 1
            term *= x / a
            total += term
        return max(0.0, 1 - scale * total)
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    value, change, n = d, 0.0, 0
    while abs(change - 1) > 1e-15:
        n += 1
        b += 2
        step = -n * (n - a)
        d = 1 / (step * d + b or tiny)
        c = b + step / c or tiny
        change = d * c
        value *= change
    return scale * value
