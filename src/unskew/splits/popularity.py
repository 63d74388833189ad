"""Splits and cuts that answer the popularity of items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from unskew.arrays import I64, Mask
from unskew.checks import as_share, portion
from unskew.data.ratings import Ratings
from unskew.data.summary import by_popularity, item_counts
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.settings import choice, count, share
from unskew.splits import draws
from unskew.splits.random import Random
from unskew.splits.split import SIZES, Split, Splitter, assemble, by_mask

ROUNDING = ("floor", "nearest")
BY = ("items", "ratings")
COUNTS = ("all", "training")
KEEP = ("tail", "head")


@dataclass(frozen=True)
class Uniform(Splitter):
    r"""The same number of test ratings for each of the more popular items.

    bellogin2017 section 6.2 (U1R, UAR). With items sorted by falling number of ratings,
    :math:`\zeta = \max\{k : (1-\epsilon)\,|R(i_k)|\,k / |R| \ge \sigma\}`; each of
    :math:`T = \{i_1 … i_\zeta\}` gets :math:`\eta = (1-\epsilon)\,|R(i_\zeta)|` random test
    ratings. Where even the least rated item has more than σ needs, η is not more than that
    (:math:`\lceil \sigma |R| / \zeta \rceil`), which the paper does not say. Candidate items should
    be T (the test items). Facts: `items` = |T|, `per_item` = η, `zeta` = ζ, `zeta_ratings` =
    |R(i_ζ)|.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> (split,) = us.splits.Uniform(test=0.2).split(shop, seed=1)
    >>> split, split.facts["items"], split.facts["per_item"]
    (Split(uniform: train 278, test 76), 19, 4)
    """

    test: float = share(
        0.2,
        """σ: the requested share of test ratings; the share after rounding is the fact
        `test_share`.""",
    )
    epsilon: float = share(
        0.2, "ε: the smallest share of its ratings that an item of T keeps for training."
    )
    rounding: str = choice(
        "floor",
        """`floor` (default, which keeps ε) or `nearest` (half to even, which the paper's η = 118 on
        MovieLens 1M needs).""",
        ROUNDING,
    )
    repetitions: int = count(
        1,
        """Number of independent draws. These are not folds: they overlap, because disjoint ones
        would need ε >= 1 - 1/n, not the paper's 1/n.""",
    )

    name: ClassVar[str] = "uniform"
    draw_name: ClassVar[str] = "uniform"

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return self.repetitions

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split, or one per repetition."""
        counts = item_counts(ratings)
        order = by_popularity(counts)
        zeta = self._zeta(counts[order], len(ratings))
        lowest = int(counts[order[zeta - 1]])
        test_limit = 1 - as_share("epsilon", self.epsilon)
        need = as_share("test", self.test) * len(ratings) / zeta
        per_item = min(
            int(portion(np.array([lowest]), test_limit, self.rounding)[0]), math.ceil(need)
        )
        size = np.zeros(len(ratings.items), np.int64)
        size[order[:zeta]] = per_item
        hint = (
            f"{counted(zeta, 'item has', 'items have')} {lowest} or more ratings, and "
            f"{1 - self.epsilon:g} of {lowest} is {per_item} ({self.rounding}); a larger test "
            "share takes fewer, more popular items"
        )
        facts = {"items": zeta, "per_item": per_item, "zeta": zeta, "zeta_ratings": lowest}
        yield from _repeated(self, ratings, size, seed, hint=hint, facts=facts)

    def _zeta(self, falling: I64, total: int) -> int:
        """Return the largest k that still allows the test share, in whole-number arithmetic."""
        limit, share = 1 - as_share("epsilon", self.epsilon), as_share("test", self.test)
        area = falling * np.arange(1, falling.size + 1)
        need = share * total / limit
        enough = np.flatnonzero(area >= math.ceil(need))
        if enough.size:
            return int(enough[-1]) + 1
        best = int(np.argmax(area)) if area.size else 0
        highest = limit * (int(area[best]) if area.size else 0) / max(total, 1)
        rounded = (
            math.floor(highest * 10_000) / 10_000
        )  # down, so that it can be typed as it stands
        raise DataError(
            f"uniform: test={self.test:g} is not possible with epsilon={self.epsilon:g}: the most "
            f"is {rounded:g}, with the {best + 1:,} most rated items; lower test or epsilon"
        )


@dataclass(frozen=True)
class Flat(Splitter):
    """The same number t of test ratings for every item that has enough.

    castells2018 section 5.1.2, which does not say what becomes of items with few ratings.

    Examples
    --------
    Two of the 20 items have too few ratings to give five of them.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> (split,) = us.splits.Flat(t=5).split(shop, seed=1)
    >>> split, split.facts["items"], split.facts["items_below"]
    (Split(flat: train 264, test 90), 18, 2)
    """

    t: int | None = count(None, "Test ratings per item: 10 unless given.")
    test: float | None = share(
        None, "Instead of t: the smallest t that makes the test part at least this share."
    )
    min_ratings: int | None = count(
        None,
        """Items with fewer ratings have no test ratings (counted as `items_below`); t + 1 unless
        given, so that one is left for training. An item with at least this many but fewer than t
        gives all it has (counted as `items_short`): with `min_ratings=1` every item is tested.""",
    )
    repetitions: int = count(1, "Number of independent draws; these are not folds.")

    name: ClassVar[str] = "flat"
    draw_name: ClassVar[str] = "flat"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.test is not None and self.t is not None:
            raise SettingError(f"give either t={self.t} or a share (test={self.test})")

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return self.repetitions

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split, or one per repetition."""
        counts = item_counts(ratings)
        t = self._smallest(counts) if self.test is not None else self.t or 10
        minimum = t + 1 if self.min_ratings is None else self.min_ratings
        tested = counts >= minimum
        size = np.where(tested, np.minimum(counts, t), 0)
        highest = int(counts.max(initial=0))
        if tested.any():
            hint = f"t={t} takes every rating; the most rated item has {highest}: take a smaller t"
        else:
            hint = (
                f"no item has {minimum} ratings, the most is {highest}: take min_ratings={highest}"
            )
        facts = {
            "items": int(np.count_nonzero(tested)),
            "per_item": t,
            "min_ratings": minimum,
            "items_below": int(np.count_nonzero((counts > 0) & ~tested)),
            "items_short": int(np.count_nonzero(tested & (counts < t))),
        }
        yield from _repeated(self, ratings, size, seed, hint=hint, facts=facts)

    def _smallest(self, counts: I64) -> int:
        """Return the smallest t for the test share, or say which share is possible."""
        rising = np.sort(counts)
        sums = np.append(0, np.cumsum(rising))
        t = np.arange(1, max(int(rising[-1]), 1) + 1)
        first = np.searchsorted(rising, t + 1 if self.min_ratings is None else self.min_ratings)
        full = np.maximum(np.searchsorted(rising, t), first)  # from here on, items give t
        area = sums[full] - sums[first] + t * (rising.size - full)
        enough = np.flatnonzero(area >= math.ceil(as_share("test", self.test) * int(sums[-1])))
        if enough.size:
            return int(t[enough[0]])
        best = math.floor(10_000 * int(area.max()) / int(sums[-1])) / 10_000
        raise DataError(
            f"flat: test={self.test:g} is not possible: the most is {best:g}, with "
            f"t={int(t[np.argmax(area)])}; lower test or min_ratings"
        )


