"""Runs: every way to give ranked lists, every policy for ties, gaps, duplicates and NaN."""

import datetime as dt
import gzip
import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from unskew.runs import Run, read_run, system_name

# The lists that every source below spells: u2 comes before u10 as an integer, after it as text.
LISTS = {2: ["a", "b", "c"], 10: ["c", "a"]}
TABLE = pl.DataFrame(
    {
        "user": [2, 2, 2, 10, 10],
        "item": ["a", "b", "c", "c", "a"],
        "rank": [1, 2, 3, 1, 2],
        "score": [0.9, 0.5, 0.1, 7.0, -2.0],
    }
)
SHUFFLED = TABLE[[3, 1, 4, 0, 2]]


def lists(run):
    """Return each user's items in rank order; None marks an empty slot."""
    result = {}
    for number, user in enumerate(run.users.values):
        codes = run.item[run.start[number] : run.start[number + 1]].tolist()
        result[user] = [None if code < 0 else run.items.values[code] for code in codes]
    return result


def write(path, text, packed=False):
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


# Sources


def test_mappings_from_user_to_list():
    assert lists(read_run(LISTS)) == LISTS
    assert lists(read_run({2: ("a", "b", "c"), 10: ("c", "a")})) == LISTS
    assert lists(read_run({1: np.array([5, 3])})) == {1: [5, 3]}
    assert lists(read_run({"x": [], "y": [1]})) == {"y": [1]}  # an empty list is no list
    assert repr(read_run(LISTS)) == "Run(2 lists, 3 items, depth up to 3)"


def test_mappings_from_user_to_scores():
    scored = {10: {"a": -2.0, "c": 7.0}, 2: {"c": 0.1, "a": 0.9, "b": 0.5}}
    run = read_run(scored)
    assert lists(run) == LISTS
    assert run.score.tolist() == [0.9, 0.5, 0.1, 7.0, -2.0]
    assert lists(read_run({1: {"a": 1, "b": 2.5}})) == {1: ["b", "a"]}


def test_mappings_that_are_no_lists():
    with pytest.raises(us.DataError, match="lists must all be of one kind"):
        read_run({1: ["a"], 2: {"a": 0.5}})
    with pytest.raises(us.DataError, match="user 1: expected a list of items, got 'abc'"):
        read_run({1: "abc"})
    with pytest.raises(
        us.DataError, match=r"column 'user' mixes .* \(int in row 1, str in row 2\)"
    ):
        read_run({1: ["a"], "x": ["b"]})
    with pytest.raises(us.DataError, match="lists: there are no rows"):
        read_run({1: []})


@pytest.mark.parametrize("table", [TABLE, SHUFFLED])
def test_frames(table):
    for source in (table, table.lazy(), table.to_dict(as_series=False), table.to_arrow()):
        assert lists(read_run(source)) == LISTS


def test_pandas_and_duckdb():
    pd, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    assert lists(read_run(pd.DataFrame(SHUFFLED.to_dict(as_series=False)))) == LISTS
    values = ", ".join(str(row) for row in SHUFFLED.rows())
    relation = duckdb.sql(f"select * from (values {values}) as t(user_id, item_id, rank, score)")
    assert lists(read_run(relation)) == LISTS


def test_a_row_per_user_with_a_column_of_lists():
    nested = pl.DataFrame({"user": [10, 2], "item": [["c", "a"], ["a", "b", "c"]]})
    assert lists(read_run(nested)) == LISTS
    pd = pytest.importorskip("pandas")
    assert lists(read_run(pd.DataFrame(nested.to_dict(as_series=False)))) == LISTS
    scored = nested.with_columns(score=pl.Series([[7.0, -2.0], [0.9, 0.1, 0.5]]))
    assert lists(read_run(scored)) == {**LISTS, 2: ["a", "c", "b"]}
    fixed = pl.DataFrame({"user": [1, 2], "item": np.array([[4, 3], [3, 4]])})  # pl.Array
    assert lists(read_run(fixed)) == {1: [4, 3], 2: [3, 4]}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("separator", [",", "\t", ";", "::"])
