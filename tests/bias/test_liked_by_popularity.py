"""Do the same people like popular items more: a slope within users."""

import numpy as np
import pytest

import unskew as us
from unskew.bias import liked_by_popularity
from unskew.bias.popularity.liked_by_popularity import popularity_slope
from unskew.errors import DataError

RULE = us.Relevance(liked=4)


def drawn(seed, slope, users=300, items=60, taste=0.0):
    """Ratings whose liking rises with popularity by a slope, generous users rating other items."""
    rng = np.random.default_rng(seed)
    popularity = rng.permutation((np.arange(items) + 1.0) ** -1.0)
    popularity *= 0.5 / popularity.max()
    generous = rng.random(users) < 0.5
    exposure = np.outer(np.where(generous, 1.0, 0.4), popularity)
    user, item = np.nonzero(rng.random((users, items)) < exposure)
    quality = 0.5 + slope * np.log10(popularity / popularity.mean())
    chance = quality[item] + 0.2 * (generous[user] - 0.5) + taste * rng.standard_normal(items)[item]
    liked = rng.random(user.size) < np.clip(chance, 0.02, 0.98)
    return us.read_ratings({"user": user, "item": item, "rating": np.where(liked, 5, 1)})


def slope_of(x, liked, user):
    """Return the slope of a regression with an intercept per user, by plain means."""
    number = np.maximum(np.bincount(user), 1)
    x = x - (np.bincount(user, x) / number)[user]
    return x @ liked / (x @ x)


def test_the_slope_is_that_of_a_regression_with_an_intercept_per_user():
    data = drawn(1, 0.2)
    liked = (data.value >= 4).astype(float)
    counts = np.bincount(data.item)[data.item]
    x = np.log10(np.maximum(counts - 1, 0.5))
    dummies = np.eye(len(data.users))[data.user]
    fit, *_ = np.linalg.lstsq(np.column_stack([x, dummies]), liked, rcond=None)
    row = liked_by_popularity(data, RULE).row()
    assert row.value == pytest.approx(fit[0], abs=1e-9)
    variances = []
    for unit in (data.user, data.item):
        slopes = [slope_of(x[unit != u], liked[unit != u], data.user[unit != u]) for u in set(unit)]
        variances.append(((np.array(slopes) - row.value) ** 2).sum())
    assert row.se == pytest.approx(np.sqrt(max(variances)), rel=1e-9)


def test_generous_users_who_rate_popular_items_do_not_make_a_slope():
    rows = [liked_by_popularity(drawn(seed, 0.0, taste=0.1), RULE).row() for seed in range(200)]
    misses = np.mean([not row.low <= 0 <= row.high for row in rows])
    assert misses < 0.09
    assert all(
        liked_by_popularity(drawn(seed, 0.3, users=900, items=150), RULE).row().low > 0
        for seed in range(5)
    )


def test_ratings_of_random_items_take_popularity_from_elsewhere():
    data, random = drawn(1, 0.3, 900, 150), drawn(2, -0.3, 900, 150)
    turned = liked_by_popularity(random, RULE, popularity=random).row()
    assert turned.high < 0
    assert liked_by_popularity(data, RULE).row().low > 0


def test_too_few_items_and_equal_numbers_are_refused():
    few = us.read_ratings({"user": [1, 2], "item": [1, 2], "rating": [5, 1]})
    with pytest.raises(DataError, match="needs 20 rated items, got 2"):
        liked_by_popularity(few, RULE)
    user, item = np.divmod(np.arange(3 * 25), 25)
    same = us.read_ratings({"user": user, "item": item, "rating": np.where(item % 2, 5, 1)})
    with pytest.raises(DataError, match="same number of ratings"):
        liked_by_popularity(same, RULE)


def test_groups_of_users_are_left_out_together():
    data = drawn(3, 0.2, users=100)
    copies = us.read_ratings(
        {
            "user": np.concatenate([data.user + 1000 * copy for copy in range(4)]),
            "item": np.tile(data.item, 4),
            "rating": np.tile(data.value, 4),
        }
    )
    alone = liked_by_popularity(data, RULE, popularity=data).row()
    groups = (copies.users.values.to_numpy() % 1000).astype(np.int64)
    home = us.read_ratings(copies.to_polars())
    grouped = popularity_slope(home, RULE, popularity=home, groups=groups).row()
    plain = liked_by_popularity(home, RULE, popularity=home).row()
    assert grouped.value == pytest.approx(plain.value)
    assert grouped.se >= plain.se
    assert grouped.value == pytest.approx(alone.value, abs=0.03)
