"""Kernels of products of sparse rows with sparse rows or with a dense matrix.

Innermost loops count without a sign: a signed index is first checked for being negative, which
nearly doubles their time.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64, Floats
from unskew.engine.compiled import kernel

STRIP = 256  # columns of a dense matrix that are summed at a time


@kernel
def sparse_product(
    rows: I32,
    start: I64,
    middle: I32,
    outer: F64,
    there: I64,
    column: I32,
    inner: F64,
    count_outer: bool,
    count_inner: bool,
    total: F64,
    terms: I32,
) -> None:
    """Add up outer · inner over the middle, per row and column, and count the terms.

    What is to be counted enters the product as 1.
    """
    for at in range(rows.size):
        sums, counts = total[at], terms[at]
        for a in range(start[rows[at]], start[rows[at] + 1]):
            x = 1.0 if count_outer else outer[a]
            low, high = np.uint64(there[middle[a]]), np.uint64(there[middle[a] + 1])
            for b in range(low, high):
                i = np.uint32(column[b])
                sums[i] += x if count_inner else x * inner[b]
                counts[i] += 1


@kernel
def dense_product(rows: I32, start: I64, column: I32, value: F64, dense: Floats, out: F64) -> None:
    """Fill the products of some rows with a dense matrix; rows without entries stay as they are.

    Strip by strip, so that what all rows need of a strip stays near the processor, and four
    entries at a time.
    """
    for low in range(0, dense.shape[1], STRIP):
        high = min(low + STRIP, dense.shape[1])
        for row in range(rows.size):
            first, last = start[rows[row]], start[rows[row] + 1]
            if first == last:
                continue
            total = out[row, low:high]
            total[:] = 0.0
            whole = first + (last - first) // 4 * 4
            for at in range(first, whole, 4):
                r0, r1, r2, r3 = value[at], value[at + 1], value[at + 2], value[at + 3]
                b0, b1 = dense[column[at], low:high], dense[column[at + 1], low:high]
                b2, b3 = dense[column[at + 2], low:high], dense[column[at + 3], low:high]
                for k in range(high - low):
                    total[k] += (r0 * b0[k] + r1 * b1[k]) + (r2 * b2[k] + r3 * b3[k])
            for at in range(whole, last):
                r0, b0 = value[at], dense[column[at], low:high]
                for k in range(high - low):
                    total[k] += r0 * b0[k]
