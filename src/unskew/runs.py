"""`Run`: the ranked lists of one system, from and to TREC, CSV, Parquet, frames and arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import checked, choose
from unskew.data.ratings import Ids, write_trec
from unskew.data.read import tables
from unskew.data.read.frames import as_column, as_matrix, as_number_matrix
from unskew.data.read.rating_columns import check_no_ratings
from unskew.engine.files import write_table
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError, Spelling, file_name
from unskew.report.text import counted
from unskew.run_tables import (
    BY_SCORE,
    ListKeys,
    named_columns,
    one_row_per_item,
    rank_column,
    run_table,
    say_keys,
    several_lists,
    unused_dates,
    without_nan,
)
from unskew.ties import (
    EXPECTED,
    TIES,
    ReadingCounts,
    TieCounts,
    are_places,
    order_by_rank,
    order_by_score,
)


@dataclass(frozen=True, eq=False)
class Run:
    """Ranked lists: one per user, or several (`keys`), best first; `-1` marks an empty slot.

    Build one with `read_run` or `Run.from_arrays`.

    Examples
    --------
    >>> import unskew as us
    >>> run = us.read_run({1: ["a", "b"], 2: ["c"]})
    >>> run, run.depth.tolist()
    (Run(2 lists, 3 items, depth up to 2), [2, 1])
    >>> run.to_polars().rows()
    [(1, 'a', 1), (1, 'b', 2), (2, 'c', 1)]
    """

    users: Ids
    """The users that have a list; list l belongs to user l. With `keys`: the numbers of lists."""
    items: Ids
    start: I64
    """Where each list starts in `item`; one more entry for the end."""
    item: I32
    score: F64 | None = None
    notes: tuple[str, ...] = ()
    ranked_for: object = None
    """The target lists that it ranks, where it was made for some."""
    repeated: int = 0
    """How many places hold an item that its list already has (`duplicates="keep"`)."""
    counts: ReadingCounts = ReadingCounts()  # noqa: RUF009 - frozen
    """What was left out when it was read."""
    keys: ListKeys | None = None
    """Whose list each one is, where users have one per date or session."""

    @classmethod
    def from_arrays(
        cls, users: ArrayLike, items: ArrayLike, scores: ArrayLike | None = None
    ) -> Run:
        """Make a run of a matrix with a row per user; negative integers and None are empty slots.

        Examples
        --------
        >>> import unskew as us
        >>> us.Run.from_arrays([7, 8], [[1, 2, 3], [3, -1, -1]])
        Run(2 lists, 3 items, depth up to 3)
        """
        table, who = as_matrix("items", items), as_matrix("users", users)
        if table.ndim != 2 or who.shape != table.shape[:1]:
            raise DataError(
                f"expected items of shape (users, depth) and one user per row, got items "
                f"{table.shape} and users {who.shape}"
            )
        grid = None if scores is None else as_number_matrix("scores", scores)
        if grid is not None and grid.shape != table.shape:
            raise DataError(f"scores {grid.shape} and items {table.shape} differ in shape")
        if table.dtype.kind in "iu":
            filled = table >= 0
        else:
            filled = np.array([[cell is not None for cell in row] for row in table], dtype=np.bool_)
        ids, order = Ids.number(as_column("user", who))
        if len(ids) != who.size:
            raise DataError("users: the same user has two rows")
        table, filled = table[np.argsort(order)], filled[np.argsort(order)]
        item_ids, codes = Ids.number(as_column("item", table[filled].tolist()))
        item = np.full(table.size, -1, np.int32)
        item[filled.ravel()] = codes
        start = np.arange(who.size + 1, dtype=np.int64) * table.shape[1]
        score = None if grid is None else frozen(grid[np.argsort(order)].ravel())
        run = cls(ids, item_ids, frozen(start), frozen(item), score)
        return _unique(_trim(run), "error", _Origin("arrays"))

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        depth = int(self.depth.max()) if len(self) else 0
        lists = counted(len(self), "list") if self.keys is None else say_keys(self.keys)
        return f"Run({lists}, {counted(len(self.items), 'item')}, depth up to {depth:,})"

    def list_name(self, number: int) -> str:
        """Return in words whose list it is."""
        if self.keys is not None:
            return self.keys.name(number)
        return f"user {self.users.values[number]!r}"

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        depth = self.depth
        facts = [
            ("lists", len(self)),
            ("items", len(self.items)),
            ("items per list", f"{depth.min():,} to {depth.max():,}" if len(self) else None),
            ("scores", "known" if self.score is not None else "not known"),
        ]
        return card("Run", "", facts, self.notes, "to_polars() gives the rows.")

    @property
    def depth(self) -> I64:
        """The length of each list."""
        lengths: I64 = np.diff(self.start)
        return lengths

    @cached_property
    def tie_counts(self) -> TieCounts | None:
        """How many scores are equal; None where there are no scores."""
        from unskew.data import kernels

        if self.score is None:
            return None
        return TieCounts(*map(int, kernels.count_ties(self.start, frozen(self.score))))

    def to_polars(self) -> pl.DataFrame:
        """Return user, item, rank (from 1) and, if known, score; empty slots left out.

        Where users have several lists, their date or session follows the user.
        """
        rows = np.repeat(np.arange(len(self), dtype=np.int32), self.depth)
        rank = np.arange(self.item.size) - np.repeat(self.start[:-1], self.depth) + 1
        filled = self.item >= 0
        owner = {"user": self.users.raw(rows[filled])}
        columns = {
            **(owner if self.keys is None else self.keys.columns(rows[filled])),
            "item": self.items.raw(self.item[filled]),
            "rank": pl.Series(rank[filled]),
        }
        if self.score is not None:
            columns["score"] = pl.Series(self.score[filled])
        return pl.DataFrame(columns)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write user, item, rank and score as CSV.

        A text id that a spreadsheet would carry out, such as =x, gets an apostrophe in front, which
        `read_run` removes but other programs see. Parquet and TREC files keep ids as they are.
        """
        write_table(self.to_polars(), path, "csv")

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write user, item, rank and score as Parquet."""
        write_table(self.to_polars(), path, "parquet")

    def to_trec(self, path: str | os.PathLike[str], tag: str = "unskew") -> None:
        """Write a TREC run file, which trec_eval ranks in the same order.

        trec_eval sorts by score, as a 32-bit float, and breaks ties by descending id. Where the
        scores do not keep this run's order under that rule (or there are none), the negated rank
        is written instead.
        """
        if self.keys is not None:
            raise DataError("a TREC run has one list per user, these have several: write CSV")
        frame = self.to_polars()
        if self.score is None or not self._falls_as_float32():
            frame = frame.with_columns(score=-pl.col("rank").cast(pl.Float64))
        lines = frame.select(
            "user", pl.lit("Q0").alias("q0"), "item", "rank", "score", pl.lit(tag).alias("tag")
        )
        write_trec(lines, path)

    def _falls_as_float32(self) -> bool:
        assert self.score is not None
        with np.errstate(over="ignore"):
            single = self.score.astype(np.float32)
        inside = np.ones(single.size, np.bool_)
        inside[self.start[:-1][self.depth > 0]] = False
        return bool(np.all(single[1:][inside[1:]] < single[:-1][inside[1:]]))


@checked
def read_run(
    source: object,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rank: str | int | None = None,
    score: str | int | None = None,
    lists: str | Sequence[str] | None = None,
    by: str | None = None,
    ties: str | None = None,
    seed: int = 0,
    duplicates: str = "error",
    nan: str = "error",
    gaps: str = "close",
    depth: int | None = None,
    keep_scores: bool = True,
    likely: tuple[Ids, Ids] | None = None,
    format: str | None = None,  # noqa: A002 - the word users expect
) -> Run:
    """Read the ranked lists of one system.

    Parameters
    ----------
    source
        A path (TREC run, CSV, TSV, Parquet), a data frame of any kind, as for `read_ratings`,
        with a row per recommended item (or a column of lists), a mapping of column names to
        arrays, or a mapping from user to a list of items, or to a mapping from item to score.
    user, item, rank, score
        Names (or numbers) of the columns, guessed unless given. Without rank and score the rows'
        own order is the ranking. Ranks are whole numbers below 2**53.
    lists
        Where users have several lists: the columns that tell them apart, users first, such as
        ``("user", "date")``. The second holds dates or times, as for `read_ratings`, or ids of
        sessions. `judge` then evaluates each list with what its user did from then on, or in that
        session.
    by
        Column that orders a list with both: `rank` or `score`. Default: rank; for TREC files score.

        Scores order TREC files in trec_eval too.
    ties
        How equal scores are ordered: `id`, `trec`, `random`, `input` (see `unskew.ties`).
        Default `id`; `trec` for TREC files. `expected`: as `id`, and scores are kept, for
        `judge(…, ties="expected")`.
    seed
        For `ties="random"`.
    duplicates
        An item twice in a list: `error`, `first` to keep its best place, or `keep` to keep all its
        places, which only `explain` and `evaluate` with `compat` take.
    nan
        NaN scores: `error`, or `drop` (leave these items out).
    gaps
        Gaps between ranks: `close`, or `keep` (empty slots).

        `close` makes 1, 2, 5 into 1, 2, 3. Either is counted in `Run.notes`.
    depth
        Keep at most this many items of each list.
    keep_scores
        Whether `Run.score` is filled; without it less memory is used.
    likely
        Users and items that will be met, such as those of the judgments: quicker, nothing else.
    format
        `csv`, `tsv`, `::`, `parquet`, `json` or `trec`; recognised unless given.

    Examples
    --------
    >>> import unskew as us
    >>> us.read_run({1: ["a", "b"], 2: {"a": 0.1, "c": 0.7}})
    Traceback (most recent call last):
    ...
    unskew.errors.DataError: lists must all be of one kind: items in order, or items with scores
    >>> us.read_run({1: ["a", "b"], 2: ["c"]})
    Run(2 lists, 3 items, depth up to 2)
    """
    choose("duplicates", duplicates, ("error", "first", "keep"))
    choose("nan", nan, ("error", "drop"))
    choose("gaps", gaps, ("close", "keep"))
    if ties is not None:
        choose("ties", ties, (*TIES, EXPECTED))
    if ties == EXPECTED:
        ties, keep_scores = "id", True
    if isinstance(source, Run):
        return _read_before(source, duplicates, depth, lists)
    column: str | None = None
    if lists is not None:
        user, column = named_columns(lists, user)
    table = run_table(source, format, isinstance(user, int) and isinstance(item, int))
    names: dict[str, Any] = {
        "user": table.need("user", tables.USER, user),
        "item": table.need("item", tables.ITEM, item),
        "rank": table.pick("rank", tables.RANK, rank),
        "score": table.pick("score", tables.SCORE, score),
        "list": None if column is None else table.pick("lists", (), column),
    }
    if table.frame.height == 0:
        raise DataError(f"{table.source}: there are no rows")
    if isinstance(table.frame[names["item"]].dtype, pl.List | pl.Array):
        table = one_row_per_item(table, names)
    if by is None:
        by = "score" if table.format == "trec" or names["rank"] is None else "rank"
    elif names[choose("by", by, ("rank", "score"))] is None:
        raise DataError(
            f"{table.source}: there is no {by} column for ", Spelling(f"by={by!r}", f"--by {by}")
        )
    ranks = None if names["rank"] is None else rank_column(table, names["rank"])
    scores = (
        None if names["score"] is None else tables.number_column(table, names["score"], "scores")
    )
    if scores is not None and ranks is None and score is None and table.format != "trec":
        check_no_ratings(table, names["score"], scores)
    notes, rows = _say_columns(table, names), table.frame.height
    if scores is not None and by == "score":
        table, scores, ranks, note = without_nan(table, scores, ranks, nan)
        notes += note
    if by == "rank" and not keep_scores:
        scores = None
    run, ranks = _numbered(table, names, ranks, scores, likely)
    ties = ties or ("trec" if table.format == "trec" else "id")
    origin = _Origin(table.source, table, names)
    run, more = _ranked(run, ranks, by, ties, seed, gaps, origin)
    run = _unique(run, duplicates, origin)
    run = replace(run, notes=(*notes, *more, *run.notes))
    was_scored = by == "score" and scores is not None
    run = _counted(run, rows - table.frame.height, was_scored, keep_scores)
    return run if depth is None else _cut(run, depth)


def _read_before(
    run: Run, duplicates: str, depth: int | None, lists: str | Sequence[str] | None
) -> Run:
    """Return a run that was read before, as far as more is asked of it."""
    if lists is not None and run.keys is None:
        raise SettingError("these lists were read as one per user: give lists=… to read_run")
    if lists is None and run.keys is not None:
        raise SettingError(
            "this takes one list per user, and the run has several: give it to judge, evaluate or "
            "gate"
        )
    run = _without_repeats(run, duplicates)
    return run if depth is None else _cut(run, depth)


@dataclass(frozen=True)
class _Origin:
    """Where lists come from, for messages."""

    name: str
    table: tables.DataTable | None = None
    names: Mapping[str, Any] = field(default_factory=dict)
    """The columns that were read."""

    def advice(self, repeated: str, otherwise: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what to do about a `rank` or an `item` that a list has twice.

        Where another column tells several lists of a user apart, these were meant.
        """
        parts: tuple[Any, ...] = ()
        if self.table is not None and self.names["list"] is None:
            parts = several_lists(self.table, self.names, self.names[repeated])
        return parts or otherwise


