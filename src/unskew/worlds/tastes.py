"""What users like: parts of a world that add up on the scale of log odds, and star ratings.

The log odds that user u likes item i are a sum over the parts; each part adds a constant, a number
per user, a number per item, or a product of factors. Numbers are drawn by counter hash, so each is
the same in any order and on any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64
from unskew.data.ratings import Ratings
from unskew.engine.rng import draw
from unskew.errors import DataError, SettingError

ML1M_STARS = (56_174.0, 107_557.0, 261_197.0, 348_971.0, 226_310.0)
"""How often each of 1 to 5 stars stands in MovieLens 1M."""


def uniform(seed: int, stage: str, a: NDArray[Any], b: NDArray[Any] | int = 0) -> F64:
    """Return a number from [0, 1) for each pair (a, b)."""
    return (draw(seed, stage, a, b) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normal(seed: int, stage: str, count: int, column: int = 0) -> F64:
    """Return a standard normal number for each of 0, 1, … count - 1 (Box and Muller)."""
    number = np.arange(count)
    radius = np.sqrt(-2 * np.log1p(-uniform(seed, stage, number, 2 * column)))
    deviate: F64 = radius * np.cos(2 * np.pi * uniform(seed, stage, number, 2 * column + 1))
    return deviate


def births(seed: int, items: int) -> F64:
    """Return when each item of a world appears: a moment from [0, 1)."""
    return uniform(seed, "world/birth", np.arange(items))


def within(default: float | None, low: float, high: float = np.inf) -> Any:
    """Declare a setting of a part: a number in these limits; None only where it is the default."""
    return field(default=default, metadata={"limits": (low, high)})


def whole(default: int, low: int) -> Any:
    """Declare a setting of a part: a whole number from `low` up."""
    return field(default=default, metadata={"least": low})


class Part:
    """One trait of a world. Parts are plain settings; a world is put together from them."""

    def __post_init__(self) -> None:
        """Refuse settings outside their limits; a part that checks more calls this first."""
        for setting in fields(self):  # type: ignore[arg-type]  # every part is a dataclass
            value, limits = getattr(self, setting.name), setting.metadata
            if "limits" in limits and (value is not None or setting.default is not None):
                self._within(setting.name, *limits["limits"])
            elif "least" in limits:
                self._whole(setting.name, limits["least"])

    def describe(self) -> dict[str, Any]:
        """Return the part's name and settings, as a world's card has them."""
        return {
            "part": type(self).__name__,
            **{f.name: getattr(self, f.name) for f in fields(self)},  # type: ignore[arg-type]
        }

    def _within(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and low <= value <= high):
            limits = f"from {low:g} to {high:g}" if high < np.inf else f"from {low:g} up"
            raise SettingError(f"{type(self).__name__}: {name} must be {limits}, got {value!r}")

    def _whole(self, name: str, low: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            kind = f"{type(self).__name__}: {name} must be a whole number"
            raise SettingError(f"{kind} from {low} up, got {value!r}")


@dataclass
class Odds:
    """Log odds of being liked: of users, of items, and the factors whose products are added."""

    seed: int
    user: F64
    item: F64
    user_factors: list[F64] = field(default_factory=list)
    item_factors: list[F64] = field(default_factory=list)

    @classmethod
    def of(cls, parts: Sequence[LikingPart], users: int, items: int, seed: int) -> Odds:
        """Add up the parts for so many users and items."""
        odds = cls(seed, np.zeros(users), np.zeros(items))
        for part in parts:
            part.add_to(odds)
        return odds


class LikingPart(Part):
    """A part that says what users like."""

    def add_to(self, odds: Odds) -> None:
        """Add this part's log odds."""
        raise NotImplementedError


@dataclass(frozen=True)
class Iid(LikingPart):
    """Every user likes every item with the same chance: no taste, no quality.

    Alone it is the null hypothesis of castells2018 (section 7.1). Beside other parts it is the
    level to which they add: the chance of a pair where all others add 0.

    Examples
    --------
    >>> from unskew.worlds.tastes import Iid
    >>> Iid(0.57).describe()
    {'part': 'Iid', 'p': 0.57}
    """

    p: float = within(0.5, 0, 1)

    def add_to(self, odds: Odds) -> None:
        """Add the log odds of `p` to all."""
        with np.errstate(divide="ignore"):
            odds.item += np.log(self.p) - np.log1p(-self.p)


@dataclass(frozen=True)
class Quality(LikingPart):
    """Some items are liked more by everyone: a normal number per item with this spread.

    Examples
    --------
    >>> from unskew.worlds.tastes import Odds, Quality
    >>> odds = Odds.of([Quality(0.5)], users=10, items=20_000, seed=1)
    >>> round(float(odds.item.std()), 2)
    0.5
    """

    spread: float = within(1.0, 0)

    def add_to(self, odds: Odds) -> None:
        """Add a number per item."""
        odds.item += self.spread * normal(odds.seed, "world/quality", odds.item.size)


@dataclass(frozen=True)
class Generosity(LikingPart):
    """Some users like more of everything: a normal number per user with this spread.

    Examples
    --------
    >>> from unskew.worlds.tastes import Generosity, Odds
    >>> odds = Odds.of([Generosity(0.5)], users=20_000, items=10, seed=1)
    >>> round(float(odds.user.std()), 2)
    0.5
    """

    spread: float = within(0.5, 0)

    def add_to(self, odds: Odds) -> None:
        """Add a number per user."""
        odds.user += self.spread * normal(odds.seed, "world/generosity", odds.user.size)


