"""Worlds: parts in closed form, the same bits in any block, truth and ratings that agree."""

import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared import ROOT
from unskew.arrays import frozen
from unskew.data.ratings import Ids, Ratings
from unskew.engine import threads
from unskew.worlds import worlds
from unskew.worlds.observation import (
    Activity,
    AgainstRelevance,
    Ageing,
    Always,
    ByItem,
    ByRelevance,
    Clustered,
    Feedback,
    PopularityLaw,
    Uniform,
    WithRelevance,
    fit_popularity_law,
    whole_counts,
)
from unskew.worlds.parts import WORLDS, find_part, gini
from unskew.worlds.save_world import save_world
from unskew.worlds.tastes import (
    ML1M_STARS,
    Generosity,
    Iid,
    Odds,
    Quality,
    Rising,
    Stars,
    Tastes,
    births,
    normal,
)
from unskew.worlds.worlds import PARTS, World, world

SMALL = {"users": 300, "items": 120}
EVERYONE = np.arange(300, dtype=np.int32)


def made(name, seed=3, **settings):
    """Return a named world of a size that tests can afford."""
    given = {} if "ratings" in settings else {"density": 0.12}
    return world(name, **{**SMALL, **given, "seed": seed, **settings})


def counts(ratings):
    return np.bincount(ratings.item, minlength=len(ratings.items))


def mask(ratings):
    """Return users x items, True where there is a rating."""
    there = np.zeros((len(ratings.users), len(ratings.items)), bool)
    there[ratings.user, ratings.item] = True
    return there


def near(found, wanted, rel=1e-9):
    """Check large arrays; pytest.approx takes seconds for them."""
    np.testing.assert_allclose(
        found, np.broadcast_to(wanted, np.shape(found)), rtol=rel, atol=1e-15
    )


def z_of(hits, chance):
    """Return the standard score of a sum of coins."""
    return (hits.sum() - chance.sum()) / np.sqrt((chance * (1 - chance)).sum())


def check_cells(hits, chance, axis):
    """Check coins row by row or column by column: no |z| above 4.5, and their squares in sum."""
    variance = (chance * (1 - chance)).sum(axis)
    some = variance > 5  # below, a sum of rare coins is far from normal
    z = ((hits - chance).sum(axis) / np.sqrt(np.maximum(variance, 1e-12)))[some]
    assert np.abs(z).max() <= 4.5
    df = z.size
    assert (z**2).sum() <= df + 3.1 * np.sqrt(2 * df) + 4  # about the 99.9 % bound


# Every named world


@pytest.fixture(scope="module", params=WORLDS)
def named(request):
    return made(request.param)


def test_truth_and_chances(named):
    values, chances = named.values(EVERYONE), named.chances(EVERYONE)
    assert values.shape == chances.shape == (300, 120)
    assert set(np.unique(values)) <= {1, 2, 3, 4, 5}
    assert named.scale == (1, 5)
    check_cells(values >= named.liked, chances, 0)
    check_cells(values >= named.liked, chances, 1)
    assert named.item_chance == pytest.approx(chances.mean(0), rel=1e-12)


def test_ratings_are_coins_with_the_probability_told(named):
    ratings, chance = named.ratings, named.observation(EVERYONE)
    assert chance.min() >= 0
    assert chance.max() <= 1
    # In a loop each round is brought to scale on what is left then: only near in sum.
    close = 0.02 if "round" in ratings.tags else 1e-3
    assert chance.sum() == pytest.approx(named.expected, rel=close)
    assert ratings.users is named.users
    assert ratings.items is named.items
    values = named.values(EVERYONE)
    assert (ratings.value == values[ratings.user, ratings.item]).all()
    pair = ratings.user.astype(int) * 120 + ratings.item
    assert (np.diff(pair) > 0).all()
    if not named._pairs.exact:
        seen = mask(ratings)
        check_cells(seen, chance, 1)
        for side in (values >= named.liked, values < named.liked):
            assert abs(z_of(seen[side], chance[side])) <= 4.5
        if "round" not in ratings.tags:  # what is shown depends on the coins of earlier rounds
            check_cells(seen, chance, 0)


def test_a_block_has_the_same_bits_alone_and_among_others(named):
    some = np.array([250, 3, 77], np.int32)
    for of in (named.values, named.chances, named.observation):
        assert (of(some) == of(EVERYONE)[some]).all()
        assert (of(some[:1].astype(np.int64)) == of(EVERYONE)[some[:1]]).all()
        assert of(some[:0]).shape == (0, 120)
    blocks = np.concatenate(list(named.blocks()))
    assert (blocks == EVERYONE).all()
    truth = named.truth(np.sort(some))
    assert len(truth) == 360
    assert (truth.value.reshape(3, 120) == named.values(np.sort(some))).all()
    assert len(named.truth()) == 36_000


def test_same_ratings_in_any_blocks_and_threads(named, monkeypatch):
    again = made(named.name)
    monkeypatch.setattr(worlds, "_PAIRS", 1000)
    monkeypatch.setattr(threads, "SMALL", 1)
    assert len(list(again.blocks())) == 38
    assert again.ratings.fingerprint == named.ratings.fingerprint
    monkeypatch.setattr(threads, "_most", [1])
    once = made(named.name)
    assert once.ratings.fingerprint == named.ratings.fingerprint
    assert once.random(0.2).fingerprint == named.random(0.2).fingerprint
    assert made(named.name, seed=4).ratings.fingerprint != named.ratings.fingerprint


