"""What the studies share: rules, verdicts, the lab, the page; every claim has what it needs."""

import json
import math
from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

import unskew as us
from shared import ROOT
from unskew.auditing.page.paper_files import PAPERS
from unskew.cli import app
from unskew.data.formats import catalog
from unskew.data.formats.entries import DATASETS
from unskew.errors import DataError, SettingError, UnknownName
from unskew.report.document import Words
from unskew.report.tables import Table
from unskew.worlds.worlds import world
from unskew_studies import run as studies
from unskew_studies.lab import (
    Amount,
    MissingDataError,
    UndefinedError,
    choose_amounts,
    measurement,
    open_lab,
)
from unskew_studies.paper import (
    ALGEBRA,
    AMBIGUOUS,
    EVIDENCE_KINDS,
    MEASURED,
    NOTE,
    PRINTED,
    RELEASED,
    Claim,
    Evidence,
    Exhibit,
    MeasuredValue,
    Study,
)
from unskew_studies.result import (
    CONTRADICTS,
    DIFFERS,
    FAILED,
    HOLDS,
    NO_DATA,
    NOT_CHECKABLE,
    NOT_SETTLED,
    judge,
)
from unskew_studies.rules import (
    above,
    at_least,
    at_most,
    below,
    between,
    exactly,
    near,
    true,
)

calls = []


@measurement("sizes of the data")
def sizes(lab, on):
    calls.append(on)
    return pl.DataFrame({"ratings": [len(lab.data(on).ratings)], "names": [["a", "b"]]})


def size(lab, on):
    return MeasuredValue(lab.table(sizes, on)["ratings"][0])


def lost(_lab, _on):
    raise DataError("no rating is liked")


def undefined(_lab, _on):
    raise UndefinedError("no two items differ")


def absent(lab, _on):
    return MeasuredValue(lab.released_table("nobody.csv").height)


def pieces(kind=MEASURED, **fields):
    return (Evidence(kind=kind, **fields),)


def claim_of(key, statement, pieces, **more):
    return Claim(key=key, place=f"§{key[-1]}", statement=statement, evidence=pieces, **more)


DATA = {"data": ("ml-1m",)}
ASKED = {"question": "Is it so?"}
MANY = pieces(check=size, rule=exactly(7), why="a count", data=("ml-1m",), question_rule=above(10))
LOST_RUNS = Evidence(kind="", check=None, rule=true(), why="none", needs="the runs are lost")
CLAIMS = (
    claim_of(
        "9-1",
        "There are many ratings.",
        MANY,
        published="7",
        question="Are there more than ten ratings?",
    ),
    claim_of("9-2", "It fails.", pieces(check=lost, rule=true(), why="none", **DATA), **ASKED),
    claim_of(
        "9-3",
        "Two is even.",
        pieces(
            ALGEBRA,
            check=lambda _l, _d: MeasuredValue(value=True),
            rule=true(),
            why="arithmetic",
        ),
    ),
    claim_of(
        "9-4",
        "A released table.",
        pieces(RELEASED, check=absent, rule=true(), why="exact", files=("nobody.csv",)),
    ),
    claim_of("9-5", "Needs what is lost.", (LOST_RUNS,)),
    claim_of("9-6", "About its data.", pieces(check=size, rule=exactly(7), why="count", **DATA)),
    claim_of(
        "9-7",
        "It crashes.",
        pieces(check=lambda _l, _d: MeasuredValue(1 / 0), rule=true(), why="none", **DATA),
        **ASKED,
    ),
    claim_of(
        "9-8", "Undefined.", pieces(check=undefined, rule=true(), why="none", **DATA), **ASKED
    ),
)


def stand_in(seed):
    return world("shop", users=40, items=30, seed=seed).dataset()


