"""Interventions: weights by hand, draws by distribution, raking, and the test of randomness."""

import itertools
import json
import math
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.commands import run
from shared.examples import examples
from shared.real_data import real_data
from unskew import DataError, DataWarning, SettingError
from unskew.data.ratings import under_one_numbering
from unskew.splits import draws
from unskew.splits.interventions import DESIGNS, METHODS, Full, RatingCounts, Reg, Skew, Wtd, WtdH
from unskew.splits.looks_random import chi_square_tail, cochran, looks_random
from unskew.splits.subsample import random_parts


def pairs_of(user, item):
    """Make ratings of numbers of users and items, 1 to 5 in turn."""
    rating = [1 + k % 5 for k in range(len(user))]
    return us.read_ratings({"user": user, "item": item, "rating": rating})


def biased(seed, users=60, items=40):
    """Return ratings in which some users and some items stand out."""
    rng = np.random.default_rng(seed)
    chance = np.outer(rng.uniform(0.2, 1, users), np.linspace(1, 0.1, items))
    return pairs_of(*np.nonzero(rng.random((users, items)) < chance))


def material(seed=0, users=60):
    """Return held-out, training and random ratings."""
    train, held_out = random_parts(biased(seed, users), [0.6, 0.4], seed)
    rng = np.random.default_rng(seed + 100)
    user, item = np.divmod(rng.choice(60 * 40, 400, replace=False), 40)
    return held_out, train, pairs_of(user, item)


def rows(part):
    return part.to_polars().rows()


CASES = [
    Full(),
    Reg(),
    Skew(),
    Skew(size=0.3, exponent=0.5, unseen="random"),
    Wtd(),
    Wtd(exponent=1, smoothing="paper"),
    WtdH(alpha=0.1),
    WtdH(size=1, smoothing="paper"),
]
every = pytest.mark.parametrize("design", CASES, ids=repr)


def worth(design, held_out, train, mar):
    held_out, train, mar = under_one_numbering(held_out, train, mar)
    return design.aim(RatingCounts(held_out, train, mar, 0)).weights(held_out)


# What every design promises


def test_every_design_is_walked():
    assert {type(case).kind for case in CASES} == set(DESIGNS)


@every
def test_same_rows_in_any_order_of_the_input(design):
    held_out, train, mar = material()

    def mixed(part):
        return us.read_ratings(part.to_polars().sample(fraction=1, shuffle=True, seed=3))

    once = design.sample(held_out, train, mar, 5)
    again = design.sample(mixed(held_out), mixed(train), mixed(mar), 5)
    assert rows(once.ratings) == rows(again.ratings)
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            weighted = design.weigh(held_out, train, mar, method, 5)
            other = design.weigh(mixed(held_out), mixed(train), mixed(mar), method, 5)
        assert weighted.to_polars().equals(other.to_polars())
        assert weighted.weight.mean() == pytest.approx(1)
        assert (weighted.weight >= 0).all()


@every
def test_a_sample_is_part_of_what_was_held_out(design):
    held_out, train, mar = material()
    done = design.sample(held_out, train, mar, 1)
    assert len(done.ratings) == int(design.size * len(held_out))
    assert set(rows(done.ratings)) <= set(rows(held_out))
    text = json.dumps([dict(done.facts), dict(done.design)], allow_nan=False)
    assert json.loads(text)[1]["kind"] == design.kind
    assert done.facts["held_out"] == len(held_out)
    assert len(str(done).splitlines()) == 3
    assert f"{design.kind}: {len(done.ratings):,} ratings drawn from {len(held_out):,}" in str(done)


def test_full_and_reg():
    held_out, _, _ = material()
    assert rows(Full().sample(held_out).ratings) == rows(held_out)
    first, second = (Reg().sample(held_out, seed=seed).ratings for seed in (1, 2))
    assert rows(first) != rows(second)
    assert len(first) == len(held_out) // 2


# Weights by hand