def test_card_makes_it_again(named):
    card = json.loads(json.dumps(named.describe()))
    again = World.from_card(card)
    assert again.ratings.fingerprint == named.ratings.fingerprint
    later, before = again.describe(), named.describe()
    # Last digits of the scale were seen to differ within one process; the cause is not known yet.
    scales = later["facts"].pop("beta", []), before["facts"].pop("beta", [])
    assert scales[0] == pytest.approx(scales[1], rel=1e-11)
    assert later == before
    assert card["facts"]["ratings"] == len(named.ratings)


def test_dataset(named):
    data = named.dataset(random=0.1)
    assert (data.name, data.liked, data.scale) == (named.name, named.liked, named.scale)
    assert data.ratings is named.ratings
    assert "PopularityLaw" in data.notes[0] or named.name not in ("shop", "null")
    sample = data.random
    assert (sample.value == named.values(EVERYONE)[sample.user, sample.item]).all()
    assert abs(z_of(mask(sample), np.full((300, 120), 0.1))) <= 4.5


def test_same_bits_in_another_process():
    code = (
        "from unskew.worlds.worlds import world\n"
        "w = world('shop', users=300, items=120, seed=3)\n"
        "print(w.ratings.fingerprint, w.random().fingerprint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = world("shop", **SMALL, seed=3)
    assert done.stdout.split() == [here.ratings.fingerprint, here.random().fingerprint]


# What users like


def test_iid_chances_are_its_p():
    for p in (0.0, 0.3, 1.0):
        near(world([Iid(p)], **SMALL).chances(EVERYONE), p)
    assert not (world([Iid(0)], **SMALL).values(EVERYONE) >= 4).any()
    assert (world([Iid(1)], **SMALL).values(EVERYONE) >= 4).all()
    near(world([Uniform()], **SMALL).chances(EVERYONE), 0.5)


def test_normal_numbers():
    one = normal(1, "a", 50_000)
    assert abs(one.mean()) * np.sqrt(50_000) <= 4.5
    assert abs((one**2).mean() - 1) * np.sqrt(50_000 / 2) <= 4.5
    assert abs((one**4).mean() - 3) * np.sqrt(50_000 / 96) <= 4.5
    assert abs(np.corrcoef(one, normal(1, "a", 50_000, 1))[0, 1]) * np.sqrt(50_000) <= 4.5


def test_parts_add_log_odds():
    parts = [Iid(0.3), Quality(0.5), Generosity(0.2), Rising(1.5), Tastes(3, 0.8)]
    chance = world(parts, users=300, items=120, seed=5).chances(EVERYONE)
    odds = Odds.of(parts, 300, 120, 5)
    user = 0.2 * normal(5, "world/generosity", 300)
    item = np.log(0.3 / 0.7) + 0.5 * normal(5, "world/quality", 120) + 1.5 * (births(5, 120) - 0.5)
    taste = sum(p[:, None] * q for p, q in zip(odds.user_factors, odds.item_factors, strict=True))
    plain = 1 / (1 + np.exp(-(user[:, None] + item + taste)))
    near(chance, plain, 1e-12)
    assert len(odds.user_factors) == 3


def test_values_follow_the_prior():
    values = world([Iid(0.4)], users=300, items=120, seed=2).values(EVERYONE)
    share = np.array(ML1M_STARS)
    liked = share[3:] / share[3:].sum() * 0.4
    disliked = share[:3] / share[:3].sum() * 0.6
    for level, p in enumerate([*disliked, *liked], 1):
        assert abs(z_of(values == level, np.full(values.shape, p))) <= 4.5
    stars = Stars(values=(0, 1), shares=(3, 1), liked=1)
    assert stars.liked_share == 0.25
    two = world([Iid(0.4), stars], **SMALL)
    assert (two.scale, two.liked) == ((0, 1), 1)
    assert set(np.unique(two.values(EVERYONE))) == {0, 1}


def test_the_prior_is_that_of_movielens():
    assert sum(ML1M_STARS) == 1_000_209
    assert Stars().liked_share == pytest.approx(0.5752, abs=1e-4)
    assert Stars(liked=5).ladders()[0].tolist() == [1, 2, 3, 4]


# What they rate


def of_parts(*parts, ratings=4000, seed=3):
    return world([Iid(0.4), Quality(1.0), *parts], **SMALL, seed=seed, ratings=ratings)


def test_uniform_is_one_probability():
    near(of_parts(Uniform()).observation(EVERYONE), 4000 / 36_000)


def test_popularity_law_by_hand():
    law = PopularityLaw(alpha=1, c1=2, c2=1)
    assert law.curve(3, 19.0) == pytest.approx([2 + 6, 2 + 4, 2 + 3])
    assert PopularityLaw(alpha=0).curve(4, 8).tolist() == [2, 2, 2, 2]
    chance = of_parts(law, ratings=1200).observation(EVERYONE)
    expected = law.curve(120, 1200)
    assert np.sort(chance.sum(0))[::-1] == pytest.approx(expected, rel=1e-9)
    steep = PopularityLaw(alpha=100, c2=0).curve(5000, 10)
    assert np.isfinite(steep).all()


def test_the_most_popular_item_is_drawn():
    tops = {int(of_parts(PopularityLaw(), seed=s)._pairs.item_weights().argmax()) for s in range(6)}
    assert len(tops) > 3


def test_decision_by_relevance():
    w = of_parts(ByRelevance(if_liked=0.9, if_not=0.3))
    chance, liked = w.observation(EVERYONE), w.values(EVERYONE) >= 4
    level = 4000 / (0.9 * liked.sum() + 0.3 * (~liked).sum())
    near(chance[liked], 0.9 * level)
    near(chance[~liked], 0.3 * level)
    only = of_parts(ByRelevance(if_liked=1, if_not=0))
    assert (only.ratings.value >= 4).all()


def test_observation_if_a_pair_were_liked_or_not(named):
    liked = named.values(EVERYONE) >= named.liked
    either = named.observation_if(EVERYONE, True), named.observation_if(EVERYONE, False)
    np.testing.assert_array_equal(np.where(liked, *either), named.observation(EVERYONE))


def test_weights_multiply():
    users, items = np.arange(1, 301), np.arange(1, 121)
    w = of_parts(Activity(weights=users), ByItem(weights=items))
    weight = users[:, None] * items
    near(w.observation(EVERYONE), 4000 * weight / weight.sum())
    drawn = of_parts(Activity(0.5), ByItem(0.3), ratings=1000)
    assert drawn.describe()["facts"]["clipped"] == 0
    chance = drawn.observation(EVERYONE)
    assert np.linalg.matrix_rank(chance / chance.max(), tol=1e-9) == 1


def test_probabilities_above_one_are_cut_and_counted():
    w = of_parts(PopularityLaw(2, c2=0), Activity(1.0), ratings=9000)
    raw = w._pairs.reach.beta[0] * w._pairs.reach.activity[:, None] * w._pairs.reach.weight[0]
    assert (raw > 1).sum() > 100
    assert w.describe()["facts"]["clipped"] == (raw > 1).sum()
    chance = w.observation(EVERYONE)
    near(chance, np.minimum(raw, 1))
    assert chance.sum() == pytest.approx(9000, rel=1e-3)
    assert mask(w.ratings)[raw > 1].all()
    full = of_parts(PopularityLaw(), ratings=36_000)
    assert len(full.ratings) == 36_000


def test_relevance_only_depends_on_no_item():
    w = made("relevance-only")
    chance, liked = w.observation(EVERYONE), w.values(EVERYONE) >= 4
    assert np.ptp(chance[liked]) < 1e-15
    assert np.ptp(chance[~liked]) < 1e-15
    assert chance[liked][0] == pytest.approx(5 * chance[~liked][0])


def test_item_only_does_not_depend_on_relevance():
    chance = made("item-only").observation(EVERYONE)
    assert np.ptp(chance, axis=0).max() < 1e-15
    assert np.ptp(chance, axis=1).min() > 0.01


def test_popularity_with_and_against_relevance():
    for name, low, high in (("popular-good", 0.999, 1.0), ("inverted", -1.0, -0.999)):
        w = made(name)
        tau = us.stats.kendall(w.observation(EVERYONE).sum(0), w.item_chance)
        assert low <= tau <= high
        rated = us.stats.kendall(counts(w.ratings).astype(float), w.item_chance)
        assert abs(rated) > 0.5
        assert np.sign(rated) == np.sign(low)
    half = made("inverted", agreement=0.5)
    assert -0.8 < us.stats.kendall(half.observation(EVERYONE).sum(0), half.item_chance) < -0.1
    none = made("inverted", agreement=0.0)
    assert abs(us.stats.kendall(none.observation(EVERYONE).sum(0), none.item_chance)) < 0.25
    alone = of_parts(AgainstRelevance())  # takes the law by default
    curve = PopularityLaw().curve(120, 4000)
    assert np.sort(alone.observation(EVERYONE).sum(0))[::-1] == pytest.approx(curve, rel=1e-3)


def test_equal_items_are_dealt_at_random():
    w = world([Iid(0.4), WithRelevance(), PopularityLaw()], **SMALL, seed=1)
    assert w._pairs.item_weights().argmax() != 119 or w._pairs.item_weights().argmin() != 0


def test_clusters_even_out_over_items_but_not_over_pairs():
    parts = Clustered(user_groups=4, item_groups=6, strength=0.5), Activity(0.5)
    w = of_parts(*parts)
    chance = w.observation(EVERYONE)
    assert chance.sum(0) == pytest.approx(4000 / 120, rel=1e-9)
    user_group, item_group = parts[0].groups(300, 120, 3)
    home = (user_group[:, None] % 4) == (item_group % 4)
    assert set(np.bincount(user_group)) == {75}
    assert set(np.bincount(item_group)) == {20}
    level = chance / w._pairs.reach.activity[:, None]
    for group in range(6):
        rows = item_group == group
        own, far = level[:, rows][home[:, rows]], level[:, rows][~home[:, rows]]
        near(own, 2 * far[0])
    whole = of_parts(Clustered(4, 4, strength=1.0))
    groups = (
        whole._pairs.reach.user_group[whole.ratings.user],
        whole._pairs.reach.item_group[whole.ratings.item],
    )
    assert (groups[0] == groups[1]).all()


def test_ageing_has_time_and_old_items_gather_more():
    w = made("ageing", taste=0.0, quality=0.0)
    born = births(3, 120)
    assert us.stats.kendall(born, w.item_chance) == pytest.approx(1)
    assert us.stats.kendall(born, w._pairs.item_weights()) == pytest.approx(-1)
    moment = (w.ratings.time - worlds._BEGIN) / worlds._SPAN
    birth = born[w.ratings.item]
    assert (moment >= birth - 1e-9).all()
    assert (moment <= 1).all()
    # The age within the rest of an item's life follows its law: uniform after that law.
    fade = find_part(w.parts, Ageing).fade
    at = np.sort(np.expm1(-(moment - birth) / fade) / np.expm1(-(1 - birth) / fade))
    gap = np.abs(at - (np.arange(at.size) + 0.5) / at.size).max()
    assert gap * np.sqrt(at.size) < 1.95  # Kolmogorov's 99.9 % bound


def test_feedback_grows_more_unequal_by_rounds():
    size = {"users": 1000, "items": 200, "seed": 1, "density": 0.05}
    w = world("feedback", **size)
    number = w.ratings.tags["round"].to_numpy()
    own = [gini(np.bincount(w.ratings.item[number == r], minlength=200)) for r in range(1, 6)]
    assert own == sorted(own)
    assert own[4] > own[0] + 0.1
    calm = world("feedback", **size, strength=0)
    assert gini(counts(calm.ratings)) < gini(counts(w.ratings)) - 0.05
    many = np.bincount(number)[1:]
    assert np.abs(many - 2000).max() <= 4.5 * np.sqrt(2000)
    moment = (w.ratings.time - worlds._BEGIN) / worlds._SPAN
    assert (np.floor(moment * 5) + 1 == number).mean() > 0.999


def test_feedback_shows_the_most_rated():
    boosted = Feedback(shown=0.5, strength=1).boosted(np.ones(4), np.array([1, 5, 5, 9]))
    assert boosted.tolist() == [1, 2, 1, 2]


def test_exact_counts():
    w = made("simulated-popularity", alpha=1.0, c2=10)
    law = PopularityLaw(1.0, 0.0, 10)
    assert len(w.ratings) == w.expected
    assert np.sort(counts(w.ratings))[::-1] == pytest.approx(law.curve(120, w.expected), abs=1)
    assert w.observation(EVERYONE).sum(0) == pytest.approx(counts(w.ratings))
    per_user = np.diff(w.ratings.start)
    share = per_user.mean() / 120
    assert ((per_user - per_user.mean()) ** 2).sum() / (120 * share * (1 - share)) < 400
    capped = made("simulated-popularity", alpha=2, c2=0, ratings=9000)
    assert counts(capped.ratings).max() == 300
    assert capped.describe()["facts"]["capped"] == (counts(capped.ratings) == 300).sum() > 0
    assert len(capped.ratings) == 9000


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20), st.integers(1, 30), st.floats(0, 1))
def test_whole_counts(expected, most, share):
    weights = np.array(expected)
    total = int(share * most * weights.size)
    found = whole_counts(weights, total, most)
    assert found.sum() == total
    assert found.min() >= 0
    assert found.max() <= most
    plain = weights * total / weights.sum()
    if plain.max() <= most:
        assert np.abs(found - plain).max() < 1


