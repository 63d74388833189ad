"""The ladder: rungs and null variances against plain twins, a swap chain and closed forms."""

import math
import time

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.real_data import real_data
from unskew.bias.decomposition.ladder import LEAST, ladder
from unskew.bias.decomposition.ladder_part import RUNGS, ladder_part
from unskew.bias.decomposition.rasch import Sparse, fit_outside, fit_pairs, interpolation
from unskew.errors import DataError, SettingError

LIKED = us.Relevance(liked=4)


def part_of(judged, k):
    """Return the ladder of one split with the arrays behind it."""
    runs = {name: us.read_run(run) for name, run in judged.systems.items()}
    train = judged.numbering.train
    return ladder_part(train, judged.judgments, runs, judged.relevance, k)


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


def few_pairs(cells, ones):
    """Return pairs / (pairs - parameters) of the connected part that each free cell is in."""
    free = on_cycle(cells, ones)
    factor = np.zeros(cells.shape)
    waiting = free.copy()
    while waiting.any():
        part = np.zeros(cells.shape, bool)
        part[np.unravel_index(np.argmax(waiting), cells.shape)] = True
        size = 0
        while part.sum() > size:
            size = part.sum()
            part = free & (part.any(1)[:, None] | part.any(0))
        factor[part] = size / (size - part.any(1).sum() - part.any(0).sum() + 1)
        waiting &= ~part
    return factor


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
    spread = choice * (1 - choice) * few_pairs(dense.rated, dense.liked)
    chance = dense.open * (dense.liked.sum(1) / dense.open.sum(1))[:, None]
    tables = [counts, averages, choice, dense.liked]
    rungs = [[(one * listed).sum(1) / k for listed in dense.listed] for one in tables]
    first = [[chance.max(1) for _ in dense.listed]]
    disliked = 1 - dense.liked.sum(0) / np.maximum(dense.rated.sum(0), 1)
    match = averages * (1 - averages)
    weights = [match, match * disliked, spread]
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
    p = fit_pairs(pairs, ones[open_])[0]
    np.testing.assert_allclose(np.bincount(pairs.item, p), ones.sum(0), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.bincount(pairs.user, p), ones.sum(1), rtol=1e-7, atol=1e-9)


def test_pairs_that_cannot_change_are_exact():
    # Item 0 is liked by all; without it users 0 and 1 like nothing; 2 and 3 can swap 1 and 2.
    rated = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 1, 1]], bool)
    liked = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]], bool)
    p, variance = fit_pairs(sparse_of(rated), liked[rated])
    table = np.zeros(rated.shape)
    table[rated] = p
    np.testing.assert_allclose(table, [[1, 0, 0], [1, 0, 0], [1, 0.5, 0.5], [1, 0.5, 0.5]])
    # Two tables are possible, so that each of the four cells is a fair coin, seen four times.
    assert variance.sum() == pytest.approx(4.0)
    assert np.count_nonzero(variance) == 4


def rungs_of(result):
    """Return a row per system: its rungs."""
    return result.parts["rungs"].rows.pivot("rung", index="system", values="value")


def test_a_ladder_by_hand():
    """Two users, two open items each; user 1 likes item 5, user 2 likes item 6."""
    train = {"user": [1, 2], "item": [9, 9]}
    test = {"user": [1, 2], "item": [5, 6]}
    lists = {"right": {1: [5], 2: [6]}, "same": {1: [5], 2: [5]}, "wrong": {1: [6], 2: [5]}}
    judged = us.judge(test, lists, train=train)
    result = ladder(judged, k=1)
    rungs = rungs_of(result).rows()
    half = (0.5,) * 3
    assert rungs == [
        ("right", *half, 1.0, 1.0),
        ("same", *half, 0.5, 0.5),
        ("wrong", *half, 0.0, 0.0),
    ]
    # V = 1/4 in all four cells; the residuals of "right" are ±1/2 in each: Σ V w̃² = 1/4.
    part = part_of(judged, 1)
    by_hand = np.array([[1, 0, -1], [0, 0, 0], [-1, 0, 1]]) / 4
    np.testing.assert_allclose(part.events[0], by_hand, atol=1e-12)
    # All that is rated is liked: nothing is left to opinion.
    np.testing.assert_allclose(part.events[1], part.events[0], atol=1e-12)
    np.testing.assert_allclose(part.events[2], 0, atol=1e-12)
    step = result.pair("right", "wrong", step="match")
    assert (step.value, step.se, step.facts["z"]) == (1.0, 0.0, None)
    assert step.facts["events"] == pytest.approx(1.0)
    assert result.pair("right", "same", step="lead").value == 0.5
    assert result.row(step="counts", system="right").value == 0.0


