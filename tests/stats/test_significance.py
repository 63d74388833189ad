"""`compare`: every p-value, interval and letter against an oracle, and the same bits always."""

import dataclasses
import itertools
import json
import math
import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError, UnknownName
from unskew.evaluation.scores import Scores, System
from unskew.stats import special as distributions
from unskew.stats.compare import ranking
from unskew.stats.compare.compare import compare
from unskew.stats.corrections import correct
from unskew.stats.intervals.means import student_ends
from unskew.stats.pairing import Pairs, all_pairs, paired, sample
from unskew.stats.tests import classic
from unskew.stats.tests.p_values import TESTS, mean_ends
from unskew.stats.tests.randomisation import Hypotheses, flip_signs, grid_of, shuffled_ranges

stats = pytest.importorskip("scipy.stats")


def scores_of(values, *, user=None, undefined="zero", over="lists", stratum=None):
    """Make scores of {metric: lists x systems}."""
    matrices = {label: np.asarray(matrix, float) for label, matrix in values.items()}
    size, systems = next(iter(matrices.values())).shape
    names = [f"s{number}" for number in range(systems)]
    user = np.arange(size) if user is None else np.asarray(user)
    ids, codes = Ids.number(pl.Series(user))
    ones = np.ones(size, np.int64)
    lists = {"user": codes, "liked": ones, "disliked": ones, "test": 2 * ones}
    if stratum is not None:
        lists["stratum"] = np.asarray(stratum)
    held = {
        name: System(np.stack([m[:, number] for m in matrices.values()]), {}, ones)
        for number, name in enumerate(names)
    }
    labels = tuple(matrices)
    return Scores(labels, held, ids, pl.DataFrame(lists), "with-test", undefined, labels, over=over)


def made_up(kind, users, systems=2, seed=0):
    """Return values as metrics have them: with exact ties (P@10), many zeros, or none."""
    rng = np.random.default_rng(seed)
    good = rng.random(users)[:, None] * np.linspace(0.6, 0.8, systems)
    if kind == "P@10":
        return rng.binomial(10, good) / 10
    if kind == "RR@10":
        return 1.0 / rng.integers(1, 11, (users, systems)) * (rng.random((users, systems)) < 0.7)
    if kind == "AP":
        return np.where(
            rng.random((users, systems)) < 0.4, 0.0, good * rng.random((users, systems))
        )
    return good * rng.random((users, systems))  # nDCG


KINDS = ("P@10", "RR@10", "AP", "nDCG")


def scipy_randomisation(a, b, alternative="two-sided", n=np.inf, rng=0):
    """Return p of scipy's test, which flips signs as we do."""

    def mean(x, y, axis):
        return np.mean(x - y, axis=axis)

    done = stats.permutation_test(
        (a, b), mean, permutation_type="samples", vectorized=True, n_resamples=n,
        alternative=alternative, rng=rng,
    )  # fmt: skip
    return done.pvalue


# The randomisation test


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_equals_scipy_where_both_enumerate(kind, alternative):
    for seed in range(4):
        values = made_up(kind, 11, seed=seed)
        result = compare(scores_of({kind: values}), alternative=alternative, correction=None)
        assert result.card["enumerated"]
        # scipy doubles the smaller tail; by symmetry that is the share of |d*| >= |d| ...
        expected = scipy_randomisation(*values.T, alternative)
        zero = abs(result.table()["value"][0]) < 1e-15
        assert result.rows["p"].to_numpy()[0] == (
            1.0 if zero and alternative == "two-sided" else expected
        )


def plain_exact(d):
    """Return the share of sign patterns as extreme as what was observed; d in whole numbers."""
    patterns = itertools.product((-1, 1), repeat=len(d))
    sums = [abs(sum(s * x for s, x in zip(signs, d, strict=True))) for signs in patterns]
    return sum(total >= abs(sum(d)) for total in sums) / len(sums)


@given(st.lists(st.integers(-10, 10), min_size=1, max_size=9))
def test_enumeration_equals_a_plain_twin(tenths):
    values = np.stack([np.maximum(tenths, 0), -np.minimum(tenths, 0)], axis=1) / 10
    result = compare(scores_of({"P@10": values}), correction=None)
    assert result.card["enumerated"]
    assert result.rows["p"].to_numpy()[0] == plain_exact(tenths)


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_scipy_within_monte_carlo_error(kind):
    values = made_up(kind, 150, 4, seed=3)
    ours = compare(scores_of({kind: values}), correction=None, permutations=20_000)
    assert ours.card["permutations"] == 20_000
    for (i, j), p in zip(
        itertools.combinations(range(4), 2), ours.rows["p"].to_numpy(), strict=True
    ):
        theirs = scipy_randomisation(values[:, i], values[:, j], n=20_000)
        spread = math.sqrt(2 * max(p * (1 - p), 1e-4) / 20_000)
        assert abs(p - theirs) <= 4.5 * spread


def test_ties_are_ties_whatever_floats_say():
    """0.3 - 0.2 and 0.2 - 0.1 are other floats: their sums must tie all the same."""
    values = np.array([[0.3, 0.2], [0.2, 0.1], [0.1, 0.2], [0.7, 0.6], [0.6, 0.7], [0.9, 0.8]])
    assert len(set(np.abs(values[:, 0] - values[:, 1]))) > 1
    result = compare(scores_of({"P@10": values}), correction=None)
    tenths = np.rint((values[:, 0] - values[:, 1]) * 10).astype(int).tolist()
    assert result.rows["p"].to_numpy()[0] == plain_exact(tenths)
    table = result.table()
    assert (table["better"][0], table["better_against"][0], table["equal"][0]) == (4 / 6, 2 / 6, 0)


@pytest.mark.parametrize(
    ("kind", "steps"), [("P@10", 10), ("RR@10", 2520), ("AP", None), ("nDCG", None)]
)
def test_grid(kind, steps):
    values = made_up(kind, 2000, 5)
    grid = grid_of(values)
    assert grid.exact == (steps is not None)
    if steps:
        assert round(steps * grid.unit * 1e12) % 1e12 == 0  # a divisor of the metric's own steps
    whole = grid.place(values.copy())
    assert np.abs(whole * grid.unit - values).max() <= (1e-12 if steps else grid.unit / 2)
    assert np.array_equal(whole, np.rint(whole))
    assert np.abs(whole).sum(axis=0).max() <= 2.0**53


def test_grid_of_means_over_lists():
    """A user's mean over 3 lists, spread over 7 users, is a multiple of something odd."""
    tenths = np.random.default_rng(1).integers(0, 31, (50, 3))
    assert grid_of(tenths * 50 / 7 / 30).exact
    assert grid_of(np.zeros((4, 2))).unit == 1


