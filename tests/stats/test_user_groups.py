"""Intervals, tests and permutations by group of users: against plain formulas, and errors."""

import json
import math
from itertools import product

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.errors import DataError, SettingError
from unskew.stats.clusters import GroupedValues
from unskew.stats.special import student_t_quantile
from unskew.stats.user_groups import groups_of_users


def table(seed=0, groups=12, sizes=(3,), systems="ab"):
    """Return values of users whose households share most of them, and their household."""
    rng = np.random.default_rng(seed)
    size = rng.choice(sizes, groups)
    household = np.repeat(np.arange(groups), size)
    values = {}
    for number, name in enumerate(systems):
        shared = rng.normal(0.02 * number, 0.1, groups)[household]
        values[name] = 0.3 + shared + rng.normal(0, 0.02, household.size)
    return {"user": np.arange(household.size), **values}, household


def plain_interval(difference, household, level=0.95):
    """Return the mean over users and its interval: a ratio of sums over households."""
    names, code = np.unique(household, return_inverse=True)
    total, size = np.bincount(code, difference), np.bincount(code)
    mean = difference.mean()
    influence = (total - mean * size) / difference.size
    groups = names.size
    se = math.sqrt((influence**2).sum() * groups / (groups - 1))
    width = student_t_quantile((1 + level) / 2, groups - 1) * se
    return mean, mean - width, mean + width


@pytest.mark.parametrize("sizes", [(3,), (1, 2, 5)])
def test_intervals_are_those_of_a_ratio_of_sums(sizes):
    values, household = table(1, 30, sizes)
    groups = dict(zip(values["user"].tolist(), household.tolist(), strict=True))
    row = us.compare(values, group_users=groups).pair("a", "b")
    expected = plain_interval(values["a"] - values["b"], household)
    assert row.estimate == pytest.approx(expected, rel=1e-9)
    assert row.n == 30


def test_permutations_flip_whole_groups():
    values, household = table(2, 10, (1, 4))
    frame = pl.DataFrame({"user": values["user"], "household": household})
    row = us.compare(values, group_users=frame, correction=None).pair("a", "b")
    sums = np.bincount(household, values["a"] - values["b"])
    flipped = np.array([np.dot(signs, sums) for signs in product((-1, 1), repeat=sums.size)])
    assert row.p == np.mean(np.abs(flipped) >= abs(sums.sum()) * (1 - 1e-9))


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign", "bootstrap", "bootstrap-t"])
def test_tests_are_those_of_households_where_all_have_one_size(test):
    values, household = table(3, 25, (4,))
    means = {
        name: np.bincount(household, values[name]) / np.bincount(household) for name in ("a", "b")
    }
    settings = {"test": test, "permutations": 500, "interval": "bca", "resamples": 500, "rope": 0.1}
    stated = us.compare(values, group_users=dict(enumerate(household)), **settings)
    alone = us.compare({"user": np.arange(25), **means}, **settings)
    left, right = stated.pair("a", "b"), alone.pair("a", "b")
    assert left.estimate == pytest.approx(right.estimate, rel=1e-6)
    assert left.p == pytest.approx(right.p, rel=1e-6)
    assert left.n == right.n == 25
    for name in ("cohen_d", "hedges_g", "better", "equal", "p_equivalent"):
        assert left.facts[name] == pytest.approx(right.facts[name], rel=1e-6)


@pytest.mark.parametrize("correction", ["maxT", "tukey", "holm"])
def test_users_alone_are_as_without_groups(correction):
    """Groups of one user each: the same numbers."""
    values, _ = table(4, 20, (1,), "abc")
    settings = {"correction": correction, "permutations": 1_000}
    plain = us.compare(values, **settings).rows
    alone = us.compare(values, group_users={u: u for u in range(20)}, **settings).rows
    for name in ("value", "low", "high", "p", "p_corrected"):
        assert alone[name].to_list() == pytest.approx(plain[name].to_list(), rel=1e-9)


