"""Contrasts over designs and splits: closed forms, plain twins, and what must not matter."""

import json
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores, System
from unskew.report.estimates import Estimates
from unskew.stats.compare.contrasts import equivalent, users_for, winner
from unskew.stats.special import student_t_quantile

Z = 1.959963984540054


def scores_of(values, systems=None, metric="P@10", users=None, lists=None, **settings):
    """Make scores of users x systems without lists behind them."""
    values = np.asarray(values, float)
    systems = systems or [f"s{n}" for n in range(values.shape[1])]
    owner = np.arange(len(values)) if lists is None else np.asarray(lists)
    ids = np.arange(owner.max() + 1) if users is None else np.asarray(users)
    ones = np.ones(len(values), np.int64)
    frame = pl.DataFrame({"user": owner, "test": ones, "liked": ones, "disliked": ones})
    if "stratum" in settings:
        frame = frame.with_columns(stratum=pl.Series(settings.pop("stratum")))
    columns = {
        name: System(values=values[:, [n]].T.copy(), depth=ones) for n, name in enumerate(systems)
    }
    return Scores(
        labels=(metric,),
        systems=columns,
        user_ids=Ids(pl.Series(ids, dtype=pl.Int64)),
        lists=frame,
        order=(metric,),
        **settings,
    )


def normal_splits(seed, splits, users=60, systems=3, effect=0.0, between=1.0, within=0.5):
    """Draw values: a user's part that all splits share, and noise of each split."""
    rng = np.random.default_rng(seed)
    shared = between * rng.normal(size=(users, systems)) + effect * np.arange(systems)
    return [shared + within * rng.normal(size=(users, systems)) for _ in range(splits)]


def plain_se(splits, a, b, target):
    """Write the rule out for one value per user in every split."""
    d = np.array([split[:, a] - split[:, b] for split in splits])  # splits x users
    count, users = d.shape
    v_users = d.mean(axis=0).var(ddof=1) / users
    common = between = 0.0
    if target == "retrained":
        centred = d - d.mean(axis=1, keepdims=True)
        between = v_users / 4
        if count > 1:
            noise = centred.var(axis=0, ddof=1).sum() / users**2
            between = 0.75 * max(v_users - users / (users - 1) * noise / count, 0)
            spread = max(d.mean(axis=1).var(ddof=1) - noise, 0)
            common = (0.5 + 1 / count) * spread
    variance = v_users + between + common
    df = variance**2 / ((variance - common) ** 2 / (users - 1) + common**2 / max(count - 1, 1))
    return math.sqrt(variance) * student_t_quantile(0.975, float(math.floor(df + 1e-9))) / Z


@pytest.mark.parametrize("target", ["retrained", "lists"])
@pytest.mark.parametrize("splits", [1, 2, 5])
def test_plain_twin(target, splits):
    values = normal_splits(splits, splits, effect=0.2)
    result = us.stats.contrasts({"d": [scores_of(one) for one in values]}, "P@10", target=target)
    for a, b in combinations(range(3), 2):
        row = result.pair(f"s{a}", f"s{b}")
        expected = np.mean([one[:, a].mean() - one[:, b].mean() for one in values])
        assert row.value == pytest.approx(expected, abs=1e-14)
        assert row.se == pytest.approx(plain_se(values, a, b, target), rel=1e-10)
        assert (row.n, row.facts["splits"]) == (60, splits)
        width = row.facts["high_single"] - row.facts["low_single"]
        assert width == pytest.approx(2 * Z * row.se)


def test_lists_of_one_split_give_the_t_test():
    values = normal_splits(0, 1, users=30, systems=2, effect=0.3)[0]
    result = us.stats.contrasts({"d": [scores_of(values)]}, "P@10", target="lists")
    row = result.pair("s1", "s0")
    d = values[:, 1] - values[:, 0]
    half = student_t_quantile(0.975, 29) * d.std(ddof=1) / math.sqrt(30)
    assert row.facts["low_single"] == pytest.approx(d.mean() - half)
    assert row.facts["high_single"] == pytest.approx(d.mean() + half)
    compared = us.compare(scores_of(values), "P@10", test="t").table()
    assert row.facts["low_single"] == pytest.approx(-compared["high"][0])


def test_one_contrast_has_the_normal_critical_value():
    values = normal_splits(0, 1, systems=2)
    result = us.stats.contrasts({"d": [scores_of(values[0])]}, "P@10", resamples=20_000)
    assert Z <= result.card["critical"] < Z + 0.05