TRAIN = pairs_of([1, 2, 3, 4, 1, 2, 1], [1, 1, 1, 1, 2, 2, 3])  # items 4, 2, 1; users 3, 2, 1, 1
HELD = pairs_of([1, 2, 3, 4, 5], [1, 2, 3, 4, 1])  # user 5 and item 4 are new
MAR = pairs_of([1, 2, 3, 4, 1, 3], [1, 2, 3, 4, 4, 2])


def test_skew_by_hand():
    assert worth(Skew(), HELD, TRAIN, MAR).tolist() == [1 / 4, 1 / 2, 1, 1, 1 / 4]
    assert worth(Skew(exponent=2), HELD, TRAIN, MAR).tolist() == [1 / 16, 1 / 4, 1, 1, 1 / 16]
    drawn = worth(Skew(unseen="random"), HELD, TRAIN, MAR)
    assert drawn[:3].tolist() == [1 / 4, 1 / 2, 1]
    assert 0 < drawn[3] < 1
    facts = Skew().sample(HELD, TRAIN).facts
    assert (facts["items_unseen"], facts["ratings_of_unseen_items"]) == (1, 1)


def test_wtd_as_the_paper_has_it():
    """P_mnar of users 3/7 2/7 1/7 1/7 0 and items 4/7 2/7 1/7 0, P_mar 2/6 1/6 2/6 1/6 0 and
    1/6 2/6 1/6 2/6; 0 becomes 0.0001."""
    user = np.array([2, 1, 2, 1, 0]) / 6 / (np.array([3, 2, 1, 1, 0]) / 7 + [0, 0, 0, 0, 1e-4])
    user[4] = 1  # 0.0001 / 0.0001
    item = np.array([1, 2, 1, 2]) / 6 / np.array([4 / 7, 2 / 7, 1 / 7, 1e-4])
    expected = [user[u] * item[i] ** 2 for u, i in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0)]]
    assert worth(Wtd(smoothing="paper"), HELD, TRAIN, MAR) == pytest.approx(expected)
    expected = [user[u] * item[i] for u, i in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0)]]
    assert worth(Wtd(exponent=1, smoothing="paper"), HELD, TRAIN, MAR) == pytest.approx(expected)
    facts = Wtd().sample(HELD, TRAIN, MAR).facts
    zeros = {key: value for key, value in facts.items() if key.startswith("zero")}
    assert zeros == {
        "zero_train_users": 1, "zero_train_items": 1, "zero_mar_users": 1, "zero_mar_items": 0,
    }  # fmt: skip


def test_wtd_with_additive_smoothing():
    user = ((np.array([2, 1, 2, 1, 0]) + 1) / 11) / ((np.array([3, 2, 1, 1, 0]) + 1) / 12)
    item = ((np.array([1, 2, 1, 2]) + 1) / 10) / ((np.array([4, 2, 1, 0]) + 1) / 11)
    expected = [user[u] * item[i] ** 2 for u, i in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0)]]
    assert worth(Wtd(), HELD, TRAIN, MAR) == pytest.approx(expected)


def test_wtd_h_aims_at_users_and_items_that_are_all_alike():
    user = (1 / 5) / ((np.array([3, 2, 1, 1, 0]) + 1) / 12)
    item = (1 / 4) / ((np.array([4, 2, 1, 0]) + 1) / 11)
    expected = [user[u] * item[i] ** 2 for u, i in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0)]]
    assert worth(WtdH(), HELD, TRAIN, MAR) == pytest.approx(expected)


# Draws


def inclusion(weights, size):
    """Return the inclusion probabilities of successive draws, by going through all of them."""
    chance = np.zeros(len(weights))
    for order in itertools.permutations(range(len(weights)), size):
        p, left = 1.0, sum(weights)
        for k in order:
            p *= weights[k] / left
            left -= weights[k]
        chance[list(order)] += p
    return chance


