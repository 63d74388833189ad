"""Recommenders from language models: a profile is a text, a rating counts how often a word stands.

p(i|v) is the probability of item i in the profile of user v, smoothed with the probability of the
item in the collection, p(i|C) = Σ_v r_vi / Σ_v Σ_j r_vj. A rating of 0 is no occurrence; ratings
below 0 cannot be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.data.ratings import Ratings, frozen, grouped_order
from unskew.errors import DataError, choose
from unskew.recommend.model import Algorithm, Model, as_number, as_whole
from unskew.threads import map_blocks

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

SMOOTHING = ("jelinek-mercer", "dirichlet", "absolute-discounting")

_MOST_BYTES = 2 << 30
_LEAST = 1e-9  # smoothing below this could overflow a product of probabilities' ratios
_ROWS = 16  # users per task when scoring
_PROFILES = 64  # profiles per task when neighbours are sought


@dataclass(frozen=True, eq=False)
class Profiles:
    """Profiles (of users, or of items) as sparse rows: what stands in each, and how often."""

    start: I64
    entry: I32
    value: F64
    entries: int

    def __len__(self) -> int:
        return int(self.start.size) - 1

    @property
    def owner(self) -> I32:
        """The profile of each row."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.start))

    def sums(self, value: F64) -> F64:
        """Sum a value per row over each profile."""
        total: F64 = np.bincount(self.owner, value, minlength=len(self)).astype(np.float64)
        return total

    def turned(self) -> tuple[Profiles, I64]:
        """Return rows and columns exchanged, and the order that exchanges values."""
        start = np.zeros(self.entries + 1, np.int64)
        np.cumsum(np.bincount(self.entry, minlength=self.entries), out=start[1:])
        order = grouped_order(self.entry, frozen(start))
        turned = Profiles(
            frozen(start), frozen(self.owner[order]), frozen(self.value[order]), len(self)
        )
        return turned, order


def profiles(train: Ratings) -> Profiles:
    """Return what each user rated above 0."""
    if bool((train.value < 0).any()):
        row = int(np.argmax(train.value < 0))
        raise DataError(
            f"ratings serve as counts here and must not be below 0, but row {row + 1} has "
            f"{train.value[row]:g}; shift the ratings first"
        )
    some = train.value > 0
    start = np.append(0, np.cumsum(some))[train.start]
    return Profiles(
        frozen(start), frozen(train.item[some]), frozen(train.value[some]), len(train.items)
    )


def in_collection(texts: Profiles) -> F64:
    """Return p(i|C), the share of each entry in all profiles."""
    total = np.bincount(texts.entry, texts.value, minlength=texts.entries)
    share: F64 = total / max(float(total.sum()), np.finfo(float).tiny)
    return share


class Neighbours(NamedTuple):
    """The nearest of each profile, in ascending number: row by row, -1 where there are fewer."""

    number: I32
    score: F64


def nearest(texts: Profiles, k: int, left: F64, right: F64, own: F64, other: F64) -> Neighbours:
    """Return for each u the k profiles v with the largest Σ_x left_ux·right_vx + own_u·other_v.

    Only scores above 0 count, and never u itself; of equals the smaller number.
    """
    from unskew.recommend import _language_kernels

    k = max(1, min(k, len(texts) - 1))
    _check_size(len(texts) * k * 12, f"{k:,} neighbours for each of {len(texts):,} profiles",
                "ask for fewer")  # fmt: skip
    turned, order = texts.turned()
    number, score = np.empty((len(texts), k), np.int32), np.zeros((len(texts), k))
    given = (texts.start, texts.entry, frozen(left), turned.start, turned.entry,
             frozen(right[order]), frozen(own), frozen(other))  # fmt: skip

    def find(low: int) -> None:
        high = min(low + _PROFILES, len(texts))
        _language_kernels.nearest(*given, low, high, number, score)
        who, best = number[low:high], score[low:high]
        ascending = np.argsort(who, axis=1)
        best[:] = np.take_along_axis(best, ascending, 1)
        who[:] = np.take_along_axis(who, ascending, 1)
        who[who == len(texts)] = -1

    map_blocks(find, range(0, len(texts), _PROFILES), size=k * len(texts) + texts.entry.size)
    return Neighbours(frozen(number), frozen(score))


def cosine_neighbours(train: Ratings, k: int) -> Neighbours:
    """Return the k nearest users of each user by the cosine of their rating vectors."""
    texts = profiles(train)
    norm = np.sqrt(texts.sums(texts.value**2))
    unit = texts.value / norm[texts.owner]
    none = np.zeros(len(texts))
    return nearest(texts, k, unit, unit, none, none)


