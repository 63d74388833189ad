"""Shares and counts: checked once, rounded exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING

from unskew.errors import SettingError

if TYPE_CHECKING:  # the command line takes its limits from here before it needs numpy
    import numpy as np
    from numpy.typing import NDArray

    I64 = NDArray[np.int64]

DEFAULT_TEST = 0.2
"""The test share where none is given, as in all five papers."""

MOST_SEED = 2**63 - 1
"""The largest seed."""
MOST_DEPTH = 2**31 - 1
"""The most items of a list; also the most items and users that are numbered."""
MOST_DRAWS = 10_000_000
"""The most permutations, resamples, samples or simulations: more would take days."""
MOST_REPEATS = 10_000
"""The most folds, repetitions or repeats of an experiment."""
MOST_ROUNDS = 1_000_000
"""The most epochs or iterations of a training."""
MOST_PROCESSES = 1_024
"""The most threads or processes."""
MOST_DIGITS = 15
"""The most decimals of a printed number: a double holds no more."""

# Amounts that are worked through one by one; others may be as large as numbers of items.
_MOST = {
    "seed": MOST_SEED,
    "rng": MOST_SEED,
    **dict.fromkeys(
        ("draws", "permutations", "resamples", "samples", "simulations", "bootstrap"), MOST_DRAWS
    ),
    "folds": MOST_REPEATS,
    "repetitions": MOST_REPEATS,
    "repeats": MOST_REPEATS,
    "epochs": MOST_ROUNDS,
    "iterations": MOST_ROUNDS,
}

# 0.29 is meant as 29/100, not as the double below it; 1/3 as a third.
_FINEST = 10**9


def as_share(name: str, value: object, *, one: bool = False) -> Fraction:
    """Return a share between 0 and 1 (1 itself only if `one`) as the fraction that is meant.

    Examples
    --------
    >>> from unskew.amounts import as_share
    >>> as_share("test", 0.29)
    Fraction(29, 100)
    """
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        part = Fraction(float(value)).limit_denominator(_FINEST)
        if 0 < part < 1 or (one and part == 1):
            return part
    most = "1, which is allowed" if one else "1"
    raise SettingError(f"{name} must be a share between 0 and {most}, such as 0.2; got {value!r}")


def as_count(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Return a whole number from `least` to `most`, which depends on the name unless given.

    Examples
    --------
    >>> from unskew.amounts import as_count
    >>> as_count("folds", 5, 2)
    5
    >>> as_count("folds", 10**9, 2)
    Traceback (most recent call last):
    unskew.errors.SettingError: folds must be at most 10,000, got 1000000000
    """
    most = _MOST.get(name, MOST_DEPTH) if most is None else most
    if isinstance(value, Integral) and not isinstance(value, bool):
        if least <= int(value) <= most:
            return int(value)
        if int(value) > most:
            raise SettingError(f"{name} must be at most {most:,}, got {value!r}")
    raise SettingError(f"{name} must be a whole number from {least} up, got {value!r}")


def portion(counts: I64, part: Fraction, rounding: str = "floor") -> I64:
    """Return `part` of each count, rounded down (`floor`) or to the nearest, half to even.

    Whole-number arithmetic: 0.29 of 100 is 29, where floating point says 28.999….
    """
    import numpy as np

    whole, rest = np.divmod(np.asarray(counts, np.int64) * part.numerator, part.denominator)
    if rounding == "floor":
        return whole
    up = (2 * rest > part.denominator) | ((2 * rest == part.denominator) & (whole % 2 == 1))
    return np.asarray(whole + up, np.int64)
