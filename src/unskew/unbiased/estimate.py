"""`estimate`: what systems would score were everything judged, from judgments with weights.

Inverse propensity scoring (IPS) counts each judgment 1/p times, p being its chance of being judged.
Self-normalised (SNIPS), it divides by what the weights add up to instead of by what they should: a
little bias for far less noise, and propensities need be right up to a factor only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from typing import Unpack

import numpy as np

from unskew.arrays import frozen
from unskew.checks import check_share, checked, choose, is_number
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import MEMORY
from unskew.judging.judge import RawOptions, second_argument
from unskew.judging.notes import warn
from unskew.metrics.names import Metric
from unskew.report.columns import (
    HIGH,
    LOW,
    METRIC,
    NOTE,
    SE,
    SYSTEM,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.intervals.means import student_ends
from unskew.stats.user_groups import (
    duplicates_notes,
    groups_of_users,
    rating_parts,
    stated_by_group,
)
from unskew.unbiased.judgment_weights import (
    Estimand,
    Weights,
    clipped_weights,
    estimands,
    judge_for_estimates,
    metrics_of,
    weigh,
    with_unnormalised,
)
from unskew.unbiased.weighted_averages import (
    LEVEL,
    RESAMPLES,
    UNUSABLE,
    WeightedAverages,
    weighted_value,
)

METRICS = ("P@10", "Recall@10", "DCG@10")
USERS = ("with-list", "with-test", "all")
MEANS = ("users", "ratio")
FEW = 0.1
"""Below this share of effective judgments weights are said to explode."""
QUANTILES = (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0)
"""Quantiles of the weights at which the curve over clipping levels clips."""
CLIPPING = Question(
    name="estimates over the largest weight allowed",
    columns=(
        *(SYSTEM, METRIC, Column("limit", "axis", "largest weight"), VALUE, SE, LOW, HIGH),
        *(Column("bias", "fact", form="+"), Column("rmse", "fact", "bias and noise")),
        *(Column("clipped", "share", form="%"), replace(NOTE, label=UNUSABLE)),
    ),
    method=Method(
        estimand="the mean score if every item were judged, with weights up to a limit",
        interval="normal",
    ),
    figures=(Drawing("clipping", "log lines"),),
)
"""A row per system, metric and limit.

