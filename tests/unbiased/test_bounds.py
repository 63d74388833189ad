"""Bounds by brute force, the smallest Γ against a search, and what would settle a pair."""

import itertools
import json
import math

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.errors import DataError, SettingError, UnknownName
from unskew.metrics.names import REGISTRY
from unskew.unbiased import weighted_averages
from unskew.unbiased.bounds import bounds, settled
from unskew.unbiased.estimate import estimate, order
from unskew.unbiased.judgments_needed import judgments_needed
from unskew.unbiased.sensitivity import sensitivity, smallest_gamma, weight_range

BOUNDED = [name for name, entry in REGISTRY.items() if entry.bounds is not None]

ITEMS = list("abcdefg")
TEST = {"user": [1, 1, 1, 2, 2], "item": ["a", "b", "f", "c", "d"], "rating": [5, 1, 4, 5, 2]}
RUNS = {
    "x": {1: ["c", "a", "b"], 2: ["d", "a", "c", "e"]},
    "y": {1: ["b", "g", "e"], 2: ["d", "b"]},
}


# Bounds


@pytest.mark.filterwarnings("ignore:s. the lists hold at most")  # user 2 of y
@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("anti", [False, True])
def test_no_completion_of_the_judgments_leaves_the_bounds(name, anti):
    """Every way to fill in what is not judged: the least and the largest are the bounds."""
    label = f"{'anti-' * anti}{name}@3"
    how = {"liked": 4, "items": ITEMS, "gain": "binary", "loss": "binary"}
    made = bounds(TEST, RUNS, label, **how)
    judged = {(u, i): r for u, i, r in zip(*TEST.values(), strict=True)}
    for system, lists in RUNS.items():
        low, high = [], []
        for user in (1, 2):
            open_ = [i for i in ITEMS if (user, i) not in judged]
            values = []
            for bits in itertools.product([5, 1], repeat=len(open_)):
                full = {i: r for (u, i), r in judged.items() if u == user}
                full |= dict(zip(open_, bits, strict=True))
                frame = {"user": [user] * 7, "item": list(full), "rating": list(full.values())}
                one = us.evaluate(frame, {"s": {user: lists[user]}}, label, **how)
                values.append(one.values("s", label)[0])
            values = [v for v in values if not math.isnan(v)]
            low.append(min(values))
            high.append(max(values))
        assert made.row(system=system, metric=label).low == pytest.approx(np.mean(low)), system
        assert made.row(system=system, metric=label).high == pytest.approx(np.mean(high)), system


def test_bounds_by_hand():
    made = bounds(TEST, RUNS, ["P@2", "RR@2"], liked=4, items=ITEMS)
    # x: c? a+ | d- a?; y: b- g? | d- b?
    assert made.table().rows() == [
        ("x", "P@2", 0.25, 0.25, 0.75), ("x", "RR@2", 0.25, 0.25, 0.75),
        ("y", "P@2", 0.0, 0.0, 0.5), ("y", "RR@2", 0.0, 0.0, 0.5),
    ]  # fmt: skip
    assert settled(made, "P@2") == []
    assert len(made.figure().to_dict()["datasets"]["rows"]) == 2
    assert "whatever the unjudged items are" in str(made)
    assert "<table" in made._repr_html_()
    assert repr(made) == str(made)
    assert json.loads(json.dumps(made.to_dict()))["card"]["users"] == 2


def test_a_settled_pair_and_its_direction():
    test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 1]}
    runs = {"good": {1: ["a"]}, "bad": {1: ["b"]}}
    made = bounds(test, runs, ["P@1", "anti-P@1"], liked=4)
    assert settled(made, "P@1") == [("good", "bad")]
    assert settled(made, "anti-P@1") == [("good", "bad")]
    with pytest.raises(UnknownName):
        settled(made, "P@2")


def test_empty_slots_cannot_be_good():
    run = us.read_run(
        pl.DataFrame({"user": [1, 1], "item": ["a", "c"], "rank": [1, 3]}), gaps="keep"
    )
    test = {"user": [1], "item": ["a"], "rating": [5]}
    made = bounds(test, {"r": run}, "P@3", liked=4)
    assert made.row(system="r").high == pytest.approx(2 / 3)


