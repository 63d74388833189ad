"""Order over windows of time and the age of models: plain twins, closed forms, false rates."""

import json
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import polars as pl
import pytest
from scipy import stats

import unskew as us
from unskew.errors import DataError, SettingError, UnknownName
from unskew.stats.pairing import all_pairs
from unskew.stats.simultaneous import least_differing, simultaneous
from unskew.stats.windows.window_tests import (
    Cells,
    between_windows,
    differences_of,
    tau_by_chance,
    within_users,
)
from unskew.stats.windows.window_values import natural, read_windows


def table(seed=0, users=60, windows=4, systems=3, share=0.7, lead=None):
    """Return values per user, window and system in rows that stand in no order."""
    rng = np.random.default_rng(seed)
    there = rng.random((users, windows)) < share
    there[np.arange(users), rng.integers(windows, size=users)] = True
    user, window = np.nonzero(there)
    order = rng.permutation(user.size)
    user, window = user[order], window[order]
    own = rng.normal(0, 0.1, (users, systems))
    values = {
        "abcdef"[s]: 0.5 + own[user, s] + rng.normal(0, 0.2, user.size) for s in range(systems)
    }
    if lead is not None:
        values["a"] = values["a"] + np.asarray(lead)[window]
    return {"user": user, "window": window, **values}


def changes(result):
    return result.parts["changes"].rows


def values_of(given):
    return read_windows(given, None).values("value")


# The test within users


def plain_statistic(given, one, other):
    """T' S⁺ T from the definition; users with one window have no deviation."""
    windows = sorted(set(given["window"]))
    total, square = np.zeros(len(windows)), np.zeros((len(windows), len(windows)))
    for user in set(given["user"]):
        mine = given["user"] == user
        d = (given[one] - given[other])[mine]
        e = np.zeros(len(windows))
        e[[windows.index(w) for w in given["window"][mine]]] = d - d.mean()
        total += e
        square += np.outer(e, e)
    return total @ np.linalg.pinv(square, hermitian=True) @ total


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_the_statistic_is_that_of_a_plain_twin(share):
    given = table(1, share=share)
    data = values_of(given)
    result = within_users(Cells.of(data), all_pairs(3), permutations=99)
    for at, (one, other) in enumerate([("a", "b"), ("a", "c"), ("b", "c")]):
        assert result.statistic[at] == pytest.approx(plain_statistic(given, one, other), rel=1e-9)
    assert (result.df == 3).all()


def test_p_is_the_share_of_all_exchanges_that_are_as_large():
    rng = np.random.default_rng(4)
    users, windows = 4, 3
    d = rng.normal(size=(users, windows)) + np.array([0.0, 0.5, 2.0])
    given = {
        "user": np.repeat(np.arange(users), windows),
        "window": np.tile(np.arange(windows), users),
        "a": d.reshape(-1),
        "b": np.zeros(d.size),
    }
    e = d - d.mean(axis=1, keepdims=True)

    def statistic(rows):
        return rows.sum(0) @ np.linalg.pinv(rows.T @ rows, hermitian=True) @ rows.sum(0)

    every = [
        statistic(np.array([row[list(order)] for row, order in zip(e, orders, strict=True)]))
        for orders in product(permutations(range(windows)), repeat=users)
    ]
    exact = np.mean(np.array(every) >= statistic(e) * (1 - 1e-9))
    result = within_users(Cells.of(values_of(given)), all_pairs(2), permutations=9_999)
    # A binomial share of 9,999 draws: 4.5 standard deviations.
    assert abs(result.p[0] - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 9_999) + 1e-4


