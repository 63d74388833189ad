"""The only place that starts threads and processes. Blocks of work have results of their own.

BLAS runs on one thread: with several it gives other bits. Parallel work is our own blocks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool as BrokenPool
from contextlib import contextmanager
from typing import Any, TypeVar

from unskew.errors import SettingError

__all__ = ["BrokenPool", "as_completed", "available", "die_with_parent", "limit", "map_blocks",
           "one_blas_thread", "processes", "python_beside", "resolve"]  # fmt: skip

T = TypeVar("T")
R = TypeVar("R")


def processes(
    count: int, context: Any, begin: Callable[..., None], arguments: tuple[Any, ...]
) -> ProcessPoolExecutor:
    """Return a pool of processes, each of which first calls `begin`."""
    return ProcessPoolExecutor(count, mp_context=context, initializer=begin, initargs=arguments)


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
        other = subprocess.Popen(
            [sys.executable, "-m", module], stderr=subprocess.DEVNULL, **silent
        )
    except OSError:  # nothing depends on it
        yield
        return
    try:
        yield
    finally:
        other.kill()
        other.wait()


_most: list[int] = []


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


def map_blocks(
    function: Callable[[T], R], blocks: Iterable[T], threads: int | None = None, size: int = SMALL
) -> list[R]:
    """Apply `function` to every block, on several threads, and return the results in order.

    `size` is how many values there are in all; few are not worth a thread. Inside a block no
    further threads are started.
    """
    work = list(blocks)
    workers = min(resolve(threads), len(work)) if size >= SMALL else 1
    if workers <= 1 or getattr(_here, "busy", False):
        return [function(block) for block in work]

    def start() -> None:
        _here.busy = True

    with ThreadPoolExecutor(workers, initializer=start) as pool:
        return list(pool.map(function, work))