def plain_flips(values, permutations, seed):
    """Return the sums under the very signs that are drawn, without tables."""
    from unskew.engine.rng import draw

    users = values.shape[0]
    words = -(-users // 64)
    bits = draw(seed, "sign flips", np.arange(permutations)[:, None], np.arange(words)[None, :])
    shifts = np.arange(64, dtype=np.uint64)
    signs = (bits[:, :, None] >> shifts) & np.uint64(1)
    return (signs.reshape(permutations, -1)[:, :users] * 2.0 - 1) @ values


@pytest.mark.parametrize("users", [70, 300, 4100])
def test_counts_equal_a_plain_product(users):
    values = np.rint(made_up("nDCG", users, 5, seed=users) * 1000)
    pairs = all_pairs(5)
    observed = values.sum(axis=0)
    difference = observed[pairs.first] - observed[pairs.second]
    for side in (0, 1, -1):
        statistic = np.abs(difference) if side == 0 else side * difference
        tests = Hypotheses(pairs.first, pairs.second, np.full(10, side, np.int8), statistic)
        counts = flip_signs(values, tests, 500, seed=9)
        sums = plain_flips(values, 500, 9)
        drawn = sums[:, pairs.first] - sums[:, pairs.second]
        drawn = np.abs(drawn) if side == 0 else side * drawn
        assert counts.each.tolist() == (drawn >= statistic).sum(axis=0).tolist()


def test_32_bits_lose_nothing_that_counts():
    """Sums of values with 40 bits, added in 32: a near tie may count, nothing else changes."""
    values = np.rint(made_up("nDCG", 3000, 6, seed=5) * 2.0**40)
    values[:, 5] = values[:, 4]
    values[:7, 5] = 0
    pairs = all_pairs(6)
    sums = plain_flips(values, 3000, 2)
    drawn = np.abs(sums[:, pairs.first] - sums[:, pairs.second])
    for threshold in (np.quantile(drawn, 0.9, axis=0), np.sort(drawn, axis=0)[2500]):
        tests = Hypotheses(pairs.first, pairs.second, np.zeros(15, np.int8), threshold)
        counts = flip_signs(values, tests, 3000, seed=2).each
        more = counts - (drawn >= threshold).sum(axis=0)
        assert more.min() >= 0
        assert more.sum() <= 2


def test_other_metrics_do_not_coarsen_the_grid():
    """A metric with large values beside one with small: each is rounded by itself."""
    small, large = made_up("nDCG", 2000, 3), made_up("nDCG", 2000, 3, seed=1) * 1e6
    alone = compare(scores_of({"AP": small}), permutations=2000)
    both = compare(scores_of({"DCG": large, "AP": small}), permutations=2000)
    assert alone["AP"].rows["p"].to_numpy().tolist() == both["AP"].rows["p"].to_numpy().tolist()


def test_plus_one():
    values = np.stack([np.full(100, 0.9), np.full(100, 0.1)], axis=1)
    sure = scores_of({"P@10": values})
    for correction in ("holm", "bonferroni", "bh", "by", "maxT", "tukey", None):
        result = compare(sure, permutations=999, correction=correction)
        assert result.rows["p"].to_numpy()[0] == 1 / 1000
        assert result.rows["p_corrected"].to_numpy()[0] == 1 / 1000
    assert compare(sure, permutations=999, plus_one=False).rows["p"].to_numpy()[0] == 0
    for test in ("bootstrap", "bootstrap-t"):
        assert compare(sure, test=test, permutations=99).rows["p"].to_numpy()[0] == 1 / 100
    assert "<0.0001" in str(compare(sure, permutations=99_999))


def test_users_without_any_difference_do_not_matter():
    values = made_up("P@10", 8)
    more = np.concatenate([values, np.full((5000, 2), 0.3)])
    few, many = (compare(scores_of({"P@10": v}), correction=None) for v in (values, more))
    assert many.card["enumerated"]
    assert few.rows["p"].to_numpy()[0] == many.rows["p"].to_numpy()[0]


# Same bits


@pytest.mark.parametrize("test", TESTS)
def test_threads_do_not_matter(test):
    scores = scores_of({kind: made_up(kind, 500, 4) for kind in ("P@10", "nDCG")})
    settings = {"test": test, "permutations": 3000, "interval": "bca", "resamples": 500}
    tables = [compare(scores, threads=n, **settings).table() for n in (1, 2, 5)]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


@pytest.mark.parametrize("correction", ["maxT", "tukey"])
def test_blocks_do_not_matter(correction, monkeypatch):
    from unskew.stats.compare import compare as significance
    from unskew.stats.tests import randomisation

    scores = scores_of({kind: made_up(kind, 700, 4) for kind in ("P@10", "nDCG", "AP")})
    whole = compare(scores, permutations=2000, correction=correction).table()
    monkeypatch.setattr(randomisation, "BLOCK", 100)
    monkeypatch.setattr(randomisation, "USERS", 128)
    monkeypatch.setattr(significance, "_HELD", 1)
    assert whole.equals(compare(scores, permutations=2000, correction=correction).table())


def test_seed_and_order():
    values = made_up("nDCG", 300, 3)
    one, again, other = (
        compare(scores_of({"AP": values}), permutations=2000, correction=None, seed=seed)
        .rows["p"]
        .to_numpy()
        for seed in (1, 1, 2)
    )
    assert one.tolist() == again.tolist() != other.tolist()
    both = scores_of({"P@10": made_up("P@10", 300, 3), "AP": values})
    with_more = compare(both, permutations=2000, correction=None, seed=1)
    assert (
        with_more["AP"].rows["p"].to_numpy().tolist() == one.tolist()
    )  # other metrics change nothing


# The other tests


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_t_equals_scipy(kind, alternative):
    for users in (2, 5, 40, 3000):
        values = made_up(kind, users, 3, seed=users)
        values[0] = [0.2, 0.3, 0.7]
        ours = compare(scores_of({kind: values}), test="t", alternative=alternative)
        for row in ours.table().iter_rows(named=True):
            a, b = (values[:, int(row[name][1:])] for name in ("system", "against"))
            theirs = stats.ttest_rel(a, b, alternative=alternative)
            assert row["p"] == pytest.approx(theirs.pvalue, rel=1e-9)
            low, high = stats.ttest_rel(a, b).confidence_interval(0.95)
            assert (row["low"], row["high"]) == pytest.approx((low, high), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_wilcoxon_equals_scipy(kind, alternative):
    for users in (4, 9, 12, 45, 60, 800):
        values = made_up(kind, users, 2, seed=users + 1)
        # In whole numbers, as 1/2 - 1/3 and 1/6 are not the same float.
        whole = np.rint(values * 2520) if kind in ("P@10", "RR@10") else values
        ours = compare(scores_of({kind: values}), test="wilcoxon", alternative=alternative)
        d = whole[:, 0] - whole[:, 1]
        d = d[d != 0]
        few = d.size <= classic.EXACT_WILCOXON
        if few and d.size > 13 and len(set(np.abs(d))) < d.size:
            continue  # scipy gives up being exact here
        method = "approx" if not few else "exact"
        if few and len(set(np.abs(d))) < d.size:
            method = stats.PermutationMethod()
        theirs = stats.wilcoxon(d, alternative=alternative, method=method)
        assert ours.rows["p"].to_numpy()[0] == pytest.approx(theirs.pvalue, rel=1e-9)


def plain_signed_ranks(d):
    """Return Wilcoxon's two-sided p by going through all sign patterns."""
    size = [abs(x) for x in d if x]
    rank = [sum(y < x for y in size) + (size.count(x) + 1) / 2 for x in size]
    observed = sum(r for r, x in zip(rank, [x for x in d if x], strict=True) if x > 0)
    sums = [
        sum(r for r, plus in zip(rank, signs, strict=True) if plus)
        for signs in itertools.product((0, 1), repeat=len(rank))
    ]
    below, above = (sum(s <= observed for s in sums), sum(s >= observed for s in sums))
    return min(1.0, 2 * min(below, above) / len(sums))


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_exact_wilcoxon_with_ties_equals_a_plain_twin(d):
    assert classic.signed_ranks(np.array(d, float), 0) == plain_signed_ranks(d)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_sign_test_equals_scipy(alternative):
    for users in (1, 3, 20, 5000):
        values = made_up("P@10", users, 2, seed=users)
        ours = compare(scores_of({"P@10": values}), test="sign", alternative=alternative)
        plus = int((values[:, 0] > values[:, 1] + 1e-9).sum())
        both = plus + int((values[:, 1] > values[:, 0] + 1e-9).sum())
        theirs = stats.binomtest(plus, both, 0.5, alternative).pvalue if both else 1.0
        assert ours.rows["p"].to_numpy()[0] == pytest.approx(theirs, rel=1e-9)


def plain_resamples(users, resamples, seed):
    """Return the very draws of the bootstrap, by their rule in plain numpy."""
    from unskew.engine.rng import draw

    bits = draw(seed, "resamples", np.arange(resamples)[:, None], np.arange(0, users, 2)[None, :])
    both = np.stack([bits >> np.uint64(32), bits & np.uint64(2**32 - 1)], axis=2)
    return ((both.reshape(resamples, -1)[:, :users] * np.uint64(users)) >> np.uint64(32)).astype(
        int
    )


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("users", [10, 61])
def test_bootstrap_equals_a_plain_twin(users, side):
    values = np.rint(made_up("P@10", users, seed=users) * 10) / 10
    d = np.rint((values[:, 0] - values[:, 1]) * 10)
    drawn = d[plain_resamples(users, 500, 4)]
    turn = {"two-sided": np.abs, "greater": lambda x: x, "less": lambda x: -x}[side]

    def t_of(x, around):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (x.mean(axis=-1) - around) / (x.std(axis=-1, ddof=1) / math.sqrt(users))
        return np.nan_to_num(t, nan=0.0, posinf=np.inf, neginf=-np.inf)

    scores = scores_of({"P@10": values})
    settings = {"alternative": side, "permutations": 500, "seed": 4}
    shifted = turn(drawn.sum(axis=1) - d.sum()) >= turn(d.sum())
    ours = compare(scores, test="bootstrap", **settings)
    assert ours.rows["p"].to_numpy()[0] == (shifted.sum() + 1) / 501
    studentised = turn(t_of(drawn, d.mean())) >= turn(t_of(d, 0)) - 1e-9
    ours = compare(scores, test="bootstrap-t", **settings)
    assert ours.rows["p"].to_numpy()[0] == (studentised.sum() + 1) / 501


def test_all_tests_agree_on_what_is_plain():
    rng = np.random.default_rng(0)
    a = rng.random(400) * 0.5
    values = np.stack([a, a + 0.1 + 0.1 * rng.random(400), a + 0.02 * rng.normal(size=400)], axis=1)
    for test in TESTS:
        p = compare(scores_of({"AP": values}), test=test, permutations=2000).rows["p"].to_numpy()
        assert p[0] < 0.001
        assert p[1] > 0.05 or test == "sign"


# Intervals, effect sizes, Bayes


def all_or_nothing(users, count, share, seed):
    """Give a sample in which systems that hit all or nothing meet a steady one, alike in mean."""
    rng = np.random.default_rng(seed)
    values = (rng.random((users, count)) < share).astype(float)
    matrix = np.column_stack([values, np.full(users, share)])
    return sample(matrix, Pairs(np.arange(count), np.full(count, count)))


def test_skewed_differences_by_the_formula():
    rng = np.random.default_rng(6)
    d = rng.exponential(size=60) ** 2
    given = sample(np.stack([d, np.zeros(60)], axis=1), all_pairs(2))
    is_skewed, of = classic.skewed_differences(given)
    skewness = stats.skew(d, bias=False) / math.sqrt(60)
    assert of.skewness == pytest.approx(skewness)
    assert is_skewed.all()
    t = d.mean() / stats.sem(d)
    straight = t + skewness * (t * t / 3 + 1 / 6) + skewness**2 * t**3 / 27
    assert classic.t_test(given, 0) == pytest.approx(2 * stats.t.sf(min(t, straight), 59))
    assert classic.t_test(given, 1) == pytest.approx(stats.t.sf(t, 59))
    assert classic.t_test(given, -1) == pytest.approx(stats.t.sf(-straight, 59))


def test_few_users_and_little_skewness_keep_students_t():
    rng = np.random.default_rng(7)
    for d in (rng.exponential(size=29) ** 3, rng.normal(size=500), rng.random(100)):
        given = sample(np.stack([d, np.zeros(d.size)], axis=1), all_pairs(2))
        assert not classic.skewed_differences(given)[0].any()
        theirs = stats.ttest_1samp(d, 0)
        assert classic.t_test(given, 0) == pytest.approx(theirs.pvalue, rel=1e-10)
        low, high = mean_ends(given, 0.95)
        ends = theirs.confidence_interval()
        assert (low[0], high[0]) == pytest.approx((ends.low, ends.high))


def test_a_constant_difference_is_not_skewed():
    given = sample(np.tile([0.4, 0.3], (40, 1)), all_pairs(2))
    assert not classic.skewed_differences(given)[0].any()
    low, high = mean_ends(given, 0.95)
    assert (low[0], high[0]) == pytest.approx((0.1, 0.1))


def test_skewed_interval_and_p_agree():
    given = all_or_nothing(100, 400, 0.08, seed=8)
    for level in (0.9, 0.99):
        low, high = mean_ends(given, level)
        excludes = (low > 0) | (high < 0)
        assert np.array_equal(excludes, classic.t_test(given, 0) < 1 - level)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.9])
