"""How far long work is, shown in a notebook; nothing where no notebook runs the code."""

from __future__ import annotations

import contextvars
import functools
import html
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar

from unskew.engine.remaining import Remaining
from unskew.engine.threads import new_lock

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
    >>> from unskew.engine.notebook_progress import notebook_progress
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
    >>> from unskew.engine.notebook_progress import bar_html
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
