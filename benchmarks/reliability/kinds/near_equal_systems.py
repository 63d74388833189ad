"""Systems that are nearly equal: true differences of at most a few per cent.

Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
active users. Who rates: a disliked item is rated about .2 times as often as a liked one. The
systems of a world are one algorithm with settings that lie close together.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld
from unskew.recommend.factors import PureSVD
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import ItemKNN, UserKNN

NAME = "near-equal-systems"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    clusters = draft.clusters()
    like = np.where(clusters.same, draft.between(0.55, 0.8), draft.between(0.04, 0.1))
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.8, 1.1)))
    if_disliked = draft.between(0.15, 0.3)
    chances = rated(like, exposure, per_user=draft.between(20, 32), if_disliked=if_disliked)
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        systems=_systems(seed),
        tune=False,
        users=draft.users,
    )


def _systems(seed: int) -> dict[str, Algorithm]:
    """Return three systems with settings close together: of which kind depends on the seed."""
    if seed % 3 == 0:
        return {f"item-knn-{k}": ItemKNN(k=k) for k in (20, 21, 22)}
    if seed % 3 == 1:
        return {f"user-knn-{k}": UserKNN(k=k) for k in (96, 100, 104)}
    return {f"puresvd-{factors}": PureSVD(factors) for factors in (8, 9, 10)}


KIND = Kind(name=NAME, about=__doc__, make=make)