def test_random_sample_is_missing_at_random():
    w = world("shop", users=400, items=200, seed=2)
    assert not us.splits.looks_random(w.random(0.1)).table()["significant"].any()
    assert us.splits.looks_random(w.ratings).table()["significant"].any()
    assert w.random(0.1, seed=1).fingerprint != w.random(0.1, seed=2).fingerprint
    both = mask(w.random(0.5)) & mask(w.ratings)
    assert abs(z_of(both[mask(w.ratings)], np.full(len(w.ratings), 0.5))) <= 4.5
    assert len(w.random(1.0)) == 80_000


def test_known_matrix_is_a_plain_twin_of_the_simulation():
    """Hiding entries of the full truth by numpy draws the very ratings that kernels draw."""
    observing = [
        (PopularityLaw(), Activity(), Clustered(3, 4, 0.5), ByRelevance()),
        (ByItem(), Feedback(rounds=3), ByRelevance(0.9, 0.2)),
        (Ageing(), Always()),
    ]
    for parts in observing:
        w = world([Iid(0.4), Tastes(), *parts], **SMALL, seed=9, ratings=3000)
        twin = World.of_matrix(w.truth(), 4, parts, expected=3000, seed=9)
        assert twin.ratings.fingerprint == w.ratings.fingerprint
        assert twin._pairs.reach.beta == pytest.approx(w._pairs.reach.beta, rel=1e-6)
        assert twin._pairs.drawn.clipped == w._pairs.drawn.clipped
        near(twin.observation(EVERYONE), w.observation(EVERYONE), 1e-6)
        assert (twin.values(EVERYONE) == w.values(EVERYONE)).all()
        assert twin.random(0.3).fingerprint == w.random(0.3).fingerprint


