"""Factors that rank rated above unrated items: WBPR, GBPR and RankSGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unskew.arrays import F32, F64, I32, I64, U8, Tile, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.recommend.matrices.sparse import rated_items, rated_users, user_rows
from unskew.recommend.model import Algorithm, Grid, Model
from unskew.recommend.sgd import learned, padded, starting_factors
from unskew.settings import choice, count, flag, number

ROUND = 10
"""Draws of GBPR per user that are made and held at a time."""
PART = 512
"""Users of GBPR per task."""
SEGMENT = 50
"""Users that each segment of LibRec's cache holds."""


def single_factors(train: Ratings, factors: int, rng: np.random.Generator) -> tuple[F32, F32]:
    """Draw factors of users and items in single precision, as kernels want them."""
    P, Q = starting_factors(train, factors, rng)
    return padded(P.astype(np.float32)), padded(Q.astype(np.float32))


def active_users(train: Ratings) -> I32:
    """Return the users that have ratings."""
    return frozen(np.flatnonzero(rated_users(train)).astype(np.int32))


def popularity(train: Ratings) -> I64:
    """Return how many ratings each item has."""
    return frozen(np.bincount(train.item, minlength=len(train.items)).astype(np.int64))


def ranked_popularity(train: Ratings) -> tuple[I32, I32, F64]:
    """Return items from most to fewest ratings, each rating's place among them, and the numbers.

    Of the numbers there are as many as make up whole blocks, the last ones 0.
    """
    from unskew.recommend.kernels.pairwise import BLOCK

    count = popularity(train)
    ranked = np.argsort(-count, kind="stable")
    rank = np.empty_like(ranked)
    rank[ranked] = np.arange(ranked.size)
    weight = np.zeros(-(-ranked.size // BLOCK) * BLOCK)
    weight[: ranked.size] = count[ranked]
    return frozen(ranked.astype(np.int32)), frozen(rank[train.item].astype(np.int32)), weight


def segments(users: int) -> I32:
    """Return which of the four segments of Guava's cache holds each user.

    The cache of LibRec (maximumSize=200) gives 50 places to each segment and chooses it by the
    two highest bits of this hash. Its other limit, two minutes without use, is out of reach: a
    user stays for some two hundred draws.
    """
    h = np.arange(users, dtype=np.uint32)
    h += (h << np.uint32(15)) ^ np.uint32(0xFFFFCD7D)
    h ^= h >> np.uint32(10)
    h += h << np.uint32(3)
    h ^= h >> np.uint32(6)
    h += (h << np.uint32(2)) + (h << np.uint32(14))
    h ^= h >> np.uint32(16)
    return frozen((h >> np.uint32(30)).astype(np.int32))


@dataclass(frozen=True)
class WBPR(Algorithm):
    """Weighted BPR: rated items before unrated ones, which are drawn by their popularity.

    Scores x_ui = c_i + p_u·q_i and maximises the sum of ln σ(x_ui - x_uj), less penalties, like
    `BPRMF`, whose steps it takes; but j is drawn from the items that u did not rate with
    probability proportional to how often others did. To be unrated says more of an item that
    everyone knows. A user who has ratings is drawn first, then one of her ratings, then j. Every
    rating counts as liked, whatever its value. Factors start normal with deviation 0.1, biases
    at 0. Single precision, one thread.

    References
    ----------
    Gantner, Drumond, Freudenthaler and Schmidt-Thieme 2012, Personalized ranking for non-uniformly
    sampled items, section 4; mena2021 section 8 (WBPR).

    Examples
    --------
    Of the items that a user did not rate, popular ones are drawn most often and ranked lower: the
    mean popularity of lists is below that of `BPRMF`.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3)
    >>> (split,) = us.splits.Random(test=0.2).split(shop.ratings, seed=1)
    >>> lists = us.targets.AllItems().lists(split, liked=4)
    >>> systems = [us.recommend.BPRMF(), us.recommend.WBPR()]
    >>> models = {one.name: one.fit(split.train) for one in systems}
    >>> popularity = us.evaluate(lists, models, "ARP@5").mean("ARP@5")
    >>> popularity["wbpr"] < popularity["bprmf"]
    True
    """

    factors: int = count(128, "Number of factors.")
    learning_rate: float = number(0.01, "η.", above=0)
    regularisation: float = number(0.01, "λ of users' factors.")
    regularisation_item: float = number(0.01, "λ of items' factors.")
    regularisation_bias: float = number(0.01, "λ of items' biases.")
    epochs: int = count(20, "Number of epochs of `draws` · |users| draws each.")
    draws: int = count(100, "Draws per user and epoch.")
    drifting: bool = flag(
        False,
        """Draw j as LibRec 2.0.0 does, defect included. Only to reproduce mena2021, whose published
        values carry it; for anything else leave it off.

        LibRec (`WBPRRecommender.getCacheItemProbs`) divides the popularities of the items that u
        did not rate by their sum; but the entries it divides are those of the one table that all
        users share. It does so each time that u is drawn and not among the 200 users of a cache,
        which forgets the user drawn longest ago. What she rated keeps its entries while the rest
        grows to fill the sum, so the entries of items that many rated dwindle, and before the first
        epoch ends nearly all j are items that hardly anyone rated. For a user in the cache the
        entries need not sum to 1 any more; where they fall short of the number drawn, j is the
        first item of the data, rated or not. That is also the j of a user who rated everything.
        Biases start uniform in [0, 0.01).""",
    )

    name: ClassVar[str] = "wbpr"
    draw_name: ClassVar[str] = "wbpr"
    tuning: ClassVar[Grid] = {"factors": (16, 128), "regularisation": (0.01, 0.05, 0.2)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        from unskew.recommend.kernels import pairwise as kernels

        P, Q = single_factors(train, self.factors, rng)
        active, single = active_users(train), np.float32
        steps = (
            single(self.learning_rate),
            single(self.regularisation),
            single(self.regularisation_item),
            single(self.regularisation_bias),
        )
        last = self.epochs * self.draws * active.size
        c = np.zeros(len(train.items), np.float32)
        if self.drifting:
            c = rng.uniform(0.0, 0.01, len(train.items)).astype(np.float32)
        draws = np.uint64(rng.integers(1 << 62)), last, train.start, train.item, active
        ascent = kernels.Ascent(P, Q, c, *steps)
        if self.drifting:
            ranked, rank, weight = ranked_popularity(train)
            cache = segments(len(train.users)), SEGMENT
            kernels.drifting_draws(*draws, rank, ranked, *cache, weight, ascent)
        else:
            kernels.weighted_draws(*draws, train.item, popularity(train), ascent)
        return learned(train, P, Q, 0.0, c, self.factors)


@dataclass(frozen=True)
class GBPR(Algorithm):
    """Group BPR: what a group of its raters makes of an item counts for the user as well.

    Scores x_ui = c_i + p_u·q_i and maximises Σ ln σ(x_Gi - x_uj), less penalties, where
    x_Gi = ρ · mean_{w ∈ G} x_wi + (1 - ρ) x_ui, and G holds u and others that rated i, or all
    that did where they are no more than `group`. Every user with ratings has as many draws: one of
    her items i, a group, and an item j that anyone rated but not she, all equally likely (LibRec
    draws the users too). With e = σ(x_uj - x_Gi), for every draw

        c_i ← c_i + η(e - λ_c c_i),   c_j ← c_j + η(-e - λ_c c_j),

    at once, while the steps of the factors, η(e ∂(x_Gi - x_uj) - λ ·) for all that take part, are
    added up and taken together after each epoch, as in LibRec; the paper takes them one by one.
    Every rating counts as liked. Factors start normal with deviation 0.1, biases at 0 (in LibRec
    uniform in [0, 1), which is soon forgotten). Single precision.

    References
    ----------
    Pan and Chen 2013, GBPR: group preference based Bayesian personalized ranking for one-class
    collaborative filtering, section 3; mena2021 section 8 (GBPR).

    Examples
    --------
    Two groups of users rate two groups of items; all members of a group end up with much the same
    scores.

    >>> import numpy as np
    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3, 4, 4], [7, 8, 7, 8, 9, 10, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item})
    >>> np.sign(us.recommend.GBPR().fit(train).score(np.arange(4, dtype=np.int32))).tolist()
    [[1.0, 1.0, -1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [-1.0, -1.0, 1.0, 1.0], [-1.0, -1.0, 1.0, 1.0]]
    """

    factors: int = count(10, "Number of factors.")
    learning_rate: float = number(0.01, "η.", above=0)
    regularisation: float = number(0.01, "λ of users' factors.")
    regularisation_item: float = number(0.01, "λ of items' factors.")
    regularisation_bias: float = number(0.01, "λ_c.")
    rho: float = number(1.5, "ρ, which may exceed 1.")
    group: int = count(2, "|G|, u included.")
    epochs: int = count(100, "Number of epochs.")
    draws: int = count(100, "Draws per user and epoch.")

    name: ClassVar[str] = "gbpr"
    draw_name: ClassVar[str] = "gbpr"
    tuning: ClassVar[Grid] = {"factors": (10, 40), "regularisation": (0.01, 0.05, 0.2)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        P, Q = single_factors(train, self.factors, rng)
        c = np.zeros(len(train.items), np.float32)
        groups = _Groups(self, train, np.uint64(rng.integers(1 << 62)))
        for epoch in range(self.epochs):
            groups.epoch(epoch, P, Q, c)
        return learned(train, P, Q, 0.0, c, self.factors)


class _Groups:
    """The draws of GBPR, and what they ask of the factors.

    While an epoch lasts the factors stay: draws and margins are made in parts side by side, only
    the biases need them in order, and the gradients of users and items need not wait for each
    other. No result depends on the parts.
    """

    def __init__(self, settings: GBPR, train: Ratings, seed: np.uint64) -> None:
        self.settings, self.train, self.seed = settings, train, seed
        self.active = active_users(train)
        self.known = frozen(np.flatnonzero(rated_items(train)).astype(np.int32))
        self.weight = frozen(rated_items(train).astype(np.int64))
        self.there, self.rater, _ = user_rows(train).by_column()

    def epoch(self, number: int, P: F32, Q: F32, c: F32) -> None:
        """Ascend with the biases at every draw, and with the factors after all of them."""
        settings = self.settings
        gradients = np.zeros_like(P), np.zeros_like(Q)
        times = np.zeros(len(P), np.float32), np.zeros(len(Q), np.float32)
        for low in range(0, settings.draws, ROUND):
            draws = min(ROUND, settings.draws - low)
            first = (number * settings.draws + low) * self.active.size
            self._round(first, draws, (P, Q), c, gradients, times)
        for factors, gradient, often, penalty in zip(
            (P, Q),
            gradients,
            times,
            (settings.regularisation, settings.regularisation_item),
            strict=True,
        ):
            pull = np.float32(penalty) * often[:, np.newaxis]
            factors += np.float32(settings.learning_rate) * (gradient - pull * factors)

    def _round(
        self,
        first: int,
        draws: int,
        factors: tuple[F32, F32],
        c: F32,
        gradients: tuple[F32, F32],
        times: tuple[F32, F32],
    ) -> None:
        """Make `draws` draws for every user, the first of all having the number `first`."""
        from unskew.recommend.kernels import pairwise as kernels

        train, settings, rho = self.train, self.settings, np.float32(self.settings.rho)
        size = draws * self.active.size
        pair, margin = np.empty((size, 2), np.int32), np.zeros(size, np.float32)
        group = np.empty((size, settings.group), np.int32)

        def draw(low: int) -> None:
            part = slice(low * draws, (low + PART) * draws)
            kernels.draw_groups(
                self.seed,
                first + low * draws,
                draws,
                self.active[low : low + PART],
                train.start,
                train.item,
                self.known,
                self.weight,
                self.there,
                self.rater,
                rho,
                *factors,
                pair[part],
                group[part],
                margin[part],
            )

        map_blocks(draw, range(0, self.active.size, PART), size=size)
        kernels.bias_steps(
            pair,
            margin,
            c,
            np.float32(settings.learning_rate),
            np.float32(settings.regularisation_bias),
        )

        def add(side: int) -> None:
            kernel = kernels.item_gradient if side else kernels.user_gradient
            kernel(pair, group, margin, rho, factors[1 - side], gradients[side], times[side])

        map_blocks(add, (0, 1), size=size)


@dataclass(frozen=True)
class RankSGD(Algorithm):
    """Factors whose differences between a rated and an unrated item equal the rating.

    Scores x_ui = p_u·q_i. For every training rating, by user and item, it draws an item j that u
    did not rate, with probability proportional to its number of ratings, takes 0 as its rating,
    and makes a step against the gradient of ½((x_ui - x_uj) - r_ui)²: with
    e = r_ui - (x_ui - x_uj),

        p_u ← p_u + η e (q_i - q_j),    q_i ← q_i + η e p_u,    q_j ← q_j - η e p_u.

    A rating of 0 thus says that the item is no better than an unrated one. There is no penalty:
    LibRec reads one and applies none. A user who rated every item takes no steps. Factors start
    normal with deviation 0.1. Double precision, one thread.

    References
    ----------
    Jahrer and Töscher 2012, Collaborative filtering ensemble for ranking, section 3.2; mena2021
    section 8 (RankSGD), where ratings 1 to 5 enter as 0, 0, 0, 1, 2.

    Examples
    --------
    Users 1 and 2 rate with 5, users 3 and 4 with 3; their rated and unrated items are so far apart.

    >>> import numpy as np
    >>> import unskew as us
    >>> user, item = [1, 1, 2, 2, 3, 3, 4, 4], [7, 8, 7, 8, 9, 10, 9, 10]
    >>> train = us.read_ratings({"user": user, "item": item, "rating": [5] * 4 + [3] * 4})
    >>> model = us.recommend.RankSGD(epochs=200).fit(train)
    >>> scores = model.score(np.array([0, 2], np.int32))  # of users 1 and 3
    >>> (scores[:, 0] - scores[:, 2]).round().tolist()  # item 7 less item 9
    [5.0, -3.0]
    """

    factors: int = count(10, "Number of factors.")
    learning_rate: float = number(0.01, "η.", above=0)
    epochs: int = count(30, "Number of passes over the ratings.")

    name: ClassVar[str] = "rank-sgd"
    draw_name: ClassVar[str] = "rank-sgd"
    tuning: ClassVar[Grid] = {"factors": (5, 10, 40), "epochs": (10, 30)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        from unskew.recommend.kernels import pairwise as kernels

        P, Q = map(padded, starting_factors(train, self.factors, rng))
        seed, weight = np.uint64(rng.integers(1 << 62)), popularity(train)
        for epoch in range(self.epochs):
            kernels.ranked_epoch(
                seed=seed,
                first=epoch * len(train),
                start=train.start,
                user=train.user,
                item=train.item,
                value=train.value,
                pool=train.item,
                weight=weight,
                P=P,
                Q=Q,
                rate=float(self.learning_rate),
            )
        nothing: Tile = np.zeros(len(train.items))
        return learned(train, P, Q, 0.0, nothing, self.factors)


DRAWS = ("triples", "users")
MOST_MARKS = 1 << 26
"""Bytes that a bit per user and item may take; with more, a user's items are searched."""


def rated_marks(train: Ratings) -> U8:
    """Return a bit per user and item that tells what is rated; nothing where that is too large."""
    from unskew.recommend.kernels import sgd

    width = -(-len(train.items) // 8)
    if len(train.users) * width > MOST_MARKS:
        return frozen(np.zeros((0, 0), np.uint8))
    marks = np.zeros((len(train.users), width), np.uint8)
    sgd.mark_rated(train.start, train.item, marks)
    return frozen(marks)


@dataclass(frozen=True)
class BPRMF(Algorithm):
    """Factors under which each user's rated items come before the unrated ones.

    Scores x_ui = c_i + p_u·q_i and maximises, over triples (u, i, j) of a rated i and an unrated
    j, Σ ln σ(x_ui - x_uj) less λ/2 times the squares of what takes part. Every rating counts as
    liked, whatever its value. For each triple, with e = σ(x_uj - x_ui):

        p_u ← p_u + η(e (q_i - q_j) - λ_u p_u)
        q_i ← q_i + η(e p_u - λ_i q_i),    c_i ← c_i + η(e - λ_i c_i)
        q_j ← q_j + η(-e p_u - λ_j q_j),   c_j ← c_j + η(-e - λ_j c_j)

    Triples are drawn with replacement: a rating (u, i) and an item j that anyone rated, thrown
    away if u rated j, so that all triples are equally likely. Users with many ratings then weigh
    more. With `draw="users"`, the default, a user is drawn first and then one of her ratings, so
    that users weigh about alike, as they do in most metrics. An epoch makes as many draws as there
    are ratings. (The paper prints the penalty's sign in its update the other way round.) Factors
    start normal with deviation 0.1, biases at 0. Single precision, one thread.

    On MovieLens 1M the defaults reach 97 % of the P@10 that 200 factors and 120 epochs at a rate of
    0.015 reach (the preset of valcarce2018), in about a sixth of the time.

    References
    ----------
    Rendle, Freudenthaler, Gantner and Schmidt-Thieme 2009, BPR: Bayesian personalized ranking from
    implicit feedback, sections 4.2 and 4.3.1.

    Examples
    --------
    Of the first user's pairs of a rated and an unrated item, most are in that order.

    >>> import numpy as np
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> model = us.recommend.BPRMF(factors=8).fit(shop)
    >>> scores, rated = model.score(shop.user[:1])[0], shop.item[shop.user == shop.user[0]]
    >>> above = scores[rated][:, None] > np.delete(scores, rated)
    >>> bool(above.mean() > 0.8)
    True
    """

    factors: int = count(100, "Number of factors.")
    learning_rate: float = number(0.02, "η.", above=0)
    regularisation: float = number(0.03, "λ_u, of users.")
    regularisation_liked: float = number(0.003, "λ_i, of the rated item.")
    regularisation_other: float = number(0.003, "λ_j, of the unrated item.")
    epochs: int = count(40, "Number of epochs of |ratings| draws each.")
    bias: bool = flag(True, "Whether to learn a bias per item.")
    draw: str = choice(
        "users",
        "`triples`: all equally likely, as in the paper; `users`: users equally likely.",
        DRAWS,
    )

    name: ClassVar[str] = "bprmf"
    draw_name: ClassVar[str] = "bprmf"
    tuning: ClassVar[Grid] = (
        {"factors": 100, "regularisation": 0.03, "epochs": 40},
        {"factors": 50, "regularisation": 0.2, "epochs": 10},
        {"factors": 100, "regularisation": 0.2, "epochs": 40},
        {"factors": 100, "regularisation": 0.01, "epochs": 20},
        {"factors": 10, "regularisation": 0.03, "epochs": 40},
        {"factors": 32, "regularisation": 0.06, "epochs": 20},
    )

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        from unskew.recommend.kernels import sgd

        P, Q = single_factors(train, self.factors, rng)
        c = np.zeros(len(train.items), np.float32)
        pool = frozen(np.flatnonzero(rated_items(train)).astype(np.int32))
        single = np.float32
        sgd.pairwise_draws(
            seed=np.uint64(rng.integers(1 << 62)),
            first=0,
            last=self.epochs * len(train),
            by_user=self.draw == "users",
            start=train.start,
            user=train.user,
            item=train.item,
            marks=rated_marks(train),
            active=active_users(train),
            pool=pool,
            P=P,
            Q=Q,
            b=c,
            biased=self.bias,
            rate=single(self.learning_rate),
            of_user=single(self.regularisation),
            of_liked=single(self.regularisation_liked),
            of_other=single(self.regularisation_other),
        )
        return learned(train, P, Q, 0.0, c, self.factors)
