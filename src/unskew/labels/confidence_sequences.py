r"""Always-valid intervals for a total, from units drawn one by one without replacement.

The total is :math:`\theta = \sum_i c_i y_i` over a finite population: coefficients :math:`c_i` are
known, values :math:`y_i` lie between two known ends and are seen when unit i is drawn. A draw with
known probability :math:`q` of each unit that is left says

.. math:: \theta = (\text{drawn so far}) + \sum_{\text{left}} c_i g_i + \mathbb{E}\,
    c_I (y_I - g_I) / q_I

whatever the forecasts :math:`g_i` are, as long as they were fixed before the draw: strata and the
labels of a model are used through them, fitted to earlier draws alone. For every candidate total m,
bets that :math:`\theta > m` (and that :math:`\theta < m`) start with capital 1 and are fair if
:math:`\theta = m`; m is left out of the interval once a capital has reached :math:`2.1 / \alpha`.
By Ville's inequality the interval holds the total after *all* numbers of draws at once with
probability :math:`1 - \alpha`, so that anybody may look at any time, and stop for any reason.

References: Waudby-Smith & Ramdas (2020, arXiv 2006.04347; 2024, arXiv 2010.09686, section 5) for
simple random draws, Shekhar et al. (2023, arXiv 2305.06884) for unequal probabilities and forecasts
(their control variates). Bets: see `bets_for`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, frozen

CAP = 0.5
"""Bets stay below this share of what could ruin them, as in the papers."""
_SLACK = 1e-9
"""Of the largest total that is possible: below it, sums are taken as equal."""
_GRID, _ROUNDS = 17, 9
"""Ends are searched on so many totals at once, and so often: 16^9 steps."""
_RESERVE = 1.05
"""Capital must be so much larger than Ville's inequality asks for: coverage is then above the level
by more than what counting it on thousands of paths is uncertain by. It costs 1 % of the labels."""
_SURPLUS = 0.4
"""What bets lose on average for not knowing the total, as a logarithm; measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Draws:
    """A finite population in the order in which its units are drawn, and how they are drawn.

    Units that are not drawn yet stand behind those that were, in any order.
    """

    coefficient: F64
    hint: F64
    """Something known of every unit that may tell its value, such as a model's label."""
    stratum: I32
    slots: F64
    """Waves x strata: how many draws fall on each stratum, in random order. A row of -1: the draws
    of the wave are simple random ones."""
    stops: I64
    """After how many draws each wave ends."""
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def simple(
        cls,
        coefficient: F64,
        *,
        hint: F64 | None = None,
        stratum: I32 | None = None,
        low: float = 0.0,
        high: float = 1.0,
    ) -> Draws:
        """Draw at random without replacement; strata serve as a hint only."""
        size = coefficient.size
        groups = np.zeros(size, np.int32) if stratum is None else stratum
        return cls(
            coefficient=frozen(coefficient.astype(np.float64)),
            hint=frozen(np.zeros(size) if hint is None else hint.astype(np.float64)),
            stratum=frozen(groups),
            slots=frozen(np.full((1, int(groups.max(initial=0)) + 1), -1.0)),
            stops=frozen(np.array([size], np.int64)),
            low=low,
            high=high,
        )

    @property
    def size(self) -> int:
        """How many units there are."""
        return int(self.coefficient.size)

    @cached_property
    def slack(self) -> float:
        """Below it, sums are taken as equal."""
        return _SLACK * float(np.abs(self.coefficient).sum()) * (self.high - self.low)

    def filled(self, value: F64, sign: int) -> F64:
        """Return values in which unknown ones (NaN) are the worst for a bet on this side."""
        worst = np.where(self.coefficient[: value.size] * sign > 0, self.low, self.high)
        return np.where(np.isnan(value), worst, value)

    def possible(self, value: F64) -> tuple[float, float]:
        """Return the least and the largest total that the values drawn so far leave possible."""
        past, future = self.coefficient[: value.size], self.coefficient[value.size :]
        low, high = (
            math.fsum(past * self.filled(value, sign))
            + math.fsum(np.where(future * sign > 0, self.low, self.high) * future)
            for sign in (1, -1)
        )
        return low, high