def test_csv_files_with_rank_and_score(tmp_path, separator, packed):
    text = "\n".join(separator.join(map(str, row)) for row in [SHUFFLED.columns, *SHUFFLED.rows()])
    path = write(tmp_path / ("r.txt" + ".gz" * packed), text, packed)
    assert lists(read_run(path)) == LISTS


def test_the_rank_ranks_unless_by_says_score():
    table = TABLE.with_columns(score=pl.col("rank").cast(pl.Float64))  # the worst scores best
    assert lists(read_run(table)) == LISTS
    assert lists(read_run(table, by="rank")) == LISTS
    assert lists(read_run(table, by="score")) == {2: ["c", "b", "a"], 10: ["a", "c"]}
    assert lists(read_run(table.drop("rank"))) == {2: ["c", "b", "a"], 10: ["a", "c"]}
    assert lists(read_run(table.drop("score"))) == LISTS
    with pytest.raises(us.UnknownName, match=r"unknown by 'scores'\. Did you mean 'score'"):
        read_run(table, by="scores")


@pytest.mark.parametrize("by", ["rank", "score"])
def test_what_ranks_must_be_there(by):
    with pytest.raises(us.DataError, match=f"there is no {by} column for by='{by}'"):
        read_run(TABLE.drop(by), by=by)


def test_without_rank_and_score_the_rows_stand_as_they_come():
    assert lists(read_run(SHUFFLED.drop("rank", "score"))) == {2: ["b", "a", "c"], 10: ["c", "a"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,7\n1,5\n", [7, 5]),
        ("1,7,0.1\n1,5,0.2\n", [5, 7]),  # the third of three columns is a score
        ("1,7,2,0.9\n1,5,1,0.1\n", [5, 7]),  # of four, a rank and a score
    ],
)
def test_files_without_a_header(tmp_path, text, expected):
    assert lists(read_run(write(tmp_path / "r.csv", text))) == {1: expected}


def test_five_columns_without_a_header_need_numbers(tmp_path):
    path = write(tmp_path / "r.csv", "0,1,7,x,2\n0,1,5,x,1\n")
    with pytest.raises(us.DataError, match=r"no header line and 5 columns, .*such as user=0"):
        read_run(path)
    assert lists(read_run(path, user=1, item=2, rank=4)) == {1: [5, 7]}


def test_columns_by_name_and_by_number():
    odd = TABLE.rename({"user": "who", "item": "what", "rank": "place", "score": "points"})
    assert lists(read_run(odd, user="who", item="what", rank="place")) == LISTS
    assert lists(read_run(odd, user=0, item=1, score=3)) == LISTS
    with pytest.raises(us.DataError, match="no user column found among: who, what, place, points"):
        read_run(odd)


def test_notes_say_what_was_assumed():
    assert read_run(TABLE).notes == (
        "frame: frame, 5 rows; user = user, item = item, rank = rank, score = score",
    )


TREC = "2 Q0 a 9 0.9 x\n10\tQ0  c 1 7 x\n2 Q0 b 1 0.5 x\n2 Q0 c 1 0.1 x\n10 Q0 a 1 -2 x\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["a.run", "a.trec", "a.txt"])
def test_trec_files_rank_by_score(tmp_path, name, packed):
    """As trec_eval does: the rank column is not read."""
    run = read_run(write(tmp_path / (name + ".gz" * packed), TREC, packed))
    assert lists(run) == LISTS


@pytest.mark.parametrize("indent", ["", "  "])
def test_trec_files_with_a_byte_order_mark(tmp_path, indent):
    text = f"\ufeff{indent}q1 Q0 d1 1 3.0 x\nq1 Q0 d2 2 4.0 x\n"
    assert lists(read_run(write(tmp_path / "a.trec", text))) == {"q1": ["d2", "d1"]}


