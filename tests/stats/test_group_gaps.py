"""Group gaps: means, differences, ratios, worst group, inequality, permutation tests."""

import math

import numpy as np
import polars as pl
import pytest
import scipy.optimize
import scipy.stats

import unskew as us
from unskew.stats.inequality import atkinson, gini, group_atkinson, group_gini
from unskew.stats.intervals.skewed import (
    Means,
    differences,
    intervals,
    mean_of,
    means_of_sums,
    of_means,
    p_values_of,
    ratio_interval,
    sums_by_group,
)
from unskew.stats.tests import group_shuffles

RNG = np.random.default_rng(5)


def skewed(rng, size, share=0.4, scale=1.0):
    """Draw what a metric looks like: zeros, and a few large values."""
    return scale * np.where(rng.random(size) < share, np.exp(rng.normal(-2, 0.8, size)), 0.0)


def frame(values, groups):
    users = np.arange(len(values))
    return {"user": users, "mine": values}, {"user": users, "group": groups}


def single(values):
    return mean_of(values)


# Means and differences


def test_moments_are_those_of_scipy():
    x = skewed(RNG, 37)
    of = single(x)
    assert float(of.mean) == pytest.approx(x.mean(), rel=1e-12)
    assert float(of.variance) == pytest.approx(x.var(ddof=1) / 37, rel=1e-12)
    assert float(of.third) == pytest.approx(scipy.stats.kstat(x, 3) / 37**2, rel=1e-10)


def test_interval_of_a_mean_solves_halls_equation():
    x = skewed(RNG, 40)
    low, high = intervals(of_means(single(x)), 0.95)
    error = x.std(ddof=1) / math.sqrt(40)
    skew = scipy.stats.kstat(x, 3) / 40**2 / error**3

    def g(mean):
        t = (x.mean() - mean) / error
        return t + skew * (t * t / 3 + 1 / 6) + skew**2 * t**3 / 27

    t = scipy.stats.t.ppf(0.975, 39)
    assert float(low) == pytest.approx(scipy.optimize.brentq(lambda m: g(m) - t, -1, 1), abs=1e-10)
    assert float(high) == pytest.approx(scipy.optimize.brentq(lambda m: g(m) + t, -1, 2), abs=1e-10)


def test_without_skewness_it_is_welchs_test():
    x, y = np.arange(30.0), 10 + 3 * np.arange(21.0)  # symmetric: third moments are 0
    both = differences(single(x), single(y))
    expected = scipy.stats.ttest_ind(x, y, equal_var=False)
    assert float(p_values_of(both)) == pytest.approx(expected.pvalue, rel=1e-9)
    ends = expected.confidence_interval(0.99)
    assert [float(end) for end in intervals(both, 0.99)] == pytest.approx([ends.low, ends.high])


def test_interval_of_a_difference_holds_welchs_and_halls():
    x, y = skewed(RNG, 25), skewed(RNG, 300)
    both = differences(single(x), single(y))
    low, high = intervals(both, 0.95)
    welch = scipy.stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert low <= welch.low + 1e-12
    assert high >= welch.high - 1e-12
    assert max(welch.low - low, high - welch.high) > 1e-4
    # p and interval are of one test
    for end in (low, high):
        moved = Means(
            *(getattr(single(x), name) for name in ("count", "mean", "variance", "third"))
        )
        moved = Means(moved.count, moved.mean - end, moved.variance, moved.third)
        assert float(p_values_of(differences(moved, single(y)))) == pytest.approx(0.05, abs=1e-8)


# Ratios


def test_ratio_is_fiellers():
    """Of symmetric values and many users: the closed form with the normal quantile."""
    rng = np.random.default_rng(1)
    half = rng.normal(0, 1, (2, 4000))
    x, y = (
        np.concatenate([mean + one, mean - one]) for mean, one in zip((3, 2), half, strict=True)
    )
    low, high = ratio_interval(single(x), single(y), 0.95)
    z = scipy.stats.norm.ppf(0.975)
    vx, vy = (one.var(ddof=1) / one.size for one in (x, y))
    a, b, c = 2**2 - z * z * vy, -2 * 3 * 2, 3**2 - z * z * vx
    root = math.sqrt(b * b - 4 * a * c)
    assert [low, high] == pytest.approx([(-b - root) / 2 / a, (-b + root) / 2 / a], rel=1e-4)


