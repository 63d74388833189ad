"""Kernels of the metrics that compare a list with its user's profile."""

from __future__ import annotations

import math

import numpy as np

from unskew.arrays import F64, I8, I32, I64, Mask
from unskew.engine.compiled import kernel

LIKED = 1


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
                for level in range(3):
                    out[c, row - lo, level] = out[c - 1, row - lo, level]
            for slot in range(first, last):
                if item[slot] >= 0:
                    out[c, row - lo, classes[item[slot]]] += 1
    return out


@kernel
def _term(p: float, q: float) -> float:
    """Return what one class adds to the Jensen-Shannon divergence, in bits."""
    middle = (p + q) / 2
    term = 0.0
    if p > 0:
        term += p * math.log2(p / middle)
    if q > 0:
        term += q * math.log2(q / middle)
    return term / 2


@kernel
def divergences(profile: F64, counts: I64, lo: int, hi: int) -> F64:
    """Return the divergence of each list from its user's profile: cutoff x list."""
    out = np.empty((len(counts), hi - lo))
    for c in range(len(counts)):
        for row in range(hi - lo):
            shares, listed = profile[lo + row], counts[c, row]
            size, length = shares.sum(), listed.sum()
            total = 0.0
            for level in range(shares.size):
                total += _term(shares[level] / size, listed[level] / length)
            out[c, row] = total if size > 0 and length > 0 else math.nan
    return out


@kernel
def log_factorials(largest: int) -> F64:
    """Return the logarithms of 0!, 1!, … largest!."""
    table = np.empty(largest + 1)
    for number in range(largest + 1):
        table[number] = math.lgamma(number + 1)
    return table


@kernel
def _log_ways(table: F64, total: float, chosen: float) -> float:
    """Return the logarithm of the number of samples."""
    return float(table[int(total)] - table[int(chosen)] - table[int(total - chosen)])


@kernel
def _expected_term(
    table: F64,
    total: float,
    inside: float,
    length: float,
    size: float,
    profile: float,
    is_rest: bool,
) -> float:
    """Return the expected term of a class of which a list draws a hypergeometric number.

    The probabilities start at the most likely number, so that none is lost below 1e-300.
    """
    low, high = max(0.0, length - (total - inside)), min(inside, length)
    mode = min(max(math.floor((length + 1) * (inside + 1) / (total + 2)), low), high)
    peak = math.exp(
        _log_ways(table, inside, mode)
        + _log_ways(table, total - inside, length - mode)
        - _log_ways(table, total, length)
    )
    expected, chance, b = 0.0, peak, mode
    while b <= high:
        a = inside - b if is_rest else profile
        expected += chance * _term(a / size, b / length)
        chance *= (inside - b) * (length - b) / ((b + 1) * (total - inside - length + b + 1))
        b += 1
    chance, b = peak, mode
    while b > low:
        chance *= b * (total - inside - length + b) / ((inside - b + 1) * (length - b + 1))
        b -= 1
        a = inside - b if is_rest else profile
        expected += chance * _term(a / size, b / length)
    return expected


@kernel
def expected_divergence(table: F64, pool: F64, length: float, profile: F64, is_rest: bool) -> float:
    """Return the expected divergence when a list is drawn from a pool, without replacement.

    Its shares are compared with `profile` or, with `is_rest`, with what is left of the pool.
    Exact: the divergence is a sum over classes, so that each needs its own number only.
    """
    total = pool.sum()
    size = total - length if is_rest else profile.sum()
    if length <= 0 or size <= 0:
        return math.nan
    expected = 0.0
    for level in range(pool.size):
        expected += _expected_term(table, total, pool[level], length, size, profile[level], is_rest)
    return expected


@kernel
def null_divergences(profile: F64, counts: I64, lo: int, hi: int) -> F64:
    """Return the expected divergence if profile and list were one pool, divided at random."""
    largest = 0.0
    for row in range(hi - lo):
        largest = max(largest, profile[lo + row].sum() + counts[-1, row].sum())
    table = log_factorials(int(largest))
    out = np.empty((len(counts), hi - lo))
    pool, remainder = np.empty(3), np.empty(3)
    for c in range(len(counts)):
        for row in range(hi - lo):
            length = 0.0
            for level in range(3):
                remainder[level] = profile[lo + row, level]
                pool[level] = remainder[level] + counts[c, row, level]
                length += counts[c, row, level]
            out[c, row] = expected_divergence(table, pool, length, remainder, True)
    return out


@kernel
def chance_divergences(profile: F64, targets: F64, places: F64) -> F64:
    """Return the expected divergence of random lists of each list's targets: cutoff x list."""
    largest = 0.0
    for row in range(len(profile)):
        largest = max(largest, targets[row].sum())
    table = log_factorials(int(largest))
    out = np.empty_like(places)
    for c in range(len(places)):
        for row in range(len(profile)):
            out[c, row] = expected_divergence(
                table, targets[row], places[c, row], profile[row], False
            )
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
        owner = user[row]
        for judgment in range(judged_start[owner], judged_start[owner + 1]):
            if label[judgment] == LIKED:
                mark[judged_item[judgment]] = row + 1
                out[row, 4 + int(tail[judged_item[judgment]])] += 1
        for slot in range(start[row], min(stop[row], start[row] + cutoff)):
            if item[slot] < 0:
                continue
            listed = from_run[item[slot]]
            if inside[listed]:
                out[row, int(tail[listed])] += 1
            if mark[listed] == row + 1:
                out[row, 2 + int(tail[listed])] += 1
                mark[listed] = 0  # an item that comes twice is one hit
    return out


@kernel
def profile_sums(start: I64, item: I32, weight: F64) -> F64:
    """Sum a weight of the items of each user's profile."""
    out = np.zeros(start.size - 1)
    for user in range(start.size - 1):
        for row in range(start[user], start[user + 1]):
            out[user] += weight[item[row]]
    return out


@kernel
def profile_counts(start: I64, item: I32, classes: I8, number: int) -> F64:
    """Count the items of each class in each user's profile; items of class -1 do not count."""
    out = np.zeros((start.size - 1, number))
    for user in range(start.size - 1):
        for row in range(start[user], start[user + 1]):
            if classes[item[row]] >= 0:
                out[user, classes[item[row]]] += 1
    return out