def test_trec_files_break_ties_as_trec_eval(tmp_path):
    rows = [("9", 1.0), ("10", 1.00000001), ("8", 2.0), ("B", 1.0), ("a", 1.0)]
    text = "".join(f"q Q0 {item} 0 {score} x\n" for item, score in rows)
    path = write(tmp_path / "a.run", text)
    assert lists(read_run(path)) == {"q": ["8", "a", "B", "9", "10"]}
    assert lists(read_run(path, ties="id")) == {"q": ["8", "10", "9", "B", "a"]}


def test_scores_beyond_32_bits_tie_in_trec_files(tmp_path):
    run = read_run({"q": {"a": 1e300, "b": 1e299, "c": 1.0}}, ties="trec")
    assert lists(run) == {"q": ["b", "a", "c"]}  # both are infinite as 32-bit floats
    read_run({"q": {"a": 1e300, "b": 1e299}}).to_trec(tmp_path / "a.run")
    assert lists(read_run(tmp_path / "a.run")) == {"q": ["a", "b"]}


def test_a_trec_run_has_six_columns(tmp_path):
    with pytest.raises(
        us.DataError, match=r"6 columns \(user Q0 item rank score tag\), this has 4"
    ):
        read_run(write(tmp_path / "a.run", "q 0 d 1\n"))


def test_a_run_passes():
    run = read_run(LISTS)
    assert read_run(run) is run
    assert lists(read_run(run, depth=1)) == {2: ["a"], 10: ["c"]}


# Matrices


def test_matrices_with_empty_slots():
    run = Run.from_arrays([8, 7], [[1, -1, 5, -1], [3, 2, -1, -1]])
    assert lists(run) == {7: [3, 2], 8: [1, None, 5]}  # empty slots at the end do not count
    assert run.depth.tolist() == [2, 3]
    assert run.to_polars().rows() == [(7, 3, 1), (7, 2, 2), (8, 1, 1), (8, 5, 3)]
    assert lists(Run.from_arrays(["b", "a"], [["x", None], [None, None]])) == {"a": [], "b": ["x"]}


def test_matrices_with_scores():
    run = Run.from_arrays([8, 7], [[1, 2], [3, -1]], [[0.5, 0.4], [0.3, 0.0]])
    assert run.to_polars().rows() == [(7, 3, 1, 0.3), (8, 1, 1, 0.5), (8, 2, 2, 0.4)]


def test_matrices_that_do_not_fit():
    with pytest.raises(us.DataError, match=r"items of shape \(users, depth\).*\(2,\)"):
        Run.from_arrays([1, 2], [3, 4])
    with pytest.raises(us.DataError, match=r"scores \(1, 1\) and items \(1, 2\) differ in shape"):
        Run.from_arrays([1], [[3, 4]], [[0.5]])
    with pytest.raises(us.DataError, match="the same user has two rows"):
        Run.from_arrays([1, 1], [[3], [4]])
    with pytest.raises(us.DataError, match=r"1 item occurs twice in one list.* user 1, item 3"):
        Run.from_arrays([1], [[3, 3]])


# Ties

TIED = pl.DataFrame(
    {"user": ["q"] * 5, "item": [10, 9, 100, 2, 1], "score": [1.0, 1.0, 2.0, 1.0, 1.0 + 1e-9]}
)


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("id", [100, 1, 2, 9, 10]),
        ("input", [100, 1, 10, 9, 2]),
        ("trec", [100, 9, 2, 10, 1]),  # 1 + 1e-9 is 1 in 32 bits; "9" > "2" > "10" > "1"
    ],
)
def test_ties(ties, expected):
    assert lists(read_run(TIED, ties=ties)) == {"q": expected}


def test_an_unknown_tie_policy_is_refused_with_the_nearest():
    with pytest.raises(us.UnknownName, match=r"unknown ties 'ramdom'\. Did you mean 'random'"):
        read_run(TIED, ties="ramdom")


def flat(users=3, items=30):
    """Return rows that all tie."""
    pairs = [(u, i) for u in range(users) for i in range(items)]
    user, item = zip(*pairs, strict=True)
    return pl.DataFrame({"user": user, "item": item, "score": [1.0] * len(pairs)})