def test_ratio_to_a_mean_near_zero_is_not_identified():
    rng = np.random.default_rng(2)
    x, y = skewed(rng, 60), np.where(np.arange(60) < 3, 0.2, 0.0)
    low, high = ratio_interval(single(x), single(y), 0.95)
    assert math.isnan(low)
    assert math.isinf(high)
    values, by = frame(
        np.concatenate([x, np.where(np.arange(60) < 5, 0.1, 0.0)]), ["a"] * 60 + ["b"] * 60
    )
    result = us.stats.group_gaps(values, by, against="b", level=0.999)
    ratio = result.row(group="a", quantity="ratio")
    assert (ratio.value, ratio.note) == (None, "not identified")
    assert result.where(quantity="ratio").table().height == 1
    assert "1 ratio is left out: the mean that divides may be 0 (not identified)" in str(result)


def test_ratio_of_values_below_zero_is_left_out():
    values, by = frame(RNG.normal(0, 1, 80), ["a", "b"] * 40)
    gaps = us.stats.group_gaps(values, by)
    assert gaps.where(quantity="ratio").rows["note"].to_list() == ["values below 0"] * 2
    assert gaps.where(quantity="ratio").rows["value"].null_count() == 2
    assert gaps.where(quantity="difference").rows["low"].null_count() == 0


# Inequality


def test_gini_and_atkinson_are_the_plain_formulas():
    x = skewed(RNG, 61) + 0.01
    n = x.size
    plain = sum(abs(a - b) for a in x for b in x) / (2 * n * (n - 1) * x.mean())
    assert gini(x[:49]).value == pytest.approx(
        np.abs(x[:49, None] - x[:49]).sum() / (2 * 49 * 48 * x[:49].mean())
    )
    logit = scipy.special.logit

    def jackknife(function, whole):
        each = np.array([logit(function(np.delete(x, i))) for i in range(n)])
        middle = n * logit(whole) - (n - 1) * each.mean()
        error = math.sqrt((n - 1) / n * ((each - each.mean()) ** 2).sum())
        half = scipy.stats.t.ppf(0.975, n - 1) * error
        return [float(scipy.special.expit(end)) for end in (middle - half, middle, middle + half)]

    def plain_gini(z):
        return np.abs(z[:, None] - z).sum() / (2 * z.size * (z.size - 1) * z.mean())

    def plain_atkinson(z):
        return 1 - np.mean(z**0.3) ** (1 / 0.3) / z.mean()

    of = gini(x)
    assert [of.low, of.value, of.high] == pytest.approx(jackknife(plain_gini, plain), rel=1e-8)
    of = atkinson(x, 0.7)
    expected = jackknife(plain_atkinson, plain_atkinson(x))
    assert [of.low, of.value, of.high] == pytest.approx(expected, rel=1e-8)


def test_inequality_of_hits_is_the_share_without_one():
    """Of 0 and 1 both are 1 - p; the Gini index is without the plug-in's bias n / (n - 1)."""
    x = np.repeat([0.0, 1.0], [30, 10])
    assert gini(x).value == pytest.approx(0.75 * 40 / 39)
    assert atkinson(x).value == pytest.approx(0.75)
    assert math.isnan(gini(x).low)  # 40 users
    assert math.isnan(gini(np.zeros(100)).value)
    assert gini(np.full(100, 0.3)).value == pytest.approx(0, abs=1e-12)


def test_inequality_across_groups():
    means, sizes = np.array([1.0, 4.0]), np.array([30.0, 10.0])
    x = np.repeat(means, sizes.astype(int))
    assert group_gini(means, sizes) == pytest.approx(
        np.abs(x[:, None] - x).sum() / (2 * 40**2 * x.mean())
    )
    assert group_atkinson(means, sizes, 0.5) == pytest.approx(
        1 - np.mean(np.sqrt(x)) ** 2 / x.mean()
    )
    assert float(group_gini(np.array([2.0, 2.0]), sizes)) == 0


# The permutation test


def test_permutation_p_is_that_of_plain_shuffles():
    rng = np.random.default_rng(8)
    x = np.concatenate([skewed(rng, 20), skewed(rng, 40) + 0.08])
    code = np.repeat([0, 1], [20, 40])

    def statistic(values):
        both = differences(single(values[code == 0]), single(values[code == 1]))
        t = both.value / both.error
        a = both.skewness
        return abs(t + a * (t * t / 3 + 1 / 6) + a * a * t**3 / 27)

    drawn = [statistic(rng.permutation(x)) for _ in range(3000)]
    plain = np.mean(np.array(drawn) >= statistic(x) - 1e-9)
    of = group_shuffles.shuffle_groups(x[:, None], code, 2, key=("test",))
    by_t = float(p_values_of(differences(single(x[code == 0]), single(x[code == 1]))))
    expected = max(plain, by_t)
    assert of.p[0, 0] == of.p[0, 1]
    assert abs(of.p[0, 0] - expected) < 4.5 * math.sqrt(0.25 / 3000)
    assert of.shuffles == 4999


