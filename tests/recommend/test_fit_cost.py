"""What a fit takes: counts against plain loops, growth, and timed trials."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.recommend.fit_cost import COUNTS, DENSE, DataShape, fit_cost, timed_trial
from unskew.recommend.registry import algorithm

SHAPE = DataShape(ratings=100_000, users=1_000, items=800, user_pairs=2e7, item_pairs=3e7)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, 40, 400) * 30 + (30 * rng.random(400) ** 2).astype(int))
    return us.read_ratings(
        {"user": pairs // 30, "item": pairs % 30, "rating": rng.integers(1, 6, pairs.size)}
    )


def test_shape_and_products_are_those_that_loops_count(data):
    shape = DataShape.of(data)
    by_user = [int((data.user == user).sum()) for user in range(len(data.users))]
    by_item = [int((data.item == item).sum()) for item in range(len(data.items))]
    assert (shape.ratings, shape.users, shape.items) == (len(data), len(by_user), len(by_item))
    of_users = sum(by_item[item] for item in data.item)
    of_items = sum(by_user[user] for user in data.user)
    assert fit_cost(us.recommend.UserKNN(), shape).operations == shape.item_pairs == of_users
    assert fit_cost(us.recommend.ItemKNN(), shape).operations == shape.user_pairs == of_items


def test_counts_by_hand():
    ease = fit_cost(us.recommend.EASE(), SHAPE)
    assert ease.operations == 1e7 + DENSE * 800**3
    assert ease.largest_part == 8 * 800**2
    wrmf = fit_cost(us.recommend.WRMF(factors=10, iterations=3, solver="exact"), SHAPE)
    products = 2 * 100_000 * 100 + 1_800 * (1_000 / 3 + 200)
    assert wrmf.operations == pytest.approx(DENSE * 3 * products)
    plsa = fit_cost(us.recommend.PLSA(topics=5, iterations=7), SHAPE)
    assert plsa.operations == 7 * 100_000 * 5


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_counts_grow_with_all_sizes(name):
    more = DataShape(ratings=400_000, users=4_000, items=3_200, user_pairs=8e7, item_pairs=1.2e8)
    small, large = (fit_cost(algorithm(name), shape) for shape in (SHAPE, more))
    assert small.operations <= large.operations
    assert small.bytes <= large.bytes


@dataclass(frozen=True)
class Mine(us.recommend.Algorithm):
    """A recommender whose operations are not counted."""

    def learn(self, train, rng):
        return np.arange(len(train.items), dtype=float)


@pytest.mark.parametrize("system", [Mine(), us.recommend.UserKNN(k=5), us.recommend.Random()])
def test_a_trial_has_times(data, system):
    trial = timed_trial(system, data)
    assert 0 <= trial.fit < 60
    assert 0 <= trial.score_user < 60


def test_a_trial_takes_users_who_have_ratings(data):
    """Ids may belong to users without ratings: of 20,000 all but one."""
    some = data.take(data.user == data.user[0])
    some = replace(
        some, users=us.data.Ids(pl.Series(range(20_000))), user=np.full(len(some), 7, np.int32)
    )
    assert timed_trial(Mine(), some).fit >= 0


def test_nothing_is_tried_on_no_ratings(data):
    with pytest.raises(us.DataError, match="there are no ratings to try it on"):
        timed_trial(Mine(), data.take(np.zeros(0, np.int64)))
