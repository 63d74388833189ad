"""SVD++: factors that predict ratings, and learn from which items were rated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.data.ratings import Ratings
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.recommend.sgd import learned, padded
from unskew.settings import count, number


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
        from unskew.recommend import svdpp_kernels as kernels

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
        whole = np.empty_like(P)
        kernels.implicit_users(train.start, train.item, P, Y, whole)
        return learned(train, whole, Q, mean + b, c, self.factors)
