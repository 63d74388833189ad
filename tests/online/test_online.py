"""Online tests in worlds: plain twins of the kernels, hand-worked lists, tests that must err."""

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import unskew as us
from shared.examples import examples
from unskew import DataError, SettingError, UnknownName
from unskew.arrays import frozen
from unskew.engine.rng import draw, key_of
from unskew.online import ab_tests
from unskew.online.ab_tests import (
    ab_counts,
    ab_test,
    effects_of_counts,
    effects_of_users,
    effects_of_wins,
    log_of,
    mean_clicks,
)
from unskew.online.click_models import Clicks, ForcedExposure
from unskew.online.interleaving import interleave, multileave, wins_of
from unskew.online.judgment_reuse import reuse_judgments
from unskew.online.online_tests import TESTS, _share_rows, impressions_needed, online_tests
from unskew.online.top_lists import TopLists, top_lists
from unskew.report.estimates import Estimates
from unskew.stats.clusters import share_interval
from unskew.stats.corrections import correct

SYSTEMS = [us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()]


@pytest.fixture(scope="module")
def shop():
    return us.world("shop", users=120, items=60, seed=1)


@pytest.fixture(scope="module")
def shown(shop):
    return top_lists(shop, SYSTEMS, k=5)


def plain_world(users=40, items=30, seed=1):
    """A world without clusters whose observed ratings are few."""
    return us.world("uniform", users=users, items=items, seed=seed, density=0.02)


def made(lists, liked, systems="abcdefgh"):
    """Lists by hand: systems x users x k items, and whether each is liked."""
    item = np.array(lists, np.int32)
    truth = np.array(liked, np.uint8)
    return TopLists(tuple(systems[: len(item)]), frozen(item), frozen(truth))


def number(bits):
    return float(int(bits) >> 11) * 2.0**-53


# Plain twins


def plain_clicks(world, behaviour, bits, items, liked):
    """Return the clicked places of a list; `bits` gives the random bits of a counter."""
    clicked = []
    for r, (i, is_liked) in enumerate(zip(items, liked, strict=True)):
        g = behaviour.engage[i]
        chance = behaviour.if_liked if is_liked else behaviour.if_not
        chance = behaviour.examination[r] * (g + (1 - g) * chance)
        for q in clicked:
            if behaviour.group[items[q]] == behaviour.group[i]:
                chance *= behaviour.keep
        if i >= 0 and number(bits((1 << 32) + r)) < chance:
            clicked.append(r)
    return clicked


def stream(seed, stage, n):
    return lambda counter: draw(seed, stage, n, counter)[0]


def stage_of(method, shown):
    return "\x1f".join([f"online/{method}", *shown.systems])


def plain_team(bits, lists, k):
    """Team-draft: items, and whose each is."""
    mixed, team, drawn = [], [], 1
    while len(mixed) < k:
        order, before = list(range(len(lists))), len(mixed)
        for s in range(len(lists) - 1, 0, -1):
            other = int(bits(drawn)) % (s + 1)
            order[s], order[other] = order[other], order[s]
            drawn += 1
        for s in order:
            new = next((i for i in lists[s] if i >= 0 and i not in mixed), None)
            if new is not None and len(mixed) < k:
                mixed.append(new)
                team.append(s)
        if len(mixed) == before:
            break
    return mixed, team


def plain_balanced(a_first, a, b, k):
    """Balanced interleaving as Joachims wrote it."""
    a, b = [i for i in a if i >= 0], [i for i in b if i >= 0]
    mixed, ka, kb = [], 0, 0
    while len(mixed) < k and (ka < len(a) or kb < len(b)):
        if kb >= len(b) or (ka < len(a) and (ka < kb or (ka == kb and a_first))):
            mixed += [a[ka]] if a[ka] not in mixed else []
            ka += 1
        else:
            mixed += [b[kb]] if b[kb] not in mixed else []
            kb += 1
    return mixed


@st.composite
def some_lists(draw_, systems=None):
    count = systems or draw_(st.integers(2, 4))
    k = draw_(st.integers(1, 6))
    item = np.full((count, 3, k), -1, np.int32)
    for s in range(count):
        for u in range(3):
            size = draw_(st.integers(0, k))
            item[s, u, :size] = draw_(st.permutations(range(8)))[:size]
    # Whether a pair of user and item is liked is the same in every list.
    liked = np.array(draw_(st.lists(st.booleans(), min_size=24, max_size=24))).reshape(3, 8)
    truth = liked[np.arange(3)[None, :, None], item] & (item >= 0)
    return made(item, truth)


BEHAVIOURS = [
    Clicks(),
    Clicks(position=0.5, if_not=0.2, engagement=0.6, trend="random"),
    Clicks(position=0, if_liked=0.9, redundancy=0.7, groups=3),
    ForcedExposure(),
]


@examples(25)
@given(some_lists(), st.sampled_from(BEHAVIOURS), st.integers(0, 99))
def test_an_ab_test_is_its_plain_twin(shown, feedback, seed):
    world = us.world("null", users=3, items=8, seed=2)
    behaviour = feedback.behaviour(world, shown.k)
    expected = np.zeros((len(shown.systems), 3), np.int64)
    mark = np.zeros(shown.item.shape, np.uint8)
    for n in range(30):
        bits = stream(seed, stage_of("ab", shown), n)
        u, s = int(bits(0)) % 3, int(bits(1)) % len(shown.systems)
        clicks = plain_clicks(world, behaviour, bits, shown.item[s, u], shown.liked[s, u])
        expected[s] += (1, len(clicks), len(clicks) ** 2)
        for r in range(shown.k):
            if shown.item[s, u, r] >= 0:
                mark[s, u, r] = max(mark[s, u, r], 1 + (r in clicks))
    assert (ab_counts(shown, behaviour, seed, 0, 30) == expected).all()
    assert (log_of(shown, behaviour, seed, 30) == mark).all()


