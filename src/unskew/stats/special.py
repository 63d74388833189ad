"""Student's t, F, the range, the binomial, the incomplete beta function: what tests need.

The normal distribution is `statistics.NormalDist`.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64

_MOST_STEPS = 100_000
_TINY = 1e-300
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def student_t_sf(t: ArrayLike, df: ArrayLike) -> F64:
    """Return P(T > t) of Student's t with `df` degrees of freedom.

    P(|T| > |t|) = I_x(df/2, 1/2) with x = df / (df + t²).

    Examples
    --------
    >>> from unskew.stats.special import student_t_sf
    >>> round(float(student_t_sf(2.0, 10)), 6)
    0.036694
    """
    t, df = np.broadcast_arrays(np.asarray(t, np.float64), np.asarray(df, np.float64))
    finite = np.where(np.isfinite(t), t, 1.0)
    x, y = df / (df + finite**2), finite**2 / (df + finite**2)
    tail = 0.5 * incomplete_beta(x, y, 0.5 * df, np.full(df.shape, 0.5))
    tail = np.where(np.isinf(t), 0.0, tail)
    return np.where(np.isnan(t), np.nan, np.where(t >= 0, tail, 1 - tail))


@cache
def student_t_quantile(probability: float, df: float) -> float:
    """Return the t with P(T <= t) = `probability`.

    By Newton's method from the normal quantile, which is nearer to 0: on that side the tail is
    convex, so that no step goes too far.

    Examples
    --------
    >>> from unskew.stats.special import student_t_quantile
    >>> round(student_t_quantile(0.975, 10), 6)
    2.228139
    """
    if probability < 0.5:
        return -student_t_quantile(1 - probability, df)
    front = -float(log_beta(0.5 * df, 0.5)) - 0.5 * math.log(df)
    t = NormalDist().inv_cdf(probability)
    for _ in range(200):
        density = math.exp(front - 0.5 * (df + 1) * math.log1p(t * t / df))
        step = (float(student_t_sf(t, df)) - (1 - probability)) / density
        t += step
        if abs(step) <= 1e-14 * t:
            break
    return t


def half_widths(df: F64, level: float) -> F64:
    """Return the half widths of intervals in standard errors; normal where `df` is infinite."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    return np.array(
        [
            normal if math.isinf(degrees) else student_t_quantile((1 + level) / 2, float(degrees))
            for degrees in df
        ]
    )


def f_sf(f: float, above: float, below: float) -> float:
    """Return P(F > f) with `above` and `below` degrees of freedom.

    Examples
    --------
    >>> from unskew.stats.special import f_sf
    >>> round(f_sf(4.0, 1, 10), 6)
    0.073388
    """
    x, y = below / (below + above * f), above * f / (below + above * f)
    return float(incomplete_beta(x, y, below / 2, above / 2))


@cache
def range_cdf(width: float, count: int) -> float:
    """Return P(range of `count` standard normal values <= `width`), by the trapezoidal rule.

    The integral of k phi(z) (Phi(z + width) - Phi(z))^(k - 1) over the smallest value z.

    Examples
    --------
    >>> from unskew.stats.special import range_cdf
    >>> round(range_cdf(2.343 * 2**0.5, 3), 3)
    0.95
    """
    if width <= 0:
        return 0.0
    step = 0.02
    nodes = np.arange(-9.0 - width, 9.0, step)
    density = np.exp(-0.5 * nodes**2) / math.sqrt(2 * math.pi)
    inside = _normal_cdf(nodes + width) - _normal_cdf(nodes)
    return min(float(count * step * (density * inside ** (count - 1)).sum()), 1.0)


def _normal_cdf(z: F64) -> F64:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z.tolist()])


def p_of_counts(extreme: Any, draws: int, *, plus_one: bool = True) -> Any:
    """Return the p-values of a test by permutations or resamples.

    (extreme + 1) / (draws + 1): what was observed is one of the permutations, so that p is never 0
    and the test keeps its level (Phipson and Smyth 2010). Without: the share, as in the papers.

    Parameters
    ----------
    extreme
        How many of the draws were at least as extreme as what was observed; or an array of such.
    draws
        How many there were.
    plus_one
        Whether what was observed counts as one of them.

    Examples
    --------
    >>> from unskew.stats.special import p_of_counts
    >>> p_of_counts(4, 99), p_of_counts(0, 100, plus_one=False)
    (0.05, 0.0)
    """
    return (extreme + plus_one) / (draws + plus_one)