def test_bounds_errors():
    for label in ("nDCG@3", "condensed-P@3", "Coverage@3"):
        with pytest.raises(SettingError, match=r"no bounds in closed form|not condensed"):
            bounds(TEST, RUNS, label, liked=4)
    with pytest.raises(SettingError, match="need a cutoff"):
        bounds(TEST, RUNS, "P", liked=4)
    with pytest.raises(SettingError, match="without settings"):
        bounds(TEST, RUNS, "P(per=list)@3", liked=4)


# Γ


@pytest.mark.parametrize("model", ["odds", "weights"])
@pytest.mark.parametrize("seed", range(8))
def test_the_smallest_gamma_against_a_search(model, seed):
    rng = np.random.default_rng(seed)
    d, w = rng.normal(0.3, 1, 12), 1 / rng.uniform(0.1, 1, 12)
    gamma = smallest_gamma(d, w, model)
    sign = 1 if w @ d >= 0 else -1

    def least(g):
        light, heavy = weight_range(w, g, model)
        x = sign * d
        return float(np.where(x > 0, light, heavy) @ x)

    if math.isinf(gamma):
        assert least(1e9) > 0
        return
    assert gamma >= 1
    assert least(gamma) == pytest.approx(0, abs=1e-9)
    if gamma > 1:
        assert least(1 + (gamma - 1) * 0.99) > 0


def test_gamma_by_hand():
    # Weights 2, 2 for a and 1 for b: √(4/1) = 2 where weights may change.
    d, w = np.array([1.0, 1.0, -1.0]), np.array([2.0, 2.0, 1.0])
    assert smallest_gamma(d, w, "weights") == pytest.approx(2)
    # b is judged for sure (weight 1): its odds change nothing, a's weights fall to 1 at best.
    assert smallest_gamma(d, w, "odds") == math.inf
    # d = 1 with w = 4 against 2 x -1 with w = 1: 1 + 3/Γ = 2 at Γ = 3.
    assert smallest_gamma(np.array([1.0, -1, -1]), np.array([4.0, 1, 1]), "odds") == pytest.approx(
        3
    )
    assert smallest_gamma(np.zeros(2), np.ones(2), "weights") == 1
    assert smallest_gamma(np.ones(2), np.ones(2), "weights") == math.inf


CHANCE = {"a": 0.7, "b": 0.8, "c": 0.65, "d": 0.6, "f": 0.7}


@pytest.fixture
def any_size(monkeypatch):
    """Call estimates usable that rest on a handful of hits: examples worked by hand."""
    monkeypatch.setattr(weighted_averages, "FEW_HITS", 0)


@pytest.mark.parametrize(
    "metric", ["P@3", "DCG@3", "RBP@3", "Recall@3", "SR@3", "ADG@3", "anti-P@3"]
)
@pytest.mark.usefixtures("any_size")
def test_sensitivity_agrees_with_the_estimate(metric):
    how = {"propensity": CHANCE, "liked": 4, "items": ITEMS, "resamples": 0, "gain": "binary"}
    made = sensitivity(TEST, RUNS, metric, gammas=[1, 2], **how)
    plain = estimate(TEST, RUNS, metric, mean="ratio", **how)
    curve = made.parts["curve"]
    for system in RUNS:
        value = plain.row(system=system, metric=metric, quantity="ips").value
        exact, wide = (curve.row(system=system, gamma=gamma) for gamma in (1.0, 2.0))
        assert exact.value == wide.value == pytest.approx(value)
        assert exact.low == pytest.approx(exact.high)
        assert wide.low <= exact.low
        assert wide.high >= exact.high
    assert made.systems == order(plain, metric, "ips")
    (row,) = made.rows.to_dicts()
    better, worse = (curve.row(system=row[key]).value for key in ("system", "against"))
    assert row["difference"] == pytest.approx(better - worse)


