"""There is taste, and popular items are liked less by everyone.

Who likes what: by cluster, about .8 within and .2 outside for the least popular items, falling to a
third of that for the most popular ones. What is exposed: popular items, to active users. Who
rates: a disliked item is rated about .5 times as often as a liked one.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, level_of, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "popularity-inverted"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    clusters = draft.clusters()
    popularity = draft.popularity(draft.between(0.8, 1.1))
    level = 1 - draft.between(0.55, 0.75) * level_of(popularity)
    like = np.where(clusters.same, draft.between(0.7, 0.9), draft.between(0.15, 0.25)) * level
    exposure = np.outer(draft.activity(), popularity)
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.4, 0.6)
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
