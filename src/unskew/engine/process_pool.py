"""Processes side by side on this machine, which stay from one set of tasks to the next."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool as BrokenPool
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from unskew.engine.files import temporary_folder
from unskew.engine.store import StoreError
from unskew.engine.system import (
    is_private,
    let_interrupts_end_waits,
    open_regular,
    without_interrupts,
)
from unskew.engine.threads import (
    available,
    die_with_parent,
    limit,
    safe_path,
    usual_path,
)
from unskew.errors import DataError, DataWarning, SettingError, UnskewError, address_limit

T = TypeVar("T")


class WorkersError(UnskewError):
    """Workers that cannot be used, or that were lost: no task is to blame."""


@dataclass(frozen=True)
class Outcome:
    """What became of a task: its result, or the report of its failure."""

    task: Any
    result: Any = None
    failure: str | None = None


Outcomes = Generator[Outcome, None, None]
"""Outcomes as they come; to close it is to give the other tasks up."""


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


RESTARTS = 3
"""How often processes are started anew after one of them was killed, for one set of tasks."""


class KilledError(WorkersError, DataError):
    """Processes that were killed again and again."""


@dataclass(eq=False)
class ProcessPool:
    """Processes that do tasks side by side; used in a `with` statement.

    They are started anew, because forked ones hang after compiled kernels, at the first tasks,
    and share the processors.
    """

    count: int
    _pool: ProcessPoolExecutor | None = None
    _began: bool = False
    """Whether some process of those that ended last had begun."""
    _folder: Path | None = None
    """Where each process leaves a file when it has begun."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(at_once=kind is KeyboardInterrupt)

    def do(self, function: Callable[[T], Any], work: Sequence[T]) -> Outcomes:
        """Do all tasks; those that a killed process took with it are done again."""
        let_interrupts_end_waits()
        with temporary_folder() as folder:
            # Workers read all tasks at once, so that what they share is sent once, and only
            # numbers go through the pool's pipe: a large task there blocks for ever when its
            # reader dies.
            path = folder / "tasks"
            try:
                path.write_bytes(pickle.dumps((function, list(work))))
            except (pickle.PicklingError, AttributeError, TypeError) as problem:
                raise SettingError(f"other processes cannot run these tasks: {problem}") from None
            left = dict(enumerate(work))
            for restart in range(RESTARTS + 1):
                # A process that is killed once may be killed by anybody; one that is killed again
                # is likely to lack memory.
                most = max(self.count >> max(restart - 1, 0), 1)
                try:
                    with closing(self._some(path, list(left), most)) as results:
                        for number, result in results:
                            yield Outcome(left.pop(number), *result)
                    return
                except BrokenPool:
                    self._note_break(last=restart == RESTARTS, lost=len(left))

    def _some(
        self, path: Path, numbers: Sequence[int], most: int
    ) -> Generator[tuple[int, tuple[Any, str | None]], None, None]:
        """Do the tasks of these numbers; give what became of each."""
        share = max(available() // min(most, len(numbers)), 1)
        whole = False
        try:
            # Processes that start keep interrupts away for good: they are the parent's.
            with safe_path(), without_interrupts():
                pool = self._started(most)
                waiting = {
                    pool.submit(_attempt_number, number, str(path), share): number
                    for number in numbers
                }
            for future in as_completed(waiting):
                yield waiting[future], future.result()
            whole = True
        except (KeyboardInterrupt, GeneratorExit) as reason:
            # Who interrupts does not wait: nothing half-written is ever read.
            self.end(at_once=_is_interrupt(reason))
            raise
        finally:
            if not whole:
                self.end()

    def _started(self, count: int) -> ProcessPoolExecutor:
        """Return the processes; they begin with their first task."""
        if self._pool is None:
            self._folder = self._stack.enter_context(temporary_folder())
            with safe_path():  # multiprocessing has a process of its own that starts here
                self._pool = ProcessPoolExecutor(
                    count,
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_begin,
                    initargs=(str(self._folder),),
                )
        return self._pool

    def _note_break(self, last: bool, lost: int) -> None:
        """Say that a process was killed; raise where that will not get better."""
        if last or not self._began:
            raise KilledError(
                "a worker process was killed, perhaps because memory ran out; finished work is "
                "kept: run again with fewer workers. (A script must start its run under if "
                "__name__ == '__main__':, because every worker imports it.)" + address_limit()
            ) from None
        warnings.warn(
            f"a worker process was killed, perhaps because memory ran out; tasks that were not "
            f"finished ({lost:,}) are done again in new processes",
            DataWarning,
            stacklevel=2,
        )

    def end(self, at_once: bool = False) -> None:
        """End all processes: when they have done what they are at, or at once."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        processes = list((pool._processes or {}).values())
        manager: Any = pool._executor_manager_thread
        # Waiting is for processes: who is interrupted in the wait of `shutdown` for its thread
        # takes that thread for ended, and closes what it reads.
        pool.shutdown(wait=False, cancel_futures=True)
        try:
            if at_once:
                _terminate(processes)
            for process in processes:
                process.join()
        except KeyboardInterrupt:  # while it waits for what processes are doing
            _terminate(processes)
            raise
        finally:
            if manager is not None:
                manager.join()
            self._began = self._folder is not None and any(self._folder.glob("[0-9]*"))
            self._stack.close()


def _terminate(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        process.terminate()


def _is_interrupt(reason: BaseException | None) -> bool:
    """Tell whether it is an interrupt, or came of one: who is interrupted closes a generator."""
    while reason is not None:
        if isinstance(reason, KeyboardInterrupt):
            return True
        reason = reason.__context__
    return False


# In a worker


def _begin(folder: str) -> None:
    """Prepare a worker; it ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    usual_path()
    die_with_parent()
    if is_private(Path(folder)):
        (Path(folder) / str(os.getpid())).touch()


_here: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {}
"""The tasks that this worker is at, by their file."""


def _attempt_number(number: int, path: str, threads: int) -> tuple[Any, str | None]:
    limit(threads)
    function, work = _tasks(path)
    return attempt(function, work[number])


def _tasks(path: str) -> tuple[Callable[[Any], Any], list[Any]]:
    """Return tasks; read once, and what the ones before left is given back."""
    if path not in _here:
        for function, _ in _here.values():
            getattr(function, "forget", lambda: None)()
        _here.clear()
        _here[path] = _read(path)
    return _here[path]


def _read(path: str) -> tuple[Callable[[Any], Any], list[Any]]:
    """Read tasks. They are code: a folder that somebody made anew in its place is not read."""
    try:
        if not is_private(Path(path).parent):
            raise PermissionError(errno.EACCES, "its folder is not private")
        with open_regular(Path(path), of_user=True) as file:
            return pickle.load(file)  # type: ignore[no-any-return]
    except OSError as problem:
        raise StoreError(
            f"a worker process cannot read its tasks: {path} ({problem.strerror or problem}). "
            "Another process removed or replaced the folder at the start of the run: run again, or "
            "set TMPDIR to a folder that nothing else empties"
        ) from None
    except UnskewError:
        raise
    except Exception as problem:  # of an import: what the tasks are made of is not to be had here
        raise DataError(f"a worker process cannot read its tasks: {problem!r}") from None
