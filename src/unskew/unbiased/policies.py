"""Policies and reward models: a number for each action in each row of a bandit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I64
from unskew.checks import as_numbers, choose
from unskew.data.frames import is_frame
from unskew.data.tables import read_table
from unskew.engine.rng import draw
from unskew.errors import DataError, SettingError
from unskew.unbiased.bandit_logs import BanditLog, numbers_of

Policy = str | Mapping[Any, float] | NDArray[Any] | Callable[[pl.DataFrame], Any] | object
"""See `policy_value`; an object is a table of any kind."""


@dataclass(frozen=True, eq=False)
class ActionTable:
    """Numbers per action that depend on the row through its position, or its number."""

    log: BanditLog
    values: F64
    """1, positions, or rows x actions."""

    def rows(self, lo: int, hi: int) -> F64:
        """Return rows lo..hi x actions."""
        if len(self.values) == len(self.log):
            return self.values[lo:hi]
        if len(self.values) == 1:
            return np.broadcast_to(self.values, (hi - lo, self.values.shape[1]))
        chosen: F64 = self.values[self.log.position[lo:hi]]
        return chosen


@dataclass(frozen=True, eq=False)
class ActionFunction:
    """Numbers per action that a function gives for rows of the log."""

    log: BanditLog
    name: str
    function: Callable[[pl.DataFrame], Any]

    def rows(self, lo: int, hi: int) -> F64:
        """Return rows lo..hi x actions."""
        result = np.asarray(self.function(self.log.frame(lo, hi)), np.float64)
        shape = (hi - lo, len(self.log.actions))
        if result.shape != shape:
            raise DataError(
                f"{self.name} gave an array of shape {result.shape} for {hi - lo} rows; expected a "
                f"row each and a column for each of {shape[1]} actions: {shape}"
            )
        return result


def per_action(log: BanditLog, name: str, given: Policy) -> ActionTable | ActionFunction:
    """Return numbers per action, given in any of the forms of `policy_value`."""
    actions, positions = len(log.actions), len(log.positions)
    if isinstance(given, str):
        choose(name, given, ("uniform",))
        return ActionTable(log, np.full((1, actions), 1.0 / actions))
    if isinstance(given, Mapping):
        given = pl.DataFrame({"action": pl.Series(list(given)), name: list(given.values())})
    if is_frame(given):
        return ActionTable(log, _from_table(log, name, read_table(given).frame))
    if isinstance(given, np.ndarray):
        array = np.atleast_2d(as_numbers(name, given))
        if array.shape[1] != actions or len(array) not in (1, positions, len(log)):
            raise DataError(
                f"{name}: an array of shape {given.shape} does not fit {len(log):,} rows, "
                f"{positions} positions and {actions} actions (in the order of log.actions)"
            )
        return ActionTable(log, array)
    if callable(given):
        return ActionFunction(log, name, given)
    raise SettingError(
        f"{name} must be 'uniform', a mapping from actions, a table, an array or a function; got "
        f"{type(given).__name__}"
    )


def _from_table(log: BanditLog, name: str, table: pl.DataFrame) -> F64:
    """Read columns action, (position), number."""
    if "action" not in table.columns or table.width not in (2, 3):
        raise DataError(f"{name}: a table needs the columns action, (position,) and a number")
    number = next(one for one in table.columns if one not in ("action", "position"))
    at = log.actions.codes(table["action"])
    values = numbers_of(table, number, name)
    if (at < 0).any():
        raise DataError(
            f"{name}: action {table['action'][int(np.argmax(at < 0))]!r} is unknown to the log; "
            f"say read_log(…, actions=[…]) if it exists all the same"
        )
    place = np.zeros(table.height, np.int64)
    many = 1
    if "position" in table.columns:
        place = log.positions.codes(table["position"]).astype(np.int64)
        many = len(log.positions)
        if (place < 0).any():
            raise DataError(f"{name}: a position is unknown to the log")
    if len(np.unique(place * len(log.actions) + at)) < table.height:
        raise DataError(f"{name}: an action occurs twice for the same position")
    out = np.zeros((many, len(log.actions)))
    out[place, at] = values
    return out


@dataclass(frozen=True, eq=False)
class RewardMeans:
    """The reward model: mean reward of an action at a position, drawn to the position's mean.

    Fitted once per fold, on the rows of all other folds, so that the reward of a row
    has no part in what is predicted for it.
    """

    log: BanditLog
    fold: I64
    cells: F64
    """Folds x positions x actions."""

    @classmethod
    def fit(cls, log: BanditLog, folds: int, prior: float, seed: int) -> RewardMeans:
        """Fit: (sum of rewards + prior x mean at the position) / (rows + prior)."""
        fold = (draw(seed, "reward folds", log.round) % np.uint64(folds)).astype(np.int64)
        actions, positions = len(log.actions), len(log.positions)
        cell = (fold * positions + log.position) * actions + log.action
        shape = (folds, positions, actions)
        size = folds * positions * actions
        total = np.bincount(cell, log.reward, size).reshape(shape)
        count = np.bincount(cell, minlength=size).reshape(shape)
        if folds > 1:
            total, count = (part.sum(axis=0, keepdims=True) - part for part in (total, count))
        sums, rows = total.sum(axis=2, keepdims=True), count.sum(axis=2, keepdims=True)
        overall = total.sum(axis=(1, 2), keepdims=True) / np.maximum(
            count.sum(axis=(1, 2), keepdims=True), 1
        )
        mean = np.where(rows > 0, sums / np.maximum(rows, 1), overall)
        with np.errstate(invalid="ignore"):
            shrunk = (total + prior * mean) / (count + prior)
        return cls(log, fold, np.where(count + prior > 0, shrunk, mean))

    def rows(self, lo: int, hi: int) -> F64:
        """Return rows lo..hi x actions."""
        chosen: F64 = self.cells[self.fold[lo:hi], self.log.position[lo:hi]]
        return chosen
