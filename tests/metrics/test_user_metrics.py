"""Metrics that a user's own code registers work wherever a metric is named."""

import importlib
import math
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import unskew as us
from unskew.engine.compiled import kernel
from unskew.metrics.names import REGISTRY, parse
from unskew.testing import check_metric

TEST = {"user": [1, 1, 1, 2], "item": [*"abc", "a"], "rating": [5, 1, 4, 2]}
RUNS = {"x": {1: [*"abxc"], 2: ["a"]}, "y": {1: [*"xcb"], 2: [*"xa"]}}


def evaluate(metrics, **settings):
    return us.evaluate(TEST, RUNS, metrics, liked=4, **settings)


@pytest.fixture
def odd_places(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    sys.modules.pop("user_metric_module", None)
    yield importlib.import_module("user_metric_module").odd_places
    sys.modules.pop("user_metric_module", None)


@pytest.mark.filterwarnings("ignore:.*lists hold at most")
def test_evaluate_knows_it_by_name_with_cutoff_and_anti(odd_places):
    labels = ["odd-places", "odd-places@3", "Odd-Places@1", "anti-odd-places@3", "P@1"]
    values = {label: evaluate(labels).values("x", label).tolist() for label in labels}
    assert values["odd-places"] == [0.5, 0.0]  # a and x of a, b, x, c
    assert values["odd-places@3"] == [0.5, 0.0]
    assert values["Odd-Places@1"] == values["P@1"] == [1.0, 0.0]
    assert values["anti-odd-places@3"] == [0.0, 0.5]
    assert evaluate("condensed-odd-places@3").values("x", "condensed-odd-places@3")[0] == 1.0
    assert odd_places.__doc__.startswith("Share of the odd places")
    card = evaluate("odd-places").card
    assert card["user_metrics"] == {"odd-places": "user_metric_module.odd_places"}
    assert "user_metrics" not in evaluate("P@1").card
    check_metric("odd-places")
    check_metric(odd_places)


def test_a_function_sees_the_list_and_the_users_judgments():
    seen = []

    @us.metrics.metric("spy", high=math.inf)
    def spy(liked, disliked, gains, losses, n_liked, n_disliked, all_gains, k):
        arrays = (liked, disliked, gains, losses, all_gains)
        seen.append([k, n_liked, n_disliked, *(array.tolist() for array in arrays)])
        return math.nan

    assert np.isnan(
        us.evaluate(TEST, {"x": RUNS["x"]}, "spy@3", liked=4).values("x", "spy@3")
    ).all()
    assert seen == [
        [3, 2, 1, [True, False, False], [False, True, False], [5, 0, 0], [0, 3, 0], [5, 4, 0]],
        [3, 0, 1, [False], [True], [0], [2], [0]],
    ]


def test_settings_and_compiled_functions():
    @us.metrics.metric("fading", params={"p": us.metrics.Param(0.5, low=0, high=1)})
    @kernel
    def fading(liked, p):
        total = 0.0
        for at in range(liked.size):
            total += (1 - p) * p**at * liked[at]
        return total

    labels = ["fading", "fading(p=0.8)@3", "RBP(p=0.5)", "RBP@3"]
    scores = evaluate(labels)
    for own, ours in (labels[::2], labels[1::2]):
        assert scores.values("x", own) == pytest.approx(scores.values("x", ours))
    check_metric(
        "fading", plain=lambda liked: sum(0.5 ** (at + 1) * x for at, x in enumerate(liked))
    )


def ratings(users=30, items=20):
    rng = np.random.default_rng(5)
    pairs = [(user, item) for user in range(users) for item in rng.permutation(items)[:9]]
    user, item = zip(*pairs, strict=True)
    return us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, len(pairs))})


def plan(*metrics):
    return us.Plan(
        split=us.splits.Random(test=0.3),
        algorithms=[us.recommend.Popularity(), us.recommend.Random()],
        metrics=metrics,
        relevance=us.Relevance(liked=4),
        seed=2,
    )


@pytest.mark.usefixtures("odd_places")
def test_chance_is_simulated_and_the_footer_says_so():
    split = us.splits.Random(test=0.3).split(ratings())[0]
    lists = us.targets.AllItems().lists(split, liked=4)
    model = us.recommend.Popularity().fit(split.train)
    scores = us.evaluate(lists, {"pop": model}, ["odd-places@5", "P@5"], draws=20)
    assert scores.simulated == {"odd-places@5": 20}
    assert any("odd-places@5: simulated, mean of 20 random orders" in x for x in scores.footer())


