"""`judgments_needed`: how many judgments of randomly chosen slots would tell two systems apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from statistics import NormalDist
from typing import NamedTuple, Unpack

import numpy as np

from unskew.arrays import F64, I64
from unskew.checks import as_count, as_number, check_share, checked, is_number
from unskew.data.ratings import Ids
from unskew.data.read.ratings_files import read_items, read_ratings
from unskew.errors import SettingError
from unskew.judging.judge import RawOptions, second_argument
from unskew.judging.judged import Judged
from unskew.report.columns import NOTE, PAIR, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates
from unskew.runs import read_run
from unskew.stats.agreement.power import check_power
from unskew.stats.resampling import check_two_systems
from unskew.unbiased.judgment_weights import (
    Estimand,
    estimands,
    judge_for_estimates,
    metrics_of,
    weigh,
)
from unskew.unbiased.listed_pairs import ListedPairs
from unskew.unbiased.weighted_averages import (
    LEVEL,
    RESAMPLES,
    UNUSABLE,
    WeightedAverages,
    weighted_value,
)

_DIFFERENCE = Column("difference", "fact", form="+")
_NUMBER = Column("value", "count", "needed")
NEEDED = Question(
    name="random judgments needed",
    columns=(*PAIR, _DIFFERENCE, Column("slots", "count"), _NUMBER, NOTE),
    method=Method(
        estimand="how many of the slots in which two lists differ, drawn at random and judged, "
        "find the difference",
        unit="slots",
    ),
    figures=(Drawing("judgments", "bars"),),
)
"""A row per pair; its `slots` are the places in which the two lists differ."""
JUDGMENTS = Question(
    name="judgments of recommendations chosen at random, half from each system's side",
    columns=(
        *(*PAIR, _DIFFERENCE, Column("places", "count", "places a")),
        *(Column("places_against", "count", "places b"), _NUMBER, NOTE),
    ),
    method=Method(
        estimand="how many judgments find a difference of true precision", unit="recommendations"
    ),
    figures=(Drawing("judgments", "bars"),),
)
"""One row: a's `places` are those whose item b does not list for the same user."""
RANDOM_PAIRS = replace(JUDGMENTS, name="pairs of a user and an item shown at random")


