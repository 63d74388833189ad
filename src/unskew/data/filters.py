"""Filters: which ratings or events an experiment starts from, each as a recorded step.

A filter is a frozen value. What it removed is counted in a `Step`, which data carry from then on:
cards, reports and `print` show it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime
from typing import Any, ClassVar, TypeVar

import numpy as np

from unskew.arrays import I32, I64, Mask, frozen
from unskew.checks import checked, choose
from unskew.data.events import Events
from unskew.data.ratings import Ids, Ratings, recoded
from unskew.data.steps import Step
from unskew.data.summary import item_counts
from unskew.data.times import moment, written
from unskew.engine.rng import DrawKeyed, draw
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.settings import choice, count, declare, flag, number, share

Data = TypeVar("Data", Ratings, Events)


@dataclass(frozen=True)
class Filter(DrawKeyed, ABC):
    """A rule that says which rows stay. A filter of your own is a subclass with `keep`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import unskew as us
    >>> @dataclass(frozen=True)
    ... class EvenItems(us.data.Filter):
    ...     def keep(self, data):
    ...         return data.item % 2 == 0, {}
    >>> few = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 9]})
    >>> print(EvenItems().apply(few).steps[0])
    EvenItems(): 3 rows of 2 users and 3 items became 2 rows of 2 users and 2 items
    """

    name: ClassVar[str]
    """Its name on the command line and on cards; the name of the class unless stated."""
    draw_entry: ClassVar[str | None] = "filter"
    counts_rows: ClassVar[bool] = False
    """Whether other rows decide on a row, such as how many ratings its item has."""

    @abstractmethod
    def keep(self, data: Any) -> tuple[Mask, Mapping[str, Any]]:
        """Tell which rows stay, and what was counted on the way.

        Parameters
        ----------
        data
            `Ratings`, or an event log (`Events`).
        """

    def apply(self, data: Data) -> Data:
        """Return the rows that stay, with the step recorded; refuse to leave nothing.

        Users and items without a row are no longer among the ids.
        """
        mask, facts = self.keep(data)
        if not mask.any():
            raise DataError(
                f"{self.name}: no row is left of {counted(int(mask.size), 'row')}; {self._hint}"
            )
        result = compacted(data.take(mask))
        settings = {key: value for key, value in self.describe().items() if key != "filter"}
        step = Step(self.name, settings, data.size(), result.size(), self.counts_rows, dict(facts))
        return replace(result, steps=(*data.steps, step))

    @property
    def _hint(self) -> str:
        return "ask for less"


@dataclass(frozen=True)
class KCore(Filter):
    """Users and items with at least so many rows, removed in turns until all that are left have.

    Done before a split this counts test rows too: they decide what is trained on. `diagnose` says
    so.

    Examples
    --------
    Item 9 has one rating and goes; user 2, who is then left with one, goes in the second round.

    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 8, 9, 7, 8]})
    >>> core = us.data.KCore(users=2, items=2).apply(data)
    >>> core, core.steps[0].facts
    (Ratings(4 implicit, 2 users, 2 items), {'rounds': 2})
    """

    users: int = count(5, "Rows that a user needs.")
    items: int = count(5, "Rows that an item needs.")
    rounds: int | None = count(
        None,
        """Remove users and items so many times at most: 1 = users and items with too few rows in
        the data as they are. Default: until nothing changes.""",
    )

    name: ClassVar[str] = "k-core"
    draw_name: ClassVar[str] = "k-core"
    counts_rows: ClassVar[bool] = True

    def keep(self, data: Any) -> tuple[Mask, Mapping[str, Any]]:
        """Remove until all have enough, or the rounds are over."""
        from unskew.data import kernels

        mask, rounds = kernels.core_rows(
            data.user,
            data.item,
            len(data.users),
            len(data.items),
            np.array([self.users, self.items]),
            -1 if self.rounds is None else self.rounds,
        )
        return mask.view(np.bool_), {"rounds": rounds}


@dataclass(frozen=True)
class MaxCounts(Filter):
    """Users (robots, shops) and items with more rows than this are left out.

    Examples
    --------
    User 1, perhaps a robot, clicked on everything.

    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 1, 2, 3], "item": [7, 8, 9, 7, 8]})
    >>> us.data.MaxCounts(users=2).apply(data)
    Ratings(2 implicit, 2 users, 2 items)
    """

    users: int | None = count(None, "Rows that a user may have. Default: any number.")
    items: int | None = count(None, "Rows that an item may have. Default: any number.")

    name: ClassVar[str] = "max-counts"
    draw_name: ClassVar[str] = "max-counts"
    counts_rows: ClassVar[bool] = True

    def keep(self, data: Any) -> tuple[Mask, Mapping[str, Any]]:
        """Mark rows of users and items that have few enough."""
        mask = np.ones(len(data), np.bool_)
        facts = {}
        for name, limit, codes in (
            ("users", self.users, data.user),
            ("items", self.items, data.item),
        ):
            if limit is not None:
                above = np.bincount(codes) > limit
                mask &= ~above[codes]
                facts[f"{name}_above"] = int(np.count_nonzero(above))
        return mask, facts


@dataclass(frozen=True)
class PopularItems(Filter):
    """Only the items with the most rows; of equal ones those that come first by id.

    Examples
    --------
    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 2, 3, 1, 2, 3], "item": [7, 7, 7, 8, 8, 9]})
    >>> us.data.PopularItems(2).apply(data).items.values.to_list()
    [7, 8]
    """

    number: int = count(MISSING, "How many items stay.")  # type: ignore[arg-type]

    name: ClassVar[str] = "popular-items"
    draw_name: ClassVar[str] = "popular-items"
    counts_rows: ClassVar[bool] = True

    def keep(self, data: Any) -> tuple[Mask, Mapping[str, Any]]:
        """Mark rows of the items with the most rows."""
        counts = item_counts(data)
        stays = np.zeros(counts.size, np.bool_)
        stays[np.argsort(-counts, kind="stable")[: self.number]] = True
        return stays[data.item], {}


@dataclass(frozen=True)
class Between(Filter):
    """Rows from one moment up to another.

    Examples
    --------
    >>> import unskew as us
    >>> days = ["2024-01-31", "2024-02-01", "2024-02-29", "2024-03-01"]
    >>> data = us.read_ratings({"user": [1, 1, 1, 2], "item": [6, 7, 8, 9], "time": days})
    >>> us.data.Between("2024-02-01", "2024-03-01").apply(data).items.values.to_list()
    [7, 8]
    """

    start: str | datetime | float | None = declare(
        None, "The first moment that stays: ISO text (UTC unless it says otherwise), or seconds."
    )
    end: str | datetime | float | None = declare(
        None, "The first moment that no longer stays. Default: no end."
    )

    name: ClassVar[str] = "between"
    draw_name: ClassVar[str] = "between"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("start", "end"):
            if getattr(self, name) is not None:
                moment(getattr(self, name), name)

    def keep(self, data: Any) -> tuple[Mask, Mapping[str, Any]]:
        """Mark rows inside."""
        if data.time is None:
            raise DataError("between needs time stamps, and these ratings have none")
        mask = np.ones(len(data), np.bool_)
        if self.start is not None:
            mask &= data.time >= moment(self.start, "start")
        if self.end is not None:
            mask &= data.time < moment(self.end, "end")
        if not mask.any():
            bounds = [written(int(time)) for time in (data.time.min(), data.time.max())]
            raise DataError(f"between: no row is left; the data go from {bounds[0]} to {bounds[1]}")
        return mask, {}


@dataclass(frozen=True)
class Threshold(Filter):
    """Rows from a value up; with `binary` they become implicit feedback, each counting 1.

    Examples
    --------
    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 2, 4]})
    >>> us.data.Threshold(4).apply(data)
    Ratings(2 implicit, 2 users, 1 item)
    >>> us.data.Threshold(4, binary=False).apply(data).value.tolist()
    [5.0, 4.0]
    """

    least: float = number(MISSING, "The smallest value that stays.", -np.inf)  # type: ignore[arg-type]
    binary: bool = flag(True, "Forget the values: what stays is implicit feedback.")

    name: ClassVar[str] = "threshold"
    draw_name: ClassVar[str] = "threshold"

    def keep(self, data: Any) -> tuple[Mask, Mapping[str, Any]]:
        """Mark values from the threshold up."""
        return data.value >= self.least, {}

    def apply(self, data: Data) -> Data:
        """Return the rows that stay; values of 1 where they are to be forgotten."""
        result = super().apply(data)
        if not self.binary:
            return result
        return replace(result, value=frozen(np.ones(len(result))), implicit=True)

    @property
    def _hint(self) -> str:
        return f"every value is below {self.least:g}"


@dataclass(frozen=True)
class DropRepeats(Filter):
    """Of repeated events of a user and an item only the first stays.

    Examples
    --------
    User 1 clicked on a twice in a row, and on a again after b.

    >>> import unskew as us
    >>> log = us.read_events({"user": [1] * 4, "item": list("aaba"), "time": [0, 60, 120, 180]})
    >>> "".join(us.data.DropRepeats().apply(log).to_polars()["item"])
    'aba'
    >>> "".join(us.data.DropRepeats("all").apply(log).to_polars()["item"])
    'ab'
    """

    which: str = choice(
        "consecutive",
        "`consecutive` (events of the user that follow upon another with the same item), or `all`.",
        ("consecutive", "all"),
    )
    within: float | None = number(
        None,
        "Only repeats within so many seconds after the event before. Default: any time later.",
        above=0.0,
    )

    name: ClassVar[str] = "drop-repeats"
    draw_name: ClassVar[str] = "drop-repeats"
    counts_rows: ClassVar[bool] = True

    def keep(self, data: Any) -> tuple[Mask, Mapping[str, Any]]:
        """Mark events that repeat none before."""
        from unskew.data import kernels

        if not isinstance(data, Events):
            raise SettingError(
                "drop-repeats works on an event log (read_events); ratings have one row per pair"
            )
        key: I64 = data.user.astype(np.int64)
        if self.which == "all":
            key = (key << 32) | data.item
        order = np.argsort(key, kind="stable")  # by user, or by user and item, in order of time
        gap = -1 if self.within is None else round(self.within * 1_000_000)
        mask = kernels.without_repeats(frozen(order), data.user, data.item, data.time, gap)
        is_new = mask.view(np.bool_)
        return is_new, {"repeats": int(np.count_nonzero(~is_new))}


@dataclass(frozen=True)
class SampleUsers(Filter):
    """All rows of users drawn at random, each with the same probability.

    Examples
    --------
    Users keep all their ratings or none.

    >>> import unskew as us
    >>> shop = us.world("shop", users=200, items=50, density=0.1, seed=3).ratings
    >>> few = us.data.SampleUsers(0.1, seed=1).apply(shop)
    >>> few.steps[0].before.users, few.steps[0].after.users
    (176, 12)
    """

    share: float = share(MISSING, "The share of users that stays, on average.")  # type: ignore[arg-type]
    seed: int = count(0, "Same seed, same users.", 0)

    name: ClassVar[str] = "sample-users"
    draw_name: ClassVar[str] = "sample-users"

    def keep(self, data: Any) -> tuple[Mask, Mapping[str, Any]]:
        """Mark the rows of the users drawn."""
        limit = np.uint64(int(self.share * 2**64))
        in_sample = draw(self.seed, "filter/sample-users", np.arange(len(data.users))) < limit
        return in_sample[data.user], {}


FILTERS: dict[str, type[Filter]] = {
    kind.name: kind
    for kind in (KCore, MaxCounts, PopularItems, Between, Threshold, DropRepeats, SampleUsers)
}
"""Every filter, by name."""


def filter_of(name: str, **settings: Any) -> Filter:
    """Build a filter from its name and settings, such as those of a plan file.

    Examples
    --------
    >>> from unskew.data.filters import filter_of
    >>> filter_of("k-core", users=10)
    KCore(users=10, items=5, rounds=None)
    """
    kind = FILTERS[choose("filter", name, FILTERS)]
    allowed = [field.name for field in fields(kind)]
    for setting in settings:
        if setting not in allowed:
            raise SettingError(f"{name} has no setting {setting!r}; it has: {', '.join(allowed)}")
    try:
        return kind(**settings)
    except TypeError:
        needed = [field.name for field in fields(kind) if field.default is MISSING]
        raise SettingError(f"{name} needs {', '.join(needed)}") from None


@checked
def apply_filters(data: Any, filters: Filter | Sequence[Filter]) -> Any:
    """Apply filters one after the other.

    Parameters
    ----------
    data
        `Ratings`, or an event log (`us.read_events`).
    filters
        What stays, such as `us.data.KCore(5, 5)`; of several the order matters.

    Returns
    -------
    Ratings or Events
        Of the same kind, with a `Step` for each filter in `steps`.

    Examples
    --------
    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 8, 9]})
    >>> core = us.data.apply_filters(data, us.data.KCore(users=2, items=2))
    >>> core
    Ratings(4 implicit, 2 users, 2 items)
    >>> core.steps[0].before.rows, core.steps[0].after.rows
    (5, 4)
    """
    if not isinstance(data, Ratings | Events):
        raise SettingError(
            f"data must be ratings (read_ratings) or an event log (read_events), got {data!r}"
        )
    result: Any = data
    for rule in (filters,) if isinstance(filters, Filter) else filters:
        result = rule.apply(result)
    return result


def steps_of(parts: Iterable[Ratings | Events | None]) -> list[dict[str, Any]]:
    """Return the steps that parts of the same data carry, for a card; each once."""
    steps: dict[str, dict[str, Any]] = {}
    for part in parts:
        for step in () if part is None else part.steps:
            steps.setdefault(str(step), step.describe())
    return list(steps.values())


def compacted(data: Data) -> Data:
    """Return the same rows under ids that leave out users and items without a row."""
    users, user = _compact_ids(data.users, data.user)
    items, item = _compact_ids(data.items, data.item)
    if users is data.users and items is data.items:
        return data
    return replace(data, users=users, items=items, user=user, item=item)


def _compact_ids(ids: Ids, codes: I32) -> tuple[Ids, I32]:
    present = np.bincount(codes, minlength=len(ids)) > 0
    if present.all():
        return ids, codes
    table = (np.cumsum(present) - 1).astype(np.int32)
    present_ids = Ids(ids.values.filter(present))
    return present_ids, frozen(recoded(codes, table))