@pytest.mark.usefixtures("odd_places")
def test_compare_and_robustness_take_it():
    scores = evaluate(["odd-places@3", "P@3"])
    made = us.compare(scores, "odd-places@3", permutations=20)
    assert set(made.table()["metric"]) == {"odd-places@3"}
    us.stats.robustness(TEST, RUNS, "odd-places@3", liked=4, shares=[0.8], samples=2)


@pytest.mark.usefixtures("odd_places")
def test_features_that_need_more_of_it_refuse_and_say_what():
    label = "odd-places@3"
    settings = {"liked": 4, "propensity": {"a": 0.5, "b": 0.5, "c": 0.5}}
    for call, field in (
        (lambda: us.estimate(TEST, RUNS, label, **settings), "weighted"),
        (lambda: us.unbiased.sensitivity(TEST, RUNS, label, **settings), "weighted"),
        (lambda: us.unbiased.bounds(TEST, RUNS, label, liked=4), "bounds"),
        (lambda: us.unbiased.corrected_values(label, 10, 3), "at_rank"),
    ):
        with pytest.raises(us.SettingError, match=rf"^odd-places@3: odd-places has no .*{field}=…"):
            call()
    notes = us.unbiased.strata(TEST, RUNS, label, liked=4, m=2, resamples=0).footer()
    assert any("odd-places@3 is not a sum over hits" in note for note in notes)


@pytest.mark.usefixtures("odd_places")
def test_an_audit_takes_it():
    made = us.audit(
        ratings(), plan("odd-places@5", "anti-odd-places@5"), repeats=2, permutations=20
    )
    assert "odd-places@5" in str(made)


@pytest.mark.usefixtures("odd_places")
def test_worker_processes_know_it(tmp_path):
    one = plan("odd-places@5", "P@5")
    alone = us.run_plan(ratings(), one, store=tmp_path / "store")
    assert us.run_plan(ratings(), one, workers=2).table().equals(alone.table())
    # What code a name stands for is not in the key: such results are never taken from a store.
    us.metrics.metric("odd-places", replace=True)(lambda liked: 0.25)
    again = us.run_plan(ratings(), one, store=tmp_path / "store").table()
    assert set(again.filter(metric="odd-places@5")["mean"]) == {0.25}
    with pytest.raises(us.SettingError, match="metric odd-places: several workers cannot share"):
        us.run_plan(ratings(), one, workers=2)


@pytest.mark.usefixtures("odd_places")
def test_a_plan_carries_its_metrics():
    sent = pickle.dumps(plan("odd-places@5"))
    definition = REGISTRY.pop("odd-places")
    assert list(pickle.loads(sent).metrics) == ["odd-places@5"]
    assert REGISTRY["odd-places"].name == definition.name


def test_what_cannot_be_registered():
    def some(liked):
        return 0.0

    us.metrics.metric("mine")(some)
    with pytest.raises(us.SettingError, match="a metric mine already exists; give replace=True"):
        us.metrics.metric("mine")(some)
    us.metrics.metric("mine", replace=True)(some)
    for name in ("P", "AP"):
        with pytest.raises(us.SettingError, match=f"a metric {name} already"):
            us.metrics.metric(name)(some)
    for name in ("MINE", "map", "ndcg", "Fallout"):
        with pytest.raises(us.SettingError, match="is taken"):
            us.metrics.metric(name)(some)
    for name in ("anti-x", "condensed-x", "x@3", "x y", "3x", "x_10", "", 7):
        with pytest.raises(us.SettingError, match="cannot name a metric"):
            us.metrics.metric(name)(some)
    with pytest.raises(us.UnknownName, match="parameter of metric 'x'"):
        us.metrics.metric("x")(lambda likes: 0.0)
    with pytest.raises(us.SettingError, match="takes nothing"):
        us.metrics.metric("x")(lambda: 0.0)
    with pytest.raises(us.SettingError, match="a function is needed"):
        us.metrics.metric("x")(3)
    with pytest.raises(us.UnknownName, match="fact of a metric"):
        us.metrics.metric("x", chances=None)(some)
    assert "x" not in REGISTRY


def test_what_a_function_may_return():
    answers = iter(("abc", None, math.inf, [1, 2]))
    us.metrics.metric("mine")(lambda liked: next(answers))
    for _ in range(4):
        with pytest.raises(us.DataError, match=r"returned .* for the list of user 1; it must"):
            evaluate("mine@3", threads=1)
    us.metrics.metric("low", anti=False)(lambda liked: True)
    assert evaluate("low").values("x", "low").tolist() == [1.0, 1.0]
    with pytest.raises(us.SettingError, match="no anti-twin"):
        parse("anti-low")
