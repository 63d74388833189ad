"""Taste alone: liking by cluster, everything exposed, mostly likes rated.

Users and items belong to eight clusters. Who likes what: about .7 within a cluster, about .05
outside. What is exposed: everything alike. Who rates: those who like; a disliked item is rated
.02 times as often.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "taste"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    clusters = draft.clusters()
    like = np.where(clusters.same, draft.between(0.55, 0.8), draft.between(0.04, 0.1))
    exposure = np.outer(draft.activity(0.3), np.ones(draft.items))
    chances = rated(like, exposure, per_user=draft.between(19, 30), if_disliked=0.02)
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make, where_better_is_visible=True)