@examples(25)
@given(some_lists(), st.sampled_from(BEHAVIOURS), st.integers(0, 99))
def test_team_draft_is_its_plain_twin(shown, feedback, seed):
    world = us.world("null", users=3, items=8, seed=2)
    behaviour = feedback.behaviour(world, shown.k)
    size = len(shown.systems)
    wins = np.zeros((size, size), np.int64)
    for n in range(20):
        bits = stream(seed, stage_of("multileave", shown), n)
        u = int(bits(0)) % 3
        mixed, team = plain_team(bits, shown.item[:, u].tolist(), shown.k)
        places = [shown.item[s, u].tolist().index(i) for s, i in zip(team, mixed, strict=True)]
        liked = [shown.liked[s, u, p] for s, p in zip(team, places, strict=True)]
        credit = [0] * size
        for r in plain_clicks(world, behaviour, bits, mixed, liked):
            credit[team[r]] += 1
        wins += np.greater.outer(credit, credit)
    assert (wins_of(shown, behaviour, "multileave", seed, 0, 20) == wins).all()


@examples(25)
@given(some_lists(2), st.sampled_from(BEHAVIOURS), st.integers(0, 99))
def test_balanced_interleaving_is_its_plain_twin(shown, feedback, seed):
    world = us.world("null", users=3, items=8, seed=2)
    behaviour = feedback.behaviour(world, shown.k)
    wins = np.zeros((2, 2), np.int64)
    for n in range(20):
        bits = stream(seed, stage_of("balanced", shown), n)
        u = int(bits(0)) % 3
        a, b = shown.item[:, u].tolist()
        mixed = plain_balanced(int(bits(1)) % 2 == 1, a, b, shown.k)
        truth = {i: shown.liked[s, u, r] for s in (0, 1) for r, i in enumerate((a, b)[s])}
        clicks = plain_clicks(world, behaviour, bits, mixed, [truth[i] for i in mixed])
        if clicks:
            deepest = mixed[clicks[-1]]
            reach = min(one.index(deepest) for one in (a, b) if deepest in one) + 1
            credit = [sum(mixed[r] in one[:reach] for r in clicks) for one in (a, b)]
            wins += np.greater.outer(credit, credit)
    assert (wins_of(shown, behaviour, "balanced", seed, 0, 20) == wins).all()


@examples(40)
@given(some_lists(), st.integers(0, 999))
def test_merged_lists_hold_each_item_once_and_teams_are_even(shown, seed):
    from unskew.engine.rng import first
    from unskew.online import kernels

    k = shown.k
    mixed, team, source = (np.empty(k, np.int32) for _ in range(3))
    state = np.uint64(first(np.uint64(key_of(seed, "x")), 0))
    size = kernels.team_draft(state, shown.item, 1, mixed, team, source)
    merged = mixed[:size].tolist()
    assert len(set(merged)) == size
    union = set(shown.item[:, 1][shown.item[:, 1] >= 0].tolist())
    assert size == min(k, len(union))
    assert merged == [int(shown.item[team[r], 1, source[r]]) for r in range(size)]
    if (shown.item[:, 1] >= 0).all() and len(union) == shown.item[:, 1].size:  # nothing in common
        counts = np.bincount(team[:size], minlength=len(shown.systems))
        assert counts.max() - counts.min() <= 1


# Hand-worked


def test_balanced_lists_by_hand():
    from unskew.online import kernels

    a, b = np.array([1, 2, 3, 4], np.int32), np.array([5, 1, 6, 2], np.int32)
    mixed = np.empty(4, np.int32)
    assert kernels.balance(1, a, b, mixed) == 4
    assert mixed.tolist() == [1, 5, 2, 3]
    kernels.balance(0, a, b, mixed)
    assert mixed.tolist() == [5, 1, 2, 6]
    # A click on 6, third in b alone: a's top 3 holds 1 and 2 of the clicks, b's holds 1 and 6.
    clicked = np.array([0, 1, 1, 1], np.uint8)
    assert kernels.balanced_credit(4, mixed, clicked, a, b) == (2, 2)
    clicked = np.array([0, 1, 0, 1], np.uint8)
    assert kernels.balanced_credit(4, mixed, clicked, a, b) == (1, 2)


def test_random_clicks_fool_balanced_interleaving_but_not_team_draft():
    # b is a without its first item, which comes last: balanced interleaving is known to prefer it.
    lists = made([[[0, 1, 2, 3]], [[1, 2, 3, 0]]], np.zeros((2, 1, 4)))
    world = us.world("null", users=1, items=4, ratings=1)
    # One click, on a place at random: c of 4 places with all other clicks off, by redundancy 1.
    by_chance = Clicks(position=0, if_not=0.05, redundancy=1, groups=(0, 0, 0, 0))
    balanced = interleave(world, lists, 100_000, by_chance, method="balanced").row()
    assert balanced.facts["winner"] == "b"
    assert interleave(world, lists, 100_000, by_chance).row().p > 0.001
    assert balanced.facts["true_difference"] == 0


