"""Reading ratings: every kind of file and frame gives the same ratings, or a helpful error."""

import datetime as dt
import gzip
import io
import itertools
import os
import random
import re
import subprocess
import sys
import threading

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.data.read.ratings_files import read_items

# Two users, three items, as every source below spells them.
ROWS = [("ann", 7, 5.0), ("ann", 9, 2.5), ("bob", 7, 4.0)]
COLUMNS = {"user": ["bob", "ann", "ann"], "item": [7, 9, 7], "rating": [4.0, 2.5, 5.0]}

CSV = "user,item,rating\nbob,7,4\nann,9,2.5\nann,7,5\n"
TSV = CSV.replace(",", "\t")
COLONS = CSV.replace(",", "::")


def rows(source, **settings):
    return us.read_ratings(source, **settings).to_polars().rows()


def write(path, content, packed=False):
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return path


# Files


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "text", "label"),
    [
        ("r.csv", CSV, "comma-separated"),
        ("r.tsv", TSV, "tab-separated"),
        ("r.dat", COLONS, "::-separated"),
        ("r.txt", CSV.replace(",", ";"), "';'-separated"),
        ("r.psv", CSV.replace(",", "|"), "'|'-separated"),
        ("r.ssv", CSV.replace(",", " "), "' '-separated"),
        ("quoted.csv", CSV.replace("ann", '"ann"'), "comma-separated"),
        ("crlf.csv", CSV.replace("\n", "\r\n"), "comma-separated"),
        ("crlf.tsv", TSV.replace("\n", "\r\n"), "tab-separated"),
        ("crlf.dat", COLONS.replace("\n", "\r\n"), "::-separated"),
        ("bom.csv", "\ufeff" + CSV, "comma-separated"),
        ("bom.dat", "\ufeff" + COLONS, "::-separated"),
        ("no-last-newline.csv", CSV.rstrip("\n"), "comma-separated"),
        ("spaced.csv", CSV.replace("bob,7,4", " bob , 7 , 4 "), "comma-separated"),
    ],
)
def test_text_files(tmp_path, name, text, label, packed):
    path = write(tmp_path / (name + ".gz" * packed), text, packed)
    made = us.read_ratings(path)
    assert made.to_polars().rows() == ROWS
    assert made.items.kind == "integer"
    note = f"{path.name}: {label}, 3 rows; user = user, item = item, rating = rating"
    assert made.notes == (note,)


def test_a_packed_file_is_known_by_its_content(tmp_path):
    assert rows(write(tmp_path / "no-ending.csv", CSV, packed=True)) == ROWS
    assert rows(str(write(tmp_path / "r.dat", COLONS, packed=True))) == ROWS


def test_parquet(tmp_path):
    pl.DataFrame(COLUMNS).write_parquet(tmp_path / "r.parquet")
    assert rows(tmp_path / "r.parquet") == ROWS
    (tmp_path / "r.parquet").rename(tmp_path / "data")
    assert rows(tmp_path / "data", format="parquet") == ROWS


def test_a_format_given_beats_the_guess(tmp_path):
    path = write(tmp_path / "r.csv", TSV)
    assert rows(path, format="tsv") == ROWS
    with pytest.raises(us.DataError, match=r"read as comma-separated, this has one column, 'user"):
        us.read_ratings(path, format="csv")


# The first line is a header when it holds no number.


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        ("1,7\n1,9\n", [(1, 7, 1.0), (1, 9, 1.0)], "user = user, item = item"),
        ("\ufeff1::x\n2::y\n", [(1, "x", 1.0), (2, "y", 1.0)], "user = user, item = item"),
        ("ann,x,5\n", [("ann", "x", 5.0)], "user = user, item = item, rating = rating"),
        (
            "1::7::5::12\n",
            [(1, 7, 5.0, 12)],
            "user = user, item = item, rating = rating",
        ),
    ],
)
def test_files_without_a_header(tmp_path, text, expected, note):
    made = us.read_ratings(write(tmp_path / "r", text))
    assert made.to_polars().rows() == expected
    assert "without header" in made.notes[0]
    assert made.notes[0].endswith(note)
    assert made.implicit == ("rating" not in note)


def test_the_fourth_column_without_a_header_is_a_tag_where_it_holds_no_times(tmp_path):
    path = write(tmp_path / "r.tsv", "1\t7\t5\t978\n2\t7\t4\t12\n")
    made = us.read_ratings(path)
    assert made.time is None
    assert made.tags["column_3"].to_list() == [978, 12]
    assert made.notes[1] == (
        "r.tsv: no header line: column 0 the user, 1 the item, 2 the rating; counted from 0"
    )
    assert made.notes[2] == (
        "r.tsv: column 3 (counted from 0; such as 978) is kept as the tag 'column_3'; if it "
        "holds times, give time=3 (command line: --columns time=3)"
    )
    named = us.read_ratings(path, time=3)
    assert named.time.tolist() == [978_000_000, 12_000_000]
    assert not named.tags
    assert len(named.notes) == 2


