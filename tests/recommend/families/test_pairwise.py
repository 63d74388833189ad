"""WBPR, GBPR and RankSGD: draws against their chances, steps against plain twins and gradients."""

from collections import OrderedDict

import numpy as np
import pytest

import unskew.engine.threads
from shared.ratings import numbered_ratings, random_cells
from unskew.arrays import frozen
from unskew.errors import DataError, SettingError
from unskew.recommend import pairwise
from unskew.recommend.kernels import pairwise as kernels
from unskew.recommend.pairwise import GBPR, WBPR, RankSGD

SEED = np.uint64(12345)
ALL = [WBPR(3, epochs=2), WBPR(3, epochs=2, drifting=True), GBPR(3, epochs=3), RankSGD(3, epochs=3)]


def some(*size, **sizes):
    return numbered_ratings(random_cells(*size, **sizes, values=(0, 3)))


def everyone(model, train):
    return np.asarray(model.score(np.arange(len(train.users), dtype=np.int32)), np.float64)


def start_of(algorithm, train, seed):
    """Draw what the algorithms start with, in their order."""
    rng = np.random.default_rng(seed)
    P = rng.normal(0, 0.1, (len(train.users), algorithm.factors))
    Q = rng.normal(0, 0.1, (len(train.items), algorithm.factors))
    return P, Q, np.zeros(len(train.items)), np.uint64(rng.integers(1 << 62))


def bits(state, number):
    """Return what kernels draw, as they take it."""
    return np.uint64(kernels.random_bits(state, number))


def unrated(train, weight):
    """Return the chances of each item per user."""
    chance = np.tile(weight.astype(float), (len(train.users), 1))
    chance[train.user, train.item] = 0.0
    return chance / np.maximum(chance.sum(axis=1, keepdims=True), 1)


# Draws


@pytest.mark.parametrize("tries", ["few", "none"])
@pytest.mark.parametrize("by", ["popularity", "alike"])
def test_unrated_items_are_drawn_by_their_weight(by, tries):
    train = some(3)
    if tries == "none":  # a user who rated all but one rare item, so that draws run out
        rows = [(0, i, 1.0) for i in range(8)] + [(1, 8, 1.0), (1, 0, 1.0), (2, 7, 1.0)]
        rows += [(u, i, 1.0) for u in range(3, 403) for i in range(3)]
        train = numbered_ratings(rows)
    weight = pairwise.popularity(train)
    if by == "alike":
        weight = frozen((weight > 0).astype(np.int64))
    pool = train.item if by == "popularity" else frozen(np.flatnonzero(weight).astype(np.int32))
    n = 4000
    for u in range(3):
        found = [
            kernels.draw_unrated(np.uint64(7919 * t + u), pool, weight, train.start, train.item, u)
            for t in range(n)
        ]
        expected = unrated(train, weight)[u]
        count = np.bincount(found, minlength=len(expected))
        z = (count - n * expected) / np.sqrt(np.maximum(n * expected * (1 - expected), 1e-9))
        assert not count[expected == 0].any()
        assert np.abs(z[expected > 0]).max() <= 4.5


def test_who_rated_everything_has_no_unrated_item():
    train = numbered_ratings([(0, i, 1.0) for i in range(4)] + [(1, 2, 1.0)])
    weight = pairwise.popularity(train)
    assert kernels.draw_unrated(SEED, train.item, weight, train.start, train.item, 0) == -1
    for algorithm in ALL:
        assert np.isfinite(everyone(algorithm.fit(train, 1), train)).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_groups_are_drawn_alike(size):
    """Item 0 has raters 0, …, 4: of the others, each belongs to the group as often."""
    there, rater = np.array([0, 5, 7]), np.array([0, 1, 2, 3, 4, 2, 6], np.int32)
    n = 4000
    for u in (0, 2, 4):
        group = np.empty((n, size), np.int32)
        for t in range(n):
            kernels.draw_group(np.uint64(t * 31 + u), u, there, rater, 0, group, t)
        assert (group[:, 0] == u).all()
        assert all(len(set(row)) == size for row in group.tolist())
        count = np.bincount(group[:, 1:].ravel(), minlength=5)
        chance = (size - 1) / 4
        assert count[u] == 0
        spread = np.sqrt(max(n * chance * (1 - chance), 1e-9))
        assert np.abs(np.delete(count, u) - n * chance).max() <= 4.5 * spread


def test_a_group_is_no_larger_than_the_raters():
    there, rater = np.array([0, 2]), np.array([3, 6], np.int32)
    group = np.full((1, 4), 9, np.int32)
    kernels.draw_group(SEED, 6, there, rater, 0, group, 0)
    assert group.tolist() == [[6, 3, -1, -1]]


