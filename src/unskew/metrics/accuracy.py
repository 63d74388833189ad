"""Metrics of judged hits. A docstring says: what, formula, undefined, short lists, range, source.

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
from unskew.metrics.block import (
    WHOLE,
    Block,
    geometric_discount,
    log_discount,
    ratio,
    sum_of_discounts,
)
from unskew.metrics.definition import Param, Params, metric

Fraction = tuple[F64, F64]


@metric(
    "P",
    parts=lambda _: ("liked", "disliked"),
    params={"per": Param("k", ("k", "list")), "bound": Param("none", ("none", "lower", "upper"))},
)
def precision(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """Share of the list that is liked.

    Formula: liked(L) / k; with `per=list`, or without a cutoff, liked(L) / |L|.
    `bound=lower` takes every unjudged item as bad (the plain value), `bound=upper` as good:
    (|L| - disliked(L)) / k.
    Undefined: never; an empty list scores 0.
    Short list: divided by k all the same, unless `per=list`.
    Range: [0, 1], higher is better.
    Reference: bellogin2017 section 3; `per=list` is trec_eval's set_P (valcarce2018).
    """
    liked, disliked = block.walk("liked", cutoffs), block.walk("disliked", cutoffs)
    top = block.shown(cutoffs) - disliked if params["bound"] == "upper" else liked
    bottom = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    return top, np.maximum(bottom, 1)  # an empty list scores 0


@metric("Recall", parts=lambda _: ("liked",), params={"per": Param("all", ("all", "min"))})
def recall(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """Share of the liked items that the list found.

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
    room = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    fits = room if params["per"] == "k" else np.minimum(liked, room)
    return top, np.where(liked == 0, 0, np.maximum(fits, 1))  # an empty list scores 0


@metric("F1", parts=lambda _: ("liked", "disliked"), params={"per": Param("k", ("k", "list"))})
def f1(block: Block, params: Params, cutoffs: I64) -> F64:
    """Harmonic mean of precision and recall.

    Formula: 2 P Recall / (P + Recall), 0 when both are 0; `per=list` as in P (trec_eval's set_F).
    Undefined: R = 0.
    Short list: as P.
    Range: [0, 1], higher is better.
    Reference: van Rijsbergen 1979.
    """
    p = ratio(*precision(block, {**params, "bound": "none"}, cutoffs))
    r = ratio(*recall(block, {"per": "all"}, cutoffs))
    both = p + r
    return np.where(both == 0, 0.0, ratio(2 * p * r, both))


@metric("HitRate", parts=lambda _: ("liked",))
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