def _repeated(
    protocol: Uniform | Flat,
    ratings: Ratings,
    size: I64,
    seed: int,
    *,
    hint: str,
    facts: Mapping[str, Any],
) -> Iterator[Split]:
    """Draw so many test ratings of each item, once for each repetition."""
    for number in range(1, protocol.repetitions + 1):
        test = draws.of_each_item(ratings, size, seed, f"split/{protocol.draw_name}/{number}")
        label = f"repetition{number}" if protocol.repetitions > 1 else None
        yield by_mask(protocol, ratings, test, label, hint=hint, facts=facts)


@dataclass(frozen=True)
class HeadRemoved(Splitter):
    """Another split whose test part loses the most popular items, or keeps only these.

    bellogin2017 figure 8 ("-10 % head"). Training is untouched. With the test items as candidates
    the head is neither judged nor ranked, as in the paper.

    Examples
    --------
    The two most popular of 20 items leave the test part.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> splitter = us.splits.HeadRemoved(us.splits.PerUser(), share=0.1)
    >>> (split,) = splitter.split(shop, seed=1)
    >>> split, split.facts["head_items"], split.facts["removed_from_test"]
    (Split(head-removed: train 306, test 40), 2, 8)
    """

    of: Splitter = field(default_factory=Random)
    share: float = share(
        0.1,
        """Size of the head: a share of the rated items, rounded to the nearest whole number.""",
    )
    by: str = choice(
        "items",
        """`items`, or `ratings`: then the head is the smallest set of most rated items with at
        least this share of the ratings.""",
        BY,
    )
    counts: str = choice("all", "Count `all` ratings, or those in `training` only.", COUNTS)
    keep: str = choice("tail", "Keep the `tail` in the test part (default), or the `head`.", KEEP)

    name: ClassVar[str] = "head-removed"
    draw_name: ClassVar[str] = "head-removed"

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return self.of.known_count()

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split, one per fold of the one to start from."""
        part = as_share("share", self.share)
        for split in self.of.each(ratings, seed):
            counts = item_counts(split.train)
            if self.counts == "all":
                counts = counts + item_counts(split.test)
            yield self._cut(split, counts, head(counts, part, self.by))

    def _cut(self, split: Split, counts: I64, in_head: Mask) -> Split:
        """Take the head, or the tail, out of everything that judges."""

        def left(ratings: Ratings) -> Ratings:
            return ratings.take(in_head[ratings.item] == (self.keep == "head"))

        test = left(split.test)
        removed = len(split.test) - len(test)
        facts = {
            **{key: fact for key, fact in split.facts.items() if key not in SIZES},
            "head_items": int(np.count_nonzero(in_head)),
            "head_share_of_ratings": int(counts[in_head].sum()) / int(counts.sum()),
            "removed_from_test": removed,
        }
        hint = (
            f"the head is {facts['head_items']:,} of {np.count_nonzero(counts):,} items: take "
            f"another share of it, or a larger test part"
        )
        label = None if split.label == self.of.name else split.label
        return assemble(
            self,
            split.train,
            test,
            label,
            hint=hint,
            facts=facts,
            left_out=split.facts["left_out"] + removed,
            judgments={name: left(part) for name, part in split.judgments.items()},
        )


def head(counts: I64, part: Fraction, by: str = "items") -> Mask:
    """Tell which items are the head: the most rated ones, ties by ascending id.

    Parameters
    ----------
    counts
        The number of ratings of each item.
    part
        The share of the rated `items` (half to even), or of the `ratings` (as few items as hold
        at least this share).
    by
        `items` or `ratings`.
    """
    order = by_popularity(counts)
    if by == "items":
        rated = int(np.count_nonzero(counts))
        size = int(portion(np.array([rated]), part, "nearest")[0])
    else:
        need = part * int(counts.sum())
        sums = np.cumsum(counts[order])
        size = int(np.searchsorted(sums, math.ceil(need))) + 1
    mask = np.zeros(counts.size, np.bool_)
    mask[order[:size]] = True
    return mask
