"""The only place that starts threads. Work is cut into blocks whose results do not overlap.

BLAS runs on one thread: with several it gives other bits. Parallel work is our own blocks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from unskew.errors import SettingError

T = TypeVar("T")
R = TypeVar("R")


def available() -> int:
    """Return how many processors this process may use."""
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
