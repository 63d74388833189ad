"""The papers' theory on data: item distributions, pairs of items, optimal rankings, margins."""

import html
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import unskew as us
from shared.examples import examples
from shared.pairs_of_items import family, observed, true
from shared.real_data import real_data
from unskew.bias import charts
from unskew.bias.describe_bias import dependence_of, describe_bias
from unskew.bias.margins import margins
from unskew.bias.optimal_rankings import optimal_rankings
from unskew.bias.pairs import steepness
from unskew.bias.pairs.item_pairs import CASES, item_pairs, pairs_of_systems
from unskew.bias.pairs.steepness import agree, count_signs, decrement_rate, dense_ranks
from unskew.bias.popularity.item_counts import ItemCounts, count_items
from unskew.bias.reliability import from_truth, without_truth
from unskew.cli import app
from unskew.data.dataset import Dataset
from unskew.errors import DataError, SettingError, UnknownName
from unskew.worlds.worlds import world

# The toy matrices of mena2021: ratings of training users u1 to u5, of ten users in all.


def toy(**items):
    """Make ratings of 1 (liked) and 0; None is unrated."""
    rows = [
        (user, item, value)
        for item, values in items.items()
        for user, value in enumerate(values, 1)
        if value is not None
    ]
    user, item, value = zip(*rows, strict=True)
    return us.read_ratings({"user": user, "item": item, "rating": value})


def test_probabilities_of_figure_2():
    seen = toy(a=[1, 1, 1, 0], b=[1, None, None, 0])
    # Relevance of all ten users; b as the figure's own probabilities need it (four likes).
    truth = toy(a=[1, 1, 1, 0, 0, 1, 1, 1, 0, 0], b=[1, 0, 1, 0, 0, 1, 0, 1, 0, 0])
    counts = count_items(seen, liked=1, random=truth)
    assert counts.users.tolist() == [10, 10]
    assert counts.p_rel.tolist() == [6 / 10, 4 / 10]
    assert counts.p_train.tolist() == [4 / 10, 2 / 10]
    assert counts.p_rel_train.tolist() == [3 / 4, 1 / 2]
    assert counts.p_rel_unrated.tolist() == [3 / 6, 3 / 8]
    assert counts.p_train_rel.tolist() == [3 / 6, 1 / 4]
    found = dependence_of(counts)
    assert found.overall == 4 / 10
    assert found.overall_nonrel == 2 / 10
    assert found.share_above == 1.0
    assert found.to_relevance_independence == pytest.approx((0.1 + 0.05) / 2)
    assert found.to_item_independence == pytest.approx((0.1 + 0.15) / 2)
    assert found.to_item_independence_nonrel == pytest.approx((0.05 + abs(1 / 6 - 0.2)) / 2)


FIGURE_4 = [
    # a, b, odds, p(rel|train), p(¬rel|train), φ_P, φ_antiP, the case, do they disagree
    (
        [1, 1, 1, 0, 0],
        [1, 0],
        (1, 0.25),
        (0.6, 0.5),
        (0.4, 0.5),
        (0.6, 0.125),
        (-0.4, -0.125),
        "agree, steeper",
        True,
    ),
    (
        [1, 0, 0, 0, 0],
        [0, 0],
        (1, 0.25),
        (0.2, 0),
        (0.8, 1),
        (0.2, 0),
        (-0.8, -0.25),
        "agree, steeper",
        True,
    ),
    (
        [1, 1, 1, 0],
        [1, 0, 0],
        (2 / 3, 3 / 7),
        (0.75, 1 / 3),
        (0.25, 2 / 3),
        (0.5, 1 / 7),
        (-1 / 6, -2 / 7),
        "agree, not steeper",
        False,
    ),
]
RATES = [(0.75, 1 / 6, 0.2), (0.75, 1, 0.2), (5 / 14, 5 / 9, 5 / 8)]


@pytest.mark.parametrize(("number", "example"), list(enumerate(FIGURE_4)))
def test_examples_of_figure_4(number, example):
    a, b, odds, rel, nonrel, phi, phi_anti, case, disagree = example
    seen = toy(a=a, b=b)
    counts = count_items(seen, liked=1, users=10)
    assert counts.odds.tolist() == pytest.approx(odds)
    assert counts.p_rel_train.tolist() == pytest.approx(rel)
    assert counts.phi_p.tolist() == pytest.approx(phi)
    assert counts.phi_anti.tolist() == pytest.approx(phi_anti)
    rates = [decrement_rate(*values) for values in (odds, rel, nonrel)]
    assert rates == pytest.approx(RATES[number])
    pairs = item_pairs(seen, liked=1, users=10)
    assert observed(pairs).cases[case] == 1
    assert (observed(pairs).disagree, observed(pairs).agree, observed(pairs).ties) == (
        disagree,
        not disagree,
        0,
    )
    assert observed(pairs).lemma1 == 1
    steeper = [rates[0] > other for other in rates[1:]]
    assert observed(pairs).steeper == {
        "relevance": steeper[0],
        "non-relevance": steeper[1],
        "both": all(steeper),
    }


@pytest.mark.parametrize(
    ("likes_b", "consistent", "case", "trusted"),
    [
        (2, {"P": 1, "anti-P": 0}, "agree, steeper", "true-positive metrics"),
        (8, {"P": 0, "anti-P": 1}, "disagree, steeper", "false-positive metrics"),
    ],
)
def test_examples_of_figure_8(likes_b, consistent, case, trusted):
    """1a: b is liked by u1 and u6 only; 1b: by all but u2 and u7."""
    counts = ItemCounts.known(rated=[5, 2], liked=[3, 1], users=10, relevant=[6, likes_b])
    assert counts.p_rel.tolist() == [0.6, likes_b / 10]
    pairs = item_pairs(counts)
    assert true(pairs).consistent == consistent
    assert true(pairs).cases[case] == 1
    assert true(pairs).lemma3 == {"P": 1, "anti-P": 1}
    assert true(pairs).lemma2 == 0
    assert family(pairs) == trusted


def test_figure_3():
    """f is steeper than g: by a larger difference, or by a lower maximum."""
    for f, g in [((3, 1), (3, 2)), ((2, 1), (3, 2)), ((3, 1), (2, 3)), ((2, 1), (2, 3))]:
        assert decrement_rate(*f) > decrement_rate(*g)
    assert agree((3, 1), (3, 2))
    assert not agree((3, 1), (2, 3))
    assert not agree((3, 3), (2, 3))
    assert math.isnan(decrement_rate(0, 0))
    with pytest.raises(SettingError, match="at least 0"):
        decrement_rate(-1, 2)


