"""Strata of propensity and the sweep of stratified recall: by hand, paradoxes, errors."""

import json
from itertools import pairwise

import numpy as np
import pytest

import unskew as us
from unskew.errors import DataError, SettingError
from unskew.unbiased.recall_sweep import stratified_recall
from unskew.unbiased.simpsons_paradox import propensity_strata

HIT, RARE = 0.9, 0.1


def paradox():
    """Return judgments, runs and chances: a wins among hits and among rare items, b on the whole.

    9 users judged a hit, 3 of them (and 9 others) a rare item. a finds rare ones more often.
    """
    test = {"user": [], "item": [], "rating": []}
    chance: dict = {"user": [], "item": [], "propensity": []}
    lists: dict = {"a": {}, "b": {}}

    def add(u, kind, found_a, found_b):
        item = f"{kind}{u}"
        for frame, value in ((test, 5), (chance, HIT if kind == "hit" else RARE)):
            frame["user"].append(u)
            frame["item"].append(item)
            frame["rating" if frame is test else "propensity"].append(value)
        lists["a"][u] = [item if found_a else "none"]
        lists["b"][u] = [item if found_b else "none"]

    return test, lists, chance, add


def test_a_stratum_counts_its_judgments_only():
    test, lists, chance, add = paradox()
    for u in range(6):
        add(u, "hit", u < 4, u < 2)
    for u in range(6, 10):
        add(u, "rare", u == 6, u < 9)
    made = propensity_strata(test, lists, "P@1", propensity=chance, liked=4)
    rare, hits = made.strata
    assert rare.values == {"a": 1 / 4, "b": 3 / 4}
    assert hits.values == pytest.approx({"a": 4 / 6, "b": 2 / 6})
    assert (rare.judgments, hits.judgments, rare.users, hits.users) == (4, 6, 4, 6)
    assert (rare.low, rare.high, hits.low, hits.high) == pytest.approx((RARE, RARE, HIT, HIT))
    assert made.overall == pytest.approx({"a": 0.5, "b": 0.5})
    assert made.stratified == pytest.approx({"a": 11 / 24, "b": 13 / 24})
    table = made.table()
    assert table["stratum"].to_list() == ["1", "2", "stratified", "overall"]
    assert table["tau"].null_count() == 4  # all tied on the whole


def test_simpsons_paradox_and_rank_correlation_with_the_truth():
    """Users with few judgments: b is better on the whole and worse in both strata."""
    test = {"user": [], "item": [], "rating": []}
    chance: dict = {"user": [], "item": [], "propensity": []}
    lists: dict = {"a": {}, "b": {}}
    # Each user has a hit and a rare item judged, lists of 1: over all judgments P@1 is the sum of
    # both strata; means are over users with a liked judgment in the stratum.
    for u in range(12):
        kinds = ["hit"] if u < 8 else ["rare"]
        kinds += ["rare"] if u < 2 else []
        for kind in kinds:
            test["user"].append(u)
            test["item"].append(f"{kind}{u}")
            test["rating"].append(5)
            chance["user"].append(u)
            chance["item"].append(f"{kind}{u}")
            chance["propensity"].append(HIT if kind == "hit" else RARE)
        lists["a"][u] = [f"hit{u}" if u in (2, 3, 4, 5, 6) else f"rare{u}"]
        lists["b"][u] = [f"hit{u}" if u in (0, 1, 2) else f"rare{u}"]
    truth = {"a": 0.4, "b": 0.2}
    made = propensity_strata(test, lists, "P@1", propensity=chance, liked=4, truth=truth)
    table = made.table()
    assert set(table.columns) >= {"tau", "tau_truth"}
    hits = made.strata[1].values
    assert hits == pytest.approx({"a": 5 / 8, "b": 3 / 8})
    assert table.filter(table["stratum"] == "2")["tau_truth"][0] == 1
    assert made.paradoxes() == []
    turned = type(made)("P@1", ("a", "b"), {"a": 0.1, "b": 0.2}, made.strata[1:])
    assert turned.paradoxes() == [("a", "b")]
    assert "Simpson's paradox" in str(turned)
    lower = type(made)("P@1", ("a", "b"), {"a": 0.9, "b": 0.2}, made.strata[1:], "lower")
    assert lower.paradoxes() == []


