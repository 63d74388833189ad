"""Popularity as users live it: lists against the profiles of their users, and groups of items."""

from __future__ import annotations

import math

import numpy as np

from unskew.arrays import F64, I8, I64, Mask, frozen
from unskew.judging.shape import Basis, Matched
from unskew.metrics.block import Block
from unskew.metrics.chance import ChanceBlock
from unskew.metrics.definition import OWN_FORMULA
from unskew.metrics.items import (
    CATALOGUE,
    CLASSES,
    INF,
    TRAIN,
    item_classes,
    percentiles,
    profile_classes,
    profile_means,
    tail_items,
)
from unskew.metrics.listwise import metric
from unskew.metrics.settings import Param, Params

SHARES = {"head": Param(0.2, low=0, high=1), "tail": Param(0.2, low=0, high=1)}
"""Which share of the ratings the head and the tail hold."""
HEAD = {"head": Param(0.8, low=0, high=1)}
Fraction = tuple[F64, F64]


@metric(
    "PopLift",
    of="items",
    better="neither",
    anti=False,
    needs=TRAIN,
    low=-1,
    high=INF,
    params={"mean": Param("ratio", ("ratio", "users"))},
    aliases={"DeltaGAP": "PopLift"},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
)
def popularity_lift(block: Block, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Popularity lift: how much more popular the list is than what the user rated in training.

    Formula: (g(L) - g(profile)) / g(profile), g the mean number of training ratings of items.
    `mean=ratio` (default) divides the sums over all users, which is ΔGAP of a group of users;
    `mean=users` averages the lifts of users, among which those with rare items weigh most.
    Undefined: an empty list, a user without training ratings; the ratio leaves them out.
    Short list: divided by its own length.
    Range: [-1, inf); a description: 0 is the level of the profile, 1 twice as popular.
    Reference: Abdollahpouri et al. 2019 (The unfairness of popularity bias).
    """
    judged = block.judged
    level = judged.once("profile popularity", lambda: profile_means(judged, judged.popularity))
    levels = level[block.lo : block.hi]
    top = block.item_mean(judged.popularity, cutoffs) - levels
    return top, np.where(np.isnan(top), 0.0, levels)


@metric(
    "PopPercentile",
    of="items",
    better="neither",
    anti=False,
    needs=TRAIN,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
)
def popularity_percentile(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """Mean popularity percentile of the list's items.

    Formula: (1/|L|) x sum over items i of the share of the rated items that have fewer training
    ratings than i; items with as many count half.
    Undefined: an empty list.
    Short list: divided by its own length.
    Range: [0, 1]; a description: high means popular; an item without training ratings has 0.
    Reference: mid-rank percentiles, as in Parzen 1979; no outlier moves them.
    """
    return block.item_mean(_percentiles(block.judged), cutoffs)


@metric(
    "PercentileShift",
    of="items",
    better="neither",
    anti=False,
    needs=TRAIN,
    low=-1,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
)
def percentile_shift(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """Mean popularity percentile of the list's items, less that of the user's profile.

    Formula: PopPercentile of the list - PopPercentile of the items the user rated in training.
    Undefined: an empty list, a user without training ratings.
    Short list: divided by its own length.
    Range: [-1, 1]; a description: 0 is the level of the profile, above it more popular.
    Reference: as PopPercentile; the level of the user as in Abdollahpouri et al. 2021.
    """
    judged = block.judged
    weight = _percentiles(judged)
    level = judged.once("profile percentile", lambda: profile_means(judged, weight))
    return block.item_mean(weight, cutoffs) - level[block.lo : block.hi]


@metric(
    "TailShift",
    of="items",
    better="neither",
    anti=False,
    needs=TRAIN,
    low=-1,
    params=HEAD,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
)
def tail_shift(block: Block, params: Params, cutoffs: I64) -> F64:
    """Share of the list in the long tail, less that of the user's profile.

    Formula: Tail of the list - Tail of the items that the user rated in training.
    Undefined: an empty list, a user without training ratings.
    Short list: divided by its own length.
    Range: [-1, 1]; a description: 0 is the level of the profile, below it less of the tail.
    Reference: APLT (Abdollahpouri et al. 2019) at the level of the user.
    """
    judged, head = block.judged, float(params["head"])
    weight = judged.once(
        ("tail", head), lambda: tail_items(judged.popularity, head).astype(np.float64)
    )
    level = judged.once(("profile tail", head), lambda: profile_means(judged, weight))
    return block.item_mean(weight, cutoffs) - level[block.lo : block.hi]


def _percentiles(judged: Basis) -> F64:
    return judged.once("percentiles", lambda: percentiles(judged.popularity))


def _classes(judged: Basis, params: Params) -> tuple[I8, F64]:
    """Return the class of each item, and how many of each are in the profile of each list."""
    head, tail = float(params["head"]), float(params["tail"])
    classes = judged.once(
        ("classes", head, tail),
        lambda: item_classes(judged.popularity, head, tail).astype(np.float64),
    ).astype(np.int8)
    profile = judged.once(("profile classes", head, tail), lambda: profile_classes(judged, classes))
    return classes, profile


def _class_counts(block: Block, classes: I8, cutoffs: I64) -> I64:
    from unskew.metrics.kernels import popularity

    run = block.matched
    of_run = frozen(classes[run.from_run])
    return popularity.class_counts(
        run.start, run.stop, run.run.item, of_run, cutoffs, block.lo, block.hi
    )


def _check_shares(params: Params, anti: bool, cutoff: int | None) -> str:  # noqa: ARG001
    if float(params["head"]) + float(params["tail"]) > 1:
        return "head and tail hold more than all ratings: their sum must not exceed 1"
    return ""


def chance_of_deviation(block: Block, params: Params, cutoffs: I64) -> F64:
    """Return the expected divergence of a random list: over all counts of classes, exactly."""
    from unskew.metrics.kernels import popularity

    assert isinstance(block, ChanceBlock)
    classes, profile = _classes(block.judged, params)
    once = frozen(np.ones(1, np.int64))
    shares = [
        block.item_mean((classes == level).astype(np.float64), once)[0] for level in range(CLASSES)
    ]
    targets = np.rint(np.nan_to_num(np.stack(shares, axis=1)) * block.size[:, None])
    places = np.ascontiguousarray(block.shown(cutoffs))
    return popularity.chance_divergences(profile, targets, places)


@metric(
    "UPD",
    of="items",
    better="lower",
    anti=False,
    needs=TRAIN,
    params=SHARES,
    check=_check_shares,
    chance=chance_of_deviation,
)
def popularity_deviation(block: Block, params: Params, cutoffs: I64) -> F64:
    """User popularity deviation: how far the list's popularity mix is from the profile's.

    Formula: Jensen-Shannon divergence, in bits, between the shares of head, mid and tail items in
    the list and in the user's profile. The head is the smallest set of most rated items that holds
    at least the share `head` of the training ratings; the tail begins where all more rated items
    hold 1 - `tail`; mid is between. A short list or profile is far from anything: ExcessUPD takes
    that off.
    Undefined: an empty list, a user without training ratings.
    Short list: divided by its own length.
    Range: [0, 1], lower is closer to the profile.
    Reference: Abdollahpouri et al. 2021 (arXiv 2103.06364), miscalibration of popularity and UPD.
    """
    from unskew.metrics.kernels import popularity

    classes, profile = _classes(block.judged, params)
    counts = _class_counts(block, classes, cutoffs)
    return popularity.divergences(profile, counts, block.lo, block.hi)


@metric(
    "ExcessUPD",
    of="items",
    better="lower",
    anti=False,
    needs=TRAIN,
    low=-1,
    params=SHARES,
    check=_check_shares,
)
def excess_deviation(block: Block, params: Params, cutoffs: I64) -> F64:
    """User popularity deviation beyond what samples from one taste would show.

    Formula: UPD - E, E the mean UPD over all ways to divide the items of list and profile into
    two parts of their sizes. If both are samples from one distribution its expectation is 0.
    Undefined: an empty list, a user without training ratings.
    Short list: divided by its own length.
    Range: (-1, 1), lower is closer to the profile; 0 is expected of a list that matches it.
    Reference: UPD of Abdollahpouri et al. 2021, less its mean over permutations.
    """
    from unskew.metrics.kernels import popularity

    classes, profile = _classes(block.judged, params)
    counts = _class_counts(block, classes, cutoffs)
    null = popularity.null_divergences(profile, counts, block.lo, block.hi)
    return popularity.divergences(profile, counts, block.lo, block.hi) - null


def _tail(judged: Basis, head: float) -> Mask:
    def mark() -> F64:
        return tail_items(judged.popularity, head).astype(np.float64)

    return judged.once(("tail", head), mark).astype(np.bool_)


def parity_counts(judged: Basis, matched: Matched, head: float, cutoff: int) -> I64:
    """Count by list, in head and tail: items listed, liked items listed, liked items.

    Six columns: two of each. Listed items outside of the catalogue, where it is known, do not
    count as listed.
    """
    from unskew.metrics.kernels import popularity

    tail = _tail(judged, head)
    inside = np.ones(tail.size, np.bool_) if judged.catalogue is None else judged.catalogue
    judgments = judged.judgments
    return popularity.tail_counts(
        matched.start,
        matched.stop,
        matched.run.item,
        matched.from_run,
        judged.lists.user,
        judgments.start,
        judgments.item,
        judged.view.label,
        frozen(tail),
        frozen(inside),
        cutoff,
    )


def free_items(judged: Basis, head: float) -> F64:
    """Count the items of the catalogue that each list's user did not rate, in head and tail."""
    catalogue = judged.catalogue
    assert catalogue is not None

    def count() -> F64:
        tail = _tail(judged, head)
        part = np.where(catalogue, tail, -1).astype(np.int8)
        sizes = np.bincount(tail[catalogue].astype(np.int64), minlength=2)
        return np.asarray(sizes - profile_classes(judged, part, 2))

    return judged.once(("free items", head), count)


def disparity(top: F64, bottom: F64) -> float:
    """Return the standard deviation of two rates over their mean; NaN where there is none."""
    if not bottom.all() or not top.any():
        return math.nan
    head, tail = float(top[0] / bottom[0]), float(top[1] / bottom[1])
    return abs(head - tail) / (head + tail)


@metric(
    "PopREO",
    of="run",
    better="neither",
    anti=False,
    needs=TRAIN,
    params=HEAD,
)
def equal_opportunity(judged: Basis, matched: Matched, params: Params, cutoff: int) -> float:
    """Ranking-based equal opportunity of head and tail: how unequal the recall of both is.

    Formula: |a - b| / (a + b), the standard deviation of a and b over their mean: a the share of
    the users' liked head items that their lists hold, b that of tail items; users with a list.
    The head is the smallest set of most rated items that holds at least the share `head` of the
    training ratings.
    Undefined: no liked item in head or in tail, no liked item in any list.
    Short list: no special rule.
    Range: [0, 1]: 0 when liked items of head and tail are equally often shown, 1 when those of
    one are never; a description of the whole run.
    Reference: Zhu et al. 2020 (REO); with these groups PopREO in Elliot.
    """
    counts = parity_counts(judged, matched, float(params["head"]), cutoff)
    total = counts[matched.depth > 0].sum(axis=0).astype(np.float64)
    return disparity(total[2:4], total[4:6])


@metric(
    "PopRSP",
    of="run",
    better="neither",
    anti=False,
    needs=TRAIN | CATALOGUE,
    params=HEAD,
)
def statistical_parity(judged: Basis, matched: Matched, params: Params, cutoff: int) -> float:
    """Ranking-based statistical parity of head and tail: how unequally both are shown.

    Formula: |a - b| / (a + b), the standard deviation of a and b over their mean: a the share of
    the head items that could be listed (the catalogue less the user's training items, summed over
    lists) that are listed, b that of tail items. The head is as in PopREO.
    Undefined: no item could be listed in head or in tail, nothing is listed.
    Short list: no special rule.
    Range: [0, 1]: 0 when head and tail are shown equally often, 1 when one is never; a
    description of the whole run.
    Reference: Zhu et al. 2020 (RSP); with these groups PopRSP in Elliot.
    """
    head, listed = float(params["head"]), matched.depth > 0
    total = parity_counts(judged, matched, head, cutoff)[listed].sum(axis=0).astype(np.float64)
    return disparity(total[0:2], free_items(judged, head)[listed].sum(axis=0))
