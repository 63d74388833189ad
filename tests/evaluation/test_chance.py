"""What chance and fixed rankings are expected to score: against enumeration and simulation."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import unskew as us
from shared import plain
from shared.examples import examples
from shared.ratings import ratings, split_of
from unskew import DataError, SettingError
from unskew.evaluation.chance import (
    expected_precision,
    fairness,
    one_relevant_bounds,
    random_ranks,
)
from unskew.evaluation.chance import sparsity as sparsity_of
from unskew.metrics.names import REGISTRY, parse
from unskew.splits.saved import PROTOCOLS

LIKED = 4


def chi_square_bound(degrees):
    """Return the 99.9 % point of chi-square (Wilson and Hilferty)."""
    part = 2 / (9 * degrees)
    return degrees * (1 - part + 3.09 * math.sqrt(part)) ** 3


# Every order of small lists

TRAIN = [
    ("a", 0, 5),
    ("a", 1, 2),
    ("b", 0, 4),
    ("b", 2, 4),
    ("c", 3, 5),
    ("d", 1, 4),
    ("d", 3, 1),
    ("e", 4, 5),
    ("e", 0, 3),
]
TEST = [
    ("a", 2, 5),
    ("a", 3, 4),
    ("a", 4, 1),
    ("a", 0, 5),
    ("a", 5, 5),
    ("a", 6, 2),
    ("b", 1, 2),
    ("b", 3, 5),
    ("b", 4, 3),
    ("c", 0, 1),
    ("c", 2, 2),
    ("d", 0, 4),
    ("d", 2, 4),
    ("d", 4, 5),
    ("d", 1, 3),
    ("e", 1, 4),
    ("e", 5, 4),
    ("f", 1, 4),
    ("f", 3, 2),
]
"""Pairs in both parts (a and 0, d and 1), test items without training (5, 6), a user without
liked items (c) and one without training (f)."""

SMALL = [
    us.targets.TrainItems(),
    us.targets.Targets(candidates=(1, 2, 3, 4, 5)),
    us.targets.TrainItems(others=2),
    us.targets.TestItems(others=1),
    us.targets.OneRelevant(others=3),
    us.targets.OneRelevant(others=2, candidates="all", fixed="judged"),
    us.targets.TrainItems(strata=2),
    us.targets.Percentiles(others=1, strata=2),
    us.targets.TestTargets(),
    us.targets.UserFlat(1),
]
CUTOFFS = ("@1", "@2", "@3", "")
FORMULAS = [
    "P",
    "P(per=list)",
    "P(bound=upper)",
    "Recall",
    "Recall(per=min)",
    "F1",
    "F1(per=list)",
    "HitRate",
    "AP",
    "AP(per=min)",
    "AP(per=k)",
    "AP(per=list)",
    "RR",
    "DCG",
    "DCG(discount=original)",
    "nDCG",
    "nDCG(ideal=uncut)",
    "nDCG(discount=original)",
    "RBP",
    "RBP(p=0.5)",
    "SR",
    "SR(gamma=0)",
    "SR(gamma=2)",
    "SR(mean=ratio)",
    "HLU",
    "HLU(mean=users)",
    "HLU(weight=popularity,halflife=2)",
    "anti-P",
    "anti-Recall",
    "anti-F1",
    "anti-HitRate",
    "anti-AP",
    "anti-RR",
    "anti-DCG",
    "anti-nDCG",
    "anti-nDCG(ideal=best)",
    "anti-RBP",
    "anti-SR",
    "anti-HLU",
    "condensed-P",
    "condensed-Recall",
    "condensed-AP",
    "condensed-RR",
    "condensed-nDCG",
    "condensed-HitRate",
    "condensed-RBP",
    "condensed-SR",
    "anti-condensed-P",
    "anti-condensed-AP",
    "anti-condensed-RR",
    "anti-condensed-nDCG",
]
CASES = [name + cut for name in FORMULAS for cut in CUTOFFS] + ["nDCG(ideal=full)@2"]
ITEMS = [f"{name}@{k}" for name in ("ARP", "EPC", "Novelty", "Tail") for k in (1, 2)]
OPEN = [f"{name}{cut}" for name in ("Rprec", "bpref", "infAP", "anti-bpref") for cut in ("@2", "")]
ELSEWHERE = ["PopLift", "PopPercentile", "PercentileShift", "TailShift", "UPD"]
"""Walked in tests/metrics/test_popularity.py."""
DESCRIBED = ["Judged", "Judged@2", "Residual@2", "RBPresidual", "RBPresidual@2"]


def small_lists(design, relevance=None):
    return design.lists(split_of(TRAIN, TEST), relevance or us.Relevance(liked=LIKED), seed=3)


def cases_of(lists):
    """Return each list's targets and the judgments it is judged by."""
    judged, rule = lists.judgments, lists.relevance
    liked_ratings = Counter(lists.train.item[rule.is_liked(lists.train.value)].tolist())
    liked_ratings.update(judged.item[rule.is_liked(judged.value)].tolist())
    positives = {i: max(liked_ratings[i], 1) for i in range(len(judged.items))}
    start, item = lists.block(0, len(lists))
    for r in range(len(lists)):
        rows = slice(judged.start[r], judged.start[r + 1])
        items, value = judged.item[rows].tolist(), judged.value[rows]
        good = {i for i, is_good in zip(items, rule.is_liked(value), strict=True) if is_good}
        gain = dict(zip(items, rule.gains(value).tolist(), strict=True))
        loss = dict(zip(items, rule.losses(value).tolist(), strict=True))
        targets = item[start[r] : start[r + 1]].tolist()
        case = plain.Case([], good, set(items) - good, gain, loss, set(), positives)
        yield targets, case