def test_with_too_much_work_p_is_that_of_hotellings_test(monkeypatch):
    rng = np.random.default_rng(2)
    d = rng.normal(size=(40, 4)) + np.array([0.0, 0.0, 0.3, 0.3])
    given = {
        "user": np.repeat(np.arange(40), 4),
        "window": np.tile(np.arange(4), 40),
        "a": d.reshape(-1),
        "b": np.zeros(d.size),
    }
    monkeypatch.setattr("unskew.stats.windows.window_tests.MOST_WORK", 0)
    result = within_users(Cells.of(values_of(given)), all_pairs(2), permutations=99)
    contrasts = d[:, 1:] - d[:, :1]
    mean, cov = contrasts.mean(0), np.cov(contrasts.T)
    t2 = 40 * mean @ np.linalg.solve(cov, mean)
    expected = stats.f.sf(t2 * (40 - 3) / (3 * 39), 3, 37)
    assert result.permutations == 0
    assert between_windows(values_of(given), all_pairs(2))[0] == pytest.approx(expected, rel=1e-9)
    assert result.p[0] == pytest.approx(expected, rel=1e-9)
    monkeypatch.undo()
    drawn = within_users(Cells.of(values_of(given)), all_pairs(2), permutations=4_999)
    assert abs(drawn.p[0] - expected) < 0.03


def test_users_with_one_window_and_common_levels_change_nothing():
    given = table(3)
    first = us.stats.order_changes(given, resamples=0, permutations=199)
    alone = {
        "user": np.append(given["user"], [1000, 1001]),
        "window": np.append(given["window"], [0, 3]),
        **{s: np.append(given[s], [0.9, 0.1]) for s in "abc"},
    }
    second = us.stats.order_changes(alone, resamples=0, permutations=199)
    level = np.array([0.0, 5.0, -3.0, 1.0])[given["window"]]
    shifted = {**given, **{s: given[s] + level for s in "abc"}}
    third = us.stats.order_changes(shifted, resamples=0, permutations=199)
    tests, *others = (changes(result) for result in (first, second, third))
    for other in others:
        np.testing.assert_allclose(tests["statistic"], other["statistic"], rtol=1e-6)
    assert tests["p_within"].to_list() == others[1]["p_within"].to_list()
    assert tests["p"].to_list() == pytest.approx(others[1]["p"].to_list())
    assert second.card["users"]["value"] - second.card["several"]["value"] >= 2
    assert "say nothing about change within users" in str(second)


def test_differences_that_never_vary_have_p_one():
    user, window = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    base = np.random.default_rng(1).random(60)
    given = {"user": user, "window": window, "a": base + 0.1, "b": base}
    result = us.stats.order_changes(given, resamples=0)
    row = changes(result).row(0, named=True)
    assert (row["p"], row["df"], row["significant"]) == (1.0, 0, False)


def test_windows_that_share_no_user_leave_nothing_to_test():
    given = {"user": np.arange(40), "window": np.repeat([0, 1], 20)}
    rng = np.random.default_rng(0)
    given |= {"a": rng.random(40), "b": rng.random(40)}
    result = us.stats.order_changes(given, resamples=0)
    assert changes(result)["p"].to_list() == [None]
    assert result.card["tau_by_chance"] == {"value": None}
    assert not changes(result)["significant"].any()


def plain_between(given, one, other):
    """Q of Wald's test from the users' influences, window by window."""
    windows = sorted(set(given["window"]))
    users = sorted(set(given["user"]))
    means, influence = [], np.zeros((len(users), len(windows)))
    for at, window in enumerate(windows):
        here = given["window"] == window
        d = (given[one] - given[other])[here]
        means.append(d.mean())
        rows = [users.index(user) for user in given["user"][here]]
        influence[rows, at] = (d - d.mean()) / np.sqrt(d.size * (d.size - 1))
    contrast = np.eye(len(windows))[1:] - np.eye(len(windows))[0]
    gap, cov = contrast @ means, contrast @ influence.T @ influence @ contrast.T
    return gap @ np.linalg.solve(cov, gap), len(users)


def test_the_test_of_means_is_that_of_a_plain_twin():
    given = table(6, lead=[0.0, 0.0, 0.1, 0.1])
    p = between_windows(values_of(given), all_pairs(3))
    for at, (one, other) in enumerate([("a", "b"), ("a", "c"), ("b", "c")]):
        square, users = plain_between(given, one, other)
        expected = stats.f.sf(square * (users - 3) / (3 * (users - 1)), 3, users - 3)
        assert p[at] == pytest.approx(expected, rel=1e-6)


