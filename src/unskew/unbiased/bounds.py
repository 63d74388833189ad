"""`bounds`: what systems score if every unjudged item were bad, or good."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Unpack

import numpy as np

from unskew.checks import checked
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.judging.judge import RawOptions, second_argument
from unskew.judging.shape import BLOCK, Basis, Matched, Scratch
from unskew.metrics import bounds as metric_bounds
from unskew.metrics.definition import missing
from unskew.metrics.names import Metric
from unskew.report.columns import HIGH, LOW, METRIC, SYSTEM, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.unbiased.judgment_weights import judge_for_estimates

BOUNDS = Question(
    name="bounds",
    columns=(SYSTEM, METRIC, Column("value", "value", "observed"), LOW, HIGH),
    method=Method(
        estimand="the mean over users, and its least and largest value whatever the unjudged "
        "items are",
        interval="bounds",
    ),
)


@checked
def bounds(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = "P@10",
    *,
    seed: int = 0,
    threads: int | None = None,
    **data: Unpack[RawOptions],
) -> Estimates:
    """Bound metrics from below and above by what unjudged items could be.

    P, RBP, DCG, HitRate and RR are least when every unjudged item is bad and largest when every
    one is good (DCG: has the largest gain of the judgments). Recall and F1 are largest when the
    unjudged items in the list are good and those outside are bad, and least the other way round.
    An anti-metric is bounded likewise, bad and good exchanged. A cutoff is needed.

    Parameters
    ----------
    judgments, runs, metrics, seed, data
        Judged data (`judge`) alone, with the metrics as the second argument; or raw data and their
        options as `judge` takes them.
    threads
        Never changes a result.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 1]}
    >>> result = us.unbiased.bounds(test, {"mine": {1: ["a", "b", "c"]}}, "P@3", liked=4)
    >>> print(result.table().rows()[0][2:])
    (0.3333333333333333, 0.3333333333333333, 0.6666666666666666)
    """
    runs, metrics = second_argument(judgments, runs, metrics, "P@10")
    by_label = labelled(metrics)
    forms = {label: _form(label, metric) for label, metric in by_label.items()}
    judged, notes = judge_for_estimates(
        judgments, runs, by_label, seed=seed, threads=threads, **data
    )
    mask = judged.with_list
    if not mask.any():
        raise DataError("no user has a list")
    rows = []
    for name, matched in judged.matched.items():
        for label, metric in by_label.items():
            limits = forms[label].limits(_slots(judged.basis, matched, metric, forms[label]))
            finite = [column[mask][~np.isnan(column[mask])] for column in limits]
            means = [float(column.mean()) if column.size else math.nan for column in finite]
            rows.append([name, label, *means])
    fractions = [label for label, form in forms.items() if form.needs_targets]
    if fractions and judged.basis.lists.targets is not None:
        notes.append(f"{' and '.join(fractions)}: over users who have, or could have, a liked item")
    users = int(mask.sum())
    line = f"low to high: whatever the unjudged items are; mean over {counted(users, 'user')}"
    return Estimates.of_rows(
        BOUNDS,
        rows,
        explanation=(line,),
        notes=tuple(notes),
        card={
            "users": users,
            "better": {label: metric.better for label, metric in by_label.items()},
        },
    )


def settled(bounds: Estimates, metric: str) -> list[tuple[str, str]]:
    """Return the pairs (better, worse) whose bounds do not meet: nothing can turn them.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.bounds import settled
    >>> test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 1]}
    >>> runs = {"good": {1: ["a"]}, "bad": {1: ["b"]}}
    >>> settled(us.unbiased.bounds(test, runs, "P@1", liked=4), "P@1")
    [('good', 'bad')]
    """
    rows = bounds[metric].rows.rows(named=True)
    pairs = []
    for a, b in combinations(rows, 2):
        for higher, lower in ((a, b), (b, a)):
            if higher["low"] > lower["high"]:
                pair = higher["system"], lower["system"]
                pairs.append(pair[::-1] if bounds.card["better"][metric] == "lower" else pair)
    return pairs


def _form(label: str, metric: Metric) -> metric_bounds.MetricBounds:
    """Return how a metric is bounded, or refuse it."""
    form = metric.definition.bounds
    if form is None:
        raise missing(label, metric.name, "bounds", "bounds in closed form")
    if metric.condensed:
        raise SettingError(f"{label}: bounds are of the metric of the whole list, not condensed")
    if {key for key, _ in metric.settings} - form.settings:
        raise SettingError(f"{label}: bounds are of the metric without settings, {metric.name}@k")
    if metric.cutoff is None:
        raise SettingError(f"{label}: bounds need a cutoff, as in {label}@10")
    return form


def _slots(
    basis: Basis, matched: Matched, metric: Metric, form: metric_bounds.MetricBounds
) -> metric_bounds.Slots:
    """Return what stands in the places of each list above the cutoff."""
    from unskew.metrics.kernels import lists

    cutoff, total = metric.whole_cutoff, len(basis.lists)
    discount = form.discount(metric.params, max(basis.longest, cutoff))
    view = basis.view.anti if metric.anti else basis.view
    liked, disliked = basis.liked, basis.disliked
    if metric.anti:
        liked, disliked = disliked, liked
    kinds, gains = np.empty((8, total)), np.zeros(total)
    items = matched.run.item if not matched.is_full else np.zeros(0, np.int32)
    scratch = Scratch()
    for lo in range(0, total, BLOCK):
        hi = min(lo + BLOCK, total)
        hits = matched.hits(basis.judgments, lo, hi, scratch)
        met = hits.start, hits.rank, hits.judgment
        places = matched.depth[lo:hi], matched.start[lo:hi], items
        part = np.empty((8, hi - lo))
        lists.slot_kinds(*met, view.label, *places, discount, cutoff, part)
        kinds[:, lo:hi] = part
        if metric.definition.counts_gain:
            near = hits.rank <= cutoff
            owner = np.repeat(np.arange(hi - lo), np.diff(hits.start))[near]
            gain = view.gain[hits.judgment[near]] * discount[hits.rank[near]]
            gains[lo:hi] = np.bincount(owner, gain, hi - lo)
    targets, unjudged = basis.lists.targets, kinds[5]
    return metric_bounds.Slots(
        cutoff=cutoff,
        discounted_liked=kinds[0],
        discounted_unjudged=kinds[2],
        liked=kinds[3],
        unjudged=unjudged,
        first_liked=kinds[6],
        first_possible=kinds[7],
        gains=gains,
        largest_gain=float(view.gain.max()) if view.gain.size else 0.0,
        liked_judgments=liked,
        outside=(
            None if targets is None else np.maximum(targets - liked - disliked - unjudged, 0.0)
        ),
    )
