"""`WorldTruth`: what a known world says of the systems that were audited in it.

The judge of statements: it shares no code with what it judges. Fits are dense and plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reliability.known_world import KnownData
from unskew.arrays import F64, I32, I64, Mask
from unskew.auditing.core.core import Core, SplitLists
from unskew.data.ratings import Ratings
from unskew.runs import Run

ROUNDS = 1_000
"""Most rounds of Newton's steps, of users and items in turn."""
PRECISION = 1e-8
"""Error of expected sums at which a fit ends, as a share of the largest sum."""
DECIMALS = 9
"""Of expected steps: beyond them stands the rest of a fit."""
LONGEST = 1.0
"""Longest step of log odds: keeps Newton's method from overshooting."""


def rasch(margin_user: F64, margin_item: F64, cells: Mask) -> F64:
    """Return x_u y_i / (1 + x_u y_i) on some cells, with given sums over rows and columns.

    Users and items take Newton's steps in turn. Where a sum is 0 or the number of cells, chances
    come as near to 0 or 1 as the precision asks for.

    Parameters
    ----------
    margin_user, margin_item
        The sums, which may be expected ones.
    cells
        The cells that can hold something; 0 elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from reliability.world_truth import rasch
    >>> fit = rasch(np.array([1.0, 1.0]), np.array([0.5, 1.5]), np.ones((2, 2), bool))
    >>> fit.round(3).tolist()
    [[0.25, 0.75], [0.25, 0.75]]
    """
    places = np.nonzero(cells)
    margins = margin_user, margin_item
    odds = [np.zeros(one.size) for one in margins]
    close = PRECISION * max(float(margin_user.max(initial=0.0)), 1e-12)
    for _ in range(ROUNDS):
        worst = max(_turn(side, odds, margins, places) for side in (0, 1))
        if worst < close:
            break
    chance = np.zeros(cells.shape)
    chance[places] = _logistic(odds, places)
    return chance


def _logistic(odds: Sequence[F64], places: tuple[I64, ...]) -> F64:
    """Return the chances of cells by log odds of users and items."""
    chance: F64 = 1 / (1 + np.exp(-odds[0][places[0]] - odds[1][places[1]]))
    return chance


def _turn(side: int, odds: list[F64], margins: tuple[F64, F64], places: tuple[I64, ...]) -> float:
    """Take one step of all users or of all items; return the largest error before it."""
    chance, size = _logistic(odds, places), margins[side].size
    sums = np.bincount(places[side], chance, size)
    slope = np.bincount(places[side], chance * (1 - chance), size)
    missing = np.where(slope > 0, margins[side] - sums, 0.0)
    step = missing / np.where(slope > 0, slope, 1.0)
    odds[side] = odds[side] + np.clip(step, -LONGEST, LONGEST)
    return float(np.abs(missing).max(initial=0.0))


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitTruth:
    """What is expected of one split, given its training part: dense, by warm user and item."""

    lists: Mapping[str, F64]
    """By system: 1 / k where a list holds an item."""
    hit: F64
    """Chance that a pair is a liked test rating."""
    averages: F64
    """The same as far as each user's and each item's expected number of test likes tells."""
    spoken: F64
    """Of test pairs: the chance that they are recorded as liked."""
    choice: F64
    """The same as far as each user's and each item's expected number of test likes tells."""
    liking: F64
    """Chance that a pair is liked, given that it is no training rating: who saw and disliked an
    item may have left it unrated."""
    unknown: F64
    """1 where the user does not know the item yet, 0 elsewhere; 1 where the world does not say."""
    judged: F64
    """Chance that a pair is a test rating."""
    beyond: F64
    """Expected test likes beyond what is expected of as many ratings of the same user."""

    @property
    def discovered(self) -> F64:
        """Chance that a pair is liked, where the user does not know the item yet."""
        return self.liking * self.unknown

    @property
    def match(self) -> F64:
        """Expected test likes beyond what numbers of likes give."""
        return self.hit - self.averages

    @property
    def opinion(self) -> F64:
        """Expected likes among test pairs beyond what numbers of likes give."""
        return self.spoken - self.choice

    def mean(self, values: F64, system: str) -> float:
        """Return the mean over users of what a system's list sums up to."""
        return float((self.lists[system] * values).sum(1).mean())