def test_one_stratum_of_everything_is_the_evaluation():
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((30, 12)) < 0.5)
    test = {"user": user, "item": item, "rating": rng.integers(1, 6, user.size)}
    lists = {n: {u: rng.permutation(12).tolist() for u in range(30)} for n in "ab"}
    chance = dict(zip(range(12), np.linspace(0.1, 0.9, 12), strict=True))
    made = propensity_strata(test, lists, "nDCG@5", propensity=chance, liked=4, strata=3)
    plain = us.evaluate(test, lists, "nDCG@5", liked=4, users="with-relevant").mean("nDCG@5")
    assert made.overall == pytest.approx(plain)
    assert sum(one.judgments for one in made.strata) == user.size
    assert max(one.judgments for one in made.strata) < user.size / 2
    bounds = [(one.low, one.high) for one in made.strata]
    assert all(a[1] < b[0] for a, b in pairwise(bounds))
    assert len(made.figure().to_dict()["datasets"]["rows"]) == 8
    assert "<table" in made._repr_html_()
    assert repr(made) == "PropensityStrata(nDCG@5, 3 strata)"
    assert json.loads(json.dumps(made.to_dict()))["paradoxes"] == []


def test_strata_errors():
    test, lists, chance, add = paradox()
    add(1, "hit", True, False)
    add(2, "rare", True, True)
    how = {"propensity": chance, "liked": 4}
    with pytest.raises(SettingError, match="strata"):
        propensity_strata(test, lists, strata=1, **how)
    with pytest.raises(SettingError, match="metric of judged hits"):
        propensity_strata(test, lists, "Coverage@1", **how)
    with pytest.raises(DataError, match="at least 2 systems"):
        propensity_strata(test, {"a": lists["a"]}, "P@1", **how)
    with pytest.raises(DataError, match="truth must name"):
        propensity_strata(test, lists, "P@1", truth={"a": 1.0}, **how)
    with pytest.raises(DataError, match="no liked judgment"):
        propensity_strata(test, lists, "P@1", propensity=chance, liked=6)
    few = propensity_strata(test, lists, "P@1", strata=5, **how)
    assert len(few.strata) == 2
    assert any("separate equal" in note for note in few.notes)


# Stratified recall


TEST = {"user": [1, 2, 3, 3], "item": ["a", "a", "a", "b"], "rating": [5, 5, 5, 5]}
RUNS = {"x": {u: ["a"] for u in (1, 2, 3)}, "y": {u: ["b"] for u in (1, 2, 3)}}


def test_stratified_recall_is_what_evaluate_gives():
    made = stratified_recall(TEST, RUNS, 1, [0, 0.5, 3], liked=4)
    labels = ["Recall@1", "SR(gamma=0.5)@1", "SR(gamma=3)@1"]
    plain = us.evaluate(TEST, RUNS, labels, liked=4).means()
    for at, name in enumerate(RUNS):
        assert made.values[at].tolist() == pytest.approx([plain[name][label] for label in labels])
    assert made.table()["beta"].to_list()[:3] == pytest.approx([0, 1 / 3, 3 / 4])
    assert made.flips() == []


def test_the_sweep_finds_where_the_order_changes():
    # a is liked by 3, b to d by one user each: x finds a thrice, y finds the two rare ones.
    test = {"user": [1, 2, 3, 1, 2], "item": ["a", "a", "a", "b", "c"], "rating": [5] * 5}
    runs = {"x": {u: ["a"] for u in (1, 2, 3)}, "y": {1: ["b"], 2: ["c"], 3: ["b"]}}
    made = stratified_recall(test, runs, 1, [0, 1, 50], mean="ratio", liked=4)
    # Weights of a: 1, 3^-1/2, 3^-50/51: x has 3 of 5, then 1.73 of 3.73, then about 1 of 3.
    assert made.flips() == [("x", "y", 0.0, 1.0)]
    assert "y overtakes x" in str(made)
    assert len(made.figure().to_dict()["datasets"]["rows"]) == 6
    assert "<table" in made._repr_html_()
    assert repr(made) == "StratifiedRecall(@1, 2 systems)"
    assert json.loads(json.dumps(made.to_dict()))["flips"] == [["x", "y", 0.0, 1.0]]


def test_sweep_errors():
    for gammas in ([1], [1, 0], [-1, 0], [0, float("inf")]):
        with pytest.raises(SettingError, match="gammas"):
            stratified_recall(TEST, RUNS, 1, gammas, liked=4)
    with pytest.raises(SettingError, match="cutoff"):
        stratified_recall(TEST, RUNS, 0, liked=4)
    with pytest.raises(SettingError, match="mean"):
        stratified_recall(TEST, RUNS, 1, mean="x", liked=4)
