"""The study of valcarce2018: on the built-in world, on made-up files, on the released tables."""

import math
import random
from inspect import unwrap
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import unskew as us
import unskew_studies
from shared.real_data import real_data
from shared.studies import verdicts
from unskew.report.page import save_report
from unskew_studies.lab import choose_amounts, open_lab
from unskew_studies.paper import AMBIGUOUS, MEASURED, NOTE, PRINTED, RELEASED
from unskew_studies.result import (
    CONTRADICTS,
    DIFFERS,
    FAILED,
    HOLDS,
    NO_DATA,
    NOT_CHECKABLE,
    VERDICTS,
)
from unskew_studies.run import find_study, study
from unskew_studies.valcarce2018.checks_methods import floor_rule, permutations_used, table_2
from unskew_studies.valcarce2018.checks_metrics import (
    _deeper,
    deeper_power,
    mrr_is_the_outlier,
    p_best_mrr_worst,
)
from unskew_studies.valcarce2018.measurements import (
    DESIGNS,
    GAINS,
    OurResults,
    ReleasedResults,
    pvalues_file,
    results_file,
    unordered_pairs,
)
from unskew_studies.valcarce2018.printed import (
    COLUMNS,
    CUTOFFS,
    FIGURE_1,
    FIGURE_5,
    SETS,
    SEVEN,
    TABLE_2,
    TABLE_3,
    as_pairs,
    cutoffs,
)

NAME = "valcarce2018"
PAPER = find_study(NAME)


@pytest.fixture(scope="module")
def found(nowhere, store):
    return study(NAME, stand_in=True, data_dir=nowhere, store=store)


# The study as a whole


def test_every_claim_has_a_verdict(found):
    got = verdicts(found)
    assert list(got) == [claim.key for claim in PAPER.claims]
    assert len(found.verdicts) == 59
    assert {one.verdict for one in found.verdicts} <= set(VERDICTS)
    numbers = [*range(1, 36), 37, *range(47, 60)]  # what was measured on our systems is evidence
    assert [f"1-{number:02d}" for number in numbers] == list(got)
    asked = [claim.key for claim in PAPER.claims if claim.question]
    assert len(asked) > 15
    for key in asked:
        assert got[key].data == "stand-in"
        assert got[key].verdict not in (NOT_CHECKABLE, FAILED), (key, got[key].why)
    for key in ("1-26", "1-28"):
        assert got[key].verdict == HOLDS
    # Without released tables what is left is how the printed values fit the text.
    released = verdicts(found, RELEASED)
    for key in ("1-14", "1-15", "1-16", "1-17", "1-18", "1-24", "1-25"):
        assert released[key].evidence_kind == PRINTED, key


def test_a_claim_about_released_and_our_results_stands_once(found):
    rows = found.ledger.filter(pl.col("claim") == "1-25")
    assert rows["data"].to_list() == ["released results", "stand-in"]
    assert rows["evidence"].to_list() == [PRINTED, MEASURED]