def test_random_ties_are_reproducible_and_differ_by_seed_and_user():
    first = lists(read_run(flat(), ties="random", seed=7))
    assert first == lists(read_run(flat(), ties="random", seed=7))
    assert first != lists(read_run(flat(), ties="random", seed=8))
    assert len({tuple(items) for items in first.values()}) == 3
    assert all(sorted(items) == list(range(30)) for items in first.values())


@given(st.integers(0, 1000))
def test_random_ties_do_not_depend_on_the_order_of_rows(seed):
    shuffled = flat().sample(fraction=1, shuffle=True, seed=seed)
    assert lists(read_run(shuffled, ties="random")) == lists(read_run(flat(), ties="random"))


@pytest.mark.parametrize("kind", [pl.Int64, pl.String])
def test_random_ties_are_the_same_for_every_system(kind):
    """Two items tie alike whatever else a system recommends, and to whomever."""
    frame = flat().with_columns(pl.col("user", "item").cast(kind))
    whole = lists(read_run(frame, ties="random"))
    some = frame.filter(pl.col("item").cast(pl.Int64) % 3 == 1, pl.col("user").cast(pl.Int64) > 0)
    for user, items in lists(read_run(some, ties="random")).items():
        assert items == [item for item in whole[user] if int(item) % 3 == 1]


SCORES = st.sampled_from([0.0, 1 / 3, 0.5, 0.5 + 1e-9, 2.0, -1.0])
ITEMS = st.lists(st.sampled_from(["1", "2", "10", "20", "a", "B", "é"]), unique=True, min_size=1)


@given(ITEMS, st.data())
def test_orders_equal_a_plain_sort(items, data):
    score = {item: data.draw(SCORES) for item in items}
    pairs = list(score.items())
    plain = {
        "id": sorted(pairs, key=lambda pair: (-pair[1], pair[0])),
        "input": sorted(pairs, key=lambda pair: -pair[1]),
        "trec": sorted(pairs, key=lambda pair: (np.float32(pair[1]), pair[0]), reverse=True),
    }
    for ties, expected in plain.items():
        run = read_run({"u": score}, ties=ties)
        assert lists(run) == {"u": [item for item, _ in expected]}
        assert run.score.tolist() == [value for _, value in expected]


