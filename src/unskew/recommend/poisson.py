"""Poisson factors: a rating is a count, and every missing cell is a count of 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, Mask, frozen
from unskew.data.ratings import Ratings
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.recommend.products import factor_model
from unskew.recommend.sgd import padded
from unskew.recommend.sparse import rated_items, rated_users
from unskew.recommend.topics import Shares, share_out
from unskew.settings import count, number


@dataclass(frozen=True)
class HPF(Algorithm):
    """Hierarchical Poisson factorisation, by variational inference.

    A rating counts as often as its value says, and a missing cell is a count of 0:

        r_ui ~ Poisson(θ_u·β_i),    θ_uk ~ Gamma(a, ξ_u),    β_ik ~ Gamma(a, η_i),
        ξ_u and η_i ~ Gamma(a', a'/b')

    with gamma distributions by shape and rate; ξ and η let users differ in activity and items in
    popularity. The posterior is approximated by independent gamma distributions, which coordinate
    ascent finds. With E[θ] = shape / rate, and shares φ_uik ∝ exp(E[ln θ_uk] + E[ln β_ik]),

        θ_uk: shape a + Σ_i r_ui φ_uik, rate E[ξ_u] + Σ_i E[β_ik]
        ξ_u:  shape a' + K a,           rate a'/b' + Σ_k E[θ_uk]

    and likewise for items; no step lowers the evidence bound. An iteration updates φ, θ, ξ, β, η
    in this order. Scores are E[θ_u]·E[β_i]. Shapes start as a times Gamma(100) draws divided by
    100, rates as if all factors were equal and predicted the mean of all cells. Users and items
    without training ratings take no part and cannot be scored.

    LibRec's BPoissMF, which mena2021 ran under the name BPMF, announces this model but never
    updates it: its published values are those of a random ranking.

    References
    ----------
    Gopalan, Hofman and Blei, Scalable recommendation with hierarchical Poisson factorization, UAI
    2015; mena2021 section 8.1 (10 factors, 100 iterations).

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.poisson import HPF
    >>> train = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 3]})
    >>> score = HPF(factors=2).fit(train).score(train.user[:1])
    >>> bool(score[0, 0] > score[0, 2])
    True
    """

    factors: int = count(10, "K.")
    iterations: int = count(100, "Number of updates of all parameters.")
    shape: float = number(
        0.3,
        "a, of the factors: the smaller, the fewer factors a user or item has.",
        above=0,
    )
    shape_of_rates: float = number(0.3, "a', of activity and popularity.", above=0)
    mean_of_rates: float = number(1.0, "b', the prior mean of ξ and η.", above=0)

    name: ClassVar[str] = "hpf"
    draw_name: ClassVar[str] = "hpf"
    tuning: ClassVar[Grid] = {"factors": (1, 2, 5, 10, 20, 40)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        shares = Shares(self.name, train)
        known = rated_users(train), rated_items(train)
        cells = float(known[0].sum()) * float(known[1].sum())
        mean = max(float(train.value.sum()) / cells, np.finfo(float).tiny)
        level = np.sqrt(mean / self.factors)
        users, items = (Gammas(self, rng, who, level) for who in known)
        by_user, by_item = np.empty_like(users.shape), np.empty_like(items.shape)
        for _ in range(self.iterations):
            theta, beta = users.expected_logs(shares.size), items.expected_logs(shares.size)
            shares.count(theta, beta, by_user, by_item, wants_likelihood=False)
            users.update(by_user, items)
            items.update(by_item, users)
        return factor_model(train, users.mean(), items.mean())


class Gammas:
    """The gamma distributions of all users' factors, or of all items'.

    Parameters
    ----------
    prior
        The settings.
    rng
        What the first shapes are drawn from.
    known
        Who has ratings; all others have no factors.
    level
        What the factors are to be at first, about.
    """

    def __init__(self, prior: HPF, rng: np.random.Generator, known: Mask, level: float) -> None:
        self.prior = prior
        self.known = known[:, None]
        draws = rng.gamma(100.0, 0.01, (known.size, prior.factors))
        self.shape = padded(prior.shape * draws * self.known)
        self.rate = np.full((known.size, prior.factors), prior.shape / level)
        self.activity = self._activity()

    def mean(self) -> F64:
        """Return the expected factors."""
        expected: F64 = self.shape[:, : self.prior.factors] / self.rate
        return expected

    def _activity(self) -> F64:
        """Return the expected rate of each row, given its factors."""
        of = self.prior
        rate = of.shape_of_rates / of.mean_of_rates + self.mean().sum(axis=1, keepdims=True)
        expected: F64 = (of.shape_of_rates + of.factors * of.shape) / rate
        return expected

    def expected_logs(self, size: int) -> F64:
        """Return e to the expected logarithms, each row up to a factor of its own."""
        from unskew.recommend import topic_kernels

        shape, rate = frozen(self.shape), frozen(self.rate)
        out = np.zeros_like(self.shape)

        def rows(first: int, last: int) -> None:
            topic_kernels.expected_gamma_logs(first, last, shape, rate, out)

        share_out(rows, shape.shape[0], size)
        return out

    def update(self, counts: F64, others: Gammas) -> None:
        """Update the factors, and then their rates, given the counts and the other side."""
        self.shape[:] = counts
        self.shape[:, : self.prior.factors] += self.prior.shape * self.known
        self.rate = self.activity + others.mean().sum(axis=0)
        self.activity = self._activity()
