"""Recommenders from language models: a profile is a text, a rating counts how often a word stands.

p(i|v) is the probability of item i in the profile of user v, smoothed with the probability of the
item in the collection, p(i|C) = Σ_v r_vi / Σ_v Σ_j r_vj. A rating of 0 is no occurrence; ratings
below 0 cannot be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, I32, frozen
from unskew.checks import as_number
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.errors import DataError
from unskew.recommend.matrices.similarity import Cosines, nearest
from unskew.recommend.matrices.sparse import (
    ROWS,
    DenseWeights,
    SparseRows,
    Votes,
    in_blocks,
    item_gram,
    rated_users,
    user_rows,
)
from unskew.recommend.model import Algorithm, Axes, Grid, Model
from unskew.settings import choice, count, flag, number

SMOOTHING = ("jelinek-mercer", "dirichlet", "absolute-discounting")

_LEAST = 1e-9  # smoothing below this could overflow a product of probabilities' ratios
_ROWS = 16  # users per task when scoring


def profiles(train: Ratings) -> SparseRows:
    """Return what each user rated above 0."""
    if bool((train.value < 0).any()):
        row = int(np.argmax(train.value < 0))
        raise DataError(
            f"ratings serve as counts here and must not be below 0, but row {row + 1} has "
            f"{train.value[row]:g}; shift the ratings first"
        )
    positive = train.value > 0
    start = np.append(0, np.cumsum(positive))[train.start]
    return SparseRows(
        frozen(start), frozen(train.item[positive]), frozen(train.value[positive]), len(train.items)
    )


def in_collection(texts: SparseRows) -> F64:
    """Return p(i|C), the share of each entry in all profiles."""
    total = np.bincount(texts.column, texts.value, texts.columns)
    share: F64 = total / max(float(total.sum()), np.finfo(float).tiny)
    return share


# Relevance-based language models


@dataclass(frozen=True, eq=False)
class RelevanceModel:
    """The users' language models, p(i|v) = seen_vi + background_v·p(i|C), and who is near.

    Scores by Σ_v p(v) p(i|v) Π_j p(j|v) in the first version, and by
    p(i) Π_j Σ_v p(v) p(i|v)/p(i) p(j|v) in the second.
    """

    version: int
    near: SparseRows
    seen: SparseRows
    background: F64
    collection: F64
    axes: ClassVar[Axes] = {
        "near": ("users", "users"),
        "seen": ("users", "items"),
        "background": ("users",),
        "collection": ("items",),
    }

    def score(self, users: I32) -> F64:
        """Return the logarithms of the relevance model."""
        from unskew.recommend.kernels import topics as kernels

        near, seen = self.near, self.seen
        model = kernels.relevance_model_1 if self.version == 1 else kernels.relevance_model_2
        score = np.empty((users.size, seen.columns))

        def fill(part: I32, rows: slice) -> None:
            model(part, near.arrays, seen.arrays, self.background, self.collection, score[rows])

        in_blocks(users, fill, score.size, _ROWS)
        return score


@dataclass(frozen=True)
class _RelevanceModelling(Algorithm):
    """What RM1 and RM2 share: smoothed language models of the users, and cosine neighbours."""

    k: int = count(100, "Neighbours per user.")
    smoothing: str = choice(
        "absolute-discounting",
        "`jelinek-mercer`, `dirichlet` or `absolute-discounting` (see `smoothed`).",
        SMOOTHING,
    )
    parameter: float = number(0.1, "Its λ (at most 1), μ or δ; from 1e-9 up.", _LEAST)

    _version: ClassVar[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoothing == "jelinek-mercer":
            as_number("parameter", self.parameter, _LEAST, 1.0)

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        texts = profiles(train)
        seen, background = smoothed(texts, self.smoothing, float(self.parameter))
        return RelevanceModel(
            self._version,
            Cosines.of(texts).nearest(self.k),
            texts.with_values(seen),
            frozen(background),
            frozen(in_collection(texts)),
        )


def smoothed(texts: SparseRows, smoothing: str, parameter: float) -> tuple[F64, F64]:
    """Return the two parts of p(i|v) = seen_vi + background_v·p(i|C).

    With |v| = Σ_i r_vi: Jelinek-Mercer has seen (1-λ) r_vi/|v| and background λ; Dirichlet
    r_vi/(|v|+μ) and μ/(|v|+μ); absolute discounting max(r_vi-δ, 0)/|v| and Σ_i min(r_vi, δ)/|v|,
    which is δ|I_v|/|v| where no rating is below δ, and sums to 1 in any case.
    """
    length = texts.sums()
    length[length == 0] = 1.0  # an empty profile is nobody's neighbour
    lengths = length[texts.row]
    if smoothing == "jelinek-mercer":
        return (1 - parameter) * texts.value / lengths, np.full(length.size, parameter)
    if smoothing == "dirichlet":
        return texts.value / (lengths + parameter), parameter / (length + parameter)
    remainder = np.maximum(texts.value - parameter, 0.0)
    return remainder / lengths, texts.with_values(texts.value - remainder).sums() / length


@dataclass(frozen=True)
class RM1(_RelevanceModelling):
    """The likely items of neighbours whose language model explains the whole profile.

    score(u, i) = log Σ_{v in V_u} p(v) p(i|v) Π_{j in I_u} p(j|v)

    V_u are the k nearest users by cosine, without u; p(v) is uniform over them. The product takes
    each item of u once, whatever its rating. The few neighbours with the largest product decide
    nearly alone, which is why RM1 is weak on long profiles. Smoothing gives every item that
    somebody rated a score; users without neighbours have none.

    References
    ----------
    Parapar, Bellogín, Castells, Barreiro: Relevance-based language modelling for recommender
    systems, IP&M 49 (2013), RM1; valcarce2018 section 4.

    Examples
    --------
    Smoothing gives every item a score, also item 11, which no neighbour of user 1 rated.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3, 3, 4], [7, 8, 7, 8, 9, 7, 10, 11]
    >>> train = us.read_ratings({"user": user, "item": item})
    >>> us.recommend.RM1().fit(train).score(train.user[:1]).round(1)
    array([[-3.8, -4. , -4.1, -5.7, -7.2]])
    """

    name: ClassVar[str] = "rm1"
    draw_name: ClassVar[str] = "rm1"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, 400)}
    _version: ClassVar[int] = 1


@dataclass(frozen=True)
class RM2(_RelevanceModelling):
    """Items that occur with each of the user's items in the neighbours' language models.

    score(u, i) = log p(i) Π_{j in I_u} Σ_{v in V_u} p(v) p(i|v)/p(i) p(j|v)

    V_u are the k nearest users by cosine, without u; p(v) is uniform over them, p(i) over all
    items. The product takes each item of u once, whatever its rating. Smoothing gives every item
    that somebody rated a score; users without neighbours have none.

    References
    ----------
    Parapar, Bellogín, Castells, Barreiro: Relevance-based language modelling for recommender
    systems, IP&M 49 (2013), RM2; valcarce2018 section 4.

    Examples
    --------
    Item 9 occurs with both items of user 1, item 10 with one of them, item 11 with none.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3, 3, 4], [7, 8, 7, 8, 9, 7, 10, 11]
    >>> train = us.read_ratings({"user": user, "item": item})
    >>> scores = us.recommend.RM2().fit(train).score(train.user[:1])[0]  # of user 1
    >>> bool(scores[2] > scores[3] > scores[4])
    True
    """

    name: ClassVar[str] = "rm2"
    draw_name: ClassVar[str] = "rm2"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, 400)}
    _version: ClassVar[int] = 2


# Neighbourhoods by language models


def likely_neighbours(texts: SparseRows, k: int, mu: float, *, per_count: bool) -> SparseRows:
    """Return for each profile a the k profiles b that its language model makes most likely.

    s(a, b) = Σ_x r_bx log(p_μ(x|a) / p(x|C)), with p_μ(x|a) = (r_ax + μ p(x|C)) / (|a| + μ), and
    divided by |b| with `per_count`. Where that is not above 0, b is no neighbour.
    """
    length = texts.sums()
    gain = texts.with_values(np.log1p(texts.value / (mu * in_collection(texts)[texts.column])))
    loss = -np.log(mu / (length + mu))
    if per_count:
        return nearest(gain, texts.shares().transposed(), np.ones_like(length), k, toll=loss)
    return nearest(gain, texts.transposed(), length, k, toll=loss)


@dataclass(frozen=True)
class LMWSRUserBased(Algorithm):
    """Weighted sum of the ratings of users whose profile the user's language model makes likely.

    score(u, i) = Σ_{v in V_u} s(u, v) r_vi, NaN where no neighbour rated i

    V_u are the k users with the largest s(u, v) above 0, and s(u, v) is how much more likely the
    profile of v is under the language model of u (Dirichlet smoothing) than under the collection:
    Σ_i r_vi log(p_μ(i|u) / p(i|C)).

    The paper ranks neighbours by query likelihood and leaves the scale of the weights open: a
    logarithm of a probability is below 0, a probability of a whole profile leaves one neighbour.
    The ratio to the collection is 0 for what is as likely as chance. Of the two directions, the
    neighbour as the text that the user's model generates comes nearer to the published values.

    References
    ----------
    Valcarce, Parapar, Barreiro: Language models for collaborative filtering neighbourhoods, ECIR
    2016 (WSR-UB, with Dirichlet priors); valcarce2018 section 4.

    Examples
    --------
    User 3 has no item in common with user 1 and is no neighbour; item 10, which only user 3 rated,
    has no score.

    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> us.recommend.LMWSRUserBased().fit(train).score(train.user[:1]).round(3)
    array([[0.01 , 0.012, 0.007,   nan]])
    """

    k: int = count(100, "Neighbours per user.")
    mu: float = number(
        3_000.0,
        "μ, in counts: the weight of the collection in each language model.",
        above=0,
    )
    per_count: bool = flag(
        False,
        """Divide s(u, v) by |v| = Σ_i r_vi: the mean gain per count instead of the gain of the
        whole profile, which favours long ones.""",
    )
    name: ClassVar[str] = "lm-wsr-ub"
    draw_name: ClassVar[str] = "lm-wsr-ub"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, 400)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        users = profiles(train)
        near = likely_neighbours(users, self.k, float(self.mu), per_count=self.per_count)
        return Votes(near, users)


@dataclass(frozen=True)
class LMWSRItemBased(Algorithm):
    """Weighted sum of the user's ratings of items that the item's language model makes likely.

    score(u, i) = Σ_{j in J_i and I_u} s(i, j) r_uj, NaN where u rated no neighbour of i

    As `LMWSRUserBased` with the exchange of users and items: the text of an item are its users,
    and J_i are the k items with the largest s(i, j) above 0. Here s(i, j) is the mean per count
    of j unless said otherwise: the gain of whole texts grows with the popularity of j.

    References
    ----------
    Valcarce, Parapar, Barreiro: Language models for collaborative filtering neighbourhoods, ECIR
    2016 (WSR-IB, with Dirichlet priors); valcarce2018 section 4.

    Examples
    --------
    Nobody rated item 10 together with an item of user 1: it has no score.

    >>> import numpy as np
    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 2, 3], [7, 8, 7, 8, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5, 4, 4, 5, 3, 5]})
    >>> scores = us.recommend.LMWSRItemBased().fit(train).score(train.user[:1])
    >>> np.isnan(scores).tolist()
    [[False, False, False, True]]
    """

    k: int = count(200, "Neighbours per item.")
    mu: float = number(
        100_000.0,
        "μ, in counts: the weight of the collection in each language model.",
        above=0,
    )
    per_count: bool = flag(True, "Divide s(i, j) by |j| = Σ_u r_uj.")
    name: ClassVar[str] = "lm-wsr-ib"
    draw_name: ClassVar[str] = "lm-wsr-ib"
    tuning: ClassVar[Grid] = {"k": (10, 20, 50, 100, 200, 400)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        users = profiles(train)
        near = likely_neighbours(
            users.transposed(), self.k, float(self.mu), per_count=self.per_count
        )
        return Votes(users, near.transposed())


# The user-item relevance model


@dataclass(frozen=True, eq=False)
class CommonRaters:
    """Scores by a number per item and, for each item that the user rated, one per pair."""

    pairs: DenseWeights
    alone: F64
    axes: ClassVar[Axes] = {
        "pairs.ratings": ("users", "items"),
        "pairs.weights": ("items", "items"),
        "alone": ("items",),
    }

    def score(self, users: I32) -> F64:
        """Return the sums over the user's items; NaN for users without."""
        score = self.pairs.score(users)
        score += self.alone
        return score


