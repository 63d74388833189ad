"""Interventions: held-out ratings drawn or weighted so that they look missing at random.

carraro2020 draws a smaller test set from biased held-out ratings, so that users and items appear
in it about as often as in ratings of randomly chosen items. Each design here is a small frozen
value: `sample` draws such a set, `weigh` uses all held-out ratings with weights instead. Both take
any ratings, training data too.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, frozen
from unskew.checks import as_share, check, choose, portion
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.summary import divergence, effective_size, gini
from unskew.engine.rng import DrawKeyed, draw
from unskew.errors import DataError, DataWarning, SettingError
from unskew.report.text import counted
from unskew.settings import choice, declare, number, share
from unskew.splits import draws

UNSEEN = ("once", "random")
SMOOTHING = ("additive", "paper")
METHODS = ("hajek", "inclusion", "raking")

# carraro2020 puts this in place of a posterior of zero.
_PAPER_ZERO = 1e-4
_RAKING_STEPS = 1_000
_RAKING_DONE = 1e-6


@dataclass(frozen=True, eq=False)
class Intervened:
    """Held-out ratings after an intervention. Made by `sample` or `weigh`.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> print(us.splits.Reg(size=0.2).sample(shop, seed=1))
    reg: 70 ratings drawn from 354 held out
      users: divergence from uniform 0.1872 -> 0.5800, Gini 0.3296 -> 0.5348
      items: divergence from uniform 0.2107 -> 0.4909, Gini 0.3627 -> 0.5200
    """

    ratings: Ratings
    """The ratings drawn, or all held-out ratings where they are weighted."""
    weight: F64 | None = None
    """The weight of each rating, 1 on average; None where ratings were drawn."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was counted on the way, and the distances to uniform before and after."""
    design: Mapping[str, Any] = field(default_factory=dict)
    """The settings and the seed from which it can be made again."""

    def to_polars(self) -> pl.DataFrame:
        """Return the ratings with raw ids, and a column `weight` where they are weighted."""
        frame = self.ratings.to_polars()
        return frame if self.weight is None else frame.with_columns(weight=pl.Series(self.weight))

    @property
    def _summary(self) -> str:
        what = "drawn from" if self.weight is None else "weighted, all of"
        return (
            f"{self.design['kind']}: {counted(len(self.ratings), 'rating')} {what} "
            f"{self.facts['held_out']:,} held out"
        )

    def __repr__(self) -> str:
        return f"Intervened({self._summary})"

    def __str__(self) -> str:
        lines = [self._summary]
        for of in ("users", "items"):
            kl, g = (
                f"{self.facts[f'{of}_{measure}_before']:.4f} -> "
                f"{self.facts[f'{of}_{measure}_after']:.4f}"
                for measure in ("kl", "gini")
            )
            lines.append(f"  {of}: divergence from uniform {kl}, Gini {g}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        return card("Intervened", self._summary, self.facts.items())


class RatingCounts(NamedTuple):
    """What a design may look at, under one numbering; parts that were not given are empty."""

    held_out: Ratings
    train: Ratings
    mar: Ratings
    seed: int

    @property
    def users(self) -> int:
        """The number of users."""
        return len(self.held_out.users)

    @property
    def items(self) -> int:
        """The number of items."""
        return len(self.held_out.items)


class Aim(NamedTuple):
    """What a design makes of its evidence."""

    user: F64
    """How much more likely each user's ratings are to be drawn."""
    item: F64
    """How much more likely each item's ratings are to be drawn; the product counts."""
    to_user: F64 | None = None
    """The distribution of users to rake to; None = as they are."""
    to_item: F64 | None = None
    facts: Mapping[str, Any] = MappingProxyType({})

    def weights(self, ratings: Ratings) -> F64:
        """Return what the draw of each rating is proportional to."""
        product: F64 = self.user[ratings.user] * self.item[ratings.item]
        return product


@dataclass(frozen=True)
class Design(DrawKeyed, ABC):
    """A way to intervene: how likely each held-out rating is to be drawn."""

    size: float = share(0.5, "The share of the held-out ratings to draw, rounded down.", one=True)

    kind: ClassVar[str]
    """Its name on the command line and on cards."""
    draw_entry: ClassVar[str | None] = "kind"
    needs: ClassVar[tuple[str, ...]] = ()
    """Which of `train` and `mar` it cannot do without."""

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import settings_card

        return settings_card(type(self).__name__, "a way to draw from held-out ratings", self)

    @abstractmethod
    def aim(self, evidence: RatingCounts) -> Aim:
        """Return how likely each user's and each item's ratings are to be drawn."""

    def sample(
        self,
        held_out: Ratings,
        train: Ratings | None = None,
        mar: Ratings | None = None,
        seed: int = 0,
    ) -> Intervened:
        """Draw a part of the held-out ratings, without replacement.

        Parameters
        ----------
        held_out
            Ratings to draw from.
        train
            Training ratings, from which popularity and posteriors are counted (SKEW, WTD, WTD_H).
        mar
            Ratings of randomly chosen items, for the posteriors to aim at (WTD).
        seed
            Same seed, same rows, in any order of the input.
        """
        evidence = self._evidence(held_out, train, mar, seed)
        held_out = evidence.held_out
        number = int(portion(np.array([len(held_out)]), as_share("size", self.size, one=True))[0])
        if not number:
            raise DataError(
                f"{self.kind}: size={self.size:g} of {len(held_out)} ratings is none; take a "
                f"larger size, such as 1"
            )
        aim = self.aim(evidence)
        sample = held_out.take(draws.weighted(held_out, aim.weights(held_out), number, seed))
        facts = {**aim.facts, **_distances(held_out, sample.user, sample.item)}
        return Intervened(sample, None, facts, {**self.describe(), "seed": int(seed)})

    def weigh(
        self,
        held_out: Ratings,
        train: Ratings | None = None,
        mar: Ratings | None = None,
        method: str = "hajek",
        seed: int = 0,
    ) -> Intervened:
        """Weight all held-out ratings instead of drawing some: the same aim, less noise.

        Parameters
        ----------
        held_out, train, mar, seed
            As for `sample`.
        method
            `hajek`: in proportion to what the design draws by. `inclusion`: in proportion to the
            probability of being in the sample of this `size`, which is what samples give on
            average (the exponential-clock approximation 1 - exp(-t w), whose error vanishes with
            the number of ratings). `raking`: multiplied per user and per item, in turn, until
            users and items both have the distributions the design aims at, which carraro2020
            (Eq. 10) only assumes. Weights are 1 on average.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
        >>> (split,) = us.splits.Random(test=0.5).split(shop, seed=1)
        >>> weighted = us.splits.Skew().weigh(split.test, split.train)
        >>> len(weighted.ratings) == len(split.test), round(float(weighted.weight.mean()), 3)
        (True, 1.0)
        """
        choose("method", method, METHODS)
        evidence = self._evidence(held_out, train, mar, seed)
        held_out, aim = evidence.held_out, self.aim(evidence)
        facts = dict(aim.facts)
        if method == "raking":
            weight, more = _rake(held_out, aim.to_user, aim.to_item)
            facts |= more
        elif method == "inclusion":
            weight = _inclusion(aim.weights(held_out), self.size * len(held_out))
        else:
            weight = aim.weights(held_out)
        weight = weight / weight.mean()
        facts |= _distances(held_out, held_out.user, held_out.item, weight)
        facts["effective_size"] = effective_size(weight)
        design = {**self.describe(), "method": method, "seed": int(seed)}
        return Intervened(held_out, frozen(weight), facts, design)

    def _evidence(
        self, held_out: Ratings, train: Ratings | None, mar: Ratings | None, seed: int
    ) -> RatingCounts:
        """Check that there is what the design needs, and bring it under one numbering."""
        sources = {"train": train, "mar": mar}
        for name in self.needs:
            if not sources[name]:
                raise SettingError(f"{self.kind} needs {name}: {_WHY[name]}")
        if not len(held_out):
            raise DataError(f"{self.kind}: there are no held-out ratings")
        nothing = held_out.take(np.zeros(0, np.int64))
        parts = [nothing if rows is None else rows for rows in sources.values()]
        held_out, train, mar = under_one_numbering(held_out, *parts)
        return RatingCounts(held_out, train, mar, seed)


_WHY = {
    "train": "training ratings, to count how popular users and items are",
    "mar": "ratings of randomly chosen items; where there are none, take WtdH (wtd-h)",
}


def _check_whole(name: str, value: object) -> None:
    check(name, value, float)
    if value != 1:
        raise SettingError(f"full keeps everything; got {name}={value}: Reg draws a part")


@dataclass(frozen=True)
class Reg(Design):
    """REG: drawn at random, each rating as likely as any other.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> us.splits.Reg(size=0.2).sample(shop, seed=1)
    Intervened(reg: 70 ratings drawn from 354 held out)
    """

    kind: ClassVar[str] = "reg"
    draw_name: ClassVar[str] = "reg"

    def aim(self, evidence: RatingCounts) -> Aim:
        """Treat all alike."""
        return Aim(np.ones(evidence.users), np.ones(evidence.items))


@dataclass(frozen=True)
class Full(Reg):
    """FULL: all held-out ratings as they are.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> us.splits.Full().sample(shop)
    Intervened(full: 354 ratings drawn from 354 held out)
    """

    size: float = declare(1.0, "1: everything is kept.", _check_whole)

    kind: ClassVar[str] = "full"
    draw_name: ClassVar[str] = "full"


@dataclass(frozen=True)
class Skew(Design):
    """SKEW: drawn in inverse proportion to the popularity of the item in training.

    Examples
    --------
    The sample has more even numbers of ratings per item than the held-out ratings.

    >>> import unskew as us
    >>> shop = us.world("shop", users=200, items=40, density=0.3, seed=3).ratings
    >>> (split,) = us.splits.Random(test=0.5).split(shop, seed=1)
    >>> sample = us.splits.Skew().sample(split.test, split.train, seed=1)
    >>> sample, [round(sample.facts[f"items_gini_{when}"], 2) for when in ("before", "after")]
    (Intervened(skew: 610 ratings drawn from 1,221 held out), [0.34, 0.17])
    """

    exponent: float = number(1.0, "Exponent of the popularity: 1 / pop(i) ** exponent.")
    unseen: str = choice(
        "once",
        """Items without training ratings count as rated `once` (default), or get a `random` weight
        between 0 and 1, as in the released code of carraro2020. They are counted.""",
        UNSEEN,
    )

    kind: ClassVar[str] = "skew"
    draw_name: ClassVar[str] = "skew"
    needs: ClassVar[tuple[str, ...]] = ("train",)

    def aim(self, evidence: RatingCounts) -> Aim:
        """Weight items by 1 / pop(i) ** exponent; to rake, aim at items that are all alike."""
        counts = np.bincount(evidence.train.item, minlength=evidence.items)
        weight = np.maximum(counts, 1.0) ** -self.exponent
        if self.unseen == "random":
            missing = np.flatnonzero(counts == 0)
            bits = draw(evidence.seed, "intervene/unseen", missing) >> np.uint64(12)
            weight[missing] = bits.astype(np.float64) * 2.0**-52 + 2.0**-53
        return Aim(np.ones(evidence.users), weight, None, _alike(evidence.items), _unseen(evidence))


@dataclass(frozen=True)
class Wtd(Design):
    r"""WTD: drawn by :math:`w_u\,w_i^2`, the ratios of random to biased posteriors.

    carraro2020 section 4: :math:`w_u = P_{mar}(u|O) / P_{mnar}(u|O)`, likewise :math:`w_i`. The
    biased posteriors are those of the training ratings, the random ones of `mar`.

    Examples
    --------
    In a simulation there are ratings of randomly chosen items to aim at.

    >>> import unskew as us
    >>> shop = us.world("shop", users=200, items=40, density=0.3, seed=3)
    >>> (split,) = us.splits.Random(test=0.5).split(shop.ratings, seed=1)
    >>> sample = us.splits.Wtd().sample(split.test, split.train, mar=shop.random(0.2), seed=1)
    >>> [round(sample.facts[f"items_gini_{when}"], 2) for when in ("before", "after")]
    [0.34, 0.15]
    """

    exponent: float = number(
        2.0, "Exponent of the item weight: 2 in the paper, 1 in the released code."
    )
    smoothing: str = choice(
        "additive",
        """For posteriors of 0, which would draw always or never: `additive` adds `alpha` ratings to
        every user and item; `paper` puts 0.0001 in the place of 0, whatever the number of users and
        items. How many are 0 is counted either way.""",
        SMOOTHING,
    )
    alpha: float = number(1.0, "Number of ratings that `additive` adds.", above=0)

    kind: ClassVar[str] = "wtd"
    draw_name: ClassVar[str] = "wtd"
    needs: ClassVar[tuple[str, ...]] = ("train", "mar")

    def aim(self, evidence: RatingCounts) -> Aim:
        """Weight by w_u * w_i ** exponent; to rake, aim at the random posteriors."""
        train = evidence.train
        to_user, to_item, facts = self._targets(evidence)
        biased_user, users = self._posterior(train.user, evidence.users)
        biased_item, items = self._posterior(train.item, evidence.items)
        facts |= {"zero_train_users": users, "zero_train_items": items}
        return Aim(
            to_user / biased_user,
            (to_item / biased_item) ** self.exponent,
            to_user,
            to_item,
            {**_unseen(evidence), **facts},
        )

    def _targets(self, evidence: RatingCounts) -> tuple[F64, F64, dict[str, Any]]:
        """Return the posteriors of users and items in random ratings."""
        to_user, users = self._posterior(evidence.mar.user, evidence.users)
        to_item, items = self._posterior(evidence.mar.item, evidence.items)
        return to_user, to_item, {"zero_mar_users": users, "zero_mar_items": items}

    def _posterior(self, codes: I32, size: int) -> tuple[F64, int]:
        """Return the distribution of ratings over users or items, and how many have none."""
        counts = np.bincount(codes, minlength=size).astype(np.float64)
        zeros = int(np.count_nonzero(counts == 0))
        if self.smoothing == "additive":
            return (counts + self.alpha) / (codes.size + self.alpha * size), zeros
        return np.where(counts == 0, _PAPER_ZERO, counts / codes.size), zeros


@dataclass(frozen=True)
class WtdH(Wtd):
    """WTD_H: as WTD, with the posteriors that random ratings would have: all alike.

    carraro2020 section 4.3; needs no random ratings. Parameters as for `Wtd`.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=200, items=40, density=0.3, seed=3).ratings
    >>> (split,) = us.splits.Random(test=0.5).split(shop, seed=1)
    >>> sample = us.splits.WtdH().sample(split.test, split.train, seed=1)
    >>> [round(sample.facts[f"items_gini_{when}"], 2) for when in ("before", "after")]
    [0.34, 0.15]
    """

    kind: ClassVar[str] = "wtd-h"
    draw_name: ClassVar[str] = "wtd-h"
    needs: ClassVar[tuple[str, ...]] = ("train",)

    def _targets(self, evidence: RatingCounts) -> tuple[F64, F64, dict[str, Any]]:
        return _alike(evidence.users), _alike(evidence.items), {}


DESIGNS: dict[str, type[Design]] = {design.kind: design for design in (Full, Reg, Skew, Wtd, WtdH)}


def _alike(size: int) -> F64:
    return np.full(size, 1 / size)


def _unseen(evidence: RatingCounts) -> dict[str, Any]:
    """Count the held-out items that training does not know, and their ratings."""
    trained = np.bincount(evidence.train.item, minlength=evidence.items) > 0
    unseen = ~trained[evidence.held_out.item]
    return {
        "items_unseen": int(np.unique(evidence.held_out.item[unseen]).size),
        "ratings_of_unseen_items": int(np.count_nonzero(unseen)),
    }


def _distances(
    held_out: Ratings, user: I32, item: I32, weight: F64 | None = None
) -> dict[str, Any]:
    """Return how far users and items are from uniform before and after, over all ids."""
    facts: dict[str, Any] = {"held_out": len(held_out), "kept": int(user.size)}
    sides = (
        ("users", held_out.user, user, len(held_out.users)),
        ("items", held_out.item, item, len(held_out.items)),
    )
    for of, before, after, size in sides:
        amounts = {"before": _amounts(before, None, size), "after": _amounts(after, weight, size)}
        for when, amount in amounts.items():
            facts[f"{of}_kl_{when}"] = divergence(amount)
            facts[f"{of}_gini_{when}"] = gini(amount)
            facts[f"{of}_{when}"] = int(np.count_nonzero(amount))
    return facts


def _amounts(codes: I32, weight: F64 | None, size: int) -> F64:
    return np.bincount(codes, weight, minlength=size).astype(np.float64)


def _inclusion(weight: F64, size: float) -> F64:
    """Return 1 - exp(-t w) with t such that these probabilities add up to `size`.

    Newton's steps from the left on a concave function: each ends left of the root.
    """
    if size >= weight.size:
        return np.ones(weight.size)
    speed = weight / weight.sum()
    t = float(size)
    for _ in range(200):
        alive = np.exp(-t * speed)
        step = (size - float(np.sum(1 - alive))) / float(speed @ alive)
        t += step
        if step <= 1e-12 * t:
            break
    probability: F64 = -np.expm1(-t * speed)
    return probability


def _rake(held_out: Ratings, users: F64 | None, items: F64 | None) -> tuple[F64, dict[str, Any]]:
    """Fit weights a_u * b_i so that users and items have the given distributions.

    Iterative proportional fitting. What nobody rated cannot be reached: the distributions are
    those of the users and items that have held-out ratings (the others are counted).
    """
    user, item, weight = held_out.user, held_out.item, np.ones(len(held_out))
    want_user, lost_users = _reachable(users, user, len(held_out.users))
    want_item, lost_items = _reachable(items, item, len(held_out.items))
    gap, steps = np.inf, 0
    while gap > _RAKING_DONE and steps < _RAKING_STEPS:
        steps += 1
        gap = 0.0
        if want_item is not None:
            have = _amounts(item, weight, want_item.size)
            weight *= _ratio(want_item, have)[item]
        if want_user is not None:
            have = _amounts(user, weight, want_user.size)
            gap = float(np.max(np.abs(have - want_user)) * np.count_nonzero(want_user))
            weight *= _ratio(want_user, have)[user]
    if gap > _RAKING_DONE:
        warnings.warn(
            f"raking stopped after {steps:,} steps, users being off by up to {gap:.2g} of an "
            f"average user's share: these ratings cannot have both distributions at once",
            DataWarning,
            stacklevel=3,
        )
    facts = {
        "raking_steps": steps,
        "raking_gap": gap,
        "users_out_of_reach": lost_users,
        "items_out_of_reach": lost_items,
    }
    return weight, facts


def _ratio(want: F64, have: F64) -> F64:
    return np.divide(want, have, out=np.ones(want.size), where=have > 0)


def _reachable(target: F64 | None, codes: I32, size: int) -> tuple[F64 | None, int]:
    """Restrict a distribution to those with ratings; return how many have none too."""
    if target is None:
        return None, 0
    there = np.bincount(codes, minlength=size) > 0
    return np.where(there, target, 0.0) / target[there].sum(), int(np.count_nonzero(~there))