def test_users_who_leave_when_served_badly_do_not_mislead():
    """The test within users is misled, that of means is not: together they say nothing."""
    rng = np.random.default_rng(8)
    values = rng.binomial(10, 0.4, (400, 5, 2)) / 10
    there = np.ones((400, 5), bool)
    there[:, 1:] = np.logical_and.accumulate(values[:, :-1, 0] >= 0.3, axis=1)
    user, window = np.nonzero(there)
    given = {"user": user, "window": window}
    given |= {name: values[user, window, at] for at, name in enumerate("ab")}
    row = changes(us.stats.order_changes(given, resamples=0)).row(0, named=True)
    assert row["p_within"] < 0.01
    assert row["p_between"] > 0.1
    assert not row["significant"]


# Intervals


def test_one_difference_has_students_interval():
    d = np.random.default_rng(3).normal(0.1, 1, 25)
    shown = simultaneous([d[:, None]], [np.arange(25)], 25, level=0.95, draws=20_000)
    expected = stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert shown.difference[0, 0] == pytest.approx(d.mean(), rel=1e-12)
    assert shown.se[0, 0] == pytest.approx(stats.sem(d), rel=1e-12)
    # The quantile of the largest |t| is drawn.
    width = (shown.high - shown.low)[0, 0]
    assert width == pytest.approx(expected.high - expected.low, rel=0.03)


def test_intervals_hold_at_once():
    """24 differences of 40 users in 4 windows: all covered in 95 % of 400 data sets."""
    covered = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        codes = [np.sort(rng.permutation(60)[:40]) for _ in range(4)]
        own = rng.normal(size=(60, 4))
        data = [own[code] + rng.normal(size=(40, 4)) for code in codes]
        pairs = all_pairs(4)
        columns = [one[:, pairs.first] - one[:, pairs.second] for one in data]
        shown = simultaneous(columns, codes, 60, level=0.95, draws=2_000, seed=seed)
        covered += bool(((shown.low <= 0) & (shown.high >= 0)).all())
    assert covered >= 400 * 0.95 - 4.5 * np.sqrt(400 * 0.05 * 0.95)


def test_few_users_that_differ_have_no_interval():
    assert least_differing(1, 0.95) == 6
    assert (
        2.0 ** (1 - least_differing(24, 0.95)) <= 0.05 / 24 < 2.0 ** (2 - least_differing(24, 0.95))
    )
    user, window = np.tile(np.arange(30), 2), np.repeat([0, 1], 30)
    a = np.zeros(60)
    a[[0, 1, 2]] = 1.0  # three users, all for a
    given = {"user": user, "window": window, "a": a, "b": np.zeros(60)}
    result = us.stats.order_changes(given, resamples=0)
    assert result.rows["low"].is_null().all()
    assert "no window has enough users whose values differ" in str(result)


def test_the_order_changes_only_where_both_are_shown_to_be_ahead():
    given = table(5, users=300, lead=[0.3, 0.3, 0.0, -0.3])
    result = us.stats.order_changes(given, resamples=0)
    row = changes(result).row(0, named=True)
    assert row["reverses"]
    assert row["significant"]
    assert set(row["ahead"]) == {"0", "1"}
    assert row["ahead_against"] == ["3"]
    assert (row["wins"], row["wins_against"]) == (2, 1)
    assert "value: the order of a and b changes: a is ahead in 0, 1, b in 3" in str(result)
    shrinking = table(5, users=300, lead=[0.5, 0.4, 0.3, 0.15])
    result = us.stats.order_changes(shrinking, resamples=0)
    row = changes(result).row(0, named=True)
    assert row["significant"]
    assert not row["reverses"]
    text = str(result)
    assert "value: the differences between a and b (p" in text
    assert "no change of the order of any of these pairs is shown" in text