# From data


@pytest.fixture(scope="module")
def data():
    return world("uniform", users=200, items=80, seed=11, density=0.15).ratings


def test_given_positions_keep_what_was_judged(data):
    null = World.like(data, liked=4, observation="given", seed=5)
    assert (null.ratings.user == data.user).all()
    assert (null.ratings.item == data.item).all()
    assert (null.ratings.value != data.value).any()
    share = float((data.value >= 4).mean())
    block = np.arange(200, dtype=np.int32)
    near(null.chances(block), share)
    assert abs(z_of(null.values(block) >= 4, np.full((200, 80), share))) <= 4.5
    assert null.observation(block).sum() == len(data)
    assert (mask(data) == (null.observation(block) == 1)).all()
    assert "beta" not in null.describe()["facts"]
    taste = World.like(data, 4, relevance=[Iid(0.3), Tastes(4)], observation="given")
    assert np.ptp(taste.chances(block)) > 0.3


def test_like_keeps_ids_popularity_and_prior(data):
    raw = data.to_polars().with_columns(pl.col("item").cast(pl.String) + "x")
    named = us.read_ratings(raw)
    same = World.like(named, liked=4, seed=1)
    assert same.items is named.items
    assert abs(len(same.ratings) - len(data)) <= 4.5 * np.sqrt(len(data))
    block = np.arange(200, dtype=np.int32)
    chance = same.observation(block)
    weight = np.outer(np.diff(named.start), counts(named))
    cut = chance < 1
    ratio = chance[cut & (weight > 0)] / weight[cut & (weight > 0)]
    near(ratio, ratio[0])
    exact = World.like(named, liked=4, observation="counts")
    assert (counts(exact.ratings) == counts(named)).all()
    levels = dict(zip(*np.unique(data.value, return_counts=True), strict=True))
    assert find_part(same.parts, Stars).shares == tuple(levels[v] for v in (1, 2, 3, 4, 5))
    other = World.like(named, 4, observation=[PopularityLaw(0.5)], expected=500)
    assert other.observation(block).sum() == pytest.approx(500, rel=1e-3)
    card = same.describe()
    assert card["source"]["ratings"] == named.fingerprint
    assert all("weights" not in part or part["weights"] is None for part in card["parts"])
    written = World.like(named, 4, observation=[ByItem(weights=range(1, 81))]).describe()
    assert written["parts"][-1]["weights"][:2] == (1.0, 2.0)


