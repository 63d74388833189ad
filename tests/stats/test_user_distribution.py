"""Distribution of users' values: bands, shares, dominance, lexirecall."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import unskew as us
from unskew.stats.compare.user_distribution import (
    POINTS,
    critical_width,
    dominance,
    quantile_band,
    thresholds_of,
)
from unskew.stats.intervals.shares import net_share, share_of, sign_p

# Shares


@pytest.mark.parametrize(("k", "n"), [(0, 12), (1, 30), (15, 30), (29, 30), (30, 30)])
def test_mid_p_interval_solves_its_equation(k, n):
    _, low, high = share_of(k, n)
    binomial = scipy.stats.binom
    if k:
        above = binomial.sf(k, n, low) + 0.5 * binomial.pmf(k, n, low)
        assert above == pytest.approx(0.025, abs=1e-9)
    else:
        assert low == 0
    if k < n:
        below = binomial.cdf(k - 1, n, high) + 0.5 * binomial.pmf(k, n, high)
        assert below == pytest.approx(0.025, abs=1e-9)
    else:
        assert high == 1


def test_mid_p_intervals_cover_over_all_shares():
    """By summing the binomial exactly: mean coverage 95 %, nowhere below 93 % from n = 20 on."""
    n = 25
    ends = [share_of(k, n) for k in range(n + 1)]
    cover = [
        sum(scipy.stats.binom.pmf(k, n, p) for k in range(n + 1) if ends[k][1] <= p <= ends[k][2])
        for p in np.linspace(0.002, 0.998, 400)
    ]
    assert min(cover) > 0.925
    assert 0.95 < np.mean(cover) < 0.97


@pytest.mark.parametrize(
    ("better", "worse", "n"), [(8, 2, 50), (0, 0, 20), (5, 0, 30), (12, 9, 44)]
)
def test_net_share_is_the_score_test_inverted(better, worse, n):
    """Its ends: the restricted likelihood maximised by scipy gives |score| = z."""

    def score(delta):
        def negative(q):  # q: share worse; better is q + delta
            p = q + delta
            rest = 1 - p - q
            return -(
                better * math.log(max(p, 1e-300))
                + worse * math.log(max(q, 1e-300))
                + (n - better - worse) * math.log(max(rest, 1e-300))
            )

        low, high = max(0.0, -delta), (1 - delta) / 2
        q = scipy.optimize.minimize_scalar(
            negative, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
        ).x
        return (better - worse - n * delta) / math.sqrt(n * (2 * q + delta * (1 - delta)))

    _, lowest, highest = net_share(better, worse, n)
    assert score(lowest) == pytest.approx(1.959964, abs=2e-3)
    assert score(highest) == pytest.approx(-1.959964, abs=2e-3)


def test_sign_test_is_that_of_scipy():
    assert sign_p(8, 2) == pytest.approx(scipy.stats.binomtest(8, 10).pvalue)
    assert sign_p(0, 0) == 1


# Bands


def test_quantiles_and_ranks_of_the_band():
    x = np.random.default_rng(1).permutation(np.arange(1.0, 41.0))
    value, low, high = quantile_band(x)
    plain = [min(v for v in x if np.mean(x <= v) >= p - 1e-12) for p in POINTS]
    assert value.tolist() == plain
    c = critical_width(40, 0.95)
    at = POINTS.index(0.5)
    assert low[at] == math.ceil(20 - c * math.sqrt(10))
    assert high[at] == math.floor(20 + c * math.sqrt(10)) + 1
    assert math.isinf(low[0])


@pytest.mark.parametrize("n", [25, 200])
def test_bands_hold_together(n):
    """Of continuous values: the coverage is the level but for chance; of tied values it is more."""
    rng = np.random.default_rng(2)
    truth = scipy.stats.beta(0.3, 2).ppf(POINTS)
    hits, tied = 0, 0
    wanted = np.array([math.ceil(10 * p) - 1 for p in POINTS]) / 10
    for _ in range(1000):
        _, low, high = quantile_band(rng.beta(0.3, 2, n))
        hits += bool(((low <= truth) & (truth <= high)).all())
        _, low, high = quantile_band(rng.integers(0, 10, n) / 10)
        tied += bool(((low <= wanted) & (wanted <= high)).all())
    assert abs(hits / 1000 - 0.955) < 0.03
    assert tied / 1000 > 0.93


# Dominance


def test_first_order_is_the_largest_of_mcnemars_tests():
    rng = np.random.default_rng(3)
    one, other = rng.integers(0, 6, 80) / 5, rng.integers(0, 5, 80) / 5
    result = dominance(one, other)
    assert result.thresholds.tolist() == thresholds_of(one, other).tolist()
    plain = []
    for x in result.thresholds:
        up = int(((one > x) & (other <= x)).sum())
        down = int(((one <= x) & (other > x)).sum())
        plain.append(scipy.stats.binomtest(up, up + down, alternative="greater").pvalue)
    assert result.above.tolist() == pytest.approx(plain)
    assert result.first == pytest.approx(max(plain))


def test_second_order_without_skewness_is_a_t_test():
    """The same mean gain for all below, and a smaller spread: second order, not first."""
    rng = np.random.default_rng(4)
    other = rng.normal(0, 1, 600)
    one = 0.3 * other + 0.25 * rng.normal(0, 1, 600) + 0.2
    forward, backward = dominance(one, other), dominance(other, one)
    assert forward.second < 0.01
    assert forward.first > 0.05
    assert backward.second > 0.9
    x = max(one.max(), other.max())
    plain = scipy.stats.ttest_rel(x - other, x - one, alternative="greater").pvalue
    assert forward.second >= plain * 0.5


@pytest.mark.parametrize("draws", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_dominance_is_rarely_claimed_where_curves_touch(draws):
    """A is far better above the median and equal below it: the hardest false case."""
    rng = np.random.default_rng(5)
    claims = [0, 0]
    for _ in range(draws):
        base = rng.random(150)
        noise = rng.random(150)
        other = base
        one = np.where(noise < 0.5, 0.5 * rng.random(150), 0.5 + 0.5 * rng.random(150) ** 0.3)
        result = dominance(one, other)
        claims[0] += result.first <= 0.05
        claims[1] += dominance(other, one).first <= 0.05
    assert claims[0] / draws < 0.05 + 4.5 * math.sqrt(0.05 * 0.95 / draws)
    assert claims[1] == 0


# The result


def made(**settings):
    rng = np.random.default_rng(7)
    b = rng.binomial(10, rng.beta(1, 4, 300)) / 10
    a = np.minimum(b + rng.binomial(2, 0.4, 300) / 10, 1.0)
    c = rng.binomial(10, 0.2, 300) / 10
    values = {"user": np.arange(300), "a": a, "b": b, "c": c}
    return us.stats.user_distribution(us.stats.paired(values, metric="P@10"), **settings), values


def gains(result, a="a", b="b"):
    """Return the rows of a pair by quantity."""
    pairs = result.parts["pairs"]
    return {name: pairs.pair(a, b, quantity=name) for name in pairs.values_of("quantity")}


def test_shares_and_curves_are_plain_counts():
    result, values = made()
    rows = gains(result)
    a, b = values["a"], values["b"]
    assert rows["better"].value == pytest.approx(np.mean(a > b))
    assert rows["better_against"].value == pytest.approx(np.mean(a < b))
    assert rows["tied"].value == pytest.approx(np.mean(a == b))
    assert rows["net"].value == pytest.approx(np.mean(a > b) - np.mean(a < b))
    assert rows["net"].p == sign_p(int(np.sum(a > b)), int(np.sum(a < b)))
    assert rows["gain"].value == pytest.approx(np.mean(a - b))
    assert rows["gain"].facts["dominance"] == "a, first order"
    # The least value, 0, has no shortfall and is not tested.
    assert rows["gain"].facts["p_second"] < 0.001
    assert "a dominates b (first order)" in str(result)
    curve = result.parts["curve"]
    assert curve.row(system="b", share=0.5).value == np.sort(b)[149]
    assert curve.values_of("share") == list(POINTS)
    lowest = result.row(system="b", quantity="at_lowest")
    assert lowest.value == pytest.approx(np.mean(b == 0))
    assert lowest.facts["lowest_value"] == 0
    assert lowest.low < lowest.value < lowest.high
    mean = result.row(system="b", quantity="mean")
    assert mean.value == pytest.approx(b.mean())
    assert mean.low < mean.value < mean.high
    assert len(result.figure().spec["datasets"]["rows"]) == 3 * len(POINTS)
    assert result.to_dict()["parts"]["pairs"]["rows"][0]["system"] == "a"


def test_a_pair_is_turned_round_with_its_shares():
    result, _ = made()
    rows, turned = gains(result), gains(result, "b", "a")
    assert turned["better"].value == rows["better_against"].value
    assert turned["better_against"].low == rows["better"].low
    assert turned["tied"].value == rows["tied"].value
    assert (turned["net"].value, turned["net"].low) == (-rows["net"].value, -rows["net"].high)
    assert turned["gain"].keys == {
        "metric": "P@10",
        "system": "b",
        "against": "a",
        "quantity": "gain",
    }


def test_tables_of_curves_and_pairs_are_printed():
    result, _ = made()
    assert [table.title for table in result.display_tables()] == [
        "P@10 (higher is better), 300 users",
        "P@10: the value that a share of users does not exceed",
        "P@10: users who gain and lose",
    ]
    curves = result.display_tables()[1]
    assert curves.header == ["system", "5%", "20%", "35%", "50%", "65%", "80%", "95%"]
    assert curves.frame.height == 3


def test_curves_that_cross_are_said_to():
    result, _ = made(against="c")
    assert result.parts["pairs"].values_of("against") == ["c"]
    assert "the curves of b and c cross" in str(result)


def test_mean_and_most_users_can_disagree():
    gain = np.concatenate([np.full(180, -0.01), np.full(60, 0.5)])
    base = np.linspace(0, 0.4, 240)
    values = {"user": np.arange(240), "a": base + gain + 0.02, "b": base + 0.02}
    result = us.stats.user_distribution(values)
    assert "value: a has the better mean, but more users are better off with b" in result.conclusion


def test_lower_is_better_turns_everything():
    values = {"user": np.arange(100), "a": np.arange(100) / 100, "b": np.arange(100) / 100 + 0.2}
    result = us.stats.user_distribution(us.stats.paired(values, better="lower"))
    rows = gains(result)
    assert rows["better"].value == 1
    assert rows["gain"].facts["dominance"] == "a, first order"
    assert rows["gain"].value == pytest.approx(0.2)
    assert "more users lie below it with a" in str(result)


def test_few_users_and_one_system():
    values = {"user": np.arange(10), "a": np.arange(10.0), "b": np.arange(10.0) + 5}
    result = us.stats.user_distribution(values)
    assert result.parts["curve"].rows["low"].null_count() == 38
    assert result.row(system="a", quantity="mean").low is None
    assert gains(result)["gain"].facts["dominance"] == ""
    alone = us.stats.user_distribution({"user": np.arange(30), "a": np.arange(30.0)})
    assert alone.parts["pairs"].table().height == 0
    assert "dominance" not in alone.footer()[1]


# Lexicographic recall


def plain_sign(one, other, liked):
    """Compare two lists as the paper says it, item by item from the worst place up."""

    def places(run):
        return sorted((run.index(item) if item in run else 10**9 for item in liked), reverse=True)

    for a, b in zip(places(one), places(other), strict=True):
        if a != b:
            return 1 if a < b else -1
    return 0


def test_lexirecall_is_the_plain_comparison():
    rng = np.random.default_rng(8)
    test, runs = [], {"a": {}, "b": {}, "c": {}}
    for user in range(120):
        for item in rng.choice(12, rng.integers(1, 5), replace=False).tolist():
            test.append((user, item, int(rng.integers(3, 6))))
        for run in runs.values():
            if rng.random() < 0.9:
                run[user] = rng.permutation(12)[: rng.integers(2, 9)].tolist()
    columns = dict(zip(("user", "item", "rating"), map(list, zip(*test, strict=True)), strict=True))
    result = us.stats.lexirecall(us.judge(columns, runs, liked=4))
    liked = {}
    for user, item, rating in test:
        if rating >= 4:
            liked.setdefault(user, []).append(item)
    assert result.table().height == 3 * 4
    for a, b in itertools.combinations("abc", 2):
        better, against, tied, net = (
            result.pair(a, b, quantity=name) for name in result.values_of("quantity")
        )
        signs = [
            plain_sign(runs[a].get(user, []), runs[b].get(user, []), items)
            for user, items in liked.items()
        ]
        assert {row.n for row in (better, against, tied, net)} == {len(liked)}
        assert better.value == pytest.approx(np.mean(np.array(signs) > 0))
        assert against.value == pytest.approx(np.mean(np.array(signs) < 0))
        assert tied.value == pytest.approx(np.mean(np.array(signs) == 0))
        assert net.value == pytest.approx(better.value - against.value)
        assert net.p == pytest.approx(sign_p(signs.count(1), signs.count(-1)))
        assert result.pair(b, a, quantity="better").value == against.value
    corrected = us.stats.correct(result.where(quantity="net").rows["p"])
    assert result.where(quantity="net").rows["p_corrected"].to_list() == corrected.tolist()
    assert "exact sign test, corrected by Holm over 3 pairs" in str(result)


def test_lexirecall_refuses_what_it_cannot_do():
    test = {"user": [1, 2], "item": [10, 20], "rating": [5, 5]}
    with pytest.raises(us.UnskewError, match="one system only"):
        us.stats.lexirecall(us.judge(test, {"a": {1: [10], 2: [20]}}, liked=4))
    two = us.judge(test, {"a": {1: [10], 2: [20]}, "b": {1: [20, 10], 2: [20]}}, liked=4)
    with pytest.raises(us.UnskewError, match="against"):
        us.stats.lexirecall(two, against="c")
    with pytest.raises(us.UnskewError, match="no user has a liked item"):
        us.stats.lexirecall(two.with_relevance(us.Relevance(liked=6)))
