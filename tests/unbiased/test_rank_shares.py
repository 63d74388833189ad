"""Distributions of true ranks: against plain twins, scipy's optimiser and numerical derivatives."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from unskew import DataError, SettingError
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import parse
from unskew.unbiased.sampled import rank_shares
from unskew.unbiased.sampled import rank_shares as rank_mixture
from unskew.unbiased.sampled.expected_metrics import rank_distribution
from unskew.unbiased.sampled.rank_shares import RankBins, RankCells, SampleGroups
from unskew.unbiased.sampled.sampled_means import ranks_looked_at
from unskew.unbiased.sampled.sampled_metrics import sampled_metrics

METRICS = [parse(label) for label in ("Recall@3", "nDCG@5", "AP")]


def seen_ranks(items, n, lists, seed, power=3.0):
    """Return sampled ranks, and the true ones, of a system that is good by its power."""
    rng = np.random.default_rng(seed)
    true = 1 + np.floor(items * rng.random(lists) ** power).astype(int)
    return 1.0 + rng.hypergeometric(true - 1, items - true, n), true


def cells_of(items, n, lists=300, seed=0, power=3.0):
    groups = SampleGroups.of(np.full(lists, items), np.full(lists, n))
    return groups, RankCells.of(groups, seen_ranks(items, n, lists, seed, power)[0])


# Bins and cells


@pytest.mark.parametrize("most", [1, 2, 63, 64, 65, 200, 5_000, 10**6])
def test_bins_hold_every_rank_once(most):
    bins = RankBins.up_to(most)
    assert bins.first[0] == 1
    assert bins.last[-1] == most
    assert (bins.first[1:] == bins.last[:-1] + 1).all()
    assert (bins.size >= 1).all()
    assert bins.uniform.sum() == pytest.approx(1.0)
    assert bins.first.size < 64 + math.log(max(most / 64, 1)) / math.log(1.03) + 40


def test_chances_of_a_bin_are_the_mean_of_its_ranks():
    items, n = 2_000, 100
    bins = RankBins.up_to(items)
    chances = bins.chances(items, n)
    every = rank_distribution(np.arange(1, items + 1), items, n)
    for at, (low, high) in enumerate(zip(bins.first, bins.last, strict=True)):
        mean = every[low - 1 : high].mean(axis=0)
        # All ranks of bins up to POINTS wide are looked up, of wider ones POINTS of them.
        bound = 1e-14 if high - low < rank_mixture.POINTS else 2e-3
        assert np.abs(chances[:, at] - mean).max() < bound
    assert chances.sum(axis=0) == pytest.approx(np.ones(bins.first.size))


def test_values_of_a_bin_are_the_mean_of_its_ranks():
    bins = RankBins.up_to(300)
    for label in ("Recall@70", "nDCG", "AP@100"):
        at_ranks = value_at(label, np.arange(1, 301), 300)
        pairs = zip(bins.first, bins.last, strict=True)
        want = [at_ranks[low - 1 : high].mean() for low, high in pairs]
        assert bins.values(parse(label)) == pytest.approx(want)


def test_ranks_beyond_the_items_of_a_list_count_as_its_last():
    chances = RankBins.up_to(50).chances(20, 5)
    assert (chances[:, 20:] == chances[:, [19]]).all()


def test_lists_are_counted_by_what_they_tell():
    items, n = np.array([30, 30, 40, 40, 6, 30]), np.array([5, 5, 5, 5, 5, 5])
    groups = SampleGroups.of(items, n)
    assert groups.of_list.tolist() == [0, 0, 1, 1, -1, 0]  # 6 items: all 5 others are in the list
    assert groups.items.tolist() == [30, 40]
    cells = RankCells.of(groups, np.array([1, 1, 2, 1, 3, np.nan]))
    assert cells.count.tolist() == [2, 1, 1]
    assert cells.cell.tolist() == [0, 0, 2, 1, -1, -1]
    assert cells.chance[2] == pytest.approx(groups.chances(1)[1])
    assert cells.lists == 4


def test_many_numbers_of_items_are_put_into_classes(monkeypatch):
    rng = np.random.default_rng(3)
    lists = 3_000
    items = rng.integers(400, 900, lists)
    true = 1 + np.floor(items * rng.random(lists) ** 3).astype(int)
    seen = 1 + rng.hypergeometric(true - 1, items - true, 40)
    few = sampled_metrics(seen, METRICS, items=items, n=40, resamples=0, estimator="mle")
    assert any("different numbers of items" in note for note in few.notes)
    monkeypatch.setattr(rank_mixture, "CLASSES", 10_000)
    every = sampled_metrics(seen, METRICS, items=items, n=40, resamples=0, estimator="mle")
    assert not any("different numbers" in note for note in every.notes)
    assert few.rows["value"].to_list() == pytest.approx(every.rows["value"].to_list(), abs=3e-4)
    # It must not matter in which order lists are given.
    order = rng.permutation(lists)
    again = sampled_metrics(seen[order], METRICS, items=items[order], n=40, resamples=0)
    monkeypatch.undo()
    likely = [one.parts["estimators"].where(estimator="mle") for one in (again, every)]
    again, every = (part.rows["value"].to_list() for part in likely)
    assert again == pytest.approx(every, abs=1e-13)


# The likelihood


def plain_climb(chance, share, steps):
    """Climb by the formula of Jin et al. 2021, list by list of sampled ranks."""
    items = len(chance)
    now = [1 / items] * items
    for _ in range(steps):
        expected = [sum(now[r] * chance[r][x] for r in range(items)) for x in range(len(share))]
        now = [
            sum(share[x] * now[r] * chance[r][x] / expected[x] for x in range(len(share)))
            for r in range(items)
        ]
    return now


def test_climb_is_the_plain_one():
    items, n = 20, 4
    _, cells = cells_of(items, n)
    seen = seen_ranks(items, n, 300, 0)[0].astype(int)
    share = np.bincount(seen - 1, minlength=n + 1) / 300
    chance = rank_distribution(np.arange(1, items + 1), items, n).tolist()
    assert rank_shares.climb(cells, 7)[-1] == pytest.approx(plain_climb(chance, share, 7))


def test_draws_with_replacement_are_binomial():
    items, n, lists = 20, 30, 400
    rng = np.random.default_rng(4)
    true = 1 + np.floor(items * rng.random(lists) ** 2).astype(int)
    seen = 1 + rng.binomial(n, (true - 1) / (items - 1))
    result = sampled_metrics(
        seen, "AP", items=items, n=n, replacement=True, estimator="mle", iterations=6, resamples=0
    )
    chance = rank_distribution(np.arange(1, items + 1), items, n, replacement=True)
    share = np.bincount(seen - 1, minlength=n + 1) / lists
    kept = share > 0
    now = plain_climb(chance[:, kept].tolist(), share[kept], 6)
    assert result.row().value == pytest.approx(sum(x / (r + 1) for r, x in enumerate(now)))


def likelihood(cells, shares):
    """Return the mean logarithm of the likelihood of a list, given the shares of the bins."""
    return float(cells.share @ np.log(np.maximum(cells.chance @ shares, 1e-300)))


@given(st.integers(0, 10_000))
def test_likelihood_never_falls(seed):
    rng = np.random.default_rng(seed)
    items = int(rng.integers(3, 300))
    n = int(rng.integers(1, items - 1))
    _, cells = cells_of(items, n, int(rng.integers(1, 200)), seed, float(rng.uniform(0.3, 6)))
    path = rank_shares.climb(cells, 30)
    heights = [likelihood(cells, shares) for shares in path]
    assert (np.diff(heights) >= -1e-12).all()
    assert path.sum(axis=1) == pytest.approx(np.ones(31))


def test_the_top_of_the_likelihood_is_scipys():
    items, n = 12, 5
    _, cells = cells_of(items, n)
    height = likelihood(cells, rank_shares.climb(cells, 20_000)[-1])
    found = minimize(
        lambda x: -likelihood(cells, x),
        np.full(items, 1 / items),
        bounds=[(0, 1)] * items,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1_000},
    )
    assert found.success
    assert height == pytest.approx(-found.fun, abs=1e-7)


def test_true_shares_stay_where_shares_of_sampled_ranks_are_as_expected():
    """A fixed point: what the true shares make of sampled ranks leads back to them."""
    items, n = 25, 6
    groups, cells = cells_of(items, n, lists=2_000)
    true = np.random.default_rng(0).dirichlet(np.ones(items))
    exact = replace(
        cells,
        chance=groups.chances(0),
        count=1e9 * groups.chances(0) @ true,
    )
    expected = exact.chance @ true
    assert true * (exact.chance.T @ (exact.share / expected)) == pytest.approx(true)
    value = rank_shares.most_likely(exact, exact.values(METRICS), 4_000) @ exact.share
    # Climbing to the top finds a distribution with the same sampled ranks, if not the same ranks.
    shares = rank_shares.climb(exact, 4_000)[-1]
    assert exact.chance @ shares == pytest.approx(expected, abs=2e-4)
    assert value == pytest.approx(exact.values(METRICS) @ shares)


def test_default_number_of_steps():
    assert [rank_shares.default_iterations(lists) for lists in (1, 100, 10_000)] == [1, 10, 100]


# Influence


def test_influence_is_the_derivative():
    rng = np.random.default_rng(5)
    items = rng.choice([90, 120, 200], 500)
    true = 1 + np.floor(items * rng.random(500) ** 2).astype(int)
    seen = 1.0 + rng.hypergeometric(true - 1, items - true, 15)
    groups = SampleGroups.of(items, np.full(500, 15))
    cells = RankCells.of(groups, seen)
    values = cells.values(METRICS)

    def fit(counts):
        return values @ rank_shares.climb(replace(cells, count=counts), 25)[-1]

    by_cell, value = rank_shares.most_likely(cells, values, 25), fit(cells.count)
    assert by_cell @ cells.share == pytest.approx(value)
    for cell in (0, 7, len(cells.count) - 1):
        ends = []
        for step in (0.02, -0.02):
            counts = cells.count.copy()
            counts[cell] += step
            ends.append(fit(counts))
        slope = (ends[0] - ends[1]) / 0.04 * cells.lists
        assert by_cell[:, cell] - value == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_intervals_are_those_of_refits():
    """Draws of users by influence, and by fitting anew: the same spread within 15 %."""
    rng = np.random.default_rng(8)
    lists, items, n = 1_500, 600, 50
    seen, _ = seen_ranks(items, n, lists, 8)
    users = rng.integers(0, 300, lists)
    label = "nDCG@10"
    result = sampled_metrics(
        seen, label, items=items, n=n, users=users, estimator="mle", resamples=600
    )
    likely = result.parts["estimators"].row(estimator="mle")
    width = likely.high - likely.low
    rows = [np.flatnonzero(users == user) for user in np.unique(users)]
    drawn = []
    for _ in range(300):
        some = np.concatenate([rows[user] for user in rng.integers(0, len(rows), len(rows))])
        refit = sampled_metrics(
            seen[some], label, items=items, n=n, estimator="mle", resamples=0, estimators=["mle"]
        )
        drawn.append(refit.row().value)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert width == pytest.approx(high - low, rel=0.15)


# As part of sampled metrics


def test_lists_that_hold_all_items_and_lists_without_a_rank():
    """Known ranks count as they are, missing ones 0; only the rest is estimated."""
    items, n = np.array([6] * 40 + [300] * 400), np.array([5] * 40 + [20] * 400)
    seen, _ = seen_ranks(300, 20, 400, 1)
    ranks = np.concatenate([np.tile([1.0, 4.0], 20), seen])
    ranks[-3:] = np.nan
    both = sampled_metrics(ranks, "AP", items=items, n=n, resamples=0, estimator="mle")
    alone = sampled_metrics(seen[:-3], "AP", items=300, n=20, resamples=0, estimator="mle")
    want = (20 * 1 + 20 * 0.25 + 397 * alone.row().value) / 440
    assert both.row().value == pytest.approx(want)
    whole = sampled_metrics([1.0, 3.0], ["AP", "AUC"], items=5, n=4, resamples=0)
    assert whole.card["estimator"] == {"AP": "plain", "AUC": "plain"}
    assert whole.rows["value"].to_list() == pytest.approx([2 / 3, 0.75])
    assert "nothing is left to correct" in str(whole)


def test_auc_is_left_as_it_is():
    seen, _ = seen_ranks(200, 30, 100, 2)
    names = ["plain", "mle"]
    result = sampled_metrics(seen, ["AUC", "AP"], items=200, n=30, estimators=names, resamples=0)
    assert result.card["estimator"]["AUC"] == "plain"
    by_metric = [
        result.parts["estimators"].where(metric=metric, estimator=names).rows["value"]
        for metric in ("AUC", "AP")
    ]
    assert by_metric[0][1] == pytest.approx(by_metric[0][0])
    assert by_metric[1][1] != by_metric[1][0]


def test_systems_may_have_samples_of_their_own_sizes():
    small, _ = seen_ranks(500, 20, 300, 1)
    large, _ = seen_ranks(500, 80, 300, 2)
    common = {"items": 500, "resamples": 0, "estimator": "mle", "estimators": ["mle"]}
    both = sampled_metrics({"a": small, "b": large}, "AP", n={"a": 20, "b": 80}, **common)
    apart = [sampled_metrics(one, "AP", n=n, **common) for one, n in ((small, 20), (large, 80))]
    assert both.rows["value"].to_list() == [one.row().value for one in apart]


def test_the_rule():
    """The trade-off, until the likelihood shows that it is off; one estimator for all systems."""
    flat, _ = seen_ranks(1_000, 50, 3_000, 1, power=1.0)
    steep, _ = seen_ranks(1_000, 50, 3_000, 2, power=5.0)
    common = {"items": 1_000, "n": 50, "resamples": 0}
    calm = sampled_metrics(flat, "nDCG@10", **common)
    assert calm.card["estimator"] == {"nDCG@10": "trade-off"}
    assert "which is not more than 3.00" in calm.explanation[1]
    alarmed = sampled_metrics({"flat": flat, "steep": steep}, "nDCG@10", **common)
    assert alarmed.card["estimator"] == {"nDCG@10": "mle"}
    assert "for steep, which is more than 3.21" in alarmed.explanation[1]
    assert "the estimate is mle, because" in str(alarmed)
    few = sampled_metrics(steep[:19], "nDCG@10", **common)
    assert few.card["estimator"] == {"nDCG@10": "trade-off"}
    assert "fewer than 20 users" in few.explanation[1]
    asked = sampled_metrics(steep, "nDCG@10", estimator="plain", **common)
    assert asked.card["estimator"] == {"nDCG@10": "plain"}
    assert asked.parts["estimators"].values_of("estimator") == ["plain", "trade-off", "mle"]


def test_metrics_of_ranks_that_a_sample_does_not_show_stay_with_the_trade_off():
    hangs_on = {"Recall@10": 10, "P@3": 3, "Recall@1": 1, "AP": 1.64, "nDCG@10": 2.49}
    for label, ranks in hangs_on.items():
        assert ranks_looked_at(parse(label), 1_000) == pytest.approx(ranks, rel=0.01)
    seen, _ = seen_ranks(2_000, 45, 3_000, 2, power=5.0)
    result = sampled_metrics(seen, ["Recall@1", "AP", "nDCG@10"], items=2_000, n=45, resamples=0)
    # 45 of 1,999 others: 0.023, 0.037 and 0.056 of the ranks that these hang on.
    assert list(result.card["estimator"].values()) == ["trade-off", "trade-off", "mle"]
    assert "holds 0.037 of these in the mean, fewer than 0.05" in str(result)


def test_metrics_of_ranks_that_a_sample_seldom_holds_have_no_interval():
    """Recall@10 hangs on 10 ranks: a sample of 1 in 20 holds half of one, of 1 in 5 holds two."""
    labels = ["Recall@10", "AUC"]
    for n, shown in ((25, False), (100, True)):
        seen, _ = seen_ranks(501, n, 200, 1)
        result = sampled_metrics(seen, labels, items=501, n=n, resamples=20)
        assert result.rows["low"].is_not_null().to_list() == [shown, True]
        assert result.rows["note"].to_list() == ["" if shown else "error is mostly bias", ""]
        assert result.parts["estimators"].rows["low"].is_not_null().all()
        assert ("Recall@10: no interval, because it hangs on" in str(result)) != shown
        assert "AUC: no interval" not in str(result)


def test_adaptive_samples_that_hold_all_items_have_intervals():
    """What counts is how much of a list is drawn whose relevant item stands first."""
    rank = np.array([1.0, 3.0] * 30)
    n = np.where(rank == 1, 200, 10)
    result = sampled_metrics(rank, "Recall@1", items=201, n=n, adaptive=True, resamples=20)
    assert result.rows["low"].is_not_null().all()


def test_the_rule_raises_no_alarm_where_there_is_nothing_to_see():
    """Ranks spread evenly: the trade-off is unbiased, and 3 standard errors are rarely passed."""
    alarms = 0
    for seed in range(60):
        flat, _ = seen_ranks(500, 40, 400, seed, power=1.0)
        result = sampled_metrics(flat, "Recall@10", items=500, n=40, resamples=0)
        alarms += result.card["estimator"]["Recall@10"] == "mle"
    assert alarms <= 2  # expected: 0.2


def test_errors():
    with pytest.raises(SettingError, match="unknown estimator 'em'"):
        sampled_metrics([1, 2], "AP", items=10, n=4, estimator="em")
    with pytest.raises(SettingError, match="iterations must be a whole number from 1"):
        sampled_metrics([1, 2], "AP", items=10, n=4, iterations=0)
    with pytest.raises(SettingError, match="mle is the only estimator"):
        sampled_metrics([1, 2], "AP", items=10, n=4, adaptive=True, estimator="plain")
    ranks, n = {"a": [1, 2], "b": [1, 2]}, {"a": [4, 4], "b": [4, 8]}
    with pytest.raises(SettingError, match="say adaptive=True"):
        sampled_metrics(ranks, "AP", items=10, n=n)
    with pytest.raises(DataError, match="same systems as ranks"):
        sampled_metrics({"a": [1, 2]}, "AP", items=10, n={"b": 4})


def test_more_steps_climb_higher():
    seen, _ = seen_ranks(1_000, 50, 2_000, 4, power=5.0)
    common = {"items": 1_000, "n": 50, "resamples": 0, "estimator": "mle"}
    few, many = (
        sampled_metrics(seen, "Recall@10", iterations=steps, **common).row().value
        for steps in (2, 45)
    )
    usual = sampled_metrics(seen, "Recall@10", **common).row().value
    assert few < many
    assert usual == many  # the square root of 2,000 lists, rounded


@pytest.mark.slow
def test_nearer_than_the_trade_off_on_ranks_of_no_world():
    """Over 40 draws of three steep kinds the picked estimate has at most 0.8 of its error."""
    for power in (3.0, 5.0, 8.0):
        errors = {"trade-off": 0.0, "estimate": 0.0}
        for seed in range(40):
            seen, true = seen_ranks(2_000, 100, 2_000, 1_000 + seed, power)
            result = sampled_metrics(
                seen, "nDCG@10", items=2_000, n=100, true_ranks=true, resamples=0
            )
            full = result.row().facts["full"]
            trade = result.parts["estimators"].row(estimator="trade-off").value
            errors["trade-off"] += (trade - full) ** 2
            errors["estimate"] += (result.row().value - full) ** 2
        assert errors["estimate"] <= 0.8**2 * errors["trade-off"]