def worth(label, case, top):
    """Return the plain twin of a metric on one order; (top, bottom) where a mean is a ratio."""
    metric = parse(label)
    if metric.name == "Judged" and not top:
        return 0.0
    case = plain.Case(
        list(top), case.good, case.bad, case.gain, case.loss, set(), case.positives, case.targets
    )
    if metric.condensed:
        case = case.condensed()
    if metric.anti:
        case = case.anti()
    given = dict(metric.params)
    if given.get("ideal") == "full":
        given["top_gain"] = 5
    return getattr(plain, metric.name)(case, metric.cutoff, **given)


def enumerated(label, case, targets, depth=None):
    """Return mean and variance of a metric over all orders of the targets."""
    orders = itertools.permutations(targets)
    found = np.array([worth(label, case, order[:depth]) for order in orders], dtype=np.float64)
    return found.mean(axis=0), found.var(axis=0)


def judge(lists, labels, **settings):
    items = len(lists.train.items)
    return us.evaluate(lists, {"m": np.zeros(items)}, labels, users="all", **settings)


def test_every_closed_form_is_walked():
    names = {parse(label).name for label in [*CASES, *ITEMS, *DESCRIBED, *ELSEWHERE]}
    assert names == {name for name, entry in REGISTRY.items() if entry.chance is not None}


@pytest.mark.parametrize("design", SMALL, ids=repr)
def test_the_expectation_is_the_mean_over_all_orders(design):
    lists = small_lists(design)
    assert lists.size.max() <= 6
    labels = [one for one in [*CASES, *DESCRIBED] if (parse(one).cutoff or 1) <= lists.size.max()]
    scores = judge(lists, labels)
    assert scores.simulated == {}
    wanted = {label: [] for label in labels}
    for targets, case in cases_of(lists):
        for label in labels:
            wanted[label].append(enumerated(label, case, targets)[0])
    for row, label in enumerate(scores.labels):
        each = np.array(wanted[label])
        got = scores.chance.values[row]
        if parse(label).params.get("mean") == "ratio":
            assert got == pytest.approx(each[:, 0], abs=1e-12), label
            assert scores.chance.den[row] == pytest.approx(each[:, 1], abs=1e-12), label
            total = each.sum(axis=0)
            mean = total[0] / total[1] if total[1] else 0.0
            assert scores.random(over="lists")[label] == pytest.approx(mean, abs=1e-12)
            continue
        assert got == pytest.approx(each, abs=1e-12, nan_ok=True), label
        mean = math.fsum(np.nan_to_num(each)) / len(lists)
        assert scores.random(over="lists")[label] == pytest.approx(mean, abs=1e-12), label


@pytest.mark.parametrize("depth", [1, 2])
def test_lists_cut_at_a_depth(depth):
    lists = small_lists(us.targets.TrainItems())
    labels = [one for one in [*CASES, *DESCRIBED] if "condensed" not in one]
    labels = [one for one in labels if (parse(one).cutoff or 1) <= depth and "ratio" not in one]
    labels = [one for one in labels if parse(one).name != "HLU"]
    scores = judge(lists, labels, depth=depth)
    assert scores.simulated == {}
    for r, (targets, case) in enumerate(cases_of(lists)):
        for row, label in enumerate(labels):
            mean, _ = enumerated(label, case, targets, depth)
            assert scores.chance.values[row][r] == pytest.approx(mean, abs=1e-12, nan_ok=True), (
                label
            )


