"""Infinity from a metric of a user is an error that names the list; it was counted as undefined."""

import math

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.evaluation import evaluate_steps
from unskew.metrics.listwise import is_ours
from unskew.metrics.names import REGISTRY
from unskew.metrics.settings import AtRank, Param
from unskew.metrics.strata import MetricStrata, over_hits
from unskew.metrics.weighted import Weighted

TEST = {"user": [1, 1, 1, 2, 3], "item": [*"abc", "a", "b"], "rating": [5, 1, 4, 2, 5]}
RUNS = {"x": {1: [*"abxc"], 2: ["a"], 3: ["b"]}, "y": {1: [*"xcb"], 2: [*"xa"], 3: ["b"]}}
RULE = "it must return a finite number, or nan where it is undefined$"


def spoilt(value, row=1):
    """Return a formula with a value of one list of the first block, and 0.25 for all others."""

    def formula(block, params, cutoffs):
        values = np.full((cutoffs.size, block.hi - block.lo), 0.25)
        if block.lo <= row < block.hi:
            values[-1, row - block.lo] = value
        return values

    return formula


def own(name="own", formula=None, **facts):
    us.metrics.metric(name, **facts)(formula or spoilt(math.inf))


def evaluate(label, **settings):
    return us.evaluate(TEST, RUNS, label, liked=4, **settings)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
@pytest.mark.parametrize("label", ["own", "own@3", "anti-own@2", "condensed-own@2"])
def test_infinity_of_a_block_metric(value, label):
    own(formula=spoilt(value))
    family = label.partition("@")[0]
    with pytest.raises(us.DataError, match=rf"^metric '{family}' returned {value} for the list of"):
        evaluate(label)
    with pytest.raises(us.DataError, match=f"for the list of user 2; {RULE}"):
        evaluate([label, "own@1", "P@1"], threads=1)


def test_nan_stays_undefined():
    own(formula=spoilt(math.nan))
    scores = evaluate("own@2")
    assert scores.mean("own@2")["x"] == pytest.approx(0.5 / 3)
    assert evaluate("own@2", undefined="skip").mean("own@2")["x"] == 0.25


@pytest.mark.parametrize(
    ("top", "bottom", "value"),
    [(math.inf, 2.0, "inf"), (1.0, 0.0, "inf"), (-1.0, 0.0, "-inf"), (1.0, math.inf, "inf")],
)
def test_infinity_in_a_fraction(top, bottom, value):
    def formula(block, params, cutoffs):
        tops = np.ones((cutoffs.size, block.hi - block.lo))
        bottoms = np.full((1, block.hi - block.lo), 4.0)
        tops[:, 2], bottoms[:, 2] = top, bottom
        return tops, bottoms

    own(formula=formula)
    with pytest.raises(us.DataError, match=f"returned {value} for the list of user 3; {RULE}"):
        evaluate("own@2", threads=1)


def ratio_of_sums(top, bottom):
    def formula(block, params, cutoffs):
        tops = np.ones((cutoffs.size, block.hi - block.lo))
        bottoms = np.full((cutoffs.size, block.hi - block.lo), 4.0)
        tops[:, 0], bottoms[:, 0] = top, bottom
        return tops, bottoms

    own(formula=formula, params={"mean": Param("ratio", ("users", "ratio"))}, high=math.inf)


@pytest.mark.parametrize(("top", "bottom"), [(math.inf, 1.0), (1.0, math.inf)])
def test_infinity_in_a_ratio_of_sums(top, bottom):
    ratio_of_sums(top, bottom)
    with pytest.raises(us.DataError, match="returned inf for the list of user 1; it must return"):
        evaluate("own@2", threads=1)


def test_a_denominator_of_zero_is_part_of_a_ratio_of_sums():
    """Top and bottom are averaged apart: one list may add nothing to the bottom."""
    ratio_of_sums(1.0, 0.0)
    assert evaluate("own@2", threads=1).mean("own@2")["x"] == pytest.approx(3 / 8)


def test_the_first_list_is_named_whatever_the_threads():
    users = np.arange(5_000)
    test = {"user": users, "item": users % 7, "rating": np.full(5_000, 5)}
    run = us.Run.from_arrays(users, np.tile(np.arange(7), (5_000, 1)))

    def formula(block, params, cutoffs):
        number = np.arange(block.lo, block.hi)
        return np.tile(np.where(number % 1000 == 700, math.inf, 0.5), (cutoffs.size, 1))

    own(formula=formula)
    for threads in (1, 2, 4):
        with pytest.raises(us.DataError, match="for the list of user 700; it must return"):
            us.evaluate(test, {"x": run}, "own@3", liked=4, threads=threads)


def test_infinity_of_equal_scores():
    own(formula=spoilt(0.5), tied=spoilt(math.inf))
    runs = {"x": {1: {"a": 1.0, "b": 1.0}, 2: {"a": 0.5}, 3: {"b": 1.0}}}
    assert us.evaluate(TEST, runs, "own@2", liked=4).mean("own@2")["x"] > 0
    with pytest.raises(us.DataError, match="'own' returned inf for the list of user 2; it must"):
        us.evaluate(TEST, runs, "own@2", liked=4, ties="expected")


def test_infinity_of_a_metric_of_the_whole_run():
    us.metrics.metric("total", of="run", anti=False)(lambda judged, run, params, cutoff: math.inf)
    with pytest.raises(us.DataError, match=f"'total@2' returned inf for the lists of x; {RULE}"):
        evaluate("total@2")


