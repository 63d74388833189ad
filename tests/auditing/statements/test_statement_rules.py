"""Rules of single kinds of statements, on data by hand and on evidence by hand."""

import re
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import unskew as us
from shared.trials import trial
from unskew.auditing.audit import audit
from unskew.auditing.core.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.auditing.statements.evidence import evidence_of
from unskew.auditing.statements.first_screen import KINDS, statements_of
from unskew.report.columns import Row

SMALL = {"repeats": 2, "permutations": 200}


# Undecided under the common design, ahead under another


@pytest.fixture(scope="module")
def niche_list():
    """Two lists that hit equally often: one what everybody rated, one what few people rated."""
    rng = np.random.default_rng(4)
    users, groups = 400, 20
    rows = []
    for user in range(users):
        rows += [(user, "hit", 5), (user, f"n{user % groups}", 5), (user, f"n{user % 7 + 20}", 1)]
    known = [(user, f"t{user % 9}", 5) for user in range(users)]
    known += [(user, "hit", 5) for user in range(1000, 1400)]
    known += [(user, f"n{user % groups}", 5) for user in range(1000, 1020)]
    table, train = (
        dict(zip(("user", "item", "rating"), zip(*part, strict=True), strict=True))
        for part in (rows, known)
    )
    runs = {
        "popular": {
            user: ["hit", "z"] if rng.random() < 0.5 else ["y", "z"] for user in range(users)
        },
        "niche": {
            user: [f"n{user % groups}", "z"] if rng.random() < 0.5 else ["y", "z"]
            for user in range(users)
        },
    }
    return audit(
        judgments={name: list(column) for name, column in table.items()},
        runs=runs,
        train={name: list(column) for name, column in train.items()},
        references=False,
        liked=4,
        plan="quick",
        metric="P@2",
        **SMALL,
    )


def test_a_list_that_leads_under_another_design_alone_is_said_to(niche_list):
    evidence = niche_list.evidence
    pair = ("niche", "popular")
    assert not evidence.ahead(*pair)
    assert not evidence.ahead(*pair[::-1])
    assert evidence.ahead(*pair, "skew")
    said = [one for one in niche_list.statements if one.kind == "ahead-elsewhere"]
    assert [one.subjects for one in said] == [pair]
    assert said[0].designs[0] in ("skew", "wtd-h")
    assert said[0].interval[0] > 0
    assert said[0].text.startswith("niche is ahead of popular ")
    assert "The order is open on the judgments as they are (" in said[0].text
    assert "no design reverses it" in said[0].text
    screen = niche_list.first_screen
    assert screen.finding.kind == "undecided"
    assert screen.reason == said[0]
    assert screen.verdict == "not settled"


@dataclass
class Leads:
    """Evidence by hand: who is ahead under which design, and by how much."""

    ahead_in: dict[str, int]
    """By design: 1 where a is ahead of b, -1 where b is ahead of a, 0 where neither is."""
    order: tuple[str, ...] = ("a", "b")
    pairs: tuple[tuple[str, str], ...] = (("a", "b"), ("b", "a"))
    common: str = "all-items"
    designs: tuple[str, ...] = field(init=False)

    def __post_init__(self):
        self.designs = tuple(self.ahead_in)

    def contrast(self, a, b, design=None):
        sign = self.ahead_in[design or self.common] * (1 if a == "a" else -1)
        value = 0.01 * sign
        return Row(keys={}, facts={}, value=value, low=value - 0.005, high=value + 0.005, se=0.002)

    def ahead(self, a, b, design=None):
        return self.contrast(a, b, design).low > 0


@pytest.mark.parametrize(
    ("ahead_in", "said"),
    [
        ({"all-items": 0, "skew": 1, "1r": 0}, [("a", "b")]),
        ({"all-items": 0, "skew": -1, "1r": -1}, [("b", "a")]),
        ({"all-items": 0, "skew": 1, "1r": -1}, []),  # depends
        ({"all-items": 1, "skew": 1, "1r": 0}, []),  # ahead
        ({"all-items": 0, "skew": 0, "1r": 0}, []),
        ({"all-items": -1, "skew": 1, "1r": 0}, []),  # depends
    ],
)
def test_it_is_said_only_of_pairs_that_no_design_reverses(ahead_in, said):
    made = KINDS["ahead-elsewhere"].say(Leads(ahead_in))
    assert [one.subjects for one in made] == said


# A system behind in score


def test_a_system_behind_in_score_is_better_only_where_its_lists_predict_opinions():
    evidence = replace(trial("rating-predictor", 1).evidence, random_slice=None)
    better = {one.subjects for one in KINDS["better-despite"].say(evidence)}
    liked = {one.subjects for one in KINDS["liked-despite"].say(evidence)}
    assert ("biased-mf", "popularity") in better
    assert ("smoothed-average", "popularity") in liked
    assert not better & liked
    tells = {one.subjects[0] for one in KINDS["system-opinion"].say(evidence)}
    assert {a for a, _ in better} <= tells
    assert not {a for a, _ in liked} & tells
    assert all(evidence.ahead(b, a) for a, b in better | liked)
    # What is not claimed cannot be overturned.
    even = {one.subjects for one in KINDS["break-even"].say(evidence)}
    assert better <= even
    assert not liked & even


def test_where_fans_rate_what_they_seek_no_system_behind_in_score_is_called_better():
    one = trial("sought-by-fans", 1)
    evidence = replace(one.evidence, random_slice=None)
    assert not KINDS["better-despite"].say(evidence)
    said = KINDS["liked-despite"].say(evidence)
    assert said
    for each in said:
        assert each.assumptions == ()
        assert "these data cannot tell" in each.text
        assert "better than" not in each.text
        assert KINDS["liked-despite"].is_false(each, one.truth) is False
        # To call it better would be wrong: that is why it is not.
    assert np.mean([one.truth.liking(*each.subjects) <= 0 for each in said]) > 0.8


# A sample of users


def test_a_sample_of_users_is_stated():
    shop = us.world("shop", users=90, items=40, seed=3)
    level = LEVELS["quick"]
    plan = plan_of_level(level, us.Relevance(liked=4), ["random", "popularity"], 3)
    designs = designs_of_level(level, ["all-items", "test-items"])
    texts = []
    for number in (None, 50):
        core = run_core(shop.ratings, replace(plan, judged_users=number), designs, metric="P@10")
        texts.append([one for one in statements_of(evidence_of(core)) if one.kind == "sampled"])
    assert texts[0] == []
    assert len(texts[1]) == 1
    assert re.match(r"50 of 59 users are judged, drawn at random; ", texts[1][0].text)