def test_the_variance_of_two_users_and_two_items_is_exact():
    # Both like one of two items: two tables, so that the listed likes are 0 or 2, or always 1.
    train = {"user": [1, 2], "item": [9, 9]}
    test = {"user": [1, 1, 2, 2], "item": [5, 6, 5, 6], "rating": [5, 1, 1, 5]}
    lists = {"right": {1: [5], 2: [6]}, "same": {1: [5], 2: [5]}}
    part = part_of(us.judge(test, lists, train=train, liked=4), 1)
    np.testing.assert_allclose(np.diag(part.events[2]), [1.0, 0.0], atol=1e-12)


# A swap chain


def redrawn(rng, liked, disliked, forbidden, draws):
    """Yield tables of likes with the same margins: swaps of edges of one colour, anywhere open."""
    tables = [liked.copy(), disliked.copy()]
    edges = [np.argwhere(table) for table in tables]
    for _ in range(draws):
        for table, ends, other in zip(tables, edges, tables[::-1], strict=True):
            picks = rng.integers(0, len(ends), (2 * len(ends), 2))
            for first, second in picks:
                (u, i), (v, j) = ends[first], ends[second]
                if any(table[cell] or other[cell] or forbidden[cell] for cell in ((u, j), (v, i))):
                    continue
                table[u, i] = table[v, j] = False
                table[u, j] = table[v, i] = True
                ends[first, 1], ends[second, 1] = j, i
        yield tables[0]


def recoloured(rng, rated, liked, draws):
    """Yield tables of likes with the same margins on the same rated pairs.

    Two users trade, among items that both rated, those that only one of them likes.
    """
    table = liked.copy()
    for _ in range(draws):
        for u, v in rng.integers(0, len(rated), (3 * len(rated), 2)):
            pool = np.flatnonzero(rated[u] & rated[v] & (table[u] != table[v]))
            mine = rng.permutation(pool)[: np.count_nonzero(table[u, pool])]
            table[u, pool], table[v, pool] = False, True
            table[u, mine], table[v, mine] = True, False
        yield table


@pytest.mark.parametrize(("rung", "kind", "density"), [(2, 0, 0.5), (3, 2, 2.5)])
def test_averages_and_choice_agree_with_a_swap_chain(rung, kind, density):
    split, runs = small_case(6, users=60, items=30, systems=2, k=6, density=density)
    popular = np.bincount(split.train.item, minlength=len(split.train.items))
    everyone = np.tile(popular * 1.0, (len(split.train.users), 1))
    runs["popular"] = run_of(split.train, everyone, split.train, 6)
    part = ladder_part(split.train, split.test, runs, LIKED, 6)
    dense = Dense(split, runs, part.users, 6)
    rng = np.random.default_rng(1)
    if rung == 2:
        chain = redrawn(rng, dense.liked, dense.rated & ~dense.liked, ~dense.open, 400)
    else:
        chain = recoloured(rng, dense.rated, dense.liked, 400)
    counts = np.array([[(table & one).sum() for one in dense.listed] for table in chain])
    size = 6 * len(part.users)
    np.testing.assert_allclose(part.scores[rung], counts.mean(0) / size, rtol=0.03)
    spread = np.sqrt(np.diag(part.events[kind]))
    np.testing.assert_allclose(spread, counts.std(0), rtol=0.15)


# Steps


def structure(seed, users=120, items=60):
    """Two groups of users and of items: they rate and like within the group."""
    rng = np.random.default_rng(seed)
    same = (np.arange(users)[:, None] % 2) == (np.arange(items) % 2)
    rated = rng.random((users, items)) < np.where(same, 0.4, 0.05)
    liked = rng.random((users, items)) < np.where(same, 0.8, 0.3)
    return ratings_of(rated, liked), same


