"""From a model and target lists to a run, and to the exact ranks of judged items at any depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unskew.arrays import I32, I64, Tile, frozen
from unskew.checks import checked, choose
from unskew.data.read.frames import as_matrix
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.judging.rank_tiles import RankJob, ScoredTile, Ties, TileBlock, group
from unskew.recommend.model import Model, SameForAll, as_model
from unskew.runs import Run
from unskew.targets.lists import TargetLists
from unskew.ties import EXPECTED, MODEL_TIES

TILE = 256
"""Users scored at a time. Fixed, because products of other shapes have other bits."""
TILE_CELLS = 1 << 25
"""Scores held at a time; with more items than fit, tiles have fewer users."""
FEW_LISTED = 2
"""Tiles hold only users with lists where these are fewer than one in so many."""


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
    tied: I32 | None = None
    """How many targets share each rank, where equal scores have no order (`ties="expected"`)."""


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
        Number of items per list.
    ties
        Order of equal scores: `id`, `random`.

        By ascending id, or at random by `seed`.
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
    choose("ties", ties, MODEL_TIES)
    if depth < 1:
        raise SettingError(f"depth must be at least 1, got {depth}")
    job = RankJob(lists, depth, judged=False)
    return rank_designs(model, [job], ties=ties, seed=seed, threads=threads)[0].run


@checked
def ranks_of(
    model: object,
    lists: TargetLists,
    *,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
) -> Ranks:
    """Return the exact rank of every judged item among all targets of its list; see `rank`.

    Parameters
    ----------
    model, lists, ties, seed, threads
        As for `rank`.

    Returns
    -------
    Ranks
        `rank` has the rank of each judged item that could be scored, list by list; `judgment`
        its row in `lists.judgments`.

    Examples
    --------
    The test item of user 1 comes first of that user's targets, the one of user 2 second.

    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 9, 9]})
    >>> split = us.splits.LeaveOut(1).split(data, seed=1)[0]
    >>> lists = us.targets.AllItems().lists(split, liked=1)
    >>> ranks = us.judging.ranks_of(us.recommend.Popularity().fit(split.train), lists)
    >>> split.test.to_polars().select("user", "item").rows(), ranks.rank.tolist()
    ([(1, 7), (2, 9)], [1, 2])
    """
    choose("ties", ties, MODEL_TIES)
    job = RankJob(lists)
    return rank_designs(model, [job], ties=ties, seed=seed, threads=threads)[0].ranks


@dataclass(frozen=True, eq=False)
class Ranking:
    """What a model gave on one set of target lists."""

    job: RankJob
    blocks: list[TileBlock]

    @cached_property
    def run(self) -> Run:
        """The best items of each list."""
        lists, blocks = self.job.lists, self.blocks
        shape = (0, self.job.places)
        items = np.concatenate([np.zeros(shape, np.int32), *(block.item for block in blocks)])
        scores = np.concatenate([np.zeros(shape), *(block.score for block in blocks)])
        filled = items >= 0
        lengths = np.count_nonzero(filled, axis=1)
        unscored = int(sum(int(block.unscored.sum()) for block in blocks))
        is_filled = int(lengths.sum()) == items.size  # short lists leave empty places
        return Run(
            lists.ids,
            lists.tests.items,
            frozen(np.append(0, np.cumsum(lengths))),
            frozen(items.reshape(-1) if is_filled else items[filled]),
            frozen(scores.reshape(-1) if is_filled else scores[filled]),
            say_unscored(lists, unscored),
            lists,
        )

    @cached_property
    def ranks(self) -> Ranks:
        """Where the judged items of each list stand."""
        count, number = np.zeros(0, np.int64), np.zeros(0, np.int32)
        parts: list[tuple[Any, ...]] = [(count, number, number, count, count)]
        parts += [
            (np.diff(block.start), block.rank, block.judgment, block.scored, block.unscored)
            for block in self.blocks
        ]
        sizes, rank, judgment, scored, unscored = map(np.concatenate, zip(*parts, strict=True))
        tied = [block.tied for block in self.blocks if block.tied is not None]
        return Ranks(
            start=frozen(np.append(0, np.cumsum(sizes))),
            rank=frozen(rank),
            judgment=frozen(judgment),
            scored=frozen(scored),
            unscored=frozen(unscored),
            tied=frozen(np.concatenate(tied)) if tied else None,
        )


def rank_designs(
    model: object,
    designs: Sequence[RankJob],
    *,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
) -> list[Ranking]:
    """Rank for several designs in one pass: each user is scored once, tile by tile.

    Only users that have a list in any of the designs are scored.

    Parameters
    ----------
    model
        A fitted model, or anything that `as_model` takes.
    designs
        What to rank, all on the same training ratings.
    ties, seed, threads
        See `rank`; also `expected`, by which equal scores share a rank.

    Returns
    -------
    list
        The best items (`run`) and the ranks of judged items (`ranks`) for each design.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.judging.rank import rank_designs
    >>> from unskew.judging.rank_tiles import RankJob
    >>> data = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 9, 9]})
    >>> split = us.splits.LeaveOut(1).split(data, seed=1)[0]
    >>> model = us.recommend.Popularity().fit(split.train)
    >>> designs = us.targets.AllItems(), us.targets.TestTargets()
    >>> jobs = [RankJob(one.lists(split, liked=1), depth=2) for one in designs]
    >>> [ranking.run for ranking in rank_designs(model, jobs)]
    [Run(3 lists, 3 items, depth up to 2), Run(3 lists, 3 items, depth up to 1)]
    """
    choose("ties", ties, (*MODEL_TIES, EXPECTED))
    if not designs:
        return []
    train = designs[0].lists.train
    users, items = len(train.users), len(train.items)
    parts = [job.lists.train for job in designs if job.lists.train is not train]
    if any((len(part.users), len(part.items)) != (users, items) for part in parts):
        raise DataError("designs of one pass must have the same users and items")
    scorer = as_model(model, train)
    common = scorer.item_score if isinstance(scorer, SameForAll) else None
    tests = designs[0].lists.tests
    work = group(designs, Ties.of(tests.users, tests.items, ties, seed), common)

    def rank_tile(members: I32) -> list[tuple[int, TileBlock]]:
        tile = _scores(scorer, members, items)
        return [block for part in work for block in part.blocks(tile)]

    for job in designs:
        _ = job.lists.judgments if job.judged else None  # once, before threads ask for it
    tiles = list(_tiles(designs, users, items))
    cells = sum(tile.size for tile in tiles) * items
    with one_blas_thread():
        done = map_blocks(rank_tile, tiles, threads, size=cells)
    blocks: list[list[TileBlock]] = [[] for _ in designs]
    for number, block in (pair for pairs in done for pair in pairs):
        blocks[number].append(block)
    return [Ranking(job, parts) for job, parts in zip(designs, blocks, strict=True)]


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


def tile_users(items: int) -> int:
    """Return how many users are scored at a time: a number that depends on the data alone."""
    step = TILE
    while step > 1 and step * items > TILE_CELLS:
        step //= 2
    return step


def _tiles(designs: Sequence[RankJob], users: int, items: int) -> Iterator[I32]:
    """Cut the users into tiles; where few of them have lists, those alone.

    Where most have, tiles stand at the same place whatever the designs: the last bits of a product
    can depend on the place of a user in its tile.
    """
    listed = np.zeros(users, np.bool_)
    for job in designs:
        listed[job.lists.user] = True
    everyone = np.arange(users, dtype=np.int32)
    is_sparse = FEW_LISTED * np.count_nonzero(listed) < users
    scored_users = everyone[listed] if is_sparse else everyone
    step = tile_users(items)
    for low in range(0, scored_users.size, step):
        tile = scored_users[low : low + step]
        if listed[tile].any():
            yield frozen(tile)


def _scores(model: Model, users: I32, items: int) -> ScoredTile:
    """Score a tile of users."""
    rows = users[:1] if isinstance(model, SameForAll) else users
    name = f"{type(model).__name__}.score"
    table = score_table(name, model.score(rows), (rows.size, items), ("user", "users"))
    return ScoredTile(users, table)


def score_table(name: str, scores: object, shape: tuple[int, int], noun: tuple[str, str]) -> Tile:
    """Return the scores that a method of a model gave as kernels take them.

    Parameters
    ----------
    name
        Of the method.
    scores
        What it gave.
    shape
        How many rows and items it was asked for.
    noun
        What a row is, and several of them.
    """
    table = as_matrix(name, scores, "NaN")
    if table.shape != shape:
        raise DataError(
            f"{name} gave an array of shape {table.shape} for {shape[0]} {noun[1]} and {shape[1]} "
            f"items; expected a row per {noun[0]} and a column per item"
        )
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float64)
    return frozen(table)
