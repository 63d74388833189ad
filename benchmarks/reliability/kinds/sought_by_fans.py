"""Niche items are found by those who like them; what is popular is shown to all (adversarial).

Who likes what: each item has fans, about a fifth of the users, who like it about .75 of the time,
the others about .2; no item is better than another. What is exposed: popular items to active users;
an item that is not popular is sought by its fans, about ten times as often as by others. Who rates:
everyone who knows an item. Ratings of niche items look better than those of popular ones, because
fans give them: display changes who rates.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "sought-by-fans"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    fan = draft.rng.random(draft.shape) < draft.between(0.15, 0.25)
    like = np.where(fan, draft.between(0.65, 0.8), draft.between(0.15, 0.25))
    popularity = draft.popularity(draft.between(0.8, 1.1))
    niche = popularity < np.quantile(popularity, 0.7)
    seeking = np.where(niche & fan, draft.between(8, 12), 1.0)
    exposure = np.outer(draft.activity(), popularity) * seeking
    chances = rated(like, exposure, per_user=draft.between(18, 28), if_disliked=1.0)
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