def test_a_matrix_with_holes():
    full = us.read_ratings(
        {"user": [1, 1, 2, 3, 3], "item": [7, 8, 7, 8, 9], "rating": [5, 1, 4, 2, 3]}
    )
    w = World.of_matrix(full, liked=4, expected=2, seed=1)
    block = np.arange(3, dtype=np.int32)
    assert w.scale == (1, 5)
    assert np.isnan(w.values(block)).sum() == 4
    assert np.isnan(w.chances(block)).sum() == 4
    assert w.chances(block)[0].tolist()[:2] == [1, 0]
    known = ~np.isnan(w.values(block))
    assert w.observation(block)[known] == pytest.approx(0.4)
    assert (w.observation(block)[~known] == 0).all()
    assert w.item_chance.tolist() == [1, 0, 0]
    assert w.truth() is full
    assert w.truth(block[2:]).value.tolist() == [2, 3]
    assert len(w.random(1.0)) == 5
    assert w.summary()["pairs known"] == 5
    everything = World.of_matrix(full, liked=4, expected=5)
    assert everything.ratings.fingerprint == full.fingerprint


def test_familiar_rates_are_dealt_against_relevance():
    """mena2021 8.5: the rates sorted down go to the items sorted by p(rel | i) up."""
    truth = world([Iid(0.4), Quality(1.5)], users=400, items=50, seed=4).truth()
    rng = np.random.default_rng(1)
    rate = rng.random(50) * 0.6
    tag = pl.Series("familiar", rng.random(len(truth)) < rate[truth.item])
    tagged = Ratings(
        truth.users, truth.items, truth.user, truth.item, truth.value, tags={"familiar": tag}
    )
    w = World.of_matrix(tagged, 4, AgainstRelevance(), familiar="familiar", seed=2)
    share = np.bincount(truth.item, tag.to_numpy(), 50) / 400
    relevant = np.bincount(truth.item, truth.value >= 4, 50) / 400
    plain = dict(zip(np.argsort(relevant), np.sort(share)[::-1], strict=True))
    chance = w.observation(np.arange(400, dtype=np.int32))
    distinct = np.unique(relevant, return_counts=True)[1].max() == 1
    for item in range(50):
        assert np.ptp(chance[:, item]) == 0
        if distinct:
            assert chance[0, item] == plain[item]
    assert us.stats.kendall(counts(w.ratings).astype(float), relevant) < -0.7
    assert np.sort(chance[0]) == pytest.approx(np.sort(share))
    agreeing = World.of_matrix(tagged, 4, familiar="familiar", seed=2)
    assert agreeing.observation(np.arange(1, dtype=np.int32))[0] == pytest.approx(share)


def test_fit_recovers_a_planted_law():
    rank = np.arange(1, 401)
    for c1, c2, alpha, beta in ((0, 30.0, 1.4, 150_000.0), (20, 5.0, 0.9, 3000), (3, 60, 2.0, 4e6)):
        many = np.round(c1 + beta * (c2 + rank) ** -alpha).astype(int)
        item = np.repeat(rank, many)
        user = np.concatenate([np.arange(n) for n in many])
        fit = fit_popularity_law(us.read_ratings(pl.DataFrame({"user": user, "item": item})))
        assert fit.alpha == pytest.approx(alpha, rel=0.1)
        assert fit.c2 == pytest.approx(c2, rel=0.2)
        curve = fit.c1 + fit.beta * (fit.c2 + rank) ** -fit.alpha
        assert np.abs(curve - many).max() < 1.5


def test_fit_of_equal_popularity():
    item = np.repeat(np.arange(10), 7)
    frame = pl.DataFrame({"user": np.tile(np.arange(7), 10), "item": item})
    fit = fit_popularity_law(us.read_ratings(frame))
    assert fit.c1 + fit.beta * (fit.c2 + 3) ** -fit.alpha == pytest.approx(7)


# Shape and speed of what is shown first


def test_the_shop_looks_like_a_shop():
    shop = world("shop", seed=1)
    facts = shop.summary()
    assert 60_000 < facts["ratings"] < 100_000
    assert 0.5 < facts["gini of items"] < 0.75
    assert facts["liked, observed"] > facts["liked, truly"] + 0.1
    popular = np.argsort(-counts(shop.ratings))
    liked = np.bincount(shop.ratings.item, shop.ratings.value >= 4, 1000) / counts(shop.ratings)
    thirds = [np.nanmean(liked[part]) for part in np.array_split(popular, 3)]
    assert thirds[0] > thirds[1] > thirds[2]
    assert str(shop) == "shop: a world of 2,000 users x 1,000 items, seed 1"
    assert "World shop" in repr(shop)


