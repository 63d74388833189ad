"""Kernels of neighbourhoods: similarities, exact nearest neighbours, votes of all users.

Innermost loops count without a sign: a signed index is first checked for being negative, which
nearly doubles their time.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64, Floats, Mask, Rows
from unskew.engine.compiled import kernel
from unskew.engine.sort import sort_rising

# A row that meets fewer than one in so many of the others is cheaper to list than to scan.
SPARSE = 8

# Leaves to the exact comparison what rounding could decide either way.
ALMOST = 1.0 - 1e-9


@kernel
def norms(start: I64, value: F64) -> F64:
    """Return the length of every row as a vector."""
    length = np.empty(start.size - 1, np.float64)
    for row in range(length.size):
        total = 0.0
        for a in range(start[row], start[row + 1]):
            total += value[a] * value[a]
        length[row] = np.sqrt(total)
    return length


@kernel
def steps_of(start: I64, column: I32, there: I64) -> I64:
    """Return per row how many pairs its inverted lists hold: the work, and a bound on those met."""
    steps = np.zeros(start.size - 1, np.int64)
    for row in range(steps.size):
        for a in range(start[row], start[row + 1]):
            steps[row] += there[column[a] + 1] - there[column[a]]
    return steps


@kernel
def _meet(row: int, matrix: Rows, inverted: Rows, shrink: float, dot: F64, shared: F64) -> None:
    """Add a row's products with all rows into `dot`, its common columns into `shared`."""
    start, column, value = matrix
    there, owner, weight = inverted
    for a in range(start[row], start[row + 1]):
        x = value[a]
        low, high = np.uint64(there[column[a]]), np.uint64(there[column[a] + 1])
        if shrink > 0:
            for b in range(low, high):
                v = np.uint32(owner[b])
                dot[v] += x * weight[b]
                shared[v] += 1.0
        else:
            for b in range(low, high):
                dot[np.uint32(owner[b])] += x * weight[b]


@kernel
def _list_met(row: int, matrix: Rows, inverted: Rows, met: I32, seen: Mask) -> int:
    """List the rows that have a column in common with a row, as they are met."""
    start, column, there, owner = matrix.start, matrix.column, inverted.start, inverted.column
    count = 0
    for a in range(start[row], start[row + 1]):
        for b in range(there[column[a]], there[column[a] + 1]):
            if not seen[owner[b]]:
                seen[owner[b]] = True
                met[count] = owner[b]
                count += 1
    for c in range(count):
        seen[met[c]] = False
    return count


@kernel
def _similarity(dot: float, length: float, shared: float, shrink: float) -> float:
    """Return the cosine, shrunk towards 0 where few columns are shared."""
    cosine = dot / length if dot > 0 else 0.0
    return cosine * (shared / (shared + shrink)) if shrink > 0 else cosine


@kernel
def cosine_rows(
    rows: I32,
    matrix: Rows,
    inverted: Rows,
    length: F64,
    other_length: F64,
    shrink: float,
    result: F64,
) -> None:
    """Fill a row of similarities for each of some rows; 0 with itself and where there is none."""
    n = length.size
    shared = np.zeros(n if shrink > 0 else 1, np.float64)
    for index in range(rows.size):
        row = rows[index]
        dot = result[index]
        dot[:] = 0.0
        shared[:] = 0.0
        _meet(row, matrix, inverted, shrink, dot, shared)
        for v in range(n):
            common = shared[v] if shrink > 0 else 0.0
            dot[v] = _similarity(dot[v], length[row] * other_length[v], common, shrink)
        dot[row] = 0.0


@kernel
def _worse(a: float, i: int, b: float, j: int) -> bool:
    """Tell whether similarity a of number i comes after similarity b of number j."""
    return a < b or (a == b and i > j)


@kernel
def _sink(near: F64, who: I32, parent: int, size: int) -> None:
    """Restore a heap whose worst is on top, after its entry `parent` got better."""
    a, i = near[parent], who[parent]
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _worse(near[right], who[right], near[child], who[child]):
            child = right
        if not _worse(near[child], who[child], a, i):
            break
        near[parent], who[parent] = near[child], who[child]
        parent = child
    near[parent], who[parent] = a, i


