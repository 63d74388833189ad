"""Generated cases whose truth is known: a small version of `benchmarks/explain_cases.py`."""

import sys

import pytest

from shared import ROOT
from unskew.conventions.explaining.printed import Printed, PrintedQuantity, Target
from unskew.conventions.explaining.search import search
from unskew.conventions.libraries import all_libraries

sys.path.insert(0, str(ROOT / "benchmarks"))
import explain_cases

sys.path.pop(0)


@pytest.fixture(scope="module")
def libraries():
    return all_libraries()


def test_the_truth_is_among_the_answers_and_first(libraries):
    result = explain_cases.summary(explain_cases.inside(60, 7_000, libraries))
    assert result["among"] >= 0.99
    assert result["mid-rank first"] >= 0.95
    assert result["median classes"] <= 3


@pytest.mark.parametrize("cases", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_values_of_other_lists_are_not_explained(libraries, cases):
    verdicts = [verdict for verdict, *_ in explain_cases.outside(cases, 8_000, libraries)]
    assert "explains" not in verdicts


def test_a_library_that_is_not_known_is_often_met_by_others(libraries):
    rest = {name: one for name, one in libraries.items() if name != "recbole"}
    results = explain_cases.inside(6, 9_000, libraries, "recbole", rest)
    assert explain_cases.summary(results)["among"] == 1.0


def test_threads_change_nothing(libraries):
    laid = explain_cases.laid_of(explain_cases.data_of(6_000))
    target = Target("run", PrintedQuantity("nDCG@5", "nDCG", 5), Printed.of("0.98761"))
    one, two = (search(laid, (target,), libraries, threads) for threads in (1, 2))
    assert list(one.classes) == list(two.classes)
    assert one.tried == two.tried
