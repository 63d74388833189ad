"""Reading ratings: every kind of file and frame gives the same ratings, or a helpful error."""

import datetime as dt
import gzip
import random

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.data.readers import read_items

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
    with pytest.raises(us.DataError, match="no user column found"):
        us.read_ratings(path, format="csv")


# The first line is a header when it holds no number.


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        ("1,7\n1,9\n", [(1, 7, 1.0), (1, 9, 1.0)], "user = user, item = item"),
        ("\ufeff1::x\n2::y\n", [(1, "x", 1.0), (2, "y", 1.0)], "user = user, item = item"),
        ("ann,x,5\n", [("ann", "x", 5.0)], "user = user, item = item, rating = rating"),
        (
            "1::7::5::978300760\n",
            [(1, 7, 5.0, dt.datetime(2000, 12, 31, 22, 12, 40))],
            "user = user, item = item, rating = rating, time = time",
        ),
    ],
)
def test_files_without_a_header(tmp_path, text, expected, note):
    made = us.read_ratings(write(tmp_path / "r", text))
    assert made.to_polars().rows() == expected
    assert "without header" in made.notes[0]
    assert made.notes[0].endswith(note)
    assert made.implicit == ("rating" not in note)


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
    with pytest.raises(us.DataError, match=r"column 'user': 1 ids are missing, the first in row 2"):
        us.read_ratings(frame)


def test_missing_pandas_ratings_are_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({**COLUMNS, "rating": pd.Series([4, None, 5], dtype="Int64")})
    with pytest.raises(us.DataError, match=r"'rating': 1 ratings are missing.* first in row 2"):
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
    with pytest.raises(us.DataError, match=r"column 'user' mixes .* kinds \(int, str\)"):
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
    with pytest.raises(us.DataError, match="user column 4 does not exist; there are 4 columns"):
        us.read_ratings(path, user=4, item=1)


def test_without_ratings_the_data_is_implicit():
    made = us.read_ratings({"user": [1, 1], "item": [2, 3]})
    assert made.implicit
    assert made.notes[1] == "arrays: no rating column, so every pair counts as 1 (implicit data)"


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
    with pytest.raises(us.DataError, match=r"1 time stamps in column 'time' .*row 2: 'soon'"):
        us.read_ratings({"user": [1, 2], "item": [1, 1], "time": ["2001-01-01", "soon"]})
    with pytest.raises(us.DataError, match=r"1 time stamps are missing in column 'time', .*row 1"):
        us.read_ratings({"user": [1, 2], "item": [1, 1], "time": [None, 5]})
    with pytest.raises(us.DataError, match="time stamps in column 'time' are NaN or infinite"):
        us.read_ratings({"user": [1, 2], "item": [1, 1], "time": [float("nan"), 5.0]})


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
        f"{name}: TREC qrels, 3 rows, of which 1 in the pool but not judged (negative grade)",
    )


def test_a_run_is_no_qrels(tmp_path):
    path = write(tmp_path / "a.run", "q1 Q0 d1 1 0.5 x\n")
    with pytest.raises(us.DataError, match=r"4 columns .*this has 6; a run file goes to read_run"):
        us.read_ratings(path)


def test_qrels_need_numbers(tmp_path):
    path = write(tmp_path / "a.qrels", "q1 0 d1 1\nq1 0 d2 high\n")
    with pytest.raises(us.DataError, match=r"1 grades .* not numbers, the first in row 2: 'high'"):
        us.read_ratings(path)


# Errors


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n  \n", "the file is empty"),
        ("user,item,rating\n", "there are no rows"),
        (b"PAR1\x00\x01\x02", r"not a text file; is it Parquet\? Then say format='parquet'"),
        ("who,item,rating\n1,2,3\n", "no user column found among: who, item, rating"),
        ("user,what,rating\n1,2,3\n", "no item column found among: user, what, rating"),
        (
            "user,item,rating\n1,2,3\n1,3,good\n1,4,bad\n",
            r"2 ratings in column 'rating' are not numbers, the first in row 2: 'good'",
        ),
        ("user,item,rating\n1,2,3\n1,3,\n", "1 ratings are missing.* the first in row 2"),
        ("user,item,rating\n,2,3\n1,3,4\n", "column 'user': 1 ids are missing, the first in row 1"),
        ("user,item\n1,2\n1,2,3\n", "cannot be read as a table"),
        ("user,item\nJos\u00e9,2\n".encode("latin-1"), "cannot be read as a table: .*utf-8"),
        (gzip.compress(CSV.encode() * 99, mtime=0)[:60], "the gzip file is damaged"),
        (b"\x1f\x8bgarbage, not gzip", "the gzip file is damaged"),
    ],
)
def test_unreadable_files(tmp_path, content, message):
    path = write(tmp_path / "bad.csv", content)
    with pytest.raises(us.DataError, match=message):
        us.read_ratings(path)


def test_damaged_gzip_of_colons_is_refused_however_late(tmp_path):
    lines = "".join(f"{n}::{n * n}::{n % 5}\n" for n in range(100_000))
    path = write(tmp_path / "bad.dat", gzip.compress(lines.encode(), mtime=0)[:-50])
    with pytest.raises(us.DataError, match="the gzip file is damaged"):
        us.read_ratings(path)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(us.DataError, match=r"nowhere\.csv: no such file"):
        us.read_ratings(tmp_path / "nowhere.csv")
    with pytest.raises(us.DataError, match="is a folder; give a file"):
        us.read_ratings(str(tmp_path))


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