PAPER = Study(
    name="toy",
    title="A toy",
    reference="Nobody, Nowhere 2000",
    data=("ml-1m",),
    amounts={"folds": Amount(5, 2, "folds of the split")},
    exhibits=(
        Exhibit(
            place="Table 1",
            title="Sizes",
            shows="How large it is.",
            draw=lambda lab, name: [Table("Sizes", lab.table(sizes, name))],
            data=("ml-1m",),
        ),
        Exhibit(
            place="Fig. 1",
            title="Nothing",
            shows="Nothing.",
            draw=lambda _l, _d: [Words("nothing")],
        ),
        Exhibit(place="Fig. 2", title="Lost", shows="Lost.", draw=lost, data=("ml-1m",)),
    ),
    claims=CLAIMS,
    stand_in=stand_in,
)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(studies, "find_study", lambda _name: PAPER)
    monkeypatch.setitem(PAPERS, "toy", "@misc{toy}")
    calls.clear()


@pytest.mark.parametrize(
    ("rule", "inside", "outside", "said"),
    [
        (near(0.5, 0.1), 0.59, 0.61, "0.5 ± 0.1"),
        (exactly(1703), 1703, 1702, "= 1703"),
        (at_least(0.9), 0.9, 0.89, "≥ 0.9"),
        (above(0), 1e-9, 0, "> 0"),
        (at_most(2), 2, 2.1, "≤ 2"),
        (below(2), 1.9, 2, "< 2"),
        (between(-1, 1), 1, 1.1, "-1 to 1"),
        (true(), True, False, "true"),
    ],
)
def test_rules_accept_their_range_and_say_so(rule, inside, outside, said):
    assert rule.accepts(inside)
    assert not rule.accepts(outside)
    assert str(rule) == said


def test_verdicts_weigh_the_interval_and_what_is_left_open():
    def verdict(rule, *numbers):
        return judge(CLAIMS[0], MANY[0], rule, "x", MeasuredValue(*numbers)).verdict

    assert verdict(at_least(1), 2.0) == HOLDS
    assert verdict(at_least(1), 2.0, 1.5, 3.0) == HOLDS
    assert verdict(at_least(1), 2.0, 0.5, 3.0) == NOT_SETTLED  # 0.5 would not agree
    assert verdict(at_least(1), 0.5, 0.2, 1.1) == NOT_SETTLED
    assert verdict(at_least(1).open(), 0.5, 0.2, 1.1) == NOT_SETTLED
    assert verdict(at_least(1), 0.5) == CONTRADICTS
    assert verdict(at_least(1), 0.5, 0.2, 0.9) == CONTRADICTS
    assert verdict(at_least(1).open(), 0.5) == DIFFERS
    assert verdict(at_least(1).open(), 0.5, 0.2, 0.9) == DIFFERS
    assert verdict(above(1), 0.5, 0.0, 1.0) == CONTRADICTS  # 1 itself does not agree
    assert verdict(at_least(1), math.nan) == NOT_CHECKABLE
    assert verdict(near(0, 1), 3.0, 1.5, 2.0) == CONTRADICTS  # the value belongs to the range
    assert verdict(near(0, 1), 0.0, -5.0, 5.0) == NOT_SETTLED


def test_on_other_data_nothing_is_left_open():
    (piece,) = pieces(check=size, rule=above(7).open(), why="none", **DATA)
    assert claim_of("9-1", "x.", (piece,)).question_rule(piece) is None
    claim = claim_of("9-1", "x.", (piece,), **ASKED)
    assert claim.question_rule(piece) == above(7)
    assert claim.question_rule(MANY[0]) == above(10)  # the question has a rule of its own


@pytest.mark.parametrize("kind", [NOTE, AMBIGUOUS])
def test_what_the_paper_does_not_say_gets_no_verdict(kind):
    claim = replace(CLAIMS[0], kind=kind)
    assert judge(claim, MANY[0], at_least(1), "x", MeasuredValue(0.0)).verdict == kind
    assert judge(claim, MANY[0], at_least(1), "x", MeasuredValue(2.0)).verdict == kind
    with pytest.raises(SettingError, match="kind must be one of"):
        replace(CLAIMS[0], kind="rumour")