def test_a_list_shown_by_hand_counts_clicks():
    world = us.world("null", users=2, items=4, ratings=2)
    lists = made([[[0, 1], [2, -1]], [[3, 2], [1, 0]]], [[[1, 0], [1, 0]], [[0, 1], [0, 0]]])
    test = ab_test(world, lists, None, ForcedExposure())
    assert test.rows.select("lists", "clicks").rows() == [(2, 2), (2, 1)]
    assert test.rows["value"].to_list() == [0.5, 0.25]
    assert test.row(system="a").low == test.row(system="a").high  # squared clicks 2: no spread
    assert lists.true().tolist() == [0.5, 0.25]
    assert lists.true(1).tolist() == [1.0, 0.0]
    assert test.pair("a", "b").value == 0.25


def test_reuse_by_hand():
    world = us.world("null", users=2, items=6, ratings=2)
    # c has what a showed in one of its two places, for the first user; a, b took part.
    lists = made(
        [[[0, 1], [2, 3]], [[1, 2], [2, 4]], [[0, 5], [5, 1]]],
        [[[1, 0], [1, 1]], [[0, 1], [1, 0]], [[1, 1], [1, 0]]],
    )
    found = reuse_judgments(world, lists, ["a", "b"])
    errors = found.where(quantity="error").rows
    assert errors["took_part"].to_list() == [True, True, False]
    assert errors["value"].to_list() == [0.0, 0.0, -0.5]
    numbers = {"judged": 0.25, "estimate": 0.25, "true": 0.75, "condensed": 1.0}
    for quantity, value in numbers.items():
        assert found.row(system="c", quantity=quantity).value == value
    # Truly c equals a and beats b; by these judgments it is the worst.
    pair = found.pair("b", "c")
    assert pair.value > 0 > pair.facts["true_difference"]
    assert pair.facts["took_part"] == 1
    assert found.pair("a", "b").facts["took_part"] == 2


# What users do


def test_positions():
    assert Clicks().places(3).tolist() == [1.0, 1 / math.log2(3), 0.5]
    assert Clicks(position=0).places(2).tolist() == [1.0, 1.0]
    assert Clicks(position=2).places(2).tolist() == [1.0, 0.25]


