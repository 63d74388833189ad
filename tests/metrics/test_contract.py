"""Every registered metric keeps the contract, and the walk sees one that does not."""

import math

import numpy as np
import pytest

import unskew as us
from unskew.metrics.names import REGISTRY
from unskew.testing import check_metric

VARIANTS = [
    "P(per=list)", "P(bound=upper)", "Recall(per=min)", "AP(per=min)", "AP(per=k)", "AP(per=list)",
    "nDCG(ideal=uncut)", "nDCG(discount=original)", "infAP(pool=all)",
    "SR(gamma=3)", "HLU(halflife=2,weight=popularity)", "anti-nDCG(ideal=best)", "condensed-P",
]  # fmt: skip


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in VARIANTS]


@pytest.mark.parametrize("name", [*REGISTRY, *SLOW])
def test_every_metric_keeps_the_contract(name):
    check_metric(name)


def dcg(gains):
    return float(sum(gain / math.log2(at + 2) for at, gain in enumerate(gains)))


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("P", lambda liked, k: liked.sum() / max(k, 1)),
        ("DCG", dcg),
        ("bpref", lambda liked, disliked, n_liked, n_disliked: sum(
            1 - min(disliked[:at].sum(), n_liked) / max(min(n_liked, n_disliked), 1)
            for at in np.flatnonzero(liked)) / n_liked if n_liked else math.nan),
    ],
)  # fmt: skip
def test_kernels_equal_plain_functions_of_one_list(name, plain):
    check_metric(name, plain=plain)


def walk_sees(message, function, **facts):
    us.metrics.metric("odd", **facts)(function)
    with pytest.raises(AssertionError, match=message):
        check_metric("odd")


def test_the_walk_sees_what_is_wrong():
    walk_sees("outside the range 0 to 1", lambda liked: 2.0 * liked.sum())
    counter = iter(range(10**9))
    walk_sees("number of threads|not the same", lambda liked: next(counter) % 5 / 5, replace=True)
    with pytest.raises(AssertionError, match="plain twin differs"):
        check_metric("P", plain=lambda liked: float(liked.sum()))
    with pytest.raises(us.SettingError, match="without a cutoff"):
        check_metric("P@3")
    with pytest.raises(us.SettingError, match="name or a function"):
        check_metric(3)


def test_a_function_need_not_be_registered():
    def first(liked):
        return float(len(liked) > 0 and liked[0])

    check_metric(first)
    assert "checked" not in REGISTRY