# Plain twins, by definition, in fractions


def rate(f):
    """Return the decrement rate; None where it is 0/0."""
    return None if max(f) == 0 else 1 - Fraction(min(f)) / max(f)


def steeper(f, g):
    return rate(f) is not None and rate(g) is not None and rate(f) > rate(g)


def case_of(odds, rel):
    nonrel = tuple(1 - x for x in rel)
    if agree(odds, rel):
        return 0 if steeper(odds, nonrel) else 1
    return 2 if steeper(odds, rel) else 3


def plain(items):
    """Count everything over pairs of items (users, rated, liked, asked, asked_liked)."""
    names = (
        "disagree",
        "ties",
        "rel",
        "nonrel",
        "both",
        "tied",
        "P",
        "anti",
        "two",
        "three_P",
        "three_anti",
        "true_both",
    )
    found = dict.fromkeys(names, 0)
    found |= {"cases": [0] * 4, "strict": [0] * 4, "true": [0] * 4}
    number = 0
    for pair in itertools.combinations(items, 2):
        number += 1
        odds = tuple(Fraction(n, u - n) for u, n, *_ in pair)
        rel = tuple(Fraction(r, n) for _, n, r, *_ in pair)
        nonrel = tuple(1 - x for x in rel)
        phi = tuple(o * g for o, g in zip(odds, rel, strict=True))
        anti = tuple(-o * h for o, h in zip(odds, nonrel, strict=True))
        product = (phi[0] - phi[1]) * (anti[0] - anti[1])
        found["disagree"] += product < 0
        found["ties"] += product == 0
        case = case_of(odds, rel)
        tied = odds[0] == odds[1] or rel[0] == rel[1]
        found["tied"] += tied
        found["cases"][case] += 1
        found["strict"][case] += not tied
        found["rel"] += steeper(odds, rel)
        found["nonrel"] += steeper(odds, nonrel)
        found["both"] += steeper(odds, rel) and steeper(odds, nonrel)
        truth = tuple(Fraction(q, a) for *_, a, q in pair)
        whole = tuple((r + (u - n) * t) / u for (u, n, r, *_), t in zip(pair, truth, strict=True))
        case = case_of(odds, whole)
        found["true"][case] += 1
        consistent = agree(phi, truth), agree(anti, truth)
        found["P"] += consistent[0]
        found["anti"] += consistent[1]
        found["two"] += all(consistent)
        found["three_P"] += consistent[0] == (case != 2)
        found["three_anti"] += consistent[1] == (case != 0)
        dislike = tuple(1 - x for x in whole)
        found["true_both"] += steeper(odds, whole) and steeper(odds, dislike)
    return number, found


def counts_from(items):
    columns = [np.array(column, np.int64) for column in zip(*items, strict=True)]
    ids = us.data.Ids.number(pl.Series(np.arange(len(items))))[0]
    return ItemCounts(ids, *columns)


@st.composite
def some_items(draw, least=2, most=9):
    def item(big):
        users = draw(st.integers(2, 12)) * (10**7 if big else 1)
        rated = draw(st.integers(1, users - 1))
        liked = draw(st.integers(0, rated))
        asked = draw(st.integers(1, max(users - rated, 1)))
        return users, rated, liked, asked, draw(st.integers(0, asked))

    big = draw(st.booleans())
    return [item(big) for _ in range(draw(st.integers(least, most)))]


@examples(40)
@given(some_items())
def test_pairs_equal_their_plain_twin(items):
    pairs = item_pairs(counts_from(items))
    number, found = plain(items)
    signs = [count_signs(counts_from(items), is_true) for is_true in (False, True)]
    assert pairs.card["pairs"] == signs[0].pairs == signs[1].pairs == number

    def share(count):
        return count / number

    assert observed(pairs).disagree == share(found["disagree"])
    assert observed(pairs).ties == share(found["ties"])
    assert observed(pairs).agree == pytest.approx(
        1 - observed(pairs).disagree - observed(pairs).ties, abs=1e-12
    )
    assert list(observed(pairs).cases.values()) == [share(x) for x in found["cases"]]
    assert list(observed(pairs).cases_strict.values()) == [
        share(x) for x in (*found["strict"], found["tied"])
    ]
    assert list(observed(pairs).steeper.values()) == [
        share(found[x]) for x in ("rel", "nonrel", "both")
    ]
    assert list(true(pairs).cases.values()) == [share(x) for x in found["true"]]
    assert true(pairs).steeper["both"] == share(found["true_both"])
    assert list(true(pairs).consistent.values()) == [share(found["P"]), share(found["anti"])]
    assert true(pairs).lemma2 == share(found["two"])
    lemma3 = [share(found["three_P"]), share(found["three_anti"])]
    assert list(true(pairs).lemma3.values()) == lemma3
    assert math.isnan(observed(pairs).lemma1) or observed(pairs).lemma1 == 1
    assert sum(observed(pairs).cases.values()) == pytest.approx(1)
    by_case = pairs.parts["true"].where(quantity="P").rows["value"]
    assert by_case.sum() == pytest.approx(true(pairs).consistent["P"])
    assert sum(true(pairs).cases_strict.values()) == pytest.approx(1)


# The lemmas, by definition

shares = st.fractions(min_value=Fraction(1, 20), max_value=Fraction(19, 20), max_denominator=20)
two = st.tuples(shares, shares)


def odds_of(p):
    return tuple(x / (1 - x) for x in p)


@examples(60)
@given(two, two)
def test_lemma_4_and_its_twin_for_quotients(f, g):
    """The orders by f·g and f/g decide steepness, which is what pairs are counted by."""
    product = tuple(x * y for x, y in zip(f, g, strict=True))
    if f[0] != f[1] and g[0] != g[1] and product[0] != product[1]:
        assert agree(product, f) == (agree(f, g) or steeper(f, g))
    quotient = tuple(x / y for x, y in zip(f, g, strict=True))
    if agree(f, g):
        assert agree(quotient, f) == steeper(f, g)
    increments = [max(x) / min(x) for x in (f, g)]
    assert (increments[0] > increments[1]) == steeper(f, g)


