"""carraro2020 as a study: on the built-in world, by hand, on data of one's own, and on Coat."""

import polars as pl
import pytest

import unskew as us
from shared.real_data import only
from shared.studies import datasets_of, verdicts
from unskew.data.ratings import under_one_numbering
from unskew.report.estimates import Estimates
from unskew.report.page import save_report
from unskew.worlds.worlds import world
from unskew_studies.carraro2020 import checks, measurements
from unskew_studies.carraro2020.printed import (
    SETS,
    SYSTEMS,
    TABLE_1,
    TABLE_2,
    TRUE,
    printed_errors,
    printed_means,
    truncated,
)
from unskew_studies.carraro2020.study import STUDY
from unskew_studies.paper import NOTE
from unskew_studies.result import (
    CONTRADICTS,
    DIFFERS,
    HOLDS,
    NO_DATA,
    NOT_CHECKABLE,
    NOT_SETTLED,
    VERDICTS,
)
from unskew_studies.run import study

LITTLE = {"repetitions": 2, "neighbours": 1, "factors": 1, "penalties": 1}
FROM_PRINT = {
    "2-17": HOLDS, "2-18": HOLDS, "2-19": CONTRADICTS, "2-21": HOLDS, "2-23": HOLDS,
    "2-27": NOTE,
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def found(store):
    return study("carraro2020", stand_in=True, amounts=LITTLE, store=store)


# On the built-in world


def test_every_claim_has_a_verdict(found):
    keys = [f"2-{number:02d}" for number in range(1, 34) if number != 31]
    assert list(verdicts(found)) == keys
    assert {one.verdict for one in found.verdicts} <= set(VERDICTS)
    for one in found.verdicts:
        about_its_data_only = one.evidence.data and not one.claim.question
        assert (one.verdict == NOT_CHECKABLE) == bool(about_its_data_only), one.claim.key
    without_data = {one.claim.key: one.verdict for one in found.verdicts if not one.evidence.data}
    assert without_data == FROM_PRINT


def test_page_and_numbers(found, tmp_path):
    assert not found.left_out
    assert [exhibit.place for exhibit, _, _ in found.exhibits] == [
        "Table 1", "Table 2", "Table 3", "Table 4", "§4",
    ]  # fmt: skip
    save_report(found, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 5e6
    assert "Kendall" in found.document().to_markdown()
    names = {path.name for path in found.to_csv(tmp_path / "numbers")}
    assert names == {
        "ledger.csv",
        "statistics-stand-in.csv",
        "posteriors-stand-in.csv",
        "experiment-stand-in.csv",
        "without_pairs_in_training-stand-in.csv",
        "sampled_sets-stand-in.csv",
    }
    rows = pl.read_csv(tmp_path / "numbers" / "experiment-stand-in.csv")
    assert rows.height == 2 * 6 * 5 * 4  # repetitions, sets and the truth, systems, metrics


def test_a_study_that_was_stopped_goes_on(found, store, monkeypatch):
    def refuse(*_args, **_settings):
        raise AssertionError("it was done already")

    monkeypatch.setattr(measurements, "intervention_study", refuse)
    again = study("carraro2020", stand_in=True, amounts=LITTLE, store=store)
    assert again.ledger.equals(found.ledger)


# By hand


def test_what_is_printed_follows_from_it():
    """What section 6 says about table 2 is what table 2 says."""
    coat, r3 = (printed_means(on) for on in ("coat", "yahoo-r3"))
    assert checks.reg_to_full(coat) == pytest.approx(9)
    assert checks.least_lead(coat, "wtd", SYSTEMS[:2]) == pytest.approx(12)
    assert checks.least_lead(coat, "wtd-h", SYSTEMS[2:]) == pytest.approx(21)
    assert checks.balance(coat) == pytest.approx(43)
    assert checks.ranks_of_mf(coat) == dict(zip((TRUE, *SETS), (5, 3, 3, 1, 1, 1), strict=True))
    assert checks.fall_of_mf(coat) == 2
    assert checks.largest_error(r3, "AvgRating") == pytest.approx(-49)
    assert checks.spread_of_sizes(r3) == pytest.approx(2)
    assert checks.lead_over_baselines(r3) == pytest.approx(26)
    assert checks.least_lead(r3, "skew", ["PosPop"]) == pytest.approx(54)
    assert checks.lead_over_skew(r3) == pytest.approx(11)
    assert checks.wtd_or_hypothesised(r3) == pytest.approx(2)
    assert checks.gain_in_tau(r3) == pytest.approx(0.2)
    sizes = {
        on: [round(checks.size_of_error(printed_means(on), name)) for name in SETS]
        for on in TABLE_2
    }  # fmt: skip
    assert [sizes["coat"][at] for at in (0, 2, 3, 4)] == [168, 88, 60, 46]
    assert [sizes["yahoo-r3"][at] for at in (0, 2, 3, 4)] == [240, 47, 39, 44]


def test_printed_errors_come_back():
    for on in TABLE_2:
        own, printed = checks.errors(printed_means(on)), printed_errors(on)
        assert len(printed) == 25
        for key, cell in printed.items():
            assert own[key] == pytest.approx(cell)


def test_cut_off_not_rounded():
    assert truncated(2.876, 0.01) == pytest.approx(2.87)
    assert truncated(129_179, 1000) == 129_000
    assert truncated(0.92, 0.01) == pytest.approx(0.92)


def test_intervals_are_those_of_the_experiment(found):
    """A statistic that is one error has the interval that the table of errors gives it."""
    rows = found.tables["experiment", "stand-in"]
    table = checks.study_of(rows)[checks.METRICS[0]].rows
    for row in table.head(7).iter_rows(named=True):
        value, low, high = checks.over_repetitions(
            lambda means, key=(row["design"], row["system"]): checks.errors(means)[key],
            checks.by_repetition(rows),
        )
        assert (value, low, high) == pytest.approx((row["value"], row["low"], row["high"]))


def test_one_repetition_has_no_interval():
    assert checks.over_repetitions(checks.balance, [printed_means("coat")])[1:] == (None, None)


def test_errors_that_are_not_defined():
    means = printed_means("coat")
    with pytest.raises(us.DataError, match="MF finds no"):
        checks.errors({**means, (TRUE, "MF"): 0.0})
    with pytest.raises(us.DataError, match="too few"):
        checks.errors({**means, ("reg", "MF"): float("nan")})
    # Defined for both repetitions together, but not for each alone.
    alone = [{**means, (TRUE, "MF"): 0.0}, means]
    value, low, high = checks.over_repetitions(checks.gain_in_error, alone)
    assert value > 0
    assert low is high is None


def test_signs_of_other_metrics():
    recall = printed_means("coat")
    assert checks.same_signs(recall, recall, recall) == 100
    other = {**recall, ("full", "MF"): 0.001}  # far below the truth
    assert checks.same_signs(recall, other) == pytest.approx(100 * 20 / 21)  # 21 cells are no noise
    assert checks.between_metrics(recall, recall) == 0
    assert checks.between_rules(recall, other) == pytest.approx(180 + 100 * (1 - 0.001 / 0.063))


def test_the_stand_in_for_zero():
    assert checks._zero_to_average(290) == pytest.approx(0.029)
    assert checks._zero_to_average(5400) == pytest.approx(0.54)


# Other data


def frames(random=0.3, factor=1.0):
    shop = world("shop", users=60, items=40, seed=3)
    return [
        part.to_polars().with_columns(pl.col("rating") * factor)
        for part in (shop.ratings, shop.random(random))
    ]


def test_own_ratings_with_a_random_part():
    chosen, random = frames(factor=2.0)  # 2 to 10
    with pytest.raises(us.SettingError, match="from 2 to 10"):
        study("carraro2020", chosen, random=random, amounts=LITTLE)
    told = verdicts(study("carraro2020", chosen, random=random, amounts=LITTLE, liked=8))
    assert told["2-03"].verdict == HOLDS
    assert told["2-24"].verdict == HOLDS
    assert told["2-21"].verdict in (HOLDS, DIFFERS, CONTRADICTS, NOT_SETTLED)


def test_own_ratings_without_one():
    chosen, _ = frames()
    found = study("carraro2020", chosen, amounts=LITTLE)
    assert found.counts()[NOT_CHECKABLE] + found.counts()[NO_DATA] == len(found.verdicts)
    assert "randomly chosen" in verdicts(found)["2-21"].why
    assert len(found.left_out) == 5


def test_users_and_items_that_are_in_both_parts():
    chosen = us.read_ratings({"user": [1, 1, 2, 3], "item": [7, 8, 7, 7], "rating": [5, 4, 3, 2]})
    random = us.read_ratings({"user": [1, 2, 4], "item": [7, 9, 7], "rating": [1, 2, 3]})
    chosen, random = measurements._common(us.Dataset("own", *under_one_numbering(chosen, random)))
    assert chosen.to_polars().rows() == [(1, 7, 5.0), (2, 7, 3.0)]  # not user 3, not item 8
    assert random.to_polars().rows() == [(1, 7, 1.0)]
    assert len(chosen.users) == len(random.users) == 2
    assert len(chosen.items) == 1


def test_parts_with_nothing_in_common():
    chosen, random = frames()
    other = random.with_columns(pl.col("user").cast(pl.String) + "x")
    found = study(
        "carraro2020", chosen.with_columns(pl.col("user").cast(pl.String)), random=other,
        amounts=LITTLE, claims=["2-03", "2-22"],
    )  # fmt: skip
    assert found.counts()[NOT_CHECKABLE] == 2


@pytest.mark.parametrize("rows", [3, 12])
def test_very_few_ratings(rows):
    chosen, random = frames()
    few = random.join(chosen, on=["user", "item"], how="semi").head(rows)
    found = study("carraro2020", chosen.head(rows), random=few, amounts=LITTLE)
    assert len(found.verdicts) == len(STUDY.claims) + 1


def test_clicks_have_no_threshold():
    chosen, random = (frame.select("user", "item") for frame in frames())
    found = study("carraro2020", chosen, random=random, amounts=LITTLE)
    told = verdicts(found)
    assert told["2-21"].verdict == NOT_CHECKABLE
    assert told["2-24"].verdict == HOLDS


def test_files_of_webscope_r3(tmp_path, any_size):
    """Made-up files in its format: its claims are measured, and do not come out as printed."""
    folder = tmp_path / "yahoo-r3"
    folder.mkdir()
    for part, frame in zip(("train", "test"), frames(), strict=True):
        file = folder / f"ydata-ymusic-rating-study-v1_0-{part}.txt"
        frame.select(pl.col("user", "item", "rating").cast(pl.Int64)).write_csv(
            file, separator="\t", include_header=False
        )
    found = study("carraro2020", data_dir=tmp_path, amounts=LITTLE)
    assert not found.is_other_data
    told = verdicts(found)
    for claim in STUDY.claims:
        of_r3 = not datasets_of(claim) or "yahoo-r3" in datasets_of(claim)
        assert (told[claim.key].verdict != NO_DATA) == of_r3, claim.key
    assert told["2-02"].verdict == CONTRADICTS
    assert "ratings" in told["2-02"].measured.note
    assert told["2-08"].verdict == DIFFERS
    page = found.document().to_markdown()
    assert "0.680" in page  # the printed table 4


# Coat


@pytest.mark.real
def test_cheap_claims_on_coat(tmp_path):
    home = only(tmp_path, "coat")
    keys = ["2-01", "2-03", "2-22", "2-24", "2-28", "2-33"]
    found = study("carraro2020", data_dir=home, claims=keys)
    told = {key: one.verdict for key, one in verdicts(found).items()}
    assert told == {
        "2-01": HOLDS, "2-03": HOLDS, "2-22": HOLDS, "2-24": HOLDS, "2-28": DIFFERS,
        "2-33": HOLDS,
    }  # fmt: skip
    assert TABLE_1["coat"]["random"][0] == 4640


@pytest.mark.real
@pytest.mark.slow
def test_experiment_on_coat(tmp_path):
    """With a part of the grids, which choose as well."""
    home = only(tmp_path, "coat")
    amounts = {"neighbours": 4, "factors": 2, "penalties": 2}
    found = study("carraro2020", data_dir=home, amounts=amounts)
    told = {key: one.verdict for key, one in verdicts(found).items()}
    for key in ("2-09", "2-21"):
        assert told[key] == HOLDS, key
    assert told["2-07"] == DIFFERS
    assert told["2-05"] in (HOLDS, DIFFERS, NOT_SETTLED)
    assert told["2-10"] == NOT_SETTLED
    assert told["2-26"] == NOTE
    assert isinstance(checks.study_of(found.tables["experiment", "coat"]), Estimates)
