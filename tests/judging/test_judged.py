"""`judge`: the same numbers through judged and through raw data, what it holds, clear errors."""

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew import DataError, SettingError

TEST = {"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"], "rating": [5, 2, 4, 1, 5]}
TRAIN = {"user": [1, 2, 3, 4], "item": ["d", "b", "a", "a"], "rating": [4, 3, 5, 5]}
RUNS = {"x": {1: ["a", "c"], 2: ["b", "a"], 4: ["a"]}, "y": {1: ["c", "b"], 2: ["a", "e"]}}


def random_data(seed=5, users=60, items=40):
    """Return training and test ratings, and the lists of three systems."""
    rng = np.random.default_rng(seed)
    ratings = {"user": [], "item": [], "rating": []}
    parts = [ratings, {key: [] for key in ratings}]
    runs = {name: {} for name in "abc"}
    for user in range(users):
        mine = rng.permutation(items)
        for part, some in zip(parts, (mine[:10], mine[10:18]), strict=True):
            part["user"] += [user] * len(some)
            part["item"] += some.tolist()
            part["rating"] += rng.integers(1, 6, len(some)).tolist()
        for name in runs:
            runs[name][user] = rng.permutation(mine[10:])[:15].tolist()
    return *parts, runs


# What it holds


def test_by_hand():
    judged = us.judge(TEST, RUNS, liked=4, train=TRAIN)
    assert repr(judged) == "Judged(2 systems, 3 users, 5 judgments)"
    assert judged.table().rows() == [("x", 3, 1, 1, 5, 2 / 5), ("y", 2, 1, 0, 4, 2 / 4)]
    text = str(judged)
    for line in ("3 users with 5 judgments, 60.0 % liked", "liked: rating >= 4", "training: 4 rat"):
        assert line in text
    assert "rows; user = user" in text
    assert "60.0 % liked" in judged._repr_html_()
    assert judged.to_dict()["rows"][0]["system"] == "x"
    assert judged.with_list.tolist() == [True, True, False, True]  # users 1, 2, 3, 4
    assert judged.liked.tolist() == [1, 1, 1, 0]


def test_what_is_left_out_is_said():
    twice = {"user": [1, 1, 2], "item": [7, 7, 8], "rating": [5, 5, 4]}
    judged = us.judge(us.read_ratings(twice, duplicates="first"), {"x": {1: [7]}})
    notes = " ".join(judged.notes)
    assert "liked: ratings from 4 up (assumed" in notes
    assert "1" in notes
    assert judged.table()["without_list"].to_list() == [1]
    with pytest.warns(us.DataWarning, match="none of its items is judged"):
        strange = us.judge(TEST, {"x": {1: ["nothing"]}}, liked=4)
    assert "none of its items is judged" in str(strange)


def test_it_is_frozen():
    judged = us.judge(TEST, RUNS, liked=4)
    with pytest.raises(AttributeError):
        judged.depth = 3


def test_warnings_point_at_the_caller():
    with pytest.warns(us.DataWarning, match="fewer than the cutoff") as caught:
        us.evaluate(us.judge(TEST, RUNS, liked=4), "P@10")
    assert {warning.filename for warning in caught} == {__file__}


# The same numbers through both


def calls():
    """Return every front end, by name: what it does with the data and with further settings."""
    metrics, level = ["P@5", "nDCG@5", "AUC"], {"resamples": 50, "seed": 3}
    return {
        "evaluate": lambda *d, **o: us.evaluate(*d, [*metrics, "Coverage@5", "ARP@5"], **o),
        "estimate": lambda *d, **o: us.estimate(*d, ["P@5", "nDCG@5"], **level, **o),
        "robustness": lambda *d, **o: us.stats.robustness(*d, metrics, samples=3, seed=2, **o),
        "popularity": lambda *d, **o: us.stats.robustness(*d, ["P@5"], to="popularity", **o),
        "strata": lambda *d, **o: us.unbiased.strata(*d, ["P@5"], m=3, resamples=20, **o),
        "bounds": lambda *d, **o: us.unbiased.bounds(*d, "Recall@5", **o),
        "sensitivity": lambda *d, **o: us.unbiased.sensitivity(*d, "P@5", **level, **o),
        "judgments": lambda *d, **o: us.unbiased.judgments_needed(*d, "P@5", **level, **o),
        "recall": lambda *d, **o: us.unbiased.stratified_recall(*d, 5, **o),
    }


@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
@pytest.mark.parametrize("name", calls())
@pytest.mark.parametrize("options", [{}, {"depth": 4, "ties": "id"}], ids=["whole", "depth 4"])
def test_judged_and_raw_data_give_the_same(name, options):
    train, test, runs = random_data()
    call, options = calls()[name], {"train": train, "liked": 4, **options}
    judged = us.judge(test, runs, **options)
    raw = call(test, runs, **options)
    once, again = call(judged), call(judged)
    for result in (once, again):
        assert result.table().equals(raw.table())
        assert result.to_dict() == raw.to_dict()
        assert str(result) == str(raw)


def test_compare_judged_data():
    train, test, runs = random_data()
    judged = us.judge(test, runs, liked=4, train=train)
    raw = us.compare(us.evaluate(test, runs, "P@5", liked=4, train=train), "P@5")
    assert us.compare(judged, "P@5").table().equals(raw.table())
    assert "nDCG@10" in us.compare(judged, permutations=100).values_of("metric")


