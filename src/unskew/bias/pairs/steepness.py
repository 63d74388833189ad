"""Agreement and steepness of functions over pairs of items (mena2021 section 6), exactly.

Over two items a and b, f is steeper than g if its decrement rate 1 - min f / max f is larger. Where
f and g order the items in opposite ways, this is so exactly if their product orders them as f does
(mena2021 Lemma 4); where they order them alike, exactly if the quotient f / g orders them as f
does. So all that is asked about a pair follows from the *orders* of a few fractions of whole
numbers. These orders are worked out once per item with integers of any size; after that, pairs are
a matter of comparing ranks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from unskew.arrays import I8, I32, I64, Mask, Objects, frozen
from unskew.bias.popularity.item_counts import ItemCounts
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError

MOST_GROUPS = 200_000
"""Different items up to which all pairs are looked at; beyond, a random sample of pairs."""
SAMPLE = 10_000_000
BLOCKS = 64


def decrement_rate(a: float, b: float) -> float:
    r"""Return :math:`|f(a) - f(b)| / \max(f(a), f(b))` (mena2021 Eq. 11); NaN where both are 0.

    Examples
    --------
    >>> from unskew.bias.pairs.steepness import decrement_rate
    >>> decrement_rate(1.0, 0.25)
    0.75
    """
    if min(a, b) < 0:
        raise SettingError(f"the decrement rate needs values of at least 0, got {min(a, b)}")
    return abs(a - b) / max(a, b) if max(a, b) > 0 else math.nan


def agree(f: tuple[float, float], g: tuple[float, float]) -> bool:
    """Return whether f and g, each given for two items, order them alike; ties do not.

    Examples
    --------
    >>> from unskew.bias.pairs.steepness import agree
    >>> agree((0.5, 0.2), (0.6, 0.5)), agree((0.5, 0.2), (0.5, 0.6))
    (True, False)
    """
    return (f[0] < f[1] and g[0] < g[1]) or (f[0] > f[1] and g[0] > g[1])


@dataclass(frozen=True, eq=False)
class Signs:
    """How many pairs of items are ordered in which way by each of several functions."""

    names: tuple[str, ...]
    """The functions."""
    counts: I64
    """Pairs of each combination of signs; 3 to the power of the number of functions."""
    items: int
    sampled: bool = False

    @property
    def pairs(self) -> int:
        """The number of pairs counted."""
        return int(self.counts.sum())

    def sign(self, name: str) -> I8:
        """Return, for each combination, how the function orders the pair: 1, 0 or -1."""
        signs: I8 = _digits(len(self.names))[self.names.index(name)]
        return signs

    def number(self, mask: Mask) -> int:
        """Return the number of pairs in some combinations."""
        return int(self.counts[mask].sum())

    def share(self, mask: Mask) -> float:
        """Return their share of all pairs."""
        return self.number(mask) / self.pairs

    def error(self, share: float) -> float:
        """Return the standard error of a share: 0 where all pairs were counted."""
        return math.sqrt(share * (1 - share) / self.pairs) if self.sampled else 0.0

    def agree(self, f: str, g: str) -> Mask:
        """Mark the combinations in which f and g agree (ties do not)."""
        return self.sign(f) * self.sign(g) > 0

    def disagree(self, f: str, g: str) -> Mask:
        """Mark the combinations in which f and g disagree (ties do not)."""
        return self.sign(f) * self.sign(g) < 0

    def tau(self, f: str, g: str) -> float:
        """Return Kendall's τ_b of the orders by f and by g; NaN where one is all ties."""
        a, b = self.sign(f), self.sign(g)
        balance = self.number(a * b > 0) - self.number(a * b < 0)
        apart = self.number(a != 0) * self.number(b != 0)
        return balance / math.sqrt(apart) if apart else math.nan

    def steeper(self, f: str, g: Mapping[str, str], negative: bool = False) -> Mask:
        """Mark the combinations in which f is steeper than a function g.

        Equal decrement rates are not steeper, and neither is anything where g is 0 for both items
        (0/0), as in the authors' counts.

        Parameters
        ----------
        f
            The name of f.
        g
            The names of g (`of`), of f·g (`product`) and of f/g (`quotient`).
        negative
            Whether `of` names 1 - g instead, which is ordered the other way round.
        """
        mine, product, quotient = (self.sign(name) for name in (f, g["product"], g["quotient"]))
        theirs = -self.sign(g["of"]) if negative else self.sign(g["of"])
        apart = mine != 0
        opposite = apart & (mine * theirs < 0) & (product == mine)
        alike = apart & (mine * theirs > 0) & (quotient == mine)
        # Equal g: its decrement rate is 0, or 0/0 if it is 0, and then so are both products.
        flat = apart & (theirs == 0) & (product != 0)
        steeper: Mask = opposite | alike | flat
        return steeper


