"""The popularity of lists: values, null values, intervals and gaps of groups."""

import itertools
import json
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import unskew as us
from unskew.bias.popularity import list_measures
from unskew.bias.popularity.list_measures import (
    PER_USER,
    WHOLE,
    UserValues,
    equal_recall,
    lorenz_points,
)
from unskew.stats.intervals.ratios import (
    contrast_values,
    paired_ratio_interval,
    rate_contrast_interval,
)


@pytest.fixture(scope="module")
def judged():
    shop = us.world("shop", users=400, items=60, ratings=6400, seed=7)
    (split,) = us.splits.Random(test=0.3).split(shop.ratings, seed=7)
    lists = us.targets.AllItems().lists(split, liked=4)
    algorithms = {"pop": us.recommend.Popularity(), "knn": us.recommend.UserKNN(k=10)}
    runs = {name: us.rank(one.fit(split.train), lists, 10) for name, one in algorithms.items()}
    warm = split.train.user > 9  # the first ten users are cold
    return us.judge(split.test, runs, liked=4, train=split.train.take(warm))


@pytest.fixture(scope="module")
def result(judged):
    return us.bias.list_popularity(judged, k=5)


def of(result, system, measure, group="all users"):
    k = result.card["k"]
    return result.where(system=system, metric=f"{measure}@{k}", group=group).rows.row(0, named=True)


def gap_of(result, system, measure, group, against):
    """Return the difference of two groups."""
    k = result.card["k"]
    return result.parts["gaps"].row(
        system=system, metric=f"{measure}@{k}", group=group, against_group=against
    )


def test_values_of_all_users_are_those_of_evaluate(judged, result):
    names = [f"{one}@5" for one in (*PER_USER, *WHOLE)]
    scores = us.evaluate(judged, names, users="with-list", undefined="skip")
    for system, means in scores.means().items():
        for one in (*PER_USER, *WHOLE):
            value = of(result, system, one)["value"]
            assert value == pytest.approx(means[f"{one}@5"], abs=1e-12), one
        null = means["UPD@5"] - means["ExcessUPD@5"]
        assert of(result, system, "UPD")["null"] == pytest.approx(null, abs=1e-12)
        assert of(result, system, "ExcessUPD")["null"] == 0
        assert of(result, system, "Gini")["null"] is None
    assert of(result, "pop", "PopRSP")["low"] is None  # it lists nothing of the tail
    row = of(result, "knn", "PopRSP")
    assert 0 < row["low"] < row["value"] < row["high"] <= 1
    lost = int(judged.with_list.sum()) - of(result, "pop", "UPD")["n"]
    assert lost >= 10  # the cold users
    assert f"pop: {lost} users have no list or no training ratings" in str(result)


def test_groups_are_parts_of_all_users(result):
    for system, measure in itertools.product(("pop", "knn"), ("TailShift", "ExcessUPD")):
        rows = [of(result, system, measure, group) for group in ("niche", "diverse", "blockbuster")]
        mean = sum(row["n"] * row["value"] for row in rows) / sum(row["n"] for row in rows)
        assert mean == pytest.approx(of(result, system, measure)["value"], abs=1e-12)
        gap = gap_of(result, system, measure, "niche", "diverse")
        assert gap.value == pytest.approx(rows[0]["value"] - rows[1]["value"])
        assert gap.low < gap.value < gap.high


def test_the_chance_of_a_list_is_that_of_all_items(judged, result):
    scores = us.evaluate(
        judged.tests, dict(judged.systems), ["PopLift@5", "UPD@5"], liked=4, train=judged.train,
        targets="all-items", users="with-list", undefined="skip",
    )  # fmt: skip
    for name, value in scores.random().items():
        row = of(result, "pop", name.partition("@")[0])
        assert row["chance"] == pytest.approx(value, abs=1e-3)


def test_the_same_bits_again(judged, result):
    again = us.bias.list_popularity(judged, k=5)
    assert again.table().equals(result.table())
    assert again.parts["gaps"].rows.equals(result.parts["gaps"].rows)


def test_lorenz_curves_have_the_area_of_the_gini_index():
    exposure = np.array([0, 3, 1, 4])
    points = np.array(lorenz_points(exposure))
    assert points[0].tolist() == [0, 0]
    assert points[-1].tolist() == [1, 1]
    area = np.trapezoid(points[:, 1], points[:, 0])
    gaps = [abs(a - b) for a in exposure for b in exposure]
    assert 1 - 2 * area == pytest.approx(sum(gaps) / (2 * 4 * exposure.sum()))


def test_equal_recall_by_enumeration():
    for hits, head, tail in ((1, 2, 3), (2, 3, 3), (4, 5, 2), (3, 1, 6)):
        liked = ["head"] * head + ["tail"] * tail
        values = []
        for part in itertools.combinations(liked, hits):
            a, b = part.count("head") / head, part.count("tail") / tail
            values.append(abs(a - b) / (a + b))
        assert equal_recall(hits, head, tail) == pytest.approx(np.mean(values), abs=1e-12)
    assert math.isnan(equal_recall(0, 3, 3))


# Intervals