@pytest.mark.parametrize(
    "gain", ["levels", "liked-only", "binary", "exponential", {1: 0, 2: 3, 3: 1, 4: 0, 5: 2}]
)
def test_any_rule_for_gains(gain):
    lists = small_lists(
        us.targets.TrainItems(), us.Relevance(liked=LIKED, gain=gain, loss="binary")
    )
    labels = ["nDCG@2", "DCG", "anti-nDCG@3", "anti-DCG@2", "nDCG"]
    scores = judge(lists, labels)
    for r, (targets, case) in enumerate(cases_of(lists)):
        for row, label in enumerate(labels):
            mean, _ = enumerated(label, case, targets)
            assert scores.chance.values[row][r] == pytest.approx(mean, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    "design", [us.targets.AllItems(), us.targets.OneRelevant(3), us.targets.TrainItems(strata=2)]
)
def test_the_expectation_of_what_items_are_like(design):
    """By hand: items of a random list are like the targets, so their mean weight is expected."""
    lists = small_lists(design)
    count = np.bincount(lists.train.item, minlength=len(lists.train.items)).astype(float)
    users = len(set(lists.train.user.tolist()))
    scores = judge(lists, ITEMS)
    order = np.argsort(-count, kind="stable")
    before = np.cumsum(count[order]) - count[order]
    tail = np.ones(count.size)
    tail[order[before < 0.8 * count.sum()]] = 0
    weight = {
        "ARP": count,
        "EPC": 1 - count / users,
        "Novelty": -np.log2(np.maximum(count, 1) / users),
        "Tail": tail,
    }
    start, item = lists.block(0, len(lists))
    for row, label in enumerate(ITEMS):
        own = weight[parse(label).name]
        for r in range(len(lists)):
            targets = item[start[r] : start[r + 1]]
            if targets.size:
                assert scores.chance.values[row][r] == pytest.approx(own[targets].mean(), abs=1e-12)
            else:
                assert math.isnan(scores.chance.values[row][r])


def test_what_has_no_closed_form_is_simulated():
    draws = 600
    labels = [*OPEN, "AUC@2", "AUC", "Coverage@2", "P@2"]
    for design in (us.targets.AllItems(), us.targets.OneRelevant(others=3)):
        lists = small_lists(design)
        scores = judge(lists, labels, draws=draws, seed=5)
        assert scores.simulated == {**dict.fromkeys(labels[:-1], draws), "Coverage@2": 2}
        text = str(scores)
        assert f"simulated, mean of {draws} random orders" in text
        squares = cells = 0
        for r, (targets, case) in enumerate(cases_of(lists)):
            if len(targets) > 6 or case.good - set(targets):
                continue
            case.targets = len(targets)
            for row, label in enumerate(labels[:-2]):
                mean, variance = enumerated(label, case, targets)
                got = scores.chance.values[row][r]
                if math.isnan(mean) or variance < 1e-20:
                    assert got == pytest.approx(mean, abs=1e-12, nan_ok=True)
                    continue
                z = (got - mean) / math.sqrt(variance / draws)
                assert abs(z) < 4.5, (label, got, mean)
                squares, cells = squares + z * z, cells + 1
        assert cells > 10
        # Metrics of one list go together: the bound is for as many independent ones as lists.
        assert squares / cells < 3
        assert 0 < scores.random()["Coverage@2"] <= 1


def test_condensed_lists_that_are_cut_are_simulated():
    lists = small_lists(us.targets.AllItems())
    scores = judge(lists, ["condensed-P@2", "P@2"], depth=3, draws=50)
    assert scores.simulated == {"condensed-P@2": 50}
    for deep in (None, int(lists.size.max()), 100):  # what cuts nothing changes nothing
        free = judge(lists, ["condensed-P@2", "P@2"], depth=deep)
        assert free.simulated == {}


def test_ratios_of_sums_are_simulated_with_their_denominators():
    lists = small_lists(us.targets.TrainItems())
    labels = ["condensed-HLU@2", "condensed-SR(mean=ratio)@2", "anti-condensed-HLU@1"]
    draws = 900
    scores = judge(lists, labels, depth=2, draws=draws)
    assert scores.simulated == dict.fromkeys(labels, draws)
    for row, label in enumerate(labels):
        for r, (targets, case) in enumerate(cases_of(lists)):
            mean, variance = enumerated(label, case, targets, depth=2)
            assert scores.chance.den[row][r] == pytest.approx(mean[1], abs=1e-12)
            error = 4.5 * math.sqrt(variance[0] / draws) + 1e-12
            assert scores.chance.values[row][r] == pytest.approx(mean[0], abs=error)
        assert 0 < scores.random()[label] < 1


def test_expectations_do_not_depend_on_the_systems():
    lists = small_lists(us.targets.AllItems())
    labels = ["nDCG@3", "bpref", "Coverage@2"]
    one = us.evaluate(lists, {"m": np.arange(7.0)}, labels, seed=2)
    two = us.evaluate(lists, {"m": np.zeros(7), "o": np.ones(7)}, labels, seed=2)
    assert one.random() == two.random()
    other = us.evaluate(lists, {"m": np.zeros(7)}, labels, seed=3).random()
    assert other["nDCG@3"] == one.random()["nDCG@3"]
    assert other["bpref"] != one.random()["bpref"]
    with pytest.raises(SettingError, match="draws must be a whole number from 1 up"):
        us.evaluate(lists, {"m": np.zeros(7)}, "P@1", draws=0)


# Random places


