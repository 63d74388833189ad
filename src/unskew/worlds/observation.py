"""Who rates what: parts of a world that say which pairs are discovered, and then rated.

p(observed | u, i) = discovery(u, i) x decision(liked or not). Discovery is a product of weights of
the user, the item and their groups, brought to scale so that the expected number of ratings is
what the world asks for; where it would exceed 1 it is cut there, and that is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64
from unskew.checks import checked
from unskew.data.ratings import Ratings
from unskew.engine.rng import draw
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.worlds.tastes import Part, births, normal, uniform, whole, within

# MovieLens 1M: the shift of its popularity law over its number of items (fit_popularity_law).
_SHIFT = 0.07


class ObservingPart(Part):
    """A part that says who rates what."""


@dataclass(frozen=True)
class Uniform(ObservingPart):
    """Every pair is discovered alike; without a part on decisions ratings are missing at random.

    Examples
    --------
    >>> from unskew.worlds.observation import Uniform
    >>> Uniform().describe()
    {'part': 'Uniform'}
    """


@dataclass(frozen=True)
class PopularityLaw(ObservingPart):
    """A few items get most ratings: |R(i_k)| = c1 + β (c2 + k)^-α (bellogin2017 section 5.2).

    Which item has which rank k is drawn, unless `WithRelevance` or `AgainstRelevance` says it.

    Parameters
    ----------
    alpha
        The skew: 0 for equal popularity; MovieLens 1M has about 1.4.
    c1
        Ratings that every item has at least.
    c2
        The shift of the ranks; unless given 0.07 of the number of items, as in MovieLens 1M.
    exact
        Give every item exactly its number of ratings, of users drawn at random, instead of that
        number in expectation. Needs users that are all alike and a decision that is `Always`.

    Examples
    --------
    >>> from unskew.worlds.observation import PopularityLaw
    >>> PopularityLaw(alpha=1, c2=0).curve(items=4, total=25).round(2).tolist()
    [12.0, 6.0, 4.0, 3.0]
    """

    alpha: float = within(1.4, 0, 100)
    c1: float = within(0.0, 0)
    c2: float | None = within(None, 0)
    exact: bool = False

    def curve(self, items: int, total: float) -> F64:
        """Return the expected number of ratings of each rank: falling, and `total` in sum."""
        remainder = total - self.c1 * items
        if remainder < 0:
            raise SettingError(
                f"PopularityLaw: c1={self.c1:g} for each of {items:,} items is more than all "
                f"{total:,.0f} ratings; lower c1 or ask for more ratings"
            )
        shift = _SHIFT * items if self.c2 is None else self.c2
        # Relative to the first rank, so that no power is too small to be a number.
        shape = ((shift + np.arange(1, items + 1)) / (shift + 1)) ** -self.alpha
        counts: F64 = self.c1 + remainder * shape / shape.sum()
        return counts

    def item_weights(self, items: int, seed: int, total: float | None) -> F64:
        """Return the curve, its ranks dealt to the items at random."""
        if total is None:
            raise SettingError("PopularityLaw: give the number of ratings: ratings= or density=")
        weights = np.empty(items)
        weights[_shuffled(seed, "world/popularity", items)] = self.curve(items, total)
        return weights


class Weighted(ObservingPart):
    """Weights of users or of items: given, or drawn with a spread."""

    spread: float
    weights: tuple[float, ...] | None

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = type(self).__name__
        if self.weights is None:
            return
        try:
            numbers = tuple(float(weight) for weight in self.weights)
        except (TypeError, ValueError):
            raise SettingError(f"{kind}: weights must be a list of numbers") from None
        if not numbers or not all(0 <= number < np.inf for number in numbers) or not any(numbers):
            raise SettingError(f"{kind}: weights must be numbers from 0 up, and not all 0")
        object.__setattr__(self, "weights", numbers)

    def _drawn_or_given(self, count: int, seed: int, stage: str, what: str) -> F64:
        if self.weights is None:
            return np.exp(self.spread * normal(seed, stage, count))
        if len(self.weights) != count:
            raise SettingError(
                f"{type(self).__name__}: {len(self.weights):,} weights for {count:,} {what}; give "
                "one each"
            )
        return np.array(self.weights)


@dataclass(frozen=True)
class ByItem(Weighted):
    """Items differ in how often they are discovered, whether they are liked or not.

    Parameters
    ----------
    spread
        Weights are drawn: e to the power of a normal number with this standard deviation.
    weights
        The weights themselves instead, one per item in the order of their ids.

    Examples
    --------
    >>> from unskew.worlds.observation import ByItem
    >>> ByItem(weights=(3, 1)).item_weights(2, seed=0, total=None).tolist()
    [3.0, 1.0]
    """

    spread: float = within(1.0, 0, 5)
    weights: tuple[float, ...] | None = None

    def item_weights(self, items: int, seed: int, total: float | None) -> F64:  # noqa: ARG002
        """Return a weight per item."""
        return self._drawn_or_given(items, seed, "world/by item", "items")


@dataclass(frozen=True)
class Activity(Weighted):
    """Some users rate much more than others.

    Parameters
    ----------
    spread
        Weights are drawn: e to the power of a normal number with this standard deviation.
    weights
        The weights themselves instead, one per user in the order of their ids.

    Examples
    --------
    >>> from unskew.worlds.observation import Activity
    >>> Activity(weights=(2, 1)).user_weights(2, seed=0).tolist()
    [2.0, 1.0]
    """

    spread: float = within(0.9, 0, 5)
    weights: tuple[float, ...] | None = None

    def user_weights(self, users: int, seed: int) -> F64:
        """Return a weight per user."""
        return self._drawn_or_given(users, seed, "world/activity", "users")


@dataclass(frozen=True)
class Reordering(ObservingPart):
    """Deals the popularity of items anew, by how much they are truly liked."""

    agreement: float = within(1.0, 0, 1)
    sign: ClassVar[int]
    """1: better items are more popular; -1: worse ones are."""

    def dealt(self, weights: F64, chance: F64, seed: int) -> F64:
        """Deal the weights to items whose mean chance to be liked is `chance`."""
        spread = chance.std()
        standard = (chance - chance.mean()) / spread if spread > 0 else np.zeros(chance.size)
        noise = math.sqrt(1 - self.agreement**2) * normal(seed, "world/agreement", chance.size)
        key = self.sign * self.agreement * standard + noise
        order = np.lexsort((draw(seed, "world/popularity", np.arange(chance.size)), key))
        dealt = np.empty(chance.size)
        dealt[order] = np.sort(weights)
        return dealt


@dataclass(frozen=True)
class WithRelevance(Reordering):
    """Better items are more popular: the popularity there is, dealt by rank of p(relevant | i).

    Alone it takes `PopularityLaw()`. With `agreement` below 1 the rank is by a mixture of
    p(relevant | i) and chance, whose correlation with p(relevant | i) is `agreement`.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.worlds.observation import WithRelevance
    >>> WithRelevance().dealt(np.array([1.0, 5, 2]), np.array([0.3, 0.1, 0.9]), seed=0).tolist()
    [2.0, 1.0, 5.0]
    """

    sign = 1


@dataclass(frozen=True)
class AgainstRelevance(Reordering):
    """Worse items are more popular: the popularity there is, dealt against p(relevant | i).

    The simulation of mena2021, section 8.5. `agreement` as in `WithRelevance`, with the sign
    turned.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.worlds.observation import AgainstRelevance
    >>> AgainstRelevance().dealt(np.array([1.0, 5, 2]), np.array([0.3, 0.1, 0.9]), seed=0).tolist()
    [2.0, 5.0, 1.0]
    """

    sign = -1


@dataclass(frozen=True)
class Clustered(ObservingPart):
    """Groups of users discover groups of items, whatever they like.

    Users and items fall at random into groups of equal size. A user of group g discovers items of
    the groups h with h = g modulo the smaller number of groups fully, all others by `strength`
    less. Weights are evened out so that every item is discovered equally often over all users:
    only pairs differ. Without such clusters no simulated data favours collaborative filtering as
    castells2018 (Fig. 2) found it on real positions.

    Parameters
    ----------
    user_groups, item_groups
        The numbers of groups.
    strength
        0 for none, 1 if nothing outside the own groups is discovered.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.worlds.observation import Clustered
    >>> part = Clustered(user_groups=2, item_groups=2, strength=0.5)
    >>> part.matrix(np.array([0, 1], np.int32), np.ones(2)).round(3).tolist()
    [[1.333, 0.667], [0.667, 1.333]]
    """

    user_groups: int = whole(8, 1)
    item_groups: int = whole(8, 1)
    strength: float = within(0.8, 0, 1)

    def groups(self, users: int, items: int, seed: int) -> tuple[I32, I32]:
        """Return the group of each user and of each item."""
        for what, count, groups in (
            ("users", users, self.user_groups),
            ("items", items, self.item_groups),
        ):
            if groups > count:
                raise SettingError(f"Clustered: {groups} groups of {what}, but only {count} {what}")
        return (
            _dealt_groups(seed, "world/group of user", users, self.user_groups),
            _dealt_groups(seed, "world/group of item", items, self.item_groups),
        )

    def matrix(self, user_group: I32, activity: F64) -> F64:
        """Return the weight of each pair of groups, given how active the users are."""
        smaller = min(self.user_groups, self.item_groups)
        same = np.equal.outer(
            np.arange(self.user_groups) % smaller, np.arange(self.item_groups) % smaller
        )
        weight = np.where(same, 1.0, 1.0 - self.strength)
        mass = np.bincount(user_group, weights=activity, minlength=self.user_groups)
        level: F64 = mass @ weight / mass.sum()
        if not level.all():
            raise SettingError("Clustered: no active user discovers some groups; lower strength")
        return weight / level


@dataclass(frozen=True)
class Ageing(ObservingPart):
    """Items appear over time and are discovered ever less as they age; ratings get a time.

    An item is there from its birth to the end. Discovery falls with age by e^(-age / fade), so an
    old item gathers more ratings in all than a new one (mena2021 section 8.5).

    Parameters
    ----------
    fade
        How fast, as a share of the whole span.

    Examples
    --------
    >>> from unskew.worlds.observation import Ageing
    >>> from unskew.worlds.tastes import births
    >>> weights = Ageing(fade=0.5).item_weights(3, seed=1, total=None)
    >>> bool((weights.argsort() == (-births(1, 3)).argsort()).all())
    True
    """

    fade: float = within(0.5, 1e-3, 1e6)

    def item_weights(self, items: int, seed: int, total: float | None) -> F64:  # noqa: ARG002
        """Return how much discovery falls into each item's life."""
        return -self.fade * np.expm1(-(1 - births(seed, items)) / self.fade)

    def moments(self, user: I32, item: I32, items: int, seed: int) -> F64:
        """Return when each pair was rated, from [0, 1]: never before the item was there."""
        born = births(seed, items)[item]
        draw = uniform(seed, "world/time", user, item)
        age = -self.fade * np.log1p(draw * np.expm1(-(1 - born) / self.fade))
        return np.minimum(born + age, 1.0)


