"""Two rankers alone, as an engineer compares them: one in production, and a candidate.

Who likes what, what is exposed and who rates: as in another kind of worlds, by turns. Production
recommends what is popular, the candidate is personal; with two systems, who leads is often clear.
"""

from __future__ import annotations

from dataclasses import replace

from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.kinds import (
    earlier_recommender,
    inverse,
    null,
    popularity_taste_selection,
    quality,
    recommended,
    recommended_taste,
    taste,
)
from unskew.auditing.self_test.known_world import KnownWorld
from unskew.recommend.linear import EASE
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import UserKNN
from unskew.recommend.simple import Popularity

NAME = "two-rankers"
BASES = (
    taste,
    popularity_taste_selection,
    recommended_taste,
    earlier_recommender,
    recommended,
    quality,
    inverse,
    null,
)


def make(seed: int) -> KnownWorld:
    """Make the world of a seed."""
    kind: Kind = BASES[seed % len(BASES)].KIND
    candidate: Algorithm = EASE() if seed // len(BASES) % 2 else UserKNN()
    systems = {"production": Popularity(), "candidate": candidate}
    return replace(kind(seed), kind=NAME, systems=systems)


KIND = Kind(name=NAME, about=__doc__, make=make)