@pytest.mark.parametrize(("items", "judged"), [(3, 2), (4, 4), (6, 2), (7, 3)])
def test_judged_items_fall_on_all_places_alike(items, judged):
    """By shuffling where most targets are judged, else by drawing again."""
    users = 6000
    test = [(u, i, 5) for u in range(users) for i in range(judged)]
    train = [(users, i, 3) for i in range(items)]
    lists = us.targets.AllItems().lists(split_of(train, test), liked=4)
    ranks = random_ranks(lists, seed=1)
    assert np.diff(ranks.start).tolist() == [judged] * users + [0]
    rank = ranks.rank.reshape(users, judged)
    assert (np.diff(rank, axis=1) > 0).all()
    who = lists.judgments.item[ranks.judgment].reshape(users, judged)
    place = np.empty_like(rank)
    np.put_along_axis(place, who, rank, axis=1)
    seen = Counter(map(tuple, place.tolist()))
    cells = list(itertools.permutations(range(1, items + 1), judged))
    assert set(seen) <= set(cells)
    expected = users / len(cells)
    assert sum((seen[c] - expected) ** 2 / expected for c in cells) < chi_square_bound(
        len(cells) - 1
    )
    other = random_ranks(lists, seed=2)
    assert other.judgment.tolist() != ranks.judgment.tolist()
    assert random_ranks(lists, seed=1).judgment.tolist() == ranks.judgment.tolist()


def test_what_is_no_target_has_no_random_place():
    lists = small_lists(us.targets.TrainItems())
    ranks = random_ranks(lists)
    start, item = lists.block(0, len(lists))
    for r in range(len(lists)):
        rows = ranks.judgment[ranks.start[r] : ranks.start[r + 1]]
        targets = set(item[start[r] : start[r + 1]].tolist())
        judged = lists.judgments
        mine = judged.item[judged.start[r] : judged.start[r + 1]].tolist()
        assert set(judged.item[rows].tolist()) == targets & set(mine)
        assert ranks.rank[ranks.start[r] : ranks.start[r + 1]].max(initial=0) <= len(targets)


# Random recommendation meets its expectation under every design


def some_data():
    """Return ratings with time stamps and tags, popular and unpopular items."""
    rng = np.random.default_rng(17)
    chance = np.linspace(0.75, 0.08, 60)[None, :] * rng.uniform(0.5, 1.3, (36, 1))
    user, item = np.nonzero(rng.random((36, 60)) < chance)
    return pl.DataFrame(
        {
            "user": user,
            "item": item,
            "rating": rng.integers(1, 6, user.size),
            "time": rng.permutation(user.size),
            "familiar": rng.random(user.size) < 0.5,
            "fold": rng.integers(1, 4, user.size),
        }
    )


def random_part():
    rng = np.random.default_rng(18)
    user, item = np.nonzero(rng.random((36, 60)) < 0.15)
    return us.read_ratings(
        {
            "user": user,
            "item": item,
            "rating": rng.integers(1, 6, user.size),
            "time": rng.permutation(user.size),
        }
    )


SPLITS = [
    us.splits.Random(),
    us.splits.Random(folds=3),
    us.splits.PerUser(test=0.3),
    us.splits.LeaveOut(3),
    us.splits.Temporal(test=0.3),
    us.splits.TemporalEvents(aggregate="sum"),
    us.splits.Uniform(test=0.15),
    us.splits.Flat(t=3),
    us.splits.HeadRemoved(us.splits.Random(test=0.4), share=0.2),
    us.splits.Forced(random_part()),
    us.splits.FamiliarTraining(folds=3),
    us.splits.Given(column="fold"),
    us.splits.Given(test=random_part(), overlap="keep"),
    # With pairs that were met before the test and are not trained on: they are no targets.
    us.splits.Windows(number=2, length=180, train_length=300, gap=60),
    us.splits.ModelAges(ages=(60, 200), test=0.3),
    us.splits.Sessions(pause=60, test=0.4, pick="next"),
]
TARGETS = [
    us.targets.AllItems(),
    us.targets.TestItems(),
    us.targets.TrainItems(),
    us.targets.TestItems(others=15),
    us.targets.OneRelevant(others=12),
    us.targets.OneRelevant(others=12, fresh=False),
    us.targets.OneRelevant(others=12, candidates="all", by="popularity"),
    us.targets.Percentiles(others=10, strata=4),
    us.targets.AllItems(strata=3),
    us.targets.TestTargets(),
    us.targets.UserFlat(12),
]
RULE = ["P@10", "Recall@10", "nDCG@10", "RR@10", "AP@10", "HitRate@10", "anti-P@10"]


def test_every_protocol_is_walked():
    assert {type(how).name for how in SPLITS} == set(PROTOCOLS)


def deviations(lists, first_seed, seeds=24):
    """Return for each metric z of the mean over seeds of random recommendation.

    NaN where the outcome is all but certain, as where a list has no more targets than places.

    A user's lists share the user's random scores, so that users are the independent parts.
    """
    models = {str(s): us.recommend.Random().fit(lists.train, first_seed + s) for s in range(seeds)}
    scores = us.evaluate(lists, models, RULE, users="all")
    found = {}
    for row, label in enumerate(RULE):
        expected = np.nan_to_num(scores.chance.values[row])
        assert scores.random(over="lists")[label] == pytest.approx(expected.mean(), abs=1e-12)
        values = np.array([np.nan_to_num(scores.values(name, label)) for name in models])
        off = np.array([np.bincount(lists.user, one - expected) for one in values])
        mean, error = off.mean(axis=0).sum(), off.var(axis=0, ddof=1).sum() / seeds
        if np.count_nonzero(np.abs(off - off[0]) > 1e-9) < 25:  # too few events for an error
            assert abs(mean) * seeds < 20
            found[label] = math.nan
        else:
            found[label] = float(mean / math.sqrt(error))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