def test_gini_by_definition():
    values = np.array([4, 0, 1, 7, 2])
    plain = np.abs(values[:, None] - values).sum() / (2 * 5 * values.sum())
    assert gini(values) == pytest.approx(plain)
    assert gini(np.zeros(3)) == 0


# What is refused


BAD = [
    (lambda: world("shopp"), "unknown world 'shopp'. Did you mean 'shop'"),
    (lambda: world("null", alhpa=1), "unknown setting of null 'alhpa'. Did you mean 'alpha'"),
    (lambda: world([Iid()], alpha=1), "only named worlds take settings"),
    (lambda: world("null", users=0), "users must be a whole number from 1 up, got 0"),
    (lambda: world("null", items=2.5), "items must be a whole number"),
    (lambda: world("null", seed="x"), "seed must be a whole number, got 'x'"),
    (lambda: world("null", ratings=10, density=0.1), "give ratings or density, not both"),
    (lambda: world("null", density=2), "density must be above 0"),
    (lambda: world("null", users=2, items=2, ratings=5), "more than all 4 pairs"),
    (lambda: world(3), "what must be text or Part or a mapping or a list, got 3"),
    (lambda: world(["Iid"]), "'Iid' is not a part; parts are Iid"),
    (lambda: world([{"part": "Idd"}]), "unknown part 'Idd'. Did you mean 'Iid'"),
    (lambda: world([{"part": "Iid", "q": 1}]), "unknown setting of Iid 'q'"),
    (lambda: world([Iid(), Iid()]), "cannot have Iid and Iid together"),
    (lambda: world([Tastes(2), Tastes(3)]), "cannot have Tastes and Tastes together"),
    (lambda: world([Always(), ByRelevance()]), "Always and ByRelevance together"),
    (lambda: world([Ageing(), Feedback()]), "Ageing and Feedback together"),
    (lambda: world([PopularityLaw(exact=True), Activity()]), "does not go with Activity"),
    (lambda: world([PopularityLaw(exact=True), ByRelevance()]), "does not go with ByRelevance"),
    (lambda: Iid(1.2), "Iid: p must be from 0 to 1, got 1.2"),
    (lambda: Iid(True), "Iid: p must be"),
    (lambda: Quality(-1), "Quality: spread must be from 0 up"),
    (lambda: Generosity("x"), "Generosity: spread"),
    (lambda: Rising(None), "Rising: by"),
    (lambda: Tastes(0), "Tastes: factors must be a whole number from 1 up, got 0"),
    (lambda: Tastes(2.0), "Tastes: factors"),
    (lambda: Stars(liked=6), "leaves no rating that is liked"),
    (lambda: Stars(liked=1), "or none that is not"),
    (lambda: Stars(liked=None), "Stars: liked must be a number"),
    (lambda: Stars(values=(1, 2)), "2 values and 5 shares"),
    (lambda: Stars(values=(2, 1), shares=(1, 1)), "values must rise"),
    (lambda: Stars(values=(1, 5), shares=(1, -1)), "shares must be numbers from 0 up"),
    (lambda: Stars(values=("a", 5), shares=(1, 1)), "values must be a list of numbers"),
    (lambda: PopularityLaw(-1), "PopularityLaw: alpha"),
    (lambda: PopularityLaw(c2=-1), "PopularityLaw: c2"),
    (lambda: PopularityLaw(c1=50).curve(10, 100), "is more than all 100 ratings"),
    (lambda: ByItem(weights=(1, -1)), "ByItem: weights must be numbers from 0 up"),
    (lambda: ByItem(weights=5), "ByItem: weights must be a list"),
    (lambda: Activity(weights=(0, 0)), "Activity: weights"),
    (lambda: world([ByItem(weights=(1, 2))], **SMALL).ratings, "2 weights for 120 items"),
    (lambda: world([Activity(weights=(1,))], **SMALL).ratings, "1 weights for 300 users"),
    (lambda: WithRelevance(2), "WithRelevance: agreement must be from 0 to 1"),
    (lambda: Clustered(strength=1.5), "Clustered: strength"),
    (lambda: world([Clustered(500, 2)], **SMALL).ratings, "500 groups of users"),
    (lambda: Ageing(0), "Ageing: fade"),
    (lambda: Feedback(rounds=0), "Feedback: rounds"),
    (lambda: Feedback(rounds=200), "rounds must be 100 at most"),
    (lambda: ByRelevance(0, 0), "nobody would rate"),
    (lambda: made("relevance-only", if_not=0, density=0.9).ratings, "ratings cannot be reached"),
    (lambda: made("null").random(0), "share must be above 0"),
    (lambda: made("null").values(np.array([300])), "user numbers go from 0 to 299, got 300"),
    (lambda: made("null").values(np.array([0.5])), "users must be a list of user numbers"),
    (lambda: world("null", users=60_000, items=1000).truth(), "60,000,000 pairs are too many"),
    (lambda: whole_counts(np.ones(2), 9, 4), "9 ratings are more than 2 items x 4 users"),
    (lambda: World.from_card({"name": "x"}), "not the card of a world: it has no 'seed'"),
]


@pytest.mark.parametrize(("do", "message"), BAD, ids=[message for _, message in BAD])
def test_errors_name_what_is_wrong(do, message):
    with pytest.raises(us.UnskewError, match=re.escape(message)):
        do()