def _check_size(size: int, what: str, remedy: str) -> None:
    if size > _MOST_BYTES:
        raise DataError(f"{what} need {size / 2**30:.1f} GiB, more than 2 GiB; {remedy}")


def _fill(users: I32, items: int, fill: Callable[[I32, F64], None]) -> F64:
    """Return a row of scores per user, filled a few users at a time."""
    score = np.zeros((users.size, items))

    def work(low: int) -> None:
        fill(frozen(users[low : low + _ROWS]), score[low : low + _ROWS])

    map_blocks(work, range(0, users.size, _ROWS), size=score.size)
    return score


# Relevance-based language models


@dataclass(frozen=True, eq=False)
class _RelevanceModel:
    """The users' language models, p(i|v) = seen_vi + background_v·p(i|C), and who is near."""

    start: I64
    item: I32
    seen: F64
    background: F64
    collection: F64
    number: I32


class RelevanceModel1(_RelevanceModel):
    """Scores by Σ_v p(v) p(i|v) Π_j p(j|v)."""

    def score(self, users: I32) -> F64:
        """Return the logarithms of the relevance model."""
        from unskew.recommend import _language_kernels

        def fill(some: I32, score: F64) -> None:
            _language_kernels.relevance_model_1(
                some, self.number, self.start, self.item, self.seen, self.background,
                self.collection, score,
            )  # fmt: skip

        return _fill(users, self.collection.size, fill)


class RelevanceModel2(_RelevanceModel):
    """Scores by p(i) Π_j Σ_v p(v) p(i|v)/p(i) p(j|v)."""

    def score(self, users: I32) -> F64:
        """Return the logarithms of the relevance model."""
        from unskew.recommend import _language_kernels

        log_item = -float(np.log(self.collection.size))

        def fill(some: I32, score: F64) -> None:
            _language_kernels.relevance_model_2(
                some, self.number, self.start, self.item, self.seen, self.background,
                self.collection, log_item, score,
            )  # fmt: skip

        return _fill(users, self.collection.size, fill)


@dataclass(frozen=True)
class _RelevanceModelling(Algorithm):
    """What RM1 and RM2 share: smoothed language models of the users, and cosine neighbours."""

    k: int = 100
    smoothing: str = "absolute-discounting"
    parameter: float = 0.1

    def __post_init__(self) -> None:
        as_whole("k", self.k)
        choose("smoothing", self.smoothing, SMOOTHING)
        most = 1.0 if self.smoothing == "jelinek-mercer" else np.inf
        as_number("parameter", self.parameter, _LEAST, most)

    def _estimates(self, train: Ratings) -> tuple[I64, I32, F64, F64, F64, I32]:
        """Return what a relevance model is made of."""
        texts = profiles(train)
        seen, background = smoothed(texts, self.smoothing, float(self.parameter))
        return (texts.start, texts.entry, frozen(seen), frozen(background),
                frozen(in_collection(texts)), cosine_neighbours(train, self.k).number)  # fmt: skip


def smoothed(texts: Profiles, smoothing: str, parameter: float) -> tuple[F64, F64]:
    """Return the two parts of p(i|v) = seen_vi + background_v·p(i|C).

    With |v| = Σ_i r_vi: Jelinek-Mercer has seen (1-λ) r_vi/|v| and background λ; Dirichlet
    r_vi/(|v|+μ) and μ/(|v|+μ); absolute discounting max(r_vi-δ, 0)/|v| and Σ_i min(r_vi, δ)/|v|,
    which is δ|I_v|/|v| where no rating is below δ, and sums to 1 in any case.
    """
    length = texts.sums(texts.value)
    length[length == 0] = 1.0  # an empty profile is nobody's neighbour
    own = length[texts.owner]
    if smoothing == "jelinek-mercer":
        return (1 - parameter) * texts.value / own, np.full(length.size, parameter)
    if smoothing == "dirichlet":
        return texts.value / (own + parameter), parameter / (length + parameter)
    kept = np.maximum(texts.value - parameter, 0.0)
    return kept / own, texts.sums(texts.value - kept) / length


