"""Recommenders with factors of users and items by least squares over all cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.errors import DataError
from unskew.recommend.matrices.sparse import (
    ROWS,
    SparseRows,
    factor_model,
    rated_items,
    rated_users,
    times,
    user_rows,
)
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.settings import choice, count, number

TARGETS = ("one", "rating")
CONFIDENCES = ("linear", "log")
SOLVERS = ("exact", "cg")
STEPS = 3
"""Steps of conjugate gradients: since they go on from the last factors, few are enough."""


@dataclass(frozen=True)
class PureSVD(Algorithm):
    """The nearest matrix of low rank to the ratings, a missing rating being 0.

    R ≈ U Σ Qᵀ with `factors` singular vectors; the score of a user is r_u Q Qᵀ. The vectors are
    exact: block Lanczos iteration on RᵀR with full orthogonalisation goes on until every one has
    ‖RᵀR q - σ² q‖ <= 1e-11 σ₁². Singular values below 1e-6 σ₁ count as 0. Users and items
    without training ratings cannot be scored.

    References
    ----------
    Cremonesi, Koren and Turrin, Performance of recommender algorithms on top-N recommendation
    tasks, RecSys 2010, section 3.3, equation 6; valcarce2018 section 4.

    Examples
    --------
    With few factors ratings are smoothed; with as many as their rank, the scores are the ratings.

    >>> import numpy as np
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> for factors in (2, 20):
    ...     scores = us.recommend.PureSVD(factors=factors).fit(shop).score(shop.user)
    ...     predicted = scores[np.arange(len(shop)), shop.item]
    ...     print(factors, bool(np.allclose(predicted, shop.value)))
    2 False
    20 True
    """

    factors: int = count(30, "Singular vectors; no more than the rank are used.")

    name: ClassVar[str] = "puresvd"
    draw_name: ClassVar[str] = "puresvd"
    tuning: ClassVar[Grid] = {"factors": (1, 2, 4, 8, 16, 30)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        return self.learn_shared(self.share_work([self], train), train, rng)

    @classmethod
    def share_work(cls, settings: Sequence[PureSVD], train: Ratings) -> _Vectors:
        """Return the vectors of the largest setting: the first of them are those of the others."""
        return _Vectors(user_rows(train), max(setting.factors for setting in settings))

    def learn_shared(self, shared: _Vectors, train: Ratings, rng: np.random.Generator) -> Model:
        """Take the first vectors."""
        P, Q = shared.of(rng)
        return factor_model(
            train,
            np.ascontiguousarray(P[:, : self.factors]),
            np.ascontiguousarray(Q[:, : self.factors]),
        )


@dataclass(eq=False)
class _Vectors:
    """The factors of users and items for as many singular vectors as any setting wants."""

    R: SparseRows
    factors: int
    result: tuple[F64, F64] | None = None

    def of(self, rng: np.random.Generator) -> tuple[F64, F64]:
        """Return them, worked out at the first call."""
        if self.result is None:
            Q = right_singular_vectors(self.R, self.factors, rng)[1]
            self.result = times(self.R, Q), Q
        return self.result


RESIDUAL = 1e-11
NOTHING = 1e-12
"""Squared singular values, as shares of the largest, that cannot be told from 0."""

MOST_BASIS = 1 << 26
"""Entries of the basis (512 MiB) from which on it is kept as short as can be."""


def right_singular_vectors(
    R: SparseRows, factors: int, rng: np.random.Generator
) -> tuple[F64, F64]:
    """Return the largest singular values of R and, as columns, their right singular vectors.

    Thick-restart block Lanczos: a basis V grows by RᵀR times its last block; V's best vectors are
    those of T = VᵀRᵀRV. A block has more vectors than are wanted, so that equal singular values
    cannot hide from it. The largest entry of each vector is positive.
    """
    Rt, items = R.transposed(), R.columns
    size = min(factors, items)
    width = min(size + 8, items)
    longest = max(3 * width, min(10 * width, MOST_BASIS // items))
    V = np.empty((items, 0))
    T = np.empty((0, 0))
    block = np.linalg.qr(rng.standard_normal((items, width)))[0]
    while True:
        V = np.concatenate([V, block], axis=1)
        after = times(Rt, times(R, block))
        coupling = V.T @ after
        T = _bordered(T, coupling)
        after -= V @ coupling
        square, S = np.linalg.eigh((T + T.T) / 2)
        square, S = square[::-1], S[:, ::-1]
        following, remainder = np.linalg.qr(after)
        residual = np.linalg.norm(remainder @ S[-block.shape[1] :, :size], axis=0)
        top = max(square[0], np.finfo(float).tiny)
        fresh = np.abs(np.diag(remainder)) > NOTHING * top
        if np.all(residual <= RESIDUAL * top) or not fresh.any():
            break
        block = following[:, fresh]
        block -= V @ (V.T @ block)  # once more: the first time leaves what was rounded off
        block = np.linalg.qr(block)[0]
        if V.shape[1] + width > longest:
            best = min(size + width // 2, V.shape[1])
            V, T = V @ S[:, :best], np.diag(square[:best])
    usable = square[:size] > NOTHING * top
    usable[0] = True  # where all ratings are 0, so that scores are 0
    Q = V @ S[:, :size][:, usable]
    Q *= np.sign(Q[np.abs(Q).argmax(axis=0), np.arange(Q.shape[1])])
    return np.sqrt(np.maximum(square[:size][usable], 0.0)), Q


def _bordered(T: F64, last: F64) -> F64:
    """Return a symmetric matrix with more last columns, and rows to match."""
    n, old = last.shape[0], T.shape[0]
    grown = np.empty((n, n))
    grown[:old, :old] = T
    grown[:, old:] = last
    grown[old:, :old] = last[:old].T
    return grown


@dataclass(frozen=True)
class WRMF(Algorithm):
    """Weighted regularised matrix factorisation, iALS: implicit feedback over all cells.

    Minimises Σ_ui c_ui (p_ui - x_u·y_i)² + λ (Σ‖x_u‖² + Σ‖y_i‖²) over all users and items, where
    p is 0 and c is 1 for what is not rated. Alternating least squares: given the items' factors
    the users' are the solution of a linear system each, and the other way round. Every stored
    rating counts as seen, a rating of 0 too. Users and items without training ratings cannot be
    scored.

    References
    ----------
    Hu, Koren and Volinsky, Collaborative filtering for implicit feedback datasets, ICDM 2008,
    section 4, equations 3 to 6; valcarce2018 section 4; castells2018 section 5 (iMF: 50 factors, α
    = 1, λ = 0.1, 20 iterations, target `rating`); mena2021 section 8.1 (LibRec's 1 + ln(1 + 10⁴ r):
    20 factors, λ = 0.01, 20 iterations, confidence `log` with α = 1 and ε = 0.0001, on ratings 0,
    1, 2).

    Examples
    --------
    A score is near 1 where a rating is likely and near 0 elsewhere; here two groups of users rate
    two groups of items.

    >>> import unskew as us
    >>> train = us.read_ratings({"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 7, 8, 9, 10]})
    >>> system = us.recommend.WRMF(factors=2, regularisation=0.1)
    >>> (system.fit(train).score(train.user[:1]) > 0.5).tolist()  # of user 1
    [[True, True, False, False]]
    """

    factors: int = count(50, "Number of factors (length of the vectors).")
    regularisation: float = number(
        20.0,
        """λ, above 0. What is best grows with the number of ratings per user and item, and with the
        confidence: by P@10, 20 is better than 10 on all seven data sets tried (7,000 to 1,000,000
        ratings), 50 better still on five of them and far worse on two.""",
        above=0,
    )
    iterations: int = count(
        20, "Number of times that the users' and then the items' factors are solved for."
    )
    alpha: float = number(1.0, "How much confidence grows with the rating.")
    target: str = choice(
        "one",
        """p of rated cells: `one`, as in the paper, or the `rating` itself, as RankSys has it.""",
        TARGETS,
    )
    confidence: str = choice(
        "linear",
        "c of rated cells: `linear` 1 + α r, or `log` 1 + α ln(1 + r/ε).",
        CONFIDENCES,
    )
    epsilon: float = number(1.0, "ε of the logarithmic confidence.", above=0)
    solver: str = choice(
        "cg",
        """`exact` solves each system; `cg` takes three steps of conjugate gradients from the last
        factors, with products in single precision: about three times faster with 32 factors or
        more, and after 20 iterations the objective is the same within 0.02 % (MovieLens 1M).""",
        SOLVERS,
    )

    name: ClassVar[str] = "wrmf"
    draw_name: ClassVar[str] = "wrmf"
    tuning: ClassVar[Grid] = (
        {"factors": 50, "regularisation": 20.0},
        {"factors": 32, "regularisation": 50.0},
        {"factors": 16, "regularisation": 20.0},
        {"factors": 8, "regularisation": 20.0},
        {"factors": 16, "regularisation": 100.0},
        {"factors": 16, "regularisation": 5.0},
    )

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        extra, p = self._extra(train.value), train.value
        target = 1.0 + extra if self.target == "one" else (1.0 + extra) * p
        users, more = user_rows(train, extra), user_rows(train, target)
        items, more_items = users.transposed(), more.transposed()
        Y = rng.standard_normal((users.columns, self.factors)) / (10.0 * np.sqrt(self.factors))
        X = np.zeros((len(users), self.factors))
        for _ in range(self.iterations):
            X = self._solved(users, more.value, X, Y)
            Y = self._solved(items, more_items.value, Y, X)
        if not (np.isfinite(X).all() and np.isfinite(Y).all()):
            raise DataError(
                f"{self.name}: the factors cannot be solved for with regularisation="
                f"{self.regularisation:g}, which is lost beside confidences of up to "
                f"{1.0 + extra.max():g}; raise it, or lower alpha"
            )
        return factor_model(train, X, Y)

    def _extra(self, rating: F64) -> F64:
        """Return the confidence in rated cells beyond the 1 of all cells."""
        if bool((rating < 0).any()):
            raise DataError(
                f"{self.name}: a confidence needs ratings from 0 up, but {rating.min():g} is "
                f"among them; shift the ratings"
            )
        if self.confidence == "linear":
            return self.alpha * rating
        return self.alpha * np.log1p(rating / self.epsilon)

    def _solved(self, rows: SparseRows, target: F64, X: F64, Y: F64) -> F64:
        """Return the best factors of all rows, given those of the columns; X are the last."""
        from unskew.recommend.kernels import factors as factor_kernels

        gram = frozen(Y.T @ Y + self.regularisation * np.eye(self.factors))
        others = frozen(Y)
        X = X.copy()

        def solve(low: int) -> None:
            arguments = rows.arrays, target, others, gram
            if self.solver == "exact":
                factor_kernels.least_squares(*arguments, low, X[low : low + ROWS])
            else:
                factor_kernels.conjugate_gradient(*arguments, STEPS, low, X[low : low + ROWS])

        map_blocks(solve, range(0, len(rows), ROWS), size=rows.value.size * self.factors)
        return X


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
        products = user_rows(train, weight * target)
        self.items = self.users.transposed()
        self.of_users, self.of_items = products.value, products.transposed().value
        self.missing = frozen(missing)
        self.penalty = penalty

    def sweep_users(self, X: F64, Y: F64) -> F64:
        """Return the users' factors after each coordinate was set once, in order."""
        gram = _product((Y * self.missing[:, None]).T, Y)
        return self._swept(self.users, self.of_users, X, Y, gram, np.ones(len(X)))

    def sweep_items(self, X: F64, Y: F64) -> F64:
        """Return the items' factors after each coordinate was set once, in order."""
        return self._swept(self.items, self.of_items, Y, X, _product(X.T, X), self.missing)

    def _swept(self, rows: SparseRows, target: F64, X: F64, Y: F64, gram: F64, missing: F64) -> F64:
        from unskew.recommend.kernels import factors as factor_kernels

        result, others, gram, missing = X.copy(), frozen(Y), frozen(gram), frozen(missing)

        def sweep(low: int) -> None:
            part = result[low : low + ROWS]
            factor_kernels.coordinate_descent(
                rows.arrays, target, others, gram, missing, self.penalty, low, part
            )

        map_blocks(sweep, range(0, len(rows), ROWS), size=rows.value.size * Y.shape[1])
        return result


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
    Two groups of users rate two groups of items: scores of the own group are near 1, others near 0.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3, 4, 4], [7, 8, 7, 8, 9, 10, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item})
    >>> system = us.recommend.PZT(factors=2, regularisation=0.1)
    >>> (system.fit(train).score(train.user[:1]) > 0.5).tolist()  # of user 1
    [[True, True, False, False]]
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
        bound = self.factors**-0.5
        X = rng.uniform(0.0, bound, (len(train.users), self.factors)) * rated_users(train)[:, None]
        Y = rng.uniform(0.0, bound, (len(train.items), self.factors)) * rated_items(train)[:, None]
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
    Two groups of users rate two groups of items: scores of the own group are near 1, others near 0.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3, 4, 4], [7, 8, 7, 8, 9, 10, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item})
    >>> system = us.recommend.EALS(factors=2, missing=1)
    >>> (system.fit(train).score(train.user[:1]) > 0.5).tolist()  # of user 1
    [[True, True, False, False]]
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
