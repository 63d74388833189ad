"""`GateValues`: everything that the checks of a gate look at, as values per user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, Mask
from unskew.data.ratings import Ids, Ratings
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import SettingError
from unskew.evaluation.evaluate import MEMORY
from unskew.evaluation.one_relevant import value_at
from unskew.evaluation.scoring import prepare, score
from unskew.gating.bounds import by_group
from unskew.judging.judged import Judged
from unskew.judging.shape import BLOCK, DISLIKED, LIKED, POOLED, Matched, Scratch, View
from unskew.metrics.names import Metric, parse
from unskew.stats.segments import QUANTITIES


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
MANY_ITEMS = 10_000
"""Ranked where a metric asks how many there are."""
PRIOR = 2.0
"""Ratings at the mean of all that are added to those of an item for its average."""
ENOUGH = 5
"""Ratings that half of the items of a test log need for it to show which items nobody rated."""


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
    liked_by_rank: Pair
    """Liked items in the first k places, each with the weight of its rank; see `rank_weights`."""
    judged_by_rank: Pair
    coverage: Pair
    """Of users with lists of both (of groups of them, where groups are given), as what follows."""
    gini: Pair
    popularity: Pair
    k: int
    has_dislikes: bool
    usual: F64
    """The share that each user liked of all that they rated."""
    filled: Pair | None = None
    """The liked share of the first k places, if each place that the user did not rate were liked
    as often as its item is on average; None where nothing is disliked."""
    unrated: tuple[float, float] | None = None
    """The shares of recommendations that nobody has rated; None: too few ratings to tell."""
    light: Mask | None = None
    """The light users: those with at most the median number of ratings."""
    groups: I64 | None = None
    """The group of each user, of whom those of one group are not independent."""
    is_lower_better: bool = False
    segments: Mapping[str, tuple[tuple[str, ...], I64]] | None = None
    """By segmentation: the names of segments, and the segment of each user with test ratings."""

    def count(self, users: Mask) -> int:
        """Count the independent ones of some users: their groups, where groups are given."""
        independent = users if self.groups is None else np.bincount(self.groups[users])
        return int(np.count_nonzero(independent))


class RatedPart(NamedTuple):
    """Ratings at hand: the user, the item, and whether it is liked."""

    user: I32
    item: I32
    liked: Mask

    @classmethod
    def of(cls, ratings: Ratings, judged: Judged) -> RatedPart:
        """Take what people rated: pairs that were only pooled are left out."""
        label = View.of(ratings, judged.relevance).label
        is_rated = label != POOLED
        return cls(ratings.user[is_rated], ratings.item[is_rated], label[is_rated] == LIKED)


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
    groups: I64 | None = None
    """The group of each user of `judged.users`; None: every user stands alone."""

    @property
    def tests(self) -> Ratings:
        """The test ratings, each once."""
        occasions = self.judged.occasions
        return self.judged.judgments if occasions is None else occasions.tests

    @property
    def are_several(self) -> bool:
        """Whether users have lists of several dates or sessions."""
        return self.judged.occasions is not None

    @cached_property
    def person(self) -> I32:
        """The users who have test ratings, by number."""
        return np.unique(self.judged.owner[self.tested])

    @cached_property
    def people(self) -> Ids:
        """The users who have test ratings."""
        return Ids(self.judged.users.raw(self.person))

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

    def shown_by_group(self, slots: ListSlots) -> ListSlots:
        """Return the places of `shown`, by group of users."""
        if self.groups is None:
            return slots
        groups, number = np.unique(self.groups[self.shown_users], return_inverse=True)
        return ListSlots(groups.size, number.astype(np.int32)[slots.owner], slots.item)

    @cached_property
    def shown_users(self) -> I32:
        """The users of `shown`, by number."""
        return np.unique(self.judged.owner[self.in_both])

    @cached_property
    def slots(self) -> tuple[ListSlots, ListSlots]:
        """The first k places of all lists of the candidate and of production."""
        return slots_of(self.candidate, self.k), slots_of(self.production, self.k)

    @cached_property
    def rated(self) -> tuple[RatedPart, ...]:
        """The ratings at hand: of test and, where they tell likes from dislikes, of training."""
        tests, train = self.tests, self.judged.numbering.train
        parts = [RatedPart.of(tests, self.judged)]
        if train is not None:
            part = RatedPart.of(train, self.judged)
            parts += [part] if part.liked.any() and not part.liked.all() else []
        return tuple(parts)

    @cached_property
    def item_ratings(self) -> F64:
        """How often each item was rated, in test and training."""
        items, train = len(self.judged.judgments.items), self.judged.numbering.train
        counts = np.bincount(RatedPart.of(self.tests, self.judged).item, minlength=items)
        if train is not None:
            counts = counts + np.bincount(train.item, minlength=items)
        return counts.astype(np.float64)


def lay(
    judged: Judged,
    candidate: str,
    production: str,
    metric: Metric,
    groups: I64 | None = None,
) -> LaidPair:
    """Lay the two systems over the judgments; `groups` are those of all users of `judged`."""
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
        groups=groups,
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
    has_dislikes = bool((laid.judged.view.label == DISLIKED).any())
    averages = item_averages(laid) if has_dislikes else np.zeros(laid.popularity.size)
    columns = [_hits(laid, matched, averages, threads) for matched in systems.values()]
    hits: dict[str, Any] = {
        name: Pair(*(column[name] for column in columns)) for name in columns[0]
    }
    beyond = hits.pop("beyond")
    filled = [_filled(laid, slots, averages) for slots in laid.slots]
    coverage, gini, popularity = _exposure(laid)
    activity = QUANTITIES["activity"](laid.people, laid.judged, ()).values
    return GateValues(
        metric=rows[0],
        anti=rows[1] if laid.anti is not None else None,
        **hits,
        coverage=coverage,
        gini=gini,
        popularity=popularity,
        k=laid.k,
        has_dislikes=has_dislikes,
        usual=usual_shares(laid),
        filled=Pair(*map(np.add, filled, beyond)) if has_dislikes else None,
        unrated=unrated_shares(laid),
        light=light_users(activity),
        groups=None if laid.groups is None else laid.groups[laid.person],
        is_lower_better=laid.metric.better == "lower",
    )


def _exposure(laid: LaidPair) -> tuple[Pair, Pair, Pair]:
    """Measure coverage, Gini and popularity of what is shown: by user, or by group of users."""
    slots = [laid.shown(places) for places in laid.slots]
    grouped = [laid.shown_by_group(places) for places in slots]
    groups = None if laid.groups is None else laid.groups[laid.shown_users]
    popularity = (popularity_values(places, laid.popularity) for places in slots)
    return (
        Pair(*(coverage_values(places, laid.catalogue) for places in grouped)),
        Pair(*(gini_values(places, laid.catalogue) for places in grouped)),
        Pair(*(by_group(values, groups) for values in popularity)),
    )


def light_users(activity: F64) -> Mask:
    """Return who has at most the median number of ratings.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.gating.values import light_users
    >>> light_users(np.array([1.0, 2.0, 9.0, 30.0])).tolist()
    [True, True, False, False]
    """
    light: Mask = activity <= np.median(activity) if activity.size else np.zeros(0, np.bool_)
    return light


def usual_shares(laid: LaidPair) -> F64:
    """Return the share that each user with test ratings liked of all that they rated."""
    users = len(laid.judged.users)
    total, liked = np.zeros(users), np.zeros(users)
    for part in laid.rated:
        total += np.bincount(part.user, minlength=users)
        liked += np.bincount(part.user, part.liked, users)
    shares: F64 = (liked / np.maximum(total, 1.0))[laid.person]
    return shares


def item_averages(laid: LaidPair) -> F64:
    """Return how often each item is liked where it is rated, drawn to the mean of all ratings.

    The mean counts as `PRIOR` ratings of the item: an item with few ratings is near the mean.
    """
    items = len(laid.judged.judgments.items)
    total, liked = np.zeros(items), np.zeros(items)
    for part in laid.rated:
        total += np.bincount(part.item, minlength=items)
        liked += np.bincount(part.item, part.liked, items)
    return smoothed_averages(liked, total)


def smoothed_averages(liked: F64, total: F64) -> F64:
    """Return liked / total of each item, with `PRIOR` further ratings at the mean of all."""
    mean = float(liked.sum()) / max(float(total.sum()), 1.0)
    averages: F64 = (liked + PRIOR * mean) / (total + PRIOR)
    return averages


def unrated_shares(laid: LaidPair) -> tuple[float, float] | None:
    """Return which share of both systems' recommendations are items that nobody has rated.

    A test log alone may miss items by chance: without training ratings it decides only where half
    of its items have at least `ENOUGH` ratings, so that an ordinary item is hardly ever missed.
    """
    counts = laid.item_ratings
    if laid.judged.numbering.train is None and not can_tell_unrated(counts):
        return None
    candidate, production = (
        float(np.count_nonzero(counts[slots.item] == 0)) / max(slots.item.size, 1)
        for slots in laid.slots
    )
    return candidate, production


def can_tell_unrated(counts: F64) -> bool:
    """Tell whether half of the rated items have at least `ENOUGH` ratings."""
    return bool((counts > 0).any() and np.median(counts[counts > 0]) >= ENOUGH)


def _filled(laid: LaidPair, slots: ListSlots, averages: F64) -> F64:
    """Return the mean average of the items of each user's places; 0 for an empty list."""
    return laid.by_user(popularity_values(slots, averages))


