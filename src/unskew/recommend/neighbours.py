"""Neighbourhood methods: what similar users rated, and what resembles the items of a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, I32, frozen
from unskew.data.ratings import Ratings
from unskew.errors import DataError
from unskew.recommend.matrices.similarity import Cosines, Nearest, item_neighbours, user_neighbours
from unskew.recommend.matrices.sparse import SparseRows, Votes, rated_users, sums, user_rows
from unskew.recommend.model import Algorithm, Axes, Grid, Model
from unskew.settings import choice, count, finite, flag, number

VOTES = ("rating", "truncated")
LISTS = ("rated", "target")


def powered(similarity: F64, power: float) -> F64:
    """Raise similarities to a power; 0, which means no neighbour, stays 0."""
    if power == 1.0:
        return similarity
    raised: F64 = np.where(similarity > 0, similarity**power, 0.0)
    return raised


@dataclass(frozen=True, eq=False)
class AllVotes:
    """The votes of all users, weighted by similarities that are computed when they are needed."""

    cosines: Cosines
    votes: F64
    power: float
    normalised: bool
    min_support: int
    axes: ClassVar[Axes] = {
        "cosines.rows": ("users", "items", "votes"),
        "cosines.inverted": ("items", "users"),
        "cosines.length": ("users",),
        "cosines.other_length": ("users",),
        "votes": ("votes",),
    }

    def score(self, users: I32) -> F64:
        """Add up the votes for a few users at a time."""
        result = np.empty((users.size, self.cosines.rows.columns))
        # Few enough for their similarities to stay in the cache, and in memory with many users.
        width = max(1, min(64, (1 << 23) // len(self.cosines.rows)))
        for low in range(0, users.size, width):
            result[low : low + width] = self._score(users[low : low + width])
        return result

    def _score(self, users: I32) -> F64:
        from unskew.recommend.kernels import neighbours as kernels

        rows, inverted = self.cosines.rows, self.cosines.inverted
        similarity = self.cosines.block(users)
        enough = np.empty((users.size, rows.columns), np.bool_)
        kernels.supported(similarity, inverted.start, inverted.column, self.min_support, enough)
        weight = frozen(powered(similarity, self.power).T)
        total = np.zeros((rows.columns, users.size))
        kernels.all_votes(weight, rows.start, rows.column, self.votes, False, total)
        if self.normalised:
            mass = np.zeros(total.shape)
            kernels.all_votes(weight, rows.start, rows.column, self.votes, True, mass)
            np.divide(total, mass, out=total, where=mass > 0)
        score: F64 = np.where(enough, total.T, np.nan)
        return score


def _most_neighbours(settings: Sequence[UserKNN] | Sequence[ItemKNN]) -> dict[float, int]:
    """Return the largest k of each asymmetry; all neighbours are a matter of their own."""
    largest: dict[float, int] = {}
    for setting in settings:
        if setting.k is not None:
            largest[setting.asymmetry] = max(setting.k, largest.get(setting.asymmetry, 0))
    return largest


@dataclass(frozen=True)
class UserKNN(Algorithm):
    """User-based nearest neighbours: the votes of similar users, weighted by similarity.

    s(u, i) = Σ_{v ∈ V_u} cos(u, v)^power · r_vi, where V_u holds the k users with the largest
    cosine to u. The cosine is that of the whole rating vectors, missing ratings being 0. Users
    with no positive cosine are never neighbours; equal cosines go to the smaller user number.
    An item that no neighbour rated has no score; one that they rated with 0 scores 0.

    References
    ----------
    castells2018 section 7.2 (k = 50, all users for test targets); carraro2020 section 5.4 (k tuned
    between 10 and 100). Asymmetric cosines: Aiolli, Efficient top-N recommendation for very large
    scale binary rated datasets, RecSys 2013; RankSys' `VectorCosineSimilarity`.

    Examples
    --------
    User 2 resembles user 1 and rated item 9 with 3; item 10 has only a rating by user 3, who has no
    item in common with user 1.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> us.recommend.UserKNN().fit(train).score(train.user[:1]).round(2)  # of user 1
    array([[3.53, 4.42, 2.65,  nan]])
    """

    name: ClassVar[str] = "user-knn"
    draw_name: ClassVar[str] = "user-knn"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, None)}

    k: int | None = count(100, "Neighbours per user; None = all users.", optional=True)
    power: float = number(
        1.0,
        "Exponent of the similarity. Large values make near neighbours count more.",
    )
    votes: str = choice(
        "rating",
        """`rating`: r_vi as it is. `truncated`: max(r_vi - threshold + 1, 0), so that only liked
        items gain; similarities still come from the ratings.""",
        VOTES,
    )
    threshold: float = finite(
        4.0,
        "The least rating that a truncated vote counts in full; only for `truncated`.",
    )
    normalised: bool = flag(
        False,
        """Whether to divide by the sum of the weights of the neighbours that rated the item: an
        average vote in place of a sum.""",
    )
    min_support: int = count(
        1,
        """How many neighbours must have rated an item to give it a score. An average of one or two
        votes says little: take 3 with `normalised`.""",
    )
    asymmetry: float = number(
        0.5,
        """α from 0 to 1: u·v is divided by ‖u‖^2α ‖v‖^2(1-α). 0.5 is the cosine; 1 divides by the
        length of u alone, which prefers neighbours with many ratings.""",
        most=1.0,
    )

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        return self.learn_shared(self.share_work([self], train), train, rng)

    @classmethod
    def share_work(cls, settings: Sequence[UserKNN], train: Ratings) -> Nearest:
        """Return the neighbours of the largest k, of which the first are those of smaller ones."""
        rows = user_rows(train)
        return Nearest(rows, rows.transposed(), _most_neighbours(settings))

    def learn_shared(self, shared: Nearest, train: Ratings, rng: np.random.Generator) -> Model:
        """Take the first neighbours."""
        votes = train.value
        if self.votes == "truncated":
            votes = frozen(np.maximum(votes - self.threshold + 1, 0.0))
        cosines = shared.cosines(self.asymmetry)
        if self.k is None:
            return AllVotes(cosines, votes, self.power, self.normalised, self.min_support)
        near = shared.first(self.k, self.asymmetry)
        return Votes(
            near.with_values(powered(near.value, self.power)),
            cosines.rows.with_values(votes),
            "second" if self.normalised else "",
            self.min_support,
        )


@dataclass(frozen=True)
class ItemKNN(Algorithm):
    """Item-based nearest neighbours: items that resemble those the user rated.

    s(u, i) = Σ_{j ∈ I_u} r_uj · cos(i, j)^power over the pairs in which i is among the k nearest
    items of j (`lists="rated"`) or j among those of i (`lists="target"`). The cosine is that of
    the whole rating vectors, missing ratings being 0. Items with no positive cosine are never
    neighbours; equal cosines go to the smaller item number. An item that is near none of the
    user's items has no score.

    References
    ----------
    carraro2020 section 5.4 (lists of the rated item, k tuned between 10 and 100). Asymmetric
    cosines: Aiolli, Efficient top-N recommendation for very large scale binary rated datasets,
    RecSys 2013; RankSys' `VectorCosineSimilarity`.

    Examples
    --------
    Item 9 is near both items of user 1; nobody rated item 10 together with one of them.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> us.recommend.ItemKNN().fit(train).score(train.user[:1]).round(2)  # of user 1
    array([[3.9 , 4.88, 6.25,  nan]])
    """

    name: ClassVar[str] = "item-knn"
    draw_name: ClassVar[str] = "item-knn"
    tuning: ClassVar[Grid] = (
        {"k": 20},
        {"k": 200, "lists": "target"},
        {"k": 100},
        {"k": None},
        {"k": 50, "lists": "target"},
        {"k": 10},
    )

    k: int | None = count(20, "Neighbours per item; None = all items.", optional=True)
    power: float = number(1.0, "Exponent of the similarity.")
    lists: str = choice(
        "rated",
        """Whose neighbours count: those of the `rated` item, or those of the `target` item, which
        gives rarely rated items a better chance.""",
        LISTS,
    )
    normalised: bool = flag(
        False,
        """Whether to divide by the sum of the weights: an average rating in place of a sum.""",
    )
    min_support: int = count(1, "How many rated neighbours an item needs to have a score.")
    asymmetry: float = number(
        0.5,
        """α from 0 to 1: a·b is divided by ‖a‖^2α ‖b‖^2(1-α), where a is the item whose neighbours
        count (see `lists`) and b the neighbour. 0.5 is the cosine; 1 divides by the length of a
        alone, which prefers neighbours with many ratings.""",
        most=1.0,
    )

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        return self.learn_shared(self.share_work([self], train), train, rng)

    @classmethod
    def share_work(cls, settings: Sequence[ItemKNN], train: Ratings) -> Nearest:
        """Return the neighbours of the largest k, of which the first are those of smaller ones."""
        rows = user_rows(train)
        is_shared = len(settings) > 1
        return Nearest(rows.transposed(), rows, _most_neighbours(settings), is_trial=is_shared)

    def learn_shared(self, shared: Nearest, train: Ratings, rng: np.random.Generator) -> Model:
        """Take the first neighbours."""
        near = shared.first(self.k, self.asymmetry)
        weights = near.with_values(powered(near.value, self.power))
        return Votes(
            user_rows(train),
            weights if self.lists == "rated" else weights.transposed(),
            "first" if self.normalised else "",
            self.min_support,
        )


@dataclass(frozen=True, eq=False)
class Deviations:
    """A baseline estimate, corrected by how neighbours deviate from theirs."""

    first: SparseRows
    second: SparseRows
    """Products of the two are the corrections: similarity and deviation, in either order."""
    mean: float
    user_bias: F64
    item_bias: F64
    """NaN where there are no ratings, here and for users."""
    axes: ClassVar[Axes] = {
        "first": ("users", "neighbours"),
        "second": ("neighbours", "items"),
        "user_bias": ("users",),
        "item_bias": ("items",),
    }

    def score(self, users: I32) -> F64:
        """Add the corrections to the baseline."""
        correction, _ = sums(users, self.first, self.second)
        baseline = self.mean + self.user_bias[users][:, np.newaxis] + self.item_bias
        score: F64 = baseline + correction
        return score


def biases(train: Ratings, user_shrink: float, item_shrink: float) -> tuple[float, F64, F64]:
    """Return the baseline's mean and the biases of users and items; NaN without ratings.

    b_i = Σ_u (r_ui - μ) / (item_shrink + n_i), then
    b_u = Σ_i (r_ui - μ - b_i) / (user_shrink + n_u).
    """
    mean = float(train.value.mean())
    item_bias = _shrunk_mean(train.item, train.value - mean, len(train.items), item_shrink)
    residual = train.value - mean - item_bias[train.item]
    return mean, _shrunk_mean(train.user, residual, len(train.users), user_shrink), item_bias


def _shrunk_mean(group: I32, value: F64, groups: int, shrink: float) -> F64:
    count = np.bincount(group, minlength=groups)
    total = np.bincount(group, value, groups)
    result = np.full(groups, np.nan)
    np.divide(total, count + shrink, out=result, where=count > 0)
    return result


@dataclass(frozen=True)
class _NNCosNgbr(Algorithm):
    """What the user- and the item-based forms share."""

    k: int | None = count(200, "Neighbours per user or item; None = all.", optional=True)
    shrink: float = number(
        100.0, "λ: pulls similarities that rest on few common ratings towards 0."
    )
    user_shrink: float = number(
        10.0, "The same for the biases of users: the number of added ratings without deviation."
    )
    item_shrink: float = number(25.0, "The same for the biases of items.")

    def _baseline(self, train: Ratings) -> tuple[SparseRows, tuple[float, F64, F64]]:
        """Return how ratings deviate from the baseline, by user, and the baseline."""
        mean, user_bias, item_bias = biases(train, self.user_shrink, self.item_shrink)
        deviation = train.value - mean - user_bias[train.user] - item_bias[train.item]
        rows = user_rows(train).with_values(deviation)
        return rows, (mean, frozen(user_bias), frozen(item_bias))


@dataclass(frozen=True)
class NNCosNgbrUB(_NNCosNgbr):
    """Non-normalised cosine neighbourhood, user-based.

    s(u, i) = b_ui + Σ_{v ∈ V_u, v rated i} d_uv (r_vi - b_vi), where d_uv = cos(u, v) · n/(n + λ),
    n being how many items both rated, and V_u the k users with the largest d_uv. The cosine is
    that of the whole rating vectors, missing ratings being 0, as the paper has it; not that of
    the deviations. The sum is not divided by the similarities, so that items with many near
    raters can move far. The baseline is b_ui = μ + b_u + b_i with shrunk biases (Koren 2010).
    Where no neighbour rated the item, its score is the baseline.

    References
    ----------
    Cremonesi et al. 2010 section 3, there for items; valcarce2018 section 5 (NNCosNgbr-UB);
    bellogin2017 section 3.3 (kNN).

    Examples
    --------
    Without shrinkage the baseline is here the mean of each item: 4.5, 4.5, 3 and 5. User 2, the
    neighbour of user 1, rated item 7 lower than that and item 8 higher.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> system = us.recommend.NNCosNgbrUB(shrink=0, user_shrink=0, item_shrink=0)
    >>> system.fit(train).score(train.user[:1]).round(2)  # of user 1
    array([[4.06, 4.94, 3.  , 5.  ]])
    """

    name: ClassVar[str] = "nncosngbr-ub"
    draw_name: ClassVar[str] = "nncosngbr-ub"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, None)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        deviation, baseline = self._baseline(train)
        return Deviations(user_neighbours(train, self.k, self.shrink), deviation, *baseline)


@dataclass(frozen=True)
class NNCosNgbrIB(_NNCosNgbr):
    """Non-normalised cosine neighbourhood, item-based.

    s(u, i) = b_ui + Σ_{j ∈ J_i ∩ I_u} d_ij (r_uj - b_uj), where J_i holds the k items with the
    largest d_ij = cos(i, j) · n/(n + λ), n being how many users rated both. Cosine and baseline
    are those of `NNCosNgbrUB`. The paper takes the k nearest *among the items that the user
    rated*, k being 200: for users with no more ratings than that, k = None here.

    References
    ----------
    Cremonesi et al. 2010 section 3; valcarce2018 section 5 (NNCosNgbr-IB).

    Examples
    --------
    Without shrinkage the baseline is here the mean of each item: 4.5, 4.5, 3 and 5. Item 9 is
    nearer to item 8, which user 1 rated lower than that, than to item 7; item 10 is near none.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> system = us.recommend.NNCosNgbrIB(shrink=0, user_shrink=0, item_shrink=0)
    >>> system.fit(train).score(train.user[:1]).round(2)  # of user 1
    array([[4.01, 4.99, 2.92, 5.  ]])
    """

    name: ClassVar[str] = "nncosngbr-ib"
    draw_name: ClassVar[str] = "nncosngbr-ib"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, None)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        deviation, baseline = self._baseline(train)
        targets = item_neighbours(train, self.k, self.shrink).transposed()
        return Deviations(deviation, targets, *baseline)


@dataclass(frozen=True, eq=False)
class RatingFeedback:
    """Items weighted by how they stand in the ratings of a user's neighbours."""

    weight: str
    neighbours: SparseRows
    ratings: SparseRows
    share: F64
    """p(i|C): an item's share of the sum of all ratings."""
    length: float
    """By how many users p(i|C) is divided, as p(i|V_u) by |V_u|; 0 = neither is."""
    axes: ClassVar[Axes] = {
        "neighbours": ("users", "users"),
        "ratings": ("users", "items"),
        "share": ("items",),
    }

    def score(self, users: I32) -> F64:
        """Weigh the items that neighbours rated; the others have no score."""
        total, raters = sums(users, self.neighbours, self.ratings, count_first=True)
        size = np.maximum(np.diff(self.neighbours.start)[users], 1).astype(np.float64)
        score = total / size[:, np.newaxis]
        if self.weight != "rw":
            mass = total.sum(axis=1)
            near = total / np.where(mass > 0, mass, 1.0)[:, np.newaxis]
            if self.weight == "rsv":
                score *= near
            elif self.length:
                score = self._stand_out(near / size[:, np.newaxis], self.share / self.length)
            else:
                score = self._stand_out(near, self.share)
        score[raters == 0] = np.nan
        return score

    def _stand_out(self, near: F64, everywhere: F64) -> F64:
        """Compare p(i|V_u) with p(i|C); items that only got ratings of 0 do not stand out."""
        score = np.zeros(near.shape)
        if self.weight == "chi2":
            np.divide((near - everywhere) ** 2, everywhere, out=score, where=everywhere > 0)
        else:
            np.divide(near, everywhere, out=score, where=near > 0)
            np.log(score, out=score, where=near > 0)
            score *= near
        return score


