"""Every error and warning that a user of unskew can cause."""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePath, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING, Any, Never, TypeGuard

if TYPE_CHECKING:
    from unskew_studies.run import study as study


WEB = ("http", "https")
"""Schemes of web servers."""
AZURE = ("az", "abfs", "abfss")
"""Schemes of Azure, where the name of a container may stand before an @."""

_ADDRESS = re.compile(r"\s*(?:[\w+.-]+::)*[a-z][\w+.-]+://", re.IGNORECASE)
# What pathlib makes of an address: of several slashes it keeps one.
_FLAT = re.compile(r"\s*((?:[\w+.-]+::)*[a-z][\w+.-]+):/+", re.IGNORECASE)
# An address in a text ends at a blank. Only a user and a password, which may hold a blank, stand
# around a colon that no port follows.
_IN_TEXT = re.compile(
    r"(?<![\w+.-])(?<![\w+.-]::)(?P<scheme>(?:[\w+.-]+::)*[\w+.-]+):/+"
    r"(?:[^\s/?#@:]*:(?!\d{0,5}(?!\w))[^\n]*@)?\S*"
)
_END_OF_CLAUSE = "'\"`)]}>,.;:!"
_AT = re.compile(r"@|%(?:25)*40")
_COLON = re.compile(r":|%(?:25)*3a", re.IGNORECASE)
_QUERY = re.compile(r"[?#]|%(?:25)*(?:3f|23)", re.IGNORECASE)
# Of `day-?.parquet` in a bucket no part can be a signature.
_PATTERN = re.compile(r"\?[?*/._-]*(?:parquet|pq)?")
# A host with its port, or the name of an access point of Amazon.
_HOST = re.compile(r"(?:\[[\da-f:.]*\]|[^:]*)(?::\d{0,5})?|arn(?::[\w-]*)+", re.IGNORECASE)
_HIDDEN = "…"


def is_address(source: object) -> TypeGuard[str]:
    """Tell whether text is an address, such as `s3://…`, and not a path."""
    return isinstance(source, str) and _ADDRESS.match(source) is not None


def scheme_of(address: str) -> str:
    """Return what an address begins with: `s3`, `https`."""
    return address.partition("://")[0].strip().lower()


def is_chained(address: str) -> bool:
    """Tell whether an address holds a chain of addresses, such as `simplecache::s3://…`."""
    return "::" in address


def shown_address(address: str) -> str:
    """Return an address without credentials: no user and password, no query and fragment.

    Examples
    --------
    >>> from unskew.errors import shown_address
    >>> shown_address("https://me:secret@host/ratings.csv?signature=12ab")
    'https://host/ratings.csv?…'
    >>> shown_address("simplecache::s3://key:secret@bucket/ratings.csv")
    'simplecache::s3://…'
    """
    scheme, remainder = scheme_of(address), address.partition("://")[2]
    return f"{scheme}://{_HIDDEN if is_chained(address) else _without_secrets(scheme, remainder)}"


def _without_secrets(scheme: str, remainder: str) -> str:
    """Return what follows the scheme, without credentials."""
    query = _QUERY.search(remainder)
    marks = list(_AT.finditer(remainder))
    if marks and _is_user_info(scheme, remainder[: marks[-1].start()]):
        if query and query.start() < marks[-1].start():  # of the password, or the query has an @
            return _HIDDEN
        return _without_query(scheme, remainder[marks[-1].end() :])
    authority = remainder.partition("/")[0]
    if not marks and not _HOST.fullmatch(authority.partition("?")[0]):
        return _HIDDEN  # what is left of a user and a password
    return _without_query(scheme, remainder)


def _is_user_info(scheme: str, text: str) -> bool:
    """Tell whether what stands before the last @ may be a user and a password."""
    if _COLON.search(text):
        return True
    if scheme in AZURE and re.fullmatch(r"[a-z0-9$-]+(@.*)?", text, re.DOTALL):
        return False  # the name of a container
    return "/" not in text or _AT.search(text.partition("/")[0]) is not None


def _without_query(scheme: str, remainder: str) -> str:
    query = _QUERY.search(remainder)
    if query is None or (scheme not in WEB and _PATTERN.fullmatch(remainder, query.start())):
        return remainder
    return f"{remainder[: query.start()]}?{_HIDDEN}"


def without_credentials(text: str) -> str:
    """Return a message in which no address holds credentials, nor what pathlib made of one."""
    return _IN_TEXT.sub(_shown_in_text, text) if ":/" in text else text


def _shown_in_text(match: re.Match[str]) -> str:
    address = match[0].rstrip(_END_OF_CLAUSE)
    scheme, remainder = match["scheme"].lower(), address[match.end("scheme") - match.start() + 1 :]
    slashes = "/" * (len(remainder) - len(remainder.lstrip("/")))
    remainder = remainder.removeprefix(slashes)
    visible = _HIDDEN if is_chained(address) else _without_secrets(scheme, remainder)
    return f"{scheme}:{slashes}{visible}{match[0].removeprefix(address)}"


