"""Kernels of least-squares factors: a row at once, by conjugate gradients, or by coordinates."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64, Floats, Raters, Rows
from unskew.engine.compiled import kernel, training_kernel

NOTHING = 1e-30  # share of a squared length that cannot be told from 0
LANES = 8  # a vector of this many numbers stays whole: rows of half matrices, padded rows


@kernel
def add_outer(
    A: F64, b: F64, Y: F64, column: I32, extra: F64, target: F64, first: int, last: int
) -> None:
    """Add Σ extra · y yᵀ to the upper half of A and Σ target · y to b, four entries at a time.

    Inner loops run from 0 over slices: only then does the compiler know that no index is
    negative, and makes vectors of them.
    """
    width = b.size
    stop = first + (last - first) // 4 * 4
    for entry in range(first, stop, 4):
        y0, y1, y2, y3 = (
            Y[column[entry]],
            Y[column[entry + 1]],
            Y[column[entry + 2]],
            Y[column[entry + 3]],
        )
        e0, e1, e2, e3 = extra[entry], extra[entry + 1], extra[entry + 2], extra[entry + 3]
        p0, p1, p2, p3 = target[entry], target[entry + 1], target[entry + 2], target[entry + 3]
        for k in range(width):
            b[k] += (p0 * y0[k] + p1 * y1[k]) + (p2 * y2[k] + p3 * y3[k])
        for left in range(0, width, LANES):
            z0, z1, z2, z3 = y0[left:], y1[left:], y2[left:], y3[left:]
            for a in range(min(LANES, width - left)):
                w0, w1, w2, w3 = e0 * z0[a], e1 * z1[a], e2 * z2[a], e3 * z3[a]
                row = A[left + a, left:]
                for k in range(width - left):
                    row[k] += (w0 * z0[k] + w1 * z1[k]) + (w2 * z2[k] + w3 * z3[k])
    for entry in range(stop, last):
        y0 = Y[column[entry]]
        for k in range(width):
            b[k] += target[entry] * y0[k]
        for a in range(width):
            w0 = extra[entry] * y0[a]
            row, z0 = A[a, a:], y0[a:]
            for k in range(width - a):
                row[k] += w0 * z0[k]


@kernel
def solve(A: F64, b: F64) -> None:
    """Turn b into A⁻¹b, given the upper half of a positive definite A (which is used up)."""
    n = b.size
    for k in range(n):  # A = UᵀU, and Uᵀz = b on the way
        pivot = A[k, k:]
        scale = 1.0 / np.sqrt(pivot[0])
        for c in range(n - k):
            pivot[c] *= scale
        b[k] *= scale
        value = b[k]
        tail = b[k:]
        for r in range(1, n - k):
            factor = pivot[r]
            tail[r] -= factor * value
            row, done = A[k + r, k + r :], pivot[r:]
            for c in range(n - k - r):
                row[c] -= factor * done[c]
    for k in range(n - 1, -1, -1):
        row, tail = A[k, k:], b[k:]
        total = tail[0]
        for c in range(1, n - k):
            total -= row[c] * tail[c]
        b[k] = total / row[0]


@kernel
def least_squares(rows: Rows, target: F64, Y: F64, gram: F64, low: int, out: F64) -> None:
    """Fill `out` with the factors of rows low, low+1, … that fit best, given the others'.

    The values of `rows` are what rated cells have in confidence beyond all cells.
    """
    start, column, extra = rows
    width = Y.shape[1]
    A = np.empty((width, width))
    for row in range(out.shape[0]):
        b = out[row]
        b[:] = 0.0
        for a in range(width):
            for k in range(width):
                A[a, k] = gram[a, k]
        add_outer(A, b, Y, column, extra, target, start[low + row], start[low + row + 1])
        solve(A, b)


@kernel
def combine(weight: Floats, M: Floats, out: Floats) -> None:
    """Add Σ weight · row of M to `out`, four rows at a time."""
    n = out.size
    stop = weight.size // 4 * 4
    for row in range(0, stop, 4):
        w0, w1, w2, w3 = weight[row], weight[row + 1], weight[row + 2], weight[row + 3]
        m0, m1, m2, m3 = M[row], M[row + 1], M[row + 2], M[row + 3]
        for k in range(n):
            out[k] += (w0 * m0[k] + w1 * m1[k]) + (w2 * m2[k] + w3 * m3[k])
    for row in range(stop, weight.size):
        w0, m0 = weight[row], M[row]
        for k in range(n):
            out[k] += w0 * m0[k]


@kernel
def dot(a: F64, b: F64) -> float:
    """Return the inner product, summed in order."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@kernel
