"""What lists and profiles of a group of users give: values, null values and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.bias import list_intervals
from unskew.bias.list_intervals import NONE, Ends
from unskew.data.distribution import gini
from unskew.judging.shape import Basis, Matched
from unskew.metrics.popularity import disparity, free_items, parity_counts

PER_USER = ("PopLift", "PopPercentile", "PercentileShift", "TailShift", "UPD", "ExcessUPD")
WHOLE = ("PopRSP", "PopREO", "Gini")
HEAD = 0.8
"""The share of ratings that the head holds: as in Tail, PopREO and PopRSP."""
LEAST_FOR_LEVEL = 200
"""PopPercentile has no interval of fewer users: lists of rare items skew it (50 users: 91 %)."""
POINTS = 101


@dataclass(frozen=True)
class Row:
    """One measure of a group of users."""

    measure: str
    users: int
    value: float
    ends: Ends = NONE
    chance: float = math.nan
    null: float = math.nan


@dataclass(frozen=True, eq=False)
class UserValues:
    """The per-user measures of one system, an entry per user; NaN where one is not defined."""

    values: dict[str, F64]
    level: F64
    """Mean popularity of the profile, which divides PopLift."""

    def known(self, measure: str, users: Mask) -> Mask:
        """Tell which of these users have a value of a measure."""
        return users & ~np.isnan(self.values[measure])

    def mean(self, measure: str, users: Mask) -> float:
        """Return the measure of a group of users; NaN without any."""
        known = self.known(measure, users)
        if not known.any():
            return math.nan
        if measure == "PopLift":
            top, level = self._lift(known)
            return float(top.sum() / level.sum()) - 1
        return math.fsum(self.values[measure][known]) / int(known.sum())

    def ends(self, measure: str, users: Mask, level: float) -> Ends:
        """Return both ends of the interval of `mean`."""
        known = self.known(measure, users)
        if measure == "PopPercentile" and int(known.sum()) < LEAST_FOR_LEVEL:
            return NONE
        if measure != "PopLift":
            return list_intervals.mean_ends(self.values[measure][known], level)
        low, high = list_intervals.ratio_ends(*self._lift(known), level)
        return low - 1, high - 1

    def null(self, measure: str, users: Mask) -> float:
        """Return what lists would show that are samples of the profiles of these users."""
        if measure == "UPD":
            users = self.known("ExcessUPD", users)
            return self.mean("UPD", users) - self.mean("ExcessUPD", users)
        if measure == "PopPercentile":
            users = self.known("PercentileShift", users)
            return self.mean(measure, users) - self.mean("PercentileShift", users)
        return 0.0 if self.known(measure, users).any() else math.nan

    def linear(self, measure: str, users: Mask) -> F64:
        """Return per-user values whose mean is the measure, and whose spread is its error's."""
        known = self.known(measure, users)
        if measure != "PopLift":
            return self.values[measure][known]
        top, level = self._lift(known)
        ratio = top.sum() / level.sum()
        values: F64 = ratio - 1 + (top - ratio * level) / level.mean()
        return values

    def _lift(self, known: Mask) -> tuple[F64, F64]:
        """Return the mean popularity of list and profile of each user."""
        level = self.level[known]
        return self.values["PopLift"][known] + level, level


