"""Models of several settings that are learned together are those that are learned alone."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import unskew as us
from unskew.engine.threads import exactly
from unskew.experiment.tune import candidates
from unskew.recommend import EASE, SLIM, WRMF, ItemKNN, PureSVD, UserKNN
from unskew.recommend.matrices.sparse import DenseWeights, UserWeights

SEEDS = {"user-knn", "item-knn", "wrmf", "slim"}


def ratings(users=40, items=25, share=0.3, seed=0):
    """Return ratings with a user and an item that have none; a generator of this test."""
    rng = np.random.default_rng(seed)
    rated = rng.random((users, items)) < share
    rated[3], rated[:, 5] = False, False
    user, item = np.divmod(np.arange(users * items), items)
    value = rng.integers(1, 6, user.size).astype(float)
    return us.read_ratings({"user": user, "item": item, "rating": value}).take(rated.ravel())


def everyone(train):
    return np.arange(len(train.users), dtype=np.int32)


@pytest.mark.parametrize("system", [UserKNN(), ItemKNN(), PureSVD(), EASE(), SLIM(), WRMF(4)])
@pytest.mark.parametrize(("users", "items"), [(40, 25), (20, 60)])
def test_models_are_those_of_single_fits(system, users, items):
    train = ratings(users, items)
    several = [replace(system, **one) for one in candidates(system)]
    models = type(system).fit_several(several, train, [7] * len(several))
    for one, model in zip(several, models, strict=True):
        alone = one.fit(train, 7).score(everyone(train))
        together = model.score(everyone(train))
        if one.name in SEEDS:
            np.testing.assert_array_equal(together, alone)
        else:
            # Weights of items of EASE have single precision, those of users double.
            error = 1e-5 if one.name == "ease" else 1e-8
            np.testing.assert_allclose(together, alone, rtol=error, atol=error / 10)


@pytest.mark.parametrize("lists", ["rated", "target"])
def test_neighbours_of_several_k_and_asymmetries_have_the_same_bits(lists):
    train = ratings(30, 40)
    several = [
        ItemKNN(k=k, asymmetry=asymmetry, lists=lists)
        for k in (1, 5, 38, 39, 100, None)
        for asymmetry in (0.5, 0.2)
    ]
    models = ItemKNN.fit_several(several, train, [0] * len(several))
    for one, model in zip(several, models, strict=True):
        expected = one.fit(train).score(everyone(train))
        np.testing.assert_array_equal(model.score(everyone(train)), expected)


@pytest.mark.parametrize("values", ["rating", "one"])
@pytest.mark.parametrize("l2", [0.5, 30.0, 1e5])
def test_ease_over_users_has_the_closed_form_over_items(values, l2):
    train = ratings(20, 60, seed=3)
    several = [EASE(l2=l2, values=values), EASE(l2=2 * l2, values=values)]
    model, other = EASE.fit_several(several, train, [0, 0])
    assert isinstance(model, UserWeights)
    assert isinstance(other, UserWeights)
    R = np.zeros((20, 60))
    R[train.user, train.item] = 1.0 if values == "one" else train.value
    P = np.linalg.inv(R.T @ R + l2 * np.eye(60))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    expected = R @ B
    expected[:, 5], expected[3] = np.nan, np.nan
    np.testing.assert_allclose(model.score(everyone(train)), expected, rtol=1e-9, atol=1e-10)


def test_ease_with_a_tiny_penalty_or_many_users_is_solved_over_items():
    train = ratings(20, 60)
    model, _ = EASE.fit_several([EASE(l2=1e-6), EASE(l2=1e-5)], train, [0, 0])
    assert isinstance(model, DenseWeights)
    model, _ = EASE.fit_several([EASE(l2=10.0), EASE(l2=20.0)], ratings(60, 20), [0, 0])
    assert isinstance(model, DenseWeights)


@pytest.mark.parametrize("system", [PureSVD(), EASE(), UserKNN(), SLIM()])
def test_same_bits_whatever_the_number_of_threads(system):
    train = ratings(80, 150, seed=2)
    several = [replace(system, **one) for one in candidates(system)][:3]
    tiles = []
    for threads in (1, 3):
        with exactly(threads):
            models = type(system).fit_several(several, train, [1, 1, 1])
            tiles.append([model.score(everyone(train)) for model in models])
    for one, other in zip(*tiles, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_setting_that_fails_does_not_end_the_others():
    train = ratings()

    @dataclass(frozen=True)
    class Picky(us.recommend.Algorithm):
        level: int = 0

        def learn(self, train, rng):
            if self.level == 1:
                raise us.DataError("level 1 is refused")
            return np.full(len(train.items), float(self.level))

    models = Picky.fit_several([Picky(0), Picky(1), Picky(2)], train, [0, 0, 0])
    assert next(models).score(everyone(train)).max() == 0
    with pytest.raises(us.DataError, match="level 1"):
        next(models)
    assert next(models).score(everyone(train)).max() == 2
    assert list(models) == []


def test_a_subclass_that_learns_in_another_way_is_asked():
    class Mine(PureSVD):
        def learn(self, train, rng):
            return np.full(len(train.items), 9.0)

    models = Mine.fit_several([Mine(1), Mine(2)], ratings(), [0, 0])
    assert [float(model.item_score[0]) for model in models] == [9.0, 9.0]


def test_what_cannot_be_trained_is_refused():
    train = ratings()
    with pytest.raises(us.SettingError, match="1 were given for 2 settings"):
        PureSVD.fit_several([PureSVD(1), PureSVD(2)], train, [0])
    with pytest.raises(us.DataError, match="no training ratings"):
        next(PureSVD.fit_several([PureSVD(1), PureSVD(2)], train.take(slice(0, 0)), [0, 0]))