@pytest.fixture(scope="module")
def split():
    return us.splits.Random(test=0.3).split(us.world("shop", users=30, items=20, seed=2).ratings)[0]


def anchored(split, **settings):
    return us.targets.OneRelevant(others=5, **settings).lists(split, liked=4, seed=1)


def name_of(lists, row):
    user = lists.tests.users.values[int(lists.user[row])]
    anchor = lists.tests.items.values[int(lists.anchor[row])]
    return f"the list of user {user!r}, anchor {anchor!r}; it must return"


def test_lists_with_an_anchor_are_named_by_it(split):
    lists = anchored(split)
    model = us.recommend.Popularity().fit(split.train)
    own(formula=spoilt(math.inf, row=3))
    with pytest.raises(us.DataError, match=f"'own' returned inf for {name_of(lists, 3)}"):
        us.evaluate(lists, {"x": model}, "own@3")
    us.metrics.metric("each")(lambda liked: math.inf)
    with pytest.raises(us.DataError, match=f"'each' returned inf for {name_of(lists, 0)}"):
        us.evaluate(lists, {"x": model}, "each@3", threads=1)


def test_lists_of_a_stratum_are_named_by_it(split):
    lists = us.targets.Targets(strata=2).lists(split, liked=4, seed=1)
    user = lists.tests.users.values[int(lists.user[1])]
    own()
    where = f"the list of user {user!r}, stratum {lists.stratum[1]}; it must"
    with pytest.raises(us.DataError, match=where):
        us.evaluate(lists, {"x": us.recommend.Popularity().fit(split.train)}, "own@3")


def test_infinity_of_chance(split):
    lists = us.targets.AllItems().lists(split, liked=4)
    own(formula=spoilt(0.5), chance=spoilt(-math.inf))
    with pytest.raises(us.DataError, match="'own@3 of a random order' returned -inf for the list"):
        us.evaluate(lists, {"x": us.recommend.Popularity().fit(split.train)}, "own@3")


def at_rank(infinite):
    def value(rank, params, cutoff, items):
        return np.where(rank == infinite, math.inf, 0.5)

    return AtRank(value)


def test_infinity_of_a_value_at_a_rank(split):
    own(formula=spoilt(0.5), at_rank=at_rank(2))
    model = us.recommend.Popularity().fit(split.train)
    with pytest.raises(us.DataError, match=r"'own@3' returned inf for a list .* at rank 2; it"):
        us.evaluate(anchored(split, exact=True), {"x": model}, "own@3")


def test_infinity_of_a_step():
    log = us.worlds.event_log(users=20, items=15, events=300, seed=3)
    split = us.splits.Temporal(test=0.3).split(log.to_ratings("first"))[0]
    steps = us.targets.next_items(split.train, split.test, liked=4)
    own(formula=spoilt(0.5), at_rank=at_rank(1))
    target = us.recommend.Popularity().fit(steps.train)
    with pytest.raises(us.DataError, match=r"inf for the step of user .*, anchor .*; it must"):
        evaluate_steps(steps, {"x": target}, "own")


def test_infinity_of_a_weighted_form():
    def fraction(seen, params, cutoffs):
        values = spoilt(math.inf)(seen.block, params, cutoffs)
        return values, None

    own(formula=spoilt(0.5), weighted=Weighted(fraction))
    settings = {"liked": 4, "propensity": dict.fromkeys("abc", 0.5), "resamples": 0}
    with pytest.raises(us.DataError, match="'own' returned inf for the list of user 2; it must"):
        us.estimate(TEST, RUNS, "own@2", **settings)


def test_infinity_of_a_part_of_a_stratum():
    """Of masked judgments a formula may be infinite that was not of all."""

    def formula(block, params, cutoffs):
        masked = (block.judged.view.label == 4).any() or bool((block.judged.view.label == 0).any())
        return spoilt(math.inf if masked else 0.5)(block, params, cutoffs)

    own(formula=formula, strata=MetricStrata(over_hits))
    with pytest.raises(us.DataError, match="returned inf for the list of user 2; it must return"):
        us.unbiased.strata(TEST, RUNS, "own@2", liked=4, m=2, resamples=0)


def test_infinity_on_disk(tmp_path):
    own()
    pl.DataFrame(TEST).write_parquet(tmp_path / "test.parquet")
    us.read_run(RUNS["x"]).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(us.DataError, match="'own' returned inf for the list of user 2; it must"):
        us.evaluation.evaluate_files(
            tmp_path / "test.parquet",
            {"x": tmp_path / "x.parquet"},
            "own@2",
            liked=4,
            output=tmp_path / "out",
        )


def test_infinity_in_a_plan():
    own()
    plan = us.Plan(
        us.splits.Random(test=0.3),
        us.targets.AllItems(),
        [us.recommend.Popularity()],
        us.Relevance(liked=4),
        ["own@3"],
    )
    with pytest.raises(us.DataError, match="'own' returned inf for the list of user"):
        us.run_plan(us.world("shop", users=30, items=20, seed=2).ratings, plan)


def test_whose_formulas_are_looked_at():
    assert all(is_ours(one.compute) for one in REGISTRY.values() if not one.is_user_code)
    forms = [one.at_rank for one in REGISTRY.values() if one.at_rank is not None]
    assert all(is_ours(form.value) for form in forms)
    assert not is_ours(spoilt(1.0))
    assert not is_ours(np.sum)
