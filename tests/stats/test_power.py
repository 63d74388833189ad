"""Power: discriminative power as published, users needed, errors of tests."""

import importlib
import json
import math
import re
from pathlib import Path

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
from unskew.cli.command import callback
from unskew.stats.agreement.power import discriminative_power, power, sample_size
from unskew.stats.compare.compare import compare
from unskew.stats.intervals.shares import wilson
from unskew.stats.pairing import paired

WIDE = pl.DataFrame(
    {"a": ["x", "x", "y"], "b": ["y", "z", "z"], "P": [0.5, 0.0, 0.01], "RR": [0.04, 0.2, 0.05]}
)


@pytest.fixture(scope="module")
def scores():
    return some_scores(metrics=("P@3", "nDCG@5", "RR"))


# Discriminative power


def test_sums_medians_and_ratios():
    result = discriminative_power(WIDE)
    table = result.table()
    assert table.columns == ["metric", "value", "median_p", "significant", "ratio", "pairs"]
    first, second = table.iter_rows(named=True)
    assert (first["value"], first["median_p"], first["significant"]) == (0.51, 0.01, 2)
    assert second["value"] == pytest.approx(0.29)
    assert second["ratio"] == pytest.approx(1 / 3)  # 0.05 is not below 0.05
    assert result.best.keys == {"metric": "RR"}  # the lower the better
    assert discriminative_power(WIDE, alpha=0.06).table()["significant"].to_list() == [2, 2]


def test_ordered_pairs_count_twice():
    once, twice = (discriminative_power(WIDE, ordered=ordered) for ordered in (False, True))
    dp = [2 * value for value in once.rows["value"]]
    assert twice.rows["value"].to_list() == pytest.approx(dp)
    assert twice.table()["ratio"].equals(once.table()["ratio"])
    assert twice.table()["pairs"].to_list() == [6, 6]


def test_both_directions_are_two_estimates():
    turned = WIDE.select(pl.col("b").alias("a"), pl.col("a").alias("b"), pl.col("P") + 0.1, "RR")
    both = pl.concat([WIDE, turned])
    assert discriminative_power(both).rows["value"].to_list() == pytest.approx([0.66, 0.29])
    ordered = discriminative_power(both, ordered=True)
    assert ordered.rows["value"].to_list() == pytest.approx([1.32, 0.58])


def test_long_tables_and_comparisons(scores):
    long = WIDE.unpivot(["P", "RR"], index=["a", "b"], variable_name="metric", value_name="p")
    assert discriminative_power(long).table().equals(discriminative_power(WIDE).table())
    alone = long.filter(pl.col("metric") == "P").drop("metric")
    assert discriminative_power(alone).rows["value"].to_list() == [0.51]
    found = compare(scores, ["P@3", "RR"], permutations=500, correction=None)
    result = discriminative_power(found)
    for metric, dp in result.rows.select("metric", "value").iter_rows():
        assert dp == pytest.approx(found[metric].rows["p"].sum())
    assert "p: randomisation test" in str(result)


def test_curves_fall():
    result = discriminative_power(WIDE)
    assert result.parts["curve"]["RR"].table().rows() == [
        ("RR", 1, 0.2), ("RR", 2, 0.05), ("RR", 3, 0.04),
    ]  # fmt: skip
    assert len(result.figure().to_dict()["datasets"]["rows"]) == 6
    assert len(result.figure(metric="P").to_dict()["datasets"]["rows"]) == 3
    assert str(result).splitlines() == [
        "metric      DP  median p  significant pairs   ratio  pairs",
        "P       0.5100    0.0100                  2  0.6667      3",
        "RR      0.2900    0.0500                  1  0.3333      3",
        "DP: sum of p over 3 unordered pairs; ratio: share with p < 0.05",
    ]
    assert "<table" in result._repr_html_()
    assert "discriminative power: 2 metrics" in result._repr_html_()


def test_long_curves_are_thinned_in_figures():
    """A figure holds so many rows: of each metric's curve points at equal distances, the ends."""
    systems = [f"s{n}" for n in range(90)]
    rng = np.random.default_rng(0)
    pairs = [(a, b, *rng.random(2)) for i, a in enumerate(systems) for b in systems[i + 1 :]]
    result = discriminative_power(pl.DataFrame(pairs, ["a", "b", "P", "RR"], orient="row"))
    assert result.parts["curve"].rows.height == 2 * 4005
    drawn = result.figure().to_dict()["datasets"]["rows"]
    assert len(drawn) == 5_000
    ranks = [row["rank"] for row in drawn if row["metric"] == "RR"]
    assert (ranks[0], ranks[-1], len(set(ranks))) == (1, 4005, 2_500)


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
    assert [f"{dp:.1f}" for dp in table["value"]] == [
        "2.6",
        "7.0",
        "2.8",
        "1.4",
        "15.5",
        "9.9",
        "8.4",
    ]
    assert table["pairs"].to_list() == [420] * 7
    ratio = dict(table.select("metric", "ratio").iter_rows())
    assert (round(ratio["ndcg"], 3), round(ratio["recip_rank"], 3)) == (0.983, 0.919)
    halves = discriminative_power(seven).rows["value"].to_list()
    assert halves == pytest.approx([1.28, 3.51, 1.41, 0.68, 7.75, 4.93, 4.21], abs=0.015)
    # Figure 4: cutoffs of nDCG from 50 on tell systems apart better than those up to 20.
    cutoffs = discriminative_power(
        released.select("RunA", "RunB", *(f"ndcg_cut_{k}" for k in (5, 10, 20, 50, 60, 80, 100)))
    )
    dp = cutoffs.rows["value"].to_list()
    assert np.mean(dp[3:]) < np.mean(dp[:3])