@given(st.integers(0, 1000), st.sampled_from(["id", "trec", "random"]))
def test_shuffled_rows_give_the_same_run(seed, ties):
    rng = np.random.default_rng(3)
    pairs = [(u, i) for u in range(4) for i in rng.permutation(50)[: 10 * u + 5]]
    user, item = zip(*pairs, strict=True)
    table = pl.DataFrame({"user": user, "item": item, "score": rng.integers(0, 8, len(pairs)) / 8})
    shuffled = table.sample(fraction=1, shuffle=True, seed=seed)
    one, two = read_run(table, ties=ties), read_run(shuffled, ties=ties)
    for name in ("start", "item", "score"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


@given(st.integers(0, 1000))
def test_shuffled_ranks_give_the_same_run(seed):
    assert lists(read_run(TABLE.sample(fraction=1, shuffle=True, seed=seed))) == LISTS


# Duplicates, NaN, gaps, depth


def test_duplicates():
    table = {"user": [1, 1, 1, 1], "item": ["a", "b", "a", "c"], "score": [1.0, 3.0, 5.0, 0.0]}
    message = r"1 item occurs twice in one list, the first: user 1, item 'a'; .*duplicates='first'"
    with pytest.raises(us.DataError, match=message):
        read_run(table)
    run = read_run(table, duplicates="first")
    assert lists(run) == {1: ["a", "b", "c"]}
    assert run.score.tolist() == [5.0, 3.0, 0.0]
    assert run.notes[-1] == "arrays: 1 duplicate item in lists dropped"


def test_one_item_in_two_lists_is_no_duplicate():
    assert lists(read_run({1: ["a"], 2: ["a"]})) == {1: ["a"], 2: ["a"]}


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_scores_that_are_missing(missing):
    table = {"user": [1, 1, 2], "item": ["a", "b", "c"], "score": [0.5, missing, missing]}
    with pytest.raises(us.DataError, match=r"2 scores are NaN or missing, the first in row 2; .*"):
        read_run(table)
    run = read_run(table, nan="drop")
    assert lists(run) == {1: ["a"]}
    assert run.notes[-1] == "arrays: 2 rows without a score dropped"


def test_a_missing_score_does_not_matter_where_the_rank_ranks():
    table = {"user": [1, 1], "item": ["a", "b"], "rank": [2, 1], "score": [float("nan"), 0.5]}
    assert lists(read_run(table)) == {1: ["b", "a"]}


def test_infinite_scores_are_scores():
    scores = {"a": -float("inf"), "b": 0.0, "c": float("inf")}
    assert lists(read_run({1: scores})) == {1: ["c", "b", "a"]}


def test_rows_without_rank_and_score_are_taken_as_ranked():
    table = {"user": [1, 1, 2], "item": ["b", "a", "c"]}
    assert any("rows are taken as ranked" in note for note in read_run(table).notes)
    ranked = read_run({**table, "rank": [2, 1, 1]})
    assert not any("taken as ranked" in note for note in ranked.notes)


def test_scores_that_are_no_numbers():
    table = {"user": [1, 1], "item": ["a", "b"], "score": ["0.5", "high"]}
    with pytest.raises(
        us.DataError, match=r"1 of the scores .* is not a number, the first in row 2: 'high'"
    ):
        read_run(table)


JUMPS = {"user": [1, 1, 1, 2], "item": ["a", "b", "c", "d"], "rank": [5, 2, 1, 1]}


def test_gaps_between_ranks():
    closed = read_run(JUMPS)
    assert lists(closed) == {1: ["c", "b", "a"], 2: ["d"]}
    assert closed.notes[-1] == "arrays: 1 gap between ranks, closed"
    kept = read_run(JUMPS, gaps="keep")
    assert lists(kept) == {1: ["c", "b", None, None, "a"], 2: ["d"]}
    assert kept.notes[-1] == "arrays: 1 gap between ranks, kept as empty slots"
    assert kept.to_polars()["rank"].to_list() == [1, 2, 5, 1]


def test_gaps_at_the_top_count():
    run = read_run({"user": [1, 2], "item": ["a", "b"], "rank": [3, 1]}, gaps="keep")
    assert lists(run) == {1: [None, None, "a"], 2: ["b"]}


def test_ranks_from_zero_have_no_gap():
    run = read_run({"user": [1, 1, 2], "item": ["a", "b", "c"], "rank": [1, 0, 0]}, gaps="keep")
    assert lists(run) == {1: ["b", "a"], 2: ["c"]}
    assert len(run.notes) == 1


def test_scores_follow_kept_gaps():
    run = read_run({**JUMPS, "score": [5.0, 2.0, 1.0, 1.0]}, gaps="keep")
    np.testing.assert_array_equal(run.score, [1.0, 2.0, np.nan, np.nan, 5.0, 1.0])


def test_ranks_far_below_are_refused_where_gaps_are_kept():
    table = {"user": [1, 1], "item": ["a", "b"], "rank": [1, 10**9]}
    with pytest.raises(us.DataError, match=r"ranks up to 1,000,000,000 leave .* gaps='close'"):
        read_run(table, gaps="keep")
    assert lists(read_run(table)) == {1: ["a", "b"]}


DAILY = {
    "user": [1, 1, 1, 1],
    "date": ["2024-05-01", "2024-05-01", "2024-05-02", "2024-05-02"],
    "item": ["a", "b", "a", "c"],
    "rank": [1, 2, 1, 2],
}
ADVICE = (
    "the file has a column 'date', and (user, date) makes them unique: these are daily lists; use "
)


@pytest.mark.parametrize("repeated", ["rank", "item"])
def test_repeats_of_daily_lists_name_the_column_that_tells_them_apart(repeated):
    table = {name: column for name, column in DAILY.items() if name in ("user", "date", "item")}
    table |= {"rank": DAILY["rank"]} if repeated == "rank" else {"score": [4, 3, 2, 1]}
    with pytest.raises(us.DataError) as raised:
        read_run(table)
    problem = raised.value
    assert str(problem).endswith(f"{ADVICE}lists=('user', 'date')")
    words = problem.on_command_line({"--lists", "--by"})
    assert words.endswith(f"{ADVICE}--lists user,date")
    assert "--by" not in words
    elsewhere = "unskew evaluate, compare or gate, which take --lists user,date"
    assert problem.on_command_line({"--run"}).endswith(ADVICE + elsewhere)


@pytest.mark.parametrize(
    ("column", "advice"),
    [
        (
            {"visit": [1, 1, 2, 2]},
            r"if it names the sessions of a user, use lists=\('user', 'visit'\)",
        ),
        ({"model": ["x", "x", "y", "y"]}, "if it names systems, write one file per system$"),
        ({"shown_at": [1.5e9, 1.5e9, 1.6e9, 1.6e9]}, "sessions of a user"),
        ({"event_time": [1.5e9 + 1, 1.5e9 + 1, 1.6e9, 1.6e9]}, "these are lists of several times"),
        ({"date": ["x", "x", "y", "y"]}, "these are lists of several dates"),
        ({"row": [1, 2, 3, 4]}, "rank 1; correct them$"),
        ({"date": ["2024-05-01", None, "2024-05-02", "2024-05-02"]}, "rank 1; correct them$"),
        ({"visit": [1, 1, 1, 2]}, "rank 1; correct them$"),
    ],
)
def test_other_columns_are_taken_for_what_they_may_be(column, advice):
    table = {name: values for name, values in DAILY.items() if name != "date"} | column
    with pytest.raises(us.DataError, match=advice):
        read_run(table)


def test_several_lists_of_a_user_are_read_by_date():
    run = read_run(DAILY | {"rank": [2, 1, 1, 2]}, lists=("user", "date"))
    assert repr(run) == "Run(2 lists of 1 user, 3 items, depth up to 2)"
    rows = run.to_polars()
    assert rows["item"].to_list() == ["b", "a", "a", "c"]
    assert rows["date"].dt.day().to_list() == [1, 1, 2, 2]
    nested = {"uid": [1, 1], "date": ["2024-05-02", "2024-05-01"], "item": [["a"], ["b", "a"]]}
    for lists_ in (("uid", "date"), "uid,date"):
        again = read_run(nested, lists=lists_)
        assert again.to_polars()["item"].to_list() == ["b", "a", "a"]
    with pytest.raises(us.DataError, match=r"1 item occurs twice .* makes them unique"):
        read_run(nested)


def test_repeats_within_a_dated_list_name_the_date():
    with pytest.raises(us.DataError, match="user 1, date 2024-05-01, rank 1; correct them"):
        read_run(DAILY | {"rank": [1, 1, 1, 2]}, lists=("user", "date"))
    with pytest.raises(us.DataError, match="user 1, date 2024-05-02, item 'a'; keep the best"):
        read_run(DAILY | {"item": ["a", "b", "a", "a"]}, lists=("user", "date"))


def test_dates_that_are_not_read_are_noted():
    """Without ranks, lists of several dates without a common item look like one list."""
    table = {
        "user": [1, 1, 1],
        "date": [1.6e9, 1.6e9, 1.7e9],
        "item": list("abc"),
        "score": [3, 2, 1],
    }
    assert any(
        "users have several dates in column 'date'" in note for note in read_run(table).notes
    )
    assert not any("date" in note for note in read_run(table | {"date": [1.6e9] * 3}).notes)


def test_repeated_ranks_are_refused():
    table = {"user": [1, 2, 2], "item": ["a", "b", "c"], "rank": [1, 1, 1]}
    with pytest.raises(us.DataError, match=r"1 rank occurs twice .*: user 2, rank 1; correct them"):
        read_run(table)
    with pytest.raises(us.DataError, match="rank by score instead with by='score'") as raised:
        read_run(table | {"score": [3, 2, 1]})
    assert "with --by score" in raised.value.on_command_line({"--by", "--gaps"})
    # `--by` of compare and gate means groups of users.
    words = raised.value.on_command_line({"--by", "--lists"})
    assert "rank by score instead with a file without its rank column" in words


@pytest.mark.parametrize(
    "ranks",
    [
        [1.0, 1.5],
        [1, None],
        ["1", "x"],
        [1.0, 1e18],
        [1.0, 1e30],
        ["1", "1e30"],
        [1.0, -1e30],
        [1.0, float("nan")],
        [1.0, float("inf")],
        [1, 2**62 + 1],
        [1, -(2**62)],
        [1, 2**53 + 1],
        ["1", "18446744073709551617"],
    ],
)
def test_ranks_must_be_whole_numbers(ranks):
    table = {"user": [1, 1], "item": ["a", "b"], "rank": ranks}
    with pytest.raises(
        us.DataError,
        match=r"1 (of the )?ranks in column 'rank' (is|are) not .*the first in row 2: ",
    ) as caught:
        read_run(table)
    assert repr(ranks[1]) in str(caught.value)


def test_two_extreme_ranks_are_refused_and_do_not_reach_the_kernels():
    table = {"user": [1, 1], "item": ["a", "b"], "rank": [1e18, 1e30]}
    with pytest.raises(us.DataError, match=r"2 ranks .* first in row 1: 1e\+18"):
        read_run(table)


@pytest.mark.parametrize("ranks", [[2**53 - 1, 1], [2.0**52, 1.0], [5, 1 - 2**53], [0, -1]])
def test_large_and_negative_ranks_rank(ranks):
    """The smaller rank comes first, whatever the distance; RR of the item with it is 1."""
    table = {"user": [1, 1], "item": ["a", "b"], "rank": ranks}
    assert lists(read_run(table)) == {1: ["b", "a"]}
    judged = us.evaluate({"user": [1], "item": ["b"], "rating": [5]}, {"s": table}, "RR", liked=4)
    assert judged.means()["s"]["RR"] == 1.0


def test_many_lists_with_large_ranks_cannot_overflow_the_kept_gaps():
    users = list(range(3000))
    table = {"user": users, "item": users, "rank": [2**52] * 3000}
    with pytest.raises(us.DataError, match="leave too many empty slots"):
        read_run(table, gaps="keep")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("rank", [[1], [2]], r"ranks in column 'rank' must be numbers, got List"),
        ("score", [dt.timedelta(1)] * 2, r"scores in column 'score' must be numbers, got Dur"),
        ("user", [[1], [2]], r"frame: column 'user': ids must be .* got List.* in row 1 \(\[1\]\)"),
        ("user", [dt.timedelta(1)] * 2, r"frame: column 'user': ids must be .* got Duration"),
        ("item", [{"a": 1}, {"a": 2}], r"frame: column 'item': ids must be .* got Struct"),
    ],
)
def test_columns_of_the_wrong_kind_are_refused(column, values, message):
    table = {"user": [1, 1], "item": ["a", "b"], column: values}
    with pytest.raises(us.DataError, match=message):
        read_run(pl.DataFrame(table))


