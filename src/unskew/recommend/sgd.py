"""Factors that predict ratings, learned by stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, Tile, frozen
from unskew.data.ratings import Ratings
from unskew.errors import DataError
from unskew.recommend.matrices.sparse import Factors, factor_model
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.settings import count, flag, number


def learned(train: Ratings, P: Tile, Q: Tile, b: Tile | float, c: Tile, factors: int) -> Factors:
    """Make the model from padded factors; refuse those of a descent that went wild."""
    P, Q = P[:, :factors], Q[:, :factors]
    if not all(np.isfinite(part).all() for part in (P, Q, b, c)):
        raise DataError(
            "the factors overflowed; use a smaller learning_rate, or ratings on a smaller scale"
        )
    return factor_model(train, P, Q, b, c)


def starting_factors(train: Ratings, factors: int, rng: np.random.Generator) -> tuple[F64, F64]:
    """Draw factors of users and items, normal with deviation 0.1, as LibRec does."""
    P = rng.normal(0.0, 0.1, (len(train.users), factors))
    return P, rng.normal(0.0, 0.1, (len(train.items), factors))


def padded(values: NDArray[Any]) -> NDArray[Any]:
    """Return values with zeros behind each row, as kernels want them."""
    from unskew.recommend.kernels.sgd import LANES

    rows, columns = values.shape
    result = np.zeros((rows, -(-columns // LANES) * LANES), values.dtype)
    result[:, :columns] = values
    return result


def descend(
    settings: SVD | BiasedMF,
    train: Ratings,
    rng: np.random.Generator,
    start: tuple[F64, F64, F64, F64],
    *,
    mean: float,
    biased: bool,
) -> Model:
    """Pass over all ratings `epochs` times, each time in a new random order.

    Parameters
    ----------
    settings
        How many epochs, and the sizes of steps.
    train, rng
        As in `learn`.
    start
        Factors of users and items, and their biases.
    mean
        What is predicted beside these.
    biased
        Whether biases are learned.
    """
    from unskew.recommend.kernels import sgd

    (P, Q), (b, c) = map(padded, start[:2]), start[2:]
    for _ in range(settings.epochs):
        sgd.rating_epoch(
            order=frozen(rng.permutation(len(train))),
            user=train.user,
            item=train.item,
            value=train.value,
            mean=mean,
            biased=biased,
            P=P,
            Q=Q,
            b=b,
            c=c,
            rate=settings.learning_rate,
            penalty=settings.regularisation,
        )
    return learned(train, P, Q, mean + b, c, settings.factors)


@dataclass(frozen=True)
class SVD(Algorithm):
    """Regularised matrix factorisation of the ratings as they are (RISMF).

    For every training rating, in a new random order in each epoch, both rows of factors take at
    once a step against the gradient of ½(e² + λ‖p_u‖² + λ‖q_i‖²), e = r_ui - p_u·q_i:

        p_u ← p_u + η(e q_i - λ p_u),    q_i ← q_i + η(e p_u - λ q_i)

    With `bias` the factors have two more columns, one fixed to 1 for users and one fixed to 1 for
    items (BRISMF): b_u and c_i are then learned like any factor and the prediction is
    b_u + c_i + p_u·q_i. No mean is subtracted. Everything starts uniform in [-0.01, 0.01]. The
    paper stops when the error on a validation set grows; here the number of epochs is a setting.

    References
    ----------
    Takács, Pilászy, Németh and Tikk 2009, Scalable collaborative filtering approaches for large
    recommender systems, section 3.1.

    Examples
    --------
    Predictions are on the scale of the ratings.

    >>> import numpy as np
    >>> import unskew as us
    >>> user, item, rating = [1, 1, 1, 2, 2, 2], [7, 8, 9, 7, 8, 9], [5, 5, 4, 2, 2, 1]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": rating})
    >>> model = us.recommend.SVD(factors=4, epochs=1_000).fit(train)
    >>> model.score(np.arange(2, dtype=np.int32)).round().tolist()
    [[5.0, 5.0, 4.0], [2.0, 2.0, 1.0]]
    """

    factors: int = count(40, "Number of factors, without the biases.")
    learning_rate: float = number(0.01, "η.", above=0)
    regularisation: float = number(0.02, "λ.")
    epochs: int = count(30, "Number of passes over the ratings.")
    bias: bool = flag(False, "Whether to learn a bias per user and item.")

    name: ClassVar[str] = "svd"
    draw_name: ClassVar[str] = "svd"
    tuning: ClassVar[Grid] = {"factors": (10, 40), "regularisation": (0.02, 0.05, 0.1)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        users, items = len(train.users), len(train.items)
        P = rng.uniform(-0.01, 0.01, (users, self.factors))
        Q = rng.uniform(-0.01, 0.01, (items, self.factors))
        b, c = np.zeros(users), np.zeros(items)
        if self.bias:
            b, c = rng.uniform(-0.01, 0.01, users), rng.uniform(-0.01, 0.01, items)
        return descend(self, train, rng, (P, Q, b, c), mean=0.0, biased=self.bias)


@dataclass(frozen=True)
class BiasedMF(Algorithm):
    """Matrix factorisation around the mean rating and the biases of users and items.

    Predicts μ + b_u + c_i + p_u·q_i, with μ the mean of the training ratings, and minimises the
    sum over them of e² + λ(b_u² + c_i² + ‖p_u‖² + ‖q_i‖²) by stochastic gradient descent:

        b_u ← b_u + η(e - λ b_u),    p_u ← p_u + η(e q_i - λ p_u),    likewise c_i and q_i,

    in a new random order in each epoch. Biases start at 0, factors normal with deviation 0.1
    (the paper does not say).

    References
    ----------
    Koren, Bell and Volinsky 2009, Matrix factorization techniques for recommender systems,
    equations 4 and 5.

    Examples
    --------
    Users 1 and 2 rate the same items, user 1 higher; item 9 is rated lowest by both.

    >>> import unskew as us
    >>> user, item, rating = [1, 1, 1, 2, 2, 2], [7, 8, 9, 7, 8, 9], [5, 5, 4, 2, 2, 1]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": rating})
    >>> model = us.recommend.BiasedMF().fit(train)
    >>> bool(model.user_offset[0] > model.user_offset[1]), int(model.item_offset.argmin())
    (True, 2)
    """

    factors: int = count(50, "Number of factors.")
    learning_rate: float = number(0.01, "η.", above=0)
    regularisation: float = number(0.05, "λ.")
    epochs: int = count(30, "Number of passes over the ratings.")

    name: ClassVar[str] = "biased-mf"
    draw_name: ClassVar[str] = "biased-mf"
    tuning: ClassVar[Grid] = {"factors": (10, 50), "regularisation": (0.02, 0.05, 0.1)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        users, items = len(train.users), len(train.items)
        factors = starting_factors(train, self.factors, rng)
        start, mean = (*factors, np.zeros(users), np.zeros(items)), float(train.value.mean())
        return descend(self, train, rng, start, mean=mean, biased=True)


@dataclass(frozen=True)
class SVDpp(Algorithm):
    """SVD++: biased matrix factorisation in which the items that a user rated speak for her.

    Predicts μ + b_u + c_i + q_i·(p_u + |I_u|^-½ Σ_{j ∈ I_u} y_j), with μ the mean of the training
    ratings, and takes for every one of them, by user and item, a step against the gradient of
    ½(e² + λ_b(b_u² + c_i²) + λ(‖p_u‖² + ‖q_i‖²) + λ_y Σ_{j ∈ I_u} ‖y_j‖²), e = r_ui less the
    prediction, all at once. Everything starts normal with deviation 0.1, as in LibRec. Double
    precision, one thread. A pass takes time proportional to the ratings, not to their squares per
    user: between two ratings of a user all her y_j move alike.

    References
    ----------
    Koren 2008, Factorization meets the neighborhood, section 4, equations 15 and 16; mena2021
    section 8 (SVD++), where ratings 1 to 5 enter as 0, 0, 0, 1, 2.

    Examples
    --------
    Item 9, which user 3 did not rate, is expected to be rated lower than the others.

    >>> import unskew as us
    >>> user, item = [1, 1, 1, 2, 2, 2, 3, 3], [7, 8, 9, 7, 8, 9, 7, 8]
    >>> rating = [5, 5, 4, 2, 2, 1, 4, 4]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": rating})
    >>> model = us.recommend.SVDpp(factors=4, epochs=1_000).fit(train)
    >>> model.score(train.user[-1:]).round().tolist()  # of user 3
    [[4.0, 4.0, 3.0]]
    """

    factors: int = count(20, "Number of factors.")
    learning_rate: float = number(0.002, "η.", above=0)
    regularisation: float = number(0.01, "λ.")
    epochs: int = count(100, "Number of passes over the ratings.")
    regularisation_bias: float = number(0.01, "λ_b.")
    regularisation_implicit: float = number(0.01, "λ_y.")

    name: ClassVar[str] = "svdpp"
    draw_name: ClassVar[str] = "svdpp"
    tuning: ClassVar[Grid] = {"factors": (5, 20), "regularisation": (0.01, 0.05, 0.2)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        from unskew.recommend.kernels import sgd as kernels

        users, items = len(train.users), len(train.items)
        P, Q, Y = (padded(rng.normal(0.0, 0.1, (n, self.factors))) for n in (users, items, items))
        b, c = rng.normal(0.0, 0.1, users), rng.normal(0.0, 0.1, items)
        mean = float(train.value.mean())
        for _ in range(self.epochs):
            kernels.implicit_epoch(
                start=train.start,
                item=train.item,
                value=train.value,
                mean=mean,
                P=P,
                Q=Q,
                Y=Y,
                b=b,
                c=c,
                rate=float(self.learning_rate),
                penalty=float(self.regularisation),
                of_bias=float(self.regularisation_bias),
                of_implicit=float(self.regularisation_implicit),
            )
        user_factors = np.empty_like(P)
        kernels.implicit_users(train.start, train.item, P, Y, user_factors)
        return learned(train, user_factors, Q, mean + b, c, self.factors)
