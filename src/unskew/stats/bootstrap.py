"""The paired bootstrap: users drawn with replacement, the same draws for all pairs and metrics."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I64
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError
from unskew.stats.classic import t_statistic
from unskew.stats.samples import Sample

Progress = Callable[[int, int], None]

_CELLS = 1 << 22  # resamples x users at a time, 32 MiB
_PAIRS = 16  # pairs whose squared differences are there at a time


def shifted_p(
    sample: Sample,
    side: int,
    resamples: int,
    plus_one: bool = True,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> F64:
    """Return p of the bootstrap test of mean differences.

    The resampled mean differences, shifted so that their mean is 0, are the null distribution
    (Efron and Tibshirani 1993, 16.4): p is the share of |d* - d| that is at least |d|.
    """
    from unskew.stats import kernels

    observed = sample.observed
    limit = (np.abs(observed) if side == 0 else side * observed) - sample.tolerance
    sides = np.full(len(sample.pairs), side, np.int8)

    def count(weights: F64, values: F64) -> I64:
        found = np.zeros(len(sample.pairs), np.int64)
        sums = np.ascontiguousarray((weights @ values).T)
        one, other = sample.pairs.one, sample.pairs.other
        kernels.count_extreme(sums, one, other, observed, sides, limit, found)
        return found

    parts = _resampled(sample, resamples, count, seed, threads, progress)
    found: I64 = np.sum(parts, axis=0)
    return (found + plus_one) / (resamples + plus_one)


def studentised_p(
    sample: Sample,
    side: int,
    resamples: int,
    plus_one: bool = True,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> F64:
    """Return p of the bootstrap test of t statistics (Sakai 2006; Efron and Tibshirani 1993, 16.5).

    t* = (mean d* - mean d) / (s* / sqrt(n)) of each resample against t of the data. A resample
    all of whose differences are equal has an infinite t*, or 0 when their mean is the data's.
    """
    if sample.users < 2:
        raise DataError(f"{sample.label}: a studentised test needs at least 2 users, there is 1")
    n, pairs = sample.users, sample.pairs
    mean, t = sample.observed / n, t_statistic(sample)
    limit = (np.abs(t) if side == 0 else side * t) - 1e-12 * np.abs(np.where(np.isinf(t), 0, t))

    def count(weights: F64, values: F64) -> I64:
        found = np.zeros(len(pairs), np.int64)
        for start in range(0, len(pairs), _PAIRS):
            part = slice(start, start + _PAIRS)
            d = values[:, pairs.one[part]] - values[:, pairs.other[part]] - mean[part]
            away = weights @ d / n
            np.square(d, out=d)
            variance = np.maximum(weights @ d - n * away**2, 0.0) / (n - 1)
            still = variance * n <= 1e-12 * (away**2 * n + 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = away / np.sqrt(variance / n)
            same = np.abs(away) <= 1e-9
            ratio = np.where(still, np.where(same, 0.0, np.copysign(np.inf, away)), ratio)
            reached = (np.abs(ratio) if side == 0 else side * ratio) >= limit[part]
            found[part] = np.count_nonzero(reached, axis=0)
        return found

    parts = _resampled(sample, resamples, count, seed, threads, progress)
    found: I64 = np.sum(parts, axis=0)
    return (found + plus_one) / (resamples + plus_one)


def bca_intervals(
    sample: Sample,
    confidence: float,
    resamples: int,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[F64, F64]:
    """Return bias-corrected and accelerated bootstrap intervals of the mean differences.

    Efron (1987). The acceleration is the jackknife's, which for a mean is
    sum (d - m)³ / (6 (sum (d - m)²)^1.5).
    """
    sums = np.concatenate(
        _resampled(
            sample, resamples, lambda weights, values: weights @ values, seed, threads, progress
        )
    )
    observed, pairs = sample.observed, sample.pairs
    to_mean = sample.unit / sample.users
    tails = NormalDist().inv_cdf((1 - confidence) / 2), NormalDist().inv_cdf((1 + confidence) / 2)

    def one(pair: int) -> tuple[float, float]:
        difference = float(sample.difference[pair])
        if sample.constant[pair]:
            return difference, difference
        drawn = np.sort(sums[:, pairs.one[pair]] - sums[:, pairs.other[pair]])
        below, at_most = (
            np.searchsorted(drawn, observed[pair], "left"),
            np.searchsorted(drawn, observed[pair], "right"),
        )
        share = float(below + at_most) / 2 / resamples
        share = min(max(share, 0.5 / resamples), 1 - 0.5 / resamples)
        bias = NormalDist().inv_cdf(share)
        acceleration = float(sample.cubes[pair]) / (6 * float(sample.squares[pair]) ** 1.5)
        ends = []
        for tail in tails:
            moved = bias + tail
            level = NormalDist().cdf(bias + moved / (1 - acceleration * moved))
            ends.append(float(np.quantile(drawn, level)) * to_mean)
        return ends[0], ends[1]

    size = len(pairs) * resamples
    ends = np.array(map_blocks(one, range(len(pairs)), threads, size)).reshape(-1, 2)
    return ends[:, 0].copy(), ends[:, 1].copy()


def _resampled(
    sample: Sample,
    resamples: int,
    function: Callable[[F64, F64], NDArray[np.generic]],
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> list[NDArray[np.generic]]:
    """Apply a function to blocks of resamples: how often each user was drawn, and the values.

    Blocks are as large as the number of users says and nothing else, because BLAS rounds
    differently in differently cut products.
    """
    from unskew.stats import kernels

    values = np.ascontiguousarray(sample.complete())
    key = np.uint64(key_of(seed, "resamples"))
    block = int(min(max(_CELLS // sample.users, 1), 512))
    done: list[int] = []

    def one(start: int) -> NDArray[np.generic]:
        weights = np.empty((min(block, resamples - start), sample.users))
        kernels.resample(key, start, weights)
        result = function(weights, values)
        if progress is not None:
            done.append(weights.shape[0])
            progress(sum(done), resamples)
        return result

    with one_blas_thread():
        return map_blocks(one, range(0, resamples, block), threads, resamples * sample.users)
