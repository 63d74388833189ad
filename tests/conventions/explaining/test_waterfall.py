"""The path between two numbers: steps add up, and every step has its range."""

import json
import math
from itertools import permutations

import polars as pl
import pytest
from test_explain import data

import unskew as us
from shared.measured import laid_fixture
from unskew.conventions.explaining import waterfall as module
from unskew.conventions.values import ConventionValues


@pytest.fixture(scope="module")
def stars():
    return data("stars")


def path(given, metric, *between):
    return us.explain(given[0], {"r": given[1]}, metric, between=between, liked=4)


def steps_of(result):
    return result.rows.filter(pl.col("change").is_not_null()).to_dicts()


def ends_of(result):
    """Return the names and the numbers of both ends."""
    return result.rows[[0, -1]].select("step", "value").rows()


@pytest.mark.parametrize("metric", ["nDCG@10", "P@5", "MAP@10", "Recall@3", "HR@10"])
@pytest.mark.parametrize("ends", [("ours", "recbole"), ("trec_eval", "ranx"), ("elliot", "ours")])
def test_steps_sum_to_the_gap(stars, metric, ends):
    result = path(stars, metric, *ends)
    (_, start), (_, end) = ends_of(result)
    effects = [step["change"] for step in steps_of(result)]
    assert math.fsum(effects) == pytest.approx(end - start, abs=1e-12)
    for step in steps_of(result):
        assert step["lowest"] - 1e-15 <= step["change"] <= step["highest"] + 1e-15
    if effects:
        assert steps_of(result)[-1]["value"] == pytest.approx(end, abs=1e-12)


def test_both_ends_are_the_numbers_of_the_libraries(stars):
    result = path(stars, "nDCG@10", "ours", "lenskit")
    ours = us.evaluate(stars[0], {"r": stars[1]}, "nDCG@10", liked=4).mean("nDCG@10")["r"]
    theirs = us.evaluate(stars[0], {"r": stars[1]}, "nDCG@10", liked=4, compat="lenskit")
    (_, start), (_, end) = ends_of(result)
    assert start == pytest.approx(ours, abs=1e-12)
    assert end == pytest.approx(theirs.mean("nDCG@10")["r"], abs=1e-12)


def test_ranges_are_those_of_all_orders(stars):
    """A plain walk in every order."""
    result = path(stars, "nDCG@10", "ours", "lenskit")
    steps = steps_of(result)
    assert len({step["step"] for step in steps}) == len(steps)
    values = ConventionValues(laid_fixture("stars"), "run")
    row = us.conventions.library("lenskit")
    chosen = next(one for one in row.metrics if one.metric == "nDCG" and one.has_cutoff)
    from unskew.conventions.explaining.printed import PrintedQuantity

    ends = [
        module.options_of(PrintedQuantity.of("nDCG@10").row(), 10),
        module.options_of(chosen, 10),
    ]
    names = module.choices_between(*ends)
    effects = {name: [] for name in names}
    for order in permutations(names):
        taken = frozenset()
        for name in order:
            before, taken = taken, taken | {name}
            numbers = [module.number_after(values, *ends, steps) for steps in (before, taken)]
            effects[name].append(numbers[1] - numbers[0])
    for step in steps:
        assert step["lowest"] == pytest.approx(min(effects[step["step"]]), abs=1e-12)
        assert step["highest"] == pytest.approx(max(effects[step["step"]]), abs=1e-12)


def test_many_steps_are_tried_in_some_orders(stars, monkeypatch):
    monkeypatch.setattr(module, "MOST_AXES", 1)
    result = path(stars, "nDCG@10", "ours", "lenskit")
    assert "200 orders of steps" in str(result)
    (_, start), (_, end) = ends_of(result)
    effects = [step["change"] for step in steps_of(result)]
    assert math.fsum(effects) == pytest.approx(end - start, abs=1e-12)
    assert result.to_dict() == path(stars, "nDCG@10", "ours", "lenskit").to_dict()


def test_printed_values_are_ends_too(stars):
    ours = us.evaluate(stars[0], {"r": stars[1]}, "nDCG@10", liked=4).mean("nDCG@10")["r"]
    theirs = us.evaluate(stars[0], {"r": stars[1]}, "nDCG@10", liked=4, compat="rectools")
    text = f"{theirs.mean('nDCG@10')['r']:.5f}"
    result = path(stars, "nDCG@10", "ours", text)
    (_, start), (name, _) = ends_of(result)
    assert start == pytest.approx(ours, abs=1e-12)
    assert "RecTools" in name
    with pytest.raises(us.SettingError, match="no convention that was tried gives"):
        path(stars, "nDCG@10", "ours", "123.45")


def test_the_same_number_has_no_steps(stars):
    result = path(stars, "nDCG@10", "recbole", "recbole")
    assert steps_of(result) == []
    assert "the same number" in str(result)


def test_it_is_drawn_and_handed_on(stars):
    result = path(stars, "nDCG@10", "ours", "recbole")
    assert len(result.figure().to_dict()["datasets"]["rows"]) == len(steps_of(result)) + 2
    assert json.loads(json.dumps(result.to_dict()))["rows"][0]["metric"] == "nDCG@10"
    assert "recbole" in str(result).lower()


@pytest.mark.parametrize(
    ("metric", "ends", "says"),
    [
        ("nDCG@10", ("ours",), "between must name two ends"),
        ("nDCG@10", ("ours", "recbol"), "Did you mean 'recbole'"),
        ({"nDCG@10": "0.1"}, ("ours", "recbole"), "is the name of a metric"),
        ("bpref", ("ours", "trec_eval"), "whose conventions have no steps"),
    ],
)
def test_what_has_no_path_is_refused(stars, metric, ends, says):
    with pytest.raises(us.SettingError, match=says):
        us.explain(stars[0], {"r": stars[1]}, metric, between=ends, liked=4)