def test_lists_of_other_users_have_no_match():
    data, same = structure(3)
    split = us.splits.Random(test=0.3).split(data, 1)[0]
    rng = np.random.default_rng(2)
    scores = same + rng.random(same.shape) * 0.5
    shuffled = scores[rng.permutation(len(scores))]
    runs = {
        "own group": run_of(data, scores, split.train, 10),
        "any group": run_of(data, shuffled, split.train, 10),
    }
    result = us.bias.ladder(split, runs, k=10, liked=4)
    right, wrong = (result.row(step="match", system=name) for name in runs)
    assert right.facts["z"] > 10
    assert right.facts["t"] > 5
    assert abs(wrong.facts["z"]) < 3
    assert abs(wrong.value) < 0.15 * right.value
    pair = result.pair("own group", "any group", step="match")
    assert pair.value == pytest.approx(right.value - wrong.value)


def test_steps_add_up_and_tables_hold_them():
    split, runs = small_case(11, users=80, items=40)
    result = ladder(split, runs, k=4, liked=4)
    pairs = result.parts["pairs"].rows.pivot("step", index=["system", "against"], values="value")
    parts = sum(pairs[name] for name in ("counts", "averages", "choice", "opinion"))
    np.testing.assert_allclose(parts, pairs["lead"], atol=1e-12)
    assert (pairs["lead"] >= 0).all()
    table, rungs = result.rows.pivot("step", index="system", values="value"), rungs_of(result)
    np.testing.assert_allclose(table["match"], rungs["observed"] - rungs["averages"])
    np.testing.assert_allclose(table["match"], table["choice"] + table["opinion"])
    scores = us.evaluate(split.test, runs, "P@4", liked=4)
    averaged = split.train.users.raw(ladder_part(split.train, split.test, runs, LIKED, 4).users)
    whole = scores.per_user().filter(pl.col("user").is_in(averaged.implode()))
    for name in runs:
        mean = whole.filter(pl.col("system") == name)["P@4"].mean()
        assert result.row(step="lead", system=name).value == pytest.approx(mean)
    assert result.to_dict()["card"]["users"] == result.row().n == len(averaged)
    assert "averages" in str(result)
    assert len(result.figure().spec["datasets"]["rows"]) == len(RUNGS) * len(runs)


def several(seed, count=3):
    data = ratings_of(*(np.random.default_rng(seed).random((2, 50, 30)) < [[[0.15]], [[0.6]]]))
    splits = [us.splits.Random(test=0.3).split(data, n)[0] for n in range(count)]
    rng = np.random.default_rng(seed)
    runs = [
        {name: run_of(data, rng.random((50, 30)), one.train, 5) for name in "ab"} for one in splits
    ]
    return splits, runs


def test_splits_are_averaged_and_users_are_the_units():
    splits, runs = several(4)
    result = ladder(splits, runs, k=5, liked=4)
    step = result.pair("a", "b", step="match")
    splitted = zip(splits, runs, strict=True)
    parts = [ladder_part(one.train, one.test, lists, LIKED, 5) for one, lists in splitted]
    means, variances, deviation = [], [], {}
    for part in parts:
        value = (part.rungs[4] - part.rungs[2])[0] - (part.rungs[4] - part.rungs[2])[1]
        means.append(value.mean())
        c = part.covariance[0]
        variances.append(c[0, 0] + c[1, 1] - 2 * c[0, 1])
        for user, one in zip(part.users.tolist(), value, strict=True):
            deviation.setdefault(user, []).append((one - value.mean()) / value.size)
    count = len(deviation)
    assert len({part.users.size for part in parts}) > 1  # users differ between splits
    assert step.value == pytest.approx(np.mean(means))
    assert step.facts["z"] == pytest.approx(np.mean(means) / math.sqrt(np.mean(variances)))
    per_user = [sum(one) * count / len(means) for one in deviation.values()]
    assert np.mean(per_user) == pytest.approx(0, abs=1e-12)
    assert step.se == pytest.approx(np.std(per_user, ddof=1) / math.sqrt(count))
    assert step.facts["t"] == pytest.approx(step.value / step.se)
    assert step.high - step.value == pytest.approx(step.value - step.low)


