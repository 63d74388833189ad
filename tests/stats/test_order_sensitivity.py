"""Order sensitivity: plain twins, closed forms of chance, a generator of its own, refusals."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import unskew as us
from unskew.errors import DataError, SettingError
from unskew.stats.list_similarity import chance_likeness


def shuffled(rng, users, candidates, shuffles, pull, noise=0.3, depth=None):
    """Return runs and presented orders of a ranker that adds `pull` x place to its scores."""
    runs, orders = [], []
    quality = rng.normal(size=(users, candidates))
    for _ in range(shuffles):
        order = rng.permuted(np.tile(np.arange(candidates), (users, 1)), axis=1)
        place = np.argsort(order, axis=1)
        score = quality - pull * place + rng.normal(0, noise, (users, candidates))
        ranked = np.argsort(-score, axis=1)[:, :depth]
        runs.append({u: ranked[u].tolist() for u in range(users)})
        orders.append({u: order[u].tolist() for u in range(users)})
    return runs, orders


def plain_rbo(a, b, p):
    """Return extrapolated RBO of two lists, read to the shorter depth."""
    m = min(len(a), len(b))
    shared = [len(set(a[:d]) & set(b[:d])) / d for d in range(1, m + 1)]
    return (1 - p) / p * sum(x * p**d for d, x in enumerate(shared, 1)) + shared[-1] * p**m


@pytest.mark.parametrize("depth", [None, 4])
def test_measures_are_plain_twins(depth):
    runs, _ = shuffled(np.random.default_rng(2), 15, 8, 3, 0.1, 1.0, depth)
    result = us.stats.order_sensitivity(runs, k=3, p=0.8)
    each = {"overlap@3": [], "RBO(p=0.8)": [], "tau": []}
    for user in range(15):
        lists = [run[user] for run in runs]
        rows = []
        for a, b in itertools.combinations(lists, 2):
            both = [item for item in a if item in b]
            tau = math.nan
            if len(both) > 1:
                tau = stats.kendalltau([a.index(i) for i in both], [b.index(i) for i in both])[0]
            rows.append((len(set(a[:3]) & set(b[:3])) / 3, plain_rbo(a, b, 0.8), tau))
        for name, column in zip(each, zip(*rows, strict=True), strict=True):
            each[name].append(np.nanmean(column))
    for row in result.table().iter_rows(named=True):
        values = np.array(each[row["measure"]])
        assert row["mean"] == pytest.approx(values.mean())
        half = stats.t.ppf(0.975, 14) * values.std(ddof=1) / math.sqrt(15)
        assert (row["low"], row["high"]) == pytest.approx((row["mean"] - half, row["mean"] + half))


def test_rbo_agrees_with_the_one_of_systems():
    a, b = [3, 1, 2, 0], [1, 3, 0, 2]
    result = us.stats.order_sensitivity([{1: a}, {1: b}])
    expected = us.stats.rbo(-np.argsort(a).astype(float), -np.argsort(b).astype(float), p=0.9)
    assert result.table()["mean"][1] == pytest.approx(expected)


def test_chance_is_the_mean_over_all_orders():
    n, m, k, p = 5, 4, 2, 0.9
    first = list(range(n))[:m]
    overlap, rbo = [], []
    for order in itertools.permutations(range(n)):
        overlap.append(len(set(first[:k]) & set(order[:k])) / k)
        rbo.append(plain_rbo(first, list(order)[:m], p))
    chance = chance_likeness(np.array([float(n)]), np.array([m]), k, p)
    assert chance[0][0] == pytest.approx(np.mean(overlap))
    assert chance[1][0] == pytest.approx(np.mean(rbo))


def test_random_lists_are_as_alike_as_chance():
    rng = np.random.default_rng(4)
    runs, _ = shuffled(rng, 3000, 6, 2, 0.0, 1e6)
    for row in us.stats.order_sensitivity(runs, k=2).table().iter_rows(named=True):
        error = (row["high"] - row["low"]) / 2 / 1.96
        assert abs(row["mean"] - row["chance"]) < 4.5 * error


def test_spread_is_a_table_with_one_factor():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(40, 1)) + rng.normal(0, 0.5, (40, 3))
    columns = {name: values[:, at] for at, name in enumerate("xyz")}
    runs = [{u: ["a", "b"] for u in range(40)}] * 3
    (row,) = us.stats.order_sensitivity(
        runs, scores={"user": np.arange(40), **columns}
    ).spread().to_dicts()  # fmt: skip
    assert row["range_of_user"] == pytest.approx(np.ptp(values, axis=1).mean())
    assert row["sd_of_mean"] == pytest.approx(values.mean(axis=0).std(ddof=1))
    within = values.var(axis=1, ddof=1).mean()
    f = stats.f_oneway(*values).statistic  # between users against within
    between = within * (f - 1) / 3
    assert row["share"] == pytest.approx(within / (within + between))


def plain_slope(runs, orders, users, candidates):
    top = bottom = 0.0
    for user in range(users):
        for item in range(candidates):
            x = np.array([order[user].index(item) + 1.0 for order in orders])
            y = np.array([
                run[user].index(item) + 1.0 if item in run[user]
                else (len(run[user]) + 1 + candidates) / 2
                for run in runs
            ])  # fmt: skip
            top += ((x - x.mean()) * (y - y.mean())).sum()
            bottom += ((x - x.mean()) ** 2).sum()
    return top / bottom


@pytest.mark.parametrize(("shuffles", "depth"), [(2, None), (3, 4), (6, None)])
def test_slope_is_a_plain_twin(shuffles, depth):
    runs, orders = shuffled(np.random.default_rng(6), 20, 7, shuffles, 0.2, 0.3, depth)
    result = us.stats.order_sensitivity(runs, presented=orders, permutations=199)
    expected = plain_slope(runs, orders, 20, 7)
    assert result.position.slope == pytest.approx(expected)
    assert result.position.low < expected < result.position.high
    assert result.position.p == pytest.approx(1 / 200)
    assert "an item that is presented sooner is listed sooner" in str(result)


def test_copied_order_has_slope_one_and_turned_minus_one():
    _, orders = shuffled(np.random.default_rng(6), 20, 7, 3, 0.2)
    turned = [{u: one[::-1] for u, one in order.items()} for order in orders]
    assert us.stats.order_sensitivity(orders, presented=orders).position.slope == pytest.approx(1)
    result = us.stats.order_sensitivity(turned, presented=orders)
    assert result.position.slope == pytest.approx(-1)
    assert "is listed later" in str(result)


def test_permutation_test_of_two_shuffles_is_that_of_signs():
    """With two shuffles an exchange flips the sign of a user's product."""
    runs, orders = shuffled(np.random.default_rng(9), 6, 5, 2, 0.02, 1.0)
    result = us.stats.order_sensitivity(runs, presented=orders, permutations=20_000)
    own = []
    for user in range(6):
        x, y = (
            np.array([[one[user].index(i) for i in range(5)] for one in both], float)
            for both in (orders, runs)
        )
        own.append(((x - x.mean(axis=0)) * (y - y.mean(axis=0))).sum())
    signs = np.array(list(itertools.product((1, -1), repeat=6)))
    exact = (np.abs(signs @ own) >= abs(sum(own)) - 1e-9).mean()
    assert abs(result.position.p - exact) < 4.5 * math.sqrt(exact * (1 - exact) / 20_000)


