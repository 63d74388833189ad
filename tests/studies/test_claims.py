"""Claims as data: the files of claims, and rules written as text."""

import sys
from functools import partial
from types import ModuleType

import pytest

from unskew.errors import SettingError, UnknownName
from unskew_studies.claims import read_claims
from unskew_studies.paper import Claim, Evidence, MeasuredValue
from unskew_studies.rules import (
    Rule,
    above,
    at_least,
    at_most,
    below,
    between,
    exactly,
    near,
    read_rule,
    true,
)
from unskew_studies.run import STUDIES, find_study

CLAIM = """
[[claim]]
key = "9-01"
place = "§1"
statement = "There are seven."
[[claim.evidence]]
kind = "measured"
check = "count_of"
settings = { names = ["a", "b"] }
rule = "exactly 7"
why = "a count"
data = ["ml-1m"]
"""
MORE = """
[[claim]]
key = "9-02"
place = "§2"
statement = "The runs say so."
published = "yes"
question = "Do runs say so?"
kind = "note"
[[claim.evidence]]
rule = "true"
why = "none"
needs = "the runs, which are lost"
[[claim.evidence]]
kind = "released"
check = "plain"
rule = "above 0, open"
question_rule = "above 1"
why = "its sign"
files = ["runs.csv"]
explanation = "chance"
"""


def count_of(lab, dataset_name, *, names) -> "MeasuredValue":
    return MeasuredValue(len(names))


def plain(_lab, _dataset_name) -> "MeasuredValue":
    return MeasuredValue(1)


def helper(values) -> "MeasuredValue":
    return MeasuredValue(len(values))


@pytest.fixture
def read(tmp_path):
    def read_text(text, checks=(sys.modules[__name__],)):
        path = tmp_path / "paper" / "claims.toml"
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        return read_claims(path, checks=checks, data=("ml-1m", "coat"))

    return read_text


def test_claims_are_read_as_written(read):
    first, second = read(CLAIM + MORE)
    (piece,) = first.evidence
    assert isinstance(piece.check, partial)
    assert piece.check(None, "ml-1m") == MeasuredValue(2)
    assert piece.check.keywords == {"names": ("a", "b")}
    assert first == Claim(
        key="9-01",
        place="§1",
        statement="There are seven.",
        evidence=(
            Evidence(
                kind="measured",
                check=piece.check,
                rule=exactly(7),
                why="a count",
                data=("ml-1m",),
            ),
        ),
    )
    assert second == Claim(
        key="9-02",
        place="§2",
        statement="The runs say so.",
        published="yes",
        question="Do runs say so?",
        kind="note",
        evidence=(
            Evidence(
                kind="", check=None, rule=true(), why="none", needs="the runs, which are lost"
            ),
            Evidence(
                kind="released",
                check=plain,
                rule=above(0).open(),
                question_rule=above(1),
                why="its sign",
                files=("runs.csv",),
                explanation="chance",
            ),
        ),
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('place = "§1"', 'plaec = "§1"', "unknown key of a claim 'plaec'. Did you mean 'place'?"),
        ('why = "a', 'wy = "a', "unknown key of evidence 'wy'. Did you mean 'why'?"),
        ('place = "§1"\n', "", "a claim needs place: add it"),
        ('why = "a count"\n', "", "evidence needs why: add it"),
        ('kind = "measured"\n', "", "evidence needs kind: add it"),
        ('"§1"', '""', "place must be a text and not empty, got ''"),
        ('"§1"', "1", "place must be a text and not empty, got 1"),
        ('["ml-1m"]', '"ml-1m"', "data must be a list of texts and not empty, got 'ml-1m'"),
        ('["ml-1m"]', "[1]", "data must be a list of texts and not empty, got [1]"),
        ('["ml-1m"]', '["ml-2m"]', "unknown data set 'ml-2m'. Did you mean 'ml-1m'?"),
        ("exactly 7", "about 7", "'about 7' is no rule: write 'near # ± #'"),
        ("exactly 7", "between 7 and 1", "no value agrees with 'between 7 and 1'"),
        ('"count_of"', '"count"', "unknown check 'count'. Did you mean 'count_of'?"),
        ('"count_of"', '"helper"', "unknown check 'helper'."),
        ("names =", "name =", "unknown setting of count_of 'name'. Did you mean 'names'?"),
        ("settings =", "# ", "count_of needs settings: write settings = { names = … }"),
        ('"measured"', '"guessed"', "evidence 'guessed': kind must be one of measured, "),
        ("data =", 'needs = "luck"\ndata =', "unknown key of evidence with needs 'kind'."),
        ("[[claim.evidence]]", 'kind = "x"\n[[claim.evidence]]', "kind must be one of claim, "),
    ],
)
def test_a_mistake_is_named_with_its_file_and_claim(read, old, new, message):
    assert CLAIM.count(old) == 1
    with pytest.raises(SettingError) as problem:
        read(MORE + CLAIM.replace(old, new))
    assert str(problem.value).startswith("paper/claims.toml, claim 9-01: ")
    assert message in str(problem.value)


