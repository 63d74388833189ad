"""SVD, BiasedMF and BPRMF: steps against gradients, whole fits against plain twins."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import unskew.engine.threads
from shared.ratings import numbered_ratings, random_cells
from unskew import Ratings
from unskew.arrays import frozen
from unskew.errors import DataError, SettingError
from unskew.recommend import pairwise
from unskew.recommend.pairwise import BPRMF, rated_marks
from unskew.recommend.sgd import SVD, BiasedMF

ALL = [SVD, BiasedMF, BPRMF]
QUICK = [
    SVD(3, epochs=3),
    SVD(3, epochs=3, bias=True),
    BiasedMF(3, epochs=3),
    BPRMF(3, epochs=3),
    BPRMF(3, epochs=3, draw="users"),
]


def some(*size, **sizes):
    return numbered_ratings(random_cells(*size, **sizes))


def communities(seed=0, size=20, chance=0.5):
    """Two halves of users who each rate items of their own half only, all with 4 or 5."""
    rng = np.random.default_rng(seed)
    half = np.arange(2 * size) % 2
    rated = (half[:, None] == half) & (rng.random((2 * size, 2 * size)) < chance)
    rows = [(u, i, rng.integers(4, 6)) for u, i in np.argwhere(rated).tolist()]
    return numbered_ratings(rows, 2 * size, 2 * size), half, rated


def everyone(model, train):
    return np.asarray(model.score(np.arange(len(train.users), dtype=np.int32)), dtype=np.float64)


def start_of(algorithm, train, seed):
    """Draw what the algorithms start with, in their order."""
    rng = np.random.default_rng(seed)
    users, items, k = len(train.users), len(train.items), algorithm.factors
    if isinstance(algorithm, SVD):
        P, Q = rng.uniform(-0.01, 0.01, (users, k)), rng.uniform(-0.01, 0.01, (items, k))
        if algorithm.bias:
            return rng, 0.0, P, Q, rng.uniform(-0.01, 0.01, users), rng.uniform(-0.01, 0.01, items)
        return rng, 0.0, P, Q, np.zeros(users), np.zeros(items)
    P, Q = rng.normal(0, 0.1, (users, k)), rng.normal(0, 0.1, (items, k))
    mean = train.value.mean() if isinstance(algorithm, BiasedMF) else 0.0
    return rng, mean, P, Q, np.zeros(users), np.zeros(items)


@pytest.mark.parametrize("algorithm", [SVD(5, 0.1, 0.3, 1), SVD(5, 0.1, 0.3, 1, True),
                                       BiasedMF(5, 0.1, 0.3, 1)])  # fmt: skip
def test_one_rating_is_one_step_against_the_gradient(algorithm):
    train = numbered_ratings([(0, 0, 4)])
    _, mean, P, Q, b, c = start_of(algorithm, train, 3)
    mean = mean and 4.0
    biased = not isinstance(algorithm, SVD) or algorithm.bias

    def loss(x):
        p, q, b, c = x[:5], x[5:10], x[10] * biased, x[11] * biased
        error = 4.0 - mean - b - c - p @ q
        return 0.5 * (error**2 + 0.3 * (x[:10] @ x[:10] + b * b + c * c))

    x = np.concatenate([P[0], Q[0], b, c])
    h = 1e-6
    gradient = [(loss(x + h * e) - loss(x - h * e)) / (2 * h) for e in np.eye(12)]
    model = algorithm.fit(train, np.random.default_rng(3))
    after = np.concatenate([model.user_factors[0], model.item_factors[0],
                            model.user_offset - mean, model.item_offset])  # fmt: skip
    np.testing.assert_allclose((x - after) / 0.1, gradient, atol=1e-8)


@pytest.mark.parametrize("algorithm", [SVD(5, 0.05, 0.1, 4), SVD(9, 0.05, 0.1, 4, True),
                                       BiasedMF(8, 0.05, 0.1, 4)])  # fmt: skip
def test_ratings_like_a_plain_twin(algorithm):
    train = some()
    rng, mean, P, Q, b, c = start_of(algorithm, train, 1)
    biased = not isinstance(algorithm, SVD) or algorithm.bias
    for _ in range(4):
        for row in rng.permutation(len(train)):
            u, i = train.user[row], train.item[row]
            e = train.value[row] - mean - b[u] - c[i] - P[u] @ Q[i]
            P[u], Q[i] = (
                P[u] + 0.05 * (e * Q[i] - 0.1 * P[u]),
                Q[i] + 0.05 * (e * P[u] - 0.1 * Q[i]),
            )
            b[u] += biased * 0.05 * (e - 0.1 * b[u])
            c[i] += biased * 0.05 * (e - 0.1 * c[i])
    model = algorithm.fit(train, np.random.default_rng(1))
    np.testing.assert_allclose(
        everyone(model, train), P @ Q.T + (mean + b)[:, None] + c, rtol=0, atol=1e-10
    )


def splitmix(seed, counter):
    z = (seed + counter * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@pytest.mark.parametrize(("bias", "draw"), [(True, "triples"), (False, "users")])
def test_triples_like_a_plain_twin(bias, draw):
    train = some()
    algorithm = BPRMF(9, 0.1, 0.01, 0.02, 0.03, 5, bias, draw)
    rng, _, P, Q, _, c = start_of(algorithm, train, 2)
    seed = int(rng.integers(1 << 62))
    rated = set(zip(train.user.tolist(), train.item.tolist(), strict=True))
    known = sorted(set(train.item.tolist()))
    steps = 0
    for at in range(5 * len(train)):
        bits, more = splitmix(seed, 2 * at), splitmix(seed, 2 * at + 1)
        row, j = (bits >> 32) * len(train) >> 32, known[(bits % 2**32) * len(known) >> 32]
        if draw == "users":
            u = (bits >> 32) * len(train.users) >> 32
            mine = np.flatnonzero(train.user == u)
            row = mine[(more >> 32) * mine.size >> 32]
        u, i = int(train.user[row]), int(train.item[row])
        if (u, j) in rated:
            continue
        steps += 1
        e = 1 / (1 + np.exp(c[i] - c[j] + P[u] @ (Q[i] - Q[j])))
        p, q, r = P[u].copy(), Q[i].copy(), Q[j].copy()
        P[u] += 0.1 * (e * (q - r) - 0.01 * p)
        Q[i] += 0.1 * (e * p - 0.02 * q)
        Q[j] += 0.1 * (-e * p - 0.03 * r)
        c[i] += bias * 0.1 * (e - 0.02 * c[i])
        c[j] += bias * 0.1 * (-e - 0.03 * c[j])
    assert 0 < steps < 5 * len(train)
    scores = everyone(algorithm.fit(train, np.random.default_rng(2)), train)
    np.testing.assert_allclose(scores, P @ Q.T + c, rtol=0, atol=1e-5)  # single precision


def test_a_triple_is_one_step_against_the_gradient():
    from unskew.recommend.kernels.sgd import pairwise_draws

    # Only (0, 0, 1) is a triple; draws are made until it was hit.
    train = numbered_ratings([(0, 0, 1), (1, 0, 1), (1, 1, 1)])
    rng = np.random.default_rng(0)
    P, Q = rng.normal(size=(2, 8)).astype(np.float32), rng.normal(size=(2, 8)).astype(np.float32)
    c = rng.normal(size=2).astype(np.float32)
    x = np.concatenate([P[0], Q[0], Q[1], c]).astype(np.float64)
    weight = np.repeat([0.1, 0.2, 0.3, 0.2, 0.3], [8, 8, 8, 1, 1])

    def loss(x):
        margin = x[24] - x[25] + x[:8] @ (x[8:16] - x[16:24])
        return np.log1p(np.exp(-margin)) + 0.5 * (weight * x) @ x

    h = 1e-6
    gradient = np.array([(loss(x + h * e) - loss(x - h * e)) / (2 * h) for e in np.eye(26)])
    both = frozen(np.array([0, 1], np.int32))
    f, marks = np.float32, rated_marks(train)
    for draw in range(1000):
        given = np.uint64(9), draw, draw + 1, False, train.start, train.user, train.item, marks
        pairwise_draws(*given, both, both, P, Q, c, True, f(0.125), f(0.1), f(0.2), f(0.3))
        after = np.concatenate([P[0], Q[0], Q[1], c])
        if (after != x).any():
            break
    np.testing.assert_allclose((x - after) / 0.125, gradient, atol=1e-5)


def test_the_same_bits_with_and_without_marks_of_what_is_rated(monkeypatch):
    train, _, rated = communities()
    marks = np.unpackbits(rated_marks(train), axis=1, bitorder="little")
    np.testing.assert_array_equal(marks[:, : rated.shape[1]], rated)
    with_marks = BPRMF(5, epochs=3).fit(train)
    monkeypatch.setattr(pairwise, "MOST_MARKS", 0)
    assert rated_marks(train).size == 0
    without = BPRMF(5, epochs=3).fit(train)
    np.testing.assert_array_equal(everyone(with_marks, train), everyone(without, train))


def test_communities_find_their_items():
    train, half, rated = communities()
    scores = everyone(BPRMF(2, 0.1, 0.05, 0.05, 0.05, 60, draw="triples").fit(train), train)
    for u in range(half.size):
        own = scores[u, (half == half[u]) & ~rated[u]]
        assert own.min() > scores[u, half != half[u]].max()


@pytest.mark.parametrize("algorithm", [SVD(8, epochs=300), BiasedMF(8, epochs=300)])
def test_communities_like_their_items(algorithm):
    # Everyone rated half of everything: own items 5, others 1.
    rng = np.random.default_rng(0)
    half = np.arange(30) % 2
    rated = rng.random((30, 30)) < 0.5
    rows = [(u, i, 5 if half[u] == half[i] else 1) for u, i in np.argwhere(rated).tolist()]
    train = numbered_ratings(rows, 30, 30)
    scores = everyone(algorithm.fit(train), train)
    for u in range(30):
        own = scores[u, (half == half[u]) & ~rated[u]]
        assert own.min() > scores[u, (half != half[u]) & ~rated[u]].max()


@pytest.mark.parametrize("algorithm", QUICK)
def test_who_and_what_cannot_be_scored(algorithm):
    train = numbered_ratings([(0, 0, 3), (0, 2, 0), (2, 0, 5)], users=4, items=5)
    scores = everyone(algorithm.fit(train), train)
    known = np.zeros((len(train.users), len(train.items)), bool)
    known[np.ix_([0, 2], [0, 2])] = True
    np.testing.assert_array_equal(np.isnan(scores), ~known)


@pytest.mark.parametrize("algorithm", QUICK)
@pytest.mark.parametrize("rows", [[(0, 0, 1)], [(0, 0, 0)], [(0, i, 3) for i in range(4)],
                                  [(u, 0, 3) for u in range(4)]])  # fmt: skip
def test_very_small_data(algorithm, rows):
    train = numbered_ratings(rows)
    scores = everyone(algorithm.fit(train), train)
    users, items, _ = zip(*rows, strict=True)
    assert np.isfinite(scores[np.ix_(users, items)]).all()


@pytest.mark.parametrize("algorithm", QUICK)
def test_same_bits_and_nothing_changed(algorithm, monkeypatch):
    train = some(users=40, items=30, rows=600)
    before = train.fingerprint
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
        assert np.isfinite(everyone(algorithm.fit(train), train)).all()


def test_a_wild_descent_is_refused():
    with pytest.raises(DataError, match="learning_rate"):
        SVD(learning_rate=50.0).fit(some())


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("wrong", [{"factors": 0}, {"factors": 2.0}, {"learning_rate": 0},
                                   {"learning_rate": float("nan")}, {"regularisation": -1},
                                   {"epochs": 0}, {"epochs": True}])  # fmt: skip
def test_settings(kind, wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        kind(**wrong)


@pytest.mark.parametrize("wrong", [{"bias": 1}, {"draw": "user"}, {"regularisation_liked": -1},
                                   {"regularisation_other": None}])  # fmt: skip
def test_settings_of_pairs(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        BPRMF(**wrong)


def test_import_needs_no_compiler():
    code = (
        "import sys, unskew.recommend.pairwise, unskew.recommend.topics; "
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
