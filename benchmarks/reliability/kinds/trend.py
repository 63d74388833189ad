"""Items come out over time; new ones are met more, and liked more, than they are later.

Who likes what: by weak taste and quality, and more if the item is new when the user comes. What is
exposed: items that are out, the new ones most, popular ones more. Who rates: a disliked item is
rated about .4 times as often as a liked one. Users come at random moments and stay for a twentieth
of the span; ratings have times.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "trend"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    arrival = draft.rng.random(draft.population)
    released = np.maximum(draft.rng.uniform(-0.6, 0.95, draft.items), 0.0)
    age = arrival[:, None] - released
    fresh = np.exp(-np.maximum(age, 0.0) / draft.between(0.15, 0.3))
    like = draft.factor_taste(
        draft.between(0.2, 0.3), strength=draft.between(0.6, 1.0), quality=0.4
    )
    like += (1 - like) * draft.between(0.2, 0.4) * fresh
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.5, 0.8)))
    exposure *= (age >= 0) * (0.1 + fresh)
    chances = rated(
        like, exposure, per_user=draft.between(16, 26), if_disliked=draft.between(0.3, 0.5)
    )
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        arrival=arrival,
        released=released,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