def added(metric, system):
    """Return what each judgment of TEST adds to a system's sum, and to what that is divided by."""
    name, _, cutoff = metric.partition("@")
    top, bottom = [], []
    for user, item, rating in zip(*TEST.values(), strict=True):
        liked, ranked = rating >= 4, RUNS[system][user][: int(cutoff)]
        rank = ranked.index(item) + 1 if item in ranked else math.inf
        worth = {"P": 1 / 3, "Recall": 1, "ADG": 1 / math.log2(rank + 1)}[name]
        top.append(liked * worth * (rank < math.inf))
        bottom.append(float(liked))
    return np.array(top), np.array(bottom)


@pytest.mark.parametrize("metric", ["Recall@3", "ADG@3", "P@3"])
@pytest.mark.parametrize("model", ["odds", "weights"])
@pytest.mark.usefixtures("any_size")
def test_the_range_at_gamma_by_brute_force(metric, model):
    """A ratio is extreme in a corner: all light and heavy weights are tried out."""
    made = sensitivity(TEST, RUNS, metric, propensity=CHANCE, liked=4, items=ITEMS, model=model,
                       gammas=[1.7], resamples=0)  # fmt: skip
    assert made.parts["curve"].systems == ["x", "y"]
    weight = np.array([1 / CHANCE[item] for item in TEST["item"]])
    light, heavy = weight_range(weight, 1.7, model)
    for row in made.parts["curve"].rows.iter_rows(named=True):
        top, liked = added(metric, row["system"])
        values = []
        for bits in itertools.product([0, 1], repeat=light.size):
            w = np.where(bits, heavy, light)
            values.append(w @ top / (2 if metric == "P@3" else w @ liked))
        assert row["low"] == pytest.approx(min(values))
        assert row["high"] == pytest.approx(min(max(values), 1))


@pytest.mark.usefixtures("any_size")
def test_sensitivity_words_and_figure():
    how = {"propensity": CHANCE, "liked": 4, "items": ITEMS}
    made = sensitivity(TEST, RUNS, "P@3", resamples=0, gammas=[1, 2, 3], **how)
    assert made.table().columns == ["metric", "system", "against", "difference", "value", "note"]
    assert "how far off the odds of being judged" in str(made)
    assert "<table" in made._repr_html_()
    assert repr(made) == str(made)
    assert json.loads(json.dumps(made.to_dict()))["card"]["model"] == "odds"
    assert len(made.figure().to_dict()["datasets"]["rows"]) == 2 * 3
    better, worse = made.systems
    forth, back = made.pair(better, worse), made.pair(worse, better)
    assert forth.value == back.value  # Γ is that of the pair
    assert forth.facts["difference"] == -back.facts["difference"] > 0
    one, two = (
        sensitivity(TEST, RUNS, "P@3", resamples=50, threads=threads, **how) for threads in (1, 2)
    )
    assert one.to_dict() == two.to_dict()
    assert one.parts["curve"].values_of("gamma")[:3] == [1.0, 1.1, 1.2]


