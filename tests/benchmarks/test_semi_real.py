"""Semi-real worlds: chances fitted on ratings of random items, and exposure that is simulated."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from reliability import run
from reliability.kinds import KINDS, at_hand, semi_real
from reliability.preferences import Pairs, Spread, fitted_chances
from shared.real_data import real_data

COLUMNS = ("user", "item", "answer", "is_chosen")
FOLDERS = {"coat": "coat", "r3": "yahoo-r3", "cm100k": "cm100k"}


def people(seed=1, users=300, items=80, factors=2, taste=1.0):
    """Return chances that are none of the worlds': effects and factors of normal size."""
    rng = np.random.default_rng(seed)
    odds = -1 + rng.standard_normal((users, 1)) + 0.7 * rng.standard_normal(items)
    width = taste**0.5 * factors**-0.25
    sides = [width * rng.standard_normal((size, factors)) for size in (users, items)]
    return 1 / (1 + np.exp(-odds - sides[0] @ sides[1].T)), rng


def answers(chance, share, rng, shift=0.0):
    """Ask for a share of pairs, drawn at random."""
    user, item = np.nonzero(rng.random(chance.shape) < share)
    odds = np.log(chance / (1 - chance))[user, item] + shift
    yes = rng.random(user.size) < 1 / (1 + np.exp(-odds))
    numbers = (column.astype(np.int32) for column in (user, item))
    return Pairs(*numbers, yes, np.full(user.size, shift != 0), chance.shape)


def test_fitted_chances_are_those_behind_the_answers():
    chance, rng = people()
    pairs = answers(chance, 0.5, rng)
    fitted = fitted_chances(pairs, Spread(user=1, item=0.7, taste=1, factors=2))
    odds, truth = (np.log(values / (1 - values)) for values in (fitted, chance))
    assert np.corrcoef(odds.ravel(), truth.ravel())[0, 1] > 0.8
    assert fitted.mean() == pytest.approx(chance.mean(), abs=0.01)
    # Chances mean nearly what they say, on pairs that were not asked for.
    asked = np.zeros(chance.shape, bool)
    asked[pairs.user, pairs.item] = True
    for low, high in ((0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1)):
        part = ~asked & (fitted >= low) & (fitted < high)
        assert chance[part].mean() == pytest.approx(fitted[part].mean(), abs=0.1)
    # Taste is beyond effects of users and items.
    plain = fitted_chances(pairs, Spread(user=1, item=0.7))
    assert np.abs(plain - chance).mean() > 1.25 * np.abs(fitted - chance).mean()


def test_fitted_chances_solve_the_equations_of_the_most_probable_fit():
    """At the best fit the errors of every user sum to what the normal distribution pulls."""
    chance, rng = people(users=60, items=20)
    pairs = answers(chance, 0.4, rng)
    fitted = fitted_chances(pairs, Spread(user=0.8, item=0.5))
    error = pairs.answer - fitted[pairs.user, pairs.item]
    odds = np.log(fitted / (1 - fitted))
    for numbers, axis, deviation in ((pairs.user, 1, 0.8), (pairs.item, 0, 0.5)):
        sums = np.bincount(numbers, error)
        effect = odds.mean(axis=axis)
        slope = np.polyfit(effect, sums, 1)
        assert slope[0] == pytest.approx(deviation**-2, rel=1e-3)
        assert np.abs(sums - np.polyval(slope, effect)).max() < 1e-3
    assert error.sum() == pytest.approx(0, abs=1e-3)


def test_pairs_that_users_chose_have_a_level_of_their_own():
    chance, rng = people(users=400, taste=0.05)
    random, chosen = answers(chance, 0.1, rng), answers(chance, 0.3, rng, shift=1.5)
    columns = [np.concatenate([getattr(x, name) for x in (random, chosen)]) for name in COLUMNS]
    pairs, spread = Pairs(*columns, chance.shape), Spread(user=1, item=0.7)
    fitted = fitted_chances(pairs, spread)
    assert fitted.mean() == pytest.approx(chance.mean(), abs=0.015)
    above = fitted_chances(pairs, spread, chosen=True)
    shift = np.log(above / (1 - above)) - np.log(fitted / (1 - fitted))
    np.testing.assert_allclose(shift, shift[0, 0])
    assert shift[0, 0] == pytest.approx(1.5, abs=0.25)


def test_a_hint_has_the_weight_with_which_it_tells():
    chance, rng = people(users=400, taste=0.05)
    hint = rng.standard_normal(chance.shape)
    odds = np.log(chance / (1 - chance)) + 0.8 * hint
    truth = 1 / (1 + np.exp(-odds))
    pairs, spread = answers(truth, 0.3, rng), Spread(user=1, item=0.7)
    fitted = fitted_chances(pairs, spread, hint=hint)
    found = np.log(fitted / (1 - fitted))
    slope = np.polyfit(
        (hint - hint.mean(axis=1, keepdims=True)).ravel(),
        (found - found.mean(axis=1, keepdims=True)).ravel(),
        1,
    )[0]
    assert slope == pytest.approx(0.8, abs=0.1)
    assert np.abs(fitted - truth).mean() < 0.08
    # A hint that has nothing to do with the answers changes next to nothing.
    useless = fitted_chances(pairs, spread, hint=rng.standard_normal(chance.shape))
    assert np.abs(useless - fitted_chances(pairs, spread)).mean() < 0.01


# Where data are missing


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSKEW_DATA", str(tmp_path))


