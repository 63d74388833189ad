"""An actual earlier recommender, trained on a random log, decides most of what is exposed.

Who likes what: about .7 within a cluster, about .05 outside. What is exposed: four fifths of it is
what an item-based nearest-neighbour recommender chose for each user, trained on the likes of a
first log of randomly shown items; the rest is by popularity. Who rates: everyone who is exposed.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F32, F64, Mask
from unskew.auditing.self_test.ingredients import Draft, rated
from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.known_world import KnownWorld
from unskew.engine.threads import one_blas_thread

NAME = "earlier-recommender"
SHOWN = 20
"""Randomly shown items per user in the first log."""
CHOSEN = 60
"""Items that the earlier recommender chooses for each user."""


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    draft = Draft.of(NAME, seed)
    clusters = draft.clusters()
    like = np.where(clusters.same, draft.between(0.55, 0.8), draft.between(0.04, 0.1))
    by_popularity = draft.popularity(draft.between(0.5, 0.8))
    chosen = _recommended(like, draft.rng)
    exposure = (
        0.2 * by_popularity / by_popularity.sum() + 0.8 * chosen / chosen.sum(axis=1)[:, None]
    )
    exposure *= draft.activity()[:, None]
    chances = rated(like, exposure, per_user=draft.between(16, 26))
    return KnownWorld(
        kind=NAME,
        seed=seed,
        like=like,
        rated_if_liked=chances.if_liked,
        rated_if_disliked=chances.if_disliked,
        users=draft.users,
    )


def _recommended(like: F64, rng: np.random.Generator) -> Mask:
    """Return which items an item-based recommender chooses, trained on a random log of likes."""
    log: F32 = (rng.random(like.shape) < like * (SHOWN / like.shape[1])).astype(np.float32)
    length = np.sqrt(np.maximum(log.sum(axis=0), 1))
    with one_blas_thread():
        similarity = (log.T @ log) / np.outer(length, length)
        np.fill_diagonal(similarity, 0)
        score = log @ similarity
    # Users without likes in the log get items in an order drawn at random.
    score += 1e-4 * rng.random(score.shape, np.float32)
    least = np.partition(score, -CHOSEN, axis=1)[:, -CHOSEN]
    result: Mask = score >= least[:, None]
    return result


KIND = Kind(name=NAME, about=__doc__, make=make, where_better_is_visible=True)
