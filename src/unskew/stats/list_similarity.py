"""How alike the lists of one system are, user by user: overlap, RBO, Kendall's tau."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unskew.arrays import F64, I64
from unskew.data.ratings import Ids
from unskew.runs import Run


@dataclass(frozen=True, eq=False)
class PlacedLists:
    """The lists of some runs for the users that all of them have, over one numbering."""

    users: Ids
    items: int
    """How many items there are in all."""
    key: tuple[I64, ...]
    """Of each run: user x items + item of every place, in ascending order."""
    place: tuple[I64, ...]
    """Of each run: the place of each key, from 1."""
    depth: tuple[I64, ...]
    """Of each run: how long each list is."""
    left_out: int = 0
    """Users that some runs have and others lack."""

    def user_of(self, run: int) -> I64:
        """Return whose list each key belongs to."""
        return self.key[run] // self.items


def place_lists(runs: Sequence[Run]) -> PlacedLists:
    """Lay runs over one numbering of users and items; users that a run lacks are left out."""
    users, numbers = Ids.union(*(run.users for run in runs))
    items, codes = Ids.union(*(run.items for run in runs))
    shared, seen = np.ones(len(users), np.bool_), np.zeros(len(users), np.bool_)
    for number, run in zip(numbers, runs, strict=True):
        listed = np.zeros(len(users), np.bool_)
        listed[number] = run.depth > 0
        shared &= listed
        seen |= listed
    place_of = np.cumsum(shared) - 1
    keys, places, depths = [], [], []
    for number, code, run in zip(numbers, codes, runs, strict=True):
        length = np.diff(run.start)
        owner = np.repeat(number, length)
        place = np.arange(run.item.size) - np.repeat(run.start[:-1], length) + 1
        keep = shared[owner] & (run.item >= 0)
        key = place_of[owner[keep]] * np.int64(len(items)) + code[run.item[keep]]
        order = np.argsort(key, kind="stable")
        keys.append(key[order])
        places.append(place[keep][order].astype(np.int64))
        depths.append(np.bincount(place_of[owner[keep]], minlength=int(shared.sum())))
    kept = Ids(users.values.filter(shared))
    return PlacedLists(
        users=kept,
        items=len(items),
        key=tuple(keys),
        place=tuple(places),
        depth=tuple(depths),
        left_out=int((seen & ~shared).sum()),
    )


@dataclass(frozen=True, eq=False)
class Likeness:
    """How alike the lists of each user are, the mean over all pairs of runs."""

    overlap: F64
    rbo: F64
    tau: F64
    """NaN where no two lists of the user have two items in common."""


def likeness(lists: PlacedLists, k: int, p: float) -> Likeness:
    """Return the mean over all pairs of runs of each measure, for each user."""
    users = len(lists.users)
    pairs = list(combinations(range(len(lists.key)), 2))
    total = np.zeros((2, users))
    tau, defined = np.zeros(users), np.zeros(users)
    for one, other in pairs:
        owner, a, b = _common(lists, one, other)
        shorter = np.minimum(lists.depth[one], lists.depth[other])
        longer = np.maximum(lists.depth[one], lists.depth[other])
        total[0] += _overlap(owner, a, b, k, longer)
        total[1] += _rbo(owner, a, b, p, shorter)
        value = _taus(owner, a, b, users)
        known = ~np.isnan(value)
        tau[known] += value[known]
        defined += known
    with np.errstate(invalid="ignore"):
        return Likeness(total[0] / len(pairs), total[1] / len(pairs), tau / defined)


def _common(lists: PlacedLists, one: int, other: int) -> tuple[I64, I64, I64]:
    """Return user and both places of the items that both lists have."""
    at = np.searchsorted(lists.key[other], lists.key[one])
    at[at == lists.key[other].size] = 0
    both = lists.key[other][at] == lists.key[one]
    return lists.user_of(one)[both], lists.place[one][both], lists.place[other][at[both]]


def _overlap(owner: I64, a: I64, b: I64, k: int, longer: I64) -> F64:
    """Return the share of the first k that is the same; of shorter lists, of the longer one."""
    shared = np.bincount(owner, ((a <= k) & (b <= k)).astype(np.float64), longer.size)
    share: F64 = shared / np.minimum(longer, k)
    return share


def _rbo(owner: I64, a: I64, b: I64, p: float, depth: I64) -> F64:
    """Return rank-biased overlap, extrapolated (Webber, Moffat and Zobel 2010, equation 30).

    Lists are read to the shorter one's depth m. The sum over depths of X_d p^d / d is one over
    common items, of what the depths from the lower of both places to m weigh.
    """
    last = np.maximum(a, b)
    inside = last <= depth[owner]
    owner, last = owner[inside], last[inside]
    table = np.concatenate([[0.0], np.cumsum(_weights(p, int(depth.max(initial=0))))])
    sums = np.bincount(owner, table[depth[owner]] - table[last - 1], depth.size)
    agreed = np.bincount(owner, minlength=depth.size) / depth
    return np.asarray((1 - p) / p * sums + agreed * p**depth, np.float64)


def _weights(p: float, depth: int) -> F64:
    d = np.arange(1, depth + 1)
    return p**d / d


def _taus(owner: I64, a: I64, b: I64, users: int) -> F64:
    from unskew.stats import list_kernels

    out = np.full(users, np.nan)
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=users))]).astype(np.int64)
    list_kernels.list_taus(start, a, b, out)
    return out


def chance_likeness(candidates: F64, depth: I64, k: int, p: float) -> tuple[F64, F64]:
    """Return overlap and RBO that two random orders of the same candidates are expected to have.

    With n candidates the first d of both share d² / n items on average: overlap is k / n, and RBO
    (1 - p) / p times the sum of d / n p^d, plus m / n p^m. Kendall's tau is 0 on average.
    """
    first = np.minimum(depth, k) / candidates
    d = np.arange(1, int(depth.max(initial=0)) + 1)
    powers = np.concatenate([[0.0], np.cumsum(d * p**d)])
    rbo = ((1 - p) / p * powers[depth] + depth * p**depth) / candidates
    return np.minimum(first, 1.0), rbo
