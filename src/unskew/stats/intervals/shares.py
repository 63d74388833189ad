r"""Intervals of shares and of weighted sums of shares, for many and for few counts.

Many counts: Wilson's score interval with an effective number of labels, as many as would have the
estimated variance. Few counts: Clopper and Pearson's exact interval, or the hypergeometric one
where a known population is sampled without replacement; with unequal weights by the effective
number (Korn and Graubard 1998). Sums of independent shares: the distances of each end from the
estimate are added in squares (the method of variance estimates recovery, Zou and Donner 2008),
which keeps intervals uneven where their parts are and never lets them shrink to a point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64
from unskew.stats.intervals.means import Numbers
from unskew.stats.special import binomial_half_cdf, incomplete_beta, log_beta, log_choose

_STEPS = 100
_CLOSE = 1e-14


def clopper_pearson(
    successes: ArrayLike, number: ArrayLike, level: float = 0.95
) -> tuple[F64, F64]:
    """Return the exact interval of shares: `successes` of `number`, both may be fractions.

    Examples
    --------
    >>> from unskew.stats.intervals.shares import clopper_pearson
    >>> low, high = clopper_pearson([0, 3], [50, 50])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.0125], [0.0711, 0.1655])
    """
    x, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(number, float))
    tail = (1 - level) / 2
    x = np.clip(x, 0.0, n)
    low, high = np.zeros(x.shape), np.ones(x.shape)
    has_successes, has_failures = x > 1e-12, n - x > 1e-12
    if has_successes.any():
        low[has_successes] = _beta_quantile(tail, x[has_successes], (n - x)[has_successes] + 1.0)
    if has_failures.any():
        high[has_failures] = 1.0 - _beta_quantile(
            tail, (n - x)[has_failures], x[has_failures] + 1.0
        )
    return low, high


def _beta_quantile(tail: float, a: F64, b: F64) -> F64:
    flat = [_small_beta(tail, *pair) for pair in zip(a.tolist(), b.tolist(), strict=True)]
    return np.array(flat, np.float64)


def _small_beta(tail: float, a: float, b: float) -> float:
    """Return x with I_x(a, b) = tail, where b is at least 1.

    Newton's method for ln I as a function of ln x, which is concave. It starts where x^a / (a B) is
    `tail`: I is no larger there. Where I is too small for a double, or a step leaves what is known
    to hold x, the interval is halved instead.
    """
    beta, goal = float(log_beta(a, b)), math.log(tail)
    low, high = min((goal + math.log(a) + beta) / a, -1e-12), 0.0
    if low < -700:  # no double is as small: 0
        return 0.0
    log_x = low
    for _ in range(_STEPS):
        complement = -math.expm1(log_x)
        value = float(incomplete_beta(math.exp(log_x), complement, a, b))
        step = math.inf
        if value > 0:
            slope = math.exp(a * log_x + (b - 1.0) * math.log(complement) - beta) / value
            step = (goal - math.log(value)) / slope if slope > 0 else math.inf
        low, high = (log_x, high) if value < tail else (low, log_x)
        if abs(step) < _CLOSE * max(1.0, abs(log_x)):
            break
        log_x = log_x + step if low < log_x + step < high else (low + high) / 2
    return math.exp(log_x)


def hypergeometric(
    successes: int, number: int, population: int, level: float = 0.95
) -> tuple[float, float]:
    """Return the exact interval of a share of a population that is sampled without replacement.

    Both ends are shares that the population can have; with the whole population sampled they are
    the share itself.

    Examples
    --------
    >>> from unskew.stats.intervals.shares import hypergeometric
    >>> hypergeometric(0, 50, 100), hypergeometric(2, 10, 10)
    ((0.0, 0.05), (0.2, 0.2))
    """
    tail, minimum, maximum = (1 - level) / 2, successes, population - (number - successes)
    low = _first(minimum, maximum, lambda m: _upper_tail(successes, number, m, population) > tail)
    high = _first(
        -maximum,
        -minimum,
        lambda m: _upper_tail(number - successes, number, population + m, population) > tail,
    )
    return low / population, -high / population


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first number from `low` to `high` at which something holds; at `high` it does."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _upper_tail(x: int, n: int, liked: int, population: int) -> float:
    """Return P(X >= x) for n draws without replacement of which `liked` of the population count."""
    if x <= max(0, n - (population - liked)):
        return 1.0
    last = min(n, liked)
    if x > last:
        return 0.0
    others = population - liked
    term = math.exp(log_choose(liked, x) + log_choose(others, n - x) - log_choose(population, n))
    total = term
    for j in range(x, last):
        term *= (liked - j) * (n - j) / ((j + 1.0) * (others - n + j + 1.0))
        total += term
        if term < total * 1e-17:
            break
    return min(total, 1.0)


def wilson_ends(share: Numbers, number: Numbers, t: float) -> tuple[Numbers, Numbers]:
    """Return both ends of Wilson's interval; rounding may put them just outside 0 and 1.

    Parameters
    ----------
    share
        The estimate, or several.
    number
        How many independent trials it is worth.
    t
        The quantile: of the normal distribution, or of Student's where `number` is estimated.

    Examples
    --------
    >>> from unskew.stats.intervals.shares import wilson_ends
    >>> [round(float(end), 3) for end in wilson_ends(0.5, 10, 1.96)]
    [0.237, 0.763]
    """
    middle = share + t * t / (2 * number)
    half = t * np.sqrt(share * (1 - share) / number + t * t / (4 * number * number))
    denominator = 1 + t * t / number
    return (middle - half) / denominator, (middle + half) / denominator


def wilson(successes: ArrayLike, count: ArrayLike, level: float = 0.95) -> tuple[F64, F64]:
    """Return Wilson's interval of shares: `successes` of `count`."""
    n = np.asarray(count, np.float64)
    share = np.asarray(successes, np.float64) / n
    low, high = wilson_ends(share, n, NormalDist().inv_cdf((1 + level) / 2))
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def score_interval(share: float, variance: float, t: float) -> tuple[float, float]:
    """Return Wilson's interval of a share between 0 and 1 whose estimate has a variance above 0.

    Outside (0, 1), where an estimate that is corrected by labels may fall, and where no number of
    labels would have this variance, it is t standard errors either way.
    """
    if not 0 < share < 1:
        half = t * math.sqrt(variance)
        return share - half, share + half
    low, high = wilson_ends(share, share * (1 - share) / variance, t)
    return float(low), float(high)


