"""How often statements are false: rates, the code they belong to, runs that go on, words."""

import doctest
import importlib
import json
import math
import re
from collections import Counter
from dataclasses import replace

import pytest

import unskew as us
from reliability import measure, run
from reliability.kinds import KINDS
from reliability.measure import MIX, reliability
from reliability.records import Answer, Recognised, WorldRecord, WorldTask, record_of
from reliability.result import KEPT, TOO_FEW, Reliability, problems, verdict
from reliability.systems import PartTrained, RandomOrder
from reliability.tally import Count, rate_of
from reliability.trial import audit_core, equal_systems, expected_scores, slice_size
from shared import ROOT
from shared.pages import DOCS, written_by
from shared.trials import trial
from unskew.auditing.core.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.auditing.page import statement_blocks
from unskew.auditing.page.statement_blocks import (
    RULES,
    Rate,
    Rates,
    WorldRate,
    code_fingerprint,
    rates,
)
from unskew.auditing.statements.evidence import evidence_of
from unskew.auditing.statements.first_screen import CATALOGUE, statements_of
from unskew.errors import SettingError, quietly
from unskew.recommend.simple import Popularity


def count(world, sayings, false, *, seed=0, is_broken=False):
    return Count(
        kind="ahead", world=world, seed=seed, sayings=sayings, false=false, is_broken=is_broken
    )


# From counts to rates


def test_a_rate_is_the_mean_over_worlds_of_the_share_that_is_false():
    counts = [
        count("x", 4, 1),
        count("x", 1, 0, seed=1),
        count("y", 2, 2),
        count("y", 10, 0, seed=1),
    ]
    rate = rate_of("ahead", counts, {"x": 2, "y": 2})
    assert rate.rate == pytest.approx((1 / 4 + 0 + 1 + 0) / 4)
    assert (rate.worlds, rate.sayings) == (4, 17)
    assert [(one.world, one.worlds, one.sayings) for one in rate.by_world] == [
        ("y", 2, 12),
        ("x", 2, 5),
    ]
    assert rate.worst.rate == pytest.approx(0.5)
    assert rate.by_world[1].rate == pytest.approx(1 / 8)
    assert rate.worst_of(13) is None
    assert rate.worst_of(6).world == "y"


def test_kinds_of_worlds_count_alike_however_many_were_run():
    few = [count("x", 1, 1)]
    many = [count("y", 1, 0, seed=seed) for seed in range(9)]
    rate = rate_of("ahead", few + many, {"x": 1, "y": 9})
    assert rate.rate == pytest.approx(0.5)
    # A kind in which it is said in one of three worlds has a third of the weight.
    rate = rate_of("ahead", [count("x", 1, 1), *many], {"x": 3, "y": 9})
    assert rate.rate == pytest.approx((1 / 3) / (1 / 3 + 1))
    # Nine worlds and one of the same weight are worth 2² / (1 + 9 / 81) worlds.
    worth = 2**2 / (1 + 1 / 9)
    right = rate_of("ahead", [count("x", 1, 0), *many], {"x": 1, "y": 9})
    assert right.upper == pytest.approx(1 - 0.05 ** (1 / worth))


def test_worlds_with_a_broken_condition_stand_apart():
    counts = [count("x", 3, 0), count("halo", 4, 3, is_broken=True), count("halo", 0, 0, seed=1)]
    rate = rate_of("ahead", counts, {"x": 1, "halo": 2})
    assert (rate.rate, rate.worlds) == (0, 1)
    assert [(one.world, one.rate) for one in rate.broken] == [("halo", 0.75)]
    assert rate_of("ahead", counts[1:], {"halo": 2}) is None
    assert rate_of("leads", counts, {"x": 1, "halo": 2}) is None


@pytest.mark.parametrize("worlds", [1, 7, 100])
def test_ends_of_intervals_have_closed_forms_where_none_or_all_is_false(worlds):
    none = rate_of("ahead", [count("x", 1, 0, seed=at) for at in range(worlds)], {"x": worlds})
    assert (none.rate, none.low) == (0, 0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / worlds), abs=1e-12)
    assert none.upper == pytest.approx(1 - 0.05 ** (1 / worlds), abs=1e-12)
    every = rate_of("ahead", [count("x", 2, 2, seed=at) for at in range(worlds)], {"x": worlds})
    assert (every.rate, every.high, every.upper) == (1, 1, 1)
    assert every.low == pytest.approx(0.025 ** (1 / worlds), abs=1e-12)


