"""Metrics that weigh ranks, gains or pairs of judged items; terms as in `accuracy`."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.errors import DataError
from unskew.metrics import bounds, settings, weighted
from unskew.metrics.block import (
    WHOLE,
    Block,
    geometric_table,
    log_discount,
    log_table,
    sum_of_discounts,
)
from unskew.metrics.definition import DESCRIBES_JUDGMENTS, OWN_FORMULA, plain_sum
from unskew.metrics.listwise import metric
from unskew.metrics.settings import Param, Params
from unskew.metrics.strata import MetricStrata, over_hits
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
