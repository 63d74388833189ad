"""Printed numbers: their digits, and which values they stand for."""

import pytest

import unskew as us
from unskew.conventions.explaining.printed import Printed, PrintedQuantity, colloquial


@pytest.mark.parametrize(
    ("given", "value", "unit"),
    [
        ("0.3210", 0.321, 1e-4),
        (0.321, 0.321, 1e-3),
        ("32.10%", 0.321, 1e-4),
        (".5", 0.5, 0.1),
        ("1", 1.0, 1.0),
        (" 0.25 ", 0.25, 0.01),
        ("1e-3", 0.001, 0.001),
    ],
)
def test_digits_are_kept(given, value, unit):
    printed = Printed.of(given)
    assert printed.value == pytest.approx(value, abs=1e-15)
    assert printed.unit == pytest.approx(unit)


def test_halves_round_either_way_and_digits_can_be_cut_off():
    printed = Printed.of("0.32")
    assert [printed.rounds(v) for v in (0.315, 0.3249, 0.325, 0.3251, 0.3149)] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert [printed.cuts(v) for v in (0.32, 0.3299, 0.33, 0.3199, -0.32)] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert printed.show(0.32749) == "0.33"
    assert Printed.of("32.1%").show(0.32749) == "32.7%"


@pytest.mark.parametrize("given", ["x", "", "nan", "0.3.2", None, True, float("inf"), [1], "5 %%"])
def test_what_is_no_number_is_refused(given):
    with pytest.raises(us.SettingError, match="a printed value must be"):
        Printed.of(given)


@pytest.mark.parametrize(
    ("label", "metric", "k"),
    [
        ("nDCG@10", "nDCG", 10),
        ("ndcg_cut_5", "nDCG", 5),
        ("MAP", "AP", None),
        ("MRR@20", "RR", 20),
        ("HR@10", "HitRate", 10),
        ("Precision(k=5)", "P", 5),
        ("AP(per=min)@10", "AP", 10),
        ("bpref", "", None),
    ],
)
def test_metrics_are_known_by_many_names(label, metric, k):
    quantity = PrintedQuantity.of(label)
    assert (quantity.metric, quantity.k) == (metric, k)


def test_unknown_metrics_are_refused():
    assert colloquial("nothing@3") == ("nothing", 3)
    with pytest.raises(us.UnknownName, match=r"unknown metric 'nDGC@10'\. Did you mean 'nDCG'"):
        PrintedQuantity.of("nDGC@10")
