"""Users see few categories only, and like items for other features than the category.

Who likes what: by six factors of taste and by quality, none of which goes with the category. What
is exposed: two of twelve categories per user, fifteen times more than the others, popular items
more. Who rates: a disliked item is rated about .4 times as often as a liked one.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "category-exposure"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    like = draft.factor_taste(
        draft.between(0.25, 0.35), strength=draft.between(0.8, 1.4), quality=0.4
    )
    first, second = draft.clusters(12), draft.rng.integers(12, size=draft.population)
    seen = first.same | (second[:, None] == first.item)
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.5, 0.8)))
    exposure *= np.where(seen, 15.0, 1.0)
    chances = rated(
        like, exposure, per_user=draft.between(18, 30), if_disliked=draft.between(0.3, 0.5)
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
