"""All systems are equal: chance alone tells them apart.

Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
active users. Who rates: a disliked item is rated about .2 times as often as a liked one. The
systems of a world are three random orders, or one algorithm trained on three random halves.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld
from unskew.auditing.self_test.systems import PartTrained, RandomOrder
from unskew.recommend.factors import PureSVD
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import ItemKNN

NAME = "equal-systems"


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
    """Return three equal systems: of which kind depends on the seed."""
    if seed % 3 == 0:
        return {f"order-{letter}": RandomOrder(one) for one, letter in enumerate("abc")}
    algorithm: Algorithm = ItemKNN() if seed % 3 == 1 else PureSVD(8)
    return {f"half-{letter}": PartTrained(algorithm, one) for one, letter in enumerate("abc")}


KIND = Kind(name=NAME, about=__doc__, make=make)
