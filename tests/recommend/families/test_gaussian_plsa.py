"""Gaussian pLSA: a plain twin, a likelihood that never falls, its slopes, planted tastes."""

import math
from dataclasses import replace

import numpy as np
import pytest

from shared.algorithms import all_scores
from shared.ratings import matrix_ratings
from unskew import Ratings
from unskew.arrays import frozen
from unskew.errors import SettingError
from unskew.recommend.topics import GaussianPLSA, standardised


def some(seed: int = 1, users: int = 14, items: int = 9) -> tuple[Ratings, np.ndarray, np.ndarray]:
    """Return ratings, their matrix and where they are; user 3 and item 5 are cold."""
    rng = np.random.default_rng(seed)
    seen = rng.random((users, items)) < 0.6
    seen[3], seen[:, 5] = False, False
    R = rng.integers(1, 6, seen.shape).astype(float)
    return matrix_ratings(R, seen), R, seen


class Twin:
    """Expectation maximisation on whole arrays of users, items and topics."""

    def __init__(self, of: GaussianPLSA, train, R, seen, rng):
        self.of, self.seen = of, seen
        self.mean, self.deviation, _ = standardised(train, of.smoothing)
        V = self.V = np.where(seen, (R - self.mean[:, None]) / self.deviation[:, None], 0.0)
        (users, items), K, prior = R.shape, of.topics, of.prior
        theta = rng.uniform(0.5, 1.5, (users, K))
        self.theta = theta / theta.sum(1, keepdims=True)
        n = seen.sum(axis=0) + prior
        centre = V.sum(axis=0) / n
        self.mu = centre[:, None] + rng.normal(0, 0.1, (items, K))
        variance = ((V**2).sum(axis=0) + prior) / n - centre**2
        self.variance = np.repeat(variance[:, None], K, axis=1)

    def joint(self):
        d2 = (self.V[:, :, None] - self.mu) ** 2
        normal = np.exp(-d2 / (2 * self.variance)) / np.sqrt(2 * np.pi * self.variance)
        return self.theta[:, None, :] * normal

    def step(self):
        q = self.joint() ** self.of.tempering
        q *= np.divide(1.0, q.sum(axis=2), np.zeros(self.seen.shape), where=self.seen)[:, :, None]
        total = q.sum(axis=(1, 2))
        self.theta = q.sum(axis=1) / np.where(total > 0, total, 1)[:, None]
        mass, prior = q.sum(axis=0) + self.of.prior, self.of.prior
        self.mu = (q * self.V[:, :, None]).sum(axis=0) / mass
        d2 = (self.V[:, :, None] - self.mu) ** 2
        self.variance = ((q * d2).sum(axis=0) + prior * (1 + self.mu**2)) / mass

    def likelihood(self):
        """Return that of the ratings and of the prior's ratings."""
        own = np.log(self.joint().sum(axis=2)[self.seen]).sum()
        pseudo = np.log(2 * np.pi * self.variance) + (1 + self.mu**2) / self.variance
        return own - 0.5 * self.of.prior * pseudo.sum()

    def scores(self):
        scores = self.mean[:, None] + self.deviation[:, None] * (self.theta @ self.mu.T)
        scores[3], scores[:, 5] = np.nan, np.nan
        return scores


@pytest.mark.parametrize(
    "algorithm",
    [
        GaussianPLSA(1),
        GaussianPLSA(3),
        GaussianPLSA(2, tempering=0.6),
        GaussianPLSA(9, smoothing=0.0, prior=0.2),
    ],
    ids=str,
)
def test_like_a_plain_twin(algorithm):
    train, R, seen = some()
    twin = Twin(algorithm, train, R, seen, np.random.default_rng(3))
    values = []
    for n in range(1, 16):
        twin.step()
        values.append(twin.likelihood())
        if n in (1, 2, 15):
            model = replace(algorithm, iterations=n).fit(train, np.random.default_rng(3))
            np.testing.assert_allclose(all_scores(model, train), twin.scores(), rtol=1e-7)
    if algorithm.tempering == 1.0:
        assert (np.diff(values) >= -1e-9).all()
        assert algorithm.topics == 1 or values[-1] > values[0] + 0.01