@kernel
def _heapify(near: F64, who: I32, size: int) -> None:
    """Make a heap whose worst is on top."""
    for parent in range(size // 2 - 1, -1, -1):
        _sink(near, who, parent, size)


@kernel
def _nearest_first(near: F64, who: I32, size: int) -> None:
    """Sort neighbours by falling similarity, equal ones by number."""
    _heapify(near, who, size)
    for last in range(size - 1, 0, -1):  # the worst goes to the end
        near[0], near[last] = near[last], near[0]
        who[0], who[last] = who[last], who[0]
        _sink(near, who, 0, last)


@kernel
def _select(
    row: int,
    candidates: I32,
    dot: F64,
    shared: F64,
    length: F64,
    other_length: F64,
    toll: F64,
    shrink: float,
    k: int,
    near: F64,
    who: I32,
) -> int:
    """Write the k nearest of the candidates, or all if there are fewer; return how many.

    No candidates means all rows, no toll means cosines.
    """
    size = 0
    # What a product must exceed, per length of the other, to come near enough.
    minimum = toll[row] if toll.size else 0.0
    for c in range(candidates.size if candidates.size else length.size):
        v = candidates[c] if candidates.size else c
        if dot[v] > minimum * other_length[v] and v != row:
            if toll.size:
                s = dot[v] - minimum * other_length[v]
            else:
                common = shared[v] if shrink > 0 else 0.0
                s = _similarity(dot[v], length[row] * other_length[v], common, shrink)
            if size < k:
                near[size], who[size] = s, v
                size += 1
                if size < k or k >= length.size - 1:
                    continue
                _heapify(near, who, k)
            elif _worse(near[0], who[0], s, v):
                near[0], who[0] = s, v
                _sink(near, who, 0, k)
            if not toll.size:
                minimum = near[0] * length[row] * ALMOST
    return size


@kernel
def nearest_rows(
    low: int,
    high: int,
    matrix: Rows,
    inverted: Rows,
    length: F64,
    other_length: F64,
    toll: F64,
    steps: I64,
    shrink: float,
    k: int,
    who: I32,
    near: F64,
) -> I64:
    """Write the k nearest of each row from `low` to `high`, one after the other; return counts.

    Nearest first and ties by ascending number; with k of at least all others, by number. See
    `similarity.nearest` for what is near.
    """
    n = length.size
    dot = np.zeros(n, np.float64)
    shared = np.zeros(n if shrink > 0 else 1, np.float64)
    met = np.empty(n, np.int32)
    seen = np.zeros(n, np.bool_)
    counts = np.zeros(high - low, np.int64)
    end = 0
    for row in range(low, high):
        if steps[row] == 0:
            continue
        _meet(row, matrix, inverted, shrink, dot, shared)
        candidates = met[:0]
        if steps[row] < n // SPARSE:
            candidates = met[: _list_met(row, matrix, inverted, met, seen)]
            if k >= n - 1:
                sort_rising(met, 0, candidates.size)
        values, numbers = near[end:], who[end:]
        size = _select(
            row, candidates, dot, shared, length, other_length, toll, shrink, k, values, numbers
        )
        if k < n - 1:
            _nearest_first(values, numbers, size)
        counts[row - low] = size
        end += size
        if candidates.size:
            for v in candidates:
                dot[v] = 0.0
                if shrink > 0:
                    shared[v] = 0.0
        else:
            dot[:] = 0.0
            shared[:] = 0.0
    return counts


@kernel
def all_votes(
    weight: F64, start: I64, column: I32, value: F64, count_value: bool, total: F64
) -> None:
    """Add up weight[v, t] · value[v, column] over v into total[column, t].

    Values to be counted enter the product as 1.
    """
    for v in range(weight.shape[0]):
        for a in range(start[v], start[v + 1]):
            x = 1.0 if count_value else value[a]
            i = column[a]
            for t in range(weight.shape[1]):
                total[i, t] += weight[v, t] * x


@kernel
def supported(weight: F64, there: I64, owner: I32, minimum: int, result: Mask) -> None:
    """Tell for each row of weights which columns have at least so many positive ones."""
    for t in range(weight.shape[0]):
        for i in range(there.size - 1):
            count = 0
            for b in range(there[i], there[i + 1]):
                if weight[t, owner[b]] > 0:
                    count += 1
                    if count == minimum:
                        break
            result[t, i] = count >= minimum


STRIP = 256  # columns of a dense matrix that are summed at a time


@kernel
def sparse_product(
    rows: I32,
    first: Rows,
    second: Rows,
    count_outer: bool,
    count_inner: bool,
    total: F64,
    terms: I32,
) -> None:
    """Add up the products of two matrices, per row and column, and count the terms.

    What is to be counted enters the product as 1.
    """
    start, middle, outer = first
    there, column, inner = second
    for index in range(rows.size):
        sums, counts = total[index], terms[index]
        for a in range(start[rows[index]], start[rows[index] + 1]):
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
            stop = first + (last - first) // 4 * 4
            for entry in range(first, stop, 4):
                r0, r1, r2, r3 = value[entry], value[entry + 1], value[entry + 2], value[entry + 3]
                b0, b1 = dense[column[entry], low:high], dense[column[entry + 1], low:high]
                b2, b3 = dense[column[entry + 2], low:high], dense[column[entry + 3], low:high]
                for k in range(high - low):
                    total[k] += (r0 * b0[k] + r1 * b1[k]) + (r2 * b2[k] + r3 * b3[k])
            for entry in range(stop, last):
                r0, b0 = value[entry], dense[column[entry], low:high]
                for k in range(high - low):
                    total[k] += r0 * b0[k]
