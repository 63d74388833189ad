"""SLIM and EASE against plain numpy twins, on planted structure and at the edges."""

import numpy as np
import pytest

from shared.algorithms import all_scores
from shared.ratings import matrix_ratings, random_matrix
from unskew import Ratings
from unskew.errors import DataError, SettingError
from unskew.recommend.linear import EASE, SLIM
from unskew.recommend.matrices import sparse
from unskew.recommend.matrices.sparse import rated_users, times, user_rows

BOTH = (SLIM(l1=0.5, l2=2.0), EASE(l2=200.0))


def communities() -> tuple[Ratings, np.ndarray, np.ndarray]:
    """Two groups of users who rate only their group's items, some of them."""
    rng = np.random.default_rng(5)
    own = (np.arange(40) % 2)[:, None] == (np.arange(24) % 2)
    mask = own & (rng.random(own.shape) < 0.6)
    return matrix_ratings(np.full(own.shape, 4), mask), own, mask


def slim_twin(R: np.ndarray, l1: float, l2: float) -> np.ndarray:
    G, W = R.T @ R, np.zeros((R.shape[1], R.shape[1]))
    before = W + 1
    while np.abs(W - before).max() > 1e-10:
        before = W.copy()
        for j in range(len(G)):  # row j of W: coordinate j of every column's problem
            pull = G[j] - G[j] @ W + G[j, j] * W[j] - l1
            W[j] = np.maximum(0, pull) / (G[j, j] + l2)
            W[j, j] = 0
    return W


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("values", ["rating", "one"])
def test_slim_equals_its_plain_twin(seed, values):
    train, R = random_matrix(seed)
    if values == "one":
        R = (R > 0).astype(float)
    W = slim_twin(R, 0.5, 2.0)
    expected = np.where((R > 0).astype(float) @ (W > 0) > 0, R @ W, np.nan)
    model = SLIM(l1=0.5, l2=2.0, values=values, tolerance=1e-12).fit(train)
    np.testing.assert_allclose(all_scores(model, train), expected, rtol=0, atol=1e-4)
    assert np.count_nonzero(W) == model.second.value.size


def test_slim_stops_within_its_tolerance():
    """With more items than a working set takes at once."""
    train, R = random_matrix(9, users=60, items=150)
    G, norm, l1, l2 = R.T @ R, (R**2).sum(axis=0), 0.1, 5.0

    def weights(tolerance):
        model = SLIM(l1=l1, l2=l2, tolerance=tolerance).fit(train)
        W = np.zeros(G.shape)
        W[model.second.row, model.second.column] = model.second.value
        return W

    def objective(W):
        fit = 0.5 * norm - (W * G).sum(axis=0) + 0.5 * (W * (G @ W)).sum(axis=0)
        return fit + l2 / 2 * (W**2).sum(axis=0) + l1 * W.sum(axis=0)

    best = weights(1e-12)
    slope = G - G @ best - l2 * best - l1  # the conditions of an optimum under w >= 0, w_ii = 0
    np.fill_diagonal(slope, 0)
    assert np.abs(slope[best > 0]).max() < 1e-4
    assert slope.max() < 1e-4
    assert np.all(best >= 0)
    assert np.all(np.diag(best) == 0)
    for tolerance in (1e-1, 1e-3, 1e-6):
        assert np.all(objective(weights(tolerance)) - objective(best) <= tolerance * 0.5 * norm)


@pytest.mark.parametrize("values", ["rating", "one"])
@pytest.mark.parametrize(("l2", "error"), [(1e-3, 1e-9), (3.0, 1e-5), (500.0, 1e-6)])
def test_ease_equals_its_plain_twin(values, l2, error):
    """In double precision where the penalty is small, in single precision where it is not."""
    train, R = random_matrix(1)
    X = R.astype(float) if values == "rating" else (R > 0).astype(float)
    P = np.linalg.inv(X.T @ X + l2 * np.eye(X.shape[1]))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0)
    expected = X @ B
    expected[3], expected[:, 5] = np.nan, np.nan
    model = EASE(l2=l2, values=values).fit(train)
    np.testing.assert_allclose(all_scores(model, train), expected, rtol=0, atol=error)
    assert model.weights.dtype == (np.float64 if error == 1e-9 else np.float32)


