"""Paired tests without permutations: Student's t, Wilcoxon's signed ranks, signs.

Each returns a p-value per pair of a sample. `side` is 0 for two-sided, 1 for the first system
greater, -1 for less. A pair that does not differ for any user has p = 1 in all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations as orders

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.engine.rng import generator
from unskew.engine.threads import map_blocks
from unskew.errors import DataError
from unskew.stats.intervals.skewed import (
    MeanEstimates,
    estimates,
    means_of_sums,
    without_skewness,
)
from unskew.stats.pairing import PairedSample
from unskew.stats.special import (
    binomial_half_cdf,
    f_sf,
    p_of_counts,
    range_cdf,
    student_t_sf,
)

FEWEST_SKEWED = 30
"""With fewer users their skewness cannot be estimated."""
MOST_SKEWNESS = 0.2
"""The skewness of a mean difference up to which Student's t holds."""
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


def skewed_differences(sample: PairedSample) -> tuple[Mask, MeanEstimates]:
    """Return which pairs have strongly skewed differences, and all differences as estimates.

    From `FEWEST_SKEWED` users on a pair counts where the skewness of its mean difference (that of
    the users' differences by the square root of their number) is beyond `MOST_SKEWNESS`. Such are
    all-or-nothing values against steady ones: t intervals then miss up to 12 times in 100, on one
    side. What neither Student's test nor Hall's, which takes the skewness out, rejects, holds.
    """
    means = means_of_sums(
        np.full(len(sample.pairs), float(sample.users)),
        np.zeros(len(sample.pairs)),
        sample.squares,
        sample.cubes,
    )
    variance = sample.standard_error**2
    of = estimates(sample.difference, variance, means.third, means.count - 1)
    skewness = np.where(sample.constant, 0.0, of.skewness)
    is_skewed = (np.abs(skewness) > MOST_SKEWNESS) & (sample.users >= FEWEST_SKEWED)
    return is_skewed, replace(of, skewness=skewness, is_difference=True)


def t_test(sample: PairedSample, side: int) -> F64:
    """Return p of the paired t test: Student's t with users - 1 degrees of freedom.

    Where differences are strongly skewed, the larger p of Student's and of Hall's t counts.
    """
    if sample.users < 2:
        raise DataError(f"{sample.label}: a t test needs at least 2 users, there is 1")
    t = t_statistic(sample)
    is_skewed, of = skewed_differences(sample)
    straight = without_skewness(t[is_skewed], of.skewness[is_skewed])
    if side == 0:
        t = np.abs(t)
        t[is_skewed] = np.minimum(t[is_skewed], np.abs(straight))
        return np.minimum(2 * student_t_sf(t, sample.users - 1), 1.0)
    t = side * t
    t[is_skewed] = np.minimum(t[is_skewed], side * straight)
    return student_t_sf(t, sample.users - 1)


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

    def p_of_pair(pair: int) -> float:
        return signed_ranks(sample.differences(pair), side)

    pairs = range(len(sample.pairs))
    return np.array(map_blocks(p_of_pair, pairs, threads, len(pairs) * sample.users), np.float64)


def signed_ranks(differences: F64, side: int) -> float:
    """Return Wilcoxon's p of differences that are whole numbers, so that ties are ties."""
    d = differences[differences != 0]
    if not d.size:
        return 1.0
    _, position, count = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    doubled = (2 * last - count + 1)[position]  # twice the mean rank: whole numbers
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


_STATES = 1_000_000
"""The most sums of ranks that are looked at in one step of the exact distribution."""
_BLOCK = 4_096
"""Permutations drawn at a time: part of what is drawn, so never to be changed."""
_SAME = 1e-9
"""Sums of half ranks are exact; this only guards their squares."""


@dataclass(frozen=True)
class Friedman:
    """Whether systems rank alike over data sets.

    Under the null hypothesis every order of the systems is equally likely on each data set.
    """

    statistic: float
    """Friedman's chi square, corrected for ties."""
    f: float | None
    """Iman and Davenport's F; None where all data sets agree on the order: it is infinite."""
    p_f: float | None
    """Its p, of an F distribution: an approximation, which is wrong with fewer than 5 data sets."""
    p: float
    """Of the permutations of ranks within data sets."""
    is_exact: bool
    """Whether all permutations count; else some were drawn."""
    permutations: int
    """How many were drawn; 0 where all count."""


def ranks_of(values: F64, better: str) -> F64:
    """Return the rank of each system (column) on each data set (row); equal ones share the mean.

    Rank 1 is the best. Values that differ by rounding alone are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.tests.classic import ranks_of
    >>> ranks_of(np.array([[0.3, 0.2, 0.2]]), "higher").tolist()
    [[1.0, 2.5, 2.5]]
    """
    sign = 1.0 if better == "lower" else -1.0
    scale = np.abs(values).max(axis=1, keepdims=True)
    level = np.round(sign * values / np.where(scale > 0, scale, 1.0), 12)
    below = (level[:, :, None] > level[:, None, :]).sum(axis=2)
    same = (level[:, :, None] == level[:, None, :]).sum(axis=2)
    ranks: F64 = below + (same + 1) / 2
    return ranks


