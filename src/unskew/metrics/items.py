"""Metrics of the recommended items themselves, and of a whole run."""

from __future__ import annotations

import math

import numpy as np

from unskew.arrays import F64, I8, I64, Mask, frozen
from unskew.judging.shape import Basis, Matched
from unskew.metrics.block import Block
from unskew.metrics.chance import mean_coverage
from unskew.metrics.definition import OWN_FORMULA
from unskew.metrics.listwise import metric
from unskew.metrics.settings import Param, Params

HEAD, MID, TAIL = 0, 1, 2
CLASSES = 3


def ratings_before(counts: F64) -> F64:
    """Return of each item how many ratings the more rated items have; equal counts by id."""
    order = np.argsort(-counts, kind="stable")
    before = np.empty(counts.size)
    before[order] = np.cumsum(counts[order]) - counts[order]
    return before


def tail_items(counts: F64, head: float) -> Mask:
    """Mark the items outside of the head, which holds at least this share of the ratings."""
    tail: Mask = ratings_before(counts) >= head * counts.sum()
    return tail


def item_classes(counts: F64, head: float, tail: float) -> I8:
    """Return the class of each item: head, tail, or mid between them.

    The tail begins where the more rated items hold the share 1 - `tail` of all ratings.
    """
    before, total = ratings_before(counts), counts.sum()
    upper = np.where(before < (1 - tail) * total, MID, TAIL)
    return np.where(before < head * total, HEAD, upper).astype(np.int8)


def percentiles(counts: F64) -> F64:
    """Return of each item the share of rated items with fewer ratings; equal ones count half."""
    rated = np.sort(counts[counts > 0])
    if not rated.size:
        return np.zeros(counts.size)
    below = np.searchsorted(rated, counts, "left")
    return (below + np.searchsorted(rated, counts, "right")) / (2 * rated.size)


def profile_means(judged: Basis, weight: F64) -> F64:
    """Return the mean weight of the items of each list's user's profile; NaN without any."""
    from unskew.metrics.kernels import popularity

    train = judged.train
    assert train is not None
    assert judged.owner is not None
    total = popularity.profile_sums(train.start, train.item, frozen(weight))
    with np.errstate(invalid="ignore"):
        mean = total / np.diff(train.start)
    return mean[judged.owner]


def profile_classes(judged: Basis, classes: I8, number: int = CLASSES) -> F64:
    """Return how many items of each class are in each list's user's profile: a row per list."""
    from unskew.metrics.kernels import popularity

    train = judged.train
    assert train is not None
    assert judged.owner is not None
    counts = popularity.profile_counts(train.start, train.item, frozen(classes), number)
    return np.ascontiguousarray(counts[judged.owner])


TRAIN = frozenset({"train"})
CATALOGUE = frozenset({"catalogue"})
INF = float("inf")