def address_name(address: str) -> str:
    """Return the last part of an address: the name of the file."""
    plain = shown_address(address).removesuffix(f"?{_HIDDEN}").partition("://")[2].rstrip("/")
    return PurePosixPath(plain).name


def file_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file, which is given by its path or its address."""
    return address_name(path) if is_address(path) else PurePath(path).name


def unflattened(path: str | os.PathLike[str]) -> str:
    """Return the address that text or a path was, without credentials; '' if it was none."""
    text = os.fspath(path)
    flat = _FLAT.match(text)
    if flat is None or os.path.lexists(f"{flat[1]}:"):  # a folder may be named so
        return ""
    return shown_address(f"{flat[1]}://{text[flat.end() :]}")


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

    Examples
    --------
    `except us.UnskewError` catches what wrong data, wrong arguments and files that cannot be
    written lead to.

    >>> import unskew as us
    >>> try:
    ...     us.evaluate("no-such-file.csv", {"mine": {1: [7]}}, "P@10")
    ... except us.UnskewError as error:
    ...     print(type(error).__name__)
    DataError
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
    """Data that cannot be used as it is; the message says which rows and what to do.

    Examples
    --------
    It is a `ValueError` too.

    >>> import unskew as us
    >>> try:
    ...     us.read_ratings({"user": [1, 1], "item": [7, 7], "rating": [5, 4]})
    ... except us.DataError as error:
    ...     print(str(error).partition(";")[0])
    arrays: 1 user-item pair occurs more than once, the first: user 1, item 7
    """


class SettingError(UnskewError, ValueError):
    """An argument with a value that is not allowed.

    Examples
    --------
    It is a `ValueError` too, and `UnknownName` is one of its kind.

    >>> import unskew as us
    >>> try:
    ...     us.splits.Random(test=1.5)
    ... except us.SettingError as error:
    ...     print(error)
    test must be a share between 0 and 1, such as 0.2; got 1.5
    """


class OutputError(UnskewError, OSError):
    """A file or folder that cannot be written; the message says why and what to do."""


class ForkError(UnskewError, RuntimeError):
    """A process that was forked when threads it needs were already running elsewhere."""


class UnknownName(SettingError):  # noqa: N818 - reads better where it is raised
    """A name that is not in a list of names; the message gives the nearest one.

    Examples
    --------
    >>> import unskew as us
    >>> try:
    ...     us.Metric.parse("nDGC@10")
    ... except us.UnknownName as error:
    ...     print(str(error).partition(" Allowed")[0])
    unknown metric 'nDGC'. Did you mean 'nDCG'?
    """


class DataWarning(UserWarning):
    """Something about the data that the reader of the numbers should know.

    Examples
    --------
    A program may catch or silence it; here the notes of the scores say the same.

    >>> import warnings
    >>> import unskew as us
    >>> test = {"user": [1, 1], "item": [7, 8], "rating": [5, 2]}
    >>> train = {"user": [1, 1], "item": [9, 10], "rating": [4, 4]}
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", us.DataWarning)
    ...     scores = us.evaluate(test, {"mine": {1: [9, 7]}}, "P@2", liked=4, train=train)
    >>> print(caught[0].message)
    mine: 1 recommended item is in the user's training ratings
    """

    def __str__(self) -> str:
        return without_credentials(super().__str__())


@contextmanager
def quietly() -> Iterator[None]:
    """Do something without its data warnings: where notes of the result say the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def unknown_name(what: str, name: object, allowed: Iterable[object]) -> UnknownName:
    """Build the error for a name that is not one of `allowed`, with the nearest valid one."""
    names = [str(candidate) for candidate in allowed]

    def likeness(candidate: str) -> float:
        return difflib.SequenceMatcher(None, candidate.lower(), str(name).lower()).ratio()

    near = max(names, key=likeness, default="")  # of equals the first: names before aliases
    hint = f" Did you mean {near!r}?" if likeness(near) >= 0.5 else ""
    return UnknownName(f"unknown {what} {str(name)!r}.{hint} Allowed: {', '.join(names)}.")


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


STUDIES = "unskew_studies"
PACKAGES = ("unskew", STUDIES)
"""Whose classes are ours, and not a user's."""


def import_studies(module: str, purpose: str) -> ModuleType:
    """Return a module of the studies; raise an error where they are not installed.

    Parameters
    ----------
    module
        Its name inside the package, such as `librec`.
    purpose
        What needs it, as the error names it.
    """
    if find_spec(STUDIES) is None:
        raise _missing(purpose)
    return import_module(f"{STUDIES}.{module}")


def __getattr__(name: str) -> Any:
    """Load `study` at its first use: it imports nearly all of unskew."""
    if name != "study":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _study_without_package if find_spec(STUDIES) is None else import_studies("run", "").study


def _study_without_package(*_arguments: object, **_settings: object) -> Never:
    """Raise an error: `study` is part of the package unskew-studies."""
    raise _missing("study")


def _missing(purpose: str) -> UnskewError:
    return UnskewError(
        f"{purpose} needs the package unskew-studies: pip install unskew-studies (from a clone: "
        "pip install ./studies)"
    )
