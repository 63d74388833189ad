"""pLSA and LDA: whole fits against plain twins, bounds that never fall."""

import math

import numpy as np
import polars as pl
import pytest

import unskew.engine.threads
from shared.ratings import numbered_ratings, random_cells
from unskew import Ratings
from unskew.errors import DataError, SettingError
from unskew.recommend.topics import LDA, PLSA

QUICK = [PLSA(3, 4), LDA(3, iterations=4)]


def some(*size, **sizes):
    return numbered_ratings(random_cells(*size, **sizes))


def dense(train):
    R = np.zeros((len(train.users), len(train.items)))
    R[train.user, train.item] = train.value
    return R


def everyone(model, train):
    return model.score(np.arange(len(train.users), dtype=np.int32))


def digamma(x):
    """Differentiate lnΓ; good to 1e-9."""
    h = 1e-3 * x
    f = [math.lgamma(x + k * h) for k in (-3, -2, -1, 1, 2, 3)]
    return np.dot(f, [-1, 9, -45, 45, -9, 1]) / (60 * h)


psi = np.vectorize(digamma)
lgamma = np.vectorize(math.lgamma)


def expected_counts(R, theta, phi):
    """Return the counts by user and topic, and by item and topic."""
    ratio = np.divide(R, theta @ phi.T, out=np.zeros_like(R), where=R > 0)
    return theta * (ratio @ phi), phi * (ratio.T @ theta)


@pytest.mark.parametrize("topics", [1, 3, 8, 11])
def test_plsa_like_a_plain_twin(topics):
    train = some()
    R = dense(train)
    rng = np.random.default_rng(5)
    theta = rng.uniform(0.5, 1.5, (len(train.users), topics))
    phi = rng.uniform(0.5, 1.5, (len(train.items), topics))
    theta, phi = theta / theta.sum(1, keepdims=True), phi / phi.sum(0)
    for _ in range(6):
        theta, phi = expected_counts(R, theta, phi)
        theta, phi = theta / theta.sum(1, keepdims=True), phi / phi.sum(0)
    model = PLSA(topics, 6).fit(train, np.random.default_rng(5))
    np.testing.assert_allclose(everyone(model, train), theta @ phi.T, rtol=1e-10)
    np.testing.assert_allclose(everyone(model, train).sum(1), 1.0)


def test_plsa_likelihood_never_falls():
    train = some(rows=40)
    R = dense(train)
    values = []
    for iterations in range(1, 40):
        p = everyone(PLSA(4, iterations).fit(train, 3), train)
        values.append((R[R > 0] * np.log(p[R > 0])).sum())
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > values[0] + 1


def test_plsa_stops_when_the_likelihood_hardly_grows():
    train = some()
    long, short = (everyone(PLSA(3, 500, t).fit(train), train) for t in (0.0, 1e-3))
    few = [everyone(PLSA(3, n).fit(train), train) for n in range(1, 60)]
    assert any(np.array_equal(short, one) for one in few)
    assert not np.array_equal(short, long)


@pytest.mark.parametrize("topics", [1, 3, 9])
def test_lda_like_a_plain_twin(topics):
    train = some()
    R = dense(train)
    rng = np.random.default_rng(5)
    gamma = rng.gamma(100, 0.01, (len(train.users), topics))
    lamda = rng.gamma(100, 0.01, (len(train.items), topics))
    bounds = []
    for _ in range(8):
        theta = np.exp(psi(gamma) - psi(gamma.sum(1, keepdims=True)))
        phi = np.exp(psi(lamda) - psi(lamda.sum(0)))
        gamma, lamda = (
            a + b for a, b in zip(expected_counts(R, theta, phi), (0.7, 0.2), strict=True)
        )
        bounds.append(bound(R, gamma, lamda, 0.7, 0.2))
    assert (np.diff(bounds) >= -1e-7).all()
    model = LDA(topics, 0.7, 0.2, 8).fit(train, np.random.default_rng(5))
    p = gamma / gamma.sum(1, keepdims=True) @ (lamda / lamda.sum(0)).T
    np.testing.assert_allclose(everyone(model, train), p, rtol=1e-8)


def bound(R, gamma, lamda, alpha, beta):
    """Return the evidence lower bound with the best shares of the ratings."""
    log_theta = psi(gamma) - psi(gamma.sum(1, keepdims=True))
    log_phi = psi(lamda) - psi(lamda.sum(0))
    chance = np.exp(log_theta) @ np.exp(log_phi).T
    value = (R * np.log(chance)).sum()
    for a, log, prior, axis in ((gamma, log_theta, alpha, 1), (lamda, log_phi, beta, 0)):
        value += ((prior - a) * log + lgamma(a)).sum() - lgamma(a.sum(axis)).sum()
    return value


