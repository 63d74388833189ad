"""`GateValues`: everything that the checks of a gate look at, as values per user."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, Mask
from unskew.data.ratings import Ids
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import SettingError
from unskew.evaluation.evaluate import MEMORY
from unskew.evaluation.scoring import prepare, score
from unskew.judging.judged import Judged
from unskew.judging.shape import BLOCK, DISLIKED, LIKED, Matched, Scratch
from unskew.metrics.names import Metric, parse
from unskew.stats.clusters import variance_of
from unskew.stats.intervals.skewed import with_skewness, without_skewness
from unskew.stats.special import student_t_quantile, student_t_sf

POWER = 0.8
"""The power of the smallest difference that a test is said to detect."""


@dataclass(frozen=True)
class MarginBounds:
    """A mean over users, with a lower and an upper bound, each one-sided at level alpha.

    Both together are an interval of confidence 1 - 2 alpha. Of two bounds, Student's t and Hall's
    (1992), which corrects t for skewness, the more cautious one is taken: a metric is 0 for most
    users, so that differences are skewed and t alone is wrong too often on one side.
    """

    value: float
    se: float
    low: float
    high: float
    skewness: float
    users: int
    alpha: float
    p_below: float
    """The p-value of `the mean is at least 0` against `it is below 0`."""

    @property
    def detectable(self) -> float:
        """The smallest true mean above 0 that the test finds with a power of 80 %."""
        if self.users < 2:
            return math.inf
        degrees = self.users - 1
        quantiles = student_t_quantile(1 - self.alpha, degrees) + student_t_quantile(POWER, degrees)
        return quantiles * self.se


def bounds_of(values: F64, alpha: float) -> MarginBounds:
    """Return the mean of a value per user, with its bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.gating.values import bounds_of
    >>> bounds = bounds_of(np.array([0.0, 1.0] * 50), 0.05)
    >>> round(bounds.low, 3), bounds.value, round(bounds.high, 3)
    (0.417, 0.5, 0.583)
    """
    n = int(values.size)
    if n < 2:
        mean = float(values[0]) if n else math.nan
        return MarginBounds(mean, math.nan, -math.inf, math.inf, 0.0, n, alpha, 1.0)
    mean = math.fsum(values.tolist()) / n if n <= _EXACT else float(values.mean())
    deviation = values - mean
    square = float(np.dot(deviation, deviation))
    scale = float(np.abs(values).max())
    if square <= n * (1e-12 * scale) ** 2:  # the same for every user, but for rounding
        return MarginBounds(mean, 0.0, mean, mean, 0.0, n, alpha, 0.0 if mean < 0 else 1.0)
    variance = square / n
    skewness = float(np.dot(deviation * deviation, deviation)) / n / variance**1.5
    se = math.sqrt(variance_of(deviation / n, n, form="product"))
    t = student_t_quantile(1 - alpha, n - 1)
    of_mean = np.array(skewness / math.sqrt(n))
    upper, lower = with_skewness(np.array([t, -t]), of_mean).tolist()
    low, high = mean - se * max(t, upper), mean - se * min(-t, lower)
    t = mean / se  # the larger p-value of t and of Hall's transformed t
    transformed = float(without_skewness(np.array(t), of_mean))
    p_below = float(student_t_sf(-max(t, transformed), n - 1))
    return MarginBounds(mean, se, low, high, skewness, n, alpha, p_below)


_EXACT = 1 << 12
"""Up to so many values, sums are exactly rounded; above, numpy's pairwise sum."""


@dataclass(frozen=True, eq=False)
class ListSlots:
    """The filled places of the first k of some users' lists."""

    users: int
    owner: I32
    """Of each place: the user, by a number below `users`."""
    item: I32

    def of_users(self, chosen: Mask) -> ListSlots:
        """Return the places of some users, numbered anew."""
        if chosen.all():
            return self
        keep = chosen[self.owner]
        number = np.cumsum(chosen, dtype=np.int32) - 1
        return ListSlots(int(chosen.sum()), number[self.owner[keep]], self.item[keep])


def coverage_values(slots: ListSlots, catalogue: Mask) -> F64:
    """Return the share of the catalogue that is shown to anyone, as a value per user.

    Taking a user out loses the items that nobody else is shown.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.gating.values import ListSlots, coverage_values
    >>> slots = ListSlots(3, np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1]))
    >>> coverage_values(slots, np.ones(4, np.bool_)).tolist()
    [1.0, 0.25, 0.25]
    """
    counts = _shown(slots, catalogue)
    size = max(int(catalogue.sum()), 1)
    alone = ((counts == 1) & catalogue).astype(np.float64)
    added = _by_user(slots, alone) / size
    return _centred(np.count_nonzero(counts) / size, added, slots.users)


