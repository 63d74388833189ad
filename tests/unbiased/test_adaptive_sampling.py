"""Adaptive sampling: its likelihood by enumeration, its draws on target lists, what it gains."""

import itertools
from collections import Counter

import numpy as np
import pytest

import unskew as us
from unskew import SettingError
from unskew.judging.rank import ranks_of
from unskew.judging.ranked import anchor_ranks, full_ranks
from unskew.recommend.model import as_model
from unskew.unbiased.sampled.expected_metrics import rank_distribution
from unskew.unbiased.sampled.sampled_metrics import (
    _with_others,
    adaptive_ranks,
    correct_sampled,
    sampled_metrics,
)


def test_stopping_tells_nothing_of_the_true_rank():
    """What is seen at the end has the likelihood of a sample of fixed size, but for a factor."""
    others, sizes = 6, (1, 2, 4)
    ratios = {}
    for rank in range(1, others + 2):
        seen = Counter()
        for order in itertools.permutations(range(others)):
            better = [item < rank - 1 for item in order]
            size = next((n for n in sizes if any(better[:n])), sizes[-1])
            seen[size, sum(better[:size])] += 1
        total = sum(seen.values())
        for (size, x), count in seen.items():
            fixed = rank_distribution(rank, others + 1, size)[0, x]
            ratios.setdefault((size, x), []).append(count / total / fixed)
    assert sorted(ratios) == [(1, 1), (2, 1), (4, 0), (4, 1), (4, 2)]
    for factors in ratios.values():
        assert factors == pytest.approx([factors[0]] * len(factors))


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((50, 400)) < 0.08)
    rating = rng.integers(1, 6, user.size)
    return us.splits.Random(test=0.4).split(
        us.read_ratings({"user": user, "item": item, "rating": rating}), seed=1
    )[0]


@pytest.fixture(scope="module")
def good(split):
    """Scores that follow the test ratings, with noise and ties."""
    liked = np.zeros((len(split.test.users), len(split.test.items)))
    liked[split.test.user, split.test.item] = split.test.value
    return np.round(liked + np.random.default_rng(1).normal(size=liked.shape), 1)


def lists_of(split, others, **design):
    return us.targets.OneRelevant(others=others, candidates="all", **design).lists(
        split, liked=4, seed=3
    )


@pytest.mark.parametrize("ties", ["id", "random"])
def test_larger_samples_contain_the_smaller_and_end_at_the_full_rank(split, good, ties):
    lists = lists_of(split, 8)
    model = as_model(good, split.train)
    start = anchor_ranks(lists, ranks_of(model, lists, ties=ties))
    result = adaptive_ranks(lists, model, 10_000, ties=ties, seed=0, threads=None)
    assert (result.n[start > 1] == 8).all()
    assert (result.rank[start > 1] == start[start > 1]).all()
    first = result.rank == 1
    assert first.any()
    assert (result.n[first] == lists.free[first]).all()  # drawn until all others were in
    full, _ = full_ranks(lists, model, ties, 0, None)
    whole = result.n == lists.free
    assert (result.rank[whole] == full[whole]).all()
    assert (full[~whole] > 1).all()
    assert set(result.n[~whole]) <= {8, 16, 32, 64}
    assert result.again == (start == 1).sum()
    rows = np.arange(len(lists))
    for small, large in ((8, 16), (16, 64)):
        few, many = (_with_others(lists, rows, size) for size in (small, large))
        for at in range(0, len(lists), 37):
            assert set(few.block(at, at + 1)[1]) <= set(many.block(at, at + 1)[1])


def test_the_limit_holds(split, good):
    lists = lists_of(split, 8)
    model = as_model(good, split.train)
    result = adaptive_ranks(lists, model, 20, ties="id", seed=0, threads=None)
    assert set(result.n) == {8, 16, 20}
    assert (result.rank[result.n < 20] > 1).all()


