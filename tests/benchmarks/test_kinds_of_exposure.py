"""Kinds of worlds that differ in what is exposed, or in the shape of data: as docstrings state."""

from functools import cache

import numpy as np
import pytest

from reliability.kinds import KINDS

SEEDS = (1, 2, 3)


@cache
def world(name, seed=1):
    return KINDS[name](seed)


def rank_correlation(a, b):
    return np.corrcoef(*(values.argsort().argsort() for values in (a, b)))[0, 1]


def exposure(one):
    """Return how much each item is exposed."""
    return np.maximum(one.rated_if_liked, one.rated_if_disliked).mean(axis=0)


# Why items are popular


@pytest.mark.parametrize("seed", SEEDS)
def test_popularity_is_quality_for_half_of_the_users(seed):
    one = world("half-quality", seed)
    popular = exposure(one)
    follows = np.array([rank_correlation(user, popular) > 0.9 for user in one.like])
    assert 0.45 < follows.mean() < 0.55
    assert abs(np.corrcoef(one.like[~follows].mean(axis=0), popular)[0, 1]) < 0.2
    counts = [one.chance_rated[part].sum(axis=1).mean() for part in (follows, ~follows)]
    assert counts[0] == pytest.approx(counts[1], rel=0.15)


def test_cheap_items_are_met_more_and_are_a_little_worse():
    together = [
        rank_correlation(world("price", s).like.mean(axis=0), exposure(world("price", s)))
        for s in range(1, 7)
    ]
    assert -0.6 < np.mean(together) < -0.1
    one = world("price")
    spread = one.rated_if_liked.std(axis=1) / one.rated_if_liked.mean(axis=1)
    well_off = spread < 0.6
    assert 0.1 < well_off.mean() < 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_the_list_of_all_is_ordered_by_quality(seed):
    one = world("position-quality", seed)
    assert rank_correlation(one.like.mean(axis=0), exposure(one)) > 0.9
    share = one.rated_if_disliked / one.rated_if_liked
    assert share.min() >= 0.3
    assert share.max() <= 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_known_items_are_liked_more_and_alone_rated(seed):
    one = world("familiar-liked", seed)
    known = one.chance_rated > 0
    assert 40 < known.sum(axis=1).mean() < 65
    item = known.sum(axis=0) > 20
    more = [
        one.like[known[:, i], i].mean() - one.like[~known[:, i], i].mean()
        for i in np.flatnonzero(item)
    ]
    assert 0.15 < np.mean(more) < 0.35
    assert np.unique(one.chance_rated).size == 2
    # What makes items known is not that they are liked.
    among_unknown = np.ma.masked_array(one.like, known).mean(axis=0)
    assert abs(rank_correlation(np.asarray(among_unknown), known.mean(axis=0))) < 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_a_recommender_that_explores_shows_everything_and_the_good_more(seed):
    one = world("recsys-exploration", seed)
    shown = one.rated_if_liked / one.rated_if_liked.max(axis=1, keepdims=True)
    low = shown < 0.5
    assert 1 - low.mean() == pytest.approx(60 / one.items, rel=0.15)
    assert one.like[~low].mean() > 1.4 * one.like[low].mean()
    explored = np.where(low, one.rated_if_liked, 0).sum() / one.rated_if_liked.sum()
    assert 0.15 < explored < 0.4
    assert one.rated_if_liked.min() > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_recommender_that_is_wrong_shows_what_is_liked_less(seed):
    one = world("recsys-wrong", seed)
    liked = (one.like * one.chance_rated).sum() / one.chance_rated.sum()
    assert liked < 0.85 * one.like.mean()
    odds = np.log(one.like / (1 - one.like))
    own_sort = odds < odds.mean(axis=0)
    assert own_sort.mean() == pytest.approx(1 / 8, abs=0.01)
    relative = one.chance_rated / np.median(one.chance_rated, axis=0)
    assert relative[own_sort].mean() > 4 * relative[~own_sort].mean()


# Shapes


def test_data_have_the_size_that_is_stated():
    for seed in SEEDS:
        dense = world("dense-small", seed)
        assert 0.25 < len(dense.data(0).ratings) / dense.users / dense.items < 0.4
        sparse = world("very-sparse", seed)
        assert 4.5 < len(sparse.data(0).ratings) / sparse.users < 8
        few = world("few-items", seed)
        assert 45 <= few.items <= 60
        assert few.users >= 700


def test_thumbs_are_two_values():
    data = world("thumbs").data(0)
    assert set(data.ratings.value) == {1, 5}
    assert 0.4 < (data.ratings.value == 5).mean() < 0.7 > data.like.mean() + 0.4


@pytest.mark.parametrize("seed", SEEDS)
def test_whoever_rates_a_part_rates_the_series(seed):
    one = world("series", seed)
    part_of = np.arange(one.items) // 5
    for number in (0, part_of[-1]):
        known = one.chance_rated[:, part_of == number] > 0
        np.testing.assert_array_equal(known, np.repeat(known[:, :1], known.shape[1], axis=1))
    assert set(np.unique(one.chance_rated)) == {0.0, 0.9}
    np.testing.assert_array_equal(one.like, np.repeat(one.like[:1], one.like.shape[0], axis=0))
    assert (one.chance_rated.sum(axis=1) > 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_items_in_season_are_met_and_liked_more(seed):
    one = world("seasonal", seed)
    year = (one.arrival * 3) % 1
    quarters = [(year // 0.25).astype(int) == quarter for quarter in range(4)]
    shown = np.stack([one.rated_if_liked[part].mean(axis=0) for part in quarters])
    liked = np.stack([one.like[part].mean(axis=0) for part in quarters])
    best, worst = shown.argmax(axis=0), shown.argmin(axis=0)
    columns = np.arange(one.items)
    assert (shown[best, columns] > 1.5 * shown[worst, columns]).mean() > 0.9
    assert (liked[best, columns] - liked[worst, columns]).mean() > 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_countries_have_catalogues_and_share_taste(seed):
    one = world("countries", seed)
    some = one.rated_if_liked[:300]
    length = np.linalg.norm(some, axis=1)
    alike = (some @ some.T) / np.outer(length, length)
    assert ((alike < 0.2) | (alike > 0.8)).mean() > 0.95
    assert (alike > 0.5).mean() == pytest.approx(1 / 4, abs=0.03)
    liked = (one.like * one.rated_if_liked).sum() / one.rated_if_liked.sum()
    assert liked == pytest.approx(one.like.mean(), abs=0.06)


# A candidate that launches new items


@pytest.mark.parametrize("seed", SEEDS)
def test_new_items_are_bad_and_nearly_unrated(seed):
    one = world("new-items", seed)
    level, count = one.like[0], one.chance_rated.mean(axis=0) * one.users
    is_new = level == 0.15
    assert is_new.mean() == pytest.approx(0.2, abs=0.01)
    assert count[is_new].max() < 1.7
    good = level > 0.6
    assert good.mean() == pytest.approx(0.1, abs=0.01)
    assert count[good].min() > 5
    data = one.data(0)
    levels = level[data.item_column]
    lists = {}
    for name, system in one.systems.items():
        model = system.fit(data.ratings, np.random.default_rng(0))
        score = np.broadcast_to(model.score(np.zeros(1, np.int32)), (1, levels.size))[0]
        lists[name] = levels[np.argsort(-score, kind="stable")[:10]]
    assert (lists["candidate"][:4] > 0.6).sum() >= 3
    assert (lists["candidate"][4:] == 0.15).all()
    assert lists["candidate"].mean() < 0.42 < 0.49 < lists["production"].mean()