@pytest.mark.parametrize("algorithm", BOTH)
def test_own_community_comes_first(algorithm):
    train, own, mask = communities()
    scores = np.nan_to_num(all_scores(algorithm.fit(train), train), nan=-np.inf)
    for u in range(len(own)):
        assert scores[u, own[u] & ~mask[u]].min() > max(scores[u, ~own[u]].max(), -1e-9)


@pytest.mark.parametrize("algorithm", BOTH)
def test_same_bits_with_any_number_of_threads_and_any_tile(algorithm, monkeypatch):
    train, _ = random_matrix(2, users=150, items=300)
    several = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("unskew.engine.threads.available", lambda threads=threads: threads)
        model = algorithm.fit(train)
        several.append(all_scores(model, train))
    assert len({scores.tobytes() for scores in several}) == 1
    alone = np.concatenate([model.score(np.array([u], np.int32)) for u in range(150)])
    assert alone.tobytes() == several[0].tobytes()


@pytest.mark.parametrize("algorithm", BOTH)
def test_edges(algorithm):
    one = matrix_ratings(np.array([[3]]), np.array([[True]]))
    assert all_scores(algorithm.fit(one), one).shape == (1, 1)
    one_user = matrix_ratings(np.array([[3, 1, 2]]), np.array([[True, True, False]]))
    scores = all_scores(algorithm.fit(one_user), one_user)
    assert np.isnan(scores[0, 2])
    assert not np.isnan(scores[0, 0])
    zero = matrix_ratings(np.zeros((4, 3)), np.ones((4, 3), bool))
    assert not np.nan_to_num(all_scores(algorithm.fit(zero), zero)).any()
    negative = matrix_ratings(np.array([[-1, 2], [1, -2]]), np.ones((2, 2), bool))
    assert all_scores(algorithm.fit(negative), negative).shape == (2, 2)
    assert algorithm.fit(one_user).score(np.empty(0, np.int32)).shape == (0, 3)


def test_slim_tells_no_weight_from_a_score_of_zero():
    """Item 2 is rated alone: nothing predicts it. A rating of 0 reaches an item with score 0."""
    mask = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]], bool)
    train = matrix_ratings(np.array([[5, 4, 0], [4, 5, 0], [0, 0, 3], [0, 0, 0]]), mask)
    scores = all_scores(SLIM(l1=0.1, l2=1.0).fit(train), train)
    assert np.isnan(scores[:, 2]).all()
    assert np.isnan(scores[2]).all()
    assert scores[3, 1] == 0.0
    assert np.isnan(scores[3, 0])


@pytest.mark.parametrize("algorithm", BOTH)
def test_too_many_items_are_refused_before_any_work(algorithm, monkeypatch):
    monkeypatch.setattr(sparse, "LARGEST", 8 * 10**2)
    train, _ = random_matrix(0)
    with pytest.raises(DataError, match=r"20 x 20 matrix of items .* can have 10 items"):
        algorithm.fit(train)


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        (SLIM, {"l1": -1.0}),
        (SLIM, {"l2": 0.0}),
        (SLIM, {"values": "ratings"}),
        (SLIM, {"tolerance": 0.0}),
        (EASE, {"l2": 0.0}),
        (EASE, {"l2": float("nan")}),
        (EASE, {"values": "binary"}),
    ],
)
def test_settings_that_are_not_allowed(algorithm, settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        algorithm(**settings)


@pytest.mark.parametrize("step", [1, 7, 64, 200])
def test_inverse_in_blocks(step):
    rng = np.random.default_rng(step)
    X = rng.standard_normal((300, 150))
    A = X.T @ X + np.eye(150)
    inverse = sparse.inverse(A.copy(), step)
    np.testing.assert_allclose(inverse, np.linalg.inv(A), rtol=0, atol=1e-12)
    assert np.array_equal(inverse, inverse.T)


def test_sparse_matrix():
    train, R = random_matrix(4)
    S = user_rows(train)
    dense = np.random.default_rng(0).standard_normal((20, 6))
    np.testing.assert_allclose(times(S, dense), R @ dense, atol=1e-12)
    np.testing.assert_allclose(times(S.transposed(), R @ dense), R.T @ (R @ dense), atol=1e-9)
    assert np.array_equal(sparse.item_gram(S, "test"), R.T @ R)
    assert not rated_users(train)[3]