def test_event_logs_without_a_header_need_the_number_of_the_time(tmp_path):
    path = write(tmp_path / "r.tsv", "1\t7\t5\t978\n2\t7\t4\t979\n")
    with pytest.raises(us.DataError, match=r"r\.tsv: no time column found .* name it with time="):
        us.read_events(path)
    assert us.read_events(path, time=3).time.tolist() == [978_000_000, 979_000_000]


def test_five_columns_without_a_header_need_numbers(tmp_path):
    path = write(tmp_path / "r.csv", "0,1,7,x,5\n0,1,9,x,4\n")
    with pytest.raises(us.DataError, match=r"no header line and 5 columns, first row .*user=0"):
        us.read_ratings(path)
    assert rows(path, user=1, item=2, rating=4) == [(1, 7, 5.0), (1, 9, 4.0)]


def test_columns_by_number_in_a_file_without_a_header(tmp_path):
    path = write(tmp_path / "r.csv", "7,1,5\n9,1,4\n")  # item, user, rating
    assert rows(path, user=1, item=0) == [(1, 7, 5.0), (1, 9, 4.0)]
    path = write(tmp_path / "r.csv", "5,1,7\n4,1,9\n")  # rating, user, item
    assert rows(path, user=1, item=2, rating=0) == [(1, 7, 5.0), (1, 9, 4.0)]


def test_a_column_given_as_item_is_not_guessed_as_rating(tmp_path):
    made = us.read_ratings(write(tmp_path / "r.csv", "5,1,7\n4,1,9\n"), user=1, item=2)
    assert made.implicit
    assert made.value.tolist() == [1.0, 1.0]


# Frames


def test_polars_frames():
    assert rows(pl.DataFrame(COLUMNS)) == ROWS
    assert rows(pl.LazyFrame(COLUMNS)) == ROWS
    assert rows(pl.DataFrame(COLUMNS).with_columns(pl.col("user").cast(pl.Categorical))) == ROWS


@pytest.mark.parametrize(
    "column",
    [
        {"user": "object"},
        {"user": "str"},
        {"user": "string[python]"},
        {"user": "category"},
        {"item": "int32"},
        {"item": "float64"},
        {"item": "Int64"},
        {"item": "object"},
        {"item": "category"},
        {"rating": "float32"},
        {"rating": "object"},
    ],
    ids=str,
)
def test_pandas_frames(column):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(COLUMNS, index=[5, 5, 5]).astype(column)
    assert rows(frame) == ROWS


def test_pandas_objects_of_whole_and_broken_numbers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({**COLUMNS, "rating": pd.Series([4, 2.5, 5], dtype=object)})
    assert rows(frame) == ROWS


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_missing_pandas_ids_are_refused(dtype):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user": pd.Series(["a", None, "b"], dtype=dtype), "item": [1, 2, 3]})
    with pytest.raises(us.DataError, match=r"column 'user': 1 id is missing, the first in row 2"):
        us.read_ratings(frame)


def test_missing_pandas_ratings_are_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({**COLUMNS, "rating": pd.Series([4, None, 5], dtype="Int64")})
    with pytest.raises(us.DataError, match=r"'rating': 1 rating is missing.* first in row 2"):
        us.read_ratings(frame)


def test_a_pandas_series_is_no_frame():
    pd = pytest.importorskip("pandas")
    with pytest.raises(us.DataError, match="expected a pandas DataFrame, got a Series"):
        us.read_ratings(pd.Series([1, 2]))


def test_pyarrow_tables():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(COLUMNS)
    assert rows(table) == ROWS
    packed = table.set_column(0, "user", table["user"].dictionary_encode())
    assert rows(packed) == ROWS


def test_duckdb_relations():
    duckdb = pytest.importorskip("duckdb")
    values = ", ".join(str(row) for row in zip(*COLUMNS.values(), strict=True))
    relation = duckdb.sql(f"select * from (values {values}) as t(user_id, item_id, rating)")
    assert rows(relation) == ROWS


def test_mappings_of_arrays():
    assert rows(COLUMNS) == ROWS
    assert rows({name: np.array(values) for name, values in COLUMNS.items()}) == ROWS
    assert rows({"user": [1], "item": ["x"], "rating": [5]}) == [(1, "x", 5.0)]
    assert rows({"user": [1, 1], "item": [2, 3], "rating": [5, 3.5]}) == [(1, 2, 5.0), (1, 3, 3.5)]
    with pytest.raises(us.DataError, match=r"columns differ in length: .*'item': 2"):
        us.read_ratings({"user": [1], "item": [2, 3]})
    with pytest.raises(us.DataError, match=r"'user' mixes .* \(int in row 1, str in row 2\)"):
        us.read_ratings({"user": [1, "x"], "item": [2, 3]})
    with pytest.raises(us.DataError, match="column 'user': expected an array or a list, got 5"):
        us.read_ratings({"user": 5, "item": [2, 3]})


