"""The data of the benchmarks, made from a seed: judgments and the lists of several systems."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

CUTOFFS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100)


@dataclass(frozen=True)
class Size:
    """Judgments (user, item, rating) and lists: item[system, user, rank]."""

    user: np.ndarray
    item: np.ndarray
    rating: np.ndarray
    lists: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """Scores that fall with the rank; no ties."""
        return np.broadcast_to(1.0 / (1.0 + np.arange(self.lists.shape[2])), self.lists.shape)


def make(users: int, systems: int, depth: int, items: int, judgments: float, seed: int = 0) -> Size:
    """Draw judgments per user and lists that find some of them."""
    rng = np.random.default_rng(seed)
    count = np.clip(rng.poisson(judgments, users), 1, items // 2)
    user = np.repeat(np.arange(users), count)
    start = np.concatenate([[0], np.cumsum(count)])
    # A stride through the catalogue gives distinct items without a draw per user.
    stride = _coprime(rng.integers(1, items, users), items)
    offset = rng.integers(0, items, users)
    place = np.arange(user.size) - np.repeat(start[:-1], count)
    item = (offset[user] + place * stride[user]) % items
    rating = rng.integers(1, 6, user.size)
    lists = np.empty((systems, users, depth), np.int32)
    for system in range(systems):
        step = _coprime(rng.integers(1, items, users), items)
        first = rng.integers(0, items, users)
        lists[system] = (first[:, None] + np.arange(depth) * step[:, None]) % items
        _plant(lists[system], rng, item, start, share=0.02 * (1 + system % 5))
    return Size(user, item, rating, lists)


def _coprime(numbers: np.ndarray, items: int) -> np.ndarray:
    while (bad := np.gcd(numbers, items) != 1).any():
        numbers = np.where(bad, numbers % (items - 1) + 1, numbers)
    return numbers


def _plant(lists, rng, item, start, share) -> None:
    """Put a judged item into some slots, unless it is in the list already."""
    users, depth = lists.shape
    for slot in range(depth):
        pick = start[:-1] + (rng.random(users) * np.diff(start)).astype(np.int64)
        wanted = item[pick]
        new = (rng.random(users) < share) & ~(lists == wanted[:, None]).any(axis=1)
        lists[new, slot] = wanted[new]


def size_a() -> Size:
    """6,040 users x 21 systems, top-100, about 30 judgments a user."""
    return make(6040, 21, 100, 3706, 30)


def size_c() -> Size:
    """1,000,000 users x 1 system, top-20, about 30 million judgments."""
    return make(1_000_000, 1, 20, 20_000, 30)


def save(size: Size, path: Path) -> None:
    """Write a size where a peer in another environment can read it."""
    np.savez(path, user=size.user, item=size.item, rating=size.rating, lists=size.lists)


def load(path: Path) -> Size:
    """Read what `save` wrote."""
    with np.load(path) as parts:
        return Size(parts["user"], parts["item"], parts["rating"], parts["lists"])
