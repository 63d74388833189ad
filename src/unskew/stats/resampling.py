"""The paired bootstrap: users drawn with replacement, the same draws for all pairs and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I64
from unskew.engine.progress import Progress, Steps
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.stats.pairing import Paired, PairedSample
from unskew.stats.tests.classic import t_statistic

_CELLS = 1 << 22  # resamples x users at a time, 32 MiB
_PAIRS = 16  # pairs whose squared differences are there at a time


@dataclass(frozen=True)
class Resampling:
    """How users are drawn with replacement: how often, from which seed, on how many threads."""

    resamples: int
    seed: int = 0
    threads: int | None = None
    progress: Progress | None = None

    def apply(
        self, sample: PairedSample, function: Callable[[F64, F64], NDArray[np.generic]]
    ) -> list[NDArray[np.generic]]:
        """Apply a function to blocks of resamples: how often each user was drawn, and the values.

        Blocks are as large as the number of users says and nothing else, because BLAS rounds
        differently in differently cut products.
        """
        from unskew.stats import kernels

        values = np.ascontiguousarray(sample.complete())
        key = np.uint64(key_of(self.seed, "resamples"))
        block = int(min(max(_CELLS // sample.users, 1), 512))
        steps = Steps(self.resamples, self.progress)

        def one(start: int) -> NDArray[np.generic]:
            weights = np.empty((min(block, self.resamples - start), sample.users))
            kernels.resample(key, start, weights)
            result = function(weights, values)
            steps.advance(weights.shape[0])
            return result

        size = self.resamples * sample.users
        with one_blas_thread():
            return map_blocks(one, range(0, self.resamples, block), self.threads, size)

    def share(self, sample: PairedSample, count: Callable[[F64, F64], I64], plus_one: bool) -> F64:
        """Return p: the share of resamples that a function counts as extreme, for each pair."""
        extreme: I64 = np.sum(self.apply(sample, count), axis=0)
        return (extreme + plus_one) / (self.resamples + plus_one)


def shifted_p(
    sample: PairedSample,
    side: int,
    draws: Resampling,
    plus_one: bool = True,
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
        extreme = np.zeros(len(sample.pairs), np.int64)
        sums = np.ascontiguousarray((weights @ values).T)
        first, second = sample.pairs.one, sample.pairs.other
        kernels.count_extreme(sums, first, second, observed, sides, limit, extreme)
        return extreme

    return draws.share(sample, count, plus_one)


def studentised_p(
    sample: PairedSample,
    side: int,
    draws: Resampling,
    plus_one: bool = True,
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
        extreme = np.zeros(len(pairs), np.int64)
        for start in range(0, len(pairs), _PAIRS):
            part = slice(start, start + _PAIRS)
            d = values[:, pairs.one[part]] - values[:, pairs.other[part]] - mean[part]
            centre = weights @ d / n
            np.square(d, out=d)
            variance = np.maximum(weights @ d - n * centre**2, 0.0) / (n - 1)
            is_constant = variance * n <= 1e-12 * (centre**2 * n + 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = centre / np.sqrt(variance / n)
            same = np.abs(centre) <= 1e-9
            ratio = np.where(is_constant, np.where(same, 0.0, np.copysign(np.inf, centre)), ratio)
            reached = (np.abs(ratio) if side == 0 else side * ratio) >= limit[part]
            extreme[part] = np.count_nonzero(reached, axis=0)
        return extreme

    return draws.share(sample, count, plus_one)


def bca_intervals(
    sample: PairedSample,
    confidence: float,
    draws: Resampling,
) -> tuple[F64, F64]:
    """Return bias-corrected and accelerated bootstrap intervals of the mean differences.

    Efron (1987). The acceleration is the jackknife's, which for a mean is
    sum (d - m)³ / (6 (sum (d - m)²)^1.5).
    """
    sums = np.concatenate(draws.apply(sample, lambda weights, values: weights @ values))
    resamples = draws.resamples
    observed, pairs = sample.observed, sample.pairs
    to_mean = sample.unit / sample.users
    tails = NormalDist().inv_cdf((1 - confidence) / 2), NormalDist().inv_cdf((1 + confidence) / 2)

    def one(pair: int) -> tuple[float, float]:
        difference = float(sample.difference[pair])
        if sample.constant[pair]:
            return difference, difference
        differences = np.sort(sums[:, pairs.one[pair]] - sums[:, pairs.other[pair]])
        below, at_most = (
            np.searchsorted(differences, observed[pair], "left"),
            np.searchsorted(differences, observed[pair], "right"),
        )
        share = float(below + at_most) / 2 / resamples
        share = min(max(share, 0.5 / resamples), 1 - 0.5 / resamples)
        bias = NormalDist().inv_cdf(share)
        acceleration = float(sample.cubes[pair]) / (6 * float(sample.squares[pair]) ** 1.5)
        limits = []
        for tail in tails:
            shifted = bias + tail
            level = NormalDist().cdf(bias + shifted / (1 - acceleration * shifted))
            limits.append(float(np.quantile(differences, level)) * to_mean)
        return limits[0], limits[1]

    size = len(pairs) * resamples
    limits = np.array(map_blocks(one, range(len(pairs)), draws.threads, size)).reshape(-1, 2)
    return limits[:, 0].copy(), limits[:, 1].copy()


ROWS = 16
"""Draws per product: of fixed size, so that the bits do not depend on threads or memory."""
HELD = 1 << 27
"""Bytes of values held at a time; more metrics than fit are done one after the other."""

Weigh = Callable[[int, F64], None]
"""Fills rows of weights per user, the first row being the draw of the given number."""


def reweighted(
    paired: Paired,
    metrics: Sequence[str],
    weigh: Weigh,
    draws: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> F64:
    """Return the means draws x metrics x systems with the users weighted anew in each draw.

    Users whom a metric leaves out (NaN) have no weight in it. A draw without any weight is NaN.
    """
    users, systems = len(paired), len(paired.systems)
    out = np.empty((draws, len(metrics), systems))
    group = max(HELD // (8 * users * systems), 1)
    parts = [metrics[low : low + group] for low in range(0, len(metrics), group)]
    starts = range(0, draws, ROWS)
    steps = Steps(len(parts) * len(starts), progress)

    with one_blas_thread():
        for number, part in enumerate(parts):
            matrices = [_defined(paired.matrix(metric)) for metric in part]

            def fill(low: int, number: int = number, matrices: list[Held] = matrices) -> None:
                weights = np.empty((min(ROWS, draws - low), users))
                weigh(low, weights)
                for column, (values, is_known) in enumerate(matrices, start=number * group):
                    total = weights.sum(axis=1) if is_known is None else weights @ is_known
                    with np.errstate(invalid="ignore", divide="ignore"):
                        out[low : low + len(weights), column] = weights @ values / total[:, None]
                steps.advance()

            map_blocks(fill, starts, threads, size=draws * users)
    return out


Held = tuple[F64, F64 | None]


def _defined(values: F64) -> Held:
    """Return values with 0 where undefined, and 1 for the users that have one; None if all."""
    missing = np.logical_or.reduce(np.isnan(values), axis=1)
    if not missing.any():
        return values, None
    share = float((~missing).mean())  # means over fewer users, as in `Paired.complete`
    return np.where(missing[:, None], 0.0, values * share), (~missing).astype(np.float64)


def chosen_metrics(paired: Paired, metrics: str | Sequence[str] | None) -> list[str]:
    """Return the labels of the metrics asked for; all with a value per user unless named."""
    if metrics is None:
        if not paired.metrics:
            raise SettingError("these scores have no metric with a value per user")
        return list(paired.metrics)
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise SettingError("no metrics are named")
    return list(dict.fromkeys(paired.label(metric) for metric in names))


def check_two_systems(systems: Sequence[str]) -> None:
    """Raise an error if there are fewer than two systems to order."""
    if len(systems) < 2:
        named = f" ({systems[0]})" if systems else ""
        raise DataError(f"an order needs at least 2 systems, got {len(systems)}{named}")


def percentile_interval(draws: F64, level: float) -> tuple[F64, F64]:
    """Return percentiles over the first axis of those draws that are defined; NaN where none is."""
    flat = draws.reshape(draws.shape[0], math.prod(draws.shape[1:]))
    limits = np.full((2, flat.shape[1]), np.nan)
    is_known = ~np.isnan(flat).all(axis=0)
    if draws.shape[0] and is_known.any():
        shares = ((1 - level) / 2, (1 + level) / 2)
        limits[:, is_known] = np.nanquantile(flat[:, is_known], shares, axis=0)
    low, high = limits.reshape(2, *draws.shape[1:])
    return low, high
