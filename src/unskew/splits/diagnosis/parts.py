"""What checks look at: the rows that a split was made of, and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, U8, frozen
from unskew.data.events import Events
from unskew.data.groups import grouped_order, sort_groups
from unskew.data.ratings import Ids, Ratings
from unskew.data.summary import Summary
from unskew.splits.counts import count_parts
from unskew.splits.diagnosis.thresholds import SESSION_GAP
from unskew.splits.split import Split

SECOND = 1_000_000
DAY = 86_400 * SECOND
GAP = SESSION_GAP * SECOND
VALIDATION = ("validation", "valid", "val", "dev")
"""Names of further judgment sets that are validation parts."""
NO_TIME = "The ratings have no time stamps."
NEVER = 2**62
MIXED = 0.1
"""From this mean share of training after a test row on, both parts cover the same time."""


class History(NamedTuple):
    """What one pass over the users' rows in order of time counts."""

    gaps: I64
    """Microseconds between neighbouring rows of a user."""
    largest: I64
    """Rows of each user's largest session."""
    tied: int
    """Rows at the same time as the row of the user before."""
    consecutive: int
    """Rows with the same item as the row of the user before."""
    repeats: int
    """Rows whose item the user had before."""
    sessions: int


@dataclass(frozen=True, eq=False)
class Log:
    """All rows, by user and in order of time."""

    users: Ids
    items: Ids
    start: I64
    """Where each user's rows start; one more entry for the end."""
    item: I32
    time: I64 | None
    has_repeats: bool
    """Whether a pair may occur more than once, as in an event log."""
    is_given: bool
    """Whether it was given, or put together from the parts of the first split."""
    source: Events | Ratings | None = None
    """What was given, if it has further columns."""

    @classmethod
    def of(cls, data: Events | Ratings) -> Log:
        """Take a log as it was given."""
        result = cls._grouped(data, [data], is_given=True)
        if isinstance(data, Events):
            vars(result)["ordered_time"] = data.time  # a log is in order of time
        return result

    @classmethod
    def of_split(cls, split: Split) -> Log:
        """Put the parts of a split together."""
        parts = [split.train, split.test, *validation_of(split).values()]
        return cls._grouped(split.train, parts, is_given=False)

    @classmethod
    def _grouped(
        cls, data: Events | Ratings, parts: Sequence[Events | Ratings], *, is_given: bool
    ) -> Log:
        is_log = isinstance(data, Events)
        codes = frozen(np.concatenate([part.user for part in parts]))
        start = starts(np.bincount(codes, minlength=len(data.users)))
        order = grouped_order(codes, start)
        stamps, time = None, [part.time for part in parts if part.time is not None]
        if len(time) == len(parts):
            stamps = np.concatenate(time)[order]
            if not is_log:
                positions, _ = sort_groups(start, frozen(stamps))
                order, stamps = order[positions], stamps[positions]
        return cls(
            users=data.users,
            items=data.items,
            start=start,
            item=frozen(np.concatenate([part.item for part in parts])[order]),
            time=None if stamps is None else frozen(stamps),
            has_repeats=is_log,
            is_given=is_given,
            source=data if is_given and data.tags else None,
        )

    def __len__(self) -> int:
        return int(self.item.size)

    @cached_property
    def user(self) -> I32:
        """The user of each row."""
        return frozen(np.repeat(np.arange(len(self.users), dtype=np.int32), np.diff(self.start)))

    @cached_property
    def user_counts(self) -> I64:
        """The rows of each user."""
        return np.diff(self.start)

    @cached_property
    def item_counts(self) -> I64:
        """The rows of each item."""
        return np.bincount(self.item, minlength=len(self.items))

    @cached_property
    def ordered_time(self) -> I64:
        """All times in order."""
        return np.zeros(0, np.int64) if self.time is None else np.sort(self.time)

    @cached_property
    def history(self) -> History | None:
        """What one pass over the rows in order of time counts; None without time stamps."""
        from unskew.splits.diagnosis import kernels

        if self.time is None:
            return None
        rows = np.diff(self.start)
        gaps = np.zeros(len(self) - int(np.count_nonzero(rows)), np.int64)
        largest = np.zeros(rows.size, np.int64)
        counts = kernels.history(
            self.start, self.item, self.time, len(self.items), GAP, gaps, largest
        )
        return History(gaps, largest, *counts)

    @cached_property
    def births(self) -> I64:
        """The time of the first row of each item; 2**62 of items without rows."""
        result = np.full(len(self.items), NEVER)
        if self.time is not None:
            np.minimum.at(result, self.item, self.time)
        return result

    @cached_property
    def resolution(self) -> int:
        """The largest of some usual units of which every time stamp is a whole multiple."""
        if self.time is None or not len(self):
            return 1
        for unit in (DAY, 3_600 * SECOND, 60 * SECOND, SECOND, 1_000):
            if not (self.time % unit).any():
                return unit
        return 1


