"""The values of users and their mean under a convention, over data that are laid once.

Thousands of conventions share their parts: what depends on few choices is worked out once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I64, Mask
from unskew.conventions.formulas import FORMULAS, LINEAR, Case, Fraction, Ideal
from unskew.conventions.laying import Laid, LaidHits, ListRule, Memory, count_ties
from unskew.conventions.libraries import AXES, Convention
from unskew.errors import SettingError

BUDGET = 256 << 20
"""In bytes; what was computed first is given up first, and computed again where it is needed."""
AVERAGING = ("users", "undefined", "average", "digits")
"""Choices that are made after the value of every user is known."""
WHOLE_GAINS = {
    "integer": "rating",
    "integer-liked": "liked-only",
    "integer-burges": "burges",
    "integer-burges-liked": "burges-liked",
}
"""Gains that are the same for ratings that are whole numbers."""
VALUE_AXES = tuple(name for name in AXES if name not in AVERAGING)


def last_rank(convention: Convention) -> float:
    """Return the last rank that counts."""
    k = convention.k
    if k is None or convention.cut == "whole":
        return math.inf
    return float(k + {"k": 0, "k+1": 1, "k-1": -1}[convention.cut])


@dataclass(frozen=True, eq=False)
class ConventionValues:
    """Conventions applied to the lists of one system."""

    laid: Laid
    system: str
    _fractions: Memory = field(default_factory=partial(Memory, BUDGET))
    _shared: Memory = field(default_factory=partial(Memory, BUDGET))
    memory: Memory = field(default_factory=Memory)
    """What is small, or asked for again and again."""

    @cached_property
    def _alike(self) -> dict[str, dict[str, str]]:
        """For choices that make no difference on these data: the first option that is the same."""
        laid, system = self.laid, self.system
        run = laid.systems[system].run
        same: dict[str, dict[str, str]] = {"relevant": first_alike(laid.relevance_masks)}
        if not run.repeated:
            same["duplicates"] = dict.fromkeys(AXES["duplicates"].options, "first")
        if not laid.count_training(system):
            same["training"] = dict.fromkeys(AXES["training"].options, "keep")
        if not laid.count_unknown(system):
            same["catalogue"] = dict.fromkeys(AXES["catalogue"].options, "keep")
        if not count_ties(run):
            same["ties"] = dict.fromkeys(AXES["ties"].options, "given")
        else:
            same["ties"] = first_alike(laid.orders(system))
        if bool((laid.judgments.value == np.trunc(laid.judgments.value)).all()):
            same["gain"] = WHOLE_GAINS
        return same

    def is_idle(self, axis: str, option: str, default: str) -> bool:
        """Tell whether two options are the same on these data, whatever else is chosen."""
        same = self._alike.get(axis, {})
        return same.get(option, option) == same.get(default, default)

    def plain(self, convention: Convention) -> Convention:
        """Return the convention with the first option wherever several are the same here."""
        changes = {}
        for name, options in self._alike.items():
            option = getattr(convention, name)
            if options.get(option, option) != option:
                changes[name] = options[option]
        return convention.changed(**changes) if changes else convention

    def of_users(self, convention: Convention, fraction: Fraction | None = None) -> F64:
        """Return the value of every user that is averaged; NaN for all others.

        Values that come from elsewhere are given as a `fraction`.
        """
        if fraction is None:
            convention = self.plain(convention)
            fraction = self.fraction(convention)
        values = _rounded(fraction.values, convention.digits)
        if convention.undefined == "zero":
            values = np.where(np.isnan(values), 0.0, values)
        elif convention.undefined == "one":
            values = np.where(fraction.empty, 1.0, np.where(np.isnan(values), 0.0, values))
        else:
            values = np.where(fraction.empty, np.nan, values)
        return np.where(self.averaged(convention, values), values, np.nan)

    def mean(self, convention: Convention) -> float:
        """Return the mean that the convention gives; NaN where nobody is averaged."""
        convention = self.plain(convention)
        if convention.average == "of-means":
            return self._f1_of_means(convention)
        values = self.of_users(convention)
        mask = ~np.isnan(values)
        if convention.average == "pooled":
            fraction = self.fraction(convention)
            bottom = float(fraction.bottom[mask].sum())
            return float(fraction.top[mask].sum()) / bottom if bottom else 0.0
        count = int(np.count_nonzero(mask))
        return float(np.where(mask, values, 0.0).sum()) / count if count else math.nan

    def _f1_of_means(self, convention: Convention) -> float:
        parts = [
            self.mean(replace(convention, metric=metric, average="users", per=per))
            for metric, per in (("P", convention.per), ("Recall", "usual"))
        ]
        total = sum(parts)
        return 2 * parts[0] * parts[1] / total if total else 0.0

    def fraction(self, convention: Convention) -> Fraction:
        """Return the values of all users as fractions, before any choice of users."""
        key = (convention.metric, convention.k, *map(convention.__dict__.get, VALUE_AXES))
        formula = FORMULAS[convention.metric]
        return self._fractions.once(key, lambda: formula(self._case(convention)))

    def _case(self, convention: Convention) -> Case:
        if convention.ties == "expected" and convention.metric not in LINEAR:
            raise SettingError(
                f"the mean of {convention.metric} over all orders of equal scores is not known here"
            )
        rule, stop = ListRule.of(convention), last_rank(convention)
        seen, relevant = self.seen(convention)
        judged_as = self._judged_as(convention)
        return Case(
            convention=convention,
            hits=self.laid.hits(self.system, rule),
            top=self.laid.top_hits(self.system, rule, stop),
            stop=stop,
            is_relevant=relevant,
            gain=self._shared.once(
                ("worth", judged_as), lambda: np.where(seen, self._gain(convention), 0.0)
            ),
            relevant_judgments=self._count(convention),
            ideal=self._ideal(convention),
            lists=rule,
            judged_as=judged_as,
            shared=self._shared,
        )

    def _judged_as(self, convention: Convention) -> tuple[object, ...]:
        """Name which judgments are seen, and what they are worth."""
        c = convention
        is_new = c.duplicates in ("new", "multiple")
        lists = (ListRule.of(c), c.k) if is_new or c.judgments == "listed" else None
        return (c.judgments, c.relevant, c.gain, lists)

    def _hits(self, convention: Convention) -> LaidHits:
        return self.laid.hits(self.system, ListRule.of(convention))

    def seen(self, convention: Convention) -> tuple[Mask, Mask]:
        """Return which judgments the library sees, and which of them are relevant."""
        judgments, relevant = convention.judgments, convention.relevant
        if judgments != "listed":
            return self.laid.seen(judgments, relevant)

        def find() -> tuple[Mask, Mask]:
            seen, liked = self.laid.seen("all", relevant)
            listed = np.zeros(seen.size, np.bool_)
            listed[self._hits(convention).judgment] = True
            return seen & listed, liked & listed

        return self.memory.once(("seen", relevant, ListRule.of(convention)), find)

    def _count(self, convention: Convention, *, relevant: bool = True) -> F64:
        """Count the judgments of each user that are seen, or that are relevant."""
        rule = ListRule.of(convention)
        is_new = convention.duplicates in ("new", "multiple")
        lists = (rule, convention.k if is_new else None)
        listed = convention.judgments == "listed" or is_new

        def count() -> F64:
            mask = self.seen(convention)[int(relevant)]
            again = self._again(convention)
            rows = np.append(np.flatnonzero(mask), again[mask[again]])
            number = np.bincount(self.laid.judgments.user[rows], minlength=len(self.laid.users))
            return number.astype(np.float64)

        key = (relevant, convention.judgments, convention.relevant, lists if listed else None)
        return self.memory.once(("count", *key), count)

    def _again(self, convention: Convention) -> I64:
        """Return the judgments that count once more, for an item that a list has twice."""
        if convention.duplicates not in ("new", "multiple"):
            return np.zeros(0, np.int64)
        k = convention.k if convention.duplicates == "new" else None
        return self._hits(convention).once_more(k)

    def _ideal(self, convention: Convention) -> Ideal:
        again = self._again(convention)
        lists = (ListRule.of(convention), convention.k) if again.size else None
        judgments = self.laid.judgments
        return self.memory.once(
            ("ideal", lists),
            lambda: Ideal.of(judgments.user.astype(np.int64), judgments.value, again),
        )

    def _gain(self, convention: Convention) -> F64:
        key = ("gain of ratings", convention.gain, convention.relevant)
        return self._shared.once(key, lambda: self.gain(convention))

    def gain(self, convention: Convention) -> F64:
        """Return what each judgment is worth, seen or not."""
        value, rule = self.laid.judgments.value, self.laid.relevance
        relevant = self.laid.is_relevant(convention.relevant)
        level = rule.threshold - (1 if rule.liked is not None else 0)
        gains: dict[str, Callable[[], F64]] = {
            "rating": lambda: value,
            "binary": lambda: relevant.astype(np.float64),
            "liked-only": lambda: np.where(relevant, value, 0.0),
            "burges": lambda: np.exp2(value) - 1,
            "burges-liked": lambda: np.where(relevant, np.exp2(value) - 1, 0.0),
            "burges-next": lambda: np.exp2(value + 1) - 1,
            "levels": lambda: np.where(relevant, value - level, 0.0),
            "exponential": lambda: np.where(relevant, np.exp2(value - level) - 1, 0.0),
            "integer": lambda: np.trunc(value),
            "integer-burges": lambda: np.exp2(np.trunc(value)) - 1,
            "integer-burges-liked": lambda: np.where(relevant, np.exp2(np.trunc(value)) - 1, 0.0),
            "integer-liked": lambda: np.where(relevant, np.trunc(value), 0.0),
        }
        with np.errstate(over="ignore"):
            gain = gains[convention.gain]()
        return np.where(self.laid.pooled, 0.0, np.maximum(gain, 0.0))

    def averaged(self, convention: Convention, values: F64) -> Mask:
        """Tell which users are averaged; `values` has NaN for those who are left out."""
        mask = self._users(convention)
        if convention.users == "above-zero":
            mask = mask & (np.nan_to_num(values) > 0)
        return mask & ~np.isnan(values)

    def _users(self, convention: Convention) -> Mask:
        rule = ListRule.of(convention)
        key = ("users", convention.users, convention.judgments, convention.relevant, rule)
        return self.memory.once(key, lambda: self._chosen(convention))

    def _chosen(self, convention: Convention) -> Mask:
        listed = self._hits(convention).with_list
        # A judgment that only says that an item was in a pool makes a user one with judgments.
        pooled = np.bincount(
            self.laid.judgments.user[self.laid.pooled], minlength=len(self.laid.users)
        )
        tested = self._count(convention, relevant=False) > 0
        if convention.judgments == "all":
            tested |= pooled > 0
        liked = self._count(convention) > 0
        options: dict[str, Callable[[], Mask]] = {
            "with-test": lambda: tested,
            "with-relevant": lambda: liked,
            "both": lambda: tested & listed,
            "list-and-relevant": lambda: liked & listed,
            "with-list": lambda: listed,
            "with-hit": lambda: self._with_hit(convention),
            "above-zero": lambda: np.ones(tested.size, np.bool_),
            "all": lambda: tested | listed,
        }
        return np.asarray(options[convention.users]())

    def _with_hit(self, convention: Convention) -> Mask:
        hits, relevant = self._hits(convention), self.seen(convention)[1]
        count = np.bincount(hits.user[relevant[hits.judgment]], minlength=len(self.laid.users))
        return np.asarray(count > 0)


def first_alike(arrays: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Name, for each array, the first one that equals it."""
    names: dict[bytes, str] = {}
    return {name: names.setdefault(array.tobytes(), name) for name, array in arrays.items()}


def _rounded(values: F64, digits: str) -> F64:
    return values if digits == "none" else np.round(values, int(digits))
