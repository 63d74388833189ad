"""`estimate`: what systems would score were everything judged, from judgments with weights.

Inverse propensity scoring (IPS) counts each judgment 1/p times, p being its chance of being judged.
Self-normalised (SNIPS), it divides by what the weights add up to instead of by what they should: a
little bias for far less noise, and propensities need be right up to a factor only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Unpack

import numpy as np

from unskew.arrays import F64, frozen
from unskew.checks import check_share, checked, choose
from unskew.engine.threads import resolve
from unskew.evaluation.evaluate import MEMORY, memory_bytes
from unskew.judging.judge import RawOptions, second_argument
from unskew.judging.notes import warn
from unskew.metrics.names import Metric
from unskew.report.text import counted
from unskew.unbiased.judgment_weights import (
    Estimand,
    Weights,
    WeightSource,
    clipped_weights,
    estimands,
    judge_for_estimates,
    weigh,
    with_unnormalised,
)
from unskew.unbiased.weighted_averages import LEVEL, RESAMPLES, Averages, Scales
from unskew.unbiased.weighted_estimates import Estimate, WeightedEstimates

METRICS = ("P@10", "Recall@10", "DCG@10")
USERS = ("with-list", "with-test", "all")
MEANS = ("users", "ratio")
FEW = 0.1
"""Below this share of effective judgments weights are said to explode."""


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
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    **data: Unpack[RawOptions],
) -> WeightedEstimates:
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

    An estimate is called not usable where it, or an end of its interval, is above the largest value
    that the metric can have; where it rests on fewer than ten effective hits; and where the weights
    of the judged items in the lists, liked or not, add up to more than 1.25 times the slots, or to
    less than 0.8 times (their whole interval does): they should add up to the slots.

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

        The bootstrap takes the weights as they are.
    level
        Confidence level of the intervals.
    seed
        Of the bootstrap over users.
    threads, memory
        As for `evaluate`; never change a result.
    data
        Of raw data, see `judge`: liked, above, gain, loss, relevance; train (targets are what is
        not in it); items (from which targets are counted; by default all of `train`, `judgments`
        and the lists); ties, depth.

    References
    ----------
    Schnabel et al. 2016 (IPS, SNIPS); Yang et al. 2018 (average-over-all, SNIPS for rankings);
    Steck 2010 (ATOP); Jeunen et al. 2024 (DCG and nDCG); castells2018 section 4.

    Examples
    --------
    >>> from unskew.unbiased.estimate import estimate
    >>> test = {"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rating": [5, 1, 4, 2]}
    >>> lists = {"mine": {1: ["a", "c"], 2: ["b", "a"]}}
    >>> p = {"a": 0.5, "b": 1.0, "c": 0.5}
    >>> result = estimate(test, lists, "P@2", propensity=p, liked=4, resamples=0)
    >>> result["mine", "P@2"].naive, result["mine", "P@2"].ips
    (0.5, 1.0)
    """
    choose("mean", mean, MEANS)
    choose("users", users, USERS)
    check_share("level", level)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    by_label = with_unnormalised(estimands(metrics))
    judged, notes = judge_for_estimates(
        judgments, runs, by_label, seed=seed, threads=threads, **data
    )
    notes += _added(metrics, by_label)
    source = weigh(judged, propensity, weights, random)
    notes += source.notes
    weight, clipped = clipped_weights(source.weight, clip)
    described = Weights.of(weight, clipped)
    notes += _weight_notes(described)
    averages = Averages(
        judged=judged,
        estimands=by_label,
        mean=mean,
        users=users,
        threads=resolve(threads),
        budget=memory_bytes(memory),
    )
    scales = Scales.of(judged, source, weight)
    values = averages.results(weight, scales, resamples, level, seed, threads)
    notes += [
        *scales.notes(by_label),
        *_undefined_notes(values, mean),
        *_bias_notes(by_label),
        *_order_notes(values, by_label, tuple(judged.systems)),
    ]
    settings = {
        "weights": source.name,
        "mean": mean,
        "users": users,
        "clip": clip,
        "resamples": resamples,
        "level": level,
        "seed": seed,
        "relevance": str(judged.relevance),
        **source.facts,
    }
    return WeightedEstimates(
        metrics=tuple(by_label),
        systems=tuple(judged.systems),
        values=values,
        weights=described,
        settings=settings,
        better={label: estimand.better for label, estimand in by_label.items()},
        most={label: scales.high(estimand) for label, estimand in by_label.items()},
        notes=tuple(dict.fromkeys(notes)),
        again=partial(_clipped, averages, source, tuple(values)),
        quantiles=partial(_quantile, source.weight),
    )


def _clipped(
    averages: Averages, source: WeightSource, keys: Sequence[tuple[str, str]], limit: float
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return each estimate, its error and the share of weights that are cut at `limit`."""
    cut = frozen(np.minimum(source.weight, limit))
    share = float(np.mean(source.weight > limit))
    part = averages.weighted(cut)
    scales = Scales.of(averages.judged, source, cut)
    return {key: (*averages.spread(part, key, scales), share) for key in keys}


def _quantile(weight: F64, q: float) -> float:
    return float(np.quantile(weight, q))


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


def _undefined_notes(values: Mapping[tuple[str, str], Estimate], mean: str) -> Iterator[str]:
    highest = max((value.undefined for value in values.values()), default=0)
    if highest and mean == "users":
        yield (
            f"{counted(highest, 'user')} without a liked judgment left out of the means of "
            "fractions (mean='ratio' divides sums instead)"
        )


def _bias_notes(estimands: Mapping[str, Estimand]) -> Iterator[str]:
    """Name the metrics that are estimated with a bias even where propensities are right."""
    for label, estimand in estimands.items():
        if estimand.bias:
            yield f"{label} is biased even if propensities are right: {estimand.bias}"


def _order_notes(
    values: Mapping[tuple[str, str], Estimate],
    estimands: Mapping[str, Estimand],
    systems: Sequence[str],
) -> Iterator[str]:
    """Warn where a normalised metric puts two systems in another order than the plain one."""
    for label, estimand in estimands.items():
        plain = estimand.unnormalised
        if plain is None:
            continue
        counterpart = next(name for name, twin in estimands.items() if twin.metric == plain)
        flips = []
        for a, b in combinations(systems, 2):
            pairs = [(values[a, m], values[b, m]) for m in (label, counterpart)]
            gaps = [x.best - y.best for x, y in pairs if x.usable and y.usable]
            if len(gaps) == 2 and gaps[0] * gaps[1] < 0:
                flips.append(f"{a} and {b}")
        if flips:
            yield warn(
                f"{label} and {counterpart} disagree about {', '.join(flips)}: normalising "
                f"changes the order, and it is {plain.name} that adds up to what users get "
                f"(Jeunen et al. 2024)"
            )