def test_test_of_position_keeps_its_level():
    """400 systems without an effect, at .05: more than 36 rejections come once in 1,000 times."""
    rejected = 0
    for seed in range(400):
        runs, orders = shuffled(np.random.default_rng([7, seed]), 12, 5, 3, 0.0, 0.5, 3)
        one = us.stats.order_sensitivity(runs, presented=orders, permutations=99, seed=seed)
        rejected += one.position.p <= 0.05
    assert stats.binom.ppf(0.0005, 400, 0.05) <= rejected <= stats.binom.ppf(0.9995, 400, 0.05)


def test_users_and_items_left_out_are_counted():
    runs = [{1: ["a", "b"], 2: ["a"]}, {1: ["b", "x"], 3: ["a"]}]
    orders = [{1: ["a", "b"], 2: ["a"]}, {1: ["b", "a"], 3: ["a"]}]
    result = us.stats.order_sensitivity(runs, presented=orders)
    assert result.users == 1
    assert "2 users that not all shuffles have left out" in result.notes
    assert "1 listed item not presented: left out of position" in result.notes
    plain = us.stats.order_sensitivity([runs[0], {1: ["b", "x"]}])
    assert "chance is not known" in str(plain)
    assert plain.table()["chance"].to_list() == [None, None, 0.0]
    assert math.isnan(plain.table()["mean"][2])


def test_same_bits_whatever_row_order():
    runs, orders = shuffled(np.random.default_rng(1), 30, 6, 3, 0.1)
    turned = [[dict(reversed(one.items())) for one in both] for both in (runs, orders)]
    one = us.stats.order_sensitivity(runs, presented=orders, seed=2)
    other = us.stats.order_sensitivity(turned[0], presented=turned[1], seed=2)
    assert one.to_dict() == other.to_dict()


def test_refusals():
    run = {1: ["a", "b"]}
    with pytest.raises(DataError, match="at least 2 shuffles"):
        us.stats.order_sensitivity([run])
    with pytest.raises(SettingError, match="list of runs"):
        us.stats.order_sensitivity("run.csv")
    with pytest.raises(SettingError, match="one order per run: 2 runs, 1 orders"):
        us.stats.order_sensitivity([run, run], presented=[run])
    with pytest.raises(DataError, match="no user has a list in every shuffle"):
        us.stats.order_sensitivity([run, {2: ["a"]}])
    with pytest.raises(DataError, match="same candidates"):
        us.stats.order_sensitivity([run, run], presented=[run, {1: ["a", "c"]}])
    with pytest.raises(DataError, match="presented orders of no user differ"):
        us.stats.order_sensitivity([run, run], presented=[run, run])
    with pytest.raises(SettingError, match="one system per shuffle"):
        us.stats.order_sensitivity([run, run], scores={"user": [1], "x": [1.0]})
    with pytest.raises(DataError, match="runs of shuffle '2'"):
        us.stats.order_sensitivity([run, "nothing.csv"])