@lru_cache(maxsize=4)
def _digits(functions: int) -> I8:
    """Return the sign of each function (rows) in each combination (columns)."""
    codes = np.arange(3**functions)
    powers = 3 ** np.arange(functions - 1, -1, -1)
    digits: I8 = frozen((codes // powers[:, None] % 3 - 1).astype(np.int8))
    return digits


# The functions

REL = {"of": "rating", "product": "odds*rating", "quotient": "odds/rating"}
NONREL = {"of": "rating", "product": "odds*bad", "quotient": "odds/bad"}
TRUE_REL = {"of": "relevance", "product": "odds*relevance", "quotient": "odds/relevance"}
TRUE_NONREL = {"of": "relevance", "product": "odds*dislike", "quotient": "odds/dislike"}

Fractions = dict[str, tuple[Objects, Objects]]


def observed_functions(counts: ItemCounts) -> Fractions:
    """Return what ratings alone tell, as top and bottom of fractions.

    `odds*rating` is φ_P̂ and `odds*bad` is -φ_antiP̂ (mena2021 Eqs. 8 and 10).
    """
    n, r = _integers(counts.rated), _integers(counts.liked)
    m, d = _integers(counts.users) - n, n - r
    return {
        "odds": (n, m),
        "rating": (r, n),
        "odds*rating": (r, m),
        "odds*bad": (d, m),
        "odds/rating": (n * n, m * r),
        "odds/bad": (n * n, m * d),
    }


def true_functions(counts: ItemCounts) -> Fractions:
    """Return the functions that need p(rel|i), and the observed optimal rankings.

    `truth` is p(rel|¬train,i), the optimal ranking for real precision and anti-precision alike
    (mena2021 Eqs. 6 and 9).
    """
    if counts.asked is None or counts.asked_liked is None:
        raise DataError("relevance is not known: random judgments (random=…) are needed")
    n, r, u = (_integers(x) for x in (counts.rated, counts.liked, counts.users))
    a, q = _integers(counts.asked), _integers(counts.asked_liked)
    m = u - n
    rel, dislike, total = r * a + m * q, (n - r) * a + m * (a - q), u * a
    return {
        "odds": (n, m),
        "relevance": (rel, total),
        "odds*relevance": (n * rel, m * total),
        "odds*dislike": (n * dislike, m * total),
        "odds/relevance": (n * total, m * rel),
        "odds/dislike": (n * total, m * dislike),
        "odds*rating": (r, m),
        "odds*bad": (n - r, m),
        "truth": (q, a),
    }


def _integers(column: I64) -> Objects:
    return column.astype(object)


def dense_ranks(top: Objects, bottom: Objects) -> I32:
    """Return the ranks 0, 1, … of fractions, equal ones alike; nothing over 0 is infinite.

    Exact for integers of any size: dividing rounds, but never turns an order round, so only
    fractions that round to the same number need a closer look.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.bias.pairs.steepness import dense_ranks
    >>> dense_ranks(np.array([1, 2, 1, 1], object), np.array([2, 4, 0, 3], object)).tolist()
    [1, 1, 2, 0]
    """
    value = np.array([t / b if b else math.inf for t, b in zip(top, bottom, strict=True)])
    order = np.argsort(value, kind="stable")
    new = _differ(top, bottom, order)
    rounded = np.zeros(new.size, np.bool_)
    rounded[1:] = new[1:] & (value[order[1:]] == value[order[:-1]])
    if rounded.any():
        edges = np.flatnonzero(np.append(np.diff(value[order], prepend=-1.0) != 0, True))
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if rounded[low:high].any():
                run = order[low:high].tolist()
                run.sort(key=lambda index: Fraction(int(top[index]), int(bottom[index])))
                order[low:high] = run
        new = _differ(top, bottom, order)
    ranks = np.empty(order.size, np.int32)
    ranks[order] = np.cumsum(new) - 1
    return ranks


def _differ(top: Objects, bottom: Objects, order: I64) -> Mask:
    """Mark the fractions that differ from the one before; the first does."""
    t, b = top[order], bottom[order]
    new = np.ones(order.size, np.bool_)
    new[1:] = t[1:] * b[:-1] != t[:-1] * b[1:]
    return new


# Counting pairs


def count_signs(
    counts: ItemCounts,
    true: bool,
    *,
    sample: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Signs:
    """Count all pairs of items by how the functions order them, or a random sample of pairs.

    Parameters
    ----------
    counts
        Items that are all usable (and with `true`, all identified).
    true
        The functions of `true_functions` instead of `observed_functions`.
    sample
        How many random pairs instead of all; None: all pairs up to 200,000 different items,
        10 million random ones beyond.
    seed
        For the sample.
    threads
        How many to use; never changes a number.
    """
    if sample is not None and sample < 1:
        raise SettingError(f"sample={sample}: at least one pair is needed; None uses all pairs")
    items = len(counts.items)
    if items < 2:
        raise DataError(f"pairs need two items that some but not all users rated; got {items}")
    distinct, group, weight = _grouped(counts)
    functions = true_functions(distinct) if true else observed_functions(distinct)
    ranks = frozen(np.array([dense_ranks(top, bottom) for top, bottom in functions.values()]))
    if sample is None and weight.size > MOST_GROUPS:
        sample = SAMPLE
    blocks = (
        _count_all(ranks, weight, threads)
        if sample is None
        else (_count_some(ranks, group, sample, seed, threads))
    )
    return Signs(tuple(functions), frozen(blocks), items, sample is not None)


def consistency_error(counts: ItemCounts, threads: int | None = None) -> float:
    """Return the standard error of how much more often precision than anti-precision is consistent.

    That is, of the difference of the two shares of pairs, items being a sample: the jackknife,
    which leaves out one item after the other. NaN for two items.
    """
    from unskew.bias.pairs import kernels

    items = len(counts.items)
    if items < 3:
        return math.nan
    distinct, group, weight = _grouped(counts)
    functions = true_functions(distinct)
    phi, bad, truth = (
        frozen(dense_ranks(*functions[name])) for name in ("odds*rating", "odds*bad", "truth")
    )
    out = np.empty(weight.size, np.int64)
    size = 64

    def fill(low: int) -> None:
        high = min(low + size, weight.size)
        kernels.item_balance(phi, bad, truth, weight, low, high, out)

    map_blocks(fill, range(0, weight.size, size), threads, size=weight.size**2)
    mean = out[group] / (items - 1)  # of each item with all others
    apart = mean - mean.mean()
    factor = 4 * (items - 1) / (items * (items - 2) ** 2)
    return math.sqrt(factor * math.fsum((apart * apart).tolist()))


def _grouped(counts: ItemCounts) -> tuple[ItemCounts, I64, I64]:
    """Return one of each kind of item, the kind of each item, and how many there are of each."""
    columns = [counts.users, counts.rated, counts.liked]
    if counts.asked is not None and counts.asked_liked is not None:
        columns += [counts.asked, counts.asked_liked]
    order = np.lexsort(columns)
    sorted_ = np.array([column[order] for column in columns])
    new = np.ones(order.size, np.bool_)
    new[1:] = (sorted_[:, 1:] != sorted_[:, :-1]).any(axis=0)
    kind = np.empty(order.size, np.int64)
    kind[order] = np.cumsum(new) - 1
    # Kinds are numbered as their first items are, so that ids stay in sorted order.
    example = order[new]
    rank = np.empty(example.size, np.int64)
    rank[np.argsort(example)] = np.arange(example.size)
    group = rank[kind]
    return counts.take(np.sort(example)), frozen(group), frozen(np.bincount(group))


def _count_all(ranks: I32, weight: I64, threads: int | None) -> I64:
    from unskew.bias.pairs import kernels

    groups = weight.size
    # Rows of a triangle: edges at roots of equal steps give blocks of equal area.
    parts = min(BLOCKS, groups)
    edges = np.unique((groups * np.sqrt(np.arange(parts + 1) / parts)).astype(np.int64))

    def block(number: int) -> I64:
        out = np.zeros(3 ** len(ranks), np.int64)
        kernels.all_pairs(ranks, weight, int(edges[number]), int(edges[number + 1]), out)
        return out

    results = map_blocks(block, range(edges.size - 1), threads, size=groups * groups)
    total: I64 = np.sum(results, axis=0)
    return total


def _count_some(ranks: I32, group: I64, sample: int, seed: int, threads: int | None) -> I64:
    from unskew.bias.pairs import kernels

    key = np.uint64(key_of(seed, "bias/pairs"))
    edges = np.arange(BLOCKS + 1) * sample // BLOCKS

    def block(number: int) -> I64:
        out = np.zeros(3 ** len(ranks), np.int64)
        kernels.some_pairs(ranks, group, key, int(edges[number]), int(edges[number + 1]), out)
        return out

    total: I64 = np.sum(map_blocks(block, range(BLOCKS), threads, size=sample), axis=0)
    return total
