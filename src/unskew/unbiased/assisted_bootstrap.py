"""Bootstrap intervals of assisted estimates: bias-corrected and accelerated (Efron 1987).

Sampled pairs, or users where new users are the target, are drawn anew with replacement, within
strata, and each carries how far it moves the estimate. The draws are scaled to the variance of the
design, which knows that pairs were drawn without replacement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.unbiased.assisted_contrasts import ContrastEstimate

_CELLS = 1 << 22  # resamples x units at a time, 32 MiB
_ESTIMATES = 64  # estimates whose moves are there at a time


def bootstrap_ends(
    estimates: Sequence[ContrastEstimate],
    stratum: I64,
    levels: Sequence[float],
    resamples: int,
    seed: int,
    threads: int | None,
) -> list[list[tuple[float, float]]]:
    """Return the interval of each estimate at each level.

    Parameters
    ----------
    estimates
        Of which `moves` are resampled, the same draws for all.
    stratum
        Of each sampled pair, or user.
    levels, resamples, seed, threads
        Of the bootstrap.
    """
    result = []
    for low in range(0, len(estimates), _ESTIMATES):
        part = estimates[low : low + _ESTIMATES]
        moves = np.column_stack([_centred(one.moves, stratum) for one in part])
        drawn = _draws(moves, stratum, resamples, seed, threads)
        for at, one in enumerate(part):
            result.append([_ends(one, moves[:, at], drawn[:, at], level) for level in levels])
    return result


def _centred(moves: F64, stratum: I64) -> F64:
    number = np.maximum(np.bincount(stratum), 1)
    mean = np.bincount(stratum, moves) / number
    return moves - mean[stratum]


def _draws(moves: F64, stratum: I64, resamples: int, seed: int, threads: int | None) -> F64:
    """Return Σ of the moves over units drawn with replacement, a row per resample."""
    from unskew.stats import kernels

    groups = [np.flatnonzero(stratum == code) for code in np.unique(stratum)]
    block = int(min(max(_CELLS // max(stratum.size, 1), 1), 512))
    out = np.zeros((resamples, moves.shape[1]))

    def one(start: int) -> None:
        rows = min(block, resamples - start)
        for number, group in enumerate(groups):
            times = np.empty((rows, group.size))
            key = key_of(seed, "assisted/resamples", number)
            kernels.resample(np.uint64(key), start, times)
            out[start : start + rows] += times @ moves[group]

    with one_blas_thread():
        map_blocks(one, range(0, resamples, block), threads, resamples * stratum.size)
    return out


def _ends(one: ContrastEstimate, moves: F64, drawn: F64, level: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated ends, within what the contrast can be."""
    if one.method != "score":
        return one.ends(level)
    squares = float((moves**2).sum())
    scale = math.sqrt(one.variance / squares) if squares > 0 else 0.0
    ascending = np.sort(drawn) * scale
    below = float(np.mean(ascending < 0) + np.mean(ascending <= 0)) / 2
    edge = 0.5 / ascending.size
    bias = NormalDist().inv_cdf(min(max(below, edge), 1 - edge))
    acceleration = float((moves**3).sum()) / (6 * squares**1.5)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        moved = bias + NormalDist().inv_cdf(tail)
        share = NormalDist().cdf(bias + moved / (1 - acceleration * moved))
        ends.append(one.plain_value + float(np.quantile(ascending, share)))
    bottom, top = one.range
    return max(ends[0], bottom), min(ends[1], top)