def test_two_claims_with_one_key_are_refused(read):
    with pytest.raises(SettingError, match=r"^paper/claims.toml, claim 9-01: another claim has"):
        read(CLAIM + MORE + CLAIM)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CLAIM + MORE.replace('key = "9-02"', ""), "claim number 2: a claim needs key: add it"),
        (CLAIM.replace("[[claim.ev", "[[claim]]\n[[claim.ev"), "claim 9-01: a claim needs evid"),
        ("", "the file needs claim: add it"),
        ("claim = []", "claim must be tables and not empty, got []"),
        ("claims = 1", "unknown key of the file 'claims'. Did you mean 'claim'?"),
        ("[[claim]", "this is no TOML file ("),
        (CLAIM.replace("place", 'key = "9-02"\nplace'), "this is no TOML file ("),
    ],
)
def test_a_mistake_outside_a_claim_is_named_with_its_file(read, text, message):
    with pytest.raises(SettingError) as problem:
        read(text)
    assert str(problem.value).startswith("paper/claims.toml")
    assert message in str(problem.value)


def test_an_unknown_name_stays_one(read):
    with pytest.raises(UnknownName, match="Allowed: ml-1m, coat"):
        read(CLAIM.replace("ml-1m", "ml-2m"))


def test_two_checks_with_one_name_are_refused(read):
    other = ModuleType("other")
    exec(
        "from __future__ import annotations\ndef plain(lab, dataset_name) -> MeasuredValue: 0",
        vars(other),
    )
    with pytest.raises(SettingError, match="other: another check is named plain; rename one"):
        read(CLAIM, checks=(sys.modules[__name__], other))


def test_every_paper_has_claims_in_the_order_of_their_keys():
    keys = [[claim.key for claim in find_study(name).claims] for name in STUDIES]
    assert all(one == sorted(one) for one in keys)
    assert sum(map(len, keys)) == 231


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("near 0.35 ± 0.05", near(0.35, 0.05)),
        ("near -1 ± 0.1, open", near(-1, 0.1).open()),
        ("exactly 1703", exactly(1703)),
        ("at least 0.9", at_least(0.9)),
        ("above 0", above(0)),
        ("at most 5.1e-5", at_most(5.1e-5)),
        ("below -0.5", below(-0.5)),
        ("between 0.5 and 2, open", between(0.5, 2).open()),
        ("true", true()),
        ("true, open", true().open()),
        ("at most 3: within 3: all of them", Rule(high=3, text="within 3: all of them")),
        ("above 0, open: its sign", Rule(low=0, strict=True, decisive=False, text="its sign")),
        ("strictly between 0 and 1: some", Rule(0, 1, strict=True, text="some")),
    ],
)
def test_rules_are_read_as_written(text, rule):
    assert read_rule(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "false",
        "true open",
        "true,open",
        "open",
        "above",
        "above zero",
        "above inf",
        "above 1e999",
        "above 0 and 1",
        "at least .5",
        " above 0",
        "above 0\n",
        "above 0:",
        "above 0: ",
        "above 0: its sign\nor not",
        "near 1 +- 0.1",
        "near 1",
        "between 1",
        "Above 0",
    ],
)
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(SettingError, match="is no rule: write 'near # ± #'"):
        read_rule(text)


@pytest.mark.parametrize(
    "text", ["between 2 and 1", "strictly between 1 and 1", "near 1 ± -0.1", "between 2 and 1: x"]
)
def test_a_rule_that_no_value_agrees_with_is_refused(text):
    with pytest.raises(SettingError, match="no value agrees with"):
        read_rule(text)