def test_chance_meets_its_expectation_under_every_split_and_every_design():
    data = us.read_ratings(some_data(), tags=["familiar", "fold"])
    found = {label: [] for label in RULE}
    for number, (how, design) in enumerate(itertools.product(SPLITS, TARGETS)):
        split = how.split(data, seed=number)[0]
        lists = design.lists(split, liked=LIKED, seed=number)
        for label, z in deviations(lists, first_seed=10**6 + 1000 * number).items():
            if not math.isnan(z):
                assert abs(z) <= 4.5, (how, design, label)
                found[label].append(z)
    for label, several in found.items():
        assert len(several) > 0.8 * len(SPLITS) * len(TARGETS)
        assert math.fsum(z * z for z in several) < chi_square_bound(len(several)), label
        assert abs(math.fsum(several)) < 4.5 * math.sqrt(len(several)), label


@pytest.mark.parametrize("design", TARGETS[:5:2], ids=repr)
@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
def test_chance_meets_its_expectation(design):
    data = us.read_ratings(some_data(), tags=["familiar", "fold"])
    lists = design.lists(us.splits.Random().split(data)[0], liked=LIKED)
    for label, z in deviations(lists, first_seed=77).items():
        assert abs(z) <= 4.5, label


# The lemma


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    others=st.sampled_from([0, 1, 3, 8, 40]),
    n=st.sampled_from([1, 2, 5, 10]),
    candidates=st.sampled_from(["all", "test", "train"]),
)
@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
def test_one_relevant_precision_lies_within_its_bounds(seed, others, n, candidates):
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((6, 15)) < 0.55)
    test = rng.random(user.size) < 0.4
    value = rng.integers(3, 6, user.size)
    both = test & (rng.random(user.size) < 0.15)
    assume(test.sum() > 2 and (~test).sum() > 2)
    rows = list(zip(user.tolist(), item.tolist(), value.tolist(), strict=True))
    split = split_of(
        [one for one, t, b in zip(rows, test, both, strict=True) if b or not t],
        [one for one, t in zip(rows, test, strict=True) if t],
    )
    every_one = us.targets.Targets(candidates=candidates, others=others)
    single = us.targets.OneRelevant(others=others, candidates=candidates, fresh=False)
    try:
        one = single.lists(split, liked=LIKED, seed=seed)
    except DataError:
        assume(False)
    whole = every_one.lists(split, liked=LIKED, seed=seed)
    table = np.array(
        [rng.permutation(len(split.train.items)) for _ in range(len(split.train.users))], float
    )
    low, high = one_relevant_bounds(whole, us.judging.ranks_of(table, whole), n)
    got = us.evaluate(one, {"m": table}, f"P@{n}", users="all").means()["m"][f"P@{n}"]
    assert low - 1e-12 <= got <= high + 1e-12
    if len(set(one.user.tolist())) == len(one):
        assert low == pytest.approx(got, abs=1e-12)
        assert high == pytest.approx(got, abs=1e-12)


def test_the_bounds_by_hand():
    """A user with two liked items at ranks 2 and 3 of 5, another with one at rank 1 of 4."""
    train = [("a", 9, 3), ("b", 9, 3), ("b", 1, 3), ("c", 3, 1), ("c", 4, 1), ("c", 5, 1)]
    test = [("a", 1, 5), ("a", 2, 5), ("b", 2, 5)]
    split = split_of(train, test)
    table = np.array([[4, 3, 5, 2, 1, 0], [0, 9, 3, 2, 1, 0], [0.0, 0, 0, 0, 0, 0]])
    lists = us.targets.Targets(candidates=(1, 2, 3, 4, 5)).lists(split, liked=4)
    ranks = us.judging.ranks_of(table, lists)
    assert ranks.rank.tolist() == [2, 3, 1]
    # n=1: hits at rank 1 are one of three; within n + |PR(u)| - 1, a's rank 2 counts too.
    assert one_relevant_bounds(lists, ranks, 1) == pytest.approx((1 / 3, 2 / 3))
    assert one_relevant_bounds(lists, ranks, 2) == pytest.approx((2 / 6, 3 / 6))
    one = us.targets.OneRelevant(others="all", candidates=(1, 2, 3, 4, 5)).lists(split, liked=4)
    # Alone among the others, both of a's liked items stand at rank 2.
    assert us.judging.ranks_of(table, one).rank.tolist() == [2, 2, 1]
    with pytest.raises(SettingError, match="lists with all relevant items"):
        one_relevant_bounds(one, us.judging.ranks_of(table, one))


# Fixed rankings


