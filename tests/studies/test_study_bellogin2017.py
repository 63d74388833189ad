"""The study of bellogin2017: on the built-in world, on made-up files, on MovieLens 1M."""

import math

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.real_data import real_data
from shared.studies import datasets_of
from unskew.report.page import save_report
from unskew.stats.intervals.means import mean_interval
from unskew_studies.bellogin2017 import checks as tables
from unskew_studies.bellogin2017 import (
    checks_designs,
    checks_popularity,
    measurements,
    measurements_designs,
    measurements_popularity,
)
from unskew_studies.lab import choose_amounts, open_lab
from unskew_studies.paper import AMBIGUOUS
from unskew_studies.result import (
    CONTRADICTS,
    DIFFERS,
    FAILED,
    HOLDS,
    NO_DATA,
    NOT_CHECKABLE,
    NOT_SETTLED,
    VERDICTS,
)
from unskew_studies.run import find_study, study

NAME = "bellogin2017"
PAPER = find_study(NAME)
NOTHING = {FAILED, NO_DATA, NOT_CHECKABLE}
"""What is no verdict on a claim."""
EXACT = ("0-05", "0-06", "0-08", "0-37", "0-39", "0-40", "0-52")
"""Claims that hold on any data."""
WRONG = ("0-20", "0-41", "0-42")
"""Claims that these data contradict, as any data with popular items do."""


@pytest.fixture(scope="module")
def found(nowhere, store):
    return study(NAME, data_dir=nowhere, store=store)


def row_of(result, key):
    """Return a claim's row of the ledger."""
    (row,) = result.ledger.filter(pl.col("claim") == key).to_dicts()
    return row


def a_lab(frame=None, liked=None, **given):
    """Open a lab on data of one's own."""
    data = PAPER.stand_in(0) if frame is None else us.load(frame)
    amounts = choose_amounts(PAPER.amounts, True, given)
    return open_lab(
        {data.name: data}, is_other_data=True, amounts=amounts, quick=True, liked=liked
    ), data.name


# The ledger


def test_every_claim_of_the_ledger_is_there():
    keys = [claim.key for claim in PAPER.claims]
    assert keys == [f"0-{number:02d}" for number in range(1, 59)]
    assert {claim.key for claim in PAPER.claims if claim.evidence[0].check is None} == {"0-25"}


def test_claims_name_their_place_and_the_printed_value():
    for claim in PAPER.claims:
        assert claim.published
        assert claim.place.split()[0] in ("Fig.", "Eq.") or claim.place.startswith("§")


# On the built-in world


def test_the_whole_study_on_the_built_in_world(found):
    assert set(found.ledger["claim"]) == {claim.key for claim in PAPER.claims}
    assert set(found.ledger["verdict"]) <= set(VERDICTS)
    asked = {claim.key for claim in PAPER.claims if claim.question}
    open_ = found.ledger.filter(pl.col("verdict").is_in(NOTHING))
    assert not asked & set(open_["claim"])
    assert found.is_other_data
    assert dict(found.left_out) == {}
    assert [exhibit.place for exhibit, _, _ in found.exhibits] == [
        "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6", "Fig. 7", "Fig. 8", "Fig. 9",
    ]  # fmt: skip


@pytest.mark.parametrize("key", EXACT)
def test_what_holds_on_any_data(found, key):
    assert row_of(found, key)["verdict"] == HOLDS


@pytest.mark.parametrize("key", WRONG)
def test_what_is_wrong_on_any_data(found, key):
    assert row_of(found, key)["verdict"] == CONTRADICTS


