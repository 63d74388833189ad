"""Kernels of confidence sequences: what each draw says of a total, and what bets on it win."""

from __future__ import annotations

import math

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.engine.compiled import kernel

# Weights of what is assumed before any value is known, in numbers of values. Any choice gives a
# valid sequence; stops depend little on them (a factor of 5 moved their mean by 2 %).
_MEAN, _SLOPE, _STRATUM, _SPREAD = 1.0, 4.0, 4.0, 4.0
_REFIT = 1.1
"""Forecasts are fitted anew when there are a tenth more values."""


@kernel
def _fit(
    t: int, value: F64, weight: F64, hint: F64, stratum: I32, centre: F64, offset: F64
) -> tuple[float, float]:
    """Fit forecasts to the first t values: level + slope (hint - mean hint) + offset of stratum.

    `centre` holds the value assumed beforehand, and mean and variance of the hints.
    """
    total, of_value, of_hint = 0.0, 0.0, 0.0
    for i in range(t):
        total += weight[i]
        of_value += weight[i] * value[i]
        of_hint += weight[i] * hint[i]
    offset[:] = 0.0
    if total <= 0.0:
        return centre[0], 0.0
    unit = total / t
    level = (of_value + _MEAN * unit * centre[0]) / (total + _MEAN * unit)
    slope = 0.0
    if centre[2] > 0.0:
        cross, square = 0.0, 0.0
        for i in range(t):
            deviation = hint[i] - of_hint / total
            cross += weight[i] * deviation * (value[i] - of_value / total)
            square += weight[i] * deviation * deviation
        slope = cross / (square + _SLOPE * unit * centre[2])
        level -= slope * (of_hint / total - centre[1])
    if offset.size > 1:
        seen = np.zeros(offset.size)
        for i in range(t):
            seen[stratum[i]] += weight[i]
            residual = value[i] - level - slope * (hint[i] - centre[1])
            offset[stratum[i]] += weight[i] * residual
        for k in range(offset.size):
            offset[k] /= seen[k] + _STRATUM * unit
    return level, slope


@kernel
def _forecast(
    t: int,
    level: float,
    slope: float,
    mean_hint: float,
    offset: F64,
    coefficient: F64,
    hint: F64,
    stratum: I32,
    low: float,
    high: float,
    out: F64,
    bounds: F64,
) -> float:
    """Forecast the units from t on; return their sum, and bound what forecasts can miss by stratum.

    `bounds` has two rows: the least and the largest coefficient x (value - forecast).
    """
    bounds[:] = 0.0
    total = 0.0
    for i in range(t, coefficient.size):
        k = stratum[i]
        guess = min(max(level + slope * (hint[i] - mean_hint) + offset[k], low), high)
        out[i] = guess
        total += coefficient[i] * guess
        first, second = coefficient[i] * (low - guess), coefficient[i] * (high - guess)
        bounds[0, k] = min(bounds[0, k], first, second)
        bounds[1, k] = max(bounds[1, k], first, second)
    return total


_LEFT, _OPEN, _MISSED, _DRAWN, _SQUARE = range(5)
"""Rows of what is known by stratum: units left, slots left in the wave, squared misses of
forecasts, values drawn, mean squared coefficient."""


@kernel
def _start(coefficient: F64, stratum: I32, strata: int) -> F64:
    """Return what is known by stratum before the first draw."""
    state = np.zeros((5, strata))
    for i in range(coefficient.size):
        state[_LEFT, stratum[i]] += 1.0
        state[_SQUARE, stratum[i]] += coefficient[i] ** 2
    for k in range(strata):
        state[_SQUARE, k] /= max(state[_LEFT, k], 1.0)
    return state


@kernel
def _mean_square(state: F64, k: int, pooled: float) -> float:
    """Return the mean squared miss in a stratum, drawn towards what all strata have in common."""
    total: float = state[_MISSED, k] + _SPREAD * pooled * state[_SQUARE, k]
    return total / float(state[_DRAWN, k] + _SPREAD)


@kernel
def _outlook(state: F64, bounds: F64, pooled: float, out: F64) -> None:
    """Write the least and the largest estimate that a draw can give, and its variance.

    The variance is 0 where some stratum with units left has no slots left.
    """
    all_slots, silent = state[_OPEN].sum(), False
    out[2:5] = 0.0
    for k in range(state.shape[1]):
        if state[_LEFT, k] > 0.0 and (bounds[0, k] < 0.0 or bounds[1, k] > 0.0):
            if state[_OPEN, k] <= 0.0:
                silent = True
                continue
            factor = state[_LEFT, k] * all_slots / state[_OPEN, k]
            out[2] = min(out[2], factor * bounds[0, k])
            out[3] = max(out[3], factor * bounds[1, k])
            out[4] += factor * state[_LEFT, k] * _mean_square(state, k, pooled)
    if silent:
        out[4] = 0.0


