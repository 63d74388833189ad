"""`Explorer`: the numbers from which readers of a page choose what its main chart shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, kw_only=True)
class Explorer:
    """Means and differences of systems, for every choice that a page offers."""

    scores: pl.DataFrame
    """A row per metric, cutoff, design, users and system: `value`, `low`, `high`, `chance`,
    `place`. A cutoff can be null."""
    pairs: pl.DataFrame
    """A row per metric, cutoff, design, users and pair `a`, `b`: `difference`, `low`, `high`, and
    how many users are `better`, `worse` and `same` with a."""
    start: Mapping[str, str] = field(default_factory=dict)
    """The choice that is shown at first: metric, cutoff, design, users, a, b."""
