"""What operating systems do differently: locks on files, living processes, held-back interrupts.

Windows has no `fcntl`, no `resource`, no signal masks, and `os.kill(process, 0)` there does not ask
whether a process lives: it interrupts it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

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
