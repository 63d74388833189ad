"""The table of error rates: its kinds, and false promotion on few worlds of the newest ones."""

import math

import pytest

from reliability.gate_rates import KINDS, TABLES, draw, run
from unskew.gating.settings import RAILS

BY_NAME = {kind.name: kind for kind in KINDS}


def test_kinds_have_names_of_their_own_and_a_table():
    assert len(BY_NAME) == len(KINDS)
    assert len({kind.text for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert kind.group in TABLES
        assert kind.rails in ("on", "off", *RAILS)


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - {"ours", "focused-mild"}))
def test_the_same_number_draws_the_same_world(name):
    first, again = (draw(BY_NAME[name], 900, 1) for _ in range(2))
    assert first.truth == again.truth
    assert (first.values.metric.candidate == again.values.metric.candidate).all()


def test_truths_are_what_the_texts_say():
    def mean(name, light=False):
        draws = [draw(BY_NAME[name], 900, number) for number in range(10)]
        return sum(one.light_truth if light else one.truth for one in draws) / 10

    assert mean("focused") == pytest.approx(0, abs=1e-6)
    assert mean("new-items") == pytest.approx((4 * 0.7 + 6 * 0.15) / 10 - 0.5, abs=1e-6)
    assert mean("heavy-light") > 0.02
    assert mean("heavy-light", light=True) < -0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["focused", "focused-mild", "new-items", "households", "heavy-light", "popular-first"]
)
def test_what_must_not_be_promoted_is_promoted_rarely(name):
    worlds = 200
    rates = run(BY_NAME[name], worlds, 901)
    assert rates["t_test"] > 0.1  # a plain t test is wrong more often
    assert rates["promoted"] <= 0.05 + 4.5 * math.sqrt(0.05 * 0.95 / worlds)