def test_the_page_and_its_numbers(found, tmp_path):
    save_report(found, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 5_000_000
    text = found.document().to_markdown()
    assert "Fig. 8: Remedies" in text
    assert "0-27" in text
    files = {path.name for path in found.to_csv(tmp_path / "csv")}
    assert {"ledger.csv", "configurations-stand-in.csv", "bounds-stand-in.csv"} <= files
    table = pl.read_csv(tmp_path / "csv" / "configurations-stand-in.csv")
    assert table.height == found.tables["configurations", "stand-in"].height


def test_what_is_kept_is_not_measured_again(found, nowhere, store):
    told = []
    again = study(
        NAME, data_dir=nowhere, store=store, claims=["0-04", "0-17", "0-28"],
        progress=lambda what, done, total: told.append(what),
    )  # fmt: skip
    assert not any(told)
    for key in ("0-04", "0-17", "0-28"):
        assert row_of(again, key) == row_of(found, key)


def test_bounds_are_those_of_every_point(found):
    table = found.tables["bounds", "stand-in"]
    assert set(table["system"]) == {"pLSA", "kNN"}
    assert (table["value"] - table["low"]).min() > -1e-12
    assert (table["high"] - table["value"]).min() > -1e-12
    single = table.filter(pl.col("along") == "one each")
    assert (single["low"] == single["high"]).all()


def test_chance_is_the_exact_expectation(found):
    """ρ of the lists is what every design says that random is expected to score."""
    chance = found.tables["chance", "stand-in"].filter(pl.col("design") == measurements.AR)
    table = found.tables["configurations", "stand-in"].filter(
        (pl.col("design") == measurements.AR) & (pl.col("metric") == measurements.P)
    )
    each = table.group_by("fold", maintain_order=True).agg(pl.col("random").first())
    assert each["random"].to_list() == pytest.approx(chance["rho"].to_list(), abs=1e-12)


# Data of one's own


def some_ratings(users=60, items=150, scale=5, seed=3):
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.6, 0.05, items)[None, :] * rng.uniform(0.5, 1.3, (users, 1))
    user, item = np.nonzero(rng.random((users, items)) < chance)
    return pl.DataFrame(
        {"user": user, "item": item, "rating": rng.integers(1, scale + 1, user.size)}
    )


CHEAP = ["0-03", "0-04", "0-05", "0-13", "0-20", "0-26", "0-39", "0-41", "0-42"]


def test_own_ratings_of_five_stars():
    result = study(NAME, some_ratings(), quick=True, claims=CHEAP)
    assert set(result.ledger["data"]) == {"ratings"}
    assert not NOTHING & set(result.ledger["verdict"])
    assert row_of(result, "0-26")["statement"].endswith("?")


def test_own_ratings_of_another_scale_need_a_threshold():
    frame = some_ratings(scale=10)
    with pytest.raises(us.SettingError, match="ratings go from 1 to 10"):
        study(NAME, frame, quick=True, claims=CHEAP)
    result = study(NAME, frame, quick=True, claims=CHEAP, liked=8)
    assert not NOTHING & set(result.ledger["verdict"])


@pytest.mark.parametrize(
    "frame",
    [
        some_ratings(5, 6),
        some_ratings(12, 15).with_columns(rating=pl.lit(1)),
        some_ratings(10, 40).with_columns(rating=pl.lit(5)),
        pl.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [5, 1]}),
    ],
    ids=["tiny", "implicit", "all liked", "one item"],
)
def test_poor_data_are_no_reason_to_fail(frame):
    result = study(NAME, frame, quick=True, liked=4)
    assert set(result.ledger["verdict"]) <= set(VERDICTS)
    for row in result.ledger.filter(pl.col("verdict").is_in(NOTHING)).iter_rows(named=True):
        assert row["note"], row["claim"]


# Last.fm and Netflix, as made-up files


@pytest.fixture(scope="module")
def lastfm(tmp_path_factory):
    """A data folder with some plays, of which a few artists get most."""
    home = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(8)
    weight = 1 / (5.0 + np.arange(400))
    rows, plays = [], 9000
    for n, artist in enumerate(rng.choice(400, plays, p=weight / weight.sum())):
        user, times = rng.integers(60), rng.integers(1, 7)
        for k in range(times):
            second = 86_400 * n // 20 + k
            at = np.datetime64("2006-01-01T00:00:00") + np.timedelta64(int(second), "s")
            rows.append(f"user_{user:06d}\t{at}Z\tmb-{artist}\tA\t\tx\n")
    folder = home / "lastfm-1k"
    folder.mkdir()
    (folder / "userid-timestamp-artid-artname-traid-traname.tsv").write_text("".join(rows))
    return home


def test_last_fm_from_a_file(lastfm, any_size):
    keys = [claim.key for claim in PAPER.claims if measurements.LASTFM in datasets_of(claim)]
    result = study(NAME, data_dir=lastfm, quick=True, claims=keys)
    rows = result.ledger.filter(pl.col("data") == measurements.LASTFM)
    assert set(rows["claim"]) == set(keys)
    assert not NOTHING & set(rows["verdict"])
    assert {"0-10", "0-12", "0-33", "0-36", "0-58"} <= set(keys)
    table = result.tables["configurations", measurements.LASTFM]
    assert set(table["design"]) == {measurements.AR, measurements.ONE}
    assert set(table["fold"]) == {1}


def test_last_fm_is_split_by_time(lastfm):
    data = us.load("lastfm-1k", data_dir=lastfm)
    amounts = choose_amounts(PAPER.amounts, True, {})
    with open_lab({data.name: data}, is_other_data=False, amounts=amounts, quick=True) as lab:
        (split,) = measurements.folds(lab, data.name)
        assert split.facts["events_train"] > 0
        assert measurements.relevance(lab, data.name).threshold == 3
        for one in measurements.uniform_splits(lab, data.name):
            assert min(one.train.value.min(), one.test.value.min()) >= 3


