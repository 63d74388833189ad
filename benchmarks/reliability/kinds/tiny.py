"""A tiny data set: 100 items and about 100 users.

Who likes what: about .7 within one of four clusters, about .1 outside. What is exposed: popular
items, to active users. Who rates: a disliked item is rated about .2 times as often as a liked one.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "tiny"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed, users=(80, 150), items=(100, 100))
    clusters = draft.clusters(4)
    like = np.where(clusters.same, draft.between(0.55, 0.8), draft.between(0.05, 0.15))
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.5, 0.9)))
    if_disliked = draft.between(0.15, 0.3)
    chances = rated(like, exposure, per_user=draft.between(10, 16), if_disliked=if_disliked)
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
