"""Editors keep a list for each of five segments; users see the top of it.

Who likes what: by six factors of taste and by quality. What is exposed: items by their place in the
list of the user's segment, with a chance that falls with the place to the power of about 1; the
lists are ordered by quality with much noise, each segment's by other noise. Who rates: a disliked
item is rated about .4 times as often as a liked one.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "position-bias"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    like = draft.factor_taste(
        draft.between(0.25, 0.35), strength=draft.between(0.6, 1.2), quality=draft.between(0.4, 0.8)
    )
    quality = like.mean(axis=0)
    noise = draft.rng.standard_normal((5, draft.items)) * (quality.std() * draft.between(0.8, 2))
    place = np.argsort(np.argsort(-(quality + noise), axis=1), axis=1) + 1.0
    segment = draft.rng.integers(5, size=draft.population)
    exposure = draft.activity()[:, None] * (place ** -draft.between(0.7, 1.1))[segment]
    chances = rated(
        like, exposure, per_user=draft.between(18, 30), if_disliked=draft.between(0.3, 0.5)
    )
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
