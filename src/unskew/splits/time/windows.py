"""`Windows`: one test window after the other, each with the training that was known before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unskew.arrays import Mask, frozen
from unskew.data.events import REPEATS
from unskew.data.times import duration, lasting, moment, written
from unskew.errors import DataError, SettingError, Spelling
from unskew.report.text import counted
from unskew.settings import choice, count, declare, share
from unskew.splits.split import Split, Splitter, empty
from unskew.splits.time.temporal import time_hint
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

DEFAULT_NUMBER = 5
"""Windows of equal numbers of rows, where their number is not given."""
COVERED = 0.9
"""A window that the log ends in is made if it covers at least this share of it; likewise a training
window that begins before the log."""
EMPTY = ("error", "skip")


class Window(NamedTuple):
    """One test window on a timeline."""

    number: int
    """From 1; windows that are skipped are numbered too."""
    start: Edge
    end: Edge

    @property
    def span(self) -> Span:
        """Its rows."""
        return Span(self.start.row, self.end.row)


@dataclass(frozen=True)
class Windows(Splitter):
    """Test windows along time; training is what came before each: all of it, or the last stretch.

    With `length`, windows last so long and one begins a `step` after the other. Without it, windows
    have equal numbers of rows and cover the last `test` share. A window holds its first moment and
    not its last one (`ties="train"`: the other way round), so that rows with the same time stamp
    are never torn apart. Items that a user met before the window are no targets, also those from
    the gap and from before a training window.

    Works on ratings with time stamps and on event logs (`read_events`), of which the events of each
    pair are counted in each part on its own.

    Examples
    --------
    >>> import unskew as us
    >>> log = us.read_events(
    ...     {"user": [1, 2] * 4, "item": [1, 2, 3, 4, 5, 6, 7, 8], "time": list(range(8))}
    ... )
    >>> us.splits.Windows(number=2, length=2).split(log)
    [Split(window1: train 4, test 2), Split(window2: train 6, test 2)]
    """

    number: int | None = count(
        None,
        f"""How many windows. Default: with `length`, as many as the log has room for; without it,
        {DEFAULT_NUMBER}.""",
    )
    length: str | float | None = a_duration(
        None,
        """How long a window lasts: `7d`, `12h`, `1w`.

        Or seconds, as a number.""",
    )
    step: str | float | None = a_duration(
        None,
        """From the beginning of a window to that of the next. Default: `length`.

        A shorter step makes windows overlap (their rows are counted in the facts).""",
    )
    gap: str | float | None = a_duration(
        None,
        "Time between training and test that is left out, such as 1d, 12h or 30min.",
        zero=True,
    )
    train_length: str | float | None = a_duration(
        None,
        """Train on so long before each window. Default: on all that came before.

        The one makes rolling windows, the other expanding ones.""",
    )
    test: float | None = share(
        None,
        """The share of rows that windows cover: 0.2 unless given. With `length`: where the first
        one begins, unless `start` or `number` says it.""",
    )
    start: str | datetime | float | None = declare(
        None,
        """Beginning of the first window, as ISO text (UTC unless it says otherwise), a `datetime`,
        or seconds since 1970. Default: with `number` and `length`, so that the last window ends
        with the log.""",
    )
    ties: str = choice(
        "test",
        """Rows at the moment at which a window begins belong to it (`test`), or to what came before
        (`train`); counted.""",
        TIES,
    )
    repeats: str = choice("count", REPEATS_SETTING, REPEATS)
    seen: str = choice("drop", SEEN_SETTING, SEEN)
    pick: str = choice("all", PICK_SETTING, PICKS)
    empty: str = choice(
        "error", "A window without any row is an `error`, or is left out (`skip`; counted).", EMPTY
    )

    name: ClassVar[str] = "windows"
    draw_name: ClassVar[str] = "windows"
    takes_events: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cut(self, instant="start")
        if self.length is None and self.step is not None:
            raise SettingError(
                f"step={self.step!r} needs length=…: windows of equal numbers of rows follow each "
                "other"
            )
        if self.length is not None and self.number is not None and self.test is not None:
            raise SettingError(
                f"number={self.number} windows of length={self.length!r} end with the log: leave "
                f"out test={self.test}, or give their beginning with start=…"
            )

    def known_count(self) -> int | None:
        """Return how many splits there are if the settings tell it."""
        if self.empty == "skip" or (self.length is not None and self.number is None):
            return None
        return self.number or DEFAULT_NUMBER

    def count(self, ratings: Any, seed: int = 0) -> int:
        """Return how many splits there are."""
        number = self.known_count()
        return len(self._windows(time_axis(self, ratings))) if number is None else number

    def make_splits(self, ratings: Any, seed: int) -> Iterator[Split]:
        """Make the windows one by one."""
        line = time_axis(self, ratings)
        windows = self._windows(line)
        for index in range(len(windows)):
            yield self._split(line, windows, index, seed)

    def make_one(self, ratings: Any, number: int, seed: int) -> Split | None:
        """Make one window alone."""
        line = time_axis(self, ratings)
        windows = self._windows(line)
        return self._split(line, windows, number, seed) if number < len(windows) else None

    def _windows(self, line: TimeAxis) -> list[Window]:
        """Return the windows that have rows."""
        windows = self._by_rows(line) if self.length is None else self._by_length(line)
        full = [window for window in windows if window.span.size]
        if len(full) < len(windows) and self.empty == "error":
            blank = next(window for window in windows if not window.span.size)
            raise DataError(
                f"{self.name}: there is no row in window {blank.number}, from {blank.start.text} "
                f"to {blank.end.text}; the log lasts from {written(int(line.time[0]))} to "
                f"{written(line.end)}. Ask for longer or fewer windows, or leave such windows out "
                "with ",
                Spelling("empty='skip'", "--empty skip"),
            )
        return full

    def _by_rows(self, line: TimeAxis) -> list[Window]:
        """Cut what windows cover into equal numbers of rows."""
        number = self.number or DEFAULT_NUMBER
        first = self._first(line).row
        rows = len(line) - first
        edges = [line.edge_before(first + rows * k // number, self.ties) for k in range(number)]
        edges = [self._first(line), *edges[1:], line.last_edge(self.ties)]
        return [Window(k + 1, edges[k], edges[k + 1]) for k in range(number)]

    def _first(self, line: TimeAxis) -> Edge:
        """Return where the first window begins."""
        if self.start is not None:
            return line.edge_at(moment(self.start, "start"), self.ties)
        return line.edge_of_share(self.test, self.ties)

    def _by_length(self, line: TimeAxis) -> list[Window]:
        """Lay windows of the same length along time."""
        length = duration(self.length or 0, "length")
        step = length if self.step is None else duration(self.step, "step")
        end = line.last_edge(self.ties).moment
        number = self.number
        if self.start is None and number is not None:
            first = end - length - (number - 1) * step
        else:
            first = self._first(line).moment
        if number is None:
            number = self._room(end - first, length, step)
        if not number or first <= int(line.time[0]):
            lasts = lasting(line.end - int(line.time[0]))
            request = f"{counted(number or 1, 'window')} of {lasting(length)}"
            if number and number > 1:
                request += f", one every {lasting(step)},"
            request += f" with training before {'them' if number and number > 1 else 'it'}"
            raise DataError(
                f"{self.name}: {request} would begin at {written(first)}, but the log lasts "
                f"{lasts}, from {written(int(line.time[0]))} to {written(line.end)}; ask for "
                "shorter or fewer windows"
            )
        starts = [first + k * step for k in range(number)]
        return [
            Window(k + 1, line.edge_at(begin, self.ties), line.edge_at(begin + length, self.ties))
            for k, begin in enumerate(starts)
        ]

    def _room(self, remainder: int, length: int, step: int) -> int:
        """Return how many windows fit; the last one may end a little after the log."""
        minimum = -int(-COVERED * length // 1)
        return 0 if remainder < minimum else (remainder - minimum) // step + 1

    def _split(self, line: TimeAxis, windows: Sequence[Window], index: int, seed: int) -> Split:
        window = windows[index]
        start, end = window.start, window.end
        facts: dict[str, Any] = {"window": window.number}
        if self.length is not None:
            lasted = min(end.moment, line.last_edge(self.ties).moment) - start.moment
            facts["covered"] = round(lasted / duration(self.length), 6)
        if self.step is not None and index:
            facts["rows_in_previous_window"] = max(windows[index - 1].end.row - start.row, 0)
        skipped = windows[-1].number - len(windows)
        if skipped:
            facts["windows_skipped"] = skipped
        return test_window(
            self,
            line,
            start,
            end,
            seed,
            apart=0 if self.gap is None else duration(self.gap, "gap", zero=True),
            label=f"window{window.number}",
            facts=facts,
        )


def time_axis(protocol: Any, ratings: Any) -> TimeAxis:
    """Lay data along time; refuse data in which no time passes."""
    line = TimeAxis.of(ratings, protocol.name, protocol.repeats)
    if not len(line) or line.time[0] == line.time[-1]:
        raise DataError(f"{protocol.name}: {time_hint(line.time)}")
    return line


def test_window(
    protocol: Any,
    line: TimeAxis,
    start: Edge,
    end: Edge,
    seed: int,
    *,
    apart: int,
    label: str,
    facts: Mapping[str, Any],
) -> Split:
    """Test in a window what was trained on the rows before it, or some time before it.

    Parameters
    ----------
    protocol, seed
        As in `split_rows`; the `train_length` of the protocol says how long training lasts.
    line
        All rows.
    start, end
        Of the window.
    apart
        Microseconds between the end of training and the window.
    label, facts
        Of the split.
    """
    train, train_facts = training_before(protocol, line, start, apart, label)
    test = Span(start.row, end.row)
    return split_rows(
        protocol,
        line,
        train,
        test,
        seed,
        label=label,
        hint=time_hint(line.time),
        facts={
            **facts,
            "start": start.text,
            "end": end.text,
            **train_facts,
            "ties_at_start": start.ties,
            "ties_at_end": end.ties,
            **span_counts(line, train, test),
        },
    )


def training_before(
    protocol: Any, line: TimeAxis, start: Edge, apart: int, label: str
) -> tuple[Span, dict[str, Any]]:
    """Return the rows to train on, as for `test_window`, and the facts of their ends."""
    ties = protocol.ties
    cut = line.edge_at(start.moment - apart, ties) if apart else start
    facts: dict[str, Any] = {"cut": cut.text, "ties_at_cut": cut.ties}
    if protocol.train_length is None:
        return Span(0, cut.row), facts
    lasts = duration(protocol.train_length, "train_length")
    first = line.edge_at(cut.moment - lasts, ties)
    begin = int(line.time[0])
    if cut.moment - max(begin, first.moment) < COVERED * lasts:
        raise DataError(
            f"{protocol.name}: the training part of {label} would last {lasting(lasts)}, from "
            f"{first.text}, but the log begins at {written(begin)}: parts of different length "
            "cannot be compared. Shorten train_length, or test later"
        )
    return Span(first.row, cut.row), {"train_start": first.text, **facts}


DEFAULT_AGES = 4


@dataclass(frozen=True)
class ModelAges(Splitter):
    """Models of different age on one test window: training ends at it, or so much earlier.

    A model that is judged in later and later windows grows older while the world changes. Here all
    ages are judged by the same test rows of the same users, those who have training rows at every
    age (counted), and items that a user met before the window are no targets at any age. With
    `train_length` all ages are trained on equally long stretches; else an older model has also
    fewer rows to learn from.

    Examples
    --------
    >>> import unskew as us
    >>> log = us.read_events(
    ...     {"user": [1, 2] * 5, "item": list(range(10)), "time": list(range(10))}
    ... )
    >>> us.splits.ModelAges(number=3, step=2, test=0.2).split(log)
    [Split(age0: train 8, test 2), Split(age2s: train 6, test 2), Split(age4s: train 4, test 2)]
    """

    ages: Sequence[str | float] | None = declare(
        None,
        """How long before the window each training part ends: durations such as
        `("0d", "7d", "30d")`, or seconds. The youngest comes first.""",
    )
    number: int | None = count(
        None, f"Instead of `ages`: so many, a `step` apart. Default: {DEFAULT_AGES}.", 2
    )
    step: str | float | None = a_duration(None, "From one age to the next: `7d`, `12h`, `1w`, …")
    train_length: str | float | None = a_duration(
        None, "Train on so long at every age. Default: on all that came before."
    )
    length: str | float | None = a_duration(
        None, "How long the test window lasts. Default: up to the end."
    )
    test: float | None = share(None, "The share of rows from the window on: 0.2 unless given.")
    at: str | datetime | float | None = declare(
        None, "Instead of a share: the moment at which the window begins, as in `Temporal`."
    )
    ties: str = choice("test", "Where rows at the moment of a cut go, as in `Windows`.", TIES)
    repeats: str = choice("count", REPEATS_SETTING, REPEATS)
    seen: str = choice("drop", SEEN_SETTING, SEEN)
    pick: str = choice("all", PICK_SETTING, PICKS)

    name: ClassVar[str] = "ages"
    draw_name: ClassVar[str] = "ages"
    takes_events: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cut(self)
        if (self.ages is None) == (self.step is None):
            raise SettingError(
                "say how old the models are: either ages=('0d', '7d', …), or step='7d' (and "
                "number=…)"
            )
        if self.ages is None:
            return
        if self.number is not None:
            raise SettingError("number=… goes with step=…; ages=… lists every age")
        object.__setattr__(self, "ages", tuple(self.ages))
        passed = [duration(age, "ages", zero=True) for age in self.ages]
        if len(passed) < 2 or sorted(set(passed)) != passed:
            raise SettingError(
                f"ages must be two or more durations, the youngest first, got {self.ages!r}"
            )

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values, for a card."""
        card = super().describe()
        return {**card, "ages": None if self.ages is None else list(self.ages)}

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return len(self._ages())

    def make_splits(self, ratings: Any, seed: int) -> Iterator[Split]:
        """Make the splits one by one, the youngest first."""
        line, judged = time_axis(self, ratings), None
        for number in range(len(self._ages())):
            split = self._split(line, number, seed, judged)
            judged = split.judged
            yield split

    def make_one(self, ratings: Any, number: int, seed: int) -> Split | None:
        """Make the split of one age alone."""
        if number >= len(self._ages()):
            return None
        return self._split(time_axis(self, ratings), number, seed, None)

    def _ages(self) -> list[int]:
        if self.ages is not None:
            return [duration(age, "ages", zero=True) for age in self.ages]
        step = duration(self.step or 0, "step")
        return [age * step for age in range(self.number or DEFAULT_AGES)]

    def _window(self, line: TimeAxis) -> tuple[Edge, Edge]:
        """Return the two ends of the test window."""
        if self.at is not None:
            start = line.edge_at(moment(self.at), self.ties)
        else:
            start = line.edge_of_share(self.test, self.ties)
        if self.length is None:
            return start, line.last_edge(self.ties)
        return start, line.edge_at(start.moment + duration(self.length, "length"), self.ties)

    def _split(self, line: TimeAxis, number: int, seed: int, judged: Mask | None) -> Split:
        start, end = self._window(line)
        ages, warm = self._ages(), np.ones(len(line.data.users), np.bool_)
        for age in ages:
            label = f"age {lasting(age)}"
            span, _ = training_before(self, line, start, age, label)
            if not span.size:
                raise empty(self, f"{label} training", time_hint(line.time))
            if judged is None:  # who has training rows at every age
                warm &= np.bincount(line.user[slice(*span)], minlength=warm.size) > 0
        judged = frozen(warm) if judged is None else judged
        age = ages[number]
        split = test_window(
            self,
            line,
            start,
            end,
            seed,
            apart=age,
            label=f"age{lasting(age)}" if age else "age0",
            facts={"age": age / 1e6},
        )
        tested = np.diff(split.test.start) > 0
        if not (judged & tested).any():
            raise DataError(
                f"{self.name}: no user with test rows has training rows at every age, so that no "
                "two ages can be judged by the same users; ask for younger models, or for a longer "
                "train_length"
            )
        counts = {
            "judged_users": int(np.count_nonzero(judged & tested)),
            "users_not_judged": int(np.count_nonzero(tested & ~judged)),
        }
        return replace(split, judged=judged, facts={**split.facts, **counts})
