"""An audit that judges a sample of users: the same values, for fewer users."""

from dataclasses import replace

import numpy as np
import pytest

import unskew as us
from unskew.auditing.analyses import Attempts
from unskew.auditing.core.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.auditing.statements.evidence import evidence_of
from unskew.bias.decomposition.ladder import ladder_of
from unskew.bias.decomposition.ladder_part import ladder_part
from unskew.engine.threads import exactly
from unskew.splits.draws import drawn_users
from unskew.unbiased.liked_shares import liked_part

SYSTEMS = ["popularity", "puresvd", "item-knn"]


@pytest.fixture(scope="module")
def cores():
    """Return ratings, and the cores of all users and of a sample."""
    shop = us.world("shop", users=240, items=70, seed=3)
    plan = plan_of_level(LEVELS["quick"], us.Relevance(liked=4), SYSTEMS, seed=5)
    designs = [
        replace(one, repeats=min(one.repeats, 2)) for one in designs_of_level(LEVELS["quick"])
    ]
    whole, part = (
        run_core(shop.ratings, one, designs, metric="P@10", attempts=Attempts())
        for one in (plan, replace(plan, judged_users=90))
    )
    return shop.ratings, whole, part


def test_judged_users_have_the_values_that_they_have_without_a_sample(cores):
    ratings, whole, part = cores
    judged = drawn_users(ratings, 90, 5)
    assert list(whole.scores) == list(part.scores)
    assert len(whole.scores) >= 6
    for design, several in whole.scores.items():
        for a, b in zip(several, part.scores[design], strict=True):
            keep = judged[a.lists["user"].to_numpy()]
            assert a.lists.filter(keep).equals(b.lists)
            for name, system in a.systems.items():
                np.testing.assert_array_equal(system.values[:, keep], b.systems[name].values)


def test_lists_that_are_kept_are_those_of_the_judged_users(cores):
    ratings, whole, part = cores
    names = ratings.users.raw(np.flatnonzero(drawn_users(ratings, 90, 5)))
    for a, b in zip(whole.lists, part.lists, strict=True):
        np.testing.assert_array_equal(a.split.train.item, b.split.train.item)
        for system, run in a.runs.items():
            rows = run.to_polars()
            assert (
                b.runs[system].to_polars().equals(rows.filter(rows["user"].is_in(names.implode())))
            )


def test_the_ladder_and_liked_shares_are_of_judged_users(cores):
    ratings, whole, part = cores
    judged = drawn_users(ratings, 90, 5)
    evidence = evidence_of(part)
    assert evidence.ladder is not None
    rungs = []
    for lists in part.lists:
        test = lists.split.test.take(judged[lists.split.test.user])
        rungs.append(ladder_part(lists.split.train, test, lists.runs, part.relevance, part.k))
        assert judged[rungs[-1].users].all()
        assert rungs[-1].without_list == (0, 0, 0)
    again = ladder_of(rungs)
    assert evidence.ladder.rows.equals(again.rows)
    assert evidence.ladder.to_dict() == again.to_dict()
    # Which judged items are listed and liked does not depend on the users that are left out.
    assert evidence.liked is not None
    for every, lists in zip(whole.lists, part.lists, strict=True):
        a, b = (
            liked_part(one.split.train, one.split.test, one.runs, core.relevance, core.k)
            for core, one in ((whole, every), (part, lists))
        )
        keep = judged[a.user]
        np.testing.assert_array_equal(a.user[keep], b.user)
        np.testing.assert_array_equal(a.lists[:, keep], b.lists)
        np.testing.assert_array_equal(a.liked[keep], b.liked)


# What a sample says of all users


def population(users=3_000, items=40, seed=8):
    """Return ratings that no world makes: liking by items and by two kinds of users."""
    rng = np.random.default_rng(seed)
    kind = rng.random(users) < 0.3
    chance = np.where(kind[:, None], np.linspace(0.05, 0.5, items), np.linspace(0.5, 0.05, items))
    cells = rng.random((users, items)) < 0.5 * chance.mean(0)
    cells[np.arange(users), rng.integers(0, items, users)] = True
    user, item = np.nonzero(cells)
    like = rng.random(user.size) < chance[user, item] + 0.3
    return us.read_ratings({"user": user, "item": item, "rating": np.where(like, 5, 2)})


@pytest.fixture(scope="module")
def split_scores():
    """Return by user and system the values of P@5 on one split, and who has test ratings."""
    data = population()
    plan = us.Plan(
        algorithms=[us.recommend.Popularity(), us.recommend.SmoothedAverage()], metrics=["P@5"]
    )
    scores = us.run_plan(data, plan).parts[0].scores
    tested = scores.lists["test"].to_numpy() > 0
    values = np.array([scores.values(name, "P@5") for name in scores.systems])
    return data, plan, tested, values


def test_means_of_a_sample_are_unbiased_and_spread_as_theory_says(split_scores):
    data, _, tested, values = split_scores
    one = values[0]
    truth = one[tested].mean()
    count, draws, users = 300, 1_500, len(data.users)
    means = np.empty(draws)
    for seed in range(draws):
        judged = drawn_users(data, count, seed) & tested
        means[seed] = one[judged].mean()
    # The mean of those with test ratings is a ratio: its bias is of order 1 / count.
    share = tested.mean()
    spread = one[tested].std(ddof=1) / np.sqrt(count * share)
    expected = spread * np.sqrt(1 - count / users)
    assert abs(means.mean() - truth) < 4.5 * expected / np.sqrt(draws)
    assert abs(means.std() / expected - 1) < 4.5 / np.sqrt(2 * draws)


def test_intervals_over_sampled_users_hold_the_difference_over_all(split_scores):
    data, _, tested, values = split_scores
    difference = values[0] - values[1]
    truth, count, draws = difference[tested].mean(), 300, 800
    inside = 0
    for seed in range(draws):
        part = difference[drawn_users(data, count, seed) & tested]
        half = 1.96 * part.std(ddof=1) / np.sqrt(part.size)
        inside += abs(part.mean() - truth) < half
    # Drawn without replacement, a tenth of the users: a little too wide.
    assert inside / draws > 0.95 - 4.5 * np.sqrt(0.05 * 0.95 / draws)
    assert inside / draws < 0.985


def test_a_sampled_plan_has_the_same_bits_with_any_number_of_threads(split_scores):
    data, plan, _, _ = split_scores
    results = []
    for threads in (1, 3):
        with exactly(threads):
            part = us.run_plan(data, replace(plan, judged_users=500)).parts[0].scores
        results.append(np.array([part.systems[name].values for name in part.systems]))
    assert results[0].tobytes() == results[1].tobytes()


def test_training_is_the_same_with_and_without_a_sample(cores):
    ratings, whole, part = cores
    for a, b in zip(whole.lists, part.lists, strict=True):
        for name in ("user", "item", "value"):
            np.testing.assert_array_equal(
                getattr(a.split.train, name), getattr(b.split.train, name)
            )
        assert (a.train_size, a.test_size) == (b.train_size, b.test_size)
    assert [one.judged for one in whole.lists] == [None, None]
    assert [one.judged for one in part.lists] == [90, 90]
    active = int(np.count_nonzero(np.diff(ratings.start)))
    assert [one.users for one in part.lists] == [active, active]
