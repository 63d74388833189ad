"""Non-negative factors of the items, onto which users are projected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.data.ratings import Ratings
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.recommend.products import factor_model, times
from unskew.recommend.sgd import padded
from unskew.recommend.sparse import rated_items, user_rows
from unskew.recommend.topics import Shares
from unskew.settings import count


@dataclass(frozen=True)
class PNMF(Algorithm):
    """Projective non-negative matrix factorisation: X ≈ X W Wᵀ with W >= 0.

    X is 1 where there is a rating, of whatever value, and 0 elsewhere. Minimises the divergence
    Σ_ui (X̂_ui - X_ui ln X̂_ui), X̂ = X W Wᵀ, by multiplicative updates of all of W at once:

        W_ik ← W_ik √(N_ik / D_ik)
        N_ik = Σ_u X_ui (P_uk / X̂_ui + Σ_j X_uj W_jk / X̂_uj),    P = X W
        D_ik = n_i Σ_j W_jk + Σ_u P_uk,    n_i the ratings of item i

    With the square root no update raises the divergence: the logarithm is bounded by Jensen's
    inequality and each product W_jk W_ik by a sum of squares, and this is where their sum is
    least. Without it, as in the first paper, the divergence may rise and swing. W starts uniform
    in [1/(2n), 1/n] for n items; any common factor of it is gone after one update. Scores are
    X W Wᵀ. Users and items without training ratings cannot be scored.

    References
    ----------
    Yuan and Oja, Projective nonnegative matrix factorization for image compression and feature
    extraction, SCIA 2005; Yang and Oja, Unified development of multiplicative algorithms for
    linear and quadratic nonnegative matrix factorization, IEEE Transactions on Neural Networks
    2011; mena2021 section 8.1 (LibRec: 10 factors, 25 iterations and the one more).

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.nmf import PNMF
    >>> train = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 3]})
    >>> score = PNMF(factors=2).fit(train).score(train.user[:1])
    >>> bool(score[0, 0] > score[0, 2])
    True
    """

    factors: int = count(10, "Number of factors (columns of W).")
    iterations: int = count(100, "Number of updates of W. LibRec makes one more than its setting.")

    name: ClassVar[str] = "pnmf"
    draw_name: ClassVar[str] = "pnmf"
    tuning: ClassVar[Grid] = {"factors": (1, 2, 5, 10, 20, 40)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        items, K = len(train.items), self.factors
        ones = np.ones(len(train))
        X = user_rows(train, ones)
        Xt = X.transposed()
        shares = Shares(self.name, train, ones)
        n = np.bincount(train.item, minlength=items)[:, None]
        W = padded(rng.uniform(0.5, 1.0, (items, K)) / items * rated_items(train)[:, None])
        by_user, by_item = np.empty((len(train.users), W.shape[1])), np.empty_like(W)
        for _ in range(self.iterations):
            P = times(X, W)
            shares.count(P, W, by_user, by_item, wants_likelihood=False)
            # Counts are W times the first part of N, and P times what X adds up in the second.
            pull = np.divide(by_user, P, out=np.zeros_like(P), where=P > 0)
            up = by_item + W * times(Xt, pull)
            down = n * W.sum(axis=0) + P.sum(axis=0)
            W = np.sqrt(W * np.divide(up, down, out=np.zeros_like(up), where=down > 0))
        return factor_model(train, times(X, W)[:, :K], W[:, :K])
