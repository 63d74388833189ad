"""Named data sets: formats, where they are looked for, downloads that break, the command."""

import gzip
import hashlib
import http.server
import io
import json
import os
import re
import stat
import tarfile
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import ROOT
from shared.real_data import real_data
from unskew.cli import app
from unskew.data.dataset import Dataset
from unskew.data.formats import catalog, download
from unskew.data.formats import catalog as released
from unskew.data.formats import download as archives
from unskew.data.formats.catalog import get, load
from unskew.data.formats.entries import DATASETS
from unskew.data.formats.parts import OVERLAP, Parts
from unskew.data.read.ratings_files import read_qrels, read_ratings
from unskew.data.summary import summary
from unskew.errors import DataError, SettingError, UnknownName

PAGE = ROOT / "docs" / "datasets.md"


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch, request):
    if "real" not in request.keywords:
        monkeypatch.delenv("UNSKEW_DATA", raising=False)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def put(home, name, **files):
    """Write files of a data set; `__` in a keyword is a dot."""
    for file, content in files.items():
        path = home / name / file.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def rows(ratings):
    """Return the ratings as tuples of raw values."""
    return ratings.to_polars().select("user", "item", "rating").rows()


# The official formats


def test_movielens_with_tabs(home):
    put(home, "ml-100k", u__data="196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t0\t1\t5\n")
    data = load("ml-100k", data_dir=home)
    assert rows(data.ratings) == [(22, 0, 1.0), (186, 302, 3.0), (196, 242, 3.0)]
    assert data.ratings.time.tolist() == [5_000_000, 891717742_000_000, 881250949_000_000]
    assert (data.name, data.scale, data.liked, data.random) == ("ml-100k", (1, 5), 4, None)


@pytest.mark.parametrize("name", ["ml-1m", "ml-10m"])
def test_movielens_with_colons(home, name):
    put(home, name, ratings__dat="1::122::4.5::838985046\n2::7::5::838983525\n")
    data = load(name, data_dir=home)
    assert rows(data.ratings) == [(1, 122, 4.5), (2, 7, 5.0)]
    assert data.scale == ((1, 5) if name == "ml-1m" else (0.5, 5))


@pytest.mark.parametrize("name", ["ml-20m", "ml-25m", "ml-32m", "ml-latest-small"])
def test_movielens_with_commas(home, name):
    put(home, name, ratings__csv="userId,movieId,rating,timestamp\r\n1,17,4.0,944249077\r\n")
    data = load(name, data_dir=home)
    assert rows(data.ratings) == [(1, 17, 4.0)]
    assert data.ratings.time.tolist() == [944249077_000_000]


def test_names_are_read_in_any_case_and_official_folders_are_found(home):
    put(home, "ml-10M100K", ratings__dat="1::122::5::838985046\n")
    assert load("ML-10M", data_dir=home).name == "ml-10m"


def test_netflix(home):
    put(
        home, "netflix",
        combined_data_1__txt="1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n2:\n822109,4,1999-12-31\n",
        combined_data_2__txt="4500:\r\n7,1,2004-01-02\r\n",
    )  # fmt: skip
    data = load("netflix", data_dir=home)
    assert rows(data.ratings) == [
        (7, 4500, 1.0), (822109, 1, 5.0), (822109, 2, 4.0), (1488844, 1, 3.0),
    ]  # fmt: skip
    days = data.ratings.to_polars()["time"].dt.strftime("%Y-%m-%d").to_list()
    assert days == ["2004-01-02", "2005-05-13", "1999-12-31", "2005-09-06"]
    assert data.notes == ("2 files, 4 rows",)


@pytest.mark.parametrize(
    "text",
    [
        "1:\n:,3,2005-09-06\n",
        "1:\n5,x,2005-09-06\n",
        "1:\n5,3,someday\n",
        "5,3,2005-09-06\n1:\n",
        "1:\n5,3\n",
    ],
)
def test_netflix_rows_that_cannot_be_read(home, text):
    put(home, "netflix", combined_data_1__txt=text)
    with pytest.raises(DataError, match=r"1 row cannot be read, the first is line \d"):
        load("netflix", data_dir=home)


def ascii_matrix(cells):
    return "".join("".join(f"{x:<8}" for x in row) + "\r\n" for row in cells)


@pytest.fixture
def coat(home):
    put(
        home, "coat",
        train__ascii=ascii_matrix([[5, 0, 1], [0, 4, 0], [2, 2, 0]]),
        test__ascii=ascii_matrix([[5, 3, 0], [0, 0, 1], [2, 0, 4]]),
    )  # fmt: skip
    return home


def test_coat(coat):
    data = load("coat", data_dir=coat)
    assert rows(data.ratings) == [(1, 1, 5.0), (1, 3, 1.0), (2, 2, 4.0), (3, 1, 2.0), (3, 2, 2.0)]
    assert rows(data.random) == [(1, 1, 5.0), (1, 2, 3.0), (2, 3, 1.0), (3, 1, 2.0), (3, 3, 4.0)]
    assert data.ratings.users.equals(data.random.users)
    assert data.notes == ("2 pairs are in both parts: kept in both",)
    dropped = load("coat", data_dir=coat, overlap="drop-from-test")
    assert rows(dropped.random) == [(1, 2, 3.0), (2, 3, 1.0), (3, 3, 4.0)]
    assert rows(dropped.ratings) == rows(data.ratings)
    assert dropped.notes == ("2 pairs are in both parts: taken out of the random part",)


def test_coat_that_is_no_coat(coat):
    with pytest.raises(UnknownName, match=r"overlap 'drop-test'. Did you mean 'drop-from-test'"):
        load("coat", data_dir=coat, overlap="drop-test")
    with pytest.raises(UnknownName, match=r"coat does not take the option 'common'.*overlap"):
        load("coat", data_dir=coat, common=True)
    put(coat, "coat", test__ascii=ascii_matrix([[5, 3]]))
    with pytest.raises(DataError, match=r"is \(3, 3\), but .*test.ascii is \(1, 2\)"):
        load("coat", data_dir=coat)
    put(coat, "coat", test__ascii="5 x\n")
    with pytest.raises(DataError, match=r"test.ascii: not a matrix of numbers"):
        load("coat", data_dir=coat)


def test_yahoo_r3(home):
    put(
        home, "yahoo-r3",
        **{
            "ydata-ymusic-rating-study-v1_0-train__txt": "1\t14\t5\n1\t35\t1\n3\t14\t4\n4\t99\t2\n",
            "ydata-ymusic-rating-study-v1_0-test__txt": "1\t49\t1\n3\t126\t1\n3\t14\t4\n",
        },
    )  # fmt: skip
    data = load("yahoo-r3", data_dir=home)
    assert len(data.ratings) == 4
    assert list(data.random.users.values) == [1, 3, 4]
    common = load("yahoo-r3", data_dir=home, common=True)
    assert rows(common.ratings) == [(1, 14, 5.0), (1, 35, 1.0), (3, 14, 4.0)]
    assert list(common.ratings.users.values) == [1, 3]
    assert list(common.ratings.items.values) == [14, 35, 49, 126]
    assert common.random.items.equals(common.ratings.items)
    assert "1 rating of users without random ratings left out" in common.notes
    assert "1 pair is in both parts: kept in both" in common.notes
    both = load("yahoo-r3", data_dir=home, common=True, overlap="drop-from-test")
    assert rows(both.random) == [(1, 49, 1.0), (3, 126, 1.0)]
    assert len(load("yahoo-r3", data_dir=home, common=False).ratings) == 4


