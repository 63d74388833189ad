"""Ranking of one tile of scores: for every design that is asked of a model, from the same scores.

Designs that rank the same candidates share one selection of the best items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I32, I64, U8, Tile, frozen
from unskew.data.ratings import Ids
from unskew.engine.rng import draw, key_of
from unskew.errors import SettingError
from unskew.judging.rank_kernels import HitRows, ItemRows, TieKeys, TileLists
from unskew.targets.lists import TargetLists
from unskew.ties import EXPECTED, own_number

NO_LIMIT = (1 << 31) - 1
"""A rank that no list reaches."""
SHARE = 8
"""Ranks are taken from the best items while these are at most one in so many candidates."""


@dataclass(frozen=True, eq=False)
class RankJob:
    """What a model is asked for on one set of target lists."""

    lists: TargetLists
    depth: int = 0
    """How many items of each list to keep; 0 = none."""
    judged: bool = True
    """Whether the ranks of judged items are wanted."""
    limit: int | None = None
    """The deepest rank of a judged item that matters; those below it are left out. None = all."""

    def __post_init__(self) -> None:
        for name in ("depth", "limit"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise SettingError(f"{name} must be at least 0, got {value}")

    @cached_property
    def judged_rows(self) -> ItemRows:
        """The judged items of each list; there are none where no ranks are wanted."""
        if self.judged:
            return ItemRows(self.lists.judgments.start, self.lists.judgments.item)
        start = np.zeros(len(self.lists) + 1, np.int64)
        return ItemRows(frozen(start), frozen(np.zeros(0, np.int32)))

    @cached_property
    def places(self) -> int:
        """How many places a list can fill at the most, up to the depth."""
        return min(self.depth, max(int(self.lists.size.max(initial=1)), 1))

    @property
    def deepest(self) -> int:
        """The limit as a number."""
        return NO_LIMIT if self.limit is None else min(self.limit, NO_LIMIT)

    def covers(self, job: RankJob) -> bool:
        """Tell whether this one, on the same lists, gives all that another one asks for."""
        enough = self.judged and self.deepest >= job.deepest
        return self.depth >= job.depth and (enough or not job.judged)


@dataclass(frozen=True, eq=False)
class TileBlock:
    """What a stretch of lists gave."""

    item: I32
    """A row per list: its best items, -1 = empty."""
    score: F64
    start: I64
    """Where the ranks of each list start; one more for the end."""
    rank: I32
    judgment: I32
    scored: I64
    unscored: I64
    tied: I32 | None = None
    """How many targets share each rank, where equal scores have no order."""

    @classmethod
    def of(cls, job: RankJob, lo: int, hi: int) -> TileBlock:
        """Make room for what lists lo..hi give."""
        size, k = hi - lo, job.places
        judgments = int(job.judged_rows.start[hi] - job.judged_rows.start[lo])
        return cls(
            np.full((size, k), -1, np.int32),
            np.full((size, k), np.nan),
            np.zeros(size + 1, np.int64),
            np.empty(judgments, np.int32),
            np.empty(judgments, np.int32),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
        )

    @property
    def hits(self) -> HitRows:
        """The room for ranks of judged items."""
        return HitRows(self.start, self.rank, self.judgment)

    def up_to(self, hits: int, tied: I32 | None = None) -> TileBlock:
        """Return the block with so many ranks, and what is tied with them."""
        rank, judgment = self.rank[:hits].copy(), self.judgment[:hits].copy()
        tied = None if tied is None else tied[:hits].copy()
        return replace(self, rank=rank, judgment=judgment, tied=tied)

    def shallower(self, limit: int) -> TileBlock:
        """Return the block without ranks beyond a limit."""
        keep = self.rank <= limit
        start = np.append(0, np.cumsum(keep))[self.start]
        return replace(self, start=start, rank=self.rank[keep], judgment=self.judgment[keep])


@dataclass(frozen=True, eq=False)
class Ties:
    """The order of equal scores."""

    keys: TieKeys
    """By number where there are none."""
    shared: bool = False
    """Whether equal scores have no order and share a rank."""

    @classmethod
    def of(cls, users: Ids, items: Ids, ties: str, seed: int) -> Ties:
        """Order equal scores by `id`, at `random` by the seed, or not at all (`expected`)."""
        none: I64 = frozen(np.zeros(0, np.int64))
        if ties != "random":
            return cls(TieKeys(np.uint64(0), none, none), shared=ties == EXPECTED)
        key = np.uint64(key_of(seed, "ties"))
        return cls(TieKeys(key, frozen(own_number(users)), frozen(own_number(items))))


@dataclass(frozen=True, eq=False)
class ScoredTile:
    """The scores of some users."""

    users: I32
    """Their numbers, ascending."""
    table: Tile
    """A row per user, or one row for all of them."""
    with_fill: dict[int, ScoredTile] = field(default_factory=dict)
    """By seed: the same where what could not be scored is filled up."""

    def rows(self, user: I32) -> I32:
        """Return the row of each user."""
        if self.table.shape[0] == 1:
            return frozen(np.zeros(user.size, np.int32))
        return frozen(np.searchsorted(self.users, user).astype(np.int32))

    def with_last(self) -> ScoredTile:
        """Return the tile with what could not be scored below everything else, all alike."""
        from unskew.judging import rank_kernels

        if not is_open(self.table):
            return self
        tile = self.table.astype(np.float64)
        tile[np.isneginf(tile)] = rank_kernels.WORST  # the worst score is still a score
        tile[np.isnan(tile)] = rank_kernels.FILLED
        return ScoredTile(self.users, frozen(tile))

    def lists(self, user: I32) -> tuple[int, int]:
        """Return the first list of these users, and the one after the last."""
        first = np.searchsorted(user, self.users[0])
        return int(first), int(np.searchsorted(user, self.users[-1], side="right"))

    def filled(self, seed: int) -> ScoredTile:
        """Return the tile with what could not be scored below everything else, in random order."""
        if seed not in self.with_fill:
            self.with_fill[seed] = self._fill(seed) if is_open(self.table) else self
        return self.with_fill[seed]

    def _fill(self, seed: int) -> ScoredTile:
        from unskew.judging import rank_kernels

        tile = self.table.astype(np.float64)
        if tile.shape[0] < self.users.size:
            tile = np.repeat(tile, self.users.size, axis=0)
        row, item = np.nonzero(np.isnan(tile))
        tile[np.isneginf(tile)] = rank_kernels.WORST  # the worst score is still a score
        bits = draw(seed, "fill", self.users[row], item) >> np.uint64(11)
        tile[row, item] = rank_kernels.FILLED * (1.0 + bits.astype(np.float64) * 2.0**-53)
        return ScoredTile(self.users, frozen(tile))


def is_open(table: Tile) -> bool:
    """Tell whether some scores are missing, or -inf."""
    return not bool((table > -np.inf).all())


@dataclass(frozen=True, eq=False)
class ItemOrder:
    """Candidates by falling score, for models that score alike for all users."""

    order: I32
    position: I32
    """Where each item stands, -1 if it is no candidate or has no score."""
    missing: U8
    """Marks the candidates without a score."""
    score: F64

    @cached_property
    def groups(self) -> tuple[I32, I32]:
        """By place: the first place with the same score, and the one after the last."""
        score = self.score[self.order]
        first = np.flatnonzero(np.append(True, score[1:] != score[:-1])[: score.size])
        size = np.diff(np.append(first, score.size))
        low = np.repeat(first, size).astype(np.int32)
        return frozen(low), frozen(np.repeat(first + size, size).astype(np.int32))

    @classmethod
    def of(cls, score: F64, cand: I32) -> ItemOrder:
        """Sort candidates; equal scores by number."""
        scores = score + 0.0  # -0 equals 0
        candidates = cand[~np.isnan(scores[cand])]
        order = candidates[np.argsort(-scores[candidates], kind="stable")]
        position = np.full(score.size, -1, np.int32)
        position[order] = np.arange(order.size, dtype=np.int32)
        missing = np.zeros(score.size, np.uint8)
        missing[cand[np.isnan(scores[cand])]] = 1
        return cls(frozen(order), frozen(position), frozen(missing), frozen(scores))


@dataclass(frozen=True, eq=False)
class DrawnLists:
    """A job whose lists have targets of their own."""

    number: int
    job: RankJob
    ties: Ties

    def blocks(self, tile: ScoredTile) -> Iterator[tuple[int, TileBlock]]:
        """Rank the lists of a tile; not too many targets are held at a time."""
        first, last = tile.lists(self.job.lists.user)
        for lo, hi in self.job.lists.blocks(first, last):
            yield self.number, self._block(tile, lo, hi)

    def _block(self, tile: ScoredTile, lo: int, hi: int) -> TileBlock:
        from unskew.judging import rank_kernels, tie_kernels

        job, lists = self.job, self.job.lists
        out = TileBlock.of(job, lo, hi)
        start, target = lists.block(lo, hi)
        targets, is_filled = ItemRows(frozen(start), frozen(target)), lists.shortfall == "fill"
        rows = tile.rows(lists.user[lo:hi])
        if self.ties.shared:
            tied = np.empty_like(out.rank)
            hits = tie_kernels.tied_in_lists(
                tile.table,
                rows,
                lo,
                hi,
                targets,
                job.judged_rows,
                job.deepest,
                is_filled,
                out.hits,
                tied,
                out.scored,
            )
            out.unscored[:] = lists.size[lo:hi] - out.scored
            return out.up_to(hits, tied)
        hits = rank_kernels.rank_lists(
            tile.table,
            rows,
            lists.user,
            lo,
            hi,
            targets,
            job.judged_rows,
            job.places,
            job.deepest,
            is_filled,
            np.uint64(key_of(lists.seed, "fill")),
            self.ties.keys,
            out.item.reshape(-1),
            out.score.reshape(-1),
            out.unscored,
            out.hits,
            out.scored,
        )
        if job.judged:
            out.unscored[:] = lists.size[lo:hi] - out.scored
        return out.up_to(hits)


@dataclass(frozen=True, eq=False)
class WholeLists:
    """Jobs whose lists hold all of the same candidates but the user's training items."""

    members: list[tuple[int, RankJob]]
    """With the number of each job."""
    user: I32
    """Whose the lists are: those of all jobs together."""
    stratum: I32
    ties: Ties
    common: ItemOrder | None = None
    """The order of a model that scores alike for all users."""

    @classmethod
    def of(cls, members: list[tuple[int, RankJob]], ties: Ties, common: F64 | None) -> WholeLists:
        """Bring jobs together; `common` are the scores of a model that scores alike for all."""
        lists = [job.lists for _, job in members]
        user, stratum = lists[0].user, lists[0].stratum
        if any(not np.array_equal(target_lists.user, user) for target_lists in lists[1:]):
            user = frozen(np.unique(np.concatenate([target_lists.user for target_lists in lists])))
            stratum = frozen(np.full(user.size, -1, np.int32))
        order, pool = None, lists[0].pool
        as_given = lists[0].shortfall != "fill" or common is None or not is_open(common)
        alike = as_given and not ties.keys.item.size and pool.cand_start.size == 2
        if common is not None and alike:
            order = ItemOrder.of(common, pool.cand)
        return cls(members, user, stratum, ties, order)

    @property
    def lists(self) -> TargetLists:
        """Lists that have the candidates, and the training items."""
        return self.members[0][1].lists

    @cached_property
    def shallow(self) -> frozenset[int]:
        """Numbers of the jobs of which the best items show all ranks that matter."""
        if self.ties.shared and self.common is not None:  # the order itself shows them
            return frozenset()
        candidates = int(np.diff(self.lists.pool.cand_start).max(initial=0))
        return frozenset(
            number
            for number, job in self.members
            if job.judged and SHARE * job.deepest <= candidates
        )

    @cached_property
    def depth(self) -> int:
        """How many of the best items are selected."""
        return max(
            max(job.places, max(job.deepest, 1) if number in self.shallow else 0)
            for number, job in self.members
        )

    def blocks(self, tile: ScoredTile) -> Iterator[tuple[int, TileBlock]]:
        """Rank the lists of a tile, for one job after the other."""
        first, last = tile.lists(self.user)
        if first == last:
            return
        if self.lists.shortfall == "fill":
            tile = tile.with_last() if self.ties.shared else tile.filled(self.lists.seed)
        best = self._best(tile, first, last)
        for number, job in self.members:
            lo, hi = tile.lists(job.lists.user)
            if lo < hi:
                yield number, self._block(tile, number, lo, hi, best)

    def _best(self, tile: ScoredTile, first: int, last: int) -> Best:
        """Select the best items of each user."""
        from unskew.judging import list_kernels, rank_kernels

        size, k, train = last - first, self.depth, self.lists.barred
        best = Best(
            first,
            np.full((size, k), -1, np.int32),
            np.full((size, k), np.nan),
            np.zeros(size, np.int64),
        )
        whose = self.user, first, last, train.start, train.item
        item = best.item.reshape(-1)
        if self.common is not None:
            list_kernels.count_missing(self.common.missing, *whose, best.unscored)
            items = self.common.position.size
            list_kernels.top_of_order(self.common.order, items, *whose, k, item)
            best.score[:] = np.where(best.item >= 0, self.common.score[best.item], np.nan)
        elif k:
            lists = self._where(tile, self.user, self.stratum, first, last)
            scores = best.score.reshape(-1)
            rank_kernels.top_of_tile(lists, k, self.ties.keys, item, scores, best.unscored)
        return best

    def _where(self, tile: ScoredTile, user: I32, stratum: I32, lo: int, hi: int) -> TileLists:
        """Return lists, their scores, candidates and training items as kernels take them."""
        pool, rows = self.lists.pool, tile.rows(user[lo:hi])
        train = ItemRows(self.lists.barred.start, self.lists.barred.item)
        candidates = pool.cand, pool.cand_start, pool.stratum
        return TileLists(tile.table, rows, user, stratum, lo, hi, *candidates, train)

    def _block(self, tile: ScoredTile, number: int, lo: int, hi: int, best: Best) -> TileBlock:
        """Return what one job asks for."""
        job = dict(self.members)[number]
        row: slice | I64 = slice(lo - best.first, hi - best.first)
        if job.lists.user.size != self.user.size:
            row = np.searchsorted(self.user, job.lists.user[lo:hi]) - best.first
        out = replace(
            TileBlock.of(job, lo, hi),
            item=best.item[row, : job.places],
            score=best.score[row, : job.places],
            unscored=best.unscored[row].copy(),
        )
        if not job.judged:
            return out
        if number in self.shallow and self.ties.shared:
            out = self._tied_in_best(tile, job, lo, hi, best.score[row, : job.deepest], out)
        elif number in self.shallow:
            out = self._meet(job, lo, hi, best.item[row, : job.deepest], out)
        elif self.common is not None:
            out = self._ranks_in_order(job, self.common, lo, hi, out)
        else:
            return self._ranks_in_tile(tile, job, lo, hi, out)
        if job.lists.shortfall == "fill":
            out.unscored[:] = 0
        out.scored[:] = job.lists.size[lo:hi] - out.unscored
        return out

    def _meet(self, job: RankJob, lo: int, hi: int, item: I32, out: TileBlock) -> TileBlock:
        """Look for judged items among the best."""
        from unskew.judging import list_kernels

        size, k, items = hi - lo, item.shape[1], len(job.lists.tests.items)
        bounds = np.arange(size + 1, dtype=np.int64) * k
        hits = list_kernels.meet(
            frozen(np.arange(lo, hi, dtype=np.int32)),
            frozen(bounds[:-1]),
            frozen(bounds[1:]),
            frozen(item.reshape(-1)),
            job.judged_rows.start,
            job.judged_rows.item,
            frozen(np.arange(items, dtype=np.int32)),
            0,
            size,
            np.empty(items + 1, np.int32),
            out.start,
            out.rank,
            out.judgment,
        )
        return out.up_to(hits)

    def _tied_in_best(
        self, tile: ScoredTile, job: RankJob, lo: int, hi: int, best: F64, out: TileBlock
    ) -> TileBlock:
        """Look for groups of equal scores that begin among the best."""
        from unskew.judging import tie_kernels

        tied = np.empty_like(out.rank)
        where = self._where(tile, job.lists.user, job.lists.stratum, lo, hi)
        hits = tie_kernels.tied_in_best(where, frozen(best), job.judged_rows, out.hits, tied)
        return out.up_to(hits, tied)

    def _ranks_in_order(
        self, job: RankJob, common: ItemOrder, lo: int, hi: int, out: TileBlock
    ) -> TileBlock:
        """Take the ranks of judged items from the order that all users share."""
        from unskew.judging import list_kernels, tie_kernels

        train = job.lists.barred
        lists = job.lists.user, lo, hi, ItemRows(train.start, train.item), job.judged_rows
        if self.ties.shared:
            tied = np.empty_like(out.rank)
            low, high = common.groups
            hits = tie_kernels.tied_in_order(
                common.position, low, high, *lists, job.deepest, out.hits, tied
            )
            return out.up_to(hits, tied)
        return out.up_to(
            list_kernels.ranks_in_order(common.position, *lists, job.deepest, out.hits)
        )

    def _ranks_in_tile(
        self, tile: ScoredTile, job: RankJob, lo: int, hi: int, out: TileBlock
    ) -> TileBlock:
        """Rank the judged items among all candidates."""
        from unskew.judging import rank_kernels, tie_kernels

        where, judged = (
            self._where(tile, job.lists.user, job.lists.stratum, lo, hi),
            job.judged_rows,
        )
        tied = np.empty_like(out.rank) if self.ties.shared else None
        if tied is None:
            hits = rank_kernels.ranks_in_tile(where, judged, self.ties.keys, out.hits, out.scored)
        else:
            hits = tie_kernels.tied_in_tile(where, judged, job.deepest, out.hits, tied, out.scored)
        out.unscored[:] = job.lists.size[lo:hi] - out.scored
        out = out.up_to(hits, tied)
        return out.shallower(job.deepest) if tied is None else out


