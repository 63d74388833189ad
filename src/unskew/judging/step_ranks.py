"""`rank_steps`: where a system ranks every next item, without users x items x steps in memory.

A model that scores a user once ranks once per user: at a later step the target moves up by one
place for each item above it that was met in between. A model that sees the history is asked in
fixed tiles of steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import I64, frozen
from unskew.checks import as_count, checked, choose
from unskew.data import times
from unskew.data.ratings import Ids, Ratings
from unskew.data.read import tables
from unskew.data.relevance import Relevance
from unskew.engine.progress import Progress, Steps, notebook_progress
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError
from unskew.judging.rank import rank_designs, score_table, tile_users
from unskew.judging.rank_kernels import ItemRows
from unskew.judging.rank_tiles import RankJob, Ties
from unskew.recommend.model import as_model
from unskew.recommend.sequential import NextModel
from unskew.report.text import counted
from unskew.splits.split import Split
from unskew.targets.designs import Targets
from unskew.targets.step_lists import StepLists
from unskew.ties import MODEL_TIES

USERS = 4_096
"""Users per block of the count of met items."""


@dataclass(frozen=True, eq=False)
class StepRanks:
    """Where a system ranks the target of each step."""

    rank: I64
    """From 1; 0 where the target is in no place of the list."""
    depth: I64
    """How many items each list has; where ranks were left out (`deepest`), a met item that is
    in no known place counts as if it had been in the list."""
    unscored: int = 0
    """Items without a score: of all users that are ranked for, or of all steps."""
    scores: int = 0
    """How many scores were asked for."""
    notes: tuple[str, ...] = ()


@notebook_progress("ranking of steps")
@checked
def rank_steps(
    model: object,
    steps: StepLists,
    *,
    deepest: int | None = None,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> StepRanks:
    """Return where a model ranks every next item: exact, whatever the number of threads.

    Parameters
    ----------
    model
        A model that sees the history (an object with `score_next`, see
        `us.recommend.NextModel`), or one that scores users once: a fitted model or anything else
        that `us.rank` takes.
    steps
        What to rank: `us.targets.next_items(…)`.
    deepest
        The deepest rank that matters: a model that scores users once may leave out the ranks
        below it (they are 0), which is quicker. None: all matter.
    ties
        Equal scores by ascending `id`, or `random` (by `seed`).
    seed
        Of random ties.
    threads
        How many threads to use; never changes a result.
    progress
        Called with (done, total) as tiles are done; of models that see the history.

    Returns
    -------
    StepRanks
        `rank` has the rank of each step's target from 1, or 0 where it has none.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 2, 2], "item": [7, 8, 9], "time": [1, 2, 3]}
    >>> test = {"user": [1, 1], "item": [8, 9], "time": [5, 6]}
    >>> steps = us.targets.next_items(train, test)
    >>> model = us.recommend.Popularity().fit(steps.train)
    >>> us.judging.rank_steps(model, steps).rank.tolist()  # 9 comes first once 8 was met
    [1, 1]
    """
    choose("ties", ties, MODEL_TIES)
    if deepest is not None:
        as_count("deepest", deepest)
    if callable(getattr(model, "score_next", None)):
        return _by_history(model, steps, ties, seed, threads, progress)  # type: ignore[arg-type]
    return _by_user(model, steps, deepest, ties, seed, threads)


def _by_user(
    model: object,
    steps: StepLists,
    deepest: int | None,
    ties: str,
    seed: int,
    threads: int | None,
) -> StepRanks:
    """Rank once per user, then count for each step what was met before it."""
    from unskew.judging import list_kernels

    scorer, pairs = as_model(model, steps.train), steps.pairs
    train, further = steps.train, steps.known
    if not steps.drops:
        train, further = steps.train.take(np.zeros(len(steps.train), np.bool_)), None
    design = Targets(candidates=lambda split: steps.candidates)  # noqa: ARG005
    before = {} if further is None else {"test": further}
    lists = design.lists(Split(train, pairs, known=before), Relevance(liked=1))
    limit = deepest
    if deepest is not None and steps.drops:  # items that were met in between may stand above
        limit = deepest + int(np.diff(pairs.start).max(initial=0))
    job = RankJob(lists, limit=limit)
    ranking = rank_designs(scorer, [job], ties=ties, seed=seed, threads=threads)[0]
    ranks = ranking.ranks
    owner = np.repeat(lists.user, np.diff(ranks.start)).astype(np.int64)
    pair_rows = _pair_numbers(pairs, owner, lists.judgments.item[ranks.judgment])
    pair_rank = np.zeros(len(pairs), np.int64)
    pair_rank[pair_rows] = ranks.rank
    scored = np.zeros(len(steps.users), np.int64)
    scored[lists.user] = ranks.scored
    missing = int(ranks.unscored.sum()), int(lists.size.sum())
    if not steps.drops:
        number = _pair_numbers(pairs, steps.user.astype(np.int64), steps.item)
        return StepRanks(frozen(pair_rank[number]), frozen(scored[steps.user]), *missing)
    pair, step_of = np.full((2, steps.log.item.size), -1, np.int64)
    rows = np.flatnonzero(steps.fresh)
    pair[rows] = _pair_numbers(pairs, steps.log_user[rows], steps.log.item[rows])
    step_of[steps.at] = np.arange(len(steps))
    rank, depth = np.zeros((2, len(steps)), np.int64)
    candidate = steps.candidates[pairs.item] if deepest is not None else pair_rank > 0
    counted = frozen(candidate.astype(np.uint8))
    arguments = frozen(pair), frozen(pair_rank), counted, frozen(step_of), frozen(scored)

    def count(low: int) -> None:
        high = min(low + USERS, len(steps.users))
        list_kernels.ranks_without_met(steps.log.start, low, high, *arguments, rank, depth)

    map_blocks(count, range(0, len(steps.users), USERS), threads, size=pair.size)
    return StepRanks(frozen(rank), frozen(depth), *missing)


def _pair_numbers(pairs: Ratings, user: I64, item: np.ndarray) -> I64:
    """Return the rows of pairs, which are in the order of users and items."""
    factor = np.int64(len(pairs.items))
    keys = pairs.user.astype(np.int64) * factor + pairs.item
    result: I64 = np.searchsorted(keys, user * factor + item)
    return result


def _by_history(
    model: NextModel,
    steps: StepLists,
    ties: str,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> StepRanks:
    """Ask for scores after each history, tile by tile."""
    from unskew.judging import list_kernels

    items, size = len(steps.items), tile_users(len(steps.items))
    keys = Ties.of(steps.users, steps.items, ties, seed).keys
    log, train = (ItemRows(part.start, part.item) for part in (steps.log, steps.barred))
    candidate = frozen(steps.candidates.astype(np.uint8))
    rank, depth = np.zeros((2, len(steps)), np.int64)
    tiles, name = range(0, len(steps), size), f"{type(model).__name__}.score_next"
    count = Steps(len(tiles), progress)

    def rank_tile(low: int) -> None:
        high = min(low + size, len(steps))
        scores = model.score_next(steps.histories(low, high))
        list_kernels.ranks_of_next(
            score_table(name, scores, (high - low, items), ("history", "histories")),
            low,
            high,
            steps.user,
            steps.item,
            steps.at,
            log,
            train,
            candidate,
            steps.drops,
            keys,
            rank,
            depth,
        )
        count.advance()

    with one_blas_thread():
        map_blocks(rank_tile, tiles, threads, size=len(steps) * items)
    total = int(steps.size.sum())
    return StepRanks(frozen(rank), frozen(depth), total - int(depth.sum()), total)


STEP = ("step", "turn")
SESSION = ("session", "sessionid")


def read_step_ranks(source: object, steps: StepLists, name: str) -> StepRanks:
    """Read the lists of one system and look where the target of each step stands.

    Parameters
    ----------
    source
        A file, a frame or a mapping of columns: user, step (as numbered in
        `StepLists.to_polars`; with sessions also session) or time (of the target), item, and rank
        (from 1, 1 is best) or score (highest first, equal ones by item); without both, rows are
        ranked as they stand.
    steps
        The steps.
    name
        Of the system, for messages.
    """
    table = tables.read_table(source)
    frame = table.frame
    user = table.need("user", tables.USER, None)
    item = table.need("item", tables.ITEM, None)
    step, unmatched = _step_numbers(table, steps, user)
    rank = _ranks(table, step, item, (user, item))
    code = steps.items.codes(frame[item]).astype(np.int64)
    matched = step >= 0
    depth = np.bincount(step[matched], minlength=len(steps)).astype(np.int64)
    _check_once(table, step, frame[item], matched)
    hit = matched & (code == np.where(matched, steps.item[step], -2))
    ranks = np.zeros(len(steps), np.int64)
    ranks[step[hit]] = rank[hit]
    notes = [f"{name}: {note}" for note in table.notes]
    if unmatched:
        notes.append(f"{name}: {counted(unmatched, 'row')} of no step that is asked left out")
    empty = int(np.count_nonzero(depth == 0))
    if empty:
        notes.append(f"{name}: {counted(empty, 'step has', 'steps have')} no list, which counts 0")
    met = _met(steps, step[matched], code[matched])
    if met:
        notes.append(
            f"{name}: {counted(met, 'place holds', 'places hold')} an item that the user had met, "
            "which cannot be the target; ranks are taken as they are"
        )
    return StepRanks(frozen(ranks), frozen(depth), notes=tuple(notes))


def _step_numbers(table: tables.DataTable, steps: StepLists, user: str) -> tuple[I64, int]:
    """Return the step of each row, -1 for none, and how many have none."""
    frame = table.frame
    step_column = table.pick("step", STEP, None)
    keys: dict[str, pl.Series] = {"user": pl.Series(steps.users.codes(frame[user]))}
    step_keys: dict[str, pl.Series] = {"user": pl.Series(steps.user)}
    if step_column is not None:
        keys["step"] = _whole_numbers(table, step_column)
        step_keys["step"] = pl.Series(steps.step).cast(pl.Int64)
        if steps.session.size:
            session = table.need("session", SESSION, None)
            keys["session"] = _whole_numbers(table, session)
            step_keys["session"] = pl.Series(steps.session).cast(pl.Int64)
    else:
        time = table.pick("time", tables.TIME, None)
        if time is None:
            raise DataError(
                f"{table.source}: lists of steps need a column step (as numbered in "
                "steps.to_polars()) or time; there are: " + ", ".join(frame.columns)
            )
        keys["time"] = pl.Series(times.time_column(table, time)[0])
        step_keys["time"] = pl.Series(steps.time)
    rows = pl.DataFrame(keys).with_columns(pl.col("user").cast(pl.Int64))
    numbers = (
        pl.DataFrame(step_keys).with_columns(pl.col("user").cast(pl.Int64)).with_row_index("_step")
    )
    if numbers.select(list(step_keys)).is_duplicated().any():
        raise DataError(
            "several steps of a user have the same time: name them by step in place of time"
        )
    joined = rows.join(numbers, on=list(keys), how="left", maintain_order="left")
    step: I64 = joined["_step"].cast(pl.Int64).fill_null(-1).to_numpy()
    return step, int(np.count_nonzero(step < 0))


def _whole_numbers(table: tables.DataTable, name: str) -> pl.Series:
    """Return a column of whole numbers."""
    column = tables.number_column(table, name, "numbers")
    integers = column.cast(pl.Int64, strict=False)
    bad = integers.is_null() | (integers.cast(pl.Float64) != column.cast(pl.Float64, strict=False))
    if bad.any():
        row = int(bad.fill_null(value=True).arg_true()[0])
        raise DataError(
            f"{table.source}: column {name!r} must hold whole numbers, got {column[row]!r} in row "
            f"{row + 1}"
        )
    return integers


def _ranks(table: tables.DataTable, step: I64, item: str, taken: tuple[str, ...]) -> I64:
    """Return the place of each row in its list, from 1."""
    frame = table.frame
    by_rank = table.pick("rank", tables.RANK, None, taken=taken)
    by_score = None if by_rank else table.pick("score", tables.SCORE, None, taken=taken)
    key = np.arange(frame.height, dtype=np.float64)
    if by_rank or by_score:
        column = tables.number_column(table, str(by_rank or by_score), "numbers")
        key = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        if np.isnan(key).any():
            row = int(np.argmax(np.isnan(key)))
            raise DataError(
                f"{table.source}: column {by_rank or by_score!r} has no number in row {row + 1}"
            )
        key = -key if by_score else key
    ids = Ids.number(frame[item])[1]
    order = np.lexsort((ids, key, step))
    sorted_steps = step[order]
    heads = np.flatnonzero(np.diff(sorted_steps, prepend=-2) != 0)
    first = np.repeat(heads, np.diff(np.append(heads, order.size)))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size) - first + 1
    return rank


def _check_once(table: tables.DataTable, step: I64, item: pl.Series, matched: np.ndarray) -> None:
    """Refuse an item that a list has twice."""
    pairs = pl.DataFrame({"step": step, "item": item}).filter(pl.Series(matched))
    again = pairs.is_duplicated()
    if again.any():
        row = int(np.flatnonzero(matched)[int(again.arg_true()[0])])
        raise DataError(
            f"{table.source}: an item is in a list twice, as in row {row + 1}: "
            f"{item[row]!r}; a list has an item once"
        )


def _met(steps: StepLists, step: I64, code: I64) -> int:
    """Count the places that hold an item which its user met before the step."""
    if not steps.drops:
        return 0
    factor = np.int64(len(steps.items))
    pair = steps.log_user * factor + steps.log.item
    distinct, first = np.unique(pair, return_index=True)
    listed = steps.user[step] * factor + code
    position = np.searchsorted(distinct, listed)
    position[position == distinct.size] = 0
    there = (distinct[position] == listed) & (code >= 0)
    return int(np.count_nonzero(there & (first[position] < steps.at[step])))
