"""How far work is: a function that is called with (done, total), and a counter that calls it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""


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
