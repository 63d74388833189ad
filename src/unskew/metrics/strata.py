"""How a metric splits over strata of items: the part that the hits of one stratum add to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.judging.shape import LIKED, Basis, Scratch, View
from unskew.metrics.block import Block, ratio
from unskew.metrics.settings import Params


@dataclass(frozen=True, eq=False)
class Portion:
    """A block of lists, a metric of it, and the judgments of one stratum."""

    block: Block
    judged: Basis
    """What all systems share, the judgments of other strata masked."""
    view: View
    """The same judgments as the metric sees them: exchanged for an anti-metric."""
    compute: Callable[..., Any]
    params: Params
    cutoff: int

    @property
    def cutoffs(self) -> I64:
        """The cutoff as metrics take it."""
        return frozen(np.array([self.cutoff], np.int64))

    def value(self, block: Block) -> tuple[F64, F64 | None]:
        """Return top and bottom of the metric of a block; no bottom where it is no fraction."""
        result = self.compute(block, self.params, self.cutoffs)
        if isinstance(result, tuple):
            return np.array(result[0][0]), np.array(result[1][0])
        return np.array(result[0]), None

    def liked_hits(self) -> tuple[I64, I64]:
        """Return the list and the place of each liked hit above the cutoff."""
        hits = self.block.hits
        owner = np.repeat(np.arange(self.size), np.diff(hits.start))
        label = self.block.view.label[hits.judgment]
        hit = np.flatnonzero((label == LIKED) & (hits.rank <= self.cutoff))
        return owner[hit], hit

    def is_inside(self, hit: I64) -> Mask:
        """Tell which hits are liked and belong to the stratum."""
        inside: Mask = self.view.label[self.block.hits.judgment[hit]] == LIKED
        return inside

    @property
    def size(self) -> int:
        """Lists in the block."""
        return self.block.hi - self.block.lo


@dataclass(frozen=True)
class MetricStrata:
    """How a metric splits."""

    part: Callable[[Portion], F64]
    unless: Mapping[str, str] = field(default_factory=dict)
    """Settings with which it does not split."""

    def splits(self, params: Params) -> bool:
        """Tell whether the metric splits with these settings."""
        return all(params[key] != value for key, value in self.unless.items())


def over_hits(portion: Portion) -> F64:
    """Split a numerator that is a sum over judged hits, each on its own."""
    inside = portion.block.changed(
        judged=portion.judged, view=portion.view, scratch=Scratch(), shared={}, parts={}
    )
    bottom = portion.value(portion.block)[1]
    top = portion.value(inside)[0]
    if bottom is None or portion.params.get("mean") == "ratio":
        return top
    return ratio(top, bottom)


def to_first(formula: Callable[[I32], F64]) -> Callable[[Portion], F64]:
    """Give the value of a list, a function of the rank, to the stratum of its first liked item."""

    def part(portion: Portion) -> F64:
        owner, hit = portion.liked_hits()
        rows, first = np.unique(owner, return_index=True)
        hit = hit[first]
        values = np.zeros(portion.size)
        rank = portion.block.hits.rank[hit]
        values[rows] = np.where(portion.is_inside(hit), formula(rank), 0.0)
        return values

    return part


def by_count(portion: Portion) -> F64:
    """Split a value in proportion to the liked hits."""
    value = portion.value(portion.block)[0]
    owner, hit = portion.liked_hits()
    inside = portion.is_inside(hit)
    hits = np.bincount(owner, minlength=portion.size).astype(np.float64)
    inside_hits = np.bincount(owner[inside], minlength=portion.size).astype(np.float64)
    return np.where(hits > 0, value * inside_hits / np.maximum(hits, 1), value)


def by_precision(portion: Portion) -> F64:
    """Sum the precision at each liked hit of the stratum: all liked items above it count."""
    bottom = portion.value(portion.block)[1]
    assert bottom is not None
    owner, hit = portion.liked_hits()
    before = np.append(0, np.cumsum(np.bincount(owner, minlength=portion.size)))[owner]
    precision = (np.arange(1, hit.size + 1) - before) / portion.block.hits.rank[hit]
    inside = portion.is_inside(hit)
    total = np.bincount(owner[inside], precision[inside], portion.size).astype(np.float64)
    return ratio(total, bottom)