def test_trends_and_groups(shop):
    items = len(shop.items)
    counts = np.bincount(shop.ratings.item, minlength=items)
    popular = Clicks(engagement=0.4).behaviour(shop, 5).engage
    assert popular.max() == 0.4
    assert np.allclose(popular, 0.4 * counts / counts.max())
    drawn = Clicks(engagement=1, trend="random").behaviour(shop, 5).engage
    assert 0.3 < drawn.mean() < 0.7
    mine = Clicks(engagement=0.5, trend=[0.5] * items)
    assert (mine.behaviour(shop, 5).engage == 0.25).all()
    assert hash(mine) is not None
    clusters = Clicks(redundancy=0.5).behaviour(shop, 5).group
    assert (np.bincount(clusters) >= items // 8).all()
    dealt = Clicks(redundancy=0.5, groups=4).behaviour(shop, 5)
    assert set(dealt.group.tolist()) == {0, 1, 2, 3}
    assert dealt.keep == 0.5
    given_ = Clicks(redundancy=1, groups=np.arange(items)).behaviour(shop, 5).group
    assert given_.tolist() == list(range(items))


def test_feedback_that_makes_no_sense(shop):
    with pytest.raises(UnknownName, match="position"):
        Clicks(position="linear")
    with pytest.raises(UnknownName, match="Did you mean 'popular'"):
        Clicks(trend="popularity")
    for name in ("if_liked", "if_not", "engagement", "redundancy"):
        with pytest.raises(SettingError, match=name):
            Clicks(**{name: 1.5})
    with pytest.raises(SettingError, match="position"):
        Clicks(position=-1)
    with pytest.raises(SettingError, match="trend"):
        Clicks(trend=(2.0,))
    with pytest.raises(SettingError, match="groups"):
        Clicks(groups=0)
    with pytest.raises(SettingError, match="one per item"):
        Clicks(engagement=1, trend=(0.5,)).behaviour(shop, 5)
    with pytest.raises(SettingError, match="groups=10"):
        Clicks(redundancy=0.5).behaviour(plain_world(), 5)
    with pytest.raises(SettingError, match="Forced"):
        ab_test(shop, SYSTEMS, 10, "clicks", k=5)
    assert str(Clicks(engagement=0.5, groups=(1, 2))) == (
        "free clicks (engagement=0.5, groups=given)"
    )


# Lists


def test_lists_are_what_rank_gives_and_the_truth_is_the_worlds(shop, shown):
    values = shop.values(np.arange(120, dtype=np.int32))
    start, rated = shop.ratings.start, shop.ratings.item
    assert shown.systems == ("random", "popularity", "average-rating")
    counts = np.bincount(rated, minlength=60)
    for u in range(120):
        own = set(rated[start[u] : start[u + 1]].tolist())
        free = sorted(set(range(60)) - own, key=lambda i: (-counts[i], i))
        assert shown.item[1, u].tolist() == free[:5]
        for s in range(3):
            for r, i in enumerate(shown.item[s, u]):
                assert i not in own
                assert shown.liked[s, u, r] == (values[u, i] >= shop.liked)
    assert np.allclose(shown.true(), shown.per_user().mean(axis=1))


def test_short_lists_and_unknown_relevance_are_told():
    known = us.read_ratings({"user": [1, 1, 2, 2], "item": [7, 8, 8, 9], "rating": [5, 1, 4, 2]})
    world = us.World.of_matrix(known, liked=4, expected=1, seed=3)
    scores = np.array([[1.0, np.nan, np.nan], [3.0, 2.0, 1.0]])
    found = top_lists(world, {"mine": scores}, k=2)
    assert any("empty" in note for note in found.notes)
    everything = top_lists(world, {"all": np.array([3.0, 2.0, 1.0])}, k=2)
    assert any("unknown relevance" in note for note in everything.notes)


def test_what_cannot_be_shown(shop, shown):
    with pytest.raises(SettingError, match="60 items"):
        top_lists(shop, SYSTEMS, k=61)
    with pytest.raises(SettingError, match="mapping"):
        top_lists(shop, [us.recommend.Random(), us.recommend.Random()])
    with pytest.raises(SettingError, match="a list of Algorithm"):
        top_lists(shop, us.recommend.Random())
    with pytest.raises(SettingError, match="at least one"):
        top_lists(shop, {})
    with pytest.raises(SettingError, match="leave out k and train"):
        top_lists(shop, shown, k=3)
    with pytest.raises(DataError, match="other users or items"):
        top_lists(shop, SYSTEMS, train=plain_world().ratings)
    with pytest.raises(UnknownName, match="popularity"):
        shown.only(["popular"])
    assert top_lists(shop, shown) is shown


# Tests that tell


def test_forced_feedback_to_everyone_gives_the_true_precision_exactly(shop, shown):
    test = ab_test(shop, shown, None, ForcedExposure())
    assert (test.rows["value"].to_numpy() == shown.true()).all()
    assert test.rows["lists"].to_list() == [120] * 3
    mine = stats.ttest_rel(shown.per_user()[0], shown.per_user()[1])
    assert test.pair("random", "popularity").p == pytest.approx(mine.pvalue, rel=1e-9)


def test_forced_feedback_of_some_is_unbiased(shop, shown):
    counts = ab_counts(shown, ForcedExposure().behaviour(shop, 5), 5, 0, 30_000)
    test = ab_test(shop, shown, 30_000, ForcedExposure(), seed=5)
    _, rate, error = mean_clicks(counts, 5)
    assert test.rows["value"].to_list() == rate.tolist()
    assert (np.abs(rate - shown.true()) / error < 4.5).all()


def test_same_bits_whatever_the_blocks(shop, shown, monkeypatch):
    behaviour = Clicks(engagement=0.3).behaviour(shop, 5)
    pair = shown.only(["random", "popularity"])
    whole = ab_counts(shown, behaviour, 1, 0, 3_000)
    wins = {m: wins_of(pair, behaviour, m, 1, 0, 3_000) for m in ("team-draft", "balanced")}
    monkeypatch.setattr(ab_tests, "_BLOCK", 17)
    assert (ab_counts(shown, behaviour, 1, 0, 3_000) == whole).all()
    parts = ab_counts(shown, behaviour, 1, 0, 999) + ab_counts(shown, behaviour, 1, 999, 3_000)
    assert (parts == whole).all()
    for method, found in wins.items():
        assert (wins_of(pair, behaviour, method, 1, 0, 3_000) == found).all()


def test_verdicts_against_scipy():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 4, 50), rng.integers(1, 5, 30)
    counts = np.array([[one.size, one.sum(), (one**2).sum()] for one in (a, b)])
    mine, theirs = effects_of_counts(counts, 2), stats.ttest_ind(a, b, equal_var=False)
    assert mine.p[0] == pytest.approx(theirs.pvalue, rel=1e-9)
    interval = theirs.confidence_interval(0.9)
    assert mine.interval(0.9)[0][0] == pytest.approx(interval.low / 2, rel=1e-9)
    assert mine.interval(0.9)[1][0] == pytest.approx(interval.high / 2, rel=1e-9)
    pairs = effects_of_users(np.stack([a[:30], b]) / 2)
    assert pairs.p[0] == pytest.approx(stats.ttest_rel(a[:30], b).pvalue, rel=1e-9)
    for won, lost in ((30, 12), (0, 0), (5, 5), (0, 9)):
        found = effects_of_wins(np.array([[0, won], [lost, 0]]), 100)
        exact = stats.binomtest(won, won + lost).pvalue if won + lost else 1.0
        assert found.p[0] == pytest.approx(exact, rel=1e-9)
        assert found.difference[0] == (won - lost) / 100
        low, high = found.interval(0.95)
        assert -1 <= low[0] <= found.difference[0] <= high[0] <= 1


def test_verdicts_without_any_spread():
    same = effects_of_counts(np.array([[5, 10, 20], [5, 10, 20]]), 2)
    assert (same.difference[0], same.p[0]) == (0.0, 1.0)
    clear = effects_of_counts(np.array([[5, 10, 20], [5, 5, 5]]), 2)
    assert (clear.difference[0], clear.p[0]) == (0.5, 0.0)
    single = effects_of_counts(np.array([[1, 2, 4], [5, 5, 5]]), 2)
    assert single.p[0] == 1.0
    assert math.isnan(single.interval(0.95)[0][0])


def test_equal_systems_show_no_preference(shop, shown):
    twins = TopLists(("a", "b"), frozen(shown.item[[1, 1]]), frozen(shown.liked[[1, 1]]))
    for feedback in (Clicks(), Clicks(engagement=0.5), ForcedExposure()):
        for method in ("team-draft", "balanced"):
            row = interleave(shop, twins, 20_000, feedback, method=method).row()
            assert row.p > 0.001
            assert row.facts["true_difference"] == 0
        assert ab_test(shop, twins, 20_000, feedback).pair("a", "b").p > 0.001
    # The same list for both: balanced interleaving gives every click to both.
    assert row.facts["won"] == row.facts["won_against"] == 0


