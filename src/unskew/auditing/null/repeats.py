"""How often a null experiment redraws opinions: a fixed number, or as many as precision needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from unskew.auditing.page.captions import caption
from unskew.checks import MOST_REPEATS, as_count, as_number
from unskew.errors import SettingError
from unskew.report.text import counted
from unskew.stats.intervals.means import mean_interval, values_needed

REAL = "real"
"""Marks the rows of the data as they are."""
NULL_SCHEMA = {
    "data": pl.String,
    "repeat": pl.Int64,
    "design": pl.String,
    "system": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "random": pl.Float64,
}
"""Of the values of each repeat."""
LEAST = 3
"""Repeats whose spread decides how many there are, unless given."""
MOST = 20
"""Repeats at most, unless given, where precision decides."""


@dataclass(frozen=True, kw_only=True)
class RepeatBudget:
    """How many repeats there are, and why."""

    repeats: int
    minimum: int
    """The first repeats: intervals take their spread from these."""
    maximum: int
    precision: float | None = None
    """The half-width that every interval should have at most; None = the number was given."""
    metric: str = ""
    """Whose intervals were looked at."""
    width: float | None = None
    """The largest half-width, as a share of the largest lead over chance in its design (of chance,
    where that is larger)."""

    def sentence(self) -> str:
        """Say why there are so many repeats, where precision decided."""
        if self.precision is None or self.width is None:
            return ""
        is_enough = self.width <= self.precision
        return caption(
            "null enough" if is_enough else "null most",
            repeats=counted(self.repeats, "repeat"),
            least=self.minimum,
            most=self.maximum,
            metric=self.metric,
            width=f"±{self.width:.2g}",
            wanted=f"±{self.precision:.2g}",
        )

    def card(self) -> dict[str, object]:
        """Return it as plain values."""
        return {
            "repeats": self.repeats,
            "least": self.minimum,
            "most": self.maximum,
            "precision": self.precision,
            "widest": self.width,
        }


@dataclass(frozen=True, kw_only=True)
class RepeatRule:
    """How many repeats there are: chosen by the spread of the first ones, never by their values.

    Stein's two stages (1945): the first values' spread gives the number that is needed, and the
    interval takes its spread from them alone. It then holds its level whatever the number, which an
    interval does not whose width is looked at after every value.
    """

    minimum: int
    maximum: int
    precision: float | None = None
    metric: str | None = None
    """Whose intervals are looked at; the first one unless given."""

    def __post_init__(self) -> None:
        as_count("repeats", self.minimum)
        if self.precision is None:
            return
        if not as_number("precision", self.precision) > 0:
            raise SettingError(f"precision must be above 0, such as 0.05; got {self.precision!r}")
        if self.minimum < 2:
            raise SettingError(
                f"repeats must be at least 2 with precision=…, got {self.minimum}: the spread of "
                "the first repeats decides how many there are"
            )
        as_count("most", self.maximum)
        if not self.minimum <= self.maximum <= MOST_REPEATS:
            raise SettingError(
                f"most must lie between the smallest number of repeats, {self.minimum}, and "
                f"{MOST_REPEATS:,}; got {self.maximum}"
            )

    @classmethod
    def fixed(cls, repeats: int) -> RepeatRule:
        """Return the rule of a given number."""
        return cls(minimum=repeats, maximum=repeats)

    def budget(self, rows: pl.DataFrame, level: float) -> RepeatBudget:
        """Return how many repeats are needed.

        Parameters
        ----------
        rows
            As `NULL_SCHEMA` says, of the data as they are and of the first repeats.
        level
            Of the intervals.
        """
        metric = rows["metric"][0] if self.metric is None else self.metric
        looked_at = rows.filter(pl.col("metric") == metric)
        needed, width = float(self.minimum), None
        leads = _leads(looked_at)
        for excess, scale in leads:
            if self.precision is not None:
                needed = max(needed, values_needed(excess, self.precision * scale, level))
        repeats = int(min(needed, self.maximum))
        if self.minimum > 1:
            width = max((_width(pair, repeats, level) for pair in leads), default=0.0)
        return RepeatBudget(
            repeats=repeats,
            minimum=self.minimum,
            maximum=self.maximum,
            precision=self.precision,
            metric=metric,
            width=width,
        )


def _width(pair: tuple[list[float], float], repeats: int, level: float) -> float:
    """Return the half-width after some repeats, as a share of the scale."""
    excess, scale = pair
    mean, _, high = mean_interval(excess, level)
    if mean is None or high is None or high == mean:
        return 0.0
    half = (high - mean) * math.sqrt(len(excess) / repeats)
    return half / scale if scale else math.inf


def _leads(rows: pl.DataFrame) -> list[tuple[list[float], float]]:
    """Return by null, design and system: the values above chance, and the scale of the design."""
    above = rows.with_columns(
        random=pl.col("random").fill_null(0.0),
        above=pl.col("value") - pl.col("random").fill_null(0.0),
    )
    real = above.filter(pl.col("data") == REAL).group_by("design").agg(pl.col("above").abs().max())
    largest = dict(real.iter_rows())
    leads = []
    null_rows = above.filter((pl.col("data") != REAL) & pl.col("above").is_finite())
    for (_, design, _), part in null_rows.group_by("data", "design", "system", maintain_order=True):
        chance = abs(math.fsum(part["random"]) / part.height)
        if part.height > 1:
            leads.append((part["above"].to_list(), max(largest.get(design) or 0.0, chance)))
    return leads