def gini_values(slots: ListSlots, catalogue: Mask) -> F64:
    """Return the Gini coefficient of how often items are shown, as a value per user.

    An item that is shown once less falls to the lowest place among those shown as often; of a
    user's items these places are taken as they are before any of them falls.
    """
    counts = _shown(slots, catalogue)[catalogue]
    size, total = max(counts.size, 1), int(counts.sum())
    if not total:
        return np.zeros(slots.users)
    ascending = np.sort(counts)
    weights = 2 * np.arange(1, size + 1, dtype=np.int64) - size - 1
    top = int(np.dot(weights, ascending))
    first = np.bincount(counts).cumsum()  # how many items are shown at most so often
    lowest = np.where(counts > 0, first[np.maximum(counts - 1, 0)], 0)  # places below its group
    weight = np.zeros(catalogue.size)
    weight[catalogue] = 2.0 * (lowest + 1) - size - 1
    lost = _by_user(slots, weight)
    mine = _by_user(slots, catalogue.astype(np.float64))
    remainder = np.maximum(total - mine, 1.0)
    value = top / (size * total)
    return _centred(value, value - (top - lost) / (size * remainder), slots.users)


def popularity_values(slots: ListSlots, popularity: F64) -> F64:
    """Return the mean popularity of each user's items; 0 for an empty list."""
    filled = np.bincount(slots.owner, minlength=slots.users)
    return _by_user(slots, popularity) / np.maximum(filled, 1)


def _shown(slots: ListSlots, catalogue: Mask) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    counts = np.bincount(slots.item, minlength=catalogue.size)
    counts[~catalogue] = 0
    return counts


def _by_user(slots: ListSlots, of_item: F64) -> F64:
    sums: F64 = np.bincount(slots.owner, of_item[slots.item], slots.users).astype(np.float64)
    return sums


def _centred(value: float, added: F64, users: int) -> F64:
    return value + users * (added - added.mean()) if users else added


CUT = 0.95
"""Levelled weights are cut at this quantile of those of liked judgments."""


class Pair(NamedTuple):
    """A value per user of the candidate and of production."""

    candidate: F64
    production: F64


@dataclass(frozen=True, eq=False, kw_only=True)
class GateValues:
    """What checks decide by. The first five are of users with test ratings."""

    metric: Pair
    anti: Pair | None
    """The anti-metric; None where nothing is disliked, or the metric has no anti-twin."""
    liked: Pair
    """Liked items in the first k places."""
    judged: Pair
    """Judged items in the first k places."""
    levelled: Pair
    """Liked items in the first k places, each counting 1 / popularity (mean 1, cut)."""
    coverage: Pair
    """Of users with lists of both, as what follows; see `gate_exposure`."""
    gini: Pair
    popularity: Pair
    k: int
    has_dislikes: bool
    is_lower_better: bool = False
    segments: Mapping[str, tuple[tuple[str, ...], I64]] | None = None
    """By segmentation: the names of segments, and the segment of each user with test ratings."""


@dataclass(frozen=True, eq=False)
class LaidPair:
    """Judged data of the two systems, ready for the metrics, and their lists."""

    judged: Judged
    tested: Mask
    """Which lists have test ratings; a list is a user, unless users have several."""
    in_both: Mask
    """Which lists both systems gave."""
    candidate: Matched
    production: Matched
    k: int
    metric: Metric
    anti: Metric | None
    catalogue: Mask
    """The catalogue: given items, else those of training, and judged ones."""
    popularity: F64
    """Ratings of each item in training, in test where training is not known."""

    @property
    def are_several(self) -> bool:
        """Whether users have lists of several dates or sessions."""
        return self.judged.occasions is not None

    @cached_property
    def people(self) -> Ids:
        """The users who have test ratings."""
        return Ids(self.judged.users.raw(np.unique(self.judged.owner[self.tested])))

    def by_user(self, values: F64) -> F64:
        """Return a value per user with test ratings: the mean of those of the user's lists."""
        tested: F64 = values[self.tested]
        if not self.are_several:
            return tested
        number = np.unique(self.judged.owner[self.tested], return_inverse=True)[1]
        means: F64 = np.bincount(number, tested) / np.bincount(number)
        return means

    def shown(self, slots: ListSlots) -> ListSlots:
        """Return the places of lists that both systems gave, by user."""
        of_lists = slots.of_users(self.in_both)
        if not self.are_several:
            return of_lists
        users, number = np.unique(self.judged.owner[self.in_both], return_inverse=True)
        owner = number.astype(np.int32)[of_lists.owner]
        return ListSlots(users.size, owner, of_lists.item)

    @cached_property
    def slots(self) -> tuple[ListSlots, ListSlots]:
        """The first k places of all lists of the candidate and of production."""
        return slots_of(self.candidate, self.k), slots_of(self.production, self.k)


