"""Kinds of worlds in which raters differ: the truth is what their docstrings state."""

from functools import cache

import numpy as np
import pytest

from reliability.kinds import KINDS

SEEDS = (1, 2, 3)


@cache
def world(name, seed=1):
    return KINDS[name](seed)


def by_user(name, seed=1):
    """Return the liking of each user, after checking that nobody prefers any item."""
    like = world(name, seed).like
    np.testing.assert_array_equal(like, np.repeat(like[:, :1], like.shape[1], axis=1))
    return like[:, 0]


def concentration(chance):
    """Return, by user, which share of the expected ratings falls on the first fifth of items."""
    largest = -np.sort(-chance, axis=1)[:, : chance.shape[1] // 5]
    return largest.sum(axis=1) / chance.sum(axis=1)


def by_popularity(values, chance):
    """Return the mean of values over the more popular and over the less popular half of items."""
    order = np.argsort(-chance.mean(axis=0))
    half = order.size // 2
    return values[order[:half]].mean(), values[order[half:]].mean()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "generous", "strict", "focus"),
    [("focused", 0.7, 0.35, 0.9), ("focused-mild", 0.6, 0.45, 0.5)],
)
def test_users_who_are_predictable_are_generous(name, generous, strict, focus, seed):
    like, chance = by_user(name, seed), world(name, seed).chance_rated
    levels = np.unique(like)
    assert levels == pytest.approx([strict, generous], abs=0.031)
    is_generous = like == levels[1]
    assert 0.35 < is_generous.mean() < 0.65
    assert concentration(chance[is_generous]).min() > focus
    assert concentration(chance[~is_generous]).max() < 0.21
    # Every item has raters of both sorts in the same proportion: ratings make no item look better.
    share = chance[is_generous].sum(axis=0) / chance.sum(axis=0)
    assert share.std() < 0.03
    # Who rates does not depend on liking.
    np.testing.assert_array_equal(world(name, seed).rated_if_liked, chance)


@pytest.mark.parametrize("seed", SEEDS)
def test_generosity_drifts_alike_for_all_items(seed):
    like, arrival = by_user("drift", seed), world("drift", seed).arrival
    assert np.corrcoef(like, arrival)[0, 1] == pytest.approx(1)
    assert like[arrival < 0.05].mean() < 0.33
    assert like[arrival > 0.95].mean() > 0.52
    released, chance = world("drift", seed).released, world("drift", seed).chance_rated
    assert (chance[arrival[:, None] < released] == 0).all()
    # Items that came out late are rated by generous users, and are no better.
    mean = (chance * like[:, None]).sum(axis=0) / chance.sum(axis=0)
    assert np.corrcoef(mean, released)[0, 1] > 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_markets_share_no_item_and_differ_in_generosity(seed):
    like, chance = by_user("two-markets", seed), world("two-markets", seed).chance_rated
    generous = like > 0.5
    assert 0.49 < generous.mean() < 0.51
    rated_by = np.stack([chance[generous].sum(axis=0), chance[~generous].sum(axis=0)])
    assert ((rated_by == 0).sum(axis=0) == 1).all()
    activity = chance[generous].sum(axis=1).mean() / chance[~generous].sum(axis=1).mean()
    assert 1.3 < activity < 2.7


@pytest.mark.parametrize("seed", SEEDS)
def test_taste_is_in_the_tail_alone_and_hardly_rated(seed):
    tail = world("tail", seed)
    spread = tail.like.std(axis=0)
    is_tail = spread > 0.1
    assert is_tail.mean() == pytest.approx(0.4, abs=0.01)
    assert (spread[~is_tail] < 1e-12).all()
    count = tail.chance_rated.mean(axis=0) * tail.users
    assert 2 <= count[is_tail].min() <= count[is_tail].max() <= 4.001
    assert count[~is_tail].min() > 4


def test_popularity_is_display_or_quality_or_both():
    together = {}
    for name in ("display-popular", "mixed-popular", "quality-popular"):
        values = []
        for seed in range(1, 7):
            one = world(name, seed)
            quality, chance = one.like.mean(axis=0), one.chance_rated.mean(axis=0)
            values.append(np.corrcoef(*(a.argsort().argsort() for a in (quality, chance)))[0, 1])
        together[name] = np.array(values)
    assert np.abs(together["display-popular"]).max() < 0.2
    assert (np.abs(together["mixed-popular"] - 0.65) < 0.35).all()
    assert together["quality-popular"].min() > 0.95
    assert together["mixed-popular"].max() < together["quality-popular"].min()


@pytest.mark.parametrize("name", ["display-popular", "quality-popular", "mixed-popular"])
def test_taste_goes_with_clusters_beside_popularity(name):
    odds = np.log(world(name).like / (1 - world(name).like))
    within = odds - odds.min(axis=0)
    levels = np.unique(within.round(9))
    assert levels.size == 2
    assert (within > levels.mean()).mean() == pytest.approx(1 / 8, abs=0.01)
    assert 1.2 <= levels[1] <= 2.0


@pytest.mark.parametrize("name", ["strong-taste", "strong-taste-popular"])
@pytest.mark.parametrize("ending", ["", "-selection"])
def test_strong_taste_is_strong(name, ending):
    one = world(name + ending)
    low, high = np.unique(one.like)
    assert low < 0.12
    assert high > 0.8
    assert (one.like == high).mean() == pytest.approx(1 / 5, abs=0.01)
    assert high > 2.5 * one.like.mean()  # what a personal list can hold, and any other list
    share = one.rated_if_disliked / one.rated_if_liked
    assert share == pytest.approx(0.2 if ending else 1.0)
    # No item is better than another, popular or not.
    quality = one.like.mean(axis=0)
    assert quality.std() / quality.mean() < 0.05
    exposed = one.rated_if_liked.mean(axis=0)
    assert (exposed.max() > 3 * exposed.min()) == ("popular" in name)


