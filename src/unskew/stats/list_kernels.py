"""Kernels of pairs of lists: Kendall's tau of each user's common items."""

from __future__ import annotations

from unskew.arrays import F64, I64
from unskew.engine.compiled import kernel


@kernel
def list_taus(start: I64, a: I64, b: I64, out: F64) -> None:
    """Fill in the tau of places a and b in each stretch; what has fewer than 2 items stays.

    Places in one list are all different.
    """
    for user in range(start.size - 1):
        low, high = start[user], start[user + 1]
        count = high - low
        if count < 2:
            continue
        balance = 0
        for i in range(low, high):
            for j in range(low, i):
                balance += 1 if (a[i] > a[j]) == (b[i] > b[j]) else -1
        out[user] = balance / (count * (count - 1) / 2)