@dataclass(frozen=True)
class RM1(_RelevanceModelling):
    """The likely items of neighbours whose language model explains the whole profile.

    score(u, i) = log Σ_{v in V_u} p(v) p(i|v) Π_{j in I_u} p(j|v)

    V_u are the k nearest users by cosine, without u; p(v) is uniform over them. The product takes
    each item of u once, whatever its rating. The few neighbours with the largest product decide
    nearly alone, which is why RM1 is weak on long profiles. Smoothing gives every item that
    somebody rated a score; users without neighbours have none.

    Parameters
    ----------
    k
        Neighbours per user.
    smoothing
        `jelinek-mercer`, `dirichlet` or `absolute-discounting` (see `smoothed`).
    parameter
        Its λ (at most 1), μ or δ; from 1e-9 up.

    References
    ----------
    Parapar, Bellogín, Castells, Barreiro: Relevance-based language modelling for recommender
    systems, IP&M 49 (2013), RM1; valcarce2018 section 4.
    """

    name: ClassVar[str] = "rm1"

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:  # noqa: ARG002
        return RelevanceModel1(*self._estimates(train))


@dataclass(frozen=True)
class RM2(_RelevanceModelling):
    """The items that stand, in the neighbours' language models, together with each of the user's.

    score(u, i) = log p(i) Π_{j in I_u} Σ_{v in V_u} p(v) p(i|v)/p(i) p(j|v)

    V_u are the k nearest users by cosine, without u; p(v) is uniform over them, p(i) over all
    items. The product takes each item of u once, whatever its rating. Smoothing gives every item
    that somebody rated a score; users without neighbours have none.

    Parameters
    ----------
    k
        Neighbours per user.
    smoothing
        `jelinek-mercer`, `dirichlet` or `absolute-discounting` (see `smoothed`).
    parameter
        Its λ (at most 1), μ or δ; from 1e-9 up.

    References
    ----------
    Parapar, Bellogín, Castells, Barreiro: Relevance-based language modelling for recommender
    systems, IP&M 49 (2013), RM2; valcarce2018 section 4.
    """

    name: ClassVar[str] = "rm2"

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:  # noqa: ARG002
        return RelevanceModel2(*self._estimates(train))


# Neighbourhoods by language models


@dataclass(frozen=True, eq=False)
class NeighbourRatings:
    """Scores by Σ_v weight_uv r_vi over the neighbours v of u."""

    number: I32
    weight: F64
    start: I64
    item: I32
    value: F64
    items: int

    def score(self, users: I32) -> F64:
        """Return the weighted sums of the neighbours' ratings."""
        from unskew.recommend import _language_kernels

        def fill(some: I32, score: F64) -> None:
            _language_kernels.weighted_ratings(
                some, self.number, self.weight, self.start, self.item, self.value, score
            )

        return _fill(users, self.items, fill)


@dataclass(frozen=True, eq=False)
class OwnRatings:
    """Scores by Σ_j weight_ij r_uj over the neighbours j of i that u rated."""

    start: I64
    item: I32
    value: F64
    lister_start: I64
    lister: I32
    weight: F64

    def score(self, users: I32) -> F64:
        """Return the weighted sums of the user's ratings."""
        from unskew.recommend import _language_kernels

        def fill(some: I32, score: F64) -> None:
            _language_kernels.weighted_neighbours(
                some, self.start, self.item, self.value, self.lister_start, self.lister,
                self.weight, score,
            )  # fmt: skip

        return _fill(users, self.lister_start.size - 1, fill)


