"""Metrics that take account of which items are judged; terms as in `accuracy`."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.metrics import weighted
from unskew.metrics.block import (
    Block,
    flat_discount,
    geometric_discount,
    ratio,
)
from unskew.metrics.definition import DESCRIBES_JUDGMENTS, OWN_FORMULA, plain_sum
from unskew.metrics.listwise import metric
from unskew.metrics.settings import Param, Params
from unskew.metrics.strata import MetricStrata, over_hits
from unskew.metrics.weighted import (
    Linear,
    Weighted,
    popularity_column,
)

Fraction = tuple[F64, F64]


@metric(
    "bpref",
    parts=lambda _: ("preferences",),
    needs_disliked=True,
    tied=OWN_FORMULA,
    weighted=(
        "it counts the judged disliked items above a liked one up to a cap, which is not a sum "
        "over single items or pairs"
    ),
    fast_sum=plain_sum("preferences"),
)
def bpref(block: Block, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """How rarely disliked items rank above liked ones; unjudged items do not matter.

    Formula: (1/R) x sum over liked items found of 1 - min(disliked above, R) / min(N, R), the
    term being 1 when no disliked item stands above.
    Undefined: R = 0.
    Short list: liked items not found count 0.
    Range: [0, 1], higher is better. Without judged disliked items it is mere coverage.
    Reference: Buckley & Voorhees 2004 as in trec_eval; bellogin2017 section 7 with the cap that
    its formula lacks.
    """
    total = block.walk("preferences", cutoffs)
    return total, block.liked[None, :]


INFERRED = {"judged": "inferred", "all": "inferred-all"}
"""By pool: the sum of infAP's terms."""


def _possible_sums(params: Params) -> tuple[str, ...]:
    """Return the sums that a pool may need: for `auto` the judgments decide which of both."""
    pool = str(params["pool"])
    return (INFERRED[pool],) if pool in INFERRED else tuple(INFERRED.values())


