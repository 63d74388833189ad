"""Adversarial: who dislikes what an earlier recommender shows seldom rates it.

Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
items, and about fifteen times more what the earlier recommender holds for the user's cluster. Who
rates: everyone who is exposed, but disliked items within the cluster are rated about .3 times as
often; items that users seek themselves are rated anyway.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, scaled
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "recsys*sel"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    like = np.full(draft.shape, draft.between(0.22, 0.38))
    shown = draft.clusters()
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.5, 0.8)))
    exposure *= np.where(shown.same, draft.between(12, 18), 1.0)
    disliked = exposure * np.where(shown.same, draft.between(0.25, 0.35), 1.0)
    chances = scaled(like, exposure, disliked, per_user=draft.between(20, 32))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        broken=frozenset({"display-changes-who-rates"}),
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make, adversarial=True)
