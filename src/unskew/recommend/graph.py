"""Recommenders that walk the graph of users and items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, I32
from unskew.data.ratings import Ratings
from unskew.recommend.language import profiles
from unskew.recommend.model import Algorithm, Axes, Grid, Model
from unskew.recommend.products import in_blocks
from unskew.recommend.sparse import Rows
from unskew.settings import count

_COLUMNS = 64  # users walked at once: an edge is looked at once for all of them


@dataclass(frozen=True, eq=False)
class Walk:
    """The probabilities of a step from user to item and from item to user."""

    forward: Rows
    """By user."""
    backward: Rows
    """By item."""
    steps: int
    axes: ClassVar[Axes] = {"forward": ("users", "items"), "backward": ("items", "users")}

    def score(self, users: I32) -> F64:
        """Return the negative truncated hitting times."""
        from unskew.recommend import language_kernels

        out, back = self.forward, self.backward
        score = np.empty((users.size, len(back)))

        def fill(some: I32, rows: slice) -> None:
            language_kernels.hits(
                some,
                *out.arrays,
                *back.arrays,
                self.steps,
                score[rows],
            )

        in_blocks(users, fill, score.size, _COLUMNS)
        score -= self.steps
        score[:, np.diff(back.start) == 0] = np.nan
        score[out.start[users] == out.start[users + 1]] = np.nan
        return score


@dataclass(frozen=True)
class HittingTime(Algorithm):
    """Items in the order of how soon a random walk from them reaches the user.

    score(u, i) = -H(u|i), with H(u|u) = 0 and H(u|x) = 1 + Σ_y p_xy H(u|y) for every other node

    The graph has users and items as nodes and a rating as the weight of an edge; a step takes an
    edge with the probability of its share in the weights of the node. H is truncated: the
    recursion is done `iterations` times from H = 0, so that H is at most that, and exactly that
    where the user is out of reach. From a popular item a walk can go anywhere, so items with few
    raters come first: the method is made for the long tail. The whole graph is walked, where the
    paper cuts out a part around the user for speed. A rating of 0 is no edge.

    References
    ----------
    Yin, Cui, Li, Yao, Chen: Challenging the long tail recommendation, PVLDB 5 (2012) section 3,
    algorithm 1; valcarce2018 section 4.
    """

    iterations: int = count(
        15,
        "Steps after which a walk is cut off; below 4 most items are out of reach.",
    )
    name: ClassVar[str] = "hitting-time"
    draw_name: ClassVar[str] = "hitting-time"
    tuning: ClassVar[Grid] = {"iterations": (4, 6, 10, 15, 20, 30)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        edges = profiles(train)
        return Walk(edges.shares(), edges.transposed().shares(), self.iterations)
