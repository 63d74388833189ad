"""PureSVD and WRMF against plain numpy twins, on planted structure and at the edges."""

from functools import partial

import numpy as np
import polars as pl
import pytest

from shared.algorithms import all_scores, check_same_bits
from shared.ratings import matrix_ratings, random_matrix
from unskew import Ratings
from unskew.errors import DataError, SettingError
from unskew.recommend import factors
from unskew.recommend.factors import WRMF, PureSVD, right_singular_vectors
from unskew.recommend.matrices.sparse import user_rows

ALL = (PureSVD(2), WRMF(2, regularisation=1.0), WRMF(2, regularisation=1.0, solver="cg"))


def cold(expected: np.ndarray) -> np.ndarray:
    expected[3], expected[:, 5] = np.nan, np.nan
    return expected


@pytest.mark.parametrize(("users", "items", "k"), [(30, 20, 5), (25, 60, 7), (90, 300, 10)])
def test_puresvd_equals_its_plain_twin(users, items, k):
    train, R = random_matrix(users, users, items)
    Q = np.linalg.svd(R)[2][:k].T
    model = PureSVD(k).fit(train)
    np.testing.assert_allclose(all_scores(model, train), cold(R @ Q @ Q.T), rtol=0, atol=1e-8)


def test_puresvd_with_more_factors_than_rank_gives_the_ratings_back():
    train, R = random_matrix(2)
    model = PureSVD(100).fit(train)
    assert model.item_factors.shape == (20, 19)
    np.testing.assert_allclose(all_scores(model, train), cold(R.astype(float)), atol=1e-9)


@pytest.mark.parametrize("longest", [1, 1 << 26])
def test_singular_vectors_with_and_without_restarts(longest, monkeypatch):
    monkeypatch.setattr(factors, "MOST_BASIS", longest)
    train, R = random_matrix(6, 150, 200)
    sigma, Q = right_singular_vectors(user_rows(train), 6, np.random.default_rng(0))
    _, expected, V = np.linalg.svd(R)
    np.testing.assert_allclose(sigma, expected[:6], rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(Q * V[:6].T, axis=0)), 1.0, rtol=1e-9)
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-12)
    assert np.all(Q[np.abs(Q).argmax(axis=0), np.arange(6)] > 0)


def test_equal_singular_values_are_all_found():
    """Each user rates an own item: fifty times the same singular value, then ten smaller ones."""
    train = matrix_ratings(np.diag([2] * 50 + [1] * 10), np.eye(60, dtype=bool))
    sigma, _ = right_singular_vectors(user_rows(train), 55, np.random.default_rng(0))
    np.testing.assert_allclose(sigma, [2] * 50 + [1] * 5, rtol=1e-12)


def wrmf_twin(R, seen, extra, p, Y, regularisation, iterations):
    solve, cells = np.linalg.solve, partial(zip, strict=True)
    C = np.where(seen, 1.0 + extra, 1.0)
    ridge = regularisation * np.eye(Y.shape[1])
    for _ in range(iterations):
        X = np.array([solve(Y.T * c @ Y + ridge, Y.T @ (c * t)) for c, t in cells(C, p)])
        Y = np.array([solve(X.T * c @ X + ridge, X.T @ (c * t)) for c, t in cells(C.T, p.T)])
    return X @ Y.T


@pytest.mark.parametrize("solver", ["exact", "cg"])
@pytest.mark.parametrize("k", [1, 3, 8, 13])
@pytest.mark.parametrize(("target", "confidence"), [("one", "linear"), ("rating", "log")])
def test_wrmf_equals_its_plain_twin(k, target, confidence, solver, monkeypatch):
    monkeypatch.setattr(factors, "STEPS", 60)  # then conjugate gradients are exact too
    train, R = random_matrix(4)
    algorithm = WRMF(
        k, 0.3, 4, alpha=2.0, target=target, confidence=confidence, epsilon=0.5, solver=solver
    )
    model = algorithm.fit(train, np.random.default_rng(1))
    Y = np.random.default_rng(1).standard_normal((20, k)) / (10 * np.sqrt(k))
    extra = 2.0 * (R if confidence == "linear" else np.log(1 + R / 0.5))
    p = (R > 0).astype(float) if target == "one" else R
    expected = cold(wrmf_twin(R, R > 0, extra, p, Y, 0.3, 4))
    error = 1e-9 if solver == "exact" else 1e-5  # its products have single precision
    np.testing.assert_allclose(all_scores(model, train), expected, rtol=0, atol=error)