def binomial_half_cdf(k: ArrayLike, n: ArrayLike) -> F64:
    """Return P(X <= k) of heads among `n` throws of a fair coin: I_{1/2}(n - k, k + 1)."""
    k, n = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    inside = (k >= 0) & (k < n)
    a, b = np.where(inside, n - k, 1.0), np.where(inside, k + 1, 1.0)
    half = np.full(k.shape, 0.5)
    return np.where(k < 0, 0.0, np.where(inside, incomplete_beta(half, half, a, b), 1.0))


def incomplete_beta(x: ArrayLike, y: ArrayLike, a: ArrayLike, b: ArrayLike) -> F64:
    """Return the regularised incomplete beta function I_x(a, b), where y = 1 - x.

    The continued fraction DLMF 8.17.22 by Lentz's method, on the side where it converges fast
    (x < (a + 1) / (a + b + 2), else 1 - I_y(b, a)). `y` is given apart: near 1 it would be lost
    in the rounding of x.
    """
    x, y, a, b = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (x, y, a, b)))
    swap = x > (a + 1) / (a + b + 2)
    x, y = np.where(swap, y, x), np.where(swap, x, y)
    a, b = np.where(swap, b, a), np.where(swap, a, b)
    inner = (x > 0) & (y > 0)
    value = np.zeros(x.shape)
    value[inner] = _by_fraction(x[inner], y[inner], a[inner], b[inner])
    value = np.where(y <= 0, 1.0, value)
    return np.where(swap, 1 - value, value)


def _by_fraction(x: F64, y: F64, a: F64, b: F64) -> F64:
    # log1p of the smaller one: the other's logarithm would lose its last digits.
    log_x = np.where(x > 0.5, np.log1p(-np.minimum(y, 0.5)), np.log(x))
    log_y = np.where(y > 0.5, np.log1p(-np.minimum(x, 0.5)), np.log(y))
    front = np.exp(a * log_x + b * log_y - log_beta(a, b)) / a
    if x.size == 1:
        return np.minimum(front * _fraction(*(float(column[0]) for column in (x, a, b))), 1.0)
    c = np.ones(x.shape)
    d = _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d = 1 / d
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + even * d)
        c = _away_from_zero(1 + even / c)
        fraction = fraction * d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _away_from_zero(1 + odd * d)
        c = _away_from_zero(1 + odd / c)
        fraction = fraction * d * c
        if not x.size or float(np.abs(d * c - 1).max()) < 5e-15:
            break
    return np.minimum(front * fraction, 1.0)


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of one value: the same steps, without the cost of arrays."""

    def nonzero(value: float) -> float:
        return _TINY if abs(value) < _TINY else value

    c = 1.0
    fraction = d = 1 / nonzero(1 - (a + b) * x / (a + 1))
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / nonzero(1 + even * d)
        c = nonzero(1 + even / c)
        fraction = fraction * d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / nonzero(1 + odd * d)
        c = nonzero(1 + odd / c)
        fraction = fraction * d * c
        if abs(d * c - 1) < 5e-15:
            break
    return fraction


def _away_from_zero(value: F64) -> F64:
    return np.where(np.abs(value) < _TINY, _TINY, value)


def log_beta(a: ArrayLike, b: ArrayLike) -> F64:
    """Return ln B(a, b); for large arguments by Stirling's series, which nothing cancels in."""
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    flat = [_log_beta(min(p), max(p)) for p in zip(a.ravel(), b.ravel(), strict=True)]
    return np.array(flat, np.float64).reshape(a.shape)


def log_choose(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


def log_gamma_ratio(x: float, a: float) -> float:
    """Return ln G(x + a) - ln G(x), also for large x without loss."""
    if x < 15:
        return math.lgamma(x + a) - math.lgamma(x)
    change = _stirling(x + a) - _stirling(x)
    return (x + a - 0.5) * math.log1p(a / x) + a * math.log(x) - a + change


@cache
def _log_beta(a: float, b: float) -> float:
    if b < 15:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    if a < 15:
        return math.lgamma(a) - log_gamma_ratio(b, a)
    change = _stirling(a) + _stirling(b) - _stirling(a + b)
    powers = (a - 0.5) * math.log(a / (a + b)) - b * math.log1p(a / b)
    return _HALF_LOG_TWO_PI - 0.5 * math.log(b) + powers + change


def _stirling(x: float) -> float:
    """Return ln G(x) - ((x - 1/2) ln x - x + ln(2 pi)/2), for x >= 15."""
    r = 1 / (x * x)
    series = 1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188))))
    return series / x