def test_evidence_is_named_and_counted_apart(toy, tmp_path):
    assert [piece.kind for piece in CLAIMS[0].evidence] == [MEASURED]
    assert [piece.kind for piece in CLAIMS[3].evidence] == [RELEASED]
    with pytest.raises(SettingError, match="kind must be one of"):
        replace(MANY[0], kind="rumour")
    result = us.study("toy", data_dir=tmp_path)
    assert result.counts(MEASURED)[HOLDS] == 1
    assert result.counts(ALGEBRA)[HOLDS] == 1
    assert "measured: 1 holds" in result.tally()
    assert "algebra: 1 holds" in result.tally()
    rows = {row["evidence"]: row for row in result.by_evidence().to_dicts()}
    assert rows[ALGEBRA][HOLDS] == 1
    piece = CLAIMS[3].evidence[0]
    fallen = judge(CLAIMS[3], piece, true(), "x", MeasuredValue(1, evidence_kind=PRINTED))
    assert fallen.evidence_kind == PRINTED  # printed values in place of released ones


def test_a_claim_has_a_verdict_per_piece_of_evidence(toy, monkeypatch):
    few = pieces(check=size, rule=exactly(3), why="a count", **DATA)
    claim = replace(CLAIMS[0], evidence=MANY + few)
    monkeypatch.setattr(studies, "find_study", lambda _name: replace(PAPER, claims=(claim,)))
    result = us.study("toy", stand_in=True)
    assert [(one.claim.key, one.verdict) for one in result.verdicts] == [
        ("9-1", HOLDS),
        ("9-1", CONTRADICTS),
    ]
    assert result.counts(MEASURED)[HOLDS] == result.counts(MEASURED)[CONTRADICTS] == 1
    page = result.document().to_markdown().split("## The ledger")[1]
    assert page.count("Are there more than ten ratings?") == 1  # the claim stands once


def test_without_its_data_a_study_runs_on_the_stand_in(toy, tmp_path):
    found = us.study("toy", data_dir=tmp_path)
    verdicts = {one.claim.key: one.verdict for one in found.verdicts}
    assert verdicts == {
        "9-1": HOLDS, "9-2": FAILED, "9-3": HOLDS, "9-4": NO_DATA, "9-5": NOT_CHECKABLE,
        "9-6": NOT_CHECKABLE, "9-7": FAILED, "9-8": NOT_CHECKABLE,
    }  # fmt: skip
    rows = {row["claim"]: row for row in found.ledger.to_dicts()}
    assert rows["9-1"]["statement"] == "Are there more than ten ratings?"
    assert rows["9-2"]["note"] == "no rating is liked"
    assert "released" in rows["9-4"]["note"]
    assert rows["9-7"]["note"] == "ZeroDivisionError: division by zero"
    assert rows["9-8"]["note"] == "no two items differ"
    assert rows["9-5"]["note"] == "the runs are lost"
    assert rows["9-6"]["note"] == "is about the paper's own data"
    assert found.left_out == {"Fig. 2: Lost (stand-in)": "no rating is liked"}
    assert [exhibit.place for exhibit, _, _ in found.exhibits] == ["Table 1", "Fig. 1"]
    assert found.card["quick"]
    assert found.card["amounts"] == {"folds": 2}
    assert calls == ["stand-in"]  # measured once, for two claims and an exhibit
    assert "measured: 1 holds" in found.summary()