@metric(
    "ARP",
    of="items",
    better="neither",
    anti=False,
    needs=TRAIN,
    high=INF,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
)
def average_popularity(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """Average recommendation popularity: mean number of training ratings of the list's items.

    Formula: (1/|L|) x sum over items i of n_i.
    Undefined: an empty list.
    Short list: divided by its own length.
    Range: [0, inf); a description: high means popular.
    Reference: Yin et al. 2012.
    """
    return block.item_mean(block.judged.popularity, cutoffs)


@metric(
    "EPC",
    of="items",
    better="neither",
    anti=False,
    needs=TRAIN,
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
)
def expected_popularity_complement(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """Expected popularity complement: how unlikely a user is to know the list's items.

    Formula: (1/|L|) x sum over items i of 1 - n_i / |U|, U the users in training.
    Undefined: an empty list.
    Short list: divided by its own length.
    Range: [0, 1]; a description: high means novel.
    Reference: Vargas & Castells 2011, without discount and relevance.
    """
    judged = block.judged
    return block.item_mean(1.0 - judged.popularity / max(judged.train_users, 1), cutoffs)


@metric(
    "Novelty",
    of="items",
    better="neither",
    anti=False,
    needs=TRAIN,
    high=INF,
    aliases={"MSI": "Novelty"},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
)
def self_information(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """Mean self-information of the list's items, in bits.

    Formula: (1/|L|) x sum over items i of -log2(max(n_i, 1) / |U|), U the users in training; an
    item without training ratings counts as one with a single rating.
    Undefined: an empty list.
    Short list: divided by its own length.
    Range: [0, log2 |U|]; a description: high means novel.
    Reference: Zhou et al. 2010.
    """
    judged = block.judged
    share = np.maximum(judged.popularity, 1.0) / max(judged.train_users, 1)
    return block.item_mean(-np.log2(share), cutoffs)


@metric(
    "Tail",
    of="items",
    better="neither",
    anti=False,
    needs=TRAIN,
    params={"head": Param(0.8, low=0, high=1)},
    aliases={"APLT": "Tail"},
    chance=OWN_FORMULA,
    tied=OWN_FORMULA,
)
def long_tail(block: Block, params: Params, cutoffs: I64) -> F64:
    """Share of the list that lies in the long tail.

    Formula: |L ∩ tail| / |L|. The head is the smallest set of most rated items that holds at
    least the share `head` of the training ratings (equal counts by id); the tail is the rest.
    Undefined: an empty list.
    Short list: divided by its own length.
    Range: [0, 1]; a description: high means unpopular.
    Reference: Abdollahpouri et al. 2019 (APLT).
    """
    tail = tail_items(block.judged.popularity, float(params["head"]))
    return block.item_mean(tail.astype(np.float64), cutoffs)


def _exposure(judged: Basis, matched: Matched, cutoff: int) -> I64:
    """Count how often each item of the catalogue is recommended."""
    from unskew.metrics.kernels import lists

    assert judged.catalogue is not None
    run = matched.run
    counts_in_run = lists.exposure(
        matched.start, matched.stop, run.item, max(len(run.items), 1), cutoff
    )
    counts = np.zeros(len(judged.judgments.items), np.int64)
    counts[matched.from_run] = counts_in_run[: len(run.items)]
    return counts[judged.catalogue]


@metric("Coverage", of="run", better="neither", anti=False, needs=CATALOGUE, tied=mean_coverage)
def coverage(judged: Basis, matched: Matched, params: Params, cutoff: int) -> float:  # noqa: ARG001
    """Share of the catalogue that is recommended to anyone.

    Formula: |union of all lists ∩ catalogue| / |catalogue|.
    Undefined: an empty catalogue.
    Short list: no special rule.
    Range: [0, 1]; a description of the whole run, so it cannot be tested for significance.
    Reference: Herlocker et al. 2004.
    """
    counts = _exposure(judged, matched, cutoff)
    return float(np.count_nonzero(counts) / counts.size) if counts.size else math.nan


@metric("Gini", of="run", better="neither", anti=False, needs=CATALOGUE)
def gini(judged: Basis, matched: Matched, params: Params, cutoff: int) -> float:  # noqa: ARG001
    """Inequality of exposure over the catalogue.

    Formula: sum over items in ascending order of exposure of (2j - n - 1) x / (n x sum of x).
    Undefined: nothing is recommended.
    Short list: no special rule.
    Range: [0, 1]: 0 when every item is recommended equally often; a description of the whole run.
    Reference: Fleder & Hosanagar 2009.
    """
    counts = np.sort(_exposure(judged, matched, cutoff))
    total, n = int(counts.sum()), counts.size
    if total == 0:
        return math.nan
    weights = 2 * np.arange(1, n + 1, dtype=np.int64) - n - 1
    return int(np.dot(weights, counts)) / (n * total)


@metric("Entropy", of="run", better="neither", anti=False, needs=CATALOGUE, high=INF)
def entropy(judged: Basis, matched: Matched, params: Params, cutoff: int) -> float:  # noqa: ARG001
    """Shannon entropy of exposure, in bits.

    Formula: - sum over items of p log2 p, p the item's share of all recommendations.
    Undefined: nothing is recommended.
    Short list: no special rule.
    Range: [0, log2 of the catalogue's size]; a description of the whole run.
    Reference: Shannon 1948; used so in LibRec and Elliot.
    """
    counts = _exposure(judged, matched, cutoff)
    counts = counts[counts > 0]
    if not counts.size:
        return math.nan
    total = int(counts.sum())
    return math.fsum(-(c / total) * math.log2(c / total) for c in counts.tolist())