def test_digamma():
    from unskew.recommend.kernels.topics import digamma as ours

    euler = 0.5772156649015329
    assert ours(1.0) == pytest.approx(-euler, rel=1e-13)
    assert ours(0.5) == pytest.approx(-euler - 2 * math.log(2), rel=1e-13)
    assert ours(20.0) == pytest.approx(sum(1 / k for k in range(1, 20)) - euler, rel=1e-13)
    assert ours(1e-3) == pytest.approx(-1000.5755719318103, rel=1e-13)


@pytest.mark.parametrize("algorithm", [PLSA(2), LDA(2, iterations=100)])
def test_communities_find_their_items(algorithm):
    rng = np.random.default_rng(0)
    half = np.arange(40) % 2
    rated = (half[:, None] == half) & (rng.random((40, 40)) < 0.5)
    rows = [(u, i, rng.integers(1, 6)) for u, i in np.argwhere(rated).tolist()]
    train = numbered_ratings(rows, 40, 40)
    scores = everyone(algorithm.fit(train), train)
    for u in range(40):
        own = scores[u, (half == half[u]) & ~rated[u]]
        assert own.min() > scores[u, half != half[u]].max()


@pytest.mark.parametrize("algorithm", QUICK)
def test_who_and_what_cannot_be_scored(algorithm):
    train = numbered_ratings([(0, 0, 3), (0, 2, 0), (2, 0, 5)], users=4, items=5)
    scores = everyone(algorithm.fit(train), train)
    known = np.zeros((4, 5), bool)
    known[np.ix_([0, 2], [0, 2])] = True
    np.testing.assert_array_equal(np.isnan(scores), ~known)


@pytest.mark.parametrize("algorithm", QUICK)
@pytest.mark.parametrize("rows", [[(0, 0, 1)], [(0, i, 3) for i in range(4)],
                                  [(u, 0, 3) for u in range(4)]])  # fmt: skip
def test_very_small_data(algorithm, rows):
    train = numbered_ratings(rows)
    np.testing.assert_allclose(everyone(algorithm.fit(train), train).sum(axis=1), 1.0)


def test_users_whose_ratings_are_all_zero():
    train = numbered_ratings([(0, 0, 0), (0, 1, 0), (1, 0, 2)])
    scores = everyone(PLSA(2).fit(train), train)
    assert np.isnan(scores[0]).all()
    np.testing.assert_allclose(scores[1], [1.0, 0.0])
    assert np.isfinite(everyone(LDA(2).fit(train), train)).all()


def test_ids_without_ratings_change_nothing():
    rows = [(0, 0, 3), (0, 1, 1), (1, 1, 5)]
    for algorithm in (PLSA(1, 5), LDA(1, iterations=5)):
        few, many = numbered_ratings(rows), numbered_ratings(rows, 3, 6)
        np.testing.assert_allclose(everyone(algorithm.fit(few), few),
                                   everyone(algorithm.fit(many), many)[:2, :2])  # fmt: skip


@pytest.mark.parametrize("algorithm", [PLSA(300, 20), LDA(300, 1e-4, 1e-4, 20)])
def test_many_topics_stay_finite(algorithm):
    train = some()
    assert np.isfinite(everyone(algorithm.fit(train), train)).all()


@pytest.mark.parametrize("algorithm", [PLSA(11, 4), LDA(11, iterations=4)])
def test_same_bits_and_nothing_changed(algorithm, monkeypatch):
    train = some(users=400, items=300, rows=3000)
    before = train.fingerprint
    monkeypatch.setattr(unskew.engine.threads, "SMALL", 0)
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(unskew.engine.threads, "available", lambda threads=threads: threads)
        results.append(everyone(algorithm.fit(train, 7), train))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    assert train.fingerprint == before
    assert not np.array_equal(results[0], everyone(algorithm.fit(train, 8), train))


def test_implicit_ratings():
    train = Ratings.of(pl.Series([0, 0, 1]), pl.Series([0, 1, 1]))
    for algorithm in QUICK:
        np.testing.assert_allclose(everyone(algorithm.fit(train), train).sum(axis=1), 1.0)


@pytest.mark.parametrize("algorithm", QUICK)
def test_negative_ratings_are_refused(algorithm):
    with pytest.raises(DataError, match="1 are, the first -1 in row 2"):
        algorithm.fit(numbered_ratings([(0, 0, 1), (0, 1, -1)]))


@pytest.mark.parametrize(("kind", "wrong"), [
    (PLSA, {"topics": 0}), (PLSA, {"iterations": 1.5}), (PLSA, {"tolerance": -1}),
    (LDA, {"topics": None}), (LDA, {"alpha": 0}), (LDA, {"beta": math.inf}),
    (LDA, {"iterations": 0}),
])  # fmt: skip
def test_settings(kind, wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        kind(**wrong)
