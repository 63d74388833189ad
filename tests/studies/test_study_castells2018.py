"""The study of castells2018: on the stand-in, by hand, on files made up, on MovieLens 1M."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import unskew as us
import unskew_studies
from shared.real_data import only
from shared.studies import verdicts
from unskew.report.page import save_report
from unskew_studies.castells2018 import checks_formulas as formulas
from unskew_studies.castells2018.measurements import (
    cell,
    largest_z,
    sigma,
    systems,
    thin_judgments,
    times_chance,
)
from unskew_studies.castells2018.study import STUDY
from unskew_studies.paper import ALGEBRA, NOTE
from unskew_studies.result import (
    CONTRADICTS,
    DIFFERS,
    FAILED,
    HOLDS,
    NO_DATA,
    NOT_CHECKABLE,
    NOT_SETTLED,
)
from unskew_studies.run import study


@pytest.fixture(scope="module")
def found():
    return study("castells2018", stand_in=True)


# The whole study


def test_every_claim_is_there():
    keys = [f"4-{number:02}" for number in range(1, 34) if number != 29]
    assert [claim.key for claim in STUDY.claims] == keys
    assert all(piece.check is not None for claim in STUDY.claims for piece in claim.evidence)


def test_what_cannot_fail_is_algebra():
    """Formulas, and what follows from drawing at random whatever the systems do."""
    assert {one.key for one in STUDY.claims if one.evidence[0].kind == ALGEBRA} == {
        "4-08", "4-11", "4-15", "4-16", "4-17", "4-19", "4-20", "4-27", "4-33",
    }  # fmt: skip


def test_what_the_paper_does_not_say_is_a_note():
    notes = {one.key for one in STUDY.claims if one.kind == NOTE}
    assert notes == {"4-27", "4-28"}  # which truth; how much the sampling leaves


def test_every_claim_has_a_verdict_on_the_stand_in(found):
    assert len(found.verdicts) == len(STUDY.claims) + 1  # 4-28 has two pieces of evidence
    told = {one.claim.key: one.verdict for one in found.verdicts}
    assert told["4-01"] == NOT_CHECKABLE  # MovieLens itself
    assert told["4-28"] == told["4-31"] == NO_DATA  # a familiar tag, time stamps
    assert FAILED not in told.values()
    assert found.left_out == {}
    assert [exhibit.place for exhibit, _, _ in found.exhibits] == [
        "Fig. 2", "§7.2", "Eqs. 3, 4", "§5.2.1", "§5.3",
    ]  # fmt: skip


def test_what_needs_no_data_comes_out_as_it_should(found):
    told = {key: one.verdict for key, one in verdicts(found).items()}
    for key in ("4-11", "4-12", "4-13", "4-15", "4-17", "4-19", "4-20", "4-24", "4-25"):
        assert told[key] == "holds", key
    assert told["4-23"] in (HOLDS, NOT_SETTLED)  # two worlds are few
    for key in ("4-14", "4-26", "4-33"):
        assert told[key] == "contradicts", key
        assert verdicts(found)[key].measured.note
    notes = [one for one in found.verdicts if one.verdict == NOTE]
    assert [one.claim.key for one in notes] == ["4-27", "4-28"]
    assert all("The paper" in one.measured.note for one in notes)


def test_free_judgments_are_unfair_and_two_designs_are_not_on_the_stand_in(found):
    told = {key: one.verdict for key, one in verdicts(found).items()}
    for key in ("4-02", "4-05", "4-07", "4-08", "4-16", "4-22"):
        assert told[key] == "holds", key
    forced = verdicts(found)["4-07"].measured
    assert forced.as_defined > 3 > forced.value


def test_the_page_and_the_numbers(found, tmp_path):
    page = save_report(found, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 5_000_000, page
    text = found.document().to_markdown()
    assert "Fig. 2" in text
    assert "Characterization of Fair Experiments" in text
    names = {path.name for path in found.to_csv(tmp_path)}
    assert {"ledger.csv", "null_random-stand-in.csv", "overlap.csv", "online.csv"} <= names


def test_figure_2_has_real_and_null_bars(found):
    (_, _, blocks) = found.exhibits[0]
    rows = blocks[0].figure.to_dict()["datasets"]["rows"]
    assert {row["data"] for row in rows} == {"null", "as they are"}
    assert {row["system"] for row in rows} == set(unskew_studies.preset("castells2018"))
    assert {row["data"] for row in rows if row["design"] == "forced judgments"} == {"null"}


# Formulas, by hand


def test_equation_2_is_what_counting_gives():
    """Of 12 users who like an item 6 judge it, 2 of them in the test part."""
    assert formulas.chance_of_test(Fraction(2, 12), Fraction(4, 12)) == Fraction(2, 8)
    assert formulas.random_split_rises()


def test_a_flat_test_by_hand():
    """20 users, 10 like the item; 8 judge it, 5 of those who like it do; 2 of the 8 test."""
    found = formulas.flat_test(Fraction(8, 20), Fraction(5, 10), Fraction(2, 20))
    liked_in_test, liked_in_training = Fraction(5, 4), Fraction(15, 4)  # a quarter of 5, the rest
    assert found == liked_in_test / (10 - liked_in_training)
    assert formulas.flat_test_both_ways()
    assert not formulas.rises_alike([Fraction(1), Fraction(2)], [Fraction(2), Fraction(1)])


def test_the_sampling_formula_and_the_package_agree():
    assert formulas.thinning_is_even()
    rows = [(u, i, 5, u < (3, 5)[i]) for u in range(10) for i in range(2)]
    user, item, rating, familiar = zip(*rows, strict=True)
    columns = {"user": user, "item": item, "rating": rating, "familiar": familiar}
    judged = us.read_ratings(columns, tags=["familiar"])
    found = thin_judgments(judged, 4.0, 0)
    assert found["T"][0] == pytest.approx(0.5)
    # All pairs are judged, so p(J) = 1 and the formula keeps everything outside training.
    assert found["kept"][0] == 1.0


def test_sampling_that_leaves_nothing():
    rows = [(u, i, 5, i == 0) for u in range(6) for i in range(2) if (u + i) % 3]
    user, item, rating, familiar = zip(*rows, strict=True)
    columns = {"user": user, "item": item, "rating": rating, "familiar": familiar}
    found = thin_judgments(us.read_ratings(columns, tags=["familiar"]), 4.0, 0)
    assert found.rows()[0] == ("as counted", 1.0, 0.0)


def test_precision_as_printed():
    assert formulas.printed_precision() == (Fraction(1, 2), Fraction(1, 3))


def test_test_targets_turn_two_systems_round():
    assert formulas.order_of_test_targets() == {"a": (4 / 6, 4 / 6), "b": (1.0, 2 / 6)}


# What tables say


def some_table(ratio=1.1, chance=0.25, lists=300):
    row = {
        "design": "d", "system": "s", "metric": "P@10", "null_value": ratio * chance,
        "null_random": chance, "ratio": ratio, "lists": lists,
    }  # fmt: skip
    return pl.DataFrame([row, row | {"system": "average rating, μ = 1", "ratio": 9.0}])


def test_distances_from_chance():
    table = some_table()
    assert cell(table, "d", "s")["ratio"] == times_chance(table, "d", "s") == 1.1
    assert sigma(table, "d", "s") == pytest.approx(math.sqrt(0.25 * 0.75 / 3_000) / 0.25)
    z, name = largest_z(table, "d")
    assert (round(z, 2), name) == (3.16, "s")
    assert math.isnan(largest_z(some_table(chance=0.0), "d")[0])


def test_systems_follow_the_threshold():
    made = systems(7.0, factors=5)
    assert list(made) == list(unskew_studies.preset("castells2018"))
    assert made["positive popularity"].liked == made["average rating"].liked == 7.0
    assert made["iMF"].factors == 5


# Own data


def own(users=120, items=60, low=1, high=5, seed=0, **more):
    rng = np.random.default_rng(seed)
    chance = 0.9 * (1 + np.arange(items)) ** -0.4
    user, item = np.nonzero(rng.random((users, items)) < chance)
    rating = rng.integers(low, high + 1, user.size)
    return pl.DataFrame({"user": user, "item": item, "rating": rating, **more})


def test_claims_are_questions_about_own_data():
    data = us.Dataset("mine", us.read_ratings(own()), us.read_ratings(own(seed=1)))
    found = study("castells2018", data, quick=True, claims=["4-02", "4-05", "4-18", "4-30"])
    assert {one.verdict for one in found.verdicts} <= {HOLDS, DIFFERS, CONTRADICTS, NOT_SETTLED}
    assert found.ledger["statement"].str.ends_with("?").all()
    assert set(found.ledger["data"]) == {"mine"}


def test_ratings_below_zero_are_lifted():
    data = own(low=-10, high=10)
    found = study("castells2018", data, quick=True, liked=3, claims=["4-02"])
    assert found.verdicts[0].measured.value > 0


def test_what_own_data_cannot_tell():
    one = pl.DataFrame({"user": [1], "item": [1], "rating": [5]})
    keys = ["4-02", "4-05", "4-06", "4-07", "4-18", "4-22", "4-28", "4-30", "4-31", "4-33"]
    found = study("castells2018", one, quick=True, claims=keys)
    assert {row.verdict for row in found.verdicts} <= {NOT_CHECKABLE, NO_DATA, FAILED}
    assert all(row.why for row in found.verdicts)
    implicit = study("castells2018", own(high=1), quick=True, claims=["4-02", "4-16"])
    assert all("--liked" in row.why for row in implicit.verdicts)


def test_time_tells_about_a_temporal_split():
    made = us.world("ageing", users=150, items=80, seed=1, density=0.2)
    data = us.Dataset("aged", made.ratings, liked=made.liked)
    found = study("castells2018", data, quick=True, claims=["4-31"])
    assert found.verdicts[0].verdict in (HOLDS, CONTRADICTS, NOT_SETTLED)


# Data that users can have


def test_a_file_like_cm100k(tmp_path, any_size):
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((60, 40)) < 0.4)
    known = rng.random(user.size) < 0.2 + 0.5 * (item < 5)
    table = pl.DataFrame(
        {"u": user, "i": item, "r": rng.integers(1, 5, user.size), "k": known.astype(int)}
    )
    (tmp_path / "cm100k").mkdir()
    table.write_csv(tmp_path / "cm100k" / "ratings.txt", separator="\t", include_header=False)
    found = study("castells2018", data_dir=tmp_path, claims=["4-01", "4-28"])
    assert verdicts(found)["4-01"].verdict == NO_DATA
    assert verdicts(found)["4-28"].verdict == NOTE
    measured = verdicts(found)["4-28"].measured
    assert 0 <= measured.value <= 1
    assert "smoothed" in measured.note


def test_files_like_yahoo_r3(tmp_path, any_size):
    """Four users, ten items, of which three were chosen: an item by two users, two by one each."""
    home = tmp_path / "yahoo-r3"
    home.mkdir()
    name = "ydata-ymusic-rating-study-v1_0-{}.txt"
    chosen = [(1, 1, 5), (2, 1, 4), (3, 2, 3), (4, 3, 3)]
    asked = [(1, 10, 1), (2, 9, 1), (3, 8, 2), (4, 7, 5), (4, 6, 1), (3, 5, 1), (2, 4, 1)]
    for part, rows in (("train", chosen), ("test", asked)):
        text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
        (home / name.format(part)).write_text(text)
    found = study("castells2018", data_dir=tmp_path, claims=["4-30"])
    q = 7 / 40
    factor = [q / (1 - share * (1 - q)) for share in (0.5, 0.25, 0.25, *[0] * 7)]
    table = found.tables["overlap_factor", "yahoo-r3"]
    assert table["factor"].to_list() == pytest.approx(factor)
    assert verdicts(found)["4-30"].verdict == "holds"  # ten items: the top ten are all


# Real data


def test_movielens_1m(tmp_path):
    home = only(tmp_path, "ml-1m", "ml-100k")
    found = study("castells2018", data_dir=home, claims=["4-01", "4-22", "4-31"])
    told = verdicts(found)
    assert told["4-01"].verdict == "holds"
    assert told["4-01"].measured.value == pytest.approx(0.5752, abs=5e-5)
    assert told["4-22"].verdict == "holds"
    rows = {one.data: one for one in found.verdicts if one.claim.key == "4-31"}
    assert rows["ml-1m"].verdict == NO_DATA  # no time stamps here
    assert rows["ml-100k"].verdict == HOLDS
    assert 0 < rows["ml-100k"].measured.low < rows["ml-100k"].measured.high < 1


def test_cm100k(tmp_path):
    """All 46 users who like one of the items know it: T = 1, and nothing is left."""
    home = only(tmp_path, "cm100k")
    found = study("castells2018", data_dir=home, claims=["4-28"])
    assert verdicts(found)["4-28"].verdict == NOTE
    assert verdicts(found)["4-28"].measured.value == 0.0
    rows = found.tables["thinning", "cm100k"]
    assert rows["T"].to_list() == pytest.approx([1.0, 0.8026], abs=1e-4)
    assert rows["kept"].to_list() == pytest.approx([0.0, 0.27], abs=0.01)


@pytest.mark.slow
def test_designs_beside_figure_2_on_movielens_1m(tmp_path):
    home = only(tmp_path, "ml-1m")
    found = study(
        "castells2018", data_dir=home, quick=True, claims=["4-16", "4-18"], amounts={"repeats": 1}
    )
    assert {one.verdict for one in found.verdicts} == {"holds"}
