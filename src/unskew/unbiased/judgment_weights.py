"""The weight of each judgment: 1 / propensity, or as given; and how uneven weights are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from unskew.arrays import F64, frozen
from unskew.checks import as_numbers, is_number
from unskew.data.ratings import Ids, Ratings
from unskew.data.summary import effective_size
from unskew.errors import DataError, SettingError
from unskew.evaluation.scoring import remarks
from unskew.judging.judge import RawOptions, as_judged
from unskew.judging.judged import Judged, Need
from unskew.judging.notes import warn
from unskew.judging.shape import LIKED, View
from unskew.metrics.block import WHOLE
from unskew.metrics.definition import missing
from unskew.metrics.names import ESTIMANDS, Metric, parse
from unskew.metrics.settings import Params
from unskew.metrics.weighted import Linear, Weighted
from unskew.report.text import counted
from unskew.splits.interventions import Intervened
from unskew.splits.split import shared_rows
from unskew.unbiased.propensity import Propensity, propensity

_ESTIMAND = re.compile(rf"(anti-)?({'|'.join(ESTIMANDS)})(?:@(\d+))?", re.IGNORECASE)


@dataclass(frozen=True)
class Estimand:
    """What is estimated: a metric, or one of `ESTIMANDS`."""

    label: str
    metric: Metric

    @cached_property
    def weighted(self) -> Weighted:
        """The weighted form."""
        form = self.metric.definition.weighted
        if not isinstance(form, Weighted):
            raise _no_weighted_form(self.label, self.metric)
        return form

    @cached_property
    def linear(self) -> Linear:
        """The form as a sum over judged hits, by which two systems can be compared."""
        metric, form = self.metric, self.metric.definition.linear
        if form is None:
            what = "form as a sum over judged hits, which the difference of two systems needs"
            raise missing(self.label, metric.name, "linear", what)
        if self.params.get("per", "k") not in ("k", "all"):
            raise SettingError(f"{self.label}: take {metric.name} without per=…")
        if form.per_cutoff and metric.cutoff is None:
            raise SettingError(f"{self.label}: give a cutoff, as in {metric.name}@10")
        return form

    def discounts(self, longest: int) -> F64:
        """Return what a judged hit adds by its rank, in the linear form."""
        table = self.linear.discount(self.params, longest)
        return table / self.metric.whole_cutoff if self.linear.per_cutoff else table

    @cached_property
    def is_sum(self) -> bool:
        """Whether it is a sum over judged items divided by what is known."""
        needed = self.weighted.sum_if
        return needed is not None and all(self.params[k] == v for k, v in needed.items())

    @cached_property
    def params(self) -> Params:
        """The settings, defaults included."""
        return self.metric.params

    @property
    def _divides_by_all(self) -> bool:
        return self.params.get("per", "all") == "all"

    @property
    def is_ratio(self) -> bool:
        """Whether it is a ratio of two sums over judgments: a common factor of weights cancels."""
        return self.weighted.is_ratio and self._divides_by_all

    @property
    def bias(self) -> str:
        """Why weights leave a bias that more users do not remove, and what to take; or nothing."""
        anti = "anti-" * self.metric.anti
        if self.is_sum or self.is_ratio:
            return ""
        if self.weighted.bias:
            plain = self.unnormalised
            settings = (*(plain.settings if plain else ()), *(self.weighted.sum_if or {}).items())
            as_sum = replace(self.metric, settings=settings)
            return self.weighted.bias.format(anti=anti, plain=plain, sum=as_sum)
        if not self._divides_by_all:
            name = f"{anti}{self.metric.name}"
            return f"its divisor is not a sum over judgments; use {name} without per=…"
        return ""

    @property
    def unnormalised(self) -> Metric | None:
        """The metric that it normalises, with the settings of both."""
        name = self.weighted.unnormalised
        if not name:
            return None
        allowed = Metric(name).definition.params
        settings = tuple(setting for setting in self.metric.settings if setting[0] in allowed)
        return replace(self.metric, name=name, settings=settings)

    def uses_gain(self, view: View) -> bool:
        """Whether judgments add something that are not liked."""
        counts = self.metric.definition.counts_gain
        return counts and bool((view.gain[view.label != LIKED] > 0).any())

    def high(self, view: View, longest: int) -> float:
        """Return the largest value that it can have, with such gains in lists of such a length."""
        if self.weighted.high is None:
            return self.metric.definition.high
        return self.weighted.high(view, min(longest, self.metric.whole_cutoff), self.params)


def estimands(metrics: str | Metric | Iterable[str | Metric]) -> dict[str, Estimand]:
    """Read what is to be estimated; refuse what has no weighted form, saying why.

    Examples
    --------
    >>> from unskew.unbiased.judgment_weights import estimands
    >>> list(estimands(["P@10", "ADG@10", "ATOP"]))
    ['P@10', 'ADG@10', 'ATOP']
    """
    texts = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not texts:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'nDCG@10']")
    return {str(text): Estimand(str(text), _read(text)) for text in texts}


def metrics_of(estimands: Mapping[str, Estimand]) -> dict[str, Metric]:
    """Return the metric of each estimand."""
    return {label: estimand.metric for label, estimand in estimands.items()}


def _read(text: str | Metric) -> Metric:
    match = _ESTIMAND.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is not None:
        cutoff = None if match[3] is None else int(match[3])
        if cutoff == 0:
            raise SettingError(f"metric {text!r}: a cutoff must be at least 1")
        return Metric(match[2].upper(), (), cutoff, match[1] is not None)
    metric = parse(text)
    why = ""
    if metric.definition.of != "judged":
        why = (
            "it looks at the items of the lists, not at judgments: evaluate computes it without "
            "weights"
        )
    elif not isinstance(metric.definition.weighted, Weighted):
        raise _no_weighted_form(text, metric)
    elif metric.condensed:
        why = "a condensed list holds judged items only, so its ranks change with what is judged"
    elif metric.params.get("bound", "none") != "none":
        why = "bounds need no propensities: see `bounds`"
    if why:
        raise SettingError(f"{text} cannot be estimated by weights: {why}")
    return metric


def _no_weighted_form(text: object, metric: Metric) -> SettingError:
    """Return the error for a metric that cannot be estimated, with the reason if one is known."""
    reason = metric.definition.weighted
    if isinstance(reason, str):
        return SettingError(f"{text} cannot be estimated by weights: {reason}")
    return missing(text, metric.name, "weighted", "weighted form")


def with_unnormalised(estimands: Mapping[str, Estimand]) -> dict[str, Estimand]:
    """Add what every normalised metric normalises (nDCG: DCG): normalising can change the order."""
    result = dict(estimands)
    for estimand in estimands.values():
        plain = estimand.unnormalised
        if plain is not None and all(estimand.metric != plain for estimand in result.values()):
            result[str(plain)] = Estimand(str(plain), plain)
    return result


TOP = 0.01
MOST_WEIGHT = 1e12
"""The largest weight that is accepted, as of propensities: sums of squares stay finite."""


@dataclass(frozen=True)
class Weights:
    """How uneven weights are."""

    number: int
    effective: float
    """(Σw)² / Σw²: as many equal weights would be as precise."""
    largest: float
    top: float
    """Share of the total that the heaviest 1 % of the weights hold."""
    clipped: int = 0

    @classmethod
    def of(cls, weight: F64, clipped: int = 0) -> Weights:
        """Describe weights; without any, all is 0."""
        if not weight.size:
            return cls(0, 0.0, 0.0, 0.0, clipped)
        total = float(weight.sum())
        number = math.ceil(TOP * weight.size)
        heaviest = np.partition(weight, weight.size - number)[weight.size - number :]
        top = float(heaviest.sum()) / total
        return cls(int(weight.size), effective_size(weight), float(weight.max()), top, clipped)

    def __str__(self) -> str:
        text = (
            f"{counted(self.number, 'weight')}, effective sample size {self.effective:,.0f}; the "
            f"largest is {self.largest:.3g}, the top 1 % hold {100 * self.top:.0f} % of the "
            "weight"
        )
        return f"{text}; {self.clipped:,} clipped" if self.clipped else text


def judge_for_estimates(
    judgments: object,
    runs: object,
    metrics: Mapping[str, Metric],
    *,
    seed: int,
    threads: int | None,
    **data: Unpack[RawOptions],
) -> tuple[Judged, list[str]]:
    """Return judged data with one list per user and targets counted, and what to know of them."""
    judged = as_judged(judgments, runs, seed=seed, **data)
    if judged.targets is not None and not judged.targets.per_user:
        raise SettingError(
            "estimates need one list per user: lists with one relevant item, or within strata, "
            "rank other targets for every judgment"
        )
    if not len(judged.tests):
        raise DataError("there are no judgments")
    deepest = max(metric.whole_cutoff for metric in metrics.values())
    scan = None if deepest == WHOLE else deepest
    judged = judged.prepare(Need(scan=scan, catalogue="all"), threads)
    notes = [*judged.read.relevance, *judged.read.targets, *judged.read.runs]
    notes += remarks(judged, metrics, "with-list")
    train = judged.basis.train
    again = 0 if train is None else int(shared_rows(judged.judgments, train).sum())
    if again and judged.targets is None:
        judgments = counted(again, "judgment is", "judgments are")
        notes.append(
            warn(
                f"{judgments} of pairs in training, "
                "which cannot be targets: remove them from the test ratings"
            )
        )
    return judged, notes


@dataclass(frozen=True, eq=False)
class WeightSource:
    """Weights of the judgments and where they come from."""

    weight: F64
    name: str
    known: bool
    """Whether they are known, or only up to a common factor."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    liked_only: bool = False
    """Whether they hold for liked judgments only."""


