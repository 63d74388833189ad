"""Kernels of LibRec's neighbourhoods: cosines over what both rated, sums of the k largest."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32, I64, U16, U64
from unskew.engine.compiled import kernel

WALKED = 4  # one in so many users, the nearest, are looked at item by item
MOST_SWEEPS = 10_000  # never reached unless the matrix is all but singular


@kernel
def corated_rows(
    rows: I32,
    start: I64,
    column: I32,
    value: F64,
    there: I64,
    other: I32,
    weight: F64,
    shrink: float,
    result: F64,
) -> None:
    """Fill the similarities of some rows with all rows; 0 with itself and where there is none."""
    n = result.shape[1]
    # Per other row, over the common columns: products, squares of this, of that, and how many.
    met = np.zeros((n, 4))
    for at in range(rows.size):
        row = rows[at]
        met[:] = 0.0
        for a in range(start[row], start[row + 1]):
            x = value[a]
            square = x * x
            for b in range(np.uint64(there[column[a]]), np.uint64(there[column[a] + 1])):
                y = weight[b]
                sums = met[np.uint32(other[b])]
                sums[0] += x * y
                sums[1] += square
                sums[2] += y * y
                sums[3] += 1.0
        for v in range(n):
            result[at, v] = 0.0
            if met[v, 0] > 0.0 and v != row:
                cosine = met[v, 0] / np.sqrt(met[v, 1] * met[v, 2])
                result[at, v] = cosine * (met[v, 3] / (met[v, 3] + shrink))


@kernel
def _largest_first(values: F64, size: int, k: int) -> None:
    """Bring the k largest of the first `size` values to the front, in whatever order."""
    low, high = 0, size - 1
    while low < high:
        a, b, c = values[low], values[(low + high) >> 1], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            return


@kernel
def _sum_of_largest(near: F64, other: I32, low: int, high: int, k: int, kept: F64) -> float:
    """Return the sum of the k largest positive similarities of some others; NaN without any."""
    size = 0
    for b in range(low, high):
        kept[size] = near[other[b]]
        size += int(kept[size] > 0.0)
    if size > k:
        _largest_first(kept, size, k)
        size = k
    total = 0.0
    for b in range(size):
        total += kept[b]
    return total if size else np.nan


@kernel
def sums_of_nearest_raters(
    similarity: F64, start: I64, column: I32, there: I64, rater: I32, k: int, score: F64
) -> None:
    """Fill per item the sum of the k largest similarities among those who rated it.

    The nearest users, one after the other, soon give all but the rare items their k; for these the
    few raters are looked through.
    """
    users, items = similarity.shape[1], score.shape[1]
    count = np.empty(items, np.int32)
    kept = np.empty(users)
    for at in range(similarity.shape[0]):
        near, total = similarity[at], score[at]
        count[:] = 0
        total[:] = 0.0
        order = np.argsort(-near)
        for nth in range(users // WALKED):
            v = order[nth]
            s = near[v]
            if s <= 0.0:
                break
            for a in range(np.uint64(start[v]), np.uint64(start[v + 1])):
                rated = np.uint32(column[a])
                if count[rated] < k:
                    count[rated] += 1
                    total[rated] += s
        for i in range(items):
            if count[i] < k:
                total[i] = _sum_of_largest(near, rater, there[i], there[i + 1], k, kept)


@kernel
def _bits(word: np.uint64) -> int:
    """Return how many bits are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@kernel
def _kth(words: U64, k: int) -> int:
    """Return the place of the kth bit that is set; there are at least k."""
    at = 0
    left = k
    found = _bits(words[at])
    while found < left:
        left -= found
        at += 1
        found = _bits(words[at])
    word = words[at]
    for _ in range(left - 1):
        word &= word - np.uint64(1)
    return 64 * at + _bits((word ^ (word - np.uint64(1))) >> np.uint64(1))


@kernel
def sums_of_nearest_rated(
    users: I32, start: I64, column: I32, similarity: F64, rank: U16, k: int, score: F64
) -> None:
    """Fill per item the sum of the k largest similarities with the items of a user.

    `rank` says where among the items nearest to i, nearest first, each item stands. The ranks of
    the user's items are marked as bits, so that the kth is found without sorting or branching.
    """
    items = rank.shape[0]
    words = np.empty(items // 64 + 1, np.uint64)
    kept = np.empty(items)
    for i in range(items):  # outside: what is known of an item serves all users
        near, places = similarity[i], rank[i]
        for at in range(users.size):
            low, high = start[users[at]], start[users[at] + 1]
            if high - low <= k:
                score[at, i] = _sum_of_largest(near, column, low, high, k, kept)
                continue
            words[:] = np.uint64(0)
            for a in range(np.uint64(low), np.uint64(high)):
                place = places[np.uint32(column[a])]
                words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
            last = _kth(words, k)
            total = 0.0
            for a in range(np.uint64(low), np.uint64(high)):
                j = np.uint32(column[a])
                total += near[j] if places[j] <= last else 0.0
            score[at, i] = total if total > 0.0 else np.nan


@kernel
def ranks_of_rows(similarity: F64, rank: U16) -> None:
    """Fill where each column stands in its row, the largest first and equal ones by number."""
    for row in range(rank.shape[0]):
        order = np.argsort(-similarity[row], kind="mergesort")
        for place in range(order.size):
            rank[row, order[place]] = place


@kernel
def penalised_columns(
    G: F64,
    count: F64,
    start: I64,
    predictor: I32,
    l1: float,
    l2: float,
    tolerance: float,
    low: int,
    high: int,
    weight: F64,
) -> None:
    """Fill the weights of the predictors of items low, …, high - 1, one item after the other.

    Coordinate descent on ½‖r_i - R w‖² + Σ_j n_j (½ l2 w_j² + l1 |w_j|), n_j being `count`.
    """
    base = start[low]
    for at in range(low, high):
        near = predictor[start[at] : start[at + 1]]
        w = weight[start[at] - base : start[at + 1] - base]
        w[:] = 0.0
        left = np.empty(near.size)
        H = np.empty((near.size, near.size))
        for a in range(near.size):
            left[a] = G[at, near[a]]
            for b in range(near.size):
                H[a, b] = G[near[a], near[b]]
        _descend(H, left, w, count, near, l1, l2, tolerance)


@kernel
def _descend(
    H: F64, left: F64, w: F64, count: F64, near: I32, l1: float, l2: float, tolerance: float
) -> None:
    """Sweep over the weights until none moves by more than the tolerance; `left` = Rᵀ(r - Rw)."""
    for _ in range(MOST_SWEEPS):
        moved = 0.0
        for a in range(w.size):
            n = count[near[a]]
            pull = left[a] + H[a, a] * w[a]
            new = 0.0
            if abs(pull) > n * l1:
                new = (pull - np.copysign(n * l1, pull)) / (H[a, a] + n * l2)
            change = new - w[a]
            if change != 0.0:
                w[a] = new
                for b in range(w.size):
                    left[b] -= change * H[a, b]
                moved = max(moved, abs(change))
        if moved <= tolerance:
            return