def test_equal_splits_count_once():
    splits, runs = several(4)
    once = ladder(splits[:2], runs[:2], k=5, liked=4)
    twice = ladder([*splits[:2], splits[0]], [*runs[:2], runs[0]], k=5, liked=4)
    assert twice.card["splits"] == 2
    assert twice.table().equals(once.table())


def test_splits_that_number_users_differently_are_joined():
    splits, runs = several(4, 2)
    judged = [
        us.judge(
            one.test.to_polars(),
            {name: run.to_polars() for name, run in lists.items()},
            train=one.train.to_polars().filter(pl.col("user") != n),
            liked=4,
        )
        for n, (one, lists) in enumerate(zip(splits, runs, strict=True))
    ]
    result = ladder(judged, k=5)
    parts = [part_of(one, 5) for one in judged]
    every = {id_ for part in parts for id_ in part.ids.raw(part.users).to_list()}
    assert result.card["users"] == len(every)
    cold = [
        len(set(one.tests.to_polars()["user"]) - set(one.train.to_polars()["user"]))
        for one in judged
    ]
    assert [part.cold for part in parts] == cold
    assert sum(cold) > 0
    assert f"users without training ratings, left out: {sum(cold)}" in str(result)


def test_a_step_without_informative_pairs_has_no_z():
    """The projection leaves next to nothing of a list that all users share."""
    split, runs = small_case(2, users=40, items=25)
    last = np.tile(np.arange(len(split.train.items)) * 1.0, (len(split.train.users), 1))
    fixed = run_of(split.train, last, split.train, 2)
    result = ladder(split, {"fixed": fixed, "again": fixed, **runs}, k=2, liked=4)
    step = result.row(step="opinion", system="fixed")
    assert step.facts["events"] < LEAST
    assert step.facts["z"] is None
    same = result.pair("fixed", "again", step="match")
    assert (same.value, same.facts["z"], same.facts["events"]) == (0.0, None, 0.0)
    assert result.row(step="lead", system="fixed").facts["z"] is None


def test_what_is_left_out_is_counted():
    train = {"user": [1, 2, 3], "item": [7, 8, 9]}
    test = {"user": [1, 1, 2, 3, 4], "item": [7, 8, 9, 7, 7]}
    lists = {"a": {1: [7, 8], 2: [7, 9]}}  # 7 is in training of 1; 3 has no list; 4 no training
    part = part_of(us.judge(test, lists, train=train), 2)
    assert (part.overlap, part.cold) == (1, 1)
    assert (part.without_list, part.rated_before, part.unknown) == ((1,), (1,), (0,))
    assert part.users.size == 3
    np.testing.assert_allclose(part.rungs[4][0], [0.5, 0.5, 0])
    np.testing.assert_allclose(part.rungs[0][0], [1 / 2, 1 / 2, 1 / 2])


def test_the_order_of_systems_and_other_systems_do_not_matter():
    split, runs = small_case(7)
    both = ladder_part(split.train, split.test, runs, LIKED, 4)
    alone = ladder_part(split.train, split.test, {"s1": runs["s1"]}, LIKED, 4)
    np.testing.assert_array_equal(both.rungs[:, 1], alone.rungs[:, 0])
    np.testing.assert_allclose(both.covariance[:, 1, 1], alone.covariance[:, 0, 0], rtol=1e-9)


def test_input_is_refused_with_a_remedy():
    split, runs = small_case(1)
    test, train = split.test, split.train
    with pytest.raises(SettingError, match="train=…"):
        ladder(us.judge(test, runs, liked=4))
    with pytest.raises(SettingError, match="without targets"):
        ladder(us.judge(test, runs, liked=4, train=train, targets="all-items"))
    with pytest.raises(SettingError, match="leave runs"):
        ladder(us.judge(test, runs, liked=4, train=train), liked=4)
    with pytest.raises(SettingError, match="expected 1 mapping"):
        ladder(split, [runs, runs], liked=4)
    with pytest.raises(SettingError, match="judged data"):
        ladder(test, runs)
    with pytest.raises(SettingError, match="runs is empty"):
        ladder_part(train, test, {}, LIKED, 3)
    test, train = {"user": [1], "item": [2]}, {"user": [2], "item": [1]}
    apart = us.judge(test, {"a": {1: [2]}}, train=train)
    with pytest.raises(DataError, match="no user has both"):
        ladder(apart)


