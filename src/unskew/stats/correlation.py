"""How alike two orders of systems are: Kendall's τ_b, τ_AP, RBO, and the pairs that swap."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64, frozen
from unskew.checks import checked
from unskew.engine.rng import key_of
from unskew.errors import DataError, SettingError
from unskew.stats.special import p_of_counts

Values = Mapping[str, float] | ArrayLike
"""A value per system, higher is better: by name, or in the same order on both sides."""

FEW = 9
"""Systems up to which all orders are tried out where there are ties: 9! = 362,880."""
MANY = 200
"""Systems up to which the exact distribution without ties is worked out."""
PERMUTATIONS = 100_000
DIGITS = 12


@dataclass(frozen=True)
class Tau:
    """Kendall's τ_b and how likely one as far from 0 is where the orders are unrelated."""

    value: float
    p: float
    """Two-sided. NaN where τ is undefined."""
    method: str
    """`exact`, or `permutation` (a Monte Carlo estimate, with +1)."""
    systems: int

    def __str__(self) -> str:
        return f"τ_b = {self.value:.3f} ({self.systems} systems, p = {self.p:.3g}, {self.method})"


@checked
def kendall(a: Values, b: Values) -> float:
    r"""Return Kendall's τ_b of two orders of the same systems.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(n_0 - n_a)(n_0 - n_b)}}

    with C concordant and D discordant pairs, :math:`n_0 = n(n-1)/2` pairs in all, and
    :math:`n_a, n_b` pairs tied in a and in b. NaN where either side is all ties.

    Parameters
    ----------
    a, b
        Values per system: arrays in the same order of systems, or mappings from system to value.

    References
    ----------
    Kendall 1945; valcarce2018 sections 4 to 7 (through SciPy, which computes the same).

    Examples
    --------
    >>> from unskew.stats.correlation import kendall
    >>> kendall([0.4, 0.3, 0.2], [0.9, 0.5, 0.7])
    0.3333333333333333
    """
    from unskew.stats import kernels

    first, second = _aligned(a, b)
    return float(kernels.tau_b(frozen(first), frozen(second)))