def test_test_keeps_its_level_with_unequal_variances():
    """Equal means, variances 1 to 16, sizes 20 and 60: not more than 5 % but for chance."""
    rng = np.random.default_rng(3)
    code = np.repeat([0, 1], [20, 60])
    values = np.concatenate([4 * rng.normal(size=(20, 600)), rng.normal(size=(60, 600))])
    p = group_shuffles.shuffle_groups(values, code, 2, key=("test",)).p[:, 0]
    assert np.mean(p <= 0.05) < 0.05 + 4.5 * math.sqrt(0.05 * 0.95 / 600)
    assert np.mean(p <= 0.05) > 0.02


def test_level_and_coverage_on_skewed_values():
    """Zeros and lognormal values, 30 against 200 users: not one of our worlds."""
    rng = np.random.default_rng(4)
    code = np.repeat([0, 1], [30, 200])
    values = skewed(rng, (230, 800))
    of = means_of_sums(*sums_by_group(values, code, 2))
    low, high = intervals(differences(of.pick((slice(None), 0)), of.pick((slice(None), 1))), 0.95)
    cover = np.mean((low <= 0) & (high >= 0))
    assert abs(cover - 0.95) < 4.5 * math.sqrt(0.05 * 0.95 / 800)


# The result


def made(against="rest", **settings):
    rng = np.random.default_rng(6)
    groups = np.repeat(["a", "b", "c", "d"], [90, 60, 40, 8])
    share = np.repeat([0.5, 0.5, 0.15, 0.3], [90, 60, 40, 8])
    values = {"user": np.arange(198), "x": skewed(rng, 198, share), "y": skewed(rng, 198)}
    by = {"user": np.arange(198), "country": groups}
    return us.stats.group_gaps(values, by, against=against, least_users=1, **settings), values


def test_means_and_gaps_are_plain_means():
    result, values = made()
    rows = result.parts["means"].where(system="x").rows
    assert rows["n"].to_list() == [90, 60, 40, 8]
    assert rows["value"].to_list() == pytest.approx(
        [values["x"][low:high].mean() for low, high in ((0, 90), (90, 150), (150, 190), (190, 198))]
    )
    gap, ratio = (
        result.row(system="x", group="c", quantity=name) for name in ("difference", "ratio")
    )
    rest = np.delete(values["x"], np.arange(150, 190))
    assert gap.value == pytest.approx(values["x"][150:190].mean() - rest.mean())
    assert ratio.value == pytest.approx(values["x"][150:190].mean() / rest.mean())
    assert ratio.low < ratio.value < ratio.high
    assert (gap.n, gap.facts["n_against"]) == (40, 158)
    assert gap.facts["mean"] - gap.facts["mean_against"] == pytest.approx(gap.value)


def test_small_groups_have_no_interval_and_no_p():
    result, _ = made()
    small = result.where(group="d").rows
    assert small.select("low", "high", "p").null_count().sum_horizontal().item() == 12
    assert small.filter(quantity="ratio")["value"].null_count() == 2
    assert small["note"].to_list() == ["too few users"] * 4
    assert not small["significant"].any()
    assert "over 6 comparisons" in str(result)
    assert "no interval: fewer than 20 users" in str(result)


def test_worst_group_has_the_interval_of_the_lowest_true_mean():
    result, _ = made()
    row = result.parts["summary"].row(system="x")
    means = result.parts["means"].where(system="x").rows.filter(pl.col("group") != "d")
    assert row.facts["worst_group"] == "c"
    assert (row.value, row.low, row.high) == tuple(means[n].min() for n in ("value", "low", "high"))
    assert "c" in row.facts["may_be_worst"]
    lower = us.stats.group_gaps(
        us.stats.paired({"user": np.arange(198), "x": made()[1]["x"]}, better="lower"),
        {"user": np.arange(198), "country": np.repeat(["a", "b", "c"], [90, 60, 48])},
    )
    row, means = lower.parts["summary"].row(), lower.parts["means"].rows
    assert (row.value, row.low, row.high) == tuple(means[n].max() for n in ("value", "low", "high"))