def test_ratings_pass_and_other_things_do_not():
    made = us.read_ratings(COLUMNS)
    assert us.read_ratings(made) is made
    with pytest.raises(us.DataError, match="cannot read int: give a path"):
        us.read_ratings(5)


# Names of columns


@pytest.mark.parametrize(
    ("user", "item", "rating"),
    [
        ("userId", "movieId", "rating"),
        ("user_id:token", "item_id:token", "rating:float"),
        ("reviewerID", "asin", "stars"),
        ("User-ID", "ISBN", "Book-Rating"),
        ("qid", "docno", "rel"),
        ("u", "i", "r"),
    ],
)
def test_guessed_names(user, item, rating):
    table = dict(zip((user, item, rating), COLUMNS.values(), strict=True))
    guessed = rating != "Book-Rating"
    made = us.read_ratings(table, rating=None if guessed else rating)
    assert made.to_polars().rows() == ROWS
    assert f"user = {user}, item = {item}, rating = {rating}" in made.notes[0]


def test_the_most_telling_name_wins():
    made = us.read_ratings({**COLUMNS, "score": [0, 0, 0], "u": [1, 2, 3], "movie": [1, 2, 3]})
    assert made.to_polars().rows() == ROWS


def test_recbole_files(tmp_path):
    text = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t7\t5.0\t978300760\n"
    made = us.read_ratings(write(tmp_path / "ml.inter", text))
    assert made.to_polars().rows() == [(1, 7, 5.0, dt.datetime(2000, 12, 31, 22, 12, 40))]
    assert "time = timestamp:float" in made.notes[0]


def test_columns_given_by_name_and_by_number(tmp_path):
    text = "who,what,how,rating\nbob,7,4,0\nann,9,2.5,0\nann,7,5,0\n"
    path = write(tmp_path / "r.csv", text)
    assert rows(path, user="who", item="what", rating="how") == ROWS
    assert rows(path, user=0, item=1, rating=2) == ROWS
    assert rows(path, user="who", item=1) == [(u, i, 0.0) for u, i, _ in ROWS]
    with pytest.raises(
        us.DataError, match=r"no column 'whom' for user; .*: who, what, how, rating"
    ):
        us.read_ratings(path, user="whom", item=1)
    with pytest.raises(us.DataError, match="user column 4 does not exist; the table has 4 columns"):
        us.read_ratings(path, user=4, item=1)


def test_without_ratings_the_data_is_implicit():
    made = us.read_ratings({"user": [1, 1], "item": [2, 3]})
    assert made.implicit
    assert (
        made.notes[1] == "arrays: no rating column, so every pair counts as 1 (implicit feedback)"
    )


def test_tags_are_kept_and_must_exist():
    made = us.read_ratings({**COLUMNS, "fold": [1, 2, 3]}, tags=["fold"])
    assert made.tags["fold"].to_list() == [3, 2, 1]
    with pytest.raises(us.DataError, match="no column 'part' to keep as a tag"):
        us.read_ratings(COLUMNS, tags=["part"])


def test_duplicates_go_through():
    twice = {"user": [1, 1], "item": [2, 2], "rating": [3, 5]}
    assert rows(twice, duplicates="mean") == [(1, 2, 4.0)]


# Ids


@pytest.mark.parametrize("odd", ["007", "1.0", "1e3", "0x1", "-0", "12345678901234567890"])
def test_ids_stay_text_unless_all_are_canonical_decimals(tmp_path, odd):
    made = us.read_ratings(write(tmp_path / "r.csv", f"user,item\n{odd},1\n8,2\n"))
    assert made.users.values.to_list() == sorted([odd, "8"])
    assert made.items.values.to_list() == [1, 2]


@pytest.mark.parametrize("odd", ["007", "1234567890123456789"])
def test_an_odd_id_far_down_makes_all_text(tmp_path, odd):
    """The kind of the ids must not depend on which row comes first."""
    ids = [*map(str, range(1000, 1200)), odd]
    kinds = set()
    for order in (ids, ids[::-1]):
        lines = "".join(f"{i},x\n" for i in order)
        kinds.add(us.read_ratings(write(tmp_path / "r.csv", "user,item\n" + lines)).fingerprint)
    assert len(kinds) == 1


def test_negative_ids_are_integers(tmp_path):
    assert rows(write(tmp_path / "r.csv", "user,item\n-5,3\n4,-10\n")) == [
        (-5, 3, 1.0),
        (4, -10, 1.0),
    ]


def test_shuffled_files_give_the_same_fingerprint(tmp_path):
    lines = [f"{u},i{u * k % 7},{k % 5 + 1}" for u in range(1, 20) for k in (1, 2, 3) if u % 7]
    random.Random(3).shuffle(lines)
    first = us.read_ratings(write(tmp_path / "a.csv", "user,item,rating\n" + "\n".join(lines)))
    lines.sort()
    second = us.read_ratings(write(tmp_path / "b.csv", "user,item,rating\n" + "\n".join(lines)))
    assert first.fingerprint == second.fingerprint


# Time stamps


MOMENT = 978_307_200_000_000  # 2001-01-01, in microseconds


