"""Every error and warning that a user of unskew can cause."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class UnskewError(Exception):
    """Base of all errors raised on purpose by unskew."""


class DataError(UnskewError, ValueError):
    """Data that cannot be used as it is; the message says which rows and what to do."""


class SettingError(UnskewError, ValueError):
    """An argument with a value that is not allowed."""


class OutputError(UnskewError, OSError):
    """A file or folder that cannot be written; the message says why and what to do."""

    def __str__(self) -> str:  # OSError would show its number instead
        return str(self.args[0])


class ForkError(UnskewError, RuntimeError):
    """A process that was forked when threads it needs were already running elsewhere."""


class UnknownName(SettingError):  # noqa: N818 - reads better where it is raised
    """A name that is not in a list of names; the message gives the nearest one."""


class DataWarning(UserWarning):
    """Something about the data that the reader of the numbers should know."""


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


def choose(what: str, given: str, allowed: Iterable[str]) -> str:
    """Return `given` when it is one of `allowed`, else raise `UnknownName`."""
    names = tuple(allowed)
    if given not in names:
        raise unknown_name(what, given, names)
    return given
