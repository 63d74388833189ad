"""Metrics of the liked items in a list.

A docstring says: what, formula, undefined, short lists, range, source.

A metric returns its values or, as (top, bottom), a fraction: where the bottom is 0 the top is too,
and the value is undefined.

In every formula: k the cutoff, L the list cut at k, liked(L) the number of liked items in it,
R and N the user's liked and disliked judgments. `metric@k` is the metric of the list cut at k; an
item beyond k never matters. An anti-metric is the same formula with liked and disliked, gain and
loss, exchanged.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64
from unskew.metrics import bounds, settings, weighted
from unskew.metrics.block import (
    Block,
    flat_discount,
    ratio,
)
from unskew.metrics.chance import chance_of_any, mean_of_any
from unskew.metrics.definition import OWN_FORMULA, plain_sum
from unskew.metrics.listwise import metric
from unskew.metrics.settings import Param, Params
from unskew.metrics.strata import MetricStrata, by_count, by_precision, over_hits, to_first
from unskew.metrics.weighted import (
    Linear,
    Weighted,
    liked_column,
)

Fraction = tuple[F64, F64]


FIRST = (
    "it uses the first liked item of a list, which may be an unjudged item; weights of the "
    "judged items cannot correct that"
)
"""Why a metric of the first liked item has no weighted form."""


def _check_bound(params: Params, anti: bool, cutoff: int | None) -> str:  # noqa: ARG001
    mixed = params["bound"] != "none" and params["per"] == "list"
    return "bound cannot be combined with per=list, the default of condensed-P" if mixed else ""


def _precision_sum(params: Params, cutoff: int | None) -> str | None:
    if params["bound"] != "none":
        return None
    return "liked per place" if params["per"] == "list" or cutoff is None else "liked"


@metric(
    "P",
    parts=lambda _: ("liked", "disliked"),
    params={"per": Param("k", ("k", "list")), "bound": Param("none", ("none", "lower", "upper"))},
    aliases={"Precision": "P", "SetP": "P(per=list)", "set_P": "P(per=list)"},
    check=_check_bound,
    short_list={"per": "list"},
    condensed={"per": "list"},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    at_rank=settings.PER_CUTOFF,
    weighted=Weighted(weighted.precision, sum_if={}),
    linear=Linear(liked_column, flat_discount, per_cutoff=True),
    bounds=bounds.MetricBounds(bounds.per_cutoff),
    strata=MetricStrata(over_hits, unless={"bound": "upper"}),
    fast_sum=_precision_sum,
)
def precision(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """Share of the list that is liked.

    Formula: liked(L) / k; with `per=list`, or without a cutoff, liked(L) / |L|.
    `bound=lower` takes every unjudged item as bad (the plain value), `bound=upper` as good:
    (|L| - disliked(L)) / k.
    The default of condensed-P is `per=list`: liked / judged items of the list, at most k of them,
    so that condensed-P + anti-condensed-P = 1; `per=k` is trec_eval's with -J.
    Undefined: never, but for condensed-P of a list without a judged item; an empty list scores 0.
    Short list: divided by k all the same, unless `per=list`.
    Range: [0, 1], higher is better.
    Reference: bellogin2017 section 3; mena2021 section 3.1 (condensed); `per=list` is trec_eval's
    set_P (valcarce2018).
    """
    liked, disliked = block.walk("liked", cutoffs), block.walk("disliked", cutoffs)
    top = block.shown(cutoffs) - disliked if params["bound"] == "upper" else liked
    if params["per"] == "list" and block.is_condensed:
        return top, block.shown(cutoffs)  # nothing judged: undefined
    bottom = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    return top, np.maximum(bottom, 1)  # an empty list scores 0


@metric(
    "Recall",
    parts=lambda _: ("liked",),
    params={"per": Param("all", ("all", "min"))},
    aliases={
        "R": "Recall",
        "Fallout": "anti-Recall",
        "set_recall": "Recall",
        "set_relative_P": "Recall(per=min)",
        "relative_P": "Recall(per=min)",
    },
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    at_rank=settings.ALWAYS_1,
    weighted=Weighted(weighted.recall, is_ratio=True),
    linear=Linear(liked_column, flat_discount),
    bounds=bounds.MetricBounds(bounds.share_of_liked, needs_targets=True),
    strata=MetricStrata(over_hits),
    fast_sum=plain_sum("recall"),
)
def recall(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """Share of the liked items that are in the list.

    Formula: liked(L) / R; with `per=min`, liked(L) / min(k, R).
    Undefined: R = 0.
    Short list: no special rule.
    Range: [0, 1], higher is better. The anti-twin is Fallout.
    Reference: bellogin2017 section 3; mena2021 section 3; `per=min` as LensKit and trec_eval's
    relative_P.
    """
    liked = block.walk("liked", cutoffs)
    return _per_liked(block, params, cutoffs, liked)


def _per_liked(block: Block, params: Params, cutoffs: I64, top: F64) -> Fraction:
    """Divide by all liked items of the user, or by as many as fit above the cutoff or the list."""
    liked = block.liked[None, :]
    if params["per"] == "all":
        return top, liked
    slots = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    fits = slots if params["per"] == "k" else np.minimum(liked, slots)
    return top, np.where(liked == 0, 0, np.maximum(fits, 1))  # an empty list scores 0


@metric(
    "F1",
    parts=lambda _: ("liked", "disliked"),
    params={"per": Param("k", ("k", "list"))},
    aliases={"set_F": "F1(per=list)"},
    short_list={"per": "list"},
    condensed={"per": "list"},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    at_rank=settings.HARMONIC,
    weighted=Weighted(
        weighted.f1,
        bias="it leaves out users without a liked judgment; use {anti}P and {anti}Recall",
    ),
    bounds=bounds.MetricBounds(bounds.harmonic_mean, needs_targets=True),
    strata=MetricStrata(by_count),
)
def f1(block: Block, params: Params, cutoffs: I64) -> F64:
    """Harmonic mean of precision and recall.

    Formula: 2 P Recall / (P + Recall), 0 when both are 0; `per=list` as in P (trec_eval's set_F),
    the default of condensed-F1 too.
    Undefined: R = 0.
    Short list: as P.
    Range: [0, 1], higher is better.
    Reference: van Rijsbergen 1979.
    """
    p = np.nan_to_num(ratio(*precision(block, {**params, "bound": "none"}, cutoffs)))
    r = ratio(*recall(block, {"per": "all"}, cutoffs))
    total = p + r
    return np.where(total == 0, 0.0, ratio(2 * p * r, total))


@metric(
    "HitRate",
    parts=lambda _: ("liked",),
    aliases={"HR": "HitRate", "Success": "HitRate"},
    chance=chance_of_any,
    tied=mean_of_any,
    at_rank=settings.ALWAYS_1,
    weighted=FIRST,
    bounds=bounds.MetricBounds(bounds.any_liked),
    strata=MetricStrata(to_first(lambda rank: np.ones(rank.size))),
    fast_sum=plain_sum("hit"),
)
def hit_rate(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """1 when the list holds a liked item, else 0.

    Formula: [liked(L) > 0].
    Undefined: never.
    Short list: no special rule.
    Range: 0 or 1, higher is better.
    Reference: trec_eval's success; in one-relevant designs k x P (bellogin2017 section 3.2).
    """
    liked = block.walk("liked", cutoffs)
    hit: F64 = (liked > 0).astype(np.float64)
    return hit


@metric(
    "Rprec",
    aliases={"R-precision": "Rprec"},
    tied=OWN_FORMULA,
    at_rank=settings.FIRST_ONLY,
    weighted="its cutoff is the number of liked items, which depends on those that were not judged",
    strata=MetricStrata(over_hits),
)
def r_precision(block: Block, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Precision at the rank that equals the number of liked items.

    Formula: liked(first R items of L) / R.
    Undefined: R = 0.
    Short list: divided by R all the same.
    Range: [0, 1], higher is better.
    Reference: trec_eval's Rprec.
    """
    counts = [
        block.liked_within(np.minimum(block.liked, cutoff).astype(np.int64)) for cutoff in cutoffs
    ]
    return np.array(counts), block.liked[None, :]


@metric(
    "AP",
    parts=lambda _: ("precisions",),
    params={"per": Param("all", ("all", "min", "k", "list"))},
    aliases={"MAP": "AP", "map": "AP", "map_cut": "AP"},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    at_rank=settings.RECIPROCAL,
    weighted=Weighted(weighted.average_precision),
    strata=MetricStrata(by_precision),
    fast_sum=plain_sum("precisions"),
)
def average_precision(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """Mean of the precision at the ranks of the liked items; liked items outside the list count 0.

    Formula: (sum over liked items at rank i of P@i) / R; with `per=min`, / min(k, R); with
    `per=list`, / min(|L|, R); with `per=k`, / k.
    Undefined: R = 0.
    Short list: no special rule.
    Range: [0, 1], higher is better. Its mean over users is MAP.
    Reference: trec_eval's map and map_cut (valcarce2018); `per=min` as RankSys
    (carraro2020), RePlay and recommenders; `per=list` as LensKit; `per=k` as RecTools'
    divide_by_k.
    """
    total = block.walk("precisions", cutoffs)
    return _per_liked(block, params, cutoffs, total)


@metric(
    "RR",
    parts=lambda _: ("first",),
    aliases={"MRR": "RR", "recip_rank": "RR"},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    at_rank=settings.RECIPROCAL,
    weighted=FIRST,
    bounds=bounds.MetricBounds(bounds.reciprocal_first),
    strata=MetricStrata(to_first(lambda rank: 1.0 / rank)),
    fast_sum=plain_sum("first"),
)
def reciprocal_rank(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """1 / rank of the first liked item.

    Formula: 1 / rank, 0 when the list holds no liked item.
    Undefined: never.
    Short list: no special rule.
    Range: [0, 1], higher is better. Its mean over users is MRR.
    Reference: trec_eval's recip_rank; anti-RR in mena2021 section 9.
    """
    return block.walk("first", cutoffs)
