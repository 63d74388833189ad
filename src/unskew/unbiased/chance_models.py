"""`ChanceModel`: what gives the chance of being rated; and the ratings it is fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unskew.arrays import F64, I32
from unskew.checks import is_number
from unskew.data.popularity import item_counts
from unskew.data.ratings import Ratings
from unskew.errors import SettingError

STEPS = 50


@dataclass(frozen=True, eq=False)
class RatingEvidence:
    """What there is, under one numbering; parts that were not given are empty."""

    test: Ratings
    train: Ratings
    random: Ratings

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self.test.users)

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self.test.items)

    def counts(self) -> F64:
        """Ratings of each item in training and test together."""
        both = item_counts(self.train) + item_counts(self.test)
        return both.astype(np.float64)


@dataclass(frozen=True, eq=False)
class ChanceModel:
    """What gives the chance of being rated for any pair of user and item with its rating."""

    name: str
    of: Callable[[I32, I32, F64], F64]
    facts: Mapping[str, Any] = field(default_factory=dict)
    known: bool = True
    notes: tuple[str, ...] = ()
    liked_only: bool = False
    cell: Callable[[int, int], str] | None = None
    """Where the chance of a pair was read, as text for an error; None where it was computed."""


def from_0_up(name: str, value: float) -> float:
    """Return a finite number that is not negative."""
    if not is_number(value) or not 0 <= value < math.inf:
        raise SettingError(f"{name} must be a number from 0 up, got {value!r}")
    return float(value)
