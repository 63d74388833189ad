"""The contract that every recommender walks, and what the non-personalised ones score."""

import inspect
import json
import math
import re
from dataclasses import fields

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.algorithms import EVERYONE, build
from shared.ratings import numbered_ratings, ratings, timed
from unskew.recommend.registry import algorithm, algorithm_class, read_setting, settings_of
from unskew.testing import check_algorithm

ALIKE = {
    "random",
    "popularity",
    "recent-popularity",
    "positive-popularity",
    "average-rating",
    "smoothed-average",
    "optimal-precision",
    "optimal-anti-precision",
    "optimal-true",
}
"""Not personalised."""
WRAPS = {"with-fallback"}
"""Another recommender among its settings: users without ratings are scored too."""
PERSONAL = [name for name in EVERYONE if name not in ALIKE | WRAPS]


def fit(name, train, seed=3, **more):
    """Fit an algorithm; the oracle is told the training ratings."""
    return given_truth(name, train, **more).fit(train, seed)


def scores(model, train):
    return np.asarray(model.score(np.arange(len(train.users), dtype=np.int32)), np.float64)


def some_ratings(seed=1, users=40, items=30, each=8):
    rng = np.random.default_rng(seed)
    rows = [
        (u, i, float(rng.integers(1, 6)))
        for u in range(users)
        for i in rng.choice(items, each, replace=False)
    ]
    return numbered_ratings(rows, users, items)


def given_truth(name, train, **more):
    """Build an algorithm; the oracle is given the training ratings."""
    return build(name, **({"truth": train} if name == "optimal-true" else {}), **more)


@pytest.mark.parametrize("name", EVERYONE)
def test_contract(name):
    if name == "optimal-true":
        train = some_ratings(users=300, items=40)
        check_algorithm(given_truth(name, train), train, odd_data=False)
    else:
        check_algorithm(build(name), cold_is_nan=name in PERSONAL)


def communities(name):
    """Two groups of users, each rating most items of its own half of the catalogue."""
    rng = np.random.default_rng(5)
    rows = []
    for u in range(24):
        own = np.arange(10) + 10 * (u % 2)
        for i in rng.choice(own, 7, replace=False):
            rows.append((u, int(i), float(rng.integers(3, 6))))
    return timed(numbered_ratings(rows, 24, 20))


LAST_ITEM_ONLY = {"markov-chain"}
"""What came right after the last item does not tell two communities of a few dozen users apart."""


# Regularised to the mean, a rating predictor cannot tell communities that rate alike: it predicts
# how high a rating would be, not which item would be rated.
PREDICT_RATINGS = {
    "svd",
    "biased-mf",
    "nncosngbr-ub",
    "nncosngbr-ib",
    "gaussian-plsa",
    "svdpp",
    "list-rank-mf",
}


