"""`bounds`: what systems score if every unjudged item were bad, or good."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import checked, choose
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.judging.judge import RawOptions, second_argument
from unskew.judging.shape import BLOCK, Basis, Matched, Scratch
from unskew.metrics import bounds as metric_bounds
from unskew.metrics.definition import missing
from unskew.metrics.names import Metric
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.unbiased.judgment_weights import Estimand, judge_for_estimates


@dataclass(frozen=True, eq=False)
class Bounds(Result):
    """The least and the largest value each system can have, whatever the unjudged items are."""

    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    observed: Mapping[tuple[str, str], float]
    low: Mapping[tuple[str, str], float]
    high: Mapping[tuple[str, str], float]
    users: int
    better: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per system and metric: observed, low, high."""
        keys = [(system, metric) for system in self.systems for metric in self.metrics]
        return pl.DataFrame(
            {
                "system": [key[0] for key in keys],
                "metric": [key[1] for key in keys],
                "observed": [self.observed[key] for key in keys],
                "low": [self.low[key] for key in keys],
                "high": [self.high[key] for key in keys],
            }
        )

    def settled(self, metric: str) -> list[tuple[str, str]]:
        """Return the pairs (better, worse) whose bounds do not meet: nothing can turn them."""
        choose("metric", metric, self.metrics)
        pairs = []
        for a, b in combinations(self.systems, 2):
            for first, second in ((a, b), (b, a)):
                if self.low[first, metric] > self.high[second, metric]:
                    lower = self.better[metric] == "lower"
                    pairs.append((second, first) if lower else (first, second))
        return pairs

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the range of each system, the observed value as a point."""
        import altair as alt

        label = choose("metric", metric or self.metrics[0], self.metrics)
        rows = self.table().filter(pl.col("metric") == label).drop("metric").to_dicts()
        canvas = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(24))
        y = alt.Y("system:N", title=None).scale(domain=list(self.systems))
        bars = canvas.mark_rule(strokeWidth=4, opacity=0.5).encode(
            x=alt.X("low:Q", title=label), x2="high:Q", y=y
        )
        points = canvas.mark_point(filled=True, size=70, opacity=1).encode(
            x=alt.X("observed:Q", title=label), y=y
        )
        return as_figure(alt.layer(bars, points), f"{label}: bounds", self.footer()[:1], rows)

    def _explanation(self) -> list[str]:
        return [
            "low to high: whatever the unjudged items are; mean over "
            f"{counted(self.users, 'user')}",
        ]

    def _content(self) -> dict[str, object]:
        return {"users": self.users, "bounds": self.table(), "notes": self.notes}

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, {counted(len(self.metrics), 'metric')}"


@checked
def bounds(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = "P@10",
    *,
    seed: int = 0,
    threads: int | None = None,
    **data: Unpack[RawOptions],
) -> Bounds:
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
    named = {label: Estimand(label, metric) for label, metric in by_label.items()}
    judged, notes = judge_for_estimates(judgments, runs, named, seed=seed, threads=threads, **data)
    mask = judged.with_list
    if not mask.any():
        raise DataError("no user has a list")
    observed: dict[tuple[str, str], float] = {}
    low: dict[tuple[str, str], float] = {}
    high: dict[tuple[str, str], float] = {}
    for name, matched in judged.matched.items():
        for label, metric in by_label.items():
            values = _limits(judged.basis, matched, label, metric)
            for into, column in zip((observed, low, high), values, strict=True):
                mine = column[mask]
                finite = mine[~np.isnan(mine)]
                into[name, label] = float(finite.mean()) if finite.size else math.nan
    fractions = [label for label, form in forms.items() if form.needs_targets]
    if fractions and judged.basis.lists.targets is not None:
        users = "over users who have, or could have, a liked item"
        notes.append(f"{' and '.join(fractions)}: {users}")
    return Bounds(
        metrics=tuple(by_label),
        systems=tuple(judged.systems),
        observed=observed,
        low=low,
        high=high,
        users=int(mask.sum()),
        better={label: metric.better for label, metric in by_label.items()},
        notes=tuple(notes),
    )


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


def _limits(basis: Basis, matched: Matched, label: str, metric: Metric) -> metric_bounds.Limits:
    """Return the observed, the least and the largest value of each list."""
    form = _form(label, metric)
    table = form.discount(metric.params, max(basis.longest, metric.whole_cutoff))
    return form.limits(_slots(basis, matched, metric, table))


def _slots(basis: Basis, matched: Matched, metric: Metric, discount: F64) -> metric_bounds.Slots:
    """Return what stands in the places of each list above the cutoff."""
    from unskew.metrics.kernels import lists

    cutoff, total = metric.whole_cutoff, len(basis.lists)
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
        part = np.empty((8, hi - lo))
        lists.slot_kinds(
            hits.start,
            hits.rank,
            hits.judgment,
            view.label,
            matched.depth[lo:hi],
            matched.start[lo:hi],
            items,
            discount,
            cutoff,
            part,
        )
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
