"""How many ratings each item has, and the order of items by that."""

from __future__ import annotations

import numpy as np

from unskew.arrays import I64
from unskew.data.ratings import Ratings


def item_counts(ratings: Ratings) -> I64:
    """Return the number of ratings of each item, |R(i)|."""
    return np.bincount(ratings.item, minlength=len(ratings.items))


def by_popularity(counts: I64) -> I64:
    """Return the items, most rated first, ties by ascending id."""
    return np.argsort(-counts, kind="stable")
