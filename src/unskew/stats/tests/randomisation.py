"""The randomisation test: signs of users' differences flipped at random, for all pairs at once.

Under the null hypothesis that two systems do not differ, each user's two values could as well have
come from the other system: the sign of each difference is a coin's. With s a vector of signs and
a_i the values of system i, s·(a_i - a_j) = s·a_i - s·a_j: what is computed once per system serves
all pairs. The same signs serve all metrics, so that the joint distribution over pairs and metrics
is there for Westfall and Young's correction.

Values are put on a grid of whole numbers first (`grid_of`). That makes every sum exact: ties
between permutations, which P@10 is full of, are ties and no accident of rounding, and neither
blocks nor threads can change a bit. All sign patterns of few users are added in 64 bits; random
ones of many users in 32 (`_in_32_bits`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from unskew.arrays import F64, I8, I32, I64, Mask
from unskew.engine.progress import Progress, Steps
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, resolve
from unskew.stats.special import p_of_counts

BLOCK = 4096
"""Permutations at a time: tables of sums are built once per block, and a block stays in cache."""
USERS = 4096
"""Users whose signs are drawn at a time; a multiple of 64."""
_MOST_DENOMINATOR = 1_000
_MOST_STEPS = 1 << 30
_NEAR = 1e-12
_MOST_DISTINCT = 2_000
_EXACT_SUM = 2.0**52


# The grid


@dataclass(frozen=True)
class ValueGrid:
    """A unit of which all values are taken as whole numbers."""

    unit: float
    exact: bool
    """Whether the values are multiples of the unit, as those of P@10 of 0.1, or rounded to it."""

    def place(self, values: F64) -> F64:
        """Turn values into whole numbers of the unit, in place."""
        np.divide(values, self.unit, out=values)
        return np.rint(values, out=values)

    def tolerance(self, users: int) -> float:
        """Return by how many units sums that are equal may differ.

        0 where values are multiples of the unit. Else each difference is rounded by at most one
        unit, evenly around 0: twice the sum over the flipped users has a standard deviation of
        at most sqrt(n / 3), and 5 sqrt(n) is more than eight of them. For 6,040 users that is
        1e-9 in the unit of the values' sum: far finer than 100,000 permutations can tell apart.
        """
        return 0.0 if self.exact else min(5.0 * math.sqrt(users), 2.0 * users)


def grid_of(values: F64) -> ValueGrid:
    """Find a grid on which all sums over users, and their differences, are exact in float64.

    Where all values are multiples of a common unit (P@10, hits, RR@10, means of a few lists of
    these) it is that unit; else the finest power of two for which sums stay below 2**52.
    """
    columns = range(values.shape[1])
    largest_sum = max((float(np.abs(values[:, c]).sum()) for c in columns), default=0.0)
    if largest_sum == 0:
        return ValueGrid(1.0, True)
    largest = max(float(np.abs(values[:, c]).max()) for c in columns)
    steps = _common_steps(values, largest)
    if steps is not None and largest_sum / largest * steps < _EXACT_SUM:
        return ValueGrid(largest / steps, True)
    return ValueGrid(2.0 ** (math.frexp(largest_sum)[1] - 52), False)


def _common_steps(values: F64, largest: float) -> int | None:
    """Return a number m such that all values are multiples of `largest` / m, if m is not vast."""
    steps = 1
    for start in range(0, values.shape[0], USERS):
        ratio = np.abs(values[start : start + USERS]) / largest
        near = ratio * steps
        ratio = ratio[np.abs(near - np.rint(near)) > _NEAR * steps]
        if ratio.size > _MOST_DISTINCT:
            ratio = np.unique(ratio)
            if ratio.size > _MOST_DISTINCT:
                return None
        for fromkey in dict.fromkeys(ratio.tolist()):
            fraction = Fraction(fromkey).limit_denominator(_MOST_DENOMINATOR)
            if abs(float(fraction) - fromkey) > _NEAR:
                return None
            steps = math.lcm(steps, fraction.denominator)
            if steps > _MOST_STEPS:
                return None
    return steps


# The permutations


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Pairs of columns of the values to compare, and what each was observed to be."""

    first: I64
    second: I64
    side: I8
    """0 two-sided, 1 the first is greater, -1 it is less."""
    threshold: F64
    """What a permutation must reach to count, in units of the sum."""
    families: tuple[I64, ...] = ()
    """For Westfall and Young: the hypotheses that are corrected together, most significant first;
    `scale` makes them comparable."""
    scale: F64 | None = None


