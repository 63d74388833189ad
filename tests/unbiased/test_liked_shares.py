"""Liked shares of judged recommendations: by hand, by a plain twin, over data sets."""

import math

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.stats.special import student_t_quantile
from unskew.unbiased.liked_shares import liked_part, liked_shares_of

RULE = us.Relevance(liked=4)


def drawn(seed, users=60, items=30, rated=0.4, k=5):
    """Return train, test and the lists of three systems that have nothing to do with a world."""
    rng = np.random.default_rng(seed)
    like = rng.random((users, items)) < rng.beta(2, 2, items)
    there = rng.random((users, items)) < rated * rng.random(items) * 2
    user, item = np.nonzero(there)
    rows = {"user": user, "item": item, "rating": np.where(like[there], 5, 2)}
    data = us.read_ratings(rows)
    test = rng.random(len(data)) < 0.5
    popular = np.argsort(-there.sum(axis=0))[:k]
    lists = {
        "quality": np.array([rng.permutation(items)[:k] for _ in range(users)]),
        "popular": np.tile(popular, (users, 1)),
        "mixed": np.array(
            [[*popular[:2], *(i for i in range(items) if i not in popular[:2])][:k]] * users
        ),
    }
    runs = {name: us.Run.from_arrays(np.arange(users), one) for name, one in lists.items()}
    return data.take(~test), data.take(test), runs


def plain(train, test, runs, k, levelled):
    """Return by system {user: [(weight, liked, item)]} of judged recommendations."""
    rows = [(u, i) for part in (train, test) for u, i in zip(part.user, part.item, strict=True)]
    of_user, of_item = ([pair[side] for pair in rows] for side in (0, 1))
    judged = {(u, i): v >= 4 for u, i, v in zip(test.user, test.item, test.value, strict=True)}
    listed = {}
    for name, run in runs.items():
        frame = run.to_polars().filter(pl.col("rank") <= k)
        users, items = test.users.codes(frame["user"]), test.items.codes(frame["item"])
        listed[name] = [p for p in zip(users, items, strict=True) if p in judged]
    union = {pair for pairs in listed.values() for pair in pairs}
    weight = {(u, i): 1 / (of_user.count(u) * of_item.count(i)) for u, i in union}
    most = np.quantile(list(weight.values()), 0.95)
    weight = {pair: min(w, most) if levelled else 1.0 for pair, w in weight.items()}
    return {
        name: [(pair[0], weight[pair], judged[pair]) for pair in pairs]
        for name, pairs in listed.items()
    }


def plain_pair(rows, a, b):
    """Return difference and variance by user of one split."""
    shares, moves = {}, {}
    for name in (a, b):
        total = sum(w for _, w, _ in rows[name])
        shares[name] = sum(w for _, w, liked in rows[name] if liked) / total
        for user, w, liked in rows[name]:
            sign = 1 if name == a else -1
            moves[user] = moves.get(user, 0.0) + sign * w * (liked - shares[name]) / total
    users = len(moves)
    variance = users / (users - 1) * sum(x * x for x in moves.values())
    return shares[a] - shares[b], variance, users


