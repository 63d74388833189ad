"""`liked_by_popularity`: do the same people like popular items more often than others?"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I32
from unskew.checks import check_share, checked
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
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
        unit="users and items",
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
        Of the interval: Student's t, clustered by user and by item.

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
    counted = ratings if popularity is None else popularity
    number = np.bincount(counted.item, minlength=len(counted.items))[ratings.item]
    others = number - 1 if popularity is None else number
    items = np.unique(ratings.item).size
    if items < FEWEST_ITEMS:
        raise DataError(f"liking by popularity needs {FEWEST_ITEMS} rated items, got {items}")
    liked = relevance.is_liked(ratings.value).astype(np.float64)
    # Half a rating for items that nobody else rated.
    x, users = np.log10(np.maximum(others, 0.5)), ratings.user
    x, liked = _within(x, users), _within(liked, users)
    spread = float((x**2).sum())
    if not spread > 0:
        raise DataError("all rated items have the same number of ratings")
    slope = float((x * liked).sum()) / spread
    influence = x * (liked - slope * x) / spread
    se = np.sqrt(_two_way_variance(influence, users, ratings.item))
    count = min(np.unique(users).size, items)
    low, high = student_ends(slope, se, count - 1, level)
    row = {"ratings": len(ratings), "items": items, "value": slope, "se": se, "low": low}
    return Estimates.of_rows(POPULAR_LIKING, [{**row, "high": high}], level=level)


def _within(values: F64, users: I32) -> F64:
    """Return values less their mean over the ratings of the same user."""
    mean: F64 = np.bincount(users, values) / np.maximum(np.bincount(users), 1)
    return values - mean[users]


def _two_way_variance(influence: F64, users: I32, items: I32) -> float:
    """Return the variance where ratings of one user, and those of one item, vary together.

    By user plus by item less by rating (Cameron, Gelbach and Miller 2011), at least the larger one.
    """
    by_user, by_item = (float((np.bincount(unit, influence) ** 2).sum()) for unit in (users, items))
    return max(by_user + by_item - float((influence**2).sum()), by_user, by_item)
