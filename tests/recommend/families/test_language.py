"""Language models, the user-item relevance model and hitting times against plain twins."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from unskew import Ratings
from unskew.errors import DataError, SettingError, UnknownName
from unskew.recommend.language import (
    RM1,
    RM2,
    HittingTime,
    LMWSRItemBased,
    LMWSRUserBased,
    UIRItem,
    likely_neighbours,
    profiles,
)
from unskew.recommend.matrices import sparse

ALGORITHMS = [
    RM1(k=5),
    RM2(k=5),
    RM2(k=5, smoothing="dirichlet", parameter=20.0),
    LMWSRUserBased(k=5, mu=50.0),
    LMWSRItemBased(k=5, mu=50.0),
    UIRItem(0.5),
    HittingTime(7),
]
IDS = [f"{one.name}-{n}" for n, one in enumerate(ALGORITHMS)]


def from_dense(dense: np.ndarray, rated: np.ndarray | None = None) -> Ratings:
    """Make ratings of a matrix; users and items without ratings keep their place."""
    rated = dense != 0 if rated is None else rated
    every = np.ones(dense.shape, bool)
    user, item = np.nonzero(every)
    full = Ratings.of(pl.Series(user), pl.Series(item), pl.Series(dense[every].astype(float)))
    return full.take(rated[every])


def random_dense(seed: int, users: int = 12, items: int = 15, share: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 6, (users, items)) * (rng.random((users, items)) < share)
    every = np.arange(max(users, items))
    dense[every % users, every % items] = 3  # nobody and nothing without a rating
    return dense


def scores(algorithm, train: Ratings) -> np.ndarray:
    return algorithm.fit(train).score(np.arange(len(train.users), dtype=np.int32))


def top(similarity: np.ndarray, k: int) -> list:
    """Return each row's k best above 0, without itself, of equals the smaller number."""
    found = []
    for u, row in enumerate(similarity):
        order = [v for v in np.argsort(-row, kind="stable") if v != u and row[v] > 1e-12]
        found.append(sorted(order[:k]))
    return found


def cosine(dense):
    norm = np.sqrt((dense**2).sum(1))
    norm[norm == 0] = 1
    return (dense @ dense.T) / norm / norm[:, None]


def probability(dense, smoothing, parameter):
    """Return p(i|v)."""
    c, length = dense.sum(0) / dense.sum(), dense.sum(1, keepdims=True)
    if smoothing == "jelinek-mercer":
        return (1 - parameter) * dense / length + parameter * c
    if smoothing == "dirichlet":
        return (dense + parameter * c) / (length + parameter)
    return (
        np.maximum(dense - parameter, 0) + np.minimum(dense, parameter).sum(1, keepdims=True) * c
    ) / length


def gain(dense, mu, per_count):
    """Return s(a, b) = Σ_x r_bx log(p_μ(x|a) / p(x|C))."""
    c = dense.sum(0) / dense.sum()
    p = (dense + mu * c) / (dense.sum(1, keepdims=True) + mu)
    s = np.log(p / c) @ dense.T
    return s / dense.sum(1) if per_count else s


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("per_count", [False, True])
@pytest.mark.parametrize("k", [4, 100])
def test_neighbours_are_the_most_likely(seed, per_count, k):
    dense = random_dense(seed)
    dense[3] = dense[7]  # equals
    near = likely_neighbours(profiles(from_dense(dense)), k, 30.0, per_count=per_count)
    exact = np.round(gain(dense, 30.0, per_count), 12)
    for u, expected in enumerate(top(exact, k)):
        span = slice(near.start[u], near.start[u + 1])
        assert sorted(near.column[span]) == expected
        np.testing.assert_allclose(near.value[span], exact[u, near.column[span]])


@pytest.mark.parametrize(
    ("smoothing", "parameter"),
    [
        ("jelinek-mercer", 0.3),
        ("jelinek-mercer", 1.0),
        ("dirichlet", 10.0),
        ("absolute-discounting", 0.1),
        ("absolute-discounting", 2.5),
    ],
)
def test_relevance_models(smoothing, parameter):
    dense = random_dense(1)
    p = probability(dense, smoothing, parameter)
    np.testing.assert_allclose(p.sum(1), 1.0)
    train = from_dense(dense)
    rm1 = scores(RM1(4, smoothing, parameter), train)
    rm2 = scores(RM2(4, smoothing, parameter), train)
    for u, near in enumerate(top(cosine(dense), 4)):
        rated = np.flatnonzero(dense[u])
        likelihood = p[near][:, rated].prod(1) / len(near)
        np.testing.assert_allclose(rm1[u], np.log(likelihood @ p[near]), rtol=1e-9)
        items = dense.shape[1]
        inner = (p[near].T * items / len(near)) @ p[near][:, rated]
        np.testing.assert_allclose(rm2[u], np.log(inner.prod(1) / items), rtol=1e-9)


