"""The sample of users who are judged: who is drawn, and what it changes of lists (nothing)."""

from dataclasses import replace

import numpy as np
import pytest

import unskew as us
from unskew.splits.draws import drawn_users

DESIGNS = (
    us.targets.AllItems(),
    us.targets.TestItems(),
    us.targets.TestItems(others=5),
    us.targets.TestTargets("fill"),
    us.targets.OneRelevant(6),
    us.targets.Percentiles(3, strata=3),
    us.targets.Targets(strata=2),
)


def some_ratings(users=40, items=25, seed=1):
    """Return ratings with a user who has none."""
    rng = np.random.default_rng(seed)
    cells = rng.random((users, items)) < 0.35
    cells[3] = False
    user, item = np.nonzero(cells)
    whole = us.read_ratings(
        {
            "user": [*user, 3],
            "item": [*item, 0],
            "rating": [*rng.integers(1, 6, user.size), 3],
        }
    )
    return whole.take(whole.user != 3)


def test_users_with_ratings_are_drawn_each_as_likely_as_any_other():
    data = some_ratings()
    times = np.zeros(len(data.users))
    for seed in range(400):
        judged = drawn_users(data, 10, seed)
        assert judged.sum() == 10
        times += judged
    assert times[3] == 0
    others = np.delete(times, 3)
    expected = 400 * 10 / 39
    chi = ((others - expected) ** 2 / (expected * (1 - 10 / 39))).sum() * 38 / 39
    assert chi < 70.7  # 99.9 % of chi-square with 38 degrees of freedom
    np.testing.assert_array_equal(drawn_users(data, 10, 5), drawn_users(data, 10, 5))


def test_as_many_users_as_there_are_is_all_of_them():
    data = some_ratings()
    assert drawn_users(data, 39) is None
    assert drawn_users(data, 1_000) is None
    with pytest.raises(us.SettingError, match="count"):
        drawn_users(data, 0)


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_judged_users_have_the_lists_that_they_have_without_a_sample(design):
    data = some_ratings()
    split = us.splits.Random().split(data, seed=2)[0]
    judged = drawn_users(data, 12, 4)
    whole = design.lists(split, liked=4, seed=6)
    part = design.lists(replace(split, judged=judged), liked=4, seed=6)
    keep = judged[whole.user]
    np.testing.assert_array_equal(part.user, whole.user[keep])
    np.testing.assert_array_equal(part.size, whole.size[keep])
    expected = whole.to_polars()
    expected = expected.filter(expected["user"].is_in(data.users.raw(np.flatnonzero(judged))))
    assert part.to_polars().drop("list").equals(expected.drop("list"))
    # The judgments of each list are those that the list has without a sample.
    a, b = whole.judgments, part.judgments
    rows = keep[a.user]
    np.testing.assert_array_equal(b.item, a.item[rows])
    np.testing.assert_array_equal(b.value, a.value[rows])
    np.testing.assert_array_equal(np.diff(b.start), np.diff(a.start)[keep])
    assert part.facts["judged_users"] == 12


def test_a_run_of_sampled_lists_has_the_names_of_its_users():
    data = some_ratings()
    split = us.splits.Random().split(data, seed=2)[0]
    judged = drawn_users(data, 12, 4)
    lists = us.targets.AllItems().lists(replace(split, judged=judged), liked=4)
    run = us.rank(us.recommend.Popularity().fit(split.train), lists, depth=5)
    assert run.users.values.equals(data.users.raw(np.flatnonzero(judged)))
    whole = us.rank(
        us.recommend.Popularity().fit(split.train), us.targets.AllItems().lists(split, liked=4), 5
    )
    rows = whole.to_polars()
    assert run.to_polars().equals(rows.filter(rows["user"].is_in(run.users.values.implode())))


def test_a_mask_that_marks_nobody_or_has_another_shape_is_refused():
    data = some_ratings()
    split = us.splits.Random().split(data, seed=2)[0]
    with pytest.raises(us.SettingError, match="marks no user"):
        replace(split, judged=np.zeros(len(data.users), np.bool_))
    with pytest.raises(us.SettingError, match="40 users"):
        replace(split, judged=np.ones(3, np.bool_))


def test_the_test_ratings_of_judged_users():
    data = some_ratings()
    split = us.splits.Random().split(data, seed=2)[0]
    assert split.judged_test is split.test
    judged = drawn_users(data, 12, 4)
    part = replace(split, judged=judged)
    assert set(part.judged_test.user) <= set(np.flatnonzero(judged))
    assert len(part.judged_test) == judged[split.test.user].sum()


def test_a_plan_judges_the_same_users_on_every_split_with_the_values_of_all():
    data = some_ratings()
    plan = us.Plan(
        split=us.splits.Random(folds=2),
        targets=[us.targets.AllItems(), us.targets.OneRelevant(4)],
        algorithms=[us.recommend.Popularity(), us.recommend.PureSVD(factors=3)],
        interventions=[us.splits.Full(), us.splits.Skew()],
        metrics=["P@5", "anti-nDCG@5"],
        seed=9,
    )
    part = us.run_plan(data, replace(plan, judged_users=15))
    judged = drawn_users(data, 15, 9)
    for a, b in zip(us.run_plan(data, plan).parts, part.parts, strict=True):
        keep = judged[a.scores.lists["user"].to_numpy()]
        assert a.scores.lists.filter(keep).equals(b.scores.lists)
        for name, system in a.scores.systems.items():
            np.testing.assert_array_equal(
                system.values[:, keep], b.scores.systems[name].values, strict=True
            )
        # Closed forms of chance are those of each list.
        np.testing.assert_array_equal(a.scores.chance.values[:, keep], b.scores.chance.values)
    assert "judged_users" not in plan.describe()
    assert replace(plan, judged_users=15).key != plan.key
    with pytest.raises(us.SettingError, match="judged_users"):
        replace(plan, judged_users=0)