def levelled_weights(item: I32, liked: Mask, popularity: F64) -> F64:
    """Return 1 / (1 + popularity) of each judgment's item: mean 1 over liked ones, cut above."""
    weight: F64 = 1.0 / (1.0 + popularity[item])
    if not liked.any():
        return weight
    weight = np.minimum(weight, np.quantile(weight[liked], CUT))
    levelled: F64 = weight / float(weight[liked].mean())
    return levelled


def rank_weights(metric: Metric, k: int) -> F64:
    """Return the weight of each of the first k ranks in check 2.

    Metrics that give a liked item the same value at each of them weigh all alike. For all others,
    what stands further up weighs more, as in nDCG: rated items at the top add to the score without
    being liked more.

    Examples
    --------
    >>> from unskew.gating.values import metric_of, rank_weights
    >>> rank_weights(metric_of("P@3"), 3).tolist()
    [1.0, 1.0, 1.0]
    >>> rank_weights(metric_of("nDCG@3"), 3).tolist()
    [1.0, 0.6309297535714575, 0.5]
    """
    if metric.definition.at_rank is not None:
        at_rank = value_at(metric, np.arange(1, k + 1), MANY_ITEMS)
        if (at_rank == at_rank[0]).all():
            return np.ones(k)
    return 1 / np.log2(np.arange(2, k + 2))