def test_draws_without_replacement_are_successive_draws():
    """The first two of four exponential clocks, against all orders of numpy's successive draws."""
    weights = np.array([8.0, 4.0, 2.0, 1.0])
    data = pairs_of([1, 1, 2, 2], [1, 2, 1, 2])
    tries = 6000
    hits = sum(draws.weighted(data, weights, 2, seed).astype(int) for seed in range(tries))
    chance = inclusion(weights, 2)
    z = (hits - tries * chance) / np.sqrt(tries * chance * (1 - chance))
    assert np.abs(z).max() < 4.5
    assert np.sum(z**2) < 16.3  # chi-square with 3 degrees of freedom, 99.9 %


def test_weights_by_inclusion_are_what_samples_give_on_average():
    held_out, train, _ = material()
    design = Skew(exponent=1.5)
    tries = 400
    drawn = np.zeros(len(held_out))
    place = {pair: k for k, pair in enumerate(zip(held_out.user, held_out.item, strict=True))}
    for seed in range(tries):
        sample = design.sample(held_out, train, seed=seed).ratings
        drawn[[place[pair] for pair in zip(sample.user, sample.item, strict=True)]] += 1
    expected = design.weigh(held_out, train, method="inclusion").weight * design.size
    z = (drawn / tries - expected) / np.sqrt(expected * (1 - expected) / tries)
    assert np.abs(z).max() < 4.5
    assert abs(np.mean(z**2) - 1) < 0.25


def test_all_are_included_when_all_are_drawn():
    held_out, train, _ = material()
    assert (Skew(size=1).weigh(held_out, train, method="inclusion").weight == 1).all()


@given(st.integers(0, 200))
@examples(15)
def test_interventions_bring_items_nearer_to_uniform(seed):
    held_out, train, _ = material(seed, users=400)
    before = Reg().sample(held_out, seed=seed).facts["items_gini_after"]
    for design in (Skew(), WtdH()):
        assert design.sample(held_out, train, seed=seed).facts["items_gini_after"] < before


# Raking


def test_raking_reaches_both_distributions():
    held_out = train = biased(0, users=200)
    done = WtdH().weigh(held_out, train, method="raking")
    for codes in (done.ratings.user, done.ratings.item):
        amount = np.bincount(codes, done.weight)
        amount = amount[amount > 0]
        assert amount / amount.sum() == pytest.approx(1 / amount.size, rel=1e-5)
    assert done.facts["raking_gap"] <= 1e-6
    assert 0 < done.facts["effective_size"] < len(held_out)
    # Raked weights are a product of a user's and an item's: log-odds of any square vanish.
    table = np.full((200, 40), np.nan)
    table[done.ratings.user, done.ratings.item] = np.log(done.weight)
    squares = table[:-1, :-1] - table[:-1, 1:] - table[1:, :-1] + table[1:, 1:]
    known = squares[~np.isnan(squares)]
    assert known.size > 100
    assert np.abs(known).max() < 1e-9


def test_raking_to_items_alone():
    held_out, train, _ = material()
    done = Skew().weigh(held_out, train, method="raking")
    amount = np.bincount(done.ratings.item, done.weight)
    assert amount[amount > 0] == pytest.approx(amount.max())
    assert done.facts["items_gini_after"] == pytest.approx(
        done.facts["items_out_of_reach"] / len(done.ratings.items)
    )


def test_raking_what_cannot_be():
    """One user alone rates the one item that must have half of the weight."""
    held_out = pairs_of([1, 1, 2, 3], [1, 2, 2, 2])
    with pytest.warns(DataWarning, match="cannot have both distributions at once"):
        done = WtdH().weigh(held_out, held_out, method="raking")
    assert done.facts["raking_gap"] > 0.1
    assert np.isfinite(done.weight).all()


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Skew().sample(HELD), "skew needs train: training ratings"),
        (lambda: Wtd().sample(HELD, TRAIN), "wtd needs mar: .*take WtdH"),
        (lambda: Skew(size=0), "size must be a share between 0 and 1, which is allowed"),
        (lambda: Full(size=0.5), "full keeps everything"),
        (lambda: Skew(unseen="never"), "unknown unseen 'never'"),
        (lambda: Wtd(smoothing="pape"), "Did you mean 'paper'"),
        (lambda: Wtd(alpha=0), "alpha must be a number above 0"),
        (lambda: Skew(exponent=-1), "exponent must be a number from 0 up"),
        (lambda: Reg().weigh(HELD, method="rake"), "unknown method 'rake'"),
    ],
)
def test_settings_that_are_not_right(make, message):
    with pytest.raises(SettingError, match=message):
        make()


