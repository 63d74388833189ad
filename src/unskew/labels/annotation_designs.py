"""Which pairs people judge, and in which order: strata, allocation of a budget, random order."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import choose
from unskew.data.ratings import Ids
from unskew.engine.rng import draw, generator
from unskew.errors import DataError, SettingError
from unskew.labels.recommended_pairs import STRATA, PairStrata, RecommendedPairs
from unskew.report.text import counted

DESIGNS = ("uniform", "stratified", "neyman")
LEAST = 2
"""The fewest labels of a stratum: fewer tell nothing of its spread."""
LABELS_PER_STRATUM = 20
"""Strata that would get fewer labels are joined. Sequences of draws say nothing while a stratum has
no slots left: against forecasts by strata alone, stops came 25 % later with 12 labels per stratum,
7 % with 25, 4 % with 50."""
_FLOOR = 0.25
"""No stratum counts as less spread than this part of all strata together."""


@dataclass(frozen=True)
class Wave:
    """Labels that were planned at one time."""

    design: str
    size: int
    slots: tuple[int, ...] | None
    """By stratum; None for simple random draws."""
    uses_labels: bool = False
    """Whether labels of earlier waves decided how many fall on each stratum."""


@dataclass(frozen=True, eq=False)
class Labels:
    """What annotators said so far of planned pairs, by place in the order."""

    value: F64
    """NaN where nothing was said."""
    unclear: Mask
    """Where they said that they cannot tell."""

    @classmethod
    def none(cls, size: int) -> Labels:
        """Return the labels of nobody."""
        return cls(frozen(np.full(size, np.nan)), frozen(np.zeros(size, np.bool_)))

    @cached_property
    def judged(self) -> Mask:
        """Which pairs were looked at."""
        seen: Mask = ~np.isnan(self.value) | self.unclear
        return seen

    @cached_property
    def prefix(self) -> int:
        """How many pairs were judged before the first that was not."""
        return int(self.judged.size if self.judged.all() else self.judged.argmin())

    def longer(self, size: int) -> Labels:
        """Return the same with places behind them that nobody judged."""
        more = Labels.none(size - self.value.size)
        return Labels(
            frozen(np.concatenate([self.value, more.value])),
            frozen(np.concatenate([self.unclear, more.unclear])),
        )


def allocate(
    sizes: I64, scores: F64, budget: int, minimum: int = LEAST, used: I64 | None = None
) -> I64:
    r"""Spread a budget over strata so that the variance of the total is least.

    The variance :math:`\sum_h N_h^2 s_h^2 / n_h` is least at :math:`n_h = n N_h s_h / \sum N_h s_h`
    (Neyman 1934); in whole numbers, where each next label falls on the stratum with the largest
    :math:`N_h s_h / \sqrt{n_h (n_h + 1)}` (Wright 2012). With equal s it is proportional.

    Parameters
    ----------
    sizes
        Units by stratum: no stratum gets more.
    scores
        :math:`N_h s_h`.
    budget
        Labels in all, those `used` included.
    least
        The fewest labels of a stratum, or all that it has.
    used
        Labels that each stratum has already.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.labels.annotation_designs import allocate
    >>> allocate(np.array([1000, 1000]), np.array([300.0, 100.0]), 100).tolist()
    [75, 25]
    """
    start = np.minimum(sizes, minimum)
    counts = start if used is None else np.maximum(start, used)
    if not int(counts.sum()) <= budget <= int(sizes.sum()):
        raise SettingError(
            f"budget={budget}: {counted(sizes.size, 'stratum', 'strata')} of "
            f"{int(sizes.sum()):,} pairs take from {int(counts.sum()):,} to {int(sizes.sum()):,} "
            f"labels"
        )

    def entry(k: int) -> tuple[float, int]:
        n = int(counts[k])
        return (-float(scores[k]) / math.sqrt(n * (n + 1)) if n else -math.inf), k

    counts = counts.copy()
    queue = [entry(k) for k in range(sizes.size) if counts[k] < sizes[k]]
    heapq.heapify(queue)
    for _ in range(budget - int(counts.sum())):
        _, k = heapq.heappop(queue)
        counts[k] += 1
        if counts[k] < sizes[k]:
            heapq.heappush(queue, entry(k))
    return counts


def spreads(coefficient: F64, value: F64, stratum: I32, strata: int) -> F64:
    """Return the standard deviation by stratum of what units add, all contrasts together.

    Parameters
    ----------
    coefficient
        Contrasts x units.
    value
        Of each unit; NaN where it is not known.
    stratum
        Of each unit.
    strata
        How many there are.

    A stratum with few values is drawn towards all strata together, as if two more values had the
    common spread, and none counts as less spread than a quarter of it: labels of a model that
    agree with each other may all be wrong.
    """
    valid = ~np.isnan(value)
    groups, added = stratum[valid], coefficient[:, valid] * value[valid]
    count = np.bincount(groups, minlength=strata)
    squares = np.zeros(strata)
    for row in added:
        mean = np.bincount(groups, row, strata) / np.maximum(count, 1)
        squares += np.bincount(groups, (row - mean[groups]) ** 2, strata)
    common = float(squares.sum()) / max(int(np.maximum(count - 1, 0).sum()), 1)
    variance = (squares + 2 * common) / (np.maximum(count - 1, 0) + 2)
    result: F64 = np.sqrt(np.maximum(variance, _FLOOR**2 * common))
    return result if common > 0 else np.ones(strata)


def strata_of(
    pairs: RecommendedPairs, rows: I64, by: Sequence[str], two: bool, budget: int
) -> tuple[PairStrata, int]:
    """Part the pairs in `rows` by several properties at once; join small strata.

    Parameters
    ----------
    pairs
        All recommended pairs.
    rows
        Those that count.
    by
        Names of `STRATA`.
    two
        Whether the difference of two systems is asked for: disagreement is then who lists a pair.
    budget
        Labels in all: strata that would get fewer than 20 of them are joined with a neighbour.

    Returns
    -------
    tuple
        The strata, and how many there were before small ones were joined.
    """
    code, names = np.zeros(rows.size, np.int64), [""]
    for name in by:
        division = _sides(pairs) if two and name == "disagreement" else pairs.strata(name)
        code = code * len(division.names) + division.code[rows]
        names = [", ".join(filter(None, (old, new))) for old in names for new in division.names]
    present, code = np.unique(code, return_inverse=True)
    groups = [[names[number]] for number in present]
    sizes = np.bincount(code).tolist()
    target = np.arange(len(groups))
    while len(groups) > 1 and min(sizes) * budget < LABELS_PER_STRATUM * rows.size:
        k = sizes.index(min(sizes))
        neighbour = min((n for n in (k - 1, k + 1) if 0 <= n < len(groups)), key=lambda n: sizes[n])
        first, second = sorted((k, neighbour))
        groups[first] += groups.pop(second)
        sizes[first] += sizes.pop(second)
        target = np.where(target >= second, target - 1, target)
    joined = tuple(map(_joined_name, groups))
    return PairStrata(joined, frozen(target[code].astype(np.int32))), len(present)


def check_strata(by: Sequence[str]) -> tuple[str, ...]:
    """Return the names of what pairs are parted by; refuse unknown and repeated ones."""
    if isinstance(by, str):
        by = (by,)
    names = tuple(choose("strata", name, STRATA) for name in by)
    if len(set(names)) < len(names):
        raise SettingError(f"strata: each can be named once, got {', '.join(names)}")
    return names


def next_rows(
    seed: int, number: int, wave: Wave, ids: tuple[pl.Series, pl.Series], stratum: I32, taken: Mask
) -> I64:
    """Return the rows of a wave in their order, drawn from those that are not taken.

    Every pair has a random number of its own, from the seed and the numbers of its user and item
    among those of all pairs, so that the order of rows in files cannot matter.
    """
    user, item = (Ids.number(column)[1] for column in ids)
    key = draw(seed, "annotate/pair", user, item)
    candidates = np.flatnonzero(~taken)
    candidates = candidates[np.argsort(key[candidates], kind="stable")]
    if wave.slots is None:
        return candidates[: wave.size]
    order = generator(seed, "annotate/slots", number).permutation(
        np.repeat(np.arange(len(wave.slots)), wave.slots)
    )
    rows = np.empty(order.size, np.int64)
    for k, slots in enumerate(wave.slots):
        rows[order == k] = candidates[stratum[candidates] == k][:slots]
    return rows


def _sides(pairs: RecommendedPairs) -> PairStrata:
    """Part the pairs of two systems by who lists them."""
    a, b = pairs.systems
    inside = np.zeros((2, len(pairs)), np.bool_)
    for row, name in zip(inside, (a, b), strict=True):
        row[pairs.lists[name].pair] = True
    code = np.where(inside[0] & inside[1], 1, np.where(inside[0], 0, 2))
    return PairStrata((f"{a} only", "both", f"{b} only"), frozen(code.astype(np.int32)))


def _joined_name(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return " | ".join(names)
    return f"{names[0]} | … | {names[-1]} ({len(names)} strata)"


def plain_wave(design: str, sizes: I64, budget: int, used: I64) -> Wave:
    """Return a wave of simple random draws, or one in proportion to the sizes of strata."""
    if design == "uniform":
        return Wave(design, budget, None)
    return _wave(design, sizes, sizes.astype(np.float64), budget, used)


def neyman_wave(
    coefficient: F64, stratum: I32, value: F64, budget: int, used: I64, *, uses_labels: bool = False
) -> Wave:
    """Return a wave whose labels fall where values vary most; arguments as of `spreads`."""
    sizes = np.bincount(stratum, minlength=used.size)
    scores = sizes * spreads(coefficient, value, stratum, used.size)
    return _wave("neyman", sizes, scores, budget, used, uses_labels=uses_labels)


def _wave(
    design: str, sizes: I64, scores: F64, budget: int, used: I64, *, uses_labels: bool = False
) -> Wave:
    total = allocate(sizes, scores, budget + int(used.sum()), used=used)
    return Wave(design, budget, tuple((total - used).tolist()), uses_labels)


def pilot_values(value: F64, hint: F64 | None, strata: int) -> F64:
    """Return what the labels of a model leave unexplained of a first batch, by a straight line.

    Parameters
    ----------
    value
        What the label of each pair is worth; NaN where it has none.
    hint
        The labels of a model.
    strata
        How many there are: a handful of labels does not show the spread of each.
    """
    valid = ~np.isnan(value)
    count, minimum = int(valid.sum()), 2 * strata
    if count < minimum:
        raise DataError(
            f"design='neyman' takes the spread of each stratum from labels, and "
            f"{counted(count, 'pair has', 'pairs have')} one: judge at least {minimum}, or extend "
            f"by design='stratified'"
        )
    if hint is None or count < 3 or np.ptp(hint[valid]) == 0:
        return value
    slope, level = np.polyfit(hint[valid], value[valid], 1)
    residual: F64 = value - (level + slope * hint)
    return residual
