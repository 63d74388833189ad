"""Users without training ratings: what they are recommended, and scores without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I32, Mask, Tile
from unskew.data.ratings import Ratings
from unskew.evaluation.scores import Scores
from unskew.recommend.model import Model, SameForAll

FALLBACK = (
    "users without a training rating (cold users): a system that gives all items the same score, "
    "or none, recommends the items with the most training ratings to them"
)
"""What is assumed wherever there are cold users."""


@dataclass(frozen=True, eq=False)
class ScoredWithFallback:
    """A model that recommends by popularity to cold users whom it cannot tell anything of."""

    model: Model
    cold: Mask
    """Which users have no training rating."""
    popularity: F64
    """Training ratings of each item."""

    def score(self, users: I32) -> Tile:
        """Return the model's scores; popularity for cold users whose scores order nothing."""
        tile: NDArray[Any] = np.asarray(self.model.score(users))
        rows = np.flatnonzero(self.cold[users])
        if not rows.size or tile.shape != (users.size, self.popularity.size):
            return tile
        part: F64 = tile[rows].astype(np.float64)
        blank = np.isnan(part)
        lowest = np.where(blank, np.inf, part).min(axis=1)
        highest = np.where(blank, -np.inf, part).max(axis=1)
        tile = tile.copy()
        tile[rows[~(lowest < highest)]] = self.popularity.astype(tile.dtype)
        return tile


def _orders(score: F64) -> bool:
    """Tell whether scores put some item above another."""
    values = score[~np.isnan(score)]
    return bool(values.size) and bool(values.min() < values.max())


def with_fallback(model: Model, train: Ratings) -> Model:
    """Return a model that recommends to cold users too.

    The model itself where every user has ratings, or where it orders items alike for all users.
    """
    cold = np.diff(train.start) == 0
    if not cold.any() or (isinstance(model, SameForAll) and _orders(model.item_score)):
        return model
    counts = np.bincount(train.item, minlength=len(train.items))
    return ScoredWithFallback(model, cold, counts.astype(np.float64))


def warm_lists(scores: Scores) -> Mask:
    """Tell which lists belong to users with a training rating."""
    warm: Mask = scores.lists["train"].to_numpy() > 0
    return warm


def cold_table(
    scores: Mapping[str, Sequence[Scores]], warm: Mapping[str, Sequence[Mask]], metric: str
) -> pl.DataFrame:
    """Return a row per design and system: its mean on warm and on cold users.

    Parameters
    ----------
    scores
        By design: of each split.
    warm
        By design and split: which lists belong to users with a training rating.
    metric
        What is averaged.
    """
    rows = []
    for design, parts in scores.items():
        pairs = list(zip(parts, warm[design], strict=True))
        everyone = sum(_users(part, np.ones_like(mask)) for part, mask in pairs)
        cold = sum(_users(part, ~mask) for part, mask in pairs)
        on_warm = _means([part.of_lists(mask) for part, mask in pairs], metric)
        on_cold = _means([part.of_lists(~mask) for part, mask in pairs], metric)
        for system in parts[0].systems:
            means = on_warm.get(system), on_cold.get(system)
            rows.append((design, system, everyone, cold, cold / max(everyone, 1), *means))
    schema = {
        **dict.fromkeys(("design", "system"), pl.String),
        **dict.fromkeys(("users", "cold"), pl.Int64),
        **dict.fromkeys(("share", "on_warm", "on_cold"), pl.Float64),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _users(part: Scores, keep: Mask) -> int:
    """Count the users whom a mean is taken over, among some lists."""
    tested = part.lists["test"].to_numpy() > 0
    return int(np.unique(part.lists["user"].to_numpy()[tested & keep]).size)


def _means(parts: Sequence[Scores], metric: str) -> dict[str, float]:
    """Return the mean over splits of each system's mean; nothing where no split has such users."""
    means = [part.mean(metric) for part in parts if part.lists.height]
    if not means:
        return {}
    values = {system: [mean[system] for mean in means] for system in parts[0].systems}
    return {
        system: float(np.mean(of_system))
        for system, of_system in values.items()
        if not np.isnan(of_system).any()
    }
