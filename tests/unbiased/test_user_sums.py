"""Numbers made of sums over users: by hand, against finite differences, in draws of users."""

import math

import numpy as np
import pytest

from unskew.stats.resampling import with_replacement
from unskew.unbiased.user_sums import UserSum, resampled_sums

USERS = 50


def columns(seed=0, number=4):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 2.0, USERS) for _ in range(number)]


FORMULAS = {
    "ratio": lambda a, b, _c, _d: a / b,
    "normalised": lambda a, b, c, d: a / b * c / d,
    "difference": lambda a, b, c, d: a / b - c / d,
    "product": lambda a, b, c, d: (a / b) * (c / d) - b / d,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_value_is_that_of_the_sums(name):
    formula, parts = FORMULAS[name], columns()
    sums = [UserSum.of(part) for part in parts]
    assert formula(*sums).value == formula(*[part.sum() for part in parts])


@pytest.mark.parametrize("name", FORMULAS)
def test_the_influence_is_what_a_user_moves(name):
    """Counting a user a little more moves the number by as much as its influence says."""
    formula, parts = FORMULAS[name], columns(1)
    number, step = formula(*[UserSum.of(part) for part in parts]), 1e-6
    for user in range(0, USERS, 7):
        more = np.ones(USERS)
        more[user] += step
        moved = formula(*[float(part @ more) for part in parts]) - number.value
        assert number.influence[user] == pytest.approx(moved / step, rel=1e-4, abs=1e-8)
    assert (
        abs(number.influence.sum()) < 1e-12
    )  # a ratio does not depend on how many users there are
    assert number.se == pytest.approx(math.sqrt((number.influence**2).sum()))


@pytest.mark.parametrize("name", FORMULAS)
def test_draws_are_the_formula_in_each_draw(name):
    formula, parts = FORMULAS[name], columns(2)
    number = formula(*resampled_sums(parts, 30, seed=5))
    times = np.empty((30, USERS))
    with_replacement(5, "estimate/resamples")(0, times)
    expected = formula(*[times @ part for part in parts])
    np.testing.assert_allclose(number.values[1:], expected, rtol=1e-12)
    low, high = number.interval(0.9)
    assert (low, high) == pytest.approx(tuple(np.percentile(expected, (5, 95))))
    assert number.row(0.9) == {"value": number.value, "se": number.se, "low": low, "high": high}


def test_errors_agree_with_the_bootstrap():
    for formula in FORMULAS.values():
        number = formula(*resampled_sums(columns(3), 4000))
        assert number.values[1:].std() == pytest.approx(number.se, rel=0.06)


def test_without_draws_there_is_a_value_only():
    number = UserSum.of(np.array([1.0, 3.0])) / UserSum.of(np.array([2.0, 2.0]))
    assert number.row(0.95) == {"value": 1.0}
    assert all(map(math.isnan, number.interval(0.95)))


def test_what_is_divided_by_nothing_is_undefined():
    number = UserSum.of(np.zeros(3)) / UserSum.of(np.zeros(3))
    assert math.isnan(number.value)
    assert math.isnan((number * UserSum.of(np.ones(3))).se)
