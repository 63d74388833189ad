"""Formulas of metrics under every convention: numerator and denominator of each user's value.

In every formula: k the cutoff, L the list cut where the convention cuts it, R the relevant
judgments of the user.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeVar

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.conventions.laying import LaidHits, Memory
from unskew.conventions.libraries import Convention

T = TypeVar("T")
SHALLOW = 20
"""Up to this cutoff, ideal lists are kept cut."""


@dataclass(frozen=True, eq=False)
class Fraction:
    """The values of users, as fractions."""

    top: F64
    bottom: F64
    undefined: Mask
    """Users for whom the metric has no value."""
    empty: Mask
    """Users without a relevant item (of graded metrics: without any gain)."""

    @cached_property
    def values(self) -> F64:
        """The quotients: 0 by 0 is 0; NaN where undefined."""
        bottom = np.where(self.bottom > 0, self.bottom, 1.0)
        return np.where(self.undefined, np.nan, np.where(self.bottom > 0, self.top / bottom, 0.0))


@dataclass(frozen=True, eq=False)
class Ideal:
    """Judgments of all users, each user's best first."""

    user: I64
    """Of each judgment."""
    order: I64
    """Rows of the judgments, by user and then by falling rating."""

    @classmethod
    def of(cls, user: I64, value: F64, again: I64) -> Ideal:
        """Order judgments; those in `again` stand there once more."""
        rows = np.append(np.arange(user.size), again)
        return cls(user, rows[np.lexsort((-value[rows], user[rows]))])

    def places(self, counted: Mask) -> tuple[I64, I64, I64]:
        """Return users, places from 1 and rows of the judgments that count."""
        rows = self.order[counted[self.order]]
        user = self.user[rows]
        return user, _places(user), rows


def _places(user: I64) -> I64:
    """Number the entries of each user from 1; those of a user follow each other."""
    if not user.size:
        return np.zeros(0, np.int64)
    is_new = np.append(True, user[1:] != user[:-1])
    first = np.flatnonzero(is_new)
    numbers: I64 = np.arange(user.size) - first[np.cumsum(is_new) - 1] + 1
    return numbers


def add_up(user: I64, amounts: F64, users: int) -> F64:
    """Add amounts to their users."""
    # Of no amounts at all, numpy would return whole numbers.
    return np.bincount(user, amounts, users).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Case:
    """The lists and judgments of all users, as one convention takes them."""

    convention: Convention
    hits: LaidHits
    """Of the whole lists."""
    top: LaidHits
    """Of the lists up to where they are cut."""
    stop: float
    """The last rank that counts."""
    is_relevant: Mask
    """Of each judgment."""
    gain: F64
    """Of each judgment; 0 where the library does not see it."""
    relevant_judgments: F64
    """Of each user."""
    ideal: Ideal
    lists: object
    """Names what was done to the lists."""
    judged_as: object
    """Names which judgments are seen and what they are worth, for what depends on nothing else."""
    shared: Memory
    """What several conventions have in common."""

    @property
    def users(self) -> int:
        """How many users there are."""
        return int(self.hits.length.size)

    @cached_property
    def slots(self) -> F64:
        """Places up to the cutoff: k, or the length of the list where there is no cutoff."""
        k = self.convention.k
        return self.hits.length.astype(np.float64) if k is None else np.full(self.users, float(k))

    @cached_property
    def listed(self) -> F64:
        """Items in the list up to where it is cut."""
        return np.minimum(self.hits.length, self.stop)

    @cached_property
    def relevant(self) -> F64:
        """Of each hit up to the cut: its weight if it is relevant, else 0."""
        return self.is_relevant[self.top.judgment] * self.top.weight

    def add(self, amounts: F64) -> F64:
        """Add an amount per hit up to the cut to its user."""
        return add_up(self.top.user, amounts, self.users)

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """Compute what other conventions need too, once."""
        return self.shared.once(key, compute)

    @cached_property
    def count(self) -> F64:
        """Relevant items in the list up to the cut."""
        return self.add(self.relevant)

    @cached_property
    def whole_count(self) -> F64:
        """Relevant items in the whole list."""
        relevant = self.is_relevant[self.hits.judgment] * self.hits.weight
        return add_up(self.hits.user, relevant, self.users)

    @cached_property
    def without_relevant(self) -> Mask:
        """Users without a relevant judgment."""
        return np.asarray(self.relevant_judgments == 0)

    def fraction(
        self,
        top: F64,
        bottom: F64 | float,
        undefined: Mask | None = None,
        empty: Mask | None = None,
    ) -> Fraction:
        """Return values of users, as fractions."""
        nobody = np.zeros(self.users, np.bool_)
        return Fraction(
            top,
            np.broadcast_to(np.asarray(bottom, np.float64), top.shape),
            nobody if undefined is None else undefined,
            self.without_relevant if empty is None else empty,
        )

    def divisor(self, usual: F64, of_list: F64) -> F64:
        """Return what a sum over the list is divided by."""
        liked = self.relevant_judgments
        options: dict[str, Callable[[], F64]] = {
            "usual": lambda: usual,
            "list": lambda: of_list,
            "min": lambda: np.minimum(liked, self.slots),
            "k": lambda: self.slots,
            "found": lambda: self.count,
            "found-uncut": lambda: self.whole_count,
            "all": lambda: liked,
        }
        return options[self.convention.per]()