def test_independent_contrasts_have_the_critical_value_of_sidak():
    rng = np.random.default_rng(3)
    designs = {f"d{n}": [scores_of(rng.normal(size=(400, 2)))] for n in range(10)}
    result = us.stats.contrasts(designs, "P@10", target="lists", resamples=20_000)
    sidak = 2.7996  # the normal quantile of (1 + .95 ** .1) / 2
    assert result.card["critical"] == pytest.approx(sidak, abs=0.06)


def test_interval_and_p_agree():
    both = set()
    for seed in range(25):
        values = [normal_splits(10 * seed + n, 3, effect=0.13) for n in range(2)]
        designs = {f"d{n}": [scores_of(one) for one in of] for n, of in enumerate(values)}
        for level in (0.8, 0.95):
            result = us.stats.contrasts(designs, "P@10", level=level, resamples=2000)
            alpha = round(1 - level, 12)
            for row in result.rows.iter_rows(named=True):
                excludes = row["low"] > 0 or row["high"] < 0
                assert excludes == (row["p_corrected"] <= alpha) == row["significant"]
                assert row["low"] <= row["low_single"] <= row["high_single"] <= row["high"]
                assert row["p_corrected"] >= row["p"]
                # One-sided, "a is better than b", stated beforehand.
                p, value = row["p_corrected"], row["value"]
                one_sided = value - (row["equivalent_within"] - abs(value))
                assert (one_sided > 0) == ((p / 2 if value > 0 else 1 - p / 2) <= alpha)
                both.add(excludes)
    assert both == {True, False}


def test_estimated_errors_widen_simultaneous_intervals_only():
    designs = {"d": [scores_of(one) for one in normal_splits(21, 5)]}
    lists = us.stats.contrasts(designs, "P@10", target="lists")
    assert set(lists.rows["critical"]) == {lists.card["critical"]}
    few = us.stats.contrasts({"d": designs["d"][:2]}, "P@10")
    many = us.stats.contrasts(designs, "P@10")
    row = many.pair("s0", "s1")
    df = 18 * (1 - 1.2 / 5)
    share = NormalDist().cdf(many.card["critical"])
    expected = student_t_quantile(share, df) * Z / student_t_quantile(0.975, df)
    assert row.facts["critical"] == pytest.approx(expected, rel=1e-9)
    assert few.rows["critical"][0] > few.card["critical"] * 1.02


def test_a_repeated_split_changes_nothing():
    values = [scores_of(one) for one in normal_splits(4, 3)]
    once = us.stats.contrasts({"d": values}, "P@10")
    again = us.stats.contrasts({"d": [*values, values[1], values[1], values[0]]}, "P@10")
    assert again.rows.equals(once.rows)
    assert again.card == once.card
    assert once.notes == ()
    assert "3 of 6 splits repeat" in again.notes[0]


def test_order_of_designs_and_systems_does_not_matter():
    values = {"x": normal_splits(5, 3), "y": normal_splits(6, 2)}
    first = us.stats.contrasts({d: [scores_of(v) for v in of] for d, of in values.items()}, "P@10")
    turned = {
        d: [scores_of(v[:, [2, 0, 1]], ["s2", "s0", "s1"]) for v in values[d]] for d in ("y", "x")
    }
    second = us.stats.contrasts(turned, "P@10")
    assert second.values_of("design") == ["y", "x"]
    assert second.systems == ["s2", "s0", "s1"]
    for row in first.rows.iter_rows(named=True):
        pair = row["system"], row["against"]
        assert second.pair(*pair, design=row["design"]) == first.pair(*pair, design=row["design"])
        assert second.pair(*pair[::-1], design=row["design"]) == first.pair(
            *pair[::-1], design=row["design"]
        )
    assert first.card["critical"] == second.card["critical"]


def test_order_of_users_does_not_matter_and_users_may_differ_by_split():
    values = normal_splits(7, 2)
    kept = [np.arange(50), np.arange(10, 60)]
    parts = [scores_of(v[k], users=k) for v, k in zip(values, kept, strict=True)]
    row = us.stats.contrasts({"d": parts}, "P@10", target="lists").pair("s0", "s1")
    d = [(v[k][:, 0] - v[k][:, 1]) for v, k in zip(values, kept, strict=True)]
    assert row.value == pytest.approx(np.mean([one.mean() for one in d]))
    influence = np.zeros(60)
    for one, users in zip(d, kept, strict=True):
        influence[users] += (one - one.mean()) / 50 / 2
    assert row.n == 60
    factor = student_t_quantile(0.975, 59.0) / Z
    assert row.se == pytest.approx(factor * math.sqrt(60 / 59 * (influence**2).sum()))


