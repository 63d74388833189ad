"""`Temporal`: training before test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from unskew.arrays import I64, Mask, frozen
from unskew.checks import DEFAULT_TEST, as_share, portion
from unskew.data.events import REPEATS, Events, read_events
from unskew.data.groups import grouped_order
from unskew.data.times import duration, moment, written
from unskew.errors import DataError, SettingError
from unskew.settings import choice, declare, flag, share
from unskew.splits.random import hint_share
from unskew.splits.split import (
    VALIDATION,
    Split,
    Splitter,
    assemble,
    by_mask,
    empty,
    time_of,
    without_overlap,
)
from unskew.splits.time.timeline import (
    PICK_SETTING,
    PICKS,
    REPEATS_SETTING,
    SEEN,
    SEEN_SETTING,
    TIES,
    Edge,
    Span,
    TimeAxis,
    a_duration,
    check_cut,
    span_counts,
    split_rows,
)


@dataclass(frozen=True)
class Temporal(Splitter):
    """Training ratings come before test ratings, for everyone or within each user.

    Ratings with the same time stamp are never torn apart: where the cut would fall between them,
    all go to the side that `ties` names (counted).

    With a validation part (`Split.judgments["validation"]`) settings can be chosen without a look
    at the test: training, validation and test follow each other. `with_validation_in_train` gives
    the split for the final judgment. Event logs (`read_events`) are split event by event. Items
    that a user met before the test, in training, validation or a gap, are no targets.

    Examples
    --------
    >>> import unskew as us
    >>> data = us.read_ratings(
    ...     {"user": [1, 2] * 5, "item": list(range(10)), "time": list(range(10))}
    ... )
    >>> us.splits.Temporal(test=0.2, validation=0.1).split(data)
    [Split(temporal: train 7, test 2, validation 1)]
    """

    test: float | None = share(
        None,
        """The share of ratings after the cut: 0.2 unless given, rounded to the nearest whole number
        (`per_user`: rounded down).""",
    )
    at: str | datetime | float | None = declare(
        None,
        """Instead of a share: the moment of the cut, as ISO text (UTC unless it says otherwise), a
        `datetime`, or seconds since 1970. Ratings at that moment go to the side that `ties`
        names.""",
    )
    ties: str = choice("test", "`test` (default) or `train`.", TIES)
    per_user: bool = flag(False, "Cut each user's ratings on their own.")
    validation: float | None = share(
        None, "The share of all ratings, just before the test, that is a validation part."
    )
    validation_at: str | datetime | float | None = declare(
        None, "Instead of a share: the moment at which the validation part begins."
    )
    gap: str | float | None = a_duration(
        None,
        """Time left out (counted) at the end of training, and of the validation part if there is
        one, so that what comes next is so much later: `1d`, `12h`, or seconds.""",
        zero=True,
    )
    repeats: str = choice("count", REPEATS_SETTING, REPEATS)
    seen: str = choice("drop", SEEN_SETTING, SEEN)
    pick: str = choice("all", PICK_SETTING, PICKS)

    name: ClassVar[str] = "temporal"
    draw_name: ClassVar[str] = "temporal"
    draw_omit_default: ClassVar[frozenset[str]] = frozenset(
        {"validation", "validation_at", "gap", "repeats", "seen", "pick"}
    )
    takes_events: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for share_name, moment_name in (("test", "at"), (VALIDATION, "validation_at")):
            check_cut(self, share_name, moment_name)
            if getattr(self, moment_name) is not None and self.per_user:
                raise SettingError(
                    f"{moment_name}=… is one moment for everyone; it cannot be combined with "
                    "per_user=True"
                )
        if self.per_user and self.gap is not None:
            raise SettingError(
                "gap=… is a time for everyone; it cannot be combined with per_user=True"
            )

    def describe(self) -> dict[str, Any]:
        """Return the settings for a card; those that came later only where they are set."""
        usual = {field.name: field.default for field in fields(self)}
        return {
            key: value
            for key, value in super().describe().items()
            if key not in self.draw_omit_default or value != usual[key]
        }

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return 1

    def make_splits(self, ratings: Any, seed: int) -> Iterator[Split]:
        """Make the split; the seed matters only where `pick` draws or equal times leave it open."""
        more = self.has_validation or self.gap is not None or self.pick != "all"
        if not (isinstance(ratings, Events) or self.per_user or more):
            # The usual case: each row is compared with the moment of the cut.
            time = time_of(ratings, self.name)
            test, facts = cut_in_time(time, self.test, self.at, self.ties)
            yield by_mask(self, ratings, test, hint=time_hint(time), facts=facts)
            return
        line = TimeAxis.of(ratings, self.name, self.repeats)
        yield self._each_user(line, seed) if self.per_user else self._for_all(line, seed)

    @property
    def has_validation(self) -> bool:
        """Whether there is a validation part."""
        return self.validation is not None or self.validation_at is not None

    def _for_all(self, line: TimeAxis, seed: int) -> Split:
        """Cut at moments that are the same for everyone."""
        hint = time_hint(line.time)
        if not len(line):
            raise DataError(f"{self.name}: {hint}")
        if self.at is None:
            start = line.edge_of_share(self.test, self.ties)
        else:
            start = line.edge_at(moment(self.at), self.ties)
        test, cut = Span(start.row, len(line)), self._apart(line, start)
        facts: dict[str, Any] = {"cut": start.text, "ties_at_cut": start.ties}
        validation, between = None, 0
        if self.has_validation:
            begin = self._begin_validation(line, start)
            part = Span(begin.row, max(cut.row, begin.row))
            facts |= {"validation_cut": begin.text, "ties_at_validation_cut": begin.ties}
            cut, between = self._apart(line, begin), part.size
            validation = part
        if self.gap is not None:
            facts |= {"train_end": cut.text, "ties_at_train_end": cut.ties}
        train = Span(0, cut.row)
        return split_rows(
            self,
            line,
            train,
            test,
            seed,
            hint=hint,
            facts={**facts, **span_counts(line, train, test, between)},
            validation=validation,
        )

    def _apart(self, line: TimeAxis, edge: Edge) -> Edge:
        """Return where the part before an edge ends: earlier by the gap."""
        apart = 0 if self.gap is None else duration(self.gap, "gap", zero=True)
        return line.edge_at(edge.moment - apart, self.ties) if apart else edge

    def _begin_validation(self, line: TimeAxis, start: Edge) -> Edge:
        if self.validation_at is not None:
            begin = line.edge_at(moment(self.validation_at, "validation_at"), self.ties)
            if begin.moment >= start.moment:
                raise SettingError(
                    f"validation_at={self.validation_at!r} must be earlier than the beginning of "
                    f"the test, {start.text}"
                )
            return begin
        rows = _rows_of(len(line), self.validation)
        return line.edge_before(max(start.row - rows, 0), self.ties)

    def _each_user(self, line: TimeAxis, seed: int) -> Split:
        """Cut the rows of each user on their own."""
        from unskew.data.kernels import group_starts

        start, _ = group_starts(line.user, len(line.data.users))
        rows = frozen(start), frozen(grouped_order(line.user, start))
        test, tied = self._last_of_each(
            line, rows, DEFAULT_TEST if self.test is None else self.test
        )
        facts, validation, before = {"users_with_ties_at_cut": tied}, None, None
        train = ~test
        if self.validation is not None:
            share = as_share("test", DEFAULT_TEST if self.test is None else self.test)
            share += as_share(VALIDATION, self.validation)
            late, tied = self._last_of_each(line, rows, share)
            facts["users_with_ties_at_validation_cut"] = tied
            train, before = ~late, np.flatnonzero(~test)
            validation = np.flatnonzero(late & ~test)
        has = [np.bincount(line.user[part], minlength=start.size - 1) > 0 for part in (train, test)]
        rated = np.diff(start) > 0
        facts |= {
            "users_without_test": int(np.count_nonzero(rated & ~has[1])),
            "users_without_train": int(np.count_nonzero(rated & ~has[0])),
        }
        return split_rows(
            self,
            line,
            np.flatnonzero(train),
            np.flatnonzero(test),
            seed,
            hint=hint_share(np.diff(start)),
            facts=facts,
            validation=validation,
            before=before,
        )

    def _last_of_each(
        self, line: TimeAxis, rows: tuple[I64, I64], part: float | Fraction
    ) -> tuple[Mask, int]:
        """Mark the last rows of each user; return too in how many users the cut hit equal times."""
        from unskew.splits import kernels

        start, order = rows
        exact = part if isinstance(part, Fraction) else as_share("test", part)
        mark = np.zeros(len(line), np.uint8)
        size = frozen(portion(np.diff(start), exact))
        tied = kernels.mark_last(start, order, line.time, size, self.ties == "test", mark)
        return mark.view(np.bool_), int(tied)


def _rows_of(rows: int, part: float | None) -> int:
    """Return a share of rows, rounded to the nearest whole number, half to even."""
    share = as_share(VALIDATION, part)
    return int(portion(np.array([rows]), share, "half-even")[0])


def cut_in_time(
    time: I64, test: float | None, start: str | datetime | float | None, ties: str
) -> tuple[Mask, dict[str, Any]]:
    """Mark what comes after one cut; return the facts of the cut too."""
    if start is not None:
        cut, tied = moment(start), True
    else:
        part = as_share("test", DEFAULT_TEST if test is None else test)
        first = time.size - int(portion(np.array([time.size]), part, "half-even")[0])
        if not 0 < first < time.size:  # too few for a cut: nothing to mark
            return np.zeros(time.size, np.bool_), {}
        around = np.partition(time, [first - 1, first])
        cut, tied = int(around[first]), bool(around[first - 1] == around[first])
    after = time > cut if tied and ties == "train" else time >= cut
    facts = {"cut": written(cut), "ties_at_cut": int(np.count_nonzero(time == cut)) if tied else 0}
    return after, facts


def time_hint(time: I64) -> str:
    """Say between which moments a cut is possible."""
    if not time.size or time.min() == time.max():
        return "all ratings carry the same time stamp, so time cannot split them"
    return (
        f"there are {time.size:,} ratings from {written(int(time.min()))} to "
        f"{written(int(time.max()))}: cut between them, or let ties go to the other side"
    )


AGGREGATE = ("count", "sum")


@dataclass(frozen=True)
class TemporalEvents(Splitter):
    """Events are split by time, then aggregated per pair within each part.

    bellogin2017 splits the plays of Last.fm so. A table of unique pairs cannot do this: whoever
    aggregates first has lost the times of all events but one. Pairs of the test part that are in
    training too are dropped (counted): they are no recommendation of something new.

    Examples
    --------
    User 1 plays item a twice before the cut. After it come two plays of item b, which are tested,
    and one more of item a, which is dropped.

    >>> import unskew as us
    >>> rows = {"user": [1] * 5, "item": list("aabab"), "time": [1, 2, 3, 4, 5]}
    >>> (split,) = us.splits.TemporalEvents(at=2.5).split(us.read_events(rows))
    >>> split.test.to_polars().select("item", "rating").rows()
    [('b', 2.0)]
    >>> split.facts["pairs_seen_in_training"]
    1
    """

    test: float | None = share(None, "The share of events after the cut, as in `Temporal`.")
    at: str | datetime | float | None = declare(
        None, "Instead of a share: the moment of the cut, as in `Temporal`."
    )
    ties: str = choice("test", "Where events at the cut go, as in `Temporal`.", TIES)
    aggregate: str = choice(
        "count",
        """`count` the events of a pair, or `sum` their values. The pair's time is that of its first
        event in the part.""",
        AGGREGATE,
    )
    seen: str = choice("drop", "`drop` (default) or `keep` test pairs that are in training.", SEEN)

    name: ClassVar[str] = "events"
    draw_name: ClassVar[str] = "events"
    takes_events: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cut(self)

    def make_splits(self, ratings: Any, seed: int) -> Iterator[Split]:
        """Make the split of `Events`, or of what `read_events` takes; nothing is drawn."""
        events = ratings if isinstance(ratings, Events) else read_events(ratings)
        after, facts = cut_in_time(events.time, self.test, self.at, self.ties)
        first = int(np.count_nonzero(~after))
        facts |= {"events": len(events), "events_train": first, "events_test": len(events) - first}
        hint = time_hint(events.time)
        if not 0 < first < len(events):
            raise empty(self, "training" if first == 0 else "test", hint)
        train, test = (
            events.to_ratings(self.aggregate, rows)
            for rows in (slice(0, first), slice(first, len(events)))
        )
        pairs = len(test)
        rule = "to-training" if self.seen == "drop" else "keep"
        train, test, seen = without_overlap(train, test, rule)
        hint = f"every pair of it ({pairs:,}) is in training too; {hint}"
        facts["pairs_seen_in_training"] = seen
        yield assemble(self, train, test, hint=hint, facts=facts, left_out=pairs - len(test))
