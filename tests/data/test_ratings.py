"""`Ids` and `Ratings`: numbering, order, duplicates, and what is refused."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from unskew import Ratings
from unskew.arrays import frozen
from unskew.data import Ids
from unskew.data.groups import grouped_order, sort_groups
from unskew.ties import order_by_rank

SMALL, LARGE = -(2**63), 2**63 - 1


def numbered(raw, dtype=None):
    """Return the distinct ids and the numbers of a column, both as lists."""
    ids, codes = Ids.number(pl.Series("id", raw, dtype=dtype))
    return ids.values.to_list(), codes.tolist()


def ratings(rows, **settings):
    """Make ratings of (user, item, value) rows."""
    user, item, value = zip(*rows, strict=True)
    columns = pl.Series("user", user), pl.Series("item", item), pl.Series("rating", value)
    return Ratings.of(*columns, **settings)


# Ids


def test_integers_are_numbered_by_value():
    assert numbered([10, 9, 2, 10]) == ([2, 9, 10], [2, 1, 0, 2])


def test_text_is_numbered_by_code_point():
    """Capitals before small letters, "10" before "9", é (U+00E9) after z, 日 last."""
    raw = ["é", "b", "10", "日", "B", "9", "z", "b"]
    assert numbered(raw) == (["10", "9", "B", "b", "z", "é", "日"], [5, 3, 0, 6, 2, 1, 4, 3])
    assert sorted(set(raw)) == numbered(raw)[0]  # Python compares strings by code point too


def test_long_runs_of_one_id_are_numbered_alike():
    """Grouped text takes a short cut; it must not be seen in the result."""
    raw = ["z"] * 50 + ["a"] * 50 + ["z"] * 5
    assert numbered(raw) == (["a", "z"], [1] * 50 + [0] * 50 + [1] * 5)


def test_negative_ids():
    assert numbered([3, -7, 0, -7]) == ([-7, 0, 3], [2, 0, 1, 0])


def test_sparse_64_bit_ids():
    """A span too wide for a table goes through the hash, up to both ends of 64 bits."""
    raw = [LARGE, 5, SMALL, -1, 5, LARGE]
    assert numbered(raw) == ([SMALL, -1, 5, LARGE], [3, 2, 0, 1, 2, 3])


@pytest.mark.parametrize("low", [0, 2**31 - 2, 2**32 - 1, 5_000_000_000, LARGE - 3, SMALL])
@pytest.mark.parametrize("gap", [False, True])
def test_consecutive_ids_wherever_they_start(low, gap):
    raw = [low + 3, low, low + 1] if gap else [low + 2, low, low + 1]
    assert numbered(raw) == (sorted(raw), [2, 0, 1])


@given(st.lists(st.integers(SMALL, LARGE) | st.integers(-3, 3), min_size=1, max_size=60))
def test_any_integers_are_numbered_in_sorted_order(raw):
    distinct, codes = numbered(raw, pl.Int64)
    assert distinct == sorted(set(raw))
    assert [distinct[code] for code in codes] == raw


def test_hash_grows_with_many_ids():
    """More distinct ids than the hash's first table holds (4,096, doubled at half load)."""
    raw = np.random.default_rng(1).integers(SMALL, LARGE, 20_000)
    ids, codes = Ids.number(pl.Series(np.concatenate([raw, raw[::-1]])))
    distinct, inverse = np.unique(raw, return_inverse=True)
    np.testing.assert_array_equal(ids.values.to_numpy(), distinct)
    np.testing.assert_array_equal(codes, np.concatenate([inverse, inverse[::-1]]))


@given(st.lists(st.text(max_size=4), min_size=1, max_size=40))
def test_any_text_makes_a_round_trip(raw):
    ids, codes = Ids.number(pl.Series(raw, dtype=pl.String))
    assert ids.values.to_list() == sorted(set(raw))
    assert ids.raw(codes).to_list() == raw
    assert ids.codes(pl.Series(raw, dtype=pl.String)).tolist() == codes.tolist()


WORDS = st.lists(st.sampled_from(["a", "b", "B", "é", "10", "9", "", "日"]), min_size=1)


