"""What holds over data sets: differences on these, on others, on a new one; intervals of ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from unskew.arrays import F64
from unskew.engine.progress import Progress
from unskew.engine.rng import generator
from unskew.stats.compare.gaps import with_p_values
from unskew.stats.corrections import correct
from unskew.stats.intervals.means import standard_errors, student_ends, welch_df
from unskew.stats.pairing import PairedSample, PairedValues, Pairs
from unskew.stats.resampling import percentile_interval, reweighted, with_replacement
from unskew.stats.special import binomial_half_cdf, student_t_quantile, student_t_sf
from unskew.stats.tests.classic import nemenyi_p, ranks_of, sign_counts, signed_ranks
from unskew.stats.tests.posterior import Posterior, heterogeneity, posterior


def pair_rows(
    samples: Sequence[PairedSample],
    systems: Sequence[str],
    side: int,
    test: str,
    rope: float | None,
    level: float,
) -> list[dict[str, Any]]:
    """Return the rows of each pair: on data sets like these, on these, on a new one.

    Parameters
    ----------
    samples
        The values on each data set.
    systems
        Their names.
    side
        1 where higher is better, -1 where lower is.
    test, rope, level
        As in `compare_data_sets`.
    """
    pairs, count = samples[0].pairs, len(samples)
    means = np.stack([sample.means for sample in samples])
    ranks = ranks_of(means, "higher" if side > 0 else "lower")
    difference = np.stack([_differences(sample) for sample in samples])
    error = np.stack([sample.standard_error for sample in samples])
    users = np.array([sample.users for sample in samples], np.float64)
    above, below = sign_counts(side * difference)
    p_sign = np.minimum(2 * binomial_half_cdf(np.minimum(above, below), above + below), 1.0)
    p_sign = np.where(above + below == 0, 1.0, p_sign)
    p = p_over_data_sets(test, difference, ranks, pairs, p_sign)
    limits, p_these = on_these_data_sets(difference, error, users, level)
    nothing: list[dict[str, Any]] = [{}] * len(pairs)
    like_these = with_p_values(nothing, p, None if test == "nemenyi" else "holm", level)
    rows_of_these = with_p_values(nothing, p_these, "holm", level)
    signs = correct(p_sign, "holm").tolist()
    rows = []
    for index, (a, b) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        d = difference[:, index]
        # Each data set counts once. Where data sets have different errors the interval holds at
        # least as often as it says (Ibragimov and Müller 2010), if differences are symmetric.
        mean = math.fsum(d.tolist()) / count
        se = float(standard_errors(d))
        ends = student_ends(mean, se, count - 1, level)
        keys = {
            "system": systems[a],
            "against": systems[b],
            "n": count,
            "ahead": int(above[index]),
            "ahead_against": int(below[index]),
            "value": mean,
        }
        of_mean, of_next = _hierarchical(d, error[:, index], side, rope, level)
        like = {"low": ends[0], "high": ends[1], "p_sign": signs[index], **of_mean}
        on_these = {"low": limits[0][index], "high": limits[1][index]}
        rows += [
            {**keys, "quantity": "like_these", **like, **like_these[index]},
            {**keys, "quantity": "these", **on_these, **rows_of_these[index]},
            {**keys, "quantity": "next", **of_next},
        ]
    return rows


def _differences(paired_sample: PairedSample) -> F64:
    """Return the mean differences, 0 where no user differs: rounding is no difference."""
    same = (paired_sample.better == 0) & (paired_sample.worse == 0)
    return np.where(same, 0.0, paired_sample.difference)


def p_over_data_sets(test: str, difference: F64, ranks: F64, pairs: Pairs, p_sign: F64) -> F64:
    """Return the p of each pair, over data sets."""
    count = difference.shape[0]
    if test == "sign":
        return p_sign
    if test == "nemenyi":
        mean = ranks.mean(axis=0)
        gaps = mean[pairs.first] - mean[pairs.second]
        return np.array([nemenyi_p(float(gap), ranks.shape[1], count) for gap in gaps])
    if test == "wilcoxon":
        scale = np.abs(difference).max(axis=0)
        # Equal up to rounding is equal, as the exact test needs to know.
        level = np.round(difference / np.where(scale > 0, scale, 1.0), 12)
        return np.array([signed_ranks(column, 0) for column in level.T])
    error = standard_errors(difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference.any(axis=0), difference.mean(axis=0) / error, 0.0)
    return np.minimum(2 * student_t_sf(np.abs(t), count - 1), 1.0)


def on_these_data_sets(
    difference: F64, error: F64, users: F64, level: float
) -> tuple[tuple[F64, F64], F64]:
    """Return the intervals and p of the mean difference on these very data sets.

    Users alone are drawn anew: the variance of the mean is the sum of the squared errors over N²,
    with the degrees of freedom of Welch and Satterthwaite.
    """
    count = difference.shape[0]
    mean, square = difference.mean(axis=0), error**2
    total = square.sum(axis=0)
    freedom = welch_df(square, (users - 1)[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean * count / np.sqrt(total))
    freedom = np.where(total > 0, freedom, 1.0)
    se = np.where(np.isnan(freedom), np.nan, np.sqrt(total) / count)
    freedom = np.where(np.isnan(freedom), 1.0, freedom)
    limits = student_ends(mean, se, freedom, level)
    p = np.minimum(2 * student_t_sf(np.abs(t), freedom), 1.0)
    # Without any spread over users nothing tells how sure the mean is, unless none differs.
    unknown = np.isnan(total) | ((total == 0) & (mean != 0))
    return limits, np.where(unknown, np.nan, p)


def _hierarchical(
    d: F64, s: F64, side: float, rope: float | None, level: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the two-level model tells of the mean, and of a new data set."""
    belief = posterior(d, s)
    if belief is None:
        return {}, {"note": "a data set without a standard error above 0"}

    def shares(prefix: str, *, new: bool, belief: Posterior = belief) -> dict[str, Any]:
        above = belief.above(rope or 0.0, new=new)
        below = 1 - belief.above(-(rope or 0.0), new=new)
        better, worse = (above, below) if side > 0 else (below, above)
        equal = {} if rope is None else {f"{prefix}equivalent": max(0.0, 1 - better - worse)}
        return {f"{prefix}better": better, f"{prefix}better_against": worse, **equal}

    return shares("p_mean_", new=False), {
        "tau": heterogeneity(d, s),
        "low": belief.quantile((1 - level) / 2, new=True),
        "high": belief.quantile((1 + level) / 2, new=True),
        **shares("p_", new=True),
    }


# Mean ranks


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
    >>> from unskew.stats.compare.data_set_pairs import expanded_level
    >>> round(expanded_level(0.95, 10), 3), round(expanded_level(0.95, 1000), 3)
    (0.983, 0.95)
    """
    if count < 2:
        return 1.0
    t = student_t_quantile((1 + level) / 2, count - 1)
    return 2 * NormalDist().cdf(t * math.sqrt(count / (count - 1))) - 1
