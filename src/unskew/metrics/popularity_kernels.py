"""Kernels of the metrics that compare a list with its user's profile."""

from __future__ import annotations

import math

import numpy as np

from unskew.arrays import F64, I8, I32, I64, Mask
from unskew.engine.compiled import kernel

LIKED = 1
SPREAD = 9.0  # standard deviations beyond which a count has no probability left, and
FEW = 40.0  # what is added to them: counts with a small mean are skewed


@kernel
def class_counts(
    start: I64, stop: I64, item: I32, classes: I8, cutoffs: I64, lo: int, hi: int
) -> I64:
    """Count the items of each class down to each cutoff: cutoff x list x class."""
    out = np.zeros((cutoffs.size, hi - lo, 3), np.int64)
    for row in range(lo, hi):
        for c in range(cutoffs.size):
            last = min(stop[row], start[row] + cutoffs[c])
            first = start[row]
            if c > 0:
                first = min(last, start[row] + cutoffs[c - 1])
                for one in range(3):
                    out[c, row - lo, one] = out[c - 1, row - lo, one]
            for slot in range(first, last):
                if item[slot] >= 0:
                    out[c, row - lo, classes[item[slot]]] += 1
    return out


@kernel
def _weighed(count: float) -> float:
    """Return x log2 x."""
    return count * math.log2(count) if count > 0 else 0.0


@kernel
def divergence(a: F64, b: F64) -> float:
    """Jensen-Shannon divergence in bits between the shares of two rows of counts; NaN if empty."""
    n, k = a[0] + a[1] + a[2], b[0] + b[1] + b[2]
    if n == 0 or k == 0:
        return math.nan
    mixed = own = other = 0.0
    for one in range(3):
        mixed += _weighed(a[one] * k + b[one] * n)
        own += _weighed(a[one])
        other += _weighed(b[one])
    both = 2 * n * k
    value = math.log2(both) - mixed / both + (own / n - math.log2(n) + other / k - math.log2(k)) / 2
    return value if value > 0 else 0.0  # rounding may leave less than nothing


@kernel
def divergences(profile: F64, counts: I64, lo: int, hi: int) -> F64:
    """Return the divergence of each list from its user's profile: cutoff x list."""
    out = np.empty((len(counts), hi - lo))
    a, b = np.empty(3), np.empty(3)
    for c in range(len(counts)):
        for row in range(hi - lo):
            for one in range(3):
                a[one] = profile[lo + row, one]
                b[one] = counts[c, row, one]
            out[c, row] = divergence(a, b)
    return out


@kernel
def _bounds(total: float, inside: float, drawn: float) -> tuple[int, int]:
    """Return between which numbers of `inside` items practically all samples lie."""
    low, high = max(0.0, drawn - (total - inside)), min(inside, drawn)
    share = inside / total
    rest = (total - drawn) / max(total - 1, 1.0)
    spread = SPREAD * math.sqrt(drawn * share * (1 - share) * rest) + FEW
    return int(max(low, math.floor(drawn * share - spread))), int(
        min(high, math.ceil(drawn * share + spread))
    )


@kernel
def _log_ways(total: float, chosen: float) -> float:
    """Return the logarithm of the number of samples."""
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)


@kernel
def expected_divergence(pool: F64, drawn: float, profile: F64, is_rest: bool) -> float:
    """Return the expected divergence when a list is drawn from a pool, without replacement.

    Its shares are compared with `profile` or, with `is_rest`, with what is left of the pool.
    Exact: all samples of three classes, each with its probability.
    """
    total = pool[0] + pool[1] + pool[2]
    size = total - drawn if is_rest else profile[0] + profile[1] + profile[2]
    if drawn <= 0 or size <= 0:
        return math.nan
    a, b = profile.copy(), np.empty(3)
    ways, expected = _log_ways(total, drawn), 0.0
    low, high = _bounds(total, pool[0], drawn)
    for first in range(low, high + 1):
        left = drawn - first
        rest = pool[1] + pool[2]
        at, end = (0, 0) if rest == 0 else _bounds(rest, pool[1], left)
        chance = math.exp(
            _log_ways(pool[0], first)
            + _log_ways(pool[1], at)
            + _log_ways(pool[2], left - at)
            - ways
        )
        for second in range(at, end + 1):
            third = left - second
            b[0], b[1], b[2] = first, second, third
            if is_rest:
                for one in range(3):
                    a[one] = pool[one] - b[one]
            expected += chance * divergence(a, b)
            chance *= (pool[1] - second) * third / ((second + 1) * (pool[2] - third + 1))
    return expected


@kernel
def null_divergences(profile: F64, counts: I64, lo: int, hi: int) -> F64:
    """Return the expected divergence if profile and list were one pool, divided at random."""
    out = np.empty((len(counts), hi - lo))
    pool, rest = np.empty(3), np.empty(3)
    for c in range(len(counts)):
        for row in range(hi - lo):
            drawn = 0.0
            for one in range(3):
                rest[one] = profile[lo + row, one]
                pool[one] = rest[one] + counts[c, row, one]
                drawn += counts[c, row, one]
            out[c, row] = expected_divergence(pool, drawn, rest, True)
    return out


@kernel
def chance_divergences(profile: F64, targets: F64, shown: F64) -> F64:
    """Return the expected divergence of random lists of each list's targets: cutoff x list."""
    out = np.empty_like(shown)
    for c in range(len(shown)):
        for row in range(len(profile)):
            out[c, row] = expected_divergence(targets[row], shown[c, row], profile[row], False)
    return out


@kernel
def tail_counts(
    start: I64,
    stop: I64,
    item: I32,
    from_run: I32,
    user: I32,
    judged_start: I64,
    judged_item: I32,
    label: I8,
    tail: Mask,
    inside: Mask,
    cutoff: int,
) -> I64:
    """Count, of each list, what PopREO and PopRSP need, in the head and in the tail.

    Columns: listed items of the catalogue (head, tail), liked items in the list, liked items.
    """
    out = np.zeros((start.size, 6), np.int64)
    mark = np.zeros(tail.size, np.int64)
    for row in range(start.size):
        own = user[row]
        for at in range(judged_start[own], judged_start[own + 1]):
            if label[at] == LIKED:
                mark[judged_item[at]] = row + 1
                out[row, 4 + int(tail[judged_item[at]])] += 1
        for slot in range(start[row], min(stop[row], start[row] + cutoff)):
            if item[slot] < 0:
                continue
            one = from_run[item[slot]]
            if inside[one]:
                out[row, int(tail[one])] += 1
            if mark[one] == row + 1:
                out[row, 2 + int(tail[one])] += 1
                mark[one] = 0  # an item that comes twice is one hit
    return out
