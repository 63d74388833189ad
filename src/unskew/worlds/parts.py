"""The parts of a world: which there are, which exclude each other, and how they are read."""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64, frozen
from unskew.checks import choose
from unskew.data.groups import grouped_order
from unskew.data.ratings import Ratings
from unskew.data.summary import gini as gini_of
from unskew.engine.rng import draw
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError, unknown_name
from unskew.worlds._truth import Drawn, WorldTruth
from unskew.worlds.observation import (
    Activity,
    AgainstRelevance,
    Ageing,
    Always,
    ByItem,
    ByRelevance,
    Clustered,
    Feedback,
    PopularityLaw,
    Reordering,
    Uniform,
    WithRelevance,
    whole_counts,
)
from unskew.worlds.reach import Reach, stage_of_round
from unskew.worlds.tastes import (
    Generosity,
    Iid,
    Part,
    Quality,
    Rising,
    Stars,
    Tastes,
    uniform,
)

P = TypeVar("P", bound=Part)

PARTS: dict[str, type[Part]] = {
    part.__name__: part
    for part in (
        Iid,
        Quality,
        Generosity,
        Rising,
        Tastes,
        Stars,
        Uniform,
        PopularityLaw,
        ByItem,
        Activity,
        WithRelevance,
        AgainstRelevance,
        Clustered,
        Ageing,
        Feedback,
        ByRelevance,
        Always,
    )
}
"""Every part that a world can be put together from, by name."""

# Parts that exclude each other; all but `Uniform` exclude themselves twice.
_EXCLUSIVE = ((WithRelevance, AgainstRelevance), (Ageing, Feedback), (ByRelevance, Always))
_ONE_OF = (*((kind,) for kind in PARTS.values() if kind is not Uniform), *_EXCLUSIVE)


def find_part(parts: Sequence[Part], kind: type[P]) -> P | None:
    """Return the part of a kind, None if there is none."""
    return next((part for part in parts if isinstance(part, kind)), None)


def check_together(parts: Sequence[Part]) -> None:
    """Refuse parts that exclude each other."""
    for group in _ONE_OF:
        names = [type(part).__name__ for part in parts if isinstance(part, group)]
        if len(names) > 1:
            raise SettingError(f"a world cannot have {' and '.join(names)} together; leave one out")


def check_exact(parts: Sequence[Part], expected: int | None, *, matrix: bool) -> None:
    """Refuse what does not go with exact counts per item."""
    kinds = (Activity, Clustered, Ageing, Feedback, ByRelevance)
    clash = next((part for kind in kinds if (part := find_part(parts, kind)) is not None), None)
    if clash is not None or matrix or expected is None:
        what = "a matrix of known ratings" if clash is None else type(clash).__name__
        raise SettingError(
            f"PopularityLaw: exact=True gives ratings to users at random, which does not go "
            f"with {what}; leave out one of them"
        )


def as_parts(value: Any) -> tuple[Part, ...]:
    """Read one part or several, each as an object or as the mapping that `describe` gives."""
    parts = [value] if isinstance(value, Part | Mapping) else value
    if isinstance(parts, str) or not isinstance(parts, Sequence):
        raise SettingError(f"parts must be a list of parts, such as [Iid(0.3)], got {value!r}")
    return tuple(_as_part(part) for part in parts)


def _as_part(value: Any) -> Part:
    if isinstance(value, Part):
        return value
    if not isinstance(value, Mapping) or "part" not in value:
        raise SettingError(f"{value!r} is not a part; parts are {', '.join(PARTS)}")
    settings = dict(value)
    kind = PARTS[choose("part", settings.pop("part"), PARTS)]
    allowed = list(inspect.signature(kind).parameters)
    for setting in settings:
        if setting not in allowed:
            raise unknown_name(f"setting of {kind.__name__}", setting, allowed)
    return kind(**settings)


def check_kinds(kinds: Any, parts: Sequence[Part], what: str) -> None:
    """Refuse parts that do not belong here."""
    for part in parts:
        if not isinstance(part, kinds):
            raise SettingError(f"{type(part).__name__} is not a part of {what}")


