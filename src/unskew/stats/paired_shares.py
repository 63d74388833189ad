"""Shares of users who are better or worse off, with intervals that hold near 0 and 1 too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

from unskew.stats.distributions import binomial_half_cdf, incomplete_beta

_HALVINGS = 60


@dataclass(frozen=True)
class Share:
    """A share with its interval."""

    value: float
    low: float
    high: float


def share_of(successes: int, count: int, level: float = 0.95) -> Share:
    """Return a share with its mid-p interval (Lancaster 1961; Berry and Armitage 1995).

    As the exact interval of Clopper and Pearson, but the outcome that occurred counts half: it
    covers near its level on average, where the exact one covers too often.

    Examples
    --------
    >>> from unskew.stats.paired_shares import share_of
    >>> one = share_of(0, 60)
    >>> one.low, round(one.high, 4)
    (0.0, 0.0487)
    """
    tail = (1 - level) / 2

    def above(p: float) -> float:
        """Return P(X > successes) + P(X = successes) / 2."""
        parts = (_at_least(successes, count, p), _at_least(successes + 1, count, p))
        return 0.5 * (parts[0] + parts[1])

    low = 0.0 if successes == 0 else _root(lambda p: above(p) - tail, 0.0, 1.0)
    high = 1.0 if successes == count else _root(lambda p: above(p) - (1 - tail), 0.0, 1.0)
    return Share(successes / count, low, high)


def _at_least(k: int, n: int, p: float) -> float:
    """Return P(X >= k) of a binomial: I_p(k, n - k + 1)."""
    if k <= 0:
        return 1.0
    return 0.0 if k > n else float(incomplete_beta(p, 1 - p, k, n - k + 1))


def net_share(better: int, worse: int, count: int, level: float = 0.95) -> Share:
    """Return the share of users better off less that of users worse off, by Tango's score interval.

    The differences that the score test of paired shares does not reject (Statistics in Medicine
    17, 1998): also where nobody is better, or all are.

    Examples
    --------
    >>> from unskew.stats.paired_shares import net_share
    >>> one = net_share(8, 2, 50)
    >>> round(one.value, 2), round(one.low, 4), round(one.high, 4)
    (0.12, -0.0047, 0.2548)
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    value = (better - worse) / count

    def score(delta: float) -> float:
        return _score(better, worse, count, delta)

    low = -1.0 if worse == count else _root(lambda d: z - score(d), -1.0, value)
    high = 1.0 if better == count else _root(lambda d: -z - score(d), value, 1.0)
    return Share(value, low, high)


def _score(better: int, worse: int, count: int, delta: float) -> float:
    """Return Tango's statistic: the estimates of both shares are those that differ by delta."""
    a = 2 * count
    b = -better - worse + (2 * count - better + worse) * delta
    c = -worse * delta * (1 - delta)
    least = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = count * (2 * least + delta * (1 - delta))
    away = better - worse - count * delta
    if variance <= 0:
        return math.copysign(math.inf, away) if away else 0.0
    return away / math.sqrt(variance)


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
