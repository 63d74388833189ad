"""`Reach`: who discovers what in a world, round by round, and rates it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, U64, Mask, frozen
from unskew.engine.rng import key_of


def stage_of_round(number: int) -> str:
    """Return the name under which a round of ratings draws."""
    return f"world/observed/{number}"


class Reach(NamedTuple):
    """Who discovers what, round by round, and rates it; arrays as kernels take them."""

    activity: F64
    weight: F64
    """[rounds, items]"""
    user_group: I32
    item_group: I32
    group: F64
    """[user groups, item groups]"""
    beta: F64
    """[rounds]"""
    keys: U64
    """[rounds]: what the draws of a round are made from."""
    if_liked: float
    if_not: float

    def with_round(self, weight: F64, beta: float, seed: int) -> Reach:
        """Return it with a further round: the weights of items, and their scale."""
        key = np.uint64(key_of(seed, stage_of_round(self.beta.size)))
        return self._replace(
            weight=frozen(np.vstack([self.weight, weight])),
            beta=frozen(np.append(self.beta, beta)),
            keys=frozen(np.append(self.keys, key)),
        )

    def tile(self, users: I32, liked: Mask) -> F64:
        """Return p(observed) of all pairs of some users, given what they like."""
        groups = self.group[self.user_group[users]][:, self.item_group]
        reach = self.activity[users][:, None] * groups
        decision = np.where(liked, self.if_liked, self.if_not)
        seen: F64 = np.minimum(self.beta[0] * (reach * self.weight[0]), 1.0) * decision
        if self.beta.size == 1:
            return seen
        missed = 1 - seen
        for beta, weight in zip(self.beta[1:], self.weight[1:], strict=True):
            missed *= 1 - np.minimum(beta * (reach * weight), 1.0) * decision
        result: F64 = 1 - missed
        return result