def likely_neighbours(texts: Profiles, k: int, mu: float, *, per_count: bool) -> Neighbours:
    """Return for each profile a the k profiles b that its language model makes most likely.

    s(a, b) = Σ_x r_bx log(p_μ(x|a) / p(x|C)), with p_μ(x|a) = (r_ax + μ p(x|C)) / (|a| + μ), and
    divided by |b| with `per_count`. Where that is not above 0, b is no neighbour.
    """
    length = texts.sums(texts.value)
    gain = np.log1p(texts.value / (mu * in_collection(texts)[texts.entry]))
    loss = np.log(mu / (length + mu))
    if per_count:
        share = texts.value / length[texts.owner]
        return nearest(texts, k, gain, share, loss, np.ones_like(length))
    return nearest(texts, k, gain, texts.value, loss, length)


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

    Parameters
    ----------
    k
        Neighbours per user.
    mu
        μ, in counts: the weight of the collection in each language model.
    per_count
        Divide s(u, v) by |v| = Σ_i r_vi: the mean gain per count instead of the gain of the whole
        profile, which favours long ones.

    References
    ----------
    Valcarce, Parapar, Barreiro: Language models for collaborative filtering neighbourhoods, ECIR
    2016 (WSR-UB, with Dirichlet priors); valcarce2018 section 4.
    """

    k: int = 100
    mu: float = 3_000.0
    per_count: bool = False
    name: ClassVar[str] = "lm-wsr-ub"

    def __post_init__(self) -> None:
        as_whole("k", self.k)
        as_number("mu", self.mu, above=True)

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:  # noqa: ARG002
        users = profiles(train)
        near = likely_neighbours(users, self.k, float(self.mu), per_count=self.per_count)
        return NeighbourRatings(
            near.number, near.score, users.start, users.entry, users.value, users.entries
        )


@dataclass(frozen=True)
class LMWSRItemBased(Algorithm):
    """Weighted sum of the user's ratings of items that the item's language model makes likely.

    score(u, i) = Σ_{j in J_i and I_u} s(i, j) r_uj, NaN where u rated no neighbour of i

    As `LMWSRUserBased` with the exchange of users and items: the text of an item are its users,
    and J_i are the k items with the largest s(i, j) above 0. Here s(i, j) is the mean per count
    of j unless said otherwise: the gain of whole texts grows with the popularity of j.

    Parameters
    ----------
    k
        Neighbours per item.
    mu
        μ, in counts: the weight of the collection in each language model.
    per_count
        Divide s(i, j) by |j| = Σ_u r_uj.

    References
    ----------
    Valcarce, Parapar, Barreiro: Language models for collaborative filtering neighbourhoods, ECIR
    2016 (WSR-IB, with Dirichlet priors); valcarce2018 section 4.
    """

    k: int = 200
    mu: float = 100_000.0
    per_count: bool = True
    name: ClassVar[str] = "lm-wsr-ib"

    def __post_init__(self) -> None:
        as_whole("k", self.k)
        as_number("mu", self.mu, above=True)

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:  # noqa: ARG002
        users = profiles(train)
        items, _ = users.turned()
        near = likely_neighbours(items, self.k, float(self.mu), per_count=self.per_count)
        some = near.number >= 0
        start = np.append(0, np.cumsum(some.sum(axis=1)))
        lists = Profiles(frozen(start), frozen(near.number[some]), frozen(near.score[some]),
                         len(items))  # fmt: skip
        listers, _ = lists.turned()  # for each item the items that have it as a neighbour
        return OwnRatings(
            users.start, users.entry, users.value, listers.start, listers.entry, listers.value
        )


# The user-item relevance model


@dataclass(frozen=True, eq=False)
class CommonRaters:
    """Scores by a number per item and, for each item that the user rated, one per pair."""

    start: I64
    item: I32
    pair: F64
    alone: F64

    def score(self, users: I32) -> F64:
        """Return the sums over the user's items; NaN for users without."""
        from unskew.recommend import _language_kernels

        def fill(some: I32, score: F64) -> None:
            score += self.alone
            _language_kernels.sum_of_rows(some, self.start, self.item, self.pair, score)
            score[self.start[some] == self.start[some + 1]] = np.nan

        return _fill(users, self.alone.size, fill)


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

    Parameters
    ----------
    background
        λ, the weight of P(b): above 0, at most 1, where only popularity is left.

    References
    ----------
    Wang, de Vries, Reinders: A user-item relevance model for log-based collaborative filtering,
    ECIR 2006 (item-based generation, linear smoothing); valcarce2018 section 4.
    """

    background: float = 0.99999
    name: ClassVar[str] = "uir"

    def __post_init__(self) -> None:
        as_number("background", self.background, most=1.0, above=True)

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:  # noqa: ARG002
        from unskew.recommend import _language_kernels

        items = len(train.items)
        _check_size(8 * items**2, f"{items:,} x {items:,} pairs of items", "keep fewer items")
        users = Profiles(train.start, train.item, train.value, items)
        raters, _ = users.turned()
        c = np.diff(raters.start).astype(np.float64)
        odds = (1 - self.background) / self.background
        lift = odds * np.count_nonzero(np.diff(train.start)) / np.maximum(c, 1.0)
        pair = np.zeros((items, items))

        def fill(low: int) -> None:
            high = min(low + _PROFILES, items)
            _language_kernels.together(
                users.start, users.entry, raters.start, raters.entry, low, high, pair
            )
            part = pair[low:high]
            part *= lift[low:high, None]
            part /= np.maximum(c, 1.0)
            np.log1p(part, out=part)

        map_blocks(fill, range(0, items, _PROFILES), size=pair.size)
        alone = np.full(items, np.nan)
        np.log(c / len(train), out=alone, where=c > 0)
        return CommonRaters(train.start, train.item, frozen(pair), frozen(alone))