@dataclass(frozen=True)
class _Rocchio(Algorithm):
    """What the four weights share."""

    k: int = count(200, "Neighbours per user. 200 gives the published values on MovieLens 1M.")

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        negative = int((train.value < 0).sum())
        if negative and self.name != "rw":
            raise DataError(
                f"{self.name} takes ratings as shares of a sum, but {negative:,} are negative; "
                f"shift them all"
            )
        mass = np.bincount(train.item, train.value, len(train.items))
        share = mass / (mass.sum() or 1.0)
        length = np.count_nonzero(rated_users(train)) if self._by_length else 0
        near = user_neighbours(train, self.k)
        return RatingFeedback(self.name, near, user_rows(train), frozen(share), float(length))

    @property
    def _by_length(self) -> bool:
        """Whether shares are divided by the number of users that they rest on."""
        return False


@dataclass(frozen=True)
class RW(_Rocchio):
    """Rocchio's weights: the average rating of the neighbours, missing ratings being 0.

    s(u, i) = Σ_{v ∈ V_u} r_vi / |V_u|, V_u being the k users with the largest cosine to u (see
    `UserKNN`). An item that no neighbour rated has no score.

    References
    ----------
    valcarce2018 section 5 (Rocchio's Weights), after Valcarce et al. 2016.

    Examples
    --------
    User 2 is the only neighbour of user 1, so that the scores are that user's ratings.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> us.recommend.RW().fit(train).score(train.user[:1])  # of user 1
    array([[ 4.,  5.,  3., nan]])
    """

    name: ClassVar[str] = "rw"
    draw_name: ClassVar[str] = "rw"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, 400)}