def test_nothing_to_draw():
    with pytest.raises(DataError, match=r"size=0\.1 of 5 ratings is none"):
        Reg(size=0.1).sample(HELD)


# Looking random


@pytest.mark.parametrize("x", [0.01, 0.5, 1, 3.84, 20, 300, 1500])
def test_chi_square_tail(x):
    assert chi_square_tail(x, 1) == pytest.approx(math.erfc(math.sqrt(x / 2)), rel=1e-12)
    assert chi_square_tail(x, 2) == pytest.approx(math.exp(-x / 2), rel=1e-12)
    # Even degrees of freedom are a Poisson sum.
    poisson = sum(math.exp(-x / 2 + k * math.log(x / 2) - math.lgamma(k + 1)) for k in range(25))
    assert chi_square_tail(x, 50) == pytest.approx(poisson, rel=1e-10)


@pytest.mark.parametrize(
    ("x", "df", "p"),  # from tables: 5 % and 0.1 % points
    [(18.307, 10, 0.05), (124.342, 100, 0.05), (1074.679, 1000, 0.05), (29.588, 10, 0.001)],
)
def test_chi_square_tables(x, df, p):
    assert chi_square_tail(x, df) == pytest.approx(p, rel=1e-3)
    assert chi_square_tail(0, df) == 1


def test_a_million_degrees_of_freedom():
    assert chi_square_tail(1e6, 10**6) == pytest.approx(0.49981, abs=1e-5)
    assert 0 < chi_square_tail(1e6 + 5 * math.sqrt(2e6), 10**6) < 1e-6


def test_cochran_by_hand():
    """Three items, four users who rated 2, 1, 1, 2 of them; counts 3, 2, 1: Q = 8/5 / ... ."""
    counts, others = np.array([3, 2, 1]), np.array([2, 1, 1, 2])
    q = (3 - 1) * (3 * (9 + 4 + 1) - 36) / (3 * 6 - (4 + 1 + 1 + 4))
    statistic, df, p = cochran(counts, others)
    assert (statistic, df) == (q, 2) == (1.5, 2)
    assert p == pytest.approx(math.exp(-q / 2))
    assert math.isnan(cochran(np.array([2, 2]), np.array([2, 2]))[2])  # everything is rated


@pytest.mark.parametrize("fixed", [False, True])
def test_random_ratings_look_random(fixed):
    """p below 0.05 in about a twentieth of random sets: pairs at random, or 12 for each user."""
    rng = np.random.default_rng(int(fixed))
    small = np.zeros(3)
    tries = 150
    for _ in range(tries):
        if fixed:
            user = np.repeat(np.arange(80), 12)
            item = np.concatenate([rng.choice(60, 12, replace=False) for _ in range(80)])
        else:
            user, item = np.divmod(rng.choice(80 * 60, 900, replace=False), 60)
        result = looks_random(pairs_of(user, item))
        small += (result.table()["p"] < 0.05).to_numpy()
    z = (small - 0.05 * tries) / math.sqrt(0.05 * 0.95 * tries)
    assert np.abs(z[[0, 2]]).max() < 3.5
    assert small[1] == 0 if fixed else abs(z[1]) < 3.5


def test_biased_ratings_do_not():
    result = looks_random(biased(3))
    assert result.table()["significant"].any()
    assert result.row(test="items").p < 1e-6
    assert result.row(test="users").p < 1e-6
    assert "do not look missing at random (level 0.01, three tests)" in str(result)


