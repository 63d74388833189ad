"""Systems laid over target lists: runs made for them, and models by the ranks of judged items.

Where lists hold a sample of the candidates, the ranks of relevant items among all of them are known
too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unskew.arrays import F64, I32, I64, frozen
from unskew.data.ratings import Ids, Ratings
from unskew.errors import DataError, SettingError
from unskew.judging.shape import Hits, Lists, Matched, Scratch, inverse_table
from unskew.recommend.model import Model
from unskew.runs import Run
from unskew.splits.split import Split
from unskew.targets.designs import Targets
from unskew.targets.lists import TargetLists

if TYPE_CHECKING:  # lists that are given need nobody to rank
    from unskew.judging.rank import Ranking, Ranks
    from unskew.judging.rank_tiles import RankJob


def match_targets(
    name: str, run: Run, lists: TargetLists, all_lists: Lists, depth: int | None, scan: int | None
) -> Matched:
    """Lay a ready-made run over target lists; refuse items that its list did not ask for."""
    judgments = lists.judgments
    users, (theirs, mine) = Ids.union(judgments.users, run.users)
    if len(users) > len(judgments.users):
        is_target = np.zeros(len(users), np.bool_)
        is_target[theirs] = True
        stranger = run.users.values[int(np.argmin(is_target[mine]))]
        raise DataError(
            f"{name}: {np.count_nonzero(~is_target[mine]):,} of its lists were not asked for, the "
            f"first: {stranger!r}; lists are named as in the column `list` of the targets"
        )
    items, (ours, listed) = Ids.union(judgments.items, run.items)
    if len(items) > len(judgments.items):
        raise DataError(f"{name}: recommends items that are in no target list")
    # Numbers against text: common ids may stand in another order than those of the judgments.
    user_table, item_table = (
        inverse_table(table, table.size)[part] for table, part in ((theirs, mine), (ours, listed))
    )
    matched = Matched.of(
        run,
        all_lists,
        judgments.users,
        user_table,
        judgments.items,
        item_table,
        depth=depth,
        limit=scan,
    )
    if run.ranked_for is not lists:
        _check_targets(name, matched, lists)
    return matched


def _check_targets(name: str, matched: Matched, lists: TargetLists) -> None:
    from unskew.judging import list_kernels
    from unskew.judging.rank_kernels import ItemRows

    for lo, hi in lists.blocks():
        start, item = lists.block(lo, hi)
        row = list_kernels.first_stranger(
            matched.start,
            matched.stop,
            matched.run.item,
            matched.from_run,
            ItemRows(frozen(start), frozen(item)),
            lo,
            hi,
        )
        if row >= 0:
            slot = matched.run.item[matched.start[row] : matched.stop[row]]
            listed = matched.from_run[slot[slot >= 0]]
            inside = np.isin(listed, item[start[row - lo] : start[row - lo + 1]])
            raw = lists.tests.items.values[int(listed[int(np.argmin(inside))])]
            raise DataError(
                f"{name}: list {lists.ids.values[row]!r} holds item {raw!r}, which is not among "
                f"its targets; rank only the items of the column `item` of the targets"
            )


@dataclass(frozen=True, eq=False)
class Ranked(Matched):
    """A system of which the rank of every judged item is known, whatever the depth."""

    ranks: Ranks = field(kw_only=True)
    limit: int | None = None
    """The depth at which lists are cut."""

    @classmethod
    def over(
        cls,
        ranks: Ranks,
        run: Run | None,
        lists: Lists,
        users: Ids,
        items: Ids,
        limit: int | None,
    ) -> Ranked:
        """Lay ranks, and the top of the lists where it is needed, over target lists."""
        table = frozen(np.arange(len(items), dtype=np.int32))
        if run is None:
            start = frozen(np.zeros(len(lists) + 1, np.int64))
            run = Run(users, items, start, frozen(np.zeros(0, np.int32)))
        # Views of what is frozen are so too.
        start, stop = run.start[:-1], run.start[1:]
        return cls(run, lists, start, stop, stop, table, table, ranks=ranks, limit=limit)

    @property
    def is_full(self) -> bool:
        """Whether lists go to the last target."""
        return self.limit is None

    @cached_property
    def depth(self) -> I64:
        """How many targets of each list are ranked."""
        scored = self.ranks.scored
        return scored if self.limit is None else np.minimum(scored, self.limit)

    def hits(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch | None = None) -> Hits:  # noqa: ARG002
        """Return the judged items of lists lo..hi."""
        ranks = self.ranks
        first, last = int(ranks.start[lo]), int(ranks.start[hi])
        start = ranks.start[lo : hi + 1] - first
        rank, judgment = ranks.rank[first:last], ranks.judgment[first:last]
        if self.limit is not None:
            seen = rank <= self.limit
            start = np.append(0, np.cumsum(seen))[start]
            rank, judgment = rank[seen], judgment[seen]
        return Hits(start, rank.copy(), judgment.copy(), self.depth[lo:hi])

    def overlap(self, ratings: Ratings, owner: I32 | None = None) -> int:  # noqa: ARG002
        """Count the slots that hold a training item: none, as these are never targets."""
        return 0


@dataclass(frozen=True, eq=False)
class Undrawn(Ranked):
    """A system on lists whose others are not drawn: where it ranks the relevant items is known."""

    rank: F64 = field(kw_only=True)
    """Of each list's relevant item among all candidates; NaN where it could not be scored."""
    targets: TargetLists = field(kw_only=True)

    @classmethod
    def of_ranks(cls, rank: F64, scored: I64, targets: TargetLists, lists: Lists) -> Undrawn:
        """Lay the ranks of relevant items over target lists; `scored` candidates have a score."""
        from unskew.judging.rank import Ranks

        none = frozen(np.zeros(0, np.int32))
        length = np.where(scored > 0, targets.size, 0)  # nothing scored: no list at all
        ranks = Ranks(frozen(np.zeros(len(targets) + 1, np.int64)), none, none, length, none)
        empty = Ranked.over(ranks, None, lists, targets.ids, targets.judgments.items, None)
        return cls(**empty.__dict__, rank=rank, targets=targets)

    def hits(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch | None = None) -> Hits:  # noqa: ARG002
        """Refuse: what a list holds depends on the draw."""
        raise SettingError(
            "with exact=True no others are drawn, and this needs the lists themselves: leave exact "
            "out of the targets"
        )


