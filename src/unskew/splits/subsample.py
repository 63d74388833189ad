"""Smaller test sets, and disjoint random parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from unskew.checks import as_share, checked, choose, portion
from unskew.data.ratings import Ratings
from unskew.data.summary import item_counts
from unskew.errors import SettingError
from unskew.report.text import counted
from unskew.splits import draws
from unskew.splits.popularity import head

PER = ("user", "all")


@checked
def sparsity_sample(test: Ratings, share: float, seed: int = 0, *, per: str = "user") -> Ratings:
    """Return a random part of a test set, to see what becomes of a metric when less is known.

    Parameters
    ----------
    test
        The ratings to draw from.
    share
        The share to keep.
    seed
        One sample per seed. With the same seed a smaller sample is part of a larger one.
    per
        `user` keeps this share of each user's ratings (valcarce2018 section 4.1); `all` keeps
        this share of all ratings, whoever gave them (bellogin2017 figure 4). Rounded to the
        nearest whole number, half to even; users left without ratings are counted in the notes.

    Returns
    -------
    Ratings
        Under the same ids.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> print(us.splits.sparsity_sample(shop, 0.5, seed=1).notes[-1])
    sparsity sample of 0.5 per user, seed 1: 175 of 354 ratings kept; 3 users have none left
    """
    part = as_share("share", share, one=True)
    if choose("per", per, PER) == "user":
        size = portion(np.diff(test.start), part, "half-even")
        mask = draws.of_each_user(test, size, seed, "sample/user")
    else:
        number = int(portion(np.array([len(test)]), part, "half-even")[0])
        mask = draws.of_all(test, number, seed, "sample/all")
    return _noted(test, test.take(mask), f"sparsity sample of {share:g} per {per}, seed {seed}")


@checked
def popularity_cut(train: Ratings, test: Ratings, keep: float = 0.9) -> Ratings:
    """Return the test ratings without those of the most popular items (valcarce2018 section 4.2).

    Parameters
    ----------
    train, test
        Under the same ids.
    keep
        q: the share of items to keep. The `round((1 - q) * n)` items with most training ratings
        go, of the n that have any; ties by ascending id.

    Examples
    --------
    >>> import unskew as us
    >>> train = us.read_ratings({"user": [1, 2, 3, 3, 3], "item": [7, 7, 7, 8, 9]})
    >>> us.splits.popularity_cut(train, train, keep=0.67).to_polars()["item"].to_list()
    [8, 9]
    """
    part = as_share("keep", keep, one=True)
    gone = head(item_counts(train), 1 - part)
    tail = test.take(~gone[test.item])
    return _noted(test, tail, f"popularity cut: {int(gone.sum()):,} most rated items removed")


def random_parts(ratings: Ratings, shares: Sequence[float], seed: int = 0) -> list[Ratings]:
    """Return disjoint random parts of `floor(share * n)` ratings each (carraro2020 section 5.1).

    Where the shares add up to 1, the last part takes what rounding leaves over.
    """
    parts = [as_share("shares", share) for share in shares]
    if not parts or sum(parts, Fraction(0)) > 1:
        raise SettingError(f"shares must add up to at most 1, got {list(shares)}")
    sizes = [int(portion(np.array([len(ratings)]), part)[0]) for part in parts]
    if sum(parts, Fraction(0)) == 1:
        sizes[-1] = len(ratings) - sum(sizes[:-1])
    order = np.argsort(draws.keys(ratings, seed, "parts"), kind="stable")
    stops = np.cumsum(sizes)
    return [
        ratings.take(np.sort(order[end - size : end]))
        for end, size in zip(stops.tolist(), sizes, strict=True)
    ]


def _noted(before: Ratings, after: Ratings, what: str) -> Ratings:
    """Say in the notes what a sample cost."""
    lost = int(np.count_nonzero(np.diff(before.start)) - np.count_nonzero(np.diff(after.start)))
    note = (
        f"{what}: {len(after):,} of {len(before):,} ratings kept; "
        f"{counted(lost, 'user has', 'users have')} none left"
    )
    return replace(after, notes=(*before.notes, note))