class TotalInterval(NamedTuple):
    """What draws say of a total. From `total_interval`."""

    low: float
    high: float
    """Below `low` if no total is left: that happens in at most 1 - level of all sequences."""
    estimate: float
    """Mean of what each draw says, by its variance; within the interval."""
    spread: F64
    """By stratum: mean square of coefficient x (value - forecast)."""


def limit(level: float) -> float:
    """Return the capital at which a total is left out, on either side."""
    return 2 * _RESERVE / (1 - level)


def bets_for(size: int, level: float) -> F64:
    r"""Return bets, in parts of 1 / (units left x standard deviation of the next draw).

    Each is the best one for the width of the interval after n of N draws,
    :math:`\sqrt{2 \log(2 / \alpha)\, N (N - n) / n}`; the capital is split evenly over n = 0.8 N,
    0.5 N, 0.2 N, 0.06 N, … down to 8 draws, because nobody knows beforehand when the answer shows.
    """
    odds = 0.25 * 4.0 ** np.arange(64)
    draws = size / (1.0 + odds)
    odds = odds[(draws >= 8.0) | (np.arange(64) == 0)]
    bets: F64 = np.sqrt(2.0 * math.log(2.0 / (1.0 - level)) * size * odds)
    return frozen(bets)


def total_interval(draws: Draws, value: F64, level: float = 0.95) -> TotalInterval:
    """Return the interval of the total after some draws: it holds it after all of them at once.

    Parameters
    ----------
    draws
        The population in the order of the draws.
    value
        The values of the first units; NaN where a value could not be found out.
    level
        How often the interval holds the total after every number of draws.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.labels.confidence_sequences import Draws, total_interval
    >>> liked = np.tile([1.0, 0.0, 1.0, 1.0], 100)[np.random.default_rng(1).permutation(400)]
    >>> whole = Draws.simple(np.full(400, 1 / 400))
    >>> interval = total_interval(whole, liked[:200])
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.65, 0.77)
    """
    low, high = draws.possible(value)
    up = steps_of(draws, draws.filled(value, 1))
    down = steps_of(draws, draws.filled(value, -1)) if np.isnan(value).any() else up
    bounds = [
        _end(draws, step, level, sign, low, high, value.size)
        for sign, step in ((1, up), (-1, down))
    ]
    estimate = (_estimate(up, low) + _estimate(down, high)) / 2 if value.size else math.nan
    if value.size == draws.size:
        estimate = (low + high) / 2
    if bounds[0] <= bounds[1]:
        estimate = min(max(estimate, bounds[0]), bounds[1])
    return TotalInterval(bounds[0], bounds[1], estimate, spread_of(draws, up))


def interval_path(draws: Draws, value: F64, level: float, marks: I64) -> tuple[F64, F64]:
    """Return the ends of the interval after some numbers of draws, up to 1/400 of the first range.

    They are rounded outwards.
    """
    lowest, highest = draws.possible(value[:0])
    totals, c = np.linspace(lowest, highest, 401), draws.coefficient[: value.size]
    bounds = []
    for sign, edge in ((1, lowest), (-1, highest)):
        filled = draws.filled(value, sign)
        step = steps_of(draws, filled)
        rejected = best_capital(draws, step, level, sign, totals, marks) >= limit(level)
        if sign > 0:
            last = np.where(rejected.any(axis=1), 400 - rejected[:, ::-1].argmax(axis=1), 0)
        else:
            last = np.where(rejected.any(axis=1), rejected.argmax(axis=1), 400)
        # What the values so far leave possible: each takes away what was unknown of its unit.
        worst = np.where(c * sign > 0, draws.low, draws.high)
        possible = edge + np.cumsum(c * (filled - worst))[marks - 1]
        tighter = np.maximum if sign > 0 else np.minimum
        bounds.append(tighter(totals[last], possible))
    return bounds[0], bounds[1]