def test_lists_of_items_and_scores_must_be_of_one_length():
    table = pl.DataFrame({"user": [1], "item": [["a", "b"]], "score": [[0.5]]})
    with pytest.raises(us.DataError, match="lists of row 1 differ in length: 2 in 'i"):
        read_run(table)


def test_depth():
    assert lists(read_run(LISTS, depth=2)) == {2: ["a", "b"], 10: ["c", "a"]}
    assert lists(read_run(JUMPS, gaps="keep", depth=3)) == {1: ["c", "b", None], 2: ["d"]}
    with pytest.raises(us.SettingError, match="depth must be at least 1, got 0"):
        read_run(LISTS, depth=0)


# Round trips


@pytest.mark.parametrize("ending", ["csv", "parquet", "trec"])
@pytest.mark.parametrize("source", [TABLE, TABLE.drop("score"), LISTS])
def test_round_trips(tmp_path, ending, source):
    run = read_run(source)
    getattr(run, f"to_{ending}")(tmp_path / f"a.{ending}")
    again = read_run(tmp_path / f"a.{ending}")
    assert lists(again) == lists(run) == LISTS
    assert [file.name for file in tmp_path.iterdir()] == [f"a.{ending}"]  # nothing is left behind
    if ending != "trec" and run.score is not None:
        assert again.score.tobytes() == run.score.tobytes()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_empty_slots_make_a_round_trip(tmp_path, ending):
    run = read_run(JUMPS, gaps="keep")
    getattr(run, f"to_{ending}")(tmp_path / f"a.{ending}")
    assert lists(read_run(tmp_path / f"a.{ending}", gaps="keep")) == lists(run)


