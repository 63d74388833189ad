"""Groups beside each other: who has an interval, intervals at a shared level, corrected p-values.

What `group_gaps` (of users), `item_group_gaps` and `unskew.unbiased.strata` have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64, I64, frozen
from unskew.errors import SettingError
from unskew.judging.judged import Judged
from unskew.judging.shape import several_refused
from unskew.report.columns import (
    GROUP,
    HIGH,
    LOW,
    NOTE,
    QUANTITY,
    SYSTEM,
    USERS,
    VALUE,
    Column,
    Question,
)
from unskew.report.text import counted
from unskew.stats.corrections import correct
from unskew.stats.inequality import others
from unskew.stats.pairing import known_metric

LEAST_USERS = 20
"""A group with fewer users has no interval and no p."""
LEAST_OTHERS = 5
"""Neither an interval, if fewer of its users have a value that is not the most common one."""
TOO_FEW = "too few users"
HALL = "t without skewness (Hall)"
NO_INTERVAL = (
    f"no interval: fewer than {LEAST_USERS} users, or fewer than {LEAST_OTHERS} whose value is "
    "not the most common one"
)


def question_of_groups(
    *keys: Column,
    unit: Column = USERS,
    facts: Sequence[Column] = (),
    tests: Sequence[Column] = (),
    **settings: Any,
) -> Question:
    """Return a question with a row per system, group and quantity.

    Parameters
    ----------
    keys
        Those before the quantity; the system and the group unless given.
    unit
        The number of what values are averaged over.
    facts
        Columns before that number.
    tests
        Columns after the interval.
    settings
        The other fields of the question.
    """
    columns = (*(keys or (SYSTEM, GROUP)), QUANTITY, *facts, unit, VALUE, LOW, HIGH, *tests, NOTE)
    return Question(columns=columns, **settings)


@dataclass(frozen=True, eq=False, kw_only=True)
class Division:
    """Items, users or judgments divided into groups."""

    of: str
    """`items`, `users` or `judgments`."""
    by: str
    """What they are divided by, in words."""
    code: I64
    """The group of each; -1: none."""
    names: tuple[str, ...]
    rule: str = ""
    """How groups are formed, in a sentence."""
    quantity: F64 | None = None
    """What they are formed by, where it is a number."""
    is_ordered: bool = False
    notes: tuple[str, ...] = ()

    def complete(self, name: str, reason: str) -> Division:
        """Return the division in which what has no group forms one, the last.

        Parameters
        ----------
        name
            Of this group; in brackets where another one has this name.
        reason
            Why the items (the users, the judgments) in it have no group.
        """
        is_left = self.code < 0
        if not is_left.any():
            return replace(self, code=frozen(self.code))
        name = f"({name})" if name in self.names else name
        number = counted(int(is_left.sum()), self.of.removesuffix("s"))
        return replace(
            self,
            code=frozen(np.where(is_left, len(self.names), self.code)),
            names=(*self.names, name),
            notes=(*self.notes, f"{name}: {number} {reason}"),
        )


def has_interval(values: F64) -> bool:
    """Tell whether a group has enough users, and enough whose value is not the most common one."""
    return values.size >= LEAST_USERS and others(values) >= LEAST_OTHERS


def range_of(metric: str) -> tuple[float, float]:
    """Return the range of a metric's values; without limits where it is not known."""
    parsed = known_metric(metric)
    return (-np.inf, np.inf) if parsed is None else (parsed.definition.low, parsed.definition.high)


def shared_level(level: float, comparisons: int) -> float:
    """Return the level of each of several intervals that hold together (Bonferroni)."""
    return 1 - (1 - level) / max(comparisons, 1)


def limits_of(
    low: ArrayLike, high: ArrayLike, lowest: float = -np.inf, highest: float = np.inf
) -> dict[str, Any]:
    """Return the ends of an interval for a row, within the range of the values."""
    return {"low": float(np.maximum(low, lowest)), "high": float(np.minimum(high, highest))}


def with_p_values(
    rows: Sequence[Mapping[str, Any]],
    p: ArrayLike,
    correction: str | None,
    level: float,
    *,
    groups: int = 0,
) -> list[dict[str, Any]]:
    """Return rows with their p-values, corrected over all of them.

    Parameters
    ----------
    rows
        System by system.
    p
        By row, or systems x comparisons; NaN where there is none.
    correction
        Of the p-values.
    level
        1 - level is the level of significance.
    groups
        Two groups are one comparison of each system, seen from both sides.
    """
    p = np.asarray(p, np.float64)
    corrected = p
    if correction is not None:
        single = p[:, :1] if groups == 2 else p
        corrected = np.broadcast_to(correct(single, correction), p.shape)
    is_significant = corrected <= 1 - level + 1e-12
    columns = (column.ravel().tolist() for column in (p, corrected, is_significant))
    names = "p", "p_corrected", "significant"
    return [
        {**row, **dict(zip(names, numbers, strict=True))}
        for row, *numbers in zip(rows, *columns, strict=True)
    ]


def check_single_lists(judged: Judged, what: str) -> None:
    """Refuse tied items, and several lists of a user; `what` begins the sentence: `… needs`."""
    if judged.is_tied:
        raise SettingError(f"{what} an order of tied items: leave out ties='expected'")
    if judged.occasions is not None:
        raise several_refused("users have several lists, and")
    if judged.targets is not None and np.unique(judged.owner).size < judged.owner.size:
        raise SettingError(
            f"{what} one list per user, and these target lists have several: use one of the "
            "designs that ask for all relevant items in one list"
        )
