"""Randomly shown pairs: by hand, by a plain twin; and the data that test a stated difference."""

import math

import numpy as np
import pytest

import unskew as us
from unskew.unbiased.random_slice import random_part, random_slice_of

RULE = us.Relevance(liked=1)


def drawn(seed, users=80, items=30, shown=0.3, k=5):
    """Return what is liked, lists as arrays, and the parts that estimators take."""
    rng = np.random.default_rng(seed)
    liked = rng.random((users, items)) < rng.beta(2, 2, items)
    rated = rng.random((users, items)) < 0.1
    scores = {"good": liked + rng.normal(0, 0.8, liked.shape), "any": rng.random(liked.shape)}
    lists = {
        name: np.argsort(np.where(rated, np.inf, -score), axis=1)[:, :k]
        for name, score in scores.items()
    }
    mask = rng.random((users, items)) < shown
    runs = {name: us.Run.from_arrays(np.arange(users), one) for name, one in lists.items()}
    return liked, lists, mask, (ratings(liked, rated), ratings(liked, mask), runs), rated


def ratings(liked, mask):
    user, item = np.nonzero(mask)
    return us.read_ratings({"user": user, "item": item, "rating": liked[mask].astype(int)})


def plain(liked, lists, mask, a, b):
    """Return c_a s_a - c_b s_b and its variance by user; all lists are full."""
    users, k = lists[a].shape
    inside = {name: np.zeros(liked.shape, bool) for name in (a, b)}
    for name, one in inside.items():
        np.put_along_axis(one, lists[name], True, axis=1)
    value, move = 0.0, np.zeros(users)
    for sign, mine, other in ((1, a, b), (-1, b, a)):
        only = inside[mine] & ~inside[other]
        part = only.sum() / (users * k)
        share = liked[only & mask].mean()
        value += sign * part * share
        centred = ((liked - share) * (only & mask)).sum(axis=1) / (only & mask).sum()
        move += sign * (part * centred + share * (only.sum(axis=1) / k - part) / users)
    several = int(((inside[a] ^ inside[b]) & mask).any(axis=1).sum())
    return value, several / (several - 1) * (move @ move)


@pytest.mark.parametrize("seed", [1, 2])
def test_differences_equal_the_plain_twin(seed):
    liked, lists, mask, (train, random, runs), rated = drawn(seed, users=300)
    pair = random_slice_of([random_part(train, random, runs, RULE, 5)]).pair("good", "any")
    value, variance = plain(liked, lists, mask & ~rated, "good", "any")
    assert pair.value == pytest.approx(value)
    assert pair.se**2 == pytest.approx(variance, rel=0.01)
    assert pair.z == pytest.approx(pair.value / pair.se)


def test_with_everything_shown_it_is_the_true_difference():
    liked, lists, mask, (train, _, runs), _ = drawn(3)
    random = ratings(liked, np.ones_like(mask))
    part = random_part(train, random, runs, RULE, 5)
    result = random_slice_of([part])
    true = {name: np.take_along_axis(liked, one, 1).mean() for name, one in lists.items()}
    assert result.pair("good", "any").value == pytest.approx(true["good"] - true["any"])
    assert result.row(system="good").value == pytest.approx(true["good"])
    assert part.in_training == len(train)
    assert part.rated == len(random) - len(train)


def test_swapped_systems_and_a_split_that_stands_twice():
    *_, parts, _ = drawn(4)
    part = random_part(*parts, RULE, 5)
    one, three = random_slice_of([part]), random_slice_of([part] * 3)
    pair, back = one.pair("good", "any"), one.pair("any", "good")
    assert pair.value == pytest.approx(-back.value)
    assert (pair.low, pair.high) == pytest.approx((-back.high, -back.low))
    again = three.pair("good", "any")
    assert (again.value, again.se) == pytest.approx((pair.value, pair.se))
    assert again.facts["effective"] == pair.facts["effective"]
    assert three.row(system="any").low == pytest.approx(one.row(system="any").low)


def test_what_cannot_be_told_has_a_reason():
    *_, (train, random, runs), _ = drawn(5)
    same = {"x": runs["good"], "y": runs["good"]}
    result = random_slice_of([random_part(train, random, same, RULE, 5)])
    assert result.pair("x", "y").note == "the two lists do not differ"
    assert result.pair("x", "y").facts["overlap"] == 1
    few = random.take(np.arange(len(random)) < 20)
    result = random_slice_of([random_part(train, few, runs, RULE, 5)])
    assert result.pair("good", "any").value is None
    assert "fewer than 10" in result.pair("good", "any").note
    every = us.Relevance(liked=0)
    result = random_slice_of([random_part(train, random, runs, every, 5)])
    assert result.pair("good", "any").note.startswith("every randomly shown pair")
    assert result.parts["pairs"].table()["value"].null_count() == 1


