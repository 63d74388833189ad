"""Which pairs of a world are observed: who discovers what, round by round, and rates it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64, frozen
from unskew.data import distribution
from unskew.data.groups import grouped_order
from unskew.engine.rng import draw
from unskew.engine.threads import map_blocks
from unskew.worlds._truth import Drawn, Reach, Truth
from unskew.worlds.observation import (
    Activity,
    Ageing,
    ByItem,
    ByRelevance,
    Clustered,
    Feedback,
    PopularityLaw,
    Reordering,
    whole_counts,
)
from unskew.worlds.parts import P, find_part
from unskew.worlds.tastes import Part, uniform

# Items drawn by one task where counts are exact.
_ITEMS = 64


@dataclass(frozen=True, eq=False)
class ObservedPairs:
    """The observed pairs of a world, and the probabilities behind them."""

    parts: tuple[Part, ...]
    users: int
    items: int
    seed: int
    expected: int | None
    truth: Truth
    blocks: list[I32]
    exact: bool
    """Whether each item has exactly as many ratings as its weight says."""

    def part(self, kind: type[P]) -> P | None:
        """Return the part of a kind, None if there is none."""
        return find_part(self.parts, kind)

    @cached_property
    def item_chance(self) -> F64:
        """The mean chance of each item to be liked."""
        result: F64 = frozen(self.truth.item_chance(self.blocks))
        return result

    def item_weights(self) -> F64:
        """Return the product of all weights of items, dealt as the parts say."""
        items = self.items
        dealer, ageing = self.part(Reordering), self.part(Ageing)
        parts = [part for part in self.parts if isinstance(part, PopularityLaw | ByItem)]
        if dealer is not None and not parts:
            parts = [PopularityLaw()]
        weights = np.ones(items)
        for part in parts:
            weights *= part.item_weights(items, self.seed, self.expected)
        if dealer is not None:
            weights = dealer.dealt(weights, self.item_chance, self.seed)
        if ageing is not None:
            weights *= ageing.item_weights(items, self.seed, self.expected)
        return weights

    @cached_property
    def reach(self) -> Reach:
        """Who discovers what: round by round, each brought to scale on what the last ones left."""
        users, items = self.users, self.items
        part = self.part(Activity)
        activity = np.ones(users) if part is None else part.user_weights(users, self.seed)
        clusters = self.part(Clustered)
        user_group, item_group = np.zeros(users, np.int32), np.zeros(items, np.int32)
        group = np.ones((1, 1))
        if clusters is not None:
            user_group, item_group = clusters.groups(users, items, self.seed)
            group = clusters.matrix(user_group, activity)
        decision = self.part(ByRelevance) or ByRelevance(1.0, 1.0)
        weights = self.item_weights()
        reach = Reach(
            activity=activity,
            weight=np.empty((0, items)),
            user_group=user_group,
            item_group=item_group,
            group=group,
            beta=np.empty(0),
            if_liked=decision.if_liked,
            if_not=decision.if_not,
            seed=self.seed,
        )
        feedback = self.part(Feedback)
        rounds = 1 if feedback is None else feedback.rounds
        for number in range(rounds):
            if feedback is not None and number:
                counts = np.bincount(self.truth.observe(self.blocks, reach).item, minlength=items)
                weights = feedback.boosted(reach.weight[-1], counts)
            beta = 1.0
            if self.expected is not None:
                weighed = self.truth.weigh(self.blocks, reach, weights)
                beta = weighed.scale(self.expected / rounds)
            reach = replace(
                reach, weight=np.vstack([reach.weight, weights]), beta=np.append(reach.beta, beta)
            )
        return reach

    @cached_property
    def counts(self) -> I64 | None:
        """How many ratings each item has, where that is exact."""
        if not self.exact or self.expected is None:
            return None
        return whole_counts(self.item_weights(), self.expected, self.users)

    @cached_property
    def drawn(self) -> Drawn:
        """The observed pairs, by user and item."""
        if self.counts is None:
            return self.truth.observe(self.blocks, self.reach)
        user, item = self._drawn_exactly(self.counts)
        return Drawn(user, item, np.zeros(user.size, np.int8), 0)

    def moments(self) -> F64 | None:
        """Return when each pair was rated, from [0, 1], where the world has time."""
        drawn, ageing, feedback = self.drawn, self.part(Ageing), self.part(Feedback)
        if ageing is not None:
            return ageing.moments(drawn.user, drawn.item, self.items, self.seed)
        if feedback is not None:
            within = uniform(self.seed, "world/time", drawn.user, drawn.item)
            return (drawn.round + within) / feedback.rounds
        return None

    def _drawn_exactly(self, counts: I64) -> tuple[I32, I32]:
        """Draw for each item so many users: those with the smallest hashes."""
        everyone = np.arange(self.users, dtype=np.int32)

        def some(low: int) -> tuple[I32, I32]:
            users, items = [], []
            for item in range(low, min(low + _ITEMS, counts.size)):
                many = int(counts[item])
                if many:
                    key = draw(self.seed, "world/observed/0", everyone, item)
                    users.append(np.argpartition(key, many - 1)[:many].astype(np.int32))
                    items.append(np.full(many, item, np.int32))
            none = np.empty(0, np.int32)
            return np.concatenate([none, *users]), np.concatenate([none, *items])

        size = self.users * counts.size
        parts = map_blocks(some, range(0, counts.size, _ITEMS), size=size)
        user = np.concatenate([part for part, _ in parts])
        item = np.concatenate([part for _, part in parts])
        start = np.append(0, np.cumsum(np.bincount(user, minlength=everyone.size)))
        order = grouped_order(user, start)
        return user[order], item[order]

    def liked_share(self, liked: float) -> float:
        """Return the share of all known pairs that are liked."""

        def count(users: I32) -> tuple[int, int]:
            values = self.truth.values(users)
            return int((values >= liked).sum()), int((~np.isnan(values)).sum())

        parts = map_blocks(count, self.blocks, size=self.users * self.items)
        return sum(part for part, _ in parts) / sum(known for _, known in parts)


def gini(counts: NDArray[Any]) -> float:
    """Return the Gini index of counts, 0 where there are none: a world may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.worlds.observed_pairs import gini
    >>> gini(np.array([3, 3, 3])), gini(np.array([0, 0, 0, 8]))
    (0.0, 0.75)
    """
    known = distribution.gini(counts)
    return 0.0 if math.isnan(known) else known