# Whole fits against plain twins


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_wbpr_as_defined():
    train, algorithm = some(1), WBPR(3, 0.05, 0.1, 0.2, 0.3, epochs=2, draws=20)
    P, Q, c, seed = start_of(algorithm, train, 5)
    active, weight = pairwise.active_users(train), pairwise.popularity(train)
    for draw in range(2 * 20 * active.size):
        state = bits(seed, draw)
        u, row = kernels.draw_rating(state, active, train.start)
        i = train.item[row]
        j = kernels.draw_unrated(state, train.item, weight, train.start, train.item, u)
        assert train.user[row] == u
        e = sigmoid(c[j] - c[i] + P[u] @ (Q[j] - Q[i]))
        p, q, r = P[u].copy(), Q[i].copy(), Q[j].copy()
        P[u] += 0.05 * (e * (q - r) - 0.1 * p)
        Q[i] += 0.05 * (e * p - 0.2 * q)
        Q[j] += 0.05 * (-e * p - 0.2 * r)
        c[i] += 0.05 * (e - 0.3 * c[i])
        c[j] += 0.05 * (-e - 0.3 * c[j])
    c[weight == 0] = np.nan
    model = algorithm.fit(train, np.random.default_rng(5))
    np.testing.assert_allclose(everyone(model, train), P @ Q.T + c, atol=2e-5)


class Cache:
    """Guava's: four segments by hash, each with 50 entries, the least recently used goes first."""

    def __init__(self, load):
        self.load, self.segments, self.loads = load, [OrderedDict() for _ in range(4)], 0

    def get(self, u):
        h = u
        h = h + ((h << 15) ^ 0xFFFFCD7D) & 0xFFFFFFFF
        h ^= h >> 10
        h = h + (h << 3) & 0xFFFFFFFF
        h ^= h >> 6
        h = h + (h << 2) + (h << 14) & 0xFFFFFFFF
        entries = self.segments[(h ^ h >> 16) >> 30]
        if u not in entries:
            entries[u] = self.load(u)
            self.loads += 1
            if len(entries) > 50:
                entries.popitem(last=False)
        entries.move_to_end(u)
        return entries[u]


def drifting_twin(train, draws, seed):
    """Return the triples of LibRec's loop, its cache, and how often the sum fell short."""
    pops = [[i, float(n)] for i, n in enumerate(pairwise.popularity(train).tolist())]
    pops.sort(key=lambda entry: -entry[1])
    rated = [set(train.item[low:high].tolist())
             for low, high in zip(train.start, train.start[1:], strict=False)]  # fmt: skip

    def load(u):
        own = [entry for entry in pops if entry[0] not in rated[u] and entry[1] > 0]
        total = sum(entry[1] for entry in own)
        for entry in own:
            entry[1] /= total
        return own

    cache, triples, short = Cache(load), [], 0
    active = pairwise.active_users(train)
    for draw in range(draws):
        state = bits(seed, draw)
        u, row = kernels.draw_rating(state, active, train.start)
        limit, total, j = (int(bits(state, 1)) >> 11) / 2**53, 0.0, None
        for item, value in cache.get(u):
            total += value
            if total >= limit:
                j = item
                break
        short += j is None
        triples.append((u, int(train.item[row]), j or 0))
    return triples, cache, short


def crowd(seed=0, users=300, items=90):
    """Make more users than a cache holds, items of two blocks, and one who rated everything."""
    rng = np.random.default_rng(seed)
    cells = rng.random((users, items)) < rng.beta(0.5, 3.0, items)
    cells[:, 0], cells[7], cells[8], cells[:, 5] = True, True, False, False
    return numbered_ratings([(u, i, 1.0) for u, i in np.argwhere(cells).tolist()], users, items)


def test_drifting_wbpr_as_in_librec():
    train = crowd()
    algorithm = WBPR(3, 0.05, 0.1, 0.2, 0.3, epochs=1, draws=10, drifting=True)
    rng = np.random.default_rng(5)
    P, Q = rng.normal(0, 0.1, (300, 3)), rng.normal(0, 0.1, (90, 3))
    c = rng.uniform(0, 0.01, 90)
    draws = 10 * pairwise.active_users(train).size
    triples, cache, short = drifting_twin(train, draws, np.uint64(rng.integers(1 << 62)))
    assert 299 < cache.loads < draws  # some users were forgotten, some recalled
    assert short > 0
    assert any(i == j for _, i, j in triples)
    for u, i, j in triples:
        e = sigmoid(c[j] - c[i] + P[u] @ (Q[j] - Q[i]))
        p, q, r, b, d = P[u].copy(), Q[i].copy(), Q[j].copy(), c[i], c[j]
        P[u] += 0.05 * (e * (q - r) - 0.1 * p)
        Q[i] += 0.05 * (e * p - 0.2 * q)
        Q[j] += 0.05 * (-e * p - 0.2 * r)
        c[i] += 0.05 * (e - 0.3 * b)
        c[j] += 0.05 * (-e - 0.3 * d)
    model = algorithm.fit(train, np.random.default_rng(5))
    expected = P @ Q.T + c
    expected[:, pairwise.popularity(train) == 0] = np.nan
    expected[8] = np.nan
    np.testing.assert_allclose(everyone(model, train), expected, atol=2e-5)


