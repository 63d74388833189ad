"""Worlds in which raters differ in generosity, and nearly nobody prefers any item."""

from __future__ import annotations

import numpy as np

from reliability.ingredients import MOST, Clusters, Draft, Rated, rated
from reliability.known_world import KnownWorld
from unskew.arrays import F64

FIFTHS = 5
"""Parts of the catalogue, of which a focused user keeps to one."""


def focused(draft: Draft) -> KnownWorld:
    """Users whose behaviour is predictable are generous raters; nobody prefers any item.

    Who likes what: about half of the users like .7 of anything, the others .35 of anything. What is
    exposed: to the generous ones a fifth of the catalogue each, to the others everything. Who
    rates: everyone who is exposed; all items have raters of both sorts in the same proportion.
    """
    return _focused(draft, generous=0.7, strict=0.35, focus=60.0)


def focused_mild(draft: Draft) -> KnownWorld:
    """As focused, with a weaker focus and a smaller difference of generosity.

    Who likes what: about half of the users like .6 of anything, the others .45. What is exposed: to
    the generous ones one fifth of the catalogue five times more than other items, to the others
    everything alike. Who rates: everyone who is exposed; all items have raters of both sorts in the
    same proportion.
    """
    return _focused(draft, generous=0.6, strict=0.45, focus=5.0)


def _focused(draft: Draft, generous: float, strict: float, focus: float) -> KnownWorld:
    fifths = draft.clusters(FIFTHS)
    is_focused = draft.rng.random(draft.population) < draft.between(0.4, 0.6)
    near = draft.between(-0.03, 0.03)
    like = np.repeat(np.where(is_focused, generous + near, strict + near)[:, None], draft.items, 1)
    exposure = np.outer(draft.activity(0.2), np.ones(draft.items))
    seen = np.where(fifths.same, focus, 1.0)
    seen *= draft.items / seen.sum(axis=1, keepdims=True)
    exposure *= np.where(is_focused[:, None], seen, 1.0)
    return draft.world(like, rated(like, exposure, per_user=draft.between(25, 50)))


def drift(draft: Draft) -> KnownWorld:
    """Everybody grows more generous over time, alike for all items; items come out over time.

    Who likes what: from about .25 of anything at first to about .65 of anything at last. What is
    exposed: items that are out, popular ones more, the newest most. Who rates: everyone who is
    exposed. Users come at random moments and stay for a twentieth of the span.
    """
    arrival = draft.rng.random(draft.population)
    low, high = draft.between(0.2, 0.3), draft.between(0.55, 0.7)
    like = np.repeat((low + (high - low) * arrival)[:, None], draft.items, axis=1)
    released = np.maximum(draft.rng.uniform(-0.6, 0.95, draft.items), 0.0)
    age = arrival[:, None] - released
    fresh = np.exp(-np.maximum(age, 0.0) / draft.between(0.1, 0.3))
    exposure = draft.exposure(0.5, 0.8) * np.where(age >= 0, 0.2 + fresh, 0.0)
    chances = rated(like, exposure, per_user=draft.between(20, 40))
    return draft.world(like, chances, arrival=arrival, released=released)


def two_markets(draft: Draft) -> KnownWorld:
    """Two markets with catalogues of their own, one more active and more generous; no taste.

    Who likes what: users of one market .6 of anything, of the other .35 of anything. What is
    exposed: the items of the user's own market, popular ones more. Who rates: everyone who is
    exposed; users of the generous market rate about twice as much.
    """
    market = draft.clusters(2)
    generous = market.user == 0
    like = np.repeat(
        np.where(generous, draft.between(0.55, 0.65), draft.between(0.3, 0.4))[:, None],
        draft.items,
        axis=1,
    )
    exposure = draft.exposure(0.5, 0.9) * np.where(market.same, 1.0, 0.0)
    exposure *= np.where(generous, draft.between(1.5, 2.5), 1.0)[:, None]
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 40)))


def tail(draft: Draft) -> KnownWorld:
    """Taste only on items that hardly anybody rates; all others are liked alike.

    Who likes what: of the tail, the least popular two fifths of the items, about .7 within a
    cluster and .05 outside; of the others about .35. What is exposed: popular items, to active
    users; an item of the tail gets two to four ratings on average. Who rates: everyone who is
    exposed.
    """
    popularity = draft.popularity(draft.between(0.8, 1.1))
    is_tail = popularity < np.quantile(popularity, 0.4)
    taste = draft.cluster_taste(draft.clusters())
    like = np.where(is_tail, taste, draft.between(0.3, 0.4))
    chances = rated(like, np.outer(draft.activity(), popularity), per_user=draft.between(20, 35))
    expected = chances.if_liked.mean(axis=0) * draft.users
    share = np.where(is_tail, draft.between(2, 4) / expected, 1.0)
    return draft.world(like, Rated(*(np.minimum(one * share, MOST) for one in chances)))


def display_popular(draft: Draft) -> KnownWorld:
    """Popularity is display: what is shown most is no better; taste is by cluster.

    Who likes what: about .65 within a cluster, about .3 outside, and by a quality that has nothing
    to do with popularity. What is exposed: items by a power law, whatever their quality. Who rates:
    everyone who is exposed.
    """
    return _popular(draft, by_quality=0.0)


def quality_popular(draft: Draft) -> KnownWorld:
    """Popularity is quality: the best items are known by most; taste is by cluster.

    Who likes what: about .65 within a cluster, about .3 outside, and by quality. What is exposed:
    items by a power law in the order of their quality. Who rates: everyone who is exposed.
    """
    return _popular(draft, by_quality=1.0)


def mixed_popular(draft: Draft) -> KnownWorld:
    """Popularity is partly quality and partly display; taste is by cluster.

    Who likes what: about .65 within a cluster, about .3 outside, and by quality. What is exposed:
    items by a power law, in an order of which quality decides a share that is drawn. Who rates:
    everyone who is exposed.
    """
    return _popular(draft, by_quality=draft.between(0.3, 0.7))


def _popular(draft: Draft, by_quality: float) -> KnownWorld:
    """Return a world whose popularity follows quality with a weight from 0 to 1."""
    quality = draft.rng.standard_normal(draft.items)
    noise = draft.rng.standard_normal(draft.items)
    order = np.argsort(np.argsort(-(by_quality * quality + (1 - by_quality) * noise)))
    popularity: F64 = (order + 1.0) ** -draft.between(0.8, 1.1)
    odds = np.log(draft.between(0.45, 0.55)) + draft.between(0.5, 0.9) * quality
    odds = odds + np.where(draft.clusters().same, draft.between(1.0, 1.8), -0.2)
    like = 1 / (1 + np.exp(-odds))
    exposure = np.outer(draft.activity(), popularity)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 35)))


# Easy ones: whoever looks sees which systems are better


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
    clusters: Clusters = draft.clusters(FIFTHS)
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