@pytest.mark.parametrize("levelled", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_pairs_equal_the_plain_twin(seed, levelled):
    train, test, runs = drawn(seed, users=150)
    result = liked_shares_of([liked_part(train, test, runs, RULE, 5)])
    rows = plain(train, test, runs, 5, levelled)
    for a, b in (("quality", "popular"), ("popular", "mixed")):
        value, variance, users = plain_pair(rows, a, b)
        pair = result.pair(a, b, levelled=levelled)
        assert pair.value == pytest.approx(value, abs=1e-12)
        assert pair.n == users
        assert pair.facts["judged"] == len(rows[a])
        assert pair.se**2 >= variance * (1 - 1e-9)
        assert pair.se**2 == pytest.approx(variance, rel=0.15)  # the floor has nearly faded out
        half = student_t_quantile(0.975, users - 1) * pair.se
        assert (pair.low, pair.high) == pytest.approx((value - half, value + half))
        weights = np.array([w for _, w, _ in rows[a]]), np.array([w for _, w, _ in rows[b]])
        assert pair.facts["effective"] == pytest.approx(
            min(w.sum() ** 2 / (w @ w) for w in weights)
        )


def two(liked_a, liked_b, number=10):
    """Judged recommendations of two systems for different users, so many of them liked."""
    users = np.arange(2 * number)
    rating = [5 if u < liked_a or number <= u < number + liked_b else 1 for u in users]
    test = us.read_ratings({"user": users, "item": users // number, "rating": rating})
    runs = {
        "a": us.read_run({int(u): [0] for u in users[:number]}),
        "b": us.read_run({int(u): [1] for u in users[number:]}),
    }
    return liked_shares_of([liked_part(None, test, runs, RULE, 1)])


def test_a_few_judgments_settle_little():
    pair = two(10, 5).pair("a", "b")
    inner = 17 / 24  # 15 of 20 liked, and two of four more
    assert pair.value == 0.5
    assert pair.se**2 == pytest.approx(inner * (1 - inner) * 0.2)
    assert pair.z < 2.5  # by user alone: .25 / 9 + 0, z = 3.1
    assert two(10, 9).pair("a", "b").low < 0
    share = two(10, 5).row(system="a")
    assert share.value == 1
    assert share.high == pytest.approx(1)
    assert 0.6 < share.low < 0.75  # Wilson's, by Student's t: 10 / (10 + 2.26²) = .66


def test_ten_of_ten_and_five_of_ten_are_rarely_called_different_without_cause():
    rng = np.random.default_rng(5)
    share = rng.choice([0.5, 0.7, 0.9], 400)
    beyond = [
        pair.value is not None and not pair.low <= 0 <= pair.high
        for p in share
        for pair in [two(*rng.binomial(12, p, 2), number=12).pair("a", "b")]
    ]
    assert np.mean(beyond) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_swapped_systems_change_the_sign():
    train, test, runs = drawn(3)
    result = liked_shares_of([liked_part(train, test, runs, RULE, 5)])
    for levelled in (False, True):
        one = result.pair("quality", "popular", levelled=levelled)
        other = result.pair("popular", "quality", levelled=levelled)
        assert one.value == pytest.approx(-other.value)
        assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
        assert one.se == pytest.approx(other.se)


@pytest.mark.parametrize("users", [15, 60])
def test_a_split_that_stands_twice_changes_nothing(users):
    train, test, runs = drawn(4, users)
    part = liked_part(train, test, runs, RULE, 5)
    one, four = liked_shares_of([part]), liked_shares_of([part] * 4)
    for levelled in (False, True):
        for a, b in (("quality", "popular"), ("popular", "mixed")):
            first, last = one.pair(a, b, levelled=levelled), four.pair(a, b, levelled=levelled)
            assert last.value == pytest.approx(first.value)
            assert last.se == pytest.approx(first.se)
            assert last.facts["effective"] == pytest.approx(first.facts["effective"])
        share, again = (
            one.row(system="popular", levelled=levelled),
            four.row(system="popular", levelled=levelled),
        )
        assert (again.low, again.high) == pytest.approx((share.low, share.high))


def test_splits_with_other_test_ratings_narrow_the_interval():
    train, test, runs = drawn(6)
    parts = [liked_part(*pair, runs, RULE, 5) for pair in ((train, test), (test, train))]
    one = liked_shares_of([parts[0]]).pair("quality", "popular")
    both = liked_shares_of(parts).pair("quality", "popular")
    assert both.se < one.se


def test_what_cannot_be_told_has_a_reason():
    assert two(10, 10).pair("a", "b").note == "every judged item that either recommends is liked"
    assert two(0, 0).pair("a", "b").note == "no judged item that either recommends is liked"
    pair = two(4, 5, number=9).pair("a", "b")
    assert pair.value is pair.se is pair.low is pair.z is None
    assert pair.note == "a recommends 9 judged items, fewer than 10"
    assert two(4, 5, number=9).row(system="b").value is None
    with pytest.raises(us.DataError, match="no pair of b and b"):
        two(10, 5).pair("b", "b")
    test = {"user": range(20), "item": [0] * 20, "rating": [5, 1] * 10}
    runs = {name: {user: [0] for user in range(20)} for name in "ab"}
    alike = us.unbiased.liked_shares(test, runs, 1, liked=4)
    assert alike.pair("a", "b").note == "both recommend the same judged items"


def test_judged_items_of_one_user_are_not_enough():
    test = us.read_ratings({"user": [0] * 24, "item": range(24), "rating": [5, 1] * 12})
    runs = {
        "a": us.read_run({0: list(range(12))}),
        "b": us.read_run({0: list(range(12, 24))}),
    }
    result = liked_shares_of([liked_part(None, test, runs, RULE, 12)])
    assert result.pair("a", "b").note == "judged recommendations of 1 user, fewer than 2"


def test_lists_without_judged_items():
    test = us.read_ratings({"user": [0, 1], "item": [0, 1], "rating": [5, 1]})
    runs = {name: us.read_run({0: [7], 9: [8]}) for name in "ab"}
    part = liked_part(None, test, runs, RULE, 1)
    assert part.lists.shape == (2, 0)
    result = liked_shares_of([part])
    assert result.row(system="a").note == "a recommends 0 judged items, fewer than 10"
    assert result.pair("a", "b").value is None
    assert result.table().height == 4
    assert result.parts["pairs"].table()["value"].null_count() == 2


def test_implicit_data_have_no_dislikes():
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, 20, (300, 2)), axis=0)
    test = us.read_ratings({"user": pairs[:, 0], "item": pairs[:, 1]})
    runs = {name: {u: list(rng.permutation(20)[:5]) for u in range(20)} for name in "ab"}
    result = us.unbiased.liked_shares(test, runs, 5)
    assert result.pair("a", "b").note == "every judged item that either recommends is liked"


def test_raw_data_judged_data_and_parts_agree():
    train, test, runs = drawn(7)
    whole = liked_shares_of([liked_part(train, test, runs, RULE, 4)])
    judged = us.judge(test, runs, liked=4, train=train)
    for other in (
        us.unbiased.liked_shares(test, runs, 4, liked=4, train=train),
        us.unbiased.liked_shares(judged, 4),
    ):
        assert other.parts["pairs"].table().equals(whole.parts["pairs"].table())
        assert other.table().equals(whole.table())
    without = us.unbiased.liked_shares(test, runs, 4, liked=4)
    assert any("without train" in note for note in without.notes)
    assert without.pair("quality", "popular").value == whole.pair("quality", "popular").value


def test_strangers_keep_the_numbers_of_users():
    train, test, runs = drawn(8)
    more = {name: us.read_run({**as_lists(run), -5: [99, 3]}) for name, run in runs.items()}
    one, other = liked_part(train, test, runs, RULE, 5), liked_part(train, test, more, RULE, 5)
    assert np.array_equal(one.user, other.user)
    assert np.array_equal(one.liked, other.liked)
    assert np.array_equal(one.lists, other.lists)


def as_lists(run):
    items = run.items.raw(run.item).to_numpy().reshape(len(run), -1).tolist()
    return dict(zip(run.users.values, items, strict=True))


def test_models_on_target_lists():
    data = us.world("shop", users=60, items=40, seed=2).ratings
    split = next(iter(us.splits.Random(test=0.4).each(data, 1)))
    lists = us.targets.AllItems().lists(split, RULE, seed=1)
    models = {
        "p": us.recommend.Popularity().fit(split.train, 1),
        "r": us.recommend.Random().fit(split.train, 1),
    }
    runs = {name: us.rank(model, lists, 5) for name, model in models.items()}
    part = liked_shares_of([liked_part(split.train, split.test, runs, RULE, 5)])
    assert us.unbiased.liked_shares(us.judge(lists, models), 5).table().equals(part.table())
    one = us.targets.OneRelevant(others=5).lists(split, RULE, seed=1)
    with pytest.raises(us.SettingError, match="one list per user"):
        us.unbiased.liked_shares(us.judge(one, models), 5)


def test_wrong_settings_are_refused():
    train, test, runs = drawn(9)
    part = liked_part(train, test, runs, RULE, 5)
    with pytest.raises(us.SettingError, match="at least one"):
        liked_shares_of([])
    with pytest.raises(us.DataError, match="same k"):
        liked_shares_of([part, liked_part(train, test, runs, RULE, 4)])
    with pytest.raises(us.UnskewError, match="popular"):
        liked_shares_of([part]).pair("popula", "mixed")


@pytest.mark.parametrize("levelled", [False, True])
def test_intervals_hold_the_expected_difference(levelled):
    """300 data sets; 95 % should hold it, fewer than 91 % in one of 10,000 runs."""
    rng = np.random.default_rng(11)
    items, users, k = 20, 60, 4
    like, rate = rng.uniform(0.2, 0.9, items), rng.uniform(0.1, 0.7, items)
    tops, bottoms, pairs = [], [], []
    runs = {
        "a": us.Run.from_arrays(np.arange(users), np.tile(np.argsort(-like)[:k], (users, 1))),
        "b": us.Run.from_arrays(np.arange(users), np.tile(np.argsort(-rate)[:k], (users, 1))),
    }
    for _ in range(300):
        mood = rng.normal(0, 0.15, (users, 1))
        liked = rng.random((users, items)) < np.clip(like + mood, 0, 1)
        there = rng.random((users, items)) < rate
        user, item = np.nonzero(there)
        rows = {"user": user, "item": item, "rating": np.where(liked[there], 5, 1)}
        part = liked_part(None, us.read_ratings(rows), runs, RULE, k)
        weight = part.lists * (part.weight if levelled else 1.0)
        tops.append((weight * part.liked).sum(axis=1))
        bottoms.append(weight.sum(axis=1))
        pairs.append(liked_shares_of([part]).pair("a", "b", levelled=levelled))
    shares = np.sum(tops, axis=0) / np.sum(bottoms, axis=0)
    target = shares[0] - shares[1]
    assert 0.91 <= np.mean([pair.low <= target <= pair.high for pair in pairs]) <= 0.985


def test_a_difference_turned_round_is_that_of_the_other_order():
    rng = np.random.default_rng(8)
    user, item = np.nonzero(rng.random((60, 30)) < 0.5)
    test = us.read_ratings(
        {"user": user, "item": item, "rating": np.where(rng.random(user.size) < 0.5, 5, 1)}
    )
    runs = {
        name: us.read_run({one: rng.permutation(30)[:10].tolist() for one in range(60)})
        for name in ("a", "b")
    }
    result = liked_shares_of([liked_part(None, test, runs, RULE, 10)])
    for levelled in (False, True):
        pair = result.pair("a", "b", levelled=levelled)
        assert pair.value is not None
        assert pair.value != 0
        assert pair.swapped() == result.pair("b", "a", levelled=levelled)
    shown = us.unbiased.shown_at_random(test, runs, 10, random=test, liked=4)
    pair = shown.pair("a", "b")
    assert pair.value is not None
    assert pair.swapped() == shown.pair("b", "a")


# Within users


def plain_within(train, test, runs, k, a, b):
    """Compare each judged item with the other ratings of its user, by plain loops."""
    rows = [*test, *train]
    means = {}
    for name in (a, b):
        values = []
        for user, item, liked in test:
            others = [like for u, i, like in rows if u == user and i != item]
            if item in runs[name][user][:k] and len(others) >= 3:
                values.append(liked - sum(others) / len(others))
        means[name] = sum(values) / len(values)
    return means[a] - means[b]


def random_rows(rng, users=40, items=30):
    pairs = [(u, i) for u in range(users) for i in range(items) if rng.random() < 0.4]
    return [(u, i, bool(rng.random() < 0.5)) for u, i in pairs]


def ratings_of(rows, **more):
    user, item, liked = zip(*rows, strict=True)
    values = {"user": user, "item": item, "rating": [5 if one else 1 for one in liked]}
    return {name: list(column) for name, column in {**values, **more}.items()}


def test_within_users_is_as_by_plain_loops():
    rng = np.random.default_rng(3)
    rows = random_rows(rng)
    test = [row for row in rows if rng.random() < 0.4]
    train = [row for row in rows if row not in test]
    runs = {
        name: {u: rng.permutation(30)[:8].tolist() for u in range(40)} for name in ("a", "b", "c")
    }
    found = us.unbiased.liked_shares(
        ratings_of(test), runs, 8, liked=4, train=ratings_of(train)
    ).parts["within users"]
    for a, b in (("a", "b"), ("a", "c"), ("b", "c")):
        expected = plain_within(train, test, runs, 8, a, b)
        assert found.pair(a, b).value == pytest.approx(expected, abs=1e-12)


def test_generous_users_and_generous_times_do_not_count():
    """Nobody prefers any item: one system is judged by generous users, or late, when all like more.

    The plain difference is about .3, that within users about 0.
    """
    rng = np.random.default_rng(8)
    differences = []
    for by_time in (False, True):
        rows, times = [], []
        for user in range(600):
            for item in rng.permutation(40)[:12]:
                late = item >= 20
                generous = late if by_time else user % 2
                rows.append((user, int(item), bool(rng.random() < (0.75 if generous else 0.35))))
                times.append(float(late * 1000 + rng.integers(900)))
        first = {u: list(range(20, 30)) if by_time or u % 2 else [99] for u in range(600)}
        second = {u: list(range(10)) if by_time or not u % 2 else [99] for u in range(600)}
        test = ratings_of(rows, timestamp=times) if by_time else ratings_of(rows)
        found = us.unbiased.liked_shares(test, {"a": first, "b": second}, 10, liked=4)
        differences.append(found.pair("a", "b", levelled=False).value)
        within = found.parts["within users"].pair("a", "b")
        assert abs(within.value) < 3.5 * within.se
        assert within.se < 0.05
    assert min(differences) > 0.3


def test_users_with_few_other_ratings_have_no_usual_share():
    rows = [(u, i, True) for u in range(30) for i in range(3)]
    runs = {"a": {u: [0] for u in range(30)}, "b": {u: [1] for u in range(30)}}
    found = us.unbiased.liked_shares(ratings_of(rows), runs, 1, liked=4).parts["within users"]
    assert found.pair("a", "b").value is None
    assert found.pair("a", "b").note


def test_listed_items_are_worth_what_test_ratings_say_of_them():
    rng = np.random.default_rng(4)
    rows = random_rows(rng)
    test = [row for row in rows if rng.random() < 0.5]
    train = [row for row in rows if row not in test]
    runs = {
        name: {u: [*rng.permutation(30)[:5].tolist(), 99] for u in range(40)} for name in ("a", "b")
    }
    result = us.unbiased.liked_shares(
        ratings_of(test), runs, 6, liked=4, train=ratings_of(train)
    ).parts["listed items"]
    every, worth = [*test, *train], {}
    for item in range(30):
        excess = []
        for user, _, liked in [row for row in test if row[1] == item]:
            others = [like for u, i, like in every if u == user and i != item]
            if len(others) >= 3:
                excess.append(liked - sum(others) / len(others))
        if excess:
            worth[item] = sum(excess) / len(excess)
    means = {
        name: np.mean([worth[i] for u in range(40) for i in runs[name][u] if i in worth])
        for name in runs
    }
    assert result.pair("a", "b").value == pytest.approx(means["a"] - means["b"], abs=1e-12)


def test_listed_items_keep_their_level_where_nobody_prefers_any():
    """A generator with generous users, popular items and no quality: z is rarely large."""
    rng, z = np.random.default_rng(5), []
    for _ in range(150):
        chance = 0.6 * (np.arange(30) + 1.0) ** -0.7
        generous = rng.random(80) < 0.5
        user, item = np.nonzero(rng.random((80, 30)) < chance * np.where(generous, 1, 0.5)[:, None])
        liked = rng.random(user.size) < np.where(generous, 0.7, 0.4)[user]
        rows = list(zip(user.tolist(), item.tolist(), liked.tolist(), strict=True))
        runs = {
            "popular": {u: list(range(5)) for u in range(80)},
            "tail": {u: rng.permutation(np.arange(10, 30))[:5].tolist() for u in range(80)},
        }
        parts = us.unbiased.liked_shares(ratings_of(rows), runs, 5, liked=4).parts
        z.append(parts["listed items"].pair("popular", "tail").z)
    assert abs(np.mean(z)) < 0.35
    assert 0.6 < np.std(z) < 1.25