def _hits(laid: LaidPair, matched: Matched, averages: F64, threads: int | None) -> dict[str, F64]:
    """Count liked, judged and levelled liked items in the first k places, by user.

    `beyond` is what judged items add to the liked share of a list beyond their items' averages.
    Where users have several lists, these are means over their lists.
    """
    judgments, label = laid.judged.judgments, laid.judged.view.label
    is_liked = label == LIKED
    weight = levelled_weights(judgments.item, is_liked, laid.popularity) * is_liked
    of_rank = rank_weights(laid.metric, laid.k)
    stop = np.minimum(matched.stop, matched.start + laid.k)
    shallow = replace(matched, scan=stop)
    total = len(matched.lists)

    def count(low: int) -> F64:
        high = min(low + BLOCK, total)
        hits = shallow.hits(judgments, low, high, Scratch())
        owner = np.repeat(np.arange(high - low), np.diff(hits.start))
        rows, top = hits.judgment, of_rank[hits.rank - 1]
        liked = is_liked[rows].astype(np.float64)
        judged = (is_liked[rows] | (label[rows] == DISLIKED)).astype(np.float64)
        depth = np.maximum(np.minimum(hits.depth, laid.k), 1)[owner]
        beyond = judged * (liked - averages[judgments.item[rows]]) / depth
        parts = (liked, judged, weight[rows], liked * top, judged * top, beyond)
        return np.stack([np.bincount(owner, part, high - low) for part in parts])

    blocks = map_blocks(count, range(0, total, BLOCK), threads, size=total * laid.k)
    columns = map(laid.by_user, np.concatenate(blocks, axis=1))
    names = ("liked", "judged", "levelled", "liked_by_rank", "judged_by_rank", "beyond")
    return dict(zip(names, columns, strict=True))


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