def as_whole(name: str, value: Any, low: int | None) -> int:
    """Return a whole number, not below `low`."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or (low is not None and value < low):
        limit = "" if low is None else f" from {low} up"
        raise SettingError(f"{name} must be a whole number{limit}, got {value!r}")
    return int(value)


def familiar_rates(ratings: Ratings, tag: str) -> tuple[float, ...]:
    """Return the share of each item's known ratings that were familiar."""
    column = ratings.tags[choose("tag", tag, ratings.tags)]
    if not (column.dtype == pl.Boolean or column.dtype.is_numeric()) or column.null_count():
        raise DataError(
            f"tag {tag!r} must tell for every rating whether it was familiar: true or false, 1 or "
            f"0; it is {column.dtype} with {column.null_count()} missing"
        )
    familiar = column.to_numpy() > 0
    items = len(ratings.items)
    counts = np.bincount(ratings.item, minlength=items)
    rates = np.bincount(ratings.item, familiar, items) / np.maximum(counts, 1)
    return tuple(rates.tolist())


def as_users(users: I32, count: int) -> I32:
    """Return user numbers as kernels take them; refuse those that are none."""
    numbers = np.asarray(users)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise SettingError("users must be a list of user numbers, such as those of blocks()")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < count):
        raise SettingError(
            f"user numbers go from 0 to {count - 1:,}, got {numbers.min()} to {numbers.max()}"
        )
    return numbers.astype(np.int32)


# Items drawn by one task where counts are exact.
_ITEMS = 64