@examples(60)
@given(two, two)
def test_lemma_1_and_table_3(popularity, rel):
    odds, nonrel = odds_of(popularity), tuple(1 - x for x in rel)
    phi = tuple(o * g for o, g in zip(odds, rel, strict=True))
    anti = tuple(-o * h for o, h in zip(odds, nonrel, strict=True))
    product = (phi[0] - phi[1]) * (anti[0] - anti[1])
    if product == 0:
        return
    assert (product < 0) == (case_of(odds, rel) in (0, 2))
    if odds[0] != odds[1] and rel[0] != rel[1]:  # the lemma as it is stated
        a = steeper(odds, rel) and not agree(odds, rel)
        b = steeper(odds, nonrel) and not agree(odds, nonrel)
        assert (product < 0) == (a or b)
    elif odds[0] == odds[1]:  # appendix B.1: flat popularity
        assert product > 0
    else:  # appendix B.2: flat relevance
        assert product < 0


@examples(60)
@given(two, shares, shares)
def test_lemma_2_on_exact_probabilities(rel, if_liked, if_not):
    """Rated depends on being liked only, for those who do not like it too: all orders agree."""
    train = tuple(if_liked * x + if_not * (1 - x) for x in rel)
    phi = tuple(if_liked * x / (1 - t) for x, t in zip(rel, train, strict=True))
    anti = tuple(-if_not * (1 - x) / (1 - t) for x, t in zip(rel, train, strict=True))
    true = tuple((1 - if_liked) * x / (1 - t) for x, t in zip(rel, train, strict=True))
    if rel[0] != rel[1]:
        assert agree(phi, rel)
        assert agree(anti, rel)
        assert agree(true, rel)


@examples(60)
@given(two, two)
def test_lemma_3_and_table_4_on_exact_probabilities(popularity, rel):
    """Rated does not depend on being liked: p(rel|train,i) = p(rel|i) = p(rel|¬train,i)."""
    odds, nonrel = odds_of(popularity), tuple(1 - x for x in rel)
    phi = tuple(o * g for o, g in zip(odds, rel, strict=True))
    anti = tuple(-o * h for o, h in zip(odds, nonrel, strict=True))
    if rel[0] == rel[1]:  # appendix B.2: the observed orders oppose each other, the real ones tie
        assert popularity[0] == popularity[1] or agree(phi, tuple(-x for x in anti))
        return
    if popularity[0] == popularity[1]:  # appendix B.1: all agree
        assert agree(phi, rel)
        assert agree(anti, rel)
        return
    if agree(odds, rel):
        assert agree(phi, rel)
        if anti[0] != anti[1]:
            assert agree(anti, rel) == steeper(nonrel, odds)
    else:
        assert agree(anti, rel)
        if phi[0] != phi[1]:
            assert agree(phi, rel) == steeper(rel, odds)


def test_lemmas_2_and_3_from_counts():
    users, rel = 3600, np.array([900, 1200, 2400, 1800])
    rated = rel // 2 + (users - rel) // 6
    by_liking = ItemCounts.known(rated, rel // 2, users, rel)
    pairs = item_pairs(by_liking)
    assert true(pairs).lemma2 == 1
    assert family(pairs) == "either"
    found = dependence_of(by_liking)
    assert found.to_item_independence == pytest.approx(0, abs=1e-12)
    assert found.to_item_independence_nonrel == pytest.approx(0, abs=1e-12)
    assert found.nearer == "item independence"

    rated = np.array([1800, 600, 360, 1080])  # no ties in the products
    by_item = ItemCounts.known(rated, rated * rel // users, users, rel)
    pairs = item_pairs(by_item)
    assert true(pairs).cases_strict["tied"] == 0
    assert true(pairs).lemma3 == {"P": 1, "anti-P": 1}
    found = dependence_of(by_item)
    assert found.to_relevance_independence == pytest.approx(0, abs=1e-12)
    assert found.share_above == 0
    assert found.nearer == "relevance independence"


@examples(20)
@given(some_items(3, 9))
def test_the_error_over_items_is_the_jackknife(items):
    """Leave out one item after the other, and count the pairs anew."""
    n = len(items)
    again = []
    for gone in range(n):
        number, found = plain(items[:gone] + items[gone + 1 :])
        again.append((found["P"] - found["anti"]) / number)
    variance = (n - 1) / n * sum((x - sum(again) / n) ** 2 for x in again)
    row = item_pairs(counts_from(items)).parts["true overall"].row(quantity="P_less_anti-P")
    assert row.se == pytest.approx(math.sqrt(variance), abs=1e-9)


# Exactness, blocks, samples


def test_dense_ranks_see_what_rounding_hides():
    top = np.array([10**18 + 1, 10**18, 10**18 - 1, 2, 5, 0, 10**18 + 1], object)
    bottom = np.array([10**18, 10**18, 10**18, 1, 0, 7, 10**18], object)
    assert len({t / b for t, b in zip(top[:3], bottom[:3], strict=True)}) == 1
    assert dense_ranks(top, bottom).tolist() == [3, 2, 1, 4, 5, 0, 3]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=40))
def test_dense_ranks_equal_sorted_fractions(fractions):
    values = [Fraction(*pair) for pair in fractions]
    order = sorted(set(values))
    top, bottom = (np.array(column, object) for column in zip(*fractions, strict=True))
    assert dense_ranks(top, bottom).tolist() == [order.index(value) for value in values]


def test_counts_beyond_the_range_of_products_are_exact():
    """Items that differ by one user of billions: in floating point they would be ties."""
    users = 4 * 10**9
    rated = [3 * 10**9, 3 * 10**9 + 1]
    pairs = item_pairs(ItemCounts.known(rated, [10**9, 10**9], users))
    assert observed(pairs).ties == 0
    items = [(users, n, 10**9, users - n, 10**8) for n in rated]
    assert list(observed(pairs).cases.values()) == plain(items)[1]["cases"]


def random_counts(items=400, users=500, seed=0):
    rng = np.random.default_rng(seed)
    rated = rng.integers(1, users, items) // rng.integers(1, 40, items)
    rated = np.maximum(rated, 1)
    liked = rng.binomial(rated, rng.beta(3, 2, items))
    relevant = liked + rng.binomial(users - rated, 0.3)
    return ItemCounts.known(rated, liked, users, relevant)


def test_same_bits_whatever_the_blocks_and_threads(monkeypatch):
    counts = random_counts()
    whole = [count_signs(counts, true, threads=1).counts for true in (False, True)]
    some = count_signs(counts, False, sample=70_001, seed=3, threads=1).counts
    for blocks, threads in ((1, 1), (7, 2), (1000, 3)):
        monkeypatch.setattr(steepness, "BLOCKS", blocks)
        again = [count_signs(counts, true, threads=threads).counts for true in (False, True)]
        assert all(np.array_equal(a, b) for a, b in zip(whole, again, strict=True))
        sampled = count_signs(counts, False, sample=70_001, seed=3, threads=threads).counts
        assert np.array_equal(some, sampled)
    assert not np.array_equal(some, count_signs(counts, False, sample=70_001, seed=4).counts)


