"""Columns of ratings and kinds of events: by name, by values, or asked for."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.data.read.rating_columns import _values

USERS, ITEMS = [1, 1, 2, 2], ["a", "b", "a", "b"]


def read(options=None, **columns):
    return us.read_ratings({"user": USERS, "item": ITEMS, **columns}, **(options or {}))


def test_opinions_win_over_other_feedback_and_the_note_names_it():
    ratings = read(overall=[5, 4, 1, 2], vote=[3, 0, 0, 9], clicks=[1, 1, 1, 1])
    assert sorted(ratings.value) == [1, 2, 4, 5]
    assert any("not used: 'vote', 'clicks'" in note for note in ratings.notes)


@pytest.mark.parametrize(
    "columns",
    [
        {"like": [1, 0, 1, 0], "share": [0, 0, 1, 0], "follow": [1, 1, 0, 0]},
        {"food_rating": [1, 2, 3, 4], "service_rating": [5, 4, 3, 2]},
        {"views": [1, 2, 3, 4], "clicks": [0, 1, 1, 0]},
        {"spass": [1, 2, 3, 4], "laune": [2, 2, 3, 3]},
    ],
)
def test_of_several_columns_none_is_chosen(columns):
    with pytest.raises(us.DataError, match="which column is the rating") as problem:
        read(**columns)
    assert "rating=" in str(problem.value)
    assert "feedback='implicit'" in str(problem.value)
    assert read({"feedback": "implicit"}, **columns).implicit


def test_overall_wins_over_its_parts():
    ratings = read(review_overall=[5, 4, 1, 2], review_taste_rating=[1, 1, 1, 2])
    assert sorted(ratings.value) == [1, 2, 4, 5]


@pytest.mark.parametrize("name", ["avg_rating", "price", "year", "category_id", "fold", "age"])
def test_attributes_are_no_ratings(name):
    ratings = read(**{name: [1, 2, 3, 4]})
    assert ratings.implicit
    assert f"not used: '{name}'" in " ".join(ratings.notes)


def test_zeros_of_a_count_are_no_likes():
    ratings = read(plays=[0, 2, 3, 0])
    assert not ratings.implicit


def test_kinds_of_events_are_counted_chosen_and_weighted():
    log = {"user": [1, 1, 1, 2], "item": [7, 7, 8, 8], "action": ["view", "buy", "view", "view"]}
    every = us.read_ratings(log)
    assert every.implicit
    assert every.value.tolist() == [2, 1, 1]
    assert every.notes[0].startswith("arrays: every event counts alike, whatever its kind")
    assert "view 3, buy 1" in every.notes[0]
    bought = us.read_ratings(log, events="buy")
    assert (len(bought), bought.value.tolist()) == (1, [1])
    assert "left out: view 3" in bought.notes[0]
    weighted = us.read_ratings(log, weights={"view": 1, "buy": 5})
    assert weighted.value.tolist() == [6, 1, 1]


def test_events_are_chosen_wherever_a_log_is_taken():
    log = {"user": [1, 1, 2], "item": [7, 8, 8], "event": ["buy", "view", "buy"]}
    runs = {"mine": {1: [8, 7], 2: [8, 9]}}
    judged = us.judge(log, runs, events="buy", train={"user": [1], "item": [9]})
    assert us.evaluate(judged, "P@1").means()["mine"]["P@1"] == 0.5
    scores = us.evaluate(log, runs, "P@1", weights={"buy": 2, "view": 0})
    assert scores.means()["mine"]["P@1"] == 0.5
    with pytest.raises(us.DataError, match="needs a column that says what kind"):
        us.evaluate({"user": [1], "item": [7]}, runs, "P@1", events="buy")


def test_a_user_with_far_more_events_than_others_is_named():
    rng = np.random.default_rng(1)
    user = [f"u{number}" for number in rng.integers(0, 60, 900)] + ["bot"] * 2000
    item = rng.integers(0, 5000, 2900)
    log = us.read_ratings({"user": user, "item": item}, duplicates="count")
    assert any("user 'bot' has far more events" in note for note in log.notes)
    usual = us.read_ratings({"user": user[:900], "item": item[:900]}, duplicates="count")
    assert not any("far more events" in note for note in usual.notes)


TEST = {
    "user": np.repeat(range(8), 4),
    "item": np.tile([1, 2, 3, 4], 8),
    "rating": np.tile([5, 1, 4, 2], 8),
}


def ranked(column):
    values = {"rank": np.tile(range(1, 6), 8), "score": np.tile([0.93, 0.61, 0.44, 0.3, 0.07], 8)}
    return {
        "user": np.repeat(range(8), 5),
        "item": np.tile([1, 2, 5, 6, 7], 8),
        column: values[column],
    }


@pytest.mark.parametrize("column", ["rank", "score"])
def test_swapped_ratings_and_lists_are_refused(column):
    with pytest.raises(us.DataError, match="swapped"):
        us.evaluate(ranked(column), {"mine": TEST}, "P@2", liked=4)
    with pytest.raises(us.DataError, match="look like ranked lists"):
        us.read_ratings(ranked(column))
    with pytest.raises(us.DataError, match="look like ratings"):
        us.read_run(TEST)
    assert us.evaluate(TEST, {"mine": ranked(column)}, "P@2", liked=4).means()["mine"]["P@2"] == 0.5


def test_ranks_in_the_place_of_ratings_are_refused():
    lists = {**ranked("rank"), "rating": ranked("rank")["rank"]}
    del lists["rank"]
    runs = {"mine": {user: [1, 2] for user in range(8)}}
    with pytest.raises(us.DataError, match="the values of each user are the ranks"):
        us.evaluate(lists, runs, "P@2", liked=4)


def test_lists_without_ranks_in_the_place_of_ratings_are_refused():
    lists = {"user": np.repeat(range(8), 5), "item": np.tile([1, 2, 5, 6, 7], 8)}
    runs = {"mine": {user: [1, *range(40 - user, 50)] for user in range(8)}}
    with pytest.raises(us.DataError, match=r"every user has 5 of them, .* are not among the test"):
        us.evaluate(lists, runs, "P@2")
    known = {"user": [99] * 60, "item": range(60)}
    us.evaluate(lists, runs, "P@2", train=known)  # the items are known


def test_values_of_a_column_are_shown_as_they_are_written():
    assert _values(pl.Series([2.5, 1.0, None, 1.0])) == "1, 2.5"
    assert _values(pl.Series(["no", "yes", "no"])) == "no, yes"
    assert _values(pl.Series(range(3, 10))) == "from 3 to 9"