@dataclass(frozen=True, eq=False)
class RunCounts:
    """What the measures of a whole run need of each list of one system."""

    basis: Basis
    matched: Matched
    k: int

    @cached_property
    def listed(self) -> Mask:
        """Lists with an item."""
        return self.matched.depth > 0

    @cached_property
    def counts(self) -> F64:
        """Items listed, liked items listed, liked items: in head and tail."""
        return parity_counts(self.basis, self.matched, HEAD, self.k).astype(np.float64)

    @cached_property
    def free(self) -> F64:
        """Items that could be listed, in head and tail."""
        return free_items(self.basis, HEAD)

    def parts(self, measure: str, lists: Mask) -> tuple[F64, F64]:
        """Return top and bottom of the rates of head and tail, list by list."""
        rows = lists & self.listed
        if measure == "PopRSP":
            return self.counts[rows, 0:2], self.free[rows]
        return self.counts[rows, 2:4], self.counts[rows, 4:6]

    def value(self, measure: str, lists: Mask) -> float:
        """Return a measure over some lists."""
        if measure == "Gini":
            exposure = self.exposure(lists)
            return gini(exposure) if exposure.any() else math.nan
        top, bottom = self.parts(measure, lists)
        return disparity(top.sum(axis=0), bottom.sum(axis=0))

    def ends(self, measure: str, lists: Mask, level: float) -> Ends:
        """Return both ends of its interval over users; none of the Gini index."""
        if measure == "Gini" or math.isnan(self.value(measure, lists)):
            return NONE
        return list_intervals.parity_ends(*self.parts(measure, lists), level)

    def null(self, measure: str, lists: Mask, tail: F64) -> float:
        """Return what a system would show that serves every user by the profile.

        Parameters
        ----------
        measure
            PopRSP: lists whose expected share of tail items is that of the profile. PopREO: as
            many liked items listed, drawn from all liked items. Gini has none.
        lists
            Which lists.
        tail
            The share of tail items in each list's user's profile.
        """
        if measure == "Gini":
            return math.nan
        if measure == "PopREO":
            top, bottom = self.parts(measure, lists)
            return equal_recall(int(top.sum()), *bottom.sum(axis=0).astype(np.int64).tolist())
        rows = lists & self.listed & ~np.isnan(tail)
        top, bottom = self.parts(measure, rows)
        slots, share = top.sum(axis=1), tail[rows]
        return disparity(
            np.array([(slots * (1 - share)).sum(), (slots * share).sum()]), bottom.sum(axis=0)
        )

    def exposure(self, lists: Mask) -> I64:
        """Return in how many of some lists each item of the catalogue stands."""
        from unskew.metrics import kernels

        assert self.basis.catalogue is not None
        matched, rows = self.matched, lists & self.listed
        count = max(len(matched.run.items), 1)
        shown = kernels.exposure(
            matched.start[rows], matched.stop[rows], matched.run.item, count, self.k
        )
        counts = np.zeros(len(self.basis.judgments.items), np.int64)
        counts[matched.from_run] = shown[: len(matched.run.items)]
        return counts[self.basis.catalogue]


def equal_recall(hits: int, head: int, tail: int) -> float:
    """Return the expected PopREO if hits fell on the liked items of head and tail at random.

    Exact: the number of hits in the head is hypergeometric. Above 0, because few hits are never
    shared out evenly.

    Examples
    --------
    >>> from unskew.bias.list_measures import equal_recall
    >>> round(equal_recall(1, 5, 5), 9)
    1.0
    >>> round(equal_recall(2, 5, 5), 4)  # both in one part with 4/9
    0.4444
    """
    if not hits or not head or not tail:
        return math.nan
    low, high = max(0, hits - tail), min(head, hits)

    def log_ways(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    total = log_ways(head + tail, hits)
    terms = []
    for inside in range(low, high + 1):
        chance = math.exp(log_ways(head, inside) + log_ways(tail, hits - inside) - total)
        a, b = inside / head, (hits - inside) / tail
        terms.append(chance * abs(a - b) / (a + b))
    return math.fsum(terms)


def lorenz_points(exposure: I64) -> list[tuple[float, float]]:
    """Return the Lorenz curve: share of items, least shown first, and their share of exposure."""
    order = np.append(0, np.cumsum(np.sort(exposure)))
    at = np.unique(np.linspace(0, exposure.size, min(POINTS, exposure.size + 1)).astype(np.int64))
    total = max(int(order[-1]), 1)
    return [(float(one / exposure.size), float(order[one] / total)) for one in at.tolist()]
