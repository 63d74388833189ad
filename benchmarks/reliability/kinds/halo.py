"""Adversarial: what an earlier recommender shows is rated as liked although it is not.

Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
items, and about ten times more what the earlier recommender holds for the user's cluster. Who
rates: everyone who is exposed; of disliked items within the cluster about .3 are recorded as liked.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "halo"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    like = np.full(draft.shape, draft.between(0.22, 0.38))
    shown = draft.clusters()
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.5, 0.8)))
    exposure *= np.where(shown.same, draft.between(7, 13), 1.0)
    swayed = np.where(shown.same, draft.between(0.25, 0.35), 0.0)
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
