"""Rules of single kinds of statements, on data by hand and on evidence by hand."""

import re
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

import unskew as us
from shared.trials import trial
from unskew.auditing.core.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.auditing.statements.evidence import Evidence, evidence_of
from unskew.auditing.statements.first_screen import KINDS, statements_of
from unskew.bias.popularity.liked_by_popularity import POPULAR_LIKING
from unskew.report.columns import Row
from unskew.report.estimates import Estimates

# Tiers and questions


@dataclass
class Leads:
    """Evidence by hand: which pairs are ahead under which design."""

    ahead_in: dict[str, set[tuple[str, str]]]
    """By design: the pairs whose first system is ahead of the second."""
    order: tuple[str, ...] = ("a", "b", "c", "d")
    references: tuple[str, ...] = ()

    def __post_init__(self):
        core = SimpleNamespace(designs=dict.fromkeys(self.ahead_in), metric="P@10")
        core.tuned, core.implicit = ({"a": 1},), False
        self.evidence = ByHand(core=core, contrasts=None, references=self.references)
        self.evidence.__dict__.update(order=self.order, ahead_in=self.ahead_in)


class ByHand(Evidence):
    """Evidence whose contrasts are set by hand."""

    def contrast(self, a, b, design=None):
        pairs = self.ahead_in[design or self.common]
        value = 0.01 * (((a, b) in pairs) - ((b, a) in pairs))
        facts = {"detectable": 0.02}
        return Row(
            keys={}, facts=facts, value=value, low=value - 0.005, high=value + 0.005, se=0.002, n=99
        )


def said(leads, *kinds):
    return [each for kind in kinds for each in KINDS[kind].say(leads.evidence)]


def over(above, below):
    return {(a, b) for a in above for b in below}


FINDINGS = ("leads", "ties", "leads-some", "undecided")


@pytest.mark.parametrize(
    ("pairs", "kind", "subjects", "others"),
    [
        (over("a", "bcd"), "leads", ("a",), ("b", "c", "d")),
        (over("ab", "cd"), "ties", ("a", "b"), ("c", "d")),
        (over("abc", "d") | {("a", "c")}, "ties", ("a", "b"), ("d",)),
        ({("a", "d")}, "leads-some", ("a",), ("d",)),
        (set(), "undecided", ("a", "b"), ()),
        (over("a", "d") | over("b", "c"), "leads-some", ("a",), ("d",)),
    ],
)
def test_the_leading_tier_is_what_nothing_is_ahead_of(pairs, kind, subjects, others):
    found = said(Leads({"all-items": pairs}), *FINDINGS)
    assert [(each.kind, each.subjects, each.others) for each in found] == [(kind, subjects, others)]


def test_a_reference_that_is_ahead_is_named():
    ahead = over("a", "bcd") | over("b", "cd")
    leads = Leads({"all-items": ahead}, references=("a",))
    (finding,) = said(leads, *FINDINGS)
    assert (finding.kind, finding.subjects) == ("leads", ("b",))
    assert "The reference a scores higher." in finding.text
    (finding,) = said(Leads({"all-items": over("a", "bcd")}, references=("a",)), *FINDINGS)
    assert finding.text.startswith("The reference a scores higher than b among all items")


@pytest.mark.parametrize(
    ("second", "kind"),
    [("1r", "depends"), ("skew", "other-question"), ("test-targets", "other-question")],
)
def test_a_conflict_is_one_within_a_question(second, kind):
    leads = Leads({"all-items": {("a", "b")}, second: {("b", "a")}})
    found = said(leads, "depends", "other-question")
    assert [(each.kind, each.subjects, each.designs) for each in found] == [
        (kind, ("a", "b"), ("all-items", second))
    ]


def test_designs_that_leave_a_pair_open_are_no_conflict():
    assert not said(Leads({"all-items": {("a", "b")}, "1r": set()}), "depends", "other-question")


def test_popularity_has_an_answer_of_its_own():
    order = ("a", "popularity")
    (one,) = said(
        Leads({"all-items": {order}, "1r": {order}, "u1r": set()}, order), "beats-popularity"
    )
    assert one.designs == ("all-items", "1r")
    assert "also under 1 of 2 other setups that ask the same" in one.text
    (one,) = said(Leads({"all-items": set()}, order), "not-above-popularity")
    assert one.subjects == order
    (one,) = said(Leads({"all-items": {order[::-1]}}, order[::-1]), "not-above-popularity")
    assert one.subjects == order
    added = ("a", "popularity (reference)")
    (one,) = said(Leads({"all-items": {added}}, added, added[1:]), "beats-popularity")
    assert one.subjects == added


# Two lines of evidence


def kinds_of(evidence, *kinds):
    return {kind: {each.subjects for each in KINDS[kind].say(evidence)} for kind in kinds}


def test_better_needs_a_lead_and_liking_within_users():
    evidence = replace(trial("rating-predictor", 1).evidence, random_slice=None)
    said = kinds_of(evidence, "better", "better-despite", "evidence-disagrees")
    despite = said["better-despite"] | said["evidence-disagrees"]
    assert ("smoothed-average", "popularity") in despite
    assert all(evidence.ahead(*pair) for pair in said["better"])
    assert all(evidence.ahead(*pair[::-1]) for pair in despite)
    assert all(evidence.liked_pair(*pair).z > 2.5 for pair in said["better"] | despite)


@pytest.mark.parametrize(
    ("low", "high", "despite"),
    [(-0.02, 0.05, True), (0.01, 0.05, False), (-0.05, -0.01, False), (-0.02, 0.2, False)],
)
def test_liking_overrules_a_score_only_where_popularity_means_nothing(low, high, despite):
    evidence = replace(trial("rating-predictor", 1).evidence, random_slice=None)
    slope = Estimates.of_rows(
        POPULAR_LIKING, [{"value": (low + high) / 2, "low": low, "high": high}], level=0.99
    )
    said = kinds_of(replace(evidence, popular_liking=slope), "better-despite", "evidence-disagrees")
    assert bool(said["better-despite"]) == despite
    assert bool(said["evidence-disagrees"]) != despite


def test_where_fans_rate_what_they_seek_the_evidence_disagrees_and_nothing_is_preferred():
    one = trial("sought-by-fans", 1)
    evidence = replace(one.evidence, random_slice=None)
    assert not KINDS["better-despite"].say(evidence)
    found = KINDS["evidence-disagrees"].say(evidence)
    assert found
    for each in found:
        assert "These data cannot tell" in each.text
        assert "Treat" not in each.text
        assert KINDS["evidence-disagrees"].is_false(each, one.truth) is False
    # To prefer what is liked when judged would be wrong: that is why nothing is preferred.
    assert np.mean([one.truth.liking(*each.subjects) <= 0 for each in found]) > 0.8


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
