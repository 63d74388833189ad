"""Randomness that depends on a seed and a key only, never on order, blocks or threads.

`generator` serves what is drawn once per stage. `draw` is a counter hash for what is drawn per
user, item or list: a numpy generator per key costs microseconds, a hash costs a nanosecond.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)


def key_of(seed: int, *parts: object) -> int:
    """Return the 64 bits that stand for a seed and a key."""
    text = "\x1f".join([str(int(seed)), *map(str, parts)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *key: object) -> np.random.Generator:
    """Return the numpy generator that belongs to a seed and a key such as ("split", fold)."""
    return np.random.default_rng(key_of(seed, *key))


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * _MIX_A
    z = (z ^ (z >> np.uint64(27))) * _MIX_B
    return z ^ (z >> np.uint64(31))


def draw(seed: int, stage: str, a: ArrayLike, b: ArrayLike = 0) -> NDArray[np.uint64]:
    """Return 64 random bits for each pair (a, b): SplitMix64 finalisers over a keyed counter.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.engine.rng import draw
    >>> bool(draw(7, "ties", 1, 2) == draw(7, "ties", np.arange(3), 2)[1])
    True
    """
    with np.errstate(over="ignore"):
        first = np.atleast_1d(np.asarray(a)).astype(np.int64).view(np.uint64)
        second = np.atleast_1d(np.asarray(b)).astype(np.int64).view(np.uint64)
        z = _mix(np.uint64(key_of(seed, stage)) + (first + np.uint64(1)) * _GOLDEN)
        return _mix(z + (second + np.uint64(1)) * _GOLDEN)