def test_lower_is_better_turns_the_sign():
    given = table(5, users=300, lead=[0.3, 0.3, 0.0, -0.3])
    up = us.stats.order_changes(given, resamples=0)
    down = us.stats.order_changes(given, resamples=0, better="lower")
    assert (-up.rows["value"]).to_list() == down.rows["value"].to_list()
    assert changes(down)["ahead_against"][0].to_list() == changes(up)["ahead"][0].to_list()
    turned, same = up.parts["changes"].pair("b", "a"), down.parts["changes"].pair("a", "b")
    assert (turned.facts["low_lead"], turned.facts["ahead"]) == (
        same.facts["low_lead"],
        same.facts["ahead"],
    )
    assert down.parts["means"].card == {"better": {"value": "lower"}}
    with pytest.raises(SettingError, match="neither higher nor lower"):
        us.stats.order_changes(given, better="neither")


# Kendall's τ


def test_tau_between_windows_is_kendalls():
    given = table(7, systems=5, users=100)
    result = us.stats.order_changes(given, resamples=50)
    means = result.parts["means"].rows.pivot("system", index="window", values="value")
    means = means.drop("window").to_numpy()
    expected = stats.kendalltau(means[0], means[2]).statistic
    row = result.parts["tau"].row(window="0", against_window="2")
    assert row.value == pytest.approx(expected)
    assert -1 <= row.low <= row.high <= 1


def test_tau_by_chance_is_that_of_windows_exchanged_within_users():
    given = table(8, systems=4, users=50, share=1.0)
    data = values_of(given)
    result = tau_by_chance(data, Cells.of(data))
    cube = np.stack(data.values)  # all users are in all windows
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(300):
        order = np.argsort(rng.random((4, 50)), axis=0)
        means = cube[order, np.arange(50)].mean(axis=1)
        taus = [stats.kendalltau(means[i], means[j]).statistic for i in range(4) for j in range(i)]
        draws.append(np.mean(taus))
    error = np.std(draws) * np.sqrt(1 / 300 + 1 / 500)
    assert abs(result["expected"] - np.mean(draws)) < 4.5 * error


def test_a_random_and_a_time_split_are_compared():
    scores = us.evaluate(
        {"user": [1, 2, 3], "item": [1, 1, 1], "rating": [5, 5, 5]},
        {"x": {1: [1], 2: [1], 3: [2]}, "y": {1: [2, 1], 2: [1], 3: [1]}},
        ["RR", "P@1"],
        liked=4,
    )
    other = us.evaluate(
        {"user": [1, 2], "item": [1, 1], "rating": [5, 5]},
        {"x": {1: [2], 2: [1]}, "y": {1: [1], 2: [1]}},
        ["RR", "P@1"],
        liked=4,
    )
    result = us.stats.order_changes({"random": [scores, scores], "time": other}, "RR", over="split")
    assert result.values_of("split") == ["random", "time"]
    tau = result.parts["tau"].row(metric="RR", split="random", against_split="time")
    expected = us.stats.kendall(
        [scores.mean("RR")[s] for s in "xy"], [other.mean("RR")[s] for s in "xy"]
    )
    assert tau.value == pytest.approx(expected)
    assert result.rows["value"].to_list() == pytest.approx(
        [
            scores.mean("RR")["x"] - scores.mean("RR")["y"],
            other.mean("RR")["x"] - other.mean("RR")["y"],
        ]
    )
    assert "splits" in str(result)


# Same bits, other forms of the same data


def test_order_of_rows_and_threads_change_no_bit():
    given = table(9)
    frame = pl.DataFrame(given)
    one = us.stats.order_changes(frame, resamples=60, threads=1)
    two = us.stats.order_changes(frame.sample(fraction=1, shuffle=True, seed=1), resamples=60)
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())