@given(WORDS, WORDS)
def test_likely_ids_change_nothing(raw, likely):
    series = pl.Series("id", raw)
    ids, codes = Ids.number(series)
    guessed, guesses = Ids.number(series, Ids.number(pl.Series(likely))[0])
    assert guessed.equals(ids)
    assert guesses.tolist() == codes.tolist()
    assert guesses.dtype == codes.dtype


def test_whole_floats_are_integers_and_unsigned_beyond_64_bits_is_text():
    assert numbered([3.0, -1.0]) == ([-1, 3], [1, 0])
    assert numbered([2**63, 2**64 - 1], pl.UInt64) == (
        ["18446744073709551615", "9223372036854775808"],
        [1, 0],
    )
    assert numbered([2**63 - 1], pl.UInt64) == ([2**63 - 1], [0])


def test_unknown_ids_have_the_number_minus_one():
    ids, _ = Ids.number(pl.Series([10, 20]))
    assert ids.codes([20, 15, 10]).tolist() == [1, -1, 0]
    assert ids.codes(["20", "x"]).tolist() == [1, -1]
    text, _ = Ids.number(pl.Series(["a", "b"]))
    assert text.codes(["b", "c"]).tolist() == [1, -1]


def test_union_of_alike_ids():
    first, second = Ids.number(pl.Series([1, 5]))[0], Ids.number(pl.Series([5, 3]))[0]
    both, (one, two) = Ids.union(first, second)
    assert both.values.to_list() == [1, 3, 5]
    assert (one.tolist(), two.tolist()) == ([0, 2], [1, 2])
    assert Ids.union(first, first)[0].equals(first)


def test_canonical_decimals_match_integers():
    integers, text = Ids.number(pl.Series([10, 9, -2]))[0], Ids.number(pl.Series(["9", "-2"]))[0]
    both, (one, two) = Ids.union(integers, text)
    assert both.kind == "integer"
    assert both.values.to_list() == [-2, 9, 10]
    assert (one.tolist(), two.tolist()) == ([0, 1, 2], [0, 1])  # text: "-2", "9"


@pytest.mark.parametrize("odd", ["007", "+7", "7.0", " 7", "-0", "", "x"])
def test_one_text_id_that_is_no_canonical_decimal_makes_all_text(odd):
    integers, text = Ids.number(pl.Series([7, 10, 9]))[0], Ids.number(pl.Series(["9", odd]))[0]
    both, (one, two) = Ids.union(integers, text)
    assert both.kind == "text"
    assert both.values.to_list() == sorted(["7", "10", "9", odd])
    # 9 meets "9" all the same; 7 does not meet what only looks like it
    assert both.raw(one).to_list() == ["7", "9", "10"]
    assert both.raw(two).to_list() == sorted(["9", odd])


@pytest.mark.parametrize("bad", [[1, None], ["a", None], [1.0, float("nan")]])
def test_missing_ids_are_refused(bad):
    with pytest.raises(us.DataError, match=r"column 'who': 1 id is missing, the first in row 2"):
        Ids.number(pl.Series("who", bad))


def test_fractional_ids_are_refused():
    with pytest.raises(us.DataError, match=r"'who': ids must be whole .* row 3 has 2\.5"):
        Ids.number(pl.Series("who", [1.0, 2.0, 2.5]))


@pytest.mark.parametrize("bad", [float("inf"), 1e300, 2.0**53 + 2, -(2.0**62)])
def test_float_ids_that_fit_no_integer_are_refused(bad):
    with pytest.raises(us.DataError, match=r"'who': ids must be whole .* row 2 has"):
        Ids.number(pl.Series("who", [1.0, bad]))


# Ratings

ROWS = [("b", 2, 1.0), ("a", 10, 5.0), ("b", 1, 3.0), ("a", 9, 4.0), ("c", 2, 2.0)]


def test_rows_are_ordered_by_user_and_then_by_item():
    made = ratings(ROWS)
    assert made.to_polars().rows() == [
        ("a", 9, 4.0), ("a", 10, 5.0), ("b", 1, 3.0), ("b", 2, 1.0), ("c", 2, 2.0),
    ]  # fmt: skip
    assert made.start.tolist() == [0, 2, 4, 5]
    assert repr(made) == "Ratings(5 explicit, 3 users, 4 items)"
    assert not made.implicit


