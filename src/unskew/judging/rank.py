"""From a model and target lists to a run, and to the exact ranks of judged items at any depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I32, I64, Tile, frozen
from unskew.checks import checked, choose
from unskew.engine.rng import draw, key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.recommend.model import Model, as_model
from unskew.runs import Run
from unskew.targets.lists import TargetLists
from unskew.ties import own_number

TIES = ("id", "random")
TILE = 256
"""Users scored at a time. Fixed, because products of other shapes have other bits."""
TILE_CELLS = 1 << 25
"""Scores held at a time; with more items than fit, tiles have fewer users."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where a system ranks the judged items of each list, whatever the depth."""

    start: I64
    """Where each list's entries start; one more for the end."""
    rank: I32
    """Ranks of the judged items that could be scored, ascending in each list."""
    judgment: I32
    """The row of each in `TargetLists.judgments`."""
    scored: I64
    """How many targets of each list could be ranked."""
    unscored: I64
    """How many could not: they are in no place of the ranking."""


@checked
def rank(
    model: object,
    lists: TargetLists,
    depth: int = 100,
    *,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
) -> Run:
    """Rank the targets of each list and keep the best: exact, whatever the number of threads.

    Parameters
    ----------
    model
        A fitted model, or anything that `as_model` takes: an object with a `score` method, a
        function of user numbers, an array of scores.
    lists
        What to rank: `Targets.lists(…)`.
    depth
        How many items to keep of each list.
    ties
        Equal scores by ascending `id`, or `random` (by `seed`).
    seed
        Of random ties.
    threads
        How many threads to use; never changes a result.

    Examples
    --------
    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 9, 9]})
    >>> split = us.splits.LeaveOut(1).split(data, seed=1)[0]
    >>> lists = us.targets.AllItems().lists(split, liked=1)
    >>> us.rank(us.recommend.Popularity().fit(split.train), lists, depth=2)
    Run(3 lists, 3 items, depth up to 2)
    """
    if depth < 1:
        raise SettingError(f"depth must be at least 1, got {depth}")
    return _run_of(lists, _rank(model, lists, _within(lists, depth), False, ties, seed, threads))


@checked
def ranks_of(
    model: object,
    lists: TargetLists,
    *,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
) -> Ranks:
    """Return the exact rank of every judged item among all targets of its list; see `rank`."""
    return _ranks_of(_rank(model, lists, 0, True, ties, seed, threads))


def rank_both(
    model: object, lists: TargetLists, depth: int, ties: str, seed: int, threads: int | None
) -> tuple[Run | None, Ranks]:
    """Return the top of each list (none at depth 0) and the ranks of judged items at once.

    Users are scored once for both.
    """
    blocks = _rank(model, lists, _within(lists, depth), True, ties, seed, threads)
    return (_run_of(lists, blocks) if depth else None), _ranks_of(blocks)


def _within(lists: TargetLists, depth: int) -> int:
    """Return how many places a list can fill at the most, up to a depth."""
    return min(depth, max(int(lists.size.max(initial=1)), 1))


def _run_of(lists: TargetLists, blocks: list[_Block]) -> Run:
    item = np.concatenate([block.item for block in blocks])
    score = np.concatenate([block.score for block in blocks])
    held = np.concatenate([block.held for block in blocks])
    unscored = int(sum(int(block.unscored.sum()) for block in blocks))
    if int(held.sum()) < item.size:  # short lists leave empty places
        filled = item >= 0
        item, score = item[filled], score[filled]
    return Run(
        lists.ids,
        lists.tests.items,
        frozen(np.append(0, np.cumsum(held))),
        frozen(item),
        frozen(score),
        say_unscored(lists, unscored),
        lists,
    )


def _ranks_of(blocks: list[_Block]) -> Ranks:
    start = np.append(0, np.cumsum(np.concatenate([np.diff(block.start) for block in blocks])))
    whole = [
        np.concatenate([getattr(block, name) for block in blocks])
        for name in ("rank", "judgment", "scored", "unscored")
    ]
    return Ranks(frozen(start), *(frozen(one) for one in whole))


def say_unscored(lists: TargetLists, unscored: int) -> tuple[str, ...]:
    """Say how many targets had no score, and what becomes of them; nothing if all had one."""
    if not unscored:
        return ()
    how = {
        "fill": "they follow the others in random order",
        "forgive": "precision divides by what was ranked",
        "count": "they are in no list",
    }[lists.shortfall]
    return (f"{unscored:,} of {int(lists.size.sum()):,} targets could not be scored; {how}",)


@dataclass(frozen=True, eq=False)
class _Block:
    """What a stretch of lists gave."""

    item: I32
    score: F64
    held: I64
    start: I64
    rank: I32
    judgment: I32
    scored: I64
    unscored: I64


def _rank(
    model: object,
    lists: TargetLists,
    k: int,
    judged: bool,
    ties: str,
    seed: int,
    threads: int | None,
) -> list[_Block]:
    """Score tile by tile; rank each tile's lists."""
    choose("ties", ties, TIES)
    scorer = as_model(model, lists.train)
    users, items = len(lists.train.users), len(lists.train.items)
    step = tile_users(items)
    tiles = [(low, min(low + step, users)) for low in range(0, users, step)]
    work = _Ranker(lists, k, judged, *_tie_keys(lists, ties, seed))

    def one(bounds: tuple[int, int]) -> list[_Block]:
        first = int(np.searchsorted(lists.user, bounds[0]))
        last = int(np.searchsorted(lists.user, bounds[1]))
        if first == last:
            return []
        tile = _scores(scorer, lists, bounds, items)
        return [work.block(tile, bounds[0], lo, hi) for lo, hi in work.cut(first, last)]

    _ = lists.judgments if judged else None  # made once, before threads ask for it
    with one_blas_thread():
        done = map_blocks(one, tiles, threads, size=users * items)
    return [block for blocks in done for block in blocks]


