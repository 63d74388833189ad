"""Permutation tests of the mean of a group of users against that of the rest.

Users change groups at random. The statistic is studentised, with Welch's standard error, and its
skewness is taken out (`skewed_means`): the test is exact where values have one distribution in all
groups, and near its level where variances, shapes and sizes differ but means do not (Janssen 1997;
Pauly, Brunner and Konietschke, JRSS B 77, 2015). A side's variance counts as at least 1/20 of the
pooled one, so that a group whose users all have the same value does not get an infinite statistic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.stats.inequality import group_atkinson, group_gini
from unskew.stats.intervals.skewed import (
    Means,
    differences,
    means_of_sums,
    p_values_of,
    sums_by_group,
    without_skewness,
)
from unskew.stats.special import incomplete_beta, p_of_counts
from unskew.stats.tests.kernels import LEAST_VARIANCE
from unskew.stats.tests.randomisation import permuted_p

SHUFFLES = 4_999
FEWEST_SHUFFLES = 199
MOST_SHUFFLED = 20_000
"""With more users than this, p is that of Student's t alone."""
_WORK = 4_000_000_000
"""Values moved in all shuffles together: beyond it there are fewer shuffles."""
_CELLS = 1 << 21
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ShuffledGroups:
    """What shuffles of users say of each group against the rest: systems x groups."""

    p: F64
    """The larger p of Student's t and of the shuffles."""
    shuffles: int
    chance_gini: F64
    """Across groups, in the mean over shuffles; by system."""
    chance_atkinson: F64