def calendar_of(time: I64) -> tuple[I64, I64]:
    """Count rows by weekday, Monday first, and by hour of the day, UTC."""
    days, hours = np.divmod(time // (3_600 * SECOND), 24)
    return np.bincount((days + 3) % 7, minlength=7), np.bincount(hours, minlength=24)


class PartRows(NamedTuple):
    """Some rows of a part."""

    user: I32
    item: I32
    value: F64
    time: I64


@dataclass(frozen=True, eq=False)
class SplitParts:
    """One split, and the log that it was made of."""

    split: Split
    log: Log

    @property
    def train(self) -> Ratings:
        """The training part."""
        return self.split.train

    @property
    def test(self) -> Ratings:
        """The test part."""
        return self.split.test

    @cached_property
    def counts(self) -> Summary:
        """What the split did to the data, in numbers."""
        return count_parts(self.split)

    @cached_property
    def validation(self) -> Mapping[str, Ratings]:
        """Validation parts, by name."""
        return validation_of(self.split)

    @cached_property
    def has_time(self) -> bool:
        """Whether both parts have time stamps that say something."""
        return not self.why_no_time

    @cached_property
    def why_no_time(self) -> str:
        """Why there are no time stamps to look at; empty where there are."""
        if self.train.time is None and self.test.time is None:
            return NO_TIME
        if self.train.time is None or self.test.time is None:
            part = "training" if self.train.time is None else "test"
            return f"The {part} part has no time stamps."
        if self.log.time is None:
            return NO_TIME
        lowest = min(int(self.train.time.min()), int(self.test.time.min()))
        highest = max(int(self.train.time.max()), int(self.test.time.max()))
        return "All rows carry the same time stamp." if lowest == highest else ""

    @cached_property
    def future(self) -> float:
        """The mean share of training rows that are later than a test row."""
        return mean_later(self.train_time, self.sorted_test_time)

    @property
    def is_mixed(self) -> bool:
        """Whether training and test cover the same time, as of a split that ignores time."""
        return self.future >= MIXED

    @cached_property
    def train_time(self) -> I64:
        """Times of training rows."""
        return times_of(self.train)

    @cached_property
    def test_time(self) -> I64:
        """Times of test rows."""
        return times_of(self.test)

    @cached_property
    def sorted_test_time(self) -> I64:
        """Times of test rows, in order."""
        return np.sort(self.test_time)

    @cached_property
    def last_trained(self) -> I64:
        """The last training time of each user; -2**62 of those without training rows."""
        result = np.full(len(self.train.users), -NEVER)
        np.maximum.at(result, self.train.user, self.train_time)
        return result

    @cached_property
    def first_tested(self) -> I64:
        """The first test time of each user; 2**62 of those without test rows."""
        result = np.full(len(self.test.users), NEVER)
        np.minimum.at(result, self.test.user, self.test_time)
        return result

    @cached_property
    def target_places(self) -> tuple[int, int, int, float, int]:
        """Where test rows stand among the rows of their users; see the kernel."""
        from unskew.splits.diagnosis import kernels

        train, test = self.train, self.test
        return kernels.targets_in_time(
            *(test.start, self.test_time, train.start, self.train_time),
            *(frozen(self.last_trained), frozen(self.first_tested), GAP),
        )

    @cached_property
    def in_training(self) -> U8:
        """Which test rows training has too; see `matches`."""
        return matches(self.test, self.train)

    @property
    def is_timed(self) -> bool:
        """Whether rows of both parts have time stamps, whatever these say."""
        return self.train.time is not None and self.test.time is not None

    @cached_property
    def births(self) -> I64:
        """The first time of each item of the split: in the log, or in the parts."""
        log = self.log
        if log.items.equals(self.train.items):
            births = log.births.copy()
        else:
            births = np.full(len(self.train.items), NEVER)
            position = places_in(self.train.items, log.items)
            births[position >= 0] = log.births[position[position >= 0]]
        for part in (self.train, self.test):
            np.minimum.at(births, part.item, times_of(part))
        return births

    @cached_property
    def user_counts(self) -> tuple[I64, I64]:
        """Training and test rows of each user."""
        return np.diff(self.train.start), np.diff(self.test.start)

    @property
    def item_counts(self) -> tuple[I64, I64]:
        """Training and test rows of each item."""
        train, test = self.counts.per_item.values()
        return train, test

    @cached_property
    def late_training(self) -> PartRows:
        """The last training rows, about as many as there are test rows."""
        first = len(self.train) - min(len(self.test), len(self.train))
        late = self.train_time >= np.partition(self.train_time, first)[first]
        train = self.train
        return PartRows(
            train.user[late], train.item[late], train.value[late], self.train_time[late]
        )

    @property
    def test_rows(self) -> PartRows:
        """The rows of the test part."""
        test = self.test
        return PartRows(test.user, test.item, test.value, self.test_time)


def validation_of(split: Split) -> dict[str, Ratings]:
    """Return the validation parts of a split, by name."""
    return {name: part for name, part in split.judgments.items() if name.lower() in VALIDATION}


def times_of(ratings: Ratings) -> I64:
    """Return time stamps as kernels see them; empty where there are none."""
    return frozen(np.zeros(0, np.int64) if ratings.time is None else ratings.time)


PAIR, VALUE, TIME = 1, 2, 4
"""Bits of a match: the pair, its value, its time."""


def matches(ratings: Ratings, others: Ratings) -> U8:
    """Mark rows whose pair is in `others` too, with bits for an equal value and an equal time."""
    from unskew.splits.diagnosis import kernels

    rows, other_rows = (
        kernels.UserRows(part.start, part.item, frozen(part.value), times_of(part))
        for part in (ratings, others)
    )
    return kernels.matched(rows, other_rows)


def starts(counts: I64) -> I64:
    """Return where groups of these sizes start, and where the last one ends."""
    result: I64 = frozen(np.append(0, np.cumsum(counts)).astype(np.int64))
    return result


def places_in(ids: Ids, others: Ids) -> I32:
    """Return for each id its number among others; -1 where it is not one of them."""
    union, (table, other_table) = Ids.union(ids, others)
    back = np.full(len(union), -1, np.int32)
    back[other_table] = np.arange(len(others), dtype=np.int32)
    return back[table]


def mean_later(times: I64, ordered: I64) -> float:
    """Return the probability that a time is later than one of others, which are in order."""
    if not times.size or not ordered.size:
        return 0.0
    late = times[times > ordered[0]]
    if not late.size:
        return 0.0
    earlier = np.searchsorted(ordered, late, side="left")
    return int(earlier.sum()) / (times.size * ordered.size)


def mean_of(values: F64 | I64) -> float:
    """Return the mean; NaN of nothing."""
    return float(values.mean()) if values.size else float("nan")
