"""What users rated in training, as metrics of popularity see it: profiles and classes of items.

A user's profile is the items of the user's training ratings. Items are put into classes by their
number of training ratings, most rated first: the head is the smallest set that holds at least a
given share of all ratings.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I8, Mask, frozen
from unskew.judging.shape import Basis

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
    from unskew.metrics import popularity_kernels

    train = judged.train
    assert train is not None
    assert judged.owner is not None
    total = popularity_kernels.profile_sums(train.start, train.item, frozen(weight))
    with np.errstate(invalid="ignore"):
        mean = total / np.diff(train.start)
    return mean[judged.owner]


def profile_classes(judged: Basis, classes: I8, number: int = CLASSES) -> F64:
    """Return how many items of each class are in each list's user's profile: a row per list."""
    from unskew.metrics import popularity_kernels

    train = judged.train
    assert train is not None
    assert judged.owner is not None
    counts = popularity_kernels.profile_counts(train.start, train.item, frozen(classes), number)
    return np.ascontiguousarray(counts[judged.owner])
