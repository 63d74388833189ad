"""`World`: simulated data whose full relevance is known, given by blocks of users.

A world is put together from parts: what users like (`unskew.worlds.tastes`), which pairs they
discover and rate (`unskew.worlds.observation`), and the stars they give. Whatever is random about a
pair of user and item is drawn by counter hash from the world's seed, so a block of users has the
same bits alone and among others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, frozen
from unskew.checks import checked, choose
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ids, Ratings
from unskew.errors import DataError, SettingError, unknown_name
from unskew.report.text import counted
from unskew.worlds._truth import Known, Simulated, WorldTruth, tile_of
from unskew.worlds.observation import Activity, ByItem, Feedback, ObservingPart, PopularityLaw
from unskew.worlds.parts import (
    PARTS,
    WORLDS,
    ObservedSample,
    as_parts,
    as_users,
    as_whole,
    check_exact,
    check_kinds,
    check_together,
    familiar_rates,
    find_part,
    gini,
)
from unskew.worlds.tastes import Iid, LikingPart, Odds, Part, Stars

__all__ = ["OBSERVATIONS", "PARTS", "WORLDS", "World", "world"]

OBSERVATIONS = ("same", "counts", "given")
"""What `World.like` can take over from data: see there."""

MOST_PAIRS = 50_000_000
"""Pairs above which `World.truth` does not return all at once."""

FORMAT = 1
# Pairs of a block of users: a matrix of them has 8 MiB.
_PAIRS = 1 << 20
# When worlds with time begin, and how long they last: 2020, three years, in microseconds.
_BEGIN = 1_577_836_800_000_000
_SPAN = 3 * 365 * 86_400_000_000


@dataclass(frozen=True, eq=False)
class World:
    """Users, items, what they truly like, and which ratings of it are observed.

    Build one with `world`, `World.like` or `World.of_matrix`. What is heavy is made at first use.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.worlds.worlds import world
    >>> shop = world("shop", users=100, items=80, seed=7)
    >>> print(shop)
    shop: a world of 100 users x 80 items, seed 7
    >>> block = np.arange(3, dtype=np.int32)
    >>> shop.values(block).shape
    (3, 80)
    >>> len(shop.ratings), len(shop.truth())  # observed pairs, and all
    (325, 8000)
    >>> print(shop.dataset(random=0.05))
    shop: 325 ratings of 80 items by 100 users, 425 random ratings, scale 1 to 5, liked from 4
    """

    name: str
    seed: int
    users: Ids
    items: Ids
    parts: tuple[Part, ...]
    """What users like, discover and rate."""
    scale: tuple[float, float]
    """The least and the largest rating."""
    liked: float
    """The smallest liked rating: a pair is relevant if and only if its rating is at least this."""
    expected: int | None = None
    """The expected number of ratings; None where weights of items are probabilities already."""
    known: Ratings | None = None
    """The ratings of which a matrix world hides some; None in simulated worlds."""
    positions: Ratings | None = None
    """The pairs that are observed, where they are given."""
    source: Mapping[str, Any] | None = None
    """What of some data was taken over."""

    def __post_init__(self) -> None:
        check_together(self.parts)
        law = find_part(self.parts, PopularityLaw)
        if law is not None and law.exact:
            check_exact(self.parts, self.expected, matrix=self.known is not None)

    @classmethod
    def like(
        cls,
        ratings: Ratings,
        liked: float,
        relevance: Part | Sequence[Part] | None = None,
        observation: str | Part | Sequence[Part] = "same",
        *,
        seed: int = 0,
        expected: int | None = None,
        name: str = "like",
    ) -> World:
        """Return a world with the users and items of some data, and as many ratings.

        Parameters
        ----------
        ratings
            The data. Ratings are drawn from its own values, given liked or not.
        liked
            The smallest liked rating.
        relevance
            Parts that say what users like. Unless given `Iid` with the share of liked ratings in
            the data: the null hypothesis of castells2018 (section 7.1).
        observation
            `same`: users are as active and items as popular as in the data, in expectation.
            `counts`: items have exactly as many ratings as in the data, of users drawn at random.
            `given`: the very pairs of the data are observed. Or parts.
        seed
            Same seed, same world.
        expected
            The expected number of ratings, that of the data unless given.
        name
            How to call it.

        Examples
        --------
        >>> import unskew as us
        >>> from unskew.worlds.worlds import World
        >>> data = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]})
        >>> null = World.like(data, liked=4, observation="given")
        >>> null.ratings.item.tolist() == data.item.tolist()
        True
        """
        stars = Stars.of(ratings, liked)
        taste = (Iid(stars.liked_share),) if relevance is None else as_parts(relevance)
        taken, positions, total = observation, None, len(ratings) if expected is None else expected
        if isinstance(observation, str):
            choose("observation", observation, OBSERVATIONS)
            if expected is not None and observation != "same":
                raise SettingError(
                    f"expected: observation={observation!r} fixes the number already"
                )
            per_user = tuple(np.diff(ratings.start).tolist())
            per_item = tuple(np.bincount(ratings.item, minlength=len(ratings.items)).tolist())
            observing: tuple[Part, ...] = (ByItem(weights=per_item),)
            if observation == "same":
                observing = (Activity(weights=per_user), *observing)
            if observation == "given":
                observing, positions = (), ratings
        else:
            observing, taken = as_parts(observation), "parts"
        check_kinds(LikingPart, taste, "relevance")
        check_kinds(ObservingPart, observing, "observation")
        source = {"ratings": ratings.fingerprint, "observation": taken, "familiar": None}
        return cls(
            name=name,
            seed=as_whole("seed", seed, None),
            users=ratings.users,
            items=ratings.items,
            parts=(*taste, stars, *observing),
            scale=stars.scale,
            liked=stars.liked,
            expected=as_whole("expected", total, 1),
            positions=positions,
            source=source,
        )

    @classmethod
    def of_matrix(
        cls,
        ratings: Ratings,
        liked: float,
        observation: Part | Sequence[Part] = (),
        *,
        expected: int | None = None,
        familiar: str | None = None,
        seed: int = 0,
        name: str = "matrix",
    ) -> World:
        """Return a world whose truth is a matrix of real ratings, of which some are hidden.

        Parameters
        ----------
        ratings
            All known ratings, best of every pair; what is not known stays so.
        liked
            The smallest liked rating.
        observation
            Parts that say what is observed, such as `AgainstRelevance()`. Nothing = all alike.
        expected
            The expected number of observed ratings.
        familiar
            Instead: the tag of `ratings` that tells which pairs were familiar. An item's share of
            familiar pairs is then the probability that a known rating of it is observed, and
            `AgainstRelevance` deals these shares anew, the highest to the item that is liked least
            (mena2021 section 8.5).
        seed
            Same seed, same world.
        name
            How to call it.

        Examples
        --------
        >>> import unskew as us
        >>> from unskew.worlds.observation import ByRelevance
        >>> from unskew.worlds.worlds import World
        >>> full = us.read_ratings(
        ...     {"user": [1, 1, 2, 2], "item": [7, 8, 7, 8], "rating": [5, 1, 4, 2]}
        ... )
        >>> hidden = World.of_matrix(full, liked=4, observation=ByRelevance(1, 0), expected=1)
        >>> len(hidden.ratings) <= 2, bool((hidden.ratings.value >= 4).all())
        (True, True)
        """
        parts = as_parts(observation)
        check_kinds(ObservingPart, parts, "observation")
        if not len(ratings):
            raise DataError("a matrix world needs known ratings, but there are none")
        if (expected is None) == (familiar is None):
            raise SettingError(
                "give the observed part of the matrix: either expected=NUMBER or familiar=TAG"
            )
        if familiar is not None:
            parts = (ByItem(weights=familiar_rates(ratings, familiar)), *parts)
        else:
            as_whole("expected", expected, 1)
        lowest, highest = float(ratings.value.min()), float(ratings.value.max())
        source = {"ratings": ratings.fingerprint, "observation": "parts", "familiar": familiar}
        return cls(
            name=name,
            seed=as_whole("seed", seed, None),
            users=ratings.users,
            items=ratings.items,
            parts=parts,
            scale=(lowest, highest),
            liked=float(liked),
            expected=expected,
            known=ratings,
            source=source,
        )

    @classmethod
    def from_card(cls, card: Mapping[str, Any]) -> World:
        """Make a simulated world again from what `describe` told.

        Examples
        --------
        >>> from unskew.worlds.worlds import World, world
        >>> small = world("null", users=20, items=30, seed=3)
        >>> World.from_card(small.describe()).ratings.fingerprint == small.ratings.fingerprint
        True
        """
        if card.get("source"):
            raise SettingError(
                "this world was built from data: call World.like or World.of_matrix on them again"
            )
        try:
            name, seed, parts = card["name"], card["seed"], card["parts"]
            users, items, expected = card["users"], card["items"], card["expected"]
        except KeyError as missing:
            raise DataError(f"this is not the card of a world: it has no {missing}") from None
        return _assembled(name, as_parts(parts), users, items, seed, expected)

    # The truth

    def values(self, users: I32) -> F64:
        """Return the true rating of every pair of a block of user numbers, NaN if not known."""
        return self._truth.values(as_users(users, len(self.users)))

    def chances(self, users: I32) -> F64:
        """Return p(relevant | u, i) of every pair, before the coin; of a matrix 0, 1 or NaN."""
        return self._truth.chances(as_users(users, len(self.users)))

    def observation(self, users: I32) -> F64:
        """Return p(observed | u, i, the pair's own relevance) of every pair.

        Where counts per item are exact, that is the share of users who rate the item; in a
        feedback loop it is given what was shown.
        """
        users = as_users(users, len(self.users))
        if self.positions is not None:
            return tile_of(self.positions, users, np.ones(len(self.positions)), 0.0)
        if self._pairs.counts is not None:
            return np.tile(self._pairs.counts / len(self.users), (users.size, 1))
        if self.known is None and self._pairs.reach.if_liked == self._pairs.reach.if_not:
            return self._pairs.reach.tile(users, np.ones((1, 1), np.bool_))
        values = self._truth.values(users)
        seen = self._pairs.reach.tile(users, values >= self.liked)
        return np.where(np.isnan(values), 0.0, seen)

    def observation_if(self, users: I32, liked: bool) -> F64:
        """Return p(observed | u, i) of every pair if it were liked, or if it were not."""
        if self.known is not None or self.positions is not None or self._pairs.counts is not None:
            return self.observation(users)  # given as it is, or liked and disliked pairs alike
        block = as_users(users, len(self.users))
        return self._pairs.reach.tile(block, np.full((1, 1), liked))

    @cached_property
    def item_chance(self) -> F64:
        """Return p(relevant | i): the mean chance over all users, of a matrix over known pairs."""
        return self._pairs.item_chance

    def blocks(self) -> Iterator[I32]:
        """Give all user numbers in blocks whose pairs fit into a bounded memory."""
        yield from self._blocks

    # Ratings

    @cached_property
    def ratings(self) -> Ratings:
        """The observed ratings (missing not at random), over the world's ids."""
        if self.positions is not None:
            return self._rated(self.positions.user, self.positions.item)
        sample, moments = self._pairs.drawn, self._pairs.moments()
        ratings = self._rated(sample.user, sample.item)
        if moments is not None:
            time = frozen(_BEGIN + (moments * _SPAN).astype(np.int64))
            ratings = replace(ratings, time=time)
        if find_part(self.parts, Feedback) is not None:
            number = pl.Series("round", sample.round.astype(np.int64) + 1)
            ratings = replace(ratings, tags={"round": number})
        return ratings

    def random(self, share: float = 0.05, seed: int = 0) -> Ratings:
        """Return a random sample (missing at random): every known pair with probability `share`.

        It takes no notice of what is observed, so that some pairs stand in both.
        """
        if not (isinstance(share, int | float) and 0 < share <= 1):
            raise SettingError(f"share must be above 0, and 1 at most, got {share!r}")
        stage = f"world/random/{as_whole('seed', seed, None)}"
        sample = self._truth.sample(self._blocks, float(share), self.seed, stage)
        return self._rated(sample.user, sample.item)

    def truth(self, users: I32 | None = None) -> Ratings:
        """Return every known pair of a block of users as ratings over the world's ids.

        None means all users, as long as the pairs are not too many.
        """
        block = (
            np.arange(len(self.users), dtype=np.int32)
            if users is None
            else as_users(users, len(self.users))
        )
        pairs = block.size * len(self.items)
        if self.known is None and pairs > MOST_PAIRS:
            raise SettingError(
                f"the {pairs:,} pairs are too many to have at once (at most {MOST_PAIRS:,}); "
                "take users in blocks: for users in world.blocks(): world.truth(users)"
            )
        if users is None and self.known is not None:
            return self.known
        block = np.unique(block)
        values = self._truth.values(block)
        row, item = np.nonzero(~np.isnan(values))
        return self._as_ratings(block[row], item.astype(np.int32), values[row, item])

    def dataset(self, random: float = 0.05) -> Dataset:
        """Return observed ratings and a random sample of this share as a `Dataset`."""
        return Dataset(
            self.name,
            self.ratings,
            self.random(random),
            self.scale,
            self.liked,
            notes=(f"simulated: {json.dumps(self._settings())}",),
        )

    # What it is

    def describe(self) -> dict[str, Any]:
        """Return the card: everything from which the world can be made again, and facts of it."""
        facts: dict[str, Any] = {"ratings": len(self.ratings)}
        if self._pairs.counts is not None:  # items that all users rate: they could not have more
            facts["capped"] = int((self._pairs.counts == len(self.users)).sum())
        elif self.positions is None:
            facts["beta"] = self._pairs.reach.beta.tolist()
            facts["clipped"] = self._pairs.drawn.clipped
        return {**self._settings(), "facts": facts}

    def summary(self) -> dict[str, float]:
        """Return the shape of the observed ratings, and of the truth behind them."""
        ratings = self.ratings
        pairs = len(self.users) * len(self.items)
        per_item = np.bincount(ratings.item, minlength=len(self.items))
        observed = float((ratings.value >= self.liked).mean()) if len(ratings) else math.nan
        number = pairs if self.known is None else len(self.known)
        return {
            "users": len(self.users),
            "items": len(self.items),
            "pairs known": number,
            "ratings": len(ratings),
            "density": len(ratings) / pairs,
            "gini of items": gini(per_item),
            "gini of users": gini(np.diff(ratings.start)),
            "liked, observed": observed,
            "liked, truly": self._pairs.liked_share(self.liked),
        }

    def __str__(self) -> str:
        return (
            f"{self.name}: a world of {counted(len(self.users), 'user')} x "
            f"{counted(len(self.items), 'item')}, seed {self.seed}"
        )

    def __repr__(self) -> str:
        return f"<World {self}>"

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        facts = [
            ("users", len(self.users)),
            ("items", len(self.items)),
            ("expected ratings", self.expected),
            ("scale", f"{self.scale[0]:g} to {self.scale[1]:g}"),
            ("liked", f"{self.liked:g} and more"),
            ("seed", self.seed),
            ("parts", ", ".join(type(part).__name__ for part in self.parts)),
        ]
        hint = ".ratings are what is observed; what every user truly likes is known."
        return card("World", self.name, facts, hint=hint)

    def _settings(self) -> dict[str, Any]:
        source = None if self.source is None else dict(self.source)
        # Weights taken over from data are named by its fingerprint, not written out.
        derived = source is not None and (source["observation"] != "parts" or source["familiar"])
        taken = [
            part.describe()
            for part in self.parts
            if not derived or getattr(part, "weights", None) is None
        ]
        return {
            "world": FORMAT,
            "name": self.name,
            "seed": self.seed,
            "users": len(self.users),
            "items": len(self.items),
            "expected": self.expected,
            "scale": list(self.scale),
            "liked": self.liked,
            "parts": taken,
            "source": source,
        }

    # How it is made

    @cached_property
    def _blocks(self) -> list[I32]:
        step = max(1, _PAIRS // max(len(self.items), 1))
        count = len(self.users)
        return [
            np.arange(low, min(low + step, count), dtype=np.int32) for low in range(0, count, step)
        ]

    @cached_property
    def _truth(self) -> WorldTruth:
        if self.known is not None:
            return Known(self.known, self.liked, self.seed)
        taste = [part for part in self.parts if isinstance(part, LikingPart)]
        odds = Odds.of(taste, len(self.users), len(self.items), self.seed)
        return Simulated(odds, find_part(self.parts, Stars) or Stars(), self.seed)

    @cached_property
    def _pairs(self) -> ObservedSample:
        law = find_part(self.parts, PopularityLaw)
        taken = self.source is not None and self.source["observation"] == "counts"
        return ObservedSample(
            parts=self.parts,
            users=len(self.users),
            items=len(self.items),
            seed=self.seed,
            expected=self.expected,
            truth=self._truth,
            blocks=self._blocks,
            exact=taken or (law is not None and law.exact),
        )

    def _rated(self, user: I32, item: I32) -> Ratings:
        """Return some pairs, in order, with their true ratings."""
        return self._as_ratings(user, item, self._truth.values_of(user, item))

    def _as_ratings(self, user: I32, item: I32, value: F64) -> Ratings:
        return Ratings(self.users, self.items, frozen(user), frozen(item), frozen(value))


@checked
def world(
    what: str | Part | Mapping[str, Any] | Sequence[Any] = "shop",
    *,
    users: int | None = None,
    items: int | None = None,
    seed: int = 0,
    ratings: int | None = None,
    density: float | None = None,
    **settings: Any,
) -> World:
    """Return a world by its name, or one put together from parts.

    Parameters
    ----------
    what
        A name of `WORLDS`, or parts such as `[Iid(0.3), PopularityLaw(1.4), ByRelevance()]`.
        Parts that say what is liked add up, parts that say what is discovered multiply.
    users, items
        How many; a named world has its own size unless said otherwise, parts have 2,000 x 1,000.
    seed
        Same seed, same world.
    ratings, density
        The expected number of observed ratings, or their share of all pairs; unless given the
        density of the named world, 0.04 for parts.
    settings
        Settings of a named world, such as `alpha=1`; an unknown one is refused with all there are.

    Examples
    --------
    >>> from unskew.worlds.observation import ByRelevance, PopularityLaw
    >>> from unskew.worlds.tastes import Iid
    >>> from unskew.worlds.worlds import world
    >>> mine = world([Iid(0.3), PopularityLaw(1.2), ByRelevance()], users=300, items=200, seed=1)
    >>> len(mine.truth())
    60000
    >>> world("inverted", alpha=0.8).parts[-3]
    PopularityLaw(alpha=0.8, c1=0.0, c2=None, exact=False)
    """
    if isinstance(what, str):
        named = WORLDS[choose("world", what, WORLDS)]
        for setting in settings:
            if setting not in named.settings:
                common = ("users", "items", "seed", "ratings", "density")
                raise unknown_name(f"setting of {what}", setting, [*named.settings, *common])
        name, parts = what, named.build(**settings)
        default, usual = (named.users, named.items), named.ratings / (named.users * named.items)
    else:
        if settings:
            raise SettingError(
                f"{next(iter(settings))}: only named worlds take settings; set it in its part"
            )
        name, parts = "parts", as_parts(what)
        default, usual = (2_000, 1_000), 0.04
    many_users = as_whole("users", default[0] if users is None else users, 1)
    many_items = as_whole("items", default[1] if items is None else items, 1)
    pairs = many_users * many_items
    if ratings is not None and density is not None:
        raise SettingError("give ratings or density, not both")
    if density is not None and not (isinstance(density, int | float) and 0 < density <= 1):
        raise SettingError(f"density must be above 0, and 1 at most, got {density!r}")
    if ratings is None:
        ratings = max(1, round(pairs * (usual if density is None else density)))
    if as_whole("ratings", ratings, 1) > pairs:
        raise SettingError(f"ratings: {ratings:,} are more than all {pairs:,} pairs")
    return _assembled(name, parts, many_users, many_items, seed, ratings)


def _assembled(
    name: str, parts: tuple[Part, ...], users: int, items: int, seed: int, ratings: int
) -> World:
    """Put a simulated world together."""
    check_kinds((LikingPart, ObservingPart, Stars), parts, "a world")
    stars = next((part for part in parts if isinstance(part, Stars)), Stars())
    user_ids, item_ids = (Ids(pl.Series(np.arange(1, count + 1))) for count in (users, items))
    return World(
        name=name,
        seed=as_whole("seed", seed, None),
        users=user_ids,
        items=item_ids,
        parts=parts,
        scale=stars.scale,
        liked=stars.liked,
        expected=ratings,
    )
