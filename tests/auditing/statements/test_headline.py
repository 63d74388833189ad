"""The first screen: the verdict, the lead in hits, the users who are better off, the one chart."""

import json
import math
import re
from collections import defaultdict
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.sample import sample
from unskew.auditing.audit import audit
from unskew.auditing.designs import DESIGNS
from unskew.auditing.page import headline as headlines
from unskew.auditing.page.charts import (
    MOST_SYSTEMS,
    PANELS,
    TRUTH,
    chart_rows,
    columns_for,
    drawn_systems,
    main_chart,
)
from unskew.auditing.page.headline import headline, lead_of, lists, pair_of, per_list, users_ahead
from unskew.auditing.statements.first_screen import FirstScreen
from unskew.auditing.statements.statement import Statement
from unskew.report.charts import system_colours
from unskew.report.document import STATUSES

BY_SCORE = "settled by score only"
SMALL = {"repeats": 2, "permutations": 200}
FIELDS = ["design", "system", "value", "low", "high", "chance", "place"]


def world(designs=("all-items", "1r", "skew"), **settings):
    shop = us.world("shop", users=150, items=60, seed=3)
    systems = ["random", "popularity", "smoothed-average", "user-knn"]
    return audit(
        shop, "quick", algorithms=systems, designs=list(designs), tune=False, **SMALL, **settings
    )


def lists_of(**given):
    parts = sample(users=150, items=80)
    return audit(judgments=parts.test, runs=parts.runs, plan="quick", liked=4, **SMALL, **given)


def events():
    """Return an audit of uses: three groups of users, each with items of its own."""
    rng = np.random.default_rng(2)
    likely = np.where(np.arange(120)[:, None] % 3 == np.arange(45) % 3, 0.4, 0.1)
    user, item = np.nonzero(rng.random((120, 45)) < likely)
    return audit(
        {"user": user, "item": item},
        "quick",
        algorithms=["random", "popularity", "item-knn"],
        designs=["all-items", "1r"],
        tune=False,
        **SMALL,
    )


AUDITS = {
    "world": world,
    "one design": lambda: world(["all-items"]),
    "another metric": lambda: world(metric="nDCG@5"),
    "lower is better": lambda: world(metric="anti-P@10"),
    "no precision": lambda: world(metric="nDCG@7"),
    "lists": lambda: lists_of(),
    "lists with train": lambda: lists_of(train=sample(users=150, items=80).train),
    "events": events,
}


@cache
def audit_of(name):
    return AUDITS[name]()


@pytest.fixture(params=AUDITS)
def result(request):
    return audit_of(request.param)


# Users who are better off


def plain_counts(parts, metric, a, b):
    """Count users by plain loops over the values of each list."""
    by_user = defaultdict(list)
    for part in parts:
        of_split = defaultdict(list)
        first, second = part.values(a, metric), part.values(b, metric)
        keep = part.averaged(a) & part.averaged(b)
        owners = part.user_ids.raw(part.lists["user"].to_numpy()).to_list()
        for at, owner in enumerate(owners):
            if keep[at]:
                one, other = (0.0 if math.isnan(v[at]) else v[at] for v in (first, second))
                of_split[owner].append(one - other)
        for owner, values in of_split.items():
            by_user[owner].append(math.fsum(values) / len(values))
    means = [math.fsum(values) / len(values) for values in by_user.values()]
    return sum(m > 1e-9 for m in means), sum(m < -1e-9 for m in means), len(means)


@pytest.mark.parametrize("design", ["all-items", "1r", "skew"])
def test_users_are_counted_as_by_plain_loops(design):
    made = audit_of("world")
    parts = made.scores[design]
    for a, b in (("popularity", "random"), ("user-knn", "popularity")):
        count = users_ahead(parts, "P@10", a, b)
        better, worse, users = plain_counts(parts, "P@10", a, b)
        assert (count.better, count.worse, count.users) == (better, worse, users)
        assert count.better > 0
        turned = users_ahead(parts, "P@10", b, a)
        assert (turned.better, turned.worse) == (count.worse, count.better)
        anti = users_ahead(parts, "anti-P@10", a, b)
        more, fewer, _ = plain_counts(parts, "anti-P@10", a, b)
        assert (anti.better, anti.worse) == (fewer, more)  # fewer disliked items are better


