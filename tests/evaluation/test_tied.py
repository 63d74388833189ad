"""`ties="expected"`: the exact mean of every metric over all orders of equal scores."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from itertools import chain, permutations, product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.cases import as_ratings
from shared.examples import examples
from unskew.metrics.names import REGISTRY

pytestmark = pytest.mark.filterwarnings("ignore::unskew.DataWarning")

FAMILIES = [
    "P",
    "P(per=list)",
    "P(bound=upper)",
    "Recall",
    "Recall(per=min)",
    "F1",
    "HitRate",
    "Rprec",
    "AP",
    "AP(per=min)",
    "AP(per=list)",
    "RR",
    "DCG",
    "DCG(discount=original)",
    "nDCG",
    "nDCG(ideal=uncut)",
    "nDCL(ideal=best)",
    "RBP",
    "RBPresidual",
    "bpref",
    "infAP",
    "infAP2",
    "SR",
    "HLU(mean=users)",
    "Judged",
    "Residual",
    "AUC",
]
TWINS = ["anti-P", "anti-AP", "anti-nDCG", "anti-RR", "anti-bpref", "anti-infAP"]
CONDENSED = ["condensed-P", "condensed-AP", "condensed-nDCG", "condensed-RR", "condensed-HitRate",
             "condensed-infAP", "anti-condensed-AP", "condensed-Rprec",
             "condensed-AUC"]  # fmt: skip
METRICS = [f"{name}{cut}" for name in FAMILIES + TWINS for cut in ("", "@1", "@2", "@3", "@5")]
METRICS += [f"{name}{cut}" for name in CONDENSED for cut in ("", "@1", "@2", "@4")]


def orders(levels: list[list[int]]) -> list[list[int]]:
    """Return every order of the items of each level."""
    return [list(chain(*one)) for one in product(*(permutations(one) for one in levels))]


def levels_of(scores: dict[int, float]) -> list[list[int]]:
    values = sorted(set(scores.values()), reverse=True)
    return [[item for item, score in scores.items() if score == value] for value in values]


def mean_over_orders(
    lists: list[list[int]], ratings: dict[int, float], metrics: list[str], **options: object
) -> dict[str, float]:
    """Give every order to a user of its own, and average."""
    users = range(len(lists))
    test = {
        "user": [user for user in users for _ in ratings],
        "item": list(ratings) * len(lists),
        "rating": list(ratings.values()) * len(lists),
    }
    scores = us.evaluate(test, {"s": dict(zip(users, lists, strict=True))}, metrics, **options)
    return scores.means()["s"]


lists_with_ties = st.dictionaries(
    st.integers(1, 7), st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=6
)
some_ratings = st.dictionaries(
    st.integers(1, 9), st.sampled_from([1.0, 2.0, 4.0, 5.0]), min_size=2
).filter(lambda ratings: min(ratings.values()) < 4 <= max(ratings.values()))


@examples(40)
@given(scores=lists_with_ties, ratings=some_ratings, depth=st.sampled_from([None, None, 2, 4]))
def test_mean_over_all_orders(
    scores: dict[int, float], ratings: dict[int, float], depth: int | None
) -> None:
    """Every metric, its anti-twin and its condensed form equal the mean over all permutations."""
    metrics = METRICS if depth is None else [name for name in METRICS if "condensed" not in name]
    options: dict[str, object] = {
        "liked": 4, "items": list(range(1, 12)), "depth": depth, "undefined": "skip",
    }  # fmt: skip
    test = {"user": [0] * len(ratings), "item": list(ratings), "rating": list(ratings.values())}
    tied = us.evaluate(test, {"s": {0: scores}}, metrics, ties="expected", **options).means()["s"]
    plain = mean_over_orders(orders(levels_of(scores)), ratings, metrics, **options)
    for name in metrics:
        assert tied[name] == pytest.approx(plain[name], abs=1e-12, nan_ok=True), name


@examples(25)
@given(scores=lists_with_ties, ratings=some_ratings, train=st.sets(st.integers(1, 9), max_size=2))
def test_unranked_items_follow_in_random_order(
    scores: dict[int, float], ratings: dict[int, float], train: set[int]
) -> None:
    """With `unranked="last"` the catalogue without training items and the list is one last tie."""
    catalogue = range(1, 8)
    metrics = ["P@3", "Recall", "AP@9", "RR", "nDCG", "bpref@8", "infAP", "AUC", "condensed-AP"]
    scores = {item: score for item, score in scores.items() if item not in train}
    rest = [i for i in {*catalogue, *ratings} if i not in scores and i not in train]
    if not scores or len(rest) > 6:
        return
    test = {"user": [0] * len(ratings), "item": list(ratings), "rating": list(ratings.values())}
    options: dict[str, object] = {"liked": 4, "items": list(catalogue), "undefined": "skip"}
    if train:
        options["train"] = {
            "user": [0] * len(train),
            "item": list(train),
            "rating": [3] * len(train),
        }
    tied = us.evaluate(
        test, {"s": {0: scores}}, metrics, ties="expected", unranked="last", **options
    ).means()["s"]
    options.pop("train", None)
    options["items"] = [i for i in {*catalogue, *ratings} if i not in train]
    # Items of training are no targets: they stay judged, in no place.
    if any(item in train for item in ratings):
        metrics = [name for name in metrics if name != "AUC"]
    if math.prod(math.factorial(len(one)) for one in [*levels_of(scores), rest]) > 5040:
        return
    plain = mean_over_orders(orders([*levels_of(scores), rest]), ratings, metrics, **options)
    for name in metrics:
        assert tied[name] == pytest.approx(plain[name], abs=1e-12, nan_ok=True), name


def test_lists_without_ties_keep_their_bits() -> None:
    """Without equal scores the mean over all orders is the value, to the last bit."""
    rng = np.random.default_rng(5)
    test = {"user": np.repeat(np.arange(50), 12), "item": np.tile(np.arange(12), 50) * 3}
    test["rating"] = rng.integers(1, 6, 600)
    run = {u: dict(zip(rng.permutation(40), np.arange(40.0), strict=True)) for u in range(50)}
    judged = {ties: us.judge(test, {"s": run}, liked=4, ties=ties, items=range(40))
              for ties in ("id", "expected")}  # fmt: skip
    one, other = (us.evaluate(judged[ties], METRICS) for ties in ("id", "expected"))
    for label in METRICS:
        assert np.array_equal(
            one.per_user()[label].to_numpy(), other.per_user()[label].to_numpy(), equal_nan=True
        ), label


def test_scikit_learn() -> None:
    """`ndcg_score` and `dcg_score` of scikit-learn are special cases."""
    path = Path(__file__).parent / "measured" / "sklearn_ties.json"
    cases = json.loads(path.read_text())["cases"]
    for case in cases:
        items = list(range(len(case["truth"])))
        test = {"user": [0] * len(items), "item": items, "rating": case["truth"]}
        run = {0: dict(zip(items, case["score"], strict=True))}
        scores = us.evaluate(test, {"s": run}, list(case["values"]), liked=1, ties="expected")
        for name, value in scores.means()["s"].items():
            assert value == pytest.approx(case["values"][name], abs=1e-12)
    assert len(cases) == 16


def split_of(seed: int = 3) -> us.Split:
    rng = np.random.default_rng(seed)
    n = 900
    ratings = us.read_ratings(
        {
            "user": rng.integers(0, 40, n),
            "item": rng.integers(0, 60, n),
            "rating": rng.integers(1, 6, n),
        },
        duplicates="first",
    )
    return us.splits.Random(test=0.3).split(ratings, seed=1)[0]


OF_JUDGED = ["P@5", "Recall@10", "AP", "RR", "nDCG@10", "nDCG", "HitRate@3", "Rprec", "bpref@20",
             "infAP@30", "AUC", "anti-P@5", "condensed-AP", "F1@5", "RBP"]  # fmt: skip


class Coarse:
    """Scores in a few levels, by user; some items cannot be scored."""

    def __init__(self, levels: int, missing: float = 0.0, alike: bool = False) -> None:
        self.levels, self.missing, self.alike = levels, missing, alike

    def score(self, users: np.ndarray) -> np.ndarray:
        table = np.empty((len(users), 60))
        for row, user in enumerate(users):
            rng = np.random.default_rng(0 if self.alike else int(user))
            table[row] = rng.integers(0, self.levels, 60)
            table[row, rng.random(60) < self.missing] = np.nan
        return table


@pytest.mark.parametrize("targets", [us.targets.AllItems(), us.targets.TestItems(),
                                     us.targets.OneRelevant(others=20)])  # fmt: skip
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_models_equal_their_lists(targets: us.targets.Targets, missing: float) -> None:
    """A model's own scores give what its whole lists, as a run with scores, give."""
    lists = targets.lists(split_of(), liked=4)
    model = Coarse(4, missing)
    run = us.rank(model, lists, depth=1000)
    a = us.evaluate(lists, {"s": model}, OF_JUDGED, ties="expected").per_user()
    b = us.evaluate(lists, {"s": run}, OF_JUDGED, ties="expected").per_user()
    for label in OF_JUDGED:
        left, right = a[label].to_numpy(), b[label].to_numpy()
        assert np.allclose(left, right, rtol=0, atol=1e-12, equal_nan=True), label