@pytest.mark.usefixtures("any_size")
def test_sensitivity_errors():
    how = {"propensity": CHANCE, "liked": 4}
    with pytest.raises(SettingError, match=r"form as a sum over judged hits|without per"):
        sensitivity(TEST, RUNS, "AP@3", **how)
    with pytest.raises(SettingError, match=r"form as a sum over judged hits|without per"):
        sensitivity(TEST, RUNS, "P(per=list)@3", **how)
    with pytest.raises(SettingError, match="cutoff"):
        sensitivity(TEST, RUNS, "P", **how)
    with pytest.raises(UnknownName):
        sensitivity(TEST, RUNS, "P@3", model="odd", **how)
    with pytest.raises(SettingError, match="with weights take"):
        sensitivity(TEST, RUNS, "P@3", weights=[1] * 5, liked=4)
    equal = {"weights": [1] * 5, "liked": 4, "model": "weights", "resamples": 0}
    assert sensitivity(TEST, RUNS, "P@3", **equal, items=ITEMS).rows.height == 1
    relative = us.read_ratings(TEST)
    from unskew.unbiased.propensity import propensity

    with pytest.raises(SettingError, match="up to a factor"):
        sensitivity(TEST, RUNS, "P@3", propensity=propensity(None, relative, exponent=0.5), liked=4)
    with pytest.raises(DataError, match="at least 2 systems"):
        sensitivity(TEST, {"x": RUNS["x"]}, "P@3", **how)
    with pytest.raises(DataError, match="no judgment counts"):
        sensitivity(TEST, RUNS, "Recall@3", propensity=CHANCE, liked=6)
    for bad in ([0.5], [], ["2"], [math.inf]):
        with pytest.raises(SettingError, match="gammas"):
            sensitivity(TEST, RUNS, "P@3", gammas=bad, **how)
    as_array = sensitivity(TEST, RUNS, "P@3", gammas=np.array([1.0, 2.0]), **how)
    assert as_array.parts["curve"].values_of("gamma") == [1.0, 2.0]
    for bad in (1.5, 0, math.nan, "0.9", True):
        with pytest.raises(SettingError, match="level"):
            sensitivity(TEST, RUNS, "P@3", level=bad, **how)
        with pytest.raises(SettingError, match="level"):
            judgments_needed(TEST, RUNS, "P@3", level=bad, **how)
    for bad in (-1, 1.5, "9", True):
        with pytest.raises(SettingError, match="resamples"):
            sensitivity(TEST, RUNS, "P@3", resamples=bad, **how)
        with pytest.raises(SettingError, match="resamples"):
            judgments_needed(TEST, RUNS, "P@3", resamples=bad, **how)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["P@5", "Recall@5"])
def test_the_range_holds_the_truth_as_often_as_stated(metric):
    """Assumed odds are off by up to Γ; ranges at Γ and 90 % hold the truth at least that often."""
    rng = np.random.default_rng(21)
    users, items, gamma, draws = 120, 30, 1.5, 120
    inside = 0
    for _ in range(draws):
        taste = rng.random((users, items)) < 0.3
        chance = rng.uniform(0.2, 0.7, (users, items))
        odds = chance / (1 - chance) * gamma ** np.where(rng.random(chance.shape) < 0.5, -1, 1)
        assumed = odds / (1 + odds)
        order = np.argsort(-(taste * 0.15 + rng.random(taste.shape)), axis=1)
        user, item = np.nonzero(rng.random(chance.shape) < chance)
        frame = {"user": user, "item": item, "rating": np.where(taste[user, item], 5, 2)}
        own = {"user": user, "item": item, "propensity": assumed[user, item]}
        runs = {"r": dict(enumerate(order.tolist())), "s": dict(enumerate(order[:, ::-1].tolist()))}
        found = np.take_along_axis(taste, order, axis=1)[:, :5]
        true = found.mean() if metric == "P@5" else found.sum() / taste.sum()
        how = {"resamples": 200, "level": 0.9, "gammas": [gamma]}
        made = sensitivity(frame, runs, metric, propensity=own, liked=4, **how)
        row = made.parts["curve"].row(system="r")
        inside += row.low <= true <= row.high
    # Never fewer than 90 % but for chance: 4.5 standard deviations.
    assert inside >= draws * 0.9 - 4.5 * math.sqrt(draws * 0.09)


# What would settle it


def test_judgments_needed_by_hand():
    test = {"user": [1, 2], "item": ["a", "c"], "rating": [5, 1]}
    runs = {"x": {u: ["a", "b"] for u in (1, 2)}, "y": {u: ["c", "b"] for u in (1, 2)}}
    made = judgments_needed(test, runs, "P@2", liked=4, difference=0.3, liked_share=0.5)
    # b is in both lists at the same rank: 4 slots, each ±1/4 when liked; variance 1/32.
    wanted = (0.3 / (1.959964 + 0.841621)) ** 2
    needed = math.ceil(1 / (wanted / (16 / 32) + 1 / 4))
    assert made.table().row(0) == ("x", "y", 0.3, 4, needed, "")
    assert made.card["liked_share"] == 0.5
    same = judgments_needed(test, {"x": runs["x"], "z": runs["x"]}, "P@2", liked=4, difference=0.3,
                            liked_share=0.5)  # fmt: skip
    assert same.table().row(0)[4:] == (None, "the two lists do not differ")
    with pytest.raises(DataError, match="no value to draw"):
        same.figure()
    assert len(made.figure().to_dict()["datasets"]["rows"]) == 1
    assert "random judgments needed" in str(made)
    assert "<table" in made._repr_html_()
    assert repr(made) == str(made)
    assert json.loads(json.dumps(made.to_dict()))["card"]["power"] == 0.8
    assert made.pair("y", "x").value == needed  # as many as for x and y
    assert made.pair("y", "x").facts["difference"] == -0.3


