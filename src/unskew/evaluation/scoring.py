"""The values of every metric on judged lists, computed block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, frozen
from unskew.engine.progress import Progress
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError, Spelling
from unskew.evaluation.one_relevant import check_exact, expected_values
from unskew.evaluation.scores import System
from unskew.judging.judged import Judged, Need
from unskew.judging.notes import Attention, all_remarks, as_notes, outside_remarks
from unskew.judging.ranked import Undrawn
from unskew.judging.shape import BLOCK, MASKED, Basis, Matched, Scratch
from unskew.judging.tied import TiedRanks, TiedRun
from unskew.metrics.block import Block, Walk, ratio
from unskew.metrics.chance import TiedBlock
from unskew.metrics.listwise import check_finite, infinite_value, is_ours
from unskew.metrics.names import Metric
from unskew.runs import Run


def prepare(judged: Judged, metrics: Mapping[str, Metric], threads: int | None = None) -> Judged:
    """Return judged data ready for these metrics; refuse those that the data do not allow."""
    measures = Measures.of(metrics)
    if judged.train is None and "train" in measures.needs:
        label = next(k for k, m in metrics.items() if "train" in m.definition.needs)
        raise DataError(f"{label} needs the training ratings: give train=…")
    if judged.is_tied:
        systems = judged.systems.items()
        model = next((name for name, system in systems if not isinstance(system, Run)), None)
        check_tied(metrics, judged.depth, judged.unranked, model)
    if judged.targets is not None and judged.targets.exact:
        check_exact(judged.targets, metrics)
        return judged.prepare(Need(), threads)
    models = [name for name, system in judged.systems.items() if not isinstance(system, Run)]
    catalogue = "catalogue" in measures.needs or judged.unranked == "last"
    need = Need(
        scan=measures.deepest_hit,
        top=_shown_depth(models[0], measures.of_items) if models else 0,
        catalogue="known" if catalogue else "none",
    )
    return judged.prepare(need, threads)


def check_tied(
    metrics: Mapping[str, Metric], depth: int | None, unranked: str, model: str | None = None
) -> None:
    """Refuse what has no mean in closed form over all orders of equal scores.

    Parameters
    ----------
    wanted
        The metrics.
    depth, unranked
        How lists are cut and filled up.
    model
        A system that is no ready-made run.
    """
    reason = Spelling("ties='expected'", "--ties expected")
    instead = (
        "; take ",
        Spelling("ties='random'", "--ties random"),
        ", with several seeds, and average",
    )
    for label, metric in metrics.items():
        kind = metric.definition.of
        if metric.definition.tied is None:
            raise SettingError(
                f"{label} has no closed form of its mean over all orders of equal scores, which ",
                reason,
                " needs (tied=… of its definition)",
                *instead,
            )
        if kind != "judged" and model is not None:
            raise SettingError(
                f"{label} of {model}: ",
                reason,
                " would need all items that share a score at the cutoff, and only the first items "
                "of a model's lists are kept: rank them (us.rank) and evaluate the run",
            )
        if kind != "judged" and unranked == "last":
            raise SettingError(
                f"{label} counts the items of the lists, which unranked='last' would fill up with "
                "the whole catalogue: leave it out"
            )
        if metric.condensed and depth is not None:
            raise SettingError(
                f"{label}: depth={depth} can cut a list between equal scores, and then how "
                "many judged items it holds is random: leave depth=… out"
            )


def remarks(judged: Judged, metrics: Mapping[str, Metric], users: str) -> list[str]:
    """Return what a reader of these metrics should know, and warn where it matters."""
    attention = Measures.of(metrics).attention
    of_lists = all_remarks(judged.basis, judged.matched, users, attention)
    notes = [*judged.laying_notes, *as_notes(of_lists)]
    if judged.items is not None and judged.basis.catalogue is None:
        items = judged.numbering.known_items(everything=False)
        policy = "; such items take a place and are not liked"
        notes += as_notes(outside_remarks(items, judged.matched, policy))
    if not judged.basis.marks_pool:
        return notes
    inferred = [label for label, metric in metrics.items() if metric.params.get("pool") == "auto"]
    if inferred:
        notes.append(
            f"{', '.join(inferred)}: the pool is what the judgments mark; items outside it count "
            "as not relevant (pool=all puts every listed item into the pool)"
        )
    return notes


def score(
    basis: Basis,
    systems: Mapping[str, Matched],
    metrics: Mapping[str, Metric],
    *,
    threads: int,
    budget: int,
    progress: Progress | None = None,
) -> dict[str, System]:
    """Compute all metrics of all systems, block by block of lists."""
    if any(isinstance(matched, Undrawn) for matched in systems.values()):
        return _expect(systems, metrics, threads, progress)
    measures, total = Measures.of(metrics), len(basis.lists)
    rows, families = measures.rows, measures.families
    # One array for all systems: large enough to be mapped in large pages.
    everything = np.empty((len(systems), len(rows), total))
    values = dict(zip(systems, everything, strict=True))
    den = {name: {row: np.empty(total) for row in measures.ratios} for name in systems}
    step = _block_size(total, len(rows), basis, threads, budget)
    blocks = [(lo, min(lo + step, total)) for lo in range(0, total, step)]
    done = 0

    def fill(bounds: tuple[int, int]) -> None:
        nonlocal done
        lo, hi = bounds
        shared: dict[object, F64] = {}
        scratch = Scratch()
        for name, matched in systems.items():
            kind = TiedBlock if isinstance(matched, TiedRun | TiedRanks) else Block
            block = kind.of(basis, matched, lo, hi, shared, scratch, measures.walks)
            for family in families:
                family.fill(block, values[name][:, lo:hi], den[name])
        done += 1
        if progress is not None:
            progress(done, len(blocks))

    map_blocks(fill, blocks, threads, size=total * len(rows) * len(systems))
    return {
        name: System(
            values[name],
            den[name],
            matched.depth,
            _aggregates(basis, name, matched, measures.of_runs),
        )
        for name, matched in systems.items()
    }


def _aggregates(
    basis: Basis, system: str, matched: Matched, metrics: Mapping[str, Metric]
) -> dict[str, float]:
    """Compute metrics of a whole run."""
    is_tied = isinstance(matched, TiedRun)
    results = {}
    for label, metric in metrics.items():
        value = _formula(metric, is_tied)(basis, matched, metric.params, metric.whole_cutoff)
        if math.isinf(value):
            raise infinite_value(label, value, f"the lists of {system or 'a random order'}")
        results[label] = value
    return results


def _formula(metric: Metric, is_tied: bool) -> Callable[..., Any]:
    """Return what computes a metric; of equal scores without an order, its mean over all."""
    tied = metric.definition.tied
    return tied if is_tied and callable(tied) else metric.definition.compute


def _expect(
    systems: Mapping[str, Matched],
    metrics: Mapping[str, Metric],
    threads: int,
    progress: Progress | None,
) -> dict[str, System]:
    """Compute the expectation of all metrics over all draws of each list's others."""
    results = {}
    for done, (name, matched) in enumerate(systems.items(), start=1):
        assert isinstance(matched, Undrawn)
        values = expected_values(matched.targets, metrics, matched.rank, threads)
        results[name] = System(values, {}, matched.depth, {})
        if progress is not None:
            progress(done, len(systems))
    return results