@given(st.permutations(range(len(ROWS))))
def test_shuffled_rows_change_nothing(order):
    time = np.arange(len(ROWS)) * 1_000_000
    fold = pl.Series([1, 2, 3, 4, 5])

    def build(rows):
        rows = list(rows)
        return ratings([ROWS[r] for r in rows], time=time[rows], tags={"fold": fold.gather(rows)})

    plain, shuffled = build(range(len(ROWS))), build(order)
    for name in ("user", "item", "value", "time"):
        assert getattr(plain, name).tobytes() == getattr(shuffled, name).tobytes()
    assert plain.tags["fold"].to_list() == shuffled.tags["fold"].to_list() == [4, 2, 3, 1, 5]
    assert plain.users.equals(shuffled.users)
    assert plain.fingerprint == shuffled.fingerprint


@given(st.data())
def test_many_shuffled_rows_are_in_order(data):
    """Long groups are sorted by merging, short ones by insertion."""
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    pairs = np.array([(u, i) for u in range(3) for i in range(40 * u + 1)])
    pairs = pairs[rng.permutation(len(pairs))]
    value = pairs[:, 0] * 1000 + pairs[:, 1]
    made = Ratings.of(pl.Series(pairs[:, 0]), pl.Series(pairs[:, 1]), pl.Series(value))
    expected = np.array(sorted(map(tuple, pairs.tolist())))
    np.testing.assert_array_equal(made.users.raw(made.user).to_numpy(), expected[:, 0])
    np.testing.assert_array_equal(made.items.raw(made.item).to_numpy(), expected[:, 1])
    np.testing.assert_array_equal(made.value, expected[:, 0] * 1000 + expected[:, 1])


@pytest.mark.parametrize("duplicates", ["error", "first", "last", "sum"])
@pytest.mark.parametrize("more", [False, True])
def test_numpy_and_the_kernel_sort_alike(monkeypatch, duplicates, more):
    """numpy sorts few rows where no kernel is loaded yet; equal pairs stay in their order."""
    rng = np.random.default_rng(5)
    n, items = 900, 60
    grid = rng.permutation(20 * items)[:n] if duplicates == "error" else rng.integers(0, 20, n) ** 2
    user, item = pl.Series(grid // items), pl.Series(grid % items)
    value = pl.Series(np.arange(n, dtype=float))
    time = value.cast(pl.Int64) if more else None
    tags = {"row": value.cast(pl.Int32)} if more else {}
    sorted_ = {}
    for loaded in (False, True):
        monkeypatch.setattr("unskew.data.groups.are_kernels_loaded", lambda loaded=loaded: loaded)
        sorted_[loaded] = Ratings.of(user, item, value, time, tags=tags, duplicates=duplicates)
    by_numpy, by_kernel = sorted_[False], sorted_[True]
    assert by_numpy.notes == by_kernel.notes
    for name in ("user", "item", "value", *(["time"] if more else [])):
        assert getattr(by_numpy, name).tobytes() == getattr(by_kernel, name).tobytes()
    for name in tags:
        assert by_numpy.tags[name].to_list() == by_kernel.tags[name].to_list()


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float64])
@pytest.mark.parametrize("ties", ["none", "some", "all"])
def test_numpy_and_the_kernels_sort_groups_alike(monkeypatch, kind, ties):
    rng = np.random.default_rng(9)
    start = np.append(0, np.cumsum(rng.integers(0, 40, 50)))
    n = int(start[-1])
    key = rng.integers(0, 9, n).astype(kind)
    key[start[3] : start[4]].sort()  # a group that is in order
    tie = {"none": np.zeros(0, np.int64), "some": rng.integers(0, 3, n), "all": rng.permutation(n)}
    group = rng.integers(0, 30, n).astype(np.int32)
    starts = np.append(0, np.cumsum(np.bincount(group, minlength=30)))
    places = np.concatenate([rng.permutation(size) for size in np.diff(start)])
    ranks = places, key.astype(np.int64)  # permutations, and with equal ones
    results = []
    for loaded in (False, True):
        monkeypatch.setattr("unskew.data.groups.are_kernels_loaded", lambda loaded=loaded: loaded)
        order, changed = sort_groups(start, frozen(key), frozen(tie[ties]))
        results.append((order.tolist(), changed, grouped_order(group, starts).tolist()))
        results[-1] += tuple(order_by_rank(start, frozen(one)).tolist() for one in ranks)
    assert results[0] == results[1]