@dataclass(frozen=True)
class Rising(LikingPart):
    """Newer items are better: the newest by `by` log odds above the oldest (mena2021 8.5).

    When items appear is drawn from the world's seed; `Ageing` uses the same moments.

    Examples
    --------
    >>> from unskew.worlds.tastes import Odds, Rising, births
    >>> odds = Odds.of([Rising(2.0)], users=1, items=3, seed=1)
    >>> bool((odds.item.argsort() == births(1, 3).argsort()).all())
    True
    """

    by: float = within(2.0, -np.inf)

    def add_to(self, odds: Odds) -> None:
        """Add a number per item that grows with its birth."""
        odds.item += self.by * (births(odds.seed, odds.item.size) - 0.5)


@dataclass(frozen=True)
class Tastes(LikingPart):
    """Users like different things: a product of latent factors of user and item.

    Parameters
    ----------
    factors
        The number of latent factors, each normal.
    spread
        The standard deviation of the product, in log odds.

    Examples
    --------
    >>> from unskew.worlds.tastes import Odds, Tastes
    >>> odds = Odds.of([Tastes(factors=4, spread=1.5)], users=500, items=400, seed=1)
    >>> product = sum(p[:, None] * q for p, q in zip(odds.user_factors, odds.item_factors))
    >>> 1.3 < float(product.std()) < 1.7
    True
    """

    factors: int = whole(8, 1)
    spread: float = within(1.0, 0)

    def add_to(self, odds: Odds) -> None:
        """Add factors of users and of items."""
        scale = self.spread / np.sqrt(self.factors)
        for column in range(self.factors):
            stage = "world/taste of user"
            odds.user_factors.append(scale * normal(odds.seed, stage, odds.user.size, column))
            stage = "world/taste of item"
            odds.item_factors.append(normal(odds.seed, stage, odds.item.size, column))


@dataclass(frozen=True)
class Stars(Part):
    """The rating that a liked, or a disliked, item gets: a draw from a prior.

    Parameters
    ----------
    values
        The ratings there are, rising.
    shares
        How common each is, in any unit; unless given as in MovieLens 1M.
    liked
        The smallest liked rating.

    Examples
    --------
    >>> from unskew.worlds.tastes import Stars
    >>> round(Stars().liked_share, 4), round(Stars(liked=5).liked_share, 4)
    (0.5752, 0.2263)
    """

    values: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    shares: tuple[float, ...] = ML1M_STARS
    liked: float = 4.0

    def __post_init__(self) -> None:
        for name in ("values", "shares"):
            try:
                numbers = tuple(float(number) for number in getattr(self, name))
            except (TypeError, ValueError):
                raise SettingError(f"Stars: {name} must be a list of numbers") from None
            object.__setattr__(self, name, numbers)
        if not isinstance(self.liked, int | float) or isinstance(self.liked, bool):
            raise SettingError(f"Stars: liked must be a number, got {self.liked!r}")
        object.__setattr__(self, "liked", float(self.liked))
        if len(self.values) != len(self.shares):
            raise SettingError(
                f"Stars: a share for each value, got {len(self.values)} values and "
                f"{len(self.shares)} shares"
            )
        if list(self.values) != sorted(set(self.values)):
            raise SettingError(f"Stars: values must rise, got {self.values}")
        if not all(0 <= share < np.inf for share in self.shares):
            raise SettingError(f"Stars: shares must be numbers from 0 up, got {self.shares}")
        if not 0 < self.liked_share < 1:
            raise SettingError(
                f"Stars: liked={self.liked:g} leaves no rating that is liked, or none that is "
                f"not; ratings are {', '.join(f'{value:g}' for value in self.values)}"
            )

    @classmethod
    def of(cls, ratings: Ratings, liked: float) -> Stars:
        """Return the prior of some ratings: each value with its own share."""
        values, counts = np.unique(ratings.value, return_counts=True)
        if not (values.size and values[0] < liked <= values[-1]):
            span = (
                f"they go from {values[0]:g} to {values[-1]:g}" if values.size else "there are none"
            )
            raise DataError(
                f"liked={liked:g} must part the ratings into liked and disliked ones, but {span}; "
                f"choose another threshold"
            )
        return cls(tuple(values.tolist()), tuple(counts.tolist()), liked)

    @property
    def liked_share(self) -> float:
        """The share of ratings that are liked."""
        total = sum(self.shares)
        liked = sum(s for v, s in zip(self.values, self.shares, strict=True) if v >= self.liked)
        return liked / total if total > 0 else 0.0

    @property
    def scale(self) -> tuple[float, float]:
        """The least and the largest rating."""
        return self.values[0], self.values[-1]

    def ladders(self) -> tuple[F64, F64, F64, F64]:
        """Return values and cumulated shares of the disliked, then those of the liked."""
        values, shares = np.array(self.values), np.array(self.shares)
        result = []
        for side in ((values < self.liked) & (shares > 0), (values >= self.liked) & (shares > 0)):
            steps = np.cumsum(shares[side])
            result += [values[side], steps / steps[-1]]
        return result[0], result[1], result[2], result[3]