@metric(
    "infAP",
    parts=_possible_sums,
    params={"pool": Param("auto", ("auto", "all", "judged"))},
    aliases={"infAP2": "infAP(pool=all)"},
    needs_disliked=True,
    tied=OWN_FORMULA,
    weighted="it is itself an estimate, which treats the judgments as a random sample of a pool",
    fast_sum=lambda params, _: INFERRED.get(str(params["pool"]), "inferred-auto"),
)
def inferred_ap(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """AP estimated as if the judged items were a random sample of a pool.

    Formula: (1/R) x sum over liked items at rank i of 1/i + ((i-1)/i) x (pool above/(i-1)) x
    ((liked above + e) / (judged above + 2e)), e = 1e-5; 1 at rank 1. The pool above holds
    everything above (`pool=all`), or the judged items and those marked as pooled but unjudged
    (`pool=judged`). The default takes the pool that the judgments mark (TREC qrels, by negative
    grades), because it is known; where they mark none, everything above.
    Undefined: R = 0.
    Short list: liked items not found count 0.
    Range: [0, 1], higher is better. With `pool=judged` and no marked items it is about AP.
    Reference: Yilmaz & Aslam 2006; `pool=all` is valcarce2018's infAP2, `pool=judged` trec_eval's
    infAP; bellogin2017's formula counts one item too many.
    """
    pool = str(params["pool"])
    if pool == "auto":
        pool = "judged" if block.judged.marks_pool else "all"
    return block.walk(INFERRED[pool], cutoffs), block.liked[None, :]


@metric(
    "SR",
    params={
        "gamma": Param(1.0, low=-1e-300, high=float("inf")),
        "mean": Param("users", ("users", "ratio")),
    },
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    weighted=Weighted(weighted.stratified_recall, is_ratio=True),
    linear=Linear(popularity_column, flat_discount),
    strata=MetricStrata(over_hits),
)
def stratified_recall(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """Recall in which an item counts the less, the more often it is liked.

    Formula: sum over liked items found of w / sum over all liked of w, with
    w = |PR(i)|^(-gamma / (gamma + 1)) and |PR(i)| the item's liked ratings in training and test.
    `mean=users` averages this over users; `mean=ratio` divides the sums over all users (Steck).
    Undefined: R = 0.
    Short list: no special rule.
    Range: [0, 1], higher is better; gamma=0 is Recall.
    Reference: Steck 2011; bellogin2017 section 7.
    """
    gamma = float(params["gamma"])
    weight = block.judged.once(
        ("SR", gamma, block.is_anti),
        lambda: block.view.liked * block.per_positive(-gamma / (gamma + 1)),
    )
    flat = frozen(np.ones(block.judged.longest + 1))
    hits = block.discounted(weight, flat, cutoffs)
    return hits, block.sum_judged(weight)[None, :]


@metric(
    "HLU",
    params={
        "halflife": Param(5.0, low=1, high=float("inf")),
        "weight": Param("none", ("none", "popularity")),
        "mean": Param("ratio", ("users", "ratio")),
    },
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    weighted=Weighted(
        weighted.half_life,
        bias="its ideal list is not a sum over judgments; use {anti}ADG",
    ),
    strata=MetricStrata(over_hits),
)
def half_life_utility(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """Gains of liked items, halved every few ranks, relative to the best order.

    Formula: sum over liked items at rank i of g / 2^((i-1)/(halflife-1)), divided by the same sum
    in the best order; g the gain, with `weight=popularity` divided by the item's liked ratings.
    `mean=ratio` (default) divides the sums over all users, `mean=users` averages per user.
    Undefined: no liked item with a gain.
    Short list: no special rule.
    Range: [0, 1], higher is better (Breese et al. print it times 100).
    Reference: Breese et al. 1998; inverse popularity: Shani et al. 2008 (bellogin2017 section 7).
    """
    power = -1.0 if params["weight"] == "popularity" else 0.0
    gain = block.judged.once(
        ("HLU", power, block.is_anti),
        lambda: block.view.gain * block.view.liked * block.per_positive(power),
    )
    halving = 0.5 ** (1.0 / (float(params["halflife"]) - 1.0))
    discount = geometric_discount(block.judged.longest, 1.0, halving)
    top = block.discounted(gain, discount, cutoffs)
    name = f"HLU{params['halflife']}{params['weight']}"
    return top, block.ideal(name, gain, gain, discount, cutoffs)


@metric(
    "Judged",
    parts=lambda _: ("liked", "disliked"),
    better="neither",
    anti=False,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    weighted=DESCRIBES_JUDGMENTS.format(1),
    strata=MetricStrata(over_hits),
)
def judged(block: Block, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Share of the list that is judged at all.

    Formula: (liked(L) + disliked(L)) / k; without a cutoff / |L|.
    Undefined: never; an empty list scores 0.
    Short list: divided by k all the same.
    Range: [0, 1]; a description: how much of the score rests on data.
    Reference: ir_measures' Judged; mena2021 section 3.2.
    """
    liked, disliked = block.walk("liked", cutoffs), block.walk("disliked", cutoffs)
    return liked + disliked, np.maximum(block.slots(cutoffs), 1)


@metric(
    "Residual",
    parts=lambda _: ("liked", "disliked"),
    better="neither",
    anti=False,
    aliases={"delta": "Residual"},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    weighted=DESCRIBES_JUDGMENTS.format(0),
)
def residual(block: Block, params: Params, cutoffs: I64) -> F64:
    """Share of the list that is not judged: mena2021's δ.

    Formula: 1 - Judged = 1 - (P + anti-P).
    Undefined: never.
    Short list: missing places count as unjudged.
    Range: [0, 1]; a description.
    Reference: mena2021 Eq. 4.
    """
    return 1.0 - ratio(*judged(block, params, cutoffs))