def test_random_ratings_in_one_table_with_the_observed_ones(home):
    """A column `part` tells them apart, also where a pair is in both."""
    rows_of = [(1, 14, 5, "observed", 2), (1, 49, 1, "random", None), (3, 14, 4, "observed", 1),
               (3, 14, 2, "random", None)]  # fmt: skip
    header = "user,item,rating,part,fold\n"
    text = header + "".join(
        ",".join("" if v is None else str(v) for v in row) + "\n" for row in rows_of
    )
    put(home, "yahoo-r3", ratings__csv=text)
    data = load("yahoo-r3", data_dir=home)
    assert rows(data.ratings) == [(1, 14, 5.0), (3, 14, 4.0)]
    assert rows(data.random) == [(1, 49, 1.0), (3, 14, 2.0)]
    assert list(data.ratings.tags) == ["fold"]
    put(home, "yahoo-r3", ratings__csv=text.replace("random", "other"))
    with pytest.raises(DataError, match="more than once"):
        load("yahoo-r3", data_dir=home)
    for odd, why in (("odd", "1 row with other values, the first 'odd'"), ("", "the first None")):
        put(home, "yahoo-r3", ratings__csv=text.replace("5,observed", f"5,{odd}"))
        with pytest.raises(DataError, match=f"'part' must be 'observed' or 'random'.*{why}"):
            load("yahoo-r3", data_dir=home)
    put(home, "yahoo-r3", ratings__csv=text.replace("observed", "random"))
    with pytest.raises(DataError, match="is 'random' in every row"):
        load("yahoo-r3", data_dir=home)
    put(home, "yahoo-r3", ratings__csv=header + "1,14,5,observed,2\n")
    assert list(load("yahoo-r3", data_dir=home).ratings.tags) == ["part", "fold"]


CM = "32070389\t74476228\t3\t0\n32070389\t68559485\t1\t1\n31500276\t74476228\t4\t1\n"


@pytest.mark.parametrize("file", ["ratings__txt", "data__txt"])
def test_cm100k(home, file):
    from unskew.splits.given import FamiliarTraining

    put(home, "cm100k", **{file: CM})
    data = load("cm100k", data_dir=home)
    assert data.ratings.to_polars().rows() == [
        (31500276, 74476228, 4.0, True), (32070389, 68559485, 1.0, True),
        (32070389, 74476228, 3.0, False),
    ]  # fmt: skip
    assert data.random is None
    (split,) = FamiliarTraining(folds=None).split(data.ratings)
    assert (len(split.train), len(split.test)) == (2, 1)
    apart = load("cm100k", data_dir=home, observed="familiar")
    assert (len(apart.ratings), len(apart.random)) == (2, 3)
    rest = load("cm100k", data_dir=home, observed="familiar", overlap="drop-from-test")
    assert rows(rest.random) == [(32070389, 74476228, 3.0)]
    with pytest.raises(UnknownName, match="observed 'none'"):
        load("cm100k", data_dir=home, observed="none")


def test_kuairec(home):
    head = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
    time = "2020-07-05 00:08:23.438,20200705"
    big = (
        f"{head}0,3650,13838,10867,{time},1593878903.438,1.27\n"
        f"0,3650,1,10867,{time},1593878900.0,0.5\n0,9,1,2,{time},1593878904.5,2\n"
    )
    small = f"{head}14,148,4381,6067,{time},1593878621.0,0.72\n14,183,1,2,,,,3.5\n"
    put(home, "kuairec/KuaiRec 2.0/data", big_matrix__csv=big, small_matrix__csv=small)
    data = load("kuairec", data_dir=home)
    assert rows(data.ratings) == [(0, 9, 2.0), (0, 3650, 0.5)]  # the first showing counts
    assert data.ratings.time.tolist() == [1593878904_500_000, 1593878900_000_000]
    assert rows(data.random) == [(14, 148, 0.72), (14, 183, 3.5)]
    assert data.random.time is None
    assert list(data.ratings.users.values) == [0, 14]
    assert data.notes == (
        "observed: 1 duplicate user-item pair: kept the first",
        "exhaustive: small_matrix.csv: 1 row has no time stamp: read without times",
        "small_matrix.csv: 2 of the 2 pairs of its 1 user and 2 videos are judged",
        "0 pairs are in both parts: kept in both",
    )
    assert (data.truth.kind, data.truth.candidates) == ("exhaustive", "judged")
    assert data.truth.ratings is data.random
    assert rows(load("kuairec", data_dir=home, duplicates="max").ratings)[1] == (0, 3650, 1.27)


def test_kuairand(home):
    head = "user_id,video_id,date,hourmin,time_ms,is_click,is_like,long_view,is_rand\n"
    early = f"{head}0,5,20220408,400,1649361801301,0,0,0,0\n"
    late = f"{head}0,5,20220422,400,1650571401301,1,0,1,0\n1,6,20220422,400,1650571401302,1,1,0,0\n"
    random = f"{head}1,5,20220423,400,1650657801301,0,0,1,1\n"
    put(
        home, "KuaiRand-Pure/data", log_standard_4_08_to_4_21_pure__csv=early,
        log_standard_4_22_to_5_08_pure__csv=late, log_random_4_22_to_5_08_pure__csv=random,
    )  # fmt: skip
    data = load("kuairand-pure", data_dir=home)
    assert rows(data.ratings) == [(0, 5, 1.0), (1, 6, 1.0)]
    assert rows(data.random) == [(1, 5, 0.0)]
    assert data.ratings.time.tolist() == [1649361801_301_000, 1650571401_302_000]
    liked = load("kuairand-pure", data_dir=home, signal="is_like", duplicates="last")
    assert rows(liked.ratings) == [(0, 5, 0.0), (1, 6, 1.0)]
    with pytest.raises(UnknownName, match=r"signal 'likes'. Did you mean 'is_like'"):
        load("kuairand-pure", data_dir=home, signal="likes")
    put(home, "KuaiRand-Pure/data", log_random_4_22_to_5_08_pure__csv="user_id,video_id\n1,2\n")
    with pytest.raises(DataError, match=r"log_random.*cannot be read"):
        load("kuairand-pure", data_dir=home)


def test_lastfm_plays_are_events(home):
    from unskew.splits.time.temporal import TemporalEvents

    plays = [
        ("user_000001", "2009-05-01T09:17:36Z", "mb-1", 'The "A"', "", "Song"),
        ("user_000001", "2009-05-04T23:08:57Z", "mb-1", 'The "A"', "t", "Other"),
        ("user_000001", "2009-05-02T00:00:00Z", "", "No Id", "", "x"),
        ("user_000002", "2009-05-03T00:00:00Z", "mb-1", "The A", "", "x"),
        ("user_000002", "2009-05-05T00:00:00Z", "", "No Id", "", "x"),
        ("user_000002", "2009-05-05T00:00:01Z", "", "", "", "x"),
    ]
    text = "".join("\t".join(play) + "\n" for play in plays)
    put(home, "lastfm-1k", **{"userid-timestamp-artid-artname-traid-traname__tsv": text})
    data = load("lastfm-1k", data_dir=home)
    assert rows(data.ratings) == [
        ("user_000001", "No Id", 1.0), ("user_000001", "mb-1", 2.0),
        ("user_000002", "No Id", 1.0), ("user_000002", "mb-1", 1.0),
    ]  # fmt: skip
    assert data.notes[1].endswith("1 play without an artist left out")
    events = data.features["events"]
    assert events.height == 5
    (split,) = TemporalEvents(test=0.4).split(events)
    assert split.facts["events_train"] == 3
    assert split.facts["pairs_seen_in_training"] == 1
    assert rows(split.test) == [("user_000002", "No Id", 1.0)]