def test_errors_of_worlds_from_data(data):
    few = us.read_ratings({"user": [1, 1], "item": [1, 2], "rating": [5, 1]})
    empty = data.take(np.zeros(len(data), bool))
    for do, message in (
        (lambda: World.like(data, liked=9), "they go from 1 to 5"),
        (lambda: World.like(empty, liked=4), "there are none"),
        (lambda: World.like(data, 4, observation="gven"), "Did you mean 'given'"),
        (lambda: World.like(data, 4, observation="given", expected=5), "fixes the number already"),
        (lambda: World.like(data, 4, relevance=Uniform()), "Uniform is not a part of relevance"),
        (lambda: World.like(data, 4, observation=[Iid()]), "Iid is not a part of observation"),
        (lambda: World.of_matrix(data, 4), "either expected=NUMBER or familiar=TAG"),
        (lambda: World.of_matrix(data, 4, expected=0), "expected must be a whole number"),
        (lambda: World.of_matrix(data, 4, familiar="known"), "unknown tag 'known'"),
        (lambda: World.of_matrix(data, 4, Tastes(), expected=9), "Tastes is not a part of"),
        (lambda: World.of_matrix(empty, 4, expected=9), "needs known ratings"),
        (lambda: World.of_matrix(few, 4, expected=3).ratings, "3 ratings cannot be reached"),
        (
            lambda: World.of_matrix(few, 4, PopularityLaw(exact=True), expected=1),
            "a matrix of known ratings",
        ),
        (lambda: World.from_card(World.like(data, 4).describe()), "built from data"),
        (lambda: fit_popularity_law(few), "only 2 items have ratings"),
    ):
        with pytest.raises(us.UnskewError, match=re.escape(message)):
            do()
    text = Ratings(
        data.users,
        data.items,
        data.user,
        data.item,
        data.value,
        tags={"familiar": pl.Series(["x"] * len(data))},
    )
    with pytest.raises(us.DataError, match="must tell for every rating"):
        World.of_matrix(text, 4, familiar="familiar")


# On disk, and from the command line


def test_saved_world_can_be_read_again(tmp_path):
    w = made("shop")
    card = save_world(w, tmp_path / "w", random=0.1)
    back = us.read_ratings(tmp_path / "w" / "ratings.parquet")
    assert back.value.tolist() == w.ratings.value.tolist()
    assert len(us.read_ratings(tmp_path / "w" / "random.parquet")) == len(w.random(0.1))
    truth = pl.read_parquet(tmp_path / "w" / "truth" / "*.parquet")
    assert truth.columns == ["user", "item", "value", "chance", "observation"]
    assert (truth["value"].to_numpy().reshape(300, 120) == w.values(EVERYONE)).all()
    assert (truth["observation"].to_numpy().reshape(300, 120) == w.observation(EVERYONE)).all()
    stored = json.loads((tmp_path / "w" / "card.json").read_text())
    assert World.from_card(stored).ratings.fingerprint == w.ratings.fingerprint
    assert stored["files"] == card["files"]
    with pytest.raises(us.SettingError, match="is not empty"):
        save_world(w, tmp_path / "w")


def test_saved_again_leaves_nothing_of_before(tmp_path, monkeypatch):
    monkeypatch.setattr(worlds, "_PAIRS", 9000)
    save_world(made("null"), tmp_path)
    (tmp_path / "mine.txt").write_text("kept")
    assert len(list((tmp_path / "truth").iterdir())) == 4
    save_world(made("null", users=80), tmp_path, random=0, format="csv", force=True)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"ratings.csv", "truth/1.csv", "truth/2.csv", "card.json", "mine.txt"}
    save_world(made("null"), tmp_path, truth=False, force=True)
    assert not list((tmp_path / "truth").iterdir())
    with pytest.raises(us.SettingError, match="is a file"):
        save_world(made("null"), tmp_path / "mine.txt")
    for bad in ({"format": "xls"}, {"random": 2}):
        with pytest.raises(us.SettingError):
            save_world(made("null"), tmp_path / "new", **bad)
    assert not (tmp_path / "new").exists()


def test_a_large_truth_must_be_asked_for(tmp_path, monkeypatch):
    from unskew.worlds import save_world as saved

    monkeypatch.setattr(saved, "MOST_PAIRS", 1000)
    with pytest.raises(us.SettingError, match="36,000 pairs: use --truth"):
        save_world(made("null"), tmp_path)
    assert not list(tmp_path.iterdir())
    assert save_world(made("null"), tmp_path, truth=True)["files"]["truth/1.parquet"] == 36_000


@pytest.fixture
def call(capsys):
    """Run the command and return what it prints."""
    from unskew.cli.command import callback

    app = typer.Typer()
    app.command("world")(callback("world"))

    def do(*arguments):
        app([str(argument) for argument in arguments], standalone_mode=False)
        return capsys.readouterr().out

    return do


def test_command_writes_a_world(call, tmp_path):
    out = call(
        "inverted",
        "--users",
        100,
        "--items",
        50,
        "--seed",
        7,
        "--set",
        "alpha=1",
        "--random",
        0.2,
        "--set",
        "agreement=0.5",
        "--format",
        "csv",
        "-o",
        tmp_path / "w",
    )
    same = world("inverted", users=100, items=50, seed=7, alpha=1, agreement=0.5)
    back = us.read_ratings(tmp_path / "w" / "ratings.csv")
    assert back.value.tolist() == same.ratings.value.tolist()
    assert "inverted: a world of 100 users x 50 items, seed 7" in out
    for said in ("density", "gini of items", "liked, observed", "5,000 pairs", "written to"):
        assert said in out
    assert call("null", "--users", 20, "--items", 10, "-q") == ""
    assert "written" not in call("null", "--users", 20, "--items", 10)


