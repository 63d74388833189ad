"""Adaptive sampling: more others for lists of which a small sample tells least (Li et al. 2023).

Where the relevant item stands first among n drawn others, its rank among all may be 1 or N / n. So
these lists, and only these, get twice as many others, until something stands above the relevant
item or the limit is reached. A larger sample contains the smaller one.

The number of others then depends on what was seen. The likelihood of the true rank does not mind:
given how many of the last sample are better, in which order they came tells nothing of the true
rank. Every estimator that takes n as fixed does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import as_count
from unskew.errors import SettingError
from unskew.judging.anchors import anchor_ranks
from unskew.judging.rank import ranks_of
from unskew.recommend.model import Model
from unskew.report.text import counted
from unskew.targets.lists import Drawn, TargetLists


@dataclass(frozen=True, eq=False)
class AdaptiveRanks:
    """Where a model ranks the relevant items, and among how many others."""

    rank: F64
    """NaN where it could not be scored."""
    n: I64
    """How many others were drawn for each list in the end."""
    again: int
    """How many lists were drawn further."""

    def remark(self, name: str, free: I64) -> str:
        """Return what adaptive sampling did and saved for a system."""
        return (
            f"{name}: more others were drawn for {counted(self.again, 'list')} of {self.n.size:,}; "
            f"{self.n.mean():,.0f} per list in the mean, where all items would be "
            f"{free.mean():,.0f}"
        )


def check_most(most: int, lists: TargetLists) -> None:
    """Refuse a limit that allows no more others than there are already."""
    as_count("adaptive", most)
    assert isinstance(lists.source, Drawn)
    if lists.source.n is not None and most <= lists.source.n:
        raise SettingError(
            f"adaptive={most}: lists start with {lists.source.n} others already; give the most "
            "others that a list may get, such as 32 times as many"
        )


def adaptive_ranks(
    lists: TargetLists, model: Model, most: int, *, ties: str, seed: int, threads: int | None
) -> AdaptiveRanks:
    """Let a model rank lists, and draw more others where the relevant item stands first.

    Parameters
    ----------
    lists
        One relevant item each, n others drawn uniformly.
    model
        Scores the items.
    most
        No list gets more others than this.
    ties, seed, threads
        As in `rank`.
    """
    rank = anchor_ranks(lists, ranks_of(model, lists, ties=ties, seed=seed, threads=threads))
    n = lists.size - 1
    again: Mask = np.zeros(n.size, np.bool_)
    while True:
        wanted = np.where((rank == 1) & (n > 0), _next_sizes(lists, n, most), n)
        rows = np.flatnonzero(wanted > n)
        if not rows.size:
            return AdaptiveRanks(rank, n, int(again.sum()))
        again[rows] = True
        for size in np.unique(wanted[rows]):
            some = rows[wanted[rows] == size]
            larger = _with_others(lists, some, int(size))
            ranking = ranks_of(model, larger, ties=ties, seed=seed, threads=threads)
            rank[some] = anchor_ranks(larger, ranking)
        n = wanted


def _next_sizes(lists: TargetLists, n: I64, most: int) -> I64:
    """Return how many others each list gets next: twice as many, or all; n where it has enough.

    Draws of few of many are a sequence of which more or less is taken; of a quarter and more they
    are not (`draw_others`), so there all others are taken, where the limit allows it.
    """
    assert isinstance(lists.source, Drawn)
    pool = np.diff(lists.pool.cand_start)[np.maximum(lists.stratum, 0)]
    twice = np.minimum(2 * n, most)
    in_sequence = (4 * twice <= lists.free) & (2 * lists.free >= pool)
    return np.where(in_sequence, twice, np.where(lists.free <= most, lists.free, n))


def _with_others(lists: TargetLists, rows: I64, size: int) -> TargetLists:
    """Return some of the lists with so many others, of which the present ones are a part."""
    assert isinstance(lists.source, Drawn)
    free = frozen(lists.free[rows])
    return replace(
        lists,
        user=frozen(lists.user[rows]),
        anchor=frozen(lists.anchor[rows]),
        stratum=frozen(lists.stratum[rows]),
        size=frozen(np.minimum(free, size) + 1),
        source=replace(lists.source, n=size, free=free),
        design={**lists.design, "others": size},
    )