@pytest.mark.parametrize("name", sorted({*PERSONAL} - PREDICT_RATINGS - LAST_ITEM_ONLY))
def test_two_communities_are_found(name):
    train = communities(name)
    score = scores(fit(name, train), train)
    right = total = 0
    for u in range(24):
        rated = train.item[train.start[u] : train.start[u + 1]]
        fresh = [i for i in range(20) if i not in rated and not math.isnan(score[u, i])]
        own = [i for i in fresh if i // 10 == u % 2]
        best = sorted(fresh, key=lambda i: (-score[u, i], i))[: len(own)]
        right += len(set(best) & set(own))
        total += len(own)
    # A hitting time prefers what few have rated, and RM1 is decided by one neighbour.
    assert total >= 60
    assert right / total > (0.75 if name in ("hitting-time", "rm1") else 0.95)


@pytest.mark.parametrize("name", sorted(PREDICT_RATINGS))
def test_ratings_of_two_communities_are_predicted(name):
    """Everyone rates everything but a little: the own half high, the other half low."""
    rng = np.random.default_rng(6)
    rows = [
        (u, i, 5.0 if i // 10 == u % 2 else 1.0)
        for u in range(24)
        for i in rng.choice(20, 14, replace=False)
    ]
    train = numbered_ratings(rows, 24, 20)
    more = {"epochs": 200} if name in ("svd", "biased-mf") else {}
    more |= {"shrink": 1.0} if "nncos" in name else {}
    score = scores(fit(name, train, **more), train)
    wins = [
        score[u, i] > score[u, j]
        for u in range(24)
        for i in range(10 * (u % 2), 10 * (u % 2) + 10)
        for j in range(10 - 10 * (u % 2), 20 - 10 * (u % 2))
        if i not in train.item[train.start[u] : train.start[u + 1]]
        and j not in train.item[train.start[u] : train.start[u + 1]]
    ]
    assert len(wins) > 100
    assert np.mean(wins) > 0.95


@pytest.mark.parametrize("name", sorted({*PERSONAL} - PREDICT_RATINGS - LAST_ITEM_ONLY))
def test_a_checkerboard_is_completed(name):
    """Users and items of like parity belong together; what is left out must come first."""
    rows = [
        (u, i, 1.0)
        for u in range(30)
        for i in range(20)
        if (u + i) % 2 == 0 and (u * 7 + i * 3) % 9 != 0
    ]
    train = timed(numbered_ratings(rows, 30, 20))
    score = scores(fit(name, train), train)
    found = []
    for u in range(30):
        rated = set(train.item[train.start[u] : train.start[u + 1]].tolist())
        own = {i for i in range(20) if (u + i) % 2 == 0} - rated
        fresh = [i for i in range(20) if i not in rated and not math.isnan(score[u, i])]
        best = sorted(fresh, key=lambda i: (-score[u, i], i))[: len(own)]
        found.append((len(own & set(best)), len(own)))
    right, total = np.sum(found, axis=0)
    assert total >= 30
    assert right / total > (0.75 if name in ("hitting-time", "rm1") else 0.95)


def test_the_oracle_on_odd_data():
    for rows in ([(0, 0, 4.0)], [(u, i, 3.0) for u in range(4) for i in range(4) if u != i]):
        train = ratings(rows)
        assert not np.isinf(scores(fit("optimal-true", train), train)).any()


@pytest.mark.parametrize("name", EVERYONE)
def test_settings_are_checked(name):
    for key, default in settings_of(algorithm_class(name)).items():
        for wrong in (float("nan"), "nonsense", -1):
            if isinstance(default, bool) or key == "truth":
                continue
            if wrong == -1 and isinstance(default, float | int) and key in ("liked", "threshold"):
                continue  # a threshold may be any number
            with pytest.raises(us.SettingError):
                algorithm(name, **{key: wrong})
    with pytest.raises(us.SettingError, match=f"{name} has no setting 'colour'"):
        algorithm(name, colour="red")


@pytest.mark.parametrize("name", EVERYONE)
def test_described_and_documented(name):
    kind = algorithm_class(name)
    text = inspect.getdoc(kind)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    described = build(name).describe()
    assert described["algorithm"] == name
    json.dumps(described)
    for one in fields(kind):
        assert re.search(rf"^(\w+, )*{one.name}\b", text, re.MULTILINE), (
            f"{one.name} is not documented"
        )
    assert name == "random" or "Reference" in text


def test_unknown_names_are_refused():
    with pytest.raises(us.UnknownName, match="Did you mean 'wrmf'"):
        algorithm("wrfm")
    assert read_setting("mu=mean") == ("mu", "mean")
    assert read_setting(" l1 = 0.5") == ("l1", 0.5)
    for wrong in ("factors", "=3", "k="):
        with pytest.raises(us.SettingError, match="NAME=VALUE"):
            read_setting(wrong)


# The non-personalised ones, by hand

HAND = [(1, 7, 5.0), (1, 8, 2.0), (2, 7, 4.0), (2, 9, 3.0), (3, 7, 1.0), (3, 9, 5.0), (4, 9, 4.0)]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (us.recommend.Popularity(), [3, 1, 3]),
        (us.recommend.PositivePopularity(), [2, 0, 2]),
        (us.recommend.PositivePopularity(liked=5), [1, 0, 1]),
        (us.recommend.AverageRating(), [10 / 3, 2, 4]),
        (us.recommend.SmoothedAverage(mu=1), [(2 + 4 / 7) / 4, (4 / 7) / 2, (2 + 4 / 7) / 4]),
        (us.recommend.SmoothedAverage(mu=0), [2 / 3, 0, 2 / 3]),
        (
            us.recommend.SmoothedAverage(),
            [(2 + 4 / 3) / (3 + 7 / 3), (4 / 3) / (1 + 7 / 3), (2 + 4 / 3) / (3 + 7 / 3)],
        ),
        (
            us.recommend.SmoothedAverage(1, "rating"),
            [(10 + 24 / 7) / 4, (2 + 24 / 7) / 2, (12 + 24 / 7) / 4],
        ),
        (
            us.recommend.SmoothedAverage(1, "levels"),
            [(3 + 6 / 7) / 4, (6 / 7) / 2, (3 + 6 / 7) / 4],
        ),
        (us.recommend.OptimalPrecision(), [2 / 1, 0 / 3, 2 / 1]),
        (us.recommend.OptimalAntiPrecision(), [-1 / 1, -1 / 3, -1 / 1]),
    ],
    ids=str,
)
def test_by_hand(chosen, expected):
    train = ratings(HAND)
    score = scores(chosen.fit(train), train)
    assert score[0] == pytest.approx(expected)
    assert (score == score[0]).all()


def test_the_oracle_by_hand():
    train, truth = (
        ratings(HAND),
        ratings([(1, 7, 1.0), (2, 7, 5.0), (3, 8, 4.0), (4, 9, 2.0)]),
    )
    restricted = us.recommend.OptimalTrue(truth=truth).fit(train)
    assert scores(restricted, train)[0] == pytest.approx([1 / 2, 1, 0])
    whole = us.recommend.OptimalTrue(truth=truth, restricted=False).fit(train)
    assert scores(whole, train)[0] == pytest.approx([1 / 1, 1 / 3, 0])
    with pytest.raises(us.SettingError, match="truth"):
        us.recommend.OptimalTrue().fit(train)
    with pytest.raises(us.DataError, match="under the ids"):
        us.recommend.OptimalTrue(truth=some_ratings()).fit(train)


def test_items_without_ratings():
    """A count of 0 is a score; an average of nothing is none."""
    train = ratings(HAND).recode(
        us.data.Ids(pl.Series([1, 2, 3, 4])),
        np.arange(4, dtype=np.int32),
        us.data.Ids(pl.Series([6, 7, 8, 9])),
        np.arange(1, 4, dtype=np.int32),
    )
    assert scores(us.recommend.Popularity().fit(train), train)[0, 0] == 0
    assert math.isnan(scores(us.recommend.AverageRating().fit(train), train)[0, 0])
    assert scores(us.recommend.SmoothedAverage().fit(train), train)[0, 0] == pytest.approx(4 / 7)