def test_a_file_of_another_size_is_not_the_papers_data(toy, tmp_path):
    (tmp_path / "ml-1m").mkdir()
    (tmp_path / "ml-1m" / "ratings.dat").write_text("1::1::5::0\n1::2::1::0\n2::1::4::0\n")
    result = us.study("toy", data_dir=tmp_path)
    assert result.is_other_data  # the built-in world instead
    rows = {row["claim"]: row for row in result.ledger.to_dicts()}
    assert rows["9-6"]["verdict"] == NO_DATA
    assert "has 2 users, but the paper's data have 6,040" in rows["9-6"]["note"]
    assert "2 users" in result.card["not the paper's"]["ml-1m"]
    asked = us.study("toy", "ml-1m", data_dir=tmp_path, claims=["9-1", "9-6"])
    assert asked.is_other_data  # its claims are questions about that file
    assert {one.verdict for one in asked.verdicts} == {CONTRADICTS, NO_DATA}


def test_released_tables_are_recognised_by_their_size_and_the_authors_names(tmp_path):
    file = "valcarce2018_librarything_pvalues.csv"
    assert catalog.find_released(file, tmp_path) is None
    (tmp_path / "published").mkdir()
    rows = ["RunA,RunB,P_10", *(f"a{n},b,0.5" for n in range(420)), "c,d,"]
    authors = tmp_path / "published" / "discriminative-libraryThing.csv"
    authors.write_text("\n".join(rows))
    assert catalog.read_released(file, tmp_path).height == 420  # the row without values is left out
    authors.write_text("\n".join(rows[:100]))
    with pytest.raises(DataError, match=r"99 rows .* has 420: download it again"):
        catalog.read_released(file, tmp_path)
    with pytest.raises(UnknownName):
        catalog.read_released("other.csv", tmp_path)