@dataclass(frozen=True)
class Feedback(ObservingPart):
    """A recommender shows what is rated most, which is then discovered more: rounds of ratings.

    After each round the `shown` items with the most ratings so far are discovered
    `1 + strength` times as often from then on: what is shown again and again grows round by round.
    Rounds follow each other in time and have equal expected numbers of ratings; each rating is
    tagged with its round.

    Parameters
    ----------
    rounds
        How many rounds.
    shown
        How many items the recommender shows: a share of all items.
    strength
        By how much showing an item raises its discovery.

    Examples
    --------
    >>> from unskew.worlds.observation import Feedback
    >>> Feedback(rounds=3).describe()
    {'part': 'Feedback', 'rounds': 3, 'shown': 0.1, 'strength': 1.0}
    """

    rounds: int = whole(5, 1)
    shown: float = within(0.1, 0, 1)
    strength: float = within(1.0, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds > 100:
            raise SettingError(f"Feedback: rounds must be 100 at most, got {self.rounds}")

    def boosted(self, weights: F64, counts: I64) -> F64:
        """Raise the weights of the items with the largest counts; of equals the first."""
        number = math.ceil(self.shown * counts.size)
        top = np.argsort(-counts, kind="stable")[:number]
        raised = weights.copy()
        raised[top] *= 1 + self.strength
        return raised


@dataclass(frozen=True)
class ByRelevance(ObservingPart):
    """Whoever discovers an item rates it with a probability that depends on liking it.

    Only the ratio of the two shows, unless discovery is certain: the world's number of ratings
    sets the scale.

    Examples
    --------
    >>> from unskew.worlds.observation import ByRelevance
    >>> ByRelevance(if_not=0.25).describe()
    {'part': 'ByRelevance', 'if_liked': 1.0, 'if_not': 0.25}
    """

    if_liked: float = within(1.0, 0, 1)
    if_not: float = within(0.3, 0, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.if_liked == self.if_not == 0:
            raise SettingError("ByRelevance: if_liked and if_not are both 0: nobody would rate")


@dataclass(frozen=True)
class Always(ObservingPart):
    """Whoever discovers an item rates it, liked or not.

    Examples
    --------
    >>> from unskew.worlds.observation import Always
    >>> Always().describe()
    {'part': 'Always'}
    """


class Fit(NamedTuple):
    """A fitted law c1 + β (c2 + k)^-α. Made by `fit_popularity_law`."""

    c1: float
    c2: float
    alpha: float
    beta: float


@checked
def fit_popularity_law(ratings: Ratings) -> Fit:
    """Fit |R(i_k)| = c1 + β (c2 + k)^-α to the popularity of items (bellogin2017 section 5.2).

    Least squares on the counts of the items by rank, with c1, c2, α and β from 0 up. For any α
    and c2 the best c1 and β follow directly; α and c2 are searched. Least squares on counts (not
    on their logarithms) is what gives MovieLens 1M the α of about 1.4 that the paper names.

    Parameters
    ----------
    ratings
        At least four items must have ratings.

    Returns
    -------
    Fit
        `c1`, `c2`, `alpha` and `beta`.

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> import unskew as us
    >>> from unskew.worlds.observation import fit_popularity_law
    >>> counts = np.round(3 + 2000 / (5.0 + np.arange(1, 61))).astype(int)
    >>> item = np.repeat(np.arange(60), counts)
    >>> user = np.concatenate([np.arange(n) for n in counts])
    >>> fit = fit_popularity_law(us.read_ratings(pl.DataFrame({"user": user, "item": item})))
    >>> round(fit.alpha, 1)
    1.0
    """
    counts = np.bincount(ratings.item, minlength=len(ratings.items)).astype(np.float64)
    counts = np.sort(counts[counts > 0])[::-1]
    if counts.size < 4:
        raise DataError(
            "a popularity law has four numbers to fit, but only "
            f"{counted(counts.size, 'item has', 'items have')} ratings"
        )
    rank = np.arange(1, counts.size + 1, dtype=np.float64)

    def fit(alpha: float, log_c2: float) -> tuple[float, float, float, float]:
        c2 = math.exp(log_c2)
        # Relative to the first rank, or a large power would leave the range of numbers.
        shape = ((c2 + rank) / (c2 + 1)) ** -alpha
        c1, beta = _two_terms(shape, counts)
        left = counts - c1 - beta * shape
        return float(left @ left), c1, c2, beta

    lowest, highest = math.log(1e-3), math.log(10.0 * counts.size)

    def best_shift(alpha: float) -> float:
        return _least(lambda x: fit(alpha, x)[0], lowest, highest, 24)

    alpha = _least(lambda a: fit(a, best_shift(a))[0], 0.0, 6.0, 24)
    _, c1, c2, beta = fit(alpha, best_shift(alpha))
    return Fit(c1, c2, alpha, beta * (c2 + 1) ** alpha)


def _two_terms(shape: F64, counts: F64) -> tuple[float, float]:
    """Return c1 and β from 0 up that bring c1 + β shape nearest to the counts."""
    mean, level = float(shape.mean()), float(counts.mean())
    apart = shape - mean
    spread = float(apart @ apart)
    slope = float(apart @ counts) / spread if spread > 0 else 0.0
    if slope <= 0:
        return level, 0.0
    constant = level - slope * mean
    if constant >= 0:
        return constant, slope
    return 0.0, float(shape @ counts) / float(shape @ shape)


def _least(of: Any, low: float, high: float, steps: int) -> float:
    """Return where a function is least: a grid, then golden sections around its best point."""
    grid = np.linspace(low, high, steps)
    best = int(np.argmin([of(float(x)) for x in grid]))
    a, b = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, steps - 1)])
    golden = (math.sqrt(5) - 1) / 2
    left, right = b - golden * (b - a), a + golden * (b - a)
    at_left, at_right = of(left), of(right)
    while b - a > 1e-4 * (high - low):
        if at_left <= at_right:
            b, right, at_right = right, left, at_left
            left = b - golden * (b - a)
            at_left = of(left)
        else:
            a, left, at_left = left, right, at_right
            right = a + golden * (b - a)
            at_right = of(right)
    return (a + b) / 2