def trec_scores(path):
    return [float(line.split()[4]) for line in path.read_text().splitlines()]


def test_trec_files_keep_scores_that_keep_the_order(tmp_path):
    read_run(TABLE).to_trec(tmp_path / "a.trec", tag="mine")
    lines = (tmp_path / "a.trec").read_text().splitlines()
    assert lines[0] == "2 Q0 a 1 0.9 mine"
    assert trec_scores(tmp_path / "a.trec") == [0.9, 0.5, 0.1, 7.0, -2.0]


@pytest.mark.parametrize("step", [0.0, 1e-9])
def test_trec_files_keep_the_order_where_scores_tie(tmp_path, step):
    """Equal scores, or equal as 32-bit floats, would be put in descending order of ids."""
    order = [3, 1, 2, 20, 10]
    scores = [1 - step * place for place in range(5)]
    table = {"user": [1] * 5, "item": order, "score": scores}
    run = read_run(table, ties="input")
    run.to_trec(tmp_path / "a.trec")
    assert trec_scores(tmp_path / "a.trec") == [-1, -2, -3, -4, -5]
    assert lists(read_run(tmp_path / "a.trec")) == lists(run) == {1: order}


@given(st.permutations(["1", "2", "10", "a", "B"]), st.lists(SCORES, min_size=5, max_size=5))
def test_trec_eval_sees_the_order_that_was_written(tmp_path_factory, items, scores):
    path = tmp_path_factory.mktemp("run") / "a.trec"
    table = {"user": ["u"] * 5, "item": items, "rank": range(1, 6), "score": scores}
    read_run(table).to_trec(path)
    rows = [line.split() for line in path.read_text().splitlines()]
    seen = sorted(rows, key=lambda row: (np.float32(row[4]), row[2]), reverse=True)
    assert [row[2] for row in seen] == items


