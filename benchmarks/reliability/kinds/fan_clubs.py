"""Niche items are found by clubs of fans, and a system may learn who is in which (adversarial).

Who likes what: each item has fans, who like it about .75 of the time, the others about .15: most
users of one of four clubs, by the seed from half of them to nearly all, and a few others. No item
is better than another. What is exposed: popular items to active users; an item that is not popular
is sought by its fans, about six times as often as by others. Who rates: everyone who knows an item.
Ratings of niche items look better than those of popular ones, because fans give them: display
changes who rates. The systems are those of `rating-predictor`.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld
from unskew.auditing.self_test.systems import RATING_PREDICTORS

NAME = "fan-clubs"
CLUBS = 4


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    chance = np.where(draft.clusters(CLUBS).same, draft.between(0.5, 0.95), 0.08)
    fan = draft.rng.random(draft.shape) < chance
    like = np.where(fan, draft.between(0.65, 0.85), draft.between(0.1, 0.2))
    popularity = draft.popularity(draft.between(0.8, 1.1))
    niche = popularity < np.quantile(popularity, 0.7)
    seeking = np.where(niche & fan, draft.between(4, 8), 1.0)
    exposure = np.outer(draft.activity(), popularity) * seeking
    chances = rated(like, exposure, per_user=draft.between(38, 54))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        broken=frozenset({"display-changes-who-rates"}),
        users=draft.users,
        systems=RATING_PREDICTORS,
        tune=False,
    )


KIND = Kind(name=NAME, about=__doc__, make=make, adversarial=True)
