"""Sums over users, and what follows from them: values, errors, intervals, values in draws.

Every estimate here is made of sums over users by `-`, `*` and `/`: a weighted score is a sum of
hits by a sum of slots, a liked share one of liked ratings by one of ratings, and a difference is
that of two such numbers. Whatever is made of sums knows what each user moves it by (its linearised
influence) and what it is in each draw of users, so that a formula is written once, and so are its
standard error and its intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from unskew.arrays import F64
from unskew.stats.clusters import clustered_variance, share_ends, shrunken
from unskew.stats.intervals.means import student_ends
from unskew.stats.resampling import drawn_sums, percentile_interval, with_replacement


@dataclass(frozen=True, eq=False)
class UserSum:
    """A sum over users, or a number made of such sums.

    Parameters
    ----------
    values
        The number itself, then what it is in each draw of users, where users were drawn.
    moves
        Works out what each user moves it by, when that is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.unbiased.user_sums import UserSum
    >>> liked, judged = (UserSum.of(np.array(column)) for column in ([2.0, 0.0], [3.0, 1.0]))
    >>> share = liked / judged
    >>> share.value, share.influence.tolist()
    (0.5, [0.125, -0.125])
    """

    values: F64
    moves: Callable[[], F64]

    @classmethod
    def of(cls, column: F64) -> UserSum:
        """Return the sum of a column, a number per user."""
        return cls(np.array([column.sum()]), lambda: column)

    @property
    def value(self) -> float:
        """The number; NaN where it is undefined."""
        return float(self.values[0])

    @cached_property
    def influence(self) -> F64:
        """What each user moves it by: of a sum, what the user adds."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.moves()

    @property
    def se(self) -> float:
        """The standard error, users being drawn at random."""
        return float(np.sqrt((self.influence**2).sum()))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the percentiles of the draws in which it is finite; NaN without any."""
        draws = self.values[1:]
        low, high = percentile_interval(np.where(np.isfinite(draws), draws, np.nan), level)
        return float(low), float(high)

    def row(self, level: float) -> dict[str, float]:
        """Return the numbers of a row of `Estimates`; where users were not drawn, the value."""
        if self.values.size == 1:
            return {"value": self.value}
        low, high = self.interval(level)
        return {"value": self.value, "se": self.se, "low": low, "high": high}

    def __sub__(self, second: UserSum) -> UserSum:
        return UserSum(self.values - second.values, lambda: self.influence - second.influence)

    def __mul__(self, second: UserSum) -> UserSum:
        value, factor = self.values[0], second.values[0]
        with np.errstate(invalid="ignore"):
            values = self.values * second.values
        return UserSum(values, lambda: value * second.influence + factor * self.influence)

    def __truediv__(self, second: UserSum) -> UserSum:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = self.values / second.values
        ratio, total = values[0], second.values[0]
        return UserSum(values, lambda: (self.influence - ratio * second.influence) / total)


def resampled_sums(
    columns: Sequence[F64], resamples: int, seed: int = 0, threads: int | None = None
) -> list[UserSum]:
    """Return the sums of columns, a number per user, all of them in the same draws of users.

    Parameters
    ----------
    columns
        What is drawn together stands together: in another product the last digits would differ.
    resamples
        How often users are drawn with replacement; 0: not at all.
    seed
        Of the draws.
    threads
        Never changes a number.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.unbiased.user_sums import resampled_sums
    >>> top, bottom = resampled_sums([np.arange(100.0), np.ones(100)], 200)
    >>> mean = top / bottom
    >>> mean.value, [round(end) for end in mean.interval(0.95)]
    (49.5, [44, 55])
    """
    by_user = np.column_stack(columns) if resamples else np.zeros((0, len(columns)))
    weigh = with_replacement(seed, "estimate/resamples")
    draws = drawn_sums(by_user, weigh, resamples, threads=threads)
    sums = np.vstack([[column.sum() for column in columns], draws])
    return [
        UserSum(values, partial(np.asarray, column))
        for values, column in zip(sums.T, columns, strict=True)
    ]


def share_row(share: UserSum, users: int, effective: float, level: float) -> dict[str, float]:
    """Return a share and its interval, Wilson's by user, as numbers of a row of `Estimates`.

    Parameters
    ----------
    share
        A sum of weights of liked ratings by that of all ratings.
    users
        How many users have a rating that counts.
    effective
        How many equal ratings it rests on.
    level
        Of the interval.
    """
    inner = shrunken(share.value, effective)
    floor = inner * (1 - inner) / effective
    variance = clustered_variance(share.influence, users, floor, effective)
    low, high = share_ends(share.value, variance, effective, users, level)
    return {"value": share.value, "se": math.sqrt(variance), "low": low, "high": high}


def difference_row(
    difference: UserSum,
    shares: Sequence[UserSum],
    effective: Sequence[float],
    users: int,
    spread: float,
    level: float,
) -> dict[str, float]:
    """Return a difference of two shares and its interval: Student's t, by user.

    Parameters
    ----------
    difference
        Of two shares, or of parts of them.
    shares, effective
        The liked share of either side, and how many equal ratings it rests on.
    users
        How many users have a rating that counts.
    spread
        What the binomial variance is in parts of that of one rating.
    level
        Of the interval.
    """
    number, fewest = sum(effective), min(effective)
    pooled = (shares[0].value * effective[0] + shares[1].value * effective[1]) / number
    inner = shrunken(pooled, number)
    floor = inner * (1 - inner) * spread
    se = math.sqrt(clustered_variance(difference.influence, users, floor, fewest))
    low, high = student_ends(difference.value, se, users - 1, level)
    return {"value": difference.value, "se": se, "low": max(low, -1.0), "high": min(high, 1.0)}