def expected_draws(draws: Draws, spread: F64, distance: float, level: float = 0.95) -> int:
    r"""Return after how many draws, on average, a total that is `distance` away is left out.

    The logarithm of the capital grows by about :math:`d^2 / (2 V)` in a draw of variance V, for a
    total at a distance of d; it must reach :math:`\log(2 / \alpha)` and what bets lose for not
    knowing d. After the last wave draws go on in its manner.

    Parameters
    ----------
    draws
        The population.
    spread
        By stratum: mean square of coefficient x (value - forecast), as `TotalInterval` has it.
    distance
        Stated, not observed.
    level
        Of the interval.
    """
    target = math.log(limit(level)) + _SURPLUS
    left = np.bincount(draws.stratum, minlength=spread.size).astype(np.float64)
    count, grown, leap = 0.0, 0.0, max(1.0, draws.size / 1_000)
    while count < draws.size:
        wave = min(int(np.searchsorted(draws.stops, count, side="right")), len(draws.stops) - 1)
        planned = draws.slots[wave]
        share = np.where(left > 0, left if planned[0] < 0 else planned, 0.0)
        if not share.any():
            share = left
        share = share / share.sum()
        useful = (share > 0) & (spread > 0)
        variance = float((left[useful] ** 2 * spread[useful] / share[useful]).sum())
        leap = min(leap, draws.size - count)
        if variance <= 0:
            break
        gain = leap * distance**2 / (2 * variance)
        if grown + gain >= target:
            count += leap * (target - grown) / gain
            break
        grown += gain
        count += leap
        left = np.maximum(left - leap * share, 0.0)
    return min(math.ceil(count), draws.size)


def steps_of(draws: Draws, value: F64) -> F64:
    """Return what each draw says: a row per draw, see the kernel."""
    out = np.zeros((value.size, 6))
    if value.size:
        from unskew.labels import confidence_kernels as kernels

        kernels.steps(
            frozen(value),
            draws.coefficient,
            draws.hint,
            draws.stratum,
            draws.slots,
            draws.stops,
            draws.low,
            draws.high,
            out,
        )
    return out


def spread_of(draws: Draws, step: F64) -> F64:
    """Return the mean square of coefficient x (value - forecast) by stratum.

    Of the second half of the draws, by when forecasts have learnt; drawn towards what all strata
    have in common, and with nothing drawn: half the range of values.
    """
    strata = draws.slots.shape[1]
    late = slice(step.shape[0] // 2, step.shape[0])
    group, c, miss = draws.stratum[late], draws.coefficient[late], step[late, 5]
    counts = c != 0
    pooled = ((draws.high - draws.low) / 2) ** 2 + math.fsum((miss[counts] / c[counts]) ** 2)
    pooled /= 1 + int(counts.sum())
    size = np.maximum(np.bincount(draws.stratum, minlength=strata), 1)
    square = np.bincount(draws.stratum, draws.coefficient**2, strata) / size
    seen = np.bincount(group, minlength=strata)
    spread: F64 = (np.bincount(group, miss**2, strata) + 4 * pooled * square) / (seen + 4)
    return spread


def best_capital(draws: Draws, step: F64, level: float, sign: int, totals: F64, marks: I64) -> F64:
    """Return the largest capital after each of `marks` draws (rows), for each total (columns)."""
    from unskew.labels import confidence_kernels as kernels

    out = np.zeros((marks.size, totals.size))
    bets = bets_for(draws.size, level)
    kernels.best_capital(
        frozen(step),
        draws.size,
        frozen(totals),
        bets,
        CAP,
        draws.slack,
        float(sign),
        frozen(marks),
        out,
    )
    return out


def _end(
    draws: Draws, step: F64, level: float, sign: int, low: float, high: float, count: int
) -> float:
    """Return the last total that bets on this side leave out, coming from outside."""
    outer, inner = (low, high) if sign > 0 else (high, low)
    if not count or low == high:
        return outer
    marks = np.array([count])
    for _ in range(_ROUNDS):
        totals = np.linspace(outer, inner, _GRID)
        rejected = best_capital(draws, step, level, sign, totals, marks)[0] >= limit(level)
        if not rejected[0]:
            return outer
        if rejected.all():
            return inner
        last = int(rejected.argmin()) - 1
        outer, inner = float(totals[last]), float(totals[last + 1])
    return outer


def _estimate(step: F64, otherwise: float) -> float:
    """Return the mean of what draws say of the total, each weighted by 1 / its variance."""
    speaks = step[:, 4] > 0
    if not speaks.any():
        return otherwise
    weight = 1.0 / step[speaks, 4]
    return math.fsum(weight * (step[speaks, 0] + step[speaks, 1])) / math.fsum(weight)
