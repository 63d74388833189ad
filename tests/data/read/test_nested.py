"""Ragged, nested and axis-less arrays: an error of ours that names the row, never one of numpy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unskew as us

RAGGED = np.empty(2, dtype=object)
RAGGED[:] = [[1, 2], [3]]
SQUARE = np.empty(2, dtype=object)
SQUARE[:] = [[1, 2], [3, 4]]


def arrays(items, scores=None, users=(1, 2)):
    return us.Run.from_arrays(users, items, scores)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([[1, 2], [3]], "items: row 2 has 1 cell, row 1 has 2; rows must be of one length: fill"),
        ([[], [3]], "items: row 2 has 1 cell, row 1 has 0"),
        ([[1], []], "items: row 2 has 0 cells, row 1 has 1"),
        (RAGGED, "items: row 2 has 1 cell, row 1 has 2"),
        ([np.array([1, 2]), np.array([3])], "items: row 2 has 1 cell, row 1 has 2"),
        ([[1, 2], 3], "items: row 2 is 3, not a list"),
        ([None, [1, 2]], "items: row 1 is None, not a list"),
        ([[[1], [2]], [[3], [4, 5]]], r"items: row 1, column 1 is \[1\]; each cell must hold one"),
        ([["a", ["b"]], ["c", "d"]], r"items: row 1, column 2 is \['b'\]"),
        (np.zeros((2, 2, 2), int), r"got items \(2, 2, 2\) and users \(2,\)"),
        (np.array(5), r"got items \(\) and users \(2,\)"),
        (5, r"got items \(\) and users \(2,\)"),
        ([1, 2], r"got items \(2,\) and users \(2,\)"),
        (np.array([[1, None], [2, "a"]], dtype=object), r"mixes .* \(int in row 1, str in row 3\)"),
        ([[{"a": 1}, 2], [3, 4]], r"mixes .* \(dict in row 1, int in row 2\)"),
    ],
)
def test_items_that_are_no_matrix(items, message):
    with pytest.raises(us.DataError, match=message):
        arrays(items)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (
            [[1.0, 2.0], [3.0]],
            "scores: row 2 has 1 cell, row 1 has 2; .* up with NaN",
        ),
        ([[1.0, 2.0], 3.0], "scores: row 2 is 3.0, not a list"),
        (RAGGED, "scores: row 2 has 1 cell, row 1 has 2"),
        ([[1.0, [2.0]], [3.0, 4.0]], r"scores: row 1, column 2 is \[2.0\]"),
        (np.zeros((2, 2, 2)), r"scores \(2, 2, 2\) and items \(2, 2\) differ in shape"),
        (np.array(1.0), r"scores \(\) and items \(2, 2\) differ in shape"),
        ([[1.0, 2.0], [3.0, "a"]], "scores: row 1, column 1 holds '1.0', which is no number"),
        ([[1.0, 2.0], [3.0, 4j]], r"scores: row 1, column 1 holds \(1\+0j\), which is no number"),
    ],
)
def test_scores_that_are_no_matrix_of_numbers(scores, message):
    with pytest.raises(us.DataError, match=message):
        arrays([[1, 2], [3, 4]], scores)


def test_users_that_are_no_row():
    with pytest.raises(us.DataError, match="users: row 2 has 2 cells, row 1 has 1"):
        arrays([[1, 2], [3, 4]], users=[[1], [2, 3]])
    with pytest.raises(us.DataError, match=r"users \(\)"):
        arrays([[1, 2]], users=1)


def test_arrays_of_lists_of_one_length_are_a_matrix():
    expected = {"user": [1, 1, 2, 2], "item": [1, 2, 3, 4], "rank": [1, 2, 1, 2]}
    assert arrays(SQUARE).to_polars().to_dict(as_series=False) == expected
    scored = arrays(SQUARE, [[2, None], [4, 3]]).to_polars()
    assert scored["item"].to_list() == [1, 2, 3, 4]


@pytest.mark.parametrize("what", ["user", "item", "rating"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1, 2], [3]], r"{}.* got List\(Int64\) in row 1 \(\[1, 2\]\)"),
        ([None, [3]], r"{}.* (got List\(Int64\) in row 2 \(\[3\]\)|1 id is missing)"),
        (RAGGED, r"{}.* got List\(Int64\) in row 1 \(\[1, 2\]\)"),
        (np.zeros((2, 3), int), r"{}.* got Array\(Int64, shape=\(3,\)\) in row 1 \(\[0, 0, 0\]\)"),
        (np.zeros((2, 2, 2), int), r"{}.* got Array\(Int64, shape=\(2, 2\)\) in row 1"),
        ([[[1], [2, 3]], [[4]]], r"{}.* got List\(List\(Int64\)\) in row 1 \(\[\[1\], \[2, 3\]\]"),
        ([1, [3]], r"column '{}' mixes values of several types \(int in row 1, list in row 2\)"),
        ([[3], 1], r"column '{}' mixes values of several types \(list in row 1, int in row 2\)"),
        (np.array(3), r"column '{}': expected an array or a list, got array\(3\)"),
    ],
)
def test_columns_of_ratings_that_are_no_columns(what, values, message):
    columns = {"user": [1, 2], "item": [1, 2], "rating": [4, 5], what: values}
    with pytest.raises(us.DataError, match=message.format(what)):
        us.read_ratings(columns)


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_frames_of_ratings_with_lists(kind):
    frame = kind({"user": [1, 2], "item": [[1, 2], [3]], "rating": [4, 5]})
    with pytest.raises(us.DataError, match=r"column 'item': .* got List\(Int64\) in row 1"):
        us.read_ratings(frame)


@pytest.mark.parametrize("kind", [dict, pl.DataFrame, pd.DataFrame])
def test_a_column_of_lists_is_a_run(kind):
    run = us.read_run(kind({"user": [1, 2], "item": [[5, 6], [7]], "score": [[1.0, 2.0], [3.0]]}))
    assert run.to_polars().rows() == [(1, 6, 1, 2.0), (1, 5, 2, 1.0), (2, 7, 1, 3.0)]
    ragged = kind({"user": [1, 2], "item": [[5, 6], [7]], "score": [[1.0, 2.0], [3.0, 4.0]]})
    with pytest.raises(us.DataError, match="lists of row 2 differ in length: 1 in 'item', 2 in 's"):
        us.read_run(ragged)


def test_an_array_of_lists_is_a_column_of_lists():
    assert us.read_run({"user": [1, 2], "item": RAGGED}).depth.tolist() == [2, 1]


def test_ranks_of_a_column_of_lists_count():
    """They were ignored, and the order of the items taken for the ranking."""
    run = us.read_run({"user": [1, 2], "item": [["a", "b"], ["c"]], "rank": [[2, 1], [1]]})
    assert run.to_polars()["item"].to_list() == ["b", "a", "c"]
    with pytest.raises(us.DataError, match="lists of row 1 differ in length: 2 in 'item', 1 in 'r"):
        us.read_run({"user": [1, 2], "item": [["a", "b"], ["c"]], "rank": [[1], [1]]})


@pytest.mark.parametrize("what", ["score", "rank"])
def test_one_value_for_a_list_of_items_is_refused(what):
    """It was ignored."""
    columns = {"user": [1, 2], "item": [[5, 6], [7]], what: [1, 2]}
    with pytest.raises(us.DataError, match=f"'item' holds lists, but column '{what}' one value"):
        us.read_run(columns)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({1: [[1, 2], [3]], 2: [[1]]}, r"user 1: .* but one item is \[1, 2\]"),
        ({1: np.array([[1, 2], [3, 4]])}, r"user 1: .* got array\(\[\[1, 2\], \[3, 4\]\]\)"),
        ({1: np.array(3)}, r"user 1: expected a list of items, got array\(3\)"),
        ({1: np.zeros((2, 2, 2))}, "user 1: expected a list of items, got array"),
        ({1: RAGGED}, r"user 1: .* but one item is \[1, 2\]"),
        ({1: [1], 2: [[1, 2]]}, r"mixes values .* \(int in row 1, list in row 2\)"),
        ({1: {"a": [1, 2]}}, r"scores in column 'score' must be numbers, got List"),
    ],
)
def test_lists_of_lists_are_no_lists_of_items(lists, message):
    """Those of the first kinds were joined into one list."""
    with pytest.raises(us.DataError, match=message):
        us.read_run(lists)


@pytest.mark.parametrize("items", [np.array(4), [[1, 2], [3]], np.zeros((2, 2), int), [1, "a"]])
def test_catalogues_that_are_no_column(items):
    test = {"user": [1, 2], "item": [1, 2], "rating": [5, 5]}
    with pytest.raises(us.DataError, match=r"items must be|column 'item'"):
        us.evaluate(test, {"x": {1: [1]}}, "Coverage@1", liked=4, items=items)


def test_a_function_with_ragged_scores():
    (split,) = us.splits.Random(test=0.3).split(us.world("shop", users=20, items=10).ratings)
    lists = us.targets.AllItems().lists(split, liked=4)
    message = "score: row 2 has 1 cell, row 1 has 2; .* fill short ones up with NaN"
    with pytest.raises(us.DataError, match=message):
        us.evaluate(lists, {"x": lambda _: [[1, 2], [3]]}, "P@2")
