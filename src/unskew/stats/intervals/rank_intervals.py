"""`rank_intervals`: intervals of mean ranks over data sets like these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64
from unskew.engine.progress import Progress
from unskew.engine.rng import generator
from unskew.stats.pairing import PairedValues
from unskew.stats.resampling import percentile_interval, reweighted, with_replacement
from unskew.stats.special import student_t_quantile
from unskew.stats.tests.classic import ranks_of


def rank_intervals(
    samples: Sequence[PairedValues],
    ranks: F64,
    *,
    resamples: int,
    level: float,
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
        The values of one metric on each data set, for the same systems in the same order.
    ranks
        Data sets x systems.
    resamples
        How often data sets are drawn.
    level, seed, threads, progress
        As in `compare_data_sets`.
    """
    of_each = np.stack(
        [
            _drawn_ranks(values, resamples, (seed, number), threads, progress)
            for number, values in enumerate(samples)
        ]
    )
    count = len(samples)
    chosen = generator(seed, "data sets").integers(count, size=(resamples, count))
    # A data set that is drawn twice in one resample has its users drawn twice.
    slot = np.arange(count) * max(resamples // count, 1)
    draw = (np.arange(resamples)[:, None] + slot) % resamples
    draw_means: F64 = of_each[chosen, draw].mean(axis=1)
    low, high = percentile_interval(draw_means, expanded_level(level, count))
    is_constant = (ranks == ranks[0]).all(axis=0)
    unseen = 1 - ((1 - level) / 2) ** (1 / count)
    lowest = ranks[0] - (ranks[0] - 1) * unseen
    highest = ranks[0] + (ranks.shape[1] - ranks[0]) * unseen
    low = np.where(is_constant, np.minimum(low, lowest), low)
    return low, np.where(is_constant, np.maximum(high, highest), high)


def _drawn_ranks(
    values: PairedValues,
    resamples: int,
    key: tuple[int, int],
    threads: int | None,
    progress: Progress | None,
) -> F64:
    """Return resamples x systems: the ranks on one data set, its users drawn with replacement."""
    weigh = with_replacement(key[0], "users of data set", key[1])
    means = reweighted(values, values.metrics, weigh, resamples, threads, progress)[:, 0]
    return ranks_of(means, values.better[values.metrics[0]])


def expanded_level(level: float, count: int) -> float:
    """Return the level of percentiles whose interval is as wide as Student's t asks for.

    Examples
    --------
    >>> from unskew.stats.intervals.rank_intervals import expanded_level
    >>> round(expanded_level(0.95, 10), 3), round(expanded_level(0.95, 1000), 3)
    (0.983, 0.95)
    """
    if count < 2:
        return 1.0
    t = student_t_quantile((1 + level) / 2, count - 1)
    return 2 * NormalDist().cdf(t * math.sqrt(count / (count - 1))) - 1
