"""Kernels of groups of users: sums of values by group, with users shuffled."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.compiled import kernel
from unskew.engine.rng_kernels import first, second

_32 = np.uint64(32)


@kernel
def shuffled_sums(key: np.uint64, start: int, values: F64, code: I64, out: F64) -> None:
    """Write sums of values, squares and cubes by group, a row per shuffle of users.

    Users are rows of `values`, columns systems; `out` is shuffles x 3 x systems x groups.
    """
    users, systems = values.shape
    shuffled = np.empty(users, np.int64)
    for row in range(out.shape[0]):
        state = first(key, start + row)
        shuffled[:] = code
        for left in range(users, 1, -1):  # Fisher and Yates
            chosen = np.int64(((second(state, left) >> _32) * np.uint64(left)) >> _32)
            shuffled[left - 1], shuffled[chosen] = shuffled[chosen], shuffled[left - 1]
        out[row] = 0.0
        for u in range(users):
            g = shuffled[u]
            for s in range(systems):
                v = values[u, s]
                out[row, 0, s, g] += v
                out[row, 1, s, g] += v * v
                out[row, 2, s, g] += v * v * v