def test_long_profiles_do_not_vanish():
    """A product over hundreds of items is far below the smallest number."""
    dense = random_dense(2, users=6, items=900, share=0.9)
    train = from_dense(dense)
    p = np.log(probability(dense, "jelinek-mercer", 1e-6))
    settings = (3, "jelinek-mercer", 1e-6)
    for algorithm in (RM1(*settings), RM2(*settings)):
        found = scores(algorithm, train)
        assert np.isfinite(found).all()
        for u, near in enumerate(top(cosine(dense), 3)):
            rated = np.flatnonzero(dense[u])
            if algorithm.name == "rm1":
                terms = p[near] + p[near][:, rated].sum(1)[:, None] - np.log(len(near))
                expected = np.logaddexp.reduce(terms, axis=0)
            else:
                inner = np.exp(p[near]).T @ np.exp(p[near][:, rated]) * 900 / len(near)
                expected = np.log(inner).sum(1) - np.log(900)
            np.testing.assert_allclose(found[u], expected, rtol=1e-9)


@pytest.mark.parametrize("per_count", [False, True])
@pytest.mark.parametrize("k", [3, 100])
def test_weighted_sums_with_language_models(k, per_count):
    dense = random_dense(3)
    train = from_dense(dense)
    by_user = scores(LMWSRUserBased(k, 30.0, per_count), train)
    s = gain(dense, 30.0, per_count)
    for u, near in enumerate(top(s, k)):
        some = dense[near].any(0)
        np.testing.assert_allclose(by_user[u, some], (s[u, near] @ dense[near])[some], rtol=1e-9)
        assert np.isnan(by_user[u, ~some]).all()
    by_item = scores(LMWSRItemBased(k, 30.0, per_count), train)
    s = gain(dense.T, 30.0, per_count)
    for i, near in enumerate(top(s, k)):
        some = dense[:, near].any(1)
        np.testing.assert_allclose(by_item[some, i], (dense[:, near] @ s[i, near])[some], rtol=1e-9)
        assert np.isnan(by_item[~some, i]).all()


@pytest.mark.parametrize("background", [0.2, 0.99, 1.0])
def test_user_item_relevance(background):
    dense = random_dense(4)
    dense[5] = 0
    rated = (dense > 0).astype(float)
    c, both = rated.sum(0), rated.T @ rated
    lift = (both / c) / (c[:, None] / rated.any(1).sum())
    expected = rated @ np.log1p((1 - background) / background * lift) + np.log(c / c.sum())
    expected[5] = np.nan
    np.testing.assert_allclose(scores(UIRItem(background), from_dense(dense)), expected, rtol=1e-9)


@pytest.mark.parametrize("iterations", [1, 2, 3, 4, 15])
def test_hitting_time(iterations):
    dense = random_dense(5).astype(float)
    users, items = dense.shape
    graph = np.block([[np.zeros((users, users)), dense], [dense.T, np.zeros((items, items))]])
    step = graph / graph.sum(1, keepdims=True)
    found = scores(HittingTime(iterations), from_dense(dense))
    for u in range(users):
        h = np.zeros(users + items)
        for _ in range(iterations):
            h = 1 + step @ h
            h[u] = 0
        np.testing.assert_allclose(found[u], -h[users:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=IDS)
def test_own_community_first(algorithm):
    """Two communities rate their own items, and one user holds them together."""
    rng = np.random.default_rng(7)
    dense = np.zeros((41, 40))
    for own in (np.arange(20), np.arange(20, 40)):
        dense[np.ix_(own, own)] = rng.integers(3, 6, (20, 20)) * (rng.random((20, 20)) < 0.6)
    dense[40, [0, 20]] = 1
    found = scores(replace(algorithm, k=12) if hasattr(algorithm, "k") else algorithm,
                   from_dense(dense))  # fmt: skip
    for u in range(40):
        own = np.arange(20) + 20 * (u >= 20)
        new = own[dense[u, own] == 0]
        foreign = np.nan_to_num(np.delete(found[u], own), nan=-np.inf)
        # In RM1 one neighbour decides, who has not rated everything.
        least = found[u, new].max() if algorithm.name == "rm1" else found[u, new].min()
        assert least > foreign.max()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=IDS)
