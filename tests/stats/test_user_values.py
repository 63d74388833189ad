"""Values per user that other software gave: frames, files and mappings, wide and long."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import unskew as us
from shared.scores import some_scores
from unskew import DataError, SettingError
from unskew.stats.pairing import paired

WIDE = {"user": [3, 1, 2], "a": [0.5, 1.0, 0.0], "b": [0.25, 0.5, 1.0]}
LONG = {
    "system": ["a", "a", "a", "b", "b", "b"],
    "user": [1, 2, 3, 3, 2, 1],
    "value": [1.0, 0.0, 0.5, 0.25, 1.0, 0.5],
}
MATRIX = [[1.0, 0.5], [0.0, 1.0], [0.5, 0.25]]


def pandas_frame(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def arrow_table(columns):
    return pytest.importorskip("pyarrow").table(columns)


KINDS = [dict, pl.DataFrame, pl.LazyFrame, pandas_frame, arrow_table]


@pytest.fixture(scope="module")
def scores():
    return some_scores(metrics=("P@3", "DCG@5", "anti-P@3"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [WIDE, LONG])
def test_every_kind_of_table_gives_the_same_values(kind, columns):
    both = paired(kind(columns))
    assert (both.systems, both.metrics, both.better) == (
        ("a", "b"),
        ("value",),
        {"value": "higher"},
    )
    assert both.users.values.to_list() == [1, 2, 3]
    assert both.matrix("value").tolist() == MATRIX
    assert both.means("value") == [0.5, 1.75 / 3]


def test_several_metrics_in_columns_or_named_in_one():
    many = {**LONG, "Fallout@5": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    both = paired(many)
    assert both.metrics == ("value", "Fallout@5")
    assert both.better == {"value": "higher", "Fallout@5": "lower"}
    assert both.matrix("anti-Recall@5").tolist() == [[0.1, 0.6], [0.2, 0.5], [0.3, 0.4]]
    one = pl.DataFrame(many).unpivot(
        ["Fallout@5", "value"], index=["system", "user"], variable_name="metric", value_name="it"
    )
    again = paired(one)
    assert again.metrics == ("Fallout@5", "value")
    for metric in both.metrics:
        assert again.matrix(metric).tolist() == both.matrix(metric).tolist()


def test_a_file_of_values(tmp_path):
    pl.DataFrame(WIDE).write_csv(tmp_path / "values.csv")
    pl.DataFrame(LONG).write_parquet(tmp_path / "values.parquet")
    for name in ("values.csv", "values.parquet"):
        assert paired(tmp_path / name).matrix("value").tolist() == MATRIX


def test_the_order_of_rows_changes_nothing():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"user": range(50), "a": rng.random(50), "b": rng.random(50)})
    mixed = frame.sample(fraction=1, shuffle=True, seed=1)
    one, other = (us.compare(values, permutations=500) for values in (frame, mixed))
    assert one.table().equals(other.table())


def test_users_whom_no_mean_counts_are_left_out():
    test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    runs = {"a": {1: [20, 10], 2: [30], 3: [10]}, "b": {1: [10], 2: [10], 3: [30]}}
    train = {"user": [1, 3], "item": [40, 50], "rating": [5, 4]}
    scores = us.evaluate(test, runs, ["P@1", "RR"], liked=4, train=train)
    values = us.stats.paired(scores.per_user())
    assert values.metrics == ("P@1", "RR")
    assert values.notes == ("2 rows of users without test judgments left out",)
    for metric in values.metrics:
        assert np.array_equal(values.matrix(metric), us.stats.paired(scores).matrix(metric))


def test_scores_and_their_values_per_user_say_the_same(scores):
    """What `per_user` and `to_pandas` write is what every function reads."""
    frames = [scores.per_user(), scores.to_pandas()]
    for frame in frames:
        same = {"permutations": 300, "seed": 2}
        assert_frame_equal(us.compare(frame, **same).table(), us.compare(scores, **same).table())
        got, want = (us.stats.agreement(one, resamples=20) for one in (frame, scores))
        assert_frame_equal(got.table(), want.table())
        assert_frame_equal(
            us.stats.sample_size(frame).table(), us.stats.sample_size(scores).table()
        )
        got, want = (us.stats.power(one, test="t").table() for one in (frame, scores))
        assert_frame_equal(got, want)
        got, want = (
            us.stats.stability(us.stats.score_table(one, resamples=3)) for one in (frame, scores)
        )
        assert_frame_equal(got.table(), want.table())
        assert_frame_equal(got.parts["pairs"].table(), want.parts["pairs"].table())


def test_discriminative_power_of_values_of_scores_and_of_pandas_p_values(scores):
    want = us.stats.discriminative_power(us.compare(scores, correction=None)).table()
    assert us.stats.discriminative_power(scores).table().equals(want)
    assert us.stats.discriminative_power(scores.per_user()).table().equals(want)
    p = {"a": ["x", "x", "y"], "b": ["y", "z", "z"], "P": [0.5, 0.0, 0.01]}
    assert us.stats.discriminative_power(pandas_frame(p)).row().value == 0.51


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_means_and_of_runs(kind):
    by_system = {"system": ["a", "b", "c"], "P": [3, 2, 1], "RR": [3.0, 1, 2]}
    by_metric = {"metric": ["P", "RR"], "a": [3.0, 3], "b": [2.0, 1], "c": [1.0, 2]}
    one, other = us.stats.agreement(kind(by_system)), us.stats.agreement(kind(by_metric))
    assert one.table().equals(other.table())
    assert one.parts["means"].systems == other.parts["means"].systems == ["a", "b", "c"]
    assert one.row().value == pytest.approx(1 / 3)
    row = us.stats.agreement(kind(by_metric), ["RR", "P"]).row()
    assert row.keys == {"design": "RR", "against_design": "P"}
    rows = {"system": ["x", "y"] * 2, "seed": [0, 0, 1, 1], "score": [0.3, 0.2, 0.1, 0.2]}
    p = {"seed": [0, 1], "a": ["x", "x"], "b": ["y", "y"], "p": [0.01, 0.02]}
    pair = us.stats.stability(kind(rows), pvalues=kind(p)).pair("x", "y")
    assert (pair.facts["flips"], pair.facts["verdict"]) == (0.5, "contradicts")


def test_tables_by_name_are_conditions():
    other = {**WIDE, "a": [0.1, 0.1, 0.1]}
    found = us.stats.agreement({"here": WIDE, "there": pl.DataFrame(other)}, resamples=0)
    assert found.row().keys == {"design": "here", "against_design": "there"}
    means = found.parts["means"].rows["value"].to_list()
    assert means == pytest.approx([0.5, 1.75 / 3, 0.1, 1.75 / 3])


def test_own_metrics_have_a_name_and_a_side():
    both = paired(WIDE, metric="seconds", better="lower")
    found = us.compare(both)
    assert "seconds (lower is better), 3 users" in str(found)
    assert us.compare(paired(WIDE, metric="nDCL@5")).card["better"] == {"nDCL@5": "lower"}
    long = us.stats.score_table(both)
    assert long["metric"].to_list() == ["seconds"] * 2
    assert long["score"].to_list() == [-0.5, -1.75 / 3]  # higher is better, as `stability` reads it


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"user": [3, 1, 3]}, "the first: row 3 is of user 3, and so is row 1"),
        ({"user": [3, None, 2]}, "column 'user': 1 id is missing, the first in row 2"),
        ({"b": [0.1, None, 0.2]}, r"column 'b': 1 values are missing .* row 2 \(user 1\)"),
        ({"b": [0.1, 0.2, float("nan")]}, r"column 'b': 1 values .* row 3 \(user 2\)"),
        ({"b": [0.1, float("inf"), 0.2]}, "not finite, the first in row 2"),
        ({"b": ["x", "1", "y"]}, "2 values in column 'b' are not numbers, the first in row 1: 'x'"),
        ({"b": [[1], [2], [3]]}, "values in column 'b' must be numbers, got List"),
        ({"b": [0.1, 0.2]}, "columns differ in length"),
    ],
)
def test_errors_of_wide_tables(change, text):
    with pytest.raises(DataError, match=text):
        us.compare({**WIDE, **change})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"user": [1, 2, 3, 3, 2, 3]}, "row 6 is of user 3 and system 'b', and so is row 4"),
        ({"user": [1, 2, 3, 3, 2, 4]}, "2 of 8 .* user 1 has none of system 'b'"),
        ({"system": ["a", "a", None, "b", "b", "b"]}, "'system' is empty in 1 .* row 3"),
        ({"value": [1.0, 0.0, 0.5, None, 1.0, 0.5]}, r"'value': 1 values .* row 4 \(user 3\)"),
        ({"anchor": [1] * 6}, "column 'anchor' says that these are values per list"),
        ({"P/den": [1] * 6}, "P is a ratio of sums"),
        ({"metric": ["P"] * 6, "more": [1] * 6}, "is needed, there are: value, more"),
        ({"metric": ["P"] * 5 + ["R"]}, "P: 1 of 6 .* user 1 has none of system 'b'"),
    ],
)
def test_errors_of_long_tables(change, text):
    with pytest.raises(DataError, match=text):
        us.compare({**LONG, **change})


def test_errors_of_values():
    pandas = pytest.importorskip("pandas")
    indexed = pandas.DataFrame(WIDE).set_index("user")
    with pytest.raises(DataError, match=r"no user column found among: a, b; .*reset_index"):
        us.compare(indexed)
    assert us.compare(indexed.reset_index()).card["users"] == {"value": 3}
    with pytest.raises(DataError, match="there are no rows"):
        us.compare(pl.DataFrame(WIDE).head(0))
    with pytest.raises(DataError, match="a list is taken as the scores of several folds, and dict"):
        us.compare([WIDE])
    with pytest.raises(DataError, match="cannot read int: give a path"):
        us.compare(3)
    with pytest.raises(SettingError, match=r"'P@5' cannot be chosen; name .*metric='P@5'"):
        us.compare(WIDE, "P@5")
    with pytest.raises(SettingError, match=r"unknown metric of these values 'P'.*value, RR"):
        us.compare({**LONG, "RR": LONG["value"]}, "P")
    with pytest.raises(
        SettingError, match="metric=… names values without a name; these are named: value, RR"
    ):
        paired({**LONG, "RR": LONG["value"]}, metric="P")
    with pytest.raises(SettingError, match="unknown better 'up'"):
        paired(WIDE, better="up")
    with pytest.raises(SettingError, match="scores already have them"):
        paired(some_scores(), better="lower")
    with pytest.raises(SettingError, match="one system only"):
        us.compare({"user": [1, 2], "a": [1.0, 2.0]})
