"""Sorting and searching inside kernels.

The compiler takes seconds for numpy's sort, argsort, searchsorted and copies of slices, each time
a kernel is compiled anew; these few lines take tenths, and give the same order.
"""

from __future__ import annotations

from unskew.arrays import F64, I32, I64, U64
from unskew.engine.compiled import kernel

RUN = 12


@kernel
def sort_falling(score: F64, name: I32, n: int, more: F64, names: I32) -> None:
    """Sort the first n entries by falling score, stable; `more` and `names` are working space."""
    for low in range(0, n, RUN):
        for i in range(low + 1, min(low + RUN, n)):
            s, x = score[i], name[i]
            j = i
            while j > low and score[j - 1] < s:
                score[j], name[j] = score[j - 1], name[j - 1]
                j -= 1
            score[j], name[j] = s, x
    width = RUN
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            if middle >= high or score[middle - 1] >= score[middle]:
                continue
            size = middle - low
            for i in range(size):
                more[i], names[i] = score[low + i], name[low + i]
            a, b, at = 0, middle, low
            while a < size and b < high:
                if score[b] > more[a]:
                    score[at], name[at] = score[b], name[b]
                    b += 1
                else:
                    score[at], name[at] = more[a], names[a]
                    a += 1
                at += 1
            while a < size:
                score[at], name[at] = more[a], names[a]
                a += 1
                at += 1
        width *= 2


@kernel
def sort_rising(item: I32, low: int, high: int) -> None:
    """Sort item[low:high] by value (Shell's method with Knuth's gaps)."""
    gap = 1
    while gap < (high - low) // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(low + gap, high):
            x = item[i]
            j = i
            while j >= low + gap and item[j - gap] > x:
                item[j] = item[j - gap]
                j -= gap
            item[j] = x
        gap //= 3


@kernel
def sort_by(key: U64 | I64 | I32 | F64, name: I32, low: int, high: int) -> None:
    """Sort name[low:high] by rising key, equal ones by number; the keys stand from 0 on."""
    size = high - low
    gap = 1
    while gap < size // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            k, x = key[i], name[low + i]
            j = i
            while j >= gap and (
                key[j - gap] > k or (key[j - gap] == k and name[low + j - gap] > x)
            ):
                key[j], name[low + j] = key[j - gap], name[low + j - gap]
                j -= gap
            key[j], name[low + j] = k, x
        gap //= 3


@kernel
def first_from(item: I32 | I64, low: int, high: int, wanted: int) -> int:
    """Return the first place in item[low:high], ascending, whose value is at least `wanted`."""
    while low < high:
        middle = (low + high) // 2
        if item[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def in_sorted(item: I32, low: int, high: int, number: int) -> bool:
    """Tell whether item[low:high], ascending, holds a number."""
    position = first_from(item, low, high, number)
    return bool(position < high and item[position] == number)