def test_what_is_printed_names_the_unit():
    values, household = table(5)
    text = str(us.compare(values, group_users=dict(enumerate(household))))
    assert "12 groups" in text
    assert "by group of users" in text
    assert "sign flips per group of users" in text
    assert "by group of users: 36 users are in 12 groups (a mapping)" in text


def test_users_without_a_group_are_groups_of_their_own(tmp_path):
    values, _ = table(6, 12, (1,))
    file = tmp_path / "users.csv"
    file.write_text("user,household\n0,x\n1,x\n2,\n", encoding="utf-8")
    answer = us.compare(values, group_users=f"{file}:household")
    assert answer.pair("a", "b").n == 11
    note = "12 users are in 11 groups (household (users.csv)); 10 users without a group count"
    assert note in answer.notes[-1]


def test_groups_of_different_sizes_have_the_mean_over_users():
    values, household = table(7, 15, (1, 2, 6))
    matrix = np.column_stack([values["a"], values["b"]])
    grouped = GroupedValues.of(matrix, household, "x")
    for part in (grouped.sums, grouped.linear, grouped.matrix):
        assert part.mean(axis=0) == pytest.approx(matrix.mean(axis=0))
    assert grouped.linear is not grouped.sums


def judged_clones(seed=0, copies=5):
    """Return judged data of cloned users, and their household."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(60):
        items, stars = rng.choice(200, 30, replace=False), rng.integers(1, 6, 30)
        for copy in range(copies):
            keep = rng.random(30) < 0.95
            user = f"p{person}-{copy}"
            rows += [(user, int(i), int(s)) for i, s in zip(items[keep], stars[keep], strict=True)]
    user, item, rating = zip(*rows, strict=True)
    users = list(dict.fromkeys(user))
    lists = {name: {u: rng.permutation(200)[:10].tolist() for u in users} for name in "ab"}
    test = {"user": user, "item": item, "rating": rating}
    return us.judge(test, lists, liked=4)


def test_clones_are_said_once_and_detected():
    judged = judged_clones()
    plain = us.compare(judged, "P@10")
    (note,) = [note for note in plain.notes if "near-duplicate" in note]
    assert "300 users are near-duplicate accounts in 60 groups" in note
    grouped = us.compare(judged, "P@10", group_users="detected")
    assert grouped.pair("a", "b").n == 60
    assert not any("are too narrow" in note for note in grouped.notes)
    found = us.splits.duplicate_users(judged.tests)
    by_answer = us.compare(judged, "P@10", group_users=found)
    assert by_answer.rows.equals(grouped.rows)


def test_clean_data_have_no_note():
    judged = judged_clones(copies=1)
    assert not any("near-duplicate" in note for note in us.compare(judged, "P@10").notes)


@pytest.mark.parametrize(
    ("group_users", "error", "words"),
    [
        ("detected", SettingError, "needs the ratings"),
        ("households", SettingError, "'detected', FILE:COLUMN"),
        ({0: "x", 1: "x", 2: "x", 3: "x"}, DataError, "at least 2 groups"),
        ({"elsewhere": 1}, DataError, "none of the 4 users has a group"),
        ({"user": [0, 0], "group": [1, 2]}, DataError, "group_users=…"),
        ({"person": [0], "a": [1], "b": [2]}, DataError, "group_users=…"),
        (3.5, DataError, "cannot read float"),
    ],
)
def test_what_is_no_group_is_refused(group_users, error, words):
    values, _ = table(8, 4, (1,))
    with pytest.raises(error, match=words):
        us.compare(values, group_users=group_users)


def test_segments_do_not_go_with_groups():
    values, _ = table(9)
    by = {"user": values["user"], "part": ["x", "y"] * 18}
    with pytest.raises(SettingError, match=r"group_users=… does not go with by=…"):
        us.compare(values, by=by, group_users={0: 1, 1: 1})


def test_resolved_groups_pass_through():
    groups = groups_of_users({1: "a"})
    assert groups_of_users(groups) is groups
    assert groups_of_users(None) is None


def test_contrasts_by_group_are_those_of_compare():
    judged = judged_clones()
    scores = us.evaluate(judged, "P@10")
    groups = us.splits.user_groups(judged.tests)
    row = us.stats.contrasts({"all": [scores]}, "P@10", target="lists", group_users=groups).pair(
        "a", "b"
    )
    pair = us.compare(scores, "P@10", test="t", group_users=groups).pair("a", "b")
    assert row.n == pair.n == 60
    single = (row.facts["low_single"], row.facts["high_single"])
    assert (row.value, *single) == pytest.approx(pair.estimate, rel=1e-9)
    assert row.p == pytest.approx(pair.p, abs=0.005)


# Estimates


def test_estimates_of_users_alone_are_as_without_groups():
    judged = judged_clones(copies=1)
    users = judged.tests.users.values.to_list()
    plain = us.estimate(judged, ["P@10", "Recall@10"], resamples=200)
    alone = us.estimate(
        judged, ["P@10", "Recall@10"], resamples=200, group_users={u: u for u in users}
    )
    assert alone.rows.equals(plain.rows)
    assert alone.method.unit == "groups of users"


def test_estimates_draw_whole_groups():
    judged = judged_clones()
    settings = {"resamples": 2_000, "propensity": "popularity"}
    plain = us.estimate(judged, "P@10", **settings)
    grouped = us.estimate(judged, "P@10", group_users="detected", **settings)
    first, second = (answer.row(system="a", quantity="naive") for answer in (plain, grouped))
    assert first.value == pytest.approx(second.value)
    assert second.n == 60
    values = us.evaluate(judged, "P@10").values("a", "P@10").reshape(60, 5).mean(axis=1)
    assert second.se == pytest.approx(values.std(ddof=0) / math.sqrt(60), rel=0.08)
    assert sum("near-duplicate" in note for note in plain.notes) == 1
    assert not any("too narrow" in note for note in grouped.notes)


# Commands


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write judgments of cloned users, lists, and a column of households."""
    monkeypatch.chdir(tmp_path)
    judged = judged_clones()
    judged.tests.to_polars().write_csv("test.csv")
    for name, run in judged.systems.items():
        run.to_polars().write_csv(f"{name}.csv")
    users = judged.tests.users.values
    households = users.str.split("-").list.first().alias("household")
    pl.DataFrame({"user": users, "household": households}).write_csv("users.csv")
    return ("-j", "test.csv", "-r", "a.csv", "-r", "b.csv", "--liked", "4", "-m", "P@10")