def test_models_that_score_alike_for_all_users() -> None:
    """Popularity has an order that all users share: the same values as score by score."""
    split = split_of()
    for targets in (us.targets.AllItems(), us.targets.AllItems(shortfall="fill")):
        lists = targets.lists(split, liked=4)
        model = us.recommend.Popularity().fit(split.train)
        table = model.score(np.arange(len(split.train.users), dtype=np.int32))
        whole = np.repeat(table, len(split.train.users) // len(table), axis=0)
        a = us.evaluate(lists, {"s": model}, OF_JUDGED, ties="expected").per_user()
        b = us.evaluate(lists, {"s": whole}, OF_JUDGED, ties="expected").per_user()
        assert a.equals(b)


def test_a_constant_model_scores_what_chance_is_expected_to() -> None:
    """One tie of all targets is a random order: another code gives its expectation."""
    closed = ["P@5", "Recall@10", "AP@10", "RR@10", "nDCG@10", "nDCG", "HitRate@3", "F1@5", "RBP"]
    for targets in (us.targets.AllItems(), us.targets.OneRelevant(others=20)):
        lists = targets.lists(split_of(), liked=4)
        scores = us.evaluate(lists, {"s": Coarse(1)}, closed, ties="expected")
        assert scores.chance is not None
        for row in range(len(closed)):
            mine, chance = scores.systems["s"].values[row], scores.chance.values[row]
            assert np.allclose(mine, chance, rtol=0, atol=1e-12, equal_nan=True), closed[row]


def test_filled_up_items_are_one_tie() -> None:
    """With `shortfall="fill"` what a model cannot score is a last tie: mean over random fills."""
    split = split_of()
    model = Coarse(1000, 0.5)
    lists = us.targets.AllItems(shortfall="fill").lists(split, liked=4)
    exact = us.evaluate(lists, {"s": model}, ["AP", "nDCG"], ties="expected").means()["s"]
    drawn = [
        us.evaluate(
            us.targets.AllItems(shortfall="fill").lists(split, liked=4, seed=seed),
            {"s": model}, ["AP", "nDCG"], ties="random", seed=seed,
        ).means()["s"]
        for seed in range(1, 41)
    ]  # fmt: skip
    for name, value in exact.items():
        values = [one[name] for one in drawn]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert abs(np.mean(values) - value) < 4.5 * error


ITEM_METRICS = [
    "ARP@3", "EPC@3", "Novelty@2", "Tail@3", "Coverage@3", "ARP", "PopPercentile@2",
    "PopLift(mean=users)@2", "PercentileShift@3", "TailShift@2",
]  # fmt: skip


def test_metrics_of_items() -> None:
    """Means over all orders of what lists hold, and of the catalogue that they cover together."""
    train = {"user": [9, 9, 9, 8, 8, 7, 1, 2], "item": [1, 2, 3, 1, 2, 1, 5, 2], "rating": [5] * 8}
    scores = {1: {1: 1.0, 2: 1.0, 3: 1.0, 4: 0.0}, 2: {3: 2.0, 4: 1.0, 5: 1.0, 6: 1.0}}
    test = {"user": [1, 2], "item": [3, 5], "rating": [5, 5]}
    tied = us.evaluate(test, {"s": scores}, ITEM_METRICS, train=train, ties="expected", liked=4)
    every = list(product(*(orders(levels_of(one)) for one in scores.values())))
    sums = dict.fromkeys(ITEM_METRICS, 0.0)
    for a, b in every:
        means = us.evaluate(test, {"s": {1: a, 2: b}}, ITEM_METRICS, train=train, liked=4).means()
        sums = {name: total + means["s"][name] for name, total in sums.items()}
    for name, value in tied.means()["s"].items():
        assert value == pytest.approx(sums[name] / len(every), abs=1e-12), name


def test_pooled_items() -> None:
    """The pool of infAP holds items that were not judged, in a tie as elsewhere."""
    scores = {1: 2.0, 2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0, 6: 0.0}
    grades = {1: -1, 2: 1, 3: 0, 4: -1, 6: 1, 7: 1}

    metrics = ["infAP", "infAP2", "infAP@3", "bpref", "bpref@3"]
    every = {f"{number}": one for number, one in enumerate(orders(levels_of(scores)))}
    tied = us.evaluate(
        as_ratings({"0": grades}), {"s": {"0": scores}}, metrics, liked=1, ties="expected"
    )
    plain = us.evaluate(as_ratings(dict.fromkeys(every, grades)), {"s": every}, metrics, liked=1)
    for name in metrics:
        assert tied.means()["s"][name] == pytest.approx(plain.means()["s"][name], abs=1e-12)


def small(ties: str | None = "expected", **options: object) -> us.Judged:
    test = {"user": [1, 1, 2], "item": [1, 2, 3], "rating": [5, 1, 5]}
    run = {1: {1: 1.0, 2: 1.0, 4: 1.0}, 2: {3: 2.0, 5: 2.0}}
    return us.judge(test, {"s": run}, liked=4, ties=ties, **options)


def test_compare_takes_means_over_orders() -> None:
    test = {"user": [1, 1, 2], "item": [1, 2, 3], "rating": [5, 1, 5]}
    runs = {"a": {1: {1: 1.0, 2: 1.0}, 2: {3: 2.0, 5: 2.0}}, "b": {1: [1, 2], 2: [3, 5]}}
    judged = us.judge(test, runs, liked=4, ties="expected")
    table = us.compare(judged, "RR").table()
    assert table["value"][0] == pytest.approx(-0.25)


def test_notes_count_what_is_tied() -> None:
    notes = " ".join(us.evaluate(small(), "P@2").notes)
    assert "s: 5 of 5 listed items have a tied score" in notes
    assert "s: 2 lists end in a tie; items with the same score may have been cut off" in notes
    test = {"user": [1], "item": [1], "rating": [5]}
    plain = us.evaluate(test, {"s": {1: [1, 2]}}, "P@2", liked=4, ties="expected")
    assert "s: the lists have no scores, so no items are tied" in plain.notes


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: us.evaluate(small(), "Gini@2"), "no closed form"),
        (lambda: us.evaluate(small(depth=2), "condensed-P@2"), "leave depth=… out"),
        (lambda: us.unbiased.bounds(small(), "P@2"), "needs one order of equal scores"),
        (lambda: us.stats.robustness(small(), "P@2"), "needs one order of equal scores"),
        (lambda: us.estimate(small(), "P@2"), "needs one order of equal scores"),
        (lambda: small(None, unranked="last"), "give ties='expected'"),
        (lambda: small(unranked="first"), "unranked"),
        (
            lambda: (
                us.judge(
                    {"user": [1], "item": [1], "rating": [5]},
                    {"s": {"user": [1, 1], "item": [1, 2], "rank": [1, 2], "score": [0.1, 0.9]}},
                    liked=4,
                    ties="expected",
                ).basis
            ),
            "the list of user 1 is not in the order of its scores: the score at rank 2 exceeds",
        ),
        (
            lambda: us.evaluate(
                us.targets.AllItems().lists(split_of(), liked=4),
                {"s": Coarse(2)},
                "ARP@3",
                ties="expected",
            ),
            "rank them",
        ),
        (
            lambda: us.evaluate(
                us.targets.AllItems().lists(split_of(), liked=4),
                {"s": Coarse(2)},
                "P@3",
                ties="expected",
                unranked="last",
            ),
            "shortfall='fill'",
        ),
    ],
)
def test_refusals(call: Callable[[], object], words: str) -> None:
    with pytest.raises((us.SettingError, us.DataError), match=re.escape(words)):
        call()


