"""`ties="expected"`: the exact mean of every metric over all orders of equal scores."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unskew as us

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
             "condensed-infAP", "anti-condensed-AP", "condensed-Rprec", "condensed-AUC"]  # fmt: skip
METRICS = [f"{name}{cut}" for name in FAMILIES + TWINS for cut in ("", "@1", "@2", "@3", "@5")]
METRICS += [f"{name}{cut}" for name in CONDENSED for cut in ("", "@1", "@2", "@4")]


def orders(levels: list[list[int]]) -> list[list[int]]:
    """Return every order of the items of each level."""
    return [sum(map(list, one), []) for one in product(*(permutations(one) for one in levels))]


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
some_ratings = st.dictionaries(st.integers(1, 9), st.sampled_from([1.0, 2.0, 4.0, 5.0]), min_size=1)


@settings(max_examples=60, deadline=None)
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
