"""Lists whose equal scores have no order: metrics are averaged over all of their orders.

A hit then has the first rank of its group of equal scores and the size of that group. Whatever
needs one order of a list refuses such lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I64, U8, Mask, frozen
from unskew.data.ratings import Ratings
from unskew.errors import DataError, SettingError, Spelling
from unskew.judging.rank_kernels import HitRows, ItemRows
from unskew.judging.ranked import Ranked
from unskew.judging.shape import Hits, Matched, Scratch
from unskew.report.text import counted
from unskew.run_tables import BY_SCORE
from unskew.runs import Run
from unskew.targets.lists import TargetLists


def refuse_order() -> SettingError:
    """Return the error of what needs one order of equal scores."""
    return SettingError(
        "this analysis needs one order of equal scores, and ",
        Spelling("ties='expected'", "--ties expected"),
        " averages over all of them, for evaluate, compare and plans only: take ",
        Spelling("ties='id' or ties='random'", "--ties id or --ties random"),
    )


@dataclass(frozen=True, eq=False)
class TiedRun(Matched):
    """A run laid over the common numbering, whose equal scores have no order."""

    end: I64 = field(kw_only=True)
    """Where each list ends, whatever the depth at which it is cut."""
    unranked: I64 = field(kw_only=True)
    """How many targets follow each list in random order; empty where they are in no place."""
    is_target: U8 = field(kw_only=True)
    """Of each judgment: whether it can be among these; empty where there are none."""
    limit: int | None = None
    """The depth at which lists are cut."""

    @cached_property
    def scores(self) -> F64:
        """The scores of the run; without any, no two places are equal."""
        score = self.run.score
        return frozen(np.full(self.run.item.size, np.nan) if score is None else score)

    @property
    def is_full(self) -> bool:
        """Whether lists go to the last target."""
        return self.unranked.size > 0 and self.limit is None

    @cached_property
    def depth(self) -> I64:
        """How many items of each list are ranked, with those that follow in random order."""
        if not self.unranked.size:
            lengths: I64 = self.stop - self.start
            return lengths
        full = self.end - self.start + self.unranked
        return full if self.limit is None else np.minimum(full, self.limit)

    def hits(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch | None = None) -> Hits:  # noqa: ARG002
        """Refuse: equal scores have no order."""
        raise refuse_order()

    def tied_hits(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch) -> Hits:
        """Return the judged items of lists lo..hi, each with its group of equal scores."""
        from unskew.judging import tie_kernels

        user = self.lists.user[lo:hi]
        capacity = int((judgments.start[user + 1] - judgments.start[user]).sum())
        start = scratch.array("start", (hi - lo + 1,), np.int64)
        rank, tied, judgment = (
            scratch.array(name, (capacity,), np.int32) for name in ("rank", "tied", "judgment")
        )
        count = tie_kernels.meet_tied(
            self.lists.user,
            self.start,
            self.scan,
            self.end,
            self.run.item,
            self.scores,
            ItemRows(judgments.start, judgments.item),
            self.to_run,
            self.unranked,
            self.is_target,
            lo,
            hi,
            scratch.array("mark", (len(self.run.items) + 1,), np.int32),
            HitRows(start, rank, judgment),
            tied,
        )
        depth = self.depth[lo:hi]
        return Hits(start, rank[:count], judgment[:count], depth, tied[:count])


@dataclass(frozen=True, eq=False)
class TiedRanks(Ranked):
    """A model of which the group of equal scores of every judged item is known."""

    def hits(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch | None = None) -> Hits:  # noqa: ARG002
        """Refuse: equal scores have no order."""
        raise refuse_order()

    def tied_hits(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch) -> Hits:  # noqa: ARG002
        """Return the judged items of lists lo..hi, each with its group of equal scores."""
        ranks = self.ranks
        assert ranks.tied is not None
        first, last = int(ranks.start[lo]), int(ranks.start[hi])
        start = ranks.start[lo : hi + 1] - first
        rank, judgment, tied = (
            part[first:last].copy() for part in (ranks.rank, ranks.judgment, ranks.tied)
        )
        return Hits(start, rank, judgment, self.depth[lo:hi], tied)


def tie_notes(runs: Mapping[str, Run], unranked: str) -> Iterator[str]:
    """Yield what equal scores of runs mean for means over all of their orders."""
    for name, run in runs.items():
        ties = run.tie_counts
        if ties is None:
            yield f"{name}: the lists have no scores, so no items are tied"
            continue
        items = counted(int(run.start[-1]), "listed item")
        yield f"{name}: {ties.tied:,} of {items} have a tied score"
        if ties.at_end and unranked == "out":
            lists = counted(ties.at_end, "list ends", "lists end")
            yield f"{name}: {lists} in a tie; items with the same score may have been cut off"


def tie(name: str, matched: Matched, limit: int | None, targets: TargetItems | None) -> TiedRun:
    """Take the equal scores of a run as tied.

    Parameters
    ----------
    name
        Of the system.
    matched
        Its lists as a whole, laid over the judgments.
    limit
        The depth at which lists are cut.
    targets
        Where targets that a list does not hold follow it in random order: what could be listed.
    """
    _check_order(name, matched.run)
    start, end, scan = matched.start, matched.stop, matched.scan
    unranked, is_target = frozen(np.zeros(0, np.int64)), frozen(np.zeros(0, np.uint8))
    if targets is not None:
        # A list that is not there stays so: no ranking was given that could be filled up.
        left = np.where(end > start, targets.count - targets.listed(matched), 0)
        unranked, is_target = frozen(left), targets.is_target
    if limit is not None:
        matched = replace(
            matched,
            stop=frozen(np.minimum(end, start + limit)),
            scan=frozen(np.minimum(scan, start + limit)),
        )
    return TiedRun(
        **{key: getattr(matched, key) for key in Matched.__dataclass_fields__},
        end=end,
        unranked=unranked,
        is_target=is_target,
        limit=limit,
    )


def _check_order(name: str, run: Run) -> None:
    """Refuse lists that their scores did not rank: then equal scores tell nothing of ties."""
    if run.tie_counts is None or run.tie_counts.rise < 0:
        return
    slot = run.tie_counts.rise
    row = int(np.searchsorted(run.start, slot, side="right")) - 1
    raise DataError(
        f"{name}: the list of {run.list_name(row)} is not in the order of its scores: "
        f"the score at rank {slot - int(run.start[row]) + 1} exceeds the one above it; ",
        Spelling("ties='expected'", "--ties expected"),
        " needs lists that are ranked by score: read them with ",
        replace(BY_SCORE, python="read_run(…, by='score', ties='id')"),
    )


@dataclass(frozen=True, eq=False)
class TargetItems:
    """Which items could be in the list of each user."""

    count: I64
    """How many, of each list."""
    is_target: U8
    """Of each judgment."""
    catalogue: Mask | None = None
    """The catalogue; None where lists hold targets only."""
    train: Ratings | None = None

    @classmethod
    def of_catalogue(
        cls, judgments: Ratings, count: I64, catalogue: Mask, train: Ratings | None
    ) -> TargetItems:
        """Take the catalogue without each user's training items; all judged items are in it."""
        from unskew.judging import tie_kernels

        is_target = np.ones(len(judgments), np.uint8)
        if train is not None:
            judged, trained = (ItemRows(part.start, part.item) for part in (judgments, train))
            is_target = tie_kernels.untrained(judged, trained, catalogue.size)
        return cls(count, frozen(is_target), frozen(catalogue), train)

    @classmethod
    def of_lists(cls, lists: TargetLists) -> TargetItems:
        """Take the targets of a design."""
        from unskew.judging import tie_kernels

        judgments = lists.judgments
        is_target = np.zeros(len(judgments), np.uint8)
        judged = ItemRows(judgments.start, judgments.item)
        for lo, hi in lists.blocks():
            start, item = lists.block(lo, hi)
            targets = ItemRows(frozen(start), frozen(item))
            tie_kernels.mark_targets(judged, lo, hi, targets, is_target)
        return cls(lists.size, frozen(is_target))

    def listed(self, matched: Matched) -> I64:
        """Count the targets that each list holds."""
        everything = np.ones(matched.from_run.max(initial=0) + 1, np.bool_)
        catalogue = everything if self.catalogue is None else self.catalogue
        return matched.count_slots(catalogue, self.train)[3]