@dataclass(frozen=True, eq=False)
class Counts:
    """How many permutations were at least as extreme as what was observed."""

    each: I64
    largest: I64
    """The same of the largest of a hypothesis and all that follow in its family (maxT)."""
    permutations: int
    enumerated: bool
    """Whether these were all sign patterns: then the share is the p-value, exactly."""

    def p(self, counts: I64, plus_one: bool) -> F64:
        """Return p-values of counts; all sign patterns contain the observed one."""
        plus_one = plus_one and not self.enumerated
        p: F64 = p_of_counts(counts, self.permutations, plus_one=plus_one)
        return p


@dataclass(frozen=True, eq=False)
class _StepDownFamily:
    """Hypotheses that are corrected together, most significant first."""

    members: I64
    first: I64
    second: I64
    side: I8
    scale: F64
    threshold: F64

    @classmethod
    def of(cls, tests: Hypotheses, on: _KernelValues, members: I64) -> _StepDownFamily:
        scale = np.ones(tests.first.size) if tests.scale is None else tests.scale
        scale = scale * on.unit
        return cls(
            members,
            tests.first[members],
            tests.second[members],
            tests.side[members],
            scale[members],
            (on.threshold * scale)[members],
        )

    def count(self, sums: F64 | I32, counts: I64) -> None:
        from unskew.stats import kernels

        extreme = np.zeros(self.members.size, np.int64)
        kernels.count_step_down(
            sums,
            self.first,
            self.second,
            self.side,
            self.scale,
            self.threshold,
            np.empty(sums.shape[1]),
            extreme,
        )
        counts[self.members] += extreme


