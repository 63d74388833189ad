r"""Ratios of sums over users: influence of each user, variance by user, and few counts.

A user's ratings are not independent, and neither are splits of one data set: what a user adds is
added up over all ratings and splits first, and the variance is that of the users' sums (a
linearised ratio; Cochran 1977, 6.4). With few counts that variance can be far too small by
chance (ten of ten liked have none), so it is raised to a binomial one whose share is drawn towards
one half (Agresti & Caffo 2000); with more counts this fades out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.stats.special import student_t_quantile

FEWEST = 10
"""With fewer ratings nothing is estimated."""
ENOUGH = 20
"""Up to so many effective ratings the binomial variance is a full floor."""


@dataclass(frozen=True, eq=False)
class Ratio:
    """A ratio of sums over users."""

    value: float
    influence: F64
    """What each user moves it by; adds up to 0."""


def ratio(top: F64, bottom: F64) -> Ratio:
    """Return Σ top / Σ bottom and what each user moves it by."""
    total = float(bottom.sum())
    value = float(top.sum()) / total
    return Ratio(value, (top - value * bottom) / total)


def drawn_in(share: float, number: float) -> float:
    """Return a share of `number` ratings with two liked and two disliked ones added."""
    return (share * number + 2.0) / (number + 4.0)


def clustered_variance(influence: F64, users: int, floor: float, effective: float) -> float:
    """Return the variance of a sum of influences, raised towards a floor where counts are few.

    Parameters
    ----------
    influence
        Of each user; users that add nothing may be there.
    users
        How many users add something: at least 2.
    floor
        The binomial variance.
    effective
        How many equal ratings it rests on.
    """
    plain = float(influence @ influence) * users / (users - 1)
    return plain + min(1.0, (ENOUGH / effective) ** 2) * max(0.0, floor - plain)


def half_width(users: int, level: float) -> float:
    """Return half the width of an interval in standard errors: Student's t over users."""
    return student_t_quantile((1 + level) / 2, users - 1)


def share_ends(
    share: float, variance: float, effective: float, users: int, level: float
) -> tuple[float, float]:
    """Return Wilson's interval of a share, with as many ratings as would have this variance."""
    t = half_width(users, level)
    inner = drawn_in(share, effective)
    number = min(inner * (1 - inner) / variance, effective) if variance > 0 else effective
    middle = share + t * t / (2 * number)
    half = t * math.sqrt(share * (1 - share) / number + t * t / (4 * number * number))
    denominator = 1 + t * t / number
    return max((middle - half) / denominator, 0.0), min((middle + half) / denominator, 1.0)


def aligned_users(parts: Sequence[I32 | I64]) -> tuple[I64, list[I64]]:
    """Return all users of several splits, and where those of each split stand among them."""
    everyone = np.unique(np.concatenate(parts).astype(np.int64))
    return everyone, [np.searchsorted(everyone, part) for part in parts]
