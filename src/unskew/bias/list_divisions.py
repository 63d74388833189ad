"""Null values of groups that are formed by the profiles themselves.

Users with few popular items in their profile have few of them partly by chance; any other sample of
their taste, a list that matches it too, holds more. Groups by taste therefore differ in every shift
from profile to list even where lists and profiles are samples of one taste. The null value of such
a group is what is left when list and profile of each user are put together, divided anew at random,
and users are grouped anew by their new profiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64, Mask, frozen
from unskew.bias.list_measures import PER_USER, UserValues
from unskew.engine.rng import draw
from unskew.judging.shape import BLOCK, Basis, Matched
from unskew.metrics.profiles import CLASSES, item_classes, percentiles, tail_items
from unskew.stats.segments import popular_items, taste_of

DIVISIONS = 10
"""So many random divisions are averaged: all users enter each."""
SHARES = 0.2, 0.2
"""What head and tail of UPD hold."""


@dataclass(frozen=True, eq=False)
class _Weights:
    """What is added up over the items of a list or profile."""

    columns: F64
    """Per item: popularity, percentile, tail, popular, and each class of UPD."""

    @classmethod
    def of(cls, judged: Basis, head: float) -> _Weights:
        counts = judged.popularity
        classes = item_classes(counts, *SHARES)
        several = [counts, percentiles(counts), tail_items(counts, head)]
        several += [popular_items(counts.astype(np.int64))]
        several += [classes == one for one in range(CLASSES)]
        return cls(np.stack([one.astype(np.float64) for one in several], axis=1))


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
    weights = _Weights.of(judged, head)
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
            part = totals.setdefault(group, {one: [] for one in PER_USER})
            for one in PER_USER:
                part[one].append(values.mean(one, taste == group))
    return {
        group: {one: float(np.mean(each)) for one, each in part.items()}
        for group, part in totals.items()
    }


def _divide(
    judged: Basis, matched: Matched, k: int, weights: _Weights, rows: I64, key: tuple[int, str]
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
    shown = np.bincount(row, minlength=rows.size)
    item = np.concatenate(
        [train.item[_spread(first, size)], matched.from_run[listed[listed >= 0]]]
    ).astype(np.int64)
    place = np.concatenate([np.repeat(np.arange(rows.size), size), row])
    random = draw(*key, owner[rows][place], item)
    order = np.lexsort((item, random, place))
    item, place = item[order], place[order]
    start = np.cumsum(size + shown) - (size + shown)
    is_listed = np.arange(item.size) - start[place] < shown[place]
    sums = []
    for part in (is_listed, ~is_listed):
        columns = [
            np.bincount(place[part], column[item[part]], rows.size) for column in weights.columns.T
        ]
        sums.append(np.stack([*columns, np.bincount(place[part], minlength=rows.size)], axis=1))
    return sums[0], sums[1]


def _spread(first: I64, size: I64) -> I64:
    """Return first, first + 1 … for each start and size, one after the other."""
    before = np.cumsum(size) - size
    places: I64 = np.arange(int(size.sum())) + np.repeat(first - before, size)
    return places


def _measured(listed: F64, profile: F64) -> tuple[UserValues, F64]:
    """Return the measures of divided lists, and each new profile's share of popular items."""
    from unskew.metrics import popularity_kernels as kernels

    number = len(listed)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, level = listed / listed[:, -1:], profile / profile[:, -1:]
    classes = slice(4, 4 + CLASSES)
    own = frozen(np.ascontiguousarray(profile[:, classes]))
    counts = frozen(np.ascontiguousarray(listed[None, :, classes].astype(np.int64)))
    deviation = kernels.divergences(own, counts, 0, number)[0]
    lift = mean[:, 0] - level[:, 0]
    values = {
        "PopLift": lift,
        "PopPercentile": np.where(np.isnan(lift), np.nan, mean[:, 1]),
        "PercentileShift": mean[:, 1] - level[:, 1],
        "TailShift": mean[:, 2] - level[:, 2],
        "UPD": deviation,
        "ExcessUPD": deviation - kernels.null_divergences(own, counts, 0, number)[0],
    }
    return UserValues(values, np.where(np.isnan(lift), 0.0, level[:, 0])), level[:, 3]