def brute_force(rows, order, n, sigma, candidates, users):
    """Walk all splits of the rows; return the expected P@n of a fixed order, over all users."""
    items, total = set(order), 0.0
    for parts in itertools.product([False, True], repeat=len(rows)):
        chance = math.prod(sigma if test else 1 - sigma for test in parts)
        test = [row for row, in_test in zip(rows, parts, strict=True) if in_test]
        train = [row for row, in_test in zip(rows, parts, strict=True) if not in_test]
        pool = items if candidates == "all" else {i for _, i, _ in test}
        hits = 0
        for u in users:
            known = {i for v, i, _ in train if v == u}
            liked = {i for v, i, value in test if v == u and value >= LIKED}
            top = [i for i in order if i in pool and i not in known][:n]
            hits += len(liked & set(top))
        total += chance * hits / (n * len(users))
    return total


ROWS = [
    (0, 0, 5),
    (0, 1, 2),
    (0, 3, 4),
    (1, 0, 4),
    (1, 1, 5),
    (1, 2, 5),
    (2, 0, 1),
    (2, 2, 4),
    (3, 4, 5),
    (3, 0, 4),
]


@pytest.mark.parametrize("candidates", ["all", "test"])
@pytest.mark.parametrize(("n", "sigma"), [(1, 0.2), (2, 0.5), (3, 0.3), (7, 0.2)])
def test_a_fixed_order_over_all_splits(candidates, n, sigma):
    data = ratings(ROWS)
    users = [0, 1, 2, 3]
    popular = [0, 1, 2, 3, 4]  # counts 4, 2, 2, 1, 1
    wanted = brute_force(ROWS, popular, n, sigma, candidates, users)
    got = expected_precision(data, n=n, liked=LIKED, test=sigma, candidates=candidates)
    assert got == pytest.approx(wanted, abs=1e-12)
    score = [0.5, 2.0, 2.0, -1.0, 7.0]
    wanted = brute_force(ROWS, [4, 1, 2, 0, 3], n, sigma, candidates, users)
    rule = us.Relevance(above=3)
    got = expected_precision(data, score, n, relevance=rule, test=sigma, candidates=candidates)
    assert got == pytest.approx(wanted, abs=1e-12)


def test_a_fixed_order_by_hand():
    """One user, two items, both rated, one liked; the other first: P@1 = σ(1-σ)."""
    data = ratings([(0, 0, 5), (0, 1, 1)])
    for sigma in (0.2, 0.5):
        got = expected_precision(data, [1, 2], 1, liked=4, test=sigma)
        assert got == pytest.approx(sigma * (1 - sigma), abs=1e-15)
        assert expected_precision(data, [2, 1], 1, liked=4, test=sigma) == pytest.approx(sigma)


def test_equation_3_by_hand():
    """Three users who rated two of four items each, all items candidates, σ = 1/2, n = 2."""
    rows = [(0, 0, 5), (0, 1, 5), (1, 0, 5), (1, 2, 1), (2, 0, 2), (2, 1, 4), (3, 3, 5), (3, 0, 5)]
    data = ratings(rows)
    # |T_u| = 4 - 2/2 = 3 for all; the two most rated items have 3 and 2 liked ratings.
    wanted = Fraction(1, 2) * 4 * Fraction(1, 3) / (2 * 4) * 5
    got = expected_precision(data, n=2, liked=4, test=0.5, candidates="all", paper=True)
    assert got == pytest.approx(float(wanted), abs=1e-15)
    # Among test items, an item is a candidate with probability 1 - 2^-ratings.
    pool = sum(1 - Fraction(1, 2) ** c for c in (4, 2, 1, 1))
    wanted = Fraction(1, 2) * pool / (pool - 1) / (2 * 4) * 5
    got = expected_precision(data, n=2, liked=4, test=0.5, paper=True)
    assert got == pytest.approx(float(wanted), abs=1e-15)


@pytest.mark.parametrize("candidates", ["all", "test"])
def test_the_mean_over_random_splits(candidates):
    data = us.read_ratings(some_data().drop("familiar", "fold", "time"))
    popular = np.bincount(data.item, minlength=len(data.items)).astype(float)
    found = []
    for seed in range(60):
        split = us.splits.Random(0.2).split(data, seed)[0]
        lists = us.targets.Targets(candidates=candidates).lists(split, liked=LIKED)
        found.append(us.evaluate(lists, {"m": popular}, "P@5", users="all").means()["m"]["P@5"])
    exact = expected_precision(data, n=5, liked=LIKED, candidates=candidates)
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert abs(np.mean(found) - exact) < 4 * error
    assert error < 0.05 * exact
    assert expected_precision(data, n=5, liked=LIKED, paper=True) < exact - 5 * error


def test_settings_of_fixed_orders():
    data = ratings(ROWS)
    with pytest.raises(
        DataError, match=r"score must have an entry per item \(5\), got shape \(2,\)"
    ):
        expected_precision(data, [1, 2], liked=4)
    with pytest.raises(SettingError, match="either relevance or liked"):
        expected_precision(data)
    with pytest.raises(us.UnknownName, match="Allowed: test, all"):
        expected_precision(data, liked=4, candidates="train")
    with pytest.raises(SettingError, match="test must be a share"):
        expected_precision(data, liked=4, test=1.5)
    with pytest.raises(SettingError, match="n must be a whole number"):
        expected_precision(data, n=0, liked=4)