def test_raw_data_judged_data_and_parts_agree():
    *_, (train, random, runs), _ = drawn(6)
    whole = random_slice_of([random_part(train, random, runs, RULE, 5)])
    judged = us.judge(random, runs, liked=1, train=train)
    result = us.unbiased.shown_at_random(judged, 5, random=random)
    assert result.parts["pairs"].table().equals(whole.parts["pairs"].table())
    frame = random.to_polars().to_dict(as_series=False)
    more = {
        name: [*column, extra]
        for (name, column), extra in zip(frame.items(), (0, 999, 1), strict=True)
    }
    wider = us.unbiased.shown_at_random(judged, 5, random=more)
    assert wider.parts["pairs"].table().equals(whole.parts["pairs"].table())
    assert wider.card["shown"] == whole.card["shown"] + 1


def two_lists(users=400, k=5, shared=2):
    """Lists that share their first items."""
    first = {u: list(range(k)) for u in range(users)}
    second = {u: [*range(shared), *range(k, 2 * k - shared)] for u in range(users)}
    return first, second


def places(users, k, shared, share_a, share_b):
    """Return likes of the places of either side: shares as exact as whole numbers allow."""
    number = users * (k - shared)
    return [np.arange(number) < round(number * share) for share in (share_a, share_b)]


@pytest.mark.parametrize(("difference", "share"), [(0.05, 0.5), (0.1, 0.5), (0.06, 0.2)])
def test_judgments_find_the_stated_difference_with_the_stated_power(difference, share):
    users, k, shared = 400, 5, 2
    plan = us.unbiased.judgments_for(
        *two_lists(users, k, shared), difference, share_liked=share, k=k
    )
    half, number, part = plan.row().value // 2, users * (k - shared), (k - shared) / k
    gap = difference / part
    liked = places(users, k, shared, share + gap / 2, share - gap / 2)
    rng = np.random.default_rng(8)
    good = [int(side.sum()) for side in liked]
    of_a, of_b = (rng.hypergeometric(n, number - n, half, 20_000) / half for n in good)
    spread = (of_a * (1 - of_a) + of_b * (1 - of_b)) / (half - 1) * (1 - half / number)
    power = np.mean(np.abs(of_a - of_b) > 1.959964 * np.sqrt(spread))
    assert power == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("difference", "share"), [(0.1, 0.5), (0.15, 0.4)])
def test_random_pairs_find_the_stated_difference_with_the_stated_power(difference, share):
    users, k, shared, items = 400, 5, 2, 100
    plan = us.unbiased.random_pairs_for(
        *two_lists(users, k, shared), difference, share_liked=share, k=k, items=range(items)
    )
    number, part = users * (k - shared), (k - shared) / k
    gap = difference / part
    good = [int(x.sum()) for x in places(users, k, shared, share + gap / 2, share - gap / 2)]
    cells = [good[0], number - good[0], good[1], number - good[1], users * items - 2 * number]
    rng = np.random.default_rng(9)
    drawn = rng.multivariate_hypergeometric(cells, plan.row().value, 20_000).astype(float)
    n_a, n_b = drawn[:, 0] + drawn[:, 1], drawn[:, 2] + drawn[:, 3]
    of_a, of_b = drawn[:, 0] / n_a, drawn[:, 2] / n_b
    spread = sum(s * (1 - s) / (n - 1) * (1 - n / number) for s, n in ((of_a, n_a), (of_b, n_b)))
    power = np.mean(np.abs(of_a - of_b) > 1.959964 * np.sqrt(spread))
    assert power == pytest.approx(0.8, abs=0.03)
    chosen = us.unbiased.judgments_for(*two_lists(users, k, shared), difference, k=k)
    assert plan.row().value > 5 * chosen.row().value


def test_plans_in_closed_form():
    first, second = two_lists(10_000, 2, 1)
    plan = us.unbiased.judgments_for(first, second, 0.1, k=2)
    factor = (1.959964 + 0.841621) ** 2
    of_side = 0.25 * 0.6 * 0.4  # c² s (1 - s): half of the places, .6 and .4 liked
    half = 2 * of_side / (0.01 / factor + 2 * of_side / 10_000) + 1.959964**2 / 4
    row = plan.row(system="a", against="b")
    assert row.value == 2 * math.ceil(half)
    assert row.facts == {"difference": 0.1, "places": 10_000, "places_against": 10_000}
    assert plan.card["lists"] == 10_000
    pairs = us.unbiased.random_pairs_for(first, second, 0.1, k=2)
    train = {"user": [0, 0, 1], "item": [0, 1, 77]}
    fewer = us.unbiased.random_pairs_for(first, second, 0.1, k=2, train=train, items=[0, 1, 2])
    assert fewer.row().value <= pairs.row().value
    smaller = us.unbiased.judgments_for(first, second, 0.05, k=2)
    assert smaller.row().value > 3 * row.value


def test_differences_that_lists_cannot_have():
    first, second = two_lists()
    same = us.unbiased.judgments_for(first, first, 0.1, k=5).row()
    assert same.value is None
    assert "nothing" in same.note
    far = us.unbiased.judgments_for(first, second, 0.7, k=5).row()  # .6 of the places differ
    assert far.value is None
    assert "cannot differ by 0.7" in far.note
    wide = us.unbiased.random_pairs_for(first, second, 0.5, share_liked=0.1, k=5)
    assert wide.row().value is None
    with pytest.raises(us.SettingError, match="difference"):
        us.unbiased.judgments_for(first, second, 0.0)
