"""Confidence sequences: a plain twin, fair bets by enumeration, another package, coverage."""

import itertools
import math

import numpy as np
import pytest

from unskew.arrays import frozen
from unskew.labels.confidence_sequences import (
    CAP,
    Draws,
    best_capital,
    bets_for,
    expected_draws,
    interval_path,
    limit,
    spread_of,
    steps_of,
    total_interval,
)


def plain_fit(values, weights, hints, groups, strata, low, high, all_hints):
    """Return the function that forecasts a value from a hint and a stratum."""
    middle, mean, variance = (low + high) / 2, np.mean(all_hints), np.var(all_hints)
    if not sum(weights):
        return lambda hint, group: middle
    unit = np.mean(weights)
    of_value, of_hint = (np.average(x, weights=weights) for x in (values, hints))
    level = (np.dot(weights, values) + unit * middle) / (sum(weights) + unit)
    slope = 0.0
    if variance > 0:
        away = np.array(hints) - of_hint
        both = np.dot(weights, away * (np.array(values) - of_value))
        slope = both / (np.dot(weights, away**2) + 4 * unit * variance)
        level -= slope * (of_hint - mean)
    rest = np.array(values) - level - slope * (np.array(hints) - mean)
    weights, groups = np.array(weights), np.array(groups)
    offset = [
        weights[groups == k] @ rest[groups == k] / (weights[groups == k].sum() + 4 * unit)
        if strata > 1
        else 0.0
        for k in range(strata)
    ]
    return lambda hint, group: min(max(level + slope * (hint - mean) + offset[group], low), high)


def plain_capital(draws, value, total, level, sign):
    """Return the capital after each draw, from the definition: probabilities unit by unit."""
    c, size, strata = draws.coefficient, draws.size, draws.slots.shape[1]
    bets = bets_for(size, level)
    capital, path = np.ones(bets.size), []
    misses, groups, squares = [], [], [((draws.high - draws.low) / 2) ** 2]
    refit, forecast, at_fit = 0, None, None
    sizes = np.bincount(draws.stratum, minlength=strata)
    simple = draws.slots[0, 0] < 0
    weight = [
        (
            c[i]
            * (1 if simple else sizes[draws.stratum[i]] / max(draws.slots[0, draws.stratum[i]], 1))
        )
        ** 2
        for i in range(value.size)
    ]
    for t in range(value.size):
        left = range(t, size)
        if t >= refit:
            past = slice(0, t)
            forecast = plain_fit(
                value[past], weight[:t], draws.hint[past], draws.stratum[past], strata,
                draws.low, draws.high, draws.hint,
            )  # fmt: skip
            refit, at_fit = max(t + 1, math.ceil(t * 1.1)), t
        wave = int(np.searchsorted(draws.stops, t, side="right"))
        begin = 0 if wave == 0 else draws.stops[wave - 1]
        in_wave = draws.stratum[begin:t]
        counts = np.array([sum(draws.stratum[i] == k for i in left) for k in range(strata)])
        if draws.slots[wave, 0] < 0:
            slots = counts
        else:
            slots = draws.slots[wave] - np.bincount(in_wave, minlength=strata)
        guess = {i: forecast(draws.hint[i], draws.stratum[i]) for i in range(at_fit, size)}
        chance = {i: slots[draws.stratum[i]] / slots.sum() / counts[draws.stratum[i]] for i in left}
        known = c[:t] @ value[:t] + sum(c[i] * guess[i] for i in left)
        errors = [
            c[i]
            * (end - guess[i])
            * counts[draws.stratum[i]]
            * slots.sum()
            / slots[draws.stratum[i]]
            for i in range(at_fit, size)
            for end in (draws.low, draws.high)
            if slots[draws.stratum[i]] > 0 and counts[draws.stratum[i]] > 0
        ]
        miss = c[t] * (value[t] - guess[t])
        if all(chance[i] > 0 or c[i] == 0 for i in left):
            pooled = np.mean(squares)
            variance = 0.0
            for k in range(strata):
                inside = np.array(groups) == k
                square = np.mean(c[draws.stratum == k] ** 2) if sizes[k] else 0.0
                mean = (sum(np.array(misses)[inside] ** 2) if t else 0.0) + 4 * pooled * square
                mean /= (int(inside.sum()) if t else 0) + 4
                if counts[k] and square:
                    variance += counts[k] ** 2 * slots.sum() / slots[k] * mean
            draw = miss / chance[t]
            mean = total - known
            room = mean - min([*errors, 0]) if sign > 0 else max([*errors, 0]) - mean
            if room > 1e-9 * np.abs(c).sum() * (draws.high - draws.low):
                bet = np.minimum(bets / ((size - t) * math.sqrt(variance)), CAP / room)
                capital = capital * (1 + sign * bet * (draw - mean))
        misses.append(miss)
        groups.append(draws.stratum[t])
        if c[t]:
            squares.append((value[t] - guess[t]) ** 2)
        path.append(capital.mean())
    return np.array(path)


