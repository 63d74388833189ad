"""A random sample of users: where there are many, a part of them is enough to judge systems by."""

from __future__ import annotations

import numpy as np

from unskew.arrays import Mask, frozen
from unskew.checks import as_count
from unskew.data.steps import Rows
from unskew.engine.rng import generator


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
    >>> from unskew.splits.judged_users import drawn_users
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