def test_lastfm_with_a_bad_time(home):
    put(home, "lastfm-1k", **{"userid-timestamp-artid-artname-traid-traname__tsv":
                              "u\tyesterday\tm\tn\t\tx\n"})  # fmt: skip
    with pytest.raises(DataError, match=r"1 row cannot be read.*yesterday"):
        load("lastfm-1k", data_dir=home)


def test_librarything(home):
    put(home, "LT", UI2__txt="1 20 7 science fiction\n1 20 7 space\n2 20 10 x\n1 3 1 y\n")
    data = load("librarything", data_dir=home)
    assert rows(data.ratings) == [(1, 3, 0.5), (1, 20, 3.5), (2, 20, 5.0)]
    assert data.notes == ("UI2.txt: 4 lines, one per tag, of 3 ratings",)
    put(home, "LT", UI2__txt="1 20 7 x\n1 20 seven\n")
    with pytest.raises(DataError, match=r"line 2 is '1 20 seven'"):
        load("librarything", data_dir=home)


def test_librarything_reviews(home):
    text = (
        "# a heading\n"
        "reviews[('73', 'van')] = {'comment': \"it's {good}\", 'unixtime': 1194393600, "
        "'work': '73', 'flags': [], 'user': 'van', 'stars': 4.5, 'time': 'Nov 7, 2007'}\n"
        "reviews[('73', 'bo')] = {'comment': '', 'unixtime': 1194393601, 'work': '73', "
        "'user': 'bo'}\n"
    )
    put(home, "librarything/lthing_data", reviews__txt=text)
    data = load("librarything", data_dir=home)
    assert rows(data.ratings) == [("van", 73, 4.5)]
    assert data.ratings.time.tolist() == [1194393600_000_000]
    assert "1 review without a user, an item or a rating left out" in data.notes[1]


@pytest.mark.parametrize("name", ["txt", "json"])
def test_reviews_in_a_gzip_file_cut_short_are_refused(home, name):
    text = beer_blocks() if name == "txt" else beer_records(json.dumps)
    packed = gzip.compress((text * 500).encode(), mtime=0)
    for cut in (20, len(packed) // 2, len(packed) - 4):
        put(home, "beeradvocate", **{f"beeradvocate__{name}__gz": packed[:cut]})
        with pytest.raises(
            DataError, match=rf"\.{name}\.gz: the gzip file is damaged or cut short"
        ):
            load("beeradvocate", data_dir=home)


def test_names_that_are_no_data_sets_are_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="cannot be read: the name is too long"):
        load("x" * 300)
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_text, args=("user,item\n1,2\n1,3\n",))
    writer.start()
    assert len(load("pipe").ratings) == 2
    writer.join()


REVIEWS = [("stcules", 47986, 1.5, 1234817823), ("o'hara", 47986, 5.0, 1300000000),
           ("stcules", 47986, 4.0, 1234817824), ("", 7, 3.0, 1234817824)]  # fmt: skip


def beer_blocks():
    return "".join(
        f"beer/name: Sausa: Weizen\nbeer/beerId: {i}\nreview/overall: {r}\nreview/time: {t}\n"
        f"review/profileName: {u}\nreview/text: a: b\n\n"
        for u, i, r, t in REVIEWS
    )


def beer_records(encode):
    return "".join(
        encode({"beer/beerId": str(i), "review/overall": str(r), "review/time": str(t),
                "review/profileName": u, "review/text": "it's \"{x}\""}) + "\n"
        for u, i, r, t in REVIEWS
    )  # fmt: skip


def beer_table():
    lines = "".join(f"1,{t},{r},{u},{i}\n" for u, i, r, t in REVIEWS)
    return f"brewery_id,review_time,review_overall,review_profilename,beer_beerid\n{lines}"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("beeradvocate__txt", beer_blocks()),
        ("beeradvocate__txt__gz", gzip.compress(beer_blocks().encode())),
        ("beeradvocate__json__gz", gzip.compress(beer_records(repr).encode())),
        ("beeradvocate__json", beer_records(json.dumps)),
        ("beer_reviews__csv", beer_table()),
    ],
)
def test_beeradvocate(home, file, text):
    put(home, "beeradvocate", **{file: text})
    data = load("beeradvocate", data_dir=home)
    assert rows(data.ratings) == [("o'hara", 47986, 5.0), ("stcules", 47986, 4.0)]
    assert data.ratings.time.tolist() == [1300000000_000_000, 1234817824_000_000]
    assert any("1 review without a user" in note for note in data.notes)
    assert any("1 duplicate user-item pair: kept the last" in note for note in data.notes)
    first = load("beeradvocate", data_dir=home, duplicates="first")
    assert rows(first.ratings)[1] == ("stcules", 47986, 1.5)


@pytest.mark.parametrize("text", ["nothing here\n", "{'a': open}\n", "{1: 2\n", "{'a'}\n"])
def test_beeradvocate_without_reviews(home, text):
    put(home, "beeradvocate", beeradvocate__json=text)
    with pytest.raises(DataError, match=r"no reviews in this file|line 1 is not a record"):
        load("beeradvocate", data_dir=home)


def test_jester(home):
    put(home, "jester", **{"jester-data-1__csv": "2,-7.82,99,8.79\n1,99,99,0\n",
                           "jester-data-2__csv": "3,1,2,3.5\n"})  # fmt: skip
    data = load("jester", data_dir=home)
    assert rows(data.ratings) == [
        (1, 1, -7.82), (1, 3, 8.79), (2, 3, 0.0), (3, 1, 1.0), (3, 2, 2.0), (3, 3, 3.5),
    ]  # fmt: skip
    put(home, "jester", **{"jester-data-2__csv": "2,1,2,3.5\n"})
    with pytest.raises(DataError, match=r"1 row does not start with the number.*row 1"):
        load("jester", data_dir=home)
    put(home, "jester", **{"jester-data-2__csv": ""})
    with pytest.raises(DataError, match=r"jester-data-2.csv: the file is empty"):
        load("jester", data_dir=home)


def test_jester_2(home):
    put(home, "jester-2", jester_ratings__dat="1\t\t5\t\t0.219\n1\t\t7\t\t-9.281\n2\t\t5\t\t-10\n")
    assert rows(load("jester-2", data_dir=home).ratings) == [
        (1, 5, 0.219), (1, 7, -9.281), (2, 5, -10.0),
    ]  # fmt: skip


# Where they are looked for


def test_where(home, monkeypatch, tmp_path):
    assert catalog.data_folder(home) == home
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert catalog.data_folder() == tmp_path / "xdg" / "unskew"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert catalog.data_folder() == Path.home() / ".local" / "share" / "unskew"
    monkeypatch.setenv("UNSKEW_DATA", str(home))
    put(home, "ml-1m", ratings__dat="1::2::3::4\n")
    assert len(load("ml-1m").ratings) == 1


@pytest.mark.parametrize("name", list(DATASETS))
def test_missing_says_where_it_looked_and_what_to_do(home, name):
    entry = DATASETS[name]
    with pytest.raises(DataError) as told:
        load(name, data_dir=home)
    said = str(told.value)
    for part in (str(home / name), entry.address, entry.licence, "UNSKEW_DATA"):
        assert part in said
    assert (f"unskew data get {name}" in said) == (entry.archive is not None)
    assert bool(entry.by_hand) == (entry.archive is None)
    assert not catalog.is_there(entry, home)


def test_a_folder_without_the_files(home):
    put(home, "coat", train__ascii="1\n")
    with pytest.raises(DataError, match=r"exists, but has no train.ascii and test.ascii"):
        load("coat", data_dir=home)


