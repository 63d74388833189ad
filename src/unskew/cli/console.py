"""Printing to the terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.console import Console

# Off a terminal nothing is folded: a table in a file or a pipe keeps its lines whole.
_UNFOLDED = 10_000


def output() -> Console:
    """Return the console for results."""
    return Console(width=None if sys.stdout.isatty() else _UNFOLDED, highlight=False)


def messages() -> Console:
    """Return the console for what is not a result."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def _bar(title: str, quiet: bool) -> Iterator[Callable[..., None] | None]:
    """Show a progress bar on a terminal; give the function that moves it, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages(), transient=True) as bar:
        yield partial(bar.update, bar.add_task(title, total=None))


@contextmanager
def progress(title: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show what part is done; give the function that takes how many of how many, or None."""
    with _bar(title, quiet) as move:
        yield move and (lambda done, total: move(completed=done, total=total))


@contextmanager
def tasks_progress(quiet: bool, workers: int = 1) -> Iterator[Callable[[Any], None] | None]:
    """Show tasks done, running and failed and the time left; give what moves it, or None."""
    with _bar("tasks", quiet) as move:

        def moved(state: Any) -> None:
            running = min(workers, state.total - state.done)
            text = f"{state.done} of {state.total} tasks done, {running} running"
            text += f", {state.failed} failed" if state.failed else ""
            if move is not None:
                move(completed=state.done, total=state.total, description=text)

        yield move and moved


@contextmanager
def progress_of(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show what is being done and what part is; give what takes both, or None."""
    with _bar("", quiet) as move:
        yield move and (
            lambda what, done, total: move(
                completed=done, total=total, **({"description": what} if what else {})
            )
        )
