"""`Sessions`: whole sessions train or test, and targets are chosen within each session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unskew.arrays import I64, Mask, frozen
from unskew.checks import DEFAULT_TEST, as_share, portion
from unskew.data.events import REPEATS
from unskew.data.groups import grouped_order
from unskew.data.times import duration, moment, written
from unskew.settings import choice, count, declare, share
from unskew.splits.split import Split, Splitter, assemble, empty, shared_rows
from unskew.splits.time.temporal import time_hint
from unskew.splits.time.timeline import (
    ONE,
    REPEATS_SETTING,
    SEEN,
    SEEN_SETTING,
    TIES,
    Picked,
    TimeAxis,
    a_duration,
    check_cut,
    pick_rows,
    tagged,
    warmth,
)
from unskew.splits.time.windows import time_axis

PICKS = (*ONE, "next")


class Sittings(NamedTuple):
    """The sessions of all users: rows are in order of time."""

    session: I64
    """The session of each row."""
    step: I64
    """The place of each row in its session, from 1."""
    begin: I64
    """The moment at which each session begins."""
    size: I64
    """How many rows each session has."""

    @classmethod
    def of(cls, line: TimeAxis, pause: int) -> Sittings:
        """Cut the rows of each user wherever the next one is more than `pause` later."""
        from unskew.data.kernels import group_starts

        start, _ = group_starts(line.user, len(line.data.users))
        order = grouped_order(line.user, start)
        time, rows = line.time[order], np.arange(len(line))
        is_first = np.append(True, np.diff(time) > pause)
        is_first[start[:-1][np.diff(start) > 0]] = True
        heads, number = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        session, step = np.empty_like(rows), np.empty_like(rows)
        session[order], step[order] = number, rows - heads[number] + 1
        size = np.diff(np.append(heads, rows.size))
        return cls(frozen(session), frozen(step), frozen(time[heads]), frozen(size))


@dataclass(frozen=True)
class Sessions(Splitter):
    """Sessions that begin before a moment train, later ones test, by a target in each session.

    A session ends where a user pauses longer than `pause`. It belongs to the part in which it
    begins. Nothing after the cut is trained on: what a session that began before the cut has after
    it is left out (counted: torn sessions).

    `pick` says which events of a test session are targets. The other events are left out of the
    test part, and nothing is trained on them. `Split.logs` keeps the events of both parts with
    their session, for systems that look at what came before in the session.

    Examples
    --------
    >>> import unskew as us
    >>> log = us.read_events(
    ...     {"user": [1, 1, 1, 2, 2], "item": list("abcde"), "time": [0, 60, 9000, 9000, 9060]}
    ... )
    >>> (split,) = us.splits.Sessions(test=0.5, pick="last").split(log)
    >>> split, split.test.items.raw(split.test.item).to_list()
    (Split(sessions: train 2, test 2), ['c', 'e'])
    """

    pause: str | float = a_duration(
        "30min", "A longer pause between two events of a user ends a session: `30min`, `2h`, …"
    )
    test: float | None = share(
        None, "The share of sessions, by their beginning, that test: 0.2 unless given."
    )
    at: str | datetime | float | None = declare(
        None, "Instead of a share: the moment of the cut, as in `Temporal`."
    )
    pick: str = choice(
        "last",
        """The target of each test session: its `last` event, its `first`, one at `random`; or
        every `next` one, all but the first, for judging step by step. Of event logs with
        `seen="drop"`, only first events of new pairs can be targets.""",
        PICKS,
    )
    least: int = count(1, "Test sessions with fewer events have no target (counted).")
    ties: str = choice(
        "test",
        "Where events at the cut, and sessions that begin at it, go: `test` (default) or `train`.",
        TIES,
    )
    repeats: str = choice("count", REPEATS_SETTING, REPEATS)
    seen: str = choice("drop", SEEN_SETTING, SEEN)

    name: ClassVar[str] = "sessions"
    draw_name: ClassVar[str] = "sessions"
    takes_events: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cut(self)

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return 1

    def make_splits(self, ratings: Any, seed: int) -> Iterator[Split]:
        """Make the split."""
        line = time_axis(self, ratings)
        sittings = Sittings.of(line, duration(self.pause, "pause"))
        cut, late, ties = self._cut(sittings)
        tested = late[sittings.session]
        before = line.time <= cut if self.ties == "train" else line.time < cut
        trained, torn = ~tested & before, ~tested & ~before
        hint = f"there are {late.size:,} sessions; {time_hint(line.time)}"
        for part, mask in (("training", trained), ("test", tested)):
            if not mask.any():
                raise empty(self, part, hint)
        train, _ = line.ratings(np.flatnonzero(trained))
        picked, counts = self._pick(line, sittings, tested, torn, seed)
        test, _ = line.ratings(np.flatnonzero(picked.target))
        if not len(test):
            raise empty(self, "test", f"no session has a target that is new to its user; {hint}")
        facts: dict[str, Any] = {
            "cut": written(cut),
            "ties_at_cut": ties,
            "sessions": int(late.size),
            "sessions_train": int(np.count_nonzero(~late)),
            "sessions_test": int(np.count_nonzero(late)),
            **counts,
            **warmth(train, test),
        }
        left_out = len(line) - int(trained.sum()) - int(picked.target.sum())
        split = assemble(self, train, test, hint=hint, facts=facts, left_out=left_out)
        after, _ = line.ratings(np.flatnonzero(torn))
        further = after.take(~shared_rows(after, train))
        logs = {}
        # What is torn stands among the events of the test part.
        for part, mask in (("train", trained), ("test", tested | torn)):
            rows = np.flatnonzero(mask)
            target = picked.target[rows] if part == "test" else None
            logs[part] = tagged(line.log(rows), sittings.step[rows], sittings.session[rows], target)
        yield replace(split, known={"test": further} if len(further) else {}, logs=logs)

    def _cut(self, sittings: Sittings) -> tuple[int, Mask, int]:
        """Return the moment of the cut, which sessions come after it, and how many begin at it."""
        begin = sittings.begin
        if self.at is not None:
            cut, tied = moment(self.at), True
        else:
            part = as_share("test", DEFAULT_TEST if self.test is None else self.test)
            rows = int(portion(np.array([begin.size]), part, "half-even")[0])
            first = min(max(begin.size - rows, 0), begin.size - 1)
            around = np.sort(begin)
            cut = int(around[first])
            tied = first > 0 and int(around[first - 1]) == cut
        late = begin > cut if tied and self.ties == "train" else begin >= cut
        return cut, late, int(np.count_nonzero(begin == cut)) if tied else 0

    def _pick(
        self, line: TimeAxis, sittings: Sittings, tested: Mask, torn: Mask, seed: int
    ) -> tuple[Picked, dict[str, int]]:
        """Choose targets; return them over all rows, and what was counted."""
        long = sittings.size[sittings.session] >= self.least
        inner = sittings.step > 1 if self.pick == "next" else np.ones(len(line), np.bool_)
        candidates = np.flatnonzero(tested & long)
        groups = sittings.session[candidates]
        picked = pick_rows(line, candidates, groups, pick=self.pick, seen=self.seen, seed=seed)
        target = np.zeros(len(line), np.bool_)
        target[candidates[picked.target]] = True
        target &= inner
        test_sessions = np.unique(sittings.session[tested])
        targets = int(np.count_nonzero(target))
        counts = {
            "torn_sessions": int(np.unique(sittings.session[torn]).size),
            "short_sessions": int(np.count_nonzero(sittings.size[test_sessions] < self.least)),
            "sessions_without_target": test_sessions.size
            - np.unique(sittings.session[target]).size,
            "targets": targets,
            "left_out_torn": int(np.count_nonzero(torn)),
            "left_out_seen": picked.seen,
            "left_out_pick": int(np.count_nonzero(tested)) - targets - picked.seen,
        }
        if picked.ties is not None:
            counts["sessions_with_ties_at_pick"] = picked.ties
        return Picked(target, picked.seen, picked.ties), counts
