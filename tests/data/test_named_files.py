"""Files of well-known data sets and damaged text: read right without an option, or refused."""

import bz2
import datetime as dt
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import zipfile

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.data.read import json_files
from unskew.data.read.ratings_files import read_items


@pytest.fixture
def put(tmp_path):
    """Write a file; return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def rows(source, **settings):
    return us.read_ratings(source, **settings).to_polars().rows()


def refused(path, message, **settings):
    with pytest.raises(us.DataError, match=message) as problem:
        us.read_ratings(path, **settings)
    assert path.name in str(problem.value)
    assert "\n" not in str(problem.value)


# Without a header line: times and the order of columns are told by what is there.


MOMENT = dt.datetime(1997, 12, 4, 15, 55, 49)
SECONDS = 881250949
SIZES = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


@pytest.mark.parametrize("mark", ["\t", ",", "::", ";", "|", " ", "   "])
def test_user_item_rating_and_time(put, mark):
    text = f"196{mark}242{mark}3{mark}{SECONDS}\n186{mark}302{mark}3{mark}{SECONDS}\n"
    data = us.read_ratings(put("u.data", text))
    assert data.to_polars().rows() == [(186, 302, 3.0, MOMENT), (196, 242, 3.0, MOMENT)]
    assert data.tags == {}
    assert (
        "u.data: no header line: column 0 the user, 1 the item, 2 the rating, 3 the time (seconds "
        "since 1970); counted from 0" in data.notes
    )
    assert us.read_events(put("u.data", text)).time.tolist() == [SECONDS * 10**6] * 2


@pytest.mark.parametrize(("unit", "size"), SIZES.items())
def test_epochs_of_each_unit_are_times(put, unit, size):
    data = us.read_ratings(put("r.csv", f"1,2,5,{SECONDS * size}\n1,3,4,{SECONDS * size}\n"))
    assert data.time.tolist() == [SECONDS * 10**6] * 2
    assert f"time = time ({unit} since 1970" in data.notes[0]


@pytest.mark.parametrize("stamp", [f"{SECONDS}.0", "1997-12-04 15:55:49", "1997-12-04T15:55:49"])
def test_other_spellings_of_times(put, stamp):
    assert rows(put("r.csv", f"1,2,5,{stamp}\n")) == [(1, 2, 5.0, MOMENT)]


def test_times_in_the_third_column(put):
    data = us.read_ratings(put("r.tsv", f"1\t7\t{SECONDS}\n2\t8\t{SECONDS}\n"))
    assert data.implicit
    assert data.to_polars().rows() == [(1, 7, 1.0, MOMENT), (2, 8, 1.0, MOMENT)]
    swapped = us.read_ratings(put("r.tsv", f"1\t7\t{SECONDS}\t4\n2\t8\t{SECONDS}\t5\n"))
    assert swapped.value.tolist() == [4.0, 5.0]
    assert swapped.time.tolist() == [SECONDS * 10**6] * 2


def test_pairs_without_anything_else(put):
    assert rows(put("r.tsv", "1\t7\n2\t8\n")) == [(1, 7, 1.0), (2, 8, 1.0)]


@pytest.mark.parametrize("stamp", [631_151_999, 4_102_444_801, 12, 1])
def test_other_numbers_are_no_times(put, stamp):
    data = us.read_ratings(put("r.csv", f"1,2,5,{stamp}\n1,3,4,{stamp}\n"))
    assert data.time is None
    assert data.tags["column_3"].to_list() == [stamp] * 2


def test_a_damaged_time_is_refused_unless_the_column_is_stated(put):
    path = put("u.data", f"1\t2\t5\t{SECONDS}\n1\t3\t4\t{SECONDS}\n1\t4\t4\t8812\n")
    refused(path, r"column 3 .* holds seconds since 1970, but row 3 has 8812: correct it, or .*=3")
    assert us.read_ratings(path, time=3).time[2] == 8812 * 10**6


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("1433221332,257597,355908\n1433224214,992329,248676\n", "column 0"),
        ("257597,1433221332,355908\n992329,1433224214,248676\n", "column 1"),
        ("1,2014-04-07T10:51:09.277Z,214536502,0\n1,2014-04-07T10:54:09Z,2145,0\n", "column 1"),
    ],
)
def test_times_where_ids_should_be_are_refused(put, text, column):
    path = put("log.csv", text)
    refused(path, rf"{column} .* looks like times .*, where the (user|item) is expected; .*user=0")
    assert len(us.read_ratings(path, user=0, item=2, rating=None, duplicates="first"))


def test_large_ids_are_ids_where_the_time_is_elsewhere(put):
    path = put("r.csv", f"1433221332,7,5,{SECONDS}\n1433221333,7,4,{SECONDS}\n")
    assert us.read_ratings(path).users.values.to_list() == [1433221332, 1433221333]


USERS = ("A2SUAM1J3GNN3B", "A14VAT5EAX3D9S", "AE3Z5PZ3V2C5UXU4LZ3FQX7WFAQA")
PRODUCTS = ("0000013714", "B000013714", "006000325X")
AMAZON = [(u, p, 5.0) for u, p in zip(USERS, PRODUCTS, strict=True)]


@pytest.mark.parametrize("stamp", [1400457600, 1588687728923])
@pytest.mark.parametrize("order", ["user, item", "item, user"])
def test_amazon_without_a_header_in_both_orders(put, order, stamp):
    pairs = [(u, p) if order == "user, item" else (p, u) for u, p, _ in AMAZON]
    path = put("ratings_Books.csv", "".join(f"{a},{b},5.0,{stamp}\n" for a, b in pairs))
    data = us.read_ratings(path)
    assert data.to_polars().drop("time").rows() == sorted(AMAZON)
    assert ("the item (Amazon's product ids), 1 the user" in data.notes[1]) == (
        order != "user, item"
    )
    assert (data.time // 1_000_000).tolist() == [stamp if stamp < 10**11 else stamp // 1000] * 3


def test_columns_stated_by_number_beat_the_order_by_content(put):
    path = put("r.csv", "".join(f"{p},{u},5.0\n" for u, p, _ in AMAZON))
    assert us.read_ratings(path, user=0, item=1).users.values.to_list() == sorted(PRODUCTS)


def test_ids_that_tell_nothing_are_taken_by_order(put):
    data = us.read_ratings(
        put("r.csv", "1234567890,1234567891,5\n1234567892,1234567893,4\n"), user=0
    )
    assert data.users.values.to_list() == [1234567890, 1234567892]
    assert "column 0 the user, 1 the item, 2 the rating" in data.notes[1]


def test_ratings_of_an_item_0_are_no_judgments(put):
    assert rows(put("r.tsv", f"1\t0\t5\t{SECONDS}\n"))[0][:3] == (1, 0, 5.0)


def test_numbers_of_columns_in_the_first_line_are_noted(put):
    data = us.read_ratings(put("r.csv", "0,1,2\n196,242,3\n"))
    assert "r.csv: the first row is 0, 1, 2; if these are numbers of columns" in data.notes[2]


# Netflix


NETFLIX = "1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n2:\n885013,4,2005-10-19\n"
NETFLIX_ROWS = [
    (822109, 1, 5.0, dt.datetime(2005, 5, 13)),
    (885013, 2, 4.0, dt.datetime(2005, 10, 19)),
    (1488844, 1, 3.0, dt.datetime(2005, 9, 6)),
]


@pytest.mark.parametrize(
    "change", [str, lambda text: text.replace("\n", "\r\n"), "\ufeff{}\n".format]
)
@pytest.mark.parametrize("packed", [False, True])
def test_netflix_by_content(put, change, packed):
    content = change(NETFLIX).encode()
    path = put("any.txt", gzip.compress(content) if packed else content)
    data = us.read_ratings(path)
    assert data.to_polars().rows() == NETFLIX_ROWS
    assert data.notes[0].startswith("any.txt: Netflix Prize, 3 rows; user = user, item = item")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1:\n1488844,3,2005-09-06\n822109,5\n", r"1 row cannot be read, the first is line 3: "),
        ("1:\n1488844,3,2005-09-06\nx,5,2005-05-13\n", "the first is line 3"),
        ("1:\n1488844,3,2005-09-06\n8,5,someday\n", "the first is line 3"),
        ("1:\n1488844,3,2005-09-06\n8,5,25-09-06\n", "the first is line 3"),
        ("1:\n1488844\n822109\n", r"no rating .*probe.txt and qualifying.txt hold none"),
        ("1:\n1488844,2005-12-19\n", r"no rating .*probe.txt and qualifying.txt hold none"),
        ("1:\n2:\n", "there are no rows"),
        ("1:\r1488844,3,2005-09-06\r", "carriage return"),
    ],
)
def test_damaged_netflix(put, text, message):
    refused(put("combined_data_1.txt", text), message)


# Jester


def jester(mark, jokes=100, users=6):
    rng = np.random.default_rng(5)
    dense = np.where(rng.random((users, jokes)) < 0.6, rng.uniform(-10, 10, (users, jokes)), 99)
    dense = dense.round(2)
    lines = (mark.join(f"{x:g}" for x in (int((row != 99).sum()), *row)) for row in dense)
    text = "\n".join(lines) + "\n"
    cells = [(u, i, x) for u, row in enumerate(dense, 1) for i, x in enumerate(row, 1) if x != 99]
    return text.replace(".", ",") if mark == ";" else text, cells


@pytest.mark.parametrize("jokes", [100, 150])
@pytest.mark.parametrize("mark", [",", "\t", ";", " "])
def test_jester_matrix_by_content(put, mark, jokes):
    text, cells = jester(mark, jokes)
    data = us.read_ratings(put("jester-data-1.csv", text))
    assert data.to_polars().rows() == [(u, i, pytest.approx(x)) for u, i, x in cells]
    assert "Jester matrix" in data.notes[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace(",99", ",3.5", 1), "1 row does not start with the number"),
        (
            lambda text: text[: len(text) * 3 // 4],
            "not a matrix of numbers|number of their ratings",
        ),
        (lambda text: text + "5,x,y\n", "not a matrix of numbers"),
        (lambda text: text.replace(",99", ",11.5", 1), r"row 1 has 11\.5 in column"),
        (lambda text: "nan" + text[2:], "1 row does not start with the number"),
    ],
)
def test_damaged_jester_matrix(put, change, message):
    refused(put("jester-data-1.csv", change(jester(",")[0])), message)


@pytest.mark.parametrize("mark", ["\t\t", "\t", "  ", " "])
def test_jester_rows(put, mark):
    cells = [(1, 5, 0.219), (1, 7, -9.281), (2, 5, -9.281)]
    text = "".join(mark.join(map(str, row)) + "\n" for row in cells)
    assert rows(put("jester_ratings.dat", text)) == cells


# JSON


GOODREADS = [
    {"user_id": "8842281e", "book_id": "24375664", "review_id": "5cd4", "is_read": True,
     "rating": 5, "date_added": "Fri Aug 25 13:55:02 -0700 2017", "read_at": ""},
    {"user_id": "8842281f", "book_id": "18245960", "review_id": "dfdb", "is_read": False,
     "rating": 0, "date_added": "Sun Jul 30 07:44:10 +0200 2017", "read_at": ""},
    {"user_id": "9942281f", "book_id": "0245960", "review_id": "dfdc", "is_read": True,
     "rating": 3, "date_added": "Sun Jul 30 07:44:10 +0200 2017", "read_at": ""},
]  # fmt: skip
AMAZON_2014 = [
    {"reviewerID": "A2SUAM1J3GNN3B", "asin": "0000013714", "helpful": [0, 0], "rating": 5.0,
     "reviewText": "x" * 600, "unixReviewTime": SECONDS, "style": {"Format:": "Hardcover"}},
    {"reviewerID": "A14VAT5EAX3D9S", "asin": "0000013715", "rating": 4, "unixReviewTime": SECONDS,
     "vote": "3"},
]  # fmt: skip
AMAZON_2023 = [
    {"rating": 5.0, "title": "t", "text": "y" * 900, "images": [], "asin": "B07A", "parent_asin":
     "B07P", "user_id": "AE22236AFRRSMQIKGG7TPTB75QEA", "timestamp": SECONDS * 1000},
]  # fmt: skip
YELP = [
    {"review_id": "KU", "user_id": "mh_-", "business_id": "XQfw", "stars": 3.0, "useful": 0,
     "text": "z" * 600, "date": "2018-07-07 22:09:11"},
]  # fmt: skip


def lines_of(records):
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize("name", ["r.json", "r.jsonl", "r.txt", "r"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("records", "expected", "columns"),
    [
        (
            GOODREADS,
            [("8842281e", "24375664", 5.0, dt.datetime(2017, 8, 25, 20, 55, 2)),
             ("9942281f", "0245960", 3.0, dt.datetime(2017, 7, 30, 5, 44, 10))],
            "user = user_id, item = book_id, rating = rating, time = date_added",
        ),
        (
            AMAZON_2014,
            [("A14VAT5EAX3D9S", "0000013715", 4.0, MOMENT),
             ("A2SUAM1J3GNN3B", "0000013714", 5.0, MOMENT)],
            "user = reviewerID, item = asin, rating = rating, time = unixReviewTime",
        ),
        (
            AMAZON_2023,
            [("AE22236AFRRSMQIKGG7TPTB75QEA", "B07P", 5.0, MOMENT)],
            "user = user_id, item = parent_asin, rating = rating, time = timestamp",
        ),
        (
            YELP,
            [("mh_-", "XQfw", 3.0, dt.datetime(2018, 7, 7, 22, 9, 11))],
            "user = user_id, item = business_id, rating = stars, time = date",
        ),
    ],
    ids=["goodreads", "amazon-2014", "amazon-2023", "yelp"],
)  # fmt: skip
def test_json_lines(put, name, packed, records, expected, columns):
    content = lines_of(records).encode()
    path = put(name + ".gz" * packed, gzip.compress(content) if packed else content)
    data = us.read_ratings(path)
    assert data.to_polars().rows() == expected
    assert columns in data.notes[0]


def test_what_is_left_out_of_json_is_stated(put):
    notes = us.read_ratings(put("a.json", lines_of(AMAZON_2014))).notes
    assert "a.json: 2 nested fields left out: 'helpful', 'style'" in notes
    assert "a.json: 1 field of long text left out: 'reviewText'" in notes
    notes = us.read_ratings(put("g.json", lines_of(GOODREADS))).notes
    assert "g.json: 1 row with rating 0 left out: in Goodreads 0 means not rated" in notes
    notes = us.read_ratings(put("b.json", lines_of(AMAZON_2023))).notes
    assert any("'parent_asin' is taken as the item, not 'asin'" in note for note in notes)


@pytest.mark.parametrize("text", ["[{}]", " [\n{}\n]\n", "\ufeff[{}]"])
def test_one_json_array(put, text):
    inside = ",\n".join(json.dumps(record) for record in YELP * 1)
    data = us.read_ratings(put("r.json", text.replace("{}", inside)))
    assert data.to_polars().rows()[0][:3] == ("mh_-", "XQfw", 3.0)


def test_python_notation(put):
    text = "{u'user_id': u'76', 'product_id': '007', 'rating': 3.5, 'early': True}\n"
    assert rows(put("steam.json", text)) == [("76", "007", 3.5)]


@pytest.mark.parametrize("block", [1, 2, 50_000])
def test_json_ids_lose_nothing(put, monkeypatch, block):
    """Whole numbers stay exact, text stays text, and both together are text: in any blocks."""
    monkeypatch.setattr(json_files, "_BLOCK", block)
    records = [
        {"user": 2**53 + 1, "item": "007", "rating": 1, "x": 1},
        {"user": -3, "item": " a", "rating": 2.5, "y": [1]},
        {"user": 5, "item": "1e5", "rating": 3, "y": 1},
    ]
    data = us.read_ratings(put("r.jsonl", lines_of(records)))
    assert data.users.values.to_list() == [-3, 5, 2**53 + 1]
    assert sorted(data.items.values.to_list()) == [" a", "007", "1e5"]
    assert sorted(data.value.tolist()) == [1.0, 2.5, 3.0]
    for odd in ("x", 10**18, 12345678901234567890, True):
        mixed = [*records, {"user": odd, "item": "b", "rating": 4}]
        users = us.read_ratings(put("r.jsonl", lines_of(mixed))).users.values.to_list()
        text = str(odd).lower() if odd is True else str(odd)
        assert users == sorted(["9007199254740993", "-3", "5", text])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n "user": 1,\n "item": 2\n}\n', r"line 1 cannot be read .*one whole object per line"),
        ('{"user":1,"item":2}\n{"user":1,"ite', r"line 2 cannot be read as a JSON object"),
        ('{"user":1,"item":2}{"user":1,"item":3}\n', r"line 1 .*Extra data"),
        ('{"user":1,"item":2}\r{"user":1,"item":3}\r', r"line 1 .*Extra data"),
        ('{"user":1,"item":2,"rating":NaN}\n', r"line 1 .*NaN is no number of JSON"),
        ('{"user":1,"item":2}\n\n{"user":1,"item":3,"rating":-Infinity}', r"line 3 .*-Infinity"),
        ('{"user":1,"item":2,"rating":1e400}\n', r"line 1: field 'rating' .*beyond"),
        ('{"user":1,"item":2,"rating":3,"rating":4}\n', r"line 1 .*'rating' occurs twice"),
        ('{"user":1,"item":2,"rating":3,"Rating":4}\n', r"rating column 'rating' occurs 2 times"),
        ('{"user":"\\ud800","item":2}\n', r"line 1: field 'user' has half a character"),
        ('{"user":1,"item":2}\n[1,2]\n', r"line 2 .*no object"),
        ('{"user":{"0":1},"item":{"0":2}}', r"no field of a number or a text; .*orient='records'"),
        ('[{"user":1,"item":2},\n{"user":1', r"line 2 of this JSON array cannot be read"),
        ("[[1,2],[3,4]]", r"element 1 of this JSON array is no object"),
        ("[]", "there are no rows"),
        ("user,item\n1,2\n", r"line 1 cannot be read as a JSON object"),
        ('{"user":' + "[" * 9999, r"line 1 cannot be read as a JSON object"),
        (b'{"user":"e","item":2}\n{"user":"\xe9","item":2}\n', r"line 2 is not UTF-8 text"),
        (b'{"user":"\xe9","item":2}\n', r"line 1 has bytes .*Latin-1"),
        (
            '{"user":1,"item":2}\n{"item":3}\n',
            r"column 'user': 1 id is missing, the first in row 2",
        ),
    ],
)
def test_damaged_json(put, text, message):
    refused(put("r.json", text), message)


def test_lists_and_catalogues_in_json(put):
    run = us.read_run(
        put("mine.jsonl", '{"user":1,"item":"b","rank":2}\n{"user":1,"item":"a","rank":1}\n')
    )
    assert run.to_polars()["item"].to_list() == ["a", "b"]
    assert read_items(put("i.jsonl", '{"asin":"a"}\n{"asin":"b"}\n')).sort().to_list() == ["a", "b"]


# Files that are something else


def zipped(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, "1\t2\t3\n")
    return out.getvalue()


def arrow():
    out = io.BytesIO()
    pl.DataFrame({"user": [1], "item": [2]}).write_ipc(out)
    return out.getvalue()


def array(save, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def database(folder):
    path = folder / "made.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table ratings (user, item)")
    connection.close()
    return path.read_bytes()


CSV = b"user,item,rating\n1,2,3\n"
FOREIGN = {
    "r.csv.bz2": (lambda _: bz2.compress(CSV), "a bzip2 file"),
    "r.csv.xz": (lambda _: lzma.compress(CSV), "an xz file"),
    "r.csv.zst": (lambda _: b"\x28\xb5\x2f\xfd\x04\x00\x01", "a Zstandard file"),
    "ml-100k.zip": (lambda _: zipped("ml-100k/u.data"), "a zip archive: unpack"),
    "r.xlsx": (lambda _: zipped("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook"),
    "r.xls": (lambda _: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00\x00", "an Excel workbook"),
    "r.npz": (lambda _: array(np.savez, a=np.arange(3)), "an archive of NumPy arrays"),
    "r.npy": (lambda _: array(lambda out: np.save(out, np.arange(3))), "a NumPy array"),
    "r.pkl": (lambda _: pickle.dumps({"user": [1]}), "a Python pickle"),
    "r.pkl.gz": (lambda _: gzip.compress(pickle.dumps({"user": [1]})), "a Python pickle"),
    "r.feather": (lambda _: arrow(), "an Arrow"),
    "r.db": (database, "an SQLite database"),
    "r.mat": (lambda _: b"MATLAB 5.0 MAT-file, Platform: GLNXA64\x00\x01", "a MATLAB file"),
    "r.h5": (lambda _: b"\x89HDF\r\n\x1a\n\x00", "an HDF5 file"),
    "login.csv": (lambda _: b"<!DOCTYPE html>\n<html><body>Log in</body></html>", "a web page"),
    "r.xml": (lambda _: b'<?xml version="1.0"?>\n<ratings/>', "an XML file"),
    "r.csv.gz": (lambda _: CSV, "the name ends in .gz, but this is no gzip file"),
    "utf16.csv": (lambda _: "user,item\n1,2\n".encode("utf-16"), "UTF-16 text: save it as UTF-8"),
    "utf32.csv": (lambda _: "user,item\n1,2\n".encode("utf-32"), "UTF-32 text: save it as UTF-8"),
    "raw.csv": (lambda _: "user,item\n1,2\n".encode("utf-16-le"), "not a text file"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_kinds_are_named(put, tmp_path, name):
    content, message = FOREIGN[name]
    refused(put(name, content(tmp_path)), message)


@pytest.mark.parametrize("name", ["BZh9", "ORC", "Rar!", "RDX3", "FEA1", "MATLAB x"])
def test_ids_that_begin_like_other_files_are_ids(put, name):
    assert rows(put("r.csv", f"{name},2,3\n")) == [(name, 2, 3.0)]


# Names of columns


ITEM_NAMES = [
    "sku", "asin", "parent_asin", "movieId", "business_id", "track", "artist", "product",
    "gmap_id", "isbn", "song", "recipe", "game", "app", "anime", "hotel", "restaurant", "poi",
    "venue", "article", "news", "ad", "content", "listing", "playlist", "show", "episode",
    "course", "question", "brand",
]  # fmt: skip
USER_NAMES = [
    "user", "userId", "reviewerID", "customer", "member", "account", "visitor", "client",
    "shopper", "buyer", "listener", "player", "reader", "viewer", "person", "uid", "household",
    "cookie", "device", "session_id",
]  # fmt: skip


@pytest.mark.parametrize(
    "item",
    ITEM_NAMES,
)
def test_names_of_items(item):
    data = us.read_ratings({"user": [1], item: [2], "rating": [3]})
    assert f"item = {item}" in data.notes[0]


@pytest.mark.parametrize(
    "user",
    USER_NAMES,
)
def test_names_of_users(user):
    data = us.read_ratings({user: [1], "item": [2], "rating": [3]})
    assert f"user = {user}" in data.notes[0]


@pytest.mark.parametrize(
    ("columns", "choices"),
    [
        ("user artist track rating", "item: 'artist' or 'track'"),
        ("user show episode rating", "item: 'show' or 'episode'"),
        ("user track playlist rating", "item: 'track' or 'playlist'"),
        ("customer account item rating", "user: 'customer' or 'account'"),
        ("user brand store rating", "item: 'brand' or 'store'"),
    ],
)
def test_columns_that_are_equally_plain_are_refused(columns, choices):
    table = {name: [1] for name in columns.split()}
    with pytest.raises(us.DataError, match=rf"which column is the {choices}\? Name it with"):
        us.read_ratings(table)
    with pytest.raises(us.DataError, match="which column is the"):
        us.read_run({**table, "score": [1]})
    role, name = choices.split(":")[0], choices.split("'")[1]
    assert len(us.read_ratings(table, **{role: name})) == 1


@pytest.mark.parametrize(
    ("columns", "role", "column", "other"),
    [
        ("user session_id item rating", "user", "user", "'session_id'"),
        ("user product_id item_id rating", "item", "item_id", "'product_id'"),
        ("user asin parent_asin rating", "item", "parent_asin", "'asin'"),
        ("user product product_id rating", "item", "product_id", "'product'"),
        ("user product_id brand store rating", "item", "product_id", "'brand' or 'store'"),
        ("user item rating timestamp date", "time", "timestamp", "'date'"),
    ],
)
def test_the_choice_among_several_columns_is_stated(columns, role, column, other):
    table = {name: [1] for name in columns.split()}
    notes = us.read_ratings(table).notes
    note = f"arrays: column {column!r} is taken as the {role}, not {other}; {role}="
    assert any(one.startswith(note) for one in notes)
    assert not any(" is taken as " in one for one in us.read_ratings(table, **{role: column}).notes)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("user,item,rating,rating", r"rating column 'rating' .*2 \('rating'\) and 3 \('rating'\)"),
        ("user,item,rating,Rating", r"rating column 'rating' .*2 \('rating'\) and 3 \('Rating'\)"),
        ("user,item,rating,user", r"user column 'user' .*0 \('user'\) and 3 \('user'\)"),
        ("user,item_id,rating,itemId", r"item column 'item_id' .*1 .* and 3 \('itemId'\)"),
        ('user,item,"rating ",rating', r"rating column 'rating' .*2 .* and 3 .*"),
    ],
)
def test_a_name_that_occurs_twice_is_refused(put, head, message):
    path = put("r.csv", f"{head}\n1,2,3,4\n")
    refused(path, message + ", counted from 0; rename one, or give the number")
    assert rows(path, user=0, item=1, rating=3) == [(1, 2, 4.0)]


def test_a_stated_name_that_occurs_twice_is_refused(put):
    path = put("r.csv", "user,item,rating,rating\n1,2,3,4\n")
    refused(path, "occurs 2 times", rating="rating")
    other = put("s.csv", "user,item,rating,Rating\n1,2,3,4\n")
    assert rows(other, rating="Rating") == [(1, 2, 4.0)]
    lists = put("lists.csv", "user,item,rank,rank\n1,2,1,2\n")
    with pytest.raises(us.DataError, match="the rank column 'rank' occurs 2 times"):
        us.read_run(lists)


def test_other_names_may_occur_twice(put):
    assert rows(put("r.csv", "user,item,rating,x,x\n1,2,3,4,5\n")) == [(1, 2, 3.0)]


@pytest.mark.parametrize(
    ("text", "expected", "dataset"),
    [
        (
            '"User-ID";"ISBN";"Book-Rating"\n"1";"034545104X";"0"\n"2";"015X";"5"\n',
            5.0,
            "Book-Cross",
        ),
        ("user_id,anime_id,rating\n1,20,-1\n1,24,8\n", 8.0, "MyAnimeList"),
        (
            "user_id,book_id,is_read,rating,is_reviewed\n0,948,1,0,0\n0,947,1,4,1\n",
            4.0,
            "Goodreads",
        ),
    ],
)
def test_marks_of_missing_ratings_are_left_out(put, text, expected, dataset):
    column = "Book-Rating" if "ISBN" in text else "rating"
    data = us.read_ratings(put("r.csv", text), rating=column)
    assert data.value.tolist() == [expected]
    assert any("1 row with" in note and dataset in note for note in data.notes)


# Damaged and odd text


@pytest.mark.parametrize("settings", [{}, {"user": 0, "item": 1, "rating": 2}])
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("r.csv", "user,item,rating\r1,2,3\r4,5,6\r", 1),
        ("r.csv", "1,2,3\r4,5,6\r7,8,9", 1),
        ("r.csv", "user,item,rating\n1,2,3\r4,5,6\n", 2),
        ("r.csv", "user,item,rating\r\r\n1,2,3\r\r\n", 1),
        ("r.csv", '"user","item","rating"\r"1","2","3"\r', 1),
        ("r.dat", "1::2::3\r4::5::6\r", 1),
        ("r.tsv", "1\t2\t3\r4\t5\t6\r", 1),
        ("r.txt", "1  2  3\r4  5  6\r", 1),
    ],
)
def test_lone_carriage_returns_are_refused(put, name, text, line, settings):
    refused(put(name, text), f"line {line} has a carriage return without a line feed", **settings)
    packed = put(f"{name}.gz", gzip.compress(text.encode()))
    refused(packed, f"line {line} has a carriage return without a line feed", **settings)


def test_a_late_carriage_return_is_found(put):
    lines = [f"{n},{n},3" for n in range(700_000)]
    lines[650_000] += "\r1,2,3"
    refused(put("r.csv", "\n".join(lines)), "line 650,001 has a carriage return")


def test_carriage_returns_in_text_are_text(put):
    path = put("r.csv", 'user,item,rating,review\r\n1,2,3,"a\rb"\r\n1,3,4,"c"\r\n')
    assert rows(path) == [(1, 2, 3.0), (1, 3, 4.0)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.csv", "# ratings of 2020\nuser,item,rating\n1,2,3\n", "line 1 is a comment"),
        ("out.ml", "% bip weighted\n1 2 3\n", "line 1 is a comment"),
        ("r.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 5\n", "mmread"),
        ("r.csv", "#user,item,rating\n1,2,3\n", "no user column found among: #user, item"),
        ("r.csv", "sep=;\nuser;item;rating\n1;2;3\n", "line 1 is 'sep=;', which only Excel"),
        (
            "r.csv",
            "user,item,rating\n1,2,5,\n2,3,4,\n",
            "2 lines have .*line 2, which has 4: does a",
        ),
        ("r.csv", "user,item\n1,2,", "1 line has .*line 2, which has 3: does a separator"),
        ("r.csv", "user,item\na,x\nuser,item\nb,y\n", "row 2 repeats the header line"),
        ("r.csv", "user,item,rating\n1,2,3\nuser,item,rating\n2,3,4\n", "row 2 repeats the header"),
        ("r.csv", "user;item;rating\n1;2;1,234\n1;3;3,455\n", "not numbers.*write 1234.5, not 1,2"),
        ("r.csv", "user,item,rating\njosé,2,3\n".encode("latin-1"), "line 2 has .*Latin-1"),
        ("r.csv", "usér,item,rating\n1,2,3\n".encode("latin-1"), "line 1 has .*Latin-1"),
        ("r.csv", "user,item,rating\n", "there are no rows"),
        ("r.csv", "user\n1\n2\n", "read as comma-separated, this has one column, 'user'"),
        ("r.csv", "1\n2\n", "no header line and 1 column, .*read as comma-separated"),
        ("r.csv", "user^item^rating\n1^2^3\n", "read as comma-separated, this has one column"),
        ("r.csv", "user:item:rating\n1:2:3\n", "read as comma-separated, this has one column"),
        (
            "r.txt",
            "user  item  rating\n1  2  3\n1  3\n",
            "1 line has .* words .*line 3, which has 2",
        ),
        (
            "r.txt",
            "user  item  rating\n1  2  3\n1  3  4  5\n",
            "1 line has .* words .*line 3, which has 4",
        ),
    ],
)
def test_text_that_is_refused(put, name, text, message):
    refused(put(name, text), message)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fixed.txt", "user   item   rating\n1      2      5\n10     20     4\n"),
        ("fixed.txt", "    1    2    5\n   10   20    4\n"),
        ("end.txt", "1 2 5 \n10 20 4 \n"),
        ("end.csv", "1,2,5,\n10,20,4,\n"),
        ("end.csv", "user,item,rating,\n1,2,5,\n10,20,4,\n"),
        ("end.tsv", "1\t2\t5\t\n10\t20\t4\t\n"),
        ("quoted.csv", '"1","2","5"\n"10","20","4"\n'),
        ("comma.csv", "user;item;rating\n1;2;5,0\n10;20;4\n"),
        ("comma.csv", "1;2;5,0\n10;20;4,0\n"),
        ("comma.csv", 'user,item,rating\n1,2,"5,0"\n10,20,"4,0"\n'),
        ("index.csv", ",user,item,rating\n0,1,2,5\n1,10,20,4\n"),
        ("bom.csv", "\ufeffuser,item,rating\n1,2,5\n10,20,4\n"),
        ("ml.inter", "user_id:token\titem_id:token\trating:float\n1\t2\t5\n10\t20\t4\n"),
        ("bar.txt", "user id|item id|rating\n1|2|5\n10|20|4\n"),
    ],
)
def test_text_that_is_read(put, name, text):
    assert rows(put(name, text)) == [(1, 2, 5.0), (10, 20, 4.0)]


def test_decimal_commas_are_stated(put):
    notes = us.read_ratings(put("r.csv", "user;item;rating\n1;2;4,5\n1;3;3\n")).notes
    assert notes[1] == (
        "r.csv: column 'rating' has decimal commas; '4,5' is read as 4.5 where a number is needed"
    )
