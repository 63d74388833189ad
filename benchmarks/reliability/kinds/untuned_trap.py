"""Systems with default settings lose to popularity; tuned ones would win.

Who likes what: by one of four clusters, up to about .7 within and .1 outside, half of that for the
least popular items. What is exposed: popular items, to active users. Who rates: mostly those who
like. There are few ratings per user, so that a model with many factors learns their noise and one
with few factors learns the taste. Worlds with an even seed are audited with tuned systems, those
with an odd seed without tuning.
"""

from __future__ import annotations

import numpy as np

from unskew.auditing.self_test.ingredients import Draft, level_of, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld

NAME = "untuned-trap"


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    clusters = draft.clusters(4)
    popularity = draft.popularity(draft.between(0.55, 0.7))
    level = 0.5 + 0.5 * level_of(popularity)
    like = np.where(clusters.same, draft.between(0.6, 0.75), draft.between(0.08, 0.13)) * level
    exposure = np.outer(draft.activity(), popularity)
    chances = rated(like, exposure, per_user=draft.between(12, 16), if_disliked=0.1)
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        tune=seed % 2 == 0,
        users=draft.users,
    )


KIND = Kind(name=NAME, about=__doc__, make=make)