def _numbered(
    table: tables.DataTable,
    names: Mapping[str, Any],
    ranks: I64 | None,
    scores: pl.Series | None,
    likely: tuple[Ids, Ids] | None,
) -> tuple[Run, I64 | None]:
    """Number users and items, and bring the rows of each list together; return their ranks too."""
    frame, keys = table.frame, None
    likely_users, likely_items = likely or (None, None)

    def group() -> Any:
        if names["list"] is None:
            return Ids.group(frame[names["user"]], likely_users)
        return ListKeys.group(table, names["user"], names["list"])

    work: list[Callable[[], Any]] = [
        group,
        lambda: Ids.number(frame[names["item"]], likely_items),
    ]
    with tables.naming(table.source):
        (users, start, order), (items, i) = map_blocks(lambda do: do(), work, size=frame.height)
    if isinstance(users, ListKeys):
        keys, users = users, users.names
    values = None if scores is None else frozen(scores.cast(pl.Float64).to_numpy())
    run = Run(users, items, frozen(start), frozen(i), values, keys=keys)
    return (run, ranks) if order is None else _reordered(run, ranks, order)


def _reordered(run: Run, ranks: I64 | None, order: I64) -> tuple[Run, I64 | None]:
    """Return the rows of a run, and their ranks, in another order."""
    score = None if run.score is None else frozen(run.score[order])
    reordered = replace(run, item=frozen(run.item[order]), score=score)
    return reordered, None if ranks is None else ranks[order]


