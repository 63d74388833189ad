"""LibRec's neighbourhoods and its SLIM: against plain twins and the definition of a minimum."""

import numpy as np
import pytest

from shared.ratings import numbered_ratings
from unskew.errors import DataError, SettingError
from unskew.recommend.matrices import sparse
from unskew_studies.librec import LibRecItemKNN, LibRecSLIM, LibRecUserKNN


def some(seed, users=40, items=25, share=0.4, top=3):
    """Ratings 0, …, top - 1, zeros being ratings too."""
    rng = np.random.default_rng(seed)
    cells = np.argwhere(rng.random((users, items)) < share * rng.random(items) + 0.1)
    return numbered_ratings([(u, i, rng.integers(0, top)) for u, i in cells.tolist()], users, items)


def dense(train):
    values = np.full((len(train.users), len(train.items)), np.nan)
    values[train.user, train.item] = train.value
    return values


def everyone(model, train):
    return model.score(np.arange(len(train.users), dtype=np.int32))


def similarity(x, y, shrink):
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[both], y[both]
    if not x @ y > 0:
        return 0.0
    return x @ y / np.sqrt((x @ x) * (y @ y)) * len(x) / (len(x) + shrink)


def all_similarities(R, shrink):
    S = np.array([[similarity(x, y, shrink) for y in R] for x in R])
    np.fill_diagonal(S, 0.0)
    return S


def largest(values, k):
    kept = sorted((v for v in values if v > 0), reverse=True)[:k]
    return sum(kept) if kept else np.nan


@pytest.mark.parametrize("k", [1, 3, 8, 100])
@pytest.mark.parametrize("shrink", [0.0, 10.0])
def test_user_neighbours_as_defined(k, shrink):
    train = some(k)
    R = dense(train)
    S = all_similarities(R, shrink)
    expected = [[largest(S[u, ~np.isnan(R[:, i])], k) for i in range(25)] for u in range(40)]
    found = everyone(LibRecUserKNN(k, shrink).fit(train), train)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 3, 8, 100])
@pytest.mark.parametrize("shrink", [0.0, 10.0])
def test_item_neighbours_as_defined(k, shrink):
    train = some(k, items=150 if k == 8 else 25)  # more than one word of bits
    R = dense(train)
    S = all_similarities(R.T, shrink)
    expected = [[largest(s[~np.isnan(R[u])], k) for s in S] for u in range(40)]
    found = everyone(LibRecItemKNN(k, shrink).fit(train), train)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_ratings_do_not_weigh_votes_by_hand():
    """u0 shares two items with u1 and one with u2; both rated item 3, u2 with 0."""
    train = numbered_ratings(
        [(0, 0, 1), (0, 1, 2), (1, 0, 2), (1, 1, 2), (1, 3, 1), (2, 1, 1), (2, 3, 0)]
    )
    near = 6 / np.sqrt(5 * 8) * 2 / 12, 1 * 1 / 11
    assert everyone(LibRecUserKNN().fit(train), train)[0, 3] == pytest.approx(sum(near))
    assert everyone(LibRecUserKNN(k=1).fit(train), train)[0, 3] == pytest.approx(max(near))


def test_a_user_block_or_all_at_once():
    train = some(5, users=300)
    for algorithm in (LibRecUserKNN(5), LibRecItemKNN(5), LibRecSLIM(5, 0.1, 0.5)):
        model = algorithm.fit(train)
        whole = everyone(model, train)
        for some_users in ([7], [299, 3, 3], range(100, 251)):
            part = model.score(np.array(some_users, dtype=np.int32))
            assert part.tobytes() == whole[list(some_users)].tobytes()


# SLIM


def weights(train, algorithm):
    """Return W: a user who rated nothing but j with 1 would score row j."""
    model = algorithm.fit(train)
    W = np.zeros((len(train.items),) * 2)
    W[model.weights.row, model.weights.column] = model.weights.value
    return W