def test_who_and_what_has_no_ratings_has_no_score(algorithm):
    dense = random_dense(8)
    dense[2], dense[:, 4] = 0, 0
    found = scores(algorithm, from_dense(dense))
    assert np.isnan(found[2]).all()
    assert np.isnan(found[:, 4]).all()
    assert np.isfinite(np.delete(found, 2, axis=0)).any()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=IDS)
@pytest.mark.parametrize(
    "dense",
    [
        np.ones((1, 1)),
        np.ones((1, 5)),
        np.ones((5, 1)),
        np.full((4, 6), 3.0),
        (random_dense(9) > 0).astype(float),
    ],
    ids=["one", "one-user", "one-item", "all-equal", "implicit"],
)
def test_small_and_flat_data(algorithm, dense):
    found = scores(algorithm, from_dense(dense))
    assert found.shape == dense.shape
    assert not np.isinf(found).any()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=IDS)
def test_a_rating_of_zero(algorithm):
    """It is no occurrence and no edge, but a rating to a model of logs."""
    dense = random_dense(10)
    rated = dense > 0
    rated[3, :6] = True
    with_zeros, without = from_dense(dense, rated), from_dense(dense)
    found, plain = scores(algorithm, with_zeros), scores(algorithm, without)
    if algorithm.name == "uir":
        assert not np.array_equal(found, plain, equal_nan=True)
    else:
        np.testing.assert_array_equal(found, plain)
    nothing = scores(algorithm, from_dense(np.zeros((3, 4)), np.ones((3, 4), bool)))
    assert np.isnan(nothing).all() == (algorithm.name != "uir")


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=IDS)
def test_same_bits(algorithm, monkeypatch):
    train = from_dense(random_dense(11, users=300, items=260, share=0.1))
    users = np.arange(256, dtype=np.int32)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("unskew.engine.threads.available", lambda threads=threads: threads)
        results.append(algorithm.fit(train).score(users))
    assert results[0].flags.c_contiguous
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    some = np.array([200, 3, 77], np.int32)
    assert algorithm.fit(train).score(some).tobytes() == results[0][some].tobytes()


def test_ratings_below_zero_are_refused():
    dense = random_dense(12)
    dense[0, 0] = -2
    train = from_dense(dense)
    for algorithm in ALGORITHMS:
        if algorithm.name != "uir":
            with pytest.raises(DataError, match=r"row 1 has -2"):
                algorithm.fit(train)


def test_too_large_to_hold(monkeypatch):
    ids = pl.Series(np.arange(20_000))
    with pytest.raises(DataError, match=r"20,000 x 20,000 matrix of items .* 3\.0 GiB"):
        UIRItem().fit(Ratings.of(ids, ids))
    train = from_dense(random_dense(0))
    monkeypatch.setattr(sparse, "LARGEST", 1 << 10)
    for algorithm in (RM2(k=10), LMWSRUserBased(k=10)):
        with pytest.raises(DataError, match=r"10 neighbours .* ask for k of about 7 or less"):
            algorithm.fit(train)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (RM1, {"k": 0}, "k must be a whole number from 1 up"),
        (RM2, {"k": 2.5}, "k must be a whole number"),
        (RM2, {"parameter": 0}, "parameter must be a number from 1e-09 up"),
        (RM2, {"smoothing": "jelinek-mercer", "parameter": 1.5}, "at most 1"),
        (LMWSRUserBased, {"mu": 0.0}, "mu must be a number above 0"),
        (LMWSRItemBased, {"k": -1}, "k must be"),
        (UIRItem, {"background": 0.0}, "background must be a number above 0, at most 1"),
        (UIRItem, {"background": 1.1}, "at most 1"),
        (HittingTime, {"iterations": 0}, "iterations must be a whole number from 1 up"),
    ],
)
def test_settings(kind, settings, message):
    with pytest.raises(SettingError, match=message):
        kind(**settings)


def test_unknown_smoothing():
    with pytest.raises(UnknownName, match="Did you mean 'dirichlet'"):
        RM2(smoothing="dirichelt")
