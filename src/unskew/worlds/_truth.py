"""What is true in a world, drawn or known from a matrix, and drawing ratings from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I8, I32, U64, frozen
from unskew.data.ratings import Ratings
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.errors import SettingError
from unskew.worlds.reach import Reach, stage_of_round
from unskew.worlds.tastes import Odds, Stars, uniform

# Bins of the logarithm of a pair's weight: 0.6 % wide, over a range of e^24.
_BINS = 4096
_RANGE = 24.0


class Weighed(NamedTuple):
    """Sums over pairs in bins of the logarithm of their weight."""

    decided: F64
    weighted: F64
    top: float
    """The upper end of the last bin."""

    def scale(self, total: float) -> float:
        """Return the scale β at which the expected number of ratings is `total`."""
        highest = float(self.decided.sum())
        if total > highest * (1 + 1e-9):
            raise SettingError(
                f"{total:,.0f} ratings cannot be reached: if every user discovered every item, "
                f"{highest:,.0f} would be expected; ask for fewer ratings, or raise the "
                "probability of rating"
            )
        plain = total / float(self.weighted.sum())
        if plain * math.exp(self.top) <= 1.0:
            return plain  # nothing is cut: the number of ratings is in proportion to the scale
        low, high = -self.top, -self.top + _RANGE
        while self._expected(math.exp(high)) < total * (1 - 1e-12) and high < 600:
            high += _RANGE
        for _ in range(100):
            middle = (low + high) / 2
            if self._expected(math.exp(middle)) < total:
                low = middle
            else:
                high = middle
        return math.exp(high)

    def _expected(self, beta: float) -> float:
        return float(np.minimum(beta * self.weighted, self.decided).sum())


class Drawn(NamedTuple):
    """Pairs drawn, by user and item."""

    user: I32
    item: I32
    round: I8
    clipped: int


class Simulated:
    """Ratings of every pair, by coins and priors."""

    def __init__(self, odds: Odds, stars: Stars, seed: int) -> None:
        from unskew.worlds import kernels

        users, items = odds.user.size, odds.item.size
        factors = len(odds.user_factors)
        P = np.array(odds.user_factors).reshape(factors, users)
        Q = np.array(odds.item_factors).reshape(factors, items)
        self._odds = kernels.LogOdds(frozen(odds.user), frozen(odds.item), frozen(P), frozen(Q))
        keys = [key_of(seed, "world/liked"), key_of(seed, "world/value")]
        self._keys: U64 = frozen(np.array(keys, np.uint64))
        self._ladders = kernels.Ladders(*map(frozen, stars.ladders()))
        self._size = users * items

    def values(self, users: I32) -> F64:
        """Return the ratings of all pairs of some users, NaN where not known."""
        from unskew.worlds import kernels

        out = np.empty((users.size, self._odds.item.size))
        kernels.value_tile(frozen(users), self._odds, self._keys, self._ladders, out)
        return out

    def chances(self, users: I32) -> F64:
        """Return the chance that each is liked, before the coin."""
        from unskew.worlds import kernels

        out = np.empty((users.size, self._odds.item.size))
        kernels.chance_tile(frozen(users), self._odds, out)
        return out

    def values_of(self, user: I32, item: I32) -> F64:
        """Return the ratings of some pairs."""
        from unskew.worlds import kernels

        out = np.empty(user.size)
        kernels.values_of(frozen(user), frozen(item), self._odds, self._keys, self._ladders, out)
        return out

    def item_chance(self, blocks: Sequence[I32]) -> F64:
        """Return each item's mean chance to be liked."""
        from unskew.worlds import kernels

        def add(users: I32) -> F64:
            total = np.zeros(self._odds.item.size)
            kernels.add_chances(frozen(users), self._odds, total)
            return total

        return _sum(map_blocks(add, blocks, size=self._size)) / self._odds.user.size

    def observe(self, blocks: Sequence[I32], reach: Reach) -> Drawn:
        """Draw which pairs are rated."""
        from unskew.worlds import kernels

        def block(users: I32) -> Drawn:
            capacity = users.size * self._odds.item.size
            count = np.empty(users.size, np.int32)
            result, in_round = np.empty(capacity, np.int32), np.empty(capacity, np.int8)
            size, clipped = kernels.observe_tile(
                frozen(users), reach, self._odds, self._keys[0], count, result, in_round
            )
            user = np.repeat(users, count)
            return Drawn(user, result[:size].copy(), in_round[:size].copy(), clipped)

        return _joined(map_blocks(block, blocks, size=self._size))

    def weigh(self, blocks: Sequence[I32], reach: Reach, next_weight: F64) -> Weighed:
        """Sum what a further round with these item weights would reach."""
        from unskew.worlds import kernels

        further = reach._replace(weight=frozen(np.vstack([reach.weight, next_weight])))
        with np.errstate(divide="ignore"):
            a, w, g = (np.log(part) for part in (reach.activity, next_weight, reach.group))
        logs, top = (frozen(a), frozen(w), frozen(g)), _top(a, w, g)

        def block(users: I32) -> tuple[F64, F64]:
            decided, weighted = np.zeros(_BINS), np.zeros(_BINS)
            kernels.weigh_tile(
                frozen(users), further, self._odds, self._keys[0],
                logs, top, _BINS / _RANGE, decided, weighted,
            )  # fmt: skip
            return decided, weighted

        parts = map_blocks(block, blocks, size=self._size)
        return Weighed(_sum([a for a, _ in parts]), _sum([b for _, b in parts]), top)

    def sample(self, blocks: Sequence[I32], share: float, seed: int, stage: str) -> Drawn:
        """Draw every known pair with the same probability."""
        from unskew.worlds import kernels

        items, key = self._odds.item.size, np.uint64(key_of(seed, stage))

        def block(users: I32) -> Drawn:
            count = np.empty(users.size, np.int32)
            result = np.empty(users.size * items, np.int32)
            size = kernels.sample_tile(frozen(users), items, key, share, count, result)
            return Drawn(np.repeat(users, count), result[:size].copy(), np.zeros(size, np.int8), 0)

        return _joined(map_blocks(block, blocks, size=self._size))