def list_columns(judged: Judged, basis: Basis | None = None) -> pl.DataFrame:
    """Return what is known of each list, as `Scores.lists` holds it.

    Parameters
    ----------
    judged
        The lists.
    basis
        Another view of the judgments, some of which it may mask.
    """
    seen = judged.basis if basis is None else basis
    start = seen.judgments.start
    if basis is not None:
        start = np.append(0, np.cumsum(seen.view.label != MASKED))[start]
    columns = {
        "user": pl.Series(judged.owner),
        "liked": pl.Series(seen.liked.astype(np.int64)),
        "disliked": pl.Series(seen.disliked.astype(np.int64)),
        "test": pl.Series(np.diff(start)),
    }
    if seen.train is not None:
        columns["train"] = pl.Series(np.diff(seen.train.start)[judged.owner])
    lists = judged.targets
    if lists is not None:
        columns["targets"] = pl.Series(lists.size)
        if lists.one_relevant:
            columns["anchor"] = lists.tests.items.raw(lists.anchor)
        if lists.strata:
            columns["stratum"] = pl.Series(lists.stratum)
    if judged.occasions is not None:
        columns |= judged.occasions.columns()
    return pl.DataFrame(columns)


class _Family:
    """Metrics that differ in cutoff only."""

    def __init__(self, metric: Metric, members: list[tuple[int, int]]) -> None:
        """Group members (cutoff, row) of one metric, the first of which is given."""
        self.metric, self.params = metric, metric.params
        self.formula, self.tied = _formula(metric, False), _formula(metric, True)
        # The values of ours need no look.
        self.are_ours = is_ours(self.formula) and is_ours(self.tied)
        cutoffs = sorted({cutoff for cutoff, _ in members})
        self.cutoffs: I64 = frozen(np.array(cutoffs, np.int64))
        # Place among the cutoffs, and row of the result, of each.
        self.places = [(cutoffs.index(cutoff), row) for cutoff, row in members]
        first = self.places[0][1]
        straight = self.places == [(index, first + index) for index in range(len(cutoffs))]
        # The usual case: the rows of the result follow each other, and nothing is copied.
        self.rows = slice(first, first + len(cutoffs)) if straight else None
        self.is_ratio = self.params.get("mean") == "ratio"

    def fill(self, block: Block, values: F64, den: dict[int, F64]) -> None:
        """Write the values of a block's lists into their rows (and denominators into `den`)."""
        anti, condensed = self.metric.anti, self.metric.condensed
        seen = block.derive(anti, condensed) if anti or condensed else block
        formula = self.tied if isinstance(seen, TiedBlock) else self.formula
        result = formula(seen, self.params, self.cutoffs)
        if not self.are_ours:
            check_finite(self.metric.family, block, result, apart=self.is_ratio)
        if isinstance(result, tuple) and not self.is_ratio:
            top, bottom = result
            if self.rows is not None:
                ratio(top, bottom, out=values[self.rows])
                return
            result = ratio(top, bottom)
        if isinstance(result, tuple):
            result, bottom = result
            bottom = np.broadcast_to(bottom, result.shape)
            for index, row in self.places:
                den[row][block.lo : block.hi] = bottom[index]
        for index, row in self.places:
            values[row] = result[index]


