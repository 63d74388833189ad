"""Addresses such as `s3://bucket/ratings.csv`: which text is one, and what of it may be shown.

Where an address can be read in two ways, what is secret in either of them is left out: a password
may hold any character, and a path may hold `@`.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePath, PurePosixPath
from typing import TypeGuard

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
    >>> from unskew.addresses import shown_address
    >>> shown_address("https://me:secret@host/ratings.csv?signature=12ab")
    'https://host/ratings.csv?…'
    >>> shown_address("simplecache::s3://key:secret@bucket/ratings.csv")
    'simplecache::s3://…'
    """
    scheme, rest = scheme_of(address), address.partition("://")[2]
    return f"{scheme}://{_HIDDEN if is_chained(address) else _without_secrets(scheme, rest)}"


def _without_secrets(scheme: str, rest: str) -> str:
    """Return what follows the scheme, without credentials."""
    query = _QUERY.search(rest)
    marks = list(_AT.finditer(rest))
    if marks and _is_user_info(scheme, rest[: marks[-1].start()]):
        if query and query.start() < marks[-1].start():  # of the password, or the query has an @
            return _HIDDEN
        return _without_query(scheme, rest[marks[-1].end() :])
    authority = rest.partition("/")[0]
    if not marks and not _HOST.fullmatch(authority.partition("?")[0]):
        return _HIDDEN  # what is left of a user and a password
    return _without_query(scheme, rest)


def _is_user_info(scheme: str, text: str) -> bool:
    """Tell whether what stands before the last @ may be a user and a password."""
    if _COLON.search(text):
        return True
    if scheme in AZURE and re.fullmatch(r"[a-z0-9$-]+(@.*)?", text, re.DOTALL):
        return False  # the name of a container
    return "/" not in text or _AT.search(text.partition("/")[0]) is not None


def _without_query(scheme: str, rest: str) -> str:
    query = _QUERY.search(rest)
    if query is None or (scheme not in WEB and _PATTERN.fullmatch(rest, query.start())):
        return rest
    return f"{rest[: query.start()]}?{_HIDDEN}"


def without_credentials(text: str) -> str:
    """Return a message in which no address holds credentials, nor what pathlib made of one."""
    return _IN_TEXT.sub(_shown_in_text, text) if ":/" in text else text


def _shown_in_text(match: re.Match[str]) -> str:
    whole = match[0].rstrip(_END_OF_CLAUSE)
    scheme, rest = match["scheme"].lower(), whole[match.end("scheme") - match.start() + 1 :]
    slashes = "/" * (len(rest) - len(rest.lstrip("/")))
    rest = rest.removeprefix(slashes)
    hidden = _HIDDEN if is_chained(whole) else _without_secrets(scheme, rest)
    return f"{scheme}:{slashes}{hidden}{match[0].removeprefix(whole)}"


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