@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
def test_audit_judged_data():
    train, test, runs = random_data()
    settings = {"repeats": 2, "permutations": 200, "metric": "P@5"}
    raw = us.audit(judgments=test, runs=runs, train=train, liked=4, plan="quick", **settings)
    judged = us.judge(test, runs, train=train, liked=4)
    got = us.audit(judged, "quick", **settings)
    assert got.to_dict() == raw.to_dict()
    assert str(got) == str(raw)


def test_target_lists_and_models():
    train, _, _ = random_data()
    split = us.splits.Random(test=0.3).split(us.read_ratings(train), seed=1)[0]
    lists = us.targets.AllItems().lists(split, liked=4)
    models = {"pop": us.recommend.Popularity().fit(split.train)}
    judged = us.judge(lists, {**models, "ready": us.rank(models["pop"], lists, 20)})
    assert judged.table()["lists"].to_list() == [None, len(lists.tests.users)]
    metrics = ["P@5", "AUC", "Coverage@5", "nDCG@5"]
    scores = us.evaluate(judged, metrics)
    want = us.evaluate(lists, models, metrics)
    assert scores.means()["pop"] == want.means()["pop"]
    assert scores.random() == want.random()
    ranked = judged._ranked["pop"]
    us.evaluate(judged, "P@3")
    assert judged._ranked["pop"] is ranked  # ranked once


def test_a_design_of_targets():
    train, test, runs = random_data()
    judged = us.judge(test, runs, liked=4, train=train, targets="all-items")
    want = us.evaluate(test, runs, "P@5", liked=4, train=train, targets="all-items")
    got = us.evaluate(judged, "P@5")
    assert got.means() == want.means()
    assert got.random() == want.random()


# Errors


@pytest.mark.parametrize("name", calls())
def test_data_arguments_beside_judged_data(name):
    judged = us.judge(TEST, RUNS, liked=4, train=TRAIN)
    for argument, value in {"liked": 4, "train": TRAIN, "depth": 3, "gain": "binary"}.items():
        with pytest.raises(SettingError, match=f"{argument} is already part of the judged data"):
            calls()[name](judged, **{argument: value})


def test_runs_beside_judged_data():
    judged = us.judge(TEST, RUNS, liked=4)
    with pytest.raises(SettingError, match="runs are already part of the judged data"):
        us.evaluate(judged, RUNS, ["P@2"])
    with pytest.raises(SettingError, match="seed is part of the judged data"):
        us.evaluate(judged, "P@2", seed=4)
    with pytest.raises(SettingError, match="runs is already part of the judged data"):
        us.audit(judged, runs=RUNS)


def test_missing_and_wrong_data():
    with pytest.raises(SettingError, match="runs are missing"):
        us.evaluate(TEST)
    with pytest.raises(SettingError, match="liked must be a number or None, got 'four'"):
        us.stats.robustness(TEST, RUNS, liked="four")
    with pytest.raises(SettingError, match="not both"):
        us.judge(TEST, RUNS, liked=4, relevance=us.Relevance(4))
    with pytest.raises(SettingError, match="depth must be a whole number from 1 up"):
        us.judge(TEST, RUNS, depth=0)
    with pytest.raises(SettingError, match="Did you mean 'random'"):
        us.judge(TEST, RUNS, ties="randon")
    with pytest.raises(DataError, match="x: no users in common with the judgments"):
        us.judge(TEST, {"x": {77: ["a"]}}, liked=4)
    with pytest.raises(SettingError, match="no runs are given"):
        us.judge(TEST, {}, liked=4)
    with pytest.raises(TypeError, match="likd"):
        us.judge(TEST, RUNS, likd=4)
    with pytest.raises(SettingError, match="target lists already contain their items"):
        us.judge(TEST, RUNS, liked=4, items=["a"], train=TRAIN, targets="all-items")


def test_training_is_asked_for_where_it_is_needed():
    judged = us.judge(TEST, RUNS, liked=4)
    with pytest.raises(DataError, match="ARP@2 needs the training ratings"):
        us.evaluate(judged, "ARP@2")
    with pytest.raises(DataError, match="to='popularity' needs the training ratings"):
        us.stats.robustness(judged, "P@2", to="popularity")


def test_target_lists_where_lists_per_user_are_needed():
    train, _, _ = random_data()
    split = us.splits.Random(test=0.3).split(us.read_ratings(train), seed=1)[0]
    lists = us.targets.OneRelevant(others=5).lists(split, liked=4)
    models = {name: us.recommend.Popularity().fit(split.train) for name in "ab"}
    judged = us.judge(lists, models)
    with pytest.raises(SettingError, match="estimates need one list per user"):
        us.estimate(judged, "P@2")
    with pytest.raises(SettingError, match="not target lists"):
        us.stats.robustness(judged, "P@2")
    with pytest.raises(SettingError, match="an audit of lists needs one list per user"):
        us.audit(judged)
    with pytest.raises(SettingError, match="target lists already contain their liked"):
        us.judge(lists, models, liked=4)


def test_frames_of_polars_are_taken():
    judged = us.judge(pl.DataFrame(TEST), RUNS, liked=4)
    assert us.evaluate(judged, "P@1").mean("P@1") == {"x": 1 / 3, "y": 1 / 3}