@pytest.mark.parametrize(("false", "worlds"), [(1, 10), (3, 40), (20, 400)])
def test_ends_of_intervals_are_those_of_the_binomial_distribution(false, worlds):
    counts = [count("x", 1, at < false, seed=at) for at in range(worlds)]
    rate = rate_of("ahead", counts, {"x": worlds})

    def at_most(most, p):
        return sum(math.comb(worlds, n) * p**n * (1 - p) ** (worlds - n) for n in range(most + 1))

    assert at_most(false, rate.high) == pytest.approx(0.025, rel=1e-6)
    assert at_most(false, rate.upper) == pytest.approx(0.05, rel=1e-6)
    assert 1 - at_most(false - 1, rate.low) == pytest.approx(0.025, rel=1e-6)


def a_rate(**changes):
    settings = {
        "kind": "ahead",
        "worlds": 400,
        "sayings": 900,
        "rate": 0.02,
        "low": 0.01,
        "high": 0.04,
        "upper": 0.035,
        "by_world": (WorldRate(world="halo", worlds=3, sayings=29, rate=0.5),),
    }
    return Rate(**settings | changes)


def test_bars():
    assert verdict(a_rate()) == KEPT
    assert problems(a_rate(rate=0.051)) == ["rate"]
    assert problems(a_rate(upper=0.081)) == ["upper end"]
    worse = (WorldRate(world="halo", worlds=3, sayings=30, rate=0.11),)
    assert problems(a_rate(by_world=worse)) == ["rate in halo"]
    assert verdict(a_rate(worlds=99)) == TOO_FEW
    assert verdict(a_rate(worlds=99), least=99) == KEPT
    assert verdict(a_rate(worlds=99, upper=0.2)) == TOO_FEW
    assert verdict(a_rate(worlds=99, low=0.06)) == f"{TOO_FEW}; rate"


# The code that rates belong to


def fingerprint_of(tmp_path, monkeypatch, text):
    monkeypatch.setattr(statement_blocks, "PACKAGE", tmp_path)
    (tmp_path / "rule.py").write_text(text)
    code_fingerprint.cache_clear()
    return code_fingerprint(("rule.py",))


RULE = '"""A rule."""\ndef rule(x):\n    """Tell."""\n    return x > 3\n'
SAME = '"""Another text."""\n\n\n# why\ndef rule(x):\n    return (\n        x > 3  # why\n    )\n'


def test_the_fingerprint_is_that_of_code_not_of_comments_and_layout(tmp_path, monkeypatch):
    first = fingerprint_of(tmp_path, monkeypatch, RULE)
    assert fingerprint_of(tmp_path, monkeypatch, SAME) == first
    assert first == "ce720d444a78044b"  # under every version of Python
    for other in (RULE.replace("3", "4"), RULE.replace(">", ">="), RULE + "y = 1\n"):
        assert fingerprint_of(tmp_path, monkeypatch, other) != first
    code_fingerprint.cache_clear()


def test_the_fingerprint_stays_where_code_moves(tmp_path, monkeypatch):
    rules = RULE + "def other(x):\n    from math import exp\n    return exp(x)\n"
    imports = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from x import Y\n"
    moved = imports + "".join(f"def {part}" for part in reversed(rules.split("def ")[1:]))
    assert fingerprint_of(tmp_path, monkeypatch, moved) == fingerprint_of(
        tmp_path, monkeypatch, rules
    )
    code_fingerprint.cache_clear()


def test_every_file_of_rules_exists_and_counts():
    assert len(set(RULES)) == len(RULES)
    whole = code_fingerprint(RULES)
    assert all((ROOT / "src" / "unskew" / name).exists() for name in RULES)
    assert all(
        code_fingerprint(RULES[:at] + RULES[at + 1 :]) != whole for at in (0, len(RULES) - 1)
    )


def test_rates_of_other_code_are_not_shown(tmp_path):
    file = tmp_path / "rates.json"
    assert rates(file) is None
    current = Rates(
        fingerprint=code_fingerprint(), worlds=3, world_kinds=("x",), rates={"ahead": a_rate()}
    )
    file.write_text(json.dumps(current.to_dict()))
    assert rates(file).get("ahead") == a_rate()
    assert rates(file).get("leads") is None
    file.write_text(json.dumps(replace(current, fingerprint="0" * 16).to_dict()))
    assert not rates(file).is_current
    assert rates(file).get("ahead") is None
    file.write_text(json.dumps({**current.to_dict(), "format": 0}))
    assert rates(file) is None