def friedman_test(ranks: F64, permutations: int, seed: int) -> Friedman:
    """Return Friedman's test of ranks, data sets x systems.

    The statistic is (k - 1) S / T, S the sum of squares of the systems' rank sums about their mean
    and T that of all ranks about theirs. F = (N - 1) chi2 / (N (k - 1) - chi2) has k - 1 and
    (k - 1)(N - 1) degrees of freedom (Iman and Davenport 1980; Demšar 2006).
    """
    data_sets, systems = ranks.shape
    middle = (systems + 1) / 2
    total = float(((ranks - middle) ** 2).sum())
    observed = _spread(ranks.sum(axis=0)[None])[0]
    if total == 0:
        return Friedman(0.0, None, None, 1.0, is_exact=True, permutations=0)
    chi = (systems - 1) * observed / total
    remainder = data_sets * (systems - 1) - chi
    f = p_f = None
    if data_sets > 1 and remainder > _SAME * chi:
        f = (data_sets - 1) * chi / remainder
        p_f = f_sf(f, systems - 1, (systems - 1) * (data_sets - 1))
    exact = _exact_p(ranks, observed)
    if exact is not None:
        return Friedman(chi, f, p_f, exact, is_exact=True, permutations=0)
    p = _drawn_p(ranks, observed, permutations, seed)
    return Friedman(chi, f, p_f, p, is_exact=False, permutations=permutations)


def _spread(sums: F64) -> F64:
    """Return the sum of squares of each row about its mean."""
    result: F64 = ((sums - sums.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return result


def _exact_p(ranks: F64, observed: float) -> float | None:
    """Return the share of all permutations within data sets that spread as much; None: too many.

    Data set by data set the sums of ranks are extended by every order of the next ranks. What
    comes is the same whatever systems the sums belong to, so that only sorted sums are kept.
    """
    data_sets, systems = ranks.shape
    doubled = np.rint(2 * ranks).astype(np.int64)
    base = int(doubled.sum(axis=0).max()) * 2 + 1
    if systems > 7 or systems * math.log2(max(base, data_sets * 2 * systems + 1)) > 62:
        return None
    base = max(base, data_sets * 2 * systems + 1)
    power = base ** np.arange(systems, dtype=np.int64)
    sums, share = np.sort(doubled[:1], axis=1), np.ones(1)
    for row in doubled[1:]:
        arrangements = np.array(list(orders(row.tolist())), np.int64)
        if sums.shape[0] * arrangements.shape[0] > _STATES:
            return None
        after = np.sort((sums[:, None] + arrangements).reshape(-1, systems), axis=1)
        _, first, state = np.unique(after @ power, return_index=True, return_inverse=True)
        share = np.bincount(state, np.repeat(share, arrangements.shape[0])) / arrangements.shape[0]
        sums = after[first]
    return float(min(share[_spread(sums / 2) >= observed * (1 - _SAME)].sum(), 1.0))


def _drawn_p(ranks: F64, observed: float, permutations: int, seed: int) -> float:
    rng = generator(seed, "friedman")
    extreme = 0
    for start in range(0, permutations, _BLOCK):
        sums = np.zeros((_BLOCK, ranks.shape[1]))
        for row in ranks:
            sums += rng.permuted(np.tile(row, (_BLOCK, 1)), axis=1)
        spreads = _spread(sums)[: permutations - start]
        extreme += int((spreads >= observed * (1 - _SAME)).sum())
    return float(p_of_counts(extreme, permutations))


@cache
def critical_difference(systems: int, data_sets: int, alpha: float) -> float:
    """Return Nemenyi's critical difference of mean ranks (Demšar 2006, section 3.2.2).

    q sqrt(k (k + 1) / (6 N)), q the quantile of the range of k standard normal values over the
    square root of 2.

    Examples
    --------
    >>> from unskew.stats.tests.classic import critical_difference
    >>> round(critical_difference(4, 14, 0.05), 2)
    1.25
    """
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if range_cdf(middle, systems) < 1 - alpha else (low, middle)
    return high / math.sqrt(2) * _rank_error(systems, data_sets)


def nemenyi_p(difference: float, systems: int, data_sets: int) -> float:
    """Return p of a difference of mean ranks, corrected for all pairs."""
    width = math.sqrt(2) * abs(difference) / _rank_error(systems, data_sets)
    return max(0.0, 1 - range_cdf(width, systems))


def _rank_error(systems: int, data_sets: int) -> float:
    return math.sqrt(systems * (systems + 1) / (6 * data_sets))


def sign_counts(differences: F64) -> tuple[I64, I64]:
    """Return on how many data sets (rows) each pair (column) is above and below 0."""
    return (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
