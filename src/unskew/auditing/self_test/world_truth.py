"""`WorldTruth`: what a known world says of the systems that were audited in it.

The judge of statements: it shares no code with what it judges. Fits are dense and plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I32, Mask
from unskew.auditing.core import Core, SplitLists
from unskew.auditing.self_test.known_world import KnownData
from unskew.data.ratings import Ratings
from unskew.runs import Run

STEPS = 400
"""Most rounds of alternating scaling."""
PRECISION = 1e-7


def rasch(margin_user: F64, margin_item: F64, cells: Mask) -> F64:
    """Return x_u y_i / (1 + x_u y_i) on some cells, with given sums over rows and columns.

    Parameters
    ----------
    margin_user, margin_item
        The sums, which may be expected ones.
    cells
        The cells that can hold something; 0 elsewhere.
    """
    x, y = margin_user / max(margin_user.sum() ** 0.5, 1e-12), margin_item.copy()
    y = y / max(margin_item.sum() ** 0.5, 1e-12)
    chance = np.zeros(cells.shape)
    for _ in range(STEPS):
        for axis, margin in ((1, margin_user), (0, margin_item)):
            odds = x[:, None] * y
            chance = np.where(cells, odds / (1 + odds), 0.0)
            sums = chance.sum(axis)
            ratio = np.where(sums > 0, margin / np.where(sums > 0, sums, 1.0), 0.0)
            if axis:
                x = x * ratio
            else:
                y = y * ratio
        if np.abs(chance.sum(1) - margin_user).max() < PRECISION * max(margin_user.max(), 1e-12):
            break
    return chance


@dataclass(frozen=True, eq=False)
class SplitTruth:
    """Expected hits of one split's lists, on dense matrices of users and items."""

    lists: Mapping[str, F64]
    """By system: 1 / k where a list holds an item."""
    match: F64
    """Expected test likes beyond what numbers of likes give, by user and item."""
    opinion: F64
    """Expected likes among rated test pairs beyond what numbers of likes give."""
    liking: F64
    """Chance that a pair is liked, given that it is no training rating: who saw and disliked an
    item may have left it unrated."""
    recorded: F64
    """Chance that a pair is rated and recorded as liked."""
    honest: F64
    """Chance that a pair is rated and liked."""
    rated: F64

    def mean(self, values: F64, system: str) -> float:
        """Return the mean over users of what a system's list sums up to."""
        return float((self.lists[system] * values).sum(1).mean())


def split_truth(data: KnownData, part: SplitLists, k: int) -> SplitTruth:
    """Work out what is expected of one split."""
    train, test = part.split.train, part.split.test
    world, like = data.world, data.like
    rated, recorded = data.by_id(world.chance_rated), data.by_id(world.chance_recorded_liked)
    if_liked = data.by_id(world.rated_if_liked)
    honest = like * if_liked
    shape = like.shape
    trained = _cells(train.user, train.item, shape)
    tested = _cells(test.user, test.item, shape)
    share = len(test) / max(len(test) + len(train), 1)
    cells = ~trained
    hit = np.where(cells, recorded * share / (1 - (1 - share) * rated), 0.0)
    liking = like * (1 - (1 - share) * if_liked) / (1 - (1 - share) * rated)
    averages = rasch(hit.sum(1), hit.sum(0), cells)
    spoken = np.where(tested & (rated > 0), recorded / np.where(rated > 0, rated, 1.0), 0.0)
    choice = rasch(spoken.sum(1), spoken.sum(0), tested)
    warm = (np.diff(train.start) > 0) & (np.diff(test.start) > 0)
    lists = {name: _listed(run, test, k)[warm] for name, run in part.runs.items()}
    return SplitTruth(
        lists,
        (hit - averages)[warm],
        (spoken - choice)[warm],
        liking[warm],
        recorded[warm],
        honest[warm],
        rated[warm],
    )


def _cells(user: I32, item: I32, shape: tuple[int, ...]) -> Mask:
    cells = np.zeros(shape, np.bool_)
    cells[user, item] = True
    return cells


def _listed(run: Run, ratings: Ratings, k: int) -> F64:
    """Return 1 / k where the first k places of a list hold an item."""
    listed = np.zeros((len(ratings.users), len(ratings.items)))
    rows = ratings.users.codes(run.users.raw(np.arange(len(run), dtype=np.int32)))
    owner = np.repeat(rows, run.depth)
    rank = np.arange(run.item.size) - np.repeat(run.start[:-1], run.depth)
    kept = (rank < k) & (run.item >= 0) & (owner >= 0)
    listed[owner[kept], run.item[kept]] = 1 / k
    return listed


@dataclass(frozen=True, eq=False)
class WorldTruth:
    """What a known world says of the systems audited in it: the judge of statements."""

    data: KnownData
    core: Core
    leads: Mapping[str, Mapping[str, float]]
    """By design and system: the mean score over fresh data sets, systems trained anew."""

    @cached_property
    def splits(self) -> tuple[SplitTruth, ...]:
        """What is expected of each split."""
        return tuple(split_truth(self.data, part, self.core.k) for part in self.core.lists)

    def lead(self, design: str, a: str, b: str) -> float:
        """Return by how much a is expected to score above b: retrained, on new users."""
        return self.leads[design][a] - self.leads[design][b]

    def _step(self, name: str, a: str, b: str | None) -> float:
        return self._means[name, a] - (0.0 if b is None else self._means[name, b])

    @cached_property
    def _means(self) -> dict[tuple[str, str], float]:
        """By quantity and system: the mean over splits."""
        return {
            (name, system): float(
                np.mean([one.mean(getattr(one, name), system) for one in self.splits])
            )
            for name in ("liking", "match", "opinion")
            for system in self.core.systems
        }

    def liking(self, a: str, b: str) -> float:
        """Return by how much more the recommendations of a are truly liked than those of b."""
        return self._step("liking", a, b)

    def precision(self, a: str) -> float:
        """Return how much of the recommendations of a system is truly liked."""
        return self._step("liking", a, None)

    def match(self, a: str, b: str | None = None) -> float:
        """Return the expected step from averages to observed."""
        return self._step("match", a, b)

    def opinion(self, a: str, b: str | None = None) -> float:
        """Return the expected step from choice to observed."""
        return self._step("opinion", a, b)

    def inflation(self, a: str, b: str) -> float:
        """Return by how much more display inflates the recorded liking of a than that of b."""

        def of(system: str) -> float:
            more = sum(one.mean(one.recorded - one.honest, system) for one in self.splits)
            return more / max(sum(one.mean(one.rated, system) for one in self.splits), 1e-12)

        return of(a) - of(b)

    def broken(self, condition: str) -> bool:
        """Tell whether a condition does not hold."""
        return condition in self.data.world.broken
