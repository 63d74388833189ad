"""`answer`: errors, intervals, p-values, corrections and clusters against oracles."""

import numpy as np
import pytest

import unskew as us
from unskew.report.columns import ESTIMATE, GROUP, METRIC, TEST, Method, Question
from unskew.stats.answer import answer, mean_influence

stats = pytest.importorskip("scipy.stats")
regression = pytest.importorskip("statsmodels.regression.linear_model")
multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests

MEANS = Question(
    name="means", columns=(METRIC, GROUP, *ESTIMATE, *TEST), method=Method(estimand="the mean")
)
KEYS = [{"metric": metric, "group": group} for metric in ("P@5", "AP") for group in "abc"]


@pytest.fixture
def values():
    """Return users x rows: skewed values, of which some users are no part."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 6)) ** 3 + 0.4
    x[rng.random((40, 6)) < 0.3] = np.nan
    return x


def test_means_equal_scipy(values):
    es = answer(MEANS, KEYS, *mean_influence(values), correction=None)
    for row, column in zip(es.rows.iter_rows(named=True), values.T, strict=True):
        x = column[~np.isnan(column)]
        test = stats.ttest_1samp(x, 0)
        low, high = test.confidence_interval(0.95)
        assert (row["n"], row["value"]) == (x.size, pytest.approx(x.mean()))
        assert row["se"] == pytest.approx(stats.sem(x))
        assert (row["low"], row["high"]) == pytest.approx((low, high))
        assert row["p"] == row["p_corrected"] == pytest.approx(test.pvalue)
        assert row["significant"] == (test.pvalue <= 0.05)
    assert es.footer() == ["95% CI: t, by user", "p: t test, not corrected"]


def test_clusters_equal_a_cluster_robust_regression(values):
    households = np.repeat(np.arange(10), 4)
    es = answer(MEANS, KEYS, *mean_influence(values), clusters=households)
    for row, column in zip(es.rows.iter_rows(named=True), values.T, strict=True):
        there = ~np.isnan(column)
        fit = regression.OLS(column[there], np.ones(there.sum())).fit(
            cov_type="cluster", cov_kwds={"groups": households[there]}, use_t=True
        )
        assert row["n"] == len(set(households[there]))
        assert row["se"] == pytest.approx(fit.bse[0])
        assert (row["low"], row["high"]) == pytest.approx(tuple(fit.conf_int()[0]))


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_p_values_are_corrected_within_their_family(values, method):
    es = answer(MEANS, KEYS, *mean_influence(values), correction=method)
    for metric in ("P@5", "AP"):
        rows = es[metric].rows
        kind = {"holm": "holm", "bh": "fdr_bh"}[method]
        assert rows["p_corrected"].to_list() == pytest.approx(
            multipletests(rows["p"], method=kind)[1]
        )
    everything = answer(MEANS, KEYS, *mean_influence(values), correction=method, family=()).rows
    kind = {"holm": "holm", "bh": "fdr_bh"}[method]
    assert everything["p_corrected"].to_list() == pytest.approx(
        multipletests(everything["p"], method=kind)[1]
    )


def test_rows_that_hold_nothing_say_why():
    x = np.array([[1.0, np.nan, 1.0], [3.0, np.nan, 1.0], [2.0, 5.0, 1.0]])
    es = answer(MEANS, KEYS[:3], *mean_influence(x))
    alone, constant = es.row(group="b"), es.row(group="c")
    assert (alone.value, alone.low, alone.p, alone.n) == (5.0, None, None, 1)
    assert alone.note == "1 user, fewer than 2"
    assert (constant.low, constant.high, constant.p) == (1.0, 1.0, 0.0)
    assert answer(MEANS, [], [], np.zeros((3, 0))).rows.height == 0
    with pytest.raises(us.DataError, match="2 keys, 3 values"):
        answer(MEANS, KEYS[:2], *mean_influence(x))
    with pytest.raises(us.DataError, match="3 are needed"):
        answer(MEANS, KEYS[:3], *mean_influence(x), clusters=[1, 2])


@pytest.mark.slow
def test_intervals_hold_together():
    """Of 600 data sets about 95 in 100 have all of ten correlated intervals hold."""
    keys = [{"metric": "x", "group": str(number)} for number in range(10)]
    held, single = 0, 0
    for seed in range(600):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(60, 10)) + 2 * rng.normal(size=(60, 1))
        rows = answer(MEANS, keys, *mean_influence(x), together=True, seed=seed).rows
        held += bool(((rows["low"] < 0) & (rows["high"] > 0)).all())
        rows = answer(MEANS, keys, *mean_influence(x)).rows
        single += bool(((rows["low"] < 0) & (rows["high"] > 0)).all())
    assert 0.925 <= held / 600 <= 0.975
    assert single / 600 < 0.9
