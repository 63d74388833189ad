"""Recommenders that predict an item from the user's ratings of the others: SLIM and EASE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, I32, I64, Floats, Mask, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.recommend.matrices.sparse import (
    ROWS,
    DenseWeights,
    SparseRows,
    UserWeights,
    Votes,
    inverse,
    item_gram,
    rated_items,
    user_rows,
)
from unskew.recommend.model import Algorithm, Grid, Model
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

    Examples
    --------
    A larger `l1` leaves fewer weights that are not 0.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> few, many = (us.recommend.SLIM(l1=l1, l2=10).fit(shop).second.value for l1 in (100, 1))
    >>> few.size < many.size < 20 * 19, bool((many > 0).all())
    (True, True)
    """

    l1: float = number(
        50.0,
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
        1e-4,
        """The largest duality gap, as a share of the loss without any weights. P@10 moves by
        0.0002 or less between 1e-4 and 1e-6 on the data tried (80,000 to 1,000,000 ratings).""",
        1e-12,
        1.0,
    )

    name: ClassVar[str] = "slim"
    draw_name: ClassVar[str] = "slim"
    tuning: ClassVar[Grid] = (
        {"l1": 50.0, "l2": 1_000.0},
        {"l1": 50.0, "l2": 10_000.0},
        {"l1": 10.0, "l2": 1_000.0},
        {"l1": 200.0, "l2": 10_000.0},
        {"l1": 200.0, "l2": 1_000.0},
        {"l1": 20.0, "l2": 300.0},
    )

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        return self.learn_shared(self.share_work([self], train), train, rng)

    @classmethod
    def share_work(cls, settings: Sequence[SLIM], train: Ratings) -> dict[str, _Products]:
        """Return the products of R with itself, for each of its values."""
        return _products(settings, train)

    def learn_shared(
        self, shared: dict[str, _Products], train: Ratings, rng: np.random.Generator
    ) -> Model:
        """Solve for every item's column."""
        from unskew.recommend.kernels import factors

        R, G = shared[self.values].R, shared[self.values].items()
        norm = frozen(np.diag(G).copy())
        items = R.columns

        def solve(low: int) -> tuple[I64, I32, F64]:
            W = np.empty((min(ROWS, items - low), items))
            factors.slim_columns(
                G, norm, float(self.l1), float(self.l2), float(self.tolerance), low, W
            )
            row, column = np.nonzero(W)
            return np.bincount(row, minlength=len(W)), column.astype(np.int32), W[row, column]

        parts = map_blocks(solve, range(0, items, ROWS), size=G.size)
        count, predictor, weight = map(np.concatenate, zip(*parts, strict=True))
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        by_target = SparseRows(frozen(start), frozen(predictor), frozen(weight), items)
        return Votes(R, by_target.transposed())


@dataclass(frozen=True)
class EASE(Algorithm):
    """Embarrassingly shallow autoencoder: SLIM with weights of any sign and no ‖w‖₁, solved.

    B minimises ‖R - R B‖² + l2 ‖B‖² with a diagonal of 0: with P = (RᵀR + l2 I)⁻¹ it is
    B_ij = -P_ij / P_jj off the diagonal. The score of a user is R_u B. Users and items without
    training ratings cannot be scored. Weights have single precision, which halves time and memory,
    unless `l2` is so small that their errors would be seen; sums of scores are doubles.

    References
    ----------
    Steck, Embarrassingly shallow autoencoders for sparse data, WWW 2019, section 3.1, equations 7
    and 8.

    Examples
    --------
    Unlike those of SLIM, weights may be negative; an item has none for itself.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> weights = us.recommend.EASE(l2=100).fit(shop).weights
    >>> weights.shape, bool((weights.diagonal() == 0).all()), bool((weights < 0).any())
    ((20, 20), True, True)
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
        return self._of_gram(train, _matrix(train, self.values), None)

    @classmethod
    def share_work(cls, settings: Sequence[EASE], train: Ratings) -> dict[str, _Products]:
        """Return the products of R with itself, for each of its values."""
        return _products(settings, train)

    def learn_shared(
        self, shared: dict[str, _Products], train: Ratings, rng: np.random.Generator
    ) -> Model:
        """Invert what is smaller: users x users, or items x items."""
        products = shared[self.values]
        if products.by_users(self.l2):
            return products.dual(self.l2, rated_items(train))
        return self._of_gram(train, products.R, products.items())

    def _of_gram(self, train: Ratings, R: SparseRows, gram: F64 | None) -> Model:
        is_single = self.l2 >= WELL_POSED_SINGLE * float(np.square(R.value).sum())
        G = item_gram(R, self.name) if gram is None else gram
        B: Floats = G.astype(np.float32 if is_single else np.float64, copy=is_single or G is gram)
        del G
        diagonal = np.arange(R.columns)
        B[diagonal, diagonal] += self.l2
        inverse(B)
        B /= -np.diag(B).copy()
        B[diagonal, diagonal] = 0.0
        B[:, ~rated_items(train)] = np.nan
        return DenseWeights(R, frozen(B))


WELL_POSED_SINGLE = 1e-4
"""The least l2, as a share of Σ r², with which weights have single precision. On MovieLens 100K and
1M that moves them by at most 5e-5 and 9e-6 of the largest one."""
WELL_POSED = 1e-7
"""The least l2, as a share of Σ r², with which the inverse over users keeps eight digits."""


@dataclass(eq=False)
class _Products:
    """RᵀR and RRᵀ, made at their first use, for several weights of ‖B‖²."""

    name: str
    """Of the algorithm, for errors."""
    R: SparseRows
    grams: dict[str, F64] = field(default_factory=dict)

    def items(self) -> F64:
        """Return RᵀR."""
        if "items" not in self.grams:
            self.grams["items"] = frozen(item_gram(self.R, self.name))
        return self.grams["items"]

    def by_users(self, l2: float) -> bool:
        """Tell whether there are fewer users than items, and nothing is lost by their inverse."""
        fewer = 10 * len(self.R) < 9 * self.R.columns
        return fewer and l2 >= WELL_POSED * float(np.square(self.R.value).sum())

    def dual(self, l2: float, rated: Mask) -> Model:
        """Solve over users: R(RᵀR + λI)⁻¹ = (RRᵀ + λI)⁻¹R."""
        from unskew.recommend.kernels import factors

        columns = self.R.transposed()
        if "users" not in self.grams:
            self.grams["users"] = frozen(item_gram(columns, self.name))
        M = self.grams["users"].copy()
        diagonal = np.arange(len(self.R))
        M[diagonal, diagonal] += l2
        inverse(M)
        lever = np.empty(len(columns))
        weights = frozen(M)

        def fill(low: int) -> None:
            part = lever[low : low + ROWS]
            factors.quadratic_forms(columns.arrays, weights, low, part)

        map_blocks(fill, range(0, len(columns), ROWS), size=self.R.value.size * len(self.R))
        return UserWeights(self.R, weights, frozen(np.where(rated, (1.0 - lever) / l2, np.nan)))


def _products(settings: Sequence[SLIM] | Sequence[EASE], train: Ratings) -> dict[str, _Products]:
    return {
        setting.values: _Products(setting.name, _matrix(train, setting.values))
        for setting in settings
    }


def _matrix(train: Ratings, values: str) -> SparseRows:
    """Return R with ratings, or with ones in their place."""
    return user_rows(train, np.ones(len(train)) if values == "one" else None)
