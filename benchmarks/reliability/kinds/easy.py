"""Easy worlds: whoever looks at them sees which systems are better."""

from __future__ import annotations

import numpy as np

from reliability.ingredients import Clusters, Draft, rated
from reliability.known_world import KnownWorld


def strong_taste_random(draft: Draft) -> KnownWorld:
    """Strong taste, and everything is exposed alike.

    Who likes what: about .85 within one of five clusters, about .1 outside. What is exposed:
    everything alike. Who rates: everyone who is exposed.
    """
    return _easy(draft, popular=False)


def strong_taste_popular(draft: Draft) -> KnownWorld:
    """Strong taste, and popular items are exposed more.

    Who likes what: about .85 within one of five clusters, about .1 outside. What is exposed:
    popular items, to active users. Who rates: everyone who is exposed.
    """
    return _easy(draft, popular=True)


def strong_taste_selection(draft: Draft) -> KnownWorld:
    """As strong taste with random exposure; people rate mostly what they like.

    Who likes what: about .85 within one of five clusters, about .1 outside. What is exposed:
    everything alike. Who rates: a disliked item is rated about .2 times as often as a liked one.
    """
    return _easy(draft, popular=False, if_disliked=0.2)


def strong_taste_popular_selection(draft: Draft) -> KnownWorld:
    """As strong taste with popular exposure; people rate mostly what they like.

    Who likes what: about .85 within one of five clusters, about .1 outside. What is exposed:
    popular items, to active users. Who rates: a disliked item is rated about .2 times as often as a
    liked one.
    """
    return _easy(draft, popular=True, if_disliked=0.2)


def _easy(draft: Draft, *, popular: bool, if_disliked: float = 1.0) -> KnownWorld:
    clusters: Clusters = draft.clusters(5)
    like = np.where(clusters.same, draft.between(0.8, 0.9), draft.between(0.06, 0.12))
    exposure = draft.exposure(0.5, 0.8)
    if not popular:
        exposure = np.outer(draft.activity(0.3), np.ones(draft.items))
    per_user = draft.between(30, 50)
    return draft.world(like, rated(like, exposure, per_user=per_user, if_disliked=if_disliked))


def clear_quality(draft: Draft) -> KnownWorld:
    """Some items are clearly better for everyone, and known no more than others.

    Who likes what: by quality, from about .1 for the worst to about .8 for the best. What is
    exposed: popular items, whatever their quality, to active users. Who rates: everyone who is
    exposed.
    """
    quality = draft.rng.permutation(np.linspace(0.1, draft.between(0.75, 0.85), draft.items))
    like = np.repeat(quality[None, :], draft.population, axis=0)
    exposure = draft.exposure(0.3, 0.6)
    return draft.world(like, rated(like, exposure, per_user=draft.between(25, 45)))