def test_more_items_than_a_tile():
    """The kernel works in tiles of 1024: an independent count over all pairs with numpy."""
    counts = random_counts(2_300, 30_000, seed=5)
    pairs = item_pairs(counts)
    unrated = counts.users - counts.rated
    phi, bad = (
        np.array([Fraction(int(t), int(b)) for t, b in zip(top, unrated, strict=True)], object)
        for top in (counts.liked, counts.rated - counts.liked)
    )
    ranks = [np.unique(values, return_inverse=True)[1] for values in (phi, bad)]
    signs = [np.sign(rank[:, None] - rank[None, :]) for rank in ranks]
    product = signs[0] * signs[1]
    disagree = int((product > 0).sum()) // 2
    number = counts.items.values.len() * (counts.items.values.len() - 1) // 2
    assert observed(pairs).disagree == disagree / number
    ties = (int((product == 0).sum()) - 2_300) // 2
    assert observed(pairs).ties == ties / number


def test_samples_come_near_within_their_error():
    counts = random_counts()
    exact, sampled = item_pairs(counts), item_pairs(counts, sample=200_000, seed=1)
    assert sampled.card["sampled"] == 200_000
    assert exact.card["sampled"] is None
    for part, name in (
        ("overall", "disagree"),
        ("overall", "agree"),
        ("overall", "ties"),
        ("true overall", "popularity_and_relevance_agree"),
        ("true overall", "lemma2"),
    ):
        row, near = (pairs.parts[part].row(quantity=name) for pairs in (exact, sampled))
        assert row.se == 0
        error = math.sqrt(row.value * (1 - row.value) / 200_000)
        assert abs(near.value - row.value) <= 4.5 * error + 1e-12
        assert near.se == pytest.approx(math.sqrt(near.value * (1 - near.value) / 200_000))
    assert "standard error" in str(sampled)
    errors = [
        pairs.parts["true overall"].row(quantity="P_less_anti-P").se for pairs in (exact, sampled)
    ]
    assert errors[0] > 0
    assert errors[1] is None


def test_many_different_items_are_sampled(monkeypatch):
    monkeypatch.setattr(steepness, "MOST_GROUPS", 100)
    monkeypatch.setattr(steepness, "SAMPLE", 5_000)
    assert item_pairs(random_counts()).card["sampled"] == 5_000


@examples(30)
@given(some_items(3, 12))
def test_tau_equals_kendall(items):
    counts = counts_from(items)
    tau = observed(item_pairs(counts)).tau
    plain_tau = us.stats.kendall(counts.phi_p, counts.phi_anti)
    assert tau == pytest.approx(plain_tau, nan_ok=True)


# Counting


def test_items_that_cannot_be_looked_at_are_counted():
    counts = ItemCounts.known([0, 5, 2, 3], [0, 3, 1, 2], 5, [1, 3, 2, 3])
    pairs = item_pairs(counts)
    counted = [pairs.card[name] for name in ("items", "unrated", "rated_by_everyone")]
    assert counted == [2, 1, 1]
    assert "1 that nobody rated, 1 that all users rated" in str(pairs)
    report = describe_bias(counts)
    assert report.to_dict()["unrated"] == 1
    assert "1 item without ratings" in str(report)
    with pytest.raises(DataError, match="two items"):
        item_pairs(ItemCounts.known([0, 2], [0, 1], 5))


def test_random_judgments_apart_from_the_ratings():
    seen = {"user": [1, 2, 3, 1], "item": ["a", "a", "a", "b"], "rating": [5, 2, 4, 1]}
    more = {"user": [4, 3, 2, 4], "item": ["a", "a", "b", "c"], "rating": [5, 4, 4, 1]}
    counts = count_items(seen, liked=4, random=more, users=10)
    assert counts.items.values.to_list() == ["a", "b", "c"]
    assert counts.users.tolist() == [10, 10, 10]
    assert counts.rated.tolist() == [3, 1, 0]
    assert counts.asked.tolist() == [1, 1, 1]
    assert counts.asked_liked.tolist() == [1, 1, 0]
    assert counts.p_rel.tolist() == [(2 + 7) / 10, 0.9, 0.0]
    assert any("1 random judgment is of a pair that users" in note for note in counts.notes)
    pairs = item_pairs(counts)
    assert (pairs.card["items"], pairs.card["unidentified"]) == (2, 0)


def test_items_without_random_judgments_are_counted():
    seen = {"user": [1, 2, 3, 1, 2], "item": ["a", "a", "b", "b", "c"], "rating": [5, 2, 4, 1, 4]}
    more = {"user": [3, 2], "item": ["a", "b"], "rating": [5, 1]}
    pairs = item_pairs(seen, liked=4, random=more)
    counted = [pairs.card[name] for name in ("items", "true_items", "unidentified")]
    assert counted == [3, 2, 1]
    one = item_pairs(seen, liked=4, random={"user": [3], "item": ["a"], "rating": [5]})
    assert "true" not in one.parts
    assert any("truth is not known" in note for note in one.notes)


def test_survey_world_and_data_set_give_the_same_counts():
    shop = world("shop", users=60, items=40, seed=3)
    from_world = count_items(shop)
    survey = count_items(shop.ratings, liked=shop.liked, random=shop.truth())
    data = count_items(Dataset("shop", shop.ratings, shop.truth(), liked=shop.liked))
    for name in ("users", "rated", "liked", "asked", "asked_liked"):
        assert getattr(from_world, name).tolist() == getattr(survey, name).tolist()
        assert getattr(data, name).tolist() == getattr(survey, name).tolist()
    assert describe_bias(shop).dependence is not None
    with pytest.raises(SettingError, match="whole truth"):
        count_items(shop, users=100)


