"""Worlds in which users differ in taste, and nobody but their own activity shows them items."""

from __future__ import annotations

import numpy as np

from reliability.ingredients import Draft, level_of, rated
from reliability.known_world import KnownWorld


def taste(draft: Draft) -> KnownWorld:
    """Taste alone: liking by cluster, everything exposed, mostly likes rated.

    Users and items belong to eight clusters. Who likes what: about .7 within a cluster, about .05
    outside. What is exposed: everything alike. Who rates: those who like; a disliked item is rated
    .02 times as often.
    """
    like = draft.cluster_taste(draft.clusters())
    exposure = np.outer(draft.activity(0.3), np.ones(draft.items))
    return draft.world(
        like, rated(like, exposure, per_user=draft.between(19, 30), if_disliked=0.02)
    )


def popularity_taste(draft: Draft) -> KnownWorld:
    """Popularity and taste that have nothing to do with each other.

    Who likes what: about .7 within a cluster, about .05 outside, whatever the popularity. What is
    exposed: popular items, to active users. Who rates: everyone who is exposed.
    """
    like = draft.cluster_taste(draft.clusters())
    exposure = draft.exposure(0.8, 1.1)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def popularity_taste_selection(draft: Draft) -> KnownWorld:
    """Popularity and taste, and those who like an item rate it more often.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
    active users. Who rates: a disliked item is rated about .2 times as often as a liked one.
    """
    like = draft.cluster_taste(draft.clusters())
    exposure = draft.exposure(0.8, 1.1)
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.15, 0.3)
    )
    return draft.world(like, chances)


def popularity_inverted(draft: Draft) -> KnownWorld:
    """There is taste, and popular items are liked less by everyone.

    Who likes what: by cluster, about .8 within and .2 outside for the least popular items, falling
    to a third of that for the most popular ones. What is exposed: popular items, to active users.
    Who rates: a disliked item is rated about .5 times as often as a liked one.
    """
    clusters = draft.clusters()
    popularity = draft.popularity(draft.between(0.8, 1.1))
    level = 1 - draft.between(0.55, 0.75) * level_of(popularity)
    like = np.where(clusters.same, draft.between(0.7, 0.9), draft.between(0.15, 0.25)) * level
    exposure = np.outer(draft.activity(), popularity)
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.4, 0.6)
    )
    return draft.world(like, chances)


def untuned_trap(draft: Draft) -> KnownWorld:
    """Systems with default settings lose to popularity; tuned ones would win.

    Who likes what: by one of four clusters, up to about .7 within and .1 outside, half of that for
    the least popular items. What is exposed: popular items, to active users. Who rates: mostly
    those who like. There are few ratings per user, so that a model with many factors learns their
    noise and one with few factors learns the taste. Worlds with an even seed are audited with tuned
    systems, those with an odd seed without tuning.
    """
    clusters = draft.clusters(4)
    popularity = draft.popularity(draft.between(0.55, 0.7))
    level = 0.5 + 0.5 * level_of(popularity)
    like = np.where(clusters.same, draft.between(0.6, 0.75), draft.between(0.08, 0.13)) * level
    exposure = np.outer(draft.activity(), popularity)
    chances = rated(like, exposure, per_user=draft.between(12, 16), if_disliked=0.1)
    return draft.world(like, chances, tune=draft.seed % 2 == 0)


def tiny(draft: Draft) -> KnownWorld:
    """A tiny data set: 100 items and about 100 users.

    Who likes what: about .7 within one of four clusters, about .1 outside. What is exposed: popular
    items, to active users. Who rates: a disliked item is rated about .2 times as often as a liked
    one.
    """
    clusters = draft.clusters(4)
    like = np.where(clusters.same, draft.between(0.55, 0.8), draft.between(0.05, 0.15))
    exposure = draft.exposure(0.5, 0.9)
    if_disliked = draft.between(0.15, 0.3)
    return draft.world(
        like, rated(like, exposure, per_user=draft.between(10, 16), if_disliked=if_disliked)
    )


def implicit_only(draft: Draft) -> KnownWorld:
    """Only positive events are recorded: what people like and use, never what they dislike.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
    active users. Who rates: those who like what they are exposed to leave an event without a value;
    a disliked item leaves nothing.
    """
    like = draft.cluster_taste(draft.clusters())
    exposure = draft.exposure(0.8, 1.1)
    chances = rated(like, exposure, per_user=draft.between(12, 20), if_disliked=0.0)
    return draft.world(like, chances, implicit=True)


