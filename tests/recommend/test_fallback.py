"""A fallback for cold users: who is scored by whom, and how plans hold it."""

import numpy as np
import pytest

import unskew as us
from shared.ratings import numbered_ratings
from unskew.experiment.plan_files import plan_from_card, plan_of
from unskew.recommend.registry import algorithm


def some_train():
    """Return ratings of users 0 to 19; users 20 to 24 and item 12 have none."""
    rng = np.random.default_rng(3)
    rows = [(u, int(i), 4.0) for u in range(20) for i in rng.choice(12, 5, replace=False)]
    return numbered_ratings(rows, 25, 13)


def scores(model, users=25):
    return model.score(np.arange(users, dtype=np.int32))


@pytest.mark.parametrize("of", [us.recommend.UserKNN(k=5), us.recommend.PureSVD(factors=2)])
def test_cold_users_are_scored_by_the_fallback_alone(of):
    train = some_train()
    both = scores(us.recommend.WithFallback(of).fit(train))
    # To the bit where nothing is drawn: PureSVD starts from random vectors.
    assert np.allclose(both[:20], scores(of.fit(train))[:20], rtol=1e-9, equal_nan=True)
    counts = np.bincount(train.item, minlength=13)
    assert np.array_equal(both[20:], np.tile(counts, (5, 1)))
    assert np.isnan(scores(of.fit(train))[20:]).all()


def test_warm_users_whom_the_recommender_cannot_score_stay_unscored():
    """The fallback is for cold users: nothing else is filled in."""
    train = numbered_ratings([(0, 0, 1.0), (1, 1, 1.0)], 3, 3)
    both = scores(us.recommend.WithFallback(us.recommend.UserKNN(k=2)).fit(train), 3)
    alone = scores(us.recommend.UserKNN(k=2).fit(train), 3)
    assert np.array_equal(both[:2], alone[:2], equal_nan=True)
    assert both[2].tolist() == [1, 1, 0]


def test_single_precision_becomes_double_where_it_must():
    class Half:
        def score(self, users):
            return np.ones((users.size, 2), np.float32)

    train = numbered_ratings([(0, 0, 1.0), (0, 1, 1.0)], 2, 2)
    half = us.experiment.Custom("half", lambda train, rng: Half())
    tile = scores(us.recommend.WithFallback(half).fit(train), 2)
    assert tile.dtype == np.float64
    assert scores(us.recommend.WithFallback(half).fit(train), 1).dtype == np.float32


def test_a_plan_file_and_its_card_hold_it():
    content = {
        "algorithm": [
            {"name": "with-fallback", "of": {"name": "puresvd", "factors": 3}},
            {"name": "with-fallback", "of": "ease", "fallback": "random", "label": "ease+"},
        ],
    }
    plan, _ = plan_of(content)
    assert list(plan.systems) == ["with-fallback of=(puresvd factors=3)", "ease+"]
    assert plan.systems["ease+"] == us.recommend.WithFallback(
        us.recommend.EASE(), us.recommend.Random()
    )
    again = plan_from_card(plan.describe())
    assert again == plan
    assert again.systems["ease+"].fallback == us.recommend.Random()


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"of": "usr-knn"}, "Did you mean 'user-knn'"),
        ({"of": {"k": 5}}, "needs its name"),
        ({"of": {"name": "user-knn", "colour": 1}}, "user-knn has no setting 'colour'"),
        ({"of": 3}, "of must be"),
        ({"fallback": {"name": "with-fallback"}}, "fallback cannot have a fallback itself"),
    ],
)
def test_what_cannot_be_a_fallback(given_settings, message):
    with pytest.raises(us.SettingError, match=message):
        algorithm("with-fallback", **given_settings)


def test_cold_users_no_longer_score_nothing():
    """In a split by time with new users, the fallback gives them what popularity scores."""
    rng = np.random.default_rng(8)
    item = np.concatenate([rng.choice(20, 6, replace=False) for _ in range(60)])
    user = np.repeat(np.arange(60), 6)
    data = us.read_ratings({"user": user, "item": item, "time": rng.integers(0, 50, 360) + user})
    knn = us.recommend.UserKNN(k=5)
    plan = us.Plan(
        us.splits.Temporal(test=0.3),
        algorithms={
            "knn": knn,
            "both": us.recommend.WithFallback(knn),
            "pop": us.recommend.Popularity(),
        },
        relevance=us.Relevance(liked=1),
        metrics=["P@3"],
    )
    table = {
        row["system"]: row for row in us.run_plan(data, plan).by_warmth().iter_rows(named=True)
    }
    assert table["knn"]["cold"] > 5
    assert table["both"]["on_warm"] == table["knn"]["on_warm"]
    assert table["both"]["on_cold"] == table["pop"]["on_cold"] > 0
    assert table["knn"]["on_cold"] == 0
