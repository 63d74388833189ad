"""Lists with one relevant item: metrics of its rank, and what these are expected to be.

A list of `OneRelevant(others=n)` holds one relevant item and n others drawn from N. Where m of
these N stand above it, its rank in the list is 1 + x with x hypergeometric: x of the m among the n.
So the expectation of every metric of that rank over all draws is known, and nothing need be drawn
(`OneRelevant(others=n, exact=True)`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64, frozen
from unskew.engine.threads import map_blocks
from unskew.errors import SettingError
from unskew.metrics.definition import missing
from unskew.metrics.listwise import infinite_value, is_ours
from unskew.metrics.names import Metric, parse
from unskew.targets.lists import TargetLists

STEP = 4096
"""Lists per block: of fixed size, though no sum crosses lists."""


# Metrics of one rank


def value_at(metric: str | Metric, rank: ArrayLike, items: int) -> F64:
    """Return a metric of a list whose one relevant item stands at a rank.

    Parameters
    ----------
    metric
        One whose definition has `at_rank`: P@k, Recall, HitRate, F1@k, Rprec, AP, RR, DCG, nDCG,
        RBP or AUC. The relevant item has gain 1 and nothing else has any.
    rank
        Ranks from 1 up; between whole numbers too, where an estimate falls there.
    items
        How many items are ranked (AUC depends on it).

    Examples
    --------
    >>> from unskew.evaluation.one_relevant import value_at
    >>> value_at("RR@10", [1, 4, 11], items=100).tolist()
    [1.0, 0.25, 0.0]
    """
    parsed = of_rank(metric)
    form = parsed.definition.at_rank
    assert form is not None
    ranks = np.asarray(rank, np.float64)
    values = form.value(ranks, parsed.params, parsed.whole_cutoff, int(items))
    if not is_ours(form.value):
        _check_ranks(parsed, ranks, values)
    return values


def _check_ranks(metric: Metric, ranks: F64, values: F64) -> None:
    """Refuse infinity among the values of a user's metric at some ranks."""
    infinite = np.isinf(values)
    if infinite.any():
        index = np.unravel_index(np.argmax(infinite), values.shape)
        where = f"a list whose relevant item is at rank {ranks[index]:g}"
        raise infinite_value(metric, float(values[index]), where)


def of_rank(metric: str | Metric) -> Metric:
    """Return a metric that depends on the rank of the one relevant item alone, or refuse it."""
    parsed = parse(metric)
    form = parsed.definition.at_rank
    if form is None:
        raise missing(metric, parsed.name, "at_rank", "value for the rank of one relevant item")
    why = ""
    if parsed.anti or parsed.condensed:
        why = "looks at other judged items"
    elif {key for key, _ in parsed.settings} - form.settings:
        why = "has settings that make no sense with one relevant item"
    elif form.needs_cutoff and parsed.cutoff is None:
        why = "needs a cutoff here, as in @10"
    if why:
        raise SettingError(f"{metric} {why}")
    return parsed


# Expectations


def check_exact(lists: TargetLists, metrics: Mapping[str, Metric]) -> None:
    """Refuse metrics whose expectation is not known from the rank of the relevant item."""
    for label, metric in metrics.items():
        form = of_rank(metric).definition.at_rank
        assert form is not None
        if form.draws_change_nothing:
            raise SettingError(
                f"{label} of drawn others is expected to be {label} of all of them: take "
                f"others='all' instead of exact=True"
            )
        if metric.definition.counts_gain and _others_have_gain(lists):
            raise SettingError(
                f"{label}: with {lists.relevance}, a test item that is not liked has a gain and "
                "may be among the others: its value does not depend on one rank alone. Take "
                "gain='liked-only' or 'binary', or fixed='judged', or leave exact out"
            )


def _others_have_gain(lists: TargetLists) -> bool:
    if lists.design["fixed"] == "judged":
        return False
    disliked = lists.tests.value[~lists.relevance.is_liked(lists.tests.value)]
    return bool((lists.relevance.gains(np.unique(disliked)) > 0).any())


def expected_values(
    lists: TargetLists, metrics: Mapping[str, Metric], rank: F64, threads: int | None
) -> F64:
    """Return metrics x lists: the expectation over all draws of each list's others.

    Parameters
    ----------
    lists
        Lists with one relevant item.
    wanted
        Metrics by label.
    rank
        Where the relevant item of each list stands among all its candidates; NaN where it could
        not be scored: it is then in no place of any list and counts 0.
    threads
        Never changes a result.
    """
    from unskew.evaluation import kernels

    longest = int(lists.size.max(initial=1))
    deepest = max(min(metric.whole_cutoff, longest) for metric in metrics.values())
    places = np.arange(1, deepest + 1)
    values = frozen(np.array([value_at(metric, places, longest) for metric in metrics.values()]))
    better = np.where(np.isnan(rank), 0, rank).astype(np.int64) - 1
    sizes = lists.size - 1
    out = np.empty((len(metrics), len(lists)))

    def fill(low: int) -> None:
        part = slice(low, low + STEP)
        block = np.empty((len(metrics), better[part].size))
        kernels.expectations(
            frozen(better[part]), frozen(lists.free[part]), frozen(sizes[part]), values, block
        )
        out[:, part] = block

    map_blocks(fill, range(0, len(lists), STEP), threads, size=len(lists) * longest)
    return _with_gains(lists, metrics, out)


def random_values(lists: TargetLists, metrics: Mapping[str, Metric]) -> F64:
    """Return metrics x lists: what a random order is expected to score, every rank alike likely."""
    longest = int(lists.size.max(initial=1))
    means = [
        np.cumsum(value_at(metric, np.arange(1, longest + 1), longest)) / np.arange(1, longest + 1)
        for metric in metrics.values()
    ]
    return _with_gains(lists, metrics, np.array(means)[:, lists.size - 1])


def _with_gains(lists: TargetLists, metrics: Mapping[str, Metric], values: F64) -> F64:
    """Multiply by the gain of the relevant item (DCG); leave undefined without any (nDCG)."""
    forms = [metric.definition.at_rank for metric in metrics.values()]
    kinds = ["ignored" if form is None else form.gain for form in forms]
    if set(kinds) == {"ignored"}:
        return values
    gain = lists.relevance.gains(lists.judgments.value)
    for row, kind in enumerate(kinds):
        if kind == "factor":
            values[row] *= gain
        elif kind == "needed":
            values[row][gain == 0] = np.nan
    return values
