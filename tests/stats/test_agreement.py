"""Orders of systems: correlations against SciPy and plain twins, agreement, decision stability."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.real_data import real_data
from shared.scores import some_scores
from unskew import DataError, SettingError
from unskew.engine.rng import key_of
from unskew.stats import kernels
from unskew.stats.agreement.agreement import agreement, score_table
from unskew.stats.agreement.stability import stability
from unskew.stats.correlation import kendall, kendall_test, rbo, rounded, swaps, tau_ap

orders = st.integers(2, 6).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 4), min_size=n, max_size=n),) * 2)
)


def broken(values):
    """Return every order, best first, that breaks the ties of these values."""
    places = range(len(values))
    return [
        order
        for order in itertools.permutations(places)
        if all(values[a] >= values[b] for a, b in itertools.pairwise(order))
    ]


def plain_tau_ap(order, reference):
    place = {system: rank for rank, system in enumerate(reference)}
    n = len(order)
    right = [sum(place[order[j]] < place[order[i]] for j in range(i)) / i for i in range(1, n)]
    return 2 * sum(right) / (n - 1) - 1


def plain_rbo(a, b, p):
    n = len(a)
    shared = [len(set(a[:d]) & set(b[:d])) / d for d in range(1, n + 1)]
    return (1 - p) / p * sum(x * p**d for d, x in enumerate(shared, 1)) + p**n


# Correlations


@pytest.mark.parametrize("levels", [3, 6, 10_000])
def test_tau_b_is_scipys(levels):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(levels)
    for n in (2, 3, 5, 9, 21, 60):
        for _ in range(20):
            a, b = rng.integers(0, levels, (2, n))
            want = stats.kendalltau(a, b).statistic
            assert kendall(a, b) == pytest.approx(want, nan_ok=True)


def test_exact_p_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for n in (2, 3, 4, 5, 10, 21, 50):
        for _ in range(10):
            a, b = rng.random((2, n))
            test = kendall_test(a, b)
            assert test.method == "exact"
            assert test.p == pytest.approx(stats.kendalltau(a, b, method="exact").pvalue, rel=1e-11)


def test_exact_p_with_ties_is_that_of_all_orders():
    """Two-sided by |τ|: with ties the distribution need not be the same on both sides."""
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    for n in (3, 4, 5, 6):
        a, b = rng.integers(0, 3, (2, n)).astype(float)
        a[0], b[0] = 9.0, 5.0  # not all ties

        def tau(x, b=b):
            return abs(stats.kendalltau(x, b).statistic)

        want = stats.permutation_test(
            (a,), tau, permutation_type="pairings", n_resamples=np.inf, alternative="greater"
        )
        test = kendall_test(a, b)
        assert (test.method, test.p) == ("exact", pytest.approx(want.pvalue))


def test_permutation_p_is_within_its_error():
    """Exactly one tie among ten systems: close to the exact p without it."""
    a = np.arange(10.0)
    b = np.array([0, 2, 1, 4, 3, 6, 9, 8, 5, 7.0])
    tied = a.copy()
    tied[1] = 0
    test = kendall_test(tied, b, permutations=20_000)
    assert test.method == "permutation"
    exact = kendall_test(a, b).p
    assert abs(test.p - exact) < 0.25 * exact + 5 * math.sqrt(exact / 20_000)
    assert kendall_test(tied, b, permutations=20_000) == test
    assert kendall_test(tied, b, permutations=20_000, seed=1) != test
    # A p is never 0.
    assert kendall_test(tied, tied, permutations=99).p == 1 / 100


def test_no_tau_of_carraro2020_differs_from_0():
    """Its tables 3 and 4 order five and four systems."""
    five = kendall_test([5, 4, 3, 2, 1], [5, 4, 3, 1, 2])
    four = kendall_test([4, 3, 2, 1], [4, 3, 1, 2])
    assert (five.value, round(five.p, 3)) == (pytest.approx(0.8), 0.083)
    assert (four.value, round(four.p, 2)) == (pytest.approx(2 / 3), 0.33)


@given(orders)
def test_tau_ap_and_rbo_are_means_over_broken_ties(sides):
    a, b = sides
    ways = list(itertools.product(broken(a), broken(b)))[:20_000]
    if len(ways) == 20_000:
        return
    assert tau_ap(a, b) == pytest.approx(np.mean([plain_tau_ap(x, y) for x, y in ways]))
    for p in (0.5, 0.9):
        assert rbo(a, b, p=p) == pytest.approx(np.mean([plain_rbo(x, y, p) for x, y in ways]))


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_properties(a, b):
    assert kendall(a, b) == kendall(b, a)
    assert kendall(a, a) == tau_ap(a, a) == pytest.approx(rbo(a, a)) == 1
    opposite = [-x for x in a]
    assert kendall(a, opposite) == tau_ap(a, opposite) == -1
    assert kendall(opposite, b) == pytest.approx(-kendall(a, b))
    assert tau_ap(a, b, symmetric=True) == pytest.approx((tau_ap(a, b) + tau_ap(b, a)) / 2)
    assert 0 < rbo(a, b) <= 1 + 1e-12
    n = len(a)
    wrong = swaps(dict(enumerate(a)), dict(enumerate(b)))
    assert kendall(a, b) == pytest.approx(1 - 4 * len(wrong) / (n * (n - 1)))


def test_the_top_weighs_more():
    """Swapping the best two costs τ_AP and RBO more than swapping the worst two; τ_b the same."""
    truth = [5, 4, 3, 2, 1]
    top, bottom = [4, 5, 3, 2, 1], [5, 4, 3, 1, 2]
    assert kendall(top, truth) == kendall(bottom, truth)
    assert tau_ap(top, truth) < tau_ap(bottom, truth)
    assert rbo(top, truth) < rbo(bottom, truth)


def test_orders_by_name():
    a, b = {"x": 3.0, "y": 2.0, "z": 1.0}, {"z": 5.0, "x": 4.0, "y": 4.5}
    assert kendall(a, b) == kendall([3, 2, 1], [4, 4.5, 5])
    assert swaps(a, b) == [("x", "y"), ("x", "z"), ("y", "z")]
    assert swaps(a, {**a, "y": 3.0}) == []


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ([1.0], [2.0], "at least 2 systems, got 1"),
        ([1, 2], [1, 2, 3], "2 systems, the other of 3"),
        ([1, math.nan, 2], [1, 2, 3], "1 of 3 systems have no value"),
        ([1, 2], ["a", "b"], "must be numbers"),
        ([[1, 2]], [[1, 2]], "one value per system"),
        ({"x": 1, "y": 2}, {"x": 1, "z": 2}, "only in one: 'y'"),
    ],
)
def test_errors_of_orders(a, b, text):
    with pytest.raises(DataError, match=text):
        kendall(a, b)


def test_errors_of_settings():
    with pytest.raises(SettingError, match="both orders by name"):
        kendall({"x": 1.0}, [1.0])
    with pytest.raises(SettingError, match="p must lie between 0 and 1"):
        rbo([1, 2], [2, 1], p=1)
    with pytest.raises(SettingError, match="permutations must be at least 1"):
        kendall_test([1, 1, *range(9)], range(11), permutations=0)


def test_all_ties_are_undefined():
    assert math.isnan(kendall([1, 1, 1], [1, 2, 3]))
    assert math.isnan(kendall_test([1, 1, 1], [1, 2, 3]).p)


def test_rounding_makes_equal_sums_ties():
    assert len(set(rounded(np.array([0.1 + 0.2, 0.3, 0.31])).tolist())) == 2
    assert rounded(np.zeros(3)).tolist() == [0, 0, 0]
    assert len(set(rounded(np.array([1e-9, 2e-9])).tolist())) == 2


# Published matrices

FIGURE_5A = """
1.00 0.89 0.87 0.89 0.71 0.89 0.91
0.89 1.00 0.87 0.90 0.72 0.90 0.92
0.87 0.87 1.00 0.96 0.84 0.92 0.92
0.89 0.90 0.96 1.00 0.82 0.94 0.96
0.71 0.72 0.84 0.82 1.00 0.80 0.80
0.89 0.90 0.92 0.94 0.80 1.00 0.96
0.91 0.92 0.92 0.96 0.80 0.96 1.00
"""
FIGURE_1 = """
1.00 0.95 0.93 0.92 0.92 0.92 0.92 0.91 0.90 0.90 0.90
0.95 1.00 0.98 0.97 0.97 0.97 0.97 0.96 0.95 0.95 0.95
0.93 0.98 1.00 0.99 0.99 0.99 0.99 0.98 0.97 0.97 0.97
0.92 0.97 0.99 1.00 1.00 1.00 1.00 0.99 0.98 0.98 0.98
0.92 0.97 0.99 1.00 1.00 1.00 1.00 0.99 0.98 0.98 0.98
0.92 0.97 0.99 1.00 1.00 1.00 1.00 0.99 0.98 0.98 0.98
0.92 0.97 0.99 1.00 1.00 1.00 1.00 0.99 0.98 0.98 0.98
0.91 0.96 0.98 0.99 0.99 0.99 0.99 1.00 0.99 0.99 0.99
0.90 0.95 0.97 0.98 0.98 0.98 0.98 0.99 1.00 1.00 1.00
0.90 0.95 0.97 0.98 0.98 0.98 0.98 0.99 1.00 1.00 1.00
0.90 0.95 0.97 0.98 0.98 0.98 0.98 0.99 1.00 1.00 1.00
"""
SEVEN = ("set_P", "set_recall", "map", "ndcg", "recip_rank", "bpref", "infAP2")


def printed(matrix):
    return [row.split() for row in matrix.strip().splitlines()]


@pytest.mark.real
@pytest.mark.parametrize(
    ("columns", "figure"),
    [
        (SEVEN, FIGURE_5A),
        ([f"ndcg_cut_{k}" for k in (5, *range(10, 101, 10))], FIGURE_1),
    ],
)
def test_matrices_of_valcarce2018(columns, figure):
    released = pl.read_csv(real_data("published/valcarce2018_ml-1m_results.csv"))
    full = released.filter(pl.col("Percentage") == 1.0)
    result = agreement(full.select("Recommender", *columns), permutations=200)
    assert len(result.parts["means"].systems) == 21
    matrix = printed(figure)
    pairs = itertools.combinations(range(len(matrix)), 2)
    assert [f"{value:.2f}" for value in result.rows["value"]] == [matrix[i][j] for i, j in pairs]
    assert all(matrix[i][j] == matrix[j][i] for i, j in itertools.combinations(range(7), 2))


@pytest.mark.real
def test_the_lowest_cutoff_correlation_of_valcarce2018():
    """Section 6: 0.76, between P@5 and P@100, and Recall@5 and Recall@100."""
    released = pl.read_csv(real_data("published/valcarce2018_ml-1m_results.csv"))
    full = released.filter(pl.col("Percentage") == 1.0)
    for name in ("P", "recall"):
        assert f"{kendall(full[f'{name}_5'], full[f'{name}_100']):.2f}" == "0.76"


# Agreement


@pytest.fixture(scope="module")
def scores():
    return some_scores()


def test_metrics_of_scores(scores):
    result = agreement(scores, resamples=50)
    names = ["P@3", "nDCG@5", "RR", "anti-P@3"]
    assert result.parts["means"].values_of("design") == names
    pairs = list(itertools.combinations(names, 2))
    assert result.rows.select("design", "against_design").rows() == pairs
    for a, b in pairs:
        signs = [-1 if name.startswith("anti") else 1 for name in (a, b)]
        sides = [
            [sign * value for value in scores.mean(name).values()]
            for sign, name in zip(signs, (a, b), strict=True)
        ]
        assert result.row(design=a, against_design=b).value == pytest.approx(kendall(*sides))


def test_bootstrap_interval_is_that_of_a_plain_loop(scores):
    result = agreement(scores, ["P@3", "RR"], resamples=40, level=0.9, seed=5)
    users = scores.lists.height
    counts = np.empty((40, users))
    kernels.resample(np.uint64(key_of(5, "bootstrap")), 0, counts)
    assert (counts.sum(axis=1) == users).all()
    values = [np.array([scores.values(s, m) for s in scores.systems]) for m in ("P@3", "RR")]
    taus = [kendall(*(np.round(value @ draw, 9) for value in values)) for draw in counts]
    low, high = np.quantile(taus, [0.05, 0.95])
    assert result.row().low == pytest.approx(low)
    assert result.row().high == pytest.approx(high)
    assert (result.method.level, result.method.draws, result.method.seed) == (0.9, 40, 5)


def test_same_bits_for_any_threads(scores):
    one, two = (agreement(scores, resamples=100, threads=threads) for threads in (1, 3))
    assert one.rows.equals(two.rows)


def test_range_without_one_system():
    rng = np.random.default_rng(3)
    values = rng.integers(0, 5, (3, 6)).astype(float)
    systems = list("abcdef")
    frame = pl.DataFrame({"system": systems, **{f"m{i}": v for i, v in enumerate(values)}})
    result = agreement(frame)
    without = [kendall(np.delete(values[0], gone), np.delete(values[1], gone)) for gone in range(6)]
    row = result.row(design="m0", against_design="m1")
    assert row.facts["without_low"] == pytest.approx(min(without))
    assert row.facts["without_high"] == pytest.approx(max(without))
    assert row.facts["without_low"] <= row.value <= row.facts["without_high"]
    assert result.rows["low"].null_count() == 3
    assert "CI" not in str(result)


def test_swaps_and_other_measures():
    frame = pl.DataFrame(
        {"system": ["a", "b", "c", "d"], "P": [4.0, 3, 2, 1], "RR": [3.0, 4, 2, 1]}
    )
    result = agreement(frame)
    row = result.row()
    assert row.keys == {"design": "P", "against_design": "RR"}
    assert row.facts["swaps"] == 1
    assert row.value == pytest.approx(2 / 3)
    assert row.p == pytest.approx(1 / 3)
    assert row.facts["tau_ap"] == tau_ap(frame["P"], frame["RR"], symmetric=True)
    assert row.facts["rbo"] == rbo(frame["P"], frame["RR"])
    assert row.low is None
    first, second = (
        dict(result.parts["means"].where(design=name).rows.select("system", "value").iter_rows())
        for name in ("P", "RR")
    )
    assert second == {"a": 3, "b": 4, "c": 2, "d": 1}
    assert swaps(first, second) == [("a", "b")]
    with pytest.raises(SettingError, match="unknown design 'AP'"):
        result.where(design="AP")


def test_orders_of_equal_systems_have_a_reason():
    frame = pl.DataFrame({"system": ["a", "b", "c"], "P": [1.0, 1, 1], "RR": [3.0, 4, 2]})
    row = agreement(frame).row()
    assert (row.value, row.p, row.note) == (None, None, "all systems are equal")


def test_designs_folds_and_users_that_differ():
    """Designs are resampled by user: those who are in both are drawn in both."""
    first, second = some_scores(0), some_scores(1, users=100)
    result = agreement({"all": first, "test": [second, second]}, "nDCG@5", resamples=30)
    means = result.parts["means"].where(design="test").rows["value"].to_list()
    assert means == pytest.approx(list(second.mean("nDCG@5").values()))
    row = result.row(design="all", against_design="test")
    assert -1 <= row.low <= row.high <= 1
    several = agreement({"all": first, "test": second}, ["P@3", "RR"], resamples=0)
    names = ["all P@3", "all RR", "test P@3", "test RR"]
    assert several.parts["means"].values_of("design") == names
    same = agreement({"x": first, "y": first}, "RR", resamples=30).row()
    assert same.low == same.high == 1


def test_whole_run_metrics_have_no_interval():
    result = agreement(some_scores(metrics=("P@3", "Gini@3")), resamples=20)
    assert result.row().value is not None
    assert result.row().low is None


def test_negated_metrics_are_noted():
    """The system with fewer disliked items comes first by anti-P, and a note says why."""
    test = {"user": [1] * 4, "item": [1, 2, 3, 4], "rating": [5, 5, 1, 1]}
    runs = {"good": {1: [1, 2]}, "mixed": {1: [1, 3]}, "bad": {1: [3, 4]}}
    scores = us.evaluate(test, runs, ["P@2", "anti-P@2", "Fallout"], liked=4)
    result = agreement(scores, resamples=0)
    assert result.rows["value"].to_list() == [1.0, 1.0, 1.0]
    means = result.parts["means"].where(design="anti-P@2").rows["value"]
    assert means.to_list() == [0.0, -0.5, -1.0]
    note = (
        "anti-P@2, Fallout: lower is better, so values are negated before the systems are ordered"
    )
    assert note in result.notes
    assert note in str(result)
    by_name = agreement({"a": scores, "b": scores}, ["anti-P@2"], resamples=0)
    assert any(one.startswith("anti-P@2: lower is better") for one in by_name.notes)


def test_a_metric_without_a_direction_is_noted():
    result = agreement(some_scores(metrics=("P@3", "Judged@3")), resamples=0)
    conditions = result.parts["means"].values_of("design")
    neither = [name for name in conditions if "neither" in str(result.notes)]
    assert ("Judged@3" in str(result.notes)) == bool(neither)


def test_what_is_printed(scores):
    result = agreement(scores, resamples=30)
    lines = str(result).splitlines()
    assert lines[0].split("  ")[:2] == ["condition a", "condition b"]
    row = result.row(design="nDCG@5", against_design="RR")
    assert lines[4].split()[2:5] == [f"{row.value:.2f}", f"[{row.low:.2f},", f"{row.high:.2f}]"]
    assert "95% CI: percentile bootstrap, by user" in lines
    assert "p: Kendall's test, exact, not corrected" in lines
    assert lines[-1] == "lowest: P@3 and anti-P@3, τ = −1.00"
    assert "<table" in result._repr_html_()
    assert "agreement of orders: 3 designs" in result._repr_html_()
    figure = result.figure()
    assert len(figure.to_dict()["datasets"]["rows"]) == 12
    assert figure.title == "agreement of orders"
    rng = np.random.default_rng(0)
    tied = {"system": range(12), "x": rng.integers(0, 4, 12), "y": rng.integers(0, 4, 12)}
    frame = pl.DataFrame(tied).cast({"system": pl.String})
    test = agreement(frame, permutations=200).method.test
    assert test == "Kendall's test, 200 permutations where systems tie"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"system": ["a"], "P": [1.0], "R": [1.0]}, "at least 2 systems"),
        (
            {"system": ["a", "a"], "P": [1.0, 2.0], "R": [1.0, 2.0]},
            "the system 'a' occurs twice, in rows 1 and 2",
        ),
        ({"system": ["a", "b"], "P": [1.0, None], "R": [1.0, 2.0]}, "P: b has no value"),
        ({"system": ["a", "b"], "P": ["x", "y"]}, "2 means in column 'P' are not numbers"),
        ({"P": [0.1, 0.2], "R": [0.1, 0.2]}, "column 'P' holds numbers, where the systems should"),
        ({"system": ["a", "b"]}, "needs the system in its first column"),
        ({"system": ["a", "b"], "P": [1.0, 2.0]}, "there is only one order"),
    ],
)
def test_errors_of_tables(table, text):
    with pytest.raises((DataError, SettingError), match=text):
        agreement(pl.DataFrame(table))


def test_errors_of_agreement(scores):
    other = some_scores(systems=4)
    with pytest.raises(DataError, match="other systems"):
        agreement({"x": scores, "y": other}, "RR")
    with pytest.raises(SettingError, match="no scores"):
        agreement({})
    with pytest.raises(SettingError, match="level must lie"):
        agreement(scores, level=95)
    with pytest.raises(SettingError, match="resamples must be a whole number"):
        agreement(scores, resamples=-1)
    with pytest.raises(SettingError, match="unknown metric of these scores"):
        agreement(scores, ["P@3", "AP"])


# Decision stability


def long_table(values, factors):
    """Return rows of a full crossing: values[level of factor 1, level of factor 2, …, system]."""
    rows = []
    for place in itertools.product(*map(range, values.shape)):
        *levels, system = place
        rows.append({"system": f"s{system}", **dict(zip(factors, levels, strict=True)),
                     "score": float(values[place])})  # fmt: skip
    return pl.DataFrame(rows)


def test_pairs_that_flip():
    values = np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [3.0, 1.0, 1.0], [2.0, 3.0, 1.0]])
    p = pl.DataFrame(
        {
            "seed": [0, 0, 1, 3],
            "a": ["s0", "s1", "s2", "s1"],
            "b": ["s1", "s2", "s1", "s0"],
            "p": [0.01, 0.01, 0.2, 0.001],
        }
    )
    result = stability(long_table(values, ["seed"]), pvalues=p)
    first = result.pair("s0", "s1").facts
    assert (first["wins"], first["wins_against"], first["flips"]) == (3, 1, 0.25)
    assert (first["significant_wins"], first["significant_wins_against"]) == (1, 1)
    assert first["verdict"] == "contradicts"
    second = result.pair("s1", "s2").facts
    assert (second["wins"], second["wins_against"], second["ties"]) == (2, 1, 1)
    assert (second["significant_wins"], second["significant_wins_against"]) == (1, 0)
    assert second["verdict"] == "flips"
    assert result.pair("s2", "s1").facts["wins"] == 1
    assert result.pair("s0", "s2").facts["verdict"] == "stable"
    assert result.parts["pairs"].rows["flips"].is_sorted(descending=True)
    assert "2 of 3 pairs change their order" in str(result)
    assert "1 of them significantly both ways" in str(result)


def by_factor(result):
    return {row["factor"]: row for row in result.table().iter_rows(named=True)}


def test_variance_is_that_of_least_squares():
    """The parts equal the sums of squares of nested linear models, fitted by lstsq."""
    rng = np.random.default_rng(0)
    shape = (3, 4, 2, 5)  # metric, cutoff, seed, systems
    values = rng.random(shape) + np.arange(5) * 0.3 + rng.random((3, 1, 1, 5))
    frame = long_table(values, ["metric_name", "cutoff", "seed"])
    result = stability(frame)
    table = by_factor(result)
    flat = values.reshape(-1, 5)
    place = np.array([[(v > row).sum() / 4 for v in row] for row in flat])
    levels = np.array(list(itertools.product(range(3), range(4), range(2))))

    def residual(*factors):
        """Fit each system on its own: a constant and the levels of some factors."""
        columns = [np.ones(len(levels))]
        columns += [levels[:, f] == level for f in factors for level in range(shape[f])]
        design = np.column_stack(columns).astype(float)
        fitted = design @ np.linalg.lstsq(design, place, rcond=None)[0]
        return ((place - fitted) ** 2).sum()

    total = ((place - place.mean()) ** 2).sum()
    assert table["system"]["value"] == pytest.approx(1 - residual() / total)
    for at, name in enumerate(["metric_name", "cutoff", "seed"]):
        assert table[name]["value"] == pytest.approx((residual() - residual(at)) / total)
    assert table["rest"]["value"] == pytest.approx(residual(0, 1, 2) / total)
    assert sum(row["value"] for row in table.values()) == pytest.approx(1)
    free = {"metric_name": 2 * 4, "cutoff": 3 * 4, "seed": 1 * 4}
    noise = residual(0, 1, 2) / (23 * 4 - sum(free.values()))
    assert table["rest"]["component"] == pytest.approx(noise)
    square = (residual() - residual(0)) / free["metric_name"]
    assert table["metric_name"]["component"] == pytest.approx(max(square - noise, 0) / 8)


def test_tau_when_only_one_factor_changes():
    rng = np.random.default_rng(1)
    values = rng.random((2, 3, 4))
    result = stability(long_table(values, ["design", "seed"]))
    table = dict(result.rows.select("factor", "tau").rows())
    design = [kendall(values[0, seed], values[1, seed]) for seed in range(3)]
    seeds = [
        kendall(values[d, i], values[d, j]) for d in range(2) for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert table["design"] == pytest.approx(np.mean(design))
    assert table["seed"] == pytest.approx(np.mean(seeds))


def test_an_order_that_never_changes():
    values = np.tile(np.arange(4.0), (2, 3, 1))
    table = stability(long_table(values, ["design", "seed"])).table()
    assert table["value"].to_list() == [1, 0, 0, 0]
    assert table["tau"].to_list() == [None, 1, 1, None]


def test_sets_of_systems_and_crossings_with_holes():
    """A system set as a factor: places are shares of the others, and nothing adds up to 1."""
    rows = [
        {"system": system, "systems": name, "score": score}
        for name, several in {"all": "abcd", "few": "abd"}.items()
        for score, system in enumerate(several)
    ]
    result = stability(pl.DataFrame(rows))
    assert result.pair("d", "c").facts["conditions"] == 1
    assert result.pair("d", "b").facts["conditions"] == 2
    table = by_factor(result)
    assert table["systems"]["tau"] == 1
    assert table["rest"]["value"] is None
    assert (result.parts["pairs"].rows["wins_against"] == 0).all()


def test_directions_of_metrics():
    rows = {
        "system": ["x", "y"] * 2,
        "metric": ["P@5", "P@5", "anti-P@5", "anti-P@5"],
        "score": [0.3, 0.2, 0.1, 0.2],
    }
    assert stability(pl.DataFrame(rows)).pair("x", "y").facts["verdict"] == "stable"


def test_score_table(scores):
    table = score_table({"a": scores, "b": scores}, ["P@3", "anti-P@3"], factor="design")
    assert table.height == 2 * 2 * 5
    plain = table.filter((pl.col("design") == "a") & (pl.col("metric") == "anti-P"))
    assert plain["score"].to_list() == pytest.approx(list(scores.mean("anti-P@3").values()))
    assert plain["cutoff"].to_list() == [3] * 5
    drawn = score_table(scores, resamples=6, metrics=["P@3", "RR"])
    assert sorted(drawn.columns) == ["cutoff", "metric", "score", "system", "users"]
    assert drawn.height == 6 * 2 * 5
    result = stability(drawn)
    assert result.card["conditions"] == 12
    assert len(result.figure().to_dict()["datasets"]["rows"]) >= 2
    assert "<table" in result._repr_html_()
    text = str(result)
    assert text.splitlines()[0] == "what moves the order of systems"
    assert "significantly" not in text
    assert "5 systems under 12 conditions" in text
    with pytest.raises(DataError, match="no value per user"):
        score_table(some_scores(metrics=("Coverage@3",)), resamples=3)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ({"system": ["x", "y"], "score": [1.0, 2.0]}, "there is no factor"),
        ({"system": ["x"], "seed": [1], "score": [1.0]}, "at least 2 systems"),
        (
            {"system": ["x", "y"], "seed": [1, 1], "score": [1.0, None]},
            "1 of 2 scores are missing, the first in row 2",
        ),
        (
            {"system": ["x", "y"], "seed": [1, 1], "score": ["a", "b"]},
            "2 scores in column 'score' are not numbers, the first in row 1",
        ),
        (
            {"system": ["x", "x", "y"], "seed": [1, 1, 1], "score": [1.0, 2, 3]},
            r"several scores.*row 1 \(x\)",
        ),
        ({"system": ["x", "y"], "seed": [1, 1], "value": [1.0, 2.0]}, "unknown column 'score'"),
    ],
)
def test_errors_of_stability(rows, text):
    with pytest.raises((DataError, SettingError), match=text):
        stability(pl.DataFrame(rows))


def test_errors_of_pvalues():
    table = long_table(np.random.default_rng(0).random((2, 3)), ["seed"])
    with pytest.raises(SettingError, match="unknown column of pvalues 'p'"):
        stability(table, pvalues=pl.DataFrame({"a": ["s0"], "b": ["s1"], "seed": [0]}))
    with pytest.raises(DataError, match="none of the factors seed"):
        stability(table, pvalues=pl.DataFrame({"a": ["s0"], "b": ["s1"], "p": [0.1]}))


@pytest.mark.slow
def test_p_of_tau_is_uniform_where_orders_are_unrelated():
    """With ties: no more often below a level than the level says, and not much less often."""
    rng = np.random.default_rng(0)
    p = [
        kendall_test(rng.integers(0, 8, 12), rng.integers(0, 8, 12), permutations=999, seed=n).p
        for n in range(2_000)
    ]
    for level in (0.01, 0.05, 0.2, 0.5):
        rate = np.mean(np.array(p) <= level)
        error = math.sqrt(level * (1 - level) / len(p))
        assert rate < level + 4.5 * error
        assert rate > 0.7 * level - 4.5 * error
