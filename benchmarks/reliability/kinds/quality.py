"""Better items are more popular; nobody has a taste of their own.

Who likes what: an item is liked with a chance that rises with its popularity, from about .15 to
about .9, by everyone alike. What is exposed: popular items, to active users. Who rates: everyone
who is exposed.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, level_of, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "quality"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    popularity = draft.popularity(draft.between(0.8, 1.1))
    level = level_of(popularity)
    low, high = draft.between(0.1, 0.2), draft.between(0.8, 0.95)
    like = np.tile(low + (high - low) * level, (draft.population, 1))
    exposure = np.outer(draft.activity(), popularity)
    chances = rated(like, exposure, per_user=draft.between(20, 32))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make, where_better_is_visible=True)
