"""The ladder: rungs and null variances against plain twins, a swap chain and closed forms."""

import numpy as np
import pytest

import unskew as us
from unskew.bias.rasch import Sparse, fit_outside, fit_pairs, interpolation
from unskew.bias.rungs import RUNGS, ladder_part
from unskew.bias.steps import ladder

LIKED = us.Relevance(liked=4)


# A small table, dense: who is in training, rated, liked, and listed


def ratings_of(rated, liked):
    user, item = np.nonzero(rated)
    return us.read_ratings(
        {"user": user, "item": item, "rating": np.where(liked[user, item], 5, 1)}
    )


def run_of(ratings, scores, train, k):
    """Rank all items but those of training."""
    scores = scores.copy()
    scores[train.user, train.item] = -np.inf
    top = np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)
    top[np.isneginf(np.take_along_axis(scores, top.astype(np.int64), axis=1))] = -1
    start = np.arange(len(ratings.users) + 1) * k
    return us.Run(ratings.users, ratings.items, start, top.ravel())


def small_case(seed, users=30, items=25, systems=3, k=4, density=0.25):
    """Return a split and runs of random scores."""
    rng = np.random.default_rng(seed)
    chance = np.outer(rng.pareto(2, users) + 0.3, rng.pareto(1.5, items) + 0.3) * density
    rated = rng.random((users, items)) < np.clip(chance, 0, 0.85)
    liked = rng.random((users, items)) < 0.2 + 0.6 * rng.random(items)
    data = ratings_of(rated, liked)
    split = us.splits.Random(test=0.4).split(data, seed)[0]
    scores = rng.random((systems, len(data.users), len(data.items)))
    runs = {f"s{n}": run_of(data, one, split.train, k) for n, one in enumerate(scores)}
    return split, runs


class Dense:
    """The same as users x items tables, of the users averaged over."""

    def __init__(self, split, runs, users, k):
        shape = len(split.train.users), len(split.train.items)
        train, rated, liked = (np.zeros(shape, bool) for _ in range(3))
        train[split.train.user, split.train.item] = True
        rated[split.test.user, split.test.item] = True
        liked[split.test.user, split.test.item] = split.test.value >= 4
        self.open, self.rated, self.liked = ~train[users], rated[users], liked[users]
        self.listed = []
        for run in runs.values():
            listed = np.zeros(shape, bool)
            for user, items in run.to_polars().group_by("user"):
                top = items.filter(items["rank"] <= k)["item"].to_numpy()
                number = split.train.users.codes([user[0]])[0]
                listed[number, split.train.items.codes(top.tolist())] = True
            self.listed.append((listed & ~train)[users])


def scaled(cells, ones):
    """Fit the Rasch model by alternating scaling, forced cells apart, all dense."""
    forced = ~on_cycle(cells, ones)
    free = cells & ~forced
    rows, columns = (ones & free).sum(1), (ones & free).sum(0)
    x, y = (rows > 0) * 1.0, (columns > 0) * 1.0
    for _ in range(200_000):
        p = free * np.outer(x, y) / (1 + np.outer(x, y))
        x = x * rows / np.maximum(p.sum(1), 1e-300)
        p = free * np.outer(x, y) / (1 + np.outer(x, y))
        y = y * columns / np.maximum(p.sum(0), 1e-300)
        p = free * np.outer(x, y) / (1 + np.outer(x, y))
        if max(np.abs(p.sum(1) - rows).max(), np.abs(p.sum(0) - columns).max()) < 1e-12:
            break
    return np.where(free, p, ones & cells)


def on_cycle(cells, ones):
    """Mark cells on a cycle that alternates between ones and zeros: by Warshall's algorithm."""
    users, items = cells.shape
    reach = np.zeros((users + items, users + items), bool)
    reach[:users, users:] = cells & ones
    reach[users:, :users] = (cells & ~ones).T
    for node in range(users + items):
        reach |= np.outer(reach[:, node], reach[node])
    both = reach & reach.T
    return cells & both[:users, users:]


def residual(weight, listed):
    """Return `listed` less its weighted projection on additive tables: dense least squares."""
    users, items = weight.shape
    user, item = np.nonzero(weight > 0)
    design = np.zeros((user.size, users + items))
    design[np.arange(user.size), user] = 1
    design[np.arange(user.size), users + item] = 1
    root = np.sqrt(weight[user, item])
    target = listed[user, item].astype(float)
    fit = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)[0]
    rest = np.zeros(weight.shape)
    rest[user, item] = target - design @ fit
    return rest


def plain(dense, k):
    """Return rungs x systems x users and covariances of the steps: definitions, dense."""
    users = len(dense.open)
    share = dense.liked.sum() / dense.rated.sum()
    counts = scaled(dense.open, dense.rated) * share
    averages = scaled(dense.open, dense.liked)
    choice = scaled(dense.rated, dense.liked)
    chance = dense.open * (dense.liked.sum(1) / dense.open.sum(1))[:, None]
    tables = [counts, averages, choice, dense.liked]
    rungs = [[(one * listed).sum(1) / k for listed in dense.listed] for one in tables]
    first = [[chance.max(1) for _ in dense.listed]]
    disliked = 1 - dense.liked.sum(0) / np.maximum(dense.rated.sum(0), 1)
    match = averages * (1 - averages)
    weights = [match, match * disliked, choice * (1 - choice)]
    sums = []
    for weight in weights:
        rest = [residual(weight, listed) for listed in dense.listed]
        sums.append([[(weight * a * b).sum() for b in rest] for a in rest])
    match, lost, opinion = np.array(sums)
    covariance = np.array([match, match - lost, opinion]) / (users * k) ** 2
    return np.array(first + rungs), covariance