def lay(judged: Judged, candidate: str, production: str, metric: Metric) -> LaidPair:
    """Lay the two systems over the judgments."""
    systems = {name: judged.systems[name] for name in (candidate, production)}
    pair = replace(judged, systems=systems)
    has_dislikes = bool((judged.view.label == DISLIKED).any())
    has_anti = metric.definition.anti and not metric.anti and metric.better == "higher"
    anti = replace(metric, anti=True) if has_anti and has_dislikes else None
    metrics = {str(entry): entry for entry in (metric, anti) if entry is not None}
    ready = prepare(pair, metrics)
    matched = ready.matched
    first, second = matched[candidate], matched[production]
    tests = judged.judgments if judged.occasions is None else judged.occasions.tests
    source = tests if judged.numbering.train is None else judged.numbering.train
    return LaidPair(
        judged=ready,
        tested=np.diff(judged.judgments.start) > 0,
        in_both=(first.depth > 0) & (second.depth > 0),
        candidate=first,
        production=second,
        k=metric.cutoff or 10,
        metric=metric,
        anti=anti,
        catalogue=judged.numbering.known_items(everything=False),
        popularity=np.bincount(source.item, minlength=len(judged.judgments.items)).astype(float),
    )


def values_of(laid: LaidPair, threads: int | None = None) -> GateValues:
    """Measure both systems."""
    metrics = {str(metric): metric for metric in (laid.metric, laid.anti) if metric is not None}
    systems = {"candidate": laid.candidate, "production": laid.production}
    scores = score(
        laid.judged.basis, systems, metrics, threads=resolve(threads), budget=MEMORY, progress=None
    )
    rows = [
        Pair(*(laid.by_user(np.nan_to_num(scores[name].values[row], nan=0.0)) for name in systems))
        for row in range(len(metrics))
    ]
    hits = [_hits(laid, matched, threads) for matched in systems.values()]
    slots = [laid.shown(slot) for slot in laid.slots]
    return GateValues(
        metric=rows[0],
        anti=rows[1] if laid.anti is not None else None,
        liked=Pair(hits[0][0], hits[1][0]),
        judged=Pair(hits[0][1], hits[1][1]),
        levelled=Pair(hits[0][2], hits[1][2]),
        coverage=Pair(*(coverage_values(slot, laid.catalogue) for slot in slots)),
        gini=Pair(*(gini_values(slot, laid.catalogue) for slot in slots)),
        popularity=Pair(*(popularity_values(slot, laid.popularity) for slot in slots)),
        k=laid.k,
        has_dislikes=bool((laid.judged.view.label == DISLIKED).any()),
        is_lower_better=laid.metric.better == "lower",
    )


def levelled_weights(item: I32, liked: Mask, popularity: F64) -> F64:
    """Return 1 / (1 + popularity) of each judgment's item: mean 1 over liked ones, cut above."""
    weight: F64 = 1.0 / (1.0 + popularity[item])
    if not liked.any():
        return weight
    weight = np.minimum(weight, np.quantile(weight[liked], CUT))
    levelled: F64 = weight / float(weight[liked].mean())
    return levelled


def _hits(laid: LaidPair, matched: Matched, threads: int | None) -> tuple[F64, F64, F64]:
    """Count liked, judged and levelled liked items in the first k places, by user.

    Where users have several lists, these are means over their lists.
    """
    judgments, label = laid.judged.judgments, laid.judged.view.label
    liked = label == LIKED
    weight = levelled_weights(judgments.item, liked, laid.popularity) * liked
    stop = np.minimum(matched.stop, matched.start + laid.k)
    shallow = replace(matched, scan=stop)
    total = len(matched.lists)

    def count(low: int) -> F64:
        high = min(low + BLOCK, total)
        hits = shallow.hits(judgments, low, high, Scratch())
        owner = np.repeat(np.arange(high - low), np.diff(hits.start))
        rows = hits.judgment
        judged = (liked[rows] | (label[rows] == DISLIKED)).astype(np.float64)
        parts = (liked[rows].astype(np.float64), judged, weight[rows])
        return np.stack([np.bincount(owner, part, high - low) for part in parts])

    blocks = map_blocks(count, range(0, total, BLOCK), threads, size=total * laid.k)
    liked_hits, judged_hits, levelled = map(laid.by_user, np.concatenate(blocks, axis=1))
    return liked_hits, judged_hits, levelled


def slots_of(matched: Matched, k: int) -> ListSlots:
    """Return the filled places of the first k of all lists."""
    depth = np.minimum(matched.depth, k)
    owner = np.repeat(np.arange(depth.size, dtype=np.int32), depth)
    slot = np.repeat(matched.start - np.append(0, np.cumsum(depth)[:-1]), depth)
    slot += np.arange(owner.size)
    item = matched.run.item[slot]
    filled = item >= 0
    if not filled.all():
        owner, item = owner[filled], item[filled]
    return ListSlots(int(depth.size), owner, matched.from_run[item])


def metric_of(name: str) -> Metric:
    """Read the metric that decides; refuse one of which neither direction is better."""
    metric = parse(name)
    definition = metric.definition
    if definition.of == "run" or metric.better == "neither":
        raise SettingError(
            f"metric={name!r}: the gate needs a metric with a value per user of which more or less "
            "is better, such as nDCG@10"
        )
    if metric.params.get("mean") == "ratio":
        raise SettingError(
            f"metric={name!r}: its mean is a ratio of sums, not a mean over users: leave out "
            "mean=ratio"
        )
    return metric
