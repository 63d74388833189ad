"""`judgments_needed`: how many judgments of randomly chosen slots would tell two systems apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any, Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64
from unskew.checks import as_count, as_number, check_share, checked, is_number
from unskew.data.ratings import Ids
from unskew.data.read.ratings_files import read_items, read_ratings
from unskew.errors import DataError, SettingError
from unskew.judging.judge import RawOptions, second_argument
from unskew.judging.judged import Judged
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.runs import Run, read_run
from unskew.stats.agreement.power import check_power
from unskew.stats.resampling import check_two_systems
from unskew.unbiased.judgment_weights import Estimand, estimands, judge_for_estimates, weigh
from unskew.unbiased.listed_pairs import ListedPairs, extended
from unskew.unbiased.sensitivity import linear_form
from unskew.unbiased.weighted_averages import LEVEL, RESAMPLES, Averages, Scales
from unskew.unbiased.weighted_estimates import UNUSABLE, Estimate


@dataclass(frozen=True, eq=False)
class JudgmentsNeeded(Result):
    """How many random judgments would tell each pair of systems apart. From `judgments_needed`."""

    metric: str
    rows: tuple[Mapping[str, Any], ...]
    power: float
    alpha: float
    liked_share: float
    """The mean over pairs; NaN where no pair has one."""

    def table(self) -> pl.DataFrame:
        """Return a row per pair: a, b, difference, slots, needed, and the reason where it is null.

        Slots are the places of the lists in which the two differ; `needed` of these, drawn at
        random and judged, find the difference with the power asked for.
        """
        kinds: dict[str, Any] = {
            "a": pl.String,
            "b": pl.String,
            "difference": pl.Float64,
            "slots": pl.Int64,
            "needed": pl.Int64,
            "reason": pl.String,
        }
        return pl.DataFrame(list(self.rows), kinds)

    def _explanation(self) -> list[str]:
        share = f", where {self.liked_share:.3g} of the slots are liked"
        return [
            f"{self.metric}: random judgments needed at power {self.power:g}, alpha {self.alpha:g}"
            + ("" if math.isnan(self.liked_share) else share)
        ]

    def _content(self) -> dict[str, object]:
        facts = {"metric": self.metric, "power": self.power, "alpha": self.alpha}
        return {**facts, "liked_share": self.liked_share, "pairs": self.table()}

    def figure(self) -> Figure:
        """Draw the number of judgments needed for each pair."""
        import altair as alt

        rows = [
            {"pair": f"{row['a']} – {row['b']}", "needed": row["needed"]}
            for row in self.rows
            if row["needed"] is not None
        ]
        if not rows:
            raise DataError("no pair can be settled, so there is nothing to draw")
        canvas = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(24))
        bars: alt.Chart = canvas.mark_bar().encode(
            x=alt.X("needed:Q", title="random judgments needed"), y=alt.Y("pair:N", title=None)
        )
        return as_figure(bars, f"{self.metric}: what would settle it", self.footer(), rows)

    def _summary(self) -> str:
        return f"{self.metric}, {counted(len(self.rows), 'pair')}"


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
) -> JudgmentsNeeded:
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

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 2], "item": ["a", "c"], "rating": [5, 1]}
    >>> runs = {"x": {u: ["a", "b"] for u in (1, 2)}, "y": {u: ["c", "d"] for u in (1, 2)}}
    >>> wanted = {"difference": 0.5, "liked_share": 0.5}
    >>> us.unbiased.judgments_needed(test, runs, "P@2", liked=4, **wanted).table().rows()
    [('x', 'y', 0.5, 8, 8, None)]
    """
    runs, metric = second_argument(judgments, runs, metric, "P@10")
    estimand = next(iter(estimands(metric).values()))
    linear_form(estimand)
    if not estimand.is_sum or estimand.metric.cutoff is None:
        raise SettingError(
            f"{metric}: judgments are counted for sums over places, such as P, RBP and DCG, with a "
            f"cutoff"
        )
    check_power(power, alpha)
    limit = _largest_difference(estimand)
    allowed = is_number(difference) and 0 < float(difference or 0) <= limit * (1 + 1e-9)
    if difference is not None and not allowed:
        raise SettingError(
            f"difference must be a number above 0 and at most {limit:g}, the largest difference of "
            f"two systems by {metric}; got {difference!r}"
        )
    if liked_share is not None:
        check_share("liked_share", liked_share)
    precision = estimands(f"{'anti-' * estimand.metric.anti}P@{estimand.metric.cutoff}")
    by_label = {estimand.label: estimand, **precision}
    judged, _ = judge_for_estimates(judgments, runs, by_label, seed=seed, threads=threads, **data)
    names = list(judged.systems)
    check_two_systems(names)
    values: Mapping[tuple[str, str], Estimate] = {}
    if difference is None or liked_share is None:
        judged = _with_gain_1(judged)
        source = weigh(judged, propensity, weights, random)
        run = Averages.of(judged, by_label, "users", threads)
        scales = Scales.of(judged, source, source.weight)
        values = run.results(source.weight, scales, resamples, level, seed, threads)
    slots = _slots(judged, estimand)
    rows, shares = [], []
    factor = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    asks = [estimand.label] * (difference is None) + list(precision) * (liked_share is None)
    for a, b in combinations(names, 2):
        adds = _differing(slots[a], slots[b], int(judged.with_list.sum()))
        row = {"a": a, "b": b, "difference": difference, "slots": int(adds.size), "needed": None}
        reasons = [
            f"the estimate of {name} is {UNUSABLE}: {values[name, label].reason}"
            for name in (a, b)
            for label in asks
            if values[name, label].reason
        ]
        if reasons:
            rows.append({**row, "reason": reasons[0]})
            continue
        gap, share = difference, liked_share
        if gap is None:
            gap = values[a, estimand.label].best - values[b, estimand.label].best
        if share is None:
            (label,) = precision
            share = (values[a, label].best + values[b, label].best) / 2
        shares.append(share)
        needed, reason = _needed(adds, gap, share, factor)
        rows.append({**row, "difference": gap, "needed": needed, "reason": reason})
    mean = float(np.mean(shares)) if shares else math.nan
    return JudgmentsNeeded(
        metric=metric, rows=tuple(rows), power=power, alpha=alpha, liked_share=mean
    )