def test_tables_and_page(found, tmp_path):
    tables = {what for what, _ in found.tables}
    assert tables == {
        "sizes", "scores", "correlations", "sparsity", "popularity", "pvalues", "designs", "gains",
        "ideal",
    }  # fmt: skip
    scores = found.tables["scores", "stand-in"]
    assert scores.height == 21 * len(COLUMNS)
    assert len(COLUMNS) == 7 * 11 + 7
    pvalues = found.tables["pvalues", "stand-in"]
    assert pvalues.height == 210 * len(COLUMNS)
    sparsity = found.tables["sparsity", "stand-in"]
    assert sparsity["share"].n_unique() == 20
    assert sparsity.filter(pl.col("share") == 1.0)["tau"].unique().to_list() == [1.0]
    designs = found.tables["designs", "stand-in"]
    assert designs["design"].unique(maintain_order=True).to_list() == list(DESIGNS)
    gains = found.tables["gains", "stand-in"]["gain"].unique(maintain_order=True).to_list()
    assert gains == ["integer", *GAINS]
    drawn = {(exhibit.place, data) for exhibit, data, _ in found.exhibits}
    for place in ("Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6", "Fig. 7", "Fig. 8"):
        assert (place, "stand-in") in drawn
    assert {("Table 2", "stand-in"), ("Table 3", "stand-in")} <= drawn
    released = {f"Fig. {number}{letter}" for number in (5, 7, 8) for letter in "abc"}
    left = {place.split(":")[0] for place in found.left_out}
    assert left == {"Fig. 1", "Fig. 3", "Fig. 4", "Table 3", *released}
    page = tmp_path / "page.html"
    save_report(found, page)
    assert 100_000 < page.stat().st_size < 5_000_000
    text = tmp_path / "page.md"
    save_report(found, text, format="markdown")
    assert "Fig. 6" in text.read_text()
    files = {path.name for path in found.to_csv(tmp_path / "csv")}
    assert {"ledger.csv", "pvalues-stand-in.csv", "correlations-stand-in.csv"} <= files


def test_a_store_keeps_lists_and_tables(found, store, nowhere):
    told = []
    again = study(
        NAME, stand_in=True, data_dir=nowhere, store=store, exhibits=False,
        progress=lambda what, _done, _total: told.append(what),
    )  # fmt: skip
    assert not any(told)
    assert again.ledger.equals(found.ledger)


def test_means_are_those_of_evaluate(found, nowhere, store):
    """The stored lists give the same means as ranking anew."""
    data = PAPER.stand_in(0)
    split = us.splits.PerUser().split(data.ratings, 0)[0]
    lists = us.targets.TestItems().lists(split, liked=data.liked)
    run = us.rank(unskew_studies.preset("valcarce2018")["Pop"].fit(split.train, 0), lists, 100)
    rule = us.Relevance(liked=data.liked, gain="integer")
    want = us.evaluate(split.test, {"Pop": run}, ["ndcg", "P_10"], relevance=rule).means()["Pop"]
    with lab_of({"stand-in": data}, nowhere, store) as lab:
        means = OurResults(lab, "stand-in").means.filter(pl.col("system") == "Pop")
    assert means["ndcg"][0] == pytest.approx(want["ndcg"])
    assert means["P_10"][0] == pytest.approx(want["P_10"])


def lab_of(sets, folder, store=None, is_other_data=True):
    amounts = choose_amounts(PAPER.amounts, True, None)
    return open_lab(
        sets, is_other_data=is_other_data, amounts=amounts, quick=True, store=store, data_dir=folder
    )


# Other data


def test_own_data(tmp_path, nowhere):
    made = us.world("shop", users=60, items=200, density=0.15, seed=3).ratings.to_polars()
    path = tmp_path / "mine.csv"
    made.with_columns(rating=2 * pl.col("rating")).write_csv(path)
    wanted = ["1-19", "1-27", "1-37", "1-24", "1-01"]
    with pytest.raises(us.SettingError, match="--liked"):
        study(NAME, path, data_dir=nowhere, claims=wanted, quick=True)
    got = verdicts(study(NAME, path, data_dir=nowhere, claims=wanted, quick=True, liked=8))
    assert got["1-01"].verdict == NOT_CHECKABLE
    for key in wanted[:4]:
        assert got[key].verdict not in (NOT_CHECKABLE, FAILED), (key, got[key].why)


