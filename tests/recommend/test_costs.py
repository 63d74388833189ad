"""What algorithms cost: counted operations against plain loops, growth in every size, trials."""

import dataclasses

import numpy as np
import pytest

import unskew as us
from shared.ratings import ratings
from unskew.recommend.cost_constants import NANOSECONDS
from unskew.recommend.costs import (
    FORMULAS,
    KINDS,
    REFERENCE,
    SINGLE,
    Cost,
    DataShape,
    Machine,
    Work,
    cost_by_trial,
    cost_of,
    on_clock,
    seconds_of,
    this_machine,
    work_of,
    work_of_several,
)
from unskew.recommend.registry import algorithm

SHAPE = DataShape(100_000, 1_000, 800)
LEVEL = ("user-knn", "item-knn", "puresvd", "ease", "slim", "wrmf", "bprmf", "plsa")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, 40, 400) * 30 + (30 * rng.random(400) ** 2).astype(int))
    return us.read_ratings(
        {"user": pairs // 30, "item": pairs % 30, "rating": rng.integers(1, 6, pairs.size)}
    )


def test_shape_counts_what_loops_count(data):
    shape = DataShape.of(data)
    by_user = [int((data.user == u).sum()) for u in range(len(data.users))]
    by_item = [int((data.item == i).sum()) for i in range(len(data.items))]
    assert (shape.ratings, shape.users, shape.items) == (len(data), len(by_user), len(by_item))
    assert (shape.largest_user, shape.largest_item) == (max(by_user), max(by_item))
    assert shape.user_pairs == sum(n * n for n in by_user)
    assert shape.item_pairs == sum(n * n for n in by_item)


def test_products_of_neighbours_are_those_that_a_loop_makes(data):
    shape = DataShape.of(data)
    of_users = sum(int((data.item == i).sum()) for u in range(shape.users)
                   for i in data.item[data.user == u])  # fmt: skip
    of_items = sum(int((data.user == u).sum()) for i in range(shape.items)
                   for u in data.user[data.item == i])  # fmt: skip
    assert work_of(us.recommend.UserKNN(), shape).fit["knn product"] == of_users
    assert work_of(us.recommend.ItemKNN(), shape).fit["knn product"] == of_items


def test_known_operations():
    ease = work_of(us.recommend.EASE(), SHAPE)
    assert ease.largest_part == 8 * 800**2
    assert ease.fit["ease flop"] == SINGLE * 800**3
    wrmf = work_of(us.recommend.WRMF(factors=10, iterations=3, solver="exact"), SHAPE)
    assert wrmf.fit["solve flop"] == 3 * (2 * 100_000 * 100 + 1_800 * (1_000 / 3 + 200))
    plsa = work_of(us.recommend.PLSA(topics=5, iterations=7), SHAPE)
    assert plsa.fit["topic"] == 2 * 7 * 100_000 * 5


def test_parts_of_data_have_the_sizes_that_draws_have():
    rng = np.random.default_rng(1)
    users = np.minimum(rng.geometric(0.02, 600), 150)
    user = np.repeat(np.arange(600), users)
    item = np.concatenate([rng.choice(200, n, replace=False) for n in users])
    whole = us.read_ratings({"user": user, "item": item})
    shape = DataShape.of(whole)
    half = DataShape.of(whole.take(rng.random(len(whole)) < 0.5))
    few = whole.take(np.isin(whole.user, rng.choice(600, 200, replace=False)))
    for drawn, expected in ((half, shape.part(0.5)), (DataShape.of(few), shape.of_users(200))):
        assert expected.ratings == pytest.approx(drawn.ratings, rel=0.1)
        assert expected.user_pairs == pytest.approx(drawn.user_pairs, rel=0.2)
        assert expected.item_pairs == pytest.approx(drawn.item_pairs, rel=0.2)
    assert shape.of_users(200).users == 200


def test_what_is_not_known_of_a_shape_is_set_to_what_is_usual():
    known = DataShape(1_000_209, 6_040, 3_706, 2_314, 3_428, 389_989_535.0, 816_406_113.0)  # ML-1M
    guess = DataShape(1_000_209, 6_040, 3_706)
    assert guess.user_pairs == pytest.approx(known.user_pairs, rel=1)
    assert guess.item_pairs == pytest.approx(known.item_pairs, rel=1)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_costs_grow_in_every_size(name):
    one = algorithm(name)
    sizes = [
        DataShape(50_000 * f, 500 * g, 400 * h)
        for f, g, h in ((1, 1, 1), (4, 1, 1), (4, 4, 1), (4, 4, 4))
    ]
    costs = [cost_of(one, shape) for shape in sizes]
    # More users with the same ratings have smaller profiles, and more items smaller columns: what
    # is multiplied per pair falls, so only ratings alone must raise all.
    assert costs[0].seconds <= costs[1].seconds
    assert costs[0].bytes <= costs[1].bytes
    whole = cost_of(one, DataShape(16 * 50_000, 4 * 500, 4 * 400))
    assert whole.seconds >= costs[0].seconds
    assert whole.bytes >= costs[0].bytes
    assert whole.score_seconds >= costs[0].score_seconds


@pytest.mark.parametrize(
    ("name", "setting"),
    [("wrmf", "factors"), ("puresvd", "factors"), ("bprmf", "epochs"), ("plsa", "topics")],
)
def test_costs_grow_with_settings(name, setting):
    few, many = (cost_of(algorithm(name, **{setting: n}), SHAPE) for n in (10, 40))
    assert 2 < many.seconds / few.seconds < 20


def test_settings_share_what_they_share():
    settings = [us.recommend.ItemKNN(k=k) for k in (5, 10, 20)]
    together, alone = work_of_several(settings, SHAPE), work_of(settings[-1], SHAPE)
    assert together.fit == alone.fit
    ease = [us.recommend.EASE(l2=l2) for l2 in (1e2, 1e3)]
    assert work_of_several(ease, SHAPE).fit["gram product"] == work_of(ease[0], SHAPE).fit[
        "gram product"]  # fmt: skip
    several = [us.recommend.WRMF(factors=f) for f in (8, 16)]
    flops = [work_of(one, SHAPE).fit["solve flop"] for one in several]
    assert work_of_several(several, SHAPE).fit["solve flop"] == sum(flops)


def test_every_operation_has_a_constant_and_a_part_of_the_machine():
    for name in FORMULAS:
        work = work_of(algorithm(name), SHAPE)
        assert {*work.fit, *work.score} <= NANOSECONDS.keys()
    assert set(KINDS) <= NANOSECONDS.keys()
    assert set(KINDS.values()) <= {one.name for one in dataclasses.fields(Machine)}


def test_a_slower_machine_takes_longer():
    slow = Machine(dense=3.0)
    wrmf = us.recommend.WRMF()
    solve = seconds_of({"solve flop": work_of(wrmf, SHAPE).fit["solve flop"]})
    more = cost_of(wrmf, SHAPE, slow).seconds - cost_of(wrmf, SHAPE, REFERENCE).seconds
    assert more == pytest.approx(2 * solve)
    assert this_machine() is this_machine()
    for part in dataclasses.astuple(this_machine()):
        assert 0.01 < part < 100
    assert on_clock(100.0, 2) < 100 < 2 * on_clock(100.0, 2)


@dataclasses.dataclass(frozen=True)
class Mine(us.recommend.Algorithm):
    """A recommender without a formula."""

    def learn(self, train, rng):
        return np.arange(len(train.items), dtype=float)


class Stated(Mine):
    """One that states its work."""

    def work(self, shape):
        return Work(fit={"seconds": 2e-6 * shape.ratings}, model=8.0 * shape.items)


def test_nothing_is_tried_on_no_ratings():
    data = us.world("shop", users=9, items=9).ratings
    with pytest.raises(us.DataError, match="there are no ratings to try it on"):
        cost_by_trial(Mine(), data.take(np.zeros(0, np.int64)))


def test_algorithms_of_users_are_tried_or_state_their_work():
    unknown = cost_of(Mine(), SHAPE)
    assert not unknown.is_known
    data = ratings([(u, i, 1 + (u + i) % 5) for u in range(400) for i in range(u % 7, 30, 3)])
    tried = cost_by_trial(Mine(), data, users=50)
    assert tried.is_known
    assert 0 <= tried.seconds < 60
    stated = cost_of(Stated(), SHAPE)
    assert stated == Cost(pytest.approx(0.2), 6_400.0, 0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEVEL)
def test_a_fit_takes_about_what_is_estimated(name):
    """Within a factor of 4, as other work on the machine may slow it down."""
    import time

    rng = np.random.default_rng(2)
    user, item = np.nonzero(rng.random((1_500, 600)) < 0.1)
    data = us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})
    one = algorithm(name)
    one.fit(data, 0)
    begun = time.process_time()
    one.fit(data, 0)
    took = time.process_time() - begun
    by = cost_of(one, DataShape.of(data), this_machine()).seconds
    assert took / 4 - 0.05 < by < took * 4 + 0.05
