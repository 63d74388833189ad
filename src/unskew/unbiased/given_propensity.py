"""Propensities that the user gives: by item, by pair, or by a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64
from unskew.checks import is_number
from unskew.data.tables import ITEM, USER, read_table
from unskew.errors import DataError
from unskew.judging.rank import tile_users
from unskew.unbiased.chance_models import ChanceModel, RatingEvidence


def given_model(source: object, evidence: RatingEvidence) -> ChanceModel:
    """Return a model of given probabilities: by item, by pair, or from a function of users."""
    if callable(source) and not isinstance(source, Mapping):
        of = _by_tile(source, evidence)
        return ChanceModel("given", of, {"by": "pair"}, cell=lambda user, item: "")  # noqa: ARG005
    columns = source
    if isinstance(source, Mapping) and not any(_is_column(value) for value in source.values()):
        columns = {"item": list(source), "propensity": [_as_chance(*one) for one in source.items()]}
    table = read_table(columns)
    item, user = table.need("item", ITEM, None), table.pick("user", USER, None)
    name = next((c for c in table.frame.columns if c.lower() in ("propensity", "p")), None)
    if name is None:
        raise DataError(
            f"{table.source}: no column `propensity`; there are {', '.join(table.frame.columns)}"
        )
    items = evidence.test.items.codes(table.frame[item]).astype(np.int64)
    inside = items >= 0
    key = items
    if user is not None:
        users = evidence.test.users.codes(table.frame[user]).astype(np.int64)
        inside &= users >= 0
        key = users * evidence.items + items
    rows = np.flatnonzero(inside)
    rows = rows[np.argsort(key[rows], kind="stable")]
    column = table.frame[name]
    value = column.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    source_name = "propensity" if table.source in ("arrays", "frame") else table.source
    lookup = _Lookup(key[rows], value[rows], rows, None if user is None else evidence.items)
    lookup.check_unique(source_name, table.frame.select(*([user] if user else []), item))

    def cell(user: int, item: int) -> str:
        at = int(lookup.places(np.array([user]), np.array([item]))[0])
        if at < 0:
            return f" (not in {source_name})"
        row = int(rows[at])
        return f" (row {row + 1} of {source_name}: {column[row]!r})"

    by = "item" if user is None else "pair"
    return ChanceModel("given", lambda u, i, v: lookup.of(u, i), {"by": by}, cell=cell)  # noqa: ARG005


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Values by item, or by user and item, of a table with a row each; keys ascend."""

    key: I64
    value: F64
    row: I64
    items: int | None
    """How many items there are, where keys are pairs."""

    def places(self, user: NDArray[Any], item: NDArray[Any]) -> I64:
        """Return where each pair is, -1 = nowhere."""
        wanted = item.astype(np.int64)
        if self.items is not None:
            wanted = user.astype(np.int64) * self.items + item
        if not self.key.size:
            return np.full(wanted.size, -1)
        place = np.minimum(np.searchsorted(self.key, wanted), self.key.size - 1)
        return np.where(self.key[place] == wanted, place, -1)

    def of(self, user: NDArray[Any], item: NDArray[Any]) -> F64:
        """Return the value of each pair, NaN = none."""
        place = self.places(user, item)
        return np.where(place >= 0, self.value[place] if self.value.size else np.nan, np.nan)

    def check_unique(self, source: str, ids: pl.DataFrame) -> None:
        """Raise an error if two rows give one item, or one pair, different values."""
        again = self.key[1:] == self.key[:-1]
        same = np.isclose(self.value[1:], self.value[:-1], rtol=0, atol=0, equal_nan=True)
        clash = np.flatnonzero(again & ~same)
        if clash.size:
            at = int(clash[0])
            first, second = int(self.row[at]), int(self.row[at + 1])
            name = ", ".join(map(repr, ids.row(first)))
            raise DataError(
                f"{source}: {name} has two propensities, {self.value[at]:g} in row {first + 1} and "
                f"{self.value[at + 1]:g} in row {second + 1}; keep one"
            )


def _as_chance(item: object, value: object) -> float:
    """Return a number of a mapping; what is missing is NaN, which is refused where it is needed."""
    if value is None:
        return math.nan
    if not is_number(value):
        raise DataError(f"propensity: item {item!r} has {value!r}, which is not a number")
    return float(value)  # type: ignore[arg-type]


def _is_column(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)


def _by_tile(
    function: Callable[[I32], F64], evidence: RatingEvidence
) -> Callable[[I32, I32, F64], F64]:
    """Look pairs up in what a function of user numbers returns, a tile of users at a time."""

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        out = np.full(user.size, np.nan)
        step = tile_users(evidence.items)
        people = np.unique(user)
        for low in range(0, people.size, step):
            some = people[low : low + step]
            tile = np.asarray(function(some.astype(np.int32)))
            if tile.shape != (some.size, evidence.items):
                raise DataError(
                    f"the propensity function returned {tile.shape} for {some.size} users; users x "
                    f"items ({evidence.items}) are needed"
                )
            mine = (user >= some[0]) & (user <= some[-1])
            out[mine] = tile[np.searchsorted(some, user[mine]), item[mine]]
        return out

    return of