def precision(case: Case) -> Fraction:
    """Relevant items of L by k, or by what `per` says."""
    undefined = case.without_relevant if case.convention.per in ("min", "all") else None
    return case.fraction(case.count, case.divisor(case.slots, case.listed), undefined)


def recall(case: Case) -> Fraction:
    """Relevant items of L by R, or by what `per` says."""
    bottom = case.divisor(case.relevant_judgments, case.listed)
    return case.fraction(case.count, bottom, case.without_relevant)


def f1(case: Case) -> Fraction:
    """Harmonic mean of precision and recall: twice the relevant items of L by both divisors."""
    bottom = case.divisor(case.slots, case.listed) + case.relevant_judgments
    return case.fraction(2 * case.count, bottom, case.without_relevant)


def average_precision(case: Case) -> Fraction:
    """Sum of precision at the rank of each relevant item of L."""
    sums = case.add(case.relevant * _relevant_up_to(case) / case.top.rank)
    liked = case.relevant_judgments
    bottom = case.divisor(liked, np.minimum(case.listed, liked))
    return case.fraction(sums, bottom, case.without_relevant)


def _relevant_up_to(case: Case) -> F64:
    """Count, at each hit, the relevant items of its list up to its rank."""
    user, rank, relevant = case.top.user, case.top.rank, case.relevant
    if not user.size:
        return relevant
    total = np.cumsum(relevant)
    first = np.arange(user.size) - (_places(user) - 1)
    # Items of equal scores can share a rank: the last of them has met all.
    is_last = np.append((user[1:] != user[:-1]) | (rank[1:] != rank[:-1]), True)
    last = np.flatnonzero(is_last)[np.cumsum(np.append(False, is_last[:-1]))]
    counts: F64 = total[last] - (total - relevant)[first]
    return counts


def mean_precision(case: Case) -> Fraction:
    """Mean of P@1 to P@k: a relevant item at rank r counts 1/r + 1/(r + 1) + … + 1/k."""
    last = case.listed if case.convention.per == "list" else np.minimum(case.slots, case.stop)
    last = np.where(np.isinf(last), case.hits.length, last).astype(np.int64)
    deepest = int(max(last.max(initial=0), case.top.rank.max(initial=0)))
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, deepest + 1)))
    weight = harmonic[last[case.top.user]] - harmonic[case.top.rank - 1]
    sums = case.add(case.relevant * np.maximum(weight, 0.0))
    return case.fraction(sums, case.divisor(case.slots, case.listed))


def _discounts(kind: str, rank: I64) -> F64:
    """Return the discount of each rank, from one table."""
    deepest = int(rank.max(initial=1))
    return _table(kind, 1 << deepest.bit_length())[rank]


@cache
def _table(kind: str, size: int) -> F64:
    """Return the discounts of ranks below a number; that of rank 0 is never used."""
    rank = np.maximum(np.arange(size, dtype=np.float64), 1.0)
    rules: dict[str, Callable[[], F64]] = {
        "log": lambda: 1 / np.log2(rank + 1),
        "original": lambda: 1 / np.maximum(1.0, np.log2(rank)),
        "late": lambda: 1 / np.log2(rank + 2),
        "reciprocal": lambda: 1 / rank,
    }
    return rules[kind]()


def dcg(case: Case) -> Fraction:
    """Sum of the gains of L, discounted by rank."""
    return case.fraction(_discounted(case), 1.0, empty=_without_gain(case))


def _discounted(case: Case) -> F64:
    gain = case.gain[case.top.judgment] * case.top.weight
    return case.add(gain * _discounts(case.convention.discount, case.top.rank))


def _without_gain(case: Case) -> Mask:
    total = case.once(
        ("gain", case.judged_as), lambda: add_up(case.ideal.user, case.gain, case.users)
    )
    return np.asarray(total == 0)


def ndcg(case: Case) -> Fraction:
    """DCG by the DCG of the ideal list."""
    kind = case.convention.ideal
    empty = _without_gain(case)
    bottom = _full(case) if kind == "full" else _ideal(case, kind)
    return case.fraction(_discounted(case), bottom, None if kind == "full" else empty, empty)


def _full(case: Case) -> F64:
    """Return the DCG of k items of gain 1."""
    longest = int(case.slots.max(initial=0))
    sums = np.cumsum(_discounts(case.convention.discount, np.arange(1, longest + 1)))
    return np.append(0.0, sums)[case.slots.astype(np.int64)]