@dataclass(frozen=True, eq=False)
class Best:
    """The best items of some users."""

    first: int
    """The number of the first one, among all that have lists."""
    item: I32
    score: F64
    unscored: I64


def group(jobs: Sequence[RankJob], ties: Ties, common: F64 | None) -> list[WholeLists | DrawnLists]:
    """Bring jobs together that rank the same candidates.

    Parameters
    ----------
    jobs
        What is asked for, all on the same training ratings.
    ties
        The order of equal scores.
    common
        The scores of a model that scores alike for all users.
    """
    sampled: list[WholeLists | DrawnLists] = []
    full: list[list[tuple[int, RankJob]]] = []
    for number, job in enumerate(jobs):
        if not job.lists.whole:
            sampled.append(DrawnLists(number, job, ties))
            continue
        for members in full:
            if _is_alike(members[0][1].lists, job.lists):
                members.append((number, job))
                break
        else:
            full.append([(number, job)])
    return [*(WholeLists.of(members, ties, common) for members in full), *sampled]


def _is_alike(first: TargetLists, second: TargetLists) -> bool:
    """Tell whether a user is asked to be given the same ranking."""
    return (
        first.strata == second.strata == 0
        and first.train is second.train
        and first.known is second.known
        and (first.shortfall == "fill") == (second.shortfall == "fill")
        and (first.shortfall != "fill" or first.seed == second.seed)
        and np.array_equal(first.pool.stratum, second.pool.stratum)
    )
