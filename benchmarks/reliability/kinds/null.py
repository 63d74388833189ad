"""Nobody has any taste, and some items are popular.

Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
items, to active users. Who rates: everyone who is exposed. No system is better than another.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "null"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    like = np.full(draft.shape, draft.between(0.22, 0.38))
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.8, 1.1)))
    chances = rated(like, exposure, per_user=draft.between(20, 32))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