@checked
def judgments_needed(
    judgments: object,
    runs: object = None,
    metric: str = "P@10",
    *,
    difference: float | None = None,
    liked_share: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    propensity: object = None,
    weights: object = None,
    random: object = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    **data: Unpack[RawOptions],
) -> Estimates:
    r"""Say how many slots, drawn at random and judged, would tell systems apart.

    The difference of two systems is a sum over the slots in which their lists differ, each adding
    ±discount when its item is liked. Of M such slots, m drawn at random give it with variance
    :math:`M^2 s^2 (1/m - 1/M)`, :math:`s^2` being the variance of what a slot adds when
    `liked_share` of the slots are liked.

    Parameters
    ----------
    judgments, runs, seed, data
        Judged data (`judge`) alone, with the metric as the second argument; or raw data and their
        options as `judge` takes them. Judgments say how large differences may be; the slots counted
        are those of the lists, judged or not.
    metric
        P, RBP, or DCG (with gain 1 for what is liked), with a cutoff.
    difference
        What is to be found: above 0, and at most what the metric allows. Default: the weighted
        estimate of each pair; a pair with an estimate that is not usable gets no number, but the
        reason.
    liked_share
        How many of the slots are liked. Default: the mean weighted precision of both systems.
    power, alpha
        How surely it should be found, and the level of the two-sided test; power is above alpha.
    propensity, weights, random
        As for `estimate`.
    resamples, level
        Of the intervals by which estimates are called usable or not, as for `estimate`.
    threads
        Never changes a result.

    Returns
    -------
    Estimates
        A row per pair: the difference, the slots in which the two lists differ, how many of these
        are needed (`value`), and in `note` why no number would do. `liked_share` of the card is
        the mean over pairs.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 2], "item": ["a", "c"], "rating": [5, 1]}
    >>> runs = {"x": {u: ["a", "b"] for u in (1, 2)}, "y": {u: ["c", "d"] for u in (1, 2)}}
    >>> wanted = {"difference": 0.5, "liked_share": 0.5}
    >>> us.unbiased.judgments_needed(test, runs, "P@2", liked=4, **wanted).table().rows()
    [('x', 'y', 0.5, 8, 8, '')]
    """
    runs, metric = second_argument(judgments, runs, metric, "P@10")
    ((label, estimand),) = estimands(metric).items()
    limit = _largest_difference(estimand)
    check_power(power, alpha)
    allowed = is_number(difference) and 0 < float(difference or 0) <= limit * (1 + 1e-9)
    if difference is not None and not allowed:
        raise SettingError(
            f"difference must be a number above 0 and at most {limit:g}, the largest difference of "
            f"two systems by {metric}; got {difference!r}"
        )
    if liked_share is not None:
        check_share("liked_share", liked_share)
    precision = f"{'anti-' * estimand.metric.anti}P@{estimand.metric.cutoff}"
    by_label = {label: estimand, **estimands(precision)}
    judged, _ = judge_for_estimates(
        judgments, runs, metrics_of(by_label), seed=seed, threads=threads, **data
    )
    check_two_systems(list(judged.systems))
    labels = [label] * (difference is None) + [precision] * (liked_share is None)
    estimated: dict[tuple[str, str], tuple[float, str]] = {}
    if labels:
        rule = replace(judged.relevance, gain="binary", loss="binary")  # a slot counts 1
        judged = replace(judged, relevance=rule, view=replace(judged.view, relevance=rule))
        source = weigh(judged, propensity, weights, random)
        averages = WeightedAverages(judged, by_label, source, threads=threads)
        estimates = averages.estimates(source.weight, resamples, level, seed)
        for key in product(judged.systems, labels):
            estimated[key] = weighted_value(estimates, *key)
    slots, users = _slots(judged, estimand), int(judged.with_list.sum())
    factor = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    rows, shares = [], []
    for a, b in combinations(judged.systems, 2):
        adds, gap, share = _differing(slots[a], slots[b], users), difference, liked_share
        notes = [
            f"the estimate of {key[0]} is {UNUSABLE}: {estimated[key][1]}"
            for key in product((a, b), labels)
            if estimated[key][1]
        ]
        if notes:
            rows.append([a, b, difference, adds.size, None, notes[0]])
            continue
        if gap is None:
            gap = estimated[a, label][0] - estimated[b, label][0]
        if share is None:
            share = (estimated[a, precision][0] + estimated[b, precision][0]) / 2
        shares.append(share)
        rows.append([a, b, gap, adds.size, *_needed(adds, gap, share, factor)])
    mean = float(np.mean(shares)) if shares else None
    line = f"{label}: random judgments needed at power {power:g}, alpha {alpha:g}"
    return Estimates.of_rows(
        NEEDED,
        rows,
        explanation=(line if mean is None else f"{line}, where {mean:.3g} of the slots are liked",),
        card={"metric": label, "power": power, "alpha": alpha, "liked_share": mean},
    )


def _largest_difference(estimand: Estimand) -> float:
    """Return the value of a list that holds liked items only: the other's may be 0."""
    linear, cutoff = estimand.linear, estimand.metric.cutoff
    if not estimand.is_sum or cutoff is None:
        raise SettingError(
            f"{estimand.label}: judgments are counted for sums over places, such as P, RBP and "
            "DCG, with a cutoff"
        )
    return 1.0 if linear.per_cutoff else float(estimand.discounts(min(cutoff, 1 << 20)).sum())


def _slots(judged: Judged, estimand: Estimand) -> dict[str, tuple[I64, F64]]:
    """Return the slots of each system: (list, item) as one number, and what a liked item adds."""
    basis, cutoff = judged.basis, estimand.metric.whole_cutoff
    discount = estimand.discounts(max(basis.longest, min(cutoff, 1 << 20)))
    slots = {}
    for name, matched in judged.matched.items():
        if matched.is_full:
            raise SettingError(
                f"{name}: give ready-made lists (rank(…) makes them) to count the slots in which "
                f"systems differ"
            )
        length = np.minimum(matched.depth, cutoff)
        owner = np.repeat(np.arange(length.size), length)
        rank = np.arange(owner.size) - np.repeat(np.cumsum(length) - length, length)
        item = matched.run.item[matched.start[owner] + rank]
        filled = item >= 0
        key = owner[filled] * np.int64(len(judged.judgments.items)) + matched.from_run[item[filled]]
        slots[name] = key, discount[rank[filled] + 1]
    return slots


def _differing(first: tuple[I64, F64], second: tuple[I64, F64], users: int) -> F64:
    """Return what a liked item adds to the difference, in each slot where that is not 0."""
    key = np.concatenate([first[0], second[0]])
    adds = np.concatenate([first[1], -second[1]])
    _, group = np.unique(key, return_inverse=True)
    net = np.bincount(group, adds) / users
    return net[np.abs(net) > 1e-15]


