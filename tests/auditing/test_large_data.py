"""How many users are judged and splits made, what memory allows, and what a report says of it."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.arrays import frozen
from unskew.auditing.designs import LEVELS
from unskew.auditing.large_data import LargeRequest, half_width, needed_bytes
from unskew.data.ratings import Ids, Ratings


def many(users, each=1, items=10, times=False):
    """Return ratings of many users, without reading a file."""
    user = np.repeat(np.arange(users, dtype=np.int32), each)
    item = np.tile(np.arange(each, dtype=np.int32), users)
    value = 1.0 + (user + item) % 5
    time = frozen(np.zeros(user.size, np.int64)) if times else None
    ids = Ids(pl.Series(np.arange(users))), Ids(pl.Series(np.arange(items)))
    return Ratings(*ids, frozen(user), frozen(item), frozen(value), time)


@pytest.mark.parametrize(
    ("asked", "users", "judged"),
    [
        (None, 50_000, None),
        (None, 50_001, 20_000),
        ("all", 60_000, None),
        (100, 60_000, 100),
        (100, 100, None),
        (100, 101, 100),
        (30_000, 60_000, 30_000),
    ],
)
def test_how_many_users_are_judged(asked, users, judged):
    count, notes = LargeRequest.of(asked, None, None).judged_users(users)
    assert count == judged
    if judged is not None:
        assert f"{judged:,} of {users:,} users were judged, drawn at random" in notes[0]
        assert ("as of any data with more than 50,000 users" in notes[0]) == (asked is None)
        assert f"±{1.96 * 0.1 / math.sqrt(judged):.4f}" in notes[0]
    elif asked == 100:
        assert notes == ["users=100: the data have 100 users with ratings, and all are judged"]
    else:
        assert notes == []


def test_the_width_of_an_interval_is_that_of_a_mean_over_users():
    rng = np.random.default_rng(3)
    means = [rng.normal(0, 0.1, 2_000).mean() for _ in range(2_000)]
    inside = np.mean(np.abs(means) < half_width(2_000))
    assert abs(inside - 0.95) < 4.5 * math.sqrt(0.05 * 0.95 / 2_000)


@pytest.mark.parametrize(
    ("level", "asked", "ratings", "splits"),
    [
        ("quick", None, 4_999_999, 3),
        ("quick", None, 5_000_000, 2),
        ("default", None, 5_000_000, 3),
        ("thorough", None, 5_000_000, 5),
        ("quick", 1, 10, 1),
        ("quick", 4, 5_000_000, 4),
    ],
)
def test_how_many_splits_are_made(level, asked, ratings, splits):
    chosen, notes = LargeRequest.of(None, asked, None).level(LEVELS[level], ratings)
    assert chosen == replace(LEVELS[level], splits=splits)
    assert bool(notes) == (asked is None and ratings == 5_000_000)
    if notes:
        assert f"{splits} random splits instead of {LEVELS[level].splits}" in notes[0]


def test_data_that_do_not_fit_are_refused_with_a_remedy():
    data = many(100_000, 8, times=True)
    assert needed_bytes(data) == 800_000 * (2 * 24 + 8)
    assert needed_bytes(many(100_000, 8)) == 800_000 * (2 * 16 + 8)
    LargeRequest.of(None, None, "1100MiB").check_memory(data, 1)
    with pytest.raises(us.SettingError, match=r"memory is 1.0 GiB: give memory='2GiB'") as info:
        LargeRequest.of(None, None, "1050MiB").check_memory(data, 1)
    assert "keep fewer ratings" in str(info.value)
    with pytest.raises(us.SettingError, match="or take 2 workers"):
        LargeRequest.of(None, None, "1110MiB").check_memory(data, 3)
    with pytest.raises(us.SettingError, match="memory must look like"):
        LargeRequest.of(None, None, "much")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"users": 0}, "users must be a whole number from 1 up"),
        ({"users": "some"}, "users must be a number such as 20000, or 'all'"),
        ({"splits": 0}, "splits must be a whole number from 1 up"),
        ({"memory": "1KiB"}, "memory must be at least"),
    ],
)
def test_what_an_audit_refuses(settings, message):
    shop = us.world("shop", users=60, items=40, seed=3)
    with pytest.raises(us.SettingError, match=message):
        us.audit(shop, "quick", **settings)


@pytest.mark.parametrize("settings", [{"users": 5}, {"splits": 2}, {"memory": "6GiB"}])
def test_given_lists_are_judged_for_all_their_users(settings):
    test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    with pytest.raises(us.SettingError, match="is for ratings"):
        us.audit(judgments=test, runs={"a": {1: [10], 2: [20]}}, liked=4, **settings)


def test_a_plan_states_itself_how_many_users_are_judged():
    shop = us.world("shop", users=60, items=40, seed=3)
    plan = us.Plan(algorithms=[us.recommend.Popularity(), us.recommend.Random()], judged_users=9)
    with pytest.raises(us.SettingError, match="users is in the plan already"):
        us.audit(shop, plan, users=8)
    with pytest.raises(us.SettingError, match="splits is in the plan already"):
        us.audit(shop, plan, splits=2)


@pytest.fixture(scope="module")
def audits():
    """Return the audit of a sample of users, and of all."""
    shop = us.world("shop", users=150, items=60, seed=3)
    settings = {
        "algorithms": ["popularity", "random"],
        "designs": ["all-items", "1r", "skew"],
        "repeats": 2,
        "permutations": 200,
        "splits": 2,
    }
    return [us.audit(shop, "quick", users=users, **settings) for users in (70, "all")]


def test_a_report_says_who_was_judged(audits):
    part, whole = audits
    active = part.card["judged_users"]["with_ratings"]
    assert active == 114
    sentence = f"70 of {active} users were judged, drawn at random"
    text = "\n".join(str(line) for line in part.footer())
    assert sentence in text
    assert sentence not in "\n".join(str(line) for line in whole.footer())
    assert part.card["judged_users"]["judged"] == 70
    assert whole.card["judged_users"] is None
    assert f"70 of {active} users are judged" in next(
        one.text for one in part.statements if one.kind == "sampled"
    )
    assert all(one.kind != "sampled" for one in whole.statements)
    methods = str(us.auditing.methods_of(part))
    assert f"Of {active} users, 70 were judged, drawn at random and the same ones" in methods
    assert "drawn at random and the same ones" not in str(us.auditing.methods_of(whole))


def test_the_command_of_a_report_makes_the_same_sample_again(audits):
    part, whole = audits
    assert "users=70" in part.command
    assert "splits=2" in part.command
    assert "users" not in whole.command.partition("us.audit(")[2]
    assert len(part.core.scores["all-items"]) == 2


def test_values_of_judged_users_are_those_of_all(audits):
    part, whole = audits
    for design, parts in part.core.scores.items():
        for a, b in zip(parts, whole.core.scores[design], strict=True):
            rows = b.lists["user"].is_in(a.lists["user"].unique().implode()).to_numpy()
            for name, system in a.systems.items():
                np.testing.assert_array_equal(system.values, b.systems[name].values[:, rows])


# The command line


def test_the_command_line_takes_users_splits_and_memory(tmp_path, call):
    data = us.world("shop", users=90, items=40, seed=3).ratings
    data.to_csv(tmp_path / "ratings.csv")
    words = ("audit", tmp_path / "ratings.csv", "--quick", "--designs", "all-items")
    words += ("--algorithms", "random,popularity", "--no-tune", "--repeats", 2)
    report = tmp_path / "report.json"
    sizes = ("--users", "40", "--splits", 1, "--memory", "2GiB")
    code, _, problems = call(*words, *sizes, "-o", report, "--format", "json")
    assert code == 0, problems
    text = report.read_text()
    assert "--users 40 --splits 1 --memory 2147483648" in text
    assert '"judged": 40' in text
    for given, message in (
        (("--users", "0"), "users must be a whole number from 1 up"),
        (("--users", "few"), "users must be a number such as 20000, or 'all'"),
        (("--splits", "0"), "splits must be a whole number from 1 up"),
        (("--memory", "1MiB"), "give --memory 2GiB"),
    ):
        code, _, problems = call(*words, *given, "-o", report)
        assert code != 0
        assert message in " ".join(problems.split())