def test_all_or_nothing_against_steady(share):
    given = all_or_nothing(100, 4000, share, seed=[9, round(100 * share)])
    low, high = mean_ends(given, 0.95)
    # 93.5 % less three Monte-Carlo errors; the test errs as often as the interval misses.
    assert np.mean((low <= 0) & (high >= 0)) >= 0.935 - 0.012
    assert np.mean(classic.t_test(given, 0) <= 0.05) <= 0.06 + 0.012
    plain = student_ends(given.difference, given.standard_error, 99, 0.95)
    assert np.all(low <= plain[0])
    assert np.all(high >= plain[1])


def test_a_note_tells_of_skewed_differences():
    values = np.column_stack([np.arange(80) < 5, np.full(80, 0.06), np.full(80, 0.05)])
    result = compare(scores_of({"P@1": values}), test="t")
    expected = (
        "P@1: 2 differences rest on few users (strongly skewed): 95% CI and p by Hall's "
        "transformation where that is more cautious than t"
    )
    assert expected in result.notes
    assert not any("Hall" in note for note in compare(scores_of({"P@1": values[:20]})).notes)
    assert not any(
        "Hall" in note for note in compare(scores_of({"P@1": values}), interval="bca").notes
    )


def test_bca_agrees_with_scipy():
    rng = np.random.default_rng(5)
    d = rng.exponential(size=80) ** 1.5 / 10
    values = np.stack([d, np.zeros(80)], axis=1)
    row = (
        compare(scores_of({"DCG": values}), interval="bca", resamples=20_000)
        .table()
        .row(0, named=True)
    )
    theirs = stats.bootstrap((d,), np.mean, n_resamples=20_000, method="BCa", rng=1)
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert row["low"] == pytest.approx(theirs.confidence_interval.low, abs=0.03 * width)
    assert row["high"] == pytest.approx(theirs.confidence_interval.high, abs=0.03 * width)
    t = stats.ttest_1samp(d, 0).confidence_interval()
    assert row["low"] > t.low  # skewed to the right: both ends move there
    assert row["high"] > t.high
    # As does the upper end of ours, and the lower one stays.
    ours = compare(scores_of({"DCG": values})).table().row(0, named=True)
    assert ours["low"] == pytest.approx(t.low, rel=1e-12)
    assert ours["high"] > row["high"]


