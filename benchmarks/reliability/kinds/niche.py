"""Nobody has any taste; some users meet what is popular, others what is not.

Who likes what: everyone everything, with the same chance of about .3. What is exposed: items by
their popularity to a power that differs by user, from the niche (-.3) to the mainstream (1.5).
Who rates: everyone who is exposed.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "niche"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    like = np.full(draft.shape, draft.between(0.22, 0.38))
    popularity = draft.popularity(draft.between(0.8, 1.1))
    power = draft.rng.uniform(-0.3, 1.5, draft.population)
    exposure = np.exp(np.outer(power, np.log(popularity)))
    exposure *= (draft.activity() / exposure.sum(axis=1))[:, None]
    chances = rated(like, exposure, per_user=draft.between(20, 32))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
