"""Worlds in which nobody has a taste of their own: everyone likes the same items alike."""

from __future__ import annotations

import numpy as np

from reliability import ingredients
from reliability.ingredients import Draft, level_of, rated
from reliability.known_world import KnownWorld


def null(draft: Draft) -> KnownWorld:
    """Nobody has any taste, and some items are popular.

    Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
    items, to active users. Who rates: everyone who is exposed. No system is better than another.
    """
    like = draft.equal_liking()
    exposure = draft.exposure(0.8, 1.1)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def null_selection(draft: Draft) -> KnownWorld:
    """Nobody has any taste, some items are popular, and likes are rated more often.

    Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
    items, to active users. Who rates: a disliked item is rated about .2 times as often as a liked
    one.
    """
    like = draft.equal_liking()
    exposure = draft.exposure(0.8, 1.1)
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.15, 0.3)
    )
    return draft.world(like, chances)


def rasch(draft: Draft) -> KnownWorld:
    """Nobody has any taste; who rates what has exactly the form of Rasch's model.

    Who likes what: everyone everything, with the same chance of about .3. What is exposed: with
    odds that are the product of the user's activity and the item's popularity. Who rates: everyone
    who is exposed.
    """
    like = draft.equal_liking()
    spread = draft.between(1.0, 1.6)
    odds = np.outer(draft.activity(), np.exp(spread * draft.rng.standard_normal(draft.items)))
    return draft.world(like, ingredients.rasch(odds, per_user=draft.between(20, 32)))


def niche(draft: Draft) -> KnownWorld:
    """Nobody has any taste; some users meet what is popular, others what is not.

    Who likes what: everyone everything, with the same chance of about .3. What is exposed: items by
    their popularity to a power that differs by user, from the niche (-.3) to the mainstream (1.5).
    Who rates: everyone who is exposed.
    """
    like = draft.equal_liking()
    popularity = draft.popularity(draft.between(0.8, 1.1))
    power = draft.rng.uniform(-0.3, 1.5, draft.population)
    exposure = np.exp(np.outer(power, np.log(popularity)))
    exposure *= (draft.activity() / exposure.sum(axis=1))[:, None]
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def quality(draft: Draft) -> KnownWorld:
    """Better items are more popular; nobody has a taste of their own.

    Who likes what: an item is liked with a chance that rises with its popularity, from about .15 to
    about .9, by everyone alike. What is exposed: popular items, to active users. Who rates:
    everyone who is exposed.
    """
    popularity = draft.popularity(draft.between(0.8, 1.1))
    low, high = draft.between(0.1, 0.2), draft.between(0.8, 0.95)
    like = np.tile(low + (high - low) * level_of(popularity), (draft.population, 1))
    exposure = np.outer(draft.activity(), popularity)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def inverse(draft: Draft) -> KnownWorld:
    """Popular items are liked less; nobody has a taste of their own.

    Who likes what: an item is liked with a chance that falls with its popularity, from about .6 to
    about .15, by everyone alike. What is exposed: popular items, to active users. Who rates:
    everyone who is exposed.
    """
    popularity = draft.popularity(draft.between(0.8, 1.1))
    low, high = draft.between(0.1, 0.2), draft.between(0.5, 0.7)
    like = np.tile(high - (high - low) * level_of(popularity), (draft.population, 1))
    exposure = np.outer(draft.activity(), popularity)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def middling_best(draft: Draft) -> KnownWorld:
    """The best items are neither popular nor unknown; nobody has a taste of their own.

    Who likes what: an item is liked by everyone alike, most at middling popularity (about .6) and
    less towards both ends (about .2). What is exposed: popular items, to active users. Who rates: a
    disliked item is rated about .6 times as often as a liked one.
    """
    popularity = draft.popularity(draft.between(0.8, 1.1))
    middle, width = draft.between(0.35, 0.6), draft.between(0.12, 0.2)
    hill = np.exp(-0.5 * ((level_of(popularity) - middle) / width) ** 2)
    low, high = draft.between(0.15, 0.25), draft.between(0.5, 0.7)
    like = np.tile(low + (high - low) * hill, (draft.population, 1))
    exposure = np.outer(draft.activity(), popularity)
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.5, 0.7)
    )
    return draft.world(like, chances)