def test_on_own_data_claims_are_questions(toy):
    few = {"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]}
    found = us.study("toy", few)
    rows = {row["claim"]: row for row in found.ledger.to_dicts()}
    assert rows["9-1"]["verdict"] == CONTRADICTS
    assert rows["9-1"]["accepted"] == "> 10"
    assert rows["9-6"]["data"] == "ml-1m"
    assert rows["9-6"]["note"] == "is about the paper's own data"
    assert rows["9-3"]["verdict"] == NOT_CHECKABLE
    assert not found.card["quick"]
    assert [exhibit.place for exhibit, _, _ in found.exhibits] == ["Table 1"]
    page = found.document().to_markdown()
    assert "questions about other data" in page
    assert found.card["command"] == "unskew study run toy --data ratings --seed 0"
    some = us.study("toy", stand_in=True, amounts={"folds": 4}, liked=4, claims=["9-3"], seed=2)
    words = "--stand-in --amount folds=4 --claims 9-3 --liked 4 --seed 2"
    assert some.card["command"] == f"unskew study run toy {words}"


def test_a_store_spares_what_was_measured(toy, tmp_path):
    first = us.study("toy", stand_in=True, store=tmp_path / "store")
    again = us.study("toy", stand_in=True, store=tmp_path / "store")
    assert calls == ["stand-in"]
    assert again.ledger.equals(first.ledger)
    us.study("toy", stand_in=True, store=tmp_path / "store", amounts={"folds": 3})
    assert calls == ["stand-in"]  # it asks for no folds
    us.study("toy", stand_in=True, store=tmp_path / "store", seed=1)
    assert len(calls) == 2


def test_a_store_names_what_studies_keep(toy, tmp_path):
    us.study("toy", stand_in=True, store=tmp_path)
    told = CliRunner().invoke(app, ["store", "ls", str(tmp_path)])
    assert "test_studies  sizes" in told.stdout


def test_a_table_is_made_anew_for_the_amounts_it_asks_for(tmp_path):
    made = []

    def folds_of(lab, on):
        return lab.cached("folds", on, lambda: lab.amount("folds"))

    @measurement("inner")
    def inner(lab, on):
        made.append(f"inner {folds_of(lab, on)}")
        return pl.DataFrame({"x": [lab.amount("folds")]})

    @measurement("outer")
    def outer(lab, on):
        made.append("outer")
        more = lab.amount("draws") if lab.table(inner, on)["x"][0] > 2 else 0
        return pl.DataFrame({"y": [folds_of(lab, on) + more]})

    def value(folds, draws, extra=1):
        amounts = {"folds": folds, "draws": draws, "extra": extra}
        sets = {"a": stand_in(0)}
        with open_lab(
            sets, is_other_data=True, amounts=amounts, quick=True, store=tmp_path / "s"
        ) as lab:
            return lab.table(outer, "a")["y"][0]

    assert value(2, 5) == 2
    assert value(2, 6, 7) == 2  # neither is asked for
    assert made == ["outer", "inner 2"]
    assert value(3, 5) == 8
    assert value(3, 6) == 9
    assert value(3, 6, 2) == 9
    assert made[2:] == ["outer", "inner 3", "outer"]
    assert value(2, 9) == 2


def test_every_number_as_csv_and_the_page_in_every_format(toy, tmp_path):
    found = us.study("toy", stand_in=True)
    names = {path.name for path in found.to_csv(tmp_path / "csv")}
    assert names == {"ledger.csv", "sizes-stand-in.csv"}
    assert pl.read_csv(tmp_path / "csv" / "sizes-stand-in.csv")["names"].to_list() == ["a b"]
    for name in ("page.html", "page.md", "page.json"):
        us.report.save_report(found, tmp_path / name)
        assert (tmp_path / name).stat().st_size < 5_000_000
    assert json.loads((tmp_path / "page.json").read_text())["card"]["study"] == "toy"
    html = (tmp_path / "page.html").read_text()
    assert "Are there more than ten ratings?" in html


def test_only_some_claims(toy):
    found = us.study("toy", stand_in=True, claims=["9-3"])
    assert [one.claim.key for one in found.verdicts] == ["9-3"]
    assert not found.exhibits
    with pytest.raises(UnknownName, match=r"9-33.*Did you mean '9-3'"):
        us.study("toy", stand_in=True, claims=["9-33"])


def test_wrong_settings_are_named(toy):
    with pytest.raises(SettingError, match="data or stand_in"):
        us.study("toy", {"user": [1], "item": [1], "rating": [1]}, stand_in=True)
    with pytest.raises(SettingError, match="random goes with data"):
        us.study("toy", random={"user": [1], "item": [1], "rating": [1]})
    with pytest.raises(UnknownName, match=r"fold'.*folds"):
        us.study("toy", stand_in=True, amounts={"fold": 3})
    with pytest.raises(SettingError, match="folds=0"):
        us.study("toy", stand_in=True, amounts={"folds": 0})


def test_own_ratings_on_another_scale_need_to_say_what_is_liked(toy):
    odd = {"user": [1, 2, 3], "item": [1, 1, 2], "rating": [10, 90, 30]}
    with pytest.raises(SettingError, match=r"from 10 to 90; .*--liked"):
        us.study("toy", odd)
    assert us.study("toy", odd, liked=50).card["liked"] == 50
    same = {"user": [1, 2, 3], "item": [1, 1, 2], "rating": [1, 1, 1]}
    assert us.study("toy", same).verdicts  # nothing to choose from: claims say what they need


def test_random_ratings_join_own_data(toy):
    seen = []

    def look(lab, dataset_name):
        seen.append(lab.data(dataset_name))
        return MeasuredValue(1)

    claim = claim_of("9-7", "x.", pieces(check=look, rule=true(), why="", **DATA), **ASKED)
    few = {"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "find_study", lambda _name: replace(PAPER, claims=(claim,)))
        us.study("toy", few, random={"user": [3], "item": [9], "rating": [2]})
    assert len(seen[0].random) == 1
    assert len(seen[0].ratings.users) == 3


def test_the_lab_says_what_is_missing(tmp_path):
    with open_lab({}, is_other_data=True, amounts={}, quick=True, data_dir=tmp_path) as lab:
        with pytest.raises(MissingDataError, match="needs coat"):
            lab.data("coat")
        with pytest.raises(MissingDataError, match=r"published/mena2021_ml-1m_at10\.csv.*GitHub"):
            lab.released_table("mena2021_ml-1m_at10.csv")


def test_the_threshold_is_the_users_then_the_papers_then_the_datas(tmp_path):
    shop = stand_in(0)
    odd = us.load({"user": [1, 2], "item": [1, 1], "rating": [10, 90]})
    with open_lab({"a": shop, "b": odd}, is_other_data=True, amounts={}, quick=True) as lab:
        assert lab.threshold("a", paper=5) == shop.liked
        with pytest.raises(SettingError, match="10 to 90"):
            lab.threshold("b", paper=5)
        lab.liked = 50
        assert lab.threshold("b", paper=5) == 50
    with open_lab({"a": shop}, is_other_data=False, amounts={}, quick=True) as lab:
        assert lab.threshold("a", paper=5) == 5


def test_amounts_are_the_papers_or_quick():
    known = {"folds": Amount(5, 2, "folds"), "samples": Amount(1000, 10, "samples")}
    assert choose_amounts(known, False, None) == {"folds": 5, "samples": 1000}
    assert choose_amounts(known, True, {"samples": 20}) == {"folds": 2, "samples": 20}


# The papers

PAGES = ROOT / "docs" / "studies"
EVERY = {"bellogin2017": 40, "valcarce2018": 33, "carraro2020": 25, "mena2021": 43,
         "castells2018": 21}  # fmt: skip


@pytest.mark.parametrize(("number", "name"), list(enumerate(EVERY)))
def test_every_claim_is_whole(number, name):
    study = studies.find_study(name)
    assert study.name == name
    keys = [claim.key for claim in study.claims]
    assert keys == sorted(keys)
    assert {f"{number}-{nth:02}" for nth in range(1, EVERY[name] + 1)} <= set(keys)
    assert len({claim.statement for claim in study.claims}) == len(keys)  # none stands twice
    for claim in study.claims:
        assert claim.statement.endswith("."), claim.key
        assert claim.place, claim.key
        assert claim.evidence, claim.key
        assert claim.question == "" or claim.question.endswith("?"), claim.key
        asked = [claim.question_rule(piece) is not None for piece in claim.evidence]
        assert any(asked) == bool(claim.question), claim.key
        for piece in claim.evidence:
            assert piece.why, claim.key
            assert (piece.check is None) == bool(piece.needs), claim.key
            assert set(piece.data) <= set(DATASETS), claim.key
            assert piece.data or piece.files or piece.needs or piece.kind != RELEASED, claim.key
    assert set(study.data) <= set(DATASETS)


@pytest.mark.parametrize("name", list(EVERY))
def test_a_result_that_disagrees_refutes_every_claim(name):
    pieces = [(claim, one) for claim in studies.find_study(name).claims for one in claim.evidence]
    for claim, piece in pieces:
        for rule in {piece.rule, claim.question_rule(piece)} - {None}:
            wrong = MeasuredValue(_outside(rule))
            verdict = judge(claim, piece, rule, "x", wrong).verdict
            expected = CONTRADICTS if rule.decisive else DIFFERS
            assert verdict == (expected if claim.kind == "claim" else claim.kind), claim.key


def _outside(rule):
    """Return a value that does not agree: beyond the nearest bound."""
    if math.isfinite(rule.high):
        return rule.high + 1
    assert math.isfinite(rule.low), f"{rule} accepts everything"
    return rule.low - 1


def verdicts_of(page):
    """Return the table of verdicts by evidence that a page begins with."""
    lines = page.read_text().split("**Verdicts by evidence**")[1].strip().splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines[: len(EVIDENCE_KINDS) + 2]
    ]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:] if row[1:]}


