"""Power: discriminative power as published, swap rate, users needed, errors of tests."""

import json
import math

import numpy as np
import polars as pl
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import unskew as us
from shared.real_data import real_data
from shared.scores import some_scores
from unskew import DataError, SettingError
from unskew.arrays import frozen
from unskew.cli.command import callback
from unskew.engine.rng import key_of
from unskew.stats import rank_kernels
from unskew.stats.discrimination import discriminative_power
from unskew.stats.distributions import wilson
from unskew.stats.null_errors import type_one_error
from unskew.stats.pairing import paired
from unskew.stats.power_analysis import power
from unskew.stats.sample_sizes import sample_size
from unskew.stats.significance import compare
from unskew.stats.swaps import swap_rate

WIDE = pl.DataFrame(
    {"a": ["x", "x", "y"], "b": ["y", "z", "z"], "P": [0.5, 0.0, 0.01], "RR": [0.04, 0.2, 0.05]}
)


@pytest.fixture(scope="module")
def scores():
    return some_scores(metrics=("P@3", "nDCG@5", "RR"))


# Discriminative power


def test_sums_medians_and_ratios():
    table = discriminative_power(WIDE).table()
    assert table.columns == ["metric", "DP", "median_p", "significant", "ratio", "pairs"]
    first, second = table.iter_rows(named=True)
    assert (first["DP"], first["median_p"], first["significant"]) == (0.51, 0.01, 2)
    assert second["DP"] == pytest.approx(0.29)
    assert second["ratio"] == pytest.approx(1 / 3)  # 0.05 is not below 0.05
    assert discriminative_power(WIDE, alpha=0.06).table()["significant"].to_list() == [2, 2]


def test_ordered_pairs_count_twice():
    once, twice = (discriminative_power(WIDE, ordered=ordered) for ordered in (False, True))
    assert twice.table()["DP"].to_list() == pytest.approx([2 * dp for dp in once.table()["DP"]])
    assert twice.table()["ratio"].equals(once.table()["ratio"])
    assert twice.table()["pairs"].to_list() == [6, 6]


def test_both_directions_are_two_estimates():
    turned = WIDE.select(pl.col("b").alias("a"), pl.col("a").alias("b"), pl.col("P") + 0.1, "RR")
    both = pl.concat([WIDE, turned])
    assert discriminative_power(both).table()["DP"].to_list() == pytest.approx([0.66, 0.29])
    ordered = discriminative_power(both, ordered=True)
    assert ordered.table()["DP"].to_list() == pytest.approx([1.32, 0.58])


def test_long_tables_and_comparisons(scores):
    long = WIDE.unpivot(["P", "RR"], index=["a", "b"], variable_name="metric", value_name="p")
    assert discriminative_power(long).table().equals(discriminative_power(WIDE).table())
    alone = long.filter(pl.col("metric") == "P").drop("metric")
    assert discriminative_power(alone).table()["DP"].to_list() == [0.51]
    found = compare(scores, ["P@3", "RR"], permutations=500, correction=None)
    table = discriminative_power(found).table()
    for metric, dp in table.select("metric", "DP").iter_rows():
        assert dp == pytest.approx(found.table(metric)["p"].sum())


def test_curves_fall():
    result = discriminative_power(WIDE)
    curves = result.curves()
    assert curves.filter(pl.col("metric") == "RR").rows() == [
        ("RR", 1, 0.2), ("RR", 2, 0.05), ("RR", 3, 0.04),
    ]  # fmt: skip
    assert len(result.figure().to_dict()["datasets"]["rows"]) == 6
    assert len(result.figure(["P"]).to_dict()["datasets"]["rows"]) == 3
    assert "sum of p over 3 unordered pairs" in str(result)
    assert "<table" in result._repr_html_()
    assert repr(result) == "DiscriminativePower(2 metrics, 3 pairs)"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (WIDE.head(2), "P: there is no p for y and z"),
        (pl.concat([WIDE, WIDE]), "occurs twice"),
        (WIDE.with_columns(P=2.0), "is not between 0 and 1: 2.0"),
        (WIDE.with_columns(P=math.nan), "is not between 0 and 1: nan"),
        (WIDE.with_columns(b=pl.lit("x")), "with itself"),
        (WIDE.with_columns(P=pl.lit("a")), "p-values must be numbers"),
        (WIDE.select("a", "b"), "two columns of systems"),
        (WIDE.head(0), "there are no p-values"),
        ([0.1, 0.2], "must be a table of pairs, a comparison of all, or scores; got list"),
    ],
)
def test_errors_of_pvalues(change, text):
    with pytest.raises((DataError, SettingError), match=text):
        discriminative_power(change)