def _ideal(case: Case, kind: str) -> F64:
    """Return the DCG of the best items, of all judgments or of those in the list."""
    convention = case.convention
    if kind in ("cut", "uncut"):
        k = convention.k if kind == "cut" else None
        key = ("ideal", case.judged_as, convention.discount, k)
        limit = np.full(case.users, np.inf if k is None else float(k))
        return case.once(key, lambda: _best(case, limit))
    if kind == "list":
        of_list = ("list", case.judged_as, convention.discount, case.lists, case.stop)
        return case.once(of_list, lambda: _best(case, case.listed))
    where = case.stop if kind == "found" else math.inf
    listed = case.once(
        ("found", case.judged_as, case.lists, where), lambda: _best_listed(case, kind)
    )
    limit = np.full(case.users, np.inf if convention.k is None else float(convention.k))
    return _sum_of_best(case, listed, limit)


Best = tuple[I64, I64, F64]
"""Users, places from 1 and gains of items, each user's best first."""


def _best_listed(case: Case, kind: str) -> Best:
    """Return the items of the lists, best first."""
    hits = case.top if kind == "found" else case.hits
    user, gain = hits.user[hits.once], case.gain[hits.judgment[hits.once]]
    order = np.lexsort((-gain, user))
    return user[order], _places(user[order]), gain[order]


def _best(case: Case, limit: F64) -> F64:
    """Return the DCG of the best judgments of each user, up to a number of them."""
    # Most cutoffs see a few judgments of each user.
    deepest = SHALLOW if limit.max(initial=0) <= SHALLOW else math.inf

    def judged() -> Best:
        user, position, rows = case.ideal.places(case.gain > 0)
        mask = position <= deepest
        return user[mask], position[mask], case.gain[rows[mask]]

    return _sum_of_best(case, case.once(("best", case.judged_as, deepest), judged), limit)


def _sum_of_best(case: Case, best: Best, limit: F64) -> F64:
    user, position, gain = best
    mask = position <= limit[user]
    gains = gain[mask] * _discounts(case.convention.discount, position[mask])
    return add_up(user[mask], gains, case.users)


def reciprocal_rank(case: Case) -> Fraction:
    """1 by the rank of the first relevant item of L."""
    met = case.relevant > 0
    first = np.zeros(case.users)
    # Of several entries of a user the last one written stays: the smallest rank.
    first[case.top.user[met][::-1]] = 1.0 / case.top.rank[met][::-1]
    return case.fraction(first, 1.0)


def reciprocal_hit_rate(case: Case) -> Fraction:
    """Sum of 1 by the rank of each relevant item of L."""
    return case.fraction(case.add(case.relevant / case.top.rank), 1.0)


def normalised_reciprocal_rank(case: Case) -> Fraction:
    """Sum of 1 by the rank of each relevant item of L, by the same sum of the ideal list."""
    kind, liked = case.convention.ideal, case.relevant_judgments
    limit = case.slots if case.convention.k is not None else np.full(case.users, np.inf)
    sizes = {
        "cut": np.minimum(liked, limit),
        "uncut": liked,
        "list": np.minimum(liked, case.listed),
        "full": case.slots,
        "found": case.count,
        "found-uncut": np.minimum(case.whole_count, limit),
    }
    size = sizes[kind].astype(np.int64)
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, int(size.max(initial=0)) + 1)))
    top = case.add(case.relevant / case.top.rank)
    return case.fraction(top, harmonic[size], case.without_relevant)


def hit_rate(case: Case) -> Fraction:
    """1 where L has a relevant item."""
    return case.fraction((case.count > 0).astype(np.float64), 1.0)


def number_of_hits(case: Case) -> Fraction:
    """Relevant items of L."""
    return case.fraction(case.count, 1.0)


def r_precision(case: Case) -> Fraction:
    """Relevant items among the first R of L, by R."""
    liked = case.relevant_judgments
    early = case.relevant * (case.top.rank <= liked[case.top.user])
    return case.fraction(case.add(early), liked, case.without_relevant)


FORMULAS: dict[str, Callable[[Case], Fraction]] = {
    "P": precision,
    "Recall": recall,
    "F1": f1,
    "AP": average_precision,
    "MeanP": mean_precision,
    "nDCG": ndcg,
    "DCG": dcg,
    "RR": reciprocal_rank,
    "ARHR": reciprocal_hit_rate,
    "NCRR": normalised_reciprocal_rank,
    "HitRate": hit_rate,
    "Hits": number_of_hits,
    "Rprec": r_precision,
}
LINEAR = ("P", "Recall", "F1", "nDCG", "DCG", "ARHR", "NCRR", "Hits", "Rprec")
"""Metrics whose mean over all orders of equal scores is the value of mean gains."""
