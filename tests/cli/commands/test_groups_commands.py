"""`unskew groups` and `unskew distribution`: groups of users and items, curves, lexirecall."""

import json

import numpy as np
import polars as pl
import pytest

import unskew as us


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write judgments, lists of two systems, and a column of users and of items."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    liked = rng.random((90, 20)) < 0.2
    user, item = np.nonzero(liked)
    pl.DataFrame({"user": user, "item": item, "rating": np.full(user.size, 5)}).write_csv(
        "test.csv"
    )
    for name, strength in (("a", 2.0), ("b", 0.5)):
        order = np.argsort(-(strength * liked + rng.gumbel(0, 1, liked.shape)), 1)[:, :8]
        run = {"user": np.repeat(np.arange(90), 8), "item": order.ravel()}
        pl.DataFrame({**run, "rank": np.tile(np.arange(1, 9), 90)}).write_csv(f"{name}.csv")
    land = np.repeat(["de", "fr", "it"], 30)
    pl.DataFrame({"user": np.arange(90), "land": land}).write_csv("users.csv")
    pl.DataFrame({"item": np.arange(20), "kind": ["old", "new"] * 10}).write_csv("items.csv")
    return ("-j", "test.csv", "-r", "a.csv", "-r", "b.csv", "--liked", "4")


def test_groups_of_users_are_those_of_the_function(files, call):
    words = ("groups", *files, "-m", "P@5", "--by", "users.csv:land", "--against", "best")
    code, out, _ = call(*words, "--format", "json", "--figure", "g.svg", "-q")
    assert code == 0
    judged = us.judge("test.csv", {"a": "a.csv", "b": "b.csv"}, liked=4)
    expected = us.stats.group_gaps(judged, "users.csv:land", "P@5", against="best")
    assert json.loads(out)["rows"] == expected.to_dict()["rows"]
    assert json.loads(out)["parts"] == expected.to_dict()["parts"]
    code, out, _ = call(*words)
    assert code == 0
    assert "P@5: the worst group" in out


def test_groups_of_items(files, call):
    words = ("groups", *files, "--by-items", "items.csv:kind", "--places", "5")
    code, out, _ = call(*words, "--format", "json", "-q")
    assert code == 0
    judged = us.judge("test.csv", {"a": "a.csv", "b": "b.csv"}, liked=4)
    expected = us.stats.item_group_gaps(judged, "items.csv:kind", 5)
    assert json.loads(out)["rows"] == expected.to_dict()["rows"]


def test_distribution_and_lexirecall(files, call):
    code, out, _ = call("distribution", *files, "-m", "P@5", "--figure", "q.svg")
    assert code == 0
    assert "P@5: users who gain and lose" in out
    code, out, _ = call("distribution", *files, "--lexirecall", "--format", "json", "-q")
    assert code == 0
    judged = us.judge("test.csv", {"a": "a.csv", "b": "b.csv"}, liked=4)
    assert json.loads(out)["rows"] == us.stats.lexirecall(judged).to_dict()["rows"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("groups",), "give --by for groups of users"),
        (("groups", "--by", "users.csv:land", "--by-items", "popularity"), "give --by"),
        (("groups", "--by", "users.csv:land", "--against", "uk"), "against"),
        (("groups", "--by", "users.csv:land", "--places", "5"), "--places is for --by-items"),
        (("groups", "--by-items", "popularity", "-m", "P@5"), "--metric is for groups of users"),
        (("groups", "--by-items", "users.csv:land"), "no column of items"),
        (("distribution", "--lexirecall", "-m", "P@5"), "--metric does nothing"),
        (("distribution", "--against", "c"), "against"),
    ],
)
def test_wrong_words(files, call, words, message):
    code, _, messages = call(words[0], *files, *words[1:])
    assert code
    assert message in messages
