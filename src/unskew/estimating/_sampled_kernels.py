"""The distribution of a sampled rank. See `sampled`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unskew.compiled import kernel

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@kernel
def rank_chances(ranks: I64, others: int, n: int, replacement: bool, out: F64) -> None:
    """Write how likely each number 0 … n of better items among n drawn is, a row per true rank.

    From the most likely number outwards, each from its neighbour, and then divided by their sum:
    no large factorial is ever needed, and nothing is lost but what is too small for a float.
    """
    for row in range(ranks.size):
        chance = out[row]
        chance[:] = 0.0
        better = ranks[row] - 1
        worse = others - better
        low = 0 if replacement else max(0, n - worse)
        high = n if replacement else min(n, better)
        if replacement and (better == 0 or worse == 0):
            chance[0 if better == 0 else n] = 1.0
            continue
        if replacement:
            middle = (n + 1) * better // others
        else:
            middle = (n + 1) * (better + 1) // (others + 2)
        middle = min(max(middle, low), high)
        chance[middle] = total = 1.0
        term = 1.0
        for x in range(middle, high):
            if replacement:
                term *= (n - x) * float(better) / ((x + 1) * float(worse))
            else:
                term *= (better - x) * float(n - x) / ((x + 1) * float(worse - n + x + 1))
            if term == 0.0:
                break
            chance[x + 1] = term
            total += term
        term = 1.0
        for x in range(middle, low, -1):
            if replacement:
                term *= x * float(worse) / ((n - x + 1) * float(better))
            else:
                term *= x * float(worse - n + x) / ((better - x + 1) * float(n - x + 1))
            if term == 0.0:
                break
            chance[x - 1] = term
            total += term
        for x in range(low, high + 1):
            chance[x] /= total