# Runs


def fake_audit(task):
    """Return what a world came to without auditing it: `leads` is said in some worlds only."""
    kinds = ("ahead", "leads") if task.kind == "tiny" and task.seed % 2 else ("ahead",)
    counts = tuple(
        Count(kind=kind, world=task.kind, seed=task.seed, sayings=2, false=task.seed % 2)
        for kind in kinds
    )
    seen = Recognised(world=task.kind, seed=task.seed, pairs=2, named=1, named_by_slice=2)
    answer = Answer(verdict="not settled", is_clear=True, is_named=True, is_wrong=False)
    return WorldRecord(
        world=task.kind, seed=task.seed, counts=counts, recognised=seen, answer=answer
    )


@pytest.fixture
def audited(monkeypatch):
    """Return the worlds that were audited, in their order."""
    tasks = []
    monkeypatch.setattr(
        measure, "audit_world", lambda task: (tasks.append(task), fake_audit(task))[1]
    )
    return tasks


def test_worlds_come_in_equal_numbers_of_each_kind(audited):
    result = reliability(5, kinds=["tiny", "null"], least=0, seed=50)
    assert [(one.kind, one.seed) for one in audited] == [
        (kind, seed) for seed in (50, 51, 52) for kind in ("tiny", "null")
    ]
    row = result.table().filter(kind="ahead").to_dicts()[0]
    assert (row["worlds"], row["sayings"]) == (6, 12)
    assert row["rate"] == pytest.approx(1 / 6)
    assert row["bars"] == TOO_FEW
    assert result.table().filter(kind="leads")["worlds"].item() == 1
    assert result.table().filter(kind="match")["bars"].item() == "never stated"


def test_numbers_of_worlds_are_given_by_kind(audited):
    result = reliability({"tiny": 3, "null": 1}, seed=50)
    # A stated mix is kept: no world is added, although statements are said in fewer than 100.
    assert [(one.kind, one.seed) for one in audited] == [
        *(("tiny", 50), ("null", 50), ("tiny", 51), ("tiny", 52))
    ]
    assert [(one.world, one.seed) for one in result.records] == [
        (one.kind, one.seed) for one in audited
    ]
    audited.clear()
    reliability({"tiny": 3, "null": 1}, kinds=["tiny"], seed=50)
    assert [one.seed for one in audited] == [50, 51, 52]


def test_the_usual_mix_is_that_of_the_published_rates(audited):
    result = reliability()
    assert Counter(one.kind for one in audited) == MIX
    assert {one.seed for one in audited if one.kind == "null"} == set(range(30_000, 30_010))
    assert result.rates.worlds == sum(MIX.values())
    published = rates()
    if published is not None and published.is_current:
        assert published.worlds == sum(MIX.values())
        assert set(published.world_kinds) == set(MIX)


def test_worlds_are_added_where_a_rare_statement_is_said(audited):
    result = reliability(4, kinds=["tiny", "null"], least=3, most=50, seed=50)
    of_kind = {kind: [one.seed for one in audited if one.kind == kind] for kind in ("tiny", "null")}
    # `ahead` needs three worlds and has four; `leads` is said at 51, 53 and 55 in one kind only.
    assert of_kind == {"tiny": [50, 51, 52, 53, 54, 55], "null": [50, 51]}
    assert result.rates.rates["leads"].worlds == 3
    assert result.rates.rates["ahead"].worlds == 8
    # Kinds of worlds count alike: half of the worlds of either kind are false, by half.
    assert result.rates.rates["ahead"].rate == pytest.approx(0.25)


def test_worlds_are_not_added_beyond_the_most(audited):
    result = reliability(4, kinds=["tiny", "null"], least=100, most=7, seed=50)
    # Round by round: at first both kinds have statements that are said too rarely.
    assert len(result.records) == len(audited) == 6
    assert result.rates.worlds == 6