def gather(Y: F64, column: I32, Z: Floats, Zt: Floats) -> None:
    """Copy some rows of Y to the rows of Z and to the columns of Zt, four at a time."""
    n, width = column.size, Y.shape[1]
    for row in range(n):
        y, z = Y[column[row]], Z[row]
        for k in range(width):
            z[k] = y[k]
    stop = n // 4 * 4
    for row in range(0, stop, 4):
        z0, z1, z2, z3 = Z[row], Z[row + 1], Z[row + 2], Z[row + 3]
        for k in range(width):
            line = Zt[k, row : row + 4]
            line[0], line[1], line[2], line[3] = z0[k], z1[k], z2[k], z3[k]
    for row in range(stop, n):
        for k in range(width):
            Zt[k, row] = Z[row, k]


@kernel
def conjugate_gradient(
    rows: Rows, target: F64, Y: F64, gram: F64, steps: int, low: int, out: F64
) -> None:
    """Move `out`, the factors of rows low, low+1, …, towards those that fit best.

    The factors of a row's entries are held both ways round, so that every product adds up rows, and
    in single precision: half as much to read. Factors, residuals and steps are doubles.
    """
    start, column, extra = rows
    width = Y.shape[1]
    longest = 0
    for row in range(out.shape[0]):
        longest = max(longest, start[low + row + 1] - start[low + row])
    padded = -(-width // LANES) * LANES
    Z, across = np.zeros((longest, padded), np.float32), np.empty(width * longest, np.float32)
    seen = np.empty(longest, np.float32)
    short, part = np.empty(width, np.float32), np.empty(padded, np.float32)
    residual, direction, image = np.empty(width), np.empty(width), np.empty(width)
    for row in range(out.shape[0]):
        first, last = start[low + row], start[low + row + 1]
        n = last - first
        Zt = across[: width * n].reshape(width, n)
        t = seen[:n]
        gather(Y, column[first:last], Z, Zt)
        x = out[row]
        residual[:] = 0.0
        combine(target[first:last], Z, residual)
        scale = dot(residual, residual)
        if scale == 0.0:
            x[:] = 0.0
            continue
        direction[:] = x
        length = 0.0
        for step in range(steps + 1):
            image[:] = 0.0
            combine(direction, gram, image)
            t[:] = 0.0
            short[:] = direction
            combine(short, Zt, t)
            for entry in range(n):
                t[entry] *= extra[first + entry]
            part[:] = 0.0
            combine(t, Z, part)
            for k in range(width):
                image[k] += part[k]
            if step == 0:
                for k in range(width):
                    residual[k] -= image[k]
                    direction[k] = residual[k]
                length = dot(residual, residual)
                continue
            if length <= NOTHING * scale:
                break
            step_size = length / dot(direction, image)
            for k in range(width):
                x[k] += step_size * direction[k]
                residual[k] -= step_size * image[k]
            before = length
            length = dot(residual, residual)
            for k in range(width):
                direction[k] = residual[k] + length / before * direction[k]


@training_kernel
def product(a: F64, b: F64) -> float:
    """Return the inner product, summed in any order."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@training_kernel
def slope_and_bend(gap: F64, extra: F64, z: F64) -> tuple[float, float]:
    """Return Σ gap · z and Σ extra · z²."""
    slope, bend = 0.0, 0.0
    for entry in range(z.size):
        slope += gap[entry] * z[entry]
        bend += extra[entry] * z[entry] * z[entry]
    return slope, bend


@kernel
def coordinate_descent(
    rows: Rows, target: F64, Y: F64, gram: F64, missing: F64, penalty: float, low: int, out: F64
) -> None:
    """Move each coordinate of `out`, the factors of rows low, low+1, …, once to its best value.

    A row x has the loss m xᵀ(gram)x + Σ (extra (x·y)² - 2 target x·y) + penalty ‖x‖², m being its
    `missing`. The gaps target - extra x·y of its entries are kept up to date, so that a
    coordinate costs one pass over the entries and one row of the Gram matrix.
    """
    start, column, extra = rows
    width = Y.shape[1]
    longest = 0
    for row in range(out.shape[0]):
        longest = max(longest, start[low + row + 1] - start[low + row])
    Z, across, gaps = np.empty((longest, width)), np.empty(width * longest), np.empty(longest)
    for row in range(out.shape[0]):
        first, last = start[low + row], start[low + row + 1]
        n = last - first
        Zt = across[: width * n].reshape(width, n)
        gap, more, m = gaps[:n], extra[first:last], missing[low + row]
        gather(Y, column[first:last], Z, Zt)
        x = out[row]
        gap[:] = 0.0
        combine(x, Zt, gap)
        for entry in range(n):
            gap[entry] = target[first + entry] - more[entry] * gap[entry]
        for k in range(width):
            z = Zt[k]
            slope, bend = slope_and_bend(gap, more, z)
            slope -= m * product(gram[k], x) + penalty * x[k]
            change = slope / (bend + m * gram[k, k] + penalty)
            x[k] += change
            for entry in range(n):
                gap[entry] -= change * more[entry] * z[entry]


FEW = 64  # items that a working set may grow by, however small it is
MOST_ROUNDS, MOST_SWEEPS = 100, 10_000  # never reached unless the matrix is all but singular


@kernel
def gram_rows(columns: Raters, rows: Rows, low: int, out: F64) -> None:
    """Add to `out` rows low, low+1, … of the upper half of RᵀR: sums over rows in their order."""
    column_start, row_of, order = columns
    start, column, value = rows
    for i in range(out.shape[0]):
        total = out[i]
        for entry in range(column_start[low + i], column_start[low + i + 1]):
            here = order[entry]
            weight = value[here]
            for partner in range(here, start[row_of[entry] + 1]):
                total[column[partner]] += weight * value[partner]


@kernel
def quadratic_forms(columns: Rows, M: F64, low: int, out: F64) -> None:
    """Fill `out` with rᵀMr for the columns r number low, low+1, … of a sparse matrix."""
    start, row, value = columns
    for index in range(out.size):
        first, last = start[low + index], start[low + index + 1]
        total = 0.0
        for a in range(first, last):
            line = M[row[a]]
            part = 0.0
            for b in range(first, last):
                part += value[b] * line[row[b]]
            total += value[a] * part
        out[index] = total


@kernel
def gap_of(weight: float, correlation: float, l1: float, l2: float) -> float:
    """Return one weight's share of the duality gap; all shares are 0 at the solution only."""
    pull = correlation - l1
    if pull > 0.0:
        return (l2 * weight - pull) ** 2 / (2.0 * l2)
    return weight * (0.5 * l2 * weight - pull)


@kernel
def working_set(w: F64, s: F64, norm: F64, i: int, l1: float, l2: float) -> I64:
    """Return the items with a weight, and those that would lower the objective most.

    No more are added than there are already (but at least FEW), since most of those that pull at
    first no longer do once the strongest have their weights.
    """
    decrease = np.zeros(w.size)
    active = 0
    new = 0
    for j in range(w.size):
        if w[j] > 0.0:
            active += 1
        elif j != i and s[j] > l1:
            decrease[j] = (s[j] - l1) ** 2 / (norm[j] + l2)
            new += 1
    bar = 0.0
    limit = max(FEW, active)
    if new > limit:
        bar = np.partition(decrease, w.size - limit)[w.size - limit]
    chosen = np.empty(active + new, np.int64)
    count = 0
    for j in range(w.size):
        if w[j] > 0.0 or (decrease[j] > 0.0 and decrease[j] >= bar):
            chosen[count] = j
            count += 1
    return chosen[:count]


@kernel
def descend(H: F64, v: F64, s: F64, l1: float, l2: float, enough: float) -> None:
    """Solve for the weights `v` of a working set; `s` are its correlations with what is left."""
    n = v.size
    for _ in range(MOST_SWEEPS):
        gap = 0.0
        for a in range(n):
            gap += gap_of(v[a], s[a], l1, l2)
        if gap <= enough:
            return
        for a in range(n):
            new = max(0.0, (s[a] + H[a, a] * v[a] - l1) / (H[a, a] + l2))
            change = new - v[a]
            if change != 0.0:
                v[a] = new
                row = H[a]
                for b in range(n):
                    s[b] -= change * row[b]


@kernel
def subtract_weighted(w: F64, G: F64, s: F64) -> None:
    """Take Σ weight · row of G off `s`, four rows at a time; weights of 0 cost nothing."""
    n = s.size
    index = np.empty(n, np.int64)
    count = 0
    for j in range(n):
        if w[j] != 0.0:
            index[count] = j
            count += 1
    stop = count // 4 * 4
    for entry in range(0, stop, 4):
        a, b, c, d = index[entry], index[entry + 1], index[entry + 2], index[entry + 3]
        w0, w1, w2, w3 = w[a], w[b], w[c], w[d]
        g0, g1, g2, g3 = G[a], G[b], G[c], G[d]
        for k in range(n):
            s[k] -= (w0 * g0[k] + w1 * g1[k]) + (w2 * g2[k] + w3 * g3[k])
    for entry in range(stop, count):
        w0, g0 = w[index[entry]], G[index[entry]]
        for k in range(n):
            s[k] -= w0 * g0[k]


@kernel
def part_of(G: F64, chosen: I64) -> F64:
    """Return the rows and columns of a symmetric matrix that are chosen."""
    size = chosen.size
    H = np.empty((size, size))
    for a in range(size):
        row, part = G[chosen[a]], H[a]
        for b in range(a, size):
            part[b] = row[chosen[b]]
        for b in range(a):
            part[b] = H[b, a]
    return H


@kernel
def slim_columns(
    G: F64, norm: F64, l1: float, l2: float, tolerance: float, low: int, out: F64
) -> None:
    """Fill `out` with the weights that predict items low, low+1, … from the others."""
    n = G.shape[0]
    s = np.empty(n)
    for row in range(out.shape[0]):
        i = low + row
        w = out[row]
        w[:] = 0.0
        enough = tolerance * 0.5 * norm[i]
        for _ in range(MOST_ROUNDS):
            s[:] = G[i]
            subtract_weighted(w, G, s)
            gap = 0.0
            for j in range(n):
                if j != i:
                    gap += gap_of(w[j], s[j], l1, l2)
            if gap <= enough:
                break
            chosen = working_set(w, s, norm, i, l1, l2)
            size = chosen.size
            H = part_of(G, chosen)
            v = np.empty(size)
            left = np.empty(size)
            for a in range(size):
                v[a] = w[chosen[a]]
                left[a] = s[chosen[a]]
            # The rest of the gap is outside the set: to solve it much better is wasted.
            descend(H, v, left, l1, l2, max(0.3 * enough, 0.01 * gap))
            for a in range(size):
                w[chosen[a]] = v[a]