def _needed(adds: F64, gap: float, share: float, factor: float) -> tuple[int | None, str]:
    """Return the smallest m with M² s² (1/m - 1/M) <= (gap / factor)², or None and the reason."""
    slots = adds.size
    if not slots:
        return None, "the two lists do not differ"
    if gap == 0:
        return None, "the estimates do not differ"
    if not 0 < share < 1:
        return None, f"the estimated share of liked slots is {share:g}"
    limit = _largest_gap(adds, share)
    if abs(gap) > limit * (1 + 1e-9):
        return None, f"lists that differ in so few liked slots differ by {limit:.3g} at most"
    mean = float(adds.mean()) * share
    variance = max(float((adds**2).mean()) * share - mean**2, 0.0)
    variance_limit = (gap / factor) ** 2
    m = 1.0 / (variance_limit / (slots**2 * variance) + 1.0 / slots) if variance else 1.0
    return min(max(math.ceil(m - 1e-9), 1), slots), ""


def _largest_gap(adds: F64, share: float) -> float:
    """Return the largest difference, either way, where a share of the slots is liked."""
    liked = math.ceil(share * adds.size - 1e-9)
    ascending = np.sort(adds)
    up, down = ascending[-liked:], -ascending[:liked]
    return max(float(np.maximum(side, 0.0).sum()) for side in (up, down))


@checked
def judgments_for(
    lists_a: object,
    lists_b: object,
    difference: float,
    power: float = 0.8,
    level: float = LEVEL,
    share_liked: float = 0.5,
    *,
    k: int = 10,
) -> Estimates:
    r"""Say how many judgments of randomly chosen recommendations test a stated difference.

    Half of the judged recommendations are drawn from what A lists and B does not, half from what B
    lists and A does not. With :math:`c_a`, :math:`c_b` the shares of all places on either side and
    :math:`s_a`, :math:`s_b` the liked shares there, true precision differs by :math:`c_a s_a - c_b
    s_b`, and h judgments of each side give it with variance :math:`(c_a^2 s_a(1-s_a) + c_b^2
    s_b(1-s_b)) / h`, less
    where h is a large part of the places (drawn without replacement).

    Parameters
    ----------
    lists_a, lists_b
        The ranked lists of two systems for the same users: anything that `read_run` takes.
    difference
        The smallest difference of true precision at k that is to be noticed. State it before data
        are seen: a number computed from an observed difference says nothing new.
    power
        How surely a difference of this size is noticed.
    level
        Of the interval: noticed means that it does not hold 0.
    share_liked
        The mean liked share of the places in which the lists differ; one half is the worst case.
    k
        How many places of each list are looked at.

    Returns
    -------
    Estimates
        One row, of `a` against `b`: how many judgments are needed (`value`), and on how many
        places of either side (`places`, `places_against`). Without a number `note` says why none
        would do.

    Examples
    --------
    >>> import unskew as us
    >>> x = {user: ["a", "b"] for user in range(1000)}
    >>> y = {user: ["a", "c"] for user in range(1000)}
    >>> us.unbiased.judgments_for(x, y, 0.05, k=2).row().value
    562
    """

    def count(case: _Contrast) -> int:
        places, sides = case.places, zip(case.parts, case.liked, strict=True)
        of_a, of_b = (c * c * s * (1 - s) for c, s in sides)
        half = (of_a + of_b) / (case.variance + of_a / places[0] + of_b / places[1])
        # Student's t instead of the normal distribution.
        half = math.ceil(half + NormalDist().inv_cdf((1 + level) / 2) ** 2 / 4 - 1e-9)
        return sum(min(half, number) for number in places)

    stated = difference, power, level, share_liked
    return _planned(JUDGMENTS, count, lists_a, lists_b, k, *stated)


