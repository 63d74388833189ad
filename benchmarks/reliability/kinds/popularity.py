"""Worlds that differ in why items are popular, and in what that says of them."""

from __future__ import annotations

import numpy as np

from reliability.ingredients import MOST, Draft, Rated, level_of, rated
from reliability.known_world import KnownWorld
from unskew.arrays import F64


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


def half_quality(draft: Draft) -> KnownWorld:
    """Popularity is quality for one half of the users, and nothing to the other half.

    Who likes what: one half of the users popular items, from about .1 of the least to about .65 of
    the most popular ones; each of the other half about .7 within a cluster and about .05 outside.
    What is exposed: popular items, to active users of both halves. Who rates: everyone who is
    exposed.
    """
    follows = (draft.rng.random(draft.population) < 0.5)[:, None]
    popularity = draft.popularity(draft.between(0.8, 1.1))
    quality = draft.between(0.05, 0.15) + draft.between(0.5, 0.6) * level_of(popularity)
    like = np.where(follows, quality, draft.cluster_taste(draft.clusters()))
    exposure = np.outer(draft.activity(), popularity)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def price(draft: Draft) -> KnownWorld:
    """Cheap items are met most, and dear ones are a little better.

    Who likes what: by six factors of taste and by quality, a third of which goes with the price.
    What is exposed: the cheaper an item, the more, but for well-off users, about a fifth, who meet
    cheap and dear items alike. Who rates: a disliked item is rated about .5 times as often as a
    liked one.
    """
    cost = draft.rng.permutation(np.linspace(0, 1, draft.items))
    taste = draft.factor_taste(
        draft.between(0.3, 0.4), strength=draft.between(0.6, 1.2), quality=0.4
    )
    odds = taste / (1 - taste) * np.exp(draft.between(0.4, 1.0) * (cost - 0.5))
    like = odds / (1 + odds)
    well_off = draft.rng.random(draft.population) < draft.between(0.15, 0.25)
    steepness = np.where(well_off, 0.0, draft.between(2.5, 4.0))
    exposure = np.exp(-np.outer(steepness, cost))
    exposure *= draft.rng.lognormal(0.0, 0.4, draft.items)
    exposure *= (draft.activity() / exposure.sum(axis=1))[:, None]
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.4, 0.6)
    )
    return draft.world(like, chances)


def position_quality(draft: Draft) -> KnownWorld:
    """One list for all, ordered by quality; users see the top of it.

    Who likes what: by quality, and by six factors of taste. What is exposed: items by their place
    in the list, with a chance that falls with the place to the power of about 1; the list is
    ordered by quality, with a little noise. Who rates: a disliked item is rated about .4 times as
    often as a liked one.
    """
    like = draft.factor_taste(
        draft.between(0.3, 0.4), strength=draft.between(0.5, 0.9), quality=draft.between(0.7, 1.1)
    )
    quality = like.mean(axis=0)
    noise = draft.rng.standard_normal(draft.items) * quality.std() * draft.between(0.1, 0.4)
    rank = np.argsort(np.argsort(-(quality + noise))) + 1.0
    exposure = np.outer(draft.activity(), rank ** -draft.between(0.7, 1.1))
    chances = rated(
        like, exposure, per_user=draft.between(18, 30), if_disliked=draft.between(0.3, 0.5)
    )
    return draft.world(like, chances)


def familiar_liked(draft: Draft) -> KnownWorld:
    """Users like what they know better than what they do not, and rate what they know.

    Who likes what: by six factors of taste, about .25 on average, and what they know about .25
    more. What is exposed: a user knows an item the more probably, the more popular it is, whatever
    its quality; what a user does not know is not exposed. Who rates: everyone who knows an item,
    about half of the time. Recommended items that are not known yet are liked less than ratings
    make believe, for every system. Being shown an item makes it known, and so changes what people
    say of it: that condition does not hold here.
    """
    taste = draft.factor_taste(0.25, strength=draft.between(0.8, 1.2), quality=0.4)
    known = rated(taste, draft.exposure(0.8, 1.1), per_user=draft.between(45, 60)).if_liked
    is_known = draft.rng.random(draft.shape) < known
    like = np.where(is_known, np.minimum(taste + draft.between(0.2, 0.3), 0.95), taste)
    chance = np.where(is_known, draft.between(0.4, 0.6), 0.0)
    broken = frozenset({"display-sways-ratings"})
    return draft.world(like, Rated(chance, chance), known=is_known, broken=broken)


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
