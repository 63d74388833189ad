"""Printing to the terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import codecs
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from unskew.errors import as_options
from unskew.report.text import visible

_OPTIONS: ContextVar[Collection[str]] = ContextVar("options", default=())
"""The options of the command that runs: notes and warnings speak of these."""

# Off a terminal nothing is folded: a table in a file or a pipe keeps its lines whole.
_UNFOLDED = 10_000

# How signs are written where the terminal's encoding lacks them.
_PLAIN = {
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "≈": "~",
    "∼": "~",
    "∝": "~",
    "≪": "<<",
    "±": "+-",
    "·": "*",
    "•": "*",
    "→": "->",
    "←": "<-",
    "²": "^2",
    "³": "^3",
    "⁴": "^4",
    "ᵀ": "^T",
    "⁻": "^-",
    "½": "1/2",
    "‖": "||",
    "¬": "not ",
    "√": "sqrt",
    "∞": "inf",
    "∈": "in",
    "∩": "and",
    "∪": "or",
    "∑": "sum",
    "∂": "d",
    "⌈": "ceil(",
    "⌉": ")",
    "§": "sec. ",
    "“": '"',
    "”": '"',
    "„": '"',
    "‘": "'",
    "’": "'",
}


def safe_streams() -> None:
    """Let every text be printed, whatever the encoding: signs it lacks are written in ASCII."""
    codecs.register_error("unskew", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="unskew")


def _replaced(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    text = problem.object[problem.start : problem.end]
    return "".join(map(_plain, text)), problem.end


def _plain(sign: str) -> str:
    """Return a sign in ASCII: as people would write it, without its accent, or by its number."""
    if sign in _PLAIN:
        return _PLAIN[sign]
    if "\u2500" <= sign <= "\u259f":  # lines and blocks of tables
        return "-" if sign in "─━═╌╴╶╸╺" else "|" if sign in "│┃║" else "+"
    letter = re.fullmatch(r"GREEK (CAPITAL|SMALL) LETTER (\w+)", unicodedata.name(sign, ""))
    if letter:
        name = letter[2].lower().replace("lamda", "lambda")
        return name.capitalize() if letter[1] == "CAPITAL" else name
    base = "".join(c for c in unicodedata.normalize("NFKD", sign) if not unicodedata.combining(c))
    if base.isascii() and (base or unicodedata.combining(sign)):
        return base
    units = sign.encode("utf-16-be", "surrogatepass")  # as JSON writes it
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


@contextmanager
def speak_of(options: Collection[str]) -> Iterator[None]:
    """While a command runs, write arguments in notes and warnings as its options."""
    token = _OPTIONS.set(options)
    try:
        yield
    finally:
        _OPTIONS.reset(token)


def in_option_words(text: str) -> str:
    """Return a note or warning in which arguments such as `train=…` are options."""
    return as_options(text, _OPTIONS.get())


class _Screen(Console):
    """A console that leaves it to the boundary what happens when nobody reads any more."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render, with control characters inside texts written out."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = segment.text.split("\n")
                yield segment._replace(text="\n".join(map(visible, lines)))


def output() -> Console:
    """Return the console for results."""
    return _Screen(width=None if sys.stdout.isatty() else _UNFOLDED, highlight=False, emoji=False)


def messages() -> Console:
    """Return the console for what is not a result."""
    return _Screen(stderr=True, highlight=False, emoji=False, soft_wrap=True)


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
    """Show a bar; give the function that takes the steps done and all steps, or None."""
    with _bar(title, quiet) as move:
        yield move and (lambda done, total: move(completed=done, total=total))


@contextmanager
def named_progress(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar; give the function that takes its title, the steps done and all steps, or None."""
    with _bar("", quiet) as move:
        yield move and (
            lambda title, done, total: move(
                completed=done, total=total, **({"description": title} if title else {})
            )
        )


@contextmanager
def tasks_progress(quiet: bool, workers: int = 1) -> Iterator[Callable[[Any], None] | None]:
    """Show tasks done, running and failed and the time left; give what moves it, or None."""
    with _bar("tasks", quiet) as move:

        def show(state: Any) -> None:
            running = min(workers, state.total - state.done)
            text = f"{state.done} of {state.total} tasks done, {running} running"
            text += f", {state.failed} failed" if state.failed else ""
            if move is not None:
                move(completed=state.done, total=state.total, description=text)

        yield move and show


STAGES = {
    "reading": "reading",
    "splits": "splits and what is ranked",
    "designs": "systems under all designs",
    "null experiment": "null experiment",
    "conclusions": "conclusions",
    "diagnostics": "diagnostics",
}
"""The stages of an audit, and what the terminal calls them."""


@contextmanager
def stages_progress(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show every stage of an audit on a terminal; give what moves them, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=messages(),
        transient=True,
    )
    with bar:
        tasks = {
            stage: bar.add_task(title, total=None, start=False) for stage, title in STAGES.items()
        }
        started: set[str] = set()

        def show(stage: str, done: int, total: int) -> None:
            if stage not in started:
                started.add(stage)
                bar.start_task(tasks[stage])
            bar.update(tasks[stage], completed=done, total=total)

        yield show
