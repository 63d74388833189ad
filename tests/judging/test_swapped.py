"""Ranked lists that are given as test ratings are refused; honest ratings are not."""

import pytest

import unskew as us

USERS, ITEMS = 60, 8
RANKS = {
    "user": [user for user in range(USERS) for _ in range(ITEMS)],
    "item": [(user + place) % 40 for user in range(USERS) for place in range(ITEMS)],
    "rating": [place + 1 for _ in range(USERS) for place in range(ITEMS)],
}
LISTS = {"mine": {user: list(range(10)) for user in range(USERS)}}


def test_ranks_in_the_place_of_ratings_are_refused():
    with pytest.raises(us.DataError, match="look like ranked lists: the values of each user are"):
        us.judge(RANKS, LISTS, liked=4)


def test_ratings_with_ties_are_taken():
    ratings = {**RANKS, "rating": [1 + rank % 5 for rank in RANKS["rating"]]}
    us.judge(ratings, LISTS, liked=4)


def test_few_users_may_rate_so():
    few = {name: values[: 2 * ITEMS] for name, values in RANKS.items()}
    us.judge(few, LISTS, liked=4)
