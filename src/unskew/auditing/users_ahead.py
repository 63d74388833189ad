"""`users_ahead`: how many users are better and worse off with one system than with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64
from unskew.evaluation.scores import Scores
from unskew.stats.user_influence import averaged_lists, common_users

ROUNDING = 1e-12
"""Means over splits that differ by less are the same."""


@dataclass(frozen=True)
class UsersAhead:
    """How many users have a better, a worse and the same value with one system as with another."""

    better: int
    worse: int
    same: int

    @property
    def users(self) -> int:
        """All of them."""
        return self.better + self.worse + self.same


def users_ahead(parts: Sequence[Scores], metric: str, a: str, b: str) -> UsersAhead:
    """Count the users who are better off with system a than with b, worse off, and neither.

    A user's value is the mean over the user's lists, and then over the splits that average the
    user. Undefined values count as 0 or are left out, as in the means of the scores.

    Parameters
    ----------
    parts
        The scores of each split.
    metric
        A metric with a value per list.
    a, b
        Two systems.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.users_ahead import users_ahead
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> runs = {"a": {1: [10], 2: [30]}, "b": {1: [20], 2: [30]}}
    >>> users_ahead([us.evaluate(test, runs, "P@1", liked=4)], "P@1", "a", "b")
    UsersAhead(better=1, worse=0, same=1)
    """
    kept = [averaged_lists(part, (a, b), None, "a split") for part in parts]
    users = common_users(parts, kept)
    total, splits = np.zeros(len(users)), np.zeros(len(users))
    for part, keep in zip(parts, kept, strict=True):
        difference = (part.values(a, metric) - part.values(b, metric))[keep]
        if part.undefined != "skip":
            difference = _zero_where_undefined(part, metric, a, b)[keep]
        user = users.codes(part.user_ids.values)[part.lists["user"].to_numpy()[keep]]
        known = ~np.isnan(difference)
        lists = np.bincount(user[known], minlength=len(users))
        sums = np.bincount(user[known], difference[known], len(users))
        total += sums / np.maximum(lists, 1)
        splits += lists > 0
    sign = -1.0 if parts[0].metrics[parts[0]._label(metric)].better == "lower" else 1.0
    mean = sign * total[splits > 0] / splits[splits > 0]
    better, worse = int((mean > ROUNDING).sum()), int((mean < -ROUNDING).sum())
    return UsersAhead(better=better, worse=worse, same=int(mean.size) - better - worse)


def _zero_where_undefined(part: Scores, metric: str, a: str, b: str) -> F64:
    """Return the difference of two systems, list by list, with 0 for what is undefined."""
    first, second = part.values(a, metric), part.values(b, metric)
    difference: F64 = np.nan_to_num(first, nan=0.0) - np.nan_to_num(second, nan=0.0)
    return difference