def test_user_metrics_are_refused_unless_they_say_their_mean() -> None:
    @us.metrics.metric("tied-first", replace=True)
    def first(liked: np.ndarray) -> float:
        """Whether the first item is liked."""
        return float(liked[:1].any())

    try:
        with pytest.raises(us.SettingError, match="tied-first has no closed form"):
            us.evaluate(small(), "tied-first")
    finally:
        REGISTRY.pop("tied-first")


def test_files_on_disk(tmp_path: Path) -> None:
    """Files larger than memory give the same means."""
    rng = np.random.default_rng(8)
    test = pl.DataFrame({"user": np.repeat(np.arange(30), 6), "item": np.tile(np.arange(6), 30)})
    test = test.with_columns(rating=pl.Series(rng.integers(1, 6, 180)))
    run = test.with_columns(score=pl.Series(rng.integers(0, 3, 180).astype(float))).drop("rating")
    test.write_parquet(tmp_path / "test.parquet")
    run.write_parquet(tmp_path / "s.parquet")
    metrics = ["AP", "nDCG@3", "RR@2"]
    inside = us.evaluate(test, {"s": run}, metrics, liked=4, ties="expected").means()
    outside = us.evaluation.evaluate_files(
        tmp_path / "test.parquet", {"s": tmp_path / "s.parquet"}, metrics, liked=4,
        ties="expected", output=tmp_path / "out",
    )  # fmt: skip
    assert {row["metric"]: row["value"] for row in outside.rows.to_dicts()} == inside["s"]


