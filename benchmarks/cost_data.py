"""Ratings of any size, made from a seed: active and idle users, popular and rare items, tastes."""

from __future__ import annotations

import numpy as np
import polars as pl

from unskew.arrays import frozen
from unskew.data.ratings import Ids, Ratings

TASTES = 4
LEAST = 5
"""Ratings of a user, before pairs that were drawn twice are dropped."""
SIZES = {
    "20k": (20_000, 400, 500),
    "100k": (100_000, 943, 1_682),
    "1m": (1_000_000, 6_040, 3_706),
    "2m": (2_000_000, 13_800, 8_500),
    "20m": (20_000_000, 138_000, 27_000),
}
"""By name: ratings, users and items."""


def made(ratings: int, users: int, items: int, seed: int = 0) -> Ratings:
    """Draw about so many ratings: lognormal activity, popularity that falls as a power."""
    rng = np.random.default_rng(seed)
    activity = rng.lognormal(0.0, 1.0, users)
    weight = (np.arange(items) + items / 40) ** -1.1
    weight = rng.permutation(weight / weight.sum())
    bound = np.cumsum(weight)
    bound /= bound[-1]
    extra = 1.0
    while True:  # pairs that are drawn twice count once, so that more must be drawn
        count = np.maximum(LEAST, activity / activity.sum() * ratings * extra).astype(np.int64)
        user = np.repeat(np.arange(users), np.minimum(count, items // 2))
        item = np.searchsorted(bound, rng.random(user.size))
        key = np.unique(user * items + item)
        if key.size >= 0.97 * ratings or extra > 3:
            break
        extra *= min(1.5, 1.03 * ratings / key.size)
    user, item = (key // items).astype(np.int32), (key % items).astype(np.int32)
    value = _values(rng, user, item, users, items)
    ids = Ids(pl.Series(np.arange(users))), Ids(pl.Series(np.arange(items)))
    return Ratings(*ids, frozen(user), frozen(item), frozen(value))


def _values(
    rng: np.random.Generator, user: np.ndarray, item: np.ndarray, users: int, items: int
) -> np.ndarray:
    """Return ratings from 1 to 5 by tastes of users, qualities of items and noise."""
    taste = rng.standard_normal((users, TASTES)).astype(np.float32)
    quality = rng.standard_normal((items, TASTES)).astype(np.float32)
    value = np.empty(user.size)
    for low in range(0, user.size, 1 << 20):
        rows = slice(low, low + (1 << 20))
        match = np.einsum("ij,ij->i", taste[user[rows]], quality[item[rows]])
        noise = rng.standard_normal(match.size)
        value[rows] = np.clip(np.round(3.5 + 0.5 * match + 0.7 * noise), 1, 5)
    return value


def of_size(name: str) -> Ratings:
    """Return the ratings of a named size."""
    return made(*SIZES[name])