def flip_signs(
    values: F64,
    tests: Hypotheses,
    permutations: int,
    *,
    systems: int | None = None,
    informative: Mask | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Counts:
    """Count extreme permutations of all hypotheses.

    Parameters
    ----------
    values
        Users x columns (metrics x systems), on a grid.
    systems
        How many columns belong to a metric; all unless given. Each metric is rounded by itself.
    informative
        Users whose systems differ at all. If all sign patterns of these are no more than
        `permutations`, each is looked at once.
    """
    from unskew.stats import kernels

    people = int(informative.sum()) if informative is not None else values.shape[0]
    enumerated = people < 60 and 2**people <= permutations
    if enumerated:
        permutations = 2**people
        values = values if informative is None else values[informative]
        on = _KernelValues(np.ascontiguousarray(values), tests.threshold, np.ones(tests.first.size))
    else:
        on = _in_32_bits(np.ascontiguousarray(values), tests, systems or values.shape[1], threads)
    key = np.uint64(key_of(seed, "sign flips"))
    users, columns = on.values.shape
    tiles = -(-columns // kernels.WIDE)
    centre = np.zeros_like(on.threshold)
    families = [_StepDownFamily.of(tests, on, members) for members in tests.families]
    # Bits depend on the number of a permutation only, so blocks may be cut as suits the threads.
    block = min(BLOCK, max(64, -(-permutations // resolve(threads))))
    steps = Steps(permutations, progress)

    def count_block(start: int) -> tuple[I64, I64]:
        size = min(block, permutations - start)
        sums = np.zeros((tiles, size, kernels.WIDE), on.values.dtype)
        for user in range(0, users, USERS):
            words = -(-min(USERS, users - user) // 64)
            signs = np.empty((8 * words, size), np.uint8)
            kernels.draw_signs(key, start, user // 64, enumerated, signs)
            kernels.add_flipped(signs, on.values, user, sums)
        straight = np.empty((columns, size), on.values.dtype)
        kernels.by_column(sums, straight)
        del sums
        single, largest = np.zeros((2, tests.first.size), np.int64)
        kernels.count_extreme(
            straight, tests.first, tests.second, centre, tests.side, on.threshold, single
        )
        for family in families:
            family.count(straight, largest)
        steps.advance(size)
        return single, largest

    size = permutations * values.size // 8
    parts = map_blocks(count_block, range(0, permutations, block), threads, size)
    single = np.sum([part[0] for part in parts], axis=0)
    largest = np.sum([part[1] for part in parts], axis=0)
    return Counts(single, largest, permutations, enumerated)


@dataclass(frozen=True, eq=False)
class _KernelValues:
    """Values as the kernels add them, with the thresholds in their units."""

    values: F64 | I32
    threshold: F64 | I64
    unit: F64
    """Of each hypothesis."""


def _in_32_bits(values: F64, tests: Hypotheses, systems: int, threads: int | None) -> _KernelValues:
    """Round values to 32 bits, which are added more than twice as fast as 64.

    The unit of each metric is a power of two for which no sum leaves 30 bits: because even the
    sum of all absolute values does not, or because by Hoeffding's inequality a sum of signed
    values is beyond 9 times the root of their sum of squares with a chance of 5e-18. It is 1,
    and nothing is rounded, where the values are small whole numbers (P@10).

    Elsewhere a sum that falls short of the threshold by less than 8 times the root of the sum of
    squares of what rounding changed (again Hoeffding's) counts as reaching it. For 6,040 users
    this is about 1e-5 of a standard deviation of the sum: p is never too small, and too large by
    about one permutation in 100,000 at most.
    """
    from unskew.stats import kernels

    users, columns = values.shape
    unit = np.ones(columns)
    for start in range(0, columns, systems):
        part = range(start, min(start + systems, columns))
        absolute = max(float(np.abs(values[:, c]).sum()) for c in part)
        squared = max(float(np.square(values[:, c]).sum()) for c in part)
        reach = min(absolute, 9 * math.sqrt(squared))
        unit[part] = max(1.0, 2.0 ** (math.frexp(reach)[1] - 29))
    small = np.empty((users, columns), np.int32)
    for start in range(0, users, 16 * USERS):
        part_of = slice(start, start + 16 * USERS)
        small[part_of] = np.rint(values[part_of] / unit)
    of_pair = unit[tests.first]
    lost = np.zeros(tests.first.size)
    if (unit > 1).any():
        step = max(1, min(1024, -(-lost.size // resolve(threads))))

        def add_rounding(start: int) -> None:
            h = slice(start, start + step)
            kernels.rounding(values, small, of_pair[h], tests.first[h], tests.second[h], lost[h])

        map_blocks(add_rounding, range(0, lost.size, step), threads, lost.size * users)
    limit = np.ceil((tests.threshold - 8 * np.sqrt(lost)) / of_pair)
    return _KernelValues(small, np.clip(limit, -(2.0**60), 2.0**60).astype(np.int64), of_pair)


def permuted_p(
    count: Callable[[int, int], I64],
    permutations: int,
    block: int,
    *,
    threads: int | None,
    work: int,
    progress: Progress | None = None,
) -> F64:
    """Return the p of each hypothesis from counts of its extreme permutations.

    Parameters
    ----------
    count
        Counts the extreme ones among the permutations of some numbers, from the first to before
        the second.
    permutations, block
        How many there are, and how many are looked at at a time: part of what is drawn.
    threads, progress
        Never change a number.
    work
        How many values are moved, from which follows whether threads are worth it.
    """
    steps = Steps(permutations, progress)

    def some(start: int) -> I64:
        stop = min(start + block, permutations)
        extreme = count(start, stop)
        steps.advance(stop - start)
        return extreme

    parts = map_blocks(some, range(0, permutations, block), threads, work)
    p: F64 = p_of_counts(np.sum(parts, axis=0), permutations)
    return p


def step_down(p: F64, families: Sequence[I64]) -> F64:
    """Make p-values of a step-down procedure monotone: none is below one before it."""
    result = np.full(p.shape, np.nan)
    for family in families:
        result[family] = np.maximum.accumulate(p[family])
    return result


def shuffled_ranges(
    values: F64,
    systems: int,
    permutations: int,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> F64:
    """Return the range of the systems' sums, permutations x metrics, of randomised Tukey HSD.

    Each user's values are dealt to the systems anew, all metrics of a user alike (Carterette
    2012, after Tukey's honestly significant difference): under the null hypothesis that no two
    systems differ. A pair differs when its difference is as large as the range can be by chance.
    """
    from unskew.stats import kernels

    key = np.uint64(key_of(seed, "shuffles"))
    values = np.ascontiguousarray(values)
    block = max(1, min(256, -(-permutations // resolve(threads))))
    steps = Steps(permutations, progress)

    def ranges_from(start: int) -> F64:
        ranges = np.empty((min(block, permutations - start), values.shape[1] // systems))
        kernels.ranges_of_shuffled(key, start, values, systems, ranges)
        steps.advance(ranges.shape[0])
        return ranges

    parts = map_blocks(
        ranges_from, range(0, permutations, block), threads, permutations * values.size
    )
    return np.concatenate(parts)