def test_the_better_system_wins_in_the_end(shop):
    good = np.where(shop.values(np.arange(120, dtype=np.int32)) >= shop.liked, 1.0, 0.0)
    bits = np.random.default_rng(1).random(good.shape)
    lists = top_lists(shop, {"good": 0.3 * good + bits, "chance": bits[::-1].copy()}, k=5)
    assert lists.true()[0] > lists.true()[1] + 0.05
    tests = [interleave(shop, lists, 20_000, method=name) for name in ("team-draft", "balanced")]
    for test in (*tests, ab_test(shop, lists, 20_000), multileave(shop, lists, 20_000)):
        assert winner(test) == "good"


def winner(test):
    """Return who wins of two systems."""
    return test.pair(*test.systems).facts["winner"]


def lists_of(world, rows, liked, systems="ab"):
    """The same lists for every user, by which of the items are liked."""
    users = len(world.users)
    item = np.repeat(np.array(rows, np.int32)[:, None, :], users, axis=1)
    truth = np.isin(item, liked)
    return made(item, truth, systems)


def test_engagement_makes_interleaving_err_and_forced_feedback_not():
    world = plain_world()
    # Three of five are liked in a, one of five in b, whose items are in fashion.
    lists = lists_of(world, [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], [0, 1, 2, 5])
    trend = tuple(1.0 if 5 <= i < 10 else 0.0 for i in range(30))
    trendy, honest = Clicks(engagement=0.8, trend=trend), Clicks()
    tests = [
        lambda feedback: ab_test(world, lists, 5_000, feedback),
        lambda feedback: interleave(world, lists, 5_000, feedback),
        lambda feedback: interleave(world, lists, 5_000, feedback, method="balanced"),
        lambda feedback: multileave(world, lists, 5_000, feedback),
    ]
    for test in tests:
        assert winner(test(honest)) == "a"
        assert winner(test(trendy)) == "b"
        assert winner(test(ForcedExposure())) == "a"
        assert test(trendy).pair("a", "b").facts["true_difference"] > 0


def test_redundancy_makes_interleaving_err():
    world = plain_world()
    # All ten of a are liked and alike; in b all but the first are, each of another kind.
    every = np.arange(20)
    lists = lists_of(world, every.reshape(2, 10), every[every != 10])
    kinds = tuple(0 if i < 10 else i for i in range(30))
    alike = Clicks(position=0, redundancy=0.9, groups=kinds)
    for feedback, better in ((Clicks(position=0), "a"), (alike, "b")):
        assert winner(ab_test(world, lists, 5_000, feedback)) == better
        assert winner(interleave(world, lists, 5_000, feedback)) == better
    # Nothing is left of the chance after a click: no list has two.
    once = Clicks(position=0, redundancy=1, groups=(0,) * 30)
    counts = ab_counts(lists, once.behaviour(world, 10), 0, 0, 2_000)
    assert (counts[:, 1] == counts[:, 2]).all()


def test_position_bias_weighs_the_top():
    world = plain_world()
    # b has more liked items, a has them first: where hardly anyone looks down, a wins.
    lists = lists_of(world, [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], [0, 7, 8, 9])
    assert lists.true().tolist() == [0.2, pytest.approx(0.6)]
    assert winner(ab_test(world, lists, 5_000, Clicks(position=3))) == "a"
    assert winner(ab_test(world, lists, 5_000, Clicks(position=0))) == "b"


def test_reuse_favours_who_is_like_the_participants(shop, shown):
    copy = TopLists(
        (*shown.systems, "copy"),
        frozen(shown.item[[0, 1, 2, 1]]), frozen(shown.liked[[0, 1, 2, 1]]),
    )  # fmt: skip
    rows = reuse_judgments(shop, copy, ["random", "popularity"]).where(quantity="error").rows
    errors = dict(zip(rows["system"], rows["value"], strict=True))
    assert errors["copy"] == 0.0
    assert errors["average-rating"] < -0.2
    fewer = reuse_judgments(shop, copy, ["popularity"], 60, Clicks(), level=0.9)
    assert fewer.card["users"] < 60
    assert fewer.row(system="copy", quantity="judged").value == 1.0
    assert 0 < fewer.row(system="popularity", quantity="estimate").value < shown.true()[1]


def test_settings_of_tests(shop, shown):
    with pytest.raises(SettingError, match="exactly 2"):
        interleave(shop, shown)
    with pytest.raises(SettingError, match="at least 2"):
        multileave(shop, shown.only(["random"]))
    with pytest.raises(SettingError, match="at least 2"):
        ab_test(shop, shown.only(["random"]))
    with pytest.raises(UnknownName, match="team-draft"):
        interleave(shop, shown, method="team")
    for test in (ab_test, multileave):
        with pytest.raises(SettingError, match="impressions"):
            test(shop, shown, 0)
        with pytest.raises(SettingError, match="level"):
            test(shop, shown, 10, level=1)
    with pytest.raises(SettingError, match="took_part"):
        reuse_judgments(shop, shown, "random")
    with pytest.raises(SettingError, match="took_part"):
        reuse_judgments(shop, shown, [])
    with pytest.raises(SettingError, match="impressions"):
        reuse_judgments(shop, shown, ["random"], 0)