@pytest.mark.parametrize("seed", range(4))
def test_slim_is_the_minimum(seed):
    train = some(seed, top=4)
    k, l1, l2 = 6, 0.05, 0.3
    R = np.nan_to_num(dense(train))
    W = weights(train, LibRecSLIM(k, l1, l2))
    count = np.bincount(train.item, minlength=25)
    S = all_similarities(dense(train).T, 10.0)
    assert (W < 0).any()
    for i in range(25):
        near = np.argsort(-S[i], kind="stable")[:k]
        near = near[S[i, near] > 0]
        outside = np.setdiff1d(np.arange(25), near)
        assert not W[outside, i].any()
        pull = R.T @ (R[:, i] - R @ W[:, i])
        for j in near:
            if W[j, i]:
                slope = pull[j] - count[j] * (l2 * W[j, i] + l1 * np.sign(W[j, i]))
                assert slope == pytest.approx(0, abs=1e-6)
            else:
                assert abs(pull[j]) <= count[j] * l1 + 1e-6


def test_slim_as_librec_sweeps():
    """LibRec's own updates, from a random start, end where we do."""
    train = some(9, top=3)
    R = np.nan_to_num(dense(train))
    rated = ~np.isnan(dense(train))
    W = weights(train, LibRecSLIM(24, 0.05, 0.2))
    rng = np.random.default_rng(0)
    for i in range(25):
        near = np.flatnonzero(all_similarities(dense(train).T, 10.0)[i] > 0)
        w = np.zeros(25)
        w[near] = rng.random(near.size)
        for _ in range(400):
            for j in near:
                raters = rated[:, j]
                error = R[raters, i] - (R[raters] @ w - R[raters, j] * w[j])
                gradient = np.mean(R[raters, j] * error)
                square = np.mean(R[raters, j] ** 2)
                soft = np.sign(gradient) * max(abs(gradient) - 0.05, 0)
                w[j] = soft / (0.2 + square)
        np.testing.assert_allclose(W[:, i], w, atol=1e-7)
        if i == 5:
            break


def test_slim_scores_every_pair_as_librec_does():
    """R_u W, where a sum without any weight is 0: a user ranks all items that have ratings."""
    train = some(3, users=30, items=40, share=0.1)
    algorithm = LibRecSLIM(5, 0.05, 0.3)
    W = weights(train, algorithm)
    expected = np.nan_to_num(dense(train)) @ W
    assert (expected == 0).mean() > 0.2
    expected[:, np.isnan(dense(train)).all(axis=0)] = np.nan
    np.testing.assert_allclose(everyone(algorithm.fit(train), train), expected, rtol=1e-12)


def test_slim_does_not_score_who_or_what_has_no_ratings():
    train = numbered_ratings([(u, i, 1 + u % 2) for u in range(4) for i in range(3)], 6, 5)
    score = everyone(LibRecSLIM(2, 0.1, 0.3).fit(train), train)
    assert np.isnan(score[4:]).all()
    assert np.isnan(score[:, 3:]).all()
    assert np.isfinite(score[:4, :3]).all()


def test_a_large_penalty_leaves_zeros():
    train = some(1)
    assert (everyone(LibRecSLIM(l1=100.0).fit(train), train) == 0).all()


# Errors


def test_too_many_items_are_refused(monkeypatch):
    monkeypatch.setattr(sparse, "LARGEST", 25 * 25 * 8 - 1)
    train = some(1)
    with pytest.raises(DataError, match="librec-item-knn: its 25 x 25 similarities"):
        LibRecItemKNN().fit(train)
    with pytest.raises(DataError, match="librec-slim: its 25 x 25 matrix"):
        LibRecSLIM().fit(train)


@pytest.mark.parametrize("kind", [LibRecUserKNN, LibRecItemKNN, LibRecSLIM])
def test_settings_are_checked(kind):
    with pytest.raises(SettingError, match="k must be"):
        kind(k=0)
    with pytest.raises(SettingError, match="shrink must be a number from 0 up"):
        kind(shrink=-1)


def test_slim_needs_a_squared_penalty():
    with pytest.raises(SettingError, match="l2 must be a number above 0"):
        LibRecSLIM(l2=0)
