"""Samples of users of large data sets, by a hash of their ids: the same ones in every file."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl

from unskew.arrays import Mask
from unskew.checks import as_share
from unskew.data.ratings import Ids, Ratings
from unskew.engine.rng import draw
from unskew.errors import SettingError
from unskew.report.text import counted

KEY = "users of a data set"
_SCALE = 1 << 64


def as_user_share(share: object) -> Fraction:
    """Return a share of users, also given as text after the name of a data set.

    Examples
    --------
    >>> from unskew.data.user_samples import as_user_share
    >>> as_user_share("0.1")
    Fraction(1, 10)
    """
    value = share
    if isinstance(share, str):
        try:
            value = float(share)
        except ValueError:
            raise SettingError(f"share must be a number such as 0.1, got {share!r}") from None
    return as_share("share", value, one=True)


def sampled(users: pl.Series, share: Fraction) -> Mask:
    """Mark whole-number ids that belong to a sample; a smaller share is part of a larger one.

    Examples
    --------
    >>> import polars as pl
    >>> from fractions import Fraction
    >>> from unskew.data.user_samples import sampled
    >>> ids = pl.Series(range(10_000))
    >>> few, many = (sampled(ids, Fraction(1, n)) for n in (10, 5))
    >>> bool((few <= many).all()), bool(900 < few.sum() < 1_100)
    (True, True)
    """
    drawn = draw(0, KEY, users.to_numpy())
    if share == 1:
        return np.ones(len(users), np.bool_)
    return drawn < np.uint64(int(share * _SCALE))


def of_sampled_users(
    ratings: Ratings, share: Fraction, keep: Ids | None = None
) -> tuple[Ratings, list[str]]:
    """Return the ratings of a sample of users, and of those to `keep`; say how many there are."""
    if share == 1:
        return ratings, []
    chosen = sampled(ratings.users.values, share)
    if keep is not None:
        known = ratings.users.codes(keep.values)
        chosen[known[known >= 0]] = True
    smaller = afresh(ratings.take(chosen[ratings.user]))
    return smaller, [sample_note(len(smaller.users), len(ratings.users), share)]


def afresh(ratings: Ratings) -> Ratings:
    """Return the ratings with the ids that occur in them, and no others."""
    return Ratings.of(
        ratings.users.raw(ratings.user),
        ratings.items.raw(ratings.item),
        None if ratings.implicit else pl.Series("rating", ratings.value),
        ratings.time,
        tags=ratings.tags,
        notes=ratings.notes,
    )


def sample_note(kept: int, whole: int, share: Fraction) -> str:
    """Say how many users a sample holds."""
    return (
        f"share={float(share):g}: {kept:,} of {counted(whole, 'user')} kept, by a hash of their ids"
    )