def test_tiny_and_implicit_data(nowhere):
    rows = {"user": [0, 0, 0, 0, 0, 1, 1, 1, 1, 1], "item": [*range(5), *range(5)]}
    tiny = us.read_ratings({**rows, "rating": [5, 4, 3, 2, 1, 1, 2, 3, 4, 5]})
    got = verdicts(study(NAME, tiny, data_dir=nowhere, quick=True))
    assert got["1-37"].verdict == NOT_CHECKABLE
    assert "too few ratings" in got["1-37"].why
    rng = np.random.default_rng(0)
    pairs = [(u, i, int(rng.integers(1, 6))) for u in range(20) for i in range(30) if (u + i) % 3]
    small = pl.DataFrame(pairs, ["user", "item", "rating"], orient="row")
    got = verdicts(study(NAME, small, data_dir=nowhere, claims=["1-37", "1-24"], quick=True))
    assert "cutoffs go up to 100" in got["1-37"].why
    assert got["1-24"].verdict != NOT_CHECKABLE
    implicit = us.read_ratings(rows)
    got = verdicts(study(NAME, implicit, data_dir=nowhere, quick=True))
    assert {one.verdict for key, one in got.items() if one.data == "ratings"} == {NOT_CHECKABLE}


def test_a_system_that_diverges_is_left_out_and_the_others_are_compared(nowhere, tmp_path):
    shop = us.world("shop", users=60, items=60, density=0.3, seed=3).ratings.to_polars()
    rng = np.random.default_rng(3)
    plays = shop.with_columns(rating=pl.Series((10 ** rng.uniform(0, 4, shop.height)).round()))
    for _ in range(2):  # the second time from the store
        result = study(
            NAME, plays, data_dir=nowhere, claims=["1-24"], quick=True, liked=100, store=tmp_path
        )
        assert verdicts(result)["1-24"].verdict not in (FAILED, NOT_CHECKABLE)
        (remark,) = result.remarks()
        assert remark.startswith("left out: SVD (ratings): the factors overflowed")
        assert remark in str(result)


# What is printed


def test_printed_matrices_are_matrices():
    for matrix in (FIGURE_1, *FIGURE_5.values()):
        values = np.array(matrix)
        assert np.array_equal(values, values.T)
        assert (np.diag(values) == 1).all()
    assert np.array(FIGURE_1).shape == (len(CUTOFFS),) * 2
    assert list(TABLE_2) == list(TABLE_3) == list(FIGURE_5) == list(SETS)
    for users, items, ratings, density, _ in TABLE_2.values():
        assert 100 * ratings / users / items == pytest.approx(density, abs=0.0006)
    pairs = unordered_pairs(as_pairs(FIGURE_5["ml-1m"], list(SEVEN)))
    assert pairs.height == 21
    assert pairs.row(0) == ("P", "Recall", 0.89)


# Made-up released results: what the measures do with files of their shape


SYSTEMS = ("A", "B-UB", "C", "D")


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """Four systems whose order every metric keeps, but MRR on less popular items."""
    home = tmp_path_factory.mktemp("data")
    (home / "published").mkdir()
    shares = [1.0, *(round(1 - step / 100, 2) for step in range(1, 21))]
    columns = list(dict.fromkeys([*SEVEN.values(), *(
        column for family in ("P", "Recall", "MAP", "nDCG") for column in cutoffs(family).values()
    )]))  # fmt: skip
    rows = []
    for share in shares:
        for at, system in enumerate(SYSTEMS):
            values = dict.fromkeys(columns, 0.4 - 0.1 * at)
            if share < 1:
                values["recip_rank"] = 0.1 + 0.1 * at
                values["map"] = values["ndcg"] = [0.4, 0.3, 0.1, 0.2][at]
                values |= dict.fromkeys(("set_recall", "bpref", "infAP2"), [0.4, 0.3, 0.2, 0.2][at])
            rows.append(
                {"Recommender": f"run-{system}-LibraryThing", "Percentage": share, **values}
            )
    pl.DataFrame(rows).write_csv(home / "published" / results_file("librarything"))
    # nDCG gets better with depth, Recall worse.
    pairs = []
    for a in SYSTEMS:
        for b in SYSTEMS:
            if a != b:
                p = dict.fromkeys(columns, 0.01)
                p |= {f"ndcg_cut_{k}": 1 / k for k in CUTOFFS}
                p |= {f"recall_{k}": k / 1000 for k in CUTOFFS}
                pairs.append({"RunA": f"{a}-LibraryThing", "RunB": f"{b}-LibraryThing", **p})
    pl.DataFrame(pairs).write_csv(home / "published" / pvalues_file("librarything"))
    return home