@pytest.mark.parametrize("command", ["compare", "estimate"])
def test_commands_count_groups(files, call, command):
    code, out, _ = call(command, *files)
    assert code == 0
    assert "--group-users detected" in " ".join(out.split())
    code, out, _ = call(command, *files, "--group-users", "users.csv:household", "--format", "json")
    assert code == 0
    answer = json.loads(out)
    assert {row["n"] for row in answer["rows"]} == {60}
    assert answer["method"]["unit"] == "groups of users"
    code, out, _ = call(command, *files, "--group-users", "detected", "--format", "json")
    assert {row["n"] for row in json.loads(out)["rows"]} == {60}


@pytest.mark.parametrize("report", ["--bounds", "--clipping", "--sensitivity"])
def test_reports_by_user_only_refuse_groups(files, call, report):
    code, _, err = call("estimate", *files, "--group-users", "detected", report)
    assert code != 0
    assert f"--group-users does not go with {report}" in err


def test_saved_scores_take_groups_of_a_file(files, call):
    assert call("evaluate", *files, "--save", "saved")[0] == 0
    code, out, _ = call(
        *("compare", "--scores", "saved", "--group-users", "users.csv:household"),
        *("--format", "json"),
    )
    assert code == 0
    assert {row["n"] for row in json.loads(out)["rows"]} == {60}
    code, _, err = call("compare", "--scores", "saved", "--group-users", "detected")
    assert code != 0
    assert "needs the ratings" in err
