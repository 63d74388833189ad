"""Files on object stores and web servers, by their addresses, such as `s3://bucket/ratings.csv`.

fsspec reads them, with a package for each kind of store, which takes credentials from the
environment. Only addresses of listed kinds are opened, without chains. An address is shown, and
kept, without the credentials that stand in it.
"""

from __future__ import annotations

import glob
import io
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from unskew.checks import check_path
from unskew.errors import (
    AZURE,
    WEB,
    DataError,
    SettingError,
    address_name,
    is_chained,
    scheme_of,
    shown_address,
    unflattened,
    without_credentials,
)

_EXTRA = "'unskew[remote]'"
_AMAZON = (
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; for a public bucket "
    "FSSPEC_S3_ANON=true"
)
_GOOGLE = "GOOGLE_APPLICATION_CREDENTIALS; for a public bucket FSSPEC_GS_TOKEN=anon"
_AZURE = "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or _SAS_TOKEN"


# By scheme: the package that reads a kind of object store, and where that looks for credentials.
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), _EXTRA),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(AZURE, "adlfs"),
}
_VARIABLES = {
    **dict.fromkeys(("s3", "s3a"), _AMAZON),
    **dict.fromkeys(("gs", "gcs"), _GOOGLE),
    **dict.fromkeys(AZURE, _AZURE),
}
SCHEMES = (*_PACKAGES, *WEB)
"""The addresses that are opened."""
# Keys of Amazon hold slashes, which not everybody escapes. Of Azure a container stands before an @,
# without a colon. No store takes a signature from the address.
_CREDENTIALS = re.compile(r"[^/@]*:.*@|[^?]*\?[\w.-]+=", re.DOTALL)
_BLOCK = 1 << 25

# Errors of the packages, by their names: none of these packages need be installed.
_NO_CREDENTIALS = {
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "ProfileNotFound",
    "DefaultCredentialsError",
    "RefreshError",
    "ClientAuthenticationError",
}
_NOT_REACHED = {
    "EndpointConnectionError",
    "ConnectTimeoutError",
    "ClientConnectorError",
    "ServiceRequestError",
    "ConnectionRefusedError",
    "gaierror",
}
_BROKEN_OFF = {
    "ClientPayloadError",
    "ClientOSError",
    "ServerDisconnectedError",
    "ResponseStreamingError",
    "ReadTimeoutError",
    "ConnectionClosedError",
    "ConnectionError",
    "TimeoutError",
    "IncompleteRead",
    "IncompleteReadError",
    "ServiceResponseError",
}


# Addresses


def check_address(address: str) -> None:
    """Refuse an address that is not opened, before anything is loaded that might open it.

    fsspec knows many more kinds of addresses. Some of them run code, or read files of this machine;
    in a chain each can be reached through an innocent one.
    """
    shown, scheme = shown_address(address), scheme_of(address)
    allowed = ", ".join(f"{name}://" for name in SCHEMES)
    if is_chained(address):
        raise DataError(
            f"{shown}: an address with '::' is not opened, because '::' chains several addresses: "
            f"give the address of the file itself ({allowed})"
        )
    if scheme not in SCHEMES:
        raise DataError(
            f"{shown}: {scheme}:// addresses are not opened; allowed are {allowed}. A file of this "
            f"machine is given by its path"
        )
    if not address.lower().startswith(scheme):
        raise DataError(f"{shown}: remove the blank before the address")
    if scheme in _VARIABLES and _CREDENTIALS.match(address.partition("://")[2]):
        raise DataError(
            f"{shown}: credentials do not belong into an address: put them into the environment "
            f"({_VARIABLES[scheme]})"
        )


def check_local(what: str, path: str | os.PathLike[str]) -> None:
    """Reject an address where a file or folder of a file system is needed, and what is no path.

    Parameters
    ----------
    what
        The argument or option.
    path
        What was given, text or a path.
    """
    check_path(what, path)
    address = unflattened(path)
    if address:
        raise SettingError(
            f"{what} {address}: this needs a file system; from addresses only ratings, judgments "
            f"and lists are read. Name a file or folder of this machine, of a shared disk or of a "
            f"bucket that is mounted"
        )


def restored(path: os.PathLike[str]) -> str:
    """Return a path as text; reject a path that was an address before pathlib changed it."""
    address = unflattened(path)
    if address:
        raise DataError(f"{address}: give an address as text: a Path keeps only one of its slashes")
    return os.fspath(path)


# Files


@dataclass(frozen=True)
class RemoteFile:
    """A file at an address."""

    system: Any = field(repr=False)
    """The file system of fsspec that reads it."""
    path: str = field(repr=False)
    """As that file system names it; of a web address with its credentials."""
    shown: str
    """The address, without credentials."""
    size: int | None
    """Bytes; None where the server does not say."""
    version: str = ""
    """What differs when the file is another one."""

    @property
    def name(self) -> str:
        """The last part of the address."""
        return address_name(self.shown)

    @property
    def is_private(self) -> bool:
        """Whether its address holds what is not shown."""
        return is_web(self.shown) and self.path != self.shown

    def read(self) -> bytes:
        """Read all of it into memory."""
        out = io.BytesIO()
        self.copy_to(out)
        return out.getvalue()

    def copy_to(self, out: BinaryIO) -> None:
        """Write all of it to an open file, block by block; a part of it is an error."""
        count = 0
        with reaching(self.shown, is_private=self.is_private):
            settings = {"block_size": 0} if self.shown.startswith("http") else {}
            with self.system.open(self.path, "rb", cache_type="none", **settings) as source:
                while block := source.read(_BLOCK):
                    out.write(block)
                    count += len(block)
        if self.size is not None and count != self.size:
            raise DataError(
                f"{self.shown}: the connection broke off: {count:,} of {self.size:,} bytes came. "
                f"Run again"
            )


