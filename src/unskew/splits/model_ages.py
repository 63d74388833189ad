"""`ModelAges`: one test window, and training parts that end earlier and earlier before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from unskew.arrays import Mask, frozen
from unskew.data.events import REPEATS
from unskew.data.times import duration, lasting, moment
from unskew.errors import DataError, SettingError
from unskew.settings import choice, count, declare, share
from unskew.splits.picks import PICKS, SEEN
from unskew.splits.split import Split, Splitter, empty
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
from unskew.splits.windows import check_passes, training_before

DEFAULT_NUMBER = 4


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
        None, f"Instead of `ages`: so many, a `step` apart. Default: {DEFAULT_NUMBER}.", 2
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
        line, judged = self._line(ratings), None
        for number in range(len(self._ages())):
            split = self._split(line, number, seed, judged)
            judged = split.judged
            yield split

    def make_one(self, ratings: Any, number: int, seed: int) -> Split | None:
        """Make the split of one age alone."""
        if number >= len(self._ages()):
            return None
        return self._split(self._line(ratings), number, seed, None)

    def _line(self, ratings: Any) -> Timeline:
        line = Timeline.of(ratings, self.name, self.repeats)
        check_passes(self, line)
        return line

    def _ages(self) -> list[int]:
        if self.ages is not None:
            return [duration(age, "ages", zero=True) for age in self.ages]
        step = duration(self.step or 0, "step")
        return [age * step for age in range(self.number or DEFAULT_NUMBER)]

    def _window(self, line: Timeline) -> tuple[Edge, Edge]:
        """Return the two ends of the test window."""
        if self.at is not None:
            start = line.edge_at(moment(self.at), self.ties)
        else:
            start = line.edge_of_share(self.test, self.ties)
        if self.length is None:
            return start, line.last_edge(self.ties)
        return start, line.edge_at(start.moment + duration(self.length, "length"), self.ties)

    def _training(self, line: Timeline, start: Edge, age: int) -> tuple[Span, dict[str, Any]]:
        label = f"age {lasting(age)}"
        span, facts = training_before(
            self, line, start, age, self.train_length, ties=self.ties, label=label
        )
        if not span.size:
            raise empty(self, f"{label} training", time_hint(line.time))
        return span, facts

    def _split(self, line: Timeline, number: int, seed: int, judged: Mask | None) -> Split:
        start, end = self._window(line)
        ages = self._ages()
        parts = [self._training(line, start, age) for age in ages]
        if judged is None:
            judged = self._warm(line, [span for span, _ in parts])
        age, (train, facts) = ages[number], parts[number]
        test = Span(start.place, end.place)
        split = split_rows(
            self,
            line,
            train,
            JudgedRows(test),
            TargetRule(self.seen, self.pick, seed),
            label="age0" if not age else f"age{lasting(age)}",
            hint=time_hint(line.time),
            facts={
                "age": age / 1e6,
                "start": start.text,
                "end": end.text,
                **facts,
                "ties_at_start": start.ties,
                "ties_at_end": end.ties,
                **span_counts(line, train, test),
            },
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

    def _warm(self, line: Timeline, trains: Sequence[Span]) -> Mask:
        """Return the users who have training rows at every age."""
        warm = np.ones(len(line.data.users), np.bool_)
        for span in trains:
            warm &= np.bincount(line.user[span.first : span.last], minlength=warm.size) > 0
        return frozen(warm)