def test_masks_choose_users():
    values = normal_splits(8, 2)
    mask = np.arange(60) % 3 > 0
    whole = us.stats.contrasts(
        {"d": [scores_of(one) for one in values]}, "P@10", users={"d": [mask, mask]}
    )
    part = us.stats.contrasts(
        {"d": [scores_of(one[mask], users=np.flatnonzero(mask)) for one in values]}, "P@10"
    )
    assert whole.rows["value"].to_list() == pytest.approx(part.rows["value"].to_list(), abs=1e-14)
    assert whole.rows["se"].to_list() == pytest.approx(part.rows["se"].to_list(), rel=1e-12)
    assert set(whole.rows["n"]) == set(part.rows["n"]) == {40}


@pytest.mark.parametrize("over", ["lists", "users", "strata"])
def test_several_lists_of_a_user_are_one(over):
    rng = np.random.default_rng(9)
    owner = rng.integers(0, 40, 300)
    owner[:40] = np.arange(40)
    stratum = rng.integers(0, 3, 300)
    values = rng.random((300, 2)) + 0.1 * rng.normal(size=40)[owner][:, None] * [1, 0]
    part = scores_of(values, lists=owner, over=over, stratum=stratum)
    row = us.stats.contrasts({"d": [part]}, "P@10", target="lists").pair("s0", "s1")
    means = part.mean("P@10")
    assert row.value == pytest.approx(means["s0"] - means["s1"], abs=1e-14)
    # The infinitesimal jackknife, by weights a little off 1.
    assert row.se == pytest.approx(
        student_t_quantile(0.975, 39.0)
        / Z
        * math.sqrt(40 / 39 * sum(x**2 for x in _jackknife(values, owner, stratum, over))),
        rel=1e-5,
    )


def _jackknife(values, owner, stratum, over):
    d = values[:, 0] - values[:, 1]

    def mean(weight):
        if over == "lists":
            return np.average(d, weights=weight[owner])
        if over == "users":
            each = np.array([d[owner == u].mean() for u in range(40)])
            return np.average(each, weights=weight)
        groups = [stratum == s for s in range(3)]
        return np.mean([np.average(d[g], weights=weight[owner][g]) for g in groups])

    for user in range(40):
        step = np.ones(40)
        step[user] += 1e-6
        yield (mean(step) - mean(np.ones(40))) / 1e-6


def test_undefined_values():
    values = normal_splits(10, 1)[0]
    holes = values.copy()
    holes[:7, 1] = np.nan
    skip = us.stats.contrasts({"d": [scores_of(holes, undefined="skip")]}, "P@10")
    left = us.stats.contrasts({"d": [scores_of(values[7:], users=np.arange(7, 60))]}, "P@10")
    assert skip.pair("s0", "s1").se == pytest.approx(left.pair("s0", "s1").se)
    zero = us.stats.contrasts({"d": [scores_of(holes)]}, "P@10")
    filled = us.stats.contrasts({"d": [scores_of(np.nan_to_num(holes))]}, "P@10")
    assert zero.rows.equals(filled.rows)


def test_lower_is_better():
    values = normal_splits(11, 2, effect=3.0)
    up = us.stats.contrasts({"d": [scores_of(one) for one in values]}, "P@10")
    down = us.stats.contrasts(
        {"d": [scores_of(one, metric="anti-P@10") for one in values]}, "anti-P@10"
    )
    assert (leader(up), winner(up, "d")) == ("s2", "s2")
    assert (leader(down), winner(down, "d")) == ("s0", "s0")
    row = down.pair("s0", "s2")
    assert row == replace(up.pair("s2", "s0"), keys=row.keys)
    assert down.parts["means"].rows["value"].equals(up.parts["means"].rows["value"])


def leader(result):
    return result.parts["means"].best.keys["system"]


def test_no_winner_without_significance():
    result = us.stats.contrasts({"d": [scores_of(normal_splits(12, 1)[0])]}, "P@10")
    assert leader(result) in result.systems
    assert winner(result, "d") is None


def test_identical_systems_and_constant_differences():
    one = np.random.default_rng(13).random(50)
    values = np.stack([one, one, one + 0.1, one / 2], axis=1)
    result = us.stats.contrasts({"d": [scores_of(values)]}, "P@10")
    same = result.pair("s0", "s1")
    assert (same.value, same.se, same.p_corrected, same.low, same.high) == (0, 0, 1, 0, 0)
    constant = result.pair("s2", "s0")
    assert constant.se == 0
    assert constant.value == pytest.approx(0.1)
    assert constant.low > 0
    assert constant.p_corrected == pytest.approx(1 / 5001)
    assert equivalent(result, "s0", "s1", 1e-9)
    assert users_for(result, "s0", "s1", 0.01) == 2