def kendall_test(a: Values, b: Values, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Tau:
    """Return τ_b with its p-value under the null hypothesis that every order is equally likely.

    Without ties the distribution of discordant pairs is exact (Kendall 1938; as SciPy's
    `method="exact"`). With ties all n! orders are tried for up to 9 systems; beyond, `permutations`
    random ones, p = (1 + as far from 0) / (1 + permutations). Far is by the size of τ: with ties
    its distribution need not be the same on both sides.

    Examples
    --------
    >>> from unskew.stats.correlation import kendall_test
    >>> print(kendall_test([5, 4, 3, 2, 1], [5, 4, 3, 1, 2]))
    τ_b = 0.800 (5 systems, p = 0.0833, exact)
    """
    from unskew.stats import kernels

    first, second = (frozen(side) for side in _aligned(a, b))
    value = float(kernels.tau_b(first, second))
    n = first.size
    if math.isnan(value):
        return Tau(value, math.nan, "exact", n)
    balance, apart_a, apart_b = kernels.concordance(first, second)
    pairs = n * (n - 1) // 2
    if apart_a == pairs and apart_b == pairs and n <= MANY:
        return Tau(value, _untied_p(n, (pairs - balance) // 2), "exact", n)
    if n <= FEW:
        far, count = kernels.all_permutations(first, second)
        return Tau(value, far / count, "exact", n)
    if permutations < 1:
        raise SettingError(f"permutations must be at least 1, got {permutations}")
    key = np.uint64(key_of(seed, "kendall"))
    far = kernels.some_permutations(first, second, key, 0, permutations)
    return Tau(value, p_of_counts(far, permutations), "permutation", n)


@checked
def tau_ap(a: Values, b: Values, *, symmetric: bool = False) -> float:
    r"""Return AP correlation τ_AP of an order a with a reference b: the top weighs more.

    .. math:: \tau_{AP} = \frac{2}{n-1} \sum_{i=2}^{n} \frac{C(i)}{i-1} - 1

    with C(i) the systems above rank i of `a` that `b` also puts above the one at rank i. Ties are
    broken at random on both sides and the mean over all ways is returned, in closed form.

    Parameters
    ----------
    a, b
        Values per system. `b` is the reference; exchanging them gives another number.
    symmetric
        Mean of both directions.

    Returns
    -------
    float
        From -1, the reference reversed, to 1, the order of the reference.

    References
    ----------
    Yilmaz, Aslam & Robertson 2008; ties in the sense of τ_AP,a of Urbano & Marrero 2017.

    Examples
    --------
    To exchange two neighbours costs more at the top than at the bottom.

    >>> from unskew.stats import tau_ap
    >>> [round(tau_ap(a, [4, 3, 2, 1]), 3) for a in ([3, 4, 2, 1], [4, 3, 1, 2])]
    [0.333, 0.778]
    """
    first, second = _aligned(a, b)
    if symmetric:
        return (_tau_ap(first, second) + _tau_ap(second, first)) / 2
    return _tau_ap(first, second)


def _tau_ap(order: F64, reference: F64) -> float:
    n = order.size
    total = 0.0
    for value in np.unique(order):
        tied = np.flatnonzero(order == value)
        above = np.flatnonzero(order > value)
        gap = reference[above][None, :] - reference[tied][:, None]
        # What the mean member of the group has rightly above it, from outside the group.
        right = float((gap > 0).sum() + 0.5 * (gap == 0).sum()) / tied.size
        # Members of the group stand above each other half of the time rightly.
        for inside in range(tied.size):
            rank = above.size + inside  # as many are above
            if rank:
                total += (right + inside / 2) / rank
    return 2 * total / (n - 1) - 1


@checked
def rbo(a: Values, b: Values, *, p: float = 0.9) -> float:
    r"""Return rank-biased overlap, extrapolated beyond the last system.

    .. math:: RBO = \frac{1-p}{p} \sum_{d=1}^{n} \frac{X_d}{d} p^d + p^n

    with :math:`X_d` the systems among the first d of both. Ties are broken at random on both
    sides and the mean over all ways is returned: :math:`X_d` is then the sum over systems of the
    product of the chances to be among the first d.

    Parameters
    ----------
    a, b
        Values per system.
    p
        How likely a reader goes on to the next rank: the smaller, the more the top weighs.

    Returns
    -------
    float
        At most 1, which is the same order on both sides without ties; above 0.

    References
    ----------
    Webber, Moffat & Zobel 2010, equation 30 for two full orders of the same systems; ties as
    RBO^a of Corsi & Urbano 2024.

    Examples
    --------
    To exchange two neighbours costs more at the top than at the bottom.

    >>> from unskew.stats import rbo
    >>> [round(rbo(a, [4, 3, 2, 1]), 3) for a in ([3, 4, 2, 1], [4, 3, 1, 2])]
    [0.9, 0.973]
    """
    first, second = _aligned(a, b)
    if not 0 < p < 1:
        raise SettingError(f"p must lie between 0 and 1, got {p!r}")
    n = first.size
    depth = np.arange(1, n + 1)
    overlap = (_among_first(first) * _among_first(second)).sum(axis=1)
    return float((1 - p) / p * np.sum(overlap / depth * p**depth) + p**n)


def _among_first(values: F64) -> F64:
    """Return depths x systems: the chance to be among the first d where ties break at random."""
    above = (values[:, None] < values[None, :]).sum(axis=1)
    tied = (values[:, None] == values[None, :]).sum(axis=1)
    depth = np.arange(1, values.size + 1)[:, None]
    chance: F64 = np.clip((depth - above) / tied, 0.0, 1.0)
    return chance


def swaps(a: Mapping[str, float], b: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the pairs (x, y) with x above y in `a` and y above x in `b`; ties are no swaps."""
    _aligned(a, b)
    names = sorted(a, key=lambda name: -a[name])
    return [
        (x, y)
        for index, x in enumerate(names)
        for y in names[index + 1 :]
        if a[x] > a[y] and b[y] > b[x]
    ]


def rounded(values: F64) -> F64:
    """Round means that were added up in floating point, so that equal ones are ties.

    To 12 digits of the largest along the last axis: sums of equal values in another order differ
    by less.
    """
    top = np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore"):
        scaled: F64 = np.round(values / np.where(top > 0, top, 1.0), DIGITS)
    return scaled


@lru_cache(maxsize=64)
def _inversions(n: int) -> F64:
    """Return the cumulative distribution of the discordant pairs of two random orders."""
    chance = np.ones(1)
    for size in range(2, n + 1):
        chance = np.convolve(chance, np.full(size, 1.0 / size))
    return frozen(np.cumsum(chance))


def _untied_p(n: int, discordant: int) -> float:
    pairs = n * (n - 1) // 2
    fewer = min(discordant, pairs - discordant)
    return 1.0 if 2 * fewer == pairs else min(1.0, 2 * float(_inversions(n)[fewer]))


def _aligned(a: Values, b: Values) -> tuple[F64, F64]:
    """Bring both sides into one order, once they are known to be of the same systems."""
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        raise SettingError("give both orders by name, or both as plain values")
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if set(a) != set(b):
            odd = sorted(set(a) ^ set(b), key=str)
            raise DataError(f"the orders are not of the same systems; only in one: {odd[0]!r}")
        sides: Sequence[F64] = [_as_values([side[name] for name in a]) for side in (a, b)]
    else:
        sides = [_as_values(a), _as_values(b)]
    first, second = sides
    if first.size != second.size:
        raise DataError(f"one order is of {first.size} systems, the other of {second.size}")
    if first.size < 2:
        raise DataError(f"an order needs at least 2 systems, got {first.size}")
    return first, second


def _as_values(values: object) -> F64:
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError("the values of systems must be numbers") from None
    if column.ndim != 1:
        raise DataError(f"an order is one value per system, got an array of shape {column.shape}")
    missing = int(np.isnan(column).sum())
    if missing:
        raise DataError(f"{missing} of {column.size} systems have no value (NaN): leave them out")
    return column