def tile_users(items: int) -> int:
    """Return how many users are scored at a time: a number that depends on the data alone."""
    step = TILE
    while step > 1 and step * items > TILE_CELLS:
        step //= 2
    return step


def _scores(model: Model, lists: TargetLists, bounds: tuple[int, int], items: int) -> Tile:
    users = np.arange(*bounds, dtype=np.int32)
    tile = np.asarray(model.score(users))
    if tile.shape != (users.size, items):
        raise DataError(
            f"{type(model).__name__}.score gave an array of shape {tile.shape} for {users.size} "
            f"users and {items} items; expected a row per user and a column per item"
        )
    if tile.dtype not in (np.float32, np.float64):
        tile = tile.astype(np.float64)
    if lists.shortfall == "fill":
        tile = _filled(tile.astype(np.float64), users, lists.seed)
    return np.ascontiguousarray(tile)


def _filled(tile: F64, users: I32, seed: int) -> F64:
    """Put what could not be scored below everything else, in random order."""
    from unskew.judging import rank_kernels

    row, item = np.nonzero(np.isnan(tile))
    tile[np.isneginf(tile)] = np.nextafter(
        rank_kernels.FILLED, 0.0
    )  # the worst score is still a score
    chance = (draw(seed, "fill", users[row], item) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    tile[row, item] = rank_kernels.FILLED * (1.0 + chance)
    return tile


def _tie_keys(lists: TargetLists, ties: str, seed: int) -> tuple[int, I64, I64]:
    """Return the key of random ties and the numbers they hash, or nothing for ties by id."""
    none: I64 = frozen(np.zeros(0, np.int64))
    if ties == "id":
        return 0, none, none
    users, items = own_number(lists.tests.users), own_number(lists.tests.items)
    return key_of(seed, "ties"), frozen(users), frozen(items)


@dataclass(frozen=True, eq=False)
class _Ranker:
    """Ranks lists against a tile of scores, by the kernel that their design allows."""

    lists: TargetLists
    k: int
    judged: bool
    tie_key: int
    user_key: I64
    item_key: I64

    @property
    def ties(self) -> tuple[np.uint64, I64, I64]:
        """How ties are broken, as kernels take it."""
        return np.uint64(self.tie_key), self.user_key, self.item_key

    def cut(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut a tile's lists so that not too many targets are held at a time."""
        return [(first, last)] if self.lists.whole else list(self.lists.blocks(first, last))

    def block(self, tile: Tile, first_user: int, lo: int, hi: int) -> _Block:
        size = hi - lo
        item = np.full(size * self.k, -1, np.int32)
        score = np.full(size * self.k, np.nan)
        scored, unscored = np.zeros(size, np.int64), np.zeros(size, np.int64)
        start = np.zeros(size + 1, np.int64)
        judged = self.lists.judgments if self.judged else None
        most = 0 if judged is None else int(judged.start[hi] - judged.start[lo])
        rank, judgment = np.empty(most, np.int32), np.empty(most, np.int32)
        block = _Block(item, score, np.zeros(0, np.int64), start, rank, judgment, scored, unscored)
        hits = (self._whole if self.lists.whole else self._drawn)(tile, first_user, lo, hi, block)
        held = np.count_nonzero(item.reshape(size, self.k) >= 0, axis=1)
        return _Block(item, score, held, start, rank[:hits], judgment[:hits], scored, unscored)

    def _whole(self, tile: Tile, first_user: int, lo: int, hi: int, out: _Block) -> int:
        from unskew.judging import rank_kernels

        lists, pool = self.lists, self.lists.pool
        where = (tile, first_user, lists.user, lists.stratum, lo, hi, pool.cand, pool.cand_start)
        train = (lists.train.start, lists.train.item)
        key, user_key, item_key = self.ties
        if self.k:
            rank_kernels.top_of_tile(
                *where,
                pool.home,
                *train,
                self.k,
                key,
                user_key,
                item_key,
                out.item,
                out.score,
                out.unscored,
            )
        if not self.judged:
            return 0
        judged = lists.judgments
        hits = rank_kernels.ranks_in_tile(
            *where,
            pool.home,
            *train,
            judged.start,
            judged.item,
            key,
            user_key,
            item_key,
            out.start,
            out.rank,
            out.judgment,
            out.scored,
        )
        out.unscored[:] = lists.size[lo:hi] - out.scored
        return int(hits)

    def _drawn(self, tile: Tile, first_user: int, lo: int, hi: int, out: _Block) -> int:
        from unskew.judging import rank_kernels

        start, target = self.lists.block(lo, hi)
        judged_start, judged_item = self._judged()
        hits = rank_kernels.rank_lists(
            tile,
            first_user,
            self.lists.user,
            lo,
            hi,
            frozen(start),
            frozen(target),
            judged_start,
            judged_item,
            self.k,
            *self.ties,
            out.item,
            out.score,
            out.unscored,
            out.start,
            out.rank,
            out.judgment,
            out.scored,
        )
        if self.judged:
            out.unscored[:] = self.lists.size[lo:hi] - out.scored
        return int(hits)

    def _judged(self) -> tuple[I64, I32]:
        if self.judged:
            return self.lists.judgments.start, self.lists.judgments.item
        nothing: I32 = frozen(np.zeros(0, np.int32))
        return frozen(np.zeros(len(self.lists) + 1, np.int64)), nothing
