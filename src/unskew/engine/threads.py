"""The only place that starts threads. Blocks of work have results of their own.

BLAS runs on one thread: with several it gives other bits. Parallel work is our own blocks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from unskew.errors import ForkError, SettingError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = [
    "Lock",
    "available",
    "check_fork",
    "die_with_parent",
    "every",
    "limit",
    "map_blocks",
    "one_blas_thread",
    "python_beside",
    "resolve",
    "safe_path",
    "usual_path",
]

T = TypeVar("T")
R = TypeVar("R")


class _Fork:
    """Whether this process was forked from one in which polars had started its threads."""

    polars_ran = False
    is_stranded = False

    @classmethod
    def before(cls) -> None:
        """Look for the threads of polars, by the names that Linux knows them by."""
        cls.polars_ran = False
        for thread in Path("/proc/self/task").glob("*/comm"):
            with suppress(OSError):  # it has just ended, which those of polars never do
                cls.polars_ran |= bool(re.fullmatch(r"polars-\d+\s*", thread.read_text()))

    @classmethod
    def in_child(cls) -> None:
        cls.is_stranded = cls.is_stranded or cls.polars_ran


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(before=_Fork.before, after_in_child=_Fork.in_child)


def check_fork() -> None:
    """Refuse to work in a forked process that would wait for ever for the threads of polars.

    A fork copies one thread only, and what polars hands to the others is never done.
    """
    if _Fork.is_stranded:
        raise ForkError(
            "this process was forked after polars started its threads; the threads do not exist "
            "here, and unskew would wait for them forever. Start processes with "
            "multiprocessing.get_context('spawn'), or fork before unskew is first used; run(…, "
            "workers=4) starts its own"
        )


_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """Start processes meanwhile that do not look for modules in the working folder.

    Python puts the folder first for `-m` and `-c`, and multiprocessing starts its processes with
    `-c`: a `select.py` there would be run instead of the one of Python.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_SAFE_PATH, None)
        else:
            os.environ[_SAFE_PATH] = before


def usual_path() -> None:
    """In a process started under `safe_path`: let what it starts itself look as usual.

    Not where the first process was started with a safe path: then so is every other, by `-P`.
    """
    if not {"-P", "-I"} & set(sys.orig_argv):
        os.environ.pop(_SAFE_PATH, None)


def die_with_parent() -> None:
    """End this process when the one that started it has ended, even if that was killed."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def python_beside(module: str) -> Iterator[None]:
    """Run a module in a process of its own meanwhile; it is ended with the block."""
    silent: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    try:
        # -P: no module of the working folder may take the place of ours, or of Python's.
        other = subprocess.Popen(
            [sys.executable, "-P", "-m", module], stderr=subprocess.DEVNULL, **silent
        )
    except OSError:  # nothing depends on it
        yield
        return
    try:
        yield
    finally:
        other.kill()
        other.wait()


@contextmanager
def every(seconds: float, function: Callable[[], None]) -> Iterator[None]:
    """Call a function again and again meanwhile, in a thread; it stops where nobody reads it."""
    over = threading.Event()

    def run() -> None:
        with suppress(OSError, ValueError):  # of standard error, which may be closed
            while not over.wait(seconds):
                function()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=10 * seconds)


_most: list[int] = []


def new_lock() -> Lock:
    """Return a lock, for what several threads may report to."""
    return Lock()


def limit(threads: int) -> None:
    """Let this process use no more threads: workers side by side must not fight."""
    _most[:] = [max(threads, 1)]


def available() -> int:
    """Return how many processors this process may use."""
    if _most:
        return _most[0]
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve(threads: int | None) -> int:
    """Return the number of threads to use: all processors unless said otherwise."""
    check_fork()
    if threads is None:
        return available()
    if threads < 1:
        raise SettingError(f"threads must be at least 1, got {threads}")
    return threads


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread: with several, products have other bits."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


_controllers: list[Any] = []


def _blas() -> Any:
    """Return what controls BLAS; to look for its libraries takes a while, so only once."""
    if not _controllers:
        from threadpoolctl import ThreadpoolController

        _controllers.append(ThreadpoolController())
    return _controllers[0]


_here = threading.local()

SMALL = 1 << 16
"""Values below which starting threads costs more than it saves."""


@contextmanager
def exactly(threads: int) -> Iterator[None]:
    """Use this many threads, for little work too: to check that results do not depend on it."""
    global SMALL
    before = SMALL, list(_most)
    SMALL, _most[:] = 0, [threads]
    try:
        yield
    finally:
        SMALL, _most[:] = before


def map_blocks(
    function: Callable[[T], R], blocks: Iterable[T], threads: int | None = None, size: int = SMALL
) -> list[R]:
    """Apply `function` to every block, on several threads, and return the results in order.

    `size` is how many values there are in all; few are not worth a thread. Inside a block no
    further threads are started.
    """
    check_fork()
    work = list(blocks)
    workers = min(resolve(threads), len(work)) if size >= SMALL else 1
    if workers <= 1 or getattr(_here, "busy", False):
        return [function(block) for block in work]
    from concurrent.futures import wait  # small commands need none

    futures = [_pool(workers).submit(function, block) for block in work]
    try:
        return [future.result() for future in futures]
    finally:  # where one fails, the others do not go on behind the caller's back
        for future in futures:
            future.cancel()
        wait(futures)


_pools: dict[int, ThreadPoolExecutor] = {}
"""Threads that wait for the next blocks, by their number: to start them anew takes longer."""

if hasattr(os, "register_at_fork"):  # a fork copies no thread
    os.register_at_fork(after_in_child=_pools.clear)


def _pool(workers: int) -> ThreadPoolExecutor:
    if workers not in _pools:
        from concurrent.futures import ThreadPoolExecutor

        _pools.setdefault(workers, ThreadPoolExecutor(workers, "blocks", _begin))
    return _pools[workers]


def _begin() -> None:
    """Let a thread start no others."""
    _here.busy = True
