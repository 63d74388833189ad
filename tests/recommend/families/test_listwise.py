"""ListRankMF and SVD++: losses, gradients, plain twins."""

from dataclasses import replace

import numpy as np
import pytest

import unskew.engine.threads
from shared.ratings import numbered_ratings, random_cells
from unskew.arrays import frozen
from unskew.errors import DataError, SettingError
from unskew.recommend import listwise
from unskew.recommend.kernels import sgd as kernels
from unskew.recommend.listwise import ListRankMF, RatedLists
from unskew.recommend.sgd import SVDpp


def some(seed=0, users=7, items=9, rows=30):
    cells = random_cells(seed, users, items, rows, values=(0, 3))
    return numbered_ratings(cells, users, items + 1)  # nobody rated the last item


def everyone(model, train):
    return np.asarray(model.score(np.arange(len(train.users), dtype=np.int32)), np.float64)


# ListRankMF


def plain_loss(train, P, Q, penalty, divisor=None):
    total = 0.5 * penalty * ((P**2).sum() + (Q**2).sum())
    for u in np.unique(train.user):
        mine = train.user == u
        t = np.exp(train.value[mine] / (divisor or train.value.max()))
        s = np.exp(1 / (1 + np.exp(-Q[train.item[mine]] @ P[u])))
        total -= (t / t.sum()) @ np.log(s / s.sum())
    return total


@pytest.mark.parametrize("divisor", [None, 3.0])
def test_loss_and_gradient_of_lists(divisor):
    train, rng = some(1), np.random.default_rng(2)
    P, Q = rng.normal(size=(7, 8)), rng.normal(size=(10, 8))
    lists = RatedLists.of(train, 0.3, divisor)
    loss, squashed = lists.loss(P, Q)
    assert loss == pytest.approx(plain_loss(train, P, Q, 0.3, divisor), rel=1e-12)
    for part, gradient in zip((P, Q), lists.gradient(P, Q, squashed), strict=True):
        for at in np.ndindex(part.shape):
            kept = part[at]
            part[at] = kept + 1e-6
            up = plain_loss(train, P, Q, 0.3, divisor)
            part[at] = kept - 1e-6
            down = plain_loss(train, P, Q, 0.3, divisor)
            part[at] = kept
            assert gradient[at] == pytest.approx((up - down) / 2e-6, abs=1e-7)


def test_lists_as_defined_and_the_loss_never_rises():
    train, penalty = some(2), 0.06
    rng = np.random.default_rng(5)
    P, Q = rng.uniform(0, 1, (7, 8)), rng.uniform(0, 1, (10, 8))
    lists, step, last = RatedLists.of(train, penalty), 1.0, np.inf
    for epochs in range(1, 9):
        to_p, to_q = lists.gradient(P, Q, lists.loss(P, Q)[1])
        before = plain_loss(train, P, Q, penalty)
        assert before <= last
        last = before
        step *= 2
        while plain_loss(train, P - step * to_p, Q - step * to_q, penalty) > before:
            step /= 2
        P, Q = P - step * to_p, Q - step * to_q
        model = ListRankMF(8, epochs=epochs).fit(train, np.random.default_rng(5))
        expected = P @ Q.T
        expected[:, 9] = np.nan
        np.testing.assert_allclose(everyone(model, train), expected, rtol=1e-8)


def test_lists_find_what_is_rated_high():
    rng = np.random.default_rng(3)
    rows = [(u, i, 2.0 * (u % 2 == i % 2)) for u in range(30) for i in range(20)
            if rng.random() < 0.6]  # fmt: skip
    train = numbered_ratings(rows, 30, 20)
    model = ListRankMF(regularisation=0.001, epochs=200).fit(train, 1)
    score = everyone(model, train)
    own = np.equal.outer(np.arange(30) % 2, np.arange(20) % 2)
    rated = np.zeros(own.shape, bool)
    rated[train.user, train.item] = True
    wins = [score[u, i] > score[u, j] for u in range(30) for i in range(20) for j in range(20)
            if own[u, i] and not own[u, j] and not rated[u, i] and not rated[u, j]]  # fmt: skip
    assert np.mean(wins) > 0.95


def test_ratings_and_divisor_on_another_scale_give_the_same_lists():
    """Only r / d counts; without a divisor d is the largest rating."""
    train = some(4)
    assert train.value.max() == 2.0
    tripled = replace(train, value=frozen(3 * train.value))
    first = everyone(ListRankMF(divisor=2.0).fit(train, 1), train)
    assert np.array_equal(everyone(ListRankMF().fit(train, 1), train), first, equal_nan=True)
    np.testing.assert_allclose(everyone(ListRankMF(divisor=6.0).fit(tripled, 1), train), first)
    other = everyone(ListRankMF(divisor=3.0).fit(train, 1), train)
    assert not np.allclose(other, first, equal_nan=True)


def test_a_flat_loss_ends():
    """One rating per user: nothing to learn, and no step that would never be short enough."""
    train = numbered_ratings([(u, 0, 1.0) for u in range(5)])
    score = everyone(ListRankMF(regularisation=0.0, epochs=100).fit(train, 1), train)
    assert np.isfinite(score).all()