def test_pooled_but_unjudged_pairs_are_no_ratings(tmp_path):
    (tmp_path / "test.qrels").write_text("1 0 a 1\n2 0 a 0\n3 0 a -1\n3 0 b 1\n")
    counts = count_items(tmp_path / "test.qrels")
    assert counts.rated.tolist() == [2, 1]
    assert counts.liked.tolist() == [1, 1]
    assert any("1 pooled" in note for note in counts.notes)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(1)
    user, item = np.divmod(rng.choice(600, 300, replace=False), 20)
    value = rng.integers(1, 6, 300)
    turn = rng.permutation(300)
    first = item_pairs({"user": user, "item": item, "rating": value}, liked=4)
    second = item_pairs({"user": user[turn], "item": item[turn], "rating": value[turn]}, liked=4)
    first, second = first.to_dict(), second.to_dict()
    assert first == second


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: ItemCounts.known([1, 2], [1, 3], 5), DataError, "liked 3 and rated 2"),
        (lambda: ItemCounts.known([6], [1], 5), DataError, "rated 6 and users 5"),
        (lambda: ItemCounts.known([1], [-1], 5), DataError, "between 0 and rated"),
        (lambda: ItemCounts.known([2], [1], 5, [5]), DataError, "asked_liked 4 and asked 3"),
        (lambda: ItemCounts.known([2.5], [1], 5), DataError, "whole numbers"),
        (lambda: ItemCounts.known([2, 1], [1], 5), DataError, "one for each"),
        (lambda: ItemCounts.known([2, 1], [1, 1], 5, items=["b", "a"]), DataError, "sorted order"),
        (lambda: item_pairs(random_counts(), liked=4), SettingError, "liked is part of"),
        (lambda: item_pairs(random_counts(), sample=0), SettingError, "sample=0"),
        (lambda: item_pairs(random_counts(), threads=0), SettingError, "threads"),
        (lambda: item_pairs(SEEN, liked=4, users=1), SettingError, "3 users have ratings"),
        (lambda: item_pairs(SEEN, liked=4, random=SEEN, users=9), SettingError, "were asked"),
        (lambda: item_pairs({**SEEN, "rating": [9, 2, 1, 8]}), SettingError, "counts as liked"),
        (lambda: pairs_of_systems(SEEN, {1: ["b"]}, {2: ["a"]}, 0), SettingError, "k=0"),
        (lambda: dependence_of(ItemCounts.known([1], [1], 3)), DataError, "random judgments"),
        (lambda: dependence_of(ItemCounts.known([1], [0], 3, [0])), DataError, "liked by anyone"),
        (lambda: describe_bias(SEEN, liked=4).figure("pairs"), UnknownName, "popularity"),
        (lambda: describe_bias(SEEN, liked=4).figure("dependence"), SettingError, "random"),
        (lambda: describe_bias(SEEN, liked=4).bins(0), SettingError, "count=0"),
        (lambda: describe_bias(SEEN, liked=4).head(0), SettingError, "share=0"),
        (lambda: steepness.true_functions(ItemCounts.known([1], [1], 3)), DataError, "not known"),
    ],
)
def test_errors_say_what_to_do(call, error, says):
    with pytest.raises(error, match=says):
        call()


SEEN = {"user": [1, 2, 3, 1], "item": ["a", "a", "b", "c"], "rating": [5, 2, 4, 1]}


def test_one_of_asked_and_asked_liked_is_not_enough():
    ids = us.data.Ids.number(pl.Series([1]))[0]
    one = np.array([1])
    with pytest.raises(SettingError, match="belong together"):
        ItemCounts(ids, one * 3, one, one, one)


# Two systems


def test_pairs_of_what_two_systems_recommend():
    seen = {
        "user": [1, 2, 3, 1, 2, 1, 4],
        "item": [1, 1, 1, 2, 2, 3, 4],
        "rating": [5, 2, 4, 4, 1, 5, 5],
    }
    a, b = {1: [4, 3], 2: [3, 1]}, {1: [2, 4], 2: [9, 1]}
    pairs = pairs_of_systems(seen, a, b, 1, liked=4)
    # Items 2, 3, 4, and the unknown 9.
    assert (pairs.card["items"], pairs.card["unrated"]) == (3, 1)
    whole = count_items(seen, liked=4)
    part = item_pairs(whole.take(np.array([1, 2, 3])))
    assert observed(pairs).cases == observed(part).cases
    assert observed(pairs).disagree == observed(part).disagree
    assert "top 1 of either system" in str(pairs)
    # Text ids that are numbers are the same items.
    texts = {1: ["4", "3"], 2: ["3", "1"]}
    assert observed(pairs_of_systems(seen, texts, b, 1, liked=4)).cases == observed(pairs).cases


# Optimal rankings


def test_optimal_rankings_are_those_of_the_recommenders():
    rng = np.random.default_rng(2)
    user, item = np.divmod(rng.choice(900, 350, replace=False), 30)
    ratings = us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, 350)})
    table = optimal_rankings(ratings, liked=4)
    for algorithm, column in (
        (us.recommend.OptimalPrecision(liked=4), "phi_P"),
        (us.recommend.OptimalAntiPrecision(liked=4), "phi_antiP"),
    ):
        score = algorithm.fit(ratings).score(np.zeros(1, np.int32))[0]
        assert table[column].to_list() == score.tolist()
    best = table.sort("phi_P", descending=True)
    assert best["rank_P"].is_sorted()
    truth = us.read_ratings({"user": user + 100, "item": item, "rating": rng.integers(1, 6, 350)})
    common = optimal_rankings(ratings, liked=4, random=truth)
    score = (
        us.recommend.OptimalTrue(truth=truth, liked=4).fit(ratings).score(np.zeros(1, np.int32))[0]
    )
    assert common["p_rel_unrated"].to_list() == score.tolist()
    assert common["rank_true"].max() <= common.height


def test_ranks_share_the_best_and_leave_out_what_has_no_score():
    counts = ItemCounts.known([2, 2, 1, 0, 5], [1, 1, 1, 0, 2], 5, [2, 2, 1, 0, 2])
    found = optimal_rankings(counts)
    assert len(counts.items) - found.height == 2  # left out
    assert found["rank_P"].to_list() == [1, 1, 3]
    assert found["rank_anti-P"].to_list() == [2, 2, 1]
    assert us.stats.kendall(found["rank_P"].to_numpy(), found["rank_anti-P"].to_numpy()) == -1
    ids = us.data.Ids.number(pl.Series([1, 2]))[0]
    columns = ([5, 5], [2, 3], [1, 2], [0, 1], [0, 1])
    partly = optimal_rankings(ItemCounts(ids, *(np.array(column) for column in columns)))
    assert partly["rank_true"].to_list() == [None, 1]


# Distributions


