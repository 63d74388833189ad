"""`looks_random`: whether ratings could be missing at random."""

from __future__ import annotations

import math

import numpy as np

from unskew.arrays import I64
from unskew.checks import check_share, checked
from unskew.data.ratings import Ratings
from unskew.report.columns import TEST, Column, Method, Question
from unskew.report.estimates import Estimates

# Cells with fewer expected ratings than this make a chi-square unreliable.
_PER_CELL = 10
_GROUPS = 10
MISSING_AT_RANDOM = Question(
    name="missing at random",
    columns=(
        Column("test", "key"),
        Column("value", "value", "chi-square"),
        Column("df", "count"),
        *TEST,
    ),
    method=Method(
        estimand="how far ratings are from those of randomly chosen items",
        unit="ratings",
        test="chi-square tests",
        correction="Bonferroni over 3 tests",
    ),
    figures=(),
)


@checked
def looks_random(ratings: Ratings, level: float = 0.01) -> Estimates:
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
        The level of significance, shared by the three tests (Bonferroni).

    Returns
    -------
    Estimates
        A row per test: `items` (are all rated equally often, given how much each user rates?),
        `users` (do all rate equally often, given how often each item is rated?) and `pairs` (do
        active users rate the same items as others?). NaN where there is nothing to test.

    Examples
    --------
    People rate what they choose; randomly chosen items are rated without regard to popularity.

    >>> import unskew as us
    >>> shop = us.world("shop", users=200, items=40, density=0.3, seed=3)
    >>> us.splits.looks_random(shop.random(0.2))
    test   chi-square   df       p
    items     39.8206   39  1.0000
    users    233.2128  199  0.1458
    pairs     76.4890   81  1.0000
    p: chi-square tests, corrected by Bonferroni over 3 tests
    The ratings look missing at random (level 0.01, three tests).
    >>> us.splits.looks_random(shop.ratings).table()["significant"].to_list()
    [True, True, True]
    """
    check_share("level", level)
    per_user = np.diff(ratings.start)
    per_item = np.bincount(ratings.item, minlength=len(ratings.items))
    tests = {
        "items": cochran(per_item, per_user),
        "users": cochran(per_user, per_item),
        "pairs": _independence(ratings, per_user, per_item),
    }
    rows = [
        {
            "test": name,
            "value": statistic,
            "df": df,
            "p": p,
            "p_corrected": min(len(tests) * p, 1.0),
            "significant": p < level / len(tests),
        }
        for name, (statistic, df, p) in tests.items()
    ]
    verb = "do not look" if any(row["significant"] for row in rows) else "look"
    return Estimates.of_rows(
        MISSING_AT_RANDOM,
        rows,
        conclusion=(f"The ratings {verb} missing at random (level {level:g}, three tests).",),
        card={"level": level},
    )


def cochran(counts: I64, others: I64) -> tuple[float, int, float]:
    """Return Cochran's Q, its degrees of freedom and its p; NaN where there is nothing to test.

    It asks whether counts are equal given those of the other side.
    """
    size, total = counts.size, int(counts.sum())
    spread = size * int(counts @ counts) - total * total  # size^2 times the variance
    scale = size * total - int(others @ others)
    if size < 2 or scale <= 0:
        return math.nan, max(size - 1, 0), math.nan
    statistic = (size - 1) * spread / scale
    return statistic, size - 1, chi_square_tail(statistic, size - 1)


def _independence(ratings: Ratings, per_user: I64, per_item: I64) -> tuple[float, int, float]:
    """Test user groups x item groups; a pair is rated once at most, which lessens the variance."""
    limit = min(_GROUPS, math.isqrt(len(ratings) // _PER_CELL))
    users, n = _groups(per_user, limit)
    items, m = _groups(per_item, limit)
    unrated_share = 1 - len(ratings) / (per_user.size * per_item.size)
    if n < 2 or m < 2 or unrated_share <= 0:
        return math.nan, max((n - 1) * (m - 1), 0), math.nan
    cell = users[ratings.user] * m + items[ratings.item]
    table = np.bincount(cell, minlength=n * m).reshape(n, m).astype(np.float64)
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    statistic = float(np.sum((table - expected) ** 2 / expected)) / unrated_share
    df = (n - 1) * (m - 1)
    return statistic, df, chi_square_tail(statistic, df)


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
