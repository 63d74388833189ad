"""Users who are not independent: means stay, bounds and tests are by group."""

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.gating.bounds import bounds_of, by_group
from unskew.gating.settings import RAILS
from unskew.gating.values import lay, metric_of, values_of
from unskew.stats.user_groups import groups_of_users

OFF = dict.fromkeys(RAILS, "off")


def test_the_variance_is_that_of_sums_by_group():
    """The sandwich of a mean: sums of residuals by cluster, with G / (G - 1)."""
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 40, 300)
    values = rng.exponential(size=300) + rng.normal(size=40)[groups]
    residuals = values - values.mean()
    sums = np.array([residuals[groups == g].sum() for g in np.unique(groups)])
    variance = (sums**2).sum() / 300**2 * sums.size / (sums.size - 1)
    bounds = bounds_of(values, 0.05, groups)
    assert bounds.value == pytest.approx(values.mean())
    assert bounds.se == pytest.approx(np.sqrt(variance))
    assert bounds.users == sums.size


def test_clones_weigh_as_one_user():
    rng = np.random.default_rng(2)
    values = rng.normal(size=50)
    clones = bounds_of(np.repeat(values, 5), 0.05, np.repeat(np.arange(50), 5))
    alone = bounds_of(values, 0.05)
    for name in ("value", "se", "low", "high", "skewness", "p_below"):
        assert getattr(clones, name) == pytest.approx(getattr(alone, name))


def test_groups_of_one_change_nothing():
    values = np.random.default_rng(3).normal(size=60)
    np.testing.assert_allclose(by_group(values, np.arange(60)), values)
    assert by_group(values, None) is values


def test_bounds_by_group_miss_as_often_as_they_may():
    """2,000 samples of 60 households of five that share most of their value."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(60), 5)
    missed = {"stated": 0, "not stated": 0}
    for _ in range(2_000):
        values = rng.normal(size=60)[groups] + 0.5 * rng.normal(size=300)
        missed["stated"] += bounds_of(values, 0.05, groups).low > 0
        missed["not stated"] += bounds_of(values, 0.05).low > 0
    assert missed["stated"] <= 2_000 * 0.05 + 4.5 * np.sqrt(2_000 * 0.05 * 0.95)
    assert missed["not stated"] > 300


# Through the gate


def households(seed=5, homes=60, size=4, items=40):
    """Return judgments and lists of households whose users rate and are shown the same."""
    rng = np.random.default_rng(seed)
    rated = rng.random((homes, items)) < 0.4
    likes = rng.random((homes, items)) < 0.5
    user, item = np.nonzero(np.repeat(rated, size, axis=0))
    value = np.where(np.repeat(likes, size, axis=0)[user, item], 5, 1)
    test = {"user": user, "item": item, "rating": value}
    lists = {
        name: np.repeat(np.argsort(rng.random((homes, items)), axis=1)[:, :10], size, axis=0)
        for name in ("new", "old")
    }
    runs = {name: us.Run.from_arrays(np.arange(homes * size), of) for name, of in lists.items()}
    return test, runs, np.arange(homes * size) // size


def test_a_gate_by_group_is_that_of_one_user_per_group():
    test, runs, home = households()
    first = np.arange(0, home.size, 4)
    keep = np.isin(test["user"], first)
    names = {"candidate": "new", "production": "old", "metric": "P@10", "liked": 4}
    whole = us.gate(test, runs, group_users=dict(enumerate(home.tolist())), **names)
    alone = us.gate(
        {name: column[keep] for name, column in test.items()},
        {name: us.read_run(run.to_polars().filter(pl.col("user").is_in(first.tolist())))
         for name, run in runs.items()},
        **names,
    )  # fmt: skip
    assert whole.verdict == alone.verdict
    assert (whole.better.users, whole.better.differing) == (60, alone.better.differing)
    for one, two in zip(whole.checks, alone.checks, strict=True):
        if one.key in ("rail popularity",) or one.low is None:  # four times as many ratings
            continue
        assert one.key.split(":")[0] == two.key.split(":")[0]
        if one.key.startswith("segment"):
            continue
        for name in ("candidate", "production", "change", "low", "high"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-9), one.key


def test_exposure_is_left_out_by_group():
    """The jackknife leaves out a household, and with it what only its users are shown."""
    test, runs, home = households(homes=30)
    judged = us.judge(test, runs, liked=4)
    groups = groups_of_users(dict(enumerate(home.tolist()))).of(judged.users)[1]
    values = values_of(lay(judged, "new", "old", metric_of("P@10"), groups))
    frame = runs["new"].to_polars()
    size = len(judged.judgments.items)
    whole = frame["item"].n_unique() / size
    added = np.array(
        [
            whole - frame.filter(pl.col("user") // 4 != number)["item"].n_unique() / size
            for number in range(30)
        ]
    )
    np.testing.assert_allclose(values.coverage.candidate, whole + 30 * (added - added.mean()))


def test_groups_may_be_in_any_order():
    test, runs, home = households(seed=6)
    names = {"candidate": "new", "production": "old", "metric": "P@10", "liked": 4, "rails": OFF}
    forward = us.gate(test, runs, group_users=dict(enumerate(home.tolist())), **names)
    labels = {user: f"home {99 - number}" for user, number in enumerate(home.tolist())}
    assert us.gate(test, runs, group_users=labels, **names).to_dict() == forward.to_dict()


def test_groups_are_part_of_a_look(tmp_path):
    test, runs, home = households(seed=7, homes=30)
    names = {"candidate": "new", "production": "old", "metric": "P@10", "liked": 4, "rails": OFF}
    names["log"] = tmp_path / "looks.jsonl"
    groups = dict(enumerate(home.tolist()))
    numbers = [
        us.gate(test, runs, group_users=stated, **names).look.number
        for stated in (None, groups, groups, None)
    ]
    assert numbers == [1, 2, 2, 1]


def test_a_gate_by_group_says_so():
    test, runs, home = households(seed=8)
    gate = us.gate(
        test, runs, candidate="new", production="old", metric="P@10", liked=4,
        group_users=dict(enumerate(home.tolist())),
    )  # fmt: skip
    assert "60 groups of users; one-sided tests at 0.05" in gate.brief()


def test_near_duplicates_are_said_and_detected():
    test, runs, home = households(homes=60, size=4)
    names = {"candidate": "new", "production": "old", "metric": "P@10", "liked": 4}
    plain = us.gate(test, runs, **names)
    assert any("near-duplicate accounts" in note for note in plain.notes)
    detected = us.gate(test, runs, group_users="detected", **names)
    stated = us.gate(test, runs, group_users=dict(enumerate(home.tolist())), **names)
    assert stated.better.users == 60
    assert 60 <= detected.better.users < 80  # a copy or two may be missed
    assert detected.better.low == pytest.approx(stated.better.low, abs=0.002)
    assert not any("too narrow" in note for note in detected.notes)
