"""`read_log`: logs of a policy that ran: what it showed, with which chance, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, frozen
from unskew.checks import checked
from unskew.data.ratings import Ids
from unskew.data.tables import naming, read_table
from unskew.errors import DataError
from unskew.report.text import counted
from unskew.unbiased.propensities import LEAST

ACTION = ("action", "actionid", "itemid", "item", "arm")


POSITION = ("position", "pos", "slot", "rank")


REWARD = ("reward", "click", "clicked", "rating", "label", "outcome")


PROPENSITY = ("propensity", "propensityscore", "pscore", "probability", "actionprob")


ROUND = ("round", "roundid", "impression", "impressionid")


@dataclass(frozen=True, eq=False)
class BanditLog:
    """What a policy showed and what came of it: a row per shown action. Made by `read_log`."""

    actions: Ids
    positions: Ids
    action: I32
    position: I32
    reward: F64
    propensity: F64
    """The chance with which the logging policy chose the action there."""
    round: I64
    """Rows of one round are drawn together; every row is its own unless there was a column."""
    context: pl.DataFrame
    """All other columns."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.action.size)

    def __repr__(self) -> str:
        return (
            f"BanditLog({counted(len(self), 'row')}, {counted(len(self.actions), 'action')}, "
            f"{counted(len(self.positions), 'position')}, mean reward {self.mean:.4g})"
        )

    @property
    def mean(self) -> float:
        """The mean reward of the policy that ran."""
        return math.fsum(self.reward) / len(self)

    def frame(self, lo: int, hi: int) -> pl.DataFrame:
        """Return rows lo..hi as a table: action, position and the context."""
        columns = {
            "action": self.actions.raw(self.action[lo:hi]),
            "position": self.positions.raw(self.position[lo:hi]),
        }
        rest = self.context[lo:hi].drop("action", "position", strict=False)
        return pl.DataFrame({**columns, **rest.to_dict()})


@checked
def read_log(
    source: object,
    *,
    action: str | None = None,
    position: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    round: str | None = None,  # noqa: A002 - the word of the field
    actions: Sequence[object] | None = None,
) -> BanditLog:
    """Read logged bandit feedback.

    Parameters
    ----------
    source
        A path (CSV, TSV, Parquet, each also gzipped), a table, or a mapping of column names to
        arrays. Columns are recognised by usual names, those of the Open Bandit Dataset among them
        (`item_id`, `position`, `click`, `propensity_score`).
    action, position, reward, propensity, round
        Names of columns that are called otherwise. Without a position all rows have the same;
        without a round every row is one of its own.
    actions
        All actions there are, in case the log does not show each of them.

    Examples
    --------
    >>> from unskew.unbiased.bandit_logs import read_log
    >>> read_log(
    ...     {"item_id": [1, 2, 1], "position": [1, 2, 1], "click": [0, 1, 0],
    ...      "propensity_score": [0.5, 0.25, 0.5]}
    ... )
    BanditLog(3 rows, 2 actions, 2 positions, mean reward 0.3333)
    """
    table = read_table(source)
    frame = table.frame
    if not frame.height:
        raise DataError(f"{table.source}: the log has no rows")
    columns = {
        "action": table.need("action", ACTION, action),
        "reward": table.need("reward", REWARD, reward),
        "propensity": table.need("propensity", PROPENSITY, propensity),
    }
    for name, usual, given in (("position", POSITION, position), ("round", ROUND, round)):
        column = table.pick(name, usual, given, tuple(columns.values()))
        if column is not None:
            columns[name] = column
    notes = []
    with naming(table.source):
        ids, code = Ids.number(frame[columns["action"]])
        if actions is not None:
            ids, code = _all_actions(frame[columns["action"]], pl.Series(list(actions)))
        if "position" in columns:
            places, place = Ids.number(frame[columns["position"]])
        else:
            places, place = Ids(pl.Series([1])), np.zeros(frame.height, np.int32)
            notes.append("no position column: all rows have the same position")
        rounds = np.arange(frame.height)
        if "round" in columns:
            rounds = Ids.number(frame[columns["round"]])[1].astype(np.int64)
    used = set(columns.values())
    earned = numbers_of(frame, columns["reward"], table.source)
    chance = numbers_of(frame, columns["propensity"], table.source)
    _check_propensity(chance, columns["propensity"], table.source)
    context = frame.drop(*columns.values()).with_columns(
        _as_numbers(column) for column in frame.iter_columns() if column.name not in used
    )
    return BanditLog(
        actions=ids,
        positions=places,
        action=frozen(code),
        position=frozen(place),
        reward=frozen(earned),
        propensity=frozen(chance),
        round=frozen(rounds),
        context=context,
        notes=tuple(notes),
    )


def _as_numbers(column: pl.Series) -> pl.Series:
    """Return a column of text as numbers where all of it is numbers: files hold text."""
    if column.dtype != pl.String:
        return column
    numbers = column.cast(pl.Float64, strict=False)
    return column if numbers.null_count() > column.null_count() else numbers


def _all_actions(shown: pl.Series, every: pl.Series) -> tuple[Ids, I32]:
    ids = Ids.number(every)[0]
    code = ids.codes(shown)
    if (code < 0).any():
        first = shown[int(np.argmax(code < 0))]
        rows = counted(
            int(np.count_nonzero(code < 0)), "row of the log shows", "rows of the log show"
        )
        raise DataError(f"actions: {rows} an action that is not among them, the first: {first!r}")
    return ids, code


def numbers_of(frame: pl.DataFrame, name: str, source: str) -> F64:
    """Return a column as finite numbers."""
    column = frame[name]
    if column.dtype == pl.Object:
        raise DataError(f"{source}: column {name!r} must hold numbers; row 1 is {column[0]!r}")
    values = column.cast(pl.Float64, strict=False)
    wrong = (values.is_null() | values.is_nan() | values.is_infinite()).fill_null(value=True)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise DataError(
            f"{source}: column {name!r} must hold numbers; "
            f"{counted(int(wrong.sum()), 'row does', 'rows do')} not, the first: row {row + 1}, "
            f"{column[row]!r}"
        )
    return values.to_numpy().copy()


def _check_propensity(chance: F64, name: str, source: str) -> None:
    wrong = (chance < LEAST) | (chance > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{source}: column {name!r}: "
            f"{counted(int(wrong.sum()), 'propensity does', 'propensities do')} not lie between "
            f"{LEAST:g} and 1, the first: row {row + 1}, {chance[row]:g}. A shown action had "
            "some probability of being shown: leave such rows out, or correct the log"
        )
