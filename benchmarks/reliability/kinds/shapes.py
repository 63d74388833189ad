"""Worlds whose data have another shape: dense, sparse, two-valued, in series or in seasons."""

from __future__ import annotations

import numpy as np

from reliability.ingredients import Draft, Rated, rated
from reliability.known_world import KnownWorld

COUNTRIES = 4
SERIES = 5
"""Parts of a series, but for the last one, which may have fewer."""
YEARS = 3
"""How long the span of a world with times is."""


def dense_small(draft: Draft) -> KnownWorld:
    """A small data set in which every user has rated a third of the catalogue.

    Who likes what: by six factors of taste and by quality. What is exposed: everything, popular
    items a little more, to about 120 users and 90 items. Who rates: a disliked item is rated about
    .6 times as often as a liked one.
    """
    like = draft.factor_taste(
        draft.between(0.3, 0.4), strength=draft.between(0.8, 1.4), quality=draft.between(0.3, 0.6)
    )
    exposure = np.outer(draft.activity(0.3), draft.popularity(draft.between(0.3, 0.5)))
    chances = rated(like, exposure, per_user=draft.items / 3, if_disliked=draft.between(0.5, 0.7))
    return draft.world(like, chances)


def very_sparse(draft: Draft) -> KnownWorld:
    """Hardly any ratings: about six of a user, and a dozen of an item.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
    all users about alike. Who rates: a disliked item is rated about .5 times as often as a liked
    one.
    """
    like = draft.cluster_taste(draft.clusters())
    exposure = np.outer(draft.activity(0.2), draft.popularity(draft.between(0.6, 0.9)))
    chances = rated(
        like, exposure, per_user=draft.between(5.5, 7), if_disliked=draft.between(0.4, 0.6)
    )
    return draft.world(like, chances)


def few_items(draft: Draft) -> KnownWorld:
    """Fifty items and many users.

    Who likes what: by six factors of taste and by quality. What is exposed: popular items, to
    active users. Who rates: everyone who is exposed, about ten items.
    """
    like = draft.factor_taste(
        draft.between(0.3, 0.4), strength=draft.between(0.8, 1.4), quality=draft.between(0.3, 0.6)
    )
    exposure = draft.exposure(0.5, 0.8)
    return draft.world(like, rated(like, exposure, per_user=draft.between(8, 12)))


def thumbs(draft: Draft) -> KnownWorld:
    """Nothing but thumbs up or down is recorded, and mostly thumbs up.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
    active users. Who rates: a disliked item is rated about .15 times as often as a liked one; every
    rating is the lowest or the highest star.
    """
    like = draft.cluster_taste(draft.clusters())
    chances = rated(
        like,
        draft.exposure(0.6, 0.9),
        per_user=draft.between(16, 26),
        if_disliked=draft.between(0.1, 0.2),
    )
    return draft.world(like, chances, extreme=np.ones(draft.population, np.bool_))


def series(draft: Draft) -> KnownWorld:
    """Items come in series; who starts one rates all of it, liked or not.

    Who likes what: by quality, which all parts of a series share in half, and by no taste. What is
    exposed: whole series, popular ones to more users; nothing of a series that a user has not
    started. Who rates: nearly everyone who has started a series, all of its parts.
    """
    number = -(-draft.items // SERIES)
    part_of = np.arange(draft.items) // SERIES
    quality = draft.rng.standard_normal(number)[part_of] + draft.rng.standard_normal(draft.items)
    odds = np.log(draft.between(0.4, 0.7)) + draft.between(0.2, 0.5) * quality
    like = np.tile(1 / (1 + np.exp(-odds)), (draft.population, 1))
    popularity = draft.rng.permutation(np.arange(1.0, number + 1) ** -draft.between(0.5, 0.8))
    shown = np.outer(draft.activity(), popularity)
    wanted = draft.between(20, 32) / (SERIES * 0.9)
    start = rated(np.ones_like(shown), shown, per_user=wanted).if_liked
    has_started = draft.rng.random(start.shape) < start
    # Nobody is left without a series.
    has_started[np.arange(draft.population), draft.rng.integers(number, size=draft.population)] = 1
    chance = np.where(has_started[:, part_of], 0.9, 0.0)
    return draft.world(like, Rated(chance, chance))


def seasonal(draft: Draft) -> KnownWorld:
    """Items have their season, in which they are met, and liked, more.

    Who likes what: by weak taste and by quality, and more if the item is in season when the user
    comes. What is exposed: items in season, popular ones more. Who rates: a disliked item is rated
    about .5 times as often as a liked one. Users come at random moments of three years and stay for
    a twentieth of the span; ratings have times.
    """
    arrival, peak = draft.rng.random(draft.population), draft.rng.random(draft.items)
    phase = 2 * np.pi * (YEARS * arrival[:, None] - peak)
    in_season = np.exp(draft.between(1.5, 3.0) * (np.cos(phase) - 1))
    like = draft.factor_taste(
        draft.between(0.2, 0.3), strength=draft.between(0.5, 0.9), quality=0.4
    )
    like += (1 - like) * draft.between(0.2, 0.4) * in_season
    exposure = draft.exposure(0.5, 0.8) * (0.1 + in_season)
    chances = rated(
        like, exposure, per_user=draft.between(18, 30), if_disliked=draft.between(0.4, 0.6)
    )
    return draft.world(like, chances, arrival=arrival)


def countries(draft: Draft) -> KnownWorld:
    """Each country has a catalogue of its own, and users there differ in taste.

    Who likes what: by six factors of taste and by quality, whatever the country. What is exposed:
    items of the user's own country, about fifty times as much as others, popular ones more. Who
    rates: a disliked item is rated about .4 times as often as a liked one.
    """
    like = draft.factor_taste(
        draft.between(0.25, 0.35), strength=draft.between(1.0, 1.6), quality=0.4
    )
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(draft.clusters(COUNTRIES).same, 50.0, 1.0)
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.3, 0.5)
    )
    return draft.world(like, chances)
