"""Factors by coordinates: the objectives of weighted least squares, one number at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.errors import DataError
from unskew.recommend.factors import TARGETS
from unskew.recommend.gram import ROWS
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.recommend.products import factor_model
from unskew.recommend.sparse import Rows, rated_items, rated_users, user_rows
from unskew.settings import choice, count, number


class Coordinates:
    """Weighted least squares over all cells, and the sweeps that lower it.

    The loss is Σ w_ui (p_ui - x_u·y_i)² over rated cells, plus Σ m_i (x_u·y_i)² over the others,
    plus λ (Σ‖x_u‖² + Σ‖y_i‖²). Over all cells that is Σ m_i (x_u·y_i)², for which a Gram matrix
    is enough, and what a rated cell has more: (w - m)(x·y)² - 2wp x·y. Every coordinate goes to
    its best value given all others, so that no step raises the loss.
    """

    def __init__(
        self, train: Ratings, weight: F64, target: F64, missing: F64, penalty: float
    ) -> None:
        self.users = user_rows(train, weight - missing[train.item])
        wanted = user_rows(train, weight * target)
        self.items = self.users.transposed()
        self.of_users, self.of_items = wanted.value, wanted.transposed().value
        self.missing = frozen(missing)
        self.penalty = penalty

    def sweep_users(self, X: F64, Y: F64) -> F64:
        """Return the users' factors after each coordinate was set once, in order."""
        gram = _product((Y * self.missing[:, None]).T, Y)
        return self._swept(self.users, self.of_users, X, Y, gram, np.ones(len(X)))

    def sweep_items(self, X: F64, Y: F64) -> F64:
        """Return the items' factors after each coordinate was set once, in order."""
        return self._swept(self.items, self.of_items, Y, X, _product(X.T, X), self.missing)

    def _swept(self, rows: Rows, wanted: F64, X: F64, Y: F64, gram: F64, missing: F64) -> F64:
        from unskew.recommend import factor_kernels

        moved, others, gram, missing = X.copy(), frozen(Y), frozen(gram), frozen(missing)

        def sweep(low: int) -> None:
            factor_kernels.coordinate_descent(
                *rows.arrays,
                wanted,
                others,
                gram,
                missing,
                self.penalty,
                low,
                moved[low : low + ROWS],
            )

        map_blocks(sweep, range(0, len(rows), ROWS), size=rows.value.size * Y.shape[1])
        return moved