@pytest.mark.parametrize(
    "stamp",
    [
        978_307_200,
        978_307_200.0,
        "978307200",
        978_307_200_000,
        978_307_200_000_000,
        978_307_200_000_000_000,
        "2001-01-01",
        "2001-01-01T00:00:00",
        "2001-01-01 00:00:00",
        "2001-01-01T00:00:00Z",
        "2001-01-01T02:00:00+02:00",
        dt.date(2001, 1, 1),
        dt.datetime(2001, 1, 1),
        dt.datetime(2001, 1, 1, tzinfo=dt.UTC),
    ],
)
def test_time_stamps(stamp):
    made = us.read_ratings({"user": [1, 2], "item": [1, 1], "timestamp": [stamp, stamp]})
    assert made.time.tolist() == [MOMENT, MOMENT]


@pytest.mark.parametrize("stamp", ["978307200", "978307200.5", "2001-01-01T00:00:00.250"])
def test_time_stamps_in_files(tmp_path, stamp):
    made = us.read_ratings(write(tmp_path / "r.csv", f"user,item,timestamp\n1,2,{stamp}\n"))
    fraction = {"5": 500_000, "0": 250_000 if "T" in stamp else 0}[stamp[-1]]
    assert made.time.tolist() == [MOMENT + fraction]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_datetime_columns_of_any_unit(unit):
    pd = pytest.importorskip("pandas")
    stamps = pd.Series(["2001-01-01"]).astype(f"datetime64[{unit}]")
    columns = {"user": [1], "item": [1], "date": stamps}
    assert us.read_ratings(pd.DataFrame(columns)).time.tolist() == [MOMENT]
    assert us.read_ratings({**columns, "date": stamps.to_numpy()}).time.tolist() == [MOMENT]


def test_time_follows_its_row():
    made = us.read_ratings({**COLUMNS, "time": [30, 20, 10]})
    assert made.time.tolist() == [10_000_000, 20_000_000, 30_000_000]


def test_bad_time_stamps_are_refused():
    with pytest.raises(us.DataError, match=r"'time': 1 time stamp is neither .*row 2: 'soon'"):
        us.read_ratings({"user": [1, 2], "item": [1, 1], "time": ["2001-01-01", "soon"]})
    with pytest.raises(us.DataError, match=r"1 time stamp is missing in column 'time', .*row 1"):
        us.read_ratings({"user": [1, 2], "item": [1, 1], "time": [None, 5]})
    with pytest.raises(us.DataError, match=r"got Duration"):
        us.read_ratings({"user": [1], "item": [1], "time": [dt.timedelta(days=1)]})


@pytest.mark.parametrize(
    "stamp", [float("nan"), float("inf"), 1e300, -1e300, 1e20, 2**67, "1e300", "nan"]
)
def test_time_stamps_that_are_no_dates_are_refused(stamp):
    """A cast to integers would make 1e300 the earliest of all."""
    times = [str(5) if isinstance(stamp, str) else 5.0, stamp]
    with pytest.raises(us.DataError, match=r"arrays: column 'time': 1 time stamp .* row 2: "):
        us.read_ratings({"user": [1, 2], "item": [1, 1], "time": times})


