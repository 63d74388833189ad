"""What operating systems do differently: locks and owners of files, processes, interrupts.

Windows has no `fcntl`, no `resource`, no numbers of owners, no signal masks, and
`os.kill(process, 0)` there does not ask whether a process lives: it interrupts it.
"""

from __future__ import annotations

import errno
import os
import platform
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any, BinaryIO

from unskew.errors import UnskewError, address_limit, most_addresses

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def lock(file: IO[Any], *, wait: bool) -> None:
    """Lock a file for this process until it is closed; OSError without `wait` if another has it."""
    if sys.platform == "win32":
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
"""Opening a pipe does not wait for its other end, and a link is not followed."""


def open_regular(path: Path, flags: int = os.O_RDONLY, *, of_user: bool = False) -> BinaryIO:
    """Open a regular file without waiting; OSError for a pipe, a device, a folder or a link.

    With `of_user` also for a file that another user owns.
    """
    number = os.open(path, flags | _AT_ONCE | getattr(os, "O_BINARY", 0), 0o666)
    try:
        kind = os.fstat(number)
        if not stat.S_ISREG(kind.st_mode):
            raise OSError("it is no regular file")  # the system has no number for that
        if of_user and not _is_of_user(kind):
            raise PermissionError(errno.EACCES, "another user owns this file", str(path))
        return os.fdopen(number, "rb" if flags == os.O_RDONLY else "r+b")
    except BaseException:
        os.close(number)
        raise


def is_private(folder: Path) -> bool:
    """Tell whether this is a folder, not a link to one, that only this user may look into."""
    try:
        kind = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(kind.st_mode):
        return False
    is_closed = sys.platform == "win32" or not stat.S_IMODE(kind.st_mode) & 0o077
    return is_closed and _is_of_user(kind)


def _is_of_user(kind: os.stat_result) -> bool:
    return sys.platform == "win32" or kind.st_uid == os.geteuid()


def is_running(process: int) -> bool | None:
    """Tell whether a process of this machine lives; None where that cannot be asked."""
    if sys.platform == "win32":
        return None
    try:
        os.kill(process, 0)
    except PermissionError:  # another user's
        return True
    except ProcessLookupError:
        return False
    return True


def errno_from(number: int) -> int | None:
    """Return the number of Python for an error that the system numbers itself: so does Windows."""
    if sys.platform == "win32":
        return OSError(0, "", None, number).errno
    return number


def node() -> str:
    """Return the name of this machine."""
    import platform  # at its first use: every command starts with this module

    return platform.node()


LEAST_ADDRESSES = 640 << 20
"""With fewer bytes of addresses, numpy, polars and numba cannot be counted on to load."""
AMPLE_ADDRESSES = 2 << 30
"""From here on, and as many more as threads reserve, what is reserved does not matter."""
THREAD_ADDRESSES = 128 << 20
"""Of each processor: a thread of polars and one of ours, each with an arena of 64 MiB."""
_ARENAS = -8
"""The number by which glibc knows the setting MALLOC_ARENA_MAX."""


def spare_addresses() -> None:
    """Under a limit of addresses, keep libraries from reserving what they never use.

    Each thread reserves an arena, and polars starts one thread per processor. Where a thread cannot
    start, polars may wait for it without end. Called before anything large is imported; processes
    that are started later take the settings from the environment.
    """
    limit = most_addresses()
    ample = AMPLE_ADDRESSES + THREAD_ADDRESSES * (os.cpu_count() or 1)
    if limit is None or limit >= ample:
        return
    if limit < LEAST_ADDRESSES:
        raise UnskewError(f"{LEAST_ADDRESSES >> 20:,} MiB are needed to start{address_limit()}")
    for variable in ("MALLOC_ARENA_MAX", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(variable, "1")
    import ctypes

    with suppress(AttributeError, OSError, ValueError):  # no glibc, or a variable of no number
        ctypes.CDLL(None).mallopt(_ARENAS, int(os.environ["MALLOC_ARENA_MAX"]))


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Hold interrupts back meanwhile, where the system can; also for processes that start."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_interrupts_end_waits() -> None:
    """Let Ctrl-C end what waits for ever, as Python does before polars is imported.

    Polars has the system go on with a wait after its own handler of interrupts: Python then hears
    of Ctrl-C only when something else ends the wait (pola-rs/polars, issue 21739).
    """
    if hasattr(signal, "siginterrupt"):  # not on Windows
        signal.siginterrupt(signal.SIGINT, True)


_STANDS_ON = ("numpy", "polars", "numba")


def versions() -> dict[str, str]:
    """Return the versions of unskew, Python and what it stands on."""
    # Of the code that runs: metadata may be of another installation, where PYTHONPATH names it.
    ours = sys.modules[__name__.partition(".")[0]].__version__
    result = {"unskew": ours, "python": platform.python_version()}
    return {**result, **{name: _version(name) for name in _STANDS_ON}}


def show_versions() -> None:
    """Print versions and machine, for a bug report.

    Examples
    --------
    >>> import unskew as us
    >>> us.show_versions()  # doctest: +ELLIPSIS
    unskew ...
    python ...
    numpy ...
    """
    facts = {**versions(), "system": platform.platform(), "machine": platform.machine()}
    for name in ("narwhals", "pandas", "pyarrow", "duckdb"):
        facts[name] = _version(name)
    for name, version in facts.items():
        print(f"{name:8} {version}")


@cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
