r"""Variance by user, or by another cluster, and intervals of shares of few counts.

A user's ratings are not independent, and neither are splits of one data set: what a user adds is
added up over all ratings and splits first, and the variance is that of the users' sums (a
linearised ratio; Cochran 1977, 6.4). With few counts that variance can be far too small by
chance (ten of ten liked have none), so it is raised to a binomial one whose share is drawn towards
one half (Agresti & Caffo 2000); with more counts this fades out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I64, Mask
from unskew.data.user_groups import FEWEST as FEWEST_GROUPS
from unskew.errors import DataError
from unskew.report.text import counted
from unskew.stats.intervals.means import Interval
from unskew.stats.intervals.shares import wilson_ends
from unskew.stats.special import student_t_quantile

FEWEST = 10
"""With fewer ratings nothing is estimated."""
ENOUGH = 20
"""Up to so many effective ratings the binomial variance is a full floor."""


def shrunken(share: float, number: float) -> float:
    """Return a share of `number` ratings with two liked and two disliked ones added."""
    return (share * number + 2.0) / (number + 4.0)


def variance_of(influence: F64, units: int | I64, *, form: str = "sum") -> Any:
    """Return the variance of a sum of influences of independent units.

    Parameters
    ----------
    influence
        A row per unit (users, groups of users, repeats; what a cluster adds is added up before),
        of one estimate or a column each. Units that add nothing may be there.
    units
        How many units add something.
    form
        `sum` adds the squares up; `product` takes the inner product, whose last bits differ.
    """
    if form == "product":
        return influence @ influence * units / (units - 1)
    return covariance_of(influence, influence, units)


def covariance_of(first: F64, second: F64, units: int | I64) -> Any:
    """Return the covariance of two sums of influences of the same units, as of `variance_of`."""
    return (first * second).sum(axis=0) * units / (units - 1)


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
    plain = float(variance_of(influence, users, form="product"))
    return plain + min(1.0, (ENOUGH / effective) ** 2) * max(0.0, floor - plain)


def share_ends(
    share: float, variance: float, effective: float, users: int, level: float
) -> tuple[float, float]:
    """Return Wilson's interval of a share, with as many ratings as would have this variance."""
    inner = shrunken(share, effective)
    number = min(inner * (1 - inner) / variance, effective) if variance > 0 else effective
    low, high = wilson_ends(share, number, student_t_quantile((1 + level) / 2, users - 1))
    return max(float(low), 0.0), min(float(high), 1.0)


def share_interval(marks: Mask, repeat: NDArray[np.generic], level: float) -> Interval:
    """Return a share and its interval, trials of one repeat not being independent.

    Wilson's interval with an effective number of trials: as many independent ones as would vary
    from repeat to repeat as the shares did, at least the number of repeats and at most the number
    of trials; Student's t with repeats - 1 degrees of freedom stands for the normal quantile. Where
    all trials or none are marked they count as independent: nothing shows that they are not.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.clusters import share_interval
    >>> marks, repeat = np.array([True] * 20), np.repeat(np.arange(10), 2)
    >>> share, low, high = share_interval(marks, repeat, 0.95)
    >>> share, round(low, 3), high
    (1.0, 0.796, 1.0)
    """
    trials = int(marks.size)
    if not trials:
        return None, None, None
    share = int(marks.sum()) / trials
    cluster = np.unique(repeat, return_inverse=True)[1]
    size = np.bincount(cluster)
    repeats = size.size
    if repeats < 2:
        return share, None, None
    # The variance of a ratio of sums over repeats.
    variance = float(variance_of(np.bincount(cluster, marks) - share * size, repeats)) / trials**2
    count = float(trials)
    if variance > 0:
        count = min(max(share * (1 - share) / variance, float(repeats)), float(trials))
    low, high = wilson_ends(share, count, student_t_quantile((1 + level) / 2, repeats - 1))
    # The ends are 0 and 1 exactly where the share is; rounding may miss them.
    low = 0.0 if share == 0 else max(float(low), 0.0)
    return share, low, 1.0 if share == 1 else min(float(high), 1.0)


def by_group(values: F64, code: I64) -> F64:
    """Return groups x columns: the sums over the users of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.clusters import by_group
    >>> by_group(np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 1.0]]), np.array([0, 0, 1])).tolist()
    [[3.0, 0.0], [4.0, 1.0]]
    """
    groups = int(code.max(initial=-1)) + 1
    result = np.empty((groups, values.shape[1]))
    for column in range(values.shape[1]):
        result[:, column] = np.bincount(code, values[:, column], groups)
    return result


@dataclass(frozen=True, eq=False)
class GroupedValues:
    """Values of groups of users, of which the mean over groups is the mean over users."""

    sums: F64
    """Groups x systems: what the users of a group add up to, for tests that permute."""
    linear: F64
    """The same without what groups add by their size: its variance is that of the mean over
    users, a ratio of two sums. It is `sums` where all groups have the same size."""
    matrix: F64
    """`linear` of all groups, NaN for those without a user that has values; scaled so that its
    sum by the number of all groups is the mean."""

    @classmethod
    def of(cls, values: F64, code: I64, label: str) -> GroupedValues:
        """Add up users x systems by group.

        Parameters
        ----------
        values
            Their sum by the number of users is the mean; rows with NaN are users that are left out.
        code
            The group of each user.
        label
            What these are values of.
        """
        is_complete = np.logical_not(np.isnan(values).any(axis=1))
        present, group = np.unique(code[is_complete], return_inverse=True)
        size, users = np.bincount(group), int(np.count_nonzero(is_complete))
        if size.size < FEWEST_GROUPS:
            raise DataError(
                f"{label}: {counted(users, 'user has', 'users have')} a value of every system, in "
                f"{counted(size.size, 'group')}: at least {FEWEST_GROUPS} groups are needed"
            )
        sums = by_group(values[is_complete], group) * (size.size / len(values))
        weight = size * size.size / users
        linear = sums
        if (weight != 1).any():
            linear = sums - (weight[:, None] - 1) * sums.mean(axis=0)
        groups = int(code.max()) + 1
        matrix = np.full((groups, values.shape[1]), np.nan)
        matrix[present] = linear * (groups / size.size)
        return cls(sums, linear, matrix)
