"""Nobody has any taste; who rates what has exactly the form of Rasch's model.

Who likes what: everyone everything, with the same chance of about .3. What is exposed: with odds
that are the product of the user's activity and the item's popularity. Who rates: everyone who is
exposed.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rasch
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "rasch"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    like = np.full(draft.shape, draft.between(0.22, 0.38))
    spread = draft.between(1.0, 1.6)
    odds = np.outer(draft.activity(), np.exp(spread * draft.rng.standard_normal(draft.items)))
    chances = rasch(odds, per_user=draft.between(20, 32))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
