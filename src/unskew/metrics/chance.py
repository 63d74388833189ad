"""What a metric is expected to be when the targets of each list are put in random order.

Most metrics are sums over places or homogeneous in the number of hits: their own formula, fed with
expected counts, gives their exact expectation. `ChanceBlock` is a block of lists that gives these
counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.judging.shape import Basis, Hits, Matched, Scratch
from unskew.judging.tied import TiedRanks, TiedRun
from unskew.metrics.block import Block, log_discount, ratio
from unskew.metrics.settings import Params

if TYPE_CHECKING:
    from unskew.targets.lists import TargetLists


DRAWS = 10
"""Random orders that are averaged for metrics whose definition has no chance value."""


@dataclass(eq=False)
class ChanceBlock(Block):
    """A block of lists in random order: what a walk down them is expected to give."""

    lists: TargetLists = field(kw_only=True)
    reachable: F64 = field(kw_only=True)
    """1 for each judgment whose item is a target, else 0."""
    size: F64 = field(kw_only=True)
    """How many items are put in order."""

    def _condensed(self) -> Block:
        judged = self._sum(self.view.judged)
        hits = replace(self.hits, depth=judged.astype(np.int64))
        return self.changed(size=judged, hits=hits, is_condensed=True)

    @cached_property
    def _liked_targets(self) -> F64:
        """Liked targets of each list."""
        return self._sum(self.view.liked)

    def _sum(self, weight: F64) -> F64:
        """Sum a weight over the judged targets of each list."""
        from unskew.metrics.kernels import lists as chance_kernels

        total: F64 = chance_kernels.sum_lists(
            self.judged.judgments.start, frozen(weight * self.reachable)
        )
        return total

    def walk(self, part: str, cutoffs: I64) -> F64:
        """Return what a part of the walk is expected to be."""
        places, size = self.shown(cutoffs), np.maximum(self.size, 1)
        liked = self._liked_targets
        share: F64 = liked / size
        if part == "liked":
            return share * places
        if part == "disliked":
            disliked: F64 = self._sum(self.view.judged - self.view.liked) / size
            return disliked * places
        if part == "gains":
            return self._discounted(
                self._sum(self.view.gain), log_discount(self.judged.longest), places
            )
        if part == "first":
            return self.first(cutoffs)[0]
        if part == "precisions":
            # E = sum over places i of P(liked at i) x (1 + (i-1) P(liked | liked)) / i
            harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, int(places.max(initial=0)) + 1)))
            sums: F64 = harmonic[places.astype(np.int64)]
            again: F64 = np.maximum(liked - 1, 0) / np.maximum(self.size - 1, 1)
            return share * (sums + again * (places - sums))
        raise AssertionError(part)

    def first(self, cutoffs: I64) -> tuple[F64, F64]:
        """Return the expected reciprocal rank of the first liked item, and the chance of any."""
        from unskew.metrics.kernels import lists as chance_kernels

        places = self.shown(cutoffs)
        reciprocal, hit = np.empty_like(places), np.empty_like(places)
        chance_kernels.first_liked(
            self._liked_targets, self.size, np.ascontiguousarray(places), reciprocal, hit
        )
        return reciprocal, hit

    def _discounted(self, total: F64, discount: F64, depth: F64) -> F64:
        places = np.minimum(depth.astype(np.int64), discount.size - 1)
        sums = np.append(0.0, np.cumsum(discount[1:]))  # a table is indexed by rank, from 1
        expected: F64 = total / np.maximum(self.size, 1) * sums[places]
        return expected

    def discounted(self, weight: F64, discount: F64, cutoffs: I64) -> F64:
        """Return the expected sum of weight x discount over the judged items above each cutoff."""
        return self._discounted(self._sum(weight), discount, self.shown(cutoffs))

    def item_mean(self, weight: F64, cutoffs: I64) -> F64:
        """Return the mean weight of each list's targets: at any cutoff, chance expects that."""
        mean = np.empty(len(self.lists))
        for lo, hi in self.lists.blocks():
            start, item = self.lists.block(lo, hi)
            owner = np.repeat(np.arange(hi - lo), np.diff(start))
            with np.errstate(invalid="ignore"):
                mean[lo:hi] = np.bincount(owner, weight[item], hi - lo) / np.diff(start)
        return np.broadcast_to(mean, (cutoffs.size, mean.size))


def chance_of_any(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """Return the chance that a list holds a liked item: no function of the expected count."""
    assert isinstance(block, ChanceBlock)
    return block.first(cutoffs)[1]


@dataclass(eq=False)
class TiedBlock(Block):
    """A block of lists whose equal scores have no order: the mean over all of their orders."""

    @staticmethod
    def meet(judged: Basis, matched: Matched, lo: int, hi: int, scratch: Scratch) -> Hits:
        """Return where lists lo..hi of a system meet the judgments."""
        assert isinstance(matched, TiedRun | TiedRanks)
        return matched.tied_hits(judged.judgments, lo, hi, scratch)

    def run_kernel(self, name: str, *arguments: object) -> None:
        """Call a kernel on the hits of the block and their groups of equal scores."""
        from unskew.metrics.kernels import ties

        hits = self.hits
        getattr(ties, name)(hits.start, hits.rank, hits.tied, hits.judgment, hits.depth, *arguments)

    def liked_within(self, limit: I64) -> F64:
        """How many liked items are expected above a rank of each list's own."""
        from unskew.metrics.kernels import ties

        hits = self.hits
        assert hits.tied is not None
        return ties.liked_within(
            hits.start, hits.rank, hits.tied, hits.judgment, hits.depth, self.view.label, limit
        )

    def item_mean(self, weight: F64, cutoffs: I64) -> F64:
        """Mean of a weight of the recommended items expected above each cutoff."""
        from unskew.metrics.kernels import ties

        run = self.matched
        assert isinstance(run, TiedRun)
        weights = frozen(weight[run.from_run])
        args = (run.start, run.stop, run.end, run.run.item, run.scores)
        total = ties.item_sum(*args, weights, cutoffs, self.lo, self.hi)
        ones = frozen(np.ones(weights.size))
        filled = ties.item_sum(*args, ones, cutoffs, self.lo, self.hi)
        return ratio(total, filled)


def mean_of_any(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """Return the chance that a list shows a liked item: no function of the expected count."""
    chance = block.room("any", cutoffs.size)
    block.run_kernel("any_liked", block.view.label, cutoffs, chance)
    return chance


def mean_coverage(judged: Basis, matched: Matched, params: Params, cutoff: int) -> float:  # noqa: ARG001
    """Return the expected share of the catalogue that is recommended to anyone."""
    from unskew.metrics.kernels import ties

    assert isinstance(matched, TiedRun)
    assert judged.catalogue is not None
    run = matched.run
    in_run = ties.missed(
        matched.start, matched.stop, matched.end, run.item, matched.scores, len(run.items), cutoff
    )
    missed = np.ones(len(judged.judgments.items))
    missed[matched.from_run] = in_run
    missed = missed[judged.catalogue]
    return float(1.0 - missed.mean()) if missed.size else math.nan