def test_users_and_items_that_are_not_independent():
    """Even margins, but each half of the users rates its own half of the items."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(100), 10)
    item = np.concatenate([20 * (u % 2) + rng.choice(20, 10, replace=False) for u in range(100)])
    # Popularity and activity tell the halves apart only if they differ: give them a nudge.
    extra = [(u, i) for u in range(0, 100, 2) for i in range(20) if rng.random() < 0.6]
    both = set(zip(user.tolist(), item.tolist(), strict=True)) | set(extra)
    result = looks_random(pairs_of(*zip(*both, strict=True)))
    assert result.row(test="pairs").p < 1e-6


# The command line


@pytest.fixture
def files(tmp_path):
    paths = {}
    for name, part in zip(("test", "train", "mar"), material(), strict=True):
        paths[name] = tmp_path / f"{name}.parquet"
        part.to_polars().write_parquet(paths[name])
    return paths


@pytest.mark.parametrize("kind", DESIGNS)
def test_intervene(capsys, files, tmp_path, kind):
    command = ["intervene", files["test"], "--train", files["train"], "--mar", files["mar"]]
    code, text = run(capsys, *command, "--kind", kind, "--seed", 3, "-o", tmp_path / "out")
    assert code == 0, text
    drawn = pl.read_parquet(tmp_path / "out" / "test.parquet")
    held_out, train, mar = material()
    assert drawn.rows() == rows(DESIGNS[kind]().sample(held_out, train, mar, 3).ratings)
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert (card["kind"], card["seed"]) == (kind, 3)
    assert card["files"] == {"test.parquet": drawn.height}
    assert str(tmp_path) not in json.dumps(card)
    code, text = run(capsys, *command, "--kind", kind, "-o", tmp_path / "out")
    assert (code, "is not empty" in text) == (2, True)


def test_intervene_with_weights(capsys, files, tmp_path):
    code, text = run(
        capsys, "intervene", files["test"], "--train", files["train"], "-k", "wtd-h",
        "--weighting", "raking", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, text
    frame = pl.read_parquet(tmp_path / "out" / "test.parquet")
    assert frame.height == len(material()[0])
    assert frame["weight"].mean() == pytest.approx(1)


def test_intervene_says_what_it_needs(capsys, files, tmp_path):
    code, text = run(capsys, "intervene", files["test"], "-k", "skew", "-o", tmp_path / "out")
    assert (code, "skew needs train" in text) == (2, True)
    code, text = run(
        capsys, "intervene", files["test"], "-k", "reg", "--alpha", 1, "-o", tmp_path / "out"
    )
    assert (code, "--alpha does not apply to reg; it takes --size" in text) == (2, True)


# Published data


def coat(name):
    dense = np.loadtxt(real_data(f"coat/{name}.ascii"))
    user, item = np.nonzero(dense)
    return us.read_ratings({"user": user, "item": item, "rating": dense[user, item]})


@pytest.mark.real
def test_coat_tells_random_from_chosen_ratings():
    random, chosen = looks_random(coat("test")), looks_random(coat("train"))
    assert not random.table()["significant"].any()
    assert chosen.table()["significant"].any()
    assert chosen.row(test="items").p < 1e-100
    users = [result.row(test="users").value for result in (random, chosen)]
    assert users == [0, 0]  # 16 and 24 from every user


@pytest.mark.real
def test_carraro2020_on_coat():
    """Its sizes, and that SKEW and WTD_H make items more even than a plain draw does."""
    train, held_out = random_parts(coat("train"), [0.6, 0.4])
    weights, validation, truth = random_parts(coat("test"), [0.15, 0.15, 0.7])
    assert [len(part) for part in (train, held_out)] == [4176, 2784]
    assert [len(part) for part in (weights, validation, truth)] == [696, 696, 3248]
    drawn = {
        design.kind: design.sample(held_out, train, weights).facts
        for design in (Full(), Reg(), Skew(), Wtd(), WtdH())
    }
    assert drawn["reg"]["kept"] == drawn["wtd"]["kept"] == 1392
    for kind in ("skew", "wtd-h"):
        assert drawn[kind]["items_kl_after"] < drawn["reg"]["items_kl_after"] * 0.75
