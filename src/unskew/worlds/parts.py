"""The parts of a world: which there are, which exclude each other, and how they are read."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from unskew.arrays import I32
from unskew.checks import choose
from unskew.data.ratings import Ratings
from unskew.errors import DataError, SettingError, unknown_name
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
    Uniform,
    WithRelevance,
)
from unskew.worlds.tastes import (
    Generosity,
    Iid,
    Part,
    Quality,
    Rising,
    Stars,
    Tastes,
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

# Parts that exclude each other, or themselves twice.
_ONE_OF: tuple[tuple[type[Part], ...], ...] = (
    (Iid,),
    (Tastes,),
    (Quality,),
    (Generosity,),
    (Rising,),
    (Stars,),
    (PopularityLaw,),
    (ByItem,),
    (Activity,),
    (Clustered,),
    (WithRelevance, AgainstRelevance),
    (Ageing, Feedback),
    (ByRelevance, Always),
)


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


def as_parts(given: Any) -> tuple[Part, ...]:
    """Read one part or several, each as an object or as the mapping that `describe` gives."""
    several = [given] if isinstance(given, Part | Mapping) else given
    if isinstance(several, str) or not isinstance(several, Sequence):
        raise SettingError(f"parts must be a list of parts, such as [Iid(0.3)], got {given!r}")
    return tuple(_as_part(one) for one in several)


def _as_part(given: Any) -> Part:
    if isinstance(given, Part):
        return given
    if not isinstance(given, Mapping) or "part" not in given:
        raise SettingError(f"{given!r} is not a part; parts are {', '.join(PARTS)}")
    settings = dict(given)
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


def as_whole(name: str, given: Any, low: int | None) -> int:
    """Return a whole number, not below `low`."""
    good = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not good or (low is not None and given < low):
        limit = "" if low is None else f" from {low} up"
        raise SettingError(f"{name} must be a whole number{limit}, got {given!r}")
    return int(given)


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
    known = np.bincount(ratings.item, minlength=items)
    rates = np.bincount(ratings.item, familiar, items) / np.maximum(known, 1)
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