def test_opposite_splits_are_no_difference():
    """A user who gains in one split what is lost in another is neither better nor worse off."""
    test = {"user": [1, 1, 2, 2, 3, 3], "item": [10, 20] * 3, "rating": [5, 1] * 3}
    hit, miss = {1: [10], 2: [10], 3: [10]}, {1: [20], 2: [20], 3: [20]}
    both = [
        us.evaluate(test, {"a": {**hit, 3: [20]}, "b": miss}, "P@1", liked=4),
        us.evaluate(test, {"a": miss, "b": {**miss, 1: [10]}}, "P@1", liked=4),
    ]
    count = users_ahead(both, "P@1", "a", "b")
    assert (count.better, count.worse, count.same) == (1, 0, 2)


# The lead


def test_the_lead_is_in_hits(result):
    a, b = pair_of(result)
    lead = lead_of(result, a, b, result.common)
    if result.metric == "nDCG@7":
        assert lead is None
        return
    k = result.core.k
    anti = result.metric.startswith("anti")
    metric = f"anti-P@{k}" if anti else f"P@{k}"
    parts = result.scores[result.common]
    hits = {
        name: math.fsum(k * part.mean(metric)[name] for part in parts) / len(parts)
        for name in (a, b)
    }
    assert lead.value == pytest.approx(hits[a] - hits[b], abs=1e-9)
    assert lead.low <= lead.value <= lead.high
    if result.metric == metric:
        contrast = result.evidence.contrast(a, b)
        ends = (
            [-k * contrast.high, -k * contrast.low]
            if anti
            else [k * contrast.low, k * contrast.high]
        )
        assert [lead.low, lead.high] == pytest.approx(ends)


def test_numbers_of_the_lead_are_those_printed():
    made = audit_of("world")
    a, b = pair_of(made)
    lead = lead_of(made, a, b, made.common)
    fact = headline(made).facts[0]
    sizes = sorted(map(abs, (lead.low, lead.high)))
    if lead.low <= 0 <= lead.high:
        assert fact.value == "no clear lead"
    elif abs(lead.value) >= 0.5:
        assert fact.value == f"{abs(lead.value):.2f} more hits per list"
        assert f"interval: {per_list(sizes[0])} to {per_list(sizes[1])})" in fact.text
    else:
        assert fact.value == f"1 more hit in {lists(1 / abs(lead.value))} lists"
        assert f"every {lists(1 / sizes[1])} to {lists(1 / sizes[0])} lists)" in fact.text


def with_lead(made, monkeypatch, value, low, high):
    """Return the first fact as if the lead were another one."""
    a, b = pair_of(made)
    lead = replace(lead_of(made, a, b, made.common), value=value, low=low, high=high)
    monkeypatch.setattr(headlines, "lead_of", lambda *_: lead)
    return headline(made).facts[0], a, b


@pytest.mark.parametrize(
    ("lead", "value", "says"),
    [
        ((0.07, 0.05, 0.09), "1 more hit in 14 lists", "every 11 to 20 lists"),
        ((0.67, 0.53, 0.8), "0.67 more hits per list", "0.53 to 0.80"),
        ((-0.1, -0.2, -0.05), "1 fewer hit in 10 lists", "one hit fewer than"),
        ((0.0008, 0.0005, 0.0011), "1 more hit in 1,250 lists", "every 909 to 2,000 lists"),
        ((0.1, -0.05, 0.25), "no clear lead", "up to 1 hit in 4 lists more or up to 1 hit in 20"),
        ((0.1, 0.0, 0.25), "no clear lead", "up to 1 hit in 4 lists more than"),
        ((0.0, 0.0, 0.0), "no clear lead", "equally many hits"),
        ((0.4, -0.1, 0.9), "no clear lead", "up to 0.90 hits per list more"),
    ],
)
def test_words_of_a_lead(monkeypatch, lead, value, says):
    fact, a, b = with_lead(audit_of("world"), monkeypatch, *lead)
    assert fact.value == value
    assert says in fact.text
    assert a in fact.text
    assert b in fact.text


def test_a_lead_without_an_interval_is_no_lead(monkeypatch):
    made = audit_of("world")
    a, b = pair_of(made)
    evidence = made.evidence
    broken = replace(evidence.contrast(a, b), low=math.nan, high=math.nan)
    monkeypatch.setattr(type(evidence), "contrast", lambda *_: broken)
    fact = headlines._lead_fact(made, a, b, made.common)
    assert fact.value == "no clear lead"
    assert "has no interval" in fact.text
    assert "nan" not in fact.text