def test_netflix_from_a_file(tmp_path, any_size):
    (tmp_path / "netflix").mkdir()
    text = "1:\n" + "".join(f"{u},{5 if u < 3 else 2},2005-09-06\n" for u in range(10))
    text += "2:\n" + "".join(f"{u},4,2005-09-06\n" for u in range(10))
    (tmp_path / "netflix" / "combined_data_1.txt").write_text(text)
    row = row_of(study(NAME, data_dir=tmp_path, claims=["0-24"]), "0-24")
    assert row["measured"] == "30.0 %"
    assert row["value"] == pytest.approx(30 - 20.1)
    assert row["verdict"] == CONTRADICTS


# Pieces, by hand


def test_places_and_orders():
    values = {"a": 0.3, "b": 0.5, "c": 0.3, "d": 0.1}
    assert tables.order(values) == ["b", "a", "c", "d"]
    assert [tables.place(values, name) for name in values] == [2, 1, 2, 4]
    assert tables.listed({"x": 0.25}, 2) == "x 0.25"
    assert math.isnan(tables.ratio(1, 0))
    assert tables.alike(values, values) == 1
    least = tables.least_of({"one": 0.5, "two": math.nan, "three": 0.2})
    assert (least.value, least.note) == (0.2, "The least of 2: three.")
    assert math.isnan(tables.least_of({"one": math.nan}).value)


def test_intervals():
    assert mean_interval([0.5]) == (0.5, None, None)
    mean, low, high = mean_interval([1.0, 2.0, 3.0])
    assert mean == 2
    assert high - mean == pytest.approx(4.3027 / math.sqrt(3), abs=1e-3)
    assert mean - low == pytest.approx(high - mean)
    # 45,000 lists of which a tenth hit: the standard error of the ledger.
    assert tables.hit_error(0.01, 45_000) == pytest.approx(0.00014, abs=1e-5)
    assert tables.hit_error(0.0, 10) > 0


def test_one_liked_test_item_per_user():
    lab, on = a_lab()
    with lab:
        split, liked = measurements.folds(lab, on)[0], measurements.relevance(lab, on)
        single = measurements_designs.single(split, liked)
        good = single.test.user[liked.is_liked(single.test.value)]
        assert np.bincount(good).max() == 1
        before = split.test.user[liked.is_liked(split.test.value)]
        assert set(good.tolist()) == set(before.tolist())
        bad = int((~liked.is_liked(split.test.value)).sum())
        assert len(single.test) == bad + good.size


def test_fewer_test_ratings_among_the_same_candidates():
    """A tenth of the lists is a sample of all; removed liked ratings only add others to beat."""
    lab, on = a_lab()
    with lab:
        table = lab.table(measurements_designs.sparser_fixed, on)
        split = measurements_designs.curve_folds(lab, on)[0]
        part = measurements_designs.subsampled(split, 0.1, lab.seed)
        liked = measurements.relevance(lab, on).is_liked(part.test.value)
        drawn = us.targets.OneRelevant(
            99, candidates=split.test.items.raw(np.unique(split.test.item)).to_list()
        ).lists(split, measurements.relevance(lab, on), seed=3)
        model = measurements.models(lab, on, "random", 0, split.train)["popularity"]
        own = us.evaluate(drawn, {"popularity": model}, "P@10", users="all").means()["popularity"]
    rows = {
        (row["system"], row["removed"]): row for row in table.filter(fold=1).iter_rows(named=True)
    }
    assert {removed for _, removed in rows} == {"others", "left out"}
    for (system, removed), row in rows.items():
        assert row["lists"] == int(liked.sum())
        assert abs(row["value"] - row["whole"]) < 4.5 * row["error"] or removed == "others"
        assert row["whole"] == rows[system, "others"]["whole"]
    whole = rows["popularity", "others"]["whole"]
    assert own["P@10"] == pytest.approx(whole, abs=4.5 * tables.hit_error(whole, len(drawn)))


def test_folds_are_fifths_whatever_the_amount():
    lab, on = a_lab()
    with lab:
        folds, cut = measurements.folds(lab, on), measurements.headless_splits(lab, on)
        assert len(folds) == len(cut) == 2
        for split, headless in zip(folds, cut, strict=True):
            assert 0.15 < split.facts["test_share"] < 0.25
            assert headless.train.fingerprint == split.train.fingerprint
            assert len(headless.test) < len(split.test)


