"""Does a difference differ between segments? A test that allows for unequal variances.

The statistic is Welch's F (Biometrika 38, 1951): the spread of the segments' mean differences, each
weighted by the inverse of its own variance. A segment's variance counts as at least 1/20 of the
pooled one, so that a segment whose users all have the same difference does not get an infinite
weight. Up to `MOST_SHUFFLED` users, p is the larger of two: that of the F distribution, and the
share of F values that are as large when users change segments at random (Pauly, Brunner and
Konietschke, JRSS B 77, 2015: exact where differences have one distribution in all segments). With
more users, p is that of the F distribution alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.stats.distributions import incomplete_beta

SHUFFLES = 4_999
MOST_SHUFFLED = 20_000
"""With more users than this, the F distribution is used alone."""
_BLOCK = 100
_ROUNDING = 1e-9


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
    >>> from unskew.stats.interaction import interaction
    >>> d = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])[:, None]
    >>> test = interaction(d, np.repeat([0, 1], 5))
    >>> round(float(test.statistic[0]), 6), round(float(test.p[0]), 3)
    (25.0, 0.009)
    """
    from unskew.stats import segment_kernels

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
    segment_kernels.welch_of_pairs(values, group, sizes, of_pairs)
    statistic = np.ascontiguousarray(of_pairs[:, 0])
    p = _tails(statistic, used.size - 1, of_pairs[:, 1])
    if users > MOST_SHUFFLED:
        return Interaction(used.size, statistic, p, 0)
    key = np.uint64(key_of(seed, "segment shuffles"))
    limit = statistic * (1 - _ROUNDING)

    def some(start: int) -> I64:
        counts = np.zeros(pairs, np.int64)
        stop = min(start + _BLOCK, SHUFFLES)
        segment_kernels.count_shuffled(key, start, stop, values, group, sizes, limit, counts)
        return counts

    parts = map_blocks(some, range(0, SHUFFLES, _BLOCK), threads, SHUFFLES * users)
    shuffled = (1 + np.sum(parts, axis=0)) / (1 + SHUFFLES)
    return Interaction(used.size, statistic, np.maximum(p, shuffled), SHUFFLES)


def _centred(differences: F64) -> F64:
    """Return differences less their mean: sums of squares then lose no digits."""
    # Row by row: the bits of a pair's mean must not depend on the pairs beside it.
    mean = np.ascontiguousarray(differences.T).mean(axis=1)
    values = np.ascontiguousarray(differences - mean)
    # A difference that is the same for every user leaves rounding errors, which are no variance.
    size = np.abs(differences).max(axis=0)
    values[:, np.abs(values).max(axis=0) <= 1e-12 * size] = 0.0
    return values


def _tails(f: F64, one: int, other: F64) -> F64:
    """Return P(F > f) with `one` and `other` degrees of freedom, each worked out alone."""
    p = np.where(f > 0, 0.0, 1.0)
    for at in np.flatnonzero(np.isfinite(f) & (f > 0)).tolist():
        x = other[at] / (other[at] + one * f[at])
        p[at] = float(incomplete_beta(x, 1 - x, other[at] / 2, one / 2))
    return p
