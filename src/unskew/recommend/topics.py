"""Topics: users are mixtures of topics, and topics are distributions over items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unskew.data.ratings import Ratings, frozen
from unskew.errors import DataError
from unskew.protocol.amounts import as_count
from unskew.recommend.model import Algorithm, Model, as_number
from unskew.recommend.products import factor_model
from unskew.recommend.sgd import padded
from unskew.recommend.sparse import rated_items, user_rows
from unskew.threads import map_blocks

F64 = NDArray[np.float64]

# Users or items per task; the results do not depend on it.
_ROWS_PER_TASK = 128


class Shares:
    """Shares the ratings out among topics: the expected counts that both models need.

    A rating r_ui counts for topic z in proportion to θ_uz φ_iz. Users are counted from their own
    rows and items from theirs, so that no two tasks write to the same place.
    """

    def __init__(self, name: str, train: Ratings) -> None:
        if train.value.min() < 0:
            row = int(np.argmax(train.value < 0))
            raise DataError(
                f"{name} takes ratings as counts, which cannot be negative, but "
                f"{int((train.value < 0).sum())} are, the first {train.value[row]:g} in row "
                f"{row + 1}; shift the ratings, or leave the negative ones out"
            )
        self.train = train
        self.size = len(train)
        self.by_item = user_rows(train).by_column()
        self.ratio = np.empty(self.size)
        self.likelihood = np.empty(len(train.users))

    def count(self, theta: F64, phi: F64, by_user: F64, by_item: F64) -> float:
        """Fill the expected counts by user and by item, return Σ r_ui ln Σ_z θ_uz φ_iz."""
        from unskew.recommend import _topic_kernels

        train = self.train
        theta, phi = frozen(theta), frozen(phi)

        def users(first: int, last: int) -> None:
            _topic_kernels.count_by_user(
                first, last, train.start, train.item, train.value, theta, phi,
                self.ratio, by_user, self.likelihood,
            )  # fmt: skip

        def items(first: int, last: int) -> None:
            _topic_kernels.count_by_item(
                first, last, *self.by_item, frozen(self.ratio), theta, phi, by_item
            )

        self.share_out(users, theta.shape[0])
        self.share_out(items, phi.shape[0])
        return float(self.likelihood.sum())

    def share_out(self, function: Callable[[int, int], None], rows: int) -> None:
        """Apply a function to all rows, task by task."""
        map_blocks(
            lambda first: function(first, min(first + _ROWS_PER_TASK, rows)),
            range(0, rows, _ROWS_PER_TASK),
            size=self.size,
        )


def normalised(counts: F64, axis: int) -> F64:
    """Divide by the sums along an axis; where a sum is 0 all stays 0."""
    total = counts.sum(axis=axis, keepdims=True)
    shares: F64 = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    return shares


@dataclass(frozen=True)
class PLSA(Algorithm):
    """Probabilistic latent semantic analysis: p(i|u) = Σ_z p(z|u) p(i|z).

    Maximises Σ r_ui ln p(i|u), a rating counting as often as its value says, by expectation
    maximisation without tempering:

        p(z|u,i) ∝ p(z|u) p(i|z),    p(z|u) ∝ Σ_i r_ui p(z|u,i),    p(i|z) ∝ Σ_u r_ui p(z|u,i)

    p(z|u) and p(i|z) start near uniform, each value uniform in [0.5, 1.5] before normalisation.
    Users whose ratings are all 0 cannot be scored.

    Parameters
    ----------
    topics
        Values of z.
    iterations
        Of expectation and maximisation, at most.
    tolerance
        Stop when the mean logarithm of p(i|u), over what was counted, grows by less; 0 = never.

    References
    ----------
    Hofmann 2004, Latent semantic models for collaborative filtering, section 2.
    """

    topics: int = 50
    iterations: int = 100
    tolerance: float = 0.0

    name: ClassVar[str] = "plsa"

    def __post_init__(self) -> None:
        as_count("topics", self.topics)
        as_count("iterations", self.iterations)
        as_number("tolerance", self.tolerance)

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:
        users, items, K = len(train.users), len(train.items), self.topics
        shares = Shares(self.name, train)
        theta = padded(normalised(rng.uniform(0.5, 1.5, (users, K)), axis=1))
        phi = padded(normalised(rng.uniform(0.5, 1.5, (items, K)), axis=0))
        by_user, by_item = np.empty_like(theta), np.empty_like(phi)
        enough = self.tolerance * float(train.value.sum())
        before = -np.inf
        for _ in range(self.iterations):
            likelihood = shares.count(theta, phi, by_user, by_item)
            theta, phi = normalised(by_user, axis=1), normalised(by_item, axis=0)
            if likelihood - before < enough:
                break
            before = likelihood
        # Ratings of 0 leave a user without topics.
        offset = np.where(theta.sum(axis=1) > 0, 0.0, np.nan)
        return factor_model(train, theta[:, :K], phi[:, :K], offset)


@dataclass(frozen=True)
class LDA(Algorithm):
    """Latent Dirichlet allocation: pLSA whose distributions have Dirichlet priors.

    Users are documents and items are words; a rating counts as often as its value says.
    θ_u ~ Dirichlet(α), φ_z ~ Dirichlet(β). The posterior is approximated by independent
    Dirichlet(γ_u) and Dirichlet(λ_z) (mean-field variational inference), which coordinate ascent
    finds:

        π_uiz ∝ exp(E[ln θ_uz] + E[ln φ_zi]),  γ_uz = α + Σ_i r_ui π_uiz,  λ_zi = β + Σ_u r_ui π_uiz

    Each iteration updates all of π, γ and λ once: no step lowers the evidence bound, all users
    are treated alike, and the result depends on no order. Scores are Σ_z E[θ_uz] E[φ_zi]. γ and λ
    start as Gamma(100) draws divided by 100.

    Parameters
    ----------
    topics
        Number of topics.
    alpha
        Prior of a user's topics.
    beta
        Prior of a topic's items.
    iterations
        Updates of everything.

    References
    ----------
    Blei, Ng and Jordan 2003, Latent Dirichlet allocation, sections 5.2 to 5.4.
    """

    topics: int = 100
    alpha: float = 0.25
    beta: float = 0.5
    iterations: int = 100

    name: ClassVar[str] = "lda"

    def __post_init__(self) -> None:
        as_count("topics", self.topics)
        as_number("alpha", self.alpha, above=True)
        as_number("beta", self.beta, above=True)
        as_count("iterations", self.iterations)

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:
        users, items, K = len(train.users), len(train.items), self.topics
        shares = Shares(self.name, train)
        known = rated_items(train)[:, None]
        gamma = padded(rng.gamma(100.0, 0.01, (users, K)))
        lamda = padded(rng.gamma(100.0, 0.01, (items, K)) * known)
        theta, phi = np.zeros_like(gamma), np.zeros_like(lamda)
        for _ in range(self.iterations):
            self._expected_logs(shares, gamma, np.ones(K), theta)
            self._expected_logs(shares, lamda, lamda.sum(axis=0), phi)
            shares.count(theta, phi, gamma, lamda)
            gamma[:, :K] += self.alpha
            lamda[:, :K] += self.beta * known
        theta, phi = normalised(gamma[:, :K], axis=1), normalised(lamda[:, :K], axis=0)
        return factor_model(train, theta, phi)

    def _expected_logs(self, shares: Shares, a: F64, total: F64, out: F64) -> None:
        """Fill e to the expected logarithms of all rows."""
        from unskew.recommend import _topic_kernels

        a, total = frozen(a), frozen(total[: self.topics])

        def rows(first: int, last: int) -> None:
            _topic_kernels.expected_logs(first, last, a, total, out)

        shares.share_out(rows, a.shape[0])