def test_sizes_of_target_sets():
    many = us.read_ratings(
        {"user": np.repeat(np.arange(2), 3000), "item": np.tile(np.arange(3000), 2)}
    )
    (split,) = us.splits.Random(test=0.9).split(many, 1)
    assert measurements_designs.sizes(split) == [100, 178, 316, 562, 1000]
    few = us.read_ratings(some_ratings(30, 40))
    (split,) = us.splits.Random(test=0.5).split(few, 1)
    with pytest.raises(us.DataError, match="too few for target sets"):
        measurements_designs.sizes(split)


def filled(name, frame):
    """Open a lab that has measured one thing already."""
    lab, on = a_lab()
    lab.tables[name, on] = frame
    return lab, on


def test_from_end_to_end_in_standard_errors():
    rows = {"kept": [0.1, 0.5, 1.0], "lists": [4500, 22_500, 45_000]}
    flat = pl.DataFrame({**rows, "value": [0.06, 0.02, 0.06]})
    steep = pl.DataFrame({**rows, "value": [0.05, 0.06, 0.06]})
    assert checks_designs._end_to_end(flat) == pytest.approx(0, abs=1e-9)
    # A rate of 0.6 has the standard error sqrt(.24 (1/4,500 - 1/45,000)), and a hit counts 1/10.
    error = math.sqrt(0.24 * (1 / 4500 - 1 / 45_000)) / 10
    assert checks_designs._end_to_end(steep) == pytest.approx(0.01 / error)


def test_uniform_tests_have_no_room_for_folds():
    facts = [
        ("disjoint test sets", 1.0), ("test ratings per item", 118.0),
        ("test ratings per item, rounded down", 117.0),
        ("ratings of the least rated test item", 147.0),
    ]  # fmt: skip
    lab, on = filled("uniform_facts", measurements_popularity.fact_table(facts))
    with lab:
        assert checks_popularity.disjoint_tests(lab, on).value == 1
        assert "5 x 117 = 585" in checks_popularity.disjoint_tests(lab, on).note
        eta = checks_popularity.test_ratings_per_item(lab, on)
        assert (eta.value, eta.as_defined) == (118, 117)


def test_bpref_without_dislikes_is_coverage(found):
    table = found.tables["one_item", "stand-in"].filter(pl.col("metric") == "bpref")
    assert (table["least"] == 1).all()
    assert (table.filter(pl.col("system") == "popularity")["value"] == 1).all()
    assert table["value"].min() < 1  # not every item can be scored by every system


def test_rows_that_are_not_there_are_missed():
    with pytest.raises(us.DataError, match="do not contain what this check needs"):
        tables.only(pl.DataFrame({"system": ["a"]}), system="b")


# MovieLens 1M


@pytest.mark.real
def test_counts_of_movielens():
    real_data("ml-1m/ratings.parquet")
    keys = ["0-01", "0-02", "0-23", "0-24", "0-26", "0-34", "0-42"]
    result = study(NAME, claims=keys)
    rows = {row["claim"]: row for row in result.ledger.iter_rows(named=True)}
    for key in ("0-01", "0-02", "0-24", "0-26", "0-34"):
        assert rows[key]["verdict"] == HOLDS, key
    assert rows["0-23"]["verdict"] == AMBIGUOUS
    assert rows["0-23"]["value"] == pytest.approx(1.371, abs=5e-4)
    assert rows["0-42"]["verdict"] == CONTRADICTS
    assert (rows["0-01"]["value"], rows["0-02"]["value"]) == (1703, 118)
    assert rows["0-02"]["as_defined"] == 117
    assert rows["0-24"]["measured"] == "32.5 %"


@pytest.mark.real
@pytest.mark.slow
def test_precision_on_movielens():
    """What the paper prints, what it gets wrong, and what depends on settings it does not give.

    Two folds leave 0-09 a wide interval; with five it holds.
    """
    real_data("ml-1m/ratings.parquet")
    wanted = {
        "0-03": HOLDS, "0-04": HOLDS, "0-09": NOT_SETTLED, "0-11": HOLDS, "0-13": HOLDS,
        "0-28": DIFFERS, "0-31": HOLDS, "0-32": HOLDS, "0-20": CONTRADICTS, "0-27": CONTRADICTS,
        "0-41": CONTRADICTS, "0-50": DIFFERS, "0-54": DIFFERS,
    }  # fmt: skip
    result = study(NAME, claims=list(wanted), amounts={"folds": 2})
    found = dict(result.ledger.select("claim", "verdict").iter_rows())
    assert found == wanted