def test_bca_equals_the_formula_on_the_same_draws():
    values = made_up("P@10", 40, seed=2)
    d = values[:, 0] - values[:, 1]
    drawn = d[plain_resamples(40, 2000, 0)].mean(axis=1)
    share = (np.mean(drawn < d.mean() - 1e-12) + np.mean(drawn < d.mean() + 1e-12)) / 2
    z0 = stats.norm.ppf(share)
    jackknife = (d.sum() - d) / 39
    away = jackknife.mean() - jackknife
    a = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    z = z0 + stats.norm.ppf([0.05, 0.95])
    expected = np.quantile(drawn, stats.norm.cdf(z0 + z / (1 - a * z)))
    row = compare(scores_of({"P@10": values}), interval="bca", resamples=2000, level=0.9)
    low, high = row.table().select("low", "high").row(0)
    assert (low, high) == pytest.approx(tuple(expected), rel=1e-9)


def test_effect_sizes():
    values = made_up("AP", 12, seed=1)
    d = values[:, 0] - values[:, 1]
    row = compare(scores_of({"AP": values})).table().row(0, named=True)
    assert row["cohen_d"] == pytest.approx(d.mean() / d.std(ddof=1))
    exact = math.gamma(11 / 2) / (math.sqrt(11 / 2) * math.gamma(10 / 2))
    assert row["hedges_g"] == pytest.approx(row["cohen_d"] * exact)
    assert exact == pytest.approx(1 - 3 / (4 * 11 - 1), abs=1e-3)
    assert row["better"] == np.mean(d > 0)
    assert row["better"] + row["better_against"] + row["equal"] == pytest.approx(1)


def test_bayesian_t():
    values = made_up("nDCG", 60, seed=4)
    d = values[:, 0] - values[:, 1]
    posterior = stats.t(59, d.mean(), d.std(ddof=1) / math.sqrt(60))
    row = compare(scores_of({"AP": values}), rope=0.01).table().row(0, named=True)
    expected = [
        posterior.sf(0.01),
        posterior.cdf(0.01) - posterior.cdf(-0.01),
        posterior.cdf(-0.01),
    ]
    names = ("p_better", "p_equivalent", "p_better_against")
    assert [row[name] for name in names] == pytest.approx(expected, rel=1e-9)
    lower = compare(scores_of({"anti-P@10": values}), rope=0.01).table().row(0, named=True)
    assert [lower[name] for name in names] == pytest.approx(expected[::-1], rel=1e-9)
    without = compare(scores_of({"AP": values}), rope=0.0).table().row(0, named=True)
    assert without["p_equivalent"] == pytest.approx(0, abs=1e-12)
    # A flat prior: the probability that a is not better is the one-sided p of the t test.
    one_sided = stats.ttest_1samp(d, 0, alternative="greater").pvalue
    assert without["p_better_against"] == pytest.approx(one_sided, rel=1e-9)


# Corrections

METHODS = {"holm": "holm", "bonferroni": "bonferroni", "bh": "fdr_bh", "by": "fdr_by"}


@pytest.mark.parametrize("method", METHODS)
def test_corrections_equal_statsmodels(method):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 10, 210):
        for power in (1, 4):
            p = rng.random(size) ** power
            p[rng.random(size) < 0.2] = p[0]  # ties
            _, theirs, *_ = multitest.multipletests(p, method=METHODS[method])
            assert correct(p, method) == pytest.approx(theirs, rel=1e-14)
            gaps = np.insert(p, 1, np.nan)
            assert np.delete(correct(gaps, method), 1) == pytest.approx(theirs, rel=1e-14)
            assert math.isnan(correct(gaps, method)[1])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_corrections_are_monotone_and_capped(p):
    for method in METHODS:
        corrected = correct(p, method)
        assert (corrected >= np.array(p)).all()
        assert (corrected <= 1).all()
        assert (np.diff(corrected[np.argsort(p, kind="stable")]) >= 0).all()


def test_the_step_of_holm_and_bh():
    """Each p against its own threshold would reject two of three by either."""
    p = [0.020, 0.021, 0.022]
    assert (correct(p, "holm") > 0.05).all()
    assert (correct(p, "bh") <= 0.05).all()


