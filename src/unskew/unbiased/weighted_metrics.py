"""What is estimated by weights: metrics with a weighted form, and averages over liked items.

Metrics that ask for the *first* liked item, for as many items as are liked, or for what stands
above among the judged only, have no weighted form: their definition says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from unskew.errors import SettingError
from unskew.judging.shape import LIKED, View
from unskew.metrics.definition import missing
from unskew.metrics.estimands import ESTIMANDS
from unskew.metrics.names import Metric, parse
from unskew.metrics.settings import Params
from unskew.metrics.weighted import Weighted

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
    def is_sum(self) -> bool:
        """Whether it is a sum over judged items divided by what is known."""
        needed = self.weighted.sum_if
        return needed is not None and all(self.params[k] == v for k, v in needed.items())

    @property
    def needs_targets(self) -> bool:
        """Whether the number of targets must be known."""
        return self.weighted.needs_targets

    @cached_property
    def params(self) -> Params:
        """The settings, defaults included."""
        return self.metric.params

    @property
    def better(self) -> str:
        """`higher` or `lower`."""
        return self.metric.better

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
        kept = tuple(setting for setting in self.metric.settings if setting[0] in allowed)
        return replace(self.metric, name=name, settings=kept)

    def uses_gain(self, view: View) -> bool:
        """Whether judgments add something that are not liked."""
        counts = self.metric.definition.counts_gain
        return counts and bool((view.gain[view.label != LIKED] > 0).any())

    def high(self, view: View, longest: int) -> float:
        """Return the largest value that it can have, with such gains in lists of such a length."""
        if self.weighted.high is None:
            return self.metric.definition.high
        return self.weighted.high(view, min(longest, self.metric.whole_cutoff), self.params)

    @property
    def key(self) -> tuple[object, ...]:
        """What estimands share that differ in cutoff only."""
        return self.metric.name, self.metric.settings, self.metric.anti


def estimands(metrics: str | Metric | Iterable[str | Metric]) -> dict[str, Estimand]:
    """Read what is to be estimated; refuse what has no weighted form, saying why.

    Examples
    --------
    >>> from unskew.unbiased.weighted_metrics import estimands
    >>> list(estimands(["P@10", "ADG@10", "ATOP"]))
    ['P@10', 'ADG@10', 'ATOP']
    """
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not several:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'nDCG@10']")
    return {str(text): Estimand(str(text), _read(text)) for text in several}


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


def with_unnormalised(wanted: Mapping[str, Estimand]) -> dict[str, Estimand]:
    """Add what every normalised metric normalises (nDCG: DCG): normalising can change the order."""
    result = dict(wanted)
    for one in wanted.values():
        plain = one.unnormalised
        if plain is not None and all(other.metric != plain for other in result.values()):
            result[str(plain)] = Estimand(str(plain), plain)
    return result
