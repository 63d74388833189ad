"""Worlds that have a name: one for each situation that the papers speak of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from unskew.worlds.observation import (
    Activity,
    AgainstRelevance,
    Ageing,
    Always,
    ByItem,
    ByRelevance,
    Clustered,
    Feedback,
    PopularityLaw,
    Uniform,
    WithRelevance,
)
from unskew.worlds.tastes import Generosity, Iid, Part, Quality, Rising, Stars, Tastes


class NamedWorld(NamedTuple):
    """A world that has a name: its parts, how large it is unless said otherwise, and why."""

    parts: Callable[..., tuple[Part, ...]]
    """From settings to parts."""
    about: str
    paper: str
    users: int
    items: int
    ratings: int

    def settings(self) -> dict[str, Any]:
        """Return its settings and their defaults."""
        result = inspect.signature(self.parts).parameters
        return {name: parameter.default for name, parameter in result.items()}


def _shop(
    *,
    p: float = 0.35,
    taste: float = 1.0,
    factors: int = 8,
    quality: float = 0.8,
    generosity: float = 0.4,
    alpha: float = 1.4,
    agreement: float = 0.4,
    activity: float = 0.9,
    groups: int = 8,
    strength: float = 0.6,
    if_liked: float = 1.0,
    if_not: float = 0.4,
    liked: float = 4,
) -> tuple[Part, ...]:
    return (
        *_liking(p, taste, factors, quality, liked),
        Generosity(generosity),
        PopularityLaw(alpha),
        WithRelevance(agreement),
        Activity(activity),
        Clustered(groups, groups, strength),
        ByRelevance(if_liked, if_not),
    )


def _display(
    *,
    p: float = 0.35,
    taste: float = 1.5,
    factors: int = 3,
    quality: float = 0.3,
    generosity: float = 0.3,
    alpha: float = 1.1,
    agreement: float = 0.2,
    activity: float = 0.7,
    liked: float = 4,
) -> tuple[Part, ...]:
    return (
        *_liking(p, taste, factors, quality, liked),
        Generosity(generosity),
        PopularityLaw(alpha),
        AgainstRelevance(agreement),
        Activity(activity),
        Always(),
    )


def _null(
    *, p: float = 0.57, alpha: float = 1.4, activity: float = 0.9, liked: float = 4
) -> tuple[Part, ...]:
    return Iid(p), Stars(liked=liked), PopularityLaw(alpha), Activity(activity), Always()


def _liking(p: float, taste: float, factors: int, quality: float, liked: float) -> tuple[Part, ...]:
    return Iid(p), Tastes(factors, taste), Quality(quality), Stars(liked=liked)


def _uniform(
    *, p: float = 0.35, taste: float = 1.0, factors: int = 8, quality: float = 0.8, liked: float = 4
) -> tuple[Part, ...]:
    return *_liking(p, taste, factors, quality, liked), Uniform(), Always()


def _relevance_only(
    *,
    p: float = 0.35,
    taste: float = 1.0,
    factors: int = 8,
    quality: float = 0.8,
    if_liked: float = 1.0,
    if_not: float = 0.2,
    liked: float = 4,
) -> tuple[Part, ...]:
    decision = ByRelevance(if_liked, if_not)
    return *_liking(p, taste, factors, quality, liked), Uniform(), decision


def _item_only(
    *,
    p: float = 0.35,
    taste: float = 1.0,
    factors: int = 8,
    quality: float = 0.8,
    spread: float = 1.2,
    liked: float = 4,
) -> tuple[Part, ...]:
    return *_liking(p, taste, factors, quality, liked), ByItem(spread), Always()


def _popular_good(
    *,
    p: float = 0.35,
    taste: float = 1.0,
    factors: int = 8,
    quality: float = 0.8,
    alpha: float = 1.4,
    agreement: float = 1.0,
    liked: float = 4,
) -> tuple[Part, ...]:
    law = (PopularityLaw(alpha), WithRelevance(agreement))
    return *_liking(p, taste, factors, quality, liked), *law, Always()


def _inverted(
    *,
    p: float = 0.35,
    taste: float = 1.0,
    factors: int = 8,
    quality: float = 0.8,
    alpha: float = 1.4,
    agreement: float = 1.0,
    liked: float = 4,
) -> tuple[Part, ...]:
    law = (PopularityLaw(alpha), AgainstRelevance(agreement))
    return *_liking(p, taste, factors, quality, liked), *law, Always()


def _clustered(
    *,
    p: float = 0.5,
    user_groups: int = 10,
    item_groups: int = 10,
    strength: float = 0.9,
    liked: float = 4,
) -> tuple[Part, ...]:
    return Iid(p), Stars(liked=liked), Clustered(user_groups, item_groups, strength), Always()


def _ageing(
    *,
    p: float = 0.35,
    taste: float = 1.0,
    factors: int = 8,
    quality: float = 0.4,
    by: float = 2.5,
    fade: float = 0.5,
    activity: float = 0.9,
    liked: float = 4,
) -> tuple[Part, ...]:
    return (
        *_liking(p, taste, factors, quality, liked),
        Rising(by),
        Ageing(fade),
        Activity(activity),
        Always(),
    )


def _feedback(
    *,
    p: float = 0.35,
    taste: float = 1.0,
    factors: int = 8,
    quality: float = 0.8,
    rounds: int = 5,
    shown: float = 0.1,
    strength: float = 1.0,
    spread: float = 0.5,
    activity: float = 0.9,
    if_liked: float = 1.0,
    if_not: float = 0.4,
    liked: float = 4,
) -> tuple[Part, ...]:
    return (
        *_liking(p, taste, factors, quality, liked),
        ByItem(spread),
        Activity(activity),
        Feedback(rounds, shown, strength),
        ByRelevance(if_liked, if_not),
    )


def _simulated_popularity(
    *, alpha: float = 1.4, c1: float = 0.0, c2: float = 261.7, liked: float = 5
) -> tuple[Part, ...]:
    stars = Stars(liked=liked)
    return Iid(stars.liked_share), stars, PopularityLaw(alpha, c1, c2, exact=True), Always()


WORLDS: dict[str, NamedWorld] = {
    "shop": NamedWorld(
        _shop,
        "a realistic shop: tastes, quality, popularity, activity, clusters, liking",
        "all five",
        2_000,
        1_000,
        80_000,
    ),
    "display": NamedWorld(
        _display,
        "some items are popular because they are displayed, not because they are better",
        "–",
        1_000,
        500,
        60_000,
    ),
    "null": NamedWorld(
        _null,
        "nobody has any taste, no item is better, yet some are popular",
        "castells2018 7.1, Fig. 2",
        2_000,
        1_000,
        80_000,
    ),
    "uniform": NamedWorld(
        _uniform,
        "ratings are missing at random",
        "castells2018 5.2",
        2_000,
        1_000,
        80_000,
    ),
    "relevance-only": NamedWorld(
        _relevance_only,
        "rating depends on liking only, not on the item",
        "mena2021 Lemma 2",
        2_000,
        1_000,
        80_000,
    ),
    "item-only": NamedWorld(
        _item_only,
        "rating depends on the item, liked or not",
        "mena2021 Lemma 3",
        2_000,
        1_000,
        80_000,
    ),
    "popular-good": NamedWorld(
        _popular_good,
        "better items are more popular",
        "mena2021 Lemma 3 (a)",
        2_000,
        1_000,
        80_000,
    ),
    "inverted": NamedWorld(
        _inverted,
        "worse items are more popular",
        "mena2021 8.5",
        2_000,
        1_000,
        80_000,
    ),
    "clustered": NamedWorld(
        _clustered,
        "groups of users rate groups of items, whatever they like; items are equal",
        "castells2018 Fig. 2",
        2_000,
        1_000,
        80_000,
    ),
    "ageing": NamedWorld(
        _ageing,
        "new items are better, old ones have more ratings; with time",
        "mena2021 8.5",
        2_000,
        1_000,
        80_000,
    ),
    "feedback": NamedWorld(
        _feedback,
        "a recommender shows what is rated most, in rounds; with time",
        "castells2018 5.3.1",
        2_000,
        1_000,
        80_000,
    ),
    "simulated-popularity": NamedWorld(
        _simulated_popularity,
        "random ratings, exact counts per item by a law of popularity",
        "bellogin2017 5.2, Fig. 5",
        6_040,
        3_706,
        1_000_209,
    ),
}
"""Every world that has a name."""
