"""Data sets with true judgments: pooled, exhaustive, random; and those too large to hold."""

import dataclasses
import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.examples import examples
from unskew.data.dataset import Dataset, TrueJudgments
from unskew.data.formats import log_formats
from unskew.data.formats.catalog import load
from unskew.data.formats.entries import DATASETS
from unskew.data.formats.parts import as_user_share, sampled
from unskew.data.summary import summary
from unskew.errors import DataError, SettingError, UnknownName


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("UNSKEW_DATA", raising=False)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def put(home, name, **files):
    """Write files of a data set; `__` in a keyword is a dot."""
    for file, content in files.items():
        path = home / name / file.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def rows(ratings):
    return ratings.to_polars().select("user", "item", "rating").rows()


# Judgments and their kinds


def few(values=(5, 1, 4)):
    return us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7], "rating": list(values)})


def test_kinds_and_candidates():
    assert TrueJudgments(few()).candidates == "all"
    assert TrueJudgments(few(), "pooled").candidates == "judged"
    assert TrueJudgments(few(), "exhaustive", liked=2).candidates == "judged"
    assert str(TrueJudgments(few(), "random", "judged")) == "3 judgments of randomly chosen items"
    with pytest.raises(UnknownName, match=r"kind 'pool'. Did you mean 'pooled'"):
        TrueJudgments(few(), "pool")
    with pytest.raises(UnknownName, match="candidates"):
        TrueJudgments(few(), "random", "some")
    with pytest.raises(SettingError, match="candidates='all' goes with kind='random'"):
        TrueJudgments(few(), "pooled", "all")


def test_a_data_set_has_one_true_part():
    ratings, random = few(), few()
    plain = Dataset("x", ratings)
    assert plain.true_part is None
    drawn = Dataset("x", ratings, random)
    assert (drawn.true_part.kind, drawn.true_part.ratings) == ("random", random)
    assert str(drawn).endswith("3 random ratings")
    other = dataclasses.replace(drawn, random=few())
    assert other.true_part.ratings is other.random
    pool = TrueJudgments(few((0, 3, 2)), "pooled", liked=2)
    both = Dataset("x", ratings, random, truth=pool)
    assert both.true_part.ratings is random  # a random sample has no bias of pooled systems
    assert Dataset("x", ratings, truth=pool).true_part is pool
    assert "3 random ratings; 3 judgments of the items that several systems listed" in str(both)
    whole = Dataset("x", ratings, random, truth=TrueJudgments(random, "exhaustive"))
    assert "random ratings" not in str(whole)
    assert "every pair" in whole._repr_html_()
    with pytest.raises(SettingError, match="different judgments"):
        Dataset("x", ratings, few(), truth=TrueJudgments(random, "exhaustive"))
    parts = summary(both).table().to_dicts()
    assert [part["part"] for part in parts] == ["observed", "random", "pooled"]
    assert parts[2]["liked"] == pytest.approx(2 / 3)  # by its own threshold
    assert [*summary(whole).per_item] == ["observed", "exhaustive"]


# ML-32M-ext

HEAD = (
    "participant_id,dataset_id,movie_id,seen_status,familiarity,p1_check,p2_check,interest_level,"
    "rating,rank_p2,movielens_rating\n"
)
ANSWERS = (
    HEAD + "1,200949,10,f,Never,,,Not interested,2.0,,\n"
    "1,200949,11,t,Seen,,,Extremely interested,5.0,1,\n"
    "1,200949,12,f,,,,Interested,3.5,,\n"
    "3,200951,10,f,Familiar,,,Somewhat interested,3.0,,\n"
    "3,200951,20,t,Seen,P1,,Very interested,4.0,,4.5\n"
    "3,200951,21,t,Seen,,P2,Interested,4.0,,4.0\n"
)
RATED = "userId,movieId,rating,timestamp\n" + "".join(
    f"{user},{item},{1 + (user + item) % 5},{1_600_000_000 + user}\n"
    for user in (*range(1, 41), 200949, 200951)
    for item in (20, 21, 30)
)


def extension(home, answers=ANSWERS, ratings=RATED):
    put(home, "ml-32m-ext", explicit_ratings__csv=ratings)
    folder = home / "ml-32m-ext"
    (folder / "explicit_ratings.csv").rename(folder / "explicit-ratings.csv")
    (folder / "p2-ratings.csv").write_text(answers)


