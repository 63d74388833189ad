"""Sampled metrics: distributions by enumeration, corrections by their equations, target sizes."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.examples import examples
from shared.real_data import real_data
from unskew import DataError, SettingError
from unskew.evaluation.one_relevant import value_at
from unskew.judging.rank import ranks_of
from unskew.judging.ranked import anchor_ranks, full_ranks
from unskew.metrics.names import REGISTRY
from unskew.stats.correlation import kendall
from unskew.unbiased.sampled import expected_metrics as sampled_ranks
from unskew.unbiased.sampled import sampled_metrics as sampled
from unskew.unbiased.sampled.expected_metrics import (
    corrected_values,
    expected_metrics,
    expected_sampled,
    rank_distribution,
)
from unskew.unbiased.sampled.sampled_metrics import correct_sampled, sampled_metrics
from unskew.unbiased.sampled.target_sizes import target_sizes

LABELS = [
    "P@3",
    "Recall@3",
    "HitRate@2",
    "F1@3",
    "Rprec",
    "AP",
    "AP@3",
    "RR@4",
    "DCG@3",
    "nDCG",
    "RBP@4",
    "RBP(p=0.5)",
    "AUC",
]


# Metrics of one rank


def test_metrics_of_one_rank_are_what_evaluate_says():
    items = 8
    lists = {
        u: [100 + i if i != u else 7 for i in range(1, items + 1)] for u in range(1, items + 1)
    }
    test = {"user": list(lists), "item": [7] * items, "rating": [1] * items}
    catalogue = [7, *range(101, 101 + items)][: items + 1]
    labels = [label for label in LABELS if label != "AUC"]
    scores = us.evaluate(test, {"s": lists}, labels, liked=1, items=catalogue)
    for label in labels:
        want = scores.values("s", label)[np.argsort(scores.lists["user"].to_numpy())]
        assert value_at(label, np.arange(1, items + 1), items) == pytest.approx(want), label
    # Of AUC: the share of the others that stand below.
    assert value_at("AUC", [1, 3, 5], 5).tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        ("bpref", "no value for the rank"),
        ("anti-P@3", "other judged items"),
        ("condensed-RR", "other judged items"),
        ("P", "needs a cutoff"),
        ("nDCG(ideal=full)@3", "settings"),
        ("Coverage@3", "no value for the rank"),
    ],
)
def test_metrics_of_more_than_one_rank_are_refused(metric, why):
    with pytest.raises(SettingError, match=why):
        value_at(metric, [1], 5)


# The sampled rank


@pytest.mark.parametrize("replacement", [False, True])
def test_distribution_by_enumeration(replacement):
    items, n = 6, 3
    for rank in range(1, items + 1):
        others = [at for at in range(1, items + 1) if at != rank]
        draws = (
            itertools.product(others, repeat=n)
            if replacement
            else itertools.combinations(others, n)
        )
        seen = np.bincount([sum(at < rank for at in draw) for draw in draws], minlength=n + 1)
        want = seen / seen.sum()
        found = rank_distribution(rank, items, n, replacement=replacement)[0]
        assert found == pytest.approx(want, abs=1e-15)


def test_distribution_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    for items, n in ((10, 9), (500, 40), (20_000, 100), (3_000, 2_900)):
        ranks = np.unique(np.linspace(1, items, 17).astype(int))
        drawn = np.arange(n + 1)
        found = rank_distribution(ranks, items, n)
        want = stats.hypergeom.pmf(drawn[None, :], items - 1, ranks[:, None] - 1, n)
        assert found == pytest.approx(want, rel=1e-7, abs=1e-300)
        assert found.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
        found = rank_distribution(ranks, items, n, replacement=True)
        want = stats.binom.pmf(drawn[None, :], n, (ranks[:, None] - 1) / (items - 1))
        assert found == pytest.approx(want, rel=1e-7, abs=1e-300)


def test_distribution_errors():
    with pytest.raises(DataError, match="from 1 to 5"):
        rank_distribution([6], 5, 2)
    with pytest.raises(DataError, match="whole numbers"):
        rank_distribution([1.5], 5, 2)
    with pytest.raises(SettingError, match="only 4 others to draw"):
        rank_distribution([1], 5, 5)
    assert rank_distribution([1], 5, 7, replacement=True)[0, 0] == 1.0
    with pytest.raises(SettingError, match="n must be a whole number"):
        rank_distribution([1], 5, 0)


@given(st.sampled_from(LABELS), st.integers(3, 40), st.data())
def test_expectations(label, items, data):
    """All others drawn: the metric itself. One drawn: a straight line in the rank."""
    ranks = np.arange(1, items + 1)
    exact = expected_sampled(label, ranks, items, items - 1)
    assert exact == pytest.approx(value_at(label, ranks, items), abs=1e-12)
    line = expected_sampled(label, ranks, items, 1)
    assert np.diff(line, 2) == pytest.approx(np.zeros(items - 2), abs=1e-12)
    n = data.draw(st.integers(1, items - 1))
    plain = value_at(label, np.arange(1, n + 2), n + 1)
    want = [
        sum(plain[x] * math.comb(r - 1, x) * math.comb(items - r, n - x) for x in range(n + 1))
        / math.comb(items - 1, n)
        for r in range(1, items + 1)
    ]
    assert expected_sampled(label, ranks, items, n) == pytest.approx(want, abs=1e-12)


def test_recall_has_a_closed_form():
    stats = pytest.importorskip("scipy.stats")
    found = expected_sampled("Recall@10", [1, 40, 400], 1_000, 100)
    assert found == pytest.approx(stats.hypergeom.cdf(9, 999, np.array([0, 39, 399]), 100))


def test_blocks_do_not_matter(monkeypatch):
    ranks = np.arange(1, 201)
    whole = expected_sampled("nDCG@10", ranks, 200, 20)
    fitted = corrected_values(["Recall@5", "AP"], 200, 20)
    monkeypatch.setattr(sampled_ranks, "_CELLS", 300)
    assert expected_sampled("nDCG@10", ranks, 200, 20) == pytest.approx(whole, abs=1e-15)
    assert corrected_values(["Recall@5", "AP"], 200, 20) == pytest.approx(fitted, abs=1e-9)


# Corrections


def loss(x, chance, truth, gamma):
    """Return the mean squared bias + gamma x the mean variance."""
    mean = chance @ x
    return ((mean - truth) ** 2 + gamma * (chance @ x**2 - mean**2)).mean()


@examples(30)
@given(
    st.sampled_from(["Recall@5", "nDCG@5", "AP"]),
    st.floats(0.001, 2.0),
    st.booleans(),
    st.integers(0, 1000),
)
def test_trade_off_is_the_minimum(label, gamma, replacement, seed):
    items, n = 60, 12
    ranks = np.arange(1, items + 1)
    chance = rank_distribution(ranks, items, n, replacement=replacement)
    truth = value_at(label, ranks, items)
    best = corrected_values(label, items, n, gamma=gamma, replacement=replacement)[0]
    least = loss(best, chance, truth, gamma)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-1):
        moved = best + size * rng.normal(size=n + 1)
        assert loss(moved, chance, truth, gamma) > least


def test_order_of_bias_and_variance():
    """Less bias than plain values, less variance with a larger gamma."""
    items, n = 1_000, 50
    ranks = np.arange(1, items + 1)
    chance = rank_distribution(ranks, items, n)
    truth = value_at("nDCG@10", ranks, items)

    def both(x):
        mean = chance @ x
        return ((mean - truth) ** 2).mean(), (chance @ x**2 - mean**2).mean()

    plain = both(value_at("nDCG@10", np.arange(1, n + 2), n + 1))
    small, large = (both(corrected_values("nDCG@10", items, n, gamma=g)[0]) for g in (0.01, 0.1))
    assert small[0] < large[0] < plain[0]
    assert large[1] < small[1]


def test_correction_errors():
    with pytest.raises(SettingError, match="gamma must be a finite number above 0"):
        corrected_values("AP", 10, 3, gamma=0)
    with pytest.raises(SettingError, match="only 9 others"):
        corrected_values("AP", 10, 10)


# Ranks of systems


def draw_ranks(true, items, n, seed):
    """Draw sampled ranks as lists would show them."""
    rng = np.random.default_rng(seed)
    return 1 + rng.hypergeometric(true - 1, items - true, n)


def values(result, metric, estimator):
    """Return what an estimator gives, system by system."""
    rows = result.parts["estimators"].where(metric=metric, estimator=estimator).rows
    return rows["value"].to_list()


def test_sampled_metrics_by_hand():
    ranks = {"a": [1, 3, 2], "b": [2, 2, np.nan]}
    found = sampled_metrics(
        ranks,
        ["Recall@1", "RR"],
        items=101,
        n=4,
        estimators=["plain"],
        true_ranks={"a": [1, 60, 20], "b": [2, 25, np.nan]},
        users=[5, 5, 9],
        resamples=100,
    )
    by_rank, by_place = (values(found, name, "plain") for name in ("Recall@1", "RR"))
    assert by_rank == pytest.approx([1 / 3, 0])
    assert by_place == pytest.approx([(1 + 1 / 3 + 1 / 2) / 3, 1 / 3])
    full = found["RR"].rows["full"].to_list()
    assert full == pytest.approx([(1 + 1 / 60 + 1 / 20) / 3, (1 / 2 + 1 / 25) / 3])
    assert (found.card["lists"], found.card["users"]) == (3, 2)
    nearness = found.parts["agreement"]
    assert nearness.row(quantity="tau").value == 1.0
    want = np.abs(np.array(by_place) - full).mean()
    assert nearness.row(metric="RR", quantity="distance").value == pytest.approx(want)
    gap = found.parts["gaps"].row(metric="RR", estimator="plain")
    assert gap.value == pytest.approx(by_place[0] - full[0])
    assert gap.low <= gap.value <= gap.high
    # Beside those asked for stand the two that the rule picks from.
    assert found.parts["estimators"].values_of("estimator") == ["plain", "trade-off", "mle"]
    assert found.parts["estimators"].table().height == 12
    assert found.table().height == 4
    assert nearness.where(quantity="tau").table().height == 6
    assert "means over 3 lists of 2 users" in str(found)


def test_lists_may_differ_in_size():
    """Each list is corrected with its own N and n."""
    apart = [corrected_values("nDCG@3", items, n)[0][1] for items, n in ((11, 5), (101, 4))]
    mixed = sampled_metrics(
        [2, 2], "nDCG@3", items=[11, 101], n=[5, 4], resamples=0, estimators=["trade-off"]
    )
    assert values(mixed, "nDCG@3", "trade-off") == pytest.approx([np.mean(apart)])


def test_sampled_metrics_errors():
    with pytest.raises(DataError, match=r"list 1 has rank 6; whole numbers from 1 to 5"):
        sampled_metrics([1, 6], "RR", items=10, n=4)
    with pytest.raises(DataError, match=r"true_ranks: list 0 has rank 11"):
        sampled_metrics([1], "RR", items=10, n=4, true_ranks=[11])
    with pytest.raises(DataError, match="same systems"):
        sampled_metrics({"a": [1]}, "RR", items=10, n=4, true_ranks={"b": [1]})
    with pytest.raises(DataError, match="one rank per list"):
        sampled_metrics({"a": [1], "b": [1, 2]}, "RR", items=10, n=4)
    with pytest.raises(DataError, match="users: 2 given for 1 list"):
        sampled_metrics([1], "RR", items=10, n=4, users=[1, 2])
    with pytest.raises(DataError, match="items: a whole number is needed"):
        sampled_metrics([1], "RR", items=10.5, n=4)
    with pytest.raises(DataError, match="n: numbers from 1 up"):
        sampled_metrics([1], "RR", items=10, n=0)
    with pytest.raises(DataError, match="there are no lists"):
        sampled_metrics([], "RR", items=10, n=4)
    with pytest.raises(SettingError, match="no systems"):
        sampled_metrics({}, "RR", items=10, n=4)
    with pytest.raises(SettingError, match="no estimators"):
        sampled_metrics([1], "RR", items=10, n=4, estimators=[])
    with pytest.raises(SettingError, match="level"):
        sampled_metrics([1], "RR", items=10, n=4, level=0)


@pytest.mark.slow
def test_means_are_as_expected_in_simulation():
    """Plain and corrected means meet their expectation: |z| <= 4.5."""
    rng = np.random.default_rng(3)
    items, n, lists = 500, 40, 20_000
    true = 1 + np.floor(items * rng.random(lists) ** 3).astype(int)
    seen = draw_ranks(true, items, n, 4)
    found = sampled_metrics(
        seen,
        ["Recall@10", "nDCG@10", "AUC"],
        items=items,
        n=n,
        true_ranks=true,
        estimators=["plain", "trade-off"],
        resamples=0,
    )
    chance = rank_distribution(true, items, n)
    for label in found.values_of("metric"):
        plain = value_at(label, np.arange(1, n + 2), n + 1)
        corrected = corrected_values(label, items, n)[0]
        for name, counts in (("plain", plain), ("trade-off", corrected)):
            mean = chance @ counts
            variance = chance @ counts**2 - mean**2
            estimate = found.parts["estimators"].row(metric=label, estimator=name).value
            z = (estimate - mean.mean()) / math.sqrt(variance.sum()) * lists
            assert abs(z) <= 4.5, (label, name)
    auc = found.row(metric="AUC")
    assert values(found, "AUC", "plain") == pytest.approx([auc.facts["full"]], abs=0.005)


def test_corrections_come_nearer():
    rng = np.random.default_rng(1)
    items, n, lists = 2_000, 100, 5_000
    true = {
        name: 1 + np.floor((items - 1) * rng.random(lists) ** power).astype(int)
        for name, power in (("weak", 1.5), ("good", 3.0), ("strong", 5.0))
    }
    seen = {name: draw_ranks(ranks, items, n, at) for at, (name, ranks) in enumerate(true.items())}
    found = sampled_metrics(
        seen,
        ["Recall@10", "nDCG@10", "AP"],
        items=items,
        n=n,
        true_ranks=true,
        resamples=100,
    )
    plain, trade, mle = distances(found)
    assert (mle < trade).all()
    assert (trade < plain).all()
    chosen = {"Recall@10": "trade-off", "nDCG@10": "mle", "AP": "mle"}
    assert found.card["estimator"] == chosen
    for metric, estimator in chosen.items():
        assert found[metric].rows["value"].to_list() == values(found, metric, estimator)
    assert (found.parts["agreement"].where(quantity="tau").rows["value"] == 1.0).all()
    table = found.parts["estimators"].rows
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    assert len(found.figure(metric="AP").to_dict()["datasets"]["rows"]) == 3
    assert len(found.figure("gaps", "AP").to_dict()["datasets"]["rows"]) == 9
    tables = str(found).split("\n\n")
    assert tables[0].splitlines()[0] == "Recall@10 (higher is better)"
    assert tables[1].splitlines()[1].split() == ["system", "plain", "trade-off", "mle"]
    assert tables[2].splitlines()[1].split()[:2] == ["estimator", "τ"]
    assert json.dumps(found.to_dict())
    assert "<table" in found._repr_html_()


def distances(result):
    """Return estimators x metrics: the mean over systems of |estimate - full value|."""
    part = result.parts["agreement"].where(quantity="distance")
    return [
        part.where(estimator=name).rows["value"].to_numpy() for name in part.values_of("estimator")
    ]


def test_without_true_ranks_nothing_is_said_of_them():
    found = sampled_metrics([1, 2], "RR", items=10, n=4, resamples=20)
    assert found.row().facts["full"] is None
    assert list(found.parts) == ["estimators"]
    assert "all items" not in str(found)
    with pytest.raises(SettingError, match="unknown figure 'gaps'"):
        found.figure("gaps")
    with pytest.raises(SettingError, match="unknown metric"):
        found.figure(metric="AP")


# The expectation against the sample size


def test_expected_metrics():
    ranks = {"steady": [100, 100, np.nan], "bold": [10, 400, 999]}
    found = expected_metrics(ranks, ["Recall@10", "AUC"], items=1_000, sizes=[1, 20, 999, 5_000])
    want = [
        expected_sampled("Recall@10", np.array([10, 400, 999]), 1_000, n).mean()
        for n in (1, 20, 999)
    ]
    bold = found.where(metric="Recall@10", system="bold").rows
    assert bold["value"].to_list()[:3] == pytest.approx(want)
    for others in (999, 5_000):  # more than there are: all of them
        rows = found.where(metric="Recall@10", others=others).rows
        assert rows["value"].to_list() == pytest.approx(rows["full"].to_list())
    auc = found.where(metric="AUC", system="bold").rows  # does not depend on n
    assert auc["value"].to_list() == pytest.approx(auc["full"].to_list())
    assert found["Recall@10"].rows["full"].to_list()[:2] == pytest.approx([0, 1 / 3])
    assert found.table().height == 16
    lines = str(found).splitlines()
    assert lines[1].split() == ["others", "drawn", "steady", "bold"]
    assert lines[5].split()[0] == "5,000"
    assert "without replacement" in str(found)
    assert len(found.figure(metric="AUC").to_dict()["datasets"]["rows"]) == 8
    assert "<table" in found._repr_html_()
    assert json.dumps(found.to_dict())
    own = expected_metrics([3, 3], "RR", items=[5, 9], sizes=[2])
    both = [expected_sampled("RR", 3, items, 2)[0] for items in (5, 9)]
    assert own.row().value == pytest.approx(np.mean(both))
    with pytest.raises(SettingError, match="no sizes"):
        expected_metrics([3], "RR", items=5, sizes=[])
    with pytest.raises(DataError, match="no lists"):
        expected_metrics([], "RR", items=5)


# Target lists


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((60, 80)) < 0.35)
    rating = rng.integers(1, 6, user.size)
    data = us.read_ratings({"user": user, "item": item, "rating": rating})
    return us.splits.Random(test=0.4).split(data, seed=1)[0]


@pytest.fixture(scope="module")
def models(split):
    rng = np.random.default_rng(1)
    liked = np.zeros((60, 80))
    liked[split.test.user, split.test.item] = split.test.value
    noise = rng.normal(size=(60, 80))
    good = np.round(liked + 2 * noise, 1)  # with ties
    blind = np.where(rng.random((60, 80)) < 0.1, np.nan, noise)
    return {"good": good, "pop": us.recommend.Popularity().fit(split.train), "blind": blind}


@pytest.mark.parametrize("ties", ["id", "random"])
@pytest.mark.parametrize(
    "design",
    [
        {"candidates": "all"},
        {"candidates": "test", "fixed": "judged"},
        {"candidates": "all", "strata": 4},
        {"candidates": "all", "shortfall": "fill"},
    ],
    ids=str,
)
def test_full_ranks_are_those_of_lists_with_all_others(split, models, ties, design):
    lists = us.targets.OneRelevant(others=10, **design).lists(split, liked=4, seed=3)
    whole = us.targets.OneRelevant(others="all", **design).lists(split, liked=4, seed=3)
    free = sampled._free(lists)
    assert np.array_equal(whole.size, free + 1)
    for model in models.values():
        scorer = sampled.as_model(model, split.train)
        found, _ = full_ranks(lists, scorer, ties, 5, None)
        want = anchor_ranks(whole, ranks_of(scorer, whole, ties=ties, seed=5))
        assert np.array_equal(found, want, equal_nan=True)


def test_correct_sampled(split, models):
    lists = us.targets.OneRelevant(others=10, candidates="all").lists(split, liked=4, seed=3)
    labels = ["Recall@3", "RR", "P@3", "AUC"]
    found = correct_sampled(lists, models, labels, resamples=200)
    scores = us.evaluate(lists, models, labels[:3])
    whole = us.targets.OneRelevant(others="all", candidates="all").lists(split, liked=4, seed=3)
    full = us.evaluate(whole, models, labels[:3])
    for label in labels[:3]:
        plain = values(found, label, "plain")
        assert plain == pytest.approx(list(scores.mean(label).values()))
        exact = found[label].rows["full"].to_list()
        assert exact == pytest.approx(list(full.mean(label).values()))
        tau = found.parts["agreement"].row(metric=label, estimator="plain", quantity="tau").value
        assert tau == pytest.approx(kendall(plain, exact))
    assert found.card["lists"] == len(lists)
    assert any(note.startswith("blind: ") for note in found.notes)
    again = correct_sampled(lists, models, labels, resamples=200, threads=1)
    assert again.table().equals(found.table())
    bare = correct_sampled(lists, models, labels, full=False, resamples=0)
    assert bare.rows["value"].equals(found.rows["value"])
    assert bare.rows["full"].null_count() == 12
    assert "estimates among all items: 4 metrics, 3 systems" in bare._repr_html_()
    strata = us.targets.Percentiles(others=5, strata=4).lists(split, liked=4, seed=3)
    assert correct_sampled(strata, models, "RR", resamples=0).card["lists"] == len(strata)


def test_short_lists_are_corrected_with_what_they_have(split, models):
    """Lists that hold all candidates need no correction by expectation: plain equals full."""
    lists = us.targets.OneRelevant(others=500, candidates="all").lists(split, liked=4, seed=3)
    found = correct_sampled(lists, {"pop": models["pop"]}, ["Recall@5", "AP"], resamples=0)
    assert found.rows["value"].to_list() == pytest.approx(found.rows["full"].to_list())
    assert set(found.card["estimator"].values()) == {"plain"}
    assert any("too few candidates" in note for note in found.notes)


def test_lists_that_cannot_be_corrected(split, models):
    for lists in (
        us.targets.AllItems().lists(split, liked=4),
        us.targets.OneRelevant(others="all").lists(split, liked=4),
    ):
        with pytest.raises(SettingError, match="one relevant item and a number of others"):
            correct_sampled(lists, models)
    with pytest.raises(SettingError, match="others were drawn by popularity"):
        correct_sampled(
            us.targets.OneRelevant(others=5, by="popularity").lists(split, liked=4), models
        )
    with pytest.raises(SettingError, match="lists must be TargetLists, got Split"):
        correct_sampled(split, models)
    with pytest.raises(SettingError, match="no models"):
        correct_sampled(us.targets.OneRelevant(others=5).lists(split, liked=4), {})


# The trade-off


def test_target_sizes(split, models):
    both = {name: models[name] for name in ("good", "pop")}
    both["noise"] = np.random.default_rng(5).normal(size=(60, 80))
    found = target_sizes(split, both, "P@5", [0, 5, 20], liked=4, test="t", resamples=100)
    assert found.values_of("others") == ["0", "5", "20", "all"]
    assert found.row(others="all", quantity="tau_full").value == 1.0
    assert "tau_true" not in found.values_of("quantity")
    # By hand, at one size.
    lists = us.targets.UserFlat(others=5).lists(split, liked=4)
    scores = us.evaluate(lists, both, "P@5")
    values = np.stack([scores.values(name, "P@5") for name in both], axis=1)
    values = values[scores.averaged("good")]
    pairs = list(itertools.combinations(range(3), 2))
    ties = np.mean([values[:, a] == values[:, b] for a, b in pairs])
    zeros = np.mean([(values[:, a] == 0) & (values[:, b] == 0) for a, b in pairs])
    at_five = found.where(others="5")
    assert at_five.row(quantity="ties").value == pytest.approx(ties)
    assert at_five.row(quantity="zeros").value == pytest.approx(zeros)
    power = us.stats.discriminative_power(us.compare(scores, test="t", correction=None)).best
    assert at_five.parts["power"].row().value == pytest.approx(power.value)
    assert at_five.row(quantity="ratio").value == power.facts["ratio"]
    means = at_five.parts["means"].rows["value"].to_list()
    assert means == pytest.approx(list(scores.mean("P@5").values()))
    taus = found.where(quantity="tau_full").rows
    assert (taus["low"] <= taus["value"]).all()
    spec = found.figure().to_dict()
    assert spec["title"]["text"] == "target sizes: P@5"
    assert len(spec["datasets"]["rows"]) == 4 * 4
    tables = str(found).split("\n\n")
    assert tables[0].splitlines()[1].split("  ")[0] == "others"
    assert "significant pairs  τ, all" in tables[0]
    assert tables[1].splitlines()[1].split()[:2] == ["others", "DP"]
    assert "95% CI: percentile bootstrap, by user" in tables[2]
    assert "t test" in tables[2]
    short = np.count_nonzero(us.targets.UserFlat(others=0).lists(split, liked=4).size < 5)
    assert short
    assert f"0 others: {short} list holds fewer targets than the cutoff" in found.notes
    assert "<table" in found._repr_html_()
    assert json.dumps(found.to_dict())


def test_target_sizes_with_a_truth(split, models):
    pair = {name: models[name] for name in ("good", "pop")}
    truth = {"good": 0.9, "pop": 0.1}
    settings = {"sizes": [5], "liked": 4, "test": "t", "resamples": 50}
    found = target_sizes(split, pair, "P@5", truth=truth, **settings)
    assert found.where(quantity="tau_true").rows["value"].to_list() == [1.0, 1.0]
    assert len(found.figure().to_dict()["datasets"]["rows"]) == 10
    scores = us.evaluate(us.targets.AllItems().lists(split, liked=4), pair, "P@5")
    again = target_sizes(split, pair, "P@5", truth=scores, **settings)
    assert again.row(others="all", quantity="tau_true").value == 1.0
    worse = target_sizes(split, pair, "anti-P@5", truth={"good": 0.1, "pop": 0.9}, **settings)
    assert worse.row(quantity="tau_true").value in (-1.0, 1.0)
    with pytest.raises(DataError, match="truth: no value for 'pop'"):
        target_sizes(split, pair, "P@5", truth={"good": 1.0}, **settings)
    with pytest.raises(DataError, match="at least 2 systems"):
        target_sizes(split, {"pop": models["pop"]}, "P@5", [5], liked=4)
    with pytest.raises(SettingError, match="sizes must be a whole number"):
        target_sizes(split, pair, "P@5", [-1], liked=4)


def test_every_metric_of_one_rank_is_tried():
    assert {us.Metric.parse(label).name for label in LABELS} == {
        name for name, entry in REGISTRY.items() if entry.at_rank is not None
    }


# Real data


@pytest.mark.slow
def test_corrected_on_movielens():
    """The trade-off comes far nearer to the full values than plain sampled metrics do."""
    data = us.read_ratings(real_data("ml-1m/ratings.parquet"))
    split = us.splits.Random(test=0.2).split(data, seed=7)[0]
    models = {
        "Pop": us.recommend.Popularity().fit(split.train),
        "Random": us.recommend.Random().fit(split.train),
        "PureSVD": us.recommend.PureSVD(factors=30).fit(split.train, 0),
    }
    lists = us.targets.OneRelevant(others=100, candidates="all").lists(split, liked=4, seed=7)
    found = correct_sampled(lists, models, ["Recall@10", "nDCG@10"], resamples=50)
    plain, trade, mle = distances(found)
    assert (10 * trade < plain).all()
    assert (mle < 0.8 * trade).all()
    assert set(found.card["estimator"].values()) == {"mle"}
    full = found["Recall@10"].rows["full"].to_list()
    assert full == pytest.approx([0.0989, 0.0030, 0.2177], abs=0.002)
