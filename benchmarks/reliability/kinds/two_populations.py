"""Generous users rate much, picky users rate little.

Who likes what: by taste and quality; about a third of the users are generous and like most of what
they meet, the others are picky. What is exposed: popular items, about four times more to generous
users, who also look further down than picky ones. Who rates: a disliked item is rated about .4
times as often as a liked one, by everyone alike.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "two-populations"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    generous = draft.rng.random(draft.population) < draft.between(0.25, 0.4)
    taste = draft.factor_taste(0.5, strength=draft.between(0.8, 1.2), quality=0.5)
    odds = taste / (1 - taste) * np.where(generous, 2.0, 0.2)[:, None]
    like = odds / (1 + odds)
    popularity = draft.popularity(1.0)
    power = np.where(generous, draft.between(0.5, 0.7), draft.between(0.9, 1.1))
    exposure = np.exp(np.outer(power, np.log(popularity)))
    exposure *= (draft.activity(0.4) * np.where(generous, 4, 1) / exposure.sum(axis=1))[:, None]
    chances = rated(
        like, exposure, per_user=draft.between(16, 28), if_disliked=draft.between(0.3, 0.5)
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