def test_fingerprint_tells_values_and_ids_apart():
    prints = {
        ratings(ROWS).fingerprint,
        ratings([*ROWS[:4], ("c", 2, 2.5)]).fingerprint,
        ratings([*ROWS[:4], ("d", 2, 2.0)]).fingerprint,
        ratings([(u, str(i), v) for u, i, v in ROWS]).fingerprint,  # text is not a number
    }
    assert len(prints) == 4


TWICE = [("u", "x", 4.0), ("u", "y", 3.0), ("u", "x", 1.0), ("u", "x", 2.5)]


@pytest.mark.parametrize(
    ("policy", "value", "tag"),
    [
        ("first", 4.0, "p"),
        ("last", 2.5, "s"),
        ("mean", 2.5, "p"),
        ("sum", 7.5, "p"),
        ("max", 4.0, "p"),
    ],
)
def test_duplicates(policy, value, tag):
    made = ratings(TWICE, duplicates=policy, tags={"part": pl.Series(["p", "q", "r", "s"])})
    assert made.to_polars().rows() == [("u", "x", value, tag), ("u", "y", 3.0, "q")]
    assert made.notes == (f"2 duplicate user-item pairs: kept the {policy}",)


def test_duplicates_are_an_error_unless_said_otherwise():
    message = r"2 user-item pairs occur more than once, the first: user 'u', item 'x'; .*'first'"
    with pytest.raises(us.DataError, match=message):
        ratings(TWICE)


def test_an_unknown_policy_is_refused_with_the_nearest():
    with pytest.raises(us.UnknownName, match=r"unknown duplicates 'frist'\. Did you mean 'first'"):
        ratings(ROWS, duplicates="frist")