@kernel
def steps(
    value: F64,
    coefficient: F64,
    hint: F64,
    stratum: I32,
    slots: F64,
    stops: I64,
    low: float,
    high: float,
    out: F64,
) -> None:
    """Work out what each draw without replacement says of Σ coefficient x value.

    Units stand in the order in which they are drawn, those that are not drawn yet behind; a value
    for each that was drawn. Draw t belongs to the wave in whose `stops` it falls; in a wave of S
    slots, s of them of a stratum, the next unit is one of the r that are left of that stratum with
    probability s / (S r) each. A row of `slots` that starts below 0 stands for simple random draws.

    `out` has a row per draw. 0: what is known before it, values and forecasts; 1: the draw's
    unbiased estimate of the rest; 2, 3: the least and the largest that this could have been; 4: its
    predicted variance, 0 where some stratum with units left has no slots left, and the draw says
    nothing; 5: coefficient x (value - forecast).
    """
    strata = slots.shape[1]
    state = _start(coefficient, stratum, strata)
    weight = np.empty(value.size)
    for i in range(value.size):
        k = stratum[i]
        share = 1.0 if slots[0, 0] < 0.0 else state[_LEFT, k] / max(slots[0, k], 1.0)
        weight[i] = (coefficient[i] * share) ** 2
    centre = np.array([(low + high) / 2.0, hint.mean(), hint.var()])
    forecast, offset, bounds = np.zeros(hint.size), np.zeros(strata), np.zeros((2, strata))
    # One value in the middle between the ends is assumed: half the range off.
    squares, count = ((high - low) / 2.0) ** 2, 1.0
    wave, refit, total, guessed = -1, 0, 0.0, 0.0
    for t in range(value.size):
        while wave < 0 or t >= stops[wave]:
            wave += 1
            state[_OPEN] = state[_LEFT] if slots[wave, 0] < 0.0 else slots[wave]
        if t >= refit:
            level, slope = _fit(t, value, weight, hint, stratum, centre, offset)
            guessed = _forecast(
                t, level, slope, centre[1], offset, coefficient, hint, stratum, low, high,
                forecast, bounds,
            )  # fmt: skip
            refit = max(t + 1, math.ceil(t * _REFIT))
        _outlook(state, bounds, squares / count, out[t])
        k = stratum[t]
        miss = coefficient[t] * (value[t] - forecast[t])
        out[t, 0], out[t, 5] = total + guessed, miss
        out[t, 1] = state[_LEFT, k] * state[_OPEN].sum() / state[_OPEN, k] * miss
        if coefficient[t] != 0.0:
            squares += (value[t] - forecast[t]) ** 2
            count += 1.0
        total += coefficient[t] * value[t]
        guessed -= coefficient[t] * forecast[t]
        state[_MISSED, k] += miss * miss
        state[_DRAWN, k] += 1.0
        state[_LEFT, k] -= 1.0
        state[_OPEN, k] -= 1.0


_RUIN, _RICHES = 1e-250, 1e250
"""Capital below is lost, above it is infinite: far beyond any limit."""


@kernel
def best_capital(
    step: F64,
    size: int,
    totals: F64,
    bets: F64,
    cap: float,
    slack: float,
    sign: float,
    marks: I64,
    out: F64,
) -> None:
    """Bet that the total is above (sign 1) or below (sign -1) each of some totals.

    The capital is split evenly over `bets`; `out` is the largest that it was, after each of `marks`
    draws (a row) for each total (a column). Bets stay within `cap` of what could ruin them; a total
    that a draw shows to be impossible has infinite capital.
    """
    count, kinds = totals.size, bets.size
    capital, best = np.full((count, kinds), 1.0 / kinds), np.zeros(count)
    mark = 0
    for t in range(step.shape[0]):
        variance = step[t, 4]
        if variance > 0.0:
            unit = 1.0 / ((size - t) * math.sqrt(variance))
            draw = step[t, 1] * sign
            lowest = step[t, 2] if sign > 0.0 else -step[t, 3]
            for q in range(count):
                mean = (totals[q] - step[t, 0]) * sign
                distance = mean - lowest
                if distance < -slack:
                    best[q] = np.inf
                elif distance > slack and best[q] < np.inf:
                    wealth = 0.0
                    for j in range(kinds):
                        bet = min(unit * bets[j], cap / distance)
                        capital[q, j] *= 1.0 + bet * (draw - mean)
                        if capital[q, j] < _RUIN:
                            capital[q, j] = 0.0
                        wealth += capital[q, j]
                    best[q] = max(best[q], wealth) if wealth < _RICHES else np.inf
        while mark < marks.size and marks[mark] <= t + 1:
            out[mark, :] = best
            mark += 1
