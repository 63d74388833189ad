"""The bootstrap: units drawn with replacement, and ends of intervals from draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.progress import Progress, Steps
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.stats.pairing import Paired, PairedSample
from unskew.stats.special import p_of_counts
from unskew.stats.tests.classic import t_statistic

ROWS = 16
"""Draws per product: of fixed size, so that the bits do not depend on threads or memory."""
HELD = 1 << 27
"""Bytes of values held at a time; more metrics than fit are done one after the other."""
_CELLS = 1 << 22  # draws x units at a time, 32 MiB
_PAIRS = 16  # pairs whose squared differences are there at a time

Weigh = Callable[[int, F64], None]
"""Fills rows of weights per unit, the first row being the draw of the given number."""


def with_replacement(seed: int, *key: object) -> Weigh:
    """Return what fills rows with how often each unit is drawn; draws belong to seed and key."""
    from unskew.stats import kernels

    number = np.uint64(key_of(seed, *key))

    def weigh(first: int, rows: F64) -> None:
        kernels.resample(number, first, rows)

    return weigh


def wide_rows(units: int) -> int:
    """Return how many draws make one wide product: by the number of units and nothing else."""
    return int(min(max(_CELLS // max(units, 1), 1), 512))


def redraw(
    function: Callable[[F64], Any],
    weigh: Weigh,
    draws: int,
    units: int,
    *,
    rows: int = ROWS,
    threads: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> list[Any]:
    """Apply a function to blocks of draws; return what it gives for each block, in order.

    Parameters
    ----------
    function
        Of draws x units: the weight of each unit in each draw.
    weigh
        Fills these weights, such as `with_replacement(seed, "resamples")`.
    draws, units
        How many there are.
    rows
        Draws of a block. BLAS rounds differently in differently cut products, so that it must not
        depend on threads or memory.
    threads
        Never changes a number.
    advance
        Called with the number of draws of each block that is done.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.resampling import redraw, with_replacement
    >>> values = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    >>> blocks = redraw(lambda times: times @ values, with_replacement(0, "key"), 20, 3)
    >>> sums = np.concatenate(blocks)
    >>> sums.shape, bool((sums[:, 1] == 10 * sums[:, 0]).all())
    ((20, 2), True)
    """

    def block(first: int) -> Any:
        weights = np.empty((min(rows, draws - first), units))
        weigh(first, weights)
        result = function(weights)
        if advance is not None:
            advance(len(weights))
        return result

    with one_blas_thread():
        return map_blocks(block, range(0, draws, rows), threads, draws * units)


def drawn_sums(
    columns: F64,
    weigh: Weigh,
    draws: int,
    *,
    rows: int = ROWS,
    threads: int | None = None,
) -> F64:
    """Return the sums of columns over the units of each draw: draws x columns.

    Parameters
    ----------
    columns
        A row per unit. All that is drawn together stands side by side: another product would have
        other last digits.
    weigh, draws, rows, threads
        As in `redraw`.
    """
    blocks = redraw(
        lambda times: times @ columns, weigh, draws, len(columns), rows=rows, threads=threads
    )
    return np.concatenate(blocks) if blocks else np.empty((0, columns.shape[1]))


@dataclass(frozen=True)
class Resampling:
    """How users are drawn with replacement: how often, from which seed, on how many threads."""

    resamples: int
    seed: int = 0
    threads: int | None = None
    progress: Progress | None = None

    def apply(self, sample: PairedSample, function: Callable[[F64, F64], Any]) -> list[Any]:
        """Apply a function to blocks of resamples: the draws of each user, and the values."""
        values = np.ascontiguousarray(sample.complete())
        return redraw(
            lambda weights: function(weights, values),
            with_replacement(self.seed, "resamples"),
            self.resamples,
            sample.users,
            rows=wide_rows(sample.users),
            threads=self.threads,
            advance=Steps(self.resamples, self.progress).advance,
        )

    def share(self, sample: PairedSample, count: Callable[[F64, F64], I64], plus_one: bool) -> F64:
        """Return p: the share of resamples that a function counts as extreme, for each pair."""
        extreme: I64 = np.sum(self.apply(sample, count), axis=0)
        p: F64 = p_of_counts(extreme, self.resamples, plus_one=plus_one)
        return p


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
        first, second = sample.pairs.first, sample.pairs.second
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
            d = values[:, pairs.first[part]] - values[:, pairs.second[part]] - mean[part]
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
    level: float,
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

    def ends_of_pair(pair: int) -> tuple[float, float]:
        difference = float(sample.difference[pair])
        if sample.constant[pair]:
            return difference, difference
        differences = np.sort(sums[:, pairs.first[pair]] - sums[:, pairs.second[pair]])
        below, at_most = (
            np.searchsorted(differences, observed[pair], side) for side in ("left", "right")
        )
        acceleration = float(sample.cubes[pair]) / (6 * float(sample.squares[pair]) ** 1.5)
        share = float(below + at_most) / 2 / resamples
        low, high = bca_ends(differences, share, acceleration, level)
        return low * to_mean, high * to_mean

    size = len(pairs) * resamples
    limits = np.array(map_blocks(ends_of_pair, range(len(pairs)), draws.threads, size))
    low, high = limits.reshape(-1, 2).T.copy()
    return low, high


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
    group = max(HELD // (8 * users * systems), 1)
    parts = [metrics[low : low + group] for low in range(0, len(metrics), group)]
    steps = Steps(len(parts) * len(range(0, draws, ROWS)), progress)
    means = []
    for part in parts:
        columns = [_defined(paired.matrix(metric)) for metric in part]

        def of_draws(weights: F64, columns: list[Held] = columns) -> F64:
            out = np.empty((len(weights), len(columns), systems))
            for column, (values, is_known) in enumerate(columns):
                total = weights.sum(axis=1) if is_known is None else weights @ is_known
                with np.errstate(invalid="ignore", divide="ignore"):
                    out[:, column] = weights @ values / total[:, None]
            return out

        blocks = redraw(
            of_draws, weigh, draws, users, threads=threads, advance=lambda _: steps.advance()
        )
        means.append(np.concatenate(blocks) if blocks else np.empty((0, len(columns), systems)))
    return np.concatenate(means, axis=1)


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


def bca_ends(draws: F64, below: float, acceleration: float, level: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated ends of an interval (Efron 1987).

    Parameters
    ----------
    draws
        Of the estimate, ascending.
    below
        The share of draws below the estimate, those equal to it counting half.
    acceleration
        The jackknife's; of a sum of values d it is sum (d - m)³ / (6 (sum (d - m)²)^1.5).
    level
        Of the interval.
    """
    normal, edge = NormalDist(), 0.5 / draws.size
    bias = normal.inv_cdf(min(max(below, edge), 1 - edge))
    limits = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + normal.inv_cdf(tail)
        share = normal.cdf(bias + shifted / (1 - acceleration * shifted))
        limits.append(float(np.quantile(draws, share)))
    return limits[0], limits[1]
