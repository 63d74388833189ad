"""Intervals of mean ranks: data sets drawn with replacement, and within each its users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64
from unskew.engine.progress import Progress
from unskew.engine.rng import generator, key_of
from unskew.stats.distributions import student_t_quantile
from unskew.stats.pairing import PairedValues
from unskew.stats.rank_tests import ranks_of
from unskew.stats.user_draws import percentile_interval, reweighted


def rank_intervals(
    samples: Sequence[PairedValues],
    ranks: F64,
    *,
    metric: str,
    better: str,
    resamples: int,
    confidence: float,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[F64, F64]:
    """Return the ends of the interval of each system's mean rank over data sets like these.

    Two levels: N data sets are drawn with replacement and, each time one is drawn, its users. The
    percentiles are those of the expanded percentile interval (Hesterberg 2015, section 5.4), which
    makes up for the few values that a small sample repeats: Phi(-t sqrt(N / (N - 1))), t the
    quantile of Student's t with N - 1 degrees of freedom.

    A system with the same rank r on all N data sets may have another one elsewhere, which no draw
    shows: the interval then also holds r + (k - r) q and r - (r - 1) q, where q is the exact upper
    bound of a share that was 0 of N.

    Parameters
    ----------
    samples
        The values of each data set, for the same systems in the same order.
    ranks
        Data sets x systems.
    metric
        The label of the values.
    better
        Which direction is better.
    resamples
        How often data sets are drawn.
    confidence, seed, threads, progress
        As in `compare_data_sets`.
    """
    of_each = np.stack(
        [
            _drawn_ranks(one, metric, better, resamples, (seed, number), threads, progress)
            for number, one in enumerate(samples)
        ]
    )
    count = len(samples)
    chosen = generator(seed, "data sets").integers(count, size=(resamples, count))
    # A data set that is drawn twice in one resample has its users drawn twice.
    slot = np.arange(count) * max(resamples // count, 1)
    draw = (np.arange(resamples)[:, None] + slot) % resamples
    drawn: F64 = of_each[chosen, draw].mean(axis=1)
    low, high = percentile_interval(drawn, expanded_level(confidence, count))
    still = (ranks == ranks[0]).all(axis=0)
    unseen = 1 - ((1 - confidence) / 2) ** (1 / count)
    lowest = ranks[0] - (ranks[0] - 1) * unseen
    highest = ranks[0] + (ranks.shape[1] - ranks[0]) * unseen
    low = np.where(still, np.minimum(low, lowest), low)
    return low, np.where(still, np.maximum(high, highest), high)


def _drawn_ranks(
    sample: PairedValues,
    metric: str,
    better: str,
    resamples: int,
    key: tuple[int, int],
    threads: int | None,
    progress: Progress | None,
) -> F64:
    """Return resamples x systems: the ranks on one data set, its users drawn with replacement."""
    from unskew.stats import kernels

    number = np.uint64(key_of(key[0], "users of data set", key[1]))

    def weigh(start: int, weights: F64) -> None:
        kernels.resample(number, start, weights)

    means = reweighted(sample, [metric], weigh, resamples, threads, progress)[:, 0]
    return ranks_of(means, better)


def expanded_level(confidence: float, count: int) -> float:
    """Return the level of percentiles whose interval is as wide as Student's t asks for.

    Examples
    --------
    >>> from unskew.stats.data_set_ranks import expanded_level
    >>> round(expanded_level(0.95, 10), 3), round(expanded_level(0.95, 1000), 3)
    (0.983, 0.95)
    """
    if count < 2:
        return 1.0
    t = student_t_quantile((1 + confidence) / 2, count - 1)
    return 2 * NormalDist().cdf(t * math.sqrt(count / (count - 1))) - 1