# Worlds without structure: not one of ours


def no_structure(seed, users=200, items=120):
    """Rating and liking depend on the user and on the item, never on both together."""
    rng = np.random.default_rng([seed, 7])
    rate = rng.normal(-2.2, 0.9, users)[:, None] + rng.normal(0, 1.3, items)
    like = rng.normal(0.3, 0.7, users)[:, None] + rng.normal(0, 0.8, items)
    rated, liked = (rng.random(rate.shape) < 1 / (1 + np.exp(-one)) for one in (rate, like))
    data = ratings_of(rated, liked)
    split = us.splits.Random(test=0.25).split(data, seed)[0]
    train = split.train
    table = np.zeros((len(data.users), len(data.items)))
    table[train.user, train.item] = 1
    left, size, right = np.linalg.svd(table, full_matrices=False)
    near = table @ table.T / np.maximum(table.sum(1), 1)
    scores = {
        "random": rng.random(table.shape),
        "popular": np.tile(table.sum(0), (len(table), 1)),
        "factors": (left[:, :6] * size[:6]) @ right[:6],
        "neighbours": (near - np.diag(np.diag(near))) ** 3 @ table,
    }
    return split, {name: run_of(data, one, train, 10) for name, one in scores.items()}


def z_values(count):
    values = {"match": [], "choice": [], "opinion": []}
    for seed in range(count):
        split, runs = no_structure(seed)
        result = ladder(split, runs, k=10, liked=4)
        for name, of in values.items():
            systems = ("random", "popular", "factors")
            steps = [result.row(step=name, system=system) for system in systems]
            steps.append(result.pair("neighbours", "popular", step=name))
            of += [step.facts["z"] for step in steps if step.facts["z"] is not None]
    return {name: np.array(of) for name, of in values.items()}


@pytest.mark.parametrize(
    ("data_sets", "size", "spread", "centre"),
    [(8, 24, 0.25, 0.5), pytest.param(25, 75, 0.2, 0.3, marks=pytest.mark.slow)],
)
def test_z_is_of_the_right_size_without_structure(data_sets, size, spread, centre):
    for values in z_values(data_sets).values():
        assert values.size > size
        assert abs(values.std() - 1) < spread
        assert abs(values.mean()) < centre


TOO_OFTEN = pytest.mark.xfail(
    reason="the null variance of choice is about a fifth too small: 8.6 % beyond 1.96", strict=True
)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["match", "opinion", pytest.param("choice", marks=TOO_OFTEN)])
def test_z_is_about_normal_without_structure(step):
    values = z_values(300)[step]
    assert 0.03 < np.mean(np.abs(values) > 1.96) < 0.08
    assert np.mean(np.abs(values) > 3) < 0.01


# Real data


def test_movielens_100k_has_the_published_staircase():
    real_data("ml-100k")
    data = us.load("ml-100k").ratings
    split = us.splits.Random(test=0.2).split(data, 1)[0]
    lists = us.targets.AllItems().lists(split, LIKED, seed=1)
    systems = {"popularity": us.recommend.Popularity(), "ease": us.recommend.EASE()}
    runs = {name: us.rank(one.fit(split.train, 1), lists, 10) for name, one in systems.items()}
    ladder(split, runs, liked=4)
    begin = time.process_time()
    result = ladder(split, runs, liked=4)
    assert time.process_time() - begin < 1.5  # 0.1 s on an idle machine
    popular, ease = rungs_of(result).select(RUNGS).to_numpy()
    np.testing.assert_allclose(popular, [0.008, 0.101, 0.123, 0.129, 0.128], atol=0.012)
    np.testing.assert_allclose(ease, [0.008, 0.064, 0.083, 0.250, 0.274], atol=0.015)
