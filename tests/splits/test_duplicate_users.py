"""Near-duplicate users: known pairs, plain twins, and people who only share a taste."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.real_data import real_data
from unskew import Ratings, Split
from unskew.splits.diagnosis import duplicate_user_kernels as kernels
from unskew.splits.diagnosis.duplicate_users import find_duplicates
from unskew.splits.time.temporal import Temporal

DAY = 86_400


def sets(seed, users=300, items=400, size=30):
    """Return the items of users who have tastes: a plain generator of these tests alone."""
    rng = np.random.default_rng(seed)
    taste = 1 / np.arange(1, items + 1) ** 0.8
    groups = [rng.permutation(taste) for _ in range(4)]
    return [
        rng.choice(items, rng.integers(8, 2 * size), replace=False, p=one / one.sum())
        for one in (groups[u % 4] for u in range(users))
    ]


def table(histories, seed, days=200):
    """Return ratings of histories: items at random times, values at random."""
    rng = np.random.default_rng(seed)
    rows = [
        (u, int(i), int(rng.integers(1, 6)), 10**9 + int(rng.integers(0, days * DAY)))
        for u, one in enumerate(histories)
        for i in one
    ]
    user, item, value, time = zip(*rows, strict=True)
    return us.read_ratings({"user": user, "item": item, "rating": value, "time": time})


def copied(ratings, user, name, seed, changed=0.1, moved=400 * DAY):
    """Return rows of an account that copies a user: items changed, times moved and jittered."""
    rng = np.random.default_rng(seed)
    mine = ratings.user == user
    item, value = ratings.item[mine].copy(), ratings.value[mine].copy()
    time = ratings.time[mine] // 10**6 - moved + rng.integers(0, DAY, item.size)
    other = rng.random(item.size) < changed
    item[other] = rng.integers(0, len(ratings.items), int(other.sum()))
    names = ratings.items.values.to_list()
    rows = {
        names[i]: (name, names[i], v, int(t)) for i, v, t in zip(item, value, time, strict=True)
    }
    return list(rows.values())


def split_with(ratings, more):
    """Return a split by time with further rows in training."""
    frame = ratings.to_polars().with_columns(pl.col("time").dt.epoch("s"))
    added = pl.DataFrame(more, schema=frame.columns, orient="row") if more else frame.head(0)
    whole = us.read_ratings(pl.concat([frame, added.cast(dict(frame.schema))]))
    (split,) = Temporal(test=0.2).split(whole)
    return split


@pytest.mark.parametrize("seed", range(5))
def test_copied_accounts_are_recovered(seed):
    data = table(sets(seed), seed)
    size = np.diff(data.start)
    (first,) = Temporal(test=0.2).split(data)
    tested = np.flatnonzero((size >= 25) & (np.diff(first.test.start) >= 3))[:6]
    rows = [
        row
        for at, user in enumerate(tested)
        for row in copied(data, user, 10_000 + at, 50 * seed + at)
    ]
    split = split_with(data, rows)
    result = find_duplicates(split.train, split.test)
    names = split.train.users.values.to_list()
    pairs = {(names[u], names[v]) for u, v in zip(result.copy, result.user, strict=True)}
    wanted = {(10_000 + at, int(user)) for at, user in enumerate(tested)}
    assert len(wanted) == 6
    assert pairs == wanted
    for copy, user, exposed in zip(result.copy, result.user, result.exposed, strict=True):
        mine = set(split.train.item[split.train.user == copy].tolist())
        test = set(split.test.item[split.test.user == user].tolist())
        assert exposed == len(mine & test)


@pytest.mark.parametrize("seed", range(100, 110))
def test_people_with_a_taste_are_no_copies(seed):
    (split,) = Temporal(test=0.2).split(table(sets(seed), seed))
    assert find_duplicates(split.train, split.test).user.size == 0


def test_fans_of_blockbusters_and_of_a_series_are_no_copies():
    rng = np.random.default_rng(3)
    rest = sets(7, users=200)
    blockbusters = [rng.choice(25, 20, replace=False) for _ in range(60)]
    series = [np.arange(300, 314) for _ in range(40)]
    (split,) = Temporal(test=0.3).split(table([*rest, *blockbusters, *series], 5))
    result = find_duplicates(split.train, split.test)
    assert result.compared > 0
    assert result.user.size == 0


def test_duplicates_that_expose_no_test_row_are_yellow():
    """Two accounts of one person in a clean split by time: neither knows the other's future."""
    data = table(sets(1), 1)
    (first,) = Temporal(test=0.2).split(data)
    size = np.diff(data.start)
    user = int(np.flatnonzero((size >= 40) & (np.diff(first.test.start) >= 5))[0])
    twin = copied(data, user, 10_000, 9, changed=0.0, moved=0)
    frame = data.to_polars().with_columns(pl.col("time").dt.epoch("s"))
    twin = [(u, i, v, t - t % DAY) for u, i, v, t in twin]  # the same days, so the same side
    added = pl.DataFrame(twin, schema=frame.columns, orient="row").cast(dict(frame.schema))
    whole = us.read_ratings(pl.concat([frame, added]))
    cut = np.sort(data.time)[int(0.8 * len(data))] // 10**6 // DAY * DAY
    (split,) = Temporal(at=float(cut)).split(whole)
    check = us.splits.diagnose(split).check("duplicate-users")
    assert check.counts["pairs"] >= 1
    assert check.light == "look"
    assert check.value < 0.001


