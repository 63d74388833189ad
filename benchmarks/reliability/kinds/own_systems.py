"""Worlds that bring the systems along that are audited in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reliability.ingredients import Draft, Rated, rated
from reliability.kinds import displayed, no_taste, tastes
from reliability.known_world import KnownWorld
from reliability.systems import LAUNCH, RATING_PREDICTORS, PartTrained, RandomOrder
from unskew.recommend.factors import PureSVD
from unskew.recommend.linear import EASE
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import ItemKNN, UserKNN
from unskew.recommend.simple import Popularity

CLUBS = 4
BASES = (
    ("taste", tastes.taste),
    ("pop+taste+sel", tastes.popularity_taste_selection),
    ("recsys=taste", displayed.recommended_taste),
    ("earlier-recommender", displayed.earlier_recommender),
    ("recsys", displayed.recommended),
    ("quality", no_taste.quality),
    ("inverse", no_taste.inverse),
    ("null", no_taste.null),
)
"""The kinds of worlds that `two_rankers` takes in turn."""


def equal_systems(draft: Draft) -> KnownWorld:
    """All systems are equal: chance alone tells them apart.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
    active users. Who rates: a disliked item is rated about .2 times as often as a liked one. The
    systems of a world are three random orders, or one algorithm trained on three random halves.
    """
    streams = tuple(enumerate("abc"))
    if draft.seed % 3 == 0:
        systems = {f"order-{letter}": RandomOrder(stream) for stream, letter in streams}
    else:
        algorithm = ItemKNN() if draft.seed % 3 == 1 else PureSVD(8)
        systems = {f"half-{letter}": PartTrained(algorithm, stream) for stream, letter in streams}
    return _with_systems(draft, systems)


def near_equal_systems(draft: Draft) -> KnownWorld:
    """Systems that are nearly equal: true differences of at most a few per cent.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items, to
    active users. Who rates: a disliked item is rated about .2 times as often as a liked one. The
    systems of a world are one algorithm with settings that lie close together.
    """
    if draft.seed % 3 == 0:
        systems = {f"item-knn-{k}": ItemKNN(k=k) for k in (20, 21, 22)}
    elif draft.seed % 3 == 1:
        systems = {f"user-knn-{k}": UserKNN(k=k) for k in (96, 100, 104)}
    else:
        systems = {f"puresvd-{factors}": PureSVD(factors) for factors in (8, 9, 10)}
    return _with_systems(draft, systems)


def _with_systems(draft: Draft, systems: dict[str, Algorithm]) -> KnownWorld:
    """Make a world of popularity, taste and selection for systems that are not tuned."""
    like = draft.cluster_taste(draft.clusters())
    exposure = draft.exposure(0.8, 1.1)
    if_disliked = draft.between(0.15, 0.3)
    chances = rated(like, exposure, per_user=draft.between(20, 32), if_disliked=if_disliked)
    return draft.world(like, chances, systems=systems, tune=False)


def rating_predictor(draft: Draft) -> KnownWorld:
    """A system that predicts ratings is behind in score, and its recommendations are liked more.

    Who likes what: by six factors of users and items, and a little by the quality of items. What is
    exposed: popular items, whatever their quality, to active users. Who rates: everyone who is
    exposed. The systems are popularity, a smoothed average, and matrix factorisation of the
    ratings.
    """
    like = draft.factor_taste(
        draft.between(0.35, 0.5), draft.between(1.6, 2.6), draft.between(0.2, 0.6)
    )
    exposure = draft.exposure(0.9, 1.2)
    chances = rated(like, exposure, per_user=draft.between(38, 54))
    return draft.world(like, chances, systems=RATING_PREDICTORS, tune=False)


def fan_clubs(draft: Draft) -> KnownWorld:
    """Niche items are found by clubs of fans, and a system may learn who is in which (adversarial).

    Who likes what: each item has fans, who like it about .75 of the time, the others about .15:
    most users of one of four clubs, by the seed from half of them to nearly all, and a few others.
    No item is better than another. What is exposed: popular items to active users; an item that is
    not popular is sought by its fans, about six times as often as by others. Who rates: everyone
    who knows an item. Ratings of niche items look better than those of popular ones, because fans
    give them: display changes who rates. The systems are those of `rating-predictor`.
    """
    chance = np.where(draft.clusters(CLUBS).same, draft.between(0.5, 0.95), 0.08)
    fan = draft.rng.random(draft.shape) < chance
    like = np.where(fan, draft.between(0.65, 0.85), draft.between(0.1, 0.2))
    popularity = draft.popularity(draft.between(0.8, 1.1))
    niche = popularity < np.quantile(popularity, 0.7)
    seeking = np.where(niche & fan, draft.between(4, 8), 1.0)
    exposure = np.outer(draft.activity(), popularity) * seeking
    chances = rated(like, exposure, per_user=draft.between(38, 54))
    broken = frozenset({"display-changes-who-rates"})
    return draft.world(like, chances, broken=broken, systems=RATING_PREDICTORS, tune=False)


def two_rankers(draft: Draft) -> KnownWorld:
    """Two rankers alone, as an engineer compares them: one in production, and a candidate.

    Who likes what, what is exposed and who rates: as in another kind of worlds, by turns.
    Production recommends what is popular, the candidate is personal; with two systems, who leads is
    often clear.
    """
    name, draw = BASES[draft.seed % len(BASES)]
    candidate: Algorithm = EASE() if draft.seed // len(BASES) % 2 else UserKNN()
    systems = {"production": Popularity(), "candidate": candidate}
    return replace(draw(Draft.of(name, draft.seed)), kind=draft.kind, systems=systems)


def new_items(draft: Draft) -> KnownWorld:
    """A candidate fills its lists with items that hardly anybody has rated yet, and that are bad.

    Who likes what: everyone alike: about .7 of the good items (a tenth of the catalogue), .5 of the
    middling ones (seven tenths), .15 of the new ones. What is exposed: middling items by a power
    law; good ones about as much as the most popular tenth of these, or less, by the seed; a new
    item gets about one rating. Who rates: everyone who is exposed. Production recommends what is
    popular, the candidate four known good items and then new ones.
    """
    place = draft.rng.permutation(draft.items) / draft.items
    is_good, is_new = place < 0.1, place >= 0.8
    level = np.select([is_good, is_new], [draft.between(0.65, 0.75), 0.15], 0.5)
    like = np.tile(level, (draft.population, 1))
    popularity = draft.popularity(draft.between(0.6, 0.9))
    popular = np.quantile(popularity[~is_good & ~is_new], 0.9)
    popularity = np.where(is_good, draft.between(0.3, 1.5) * popular, popularity)
    popularity = np.where(is_new, 0.0, popularity)
    chances = rated(like, np.outer(draft.activity(), popularity), per_user=draft.between(20, 32))
    once = np.full(draft.shape, draft.between(0.8, 1.6) / draft.users)
    chances = Rated(*(np.where(is_new, once, each) for each in chances))
    return draft.world(like, chances, systems=LAUNCH, tune=False)
