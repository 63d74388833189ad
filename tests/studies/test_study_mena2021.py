"""The study of mena2021: toys and truth tables exactly, every path on small data, real data."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import unskew as us
import unskew_studies
from shared.pairs_of_items import observed, true
from shared.real_data import only, real_data
from unskew.report.page import save_report
from unskew_studies.lab import UndefinedError, open_lab
from unskew_studies.mena2021 import checks_systems as checks
from unskew_studies.mena2021 import printed
from unskew_studies.mena2021.checks import Tau, half_width, means, place, tau
from unskew_studies.mena2021.measurements import (
    BEST_P,
    LEARNED,
    SIXTEEN,
    UNPOPULAR,
    scores,
    systems,
)
from unskew_studies.mena2021.measurements_lemmas import (
    FIG_4,
    every_count,
    lemma_3,
    p_of_tau,
    rates_order_alike,
    steeper_in_floats,
    steeper_than_both,
)
from unskew_studies.mena2021.study import STUDY
from unskew_studies.paper import ALGEBRA, AMBIGUOUS, NOTE, MeasuredValue
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

SYNTHETIC = ["3-39", "3-40", "3-43", "3-56", "3-57", "3-58"]
WRONG = ["3-34", "3-50"]
"""Claims without data that are contradicted."""
IDENTITIES = {"3-02", "3-05", "3-09", "3-37", "3-39", "3-40", "3-43", "3-45", "3-47", "3-49",
              "3-50", "3-56", "3-57"}  # fmt: skip
"""Claims that follow from definitions: no run could have told otherwise."""


def verdicts(found):
    return dict(found.ledger.select("claim", "verdict").rows())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the whole study on the stand-in; released tables are not at hand."""
    home = tmp_path_factory.mktemp("nothing")
    return study("mena2021", stand_in=True, data_dir=home)


def test_every_claim_of_the_stand_in_has_a_verdict(whole):
    assert (len(STUDY.claims), len(whole.verdicts)) == (60, 62)
    told = verdicts(whole)
    assert {told[key] for key in SYNTHETIC} == {HOLDS}
    assert {told[key] for key in WRONG} == {CONTRADICTS}
    assert told["3-49"] == AMBIGUOUS
    assert told["3-46"] == NOTE
    asked = [claim.key for claim in STUDY.claims if claim.question]
    timeless = {"3-35", "3-36"}  # the shop has no time stamps
    assert {key for key in asked if told[key] in (NO_DATA, NOT_CHECKABLE)} == timeless
    for key in ("3-02", "3-05", "3-09", "3-37"):
        assert told[key] == HOLDS
    assert not whole.ledger["note"].str.contains("Traceback").any()