def test_numbers_of_lists():
    shown = {1.04: "1", 2.44: "2.4", 9.96: "10", 14.4: "14", 999.6: "1,000", 123_456: "123,000"}
    assert {count: lists(count) for count in shown} == shown
    assert [per_list(one) for one in (0, 0.0001, 0.034, 0.67)] == [
        "0.00",
        "less than 0.001",
        "0.034",
        "0.67",
    ]


# Facts


def test_facts_hold_the_numbers_of_the_scores(result):
    a, b = pair_of(result)
    facts = headline(result).facts
    design = result.common
    users = next(fact for fact in facts if "users better off" in fact.value)
    better, worse, count = plain_counts(result.scores[design], result.metric, a, b)
    if result.metric.startswith("anti"):
        better, worse = worse, better
    assert users.value == f"{better:,} users better off, {worse:,} worse"
    assert f"Of {count:,} users" in users.text
    chance = [fact for fact in facts if "by chance" in fact.value]
    known = result.table().filter(design=design)["random"][0]
    assert len(chance) == (known is not None)
    if known is not None and result.metric == "P@10":
        assert per_list(10 * known) in chance[0].value


def test_a_hit_is_what_the_data_say():
    used = headline(audit_of("events")).facts[0].text
    assert "the user used in the test part" in used
    assert "liked" not in used
    assert "the user liked in the test part" in headline(audit_of("world")).facts[0].text
    assert "disliked item" in headline(audit_of("lower is better")).facts[0].text
    assert "hit" not in headline(audit_of("no precision")).facts[0].text


# The verdict


def screen_of(made, verdict, kind, step=None):
    """Return the headline as if the first screen stated something else."""

    def stated(kind, subjects, others=()):
        return Statement(
            kind=kind, subjects=subjects, others=others, text="", role="finding", designs=()
        )

    leader, *others = made.order()
    subjects = (leader, others[0]) if kind == "undecided" else (leader,)
    finding = stated(kind, subjects, tuple(others))
    screen = FirstScreen(verdict, finding, (), None if step is None else stated(*step))
    changed = replace(made)
    changed.__dict__["first_screen"] = screen
    return headline(changed)


@pytest.mark.parametrize(
    ("verdict", "kind", "step", "status", "says"),
    [
        (
            "settled",
            "leads",
            ("best", (0, 1)),
            "settled",
            "liking: {0} scores highest, and the same",
        ),
        (BY_SCORE, "leads", ("better", (0, 1)), "score", "like recommendations of {0} more than"),
        (BY_SCORE, "leads", ("evidence-disagrees", (1, 0)), "score", "evidence disagree"),
        (BY_SCORE, "leads", ("better-shown", (1, 0)), "score", "the recommendations of {1} more"),
        (BY_SCORE, "leads", ("liking-open", (0, 1)), "score", "is open"),
        (BY_SCORE, "leads", None, "score", "is open"),
        ("not settled", "undecided", ("more-users", (0, 1)), "open", "over {1} may be chance"),
        ("depends on the setup", "leads", None, "depends", "not under every setup"),
    ],
)
def test_the_verdict_in_words(verdict, kind, step, status, says):
    made = audit_of("world")
    pair = made.order()[:2]
    made_step = None if step is None else (step[0], tuple(pair[at] for at in step[1]))
    shown = screen_of(made, verdict, kind, made_step)
    assert shown.status == status
    assert says.format(*pair) in shown.verdict
    assert shown.verdict.startswith("Settled") == (status == "settled")
    assert any("hit" in fact.value or "lead" in fact.value for fact in shown.facts)


def test_equal_systems_are_called_so():
    test = {"user": np.repeat(np.arange(8), 2), "item": [1, 2] * 8, "rating": [5, 1] * 8}
    runs = {name: {user: [1, 3] for user in range(8)} for name in ("one", "other")}
    made = audit(judgments=test, runs=runs, liked=4, plan="quick", metric="P@2", **SMALL)
    shown = headline(made)
    assert shown.status == "open"
    assert shown.verdict == "Not settled: one and other score the same."
    assert shown.facts[0].value == "no clear lead"
    assert "equally many hits" in shown.facts[0].text
    assert shown.facts[1].value == "0 users better off, 0 worse"


