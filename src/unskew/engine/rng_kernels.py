"""Compiled twin of `rng.draw`, for what is drawn inside kernels."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32
from unskew.engine.compiled import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_1, _27, _30, _31 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31)


@kernel
def mix(z: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64."""
    z = (z ^ (z >> _30)) * _MIX_A
    z = (z ^ (z >> _27)) * _MIX_B
    return z ^ (z >> _31)


@kernel
def first(key: np.uint64, a: int) -> np.uint64:
    """Return the state from which `second` draws for `a`."""
    return mix(key + (np.uint64(a) + _1) * _GOLDEN)


@kernel
def second(state: np.uint64, b: int) -> np.uint64:
    """Return 64 random bits: `second(first(key, a), b)` is what `rng.draw` gives for (a, b)."""
    return mix(state + (np.uint64(b) + _1) * _GOLDEN)


@kernel
def uniform_tile(key: np.uint64, users: I32, out: F64) -> None:
    """Fill a row per user with numbers from [0, 1), one for each pair of user and column."""
    for row in range(users.size):
        state = first(key, users[row])
        for column in range(out.shape[1]):
            bits = second(state, column) >> np.uint64(11)
            out[row, column] = np.float64(bits) * 2.0**-53