def test_correction_is_of_each_metric_or_of_all():
    scores = scores_of({kind: made_up(kind, 40, 4, seed=1) for kind in ("P@10", "AP")})
    each = compare(scores, permutations=2000, correction="holm")
    for label in ("P@10", "AP"):
        assert (
            each[label].rows["p_corrected"].to_numpy().tolist()
            == correct(each[label].rows["p"].to_numpy()).tolist()
        )
    whole = compare(scores, permutations=2000, correction="bh", family="all").table()
    assert whole["p_corrected"].to_list() == correct(whole["p"].to_numpy(), "bh").tolist()


@pytest.mark.parametrize("family", ["metric", "all"])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_max_t_equals_a_plain_twin(family, alternative):
    values = {kind: np.rint(made_up(kind, 80, 4, seed=6) * 10) for kind in ("P@10", "AP")}
    scores = scores_of(values)
    turn = {"two-sided": np.abs, "greater": lambda x: x, "less": lambda x: -x}[alternative]
    observed, drawn = [], []
    for matrix in values.values():
        d = np.stack(
            [matrix[:, i] - matrix[:, j] for i, j in itertools.combinations(range(4), 2)], 1
        )
        scale = np.sqrt((d**2).sum(axis=0))
        observed.append(turn(d.sum(axis=0) / scale))
        drawn.append(turn(plain_flips(d, 1000, 3) / scale))
    if family == "all":
        observed, drawn = [np.concatenate(observed)], [np.concatenate(drawn, axis=1)]
    expected = []
    for z, null in zip(observed, drawn, strict=True):
        order = np.argsort(-z, kind="stable")
        top = np.maximum.accumulate(null[:, order][:, ::-1], axis=1)[:, ::-1]
        p = np.maximum.accumulate(((top >= z[order] - 1e-12).sum(axis=0) + 1) / 1001)
        expected.append(np.empty(p.size))
        expected[-1][order] = p
    ours = compare(
        scores, permutations=1000, correction="maxT", seed=3, family=family, alternative=alternative
    ).table()
    assert ours["p_corrected"].to_list() == pytest.approx(np.concatenate(expected).tolist())
    assert (ours["p_corrected"] >= ours["p"]).all()


def test_max_t_is_no_weaker_than_bonferroni():
    """Systems that hardly differ cost next to nothing: Holm cannot know that."""
    rng = np.random.default_rng(1)
    a = rng.random(200)
    twins = a[:, None] + 1e-3 * rng.normal(size=(200, 5))
    other = a + 0.05 + 0.3 * rng.normal(size=200)
    scores = scores_of({"DCG": np.column_stack([twins, other])})
    p = {
        name: compare(scores, permutations=5000, correction=name)
        .table()
        .filter(pl.col("against") == "s5")
        for name in ("maxT", "holm")
    }
    assert p["maxT"]["p_corrected"].max() < p["holm"]["p_corrected"].max()


def test_tukey_equals_numpy_within_monte_carlo_error():
    values = made_up("P@10", 60, 4, seed=8)
    ours = compare(scores_of({"P@10": values}), permutations=20_000, correction="tukey")
    rng = np.random.default_rng(0)
    whole = np.rint(values * 10)
    shuffled = rng.permuted(np.broadcast_to(whole, (20_000, 60, 4)), axis=2).sum(axis=1)
    ranges = shuffled.max(axis=1) - shuffled.min(axis=1)
    total = whole.sum(axis=0)
    pairs = itertools.combinations(range(4), 2)
    for (i, j), p in zip(pairs, ours.rows["p_corrected"].to_numpy(), strict=True):
        theirs = np.mean(ranges >= abs(total[i] - total[j]))
        assert abs(p - theirs) <= 4.5 * math.sqrt(2 * max(p * (1 - p), 1e-4) / 20_000)


def test_shuffles_are_uniform():
    """Every order of three systems comes up equally often."""
    values = np.array([[0.0, 1.0, 3.0]])
    ranges = shuffled_ranges(values, 3, 100)
    assert (ranges == 3).all()
    two = np.array([[0.0, 1.0, 3.0], [0.0, 10.0, 30.0]])
    seen, counts = np.unique(shuffled_ranges(two, 3, 60_000), return_counts=True)
    orders = itertools.permutations((0.0, 10.0, 30.0))
    sums = [np.array([0.0, 1.0, 3.0]) + order for order in orders]
    expected = {s.max() - s.min() for s in sums}
    assert set(seen) == expected
    assert counts == pytest.approx([10_000] * 6, abs=450)


# The user is the unit