`bias` is the value less that without clipping, `rmse` bias and standard error together, `clipped`
the share of the judgments whose weight is cut.
"""


@checked
def estimate(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    propensity: object = None,
    weights: object = None,
    random: object = None,
    clip: float | str | None = None,
    mean: str = "users",
    users: str = "with-list",
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    group_users: object = None,
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    **data: Unpack[RawOptions],
) -> Estimates:
    r"""Estimate what systems would score were everything judged.

    For a metric that is a sum over liked items of something that depends on their rank (P, DCG,
    RBP and their anti-twins), IPS is :math:`\frac{1}{|U|}\sum_u\sum_{i} c(rank)/p_{ui}` over the
    judged liked items: unbiased where the propensities p are right. SNIPS divides it by how many
    targets the weights add up to and multiplies by how many there are: right in the long run where
    the propensities of disliked judgments are right too. Recall, SR, ADG and ATOP are such a sum
    over another one (then both are the same number). AP and AUC also need pairs of liked items,
    weighted by the product: right where judgments are made independently. nDCG (but for
    ``ideal=full``), HLU, F1 and whatever has ``per=min`` are biased even with the right
    propensities, and more users do not help, as their divisors are no sums over judgments: take
    DCG, or nDCG(ideal=full). All others are refused, with the reason.

    An estimate is called not usable where it is above the largest value that the metric can have;
    where it rests on fewer than 60 effective hits; and where the weights of the judged items in the
    lists, liked or not, add up to more than 1.25 times the slots, or to less than 0.8 times (their
    whole interval does): they should add up to the slots.

    Parameters
    ----------
    judgments, runs
        Judged data (`judge`) alone, with the metrics as the second argument; or raw data as `judge`
        takes them. There must be one list per user.
    metrics
        Names of metrics; also `ADG@10` (mean discounted gain of the liked items) and `ATOP` (their
        mean normalised rank). The DCG of each nDCG is added.
    propensity
        A `Propensity`, a method of `propensity` (`popularity`, …), or what that takes as given
        propensities. Default: popularity.
    weights
        Instead: a weight per judgment, in the order of the judgments, or what an intervention's
        `weigh` gave. Known up to a factor: sums have a self-normalised estimate only; nDCG, F1,
        HLU, AP and AUC have none.
    random
        Ratings of randomly chosen items, for `propensity`.
    clip
        Largest weight allowed, or a quantile such as 99%.
    mean
        How to average fractions: over users (`users`), or as a ratio of sums (`ratio`).

        `users` averages over users with a liked judgment, `ratio` divides the sums over all users,
        which for Recall, SR, ADG, ATOP, AP and AUC is right in the long run also where a user has
        few judgments. SR and HLU with a `mean=ratio` of their own are always divided so.
    users
        Users to average over: with-list, with-test, all.

        `with-list`: those with a list of any system. Means over users with test judgments only are
        biased, as having one depends on the propensities.
    resamples
        Bootstrap resamples of users; 0 for no intervals.

        They give the interval of the weights of the slots. Those of estimates are Student's by
        user, the skewness taken out by Hall's transformation. All take the weights as they are.
    level
        Confidence level of the intervals.
    group_users
        Users that are not independent (households, test accounts) count as one: `detected` for
        near-duplicate accounts, or FILE:COLUMN of a file of users.

        Or another form that `compare` takes. The bootstrap draws groups then.
    seed
        Of the bootstrap over users.
    threads, memory
        As for `evaluate`; never change a result.
    data
        Of raw data, see `judge`: liked, above, gain, loss, relevance; train (targets are what is
        not in it); items (from which targets are counted; by default all of `train`, `judgments`
        and the lists); ties, depth.

    Returns
    -------
    Estimates
        A row per system, metric and quantity (`naive`, `ips`, `snips`) with the value and its
        interval; of the liked hits their number (`hits`), how many equal weights theirs are worth
        (`effective`) and more. `note` says why IPS and SNIPS are not usable; it is empty where they
        are. The part `slots` has, per system and metric, the weights of the judged items in the
        lists, liked or not, by the slots: about 1 where propensities are right. The card has the
        settings, what the weights are like, and the largest value that each metric can have.

    References
    ----------
    Schnabel et al. 2016 (IPS, SNIPS); Yang et al. 2018 (average-over-all, SNIPS for rankings);
    Steck 2010 (ATOP); Jeunen et al. 2024 (DCG and nDCG); castells2018 section 4. Hall (JRSS B 54,
    1992): intervals of skewed means.

    Examples
    --------
    >>> from unskew.unbiased.estimate import estimate
    >>> test = {"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rating": [5, 1, 4, 2]}
    >>> lists = {"mine": {1: ["a", "c"], 2: ["b", "a"]}}
    >>> p = {"a": 0.5, "b": 1.0, "c": 0.5}
    >>> result = estimate(test, lists, "P@2", propensity=p, liked=4, resamples=0)
    >>> [round(result.row(quantity=name).value, 3) for name in ("naive", "ips", "snips")]
    [0.5, 1.0, 0.857]
    """
    choose("mean", mean, MEANS)
    choose("users", users, USERS)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    by_label = with_unnormalised(estimands(metrics))
    judged, notes = judge_for_estimates(
        judgments, runs, metrics_of(by_label), seed=seed, threads=threads, **data
    )
    groups = groups_of_users(group_users, rating_parts(judged))
    source = weigh(judged, propensity, weights, random)
    weight, clipped = clipped_weights(source.weight, clip)
    described = Weights.of(weight, clipped)
    people = judged.judgments.users
    code = None if groups is None else groups.of(people)[1]
    averages = WeightedAverages(judged, by_label, source, mean, users, threads, memory, code)
    result = averages.estimates(weight, resamples, level, seed)
    per = "of users" if mean == "users" else "as a ratio of sums over users"
    result = replace(
        result,
        explanation=(
            f"weights by {source.name}: {described}",
            f"means {per} ({users})",
            str(judged.relevance),
        ),
        card={
            "weights": {"by": source.name, **asdict(described)},
            "clip": clip,
            "mean": mean,
            "users": users,
            "relevance": str(judged.relevance),
            "better": {label: estimand.metric.better for label, estimand in by_label.items()},
            "highest": {label: averages.high(estimand) for label, estimand in by_label.items()},
            **source.facts,
        },
    )
    notes += [*_added(metrics, by_label), *source.notes, *_weight_notes(described)]
    noun = "user" if groups is None else "group of users|groups of users"
    notes += [*averages.notes(), *_undefined_notes(result, averages.units, noun)]
    notes += [*_bias_notes(by_label), *_order_notes(result, by_label)]
    notes += duplicates_notes(judged, group_users) if resamples else ()
    result = replace(result, notes=tuple(dict.fromkeys(notes)))
    return stated_by_group(result, groups, people)


def order(estimates: Estimates, metric: str, by: str = "snips") -> list[str]:
    """Return the systems, best first, by `naive`, `ips` or `snips`.

    Refused where the estimate of a system is missing or not usable.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.estimate import order
    >>> test = {"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rating": [5, 1, 4, 2]}
    >>> runs = {"x": {1: ["c"], 2: ["c"]}, "y": {1: ["a"], 2: ["b"]}}
    >>> order(us.estimate(test, runs, "P@1", liked=4, resamples=0), "P@1", "naive")
    ['y', 'x']
    """
    chosen = estimates.where(metric=metric, quantity=by)
    for name, value, note in chosen.rows.select("system", "value", "note").iter_rows():
        reason = note or ("there is none" if value is None else "")
        if reason:
            raise DataError(
                f"{metric}: systems cannot be ordered by {by}, because that of {name} is "
                f"{UNUSABLE}: {reason}; leave it out, or order by='naive'"
            )
    return chosen.sort().systems


@checked
def clipping_curve(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    limits: Sequence[float] | None = None,
    propensity: object = None,
    weights: object = None,
    random: object = None,
    mean: str = "users",
    users: str = "with-list",
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    **data: Unpack[RawOptions],
) -> Estimates:
    """Show how estimates move with the largest weight that is allowed: less noise, more bias.

    The estimate is that by IPS; where weights are known up to a factor only, the self-normalised
    one.

    Parameters
    ----------
    judgments, runs, metrics, propensity, weights, random, mean, users, seed, threads, memory, data
        As for `estimate`.
    limits
        The largest weights allowed. Default: quantiles of the weights.
    level
        Confidence level of the intervals.

    Returns
    -------
    Estimates
        A row per system, metric and limit: the value and its interval, its bias (the value less
        that without clipping), bias and standard error together, and the share of the judgments
        whose weights are cut. `note` names values that the metric cannot have.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rating": [5, 1, 4, 2]}
    >>> runs = {"mine": {1: ["a", "c"], 2: ["b", "a"]}}
    >>> p = {"a": 0.5, "b": 1.0, "c": 0.5}
    >>> curve = us.unbiased.clipping_curve(test, runs, "P@2", limits=[1, 2], propensity=p, liked=4)
    >>> curve.table()["value"].to_list(), curve.table()["bias"].to_list()
    ([0.5, 1.0], [-0.5, 0.0])
    """
    choose("mean", mean, MEANS)
    choose("users", users, USERS)
    check_share("level", level)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    by_label = estimands(metrics)
    judged, notes = judge_for_estimates(
        judgments, runs, metrics_of(by_label), seed=seed, threads=threads, **data
    )
    source = weigh(judged, propensity, weights, random)
    averages = WeightedAverages(judged, by_label, source, mean, users, threads, memory)
    if limits is None:
        limits = [float(np.quantile(source.weight, q)) for q in QUANTILES]
    limits = list(limits)
    if not limits or not all(is_number(limit) and 0 < limit < math.inf for limit in limits):
        raise SettingError(f"limits must be weights above 0, got {limits!r}")
    by_limit = {
        limit: averages.values_with(frozen(np.minimum(source.weight, limit)))
        for limit in sorted(set(map(float, limits)))
    }
    rows = []
    for key, (unclipped, _) in averages.values_with(source.weight).items():
        high = averages.high(by_label[key[1]])
        for limit, estimates in by_limit.items():
            value, se = estimates[key]
            bias = value - unclipped
            share = float(np.mean(source.weight > limit))
            is_possible = not value > high * (1 + 1e-9)
            note = "" if is_possible else f"above {high:.4g}, the largest possible value"
            ends = student_ends(value, se, math.inf, level)
            numbers = value, se, *ends, bias, math.hypot(bias, se)
            rows.append([*key, limit, *numbers, share, note])
    return Estimates.of_rows(
        CLIPPING,
        rows,
        level=level,
        explanation=("bias: the value less that without clipping", f"weights by {source.name}"),
        notes=tuple(dict.fromkeys([*notes, *source.notes, *averages.notes()])),
        card={"better": {label: estimand.metric.better for label, estimand in by_label.items()}},
    )


def _weight_notes(described: Weights) -> Iterator[str]:
    if described.number >= 20 and described.effective < FEW * described.number:
        yield warn(
            f"the weights explode: {described}. Clip them (clip='99%'), or see how the estimate "
            f"moves with the clipping level"
        )


def _added(metrics: str | Metric | Iterable[str | Metric], labels: Iterable[str]) -> Iterator[str]:
    """Name the metrics that are shown though nobody asked for them."""
    requested = {str(metrics)} if isinstance(metrics, str | Metric) else {str(m) for m in metrics}
    more = [label for label in labels if label not in requested]
    if more:
        yield f"{', '.join(more)}: shown beside nDCG, whose normalising can change the order"


def _undefined_notes(estimates: Estimates, units: int, noun: str) -> Iterator[str]:
    left_out = units - min(estimates.rows["n"])
    if left_out:
        yield (
            f"{counted(left_out, *noun.split('|'))} without a liked judgment left out of the means "
            "of fractions (mean='ratio' divides sums instead)"
        )


def _bias_notes(estimands: Mapping[str, Estimand]) -> Iterator[str]:
    """Name the metrics that are estimated with a bias even where propensities are right."""
    for label, estimand in estimands.items():
        if estimand.bias:
            yield f"{label} is biased even if propensities are right: {estimand.bias}"


def _order_notes(estimates: Estimates, estimands: Mapping[str, Estimand]) -> Iterator[str]:
    """Warn where a normalised metric puts two systems in another order than the plain one."""
    for label, estimand in estimands.items():
        plain = estimand.unnormalised
        if plain is None:
            continue
        counterpart = next(name for name, twin in estimands.items() if twin.metric == plain)
        flips = []
        for pair in combinations(estimates.systems, 2):
            gaps = []
            for metric in (label, counterpart):
                values, notes = zip(
                    *(weighted_value(estimates, name, metric) for name in pair), strict=True
                )
                gaps.append(0.0 if any(notes) else values[0] - values[1])
            if gaps[0] * gaps[1] < 0:
                flips.append(" and ".join(pair))
        if flips:
            yield warn(
                f"{label} and {counterpart} disagree about {', '.join(flips)}: normalising "
                f"changes the order, and it is {plain.name} that adds up to what users get "
                f"(Jeunen et al. 2024)"
            )