def test_a_stopped_run_goes_on(tmp_path, monkeypatch):
    tasks = []

    def stops(task):
        if len(tasks) == 3:
            raise KeyboardInterrupt
        tasks.append(task)
        return fake_audit(task)

    call = {"kinds": ["tiny", "null"], "least": 0, "store": tmp_path}
    monkeypatch.setattr(measure, "audit_world", stops)
    with pytest.raises(KeyboardInterrupt):
        reliability(6, **call)
    assert len(list(tmp_path.rglob("*.json"))) == 3
    monkeypatch.setattr(
        measure, "audit_world", lambda task: (tasks.append(task), fake_audit(task))[1]
    )
    result = reliability(6, **call)
    assert len(tasks) == len(set(tasks)) == 6
    monkeypatch.setattr(measure, "audit_world", fake_audit)
    assert reliability(6, kinds=["tiny", "null"], least=0).records == result.records
    # Other code makes other statements: nothing of before is read.
    monkeypatch.setattr(measure, "code_fingerprint", lambda: "other")
    again = []
    monkeypatch.setattr(
        measure, "audit_world", lambda task: (again.append(task), fake_audit(task))[1]
    )
    reliability(6, **call)
    assert len(again) == 6


def test_a_world_that_fails_is_named(monkeypatch):
    def fails(task):
        raise SettingError("no luck")

    monkeypatch.setattr(measure, "audit_world", fails)
    with pytest.raises(us.DataError, match=r"world null, seed 30000 failed: no luck"):
        reliability(1, kinds=["null"], least=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"worlds": 0}, "worlds"),
        ({"least": -1}, "least"),
        ({"most": 0}, "most"),
        ({"kinds": ["nul"]}, "null"),
        ({"kinds": []}, "at least one kind"),
        ({"worlds": {}}, "at least one kind"),
        ({"worlds": {"nul": 3}}, "null"),
        ({"worlds": {"null": 0}}, "worlds"),
        ({"worlds": {"null": 3}, "kinds": ["tiny"]}, "worlds"),
    ],
)
def test_wrong_settings_are_refused(call, message):
    with pytest.raises(SettingError, match=message):
        reliability(**call)


@pytest.mark.slow
def test_workers_never_change_a_record():
    call = {"worlds": 4, "kinds": ["tiny", "equal-systems"], "least": 0, "seed": 3}
    one, two = (reliability(**call, workers=workers) for workers in (1, 2))
    assert one.records == two.records


def test_processes_give_the_records_of_one(monkeypatch):
    monkeypatch.setattr(measure, "audit_world", fake_audit)
    call = {"worlds": 6, "kinds": ["tiny", "null"], "least": 4, "most": 12}
    one, two = (reliability(**call, workers=workers) for workers in (1, 2))
    assert one.records == two.records


def test_the_result_shows_and_saves_itself(audited, tmp_path):
    result = reliability(4, kinds=["taste", "null"], least=0)
    assert "4 worlds of 2 kinds" in repr(result)
    text = str(result)
    assert "too few worlds (1 of " in text
    assert "is named in 50% of cases from judgments as they are, in 100% from a slice" in text
    assert "means over 2 worlds of 1 kind for which this" in text
    named = result.recognised()
    assert named.filter(world="taste")["visible"].item()
    assert named["named"].to_list() == [0.5, 0.5]
    assert set(result.by_world()["condition"]) == {"holds"}
    result.save_rates(tmp_path / "rates.json")
    saved = rates(tmp_path / "rates.json")
    assert saved == result.rates
    assert saved.is_current


# The command


def test_the_command_prints_the_table_and_writes_the_rates(audited, tmp_path, capsys):
    file = tmp_path / "rates.json"
    run.main(["--worlds", "2", "--kinds", "tiny,null", "--quiet", "-o", str(file)])
    printed = capsys.readouterr().out
    assert "too few worlds" in printed
    assert f"the rates are in {file}" in printed
    assert rates(file).worlds == 2