def test_dates_beyond_all_bounds_are_refused():
    far = pl.Series("time", [0, 2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    with pytest.raises(us.DataError, match=r"1 time stamp is not a date .* row 2"):
        us.read_ratings(pl.DataFrame({"user": [1, 2], "item": [1, 1], "time": far}))


SIZES = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


@pytest.mark.parametrize(("first", "second"), [*itertools.permutations(SIZES, 2)])
def test_time_stamps_in_two_units_are_refused(tmp_path, first, second):
    stamps = [1_600_000_000 * SIZES[first], 1_600_000_001 * SIZES[second]] * 5
    lines = "".join(f"{n},1,{stamp}\n" for n, stamp in enumerate(stamps))
    path = write(tmp_path / "r.csv", "user,item,timestamp\n" + lines)
    with pytest.raises(
        us.DataError, match=r"r\.csv: column 'timestamp'.* in several units"
    ) as told:
        us.read_ratings(path)
    message = str(told.value)
    assert f"5 look like {first} (the first is row 1: {stamps[0]}" in message
    assert f"5 look like {second} (the first is row 2: {stamps[1]}" in message


def test_one_odd_unit_among_many_rows_is_found():
    times = [1_600_000_000 + n for n in range(1000)]
    times[700] *= 1000
    with pytest.raises(us.DataError, match=r"1 look like milliseconds \(the first is row 701"):
        us.read_ratings({"user": list(range(1000)), "item": [1] * 1000, "time": times})


def test_small_numbers_go_with_any_unit():
    """0 and 86,400,000 milliseconds are the first days of 1970, not another unit."""
    made = us.read_ratings({"user": [1, 2, 3], "item": [1] * 3, "time": [0, 86_400_000, 10**12]})
    assert made.time.tolist() == [0, 86_400_000_000, 10**15]


@pytest.mark.parametrize(
    ("stamps", "unit"),
    [
        *(([10**9 * size, 2 * 10**9 * size], f"{unit} since 1970") for unit, size in SIZES.items()),
        (["2001-09-09", "2033-05-18"], "ISO dates, taken as UTC"),
        ([dt.date(2001, 9, 9), dt.date(2033, 5, 18)], "dates"),
        ([dt.datetime(2001, 9, 9), dt.datetime(2033, 5, 18)], "dates with time"),
    ],
)
def test_the_note_names_the_unit_and_the_range_of_times(stamps, unit):
    made = us.read_ratings({"user": [1, 2], "item": [1, 1], "when": stamps}, time="when")
    assert made.notes[0].endswith(f"time = when ({unit}, 2001-09-09 to 2033-05-18)")


# TREC qrels


QRELS = "q1 0 d1 2\nq1  0\td2 0\nq2 0 d1 -1\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["test.qrels", "qrels.txt", "crlf.qrel", "indented.txt"])
def test_qrels(tmp_path, name, packed):
    text = QRELS.replace("\n", "\r\n") if name == "crlf.qrel" else QRELS
    text = "  " + text if name == "indented.txt" else text
    made = us.read_ratings(write(tmp_path / name, text, packed))
    assert made.to_polars().rows() == [
        ("q1", "d1", 2.0, False), ("q1", "d2", 0.0, False), ("q2", "d1", -1.0, True),
    ]  # fmt: skip
    assert made.tags["pooled"].to_list() == [False, False, True]
    assert made.notes == (
        f"{name}: TREC qrels, 3 rows; 1 of them in the pool but not judged (negative grade)",
    )


def test_a_run_is_no_qrels(tmp_path):
    path = write(tmp_path / "a.run", "q1 Q0 d1 1 0.5 x\n")
    with pytest.raises(us.DataError, match=r"4 columns .*this has 6; a run file goes to read_run"):
        us.read_ratings(path)


def test_qrels_need_numbers(tmp_path):
    path = write(tmp_path / "a.qrels", "q1 0 d1 1\nq1 0 d2 high\n")
    with pytest.raises(
        us.DataError, match=r"1 of the grades .* is not a number, the first in row 2: 'high'"
    ):
        us.read_ratings(path)


# Errors


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n  \n", "the file is empty"),
        ("user,item,rating\n", "there are no rows"),
        (b"PAR1\x00\x01\x02", r"not a text file, and not a whole Parquet file either"),
        ('"user,item\n1,2\n', r"a quotation mark is left open in the first line: '\"user,item'"),
        ('user,item\n1,2\n"3,4\n5,6\n', r"cannot be read .* is a quotation mark left open\?"),
        ('"', "a quotation mark is left open in the first line"),
        # From there on polars reads up to the next one, and what lies between is in no row.
        (
            'user,ite"m\n1,2\n3,4"4\n5,6\n',
            "quotation mark stands inside the name of a column: 'ite",
        ),
        ("who,item,rating\n1,2,3\n", "no user column found among: who, item, rating"),
        ("user,what,rating\n1,2,3\n", "no item column found among: user, what, rating"),
        (
            "user,item,rating\n1,2,3\n1,3,good\n1,4,bad\n",
            r"2 ratings in column 'rating' are not numbers, the first in row 2: 'good'",
        ),
        ("user,item,rating\n1,2,3\n1,3,\n", "1 rating is missing.* the first in row 2"),
        ("user,item,rating\n,2,3\n1,3,4\n", "column 'user': 1 id is missing, the first in row 1"),
        ("user,item\n1,2\n1,2,3\n", r"1 line has another .*line 3, which has 3: does a separator"),
        (
            "user,item\nJos\u00e9,2\n".encode("latin-1"),
            "cannot be read as UTF-8 text: line 2 has .*Latin-1",
        ),
        (gzip.compress(CSV.encode() * 99, mtime=0)[:60], "the gzip file is damaged"),
        (b"\x1f\x8bgarbage, not gzip", "the gzip file is damaged"),
    ],
)
def test_unreadable_files(tmp_path, content, message):
    path = write(tmp_path / "bad.csv", content)
    with pytest.raises(us.DataError, match=message):
        us.read_ratings(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('"b, c",x,3\nd,"y\n1"', "1 line has another number of cells .*line 3, which has 2"),
        ('a,b,2\n"c"\nd,e\n', "2 lines have another number of cells .*line 3, which has 1"),
    ],
)
def test_a_row_that_is_cut_short_between_quotation_marks(tmp_path, rows, message):
    path = tmp_path / "ratings.csv"
    path.write_text(f"user,item,rating\n{rows}")
    with pytest.raises(us.DataError, match=message):
        us.read_ratings(path)