def test_a_mapping_a_long_and_a_wide_table_are_the_same():
    frame = pl.DataFrame(table(10, share=0.8))
    wide = us.stats.order_changes(frame, resamples=0, permutations=99)
    long = frame.unpivot(index=["user", "window"], variable_name="system", value_name="value")
    parts = {str(w): frame.filter(window=w).drop("window") for w in range(4)}
    for other in (long, parts):
        result = us.stats.order_changes(other, resamples=0, permutations=99)
        assert result.to_dict() == wide.to_dict()


def test_windows_of_a_table_are_in_natural_order():
    assert sorted(["w10", "w9", "w1"], key=natural) == ["w1", "w9", "w10"]
    frame = pl.DataFrame(table(11, windows=11, users=30))
    result = us.stats.order_changes(frame, resamples=0, permutations=99)
    assert result.values_of("window") == [str(n) for n in range(11)]


def test_results_of_a_plan_are_taken():
    shop = us.world("shop", users=60, items=30, ratings=900, seed=3)
    systems = [us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()]
    plan = us.Plan(us.splits.Random(folds=3), algorithms=systems, metrics=["P@5", "RR"])
    results = us.run_plan(shop.ratings, plan)
    result = us.stats.order_changes(results, "P@5", resamples=0, permutations=99)
    assert result.values_of("window") == ["fold1", "fold2", "fold3"]
    for window, scores in results.by_fold().items():
        means = result.parts["means"].rows.filter(window=window)
        expected = [scores.mean("P@5")[s] for s in means["system"]]
        assert means["value"].to_list() == pytest.approx(expected, rel=1e-12)


def test_lists_of_one_user_are_averaged_first():
    rng = np.random.default_rng(2)
    split = us.splits.Random(test=0.3).split(us.world("shop", users=40, seed=1).ratings, seed=1)[0]
    lists = us.targets.OneRelevant(others=10).lists(split, liked=4)
    models = {
        "pop": us.recommend.Popularity().fit(split.train),
        "noise": rng.random(len(split.train.items)),
    }
    scores = us.evaluate(lists, models, "RR")
    result = us.stats.order_changes({"one": scores, "two": scores}, resamples=0, permutations=99)
    means = result.parts["means"].rows.filter(window="one")["value"].to_list()
    by_user = scores.mean("RR", over="users")
    assert means == pytest.approx([by_user["pop"], by_user["noise"]])
    assert "the lists of each user are averaged first (over='users')" in result.notes


# What is refused


def test_what_cannot_be_compared_is_refused():
    given = table(1)
    with pytest.raises(SettingError, match="2 windows or more are needed, got 1"):
        us.stats.order_changes({"one": {"user": [1], "a": [1.0], "b": [2.0]}})
    with pytest.raises(DataError, match="no column 'window'"):
        us.stats.order_changes({k: v for k, v in given.items() if k != "window"})
    with pytest.raises(DataError, match="other systems"):
        us.stats.order_changes(
            {"x": {"user": [1], "a": [1.0], "b": [2.0]}, "y": {"user": [1], "a": [1.0], "c": [2.0]}}
        )
    with pytest.raises(DataError, match="at least 2 systems"):
        us.stats.order_changes({k: given[k] for k in ("user", "window", "a")})
    with pytest.raises(DataError, match=r"column 'window' is empty in 1 row, the first: row 2"):
        us.stats.order_changes(
            pl.DataFrame({"user": [1, 2], "window": [1, None], "a": [1.0, 2], "b": [1.0, 2]})
        )
    with pytest.raises(SettingError, match="permutations must be at least 99"):
        us.stats.order_changes(given, permutations=5)
    result = us.stats.order_changes(given, resamples=0, permutations=99)
    with pytest.raises(UnknownName, match="metric"):
        result["P@10"]
    with pytest.raises(UnknownName, match="system"):
        result.figure("differences", system="c")
    with pytest.raises(DataError, match="row 2 is of user 1, and so is row 1"):
        us.stats.order_changes(
            {"user": [1, 1, 1], "window": [0, 0, 1], "a": [1.0, 2, 3], "b": [1.0, 2, 3]}
        )