MODULES = ["known_world", "measure", "planted_leaks", "preferences", "systems", "world_truth"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_do_what_they_say(name):
    with quietly():
        result = doctest.testmod(importlib.import_module(f"reliability.{name}"))
    assert result.attempted
    assert not result.failed


# Trials


def test_systems_that_are_equal_by_construction_are_expected_to_score_alike():
    world = KINDS["equal-systems"](3)
    assert all(isinstance(one, RandomOrder) for one in world.systems.values())
    core = audit_core(world.data(0))
    scores = expected_scores(world, core, 1)
    assert all(len(set(each.values())) == 1 for each in scores.values())
    assert scores[core.common]["order-a"] > 0
    mixed = replace(
        world,
        systems={
            "a": PartTrained(Popularity(), 0),
            "b": PartTrained(Popularity(), 1),
            "c": RandomOrder(1),
            "d": Popularity(),
        },
    )
    twins = equal_systems(mixed, replace(core, systems=("a", "b", "c", "d")))
    assert twins == {"a": ["a", "b"], "b": ["a", "b"], "c": ["c"], "d": ["d"]}


def test_the_slice_is_as_large_as_the_difference_asks_for():
    data = KINDS["tiny"](1).data(0)
    cells = len(data.ratings.users) * len(data.ratings.items)
    assert 1 <= slice_size(data) <= cells / 2


def test_a_record_counts_what_was_said():
    one = trial("inverse", 2)
    record = record_of(one, WorldTask("inverse", 2))
    outcomes = one.outcomes()
    assert sum(each.sayings for each in record.counts) == len(outcomes)
    assert sum(each.false for each in record.counts) == sum(x.would_be_false for x in outcomes)
    assert {each.kind for each in record.counts} == {x.kind for x in outcomes}
    assert not any(each.is_broken for each in record.counts)
    assert record.recognised.named <= record.recognised.pairs


# Words


def check_text(statement):
    text = statement.text
    assert text, statement.kind
    assert text.endswith((".", "?")), text
    assert text[0].isupper() or text.startswith(statement.subjects + statement.designs), text
    for bad in ("nan", "None", "+−", "−−", "  ", " ,", "..", "inf]", "[]", "()"):
        assert bad not in text, text
    assert not re.search(r" \.(?!\d)", text), text
    assert not re.search(r"\b1 (other )?(systems|designs|users|splits)\b", text), text
    if statement.value is not None and statement.interval is not None:
        low, high = statement.interval
        assert low <= high
        if statement.kind != "equal":  # its value is the margin
            assert low <= statement.value <= high, statement


@pytest.mark.parametrize("world", [("tiny", 1), ("inverse", 2), ("implicit-only", 1)])
def test_sentences_are_whole(world):
    for statement in trial(*world).statements:
        check_text(statement)


SMALL = {
    "two systems, one design": (["popularity", "user-knn"], ["all-items"]),
    "two systems, two designs": (["popularity", "user-knn"], ["all-items", "1r"]),
    "three systems, one design": (["random", "popularity", "user-knn"], ["all-items"]),
}


def small_evidence(systems, designs, users=300):
    data = replace(KINDS["quality"](1), users=users).data(0)
    plan = plan_of_level(LEVELS["quick"], us.Relevance(liked=4, gain="binary"), systems, 1)
    chosen = designs_of_level(LEVELS["quick"], designs)
    core = run_core(data.ratings, plan, chosen, metric="P@10", metrics=("P@10",))
    return evidence_of(core, margin=0.01, draws=2_000)


@pytest.mark.parametrize("case", SMALL)
def test_words_fit_the_number_of_systems_and_designs(case):
    systems, designs = SMALL[case]
    statements = statements_of(small_evidence(systems, designs))
    findings = [one for one in statements if one.role == "finding"]
    assert findings
    for statement in statements:
        check_text(statement)
        if len(systems) == 2:
            assert "all 1 " not in statement.text
            assert "nearest" not in statement.text
        if len(designs) == 1:
            assert "distinct designs" not in statement.text
            assert "of 1 designs" not in statement.text


def test_every_kind_that_words_numbers_has_a_text_of_its_rule_and_claim():
    for kind in CATALOGUE:
        for text in (kind.rule, kind.claims):
            assert text
            assert text == " ".join(text.split())


# The page


def test_the_page_is_up_to_date_with_the_rates():
    if rates() is None:
        pytest.skip("the file of rates is not there: make reliability")
    assert (DOCS / "reliability.md").read_text() == written_by("reliability").page(), (
        "run: make docs"
    )


def test_the_page_says_where_rates_are_missing_or_stale(audited, tmp_path):
    page = written_by("reliability").page
    file = tmp_path / "rates.json"
    assert "No result file is there: rate not measured for this version" in page(file)
    reliability(4, kinds=["tiny", "null"], least=0).save_rates(file)
    text = page(file)
    assert "4 worlds of 2 kinds were audited" in text
    assert "| `ahead` | 4 | 8 | 0.250 |" in text
    assert "rate not measured" not in text
    file.write_text(file.read_text().replace(code_fingerprint(), "0" * 16))
    assert "The rules have changed since" in page(file)
    assert all(f"| {kind} |" in text for kind in KINDS)


def test_a_reliability_of_nothing_is_empty():
    empty = Reliability((), "0")
    assert empty.table()["worlds"].sum() == 0
    assert empty.recognised().height == 0
    assert str(empty)
    assert empty.table()["rate"].null_count() == empty.table().height