def test_trec_files_cannot_hold_white_space(tmp_path):
    with pytest.raises(us.DataError, match="cannot hold item ids with white space; use CSV"):
        read_run({1: ["a b"]}).to_trec(tmp_path / "a.trec")
    assert not list(tmp_path.iterdir())


def test_ids_with_commas_and_quotes_make_a_round_trip(tmp_path):
    odd = {"u,1": ['say "x"', "é", "007", " padded"]}
    read_run(odd).to_parquet(tmp_path / "a.parquet")
    assert lists(read_run(tmp_path / "a.parquet")) == odd
    read_run({"u,1": odd["u,1"][:3]}).to_csv(tmp_path / "a.csv")
    assert lists(read_run(tmp_path / "a.csv")) == {"u,1": odd["u,1"][:3]}


def test_systems_are_named_by_their_files():
    assert system_name("runs/my.best.run.gz") == "my.best"
    assert system_name("pop.parquet") == "pop"


def test_large_runs_sort_like_small_ones():
    """Enough lists and rows for several tasks and threads."""
    rng = random.Random(1)
    table = {"user": [], "item": [], "score": []}
    expected = {}
    for user in range(9000):
        items = rng.sample(range(100), 8)
        scores = [rng.randrange(4) for _ in items]
        table["user"] += [user] * 8
        table["item"] += items
        table["score"] += scores
        pairs = sorted(zip(items, scores, strict=True), key=lambda p: (-p[1], p[0]))
        expected[user] = [item for item, _ in pairs]
    run = read_run(pl.DataFrame(table))
    assert run.items.raw(run.item).to_list() == [i for u in expected.values() for i in u]
