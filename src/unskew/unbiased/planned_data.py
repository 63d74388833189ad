"""`judgments_for`, `random_pairs_for`: what data would test a stated difference of two systems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import I32
from unskew.checks import as_count, as_number, check_share, checked
from unskew.data.ratings import Ids
from unskew.data.readers import read_items, read_ratings
from unskew.errors import SettingError
from unskew.report.result import Result
from unskew.runs import Run, read_run
from unskew.stats.sample_sizes import check_power
from unskew.unbiased.listed_pairs import ListedPairs, extended
from unskew.unbiased.weighted_averages import LEVEL

JUDGMENTS = "judgments of recommendations chosen at random, half from each system's side"
PAIRS = "pairs of a user and an item shown at random"


@dataclass(frozen=True, kw_only=True)
class DataNeeded(Result):
    """How many judgments test a stated difference. From `judgments_for`, `random_pairs_for`."""

    what: str
    """What is to be judged."""
    needed: int | None
    """None where no number of them would do."""
    difference: float
    """The smallest difference of true precision that is to be noticed."""
    k: int
    power: float
    level: float
    share_liked: float
    """Assumed mean liked share of the places in which the lists differ."""
    places_a: int
    """Places of a whose item b does not list for the same user."""
    places_b: int
    lists: int
    reason: str = ""
    """Why no number of them would do."""

    def table(self) -> pl.DataFrame:
        """Return the one row of numbers."""
        return pl.DataFrame([self.__dict__], {"needed": pl.Int64}, strict=False)

    def _summary(self) -> str:
        return self.reason or f"{self.needed:,} {self.what}"


@dataclass(frozen=True)
class _Places:
    """Where two systems' lists differ."""

    a: int
    b: int
    lists: int
    k: int

    @property
    def parts(self) -> tuple[float, float]:
        """The shares of all places in which the lists differ, on either side."""
        whole = self.lists * self.k
        return self.a / whole, self.b / whole

    def shares(self, difference: float, mean: float) -> tuple[float, float] | None:
        """Return liked shares on both sides that differ so much, around a mean; None if none do."""
        part_a, part_b = self.parts
        both = part_a + part_b
        if not (self.a and self.b):
            return None
        # c_a s_a - c_b s_b = difference, with the mean of s_a and s_b as stated.
        gap = 2 * (difference - mean * (part_a - part_b)) / both
        shares = mean + gap / 2, mean - gap / 2
        return shares if all(0 <= one <= 1 for one in shares) else None

    def reason(self, difference: float, mean: float) -> str:
        """Say why no liked shares give this difference; nothing where some do."""
        if not (self.a and self.b):
            return "one of the two systems lists nothing that the other does not"
        if self.shares(difference, mean) is None:
            return (
                f"lists that differ in {self.a:,} and {self.b:,} places, {mean:.0%} of them liked, "
                f"cannot differ by {difference:g} in precision"
            )
        return ""


@checked
def judgments_for(
    lists_a: object,
    lists_b: object,
    difference: float,
    power: float = 0.8,
    level: float = LEVEL,
    share_liked: float = 0.5,
    *,
    k: int = 10,
) -> DataNeeded:
    r"""Say how many judgments of randomly chosen recommendations test a stated difference.

    Half of the judged recommendations are drawn from what A lists and B does not, half from what B
    lists and A does not. With :math:`c_a`, :math:`c_b` the shares of all places on either side and
    :math:`s_a`, :math:`s_b` the liked shares there, true precision differs by :math:`c_a s_a - c_b
    s_b`, and h judgments of each side give it with variance :math:`(c_a^2 s_a(1-s_a) + c_b^2
    s_b(1-s_b)) / h`, less
    where h is a large part of the places (drawn without replacement).

    Parameters
    ----------
    lists_a, lists_b
        The ranked lists of two systems for the same users: anything that `read_run` takes.
    difference
        The smallest difference of true precision at k that is to be noticed. State it before data
        are seen: a number computed from an observed difference says nothing new.
    power
        How surely a difference of this size is noticed.
    level
        Of the interval: noticed means that it does not hold 0.
    share_liked
        The mean liked share of the places in which the lists differ; one half is the worst case.
    k
        How many places of each list are looked at.

    Examples
    --------
    >>> import unskew as us
    >>> x = {user: ["a", "b"] for user in range(1000)}
    >>> y = {user: ["a", "c"] for user in range(1000)}
    >>> us.unbiased.judgments_for(x, y, 0.05, k=2).needed
    562
    """
    _check(difference, power, level, share_liked)
    places = _places(_listed(lists_a, lists_b, as_count("k", k)))
    shares = places.shares(difference, share_liked)
    needed = None
    if shares is not None:
        of_a, of_b = (c * c * s * (1 - s) for c, s in zip(places.parts, shares, strict=True))
        wanted = (difference / _factor(power, level)) ** 2
        half = (of_a + of_b) / (wanted + of_a / places.a + of_b / places.b)
        # Student's t instead of the normal distribution.
        half = math.ceil(half + NormalDist().inv_cdf((1 + level) / 2) ** 2 / 4 - 1e-9)
        needed = min(half, places.a) + min(half, places.b)
    return DataNeeded(
        what=JUDGMENTS,
        needed=needed,
        difference=difference,
        k=k,
        power=power,
        level=level,
        share_liked=share_liked,
        places_a=places.a,
        places_b=places.b,
        lists=places.lists,
        reason=places.reason(difference, share_liked),
    )


