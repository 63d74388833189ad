"""A system that predicts ratings is behind in score, and its recommendations are liked more.

Who likes what: by six factors of users and items, and a little by the quality of items. What is
exposed: popular items, whatever their quality, to active users. Who rates: everyone who is exposed.
The systems are popularity, a smoothed average, and matrix factorisation of the ratings.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld
from unskew.auditing.self_test.systems import RATING_PREDICTORS

NAME = "rating-predictor"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    like = draft.factor_taste(
        draft.between(0.35, 0.5), draft.between(1.6, 2.6), draft.between(0.2, 0.6)
    )
    exposure = np.outer(draft.activity(), draft.popularity(draft.between(0.9, 1.2)))
    chances = rated(like, exposure, per_user=draft.between(38, 54))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
        systems=RATING_PREDICTORS,
        tune=False,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
