"""Paired tests without permutations: Student's t, Wilcoxon's signed ranks, signs.

Each returns a p-value per pair of a sample. `side` is 0 for two-sided, 1 for the first system
greater, -1 for less. A pair that does not differ for any user has p = 1 in all of them.
"""

from __future__ import annotations

import math

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.threads import map_blocks
from unskew.errors import DataError
from unskew.stats.distributions import binomial_half_cdf, student_t_sf
from unskew.stats.samples import PairedSample

EXACT_WILCOXON = 50
"""Differences other than 0 up to which Wilcoxon's p is exact, ties or not."""


def t_statistic(sample: PairedSample) -> F64:
    """Return mean / standard error of each pair's differences; 0 where no user differs.

    Infinite where all users differ by the same amount.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        t = sample.difference / sample.standard_error
    none = (sample.better == 0) & (sample.worse == 0)
    return np.where(none, 0.0, t)


def t_test(sample: PairedSample, side: int) -> F64:
    """Return p of the paired t test: Student's t with users - 1 degrees of freedom."""
    if sample.users < 2:
        raise DataError(f"{sample.label}: a t test needs at least 2 users, there is 1")
    t = t_statistic(sample)
    if side == 0:
        return np.minimum(2 * student_t_sf(np.abs(t), sample.users - 1), 1.0)
    return student_t_sf(side * t, sample.users - 1)


def sign_test(sample: PairedSample, side: int) -> F64:
    """Return p of the sign test: users for and against, a fair coin under the null, exactly.

    Users without a difference are left out (Dixon and Mood 1946).
    """
    better, worse = sample.better, sample.worse
    number = better + worse
    if side == 0:
        return np.minimum(2 * binomial_half_cdf(np.minimum(better, worse), number), 1.0)
    against = worse if side > 0 else better
    return binomial_half_cdf(against, number)


def wilcoxon_test(sample: PairedSample, side: int, threads: int | None = None) -> F64:
    """Return p of Wilcoxon's signed-rank test.

    Users without a difference are left out (Wilcoxon 1945; scipy's `zero_method="wilcox"`), equal
    differences share their mean rank. Up to 50 differences p is exact, over all sign patterns of
    these very ranks; beyond, normal with the variance corrected for ties, without a correction
    for continuity.
    """

    def one(pair: int) -> float:
        return signed_ranks(sample.differences(pair), side)

    pairs = range(len(sample.pairs))
    return np.array(map_blocks(one, pairs, threads, len(pairs) * sample.users), np.float64)


def signed_ranks(differences: F64, side: int) -> float:
    """Return Wilcoxon's p of differences that are whole numbers, so that ties are ties."""
    d = differences[differences != 0]
    if not d.size:
        return 1.0
    _, place, count = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    doubled = (2 * last - count + 1)[place]  # twice the mean rank: whole numbers
    plus = int(doubled[d > 0].sum())
    if d.size <= EXACT_WILCOXON:
        return _exact_signed_ranks(doubled, plus, side)
    n = d.size
    variance = (
        n * (n + 1) * (2 * n + 1) / 24 - float((count.astype(np.float64) ** 3 - count).sum()) / 48
    )
    z = (plus / 2 - n * (n + 1) / 4) / variance**0.5
    if side == 0:
        return math.erfc(abs(z) / math.sqrt(2))
    return 0.5 * math.erfc(side * z / math.sqrt(2))


def _exact_signed_ranks(doubled: I64, plus: int, side: int) -> float:
    """Count the sign patterns of these ranks whose positive sum is as extreme, all 2**n of them."""
    total = int(doubled.sum())
    ways = [1] + [0] * total  # whole numbers of any size: exact
    reach = 0
    for rank in doubled.tolist():
        for value in range(reach, -1, -1):
            ways[value + rank] += ways[value]
        reach += rank
    at_least, at_most = sum(ways[plus:]), sum(ways[: plus + 1])
    patterns = 1 << int(doubled.size)
    if side == 0:
        return min(1.0, 2 * min(at_least, at_most) / patterns)
    return (at_least if side > 0 else at_most) / patterns
