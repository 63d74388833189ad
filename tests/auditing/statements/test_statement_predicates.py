"""Predicates of statements: true in a world that bears them out, false in one that does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from unskew.auditing.statements.first_screen import CATALOGUE, KINDS
from unskew.auditing.statements.statement import (
    CONDITIONS,
    DISPLAY_SELECTS,
    DISPLAY_SWAYS,
    Statement,
)

WHERE = ("all-items", "skew")
SWAPPED = (
    "ahead",
    "beats-popularity",
    "levelled",
    "depends",
    "other-question",
    "match",
    "opinion",
    "better",
    "better-despite",
    "evidence-disagrees",
    "better-shown",
    "predicts-use",
)
"""Kinds that say that a is above b."""
OF_ONE = ("system-match", "system-opinion")
OF_SEVERAL = ("leads", "ties", "leads-some", "best")
"""Kinds that say that each subject is above each of the others."""
OF_POPULARITY = ("popular-liked", "popular-not-liked")
WITHIN = ("undecided", "not-above-popularity", "levelled-open", "equal", "popular")
"""Kinds about the size of a difference."""


@dataclass
class Truth:
    """A truth by hand: a is above b by these numbers, and b below a."""

    value: float = 0.02
    match_value: float = 0.02
    slope: float = 0.0
    turned: tuple[str, ...] = ()
    wrong: frozenset[str] = field(default_factory=frozenset)

    def _of(self, a: str, value: float) -> float:
        return value if a == "a" else -value

    def lead(self, design: str, a: str, b: str) -> float:
        return self._of(a, -self.value if design in self.turned else self.value)

    def liking(self, a: str, b: str) -> float:
        return self._of(a, self.value)

    def judged_liking(self, a: str, b: str) -> float:
        return self._of(a, self.value)

    def match(self, a: str, b: str | None = None) -> float:
        return self._of(a, self.match_value)

    def opinion(self, a: str, b: str | None = None) -> float:
        return self._of(a, self.match_value)

    def popular_liking(self, *, rated: bool = False) -> float:
        return self.slope

    def broken(self, condition: str) -> bool:
        return condition in self.wrong


def statement(kind: str, subjects: tuple[str, ...], **more: object) -> Statement:
    values = {"value": 0.05, "interval": (0.01, 0.09), "designs": WHERE} | more
    if kind in (*WITHIN, "predicts-use"):
        values["designs"] = WHERE[:1]
    return Statement(
        kind=kind,
        subjects=subjects,
        text="",
        role="pair",
        assumptions=KINDS[kind].assumptions,
        **values,
    )


def test_every_kind_that_claims_something_is_tested_here() -> None:
    claiming = {kind.name for kind in CATALOGUE if kind.is_true is not None}
    assert claiming == {*SWAPPED, *OF_ONE, *OF_SEVERAL, *OF_POPULARITY, *WITHIN}


@pytest.mark.parametrize("kind", SWAPPED)
def test_a_swapped_pair_is_refuted_where_there_is_a_difference(kind: str) -> None:
    truth = Truth(turned=("skew",) if kind in ("depends", "other-question") else ())
    assert KINDS[kind].is_false(statement(kind, ("a", "b")), truth) is False
    assert KINDS[kind].is_false(statement(kind, ("b", "a")), truth) is True


@pytest.mark.parametrize("kind", SWAPPED)
def test_no_difference_refutes_who_is_above(kind: str) -> None:
    nothing = Truth(value=0.0, match_value=0.0)
    assert KINDS[kind].is_false(statement(kind, ("a", "b")), nothing) is True


@pytest.mark.parametrize("kind", OF_ONE)
def test_a_system_without_the_step_refutes_it(kind: str) -> None:
    assert KINDS[kind].is_false(statement(kind, ("a",)), Truth()) is False
    assert KINDS[kind].is_false(statement(kind, ("a",)), Truth(match_value=-0.01)) is True
    assert KINDS[kind].is_false(statement(kind, ("a",)), Truth(match_value=0.0)) is True


@pytest.mark.parametrize("kind", ["undecided", "not-above-popularity", "levelled-open"])
def test_a_difference_outside_the_interval_refutes_it(kind: str) -> None:
    told = statement(kind, ("a", "b"), interval=(-0.01, 0.03))
    assert KINDS[kind].is_false(told, Truth(value=0.02)) is False
    assert KINDS[kind].is_false(told, Truth(value=0.031)) is True
    assert KINDS[kind].is_false(told, Truth(value=-0.011)) is True


@pytest.mark.parametrize("times", [1.0, 1.1, 1.2])
def test_a_difference_of_a_margin_or_more_refutes_equality(times: float) -> None:
    equal = KINDS["equal"]
    assert equal.is_false(statement("equal", ("a", "b"), value=0.01), Truth(value=0.0099)) is False
    for sign in (1, -1):
        truth = Truth(value=sign * times * 0.01)
        assert equal.is_false(statement("equal", ("a", "b"), value=0.01), truth) is True


def test_a_match_of_more_than_half_the_lead_refutes_numbers_alone() -> None:
    popular = KINDS["popular"]
    assert popular.is_false(statement("popular", ("a", "b")), Truth(match_value=0.009)) is False
    assert popular.is_false(statement("popular", ("a", "b")), Truth(match_value=0.011)) is True


@pytest.mark.parametrize("kind", OF_SEVERAL)
def test_one_of_several_that_is_not_above_refutes_it(kind: str) -> None:
    above = statement(kind, ("a",), others=("b", "c"))
    assert KINDS[kind].is_false(above, Truth()) is False
    assert KINDS[kind].is_false(above, Truth(value=0.0)) is True
    assert KINDS[kind].is_false(replace(above, subjects=("a", "b"), others=("c",)), Truth()) is True


def test_the_sign_of_the_slope_decides_whether_popular_items_are_liked() -> None:
    for slope, liked in ((0.1, True), (-0.1, False)):
        truth = Truth(slope=slope)
        assert KINDS["popular-liked"].is_false(statement("popular-liked", ()), truth) is not liked
        assert (
            KINDS["popular-not-liked"].is_false(statement("popular-not-liked", ()), truth) is liked
        )
    for kind in OF_POPULARITY:
        assert KINDS[kind].is_false(statement(kind, ()), Truth()) is True


@pytest.mark.parametrize("kind", [one.name for one in CATALOGUE if one.assumptions])
def test_a_broken_condition_leaves_a_conditional_statement_unrefuted(kind: str) -> None:
    wrong = statement(kind, ("b",), others=("a",))
    if kind in SWAPPED:
        wrong = statement(kind, ("b", "a"))
    for condition in CONDITIONS:
        stated = condition in KINDS[kind].assumptions
        slope = -1.0 if kind == "popular-liked" else 1.0
        truth = Truth(slope=slope, wrong=frozenset({condition}))
        assert KINDS[kind].is_false(wrong, truth) is (None if stated else True)


def test_statements_about_liking_are_conditional_or_rest_on_random_display() -> None:
    about_liking = {"better", "better-despite", "best", "popular-liked"}
    for name in about_liking:
        assert set(KINDS[name].assumptions) == {DISPLAY_SWAYS, DISPLAY_SELECTS}
    assert KINDS["better-shown"].assumptions == ()


def test_names_are_unique_and_rules_are_in_words() -> None:
    assert len(KINDS) == len(CATALOGUE)
    assert all(len(kind.rule) > 3 and kind.claims for kind in CATALOGUE)