def p_of(values):
    """Return the p-value of a mean of 0 by Hall's transformation, with scipy."""
    n = values.size
    skew = stats.skew(values, bias=True) * n**2 / ((n - 1) * (n - 2)) * ((n - 1) / n) ** 1.5
    t = values.mean() / (values.std(ddof=1) / math.sqrt(n))
    a = skew / math.sqrt(n)
    return 2 * stats.t.sf(abs(t + a * (t * t / 3 + 1 / 6) + a * a * t**3 / 27), n - 1)


def test_ends_of_ratios_are_where_the_test_begins_to_reject():
    rng = np.random.default_rng(2)
    bottom = rng.gamma(2, 1, 60)
    top = bottom * rng.gamma(3, 0.5, 60)
    low, high = paired_ratio_interval(top, bottom, 0.95)
    assert low < top.mean() / bottom.mean() < high
    for end in (low, high):
        assert p_of(top - end * bottom) == pytest.approx(0.05, abs=1e-6)
    tops = rng.binomial(3, (0.5, 0.2), (80, 2)).astype(float)
    bottoms = np.full((80, 2), 3.0)
    low, high = rate_contrast_interval(tops, bottoms, 0.95)
    for end in (low, high):
        values = contrast_values(tops, bottoms, end)
        assert p_of(values) == pytest.approx(0.05, abs=1e-6)
    a, b = tops.sum(axis=0) / bottoms.sum(axis=0)
    centre = contrast_values(tops, bottoms, (a - b) / (a + b))
    assert centre.mean() == pytest.approx(0, abs=1e-12)


def test_few_users_few_hits_and_no_spread_have_no_interval():
    few = np.arange(49.0)
    assert math.isnan(list_measures.user_mean_interval(few, 0.95)[0])
    assert math.isnan(list_measures.user_mean_interval(np.ones(50), 0.95)[0])
    values = UserValues({"PopLift": few}, few + 1)
    assert math.isnan(values.interval("PopLift", np.ones(49, np.bool_), 0.95)[0])
    tops = np.zeros((50, 2))
    tops[:, 0], tops[:9, 1] = 1, 1
    assert math.isnan(list_measures.parity_interval(tops, np.ones((50, 2)), 0.95)[0])
    noise = np.random.default_rng(0).normal(size=50)
    assert math.isnan(paired_ratio_interval(np.ones(50), noise, 0.95)[0])


def test_groups_by_taste_differ_without_any_cause_and_the_null_value_knows():
    """A generator that is no world: everybody has the same taste, and lists are samples of it."""
    rng = np.random.default_rng(5)
    users, items, size, k = 1500, 80, 8, 5
    appeal = 1 / np.arange(1, items + 1)
    train, run = [], {}
    for u in range(users):
        order = np.argsort(rng.exponential(size=items) / appeal)  # a sample without replacement
        chosen = rng.permutation(order[: size + k])
        train += [(u, int(i)) for i in chosen[:size]]
        run[u] = chosen[size:].tolist()
    columns = dict(zip(("user", "item"), zip(*train, strict=True), strict=True))
    test = {"user": list(range(users)), "item": [0] * users}
    result = us.bias.list_popularity(test, {"s": run}, train=columns, k=k)
    for measure in ("PercentileShift", "TailShift", "PopLift", "ExcessUPD"):
        whole = of(result, "s", measure)
        assert whole["low"] - 0.01 < 0 < whole["high"] + 0.01
        gap = gap_of(result, "s", measure, "niche", "blockbuster")
        half = (gap.high - gap.low) / 2
        assert abs(gap.value - gap.facts["null"]) < 1.5 * half, measure
    gap = gap_of(result, "s", "PercentileShift", "niche", "blockbuster")
    assert gap.low > 0.05  # far from 0, although no system did anything to anybody


# Settings and output


def test_other_groups_and_none(judged):
    alone = us.bias.list_popularity(judged, k=3, by=None)
    assert alone.card["groups"] == []
    assert alone.parts["gaps"].rows.is_empty()
    by = us.bias.list_popularity(judged, k=3, by="activity")
    assert "cold" in by.card["groups"]
    gaps = by.parts["gaps"].rows
    assert gaps["null"].null_count() == gaps.height
    assert json.loads(json.dumps(by.to_dict()))["card"]["k"] == 3
    popular = us.bias.list_popularity(judged, k=3, by="popularity")["UPD@3"].rows
    assert popular.filter(pl.col("group") != "all users")["null"].is_null().all()


def test_what_cannot_be_measured():
    test = {"user": [1, 2], "item": [1, 2], "rating": [5, 5]}
    with pytest.raises(us.DataError, match="give train="):
        us.bias.list_popularity(test, {"s": {1: [2]}}, liked=4)
    shop = us.world("shop", users=30, items=20, seed=1)
    (split,) = us.splits.Random(test=0.3).split(shop.ratings, seed=1)
    one = us.targets.OneRelevant(others=5).lists(split, liked=4)
    judged = us.judge(one, {"pop": us.recommend.Popularity().fit(split.train)})
    with pytest.raises(us.SettingError, match="one list per user"):
        us.bias.list_popularity(judged)
