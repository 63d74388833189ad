"""Numbers and names as statements write them."""

from __future__ import annotations

import pytest

from unskew.auditing.designs import DESIGNS
from unskew.auditing.statements.setups import ASKED, PHRASES, QUESTIONS, phrase, question
from unskew.auditing.statements.statement import (
    about,
    decimals,
    names,
    number,
    points,
    signed,
    with_interval,
)


@pytest.mark.parametrize(
    ("value", "text"), [(0.012, ".012"), (-0.012, "−.012"), (1.5, "1.500"), (-0.0001, ".000")]
)
def test_numbers_have_no_leading_zero(value: float, text: str) -> None:
    assert number(value) == text


def test_signs() -> None:
    assert [signed(one) for one in (0.0124, -0.0124, 0.0)] == ["+.012", "−.012", ".000"]


def test_an_interval_keeps_the_digits_that_it_can_carry() -> None:
    assert with_interval(0.0121, 0.0061, 0.0181) == "+.012 [.006, .018]"
    assert with_interval(0.00121, 0.00061, 0.00181) == "+.0012 [.0006, .0018]"


@pytest.mark.parametrize(("low", "end"), [(-0.0002, "−.0002"), (0.0002, ".0002")])
def test_an_end_beside_zero_shows_its_side(low: float, end: str) -> None:
    assert f"[{end}, " in with_interval(0.01, low, 0.02)


@pytest.mark.parametrize("half", [0.0, float("nan"), float("inf"), -1.0])
def test_no_width_takes_three_decimals(half: float) -> None:
    assert decimals(half) == 3


def test_lists_of_names() -> None:
    assert names([]) == ""
    assert names(["a"]) == "a"
    assert names(["a", "b"]) == "a and b"
    assert names(["a", "b", "c"]) == "a, b and c"
    assert names(list("abcdef"), limit=3) == "a, b, c and 3 more"


def test_points_and_counts() -> None:
    assert [points(one) for one in (0.0131, 0.124, -0.05)] == ["1.3", "12", "−5.0"]
    assert [about(one) for one in (0.2, 99, 1_234)] == ["about 1", "about 99", "about 1,300"]


def test_every_design_has_words() -> None:
    assert set(DESIGNS) <= set(PHRASES)
    assert phrase("mine") == "under mine"


def test_every_design_asks_a_question_in_words() -> None:
    assert set(DESIGNS) <= set(QUESTIONS)
    assert set(QUESTIONS.values()) == set(ASKED)
    assert {question(design) for design in ("all-items", "1r", "mine")} == {"recommendation"}
    assert question("test-targets") == "re-ranking"