def number_of_shuffles(users: int, systems: int) -> int:
    """Return how many shuffles are made: fewer for many values."""
    return int(min(SHUFFLES, max(FEWEST_SHUFFLES, _WORK // max(users * systems, 1))))


def shuffle_groups(
    values: F64,
    code: I64,
    groups: int,
    *,
    key: tuple[object, ...],
    seed: int = 0,
    epsilon: float = 0.5,
    threads: int | None = None,
) -> ShuffledGroups:
    """Test each group against the rest, for all systems with the same shuffles.

    Parameters
    ----------
    values
        Users x systems.
    code
        The group of each user.
    groups
        How many there are; each has users.
    key
        What the shuffles belong to.
    seed
        Of the shuffles.
    epsilon
        Of Atkinson's index.
    threads
        Never changes a number.
    """
    from unskew.stats.tests import kernels

    users, systems = values.shape
    centre = np.ascontiguousarray(values.T).mean(axis=1)
    centred = np.ascontiguousarray(values - centre)
    # A value that all users share leaves rounding errors, which are no variance.
    centred[:, np.abs(centred).max(axis=0) <= 1e-12 * np.abs(values).max(axis=0)] = 0.0
    count, *sums = sums_by_group(centred, code, groups)
    size = count[0]
    observed, p = _statistic(size, *sums)
    shuffles = number_of_shuffles(users, systems)
    block = int(max(1, min(100, _CELLS // (3 * systems * groups))))
    limit = observed * (1 - _ROUNDING)
    word = np.uint64(key_of(seed, "group shuffles", *key))

    def some(start: int) -> tuple[I64, F64, F64]:
        out = np.empty((min(block, shuffles - start), 3, systems, groups))
        kernels.shuffled_sums(word, start, centred, code, out)
        statistic, _ = _statistic(size, out[:, 0], out[:, 1], out[:, 2], with_p=False)
        means = out[:, 0] / size + centre[:, None]
        extreme = np.count_nonzero(statistic >= limit, axis=0)
        return extreme, group_gini(means, size), group_atkinson(means, size, epsilon)

    starts = range(0, shuffles, block)
    parts = map_blocks(some, starts, threads, shuffles * users)
    extreme = np.sum([part[0] for part in parts], axis=0)
    shuffled = p_of_counts(extreme, shuffles)
    if users <= MOST_SHUFFLED:
        p = np.maximum(np.where(np.isnan(p), 0.0, p), shuffled)
    return ShuffledGroups(
        p,
        shuffles,
        np.concatenate([part[1] for part in parts]).mean(axis=0),
        np.concatenate([part[2] for part in parts]).mean(axis=0),
    )


def _statistic(
    size: F64, sums: F64, squares: F64, cubes: F64, *, with_p: bool = True
) -> tuple[F64, F64]:
    """Return |g(t)| of each group against the rest, and its p by Student's t."""
    total = (power.sum(axis=-1, keepdims=True) for power in (sums, squares, cubes))
    rest_sums = [all_ - power for all_, power in zip(total, (sums, squares, cubes), strict=True)]
    here = means_of_sums(np.broadcast_to(size, sums.shape), sums, squares, cubes)
    remainder = means_of_sums(np.broadcast_to(size.sum() - size, sums.shape), *rest_sums)
    here, remainder = _with_least_variance(here, remainder)
    difference = differences(here, remainder)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = difference.value / difference.error
    statistic = np.abs(without_skewness(t, difference.skewness))
    # No variance at all: equal everywhere, or constant in each group.
    is_constant = ~(difference.variance > 0)
    statistic = np.where(
        is_constant, np.where(np.abs(difference.value) > 0, np.inf, 0.0), statistic
    )
    return statistic, p_values_of(difference) if with_p else statistic


def _with_least_variance(first: Means, second: Means) -> tuple[Means, Means]:
    """Return both sides with a variance of at least 1/20 of the pooled one."""
    spread = [
        np.where(side.count > 1, side.variance, 0.0) * side.count * (side.count - 1)
        for side in (first, second)
    ]
    pooled = (spread[0] + spread[1]) / np.maximum(first.count + second.count - 2, 1)
    raised = [
        Means(
            side.count,
            side.mean,
            np.fmax(side.variance, LEAST_VARIANCE * pooled / side.count),
            np.where(np.isnan(side.third), 0.0, side.third),
        )
        for side in (first, second)
    ]
    return raised[0], raised[1]


INTERACTION_SHUFFLES = 4_999
MOST_INTERACTION_SHUFFLES = 20_000
"""With more users than this, the F distribution is used alone."""
_BLOCK = 100


@dataclass(frozen=True, eq=False)
class Interaction:
    """The test of each pair of systems."""

    segments: int
    """Segments with two users or more: the others do not count."""
    statistic: F64
    """Welch's F; NaN with fewer than two such segments."""
    p: F64
    shuffles: int
    """0: by the F distribution alone."""


def interaction(
    differences: F64, code: I64, *, seed: int = 0, threads: int | None = None
) -> Interaction:
    """Test whether mean differences are equal in all segments.

    Parameters
    ----------
    differences
        Users x pairs of systems.
    code
        The segment of each user.
    seed
        Of the shuffles.
    threads
        Never changes a number.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.tests.group_shuffles import interaction
    >>> d = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])[:, None]
    >>> test = interaction(d, np.repeat([0, 1], 5))
    >>> round(float(test.statistic[0]), 6), round(float(test.p[0]), 3)
    (25.0, 0.009)
    """
    from unskew.stats.tests import kernels

    size = np.bincount(code)
    keep = size[code] > 1
    used, number = np.unique(code[keep], return_inverse=True)
    users, pairs = int(keep.sum()), differences.shape[1]
    if used.size < 2:
        nothing = np.full(pairs, np.nan)
        return Interaction(used.size, nothing, nothing.copy(), 0)
    values = _centred(differences[keep])
    group, sizes = number.astype(np.int64), size[used].astype(np.int64)
    of_pairs = np.empty((pairs, 2))
    kernels.welch_of_pairs(values, group, sizes, of_pairs)
    statistic = np.ascontiguousarray(of_pairs[:, 0])
    p = _tails(statistic, used.size - 1, of_pairs[:, 1])
    if users > MOST_INTERACTION_SHUFFLES:
        return Interaction(used.size, statistic, p, 0)
    key = np.uint64(key_of(seed, "segment shuffles"))
    limit = statistic * (1 - _ROUNDING)

    def count(start: int, stop: int) -> I64:
        counts = np.zeros(pairs, np.int64)
        kernels.count_shuffled(key, start, stop, values, group, sizes, limit, counts)
        return counts

    work = INTERACTION_SHUFFLES * users
    shuffled = permuted_p(count, INTERACTION_SHUFFLES, _BLOCK, threads=threads, work=work)
    return Interaction(used.size, statistic, np.maximum(p, shuffled), INTERACTION_SHUFFLES)


def _centred(differences: F64) -> F64:
    """Return differences less their mean: sums of squares then lose no digits."""
    # Row by row: the bits of a pair's mean must not depend on the pairs beside it.
    mean = np.ascontiguousarray(differences.T).mean(axis=1)
    values = np.ascontiguousarray(differences - mean)
    # A difference that is the same for every user leaves rounding errors, which are no variance.
    size = np.abs(differences).max(axis=0)
    values[:, np.abs(values).max(axis=0) <= 1e-12 * size] = 0.0
    return values


def _tails(f: F64, df_between: int, df_within: F64) -> F64:
    """Return P(F > f) with `df_between` and `df_within` degrees of freedom, each alone."""
    p = np.where(f > 0, 0.0, 1.0)
    for index in np.flatnonzero(np.isfinite(f) & (f > 0)).tolist():
        x = df_within[index] / (df_within[index] + df_between * f[index])
        p[index] = float(incomplete_beta(x, 1 - x, df_within[index] / 2, df_between / 2))
    return p