@pytest.mark.usefixtures("any_size")
def test_judgments_needed_from_the_estimate():
    how = {"propensity": CHANCE, "liked": 4, "items": ITEMS, "resamples": 0}
    runs = {**RUNS, "z": {1: ["f", "g", "e"], 2: ["d", "a"]}}
    for metric in ("P@3", "RBP@3", "DCG@3", "anti-P@3"):
        precision = "anti-P@3" if metric.startswith("anti") else "P@3"
        made = judgments_needed(TEST, runs, metric, **how).table().row(1, named=True)
        # A slot adds its discount where it is liked: the estimate is that of gain 1.
        plain = estimate(TEST, runs, [metric, precision], gain="binary", loss="binary", **how)
        snips = plain.where(quantity="snips")
        gap = (
            snips.row(system="x", metric=metric).value - snips.row(system="z", metric=metric).value
        )
        assert (made["system"], made["against"]) == ("x", "z")
        assert made["difference"] == pytest.approx(gap), metric
        assert made["value"] > 0
    share = sum(snips.row(system=name, metric="anti-P@3").value for name in "xz") / 2
    pair = {name: runs[name] for name in "xz"}
    card = judgments_needed(TEST, pair, "anti-P@3", **how).card
    assert card["liked_share"] == pytest.approx(share)


def test_a_difference_that_cannot_be_is_refused():
    """P and RBP lie between 0 and 1; two lists that share slots cannot differ by all of it."""
    how = {"liked": 4, "liked_share": 0.5, "items": ITEMS}
    most = {"P@3": 1.0, "RBP@3": 1 - 0.8**3, "DCG@3": 1 + 1 / math.log2(3) + 0.5}
    for metric, largest in most.items():
        for bad in (largest * 1.01, 1e9, 0, -0.1, math.nan, math.inf, True, "0.5"):
            with pytest.raises(
                SettingError, match=r"difference must be a number (above 0 and at|or None)"
            ):
                judgments_needed(TEST, RUNS, metric, difference=bad, **how)
        judgments_needed(TEST, RUNS, metric, difference=largest, **how)
    with pytest.raises(SettingError, match="at most 1, the largest difference of two systems by P"):
        judgments_needed(TEST, RUNS, "P@10", difference=1.3, **how)
    # x and y differ in two of three slots of one user: by 2/6 at most, 1/6 if half is liked.
    runs = {"x": {1: ["a", "b", "c"], 2: ["d"]}, "y": {1: ["a", "e", "c"], 2: ["d"]}}
    for difference, needed in ((1 / 6, 2), (0.2, None)):
        row = judgments_needed(TEST, runs, "P@3", difference=difference, **how).table().row(0)
        assert row[4] == needed
    assert row[5] == "lists that differ in so few liked slots differ by 0.167 at most"


