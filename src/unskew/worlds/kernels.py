"""Kernels of simulated worlds: who likes what, and who rates what.

Whatever is drawn, is drawn for a pair of user and item by counter hash; blocks never matter.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unskew.arrays import F64, I8, I32, U64
from unskew.engine.compiled import kernel
from unskew.engine.rng import first, second
from unskew.worlds.reach import Reach


class LogOdds(NamedTuple):
    """Log odds of being liked: of users, of items, and factors whose products are added."""

    user: F64
    item: F64
    P: F64
    Q: F64


class Ladders(NamedTuple):
    """Values and cumulated shares of disliked ratings, then those of liked ones."""

    low: F64
    low_steps: F64
    high: F64
    high_steps: F64


@kernel
def unit(bits: np.uint64) -> float:
    """Return a number from [0, 1)."""
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@kernel
def chance_of(odds: float) -> float:
    """Return the probability of log odds."""
    return 1.0 / (1.0 + math.exp(-odds))


@kernel
def fill_odds(u: int, odds: LogOdds, row: F64) -> None:
    """Write the log odds that a user likes each item."""
    user, item, P, Q = odds
    for i in range(item.size):
        row[i] = user[u] + item[i]
    for f in range(P.shape[0]):  # factors outside: the inner loop is a plain vector sum
        p = P[f, u]
        for i in range(item.size):
            row[i] += p * Q[f, i]


@kernel
def odds_of(u: int, i: int, odds: LogOdds) -> float:
    """Return the log odds of one pair: the sum in the order of `fill_odds`, so the same bits."""
    user, item, P, Q = odds
    total: float = user[u] + item[i]
    for f in range(P.shape[0]):
        total += P[f, u] * Q[f, i]
    return total


@kernel
def rung(draw: float, values: F64, steps: F64) -> float:
    """Return the value on whose step of the cumulated shares a number falls."""
    for level in range(values.size - 1):
        if draw < steps[level]:
            return float(values[level])
    return float(values[values.size - 1])


@kernel
def chance_tile(users: I32, odds: LogOdds, out: F64) -> None:
    """Fill a row per user with the chances that items are liked."""
    for row in range(users.size):
        fill_odds(users[row], odds, out[row])
        for i in range(out.shape[1]):
            out[row, i] = chance_of(out[row, i])


@kernel
def value_tile(users: I32, odds: LogOdds, keys: U64, stars: Ladders, out: F64) -> None:
    """Fill a row per user with ratings: a coin decides on liked, the prior on the value."""
    for row in range(users.size):
        u = users[row]
        fill_odds(u, odds, out[row])
        coin, star = first(keys[0], u), first(keys[1], u)
        for i in range(out.shape[1]):
            draw = unit(second(star, i))
            if unit(second(coin, i)) < chance_of(out[row, i]):
                out[row, i] = rung(draw, stars.high, stars.high_steps)
            else:
                out[row, i] = rung(draw, stars.low, stars.low_steps)


@kernel
def values_of(users: I32, items: I32, odds: LogOdds, keys: U64, stars: Ladders, out: F64) -> None:
    """Write the ratings of some pairs."""
    for row in range(users.size):
        u, i = users[row], items[row]
        draw = unit(second(first(keys[1], u), i))
        chance = chance_of(odds_of(u, i, odds))
        if unit(second(first(keys[0], u), i)) < chance:
            out[row] = rung(draw, stars.high, stars.high_steps)
        else:
            out[row] = rung(draw, stars.low, stars.low_steps)


@kernel
def add_chances(users: I32, odds: LogOdds, total: F64) -> None:
    """Add up each item's chances over some users."""
    row = np.empty(total.size)
    for n in range(users.size):
        fill_odds(users[n], odds, row)
        for i in range(total.size):
            total[i] += chance_of(row[i])


@kernel
def observe_tile(
    users: I32,
    reach: Reach,
    odds: LogOdds,
    coin_key: np.uint64,
    count: I32,
    items: I32,
    in_round: I8,
) -> tuple[int, int]:
    """Draw which pairs are rated: discovered in one of the rounds, and then rated.

    Writes each user's number of rated items, these items, and in which round each was rated.
    Returns how many there are, and how often a probability of discovery above 1 was cut.
    """
    activity, weight, user_group, item_group, group, beta, round_keys, if_liked, if_not = reach
    rounds, highest = beta.size, max(if_liked, if_not)
    states = np.empty(rounds, np.uint64)
    index = clipped = 0
    for row in range(users.size):
        u = users[row]
        coin = first(coin_key, u)
        for r in range(rounds):
            states[r] = first(round_keys[r], u)
        begin = index
        for i in range(item_group.size):
            pull = activity[u] * group[user_group[u], item_group[i]]
            liked = -1  # not yet looked at: most pairs are never discovered
            for r in range(rounds):
                seen = beta[r] * (pull * weight[r, i])
                if seen > 1.0:
                    seen = 1.0
                    clipped += 1
                draw = unit(second(states[r], i))
                if draw < seen * highest:
                    if liked < 0:
                        chance = chance_of(odds_of(u, i, odds))
                        liked = 1 if unit(second(coin, i)) < chance else 0
                    if draw < seen * (if_liked if liked else if_not):
                        items[index] = i
                        in_round[index] = r
                        index += 1
                        break
        count[row] = index - begin
    return index, clipped


@kernel
def weigh_tile(
    users: I32,
    reach: Reach,
    odds: LogOdds,
    coin_key: np.uint64,
    logs: tuple[F64, F64, F64],
    top: float,
    per_bin: float,
    decided: F64,
    weighted: F64,
) -> None:
    """Sum the decision d and s times d over pairs, in bins of the logarithm of their weight s.

    For the round after those in `beta`, whose weights stand in the last row of `weight`; pairs
    that were rated before do not count. `logs` are those of activities, of the weights of that
    round, and of groups. From the sums follows how many ratings a scale gives, whatever the scale:
    one pass over the pairs instead of one for each guess.
    """
    activity, weight, user_group, item_group, group, beta, round_keys, if_liked, if_not = reach
    log_activity, log_weight, log_group = logs
    before, bins = beta.size, decided.size
    states = np.empty(before, np.uint64)
    row = np.empty(item_group.size)
    needs = if_liked != if_not or before > 0
    for n in range(users.size):
        u = users[n]
        coin = first(coin_key, u)
        for r in range(before):
            states[r] = first(round_keys[r], u)
        if needs:
            fill_odds(u, odds, row)
        for i in range(item_group.size):
            pull = activity[u] * group[user_group[u], item_group[i]]
            s = pull * weight[before, i]
            if s <= 0.0:
                continue
            decision = if_not
            if needs and unit(second(coin, i)) < chance_of(row[i]):
                decision = if_liked
            rated = False
            for r in range(before):
                seen = min(beta[r] * (pull * weight[r, i]), 1.0)
                if unit(second(states[r], i)) < seen * decision:
                    rated = True
                    break
            if rated:
                continue
            log_s = log_activity[u] + log_group[user_group[u], item_group[i]] + log_weight[i]
            bin_ = bins - 1 - int((top - log_s) * per_bin)
            bin_ = max(0, min(bin_, bins - 1))
            decided[bin_] += decision
            weighted[bin_] += s * decision


@kernel
def sample_tile(users: I32, items: int, key: np.uint64, share: float, count: I32, out: I32) -> Any:
    """Draw every pair with the same probability; return how many there are."""
    index = 0
    for row in range(users.size):
        state = first(key, users[row])
        begin = index
        for i in range(items):
            if unit(second(state, i)) < share:
                out[index] = i
                index += 1
        count[row] = index - begin
    return index