def test_a_plan_averages_over_orders() -> None:
    """A plan gives what its models give by hand; an audit, which needs one order, refuses it."""
    data = split_of().train
    cut = us.splits.Random(test=0.3)
    plan = us.Plan(split=cut, algorithms=[us.recommend.Popularity()], metrics=["nDCG@5", "AP@5"],
                   ties="expected", seed=3)  # fmt: skip
    (values,) = us.run_plan(data, plan).scores()
    split = cut.split(data, seed=3)[0]
    lists = us.targets.AllItems().lists(split, liked=4, seed=3)
    model = us.recommend.Popularity().fit(split.train)
    by_hand = us.evaluate(lists, {"popularity": model}, ["nDCG@5", "AP@5"], ties="expected")
    one_order = us.evaluate(lists, {"popularity": model}, ["nDCG@5", "AP@5"])
    assert values.means()["popularity"] == by_hand.means()["popularity"]
    assert values.means()["popularity"] != one_order.means()["popularity"]
    with pytest.raises(us.SettingError, match="needs one order of equal scores"):
        us.audit(data, plan)


def test_plans_refuse_what_has_no_mean_over_orders() -> None:
    """When it is made, not when it runs."""
    for wrong, reason in (
        ({"metrics": ["ARP@5"]}, "only the first items of a model's lists are kept"),
        ({"targets": us.targets.OneRelevant(others=5, exact=True)}, "leave ties='expected' out"),
    ):
        with pytest.raises(us.SettingError, match=reason):
            us.Plan(algorithms=[us.recommend.Popularity()], ties="expected", **wrong)
