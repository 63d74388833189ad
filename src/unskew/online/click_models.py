"""What simulated users do with a list: click as they like, or judge every item shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from unskew.arrays import F64, I32, frozen
from unskew.checks import as_count, as_number, check_fields, choose
from unskew.errors import SettingError
from unskew.worlds.observation import Clustered
from unskew.worlds.tastes import uniform
from unskew.worlds.worlds import World

TRENDS = ("popular", "random")


class Behaviour(NamedTuple):
    """What users do, in numbers: p(click) = place x (engage + (1 - engage) x p(click | liked)).

    Made by `Clicks.behaviour`; kernels take it as it is.
    """

    examination: F64
    """By position: p(looked at)."""
    if_liked: float
    if_not: float
    engage: F64
    """By item."""
    keep: float
    """What each click on an item of the same group leaves of the chance."""
    group: I32


@dataclass(frozen=True)
class Clicks:
    """Free feedback: users click as they like (castells2018 section 5.3.1).

    An item at position r is looked at with a chance that falls with r. One that is looked at is
    clicked with probability g + (1 - g) p, where p is `if_liked` or `if_not` and g, the item's
    engagement, draws clicks whether it is liked or not.

    Parameters
    ----------
    position
        `log`: p(looked at) = 1 / log2(r + 1). A number η: r^-η; with 0 all positions are alike.
    if_liked, if_not
        p(click) of what is liked, and of what is not: clicks by mistake.
    engagement
        The largest g: 0 = only relevance counts.
    trend
        Which items engage: the `popular` ones (g in proportion to an item's number of observed
        ratings), or at `random` (a number below 1 for each). Or numbers from 0 to 1, one per item.
    redundancy
        How much of the chance is lost with every click, in the same list above, on an item of the
        same group: 0 = nothing, 1 = all of it.
    groups
        The groups of items: None = those of the world's `Clustered` part. A number: so many, dealt
        at random. Or the group of each item.

    Examples
    --------
    >>> from unskew.online.click_models import Clicks
    >>> Clicks(position=1, engagement=0.5).places(4).round(3).tolist()
    [1.0, 0.5, 0.333, 0.25]
    """

    position: float | str = "log"
    if_liked: float = 0.6
    if_not: float = 0.05
    engagement: float = 0.0
    trend: str | tuple[float, ...] = "popular"
    redundancy: float = 0.0
    groups: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if isinstance(self.position, str):
            choose("position", self.position, ("log",))
        else:
            as_number("position", self.position)
        for name in ("if_liked", "if_not", "engagement", "redundancy"):
            as_number(name, getattr(self, name), 0.0, 1.0)
        if isinstance(self.trend, str):
            choose("trend", self.trend, TRENDS)
        else:
            object.__setattr__(
                self, "trend", tuple(as_number("trend", value, 0.0, 1.0) for value in self.trend)
            )
        if self.groups is None:
            return
        if isinstance(self.groups, Sequence | np.ndarray):
            object.__setattr__(
                self, "groups", tuple(as_count("groups", group, 0) for group in self.groups)
            )
        else:
            as_count("groups", self.groups)

    def __str__(self) -> str:
        settings = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                settings.append(f"{field.name}={'given' if isinstance(value, tuple) else value}")
        return f"free clicks ({', '.join(settings)})" if settings else "free clicks"

    def places(self, k: int) -> F64:
        """Return p(looked at) of each position."""
        r = np.arange(1, k + 1, dtype=np.float64)
        if isinstance(self.position, str):
            return 1.0 / np.log2(r + 1.0)
        return np.asarray(r**-self.position, np.float64)

    def behaviour(self, world: World, k: int) -> Behaviour:
        """Return what users of a world do, in numbers."""
        items = len(world.items)
        return Behaviour(
            examination=frozen(self.places(k)),
            if_liked=float(self.if_liked),
            if_not=float(self.if_not),
            engage=frozen(
                self.engagement * self._trend(world) if self.engagement else np.zeros(items)
            ),
            keep=1.0 - self.redundancy,
            group=frozen(self._groups(world) if self.redundancy else np.zeros(items, np.int32)),
        )

    def _trend(self, world: World) -> F64:
        items = len(world.items)
        if not isinstance(self.trend, str):
            return np.array(_of_items("trend", self.trend, items), np.float64)
        if self.trend == "random":
            return uniform(world.seed, "online/trend", np.arange(items), 0)
        counts = np.bincount(world.ratings.item, minlength=items)
        return counts / max(int(counts.max()), 1)

    def _groups(self, world: World) -> I32:
        items = len(world.items)
        if isinstance(self.groups, tuple):
            return np.array(_of_items("groups", self.groups, items), np.int32)
        if self.groups is not None:
            dealt = uniform(world.seed, "online/groups", np.arange(items), 0)
            return (dealt * self.groups).astype(np.int32)
        part = next((part for part in world.parts if isinstance(part, Clustered)), None)
        if part is None:
            raise SettingError(
                f"groups: the world {world.name} has no groups of items; give their number, such "
                "as groups=10, or the group of each item"
            )
        return part.groups(len(world.users), items, world.seed)[1]


@dataclass(frozen=True)
class ForcedExposure:
    """Forced feedback: every shown item is judged by what is true (castells2018 section 5.3.2).

    Examples
    --------
    >>> from unskew.online.click_models import ForcedExposure
    >>> ForcedExposure()
    ForcedExposure()
    """

    def __str__(self) -> str:
        return "forced judgments"

    def behaviour(self, world: World, k: int) -> Behaviour:
        """Return a user who clicks all that is liked and nothing else."""
        return Clicks(position=0, if_liked=1, if_not=0).behaviour(world, k)


Feedback = Clicks | ForcedExposure


def _of_items(name: str, values: tuple[Any, ...], items: int) -> tuple[Any, ...]:
    if len(values) != items:
        raise SettingError(f"{name}: {len(values):,} values for {items:,} items; give one per item")
    return values


def behaviour_of(feedback: object, world: World, k: int) -> Behaviour:
    """Return what users do, in numbers; refuse what says nothing about it."""
    if not isinstance(feedback, Clicks | ForcedExposure):
        raise SettingError(f"feedback must be Clicks(…) or ForcedExposure(), got {feedback!r}")
    return feedback.behaviour(world, k)
