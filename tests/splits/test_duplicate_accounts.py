"""Near-duplicate accounts in one set of ratings: households, clones, scripts; and clean data."""

import numpy as np
import pytest

import unskew as us
from shared.real_data import real_data
from unskew.splits.diagnosis.duplicate_groups import duplicate_groups
from unskew.splits.duplicate_users import DuplicateAccounts, _limit


def histories(seed, users=500, items=300, low=25, high=75, popularity=0.0):
    """Return the items of users: a plain generator of these tests alone."""
    rng = np.random.default_rng(seed)
    weight = (1.0 + np.arange(items)) ** -popularity
    return [
        rng.choice(items, rng.integers(low, high + 1), replace=False, p=weight / weight.sum())
        for _ in range(users)
    ]


def households(lists, seed, copies=5, share=0.9, items=300):
    """Return lists of accounts: each keeps a share of its household's items and has others."""
    rng = np.random.default_rng([seed, 1])
    accounts = []
    for mine in lists:
        for _ in range(copies):
            keep = mine[rng.random(mine.size) < share]
            more = rng.choice(np.setdiff1d(np.arange(items), mine), mine.size - keep.size)
            accounts.append(np.unique(np.append(keep, more)))
    return accounts


def ratings(lists, seed=0, stars=True):
    """Return ratings of lists; accounts agree in the value of an item they share."""
    rng = np.random.default_rng([seed, 2])
    value = {}
    rows = []
    for u, items in enumerate(lists):
        for i in items.tolist():
            star = value.setdefault((u // 5, i), int(rng.integers(1, 6))) if stars else 1
            rows.append((u, i, star))
    user, item, rating = zip(*rows, strict=True)
    return us.read_ratings({"user": user, "item": item, "rating": rating})


@pytest.mark.parametrize("stars", [True, False])
@pytest.mark.parametrize("popularity", [0.0, 1.0])
def test_households_are_recovered(stars, popularity):
    lists = histories(1, users=100, popularity=popularity)
    data = ratings(households(lists, 1), stars=stars)
    group = duplicate_groups(data)
    household = np.arange(500) // 5
    # Without values, blockbusters alone say little of who shares an account.
    is_easy = stars or not popularity
    assert np.mean(np.bincount(group)[group] > 1) > (0.95 if is_easy else 0.6)
    for first in np.unique(group):
        assert np.unique(household[group == first]).size == 1
    notes = DuplicateAccounts.of(data).notes()
    assert len(notes) == 1
    assert "group_users='detected'" in notes[0]


@pytest.mark.parametrize("seed", range(100, 106))
@pytest.mark.parametrize("popularity", [0.0, 1.2])
def test_people_are_no_duplicates(seed, popularity):
    data = ratings(histories(seed, popularity=popularity), stars=seed % 2 == 0)
    assert np.array_equal(duplicate_groups(data), np.arange(500))


def test_fans_of_series_are_no_duplicates():
    """Whoever follows a series has seen nearly all of it, and films besides."""
    rng = np.random.default_rng(5)
    popular = (1.0 + np.arange(60)) ** -0.7
    lists = []
    for _ in range(300):
        followed = rng.choice(60, rng.integers(1, 4), replace=False, p=popular / popular.sum())
        films = rng.choice(300, rng.integers(3, 20), replace=False) + 600
        lists.append(np.sort(np.concatenate([*(np.arange(10) + 10 * s for s in followed), films])))
    for stars in (True, False):
        accounts = DuplicateAccounts.of(ratings(lists, stars=stars))
        assert not accounts.notes()
        assert accounts.groups.size <= 2


def test_many_accounts_of_one_script_are_one_group():
    """More accounts than are compared pair by pair, which agree in their values."""
    lists = histories(9, users=200)
    rng = np.random.default_rng(3)
    values = rng.integers(1, 6, 300)
    rows = [(u, i, int(rng.integers(1, 6))) for u, x in enumerate(lists) for i in x.tolist()]
    copied = np.arange(0, 300, 7)
    rows += [(1000 + b, int(i), int(values[i])) for b in range(40) for i in copied]
    user, item, value = zip(*rows, strict=True)
    answer = us.splits.duplicate_users({"user": user, "item": item, "rating": value})
    assert answer.rows["n"].to_list() == [40]
    assert answer.rows["value"].to_list() == [1.0]
    assert answer.rows["examples"][0].to_list() == ["1000", "1001", "1002", "1003", "1004"]
    members = answer.parts["members"].rows
    assert members["user"].to_list() == [str(1000 + b) for b in range(40)]
    assert set(members["group"]) == {"1000"}
    groups = us.splits.user_groups({"user": user, "item": item, "rating": value})
    assert groups == dict.fromkeys(range(1000, 1040), 1000)
    assert answer.card["effective_users"] == pytest.approx(240**2 / (200 + 40**2))


def test_order_of_rows_changes_nothing():
    data = ratings(households(histories(2, users=40), 2)).to_polars()
    shuffled = data.sample(fraction=1.0, shuffle=True, seed=1)
    first, second = (us.splits.duplicate_users(frame) for frame in (data, shuffled))
    assert first.rows.equals(second.rows)


def test_parts_are_searched_together():
    """Halves of histories, drawn for each account by itself, show less than both together."""
    data = ratings(households(histories(4, users=100), 4))
    is_test = np.random.default_rng(0).random(len(data)) < 0.5
    test, train = data.take(is_test), data.take(~is_test)
    both = DuplicateAccounts.of(test, train)
    assert both.users == 500
    assert np.array_equal(both.first, duplicate_groups(data))


def test_few_ratings_are_not_compared():
    assert us.splits.user_groups({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2]}) == {}


@pytest.mark.parametrize("name", ["ml-100k", "ml-1m", "coat", "yahoo-r3", "cm100k"])
def test_real_data_are_clean(name):
    real_data(name)
    data = us.load(name)
    accounts = DuplicateAccounts.of(data.ratings)
    assert not accounts.notes()
    assert not accounts.busy_notes()
    assert accounts.groups.size <= 2


# Accounts that are busier than people


@pytest.mark.parametrize(("middle", "spread", "bot"), [(20, 0.8, 2_000), (50, 1.0, 20_000)])
def test_a_script_is_busier_than_people(middle, spread, bot):
    rng = np.random.default_rng(1)
    people = np.exp(rng.normal(np.log(middle), spread, 1000)).astype(np.int64) + 1
    assert people.max() < _limit(np.append(people, bot)) < bot


def test_people_are_not_busier_than_people():
    """Lognormal, geometric, Poisson, constant, and a power law: at most 2 % of data sets."""
    wrong = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        size = int(rng.choice([60, 300, 2000]))
        rows = (
            np.exp(rng.normal(3, 1.2, size)),
            rng.geometric(0.03, size),
            rng.poisson(20, size),
            np.full(size, 24.0),
            10 * rng.random(size) ** (-1 / 1.5),
        )[seed % 5].astype(np.int64) + 1
        wrong += (rows > _limit(rows)).any()
    assert wrong <= 6


def test_a_script_is_named():
    lists = histories(8, users=200, items=3000, low=10, high=30)
    data = ratings([*lists, np.arange(3000)], stars=False)
    answer = us.splits.duplicate_users(data)
    assert answer.parts["busy"].rows["user"].to_list() == ["200"]
    (note,) = answer.notes
    assert note.startswith("1 account has more ratings than a person gives, such as 200 with 3,000")