def test_winners_are_named_by_the_corrected_p(shop, shown):
    tests = {
        "ab": lambda **how: ab_test(shop, shown, 400, **how),
        "multileave": lambda **how: multileave(shop, shown, 400, **how),
        "reuse": lambda **how: reuse_judgments(shop, shown, ["random", "popularity"], **how),
    }
    for name, test in tests.items():
        found, plain = test(), test(correction=None)
        tables = [es.parts.get("pairs", es).rows for es in (found, plain)]
        p = tables[0]["p"].to_numpy()
        assert tables[0]["p_corrected"].to_list() == correct(p).tolist(), name
        assert tables[1]["p_corrected"].to_list() == tables[1]["p"].to_list()
        assert plain.to_dict()["card"]["correction"] is None
        assert any("not corrected" in line for line in plain.footer())
        footer = test(correction="bonferroni").footer()
        assert any("corrected by Bonferroni over 3 pairs" in line for line in footer)
        for table in tables:
            named = [system != "" for system in table["winner"]]
            assert (
                named == (table["p_corrected"] < 0.05).to_list() == table["significant"].to_list()
            )
        with pytest.raises(UnknownName, match="holm"):
            test(correction="holmes")
    pair = interleave(shop, shown.only(["random", "popularity"]), 400)
    assert pair.rows["p"].to_list() == pair.rows["p_corrected"].to_list()
    assert "winner: p < 0.05" in str(pair)


def test_a_difference_that_one_test_would_call_significant_may_win_nothing():
    """p = 0.035 of one pair of three is 0.106 by Holm."""
    lists = made(np.arange(15).reshape(3, 1, 5), np.zeros((3, 1, 5)))
    effects = effects_of_wins(np.array([[0, 61, 50], [39, 0, 50], [50, 50, 0]]), 200)
    p = stats.binomtest(61, 100).pvalue
    assert p < 0.05
    for correction, corrected, winner in (("holm", 3 * p, None), (None, p, "a")):
        row = ab_tests.pair_rows(lists, effects, 0.95, correction).row(0, named=True)
        assert row["p"] == pytest.approx(p)
        assert row["p_corrected"] == pytest.approx(corrected)
        assert row["winner"] == winner


def test_a_log_without_anything_shown():
    world = us.world("null", users=2, items=4, ratings=2)
    lists = made(np.full((2, 2, 2), -1), np.zeros((2, 2, 2)))
    with pytest.raises(DataError, match="empty"):
        reuse_judgments(world, lists, ["a"])


def test_results_print_and_draw(shop, shown):
    ab, more = ab_test(shop, shown, 500), multileave(shop, shown, 500)
    reused = reuse_judgments(shop, shown, ["random"])
    for result in (ab, more, reused):
        assert "random" in str(result)
        assert "<table" in result._repr_html_()
        json.dumps(result.to_dict())
        assert result.figure().to_dict()["datasets"]["rows"]
    assert "500 impressions" in str(ab)
    assert "Multileaving" in str(more)
    assert "<0.0001" in str(multileave(shop, shown, 50_000))
    assert "judgments of 120 users" in str(reused)
    assert "every user" in str(ab_test(shop, shown, None))


# All tests, many times


@pytest.fixture(scope="module")
def tried(shop):
    users = {"plain": Clicks(), "trendy": Clicks(engagement=0.6)}
    return online_tests(shop, SYSTEMS, (50, 500), users, repeats=3, k=5, seed=2)


def test_the_whole_table(tried):
    tests = set(tried.rows.select("feedback", "test", "impressions").rows())
    methods = ("ab", "team-draft", "balanced", "multileave")
    expected = {(f, m, n) for f in ("plain", "trendy") for m in methods for n in (50, 500)}
    expected |= {("forced", "forced-ab", 50), ("forced", "forced-ab", 500)}
    expected |= {("offline", "random split", None), ("offline", "test targets", None)}
    assert tests == expected
    assert tried.values_of("quantity") == ["right", "found", "wrong", "right_half"]
    assert (tried.rows["low"] <= tried.rows["value"]).all()
    assert (tried.rows["value"] <= tried.rows["high"]).all()
    table = tried.table(wide="quantity")
    assert (table["value_found"] <= table["value_right"]).all()
    assert (table["value_right"] + table["value_wrong"] <= 1 + 1e-12).all()
    assert (tried.rows["pairs"] <= 9).all()


def test_the_table_counts_the_rows(tried):
    row = tried.row(quantity="right")
    key = {name: row.keys[name] for name in ("world", "feedback", "test", "impressions")}
    trials = tried.parts["trials"].rows.filter(**key)
    rows = trials.filter(pl.col("true_difference") != 0).to_dicts()
    assert row.facts["pairs"] == len(rows)
    right = sum(one["true_difference"] * one["value"] > 0 for one in rows)
    assert row.value == right / len(rows)
    pairs = tried.parts["pairs"].rows.filter(**key)
    assert pairs["right"].mean() == pytest.approx(row.value)


def test_a_shorter_test_is_the_beginning_of_a_longer_one(shop, tried):
    users = {"plain": Clicks(), "trendy": Clicks(engagement=0.6)}
    less = online_tests(
        shop, SYSTEMS, 50, users, repeats=3, k=5, seed=2, designs={}, methods=["ab", "balanced"]
    )
    part = tried.parts["trials"].rows.filter(
        pl.col("impressions") == 50, pl.col("test").is_in(["ab", "balanced"])
    )
    keys = ["feedback", "test", "repeat", "system", "against"]
    assert less.parts["trials"].rows.sort(keys).equals(part.sort(keys))


def test_single_tests_say_the_same(shop):
    found = online_tests(shop, SYSTEMS, 300, repeats=1, k=5, methods=["multileave"], designs={})
    seed = key_of(shop.seed, "online", 0, 0) % (1 << 31)
    from dataclasses import replace

    drawn = replace(shop, seed=seed)
    alone = multileave(drawn, SYSTEMS, 300, k=5, seed=seed).rows
    trials = found.parts["trials"].rows
    assert trials["value"].to_list() == alone["value"].to_list()
    assert trials["true_difference"].to_list() == alone["true_difference"].to_list()
    assert found.row(quantity="right").low is None  # no interval over a single repeat


