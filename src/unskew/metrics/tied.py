"""Metrics over all orders of equal scores: exact means in closed form.

Most metrics are sums over places or homogeneous in the number of hits: their own formula, fed with
expected counts, gives their exact mean. `TiedBlock` is a block of lists that gives these counts,
after McSherry & Najork 2008 (Computing information retrieval performance measures efficiently in
the presence of tied scores).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.judging.shape import Basis, Hits, Matched, Scratch
from unskew.judging.tied import TiedRanks, TiedRun
from unskew.metrics.block import Block, ratio
from unskew.metrics.settings import Params


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
        from unskew.metrics import tied_kernels

        hits = self.hits
        getattr(tied_kernels, name)(
            hits.start, hits.rank, hits.tied, hits.judgment, hits.depth, *arguments
        )

    def liked_within(self, limit: I64) -> F64:
        """How many liked items are expected above a rank of each list's own."""
        from unskew.metrics import tied_kernels

        hits = self.hits
        assert hits.tied is not None
        return tied_kernels.liked_within(
            hits.start, hits.rank, hits.tied, hits.judgment, hits.depth, self.view.label, limit
        )

    def item_mean(self, weight: F64, cutoffs: I64) -> F64:
        """Mean of a weight of the recommended items expected above each cutoff."""
        from unskew.metrics import tied_kernels

        run = self.matched
        assert isinstance(run, TiedRun)
        weights = frozen(weight[run.from_run])
        args = (run.start, run.stop, run.end, run.run.item, run.scores)
        total = tied_kernels.item_sum(*args, weights, cutoffs, self.lo, self.hi)
        ones = frozen(np.ones(weights.size))
        filled = tied_kernels.item_sum(*args, ones, cutoffs, self.lo, self.hi)
        return ratio(total, filled)


def mean_of_any(block: Block, params: Params, cutoffs: I64) -> F64:  # noqa: ARG001
    """Return the chance that a list shows a liked item: no function of the expected count."""
    chance = block.room("any", cutoffs.size)
    block.run_kernel("any_liked", block.view.label, cutoffs, chance)
    return chance


def mean_coverage(judged: Basis, matched: Matched, params: Params, cutoff: int) -> float:  # noqa: ARG001
    """Return the expected share of the catalogue that is recommended to anyone."""
    from unskew.metrics import tied_kernels

    assert isinstance(matched, TiedRun)
    assert judged.catalogue is not None
    run = matched.run
    in_run = tied_kernels.missed(
        matched.start, matched.stop, matched.end, run.item, matched.scores, len(run.items), cutoff
    )
    missed = np.ones(len(judged.judgments.items))
    missed[matched.from_run] = in_run
    missed = missed[judged.catalogue]
    return float(1.0 - missed.mean()) if missed.size else math.nan