# Users needed


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("wanted", [0.8, 0.95])
def test_users_needed_are_statsmodels(scores, alpha, wanted):
    statsmodels = pytest.importorskip("statsmodels.stats.power")
    solve = statsmodels.TTestPower()
    result = sample_size(scores, "P@3", difference=0.05, power=wanted, alpha=alpha)
    for row in result.parts["pairs"].rows.iter_rows(named=True):
        users = solve.solve_power(0.05 / row["sd"], power=wanted, alpha=alpha)
        assert row["needed"] == pytest.approx(math.ceil(users), abs=1 + 0.003 * users)
        effect = solve.solve_power(nobs=row["n"], power=wanted, alpha=alpha)
        assert row["detectable"] == pytest.approx(effect * row["sd"], rel=0.003)
        reached = solve.power(abs(row["effect"]), row["n"], alpha)
        if not math.isnan(reached):  # SciPy's noncentral t gives up on large effects
            assert row["power"] == pytest.approx(reached, abs=0.004)


def test_sample_size_from_the_paired_differences(scores):
    result = sample_size(scores, ["P@3", "RR"])
    values = paired(scores).matrix("RR")
    row = result.pair("s0", "s2", metric="RR")
    gap = values[:, 0] - values[:, 2]
    assert row.n == 120
    assert row.value == pytest.approx(gap.mean())
    assert row.facts["sd"] == pytest.approx(gap.std(ddof=1))
    assert row.facts["effect"] == pytest.approx(gap.mean() / gap.std(ddof=1))
    assert result.pair("s2", "s0", metric="RR").facts["effect"] == -row.facts["effect"]
    # With as many users as are needed for a difference, just this difference is detectable.
    again = sample_size(scores, "RR", difference=row.facts["detectable"])
    assert again.pair("s0", "s2").facts["needed"] in (120, 121)
    table = result.table()
    assert table.columns == ["metric", "n", "sd", "value", "hardest", "powered", "needed"]
    assert (table["value"] <= table["hardest"]).all()
    pairs = result.parts["pairs"]["RR"].rows
    assert table["value"][1] == pytest.approx(pairs["detectable"].median())
    header = str(result).splitlines()[0]
    assert header.split() == ["metric", "users", "sd", "detectable", "hardest", "powered", "needed"]


def _detectable(result):
    return result.parts["pairs"].rows["detectable"].to_numpy()


def test_bonferroni_needs_more(scores):
    plain, shared = (
        sample_size(scores, "RR", correction=correction) for correction in ("none", "bonferroni")
    )
    assert (_detectable(shared) > _detectable(plain)).all()
    assert shared.card["tests"] == 10
    assert "alpha 0.05 / 10 (Bonferroni)" in str(shared)
    stricter = sample_size(scores, "RR", alpha=0.005)
    assert _detectable(shared) == pytest.approx(_detectable(stricter))


def test_no_difference_needs_no_number_of_users():
    test = {"user": list(range(8)), "item": [1] * 8, "rating": [5] * 8}
    runs = {
        "a": {u: [1] for u in range(8)},
        "b": {u: [1] for u in range(8)},
        "c": {u: [2, 1] for u in range(8)},
    }
    result = sample_size(us.evaluate(test, runs, "P@1", liked=4))
    same = result.pair("a", "b").facts
    assert (same["needed"], same["detectable"], same["effect"]) == (None, 0.0, 0.0)
    assert same["power"] == pytest.approx(0.05)
    sure = result.pair("a", "c").facts
    assert (sure["needed"], sure["power"], sure["effect"]) == (2, 1.0, math.inf)


def test_errors_of_sample_size(scores):
    few = some_scores(users=3, metrics=("RR",))
    with pytest.raises(DataError, match="RR: 3 users are too few"):
        sample_size(few, alpha=0.0001)
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
                power(scores, test="t", **change)


@given(alpha=st.floats(1e-6, 0.999), above=st.floats(1e-6, 0.999), shared=st.booleans())
def test_whatever_power_is_allowed_the_difference_is_positive(scores, alpha, above, shared):
    wanted = alpha + above * (1 - alpha)
    if not alpha < wanted < 1:
        return
    correction = "bonferroni" if shared else "none"
    result = sample_size(scores, "RR", power=wanted, alpha=alpha, correction=correction)
    assert (_detectable(result) > 0).all()