@pytest.mark.usefixtures("no_data")
def test_kinds_without_their_data_are_left_out_with_a_sentence():
    names, reasons = at_hand()
    assert [name for name, kind in KINDS.items() if not kind.source] == names
    assert len(names) == 79
    assert len(reasons) == 3
    for title, reason in zip(("Coat", "Yahoo! R3", "CM100k"), reasons, strict=True):
        assert reason.startswith(f"{title} is not in the folder that UNSKEW_DATA names")
    assert KINDS["coat-display"].missing == reasons[0]
    assert KINDS["taste"].missing == ""


@pytest.mark.usefixtures("no_data")
def test_a_run_without_data_says_what_it_leaves_out(monkeypatch, capsys):
    asked = {}

    def stand_in(**options):
        asked.update(options)
        raise SystemExit(0)

    monkeypatch.setattr(run, "reliability", stand_in)
    for words in ([], ["--kinds", "tiny"]):
        with pytest.raises(SystemExit):
            run.main([*words, "--quiet"])
        reasons = capsys.readouterr().err
        assert ("Coat is not in the folder" in reasons) == (not words)
        assert asked["kinds"] == (["tiny"] if words else at_hand()[0])
    assert sys.modules["reliability.run"] is run


# With the data


@pytest.fixture(scope="module", params=semi_real.SOURCES)
def source(request):
    real_data(FOLDERS[request.param])
    return request.param


def world(source, exposure, seed=1):
    return KINDS[f"{source}-{exposure}"](seed)


def shares(one):
    """Return how much each item is exposed, and how much it is liked."""
    return one.rated_if_liked.mean(axis=0), one.like.mean(axis=0)


def together(one):
    return np.corrcoef(*(values.argsort().argsort() for values in shares(one)))[0, 1]


def test_people_like_in_worlds_as_often_as_in_random_ratings(source):
    data = semi_real.us.load(semi_real.SOURCES[source].data)
    liked = (data.random.value >= data.liked).mean()
    mean = np.mean([world(source, "uniform", seed).like.mean() for seed in range(5)])
    assert mean == pytest.approx(liked, rel=0.12)
    real = semi_real.preferences(source)
    assert real.like.mean() == pytest.approx(liked, rel=0.05)
    assert real.like.std(axis=1).mean() > 0.02


def test_chances_are_the_shares_liked_among_random_ratings_that_were_held_out(source):
    """Also far up the lists: there taste is seen that effects of users and items do not hold."""
    settings = semi_real.SOURCES[source]
    parts = semi_real._Parts(semi_real.us.load(settings.data))
    pairs = parts.random
    held = np.random.default_rng(5).random(pairs.user.size) < 0.2
    fit, test = (
        replace(pairs, **{name: getattr(pairs, name)[kept] for name in COLUMNS})
        for kept in (~held, held)
    )
    hint = parts.log_ranks() if settings.by_rank else None
    like = fitted_chances(fit, settings.spread, hint=hint)
    chance = like[test.user, test.item]
    for low, high in ((0, 0.05), (0.05, 0.15), (0.15, 0.3), (0.3, 0.5), (0.5, 1)):
        part = (chance >= low) & (chance < high)
        error = abs((test.answer[part] - chance[part]).mean())
        assert error < 0.05 + 3 * np.sqrt(0.25 / part.sum()), (low, high)

    def loss(fitted):
        return -np.log(np.where(test.answer, fitted, 1 - fitted)).mean()

    plain = fitted_chances(fit, Spread(user=1.5, item=0.7))[test.user, test.item]
    assert loss(chance) < loss(plain) - 0.005
    odds = np.log(like / (1 - like))
    taste = odds - odds.mean(axis=1, keepdims=True) - odds.mean(axis=0) + odds.mean()
    assert taste.std() > 0.3


def test_exposure_is_that_of_the_name(source):
    uniform = world(source, "uniform")
    relative = uniform.rated_if_liked / uniform.rated_if_liked.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(relative, 1)
    assert np.abs([together(world(source, "display", seed)) for seed in (1, 2, 3)]).max() < 0.25
    assert together(world(source, "quality")) > 0.99
    shown = world(source, "recommender")
    liked = (shown.like * shown.chance_rated).sum() / shown.chance_rated.sum()
    assert liked > 1.1 * shown.like.mean()
    for exposure in ("uniform", "display", "quality", "recommender"):
        one = world(source, exposure)
        np.testing.assert_array_equal(one.rated_if_liked, one.rated_if_disliked)


def test_selection_is_as_in_the_ratings_that_people_chose(source):
    data = semi_real.us.load(semi_real.SOURCES[source].data)
    chosen = (data.ratings.value >= data.liked).mean()
    recorded = []
    for seed in range(4):
        one = world(source, "selection", seed)
        ratio = one.rated_if_disliked / one.rated_if_liked
        np.testing.assert_allclose(ratio, ratio[0, 0])
        recorded.append(one.chance_recorded_liked.sum() / one.chance_rated.sum())
    assert np.mean(recorded) == pytest.approx(chosen, abs=0.03)


def test_known_songs_are_liked_more_and_alone_rated():
    real_data("cm100k")
    one = KINDS["cm100k-familiar"](1)
    known = one.chance_rated > 0
    assert 0.05 < known.mean() < 0.2
    liked = (one.like * one.chance_rated).sum() / one.chance_rated.sum()
    assert liked == pytest.approx(0.63, abs=0.06)
    assert one.like.mean() == pytest.approx(0.286, abs=0.04)
    assert one.like[known].mean() > one.like[~known].mean() + 0.2