def test_unknown_names_and_own_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownName, match=r"data set 'ml-1n'. Did you mean 'ml-1m'"):
        load("ml-1n")
    with pytest.raises(DataError, match="no such file"):
        load("ratings.csv")
    Path("ratings").write_text("user,item,rating\n1,2,3\n1,2,4\n")
    with pytest.raises(DataError, match="more than once"):
        load("ratings")
    data = load("ratings", duplicates="mean")
    assert (data.name, rows(data.ratings), data.liked) == ("ratings", [(1, 2, 3.5)], None)
    assert load(Path("ratings"), duplicates="max").ratings.value.tolist() == [4]
    assert load(data) is data
    with pytest.raises(SettingError, match="data_dir is for named data sets"):
        load("ratings", data_dir=tmp_path)
    with pytest.raises(UnknownName, match=r"a file does not take the option 'overlap'. .*user"):
        load("ratings", overlap="keep")
    with pytest.raises(UnknownName, match=r"ml-1m does not take the option 'user'. It takes: none"):
        load("ml-1m", user=1)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_tables_in_the_place_of_official_files(home, ending):
    frame = pl.DataFrame({"user": [2, 1], "item": [5, 6], "rating": [3.0, 4.0], "fold": [1, 2]})
    (home / "coat").mkdir(parents=True)
    write = {"parquet": pl.DataFrame.write_parquet, "csv": pl.DataFrame.write_csv}[ending]
    write(frame, home / "coat" / f"ratings.{ending}")
    data = load("coat", data_dir=home)
    assert rows(data.ratings) == [(1, 6, 4.0), (2, 5, 3.0)]
    assert data.ratings.tags["fold"].to_list() == [2, 1]
    assert data.random is None
    assert data.notes[0].startswith(f"ratings.{ending}: ")
    write(frame.head(1).drop("fold"), home / "coat" / f"random.{ending}")
    both = load("coat", data_dir=home, overlap="drop-from-test")
    assert len(both.random) == 0
    assert both.random.users.equals(both.ratings.users)
    write(frame, home / "coat" / f"ratings.{ending}")
    (home / "cm100k").mkdir()
    write(frame, home / "cm100k" / f"ratings.{ending}")
    with pytest.raises(SettingError, match=r"option 'observed' needs the official files"):
        load("cm100k", data_dir=home, observed="all")


def test_official_files_come_before_tables(home):
    put(home, "ml-1m", ratings__dat="1::2::3::4\n", ratings__csv="user,item\n1,1\n2,2\n")
    assert len(load("ml-1m", data_dir=home).ratings) == 1


def zip_of(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return out.getvalue()


def tar_of(files, members=(), mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as packed:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content.encode()))
        for info in members:
            packed.addfile(info)
    return out.getvalue()


ML = {"ml-1m/README": "x" * 100, "ml-1m/ratings.dat": "1::2::3::4\n2::2::5::4\n"}


@pytest.mark.parametrize("place", [".", "ml-1m"])
def test_an_archive_that_lies_there(home, place):
    put(home, place, **{"ml-1m__zip": zip_of(ML)})
    before = sorted(home.rglob("*"))
    assert catalog.is_there(DATASETS["ml-1m"], home)
    assert len(load("ml-1m", data_dir=home).ratings) == 2
    assert sorted(home.rglob("*")) == before


def test_an_archive_of_something_else(home):
    put(home, ".", **{"ml-1m__tar__gz": tar_of({"readme": "x"})})
    with pytest.raises(
        DataError, match=r"ml-1m.tar.gz: holds no ratings.dat; is this MovieLens 1M"
    ):
        load("ml-1m", data_dir=home)
    put(home, ".", **{"ml-1m__tar__gz": b"no archive"})
    with pytest.raises(DataError, match=r"ml-1m.tar.gz: the archive is damaged"):
        load("ml-1m", data_dir=home)


# Unpacking


def link(name, kind, target="/etc/passwd"):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_link():
    info = zipfile.ZipInfo("a/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return zip_of({"a/good": "1", info: "/etc/passwd"})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (zip_of({"a": "1", "../evil": "x"}), "does not stay inside"),
        (zip_of({"a": "1", "/tmp/evil": "x"}), "does not stay inside"),
        (zip_of({"a": "1", "b/../../evil": "x"}), "does not stay inside"),
        (zip_of({"a": "1", "C:/evil": "x"}), "does not stay inside"),
        (tar_of({"a": "1", "../evil": "x"}), "does not stay inside"),
        (tar_of({"a": "1", "/evil": "x"}), "does not stay inside"),
        (zip_link(), "link or a device"),
        (tar_of({"a": "1"}, [link("l", tarfile.SYMTYPE)]), "link or a device"),
        (tar_of({"a": "1"}, [link("l", tarfile.LNKTYPE, "a")]), "link or a device"),
        (tar_of({"a": "1"}, [link("d", tarfile.CHRTYPE)]), "link or a device"),
        (tar_of({"a": "1"}, [link("d", tarfile.FIFOTYPE)]), "link or a device"),
        (zip_of({"a": "1", ".": "x"}), "has no name"),
        (tar_of({"a": "1", ".": "x"}), "has no name"),
        (tar_of({"a": "1", "./a": "x"}), "is in it twice"),
        (tar_of({"a": "1", "b//c": "x", "b/c": "x"}), "is in it twice"),
        (zip_of({"a": "1", "a/b": "x"}), "lies in a folder that has the name of a file"),
        (tar_of({"a/b/c": "1", "a": "x"}), "lies in a folder that has the name of a file"),
    ],
)
def test_archives_that_are_refused(tmp_path, content, why):
    archive = tmp_path / "in" / "archive"
    archive.parent.mkdir()
    archive.write_bytes(content)
    with pytest.raises(DataError, match=why):
        archives.unpack(archive, tmp_path / "in" / "out")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["archive"]


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_unpacking(tmp_path, pack):
    archive = tmp_path / "archive"
    archive.write_bytes(pack({"a/b/c.csv": "1", "d.txt": "22"}))
    archives.unpack(archive, tmp_path / "all")
    assert (tmp_path / "all/a/b/c.csv").read_text() == "1"
    archives.unpack(archive, tmp_path / "some", patterns=["c.csv"])
    assert [path.name for path in (tmp_path / "some").rglob("*.*")] == ["c.csv"]
    archives.unpack(archive, tmp_path / "exact", limit=3)
    with pytest.raises(DataError, match="unpacks to 3 bytes or more, and at most 2 are"):
        archives.unpack(archive, tmp_path / "none", limit=2)
    assert not (tmp_path / "none").exists()
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(DataError, match="damaged"):
        archives.unpack(archive, tmp_path / "cut")


def test_a_damaged_member(tmp_path):
    content = bytearray(zip_of({"a": "".join(map(str, range(1000)))}))
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "archive").write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        archives.unpack(tmp_path / "archive", tmp_path / "out")


def spoil(content, rng):
    """Flip one bit."""
    spoilt = bytearray(content)
    spoilt[rng.integers(len(spoilt))] ^= 1 << int(rng.integers(8))
    return bytes(spoilt)


@pytest.mark.parametrize("pack", ["zip", "gz", "bz2", "xz"])
def test_flipped_bits_in_archives_change_nothing_unnoticed(tmp_path, pack):
    """What unpacks holds what was packed: only flips of time stamps and the like may pass."""
    files = {"a/ratings.dat": "".join(f"{n * n}::{n}\n" for n in range(400)), "b": "x" * 50}
    content = zip_of(files) if pack == "zip" else tar_of(files, mode=f"w:{pack}")
    rng, refused = np.random.default_rng(1), 0
    for turn in range(300):
        (tmp_path / "archive").write_bytes(spoil(content, rng))
        out = tmp_path / str(turn)
        try:
            assert archives.unpack(tmp_path / "archive", out)
        except DataError as problem:
            assert re.search("damaged|refused|unpacks to", str(problem))  # noqa: PT017
            refused += 1
            continue
        assert {name: (out / name).read_text() for name in files} == files
    assert refused > 200