def test_several_lists_of_a_user_are_one_value():
    """Two users with four and two lists: hand-worked.

    s0 less s1 per list: user 0 has 1 four times, user 1 has -1 twice. Mean over lists 1/3. Lists
    as units would give 64 patterns; users have 4, and |4 - 2| is reached by all: |4 + 2| too.
    """
    values = np.array([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 2)
    user = [0, 0, 0, 0, 1, 1]
    result = compare(scores_of({"P@1": values}, user=user), correction=None)
    assert result.card["users"]["P@1"] == 2
    assert result.card["permutations"] == 4
    assert result.table()["value"][0] == pytest.approx(2 / 6)
    assert result.rows["p"].to_numpy()[0] == 1.0
    over = compare(scores_of({"P@1": values}, user=user, over="users"), correction=None)
    assert over.table()["value"][0] == 0
    strata = scores_of({"P@1": values}, user=user, over="strata", stratum=[0, 0, 0, 1, 1, 1])
    # Strata means of the difference: 1 and (1 - 1 - 1) / 3.
    assert compare(strata).table()["value"][0] == pytest.approx((1 - 1 / 3) / 2)


def test_repeated_folds_do_not_make_users():
    """The same users and values in five folds: the same p, not five times the evidence."""
    values = made_up("nDCG", 30, 3, seed=7)
    one, five = scores_of({"AP": values}), [scores_of({"AP": values})] * 5
    for test in TESTS:
        p = [
            compare(scores, test=test, permutations=500).rows["p"].to_numpy()
            for scores in (one, five)
        ]
        assert p[0] == pytest.approx(p[1], rel=1e-6)
    assert compare(five).card["users"]["AP"] == 30


def test_folds_of_other_users():
    """A fold per half of the users: the mean of the folds' means, each user once."""
    values = made_up("P@10", 20, 2, seed=3)
    parts = [
        scores_of({"P@10": values[:10]}, user=range(10)),
        scores_of({"P@10": values[10:]}, user=range(10, 20)),
    ]
    whole, folds = compare(scores_of({"P@10": values})), compare(parts)
    assert folds.card["users"]["P@10"] == 20
    assert folds.table()["value"][0] == pytest.approx(whole.table()["value"][0])
    assert folds.rows["p"].to_numpy()[0] == pytest.approx(whole.rows["p"].to_numpy()[0])


def test_undefined_values_leave_their_users_out():
    values = made_up("nDCG", 40, 3, seed=2)
    gaps = values.copy()
    gaps[[3, 7], 1] = np.nan
    kept = np.delete(values, [3, 7], axis=0)
    skipped = compare(scores_of({"AP": gaps}, undefined="skip"), test="t")
    assert skipped.card["users"]["AP"] == 38
    assert "2 of AP" in "\n".join(skipped.notes)
    expected = [stats.ttest_rel(kept[:, i], kept[:, j]).pvalue for i, j in ((0, 1), (0, 2), (1, 2))]
    assert skipped.rows["p"].to_numpy() == pytest.approx(expected, rel=1e-9)
    as_zero = compare(scores_of({"AP": gaps}), test="t")
    zero = np.nan_to_num(gaps)
    assert as_zero.rows["p"].to_numpy()[0] == pytest.approx(
        stats.ttest_rel(zero[:, 0], zero[:, 1]).pvalue
    )
    for test in TESTS:
        few, all_of_them = (
            compare(scores, test=test, permutations=4000, interval="bca", resamples=200).table()
            for scores in (scores_of({"AP": gaps}, undefined="skip"), scores_of({"AP": kept}))
        )
        near = 0.03 if test == "randomisation" else 1e-9  # signs belong to users' places
        assert few["p"].to_list() == pytest.approx(all_of_them["p"].to_list(), abs=near)
        for name in ("value", "low", "high", "cohen_d", "better"):
            assert few[name].to_list() == pytest.approx(all_of_them[name].to_list(), rel=1e-6)


def test_pairing_decides():
    """Users differ much, systems little but always: only a paired test can see it."""
    rng = np.random.default_rng(0)
    base = rng.random(60)
    values = np.stack([base + 0.01 + 0.005 * rng.random(60), base], axis=1)
    assert stats.ttest_ind(*values.T).pvalue > 0.5
    assert stats.ranksums(*values.T).pvalue > 0.5
    for test in TESTS:
        p = compare(scores_of({"DCG": values}), test=test, permutations=999).rows["p"].to_numpy()[0]
        assert p <= 0.001


# What is printed


@pytest.fixture
def result():
    rng = np.random.default_rng(2)
    a = rng.random((200, 1)) * 0.5
    values = a + np.array([0.0, 0.2, 0.1, 0.21]) + 0.05 * rng.normal(size=(200, 4))
    return compare(scores_of({"AP": values, "anti-P@10": values}), permutations=2000, rope=0.01)


def test_ranking_is_best_first(result):
    higher, lower = result["AP"].parts["ranking"].rows, result["anti-P@10"].parts["ranking"].rows
    assert higher["system"].to_list() == ["s3", "s1", "s2", "s0"]
    assert lower["system"].to_list() == ["s0", "s2", "s1", "s3"]
    assert higher["value"].to_list()[0] is None
    assert (higher["value"][1:] < 0).all()
    assert (lower["value"][1:] > 0).all()
    assert lower["letters"].to_list()[0] == "a"
    assert (higher["low"][1:] <= higher["value"][1:]).all()
    pair = (
        result["AP"]
        .rows.filter((pl.col("system") == "s2") & (pl.col("against") == "s3"))
        .row(0, named=True)
    )
    assert higher["value"][2] == pair["value"]
    turned = result["AP"].rows.filter((pl.col("system") == "s1") & (pl.col("against") == "s3"))
    assert (higher["low"][1], higher["high"][1]) == turned.select("low", "high").row(0)


def test_text_markdown_latex_html(result):
    text = str(result)
    assert text.splitlines()[0] == "AP (higher is better), 200 users"
    assert "anti-P@10 (lower is better), 200 users" in text
    assert "2,000 permutations" in text
    assert "Holm over 6 pairs" in text
    markdown = result["AP"].to_markdown()
    assert markdown.splitlines()[2].startswith(r"| \# | system | mean | difference | 95% CI | p ")
    assert markdown.splitlines()[4].startswith("| 1 | s3 |")
    assert "**AP (higher is better), 200 users**" in result.to_markdown()
    latex = result["AP"].to_latex()
    assert latex.splitlines()[0] == "% AP (higher is better), 200 users"
    assert latex.partition("\n")[2].startswith("\\begin{tabular}{rlrrrrl}\n\\toprule")
    assert "95\\% CI" in latex
    assert "% anti-P@10" in result.to_latex()
    assert result._repr_html_().count("<table>") == 2
    assert "pairs: 2 metrics, 3 systems, 3 againsts" in result._repr_html_()
    strange = dataclasses.replace(result, notes=("<i>",))
    assert "<i>" not in strange._repr_html_()


def test_reference(result):
    values = np.random.default_rng(3).random((50, 3)) + np.array([0, 0.5, 0])
    scores = scores_of({"AP": values, "anti-P@10": values})
    against = compare(scores, against="s0", permutations=2000)
    assert against["AP"].rows.select("system", "against").rows() == [("s1", "s0"), ("s2", "s0")]
    verdicts = against["AP"].parts["ranking"].rows.select("system", "verdict").rows()
    assert dict(verdicts) == {"s1": "better", "s0": "reference", "s2": ""}
    assert (
        dict(against["anti-P@10"].parts["ranking"].rows.select("system", "verdict").rows())["s1"]
        == "worse"
    )
    assert "differences to 's0'" in str(against)
    assert "letter" not in str(against)
    assert len(against.figure("pairs").spec["datasets"]["rows"]) == 4
    assert against.figure().spec["datasets"]["rows"][0]["system"] == "s1"


def test_better_follows_the_metric():
    values = made_up("nDCG", 60, 2)[:, ::-1].copy()
    values[:, 0] += 0.1
    scores = scores_of({"AP": values, "anti-P@10": values})
    result = compare(scores, alternative="better", permutations=999, correction=None)
    assert result["AP"].rows["p"].to_numpy()[0] < 0.05
    assert result["anti-P@10"].rows["p"].to_numpy()[0] > 0.95
    assert result["AP"].rows["better"][0] == result["anti-P@10"].rows["better_against"][0]


def test_figures(result):
    figure = result.figure("pairs", "AP")
    rows = figure.spec["datasets"]["rows"]
    assert len(rows) == 12
    best = [row["verdict"] for row in rows if row["row"] == "s3" and row["column"] == "s0"]
    assert best == ["row better"]
    worst = result.figure("pairs", "anti-P@10").spec["datasets"]["rows"]
    assert [r["verdict"] for r in worst if r["row"] == "s3" and r["column"] == "s0"] == [
        "row worse"
    ]
    differences = result.figure("differences", "AP")
    assert len(differences.spec["datasets"]["rows"]) == 3
    assert b"<svg" in differences._as(".svg")
    assert b"<svg" in figure._as(".svg")
    with pytest.raises(UnknownName, match="pairs"):
        result.figure("pair")


# Letters


@given(
    st.integers(1, 7).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, 2 ** (n * (n - 1) // 2) - 1))
    )
)
def test_systems_share_a_letter_iff_they_do_not_differ(case):
    n, bits = case
    differ = np.zeros((n, n), bool)
    for number, (i, j) in enumerate(itertools.combinations(range(n), 2)):
        differ[i, j] = differ[j, i] = bits >> number & 1
    shown = ranking.letter_display(differ)
    assert all(shown)
    for i, j in itertools.combinations(range(n), 2):
        assert bool(set(shown[i]) & set(shown[j])) != differ[i, j]


def test_letters_beyond_z():
    shown = ranking.letter_display(~np.eye(60, dtype=bool))
    assert len(set(shown)) == 60
    assert shown[25:28] == ["z", "A", "B"]
    assert shown[51:54] == ["Z", "a1", "b1"]


# Odd input


def test_identical_and_constant_systems():
    rng = np.random.default_rng(0)
    a = rng.random(30)
    same = scores_of({"AP": np.stack([a, a, np.full(30, 0.5)], axis=1)})
    for test in TESTS:
        result = compare(same, test=test, permutations=999, interval="bca", resamples=99)
        row = result.table().row(0, named=True)
        assert (row["p"], row["value"], row["cohen_d"], row["equal"]) == (1, 0, 0, 1)
        assert (row["low"], row["high"]) == (0, 0)
    nothing = compare(scores_of({"AP": np.zeros((5, 3))}))
    assert nothing.rows["p"].to_numpy().tolist() == [1, 1, 1]
    assert nothing.parts["ranking"].rows["letters"].to_list() == ["a", "a", "a"]


def test_one_user_only():
    one = scores_of({"AP": [[0.4, 0.1]]})
    result = compare(one)
    assert result.rows["p"].to_numpy()[0] == 1.0
    assert result.table()["low"][0] is None
    assert "–" in str(result)
    assert compare(one, test="sign").rows["p"].to_numpy()[0] == 1.0
    for test in ("t", "bootstrap-t"):
        with pytest.raises(DataError, match="at least 2 users"):
            compare(one, test=test)


def test_a_constant_difference():
    values = np.stack([np.full(6, 0.5), np.full(6, 0.25)], axis=1)
    row = compare(scores_of({"AP": values}), test="t", rope=0.1).table().row(0, named=True)
    assert (row["p"], row["low"], row["high"]) == (0, 0.25, 0.25)
    assert row["cohen_d"] == math.inf
    assert row["p_better"] == 1
    assert compare(scores_of({"AP": values})).rows["p"].to_numpy()[0] == 2 / 64


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"test": "student"}, "test"),
        ({"alternative": "bigger"}, "alternative"),
        ({"correction": "hulm"}, "Did you mean 'holm'"),
        ({"family": "x"}, "family"),
        ({"interval": "x"}, "interval"),
        ({"permutations": 0}, "permutations must be a whole number from 1 up"),
        ({"resamples": 0}, "resamples must be a whole number"),
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"rope": -0.1}, "rope"),
        ({"rope": math.nan}, "rope"),
        ({"against": "s9"}, "against"),
        ({"threads": 0}, "threads"),
        ({"metrics": "nDCG@10"}, "nDCG@10"),
        ({"metrics": []}, "no metrics are named"),
        ({"test": "t", "correction": "maxT"}, "needs permutations"),
        ({"alternative": "less", "correction": "tukey"}, "two-sided"),
    ],
)
def test_settings_that_are_not_right(settings, match):
    with pytest.raises(SettingError, match=match):
        compare(scores_of({"AP": made_up("AP", 10, 3)}), **settings)