@dataclass(frozen=True)
class RSV(_Rocchio):
    """Robertson's selection value: Rocchio's weight times the item's share among neighbours.

    s(u, i) = Σ_{v ∈ V_u} r_vi / |V_u| · p(i|V_u), where p(i|V_u) = Σ_v r_vi / Σ_v Σ_j r_vj. For
    one user both factors are multiples of Σ_v r_vi, so that the order is that of `RW`.

    References
    ----------
    valcarce2018 section 5 (RSV), after Valcarce et al. 2016.

    Examples
    --------
    The scores differ from those of `RW`, their order does not.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> systems = us.recommend.RSV(k=10), us.recommend.RW(k=10)
    >>> rsv, rw = (one.fit(shop).score(shop.user[:1]).argsort(kind="stable") for one in systems)
    >>> bool((rsv == rw).all())
    True
    """

    name: ClassVar[str] = "rsv"
    draw_name: ClassVar[str] = "rsv"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, 400)}


@dataclass(frozen=True)
class _Divergence(_Rocchio):
    """What the two weights that compare neighbours with all users share."""

    length_normalised: bool = flag(
        True, "Whether to divide by |V_u| and |C|, or to compare the plain shares."
    )

    @property
    def _by_length(self) -> bool:
        return self.length_normalised