# Sparsity


@pytest.mark.parametrize(
    "design", [us.targets.TrainItems(), us.targets.AllItems(), us.targets.TestItems(others=3)]
)
def test_density_is_what_chance_scores(design):
    lists = small_lists(design)
    found = sparsity_of(lists)
    scores = judge(lists, ["P@1", "P"])
    assert found.rho == pytest.approx(scores.random()["P@1"], abs=1e-15)
    assert found.rho == pytest.approx(scores.random()["P"], abs=1e-15)
    start, item = lists.block(0, len(lists))
    shares = []
    for r, (targets, case) in enumerate(cases_of(lists)):
        assert targets == item[start[r] : start[r + 1]].tolist()
        shares.append(len(case.good & set(targets)) / len(targets))
    assert found.rho == pytest.approx(np.mean(shares), abs=1e-15)


def test_density_of_one_relevant_lists():
    lists = us.targets.OneRelevant(others=4, candidates="all").lists(
        split_of(TRAIN, TEST), liked=LIKED
    )
    found = sparsity_of(lists)
    assert len(set(lists.size.tolist())) > 1
    assert found.inverse_t == pytest.approx(np.mean(1 / lists.size), abs=1e-15)
    scores = judge(lists, ["P@1", "P@2", "HitRate@2"])
    assert scores.random()["P@1"] == pytest.approx(found.inverse_t, abs=1e-15)
    assert scores.random()["P@2"] == pytest.approx(found.inverse_t, abs=1e-15)
    assert scores.random()["HitRate@2"] == pytest.approx(2 * found.inverse_t, abs=1e-15)


def test_density_by_hand():
    """Two users, four items each rates two of; one of each user's ratings is tested and liked."""
    split = split_of([(0, 0, 5), (1, 1, 1)], [(0, 1, 5), (1, 3, 5), (1, 2, 1)])
    found = sparsity_of(us.targets.AllItems().lists(split, liked=4))
    assert found.rho == pytest.approx(1 / 3)  # one of three targets for both
    assert found.sigma == pytest.approx(3 / 5)
    assert found.inverse_t == pytest.approx(1 / 3)
    assert found.delta == pytest.approx(3 / (3 * 2))  # three liked ratings, t = 3, two users
    assert found.sigma_delta == pytest.approx(3 / 10)


# Fairness


def test_fairness_of_a_random_split():
    data = us.read_ratings(some_data().drop("familiar", "fold", "time"))
    users = len(data.users)
    counts = np.bincount(data.item, minlength=len(data.items))
    found = []
    for seed in range(40):
        split = us.splits.Random(0.25).split(data, seed)[0]
        fair = fairness(split)
        tested = np.bincount(split.test.item, minlength=counts.size)
        trained = counts - tested
        assert fair.factor == pytest.approx(tested / (users - trained))
        assert fair.popularity.tolist() == trained.tolist()
        found.append(fair.factor)
    theory = 0.25 * counts / (users - 0.75 * counts)
    assert fair.expected == pytest.approx(theory, abs=1e-15)
    # A ratio of counts, so its mean is off by what the bottom's own spread makes of it.
    z = (np.mean(found, axis=0) - theory) / (np.std(found, axis=0, ddof=1) / math.sqrt(40))
    assert np.abs(z).max() < 4.5
    folds = us.splits.Random(folds=4).split(data)[0]
    assert fairness(folds).expected == pytest.approx(theory, abs=1e-15)
    assert fair.spread > 0.5
    assert fair.towards_popular > 1.5
    assert "judged" in str(fair)


def test_equal_numbers_of_test_ratings_are_fair_only_where_items_are_equally_popular():
    even = ratings([(u, (u + k) % 12, 4) for u in range(12) for k in range(5)])
    for how in (us.splits.Flat(t=2), us.splits.Uniform(test=0.2)):
        split = how.split(even, 1)[0]
        fair = fairness(split)
        tested = np.bincount(split.test.item, minlength=12)
        assert len(set(tested.tolist())) == 1
        eta = tested[0]
        assert fair.factor == pytest.approx(np.full(12, eta / (12 - 5 + eta)))
        assert fair.expected == pytest.approx(fair.factor)
        assert fair.spread == pytest.approx(0, abs=1e-12)
        assert fair.towards_popular == pytest.approx(1)
    uneven = us.read_ratings(some_data().drop("familiar", "fold", "time"))
    counts = np.bincount(uneven.item, minlength=len(uneven.items))
    fair = fairness(us.splits.Flat(t=3, min_ratings=5).split(uneven, 1)[0])
    kept = counts >= 5
    assert fair.factor[kept] == pytest.approx(3 / (36 - counts[kept] + 3))
    assert fair.expected[kept] == pytest.approx(fair.factor[kept])
    # The more popular, the more likely to be judged.
    order = np.argsort(counts[kept], kind="stable")
    assert (np.diff(fair.factor[kept][order]) >= 0).all()
    assert fair.towards_popular > 1.2
    assert fairness(us.splits.PerUser().split(uneven)[0]).expected is None


