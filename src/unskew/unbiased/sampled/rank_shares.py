"""`mle`: the most likely distribution of true ranks behind sampled ranks, and metrics under it.

The likelihood of the sampled ranks is climbed by expectation maximisation from equal shares of all
ranks (Jin et al. 2021). The climb is stopped early: at its top the shares sit on a few ranks, which
no metric of the top of a list survives. What every list adds to the estimate (its influence) comes
with it, so that intervals over draws of users cost no refit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import Metric
from unskew.unbiased.sampled.expected_metrics import rank_distribution, values_in_lists

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
    def up_to(cls, limit: int) -> RankBins:
        """Cut: singly at first, then ever wider."""
        edges = list(range(1, min(limit, SINGLE) + 1))
        while edges[-1] < limit:
            edges.append(edges[-1] + max(1, int(edges[-1] * WIDTH)))
        first = np.array([edge for edge in edges if edge <= limit], np.int64)
        return cls(first, np.append(first[1:] - 1, limit))

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
        limit = int(self.last[-1])
        at_ranks = value_at(metric, np.arange(1, limit + 1), limit)
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
        is_exact = groups.of_list < 0
        counted: Mask = ~np.isnan(ranks) & (~is_exact | groups.adaptive)
        group = np.where(is_exact, len(groups), groups.of_list)[counted]
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
        for number in np.unique(pairs[0]):
            rows = pairs[1][pairs[0] == number]
            chances = groups.chances(number) if number < len(groups) else groups.known
            parts.append(chances[rows])
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


LEAST = 1e-300
"""No chance is below this: its logarithm and its inverse are numbers."""


def default_iterations(lists: float) -> int:
    """Return after how many steps the climb of `mle` stops: the square root of the lists.

    More lists bear more detail. Measured over kinds of rank distributions, docs/sampled.md.
    """
    return max(1, round(math.sqrt(lists)))


def climb(cells: RankCells, iterations: int) -> F64:
    """Return the shares of the bins after each step of expectation maximisation: steps + 1 rows.

    Each step multiplies the share of a bin by how much more often its ranks would be seen in the
    cells than now expected: the likelihood never falls.
    """
    path = np.empty((iterations + 1, cells.chance.shape[1]))
    path[0] = cells.bins.uniform
    for step in range(iterations):
        expected = np.maximum(cells.chance @ path[step], LEAST)
        path[step + 1] = path[step] * (cells.chance.T @ (cells.share / expected))
    return path


def most_likely(cells: RankCells, values: F64, iterations: int) -> F64:
    """Return metrics x cells: the estimate + influence of a list in the cell.

    Rows of `values` are metrics, columns bins. The mean of the result over lists is the estimate,
    by the shares after the last step; its mean over lists drawn anew is, to first order, the
    estimate from these. The influence is the derivative of the last step's estimate by the share of
    lists in each cell, taken back through all steps.
    """
    path = climb(cells, iterations)
    chance, share = cells.chance, cells.share
    back = values.copy()
    by_share = np.zeros((len(values), share.size))
    for shares in path[-2::-1]:
        expected = np.maximum(chance @ shares, LEAST)
        seen = (back * shares) @ chance.T
        by_share += seen / expected
        back = back * (chance.T @ (share / expected)) - (seen * (share / expected**2)) @ chance
    value = values @ path[-1]
    influence = by_share - (by_share @ share)[:, None]
    return np.asarray(value[:, None] + influence)


def most_likely_values(
    metrics: Sequence[Metric],
    ranks: F64,
    items: I64,
    n: I64,
    groups: SampleGroups,
    iterations: int | None,
) -> F64:
    """Return metrics x lists: what each list of one system adds to the estimate.

    The mean over lists is the estimate. A list without a rank counts 0, a list that holds all items
    the metric of its rank; a metric whose expectation a sample does not change is left as it is.
    """
    cells = RankCells.of(groups, ranks)
    seen = np.where(np.isnan(ranks), 1.0, ranks)
    out = np.array(
        [
            values_in_lists(metric, seen, np.where(groups.of_list < 0, items, n + 1))
            for metric in metrics
        ]
    )
    changed = np.array([not _unchanged(metric) for metric in metrics])
    among = cells.cell >= 0
    if among.any() and changed.any():
        changing = [metric for metric in metrics if not _unchanged(metric)]
        steps = default_iterations(cells.lists) if iterations is None else iterations
        by_cell = most_likely(cells, cells.values(changing), steps)
        out[np.ix_(changed, among)] = by_cell[:, cells.cell[among]]
    out[:, np.isnan(ranks)] = 0.0
    return out


def _unchanged(metric: Metric) -> bool:
    form = metric.definition.at_rank
    return form is not None and form.draws_change_nothing