def test_figures_and_files():
    result = us.stats.order_changes(table(2), resamples=20, permutations=99)
    for kind in ("curves", "differences", "tau"):
        assert result.figure(kind).to_svg().startswith("<svg")
    assert result.figure("differences", system="a", against="b").to_svg().startswith("<svg")
    content = json.loads(json.dumps(result.to_dict()))
    assert len(content["parts"]["means"]["rows"]) == 12
    assert str(us.report.Estimates.from_dict(content)) == str(result)
    assert "| window |" in result.to_markdown()
    assert repr(result) == str(result)
    assert str(result).startswith(
        "value (higher is better)\nwindow  users       a       b       c\n"
    )


# False rates on data that are not ours; the full run is benchmarks/overtime_rates.py


@pytest.mark.parametrize("seed", [11])
def test_steady_differences_are_rarely_said_to_vary(seed):
    """Binomial values with a drifting level and users who come and go: 200 data sets."""
    rng = np.random.default_rng(seed)
    varies = reverses = 0
    for _ in range(200):
        users, windows = 60, 4
        level = np.linspace(0.2, 0.5, windows)
        own = rng.uniform(-0.08, 0.08, (users, 1, 2)) + np.array([0.05, 0.0])
        first, stay = rng.integers(windows, size=users), rng.geometric(0.4, users)
        at = np.arange(windows)
        there = (at >= first[:, None]) & (at < (first + stay)[:, None])
        values = rng.binomial(10, level[None, :, None] + own) / 10
        user, window = np.nonzero(there)
        data = values_of(
            {
                "user": user,
                "window": window,
                "a": values[user, window, 0],
                "b": values[user, window, 1],
            }
        )
        varies += within_users(Cells.of(data), all_pairs(2), permutations=199).p[0] <= 0.05
        shown = differences_of(data, all_pairs(2), level=0.95, draws=2_000)
        reverses += bool(shown.ahead.any() and shown.behind.any())
    # At 5 %, 4.5 standard deviations above.
    assert varies <= 200 * 0.05 + 4.5 * np.sqrt(200 * 0.05 * 0.95)
    assert reverses == 0


# The age of models


def aging(seed=0, users=200, loss=(0.2, 0.0)):
    rng = np.random.default_rng(seed)
    return {
        age: {
            "user": np.arange(users),
            "x": rng.normal(0.5 - loss[0] * age / 60, 0.2, users),
            "y": rng.normal(0.4 - loss[1] * age / 60, 0.2, users),
        }
        for age in (60, 0, 30)
    }


def test_decay_is_the_paired_difference_to_the_youngest_model():
    given = aging()
    result = us.stats.model_decay(given)
    assert result.values_of("age") == ["0", "30", "60"]
    row = result.rows.filter(system="x", age="60").row(0, named=True)
    assert result.row(system="x", age="0").value is None
    assert row["mean"] == result.parts["means"].row(system="x", age="60").value
    d = given[60]["x"] - given[0]["x"]
    assert row["value"] == pytest.approx(d.mean())
    # Simultaneous over four changes: between the single interval and Bonferroni's.
    half = (row["high"] - row["low"]) / 2
    single = stats.t.ppf(0.975, 199) * stats.sem(d)
    bonferroni = stats.t.ppf(1 - 0.025 / 4, 199) * stats.sem(d)
    assert single < half < 1.03 * bonferroni
    text = str(result)
    assert "value: x loses" in text
    assert "y loses" not in text
    assert "at age 60 days, compared with age 0 days" in text
    assert "value, 200 users\nsystem  age, days    mean   change" in text
    assert result.figure().to_svg().startswith("<svg")


def test_without_decay_no_loss_is_said():
    result = us.stats.model_decay(aging(loss=(0.0, 0.0)))
    assert "value: no system is shown to lose or gain with age" in str(result)
    lower = us.stats.model_decay(aging(), better="lower")
    assert "x is better by" not in str(us.stats.model_decay(aging()))
    assert "value: x is better by" in str(lower)


