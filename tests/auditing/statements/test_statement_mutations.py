"""A rule turned round must be seen: statements that it would not make are false far more often."""

from dataclasses import replace

import numpy as np
import pytest

from reliability.trial import BY_SLICE
from shared.trials import trial
from unskew.auditing.statements.first_screen import CATALOGUE
from unskew.auditing.statements.statement import Statement

CLAIMING = {kind.name: kind for kind in CATALOGUE if kind.is_true is not None}
INTERVALS = {"undecided", "not-above-popularity", "levelled-open"}
"""They claim an interval, whoever is ahead: their words are turned round, not their rule."""
OF_SOME = {"leads", "ties", "leads-some", "best"}
"""They name systems that theirs are above: turned round, the last one is above the first."""
RISE = 0.15
"""By this much the false rate must rise."""
FAST = (("tiny", 1), ("inverse", 2), ("implicit-only", 1), ("rating-predictor", 1))
MANY = (
    *FAST,
    ("taste", 3),
    ("pop+taste", 5),
    ("quality", 4),
    ("recsys", 6),
    ("near-equal-systems", 1),
    ("two-rankers", 1),
    ("two-rankers", 8),
    ("named-popular-good", 2),
    ("category-exposure", 3),
    ("popularity-inverted", 2),
    ("tiny", 30_006),
)


def evidence_for(kind, one):
    """Return what a kind looks at: randomly shown items only where it rests on them."""
    return one.evidence if kind.name in BY_SLICE else replace(one.evidence, random_slice=None)


def by_hand(kind, evidence, subjects):
    """Return a statement without words, about all the designs that its kind could name."""
    is_turned = kind.name in ("depends", "other-question")
    designs = (evidence.common, evidence.designs[-1]) if is_turned else (evidence.common,)
    return Statement(
        kind=kind.name,
        subjects=subjects,
        text="",
        role="pair",
        designs=designs,
        assumptions=kind.assumptions,
    )


def worded(kind, evidence, subjects):
    """Return the statement in its words; by hand where words need what the rule has seen."""
    try:
        return kind.word(evidence, subjects)
    except (AssertionError, KeyError, TypeError, ValueError):
        return by_hand(kind, evidence, subjects)


def normal(kind, one):
    return kind.say(evidence_for(kind, one))


def inverted(kind, one):
    """Return what would be said under the inverted rule."""
    evidence = evidence_for(kind, one)
    if kind.name in INTERVALS:
        pairs = list(kind.subjects(evidence))
        return [turned(statement) for statement in kind.say(evidence)] or [
            turned(kind.word(evidence, pair)) for pair in pairs[:1]
        ]
    if kind.name in OF_SOME:
        above = by_hand(kind, evidence, evidence.order[-1:])
        return [replace(above, others=(evidence.leader,))]
    wrong = replace(kind, holds=lambda e, s: not kind.holds(e, s))
    return [
        worded(kind, evidence, subjects)
        for subjects in wrong.subjects(evidence)
        if wrong.holds(evidence, subjects)
    ]


def turned(statement):
    """Return a statement whose interval begins where the right one ends."""
    low, high = statement.interval
    return replace(statement, interval=(high, high + (high - low)))


def false_rate(kind, trials, statements):
    """Return the mean over worlds of the share that is false; None where nothing is said."""
    shares = []
    for one in trials:
        judged = [kind.is_false(each, one.truth) for each in statements(kind, one)]
        judged = [each for each in judged if each is not None]
        if judged:
            shares.append(np.mean(judged))
    return float(np.mean(shares)) if shares else None


def rates(name, worlds):
    trials = [trial(*world) for world in worlds]
    kind = CLAIMING[name]
    return false_rate(kind, trials, normal), false_rate(kind, trials, inverted)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMING)
def test_an_inverted_rule_is_wrong_far_more_often(name):
    right, wrong = rates(name, MANY)
    assert wrong is not None
    assert right is not None, "never stated in these worlds: add one in which it is"
    assert wrong >= right + RISE


@pytest.mark.parametrize("name", CLAIMING)
def test_an_inverted_rule_is_wrong_more_often_in_a_few_worlds(name):
    right, wrong = rates(name, FAST)
    assert wrong is not None
    assert wrong >= (right or 0.0) + RISE