@dataclass(frozen=True, eq=False)
class ObservedSample:
    """The observed pairs of a world, and the probabilities behind them."""

    parts: tuple[Part, ...]
    users: int
    items: int
    seed: int
    expected: int | None
    truth: WorldTruth
    blocks: list[I32]
    exact: bool
    """Whether each item has exactly as many ratings as its weight says."""

    def part(self, kind: type[P]) -> P | None:
        """Return the part of a kind, None if there is none."""
        return find_part(self.parts, kind)

    @cached_property
    def item_chance(self) -> F64:
        """The mean chance of each item to be liked."""
        result: F64 = frozen(self.truth.item_chance(self.blocks))
        return result

    def item_weights(self) -> F64:
        """Return the product of all weights of items, dealt as the parts say."""
        items = self.items
        dealer, ageing = self.part(Reordering), self.part(Ageing)
        parts = [part for part in self.parts if isinstance(part, PopularityLaw | ByItem)]
        if dealer is not None and not parts:
            parts = [PopularityLaw()]
        weights = np.ones(items)
        for part in parts:
            weights *= part.item_weights(items, self.seed, self.expected)
        if dealer is not None:
            weights = dealer.dealt(weights, self.item_chance, self.seed)
        if ageing is not None:
            weights *= ageing.item_weights(items, self.seed, self.expected)
        return weights

    @cached_property
    def reach(self) -> Reach:
        """Who discovers what: round by round, each brought to scale on what the last ones left."""
        users, items = self.users, self.items
        part = self.part(Activity)
        activity = np.ones(users) if part is None else part.user_weights(users, self.seed)
        clusters = self.part(Clustered)
        user_group, item_group = np.zeros(users, np.int32), np.zeros(items, np.int32)
        group = np.ones((1, 1))
        if clusters is not None:
            user_group, item_group = clusters.groups(users, items, self.seed)
            group = clusters.matrix(user_group, activity)
        decision = self.part(ByRelevance) or ByRelevance(1.0, 1.0)
        weights = self.item_weights()
        reach = Reach(
            activity=frozen(activity),
            weight=frozen(np.empty((0, items))),
            user_group=frozen(user_group),
            item_group=frozen(item_group),
            group=frozen(group),
            beta=frozen(np.empty(0)),
            keys=frozen(np.empty(0, np.uint64)),
            if_liked=float(decision.if_liked),
            if_not=float(decision.if_not),
        )
        feedback = self.part(Feedback)
        rounds = 1 if feedback is None else feedback.rounds
        for number in range(rounds):
            if feedback is not None and number:
                counts = np.bincount(self.truth.observe(self.blocks, reach).item, minlength=items)
                weights = feedback.boosted(reach.weight[-1], counts)
            beta = 1.0
            if self.expected is not None:
                weighed = self.truth.weigh(self.blocks, reach, weights)
                beta = weighed.scale(self.expected / rounds)
            reach = reach.with_round(weights, beta, self.seed)
        return reach

    @cached_property
    def counts(self) -> I64 | None:
        """How many ratings each item has, where that is exact."""
        if not self.exact or self.expected is None:
            return None
        return whole_counts(self.item_weights(), self.expected, self.users)

    @cached_property
    def drawn(self) -> Drawn:
        """The observed pairs, by user and item."""
        if self.counts is None:
            return self.truth.observe(self.blocks, self.reach)
        user, item = self._drawn_exactly(self.counts)
        return Drawn(user, item, np.zeros(user.size, np.int8), 0)

    def moments(self) -> F64 | None:
        """Return when each pair was rated, from [0, 1], where the world has time."""
        sample, ageing, feedback = self.drawn, self.part(Ageing), self.part(Feedback)
        if ageing is not None:
            return ageing.moments(sample.user, sample.item, self.items, self.seed)
        if feedback is not None:
            fraction = uniform(self.seed, "world/time", sample.user, sample.item)
            return (sample.round + fraction) / feedback.rounds
        return None

    def _drawn_exactly(self, counts: I64) -> tuple[I32, I32]:
        """Draw for each item so many users: those with the smallest hashes."""
        everyone = np.arange(self.users, dtype=np.int32)

        def block(low: int) -> tuple[I32, I32]:
            users, items = [], []
            for item in range(low, min(low + _ITEMS, counts.size)):
                number = int(counts[item])
                if number:
                    key = draw(self.seed, stage_of_round(0), everyone, item)
                    users.append(np.argpartition(key, number - 1)[:number].astype(np.int32))
                    items.append(np.full(number, item, np.int32))
            none = np.empty(0, np.int32)
            return np.concatenate([none, *users]), np.concatenate([none, *items])

        size = self.users * counts.size
        parts = map_blocks(block, range(0, counts.size, _ITEMS), size=size)
        user = np.concatenate([part for part, _ in parts])
        item = np.concatenate([part for _, part in parts])
        start = np.append(0, np.cumsum(np.bincount(user, minlength=everyone.size)))
        order = grouped_order(user, start)
        return user[order], item[order]

    def liked_share(self, liked: float) -> float:
        """Return the share of all known pairs that are liked."""

        def count(users: I32) -> tuple[int, int]:
            values = self.truth.values(users)
            return int((values >= liked).sum()), int((~np.isnan(values)).sum())

        parts = map_blocks(count, self.blocks, size=self.users * self.items)
        return sum(part for part, _ in parts) / sum(total for _, total in parts)


def gini(counts: NDArray[Any]) -> float:
    """Return the Gini index of counts, 0 where there are none: a world may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.worlds.parts import gini
    >>> gini(np.array([3, 3, 3])), gini(np.array([0, 0, 0, 8]))
    (0.0, 0.75)
    """
    value = gini_of(counts)
    return 0.0 if math.isnan(value) else value


class NamedWorld(NamedTuple):
    """A world that has a name: its parts, how large it is unless said otherwise, and why."""

    about: str
    paper: str
    settings: Mapping[str, Any]
    """Its settings and their defaults."""
    parts: Sequence[Mapping[str, Any]]
    """Its parts as `Part.describe` gives them, with names of settings in place of values."""
    users: int = 2_000
    items: int = 1_000
    ratings: int = 80_000

    def build(self, **settings: Any) -> tuple[Part, ...]:
        """Return its parts by these settings; by their defaults where none is stated."""
        values = {**self.settings, **settings}
        if "p" not in values:
            values["p"] = Stars(liked=values["liked"]).liked_share
        return as_parts(
            [
                {field: values.get(entry, entry) for field, entry in part.items()}
                for part in self.parts
            ]
        )


WORLDS: dict[str, NamedWorld] = {
    name: NamedWorld(**fields)
    for name, fields in tomllib.loads(
        Path(__file__).with_name("named.toml").read_text(encoding="utf-8")
    ).items()
}
"""Every world that has a name."""