def test_the_page_and_the_numbers(whole, tmp_path):
    page = whole.document()
    save_report(page, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 5_000_000
    assert "Fig. 14" in page.to_markdown()
    assert {path.name for path in whole.to_csv(tmp_path / "numbers")} >= {
        "ledger.csv", "scores-stand-in.csv", "pairs-stand-in.csv", "toys.csv", "truth_tables.csv",
        "inverted_popularity.csv",
    }  # fmt: skip
    left = {place.split(":")[0] for place in whole.left_out}
    assert left == {"Fig. 1 and 12", "Fig. 18"}
    drawn = [exhibit.place for exhibit, _, _ in whole.exhibits]
    for number in (1, 3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17):
        assert f"Fig. {number}" in drawn


def test_ledger_is_complete():
    keys = [claim.key for claim in STUDY.claims]
    assert keys == [f"3-{number:02}" for number in range(1, 64) if number not in (44, 48, 61)]
    assert all(claim.published for claim in STUDY.claims)


def test_what_cannot_fail_is_algebra():
    assert {one.key for one in STUDY.claims if one.evidence[0].kind == ALGEBRA} == IDENTITIES
    assert {one.key for one in STUDY.claims if one.kind != "claim"} == {"3-45", "3-46", "3-49"}


# Theory


def test_steepness_pair_by_pair():
    """On all pairs of every count of seven users, by fractions; 0/0 and equal are not steeper."""
    counts = every_count(7)
    rated, liked = counts.rated, counts.liked
    exact = observed(us.bias.item_pairs(counts)).steeper["both"]
    assert steeper_than_both((rated, 7 - rated), rated, liked) == exact

    def rate(values, a, b):
        return Fraction(0) if values[a] == values[b] else 1 - min(values[a], values[b]) / max(
            values[a], values[b]
        )  # fmt: skip

    shares = [Fraction(int(r), int(n)) for r, n in zip(liked, rated, strict=True)]
    others = [1 - one for one in shares]
    plain = [Fraction(int(n)) for n in rated]
    pairs = list(combinations(range(rated.size), 2))
    steeper = [
        rate(plain, *both) > rate(shares, *both)
        and rate(plain, *both) > rate(others, *both)
        and any(shares[at] for at in both)
        and any(others[at] for at in both)
        for both in pairs
    ]
    found = steeper_than_both((rated, np.ones_like(rated)), rated, liked)
    assert found == pytest.approx(sum(steeper) / len(pairs))
    assert abs(steeper_in_floats(rated, liked, 7) - found) < 0.05


def test_toys():
    toy = FIG_4["1"]
    assert toy.counts.rated.tolist() == [5, 2]
    assert toy.scored("P@1") == pytest.approx((0.6, 0.2))
    assert toy.scored("anti-P@1") == pytest.approx((0.4, 0.2))


def test_lemmas_on_tables():
    assert observed(us.bias.item_pairs(every_count(8))).lemma1 == 1
    assert true(us.bias.item_pairs(lemma_3(7))).lemma3 == {"P": 1.0, "anti-P": 1.0}
    assert rates_order_alike(4) == 1


def test_p_of_a_printed_tau():
    assert p_of_tau(-0.35) == pytest.approx(0.064, abs=5e-4)
    assert p_of_tau(0.35) == pytest.approx(p_of_tau(-0.35))
    assert p_of_tau(1.0) < 1e-12
    assert min(map(abs, printed.correlations())) == 0.35
    assert len(printed.correlations()) == 32


# Systems


def test_systems_are_the_sixteen_and_more():
    made = systems(4)
    assert set(SIXTEEN) < set(made)
    assert {LEARNED, UNPOPULAR, BEST_P} < set(made)
    assert made["WRMF"].version != systems(3)["WRMF"].version
    ratings = us.world("shop", users=40, items=30, ratings=400, seed=1).ratings
    ours = made["ItemKNN"].fit(ratings, 5).score(np.arange(40, dtype=np.int32))
    theirs = unskew_studies.LibRecItemKNN().fit(us.data.levels(ratings, liked=4), 5)
    np.testing.assert_array_equal(ours, theirs.score(np.arange(40, dtype=np.int32)))


def test_reading_off_tables():
    rows = [
        ("published", "observed", fold, name, metric, value + fold_shift)
        for fold, fold_shift in (("fold1", 0.0), ("fold2", 0.1))
        for metric, sign in (("P@10", 1), ("anti-P@10", -1))
        for name, value in zip([*SIXTEEN, LEARNED], sign * np.arange(17.0), strict=True)
    ]
    table = pl.DataFrame(
        rows, schema=["rule", "judgments", "fold", "system", "metric", "mean"], orient="row"
    )
    found = tau(table, ("observed", "P@10"), ("observed", "anti-P@10"))
    assert (found.value, found.low, found.high, found.meant) == (-1, -1, -1, -1)
    high = means(table, "observed", "P@10")
    assert high["WRMF"] == pytest.approx(0.05)
    assert place(high, "Rnd", SIXTEEN) == 1
    assert place(high, "Rnd", SIXTEEN, lowest=True) == 16
    assert half_width([0.3]) == 0
    assert half_width([0.1, 0.3]) == pytest.approx(12.706 * 0.1, rel=1e-3)


def folds_of(*values):
    rows = [(f"fold{number}", value) for number, value in enumerate(values, start=1)]
    return pl.DataFrame(rows, schema=["fold", "mean"], orient="row")


def test_an_order_that_hangs_on_a_fold_is_not_settled():
    def tell(part):
        return MeasuredValue(part["mean"].mean() > 0, note="So it is.")

    assert checks.steady(folds_of(1.0, 2.0, 3.0), tell).range == (1, 1)
    assert checks.steady(folds_of(-1.0, -1.0), tell).range == (0, 0)
    shaky = checks.steady(folds_of(1.0, 1.0, -1.9), tell)
    assert shaky.value
    assert shaky.range == (0, 1)
    assert shaky.note == "So it is. Without fold1 or fold2 it is otherwise."


def test_the_least_margin_decides():
    far, near = Tau(-0.9, -0.95, -0.85, -0.9), Tau(0.5, 0.35, 0.65, 0.5)
    found = checks.beyond([(far, -1, 0.4), (near, 1, 0.4)], "two")
    assert found.range == pytest.approx((-0.05, 0.25))
    assert found.value == pytest.approx(0.1)
    one = checks.beyond([(Tau(0.2, None, None, 0.2), 1, 0.0)], "one")
    assert one.range == pytest.approx((0.2, 0.2))
    assert np.isnan(checks.beyond([(far, -1, 0.0), (Tau(np.nan, None, None, 0), 1, 0.0)], "").value)


def test_a_number_of_folds():
    table = folds_of(1.0, 2.0, 3.0)
    value, low, high = checks.by_folds(table, lambda part: part["mean"].mean())
    assert (value, high - low) == pytest.approx((2.0, 2 * 4.3027 / 3**0.5), rel=1e-4)
    assert checks.by_folds(folds_of(1.0), lambda part: part["mean"].mean()) == (1.0, None, None)


def test_a_system_that_cannot_be_trained_takes_only_its_own_claims_along():
    rows = [
        ("published", "observed", "fold1", name, metric, value)
        for metric, sign in (("P@10", 1), ("anti-P@10", -1))
        for name, value in zip([*SIXTEEN, LEARNED], sign * np.arange(17.0), strict=True)
        if name != "SLIM"
    ]
    table = pl.DataFrame(
        rows, schema=["rule", "judgments", "fold", "system", "metric", "mean"], orient="row"
    )
    assert tau(table, ("observed", "P@10"), ("observed", "anti-P@10")).value == -1
    found = means(table, "observed", "P@10")
    assert place(found, "WRMF", SIXTEEN, lowest=True) == 1
    assert place(found, "WRMF", SIXTEEN) == 15
    with pytest.raises(UndefinedError, match="SLIM could not be trained"):
        place(found, "SLIM", SIXTEEN)


# Other data


def test_the_paper_takes_users_of_yahoo_with_random_ratings():
    """5,400 of 15,400 users: sizes as they are after that, or the data would be refused."""
    ratings = printed.SIZES["yahoo-r3"]["ratings"]
    assert STUDY.size("yahoo-r3") == (5400, 1000, ratings)
    assert STUDY.size("cm100k") == (1054, 1084, 103_584)


def test_a_survey_from_its_raw_file(tmp_path, any_size):
    """CM100k's format: Figs. 9 and 10, and observed and true folds with shared training."""
    home = tmp_path / "cm100k"
    home.mkdir()
    rng = np.random.default_rng(1)
    user, item = np.divmod(rng.choice(80 * 40, 2000, replace=False), 40)
    like = rng.random(2000) < rng.beta(2, 3, 40)[item]
    known = rng.random(2000) < rng.random(40)[item] * np.where(like, 0.6, 0.4)
    rating = np.where(like, rng.integers(3, 5, 2000), rng.integers(1, 3, 2000))
    lines = zip(user, item, rating, known.astype(int), strict=True)
    (home / "ratings.txt").write_text("".join("\t".join(map(str, row)) + "\n" for row in lines))
    keys = ["3-01", "3-09", "3-12", "3-13", "3-14", "3-15", "3-16", "3-17", "3-18", "3-25", "3-27",
            "3-28", "3-29", "3-30", "3-31", "3-32", "3-33", "3-37", "3-51"]  # fmt: skip
    found = study("mena2021", data_dir=tmp_path, claims=keys, quick=True, store=tmp_path / "store")
    table = found.ledger.filter(data="cm100k")
    assert table["claim"].to_list() == keys
    told = dict(table.select("claim", "measured").rows())
    parts = f"{known.sum():,} familiar, {2000 - known.sum():,} not familiar"
    assert told["3-01"] == f"80 users, 40 items, {parts}"
    pairs = us.load("cm100k", data_dir=tmp_path, observed="familiar")
    share = true(us.bias.item_pairs(pairs)).consistent["P"]
    value = dict(table.select("claim", "value").rows())
    assert value["3-13"] == pytest.approx(100 * share)
    assert value["3-09"] == value["3-37"] == 1
    sets = {"cm100k": us.load("cm100k", data_dir=tmp_path)}
    with open_lab(
        sets, is_other_data=False, amounts={"folds": 2, "users": 300, "inverted": 120}, quick=True,
        store=tmp_path / "store",
    ) as lab:  # fmt: skip
        assert set(lab.table(scores, "cm100k")["judgments"]) == {"observed", "true"}
        for exhibit in STUDY.exhibits:
            if "cm100k" in exhibit.data:
                assert exhibit.draw(lab, "cm100k")


def test_own_ratings_with_times():
    made = us.world("ageing", users=60, items=40, ratings=900, seed=2)
    frame = made.ratings.to_polars()
    found = study("mena2021", frame, quick=True, claims=["3-06", "3-19", "3-25", "3-35", "3-36"])
    told = verdicts(found)
    assert told["3-25"] == NO_DATA  # no random part
    asked = [told[key] for key in ("3-06", "3-19", "3-35", "3-36")]
    assert set(asked) <= {HOLDS, CONTRADICTS, NOT_SETTLED}
    (row,) = found.ledger.filter(claim="3-35").iter_rows(named=True)
    assert row["low"] <= row["high"]


@pytest.mark.parametrize("rating", [None, [5] * 6, [5, 1, 4, 2, 3, 5], [90, 10, 55, 20, 60, 80]])
def test_what_cannot_be_asked_is_said(rating):
    frame = {"user": [1, 1, 2, 2, 3, 3], "item": [1, 2, 1, 2, 1, 3]}
    if rating is not None:
        frame["rating"] = rating
    asked = {
        "claims": ["3-06", "3-18", "3-35"],
        "liked": 50 if rating and max(rating) > 5 else None,
    }
    found = study("mena2021", frame, quick=True, exhibits=False, **asked)
    for row in found.ledger.iter_rows(named=True):
        assert row["verdict"] != FAILED, row["note"]
        assert row["verdict"] not in (NO_DATA, NOT_CHECKABLE) or row["note"]


def test_two_procedures_on_yahoo():
    """The released numbers take 3 as liked and another scale's gains, the text 4 and its own."""
    made = us.world("shop", users=50, items=40, ratings=700, seed=3).dataset(random=0.2)
    data = replace(made, name="yahoo-r3")
    amounts = {"folds": 2, "users": 300, "inverted": 120}
    with open_lab({"yahoo-r3": data}, is_other_data=False, amounts=amounts, quick=True) as lab:
        table = lab.table(scores, "yahoo-r3")
    assert set(table["rule"]) == {"published", "text"}
    low, high = (means(table, "true", "P@10", rule)["Pop"] for rule in ("published", "text"))
    assert low > high


# Real data


@pytest.mark.real
def test_released_values():
    home = real_data("published/mena2021_ml-1m_at10.csv").parents[1]
    keys = ["3-03", "3-04", "3-20", "3-42"]
    parts = [
        study("mena2021", data_dir=home, claims=keys, evidence=["released", "printed"]),
        study("mena2021", data_dir=home, claims=["3-45"]),
    ]
    table = {row["claim"]: row for part in parts for row in part.ledger.iter_rows(named=True)}
    assert {key: row["verdict"] for key, row in table.items()} == {
        "3-03": HOLDS, "3-04": HOLDS, "3-20": HOLDS, "3-42": HOLDS, "3-45": NOTE,
    }  # fmt: skip
    assert table["3-03"]["measured"] == "−1.00 / −0.90 / 0.62 / 0.73"
    assert table["3-04"]["value"] == pytest.approx(0.832, abs=1e-3)
    assert "τ 0.90 with judged, 0.05 with liked" in table["3-45"]["measured"]


@pytest.mark.real
def test_items_of_movielens(tmp_path):
    home = only(tmp_path, "ml-1m", "published")
    keys = ["3-01", "3-06", "3-07", "3-08", "3-09", "3-10", "3-11", "3-47"]
    found = study("mena2021", data_dir=home, claims=keys)
    table = {row["claim"]: row for row in found.ledger.filter(data="ml-1m").iter_rows(named=True)}
    assert {key for key, row in table.items() if row["verdict"] != HOLDS} == {"3-08"}
    assert table["3-08"]["verdict"] == DIFFERS
    assert table["3-08"]["value"] == pytest.approx(66.0, abs=0.1)
    assert "63.29, 63.32, 62.98, 63.29, 63.02 %" in table["3-08"]["note"]
    assert "63.53, 63.57, 63.23, 63.55, 63.27 %" in table["3-08"]["note"]
    odds = found.tables["steepness", "ml-1m"].filter(popularity="odds")["both"]
    assert 100 * odds[0] == table["3-08"]["value"]
    assert table["3-07"]["measured"] == "52.62 / 8.56 / 29.85 / 8.97 %"


@pytest.mark.real
def test_items_of_cm100k(tmp_path):
    """Each number was also counted by other code."""
    home = only(tmp_path, "cm100k", "published")
    keys = ["3-01", "3-09", "3-12", "3-13", "3-14", "3-15", "3-16", "3-17", "3-18", "3-29", "3-37",
            "3-51"]  # fmt: skip
    found = study("mena2021", data_dir=home, claims=keys)
    table = {row["claim"]: row for row in found.ledger.filter(data="cm100k").iter_rows(named=True)}
    assert list(table) == keys
    assert {key for key, row in table.items() if row["verdict"] == CONTRADICTS} == {
        "3-14", "3-15", "3-51",
    }  # fmt: skip
    assert {row["verdict"] for row in table.values()} == {HOLDS, CONTRADICTS}
    assert table["3-12"]["measured"] == "64.16 / 5.16 / 21.23 / 9.44 %"
    assert table["3-13"]["value"] == pytest.approx(64.13, abs=0.005)
    assert table["3-14"]["value"] == pytest.approx(45.20, abs=0.005)
    assert table["3-15"]["measured"] == "81.20 % (P), 78.38 % (anti-P)"
    assert table["3-16"]["value"] == pytest.approx(18.32, abs=0.005)
    shares = dict(found.tables["pairs", "cm100k"].rows())
    agree, steeper = "truth/popularity_and_relevance_agree", "truth/steeper_non-relevance"
    assert 100 * shares[agree] == pytest.approx(69.33, abs=0.005)
    assert 100 * shares[steeper] == pytest.approx(90.49, abs=0.005)
    assert table["3-29"]["value"] == pytest.approx(0.57, abs=0.005)
    assert table["3-51"]["value"] == pytest.approx(7.49, abs=0.01)