@dataclass(frozen=True)
class CHI2(_Divergence):
    """Chi-square: how far an item's share among neighbours is from its share among all users.

    s(u, i) = (p(i|V_u) - p(i|C))² / p(i|C), where p(i|V_u) = 1/|V_u| · Σ_v r_vi / Σ_v Σ_j r_vj
    over the neighbours, and p(i|C) the same over all users with ratings. The factors 1/|V_u| and
    1/|C| normalise by length: they give the published values, and plain shares do not. Items
    that no neighbour rated have no score.

    References
    ----------
    valcarce2018 section 5 (CHI2), after Valcarce et al. 2016.

    Examples
    --------
    User 2, the neighbour of user 1, rated item 9 lowest, but nobody else rated it: its share among
    neighbours stands out most.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> us.recommend.CHI2().fit(train).score(train.user[:1]).round(2)  # of user 1
    array([[0.41, 0.79, 1.16,  nan]])
    """

    name: ClassVar[str] = "chi2"
    draw_name: ClassVar[str] = "chi2"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, 400)}


@dataclass(frozen=True)
class KLD(_Divergence):
    """Kullback-Leibler: what an item adds to the divergence of neighbours from all users.

    s(u, i) = p(i|V_u) · log(p(i|V_u) / p(i|C)), with the shares of `CHI2`, normalised by length.
    Items that no neighbour rated have no score.

    References
    ----------
    valcarce2018 section 5 (KLD), after Valcarce et al. 2016.

    Examples
    --------
    The share among neighbours counts as well: item 8 comes before item 9, unlike with `CHI2`.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> us.recommend.KLD().fit(train).score(train.user[:1]).round(2)  # of user 1
    array([[0.35, 0.54, 0.47,  nan]])
    """

    name: ClassVar[str] = "kld"
    draw_name: ClassVar[str] = "kld"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, 400)}