def test_correlations_against_scipy():
    stats = pytest.importorskip("scipy.stats")
    counts = random_counts(300, seed=4)
    report = describe_bias(counts)
    for row in report.correlations.iter_rows(named=True):
        x = counts.phi_p if row["ranking"] == "phi_P" else counts.phi_anti
        y = counts.p_train if row["with"] == "popularity" else counts.p_rel_train
        assert row["pearson"] == pytest.approx(stats.pearsonr(x, y).statistic)
        assert row["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
        assert row["kendall"] == pytest.approx(stats.kendalltau(x, y).statistic)


def test_bins_and_curve():
    report = describe_bias(ItemCounts.known([8, 4, 2, 1, 1, 0], [6, 2, 1, 1, 0, 0], 10))
    bins = report.bins(2)
    assert bins["items"].to_list() == [2, 3]
    assert bins.select("from", "to").rows() == [(1, 1), (2, 8)]
    assert bins["ratio"].to_list() == [0.5, 9 / 14]
    stats = pytest.importorskip("scipy.stats")
    wilson = stats.binomtest(9, 14).proportion_ci(method="wilson")
    assert bins.select("low", "high").rows()[1] == pytest.approx((wilson.low, wilson.high))
    assert report.bins(99)["items"].to_list() == [1] * 5
    curve = report.curve()
    assert curve["share_of_ratings"].to_list() == [0.5, 0.75, 0.875, 0.9375, 1.0, 1.0]
    assert report.head(0.5) == 0.875
    pairs = itertools.product([8, 4, 2, 1, 1, 0], repeat=2)
    assert report.gini == pytest.approx(sum(abs(a - b) for a, b in pairs) / (2 * 6 * 16))


def test_results_print_and_become_json(tmp_path):
    for counts in (random_counts(50), ItemCounts.known([5, 2], [3, 1], 10)):
        report = describe_bias(counts)
        for result in (report, report.pairs):
            assert str(result)
            assert repr(result)
            assert "<" in result._repr_html_()
            assert result.table().height
        json.dumps(report.to_dict(), allow_nan=False)
        for name in report.figures():
            figure = report.figure(name)
            figure.save(tmp_path / f"{name}.json")
            assert figure.title
    assert set(report.figures()) == {"popularity", "positive-ratio", "optimal", "cases"}


def test_figures_of_many_items_are_aggregated():
    counts = random_counts(6_000, 40_000, seed=1)
    report = describe_bias(counts, sample=10_000)
    for name in report.figures():
        assert report.figure(name)._rows() <= 5_000
    assert report.figure("optimal")._rows() == report.figure("dependence")._rows() == 5_000
    ranks = optimal_rankings(counts)
    assert charts.ranks(ranks["rank_P"], ranks["rank_anti-P"], [])._rows() == 5_000


def test_flat_data_do_not_break_a_report():
    """Implicit data: everything is liked, so ratings say nothing about relevance."""
    seen = {"user": [1, 2, 3, 1, 2, 1], "item": [1, 1, 2, 2, 3, 4]}
    report = describe_bias(seen)
    assert observed(report.pairs).ties == 1
    assert math.isnan(report.correlations["pearson"][1])
    json.dumps(report.to_dict(), allow_nan=False)
    assert str(report)
    assert describe_bias(ItemCounts.known([1, 2], [0, 0], 5, [0, 0])).dependence is None


# Verdicts


def test_verdicts():
    assert from_truth(0.7, 0.4, 0.7).family == "true-positive metrics"
    assert from_truth(0.4, 0.7, 0.3).family == "false-positive metrics"
    assert from_truth(0.81, 0.8, 0.5).family == "either"
    assert from_truth(0.41, 0.4, 0.5).family == "not identified"
    assert from_truth(0.7, 0.4, 0.7, 0.1).family == "true-positive metrics"
    assert "standard error of 10.0%" in from_truth(0.7, 0.4, 0.7, 0.1).why
    assert "too few items" in from_truth(0.7, 0.4, 0.7, 0.2).why
    assert from_truth(0.7, 0.4, 0.7, 0.2).family == "not identified"
    assert without_truth(0.01, [0.01, 0.49, 0.0, 0.5], 0.5).family == "either"
    open_ = without_truth(0.8, [0.6, 0.2, 0.2, 0.0], 0.8)
    assert open_.family == "not identified"
    assert "true-positive metrics are right. On 75.0%" in open_.branches[0]
    assert "false-positive metrics are right. On 100.0%" in open_.branches[1]
    assert "80.0%" in open_.branches[2]
    assert "No pair" in without_truth(1.0, [1.0, 0.0, 0.0, 0.0], 1.0).branches[1]
    assert "80.0%" in str(open_)
    assert f"- {open_.branches[1]}" in html.unescape(open_._repr_html_())
    assert set(open_.to_dict()) == {"family", "why", "branches"}


# Margins


def margin_of(a, b):
    """Return the ratios of a pair by name, and whether metrics disagree: as seen, as foretold."""
    split = margins({"a": a, "b": b})
    names = [quantity.name for quantity in split.parts["pairs"].question.quantities]
    rows = {name: split.pair("a", "b", quantity=name) for name in names}
    (disagree,) = {row.facts["disagree"] for row in rows.values()}
    (foretold,) = {row.facts["foretold"] for row in rows.values()}
    return {name: row.value for name, row in rows.items()}, disagree, foretold


def test_margin_of_two_plain_numbers():
    margin, disagree, _ = margin_of((0.3, 0.1), (0.1, 0.1))
    assert margin["judged"] == pytest.approx(2)
    assert margin["liked"] == pytest.approx(1.5)
    assert margin["disliked"] == pytest.approx(0.5)
    assert margin["precision"] == pytest.approx(margin["judged"] * margin["liked"])
    assert margin["anti_precision"] == pytest.approx(margin["judged"] * margin["disliked"])
    assert margin["judged_share"] == pytest.approx(math.log(2) / math.log(3))
    assert not disagree


tenths = st.integers(0, 5).map(lambda n: n / 10)


@given(st.tuples(tenths, tenths), st.tuples(tenths, tenths))
def test_the_lemma_of_systems(a, b):
    margin, disagree, foretold = margin_of(a, b)
    assert disagree == foretold
    product = (a[0] - b[0]) * (a[1] - b[1])
    assert disagree == (product > 0)
    if margin["precision"] is not None and margin["liked"] is not None:
        assert margin["precision"] == pytest.approx(margin["judged"] * margin["liked"])
    if min(*a, *b) > 0:
        j, c = [sum(x) for x in (a, b)], [x[0] / sum(x) for x in (a, b)]
        if j[0] > j[1] * 1.001:
            limit = max(c[1] / c[0], (1 - c[1]) / (1 - c[0]))
            if abs(j[0] / j[1] / limit - 1) > 1e-9:
                assert disagree == (j[0] / j[1] > limit)


def values_of(split):
    """Return precision and anti-precision by system."""
    values = {name: split.row(system=name, quantity="P").value for name in split.systems}
    return {
        name: (value, split.row(system=name, quantity="anti-P").value)
        for name, value in values.items()
    }


def test_margins_of_scores():
    test = {"user": [1, 1, 1, 2, 2, 3], "item": list("abcabd"), "rating": [5, 1, 4, 2, 5, 5]}
    runs = {
        "x": {1: ["a", "b"], 2: ["a", "b"], 3: ["z", "a"]},
        "y": {1: ["a", "z"], 2: ["b", "z"], 3: ["z", "y"]},
        "z": {1: ["d", "z"], 2: ["r", "z"], 3: ["z", "y"]},
    }
    scores = us.evaluate(test, runs, ["P@2", "anti-P@2", "Judged@2"], liked=4)
    split = margins(scores)
    assert split.card["k"] == 2
    values = values_of(split)
    assert values["x"] == pytest.approx((2 / 6, 2 / 6))
    assert values["y"] == pytest.approx((2 / 6, 0))
    assert split.pair("x", "y", quantity="judged").value == pytest.approx(2)
    assert split.pair("x", "y", quantity="liked").value == pytest.approx(0.5)
    assert split.pair("x", "z", quantity="judged").value is None
    only = margins(us.evaluate(test, runs, ["P@2", "Judged@2"], liked=4))
    for name, shares in values_of(only).items():
        assert shares == pytest.approx(values[name])
    assert split.parts["pairs"].where(quantity="judged").rows.height == 3
    assert split.where(quantity="liked").rows["value"].to_list()[-1] is None
    json.dumps(split.to_dict(), allow_nan=False)
    assert split.figure()._rows() == 2  # only the pair of x and y has finite parts
    assert "3 lists" in str(split)
    assert "<table" in split._repr_html_()
    both = us.evaluate(test, runs, ["P@1", "anti-P@1", "P@2", "anti-P@2", "RR"], liked=4)
    assert values_of(margins(both, 1))["y"] == pytest.approx((2 / 3, 0))
    with pytest.raises(SettingError, match="several cutoffs"):
        margins(both)
    with pytest.raises(SettingError, match=r"P@5 and anti-P@5 .*P@1, anti-P@1"):
        margins(both, 5)
    with pytest.raises(SettingError, match="P@k and anti-P@k"):
        margins(us.evaluate(test, runs, ["RR"], liked=4))


def test_margins_refuse_what_is_no_precision():
    with pytest.raises(DataError, match="two systems"):
        margins({"a": (0.1, 0.1)})
    with pytest.raises(DataError, match="more than 1"):
        margins({"a": (0.6, 0.6), "b": (0.1, 0.1)})
    with pytest.raises(DataError, match="at least 0"):
        margins({"a": (0.6, -0.1), "b": (0.1, 0.1)})
    with pytest.raises(SettingError, match="leave it out"):
        margins({"a": (0.1, 0.1), "b": (0.1, 0.2)}, 10)
    split = margins({"a": (0.1, 0.1), "b": (0.1, 0.2)})
    with pytest.raises(UnknownName, match="unknown system"):
        split.pair("a", "c")


def test_many_margins_are_drawn_in_part():
    split = margins({f"s{n:02}": (0.3 - n / 100, 0.1) for n in range(20)})
    assert split.figure()._rows() == 200
    assert split.parts["summary"].row(quantity="tau_judged").value == 1


# The command line


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(3)
    for name, seed in (("seen", 1), ("random", 2)):
        rng = np.random.default_rng(seed)
        user, item = np.divmod(rng.choice(600, 200, replace=False), 20)
        ratings = {"user": user, "item": item, "rating": rng.integers(1, 6, 200)}
        us.read_ratings(ratings).to_csv(tmp_path / f"{name}.csv")
    (tmp_path / "a.csv").write_text("user,item,rank\n1,3,1\n1,4,2\n2,5,1\n")
    (tmp_path / "b.csv").write_text("user,item,rank\n1,6,1\n1,7,2\n2,8,1\n")
    return tmp_path


def call(*arguments):
    done = CliRunner().invoke(app, ["bias", *map(str, arguments)])
    if done.exception is not None and done.exception.__cause__ is not None:
        raise done.exception.__cause__
    assert done.exit_code == 0, done.output
    return done.stdout


def test_pairs_command(files):
    found = json.loads(call("pairs", files / "seen.csv", "--liked", 4, "--format", "json"))
    pairs = item_pairs(files / "seen.csv", liked=4)
    assert found == json.loads(json.dumps(pairs.to_dict()))
    shares = {row["case"]: row["value"] for row in found["rows"] if row["quantity"] == "share"}
    assert shares == observed(pairs).cases
    assert list(shares) == list(CASES)
    assert sum(shares.values()) == pytest.approx(1)
    assert set(found["parts"]) == {"overall"}
    options = ["--random", files / "random.csv", "--users", 500, "--threads", 1]
    found = json.loads(
        call("pairs", files / "seen.csv", "--liked", 3, *options, "--format", "json")
    )
    pairs = item_pairs(files / "seen.csv", liked=3, random=files / "random.csv", users=500)
    assert found["parts"]["true overall"] == json.loads(
        json.dumps(pairs.parts["true overall"].to_dict())
    )
    text = call("pairs", files / "seen.csv", "--liked", 4, "--figure", files / "x.json")
    assert "more reliable: not identified" in text
    assert (files / "x.json").exists()
    assert "| agree, steeper |" in call("pairs", files / "seen.csv", "--format", "markdown")
    sampled = ["--sample", 1000, "--seed", 5, "--format", "json"]
    assert json.loads(call("pairs", files / "seen.csv", *sampled))["card"]["sampled"] == 1000


def test_pairs_command_for_two_systems(files):
    runs = ["--run", files / "a.csv", "--run", files / "b.csv"]
    found = json.loads(
        call("pairs", files / "seen.csv", "--liked", 4, *runs, "-k", 1, "--format", "json")
    )
    assert found["card"]["items"] == 4
    found = json.loads(call("pairs", files / "seen.csv", *runs, "--format", "json"))
    assert found["card"]["items"] == 6
    with pytest.raises(SettingError, match="twice"):
        call("pairs", files / "seen.csv", "--run", files / "a.csv")
    with pytest.raises(SettingError, match="-k needs --run"):
        call("pairs", files / "seen.csv", "-k", 3)


def test_describe_command(files):
    out = call(
        "describe",
        files / "seen.csv",
        "--liked",
        4,
        "--random",
        files / "random.csv",
        "--figures",
        files / "figures",
        "--format",
        "json",
    )
    report = describe_bias(files / "seen.csv", liked=4, random=files / "random.csv")
    assert json.loads(out)["verdict"] == report.verdict.to_dict()
    assert json.loads(out)["dependence"] == report.dependence.to_dict()
    drawn = {path.stem for path in (files / "figures").glob("*.svg")}
    assert drawn == set(report.figures())
    assert call("describe", files / "seen.csv", "--liked", 4).count("popularity and rating") == 1
    assert "| phi_P with rating |" in call("describe", files / "seen.csv", "--format", "markdown")
    renamed = ["--columns", "user=user,item=item,rating=rating", "--duplicates", "first"]
    assert call("describe", files / "seen.csv", *renamed) == call("describe", files / "seen.csv")


def test_commands_refuse(files):
    with pytest.raises(UnknownName, match="unknown format"):
        call("pairs", files / "seen.csv", "--format", "table")
    with pytest.raises(UnknownName, match="unknown format"):
        call("describe", files / "seen.csv", "--format", "table")
    with pytest.raises(SettingError, match="for files"):
        call("pairs", "ml-1m", "--duplicates", "first")
    with pytest.raises(DataError, match="no such file"):
        call("pairs", files / "missing.csv")


@pytest.mark.parametrize("command", ["describe", "pairs"])
def test_commands_have_help_with_examples(command):
    out = call(command, "--help")
    assert "Examples" in out
    assert f"unskew bias {command}" in out


# Published numbers


@pytest.fixture(scope="module")
def movielens():
    return us.read_ratings(real_data("ml-1m/ratings.parquet"))


@pytest.mark.real
def test_movielens_pairs(movielens):
    """mena2021 sections 6.2 and figures 5 and 6 (their 63.3 % comes out as 66.0 % here)."""
    pairs = item_pairs(movielens, liked=4)
    assert pairs.card["items"] == 3706
    assert observed(pairs).disagree == pytest.approx(0.8246, abs=1e-4)
    assert list(observed(pairs).cases.values()) == pytest.approx(
        [0.526, 0.086, 0.298, 0.090], abs=1e-3
    )
    assert list(observed(pairs).cases_strict.values())[2:4] == pytest.approx(
        [0.2972, 0.0841], abs=1e-4
    )
    assert observed(pairs).steeper["both"] == pytest.approx(0.661, abs=2e-3)
    assert observed(pairs).tau == pytest.approx(-0.65, abs=0.005)
    assert observed(pairs).lemma1 == 1


@pytest.mark.real
def test_movielens_correlations(movielens):
    """mena2021 figure 7."""
    found = describe_bias(movielens, liked=4).correlations["pearson"].to_list()
    assert found == pytest.approx([0.93, 0.38, -0.88, -0.11], abs=0.01)


@pytest.mark.real
def test_lemma_1_on_movielens_by_definition(movielens):
    """Decrement rates compared as whole numbers, pair by pair, apart from the ranks we count by."""
    counts = count_items(movielens, liked=4)
    n, r = counts.rated, counts.liked
    m, d = counts.users - n, n - r
    holds = apart = 0
    for i in range(1, n.size):
        nj, rj, mj, dj = n[:i], r[:i], m[:i], d[:i]

        def steeper(top_i, bottom_i, top_j, bottom_j, i=i, nj=nj, mj=mj):
            # min/max of the odds < min/max of the other, both as whole numbers
            x, y = n[i] * mj, nj * m[i]
            u, v = top_i * bottom_j, top_j * bottom_i
            low, high = np.minimum(x, y), np.maximum(x, y)
            small, large = np.minimum(u, v), np.maximum(u, v)
            return (large > 0) & (low * large < small * high)

        odds, rel = np.sign(n[i] * mj - nj * m[i]), np.sign(r[i] * nj - rj * n[i])
        a = steeper(r[i], n[i], rj, nj) & (odds * rel <= 0)
        b = steeper(d[i], n[i], dj, nj) & (odds * rel > 0)
        phi, anti = np.sign(r[i] * mj - rj * m[i]), -np.sign(d[i] * mj - dj * m[i])
        known = phi * anti != 0
        apart += int(known.sum())
        holds += int((known & ((a | b) == (phi * anti < 0))).sum())
    assert holds == apart
    pairs = item_pairs(counts)
    assert apart / pairs.card["pairs"] == pytest.approx(1 - observed(pairs).ties, abs=1e-12)


@pytest.mark.real
def test_system_lemma_on_published_systems():
    """mena2021's sixteen systems on ML-1M: what decides is how much of a list is judged."""
    table = pl.read_csv(real_data("published/mena2021_ml-1m_at10.csv"))
    table = table.filter(~pl.col("algorithm").str.starts_with("optimal"))
    split = margins(
        {
            name: both
            for name, *both in table.select("algorithm", "precision", "antiprecision").iter_rows()
        }
    )
    assert len(split.systems) == 16
    pairs = split.parts["pairs"].where(quantity="judged").rows
    assert pairs.height == 120
    assert (pairs["disagree"] == pairs["foretold"]).all()
    summary = dict(split.parts["summary"].rows.iter_rows())
    assert summary["tau_judged"] == pytest.approx(0.90, abs=0.005)
    assert summary["tau_liked"] == pytest.approx(0.05, abs=0.005)
    assert summary["judged_share"] == pytest.approx(0.87, abs=0.005)
    assert summary["disagree"] == pytest.approx((1 + 0.62) / 2, abs=0.01)  # τ = .62


@pytest.mark.real
def test_coat_has_a_truth():
    parts = []
    for name in ("train", "test"):
        matrix = np.loadtxt(real_data(f"coat/{name}.ascii"))
        user, item = np.nonzero(matrix)
        parts.append({"user": user, "item": item, "rating": matrix[user, item]})
    report = describe_bias(parts[0], liked=4, random=parts[1])
    assert any("366 random judgments" in note for note in report.counts.notes)
    assert report.pairs.card["true_items"] == 300
    assert true(report.pairs).consistent["P"] > true(report.pairs).consistent["anti-P"]
    assert report.verdict.family == "true-positive metrics"
