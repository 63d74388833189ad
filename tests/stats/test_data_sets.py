"""Comparisons over data sets: oracles of every number, hand-worked cases, refusals."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import integrate, stats

import unskew as us
from unskew.errors import DataError, SettingError, UnknownName
from unskew.stats.compare.data_set_pairs import expanded_level
from unskew.stats.special import range_cdf
from unskew.stats.tests.classic import (
    critical_difference,
    friedman_test,
    nemenyi_p,
    ranks_of,
)
from unskew.stats.tests.posterior import heterogeneity, posterior


def values(rng, users, leads, level=0.3):
    """Return values per user of systems with these leads."""
    columns = {name: rng.normal(level + lead, 0.1, users) for name, lead in leads.items()}
    return {"user": np.arange(users), **columns}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    sizes = (40, 60, 200, 25, 90, 120, 80, 50)
    leads = {"a": 0.05, "b": 0.0, "c": -0.02}
    return {f"d{i}": values(rng, n, leads, rng.uniform(0.2, 0.5)) for i, n in enumerate(sizes)}


@pytest.fixture(scope="module")
def result(data):
    return us.stats.compare_data_sets(data, resamples=200)


def pairs_of(es, quantity="like_these"):
    """Return the row of each pair by its systems."""
    rows = es.where(quantity=quantity).rows
    return {
        (a, b): es.pair(a, b, quantity=quantity)
        for a, b in zip(rows["system"], rows["against"], strict=True)
    }


def by_system(es, column="value", part="ranks"):
    """Return a column of mean ranks by system, in the order of names."""
    rows = es.parts[part].rows
    return dict(sorted(zip(rows["system"], rows[column], strict=True)))


def rank_table(es):
    return (
        es.parts["by_data_set"]
        .rows.sort("system")
        .pivot("system", index="data_set", values="rank", maintain_order=True)
    )


# Ranks


@pytest.mark.parametrize(("systems", "count"), [(2, 6), (3, 4), (3, 9), (5, 4)])
def test_friedman_is_scipys(systems, count):
    rng = np.random.default_rng([systems, count])
    scores = rng.random((count, systems)).round(1)  # ties
    ranks = ranks_of(scores, "higher")
    np.testing.assert_array_equal(ranks, stats.rankdata(-scores, axis=1))
    test = friedman_test(ranks, 1000, 0)
    if systems > 2:
        assert test.statistic == pytest.approx(stats.friedmanchisquare(*scores.T).statistic)
    f = (count - 1) * test.statistic / (count * (systems - 1) - test.statistic)
    assert test.f == pytest.approx(f)
    p = stats.f.sf(f, systems - 1, (systems - 1) * (count - 1))
    assert test.p_f == pytest.approx(p)


@pytest.mark.parametrize("scores", [[[3, 2, 1], [3, 1, 2], [2, 3, 1]], [[1, 1, 2], [1, 2, 3]]])
def test_exact_p_counts_every_order(scores):
    ranks = ranks_of(np.array(scores, float), "higher")
    observed = ((ranks.sum(axis=0) - ranks.sum() / 3) ** 2).sum()
    every = [list(itertools.permutations(row)) for row in ranks]
    sums = [np.sum(rows, axis=0) for rows in itertools.product(*every)]
    as_much = [((one - one.mean()) ** 2).sum() >= observed - 1e-9 for one in sums]
    test = friedman_test(ranks, 10, 0)
    assert test.is_exact
    assert test.p == pytest.approx(np.mean(as_much))


def test_drawn_p_agrees_with_the_exact_one():
    from unskew.stats.tests.classic import _drawn_p, _exact_p, _spread

    ranks = ranks_of(np.random.default_rng(3).random((6, 4)), "higher")
    observed = float(_spread(ranks.sum(axis=0)[None])[0])
    exact = _exact_p(ranks, observed)
    drawn = _drawn_p(ranks, observed, 20_000, 0)
    assert abs(drawn - exact) < 4.5 * math.sqrt(exact * (1 - exact) / 20_000)
    assert drawn == _drawn_p(ranks, observed, 20_000, 0)


def test_friedman_of_equal_systems_and_of_one_order():
    same = friedman_test(np.full((3, 3), 2.0), 10, 0)
    assert (same.statistic, same.p, same.f) == (0.0, 1.0, None)
    order = friedman_test(np.tile([1.0, 2.0, 3.0], (4, 1)), 10, 0)
    assert order.f is None
    assert order.p == pytest.approx(1 / 6**3)
    many = friedman_test(np.tile(np.arange(1.0, 10.0), (3, 1)), 50, 0)
    assert (many.is_exact, many.permutations, many.p) == (False, 50, 1 / 51)


def test_ranks_of_lower_is_better_and_of_rounding():
    assert ranks_of(np.array([[0.1, 0.2, 0.3]]), "lower").tolist() == [[1, 2, 3]]
    assert ranks_of(np.array([[0.3, 0.1 + 0.2, 0.0]]), "higher").tolist() == [[1.5, 1.5, 3]]


def test_critical_difference_is_demsars():
    # Demšar (2006), table 5 (a): q at .05 for 2 to 10 classifiers; the example of section 3.2.2.
    printed = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)
    for systems, q in enumerate(printed, start=2):
        scale = math.sqrt(systems * (systems + 1) / 6)
        assert critical_difference(systems, 1, 0.05) / scale == pytest.approx(q, abs=1.1e-3)
    assert critical_difference(4, 14, 0.05) == pytest.approx(1.25, abs=5e-3)
    assert critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=5e-3)


@pytest.mark.parametrize(("width", "count"), [(0.5, 2), (3.3, 5), (4.5, 20), (9.0, 3)])
def test_range_is_scipys(width, count):
    expected = stats.studentized_range.cdf(width, count, 1e9)
    assert range_cdf(width, count) == pytest.approx(expected, abs=1e-9)
    critical = critical_difference(count, 7, 0.05)
    assert nemenyi_p(critical, count, 7) == pytest.approx(0.05, abs=1e-9)


# The two-level model

D, S = np.array([0.1, 0.3, -0.05, 0.2]), np.array([0.05, 0.1, 0.02, 0.2])


def test_heterogeneity_is_statsmodels():
    meta = pytest.importorskip("statsmodels.stats.meta_analysis")
    rng = np.random.default_rng(1)
    for count in (2, 3, 8):
        d, s = rng.normal(0, 0.2, count), rng.uniform(0.02, 0.1, count)
        expected = meta.combine_effects(d, s**2, method_re="iterated").tau2
        assert heterogeneity(d, s) ** 2 == pytest.approx(max(expected, 0), rel=1e-4, abs=1e-9)
    assert heterogeneity(np.array([0.1, 0.1]), np.array([0.1, 0.2])) == 0.0
    assert math.isnan(heterogeneity(np.array([0.1, 0.2]), np.array([0.0, 0.2])))


def plain_probability(d, s, limit, new):
    """Return P(> limit) by numerical integration over tau."""

    def parts(tau):
        variance = s**2 + tau**2
        weight = 1 / variance
        mean = (weight * d).sum() / weight.sum()
        fit = math.exp(-0.5 * (weight * (d - mean) ** 2).sum()) / math.sqrt(weight.sum())
        prior = math.sqrt(((tau / variance) ** 2).sum())
        scale = math.sqrt(1 / weight.sum() + (tau**2 if new else 0))
        return prior * fit / math.sqrt(variance.prod()), stats.norm.sf(limit, mean, scale)

    def integral(function):
        cuts = (0, 0.05, 0.5, 5, np.inf)
        return sum(
            integrate.quad(function, low, high, epsabs=0, limit=200)[0]
            for low, high in itertools.pairwise(cuts)
        )

    return integral(lambda tau: math.prod(parts(tau))) / integral(lambda tau: parts(tau)[0])


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("count", [2, 4])
def test_posterior_is_the_integral(new, count):
    belief = posterior(D[:count], S[:count])
    for limit in (-0.1, 0.0, 0.25):
        plain = plain_probability(D[:count], S[:count], limit, new)
        assert belief.above(limit, new=new) == pytest.approx(plain, abs=1e-6)
    for probability in (0.025, 0.5, 0.975):
        value = belief.quantile(probability, new=new)
        assert 1 - belief.above(value, new=new) == pytest.approx(probability, abs=1e-12)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_posterior_without_errors_is_students_t(count):
    d = D[:count]
    belief = posterior(d, np.full(count, 1e-7))
    expected = stats.t.ppf(0.975, count - 1, d.mean(), d.std(ddof=1) / math.sqrt(count))
    assert belief.quantile(0.975) == pytest.approx(expected, rel=1e-5)


def test_nothing_is_beyond_an_endless_limit():
    belief = posterior(D, np.full(len(D), 1e-3))
    assert [belief.above(limit) for limit in (1e308, -1e308)] == pytest.approx([0.0, 1.0])


def test_posterior_needs_errors():
    assert posterior(np.array([0.1]), np.array([0.1])) is None
    assert posterior(np.array([0.1, 0.2]), np.array([0.1, 0.0])) is None


# The comparison


def test_pairs_are_what_scipy_says(data, result):
    rows = pairs_of(result)
    d = {
        pair: np.array([(one[pair[0]] - one[pair[1]]).mean() for one in data.values()])
        for pair in rows
    }
    p = {pair: stats.wilcoxon(one).pvalue for pair, one in d.items()}
    for pair, row in rows.items():
        assert row.value == pytest.approx(d[pair].mean())
        interval = stats.ttest_1samp(d[pair], 0).confidence_interval(0.95)
        assert (row.low, row.high) == pytest.approx(tuple(interval))
        assert row.p == pytest.approx(p[pair])
        ahead = row.facts["ahead"], row.facts["ahead_against"]
        assert ahead == ((d[pair] > 0).sum(), (d[pair] < 0).sum())
        assert row.n == len(data)
        for_each = result.parts["differences"].where(system=pair[0], against=pair[1]).rows
        assert for_each["value"].to_list() == pytest.approx(d[pair].tolist())
    corrected = us.stats.correct([row.p for row in rows.values()])
    assert [row.p_corrected for row in rows.values()] == pytest.approx(corrected)
    signs = [stats.binomtest(int((one > 0).sum()), len(one)).pvalue for one in d.values()]
    p_sign = [row.facts["p_sign"] for row in rows.values()]
    assert p_sign == pytest.approx(us.stats.correct(signs))


def test_mean_on_these_data_sets_is_welchs(data, result):
    a = [one["a"] - one["b"] for one in data.values()]
    variance = np.array([one.var(ddof=1) / one.size for one in a])
    free = np.array([one.size - 1 for one in a])
    df = variance.sum() ** 2 / (variance**2 / free).sum()
    mean = np.mean([one.mean() for one in a])
    half = stats.t.ppf(0.975, df) * math.sqrt(variance.sum()) / len(a)
    row = result.pair("a", "b", quantity="these")
    assert (row.low, row.high) == pytest.approx((mean - half, mean + half))
    turned = result.pair("b", "a", quantity="these")
    assert (turned.low, turned.value) == (-row.high, -row.value)
    new, back = (result.pair(*pair, quantity="next") for pair in (("a", "b"), ("b", "a")))
    assert back.facts["p_better"] == new.facts["p_better_against"]
    assert back.facts["ahead"] == new.facts["ahead_against"]
    assert back.facts["tau"] == new.facts["tau"]


def test_each_data_set_has_a_t_interval(data, result):
    difference = data["d0"]["a"] - data["d0"]["b"]
    row = result.parts["differences"].pair("a", "b", data_set="d0")
    interval = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
    assert (row.low, row.high) == pytest.approx(tuple(interval))
    assert (row.n, row.se) == (40, pytest.approx(stats.sem(difference)))


@pytest.mark.parametrize("test", ["sign", "t", "nemenyi"])
def test_other_tests(data, result, test):
    other = us.stats.compare_data_sets(data, test=test, resamples=0)
    d = np.array([(one["a"] - one["b"]).mean() for one in data.values()])
    ranks = by_system(result)
    expected = {
        "sign": stats.binomtest(int((d > 0).sum()), d.size).pvalue,
        "t": stats.ttest_1samp(d, 0).pvalue,
        "nemenyi": 1 - stats.studentized_range.cdf(
            abs(ranks["a"] - ranks["b"]) * math.sqrt(2) / math.sqrt(3 * 4 / (6 * d.size)), 3, 1e9
        ),
    }  # fmt: skip
    assert other.pair("a", "b").p == pytest.approx(expected[test], abs=1e-8)
    assert other.parts["ranks"].rows["low"].null_count() == 3
    assert "95% CI" not in other.display_tables()[0].header


def test_means_and_ranks(data, result):
    rows = result.parts["by_data_set"].rows.sort("data_set", "system")
    means = [one[name].mean() for one in data.values() for name in "abc"]
    assert rows["value"].to_list() == pytest.approx(means)
    assert (
        rows["rank"].to_list()
        == stats.rankdata(-np.reshape(means, (-1, 3)), axis=1).ravel().tolist()
    )
    sizes = {name: len(one["user"]) for name, one in data.items()}
    assert result.card["data_sets"] == sizes
    assert rows["n"].to_list() == [size for size in sizes.values() for _ in "abc"]
    assert result.parts["ranks"].rows["system"][0] == "a"


def test_lower_is_better_turns_ranks_and_not_differences(data):
    flipped = {
        name: us.stats.paired({key: (v if key == "user" else -v) for key, v in one.items()},
                              better="lower")
        for name, one in data.items()
    }  # fmt: skip
    plain = us.stats.compare_data_sets(data, resamples=50)
    lower = us.stats.compare_data_sets(flipped, resamples=50)
    assert rank_table(plain).equals(rank_table(lower))
    assert by_system(plain, "low") == by_system(lower, "low")
    one, other = (es.pair("a", "b") for es in (plain, lower))
    assert other.value == pytest.approx(-one.value)
    assert one.p == pytest.approx(other.p)
    for name in ("ahead", "p_mean_better"):
        assert one.facts[name] == pytest.approx(other.facts[name])
    one, other = (es.pair("a", "b", quantity="next").facts for es in (plain, lower))
    assert one["p_better_against"] == pytest.approx(other["p_better_against"])


def test_rope_splits_the_probability(data):
    result = us.stats.compare_data_sets(data, rope=0.02, resamples=0)
    for start, quantity in (("p_mean_", "like_these"), ("p_", "next")):
        facts = result.pair("a", "b", quantity=quantity).facts
        total = sum(facts[f"{start}{end}"] for end in ("better", "equivalent", "better_against"))
        assert total == pytest.approx(1)
        assert 0 < facts[f"{start}equivalent"] < 1
    assert "P(equal)" in result.display_tables()[2].header
    without = us.stats.compare_data_sets(data, resamples=0)
    assert "p_equivalent" not in without.rows.columns


def test_rank_intervals_are_of_two_levels():
    """A plain twin draws data sets and users; quantiles agree up to the noise of both."""
    rng = np.random.default_rng(8)
    leads = {"a": 0.03, "b": 0.0, "c": 0.0}
    many = {str(i): values(rng, 30, leads) for i in range(12)}
    result = us.stats.compare_data_sets(many, resamples=4000)
    tables = [np.column_stack([one[name] for name in "abc"]) for one in many.values()]
    drawn = []
    for _ in range(4000):
        chosen = rng.integers(12, size=12)
        means = [tables[i][rng.integers(30, size=30)].mean(axis=0) for i in chosen]
        drawn.append(stats.rankdata(-np.array(means), axis=1).mean(axis=0))
    level = expanded_level(0.95, 12)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    np.testing.assert_allclose(list(by_system(result, "low").values()), low, atol=0.1)
    np.testing.assert_allclose(list(by_system(result, "high").values()), high, atol=0.1)
    assert expanded_level(0.95, 1) == 1.0


def test_same_bits_whatever_threads_and_row_order(data):
    turned = {
        name: {key: np.asarray(v)[::-1] for key, v in one.items()} for name, one in data.items()
    }
    one = us.stats.compare_data_sets(data, resamples=100, threads=1, seed=3)
    other = us.stats.compare_data_sets(turned, resamples=100, threads=2, seed=3)
    assert one.to_dict() == other.to_dict()
    assert str(one) == str(other)


def test_a_system_that_is_always_first_may_be_second_elsewhere(data):
    first = {name: {**one, "a": one["b"] + 1} for name, one in data.items()}
    result = us.stats.compare_data_sets(first, resamples=50)
    share = 1 - 0.025 ** (1 / 8)  # Clopper and Pearson's bound of 0 of 8
    assert stats.binomtest(0, 8).proportion_ci(0.95).high == pytest.approx(share)
    row = result.parts["ranks"].row(system="a")
    assert (row.low, row.high) == pytest.approx((1.0, 1 + 2 * share))


# What is said


def test_few_data_sets_say_nothing_about_others(data):
    two = us.stats.compare_data_sets({name: data[name] for name in ("d0", "d2")}, resamples=50)
    assert "nothing is concluded about other data sets" in str(two)
    assert "on most data sets" not in str(two)
    assert all(row.p >= 0.5 for row in pairs_of(two).values())
    assert "intervals of mean ranks need at least 5 data sets" in str(two)
    assert two.parts["ranks"].rows["low"].null_count() == 3


def test_sentences_follow_the_sign_test(result, data):
    sure = result.rows.filter((pl.col("p_sign") <= 0.05) & (pl.col("system") == "a"))
    said = [line for line in result.conclusion if line.startswith("on most data sets like these")]
    assert bool(said) == (sure.height > 0)
    ahead = us.stats.compare_data_sets(
        {name: {**one, "a": one["b"] + 0.1 + 0.01 * one["a"]} for name, one in data.items()},
        against="b", resamples=0,
    )  # fmt: skip
    text = str(ahead)
    assert "on most data sets like these, b is behind a (8 of 8)" in text
    assert "on the mean of these 8 data sets, b is behind a" in text


def test_equal_systems_are_said_to_be_nothing(data):
    same = {name: {**one, "b": one["a"], "c": one["a"]} for name, one in data.items()}
    result = us.stats.compare_data_sets(same, resamples=20)
    assert result.parts["friedman"].row().p == 1.0
    assert result.parts["ranks"].rows["letters"].to_list() == ["a", "a", "a"]
    assert all(row.p == 1 for row in pairs_of(result).values())
    new = pairs_of(result, "next")["a", "b"]
    assert (new.low, new.note) == (None, "a data set without a standard error above 0")
    assert new.note in str(result)
    assert "ahead of" not in "".join(result.conclusion)


def test_one_difference_for_all_users_is_no_proof():
    one = {"user": [1, 2], "a": [0.5, 0.5], "b": [0.25, 0.25]}
    result = us.stats.compare_data_sets({"x": one, "y": one}, resamples=10)
    assert result.pair("a", "b", quantity="these").p is None
    assert "on the mean of these" not in str(result)


# What is taken, and what is refused


def test_scores_results_and_folds():
    shop = us.world("shop", users=40, items=20, seed=3)
    systems = [us.recommend.Random(), us.recommend.Popularity()]
    plan = us.Plan(us.splits.Random(folds=2), algorithms=systems, metrics=["P@5", "nDCG@5"])
    results = us.run_plan(shop.ratings, plan)
    mapping = {"plan": results, "folds": results.scores(), "one": results.scores()[0]}
    with pytest.raises(SettingError, match="choose one metric"):
        us.stats.compare_data_sets(mapping)
    result = us.stats.compare_data_sets(mapping, "P@5", resamples=10)
    means = {name: result.parts["by_data_set"].where(data_set=name).rows for name in mapping}
    assert means["plan"]["value"].to_list() == means["folds"]["value"].to_list()


def test_missing_systems(data):
    lacking = {**data, "d1": {key: v for key, v in data["d1"].items() if key != "c"}}
    with pytest.raises(DataError, match=r"d1 lacks c.*missing='systems'"):
        us.stats.compare_data_sets(lacking)
    systems = us.stats.compare_data_sets(lacking, missing="systems", resamples=0)
    assert systems.systems == ["a", "b"]
    assert "1 system that a data set lacks left out: c" in systems.notes
    fewer = us.stats.compare_data_sets(lacking, missing="data-sets", resamples=0)
    assert "d1" not in fewer.card["data_sets"]
    assert "1 data set that lacks a system left out: d1" in fewer.notes
    with pytest.raises(DataError, match="at least 2 systems"):
        us.stats.compare_data_sets(
            {"x": {"user": [1], "a": [1.0]}, "y": {"user": [1], "b": [1.0]}}, missing="systems"
        )


def test_refusals(data):
    with pytest.raises(DataError, match="at least 2 data sets"):
        us.stats.compare_data_sets({"d0": data["d0"]})
    with pytest.raises(SettingError, match=r"data set 'd0'.*nDCG"):
        us.stats.compare_data_sets(data, "nDCG@10")
    with pytest.raises(UnknownName, match="against"):
        us.stats.compare_data_sets(data, against="z")
    with pytest.raises(SettingError, match="all pairs"):
        us.stats.compare_data_sets(data, against="a", test="nemenyi")
    with pytest.raises(DataError, match=r"data set 'bad'.*no user column"):
        us.stats.compare_data_sets({**data, "bad": {"x": [1.0]}})
    mixed = {**data, "d0": us.stats.paired(data["d0"], better="lower")}
    with pytest.raises(DataError, match="which direction is better differs"):
        us.stats.compare_data_sets(mixed)
    neither = {name: us.stats.paired(one, better="neither") for name, one in data.items()}
    with pytest.raises(SettingError, match="no better direction"):
        us.stats.compare_data_sets(neither)
    named = {"x": us.stats.paired(data["d0"], metric="P@5"), "y": data["d1"]}
    with pytest.raises(DataError, match="share no metric"):
        us.stats.compare_data_sets(named)


# Figures


def test_tables_of_ranks_means_and_differences(data, result):
    titles = [table.title for table in result.display_tables()]
    assert titles == [
        "value (higher is better), 8 data sets",
        "value: means by data set",
        "value: differences over data sets",
    ]
    ranks, means, pairs = result.display_tables()
    assert ranks.header == ["system", "mean rank", "95% CI", "mean", "letters"]
    assert means.header == ["system", *data]
    assert pairs.header[:8] == [
        *("a", "b", "a ahead", "b ahead", "data sets like these", "95% CI"),
        *("on these data sets", "a new data set"),
    ]
    assert pairs.frame.height == 3
    friedman = result.parts["friedman"].row()
    assert f"p = {friedman.p:.4f}" in str(result) or "p < 0.0001" in str(result)
    again = us.report.Estimates.from_dict(result.to_dict())
    assert str(again) == str(result)


def test_figures(data, result):
    rows = result.figure().spec["datasets"]["rows"]
    drawn = [row for row in rows if "value" in row]
    assert [row["value"] for row in drawn] == sorted(by_system(result).values())
    letters = result.parts["ranks"].rows["letters"].to_list()
    squares = [(row["system"], row["letter"]) for row in rows if "letter" in row]
    assert squares == [
        (row["system"], one) for row, text in zip(drawn, letters, strict=True) for one in text
    ]
    assert result.figure().to_svg().startswith("<svg")
    nemenyi = us.stats.compare_data_sets(data, test="nemenyi", resamples=0)
    critical = critical_difference(3, 8, 0.05)
    assert nemenyi.card["critical_difference"] == pytest.approx(critical)
    assert f"critical difference {critical:.2f}" in str(nemenyi.figure().spec["title"])
    by_set = result.figure("differences", system="a", against="b").spec["datasets"]["rows"]
    assert len(by_set) == len(data)
    assert by_set[0]["name"] == "d0 (40 users)"
    assert len(result.figure("pairs").spec["datasets"]["rows"]) == 3
    alone = us.stats.compare_data_sets(data, against="a", resamples=0)
    assert alone.parts["ranks"].rows["letters"].to_list() == [""] * 3
    rows = alone.figure().spec["datasets"]["rows"]
    assert not any("letter" in row for row in rows)