def _counted(run: Run, lost: int, was_scored: bool, keep_scores: bool) -> Run:
    """Note what was dropped, and of scores that are not kept which are equal."""
    ties = run.tie_counts if was_scored and not keep_scores else None
    counts = replace(run.counts, without_score=lost, was_scored=was_scored, ties=ties)
    return replace(run, counts=counts, score=run.score if keep_scores else None)


def _say_columns(table: tables.DataTable, names: Mapping[str, Any]) -> list[str]:
    """Say which columns were read as what."""
    source = table.source
    notes = [
        f"{source}: {table.format}, {counted(table.frame.height, 'row')}; "
        + ", ".join(f"{what} = {name}" for what, name in names.items() if name is not None),
        *table.notes,
    ]
    if names["rank"] is None and names["score"] is None:
        notes.append(f"{source}: no rank and no score column, so rows are taken as ranked")
    if names["rank"] is None and names["list"] is None:  # ranks of several lists would repeat
        notes += unused_dates(table, names)
    return notes


def _ranked(
    run: Run, ranks: I64 | None, by: str, ties: str, seed: int, gaps: str, origin: _Origin
) -> tuple[Run, list[str]]:
    """Put each list in order."""
    order: I64 | None = None
    if by == "score" and run.score is not None:
        order = order_by_score(run.start, run.score, run.item, run.users, run.items, ties, seed)
    elif by == "rank" and ranks is not None and not are_places(run.start, ranks):
        order = order_by_rank(run.start, ranks)
    if order is None:
        return run, []
    run, ranks = _reordered(run, ranks, order)
    if ranks is None or by != "rank":
        return run, []
    return _settle_gaps(run, ranks, gaps, origin)


