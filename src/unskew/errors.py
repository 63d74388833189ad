"""Every error and warning that a user of unskew can cause."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from unskew.addresses import without_credentials


@dataclass(frozen=True)
class Spelling:
    """What is written one way in Python and another way on the command line.

    A part of an error message: `str` of the error uses the words of Python, and the command line
    prints its own.
    """

    python: str
    command_line: str
    """An option such as `--duplicates first`, or any other text."""
    beside: str = ""
    """Another option of every command in which the first one has this meaning."""
    without: str = ""
    """What to write for commands that do not have the option; the words of Python unless given."""

    def __str__(self) -> str:
        return self.python

    def among(self, options: Collection[str]) -> str:
        """Return the words of the command line, for a command that has these options."""
        option = self.command_line.partition(" ")[0]
        needed = {name for name in (option, self.beside) if name.startswith("--")}
        if needed <= set(options):
            return self.command_line
        return self.without or f"{self.python} in Python"


class UnskewError(Exception):
    """Base of all errors raised on purpose by unskew: its arguments are the parts of its text.

    The text holds no credentials, whichever address stands in it.
    """

    def __str__(self) -> str:
        return without_credentials("".join(map(str, self.args)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def on_command_line(self, options: Collection[str]) -> str:
        """Return the message in the words of the command line.

        Parameters
        ----------
        options
            The options of the command that was called, such as `--duplicates`.
        """
        parts = (
            part.among(options) if isinstance(part, Spelling) else as_options(str(part), options)
            for part in self.args
        )
        return without_credentials("".join(parts))


# An argument as messages name it: train=…, by='rank' or exact=True.
_ARGUMENT = re.compile(r"(?<![\w.-])([a-z][a-z_]*)=(?:…|(True)\b|'([\w-]+)')")


def as_options(text: str, options: Collection[str]) -> str:
    """Return a message in which arguments that are options of the command are written as such."""

    def option(argument: re.Match[str]) -> str:
        name = f"--{argument[1].replace('_', '-')}"
        inside_call = re.search(r"\w\([^()]*$", text[: argument.start()])
        if name not in options or inside_call:
            return argument[0]
        return name if argument[2] else f"{name} {argument[3] or '…'}"

    return _ARGUMENT.sub(option, text)


class DataError(UnskewError, ValueError):
    """Data that cannot be used as it is; the message says which rows and what to do."""


class SettingError(UnskewError, ValueError):
    """An argument with a value that is not allowed."""


class OutputError(UnskewError, OSError):
    """A file or folder that cannot be written; the message says why and what to do."""


class ForkError(UnskewError, RuntimeError):
    """A process that was forked when threads it needs were already running elsewhere."""


class UnknownName(SettingError):  # noqa: N818 - reads better where it is raised
    """A name that is not in a list of names; the message gives the nearest one."""


class DataWarning(UserWarning):
    """Something about the data that the reader of the numbers should know."""

    def __str__(self) -> str:
        return without_credentials(super().__str__())


@contextmanager
def quietly() -> Iterator[None]:
    """Do something without its data warnings: where notes of the result say the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def unknown_name(what: str, given: object, allowed: Iterable[object]) -> UnknownName:
    """Build the error for a name that is not one of `allowed`, with the nearest valid one."""
    names = [str(name) for name in allowed]

    def likeness(name: str) -> float:
        return difflib.SequenceMatcher(None, name.lower(), str(given).lower()).ratio()

    near = max(names, key=likeness, default="")  # of equals the first: names before aliases
    hint = f" Did you mean {near!r}?" if likeness(near) >= 0.5 else ""
    return UnknownName(f"unknown {what} {str(given)!r}.{hint} Allowed: {', '.join(names)}.")


def most_addresses() -> int | None:
    """Return how many bytes of addresses this process may use, where that is limited."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def address_limit() -> str:
    """Return a clause on the limit of addresses, where this process has one, else ''.

    Under `ulimit -v` libraries fail in ways that do not tell why: one "cannot be found", another
    takes a file for damaged.
    """
    limit = most_addresses()
    if limit is None:
        return ""
    return (
        f"; this process may use only {limit >> 20:,} MiB of addresses (ulimit -v), and "
        "libraries reserve many addresses that they never use: raise that limit, or remove it"
    )