def test_users_without_a_value_at_some_age_do_not_count():
    given = aging(users=50)
    given[30] = {name: column[:40] for name, column in given[30].items()}
    result = us.stats.model_decay(given)
    assert set(result.rows["n"]) == {40}
    assert "value: 10 users have no value at some age and do not count" in result.notes
    few = {age: {k: v[:1] for k, v in one.items()} for age, one in given.items()}
    with pytest.raises(DataError, match="1 user has a value at every age; at least 2 are needed"):
        us.stats.model_decay(few)


@pytest.fixture(scope="module")
def in_time():
    rng = np.random.default_rng(5)
    n = 900
    return us.read_ratings(
        {
            "user": rng.integers(40, size=n),
            "item": rng.integers(60, size=n),
            "rating": rng.integers(1, 6, n),
            "time": 1_600_000_000 + np.arange(n) * 3600,
        },
        duplicates="last",
    )


def judged_from(train, test):
    systems = {"pop": us.recommend.Popularity(), "avg": us.recommend.AverageRating()}
    split = us.Split(train, test)
    lists = us.targets.AllItems().lists(split, liked=4)
    return us.evaluate(lists, {name: one.fit(train) for name, one in systems.items()}, "nDCG@10")


def test_age_and_period_are_not_confounded(in_time):
    time = in_time.time
    cuts = np.quantile(time, [0.4, 0.6, 0.8]).astype(np.int64)
    train = in_time.take(time < cuts[1])
    tests = {"1": (cuts[1], cuts[2]), "2": (cuts[2], time.max())}
    windows = {
        name: judged_from(train, in_time.take((time >= low) & (time < high)))
        for name, (low, high) in tests.items()
    }
    with pytest.raises(SettingError, match="age and period are confounded"):
        us.stats.model_decay(windows)
    same_model = us.stats.order_changes(windows, resamples=0, permutations=99)
    assert any("the age of the models grows with the period" in note for note in same_model.notes)
    last = in_time.take(time >= cuts[2])
    ages = {
        name: judged_from(in_time.take(time < cut), last)
        for name, cut in zip(("0", "9", "18"), cuts[::-1], strict=True)
    }
    result = us.stats.model_decay(ages)
    assert any(note.startswith("training ratings: ") for note in result.notes)
    with pytest.raises(SettingError, match="the training ratings are the same at all ages"):
        us.stats.model_decay({"0": ages["0"], "9": ages["0"]})


def test_age_and_period_are_told_apart_without_fingerprints_too(in_time):
    """Scores of a plan do not know the fingerprints of its parts."""
    time = in_time.time
    cuts = np.quantile(time, [0.4, 0.6, 0.8]).astype(np.int64)
    parts = {
        "1": in_time.take((time >= cuts[1]) & (time < cuts[2])),
        "2": in_time.take(time >= cuts[2]),
    }
    train = in_time.take(time < cuts[1])
    blank = {
        name: replace(judged_from(train, part), make_card=dict) for name, part in parts.items()
    }
    with pytest.raises(SettingError, match="age and period are confounded"):
        us.stats.model_decay(blank)
    same = us.stats.order_changes(blank, resamples=0, permutations=99)
    assert any("the age of the models grows with the period" in note for note in same.notes)
    growing = {
        name: replace(judged_from(in_time.take(time < cut), part), make_card=dict)
        for (name, part), cut in zip(parts.items(), cuts[1:], strict=True)
    }
    trained = us.stats.order_changes(growing, resamples=0, permutations=99)
    assert not any("the age of the models grows" in note for note in trained.notes)
    ages = {
        name: replace(judged_from(in_time.take(time < cut), parts["2"]), make_card=dict)
        for name, cut in zip(("0", "9"), cuts[::-1], strict=False)
    }
    result = us.stats.model_decay(ages)
    assert any("training ratings of the judged users" in note for note in result.notes)
