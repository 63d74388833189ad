"""Ready-made lists of steps: a table with a row per user, step and item."""

from __future__ import annotations

import numpy as np
import polars as pl

from unskew.arrays import I64, frozen
from unskew.data import tables, times
from unskew.data.ratings import Ids
from unskew.errors import DataError
from unskew.judging.step_ranks import StepRanks
from unskew.report.text import counted
from unskew.targets.step_lists import StepLists

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
    known = step >= 0
    depth = np.bincount(step[known], minlength=len(steps)).astype(np.int64)
    _check_once(table, step, frame[item], known)
    hit = known & (code == np.where(known, steps.item[step], -2))
    ranks = np.zeros(len(steps), np.int64)
    ranks[step[hit]] = rank[hit]
    notes = [f"{name}: {note}" for note in table.notes]
    if unmatched:
        notes.append(f"{name}: {counted(unmatched, 'row')} of no step that is asked left out")
    empty = int(np.count_nonzero(depth == 0))
    if empty:
        notes.append(f"{name}: {counted(empty, 'step has', 'steps have')} no list, which counts 0")
    met = _met(steps, step[known], code[known])
    if met:
        notes.append(
            f"{name}: {counted(met, 'place holds', 'places hold')} an item that the user had met, "
            "which cannot be the target; ranks are taken as they are"
        )
    return StepRanks(frozen(ranks), frozen(depth), notes=tuple(notes))


def _step_numbers(table: tables.Table, steps: StepLists, user: str) -> tuple[I64, int]:
    """Return the step of each row, -1 for none, and how many have none."""
    frame = table.frame
    place = table.pick("step", STEP, None)
    keys: dict[str, pl.Series] = {"user": pl.Series(steps.users.codes(frame[user]))}
    asked: dict[str, pl.Series] = {"user": pl.Series(steps.user)}
    if place is not None:
        keys["step"] = _whole(table, place)
        asked["step"] = pl.Series(steps.step).cast(pl.Int64)
        if steps.session.size:
            session = table.need("session", SESSION, None)
            keys["session"] = _whole(table, session)
            asked["session"] = pl.Series(steps.session).cast(pl.Int64)
    else:
        time = table.pick("time", tables.TIME, None)
        if time is None:
            raise DataError(
                f"{table.source}: lists of steps need a column step (as numbered in "
                "steps.to_polars()) or time; there are: " + ", ".join(frame.columns)
            )
        keys["time"] = pl.Series(times.time_column(table, time)[0])
        asked["time"] = pl.Series(steps.time)
    given = pl.DataFrame(keys).with_columns(pl.col("user").cast(pl.Int64))
    known = pl.DataFrame(asked).with_columns(pl.col("user").cast(pl.Int64)).with_row_index("_step")
    if known.select(list(asked)).is_duplicated().any():
        raise DataError(
            "several steps of a user have the same time: name them by step in place of time"
        )
    joined = given.join(known, on=list(keys), how="left", maintain_order="left")
    step: I64 = joined["_step"].cast(pl.Int64).fill_null(-1).to_numpy()
    return step, int(np.count_nonzero(step < 0))


def _whole(table: tables.Table, name: str) -> pl.Series:
    """Return a column of whole numbers."""
    column = tables.number_column(table, name, "numbers")
    whole = column.cast(pl.Int64, strict=False)
    bad = whole.is_null() | (whole.cast(pl.Float64) != column.cast(pl.Float64, strict=False))
    if bad.any():
        row = int(bad.fill_null(value=True).arg_true()[0])
        raise DataError(
            f"{table.source}: column {name!r} must hold whole numbers, got {column[row]!r} in row "
            f"{row + 1}"
        )
    return whole


def _ranks(table: tables.Table, step: I64, item: str, taken: tuple[str, ...]) -> I64:
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


def _check_once(table: tables.Table, step: I64, item: pl.Series, known: np.ndarray) -> None:
    """Refuse an item that a list has twice."""
    pairs = pl.DataFrame({"step": step, "item": item}).filter(pl.Series(known))
    again = pairs.is_duplicated()
    if again.any():
        place = int(np.flatnonzero(known)[int(again.arg_true()[0])])
        raise DataError(
            f"{table.source}: an item is in a list twice, as in row {place + 1}: "
            f"{item[place]!r}; a list has an item once"
        )


def _met(steps: StepLists, step: I64, code: I64) -> int:
    """Count the places that hold an item which its user met before the step."""
    if not steps.drops:
        return 0
    many = np.int64(len(steps.items))
    pair = steps.log_user * many + steps.log.item
    distinct, first = np.unique(pair, return_index=True)
    asked = steps.user[step] * many + code
    place = np.searchsorted(distinct, asked)
    place[place == distinct.size] = 0
    there = (distinct[place] == asked) & (code >= 0)
    return int(np.count_nonzero(there & (first[place] < steps.at[step])))
