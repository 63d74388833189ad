"""PNMF: a plain twin, a divergence that never rises, its slopes, planted blocks."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew import Ratings
from unskew.arrays import frozen
from unskew.errors import SettingError
from unskew.recommend.topics import PNMF


def ratings(seen: np.ndarray) -> Ratings:
    user, item = np.indices(seen.shape).reshape(2, -1)
    value = pl.Series(np.arange(seen.size) % 3, dtype=pl.Float64)
    return Ratings.of(pl.Series(user), pl.Series(item), value).take(seen.ravel())


def some(seed: int, users: int = 12, items: int = 9) -> tuple[Ratings, np.ndarray]:
    """Return ratings of 0, 1 and 2, and where they are; user 3 and item 5 are cold."""
    seen = np.random.default_rng(seed).random((users, items)) < 0.4
    seen[3], seen[:, 5] = False, False
    seen[0, 0] = True
    return ratings(seen), seen.astype(float)


def divergence(X, W):
    predicted = X @ W @ W.T
    return predicted.sum() - np.log(predicted[X > 0]).sum()


def update(X, W, power=0.5):
    P = X @ W
    ratio = np.divide(X, P @ W.T, out=np.zeros_like(X), where=X > 0)
    N = ratio.T @ P + X.T @ (ratio @ W)
    D = X.sum(axis=0)[:, None] * W.sum(axis=0) + P.sum(axis=0)
    return W * (N / D) ** power


def start(rng, X, factors):
    items = X.shape[1]
    return rng.uniform(0.5, 1, (items, factors)) / items * X.any(axis=0)[:, None]


@pytest.mark.parametrize("factors", [1, 2, 8, 11])
def test_like_a_plain_twin(factors):
    train, X = some(3)
    W = start(np.random.default_rng(5), X, factors)
    for _ in range(7):
        W = update(X, W)
    expected = X @ W @ W.T
    expected[3], expected[:, 5] = np.nan, np.nan
    model = PNMF(factors, 7).fit(train, np.random.default_rng(5))
    np.testing.assert_allclose(model.score(np.arange(12, dtype=np.int32)), expected, rtol=1e-9)


@given(seed=st.integers(0, 1000), factors=st.integers(1, 5))
def test_the_divergence_never_rises(seed, factors):
    train, X = some(seed)
    values = [divergence(X, PNMF(factors, n).fit(train, seed).item_factors) for n in range(1, 10)]
    assert (np.diff(values) <= 1e-9 * np.abs(values[0])).all()


def test_without_the_root_it_swings():
    _, X = some(1)
    W = start(np.random.default_rng(1), X, 2)
    values = []
    for _ in range(10):
        values.append(divergence(X, W))
        W = update(X, W, power=1.0)
    assert (np.diff(values) > 1).any()


def test_an_update_follows_the_slope():
    """The slope of the divergence is D - N, and an update multiplies by √(N/D)."""
    train, X = some(6)
    W, after = (PNMF(2, n).fit(train, 4).item_factors for n in (3, 4))
    D = X.sum(axis=0)[:, None] * W.sum(axis=0) + (X @ W).sum(axis=0)
    for place in np.argwhere(W > 0):
        i, k = place
        h, ends = 1e-6 * W[i, k], []
        for step in (h, -h):
            moved = W.copy()
            moved[i, k] += step
            ends.append(divergence(X, moved))
        slope = (ends[0] - ends[1]) / (2 * h)
        N = D[i, k] * (after[i, k] / W[i, k]) ** 2
        assert slope == pytest.approx(D[i, k] - N, abs=1e-5 * D[i, k])


def test_the_first_scale_and_the_ratings_do_not_matter():
    train, X = some(2)
    W = start(np.random.default_rng(5), X, 2)
    np.testing.assert_allclose(update(X, W), update(X, 1000 * W))
    ones = replace(train, value=frozen(np.ones(len(train))))
    users = np.arange(12, dtype=np.int32)
    mine, same = (PNMF(2).fit(one).score(users) for one in (train, ones))
    np.testing.assert_array_equal(mine, same)


def test_planted_blocks_are_found():
    rng = np.random.default_rng(0)
    own = (np.arange(60) % 3)[:, None] == (np.arange(30) % 3)
    seen = own & (rng.random(own.shape) < 0.6)
    scores = PNMF(3, 300).fit(ratings(seen)).score(np.arange(60, dtype=np.int32))
    assert scores[own & ~seen].min() > 10 * scores[~own].max()


@pytest.mark.parametrize("wrong", [{"factors": 0}, {"iterations": 2.5}])
def test_settings(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        PNMF(**wrong)