def open_address(address: str) -> RemoteFile:
    """Look at the file of an address."""
    shown = shown_address(address)
    with reaching(shown, is_private=shown != address):
        system, path = _system(address)
        facts = system.info(path)
        if facts.get("type") == "directory":
            raise IsADirectoryError
        return _file(system, path, shown, facts)


def find_files(address: str, is_meant: Callable[[str], bool]) -> list[RemoteFile]:
    """Return the file of an address, or those in its folder or of its pattern, by their names.

    Parameters
    ----------
    address
        Of a file, a folder, or a pattern such as `s3://bucket/day-*.parquet`.
    is_meant
        Tells by its path which file of a folder is meant.
    """
    shown = shown_address(address)
    with reaching(shown, is_private=shown != address):
        system, path = _system(address)
        if is_web(address):
            return [_file(system, path, shown, system.info(path))]
        system.invalidate_cache()
        if is_pattern(address):
            inside = system.glob(path, detail=True)
            return [
                _of(system, name, entry)
                for name, entry in sorted(inside.items())
                if _is_file(entry)
            ]
        facts = system.info(path)
        if _is_file(facts):
            return [_file(system, path, shown, facts)]
        inside = system.find(path, detail=True)
        return [
            _of(system, name, entry)
            for name, entry in sorted(inside.items())
            if _is_file(entry) and is_meant(name.removeprefix(path).lstrip("/"))
        ]


def is_pattern(address: str) -> bool:
    """Tell whether an address stands for several files; a web address never does."""
    return not is_web(address) and glob.has_magic(address)


def is_web(address: str) -> bool:
    """Tell whether an address is one of the web, which has files but no folders and patterns."""
    return scheme_of(address) in WEB


def _is_file(facts: dict[str, Any]) -> bool:
    return facts.get("type") == "file"


def _of(system: Any, path: str, facts: dict[str, Any]) -> RemoteFile:
    return _file(system, path, shown_address(system.unstrip_protocol(path)), facts)


def _file(system: Any, path: str, shown: str, facts: dict[str, Any]) -> RemoteFile:
    times = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "updated", "mtime")
    version = [str(facts[key]) for key in (*times, "created") if facts.get(key)]
    return RemoteFile(system, path, shown, facts.get("size"), " ".join(version))


def _system(address: str) -> tuple[Any, str]:
    """Return what reads an address, and the path that it knows it by."""
    check_address(address)
    scheme, shown = scheme_of(address), shown_address(address)
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise DataError(f"{shown}: to read it, pip install {_EXTRA}") from None
    try:
        system, path = url_to_fs(f"{scheme}://{address.partition('://')[2]}")
    except ImportError:
        package = _PACKAGES.get(scheme, _EXTRA)
        raise DataError(f"{shown}: to read it, pip install {package}") from None
    return system, str(path)


# What can go wrong


@contextmanager
def reaching(shown: str, *, is_private: bool = False) -> Iterator[None]:
    """Turn whatever goes wrong at an address into a `DataError` with a remedy.

    Parameters
    ----------
    shown
        The address without credentials.
    is_private
        Whether the address holds more: an error of a package may repeat any part of it.
    """
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # it prints what it raises as well
    try:
        yield
    except DataError:
        raise
    except IsADirectoryError:
        raise DataError(
            f"{shown}: is a folder; give a file, or a pattern such as {shown.rstrip('/')}/*.parquet"
        ) from None
    except Exception as problem:
        reason = _explained(problem, scheme_of(shown), is_private)
        raise DataError(f"{shown}: {reason}") from None


def _explained(problem: BaseException, scheme: str, is_private: bool) -> str:
    chain = _with_causes(problem)
    names = {kind.__name__ for error in chain for kind in type(error).__mro__}
    status = {vars(error).get("status", vars(error).get("code")) for error in chain}
    text = without_credentials(str(problem).partition("\n")[0])
    variables = f" ({_VARIABLES[scheme]})" if scheme in _VARIABLES else ""
    if names & _NO_CREDENTIALS:
        return f"there are no credentials for it: put them into the environment{variables}"
    if names & {"PermissionError"} or status & {401, 403}:
        return f"access is denied: check the credentials{variables}"
    if names & _NOT_REACHED:
        return "the server cannot be reached: check the network, and the host or endpoint in use"
    if names & {"FileNotFoundError"} or 404 in status:
        if "bucket does not exist" in text:
            return "there is no such bucket: check its name, and the region and endpoint in use"
        return "no such file: check the address"
    if names & _BROKEN_OFF:
        return f"the connection broke off ({type(problem).__name__}): run again"
    detail = "" if is_private else f": {text}"
    return f"cannot be read ({type(problem).__name__}{detail})"


def _with_causes(problem: BaseException | None) -> list[BaseException]:
    """Return an error, and those that it came from."""
    chain = []
    while problem is not None:
        chain.append(problem)
        problem = problem.__cause__
    return chain
