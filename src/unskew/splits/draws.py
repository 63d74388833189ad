"""Drawing ratings at random: one hash per user and item, so the order of rows never matters."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64, U64, Mask, frozen
from unskew.checks import as_count
from unskew.data.groups import sort_groups
from unskew.data.ratings import Ratings
from unskew.data.rows import Rows
from unskew.engine.rng import draw, generator
from unskew.engine.threads import map_blocks

# No key is above this.
_HIGHEST = np.iinfo(np.int64).max

# Rows hashed at a time: their temporaries stay in the cache, whatever the number of ratings.
_ROWS = 1 << 16


def filled(
    ratings: Ratings, kind: type[Any], seed: int, stage: str, change: Callable[[U64], NDArray[Any]]
) -> NDArray[Any]:
    """Return an array of what is made of the random bits of each rating."""
    result = np.empty(len(ratings), kind)

    def fill(low: int) -> None:
        rows = slice(low, low + _ROWS)
        result[rows] = change(draw(seed, stage, ratings.user[rows], ratings.item[rows]))

    map_blocks(fill, range(0, len(ratings), _ROWS), size=len(ratings))
    return result


def coin(ratings: Ratings, chance: Fraction, seed: int, stage: str) -> Mask:
    """Flip a coin per rating: True with probability `chance`."""
    limit = np.uint64(int(chance * 2**64))
    return filled(ratings, np.bool_, seed, stage, lambda bits: bits < limit)


def fold_of(ratings: Ratings, folds: int, seed: int, stage: str) -> I32:
    """Draw each rating into one of `folds` folds, all equally likely."""
    half, number = np.uint64(32), np.uint64(folds)
    return filled(ratings, np.int32, seed, stage, lambda bits: ((bits >> half) * number) >> half)


def keys(ratings: Ratings, seed: int, stage: str) -> I64:
    """Return a random number from 0 up for each rating, to sort by."""
    key = filled(ratings, np.int64, seed, stage, lambda bits: (bits >> np.uint64(1)).view(np.int64))
    return frozen(key)


def uniforms(ratings: Ratings, seed: int, stage: str) -> F64:
    """Return a random number strictly between 0 and 1 for each rating."""
    bits = (keys(ratings, seed, stage) >> 11).astype(np.float64)
    return bits * 2.0**-52 + 2.0**-53


def first_of_each(start: I64, order: I64, size: I64, rows: int | None = None) -> Mask:
    """Mark the first `size` rows of each group, which `order` gives; `rows` there are in all."""
    from unskew.splits import kernels

    mark = np.zeros(order.size if rows is None else rows, np.uint8)
    kernels.mark_first(start, frozen(order), frozen(size), mark)
    return mark.view(np.bool_)


def count_tied(start: I64, order: I64, time: I64, size: I64) -> int:
    """Count the groups whose first `size` entries end inside a run of equal times."""
    cut = start[:-1] + size
    inside = cut[(start[:-1] < cut) & (cut < start[1:])]
    return int(np.count_nonzero(time[order[inside - 1]] == time[order[inside]]))


def of_each_user(ratings: Ratings, size: I64, seed: int, stage: str) -> Mask:
    """Mark `size` ratings of each user, drawn at random."""
    order, _ = sort_groups(ratings.start, keys(ratings, seed, stage))
    return first_of_each(ratings.start, order, size)


def of_each_item(ratings: Ratings, size: I64, seed: int, stage: str) -> Mask:
    """Mark `size` ratings of each item, drawn at random."""
    from unskew.splits import kernels

    key, item = keys(ratings, seed, stage), ratings.item
    limit = _likely_limit(np.bincount(item, minlength=size.size), size)
    result = kernels.count_below(item, key, frozen(limit))
    short = result < size
    if short.any():
        limit[short] = _HIGHEST
        result = kernels.count_below(item, key, frozen(limit))
    start = frozen(np.append(0, np.cumsum(result)))
    row, below = kernels.rows_below(item, key, frozen(limit), start)
    order, _ = sort_groups(start, frozen(below))
    return first_of_each(start, row[order], size, len(ratings))


def _likely_limit(counts: I64, size: I64) -> I64:
    """Return for each item a key below which almost surely `size` of its keys lie, and few more.

    Then only these need sorting, and the cost stays in proportion to the number of ratings
    however many one item has. The limit never shows in the result.
    """
    share = (size + 6 * np.sqrt(size) + 10) / np.maximum(counts, 1)
    limit: I64 = (np.minimum(share, 0.5) * float(_HIGHEST)).astype(np.int64)
    limit[share > 0.5] = _HIGHEST
    limit[size == 0] = -1
    return limit


def of_all(ratings: Ratings, size: int, seed: int, stage: str) -> Mask:
    """Mark exactly `size` ratings, drawn at random."""
    return _smallest(keys(ratings, seed, stage), size)


def weighted(ratings: Ratings, weight: F64, size: int, seed: int) -> Mask:
    """Mark `size` ratings drawn without replacement, each next one in proportion to its weight.

    Every rating gets an exponential clock that runs at the speed of its weight; the first `size`
    to ring are drawn. That is exactly the distribution of successive draws (numpy's
    `choice(replace=False, p=…)`), without an order of rows.
    """
    ring = -np.log(uniforms(ratings, seed, "intervene")) / weight
    return _smallest(ring, size)


def _smallest(key: I64 | F64, size: int) -> Mask:
    """Mark the rows with the `size` smallest keys; of equal keys the first, by user and item."""
    if not size:
        return np.zeros(key.size, np.bool_)
    limit = np.partition(key, size - 1)[size - 1]
    mark: Mask = key < limit
    ties = np.flatnonzero(key == limit)
    mark[ties[: size - int(np.count_nonzero(mark))]] = True
    return mark


def drawn_users(ratings: Rows, count: int, seed: int = 0) -> Mask | None:
    """Draw users at random, each with a rating as likely as any other; None = they are all.

    Parameters
    ----------
    ratings
        All ratings or events, before they are split.
    count
        How many users; all where not more have ratings.
    seed
        Same seed, same users: in every split and under every design.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.splits.draws import drawn_users
    >>> data = us.read_ratings({"user": [1, 2, 3, 3], "item": [1, 1, 1, 2]})
    >>> int(drawn_users(data, 2).sum()), drawn_users(data, 3)
    (2, None)
    """
    active = np.flatnonzero(np.bincount(ratings.user, minlength=len(ratings.users)))
    if as_count("count", count) >= active.size:
        return None
    chosen = generator(seed, "judged users").choice(active.size, count, replace=False)
    judged = np.zeros(len(ratings.users), np.bool_)
    judged[active[chosen]] = True
    return frozen(judged)