def test_measures_of_released_files(made_up, any_size):
    with lab_of({}, made_up) as lab:
        results = ReleasedResults(lab, "librarything")
        assert results.means["system"].to_list() == list(SYSTEMS)
        assert set(results.pvalues["b"]) == set(SYSTEMS)
        popular = p_best_mrr_worst(lab, "", released="librarything")
        assert popular.value == 1
        assert popular.text.startswith("P 1.000")
        assert popular.text.endswith("MRR -1.000")
        assert deeper_power(lab, "", released="librarything").value < 0.3
        outlier = mrr_is_the_outlier(lab, "", released="librarything")
        assert outlier.text.startswith("P 1.000")


def test_claims_of_other_sets_work_once_files_are_there(made_up, any_size):
    wanted = ["1-07", "1-12", "1-14", "1-50", "1-54", "1-56"]
    got = verdicts(study(NAME, stand_in=True, data_dir=made_up, claims=wanted), RELEASED)
    assert got["1-12"].verdict == CONTRADICTS  # all made-up τ are 1
    assert got["1-14"].verdict == HOLDS
    assert got["1-14"].measured.note == ""
    assert got["1-14"].evidence_kind == RELEASED
    assert got["1-50"].verdict == CONTRADICTS
    assert got["1-56"].measured.text == "A 0.4000"
    for key in ("1-07", "1-54"):  # BeerAdvocate is missing
        assert got[key].verdict == NO_DATA
        assert "published/valcarce2018_" in got[key].why


def test_two_p_values_of_a_pair_tell_the_number_of_permutations(made_up, any_size):
    """Shares of B coin flips, drawn with another generator than any of ours."""
    rng = random.Random(5)
    names = [f"s{number:02}" for number in range(12)]
    truth = {pair: rng.random() for pair in combinations(names, 2)}

    def share(p, flips):
        return sum(rng.random() < p for _ in range(flips)) / flips

    for flips in (200, 2_000):
        rows = [
            {"a": a, "b": b, "m": share(truth[min(a, b), max(a, b)], flips)}
            for a, b in permutations(names, 2)
        ]
        rows.sort(key=lambda row: (row["a"], row["b"]))
        found = unwrap(permutations_used)(SimpleNamespace(pvalues=pl.DataFrame(rows)))
        assert found.low < flips < found.high


def test_deeper_is_a_rank_correlation():
    rising = {f"@{k}": k / 100 for k in CUTOFFS}
    assert _deeper(rising).value == pytest.approx(1)
    assert _deeper({name: -tau for name, tau in rising.items()}).value == pytest.approx(-1)
    assert math.isnan(_deeper(dict.fromkeys(rising, 0.5)).value)


def test_counts_of_a_named_set(nowhere):
    """Table 2 and the rule of the split, on a small set that goes by a name of the paper."""
    rows = [(u, i, 5) for u in range(4) for i in range(6 + u)]
    frame = pl.DataFrame(rows, ["user", "item", "rating"], orient="row")
    right = frame.with_columns(valcarce_test=pl.col("item") == 0)
    data = us.Dataset("ml-1m", us.read_ratings(right, tags=["valcarce_test"]))
    with lab_of({"ml-1m": data}, nowhere, is_other_data=False) as lab:
        assert floor_rule(lab, "ml-1m").value == 1
        assert table_2(lab, "ml-1m").value == 0
        assert table_2(lab, "ml-1m").text == "4 x 9, 30 ratings, 83.333 %"
    got = verdicts(study(NAME, frame, data_dir=nowhere, claims=["1-03"], quick=True))
    assert got["1-03"].verdict == NOT_CHECKABLE