def test_a_plain_tar_whose_list_breaks_off(tmp_path):
    content = bytearray(tar_of({"a": "1", "b": "2", "c": "3"}, mode="w"))
    assert not archives.unpack(written(tmp_path / "good.tar", content), tmp_path / "good")
    content[1024] ^= 1  # the header of the second file
    with pytest.raises(DataError, match="its list of files breaks off"):
        archives.unpack(written(tmp_path / "bad.tar", content), tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


def written(path, content):
    path.write_bytes(content)
    return path


# Downloading


class Server:
    """Answers from a list, one entry per request: content, or what goes wrong."""

    def __init__(self, content):
        self.content, self.wrong, self.asked = content, [], 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked += 1
                wrong = outer.wrong.pop(0) if outer.wrong else None
                if isinstance(wrong, int):
                    self.send_error(wrong)
                    return
                body = {"spoiled": b"?" * len(outer.content), "long": outer.content + b"!"}.get(
                    wrong, outer.content
                )
                if str(wrong).startswith("http"):
                    self.send_response(302)
                    self.send_header("Location", wrong)
                    self.end_headers()
                    return
                self.send_response(200)
                if wrong == "abc":
                    self.send_header("Content-Length", "abc")
                elif wrong not in ("endless", "long"):
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if wrong in ("cut", "endless") else body)

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/ml-1m.zip"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
        self.server.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download.time, "sleep", lambda _: None)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    served = Server(zip_of(ML))
    entry = replace(
        DATASETS["ml-1m"], archive=served.address, size=len(served.content),
        checksum="sha256:" + hashlib.sha256(served.content).hexdigest(),
    )  # fmt: skip
    monkeypatch.setitem(DATASETS, "ml-1m", entry)
    yield served
    served.close()


def test_get(server, home):
    moved = []
    assert get("ml-1m", home, progress=lambda done, total: moved.append((done, total))) == (
        home / "ml-1m"
    )
    assert moved[-1] == (len(server.content), len(server.content))
    found = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    assert found == ["ml-1m/download.json", "ml-1m/ml-1m/README", "ml-1m/ml-1m/ratings.dat"]
    receipt = catalog.receipt(home / "ml-1m")
    assert (receipt.address, receipt.bytes) == (server.address, len(server.content))
    assert receipt.sha256 == hashlib.sha256(server.content).hexdigest()
    assert str(receipt) == (
        f"verified: its sha256 is the published one; {len(server.content):,} bytes arrived, as "
        f"expected; the checksums inside it are right"
    )
    assert len(load("ml-1m", data_dir=home).ratings) == 2
    assert get("ml-1m", home) == home / "ml-1m"
    assert server.asked == 1
    assert stat.S_IMODE((home / "ml-1m").stat().st_mode) == 0o755


@pytest.mark.parametrize("wrong", ["cut", "spoiled", "endless", "long", 500, 503, 429])
def test_a_broken_download_is_tried_again_whole(server, home, wrong):
    server.wrong = [wrong, wrong]
    get("ml-1m", home)
    assert server.asked == 3
    assert len(load("ml-1m", data_dir=home).ratings) == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("cut", r"of [\d,]+ bytes arrived"), ("spoiled", "its sha256 is"),
        ("endless", "bytes arrived"), ("long", "more than"), (502, "answers 502"),
    ],
)  # fmt: skip
def test_a_download_that_stays_broken_leaves_nothing(server, home, wrong, reason):
    server.wrong = [wrong] * 5
    with pytest.raises(DataError, match=rf"in 3 tries \(.*{reason}"):
        get("ml-1m", home)
    assert server.asked == 3
    assert list(home.iterdir()) == []


def test_what_is_not_there_is_not_asked_for_again(server, home):
    server.wrong = [404]
    with pytest.raises(DataError, match="404"):
        get("ml-1m", home)
    assert server.asked == 1
    assert list(home.iterdir()) == []


def test_a_cut_connection_without_a_known_size(server, home, monkeypatch):
    entry = replace(DATASETS["ml-1m"], size=None, checksum=None)
    monkeypatch.setitem(DATASETS, "ml-1m", entry)
    server.wrong = ["cut"]
    get("ml-1m", home)
    assert server.asked == 2


def unchecked(monkeypatch):
    entry = replace(DATASETS["ml-1m"], size=None, checksum=None)
    monkeypatch.setitem(DATASETS, "ml-1m", entry)


def test_what_was_not_checked_is_told(server, home, monkeypatch, capsys):
    unchecked(monkeypatch)
    code, out, _ = run(capsys, "get", "ml-1m", "--data-dir", home, "--yes")
    assert code == 0
    assert "not verified, because no checksum of it is published. Checked: " in out
    assert f"{len(server.content):,} bytes arrived, as announced; the checksums inside" in out
    assert hashlib.sha256(server.content).hexdigest() in out
    assert "verified" not in data_help(capsys)


def data_help(capsys):
    return run(capsys, "get", "--help")[1].replace("not verified", "")


def test_a_length_that_is_no_number(server, home, monkeypatch):
    unchecked(monkeypatch)
    server.wrong = ["abc"]
    get("ml-1m", home)
    assert catalog.receipt(home / "ml-1m").checked == ("the checksums inside it are right",)


@pytest.mark.parametrize(("wrong", "what"), [("endless", "sends more"), (None, "announces")])
def test_a_download_of_unknown_size_has_an_end(server, tmp_path, wrong, what):
    server.wrong = [wrong]
    with pytest.raises(DataError, match=f"{what}.* bytes, but at most 9 bytes are accepted"):
        download.fetch(server.address, tmp_path / "x", limit=9)
    assert server.asked == 1
    assert not list(tmp_path.iterdir())


def test_plain_http_needs_a_checksum(server, home, monkeypatch):
    unchecked(monkeypatch)
    with pytest.raises(DataError, match=r"http://example\.org/x: refused.*plain http"):
        download.fetch("http://example.org/x", home)
    server.wrong = ["http://example.org/x"]  # where the server sends us
    with pytest.raises(DataError, match=r"http://example\.org/x: refused.*plain http"):
        get("ml-1m", home)
    assert server.asked == 1
    assert not list(home.iterdir())


def test_a_damaged_single_file(home, tmp_path, monkeypatch):
    content = bytearray(gzip.compress(beer_records(repr).encode()))
    content[-6] ^= 1  # in its checksum
    file = written(tmp_path / "beeradvocate.json.gz", content)
    monkeypatch.setitem(
        DATASETS, "beeradvocate", replace(DATASETS["beeradvocate"], archive=file.as_uri())
    )
    with pytest.raises(DataError, match="damaged"):
        get("beeradvocate", home)
    assert not list(home.iterdir())


def test_nobody_answers(server, home):
    server.close()
    with pytest.raises(DataError, match="could not be downloaded in 3 tries"):
        get("ml-1m", home)
    assert list(home.iterdir()) == []


def test_interrupted(server, home):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get("ml-1m", home, progress=stop)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (zip_of({"../evil": "x", **ML}), "does not stay inside"),
        (zip_of({"readme": "x"}), "holds no ratings.dat"),
        (b"<html>sorry</html>", "damaged"),
    ],
)
def test_a_bad_archive_leaves_nothing(home, tmp_path, monkeypatch, content, why):
    file = tmp_path / "ml-1m.zip"
    file.write_bytes(content)
    entry = replace(DATASETS["ml-1m"], archive=file.as_uri(), size=len(content), checksum=None)
    monkeypatch.setitem(DATASETS, "ml-1m", entry)
    with pytest.raises(DataError, match=why):
        get("ml-1m", home)
    assert list(home.iterdir()) == []
    assert not (tmp_path / "evil").exists()