class Measures(dict[str, Metric]):
    """Metrics by label, and what scoring needs of their definitions: worked out once."""

    @classmethod
    def of(cls, metrics: Mapping[str, Metric]) -> Measures:
        """Return metrics as such; what is worked out already stays."""
        return metrics if isinstance(metrics, Measures) else cls(metrics)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The labels with a value per list."""
        return tuple(label for label in self if label not in self.of_runs)

    @cached_property
    def of_runs(self) -> dict[str, Metric]:
        """Those of a whole run."""
        return {k: metric for k, metric in self.of_items.items() if metric.definition.of == "run"}

    @cached_property
    def of_items(self) -> dict[str, Metric]:
        """Those of all items of the lists, judged or not."""
        return {label: metric for label, metric in self.items() if metric.definition.of != "judged"}

    @cached_property
    def needs(self) -> frozenset[str]:
        """What must be there beside judgments and runs."""
        return frozenset(what for metric in self.values() for what in metric.definition.needs)

    @cached_property
    def deepest_hit(self) -> int | None:
        """The deepest rank at which a judged item can matter, None for the whole list."""
        judged = [metric for label, metric in self.items() if label not in self.of_items]
        if any(metric.condensed or metric.cutoff is None for metric in judged):
            return None
        return max((metric.whole_cutoff for metric in judged), default=0)

    @cached_property
    def attention(self) -> Attention:
        """What remarks depend on."""
        return Attention(
            cutoffs={k: metric.cutoff for k, metric in self.items() if metric.cutoff is not None},
            condensed=any(metric.condensed for metric in self.values()),
            needs_disliked=tuple(
                k for k, m in self.items() if m.definition.needs_disliked and not m.anti
            ),
        )

    @cached_property
    def families(self) -> list[_Family]:
        """Those with a value per list; metrics that differ in cutoff only are one."""
        groups: dict[object, tuple[Metric, list[tuple[int, int]]]] = {}
        for row, label in enumerate(self.rows):
            metric = self[label]
            family = (metric.name, metric.settings, metric.anti, metric.condensed)
            _, members = groups.setdefault(family, (metric, []))
            members.append((metric.whole_cutoff, row))
        return [_Family(metric, members) for metric, members in groups.values()]

    @cached_property
    def ratios(self) -> list[int]:
        """The rows whose mean is a ratio of sums."""
        return sorted(row for part in self.families if part.is_ratio for _, row in part.places)

    @cached_property
    def walks(self) -> dict[Walk, tuple[str, ...]]:
        """What each walk down the lists has to give, so that one walk gives it all."""
        parts: dict[Walk, set[str]] = {}
        for family in self.families:
            metric = family.metric
            needed = metric.definition.parts(family.params)
            walk = (metric.anti, metric.condensed, family.cutoffs.tobytes())
            parts.setdefault(walk, set()).update(needed)
        return {walk: tuple(sorted(names)) for walk, names in parts.items()}


def _block_size(total: int, columns: int, basis: Basis, threads: int, budget: int) -> int:
    """Choose lists per block: within the budget, and enough blocks to share among threads."""
    judgments = basis.judgments.value.size / max(len(basis.judgments.users), 1)
    user_bytes = 8 * 4 * max(columns, 1) + 24 * judgments + 64
    limit = max(int(budget / threads / user_bytes), 1)
    return max(min(limit, BLOCK, -(-total // threads)), 1)


def _shown_depth(name: str, metrics: Mapping[str, Metric]) -> int:
    """Return how deep the lists of a model must be kept for metrics of their items."""
    deepest = 0
    for label, metric in metrics.items():
        if metric.cutoff is None:
            raise SettingError(
                f"{label}: {name} ranks every target, so the metric needs a cutoff: {label}@10"
            )
        deepest = max(deepest, metric.cutoff)
    return deepest