def full_job(lists: TargetLists) -> RankJob:
    """Return what a model is asked for, so that `anchors_of` knows the ranks among all candidates.

    Each user is ranked once, with all test items; strata are small, and ranked as they are.
    """
    from unskew.judging.rank_tiles import RankJob

    settings = {key: value for key, value in lists.design.items() if key not in ("seed", "exact")}
    if lists.strata:
        source: Any = lists.source
        card = {**settings, "others": "all"}
        size = frozen(lists.free + 1)
        return RankJob(replace(lists, source=replace(source, n=None), size=size, design=card))
    design = Targets(**{**settings, "relevant": "all", "others": "all"})
    tags = {} if lists.known is None else {"test": lists.known}
    split = Split(lists.train, lists.tests, known=tags)
    return RankJob(design.lists(split, lists.relevance, seed=lists.seed))


def anchors_of(lists: TargetLists, ranking: Ranking) -> tuple[F64, I64]:
    """Return where each list's relevant item would stand among all its candidates.

    Less the test items that are in no list together with it and stand above it, that is its rank
    among all. NaN where it could not be scored; beside it, how many candidates of the user (in
    strata: of the list) could be.

    Parameters
    ----------
    lists
        One relevant item each.
    ranking
        What the model gave on the lists of `full_job`.
    """
    full_lists, ranks = ranking.job.lists, ranking.ranks
    if lists.strata:
        return anchor_ranks(full_lists, ranks), ranks.scored
    tests = lists.tests
    fixed = np.ones(len(tests), np.bool_)
    if full_lists.design["fixed"] == "liked":
        fixed = lists.relevance.is_liked(tests.value)
    before: I64 = np.append(0, np.cumsum(fixed[ranks.judgment]))
    above = before[:-1] - np.repeat(before[ranks.start[:-1]], np.diff(ranks.start))
    rank = np.full(len(tests), np.nan)
    rank[ranks.judgment] = ranks.rank - above
    factor = np.int64(len(tests.items))
    rows = np.searchsorted(tests.user * factor + tests.item, lists.user * factor + lists.anchor)
    return rank[rows], ranks.scored[np.searchsorted(full_lists.user, lists.user)]


def full_ranks(
    lists: TargetLists, model: Model, ties: str, seed: int, threads: int | None
) -> tuple[F64, I64]:
    """Let a model rank, and return what `anchors_of` tells."""
    from unskew.judging.rank import rank_designs

    job = full_job(lists)
    ranking = rank_designs(model, [job], ties=ties, seed=seed, threads=threads)[0]
    return anchors_of(lists, ranking)


def anchor_ranks(lists: TargetLists, ranks: Ranks) -> F64:
    """Return where each list ranks its one relevant item; NaN where it could not be scored."""
    out = np.full(len(lists), np.nan)
    owner = np.repeat(np.arange(len(lists)), np.diff(ranks.start))
    is_anchor = lists.judgments.item[ranks.judgment] == lists.anchor[owner]
    out[owner[is_anchor]] = ranks.rank[is_anchor]
    return out