def test_ml_32m_ext(home):
    extension(home)
    data = load("ml-32m-ext", data_dir=home)
    assert len(data.ratings) == 3 * 42
    assert data.random is None
    pool = data.truth
    assert (pool.kind, pool.liked, pool.scale) == ("pooled", 2.0, (0.0, 4.0))
    assert rows(pool.ratings) == [
        (200949, 10, 0.0), (200949, 11, 4.0), (200949, 12, 2.0), (200951, 10, 1.0),
    ]  # fmt: skip
    assert pool.ratings.tags["seen"].to_list() == [False, True, False, False]
    assert pool.ratings.tags["familiarity"].to_list() == ["Never", "Seen", None, "Familiar"]
    assert pool.ratings.users.equals(data.ratings.users)
    assert (data.liked, data.scale) == (4.0, (0.5, 5.0))
    assert "p2-ratings.csv: 6 rows" in data.notes
    assert any("2 rows of consistency checks left out" in note for note in data.notes)
    assert "4 judgments of the items that several systems listed, liked from 2" in str(data)


def test_ml_32m_ext_options(home):
    extension(home)
    rated = load("ml-32m-ext:labels=rating,seen=drop", data_dir=home)
    assert rows(rated.truth.ratings) == [
        (200949, 10, 2.0), (200949, 12, 3.5), (200951, 10, 3.0),
    ]  # fmt: skip
    assert (rated.truth.liked, rated.truth.scale) == (4.0, (0.5, 5.0))
    assert any("1 row of movies that the participant had seen" in one for one in rated.notes)
    part = load("ml-32m-ext:share=0.25", data_dir=home)
    kept = set(part.ratings.users.values)
    assert {200949, 200951} <= kept
    chosen = sampled(pl.Series(range(1, 41)), as_user_share(0.25))
    assert kept == {200949, 200951, *(np.flatnonzero(chosen) + 1)}
    assert any(f"{len(kept)} of 42 users kept" in note for note in part.notes)
    for wrong, why in (
        ({"labels": "stars"}, "labels"),
        ({"seen": "skip"}, "seen"),
        ({"share": 0}, "share must be"),
        ({"share": "many"}, "share must be a number"),
    ):
        with pytest.raises(SettingError, match=why):
            load("ml-32m-ext", data_dir=home, **wrong)


@pytest.mark.parametrize(
    ("answers", "ratings", "why"),
    [
        (ANSWERS.replace("Not interested", "Bored"), RATED, r"p2-ratings.csv.*row 1: .*'Bored'"),
        (ANSWERS.replace("200951,10,f", "200951,10,x"), RATED, "the first is row 4"),
        (ANSWERS.replace("interest_level", "interest"), RATED, "no column 'interest_level'"),
        (HEAD, RATED, "there are no rows"),
        (ANSWERS, RATED.replace("200951,", "300000,"), "1 participant has no rating here"),
        (ANSWERS + "1,200949,10,f,Never,,,Interested,2.0,,\n", RATED, "more than once"),
        (HEAD + "3,200951,20,t,Seen,P1,,Interested,4.0,,4.5\n", RATED, "no judgment of a pooled"),
    ],
)
def test_ml_32m_ext_that_is_broken(home, answers, ratings, why):
    extension(home, answers, ratings)
    with pytest.raises(DataError, match=why):
        load("ml-32m-ext", data_dir=home)


def test_pooled_judgments_as_a_table(home):
    put(
        home, "ml-32m-ext",
        ratings__csv="user,item,rating\n1,5,4\n2,6,3\n", pooled__csv="user,item,rating\n1,6,2\n",
    )  # fmt: skip
    data = load("ml-32m-ext", data_dir=home)
    assert (data.truth.kind, rows(data.truth.ratings)) == ("pooled", [(1, 6, 2.0)])
    assert data.random is None


# Logs with a random or an exhaustive part


def test_kuairand_takes_the_flag_at_its_word(home):
    head = "user_id,video_id,time_ms,is_click,is_rand\n"
    put(
        home, "KuaiRand-1K/data",
        log_standard_1k__csv=f"{head}0,5,1649361801301,1,0\n0,6,1649361801302,0,1\n",
        log_random_1k__csv=f"{head}1,5,1650657801301,0,1\n",
    )  # fmt: skip
    data = load("kuairand-1k", data_dir=home)
    assert rows(data.ratings) == [(0, 5, 1.0)]
    assert rows(data.random) == [(0, 6, 0.0), (1, 5, 0.0)]
    assert any("1 row has is_rand = 1: taken into the random part" in one for one in data.notes)
    assert (data.truth.kind, data.truth.candidates) == ("random", "judged")
    put(home, "KuaiRand-1K/data", log_random_1k__csv=f"{head}1,5,1650657801301,0,2\n")
    with pytest.raises(DataError, match=r"log_random_1k.csv: is_rand must be 0 or 1, but row 1"):
        load("kuairand-1k", data_dir=home)
    plain = "user_id,video_id,time_ms,is_click\n"
    put(home, "KuaiRand-1K/data", log_random_1k__csv=f"{plain}1,5,1650657801301,0\n")
    data = load("kuairand-1k", data_dir=home)
    assert any("log_random_1k.csv: no column 'is_rand'" in note for note in data.notes)
    put(
        home, "KuaiRand-1K/data",
        log_standard_1k__csv=f"{head}0,5,1649361801301,1,0\n",
        log_random_1k__csv=f"{head}1,5,,0,0\n",
    )  # fmt: skip
    with pytest.raises(DataError, match=r"no rows for the part of log_random_1k.csv"):
        load("kuairand-1k", data_dir=home)