def test_separators_and_lines_between_quotation_marks_are_text(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text('user,item,rating,note\na,"b, c",3,\n"d\ne",f,4,"x,y"\n\n')
    table = us.read_ratings(path).to_polars()
    assert table.select("user", "item", "rating").rows() == [("a", "b, c", 3.0), ("d\ne", "f", 4.0)]


@pytest.mark.parametrize("name", ["r.csv", "r.dat", "r.qrels"])
def test_gzip_files_cut_short_anywhere_are_refused(tmp_path, name):
    separator = {"r.csv": ",", "r.dat": "::", "r.qrels": " "}[name]
    zero = ("0",) if name == "r.qrels" else ()
    rows = (map(str, (n, *zero, n * n % 977, n % 5)) for n in range(5000))
    content = gzip.compress("\n".join(separator.join(row) for row in rows).encode(), mtime=0)
    assert len(us.read_ratings(write(tmp_path / name, content))) == 5000
    for cut in range(2, len(content), len(content) // 29):
        path = write(tmp_path / name, content[:cut])
        with pytest.raises(us.DataError, match=rf"{name}: the gzip file is damaged or cut short"):
            us.read_ratings(path)


def test_damaged_gzip_of_colons_is_refused_however_late(tmp_path):
    lines = "".join(f"{n}::{n * n}::{n % 5}\n" for n in range(100_000))
    path = write(tmp_path / "bad.dat", gzip.compress(lines.encode(), mtime=0)[:-50])
    with pytest.raises(us.DataError, match="the gzip file is damaged"):
        us.read_ratings(path)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(us.DataError, match=r"nowhere\.csv: no such file"):
        us.read_ratings(tmp_path / "nowhere.csv")
    with pytest.raises(us.DataError, match="no Parquet file here"):
        us.read_ratings(str(tmp_path))


@pytest.mark.parametrize("name", ["ratings[1].csv", "a*b?.csv", "{x,y}.csv", "r[1].parquet"])
def test_names_are_not_patterns(tmp_path, name):
    path = tmp_path / name
    if name.endswith("parquet"):
        with path.open("wb") as file:
            pl.DataFrame(COLUMNS).write_parquet(file)
    else:
        write(path, CSV)
    assert rows(path) == ROWS


def test_folders_named_like_columns_add_no_column(tmp_path):
    home = tmp_path / "rating=9"
    home.mkdir()
    pl.DataFrame(COLUMNS).drop("rating").write_parquet(home / "r.parquet")
    assert us.read_ratings(home / "r.parquet").implicit


def test_names_that_are_too_long_or_not_ours(tmp_path):
    with pytest.raises(us.DataError, match=r"x: cannot be read: the name is too long"):
        us.read_ratings("x" * 300)
    path = write(tmp_path / "r.csv", CSV)
    path.chmod(0)
    if not os.access(path, os.R_OK):  # root reads everything
        with pytest.raises(us.DataError, match=r"r\.csv: cannot be read: permission is missing"):
            us.read_ratings(path)


@pytest.mark.parametrize("end", ["\n", "\n\n", "  \n", ",,\n,,\n", "\r\n"])
@pytest.mark.parametrize("last", ["rating", "timestamp"])
def test_empty_lines_at_the_end_are_left_out_and_counted(tmp_path, end, last):
    made = us.read_ratings(write(tmp_path / "r.csv", f"user,item,{last}\n1,2,3\n" + end))
    assert made.to_polars().rows()[0][:2] == (1, 2)
    assert made.users.kind == "integer"
    count = end.count("\n")
    assert f"r.csv: {count} empty line{'s' * (count > 1)} at the end left out" in made.notes
    assert "comma-separated, 1 row" in made.notes[0]


def test_errors_about_ids_name_the_file(tmp_path):
    path = write(tmp_path / "test.csv", "user,item,rating\n1,2,3\n,3,4\n1,5,6\n")
    with pytest.raises(us.DataError, match=r"^test\.csv: column 'user': 1 id is missing, .* 2"):
        us.read_ratings(path)
    path = write(tmp_path / "test.csv", "user,item\n1,2\n1,2\n")
    with pytest.raises(us.DataError, match=r"^test\.csv: 1 user-item pair occurs .* read_events"):
        us.read_ratings(path)


# Pipes can be read only once.


def pairs(separator, rows, header=""):
    lines = (separator.join(map(str, (n, n * 7919 % 977, n % 5))) for n in range(rows))
    return (header + "\n".join(lines) + "\n").encode()


def parquet_bytes(rows):
    out = io.BytesIO()
    numbers = range(rows)
    items = [n * 7919 % 977 for n in numbers]
    pl.DataFrame(
        {"user": numbers, "item": items, "rating": [n % 5 for n in numbers]}
    ).write_parquet(out)
    return out.getvalue()


CONTENT = {
    "csv": lambda rows: pairs(",", rows, "user,item,rating\n"),
    "headerless": lambda rows: pairs(",", rows),
    "tsv": lambda rows: pairs("\t", rows),
    "colons": lambda rows: pairs("::", rows),
    "qrels": lambda rows: b"".join(b"%d 0 %d %d\n" % (n, n * 7 % 977, n % 5) for n in range(rows)),
    "gzip": lambda rows: gzip.compress(pairs("::", rows)),
    "parquet": parquet_bytes,
}


@pytest.mark.parametrize("rows", [3, 40_000])
@pytest.mark.parametrize("kind", CONTENT)
def test_pipes_lose_no_row(tmp_path, kind, rows):
    content = CONTENT[kind](rows)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    made = us.read_ratings(tmp_path / "pipe")
    writer.join()
    assert len(made) == rows
    assert made.fingerprint == us.read_ratings(write(tmp_path / "file", content)).fingerprint


@pytest.mark.parametrize("rows", [3, 40_000])
def test_standard_input_is_read_once(rows):
    code = "import unskew as us; print(us.read_ratings('/dev/stdin').fingerprint)"
    content = pairs("::", rows)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=content, capture_output=True, check=True)
    columns = [[int(cell) for cell in line.split(b"::")] for line in content.split()]
    table = dict(zip(("user", "item", "rating"), zip(*columns, strict=True), strict=True))
    expected = us.read_ratings({name: list(values) for name, values in table.items()})
    assert done.stdout.decode().strip() == expected.fingerprint


def test_an_empty_pipe_is_an_empty_file(tmp_path):
    with pytest.raises(us.DataError, match="/dev/null: the file is empty"):
        us.read_ratings("/dev/null")


def test_text_that_should_be_parquet(tmp_path):
    with pytest.raises(us.DataError, match="not a readable Parquet file"):
        us.read_ratings(write(tmp_path / "r.parquet", CSV))


def test_an_unknown_format_is_refused_with_the_nearest(tmp_path):
    path = write(tmp_path / "r.csv", CSV)
    with pytest.raises(us.UnknownName, match=r"unknown format 'parket'\. Did you mean 'parquet'\?"):
        us.read_ratings(path, format="parket")


# Catalogues


def test_items_from_anywhere(tmp_path):
    wanted = [3, 5, 8]
    assert read_items([5, 3, 8, 5]).sort().to_list() == wanted
    assert read_items(np.array([5, 3, 8])).sort().to_list() == wanted
    assert read_items(pl.Series([5, 3, 8])).sort().to_list() == wanted
    assert read_items({"movie": [5, 3, 8], "title": ["a", "b", "c"]}).sort().to_list() == wanted
    assert read_items(write(tmp_path / "i.txt", "5\n3\n8\n")).sort().to_list() == wanted
    assert read_items(write(tmp_path / "i.csv", "item\n5\n3\n8\n")).sort().to_list() == wanted
    with pytest.raises(us.DataError, match="items must be a file, a table or a sequence of ids"):
        read_items(5)


@pytest.mark.parametrize(
    ("text", "item", "expected"),
    [
        ("sku\n5\n3\n", None, [3, 5]),
        ("product_name\n5\n3\n", None, [3, 5]),
        ("B01\nB02\n", None, ["B01", "B02"]),
        ("sku\na\nb\n", "sku", ["a", "b"]),
        ("a\nb\n", 0, ["a", "b"]),
        ("item\na\nb\n\n", None, ["a", "b"]),
        ("sku,price\na,x\nb,y\n", "sku", ["a", "b"]),
        ("7,x\n8,y\n", 1, ["x", "y"]),
    ],
)
def test_the_name_of_the_one_column_is_no_item(tmp_path, text, item, expected):
    assert read_items(write(tmp_path / "i.csv", text), item).sort().to_list() == expected


def test_a_first_line_that_may_be_a_name_or_an_item_is_told_or_refused(tmp_path):
    with pytest.warns(us.DataWarning, match=r"i\.csv: took the first line, 'thing', as the name"):
        assert read_items(write(tmp_path / "i.csv", "thing\nB1\nB2\n")).sort().to_list() == [
            "B1",
            "B2",
        ]
    with pytest.raises(
        us.DataError, match=r"i\.csv: is the first line, 'thing', the name .* 'item'"
    ):
        read_items(write(tmp_path / "i.csv", "thing\nred\nblue\n"))
    with pytest.raises(us.DataError, match=r"no column 'sku' for item; the columns are: what"):
        read_items(write(tmp_path / "i.csv", "what\nred\n"), "sku")


@pytest.mark.parametrize(
    ("stamps", "words", "first"),
    [
        (["2020-01-01T10:00:00+02:00", "2020-01-01T10:00:00Z"], "with a time zone", 8),
        (["2020-01-01T10:00:00", "2020-01-02T10:00:00"], "taken as UTC", 10),
        (["2020-01-01T10:00:00-0530", "2020-01-02T10:00:00-0530"], "turned into UTC", 15.5),
    ],
)
def test_time_zones_are_turned_into_utc_and_said(stamps, words, first):
    data = us.read_ratings({"user": [1, 2], "item": [1, 2], "time": stamps})
    assert words in data.notes[0]
    assert data.time.tolist()[0] == 1_577_836_800_000_000 + first * 3_600_000_000


def test_a_column_with_a_time_zone_is_turned_into_utc():
    moments = pl.Series(["2020-07-01T10:00:00"]).str.to_datetime("%FT%T", time_zone="Europe/Madrid")
    data = us.read_ratings(pl.DataFrame({"user": [1], "item": [1], "time": moments}))
    assert "dates with time of Europe/Madrid, turned into UTC" in data.notes[0]
    assert str(data.to_polars()["time"][0]) == "2020-07-01 08:00:00"


def test_time_stamps_with_and_without_a_zone_are_refused():
    stamps = ["2020-01-01T10:00:00Z", "2020-01-01T10:00:00"]
    with pytest.raises(us.DataError, match=r"row 1 has .*Z', row 2 has .*write all in one way"):
        us.read_ratings({"user": [1, 2], "item": [1, 2], "time": stamps})


@pytest.mark.parametrize(
    ("column", "feedback", "implicit", "note"),
    [
        ("plays", None, True, "column 'plays' counts use (implicit feedback)"),
        ("count", None, True, "counts use"),
        ("count", "explicit", False, ""),
        ("rating", None, False, ""),
        ("rating", "implicit", True, ""),
        ("stars", None, False, ""),
    ],
)
def test_the_kind_of_feedback_is_detected_or_declared(column, feedback, implicit, note):
    data = us.read_ratings({"user": [1, 2], "item": [1, 2], column: [3, 1]}, feedback=feedback)
    assert data.implicit is implicit
    assert note in " ".join(data.notes)
    assert ("counts use" in " ".join(data.notes)) == bool(note)


def test_counts_of_nothing_are_no_implicit_feedback():
    assert not us.read_ratings({"user": [1, 2], "item": [1, 2], "clicks": [0, 1]}).implicit


def test_explicit_feedback_needs_ratings():
    with pytest.raises(us.DataError, match="explicit feedback needs a column of ratings"):
        us.read_ratings({"user": [1], "item": [1]}, feedback="explicit")


def test_counts_keep_their_name_in_files(tmp_path):
    data = us.read_ratings({"user": [1, 2], "item": [1, 2], "plays": [3, 1]})
    data.to_csv(tmp_path / "counts.csv")
    back = us.read_ratings(tmp_path / "counts.csv")
    assert back.implicit
    assert back.fingerprint == data.fingerprint


@pytest.mark.parametrize(
    ("stamps", "message"),
    [
        (
            ["3", "yesterday"],
            "1 time stamp is neither a number nor an ISO date, the first in row 2",
        ),
        (["a", "b"], "2 time stamps are neither numbers nor ISO dates, the first in row 1: 'a'"),
        (
            ["3", "2024-01-02"],
            "numbers and others ISO dates: row 1 has '3', row 2 has '2024-01-02'",
        ),
    ],
)
def test_stamps_that_cannot_be_read_are_counted_by_themselves(stamps, message):
    with pytest.raises(us.DataError, match=re.escape(message)):
        us.read_events({"user": [1, 2], "item": [1, 2], "time": stamps})


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.csv", "user,item,rating,title\n1,2,4.5,x\n1,3,4.5,y\n2,2,4", 4),
        ("a.tsv", "user\titem\trating\ttitle\n1\t2\t4.5\tx\n2\t2\t4\n3\t2\t4\tz\n", 3),
        ("a.dat", "1::2::3::4\n1::3::4\n", 2),
        ("a.qrels", "1 0 2 1\n1 0 3\n", 2),
    ],
)
def test_rows_that_are_cut_short_are_refused(tmp_path, name, text, line):
    (tmp_path / name).write_text(text)
    with pytest.raises(
        us.DataError, match=rf"{name}: 1 line has another number.*line {line}, which has 3"
    ):
        us.read_ratings(tmp_path / name)