@given(st.permutations([0.1, 0.2, 0.3, 0.7, 1e16]))
def test_mean_and_sum_of_duplicates_have_the_same_bits_in_any_order(values):
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 in floating point."""
    for policy in ("mean", "sum"):
        rows = [("u", "x", value) for value in values]
        sorted_rows = sorted(rows)
        one = ratings(rows, duplicates=policy).value
        assert one.tobytes() == ratings(sorted_rows, duplicates=policy).value.tobytes()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), None])
def test_ratings_that_are_no_numbers_are_refused(bad):
    with pytest.raises(us.DataError, match=r"'rating': 1 rating is missing.* first in row 2;"):
        ratings([("u", "x", 1.0), ("u", "y", bad), ("u", "z", 2.0)])


@pytest.mark.parametrize("bad", [1e308, -1e308, 1.1e100])
def test_ratings_beyond_the_limit_are_refused(bad):
    with pytest.raises(us.DataError, match=r"'rating': 1 rating is beyond .* in row 2: -?1"):
        ratings([("u", "x", 1.0), ("u", "y", bad), ("u", "z", 2.0)])


def test_ratings_at_the_limit_are_judged_and_averaged():
    largest = 1e100
    made = ratings([("u", "x", largest), ("u", "x", largest), ("u", "y", 1.0)], duplicates="mean")
    assert made.value.tolist() == [largest, 1.0]
    judged = us.evaluate(made, {"s": {"u": ["x", "y"]}}, "nDCG@2", liked=1)
    assert judged.means()["s"]["nDCG@2"] == 1.0


def test_text_ratings_are_refused():
    with pytest.raises(us.DataError, match=r"column 'rating': ratings must be numbers.*'good'"):
        ratings([("u", "x", "good")])


def test_missing_users_are_refused():
    with pytest.raises(us.DataError, match=r"column 'user': 1 id is missing, the first in row 1"):
        ratings([(None, "x", 1.0), ("u", "y", 2.0)])


def test_zero_and_negative_ratings_are_values():
    assert ratings([("u", "x", 0), ("u", "y", -3)]).value.tolist() == [0.0, -3.0]


def test_without_values_the_data_is_implicit():
    made = Ratings.of(pl.Series([1, 1]), pl.Series([2, 3]))
    assert made.implicit
    assert made.value.tolist() == [1.0, 1.0]
    assert repr(made) == "Ratings(2 implicit, 1 user, 2 items)"


def test_ratings_cannot_be_changed():
    made = ratings(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        made.value[0] = 9


def test_recode_to_more_ids_keeps_the_rows():
    made = ratings(ROWS)
    users, (user_table, _) = Ids.union(made.users, Ids.number(pl.Series(["aa", "z"]))[0])
    items, (item_table, _) = Ids.union(made.items, Ids.number(pl.Series([0, 5]))[0])
    wider = made.recode(users, user_table, items, item_table)
    assert wider.to_polars().rows() == made.to_polars().rows()
    assert wider.users.values.to_list() == ["a", "aa", "b", "c", "z"]
    assert wider.start.tolist() == [0, 2, 2, 4, 5, 5]
    assert wider.item.tolist() == [4, 5, 1, 2, 2]  # of 0, 1, 2, 5, 9, 10


def test_recode_from_integers_to_text_puts_rows_in_the_new_order():
    made = ratings([(1, 10, 1.0), (1, 9, 2.0), (10, 9, 3.0), (2, 9, 4.0)])
    text = Ids.number(pl.Series(["x"]))[0]
    users, (user_table, _) = Ids.union(made.users, text)
    items, (item_table, _) = Ids.union(made.items, text)
    moved = made.recode(users, user_table, items, item_table)
    assert moved.to_polars().rows() == [
        ("1", "10", 1.0), ("1", "9", 2.0), ("10", "9", 3.0), ("2", "9", 4.0),
    ]  # fmt: skip
    assert moved.start.tolist() == [0, 2, 3, 4, 4]


def test_to_pandas_has_the_same_rows():
    frame = ratings(ROWS).to_pandas()
    assert list(frame.columns) == ["user", "item", "rating"]
    assert [tuple(row) for row in frame.to_numpy()] == ratings(ROWS).to_polars().rows()


def test_written_ratings_read_back(tmp_path):
    ratings = us.read_ratings({"user": ["a", "b", "b"], "item": [7, 7, 8], "rating": [5, 0, 3]})
    ratings.to_csv(tmp_path / "r.csv")
    ratings.to_parquet(tmp_path / "r.parquet")
    ratings.to_qrels(tmp_path / "r.qrels")
    assert (tmp_path / "r.qrels").read_text() == "a 0 7 5\nb 0 7 0\nb 0 8 3\n"
    for name in ("r.csv", "r.parquet", "r.qrels"):
        assert us.read_ratings(tmp_path / name).fingerprint == ratings.fingerprint


def test_qrels_refuse_large_grades(tmp_path):
    large = us.read_ratings({"user": [1], "item": [2], "rating": [1e50]})
    with pytest.raises(us.DataError, match=r"row 1 has 1e\+50"):
        large.to_qrels(tmp_path / "x.qrels")


def test_qrels_refuse_what_they_cannot_hold(tmp_path):
    halves = us.read_ratings({"user": [1], "item": [2], "rating": [3.5]})
    with pytest.raises(us.DataError, match=r"whole numbers .*, but row 1 has 3\.5"):
        halves.to_qrels(tmp_path / "r.qrels")
    spaced = us.read_ratings({"user": ["a b"], "item": [2], "rating": [3]})
    with pytest.raises(us.DataError, match="white space"):
        spaced.to_qrels(tmp_path / "r.qrels")
    assert not list(tmp_path.iterdir())


def test_duplicates_are_counted():
    rows = {"user": [1, 1, 1, 2], "item": [5, 5, 6, 5], "rating": [3, 4, 5, 2]}
    data = us.read_ratings(rows, duplicates="count")
    assert (data.value.tolist(), data.implicit) == ([2, 1, 1], True)
    assert us.read_ratings(rows, duplicates="count", feedback="explicit").implicit is False