def _largest_difference(estimand: Estimand) -> float:
    """Return the value of a list that holds liked items only: the other's may be 0."""
    cutoff = estimand.metric.whole_cutoff
    form = linear_form(estimand)
    if form.per_cutoff:
        return 1.0
    return float(form.discount(estimand.params, min(cutoff, 1 << 20)).sum())


def _with_gain_1(judged: Judged) -> Judged:
    """Return the same with gain and loss 1: what slots are counted with."""
    rule = replace(judged.relevance, gain="binary", loss="binary")
    return replace(judged, relevance=rule, view=replace(judged.view, relevance=rule))


def _slots(judged: Judged, estimand: Estimand) -> dict[str, tuple[I64, F64]]:
    """Return the slots of each system: (list, item) as one number, and what a liked item adds."""
    basis, cutoff = judged.basis, estimand.metric.whole_cutoff
    form = linear_form(estimand)
    discount = form.discount(estimand.params, max(basis.longest, min(cutoff, 1 << 20)))
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
        there = item >= 0
        key = owner[there] * np.int64(len(judged.judgments.items)) + matched.from_run[item[there]]
        weight = discount[rank[there] + 1]
        slots[name] = key, weight / cutoff if form.per_cutoff else weight
    return slots


def _differing(first: tuple[I64, F64], second: tuple[I64, F64], users: int) -> F64:
    """Return what a liked item adds to the difference, in each slot where that is not 0."""
    key = np.concatenate([first[0], second[0]])
    adds = np.concatenate([first[1], -second[1]])
    _, group = np.unique(key, return_inverse=True)
    net = np.bincount(group, adds) / users
    return net[np.abs(net) > 1e-15]