def test_wrmf_counts_a_rating_of_zero_as_seen():
    R = np.array([[0.0, 3, 1], [2, 0, 0], [1, 1, 5], [0, 4, 0]])
    seen = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1], [0, 1, 1]], bool)
    train = matrix_ratings(R, seen)
    Y = np.random.default_rng(1).standard_normal((3, 2)) / (10 * np.sqrt(2))
    expected = wrmf_twin(R, seen, R, seen.astype(float), Y, 0.1, 3)
    model = WRMF(2, 0.1, 3, solver="exact").fit(train, np.random.default_rng(1))
    np.testing.assert_allclose(all_scores(model, train), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("algorithm", ALL)
def test_own_community_comes_first(algorithm):
    rng = np.random.default_rng(5)
    own = (np.arange(40) % 2)[:, None] == (np.arange(24) % 2)
    mask = own & (rng.random(own.shape) < 0.6)
    train = matrix_ratings(np.full(own.shape, 4), mask)
    scores = all_scores(algorithm.fit(train), train)
    for u in range(len(own)):
        assert scores[u, own[u] & ~mask[u]].min() > scores[u, ~own[u]].max() + 0.1


@pytest.mark.parametrize("algorithm", ALL)
def test_edges(algorithm):
    one = matrix_ratings(np.array([[3]]), np.array([[True]]))
    assert all_scores(algorithm.fit(one), one)[0, 0] > 0
    one_user = matrix_ratings(np.array([[3, 1, 2]]), np.array([[True, True, False]]))
    scores = all_scores(algorithm.fit(one_user), one_user)
    assert np.isnan(scores[0, 2])
    assert not np.isnan(scores[0, :2]).any()
    zero = matrix_ratings(np.zeros((4, 3)), np.ones((4, 3), bool))
    assert np.isfinite(all_scores(algorithm.fit(zero), zero)).all()
    implicit = Ratings.of(pl.Series([1, 1, 2, 2]), pl.Series([1, 2, 2, 3]))
    assert np.isfinite(all_scores(algorithm.fit(implicit), implicit)).all()
    assert algorithm.fit(one_user).score(np.empty(0, np.int32)).shape == (0, 3)


def test_wrmf_refuses_what_it_cannot_solve():
    negative = matrix_ratings(np.array([[-1, 2]]), np.ones((1, 2), bool))
    with pytest.raises(DataError, match="ratings from 0 up, but -1"):
        WRMF().fit(negative)
    huge = matrix_ratings(np.full((2, 2), 1e9), np.ones((2, 2), bool))
    with pytest.raises(DataError, match="raise it, or lower alpha"):
        WRMF(3, regularisation=1e-300, target="rating", solver="exact").fit(huge)


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        (PureSVD, {"factors": 0}),
        (PureSVD, {"factors": 2.5}),
        (WRMF, {"factors": 0}),
        (WRMF, {"regularisation": 0.0}),
        (WRMF, {"iterations": 0}),
        (WRMF, {"alpha": -1.0}),
        (WRMF, {"target": "ratings"}),
        (WRMF, {"confidence": "exp"}),
        (WRMF, {"epsilon": 0.0}),
        (WRMF, {"solver": "lu"}),
    ],
)
def test_settings_that_are_not_allowed(algorithm, settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        algorithm(**settings)


@pytest.mark.parametrize(
    "algorithm", [PureSVD(6), WRMF(9, iterations=3), WRMF(9, iterations=3, solver="cg")]
)
def test_same_bits_with_any_number_of_threads_and_any_tile(algorithm, monkeypatch):
    check_same_bits(algorithm, random_matrix(2, users=300, items=200)[0], monkeypatch)
