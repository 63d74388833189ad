"""Which groups are compared with which, and what each comparison gives: difference, ratio, p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.errors import SettingError
from unskew.stats.group_shuffles import ShuffledGroups, shuffle_groups
from unskew.stats.inequality import others
from unskew.stats.skewed_means import (
    Means,
    differences,
    intervals,
    means_of_sums,
    ratio_interval,
    sums_by_group,
)

LEAST_USERS = 20
"""A group with fewer users has no interval and no p."""
LEAST_OTHERS = 5
"""Neither an interval, if fewer of its users have a value that is not the most common one."""
REST = -1
"""In place of the second group: all users outside the first."""
RATIO = "ratio"
UNIDENTIFIED = "not identified"
NEGATIVE = "values below 0"
SMALL = "too few users"


@dataclass(frozen=True)
class GroupPair:
    """A group and what it is compared with."""

    one: int
    other: int = REST

    @property
    def turned(self) -> GroupPair:
        """The same two groups, seen from the other side."""
        return GroupPair(self.other, self.one)


@dataclass(frozen=True, eq=False)
class Sides:
    """Both sides of every comparison: systems x comparisons."""

    one: Means
    other: Means
    enough: F64
    """1 where both sides have enough users and values for an interval."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """What comparisons give: systems x comparisons, NaN where there is none."""

    difference: F64
    low: F64
    high: F64
    ratio: F64
    ratio_low: F64
    ratio_high: F64
    kind: list[list[str]]
    """Of each ratio: `ratio`, or why there is none."""


@dataclass(frozen=True, eq=False)
class GroupData:
    """The values of one metric, users x systems, and the group of each user."""

    values: F64
    code: I64
    groups: int

    @property
    def sizes(self) -> F64:
        """Users of each group."""
        return np.bincount(self.code, minlength=self.groups).astype(np.float64)

    def others(self, member: Mask) -> list[int]:
        """Return, of each system, how many of these users' values are not the most common one."""
        values = self.values[member]
        return [others(column) for column in values.T]


def pairs_of(groups: int, against: str, reference: int | None) -> list[GroupPair]:
    """Return the comparisons of a request: with the rest, with one group, or of all pairs."""
    if reference is not None:
        return [GroupPair(one, reference) for one in range(groups) if one != reference]
    if against == "rest":
        return [GroupPair(one) for one in range(groups)]
    return [GroupPair(one, other) for one in range(groups) for other in range(one + 1, groups)]


def against_best(data: GroupData, better: str, label: str) -> list[GroupPair]:
    """Return each group against the one with the best mean of a single system."""
    sign = {"higher": 1.0, "lower": -1.0}.get(better)
    if sign is None:
        raise SettingError(f"against='best': neither direction of {label} is better")
    means = np.bincount(data.code, data.values[:, 0], data.groups) / data.sizes
    best = int(np.argmax(sign * means))
    return [GroupPair(one, best) for one in range(data.groups) if one != best]


def independent(data: GroupData, pairs: Sequence[GroupPair]) -> int:
    """Return how many comparisons with enough users differ from each other."""
    enough = sum(min(_users(data, pair)) >= LEAST_USERS for pair in pairs)
    # Two groups against the rest are the same comparison twice.
    return min(enough, 1) if data.groups == 2 else enough


def _users(data: GroupData, pair: GroupPair) -> tuple[float, float]:
    """Return the number of users on both sides."""
    sizes = data.sizes
    here = float(sizes[pair.one])
    return here, float(sizes.sum()) - here if pair.other == REST else float(sizes[pair.other])


def sides_of(data: GroupData, pairs: Sequence[GroupPair]) -> Sides:
    """Return the means of both sides."""
    centre = np.ascontiguousarray(data.values.T).mean(axis=1)
    count, *sums = sums_by_group(data.values - centre, data.code, data.groups)
    powers = [count, *sums]
    one = [power[:, [pair.one for pair in pairs]] for power in powers]
    other = [
        np.stack(
            [
                power.sum(axis=1) - power[:, pair.one]
                if pair.other == REST
                else power[:, pair.other]
                for pair in pairs
            ],
            axis=1,
        )
        for power in powers
    ]
    enough = np.ones(one[0].shape)
    for place, pair in enumerate(pairs):
        here = data.code == pair.one
        there = ~here if pair.other == REST else data.code == pair.other
        for member in (here, there):
            few = member.sum() < LEAST_USERS
            enough[:, place] *= [not few and n >= LEAST_OTHERS for n in data.others(member)]
    return Sides(_means(one, centre), _means(other, centre), enough)


def _means(powers: Sequence[F64], centre: F64) -> Means:
    means = means_of_sums(*powers)
    return Means(means.count, means.mean + centre[:, None], means.variance, means.third)


def gaps_of(sides: Sides, level: float, *, is_negative: bool) -> Gaps:
    """Return differences and ratios with their intervals, each at this level."""
    both = differences(sides.one, sides.other)
    low, high = (np.where(sides.enough > 0, end, np.nan) for end in intervals(both, level))
    ratios = np.full((3, *both.value.shape), np.nan)
    kind: list[list[str]] = []
    for system in range(both.value.shape[0]):
        kind.append([])
        for place in range(both.value.shape[1]):
            word, three = RATIO, (np.nan, np.nan, np.nan)
            at = (system, place)
            if is_negative:
                word = NEGATIVE
            elif not sides.enough[at]:
                word = SMALL
            else:
                one, other = sides.one.pick(at), sides.other.pick(at)
                ends = ratio_interval(one, other, level)
                word = UNIDENTIFIED if np.isinf(ends[1]) else RATIO
                three = (float(one.mean / other.mean), *ends) if word == RATIO else three
            ratios[(slice(None), *at)] = three
            kind[-1].append(word)
    return Gaps(both.value, low, high, ratios[0], ratios[1], ratios[2], kind)


def p_of_pairs(
    data: GroupData,
    pairs: Sequence[GroupPair],
    whole: ShuffledGroups,
    seed: int,
    threads: int | None,
) -> F64:
    """Return p of each comparison, systems x comparisons; NaN where a side has too few users.

    Users of two groups that are compared change places among themselves.
    """
    p = np.full((data.values.shape[1], len(pairs)), np.nan)
    for place, pair in enumerate(pairs):
        if min(_users(data, pair)) < LEAST_USERS:
            continue
        if pair.other == REST:
            p[:, place] = whole.p[:, pair.one]
            continue
        member = (data.code == pair.one) | (data.code == pair.other)
        code = (data.code[member] == pair.other).astype(np.int64)
        key = ("pair", min(pair.one, pair.other), max(pair.one, pair.other))
        pair_test = shuffle_groups(
            data.values[member], code, 2, key=key, seed=seed, threads=threads
        )
        p[:, place] = pair_test.p[:, 0]
    return p