def _needed(adds: F64, gap: float, share: float, factor: float) -> tuple[int | None, str | None]:
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
    return min(max(math.ceil(m - 1e-9), 1), slots), None


def _largest_gap(adds: F64, share: float) -> float:
    """Return the largest difference, either way, where a share of the slots is liked."""
    liked = math.ceil(share * adds.size - 1e-9)
    ascending = np.sort(adds)
    up, down = ascending[-liked:], -ascending[:liked]
    return max(float(np.maximum(side, 0.0).sum()) for side in (up, down))


JUDGMENTS = "judgments of recommendations chosen at random, half from each system's side"
PAIRS = "pairs of a user and an item shown at random"


@dataclass(frozen=True, kw_only=True)
class DataNeeded(Result):
    """How many judgments test a stated difference. From `judgments_for`, `random_pairs_for`."""

    what: str
    """What is to be judged."""
    needed: int | None
    """None where no number of them would do."""
    difference: float
    """The smallest difference of true precision that is to be noticed."""
    k: int
    power: float
    level: float
    share_liked: float
    """Assumed mean liked share of the places in which the lists differ."""
    places_a: int
    """Places of a whose item b does not list for the same user."""
    places_b: int
    lists: int
    reason: str = ""
    """Why no number of them would do."""

    def table(self) -> pl.DataFrame:
        """Return the one row of numbers."""
        return pl.DataFrame([self.__dict__], {"needed": pl.Int64}, strict=False)

    def _summary(self) -> str:
        return self.reason or f"{self.needed:,} {self.what}"


@dataclass(frozen=True)
class _RankCounts:
    """Where two systems' lists differ."""

    a: int
    b: int
    lists: int
    k: int

    @property
    def parts(self) -> tuple[float, float]:
        """The shares of all places in which the lists differ, on either side."""
        slots = self.lists * self.k
        return self.a / slots, self.b / slots

    def shares(self, difference: float, mean: float) -> tuple[float, float] | None:
        """Return liked shares on both sides that differ so much, around a mean; None if none do."""
        part_a, part_b = self.parts
        total = part_a + part_b
        if not (self.a and self.b):
            return None
        # c_a s_a - c_b s_b = difference, with the mean of s_a and s_b as stated.
        gap = 2 * (difference - mean * (part_a - part_b)) / total
        shares = mean + gap / 2, mean - gap / 2
        return shares if all(0 <= share <= 1 for share in shares) else None

    def reason(self, difference: float, mean: float) -> str:
        """Say why no liked shares give this difference; nothing where some do."""
        if not (self.a and self.b):
            return "one of the two systems lists nothing that the other does not"
        if self.shares(difference, mean) is None:
            return (
                f"lists that differ in {self.a:,} and {self.b:,} places, {mean:.0%} of them liked, "
                f"cannot differ by {difference:g} in precision"
            )
        return ""


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
) -> DataNeeded:
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

    Examples
    --------
    >>> import unskew as us
    >>> x = {user: ["a", "b"] for user in range(1000)}
    >>> y = {user: ["a", "c"] for user in range(1000)}
    >>> us.unbiased.judgments_for(x, y, 0.05, k=2).needed
    562
    """
    listed = _listed(lists_a, lists_b, as_count("k", k))

    def count(places: _RankCounts, shares: Shares, variance: float) -> int:
        of_a, of_b = (c * c * s * (1 - s) for c, s in zip(places.parts, shares, strict=True))
        half = (of_a + of_b) / (variance + of_a / places.a + of_b / places.b)
        # Student's t instead of the normal distribution.
        half = math.ceil(half + NormalDist().inv_cdf((1 + level) / 2) ** 2 / 4 - 1e-9)
        return min(half, places.a) + min(half, places.b)

    return _data_needed(JUDGMENTS, listed, count, difference, power, level, share_liked)


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
) -> DataNeeded:
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

    Examples
    --------
    >>> import unskew as us
    >>> x = {user: ["a", "b"] for user in range(1000)}
    >>> y = {user: ["a", "c"] for user in range(1000)}
    >>> us.unbiased.random_pairs_for(x, y, 0.1, k=2, items=list("abcdefghij")).needed
    871
    """
    listed = _listed(lists_a, lists_b, as_count("k", k))
    candidates = _candidates(listed, train, items)

    def count(places: _RankCounts, shares: Shares, variance: float) -> int:
        sides = zip((places.a, places.b), shares, strict=True)
        spread = sum(c * s * (1 - s) for c, s in sides) / (places.lists * k) ** 2
        number = candidates * spread / (variance + spread)
        # Student's t instead of the normal distribution, of what falls where the lists differ.
        number += (
            NormalDist().inv_cdf((1 + level) / 2) ** 2 / 2 * candidates / (places.a + places.b)
        )
        return min(math.ceil(number - 1e-9), candidates)

    return _data_needed(PAIRS, listed, count, difference, power, level, share_liked)