def cold_heavy(draft: Draft) -> KnownWorld:
    """Users come, rate and go: most users after any cut in time are new.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
    active users. Who rates: a disliked item is rated about .2 times as often as a liked one. Each
    user comes at a random moment and rates within a twentieth of the whole span, so that most users
    of a test part that is cut by time have no training ratings.
    """
    like = draft.cluster_taste(draft.clusters())
    exposure = draft.exposure(0.8, 1.1)
    if_disliked = draft.between(0.15, 0.3)
    chances = rated(like, exposure, per_user=draft.between(20, 32), if_disliked=if_disliked)
    return draft.world(like, chances, arrival=draft.rng.random(draft.population))


def trend(draft: Draft) -> KnownWorld:
    """Items come out over time; new ones are met more, and liked more, than they are later.

    Who likes what: by weak taste and quality, and more if the item is new when the user comes. What
    is exposed: items that are out, the new ones most, popular ones more. Who rates: a disliked item
    is rated about .4 times as often as a liked one. Users come at random moments and stay for a
    twentieth of the span; ratings have times.
    """
    arrival = draft.rng.random(draft.population)
    released = np.maximum(draft.rng.uniform(-0.6, 0.95, draft.items), 0.0)
    age = arrival[:, None] - released
    fresh = np.exp(-np.maximum(age, 0.0) / draft.between(0.15, 0.3))
    like = draft.factor_taste(
        draft.between(0.2, 0.3), strength=draft.between(0.6, 1.0), quality=0.4
    )
    like += (1 - like) * draft.between(0.2, 0.4) * fresh
    exposure = draft.exposure(0.5, 0.8)
    exposure *= (age >= 0) * (0.1 + fresh)
    chances = rated(
        like, exposure, per_user=draft.between(16, 26), if_disliked=draft.between(0.3, 0.5)
    )
    return draft.world(like, chances, arrival=arrival, released=released)


def two_populations(draft: Draft) -> KnownWorld:
    """Generous users rate much, picky users rate little.

    Who likes what: by taste and quality; about a third of the users are generous and like most of
    what they meet, the others are picky. What is exposed: popular items, about four times more to
    generous users, who also look further down than picky ones. Who rates: a disliked item is rated
    about .4 times as often as a liked one, by everyone alike.
    """
    generous = draft.rng.random(draft.population) < draft.between(0.25, 0.4)
    chance = draft.factor_taste(0.5, strength=draft.between(0.8, 1.2), quality=0.5)
    odds = chance / (1 - chance) * np.where(generous, 2.0, 0.2)[:, None]
    like = odds / (1 + odds)
    popularity = draft.popularity(1.0)
    power = np.where(generous, draft.between(0.5, 0.7), draft.between(0.9, 1.1))
    exposure = np.exp(np.outer(power, np.log(popularity)))
    exposure *= (draft.activity(0.4) * np.where(generous, 4, 1) / exposure.sum(axis=1))[:, None]
    chances = rated(
        like, exposure, per_user=draft.between(16, 28), if_disliked=draft.between(0.3, 0.5)
    )
    return draft.world(like, chances)


def sought_by_fans(draft: Draft) -> KnownWorld:
    """Niche items are found by those who like them; what is popular is shown to all (adversarial).

    Who likes what: each item has fans, about a fifth of the users, who like it about .75 of the
    time, the others about .2; no item is better than another. What is exposed: popular items to
    active users; an item that is not popular is sought by its fans, about ten times as often as by
    others. Who rates: everyone who knows an item. Ratings of niche items look better than those of
    popular ones, because fans give them: display changes who rates.
    """
    fan = draft.rng.random(draft.shape) < draft.between(0.15, 0.25)
    like = np.where(fan, draft.between(0.65, 0.8), draft.between(0.15, 0.25))
    popularity = draft.popularity(draft.between(0.8, 1.1))
    niche = popularity < np.quantile(popularity, 0.7)
    seeking = np.where(niche & fan, draft.between(8, 12), 1.0)
    exposure = np.outer(draft.activity(), popularity) * seeking
    chances = rated(like, exposure, per_user=draft.between(18, 28))
    return draft.world(like, chances, broken=frozenset({"display-changes-who-rates"}))