@pytest.mark.parametrize("name", list(EVERY))
def test_the_index_counts_what_the_pages_say(name):
    table = verdicts_of(PAGES / f"{name}.md")
    (row,) = [line for line in (PAGES / "index.md").read_text().splitlines() if f"[{name}]" in line]
    cells = [cell.split(":")[0].strip() for cell in row.strip("|").split("|")[3:]]
    for cell, verdict in zip(
        cells, (HOLDS, DIFFERS, CONTRADICTS, NOT_SETTLED, NO_DATA), strict=True
    ):
        counts = [table.get(kind, {}).get(verdict, "0") for kind in EVIDENCE_KINDS]
        assert cell == " / ".join(counts), verdict


def test_the_readme_adds_the_pages_up():
    tables = [verdicts_of(PAGES / f"{name}.md") for name in EVERY]

    def total(kind, verdict):
        return sum(int(table.get(kind, {}).get(verdict, 0)) for table in tables)

    text = (PAGES.parents[1] / "README.md").read_text()
    lines = text.split("| evidence | hold |")[1].splitlines()[2 : 2 + len(EVIDENCE_KINDS)]
    for kind, line in zip(EVIDENCE_KINDS, lines, strict=True):
        counts = [int(cell) for cell in line.strip("|").split("|")[1:]]
        expected = [total(kind, one) for one in (HOLDS, DIFFERS, CONTRADICTS, NOT_SETTLED)]
        assert counts == expected, kind
    missing = sum(total(kind, NO_DATA) for kind in EVIDENCE_KINDS)
    assert f"({missing} more claims need data that are not at hand)" in " ".join(text.split())