def test_a_single_file_is_kept_as_it_is(home, tmp_path, monkeypatch):
    file = tmp_path / "beeradvocate.json.gz"
    file.write_bytes(gzip.compress(beer_records(repr).encode()))
    entry = replace(DATASETS["beeradvocate"], archive=file.as_uri())
    monkeypatch.setitem(DATASETS, "beeradvocate", entry)
    get("beeradvocate", home)
    assert len(load("beeradvocate", data_dir=home).ratings) == 2


def test_get_does_not_touch_what_is_there(server, home):
    put(home, "ml-1m", mine__txt="precious")
    with pytest.raises(DataError, match="exists already"):
        get("ml-1m", home)
    assert [path.name for path in home.rglob("*")] == ["ml-1m", "mine.txt"]
    assert server.asked == 0


def test_a_folder_that_appears_meanwhile(tmp_path):
    def make():
        with download.making(tmp_path / "x") as part:
            (part / "mine").touch()
            put(tmp_path, "x", theirs="")

    with pytest.raises(DataError, match="another process created it in the meantime"):
        make()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["theirs", "x"]


def test_what_killed_writers_left_is_removed(tmp_path):
    import os

    old, new = tmp_path / ".x.1.part", tmp_path / ".x.2.part"
    old.mkdir()
    new.mkdir()
    os.utime(old, (0, 0))
    with download.making(tmp_path / "x"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.2.part", "x"]


def test_get_that_cannot_write(server, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        get("ml-1m", tmp_path / "file")


def test_get_by_hand_and_unknown(home):
    with pytest.raises(DataError, match=r"Yahoo! R3 .*form on that page.*signed agreement"):
        get("yahoo-r3", home)
    with pytest.raises(UnknownName, match="Did you mean 'coat'"):
        get("coats", home)
    with pytest.raises(SettingError, match="cannot download from 'ftp://x'"):
        download.fetch("ftp://x", home)
    assert not home.exists()


def test_entries_are_sound():
    for name, entry in DATASETS.items():
        assert name == entry.name == name.lower()
        assert entry.checksum is None or re.fullmatch(
            r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", entry.checksum
        )
        assert entry.checksum or (entry.archive or "https://x").startswith("https://")
        assert set(entry.rules) <= set(catalog.RULES)
        assert entry.scale is None or entry.liked is None or (
            entry.scale[0] <= entry.liked <= entry.scale[1]
        )  # fmt: skip
    assert {"overlap", "observed"} == set(DATASETS["cm100k"].options)


# Several qrels


def test_qrels_as_one_collection(tmp_path):
    (tmp_path / "trec7.qrels").write_text("351 0 FT1 1\n351 0 FT2 -1\n")
    (tmp_path / "trec8.qrels.gz").write_bytes(gzip.compress(b"351 0 FT1 0\n402 0 LA9 2\n"))
    files = [tmp_path / "trec7.qrels", tmp_path / "trec8.qrels.gz"]
    both = read_qrels(files)
    assert both.to_polars().rows() == [
        ("trec7/351", "FT1", 1.0, False, "trec7"), ("trec7/351", "FT2", -1.0, True, "trec7"),
        ("trec8/351", "FT1", 0.0, False, "trec8"), ("trec8/402", "LA9", 2.0, False, "trec8"),
    ]  # fmt: skip
    assert len(both.notes) == 2
    assert list(read_qrels(files[0]).users.values) == [351]
    named = read_qrels({"a": files[0], "b": files[0]})
    assert list(named.users.values) == ["a/351", "b/351"]
    with pytest.raises(SettingError, match="two files are named 'trec7'"):
        read_qrels([files[0], files[0]])
    with pytest.raises(SettingError, match="at least one"):
        read_qrels([])


# Summaries


def plain_gini(counts):
    pairs = sum(abs(a - b) for a in counts for b in counts)
    return pairs / (2 * len(counts) * sum(counts))


def test_summary_by_hand(coat):
    told = summary(load("coat", data_dir=coat))
    observed, random = told.table().to_dicts()
    assert (observed["ratings"], observed["users"], observed["items"]) == (5, 3, 3)
    assert observed["density"] == 5 / 9
    assert observed["gini"] == pytest.approx(plain_gini([2, 2, 1]))
    assert (observed["lowest"], observed["highest"], observed["mean"]) == (1, 5, 14 / 5)
    assert observed["liked"] == 2 / 5
    assert random["part"] == "random"
    assert told.to_dict()["parts"][1]["liked"] == 2 / 5
    assert told.table().height == 2
    assert "Gini over items" in str(told)
    assert "table" in told._repr_html_()
    spec = told.figure().to_dict()
    drawn = [row for row in spec["datasets"]["rows"] if row["part"] == "observed"]
    assert [(row["rank"], row["ratings"]) for row in drawn] == [(1, 2), (2, 2), (3, 1)]


def test_summary_of_ratings_with_times():
    ratings = read_ratings({"user": [1, 2, 2], "item": [1, 1, 2], "time": [0, 86_400, 90]})
    told = summary(ratings)
    assert (told.part()["first"], told.part()["last"]) == (
        "1970-01-01 00:00:00", "1970-01-02 00:00:00",
    )  # fmt: skip
    assert told.part()["liked"] is None
    json.dumps(told.to_dict())


def test_summary_counts_only_what_is_rated():
    ratings = read_ratings({"user": [1, 2, 2], "item": [1, 1, 2], "rating": [1, 2, 3]})
    told = summary(Dataset("x", ratings.take(np.array([True, False, False]))))
    assert (told.part()["users"], told.part()["items"], told.part()["density"]) == (1, 1, 1.0)
    assert told.part()["gini"] == 0


def test_rules_without_a_random_part():
    parts = Parts(read_ratings({"user": [1], "item": [1]}))
    assert parts.settle_overlap("keep") is parts.among_common_users() is parts.over_same_ids()


PAIRS = st.sets(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1)


def of_pairs(pairs):
    user, item = zip(*pairs, strict=True)
    return read_ratings({"user": user, "item": item, "rating": [10 * u + i for u, i in pairs]})


@given(PAIRS, PAIRS)
def test_rules_against_sets(chosen, drawn):
    parts = Parts(of_pairs(chosen), of_pairs(drawn)).over_same_ids()
    kept, dropped = (parts.settle_overlap(rule) for rule in OVERLAP)
    both = len(chosen & drawn)
    assert all(part.notes[0].startswith(f"{both} pair") for part in (kept, dropped))
    assert {row[:2] for row in rows(kept.random)} == drawn
    assert {row[:2] for row in rows(dropped.random)} == drawn - chosen
    assert all(value == 10 * u + i for u, i, value in rows(dropped.random) + rows(dropped.ratings))
    users = {user for user, _ in drawn}
    common = parts.among_common_users()
    assert {row[:2] for row in rows(common.ratings)} == {p for p in chosen if p[0] in users}
    assert set(common.ratings.users.values) == users
    assert common.random.users.equals(common.ratings.users)
    assert common.random.items.equals(common.ratings.items)


# The command


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        app(["data", *map(str, arguments)])
    printed = capsys.readouterr()
    return done.value.code or 0, printed.out, printed.err


def test_list(coat, capsys):
    code, out, _ = run(capsys, "list", "--data-dir", coat, "--format", "json")
    assert code == 0
    listed = {row["name"]: row for row in json.loads(out)}
    assert list(listed) == [*DATASETS, *released.TABLES]
    assert listed["cm100k"]["from"] == "https://github.com/ir-uam/SIGIR2018"
    assert listed["coat"]["there"] == "yes"
    assert listed["ml-1m"]["there"] == "no"
    assert str(coat) in run(capsys, "list", "--data-dir", coat)[1]


def test_released_results_are_listed(home, capsys):
    name, theirs = "valcarce2018_librarything_pvalues.csv", "discriminative-libraryThing.csv"
    put(home, "published", **{theirs.replace(".", "__"): "RunA,RunB,P\n" + "a,b,0.5\n" * 420})
    _, out, _ = run(capsys, "list", "--data-dir", home, "--format", "json")
    rows = {row["name"]: row for row in json.loads(out) if row["kind"] == "released results"}
    assert list(rows) == list(released.TABLES)
    assert [one for one, row in rows.items() if row["there"] == "yes"] == [name]
    assert rows[name]["from"].startswith("GitHub repository dvalcarce/evalMetrics")
    assert theirs in rows[name]["from"]
    for asked in (name, theirs):
        _, out, _ = run(capsys, "info", asked, "--data-dir", home, "--format", "json")
        told = json.loads(out)
        assert (told["file"], told["rows"], told["authors_file"]) == (name, 420, theirs)
        assert told["path"] == str(home / "published" / theirs)
    _, out, _ = run(capsys, "info", "mena2021_ml-1m_at10.csv", "--data-dir", home)
    assert "elikary/tois2021" in out
    assert "there  no; put it into the folder `published`" in out
    code, _, err = run(capsys, "info", name, "--liked", "4")
    assert code == 2
    assert "holds results, not ratings" in err
    put(home, "published", **{theirs.replace(".", "__"): "RunA,RunB,P\na,b,0.5\n"})
    code, _, err = run(capsys, "info", name, "--data-dir", home)
    assert code
    assert "has 1 row with values" in err


def test_info_says_where_data_are_from(home, capsys):
    code, _, err = run(capsys, "info", "cm100k", "--data-dir", home)
    assert code
    assert re.search(r"data\.txt of its repository.*github\.com/ir-uam/SIGIR2018", err)
    put(home, "cm100k", data__txt=CM)
    _, out, _ = run(capsys, "info", "cm100k", "--data-dir", home)
    assert "from https://github.com/ir-uam/SIGIR2018 (download datasets/cm100k/data.txt" in out
    _, out, _ = run(capsys, "info", "cm100k", "--data-dir", home, "--format", "json")
    assert any("licence" in note for note in json.loads(out)["notes"])


def test_get_command(server, home, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, _, err = run(capsys, "get", "ml-1m", "--data-dir", home)
    assert code == 2
    assert "--yes" in err
    assert "GroupLens" in err
    assert server.asked == 0
    code, out, err = run(capsys, "get", "ml-1m", "--data-dir", home, "--yes")
    assert code == 0
    assert "is there now" in out
    assert server.address in err
    assert "is there already" in run(capsys, "get", "ml-1m", "--data-dir", home)[1]


@pytest.mark.parametrize(("answer", "asked"), [("y\n", 1), ("n\n", 0)])
def test_get_asks(server, home, capsys, monkeypatch, answer, asked):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    code, _, _ = run(capsys, "get", "ml-1m", "--data-dir", home)
    assert (code, server.asked) == (1 - asked, asked)


def test_info(coat, capsys, tmp_path):
    code, out, _ = run(capsys, "info", "coat", "--data-dir", coat)
    assert code == 0
    assert "random  5 ratings" in out
    _, out, _ = run(
        capsys, "info", "coat", "--data-dir", coat, "--format", "json", "--liked", 5,
        "--option", "overlap=drop-from-test", "--figure", tmp_path / "f.json",
    )  # fmt: skip
    told = json.loads(out)
    assert told["parts"][1]["ratings"] == 3
    assert told["parts"][0]["liked"] == 0.2
    assert (tmp_path / "f.json").exists()


def test_info_of_a_file(tmp_path, capsys):
    file = tmp_path / "x.csv"
    file.write_text("who,item,rating\n1,2,3\n1,2,5\n")
    _, out, _ = run(capsys, "info", file, "--columns", "user=who", "--duplicates", "mean")
    assert "1 rating of 1 item by 1 user" in out
    for more, why in (
        (["--option", "overlap=keep"], "is for named data sets"),
        (["--option", "overlap"], "NAME=VALUE"),
        (["--format", "yaml"], "format"),
    ):
        code, _, err = run(capsys, "info", file, *more)
        assert code == 2
        assert why in err
    code, _, err = run(capsys, "info", "coat", "--columns", "user=who")
    assert code == 2
    assert "are for files" in err


@pytest.mark.parametrize("command", ["list", "get", "info"])
def test_help(command, capsys):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert "Examples" in out
    assert f"unskew data {command}" in out


# The page


def test_the_page_lists_every_data_set():
    text = PAGE.read_text()
    table = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    listed = {row[0]: row[1:] for row in table if row[0] in DATASETS}
    assert list(listed) == list(DATASETS)
    for name, entry in DATASETS.items():
        liked = "" if entry.liked is None else f"{entry.liked:g}"
        scale = "" if entry.scale is None else f"{entry.scale[0]:g} to {entry.scale[1]:g}"
        options = ", ".join(entry.options)
        assert listed[name] == [
            f"[{entry.title}]({entry.address})", entry.published, entry.truth, scale, liked,
            options.replace(", ", "`, `"), "yes" if entry.archive else "no", entry.licence,
        ], name  # fmt: skip
    sentence = re.search(r"checksum where there is one; for (.*?) none\s+is known", text, re.DOTALL)
    unchecked = {one.name for one in DATASETS.values() if one.archive and not one.checksum}
    assert set(re.findall(r"`([^`]+)`", sentence[1])) == unchecked


# Real data


@pytest.mark.real
def test_real_ml_1m():
    real_data("ml-1m")
    data = load("ml-1m")
    assert (len(data.ratings), len(data.ratings.users), len(data.ratings.items)) == (
        1_000_209, 6_040, 3_706,
    )  # fmt: skip
    told = summary(data).part()
    assert f"{told['density']:.3%}" == "4.468%"
    assert f"{told['gini']:.3f}" == "0.634"
    assert f"{told['liked']:.4f}" == "0.5752"


@pytest.mark.real
def test_real_ml_100k():
    real_data("ml-100k/u.data")
    data = load("ml-100k")
    assert (len(data.ratings), len(data.ratings.users), len(data.ratings.items)) == (
        100_000, 943, 1_682,
    )  # fmt: skip
    assert summary(data).part()["first"] == "1997-09-20 03:05:10"


@pytest.mark.real
def test_real_yahoo_r3():
    real_data("yahoo-r3/ratings.parquet")
    data = load("yahoo-r3")
    assert (len(data.ratings), len(data.random)) == (129_179, 54_000)
    assert round(float(data.ratings.value.mean()), 3) == 2.876
    assert round(float(data.random.value.mean()), 3) == 1.819


@pytest.mark.real
@pytest.mark.parametrize(("overlap", "left"), [("keep", 4_640), ("drop-from-test", 4_640 - 366)])
def test_real_coat(overlap, left):
    real_data("coat/train.ascii")
    data = load("coat", overlap=overlap)
    assert (len(data.ratings), len(data.random)) == (6_960, left)
    assert (len(data.ratings.users), len(data.ratings.items)) == (290, 300)
    assert data.notes[0].startswith("366 pairs are in both parts")


# Options after a colon


def test_options_after_a_colon(coat, tmp_path, monkeypatch):
    plain = load("coat", data_dir=coat)
    dropped = load("coat:overlap=drop-from-test", data_dir=coat)
    assert len(dropped.random) == len(load("coat", data_dir=coat, overlap="drop-from-test").random)
    assert len(dropped.random) < len(plain.random)
    with pytest.raises(UnknownName, match="coat does not take the option 'colour'"):
        load("coat:colour=red", data_dir=coat)
    with pytest.raises(SettingError, match="given twice"):
        load("coat:overlap=keep", data_dir=coat, overlap="keep")
    for wrong in ("coat:overlap", "coat:=keep", "coat:overlap=keep,"):
        with pytest.raises(SettingError, match="write options of a data set as NAME:OPTION=VALUE"):
            load(wrong, data_dir=coat)
    with pytest.raises(UnknownName, match="Did you mean 'coat'"):
        load("coatt:overlap=keep", data_dir=coat)


def test_a_file_that_has_the_name_of_a_data_set(coat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coat").write_text("user,item,rating\n1,a,5\n")
    assert len(load("coat").ratings) == 1
    (tmp_path / "ml-1m").mkdir()  # a folder is no file of ratings
    with pytest.raises(DataError, match="MovieLens 1M is not there"):
        load("ml-1m", data_dir=coat)


# What changed files once did; see benchmarks/soak.py


KUAIREC = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            "5,2,9,8,x,20200705,5,2,9,8,x,20200705,1406342613.5,4.25",
            "1 line has another number of cells",
        ),
        ("5,2,9,8,x,20200705,1406342613.5", "1 line has another number of cells"),
        ("1e-320,2,9,8,x,20200705,1406342613.5,4.25", "1 row cannot be read.*row 2"),
        ("1e5,2,9,8,x,20200705,1406342613.5,4.25", "1 row cannot be read.*row 2: .'1e5'"),
    ],
)
def test_kuairec_rows_that_polars_would_take(home, row, why):
    good = f"{KUAIREC}1,1,9,8,x,20200705,1406007298.5,1.25\n"
    put(home, "kuairec", big_matrix__csv=f"{good}{row}\n", small_matrix__csv=good)
    with pytest.raises(DataError, match=rf"big_matrix.csv: {why}"):
        load("kuairec", data_dir=home)


def test_a_named_data_set_without_its_ratings_is_refused(home):
    """As any file, two columns are implicit feedback; of a data set of ratings they are not."""
    names = {f"ydata-ymusic-rating-study-v1_0-{part}__txt": "1\t14\n" for part in ("train", "test")}
    put(home, "yahoo-r3", **names)
    with pytest.raises(DataError, match=r"train.txt: rating column 2 does not exist"):
        load("yahoo-r3", data_dir=home)
    put(home, "ml-latest-small", ratings__csv="userId,movieId,ratin_\n1,14,5\n")
    with pytest.raises(DataError, match=r"ratings.csv: is this column the rating"):
        load("ml-latest-small", data_dir=home)


def test_a_play_that_is_cut_short(home):
    text = "u\t2009-05-01T09:17:36Z\tmb-1\tA\t\tx\nu\t2009-05-01T09:17:36Z\tm"
    put(home, "lastfm-1k", **{"userid-timestamp-artid-artname-traid-traname__tsv": text})
    with pytest.raises(DataError, match=r"traname.tsv: 1 line has another number of cells"):
        load("lastfm-1k", data_dir=home)


def test_a_review_that_is_no_record(home):
    lines = beer_records(json.dumps).splitlines()
    put(home, "beeradvocate", beeradvocate__json="\n".join([lines[0], "x" + lines[1]]))
    with pytest.raises(DataError, match=r"beeradvocate.json: line 2 is not a record: 'x"):
        load("beeradvocate", data_dir=home)


def test_errors_about_values_name_the_file(home):
    put(home, "netflix", combined_data_1__txt="1:\n5,3,2005-09-06\n5,4,2005-09-07\n")
    with pytest.raises(DataError, match=r"combined_data_1.txt: 1 user-item pair occurs"):
        load("netflix", data_dir=home)


def test_digits_of_other_scripts_and_bytes_that_are_no_ascii(home, coat):
    put(home, "LT", UI2__txt="1 20 7 x\n1 ٣ 7 y\n")
    with pytest.raises(DataError, match=r"UI2.txt: line 2"):
        load("librarything", data_dir=home)
    put(coat, "coat", test__ascii=b"5 3 0\n0 0\xa01\n2 0 4\n")
    with pytest.raises(DataError, match=r"test.ascii: not a matrix.*no ASCII"):
        load("coat", data_dir=coat)


def test_items_of_reviews_that_begin_with_zeros_stay_apart(home):
    text = beer_records(json.dumps).replace("47986", "7", 1).replace("47986", "007", 1)
    put(home, "beeradvocate", beeradvocate__json=text)
    items = set(load("beeradvocate", data_dir=home).ratings.items.values)
    assert {"7", "007"} <= items


KUAIRAND = "user_id,video_id,time_ms,is_click,is_rand\n"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1,6,16503#1301,0,0", "1 row cannot be read.*row 1"),
        ("1,6,1e99,0,0", "1 time stamp is not a date.* row 1"),
        ("1,6,1650571401301,nan,0", "column 'is_click': 1 rating is missing.* row 1"),
    ],
)
def test_a_log_in_several_files_says_which_one_is_wrong(home, row, why):
    """A time stamp that is no number is not a missing one."""
    put(
        home, "kuairand-pure", log_standard_1__csv=f"{KUAIRAND}0,5,1649361801301,0,0\n",
        log_standard_2__csv=f"{KUAIRAND}{row}\n", log_random_1__csv=f"{KUAIRAND}1,5,,0,1\n",
    )  # fmt: skip
    with pytest.raises(DataError, match=rf"log_standard_2.csv: {why}"):
        load("kuairand-pure", data_dir=home)


