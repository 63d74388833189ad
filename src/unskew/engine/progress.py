"""How far work is: a function that is called with (done, total), and a counter that calls it."""

from __future__ import annotations

import contextvars
import functools
import html
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

from unskew.engine.threads import new_lock

Progress = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""

AUDIT_STAGES = {
    "reading": 1,
    "splits": 2,
    "designs": 62,
    "null experiment": 28,
    "conclusions": 2,
    "diagnostics": 1,
    "statements": 4,
}
"""Shares of the time that audits of ratings took: the time that is left is told from them."""


class Steps:
    """Counts the steps that are done, and reports each to a progress function.

    Examples
    --------
    >>> from unskew.engine.progress import Steps
    >>> steps = Steps(2, lambda done, total: print(done, "of", total))
    >>> steps.advance()
    1 of 2
    """

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress, self.done = total, progress, 0

    def advance(self, steps: int = 1) -> None:
        """Count more steps as done."""
        self.done += steps
        if self.progress is not None:
            self.progress(self.done, self.total)


LEAST_SECONDS = 3.0
"""Before that, nothing is said of the time that is left."""
LEAST_SHARE = 0.1
"""Of the work to do, that must have been measured before the time that is left is said; of work
that goes on for long, less."""
_LONG = 30.0
_TRUSTED = 0.3
"""The share of a stage from which on its pace alone counts, not its weight."""
_MOVES = 0.3
"""How far a new estimate moves the one before: estimates that jump help nobody."""


@dataclass(eq=False)
class _StageTime:
    """One stage while it runs, and after it."""

    weight: float
    start: float
    stored: float
    """Steps that needed no work."""
    done: float
    total: float
    last: float
    """When it last reported."""

    @property
    def share(self) -> float:
        """The part of the stage that is done, work or not."""
        return min(self.done / self.total, 1.0) if self.total > 0 else 0.0

    @property
    def measured(self) -> float:
        """The part of the stage that was worked on."""
        return max(self.done - self.stored, 0.0) / self.total if self.total > 0 else 0.0

    @property
    def is_over(self) -> bool:
        return self.total > 0 and self.done >= self.total

    def left_by_pace(self, now: float) -> float | None:
        """Return the seconds left by its steps so far; the step under way is not counted twice."""
        steps, todo = self.done - self.stored, self.total - self.done
        if steps <= 0:
            return None
        each = (self.last - self.start) / steps
        return max(todo - 1, 0) * each + max(each * min(todo, 1) - (now - self.last), 0.0)