def test_bits_do_not_depend_on_threads(monkeypatch):
    data = table(sets(2), 2)
    rows = copied(data, 4, 10_000, 1) + copied(data, 9, 10_001, 2)
    split = split_with(data, rows)
    many = find_duplicates(split.train, split.test)
    monkeypatch.setattr("unskew.splits.diagnosis.duplicate_users.USERS", 7)
    monkeypatch.setattr("unskew.splits.diagnosis.duplicate_users._PAIRS", 1)
    few = find_duplicates(split.train, split.test)
    for one, other in zip(many, few, strict=True):
        assert np.array_equal(one, other)


def test_movielens_has_three_such_pairs():
    """The three pairs of users of ML-100K with more than 60 % of their items in common."""
    data = us.load("ml-100k", data_dir=real_data("ml-100k/u.data").parents[1]).ratings
    assert near_pairs(data, 0.6) == {(408, 898), (328, 788), (489, 587)}
    (split,) = us.splits.LeaveOut(1, pick="last").split(data)
    result = find_duplicates(split.train, split.test)
    names = data.users.values.to_list()
    pairs = {
        tuple(sorted((names[u], names[v]))) for u, v in zip(result.copy, result.user, strict=True)
    }
    assert pairs == {(408, 898), (328, 788), (489, 587)}


def near_pairs(data: Ratings, least):
    """Return the pairs of users with a larger share of items in common: every pair is compared."""
    mine = np.zeros((len(data.users), len(data.items)), np.float32)
    mine[data.user, data.item] = 1
    both = mine @ mine.T
    size = mine.sum(axis=1)
    share = both / (size[:, None] + size[None, :] - both)
    names = data.users.values.to_list()
    return {(names[a], names[b]) for a, b in np.argwhere(share > least).tolist() if a < b}


# Kernels


def test_keys_meet_as_in_a_plain_join():
    rng = np.random.default_rng(0)
    left = rng.integers(0, 40, 100).astype(np.uint64)
    right = rng.integers(0, 40, 60).astype(np.uint64)
    for crowd in (10**9, 6):
        a, b = kernels.meet(left, right, crowd)
        plain = {
            (i, j)
            for i in range(100)
            for j in range(60)
            if left[i] == right[j] and (left == left[i]).sum() * (right == right[j]).sum() <= crowd
        }
        assert set(zip(a.tolist(), b.tolist(), strict=True)) == plain
    a, b = kernels.meet(left, right[:0], 5)
    assert a.size == b.size == 0


def test_the_least_time_is_an_items_in_proportion_to_its_weight():
    """Weighted min-hashes of two sets agree as often as their weighted overlap says."""
    weight = np.array([0.2, 1.0, 3.0, 0.5, 2.0])
    table = np.empty((5, 4_000), np.float32)
    kernels.exponentials(np.uint64(99), weight, table)
    start = np.array([0, 3, 7])
    item = np.array([0, 1, 2, 1, 2, 3, 4], np.int32)
    least = np.full((2, 4_000), 2**32 - 1, np.uint32)
    kernels.lower_signatures(0, np.ones(2, np.bool_), start, item, table.view(np.uint32), least)
    agree = (least[0] == least[1]).mean()
    expected = (1.0 + 3.0) / weight.sum()
    assert abs(agree - expected) < 4.5 * np.sqrt(expected * (1 - expected) / 4_000)


def exact_tail(chance, least):
    """Return the probability of at least so many independent events."""
    many = np.array([1.0])
    for p in chance:
        many = np.append(many, 0.0) * (1 - p) + np.append(0.0, many) * p
    return many[least:].sum()


def test_chernoff_bounds_the_exact_tail():
    rng = np.random.default_rng(2)
    for _ in range(20):
        chance = rng.uniform(0.02, 0.9, 25)
        for held in range(26):
            bound = 10 ** -kernels.improbability(chance, 25, float(held))
            exact = exact_tail(chance, held)
            assert bound >= exact * (1 - 1e-9)
        assert kernels.improbability(chance, 25, 25.0) == pytest.approx(
            -np.log10(chance).sum(), abs=1e-6
        )


def test_overlaps_by_plain_sets():
    split = Split(*random_parts(5))
    pairs = np.array([(u, v) for u in range(8) for v in range(8) if u != v], np.int32)
    counted = kernels.overlaps(
        pairs, split.train.start, split.train.item, split.test.start, split.test.item
    )
    of = {
        name: [set(part.item[part.start[u] : part.start[u + 1]].tolist()) for u in range(8)]
        for name, part in (("train", split.train), ("test", split.test))
    }
    for (u, v), (in_test, in_train) in zip(pairs.tolist(), counted.tolist(), strict=True):
        assert in_test == len(of["train"][u] & of["test"][v])
        assert in_train == len(of["train"][u] & (of["train"][v] - of["test"][v]))


def random_parts(seed):
    rng = np.random.default_rng(seed)
    cells = rng.choice(8 * 15, 70, replace=False)
    whole = us.read_ratings({"user": cells // 15, "item": cells % 15})
    test = rng.random(len(whole)) < 0.4
    return whole.take(~test), whole.take(test)


def test_untimed_and_implicit_accounts_are_told_by_items_alone():
    data = table(sets(4), 4)
    (first,) = us.splits.Random(test=0.3).split(data)
    size = np.diff(data.start)
    user = int(np.flatnonzero((size >= 45) & (np.diff(first.test.start) >= 5))[0])
    rows = copied(data, user, 10_000, 3)
    split = split_with(data, rows)
    plain = [
        replace(one, time=None, value=np.ones(len(one)), implicit=True)
        for one in (split.train, split.test)
    ]
    result = find_duplicates(*plain)
    names = split.train.users.values.to_list()
    pairs = {(names[u], names[v]) for u, v in zip(result.copy, result.user, strict=True)}
    assert pairs <= {(10_000, user)}
