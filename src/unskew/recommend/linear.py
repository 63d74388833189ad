"""Recommenders that predict an item from the user's ratings of the others: SLIM and EASE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, I32, I64, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.recommend.gram import ROWS, inverse, item_gram
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.recommend.products import DenseWeights, Votes
from unskew.recommend.sparse import Rows, rated_items, user_rows
from unskew.settings import choice, number

VALUES = ("rating", "one")


@dataclass(frozen=True)
class SLIM(Algorithm):
    """Sparse linear method: every item is predicted by few others, with weights that are >= 0.

    Column i of W minimises ½‖r_i - R w‖² + l2/2 ‖w‖² + l1 ‖w‖₁ over w >= 0 with w_i = 0; the score
    of a user is R_u W. Coordinate descent on RᵀR, each time over a working set of items that have
    a weight or would get one, until the duality gap shows that the objective is within
    `tolerance` · ½‖r_i‖² of its least value. Since l2 > 0 that solution is the only one, whatever
    the way there.

    References
    ----------
    Ning and Karypis, SLIM: sparse linear methods for top-N recommender systems, ICDM 2011, section
    IV, equation 4; valcarce2018 section 4.
    """

    l1: float = number(
        10.0,
        """Weight of ‖w‖₁: higher makes W sparser. In the unit of squared ratings, not divided by
        the number of users.""",
    )
    l2: float = number(1000.0, "Weight of ½‖w‖²; above 0.", above=0)
    values: str = choice(
        "rating",
        "What R holds: the `rating`, or `one` for every rated item.",
        VALUES,
    )
    tolerance: float = number(
        1e-6,
        "The largest duality gap, as a share of the loss without any weights.",
        1e-12,
        1.0,
    )

    name: ClassVar[str] = "slim"
    draw_name: ClassVar[str] = "slim"
    tuning: ClassVar[Grid] = (
        {"l1": 10.0, "l2": 1_000.0},
        {"l1": 10.0, "l2": 10_000.0},
        {"l1": 50.0, "l2": 1_000.0},
        {"l1": 50.0, "l2": 10_000.0},
        {"l1": 10.0, "l2": 100.0},
        {"l1": 1.0, "l2": 1_000.0},
    )

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        from unskew.recommend import linear_kernels

        R = _matrix(train, self.values)
        G = frozen(item_gram(R, self.name))
        norm = frozen(np.diag(G).copy())
        items = R.columns

        def solve(low: int) -> tuple[I64, I32, F64]:
            W = np.empty((min(ROWS, items - low), items))
            linear_kernels.slim_columns(
                G, norm, float(self.l1), float(self.l2), float(self.tolerance), low, W
            )
            row, column = np.nonzero(W)
            return np.bincount(row, minlength=len(W)), column.astype(np.int32), W[row, column]

        parts = map_blocks(solve, range(0, items, ROWS), size=G.size)
        count, predictor, weight = map(np.concatenate, zip(*parts, strict=True))
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        by_target = Rows(frozen(start), frozen(predictor), frozen(weight), items)
        return Votes(R, by_target.transposed())


@dataclass(frozen=True)
class EASE(Algorithm):
    """Embarrassingly shallow autoencoder: SLIM with weights of any sign and no ‖w‖₁, solved.

    B minimises ‖R - R B‖² + l2 ‖B‖² with a diagonal of 0: with P = (RᵀR + l2 I)⁻¹ it is
    B_ij = -P_ij / P_jj off the diagonal. The score of a user is R_u B. Users and items without
    training ratings cannot be scored.

    References
    ----------
    Steck, Embarrassingly shallow autoencoders for sparse data, WWW 2019, section 3.1, equations 7
    and 8.
    """

    l2: float = number(10_000.0, "Weight of ‖B‖²; above 0.", above=0)
    values: str = choice(
        "rating",
        "What R holds: the `rating`, or `one` for every rated item, as in the paper.",
        VALUES,
    )

    name: ClassVar[str] = "ease"
    draw_name: ClassVar[str] = "ease"
    tuning: ClassVar[Grid] = {"l2": (1e3, 3e3, 1e4, 3e4, 1e5, 1e6)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        R = _matrix(train, self.values)
        B = item_gram(R, self.name)
        diagonal = np.arange(R.columns)
        B[diagonal, diagonal] += self.l2
        inverse(B)
        B /= -np.diag(B).copy()
        B[diagonal, diagonal] = 0.0
        B[:, ~rated_items(train)] = np.nan
        return DenseWeights(R, frozen(B))


def _matrix(train: Ratings, values: str) -> Rows:
    """Return R with ratings, or with ones in their place."""
    return user_rows(train, np.ones(len(train)) if values == "one" else None)