@checked
def random_pairs_for(
    lists_a: object,
    lists_b: object,
    difference: float,
    power: float = 0.8,
    level: float = LEVEL,
    share_liked: float = 0.5,
    *,
    k: int = 10,
    train: object = None,
    items: object = None,
) -> DataNeeded:
    r"""Say how many pairs of all candidates, shown at random and rated, test a stated difference.

    Of n pairs drawn at random from all C pairs that could be recommended, n/C times as many fall
    where the lists differ as there are such places: far more are needed than of judgments of chosen
    recommendations (`judgments_for`), but they serve any systems.

    Parameters
    ----------
    lists_a, lists_b, difference, power, level, share_liked, k
        As for `judgments_for`.
    train
        Training ratings, whose pairs are no candidates: anything that `read_ratings` takes.
    items
        The catalogue, beyond the items of the lists. Default: the items of `train`.

    Examples
    --------
    >>> import unskew as us
    >>> x = {user: ["a", "b"] for user in range(1000)}
    >>> y = {user: ["a", "c"] for user in range(1000)}
    >>> us.unbiased.random_pairs_for(x, y, 0.1, k=2, items=list("abcdefghij")).needed
    871
    """
    _check(difference, power, level, share_liked)
    listed = _listed(lists_a, lists_b, as_count("k", k))
    places = _places(listed)
    candidates = _candidates(listed, train, items)
    shares = places.shares(difference, share_liked)
    needed = None
    if shares is not None:
        sides = zip((places.a, places.b), shares, strict=True)
        spread = sum(c * s * (1 - s) for c, s in sides) / (places.lists * k) ** 2
        wanted = (difference / _factor(power, level)) ** 2
        number = candidates * spread / (wanted + spread)
        # Student's t instead of the normal distribution, of what falls where the lists differ.
        number += (
            NormalDist().inv_cdf((1 + level) / 2) ** 2 / 2 * candidates / (places.a + places.b)
        )
        needed = min(math.ceil(number - 1e-9), candidates)
    return DataNeeded(
        what=PAIRS,
        needed=needed,
        difference=difference,
        k=k,
        power=power,
        level=level,
        share_liked=share_liked,
        places_a=places.a,
        places_b=places.b,
        lists=places.lists,
        reason=places.reason(difference, share_liked),
    )


def _check(difference: float, power: float, level: float, share_liked: float) -> None:
    as_number("difference", difference, most=1.0, above=True)
    check_share("level", level)
    check_power(power, 1 - level)
    check_share("share_liked", share_liked)


def _factor(power: float, level: float) -> float:
    """Return how many standard errors a difference must be, to be noticed so surely."""
    return NormalDist().inv_cdf((1 + level) / 2) + NormalDist().inv_cdf(power)


@dataclass(frozen=True, eq=False)
class _Listed:
    """The lists of two systems under common numbers, and the runs."""

    pairs: ListedPairs
    runs: tuple[Run, Run]
    users: list[I32]


def _listed(lists_a: object, lists_b: object, k: int) -> _Listed:
    runs = read_run(lists_a), read_run(lists_b)
    users, _ = extended(runs[0].users, [run.users for run in runs])
    items, width = extended(runs[0].items, [run.items for run in runs])
    names = dict(zip("ab", runs, strict=True))
    pairs = ListedPairs.of_runs(names, users, items, k, width)
    if not any(owners.size for owners in pairs.owners):
        raise SettingError("lists_a and lists_b: every list is empty")
    return _Listed(pairs, runs, users)


def _places(listed: _Listed) -> _Places:
    pairs = listed.pairs
    lists = int(np.union1d(*pairs.owners).size)
    return _Places(int(pairs.only(0, 1).size), int(pairs.only(1, 0).size), lists, pairs.k)


def _candidates(listed: _Listed, train: object, items: object) -> int:
    """Count the pairs that could be recommended to the users that have a list."""
    ratings = None if train is None else read_ratings(train)
    known = [run.items for run in listed.runs]
    if items is not None:
        known.append(Ids.number(read_items(items))[0])
    elif ratings is not None:
        known.append(ratings.items)
    catalogue, _ = Ids.union(*known)
    owners = np.union1d(*listed.pairs.owners)
    total = int(owners.size) * len(catalogue)
    if ratings is not None:
        (user, *_), _ = extended(listed.runs[0].users, [ratings.users, listed.runs[1].users])
        there = catalogue.codes(ratings.items.values)[ratings.item] >= 0
        total -= int(np.count_nonzero(np.isin(user[ratings.user[there]], owners)))
    return total