def test_scores_that_cannot_be_compared():
    with pytest.raises(SettingError, match="one system only, 's0'"):
        compare(scores_of({"AP": np.ones((4, 1))}))
    with pytest.raises(DataError, match="no user"):
        compare(scores_of({"AP": np.full((4, 2), np.nan)}, undefined="skip"))
    with pytest.raises(DataError, match="infinite"):
        compare(scores_of({"DCG": [[np.inf, 1.0], [0.0, 1.0]]}))
    other = scores_of({"AP": np.ones((4, 3))})
    with pytest.raises(DataError, match="same systems"):
        compare([scores_of({"AP": np.ones((4, 2))}), other])
    run = {1: [10], 2: [20]}
    test = {"user": [1, 2], "item": [10, 20], "rating": [5, 5]}
    whole = us.evaluate(test, {"a": run, "b": run}, ["AP", "Coverage"], liked=4, items=[10, 20])
    assert compare(whole).values_of("metric") == ["AP"]
    with pytest.raises(SettingError, match="Coverage"):
        compare(whole, "Coverage")


def test_takes_what_was_paired():
    scores = scores_of({"AP": made_up("AP", 10, 3)})
    assert compare(paired(scores)).table().equals(compare(scores).table())


def test_means_are_those_of_the_scores():
    values = made_up("nDCG", 1000, 3)
    scores = scores_of({"AP": values})
    means = ranking.means_of(compare(scores, permutations=10), "AP")
    assert means == pytest.approx(scores.mean("AP"), rel=1e-15)


# Distributions


def test_distributions_equal_scipy():
    rng = np.random.default_rng(0)
    df = np.floor(np.exp(rng.random(500) * 14)) + 1
    t = rng.normal(size=500) * np.exp(rng.normal(size=500))
    assert distributions.student_t_sf(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-9)
    n = np.floor(np.exp(rng.random(500) * 14)) + 1
    k = np.floor(n / 2 + rng.normal(size=500) * np.sqrt(n))
    k[:2] = -1, n[1]
    expected = stats.binom.cdf(k, n, 0.5)
    assert distributions.binomial_half_cdf(k, n) == pytest.approx(expected, rel=1e-9)
    for df in (1, 2, 10, 6039, 1e6):
        for level in (0.025, 0.5, 0.9, 0.975, 0.9995):
            theirs = stats.t.ppf(level, df)
            assert distributions.student_t_quantile(level, df) == pytest.approx(theirs, rel=1e-10)
    special = pytest.importorskip("scipy.special")
    a, b = np.exp(rng.random((2, 300)) * 12 - 2)
    x = rng.random(300)
    ours = distributions.incomplete_beta(x, 1 - x, a, b)
    assert ours == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-300)