def whole_counts(expected: F64, total: int, limit: int) -> I64:
    """Round expected counts so that they sum to `total`: the largest remainders go up.

    No count exceeds `limit`; what would, goes to the others in proportion.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.worlds.observation import whole_counts
    >>> whole_counts(np.array([5.5, 1.3, 1.2]), total=8, limit=4).tolist()
    [4, 2, 2]
    """
    if total > limit * expected.size:
        raise SettingError(
            f"{counted(total, 'rating is', 'ratings are')} more than {expected.size:,} items x "
            f"{limit:,} users"
        )
    scaled = expected * (total / expected.sum())
    full = scaled > limit
    while full.any():
        scale = (total - limit * int(full.sum())) / max(float(expected[~full].sum()), 1e-300)
        scaled = np.where(full, float(limit), expected * scale)
        more = full | (scaled > limit)
        if (more == full).all():
            break
        full = more
    counts: I64 = np.floor(scaled).astype(np.int64)
    remainder = np.where(counts < limit, scaled - counts, -1.0)
    counts[np.argsort(-remainder, kind="stable")[: total - int(counts.sum())]] += 1
    return counts


def _shuffled(seed: int, stage: str, count: int) -> I64:
    """Return 0, 1, … count - 1 in an order drawn by counter hash."""
    order: I64 = np.argsort(draw(seed, stage, np.arange(count)), kind="stable")
    return order


def _dealt_groups(seed: int, stage: str, count: int, groups: int) -> I32:
    """Deal members to groups at random, as equal in size as can be."""
    group = np.empty(count, np.int32)
    group[_shuffled(seed, stage, count)] = np.arange(count) % groups
    return group