def _settle_gaps(run: Run, rank: I64, gaps: str, origin: _Origin) -> tuple[Run, list[str]]:
    """Close or keep the jumps in a rank column, and count them."""
    if are_places(run.start, rank):
        return run, []
    source = origin.name
    base = 0 if rank.size and int(rank.min()) == 0 else 1
    position = np.arange(rank.size) - np.repeat(run.start[:-1], run.depth)
    same = np.zeros(rank.size, np.bool_)
    same[1:] = (rank[1:] == rank[:-1]) & (position[1:] > 0)
    if same.any():
        raise _repeated_ranks(run, rank, same, origin)
    jumps = np.diff(rank, prepend=base - 1) != 1
    jumps[position == 0] = rank[position == 0] != base
    count = int(jumps.sum())
    if gaps == "close":
        return run, [f"{source}: {counted(count, 'gap')} between ranks, closed"]
    if rank.size and int(rank.min()) < base:
        raise DataError(f"{source}: ranks must start at 0 or 1 to keep their gaps")
    depths = np.where(run.depth > 0, rank[np.maximum(run.start[1:] - 1, 0)] - base + 1, 0)
    if depths.sum(dtype=np.float64) > 100 * max(rank.size, 1000):
        raise DataError(
            f"{source}: ranks up to {int(rank.max()):,} leave too many empty slots; use ",
            Spelling("gaps='close'", "--gaps close"),
        )
    start = np.concatenate([[0], np.cumsum(depths)])
    slot = np.repeat(start[:-1], run.depth) + rank - base
    item = np.full(int(start[-1]), -1, np.int32)
    item[slot] = run.item
    score = None
    if run.score is not None:
        score = np.full(item.size, np.nan)
        score[slot] = run.score
    spread = replace(run, start=frozen(start.astype(np.int64)), item=frozen(item), score=score)
    return spread, [f"{source}: {counted(count, 'gap')} between ranks, kept as empty slots"]