@pytest.mark.parametrize("seed", SEEDS)
def test_clear_quality_is_not_popularity(seed):
    one = world("clear-quality", seed)
    np.testing.assert_array_equal(one.like, np.repeat(one.like[:1], one.like.shape[0], axis=0))
    quality = one.like[0]
    assert quality.min() == pytest.approx(0.1)
    assert 0.75 <= quality.max() <= 0.85
    popular, unpopular = by_popularity(quality, one.chance_rated)
    assert abs(popular - unpopular) < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_newcomers_are_generous_late_and_few_in_ratings(seed):
    one = world("generous-newcomers", seed)
    mean, count = one.like.mean(axis=1), one.chance_rated.sum(axis=1)
    newcomer = mean > 0.48
    assert 0.2 < newcomer.mean() < 0.45
    assert (one.arrival[newcomer] >= 0.67).mean() > 0.9
    assert (one.arrival[~newcomer] >= 0.67).mean() < 0.4
    assert mean[newcomer].mean() > mean[~newcomer].mean() + 0.25
    assert count[newcomer].mean() < 0.5 * count[~newcomer].mean()


@pytest.mark.parametrize("seed", SEEDS)
def test_complainers_rate_what_they_dislike(seed):
    one = world("complainers", seed)
    share = np.unique((one.rated_if_liked / one.rated_if_disliked).round(9)[:, 0])
    assert share[0] == pytest.approx(0.1)
    assert 2.5 <= share[1] <= 5.001
    # How they rate has nothing to do with what they like, nor with what is displayed.
    complains = one.rated_if_liked[:, 0] < one.rated_if_disliked[:, 0]
    assert 0.2 < complains.mean() < 0.45
    assert abs(one.like[complains].mean() - one.like[~complains].mean()) < 0.02


@pytest.mark.parametrize("seed", SEEDS)
def test_extreme_users_rate_what_they_feel_strongly_about(seed):
    one = world("extremes", seed)
    extreme = one.extreme
    relative = one.chance_rated / np.median(one.chance_rated[~extreme], axis=0)
    sure, unsure = np.abs(one.like - 0.5) > 0.4, np.abs(one.like - 0.5) < 0.1

    def ratio(users):
        return relative[users][sure[users]].mean() / relative[users][unsure[users]].mean()

    assert ratio(extreme) > 10
    assert ratio(~extreme) == pytest.approx(1, rel=0.1)
    np.testing.assert_array_equal(one.rated_if_liked, one.rated_if_disliked)


@pytest.mark.parametrize("seed", SEEDS)
def test_bots_like_nearly_all_and_rate_much(seed):
    one = world("bots", seed)
    is_bot = (one.like == 0.95).all(axis=1)
    assert is_bot.mean() == pytest.approx(1 / 40, abs=0.001)
    count = one.chance_rated.sum(axis=1)
    assert count[is_bot].min() > 4 * count[~is_bot].mean()
    assert one.like[~is_bot].mean() < 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_the_average_of_fans_does_not_show_how_many_there_are(seed):
    one = world("fans-rate", seed)
    quality = one.like.mean(axis=0)
    levels = np.unique(quality.round(1))
    assert quality.max() > 1.5 * quality.min()
    chance = one.chance_rated
    average = (one.like * chance).sum(axis=0) / chance.sum(axis=0)
    assert average.std() < 0.3 * quality.std()
    assert levels.size >= 3
    share = chance[one.like > 0.5].mean() / chance[one.like < 0.5].mean()
    assert share == pytest.approx(50, rel=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_heavy_users_and_light_ones_like_other_things(seed):
    one = world("heavy-light", seed)
    count = one.chance_rated.sum(axis=1)
    popular = one.chance_rated.sum(axis=0)
    prefers = np.array([np.corrcoef(user, popular)[0, 1] for user in one.like[:300]])
    light = prefers > 0.4
    assert 0.5 < light.mean() < 0.85
    assert np.abs(prefers[~light]).mean() < 0.2
    assert count[:300][~light].mean() > 3 * count[:300][light].mean()


def test_accounts_of_a_household_are_one_user():
    one = world("households")
    assert one.household == 5
    assert one.users % 5 == 0
    assert one.users / 5 >= 80
    data = one.data(0)
    sets = [set(data.ratings.item[data.ratings.user == user]) for user in range(10)]
    within = len(sets[0] & sets[1]) / len(sets[0])
    assert within > 0.7 > len(sets[0] & sets[5]) / len(sets[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_crowd_is_right_on_average(seed):
    one = world("herding", seed)
    weight = one.chance_rated / one.chance_rated.sum(axis=0)
    liked = (one.like * weight).sum(axis=0)
    average = 4.5 * liked + 2 * (1 - liked)
    assert (one.crowd - average).mean() == pytest.approx(0, abs=0.15)
    assert 0.1 < (one.crowd - average).std() < 0.6
    assert np.corrcoef(one.crowd, average)[0, 1] > 0.5
    # What is recorded is another share than what is liked, and the better item stays the better.
    recorded = one.chance_recorded_liked.sum(axis=0) / one.chance_rated.sum(axis=0)
    assert np.abs(recorded - liked).mean() > 0.05
    assert np.corrcoef(recorded, liked)[0, 1] > 0.5