def weigh(judged: Judged, source: object, weights: object, random: object) -> WeightSource:
    """Find the weight of every judgment: 1 / propensity, or what was given."""
    if weights is not None:
        if source is not None:
            raise SettingError("give either propensity or weights, not both")
        if random is not None:
            raise SettingError("random=… is for propensities; weights are taken as they are")
        return _given_weights(judged, weights)
    if isinstance(source, Propensity):
        if random is not None:
            raise SettingError("random=… goes to propensity(…), which is given already")
        model = source
    else:
        method = "popularity" if source is None else source
        fitted = random is not None and method == "popularity"
        rule = judged.basis.view.relevance if fitted else None
        model = propensity(judged.train, judged.tests, method, random=random, relevance=rule)
    chance = aligned(judged.judgments, model.test, model.value, "propensity")
    facts = {"propensity": dict(model.facts), "known": model.known, "liked_only": model.liked_only}
    name = f"propensity ({model.method})"
    return WeightSource(
        weight=frozen(1.0 / chance),
        name=name,
        known=model.known,
        facts=facts,
        notes=model.notes,
        liked_only=model.liked_only,
    )


def _given_weights(judged: Judged, weights: object) -> WeightSource:
    if isinstance(weights, Intervened):
        if weights.weight is None:
            raise SettingError(
                "these ratings were drawn, not weighted: judge by them as they are, or take "
                "weigh(…) instead of sample(…)"
            )
        values = aligned(judged.judgments, weights.ratings, weights.weight, "weight")
        name = f"intervention ({weights.design['kind']}, {weights.design['method']})"
    else:
        column = as_numbers("weights", weights)
        if column.shape != (len(judged.tests),):
            raise DataError(
                f"weights: one per judgment is needed ({len(judged.tests):,}), got {column.shape}"
            )
        values, name = aligned(judged.judgments, judged.tests, column, "weight"), "given weights"
    bad = ~((values >= 0) & (values <= MOST_WEIGHT))
    if bad.any() or not values.sum() > 0:
        row = int(np.argmax(bad))
        example = f"{values[row]:g}, {_pair(judged.judgments, row)}" if bad.any() else "only 0"
        raise DataError(
            f"weights must be numbers from 0 to {MOST_WEIGHT:g} and not all 0, got {example}"
        )
    return WeightSource(frozen(values / values.mean()), name, False)