def split_truth(data: KnownData, part: SplitLists, k: int) -> SplitTruth:
    """Work out what is expected of one split.

    A rating tests with the share s of test ratings among all. A pair that is no training rating
    has not been rated and then drawn for training: the chance of that is 1 - (1 - s) p(rated),
    and every chance below is divided by it.
    """
    split = part.split
    train, test = split.train, split.test
    world, like = data.world, data.like
    rated, recorded = data.by_id(world.chance_rated), data.by_id(world.chance_recorded_liked)
    if_liked = data.by_id(world.rated_if_liked)
    share = len(test) / max(len(test) + len(train), 1)
    outside = 1 - (1 - share) * rated
    free = ~_cells(train.user, train.item, like.shape)
    tested = _cells(test.user, test.item, like.shape)
    hit = np.where(free, recorded * share / outside, 0.0)
    spoken = np.where(tested & (rated > 0), recorded / np.where(rated > 0, rated, 1.0), 0.0)
    usual = recorded.sum(1, keepdims=True) / np.maximum(rated.sum(1, keepdims=True), 1e-12)
    warm = (np.diff(train.start) > 0) & (np.diff(test.start) > 0)
    return SplitTruth(
        lists={name: _listed(run, test, k)[warm] for name, run in part.runs.items()},
        hit=hit[warm],
        averages=rasch(hit.sum(1), hit.sum(0), free)[warm],
        spoken=spoken[warm],
        choice=rasch(spoken.sum(1), spoken.sum(0), tested)[warm],
        liking=(like * (1 - (1 - share) * if_liked) / outside)[warm],
        unknown=_unknown(data)[warm],
        judged=(share * rated / outside)[warm],
        beyond=(hit - share * rated / outside * usual)[warm],
    )


def _unknown(data: KnownData) -> F64:
    """Return 1 where a user does not know an item."""
    if data.world.known is None:
        return np.ones(data.like.shape)
    return data.by_id(1.0 - data.world.known)


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
        """By quantity and system: the mean over splits; 0 where it is one up to rounding."""
        return {
            (name, system): round(
                float(np.mean([one.mean(getattr(one, name), system) for one in self.splits])),
                DECIMALS,
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

    def discovery(self, a: str, b: str) -> float:
        """Return by how much more of what a recommends is liked than of b, of unknown items alone.

        Of a system: which share of the recommended items that users do not know yet is liked.
        """
        return self._discovered(a) - self._discovered(b)

    def _discovered(self, system: str) -> float:
        """Return which share of a system's recommendations of unknown items is liked."""
        liked = sum(one.mean(one.discovered, system) for one in self.splits)
        return liked / max(sum(one.mean(one.unknown, system) for one in self.splits), 1e-12)

    def judged_liking(self, a: str, b: str) -> float:
        """Return by how much more often judged recommendations of a are recorded as liked.

        Each beyond what is expected of its user.
        """
        return self._judged_share("beyond", a) - self._judged_share("beyond", b)

    def popular_liking(self, *, rated: bool = False) -> float:
        """Return how truly liking rises with popularity, within users: a slope over all items.

        Or over rated ones, of what is recorded.
        """
        chance = self.data.by_id(self.data.world.chance_rated)
        x = np.log10(np.maximum(chance.sum(0), 1e-9))
        weight, like = np.ones_like(chance), self.data.like
        if rated:
            weight, recorded = chance, self.data.by_id(self.data.world.chance_recorded_liked)
            like = recorded / np.maximum(chance, 1e-12)
        moved = x - (weight * x).sum(1, keepdims=True) / weight.sum(1, keepdims=True)
        return round(float((weight * moved * like).sum() / (weight * moved**2).sum()), DECIMALS)

    def _judged_share(self, name: str, system: str) -> float:
        """Return which share of a system's judged recommendations is expected to be so."""
        part = sum(one.mean(getattr(one, name), system) for one in self.splits)
        return part / max(sum(one.mean(one.judged, system) for one in self.splits), 1e-12)

    def match(self, a: str, b: str | None = None) -> float:
        """Return the expected step from averages to observed."""
        return self._step("match", a, b)

    def opinion(self, a: str, b: str | None = None) -> float:
        """Return the expected step from choice to observed."""
        return self._step("opinion", a, b)

    def broken(self, condition: str) -> bool:
        """Tell whether a condition does not hold."""
        return condition in self.data.world.broken
