"""`GateValues`: everything that the checks of a gate look at, as values per user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, Mask
from unskew.auditing.gate_exposure import (
    Slots,
    coverage_values,
    gini_values,
    popularity_values,
)
from unskew.data.ratings import Ids
from unskew.engine.threads import map_blocks, resolve
from unskew.evaluation.evaluate import MEMORY
from unskew.evaluation.scoring import prepare, score
from unskew.judging.judged import Judged
from unskew.judging.shape import BLOCK, DISLIKED, LIKED, Matched, Scratch
from unskew.metrics.names import Metric, parse

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
class Laid:
    """Judged data of the two systems, ready for the metrics, and their lists."""

    judged: Judged
    tested: Mask
    """Which lists have test ratings; a list is a user, unless users have several."""
    both: Mask
    """Which lists both systems gave."""
    candidate: Matched
    production: Matched
    k: int
    metric: Metric
    anti: Metric | None
    known: Mask
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

    def shown(self, slots: Slots) -> Slots:
        """Return the places of lists that both systems gave, by user."""
        of_lists = slots.of_users(self.both)
        if not self.are_several:
            return of_lists
        users, number = np.unique(self.judged.owner[self.both], return_inverse=True)
        owner = number.astype(np.int32)[of_lists.owner]
        return Slots(users.size, owner, of_lists.item)

    @cached_property
    def slots(self) -> tuple[Slots, Slots]:
        """The first k places of all lists of the candidate and of production."""
        return slots_of(self.candidate, self.k), slots_of(self.production, self.k)


def lay(judged: Judged, candidate: str, production: str, metric: Metric) -> Laid:
    """Lay the two systems over the judgments."""
    systems = {name: judged.systems[name] for name in (candidate, production)}
    pair = replace(judged, systems=systems)
    has_dislikes = bool((judged.view.label == DISLIKED).any())
    anti = replace(metric, anti=True) if _has_anti(metric) and has_dislikes else None
    wanted = {str(one): one for one in (metric, anti) if one is not None}
    ready = prepare(pair, wanted)
    matched = ready.matched
    first, second = matched[candidate], matched[production]
    tests = judged.judgments if judged.occasions is None else judged.occasions.tests
    source = tests if judged.numbering.train is None else judged.numbering.train
    return Laid(
        judged=ready,
        tested=np.diff(judged.judgments.start) > 0,
        both=(first.depth > 0) & (second.depth > 0),
        candidate=first,
        production=second,
        k=metric.cutoff or 10,
        metric=metric,
        anti=anti,
        known=judged.numbering.known_items(everything=False),
        popularity=np.bincount(source.item, minlength=len(judged.judgments.items)).astype(float),
    )


def _has_anti(metric: Metric) -> bool:
    return metric.definition.anti and not metric.anti and metric.better == "higher"


def values_of(laid: Laid, threads: int | None = None) -> GateValues:
    """Measure both systems."""
    wanted = {str(one): one for one in (laid.metric, laid.anti) if one is not None}
    systems = {"candidate": laid.candidate, "production": laid.production}
    scores = score(
        laid.judged.basis, systems, wanted, threads=resolve(threads), budget=MEMORY, progress=None
    )
    rows = [
        Pair(*(laid.by_user(np.nan_to_num(scores[name].values[row], nan=0.0)) for name in systems))
        for row in range(len(wanted))
    ]
    hits = [_hits(laid, matched, threads) for matched in systems.values()]
    slots = [laid.shown(one) for one in laid.slots]
    return GateValues(
        metric=rows[0],
        anti=rows[1] if laid.anti is not None else None,
        liked=Pair(hits[0][0], hits[1][0]),
        judged=Pair(hits[0][1], hits[1][1]),
        levelled=Pair(hits[0][2], hits[1][2]),
        coverage=Pair(*(coverage_values(one, laid.known) for one in slots)),
        gini=Pair(*(gini_values(one, laid.known) for one in slots)),
        popularity=Pair(*(popularity_values(one, laid.popularity) for one in slots)),
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


def _hits(laid: Laid, matched: Matched, threads: int | None) -> tuple[F64, F64, F64]:
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
        at = hits.judgment
        judged = (liked[at] | (label[at] == DISLIKED)).astype(np.float64)
        parts = (liked[at].astype(np.float64), judged, weight[at])
        return np.stack([np.bincount(owner, part, high - low) for part in parts])

    blocks = map_blocks(count, range(0, total, BLOCK), threads, size=total * laid.k)
    liked_hits, judged_hits, levelled = map(laid.by_user, np.concatenate(blocks, axis=1))
    return liked_hits, judged_hits, levelled


def slots_of(matched: Matched, k: int) -> Slots:
    """Return the filled places of the first k of all lists."""
    depth = np.minimum(matched.depth, k)
    owner = np.repeat(np.arange(depth.size, dtype=np.int32), depth)
    place = np.repeat(matched.start - np.append(0, np.cumsum(depth)[:-1]), depth)
    place += np.arange(owner.size)
    item = matched.run.item[place]
    filled = item >= 0
    if not filled.all():
        owner, item = owner[filled], item[filled]
    return Slots(int(depth.size), owner, matched.from_run[item])


def metric_of(name: str) -> Metric:
    """Read the metric that decides; refuse one of which neither direction is better."""
    from unskew.errors import SettingError

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
