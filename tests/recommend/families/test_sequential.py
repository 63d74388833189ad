"""Recommenders that see the order of events: plain twins of their formulas, planted chains."""

import math
from itertools import pairwise

import numpy as np
import pytest

import unskew as us
from shared.ratings import numbered_ratings, random_cells, ratings, timed
from unskew.data import Histories
from unskew.data.events import user_histories
from unskew.recommend import MarkovChain, RecentItemKNN, RecentPopularity

DAY = 86_400_000_000


def train_of(seed=0, users=12, items=9, rows=60):
    return timed(numbered_ratings(random_cells(seed, users, items, rows), users + 1, items + 1), 3)


def sequence(train, user):
    rows = np.arange(train.start[user], train.start[user + 1])
    return [int(train.item[r]) for r in sorted(rows, key=lambda r: (train.time[r], train.item[r]))]


def histories(*several):
    start = np.append(0, np.cumsum([len(one) for one in several])).astype(np.int64)
    item = np.array([i for one in several for i in one], np.int32)
    return Histories(start, item, np.arange(item.size, dtype=np.int64))


def test_histories_are_in_order_of_time():
    train = ratings([(1, 7, 5, 30), (1, 8, 4, 10), (1, 9, 3, 10), (2, 7, 2, 5)])
    history = user_histories(train, "this")
    assert [history.of(n).tolist() for n in range(2)] == [[1, 2, 0], [0]]
    assert [history.last(2).of(n).tolist() for n in range(2)] == [[2, 0], [0]]
    with pytest.raises(us.DataError, match="this needs time stamps"):
        user_histories(ratings([(1, 7, 5)]), "this")


def plain_chain(train, smoothing, last):
    items = len(train.items)
    count = np.zeros((items, items))
    for user in range(len(train.users)):
        seen = sequence(train, user)
        for before, after in pairwise(seen):
            count[before, after] += 1
    popularity = np.bincount(train.item, minlength=items) / len(train)
    row = (count[last] + smoothing * popularity) / (count[last].sum() + smoothing)
    return np.where(popularity > 0, row, np.nan)


@pytest.mark.parametrize("smoothing", [0.1, 1.0, 50.0])
def test_markov_chain_is_its_plain_twin(smoothing):
    train = train_of()
    model = MarkovChain(smoothing).fit(train)
    tile = model.score(np.arange(len(train.users), dtype=np.int32))
    for user in range(len(train.users)):
        seen = sequence(train, user)
        expected = plain_chain(train, smoothing, seen[-1]) if seen else np.full(10, np.nan)
        np.testing.assert_allclose(tile[user], expected, rtol=1e-12)
    following = model.score_next(histories([3, 1], [], [1, 1, 4]))
    np.testing.assert_allclose(following[0], plain_chain(train, smoothing, 1), rtol=1e-12)
    assert np.isnan(following[1]).all()
    np.testing.assert_allclose(following[2], plain_chain(train, smoothing, 4), rtol=1e-12)


def plain_neighbours(train, k, half_life, recent, seen):
    items = len(train.items)
    rated = np.zeros((len(train.users), items))
    rated[train.user, train.item] = 1
    norm = np.sqrt(rated.sum(axis=0))
    cosine = rated.T @ rated / np.maximum(np.outer(norm, norm), 1e-300)
    np.fill_diagonal(cosine, 0)
    score = np.full(items, np.nan)
    for behind, item in enumerate(reversed(seen[-recent:])):
        near = sorted(np.flatnonzero(cosine[item] > 0), key=lambda j: (-cosine[item, j], j))[:k]
        for j in near:
            before = 0.0 if math.isnan(score[j]) else score[j]
            score[j] = before + 0.5 ** (behind / half_life) * cosine[item, j]
    return score


@pytest.mark.parametrize(("k", "half_life", "recent"), [(3, 2.0, 50), (20, 0.5, 2), (5, 10.0, 3)])
def test_recent_item_knn_is_its_plain_twin(k, half_life, recent):
    train = train_of(1)
    model = RecentItemKNN(k=k, half_life=half_life, recent=recent).fit(train)
    tile = model.score(np.arange(len(train.users), dtype=np.int32))
    for user in range(len(train.users)):
        expected = plain_neighbours(train, k, half_life, recent, sequence(train, user))
        np.testing.assert_allclose(tile[user], expected, rtol=1e-12)
    several = [[3, 1, 3, 2], [], [0], [5, 4, 3, 2, 1, 0]]
    following = model.score_next(histories(*several))
    for row, seen in zip(following, several, strict=True):
        expected = plain_neighbours(train, k, half_life, recent, seen)
        np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_recent_popularity_counts_the_last_days():
    rows = [(1, 7, 5, 0), (2, 7, 5, 1), (3, 7, 5, 2), (1, 8, 1, 86_400 * 9), (2, 9, 4, 86_400 * 10)]
    train = ratings(rows)
    users = np.zeros(1, np.int32)
    assert RecentPopularity(days=2).fit(train).score(users)[0] == pytest.approx([0, 1, 1], abs=1e-8)
    assert RecentPopularity(days=0.5).fit(train).score(users)[0] == pytest.approx(
        [0, 0, 1], abs=1e-8
    )
    whole = RecentPopularity(days=100).fit(train).score(users)[0]
    assert whole == pytest.approx(us.recommend.Popularity().fit(train).score(users)[0], abs=1e-8)
    # What was not rated lately is ordered by all ratings.
    last = RecentPopularity(days=0.5).fit(train).score(users)[0]
    assert last[2] > last[0] > last[1]


@pytest.mark.parametrize("kind", [MarkovChain, RecentItemKNN, RecentPopularity])
def test_without_times_there_is_a_message(kind):
    train = numbered_ratings(random_cells(), 7, 9)
    with pytest.raises(us.DataError, match=rf"{kind.name} needs time stamps.*time=…"):
        kind().fit(train)
    assert kind.needs_time


def test_a_planted_chain_is_learned():
    """Items follow each other in a ring, whatever the user: the next one comes first."""
    rows = [
        (u, (u + step) % 30, 1.0, 60 * step + u) for u in range(200) for step in range(u % 7 + 2)
    ]
    train = ratings(rows)
    model = MarkovChain().fit(train)
    following = model.score_next(histories(*[[i] for i in range(30)]))
    assert (np.nanargmax(following, axis=1) == (np.arange(30) + 1) % 30).all()


@pytest.mark.parametrize("algorithm", [MarkovChain(), RecentItemKNN(k=3)])
def test_rows_do_not_depend_on_what_stands_beside(algorithm):
    model = algorithm.fit(train_of(2))
    rng = np.random.default_rng(0)
    several = [rng.integers(9, size=rng.integers(0, 7)).tolist() for _ in range(300)]
    whole = model.score_next(histories(*several))
    for at in (0, 100, 299):
        assert whole[at].tobytes() == model.score_next(histories(several[at]))[0].tobytes()