@checked
def random_pairs_for(
    lists_a: object,
    lists_b: object,
    difference: float,
    power: float = 0.8,
    level: float = LEVEL,
    share_liked: float = 0.5,
    *,
    k: int = 10,
    train: object = None,
    items: object = None,
) -> Estimates:
    r"""Say how many pairs of all candidates, shown at random and rated, test a stated difference.

    Of n pairs drawn at random from all C pairs that could be recommended, n/C times as many fall
    where the lists differ as there are such places: far more are needed than of judgments of chosen
    recommendations (`judgments_for`), but they serve any systems.

    Parameters
    ----------
    lists_a, lists_b, difference, power, level, share_liked, k
        As for `judgments_for`.
    train
        Training ratings, whose pairs are no candidates: anything that `read_ratings` takes.
    items
        The catalogue, beyond the items of the lists. Default: the items of `train`.

    Returns
    -------
    Estimates
        One row, as of `judgments_for`.

    Examples
    --------
    >>> import unskew as us
    >>> x = {user: ["a", "b"] for user in range(1000)}
    >>> y = {user: ["a", "c"] for user in range(1000)}
    >>> us.unbiased.random_pairs_for(x, y, 0.1, k=2, items=list("abcdefghij")).row().value
    871
    """

    def count(case: _Contrast) -> int:
        sides = zip(case.places, case.liked, strict=True)
        spread = sum(c * s * (1 - s) for c, s in sides) / case.slots**2
        number = case.candidates * spread / (case.variance + spread)
        # Student's t instead of the normal distribution, of what falls where the lists differ.
        quantile = NormalDist().inv_cdf((1 + level) / 2)
        number += quantile**2 / 2 * case.candidates / sum(case.places)
        return min(math.ceil(number - 1e-9), case.candidates)

    stated = difference, power, level, share_liked
    return _planned(RANDOM_PAIRS, count, lists_a, lists_b, k, *stated, train, items)


class _Contrast(NamedTuple):
    """Where the lists of two systems differ, and liked shares there that differ as stated."""

    places: tuple[int, int]
    """How many places of either side hold an item that the other does not list."""
    slots: int
    """All places of the lists of one system."""
    candidates: int
    """The pairs that could be recommended to the users that have a list."""
    liked: tuple[float, float]
    variance: float
    """With this one the difference is found so surely."""

    @property
    def parts(self) -> list[float]:
        """The shares of all places in which the lists differ, on either side."""
        return [number / self.slots for number in self.places]


def _planned(
    question: Question,
    count: Callable[[_Contrast], int],
    lists_a: object,
    lists_b: object,
    k: int,
    difference: float,
    power: float,
    level: float,
    share_liked: float,
    train: object = None,
    items: object = None,
) -> Estimates:
    """Lay the lists of two systems, and training ratings, over one numbering, and count."""
    as_number("difference", difference, most=1.0, above=True)
    check_share("level", level)
    check_power(power, 1 - level)
    check_share("share_liked", share_liked)
    runs = {"a": read_run(lists_a), "b": read_run(lists_b)}
    ratings = [] if train is None else [read_ratings(train)]
    listed, trained = ListedPairs.of_runs(runs, as_count("k", k), *ratings)
    owners = np.union1d(*listed.owners)
    if not owners.size:
        raise SettingError("lists_a and lists_b: every list is empty")
    catalogues = [run.items for run in runs.values()] + [source.items for source in ratings]
    if items is not None:
        catalogues[2:] = [Ids.number(read_items(items))[0]]
    catalogue, _ = Ids.union(*catalogues)
    candidates = int(owners.size) * len(catalogue)
    for source, pairs in zip(ratings, trained, strict=True):
        inside = catalogue.codes(source.items.values)[source.item] >= 0
        candidates -= int(np.isin(pairs[inside] // listed.width, owners).sum())
    normal = NormalDist()
    variance = (difference / (normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power))) ** 2
    places = int(listed.only(0, 1).size), int(listed.only(1, 0).size)
    case = _Contrast(places, int(owners.size) * k, candidates, (math.nan, math.nan), variance)
    needed, note = None, "one of the two systems lists nothing that the other does not"
    if all(places):
        (part_a, part_b), mean = case.parts, share_liked
        # c_a s_a - c_b s_b = difference, with the mean of s_a and s_b as stated.
        gap = 2 * (difference - mean * (part_a - part_b)) / (part_a + part_b)
        case = case._replace(liked=(mean + gap / 2, mean - gap / 2))
        note = (
            f"lists that differ in {places[0]:,} and {places[1]:,} places, {mean:.0%} of them "
            f"liked, cannot differ by {difference:g} in precision"
        )
        if all(0 <= share <= 1 for share in case.liked):
            needed, note = count(case), ""
    lists = int(owners.size)
    card = {"k": k, "lists": lists, "power": power, "level": level, "share_liked": share_liked}
    return Estimates.of_rows(
        question,
        [["a", "b", difference, *places, needed, note]],
        explanation=(f"power {power:g}, {level:.0%} intervals; {lists:,} lists",),
        card=card,
    )
