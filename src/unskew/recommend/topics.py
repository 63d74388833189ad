"""Topics: users are mixtures of topics, which are distributions over items or ratings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, Mask, Raters, Rows, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.errors import DataError
from unskew.recommend.matrices.sparse import (
    factor_model,
    rated_items,
    rated_users,
    times,
    user_rows,
)
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.recommend.sgd import padded
from unskew.settings import count, number

# Users or items per task; the results do not depend on it.
_ROWS_PER_TASK = 128


class Shares:
    """Shares the ratings out among topics: the expected counts that models of counts need.

    A rating r_ui, or another value in its place, counts for topic z in proportion to θ_uz φ_iz.
    Users are counted from their own rows and items from theirs, so that no two tasks write to the
    same place.
    """

    def __init__(self, name: str, train: Ratings, value: F64 | None = None) -> None:
        self.value = train.value if value is None else frozen(value)
        if self.value.min() < 0:
            row = int(np.argmax(self.value < 0))
            raise DataError(
                f"{name} takes ratings as counts, which cannot be negative, but "
                f"{int((self.value < 0).sum())} are, the first {self.value[row]:g} in row "
                f"{row + 1}; shift the ratings, or leave the negative ones out"
            )
        self.size = len(train)
        rows = user_rows(train, self.value)
        self.rows, self.by_item = rows.arrays, rows.by_column()
        self.ratio = np.empty(self.size)
        self.likelihood = np.empty(len(train.users))

    def count(
        self, theta: F64, phi: F64, by_user: F64, by_item: F64, wants_likelihood: bool = True
    ) -> float:
        """Fill the expected counts by user and by item, return Σ r_ui ln Σ_z θ_uz φ_iz if wanted.

        Logarithms take a good part of the time.
        """
        from unskew.recommend.kernels import topics as topic_kernels

        theta, phi = frozen(theta), frozen(phi)

        def users(first: int, last: int) -> None:
            topic_kernels.count_by_user(
                first=first,
                last=last,
                ratings=self.rows,
                theta=theta,
                phi=phi,
                ratio=self.ratio,
                counts=by_user,
                wants_likelihood=wants_likelihood,
                likelihood=self.likelihood,
            )

        def items(first: int, last: int) -> None:
            topic_kernels.count_by_item(
                first, last, self.by_item, frozen(self.ratio), theta, phi, by_item
            )

        share_out(users, theta.shape[0], self.size)
        share_out(items, phi.shape[0], self.size)
        return float(self.likelihood.sum())


def share_out(function: Callable[[int, int], None], rows: int, size: int) -> None:
    """Apply a function to all rows, task by task."""
    map_blocks(
        lambda first: function(first, min(first + _ROWS_PER_TASK, rows)),
        range(0, rows, _ROWS_PER_TASK),
        size=size,
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

    References
    ----------
    Hofmann 2004, Latent semantic models for collaborative filtering, section 2.

    Examples
    --------
    Two groups of users rate two groups of items: each group has a topic of its own, and the scores
    of a user are probabilities.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3, 4, 4], [7, 8, 7, 8, 9, 10, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item})
    >>> us.recommend.PLSA(topics=2).fit(train).score(train.user[:1]).round(2).tolist()
    [[0.5, 0.5, 0.0, 0.0]]
    """

    topics: int = count(50, "Number of topics (values of z).")
    iterations: int = count(100, "Largest number of expectation-maximisation steps.")
    tolerance: float = number(
        0.0,
        """Stop when the mean log p(i|u) over the ratings grows by less than this; 0 = never.""",
    )

    name: ClassVar[str] = "plsa"
    draw_name: ClassVar[str] = "plsa"
    tuning: ClassVar[Grid] = {"topics": (1, 2, 5, 10, 20, 50)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        users, items, K = len(train.users), len(train.items), self.topics
        shares = Shares(self.name, train)
        theta = padded(normalised(rng.uniform(0.5, 1.5, (users, K)), axis=1))
        phi = padded(normalised(rng.uniform(0.5, 1.5, (items, K)), axis=0))
        by_user, by_item = np.empty_like(theta), np.empty_like(phi)
        enough = self.tolerance * float(train.value.sum())
        before = -np.inf
        for _ in range(self.iterations):
            likelihood = shares.count(theta, phi, by_user, by_item, self.tolerance > 0)
            theta, phi = normalised(by_user, axis=1), normalised(by_item, axis=0)
            if self.tolerance > 0 and likelihood - before < enough:
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

    References
    ----------
    Blei, Ng and Jordan 2003, Latent Dirichlet allocation, sections 5.2 to 5.4.

    Examples
    --------
    Unlike with `PLSA`, the priors leave some probability to items of the other group.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3, 4, 4], [7, 8, 7, 8, 9, 10, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item})
    >>> us.recommend.LDA(topics=2).fit(train).score(train.user[:1]).round(1).tolist()
    [[0.4, 0.4, 0.1, 0.1]]
    """

    topics: int = count(100, "Number of topics.")
    alpha: float = number(0.25, "Prior of a user's topics.", above=0)
    beta: float = number(0.5, "Prior of a topic's items.", above=0)
    iterations: int = count(100, "Number of updates of all parameters.")

    name: ClassVar[str] = "lda"
    draw_name: ClassVar[str] = "lda"
    tuning: ClassVar[Grid] = {"topics": (2, 5, 10, 20, 50, 100)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        users, items, K = len(train.users), len(train.items), self.topics
        shares = Shares(self.name, train)
        rated = rated_items(train)[:, None]
        gamma = padded(rng.gamma(100.0, 0.01, (users, K)))
        lamda = padded(rng.gamma(100.0, 0.01, (items, K)) * rated)
        theta, phi = np.zeros_like(gamma), np.zeros_like(lamda)
        for _ in range(self.iterations):
            self._expected_logs(shares, gamma, np.ones(K), theta)
            self._expected_logs(shares, lamda, lamda.sum(axis=0), phi)
            shares.count(theta, phi, gamma, lamda, wants_likelihood=False)
            gamma[:, :K] += self.alpha
            lamda[:, :K] += self.beta * rated
        theta, phi = normalised(gamma[:, :K], axis=1), normalised(lamda[:, :K], axis=0)
        return factor_model(train, theta, phi)

    def _expected_logs(self, shares: Shares, a: F64, total: F64, out: F64) -> None:
        """Fill e to the expected logarithms of all rows."""
        from unskew.recommend.kernels import topics as topic_kernels

        a, total = frozen(a), frozen(total[: self.topics])

        def rows(first: int, last: int) -> None:
            topic_kernels.expected_logs(first, last, a, total, out)

        share_out(rows, a.shape[0], shares.size)


@dataclass(frozen=True)
class GaussianPLSA(Algorithm):
    """Probabilistic latent semantic analysis of ratings: a normal distribution per item and topic.

    Ratings are first standardised by user, v_ui = (r_ui - m_u) / s_u, with the user's mean and
    deviation, both smoothed towards those of all ratings. Then

        p(v|u,i) = Σ_z p(z|u) N(v; μ_iz, σ²_iz)

    is fitted by expectation maximisation: q_uiz ∝ (p(z|u) N(v_ui; μ_iz, σ²_iz))^β, p(z|u) ∝ Σ_i
    q_uiz, and μ_iz, σ²_iz are the mean and variance of v weighted by q. A score is the expected
    rating m_u + s_u Σ_z p(z|u) μ_iz.

    A normal distribution that holds one rating only would have variance 0 and an infinite
    likelihood. So each item and topic has as many more ratings as `prior` says, of mean 0 and
    variance 1, which is about what all standardised ratings have; this is our decision. With
    β = 1 no step lowers the likelihood together with that of the prior's ratings.

    p(z|u) starts near uniform, each value uniform in [0.5, 1.5] before normalisation; μ_iz is the
    item's smoothed mean plus normal noise of deviation 0.1, σ²_iz its smoothed variance. Users and
    items without training ratings cannot be scored.

    References
    ----------
    Hofmann, Collaborative filtering via Gaussian probabilistic latent semantic analysis, SIGIR
    2003; Hofmann, Latent semantic models for collaborative filtering, ACM TOIS 2004. mena2021
    section 8.1 names this model, but ran `PLSA`.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.topics import GaussianPLSA
    >>> rows = {"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [5, 1, 4, 2]}
    >>> train = us.read_ratings(rows)
    >>> score = GaussianPLSA(topics=1).fit(train).score(train.user[:1])
    >>> bool(score[0, 0] > score[0, 1])
    True
    """

    topics: int = count(10, "Number of topics (values of z).")
    iterations: int = count(100, "Number of expectation-maximisation steps.")
    tempering: float = number(
        1.0,
        "β, above 0 and at most 1; below 1, topics are separated less sharply.",
        above=0,
        most=1.0,
    )
    smoothing: float = number(5.0, "Ratings by which a user's mean and deviation are smoothed.")
    prior: float = number(
        1.0,
        """Ratings by which the mean and variance of an item and topic are smoothed, above 0.""",
        above=0,
    )

    name: ClassVar[str] = "gaussian-plsa"
    draw_name: ClassVar[str] = "gaussian-plsa"
    tuning: ClassVar[Grid] = {"topics": (1, 2, 5, 10, 20, 40)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        users, items, K = len(train.users), len(train.items), self.topics
        mean, deviation, value = standardised(train, self.smoothing)
        theta = normalised(rng.uniform(0.5, 1.5, (users, K)), axis=1)
        count = np.bincount(train.item, minlength=items) + self.prior
        centre = np.bincount(train.item, value, items) / count
        square = np.bincount(train.item, value**2, items) + self.prior
        mu = centre[:, None] + rng.normal(0.0, 0.1, (items, K))
        variance = np.repeat((square / count - centre**2)[:, None], K, axis=1)
        by_item = user_rows(train).by_column()
        for _ in range(self.iterations):
            theta, mu, variance = self._improved(train, by_item, value, theta, mu, variance)
        return factor_model(train, deviation[:, None] * theta, mu, mean)

    def _improved(
        self,
        train: Ratings,
        by_item: Raters,
        value: F64,
        theta: F64,
        mu: F64,
        variance: F64,
    ) -> tuple[F64, F64, F64]:
        """Return p(z|u), μ and σ² after a step of expectation and maximisation."""
        from unskew.recommend.kernels import topics as topic_kernels

        with np.errstate(divide="ignore"):
            log_theta = frozen(np.log(theta))
        ratings = Rows(train.start, train.item, value)
        halves = frozen(0.5 / variance), frozen(0.5 * np.log(variance))
        model = topic_kernels.Gaussians(log_theta, frozen(mu), *halves)
        evidence = np.empty(len(train))
        new_theta, new_mu, new_variance = map(np.zeros_like, (theta, mu, variance))

        def users(first: int, last: int) -> None:
            topic_kernels.gaussian_users(
                first, last, ratings, model, self.tempering, evidence, new_theta
            )

        def items(first: int, last: int) -> None:
            settings = self.tempering, frozen(evidence), self.prior
            topic_kernels.gaussian_items(
                first, last, by_item, value, model, *settings, new_mu, new_variance
            )

        share_out(users, len(theta), len(train) * self.topics)
        share_out(items, len(mu), len(train) * self.topics)
        return new_theta, new_mu, new_variance


def standardised(train: Ratings, smoothing: float) -> tuple[F64, F64, F64]:
    """Return the users' means and deviations, smoothed, and the ratings in those terms.

    Where all ratings of a user are equal and nothing smooths them, the deviation is 1.
    """
    users, r = len(train.users), train.value
    centre, spread = float(r.mean()), float(r.var())
    count = np.bincount(train.user, minlength=users) + smoothing
    rated = count > 0
    mean = np.full(users, centre)
    np.divide(np.bincount(train.user, r, users) + smoothing * centre, count, mean, where=rated)
    square = np.bincount(train.user, (r - mean[train.user]) ** 2, users) + smoothing * spread
    deviation = np.sqrt(np.divide(square, count, np.zeros(users), where=rated))
    # What equal ratings leave of rounding is not a deviation.
    deviation[deviation <= 1e-12 * np.abs(mean)] = 1.0
    return mean, deviation, frozen((r - mean[train.user]) / deviation[train.user])


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
    Two groups of users rate two groups of items; X W Wᵀ is then X.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3, 4, 4], [7, 8, 7, 8, 9, 10, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item})
    >>> us.recommend.PNMF(factors=2).fit(train).score(train.user[:1]).round(1).tolist()
    [[1.0, 1.0, 0.0, 0.0]]
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
    Two groups of users rate two groups of items, each with 5; scores are expected counts, those of
    the other group near 0.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3, 4, 4], [7, 8, 7, 8, 9, 10, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5] * 8})
    >>> (us.recommend.HPF(factors=2).fit(train).score(train.user[:1]) > 1).tolist()
    [[True, True, False, False]]
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
        rated = rated_users(train), rated_items(train)
        cells = float(rated[0].sum()) * float(rated[1].sum())
        mean = max(float(train.value.sum()) / cells, np.finfo(float).tiny)
        level = np.sqrt(mean / self.factors)
        users, items = (Gammas(self, rng, who, level) for who in rated)
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

    def __init__(self, prior: HPF, rng: np.random.Generator, rated: Mask, level: float) -> None:
        self.prior = prior
        self.known = rated[:, None]
        draws = rng.gamma(100.0, 0.01, (rated.size, prior.factors))
        self.shape = padded(prior.shape * draws * self.known)
        self.rate = np.full((rated.size, prior.factors), prior.shape / level)
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
        from unskew.recommend.kernels import topics

        shape, rate = frozen(self.shape), frozen(self.rate)
        out = np.zeros_like(self.shape)

        def rows(first: int, last: int) -> None:
            topics.expected_gamma_logs(first, last, shape, rate, out)

        share_out(rows, shape.shape[0], size)
        return out

    def update(self, counts: F64, others: Gammas) -> None:
        """Update the factors, and then their rates, given the counts and the other side."""
        self.shape[:] = counts
        self.shape[:, : self.prior.factors] += self.prior.shape * self.known
        self.rate = self.activity + others.mean().sum(axis=0)
        self.activity = self._activity()