def test_judgments_used_again(tried):
    reuse = tried.parts["reuse"]
    assert reuse.values_of("feedback") == ["plain", "trendy", "forced"]

    def forced(quantity):
        return reuse.row(feedback="forced", quantity=quantity)

    assert forced("error_inside").value == 0.0
    assert forced("wrong_inside").value == 0.0
    assert forced("error").value < -0.05
    assert forced("error").low < forced("error").value < forced("error").high
    assert 0 < forced("judged").value < 1


def test_how_many_impressions_are_needed():
    rows = [
        {"world": "w", "feedback": "f", "test": test, "impressions": n, "repeat": r, "system": "a",
         "against": "b", "true_difference": 0.1, "true_half": 0.1,
         "value": 1.0 if r < good else -1.0, "p": 0.5}
        for test, goods in {"x": (20, 10, 19, 20), "y": (0, 0, 0, 0)}.items()
        for n, good in zip((1, 10, 100, 1000), goods, strict=True)
        for r in range(20)
    ]  # fmt: skip
    found = Estimates.of_rows(TESTS, list(_share_rows(pl.DataFrame(rows), 0.95)))
    needed = impressions_needed(found, 0.8)
    # Right by luck at 1 impression, and no longer at 10: from 100 on it lasts.
    assert needed.rows["value"].to_list() == [100, None]
    assert needed.rows["surely"].to_list() == [1000, None]
    with pytest.raises(SettingError, match="share"):
        impressions_needed(found, 0)


def test_it_prints_and_draws(tried):
    assert "3 repeats" in str(tried)
    assert "team-draft" in str(tried)
    json.dumps(tried.to_dict())
    rows = tried.figure().to_dict()["datasets"]["rows"]
    assert {row["panel"] for row in rows} == {"plain", "trendy", "forced"}
    assert {row["impressions"] for row in rows} == {50, 500, None}  # offline: dashed lines


def test_worlds_by_name_and_designs_by_name(shop):
    calls = []
    found = online_tests(
        {"one": shop, "two": us.world("inverted", users=80, items=40)}, SYSTEMS[:2], 100,
        methods=["team-draft"], repeats=1, k=4, progress=lambda *at: calls.append(at),
        designs={"strata": (us.splits.Random(), us.targets.AllItems(strata=2)),
                 "folds": (us.splits.Random(folds=2), us.targets.OneRelevant(others=10))},
    )  # fmt: skip
    assert calls == [(1, 2), (2, 2)]
    assert found.values_of("world") == ["one", "two"]
    assert "one, clicks" in {row["panel"] for row in found.figure().to_dict()["datasets"]["rows"]}


def test_what_cannot_be_tried(shop):
    from unskew.auditing.null.null_designs import ForcedNull

    def refused(match, *arguments, **more):
        with pytest.raises(SettingError, match=match):
            online_tests(*arguments, **{"repeats": 1, **more})

    refused("worlds", "shop", SYSTEMS)
    refused("worlds", {}, SYSTEMS)
    refused("at least two", shop, [us.recommend.Random()])
    refused("mine is not an algorithm", shop, {"mine": np.zeros(60), "b": us.recommend.Random()})
    refused("must rise", shop, SYSTEMS, [100, 50])
    refused("must rise", shop, SYSTEMS, [])
    refused("impressions", shop, SYSTEMS, 0)
    refused("feedback", shop, SYSTEMS, 10, ForcedExposure())
    refused("another name", shop, SYSTEMS, 10, {"forced": Clicks()})
    refused("team-draft", shop, SYSTEMS, 10, methods=["team"])
    refused("at least one method", shop, SYSTEMS, 10, methods=[], designs={})
    refused("AllItems", shop, SYSTEMS, 10, designs={"x": us.targets.AllItems()})
    refused("null data", shop, SYSTEMS, 10, designs={"x": (ForcedNull(), us.targets.AllItems())})
    refused("repeats", shop, SYSTEMS, 10, repeats=0)
    refused("level", shop, SYSTEMS, 10, level=0)
    refused("k must", shop, SYSTEMS, 10, k=0)


def test_intervals_of_shares():
    one = np.arange(40)
    marks = one % 4 == 0
    share, low, high = share_interval(marks, one, 0.95)
    # Every trial a repeat of its own: Wilson's interval, with t for z.
    t, n = stats.t.ppf(0.975, 39), 40
    middle, half = 0.25 + t * t / (2 * n), t * math.sqrt(0.25 * 0.75 / n + t * t / (4 * n * n))
    assert share == 0.25
    assert low == pytest.approx((middle - half) / (1 + t * t / n), rel=1e-6)
    assert high == pytest.approx((middle + half) / (1 + t * t / n), rel=1e-6)
    # Trials of a repeat that go together count as one.
    together = share_interval(np.repeat([True, False] * 5, 4), np.repeat(np.arange(10), 4), 0.95)
    apart = share_interval(np.tile([True, False] * 2, 10), np.repeat(np.arange(10), 4), 0.95)
    assert together[2] - together[1] > 1.5 * (apart[2] - apart[1])
    assert share_interval(np.zeros(0, np.bool_), np.zeros(0), 0.95) == (None, None, None)
    none, one_of = (share_interval(np.arange(30) < n, np.arange(30) % 5, 0.95) for n in (0, 1))
    assert none[:2] == (0.0, 0.0)
    assert none[2] < one_of[2]


# Statistical