def test_a_run_that_is_cut_short_is_refused(tmp_path):
    """The last score may have lost its end: 13 would be read as 1."""
    (tmp_path / "a.run").write_text("1 Q0 2 1 13 tag\n1 Q0 3 2 1")
    with pytest.raises(
        us.DataError, match=r"a.run: 1 line has another number of words than the first"
    ):
        us.read_run(tmp_path / "a.run")


def test_empty_cells_at_the_end_of_rows_are_no_short_rows(tmp_path):
    (tmp_path / "a.csv").write_text("user,item,rating,title\n1,2,4.5,\n1,3,4.5,y\n\n")
    assert len(us.read_ratings(tmp_path / "a.csv", tags=["title"])) == 2
    (tmp_path / "b.csv").write_text('user,item,rating,title\n1,2,4.5,\n1,3,4.5,"a,b"\n')
    assert len(us.read_ratings(tmp_path / "b.csv", tags=["title"])) == 2


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", b"user;item;rat\xc3ing\n1;2;3.5\n", "cannot be read as UTF-8"),
        ("a.dat", b"1::2\x1f3::4\n1::3::4\n", "control character"),
    ],
)
def test_bytes_that_polars_would_take(tmp_path, name, content, why):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(us.DataError, match=rf"{name}: .*{why}"):
        us.read_ratings(tmp_path / name)
