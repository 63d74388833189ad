"""Null data: the same judgments, their values drawn anew, so that what systems learn is known.

A protocol that finds a winner on such data finds what is not there (castells2018 section 7).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, U64, Mask, frozen
from unskew.checks import checked, choose
from unskew.data.groups import grouped_order, sort_groups
from unskew.data.ratings import Ratings
from unskew.engine.rng import draw
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.splits.draws import filled

NULLS = {
    "iid": "values drawn independently: nobody has any taste, no item is better",
    "within-user": "each user's values shuffled: users keep their level, no item is better",
    "within-item": "each item's values shuffled: items keep their quality, nobody has a taste",
    "clusters": "values shuffled within groups of users x groups of items: only these remain",
}
DIRECTIONS = 2
STEPS = 30
"""Of subspace iteration: signs settle long before values do."""

# Pairs drawn at a time.
_CELLS = 1 << 20


@checked
def redraw(
    ratings: Ratings,
    null: str = "iid",
    seed: int = 0,
    *,
    liked: float | None = None,
    share: float | None = None,
    directions: int = DIRECTIONS,
) -> Ratings:
    r"""Return the same users, items and pairs with values drawn anew under a null hypothesis.

    Parameters
    ----------
    ratings
        Whose pairs, and whose values, are taken.
    null
        `iid`: each value drawn from all values, with replacement; nothing is left to learn
        (castells2018 section 7.1). `within-user`: each user's values are shuffled; how much a user
        likes things remains. `within-item`: each item's values are shuffled; the quality of items
        remains, and a system that beats it by taste beats it falsely. `clusters`: values are
        shuffled among the pairs of one group of users and one group of items; the taste of groups
        remains. Groups are the signs of the first singular vectors of the ratings, less the means
        of their user and item, a missing one being 0: with d directions
        :math:`2^d \times 2^d` groups of pairs.
    seed
        Same seed, same values, in any order of rows.
    liked, share
        For `iid`: a value is at least `liked` with probability `share`, and is then drawn from the
        values that are, else from those that are not; castells2018 takes 0.57.
    directions
        For `clusters`: how many singular vectors.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.worlds.nulls import redraw
    >>> ratings = us.read_ratings({"user": [1, 1, 1, 2], "item": [7, 8, 9, 7], "rating": [5, 3, 1, 4]})
    >>> redraw(ratings, "within-user", seed=3).value.tolist()
    [3.0, 1.0, 5.0, 4.0]
    """  # noqa: E501 - the example
    choose("null", null, NULLS)
    if not len(ratings):
        raise DataError("there are no ratings to redraw")
    if null != "iid" and (liked is not None or share is not None):
        raise SettingError(f"liked and share are for null='iid'; {null!r} keeps the values it has")
    if null != "clusters" and directions != DIRECTIONS:
        raise SettingError(f"directions is for null='clusters', not {null!r}")
    if null == "iid":
        value = _drawn(ratings, liked, share, seed)
    elif null == "within-user":
        value = _shuffled(ratings, ratings.user, len(ratings.users), seed, null)
    elif null == "within-item":
        value = _shuffled(ratings, ratings.item, len(ratings.items), seed, null)
    else:
        users, items = co_clusters(ratings, directions)
        groups = 1 << directions
        cell = users[ratings.user] * np.int32(groups) + items[ratings.item]
        value = _shuffled(ratings, cell.astype(np.int32), groups * groups, seed, null)
    return replace(ratings, value=frozen(value))


def co_clusters(ratings: Ratings, directions: int = DIRECTIONS) -> tuple[I32, I32]:
    """Return a group for each user and each item: the signs of the first singular vectors.

    Of the ratings less the mean of their user and of their item (plus that of all), a missing one
    being 0, by subspace iteration from a fixed start. Users and items without ratings are in the
    group of all signs positive.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.worlds.nulls import co_clusters
    >>> rows = [(u, i, 5 if u % 2 == i % 2 else 1) for u in range(6) for i in range(6)]
    >>> user, item, rating = zip(*rows)
    >>> users, items = co_clusters(us.read_ratings({"user": user, "item": item, "rating": rating}), 1)
    >>> bool((users[::2] == users[0]).all() and (users[1::2] != users[0]).all())
    True
    """  # noqa: E501 - the example
    if isinstance(directions, bool) or not isinstance(directions, int) or not 1 <= directions <= 8:
        raise SettingError(f"directions must be a whole number from 1 to 8, got {directions!r}")
    user, item, n, m = ratings.user, ratings.item, len(ratings.users), len(ratings.items)
    residual = ratings.value + ratings.value.mean()
    residual = (
        residual - _means(user, ratings.value, n)[user] - _means(item, ratings.value, m)[item]
    )
    width = min(directions + 2, n, m)
    start = draw(0, "nulls/clusters", np.arange(m)[:, None], np.arange(width)[None, :])
    right = (start >> np.uint64(11)).astype(np.float64) * 2.0**-53 - 0.5

    def times(rows: I32, columns: I32, size: int, block: F64) -> F64:
        parts = [np.bincount(rows, residual * column[columns], size) for column in block.T]
        return np.stack(parts, axis=1)

    with one_blas_thread():
        for _ in range(STEPS):
            left = np.linalg.qr(times(user, item, n, right))[0]
            right, mixed = np.linalg.qr(times(item, user, m, left))
        turn, _, back = np.linalg.svd(mixed.T)
        left, right = left @ turn, right @ back.T
    return _signs(left, directions), _signs(right, directions)


def _signs(vectors: F64, directions: int) -> I32:
    """Number the patterns of signs; what cannot be told from 0 counts as positive."""
    group = np.zeros(vectors.shape[0], np.int32)
    for index in range(min(directions, vectors.shape[1])):
        group |= (vectors[:, index] < -1e-12).astype(np.int32) << index
    return group


def _means(codes: I32, value: F64, size: int) -> F64:
    counts = np.bincount(codes, minlength=size)
    mean: F64 = np.bincount(codes, value, size) / np.maximum(counts, 1)
    return mean


def _bits(ratings: Ratings, seed: int, stage: str) -> U64:
    """Return 63 random bits for each pair."""
    return filled(ratings, np.uint64, seed, stage, lambda bits: bits >> np.uint64(1))


def uniform(bits: U64) -> F64:
    """Return numbers from 0 up to, but not, 1 from 63 random bits each."""
    number: F64 = (bits >> np.uint64(10)).astype(np.float64) * 2.0**-53
    return number


def _drawn(ratings: Ratings, liked: float | None, share: float | None, seed: int) -> F64:
    """Draw each value from all values, or from the liked ones with a given probability."""
    chance = uniform(_bits(ratings, seed, "nulls/iid"))
    ordered = np.sort(ratings.value)
    if share is None:
        if liked is not None:
            raise SettingError("liked says which values share=… is about: give share too")
        return _picked(ordered, chance)
    if liked is None:
        raise SettingError(
            "share is that of the liked ratings: give the smallest liked rating, such as liked=4"
        )
    if not 0 < share < 1:
        raise SettingError(f"share must lie between 0 and 1, got {share!r}")
    split = int(np.searchsorted(ordered, liked))
    for part, name in ((ordered[:split], "below"), (ordered[split:], "at least")):
        if not part.size:
            raise DataError(
                f"no rating is {name} liked={liked:g} (they go from {ordered[0]:g} to "
                f"{ordered[-1]:g}): choose another threshold"
            )
    is_liked = chance < share
    low = _picked(ordered[:split], np.where(is_liked, 0.0, (chance - share) / (1 - share)))
    return np.where(
        is_liked, _picked(ordered[split:], np.where(is_liked, chance / share, 0.0)), low
    )


def _picked(ordered: F64, chance: F64) -> F64:
    index = np.minimum((chance * ordered.size).astype(np.int64), ordered.size - 1)
    return ordered[index]


def _shuffled(ratings: Ratings, group: I32, groups: int, seed: int, null: str) -> F64:
    """Shuffle values within groups, by random keys of the pairs."""
    key = _bits(ratings, seed, f"nulls/{null}").view(np.int64)
    start = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(group, minlength=groups), out=start[1:])
    rows = grouped_order(frozen(group), start)
    order, _ = sort_groups(start, frozen(key[rows]))
    value = np.empty(len(ratings))
    value[rows] = ratings.value[rows[order]]
    return value


FAMILIAR = "familiar"
"""The tag of forced judgments that says which ones train."""


def forced_judgments(ratings: Ratings, density: float = 0.5, seed: int = 0) -> Ratings:
    r"""Return judgments of random pairs, among which the familiar ones are ratings as given.

    castells2018 section 7.1: each rating trains with probability `density` (tag `familiar`), and
    a pair outside training is judged with probability :math:`(p(J) - p(J_{train}|i)) /
    (1 - p(J_{train}|i))`, so that every item is judged with the same density p(J). A rated pair
    keeps its value; any other draws one from all values, which is right for ratings that were
    drawn independently themselves (`redraw`).

    Parameters
    ----------
    ratings
        What users came to know.
    density
        p(J): which share of all pairs is judged.
    seed
        Same seed, same judgments.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.worlds.nulls import forced_judgments
    >>> rows = [(u, i, 1 + (u + i) % 5) for u in range(40) for i in range(40) if i <= u]
    >>> user, item, rating = zip(*rows)
    >>> judged = forced_judgments(us.read_ratings({"user": user, "item": item, "rating": rating}))
    >>> 0.45 < len(judged) / 1600 < 0.55
    True
    """
    if not 0 < density < 1:
        raise SettingError(f"density must lie between 0 and 1, got {density!r}")
    users, items = len(ratings.users), len(ratings.items)
    train = uniform(_bits(ratings, seed, "nulls/forced/train")) < density
    trained = np.bincount(ratings.item[train], minlength=items) / max(users, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(trained < 1, (density - trained) / (1 - trained), 0.0)
    ordered = np.sort(ratings.value)
    block = max(_CELLS // max(items, 1), 1)

    def judged(low: int) -> tuple[I64, I32, F64, Mask]:
        high = min(low + block, users)
        rows = slice(int(ratings.start[low]), int(ratings.start[high]))
        shape = (high - low, items)
        row, item = ratings.user[rows] - low, ratings.item[rows]
        trains = np.zeros(shape, np.bool_)
        trains[row, item] = train[rows]
        who, which = np.arange(low, high)[:, None], np.arange(items)[None, :]
        coin = uniform(draw(seed, "nulls/forced/test", who, which) >> np.uint64(1))
        near, column = np.nonzero(trains | (coin < chance))
        values = np.full(shape, np.nan)
        values[row, item] = ratings.value[rows]
        value = values[near, column]
        new = np.isnan(value)
        bits = draw(seed, "nulls/forced/value", near[new] + low, column[new]) >> np.uint64(1)
        value[new] = _picked(ordered, uniform(bits))
        return near + low, column.astype(np.int32), value, trains[near, column]

    parts = map_blocks(judged, range(0, users, block), size=users * items)
    user, item, value, familiar = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Ratings(
        ratings.users,
        ratings.items,
        frozen(user.astype(np.int32)),
        frozen(item),
        frozen(value),
        None,
        {FAMILIAR: pl.Series(familiar)},
    )