def exchangeable():
    """Lists that differ, of two systems that are equal: users come in pairs, with lists swapped."""
    rng = np.random.default_rng(3)
    x = np.array([rng.permutation(60)[:5] for _ in range(60)])
    y = np.array([rng.permutation(60)[:5] for _ in range(60)])
    item = np.stack([np.concatenate([x, y]), np.concatenate([y, x])])
    likes = rng.random((60, 60)) < 0.4
    return made(item, np.concatenate([likes, likes])[np.arange(120)[None, :, None], item])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["team-draft", "balanced", "multileave"])
@pytest.mark.parametrize("feedback", [Clicks(), Clicks(engagement=0.5), Clicks(redundancy=0.5)])
def test_p_is_uniform_where_systems_are_equal(shop, method, feedback):
    lists, p, false = exchangeable(), [], 0
    behaviour = feedback.behaviour(shop, 5)
    assert lists.true()[0] == lists.true()[1]
    for seed in range(2_000):
        wins = wins_of(lists, behaviour, method, seed, 0, 200)
        won, both = int(wins[0, 1]), int(wins[0, 1] + wins[1, 0])
        # An exact p is uniform once its ties are broken at random.
        share = np.random.default_rng([9, seed]).random()
        p.append(stats.binom.cdf(won - 1, both, 0.5) + share * stats.binom.pmf(won, both, 0.5))
        false += effects_of_wins(wins, 200).p[0] < 0.05
    assert stats.kstest(p, "uniform").pvalue > 1e-4
    assert (false / 2_000 - 0.05) / math.sqrt(0.05 * 0.95 / 2_000) < 4.5  # exact tests: at most


def six_equal_systems(users=20):
    """Lists that differ, of six systems that are equal: users come in sixes, with lists rotated."""
    rng = np.random.default_rng(3)
    item = np.empty((6, 6 * users, 5), np.int32)
    liked = np.empty((6, 6 * users, 5), np.uint8)
    for user in range(users):
        lists, likes = [rng.permutation(60)[:5] for _ in range(6)], rng.random(60) < 0.4
        for turn in range(6):
            for system in range(6):
                own = lists[(system + turn) % 6]
                item[system, 6 * user + turn], liked[system, 6 * user + turn] = own, likes[own]
    return made(item, liked)


@pytest.mark.slow
@pytest.mark.parametrize("test", ["ab", "multileave"])
def test_equal_systems_have_a_winner_in_five_percent_of_tests_at_most(shop, test):
    lists, behaviour = six_equal_systems(), Clicks().behaviour(shop, 5)
    assert np.ptp(lists.true()) == 0
    plain = corrected = 0
    for seed in range(1_000):
        if test == "ab":
            effects = effects_of_counts(ab_counts(lists, behaviour, seed, 0, 500), 5)
        else:
            effects = effects_of_wins(wins_of(lists, behaviour, test, seed, 0, 500), 500)
        plain += bool((effects.p < 0.05).any())
        corrected += bool((correct(effects.p) < 0.05).any())
    assert (corrected / 1_000 - 0.05) / math.sqrt(0.05 * 0.95 / 1_000) < 3
    assert plain / 1_000 > 0.2  # 15 comparisons


@pytest.mark.slow
def test_intervals_of_a_merged_test_cover_no_preference(shop):
    lists, behaviour = exchangeable(), Clicks().behaviour(shop, 5)
    inside = 0
    for seed in range(2_000):
        found = effects_of_wins(wins_of(lists, behaviour, "team-draft", seed, 0, 500), 500)
        low, high = found.interval(0.95)
        inside += low[0] <= 0 <= high[0]
    assert abs(inside / 2_000 - 0.95) / math.sqrt(0.05 * 0.95 / 2_000) < 4.5


@pytest.mark.slow
def test_an_ab_test_of_equal_systems_errs_as_often_as_it_says(shop):
    lists, behaviour = exchangeable(), Clicks().behaviour(shop, 5)
    p = [
        effects_of_counts(ab_counts(lists, behaviour, seed, 0, 1_000), 5).p[0]
        for seed in range(2_000)
    ]
    assert stats.kstest(p, "uniform").pvalue > 1e-4
    false = np.mean(np.array(p) < 0.05)
    assert abs(false - 0.05) / math.sqrt(0.05 * 0.95 / 2_000) < 4.5


@pytest.mark.slow
def test_forced_feedback_is_unbiased_cell_by_cell(shop, shown):
    behaviour = ForcedExposure().behaviour(shop, 5)
    rates = np.array(
        [mean_clicks(ab_counts(shown, behaviour, seed, 0, 500), 5)[1] for seed in range(500)]
    )
    z = (rates.mean(0) - shown.true()) / (rates.std(0, ddof=1) / math.sqrt(500))
    assert (np.abs(z) <= 4.5).all()
    assert (z**2).sum() < stats.chi2.ppf(0.999, z.size)


@pytest.mark.slow
def test_clicks_come_as_often_as_the_model_says(shop, shown):
    feedback = Clicks(position=0.7, if_liked=0.5, if_not=0.1, engagement=0.4, trend="random")
    behaviour = feedback.behaviour(shop, 5)
    liked, g = shown.liked[0].astype(bool), behaviour.engage[shown.item[0]]
    chance = behaviour.examination * (g + (1 - g) * np.where(liked, 0.5, 0.1))
    one = shown.only(["random"])
    counts = ab_counts(one, behaviour, 4, 0, 400_000)
    _, rate, error = mean_clicks(counts, 5)
    assert abs(rate[0] - chance.mean()) / error[0] < 4.5
