"""Adversarial: the more an item is displayed, the more often a dislike is recorded as a like.

Who likes what: about .3 of everything, by weak taste and by quality. What is exposed: popular
items, and about ten times more what an earlier recommender holds for the user's cluster. Who
rates: everyone who is exposed; of disliked items a share is recorded as liked: from .05 to .4
within the cluster, by the seed, and up to a quarter of that outside, by popularity.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, level_of, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "graded-halo"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    shown = draft.clusters()
    like = draft.factor_taste(
        draft.between(0.25, 0.35), strength=draft.between(0, 0.5), quality=0.3
    )
    popularity = draft.popularity(draft.between(0.5, 0.8))
    exposure = np.outer(draft.activity(), popularity)
    exposure *= np.where(shown.same, draft.between(7, 13), 1.0)
    display = np.where(shown.same, 1.0, 0.25 * level_of(popularity))
    swayed = draft.between(0.05, 0.4) * display
    chances = rated(like, exposure, per_user=draft.between(20, 32))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        swayed=swayed,
        broken=frozenset({"display-sways-ratings"}),
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make, adversarial=True)