def test_library_thing_once_it_is_there(tmp_path, any_size):
    """Half stars, no split of the authors': ours is of the same kind."""
    made = us.world("shop", users=80, items=150, density=0.15, seed=4).ratings.to_polars()
    (tmp_path / "librarything").mkdir()
    halves = made.with_columns(rating=pl.col("rating") - 0.5 * (pl.col("item") % 2))
    halves.write_parquet(tmp_path / "librarything" / "ratings.parquet")
    wanted = ["1-01", "1-02", "1-03", "1-19", "1-21"]
    got = verdicts(study(NAME, data_dir=tmp_path, claims=wanted, quick=True))
    assert got["1-01"].data == got["1-19"].data == got["1-21"].data == "librarything"
    assert got["1-01"].verdict == got["1-02"].verdict == CONTRADICTS
    assert got["1-03"].verdict == NO_DATA
    assert got["1-19"].verdict not in (NOT_CHECKABLE, FAILED)
    assert got["1-21"].verdict not in (NOT_CHECKABLE, FAILED)


# The authors' own numbers


OF_RELEASED = {
    **dict.fromkeys(
        ["1-04", "1-05", "1-06", "1-07", "1-09", "1-10", "1-11", "1-12", "1-13", "1-15", "1-16",
         "1-17", "1-18", "1-21", "1-22", "1-23", "1-24", "1-25", "1-30", "1-32", "1-33", "1-34",
         "1-50", "1-51", "1-52", "1-56", "1-57"], HOLDS
    ),
    "1-14": DIFFERS, "1-55": DIFFERS, "1-48": CONTRADICTS, "1-54": CONTRADICTS, "1-53": NOTE,
}  # fmt: skip
DP = {
    "1-23": "P 2.56, Recall 7.04, MAP 2.84, nDCG 1.37, MRR 15.49, bpref 9.88, infAP 8.44",
    "1-50": "P 1.46, Recall 5.92, MAP 3.56, nDCG 0.20, MRR 2.91, bpref 5.36, infAP 3.85",
    "1-51": "P 1.85, Recall 8.31, MAP 10.74, nDCG 4.40, MRR 5.80, bpref 12.66, infAP 4.83",
}
"""Checked with code that is not ours."""


@pytest.mark.real
def test_released_results():
    home = real_data(f"published/{results_file('ml-1m')}").parent.parent
    for name in SETS:
        real_data(f"published/{results_file(name)}")
        real_data(f"published/{pvalues_file(name)}")
    result = study(
        NAME, stand_in=True, data_dir=home, claims=list(OF_RELEASED), evidence=[RELEASED]
    )
    got = verdicts(result, RELEASED)
    assert {key: one.verdict for key, one in got.items()} == OF_RELEASED
    value = {key: one.measured.value for key, one in got.items() if one.measured is not None}
    assert {one.evidence_kind for one in got.values()} == {RELEASED}
    # Figs. 1 and 5 to two decimals.
    assert max(value["1-04"], value["1-11"], value["1-12"], value["1-13"]) <= 0.005
    assert {key: got[key].measured.text for key in DP} == DP
    assert value["1-05"] == pytest.approx(0.7619, abs=5e-5)
    assert value["1-34"] == pytest.approx(0.971, abs=5e-4)
    assert value["1-48"] == pytest.approx(10_376, abs=1)
    assert got["1-48"].measured.low < 10_000 < got["1-48"].measured.high < 12_000
    assert "P 0.650" in got["1-21"].measured.text
    assert "MRR 0.306" in got["1-21"].measured.text


@pytest.mark.real
def test_movielens_without_training_much():
    home = real_data("ml-1m/ratings.parquet").parent.parent
    real_data(f"published/{results_file('ml-1m')}")
    wanted = ["1-01", "1-02", "1-03", "1-29", "1-47", "1-49"]
    got = verdicts(study(NAME, data_dir=home, claims=wanted, quick=True))
    expected = dict.fromkeys(wanted[:4], HOLDS) | {"1-47": CONTRADICTS, "1-49": AMBIGUOUS}
    assert {key: one.verdict for key, one in got.items()} == expected
    assert "candidates were the items of the test set" in got["1-49"].measured.note
