"""Worlds in which raters differ: in generosity, in what they rate, in how they give stars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reliability.ingredients import Draft, level_of, rated, scaled
from reliability.known_world import DISLIKED_STARS, INDEPENDENT, LIKED_STARS, KnownWorld

FIFTHS = 5
"""Parts of the catalogue, of which a focused user keeps to one."""
HOUSEHOLD = 5
"""Accounts of a household."""


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


def generous_newcomers(draft: Draft) -> KnownWorld:
    """Newcomers like nearly everything and rate a few popular items; others are choosy.

    Who likes what: by taste and quality; the odds of newcomers, about a third of the users, are
    about five times those of others. What is exposed: popular items, to newcomers few others. Who
    rates: everyone who is exposed; newcomers come in the last third of the span and rate about a
    third as much.
    """
    newcomer = draft.rng.random(draft.population) < draft.between(0.25, 0.4)
    start = np.where(newcomer, 0.67, 0.0)
    arrival = start + (1 - start) * draft.rng.random(draft.population)
    chance = draft.factor_taste(0.3, strength=draft.between(0.8, 1.2), quality=0.4)
    odds = chance / (1 - chance) * np.where(newcomer, draft.between(4, 6), 1.0)[:, None]
    power = np.where(newcomer, 1.4, 0.8)
    exposure = np.exp(np.outer(power, np.log(draft.popularity(1.0))))
    exposure *= (draft.activity(0.4) * np.where(newcomer, 0.3, 1) / exposure.sum(axis=1))[:, None]
    like = odds / (1 + odds)
    chances = rated(like, exposure, per_user=draft.between(18, 30))
    return draft.world(like, chances, arrival=arrival)


def complainers(draft: Draft) -> KnownWorld:
    """Some users rate only what they dislike, others mostly what they like.

    Who likes what: by six factors of taste and by quality, complainers like others. What is
    exposed: popular items, to active users. Who rates: of what a complainer, about a third of the
    users, is exposed to, a liked item is rated about .1 times as often as a disliked one; with all
    others a disliked item is rated about .3 times as often as a liked one.
    """
    complains = (draft.rng.random(draft.population) < draft.between(0.25, 0.4))[:, None]
    like = draft.factor_taste(
        draft.between(0.35, 0.5), strength=draft.between(0.8, 1.4), quality=0.5
    )
    exposure = draft.exposure(0.6, 0.9)
    liked = exposure * np.where(complains, 0.1, 1.0)
    disliked = exposure * np.where(complains, 1.0, draft.between(0.2, 0.4))
    return draft.world(like, scaled(like, liked, disliked, per_user=draft.between(20, 32)))


def extremes(draft: Draft) -> KnownWorld:
    """Half of the users rate only what they feel strongly about, with one star or five.

    Who likes what: by six factors of strong taste and by quality. What is exposed: popular items,
    to active users. Who rates: half of the users everything that they are exposed to, with any
    star; the other half an item the more often, the farther their chance to like it is from one
    half, and with one star or five.
    """
    extreme = draft.rng.random(draft.population) < draft.between(0.4, 0.6)
    like = draft.factor_taste(
        draft.between(0.3, 0.4), strength=draft.between(1.4, 2.0), quality=0.4
    )
    certainty = np.maximum(2 * np.abs(like - 0.5), 0.05) ** 2
    exposure = draft.exposure(0.6, 0.9) * np.where(extreme[:, None], 2 * certainty, 1.0)
    chances = rated(like, exposure, per_user=draft.between(20, 32))
    return draft.world(like, chances, extreme=extreme)


def bots(draft: Draft) -> KnownWorld:
    """A few accounts rate a large part of the catalogue, and like nearly all of it.

    Who likes what: about .7 within a cluster, about .05 outside; a bot, one account in forty, .95
    of anything. What is exposed: popular items, to active users; to a bot everything alike, about
    eight times as much. Who rates: a disliked item is rated about .2 times as often as a liked one.
    """
    is_bot = draft.rng.permutation(draft.population) < draft.population // 40
    like = np.where(is_bot[:, None], 0.95, draft.cluster_taste(draft.clusters()))
    exposure = draft.exposure(0.8, 1.1)
    exposure[is_bot] = 8 * exposure.mean()
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.15, 0.3)
    )
    return draft.world(like, chances)


def fans_rate(draft: Draft) -> KnownWorld:
    """Everything is displayed at random, and fans alone care to rate.

    Who likes what: an item is made for one to four of eight clubs; their members, its fans, like it
    about .75 of the time, others about .15. Items with more clubs are better, and the average of
    their ratings is not. What is exposed: everything alike. Who rates: fans; others a fiftieth as
    often, whether they like the item or not.
    """
    clubs = draft.clusters()
    number = draft.rng.integers(1, 5, size=draft.items)
    has_club = draft.rng.random((8, draft.items)).argsort(axis=0) < number
    is_fan = has_club[clubs.user]
    like = np.where(is_fan, draft.between(0.7, 0.8), draft.between(0.1, 0.2))
    exposure = draft.activity(0.4)[:, None] * np.where(is_fan, 1.0, 0.02)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def heavy_and_light(draft: Draft) -> KnownWorld:
    """What serves heavy users well serves the light majority badly.

    Who likes what: of heavy users, about a third, each likes about .7 within a cluster and about
    .05 outside; light users like popular items, from about .1 of the least to about .65 of the most
    popular ones. What is exposed: popular items, to heavy users about five times as many, farther
    down. Who rates: everyone who is exposed.
    """
    heavy = (draft.rng.random(draft.population) < draft.between(0.25, 0.4))[:, None]
    popularity = draft.popularity(draft.between(0.8, 1.1))
    quality = draft.between(0.05, 0.15) + draft.between(0.5, 0.6) * level_of(popularity)
    like = np.where(heavy, draft.cluster_taste(draft.clusters()), quality)
    exposure = np.where(heavy, popularity**0.5, popularity)
    exposure /= exposure.sum(axis=1, keepdims=True)
    exposure *= draft.activity(0.3)[:, None] * np.where(heavy, 5.0, 1.0)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def households(draft: Draft) -> KnownWorld:
    """Adversarial: households of five accounts that have most of their ratings in common.

    Who likes what: about .7 within a cluster, about .05 outside, and all of a household the same.
    What is exposed: popular items, to active users. Who rates: a disliked item is rated about .2
    times as often as a liked one; accounts of a household share nine of ten opinions and ratings,
    so that there are a fifth as many independent users as accounts.
    """
    like = draft.cluster_taste(draft.clusters())
    chances = rated(
        like,
        draft.exposure(0.8, 1.1),
        per_user=draft.between(20, 32),
        if_disliked=draft.between(0.15, 0.3),
    )
    sized = replace(draft, users=draft.users - draft.users % HOUSEHOLD)
    return sized.world(like, chances, household=HOUSEHOLD, broken=frozenset({INDEPENDENT}))


def herding(draft: Draft) -> KnownWorld:
    """What users record is drawn towards the average of those who rated the item before.

    Who likes what: by taste and by quality. What is exposed: popular items, whatever their quality,
    to active users. Who rates: everyone who is exposed. The star that is recorded is the whole one
    nearest to .4 of the user's own and .6 of the average that stands beside the item, which is that
    of ten to forty earlier raters: right on average, with their luck in it.
    """
    like = draft.factor_taste(0.45, strength=draft.between(0.8, 1.2), quality=draft.between(0.6, 1))
    chances = rated(like, draft.exposure(0.8, 1.1), per_user=draft.between(20, 32))
    weight = chances.if_liked / chances.if_liked.sum(axis=0)
    earlier = int(draft.rng.integers(10, 41))
    liked = draft.rng.binomial(earlier, (like * weight).sum(axis=0)) / earlier
    crowd = liked * LIKED_STARS.mean() + (1 - liked) * DISLIKED_STARS.mean()
    return draft.world(like, chances, crowd=crowd)