SEVEN = ("set_P", "set_recall", "map", "ndcg", "recip_rank", "bpref", "infAP2")


@pytest.mark.real
def test_dp_of_valcarce2018():
    """Table 3 sums over 420 ordered pairs; over unordered pairs DP is half of it."""
    released = pl.read_csv(real_data("published/valcarce2018_ml-1m_pvalues.csv"))
    seven = released.select("RunA", "RunB", *SEVEN)
    ordered = discriminative_power(seven, ordered=True)
    table = ordered.table()
    assert [f"{dp:.1f}" for dp in table["DP"]] == ["2.6", "7.0", "2.8", "1.4", "15.5", "9.9", "8.4"]
    assert table["pairs"].to_list() == [420] * 7
    ratio = dict(table.select("metric", "ratio").iter_rows())
    assert (round(ratio["ndcg"], 3), round(ratio["recip_rank"], 3)) == (0.983, 0.919)
    halves = discriminative_power(seven).table()["DP"].to_list()
    assert halves == pytest.approx([1.28, 3.51, 1.41, 0.68, 7.75, 4.93, 4.21], abs=0.015)
    # Figure 4: cutoffs of nDCG from 50 on tell systems apart better than those up to 20.
    cutoffs = discriminative_power(
        released.select("RunA", "RunB", *(f"ndcg_cut_{k}" for k in (5, 10, 20, 50, 60, 80, 100)))
    )
    dp = cutoffs.table()["DP"].to_list()
    assert np.mean(dp[3:]) < np.mean(dp[:3])


# Swap rate