class Remaining:
    """The seconds that work still takes, as its stages report how far they are.

    Parameters
    ----------
    weights
        What each stage typically takes, relative to the others, in the order in which they come. A
        stage that is left out counts as over when a later one begins. Without weights there is one
        stage.
    clock
        Gives the time in seconds.

    Examples
    --------
    >>> from unskew.engine.progress import Remaining
    >>> now = [0.0]
    >>> remaining = Remaining({"train": 3, "judge": 1}, clock=lambda: now[0])
    >>> remaining.report("train", 0, 10)
    >>> remaining.seconds() is None  # nothing is known yet
    True
    >>> now[0] = 30.0
    >>> remaining.report("train", 5, 10)
    >>> remaining.seconds()  # 30 for the other half of the training, 20 for a third of all that
    50.0
    >>> remaining.text()
    'about 50 s left'
    """

    def __init__(
        self,
        weights: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._weights = dict(weights or {})
        self._clock = clock
        self._begun = clock()
        self._stages: dict[str, _StageTime] = {}
        self._current = ""
        self._end: float | None = None
        """When the work is expected to be over."""
        self._shown = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the work began."""
        return self._clock() - self._begun

    def begin(self, stage: str, stored: float = 0.0) -> None:
        """Begin a stage now; `stored` of its steps needed no work. Again: only `stored` is new."""
        if stage in self._stages:
            self._stages[stage].stored = stored
            return
        now = self._clock()
        weight = self._weights.get(stage, 0.0) if self._weights else 1.0
        self._stages[stage] = _StageTime(
            weight=weight, start=now, stored=stored, done=stored, total=0.0, last=now
        )
        self._current = stage

    def report(self, stage: str, done: float, total: float) -> None:
        """Take in how many steps of a stage are done, and of how many; 0 for an unknown number.

        Steps that the first report of a stage counts needed no work, unless it was begun before.
        """
        seen = self._stages.get(stage)
        if seen is not None and done < seen.done:  # tried again, from the start
            del self._stages[stage]
        if stage not in self._stages:
            self.begin(stage, stored=done)
        self._current = stage
        one = self._stages[stage]
        one.done, one.total, one.last = float(done), float(max(total, done)), self._clock()
        left = self._left(one.last)
        if left is None:
            return
        end = one.last + left
        self._end = end if self._end is None else self._end + _MOVES * (end - self._end)

    def share(self) -> float:
        """Return the part of all work that is done, between 0 and 1; it never shrinks."""
        whole = sum(self._weights.values()) if self._weights else 1.0
        done = whole - self._later()
        current = self._stages.get(self._current)
        if current is not None:
            done -= current.weight * (1 - current.share)
        elif self._weights:
            done = 0.0
        self._shown = max(self._shown, min(max(done / whole, 0.0), 1.0))
        return self._shown

    def seconds(self) -> float | None:
        """Return the seconds that are left, or None while too little is known."""
        now = self._clock()
        if self._end is None or now - self._begun < LEAST_SECONDS:
            return None
        left = self._left(now)
        if left is None:
            return None
        # Where a step takes longer than those before, what comes after it is still to be done.
        return max(self._end - now, left / 2, 0.0)

    def text(self) -> str:
        """Return the time that is left in words, '' while too little is known."""
        seconds = self.seconds()
        return "" if seconds is None else f"{in_words(seconds)} left"

    def _later(self) -> float:
        """Return the weight of the stages that come after the current one."""
        names = list(self._weights)
        if self._current not in names:
            return 0.0
        return sum(self._weights[name] for name in names[names.index(self._current) + 1 :])

    def _left(self, now: float) -> float | None:
        current = self._stages[self._current]
        measured = sum(stage.weight * stage.measured for stage in self._stages.values())
        todo = current.weight * (1 - current.share) + self._later()
        least = LEAST_SHARE * min(1.0, _LONG / max(now - self._begun, 1.0))
        if not current.total or not measured or measured < least * (measured + todo):
            return None
        spent = sum(stage.last - stage.start for stage in self._stages.values() if stage.measured)
        pace = spent / measured
        left = pace * current.weight * (1 - current.share)
        by_pace = current.left_by_pace(now)
        if by_pace is not None:
            trust = min(current.measured / _TRUSTED, 1.0)
            left = trust * by_pace + (1 - trust) * left
        return left + pace * self._later()


def in_words(seconds: float) -> str:
    """Return a time for people, rounded as an estimate should be.

    Examples
    --------
    >>> from unskew.engine.progress import in_words
    >>> in_words(3.2), in_words(44), in_words(150), in_words(5_000), in_words(40_000)
    ('a few seconds', 'about 45 s', 'about 3 min', 'about 1 h 25 min', 'about 11 h')
    """
    if seconds < 7.5:
        return "a few seconds"
    if seconds < 57.5:
        return f"about {5 * round(seconds / 5)} s"
    minutes = int(seconds / 60 + 0.5)
    if minutes < 60:
        return f"about {minutes} min"
    minutes = 5 * round(seconds / 300)
    hours, rest = divmod(minutes, 60)
    if hours >= 10 or not rest:
        return f"about {round(seconds / 3600)} h"
    return f"about {hours} h {rest} min"


P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 1.0
"""Seconds before anything is shown: short work needs no bar."""
PERIOD = 0.25
"""Seconds between two changes of the display."""

_shown = new_lock()
"""Held by the one display: functions that others call show none of their own."""


class Display(Protocol):
    """What puts HTML and plain text into a notebook, and replaces it."""

    def __call__(self, bundle: Mapping[str, str], *, is_new: bool) -> None:
        """Show a bundle of MIME types, below the cell or in place of the one before."""


def notebook_progress(
    title: str, weights: Mapping[str, float] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function with the keyword `progress` show in a notebook how far it is.

    Where the caller gives a `progress`, that one is called and nothing is shown. The display goes
    when the work is done: a notebook that is run again has the same outputs.

    Parameters
    ----------
    title
        What is under way.
    weights
        What each stage typically takes; see `Remaining`.

    Examples
    --------
    >>> from unskew.engine.progress import notebook_progress
    >>> @notebook_progress("counting")
    ... def count(most, *, progress=None):
    ...     return most, progress
    >>> count(3)  # no notebook runs this
    (3, None)
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            display = notebook_display()
            if display is None or not _shown.acquire(blocking=False):
                return function(*args, **kwargs)
            try:
                if kwargs.get("progress") is not None:
                    return function(*args, **kwargs)
                bar = Bar(title, display, weights)
                kwargs["progress"] = bar
                try:
                    result = function(*args, **kwargs)
                except BaseException:
                    bar.stop()
                    raise
                bar.finish()
                return result
            finally:
                _shown.release()

        wrapper.shows_progress = True  # type: ignore[attr-defined]
        return wrapper

    return decorate


class Bar:
    """A bar in a notebook: the step, the share that is done, and the time that is left.

    It is called as the library calls any `progress`: with (done, total), with (step, done, total),
    or with an object that has `done`, `total` and `failed`.
    """

    def __init__(
        self,
        title: str,
        display: Display,
        weights: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title, self._display, self._clock = title, display, clock
        self._weights = weights or {}
        self._remaining = Remaining(weights, clock)
        self._began = self._last = clock()
        self._is_shown = False
        self._line = ""
        self._lock = new_lock()
        # Work may report from other threads, and a kernel finds the cell by the context.
        self._context = contextvars.copy_context()

    def __call__(self, *state: Any) -> None:
        """Take in how far the work is, and show it from time to time."""
        step, done, total = _read(state)
        with self._lock:
            now = self._clock()
            # Steps without a weight are names of what is under way in one whole.
            stage = step if step in self._weights else ""
            self._remaining.report(stage, done, total)
            counts = f"{done:,} of {total:,}" if total else ""
            self._line = ": ".join(part for part in (step, counts) if part)
            wait = PERIOD if self._is_shown else PATIENCE
            if now - self._last >= wait:
                self._last = now
                self._show(
                    bar_html(
                        self._title, self._line, self._remaining.share(), self._remaining.text()
                    )
                )

    def finish(self) -> None:
        """Remove the display."""
        with self._lock:
            if self._is_shown:
                self._show("")

    def stop(self) -> None:
        """Leave a line that says where the work ended."""
        with self._lock:
            if self._is_shown:
                seconds = self._clock() - self._began
                where = f" at {self._line}" if self._line else ""
                self._show(
                    f"<p>{html.escape(f'{self._title}: stopped{where}, after {seconds:.0f} s')}</p>"
                )

    def _show(self, content: str) -> None:
        bundle = {"text/html": content, "text/plain": ""}
        try:
            self._context.run(self._display, bundle, is_new=not self._is_shown)
        except Exception:  # a display that fails must not end the work
            return
        self._is_shown = True


def bar_html(title: str, line: str, share: float, left: str) -> str:
    """Return a bar and its words.

    Examples
    --------
    >>> from unskew.engine.progress import bar_html
    >>> print(bar_html("audit", "designs: 1 of 4", 0.25, "about 45 s left"))
    <div class="unskew-progress"><progress max="1" value="0.250"></progress> audit · designs: 1 of 4 · 25 % · about 45 s left</div>
    """  # noqa: E501
    words = " · ".join(
        part for part in (title, line, f"{share:.0%}".replace("%", " %"), left) if part
    )
    return (
        f'<div class="unskew-progress"><progress max="1" value="{share:.3f}"></progress> '
        f"{html.escape(words)}</div>"
    )


def notebook_display() -> Display | None:
    """Return what shows something below the cell that runs, or None where none does.

    IPython is never imported: a kernel has done it.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    module = sys.modules.get("IPython.display")
    if getattr(shell, "kernel", None) is None or module is None:
        return None
    handles: list[Any] = []

    def show(bundle: Mapping[str, str], *, is_new: bool) -> None:
        if is_new:
            handles[:] = [module.display(dict(bundle), raw=True, display_id=True)]
        else:
            handles[0].update(dict(bundle), raw=True)

    return show


def _read(state: tuple[Any, ...]) -> tuple[str, int, int]:
    """Return step, done and total of what the library tells a progress function."""
    if len(state) == 1:
        one = state[0]
        failed = f"{one.failed} failed" if one.failed else ""
        return failed, int(one.done), int(one.total)
    step, done, total = state if len(state) == 3 else ("", *state)
    return str(step), int(done), int(total)
