"""The judge of statements against coins: what a known world expects is what many draws show."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

import unskew as us
from reliability.known_world import KnownWorld
from reliability.world_truth import WorldTruth, rasch, split_truth
from unskew.auditing.core.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.bias.decomposition.ladder import ladder_of
from unskew.bias.decomposition.ladder_part import ladder_part
from unskew.bias.decomposition.rasch import Sparse, fit_outside, fit_pairs

SYSTEMS = ("popularity", "user-knn", "random")
DRAWS = 600
K = 5


def world_of_random_chances():
    """Return a small world that is none of the kinds: every chance is drawn apart."""
    rng = np.random.default_rng(4)
    shape = (80, 40)
    taste = np.outer(rng.normal(size=80), rng.normal(size=40))
    return KnownWorld(
        kind="random-chances",
        seed=5,
        users=70,
        like=1 / (1 + np.exp(-taste - rng.normal(size=40))),
        rated_if_liked=rng.random(shape) * 0.9,
        rated_if_disliked=rng.random(shape) * 0.4,
        swayed=rng.random(shape) / 2,
        broken=frozenset({"display-sways-ratings"}),
    )


@dataclass
class Case:
    """A data set, its lists, and their truth."""

    data: object
    core: object
    truth: WorldTruth
    split: object
    """The truth of the first split."""
    share: float
    free: np.ndarray
    tested: np.ndarray
    warm: np.ndarray


@cache
def case():
    data = world_of_random_chances().data(0)
    level = LEVELS["quick"]
    plan = plan_of_level(level, us.Relevance(liked=4, gain="binary"), SYSTEMS, 1)
    metric = f"P@{K}"
    designs = designs_of_level(level, ["all-items"])
    core = run_core(data.ratings, plan, designs, metric=metric, metrics=(metric,))
    part = core.lists[0]
    train, test = part.split.train, part.split.test
    free, tested = np.ones(data.like.shape, bool), np.zeros(data.like.shape, bool)
    free[train.user, train.item] = False
    tested[test.user, test.item] = True
    warm = ~free.all(1) & tested.any(1)
    share = len(test) / len(data.ratings)
    truth = WorldTruth(data, core, {})
    return Case(data, core, truth, split_truth(data, part, K), share, free, tested, warm)


def draw(rng, data):
    """Draw all coins once: who likes, who rates, what is recorded, what tests."""
    world, shape = data.world, data.like.shape
    liked = rng.random(shape) < data.like
    chance = np.where(liked, data.by_id(world.rated_if_liked), data.by_id(world.rated_if_disliked))
    rated = rng.random(shape) < chance
    recorded = liked | (rng.random(shape) < data.by_id(world.swayed))
    return liked, rated, recorded


def draw_where(rng, one, cells, allowed):
    """Draw coins again and again until those of all these cells are allowed."""
    kept = [np.zeros(one.data.like.shape, bool) for _ in range(4)]
    open_cells = cells.copy()
    while open_cells.any():
        liked, rated, recorded = draw(rng, one.data)
        tests = rated & (rng.random(rated.shape) < one.share)
        good = open_cells & allowed(rated, tests)
        for table, new in zip(kept, (liked, rated, recorded, tests), strict=True):
            table[good] = new[good]
        open_cells &= ~good
    return kept


@cache
def outside_training():
    """Draws given that nothing but the training part is in it."""
    rng, one = np.random.default_rng(6), case()
    every = np.ones_like(one.free)
    return [draw_where(rng, one, every, lambda rated, tests: ~rated | tests) for _ in range(DRAWS)]


@cache
def among_test_pairs():
    """Draws given that the test pairs are rated."""
    rng, one = np.random.default_rng(7), case()
    return [draw_where(rng, one, one.tested, lambda rated, tests: rated) for _ in range(150)]


def z_of_means(values, expected):
    values = np.asarray(values)
    return (values.mean() - expected) / (values.std(ddof=1) / np.sqrt(len(values)))


def over_lists(system, table):
    """Return the mean over warm users of what a list holds of a table."""
    one = case()
    listed = one.split.lists[system]
    return float((listed * table[one.warm]).sum(1).mean())


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_expected_hits_and_liking_are_those_of_coins(system):
    one, split = case(), case().split
    hits, likes, judged = [], [], []
    for liked, _, recorded, tests in outside_training():
        hits.append(over_lists(system, (tests & recorded & one.free).astype(float)))
        likes.append(over_lists(system, liked.astype(float)))
        judged.append(over_lists(system, tests.astype(float)))
    assert abs(z_of_means(hits, split.mean(split.hit, system))) < 4
    assert abs(z_of_means(likes, split.mean(split.liking, system))) < 4
    assert abs(z_of_means(judged, split.mean(split.judged, system))) < 4
    # The chance to be liked without that condition is another number, and would be seen.
    assert abs(z_of_means(likes, split.mean(one.data.like[one.warm], system))) > 6


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_expected_opinions_of_rated_pairs_are_those_of_coins(system):
    one = case()
    spoken = [
        over_lists(system, (recorded & one.tested).astype(float))
        for _, _, recorded, _ in among_test_pairs()
    ]
    assert abs(z_of_means(spoken, one.split.mean(one.split.spoken, system))) < 4


def test_judged_liking_is_that_beyond_what_is_expected_of_the_user():
    one = case()
    recorded, rated = (
        one.data.by_id(table).sum(1, keepdims=True)
        for table in (one.data.world.chance_recorded_liked, one.data.world.chance_rated)
    )
    usual = recorded / rated
    share, error = {}, {}
    for system in SYSTEMS:
        counts = np.array(
            [
                [
                    over_lists(system, table)
                    for table in (tests * (rec - usual), tests.astype(float))
                ]
                for _, _, rec, tests in outside_training()
            ]
        )
        total = counts.sum(0)
        share[system] = total[0] / total[1]
        rest = counts[:, 0] - share[system] * counts[:, 1]
        error[system] = rest.std() / counts[:, 1].mean() / np.sqrt(DRAWS)
    truth = WorldTruth(one.data, one.core, {})
    object.__setattr__(truth, "splits", (one.split,))
    for a, b in (("user-knn", "popularity"), ("popularity", "random")):
        expected = truth.judged_liking(a, b)
        z = (share[a] - share[b] - expected) / np.hypot(error[a], error[b])
        assert abs(z) < 4
        assert truth.judged_liking(b, a) == pytest.approx(-expected)


def test_popular_liking_is_a_slope_within_users():
    truth = WorldTruth(case().data, case().core, {})
    like = truth.data.like
    x = np.log10(truth.data.by_id(truth.data.world.chance_rated).sum(0))
    slopes = [np.polyfit(x, row, 1)[0] for row in like]
    assert truth.popular_liking() == pytest.approx(np.mean(slopes), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS[:2])
def test_expected_match_is_the_mean_step_of_the_ladder(system):
    """The ladder runs on test parts drawn anew; the judge has seen none of them."""
    one = case()
    part, rule = one.core.lists[0], us.Relevance(liked=4)
    steps = []
    for _, _, recorded, tests in outside_training()[:60]:
        user, item = np.nonzero(tests & one.free & one.warm[:, None])
        train = part.split.train
        drawn = us.Ratings(
            users=train.users,
            items=train.items,
            user=user.astype(np.int32),
            item=item.astype(np.int32),
            value=np.where(recorded[user, item], 5.0, 1.0),
        )
        ladder = ladder_of([ladder_part(train, drawn, part.runs, rule, K)])
        steps.append(ladder.row(step="match", system=system).value)
    expected = one.split.mean(one.split.match, system)
    assert abs(z_of_means(steps, expected)) < 4 or np.mean(steps) == pytest.approx(
        expected, rel=0.05, abs=5e-4
    )


def sparse(table):
    user, item = np.nonzero(table)
    start = np.append(0, np.cumsum(np.bincount(user, minlength=len(table))))
    return Sparse(start.astype(np.int64), item.astype(np.int32), table.shape[1])


def tables(seed):
    rng = np.random.default_rng(seed)
    odds = np.exp(rng.normal(-1, 1, (50, 1)) + rng.normal(0, 1, 30))
    cells = rng.random((50, 30)) < 0.7
    return cells, cells & (rng.random((50, 30)) < odds / (1 + odds))


def test_discovery_counts_liked_items_that_users_do_not_know():
    one = case()
    world = one.data.world
    known = np.random.default_rng(3).random(world.like.shape) < 0.4
    data = replace(one.data, world=replace(world, known=known))
    truth = WorldTruth(data, one.core, {})
    shares = {}
    for name in SYSTEMS[:2]:
        liked = new = 0.0
        for part, split in zip(one.core.lists, truth.splits, strict=True):
            train, test = part.split.train, part.split.test
            warm = np.intersect1d(train.user, test.user)
            for row, user in enumerate(warm):
                items = np.flatnonzero(split.lists[name][row])
                strange = ~data.by_id(known)[user, items]
                new += strange.sum() / warm.size
                liked += split.liking[row, items[strange]].sum() / warm.size
        shares[name] = liked / new
    first, second = shares
    assert truth.discovery(first, second) == pytest.approx(shares[first] - shares[second])
    assert truth.discovery(first, first) == 0
    # Where the world does not say who knows what, it is about all items.
    expected = one.truth.liking(first, second)
    assert one.truth.discovery(first, second) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_dense_fit_is_the_one_of_the_ladder_outside_training(seed):
    cells, ones = tables(seed)
    dense = rasch(ones.sum(1).astype(float), ones.sum(0).astype(float), cells)
    every = np.tile(np.arange(30, dtype=np.int32), (50, 1))
    fast = fit_outside(sparse(~cells), sparse(ones)).chances(0, every)
    np.testing.assert_allclose(dense[cells], fast[cells], atol=1e-5)
    np.testing.assert_allclose(dense.sum(0), ones.sum(0), atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_dense_fit_is_the_one_of_the_ladder_on_pairs(seed):
    cells, ones = tables(seed)
    dense = rasch(ones.sum(1).astype(float), ones.sum(0).astype(float), cells)
    fast, _ = fit_pairs(sparse(cells), ones[cells])
    np.testing.assert_allclose(dense[cells], fast, atol=1e-4)


def test_sums_that_leave_no_choice_are_fitted_exactly():
    cells = np.ones((4, 5), bool)
    np.testing.assert_allclose(rasch(np.full(4, 5.0), np.full(5, 4.0), cells), 1, atol=1e-6)
    np.testing.assert_allclose(rasch(np.zeros(4), np.zeros(5), cells), 0, atol=1e-6)
    assert rasch(np.zeros(4), np.zeros(5), ~cells).sum() == 0


def test_where_everything_rated_is_liked_no_opinion_is_expected():
    rng = np.random.default_rng(8)
    shape = (60, 30)
    world = KnownWorld(
        kind="events",
        seed=2,
        users=60,
        like=rng.random(shape),
        rated_if_liked=np.full(shape, 0.5),
        rated_if_disliked=np.zeros(shape),
        implicit=True,
    )
    data = world.data(0)
    level = LEVELS["quick"]
    plan = plan_of_level(level, us.Relevance(liked=1, gain="binary"), SYSTEMS[:1], 1)
    designs = designs_of_level(level, ["all-items"])
    core = run_core(data.ratings, plan, designs, metric="P@5", metrics=("P@5",))
    truth = WorldTruth(data, core, {})
    assert truth.opinion(core.systems[0]) == 0
    assert truth.match(core.systems[0]) != 0