def test_swap_rate_is_that_of_a_plain_loop(scores):
    result = swap_rate(scores, "P@3", samples=30, bins=4, seed=2)
    values = paired(scores).matrix("P@3")
    people, systems = values.shape
    halves = np.empty((30, people))
    rank_kernels.part(
        np.uint64(key_of(2, "halves")), frozen(np.arange(30)),
        frozen(np.full(30, people // 2)), halves,
    )  # fmt: skip
    pairs = [(i, j) for i in range(systems) for j in range(i + 1, systems)]
    means = values.mean(axis=0)
    width = max(abs(means[i] - means[j]) for i, j in pairs) / 4
    comparisons, swaps, ties = [0] * 4, [0] * 4, 0
    for half in halves.astype(bool):
        assert half.sum() == people // 2
        one, other = values[half].mean(axis=0), values[~half].mean(axis=0)
        for i, j in pairs:
            first, second = np.round([one[i] - one[j], other[i] - other[j]], 12)
            if first == 0:
                ties += 1
                continue
            place = min(int(abs(first) / width), 3)
            comparisons[place] += 1
            swaps[place] += first * second < 0
    assert result.comparisons[0].tolist() == comparisons
    assert result.swaps[0].tolist() == swaps
    assert result.ties.tolist() == [ties]
    row = result.table().row(0, named=True)
    assert row["swap_rate"] == pytest.approx(sum(swaps) / sum(comparisons))


def test_the_safe_difference():
    """From there on no bin swaps more often than the limit; empty bins do not matter."""
    from unskew.stats.swaps import SwapRate

    edges = np.array([[0.0, 0.1, 0.2, 0.3]])
    comparisons, swaps = np.array([[100, 100, 0, 100]]), np.array([[30, 4, 0, 1]])
    gaps = np.array([[0.05, 0.15, 0.4]])
    result = SwapRate(("P",), ("a", "b"), edges, comparisons, swaps, np.array([0]), gaps, 10, 100)
    row = result.table().row(0, named=True)
    assert (row["difference"], row["relative"]) == (0.1, 0.25)
    assert row["decided"] == pytest.approx(2 / 3)
    never = SwapRate(("P",), ("a", "b"), edges, comparisons, comparisons, np.array([0]), gaps, 4, 1)
    assert never.table().row(0, named=True)["difference"] is None


def test_swap_rate_of_what_is_clear_and_of_noise():
    clear = some_scores(users=400, systems=2, metrics=("P@3",))
    values = {name: system.values for name, system in clear.systems.items()}
    rate = swap_rate(clear, samples=200).table()["swap_rate"][0]
    assert rate < 0.2
    assert values["s0"].mean() < values["s1"].mean()


def test_swap_rate_prints_and_draws(scores):
    result = swap_rate(scores, samples=20)
    assert result.curves().height == 3 * 20
    assert "20 random halves of 120 users" in str(result)
    assert "<table" in result._repr_html_()
    assert repr(result) == "SwapRate(3 metrics, 5 systems)"
    assert result.figure(["RR"]).to_dict()["title"]["text"] == "Swap rate"


def test_swap_rate_same_bits_for_any_threads(scores):
    one, two = (swap_rate(scores, samples=50, threads=threads) for threads in (1, 2))
    assert one.swaps.tobytes() == two.swaps.tobytes()
    assert one.comparisons.tobytes() == two.comparisons.tobytes()


def test_equal_systems_never_swap():
    test = {"user": list(range(8)), "item": [1] * 8, "rating": [5] * 8}
    runs = {"a": {u: [1] for u in range(8)}, "b": {u: [1] for u in range(8)}}
    row = swap_rate(us.evaluate(test, runs, "P@1", liked=4), samples=5).table().row(0, named=True)
    assert (row["swap_rate"], row["ties"], row["difference"]) == (None, 1.0, None)


# Users needed


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("wanted", [0.8, 0.95])
def test_users_needed_are_statsmodels(scores, alpha, wanted):
    statsmodels = pytest.importorskip("statsmodels.stats.power")
    solve = statsmodels.TTestPower()
    result = sample_size(scores, "P@3", difference=0.05, power=wanted, alpha=alpha)
    table = result.pair_table()
    for row in table.iter_rows(named=True):
        users = solve.solve_power(0.05 / row["sd"], power=wanted, alpha=alpha)
        assert row["needed"] == pytest.approx(math.ceil(users), abs=1 + 0.003 * users)
        effect = solve.solve_power(nobs=row["users"], power=wanted, alpha=alpha)
        assert row["detectable"] == pytest.approx(effect * row["sd"], rel=0.003)
        reached = solve.power(abs(row["effect"]), row["users"], alpha)
        if not math.isnan(reached):  # SciPy's noncentral t gives up on large effects
            assert row["power"] == pytest.approx(reached, abs=0.004)


def test_sample_size_from_the_paired_differences(scores):
    result = sample_size(scores, ["P@3", "RR"])
    values = paired(scores).matrix("RR")
    row = result.pair_table().filter((pl.col("metric") == "RR") & (pl.col("b") == "s2"))
    row = row.row(0, named=True)
    gap = values[:, 0] - values[:, 2]
    assert (row["a"], row["users"]) == ("s0", 120)
    assert row["difference"] == pytest.approx(gap.mean())
    assert row["sd"] == pytest.approx(gap.std(ddof=1))
    assert row["effect"] == pytest.approx(gap.mean() / gap.std(ddof=1))
    # With as many users as are needed for a difference, just this difference is detectable.
    again = sample_size(scores, "RR", difference=row["detectable"]).pair_table()
    assert again.filter(pl.col("b") == "s2")["needed"][0] in (120, 121)
    table = result.table()
    assert table.columns == [
        "metric", "users", "sd", "detectable", "hardest", "powered", "needed",
    ]  # fmt: skip
    assert (table["detectable"] <= table["hardest"]).all()


def test_bonferroni_needs_more(scores):
    plain, shared = (
        sample_size(scores, "RR", correction=correction) for correction in ("none", "bonferroni")
    )
    assert (shared.detectable() > plain.detectable()).all()
    assert shared.tests == 10
    assert "alpha 0.05 / 10 (Bonferroni)" in str(shared)
    stricter = sample_size(scores, "RR", alpha=0.005)
    assert shared.detectable() == pytest.approx(stricter.detectable())


def test_no_difference_needs_no_number_of_users():
    test = {"user": list(range(8)), "item": [1] * 8, "rating": [5] * 8}
    runs = {
        "a": {u: [1] for u in range(8)},
        "b": {u: [1] for u in range(8)},
        "c": {u: [2, 1] for u in range(8)},
    }
    table = sample_size(us.evaluate(test, runs, "P@1", liked=4)).pair_table()
    rows = {(row["a"], row["b"]): row for row in table.iter_rows(named=True)}
    same = rows["a", "b"]
    assert (same["needed"], same["detectable"], same["effect"]) == (None, 0.0, 0.0)
    assert same["power"] == pytest.approx(0.05)
    sure = rows["a", "c"]
    assert (sure["needed"], sure["power"], sure["effect"]) == (2, 1.0, math.inf)


def test_errors_of_sample_size(scores):
    few = some_scores(users=3, metrics=("RR",))
    with pytest.raises(DataError, match="RR: 3 users are too few"):
        sample_size(few, alpha=0.0001)
    with pytest.raises(DataError, match="at least 4 users, got 3"):
        swap_rate(few)
    with pytest.raises(DataError, match=r"at least 2 systems, got 1 \(s0\)"):
        sample_size(some_scores(systems=1))
    for change, text in (
        ({"difference": 0}, "difference must be a finite number above 0, got 0"),
        ({"difference": -0.1}, "difference must be a finite number above 0, got -0.1"),
        ({"difference": math.nan}, "difference must be a finite number above 0, got nan"),
        ({"difference": math.inf}, "difference must be a finite number above 0, got inf"),
        ({"difference": "0.1"}, "difference must be a number or None, got '0.1'"),
        ({"power": 1.5}, "power must lie between 0 and 1"),
        ({"power": math.nan}, "power must lie between 0 and 1, got nan"),
        ({"power": "high"}, "power must be a number, got 'high'"),
        ({"alpha": 0}, "alpha must lie between 0 and 1"),
        ({"alpha": math.nan}, "alpha must lie between 0 and 1, got nan"),
        ({"power": 0.01}, r"power must be above alpha \(0.05\), got 0.01: a test of this level"),
        ({"power": 0.05}, r"power must be above alpha \(0.05\), got 0.05"),
        ({"alpha": 0.9}, r"power must be above alpha \(0.9\), got 0.8"),
        ({"correction": "holm"}, "unknown correction 'holm'"),
        ({"metrics": []}, "no metrics are named"),
    ):
        with pytest.raises(SettingError, match=text):
            sample_size(scores, **change)
        if "correction" not in change and change.get("metrics") is None:
            with pytest.raises(SettingError, match=text):
                power(scores, test="t", samples=0, **change)


@given(alpha=st.floats(1e-6, 0.999), above=st.floats(1e-6, 0.999), shared=st.booleans())
def test_whatever_power_is_allowed_the_difference_is_positive(scores, alpha, above, shared):
    wanted = alpha + above * (1 - alpha)
    if not alpha < wanted < 1:
        return
    correction = "bonferroni" if shared else "none"
    result = sample_size(scores, "RR", power=wanted, alpha=alpha, correction=correction)
    assert (result.detectable() > 0).all()


# Errors of tests


def test_wilson_is_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for found, count in ((0, 10), (3, 40), (51, 1000), (10, 10)):
        want = proportion.proportion_confint(found, count, method="wilson")
        assert wilson(found, count) == pytest.approx(want)


@pytest.mark.parametrize("null", ["signs", "labels"])
def test_tests_see_differences_without_any(scores, null):
    """A test of one's own gets users x simulations whose mean is 0 on average."""
    seen = []

    def own(gaps):
        seen.append(gaps)
        return np.full(gaps.shape[1], 0.5)

    result = type_one_error(scores, "RR", tests={"own": own}, null=null, simulations=120, threads=1)
    assert [gaps.shape for gaps in seen] == [(120, 50), (120, 50), (120, 20)]
    gaps = np.concatenate(seen, axis=1)
    error = gaps.std() / math.sqrt(gaps.size)
    assert abs(gaps.mean()) < 4.5 * error
    assert result.p[null]["own"].tolist() == [0.5] * 120
    assert result.table()["verdict"].to_list() == ["below its level"]
    if null == "signs":  # the sizes of the differences are those of a pair of systems
        values = paired(scores).matrix("RR")
        sizes = {
            tuple(np.round(np.abs(values[:, i] - values[:, j]), 12).tolist())
            for i in range(5)
            for j in range(i)
        }
        assert all(tuple(np.round(np.abs(gap), 12).tolist()) in sizes for gap in gaps.T)


def test_p_values_are_scipys(scores):
    stats = pytest.importorskip("scipy.stats")
    kept = []

    def scipys(gaps):
        kept.append(gaps)
        return stats.ttest_1samp(gaps, 0).pvalue

    settings = {"simulations": 60, "seed": 4, "threads": 1, "null": "signs"}
    want = type_one_error(scores, "nDCG@5", tests={"t": scipys}, **settings)
    got = type_one_error(scores, "nDCG@5", tests=["t", "wilcoxon", "sign"], **settings)
    got, want = got.p["signs"], want.p["signs"]
    assert got["t"] == pytest.approx(want["t"])
    gaps = np.concatenate(kept, axis=1)
    positive, apart = (gaps > 0).sum(axis=0), (gaps != 0).sum(axis=0)
    signs = [stats.binomtest(int(k), int(n)).pvalue for k, n in zip(positive, apart, strict=True)]
    assert got["sign"] == pytest.approx(signs)
    ranks = stats.wilcoxon(gaps, axis=0, correction=False, method="asymptotic").pvalue
    assert got["wilcoxon"] == pytest.approx(ranks, abs=0.01)


def test_same_bits_and_fewer_users(scores):
    settings = {"simulations": 110, "permutations": 99, "seed": 1}
    one, two = (type_one_error(scores, "RR", threads=t, **settings) for t in (1, 2))
    for null, tests in one.p.items():
        for name, p in tests.items():
            assert p.tobytes() == two.p[null][name].tobytes()
        assert (tests["randomisation"] >= 1 / 100).all()
        alone = type_one_error(scores, "RR", tests="t", null=null, **settings)
        assert alone.p[null]["t"].tobytes() == tests["t"].tobytes()
    few = type_one_error(scores, "RR", tests="t", users=10, simulations=20)
    assert few.users == 10
    assert "RR, 10 users" in str(few)
    assert len(few.figure().to_dict()["datasets"]["rows"]) == 3 * 101
    assert "<table" in few._repr_html_()
    assert repr(few) == "TypeOneError('RR', nulls signs, labels, centred, tests t)"


def test_errors_of_type_one_error(scores):
    for change, text in (
        ({"tests": "student"}, "unknown test 'student'"),
        ({"tests": []}, "no tests"),
        ({"tests": {}}, "no tests"),
        ({"null": "shuffle"}, "unknown null"),
        ({"null": ["signs", "shuffle"]}, "unknown null 'shuffle'"),
        ({"null": []}, "no null is named: one or several of signs, labels, centred"),
        ({"users": 1}, "users must be a whole number from 2 up"),
        ({"simulations": 0}, "simulations must be a whole number from 1 up"),
        ({"metric": "AP"}, "unknown metric of these scores"),
    ):
        settings = {"metric": "RR", **change}
        with pytest.raises(SettingError, match=text):
            type_one_error(scores, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("null", ["signs", "labels"])
def test_tests_keep_their_level(scores, null):
    """Of exact tests no more than alpha of the p-values lie at or below alpha, at any alpha."""
    result = type_one_error(scores, "nDCG@5", null=null, simulations=4_000, permutations=999)
    for level in (0.01, 0.05, 0.1, 0.5):
        error = math.sqrt(level * (1 - level) / 4_000)
        for name, p in result.p[null].items():
            rate = (p <= level).mean()
            slack = 0.003 if name in ("t", "wilcoxon") else 0.0  # right for many users only
            assert rate < level + slack + 4.5 * error, (name, level)
            if name != "sign":
                assert rate > level - slack - 4.5 * error, (name, level)


def skewed(users=200):
    """Exponential values per user whose differences are far from symmetric."""
    rng = np.random.default_rng(3)
    sizes = {"small": 0.01, "middle": 1.0, "large": 100.0}
    return {
        "user": np.arange(users),
        **{name: size * rng.exponential(size=users) for name, size in sizes.items()},
    }


def test_symmetric_nulls_cannot_fail_and_centred_ones_can():
    """Of exponential differences with mean 0 the median is far from 0: sign and Wilcoxon reject."""
    result = type_one_error(skewed(), "value", simulations=400, permutations=199, seed=5)
    verdicts = {
        (null, test): verdict
        for null, test, verdict in result.table().select("null", "test", "verdict").iter_rows()
    }
    assert len(verdicts) == 12
    for (null, test), verdict in verdicts.items():
        fails = null == "centred" and test in ("wilcoxon", "sign")
        assert (verdict == "does not hold its level") == fails, (null, test)
    rate = {row["test"]: row["rate"] for row in result.table().to_dicts()[-4:]}
    assert rate["sign"] > 0.9  # 126 of 200 below the mean of an exponential variable on average
    assert rate["wilcoxon"] > 0.5
    assert rate["t"] < 0.1
    assert "wilcoxon and sign test symmetry (sign: the median), not the mean" in str(result)
    alone = type_one_error(skewed(), "value", tests="t", simulations=20)
    assert "wilcoxon" not in str(alone)


def test_centred_differences_have_mean_zero_and_the_shape_of_the_data(scores):
    kept = []

    def keep(gaps):
        kept.append(gaps)
        return np.full(gaps.shape[1], 0.5)

    type_one_error(scores, "RR", tests={"own": keep}, null="centred", simulations=200, threads=1)
    values = paired(scores).matrix("RR")
    shapes = [
        set(np.round(gap - gap.mean(), 10).tolist())
        for i in range(5)
        for j in range(5)
        if i != j
        for gap in [values[:, i] - values[:, j]]
    ]
    gaps = np.concatenate(kept, axis=1)
    assert abs(gaps.mean()) < 4.5 * gaps.std() / math.sqrt(gaps.size)
    for gap in gaps.T:
        assert any(set(np.round(gap, 10).tolist()) <= shape for shape in shapes)


def test_equal_differences_leave_nothing_when_centred():
    """What rounding leaves of a constant difference is no difference."""
    from unskew.stats.null_errors import _centred

    assert _centred(np.full(7, 0.1) + np.full(7, 0.2)).tolist() == [0.0] * 7
    assert _centred(np.array([0.0, 0.3])).tolist() == [-0.15, 0.15]


# All of it


def test_power_puts_it_together(scores):
    result = power(scores, permutations=500, samples=20, difference=0.1, seed=3)
    table = result.table()
    assert table.columns == [
        "metric", "DP", "median_p", "ratio", "swap_rate", "safe_difference", "users", "detectable",
        "needed",
    ]  # fmt: skip
    assert table["DP"].is_sorted()
    found = compare(scores, permutations=500, seed=3, correction=None)
    for metric, dp in table.select("metric", "DP").iter_rows():
        assert dp == pytest.approx(found.table(metric)["p"].sum())
    swaps = swap_rate(scores, samples=20, seed=3).table()
    assert dict(table.select("metric", "swap_rate").iter_rows()) == dict(
        swaps.select("metric", "swap_rate").iter_rows()
    )
    without = power(scores, "RR", test="t", samples=0)
    assert "swap_rate" not in without.table().columns
    assert without.table()["metric"].to_list() == ["RR"]
    assert "DP: sum of p over 10 unordered pairs" in str(result)
    assert "<table" in result._repr_html_()
    assert repr(result) == "Power(3 metrics, 10 pairs)"
    assert len(result.figure().to_dict()["datasets"]["rows"]) == 30


def test_folds_are_one_value_per_user(scores):
    """The same user in two folds is one user."""
    several = sample_size([scores, scores], "RR").pair_table()
    assert several.equals(sample_size(scores, "RR").pair_table())


# The command

app = typer.Typer()
app.command()(callback("power"))


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def saved(scores, tmp_path_factory):
    home = tmp_path_factory.mktemp("power") / "saved"
    scores.save(home)
    return home


def test_command_on_saved_scores(saved, scores, tmp_path):
    figure = tmp_path / "curves.json"
    done = call(
        "--scores", saved, "--test", "t", "--samples", 10, "--format", "json", "--figure", figure
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == power(scores, test="t", samples=10).table().to_dicts()
    assert json.loads(figure.read_text())["title"]["text"] == "p-value curves"
    pairs = call("--scores", saved, "-m", "RR", "--test", "t", "--pairs", "--format", "csv")
    assert len(pairs.stdout.splitlines()) == 11
    folds = call("--scores", saved, "--scores", saved, "-m", "RR", "--test", "t", "--samples", 0)
    assert folds.exit_code == 0, folds.output
    assert "DP: sum of p" in folds.stdout


def test_command_on_runs(tmp_path):
    test = pl.DataFrame(
        {"user": [1, 1, 2, 3, 4], "item": [1, 2, 1, 2, 3], "rating": [5, 2, 4, 5, 4]}
    )
    test.write_csv(tmp_path / "test.csv")
    for name, first in (("a", 1), ("b", 2)):
        lists = {u: [first, 3] for u in (1, 2, 3, 4)}
        us.read_run(lists).to_csv(tmp_path / f"{name}.csv")
    done = call(
        "-j", tmp_path / "test.csv", "-r", tmp_path / "a.csv", "-r", tmp_path / "b.csv", "-m",
        "P@1,RR", "--liked", 4, "--permutations", 100, "--format", "markdown", "-q",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("| metric | DP |")


def test_command_on_errors_of_tests(saved):
    done = call("--scores", saved, "-m", "RR", "--errors", "--simulations", 20, "--format", "csv")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("null,test,alpha,simulations")
    problem = call("--scores", saved, "--errors").exception
    assert "--errors takes one metric" in str(problem)


def test_help_has_examples():
    assert "unskew power" in call("--help").stdout


def test_swap_rate_of_systems_with_equal_means():
    """One leads for some users by what it loses for the others: every half may say otherwise."""
    test = {"user": [*range(8)], "item": ["x"] * 8, "rating": [5] * 8}
    hit = ["x", "x", "x", "x", "y", "y", "y", "y"]
    runs = {
        "a": {user: [item] for user, item in enumerate(hit)},
        "b": {user: [item] for user, item in enumerate(reversed(hit))},
    }
    scores = us.evaluate(test, runs, "P@1", liked=4)
    assert len(set(scores.mean("P@1").values())) == 1
    result = swap_rate(scores, "P@1", samples=20, bins=4, seed=1)
    assert result.comparisons.sum() + result.ties.sum() == 20
    assert result.comparisons[0, :3].tolist() == [0, 0, 0]  # all in the last, open bin
    assert result.swaps.sum() == result.comparisons.sum()  # a half leads by what the other loses
