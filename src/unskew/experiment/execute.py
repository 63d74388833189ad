"""The one seam through which tasks run: here, or in processes side by side."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from unskew.errors import DataError, SettingError
from unskew.experiment.store import StoreError
from unskew.threads import available, die_with_parent, limit, processes

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What became of a task: its result, or the report of its failure."""

    task: Any
    result: Any = None
    failure: str | None = None


def execute(
    function: Callable[[T], Any], tasks: Iterable[T], workers: int = 1
) -> Iterator[Outcome]:
    """Do all tasks and yield their outcomes as they come; a failure stops none of the others.

    A store that cannot be read or written is no task's failure: it is raised at once.

    Parameters
    ----------
    function
        A function of a module: other processes must find it.
    tasks
        Small values that can be pickled.
    workers
        1 does them here, one after the other; more in as many processes (started anew, because
        forked ones hang after compiled kernels), which share the processors.
    """
    if workers < 1:
        raise SettingError(f"workers must be at least 1, got {workers}")
    work = list(tasks)
    if workers == 1 or len(work) < 2:
        for task in work:
            yield _attempt(function, task)
        return
    count = min(workers, len(work))
    context = multiprocessing.get_context("spawn")
    share = max(available() // count, 1)
    with processes(count, context, _begin, (share,)) as pool:
        with _uninterrupted():
            waiting = {pool.submit(_attempt, function, task): task for task in work}
        try:
            yield from _collect(pool, waiting)
        except KeyboardInterrupt:  # a store has no half-written results: no need to wait
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold interrupts back while processes start, for them for good: they are the parent's."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _collect(pool: Any, waiting: dict[Any, Any]) -> Iterator[Outcome]:
    from unskew.threads import BrokenPool, as_completed

    for future in as_completed(waiting):
        try:
            yield future.result()
        except BrokenPool:
            pool.shutdown(wait=False, cancel_futures=True)
            raise DataError(
                "a worker process was killed, perhaps for want of memory; what was finished is "
                "kept: run again, with fewer workers. (A script must start its run under "
                "if __name__ == '__main__':, because every worker imports it.)"
            ) from None
        except StoreError:
            raise
        except Exception:
            yield Outcome(waiting[future], failure=traceback.format_exc())


def _begin(threads: int) -> None:
    """Prepare a worker: its share of the processors; an interrupt is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    limit(threads)


def _attempt(function: Callable[[T], Any], task: T) -> Outcome:
    try:
        return Outcome(task, function(task))
    except StoreError:
        raise
    except Exception:
        return Outcome(task, failure=traceback.format_exc())