def test_the_first_place_that_reaches_a_limit():
    w = np.zeros(2 * kernels.BLOCK)
    w[3:90] = np.random.default_rng(2).random(87)
    sums = np.empty(2)
    total = kernels.block_sums(w, sums)
    assert total == pytest.approx(w.sum(), rel=1e-14)
    assert sums == pytest.approx([w[:64].sum(), w[64:].sum()], rel=1e-14)
    for share in (1e-9, 0.2, 0.7, 0.9, 1 - 1e-12):
        expected = np.searchsorted(np.cumsum(w), share * total)
        assert kernels.first_reaching(w, sums, share * total) == expected
    assert kernels.first_reaching(w, sums, 0.0) == 3
    assert kernels.first_reaching(w, sums, total * (1 + 1e-12)) == -1


def test_when_the_common_scale_is_multiplied_in_does_not_matter(monkeypatch):
    train, single = crowd(), [np.float32(x) for x in (0.05, 0.1, 0.2, 0.3)]
    ranked, place, weight = pairwise.ranked_popularity(train)

    def learn(kernel):
        rng = np.random.default_rng(1)
        found = [rng.normal(0, 0.1, shape).astype(np.float32) for shape in ((300, 8), (90, 8), 90)]
        w = weight.copy()
        kernel(SEED, 2000, train.start, train.item, pairwise.active_users(train), place, ranked,
               pairwise.segments(300), pairwise.SEGMENT, w,
               kernels.Ascent(*found, *single))  # fmt: skip
        return [*found, w / w.sum()]

    first = learn(kernels.drifting_draws)
    drawn = kernels.random_bits
    monkeypatch.setattr(kernels, "random_bits", lambda seed, n: np.uint64(drawn(seed, n)))
    monkeypatch.setattr(kernels, "SMALL", 1.0)  # always, as no number is between 1 and 1
    for one, other in zip(first, learn(kernels.drifting_draws.py_func), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_gbpr_as_defined(size):
    train = some(2)
    algorithm = GBPR(3, 0.02, 0.1, 0.2, 0.3, rho=1.3, group=size, epochs=3, draws=13)
    P, Q, c, seed = start_of(algorithm, train, 5)
    active = pairwise.active_users(train)
    known = frozen(np.unique(train.item))
    weight = frozen((pairwise.popularity(train) > 0).astype(np.int64))
    raters = [train.user[train.item == i] for i in range(9)]
    there = np.concatenate([[0], np.cumsum([r.size for r in raters])])
    group = np.empty((1, size), np.int32)
    number = 0
    for _ in range(3):
        to_p, to_q = np.zeros_like(P), np.zeros_like(Q)
        for each in (10, 3):
            for u in np.repeat(active, each):
                state = bits(seed, number)
                number += 1
                own = train.item[train.start[u] : train.start[u + 1]]
                i = own[(int(bits(state, 0)) >> 32) * own.size >> 32]
                j = kernels.draw_unrated(state, known, weight, train.start, train.item, u)
                kernels.draw_group(state, u, there, np.concatenate(raters), i, group, 0)
                G = group[0][group[0] >= 0]
                mixed = 1.3 * P[G].mean(axis=0) - 0.3 * P[u]
                e = sigmoid(c[j] - c[i] + P[u] @ Q[j] - mixed @ Q[i])
                c[i] += 0.02 * (e - 0.3 * c[i])
                c[j] += 0.02 * (-e - 0.3 * c[j])
                to_p[G] += 1.3 / G.size * e * Q[i] - 0.1 * P[G]
                to_p[u] += e * (-0.3 * Q[i] - Q[j])
                to_q[i] += e * mixed - 0.2 * Q[i]
                to_q[j] += -e * P[u] - 0.2 * Q[j]
        P += 0.02 * to_p
        Q += 0.02 * to_q
    model = algorithm.fit(train, np.random.default_rng(5))
    np.testing.assert_allclose(everyone(model, train), P @ Q.T + c, atol=2e-5)


def test_the_steps_of_gbpr_are_a_gradient():
    """One draw, finite differences of ln σ(x_Gi - x_uj) in every factor."""
    rng = np.random.default_rng(0)
    P, Q = rng.normal(size=(3, 8)), rng.normal(size=(2, 8))
    pair, group = np.array([[0, 1]], np.int32), np.array([[2, 0]], np.int32)
    rho = np.float32(1.5)

    def value(P, Q):
        mixed = 1.5 * (P[2] + P[0]) / 2 - 0.5 * P[2]
        return np.log(sigmoid(mixed @ Q[0] - P[2] @ Q[1]))

    single = [part.astype(np.float32) for part in (P, Q)]
    margin = np.array([kernels.group_margin(pair, group, 0, rho, *single)], np.float32)
    kernels.bias_steps(pair, margin, np.zeros(2, np.float32), np.float32(0.1), np.float32(0))
    for side, part in ((0, P), (1, Q)):
        found, times = np.zeros(part.shape, np.float32), np.zeros(len(part), np.float32)
        step = kernels.item_gradient if side else kernels.user_gradient
        step(pair, group, margin, rho, single[1 - side], found, times)
        for at in np.ndindex(part.shape):
            moved = [P.copy(), Q.copy()]
            moved[side][at] += 1e-6
            up = value(*moved)
            moved[side][at] -= 2e-6
            assert found[at] == pytest.approx((up - value(*moved)) / 2e-6, abs=1e-4)
        assert times.tolist() == ([1, 1] if side else [1, 0, 1])


def test_rank_sgd_as_defined():
    train, algorithm = some(4), RankSGD(3, 0.05, 4)
    P, Q, _, seed = start_of(algorithm, train, 5)
    weight = pairwise.popularity(train)
    for step in range(4 * len(train)):
        row = step % len(train)
        u, i = train.user[row], train.item[row]
        state = bits(seed, step)
        j = kernels.draw_unrated(state, train.item, weight, train.start, train.item, u)
        e = train.value[row] - P[u] @ (Q[i] - Q[j])
        p = P[u].copy()
        P[u] += 0.05 * e * (Q[i] - Q[j])
        Q[i] += 0.05 * e * p
        Q[j] -= 0.05 * e * p
    model = algorithm.fit(train, np.random.default_rng(5))
    np.testing.assert_allclose(everyone(model, train), P @ Q.T, rtol=1e-9)


def test_rank_sgd_learns_differences():
    """Rated items come above unrated ones by their rating, as far as factors can say."""
    rng = np.random.default_rng(1)
    rows = [(u, i, 2.0) for u in range(20) for i in range(20)
            if u % 2 == i % 2 and rng.random() < 0.8]  # fmt: skip
    train = numbered_ratings(rows, 20, 20)
    score = everyone(RankSGD(4, 0.03, 400).fit(train, 1), train)
    own = np.equal.outer(np.arange(20) % 2, np.arange(20) % 2)
    rated = np.zeros((20, 20), bool)
    rated[train.user, train.item] = True
    assert score[rated].mean() - score[~own].mean() == pytest.approx(2.0, abs=0.2)
    assert score[own & ~rated].mean() > score[~own].mean() + 1


@pytest.mark.parametrize("algorithm", ALL, ids=lambda a: a.name)
def test_same_bits_whatever_the_parts(algorithm, monkeypatch):
    train = some(3, users=60, items=20, rows=400)
    first = everyone(algorithm.fit(train, 3), train)
    monkeypatch.setattr(pairwise, "PART", 7)
    monkeypatch.setattr(unskew.engine.threads, "SMALL", 0)
    assert everyone(algorithm.fit(train, 3), train).tobytes() == first.tobytes()
    assert everyone(algorithm.fit(train, 4), train).tobytes() != first.tobytes()


@pytest.mark.parametrize("kind", [WBPR, GBPR, RankSGD])
def test_wild_descents_are_refused(kind):
    train = some()
    more = {"regularisation": 100.0} if kind is not RankSGD else {}
    with pytest.raises(DataError, match="smaller learning_rate"):
        kind(learning_rate=1e6, epochs=30, **more).fit(train)


@pytest.mark.parametrize("kind", [WBPR, GBPR, RankSGD])
def test_settings_are_checked(kind):
    with pytest.raises(SettingError, match="factors"):
        kind(factors=0)
    with pytest.raises(SettingError, match="learning_rate must be a number above 0"):
        kind(learning_rate=0)
    with pytest.raises(SettingError, match="epochs"):
        kind(epochs=0)


def test_settings_of_groups_and_penalties_are_checked():
    for name in ("regularisation", "regularisation_item", "regularisation_bias"):
        for kind in (WBPR, GBPR):
            with pytest.raises(SettingError, match=f"{name} must be a number from 0 up"):
                kind(**{name: -0.1})
    for name in ("group", "draws"):
        with pytest.raises(SettingError, match=name):
            GBPR(**{name: 0})
    with pytest.raises(SettingError, match="rho"):
        GBPR(rho=float("nan"))