def test_a_group_that_hardly_varies_may_be_the_worst():
    """It has the lowest mean and no interval: another group must not be called the worst."""
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.random(60), np.zeros(40)])
    values[-1] = 0.1
    groups = {"user": np.arange(100), "country": np.repeat(["a", "b"], [60, 40])}
    result = us.stats.group_gaps(us.stats.paired({"user": np.arange(100), "x": values}), groups)
    row = result.parts["summary"].row()
    assert result.parts["means"].rows["low"].null_count() == 1
    assert (row.value, row.facts["worst_group"], row.facts["may_be_worst"]) == (None, "", None)
    assert "not named where one of these has no interval" in str(result)


def test_every_pair_the_best_and_a_named_group():
    pairs, _ = made("pairs")
    every = pairs.where(quantity="difference").rows
    assert every.height == 12
    best, _ = made("best")
    assert set(best.rows["against_group"]) <= {"a", "b", "c", "d"}
    for row in best.where(quantity="difference").rows.iter_rows(named=True):
        assert row["value"] <= 0
        other = every.filter(
            pl.col("system") == row["system"],
            pl.col("group").is_in([row["group"], row["against_group"]]),
            pl.col("against_group").is_in([row["group"], row["against_group"]]),
        )
        assert other["p_corrected"].to_list() == [row["p_corrected"]]
        assert abs(other["value"].item()) == pytest.approx(-row["value"])
    named, _ = made("a")
    assert named.values_of("against_group") == ["a"]
    with pytest.raises(us.UnskewError, match="against"):
        made("nowhere")


def test_two_groups_are_one_comparison():
    rng = np.random.default_rng(9)
    values, by = frame(skewed(rng, 120), ["a", "b"] * 60)
    one = us.stats.group_gaps(values, by)
    other = us.stats.group_gaps(values, by, correction=None)
    assert one.rows["p_corrected"].to_list() == other.rows["p"].to_list()
    assert "over 1 comparison of" in str(one)


def test_row_order_and_threads_change_nothing():
    result, values = made(threads=1)
    order = np.random.default_rng(0).permutation(198)
    again = us.stats.group_gaps(
        {name: column[order] for name, column in values.items()},
        {"user": np.arange(198), "country": np.repeat(["a", "b", "c", "d"], [90, 60, 40, 8])},
        least_users=1,
        threads=2,
    )
    assert again.to_dict() == result.to_dict()


def test_folds_are_averaged_by_user():
    test = {"user": [1, 2, 3, 4], "item": [10] * 4, "rating": [5] * 4}
    first = us.evaluate(test, {"a": {1: [10], 2: [9], 3: [10], 4: [9]}}, "P@1", liked=4)
    less = {name: column[:2] for name, column in test.items()}
    second = us.evaluate(less, {"a": {1: [9, 10], 2: [9, 10]}}, "P@1", liked=4)
    by = {"user": [1, 2, 3, 4], "side": ["l", "l", "r", "r"]}
    result = us.stats.group_gaps([first, second], by, least_users=1)
    assert result.parts["means"].rows["value"].to_list() == [0.25, 0.5]


def test_judged_data_groups_by_activity_and_figure():
    judged = us.judge(
        {"user": np.repeat(np.arange(80), 3), "item": np.tile([1, 2, 3], 80), "rating": [5] * 240},
        {"a": {u: [1, 2, 9] for u in range(80)}},
        liked=4,
        train={
            "user": np.repeat(np.arange(80), 1 + np.arange(80) // 20),
            "item": np.concatenate([np.arange(1 + u // 20) + 20 for u in range(80)]),
            "rating": np.full(int((1 + np.arange(80) // 20).sum()), 4),
        },
    )
    result = us.stats.group_gaps(judged, "activity", "P@3")
    assert result.values_of("group") == ["1", "2", "3", "4"]
    gaps = result.where(quantity="difference").rows
    assert gaps["value"].to_list() == [0.0] * 4
    assert gaps["low"].to_list() == [None] * 4
    drawn = result.figure().spec["datasets"]["rows"]
    assert [row["group"] for row in drawn] == ["1", "2", "3", "4"]
    assert result.figure("gaps").title == "P@3: gaps between groups"
    assert [table.title for table in result.display_tables()] == [
        "P@3 (higher is better)",
        "P@3: gaps between groups",
        "P@3: the worst group, 80 users",
        "P@3: inequality",
    ]


@pytest.mark.parametrize(
    "wrong", [{"level": 1.0}, {"epsilon": 1.0}, {"correction": "x"}, {"against": "zz"}]
)
def test_wrong_settings_are_refused(wrong):
    values, by = frame(np.arange(60.0), ["a", "b"] * 30)
    with pytest.raises(us.UnskewError):
        us.stats.group_gaps(values, by, **wrong)