@pytest.mark.parametrize("seed", range(8))
def test_rungs_and_covariances_are_those_of_the_dense_twin(seed):
    split, runs = small_case(seed)
    part = ladder_part(split.train, split.test, runs, LIKED, 4)
    rungs, covariance = plain(Dense(split, runs, part.users, 4), 4)
    np.testing.assert_allclose(part.rungs, rungs, atol=1e-8)
    np.testing.assert_allclose(part.covariance, covariance, rtol=1e-5, atol=1e-8 * covariance.max())


def test_sums_of_logistic_functions_are_interpolated():
    rng = np.random.default_rng(1)
    user, item = rng.normal(0, 4, 300), rng.normal(-3, 4, 200)
    left, nodes = interpolation(user)
    exact = 1 / (1 + np.exp(-user[:, None] - item))
    at_nodes = 1 / (1 + np.exp(-nodes[:, None] - item))
    np.testing.assert_allclose(left @ at_nodes, exact, atol=1e-12)
    variance = at_nodes * (1 - at_nodes)
    np.testing.assert_allclose(left @ variance, exact * (1 - exact), atol=1e-11)
    assert nodes.size < 200


def sparse_of(table):
    start = np.append(0, np.cumsum(table.sum(1))).astype(np.int64)
    return Sparse(start, np.nonzero(table)[1].astype(np.int32), table.shape[1])


@pytest.mark.parametrize("seed", range(5))
def test_margins_are_reproduced(seed):
    rng = np.random.default_rng(seed)
    open_ = rng.random((80, 50)) < 0.8
    ones = open_ & (rng.random((80, 50)) < np.outer(rng.random(80), rng.random(50)) * 0.9)
    ones[3], ones[:, 4] = open_[3], False  # a full user and an empty item
    everywhere = np.tile(np.arange(50, dtype=np.int32), (80, 1))
    p = fit_outside(sparse_of(~open_), sparse_of(ones)).chances(0, everywhere) * open_
    np.testing.assert_allclose(p.sum(0), ones.sum(0), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(p.sum(1), ones.sum(1), rtol=1e-7, atol=1e-9)
    pairs = sparse_of(open_)
    p = fit_pairs(pairs, ones[open_])
    np.testing.assert_allclose(np.bincount(pairs.item, p), ones.sum(0), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.bincount(pairs.user, p), ones.sum(1), rtol=1e-7, atol=1e-9)


def test_pairs_that_cannot_change_are_exact():
    # Item 0 is liked by all; without it users 0 and 1 like nothing; 2 and 3 can swap 1 and 2.
    rated = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 1, 1]], bool)
    liked = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]], bool)
    p = fit_pairs(sparse_of(rated), liked[rated])
    table = np.zeros(rated.shape)
    table[rated] = p
    # 0's dislike of 1 and the likes of 1 by user 2: one of three users likes item 1, but 0 and 1
    # have no like left to give.
    np.testing.assert_allclose(table, [[1, 0, 0], [1, 0, 0], [1, 0.5, 0.5], [1, 0.5, 0.5]])


def test_a_ladder_by_hand():
    """Two users, two open items each; user 1 likes item 5, user 2 likes item 6."""
    train = {"user": [1, 2], "item": [9, 9]}
    test = {"user": [1, 2], "item": [5, 6]}
    lists = {"right": {1: [5], 2: [6]}, "same": {1: [5], 2: [5]}, "wrong": {1: [6], 2: [5]}}
    result = ladder(us.judge(test, lists, train=train), k=1)
    rungs = result.table().select("system", *RUNGS).rows()
    half = (0.5,) * 3
    assert rungs == [
        ("right", *half, 1.0, 1.0),
        ("same", *half, 0.5, 0.5),
        ("wrong", *half, 0.0, 0.0),
    ]
    # V = 1/4 in all four cells; the residuals of "right" are ±1/2 in each: Σ V w̃² = 1/4.
    part = result.parts[0]
    by_hand = np.array([[1, 0, -1], [0, 0, 0], [-1, 0, 1]]) / 4
    np.testing.assert_allclose(part.events[0], by_hand, atol=1e-12)
    # All that is rated is liked: nothing is left to opinion.
    np.testing.assert_allclose(part.events[1], part.events[0], atol=1e-12)
    np.testing.assert_allclose(part.events[2], 0, atol=1e-12)
    step = result.step("match", "right", "wrong")
    assert (step.value, step.se, step.z) == (1.0, 0.0, None)
    assert step.events == pytest.approx(1.0)
    assert result.step("lead", "right", "same").value == 0.5
    assert result.step("counts", "right").value == 0.0
