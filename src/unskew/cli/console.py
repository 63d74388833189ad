"""Printing to the terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import codecs
import os
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from unskew.errors import as_options, without_credentials
from unskew.report.text import visible

_OPTIONS: ContextVar[Collection[str]] = ContextVar("options", default=())
"""The options of the command that runs: notes and warnings speak of these."""
_COMMAND: ContextVar[str] = ContextVar("command", default="unskew")

# Off a terminal nothing is folded: a table in a file or a pipe keeps its lines whole.
_UNFOLDED = 10_000

# How signs are written where the terminal's encoding lacks them.
_PLAIN = {
    **dict.fromkeys("–—−", "-"),
    **dict.fromkeys("≈∼∝", "~"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("·•", "*"),
    "…": "...",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "≪": "<<",
    "±": "+-",
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
}


def safe_streams() -> None:
    """Let every text be printed, whatever the encoding: signs it lacks are written in ASCII.

    A stream that was closed (`>&-`) leads nowhere, and messages that cannot be written are dropped:
    the command works, and ends with its exit code.
    """
    codecs.register_error("unskew", _replaced)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere(number))
    if sys.stderr is sys.__stderr__:
        sys.stderr = cast("TextIO", _Messages(cast("TextIO", sys.stderr)))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="unskew")


def _nowhere(number: int) -> TextIO:
    """Return a stream that leads nowhere, under the number of one that was closed.

    Otherwise the next file that is opened takes the number, and what libraries print goes there.
    """
    opened = os.open(os.devnull, os.O_RDWR)
    if opened == number:
        os.set_inheritable(opened, True)
    return open(opened, "w" if number else "r", encoding="utf-8")  # noqa: PTH123


class _Messages:
    """Standard error. What cannot be written, as nobody reads it or a disk is full, is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            drop(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            drop(self._stream)


def drop(stream: TextIO) -> None:
    """Send what is left in a stream, and all that follows, nowhere: Python would try again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


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
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


@contextmanager
def speak_of(command: str, options: Collection[str]) -> Iterator[None]:
    """While a command runs, write arguments in notes and warnings as its options."""
    tokens = _COMMAND.set(command), _OPTIONS.set(options)
    try:
        yield
    finally:
        _COMMAND.reset(tokens[0])
        _OPTIONS.reset(tokens[1])


def command_name() -> str:
    """Return the name of the command that runs, such as `bias null`."""
    return _COMMAND.get()


def in_option_words(text: str) -> str:
    """Return a note or warning in which arguments such as `train=…` are options.

    Whatever address stands in it, it holds no credentials.
    """
    return as_options(without_credentials(text), _OPTIONS.get())


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