def test_every_headline_is_whole(result):
    shown = headline(result)
    assert shown.status in STATUSES
    assert 2 <= len(shown.facts) <= 4
    for fact in shown.facts:
        assert len(fact.value) <= 36
        assert not re.search(r"\bnan\b|\binf\b|\bNone\b|\{|\}", f"{fact.value} {fact.text}")
        assert fact.text.endswith(".")


# The chart


def test_rows_of_the_chart_are_those_of_the_table(result):
    rows = main_chart(result).spec["datasets"]["rows"]
    assert all(list(row) == FIELDS for row in rows)
    table = result.table().rename({"random": "chance"})
    shown = pl.DataFrame([row for row in rows if row["design"] != TRUTH], schema=table.schema)
    assert shown.equals(table)
    assert {row["design"] for row in rows} - {TRUTH} == set(result.designs)


def test_the_truth_is_the_last_panel():
    made = audit_of("world")
    true = {row["system"]: row for row in chart_rows(made) if row["design"] == TRUTH}
    known = made.truth.rows.filter(design="all-items", metric="P@10", quantity="true")
    values = dict(known.select("system", "value").iter_rows())
    assert {name: row["value"] for name, row in true.items()} == values
    ordered = sorted(values, key=lambda one: -values[one])
    assert [true[name]["place"] for name in ordered] == [1, 2, 3, 4]
    spec = main_chart(made).spec
    assert spec["facet"]["sort"][-1] == TRUTH
    assert TRUTH not in main_chart(audit_of("lists")).spec["facet"]["sort"]


def test_colours_are_those_of_all_charts(result):
    text = json.dumps(main_chart(result).spec)
    colours = system_colours(result.order())
    wanted = json.dumps({"domain": list(colours), "range": list(colours.values())})
    assert wanted in text


def test_layout_is_driven_by_the_rows():
    """Other rows of the same fields give another chart: nothing in it was worked out before."""
    from unskew.report.charts import Figure

    figure = main_chart(audit_of("world"))
    spec = figure.to_dict()
    one = {"low": 0.1, "high": 0.3, "chance": 0.05}
    spec["datasets"]["rows"] = [
        {"design": "u1r", "system": name, "value": 0.2, "place": 1, **one} for name in ("x", "y")
    ]
    drawn = Figure("other", spec)._as(".svg").decode()
    assert "1 x" in drawn.replace("\xa0", " ").replace("  ", " ")
    assert "popularity" not in drawn


def test_panels_have_plain_words():
    figure = main_chart(audit_of("world"))
    drawn = figure._as(".svg").decode()
    for design in ("all-items", "1r", "skew"):
        assert PANELS[design] in drawn
    assert "In truth" in drawn
    assert "1 used item, 100 others" in main_chart(audit_of("events"))._as(".svg").decode()
    assert set(PANELS) >= set(DESIGNS)


def test_notes_fit_a_phone(result):
    title = main_chart(result).spec["title"]
    for line in (title["text"], *title["subtitle"]):
        assert len(line) <= 64


def test_columns_fill_rows():
    for panels in range(1, 13):
        columns = columns_for(panels)
        assert 1 <= columns <= 4
        assert columns <= panels


def test_few_of_many_systems_are_drawn():
    rng = np.random.default_rng(1)
    users = np.arange(40)
    test = {"user": np.repeat(users, 5), "item": np.tile(np.arange(5), 40), "rating": [5] * 200}
    runs = {}
    for number in range(12):
        order = np.argsort(np.arange(20) + (1 + number) * rng.normal(size=(40, 20)))
        runs[f"s{number:02}"] = us.Run.from_arrays(users, order[:, :10])
    made = audit(judgments=test, runs=runs, liked=4, plan="quick", metric="P@5", **SMALL)
    shown = drawn_systems(made)
    assert len(shown) == MOST_SYSTEMS
    assert set(pair_of(made)) <= set(shown)
    assert shown == [one for one in made.order() if one in shown]
    notes = main_chart(made).spec["title"]["subtitle"]
    assert "4 systems are not drawn" in notes
    rows = main_chart(made).spec["datasets"]["rows"]
    assert {row["system"] for row in rows} == set(shown)