def _product(A: F64, B: F64) -> F64:
    """Return a matrix product in silence: `finite_model` tells what grew beyond all numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        result: F64 = A @ B
        return result


def finite_model(name: str, train: Ratings, X: F64, Y: F64) -> Model:
    """Make the model; refuse factors that are not numbers."""
    if not (np.isfinite(X).all() and np.isfinite(Y).all()):
        raise DataError(
            f"{name}: the factors overflowed; raise regularisation, lower alpha, or use ratings "
            "on a smaller scale"
        )
    return factor_model(train, X, Y)


def weights(name: str, rating: F64, alpha: float) -> F64:
    """Return the weight of rated cells, 1 + α r; refuse negative ratings."""
    if bool((rating < 0).any()):
        raise DataError(
            f"{name}: a weight 1 + alpha times the rating needs ratings from 0 up, but "
            f"{rating.min():g} is among them; shift the ratings"
        )
    with np.errstate(over="ignore"):  # as in `_product`
        return 1.0 + alpha * rating


@dataclass(frozen=True)
class PZT(Algorithm):
    """Implicit feedback over all cells, one coordinate at a time (iALS1).

    Minimises what `WRMF` minimises, Σ_ui c_ui (p_ui - x_u·y_i)² + λ (Σ‖x_u‖² + Σ‖y_i‖²) with
    c = 1 + α r for rated cells and p = 0, c = 1 for all others, but instead of solving a linear
    system per user and item it sets each coordinate once to its best value, given all others:

        x_uk ← (Σ_i c_ui y_ik (p_ui - Σ_{l≠k} x_ul y_il)) / (λ + Σ_i c_ui y_ik²)

    The sums over all cells come from Σ y yᵀ. The paper writes that matrix as synthetic examples,
    one per factor; a row of it gives the same sums with less work. An iteration sweeps the items,
    then the users, and starts where the last one ended; factors start uniform in [0, 1/√factors].
    Users and items without training ratings cannot be scored.

    RankSys adds λ both to the synthetic examples and to each coordinate, so that its λ counts
    twice: its results need here a `regularisation` of 2λ.

    References
    ----------
    Pilászy, Zibriczky and Tikk, Fast ALS-based matrix factorization for explicit and implicit
    feedback datasets, RecSys 2010 (iALS1); carraro2020 section 5.4 (MF: RankSys, factors from
    20 to 200 and λ from 0.001 to 0.6 chosen on validation data, target `rating`).

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.als import PZT
    >>> train = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 3]})
    >>> PZT(factors=2).fit(train).score(train.user[:1]).shape
    (1, 3)
    """

    factors: int = count(50, "Number of factors (length of the vectors).")
    regularisation: float = number(10.0, "λ, above 0.", above=0)
    iterations: int = count(20, "Number of sweeps over the items and then the users.")
    alpha: float = number(1.0, "How much confidence grows with the rating.")
    target: str = choice(
        "one",
        """p of rated cells: `one`, as in the paper, or the `rating` itself, as RankSys has it.""",
        TARGETS,
    )

    name: ClassVar[str] = "pzt"
    draw_name: ClassVar[str] = "pzt"
    tuning: ClassVar[Grid] = (
        {"factors": 50, "regularisation": 10.0},
        {"factors": 32, "regularisation": 50.0},
        {"factors": 16, "regularisation": 20.0},
        {"factors": 8, "regularisation": 20.0},
        {"factors": 16, "regularisation": 100.0},
        {"factors": 16, "regularisation": 5.0},
    )

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        target = train.value if self.target == "rating" else np.ones(len(train))
        weight = weights(self.name, train.value, self.alpha)
        loss = Coordinates(train, weight, target, np.ones(len(train.items)), self.regularisation)
        most = self.factors**-0.5
        X = rng.uniform(0.0, most, (len(train.users), self.factors)) * rated_users(train)[:, None]
        Y = rng.uniform(0.0, most, (len(train.items), self.factors)) * rated_items(train)[:, None]
        for _ in range(self.iterations):
            Y = loss.sweep_items(X, Y)
            X = loss.sweep_users(X, Y)
        return finite_model(self.name, train, X, Y)


@dataclass(frozen=True)
class EALS(Algorithm):
    """Element-wise least squares in which what is missing of popular items counts more.

    Minimises, with w_ui = 1 + α r_ui and p = 1 for every stored rating, a rating of 0 too,

        Σ_rated w_ui (1 - x_u·y_i)² + Σ_missing m_i (x_u·y_i)² + λ (Σ‖x_u‖² + Σ‖y_i‖²),
        m_i = c₀ f_i^η / Σ_j f_j^η

    where f_i is the number of training ratings of an item: who did not rate a popular item has
    probably seen it and did not want it. An iteration sets every coordinate of the users and then
    of the items once to its best value, given all others. Factors start normal with deviation
    0.1, as in LibRec. Users and items without training ratings cannot be scored.

    References
    ----------
    He, Zhang, Kan and Chua, Fast matrix factorization for online recommendation with implicit
    feedback, SIGIR 2016; mena2021 section 8.1 (LibRec with judge = 1, by which all that is missing
    weighs 1: 200 factors, λ = 0.01, α = 1, 20 iterations, missing none, popularity 0, on ratings
    0, 1, 2).

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.als import EALS
    >>> train = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 3]})
    >>> EALS(factors=2, missing=1).fit(train).score(train.user[:1]).shape
    (1, 3)
    """

    factors: int = count(64, "Number of factors (length of the vectors).")
    regularisation: float = number(0.01, "λ, above 0.", above=0)
    iterations: int = count(20, "Number of sweeps over the users and then the items.")
    alpha: float = number(
        0.0,
        """α, how much the weight of a rated cell grows with the rating; with 0, as in the paper,
        all weights are 1.""",
    )
    missing: float | None = number(
        512.0,
        """c₀, the total weight of missing cells over items; None = the number of items with
        ratings, so that the mean weight is 1.""",
        optional=True,
    )
    popularity: float = number(0.4, "η; with 0, missing cells have the same weight for all items.")

    name: ClassVar[str] = "eals"
    draw_name: ClassVar[str] = "eals"
    tuning: ClassVar[Grid] = {"factors": (8, 64), "regularisation": (0.01, 1.0, 10.0)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        weight = weights(self.name, train.value, self.alpha)
        loss = Coordinates(
            train, weight, np.ones(len(train)), self._missing(train), self.regularisation
        )
        X = rng.normal(0.0, 0.1, (len(train.users), self.factors)) * rated_users(train)[:, None]
        Y = rng.normal(0.0, 0.1, (len(train.items), self.factors)) * rated_items(train)[:, None]
        for _ in range(self.iterations):
            X = loss.sweep_users(X, Y)
            Y = loss.sweep_items(X, Y)
        return finite_model(self.name, train, X, Y)

    def _missing(self, train: Ratings) -> F64:
        """Return the weight of an item's missing cells; 0 for items without ratings."""
        count = np.bincount(train.item, minlength=len(train.items)).astype(np.float64)
        rated = count > 0
        # By the largest count, so that no power is beyond all numbers.
        share = np.where(rated, (count / count.max()) ** self.popularity, 0.0)
        total = float(rated.sum()) if self.missing is None else self.missing
        weights: F64 = total * share / share.sum()
        return weights