def aligned(judgments: Ratings, rows: Ratings, value: F64, what: str) -> F64:
    """Return a value per judgment from a value per row of ratings with the same pairs."""
    if _same_rows(judgments, rows):
        return np.asarray(value, np.float64)
    _, (here_u, there_u) = Ids.union(judgments.users, rows.users)
    items, (here_i, there_i) = Ids.union(judgments.items, rows.items)
    key = there_u[rows.user].astype(np.int64) * len(items) + there_i[rows.item]
    pairs = here_u[judgments.user].astype(np.int64) * len(items) + here_i[judgments.item]
    order = np.argsort(key, kind="stable")
    index = np.minimum(np.searchsorted(key[order], pairs), max(key.size - 1, 0))
    missing = key[order][index] != pairs if key.size else np.ones(pairs.size, np.bool_)
    if missing.any():
        raise DataError(
            f"{int(missing.sum()):,} of {pairs.size:,} judgments have no {what}, the first: "
            f"{_pair(judgments, int(np.argmax(missing)))}; make it from the same test ratings"
        )
    result: F64 = np.asarray(value, np.float64)[order][index]
    return result


def _pair(judgments: Ratings, row: int) -> str:
    user, item = int(judgments.user[row]), int(judgments.item[row])
    return f"user {judgments.users.values[user]!r}, item {judgments.items.values[item]!r}"


def _same_rows(first: Ratings, second: Ratings) -> bool:
    return first is second or (
        len(first) == len(second)
        and first.users.equals(second.users)
        and first.items.equals(second.items)
        and bool((first.user == second.user).all() and (first.item == second.item).all())
    )


def clipped_weights(weight: F64, clip: float | str | None) -> tuple[F64, int]:
    """Cut weights at a number or at a quantile such as 99%; tell how many were larger."""
    if clip is None:
        return weight, 0
    if isinstance(clip, str):
        try:
            share = float(clip.strip().removesuffix("%")) / (100 if "%" in clip else 1)
        except ValueError:
            share = -1.0
        if "%" in clip and not 0 < share <= 1:
            raise SettingError(f"clip: a quantile lies above 0% up to 100%, got {clip!r}")
        limit = float(np.quantile(weight, share)) if "%" in clip else share
    else:
        limit = float(clip) if is_number(clip) else math.nan
    if not 0 < limit < math.inf:
        raise SettingError(
            f"clip must be a weight above 0, or a quantile such as 99%; got {clip!r}"
        )
    return frozen(np.minimum(weight, limit)), int(np.count_nonzero(weight > limit))
