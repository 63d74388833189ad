"""The named worlds of `unskew.worlds`, as populations of which everything is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reliability.ingredients import Draft, Rated
from reliability.known_world import KnownWorld
from unskew.arrays import F64
from unskew.worlds.observation import Ageing
from unskew.worlds.parts import WORLDS
from unskew.worlds.tastes import births
from unskew.worlds.worlds import World, world

ABOUT = {
    "shop": """Who likes what: by taste, quality and generosity. What is exposed: popular items, a
        little more the good ones, to active users, more within groups. Who rates: a disliked item
        is rated .4 times as often.""",
    "null": """Who likes what: everyone likes everything equally. What is exposed: popular items, to
        active users. Who rates: everyone who is exposed.""",
    "uniform": """Who likes what: by taste and quality. What is exposed: everything equally. Who
        rates: everyone who is exposed.""",
    "relevance-only": """Who likes what: by taste and quality. What is exposed: everything equally.
        Who rates: a disliked item is rated .2 times as often.""",
    "item-only": """Who likes what: by taste and quality. What is exposed: some items more than
        others, whatever their quality. Who rates: everyone who is exposed.""",
    "popular-good": """Who likes what: by taste and quality. What is exposed: better items more
        often. Who rates: everyone who is exposed.""",
    "inverted": """Who likes what: by taste and quality. What is exposed: worse items more often.
        Who rates: everyone who is exposed.""",
    "clustered": """Who likes what: everyone likes everything equally. What is exposed: groups of
        items to groups of users. Who rates: everyone who is exposed.""",
    "ageing": """Who likes what: by taste and quality, new items more. What is exposed: items from
        their release on, so that old ones have more ratings. Who rates: everyone who is exposed.
        Ratings have times: any moment from the release to the end.""",
    "feedback": """Who likes what: by taste and quality. What is exposed: the items that a
        recommender shows in rounds, which are the most rated ones; the loop runs once, over the
        whole population. Who rates: a disliked item is rated .4 times as often.""",
    "simulated-popularity": """Who likes what: everyone likes everything equally. What is exposed:
        items by a law of popularity; counts per item hold in expectation, not exactly. Who rates:
        everyone who is exposed.""",
}
"""By name: what a converted world is, in words."""
VISIBLE = ("relevance-only", "popular-good")
"""Where by construction a truly better system should be recognised."""

POPULATION = {"feedback": 2}
"""Users of the population for each user of a data set, where a loop would take long with four."""


def named_world(draft: Draft, name: str) -> KnownWorld:
    """Make the named world of a draft's size and seed, and take its chances."""
    population = POPULATION.get(name, 4) * draft.users
    source = world(
        name,
        users=population,
        items=draft.items,
        seed=draft.seed,
        ratings=round(population * draft.between(18, 30)),
        **settings_at_size(name, draft.items),
    )
    like = _all_users(source, source.chances)
    chances = Rated(
        _all_users(source, lambda users: source.observation_if(users, True)),
        _all_users(source, lambda users: source.observation_if(users, False)),
    )
    return draft.world(like, chances, released=_released(source))


def settings_at_size(name: str, items: int) -> dict[str, float]:
    """Return settings that keep the shape of a named world when it has fewer items."""
    shift = WORLDS[name].settings.get("c2")
    return {} if shift is None else {"c2": shift * items / WORLDS[name].items}


def _all_users(source: World, chances: Callable[..., F64]) -> F64:
    """Return chances of all users of a world."""
    return np.concatenate([chances(users) for users in source.blocks()])


def _released(source: World) -> F64 | None:
    """Return when items come out, None in a world without releases."""
    if not any(isinstance(part, Ageing) for part in source.parts):
        return None
    return births(source.seed, len(source.items))


def about(name: str) -> str:
    """Say what a converted world is."""
    return f"The named world {name}: {WORLDS[name].about}. {' '.join(ABOUT[name].split())}"


# Without the demo's world: it was chosen by what an audit says of it, and would flatter the rates.
NAMES = tuple(name for name in WORLDS if name in ABOUT)