def sum_interval(
    weight: ArrayLike,
    share: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    correlation: float = 0.0,
) -> tuple[float, float, float]:
    """Return Σ weight x share and the ends of its interval, from those of the shares.

    Parameters
    ----------
    weight
        Of each share; a negative one turns its interval round.
    share, low, high
        Estimates and their intervals.
    correlation
        Of the estimates, where there are two.

    Examples
    --------
    >>> from unskew.stats.intervals.shares import sum_interval
    >>> [round(one, 3) for one in sum_interval([1, -1], [0.5, 0.3], [0.4, 0.1], [0.6, 0.4])]
    [0.2, 0.059, 0.424]
    """
    w, p = np.asarray(weight, float), np.asarray(share, float)
    down, up = w * (p - np.asarray(low, float)), w * (np.asarray(high, float) - p)
    below, above = np.where(w >= 0, down, -up), np.where(w >= 0, up, -down)
    value = float((w * p).sum())
    margins = []
    for part in (below, above):
        squares = float((part**2).sum())
        if correlation and part.size == 2:
            # Of weighted shares: the signs of the weights are part of it.
            squares += 2.0 * correlation * float(part[0] * part[1])
        margins.append(math.sqrt(max(squares, 0.0)))
    return value, value - margins[0], value + margins[1]


_HALVINGS = 60


def share_of(successes: int, count: int, level: float = 0.95) -> tuple[float, float, float]:
    """Return a share and its mid-p interval (Lancaster 1961; Berry and Armitage 1995).

    As the exact interval of Clopper and Pearson, but the outcome that occurred counts half: it
    covers near its level on average, where the exact one covers too often.

    Examples
    --------
    >>> from unskew.stats.intervals.shares import share_of
    >>> share, low, high = share_of(0, 60)
    >>> share, low, round(high, 4)
    (0.0, 0.0, 0.0487)
    """
    tail = (1 - level) / 2

    def above(p: float) -> float:
        """Return P(X > successes) + P(X = successes) / 2."""
        parts = (_at_least(successes, count, p), _at_least(successes + 1, count, p))
        return 0.5 * (parts[0] + parts[1])

    low = 0.0 if successes == 0 else _root(lambda p: above(p) - tail, 0.0, 1.0)
    high = 1.0 if successes == count else _root(lambda p: above(p) - (1 - tail), 0.0, 1.0)
    return successes / count, low, high


def _at_least(k: int, n: int, p: float) -> float:
    """Return P(X >= k) of a binomial: I_p(k, n - k + 1)."""
    if k <= 0:
        return 1.0
    return 0.0 if k > n else float(incomplete_beta(p, 1 - p, k, n - k + 1))


def net_share(
    better: int, worse: int, count: int, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the share of users better off less that of users worse off, by Tango's score interval.

    The differences that the score test of paired shares does not reject (Statistics in Medicine
    17, 1998): also where nobody is better, or all are.

    Examples
    --------
    >>> from unskew.stats.intervals.shares import net_share
    >>> value, low, high = net_share(8, 2, 50)
    >>> round(value, 2), round(low, 4), round(high, 4)
    (0.12, -0.0047, 0.2548)
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    value = (better - worse) / count

    def score(delta: float) -> float:
        return _score(better, worse, count, delta)

    low = -1.0 if worse == count else _root(lambda d: z - score(d), -1.0, value)
    high = 1.0 if better == count else _root(lambda d: -z - score(d), value, 1.0)
    return value, low, high


def _score(better: int, worse: int, count: int, delta: float) -> float:
    """Return Tango's statistic: the estimates of both shares are those that differ by delta."""
    a = 2 * count
    b = -better - worse + (2 * count - better + worse) * delta
    c = -worse * delta * (1 - delta)
    share = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = count * (2 * share + delta * (1 - delta))
    excess = better - worse - count * delta
    if variance <= 0:
        return math.copysign(math.inf, excess) if excess else 0.0
    return excess / math.sqrt(variance)


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function is 0, by halving."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def sign_p(better: int, worse: int) -> float:
    """Return the exact two-sided p of the sign test: ties do not count."""
    p = 2 * float(binomial_half_cdf(min(better, worse), better + worse))
    return min(p, 1.0)


def paired_shares(better: int, worse: int, users: int, level: float) -> dict[str, float]:
    """Return the shares of users better, worse and equally off, with their intervals.

    Columns of a row: `better`, `worse`, `tied` and `net` (better less worse), each with `…_low`
    and `…_high`.
    """
    columns = {"better": better, "worse": worse, "tied": users - better - worse}
    intervals = {name: share_of(count, users, level) for name, count in columns.items()}
    intervals["net"] = net_share(better, worse, users, level)
    return {
        f"{name}{end}": number
        for name, numbers in intervals.items()
        for end, number in zip(("", "_low", "_high"), numbers, strict=True)
    }