@dataclass(frozen=True)
class UIRItem(Algorithm):
    """The user-item relevance model: how likely the user's items are among those who like i.

    score(u, i) = Σ_{b in I_u} log(1 + (1-λ) P(b|i) / (λ P(b))) + log P(i)

    P(b|i) = c(b, i)/c(i) is the share of the raters of i who rated b too, P(b) = c(b)/|U| the
    share of all users with ratings, P(i) = c(i)/Σ_b c(b). Values are not looked at, as the model
    is one of logs. Of the formula with linear smoothing, |I_u| log λ + Σ_b log P(b) is left out:
    it is the same for all items. Another scale of P(b) is another λ.

    The sum favours items with few raters, and on ratings of films only a λ close to 1 is any good,
    where the order becomes that of popularity. That is what was published.

    References
    ----------
    Wang, de Vries, Reinders: A user-item relevance model for log-based collaborative filtering,
    ECIR 2006 (item-based generation, linear smoothing); valcarce2018 section 4.

    Examples
    --------
    With λ = 1 only popularity is left.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> systems = us.recommend.UIRItem(background=1), us.recommend.Popularity()
    >>> [int(one.fit(shop).score(shop.user[:1]).argmax()) for one in systems]
    [4, 4]
    """

    background: float = number(
        0.99999,
        "λ, the weight of P(b): above 0, at most 1, where only popularity is left.",
        above=0,
        most=1.0,
    )
    name: ClassVar[str] = "uir"
    draw_name: ClassVar[str] = "uir"
    tuning: ClassVar[Grid] = {"background": (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        rated = user_rows(train, np.ones(len(train)))
        pair = item_gram(rated, self.name)  # of ones: how many users rated both
        c = np.diag(pair).copy()
        odds = (1 - self.background) / self.background
        lift = odds * np.count_nonzero(rated_users(train)) / np.maximum(c, 1.0)

        def fill(low: int) -> None:
            part = pair[low : low + ROWS]
            part *= lift[low : low + ROWS, None]
            part /= np.maximum(c, 1.0)
            np.log1p(part, out=part)

        map_blocks(fill, range(0, c.size, ROWS), size=pair.size)
        alone = np.full(c.size, np.nan)
        np.log(c / len(train), out=alone, where=c > 0)
        return CommonRaters(DenseWeights(rated, frozen(pair)), frozen(alone))


_COLUMNS = 64  # users walked at once: an edge is looked at once for all of them


@dataclass(frozen=True, eq=False)
class Walk:
    """The probabilities of a step from user to item and from item to user."""

    forward: SparseRows
    """By user."""
    backward: SparseRows
    """By item."""
    steps: int
    axes: ClassVar[Axes] = {"forward": ("users", "items"), "backward": ("items", "users")}

    def score(self, users: I32) -> F64:
        """Return the negative truncated hitting times."""
        from unskew.recommend.kernels import topics

        out, back = self.forward, self.backward
        score = np.empty((users.size, len(back)))

        def fill(part: I32, rows: slice) -> None:
            topics.hits(part, out.arrays, back.arrays, self.steps, score[rows])

        in_blocks(users, fill, score.size, _COLUMNS)
        score -= self.steps
        score[:, np.diff(back.start) == 0] = np.nan
        score[out.start[users] == out.start[users + 1]] = np.nan
        return score


@dataclass(frozen=True)
class HittingTime(Algorithm):
    """Items in the order of how soon a random walk from them reaches the user.

    score(u, i) = -H(u|i), with H(u|u) = 0 and H(u|x) = 1 + Σ_y p_xy H(u|y) for every other node

    The graph has users and items as nodes and a rating as the weight of an edge; a step takes an
    edge with the probability of its share in the weights of the node. H is truncated: the
    recursion is done `iterations` times from H = 0, so that H is at most that, and exactly that
    where the user is out of reach. From a popular item a walk can go anywhere, so items with few
    raters come first: the method is made for the long tail. The whole graph is walked, where the
    paper cuts out a part around the user for speed. A rating of 0 is no edge.

    References
    ----------
    Yin, Cui, Li, Yao, Chen: Challenging the long tail recommendation, PVLDB 5 (2012) section 3,
    algorithm 1; valcarce2018 section 4.

    Examples
    --------
    User 2 links user 1 to items 8 and 9. Item 9 has no other rater, so that a walk from it reaches
    user 1 sooner than one from item 8.

    >>> import unskew as us
    >>> train = us.read_ratings({"user": [1, 2, 2, 2, 3, 4], "item": [7, 7, 8, 9, 8, 8]})
    >>> us.recommend.HittingTime().fit(train).score(train.user[:1]).round(2)
    array([[ -5.85, -12.26, -10.71]])
    """

    iterations: int = count(
        15,
        "Steps after which a walk is cut off; below 4 most items are out of reach.",
    )
    name: ClassVar[str] = "hitting-time"
    draw_name: ClassVar[str] = "hitting-time"
    tuning: ClassVar[Grid] = {"iterations": (4, 6, 10, 15, 20, 30)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        edges = profiles(train)
        return Walk(edges.shares(), edges.transposed().shares(), self.iterations)
