"""Taste, and an earlier recommender that knows it.

Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, and
about ten times more within the user's cluster of taste. Who rates: everyone who is exposed.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "recsys=taste"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    clusters = draft.clusters()
    like = np.where(clusters.same, draft.between(0.55, 0.8), draft.between(0.04, 0.1))
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.5, 0.8)))
    exposure *= np.where(clusters.same, draft.between(7, 13), 1.0)
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
