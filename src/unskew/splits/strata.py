"""Strata of items by popularity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unskew.arrays import I32, I64, frozen
from unskew.checks import as_count, checked
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import by_popularity, item_counts
from unskew.errors import DataError, SettingError
from unskew.splits.split import Split


@dataclass(frozen=True, eq=False)
class Strata:
    """A partition of the items: stratum 0 holds the most popular ones."""

    stratum: I32
    """The stratum of each item."""
    m: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Items of each stratum, and what they were formed by."""

    def slices(self, split: Split) -> list[Split]:
        """Cut a split into one per stratum, to train and test each on its own.

        castells2018 section 5.1.3 trains within each bin, bellogin2017 section 6.1 on everything.
        """
        if len(split.train.items) != self.stratum.size:
            raise SettingError(
                f"these strata are of {self.stratum.size:,} items, the split has "
                f"{len(split.train.items):,}: form them from the split's own ratings"
            )
        return [self._slice(split, number) for number in range(self.m)]

    def _slice(self, split: Split, number: int) -> Split:
        def inside(ratings: Ratings) -> Ratings:
            return ratings.take(self.stratum[ratings.item] == number)

        train, test = inside(split.train), inside(split.test)
        facts = {**split.facts, "stratum": number, "train": len(train), "test": len(test)}
        return Split(
            train,
            test,
            f"{split.label}-stratum{number + 1}",
            facts,
            split.design,
            {name: inside(part) for name, part in split.judgments.items()},
        )


@checked
def popularity_percentiles(ratings: Ratings, m: int = 10) -> Strata:
    """Part the items into m strata of equal numbers of items, by falling number of ratings.

    bellogin2017 section 6.1 (P1R), which counts all ratings. Ties by ascending id; where m does
    not divide the items, sizes differ by one. Items without ratings come last.

    Parameters
    ----------
    ratings
        The ratings that are counted.
    m
        The number of strata.

    Returns
    -------
    Strata
        `stratum` has a number per item, 0 for the most popular; `slices` cuts a split by it.

    Examples
    --------
    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 2, 3, 1, 2, 1], "item": [7, 7, 7, 8, 8, 9]})
    >>> us.splits.popularity_percentiles(data, m=3).stratum.tolist()  # of items 7, 8, 9
    [0, 1, 2]
    """
    return percentiles(item_counts(ratings), m)


def percentiles(counts: I64, m: int) -> Strata:
    """Part items into m strata of equal numbers of items, by falling counts."""
    _check(m, counts.size)
    rank = np.empty(counts.size, np.int64)
    rank[by_popularity(counts)] = np.arange(counts.size)
    return _strata(rank * m // counts.size, m, counts, "items")


@checked
def judgment_bins(train: Ratings, relevance: Relevance, m: int = 10) -> Strata:
    """Part the items into m strata of about equal numbers of positive training judgments.

    castells2018 section 5.1.3. Items go by falling number of liked training ratings, ties by
    ascending id, each into the bin in which the middle of its judgments falls. An item with more
    judgments than a bin has room for can leave bins empty (the fact `empty`).

    Parameters
    ----------
    train
        Training ratings.
    relevance
        Which of them are liked.
    m
        The number of strata.

    Returns
    -------
    Strata
        `stratum` has a number per item, 0 for the most liked; `slices` cuts a split by it.

    Examples
    --------
    Item 7 alone has as many liked ratings as the two others.

    >>> import unskew as us
    >>> train = us.read_ratings({"user": [1, 2, 3, 4] * 2, "item": [7] * 4 + [8, 8, 9, 9]})
    >>> us.splits.judgment_bins(train, us.Relevance(liked=1), m=2).stratum.tolist()
    [0, 1, 1]
    """
    liked = train.take(relevance.is_liked(train.value))
    counts = item_counts(liked)
    _check(m, counts.size)
    if not len(liked):
        raise DataError(
            f"no training rating is liked ({relevance}): there are no judgments to bin by"
        )
    order = by_popularity(counts)
    falling = counts[order]
    middle = 2 * np.cumsum(falling) - falling  # in halves
    stratum = np.empty(counts.size, np.int64)
    stratum[order] = np.minimum(middle * m // (2 * len(liked)), m - 1)
    return _strata(stratum, m, counts, "judgments")


def stated_strata(stratum: Any, items: int) -> Strata:
    """Return the strata that a user's function gave; refuse what numbers no items."""
    numbers = np.asarray(stratum)
    are_integers = np.issubdtype(numbers.dtype, np.integer) and numbers.shape == (items,)
    if not are_integers or numbers.min(initial=0) < 0:
        raise DataError(
            f"strata: the function must return a whole number from 0 up for each of the "
            f"{items:,} items, got {numbers.dtype} of shape {numbers.shape}"
        )
    m = int(numbers.max(initial=0)) + 1
    facts = {"by": "function", "m": m, "items": np.bincount(numbers, minlength=m).tolist()}
    return Strata(frozen(numbers.astype(np.int32)), m, facts)


def _check(m: int, items: int) -> None:
    if as_count("m", m) > items:
        raise SettingError(f"{m:,} strata need at least {m:,} items; there are {items:,}")


def _strata(stratum: I64, m: int, counts: I64, by: str) -> Strata:
    sizes = np.bincount(stratum, minlength=m)
    facts = {
        "by": by,
        "m": m,
        "items": sizes.tolist(),
        "ratings": np.bincount(stratum, counts, minlength=m).astype(np.int64).tolist(),
        "empty": int(np.count_nonzero(sizes == 0)),
    }
    return Strata(frozen(stratum.astype(np.int32)), m, facts)