def test_fairness_where_the_truth_is_known():
    """Three users, two items; all like item 0, users 0 and 1 like item 1."""
    world = ratings([(0, 0, 5), (1, 0, 5), (2, 0, 5), (0, 1, 5), (1, 1, 5), (2, 1, 1)])
    split = split_of([(0, 0, 5)], [(1, 0, 5), (2, 1, 1), (1, 1, 5)])
    fair = fairness(split, truth=world, relevance=us.Relevance(liked=4))
    # Item 0: users 1 and 2 could be recommended it and like it, user 1 is tested. Item 1: users
    # 0 and 1 like it, user 1 is tested; that user 2, who does not like it, is tested is nothing.
    assert fair.factor.tolist() == [1 / 2, 1 / 2]
    assert fair.spread == 0
    blind = fairness(split)
    assert blind.factor.tolist() == [1 / 2, 2 / 3]
    assert blind.spread == pytest.approx((1 / 12) / (7 / 12))
    with pytest.raises(SettingError, match="either relevance or liked"):
        fairness(split, truth=world)
    known = split_of([(0, 0, 5), (1, 0, 4)], [(0, 1, 5)])
    factor = fairness(
        known,
        truth=ratings([(0, 0, 5), (1, 0, 5), (0, 1, 5), (1, 1, 4)]),
        relevance=us.Relevance(liked=4),
    ).factor
    assert math.isnan(factor[0])  # everyone who likes it has it in training
    assert factor[1] == 1 / 2


def test_fairness_over_pairs():
    data = us.read_ratings(some_data().drop("familiar", "fold", "time"))
    split = us.splits.Random(0.2, exact=True).split(data)[0]
    items = len(data.items)
    same = fairness(split, propensity=lambda who: np.full((who.size, items), 0.3))
    assert same.pair_spread == pytest.approx(0, abs=1e-7)
    assert same.spread > 0
    assert "over pairs" in str(same)
    assert fairness(split).pair_spread is None
    sigma = len(split.test) / len(data)

    def half(who):
        return np.where(np.arange(items) % 2, 0.5, 0.25) * np.ones((who.size, 1))

    high, low = (sigma * p / (1 - (1 - sigma) * p) for p in (0.5, 0.25))
    wanted = (high - low) / (high + low)
    assert fairness(split, propensity=half).pair_spread == pytest.approx(wanted)


# Published data


@pytest.fixture(scope="session")
def ml1m():
    from shared.real_data import real_data

    return us.read_ratings(real_data("ml-1m/ratings.parquet"))


def popularity_over_seeds(data, how, design, seeds=5):
    found = []
    for seed in range(seeds):
        split = how.split(data, seed)[0]
        lists = design.lists(split, liked=5, seed=seed)
        model = us.recommend.Popularity().fit(split.train)
        found.append(us.evaluate(lists, {"m": model}, "P@10", users="all").means()["m"]["P@10"])
    return found


UNIFORM = us.splits.Uniform(test=0.2, epsilon=0.2)
HEADLESS = us.splits.HeadRemoved(us.splits.Random(test=0.2), share=0.1)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "design", "wanted"),
    [
        (us.splits.Random(test=0.2), us.targets.TestItems(), 0.0820),
        (us.splits.Random(test=0.2), us.targets.OneRelevant(others=99), 0.0639),
        (HEADLESS, us.targets.OneRelevant(others=99), 0.0422),
        (UNIFORM, us.targets.OneRelevant(others=99), 0.0232),
        (UNIFORM, us.targets.OneRelevant(others=99, candidates="all"), 0.040),
        (us.splits.Random(test=0.2), us.targets.Percentiles(), 0.0140),
        (UNIFORM, us.targets.TestItems(), 0.0247),
    ],
    ids=["AR", "1R", "1R-headless", "U1R", "U1R-all", "P1R", "UAR"],
)
def test_popularity_on_ml1m(ml1m, how, design, wanted):
    found = popularity_over_seeds(ml1m, how, design)
    assert np.mean(found) == pytest.approx(wanted, abs=0.0015), found


@pytest.mark.real
@pytest.mark.slow
def test_the_expected_precision_of_popularity_on_ml1m(ml1m):
    popular = np.bincount(ml1m.item, minlength=len(ml1m.items)).astype(float)
    found = []
    for seed in range(20):
        split = us.splits.Random(test=0.2).split(ml1m, seed)[0]
        lists = us.targets.TestItems().lists(split, liked=5, seed=seed)
        scores = us.evaluate(lists, {"m": popular}, "P@10", users="all")
        found.append(scores.means()["m"]["P@10"])
    exact = expected_precision(ml1m, liked=5)
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert abs(np.mean(found) - exact) < 4 * error, (np.mean(found), error, exact)
    paper = expected_precision(ml1m, liked=5, paper=True)
    assert paper < 0.6 * exact