def _repeated_ranks(run: Run, rank: I64, same: Mask, origin: _Origin) -> DataError:
    """Return the error for ranks that a list has twice; `same` marks the later ones."""
    example = int(np.argmax(same))
    number = int(np.searchsorted(run.start, example, side="right")) - 1
    otherwise: tuple[Any, ...] = ("correct them",)
    if origin.names["score"] is not None:
        otherwise = ("rank by score instead with ", BY_SCORE, ", or correct them")
    return DataError(
        f"{origin.name}: {counted(int(same.sum()), 'rank occurs', 'ranks occur')} twice in one "
        f"list, the first: {run.list_name(number)}, rank {int(rank[example])}; ",
        *origin.advice("rank", otherwise),
    )


def _unique(run: Run, duplicates: str, origin: _Origin) -> Run:
    """Refuse, or drop, the later occurrences of an item in a list."""
    from unskew.data import kernels

    source = origin.name
    keep = np.ones(run.item.size if duplicates == "first" else 0, np.uint8)
    count, example = kernels.seen_before(run.start, run.item, len(run.items), keep)
    if not count:
        return run
    if duplicates == "error":
        number = int(np.searchsorted(run.start, example, side="right")) - 1
        first = Spelling("duplicates='first'", "--repeated first")
        raise DataError(
            f"{source}: {counted(count, 'item occurs', 'items occur')} twice in one list, the "
            f"first: {run.list_name(number)}, item "
            f"{run.items.values[int(run.item[example])]!r}; ",
            *origin.advice("item", ("keep the best place of each with ", first)),
        )
    if duplicates == "keep":
        note = f"{source}: {counted(count, 'duplicate item')} in lists kept"
        return replace(run, repeated=count, notes=(note,))
    dropped = np.add.reduceat(np.append(1 - keep, 0), run.start[:-1]) * (run.depth > 0)
    counts = replace(run.counts, duplicates=count, duplicate_lists=int(np.count_nonzero(dropped)))
    result = replace(_keep(run, keep.astype(np.bool_)), repeated=0, counts=counts)
    return replace(
        result, notes=(f"{source}: {counted(count, 'duplicate item')} in lists dropped",)
    )


def _without_repeats(run: Run, duplicates: str) -> Run:
    """Return a run that was read before, without the duplicates that it may have kept."""
    if not run.repeated or duplicates == "keep":
        return run
    changed = _unique(run, duplicates, _Origin("run"))
    return replace(changed, notes=(*run.notes, *changed.notes))


def _keep(run: Run, keep: Mask) -> Run:
    """Keep some slots and close up."""
    start = np.concatenate([[0], np.cumsum(keep)])[run.start].astype(np.int64)
    score = None if run.score is None else frozen(run.score[keep])
    return replace(run, start=frozen(start), item=frozen(run.item[keep]), score=score)


def _cut(run: Run, depth: int) -> Run:
    """Keep at most `depth` slots of each list."""
    if depth < 1:
        raise SettingError(f"depth must be at least 1, got {depth}")
    if not len(run) or int(run.depth.max()) <= depth:
        return run
    position = np.arange(run.item.size) - np.repeat(run.start[:-1], run.depth)
    return _keep(run, position < depth)


def _trim(run: Run) -> Run:
    """Drop empty slots at the end of lists."""
    if not run.item.size:
        return run
    position = np.arange(run.item.size)
    last = np.maximum.reduceat(np.where(run.item >= 0, position, -1), run.start[:-1])
    return _keep(run, position <= np.repeat(last, run.depth))


def system_name(path: str | os.PathLike[str]) -> str:
    """Return the name a system gets from its file: the stem, without `.gz`."""
    return Path(file_name(path).removesuffix(".gz")).stem