Shares = tuple[float, float]


def _data_needed(
    what: str,
    listed: _ListedCounts,
    count: Callable[[_RankCounts, Shares, float], int],
    difference: float,
    power: float,
    level: float,
    share_liked: float,
) -> DataNeeded:
    """Count what is needed for a variance of the difference that finds it so surely."""
    as_number("difference", difference, most=1.0, above=True)
    check_share("level", level)
    check_power(power, 1 - level)
    check_share("share_liked", share_liked)
    pairs = listed.pairs
    lists = int(np.union1d(*pairs.owners).size)
    places = _RankCounts(int(pairs.only(0, 1).size), int(pairs.only(1, 0).size), lists, pairs.k)
    shares = places.shares(difference, share_liked)
    normal = NormalDist()
    variance = (difference / (normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power))) ** 2
    return DataNeeded(
        what=what,
        needed=None if shares is None else count(places, shares, variance),
        difference=difference,
        k=pairs.k,
        power=power,
        level=level,
        share_liked=share_liked,
        places_a=places.a,
        places_b=places.b,
        lists=places.lists,
        reason=places.reason(difference, share_liked),
    )


@dataclass(frozen=True, eq=False)
class _ListedCounts:
    """The lists of two systems under common numbers, and the runs."""

    pairs: ListedPairs
    runs: tuple[Run, Run]
    users: list[I32]


def _listed(lists_a: object, lists_b: object, k: int) -> _ListedCounts:
    runs = read_run(lists_a), read_run(lists_b)
    users, _ = extended(runs[0].users, [run.users for run in runs])
    items, width = extended(runs[0].items, [run.items for run in runs])
    names = dict(zip("ab", runs, strict=True))
    pairs = ListedPairs.of_runs(names, users, items, k, width)
    if not any(owners.size for owners in pairs.owners):
        raise SettingError("lists_a and lists_b: every list is empty")
    return _ListedCounts(pairs, runs, users)


def _candidates(listed: _ListedCounts, train: object, items: object) -> int:
    """Count the pairs that could be recommended to the users that have a list."""
    ratings = None if train is None else read_ratings(train)
    catalogues = [run.items for run in listed.runs]
    if items is not None:
        catalogues.append(Ids.number(read_items(items))[0])
    elif ratings is not None:
        catalogues.append(ratings.items)
    catalogue, _ = Ids.union(*catalogues)
    owners = np.union1d(*listed.pairs.owners)
    total = int(owners.size) * len(catalogue)
    if ratings is not None:
        (user, *_), _ = extended(listed.runs[0].users, [ratings.users, listed.runs[1].users])
        there = catalogue.codes(ratings.items.values)[ratings.item] >= 0
        total -= int(np.count_nonzero(np.isin(user[ratings.user[there]], owners)))
    return total
