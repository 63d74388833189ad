"""Metrics that are sums over the places of a list: what a liked item adds is known beforehand.

Their value is Σ a(u, i) y(u, i) over the recommended pairs, with coefficients a that the lists
alone determine and y what a judgment says: a random sample of judgments estimates it without bias.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64
from unskew.errors import SettingError
from unskew.judging.shape import View
from unskew.metrics.definition import REGISTRY, Definition
from unskew.metrics.names import Metric, parse
from unskew.metrics.settings import Params
from unskew.metrics.weighted import Linear, Weighted


@dataclass(frozen=True)
class PlaceSum:
    """A metric as a sum over places: the discount of a place times what its item is worth."""

    label: str
    metric: Metric
    form: Linear

    @property
    def params(self) -> Params:
        """The settings, defaults included."""
        return self.metric.params

    @property
    def counts_gain(self) -> bool:
        """Whether an item adds its gain; else 1 if it is liked."""
        return self.form.column(self.params)[0] == "gain"

    @property
    def is_per_list(self) -> bool:
        """Whether it is divided by the length of the list."""
        per_list = self.params.get("per", "k") == "list" or self.metric.cutoff is None
        return self.form.per_cutoff and per_list

    def discounts(self, rank: I64) -> F64:
        """Return what a place counts, 0 below the cutoff."""
        table = self.form.discount(self.params, int(rank.max(initial=1)))
        return np.where(rank <= self.metric.whole_cutoff, table[rank], 0.0)

    def divisors(self, depth: I64) -> F64:
        """Return what the sum of each list is divided by; at least 1."""
        if not self.form.per_cutoff:
            return np.ones(depth.size)
        cutoff = self.metric.whole_cutoff
        places = np.minimum(depth, cutoff) if self.is_per_list else np.full(depth.size, cutoff)
        return np.maximum(places, 1).astype(np.float64)

    def worth(self, view: View) -> F64:
        """Return what each judgment adds at a place that counts 1."""
        seen = view.anti if self.metric.anti else view
        return seen.gain if self.counts_gain else seen.liked


def place_sums(metrics: str | Metric | Iterable[str | Metric]) -> dict[str, PlaceSum]:
    """Read metrics that are sums over places; refuse others, with the reason and what to take.

    Examples
    --------
    >>> from unskew.unbiased.place_sums import place_sums
    >>> list(place_sums(["P@10", "anti-RBP(p=0.9)", "DCG@5"]))
    ['P@10', 'anti-RBP(p=0.9)', 'DCG@5']
    >>> place_sums("Recall@10")
    Traceback (most recent call last):
    unskew.errors.SettingError: Recall@10 cannot be estimated from judgments of recommended items: \
it is divided by all liked items of a user, also those that no system recommends; take one of P, \
DCG, RBP or an anti-twin
    """
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not several:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'DCG@10']")
    result = {}
    for text in several:
        metric = parse(text)
        why = _refusal(metric)
        if why:
            raise SettingError(
                f"{text} cannot be estimated from judgments of recommended items: {why}; take one "
                f"of {', '.join(_allowed())} or an anti-twin"
            )
        form = metric.definition.linear
        assert form is not None
        result[str(text)] = PlaceSum(str(text), metric, form)
    return result


def _refusal(metric: Metric) -> str:
    """Say why a metric is not a sum over places; nothing where it is."""
    definition, form = metric.definition, metric.definition.weighted
    if definition.of != "judged":
        return "it does not use judgments at all, and evaluate computes it"
    if metric.condensed:
        return "the ranks of a condensed list change with what is judged"
    if metric.params.get("bound", "none") != "none":
        return "a bound takes unjudged items as it likes, and here a sample is judged"
    if isinstance(form, Weighted) and form.unnormalised:
        return "it is divided by an ideal list, which may hold items that no system recommends"
    if definition.linear is None:
        return "it is not a sum over the places of a list with weights that are known beforehand"
    if not _is_sum(definition, metric.params):
        return "it is divided by all liked items of a user, also those that no system recommends"
    return ""


def _is_sum(definition: Definition, params: Params) -> bool:
    form = definition.weighted
    if not isinstance(form, Weighted) or form.sum_if is None:
        return False
    return all(params[key] == value for key, value in form.sum_if.items())


def _allowed() -> list[str]:
    return [name for name in REGISTRY if not _refusal(Metric(name))]
