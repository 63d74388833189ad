"""From a model and target lists to a run, and to the exact ranks of judged items at any depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unskew.arrays import F64, I32, I64, Tile, frozen
from unskew.checks import checked, choose
from unskew.data.read.frames import as_matrix
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.judging.rank_tiles import RankJob, ScoredTile, Ties, TileBlock, group
from unskew.recommend.model import Model, SameForAll, as_model
from unskew.runs import Run
from unskew.splits.split import Split
from unskew.targets.designs import Targets
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
    """Return the exact rank of every judged item among all targets of its list; see `rank`."""
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
    others = [job.lists.train for job in designs if job.lists.train is not train]
    if any((len(other.users), len(other.items)) != (users, items) for other in others):
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


def job_on(lists: TargetLists, length: int, scan: int | None, depth: int | None) -> RankJob:
    """Return what a model is asked for on target lists, down to a depth."""
    if lists.exact:
        return full_job(lists)
    if depth is not None:
        length, scan = min(length, depth), min(depth, scan or depth)
    return RankJob(lists, length, limit=scan)


def full_job(lists: TargetLists) -> RankJob:
    """Return what a model is asked for, so that `anchors_of` knows the ranks among all candidates.

    Each user is ranked once, with all test items; strata are small, and ranked as they are.
    """
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