@pytest.mark.parametrize("values", [(0.0, 0.0), (-2.0, -1.0)])
def test_ratings_may_have_no_positive_maximum(values):
    train = numbered_ratings([(u, i, values[i]) for u in range(5) for i in range(2)])
    assert np.isfinite(everyone(ListRankMF().fit(train, 1), train)).all()


# SVD++


def test_svdpp_as_defined():
    """Every y moves at every rating, the slow way."""
    train, rng = some(3), np.random.default_rng(5)
    P, Q, Y = (rng.normal(0, 0.1, (n, 3)) for n in (7, 10, 10))
    b, c = rng.normal(0, 0.1, 7), rng.normal(0, 0.1, 10)
    mean, rate = train.value.mean(), 0.05
    for _ in range(4):
        for u, i, r in zip(train.user, train.item, train.value, strict=True):
            own = train.item[train.start[u] : train.start[u + 1]]
            z = Y[own].sum(axis=0) / np.sqrt(own.size)
            e = r - (mean + b[u] + c[i] + Q[i] @ (P[u] + z))
            p, q = P[u].copy(), Q[i].copy()
            b[u] += rate * (e - 0.2 * b[u])
            c[i] += rate * (e - 0.2 * c[i])
            P[u] += rate * (e * q - 0.1 * p)
            Q[i] += rate * (e * (p + z) - 0.1 * q)
            Y[own] += rate * (e * q / np.sqrt(own.size) - 0.3 * Y[own])
    users = P + [Y[train.item[train.user == u]].sum(axis=0) / np.sqrt(max((train.user == u).sum(),
                 1)) for u in range(7)]  # fmt: skip
    expected = mean + b[:, None] + c + users @ Q.T
    expected[:, 9] = np.nan
    model = SVDpp(3, rate, 0.1, 4, 0.2, 0.3).fit(train, np.random.default_rng(5))
    np.testing.assert_allclose(everyone(model, train), expected, rtol=1e-9)


def test_one_rating_is_one_step_against_the_gradient():
    rng = np.random.default_rng(1)
    parts = [rng.normal(size=(1, 8)) for _ in range(3)] + [rng.normal(size=1) for _ in range(2)]

    def loss(P, Q, Y, b, c):
        e = 4.0 - (1.0 + b[0] + c[0] + Q[0] @ (P[0] + Y[0]))
        return 0.5 * (e * e + 0.2 * (b @ b + c @ c) + 0.1 * ((P**2).sum() + (Q**2).sum())
                      + 0.3 * (Y**2).sum())  # fmt: skip

    moved = [part.copy() for part in parts]
    one = frozen(np.zeros(1, np.int32))
    kernels.implicit_epoch(frozen(np.array([0, 1])), one, frozen(np.array([4.0])), 1.0, *moved,
                           1e-3, 0.1, 0.2, 0.3)  # fmt: skip
    for n, part in enumerate(parts):
        for at in np.ndindex(part.shape):
            trial = [other.copy() for other in parts]
            trial[n][at] += 1e-6
            up = loss(*trial)
            trial[n][at] -= 2e-6
            slope = (up - loss(*trial)) / 2e-6
            assert (part[at] - moved[n][at]) / 1e-3 == pytest.approx(slope, abs=1e-5)


def test_svdpp_fits_planted_ratings():
    rng = np.random.default_rng(2)
    truth = 3 + rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    seen = rng.random(truth.shape) < 0.6
    train = numbered_ratings([(u, i, truth[u, i]) for u, i in np.argwhere(seen).tolist()], 60, 40)
    found = everyone(SVDpp(4, 0.01, 0.02, 300).fit(train, 1), train)
    left = np.sqrt(np.mean((found - truth)[~seen] ** 2))
    assert left < 0.3 * truth.std()


# Both


@pytest.mark.parametrize("algorithm", [ListRankMF(epochs=5), SVDpp(3, epochs=3)])
def test_same_bits_whatever_the_blocks(algorithm, monkeypatch):
    train = some(3, users=60, items=20, rows=400)
    first = everyone(algorithm.fit(train, 3), train)
    monkeypatch.setattr(listwise, "BLOCK", 7)
    monkeypatch.setattr(unskew.engine.threads, "SMALL", 0)
    assert everyone(algorithm.fit(train, 3), train).tobytes() == first.tobytes()
    assert everyone(algorithm.fit(train, 4), train).tobytes() != first.tobytes()


def test_wild_descents_are_refused():
    with pytest.raises(DataError, match="smaller learning_rate"):
        SVDpp(learning_rate=1e6).fit(some())


def test_settings_are_checked():
    for kind in (ListRankMF, SVDpp):
        with pytest.raises(SettingError, match="factors"):
            kind(factors=0)
        with pytest.raises(SettingError, match="learning_rate must be a number above 0"):
            kind(learning_rate=0)
    for name in ("regularisation_bias", "regularisation_implicit"):
        with pytest.raises(SettingError, match=name):
            SVDpp(**{name: -1})
    with pytest.raises(SettingError, match="start must be a number above 0"):
        ListRankMF(start=0)
    with pytest.raises(SettingError, match="divisor must be a number above 0"):
        ListRankMF(divisor=0)
