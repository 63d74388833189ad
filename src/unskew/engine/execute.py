"""The one seam through which tasks run: here, or in processes side by side.

`cluster.over` is its third side, with the same outcomes: on many machines.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from unskew.engine.files import temporary_folder
from unskew.engine.store import StoreError
from unskew.engine.threads import (
    BrokenPool,
    as_completed,
    available,
    die_with_parent,
    limit,
    processes,
    safe_path,
    usual_path,
)
from unskew.errors import DataError, SettingError, UnskewError, address_limit

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What became of a task: its result, or the report of its failure."""

    task: Any
    result: Any = None
    failure: str | None = None


Outcomes = Generator[Outcome, None, None]
"""Outcomes as they come; to close it is to give the other tasks up."""


def execute(function: Callable[[T], Any], tasks: Iterable[T], workers: int = 1) -> Outcomes:
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
            yield Outcome(task, *attempt(function, task))
        return
    with temporary_folder() as folder:
        # Workers read all tasks at once, so that what they share is sent once, and only numbers
        # go through the pool's pipe: a large task there blocks for ever when its reader dies.
        path = folder / "tasks"
        try:
            path.write_bytes(pickle.dumps((function, work)))
        except (pickle.PicklingError, AttributeError, TypeError) as problem:
            raise SettingError(f"other processes cannot run these tasks: {problem}") from None
        yield from _side_by_side(work, path, min(workers, len(work)))


def _side_by_side(work: Sequence[Any], path: Path, count: int) -> Iterator[Outcome]:
    context = multiprocessing.get_context("spawn")
    share = max(available() // count, 1)
    with processes(count, context, _begin, (share, str(path))) as pool:
        try:
            with safe_path(), _uninterrupted():
                waiting = {pool.submit(_attempt_number, n): task for n, task in enumerate(work)}
            for future in as_completed(waiting):
                yield Outcome(waiting[future], *future.result())
        except BrokenPool:
            raise DataError(
                "a worker process was killed, perhaps because memory ran out; finished work is "
                "kept: run again with fewer workers. (A script must start its run under if "
                "__name__ == '__main__':, because every worker imports it.)" + address_limit()
            ) from None
        except KeyboardInterrupt:  # nothing half-written is ever read: no need to wait
            for process in list(pool._processes.values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold interrupts back while processes start, for them for good: they are the parent's."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_here: list[Any] = []
_unready: list[UnskewError] = []
"""Why this worker has no tasks."""


def _begin(threads: int, path: str) -> None:
    """Prepare a worker: its share of the processors, its tasks; it ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    usual_path()
    die_with_parent()
    limit(threads)
    try:
        _here[:] = pickle.loads(Path(path).read_bytes())
    except OSError as problem:
        _unready.append(
            StoreError(
                f"a worker process cannot read its tasks: {path} ({problem.strerror}). Another "
                "process removed the folder at the start of the run: run again, or set TMPDIR "
                "to a folder that nothing else empties"
            )
        )
    except Exception as problem:  # of an import: what the tasks are made of is not to be had here
        _unready.append(DataError(f"a worker process cannot read its tasks: {problem!r}"))


def _attempt_number(number: int) -> tuple[Any, str | None]:
    if _unready:
        raise _unready[0]
    function, work = _here
    return attempt(function, work[number])


def attempt(function: Callable[[T], Any], task: T) -> tuple[Any, str | None]:
    """Do a task; return its result, or the report of its failure."""
    try:
        return function(task), None
    except StoreError:
        raise
    except UnskewError as problem:  # it says what is wrong: where it was raised says nothing more
        return None, str(problem)
    except Exception:
        return None, traceback.format_exc()