def test_the_list_tells_what_is_at_hand(tmp_path):
    frame = studies.overview(tmp_path)
    assert frame["study"].to_list() == list(EVERY)
    assert set(frame["at hand"]) == {"stand-in"}
    (tmp_path / "ml-100k").mkdir()
    lines = "\n".join(f"{u}\t{i}\t{1 + (u + i) % 5}\t{u + i}" for u in range(9) for i in range(9))
    (tmp_path / "ml-100k" / "u.data").write_text(lines)
    shown = CliRunner().invoke(app, ["study", "list", "--data-dir", str(tmp_path)])
    assert shown.exit_code == 0
    assert "ml-100k" in shown.stdout
    claims = CliRunner().invoke(app, ["study", "list", "mena2021", "--format", "json"])
    assert len(json.loads(claims.stdout)) == 62  # pieces of evidence


def test_the_command_writes_the_page_and_the_numbers(toy, tmp_path):
    page, numbers = tmp_path / "p.md", tmp_path / "n"
    told = CliRunner().invoke(
        app, ["study", "run", "toy", "--stand-in", "-o", str(page), "--csv", str(numbers)]
    )
    assert told.exit_code == 0, told.output
    assert "holds" in told.stdout
    assert page.read_text().startswith("# toy: A toy")
    assert (numbers / "ledger.csv").exists()
    wrong = CliRunner().invoke(app, ["study", "run", "toy", "--amount", "folds"])
    assert isinstance(wrong.exception.__cause__, SettingError)
    assert "NAME=NUMBER" in wrong.stderr


def test_the_command_runs_on_a_file_of_ones_own(toy, tmp_path):
    few = {"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]}
    pl.DataFrame(few).write_csv(tmp_path / "few.csv")
    words = ["study", "run", "toy", "--data", str(tmp_path / "few.csv"), "--csv"]
    done = CliRunner().invoke(app, [*words, str(tmp_path / "n"), "-o", str(tmp_path / "p.md")])
    assert done.exit_code == 0, done.output
    ledger = pl.read_csv(tmp_path / "n" / "ledger.csv")
    expected = us.study("toy", few).ledger
    assert ledger["value"].to_list() == expected["value"].to_list()
    assert ledger["verdict"].to_list() == expected["verdict"].to_list()
    assert CONTRADICTS in ledger["verdict"]