@metric("Rprec")
def r_precision(block: Block, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Precision at the rank that equals the number of liked items.

    Formula: liked(first R items of L) / R.
    Undefined: R = 0.
    Short list: divided by R all the same.
    Range: [0, 1], higher is better.
    Reference: trec_eval's Rprec.
    """
    hits = block.hits
    counts = [
        block.kernels.liked_within(
            hits.start,
            hits.rank,
            hits.judgment,
            block.view.label,
            np.minimum(block.liked, cutoff).astype(np.int64),
        )
        for cutoff in cutoffs
    ]
    return np.array(counts, np.float64), block.liked[None, :]


@metric(
    "AP", parts=lambda _: ("precisions",), params={"per": Param("all", ("all", "min", "k", "list"))}
)
def average_precision(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """Mean of the precision at the ranks of the liked items; those not found count 0.

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


@metric("RR", parts=lambda _: ("first",))
def reciprocal_rank(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """1 / rank of the first liked item.

    Formula: 1 / rank, 0 when the list holds no liked item.
    Undefined: never.
    Short list: no special rule.
    Range: [0, 1], higher is better. Its mean over users is MRR.
    Reference: trec_eval's recip_rank; anti-RR in mena2021 section 9.
    """
    return block.walk("first", cutoffs)


DISCOUNT = Param("log", ("log", "original"))


def _gains(params: Params) -> tuple[str, ...]:
    return ("gains",) if params["discount"] == "log" else ()


def _dcg(block: Block, params: Params, cutoffs: I64) -> F64:
    if params["discount"] == "log":
        return block.walk("gains", cutoffs)
    discount = log_discount(block.judged.longest, "original")
    return block.discounted(block.view.gain, discount, cutoffs)


@metric("DCG", parts=_gains, params={"discount": DISCOUNT}, high=float("inf"))
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


IDEAL = Param("cut", ("cut", "uncut", "full", "worst", "best"))


@metric("nDCG", parts=_gains, params={"ideal": IDEAL, "discount": DISCOUNT})
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
        whole = np.array([WHOLE])
        return top, block.ideal(f"gain-{name}", view.gain, view.gain, discount, whole)
    return top, block.ideal(f"gain-{name}", view.gain, view.gain, discount, cutoffs)


@metric("RBP", params={"p": Param(0.8, low=0, high=1)})
def rbp(block: Block, params: Params, cutoffs: I64) -> F64:
    """Rank-biased precision: a reader goes on to the next item with probability p.

    Formula: (1 - p) x sum over liked items at rank i of p^(i - 1).
    Undefined: never.
    Short list: what is missing counts as not liked.
    Range: [0, 1], higher is better; RBPresidual says how much unjudged items could add.
    Reference: Moffat & Zobel 2008.
    """
    return block.discounted(block.view.liked, _rbp_discount(block, params), cutoffs)


@metric("RBPresidual", params={"p": Param(0.8, low=0, high=1)}, better="lower", anti=False)
def rbp_residual(block: Block, params: Params, cutoffs: I64) -> F64:
    """How much RBP could still grow if everything unjudged were liked.

    Formula: 1 - (1 - p) x sum over judged items at rank i of p^(i - 1).
    Undefined: never.
    Short list: what lies beyond the list counts as unjudged.
    Range: [0, 1]; lower means the value is better founded.
    Reference: Moffat & Zobel 2008.
    """
    return 1.0 - block.discounted(block.view.judged, _rbp_discount(block, params), cutoffs)


def _rbp_discount(block: Block, params: Params) -> F64:
    p = float(params["p"])
    return geometric_discount(block.judged.longest, 1.0 - p, p)


@metric("AUC", needs=frozenset({"catalogue"}))
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
            f"AUC: the list of user {user!r} holds {int(hits.depth[row])} items, but there are "
            f"only {int(block.targets[row])} target items; give the whole catalogue"
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


@metric("bpref", parts=lambda _: ("preferences",))
def bpref(block: Block, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """How rarely disliked items stand above liked ones; unjudged items do not matter.

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


def _inferred(params: Params) -> str:
    return "inferred-all" if params["pool"] == "all" else "inferred"


@metric(
    "infAP",
    parts=lambda params: (_inferred(params),),
    params={"pool": Param("judged", ("judged", "all"))},
)
def inferred_ap(block: Block, params: Params, cutoffs: I64) -> Fraction:
    """AP estimated as if the judged items were a random sample of a pool.

    Formula: (1/R) x sum over liked items at rank i of 1/i + ((i-1)/i) x (pool above/(i-1)) x
    ((liked above + e) / (judged above + 2e)), e = 1e-5; 1 at rank 1. The pool above holds the
    judged items and those marked as pooled but unjudged; with `pool=all`, everything above.
    Undefined: R = 0.
    Short list: liked items not found count 0.
    Range: [0, 1], higher is better.
    Reference: Yilmaz & Aslam 2006 as in trec_eval; `pool=all` is valcarce2018's infAP2;
    bellogin2017's formula counts one item too many.
    """
    total = block.walk(_inferred(params), cutoffs)
    return total, block.liked[None, :]


@metric(
    "SR",
    params={
        "gamma": Param(1.0, low=-1e-300, high=float("inf")),
        "mean": Param("users", ("users", "ratio")),
    },
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
    found = block.discounted(weight, flat, cutoffs)
    return found, block.sum_judged(weight)[None, :]


@metric(
    "HLU",
    params={
        "halflife": Param(5.0, low=1, high=float("inf")),
        "weight": Param("none", ("none", "popularity")),
        "mean": Param("ratio", ("users", "ratio")),
    },
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


@metric("Judged", parts=lambda _: ("liked", "disliked"), better="neither", anti=False)
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


@metric("Residual", parts=lambda _: ("liked", "disliked"), better="neither", anti=False)
def residual(block: Block, params: Params, cutoffs: I64) -> F64:
    """Share of the list that is not judged: mena2021's δ.

    Formula: 1 - Judged = 1 - (P + anti-P).
    Undefined: never.
    Short list: missing places count as unjudged.
    Range: [0, 1]; a description.
    Reference: mena2021 Eq. 4.
    """
    return 1.0 - ratio(*judged(block, params, cutoffs))