def test_command_lists_worlds_and_explains_errors(call):
    out = call("--list")
    for name, one in WORLDS.items():
        assert name in out
        assert one.about in out
    for arguments, message in (
        ((), "name a world"),
        (("null", "--set", "alpha"), "write NAME=VALUE"),
        (("null", "--set", "alpha=x"), "settings are numbers, got 'x'"),
        (("null", "--set", "users=3"), "use --users instead"),
        (("null", "--set", "p=1", "--set", "p=2"), "given twice"),
        (("null", "--set", "if-not=1"), "unknown setting of null 'if_not'"),
    ):
        with pytest.raises(us.SettingError, match=re.escape(message)):
            call(*arguments)


def test_docs_list_every_world_and_part():
    page = (ROOT / "docs" / "worlds.md").read_text()
    for name, one in WORLDS.items():
        assert f"| `{name}` | {one.about} | {one.paper} |" in page, name
    for part in PARTS:
        assert f"`{part}" in page, part


# Large


@pytest.mark.slow
def test_popularity_below_random_when_all_items_are_equally_popular():
    """bellogin2017 Fig. 5: at α = 0 popularity has .0077 against .0100, and grows with α."""
    found = {}
    for alpha in (0, 1.4):
        w = world("simulated-popularity", alpha=alpha, seed=1)
        assert len(w.ratings) == 1_000_209
        (split,) = us.splits.Random(test=0.2).split(w.ratings, seed=1)
        lists = us.targets.OneRelevant(others=99).lists(split, liked=5, seed=1)
        for name, system in (
            ("popular", us.recommend.Popularity()),
            ("random", us.recommend.Random()),
        ):
            run = us.rank(system.fit(split.train), lists, 10)
            found[alpha, name] = us.evaluate(lists, {"it": run}, ["P@10"]).means()["it"]["P@10"]
    assert found[0, "popular"] == pytest.approx(0.0077, abs=0.0006)
    assert found[0, "random"] == pytest.approx(0.0100, abs=0.0004)
    assert found[1.4, "popular"] > 0.04


@pytest.mark.slow
def test_clusters_favour_collaborative_filtering_falsely():
    """castells2018 Fig. 2: relevance is a coin, items are equal, yet neighbours seem better."""
    w = world("clustered", seed=1)
    (split,) = us.splits.Random(test=0.2).split(w.ratings, seed=1)
    lists = us.targets.AllItems().lists(split, liked=4)
    systems = {
        "random": us.recommend.Random(),
        "popular": us.recommend.Popularity(),
        "knn": us.recommend.UserKNN(k=50),
    }
    runs = {name: us.rank(one.fit(split.train), lists, 10) for name, one in systems.items()}
    seen = {name: row["P@10"] for name, row in us.evaluate(lists, runs, ["P@10"]).means().items()}
    true = us.evaluate(w.truth(), runs, ["P@10"], liked=4).means()
    assert seen["knn"] > 3 * seen["random"]
    assert seen["popular"] < 1.5 * seen["random"]
    spread = np.sqrt(0.25 / 20_000)
    for row in true.values():
        assert abs(row["P@10"] - 0.5) <= 4.5 * spread


@pytest.fixture(scope="module")
def movielens():
    from shared.real_data import real_data

    return us.read_ratings(real_data("ml-1m/ratings.parquet"))


@pytest.mark.real
def test_the_law_of_movielens(movielens):
    fit = fit_popularity_law(movielens)
    assert fit.alpha == pytest.approx(1.4, abs=0.3)
    assert fit.c2 / 3706 == pytest.approx(0.07, abs=0.01)
    levels = np.unique(movielens.value, return_counts=True)[1]
    assert levels.tolist() == list(ML1M_STARS)


@pytest.mark.real
@pytest.mark.slow
def test_a_uniform_test_leaves_popularity_above_random_without_any_taste(movielens):
    """Against bellogin2017 6.2; castells2018 Eq. 4 says so."""
    null = World.like(movielens, liked=5, observation="given", seed=1)
    assert (null.ratings.item == movielens.item).all()
    (split,) = us.splits.Uniform(test=0.2, epsilon=0.2).split(null.ratings, seed=1)
    for design, popular, random in (
        (us.targets.TestItems(), 0.0133, 0.0053),
        (us.targets.OneRelevant(others=99), 0.0149, 0.0100),
    ):
        lists = design.lists(split, liked=5, seed=1)
        systems = {"popular": us.recommend.Popularity(), "random": us.recommend.Random()}
        runs = {name: us.rank(one.fit(split.train), lists, 10) for name, one in systems.items()}
        scores = us.evaluate(lists, runs, ["P@10"]).means()
        assert scores["popular"]["P@10"] == pytest.approx(popular, abs=0.001)
        assert scores["random"]["P@10"] == pytest.approx(random, abs=0.0004)


@pytest.mark.real
def test_coat_hidden_against_relevance():
    from shared.real_data import real_data

    table = np.loadtxt(real_data("coat/test.ascii"))
    user, item = np.nonzero(table)
    ids = [Ids(pl.Series(np.arange(1, n + 1))) for n in table.shape]
    full = Ratings(
        *ids,
        frozen(user.astype(np.int32)),
        frozen(item.astype(np.int32)),
        frozen(table[user, item]),
    )
    w = World.of_matrix(full, 4, [PopularityLaw(1.0), AgainstRelevance()], expected=1000)
    assert abs(len(w.ratings) - 1000) <= 4.5 * np.sqrt(1000)
    known = counts(full) > 0
    rate = counts(w.ratings)[known] / counts(full)[known]
    assert us.stats.kendall(rate, w.item_chance[known]) < -0.2