# The command


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    test = [f"{u},{i},{rng.integers(1, 6)}" for u in range(30) for i in range(8)]
    (tmp_path / "test.csv").write_text("\n".join(["user,item,rating", *test]) + "\n")
    for name in ("one", "two", "three"):
        rows = [
            f"{u},{i},{rank}" for u in range(30) for rank, i in enumerate(rng.permutation(8), 1)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,item,rank", *rows]) + "\n")
    return tmp_path


@pytest.fixture
def call(capsys):
    import typer

    from unskew.cli.command import callback

    app = typer.Typer()
    app.command()(callback("compare"))

    def do(*arguments):
        app([str(argument) for argument in arguments], standalone_mode=False)
        return capsys.readouterr().out

    return do


def judged(files):
    runs = [part for name in ("one", "two", "three") for part in ("-r", files / f"{name}.csv")]
    return ["-j", files / "test.csv", *runs, "--liked", 4, "-m", "P@3,nDCG@3"]


def assert_printed(text, result):
    """Check that a table in the terminal says what the result does: spaces may differ."""
    printed = [line.split() for line in text.splitlines()]
    assert all(line.split() in printed for line in str(result).splitlines())


def test_command_prints_what_compare_finds(files, call):
    runs = {name: files / f"{name}.csv" for name in ("one", "two", "three")}
    scores = us.evaluate(files / "test.csv", runs, ["P@3", "nDCG@3"], liked=4)
    expected = compare(scores, permutations=1000, seed=3)
    arguments = [*judged(files), "--permutations", 1000, "--seed", 3]
    assert_printed(call(*arguments), expected)
    assert call(*arguments, "--format", "markdown").strip() == expected.to_markdown()
    assert call(*arguments, "--format", "latex").strip() == expected.to_latex()
    as_json = json.loads(call(*arguments, "--format", "json"))
    assert as_json["rows"][0]["p"] == expected["P@3"].rows["p"].to_numpy()[0]
    assert us.report.Estimates.from_dict(as_json).table().equals(expected.table())
    assert (
        call(*arguments, "--format", "csv")
        .splitlines()[0]
        .startswith("metric,system,against,n,mean,")
    )
    call(*arguments, "--figure", f"pairs={files / 'out.svg'}", "--correction", "none")
    assert "<svg" in (files / "out.svg").read_text()
    scores.save(files / "saved")
    again = call("--scores", files / "saved", "-m", "P@3", "--test", "t", "--against", "one")
    assert_printed(again, compare(scores, "P@3", test="t", against="one"))


def test_command_refuses(files, call):
    with pytest.raises(SettingError, match="give --judgments and --run"):
        call("-m", "P@3")
    with pytest.raises(SettingError, match="not both"):
        call(*judged(files), "--scores", files)
    with pytest.raises(SettingError, match="ending"):
        call(*judged(files), "-o", files / "x.doc")
    with pytest.raises(UnknownName, match="format"):
        call(*judged(files), "--format", "docx")


# Statistical, and speed


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_p_is_uniform_under_the_null(kind):
    """Two systems whose values are dealt at random: every test keeps its level."""
    rng = np.random.default_rng(11)
    worlds = 2000
    found = {test: np.empty(worlds) for test in ("randomisation", "t", "wilcoxon")}
    for world in range(worlds):
        values = rng.permuted(made_up(kind, 40, 2, seed=world), axis=1)
        scores = scores_of({kind: values})
        for test, p in found.items():
            p[world] = (
                compare(scores, test=test, permutations=199, seed=world).rows["p"].to_numpy()[0]
            )
    for test, p in found.items():
        for level in (0.01, 0.05, 0.1, 0.5):
            share = np.mean(p <= level)
            spread = math.sqrt(level * (1 - level) / worlds)
            if test == "randomisation":
                assert share <= level + 4.5 * spread  # exact: never above
            assert abs(share - level) <= 4.5 * spread + 0.03 * (
                test != "randomisation" or kind == "P@10"
            )


@pytest.mark.slow
@pytest.mark.parametrize("interval", ["t", "bca"])
def test_intervals_cover(interval):
    rng = np.random.default_rng(12)
    worlds, inside = 1500, 0
    for world in range(worlds):
        values = np.stack([rng.beta(2, 5, 120), rng.beta(2, 6, 120)], axis=1)
        scores = scores_of({"AP": values})
        row = (
            compare(scores, test="t", interval=interval, resamples=1000, seed=world)
            .table()
            .row(0, named=True)
        )
        inside += row["low"] <= 2 / 7 - 2 / 8 <= row["high"]
    assert abs(inside / worlds - 0.95) <= 4.5 * math.sqrt(0.95 * 0.05 / worlds) + 0.005


@pytest.mark.slow
@pytest.mark.parametrize("correction", ["holm", "maxT", "tukey"])
def test_family_wise_error_is_kept(correction):
    """Five systems that do not differ: any false rejection in at most 5 % of worlds."""
    rng = np.random.default_rng(13)
    worlds, wrong = 800, 0
    for world in range(worlds):
        values = rng.permuted(made_up("nDCG", 40, 5, seed=world), axis=1)
        result = compare(
            scores_of({"AP": values}), permutations=499, correction=correction, seed=world
        )
        wrong += bool(result.table()["significant"].any())
    assert wrong / worlds <= 0.05 + 4.5 * math.sqrt(0.05 * 0.95 / worlds)


def test_much_faster_than_scipy():
    """All pairs at once, against scipy's pair by pair; a ratio far below the real one."""
    values = made_up("nDCG", 2000, 12)
    scores = scores_of({"AP": values})
    compare(scores, permutations=100, threads=1)
    start = time.thread_time()
    compare(scores, permutations=20_000, threads=1)
    ours = (time.thread_time() - start) / (66 * 20_000)
    start = time.thread_time()
    scipy_randomisation(values[:, 0], values[:, 1], n=100)
    theirs = (time.thread_time() - start) / 100
    assert theirs > 100 * ours


def test_sample_of_a_matrix():
    values = made_up("P@10", 50, 3)
    held = sample(values.copy(), all_pairs(3))
    assert held.means == pytest.approx(values.mean(axis=0), rel=1e-15)
    assert held.sd == pytest.approx(
        [np.std(values[:, i] - values[:, j], ddof=1) for i, j in ((0, 1), (0, 2), (1, 2))]
    )
    assert (
        held.observed.tolist()
        == (held.values.sum(0)[[0, 0, 1]] - held.values.sum(0)[[1, 2, 2]]).tolist()
    )


def test_one_number_has_the_bits_that_it_has_among_others():
    """Quantiles ask for one value at a time, by another loop; a twin in the array sets no end."""
    for df, t in itertools.product((1.0, 2.0, 7.5, 300.0), (0.01, 0.7, 2.3, 40.0)):
        alone = float(distributions.student_t_sf(t, df))
        twins = distributions.student_t_sf(np.array([t, t]), np.array([df, df]))
        assert [alone, alone] == twins.tolist()