@pytest.mark.parametrize("bad", ["x,5,1,0,0", "0,,1,0,0", "0,5,1,much,0", "0,5,1,,0"])
def test_logs_name_file_and_row(home, bad):
    head = "user_id,video_id,time_ms,is_click,is_rand\n"
    put(
        home, "KuaiRand-1K/data",
        log_standard_1k__csv=f"{head}0,5,1649361801301,1,0\n{bad}\n",
        log_random_1k__csv=f"{head}1,5,1650657801301,0,1\n",
    )  # fmt: skip
    with pytest.raises(DataError, match=r"log_standard_1k.csv: 1 row cannot be read.* row 2"):
        load("kuairand-1k", data_dir=home)


# Yambda

KINDS = ("likes", "dislikes", "unlikes", "undislikes", "listens")
EVENT = {
    "uid": pl.UInt32,
    "timestamp": pl.UInt32,
    "item_id": pl.UInt32,
    "is_organic": pl.UInt8,
}


def yambda(home, size="50m", **events):
    """Write flat files: rows of uid, timestamp, item, organic (and percent played of listens)."""
    folder = home / "yambda" / "flat" / size
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        more = {"played_ratio_pct": pl.UInt16, "track_length_seconds": pl.UInt32}
        schema = {**EVENT, **(more if kind == "listens" else {})}
        table = pl.DataFrame(events.get(kind, []), schema=schema, orient="row")
        table.sort("uid", "timestamp", maintain_order=True).write_parquet(
            folder / f"{kind}.parquet"
        )


def test_yambda_explicit(home):
    yambda(
        home,
        likes=[(10, 5, 1, 1), (10, 50, 2, 0), (20, 5, 1, 1), (20, 5, 3, 1), (20, 60, 4, 0)],
        unlikes=[(10, 55, 2, 1), (20, 5, 9, 1)],
        dislikes=[(10, 5, 7, 0), (20, 10, 3, 0), (20, 60, 4, 1)],
        undislikes=[(10, 10, 7, 0)],
    )
    data = load("yambda-50m", data_dir=home)
    # (10, 2) and (10, 7) were taken back, (20, 9) was never liked here, (20, 4) is both at once.
    assert rows(data.ratings) == [(10, 1, 1.0), (20, 1, 1.0), (20, 3, 0.0)]
    assert data.ratings.tags["organic"].to_list() == [True, True, False]
    assert data.ratings.time.tolist() == [5_000_000, 5_000_000, 10_000_000]
    assert (data.liked, data.scale, data.true_part) == (1.0, (0.0, 1.0), None)
    assert any(note.startswith("4 pairs of user and track left out") for note in data.notes)
    assert any("seconds since the first event, in steps of 5 s" in note for note in data.notes)


def test_yambda_listens(home):
    yambda(
        home,
        likes=[(10, 5, 1, 1)],
        listens=[
            (10, 5, 1, 0, 20, 100),
            (10, 5, 1, 1, 60, 100),
            (10, 90, 1, 0, 10, 100),
            (20, 15, 1, 0, 159, 100),
            (20, 15, 2, 1, None, 100),
        ],
    )
    data = load("yambda-50m:signal=listens", data_dir=home)
    assert rows(data.ratings) == [(10, 1, 60.0), (20, 1, 159.0)]
    assert data.ratings.tags["organic"].to_list() == [True, False]  # of two at once the organic one
    assert data.ratings.tags["plays"].to_list() == [3, 1]
    assert (data.liked, data.scale) == (50.0, None)
    assert any("1 pair without played_ratio_pct left out" in note for note in data.notes)


EVENTS = st.lists(
    st.tuples(st.sampled_from(KINDS[:4]), st.integers(1, 2), st.integers(0, 3), st.integers(1, 2)),
    min_size=1,
    max_size=12,
)


def plain_state(events):
    """Return what each user last said of each track, event by event."""
    said = {}
    for user, item in {(user, item) for _, user, _, item in events}:
        last = {
            kind: max((t for k, u, t, i in events if (k, u, i) == (kind, user, item)), default=-1)
            for kind in KINDS[:4]
        }
        like = last["likes"] if last["likes"] > last["unlikes"] else -1
        dislike = last["dislikes"] if last["dislikes"] > last["undislikes"] else -1
        if like != dislike:
            said[user, item] = 1.0 if like > dislike else 0.0
    return said


