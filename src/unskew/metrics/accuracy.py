"""Metrics of the liked items in a list, and those that weigh ranks, gains or pairs of judged items.

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

from unskew.arrays import F64, I64, frozen
from unskew.errors import DataError
from unskew.metrics import bounds, settings, weighted
from unskew.metrics.block import (
    WHOLE,
    Block,
    flat_discount,
    geometric_table,
    log_discount,
    log_table,
    ratio,
    sum_of_discounts,
)
from unskew.metrics.chance import chance_of_any, mean_of_any
from unskew.metrics.definition import DESCRIBES_JUDGMENTS, OWN_FORMULA, plain_sum
from unskew.metrics.listwise import metric
from unskew.metrics.settings import Param, Params
from unskew.metrics.strata import MetricStrata, by_count, by_precision, over_hits, to_first
from unskew.metrics.weighted import (
    Linear,
    Weighted,
    gain_column,
    largest_dcg,
    largest_ndcg,
    liked_column,
)
from unskew.report.text import counted

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


# By rank, gain and pairs

DISCOUNT = Param("log", ("log", "original"))


def _gains(params: Params) -> tuple[str, ...]:
    return ("gains",) if params["discount"] == "log" else ()


def _dcg(block: Block, params: Params, cutoffs: I64) -> F64:
    if params["discount"] == "log":
        return block.walk("gains", cutoffs)
    discount = log_discount(block.judged.longest, "original")
    return block.discounted(block.view.gain, discount, cutoffs)


@metric(
    "DCG",
    parts=_gains,
    params={"discount": DISCOUNT},
    high=float("inf"),
    aliases={"DCL": "anti-DCG"},
    counts_gain=True,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    at_rank=settings.DISCOUNTED_GAIN,
    weighted=Weighted(weighted.dcg, sum_if={}, high=largest_dcg),
    linear=Linear(gain_column, log_table),
    bounds=bounds.MetricBounds(bounds.discounted_gains, log_table),
    strata=MetricStrata(over_hits),
    fast_sum=plain_sum("gains"),
)
def dcg(block: Block, params: Params, cutoffs: I64) -> F64:
    """Gains of the judged items, discounted by rank, not normalised.

    Formula: sum over judged items at rank i of gain / log2(i + 1); with `discount=original`,
    gain / log2(i), and no discount at ranks 1 and 2.
    Undefined: never.
    Short list: no special rule.
    Range: [0, inf), higher is better. The anti-twin (DCL) sums losses: lower is better.
    Reference: Järvelin & Kekäläinen 2002 (`original`; so LensKit); Burges et al. 2005.
    """
    return _dcg(block, params, cutoffs)


IDEAL = Param("cut", ("cut", "uncut", "full", "worst", "best"), synonyms={"worst": "cut"})


def _check_ideal(params: Params, anti: bool, cutoff: int | None) -> str:
    ideal = params["ideal"]
    if ideal in ("worst", "best") and not anti:
        return f"ideal={ideal} is for nDCL (anti-nDCG) only"
    return "ideal=full needs a cutoff, as in @10" if ideal == "full" and cutoff is None else ""


@metric(
    "nDCG",
    parts=_gains,
    params={"ideal": IDEAL, "discount": DISCOUNT},
    aliases={"nDCL": "anti-nDCG", "ndcg_cut": "nDCG"},
    check=_check_ideal,
    counts_gain=True,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    at_rank=settings.NORMALISED_GAIN,
    weighted=Weighted(
        weighted.ndcg,
        sum_if={"ideal": "full"},
        unnormalised="DCG",
        bias="its ideal list is not a sum over judgments; use {plain} or {sum}",
        high=largest_ndcg,
    ),
    strata=MetricStrata(over_hits, unless={"ideal": "best"}),
    fast_sum=plain_sum("gains per ideal"),
)
def ndcg(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """DCG divided by the best that the user's judgments allow.

    Formula: DCG / ideal, `discount` as in DCG. `ideal=cut` (default): the user's gains in
    descending order, cut at k (without a cutoff: un-cut). `uncut`: all of them, also at a cutoff.
    `full`: k items of the highest gain in the judgments. For the anti-twin nDCL, `worst` (= cut):
    the user's losses in descending order; `best`: the losses as they stand in the user's best
    order (can exceed 1).
    Undefined: the ideal is 0 (no judged item with a gain).
    Short list: no special rule.
    Range: [0, 1], higher is better.
    Reference: trec_eval's ndcg (no cutoff) and ndcg_cut (valcarce2018); nDCL:
    mena2021 section 9, Frolov & Oseledets 2016; `full`: RecTools' default.
    """
    discount = log_discount(block.judged.longest, str(params["discount"]))
    view, kind, name = block.view, params["ideal"], str(params["discount"])
    top = _dcg(block, params, cutoffs)
    if kind == "full":
        best = float(view.gain.max()) if view.gain.size else 0.0
        # The cutoff may lie beyond every list and all judgments, so there is no table of it.
        sums = np.array([sum_of_discounts(int(cutoff), name) for cutoff in cutoffs])
        return top, best * sums[:, None]
    if kind == "best":
        # An anti view: loss is the gain of what is liked. What is not judged goes to the end.
        signed = block.judged.once(
            ("signed", block.is_anti),
            lambda: np.where(view.judged > 0, view.loss - view.gain, -np.inf),
        )
        bottom = block.ideal(f"best-{name}", signed, view.gain, discount, cutoffs)
        return np.where(bottom == 0, 0.0, top), bottom
    if kind == "uncut":
        full = np.array([WHOLE])
        return top, block.ideal(f"gain-{name}", view.gain, view.gain, discount, full)
    return top, block.ideal(f"gain-{name}", view.gain, view.gain, discount, cutoffs)


@metric(
    "RBP",
    params={"p": Param(0.8, low=0, high=1)},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    at_rank=settings.GEOMETRIC,
    weighted=Weighted(weighted.rbp, sum_if={}),
    linear=Linear(liked_column, geometric_table),
    bounds=bounds.MetricBounds(bounds.discounted, geometric_table, frozenset({"p"})),
    strata=MetricStrata(over_hits),
)
def rbp(block: Block, params: Params, cutoffs: I64) -> F64:
    """Rank-biased precision: a reader continues to the next item with probability p.

    Formula: (1 - p) x sum over liked items at rank i of p^(i - 1).
    Undefined: never.
    Short list: what is missing counts as not liked.
    Range: [0, 1], higher is better; RBPresidual says how much unjudged items could add.
    Reference: Moffat & Zobel 2008.
    """
    table = geometric_table(params, block.judged.longest)
    return block.discounted(block.view.liked, table, cutoffs)


@metric(
    "RBPresidual",
    params={"p": Param(0.8, low=0, high=1)},
    better="lower",
    anti=False,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
    weighted=DESCRIBES_JUDGMENTS.format(0),
)
def rbp_residual(block: Block, params: Params, cutoffs: I64) -> F64:
    """How much RBP could still grow if everything unjudged were liked.

    Formula: 1 - (1 - p) x sum over judged items at rank i of p^(i - 1).
    Undefined: never.
    Short list: what lies beyond the list counts as unjudged.
    Range: [0, 1]; lower means the value is better founded.
    Reference: Moffat & Zobel 2008.
    """
    table = geometric_table(params, block.judged.longest)
    return 1.0 - block.discounted(block.view.judged, table, cutoffs)


@metric(
    "AUC",
    needs=frozenset({"catalogue"}),
    tied=OWN_FORMULA,
    at_rank=settings.AREA,
    weighted=Weighted(weighted.auc, needs_targets=True),
)
def auc(block: Block, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Probability that a liked target item ranks above one that is not liked.

    Formula: pairs (liked, other target) in the right order / (R x (|T| - R)); items outside the
    list are tied at its end, each such pair counting half. condensed-AUC looks at judged items
    only.
    Undefined: R = 0, or every target item is liked.
    Short list: see above.
    Range: [0, 1], 0.5 for a random order, higher is better.
    Reference: Rendle et al. 2009.
    """
    assert block.targets is not None
    hits = block.hits
    short = hits.depth > block.targets
    if short.any():
        row = int(np.argmax(short))
        user = block.judged.judgments.users.values[int(block.judged.lists.user[block.lo + row])]
        raise DataError(
            f"AUC: the list of user {user!r} holds {counted(int(hits.depth[row]), 'item')}, more "
            f"than the {counted(int(block.targets[row]), 'target item')}; give the whole "
            "catalogue"
        )
    right = block.room("AUC", cutoffs.size)
    block.run_kernel(
        "ordered_pairs",
        block.view.label,
        block.liked,
        hits.depth,
        frozen(block.targets),
        cutoffs,
        right,
    )
    pairs = block.liked * (block.targets - block.liked)
    # Without pairs, items outside the catalogue would leave something over 0.
    return np.where(pairs == 0, 0.0, right), pairs[None, :]