# Errors of tests


def test_wilson_is_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for found, count in ((0, 10), (3, 40), (51, 1000), (10, 10)):
        want = proportion.proportion_confint(found, count, method="wilson")
        assert wilson(found, count) == pytest.approx(want)


@pytest.fixture
def type_one_error(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("type_one_error")


def test_p_values_are_scipys(scores, type_one_error):
    stats = pytest.importorskip("scipy.stats")
    values = paired(scores).matrix("nDCG@5")
    gaps = type_one_error.null_gaps(values, 60, "signs", np.random.default_rng(4))
    p = {test: type_one_error.p_values(gaps, test, 99, 0) for test in type_one_error.TESTS}
    assert p["t"] == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    positive, apart = (gaps > 0).sum(axis=0), (gaps != 0).sum(axis=0)
    signs = [stats.binomtest(int(k), int(n)).pvalue for k, n in zip(positive, apart, strict=True)]
    assert p["sign"] == pytest.approx(signs)
    ranks = stats.wilcoxon(gaps, axis=0, correction=False, method="asymptotic").pvalue
    assert p["wilcoxon"] == pytest.approx(ranks, abs=0.01)
    assert (p["randomisation"] >= 1 / 100).all()


@pytest.mark.slow
@pytest.mark.parametrize("null", ["signs", "labels"])
def test_tests_keep_their_level(scores, null, type_one_error):
    """Of exact tests no more than alpha of the p-values lie at or below alpha, at any alpha."""
    values = paired(scores).complete("nDCG@5")
    result = type_one_error.simulate(values, null, simulations=4_000, permutations=999)
    for level in (0.01, 0.05, 0.1, 0.5):
        error = math.sqrt(level * (1 - level) / 4_000)
        for name, p in result.items():
            rate = (p <= level).mean()
            slack = 0.003 if name in ("t", "wilcoxon") else 0.0  # right for many users only
            assert rate < level + slack + 4.5 * error, (name, level)
            if name != "sign":
                assert rate > level - slack - 4.5 * error, (name, level)


def test_symmetric_nulls_cannot_fail_and_centred_ones_can(type_one_error):
    """Of exponential differences with mean 0 the median is far from 0: sign and Wilcoxon reject."""
    values = np.random.default_rng(3).exponential(size=(3, 200)).T * [0.01, 1.0, 100.0]
    for null in type_one_error.NULLS:
        p = type_one_error.simulate(values, null, simulations=400, permutations=199, seed=5)
        for test, several in p.items():
            low = wilson(int((several <= 0.05).sum()), 400, 1 - 0.05 / 12)[0]
            assert (low > 0.05) == (null == "centred" and test in ("wilcoxon", "sign"))


def test_what_rounding_leaves_of_equal_differences_is_zero(type_one_error):
    assert type_one_error.centred(np.full(7, 0.1) + np.full(7, 0.2)).tolist() == [0.0] * 7
    assert type_one_error.centred(np.array([0.0, 0.3])).tolist() == [-0.15, 0.15]


# All of it


def test_power_puts_it_together(scores):
    result = power(scores, permutations=500, difference=0.1, seed=3)
    table = result.table()
    assert table["value"].is_sorted()
    found = compare(scores, permutations=500, seed=3, correction=None)
    sizes = sample_size(scores, difference=0.1)
    for row in table.iter_rows(named=True):
        assert row["value"] == pytest.approx(found[row["metric"]].rows["p"].sum())
        of_metric = sizes[row["metric"]].rows.rename({"value": "detectable"})
        assert of_metric.row(0, named=True).items() <= row.items()
    assert result.parts["pairs"].rows.equals(sizes.parts["pairs"].rows)
    assert power(scores, "RR", test="t").table()["metric"].to_list() == ["RR"]
    header = re.split(" {2,}", str(result).splitlines()[0])
    assert header == ["metric", "DP", "median p", "ratio", "users", "detectable", "needed"]
    assert "p: randomisation test (sign flips per user), 500 permutations" in str(result)
    assert "DP: sum of p over 10 unordered pairs" in str(result)
    assert "<table" in result._repr_html_()
    assert "power: 3 metrics" in result._repr_html_()
    assert len(result.figure().to_dict()["datasets"]["rows"]) == 30


def test_folds_are_one_value_per_user(scores):
    """The same user in two folds is one user."""
    several = sample_size([scores, scores], "RR").parts["pairs"].rows
    assert several.equals(sample_size(scores, "RR").parts["pairs"].rows)


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
    done = call("--scores", saved, "--test", "t", "--format", "json", "--figure", figure)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == power(scores, test="t").to_dict()
    assert json.loads(figure.read_text())["title"]["text"] == "p-value curves"
    pairs = call("--scores", saved, "-m", "RR", "--test", "t", "--pairs", "--format", "csv")
    assert len(pairs.stdout.splitlines()) == 11
    folds = call("--scores", saved, "--scores", saved, "-m", "RR", "--test", "t")
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


def test_help_has_examples():
    assert "unskew power" in call("--help").stdout
