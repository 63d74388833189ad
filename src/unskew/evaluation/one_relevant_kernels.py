"""The distribution of a sampled rank, and expectations over it. See `one_relevant`."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.compiled import kernel


@kernel
def spread(better: int, others: int, n: int, replacement: bool, chance: F64) -> tuple[int, int]:
    """Write how likely each number of better items among n drawn is; return first and last.

    From the most likely number outwards, each from its neighbour, and then divided by their sum:
    no large factorial is ever needed, and nothing is lost but what is too small for a float.
    """
    worse = others - better
    low = 0 if replacement else max(0, n - worse)
    high = n if replacement else min(n, better)
    if replacement and (better == 0 or worse == 0):
        sure = 0 if better == 0 else n
        chance[sure] = 1.0
        return sure, sure
    more = 0 if replacement else 1
    middle = (n + 1) * (better + more) // (others + 2 * more)
    middle = min(max(middle, low), high)
    chance[middle] = total = 1.0
    first = last = middle
    term = 1.0
    for x in range(middle, high):
        if replacement:
            term *= (n - x) * float(better) / ((x + 1) * float(worse))
        else:
            term *= (better - x) * float(n - x) / ((x + 1) * float(worse - n + x + 1))
        if term == 0.0:
            break
        last = x + 1
        chance[last] = term
        total += term
    term = 1.0
    for x in range(middle, low, -1):
        if replacement:
            term *= x * float(worse) / ((n - x + 1) * float(better))
        else:
            term *= x * float(worse - n + x) / ((better - x + 1) * float(n - x + 1))
        if term == 0.0:
            break
        first = x - 1
        chance[first] = term
        total += term
    for x in range(first, last + 1):
        chance[x] /= total
    return first, last


@kernel
def rank_chances(ranks: I64, others: int, n: int, replacement: bool, out: F64) -> None:
    """Write how likely each number 0 … n of better items among n drawn is, a row per true rank."""
    for row in range(ranks.size):
        out[row, :] = 0.0
        spread(ranks[row] - 1, others, n, replacement, out[row])


@kernel
def expectations(better: I64, others: I64, drawn: I64, values: F64, out: F64) -> None:
    """Write the expectation of the values of a sampled rank, a column per list.

    `better` of the `others` stand above the relevant item, `drawn` of them are in its list; a
    negative number is an item in no place, which counts 0. `values` has a row per metric and a
    column per sampled rank as far as any metric looks: what lies beyond counts 0.
    """
    chance = np.empty(max(drawn.max(), 0) + 1)
    for row in range(better.size):
        out[:, row] = 0.0
        if better[row] < 0:
            continue
        first, last = spread(better[row], others[row], drawn[row], False, chance)
        for metric in range(values.shape[0]):
            total = 0.0
            for x in range(first, min(last + 1, values.shape[1])):
                total += chance[x] * values[metric, x]
            out[metric, row] = total
