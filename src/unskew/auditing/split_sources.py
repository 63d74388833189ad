"""Splits of an audit that are held, or made again when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unskew.arrays import Mask
    from unskew.data.ratings import Ratings
    from unskew.splits.split import Split, Splitter


@dataclass(frozen=True, eq=False)
class HeldSplit:
    """A split that is held."""

    split: Split

    def __call__(self) -> Split:
        """Return it."""
        return self.split


@dataclass(frozen=True, eq=False, kw_only=True)
class RemadeSplit:
    """A split that is made whenever it is asked for: of large data, several do not fit."""

    ratings: Ratings
    splitter: Splitter
    seed: int
    fold: int
    judged: Mask | None

    def __call__(self) -> Split:
        """Make it."""
        return self.splitter.nth(self.ratings, self.fold, self.seed).judging(self.judged)