def test_identical_designs():
    values, other = normal_splits(14, 2), normal_splits(15, 2)
    designs = {
        "a": [scores_of(one) for one in values],
        "b": [scores_of(one) for one in other],
        "c": [scores_of(one) for one in values],
    }
    result = us.stats.contrasts(designs, "P@10")
    assert result.card["identical"] == (("a", "c"),)
    without = us.stats.contrasts({d: designs[d] for d in "ab"}, "P@10")
    assert without.card["identical"] == ()
    assert without.card["critical"] == pytest.approx(result.card["critical"], abs=1e-9)


def test_users_for_is_the_inverse_of_detectable():
    result = us.stats.contrasts({"d": [scores_of(one) for one in normal_splits(16, 3)]}, "P@10")
    row = result.pair("s0", "s1")
    detectable = row.facts["detectable"]
    assert detectable == pytest.approx((row.facts["critical"] + 0.8416212) * row.se, rel=1e-6)
    assert users_for(result, "s0", "s1", detectable) == row.n
    assert users_for(result, "s0", "s1", detectable / 2) == 4 * row.n
    # The observed difference plays no part.
    shifted = [one + np.array([5.0, 0, 0]) for one in normal_splits(16, 3)]
    other = us.stats.contrasts({"d": [scores_of(one) for one in shifted]}, "P@10")
    assert users_for(other, "s0", "s1", 0.1) == users_for(result, "s0", "s1", 0.1)


def test_many_users_are_drawn_in_blocks():
    values = normal_splits(17, 2, users=9000)
    result = us.stats.contrasts({"d": [scores_of(one) for one in values]}, "P@10", resamples=20_000)
    row = result.pair("s0", "s1")
    assert row.se == pytest.approx(plain_se(values, 0, 1, "retrained"), rel=1e-9)
    # Three pairs of three equal and independent systems: Tukey's range of 3 means by sqrt(2).
    assert result.card["critical"] == pytest.approx(3.3145 / math.sqrt(2), abs=0.05)


def test_equal_systems_are_told_apart_seldom():
    wrong = 0
    for seed in range(200):
        designs = {
            f"d{n}": [scores_of(one) for one in normal_splits((seed, n), 3, systems=4)]
            for n in range(2)
        }
        result = us.stats.contrasts(designs, "P@10", target="lists", resamples=2000, seed=seed)
        wrong += result.rows["p_corrected"].min() <= 0.05
    # 5 % of 200 and three standard deviations.
    assert wrong <= 19
    assert wrong >= 2


def test_equal_is_seldom_concluded_at_a_difference_of_a_margin():
    margin, concluded = 0.5, dict.fromkeys((0.0, 1.0, 1.2), 0)
    for seed in range(100):
        values = normal_splits((seed, 1), 2, users=150, systems=2, between=0.8)
        for true in concluded:
            parts = [scores_of(one + np.array([true * margin, 0])) for one in values]
            result = us.stats.contrasts({"d": parts}, "P@10", target="lists", resamples=2000)
            concluded[true] += equivalent(result, "s0", "s1", margin)
    assert concluded[1.0] <= 11  # 5 % of 100 and three standard deviations
    assert concluded[1.2] <= concluded[1.0]
    assert concluded[0.0] >= 60


def test_same_bits():
    designs = {"d": [scores_of(one) for one in normal_splits(18, 3, users=3000)]}
    first, second = (us.stats.contrasts(designs, "P@10", seed=3) for _ in range(2))
    assert first.rows.equals(second.rows)
    other = us.stats.contrasts(designs, "P@10", seed=4)
    assert other.card["critical"] != first.card["critical"]
    assert other.rows["se"].equals(first.rows["se"])


