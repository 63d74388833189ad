"""The best items are neither popular nor unknown; nobody has a taste of their own.

Who likes what: an item is liked by everyone alike, most at middling popularity (about .6) and less
towards both ends (about .2). What is exposed: popular items, to active users. Who rates: a disliked
item is rated about .6 times as often as a liked one.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, level_of, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "middling-best"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    popularity = draft.popularity(draft.between(0.8, 1.1))
    middle, width = draft.between(0.35, 0.6), draft.between(0.12, 0.2)
    hill = np.exp(-0.5 * ((level_of(popularity) - middle) / width) ** 2)
    low, high = draft.between(0.15, 0.25), draft.between(0.5, 0.7)
    like = np.tile(low + (high - low) * hill, (draft.population, 1))
    exposure = np.outer(draft.activity(), popularity)
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.5, 0.7)
    )
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