def test_nothing_is_derived_from_an_estimate_that_is_not_usable():
    """Propensities that are far too small: P of 'x' is 5, so no Γ and no number of judgments."""
    users = range(160)
    test = {"user": [*users, *users], "item": ["a"] * 160 + ["c"] * 160, "rating": [5, 2] * 160}
    runs = {
        "x": {u: ["a", "b"] for u in users},
        "y": {u: ["c", "b"] for u in users},
        "z": {u: ["e", "c"] for u in users},
    }
    p = {"a": 0.05, "c": 0.6}
    made = sensitivity(test, runs, "P@2", propensity=p, liked=4)
    assert made.parts["curve"].systems == ["y", "z"]
    why = "the estimate of x is not usable here: IPS 5 is above 1, the largest possible value"
    for other in "yz":
        assert made.pair("x", other).value is None
        assert made.pair("x", other).note == why
    assert made.pair("y", "z").value is not None
    assert made.rows.height == 3
    assert why in str(made)
    assert made.to_dict()["rows"][-1]["note"] == why
    rows = judgments_needed(test, runs, "P@2", propensity=p, liked=4).table().to_dicts()
    assert [row["value"] is None for row in rows] == [True, True, True]
    for row in rows[:2]:
        assert row["difference"] is None
        assert row["note"].startswith("the estimate of x is not usable here: IPS 5 is above 1")
    assert rows[2]["note"] == "the estimates do not differ"
    # What is given need not be estimated.
    given = judgments_needed(test, runs, "P@2", liked=4, difference=0.2, liked_share=0.5)
    assert given.table()["value"].null_count() == 0
    none = sensitivity(test, {"x": runs["x"], "w": runs["x"]}, "P@2", propensity=p, liked=4)
    assert none.pair("x", "w").value is None
    with pytest.raises(DataError, match="no value to draw"):
        none.figure()
    assert "liked" not in judgments_needed(
        test, {"x": runs["x"], "w": runs["z"]}, "P@2", propensity=p, liked=4
    ).footer()[0]  # fmt: skip


def test_judgments_needed_errors():
    for metric in ("Recall@3", "P"):
        with pytest.raises(SettingError, match="a cutoff"):
            judgments_needed(TEST, RUNS, metric, liked=4)
    for name in ("power", "alpha", "liked_share"):
        for bad in (1.0, 0.0, -1, math.nan, "0.5", True):
            with pytest.raises(SettingError, match=name):
                judgments_needed(TEST, RUNS, "P@3", liked=4, **{name: bad})
    with pytest.raises(SettingError, match=r"power must be above alpha \(0.05\)"):
        judgments_needed(TEST, RUNS, "P@3", liked=4, power=0.01)
    with pytest.raises(DataError, match="at least 2 systems"):
        judgments_needed(TEST, {"x": RUNS["x"]}, "P@3", liked=4)
    data = us.read_ratings({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "rating": [5, 1, 4, 5]})
    split = us.splits.Random(test=0.5).split(data)[0]
    lists = us.targets.AllItems().lists(split, liked=4)
    model = us.recommend.Popularity().fit(split.train, 0)
    with pytest.raises(SettingError, match="ready-made lists"):
        judgments_needed(lists, {"a": model, "b": model}, "P@2")


@pytest.mark.slow
def test_so_many_judgments_do_find_the_difference():
    """Draw that many slots at random and judge them: the difference is found as often as said."""
    rng = np.random.default_rng(3)
    users, items, k = 300, 200, 5
    taste = rng.random((users, items)) < 0.3
    better = np.argsort(-(taste * 0.12 + rng.random(taste.shape)), axis=1)[:, :k]
    worse = np.argsort(rng.random(taste.shape), axis=1)[:, :k]
    runs = {"a": dict(enumerate(better.tolist())), "b": dict(enumerate(worse.tolist()))}
    hits = [np.take_along_axis(taste, order, axis=1) for order in (better, worse)]
    gap, share = hits[0].mean() - hits[1].mean(), (hits[0].mean() + hits[1].mean()) / 2
    some = {"user": np.arange(users), "item": better[:, 0], "rating": np.full(users, 5)}
    made = judgments_needed(some, runs, f"P@{k}", liked=4, difference=gap, liked_share=share)
    needed, slots = made.table().row(0)[4], made.table().row(0)[3]
    adds = {}
    for sign, lists in ((1, better), (-1, worse)):
        for u in range(users):
            for i in lists[u]:
                adds[u, i] = adds.get((u, i), 0) + sign / k / users
    keys = [key for key, value in adds.items() if value]
    assert len(keys) == slots
    value = np.array([adds[key] * taste[key] for key in keys])
    found = 0
    for _ in range(600):
        mine = rng.choice(value, needed, replace=False)
        error = slots * mine.std(ddof=1) * math.sqrt(1 / needed - 1 / slots)
        found += slots * mine.mean() > 1.959964 * error
    assert abs(found / 600 - 0.8) < 4.5 * math.sqrt(0.16 / 600)
