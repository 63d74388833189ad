"""Kernels of least-squares factors: a row at once, by conjugate gradients, or by coordinates."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64, Floats
from unskew.engine.compiled import kernel, training_kernel

NOTHING = 1e-30  # share of a squared length that cannot be told from 0
LANES = 8  # a vector of this many numbers stays whole: rows of half matrices, padded rows


@kernel
def add_outer(
    A: F64, b: F64, Y: F64, column: I32, extra: F64, wanted: F64, first: int, last: int
) -> None:
    """Add Σ extra · y yᵀ to the upper half of A and Σ wanted · y to b, four entries at a time.

    Inner loops run from 0 over slices: only then does the compiler know that no index is
    negative, and makes vectors of them.
    """
    width = b.size
    whole = first + (last - first) // 4 * 4
    for at in range(first, whole, 4):
        y0, y1, y2, y3 = Y[column[at]], Y[column[at + 1]], Y[column[at + 2]], Y[column[at + 3]]
        e0, e1, e2, e3 = extra[at], extra[at + 1], extra[at + 2], extra[at + 3]
        p0, p1, p2, p3 = wanted[at], wanted[at + 1], wanted[at + 2], wanted[at + 3]
        for k in range(width):
            b[k] += (p0 * y0[k] + p1 * y1[k]) + (p2 * y2[k] + p3 * y3[k])
        for left in range(0, width, LANES):
            z0, z1, z2, z3 = y0[left:], y1[left:], y2[left:], y3[left:]
            for a in range(min(LANES, width - left)):
                w0, w1, w2, w3 = e0 * z0[a], e1 * z1[a], e2 * z2[a], e3 * z3[a]
                row = A[left + a, left:]
                for k in range(width - left):
                    row[k] += (w0 * z0[k] + w1 * z1[k]) + (w2 * z2[k] + w3 * z3[k])
    for at in range(whole, last):
        y0 = Y[column[at]]
        for k in range(width):
            b[k] += wanted[at] * y0[k]
        for a in range(width):
            w0 = extra[at] * y0[a]
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
        known = b[k]
        rest = b[k:]
        for r in range(1, n - k):
            factor = pivot[r]
            rest[r] -= factor * known
            row, done = A[k + r, k + r :], pivot[r:]
            for c in range(n - k - r):
                row[c] -= factor * done[c]
    for k in range(n - 1, -1, -1):
        row, rest = A[k, k:], b[k:]
        total = rest[0]
        for c in range(1, n - k):
            total -= row[c] * rest[c]
        b[k] = total / row[0]


@kernel
def least_squares(
    start: I64, column: I32, extra: F64, wanted: F64, Y: F64, gram: F64, low: int, out: F64
) -> None:
    """Fill `out` with the factors of rows low, low+1, … that fit best, given the others'."""
    width = Y.shape[1]
    A = np.empty((width, width))
    for row in range(out.shape[0]):
        b = out[row]
        b[:] = 0.0
        for a in range(width):
            for k in range(width):
                A[a, k] = gram[a, k]
        add_outer(A, b, Y, column, extra, wanted, start[low + row], start[low + row + 1])
        solve(A, b)


@kernel
def combine(weight: Floats, M: Floats, out: Floats) -> None:
    """Add Σ weight · row of M to `out`, four rows at a time."""
    n = out.size
    whole = weight.size // 4 * 4
    for at in range(0, whole, 4):
        w0, w1, w2, w3 = weight[at], weight[at + 1], weight[at + 2], weight[at + 3]
        m0, m1, m2, m3 = M[at], M[at + 1], M[at + 2], M[at + 3]
        for k in range(n):
            out[k] += (w0 * m0[k] + w1 * m1[k]) + (w2 * m2[k] + w3 * m3[k])
    for at in range(whole, weight.size):
        w0, m0 = weight[at], M[at]
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
    for at in range(n):
        y, z = Y[column[at]], Z[at]
        for k in range(width):
            z[k] = y[k]
    whole = n // 4 * 4
    for at in range(0, whole, 4):
        z0, z1, z2, z3 = Z[at], Z[at + 1], Z[at + 2], Z[at + 3]
        for k in range(width):
            line = Zt[k, at : at + 4]
            line[0], line[1], line[2], line[3] = z0[k], z1[k], z2[k], z3[k]
    for at in range(whole, n):
        for k in range(width):
            Zt[k, at] = Z[at, k]


@kernel
def conjugate_gradient(
    start: I64,
    column: I32,
    extra: F64,
    wanted: F64,
    Y: F64,
    gram: F64,
    steps: int,
    low: int,
    out: F64,
) -> None:
    """Move `out`, the factors of rows low, low+1, …, towards those that fit best.

    The factors of a row's entries are held both ways round, so that every product adds up rows, and
    in single precision: half as much to read. Factors, residuals and steps are doubles.
    """
    width = Y.shape[1]
    most = 0
    for row in range(out.shape[0]):
        most = max(most, start[low + row + 1] - start[low + row])
    padded = -(-width // LANES) * LANES
    Z, across = np.zeros((most, padded), np.float32), np.empty(width * most, np.float32)
    seen = np.empty(most, np.float32)
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
        combine(wanted[first:last], Z, residual)
        whole = dot(residual, residual)
        if whole == 0.0:
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
            for at in range(n):
                t[at] *= extra[first + at]
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
            if length <= NOTHING * whole:
                break
            move = length / dot(direction, image)
            for k in range(width):
                x[k] += move * direction[k]
                residual[k] -= move * image[k]
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
    for at in range(z.size):
        slope += gap[at] * z[at]
        bend += extra[at] * z[at] * z[at]
    return slope, bend


@kernel
def coordinate_descent(
    start: I64,
    column: I32,
    extra: F64,
    wanted: F64,
    Y: F64,
    gram: F64,
    missing: F64,
    penalty: float,
    low: int,
    out: F64,
) -> None:
    """Move each coordinate of `out`, the factors of rows low, low+1, …, once to its best value.

    A row x has the loss m xᵀ(gram)x + Σ (extra (x·y)² - 2 wanted x·y) + penalty ‖x‖², m being its
    `missing`. The gaps wanted - extra x·y of its entries are kept up to date, so that a
    coordinate costs one pass over the entries and one row of the Gram matrix.
    """
    width = Y.shape[1]
    most = 0
    for row in range(out.shape[0]):
        most = max(most, start[low + row + 1] - start[low + row])
    Z, across, gaps = np.empty((most, width)), np.empty(width * most), np.empty(most)
    for row in range(out.shape[0]):
        first, last = start[low + row], start[low + row + 1]
        n = last - first
        Zt = across[: width * n].reshape(width, n)
        gap, more, m = gaps[:n], extra[first:last], missing[low + row]
        gather(Y, column[first:last], Z, Zt)
        x = out[row]
        gap[:] = 0.0
        combine(x, Zt, gap)
        for at in range(n):
            gap[at] = wanted[first + at] - more[at] * gap[at]
        for k in range(width):
            z = Zt[k]
            slope, bend = slope_and_bend(gap, more, z)
            slope -= m * product(gram[k], x) + penalty * x[k]
            move = slope / (bend + m * gram[k, k] + penalty)
            x[k] += move
            for at in range(n):
                gap[at] -= move * more[at] * z[at]