def test_the_share_of_first_places_is_exact_without_a_limit(split, good):
    """Whatever stands below something drawn is not first, and what stands first is seen so."""
    lists = lists_of(split, 8)
    result = correct_sampled(lists, {"good": good}, ["Recall@1", "AP"], adaptive=10**6, resamples=0)
    assert result.card["estimator"] == {"Recall@1": "mle", "AP": "mle"}
    row = result.row(metric="Recall@1")
    assert row.value == pytest.approx(row.facts["full"], abs=1e-12)
    assert any("more others were drawn for" in note for note in result.notes)
    again = correct_sampled(
        lists, {"good": good}, ["Recall@1", "AP"], adaptive=10**6, resamples=0, threads=1
    )
    assert again.to_dict() == result.to_dict()


def test_strata_and_short_lists(split, good):
    for lists in (
        us.targets.Percentiles(others=5, strata=4).lists(split, liked=4, seed=3),
        lists_of(split, 10_000),
    ):
        result = correct_sampled(lists, {"good": good}, "RR", adaptive=10**6, resamples=0)
        assert result.card["lists"] == len(lists)
        assert 0 <= result.row().value <= 1
    whole = correct_sampled(lists, {"good": good}, "RR", adaptive=10**6, resamples=0)
    assert whole.card["estimator"] == {"RR": "plain"}
    assert whole.row().value == pytest.approx(whole.row().facts["full"])


def test_what_is_refused(split, good):
    lists = lists_of(split, 8)
    with pytest.raises(SettingError, match="lists start with 8 others already"):
        correct_sampled(lists, {"good": good}, adaptive=8)
    with pytest.raises(SettingError, match="mle is the only estimator"):
        correct_sampled(lists, {"good": good}, adaptive=80, estimator="trade-off")
    with pytest.raises(SettingError, match="mle is the only estimator"):
        correct_sampled(lists, {"good": good}, adaptive=80, estimators=["plain"])


def drawn_adaptively(true, items, n, most, rng):
    """Draw sampled ranks as adaptive sampling does: sizes n, 2 n … until something is better."""
    size = np.full(true.size, n)
    better = rng.hypergeometric(true - 1, items - true, n)
    while True:
        rows = np.flatnonzero((better == 0) & (2 * size <= most))
        if not rows.size:
            return 1 + better, size
        left = items - true[rows] - size[rows]  # none of those drawn was better
        better[rows] = rng.hypergeometric(true[rows] - 1, left, size[rows])
        size[rows] *= 2


def test_lists_of_which_all_is_seen_are_learnt_from_with_the_others():
    """They are those that stood first: without them the rest would be taken for all."""
    items, n, lists = 60, 8, 20_000
    rng = np.random.default_rng(5)
    true = 1 + np.floor(items * rng.random(lists) ** 2).astype(int)
    better = rng.hypergeometric(true - 1, items - true, n)
    seen = np.where(better == 0, true, 1 + better)
    sizes = np.where(better == 0, items - 1, n)
    result = sampled_metrics(
        seen,
        ["Recall@5", "AP"],
        items=items,
        n=sizes,
        true_ranks=true,
        adaptive=True,
        resamples=200,
    )
    rows = result.rows
    assert rows["value"].to_list() == pytest.approx(rows["full"].to_list(), abs=0.01)
    assert (rows["low"] <= rows["full"]).all()
    assert (rows["high"] >= rows["full"]).all()


@pytest.mark.slow
def test_adaptive_samples_see_the_top():
    """On ranks of no world: half the error of fixed samples that are as large in the mean."""
    items, lists = 5_000, 2_000
    errors = {"fixed": [], "adaptive": []}
    for seed in range(30):
        rng = np.random.default_rng(2_000 + seed)
        true = 1 + np.floor(items * rng.random(lists) ** 5).astype(int)
        seen, sizes = drawn_adaptively(true, items, 100, 3_200, rng)
        same = round(sizes.mean())
        drawn = 1 + rng.hypergeometric(true - 1, items - true, same)
        common = {"items": items, "resamples": 0, "true_ranks": true}
        some = sampled_metrics(seen, "nDCG@10", n=sizes, adaptive=True, **common).row()
        other = sampled_metrics(drawn, "nDCG@10", n=same, estimator="mle", **common).row()
        errors["adaptive"].append(some.value - some.facts["full"])
        errors["fixed"].append(other.value - other.facts["full"])
    fixed, adaptive = (np.sqrt(np.mean(np.square(errors[name]))) for name in errors)
    assert adaptive < 0.5 * fixed
