"""Liking of unrated recommendations under a habit of rating: against coins, and at its ends."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.errors import SettingError
from unskew.unbiased.listed_pairs import HABITS, SLACK, unrated_liking


@pytest.mark.parametrize("habit", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("known", [0.1, 0.6, 0.95])
def test_coins_give_the_liking_of_what_has_no_training_rating(habit: float, known: float) -> None:
    rng = np.random.default_rng(int(100 * habit + 10 * known))
    size, train = 400_000, 0.8
    liked, seen = rng.random(size) < 0.3, rng.random(size) < known
    rated = seen & (rng.random(size) < np.where(liked, 1.0, habit))
    trains = rated & (rng.random(size) < train)
    tests = rated & ~trains
    free = ~trains
    shares = liked[tests].mean(), tests.sum() / free.sum()
    estimate = unrated_liking(*shares, habit, train)
    assert estimate == pytest.approx(liked[free].mean(), abs=0.012)


def test_without_a_habit_the_judged_share_is_the_answer() -> None:
    for judged in (0.001, 0.1, 0.5):
        assert unrated_liking(0.37, judged, 1.0) == pytest.approx(0.37)


def test_everything_liked_stays_so_and_nothing_liked_too() -> None:
    assert unrated_liking(1.0, 0.1, 0.2) == pytest.approx(1.0)
    assert unrated_liking(0.0, 0.001, 0.2) == 0.0


def test_better_known_items_are_worth_less_under_a_habit() -> None:
    values = [unrated_liking(0.6, judged, 0.5) for judged in (0.01, 0.05, 0.1)]
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]


def test_a_habit_that_needs_more_than_all_known_is_not_possible() -> None:
    assert unrated_liking(0.6, 0.3, 0.02) is None
    rated = 0.3 / (0.2 + 0.8 * 0.3)
    assert rated / 1.0 < SLACK  # without a habit it is


def test_habits_go_from_none_to_a_strong_one() -> None:
    assert HABITS[0] == 1.0
    assert HABITS[-1] == pytest.approx(1 / 3)
    assert list(HABITS) == sorted(HABITS, reverse=True)


def test_a_wrong_share_is_refused() -> None:
    with pytest.raises(SettingError, match="train_share"):
        unrated_liking(0.5, 0.1, 1.0, 1.5)