def test_where_it_ends_every_slope_is_zero():
    train, R, seen = some()
    twin = Twin(GaussianPLSA(2), train, R, seen, np.random.default_rng(3))
    for _ in range(20_000):
        twin.step()
    for part in (twin.mu, twin.variance):
        for place in np.ndindex(part.shape):
            kept, ends = part[place], []
            for step in (1e-5, -1e-5):
                part[place] = kept + step
                ends.append(twin.likelihood())
            part[place] = kept
            assert abs(ends[0] - ends[1]) / 2e-5 < 1e-3


def test_one_topic_by_hand():
    """Users rate 5 1 and 4 2: standardised 1 -1 and 1 -1; two of them and one of the prior."""
    R = np.array([[5.0, 1.0], [4.0, 2.0]])
    train = matrix_ratings(R, np.ones((2, 2), bool))
    scores = all_scores(GaussianPLSA(1, smoothing=0.0).fit(train), train)
    np.testing.assert_allclose(scores, [[3 + 4 / 3, 3 - 4 / 3], [3 + 2 / 3, 3 - 2 / 3]])


def test_users_are_standardised_by_hand():
    """Mean 3 and variance 2 of all; one user has 5 and 3, the other 1, both smoothed by 2."""
    train = matrix_ratings(np.array([[5.0, 3.0], [1.0, 0.0]]), np.array([[1, 1], [1, 0]], bool))
    mean, deviation, value = standardised(train, 2.0)
    spread = 8 / 3
    assert mean == pytest.approx([(8 + 6) / 4, (1 + 6) / 3])
    squares = [1.5**2 + 0.5**2 + 2 * spread, (4 / 3) ** 2 + 2 * spread]
    assert deviation == pytest.approx([math.sqrt(squares[0] / 4), math.sqrt(squares[1] / 3)])
    assert value == pytest.approx((train.value - mean[train.user]) / deviation[train.user])


def test_a_user_whose_ratings_are_all_equal():
    train = matrix_ratings(np.full((3, 3), 0.1), np.ones((3, 3), bool))
    _, deviation, value = standardised(train, 0.0)
    assert (deviation == 1).all()
    assert np.abs(value).max() < 1e-15
    assert all_scores(GaussianPLSA(2).fit(train), train) == pytest.approx(0.1)


def test_another_scale_of_ratings_gives_the_same_scores_on_it():
    train, _, _ = some()
    other = replace(train, value=frozen(7.0 - 2.0 * train.value))
    up, down = (all_scores(GaussianPLSA(1).fit(one, 1), one) for one in (train, other))
    np.testing.assert_allclose(down, 7.0 - 2.0 * up)
    doubled = replace(train, value=frozen(2.0 * train.value + 3.0))
    many, same = (all_scores(GaussianPLSA(3).fit(one, 1), one) for one in (train, doubled))
    np.testing.assert_allclose(same, 2.0 * many + 3.0, rtol=1e-6)


@pytest.mark.parametrize("tempering", [1.0, 0.8])
def test_planted_tastes_are_predicted(tempering):
    rng = np.random.default_rng(0)
    likes = (np.arange(80) % 2)[:, None] == (np.arange(30) % 2)
    seen = rng.random(likes.shape) < 0.5
    R = np.where(likes, 4.5, 1.5) + rng.normal(0, 0.3, likes.shape)
    train = matrix_ratings(R, seen)
    scores = all_scores(GaussianPLSA(2, tempering=tempering).fit(train), train)
    assert np.abs(scores - np.where(likes, 4.5, 1.5))[~seen].mean() < 0.4
    assert scores[likes & ~seen].min() > scores[~likes & ~seen].max()


def test_same_bits_with_any_number_of_threads(monkeypatch):
    train, _, _ = some(3, 300, 200)
    monkeypatch.setattr("unskew.engine.threads.SMALL", 0)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("unskew.engine.threads.available", lambda threads=threads: threads)
        results.append(all_scores(GaussianPLSA(4, 3).fit(train, 7), train).tobytes())
    assert len(set(results)) == 1
    assert all_scores(GaussianPLSA(4, 3).fit(train, 8), train).tobytes() != results[0]


@pytest.mark.parametrize(
    "wrong",
    [{"topics": 0}, {"iterations": 0}, {"tempering": 0}, {"tempering": 1.1}, {"smoothing": -1},
     {"prior": 0}],
)  # fmt: skip
def test_settings(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        GaussianPLSA(**wrong)