def test_text_and_plain_values():
    designs = {"d": [scores_of(one) for one in normal_splits(19, 3)]}
    result = us.stats.contrasts(designs, "P@10")
    assert "about the systems trained anew on new ratings of new users" in str(result)
    assert result.table().height == 3
    assert result.to_dict()["rows"][0]["design"] == "d"
    lists = us.stats.contrasts(designs, "P@10", target="lists")
    assert "these lists on new users" in str(lists)
    single = us.stats.contrasts({"d": designs["d"][:1]}, "P@10")
    assert "d: one split" in str(single)
    with pytest.raises(SettingError, match="needs more than resamples"):
        us.stats.contrasts(designs, "P@10", level=0.9999)
    low = us.stats.contrasts(designs, "P@10", level=0.4)
    with pytest.raises(SettingError, match=r"a level above 0\.5, got 0\.4"):
        equivalent(low, "s0", "s1", 0.1)
    again = Estimates.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again.pair("s2", "s0", design="d") == result.pair("s2", "s0", design="d")
    assert result.figure().to_svg().startswith("<svg")


def test_wrong_arguments():
    good = scores_of(normal_splits(20, 1)[0])
    with pytest.raises(SettingError, match="at least one design"):
        us.stats.contrasts({}, "P@10")
    with pytest.raises(SettingError, match="'d' are empty"):
        us.stats.contrasts({"d": []}, "P@10")
    with pytest.raises(SettingError, match="s9"):
        us.stats.contrasts({"d": [good]}, "P@10", systems=["s0", "s9"])
    with pytest.raises(DataError, match="at least 2 systems"):
        us.stats.contrasts({"d": [good]}, "P@10", systems=["s0"])
    other = scores_of(np.zeros((60, 2)))
    with pytest.raises(DataError, match="the same systems"):
        us.stats.contrasts({"d": [good, other]}, "P@10")
    assert us.stats.contrasts({"d": [good, other]}, "P@10", systems=["s0", "s1"]).rows.height
    with pytest.raises(SettingError, match="mask per split"):
        us.stats.contrasts({"d": [good]}, "P@10", users={"d": []})
    with pytest.raises(SettingError, match="must mark the 60 users"):
        us.stats.contrasts({"d": [good]}, "P@10", users={"d": [np.ones(3, bool)]})
    with pytest.raises(DataError, match="fewer than 2 users"):
        us.stats.contrasts({"d": [good]}, "P@10", users={"d": [np.zeros(60, bool)]})
    with pytest.raises(SettingError, match="resamples"):
        us.stats.contrasts({"d": [good]}, "P@10", resamples=100)
    with pytest.raises(SettingError, match="target"):
        us.stats.contrasts({"d": [good]}, "P@10", target="truth")
    result = us.stats.contrasts({"d": [good]}, "P@10")
    with pytest.raises(SettingError, match="design"):
        result.pair("s0", "s1", design="e")
    with pytest.raises(SettingError, match="margin"):
        equivalent(result, "s0", "s1", 0)
    with pytest.raises(SettingError, match="difference"):
        users_for(result, "s0", "s1", -0.1)


@pytest.mark.slow
def test_intervals_hold_their_targets_on_data_sets_drawn_anew(monkeypatch):
    """A part of `benchmarks/coverage_of_intervals.py`: systems trained in plain numpy."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import coverage_of_intervals as coverage

    setting = coverage.SETTINGS["sparse"]
    difference, se, critical = coverage.retrained(setting, 120, (5,), 3)[5]
    error = np.abs(difference - difference.mean(axis=0))
    # The standard error of the mean over data sets is about .01.
    assert 0.92 <= (error <= Z * se).mean() <= 0.985
    assert (error <= critical[:, None] * se).all(axis=1).mean() >= 0.9
    truth, difference, se, critical = coverage.same_lists(setting, 500, 3)
    error = np.abs(difference - truth)
    assert 0.93 <= (error <= Z * se).mean() <= 0.97
    assert 0.92 <= (error <= critical[:, None] * se).all(axis=1).mean() <= 0.98


def test_the_family_of_a_design_has_the_critical_value_of_its_pairs():
    rng = np.random.default_rng(3)
    designs = {f"d{n}": [scores_of(rng.normal(size=(400, 2)))] for n in range(10)}
    settings = {"target": "lists", "resamples": 20_000}
    alone = us.stats.contrasts(designs, "P@10", family="design", **settings)
    assert alone.card["critical"] == pytest.approx(Z, abs=0.05)
    for design, parts in designs.items():
        single = us.stats.contrasts({design: parts}, "P@10", **settings).pair("s0", "s1")
        assert alone.pair("s0", "s1", design=design).estimate == single.estimate
    everything = us.stats.contrasts(designs, "P@10", **settings)
    assert alone.pair("s0", "s1", design="d0").high < everything.pair("s0", "s1", design="d0").high
    with pytest.raises(SettingError, match="family"):
        us.stats.contrasts(designs, "P@10", family="pairs")
