"""What lists and profiles of a group of users give: values, null values and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I64, Mask, frozen
from unskew.data.summary import gini
from unskew.engine.rng import draw
from unskew.judging.shape import BLOCK, Basis, Matched
from unskew.metrics.items import CLASSES, item_classes, percentiles, tail_items
from unskew.metrics.popularity import disparity, free_items, parity_counts
from unskew.stats.intervals.ratios import (
    NONE,
    Limits,
    paired_ratio_interval,
    rate_contrast_interval,
)
from unskew.stats.intervals.skewed import differences, intervals, mean_of, of_means
from unskew.stats.segments import popular_items, taste_of
from unskew.stats.special import log_choose

LEAST_USERS = 50
"""Groups with fewer users have no interval: of 20 users it held 92 % in the worst case measured."""
LEAST_HITS = 10
"""Head and tail must each be listed (liked and listed) for so many users: else no interval."""


def user_mean_interval(values: F64, level: float) -> Limits:
    """Return the interval of a mean over users."""
    if values.size < LEAST_USERS:
        return NONE
    if np.ptp(values) == 0:
        return NONE  # no spread: nothing tells how far the mean of other users would be
    low, high = intervals(of_means(mean_of(values)), level)
    return float(low), float(high)


def parity_interval(tops: F64, bottoms: F64, level: float) -> Limits:
    """Return the interval of |a - b| / (a + b), the rates of head and tail.

    By way of its signed form: the values of |x| for all x of its interval hold the truth at least
    as often.
    """
    if len(tops) < LEAST_USERS or np.count_nonzero(tops, axis=0).min() < LEAST_HITS:
        return NONE
    low, high = rate_contrast_interval(tops, bottoms, level)
    is_inside = low <= 0 <= high
    return 0.0 if is_inside else min(abs(low), abs(high)), max(abs(low), abs(high))


def gap_interval(first: F64, second: F64, level: float) -> Limits:
    """Return the interval of a difference of means of different users."""
    if min(first.size, second.size) < LEAST_USERS or np.ptp(first) == np.ptp(second) == 0:
        return NONE
    low, high = intervals(differences(mean_of(first), mean_of(second)), level)
    return float(low), float(high)


PER_USER = ("PopLift", "PopPercentile", "PercentileShift", "TailShift", "UPD", "ExcessUPD")
WHOLE = ("PopRSP", "PopREO", "Gini")
HEAD = 0.8
"""The share of ratings that the head holds: as in Tail, PopREO and PopRSP."""
LEAST_FOR_LEVEL = 200
"""PopPercentile has no interval of fewer users: lists of rare items skew it (50 users: 91 %)."""
POINTS = 101


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
        mask = self.known(measure, users)
        if not mask.any():
            return math.nan
        if measure == "PopLift":
            top, level = self._lift(mask)
            return float(top.sum() / level.sum()) - 1
        return math.fsum(self.values[measure][mask]) / int(mask.sum())

    def interval(self, measure: str, users: Mask, level: float) -> Limits:
        """Return the interval of `mean`."""
        mask = self.known(measure, users)
        if measure == "PopPercentile" and int(mask.sum()) < LEAST_FOR_LEVEL:
            return NONE
        if measure != "PopLift":
            return user_mean_interval(self.values[measure][mask], level)
        if int(mask.sum()) < LEAST_USERS:
            return NONE
        low, high = paired_ratio_interval(*self._lift(mask), level)
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
        mask = self.known(measure, users)
        if measure != "PopLift":
            return self.values[measure][mask]
        top, level = self._lift(mask)
        ratio = top.sum() / level.sum()
        values: F64 = ratio - 1 + (top - ratio * level) / level.mean()
        return values

    def _lift(self, mask: Mask) -> tuple[F64, F64]:
        """Return the mean popularity of list and profile of each user."""
        level = self.level[mask]
        return self.values["PopLift"][mask] + level, level


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

    def interval(self, measure: str, lists: Mask, level: float) -> Limits:
        """Return its interval over users; none of the Gini index."""
        if measure == "Gini" or math.isnan(self.value(measure, lists)):
            return NONE
        return parity_interval(*self.parts(measure, lists), level)

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
        from unskew.metrics.kernels import lists as kernels

        assert self.basis.catalogue is not None
        matched, rows = self.matched, lists & self.listed
        count = max(len(matched.run.items), 1)
        exposed = kernels.exposure(
            matched.start[rows], matched.stop[rows], matched.run.item, count, self.k
        )
        counts = np.zeros(len(self.basis.judgments.items), np.int64)
        counts[matched.from_run] = exposed[: len(matched.run.items)]
        return counts[self.basis.catalogue]


def equal_recall(hits: int, head: int, tail: int) -> float:
    """Return the expected PopREO if hits fell on the liked items of head and tail at random.

    Exact: the number of hits in the head is hypergeometric. Above 0, because few hits are never
    shared out evenly.

    Examples
    --------
    >>> from unskew.bias.popularity.list_measures import equal_recall
    >>> round(equal_recall(1, 5, 5), 9)
    1.0
    >>> round(equal_recall(2, 5, 5), 4)  # both in one part with 4/9
    0.4444
    """
    if not hits or not head or not tail:
        return math.nan
    low, high = max(0, hits - tail), min(head, hits)
    total = log_choose(head + tail, hits)
    terms = []
    for inside in range(low, high + 1):
        chance = math.exp(log_choose(head, inside) + log_choose(tail, hits - inside) - total)
        a, b = inside / head, (hits - inside) / tail
        terms.append(chance * abs(a - b) / (a + b))
    return math.fsum(terms)


def lorenz_points(exposure: I64) -> list[tuple[float, float]]:
    """Return the Lorenz curve: share of items, least shown first, and their share of exposure."""
    order = np.append(0, np.cumsum(np.sort(exposure)))
    ranks = np.unique(
        np.linspace(0, exposure.size, min(POINTS, exposure.size + 1)).astype(np.int64)
    )
    total = max(int(order[-1]), 1)
    return [(float(rank / exposure.size), float(order[rank] / total)) for rank in ranks.tolist()]


DIVISIONS = 10
"""So many random divisions are averaged: all users enter each."""
SHARES = 0.2, 0.2
"""What head and tail of UPD hold."""


def _item_weights(judged: Basis, head: float) -> F64:
    """Return per item: popularity, percentile, tail, popular, and each class of UPD."""
    counts = judged.popularity
    classes = item_classes(counts, *SHARES)
    columns = [counts, percentiles(counts), tail_items(counts, head)]
    columns += [popular_items(counts.astype(np.int64))]
    columns += [classes == number for number in range(CLASSES)]
    return np.stack([column.astype(np.float64) for column in columns], axis=1)


def taste_nulls(
    judged: Basis, matched: Matched, k: int, head: float, users: Mask, seed: int
) -> dict[int, dict[str, float]]:
    """Return the null value of each per-user measure, by number of the taste.

    Parameters
    ----------
    judged, matched
        The training ratings, and the lists of a system.
    k
        Lists are cut here.
    head
        The share of ratings that the head of TailShift holds.
    users
        Lists of users that are grouped.
    seed
        Of the divisions.
    """
    weights = _item_weights(judged, head)
    rows = np.flatnonzero(users)
    totals: dict[int, dict[str, list[float]]] = {}
    for number in range(DIVISIONS):
        stage = f"division of list and profile {number}"
        blocks = [
            _divide(judged, matched, k, weights, rows[low : low + BLOCK], (seed, stage))
            for low in range(0, rows.size, BLOCK)
        ]
        listed, profile = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        values, share = _measured(listed, profile)
        taste = taste_of(share)
        for group in range(3):
            part = totals.setdefault(group, {measure: [] for measure in PER_USER})
            for measure in PER_USER:
                part[measure].append(values.mean(measure, taste == group))
    return {
        group: {measure: float(np.mean(means)) for measure, means in part.items()}
        for group, part in totals.items()
    }


def _divide(
    judged: Basis, matched: Matched, k: int, weights: F64, rows: I64, key: tuple[int, str]
) -> tuple[F64, F64]:
    """Return the sums over list and profile of each user after a random division.

    The last column counts items. The sizes of both parts stay.
    """
    train, owner = judged.train, judged.owner
    assert train is not None
    assert owner is not None
    first = train.start[owner[rows]]
    size = train.start[owner[rows] + 1] - first
    slots = np.minimum(matched.stop[rows] - matched.start[rows], k)
    listed = matched.run.item[_spread(matched.start[rows], slots)]
    row = np.repeat(np.arange(rows.size), slots)[listed >= 0]  # others are empty slots
    number = np.bincount(row, minlength=rows.size)
    item = np.concatenate(
        [train.item[_spread(first, size)], matched.from_run[listed[listed >= 0]]]
    ).astype(np.int64)
    position = np.concatenate([np.repeat(np.arange(rows.size), size), row])
    random = draw(*key, owner[rows][position], item)
    order = np.lexsort((item, random, position))
    item, position = item[order], position[order]
    start = np.cumsum(size + number) - (size + number)
    is_listed = np.arange(item.size) - start[position] < number[position]
    sums = []
    for part in (is_listed, ~is_listed):
        columns = [
            np.bincount(position[part], column[item[part]], rows.size) for column in weights.T
        ]
        sums.append(np.stack([*columns, np.bincount(position[part], minlength=rows.size)], axis=1))
    return sums[0], sums[1]


def _spread(first: I64, size: I64) -> I64:
    """Return first, first + 1 … for each start and size, one after the other."""
    before = np.cumsum(size) - size
    places: I64 = np.arange(int(size.sum())) + np.repeat(first - before, size)
    return places


def _measured(listed: F64, profile: F64) -> tuple[UserValues, F64]:
    """Return the measures of divided lists, and each new profile's share of popular items."""
    from unskew.metrics.kernels import popularity as kernels

    number = len(listed)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, level = listed / listed[:, -1:], profile / profile[:, -1:]
    classes = slice(4, 4 + CLASSES)
    shares = frozen(np.ascontiguousarray(profile[:, classes]))
    counts = frozen(np.ascontiguousarray(listed[None, :, classes].astype(np.int64)))
    deviation = kernels.divergences(shares, counts, 0, number)[0]
    lift = mean[:, 0] - level[:, 0]
    values = {
        "PopLift": lift,
        "PopPercentile": np.where(np.isnan(lift), np.nan, mean[:, 1]),
        "PercentileShift": mean[:, 1] - level[:, 1],
        "TailShift": mean[:, 2] - level[:, 2],
        "UPD": deviation,
        "ExcessUPD": deviation - kernels.null_divergences(shares, counts, 0, number)[0],
    }
    return UserValues(values, np.where(np.isnan(lift), 0.0, level[:, 0])), level[:, 3]
