"""`Windows`: one test window after the other, each with the training that was known before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from unskew.data.events import REPEATS
from unskew.data.times import duration, lasting, moment, written
from unskew.errors import DataError, SettingError, Spelling
from unskew.report.text import counted
from unskew.settings import choice, count, declare, share
from unskew.splits.picks import PICKS, SEEN
from unskew.splits.split import Split, Splitter
from unskew.splits.time import time_hint
from unskew.splits.time_parts import (
    PICK_SETTING,
    REPEATS_SETTING,
    SEEN_SETTING,
    JudgedRows,
    TargetRule,
    span_counts,
    split_rows,
)
from unskew.splits.timeline import TIES, Edge, Span, Timeline, a_duration, check_cut

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
        return Span(self.start.place, self.end.place)


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
        None, "How long a window lasts: `7d`, `12h`, `1w`, or seconds."
    )
    step: str | float | None = a_duration(
        None,
        """From the beginning of a window to that of the next. Default: `length`. A shorter step
        makes windows overlap (their rows are counted in the facts).""",
    )
    gap: str | float | None = a_duration(
        None, "Time between the end of training and the window: neither trained on nor tested.",
        zero=True,
    )  # fmt: skip
    train_length: str | float | None = a_duration(
        None,
        """Train on so long before each window (rolling windows). Default: on all that came before
        (expanding windows).""",
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
        check_cut(self, at="start")
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
        known = self.known_count()
        return len(self._windows(self._line(ratings))) if known is None else known

    def make_splits(self, ratings: Any, seed: int) -> Iterator[Split]:
        """Make the windows one by one."""
        line = self._line(ratings)
        windows = self._windows(line)
        for place in range(len(windows)):
            yield self._split(line, windows, place, seed)

    def make_one(self, ratings: Any, number: int, seed: int) -> Split | None:
        """Make one window alone."""
        line = self._line(ratings)
        windows = self._windows(line)
        return self._split(line, windows, number, seed) if number < len(windows) else None

    def _line(self, ratings: Any) -> Timeline:
        line = Timeline.of(ratings, self.name, self.repeats)
        check_passes(self, line)
        return line

    def _windows(self, line: Timeline) -> list[Window]:
        """Return the windows that have rows."""
        windows = self._by_rows(line) if self.length is None else self._by_length(line)
        full = [one for one in windows if one.span.size]
        if len(full) < len(windows) and self.empty == "error":
            one = next(one for one in windows if not one.span.size)
            raise DataError(
                f"{self.name}: there is no row in window {one.number}, from {one.start.text} to "
                f"{one.end.text}; the log lasts from {written(int(line.time[0]))} to "
                f"{written(line.end)}. Ask for longer or fewer windows, or leave such windows out "
                "with ",
                Spelling("empty='skip'", "--empty skip"),
            )
        return full

    def _by_rows(self, line: Timeline) -> list[Window]:
        """Cut what windows cover into equal numbers of rows."""
        number = self.number or DEFAULT_NUMBER
        first = self._first(line).place
        rows = len(line) - first
        edges = [line.edge_before(first + rows * k // number, self.ties) for k in range(number)]
        edges = [self._first(line), *edges[1:], line.last_edge(self.ties)]
        return [Window(k + 1, edges[k], edges[k + 1]) for k in range(number)]

    def _first(self, line: Timeline) -> Edge:
        """Return where the first window begins."""
        if self.start is not None:
            return line.edge_at(moment(self.start, "start"), self.ties)
        return line.edge_of_share(self.test, self.ties)

    def _by_length(self, line: Timeline) -> list[Window]:
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
            asked = f"{counted(number or 1, 'window')} of {lasting(length)}"
            if number and number > 1:
                asked += f", one every {lasting(step)},"
            asked += f" with training before {'them' if number and number > 1 else 'it'}"
            raise DataError(
                f"{self.name}: {asked} would begin at {written(first)}, but the log lasts {lasts}, "
                f"from {written(int(line.time[0]))} to {written(line.end)}; ask for shorter or "
                "fewer windows"
            )
        starts = [first + k * step for k in range(number)]
        return [
            Window(k + 1, line.edge_at(begin, self.ties), line.edge_at(begin + length, self.ties))
            for k, begin in enumerate(starts)
        ]

    def _room(self, rest: int, length: int, step: int) -> int:
        """Return how many windows fit; the last one may end a little after the log."""
        least = -int(-COVERED * length // 1)
        return 0 if rest < least else (rest - least) // step + 1

    def _split(self, line: Timeline, windows: Sequence[Window], place: int, seed: int) -> Split:
        window = windows[place]
        start, end = window.start, window.end
        label = f"window{window.number}"
        train, facts = training_before(
            self,
            line,
            start,
            0 if self.gap is None else duration(self.gap, "gap", zero=True),
            self.train_length,
            ties=self.ties,
            label=label,
        )
        facts = {
            "window": window.number,
            "start": start.text,
            "end": end.text,
            **facts,
            "ties_at_start": start.ties,
            "ties_at_end": end.ties,
        }
        if self.length is not None:
            lasted = min(end.moment, line.last_edge(self.ties).moment) - start.moment
            facts["covered"] = round(lasted / duration(self.length), 6)
        if self.step is not None and place:
            shared = windows[place - 1].end.place - start.place
            facts["rows_in_previous_window"] = max(shared, 0)
        skipped = windows[-1].number - len(windows)
        if skipped:
            facts["windows_skipped"] = skipped
        return split_rows(
            self,
            line,
            train,
            JudgedRows(window.span),
            TargetRule(self.seen, self.pick, seed),
            label=label,
            hint=time_hint(line.time),
            facts={**facts, **span_counts(line, train, window.span)},
        )


def check_passes(protocol: Splitter, line: Timeline) -> None:
    """Refuse data in which no time passes."""
    if not len(line) or line.time[0] == line.time[-1]:
        raise DataError(f"{protocol.name}: {time_hint(line.time)}")


def training_before(
    protocol: Splitter,
    line: Timeline,
    start: Edge,
    apart: int,
    train_length: str | float | None,
    *,
    ties: str,
    label: str,
) -> tuple[Span, dict[str, Any]]:
    """Return the rows to train on before a moment, and the facts of their ends.

    Parameters
    ----------
    protocol, label
        For messages.
    line
        All rows.
    start
        Beginning of the test.
    apart
        Microseconds between the end of training and the test.
    train_length
        How long training lasts; None: from the first row on.
    ties
        Where rows at the moment of a cut go.
    """
    cut = line.edge_at(start.moment - apart, ties) if apart else start
    facts: dict[str, Any] = {"cut": cut.text, "ties_at_cut": cut.ties}
    if train_length is None:
        return Span(0, cut.place), facts
    lasts = duration(train_length, "train_length")
    first = line.edge_at(cut.moment - lasts, ties)
    begin = int(line.time[0])
    if cut.moment - max(begin, first.moment) < COVERED * lasts:
        raise DataError(
            f"{protocol.name}: the training part of {label} would last {lasting(lasts)}, from "
            f"{first.text}, but the log begins at {written(begin)}: parts of different length "
            "cannot be compared. Shorten train_length, or test later"
        )
    return Span(first.place, cut.place), {"train_start": first.text, **facts}
