"""Factors learned from whole lists: ListRankMF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, Raters, Rows
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.recommend.matrices.sparse import user_rows
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.recommend.sgd import learned, padded
from unskew.settings import count, number

BLOCK = 256
"""Users or items per task."""


@dataclass(frozen=True)
class ListRankMF(Algorithm):
    """Factors whose order of a user's items resembles that of her ratings.

    Minimises, over the items I_u that each user rated,

        -Σ_u Σ_{i ∈ I_u} t_ui ln s_ui + λ/2 (‖P‖² + ‖Q‖²),
        t_ui = exp(r_ui / d) / Σ_{j ∈ I_u} exp(r_uj / d),
        s_ui = exp(σ(p_u·q_i)) / Σ_{j ∈ I_u} exp(σ(p_u·q_j)).

    Gradient descent on all ratings at once: the step is doubled before each iteration, then halved
    until the loss does not rise. Scores p_u·q_i. Unrated items take no part: it learns which items
    are rated high, not which are rated.

    Factors start uniform in [0, `start`). LibRec means them to start below 0.1, but loses the
    product, so that they start below 1: that is the default.

    References
    ----------
    Shi, Larson and Hanjalic 2010, List-wise learning to rank with matrix factorization for
    collaborative filtering, equations 4 to 7; mena2021 section 8 (ListRankMF), where ratings 1
    to 5 enter as 0, 0, 0, 1, 2.

    Examples
    --------
    User 3 did not rate item 7. The others rate it higher than item 8, and so does the model.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3], [7, 8, 7, 8, 8, 9]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 1, 4, 2, 1, 5]})
    >>> scores = us.recommend.ListRankMF().fit(train).score(train.user[-1:])[0]
    >>> bool(scores[0] > scores[1])
    True
    """

    factors: int = count(5, "Number of factors.")
    learning_rate: float = number(1.0, "Step size before the first doubling.", above=0)
    regularisation: float = number(0.06, "λ.")
    epochs: int = count(30, "Iterations.")
    start: float = number(1.0, "Upper bound of the initial factors; above 0.", above=0)
    divisor: float | None = number(
        None,
        """d, above 0: the divisor of the ratings. A larger d makes the target distribution flatter.
        None = the largest training rating, as in the paper and in LibRec (1 if that is not above
        0). On the ratings 0, 1, 2 of mena2021 that is 2, but 3 gives the released values on
        MovieLens 1M; why 3 is not known. `unskew_studies.preset("mena2021")` takes 3.""",
        above=0,
    )

    name: ClassVar[str] = "list-rank-mf"
    draw_name: ClassVar[str] = "list-rank-mf"
    tuning: ClassVar[Grid] = {"factors": (5, 20), "regularisation": (0.001, 0.01, 0.06)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        P = padded(rng.uniform(0.0, self.start, (len(train.users), self.factors)))
        Q = padded(rng.uniform(0.0, self.start, (len(train.items), self.factors)))
        lists = RatedLists.of(train, float(self.regularisation), self.divisor)
        step = float(self.learning_rate)
        loss, squashed = lists.loss(P, Q)
        for _ in range(self.epochs):
            to_p, to_q = lists.gradient(P, Q, squashed)
            step *= 2
            while True:
                new_p, new_q = P - step * to_p, Q - step * to_q
                result, at_new = lists.loss(new_p, new_q)
                if result <= loss:
                    break
                step /= 2
            P, Q, loss, squashed = new_p, new_q, result, at_new
        return learned(train, P, Q, 0.0, np.zeros(len(Q)), self.factors)


@dataclass(frozen=True, eq=False)
class RatedLists:
    """The loss of ListRankMF on training ratings, and its gradient."""

    lists: Rows
    """t_ui per rating."""
    by_item: Raters
    penalty: float

    @classmethod
    def of(cls, train: Ratings, penalty: float, divisor: float | None = None) -> RatedLists:
        """Prepare the distributions of the ratings."""
        top = float(train.value.max())
        if divisor is None:
            divisor = top if top > 0 else 1.0
        raised = np.exp((train.value - top) / divisor)
        mass = np.bincount(train.user, raised, len(train.users))
        lists = user_rows(train, raised / mass[train.user])
        return cls(lists.arrays, lists.by_column(), penalty)

    def loss(self, P: F64, Q: F64) -> tuple[float, F64]:
        """Return the loss, and σ(p_u·q_i) per rating."""
        from unskew.recommend.kernels import pairwise as kernels

        start, size = self.lists.start, self.lists.value.size
        losses, squashed = np.empty(len(P)), np.empty(size)

        def fill(low: int) -> None:
            high = min(low + BLOCK, len(P))
            part = squashed[start[low] : start[high]]
            kernels.list_losses(low, self.lists, P, Q, part, losses[low:high])

        map_blocks(fill, range(0, len(P), BLOCK), size=size)
        squares = float((P * P).sum() + (Q * Q).sum())
        return float(losses.sum()) + 0.5 * self.penalty * squares, squashed

    def gradient(self, P: F64, Q: F64, squashed: F64) -> tuple[F64, F64]:
        """Return the gradient where `loss` gave σ(p_u·q_i)."""
        from unskew.recommend.kernels import pairwise as kernels

        size = self.lists.value.size
        slope, to_p, to_q = np.empty(size), np.empty_like(P), np.empty_like(Q)

        def of_users(low: int) -> None:
            high = min(low + BLOCK, len(P))
            kernels.user_slopes(low, high, self.lists, Q, squashed, slope, to_p)

        def of_items(low: int) -> None:
            kernels.item_gradients(low, min(low + BLOCK, len(Q)), self.by_item, slope, P, to_q)

        map_blocks(of_users, range(0, len(P), BLOCK), size=size)
        map_blocks(of_items, range(0, len(Q), BLOCK), size=size)
        return to_p + self.penalty * P, to_q + self.penalty * Q