def tile_of(ratings: Ratings, users: I32, values: F64, missing: float) -> F64:
    """Return the values of rated pairs of some users, a row each; others are missing."""
    out = np.full((users.size, len(ratings.items)), missing)
    for row, user in enumerate(users.tolist()):
        rows = slice(ratings.start[user], ratings.start[user + 1])
        out[row, ratings.item[rows]] = values[rows]
    return out


class Known:
    """Ratings that are known from data; all others are not."""

    def __init__(self, ratings: Ratings, liked: float, seed: int) -> None:
        self._ratings, self._liked, self._seed = ratings, liked, seed

    def values(self, users: I32) -> F64:
        return tile_of(self._ratings, users, self._ratings.value, np.nan)

    def chances(self, users: I32) -> F64:
        values = self.values(users)
        return np.where(np.isnan(values), np.nan, (values >= self._liked).astype(np.float64))

    def values_of(self, user: I32, item: I32) -> F64:
        items = len(self._ratings.items)
        mine = self._ratings.user.astype(np.int64) * items + self._ratings.item
        keys = user.astype(np.int64) * items + item
        index = np.minimum(np.searchsorted(mine, keys), max(mine.size - 1, 0))
        return np.where(mine[index] == keys, self._ratings.value[index], np.nan)

    def item_chance(self, _blocks: Sequence[I32]) -> F64:
        items = len(self._ratings.items)
        liked = self._ratings.value >= self._liked
        counts = np.bincount(self._ratings.item, minlength=items)
        return np.bincount(self._ratings.item, liked, items) / np.maximum(counts, 1)

    def observe(self, _blocks: Sequence[I32], reach: Reach) -> Drawn:
        in_round, clipped = self._rounds(reach)
        rows = in_round >= 0
        return Drawn(self._ratings.user[rows], self._ratings.item[rows], in_round[rows], clipped)

    def weigh(self, _blocks: Sequence[I32], reach: Reach, next_weight: F64) -> Weighed:
        with np.errstate(divide="ignore"):
            logs = np.log(reach.activity), np.log(next_weight), np.log(reach.group)
        top = _top(*logs)
        s, decision = self._pairs(reach)
        s = s * next_weight[self._ratings.item]
        left = (s > 0) & (self._rounds(reach)[0] < 0)
        s, decision = s[left], decision[left]
        bin_ = _BINS - 1 - ((top - np.log(s)) * (_BINS / _RANGE)).astype(np.int64)
        bin_ = np.clip(bin_, 0, _BINS - 1)
        decided: F64 = np.bincount(bin_, decision, _BINS).astype(np.float64)
        weighted: F64 = np.bincount(bin_, s * decision, _BINS).astype(np.float64)
        return Weighed(decided, weighted, top)

    def sample(self, _blocks: Sequence[I32], share: float, seed: int, stage: str) -> Drawn:
        user, item = self._ratings.user, self._ratings.item
        rows = uniform(seed, stage, user, item) < share
        return Drawn(user[rows], item[rows], np.zeros(int(rows.sum()), np.int8), 0)

    def _pairs(self, reach: Reach) -> tuple[F64, F64]:
        """Return the weight of each known pair without that of its item, and the decision."""
        user, item = self._ratings.user, self._ratings.item
        weight = reach.activity[user] * reach.group[reach.user_group[user], reach.item_group[item]]
        return weight, np.where(self._ratings.value >= self._liked, reach.if_liked, reach.if_not)

    def _rounds(self, reach: Reach) -> tuple[I8, int]:
        """Return in which round each known pair is rated, -1 for never, and what was cut."""
        weight, decision = self._pairs(reach)
        user, item = self._ratings.user, self._ratings.item
        in_round, clipped = np.full(user.size, -1, np.int8), 0
        for number, (beta, of_item) in enumerate(zip(reach.beta, reach.weight, strict=True)):
            discovery = beta * (weight * of_item[item])
            clipped += int(((discovery > 1) & (in_round < 0)).sum())
            coin = uniform(self._seed, stage_of_round(number), user, item)
            rated = coin < np.minimum(discovery, 1.0) * decision
            in_round[rated & (in_round < 0)] = number
        return in_round, clipped


WorldTruth = Simulated | Known
"""What a world needs to know about who likes what."""


def _top(activity: F64, weight: F64, group: F64) -> float:
    """Return the logarithm of the largest weight that a pair can have, a little more."""
    return float(activity.max() + weight.max() + group.max()) + 1e-9


def _sum(parts: Sequence[F64]) -> F64:
    """Add up arrays in their order: the same bits on any number of threads."""
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    return total


def _joined(parts: Sequence[Drawn]) -> Drawn:
    return Drawn(
        np.concatenate([part.user for part in parts]),
        np.concatenate([part.item for part in parts]),
        np.concatenate([part.round for part in parts]),
        sum(part.clipped for part in parts),
    )
