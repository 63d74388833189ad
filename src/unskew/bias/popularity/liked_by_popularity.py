"""`liked_by_popularity`: whether the same people like popular items more often than others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.checks import check_share, checked
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import effective_size
from unskew.errors import DataError
from unskew.report.columns import ESTIMATE, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.stats.intervals.means import student_ends

FEWEST_ITEMS = 20
"""With fewer rated items nothing is estimated."""

POPULAR_LIKING = Question(
    name="liking by popularity",
    columns=(Column("ratings", "count"), Column("items", "count"), *ESTIMATE),
    method=Method(
        estimand="within users: by how much the liked share rises with ten times the ratings of "
        "an item",
        interval="t",
        level=0.95,
        unit="users or items",
    ),
)


@checked
def liked_by_popularity(
    ratings: Ratings,
    relevance: Relevance,
    *,
    popularity: Ratings | None = None,
    level: float = 0.95,
) -> Estimates:
    """Return by how much more often the same users like items that more people rated.

    Where people rate an item because it is good, popular items are liked more; where they rate it
    because it was displayed, they need not be. Users are compared with themselves, so that generous
    users do not count for the items that they happen to rate. This is an association among ratings
    that people gave: who rates only what they like hides the difference.

    Parameters
    ----------
    ratings
        Whose liking is looked at: all ratings, or ratings of randomly shown items.
    relevance
        Which ratings are liked.
    popularity
        The ratings that say how popular items are, under the same ids; `ratings` unless given. An
        item's popularity counts the ratings of others.
    level
        Of the interval: Student's t; the larger jackknife variance of those over users and items.

    Returns
    -------
    Estimates
        One row: the slope of liking on the decimal logarithm of the number of ratings.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> from unskew.bias.popularity.liked_by_popularity import liked_by_popularity
    >>> rng = np.random.default_rng(1)
    >>> seen = rng.random((300, 40)) < 1 / np.arange(1, 41)
    >>> user, item = np.nonzero(seen)
    >>> likes = rng.random(user.size) < 0.8 - 0.01 * item
    >>> ratings = us.read_ratings({"user": user, "item": item, "rating": np.where(likes, 5, 1)})
    >>> row = liked_by_popularity(ratings, us.Relevance(liked=4)).row()
    >>> row.low > 0
    True
    """
    check_share("level", level)
    return popularity_slope(ratings, relevance, popularity=popularity, level=level)


def popularity_slope(
    ratings: Ratings,
    relevance: Relevance,
    *,
    popularity: Ratings | None = None,
    groups: I64 | None = None,
    level: float = 0.95,
) -> Estimates:
    """Return what `liked_by_popularity` returns.

    Parameters
    ----------
    ratings, relevance, popularity, level
        As there.
    groups
        The number of each user's group, where groups of users are independent and users are not.
    """
    counted = ratings if popularity is None else popularity
    number = np.bincount(counted.item, minlength=len(counted.items))[ratings.item]
    others = number - 1 if popularity is None else number
    items = np.unique(ratings.item).size
    if items < FEWEST_ITEMS:
        raise DataError(f"liking by popularity needs {FEWEST_ITEMS} rated items, got {items}")
    liked = relevance.is_liked(ratings.value).astype(np.float64)
    # Half a rating for items that nobody else rated.
    x, users = np.log10(np.maximum(others, 0.5)), ratings.user
    products, squares = (_moved(x, y, users, ratings.item) for y in (liked, x))
    if groups is not None:
        products, squares = (moved.by_group(groups) for moved in (products, squares))
    if not squares.total > 1e-9 * x.size:
        raise DataError("all rated items have the same number of ratings")
    slope = products.total / squares.total
    se = np.sqrt(
        max(_jackknife_variance(slope, products, squares, by) for by in ("by_user", "by_item"))
    )
    # Few popular items may carry most of the slope: it is known as from so many equal ones.
    count = min(effective_size(squares.by_user), effective_size(squares.by_item))
    low, high = student_ends(slope, se, max(count - 1, 1), level)
    row = {"ratings": len(ratings), "items": items, "value": slope, "se": se, "low": low}
    return Estimates.of_rows(POPULAR_LIKING, [{**row, "high": high}], level=level)


class _Moved(NamedTuple):
    """A sum of products within users, and what it loses without each user and each item."""

    total: float
    by_user: F64
    by_item: F64

    def by_group(self, groups: I64) -> _Moved:
        """Return the same with groups of users in the place of users."""
        by_group: F64 = np.bincount(groups[: self.by_user.size], self.by_user).astype(np.float64)
        return self._replace(by_user=by_group)


def _moved(x: F64, y: F64, users: I32, items: I32) -> _Moved:
    """Return the sum of products of two columns, each less its mean over the user's ratings."""
    number = np.bincount(users)
    sum_x, sum_y = np.bincount(users, x), np.bincount(users, y)
    by_user = np.bincount(users, x * y) - sum_x * sum_y / np.maximum(number, 1)
    # Without one of a user's ratings the means of the others change, too.
    n, rest_x, rest_y = number[users], sum_x[users] - x, sum_y[users] - y
    without = rest_x * rest_y / np.maximum(n - 1, 1)
    lost = x * y - sum_x[users] * sum_y[users] / n + without
    by_item: F64 = np.bincount(items, lost).astype(np.float64)
    return _Moved(float(by_user.sum()), by_user, by_item)


def _jackknife_variance(slope: float, products: _Moved, squares: _Moved, by: str) -> float:
    """Return the variance of a slope by what it is without each user, or without each item."""
    left = squares.total - getattr(squares, by)
    without = (products.total - getattr(products, by))[left > 0] / left[left > 0]
    return float(((without - slope) ** 2).sum())