def population(seed, size=14, strata=1, waves=None, simple=True):
    """Return draws in a random order, and the values of all units."""
    rng = np.random.default_rng(seed)
    stratum = np.sort(rng.integers(0, strata, size).astype(np.int32))
    stratum[:strata] = np.arange(strata)
    c = rng.choice([1.0, -1.0, 0.5, -0.3], size)
    value = rng.integers(0, 2, size).astype(float)
    hint = np.where(rng.random(size) < 0.3, 1 - value, value)
    if simple:
        order = rng.permutation(size)
        slots, ends = np.full((1, strata), -1.0), np.array([size])
    else:
        order, slots, ends = _in_waves(rng, stratum, strata, waves)
    made = Draws(
        coefficient=frozen(c[order]),
        hint=frozen(hint[order]),
        stratum=frozen(stratum[order]),
        slots=frozen(slots),
        stops=frozen(ends),
    )
    return made, value[order]


def _in_waves(rng, stratum, strata, waves):
    units = [list(rng.permutation(np.flatnonzero(stratum == k))) for k in range(strata)]
    order, slots = [], []
    for number in range(waves):
        left = np.array([len(one) for one in units])
        row = left if number == waves - 1 else np.maximum(left // 2, np.minimum(left, 1))
        slots.append(row)
        order += [units[k].pop() for k in rng.permutation(np.repeat(np.arange(strata), row))]
    return np.array(order), np.array(slots, float), np.cumsum([sum(row) for row in slots])


CASES = [
    {"strata": 1},
    {"strata": 3},
    {"strata": 3, "simple": False, "waves": 1},
    {"strata": 2, "simple": False, "waves": 3},
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_capital_is_that_of_a_plain_twin(seed, case):
    draws, value = population(seed, **case)
    truth = float(draws.coefficient @ value)
    step = steps_of(draws, value)
    marks = np.arange(1, value.size + 1)
    for total in (truth, truth + 0.7, truth - 1.3):
        for sign in (1, -1):
            twin = plain_capital(draws, value, total, 0.95, sign)
            ours = best_capital(draws, step, 0.95, sign, np.array([total]), marks)[:, 0]
            twin = np.maximum.accumulate(np.where(step[:, 4] > 0, twin, 0.0))
            same = np.isfinite(ours)
            assert ours[same] == pytest.approx(twin[same], rel=1e-9)
            if total == truth:
                assert same.all()


def test_bets_are_fair_over_all_orders_of_simple_draws():
    """The mean capital over all 720 orders is 1: no order is favoured, whatever is fitted."""
    draws, value = population(3, size=6)
    total = float(draws.coefficient @ value)
    for sign in (1, -1):
        finals = []
        for order in itertools.permutations(range(6)):
            rows = list(order)
            one = Draws.simple(draws.coefficient[rows], hint=draws.hint[rows])
            finals.append(plain_capital(one, value[rows], total, 0.95, sign)[-1])
        assert np.mean(finals) == pytest.approx(1.0, abs=1e-12)
        assert np.ptp(finals) > 0.1


def test_bets_are_fair_over_all_orders_within_strata():
    """Three waves over two strata; the labels of the first decide about the second."""
    c, value = np.array([1.0, -1.0, 0.5, 1.0, -0.5, 1.0]), np.array([1.0, 0, 1, 1, 0, 0])
    hint, stratum = np.array([1.0, 0, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1], np.int32)
    total, finals = float(c @ value), []
    for inside in itertools.product(
        itertools.permutations((0, 1, 2)), itertools.permutations((3, 4, 5))
    ):
        for first in itertools.permutations((0, 1)):
            middle = (0, 0, 1) if value[inside[0][2]] else (0, 1, 1)
            last = (1,) if value[inside[0][2]] else (0,)
            for second in sorted(set(itertools.permutations(middle))):
                units = [list(one) for one in inside]
                order = [units[k].pop() for k in (*first, *second, *last)]
                slots = [np.bincount(wave, minlength=2) for wave in (first, second, last)]
                made = Draws(
                    coefficient=frozen(c[order]),
                    hint=frozen(hint[order]),
                    stratum=frozen(stratum[order]),
                    slots=frozen(np.array(slots, float)),
                    stops=frozen(np.array([2, 5, 6])),
                )
                finals.append(plain_capital(made, value[order], total, 0.9, 1)[-1])
    assert len(finals) == 36 * 2 * 3
    assert np.mean(finals) == pytest.approx(1.0, abs=1e-12)
    assert np.ptp(finals) > 0.1


# confseq 0.0.11, betting_mart(x, m, N=60, lambda constant): largest capital above, below.
CONFSEQ = {
    (0.3, 0.4): (23.982009143265987, 0.8029830508474576),
    (0.3, 1.5): (3304.525446280615, 0.6011904761904762),
    (0.5, 0.4): (4.234997466549946, 0.9572881355932203),
    (0.5, 1.5): (8.521489797678209, 0.7416666666666667),
    (0.65, 0.4): (1.14, 1.2714374316855843),
    (0.65, 1.5): (1.2692307692307692, 0.9523809523809523),
}


@pytest.mark.parametrize(("mean", "bet"), CONFSEQ)
def test_capital_is_that_of_confseq(mean, bet):
    from unskew.labels import confidence_kernels as kernels

    x = np.array([1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1], float)
    left = 60 - np.arange(20)
    step = np.zeros((20, 6))
    # A draw says left x value of what is left, between 0 and left; no forecasts.
    step[:, 0], step[:, 1] = np.cumsum(x) - x, left * x
    step[:, 3], step[:, 4] = left, 1.0
    for sign, theirs in zip((1, -1), CONFSEQ[mean, bet], strict=True):
        out = np.empty((1, 1))
        kernels.best_capital(
            frozen(step), 60, frozen(np.array([60 * mean])), frozen(np.array([bet])), 0.5, 1e-9,
            float(sign), frozen(np.array([20])), out,
        )  # fmt: skip
        assert out[0, 0] == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("liked", [0.5, 0.04])
def test_intervals_hold_the_truth_after_every_label(liked):
    """Drawn with numpy alone. 600 paths at 5 % or less: above 54 once in 10^5 tries."""
    rng = np.random.default_rng(8)
    value = np.zeros(300)
    value[: int(300 * liked)] = 1.0
    lost, marks = 0, np.arange(1, 301)
    for _ in range(600):
        order = rng.permutation(300)
        sign = np.where(order % 2, 1.0, -1.0)
        draws = Draws.simple(sign, hint=np.where(rng.random(300) < 0.7, value[order], 0.5))
        truth = float(sign @ value[order])
        step = steps_of(draws, value[order])
        lost += any(
            best_capital(draws, step, 0.95, side, np.array([truth]), marks)[-1, 0] >= limit(0.95)
            for side in (1, -1)
        )
    assert lost <= 54


def test_ends_are_where_capital_reaches_the_limit():
    draws, value = population(5, size=600, strata=3)
    seen = value[:200]
    interval = total_interval(draws, seen)
    step, marks = steps_of(draws, seen), np.array([200])
    for sign, end in ((1, interval.low), (-1, interval.high)):
        around = np.array([end - sign * 1e-6, end + sign * 1e-6])
        capital = best_capital(draws, step, 0.95, sign, around, marks)[0]
        assert capital[0] >= limit(0.95) > capital[1]


def test_intervals_shrink_to_the_truth_and_are_never_empty_of_width_before():
    draws, value = population(7, size=80)
    truth = float(draws.coefficient @ value)
    whole = [total_interval(draws, value[:n]) for n in (0, 1, 10, 40, 79, 80)]
    assert (whole[-1].low, whole[-1].high) == pytest.approx((truth, truth), abs=1e-12)
    assert whole[-1].estimate == pytest.approx(truth, abs=1e-12)
    assert math.isnan(whole[0].estimate)
    for wide, narrow in itertools.pairwise(whole):
        assert wide.low <= narrow.low + 1e-9
        assert narrow.high <= wide.high + 1e-9
    assert all(one.high - one.low > 0 for one in whole[:-1])
    same = total_interval(Draws.simple(np.full(50, 0.02)), np.zeros(30))
    assert 0 == same.low < same.high <= 0.4 + 1e-12


def test_the_path_is_that_of_single_looks():
    draws, value = population(9, size=80, strata=2)
    marks = np.array([1, 7, 30, 80])
    low, high = interval_path(draws, value, 0.95, marks)
    least, most = draws.possible(value[:0])
    grain = (most - least) / 400 + 1e-9
    for number, count in enumerate(marks):
        one = total_interval(draws, value[:count])
        assert one.low - grain <= low[number] <= one.low + 1e-9
        assert one.high - 1e-9 <= high[number] <= one.high + grain


def test_what_nobody_can_tell_is_taken_at_its_worst():
    draws, value = population(11, size=60)
    hidden = value.copy()
    hidden[[2, 5, 9]] = np.nan
    wide, narrow = (total_interval(draws, x[:40]) for x in (hidden, value))
    assert wide.low < narrow.low
    assert wide.high > narrow.high
    size = np.abs(draws.coefficient[[2, 5, 9]]).sum()
    whole = total_interval(draws, hidden)
    assert whole.high - whole.low == pytest.approx(size)
    assert whole.low <= draws.coefficient @ value <= whole.high


def test_more_agreement_makes_intervals_narrower():
    rng = np.random.default_rng(4)
    value = (rng.random(2000) < 0.4).astype(float)
    c = np.full(2000, 1 / 2000)
    widths = []
    for errors in (0.0, 0.1, 0.5):
        hint = np.where(rng.random(2000) < errors, 1 - value, value)
        one = total_interval(Draws.simple(c, hint=hint), value[:300])
        widths.append(one.high - one.low)
    assert widths[0] < 0.4 * widths[2]
    assert widths[1] < 0.75 * widths[2]


@pytest.mark.parametrize("distance", [0.01, 0.05, 0.3])
def test_expected_draws_by_the_closed_form(distance):
    """Σ d² / (2 s² r²) over r = N, N - 1, … reaches A after N 2Av / (1 + 2Av), v = N s² / d²."""
    size = 4000
    draws = Draws.simple(np.full(size, 1 / size))
    spread = spread_of(draws, steps_of(draws, np.zeros(0)))
    assert spread == pytest.approx([0.25 / size**2])
    v = size * float(spread[0]) / distance**2
    wanted = 2 * (math.log(limit(0.95)) + 0.4) * v
    assert expected_draws(draws, spread, distance) == pytest.approx(
        size * wanted / (1 + wanted), rel=0.01, abs=2
    )


def test_bets_are_for_all_horizons():
    for size in (1, 7, 40, 100_000):
        bets = bets_for(size, 0.95)
        odds = bets**2 / (2 * math.log(40) * size)
        assert odds[0] == pytest.approx(0.25)
        assert (np.diff(np.log(odds)) == pytest.approx(math.log(4))) or odds.size == 1
        assert size / (1 + 4 * odds[-1]) < 8