def test_answers_that_are_cut_short(home):
    head = (
        "dataset_id,movie_id,seen_status,familiarity,p1_check,p2_check,interest_level,rating,last\n"
    )
    row = "1,5,t,Seen,,,Interested,4,x\n"
    files = {"explicit-ratings__csv": "userId,movieId,rating\n1,9,4\n"}
    for answers, why in (
        (f"{head}{row}1,6,t,Seen,,,Interested", "1 line has another number of cells"),
        (f"{head}{row}{row}", "1 user-item pair occurs more than once"),
    ):
        put(home, "ml-32m-ext", **files, **{"p2-ratings__csv": answers})
        with pytest.raises(DataError, match=rf"p2-ratings.csv: {why}"):
            load("ml-32m-ext", data_dir=home)


def put_events(home, **columns):
    """Write a like by user 1, with other columns than usual."""
    event = {"uid": [1], "timestamp": [5], "item_id": [2], "is_organic": [1]}
    folder = home / "yambda" / "flat" / "50m"
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("dislikes", "unlikes", "undislikes"):
        pl.DataFrame(event).clear().write_parquet(folder / f"{kind}.parquet")
    pl.DataFrame({**event, **columns}).write_parquet(folder / "likes.parquet")


def test_events_whose_files_differ_in_the_size_of_numbers(home):
    put_events(home, uid=pl.Series([1], dtype=pl.UInt32))
    for share in (1, 0.9999):
        assert rows(load("yambda-50m", data_dir=home, share=share).ratings) == [(1, 2, 1.0)]


@pytest.mark.parametrize(
    "columns",
    [{"is_organic": [-1]}, {"timestamp": [-5]}, {"timestamp": [10**13]},
     {"uid": pl.Series([2**63], dtype=pl.UInt64)}],
)  # fmt: skip
def test_events_that_cannot_be(home, columns):
    put_events(home, **columns)
    for share in (1, 0.9999):
        with pytest.raises(DataError, match=r"likes.parquet: (row 1 )?cannot be read"):
            load("yambda-50m", data_dir=home, share=share)
