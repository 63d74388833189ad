"""The sweep of stratified recall: by hand, where the order changes, errors."""

import json

import pytest

import unskew as us
from unskew.errors import SettingError
from unskew.unbiased.stratified_recall import stratified_recall

TEST = {"user": [1, 2, 3, 3], "item": ["a", "a", "a", "b"], "rating": [5, 5, 5, 5]}
RUNS = {"x": {u: ["a"] for u in (1, 2, 3)}, "y": {u: ["b"] for u in (1, 2, 3)}}


def test_stratified_recall_is_what_evaluate_gives():
    made = stratified_recall(TEST, RUNS, 1, [0, 0.5, 3], liked=4)
    labels = ["Recall@1", "SR(gamma=0.5)@1", "SR(gamma=3)@1"]
    plain = us.evaluate(TEST, RUNS, labels, liked=4).means()
    for name in RUNS:
        values = made.where(system=name).rows["value"].to_list()
        assert values == pytest.approx([plain[name][label] for label in labels])
    assert made.table()["beta"].to_list()[:3] == pytest.approx([0, 1 / 3, 3 / 4])
    assert made.conclusion == ()


def test_the_sweep_finds_where_the_order_changes():
    # a is liked by 3, b to d by one user each: x finds a thrice, y finds the two rare ones.
    test = {"user": [1, 2, 3, 1, 2], "item": ["a", "a", "a", "b", "c"], "rating": [5] * 5}
    runs = {"x": {u: ["a"] for u in (1, 2, 3)}, "y": {1: ["b"], 2: ["c"], 3: ["b"]}}
    made = stratified_recall(test, runs, 1, [0, 1, 50], mean="ratio", liked=4)
    # Weights of a: 1, 3^-1/2, 3^-50/51: x has 3 of 5, then 1.73 of 3.73, then about 1 of 3.
    assert made.conclusion == ("y overtakes x between γ = 0 and 1",)
    drawn = made.figure().to_dict()["datasets"]["rows"]
    assert [row["gamma"] for row in drawn] == [0.0, 1.0, 50.0] * 2
    assert "<table" in made._repr_html_()
    assert str(made).splitlines()[:3] == [
        "system   0         1         50",
        "x       *0.6000*   0.4641    0.3381",
        "y        0.4000   *0.5359*  *0.6619*",
    ]
    assert json.loads(json.dumps(made.to_dict()))["card"] == {"cutoff": 1, "mean": "ratio"}


def test_sweep_errors():
    for gammas in ([1], [1, 0], [-1, 0], [0, float("inf")]):
        with pytest.raises(SettingError, match="gammas"):
            stratified_recall(TEST, RUNS, 1, gammas, liked=4)
    with pytest.raises(SettingError, match="cutoff"):
        stratified_recall(TEST, RUNS, 0, liked=4)
    with pytest.raises(SettingError, match="mean"):
        stratified_recall(TEST, RUNS, 1, mean="x", liked=4)
