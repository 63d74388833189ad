"""What kinds of worlds are put together from: clusters, popularity, activity, exposure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reliability.known_world import KnownWorld
from unskew.arrays import F64, I32, Mask
from unskew.engine.rng import generator
from unskew.engine.threads import one_blas_thread

CLUSTERS = 8
POPULATION = 4
"""Users of the population for each user of a data set."""
MOST = 0.95
"""The largest chance that an item is exposed to a user."""
_STEPS = 30


@dataclass(frozen=True, eq=False)
class Draft:
    """The size of a world to be, and the generator that everything about it is drawn from."""

    kind: str
    seed: int
    users: int
    items: int
    rng: np.random.Generator

    @classmethod
    def of(
        cls,
        kind: str,
        seed: int,
        *,
        users: tuple[int, int] = (400, 900),
        items: tuple[int, int] = (250, 600),
    ) -> Draft:
        """Draw the size of a world from ranges, by its seed."""
        rng = generator(seed, "self-test", kind, "world")
        return cls(
            kind=kind,
            seed=seed,
            users=int(rng.integers(users[0], users[1] + 1)),
            items=int(rng.integers(items[0], items[1] + 1)),
            rng=rng,
        )

    def world(self, like: F64, chances: Rated, **settings: Any) -> KnownWorld:
        """Put a world together from chances to be liked and to be rated."""
        return KnownWorld(
            kind=self.kind,
            seed=self.seed,
            users=self.users,
            like=like,
            rated_if_liked=chances.if_liked,
            rated_if_disliked=chances.if_disliked,
            **settings,
        )

    @property
    def population(self) -> int:
        """How many users the population has."""
        return POPULATION * self.users

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of every matrix."""
        return self.population, self.items

    def between(self, low: float, high: float) -> float:
        """Draw a strength from a range."""
        return float(self.rng.uniform(low, high))

    def activity(self, spread: float = 0.6) -> F64:
        """Draw how much each user is exposed to: e to the power of a normal number."""
        return np.exp(spread * self.rng.standard_normal(self.population))

    def popularity(self, exponent: float) -> F64:
        """Draw how popular each item is: a power law over ranks, dealt at random."""
        return self.rng.permutation(np.arange(1.0, self.items + 1) ** -exponent)

    def exposure(self, low: float, high: float) -> F64:
        """Draw exposure: users by activity, items by a power law with an exponent in a range."""
        return np.outer(self.activity(), self.popularity(self.between(low, high)))

    def equal_liking(self) -> F64:
        """Draw one chance for everyone to like everything: about .3."""
        return np.full(self.shape, self.between(0.22, 0.38))

    def cluster_taste(self, clusters: Clusters) -> F64:
        """Draw chances to like: about .7 within a cluster, about .05 outside."""
        return np.where(clusters.same, self.between(0.55, 0.8), self.between(0.04, 0.1))

    def clusters(self, groups: int = CLUSTERS) -> Clusters:
        """Deal users and items to clusters at random, as equal in size as can be."""
        user, item = (
            self.rng.permutation(np.arange(size) % groups).astype(np.int32) for size in self.shape
        )
        return Clusters(user, item)

    def factor_taste(self, mean: float, strength: float, quality: float, factors: int = 6) -> F64:
        """Draw chances to like by factors of users and items, and by each item's quality.

        The log-odds are those of `mean`, plus a product of normal factors with standard deviation
        `strength`, plus the item's quality with standard deviation `quality`.
        """
        users, items = self.shape
        taste = self.rng.standard_normal((users, factors))
        nature = self.rng.standard_normal((items, factors)) * (strength / factors**0.5)
        level = np.log(mean / (1 - mean)) + quality * self.rng.standard_normal(items)
        with one_blas_thread():
            odds = taste @ nature.T + level
        result: F64 = 1 / (1 + np.exp(-odds))
        return result


def level_of(popularity: F64) -> F64:
    """Return the popularity of each item on a scale from 0 to 1: its logarithm."""
    logarithm = np.log(popularity)
    result: F64 = (logarithm - logarithm.min()) / (logarithm.max() - logarithm.min())
    return result


class Clusters(NamedTuple):
    """The cluster of each user of the population, and of each item."""

    user: I32
    item: I32

    @property
    def same(self) -> Mask:
        """[population, items]: whether user and item share a cluster."""
        result: Mask = self.user[:, None] == self.item
        return result


class Rated(NamedTuple):
    """[population, items]: the chance that a pair is rated, given that it is liked or not."""

    if_liked: F64
    if_disliked: F64


def rated(
    like: F64, exposure: F64, per_user: float, if_liked: float = 1.0, if_disliked: float = 1.0
) -> Rated:
    """Bring exposure to the scale at which users have `per_user` ratings on average.

    Parameters
    ----------
    like
        The chance that a pair is liked.
    exposure
        How much a pair is exposed, relative to others; where the chance of exposure would exceed
        `MOST`, it is cut there.
    per_user
        The expected number of ratings of a user, on average over the population.
    if_liked, if_disliked
        The chance that an exposed pair is rated, relative to each other.
    """
    return scaled(like, exposure * if_liked, exposure * if_disliked, per_user)


def scaled(like: F64, if_liked: F64, if_disliked: F64, per_user: float) -> Rated:
    """Bring two matrices of relative chances to be rated to scale, as `rated` does."""
    # Every eighth user is enough to find the scale.
    some = slice(None, None, 8)
    liked, disliked = if_liked[some], if_disliked[some]
    largest = np.maximum(liked, disliked)
    chosen = like[some]
    mean = (chosen * liked + (1 - chosen) * disliked) / np.maximum(largest, 1e-300)
    target = per_user * len(chosen)
    low = target / float((mean * largest).sum())
    high = 1e3 * low
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        if float((mean * np.minimum(middle * largest, MOST)).sum()) < target:
            low = middle
        else:
            high = middle
    return _cut(if_liked, if_disliked, high)


def rasch(odds: F64, per_user: float) -> Rated:
    """Return chances to be rated whose odds are these times a scale, whether liked or not."""
    some = odds[::8]
    low, high = 1e-9, 1e9
    for _ in range(2 * _STEPS):
        middle = (low * high) ** 0.5
        if float((some / (some + 1 / middle)).sum()) < per_user * len(some):
            low = middle
        else:
            high = middle
    chance = odds / (odds + 1 / high)
    return Rated(chance, chance)


def _cut(if_liked: F64, if_disliked: F64, scale: float) -> Rated:
    """Cut both chances of a pair by the same factor, so that their ratio stays."""
    largest = np.maximum(if_liked, if_disliked) * scale
    factor = np.where(largest > MOST, MOST * scale / np.maximum(largest, 1e-300), scale)
    return Rated(if_liked * factor, if_disliked * factor)
