"""What sampled ranks tell of the true ones: a mixture of known distributions with unknown shares.

If a share π(R) of the lists had their relevant item at rank R among all N items, a share
sum over R of π(R) p(r | R) would show it at the sampled rank r. The chances p(r | R) are known
(`rank_distribution`), the shares r are counted; `rank_shares` estimates π. Here lists that tell the
same are counted together, and ranks that a sample cannot tell apart are put into one bin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import Metric
from unskew.unbiased.sampled_ranks import rank_distribution

SINGLE = 64
"""Up to this rank each rank is a bin of its own."""
WIDTH = 0.03
"""Width of a bin beyond, as a share of its first rank: no sample of others tells these apart."""
POINTS = 16
"""Ranks of a wide bin at which chances are looked up; they are averaged."""
CLASSES = 32
"""Numbers of items N are worked with one by one up to so many; else in so many classes."""
FINEST = 0.02
"""Classes are no finer than this, as a share of N."""


@dataclass(frozen=True, eq=False)
class RankBins:
    """Ranks 1 … most, cut into bins within which shares are alike."""

    first: I64
    last: I64

    @classmethod
    def up_to(cls, most: int) -> RankBins:
        """Cut: singly at first, then ever wider."""
        edges = list(range(1, min(most, SINGLE) + 1))
        while edges[-1] < most:
            edges.append(edges[-1] + max(1, int(edges[-1] * WIDTH)))
        first = np.array([edge for edge in edges if edge <= most], np.int64)
        return cls(first, np.append(first[1:] - 1, most))

    @property
    def size(self) -> I64:
        """How many ranks each bin holds."""
        return self.last - self.first + 1

    @property
    def uniform(self) -> F64:
        """The share of each bin where all ranks are alike likely."""
        return self.size / float(self.last[-1])

    def values(self, metric: Metric) -> F64:
        """Return the mean of a metric over the ranks of each bin."""
        most = int(self.last[-1])
        at_ranks = value_at(metric, np.arange(1, most + 1), most)
        return np.add.reduceat(at_ranks, self.first - 1) / self.size

    def chances(self, items: int, n: int, replacement: bool = False) -> F64:
        """Return how likely each number 0 … n of better items is: a row each, a column per bin.

        A rank beyond `items` counts as the last: lists may have fewer items than the largest.
        """
        offsets = [
            np.arange(size) if size <= POINTS else (np.arange(POINTS) + 0.5) * size // POINTS
            for size in self.size
        ]
        ranks = np.concatenate([low + part for low, part in zip(self.first, offsets, strict=True)])
        clamped = np.minimum(ranks.astype(np.int64), items)
        start = np.append(0, np.cumsum([part.size for part in offsets]))
        rows = rank_distribution(clamped, items, n, replacement=replacement)
        sums = np.add.reduceat(rows, start[:-1], axis=0)
        return np.ascontiguousarray((sums / np.diff(start)[:, None]).T)


@dataclass(frozen=True, eq=False)
class SampleGroups:
    """Lists by the number of items N and of drawn others n."""

    bins: RankBins
    of_list: I64
    """The group of each list; -1 where all others are in the list, so that its rank is known."""
    items: I64
    """N of each group: where there are many, the mean of those in its class."""
    n: I64
    replacement: bool
    adaptive: bool
    """Whether n depends on what was seen: then lists with a known rank are not like the others, and
    the shares must be learnt from all of them together."""
    merged: int
    """How many different N were put into classes; 0 where each N is worked with."""

    @classmethod
    def of(
        cls, items: I64, n: I64, replacement: bool = False, adaptive: bool = False
    ) -> SampleGroups:
        """Group lists. All others are in a list where n = N - 1 (without replacement)."""
        part = (n < items - 1) | replacement
        bins = RankBins.up_to(int(items.max()))
        of_list = np.full(items.size, -1)
        if not part.any():
            nothing = np.empty(0, np.int64)
            return cls(bins, of_list, nothing, nothing, replacement, adaptive, 0)
        classes, merged = _classes(items[part])
        pairs, group = np.unique(np.stack([classes, n[part]]), axis=1, return_inverse=True)
        of_list[part] = group.ravel()
        count = np.bincount(group.ravel())
        # Sums of whole numbers: the same whatever the order of lists.
        total = np.bincount(group.ravel(), items[part].astype(np.float64))
        mean = np.rint(total / count).astype(np.int64)
        return cls(bins, of_list, mean, pairs[1], replacement, adaptive, merged)

    def __len__(self) -> int:
        return int(self.items.size)

    def chances(self, group: int) -> F64:
        """Return how likely each number of better items is in a group: 0 … n x bins."""
        return self.bins.chances(int(self.items[group]), int(self.n[group]), self.replacement)

    @property
    def known(self) -> F64:
        """How likely a known rank is at a rank of each bin: bins x bins."""
        return np.diag(1.0 / self.bins.size)


def _classes(items: I64) -> tuple[I64, int]:
    """Return the class of each list by its N, and how many different N were put together."""
    different = np.unique(items)
    if different.size <= CLASSES:
        return items, 0
    low = math.log(different[0])
    width = max(FINEST, (math.log(different[-1]) - low) / CLASSES)
    return ((np.log(items) - low) / width).astype(np.int64), int(different.size)


@dataclass(frozen=True, eq=False)
class RankCells:
    """Lists of one system that tell the same of their true rank, counted together."""

    bins: RankBins
    chance: F64
    """Cells x bins: how likely the sampled rank of the cell is at a rank of the bin."""
    count: F64
    """Lists in each cell."""
    cell: I64
    """Of each list; -1 where nothing is to be learnt from it: it could not be ranked, or its rank
    is known (and n does not depend on what was seen)."""

    @classmethod
    def of(cls, groups: SampleGroups, ranks: F64) -> RankCells:
        """Count the lists of a system by group and sampled rank."""
        known = groups.of_list < 0
        counted: Mask = ~np.isnan(ranks) & (~known | groups.adaptive)
        group = np.where(known, len(groups), groups.of_list)[counted]
        seen = ranks[counted].astype(np.int64) - 1
        bin_of = np.searchsorted(groups.bins.last, seen + 1)
        pairs, cell, count = np.unique(
            np.stack([group, np.where(group < len(groups), seen, bin_of)]),
            axis=1,
            return_inverse=True,
            return_counts=True,
        )
        of_list = np.full(ranks.size, -1)
        of_list[counted] = cell.ravel()
        # Group by group: of a large sample only the rows that were seen are held.
        parts = [np.empty((0, groups.bins.first.size))]
        for one in np.unique(pairs[0]):
            rows = pairs[1][pairs[0] == one]
            parts.append(groups.chances(one)[rows] if one < len(groups) else groups.known[rows])
        chance = np.concatenate(parts)
        return cls(groups.bins, chance, count.astype(np.float64), of_list)

    @property
    def lists(self) -> float:
        """How many lists are counted."""
        return float(self.count.sum())

    @property
    def share(self) -> F64:
        """The share of the counted lists in each cell."""
        return self.count / self.lists

    def values(self, metrics: Sequence[Metric]) -> F64:
        """Return metrics x bins."""
        return np.array([self.bins.values(metric) for metric in metrics])
