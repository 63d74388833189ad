"""Intervals of shares: scipy's beta and hypergeometric, Newcombe's published interval, coverage."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from unskew.stats.intervals.shares import (
    clopper_pearson,
    hypergeometric,
    score_interval,
    sum_interval,
    wilson,
)


@given(
    st.floats(0, 1).map(lambda x: round(x, 3)),
    st.floats(1, 1e5),
    st.sampled_from([0.8, 0.95, 0.999]),
)
def test_clopper_pearson_is_the_beta_quantile(share, number, level):
    x, tail = share * number, (1 - level) / 2
    low, high = (float(one) for one in clopper_pearson(x, number, level))
    wanted = (
        stats.beta.ppf(tail, x, number - x + 1) if x > 0 else 0.0,
        stats.beta.ppf(1 - tail, x + 1, number - x) if x < number else 1.0,
    )
    assert (low, high) == pytest.approx(wanted, rel=1e-7, abs=1e-12)
    assert low < high


def test_clopper_pearson_as_published():
    # Newcombe 1998 (Statistics in Medicine 17, 857), table I, method 5: 81/263, 15/148, 0/20, 1/29.
    low, high = clopper_pearson([81, 15, 0, 1], [263, 148, 20, 29])
    assert low.round(4).tolist() == [0.2527, 0.0578, 0.0, 0.0009]
    assert high.round(4).tolist() == [0.3676, 0.1617, 0.1684, 0.1776]


@given(st.integers(1, 60), st.data())
def test_hypergeometric_inverts_the_test(population, data):
    number = data.draw(st.integers(1, population))
    x = data.draw(st.integers(0, number))
    low, high = hypergeometric(x, number, population, 0.9)
    liked = np.arange(x, population - (number - x) + 1)
    above = stats.hypergeom.sf(x - 1, population, liked, number)
    below = stats.hypergeom.cdf(x, population, liked, number)
    # A probability of exactly .05 is above it or not by the last digit.
    assume(not np.isclose([above, below], 0.05, rtol=1e-9, atol=0).any())
    kept = (above > 0.05) & (below > 0.05)
    assert (low, high) == (liked[kept].min() / population, liked[kept].max() / population)


def test_the_whole_population_leaves_nothing_open():
    assert hypergeometric(3, 10, 10) == (0.3, 0.3)
    wide = hypergeometric(3, 50, 10**6)
    assert wide == pytest.approx(tuple(float(one) for one in clopper_pearson(3, 50)), abs=1e-3)


def test_the_score_interval_of_a_plain_share_is_wilsons():
    low, high = score_interval(0.2, 0.2 * 0.8 / 50, stats.norm.ppf(0.975))
    assert (low, high) == pytest.approx(tuple(float(one) for one in wilson(10, 50)))
    assert score_interval(1.2, 0.01, 2.0) == pytest.approx((1.0, 1.4))


def test_differences_as_published():
    # Newcombe 1998 (Statistics in Medicine 17, 873), table II, method 10 (hybrid score):
    # 56/70 - 48/80 and 9/10 - 3/10.
    for counts, wanted in (
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((9, 10, 3, 10), (0.1705, 0.8090)),
    ):
        share = np.array([counts[0] / counts[1], counts[2] / counts[3]])
        low, high = wilson([counts[0], counts[2]], [counts[1], counts[3]])
        _, *ends = sum_interval([1, -1], share, low, high)
        assert ends == pytest.approx(wanted, abs=5e-5)


def test_a_sum_keeps_uneven_sides_and_turns_with_its_sign():
    value, low, high = sum_interval([2, -1], [0.1, 0.5], [0.0, 0.4], [0.4, 0.6])
    assert value == pytest.approx(-0.3)
    assert (value - low, high - value) == pytest.approx((np.hypot(0.2, 0.1), np.hypot(0.6, 0.1)))
    turned = sum_interval([-2, 1], [0.1, 0.5], [0.0, 0.4], [0.4, 0.6])
    assert turned == pytest.approx((-value, -high, -low))
    # Fully correlated shares: widths add up.
    assert sum_interval([1, 1], [0.5, 0.5], [0.4, 0.4], [0.6, 0.6], 1.0) == pytest.approx(
        (1.0, 0.8, 1.2)
    )