@examples(40)
@given(EVENTS)
def test_yambda_against_a_plain_twin(tmp_path_factory, events):
    home = tmp_path_factory.mktemp("yambda")
    files = {kind: [(u, 5 * t, i, 1) for k, u, t, i in events if k == kind] for kind in KINDS[:4]}
    yambda(home, **files)
    expected = plain_state(events)
    if not expected:
        with pytest.raises(DataError, match="no like or dislike that was not taken back"):
            load("yambda-50m", data_dir=home)
        return
    data = load("yambda-50m", data_dir=home)
    assert {(u, i): value for u, i, value in rows(data.ratings)} == expected


def test_yambda_samples_the_same_users_everywhere(home):
    likes = [(user, 5, user % 7, 1) for user in range(1, 301)]
    listens = [(user, 5, user % 7, 1, 80, 100) for user in range(1, 301)]
    yambda(home, likes=likes, listens=listens)
    yambda(home, "500m", likes=likes[::2])
    chosen = set(np.flatnonzero(sampled(pl.Series(range(1, 301)), as_user_share(0.3))) + 1)
    one = load("yambda-50m:share=0.3", data_dir=home)
    assert set(one.ratings.users.values) == chosen
    two = load("yambda-50m:share=0.3,signal=listens", data_dir=home)
    assert set(two.ratings.users.values) == chosen
    larger = load("yambda-500m:share=0.3", data_dir=home)
    assert set(larger.ratings.users.values) == {user for user in chosen if user % 2}
    assert any(f"share=0.3: {len(chosen)} of 300 users kept" in note for note in one.notes)


def test_yambda_refuses_what_does_not_fit(home, monkeypatch):
    yambda(home, likes=[(user, 5, 1, 1) for user in range(100)])
    monkeypatch.setattr(log_formats, "MOST_EVENTS", 28)
    with pytest.raises(DataError, match=r"likes.parquet: 100 events, but at most 28.* share=0.2$"):
        load("yambda-50m", data_dir=home)
    assert len(load("yambda-50m:share=0.2", data_dir=home).ratings) < 50


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.drop("is_organic"), "no column 'is_organic'"),
        (lambda table: table.cast({"item_id": pl.String}), "column 'item_id' holds String"),
        (lambda table: table.with_columns(timestamp=pl.lit(None, pl.UInt32)), "row 1 cannot be"),
        (lambda table: table.with_columns(uid=pl.lit(None, pl.UInt32)), "row 1 cannot be read"),
        (
            lambda table: table.with_columns(is_organic=pl.Series([1, 7], dtype=pl.UInt8)),
            "row 2 cannot be read: .*is_organic = 7",
        ),
        (lambda table: table.group_by("uid").agg(pl.all()), "holds List"),
    ],
)
def test_yambda_files_that_are_broken(home, change, why):
    yambda(home, likes=[(10, 5, 1, 1), (20, 5, 1, 1)])
    path = home / "yambda" / "flat" / "50m" / "likes.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    with pytest.raises(DataError, match=why) as told:
        load("yambda-50m", data_dir=home)
    assert "likes.parquet" in str(told.value)


def test_yambda_without_listens(home):
    yambda(home, likes=[(10, 5, 1, 1)])
    (home / "yambda" / "flat" / "50m" / "listens.parquet").unlink()
    with pytest.raises(DataError, match=r"listens.parquet: no such file; signal=listens needs it"):
        load("yambda-50m:signal=listens", data_dir=home)
    with pytest.raises(UnknownName, match="signal 'plays'"):
        load("yambda-50m:signal=plays", data_dir=home)


def test_organic_is_a_stratum(home):
    """The tag serves where strata of judgments are asked for."""
    pairs = list(itertools.product(range(1, 21), range(1, 7)))
    yambda(
        home,
        likes=[(u, 5, i, int((u + i) % 3 == 0)) for u, i in pairs if (u * i) % 2],
        dislikes=[(u, 5, i, int(u % 2)) for u, i in pairs if not (u * i) % 2],
    )
    data = load("yambda-50m", data_dir=home)
    lists = us.Run.from_arrays(np.arange(1, 21), np.tile(np.arange(1, 7), (20, 1)))
    report = us.unbiased.strata(
        data.ratings, {"same": lists}, "P@6", by="organic", liked=1, resamples=0
    )
    told = {str(name).lower() for name in report.table()["group"]}
    assert told >= {"true", "false"}


def test_entries_say_what_is_observed_and_why_liked():
    for entry in DATASETS.values():
        assert entry.observed
        assert entry.liked is None or entry.reason, entry.name
        assert not entry.truth or entry.truth.partition(":")[0] == entry.kind
        assert all(not line.endswith(".") for line in entry.facts)
